//! What lives between one and two epochs: sums in two generations, the clock that turns them, and the table of reservations.
//!
//! Nothing is swept. Whatever holds two generations carries the number of the epoch it was touched in; when it is touched
//! again it first forgets what is too old. So the end of an epoch, or of many, costs the same.

use super::super::work;
use crate::time::{Duration, Instant};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

/// A sum of what was reserved in this epoch and in the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    epoch: u32,
    current: u16,
    old: u16,
}

impl Held {
    /// Forgets what has expired by `epoch`.
    fn settle(&mut self, epoch: u32) {
        match epoch.wrapping_sub(self.epoch) {
            0 => return,
            1 => (self.old, self.current) = (self.current, 0),
            _ => (self.old, self.current) = (0, 0),
        }
        self.epoch = epoch;
    }

    /// Both generations.
    pub(super) fn total(&mut self, epoch: u32) -> u16 {
        self.settle(epoch);
        self.current.saturating_add(self.old)
    }

    /// Adds to this epoch.
    pub(super) fn take(&mut self, epoch: u32, n: u16) {
        self.settle(epoch);
        self.current = self.current.saturating_add(n);
    }

    /// Gives back what was taken in epoch `of`.
    pub(super) fn give_back(&mut self, epoch: u32, of: u32, n: u16) {
        self.settle(epoch);
        let sum = if of == epoch {
            &mut self.current
        } else {
            &mut self.old
        };
        *sum = sum.saturating_sub(n);
    }
}

/// Numbers the epochs and sets their length (docs/design/sp-hardened.md#short-life): four times the longest super-packet of the last one to two
/// seconds, within bounds.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Number of this epoch.
    pub(super) epoch: u32,
    ends: Instant,
    length: Duration,
    shortest: Duration,
    longest: Duration,
    /// Longest time from a first to one of its followers, in this second and in the one before.
    spread: [Option<Duration>; 2],
    /// Packets of the longest super-packet that a follower was redeemed of, likewise.
    redeemed: [u8; 2],
    second_ends: Instant,
}

impl Clock {
    pub(super) fn new(shortest: Duration, longest: Duration) -> Clock {
        Clock {
            epoch: 2,
            ends: Instant::ZERO.saturating_add(longest),
            length: longest,
            shortest: shortest.min(longest),
            longest,
            spread: [None; 2],
            redeemed: [0; 2],
            second_ends: Instant::ZERO.saturating_add(SECOND),
        }
    }

    /// Turns the epochs that have ended. Clocks that go backwards turn nothing.
    pub(super) fn rotate(&mut self, now: Instant) {
        if now < self.ends {
            return;
        }
        let late = now.since(self.ends).as_nanos();
        let length = self.length.as_nanos();
        let passed = late / length;
        // One ended, or more: then both generations are gone.
        self.epoch = self.epoch.wrapping_add(if passed == 0 { 1 } else { 2 });
        let begun = now.since(Instant::ZERO).as_nanos() - late % length;
        self.adapt(now);
        // A shorter epoch that would be over by now begins now.
        let ends = Instant::from_nanos(begun).saturating_add(self.length);
        self.ends = if ends > now {
            ends
        } else {
            now.saturating_add(self.length)
        };
    }

    fn adapt(&mut self, now: Instant) {
        if now >= self.second_ends {
            let recent = now.since(self.second_ends) < SECOND;
            self.spread = [None, if recent { self.spread[0] } else { None }];
            self.redeemed = [0, if recent { self.redeemed[0] } else { 0 }];
            self.second_ends = now.saturating_add(SECOND);
        }
        // Nothing seen: slow super-packets would never be seen with a short epoch.
        let spread = self.spread[0].max(self.spread[1]);
        self.length = spread.map_or(self.longest, |spread| {
            spread.saturating_mul(4).max(self.shortest).min(self.longest)
        });
    }

    /// A follower came so long after its first, which was the head of so many packets, or more.
    pub(super) fn on_redeemed(&mut self, spread: Duration, packets: u8) {
        self.spread[0] = self.spread[0].max(Some(spread));
        self.redeemed[0] = self.redeemed[0].max(packets);
    }

    /// Packets of the longest super-packet of which one was redeemed in this second or in the one before.
    pub(super) fn longest_redeemed(&self) -> u8 {
        self.redeemed[0].max(self.redeemed[1])
    }

    /// Whether something of epoch `of` still counts.
    fn is_live(&self, of: u32) -> bool {
        self.epoch.wrapping_sub(of) <= 1
    }

    /// Length of this epoch.
    #[cfg(test)]
    pub(super) fn length(&self) -> Duration {
        self.length
    }
}

/// A super-packet whose followers are expected.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// Fingerprint of flow and identifier.
    pub(super) key: u64,
    /// Epoch in which its first came.
    pub(super) epoch: u32,
    /// When its first came, microseconds modulo 2^32.
    pub(super) began_us: u32,
    /// Place of its source in the table of sources, and whose it was then.
    pub(super) source: u16,
    pub(super) owner: u16,
    pub(super) port: u16,
    /// Followers still expected; 0 for a free slot.
    pub(super) left: u8,
    /// Whether it was admitted without credit of its own.
    pub(super) newcomer: bool,
}

const _: () = assert!(size_of::<Entry>() == 24);

/// Reservations by fingerprint: two candidate buckets of four slots each, so at most eight probes. A fixed array: every live
/// entry stands for at least one reserved packet.
#[derive(Clone, Debug)]
pub(super) struct Table {
    buckets: Vec<[Entry; 4]>,
    /// Slots that were looked at for this packet: whoever asks for the next one sets it to zero.
    pub(super) probes: Cell<u32>,
}

/// A slot of the table.
pub(super) type Slot = (usize, usize);

impl Table {
    /// For at most `entries` at a time: at least twice as many slots.
    pub(super) fn new(entries: u16) -> Table {
        let buckets = (usize::from(entries) / 2).max(16).next_power_of_two();
        Table {
            buckets: vec![[Entry::default(); 4]; buckets],
            probes: Cell::new(0),
        }
    }

    fn probed(&self, slots: usize) {
        work::probes(slots);
        self.probes.set(self.probes.get() + slots as u32);
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<[Entry; 4]>()
    }

    /// The buckets in which a fingerprint may stand.
    pub(super) fn candidates(&self, key: u64) -> [usize; 2] {
        let mask = self.buckets.len() - 1;
        [key as usize & mask, (key >> 32) as usize & mask]
    }

    /// The live entry with this fingerprint.
    pub(super) fn find(&self, clock: &Clock, key: u64) -> Option<Slot> {
        for bucket in self.candidates(key) {
            for (at, entry) in self.buckets[bucket].iter().enumerate() {
                self.probed(1);
                if entry.left > 0 && entry.key == key && clock.is_live(entry.epoch) {
                    return Some((bucket, at));
                }
            }
        }
        None
    }

    pub(super) fn entry(&self, slot: Slot) -> &Entry {
        &self.buckets[slot.0][slot.1]
    }

    pub(super) fn entry_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.buckets[slot.0][slot.1]
    }

    /// A free slot for this fingerprint, in the emptier of its buckets; `None` if both are full.
    pub(super) fn vacancy(&self, clock: &Clock, key: u64) -> Option<Slot> {
        let mut best: Option<(usize, Slot)> = None;
        for bucket in self.candidates(key) {
            let free = |entry: &Entry| entry.left == 0 || !clock.is_live(entry.epoch);
            let slots = &self.buckets[bucket];
            self.probed(slots.len());
            let count = slots.iter().filter(|entry| free(entry)).count();
            if let Some(at) = slots.iter().position(free)
                && best.is_none_or(|(most, _)| count > most)
            {
                best = Some((count, (bucket, at)));
            }
        }
        best.map(|(_, slot)| slot)
    }

    /// Live entries.
    #[cfg(test)]
    pub(super) fn live<'a>(&'a self, clock: &'a Clock) -> impl Iterator<Item = &'a Entry> {
        let all = self.buckets.iter().flatten();
        all.filter(|entry| entry.left > 0 && clock.is_live(entry.epoch))
    }
}

const SECOND: Duration = Duration::from_secs(1);
