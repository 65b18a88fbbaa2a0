//! QUIC connections in virtual time: two endpoints of `quinn-proto` per connection, whose clock and randomness are ours.
//!
//! Their datagrams are real. The packets of the simulator carry no payload, so a datagram waits in [`Datagrams`] under a number
//! that its packet carries, until the packet arrives or is lost. [`pair`] holds the two ends of a connection, [`session`] their
//! handshake, [`token`] what a client brings that comes back, [`controller`] their congestion controls.
//!
//! **Determinism.** What quinn takes from outside is given to it here: the time of every call (the one [`std::time::Instant`] that is
//! read is the zero of a connection's clock, and only differences count), the seed of each endpoint, connection identifiers of
//! both ends and the first one that a client invents, the keys of reset tokens, the time of day, and the handshake, which is ours.
//! The controller `quinn-bbr` draws the phase of its gain cycle from the operating system and cannot be seeded; what it draws decides its pacing rate only,
//! which quinn does not use (a test holds its windows to that).
//!
//! **Source.** RFC 9000, 9001, 9002 as quinn-proto 0.11.19 implements them, with its defaults unless the scenario says
//! otherwise: pacing at 1.25 windows per round-trip time, an acknowledgment for every second packet, up to ten datagrams a call,
//! datagrams of 1200 bytes until discovery has found more, 100 streams.
//! **Deviations.** No migration, no Retry, no NEW_TOKEN frames; each connection has endpoints of its own.

use bytes::BytesMut;
use fleetfoot_core::time::Instant;
use std::time::{Duration as Span, Instant as Moment};

mod controller;
mod pair;
mod session;
mod token;

pub(crate) use pair::{Heard, Pair, Prepared};

/// Times of the simulator as those of the standard library, which quinn takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: Moment,
}

impl Clock {
    /// A clock that begins somewhere.
    pub(crate) fn new() -> Clock {
        Clock { zero: Moment::now() }
    }

    /// This time as quinn takes it.
    pub(crate) fn moment_of(self, time: Instant) -> Moment {
        self.zero + Span::from_nanos(time.as_nanos())
    }

    /// The time that quinn names; one before the beginning is the beginning.
    pub(crate) fn time_of(self, moment: Moment) -> Instant {
        Instant::from_nanos(moment.saturating_duration_since(self.zero).as_nanos() as u64)
    }
}

/// Datagrams on their way, by number. Numbers are used again.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    held: Vec<Held>,
    free: Vec<u32>,
}

/// A datagram, and how many packets carry it.
#[derive(Debug, Default)]
struct Held {
    bytes: BytesMut,
    packets: u32,
}

impl Datagrams {
    /// Keeps a datagram; its number.
    pub(crate) fn insert(&mut self, bytes: &[u8]) -> u32 {
        let held = Held {
            bytes: BytesMut::from(bytes),
            packets: 1,
        };
        if let Some(number) = self.free.pop() {
            self.held[number as usize] = held;
            return number;
        }
        self.held.push(held);
        (self.held.len() - 1) as u32
    }

    /// A second packet carries it.
    pub(crate) fn double(&mut self, number: u32) {
        self.held[number as usize].packets += 1;
    }

    /// A packet that carries it is there, or lost.
    pub(crate) fn take(&mut self, number: u32) -> BytesMut {
        let held = &mut self.held[number as usize];
        held.packets -= 1;
        if held.packets > 0 {
            return held.bytes.clone();
        }
        self.free.push(number);
        std::mem::take(&mut held.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_kept_until_its_last_packet_is_gone() {
        let mut datagrams = Datagrams::default();
        let (one, other) = (datagrams.insert(b"one"), datagrams.insert(b"other"));
        datagrams.double(one);
        assert_eq!(datagrams.take(one), &b"one"[..]);
        assert_eq!(datagrams.take(one), &b"one"[..]);
        assert_eq!(datagrams.insert(b"next"), one);
        assert_eq!(datagrams.take(other), &b"other"[..]);
        assert_eq!(datagrams.take(one), &b"next"[..]);
    }

    #[test]
    fn times_come_back_as_they_went() {
        let clock = Clock::new();
        for nanos in [0, 1, 999_999_999, 86_400_000_000_001] {
            let time = Instant::from_nanos(nanos);
            assert_eq!(clock.time_of(clock.moment_of(time)), time);
        }
    }
}
