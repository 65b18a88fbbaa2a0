//! Redundant data bundling: a new segment of a thin stream carries unacknowledged older ones along.
//!
//! A lost small segment is repaired by the next packet, one inter-transmission time later, instead of by a retransmission
//! after a round trip and more. There are never more packets, only larger ones, and the receiver needs to know nothing.
//! Because a repaired loss is hidden from loss detection, acknowledgments are searched for it and the window is reduced.
//!
//! **Source.** Opstad, Markussen, Ahmed, Petlund, Griwodz, Halvorsen, "Latency and fairness trade-off for thin streams using
//! redundant data bundling in TCP", LCN 2015; Opstad, MSc thesis, Oslo 2015; the patches offered to Linux in March 2016.
//! Rate bound: RFC 5348 3.1, RFC 4828 4.1 and 4.3.
//! **Deviations.** The walk stops at segments that are SACKed or retransmitted: bundling them is waste. SACKed or
//! retransmitted segments do not count as hidden losses: they are known. The smallest RTT is the connection's, not that
//! of five minutes. No bundles while F-RTO waits for what new data shows. The loss rates of `min_loss` and `tfrc_bound`
//! are the sender's own estimates: a mean over 256 segments, and the weighted mean of eight loss intervals.
//!
//! Parameters: [`Rdb`]; the defaults are those of the 2016 patches but for `detect`.

use crate::parameter::choice;
use crate::tcp::Shared;
use crate::tcp::ack::records::{RETRANS, SACKED};
use crate::tcp::ack::scoreboard::Scoreboard;
use crate::tcp::send::half::Sender;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;

/// When and what to bundle.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Rdb {
    /// When a stream is thin enough.
    pub thin: ThinRule,
    /// What counts as in flight for that.
    pub in_flight: InFlight,
    /// Segments a packet may carry along; 0: as many as fit.
    pub max_segments: u8,
    /// Largest payload of a bundle, bytes; 0: the MSS.
    pub max_payload: u32,
    /// How losses that a bundle repaired are found.
    pub detect: HiddenLoss,
    /// Redundant bytes, at most so many per cent of the bytes on the wire within 16 round trips; 100: no bound.
    pub budget: u8,
    /// The redundant bytes that are out must fit into the window too.
    pub charge: bool,
    /// Bundle only while all that was written is sent and segments leave no faster than every 10 ms (or the interval of
    /// `thin`) on average: nothing is gained by cutting a bulk transfer into small writes.
    pub spaced: bool,
    /// Bundle only while segments leave no faster than TFRC-SP would permit at the loss seen.
    pub tfrc_bound: bool,
    /// Bundle only while more than one segment in 200 was lost lately.
    pub min_loss: bool,
}

impl Rdb {
    /// One segment, dynamic limit with 10 ms, D-SACKs believed.
    pub const STANDARD: Rdb = Rdb {
        thin: ThinRule::Interval {
            min: Duration::from_millis(10),
            smoothed: false,
        },
        in_flight: InFlight::Pipe,
        max_segments: 1,
        max_payload: 0,
        detect: HiddenLoss::Dsack,
        budget: 100,
        charge: false,
        spaced: false,
        tfrc_bound: false,
        min_loss: false,
    };
}

/// When a stream is thin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum ThinRule {
    /// Fewer than so many segments in flight.
    Packets(u32),
    /// Segments in flight times `min` is less than the RTT: the dynamic limit RTT / ITT.
    Interval {
        /// Smallest time between segments of a thin stream, at least 10 ms (RFC 4828 4.3).
        min: Duration,
        /// Compare with SRTT instead of the smallest RTT.
        smoothed: bool,
    },
}

choice! {
    /// What counts as in flight.
    pub enum InFlight {
        /// Sent, not acknowledged, neither SACKed nor lost, and retransmissions (Linux `tcp_packets_in_flight`).
        Pipe = "pipe",
        /// Sent and not acknowledged (`packets_out`).
        Out = "out",
    }

    /// How hidden losses are found.
    pub enum HiddenLoss {
        /// Not at all.
        Ignored = "ignored",
        /// By the number of an acknowledgment: what the bundle that it ends carried along and was not acknowledged before
        /// is presumed lost.
        Original = "original",
        /// As `Original`, unless a D-SACK says that the data had arrived; only if the receiver is known to send D-SACKs or to
        /// acknowledge every segment.
        Dsack = "dsack",
    }
}

/// What a sender that bundles remembers.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Bundler {
    /// The last bundles, oldest first.
    pub(super) bundles: VecDeque<Bundle>,
    /// Bytes on the wire and redundant ones among them, of this span of eight round trips and of the one before.
    pub(super) traffic: [(u64, u64); 2],
    pub(super) span_began: Instant,
    /// Last new segment, and the mean time between them.
    pub(super) last_at: Instant,
    pub(super) interval: Duration,
    pub(super) segments: u32,
    /// Share of lost segments in 1/[`ALL_LOST`], over about [`MEAN_OF`].
    pub(super) loss: u32,
    /// Segments between loss events, newest first, and since the last.
    pub(super) intervals: VecDeque<u32>,
    pub(super) since_event: u32,
    /// A loss of data beyond this offset is a new event.
    pub(super) event_end: u64,
    /// Acknowledgments in a row that acknowledged one segment each.
    pub(super) single: u8,
    /// The receiver sends D-SACKs.
    pub(super) dsacks: bool,
}

/// A packet that carried older data along.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bundle {
    /// First offset it carried.
    pub(super) start: u64,
    /// First offset of its new data.
    pub(super) seq: u64,
    /// One past its last.
    pub(super) end: u64,
    /// A D-SACK was put down to it.
    pub(super) reported: bool,
}

/// Losses that an acknowledgment shows to have been repaired by a bundle.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Hidden {
    /// Segments presumed lost.
    pub(in crate::tcp) segments: u32,
    /// First new offset of the bundle.
    pub(super) seq: u64,
    /// What was acknowledged last had older data with it: its RTT is the one that counts.
    pub(in crate::tcp) bundled: bool,
}

impl Bundler {
    pub(super) fn on_new_segment(&mut self, now: Instant) {
        let gap = now.since(self.last_at);
        self.interval = match self.segments {
            0 => Duration::ZERO,
            1 => gap,
            // No pause does more than double it: what follows one is not spaced for that.
            _ => {
                self.interval.mul_div(7, 8)
                    + gap
                        .min(self.interval.max(LEAST_MEAN).saturating_mul(8))
                        .mul_div(1, 8)
            }
        };
        self.segments = self.segments.saturating_add(1);
        self.last_at = now;
        self.loss -= self.loss / MEAN_OF;
        self.since_event = self.since_event.saturating_add(1);
    }

    /// Moves the share of lost segments.
    pub(super) fn lost(&mut self, segments: u32) {
        self.loss = (self.loss + segments.min(MEAN_OF) * (ALL_LOST / MEAN_OF)).min(ALL_LOST);
    }

    pub(super) fn on_wire(&mut self, now: Instant, srtt: Duration, carried: u64, bytes: u64) {
        let span = srtt.saturating_mul(8).max(Duration::from_millis(1));
        if now.since(self.span_began) >= span {
            let old = now.since(self.span_began) >= span + span;
            self.traffic = [(0, 0), if old { (0, 0) } else { self.traffic[0] }];
            self.span_began = now;
        }
        self.traffic[0].0 += bytes;
        self.traffic[0].1 += carried;
    }

    pub(super) fn remember(&mut self, bundle: Bundle) {
        if self.bundles.len() == REMEMBERED {
            self.bundles.pop_front();
        }
        self.bundles.push_back(bundle);
    }

    /// The bounds against abuse.
    pub(super) fn permits(
        &self,
        _now: Instant,
        rdb: &Rdb,
        sender: &Sender,
        shared: &Shared,
        carried: u64,
        payload: u32,
    ) -> bool {
        let wire = carried + u64::from(payload) + HEADERS;
        let (bytes, redundant) = (
            self.traffic[0].0 + self.traffic[1].0 + wire,
            self.traffic[0].1 + self.traffic[1].1 + carried,
        );
        if redundant * 100 > bytes * u64::from(rdb.budget) {
            return false;
        }
        if rdb.charge {
            let out = self.bundles.iter().filter(|bundle| bundle.end > sender.una);
            let charged: u64 = out.map(|bundle| bundle.seq - bundle.start).sum();
            let wanted = sender.in_flight(shared) + sender.board.weight(payload) + charged + carried;
            if wanted > sender.window(shared) {
                return false;
            }
        }
        if rdb.spaced {
            let least = match rdb.thin {
                ThinRule::Interval { min, .. } => min,
                ThinRule::Packets(_) => LEAST_INTERVAL,
            };
            if sender.unsent() > u64::from(payload) || (self.segments > 1 && self.interval < least) {
                return false;
            }
        }
        if rdb.min_loss && self.loss <= ALL_LOST / 200 {
            return false;
        }
        !rdb.tfrc_bound
            || self.segments < 2
            || self.interval >= self.least_interval(shared, payload + carried as u32)
    }

    /// The time between segments that TFRC-SP permits (RFC 5348 3.1 with s = 1460 and b = 1; RFC 4828 4.1, 4.3).
    pub(super) fn least_interval(&self, shared: &Shared, payload: u32) -> Duration {
        let (Some(p), Some(rtt)) = (self.loss_event_rate(), shared.rtt.srtt()) else {
            return LEAST_INTERVAL;
        };
        let rtt = rtt.as_secs_f64();
        let fast = libm::sqrt(2.0 * p / 3.0);
        let slow = 12.0 * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p);
        let bytes_per_second = 1460.0 / (rtt * (fast + slow)).max(1e-9);
        let per_segment = (f64::from(payload) + HEADERS as f64) / bytes_per_second;
        LEAST_INTERVAL.max(Duration::from_secs_f64(per_segment))
    }

    /// RFC 5348 5.4.
    pub(super) fn loss_event_rate(&self) -> Option<f64> {
        if self.intervals.is_empty() {
            return None;
        }
        let mean = |intervals: &mut dyn Iterator<Item = u32>| {
            let (mut sum, mut weights) = (0.0, 0.0);
            for (interval, weight) in intervals.zip(WEIGHTS) {
                sum += f64::from(interval) * weight;
                weights += weight;
            }
            sum / weights
        };
        let closed = mean(&mut self.intervals.iter().copied());
        let open = mean(&mut core::iter::once(self.since_event).chain(self.intervals.iter().copied()));
        Some(1.0 / closed.max(open).max(1.0))
    }

    pub(super) fn on_loss_event(&mut self, una: u64, nxt: u64) {
        if una < self.event_end {
            return; // the same round trip
        }
        self.event_end = nxt;
        self.intervals.push_front(self.since_event.max(1));
        self.intervals.truncate(WEIGHTS.len());
        self.since_event = 0;
    }

    pub(super) fn claim(&mut self, left: u64, right: u64) -> bool {
        let found = self
            .bundles
            .iter_mut()
            .find(|bundle| !bundle.reported && bundle.start <= left && right <= bundle.seq);
        if let Some(bundle) = found {
            bundle.reported = true;
            self.dsacks = true;
            return true;
        }
        false
    }
}

impl Scoreboard {
    /// Segments in flight: sent, neither acknowledged nor SACKed nor lost, and retransmissions.
    pub(super) fn packets_in_flight(&self) -> u32 {
        if self.is_clean() {
            return self.segments();
        }
        let marks = &*self.marks;
        let counted = self.ring.iter().map(|record| {
            u32::from(record.flags & (SACKED | crate::tcp::ack::records::LOST) == 0)
                + u32::from(record.is(RETRANS))
        });
        counted.sum::<u32>().saturating_sub(marks.duplicates)
    }
}

/// Headers of IPv4 and TCP, as RFC 4828 counts them.
pub(super) const HEADERS: u64 = 40;

/// Bundles that are remembered.
pub(super) const REMEMBERED: usize = 64;

/// Acknowledgments of single segments that show a receiver that acknowledges each.
pub(super) const ENOUGH: u8 = 3;

/// RFC 4828 4.3: no packets closer than this.
pub(super) const LEAST_INTERVAL: Duration = Duration::from_millis(10);

/// Segments that leave at the same moment do not make the mean nothing for good.
const LEAST_MEAN: Duration = Duration::from_millis(1);

/// Every segment is lost. So fine that the mean of what is long past becomes nothing, although it is a whole number.
const ALL_LOST: u32 = 1 << 24;

/// Segments that the share of lost ones is a mean over.
const MEAN_OF: u32 = 256;

/// RFC 5348 5.4.
pub(super) const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
