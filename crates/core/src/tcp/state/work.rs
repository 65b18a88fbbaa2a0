//! Counted work: entries that an event makes a connection look at or move, in builds with debug assertions.
//!
//! The tests of attacks hold it against a bound that does not depend on the length of any queue. And what a connection
//! holds in memory.

use serde::{Deserialize, Serialize};

/// A count of entries; nothing in builds without debug assertions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
