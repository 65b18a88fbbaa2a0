//! Why a connection ended, and what it reports to its owner.

use core::fmt;

/// Why a connection ended otherwise than by FIN in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionError {
    /// The peer refused the connection: RST in answer to our SYN.
    Refused,
    /// The peer reset an existing connection.
    Reset,
    /// Retransmissions, probes or keep-alives went unanswered for too long (RFC 9293 3.8.3, R2).
    TimedOut,
    /// The owner aborted it.
    Aborted,
    /// The network said so (ICMP) before the connection was established, or before it timed out.
    Network(NetworkError),
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConnectionError::Network(error) => return error.fmt(f),
            ConnectionError::Refused => "the peer refused the connection",
            ConnectionError::Reset => "the peer reset the connection",
            ConnectionError::TimedOut => "the peer did not answer in time",
            ConnectionError::Aborted => "the connection was aborted locally",
        })
    }
}

impl core::error::Error for ConnectionError {}

/// What happened to a connection, from [`Connection::poll_event`](crate::tcp::Connection::poll_event).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The handshake is complete: data may flow.
    Established,
    /// In-order data can be read.
    Readable,
    /// The send buffer has room again after `write` took less than wanted.
    Writable,
    /// The peer will send no more data (its FIN was received in order).
    PeerClosed,
    /// Everything written, and our FIN, was acknowledged.
    SendClosed,
    /// More than R1 retransmissions of the same data (RFC 9293 3.8.3): the path may be broken.
    Retransmitting,
    /// An ICMP error came that does not end the connection (RFC 9293 MUST-47).
    SoftError,
    /// The peer's urgent point appeared or moved (RFC 9293 MUST-32).
    Urgent,
    /// The rate of the bottleneck is known: [`Connection::take_path`](crate::tcp::Connection::take_path).
    PathFound,
    /// The connection is gone; TIME-WAIT, if any, is over.
    Closed,
    /// The connection is gone for this reason.
    Failed(ConnectionError),
}

impl Event {
    /// Its place in [`EventKinds`]; of several events the lowest is reported first.
    pub(in crate::tcp) const fn bit(self) -> u32 {
        match self {
            Event::Established => 0,
            Event::Readable => 1,
            Event::Writable => 2,
            Event::PeerClosed => 3,
            Event::SendClosed => 4,
            Event::Retransmitting => 5,
            Event::Closed => 6,
            Event::Failed(_) => 7,
            Event::SoftError => 8,
            Event::Urgent => 9,
            Event::PathFound => 10,
        }
    }

    /// The event with this place, or else that the connection failed for that reason.
    #[inline]
    pub(in crate::tcp) const fn of_bit(bit: u32, failure: ConnectionError) -> Event {
        match bit {
            0 => Event::Established,
            1 => Event::Readable,
            2 => Event::Writable,
            3 => Event::PeerClosed,
            4 => Event::SendClosed,
            5 => Event::Retransmitting,
            6 => Event::Closed,
            8 => Event::SoftError,
            9 => Event::Urgent,
            10 => Event::PathFound,
            _ => Event::Failed(failure),
        }
    }
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKinds(pub(in crate::tcp) u16);

impl EventKinds {
    /// None.
    pub const NONE: EventKinds = EventKinds(0);

    /// These, and that of `event`.
    pub const fn with(self, event: Event) -> EventKinds {
        EventKinds(self.0 | 1 << event.bit())
    }
}

/// What the network said about our segments. The errno of each is in its doc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkError {
    /// `ENETUNREACH`.
    NetUnreachable,
    /// `EHOSTUNREACH`.
    HostUnreachable,
    /// `ENOPROTOOPT`.
    ProtocolUnreachable,
    /// `ECONNREFUSED`.
    PortUnreachable,
    /// `EMSGSIZE`.
    MessageTooBig,
    /// `EOPNOTSUPP`.
    SourceRouteFailed,
    /// `EHOSTDOWN`.
    HostDown,
    /// `ENONET`.
    NoNetwork,
    /// `EACCES`.
    Refused,
    /// `EPROTO`.
    Protocol,
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NetworkError::NetUnreachable => "the network is unreachable",
            NetworkError::HostUnreachable => "there is no route to the host",
            NetworkError::ProtocolUnreachable => "the host does not speak the protocol",
            NetworkError::PortUnreachable => "the port is unreachable",
            NetworkError::MessageTooBig => "a packet is too big for the path",
            NetworkError::SourceRouteFailed => "the source route failed",
            NetworkError::HostDown => "the host is unknown",
            NetworkError::NoNetwork => "the host is isolated",
            NetworkError::Refused => "a policy on the path refuses",
            NetworkError::Protocol => "a router found a fault in our header",
        })
    }
}
