//! Transfers: connections that carry data one way, close, and are a flow each.

use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

impl<O: Observer> Hosts<'_, O> {
    /// Opens a connection for one transfer.
    pub(super) fn transfer(&mut self, now: Instant, group: u32, actor: u32, pair: u32, bytes: u64) {
        let slot = self.open_pair(now, group, actor, pair, Some(0));
        let record = self.open_record(group, pair, now, Bytes(bytes));
        let place = &mut self.slots[slot as usize];
        place.record = record;
        place.awaited = record != NONE;
        place.unfinished = true;
        place.acked_goal = bytes;
        place.ends[1].goal = bytes;
        place.ends[0].closing = true;
        self.write(slot, 0, bytes);
        self.stream_ends(now, slot, bytes);
        self.push(now, slot, 0);
    }

    /// The receiver has every byte of a transfer. Whether the transfer was not over before.
    pub(super) fn transfer_arrived(&mut self, now: Instant, slot: u32) -> bool {
        let place = &mut self.slots[slot as usize];
        place.completed = now;
        place.ends[1].goal = u64::MAX;
        self.transfer_ended(slot)
    }

    /// The sender knows that the receiver has every byte of a transfer.
    pub(super) fn transfer_acked(&mut self, now: Instant, slot: u32) {
        let place = &mut self.slots[slot as usize];
        place.acked = now;
        place.acked_goal = u64::MAX;
        self.open -= u64::from(std::mem::take(&mut place.awaited));
    }

    /// A transfer is complete, or never will be. Whether it was not over before.
    pub(super) fn transfer_ended(&mut self, slot: u32) -> bool {
        std::mem::take(&mut self.slots[slot as usize].unfinished)
    }
}
