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

use crate::cc::CongestionKind;
use crate::packet::Segment;
use crate::parameter::choice;
use crate::tcp::Shared;
use crate::tcp::ack::delivery::Delivery;
use crate::tcp::ack::recovery::CaState;
use crate::tcp::ack::scoreboard::{FIN, RETRANS, Record, SACKED, Scoreboard};
use crate::tcp::send::half::Sender;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;

/// When and what to bundle.
#[derive(Clone, Copy, Debug, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    bundles: VecDeque<Bundle>,
    /// Bytes on the wire and redundant ones among them, of this span of eight round trips and of the one before.
    traffic: [(u64, u64); 2],
    span_began: Instant,
    /// Last new segment, and the mean time between them.
    last_at: Instant,
    interval: Duration,
    segments: u32,
    /// Share of lost segments in 1/65536, over about 256.
    loss: u32,
    /// Segments between loss events, newest first, and since the last.
    intervals: VecDeque<u32>,
    since_event: u32,
    /// A loss of data beyond this offset is a new event.
    event_end: u64,
    /// Acknowledgments in a row that acknowledged one segment each.
    single: u8,
    /// The receiver sends D-SACKs.
    dsacks: bool,
}

/// A packet that carried older data along.
#[derive(Clone, Copy, Debug)]
struct Bundle {
    /// First offset it carried.
    start: u64,
    /// First offset of its new data.
    seq: u64,
    /// One past its last.
    end: u64,
    /// A D-SACK was put down to it.
    reported: bool,
}

/// Losses that an acknowledgment shows to have been repaired by a bundle.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Hidden {
    /// Segments presumed lost.
    pub(in crate::tcp) segments: u32,
    /// First new offset of the bundle.
    seq: u64,
    /// What was acknowledged last had older data with it: its RTT is the one that counts.
    pub(in crate::tcp) bundled: bool,
}

impl Sender {
    /// First offset that the packet with the next `payload` new bytes carries.
    #[cold]
    pub(in crate::tcp) fn bundle(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        payload: u32,
        fin: bool,
    ) -> u64 {
        let Some(mut thin) = self.thin.take() else {
            return self.nxt;
        };
        let mut start = self.nxt;
        if let (Some(bundler), Some(rdb)) = (&mut thin.bundler, shared.config.rdb) {
            bundler.on_new_segment(now);
            if payload > 0 && !fin && !self.recovery.in_frto() {
                start = self.walk(&rdb, shared.mss, payload);
            }
            let carried = self.nxt - start;
            if carried > 0
                && !(self.may_bundle(&rdb, shared)
                    && bundler.permits(now, &rdb, self, shared, carried, payload))
            {
                start = self.nxt;
            }
            let carried = self.nxt - start;
            let srtt = shared.rtt.srtt().unwrap_or_default();
            bundler.on_wire(now, srtt, carried, u64::from(payload) + carried + HEADERS);
            if carried > 0 {
                bundler.remember(Bundle {
                    start,
                    seq: self.nxt,
                    end: self.nxt + u64::from(payload),
                    reported: false,
                });
                shared.stats.rdb_packets += 1;
                shared.stats.rdb_bytes += carried;
                shared.stats.bytes_sent += carried;
            }
        }
        self.thin = Some(thin);
        start
    }

    /// Backwards from the newest segment: whole segments, as many as fit and are permitted.
    fn walk(&self, rdb: &Rdb, mss: u32, payload: u32) -> u64 {
        let most = if rdb.max_payload == 0 {
            mss
        } else {
            rdb.max_payload.min(mss)
        };
        let mut room = u64::from(most.saturating_sub(payload));
        let (mut start, mut count) = (self.nxt, 0);
        for index in (0..self.board.ring.len()).rev() {
            let record = &self.board.ring[index];
            let full = rdb.max_segments > 0 && count == rdb.max_segments;
            if full || record.flags & (SACKED | RETRANS | FIN) != 0 || u64::from(record.len) > room {
                break;
            }
            room -= u64::from(record.len);
            start = record.seq;
            count = count.saturating_add(1);
        }
        start
    }

    /// Whether the stream is thin now.
    fn may_bundle(&self, rdb: &Rdb, shared: &Shared) -> bool {
        let in_flight = match rdb.in_flight {
            InFlight::Pipe => self.board.packets_in_flight(),
            InFlight::Out => self.board.segments(),
        };
        match rdb.thin {
            ThinRule::Packets(limit) => in_flight < limit,
            ThinRule::Interval { min, smoothed } => {
                let rtt = if smoothed {
                    shared.rtt.srtt()
                } else {
                    shared.rtt.min()
                };
                rtt.is_some_and(|rtt| min.saturating_mul(u64::from(in_flight)) < rtt)
            }
        }
    }

    /// What the acknowledgment of everything before `ack` says of bundles, before its records are removed.
    #[cold]
    pub(in crate::tcp) fn find_hidden(&mut self, shared: &Shared, segment: &Segment, ack: u64) -> Hidden {
        let (Some(rdb), Some(bundler)) = (
            shared.config.rdb,
            self.thin.as_mut().and_then(|thin| thin.bundler.as_mut()),
        ) else {
            return Hidden::default();
        };
        let covered = self.board.ring.iter().take_while(|record| record.end() <= ack);
        let single = covered.count() == 1;
        let mut hidden = Hidden::default();
        if let Some(bundle) = bundler.bundles.iter().rev().find(|bundle| bundle.end == ack) {
            hidden.bundled = true;
            hidden.seq = bundle.seq;
            let duplicate = (segment.sack_blocks() > 0 && shared.sack).then(|| {
                let (left, right) = segment.sack_block(0);
                (left.to_offset(shared.iss, ack), right.to_offset(shared.iss, ack))
            });
            let reported = duplicate.filter(|&(left, right)| left < right && right <= ack as i64);
            let trusted = match rdb.detect {
                HiddenLoss::Ignored => false,
                HiddenLoss::Original => true,
                HiddenLoss::Dsack => {
                    (shared.sack && (bundler.dsacks || reported.is_some())) || bundler.single >= ENOUGH
                }
            };
            let believed = rdb.detect == HiddenLoss::Dsack;
            let arrived = |record: &Record| {
                let reported = reported.filter(|_| believed);
                reported
                    .is_some_and(|(left, right)| left <= record.seq as i64 && record.end() as i64 <= right)
            };
            let carried = self.board.ring.iter();
            let carried = carried.skip_while(|record| record.seq < bundle.start);
            let unknown = carried
                .take_while(|record| record.end() <= bundle.seq)
                .filter(|record| !record.is(SACKED) && record.tx_count == 1 && !arrived(record));
            hidden.segments = if trusted { unknown.count() as u32 } else { 0 };
        }
        if single {
            bundler.single = bundler.single.saturating_add(1);
        } else if hidden.segments == 0 {
            bundler.single = 0; // it waits for a second segment
        }
        hidden
    }

    /// Losses were hidden: one reduction of the window per round trip.
    #[cold]
    pub(in crate::tcp) fn on_hidden(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        hidden: &Hidden,
        delivery: &Delivery,
    ) {
        shared.stats.rdb_losses += hidden.segments;
        self.note_loss(hidden.segments, true);
        if matches!(self.recovery.state(), CaState::Open | CaState::Disorder)
            && hidden.seq >= self.recovery.high_seq()
        {
            self.enter_cwr(now, shared, CongestionKind::Loss, delivery);
            // What was presumed lost was never sent again: its share of what was acknowledged (New-CWV's R).
            let lost = delivery.acked * u64::from(hidden.segments) / u64::from(delivery.segments.max(1));
            self.on_lost_again(Instant::ZERO, lost.min(delivery.acked));
        }
    }

    /// Segments were lost; `event`: it may be the first sign of it.
    pub(in crate::tcp) fn note_loss(&mut self, segments: u32, event: bool) {
        let (una, nxt) = (self.una, self.nxt);
        if let Some(bundler) = self.thin.as_mut().and_then(|thin| thin.bundler.as_mut()) {
            if event {
                bundler.on_loss_event(una, nxt);
            }
            bundler.loss = (bundler.loss + segments * ONE_LOSS).min(1 << 16);
        }
    }

    /// Whether a D-SACK of these offsets comes from a bundle: RACK, undo and the probe must not see it.
    #[cold]
    pub(in crate::tcp) fn is_of_bundle(&mut self, left: u64, right: u64) -> bool {
        let Some(bundler) = self.thin.as_mut().and_then(|thin| thin.bundler.as_mut()) else {
            return false;
        };
        bundler.claim(left, right)
    }
}

impl Bundler {
    fn on_new_segment(&mut self, now: Instant) {
        let gap = now.since(self.last_at);
        self.interval = match self.segments {
            0 => Duration::ZERO,
            1 => gap,
            _ => self.interval.mul_div(7, 8) + gap.mul_div(1, 8),
        };
        self.segments = self.segments.saturating_add(1);
        self.last_at = now;
        self.loss -= self.loss / 256;
        self.since_event = self.since_event.saturating_add(1);
    }

    fn on_wire(&mut self, now: Instant, srtt: Duration, carried: u64, bytes: u64) {
        let span = srtt.saturating_mul(8).max(Duration::from_millis(1));
        if now.since(self.span_began) >= span {
            let old = now.since(self.span_began) >= span + span;
            self.traffic = [(0, 0), if old { (0, 0) } else { self.traffic[0] }];
            self.span_began = now;
        }
        self.traffic[0].0 += bytes;
        self.traffic[0].1 += carried;
    }

    fn remember(&mut self, bundle: Bundle) {
        if self.bundles.len() == REMEMBERED {
            self.bundles.pop_front();
        }
        self.bundles.push_back(bundle);
    }

    /// The bounds against abuse.
    fn permits(
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
        if rdb.min_loss && self.loss <= (1 << 16) / 200 {
            return false;
        }
        !rdb.tfrc_bound || self.segments < 2 || self.interval >= self.least_interval(shared, payload)
    }

    /// The time between segments that TFRC-SP permits (RFC 5348 3.1 with s = 1460 and b = 1; RFC 4828 4.1, 4.3).
    fn least_interval(&self, shared: &Shared, payload: u32) -> Duration {
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
    fn loss_event_rate(&self) -> Option<f64> {
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

    fn on_loss_event(&mut self, una: u64, nxt: u64) {
        if una < self.event_end {
            return; // the same round trip
        }
        self.event_end = nxt;
        self.intervals.push_front(self.since_event.max(1));
        self.intervals.truncate(WEIGHTS.len());
        self.since_event = 0;
    }

    fn claim(&mut self, left: u64, right: u64) -> bool {
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
    fn packets_in_flight(&self) -> u32 {
        if self.is_clean() {
            return self.segments();
        }
        let marks = &*self.marks;
        let counted = self.ring.iter().map(|record| {
            u32::from(record.flags & (SACKED | crate::tcp::ack::scoreboard::LOST) == 0)
                + u32::from(record.is(RETRANS))
        });
        counted.sum::<u32>().saturating_sub(marks.duplicates)
    }
}

/// Headers of IPv4 and TCP, as RFC 4828 counts them.
const HEADERS: u64 = 40;

/// Bundles that are remembered.
const REMEMBERED: usize = 64;

/// Acknowledgments of single segments that show a receiver that acknowledges each.
const ENOUGH: u8 = 3;

/// RFC 4828 4.3: no packets closer than this.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);

/// One segment in 256, in 1/65536.
const ONE_LOSS: u32 = 256;

/// RFC 5348 5.4.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
