//! What arrived and what did not: packets become losses, losses become loss events, events close loss intervals.
//!
//! A packet is lost when three with higher numbers have arrived. So at most three packets are undecided at a time: what lies
//! below the third highest is known for good, and no list of arrivals is needed. The time of a loss is interpolated between
//! the arrivals before and after the gap; losses within one round-trip time of the first one belong to its event. A gap of
//! any length costs a constant amount of work, because the first losses of its events are evenly spaced.
//!
//! **Source.** RFC 5348 5.1 to 5.3; RFC 4828 section 3 (intervals of at most two round-trip times).
//! **Deviations.**
//! - A packet that arrives after it was declared lost does not take the loss back (5.1 allows both).
//! - Before the receiver knows a round-trip time all losses are one event.

use super::history::{History, INTERVALS};
use crate::time::{Duration, Instant};

/// Loss events of a receiver.
#[derive(Clone, Debug)]
pub(super) struct Reception {
    /// Everything up to this packet is decided; when it arrived.
    base: Arrival,
    /// What arrived above, ascending; the first `waiting` are in use.
    above: [Arrival; REORDERING as usize],
    waiting: usize,
    /// The highest packet that arrived.
    highest: u64,
    event: Option<Event>,
    history: History,
    /// Short intervals are counted as RFC 4828 wants it.
    small_packets: bool,
    /// Packets lost.
    lost: u64,
    /// Loss events.
    events: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Arrival {
    number: u64,
    at: Instant,
    /// The packet carries a congestion mark.
    marked: bool,
}

/// The current loss event.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// Its first loss: S_loss.
    number: u64,
    /// T_loss.
    at: Instant,
    /// Packets lost or marked since then, in this event and after it.
    lost: u64,
}

/// What a packet brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brought {
    /// The packet was known already, or came too late.
    Nothing,
    /// The packet is new.
    Packet,
    /// The packet is new, and a loss event became known.
    LossEvent,
}

impl Reception {
    /// The first packet arrives (RFC 5348 6.3).
    pub(super) fn new(number: u64, at: Instant, discounting: bool, small_packets: bool) -> Reception {
        Reception {
            base: Arrival {
                number,
                at,
                marked: false,
            },
            above: [Arrival::default(); REORDERING as usize],
            waiting: 0,
            highest: number,
            event: None,
            history: History::new(discounting),
            small_packets,
            lost: 0,
            events: 0,
        }
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// Packets lost so far.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Loss events so far.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// The loss event rate as known at `now`.
    pub(super) fn rate(&self, now: Instant, rtt: Duration) -> f64 {
        let Some(event) = &self.event else { return 0.0 };
        // RFC 4828 section 3: an open interval of at most two round-trip times does not count.
        let short = self.small_packets && now.since(event.at) <= rtt.saturating_mul(2);
        self.history.rate((!short).then(|| self.open(event)))
    }

    /// I_0: packets from the first loss of the last event to the highest that arrived (RFC 5348 5.3).
    fn open(&self, event: &Event) -> f64 {
        (self.highest.saturating_sub(event.number) + 1) as f64
    }

    /// Packet `number` arrives. `first_interval` gives the length of the interval before the first loss event, in packets
    /// (RFC 5348 6.3.1).
    pub(super) fn on_packet(
        &mut self,
        number: u64,
        at: Instant,
        marked: bool,
        rtt: Duration,
        first_interval: impl Fn() -> f64,
    ) -> Brought {
        let waiting = &self.above[..self.waiting];
        if number <= self.base.number || waiting.iter().any(|known| known.number == number) {
            return Brought::Nothing;
        }
        let before = self.events;
        self.highest = self.highest.max(number);
        let mut arrival = Arrival { number, at, marked };
        // Ascending. At least one place is free: three would have decided the lowest.
        for known in &mut self.above[..self.waiting] {
            if known.number > arrival.number {
                core::mem::swap(known, &mut arrival);
            }
        }
        if let Some(place) = self.above.get_mut(self.waiting) {
            *place = arrival;
            self.waiting += 1;
        }
        // RFC 5348 5.1: three packets above a gap decide it; without a gap nothing is to be decided.
        while self.waiting > 0
            && (self.waiting == REORDERING as usize || self.above[0].number == self.base.number + 1)
        {
            let next = self.above[0];
            self.above.rotate_left(1);
            self.waiting -= 1;
            self.decide(next, rtt, &first_interval);
        }
        if self.events > before {
            Brought::LossEvent
        } else {
            Brought::Packet
        }
    }

    /// Everything up to `next`, which arrived, is known: what lies between is lost.
    fn decide(&mut self, next: Arrival, rtt: Duration, first_interval: &impl Fn() -> f64) {
        let base = core::mem::replace(&mut self.base, next);
        let (after, gap) = (base.number + 1, next.number - base.number);
        // RFC 5348 5.2: losses are as far apart as the arrivals around the gap have it; in units of nanoseconds * gap.
        let span = u128::from(next.at.since(base.at).as_nanos());
        let wanted = u128::from(rtt.as_nanos()) * u128::from(gap);
        // The first packet that is more than a round-trip time after another in this gap, in packets.
        let step = u64::try_from(wanted.checked_div(span).map_or(u128::MAX, |whole| whole + 1));
        let step = if rtt.is_zero() { None } else { step.ok() };
        let time_of = |number: u64| {
            let into = span * u128::from(number - base.number) / u128::from(gap);
            base.at.saturating_add(Duration::from_nanos(into as u64))
        };
        let mut counted = after;
        let mut event_at = self.first_of_new_event(&base, &next, rtt, after);
        while let Some(number) = event_at {
            self.count(number - counted);
            self.begin(number, time_of(number), rtt, first_interval);
            counted = number;
            event_at = step
                .and_then(|step| number.checked_add(step))
                .filter(|&number| number < next.number);
            // Older events of this gap leave no trace, the discounts of newer ones included: go on with the last ones.
            if let (Some(number), Some(step)) = (event_at, step) {
                let left = (next.number - 1 - number) / step;
                let skipped = left.saturating_sub(2 * INTERVALS as u64 + 2);
                if skipped > 0 {
                    self.events += skipped;
                    event_at = Some(number + skipped * step);
                }
            }
        }
        self.count(next.number - counted);
        if next.marked {
            // RFC 5348 5.1, 5.2: a mark is a loss at the time of its arrival.
            let begins = self
                .event
                .is_none_or(|event| !rtt.is_zero() && next.at > event.at.saturating_add(rtt));
            if begins {
                self.begin(next.number, next.at, rtt, first_interval);
            }
            if let Some(event) = &mut self.event {
                event.lost += 1;
            }
        }
    }

    /// The first loss between `base` and `next` that begins a new event.
    fn first_of_new_event(&self, base: &Arrival, next: &Arrival, rtt: Duration, after: u64) -> Option<u64> {
        if after == next.number {
            return None;
        }
        let Some(event) = &self.event else {
            return Some(after);
        };
        if rtt.is_zero() {
            return None;
        }
        // RFC 5348 5.2: T_loss > T_old + R.
        let until = event.at.saturating_add(rtt);
        if until < base.at {
            return Some(after);
        }
        let span = u128::from(next.at.since(base.at).as_nanos());
        let gap = u128::from(next.number - base.number);
        let wanted = u128::from(until.since(base.at).as_nanos()) * gap;
        let into = wanted.checked_div(span)? + 1;
        let number = u64::try_from(into)
            .ok()
            .and_then(|into| base.number.checked_add(into))?;
        (number < next.number).then_some(number)
    }

    /// Adds losses to the current event.
    fn count(&mut self, lost: u64) {
        if let Some(event) = &mut self.event {
            event.lost += lost;
        }
        self.lost += lost;
    }

    /// A loss event begins with packet `number`, which the caller counts.
    fn begin(&mut self, number: u64, at: Instant, rtt: Duration, first_interval: &impl Fn() -> f64) {
        let event = Event { number, at, lost: 0 };
        match self.event.replace(event) {
            None => {
                let length = first_interval();
                self.history.close(length, length);
            }
            Some(old) => {
                let packets = number.saturating_sub(old.number) as f64;
                // RFC 4828 section 3: N packets of which K were lost, within two round-trip times, are N / K.
                let short = self.small_packets && at.since(old.at) <= rtt.saturating_mul(2);
                let length = if short {
                    packets / old.lost.max(1) as f64
                } else {
                    packets
                };
                self.history.close(packets, length);
            }
        }
        self.events += 1;
    }
}

/// Packets with higher numbers that declare one lost: NDUPACK of RFC 5348 5.1.
pub(super) const REORDERING: u8 = 3;
