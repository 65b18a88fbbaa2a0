//! Connections that wait for a timer with much data out: where there are very many conversations, they are packed.

use super::MANY_OPEN;
use super::hosts::Hosts;
use crate::observe::Observer;
use fleetfoot_core::tcp::Connection;

impl<O: Observer> Hosts<'_, O> {
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

/// Slots that are looked at together.
const SEARCHED: usize = 1 << 14;
