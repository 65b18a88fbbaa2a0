//! Packets, ICMP and time in; packets out.
//!
//! **Source.** RFC 9293 3.10.7 (which connection, listener or nobody a segment is for), 3.9.2.2 (ICMP); RFC 5461 and
//! Linux's table for the errors ICMP stands for; RFC 1122 4.2.2.13 for data after close.
//! **Deviations.** None known.

use super::{Body, ConnectionId, Errno, Fd, Stack, Tuple, canonical};
use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::tcp::{ConnectionError, Event, Icmp, NetworkError, Setting, State, listener};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;

/// Addresses of a packet; traffic class, ECN and time to live are in its [`Segment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
}

/// A packet to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Addresses.
    pub header: Header,
    /// Headers.
    pub segment: Segment,
    /// Whose it is; resets and the like are nobody's.
    pub connection: Option<ConnectionId>,
    /// Stream offsets of the payload.
    pub range: Range<u64>,
}

/// What became of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Whose it was.
    pub connection: Option<ConnectionId>,
    /// The socket of that connection, if a process holds it.
    pub fd: Option<Fd>,
    /// Stream offset of the payload's first byte, perhaps before all that was taken.
    pub origin: i64,
    /// Stream offsets taken from the payload: the driver keeps these bytes.
    pub accepted: Range<u64>,
    /// Further pieces of it, where it went over several holes.
    pub further: Vec<Range<u64>>,
    /// Stream offset up to which everything has arrived.
    pub in_order: u64,
}

/// An ICMP message about a packet sent from here, as RFC 792 numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IcmpError {
    /// Type, as in IPv4: 3 unreachable, 4 source quench, 5 redirect, 11 time exceeded, 12 parameter problem; or in ICMPv6.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Next-hop MTU of "fragmentation needed" (RFC 1191 4), 0 if not given.
    pub mtu: u32,
    /// Sequence number of the packet it quotes.
    pub seq: SeqNumber,
}

/// What waits to be sent.
pub(super) enum Queued {
    /// Ask this connection.
    Connection(u32),
    /// This packet.
    Raw(Box<(Header, Segment)>),
}

impl Stack {
    /// A packet arrived.
    pub fn on_packet(&mut self, now: Instant, header: &Header, segment: &Segment) -> Arrival {
        let local = canonical(header.destination);
        let remote = canonical(header.source);
        if !self.config.addresses.contains(&local.ip()) || segment.flags.contains(Flags::CORRUPT) {
            return Arrival::default();
        }
        if let Some(&index) = self.tuples.get(&(local, remote)) {
            return self.deliver(now, index as usize, segment);
        }
        if remote == local || !is_host(remote.ip()) {
            return Arrival::default(); // LAND; RFC 9293 MUST-63: from no host's address
        }
        let mut iss = None;
        if self.waits.contains_key(&(local, remote)) {
            iss = self.on_waiting(now, (local, remote), segment);
            if iss.is_none() {
                return Arrival::default();
            }
        }
        match self.listener_for(local) {
            Some(index) => self.on_listen(now, index, (local, remote), segment, iss),
            None => {
                self.answer(local, remote, listener::on_closed(segment), None);
                Arrival::default()
            }
        }
    }

    pub(super) fn answer(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        answer: listener::Answer,
        sock: Option<usize>,
    ) {
        if let listener::Answer::Reset(segment) = answer {
            let index = sock.unwrap_or(usize::MAX);
            self.queue_raw(local, remote, segment, index);
        }
    }

    /// Queues a packet that no connection sends, with the traffic class and time to live of socket `index`.
    pub(super) fn queue_raw(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        mut segment: Segment,
        index: usize,
    ) {
        let sock = self.socks.get(index);
        segment.ttl = sock.map_or(self.config.ttl, |sock| sock.options.ttl);
        segment.tos = segment.tos & 3 | sock.map_or(0, |sock| sock.options.tos & !3);
        self.queue_answer((local, remote), segment);
    }

    /// Queues a packet that no connection sends.
    pub(super) fn queue_answer(&mut self, tuple: Tuple, mut segment: Segment) {
        let header = Header {
            source: tuple.0,
            destination: tuple.1,
        };
        if tuple.0.is_ipv6() && segment.overhead < 60 {
            segment.overhead += 20; // resets and answers of TIME-WAIT are made for IPv4
        }
        self.output.push_back(Queued::Raw(Box::new((header, segment))));
    }

    /// Queues a packet that a connection made, with the marks of socket `index`.
    pub(super) fn queue_built(&mut self, tuple: Tuple, mut segment: Segment, index: usize) {
        segment.ttl = self.socks[index].options.ttl;
        segment.tos = segment.tos & 3 | self.socks[index].options.tos & !3;
        let header = Header {
            source: tuple.0,
            destination: tuple.1,
        };
        self.output.push_back(Queued::Raw(Box::new((header, segment))));
    }

    /// A segment for a connection.
    pub(super) fn deliver(&mut self, now: Instant, index: usize, segment: &Segment) -> Arrival {
        let parent = self.socks[index].parent.map(|parent| parent as usize);
        let full = parent.is_some_and(|parent| match &self.socks[parent].body {
            Body::Listen(queue) => queue.is_full(),
            Body::Idle | Body::Open(_) => false,
        });
        let sock = &mut self.socks[index];
        let (Some(local), Some(remote)) = (sock.local, sock.remote) else {
            return Arrival::default();
        };
        let Body::Open(connection) = &mut sock.body else {
            return Arrival::default();
        };
        let before = connection.state();
        let acked = segment.flags.contains(Flags::ACK);
        if before == State::SynReceived
            && full
            && !sock.fast_open
            && acked
            && !segment.flags.intersects(Flags::RST.with(Flags::SYN))
        {
            self.refused.accept_queue += 1;
            return Arrival::default(); // the accept queue is full: the peer will send it again
        }
        if before == State::SynReceived
            && parent.is_some()
            && !sock.fast_open
            && segment.sequence_len() == 0
            && acked
            && !segment.flags.contains(Flags::RST)
            && connection.detail(now).timeouts_in_row < sock.options.defer_accept
        {
            connection.defer(sock.options.defer_accept);
            return Arrival::default(); // TCP_DEFER_ACCEPT: nothing to read yet
        }
        if sock.shut_read
            && sock.shut_write
            && matches!(before, State::FinWait1 | State::FinWait2)
            && !segment.flags.intersects(Flags::RST.with(Flags::SYN))
            && connection.brings_data(segment)
        {
            // RFC 1122 4.2.2.13: data for a socket that nobody reads.
            connection.abort(now);
            while connection.poll_transmit(now).is_some() {}
            while connection.poll_event().is_some() {}
            if sock.fd.is_some() {
                sock.error = Some(Errno::ECONNRESET);
            }
            self.answer(local, remote, listener::on_closed(segment), Some(index));
            self.touch(now, index);
            return Arrival::default();
        }
        let accepted = connection.on_segment(now, segment);
        let origin = connection.payload_offset(segment);
        let mut further = Vec::new();
        while let Some(piece) = connection.poll_accepted() {
            further.push(piece);
        }
        let reset = segment.flags.contains(Flags::RST)
            && matches!(before, State::LastAck | State::Closing)
            && connection.state() == State::Closed;
        if reset && sock.fd.is_some() {
            sock.error = Some(Errno::ECONNRESET); // RFC 9293 says nothing here; Linux does
        }
        self.on_events(now, index, before);
        self.touch(now, index);
        Arrival {
            connection: Some(self.id_of(index)),
            fd: self.socks[index].fd,
            origin,
            accepted: accepted.start..accepted.end,
            further,
            in_order: accepted.in_order,
        }
    }

    /// What happened to a connection, as sockets see it.
    fn on_events(&mut self, now: Instant, index: usize, before: State) {
        let sock = &mut self.socks[index];
        let Body::Open(connection) = &mut sock.body else {
            return;
        };
        let mut established = false;
        let mut failed = false;
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Established => {
                    established = true;
                    sock.established = true;
                }
                Event::PeerClosed => {
                    sock.shut_read = true;
                    sock.done = true;
                }
                Event::Failed(error) => {
                    failed = true;
                    sock.shut_read = true;
                    sock.shut_write = true;
                    let errno = match error {
                        ConnectionError::Refused if before == State::SynReceived => Some(Errno::ECONNRESET),
                        ConnectionError::Refused => Some(Errno::ECONNREFUSED),
                        // RFC 9293 3.10.7.4; after the peer's FIN there is nothing to read any more, only to write.
                        ConnectionError::Reset if before == State::CloseWait => Some(Errno::EPIPE),
                        ConnectionError::Reset => Some(Errno::ECONNRESET),
                        ConnectionError::TimedOut => Some(sock.soft_error.take().unwrap_or(Errno::ETIMEDOUT)),
                        ConnectionError::Aborted => None,
                        ConnectionError::Network(error) => Some(errno_of(error)),
                    };
                    sock.error = errno.or(sock.error);
                }
                Event::Closed => {
                    sock.shut_read = true;
                    sock.shut_write = true;
                }
                Event::SoftError => {
                    let error = connection.take_soft_error().map(errno_of);
                    if sock.options.receive_errors {
                        sock.error = error.or(sock.error); // `IP_RECVERR`
                    } else {
                        sock.soft_error = error.or(sock.soft_error);
                    }
                }
                Event::Urgent => sock.urgent = connection.urgent_mark(),
                Event::PathFound => {
                    if let (Some(remote), Some(found)) = (sock.remote, connection.take_path()) {
                        self.paths.learn(now, canonical(remote).ip(), found);
                    }
                }
                Event::Readable | Event::Writable | Event::SendClosed | Event::Retransmitting => {}
            }
        }
        if connection.state() == State::Closed {
            self.unlink(index); // the next segment, perhaps a SYN, is not for it
        }
        if established {
            self.learn_fast_open(now, index);
        }
        if established || failed {
            self.settle_fast_open(index);
        }
        let sock = &mut self.socks[index];
        let Body::Open(connection) = &mut sock.body else {
            return;
        };
        let Some(parent) = sock.parent else {
            if connection.state() == State::FinWait2 && before != State::FinWait2 && sock.fd.is_none() {
                self.enter_fin_wait_2(now, index);
            }
            return;
        };
        if let Body::Listen(queue) = &mut self.socks[parent as usize].body {
            if queue.ready.contains(&(index as u32)) {
                // Fast Open let it in before.
            } else if established {
                queue.half_open = queue.half_open.saturating_sub(1);
                queue.ready.push_back(index as u32);
                self.note(parent as usize);
            } else if failed {
                queue.half_open = queue.half_open.saturating_sub(1);
                self.socks[index].parent = None;
            }
        }
    }

    /// Nobody holds the connection any more.
    pub(super) fn orphan(&mut self, now: Instant, index: usize) {
        self.socks[index].error = None;
        if self.socks[index].state() == Some(State::FinWait2) {
            self.enter_fin_wait_2(now, index);
        }
        self.touch(now, index);
    }

    /// A closed socket waits for the peer's FIN as a record (`retire`), unless `TCP_LINGER2` says not to.
    fn enter_fin_wait_2(&mut self, now: Instant, index: usize) {
        let sock = &mut self.socks[index];
        if sock.options.linger2.is_some_and(|seconds| seconds < 0)
            && let Body::Open(connection) = &mut sock.body
        {
            connection.abort(now);
        }
    }

    /// An ICMP message about a packet that went from `header.source` to `header.destination`.
    pub fn on_icmp(&mut self, now: Instant, header: &Header, icmp: &IcmpError) {
        let tuple = (canonical(header.source), canonical(header.destination));
        let Some(&index) = self.tuples.get(&tuple) else {
            return;
        };
        let index = index as usize;
        let v6 = header.source.is_ipv6() && !canonical(header.source).is_ipv4();
        let Some(kind) = crate::wire::kind_of(v6, icmp.kind, icmp.code, icmp.mtu) else {
            return;
        };
        let Body::Open(connection) = &mut self.socks[index].body else {
            return;
        };
        let before = connection.state();
        connection.on_icmp(now, &Icmp { kind, seq: icmp.seq });
        self.on_events(now, index, before);
        self.touch(now, index);
    }

    /// When `on_timeout` wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let sockets = self.timers.first().map(|&(at, _)| at);
        let waits = self.wait_timers.first().map(|&(at, _)| at);
        [sockets, waits].into_iter().flatten().min()
    }

    /// A timer expired; call at or after `poll_timeout`.
    pub fn on_timeout(&mut self, now: Instant) {
        self.expire_waits(now);
        let due: Vec<u32> = self
            .timers
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|&(_, index)| index)
            .collect();
        for index in due {
            let index = index as usize;
            let sock = &mut self.socks[index];
            let expired = sock.deadline.is_some_and(|at| at <= now);
            let Body::Open(connection) = &mut sock.body else {
                self.disarm(index);
                continue;
            };
            let before = connection.state();
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.on_timeout(now);
            }
            if expired {
                sock.deadline = None; // lingering is over
            }
            self.on_events(now, index, before);
            self.touch(now, index);
        }
    }

    /// The next packet to send now; ask until `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        loop {
            match self.output.front()? {
                Queued::Raw(_) => {
                    if let Some(Queued::Raw(packet)) = self.output.pop_front() {
                        return Some(Packet {
                            header: packet.0,
                            segment: packet.1,
                            connection: None,
                            range: 0..0,
                        });
                    }
                }
                &Queued::Connection(index) => {
                    let index = index as usize;
                    if let Some(packet) = self.transmit(now, index) {
                        return Some(packet);
                    }
                    self.output.pop_front();
                    self.socks[index].queued = false;
                    self.drained(now, index);
                }
            }
        }
    }

    fn transmit(&mut self, now: Instant, index: usize) -> Option<Packet> {
        let connection_id = self.id_of(index);
        let sock = &mut self.socks[index];
        let Body::Open(connection) = &mut sock.body else {
            return None;
        };
        let (local, remote) = (sock.local?, sock.remote?);
        let transmit = connection.poll_transmit(now)?;
        let mut segment = transmit.segment;
        segment.ttl = sock.options.ttl;
        segment.tos = segment.tos & 3 | sock.options.tos & !3;
        Some(Packet {
            header: Header {
                source: local,
                destination: remote,
            },
            segment,
            connection: Some(connection_id),
            range: transmit.range(),
        })
    }

    /// Everything a connection had to say was said.
    fn drained(&mut self, now: Instant, index: usize) {
        let sock = &self.socks[index];
        if !sock.used {
            return;
        }
        self.note(index);
        self.retire(now, index);
        if self.socks[index].state() == Some(State::Closed) {
            self.unlink(index);
            if self.socks[index].fd.is_none() && self.socks[index].parent.is_none() {
                self.free(index);
                return;
            }
            if !self.socks[index].port_chosen {
                self.leave_port(index);
                self.socks[index].local = None;
            }
        }
        let writable = self.socks[index].no_space && self.writable(now, index);
        let sock = &mut self.socks[index];
        sock.no_space &= !writable;
        sock.watch(now);
        self.rearm(index);
    }

    /// A connection that only waits is replaced by a record: in TIME-WAIT, or closed and waiting for the peer's FIN.
    fn retire(&mut self, now: Instant, index: usize) {
        let (fin_timeout, time_wait) = (self.config.fin_timeout, self.config.time_wait);
        let sock = &mut self.socks[index];
        let (Body::Open(connection), Some(tuple)) = (&mut sock.body, sock.local.zip(sock.remote)) else {
            return;
        };
        let Some(remains) = connection.remains() else {
            return;
        };
        let held = sock.fd.is_some() || sock.parent.is_some();
        if remains.half_closed && held {
            return; // it still reads
        }
        let span = match (remains.half_closed, sock.options.linger2) {
            (false, _) => time_wait,
            (true, None) => fin_timeout,
            (true, Some(seconds)) => Duration::from_secs(seconds.max(0) as u64),
        };
        connection.abort(now);
        while connection.poll_transmit(now).is_some() {}
        while connection.poll_event().is_some() {}
        sock.shut_read = true;
        sock.shut_write = true;
        sock.deadline = None;
        self.unlink(index);
        self.begin_wait(now, tuple, remains, span, index);
    }

    /// Something was done to a socket: its packets are wanted, its deadline may have moved.
    pub(super) fn touch(&mut self, _now: Instant, index: usize) {
        let sock = &mut self.socks[index];
        if !sock.queued && matches!(sock.body, Body::Open(_)) {
            sock.queued = true;
            self.output.push_back(Queued::Connection(index as u32));
        }
        self.rearm(index);
    }

    /// Keeps the timer set in step with a socket.
    pub(super) fn rearm(&mut self, index: usize) {
        let sock = &mut self.socks[index];
        let connection = match &sock.body {
            Body::Open(connection) => connection.poll_timeout(),
            Body::Idle | Body::Listen(_) => None,
        };
        let at = match (connection, sock.deadline) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if at == sock.armed {
            return;
        }
        let slot = index as u32;
        if let Some(old) = core::mem::replace(&mut sock.armed, at) {
            self.timers.remove(&(old, slot));
        }
        if let Some(new) = at {
            self.timers.insert((new, slot));
        }
    }

    /// No timer runs for a socket.
    pub(super) fn disarm(&mut self, index: usize) {
        if let Some(old) = self.socks[index].armed.take() {
            self.timers.remove(&(old, index as u32));
        }
    }

    /// Passes an option that was set on to a living endpoint.
    pub(super) fn after_option(&mut self, now: Instant, index: usize, option: super::SocketOption) {
        use super::SocketOption as Name;
        let sock = &mut self.socks[index];
        let Body::Open(connection) = &mut sock.body else {
            return;
        };
        let options = &sock.options;
        match option {
            Name::UserTimeout => {
                let limit = (!options.user_timeout.is_zero()).then_some(options.user_timeout);
                connection.set(now, Setting::UserTimeout(limit));
            }
            Name::SynCount => {
                if let Some(count) = options.syn_count {
                    connection.set(now, Setting::SynRetries(count));
                }
            }
            Name::KeepIdle | Name::KeepInterval | Name::KeepCount => {
                connection.set(now, Setting::KeepAliveValues(options.keep_alive_values));
            }
            Name::QuickAck => connection.set(now, Setting::QuickAck(sock.quick_ack)),
            _ => {}
        }
        self.touch(now, index);
    }
}

/// Whether an address can be that of one host (RFC 1122 3.2.1.3).
pub(super) const fn is_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !address.is_multicast() && !address.is_broadcast() && !address.is_unspecified()
        }
        IpAddr::V6(address) => !address.is_multicast() && !address.is_unspecified(),
    }
}

/// The errno of what the network said (Linux `icmp_err_convert`).
fn errno_of(error: NetworkError) -> Errno {
    match error {
        NetworkError::NetUnreachable => Errno::ENETUNREACH,
        NetworkError::HostUnreachable => Errno::EHOSTUNREACH,
        NetworkError::ProtocolUnreachable => Errno::ENOPROTOOPT,
        NetworkError::PortUnreachable => Errno::ECONNREFUSED,
        NetworkError::MessageTooBig => Errno::EMSGSIZE,
        NetworkError::SourceRouteFailed => Errno::EOPNOTSUPP,
        NetworkError::HostDown => Errno::EHOSTDOWN,
        NetworkError::NoNetwork => Errno::ENONET,
        NetworkError::Refused => Errno::EACCES,
        NetworkError::Protocol => Errno::EPROTO,
    }
}
