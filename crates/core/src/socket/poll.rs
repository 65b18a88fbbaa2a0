//! `poll(2)`.

use super::{Body, Errno, Fd, Stack};
use crate::tcp::State;
use crate::time::Instant;

/// Events of `poll(2)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Events(pub u16);

impl Events {
    /// Data, the end of the stream, or a connection to accept.
    pub const IN: Events = Events(0x1);
    /// Urgent data.
    pub const PRI: Events = Events(0x2);
    /// Room to write.
    pub const OUT: Events = Events(0x4);
    /// An error is pending.
    pub const ERR: Events = Events(0x8);
    /// Both directions are closed.
    pub const HUP: Events = Events(0x10);
    /// Data, as `IN`.
    pub const RDNORM: Events = Events(0x40);
    /// Room, as `OUT`.
    pub const WRNORM: Events = Events(0x100);
    /// The peer closed, or reading was shut down.
    pub const RDHUP: Events = Events(0x2000);

    /// Both.
    #[must_use]
    pub const fn with(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
    pub const fn contains(self, other: Events) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Stack {
    /// `poll(2)` of one socket, without waiting: which of `events`, or of errors and hang-ups, stand.
    pub fn poll(&mut self, now: Instant, fd: Fd, events: Events) -> Result<Events, Errno> {
        let index = self.index_of(fd)?;
        let standing = self.standing(now, index, events);
        let asked = events.with(Events::ERR).with(Events::HUP);
        Ok(Events(standing.0 & asked.0))
    }

    fn standing(&mut self, now: Instant, index: usize, asked: Events) -> Events {
        // What takes long to find is not looked for unless asked for.
        let asks = Events(asked.0 & Events::OUT.with(Events::WRNORM).0);
        let writable = !asks.is_empty() && self.writable(now, index);
        let sock = &self.socks[index];
        let readable = Events::IN.with(Events::RDNORM);
        let mut found = Events::default();
        let state = match &sock.body {
            Body::Listen(queue) => {
                return if queue.ready.is_empty() { found } else { readable };
            }
            Body::Idle if sock.deferred_to.is_some() => {
                return Events::OUT.with(Events::WRNORM); // the first write connects
            }
            Body::Idle => State::Closed,
            Body::Open(connection) => connection.state(),
        };
        if sock.shut_read && sock.shut_write || state == State::Closed {
            found = found.with(Events::HUP);
        }
        if sock.shut_read {
            found = found.with(readable).with(Events::RDHUP);
        }
        if state != State::SynSent && (state != State::SynReceived || sock.fast_open) {
            if let Body::Open(connection) = &sock.body
                && connection.readable().get() >= sock.options.receive_low
            {
                found = found.with(readable);
            }
            if sock.shut_write || writable {
                found = found.with(Events::OUT).with(Events::WRNORM);
            }
        }
        if let Body::Open(connection) = &sock.body
            && sock.urgent.is_some_and(|mark| connection.received() > mark)
        {
            found = found.with(Events::PRI);
        }
        if sock.error.is_some() {
            found = found.with(Events::ERR);
        }
        found
    }
}
