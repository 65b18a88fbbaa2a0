//! UDP sockets with the queue of errors that ICMP messages fill: enough to talk to one peer and hear why it did not work.
//!
//! A [`Datagram`] stands alone, apart from [`Stack`](super::Stack): it counts bytes and carries none, like the streams.
//! An error that a connected socket hears of fails its next call once. With `IP_RECVERR` it is also queued, and
//! [`read_error`](Datagram::read_error) (`MSG_ERRQUEUE`) returns what the message said.
//!
//! **Source.** RFC 768; `udp(7)`, `ip(7)` (`IP_RECVERR`); RFC 1122 4.1.3.3 (errors are passed up), 3.2.2.1 (which are hard);
//! Linux `icmp_err_convert`, `__udp4_lib_err`.
//! **Deviations.** One peer, the connected one. Nothing is fragmented: what exceeds the path MTU is `EMSGSIZE`, as with
//! `IP_PMTUDISC_DO`. No limit of memory. ICMPv6 codes are those of ICMP.

use super::{Errno, Header, IcmpError};
use alloc::collections::VecDeque;
use core::net::SocketAddr;

/// What an ICMP message said (`struct sock_extended_err`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedError {
    /// `ee_errno`.
    pub errno: Errno,
    /// `ee_type`.
    pub kind: u8,
    /// `ee_code`.
    pub code: u8,
    /// `ee_info`: the MTU of "fragmentation needed".
    pub info: u32,
}

/// A UDP socket.
#[derive(Clone, Debug)]
pub struct Datagram {
    local: SocketAddr,
    remote: Option<SocketAddr>,
    /// Bytes of UDP payload that the path takes.
    room: u32,
    header: u32,
    /// `IP_RECVERR`.
    queues_errors: bool,
    /// What the next call fails with (`SO_ERROR`).
    pending: Option<Errno>,
    errors: VecDeque<QueuedError>,
    received: VecDeque<u32>,
}

impl Datagram {
    /// A socket of this address on a path of `mtu` bytes.
    pub fn new(local: SocketAddr, mtu: u32) -> Datagram {
        let header = if local.is_ipv4() { 28 } else { 48 };
        Datagram {
            local,
            remote: None,
            room: mtu.saturating_sub(header),
            header,
            queues_errors: false,
            pending: None,
            errors: VecDeque::new(),
            received: VecDeque::new(),
        }
    }

    /// `bind(2)`.
    pub fn bind(&mut self, local: SocketAddr) {
        self.local = local;
    }

    /// `connect(2)`.
    pub fn connect(&mut self, remote: SocketAddr) {
        self.remote = Some(remote);
    }

    /// `IP_RECVERR`. Off empties the queue, as in Linux.
    pub fn queue_errors(&mut self, on: bool) {
        self.queues_errors = on;
        if !on {
            self.errors.clear();
        }
    }

    /// Whether `IP_RECVERR` is on.
    pub fn queues_errors(&self) -> bool {
        self.queues_errors
    }

    /// `SO_ERROR`: the pending error, which is no more pending then.
    pub fn take_error(&mut self) -> Option<Errno> {
        self.pending.take()
    }

    /// Whether a datagram can be read.
    pub fn has_data(&self) -> bool {
        !self.received.is_empty()
    }

    /// Whether an error is pending or queued (`POLLERR`).
    pub fn has_error(&self) -> bool {
        self.pending.is_some() || !self.errors.is_empty()
    }

    /// `send(2)` of `len` bytes: the packet's addresses.
    ///
    /// # Errors
    /// The pending one; not connected; too long.
    pub fn send(&mut self, len: u32) -> Result<Header, Errno> {
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        let destination = self.remote.ok_or(Errno::EDESTADDRREQ)?;
        if len > self.room.min(65_535 - self.header) {
            return Err(Errno::EMSGSIZE);
        }
        Ok(Header {
            source: self.local,
            destination,
        })
    }

    /// `recv(2)`: the length of the first datagram; `None`: there is none.
    ///
    /// # Errors
    /// The pending one.
    pub fn recv(&mut self) -> Result<Option<u32>, Errno> {
        match self.take_error() {
            Some(error) => Err(error),
            None => Ok(self.received.pop_front()),
        }
    }

    /// `recvmsg(2)` with `MSG_ERRQUEUE`.
    ///
    /// # Errors
    /// `EAGAIN`: the queue is empty.
    pub fn read_error(&mut self) -> Result<QueuedError, Errno> {
        let error = self.errors.pop_front().ok_or(Errno::EAGAIN)?;
        self.pending = self.errors.front().map(|next| next.errno);
        Ok(error)
    }

    /// A datagram of `len` bytes arrived. False: it is not of this socket's peer.
    pub fn on_packet(&mut self, header: &Header, len: u32) -> bool {
        let mine =
            header.destination == self.local && self.remote.is_none_or(|remote| remote == header.source);
        if mine {
            self.received.push_back(len);
        }
        mine
    }

    /// An ICMP message arrived that quotes a datagram of this `header`. False: it is not this socket's.
    pub fn on_icmp(&mut self, header: &Header, icmp: &IcmpError) -> bool {
        if (header.source, Some(header.destination)) != (self.local, self.remote) {
            return false;
        }
        let Some((errno, hard)) = meaning(icmp.kind, icmp.code) else {
            return true;
        };
        if (icmp.kind, icmp.code) == (3, 4) {
            self.room = self.room.min(icmp.mtu.saturating_sub(self.header).max(8)); // RFC 1191 6.3
        }
        if self.queues_errors {
            self.errors.push_back(QueuedError {
                errno,
                kind: icmp.kind,
                code: icmp.code,
                info: if errno == Errno::EMSGSIZE { icmp.mtu } else { 0 },
            });
        }
        if hard || self.queues_errors {
            self.pending = Some(errno);
        }
        true
    }
}

/// The error an ICMP message stands for, and whether it is hard; `None`: it is none.
fn meaning(kind: u8, code: u8) -> Option<(Errno, bool)> {
    Some(match (kind, code) {
        (3, 0 | 11) => (Errno::ENETUNREACH, false),
        (3, 1 | 12) => (Errno::EHOSTUNREACH, false),
        (3, 2) => (Errno::ENOPROTOOPT, true),
        (3, 3) => (Errno::ECONNREFUSED, true),
        (3, 4) => (Errno::EMSGSIZE, true),
        (3, 5) => (Errno::EOPNOTSUPP, false),
        (3, 6 | 9) => (Errno::ENETUNREACH, true),
        (3, 7) => (Errno::EHOSTDOWN, true),
        (3, 8) => (Errno::ENONET, true),
        (3, 10 | 13..=15) => (Errno::EHOSTUNREACH, true),
        (11, _) => (Errno::EHOSTUNREACH, false),
        (12, _) => (Errno::EPROTO, true),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Datagram, QueuedError};
    use crate::seq::SeqNumber;
    use crate::socket::{Errno, Header, IcmpError};
    use core::net::SocketAddr;

    fn pair() -> (Datagram, Header) {
        let local = SocketAddr::from(([192, 168, 0, 1], 40_000));
        let remote = SocketAddr::from(([192, 0, 2, 1], 8080));
        let mut socket = Datagram::new(local, 1500);
        socket.connect(remote);
        (
            socket,
            Header {
                source: local,
                destination: remote,
            },
        )
    }

    fn icmp(kind: u8, code: u8, mtu: u32) -> IcmpError {
        IcmpError {
            kind,
            code,
            mtu,
            seq: SeqNumber(0),
        }
    }

    #[test]
    fn a_queued_error_is_reported_once_and_lowers_the_mtu() {
        let (mut socket, header) = pair();
        socket.queue_errors(true);
        assert_eq!(socket.send(1400), Ok(header));
        assert!(socket.on_icmp(&header, &icmp(3, 4, 1300)));
        assert_eq!(
            socket.read_error(),
            Ok(QueuedError {
                errno: Errno::EMSGSIZE,
                kind: 3,
                code: 4,
                info: 1300
            })
        );
        assert_eq!(socket.read_error(), Err(Errno::EAGAIN));
        assert_eq!(socket.take_error(), None);
        assert_eq!(socket.send(1273), Err(Errno::EMSGSIZE));
        assert_eq!(socket.send(1272), Ok(header));
    }

    #[test]
    fn without_a_queue_only_hard_errors_are_heard() {
        let (mut socket, header) = pair();
        assert!(socket.on_icmp(&header, &icmp(3, 1, 0)));
        assert_eq!(socket.recv(), Ok(None));
        assert!(socket.on_icmp(&header, &icmp(3, 3, 0)));
        assert_eq!(socket.recv(), Err(Errno::ECONNREFUSED));
        assert_eq!(socket.recv(), Ok(None));
        assert!(socket.on_icmp(&header, &icmp(4, 0, 0))); // source quench is no error
        assert_eq!(socket.take_error(), None);
    }

    #[test]
    fn only_its_peer_is_heard() {
        let (mut socket, header) = pair();
        let back = Header {
            source: header.destination,
            destination: header.source,
        };
        assert!(socket.on_packet(&back, 7));
        assert!(!socket.on_packet(&header, 8));
        assert!(!socket.on_icmp(&back, &icmp(3, 3, 0)));
        assert_eq!(socket.recv(), Ok(Some(7)));
        let mut unconnected = Datagram::new(header.source, 1500);
        assert_eq!(unconnected.send(1), Err(Errno::EDESTADDRREQ));
    }
}
