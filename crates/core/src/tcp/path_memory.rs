//! What connections learn about a path, for later ones between the same two hosts.
//!
//! A connection tells once at which rate its bottleneck passed two segments that had left together ([`super::spreading`]) and
//! how short a round trip was. The next ones begin with the middle of the last three rates, and the shortest round trip.
//! Whoever opens connections keeps the memory: a connection is told on its first day, and tells, but holds nothing shared.
//!
//! **Source.** RFC 9040 6 (temporal sharing): what is passed on, when it is read (6.1) and updated (6.2); 8.1 and 8.3 on hosts
//! whose connections take several paths. The middle of three is ours, against single measurements that other packets spoilt.
//! **Deviations.** RFC 9040 names no rate: it passes on round-trip times, their variation and windows. Of these only the
//! shortest round trip is kept, and no connection begins with it as its estimate. What is known at the same time by several
//! connections is not adjusted among them (section 7, ensemble sharing).

use crate::time::{Duration, Instant};
use crate::units::Rate;
use alloc::collections::BTreeMap;

/// What one connection learnt about its path, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSample {
    /// Of the bottleneck.
    pub rate: Rate,
    /// Shortest round trip.
    pub min_rtt: Duration,
}

/// Paths by their ends.
#[derive(Clone, Debug)]
pub struct PathMemory<K> {
    entries: BTreeMap<K, Entry>,
}

/// What the last connections learnt, the newest first.
#[derive(Clone, Copy, Debug, Default)]
struct Entry([Option<(Instant, PathSample)>; KEPT]);

impl<K: Ord + Copy> PathMemory<K> {
    /// Nothing is known.
    pub const fn new() -> PathMemory<K> {
        PathMemory {
            entries: BTreeMap::new(),
        }
    }

    /// Takes in what a connection learnt.
    pub fn learn(&mut self, now: Instant, path: K, sample: PathSample) {
        if !self.entries.contains_key(&path) && self.entries.len() >= CAPACITY {
            self.entries.pop_first();
        }
        let entry = self.entries.entry(path).or_default();
        entry.0.rotate_right(1);
        entry.0[0] = Some((now, sample));
    }

    /// What the last connections learnt within `lifetime`.
    pub fn recall(&self, now: Instant, path: K, lifetime: Duration) -> Option<PathSample> {
        let entry = self.entries.get(&path)?;
        let mut rates = [Rate::UNLIMITED; KEPT];
        let mut known = 0;
        let mut min_rtt = None;
        for (at, sample) in entry.0.iter().flatten() {
            if now.since(*at) < lifetime {
                rates[known] = sample.rate;
                known += 1;
                min_rtt = Some(min_rtt.map_or(sample.min_rtt, |rtt: Duration| rtt.min(sample.min_rtt)));
            }
        }
        let known = &mut rates[..known];
        known.sort_unstable();
        Some(PathSample {
            rate: *known.get(known.len().checked_sub(1)? / 2)?, // of two the slower
            min_rtt: min_rtt?,
        })
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

impl<K: Ord + Copy> Default for PathMemory<K> {
    fn default() -> PathMemory<K> {
        PathMemory::new()
    }
}

/// Connections that count.
const KEPT: usize = 3;
/// Paths remembered; the one with the least name goes when there are more.
const CAPACITY: usize = 4096;
