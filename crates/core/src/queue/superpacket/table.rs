//! A map from fingerprints to small values that forgets a whole generation at once.
//!
//! Two generations of chained hash tables in fixed arrays. Clearing one counts up its stamp: a head with a stale stamp is empty,
//! and entries are handed out from the start of the array again. So rotation, insertion and removal take constant work, and
//! nothing is allocated after construction. A fingerprint is 64 bits of a keyed hash: at 1000 entries a foreign key hits with a
//! probability below 10^-16.

use crate::queue::work;
use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Entry<V> {
    fingerprint: u64,
    /// Next in the chain, or next free entry.
    next: u32,
    value: V,
}

const _: () = assert!(size_of::<Entry<u32>>() == 16);

/// One generation.
#[derive(Clone, Debug)]
pub(super) struct Table<V = u32> {
    /// First entry of each chain (high half) and the stamp it was written under (low half).
    heads: Vec<u64>,
    entries: Vec<Entry<V>>,
    stamp: u32,
    /// Entries from here on were never used under this stamp.
    fresh: u32,
    /// First of the removed entries.
    free: u32,
    len: u32,
}

/// Where an entry is: good until the next change of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    entry: u32,
    /// Entry before it in its chain.
    previous: u32,
}

impl<V: Copy + Default> Table<V> {
    pub(super) fn new(capacity: u32) -> Table<V> {
        Table {
            // The capacity is for super-packets of two; with ten packets each an eighth of it is in use. Fewer heads stay in
            // the caches, and chains of super-packets of two have eight entries.
            heads: vec![0; (capacity / 8).max(16).next_power_of_two() as usize],
            entries: vec![Entry::default(); capacity as usize],
            stamp: 1,
            fresh: 0,
            free: NONE,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        self.heads.len() * size_of::<u64>() + self.entries.len() * size_of::<Entry<V>>()
    }

    pub(super) fn clear(&mut self) {
        self.fresh = 0;
        self.free = NONE;
        self.len = 0;
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            // Once in 2^32 epochs: stamps are about to repeat.
            self.heads.fill(0);
            self.stamp = 1;
        }
    }

    #[inline]
    fn slot(&self, fingerprint: u64) -> usize {
        fingerprint as usize & (self.heads.len() - 1)
    }

    #[inline]
    fn head(&self, slot: usize) -> u32 {
        let head = self.heads[slot];
        if head as u32 == self.stamp {
            (head >> 32) as u32
        } else {
            NONE
        }
    }

    #[inline]
    pub(super) fn find(&self, fingerprint: u64) -> Option<Place> {
        let (mut entry, mut previous) = (self.head(self.slot(fingerprint)), NONE);
        while entry != NONE {
            work::step();
            let here = &self.entries[entry as usize];
            if here.fingerprint == fingerprint {
                return Some(Place { entry, previous });
            }
            (previous, entry) = (entry, here.next);
        }
        None
    }

    #[inline]
    pub(super) fn value(&self, place: Place) -> V {
        self.entries[place.entry as usize].value
    }

    #[inline]
    pub(super) fn set(&mut self, place: Place, value: V) {
        self.entries[place.entry as usize].value = value;
    }

    /// Adds a fingerprint that is not there. Returns whether there was room.
    #[inline]
    pub(super) fn insert(&mut self, fingerprint: u64, value: V) -> bool {
        let entry = if self.free != NONE {
            let entry = self.free;
            self.free = self.entries[entry as usize].next;
            entry
        } else if (self.fresh as usize) < self.entries.len() {
            self.fresh += 1;
            self.fresh - 1
        } else {
            return false;
        };
        let slot = self.slot(fingerprint);
        self.entries[entry as usize] = Entry {
            fingerprint,
            next: self.head(slot),
            value,
        };
        self.heads[slot] = u64::from(entry) << 32 | u64::from(self.stamp);
        self.len += 1;
        true
    }

    #[inline]
    pub(super) fn remove(&mut self, place: Place) {
        let Entry {
            fingerprint, next, ..
        } = self.entries[place.entry as usize];
        if place.previous == NONE {
            let slot = self.slot(fingerprint);
            self.heads[slot] = u64::from(next) << 32 | u64::from(self.stamp);
        } else {
            self.entries[place.previous as usize].next = next;
        }
        self.entries[place.entry as usize].next = self.free;
        self.free = place.entry;
        self.len -= 1;
    }

    /// Values of all entries, for tests of the invariants.
    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = V> + '_ {
        (0..self.heads.len()).flat_map(move |slot| {
            let mut entry = self.head(slot);
            core::iter::from_fn(move || {
                let here = self.entries.get(entry as usize)?;
                entry = here.next;
                Some(here.value)
            })
        })
    }
}
