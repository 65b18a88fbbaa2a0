//! UDP sockets of our stack: `core::socket::Datagram` behind the calls of scripts.

use super::{O_NONBLOCK, Virtual, fd, option};
use crate::backend::{BackendError, Call, Destination, Done, Handle, OptionValue, Outbound, Output};
use crate::wire::{self, Body, Envelope};
use fleetfoot_core::socket::{Datagram, Errno, Header, IcmpError, SocketOption};
use std::net::SocketAddr;

/// First handle of a UDP socket, above those of epoll instances.
const FIRST: i32 = 1 << 21;
/// First port that an unbound socket sends from.
const FIRST_PORT: u16 = 50_000;
const MSG_DONTWAIT: i32 = 0x40;
const MSG_ERRQUEUE: i32 = 0x2000;
/// `SO_EE_ORIGIN_ICMP`.
const FROM_ICMP: u8 = 2;
const POLLIN: i16 = 1;
const POLLOUT: i16 = 4;

/// A UDP socket as a process has it.
pub(super) struct Opened {
    socket: Datagram,
    nonblocking: bool,
}

impl Virtual {
    /// `socket(2)`, `SOCK_DGRAM`.
    pub(super) fn open_datagram(&mut self, nonblocking: bool) -> Done {
        let count = self.datagrams.len();
        let local = SocketAddr::new(self.setup.local, FIRST_PORT + count as u16);
        let socket = Datagram::new(local, self.setup.mtu);
        let handle = FIRST + count as i32;
        self.datagrams.insert(handle, Opened { socket, nonblocking });
        self.done(i64::from(handle), Output::None)
    }

    /// A call on a UDP socket; `Ok(None)`: it is on none.
    pub(super) fn datagram_call(&mut self, call: &Call) -> Result<Option<Option<Done>>, BackendError> {
        let socket = match call {
            Call::Bind { socket, .. }
            | Call::Listen { socket, .. }
            | Call::Accept { socket, .. }
            | Call::Connect { socket, .. }
            | Call::Read { socket, .. }
            | Call::Write { socket, .. }
            | Call::Shutdown { socket, .. }
            | Call::Close { socket }
            | Call::Ioctl { socket, .. }
            | Call::Fcntl { socket, .. }
            | Call::GetOption { socket, .. }
            | Call::SetOption { socket, .. } => *socket,
            Call::Socket { .. }
            | Call::Poll { .. }
            | Call::EpollCreate
            | Call::EpollControl { .. }
            | Call::EpollWait { .. } => return Ok(None),
        };
        let Some(mut opened) = self.datagrams.remove(&socket.0) else {
            return Ok(None);
        };
        let done = self.on_datagram(&mut opened, call);
        if !matches!(call, Call::Close { .. }) {
            self.datagrams.insert(socket.0, opened);
        }
        done.map(Some)
    }

    fn on_datagram(&mut self, opened: &mut Opened, call: &Call) -> Result<Option<Done>, BackendError> {
        let Opened { socket, nonblocking } = opened;
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let fail = |errno: Errno| Ok(Some(self.failed(errno.number())));
        let fine = |value: i64| Ok(Some(self.done(value, Output::None)));
        match call {
            Call::Bind { address, .. } => {
                socket.bind(canonical(*address));
                fine(0)
            }
            Call::Connect {
                address: Destination::Address(address),
                ..
            } => {
                socket.connect(canonical(*address));
                fine(0)
            }
            Call::Write {
                buffers, to: None, ..
            } => {
                let len = buffers.iter().sum::<usize>().min(1 << 20) as u32;
                let header = match socket.send(len) {
                    Ok(header) => header,
                    Err(errno) => return fail(errno),
                };
                let envelope = Envelope {
                    source: header.source.ip(),
                    destination: header.destination.ip(),
                    tos: 0,
                    ttl: self.stack.config().ttl,
                    flow_label: 0,
                };
                let ports = (header.source.port(), header.destination.port());
                let bytes = wire::encode_udp(&envelope, ports, len).map_err(BackendError::Broken)?;
                self.out.push_back(Outbound {
                    at: self.now,
                    bytes,
                    by_timer: false,
                });
                Ok(Some(self.done(i64::from(len), Output::None)))
            }
            Call::Read { flags, .. } if flags & MSG_ERRQUEUE != 0 => match socket.read_error() {
                // What the message quoted of the payload: nothing, ICMP needs only eight bytes (RFC 792).
                Ok(error) => Ok(Some(self.done(
                    0,
                    Output::QueuedError {
                        errno: error.errno.number(),
                        origin: FROM_ICMP,
                        kind: error.kind,
                        code: error.code,
                        info: error.info,
                        data: 0,
                    },
                ))),
                Err(errno) => fail(errno),
            },
            Call::Read { buffers, flags, .. } => match socket.recv() {
                Ok(Some(len)) => fine((len as usize).min(buffers.iter().sum()) as i64),
                Ok(None) if *nonblocking || flags & MSG_DONTWAIT != 0 => fail(Errno::EAGAIN),
                Ok(None) => Ok(None),
                Err(errno) => fail(errno),
            },
            Call::Close { .. } => fine(0),
            Call::Fcntl { command: 3, .. } => fine(2 | if *nonblocking { i64::from(O_NONBLOCK) } else { 0 }),
            Call::Fcntl {
                command: 4, argument, ..
            } => {
                *nonblocking = argument & O_NONBLOCK != 0;
                fine(0)
            }
            Call::SetOption {
                level: 0,
                name: 11,
                value: OptionValue::Integer(value),
                ..
            } => {
                socket.queue_errors(*value != 0);
                fine(0)
            }
            Call::GetOption {
                level: 0, name: 11, ..
            } => {
                let value = OptionValue::Integer(i32::from(socket.queues_errors()));
                Ok(Some(self.done(0, Output::Option(value))))
            }
            Call::SetOption { level, name, .. }
                if matches!(option(*level, *name), Ok(SocketOption::ReuseAddress)) =>
            {
                fine(0)
            }
            Call::GetOption { level, name, .. }
                if matches!(option(*level, *name), Ok(SocketOption::Error)) =>
            {
                let error = socket.take_error().map_or(0, Errno::number);
                Ok(Some(self.done(0, Output::Option(OptionValue::Integer(error)))))
            }
            Call::Listen { .. } | Call::Accept { .. } => fail(Errno::EOPNOTSUPP),
            other => Err(BackendError::Unsupported(format!("{other:?} on a UDP socket"))),
        }
    }

    /// A packet that is no TCP segment. True: it was a datagram.
    pub(super) fn datagram_in(&mut self, packet: &[u8]) -> bool {
        let Ok(packet) = wire::decode(packet) else {
            return false;
        };
        let Body::Udp { ports, len } = packet.body else {
            return false;
        };
        let header = Header {
            source: SocketAddr::new(packet.source, ports.0),
            destination: SocketAddr::new(packet.destination, ports.1),
        };
        for opened in self.datagrams.values_mut() {
            if opened.socket.on_packet(&header, len) {
                break;
            }
        }
        true
    }

    /// An ICMP message that quotes a datagram.
    pub(super) fn datagram_icmp(&mut self, header: &Header, icmp: &IcmpError) {
        for opened in self.datagrams.values_mut() {
            if opened.socket.on_icmp(header, icmp) {
                break;
            }
        }
    }

    /// What `poll` shows of a socket, of either kind.
    pub(super) fn poll_one(&mut self, socket: Handle, events: i16) -> Option<i16> {
        if let Some(opened) = self.datagrams.get(&socket.0) {
            let readable = if opened.socket.has_data() { POLLIN } else { 0 };
            let error = if opened.socket.has_error() { 8 } else { 0 };
            return Some((readable | POLLOUT) & events | error);
        }
        let asked = fleetfoot_core::socket::Events(events as u16);
        let standing = self.stack.poll(self.now, fd(socket), asked);
        standing.ok().map(|events| events.0 as i16)
    }
}
