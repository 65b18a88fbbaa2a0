//! When generations change: every epoch, fixed, or following the round-trip times of flows or how long super-packets take to pass.

use crate::time::{Duration, Instant};

/// Shortest epoch that follows something.
const SHORTEST: Duration = Duration::from_millis(1);

/// What the length of an epoch follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// Nothing: it is fixed.
    Nothing,
    /// How long super-packets take from their first packet to a later one (docs/design/super-packets.md#adaptive-epoch).
    SuperPackets,
    /// The round-trip times of flows (docs/design/super-packets.md#rtt-epoch).
    RoundTrips,
}

impl Follows {
    /// How many times the largest time an epoch is, and for how long a time counts: in this span and the next.
    const fn rule(self) -> (u64, Duration) {
        match self {
            Follows::Nothing | Follows::SuperPackets => (4, Duration::from_secs(1)),
            // The report: twice. Flows last, and only their beginning is seen.
            Follows::RoundTrips => (2, Duration::from_secs(60)),
        }
    }
}

/// The clock of the generations.
#[derive(Clone, Debug)]
pub(super) struct Epoch {
    /// Start of the current epoch.
    start: Instant,
    length: Duration,
    /// Fixed length, or upper bound of one that follows something.
    longest: Duration,
    follows: Follows,
    /// Largest time seen in this span and in the one before.
    largest: [Option<Duration>; 2],
    /// Start of this span.
    span: Instant,
}

/// What an epoch's end does to the two generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing ended.
    None,
    /// The current generation becomes the old one, which ends.
    One,
    /// Both end: two or more epochs have gone by.
    Both,
}

impl Epoch {
    pub(super) const fn new(longest: Duration, follows: Follows) -> Epoch {
        Epoch {
            start: Instant::ZERO,
            length: longest,
            longest,
            follows,
            largest: [None; 2],
            span: Instant::ZERO,
        }
    }

    pub(super) const fn length(&self) -> Duration {
        self.length
    }

    /// When so many epochs of this length are over, the current one being the first.
    pub(super) fn begins_after(&self, epochs: u64) -> Instant {
        self.start + Duration::from_nanos(epochs * self.length.as_nanos())
    }

    /// Moves on to the epoch of `now`. A time before the current epoch counts as within it.
    #[inline]
    pub(super) fn turn(&mut self, now: Instant) -> Turn {
        let gone = now.since(self.start);
        if gone < self.length {
            return Turn::None;
        }
        let epochs = gone.as_nanos() / self.length.as_nanos();
        self.start += Duration::from_nanos(epochs * self.length.as_nanos());
        if self.follows != Follows::Nothing {
            self.pass_spans(now);
            // Without anything seen lately: the upper bound.
            let (times, _) = self.follows.rule();
            let largest = self.largest[0].max(self.largest[1]);
            self.length = largest.map_or(self.longest, |time| {
                Duration::from_nanos(time.as_nanos().saturating_mul(times))
                    .max(SHORTEST)
                    .min(self.longest)
            });
            // A shorter epoch that would be over by now begins now: it must not end what is promised at this moment.
            if now.since(self.start) >= self.length {
                self.start = now;
            }
        }
        if epochs == 1 { Turn::One } else { Turn::Both }
    }

    /// A later packet of a super-packet came at `now`, `gap` after the first. Not the last one alone counts: an epoch that quick
    /// super-packets made short forgets slow ones before they are complete, and would never learn that there are any.
    #[inline]
    pub(super) fn follower(&mut self, now: Instant, gap: Duration) {
        if self.follows == Follows::SuperPackets {
            self.saw(now, gap);
        }
    }

    /// A flow was seen at `now` to have this round-trip time.
    pub(super) fn round_trip(&mut self, now: Instant, rtt: Duration) {
        if self.follows == Follows::RoundTrips {
            self.saw(now, rtt);
        }
    }

    fn saw(&mut self, now: Instant, time: Duration) {
        self.pass_spans(now);
        self.largest[0] = self.largest[0].max(Some(time));
    }

    fn pass_spans(&mut self, now: Instant) {
        let (_, span) = self.follows.rule();
        let spans = now.since(self.span).as_nanos() / span.as_nanos();
        match spans {
            0 => return,
            1 => self.largest = [None, self.largest[0]],
            _ => self.largest = [None; 2],
        }
        self.span += Duration::from_nanos(spans * span.as_nanos());
    }
}

#[cfg(test)]
mod tests {
    use super::{Epoch, Follows, Turn};
    use crate::time::{Duration, Instant};

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_epoch_ends_on_its_boundary() {
        let mut epoch = Epoch::new(Duration::from_millis(100), Follows::Nothing);
        assert_eq!(epoch.turn(Instant::from_nanos(99_999_999)), Turn::None);
        assert_eq!(epoch.turn(at(100)), Turn::One);
        assert_eq!(epoch.turn(at(100)), Turn::None);
        assert_eq!(epoch.turn(at(299)), Turn::One, "1 epoch idle");
        assert_eq!(epoch.turn(at(50)), Turn::None, "a clock that steps back");
        assert_eq!(epoch.turn(at(400)), Turn::Both, "2 epochs idle");
        assert_eq!(epoch.turn(at(1_499)), Turn::Both, "10 epochs idle");
        assert_eq!(epoch.turn(at(1_500)), Turn::One, "epochs keep their grid");
    }

    #[test]
    fn an_adaptive_epoch_is_four_times_the_largest_gap_of_two_seconds() {
        let ms = Duration::from_millis;
        let mut epoch = Epoch::new(ms(200), Follows::SuperPackets);
        assert_eq!(epoch.length(), ms(200));
        epoch.follower(at(10), ms(7));
        epoch.follower(at(20), ms(3));
        epoch.turn(at(200));
        assert_eq!(epoch.length(), ms(28));
        epoch.follower(at(210), Duration::from_micros(100));
        epoch.follower(at(1_500), Duration::from_micros(100));
        epoch.turn(at(1_900));
        assert_eq!(epoch.length(), ms(28), "the second before still counts");
        epoch.follower(at(2_500), Duration::from_micros(100));
        epoch.turn(at(2_600));
        assert_eq!(epoch.length(), ms(1), "the lower bound");
        epoch.follower(at(2_700), ms(90));
        epoch.turn(at(2_800));
        assert_eq!(epoch.length(), ms(200), "the upper bound");
        epoch.follower(at(2_900), ms(2));
        epoch.turn(at(60_000));
        assert_eq!(epoch.length(), ms(200), "nothing completed lately");
    }

    #[test]
    fn a_shorter_epoch_that_would_be_over_begins_when_it_becomes_shorter() {
        let us = Duration::from_micros;
        for (follows, times) in [(Follows::SuperPackets, 4), (Follows::RoundTrips, 2)] {
            let mut epoch = Epoch::new(us(200_000), follows);
            epoch.follower(at(10), us(20_000 / times));
            epoch.round_trip(at(10), us(20_000 / times));
            assert_eq!(epoch.turn(at(350)), Turn::One);
            assert_eq!(epoch.length(), us(20_000));
            assert_eq!(epoch.turn(at(350)), Turn::None, "the same instant");
            assert_eq!(epoch.begins_after(1), at(370));
            assert_eq!(epoch.turn(Instant::from_nanos(369_999_999)), Turn::None);
            assert_eq!(epoch.turn(at(370)), Turn::One);
            // One that is not over keeps the boundary from which it counts.
            let mut epoch = Epoch::new(us(200_000), follows);
            epoch.follower(at(10), us(20_000 / times));
            epoch.round_trip(at(10), us(20_000 / times));
            assert_eq!(epoch.turn(at(215)), Turn::One);
            assert_eq!(epoch.begins_after(1), at(220));
        }
    }

    /// Twice the largest round-trip time (the report, 3.3), of the last one to two minutes (ours).
    #[test]
    fn an_epoch_of_round_trips_is_twice_the_largest_of_two_minutes() {
        let ms = Duration::from_millis;
        let mut epoch = Epoch::new(ms(500), Follows::RoundTrips);
        assert_eq!(epoch.length(), ms(500), "nothing seen yet");
        epoch.round_trip(at(100), ms(30));
        epoch.round_trip(at(200), ms(80));
        epoch.round_trip(at(300), ms(20));
        epoch.follower(at(300), ms(200));
        epoch.turn(at(500));
        assert_eq!(epoch.length(), ms(160), "super-packets do not count");
        epoch.round_trip(at(70_000), ms(10));
        epoch.turn(at(119_000));
        assert_eq!(epoch.length(), ms(160), "the minute before still counts");
        epoch.turn(at(120_500));
        assert_eq!(epoch.length(), ms(20));
        epoch.round_trip(at(121_000), ms(600));
        epoch.turn(at(122_000));
        assert_eq!(epoch.length(), ms(500), "the upper bound");
        epoch.round_trip(at(400_000), Duration::from_micros(100));
        epoch.turn(at(401_000));
        assert_eq!(epoch.length(), ms(1), "the lower bound");
    }
}
