//! What checks measure: the fields of the result JSON, read run by run, and their statistics with all resamples.
//!
//! A statistic is computed for the runs as they are and for every resample of them. Ratios are taken resample by resample,
//! so that whatever is compared is paired by seed.

mod series;
mod values;
mod watched;

pub use series::{Series, Statistic, per_run, series};
pub use values::unit_bytes;
pub use values::{Values, values};

use fleetfoot_core::queue::{DropReason, QueueEventKind};

/// Whose a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The traffic group with this index.
    Group(usize),
    /// The directed link with this index.
    Link(usize),
    /// The variant as a whole.
    Variant,
}

impl Of {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Of::Group(_) => "group",
            Of::Link(_) => "link",
            Of::Variant => "variant",
        }
    }
}

/// A field of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Of a group.
    Group(GroupMetric),
    /// Of a link.
    Link(LinkMetric),
    /// Of a variant.
    Variant(VariantMetric),
    /// The value with this index of the experiment's analysis.
    Analysis(usize),
}

macro_rules! fields {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            const ALL: &'static [($name, &'static str)] = &[$(($name::$variant, $word),)+];
        }
    };
}

fields! {
    /// Fields of a group. Counts are those of one run.
    GroupMetric {
        /// Completion times.
        Fct = "fct_s",
        /// Completion times over those of the same flows in the variant `run.loss_free`.
        NormalisedFct = "more.normalised_fct",
        /// Until the last byte is acknowledged.
        Acked = "acked_s",
        /// Per application write.
        DeliveryLatency = "delivery_latency_s",
        /// Mean per flow.
        AckLatency = "ack_latency_s",
        /// Per transfer or connection.
        Goodput = "goodput_bps",
        /// Per connection: layer-3 bits of the data units that arrived in order, per second.
        Throughput = "throughput_bps",
        /// Of the data units that the group sent, the share that the network dropped.
        DropRate = "drop_rate",
        /// Loss events per data unit: fast recoveries, timeouts and reductions on ECN.
        CongestionEventRate = "congestion_event_rate",
        /// Loss events.
        CongestionEvents = "congestion_events",
        /// Data units that the network dropped.
        DroppedUnits = "dropped_units",
        /// Flows counted.
        Flows = "flows",
        /// Those that completed.
        Completed = "completed",
        /// Those that did not.
        Censored = "censored",
        /// Retransmitted segments.
        Retransmits = "retransmits",
        /// Expiries of the retransmission timer.
        Timeouts = "timeouts",
        /// Those shown to be spurious.
        SpuriousTimeouts = "spurious_timeouts",
        /// Tail loss probes.
        Probes = "probes",
        /// Those shown to be redundant.
        SpuriousProbes = "spurious_probes",
        /// Those that carried new data.
        NewProbes = "new_probes",
        /// From the first transmission of a segment of a thin stream to its ACK.
        SegmentAckLatency = "more.segment_ack_latency_s",
        /// Per flow that sent a segment again: longest time from its first transmission to its ACK.
        LongestRecovery = "more.longest_recovery_s",
        /// Of replayed connections: from the first SYN to the last payload byte, waiting included.
        Connection = "more.connection_s",
        /// Packets that carried older data along (redundant data bundling).
        RdbPackets = "rdb_packets",
        /// Losses that they repaired, as far as the sender found them.
        RdbLosses = "rdb_losses",
        /// Bytes carried along per byte received.
        Redundancy = "redundancy",
        /// Payload received more than once.
        RedundantBytes = "redundant_bytes",
        /// Payload sent and not received, as a share: what a stream without retransmission lost.
        LossShare = "loss_share",
        /// Packets of each group of data packets that left together, where super-packets are formed.
        SuperPacketLength = "more.super_packet_length",
        /// Loss event rates of TFRC streams, as their receivers computed them last.
        LossEventRate = "more.loss_event_rate",
        /// Super-packets sent: groups of two packets and more.
        SuperPackets = "super_packets",
        /// What is left of 1 then.
        DeliveredShare = "delivered_share",
        /// Share of flows that completed and retransmitted nothing: where a flow is one super-packet, those that stayed whole.
        IntactShare = "intact_share",
        /// Share of the connections that lost a packet, in each bin in which any did (`run.bins`).
        LossSynchronisation = "loss_synchronisation",
        /// Window reductions of bulk connections (`run.bins`).
        Reductions = "reductions",
        /// Losses of the first segments of connections, as a share (`run.bins`).
        FirstSegmentLoss = "first_segment_loss",
        /// Losses of segments 2 to 10 of connections, as a share (`run.bins`).
        FirstWindowLoss = "first_window_loss",
        /// The same of those whose predecessor was lost.
        FirstWindowLossAfterLoss = "first_window_loss_after_loss",
        /// Segments 2 to 10 of connections that got through at first, as a share (`run.bins`).
        FirstWindowThrough = "first_window_through",
        /// The same of those whose predecessor was lost.
        FirstWindowThroughAfterLoss = "first_window_through_after_loss",
    }
}

fields! {
    /// Fields of a directed link. Counts are those of one run.
    LinkPlain {
        /// Share of time busy.
        Utilisation = "utilisation",
        /// Waiting times.
        QueueDelay = "queue_delay_s",
        /// Packets found waiting.
        QueuePackets = "queue_packets",
        /// Dropped packets with payload.
        DropsData = "drops.data",
        /// Dropped acknowledgments.
        DropsAck = "drops.ack",
        /// Other dropped packets.
        DropsOther = "drops.other",
        /// Marked packets.
        Marks = "marks",
        /// Data packets that left.
        DataUnits = "data_units",
        /// Everything that left, acknowledgments included.
        Units = "units",
        /// Layer-3 bytes that left.
        Bytes = "bytes",
        /// Layer-3 bits that left per second.
        Throughput = "throughput_bps",
    }
}

/// Fields of a directed link, its counters included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkMetric {
    /// A field.
    Plain(LinkPlain),
    /// Drops for a reason, by its index: `counters.drop_full`.
    Drop(usize),
    /// A queue event, by its index: `counters.marked`.
    Event(usize),
}

fields! {
    /// Fields of a variant.
    VariantMetric {
        /// Jain's index of long-lived connections.
        Fairness = "fairness_jain",
        /// Data packets that left the bottleneck, in one run.
        Delivered = "data_packets_delivered",
        /// Cost in bytes sent.
        BytesSent = "bytes_sent_per_byte_delivered",
        /// Headers that hosts sent per payload byte that arrived.
        Headers = "headers_per_byte_delivered",
        /// Look-ups of all routers per second.
        Lookups = "lookups_per_s",
        /// Power that they take.
        LookupPower = "lookup_power_w",
        /// Packets dropped at all links, in one run.
        LostPackets = "lost_packets",
        /// Of these, those with payload.
        LostDataPackets = "lost_data_packets",
        /// Jain's index of the bulk connections that are open: means of five bins, from 8 s after one came or went (`run.bins`).
        SettledFairness = "settled_fairness",
        /// Of what a host wanted to send, or of an equal part of the bottleneck if that is less, what arrived in the time that
        /// is measured: of the worst host that sends nothing raw.
        WorstHost = "worst_host_share",
    }
}

impl Metric {
    /// The field called `word` of a group, link or variant.
    pub fn parse(word: &str, of: Of) -> Option<Metric> {
        fn find<T: Copy>(all: &[(T, &str)], word: &str) -> Option<T> {
            all.iter()
                .find(|(_, name)| *name == word)
                .map(|(field, _)| *field)
        }
        match of {
            Of::Group(_) => find(GroupMetric::ALL, word).map(Metric::Group),
            Of::Variant => find(VariantMetric::ALL, word).map(Metric::Variant),
            Of::Link(_) => {
                let plain = find(LinkPlain::ALL, word).map(LinkMetric::Plain);
                let counter = || {
                    let name = word.strip_prefix("counters.")?;
                    let event = QueueEventKind::ALL.iter().position(|kind| kind.name() == name);
                    let reason = || {
                        let name = name.strip_prefix("drop_")?;
                        DropReason::ALL.iter().position(|reason| reason.name() == name)
                    };
                    event
                        .map(LinkMetric::Event)
                        .or_else(|| reason().map(LinkMetric::Drop))
                };
                plain.or_else(counter).map(Metric::Link)
            }
        }
    }

    /// Names of all fields of a group, link or variant.
    pub fn names(of: Of) -> Vec<String> {
        fn all<T>(list: &[(T, &str)]) -> Vec<String> {
            list.iter().map(|(_, name)| (*name).to_owned()).collect()
        }
        match of {
            Of::Group(_) => all(GroupMetric::ALL),
            Of::Variant => all(VariantMetric::ALL),
            Of::Link(_) => {
                let mut names = all(LinkPlain::ALL);
                let events = QueueEventKind::ALL.iter();
                names.extend(events.map(|kind| format!("counters.{}", kind.name())));
                let reasons = DropReason::ALL.iter();
                names.extend(reasons.map(|reason| format!("counters.drop_{}", reason.name())));
                names
            }
        }
    }

    /// Whether it is of connections kept in bins.
    pub fn needs_bins(self) -> bool {
        match self {
            Metric::Group(metric) => matches!(
                metric,
                GroupMetric::LossSynchronisation
                    | GroupMetric::Reductions
                    | GroupMetric::FirstSegmentLoss
                    | GroupMetric::FirstWindowLoss
                    | GroupMetric::FirstWindowLossAfterLoss
                    | GroupMetric::FirstWindowThrough
                    | GroupMetric::FirstWindowThroughAfterLoss
            ),
            Metric::Variant(metric) => metric == VariantMetric::SettledFairness,
            Metric::Link(_) | Metric::Analysis(_) => false,
        }
    }

    /// What has a metric of this name.
    pub fn home(word: &str) -> Option<&'static str> {
        [Of::Group(0), Of::Link(0)]
            .into_iter()
            .find(|of| Metric::parse(word, *of).is_some())
            .map(Of::name)
    }
}
