//! TFRC: a transport whose rate follows the TCP throughput equation, for streams that want it smooth.
//!
//! The [`Sender`] spaces packets by its allowed rate; the [`Receiver`] finds loss events and reports their rate, what
//! arrives per second and a timestamp once per round-trip time; the sender puts both into the equation. Nothing is
//! retransmitted: a stream ends with its last packet, whether or not all arrived. Both machines obey the convention of
//! this crate (time first, `on_*`, `poll_*`); they allocate nothing.
//!
//! [`equation`] has the formula and its inverse, [`history`] the loss intervals, `reception` what became of every packet.
//!
//! **Source.** RFC 5348; RFC 4828 for [`Variant::SmallPackets`].
//! **Deviations.**
//! - Sizes are payload bytes (RFC 5348 4.1 leaves open what s counts). A sender sends full packets but for the last, so s is
//!   that of the configuration, not an average.
//! - Small packets: the factor for headers is applied to what the equation gives and to the initial rate, so that the
//!   allowed rate and the reported receive rate both count payload.
//! - The sender counts an instant as not data-limited (8.2.1) when it holds back data that the application has given. That
//!   it has "sent all it is allowed to send" is true after every paced packet.
//! - Feedback names the newest packet that arrived, not the last one; feedback older than what is known is ignored.
//! - Idle senders and receivers have no timers: what those would do is done, or changes nothing, before the next packet.
//!
//! **Compared** with ns-2.35's Agent/TFRC under random loss of 0.1, 1 and 5 %: the same packets per second within 2 % where ns-2's t_RTO
//! is made 4 R. As it comes it has a TCP's timer in ticks of 100 ms, which is 3 R at a round-trip time of 100 ms and lets it send a
//! tenth more at 5 % (`crates/sim/tests/all/tfrc.rs`). That t_RTO needs no option here.
//!
//! **Packets.** Over UDP, in network order; times in microseconds. Data: packet number, time sent, the sender's round-trip
//! time (0: none yet), 4 bytes each, then payload; 40 bytes of headers with IPv4, as TCP has. Feedback: the time that the
//! newest data packet carried, how long ago it came, receive rate (bytes per second), loss event rate (as a fraction of 2^32);
//! 4 bytes each, 44 bytes in all. In a [`Segment`] they stand in `seq`, `tsval`, `options[0]` and in `tsecr`,
//! `options[0..3]`.
//!
//! | parameter | default | from |
//! | --- | --- | --- |
//! | `packet` | 1500 B | as a TCP's full packet |
//! | `history_discounting` | on | RFC 5348 5.5 |
//! | `oscillation_prevention` | on | RFC 5348 4.5 |
//! | `initial_window` | min(4 s, max(2 s, 4380 B)) | RFC 5348 4.2 |
//! | `granularity` | 0 | RFC 5348 4.6 (t_gran); an exact clock |
//! | `timeout_floor` | 0 | RFC 5348 3.1 (t_RTO = 4 R; at least 1 s is allowed) |

pub mod equation;
pub mod history;
mod limit;
mod receiver;
mod reception;
mod sender;

pub use receiver::{Receiver, Reception};
pub use sender::{Info, Sender};

use crate::packet::{Flags, Kind, Segment};
use crate::time::{Duration, Instant};
use serde::Serialize;

/// What both ends agree on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Layer-3 bytes of a full data packet, above [`DATA_HEADERS`].
    pub packet: u32,
    /// Which rules.
    pub variant: Variant,
    /// After a long time without loss, older loss intervals count less.
    pub history_discounting: bool,
    /// The rate follows short-term changes of the round-trip time, so that queues do not swing.
    pub oscillation_prevention: bool,
    /// Packets in the first round-trip time after the first feedback; `None`: as RFC 5348.
    pub initial_window: Option<u32>,
    /// How exact the driver's timers are: packets may leave up to half of it early.
    pub granularity: Duration,
    /// t_RTO in the equation is at least this.
    pub timeout_floor: Duration,
    /// Data packets are ECN-capable, and marks count as losses.
    pub ecn: bool,
}

/// Which rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Variant {
    /// RFC 5348.
    Standard,
    /// RFC 4828: the equation is for packets of 1460 bytes, and at most a hundred packets leave per second.
    SmallPackets,
}

impl Variant {
    /// Their names in scenarios.
    pub const NAMES: &'static [&'static str] = &["standard", "small-packets"];
}

impl Default for Config {
    fn default() -> Config {
        Config {
            packet: 1500,
            variant: Variant::Standard,
            history_discounting: true,
            oscillation_prevention: true,
            initial_window: None,
            granularity: Duration::ZERO,
            timeout_floor: Duration::ZERO,
            ecn: false,
        }
    }
}

impl Config {
    /// s: payload bytes of a full packet, at least 1.
    pub fn segment(&self) -> u32 {
        self.packet.saturating_sub(u32::from(DATA_HEADERS)).max(1)
    }

    /// The packet size that the equation is for.
    fn equation_segment(&self) -> f64 {
        match self.variant {
            Variant::Standard => f64::from(self.segment()),
            Variant::SmallPackets => NOMINAL_SEGMENT, // RFC 4828 section 3
        }
    }

    /// Which part of the equation's rate is left for payload.
    fn payload_share(&self) -> f64 {
        let segment = f64::from(self.segment());
        match self.variant {
            Variant::Standard => 1.0,
            Variant::SmallPackets => segment / (segment + HEADER_SIZE), // RFC 4828 section 3
        }
    }

    /// X_Bps: payload bytes per second at loss event rate `p` and round-trip time `rtt` (s).
    pub fn allowed(&self, rtt: f64, p: f64) -> f64 {
        self.payload_share() * equation::throughput(self.equation_segment(), rtt, self.timeout(rtt), p)
    }

    /// The loss event rate at which `rate` payload bytes per second are allowed.
    fn loss_event_rate(&self, rtt: f64, rate: f64) -> f64 {
        let rate = rate / self.payload_share();
        equation::loss_event_rate(self.equation_segment(), rtt, self.timeout(rtt), rate)
    }

    /// t_RTO in seconds (RFC 5348 3.1).
    fn timeout(&self, rtt: f64) -> f64 {
        (4.0 * rtt).max(self.timeout_floor.as_secs_f64())
    }

    /// W_init: payload bytes in the first round-trip time (RFC 5348 4.2).
    fn initial_window_bytes(&self) -> f64 {
        let segment = self.equation_segment();
        let window = match self.initial_window {
            Some(packets) => f64::from(packets) * segment,
            None => (4.0 * segment).min((2.0 * segment).max(4380.0)),
        };
        window * self.payload_share()
    }

    /// Least time between packets.
    fn least_interval(&self) -> Duration {
        match self.variant {
            Variant::Standard => Duration::ZERO,
            Variant::SmallPackets => Duration::from_millis(10), // RFC 4828 section 3
        }
    }
}

/// What feedback says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// The timestamp of the newest data packet: t_recvdata, in microseconds.
    pub timestamp: u32,
    /// How long before it arrived: t_delay, in microseconds.
    pub delay_us: u32,
    /// X_recv: payload bytes per second.
    pub receive_rate: f64,
    /// p.
    pub loss_event_rate: f64,
}

impl Feedback {
    /// Reads a feedback packet.
    pub fn read(segment: &Segment) -> Feedback {
        Feedback {
            timestamp: segment.tsecr,
            delay_us: segment.options[0],
            receive_rate: f64::from(segment.options[1]),
            loss_event_rate: f64::from(segment.options[2]) / TWO_TO_32,
        }
    }

    /// The feedback packet.
    pub fn write(&self) -> Segment {
        // Conversions of floating-point numbers saturate. A rate above zero stays above zero.
        let p = libm::ceil(self.loss_event_rate * TWO_TO_32) as u32;
        let mut segment = Segment {
            tsecr: self.timestamp,
            flags: Flags::DF,
            ttl: 64,
            overhead: FEEDBACK_HEADERS,
            ..Segment::default()
        };
        segment.options[0] = self.delay_us;
        segment.options[1] = libm::round(self.receive_rate) as u32;
        segment.options[2] = p;
        segment.set_kind(Kind::TfrcFeedback);
        segment
    }
}

/// A timestamp: microseconds, modulo 2^32.
fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

/// Headers of a data packet: IPv4, UDP, number, timestamp, round-trip time.
pub const DATA_HEADERS: u8 = 20 + 8 + 12;

/// Headers of a feedback packet, which has no payload.
pub const FEEDBACK_HEADERS: u8 = 20 + 8 + 16;

/// The packet size that small packets are compared with (RFC 4828 section 3).
const NOMINAL_SEGMENT: f64 = 1460.0;

/// Header bytes that small packets pay for (RFC 4828 section 3).
const HEADER_SIZE: f64 = 40.0;

/// t_mbi in seconds: the least rate is a packet in this time (RFC 5348 4.3).
const LONGEST_INTERVAL: f64 = 64.0;

const TWO_TO_32: f64 = 4_294_967_296.0;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
