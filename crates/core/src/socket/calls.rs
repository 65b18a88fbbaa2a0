//! `bind`, `listen`, `accept`, `connect`, `shutdown`, `close`.
//!
//! **Source.** Section 2 of the manual for each; the states in which each fails are Linux's (`inet_stream_connect`,
//! `inet_shutdown`, `inet_listen`, `tcp_close`), in RFC 9293's terms 3.10.1 to 3.10.5.

use super::input::Queued;
use super::{Backlog, Body, Called, Errno, Family, Fd, How, Outcome, Phase, Stack, Tuple, canonical};
use crate::tcp::{Connection, FastOpenRequest, Half, Setting, State};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

impl Stack {
    /// `bind(2)`. Port 0 takes a free one.
    pub fn bind(&mut self, _now: Instant, fd: Fd, address: SocketAddr) -> Result<(), Errno> {
        let index = self.index_of(fd)?;
        let sock = &self.socks[index];
        if sock.family == Family::V4 && address.is_ipv6() {
            return Err(Errno::EAFNOSUPPORT);
        }
        let mapped = address.is_ipv6() && canonical(address).is_ipv4();
        if sock.family == Family::V6 && address.is_ipv4() || mapped && sock.options.v6_only {
            return Err(Errno::EINVAL);
        }
        let closed = matches!(sock.body, Body::Idle) || sock.state() == Some(State::Closed);
        if sock.local.is_some() || !closed {
            return Err(Errno::EINVAL);
        }
        let mut address = canonical(address);
        let chosen = address.port() != 0;
        if !address.ip().is_unspecified() && !self.config.addresses.contains(&address.ip()) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        if address.port() == 0 {
            let port = self.free_port().ok_or(Errno::EADDRINUSE)?;
            address.set_port(port);
        } else if self.port_conflict(index, address) {
            return Err(Errno::EADDRINUSE);
        }
        self.take_port(index, address);
        self.socks[index].port_chosen = chosen;
        Ok(())
    }

    /// `listen(2)`; again, it changes the backlog.
    pub fn listen(&mut self, _now: Instant, fd: Fd, backlog: i32) -> Result<(), Errno> {
        let index = self.index_of(fd)?;
        let limit = (backlog as u32).min(self.config.somaxconn);
        let sock = &mut self.socks[index];
        if sock.phase != Phase::Unconnected {
            return Err(Errno::EINVAL);
        }
        match &mut sock.body {
            Body::Listen(queue) => {
                queue.limit = limit;
                return Ok(());
            }
            Body::Open(connection) if connection.state() != State::Closed => return Err(Errno::EINVAL),
            Body::Idle | Body::Open(_) => {}
        }
        let address = match sock.local {
            Some(address) => address,
            None => {
                let any = match sock.family {
                    Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                    Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
                };
                let port = self.free_port().ok_or(Errno::EADDRINUSE)?;
                let address = SocketAddr::new(any, port);
                self.take_port(index, address);
                address
            }
        };
        if self.port_conflict(index, address) {
            return Err(Errno::EADDRINUSE);
        }
        self.socks[index].body = Body::Listen(Box::new(Backlog {
            limit,
            ..Backlog::default()
        }));
        self.join_listeners(index, address.port());
        Ok(())
    }

    /// `accept(2)`: the next complete connection, and who is at its other end.
    pub fn accept(&mut self, _now: Instant, fd: Fd) -> Called<(Fd, SocketAddr)> {
        let index = self.index_of(fd)?;
        let sock = &mut self.socks[index];
        let Body::Listen(queue) = &mut sock.body else {
            return Err(Errno::EINVAL);
        };
        let Some(child) = queue.ready.pop_front() else {
            return if sock.nonblocking {
                Err(Errno::EAGAIN)
            } else {
                Ok(Outcome::Blocked)
            };
        };
        let fd = self.give_fd(child as usize);
        let child = &mut self.socks[child as usize];
        child.parent = None;
        if let Body::Open(connection) = &mut child.body {
            connection.on_accepted();
        }
        let remote = child
            .remote
            .unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
        let remote = super::shown(remote, child.family);
        Ok(Outcome::Done((fd, remote)))
    }

    /// `connect(2)`.
    pub fn connect(&mut self, now: Instant, fd: Fd, address: SocketAddr) -> Called<()> {
        let index = self.index_of(fd)?;
        let sock = &self.socks[index];
        let fresh = match sock.phase {
            Phase::Connected => return Err(Errno::EISCONN),
            Phase::Connecting if sock.deferred_to.is_some() => return Err(Errno::EISCONN),
            Phase::Connecting => false,
            Phase::Unconnected => {
                if matches!(sock.body, Body::Listen(_)) {
                    return Err(Errno::EISCONN);
                }
                if sock.options.fast_open_connect && self.defer_connect(now, index, address)? {
                    return Ok(Outcome::Done(())); // the first write opens
                }
                let wish = self.socks[index].options.fast_open_connect;
                let request = if wish {
                    self.fast_open_request(now, index, address)
                } else {
                    None
                };
                self.open(now, index, address, request)?;
                true
            }
        };
        let sock = &mut self.socks[index];
        match sock.state() {
            Some(State::SynSent | State::SynReceived) => {
                if sock.nonblocking {
                    Err(if fresh {
                        Errno::EINPROGRESS
                    } else {
                        Errno::EALREADY
                    })
                } else {
                    Ok(Outcome::Blocked)
                }
            }
            None | Some(State::Closed) => {
                // Refused, timed out, or reset meanwhile: the socket may try again.
                sock.phase = Phase::Unconnected;
                let error = sock.take_error().or_else(|| sock.soft_error.take());
                Err(error.unwrap_or(Errno::ECONNABORTED))
            }
            Some(_) => {
                sock.phase = Phase::Connected;
                Ok(Outcome::Done(()))
            }
        }
    }

    /// `connect(2)` with `AF_UNSPEC`: dissolves the association; a connection is reset.
    pub fn disconnect(&mut self, now: Instant, fd: Fd) -> Result<(), Errno> {
        let index = self.index_of(fd)?;
        self.dissolve(now, index);
        Ok(())
    }

    /// `shutdown(2)`.
    pub fn shutdown(&mut self, now: Instant, fd: Fd, how: How) -> Result<(), Errno> {
        let index = self.index_of(fd)?;
        let (read, write) = (how != How::Write, how != How::Read);
        let sock = &mut self.socks[index];
        match &mut sock.body {
            Body::Listen(_) => {
                if read {
                    self.dissolve(now, index);
                }
                return Ok(());
            }
            Body::Idle => return Err(Errno::ENOTCONN),
            Body::Open(connection) => match connection.state() {
                State::Closed => {
                    sock.shut_read |= read;
                    sock.shut_write |= write;
                    return Err(Errno::ENOTCONN);
                }
                State::SynSent => {
                    self.dissolve(now, index);
                    return Ok(());
                }
                _ => {
                    sock.shut_read |= read;
                    if write && !sock.shut_write {
                        sock.shut_write = true;
                        connection.shutdown(now, Half::Write);
                    }
                }
            },
        }
        self.touch(now, index);
        Ok(())
    }

    /// `close(2)`. Blocks only if the socket lingers (`SO_LINGER`).
    pub fn close(&mut self, now: Instant, fd: Fd) -> Called<()> {
        let index = self.index_of(fd)?;
        let sock = &mut self.socks[index];
        if sock.lingering
            && let Body::Open(connection) = &sock.body
        {
            let waiting = matches!(
                connection.state(),
                State::FinWait1 | State::Closing | State::LastAck
            );
            if waiting && sock.deadline.is_some_and(|until| now < until) {
                return Ok(Outcome::Blocked);
            }
            sock.deadline = None;
            self.release_fd(fd);
            self.orphan(now, index);
            return Ok(Outcome::Done(()));
        }
        match &mut sock.body {
            Body::Idle => {
                self.release_fd(fd);
                self.free(index);
            }
            Body::Listen(_) => {
                self.dissolve(now, index);
                self.release_fd(fd);
                self.free(index);
            }
            Body::Open(connection) => {
                let state = connection.state();
                let unread = connection.readable().get() > 0;
                sock.shut_read = true;
                sock.shut_write = true;
                if state != State::Closed && (unread || sock.options.linger == Some(0)) {
                    connection.abort(now); // RFC 2525 2.17; SO_LINGER with zero
                } else {
                    connection.close(now);
                    let waiting = matches!(
                        connection.state(),
                        State::FinWait1 | State::Closing | State::LastAck
                    );
                    if let Some(seconds) = sock.options.linger
                        && !sock.nonblocking
                        && waiting
                    {
                        sock.deadline = Some(now + Duration::from_secs(u64::from(seconds)));
                        sock.lingering = true;
                        self.touch(now, index);
                        return Ok(Outcome::Blocked);
                    }
                }
                self.release_fd(fd);
                self.orphan(now, index);
            }
        }
        Ok(Outcome::Done(()))
    }

    /// Names both ends of a connection to be opened.
    pub(super) fn name_ends(&mut self, index: usize, address: SocketAddr) -> Result<Tuple, Errno> {
        let sock = &self.socks[index];
        let family = sock.family;
        if family == Family::V4 && address.is_ipv6() {
            return Err(Errno::EAFNOSUPPORT);
        }
        let remote = canonical(address);
        if family == Family::V6 && sock.options.v6_only && remote.is_ipv4() {
            return Err(Errno::ENETUNREACH);
        }
        if !remote.ip().is_unspecified() && !super::input::is_host(remote.ip()) {
            return Err(Errno::ENETUNREACH); // RFC 9293 MUST-46
        }
        let ip = match sock
            .local
            .map(|local| local.ip())
            .filter(|ip| !ip.is_unspecified())
        {
            Some(ip) => ip,
            None => self.source_for(remote.ip())?,
        };
        if ip.is_ipv4() != remote.is_ipv4() {
            return Err(Errno::ENETUNREACH); // bound to an address of the other family
        }
        let port = match sock.local {
            Some(local) => local.port(),
            None => {
                let port = self.free_port().ok_or(Errno::EADDRNOTAVAIL)?;
                self.take_port(index, SocketAddr::new(ip, port));
                port
            }
        };
        let tuple = (SocketAddr::new(ip, port), remote);
        if self.tuples.contains_key(&tuple) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        Ok(tuple)
    }

    /// An active open; with `request`, by Fast Open.
    pub(super) fn open(
        &mut self,
        now: Instant,
        index: usize,
        address: SocketAddr,
        request: Option<FastOpenRequest>,
    ) -> Result<(), Errno> {
        let tuple = self.name_ends(index, address)?;
        let (local, remote) = tuple;
        let config = self
            .config
            .for_socket(&self.socks[index].options, remote.is_ipv6());
        let mut iss = self.initial_sequence(now, tuple);
        if self.waits.contains_key(&tuple) {
            iss = self.replace_wait(now, tuple).ok_or(Errno::EADDRNOTAVAIL)?;
        }
        let config = Arc::new(config);
        let mut connection = match request {
            Some(request) => Connection::connect_fast_open(now, &config, iss, request),
            None => Connection::connect(now, &config, iss),
        };
        self.give_path(now, remote, &mut connection);
        self.keep_counters(index); // of one that failed before
        let sock = &mut self.socks[index];
        sock.local = Some(local);
        sock.remote = Some(remote);
        sock.body = Body::Open(Box::new(connection));
        sock.phase = Phase::Connecting;
        sock.reset_stream();
        self.tuples.insert(tuple, index as u32);
        self.touch(now, index);
        Ok(())
    }

    /// Gives a new connection what others to the same host learnt (RFC 9040 6.1), if it asks.
    pub(super) fn give_path(&self, now: Instant, remote: SocketAddr, connection: &mut Connection) {
        let config = connection.config();
        if config.remembers_paths() {
            let known = self
                .paths
                .recall(now, canonical(remote).ip(), config.spreading_memory);
            connection.set(now, Setting::Path(known));
        }
    }

    /// Back to an unconnected socket; whatever it had is ended, with a reset where the peer knows of it.
    fn dissolve(&mut self, now: Instant, index: usize) {
        self.unlink(index);
        self.keep_counters(index);
        self.leave_listeners(index);
        let sock = &mut self.socks[index];
        let body = core::mem::replace(&mut sock.body, Body::Idle);
        sock.phase = Phase::Unconnected;
        sock.deadline = None;
        sock.lingering = false;
        let names = sock.local.zip(sock.remote);
        sock.reset_stream();
        match body {
            Body::Idle => {}
            Body::Listen(queue) => {
                // Half-open ones are forgotten, complete ones reset.
                for sock in &mut self.socks {
                    if sock.fast_open_of == Some(index as u32) {
                        sock.fast_open_of = None;
                    }
                }
                let children: Vec<usize> = (0..self.socks.len())
                    .filter(|&child| self.socks[child].used && self.socks[child].parent == Some(index as u32))
                    .collect();
                for child in children {
                    let ready = queue.ready.contains(&(child as u32));
                    if ready && let Body::Open(connection) = &mut self.socks[child].body {
                        connection.abort(now);
                    }
                    self.socks[child].parent = None;
                    if ready {
                        self.orphan(now, child);
                    } else {
                        self.free(child);
                    }
                }
            }
            Body::Open(mut connection) => {
                if connection.state() == State::SynSent {
                    sock.error = Some(Errno::ECONNRESET);
                }
                connection.abort(now);
                // What follows on this socket leaves after the reset.
                self.output
                    .retain(|queued| !matches!(queued, Queued::Connection(of) if *of as usize == index));
                self.socks[index].queued = false;
                if let Some((local, remote)) = names {
                    while let Some(transmit) = connection.poll_transmit(now) {
                        self.queue_raw(local, remote, transmit.segment, index);
                    }
                }
            }
        }
        self.socks[index].remote = None;
        self.disarm(index);
    }
}
