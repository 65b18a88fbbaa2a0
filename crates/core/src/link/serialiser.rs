//! How long packets take to be sent: a constant rate or a trace of delivery opportunities.
//!
//! **Source.** docs/design/engine.md#time for the constant rate. Traces follow mahimahi's link emulation (Netravali et al., USENIX
//! ATC 2015): each opportunity carries 1504 bytes; a packet larger than what is left of one goes on in the next; what is
//! left serves the next packet if one waits, and is lost otherwise.
//!
//! **Deviations.** None known. A packet leaves the queue at the opportunity that carries its first byte. The four bytes that mahimahi's
//! TUN device puts in front of a packet are `framing` of the link, which scenario files have there unless they say otherwise.

use super::LinkConfig;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use alloc::sync::Arc;
use serde::Serialize;

/// Bytes that one opportunity of a trace carries.
pub const OPPORTUNITY_BYTES: u32 = 1504;

/// Speed of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum LinkRate {
    /// Constant.
    Constant(Rate),
    /// Delivery opportunities of 1504 bytes (mahimahi): offsets in one period, then the period repeats.
    Trace {
        /// Offsets within the period, ascending, repeated where several fall on one moment; none is above the period.
        opportunities: Arc<[Duration]>,
        /// Length of the period.
        period: Duration,
    },
}

impl LinkRate {
    /// Mean speed.
    pub fn mean(&self) -> Rate {
        match self {
            LinkRate::Constant(rate) => *rate,
            LinkRate::Trace {
                opportunities,
                period,
            } => {
                let bits = opportunities.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
                Rate((bits * 1_000_000_000 / u128::from(period.as_nanos().max(1))) as u64)
            }
        }
    }

    /// Bytes that can be sent from `from` until just before `to`; of a trace those of the opportunities in between.
    pub fn bytes_between(&self, from: Instant, to: Instant) -> u64 {
        match self {
            LinkRate::Constant(rate) => {
                let bits = u128::from(rate.bps()) * u128::from(to.since(from).as_nanos()) / 1_000_000_000;
                u64::try_from(bits / 8).unwrap_or(u64::MAX)
            }
            LinkRate::Trace {
                opportunities,
                period,
            } => {
                let until = |at| opportunities_before(opportunities, *period, at);
                until(to)
                    .saturating_sub(until(from))
                    .saturating_mul(u64::from(OPPORTUNITY_BYTES))
            }
        }
    }
}

/// How many opportunities of a trace that repeats lie before `at`.
fn opportunities_before(opportunities: &[Duration], period: Duration, at: Instant) -> u64 {
    let period = period.max(Duration::from_nanos(1));
    let mut periods = at.as_nanos() / period.as_nanos();
    let mut within = Duration::from_nanos(at.as_nanos() % period.as_nanos());
    // An offset equal to the period falls on the first moment of the next one.
    if within.is_zero() && periods > 0 {
        periods -= 1;
        within = period;
    }
    let index = opportunities.partition_point(|&offset| offset < within);
    periods
        .saturating_mul(opportunities.len() as u64)
        .saturating_add(index as u64)
}

#[derive(Debug)]
pub(super) struct Serialiser {
    constant: Constant,
    /// What a packet of the length seen last takes.
    time: Time,
    /// What a packet of the length seen before takes: most directions carry two sizes.
    other: Time,
    /// Left over from packets sent since the link was last idle, below the rate.
    remainder: u64,
    trace: Option<Trace>,
}

/// A constant rate, whose remainder is carried on (docs/design/engine.md#time).
#[derive(Debug)]
pub(super) struct Constant {
    pub(super) bps: u64,
    /// Wire bytes per packet beyond layer 3.
    framing: u32,
    processing: Duration,
    /// Whether processing happens while the packet before is sent.
    overlap: bool,
}

/// How long packets of one length take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    pub(super) len: u32,
    /// Whole nanoseconds, processing included; at most a quarter of what 64 bits hold.
    pub(super) whole: u64,
    /// What is left over, in bits times 10^9 below the rate.
    pub(super) fraction: u64,
    /// The part of `whole` that is not spent on the packet itself but on the one behind it, where packets are processed while
    /// others are sent, and sending is the shorter of the two.
    early: u64,
}

impl Constant {
    pub(super) fn new(config: &LinkConfig) -> Constant {
        Constant {
            bps: config.rate.mean().bps().max(1),
            framing: config.framing,
            processing: config.processing,
            overlap: config.overlap,
        }
    }

    pub(super) fn time(&self, len: u32) -> Time {
        let (mut whole, mut fraction) = (0, 0);
        if self.bps != Rate::UNLIMITED.bps() {
            // Below 2 GiB the product has 64 bits.
            let bytes = u64::from(len) + u64::from(self.framing);
            if let Some(bits_ns) = bytes.checked_mul(8_000_000_000) {
                whole = bits_ns / self.bps;
                fraction = bits_ns % self.bps;
            } else {
                let (bits_ns, bps) = (u128::from(bytes) * 8_000_000_000, u128::from(self.bps));
                whole = u64::try_from(bits_ns / bps).unwrap_or(u64::MAX);
                fraction = (bits_ns % bps) as u64;
            }
        }
        let processing = self.processing.as_nanos();
        let mut early = 0;
        if !self.overlap {
            whole = whole.saturating_add(processing);
        } else if whole < processing {
            early = processing - whole;
            (whole, fraction) = (processing, 0);
        }
        whole = whole.min(LONGEST_NS);
        Time {
            len,
            whole,
            fraction,
            early,
        }
    }
}

/// What a packet takes at most, in sending or on its way: 146 years, so that sums do not overflow.
pub(super) const LONGEST_NS: u64 = u64::MAX / 4;

impl Serialiser {
    pub(super) fn new(config: &LinkConfig) -> Serialiser {
        let constant = Constant::new(config);
        let time = constant.time(0);
        Serialiser {
            constant,
            time,
            other: time,
            remainder: 0,
            trace: Trace::new(&config.rate),
        }
    }

    /// The first moment from `earliest` at which sending may begin.
    #[inline]
    pub(super) fn start(&self, earliest: Instant) -> Instant {
        match &self.trace {
            None => earliest,
            Some(trace) => trace.find(earliest).at,
        }
    }

    /// Sends a packet that begins at `start`; when it will have been sent, and processed where that is longer.
    #[inline]
    pub(super) fn send(&mut self, start: Instant, len: u32) -> Instant {
        if let Some(trace) = &mut self.trace {
            let bytes = u64::from(len) + u64::from(self.constant.framing);
            let processed = start.saturating_add(self.constant.processing);
            if !self.constant.overlap {
                return trace.send(processed, bytes);
            }
            let sent = trace.send(start, bytes);
            trace.early = processed.since(sent);
            return sent.max(processed);
        }
        if len != self.time.len {
            core::mem::swap(&mut self.time, &mut self.other);
            if len != self.time.len {
                self.time = self.constant.time(len);
            }
        }
        self.remainder += self.time.fraction;
        let carry = self.remainder >= self.constant.bps;
        if carry {
            self.remainder -= self.constant.bps;
        }
        start.saturating_add(Duration::from_nanos(self.time.whole + u64::from(carry)))
    }

    /// By how much the packet that was sent last is on its way before its time is over.
    #[inline]
    pub(super) fn early(&self) -> Duration {
        match &self.trace {
            None => Duration::from_nanos(self.time.early),
            Some(trace) => trace.early,
        }
    }

    /// Sends a packet `again` times more, `wait` after the end of the attempt before, the first of which took from `start` to
    /// `finish`: when the last one will have been sent, and the busy time of these attempts and of the waits before them.
    pub(super) fn repair(
        &mut self,
        start: Instant,
        finish: Instant,
        len: u32,
        again: u32,
        wait: Duration,
    ) -> (Instant, Duration) {
        let Some(before) = self.trace.as_ref().map(Trace::carried) else {
            let attempt = finish.since(start).as_nanos().saturating_add(wait.as_nanos());
            let repair = Duration::from_nanos(attempt.saturating_mul(u64::from(again)));
            return (finish.saturating_add(repair), repair);
        };
        let mut end = finish;
        for _ in 0..again {
            end = self.send(end.saturating_add(wait), len);
        }
        let busy = self.trace.as_ref().map_or(Duration::ZERO, |trace| {
            trace.at_mean_rate(trace.carried().saturating_sub(before))
        });
        (end, busy)
    }

    /// The link fell idle: the next packet starts on a whole nanosecond.
    #[inline]
    pub(super) fn idle(&mut self) {
        self.remainder = 0;
    }

    /// Busy time of a packet sent from `start` to `finish`. On a trace, its share of the mean capacity.
    #[inline]
    pub(super) fn busy(&self, start: Instant, finish: Instant, len: u32) -> Duration {
        match &self.trace {
            None => finish.since(start),
            Some(trace) => trace.at_mean_rate(u64::from(len) + u64::from(self.constant.framing)),
        }
    }

    /// What of the busy time counted so far falls on `now` and later. `free_at`: when the packet sent last is through.
    pub(super) fn busy_after(&self, free_at: Instant, now: Instant) -> Duration {
        match &self.trace {
            None => free_at.since(now),
            Some(trace) => trace.at_mean_rate(trace.carried_from(now)),
        }
    }

    /// The busy time `busy` of the span from `from` until just before `to`, as counted, as its share of what the link could have
    /// sent in that span: the rate of a trace may differ there from its mean.
    pub(super) fn busy_within(&self, from: Instant, to: Instant, busy: Duration) -> Duration {
        let Some(trace) = &self.trace else {
            return busy;
        };
        let before = |at| opportunities_before(&trace.opportunities, trace.period, at);
        let offered = u128::from(before(to).saturating_sub(before(from)));
        let used = u128::from(busy.as_nanos()) * trace.opportunities.len() as u128;
        let all = offered * u128::from(trace.period.as_nanos());
        let span = to.since(from);
        match all {
            0 => Duration::ZERO,
            // A product of more than 128 bits would take centuries.
            all => Duration::from_nanos(
                (used.saturating_mul(u128::from(span.as_nanos())) / all).min(u128::from(span.as_nanos()))
                    as u64,
            ),
        }
    }
}

/// Place in a trace.
#[derive(Debug)]
struct Trace {
    opportunities: Arc<[Duration]>,
    period: Duration,
    /// Number of the opportunity in use, counted from the start.
    next: u64,
    /// What it can still carry, bytes; at least 1.
    left: u32,
    /// By how much the packet that was sent last is on its way before its processing would let the next one begin.
    early: Duration,
}

/// An opportunity that can carry something.
struct Found {
    number: u64,
    at: Instant,
}

impl Trace {
    /// `None` for a constant rate. A trace without opportunities never sends; validation refuses it earlier.
    fn new(rate: &LinkRate) -> Option<Trace> {
        match rate {
            LinkRate::Constant(_) => None,
            LinkRate::Trace {
                opportunities,
                period,
            } => Some(Trace {
                opportunities: opportunities.clone(),
                period: (*period).max(Duration::from_nanos(1)),
                next: 0,
                left: OPPORTUNITY_BYTES,
                early: Duration::ZERO,
            }),
        }
    }

    /// When opportunity `number` happens.
    fn time(&self, number: u64) -> Instant {
        let count = self.opportunities.len() as u64;
        if count == 0 {
            return Instant::FAR_FUTURE;
        }
        let offset = self.opportunities[(number % count) as usize];
        Instant::ZERO
            .saturating_add(self.period.saturating_mul(number / count))
            .saturating_add(offset)
    }

    /// What `bytes` take at the mean rate.
    #[inline]
    fn at_mean_rate(&self, bytes: u64) -> Duration {
        let per_period = self.opportunities.len() as u64 * u64::from(OPPORTUNITY_BYTES);
        self.period.mul_div(bytes, per_period.max(1))
    }

    /// Bytes that the opportunities up to the one in use have carried or could have.
    fn carried(&self) -> u64 {
        self.next * u64::from(OPPORTUNITY_BYTES) + u64::from(OPPORTUNITY_BYTES - self.left)
    }

    /// Bytes of what was sent that opportunities at or after `now` carry.
    fn carried_from(&self, now: Instant) -> u64 {
        let first = opportunities_before(&self.opportunities, self.period, now);
        match self.next.checked_sub(first) {
            None => 0,
            Some(whole) => whole * u64::from(OPPORTUNITY_BYTES) + u64::from(OPPORTUNITY_BYTES - self.left),
        }
    }

    /// The first opportunity at or after `earliest` that is not used up.
    fn find(&self, earliest: Instant) -> Found {
        let at = self.time(self.next);
        if at >= earliest {
            return Found {
                number: self.next,
                at,
            };
        }
        let number = opportunities_before(&self.opportunities, self.period, earliest).max(self.next);
        Found {
            number,
            at: self.time(number),
        }
    }

    /// Sends `bytes` from `start` on; when the last of them has its opportunity.
    fn send(&mut self, start: Instant, bytes: u64) -> Instant {
        let found = self.find(start);
        if found.number != self.next {
            self.next = found.number;
            self.left = OPPORTUNITY_BYTES;
        }
        let whole = u64::from(OPPORTUNITY_BYTES);
        let left = u64::from(self.left);
        if bytes < left {
            self.left -= bytes as u32;
            return found.at;
        }
        // Last byte number `bytes`: `left` in this opportunity, the rest in the following ones.
        let beyond = bytes - left;
        let further = beyond.div_ceil(whole);
        let finish = self.time(self.next + further);
        let used = beyond - further.saturating_sub(1) * whole;
        if further == 0 || used == whole {
            self.next += further + 1;
            self.left = OPPORTUNITY_BYTES;
        } else {
            self.next += further;
            self.left = (whole - used) as u32;
        }
        finish
    }
}
