//! The sender: an allowed rate from feedback, and packets spaced by it.
//!
//! **Source.** RFC 5348 section 4, 8.2.1; RFC 4828 section 3.
//! **Deviations.** See [`super`].

use super::limit::ReceiveRates;
use super::{Config, Feedback, LONGEST_INTERVAL, timestamp};
use crate::packet::{Ecn, Flags, Kind, Segment};
use crate::seq::SeqNumber;
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// The sending end of a stream.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    created: Instant,
    /// X: allowed payload bytes per second.
    rate: f64,
    /// X_Bps: what the equation allowed last; infinite without loss.
    calculated: f64,
    /// W_init / R, which is also recover_rate of RFC 5348 4.4.
    initial_rate: f64,
    receive_rates: ReceiveRates,
    /// p.
    loss_event_rate: f64,
    rtt: Option<RoundTrip>,
    /// tld: when the rate last doubled in slow start.
    doubled_at: Instant,
    /// When the no-feedback timer expires; `None`: idle, and nothing would change.
    no_feedback_at: Option<Instant>,
    /// Nothing was sent since that timer was set.
    idle: bool,
    /// The newest timestamp that came back.
    echoed: Option<u32>,
    /// Bytes to send.
    queued: u64,
    /// When the oldest of them came, if nothing was queued before.
    ready_at: Instant,
    /// t_i: when the last packet left, or ought to have left.
    slot: Option<Instant>,
    limited: Limited,
    next: SeqNumber,
    last_sent: Instant,
    packets_sent: u64,
    bytes_sent: u64,
    feedbacks: u64,
    expiries: u64,
}

/// What is known of round-trip times, in seconds.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    /// R.
    smoothed: f64,
    /// R_sample.
    last: f64,
    /// R_sqmean.
    root_mean: f64,
    least: f64,
}

/// Whether the application kept the sender from using its rate (RFC 5348 8.2.1).
#[derive(Clone, Copy, Debug)]
struct Limited {
    /// An instant within what the next feedback covers at which it did not, and one later, if there were such.
    not_limited: [Instant; 2],
    /// t_new and t_next: the next feedback covers what was sent after the first and up to the second.
    covered: [Instant; 2],
}

/// What a sender knows, for traces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Info {
    /// X: allowed payload bytes per second.
    pub rate: f64,
    /// X_Bps: what the equation gave last, if there was loss.
    pub calculated: Option<f64>,
    /// The largest receive rate that limits it, if any.
    pub receive_rate: Option<f64>,
    /// p.
    pub loss_event_rate: f64,
    /// R.
    pub rtt: Option<Duration>,
    /// Smallest sample.
    pub min_rtt: Option<Duration>,
    /// s: payload bytes of a full packet.
    pub segment: u32,
    /// Time between packets now.
    pub interval: Duration,
    /// Packets sent.
    pub packets_sent: u64,
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Feedback packets taken.
    pub feedbacks: u64,
    /// Expiries of the no-feedback timer that were acted on.
    pub expiries: u64,
}

impl Sender {
    /// A sender that has nothing to send yet (RFC 5348 4.2).
    pub fn new(now: Instant, config: &Config) -> Sender {
        Sender {
            config: *config,
            created: now,
            rate: f64::from(config.segment()), // one packet per second
            calculated: f64::INFINITY,
            initial_rate: 0.0,
            receive_rates: ReceiveRates::unlimited(now),
            loss_event_rate: 0.0,
            rtt: None,
            doubled_at: now,
            no_feedback_at: None,
            idle: true,
            echoed: None,
            queued: 0,
            ready_at: now,
            slot: None,
            limited: Limited {
                not_limited: [now; 2],
                covered: [now; 2],
            },
            next: SeqNumber(0),
            last_sent: now,
            packets_sent: 0,
            bytes_sent: 0,
            feedbacks: 0,
            expiries: 0,
        }
    }

    /// The application has `bytes` more. They are counted, never held.
    pub fn write(&mut self, now: Instant, bytes: Bytes) {
        if self.queued == 0 {
            self.ready_at = now;
        }
        self.queued = self.queued.saturating_add(bytes.get());
    }

    /// The application gives up what is not sent.
    pub fn discard(&mut self) {
        self.queued = 0;
    }

    /// The next data packet, if one may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if self.queued == 0 {
            return None;
        }
        let slot = self.next_slot();
        if self.earliest(slot) > now {
            self.limited.mark(now);
            return None;
        }
        // RFC 5348 4.6, 8.3: time that could not be used because a timer came late is made up for, up to a round-trip time.
        let credit = Duration::from_secs_f64(self.rtt.map_or(0.0, |rtt| rtt.smoothed));
        self.slot = Some(slot.max(now - credit));
        let payload = self.queued.min(u64::from(self.config.segment()));
        self.queued -= payload;
        let mut segment = Segment {
            seq: self.next,
            tsval: timestamp(now),
            payload: payload as u32, // at most a packet
            flags: Flags::DF,
            ttl: 64,
            overhead: super::DATA_HEADERS,
            ..Segment::default()
        };
        segment.options[0] = self.rtt.map_or(0, |rtt| microseconds(rtt.smoothed).max(1));
        segment.set_kind(Kind::TfrcData);
        if self.config.ecn {
            segment.set_ecn(Ecn::Ect0);
        }
        self.next += 1;
        self.last_sent = now;
        self.packets_sent += 1;
        self.bytes_sent += payload;
        if self.no_feedback_at.is_none() {
            self.restart_timer(now);
        }
        self.idle = false;
        Some(segment)
    }

    /// When the next packet ought to leave: t_(i+1), but not before there was something to send.
    fn next_slot(&self) -> Instant {
        self.slot.map_or(self.ready_at, |slot| {
            slot.saturating_add(self.interval()).max(self.ready_at)
        })
    }

    /// A packet may leave t_delta before its time (RFC 5348 4.6).
    fn earliest(&self, slot: Instant) -> Instant {
        let rtt = self
            .rtt
            .map_or(Duration::MAX, |rtt| Duration::from_secs_f64(rtt.smoothed));
        let margin = self.interval().min(self.config.granularity).min(rtt);
        slot - Duration::from_nanos(margin.as_nanos() / 2)
    }

    /// t_ipi: time between two packets (RFC 5348 4.6).
    fn interval(&self) -> Duration {
        let seconds = f64::from(self.config.segment()) / self.instant_rate();
        Duration::from_secs_f64(seconds)
            .max(self.config.least_interval())
            .max(Duration::from_nanos(1))
    }

    /// X_inst: the allowed rate, less while round-trip times are longer than they were (RFC 5348 4.5).
    fn instant_rate(&self) -> f64 {
        match self.rtt {
            Some(rtt) if self.config.oscillation_prevention => {
                (self.rate * rtt.root_mean / libm::sqrt(rtt.last)).max(self.least_rate())
            }
            _ => self.rate,
        }
    }

    /// s / t_mbi.
    fn least_rate(&self) -> f64 {
        f64::from(self.config.segment()) / LONGEST_INTERVAL
    }

    /// Feedback arrives (RFC 5348 4.3). Says whether it was taken.
    pub fn on_feedback(&mut self, now: Instant, segment: &Segment) -> bool {
        if segment.kind() != Kind::TfrcFeedback || self.packets_sent == 0 {
            return false;
        }
        let feedback = Feedback::read(segment);
        let Some(sample) = self.sample(now, &feedback) else {
            return false;
        };
        self.feedbacks += 1;
        self.echoed = Some(feedback.timestamp);
        let worse = feedback.loss_event_rate > self.loss_event_rate;
        self.loss_event_rate = feedback.loss_event_rate;
        let data_limited = self.limited.on_feedback(now);
        let Some(known) = &mut self.rtt else {
            // RFC 5348 4.2: the first replaces step (4).
            self.rtt = Some(RoundTrip {
                smoothed: sample,
                last: sample,
                root_mean: libm::sqrt(sample),
                least: sample,
            });
            self.restart_timer(now);
            self.doubled_at = now;
            self.initial_rate = self.config.initial_window_bytes() / sample;
            self.rate = self.initial_rate.max(self.least_rate());
            self.receive_rates = ReceiveRates::unlimited(now);
            self.reschedule(now);
            return true;
        };
        known.smoothed = 0.9 * known.smoothed + 0.1 * sample; // (2)
        known.root_mean = 0.9 * known.root_mean + 0.1 * libm::sqrt(sample); // 4.5
        known.last = sample;
        known.least = known.least.min(sample);
        let rtt = known.smoothed;
        self.restart_timer(now); // (3), (6): the timeout is made of the rate so far
        let mut received = feedback.receive_rate;
        let limit = if data_limited && worse {
            self.receive_rates.halve();
            received *= 0.85;
            self.receive_rates.maximize(now, received);
            self.receive_rates.max()
        } else if data_limited {
            self.receive_rates.maximize(now, received);
            2.0 * self.receive_rates.max()
        } else {
            self.receive_rates
                .update(now, received, Duration::from_secs_f64(rtt));
            2.0 * self.receive_rates.max()
        };
        self.recalculate(now, rtt, limit);
        self.reschedule(now);
        true
    }

    /// The interval changed: a packet whose time would have been in the past leaves now, and no more than it.
    fn reschedule(&mut self, now: Instant) {
        let interval = self.interval();
        if let Some(slot) = &mut self.slot {
            *slot = (*slot).max(now - interval);
        }
    }

    /// The round-trip time sample of a report (s), if it can be one.
    fn sample(&self, now: Instant, feedback: &Feedback) -> Option<f64> {
        let elapsed = timestamp(now).wrapping_sub(feedback.timestamp);
        // It answers nothing that was sent, or something older than the last report.
        let longest = now.since(self.created).as_micros() + 1;
        if u64::from(elapsed) > longest || feedback.delay_us > elapsed {
            return None;
        }
        let age = |echoed: u32| timestamp(now).wrapping_sub(echoed);
        if self.echoed.is_some_and(|echoed| age(echoed) < elapsed) {
            return None;
        }
        Some(f64::from((elapsed - feedback.delay_us).max(1)) / 1e6)
    }

    /// Step (4), second half.
    fn recalculate(&mut self, now: Instant, rtt: f64, limit: f64) {
        if self.loss_event_rate > 0.0 {
            self.calculated = self.config.allowed(rtt, self.loss_event_rate);
            self.rate = self.calculated.min(limit).max(self.least_rate());
        } else if now.since(self.doubled_at) >= Duration::from_secs_f64(rtt) {
            self.rate = (2.0 * self.rate)
                .min(limit)
                .max(self.initial_rate)
                .max(self.least_rate());
            self.doubled_at = now;
        }
    }

    /// Sets the no-feedback timer: max(4 R, 2 s / X).
    fn restart_timer(&mut self, now: Instant) {
        let two_packets = 2.0 * f64::from(self.config.segment()) / self.rate;
        let timeout = self
            .rtt
            .map_or(two_packets, |rtt| (4.0 * rtt.smoothed).max(two_packets));
        self.no_feedback_at = Some(now.saturating_add(Duration::from_secs_f64(timeout)));
        self.idle = true;
    }

    /// Called at or after [`Sender::poll_timeout`].
    pub fn on_timeout(&mut self, now: Instant) {
        if self.no_feedback_at.is_some_and(|at| at <= now) {
            self.on_no_feedback(now);
        }
    }

    /// The no-feedback timer expires (RFC 5348 4.4).
    fn on_no_feedback(&mut self, now: Instant) {
        let received = self.receive_rates.max();
        let lossy = self.loss_event_rate > 0.0;
        let Some(RoundTrip { smoothed: rtt, .. }) = self.rtt else {
            if self.idle {
                self.no_feedback_at = None;
                return;
            }
            self.expiries += 1;
            self.rate = (self.rate / 2.0).max(self.least_rate());
            self.restart_timer(now);
            return;
        };
        let slow = if lossy {
            received < self.initial_rate
        } else {
            self.rate < 2.0 * self.initial_rate
        };
        if slow && self.idle {
            // Nothing changes until something is sent.
            self.no_feedback_at = None;
            return;
        }
        self.expiries += 1;
        if !lossy {
            self.rate = (self.rate / 2.0).max(self.least_rate());
        } else if self.calculated > 2.0 * received {
            self.limit_to(now, rtt, received); // what the receiver got limited the rate
        } else {
            self.limit_to(now, rtt, self.calculated / 2.0);
        }
        self.restart_timer(now);
    }

    /// Update_Limits of RFC 5348 4.4.
    fn limit_to(&mut self, now: Instant, rtt: f64, limit: f64) {
        let limit = limit.max(self.least_rate());
        self.receive_rates = ReceiveRates::only(now, limit / 2.0);
        self.recalculate(now, rtt, limit);
    }

    /// When [`Sender::on_timeout`] or [`Sender::poll_transmit`] is wanted.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let packet = (self.queued > 0).then(|| self.earliest(self.next_slot()));
        match (packet, self.no_feedback_at) {
            (Some(packet), Some(timer)) => Some(packet.min(timer)),
            (packet, timer) => packet.or(timer),
        }
    }

    /// Bytes that the application has given and that are not sent.
    pub fn queued(&self) -> Bytes {
        Bytes(self.queued)
    }

    /// When the last packet was sent.
    pub fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// Whether feedback has reported the last packet that was sent, or of a later one.
    pub fn is_reported(&self) -> bool {
        let last = timestamp(self.last_sent);
        self.echoed
            .is_some_and(|echoed| self.packets_sent > 0 && echoed.wrapping_sub(last) as i32 >= 0)
    }

    /// X: allowed payload bytes per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// State for traces.
    pub fn info(&self) -> Info {
        let finite = |rate: f64| rate.is_finite().then_some(rate);
        Info {
            rate: self.rate,
            calculated: finite(self.calculated),
            receive_rate: finite(self.receive_rates.max()),
            loss_event_rate: self.loss_event_rate,
            rtt: self.rtt.map(|rtt| Duration::from_secs_f64(rtt.smoothed)),
            min_rtt: self.rtt.map(|rtt| Duration::from_secs_f64(rtt.least)),
            segment: self.config.segment(),
            interval: self.interval(),
            packets_sent: self.packets_sent,
            bytes_sent: self.bytes_sent,
            feedbacks: self.feedbacks,
            expiries: self.expiries,
        }
    }
}

impl Limited {
    /// The sender holds data back at `now`.
    fn mark(&mut self, now: Instant) {
        let ([first, second], [new, next]) = (&mut self.not_limited, self.covered);
        if now > next && *second <= next {
            *second = now;
        } else if now <= next && *first <= new {
            *first = now;
        }
    }

    /// Feedback arrives; whether all of the interval that it covers was data-limited.
    fn on_feedback(&mut self, now: Instant) -> bool {
        let ([first, second], [new, next]) = (self.not_limited, self.covered);
        self.covered = [next, now];
        self.not_limited = [second, next];
        !(new < first && first <= next)
    }
}

/// Whole microseconds of a time in seconds, as a packet carries them.
fn microseconds(seconds: f64) -> u32 {
    libm::round(seconds * 1e6) as u32 // saturates
}
