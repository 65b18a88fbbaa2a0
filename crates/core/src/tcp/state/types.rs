//! What goes in and out of a [`Connection`](crate::tcp::Connection): states, segments to send, settings.

use crate::cc::Phase;
use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::tcp::config::EcnOption;
use crate::tcp::state::stats::Stats;
use crate::time::Duration;
use crate::units::Bytes;
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// States of RFC 9293 3.3.2; LISTEN is [`listener`](crate::tcp::open::listener)'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// No connection.
    Closed,
    /// Our SYN is out.
    SynSent,
    /// SYNs crossed or were answered, ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed; our FIN is not acknowledged.
    Closing,
    /// The peer closed first, then we; our FIN is not acknowledged.
    LastAck,
    /// Both FINs are acknowledged; old duplicates die out.
    TimeWait,
}

/// A segment to send, and which bytes of the stream it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Headers.
    pub segment: Segment,
    /// First stream offset of the payload.
    pub start: u64,
    /// One past its last.
    pub end: u64,
}

impl Transmit {
    /// Stream offsets of the payload.
    pub fn range(&self) -> Range<u64> {
        self.start..self.end
    }
}

/// What `on_segment` did with the payload. A segment over several holes fills them all: the pieces after the first come
/// from [`poll_accepted`](crate::tcp::Connection::poll_accepted).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Stream offsets that were taken and must be kept by the driver; empty if none.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Stream offset up to which everything has arrived in order.
    pub in_order: u64,
}

/// Which half of a connection to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// No more writes: FIN after what was written.
    Write,
    /// No more reads: what arrives is taken and thrown away.
    Read,
}

/// How a write is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WriteFlags {
    /// More will follow at once: do not send a partial segment yet.
    pub more: bool,
    /// More data follows for as long as the socket says (`TCP_CORK`); what leaves carries PSH all the same.
    pub corked: bool,
}

/// What can be changed while a connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Nagle's algorithm on or off (RFC 9293 MUST-17).
    Nagle(bool),
    /// Keep-alive on or off (RFC 9293 MUST-24), with the parameters of `Config` or two hours.
    KeepAlive(bool),
    /// Parameters of keep-alive.
    KeepAliveValues(crate::tcp::KeepAlive),
    /// Keep the time from first transmission to acknowledgment of each segment, for
    /// [`ack_latencies`](crate::tcp::Connection::ack_latencies). Before there is data to send.
    NoteLatencies(bool),
    /// The owner remembers paths (RFC 9040), and this is what it knows of the one to the peer. Before anything is sent.
    Path(Option<crate::tcp::PathSample>),
    /// How far the host's count of timer ticks was when its clock was at zero ([`TimerGrid`](crate::tcp::TimerGrid)), modulo
    /// 2^32 microseconds: the same for all connections of a host. Before anything is sent.
    ClockPhase(Duration),
    /// With Accurate ECN: when its option is sent (Linux `tcp_ecn_option`, which connections heed that exist already).
    EcnOption(EcnOption),
    /// Acknowledge at once for a while, or not (`TCP_QUICKACK`).
    QuickAck(bool),
    /// Every in-order byte counts as read at once, until turned off.
    AutoRead(bool),
    /// Handle usual segments in fewer steps (header prediction). The results are the same without, for which it can be turned off
    /// to compare the two; on at first.
    HeaderPrediction(bool),
    /// How long data or probes may go unanswered (RFC 9293 MUST-21); `None`: as configured.
    UserTimeout(Option<Duration>),
    /// SYN retransmissions (`TCP_SYNCNT`).
    SynRetries(u8),
    /// Largest payload to send and to announce; takes effect on the SYN (`TCP_MAXSEG`).
    MaxSegment(u32),
    /// Type of service or traffic class; the ECN bits are ignored (RFC 9293 MUST-48).
    Tos(u8),
    /// Time to live or hop limit (RFC 9293 MUST-49).
    Ttl(u8),
    /// Longest stay in FIN-WAIT-2 after closing (`TCP_LINGER2`).
    FinWait2(Duration),
}

/// A connection that exists already, for tests and hand-worked cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstablishedState {
    /// Smoothed RTT.
    pub srtt: Duration,
    /// RTT variation.
    pub rttvar: Duration,
    /// Congestion window, bytes.
    pub cwnd: Bytes,
    /// Slow-start threshold, bytes.
    pub ssthresh: Bytes,
    /// Maximum segment size in payload bytes.
    pub mss: u32,
    /// Our initial sequence number.
    pub iss: SeqNumber,
    /// The peer's.
    pub irs: SeqNumber,
    /// The peer's receive window, bytes.
    pub peer_window: Bytes,
}

/// A view of a connection, with the fields of Linux's `TCP_INFO` that a trace wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Connection state.
    pub state: State,
    /// Congestion state.
    pub ca_state: CaState,
    /// Phase of the controller.
    pub phase: Phase,
    /// Window in force, bytes.
    pub cwnd: Bytes,
    /// Slow-start threshold, bytes; `MAX` before the first congestion event.
    pub ssthresh: Bytes,
    /// Bytes in flight by the pipe estimate.
    pub pipe: Bytes,
    /// Bytes sent and not acknowledged.
    pub flight: Bytes,
    /// Bytes written and not sent.
    pub unsent: Bytes,
    /// The peer's window, bytes from SND.UNA.
    pub peer_window: Bytes,
    /// Bytes delivered, as far as known.
    pub delivered: Bytes,
    /// Stream bytes received in order.
    pub received: u64,
    /// Stream bytes acknowledged.
    pub acked: u64,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// RTT variation.
    pub rttvar: Duration,
    /// Smallest RTT sample.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout, back-off included.
    pub rto: Duration,
    /// Maximum segment size in payload bytes.
    pub mss: u32,
    /// Counters.
    pub stats: Stats,
}

/// Congestion state, with Linux's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum CaState {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs came, nothing is judged lost.
    Disorder,
    /// The window is being reduced without a loss (ECN, delay).
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}
