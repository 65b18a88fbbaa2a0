//! One place to sleep: descriptors and a deadline, exact to the clock's resolution.

use crate::{Clock, Error};
use fleetfoot_core::time::Instant;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::AsFd;

/// Sleeps until a descriptor can be read or written, or a time has come. A timer of the kernel gives the time (epoll alone
/// counts milliseconds).
pub struct Waiter {
    epoll: Epoll,
    timer: TimerFd,
    /// When the timer goes off.
    armed: Option<Instant>,
    events: Vec<EpollEvent>,
}

impl Waiter {
    /// Waits for nothing yet.
    ///
    /// # Errors
    /// The kernel gives no descriptors.
    pub fn new() -> Result<Waiter, Error> {
        let fail = |errno| Error::new("cannot make a place to wait", errno);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(fail)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(fail)?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, TIMER);
        epoll.add(&timer, event).map_err(fail)?;
        Ok(Waiter {
            epoll,
            timer,
            armed: None,
            events: vec![EpollEvent::empty(); 256],
        })
    }

    /// From now on waits for `fd` to be readable, too; `token` is what then is reported. It ends with the descriptor.
    ///
    /// # Errors
    /// `fd` is no descriptor that can be waited for, or is waited for already.
    pub fn add(&self, fd: &impl AsFd, token: u64) -> Result<(), Error> {
        self.add_for(fd, token, EpollFlags::EPOLLIN)
    }

    /// From now on waits for any of `what` on `fd`, too; `token` is what then is reported.
    ///
    /// # Errors
    /// `fd` is no descriptor that can be waited for, or is waited for already.
    pub fn add_for(&self, fd: &impl AsFd, token: u64, what: EpollFlags) -> Result<(), Error> {
        self.epoll
            .add(fd, EpollEvent::new(what, token))
            .map_err(|errno| Error::new("cannot wait for a descriptor", errno))
    }

    /// From now on no longer waits for `fd`.
    ///
    /// # Errors
    /// `fd` was not waited for.
    pub fn remove(&self, fd: &impl AsFd) -> Result<(), Error> {
        self.epoll
            .delete(fd)
            .map_err(|errno| Error::new("cannot stop waiting for a descriptor", errno))
    }

    /// Sleeps until `deadline`, or without one until something is there; adds the tokens of what is to `ready`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn wait(
        &mut self,
        clock: &Clock,
        deadline: Option<Instant>,
        ready: &mut Vec<u64>,
    ) -> Result<(), Error> {
        let fail = |errno| Error::new("cannot wait", errno);
        let now = clock.now();
        let due = deadline.is_some_and(|deadline| deadline <= now);
        if !due && deadline != self.armed {
            match deadline {
                Some(deadline) => {
                    let left = deadline.since(now).as_nanos();
                    let left = TimeSpec::new((left / 1_000_000_000) as i64, (left % 1_000_000_000) as i64);
                    self.timer
                        .set(Expiration::OneShot(left), TimerSetTimeFlags::empty())
                        .map_err(fail)?;
                }
                None => self.timer.unset().map_err(fail)?,
            }
            self.armed = deadline;
        }
        let timeout = if due {
            EpollTimeout::ZERO
        } else {
            EpollTimeout::NONE
        };
        let count = match self.epoll.wait(&mut self.events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(fail(errno)),
        };
        for event in &self.events[..count] {
            if event.data() == TIMER {
                // Read, so that it is ready only once.
                match self.timer.wait() {
                    Ok(()) | Err(Errno::EAGAIN | Errno::EINTR) => self.armed = None,
                    Err(errno) => return Err(fail(errno)),
                }
            } else {
                ready.push(event.data());
            }
        }
        Ok(())
    }
}

/// The timer's own token.
const TIMER: u64 = u64::MAX;
