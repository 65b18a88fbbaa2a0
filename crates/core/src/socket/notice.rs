//! What happened: for drivers that hold the bytes of many connections and do not want to ask each of them.

use super::{Body, ConnectionId, Fd, Stack};
use crate::tcp::Connection;
use alloc::collections::VecDeque;

/// What a driver should look at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something happened to this socket: [`poll`](Stack::poll) has the state it is in.
    Socket(Fd),
    /// This connection is no more, and its bytes can be forgotten.
    Ended(ConnectionId),
}

/// Notices that wait.
#[derive(Debug, Default)]
pub(super) struct Notices {
    wanted: bool,
    waiting: VecDeque<Notice>,
}

impl Stack {
    /// Whether notices are kept; they are not unless asked for. Whoever asks has to take them.
    pub fn keep_notices(&mut self, on: bool) {
        self.notices.wanted = on;
        if !on {
            self.notices.waiting.clear();
            for sock in &mut self.socks {
                sock.noted = false;
            }
        }
    }

    /// The next notice, oldest first; a socket has one at most. Complete after [`poll_transmit`](Stack::poll_transmit) had nothing
    /// more to give.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        loop {
            let notice = self.notices.waiting.pop_front()?;
            let Notice::Socket(fd) = notice else {
                return Some(notice);
            };
            // The descriptor may have been closed since, and even have become another socket: its mark says so.
            if let Ok(index) = self.index_of(fd)
                && core::mem::take(&mut self.socks[index].noted)
            {
                return Some(notice);
            }
        }
    }

    /// A connection that is alive, or whose socket is not closed.
    pub fn connection_by_id(&self, id: ConnectionId) -> Option<&Connection> {
        let sock = self.socks.get(id.slot as usize)?;
        match &sock.body {
            Body::Open(connection) if sock.generation == id.generation => Some(connection),
            Body::Open(_) | Body::Idle | Body::Listen(_) => None,
        }
    }

    /// The connection under `fd`, for a driver that keeps its bytes.
    pub fn connection_id(&self, fd: Fd) -> Option<ConnectionId> {
        let index = self.index_of(fd).ok()?;
        matches!(self.socks[index].body, Body::Open(_)).then(|| self.id_of(index))
    }

    /// Something happened to a socket.
    pub(super) fn note(&mut self, index: usize) {
        let sock = &mut self.socks[index];
        if let Some(fd) = sock.fd
            && self.notices.wanted
            && !core::mem::replace(&mut sock.noted, true)
        {
            self.notices.waiting.push_back(Notice::Socket(fd));
        }
    }

    /// The slot of a connection is about to be freed.
    pub(super) fn note_end(&mut self, index: usize) {
        if self.notices.wanted {
            let id = self.id_of(index);
            self.notices.waiting.push_back(Notice::Ended(id));
        }
    }
}
