//! The receiver: counts what arrives, finds loss events, reports once per round-trip time and at once after a loss event.
//!
//! **Source.** RFC 5348 section 6.
//! **Deviations.** See [`super`]. The receive rate is measured over the longer interval that 6.2 (3) allows: back to the
//! last report that is a round-trip time old.

use super::reception::{self, Brought};
use super::{Config, Feedback, Variant, timestamp};
use crate::packet::{Ecn, Kind, Segment};
use crate::time::{Duration, Instant};

/// The receiving end of a stream.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    reception: Option<reception::Reception>,
    /// R_i: the sender's round-trip time as the newest packet announced it; zero: unknown.
    rtt: Duration,
    /// The round-trip time that the timer was set with.
    timer_rtt: Duration,
    /// Time sent and time of arrival of the newest packet.
    newest: (u32, Instant),
    /// When the feedback timer expires.
    report_at: Option<Instant>,
    /// The timer expired without a packet to report: the next one is reported at once.
    silent: bool,
    /// The last expiry, and bytes since.
    last: (Instant, u64),
    /// An earlier expiry, a round-trip time before the last or more, and bytes since.
    earlier: (Instant, u64),
    /// Packets since the last report.
    unreported: u64,
    /// The last measured rate, and the highest.
    rate: f64,
    highest_rate: f64,
    /// The last loss event rate that was computed.
    loss_event_rate: f64,
    outgoing: Option<Feedback>,
    received_packets: u64,
    received_bytes: u64,
}

/// What a receiver knows of its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reception {
    /// Packets that arrived, each counted once.
    pub packets: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Packets known to be lost.
    pub lost: u64,
    /// Loss events.
    pub loss_events: u64,
    /// The loss event rate as last computed.
    pub loss_event_rate: f64,
    /// Payload bytes per second as last measured.
    pub receive_rate: f64,
}

impl Receiver {
    /// A receiver that nothing has reached.
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            config: *config,
            reception: None,
            rtt: Duration::ZERO,
            timer_rtt: Duration::ZERO,
            newest: (0, Instant::ZERO),
            report_at: None,
            silent: false,
            last: (Instant::ZERO, 0),
            earlier: (Instant::ZERO, 0),
            unreported: 0,
            rate: 0.0,
            highest_rate: 0.0,
            loss_event_rate: 0.0,
            outgoing: None,
            received_packets: 0,
            received_bytes: 0,
        }
    }

    /// A packet arrives. Payload bytes that are new.
    pub fn on_data(&mut self, now: Instant, segment: &Segment) -> u64 {
        if segment.kind() != Kind::TfrcData {
            return 0;
        }
        let bytes = u64::from(segment.payload);
        let announced = Duration::from_micros(u64::from(segment.options[0]));
        let Some(reception) = &mut self.reception else {
            self.begin(now, segment, announced);
            return bytes;
        };
        let distance = segment.seq.0.wrapping_sub(reception.highest() as u32) as i32;
        let number = reception.highest().saturating_add_signed(i64::from(distance));
        let newest = number > reception.highest();
        let (config, rtt, highest_rate) = (
            &self.config,
            if newest { announced } else { self.rtt },
            self.highest_rate,
        );
        let before = reception.rate(now, rtt);
        // The rate so far, should there be no report to take it from.
        let so_far = rate(self.received_bytes, now.since(self.earlier.0).max(rtt));
        let first_interval = || {
            let seconds = rtt.as_secs_f64();
            if seconds <= 0.0 {
                return number as f64;
            }
            // RFC 5348 6.3.1: the rate before the loss was twice what the receiver got.
            let target = if highest_rate > 0.0 { highest_rate } else { so_far };
            1.0 / config.loss_event_rate(seconds, target)
        };
        let marked = config.ecn && segment.ecn() == Ecn::Ce;
        let brought = reception.on_packet(number, now, marked, rtt, first_interval);
        if brought == Brought::Nothing {
            return 0;
        }
        self.count(bytes);
        if newest {
            self.newest = (segment.tsval, now);
            self.rtt = announced;
        }
        if self.report_at.is_none() && !self.silent && !announced.is_zero() {
            // RFC 5348 6.3: until packets announce a round-trip time, each is reported; the timer begins with this one.
            (self.last, self.earlier) = ((now, 0), (now, 0));
            self.unreported = 1;
            self.arm(now);
            return bytes;
        }
        // RFC 5348 6.1 (2) and (3)
        let after = match (brought, &self.reception) {
            (Brought::LossEvent, Some(reception)) => reception.rate(now, rtt),
            _ => before,
        };
        if after > before || self.silent || self.rtt.is_zero() {
            self.report(now);
        }
        bytes
    }

    /// RFC 5348 6.3: the first packet.
    fn begin(&mut self, now: Instant, segment: &Segment, announced: Duration) {
        // Numbers are counted from 2^32, so that what lies before the first is above zero.
        let number = u64::from(segment.seq.0) + (1 << 32);
        let small = self.config.variant == Variant::SmallPackets;
        let discounting = self.config.history_discounting;
        self.reception = Some(reception::Reception::new(number, now, discounting, small));
        self.newest = (segment.tsval, now);
        self.rtt = announced;
        (self.last.0, self.earlier.0) = (now, now);
        self.count(u64::from(segment.payload));
        self.unreported = 0;
        self.outgoing = Some(self.feedback(now));
        self.arm(now);
    }

    fn count(&mut self, bytes: u64) {
        self.last.1 += bytes;
        self.earlier.1 += bytes;
        self.unreported += 1;
        self.received_packets += 1;
        self.received_bytes += bytes;
    }

    /// The feedback timer expires, or a loss event makes it (RFC 5348 6.2).
    fn report(&mut self, now: Instant) {
        if self.unreported == 0 {
            self.silent = true;
            self.report_at = None;
            return;
        }
        self.silent = false;
        self.unreported = 0;
        if let Some(reception) = &self.reception {
            self.loss_event_rate = reception.rate(now, self.rtt);
        }
        if now.since(self.last.0) >= self.timer_rtt {
            self.earlier = self.last;
        }
        if now > self.earlier.0 {
            self.rate = rate(self.earlier.1, now.since(self.earlier.0));
            self.highest_rate = self.highest_rate.max(self.rate);
        }
        self.last = (now, 0);
        self.outgoing = Some(self.feedback(now));
        self.arm(now);
    }

    fn arm(&mut self, now: Instant) {
        self.timer_rtt = self.rtt;
        self.report_at = (!self.rtt.is_zero()).then(|| now.saturating_add(self.rtt));
    }

    fn feedback(&self, now: Instant) -> Feedback {
        let delay = now.since(self.newest.1).as_micros();
        Feedback {
            timestamp: self.newest.0,
            delay_us: u32::try_from(delay).unwrap_or(u32::MAX),
            receive_rate: self.rate,
            loss_event_rate: self.loss_event_rate,
        }
    }

    /// Called at or after [`Receiver::poll_timeout`].
    pub fn on_timeout(&mut self, now: Instant) {
        if self.report_at.is_some_and(|at| at <= now) {
            self.report(now);
        }
    }

    /// The feedback packet to send, if there is one.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let mut feedback = self.outgoing.take()?;
        feedback.delay_us = self.feedback(now).delay_us;
        Some(feedback.write())
    }

    /// When [`Receiver::on_timeout`] is wanted.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.report_at
    }

    /// What is known of the stream.
    pub fn received(&self) -> Reception {
        Reception {
            packets: self.received_packets,
            bytes: self.received_bytes,
            lost: self.reception.as_ref().map_or(0, reception::Reception::lost),
            loss_events: self.reception.as_ref().map_or(0, reception::Reception::events),
            loss_event_rate: self.loss_event_rate,
            receive_rate: self.rate,
        }
    }

    /// Whether the packet sent at `at` is the newest that arrived, or an older one.
    pub fn has_reached(&self, at: Instant) -> bool {
        self.reception.is_some() && (self.newest.0.wrapping_sub(timestamp(at)) as i32) >= 0
    }
}

fn rate(bytes: u64, span: Duration) -> f64 {
    if span.is_zero() {
        return 0.0;
    }
    bytes as f64 / span.as_secs_f64()
}
