//! Parameters of QUIC traffic: transfers, pages, and the transport that both have.

use super::{Bytes, Distribution, Duration};
use serde::Serialize;

/// Transfers over QUIC: one connection each, opened by the data sender, whether or not earlier ones are done.
#[derive(Clone, Debug, Serialize)]
pub struct Quic {
    /// Payload bytes per transfer.
    pub size: Distribution,
    /// Seconds between arrivals.
    pub interarrival: Distribution,
    /// At most this many transfers.
    pub count: Option<u64>,
    /// The transport.
    pub transport: QuicTransport,
}

/// Pages over QUIC: a document, then all its objects at once, each a stream of the one connection of the page.
#[derive(Clone, Debug, Serialize)]
pub struct QuicWeb {
    /// Users.
    pub count: u32,
    /// Bytes of the document.
    pub document: Distribution,
    /// Objects of each page.
    pub objects: u32,
    /// Bytes of each object.
    pub object: Distribution,
    /// Bytes of each request, towards the data sender.
    pub request: Bytes,
    /// Time between the end of a page and the start of the next (s).
    pub think: Distribution,
    /// Time the server needs for each answer (s). Part of the identity only where there is any.
    #[serde(skip_serializing_if = "super::traffic::takes_no_time")]
    pub server_time: Distribution,
    /// The transport.
    pub transport: QuicTransport,
}

/// How both ends of a QUIC connection behave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuicTransport {
    /// The congestion control.
    pub controller: QuicController,
    /// Congestion window at the start.
    pub initial_window: Bytes,
    /// Packets carry ECT(0), and marks are answered.
    pub ecn: bool,
    /// What the two ends know of each other.
    pub handshake: TlsHandshake,
    /// The client has a token that an earlier connection gave it, so the server may send at once what it likes (RFC 9000
    /// 8.1.3). Part of the identity only where it is there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub token: bool,
    /// Bytes of the certificate chain that the server sends in a full handshake.
    pub certificate_chain: Bytes,
    /// UDP payload of a datagram at most, which path MTU discovery searches from 1200 bytes on.
    pub largest_datagram: u16,
    /// The receiver is asked to acknowledge every so many packets; `None`: the extension is not used.
    pub ack_every: Option<u32>,
    /// How long the receiver may keep an acknowledgment back when it is asked; `None`: as without the extension.
    pub max_ack_delay: Option<Duration>,
    /// Bytes of a stream that the receiver has room for.
    pub stream_window: Bytes,
}

/// Makes enums whose values are words of scenario files.
macro_rules! words {
    ($($(#[$doc:meta])* pub enum $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
            pub enum $name {
                $($(#[$each])* $variant,)+
            }

            impl $name {
                /// Every value.
                pub const ALL: &'static [$name] = &[$($name::$variant),+];

                /// The words for them in scenario files, in the same order.
                pub const NAMES: &'static [&'static str] = &[$($word),+];

                /// The word for it in scenario files.
                pub const fn name(self) -> &'static str {
                    $name::NAMES[self as usize]
                }

                /// The value that is written as `name`.
                pub fn by_name(name: &str) -> Option<$name> {
                    $name::ALL.iter().copied().find(|value| value.name() == name)
                }
            }
        )+
    };
}

words! {
    /// Congestion controls of QUIC connections.
    pub enum QuicController {
        /// NewReno of quinn (RFC 9002 appendix B).
        QuinnNewReno = "quinn-newreno",
        /// CUBIC of quinn, its default.
        QuinnCubic = "quinn-cubic",
        /// BBR of quinn (version 1), whose pacing rate quinn does not use.
        QuinnBbr = "quinn-bbr",
        /// Our `reno`.
        Reno = "reno",
        /// Our `cubic`.
        Cubic = "cubic",
        /// Our `cdg`.
        Cdg = "cdg",
        /// Our `cdg-freebsd`.
        CdgFreeBsd = "cdg-freebsd",
        /// Our `vegas`.
        Vegas = "vegas",
        /// Our `westwood`.
        Westwood = "westwood",
    }

    /// What client and server know of each other when a connection begins.
    pub enum TlsHandshake {
        /// Nothing: the server sends its certificates. One round trip, over TCP after the one that opens the connection.
        Full = "full",
        /// A session ticket: no certificates. One round trip likewise.
        Resumed = "resumed",
        /// A session ticket, and the client sends its first data with it (0-RTT).
        ZeroRtt = "0-rtt",
    }
}

impl QuicController {
    /// The name under which it is registered with the congestion controls of TCP; `None`: it is quinn's.
    pub fn registered(self) -> Option<&'static str> {
        match self {
            QuicController::QuinnNewReno | QuicController::QuinnCubic | QuicController::QuinnBbr => None,
            QuicController::Reno
            | QuicController::Cubic
            | QuicController::Cdg
            | QuicController::CdgFreeBsd
            | QuicController::Vegas
            | QuicController::Westwood => Some(self.name()),
        }
    }
}

impl Default for QuicTransport {
    fn default() -> QuicTransport {
        QuicTransport {
            controller: QuicController::QuinnCubic,
            initial_window: Bytes(12_000),
            ecn: true,
            handshake: TlsHandshake::Full,
            token: false,
            certificate_chain: Bytes(2_500),
            largest_datagram: 1_452,
            ack_every: None,
            max_ack_delay: None,
            stream_window: Bytes(1_250_000),
        }
    }
}

/// Whether the program was built with the feature `quic`, without which no run has QUIC.
pub const QUIC_BUILT: bool = cfg!(feature = "quic");
