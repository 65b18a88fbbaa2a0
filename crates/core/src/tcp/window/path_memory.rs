//! What connections learn about a path, for later ones between the same two hosts.
//!
//! A connection reports once at which rate its bottleneck passed two segments that had left together ([`crate::tcp::send::spreading`]) and
//! how short a round trip was. The next ones begin with the middle of the last three rates, and the shortest round trip.
//! Whoever opens connections keeps the memory: a connection receives it when it opens, and reports once, but holds nothing shared.
//! Connections that ran at the same time met the same traffic, so that together they are one of the three: the first rate counts.
//!
//! **Source.** RFC 9040 6 (temporal sharing): what is passed on, when it is read (6.1) and updated (6.2); 8 on hosts
//! whose connections take several paths. The middle of three is ours, against single measurements that other packets spoilt.
//! **Deviations.** RFC 9040 names no rate: it passes on round-trip times, their variation and windows. Of these only the
//! shortest round trip is kept, and no connection begins with it as its estimate. A connection that runs hears nothing of what
//! others learn meanwhile (section 7, ensemble sharing). The RFC names no bound: beyond 4096 paths that goes of which nothing was
//! learnt for longest.

use crate::time::{Duration, Instant};
use crate::units::Rate;
use alloc::collections::{BTreeMap, BTreeSet};
use serde::{Deserialize, Serialize};

/// What one connection learnt about its path, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSample {
    /// Rate of the bottleneck.
    pub rate: Rate,
    /// Shortest round trip.
    pub min_rtt: Duration,
}

/// Paths by their ends.
#[derive(Clone, Debug)]
pub struct PathMemory<K> {
    entries: BTreeMap<K, Entry>,
    /// When each path was last learnt of.
    by_age: BTreeSet<(Instant, K)>,
}

/// What the last connections learnt, the newest first.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    samples: [Option<(Instant, PathSample)>; KEPT],
    /// Its place in the order of age.
    touched: Instant,
}

impl<K: Ord + Copy> PathMemory<K> {
    /// Nothing is known.
    pub const fn new() -> PathMemory<K> {
        PathMemory {
            entries: BTreeMap::new(),
            by_age: BTreeSet::new(),
        }
    }

    /// Takes in what a connection learnt that began at `began` ([`Connection::take_path`](crate::tcp::Connection::take_path)).
    pub fn learn(&mut self, now: Instant, path: K, (began, sample): (Instant, PathSample)) {
        if let Some(entry) = self.entries.get(&path) {
            self.by_age.remove(&(entry.touched, path));
        } else if self.entries.len() >= CAPACITY
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.by_age.insert((now, path));
        let entry = self.entries.entry(path).or_default();
        entry.touched = now;
        if let Some((at, newest)) = &mut entry.samples[0]
            && began < *at
        {
            newest.min_rtt = newest.min_rtt.min(sample.min_rtt); // it ran beside the one that reported this
            return;
        }
        entry.samples.rotate_right(1);
        entry.samples[0] = Some((now, sample));
    }

    /// What the last connections learnt within `lifetime`.
    pub fn recall(&self, now: Instant, path: K, lifetime: Duration) -> Option<PathSample> {
        let entry = self.entries.get(&path)?;
        let mut rates = [Rate::UNLIMITED; KEPT];
        let mut known = 0;
        let mut min_rtt = None;
        for (at, sample) in entry.samples.iter().flatten() {
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
        self.by_age.clear();
    }
}

impl<K: Ord + Copy> Default for PathMemory<K> {
    fn default() -> PathMemory<K> {
        PathMemory::new()
    }
}

/// Connections that count.
const KEPT: usize = 3;
/// Paths remembered.
const CAPACITY: usize = 4096;

/// What a connection was given of its path, and what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tcp) struct PathNotes {
    /// When that was.
    pub(in crate::tcp) began: Instant,
    pub(in crate::tcp) given: Option<PathSample>,
    pub(in crate::tcp) found: Option<PathSample>,
}
