//! Two connections with a delay between them, stepped without a network: what the closed forms of endpoints share.
//!
//! At equal times arrivals come before timers.

use fleetfoot_core::packet::Segment;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Config, Connection, EstablishedState, WriteFlags};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::sync::Arc;

/// A sender and a receiver.
pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) sender: Connection,
    receiver: Connection,
    delay: Duration,
    /// Arrival, whether at the receiver, segment; in order of sending.
    wire: Vec<(Instant, bool, Segment)>,
    /// What the sender sent.
    pub(super) sent: Vec<Sent>,
    /// Offsets from here on are lost the first time; nothing is.
    pub(super) lost_from: u64,
    highest: u64,
}

/// A data segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Bytes of network and transport headers.
    pub(super) headers: u64,
}

impl Pair {
    /// Both established; the sender knows the RTT, without variation, and has a window of `window` bytes.
    pub(super) fn new(config: Config, rtt: Duration, window: u64, mss: u32) -> Pair {
        let state = EstablishedState {
            srtt: rtt,
            rttvar: Duration::ZERO,
            cwnd: Bytes(window),
            ssthresh: Bytes::MAX,
            mss,
            iss: SeqNumber(u32::MAX - 999),
            irs: SeqNumber(u32::MAX - 4),
            peer_window: Bytes(1 << 20),
        };
        let answering = EstablishedState {
            iss: state.irs,
            irs: state.iss,
            ..state
        };
        let config = Arc::new(config);
        Pair {
            now: Instant::ZERO,
            sender: Connection::established(Instant::ZERO, &config, state),
            receiver: Connection::established(Instant::ZERO, &config, answering),
            delay: Duration::from_nanos(rtt.as_nanos() / 2),
            wire: Vec::new(),
            sent: Vec::new(),
            lost_from: u64::MAX,
            highest: 0,
        }
    }

    /// An application writes.
    pub(super) fn write(&mut self, bytes: u64) {
        self.sender.write(self.now, Bytes(bytes), WriteFlags::default());
        self.drain();
    }

    /// Bytes that arrived in order.
    pub(super) fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Does the next thing; false if nothing is left.
    pub(super) fn step(&mut self) -> bool {
        let arrival = self.wire.iter().map(|(at, ..)| *at).min();
        let timers = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
        let Some(at) = timers.into_iter().chain([arrival]).flatten().min() else {
            return false;
        };
        self.now = self.now.max(at);
        let now = self.now;
        if let Some(index) = self.wire.iter().position(|(arrival, ..)| *arrival <= now) {
            let (_, forward, segment) = self.wire.remove(index);
            let end = if forward {
                &mut self.receiver
            } else {
                &mut self.sender
            };
            end.on_segment(now, &segment);
            while end.poll_accepted().is_some() {}
        } else {
            for end in [&mut self.sender, &mut self.receiver] {
                if end.poll_timeout().is_some_and(|at| at <= now) {
                    end.on_timeout(now);
                }
            }
        }
        self.drain();
        true
    }

    fn drain(&mut self) {
        let now = self.now;
        while let Some(transmit) = self.sender.poll_transmit(now) {
            let lost = transmit.start >= self.lost_from && transmit.end > self.highest;
            if transmit.segment.payload > 0 {
                self.sent.push(Sent {
                    at: now,
                    start: transmit.start,
                    end: transmit.end,
                    headers: u64::from(transmit.segment.overhead),
                });
                self.highest = self.highest.max(transmit.end);
            }
            if !lost {
                self.wire.push((now + self.delay, true, transmit.segment));
            }
        }
        self.receiver.read(now, Bytes::MAX);
        while let Some(transmit) = self.receiver.poll_transmit(now) {
            self.wire.push((now + self.delay, false, transmit.segment));
        }
        while self.sender.poll_event().is_some() || self.receiver.poll_event().is_some() {}
    }
}
