//! Sleeping until something is due, on time.
//!
//! A sleep is asked to end as much earlier as this machine has ended sleeps late on average, 50 us at most; what is then left is
//! spent awake, an eighth of the time at most.

use crate::{Clock, Error};
use fleetfoot_core::time::{Duration, Instant};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A descriptor that is waited for until it can be read from, or has an error.
pub(crate) fn readable(fd: &impl AsFd) -> libc::pollfd {
    libc::pollfd {
        fd: fd.as_fd().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }
}

/// How late sleeps end, and how long may be waited awake.
#[derive(Default)]
pub(crate) struct Wake {
    /// How much later than asked for sleeps have ended, on average (ns).
    lead: u64,
    /// Time that may be spent awake (ns), as of `at`.
    allowance: u64,
    at: Instant,
}

impl Wake {
    /// Waits until one of `wanted` ([`readable`]) is ready or until `due`, whatever comes first: whether one is ready. What is left of a wait is
    /// given up when something `comes`.
    ///
    /// # Errors
    /// The kernel does not let this process wait.
    pub(crate) fn wait(
        &mut self,
        clock: &Clock,
        due: Option<Instant>,
        wanted: &mut [libc::pollfd],
        comes: impl Fn() -> bool,
    ) -> Result<bool, Error> {
        let began = clock.now();
        let earlier = self.earlier(began);
        let asked = due.map(|due| due.since(began).saturating_sub(earlier));
        let left = asked.map(|left| {
            let left = left.as_nanos();
            libc::timespec {
                tv_sec: (left / 1_000_000_000) as _,
                tv_nsec: (left % 1_000_000_000) as libc::c_long,
            }
        });
        let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the descriptors are live values, as many as is said; the time is a live value or null, and there is no mask of signals.
        let count = unsafe {
            libc::ppoll(
                wanted.as_mut_ptr(),
                wanted.len() as libc::nfds_t,
                left,
                std::ptr::null(),
            )
        };
        if count < 0 {
            let cause = io::Error::last_os_error();
            for one in wanted {
                one.revents = 0;
            }
            return match cause.kind() {
                io::ErrorKind::Interrupted => Ok(false),
                _ => Err(Error::new("cannot wait for frames", cause)),
            };
        }
        if count > 0 {
            return Ok(true);
        }
        if let (Some(due), Some(asked)) = (due, asked) {
            let mut now = clock.now();
            if asked > Duration::ZERO {
                self.woke(now.since(began + asked));
            }
            let woke = now;
            while now < due && !comes() {
                std::hint::spin_loop();
                now = clock.now();
            }
            self.spent(now.since(woke));
        }
        Ok(false)
    }

    /// How much earlier than what is due a sleep is to end that begins at `now`.
    fn earlier(&mut self, now: Instant) -> Duration {
        let passed = now.since(self.at).as_nanos();
        self.at = now;
        self.allowance = (self.allowance + passed / AWAKE).min(LONGEST_AWAKE);
        if self.allowance < self.lead {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.lead)
    }

    /// A sleep ended so late.
    fn woke(&mut self, late: Duration) {
        let late = late.as_nanos().min(LONGEST_LEAD);
        self.lead = (self.lead * 15 + late) / 16;
    }

    /// So much time was spent awake.
    fn spent(&mut self, span: Duration) {
        self.allowance = self.allowance.saturating_sub(span.as_nanos());
    }
}

/// A sleep is asked to end this much earlier at most (ns).
const LONGEST_LEAD: u64 = 50_000;
/// One part in so many of the time may be spent awake.
const AWAKE: u64 = 8;
/// Time awake that is saved up at most (ns).
const LONGEST_AWAKE: u64 = 5_000_000;
