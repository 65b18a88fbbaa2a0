//! What a run returns: one record per flow, counters and histograms per link.

mod records;

pub use crate::histogram::Histogram;
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
pub(crate) use records::FlowRecords;
use serde::{Deserialize, Serialize};

/// Result of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunOutput {
    /// In the order of the specification's groups.
    pub groups: Vec<GroupOutput>,
    /// In the order of the specification's links.
    pub links: Vec<LinkOutput>,
    /// Events processed.
    pub events: u64,
    /// Virtual time at the end.
    pub ended: Instant,
    /// Whether an observer stopped the run early (Ctrl-C). Such runs are not stored.
    #[serde(skip)]
    pub interrupted: bool,
}

/// What happened to a traffic group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GroupOutput {
    /// Flows that started within [warmup, duration), in order of start, then of pair and number.
    pub flows: Vec<FlowRecord>,
    /// By flow, the number of the stream that it is a part of; of kinds only of which the pair does not say it: a pair can carry several video
    /// calls, and the pings of one process can go to several pairs.
    pub stream_of_flow: Vec<u32>,
    /// Delay of each application write from `write` to in-order arrival (s), over all flows: request-response, on-off
    /// and other kinds with small writes. Empty for the rest.
    pub delivery_latency: Vec<f64>,
    /// Ages at the end of the run (s) of the writes of the measured time that had not arrived, largest first: how long they take is only known
    /// to be longer.
    pub delivery_censored: Vec<f64>,
    /// Time from the first transmission to the ACK (s) of each segment of thin streams that was first sent within [warmup, duration), sorted.
    pub ack_latency: Vec<f64>,
    /// Times from the first transmission to the end of the run (s) of those that were not acknowledged, largest first.
    pub ack_latency_censored: Vec<f64>,
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
    /// Ages at the end of the run (s) of those that did not complete, largest first.
    pub connections_censored: Vec<f64>,
    /// Counts of datagrams sent within [warmup, duration) by kinds without feedback: `cbr`, video calls.
    pub datagrams: Datagrams,
    /// Requests that each user of a closed-loop kind made from the start of the run, in the order of the users; of incast, one number:
    /// the rounds that began.
    pub requests: Vec<u32>,
    /// Samples of what only its kind measures, in the order of [`crate::spec::Facts::measures`].
    pub measures: Vec<Vec<f64>>,
    /// What [`crate::watch::Watch`] saw of its connections, in order of opening; empty without it.
    pub watched: Vec<Watched>,
}

/// What became of datagrams that nobody sends again. The run waits for them as long as its drain allows; those that are still on their way
/// then are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Those that arrived.
    pub arrived: u64,
    /// Those that were lost.
    pub lost: u64,
}

/// A connection in bins of time, and the fate of its first segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Smallest RTT sample.
    pub min_rtt: Option<Duration>,
    /// ACK latencies of all first transmissions, summed connection by connection (s).
    pub ack_latency_sum: f64,
    /// When the application stopped waiting, if it did before the run ended: a look-up without an answer. On the heap, since few have it.
    pub given_up: Option<Box<Instant>>,
    /// What its senders counted; of bytes received more than once what its receiver counted.
    pub tally: Tally,
}

impl FlowRecord {
    /// What was counted for it.
    pub fn stats(&self) -> Stats {
        self.tally.stats()
    }

    /// Adds what a connection counted.
    pub(crate) fn add(&mut self, counted: &Stats) {
        self.ack_latency_sum += counted.ack_latency_sum.as_secs_f64();
        self.tally = self.stats().plus(counted).into();
    }

    /// Adds datagrams that were sent, and their payload.
    pub fn add_datagrams(&mut self, datagrams: u32, bytes: u64) {
        self.add(&Stats::without_losses(
            bytes,
            u64::from(datagrams),
            Duration::ZERO,
            0,
        ));
    }

    /// Mean time from the first transmission of a segment to its ACK (s).
    pub fn mean_ack_latency(&self) -> Option<f64> {
        let count = self.tally.ack_latency_count;
        (count > 0).then(|| self.ack_latency_sum / f64::from(count))
    }
}

/// The counters of a connection in little room: most flows have no losses, and then all other counters are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    bytes_sent: u64,
    ack_latency_sum: Duration,
    ack_latency_count: u32,
    segments_sent: u32,
    with_losses: Option<Box<Stats>>,
}

impl Tally {
    /// Nothing was counted.
    pub const NOTHING: Tally = Tally {
        bytes_sent: 0,
        ack_latency_sum: Duration::ZERO,
        ack_latency_count: 0,
        segments_sent: 0,
        with_losses: None,
    };

    /// All counters as they are.
    pub fn stats(&self) -> Stats {
        match &self.with_losses {
            Some(stats) => **stats,
            None => Stats::without_losses(
                self.bytes_sent,
                u64::from(self.segments_sent),
                self.ack_latency_sum,
                u64::from(self.ack_latency_count),
            ),
        }
    }
}

impl From<Stats> for Tally {
    fn from(stats: Stats) -> Tally {
        Tally {
            bytes_sent: stats.bytes_sent,
            ack_latency_sum: stats.ack_latency_sum,
            ack_latency_count: stats.ack_latency_count as u32,
            segments_sent: stats.segments_sent as u32,
            with_losses: (!stats.is_without_losses()).then(|| Box::new(stats)),
        }
    }
}

/// What happened on one direction of a link, within [warmup, duration).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkOutput {
    /// Time the serialiser was busy; on a trace the share of the measured time that was used of the opportunities in it.
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
    /// How late packets were, where they are real; `None` in the simulator.
    pub lateness: Option<Lateness>,
    /// Most places of its tables that the queue looked at for one packet, from the start of the run; `None`: it has none.
    pub most_probes: Option<u32>,
    /// What packets with forged addresses met, where packets are real and the queue keeps places for super-packets.
    pub forged: Option<Forged>,
}

/// Where packets with the addresses of somebody else hit his super-packets, from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forged {
    /// Places taken that were kept for followers.
    pub places: u64,
    /// Super-packets begun anew by a forged first while followers were expected.
    pub restarted: u64,
    /// Super-packets that the senders' marker made.
    pub super_packets: u64,
}

/// How much later real packets were delivered than the link would have delivered them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Of each packet, nanoseconds.
    pub times: Histogram,
    /// Packets more than a millisecond late, and those lost because they were not read in time.
    pub late: u64,
}
