//! Credit of sources and of ports, in eighths of a packet, and the filter of super-packets that were denied.

use super::super::work;
use super::generations::Held;
use crate::flow::HostId;
use crate::time::{Duration, Instant};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

/// What a redeemed follower, or a member that went as a regular packet, earns: one eighth of a packet. All credit is counted
/// in this unit.
pub(super) const GAIN: u32 = 1;

/// Units of credit per packet.
pub(super) const PACKET: u32 = 8;

/// A source with its credit and what is reserved for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source {
    host: u32,
    /// Eighths of a packet.
    pub(super) credit: u16,
    /// Changes when the slot is given to another host; 0 if it never was used.
    pub(super) owner: u16,
    pub(super) held: Held,
}

const _: () = assert!(size_of::<Source>() == 16);

#[cfg(test)]
impl Source {
    pub(super) fn host(&self) -> u32 {
        self.host
    }
}

/// Sources in buckets of four, one cache line each; a host has two candidate buckets. A new host takes the slot of the one
/// with the least credit and starts without any.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    buckets: Vec<[Source; 4]>,
    most: u16,
    /// Slots that were looked at for this packet: whoever asks for the next one sets it to zero.
    pub(super) probes: Cell<u32>,
}

impl Sources {
    /// At least `slots`, a power of two; credit saturates at `most` packets.
    pub(super) fn new(slots: usize, most: u32) -> Sources {
        Sources {
            buckets: vec![[Source::default(); 4]; (slots / 4).max(1).next_power_of_two()],
            most: (most * PACKET).min(u32::from(u16::MAX)) as u16,
            probes: Cell::new(0),
        }
    }

    fn probed(&self) {
        work::probes(1);
        self.probes.set(self.probes.get() + 1);
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<[Source; 4]>()
    }

    /// The eight places of a host, whose keyed hash this is. Places are numbers below 65536.
    fn places(&self, hash: u64) -> impl Iterator<Item = u16> + use<> {
        let mask = self.buckets.len() as u64 - 1;
        let buckets = [hash & mask, hash >> 32 & mask];
        (0..8).map(move |n: usize| (buckets[n / 4] * 4) as u16 + n as u16 % 4)
    }

    pub(super) fn at(&self, place: u16) -> &Source {
        &self.buckets[usize::from(place / 4)][usize::from(place % 4)]
    }

    pub(super) fn at_mut(&mut self, place: u16) -> &mut Source {
        &mut self.buckets[usize::from(place / 4)][usize::from(place % 4)]
    }

    /// Where `host` is.
    pub(super) fn find(&self, host: HostId, hash: u64) -> Option<u16> {
        self.places(hash).find(|&place| {
            self.probed();
            let source = self.at(place);
            source.host == host.0 && source.owner != 0
        })
    }

    /// Where `host` is from now on.
    pub(super) fn find_or_insert(&mut self, host: HostId, hash: u64) -> u16 {
        if let Some(place) = self.find(host, hash) {
            return place;
        }
        let worth = |&place: &u16| {
            self.probed();
            let source = self.at(place);
            (source.owner != 0, source.credit)
        };
        let place = self.places(hash).min_by_key(worth).unwrap_or(0);
        let source = self.at_mut(place);
        *source = Source {
            host: host.0,
            owner: source.owner.checked_add(1).unwrap_or(1),
            ..Source::default()
        };
        place
    }

    /// Adds credit, up to the most.
    pub(super) fn earn(&mut self, place: u16, units: u32) {
        let most = self.most;
        let source = self.at_mut(place);
        source.credit = (u32::from(source.credit) + units).min(u32::from(most)) as u16;
    }

    /// Every slot in use.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = (u16, &Source)> {
        let all = self.buckets.iter().flatten().enumerate();
        all.filter(|(_, source)| source.owner != 0)
            .map(|(place, source)| (place as u16, source))
    }
}

/// Credit of the links by which packets come in; it grows by itself.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    /// Credit in eighths of a packet, and up to when growth was added. Indexed by ingress, grown on demand.
    ports: Vec<(u32, Instant)>,
    most: u32,
    /// Time in which one eighth grows; `None` if nothing grows.
    growth: Option<Duration>,
}

impl Ports {
    /// Credit saturates at `most` packets and grows from nothing to that in `refill`.
    pub(super) fn new(most: u32, refill: Option<Duration>) -> Ports {
        let most = most * PACKET;
        let step =
            |refill: Duration| Duration::from_nanos((refill.as_nanos() / u64::from(most.max(1))).max(1));
        Ports {
            ports: Vec::new(),
            most,
            growth: refill.map(step),
        }
    }

    /// Links that packets have come by.
    pub(super) fn seen(&self) -> usize {
        self.ports.len()
    }

    pub(super) const BYTES: usize = size_of::<(u32, Instant)>();

    /// The credit of `port` at `now`. A port that was never seen has all of it.
    pub(super) fn credit(&mut self, now: Instant, port: u16) -> &mut u32 {
        let at = usize::from(port);
        if at >= self.ports.len() {
            self.ports.resize(at + 1, (self.most, now));
        }
        let (credit, since) = &mut self.ports[at];
        if let Some(growth) = self.growth {
            let grown = now.since(*since).as_nanos() / growth.as_nanos();
            let missing = u64::from(self.most - *credit);
            if grown >= missing {
                *credit = self.most;
                *since = now.max(*since);
            } else {
                *credit += grown as u32;
                *since = since.saturating_add(Duration::from_nanos(grown * growth.as_nanos()));
            }
        }
        credit
    }

    /// Adds credit, up to the most.
    pub(super) fn earn(&mut self, now: Instant, port: u16, units: u32) {
        let most = self.most;
        let credit = self.credit(now, port);
        *credit = (*credit + units).min(most);
    }
}

/// Bits of the filter in one generation.
const BITS: usize = 4096;

/// Bits set for each super-packet.
const PROBES: u32 = 4;

/// Remembers which super-packets were denied, so that their followers are dropped too. Two generations; false positives drop
/// followers of super-packets that were downgraded, as the report's rule does with all of them.
#[derive(Clone, Debug)]
pub(super) struct Denied {
    epoch: u32,
    current: [u64; BITS / 64],
    old: [u64; BITS / 64],
}

impl Denied {
    pub(super) const EMPTY: Denied = Denied {
        epoch: 0,
        current: [0; BITS / 64],
        old: [0; BITS / 64],
    };

    /// 64 words are turned at the end of an epoch, whatever happened in it.
    fn settle(&mut self, epoch: u32) {
        match epoch.wrapping_sub(self.epoch) {
            0 => return,
            1 => (self.old, self.current) = (self.current, [0; BITS / 64]),
            _ => (self.old, self.current) = ([0; BITS / 64], [0; BITS / 64]),
        }
        self.epoch = epoch;
    }

    fn bits(key: u64) -> impl Iterator<Item = (usize, u64)> {
        (0..PROBES).map(move |probe| {
            let bit = (key >> (12 * probe + 8)) as usize % BITS;
            (bit / 64, 1 << (bit % 64))
        })
    }

    pub(super) fn insert(&mut self, epoch: u32, key: u64) {
        self.settle(epoch);
        for (word, bit) in Denied::bits(key) {
            self.current[word] |= bit;
        }
    }

    pub(super) fn contains(&mut self, epoch: u32, key: u64) -> bool {
        self.settle(epoch);
        let within = |words: &[u64; BITS / 64]| Denied::bits(key).all(|(word, bit)| words[word] & bit != 0);
        within(&self.current) || within(&self.old)
    }

    /// Sets every bit of this generation.
    #[cfg(test)]
    pub(super) fn saturate(&mut self, epoch: u32) {
        self.settle(epoch);
        self.current = [u64::MAX; BITS / 64];
    }
}
