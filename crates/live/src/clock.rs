use fleetfoot_core::time::{Duration, Instant};
use std::time;

/// The one clock: nanoseconds since it was made, monotonic.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: time::Instant,
}

impl Clock {
    /// A clock that shows zero now. Also asks the kernel for exact sleeps of this thread (timer slack 1 ns; its default of 50 us
    /// would be added to every wait).
    pub fn start() -> Clock {
        // A refusal costs precision only.
        let _ = nix::sys::prctl::set_timerslack(1);
        Clock {
            zero: time::Instant::now(),
        }
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
