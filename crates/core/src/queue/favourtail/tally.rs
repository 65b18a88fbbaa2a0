//! A count for each of those that are here: a chained hash table whose entries come and go with what they count.
//!
//! Keys are 64 bits of a keyed hash, so nobody outside can make chains long, and a foreign key hits with a probability of
//! 10^-13 at a million entries; here that could only deny favour. Entries are taken from a free list and made when there never
//! were so many: nothing is allocated once the table has seen its largest population.

use super::super::work;
use alloc::vec;
use alloc::vec::Vec;

/// "No entry".
pub(super) const NONE: u32 = u32::MAX;

/// 16 bytes, and what is kept beside the count.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    fingerprint: u64,
    /// Next in the chain, or next free entry.
    next: u32,
    count: u32,
    about: T,
}

const _: () = assert!(size_of::<Entry<()>>() == 16);

/// Counts above zero, and a `T` for each of those that are counted.
#[derive(Clone, Debug)]
pub(super) struct Tally<T = ()> {
    /// First entry of each chain; a power of two of them.
    heads: Vec<u32>,
    entries: Vec<Entry<T>>,
    free: u32,
}

/// Most chains: beyond, they grow longer.
const CHAINS: u32 = 1 << 17;

impl<T: Copy + Default> Tally<T> {
    /// A table for about this number of entries.
    pub(super) fn new(expected: u32) -> Tally<T> {
        Tally {
            heads: vec![NONE; expected.clamp(16, CHAINS).next_power_of_two() as usize],
            entries: Vec::new(),
            free: NONE,
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.heads.len() * size_of::<u32>() + self.entries.len() * size_of::<Entry<T>>()
    }

    #[inline]
    fn chain(&self, fingerprint: u64) -> usize {
        fingerprint as usize & (self.heads.len() - 1)
    }

    #[inline]
    pub(super) fn find(&self, fingerprint: u64) -> Option<u32> {
        let mut at = self.heads[self.chain(fingerprint)];
        while at != NONE {
            work::step();
            let entry = &self.entries[at as usize];
            if entry.fingerprint == fingerprint {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    #[inline]
    pub(super) fn count(&self, entry: u32) -> u32 {
        self.entries[entry as usize].count
    }

    /// What is kept beside a count.
    #[inline]
    pub(super) fn kept(&self, entry: u32) -> T {
        self.entries[entry as usize].about
    }

    /// The same, to be changed; at first the default.
    #[inline]
    pub(super) fn about(&mut self, entry: u32) -> &mut T {
        &mut self.entries[entry as usize].about
    }

    /// Adds `amount`, above zero, to the entry that `find` gave for `fingerprint`, or to a new one.
    #[inline]
    pub(super) fn add(&mut self, found: Option<u32>, fingerprint: u64, amount: u32) -> u32 {
        if let Some(entry) = found {
            self.entries[entry as usize].count += amount;
            return entry;
        }
        let chain = self.chain(fingerprint);
        let entry = Entry {
            fingerprint,
            next: self.heads[chain],
            count: amount,
            about: T::default(),
        };
        let index = if self.free == NONE {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.entries[index as usize].next;
            self.entries[index as usize] = entry;
            index
        };
        self.heads[chain] = index;
        index
    }

    /// Takes `amount` away; an entry that counts nothing goes.
    #[inline]
    pub(super) fn subtract(&mut self, entry: u32, amount: u32) {
        let here = &mut self.entries[entry as usize];
        here.count -= amount;
        if here.count > 0 {
            return;
        }
        let Entry {
            fingerprint, next, ..
        } = *here;
        let chain = self.chain(fingerprint);
        if self.heads[chain] == entry {
            self.heads[chain] = next;
        } else {
            let mut at = self.heads[chain];
            while self.entries[at as usize].next != entry {
                work::step();
                at = self.entries[at as usize].next;
            }
            self.entries[at as usize].next = next;
        }
        self.entries[entry as usize].next = self.free;
        self.free = entry;
    }

    /// Number of entries and their sum.
    #[cfg(test)]
    pub(super) fn population(&self) -> (usize, u64) {
        let (mut entries, mut sum) = (0, 0);
        for &head in &self.heads {
            let mut at = head;
            while at != NONE {
                entries += 1;
                sum += u64::from(self.entries[at as usize].count);
                at = self.entries[at as usize].next;
            }
        }
        (entries, sum)
    }
}
