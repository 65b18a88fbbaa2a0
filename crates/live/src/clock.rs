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
        // A refusal costs precision only.
        let _ = nix::sys::prctl::set_timerslack(1);
        let since_1970 = time::SystemTime::now().duration_since(time::UNIX_EPOCH);
        Clock {
            zero: time::Instant::now(),
            zero_unix_ns: since_1970.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)),
        }
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

    /// Reads this clock and the wall clock, by which the kernel stamps frames, at the same moment.
    pub(crate) fn stamps(&self) -> Stamps {
        let wall = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |time| {
            (time.tv_sec() as u64)
                .wrapping_mul(1_000_000_000)
                .wrapping_add(time.tv_nsec() as u64)
        });
        Stamps {
            now: self.now(),
            wall,
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
}

impl Stamps {
    /// When a frame came that has the stamp `wall`. A stamp in the future, or one so old that the wall clock must have been set
    /// since, is taken as now.
    pub(crate) fn arrival(&self, wall: u64) -> Instant {
        let age = self.wall.saturating_sub(wall);
        if age > OLDEST {
            return self.now;
        }
        Instant::from_nanos(self.now.as_nanos().saturating_sub(age))
    }
}

/// No frame waits longer than this in a socket, unless this process was stopped (ns).
const OLDEST: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::{Clock, Stamps};
    use fleetfoot_core::time::{Duration, Instant};

    #[test]
    fn a_stamp_is_mapped_by_its_age_and_a_step_of_the_wall_clock_is_not() {
        let stamps = Stamps {
            now: Instant::from_millis(500),
            wall: 1_800_000_000_000_000_000,
        };
        let at = |offset: i64| stamps.arrival(stamps.wall.wrapping_add_signed(offset));
        assert_eq!(at(-3_000_000), Instant::from_millis(497));
        assert_eq!(at(5_000), stamps.now, "a stamp in the future");
        assert_eq!(at(-3_600_000_000_000), stamps.now, "the wall clock was set");
    }

    #[test]
    fn both_clocks_are_read_together() {
        let clock = Clock::start();
        let first = clock.stamps();
        clock.sleep_until(first.now + Duration::from_millis(2));
        let second = clock.stamps();
        // What the second reading makes of a stamp taken at the first is the first reading; the wall clock may be slewed meanwhile.
        let mapped = second.arrival(first.wall);
        let error = mapped.since(first.now).max(first.now.since(mapped));
        assert!(
            error < Duration::from_millis(1) || mapped == second.now,
            "{error:?}"
        );
    }
}
