//! When generations change: every epoch, fixed or following how long super-packets take to pass.

use crate::time::{Duration, Instant};

/// Shortest adaptive epoch.
const SHORTEST: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The clock of the generations.
#[derive(Clone, Debug)]
pub(super) struct Epoch {
    /// Start of the current epoch.
    start: Instant,
    length: Duration,
    /// Fixed length, or upper bound of an adaptive one.
    longest: Duration,
    adaptive: bool,
    /// Largest time from first to last packet of super-packets completed in this second and in the one before.
    gaps: [Option<Duration>; 2],
    /// Start of this second.
    second: Instant,
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
    pub(super) const fn new(longest: Duration, adaptive: bool) -> Epoch {
        Epoch {
            start: Instant::ZERO,
            length: longest,
            longest,
            adaptive,
            gaps: [None; 2],
            second: Instant::ZERO,
        }
    }

    pub(super) const fn length(&self) -> Duration {
        self.length
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
        if self.adaptive {
            self.pass_seconds(now);
            // docs/design/super-packets.md#adaptive-epoch. Without a super-packet completed lately: the upper bound.
            let largest = self.gaps[0].max(self.gaps[1]);
            self.length = largest.map_or(self.longest, |gap| {
                Duration::from_nanos(gap.as_nanos().saturating_mul(4))
                    .max(SHORTEST)
                    .min(self.longest)
            });
        }
        if epochs == 1 { Turn::One } else { Turn::Both }
    }

    /// A super-packet was completed at `now`, `gap` after its first packet.
    #[inline]
    pub(super) fn completed(&mut self, now: Instant, gap: Duration) {
        if self.adaptive {
            self.pass_seconds(now);
            self.gaps[0] = self.gaps[0].max(Some(gap));
        }
    }

    fn pass_seconds(&mut self, now: Instant) {
        let seconds = now.since(self.second).as_nanos() / SECOND.as_nanos();
        match seconds {
            0 => return,
            1 => self.gaps = [None, self.gaps[0]],
            _ => self.gaps = [None; 2],
        }
        self.second += Duration::from_nanos(seconds * SECOND.as_nanos());
    }
}

#[cfg(test)]
mod tests {
    use super::{Epoch, Turn};
    use crate::time::{Duration, Instant};

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_epoch_ends_on_its_boundary() {
        let mut epoch = Epoch::new(Duration::from_millis(100), false);
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
        let mut epoch = Epoch::new(ms(200), true);
        assert_eq!(epoch.length(), ms(200));
        epoch.completed(at(10), ms(7));
        epoch.completed(at(20), ms(3));
        epoch.turn(at(200));
        assert_eq!(epoch.length(), ms(28));
        epoch.completed(at(210), Duration::from_micros(100));
        epoch.completed(at(1_500), Duration::from_micros(100));
        epoch.turn(at(1_900));
        assert_eq!(epoch.length(), ms(28), "the second before still counts");
        epoch.completed(at(2_500), Duration::from_micros(100));
        epoch.turn(at(2_600));
        assert_eq!(epoch.length(), ms(1), "the lower bound");
        epoch.completed(at(2_700), ms(90));
        epoch.turn(at(2_800));
        assert_eq!(epoch.length(), ms(200), "the upper bound");
        epoch.completed(at(2_900), ms(2));
        epoch.turn(at(60_000));
        assert_eq!(epoch.length(), ms(200), "nothing completed lately");
    }
}
