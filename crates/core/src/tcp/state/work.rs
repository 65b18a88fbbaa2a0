//! Counted work: entries that an event makes a connection look at or move, in builds with debug assertions.
//!
//! The tests of attacks hold it against a bound that does not depend on the length of any queue. And what a connection
//! holds in memory.

use crate::tcp::Connection;
use crate::tcp::ack::rack::Rack;
use crate::tcp::ack::scoreboard::{Record, Run};
use crate::tcp::send::half::Sender;

/// A count of entries; nothing in builds without debug assertions.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Work {
    #[cfg(debug_assertions)]
    count: u64,
}

impl Work {
    /// Entries looked at.
    #[inline]
    pub(in crate::tcp) fn add(&mut self, entries: usize) {
        #[cfg(debug_assertions)]
        {
            self.count += entries as u64;
        }
        let _ = entries;
    }

    /// A binary search among `len` entries.
    #[inline]
    pub(in crate::tcp) fn search(&mut self, len: usize) {
        self.add(1 + len.checked_ilog2().unwrap_or(0) as usize);
    }

    /// Entries `low..high` of `len` became one: the shorter side moves, at four entries a cache line.
    #[inline]
    pub(in crate::tcp) fn shift(&mut self, len: usize, low: usize, high: usize) {
        self.add(high - low);
        if high != low + 1 {
            self.add(low.min(len - high).div_ceil(4));
        }
    }

    pub(in crate::tcp) fn pack(&mut self, pack: &mut crate::pack::Pack<'_>) {
        #[cfg(debug_assertions)]
        pack.number(&mut self.count);
        let _ = pack;
    }

    /// The count so far.
    pub(in crate::tcp) fn count(&self) -> u64 {
        #[cfg(debug_assertions)]
        {
            self.count
        }
        #[cfg(not(debug_assertions))]
        {
            0
        }
    }
}

impl Connection {
    /// Entries of queues looked at or moved so far, in builds with debug assertions; otherwise 0.
    pub fn work(&self) -> u64 {
        self.receive.work() + self.sender.as_ref().map_or(0, |sender| sender.board.work.count())
    }

    /// Bytes of memory that the connection occupies, with the received bytes that the driver keeps for it. What the
    /// application wrote is bounded by the send buffer and not counted.
    pub fn held(&self) -> u64 {
        let sender = self.sender.as_ref().map_or(0, |sender| {
            size_of::<Sender>()
                + sender.board.ring.capacity() * size_of::<Record>()
                + (sender.board.marks.runs.capacity() + sender.board.marks.stale.capacity())
                    * size_of::<Run>()
                + sender
                    .recovery
                    .rack()
                    .map_or(0, |rack| size_of::<Rack>() + rack.held())
        });
        (size_of::<Connection>() + sender + self.receive.overhead()) as u64 + self.receive.held()
    }
}
