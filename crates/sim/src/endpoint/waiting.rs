//! Packing and waking connections that are idle or wait for a timer.

use super::hosts::Hosts;
use crate::observe::Observer;
use fleetfoot_core::tcp::Connection;
use std::sync::Arc;

impl<O: Observer> Hosts<'_, O> {
    /// Nothing is awaited at one end: packs what can be packed.
    #[cold]
    pub(super) fn rest(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.in_network == 0 && slot.partner == index {
            for end in &mut slot.ends {
                end.rest(&mut self.models);
            }
        }
    }

    /// Nothing of a conversation is in the network, since a packet was lost, and none of its ends has more to send: where there are very
    /// many, ends that open or close are packed until a timer fires.
    #[cold]
    pub(super) fn pack(&mut self, index: u32) {
        if self.slots.len() - self.free.len() < MANY_OPEN || !self.network.gathers {
            return;
        }
        let slot = &mut self.slots[index as usize];
        if slot.partner == index {
            for end in slot.ends.iter_mut().filter(|end| end.grouper.is_none()) {
                end.pack(&mut self.models);
            }
        }
    }

    /// Makes sure that the connection of an end, if it has one, is there.
    #[inline]
    pub(crate) fn wake(&mut self, index: u32, side: usize) {
        let slot = &mut self.slots[index as usize];
        if slot.ends[side].resting.is_some() {
            let config = Arc::clone(slot.config(&self.spec.groups[slot.group as usize], side));
            let ticks = self.ticks[slot.ends[side].node.0 as usize];
            slot.ends[side].wake(&self.models, &config, ticks);
        }
    }

    /// Goes through the next slots, and packs endless conversations of which nothing is in the network while their senders have many
    /// records of segments that are out.
    #[cold]
    pub(crate) fn pack_waiting(&mut self) {
        if self.slots.len() - self.free.len() < MANY_OPEN {
            return;
        }
        let from = if self.searched < self.slots.len() {
            self.searched
        } else {
            0
        };
        let to = self.slots.len().min(from + SEARCHED);
        self.searched = to;
        for index in from..to {
            let slot = &mut self.slots[index];
            let sender = slot.ends[0].connection.as_deref();
            if slot.in_network == 0
                && slot.endless
                && slot.partner as usize == index
                && sender.is_some_and(Connection::holds_many_records)
                && slot.ends.iter().all(|end| end.grouper.is_none() && !end.closed)
            {
                for end in &mut slot.ends {
                    end.pack_with_data_out(&mut self.models);
                }
            }
        }
    }
}

/// From so many open conversations on those are packed that wait for a timer.
const MANY_OPEN: usize = 16_384;

/// Slots that are looked at together.
const SEARCHED: usize = 1 << 14;
