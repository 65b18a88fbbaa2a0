//! Signals to this program, read instead of obeyed: while a command runs, and where a loop serves until it is told to end.

use crate::Error;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{AsFd, BorrowedFd};

/// Interrupt, quit, hang-up and termination, read instead of obeyed while this exists. Threads that are started meanwhile leave
/// them to this one too.
pub struct Signals {
    fd: SignalFd,
    before: SigSet,
}

/// What a signal asks of a program that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// To end.
    End,
    /// To say what it has counted (`SIGUSR1`).
    Report,
}

impl Signals {
    /// Also takes `SIGUSR1`, as [`Order::Report`].
    ///
    /// # Errors
    /// The kernel gives no descriptor.
    pub fn take_orders() -> Result<Signals, Error> {
        Signals::of(&[TAKEN.as_slice(), &[Signal::SIGUSR1]].concat())
    }

    /// The next order that came.
    pub fn next_order(&self) -> Option<Order> {
        self.next().map(|(signal, _)| match signal {
            Signal::SIGUSR1 => Order::Report,
            _ => Order::End,
        })
    }

    /// Takes them, as far as other threads leave them to this one.
    ///
    /// # Errors
    /// The kernel gives no descriptor for them.
    pub fn take() -> Result<Signals, Error> {
        Signals::of(&TAKEN)
    }

    fn of(signals: &[Signal]) -> Result<Signals, Error> {
        let mut wanted = SigSet::empty();
        for &signal in signals {
            wanted.add(signal);
        }
        let fail = |errno| Error::new("cannot take signals", errno);
        let before = SigSet::thread_get_mask().map_err(fail)?;
        let fd =
            SignalFd::with_flags(&wanted, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(fail)?;
        wanted.thread_block().map_err(fail)?;
        Ok(Signals { fd, before })
    }

    /// Whether one has come that nobody has taken.
    pub(crate) fn has_come(&self) -> bool {
        let mut wanted = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        poll(&mut wanted, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    /// Takes those that have come; whether there were any.
    pub(crate) fn have_come(&self) -> bool {
        let mut any = false;
        while self.next().is_some() {
            any = true;
        }
        any
    }

    /// The next signal that came, and whether a process sent it; one of the terminal goes to the command as well.
    pub(crate) fn next(&self) -> Option<(Signal, bool)> {
        loop {
            let information = self.fd.read_signal().ok()??;
            if let Ok(signal) = Signal::try_from(information.ssi_signo.cast_signed()) {
                return Some((signal, information.ssi_code <= 0));
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.have_come();
        let _ = self.before.thread_set_mask();
    }
}

/// Hang-up and termination, as far as this process was started to ignore them: `nohup` does that.
pub struct Ignored(Vec<Signal>);

impl Ignored {
    /// Those that are ignored now.
    pub fn now() -> Ignored {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        let is_ignored = |signal: &Signal| mask.unwrap_or(0) >> (*signal as u32 - 1) & 1 == 1;
        Ignored(ENDING.into_iter().filter(is_ignored).collect())
    }

    /// Ignores them again, after a handler was set for them.
    pub fn again(&self) {
        for &signal in &self.0 {
            // SAFETY: no code of ours runs for a signal that is ignored.
            let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) };
        }
    }
}

/// What ends a program from outside, but for Ctrl-C.
const ENDING: [Signal; 2] = [Signal::SIGHUP, Signal::SIGTERM];

/// Keeps signals back while this exists: one that comes while no command runs waits for the next one, which it then concerns at
/// once. For callers that run several commands, and for threads that are started before the command.
pub struct HeldSignals {
    before: SigSet,
}

/// See [`HeldSignals`].
pub fn hold_signals() -> HeldSignals {
    // A refusal leaves a signal its usual effect.
    let before = SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty());
    let mut wanted = SigSet::empty();
    for signal in TAKEN {
        wanted.add(signal);
    }
    let _ = wanted.thread_block();
    HeldSignals { before }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

const TAKEN: [Signal; 4] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGTERM];
