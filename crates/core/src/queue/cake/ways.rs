//! Set-associative tables: a fingerprint may stand in any of the eight places of its set.
//!
//! **Source.** Linux `sch_cake.c` (cake_hash).

use alloc::vec;
use alloc::vec::Vec;

/// Places of a set.
pub(in super::super) const WAYS: u32 = 8;

/// Fingerprints by place. Whether a place is free is for the caller to say.
#[derive(Clone, Debug)]
pub(in super::super) struct Ways {
    tags: Vec<u64>,
}

/// Where a fingerprint belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Place {
    /// The flow has this place.
    Own(u32),
    /// The flow had no place and was given this free one.
    New(u32),
    /// Its set is full: it shares the place it hashes to, which stays its owner's.
    Shared(u32),
}

impl Place {
    pub(in super::super) const fn index(self) -> u32 {
        match self {
            Place::Own(index) | Place::New(index) | Place::Shared(index) => index,
        }
    }
}

impl Ways {
    /// `places` is a multiple of [`WAYS`].
    pub(in super::super) fn new(places: u32) -> Ways {
        Ways {
            tags: vec![0; places as usize],
        }
    }

    pub(in super::super) fn find(&mut self, tag: u64, is_free: impl Fn(u32) -> bool) -> Place {
        let places = self.tags.len() as u64;
        let direct = ((u128::from(tag) * u128::from(places)) >> 64) as u32;
        if self.tags[direct as usize] == tag {
            return Place::Own(direct);
        }
        let set = direct - direct % WAYS;
        let way = |i: u32| set + (direct + i) % WAYS;
        if let Some(own) = (1..WAYS).map(way).find(|&place| self.tags[place as usize] == tag) {
            return Place::Own(own);
        }
        if let Some(free) = (0..WAYS).map(way).find(|&place| is_free(place)) {
            self.tags[free as usize] = tag;
            return Place::New(free);
        }
        Place::Shared(direct)
    }
}
