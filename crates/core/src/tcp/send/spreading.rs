//! Initial Spreading: gaps between the segments of the first window, and of no other.
//!
//! The gap is a share of the round trip, at most 4 ms, so that losses do not depend on each other. A packet's time at the
//! bottleneck is the least that can do this, and on an empty path it costs nothing: `known` takes the rate from whoever knows the path,
//! `estimated` measures it. Its first two segments leave together, and if the acknowledgments of segments that left
//! together come apart, what the later one delivers in that time is the rate (packet pair). The window is usually out before: a
//! gap is at most a share of the round trip, and the first acknowledgment takes one. So an estimate shortens what is left of
//! gaps, if anything is, and is kept for the next connection between the same hosts ([`crate::tcp::window::path_memory`]). Without one,
//! `estimated` is `bounded`.
//!
//! Equal gaps keep step with a full queue whose packets leave at just that distance: all segments find room, or none does. With
//! `spreading_jitter_percent` each gap is drawn anew from a range around the gap, evenly, so that none keeps step and the window
//! takes as long on average. Measured with windows of 40 segments on busy drop-tail lines, that saves a few per cent of the time at
//! most, while gaps a hundredth shorter than a packet's time save about a fifth in three of four settings (docs/start-up.md).
//!
//! **Fast Open.** A server that answers data on the SYN sends its first window before the handshake has a sample, and without a
//! round trip there is nothing to spread over: that window leaves at once, whatever the kind. Only `estimated` may know better:
//! the shortest round trip that earlier connections found stands in for the sample.
//!
//! **Source.** draft-irtf-iccrg-sallantin-initial-spreading-00 (variable and bounded). The packet pair is Keshav's (SIGCOMM 1991);
//! what passes from connection to connection follows RFC 9040 6. Phase effects, and a random time before each packet as the remedy: Floyd
//! and Jacobson, Internetworking: Research and Experience 3(3), 1992 (ns-2 has it as `overhead_`). The estimated gap is Fleetfoot's own.
//! **Deviations.** Gaps are exact: a jiffy decides only whether to spread at all, as in the draft. Spreading ends a round trip
//! after its first segment. The draft knows neither rate nor pairs, nor random gaps; Floyd and Jacobson add from nothing to a
//! packet's time at the bottleneck, here the range lies on both sides of the gap. With recovery as ns-2 has it nothing is measured.
//! **A pair that counts.** Two acknowledgments in order, neither of them SACKing nor of retransmissions, of full segments; the last
//! segments of both left within an eighth of the time between them; more is in flight, so that no delayed acknowledgment's timer
//! is measured. A receiver that acknowledges every second segment shows nothing of a lone pair; then the first acknowledgments of the
//! second window do, each of which answers a burst. After three windows' worth of segments, at the first loss, or when
//! everything is acknowledged it gives up. Acknowledgments that a queue on the way back drove together make the path look faster
//! than it is, packets between those of the pair slower: the memory takes the middle of three.
//!
//! Parameters (of `estimated`): `spreading_pair` on; `spreading_memory` 1 h (as long as Linux keeps its metrics, 0: no memory);
//! `spreading_stop` on: an acknowledgment whose round trip shows an empty queue ends the spreading; `spreading_phase` off: the
//! first segment waits for a random part of the gap, so that parallel connections do not begin together; `spreading_tail` off:
//! the last two segments leave together. Of every kind: `spreading_jitter_percent` 0: half of the range of gaps, in per cent of the gap.

use crate::rng::Rng;
use crate::tcp::Shared;
use crate::tcp::config::InitialSpreading;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};

/// Initial Spreading in progress.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Spread {
    /// Segments of the initial window that have not left.
    pub(super) left: u32,
    pub(super) gap: Duration,
    /// Half of the range from which gaps are drawn, in per cent of the gap.
    pub(super) jitter_percent: u8,
    /// Seed of the connection's draws.
    pub(super) seed: u64,
    pub(super) next_at: Instant,
    /// When the last segment left.
    pub(super) left_at: Instant,
    /// The first window is over, sent or not; `FAR_FUTURE` before its first segment.
    pub(super) until: Instant,
    /// From the first segment to that.
    pub(super) span: Duration,
    /// A round trip that is no longer found no queue.
    pub(super) empty: Duration,
}

/// Looks for two acknowledgments that show the rate of the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Train {
    /// When the last acknowledgment came, and when that left which it delivered last.
    pub(super) last: Option<(Instant, Instant)>,
    /// Segments that may still be acknowledged before it gives up.
    pub(super) left: u32,
}

impl Spread {
    pub(in crate::tcp) fn new(now: Instant, shared: &Shared) -> Option<Spread> {
        let config = &shared.config;
        if config.initial_spreading == InitialSpreading::Off || shared.syn_lost > 0 {
            return None; // a SYN that was lost leaves no sample of the handshake to go by
        }
        let given = shared.path.as_deref().and_then(|path| path.given);
        // The response of a Fast Open server leaves before the handshake has a sample.
        let rtt = shared.rtt.srtt().or(given.map(|path| path.min_rtt))?;
        let segments = initial_segments(shared);
        let share = Duration::from_nanos(rtt.as_nanos() / u64::from(segments));
        if share < config.spreading_jiffy {
            return None;
        }
        let bound = share.min(config.spreading_gap);
        let (mut next_at, mut empty) = (Instant::ZERO, rtt);
        let seed = u64::from(shared.iss.0) << 32 | u64::from(shared.irs.0);
        let gap = match config.initial_spreading {
            InitialSpreading::Off => return None,
            InitialSpreading::Variable => share,
            InitialSpreading::Bounded => bound,
            InitialSpreading::Known => bound.min(config.spreading_rate.time_for(full_packet(shared))),
            InitialSpreading::Estimated => {
                let gap = given.map_or(bound, |path| bound.min(path.rate.time_for(full_packet(shared))));
                if config.spreading_phase && gap > Duration::ZERO {
                    next_at = now + Duration::from_nanos(Rng::from_seed(seed).below(gap.as_nanos()));
                }
                // A segment takes a packet's time longer than the SYN.
                empty = given.map_or(rtt, |path| rtt.min(path.min_rtt)) + gap;
                gap
            }
        };
        (gap > Duration::ZERO).then(|| Spread {
            left: segments,
            gap,
            jitter_percent: config.spreading_jitter_percent.min(100),
            seed,
            next_at,
            left_at: Instant::ZERO,
            until: Instant::FAR_FUTURE,
            // Gaps that are drawn may add up to more than the round trip.
            span: rtt.max(longest(gap, config.spreading_jitter_percent).saturating_mul(u64::from(segments))),
            empty,
        })
    }

    /// Until when the next segment is held back; `None`: not at all.
    pub(in crate::tcp) fn held_until(&self, now: Instant) -> Option<Instant> {
        (self.next_at > now).then_some(self.next_at)
    }

    pub(in crate::tcp) fn is_over(&self, now: Instant) -> bool {
        self.left == 0 || now >= self.until
    }

    /// A new segment left.
    pub(in crate::tcp) fn on_sent(&mut self, now: Instant, shared: &Shared) {
        let config = &shared.config;
        self.left = self.left.saturating_sub(1);
        let first = self.until == Instant::FAR_FUTURE;
        let together = config.initial_spreading == InitialSpreading::Estimated
            && (first && config.spreading_pair || self.left == 1 && config.spreading_tail);
        let gap = if together { Duration::ZERO } else { self.drawn() };
        self.next_at = self.next_at.max(now) + gap;
        self.left_at = now;
        self.until = self.until.min(now + self.span);
    }

    /// The gap after the last segment: the same each time it is asked for.
    pub(super) fn drawn(&self) -> Duration {
        let range = longest(self.gap, self.jitter_percent).saturating_sub(self.gap);
        if range == Duration::ZERO {
            return self.gap;
        }
        let mut rng = Rng::from_seed(self.seed ^ (u64::from(self.left) + 1).wrapping_mul(DRAWS));
        let above_least = Duration::from_nanos(rng.below(2 * range.as_nanos() + 1));
        self.gap.saturating_sub(range) + above_least
    }

    /// Gaps need not be longer than `packet`, from the last segment on.
    pub(super) fn shorten(&mut self, packet: Duration) {
        if packet < self.gap {
            self.gap = packet;
            self.next_at = self.next_at.min(self.left_at + self.drawn());
        }
    }
}

impl Train {
    pub(in crate::tcp) fn new(shared: &Shared) -> Option<Train> {
        let config = &shared.config;
        let estimates = config.initial_spreading == InitialSpreading::Estimated
            && config.spreading_pair
            && !config.sack1_recovery;
        estimates.then(|| Train {
            last: None,
            left: initial_segments(shared).saturating_mul(WINDOWS),
        })
    }

    /// An acknowledgment in order: `full` segments that left last at `newest`, if they were all full.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        newest: Instant,
        full: Option<u32>,
        packet: Bytes,
    ) -> Option<Rate> {
        let (at, before) = self.last.replace((now, newest))?;
        let (apart, left_apart) = (now.since(at), newest.since(before));
        if apart.is_zero() || left_apart.as_nanos() * TOGETHER > apart.as_nanos() {
            return None;
        }
        let bits = u128::from(full?) * u128::from(packet.get()) * 8;
        let bps = bits * 1_000_000_000 / u128::from(apart.as_nanos());
        Some(Rate::from_bps(u64::try_from(bps).ok()?))
    }
}

/// The longest gap that may be drawn.
fn longest(gap: Duration, jitter_percent: u8) -> Duration {
    gap.mul_div(100 + u64::from(jitter_percent.min(100)), 100)
}

/// Segments of the first window, whatever the lengths of what is written.
fn initial_segments(shared: &Shared) -> u32 {
    (shared.initial_window() / u64::from(shared.mss.max(1))).max(1) as u32
}

/// A full segment with its headers.
pub(super) fn full_packet(shared: &Shared) -> Bytes {
    let options = if shared.timestamps { TIMESTAMPS } else { 0 };
    Bytes(u64::from(shared.mss + shared.config.header() + options))
}

/// What left within this part of the time between acknowledgments left together.
const TOGETHER: u64 = 8;
/// Initial windows of segments: the first window, and the second of slow start.
const WINDOWS: u32 = 3;
/// Separates the draws of a connection from others.
const DRAWS: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bytes of the timestamp option with its padding.
const TIMESTAMPS: u32 = 12;
