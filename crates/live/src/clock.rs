//! The one clock, and how the kernel's stamps are read by it.

use fleetfoot_core::time::{Duration, Instant};
use nix::time::{ClockId, clock_gettime};
use std::time;

/// The one clock: nanoseconds since it was made, monotonic.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: time::Instant,
    /// The same moment, since 1970.
    zero_unix_ns: u64,
}

impl Clock {
    /// A clock that shows zero now. Also asks the kernel for exact sleeps of this thread (timer slack 1 ns; its default of 50 us
    /// would be added to every wait).
    pub fn start() -> Clock {
        let since_1970 = time::SystemTime::now().duration_since(time::UNIX_EPOCH);
        let clock = Clock {
            zero: time::Instant::now(),
            zero_unix_ns: since_1970.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)),
        };
        clock.for_this_thread();
        clock
    }

    /// Asks the kernel for exact sleeps of this thread, which another one's clock does not give it.
    pub(crate) fn for_this_thread(&self) {
        // A refusal costs precision only.
        let _ = nix::sys::prctl::set_timerslack(1);
    }

    /// The moment of the start in nanoseconds since 1970, by the clock of the machine.
    pub const fn zero_unix_ns(&self) -> u64 {
        self.zero_unix_ns
    }

    /// Time since the start.
    pub fn now(&self) -> Instant {
        Instant::ZERO
            + Duration::from_nanos(u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sleeps until `deadline`; returns how late it woke.
    pub fn sleep_until(&self, deadline: Instant) -> Duration {
        let now = self.now();
        if deadline > now {
            std::thread::sleep(time::Duration::from_nanos(deadline.since(now).as_nanos()));
        }
        self.now().since(deadline)
    }
}

/// The wall clock, by which the kernel stamps frames, as it was read last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WallClock {
    /// How far it was ahead of [`Clock`] (ns), and that moment by [`Clock`].
    before: Option<(u64, Instant)>,
}

impl WallClock {
    /// Reads both clocks at the same moment.
    pub(crate) fn read(&mut self, clock: &Clock) -> Stamps {
        let wall = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |time| {
            (time.tv_sec() as u64)
                .wrapping_mul(1_000_000_000)
                .wrapping_add(time.tv_nsec() as u64)
        });
        self.at(clock.now(), wall)
    }

    fn at(&mut self, now: Instant, wall: u64) -> Stamps {
        let ahead = wall.wrapping_sub(now.as_nanos());
        let (before, since) = self.before.replace((ahead, now)).unwrap_or((ahead, now));
        let step = ahead.abs_diff(before);
        let slewed = now.since(since).as_nanos() / 1000;
        Stamps {
            now,
            wall,
            step: if step > LEAST_STEP + slewed { step } else { 0 },
        }
    }
}

/// This clock and the wall clock at one moment. A frame is as much older than that moment as the wall clock shows; this clock does
/// not jump when the wall clock is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    /// The moment by [`Clock`].
    pub(crate) now: Instant,
    /// The same moment in nanoseconds of the wall clock.
    wall: u64,
    /// By how much the wall clock was set since it was read before (ns); 0: it was not.
    step: u64,
}

impl Stamps {
    /// When a frame came that has the stamp `wall`. A stamp in the future, or one that the wall clock's being set since made
    /// old, is taken as now. Where it was not set, a frame waited as long as it seems: this process stood still.
    pub(crate) fn arrival(&self, wall: u64) -> Instant {
        let age = self.wall.saturating_sub(wall);
        if self.step > 0 && age > self.step / 2 {
            return self.now;
        }
        Instant::from_nanos(self.now.as_nanos().saturating_sub(age))
    }
}

/// The least difference between two readings that is a step of the wall clock (ns), beside a thousandth of the time between them, by
/// which it may have been slewed.
const LEAST_STEP: u64 = 5_000_000;

#[cfg(test)]
mod tests {
    use super::{Clock, WallClock};
    use fleetfoot_core::time::{Duration, Instant};

    const WALL: u64 = 1_800_000_000_000_000_000;

    #[test]
    fn a_stamp_is_mapped_by_its_age_however_old_it_is() {
        let mut wall = WallClock::default();
        wall.at(Instant::from_millis(100), WALL);
        // Nothing was read for 30 s, while 15 ms of slewing went by.
        let stamps = wall.at(Instant::from_millis(30_100), WALL + 30_015_000_000);
        let at = |offset: i64| stamps.arrival(stamps.wall.wrapping_add_signed(offset));
        assert_eq!(at(-3_000_000), Instant::from_millis(30_097));
        assert_eq!(at(-25_000_000_000), Instant::from_millis(5_100), "it waited 25 s");
        assert_eq!(at(5_000), stamps.now, "a stamp in the future");
        assert_eq!(at(-3_600_000_000_000), Instant::ZERO, "older than the clock");
    }

    #[test]
    fn a_step_of_the_wall_clock_makes_no_frame_old() {
        let mut wall = WallClock::default();
        wall.at(Instant::from_millis(100), WALL);
        let hour = 3_600_000_000_000;
        let stamps = wall.at(Instant::from_millis(102), WALL + 2_000_000 + hour);
        let at = |offset: i64| stamps.arrival(stamps.wall.wrapping_add_signed(offset));
        assert_eq!(
            at(-(hour as i64) - 1_000_000),
            stamps.now,
            "stamped before the step"
        );
        assert_eq!(at(-1_000_000), Instant::from_millis(101), "stamped after it");
        // The next reading knows nothing of it.
        let stamps = wall.at(Instant::from_millis(103), WALL + 3_000_000 + hour);
        assert_eq!(stamps.arrival(stamps.wall - 2_000_000), Instant::from_millis(101));
        // Set back: the stamp lies in the future.
        let stamps = wall.at(Instant::from_millis(104), WALL + 4_000_000);
        assert_eq!(stamps.arrival(stamps.wall + hour), stamps.now);
    }

    #[test]
    fn both_clocks_are_read_together() {
        let clock = Clock::start();
        let mut wall = WallClock::default();
        let first = wall.read(&clock);
        clock.sleep_until(first.now + Duration::from_millis(2));
        let second = wall.read(&clock);
        // What the second reading makes of a stamp taken at the first is the first reading; the wall clock may be slewed meanwhile.
        let mapped = second.arrival(first.wall);
        let error = mapped.since(first.now).max(first.now.since(mapped));
        assert!(
            error < Duration::from_millis(1) || mapped == second.now,
            "{error:?}"
        );
    }
}
