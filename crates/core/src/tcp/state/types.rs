//! What goes in and out of a [`Connection`](crate::tcp::Connection): states, segments to send, settings, counters.

use crate::cc::Phase;
use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::time::Duration;
use crate::units::Bytes;
use core::ops::Range;

/// States of RFC 9293 3.3.2; LISTEN is [`listener`](crate::tcp::open::listener)'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Payload bytes sent, retransmissions and probes included.
    pub bytes_sent: u64,
    /// Time from the first transmission of each segment to the ACK of its last byte, summed.
    pub ack_latency_sum: Duration,
    /// Segments in that sum.
    pub ack_latency_count: u64,
    /// Payload bytes received more than once.
    pub redundant_bytes: u64,
    /// Data segments sent, first transmissions and retransmissions.
    pub segments_sent: u64,
    /// Retransmitted segments, probes included.
    pub retransmits: u32,
    /// Expiries of the retransmission timer, SYNs included.
    pub timeouts: u32,
    /// Those shown to be spurious.
    pub spurious_timeouts: u32,
    /// Loss probes sent.
    pub probes: u32,
    /// Those of them that carried new data.
    pub new_probes: u32,
    /// Those shown to be redundant.
    pub spurious_probes: u32,
    /// Fast recoveries entered.
    pub recoveries: u32,
    /// Window reductions without retransmission: ECN, delay, a probe that repaired a loss.
    pub window_reductions: u32,
    /// Fast recoveries, timeouts and reductions without loss within `Config::measured`: loss events of the throughput formula.
    pub congestion_events: u32,
    /// ACKs with ECE received.
    pub ecn_echoes: u32,
    /// Segments received with CE.
    pub ce_received: u32,
    /// Reductions taken back.
    pub undos: u32,
    /// D-SACK blocks received.
    pub dsacks: u32,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u32,
    /// SACK blocks that name what cannot be: unsent, backwards, empty.
    pub bad_sacks: u32,
    /// Longest time from the first transmission of a segment that was sent again to its ACK.
    pub longest_recovery: Duration,
    /// Packets that carried older data along (redundant data bundling).
    pub rdb_packets: u32,
    /// Payload bytes they carried along.
    pub rdb_bytes: u64,
    /// Losses that bundles repaired, as far as they were found.
    pub rdb_losses: u32,
}

impl Stats {
    /// The counters of two connections together; of the longest recovery the longer.
    #[must_use]
    pub fn plus(&self, other: &Stats) -> Stats {
        Stats {
            bytes_sent: self.bytes_sent + other.bytes_sent,
            ack_latency_sum: self.ack_latency_sum + other.ack_latency_sum,
            ack_latency_count: self.ack_latency_count + other.ack_latency_count,
            redundant_bytes: self.redundant_bytes + other.redundant_bytes,
            segments_sent: self.segments_sent + other.segments_sent,
            retransmits: self.retransmits + other.retransmits,
            timeouts: self.timeouts + other.timeouts,
            spurious_timeouts: self.spurious_timeouts + other.spurious_timeouts,
            probes: self.probes + other.probes,
            new_probes: self.new_probes + other.new_probes,
            spurious_probes: self.spurious_probes + other.spurious_probes,
            recoveries: self.recoveries + other.recoveries,
            window_reductions: self.window_reductions + other.window_reductions,
            congestion_events: self.congestion_events + other.congestion_events,
            ecn_echoes: self.ecn_echoes + other.ecn_echoes,
            ce_received: self.ce_received + other.ce_received,
            undos: self.undos + other.undos,
            dsacks: self.dsacks + other.dsacks,
            challenge_acks: self.challenge_acks + other.challenge_acks,
            bad_sacks: self.bad_sacks + other.bad_sacks,
            longest_recovery: self.longest_recovery.max(other.longest_recovery),
            rdb_packets: self.rdb_packets + other.rdb_packets,
            rdb_bytes: self.rdb_bytes + other.rdb_bytes,
            rdb_losses: self.rdb_losses + other.rdb_losses,
        }
    }
}

impl crate::tcp::state::lazy::Blank for Stats {
    fn blank() -> &'static Stats {
        static BLANK: Stats = Stats {
            bytes_sent: 0,
            ack_latency_sum: Duration::ZERO,
            ack_latency_count: 0,
            redundant_bytes: 0,
            segments_sent: 0,
            retransmits: 0,
            timeouts: 0,
            spurious_timeouts: 0,
            probes: 0,
            new_probes: 0,
            spurious_probes: 0,
            recoveries: 0,
            window_reductions: 0,
            congestion_events: 0,
            ecn_echoes: 0,
            ce_received: 0,
            undos: 0,
            dsacks: 0,
            challenge_acks: 0,
            bad_sacks: 0,
            longest_recovery: Duration::ZERO,
            rdb_packets: 0,
            rdb_bytes: 0,
            rdb_losses: 0,
        };
        &BLANK
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
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
