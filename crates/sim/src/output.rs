//! What a run returns: one record per flow, counters and histograms per link.

pub use crate::histogram::Histogram;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOutput {
    /// In the order of the specification's groups.
    pub groups: Vec<GroupOutput>,
    /// In the order of the specification's links.
    pub links: Vec<LinkOutput>,
    /// Events processed.
    pub events: u64,
    /// Virtual time at the end.
    pub ended: Instant,
    /// Whether an observer stopped the run early (Ctrl-C).
    pub interrupted: bool,
}

/// What happened to a traffic group.
#[derive(Clone, Debug, Default)]
pub struct GroupOutput {
    /// Flows that started within [warmup, duration), in order of start, then of pair and number.
    pub flows: Vec<FlowRecord>,
    /// Delay of each application write from `write` to in-order arrival (s), over all flows: request-response, on-off
    /// and other kinds with small writes. Empty for the rest.
    pub delivery_latency: Vec<f64>,
    /// Time from the first transmission to the ACK (s) of each segment of thin streams that was first sent within [warmup, duration).
    pub ack_latency: Vec<f64>,
    /// Payload bytes received in order in [warmup, duration), over all flows, finished or not.
    pub goodput_bytes: Bytes,
    /// Packets with data from its data senders that the network dropped in [warmup, duration), wherever it was.
    pub dropped: u64,
    /// `goodput_bytes` per connection in order of creation, for fairness.
    pub goodput_bytes_per_connection: Vec<Bytes>,
    /// Goodput per pair of the group.
    pub goodput_bytes_per_pair: Vec<Bytes>,
    /// Packets of each group of data packets that left within [warmup, duration), where super-packets are formed: 1 is a
    /// packet alone.
    pub super_packet_length: Histogram,
    /// Records of TFRC streams that have a flow record, in order of creation.
    pub streams: Vec<StreamRecord>,
    /// Time of each replayed connection that started within [warmup, duration) and completed, in order of completion: from its
    /// first SYN to the last payload byte of either end, prescribed waiting included (s).
    pub connections: Vec<f64>,
    /// Counts of datagrams sent within [warmup, duration) by kinds without feedback: `cbr`, video calls.
    pub datagrams: Datagrams,
    /// Requests that each user of a closed-loop kind made from the start of the run, in the order of the users.
    pub requests: Vec<u32>,
    /// What [`crate::watch::Watch`] saw of its connections, in order of opening; empty without it.
    pub watched: Vec<Watched>,
}

/// What became of datagrams that nobody sends again. Those on their way when the run ended are in neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Those that arrived.
    pub arrived: u64,
    /// Those that were lost.
    pub lost: u64,
}

/// A connection in bins of time, and the fate of its first segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// When it was opened.
    pub opened: Instant,
    /// When it was closed, if it was.
    pub closed: Option<Instant>,
    /// Payload bytes received in order by bulk connections, by bin from the begin of the run.
    pub received: Vec<u32>,
    /// Data packets of bulk connections dropped, by bin.
    pub lost: Vec<u32>,
    /// Reductions of the window of bulk connections by more than a twentieth, by bin. Bins at the end that are zero are left out.
    pub reductions: Vec<u32>,
    /// Bit i: data segment i of the first 32 was sent.
    pub first_sent: u32,
    /// Bit i: its first transmission was dropped.
    pub first_lost: u32,
    /// The SYN was sent more than once: the first window is another one.
    pub syn_again: bool,
}

/// What a TFRC stream met.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamRecord {
    /// Number of the stream in its group.
    pub number: u32,
    /// Packets that the receiver found lost.
    pub lost: u64,
    /// Loss events.
    pub loss_events: u64,
    /// The loss event rate as last computed.
    pub loss_event_rate: f64,
}

/// One flow: a transfer, a bulk connection, an exchange, a burst, a ping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRecord {
    /// Index into the group's pairs.
    pub pair: u32,
    /// Payload bytes to transfer; received bytes for bulk.
    pub bytes: Bytes,
    /// First SYN sent (transfer, incast, closed loop, flows, bulk), or first byte written (exchange, burst), or sent (ping, cbr). Of a
    /// complete replayed exchange later by the waiting that is prescribed within it.
    pub start: Instant,
    /// Last payload byte received in order; `None`: did not complete (censored, or bulk).
    pub completed: Option<Instant>,
    /// Last payload byte acknowledged at the sender, or at the relay that sent it on.
    pub acked: Option<Instant>,
    /// Payload bytes received in order so far.
    pub received: Bytes,
    /// Data segments sent, first transmissions and retransmissions.
    pub segments_sent: u32,
    /// Payload bytes sent, retransmissions and probes included.
    pub bytes_sent: Bytes,
    /// Retransmitted segments.
    pub retransmits: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Those shown to be spurious.
    pub spurious_timeouts: u32,
    /// Tail loss probes sent.
    pub probes: u32,
    /// Those shown to be redundant.
    pub spurious_probes: u32,
    /// How losses were repaired; behind a pointer, since most flows have nothing to say.
    pub repairs: Option<Box<Repairs>>,
    /// Payload bytes the receiver got more than once.
    pub redundant_bytes: Bytes,
    /// Smallest RTT sample.
    pub min_rtt: Option<Duration>,
    /// ACK latency samples: sum over first transmissions (s) and their number.
    pub ack_latency_sum: f64,
    /// Number of samples in `ack_latency_sum`.
    pub ack_latency_count: u32,
}

impl FlowRecord {
    /// How losses were repaired; all zero if there were none.
    pub fn repairs(&self) -> Repairs {
        self.repairs.as_deref().copied().unwrap_or_default()
    }
}

/// How the losses of a flow were repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Fast recoveries, timeouts and other reductions of the window, within the measured time that the sender's
    /// configuration names.
    pub congestion_events: u32,
    /// Tail loss probes that carried new data.
    pub new_probes: u32,
    /// Packets that carried older data along (redundant data bundling).
    pub rdb_packets: u32,
    /// Losses that they repaired, as far as the sender found them.
    pub rdb_losses: u32,
    /// Payload bytes that they carried along.
    pub rdb_bytes: Bytes,
    /// Longest time from the first transmission of a segment that was sent again to its ACK, on
    /// this connection so far; zero if this flow sent none again.
    pub longest_recovery: Duration,
    /// When the application stopped waiting, if it did before the run ended: a look-up without an answer.
    pub given_up: Option<Instant>,
}

/// What happened on one direction of a link, within [warmup, duration).
#[derive(Clone, Debug, Default)]
pub struct LinkOutput {
    /// Time the serialiser was busy.
    pub busy: Duration,
    /// Packets that left.
    pub packets: u64,
    /// Packets with payload that left.
    pub data_packets: u64,
    /// Layer-3 bytes that left.
    pub bytes: Bytes,
    /// Drops by reason (`DropReason::ALL` order) and by kind of packet: data, pure ACK, other.
    pub drops: Vec<[u64; 3]>,
    /// Counters of queue events, in the order of `QueueEventKind::ALL`.
    pub events: Vec<u64>,
    /// Waiting time of each packet that left, from acceptance to start of serialisation.
    pub queue_delay: Histogram,
    /// Packets waiting, as seen by each arriving packet.
    pub queue_packets: Histogram,
}
