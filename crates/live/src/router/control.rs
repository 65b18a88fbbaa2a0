//! Orders to a router that runs.

use super::{Config, Snapshot};
use crate::Error;
use crate::signals::Signals;
use nix::sys::signal::Signal;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::Sender;

/// What a router is told to do.
pub enum Order {
    /// To go on with another file, or with the one it has, because the other cannot be followed: why.
    Reload(Result<Box<Config>, String>),
    /// To send what was counted so far.
    Report(Sender<Snapshot>),
    /// To end.
    Stop,
}

/// Where orders come from.
pub trait Orders {
    /// Can be read from when an order waits.
    fn fd(&self) -> BorrowedFd<'_>;

    /// The next order, if one waits.
    fn next(&mut self) -> Option<Order>;
}

/// Orders by signals: SIGHUP to reload, SIGINT, SIGTERM or SIGQUIT to end. The signals are taken while this exists.
pub struct SignalOrders<Read> {
    signals: Signals,
    read: Read,
}

impl<Read: FnMut() -> Result<Config, String>> SignalOrders<Read> {
    /// Takes the signals; `read` reads the file again.
    ///
    /// # Errors
    /// The kernel does not give them.
    pub fn take(read: Read) -> Result<SignalOrders<Read>, Error> {
        Ok(SignalOrders {
            signals: Signals::take()?,
            read,
        })
    }
}

impl<Read: FnMut() -> Result<Config, String>> Orders for SignalOrders<Read> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    fn next(&mut self) -> Option<Order> {
        let (signal, _) = self.signals.next()?;
        Some(match signal {
            Signal::SIGHUP => Order::Reload((self.read)().map(Box::new)),
            _ => Order::Stop,
        })
    }
}
