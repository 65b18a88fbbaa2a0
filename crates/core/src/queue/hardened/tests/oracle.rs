//! A second, naive transcription of docs/design/sp-hardened.md#rule-1 to #rule-9: hash maps, loops over epochs, no shared code but the
//! keyed hash, whose bits the filter shows.

extern crate std;

use super::super::super::hash::HashKey;
use crate::flow::FlowKey;
use crate::superpacket::{Mark, Role};
use alloc::vec;
use alloc::vec::Vec;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Regular,
    Promised,
    Dropped,
}

#[derive(Clone, Debug)]
struct Reservation {
    length: i64,
    left: i64,
    source: u32,
    port: u16,
    pool: bool,
    began: u64,
}

#[derive(Clone, Debug, Default)]
struct Generation {
    table: HashMap<(FlowKey, u16), Reservation>,
    denied: BTreeSet<u64>,
}

/// The constants of one configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    pub(super) size: i64,
    pub(super) m: i64,
    pub(super) r_cap: i64,
    pub(super) p_new: i64,
    pub(super) c_max: i64,
    pub(super) c_port_max: i64,
    /// Nanoseconds in which a port earns an eighth; 0 for never.
    pub(super) growth: u64,
    pub(super) e_min: u64,
    pub(super) e_max: u64,
    /// Ours: bound of H.
    pub(super) headroom: i64,
    /// Whether what is denied is dropped as a whole.
    pub(super) drops: bool,
}

pub(super) struct Oracle {
    constants: Constants,
    key: HashKey,
    /// Current, then old.
    generations: [Generation; 2],
    epoch_end: u64,
    epoch: u64,
    second_end: u64,
    gaps: [Option<u64>; 2],
    /// Ours: lengths of super-packets that a follower came of, in this second and in the one before.
    lengths: [Vec<i64>; 2],
    pub(super) q: i64,
    /// In eighths.
    credits: BTreeMap<u32, i64>,
    ports: BTreeMap<u16, (i64, u64)>,
}

impl Oracle {
    pub(super) fn new(constants: Constants, seed: u64) -> Oracle {
        Oracle {
            constants,
            key: HashKey::new(seed),
            generations: [Generation::default(), Generation::default()],
            epoch_end: constants.e_max,
            epoch: constants.e_max,
            second_end: 1_000_000_000,
            gaps: [None, None],
            lengths: [Vec::new(), Vec::new()],
            q: 0,
            credits: BTreeMap::new(),
            ports: BTreeMap::new(),
        }
    }

    fn rotate(&mut self, now: u64) {
        if now < self.epoch_end {
            return;
        }
        let mut begun = self.epoch_end;
        loop {
            self.generations.swap(0, 1);
            self.generations[0] = Generation::default();
            if now < begun + self.epoch {
                break;
            }
            begun += self.epoch;
        }
        if now >= self.second_end {
            self.gaps[1] = if now < self.second_end + 1_000_000_000 {
                self.gaps[0]
            } else {
                None
            };
            self.gaps[0] = None;
            self.lengths.swap(0, 1);
            self.lengths[0].clear();
            if now >= self.second_end + 1_000_000_000 {
                self.lengths[1].clear();
            }
            self.second_end = now + 1_000_000_000;
        }
        self.epoch = match self.gaps[0].max(self.gaps[1]) {
            Some(gap) => (4 * gap).clamp(self.constants.e_min, self.constants.e_max),
            None => self.constants.e_max,
        };
        self.epoch_end = if begun + self.epoch > now {
            begun + self.epoch
        } else {
            now + self.epoch
        };
    }

    fn entries(&self) -> impl Iterator<Item = &Reservation> {
        self.generations
            .iter()
            .flat_map(|generation| generation.table.values())
    }

    pub(super) fn r(&self) -> i64 {
        self.entries().map(|entry| entry.left).sum()
    }

    pub(super) fn r_new(&self) -> i64 {
        self.entries()
            .filter(|entry| entry.pool)
            .map(|entry| entry.left)
            .sum()
    }

    pub(super) fn out(&self, source: u32) -> i64 {
        self.entries()
            .filter(|entry| entry.source == source)
            .map(|entry| entry.left)
            .sum()
    }

    pub(super) fn credit(&self, source: u32) -> i64 {
        self.credits.get(&source).copied().unwrap_or(0)
    }

    fn earn(&mut self, source: u32, eighths: i64) {
        let credit = self.credits.entry(source).or_insert(0);
        *credit = (*credit + eighths).min(8 * self.constants.c_max);
    }

    pub(super) fn port(&mut self, now: u64, port: u16) -> &mut i64 {
        let most = 8 * self.constants.c_port_max;
        let growth = self.constants.growth;
        let (credit, since) = self.ports.entry(port).or_insert((most, now));
        while growth > 0 && *since + growth <= now && *credit < most {
            *credit += 1;
            *since += growth;
        }
        if *credit == most {
            *since = now.max(*since);
        }
        credit
    }

    fn earn_port(&mut self, now: u64, port: u16, eighths: i64) {
        let most = 8 * self.constants.c_port_max;
        let credit = self.port(now, port);
        *credit = (*credit + eighths).min(most);
    }

    fn bits(&self, flow: FlowKey, id: u16) -> Vec<u64> {
        let key = self.key.super_packet(flow, id, true);
        vec![
            key >> 8 & 4095,
            key >> 20 & 4095,
            key >> 32 & 4095,
            key >> 44 & 4095,
        ]
    }

    /// Ours: H.
    fn h(&self) -> i64 {
        let longest = self.lengths.iter().flatten().max();
        longest.map_or(0, |&longest| longest.min(self.constants.headroom))
    }

    fn regular(&mut self) -> Fate {
        if self.q + self.r().max(self.h()) < self.constants.size {
            self.q += 1;
            Fate::Regular
        } else {
            Fate::Dropped
        }
    }

    fn member(&mut self, now: u64, source: u32, port: u16) -> Fate {
        let fate = self.regular();
        if fate == Fate::Regular {
            self.earn(source, 1);
            self.earn_port(now, port, 1);
        }
        fate
    }

    pub(super) fn enqueue(&mut self, now: u64, flow: FlowKey, port: u16, mark: Mark) -> Fate {
        self.rotate(now);
        let source = flow.source.0;
        let key = (flow, mark.id);
        match mark.role {
            Role::Regular => self.regular(),
            Role::First if mark.last => self.regular(),
            Role::First if i64::from(mark.length) > self.constants.m => self.regular(),
            Role::First => {
                for generation in &mut self.generations {
                    generation.table.remove(&key);
                }
                let w = i64::from(mark.length) - 1;
                let head = self.constants.r_cap - self.r();
                let share = w <= head && self.out(source) + w <= head - w && *self.port(now, port) >= 8 * w;
                let pool = self.credit(source) < 8 * w;
                if !share || pool && self.r_new() + w > self.constants.p_new {
                    // Ours: a first earns nothing.
                    return self.regular();
                }
                if self.q + self.r() + (w + 1).max(self.h()) > self.constants.size {
                    if !self.constants.drops {
                        return self.regular();
                    }
                    let bits = self.bits(flow, mark.id);
                    self.generations[0].denied.extend(bits);
                    return Fate::Dropped;
                }
                if !pool {
                    *self.credits.entry(source).or_insert(0) -= 8 * w;
                }
                *self.port(now, port) -= 8 * w;
                let entry = Reservation {
                    length: w + 1,
                    left: w,
                    source,
                    port,
                    pool,
                    began: now / 1000,
                };
                self.generations[0].table.insert(key, entry);
                self.q += 1;
                Fate::Promised
            }
            Role::Follower => {
                let found = (0..2).find(|&g| self.generations[g].table.contains_key(&key));
                if let Some(entry) = found.and_then(|g| self.generations[g].table.get_mut(&key)) {
                    entry.left = if mark.last { 0 } else { entry.left - 1 };
                    let entry = entry.clone();
                    for generation in &mut self.generations {
                        generation.table.retain(|_, entry| entry.left > 0);
                    }
                    if let Some(gap) = (now / 1000).checked_sub(entry.began) {
                        self.gaps[0] = self.gaps[0].max(Some(1000 * gap));
                    }
                    if now / 1000 >= entry.began {
                        self.lengths[0].push(entry.length);
                    }
                    self.earn(entry.source, if entry.pool { 1 } else { 9 });
                    self.earn_port(now, entry.port, 9);
                    self.q += 1;
                    return Fate::Promised;
                }
                let bits = self.bits(flow, mark.id);
                let denied = |generation: &Generation| bits.iter().all(|bit| generation.denied.contains(bit));
                if self.generations.iter().any(denied) {
                    return Fate::Dropped;
                }
                self.member(now, source, port)
            }
        }
    }
}
