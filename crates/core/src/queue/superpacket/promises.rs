//! What a queue has promised: one entry per admitted super-packet, or a Bloom filter and one counter per host.

use super::bloom::Bloom;
use super::epoch::Turn;
use super::table::Table;
use crate::time::{Duration, Instant};

/// Reservations of two generations.
#[derive(Clone, Debug)]
pub(super) struct Promises {
    state: State,
    /// Packets promised in the current generation, at `current`, and in the old one, at the other index.
    reserved: [u32; 2],
    current: usize,
}

#[derive(Clone, Debug)]
enum State {
    /// Packets left per super-packet.
    Exact([Table; 2]),
    /// Which super-packets were admitted, and packets left per host.
    Filter { admitted: [Bloom; 2], hosts: [Table; 2] },
}

/// Who a packet belongs to: fingerprints of its super-packet and of its host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) super_packet: u64,
    /// Used by the filter only.
    pub(super) host: u64,
}

/// What redeeming did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redeemed {
    /// The packet has a reservation; the time is that since the first packet, if it is known.
    One(Option<Duration>),
    /// There is no reservation.
    Nothing,
}

/// Times are kept in units of 2^10 ns in 24 bits: they repeat after 17 s, more than two of the longest epochs.
const TIME_SHIFT: u32 = 10;
const TIME_MASK: u32 = 0xff_ffff;

impl Promises {
    /// One entry per super-packet, at most `capacity` in each generation.
    pub(super) fn exact(capacity: u32) -> Promises {
        Promises::new(State::Exact([Table::new(capacity), Table::new(capacity)]))
    }

    /// The filter `bloom`, and at most `capacity` hosts in each generation.
    pub(super) fn filter(bloom: &Bloom, capacity: u32) -> Promises {
        Promises::new(State::Filter {
            admitted: [bloom.clone(), bloom.clone()],
            hosts: [Table::new(capacity), Table::new(capacity)],
        })
    }

    fn new(state: State) -> Promises {
        Promises {
            state,
            reserved: [0; 2],
            current: 0,
        }
    }

    /// R: packets promised and not yet seen.
    #[inline]
    pub(super) fn reserved(&self) -> u32 {
        self.reserved[0] + self.reserved[1]
    }

    /// Room that was promised in the current epoch.
    pub(super) fn reserved_lately(&self) -> u32 {
        self.reserved[self.current]
    }

    pub(super) fn memory(&self) -> usize {
        match &self.state {
            State::Exact(tables) => tables.iter().map(Table::memory).sum(),
            State::Filter { admitted, hosts } => {
                admitted.iter().map(Bloom::memory).sum::<usize>()
                    + hosts.iter().map(Table::memory).sum::<usize>()
            }
        }
    }

    /// Ends generations; returns how many entries ended with them.
    pub(super) fn turn(&mut self, turn: Turn) -> u32 {
        match turn {
            Turn::None => 0,
            Turn::One => {
                self.current ^= 1;
                self.end(self.current)
            }
            Turn::Both => self.end(0) + self.end(1),
        }
    }

    fn end(&mut self, generation: usize) -> u32 {
        self.reserved[generation] = 0;
        let table = match &mut self.state {
            State::Exact(tables) => &mut tables[generation],
            State::Filter { admitted, hosts } => {
                admitted[generation].clear();
                &mut hosts[generation]
            }
        };
        let ended = table.len();
        table.clear();
        ended
    }

    /// Ends the reservation of a super-packet whose first packet comes again; whether there was one. The filter does not know.
    pub(super) fn release(&mut self, keys: Keys) -> bool {
        let State::Exact(tables) = &mut self.state else {
            return false;
        };
        let mut found = false;
        for (table, reserved) in tables.iter_mut().zip(&mut self.reserved) {
            if let Some(place) = table.find(keys.super_packet) {
                *reserved -= left(table.value(place));
                table.remove(place);
                found = true;
            }
        }
        found
    }

    /// Promises room for `more` packets, at least 1, of a super-packet that holds no reservation. Whether there was an entry.
    pub(super) fn admit(&mut self, now: Instant, keys: Keys, more: u32) -> bool {
        let current = self.current;
        let entered = match &mut self.state {
            State::Exact(tables) => tables[current].insert(keys.super_packet, ticks(now) << 8 | more & 0xff),
            State::Filter { admitted, hosts } => {
                let hosts = &mut hosts[current];
                let entered = match hosts.find(keys.host) {
                    Some(place) => {
                        hosts.set(place, hosts.value(place) + more);
                        true
                    }
                    None => hosts.insert(keys.host, more),
                };
                if entered {
                    admitted[current].insert(keys.super_packet);
                }
                entered
            }
        };
        if entered {
            self.reserved[current] += more;
        }
        entered
    }

    /// A later packet came; `last` gives back what its super-packet still holds. The filter can give back only its own.
    #[inline]
    pub(super) fn redeem(&mut self, now: Instant, keys: Keys, last: bool) -> Redeemed {
        for generation in [self.current, self.current ^ 1] {
            let (table, key) = match &mut self.state {
                State::Exact(tables) => (&mut tables[generation], keys.super_packet),
                State::Filter { admitted, hosts } => {
                    if !admitted[generation].contains(keys.super_packet) {
                        continue;
                    }
                    let hosts = &mut hosts[generation];
                    if let Some(place) = hosts.find(keys.host) {
                        self.reserved[generation] -= 1;
                        match hosts.value(place) {
                            1 => hosts.remove(place),
                            left => hosts.set(place, left - 1),
                        }
                        return Redeemed::One(None);
                    }
                    continue;
                }
            };
            let Some(place) = table.find(key) else { continue };
            let value = table.value(place);
            let held = left(value);
            if last || held == 1 {
                self.reserved[generation] -= held;
                table.remove(place);
            } else {
                self.reserved[generation] -= 1;
                table.set(place, value - 1);
            }
            let gap = ticks(now).wrapping_sub(value >> 8) & TIME_MASK;
            return Redeemed::One(Some(Duration::from_nanos((u64::from(gap) + 1) << TIME_SHIFT)));
        }
        Redeemed::Nothing
    }

    /// Entries of both generations.
    #[cfg(test)]
    pub(super) fn entries(&self) -> u32 {
        match &self.state {
            State::Exact(tables) | State::Filter { hosts: tables, .. } => tables.iter().map(Table::len).sum(),
        }
    }

    /// I1 (docs/design/super-packets.md#i1): each counter is the sum of its table, and every entry holds at least one packet.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let (tables, whole) = match &self.state {
            State::Exact(tables) => (tables, false),
            State::Filter { hosts, .. } => (hosts, true),
        };
        for (table, reserved) in tables.iter().zip(self.reserved) {
            let mut sum = 0;
            for value in table.values() {
                let held = if whole { value } else { left(value) };
                assert!(held >= 1, "I2: an entry holds nothing");
                sum += held;
            }
            assert_eq!(sum, reserved, "I1: R is the sum of its entries");
        }
    }
}

#[inline]
const fn left(value: u32) -> u32 {
    value & 0xff
}

#[inline]
const fn ticks(now: Instant) -> u32 {
    (now.as_nanos() >> TIME_SHIFT) as u32 & TIME_MASK
}
