//! An estimate of the rate of the bottleneck, for each direction: what is certain, and what evidence there is for more.
//!
//! **At least.** What arrived at the receiver within a window left the line within that window and as much more time as packets
//! were seen to wait: behind the line jitter, a radio or a host may bunch them. Arrivals are those that acknowledgments report,
//! wherever the capture was made, within the time that they leave open (see `delivery`). Where no wait is known a tenth of a second
//! is presumed.
//!
//! **About.** Only a line that packets wait for shows its rate. Such packets are known by what they waited: the round-trip time
//! beyond the smallest, or the timestamps of their sender. Of them two things are looked at.
//! *Spacing*: two segments one behind the other leave the bottleneck as far apart as the second takes to be sent, with the
//! ACKs between them. Spacing of data that were seen before the bottleneck is that of another line, and ACKs that waited themselves
//! have the spacing of theirs: a rate is rejected if the data that it implies ahead of a waiting packet never arrived, or if it
//! is far from the rate of all arrivals. The slowest that is left is the bottleneck.
//! *What was held*: half seconds in which the line was never idle, since each packet had waited for longer than it came behind the
//! one before. It is none if much more came at other times (then an application was the limit), and none if packets come closer
//! than it lets them (then they waited for something else, such as a radio). With as much traffic the other way it is none either.
//!
//! **At most.** Without acknowledgments nothing is known of the path behind the capture point: the rate seen is an upper bound.
//!
//! **Source.** Packet dispersion: Keshav 1991; Dovrolis, Ramanathan and Moore, INFOCOM 2001 (its modes).
//! **Deviations.** The mode is the densest five per cent of the rates, of packets that waited.

use super::clock::TICK_NS;
use super::delivery::Delivered;
use super::sliding_max::SlidingMax;
use super::windowed_bytes::{Came, WindowedBytes};
use fleetfoot_sim::output::Histogram;
use serde::Serialize;

/// What was seen of one direction.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Bytes in windows of time, by when ACKs reported them and by when they were seen.
    by_acks: WindowedBytes,
    seen: WindowedBytes,
    /// Spacing of acknowledged data that had waited in a queue.
    acknowledged: Spacing,
    /// Spacing of data seen that had waited in a queue.
    waited: Spacing,
    /// Spacing of all data seen.
    all: Spacing,
    /// Spacing of all acknowledged data.
    every: Spacing,
    /// The last two ACKs: connection and time.
    acks: [Option<(u32, u64)>; 2],
    /// When the data arrived that an ACK reported last, without the way of that ACK.
    arrived_ns: Option<u64>,
    /// What data waited of late before the capture point and behind it, at most.
    before: SlidingMax,
    behind: SlidingMax,
    /// The last full packet, and bytes of ACKs behind it.
    last_ns: Option<u64>,
    between: u64,
    /// Bytes of ACKs, which take their part of the line.
    acks_sent: u64,
    /// Bytes of this direction that ACKs reported.
    arrived: u64,
    /// Bytes of this direction that were seen.
    sent: u64,
    /// Bytes seen in full-size packets; small packets are requests and do not build a queue.
    bulk: u64,
    /// Bytes acknowledged in full-size packets.
    acknowledged_bulk: u64,
    /// Bytes acknowledged by ACKs with timestamps.
    timed: u64,
    /// Bytes acknowledged by ACKs whose own delay is unknown.
    blind: u64,
    /// Times went back: nothing is certain.
    backwards: bool,
}

/// A data packet that was seen, or data that were acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrival {
    pub(super) now_ns: u64,
    /// Layer-3 bytes.
    pub(super) bytes: u64,
    /// As large as may be.
    pub(super) full: bool,
    pub(super) connection: u32,
}

/// Where a capture was made, as seen from the receiver of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// At the receiver: data come as the bottleneck lets them.
    Receiver,
    /// Nearer to the receiver than to the sender.
    Near,
    /// At the sender: data have waited for nothing yet.
    Sender,
    #[default]
    Elsewhere,
}

impl Place {
    /// By the share of the round-trip time that lies on the receiver's side.
    pub(super) fn of(share: f64) -> Place {
        match share {
            share if share < AT_HOST => Place::Receiver,
            share if share < 0.25 => Place::Near,
            share if share > 0.95 => Place::Sender,
            _ => Place::Elsewhere,
        }
    }
}

/// What is known of the rate of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RateEstimate {
    /// The number that `basis` speaks of; `None` if nothing is known.
    pub bps: Option<f64>,
    /// What it is.
    pub basis: Basis,
    /// What certainly arrived within some tenths of a second.
    pub at_least_bps: Option<f64>,
    /// Where it is only a lower bound: what was held if packets waited, else the most common spacing of packets.
    pub guess_bps: Option<f64>,
    /// The median of half seconds in which the line was busy.
    pub held_bps: Option<f64>,
    /// The most common rate by the spacing of packets that had waited.
    pub spacing_bps: Option<f64>,
    /// Pairs of packets that were looked at.
    pub pairs: u64,
    /// Share of them near the most common rate.
    pub spacing_share: f64,
    /// Layer-3 bytes that arrived, or were seen if there are no acknowledgments.
    pub bytes: u64,
}

/// What an estimate is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// An estimate: the line was full, again and again at the same rate.
    Held,
    /// An estimate: the spacing of packets that had waited.
    Spacing,
    /// A lower bound: what certainly arrived within some tenths of a second.
    AtLeast,
    /// An upper bound: the rate of the path up to the capture point.
    AtMost,
    /// Unknown.
    #[default]
    Unknown,
}

impl Basis {
    /// Whether it is an estimate of the rate, not a bound.
    pub fn is_estimate(self) -> bool {
        matches!(self, Basis::Held | Basis::Spacing)
    }
}

impl Meter {
    /// Data were seen, which had waited for so long, at least and at most, if that is known.
    pub(super) fn on_data(&mut self, arrival: &Arrival, queued_ns: Option<(u64, u64)>) {
        let Arrival {
            now_ns, bytes, full, ..
        } = *arrival;
        self.sent += bytes;
        self.bulk += if full { bytes } else { 0 };
        let gap = self.last_ns.map(|last| now_ns.saturating_sub(last));
        let gap = gap.filter(|gap| full && *gap > 0);
        let waited = queued_ns.is_some_and(|(queued, _)| queued > 0 && queued >= gap.unwrap_or(0));
        self.before.note(now_ns, queued_ns.map(|queued| queued.1));
        self.seen.add(&Came {
            now_ns,
            from_ns: now_ns,
            bytes,
            gap_ns: gap.unwrap_or(0),
            waited,
            since_ns: None,
        });
        if let Some(gap) = gap {
            let queued_ns = queued_ns.map_or(0, |queued| queued.0);
            self.all.add(bytes + self.between, gap, Some(0));
            self.waited
                .add(bytes + self.between, gap, Some(queued_ns).filter(|_| waited));
        }
        self.last_ns = full.then_some(now_ns);
        self.between = 0;
    }

    /// A packet without data was seen.
    pub(super) fn on_ack(&mut self, now_ns: u64, bytes: u64) {
        self.acks_sent += bytes;
        self.between += bytes;
        let came = Came {
            now_ns,
            from_ns: now_ns,
            bytes,
            waited: true, // what they waited is not known; they take their part of the line
            ..Came::default()
        };
        self.seen.add(&came);
        self.by_acks.add(&came);
    }

    /// An ACK reported data; `arrival.bytes` includes their headers.
    pub(super) fn on_delivered(&mut self, arrival: &Arrival, delivered: &Delivered) {
        let Arrival {
            now_ns,
            bytes,
            full,
            connection,
        } = *arrival;
        self.arrived += bytes;
        self.acknowledged_bulk += if full { bytes } else { 0 };
        self.timed += if delivered.late_ns.is_some() { bytes } else { 0 };
        self.blind += if delivered.blind { bytes } else { 0 };
        self.behind.note(now_ns, delivered.within_ns);
        let behind_ns = self.behind.most(now_ns);
        let before_ns = match self.sent {
            0 => Some(0),
            _ => self.before.most(now_ns),
        };
        self.by_acks.allow([
            behind_ns.unwrap_or(PRESUMED_NS),
            behind_ns
                .zip(before_ns)
                .map_or(PRESUMED_NS, |(behind, before)| behind + before),
        ]);
        // Of ACKs whose own wait is known, when the data arrived.
        let arrived_ns = now_ns.saturating_sub(delivered.late_ns.unwrap_or(0));
        let gap_ns = self.arrived_ns.map_or(0, |last| arrived_ns.saturating_sub(last));
        self.arrived_ns = self.arrived_ns.max(Some(arrived_ns));
        let from_ns = delivered
            .previous_ack_ns
            .unwrap_or(now_ns)
            .max(delivered.since_ns.unwrap_or(0));
        self.by_acks.add(&Came {
            now_ns,
            from_ns,
            since_ns: delivered.since_ns,
            bytes,
            gap_ns,
            waited: delivered.queued_ns > 0 && delivered.queued_ns >= gap_ns,
        });
        let gap = self.acks[1].map(|(_, at)| now_ns.saturating_sub(at));
        let waited = delivered.queued_ns > 0 && delivered.queued_ns >= gap.unwrap_or(0);
        // ACKs of other connections between them: nobody knows what lay between the data.
        let alone = self
            .acks
            .iter()
            .all(|ack| ack.is_some_and(|ack| ack.0 == connection));
        // One that waited itself, among data on the way back, keeps no distance of the data.
        let on_time = |gap: u64| delivered.late_ns.is_none_or(|late| late <= TICK_NS + gap);
        let gap = gap.filter(|gap| *gap > 0 && on_time(*gap));
        if let Some(gap) = gap.filter(|_| alone && full && delivered.prompt) {
            self.acknowledged
                .add(bytes, gap, Some(delivered.queued_ns).filter(|_| waited));
            self.every.add(bytes, gap, Some(0));
        }
        self.acks = [self.acks[1], Some((connection, now_ns))];
    }

    /// Bytes of full packets, seen or acknowledged.
    pub(super) fn bulk(&self) -> u64 {
        self.bulk.max(self.acknowledged_bulk)
    }

    /// Packets had earlier times than those before them.
    pub(super) fn clock_went_back(&mut self) {
        self.backwards = true;
    }

    /// `back`: how much data went the other way in full packets, as a share of these; `crowded`: there were packets of which nothing
    /// else is known.
    pub(super) fn estimate(mut self, place: Place, back: f64, crowded: bool) -> RateEstimate {
        let acknowledged = self.arrived > 0;
        // ACKs among data come in bunches: without timestamps nobody knows what of their spacing is that of the data.
        let alone = back < ALONE;
        // ACKs of these take their part of the line too, between data where queues are fair. Unseen there is one to two segments.
        let shown = self.sent + self.acks_sent > 0;
        let share = match shown {
            true => self.acks_sent as f64 / self.arrived.max(self.sent).max(1) as f64,
            false => ACK_SHARE * back,
        };
        let shared = share > MOST_SHARED;
        let clear = alone || self.timed * 10 >= self.arrived * 9;
        let bounded = acknowledged && (alone || self.blind * 10 <= self.arrived);
        let spans = if acknowledged {
            &mut self.by_acks
        } else {
            &mut self.seen
        };
        let (held, full) = spans.held();
        let full = full && (clear || !acknowledged);
        let held_bps = held.map(value);
        let slack = usize::from(place != Place::Sender);
        let least = self.by_acks.least(slack).filter(|_| bounded && !self.backwards);
        // Where much more came at other times, an application was the limit and not the line; where packets came faster, something
        // else made them wait.
        let bunched = |held: f64| {
            self.every
                .faster_than(HASTE * held)
                .is_some_and(|share| share > FEW)
        };
        let line = held_bps
            .filter(|held| full && *held >= LIKE_LEAST * least.unwrap_or(0.0) && !bunched(*held))
            .filter(|_| shown || !shared);
        let fits = |mode: &Mode| {
            mode.bps >= 0.97 * least.unwrap_or(0.0)
                && least.is_none_or(|least| mode.bps <= MOST_OF_LEAST * least)
                && (self.by_acks.allows(mode.bps, mode.waited_ns)
                    || self.seen.allows(mode.bps, mode.waited_ns))
                && mode.bps >= 0.95 * line.unwrap_or(0.0)
        };
        // The slowest of what fits with what certainly arrived.
        // Among data short waits of ACKs go unseen: there their spacing needs what came to be near it.
        let borne =
            |mode: &Mode| alone || mode.bps <= NEAR_LEAST * least.unwrap_or(0.0).max(line.unwrap_or(0.0));
        let delivered = self
            .acknowledged
            .mode()
            .filter(fits)
            .filter(|mode| clear && !shared && borne(mode));
        let seen = self.waited.mode().filter(fits).filter(|_| {
            delivered.is_some() || matches!(place, Place::Receiver | Place::Near) || !acknowledged
        });
        let modes = [seen, delivered];
        let mode = modes
            .into_iter()
            .flatten()
            .min_by(|one, other| one.bps.total_cmp(&other.bps));
        let agrees = |mode: &Mode| held_bps.is_some_and(|held| (0.93..1.2).contains(&(mode.bps / held)));
        let (bps, basis) = match (mode, line) {
            (Some(mode), _) if !acknowledged => (Some(mode.bps), Basis::AtMost),
            (Some(mode), Some(_)) if agrees(&mode) => (Some(mode.bps), Basis::Spacing),
            (_, Some(held)) if acknowledged && alone => (Some(held), Basis::Held),
            (Some(mode), _) => (Some(mode.bps), Basis::Spacing),
            (None, _) if least.is_some() => (least, Basis::AtLeast),
            (None, _) => (None, Basis::Unknown),
        };
        // What is between them takes its part of the line.
        let (estimated, (bps, basis)) = match basis {
            _ if !crowded => (None, (bps, basis)),
            Basis::Held | Basis::Spacing if least.is_some() => (bps, (least, Basis::AtLeast)),
            Basis::AtLeast => (None, (bps, basis)),
            _ => (None, (None, Basis::Unknown)),
        };
        let spacings = [self.all.mode(), self.every.mode()].into_iter().flatten();
        let spaced = spacings.map(|mode| mode.bps).min_by(f64::total_cmp);
        // The spacing of packets that waited elsewhere says nothing of this line.
        let guess = match held_bps {
            Some(held) => {
                Some(held).filter(|held| *held <= NEAR_LEAST * least.unwrap_or(0.0) && !bunched(*held))
            }
            None => spaced.filter(|_| clear),
        };
        RateEstimate {
            bps,
            basis,
            guess_bps: estimated
                .or(guess)
                .filter(|guess| basis == Basis::AtLeast && *guess > bps.unwrap_or(0.0)),
            at_least_bps: least,
            held_bps,
            spacing_bps: mode.map(|mode| mode.bps),
            pairs: mode.map_or(0, |mode| mode.pairs),
            spacing_share: mode.map_or(0.0, |mode| mode.share),
            bytes: if acknowledged { self.arrived } else { self.sent },
        }
    }
}

/// Pairs of packets by the rate that their spacing speaks of.
#[derive(Debug)]
struct Spacing {
    /// Pairs, bytes and nanoseconds.
    classes: Vec<(u32, u64, u64)>,
    /// Pairs of packets that had not waited.
    idle: u32,
    /// What the others had.
    waits: Histogram,
}

/// The most common rate.
#[derive(Clone, Copy, Debug)]
struct Mode {
    bps: f64,
    pairs: u64,
    share: f64,
    /// What nine tenths of those that waited did not exceed.
    waited_ns: u64,
}

impl Default for Spacing {
    fn default() -> Spacing {
        Spacing {
            classes: vec![(0, 0, 0); CLASSES],
            idle: 0,
            waits: Histogram::default(),
        }
    }
}

impl Spacing {
    /// `waited_ns`: what the second of a pair waited; `None`: not for the first.
    fn add(&mut self, bytes: u64, gap_ns: u64, waited_ns: Option<u64>) {
        let Some(waited_ns) = waited_ns else {
            self.idle = self.idle.saturating_add(1);
            return;
        };
        self.waits.record(waited_ns);
        let class = &mut self.classes[class(bytes as f64 * 8e9 / gap_ns as f64)];
        class.0 = class.0.saturating_add(1);
        class.1 += bytes;
        class.2 += gap_ns;
    }

    /// Share of pairs whose spacing speaks of more than this; `None`: there are hardly any.
    fn faster_than(&self, bps: f64) -> Option<f64> {
        let pairs =
            |classes: &[(u32, u64, u64)]| -> u64 { classes.iter().map(|class| u64::from(class.0)).sum() };
        let all = pairs(&self.classes);
        let faster = pairs(self.classes.get(class(bps) + 1..).unwrap_or(&[]));
        (all >= LEAST_PAIRS).then(|| faster as f64 / all as f64)
    }

    fn mode(&self) -> Option<Mode> {
        let pairs: u64 = self.classes.iter().map(|class| u64::from(class.0)).sum();
        let density = |from: usize| -> u64 {
            let near = &self.classes[from..from + WIDTH];
            near.iter().map(|class| u64::from(class.0)).sum()
        };
        // The first of the densest.
        let from = (0..CLASSES - WIDTH).max_by_key(|&from| (density(from), CLASSES - from))?;
        let near = &self.classes[from..from + WIDTH];
        let sum = near
            .iter()
            .fold((0, 0), |sum, class| (sum.0 + class.1, sum.1 + class.2));
        let share = density(from) as f64 / pairs.max(1) as f64;
        // Where hardly any packet waits, those that did so by chance prove nothing.
        let many = pairs >= LEAST_PAIRS && pairs * 10 >= u64::from(self.idle);
        (many && share >= 0.3).then_some(Mode {
            bps: sum.0 as f64 * 8e9 / sum.1.max(1) as f64,
            pairs,
            share,
            waited_ns: self.waits.quantile(0.9).unwrap_or(0),
        })
    }
}

/// Classes of 1 per cent from 1 kbit/s on.
pub(super) fn class(bps: f64) -> usize {
    let class = libm::log(bps.max(1000.0) / 1000.0) / libm::log(1.01);
    (class as usize).min(CLASSES - 1)
}

/// The middle of a class.
pub(super) fn value(class: usize) -> f64 {
    1000.0 * libm::pow(1.01, class as f64 + 0.5)
}

/// Up to 10 Tbit/s.
pub(super) const CLASSES: usize = 2320;
/// Less of the round-trip time lies between a host and the capture point: it was at the host.
pub(super) const AT_HOST: f64 = 0.1;
/// Classes of a mode.
const WIDTH: usize = 5;
/// What was held is the line's if no more than this share of what certainly came is missing.
const LIKE_LEAST: f64 = 0.95;
/// With less data the other way, as a share, ACKs keep the distance of the data.
const ALONE: f64 = 0.01;
/// A line that was full had as much come at some time.
const NEAR_LEAST: f64 = 1.25;
/// A line that packets waited for carried more than this part of its rate at some time.
const MOST_OF_LEAST: f64 = 20.0;
/// On a full line only a few pairs are closer than its rate allows by this factor.
const HASTE: f64 = 1.5;
const FEW: f64 = 0.35;
/// Bytes of an ACK by those of the data that it acknowledges; what of the line ACKs may have for the data's spacing to be its rate.
const ACK_SHARE: f64 = 52.0 / 3000.0;
const MOST_SHARED: f64 = 0.035;
/// How long packets may have waited behind the line where it is unknown: jitter, a radio, a host.
const PRESUMED_NS: u64 = 100_000_000;
/// Fewer pairs say nothing.
const LEAST_PAIRS: u64 = 20;

#[cfg(test)]
mod tests;
