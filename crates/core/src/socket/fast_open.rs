//! TCP Fast Open at the level of calls: `MSG_FASTOPEN`, `TCP_FASTOPEN_CONNECT`, `TCP_FASTOPEN`.
//!
//! **Source.** RFC 7413 4, appendix A (the calls); the order of errors is Linux's (`tcp_sendmsg_fastopen`,
//! `tcp_fastopen_defer_connect`, `tcp_try_fastopen`). The protocol is in `tcp::fastopen`.
//! **Deviations.** A Fast Open connection that was reset leaves the queue at once; Linux counts it for a minute.

use super::{Body, Called, Errno, Outcome, Phase, SendFlags, Sent, Stack, Tuple};
use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::tcp::{
    Accepted, Config, Connection, FastOpenAnswer, FastOpenKey, FastOpenRequest, State, WriteFlags,
};
use crate::time::Instant;
use crate::units::Bytes;
use alloc::sync::Arc;
use core::net::SocketAddr;

impl Stack {
    /// What an open by Fast Open to `address` begins with; `None`: an ordinary open.
    pub(super) fn fast_open_request(
        &self,
        now: Instant,
        index: usize,
        address: SocketAddr,
    ) -> Option<FastOpenRequest> {
        if !self.config.fast_open.client {
            return None;
        }
        let free =
            self.config.fast_open.client_without_cookie || self.socks[index].options.fast_open_no_cookie;
        self.peers.request(now, super::canonical(address).ip(), !free)
    }

    /// `connect` with `TCP_FASTOPEN_CONNECT`: if data may go on the SYN, nothing is sent yet.
    pub(super) fn defer_connect(
        &mut self,
        now: Instant,
        index: usize,
        address: SocketAddr,
    ) -> Result<bool, Errno> {
        let request = self.fast_open_request(now, index, address);
        let usable = request.is_some_and(|request| request.option.is_none_or(|cookie| !cookie.is_request()));
        if !usable {
            return Ok(false);
        }
        let (local, remote) = self.name_ends(index, address)?;
        let sock = &mut self.socks[index];
        sock.local = Some(local);
        sock.remote = Some(remote);
        sock.body = Body::Idle;
        sock.reset_stream();
        sock.deferred_to = Some(address);
        sock.phase = Phase::Connecting;
        Ok(true)
    }

    /// `send` with `MSG_FASTOPEN`, or the first one after a deferred `connect`. `None`: go on as with any other.
    pub(super) fn send_fast_open(
        &mut self,
        now: Instant,
        index: usize,
        len: u64,
        flags: SendFlags,
        to: Option<SocketAddr>,
    ) -> Option<Called<Sent>> {
        let sock = &self.socks[index];
        let deferred = sock.deferred_to;
        if deferred.is_none() {
            if !self.config.fast_open.client {
                return Some(Err(Errno::EOPNOTSUPP));
            }
            match (sock.phase, sock.state()) {
                (Phase::Connected, _) if sock.fast_opening => return None, // it goes on where it slept
                (Phase::Connected, _) => return Some(Err(Errno::EISCONN)),
                (Phase::Connecting, Some(State::SynSent | State::SynReceived)) if sock.fast_opening => {
                    return None;
                }
                (Phase::Connecting, Some(State::SynSent | State::SynReceived)) => {
                    return Some(Err(Errno::EALREADY));
                }
                (Phase::Connecting, Some(State::Closed) | None) => return None,
                (Phase::Connecting, Some(_)) => {
                    self.socks[index].phase = Phase::Connected;
                    return None;
                }
                (Phase::Unconnected, _) if matches!(sock.body, Body::Listen(_)) => {
                    return Some(Err(Errno::EISCONN));
                }
                (Phase::Unconnected, _) => {}
            }
        }
        let Some(address) = deferred.or(to) else {
            return Some(Err(Errno::EINVAL));
        };
        let request = self.fast_open_request(now, index, address);
        if let Err(errno) = self.open(now, index, address, request) {
            return Some(Err(errno));
        }
        let taken = self.put_on_syn(now, index, len);
        let sock = &mut self.socks[index];
        if sock.nonblocking || flags.dont_wait {
            return Some(if taken > 0 {
                Ok(Outcome::Done(Sent { start: 0, len: taken }))
            } else {
                Err(Errno::EINPROGRESS)
            });
        }
        sock.writing = taken;
        sock.fast_opening = true;
        if let Body::Open(connection) = &mut sock.body {
            connection.expect_data(len > taken);
        }
        Some(Ok(Outcome::Blocked))
    }

    /// Writes what goes on the SYN.
    fn put_on_syn(&mut self, now: Instant, index: usize, len: u64) -> u64 {
        let sock = &mut self.socks[index];
        let Body::Open(connection) = &mut sock.body else {
            return 0;
        };
        let taken = len.min(u64::from(connection.syn_space()));
        if taken > 0 {
            sock.memory.buffer = sock.memory.buffer.max(1);
            sock.memory.take(taken, taken, 0, 0, 0);
            let _ = connection.write(now, Bytes(taken), WriteFlags::default());
            sock.written = taken;
        }
        self.touch(now, index);
        taken
    }

    /// Remembers what the open of a connection taught about its server.
    pub(super) fn learn_fast_open(&mut self, now: Instant, index: usize) {
        let sock = &mut self.socks[index];
        if let (Body::Open(connection), Some(remote)) = (&mut sock.body, sock.remote)
            && let Some(outcome) = connection.take_fast_open_outcome()
        {
            self.peers.learn(now, remote.ip(), &outcome);
        }
    }

    /// The connection a SYN opens at a listener, and the data taken if Fast Open lets it in at once.
    pub(super) fn answer_fast_open(
        &self,
        now: Instant,
        index: usize,
        tuple: Tuple,
        syn: &Segment,
        config: &Arc<Config>,
        iss: SeqNumber,
    ) -> (Connection, Option<Accepted>) {
        let options = &self.socks[index].options;
        let settings = &self.config.fast_open;
        let (limit, waiting) = match &self.socks[index].body {
            Body::Listen(queue) if settings.every_listener && options.fast_open_queue == 0 => {
                (queue.limit, queue.fast_open)
            }
            Body::Listen(queue) => (options.fast_open_queue, queue.fast_open),
            Body::Idle | Body::Open(_) => (0, 0),
        };
        if !settings.server || waiting >= limit {
            return (Connection::accept(now, config, iss, syn), None);
        }
        let free = (settings.server_without_cookie || options.fast_open_no_cookie) && syn.payload > 0;
        match FastOpenKey::new(settings.key).judge(syn, tuple.1.ip(), tuple.0.ip(), !free) {
            FastOpenAnswer::Ordinary => (Connection::accept(now, config, iss, syn), None),
            FastOpenAnswer::Grant(cookie) => {
                let mut connection = Connection::accept(now, config, iss, syn);
                connection.grant_cookie(cookie);
                (connection, None)
            }
            FastOpenAnswer::Open => {
                let (connection, accepted) = Connection::accept_fast_open(now, config, iss, syn);
                (connection, Some(accepted))
            }
        }
    }

    /// A Fast Open connection may be accepted before its handshake is over.
    pub(super) fn offer_fast_open(&mut self, index: usize, child: usize) {
        self.socks[child].fast_open_of = Some(index as u32);
        self.socks[child].fast_open = true;
        if let Body::Listen(queue) = &mut self.socks[index].body {
            queue.half_open = queue.half_open.saturating_sub(1);
            queue.fast_open += 1;
            queue.ready.push_back(child as u32);
        }
        self.note(index);
    }

    /// Its handshake is over, or it has failed: another may come.
    pub(super) fn settle_fast_open(&mut self, index: usize) {
        if let Some(listener) = self.socks[index].fast_open_of.take()
            && let Body::Listen(queue) = &mut self.socks[listener as usize].body
        {
            queue.fast_open = queue.fast_open.saturating_sub(1);
        }
    }
}
