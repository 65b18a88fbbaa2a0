//! What checks measure: the fields of the result JSON, read run by run, and their statistics with all resamples.
//!
//! A statistic is computed for the runs as they are and for every resample of them. Ratios are taken resample by resample,
//! so that whatever is compared is paired by seed.

use crate::compare::groups::{completion_times, is_connection_per_flow};
use crate::scenario::Resolved;
use crate::statistics::{Counted, Resamples, Sample, jain};
use fleetfoot_core::queue::{DropReason, QueueEventKind};
use fleetfoot_sim::output::{FlowRecord, GroupOutput, Histogram, LinkOutput, RunOutput};

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
        /// Until the last byte is acknowledged.
        Acked = "acked_s",
        /// Per application write.
        DeliveryLatency = "delivery_latency_s",
        /// Mean per flow.
        AckLatency = "ack_latency_s",
        /// Per transfer or connection.
        Goodput = "goodput_bps",
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
        /// Packets dropped at all links, in one run.
        LostPackets = "lost_packets",
        /// Of these, those with payload.
        LostDataPackets = "lost_data_packets",
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

    /// What has a metric of this name.
    pub fn home(word: &str) -> Option<&'static str> {
        [Of::Group(0), Of::Link(0)]
            .into_iter()
            .find(|of| Metric::parse(word, *of).is_some())
            .map(Of::name)
    }
}

/// A statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Mean.
    Mean,
    /// This quantile; 1 is the largest.
    Quantile(f64),
    /// Sum of a run, on average.
    Sum,
    /// Part of the sum over all groups.
    Share,
    /// Slope of the logarithms over the points of a sweep.
    Slope,
    /// Jain's index of each run's values, on average.
    Jain,
}

impl Statistic {
    /// The statistic called `word`.
    pub fn parse(word: &str) -> Option<Statistic> {
        Some(match word {
            "mean" => Statistic::Mean,
            "p40" => Statistic::Quantile(0.4),
            "p50" => Statistic::Quantile(0.5),
            "p60" => Statistic::Quantile(0.6),
            "p70" => Statistic::Quantile(0.7),
            "p80" => Statistic::Quantile(0.8),
            "p90" => Statistic::Quantile(0.9),
            "p95" => Statistic::Quantile(0.95),
            "p97" => Statistic::Quantile(0.97),
            "p99" => Statistic::Quantile(0.99),
            "p99.9" => Statistic::Quantile(0.999),
            "max" => Statistic::Quantile(1.0),
            "min" => Statistic::Quantile(0.0),
            "sum" => Statistic::Sum,
            "share" => Statistic::Share,
            "slope" => Statistic::Slope,
            "jain" => Statistic::Jain,
            _ => return None,
        })
    }
}

/// Values of a metric, run by run.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// One or more values of each run.
    Samples(Vec<Sample>),
    /// Counted values of each run, and how many make one of the unit.
    Counts(Vec<Counted>, f64),
}

/// The values of `metric` in `runs` of the scenario `resolved`; `bottleneck` names its links.
pub fn values(
    metric: Metric,
    of: Of,
    resolved: &Resolved,
    runs: &[&RunOutput],
    bottleneck: &[String],
) -> Values {
    let measured_s = (resolved.run.duration - resolved.run.warmup).as_secs_f64();
    match (metric, of) {
        (Metric::Group(metric), Of::Group(index)) => {
            let kind = resolved.groups[index].kind;
            if metric == GroupMetric::SuperPacketLength {
                let groups = runs.iter().filter_map(|run| run.groups.get(index));
                return Values::Counts(
                    groups.map(|group| counted(&group.super_packet_length)).collect(),
                    1.0,
                );
            }
            let one = |run: &&RunOutput| {
                run.groups.get(index).map_or_else(Sample::default, |group| {
                    group_values(metric, kind, group, run, index, measured_s)
                })
            };
            Values::Samples(runs.iter().map(one).collect())
        }
        (Metric::Link(metric), Of::Link(index)) => {
            let links = || runs.iter().filter_map(|run| run.links.get(index));
            match metric {
                LinkMetric::Plain(LinkPlain::QueueDelay) => {
                    Values::Counts(links().map(|link| counted(&link.queue_delay)).collect(), 1e9)
                }
                LinkMetric::Plain(LinkPlain::QueuePackets) => {
                    Values::Counts(links().map(|link| counted(&link.queue_packets)).collect(), 1.0)
                }
                metric => Values::Samples(
                    links()
                        .map(|link| Sample::of(vec![link_value(metric, link, measured_s)]))
                        .collect(),
                ),
            }
        }
        (Metric::Variant(metric), _) => Values::Samples(
            runs.iter()
                .map(|run| {
                    Sample::of(
                        variant_value(metric, resolved, run, bottleneck)
                            .into_iter()
                            .collect(),
                    )
                })
                .collect(),
        ),
        (Metric::Group(_) | Metric::Link(_) | Metric::Analysis(_), _) => {
            Values::Samples(vec![Sample::default(); runs.len()])
        }
    }
}

fn counted(histogram: &Histogram) -> Counted {
    Counted {
        counts: histogram.counts(),
        sum: histogram.sum(),
        max: histogram.max(),
    }
}

fn group_values(
    metric: GroupMetric,
    kind: &str,
    group: &GroupOutput,
    run: &RunOutput,
    index: usize,
    measured_s: f64,
) -> Sample {
    let flows = &group.flows;
    let each =
        |value: &dyn Fn(&FlowRecord) -> Option<f64>| Sample::of(flows.iter().filter_map(value).collect());
    let total =
        |count: &dyn Fn(&FlowRecord) -> u64| Sample::of(vec![flows.iter().map(count).sum::<u64>() as f64]);
    match metric {
        GroupMetric::Fct => completion_times(kind, run, index),
        GroupMetric::Acked => each(&|flow| Some(flow.acked?.since(flow.start).as_secs_f64())),
        GroupMetric::DeliveryLatency => Sample::of(group.delivery_latency.clone()),
        GroupMetric::AckLatency => each(&|flow| {
            (flow.ack_latency_count > 0).then(|| flow.ack_latency_sum / f64::from(flow.ack_latency_count))
        }),
        GroupMetric::Goodput if is_connection_per_flow(kind) => each(&|flow| {
            let fct = flow.completed?.since(flow.start).as_secs_f64();
            (fct > 0.0).then(|| flow.bytes.0 as f64 * 8.0 / fct)
        }),
        GroupMetric::Goodput => {
            let shares = group.goodput_bytes_per_connection.iter();
            Sample::of(shares.map(|bytes| bytes.0 as f64 * 8.0 / measured_s).collect())
        }
        GroupMetric::Flows => Sample::of(vec![flows.len() as f64]),
        GroupMetric::Completed => total(&|flow| u64::from(flow.completed.is_some())),
        GroupMetric::Censored => Sample::of(vec![completion_times(kind, run, index).censored.len() as f64]),
        GroupMetric::Retransmits => total(&|flow| u64::from(flow.retransmits)),
        GroupMetric::Timeouts => total(&|flow| u64::from(flow.timeouts)),
        GroupMetric::SpuriousTimeouts => total(&|flow| u64::from(flow.spurious_timeouts)),
        GroupMetric::Probes => total(&|flow| u64::from(flow.probes)),
        GroupMetric::SpuriousProbes => total(&|flow| u64::from(flow.spurious_probes)),
        GroupMetric::NewProbes => total(&|flow| u64::from(flow.repairs().new_probes)),
        GroupMetric::SegmentAckLatency => Sample::of(group.ack_latency.clone()),
        GroupMetric::LongestRecovery => each(&|flow| {
            let longest = flow.repairs().longest_recovery.as_secs_f64();
            (longest > 0.0).then_some(longest)
        }),
        GroupMetric::RdbPackets => total(&|flow| u64::from(flow.repairs().rdb_packets)),
        GroupMetric::RdbLosses => total(&|flow| u64::from(flow.repairs().rdb_losses)),
        GroupMetric::Redundancy => {
            let received: u64 = flows.iter().map(|flow| flow.received.0).sum();
            let carried: u64 = flows.iter().map(|flow| flow.repairs().rdb_bytes.0).sum();
            let share = (received > 0).then(|| carried as f64 / received as f64);
            Sample::of(share.into_iter().collect())
        }
        GroupMetric::RedundantBytes => total(&|flow| flow.redundant_bytes.0),
        GroupMetric::SuperPackets => {
            let lengths = group.super_packet_length.counts();
            let formed: u64 = lengths.iter().filter(|pair| pair.0 > 1).map(|pair| pair.1).sum();
            Sample::of(vec![formed as f64])
        }
        // It has many values per run and is read as counts.
        GroupMetric::SuperPacketLength => Sample::default(),
        GroupMetric::LossEventRate => crate::compare::groups::loss_event_rates(group),
        GroupMetric::LossShare | GroupMetric::DeliveredShare => {
            let sent: u64 = flows.iter().map(|flow| flow.bytes_sent.0).sum();
            let received: u64 = flows.iter().map(|flow| flow.received.0).sum();
            let share = (sent > 0).then(|| received as f64 / sent as f64);
            let share = share.map(|share| match metric {
                GroupMetric::LossShare => 1.0 - share,
                _ => share,
            });
            Sample::of(share.into_iter().collect())
        }
        GroupMetric::IntactShare => {
            let whole = |flow: &&FlowRecord| flow.completed.is_some() && flow.retransmits == 0;
            let intact = flows.iter().filter(whole).count() as f64;
            let share = (!flows.is_empty()).then(|| intact / flows.len() as f64);
            Sample::of(share.into_iter().collect())
        }
    }
}

fn link_value(metric: LinkMetric, link: &LinkOutput, measured_s: f64) -> f64 {
    let drops = |kind: usize| link.drops.iter().map(|kinds| kinds[kind]).sum::<u64>() as f64;
    let event = |index: usize| link.events.get(index).copied().unwrap_or(0) as f64;
    match metric {
        LinkMetric::Drop(reason) => {
            let kinds = link.drops.get(reason).copied().unwrap_or_default();
            kinds.iter().sum::<u64>() as f64
        }
        LinkMetric::Event(index) => event(index),
        LinkMetric::Plain(field) => match field {
            LinkPlain::Utilisation => link.busy.as_secs_f64() / measured_s,
            LinkPlain::DropsData => drops(0),
            LinkPlain::DropsAck => drops(1),
            LinkPlain::DropsOther => drops(2),
            LinkPlain::Marks => QueueEventKind::ALL
                .iter()
                .position(|kind| *kind == QueueEventKind::Marked)
                .map_or(0.0, event),
            LinkPlain::DataUnits => link.data_packets as f64,
            // These have many values per run and are read as counts.
            LinkPlain::QueueDelay | LinkPlain::QueuePackets => f64::NAN,
        },
    }
}

fn variant_value(
    metric: VariantMetric,
    resolved: &Resolved,
    run: &RunOutput,
    bottleneck: &[String],
) -> Option<f64> {
    let flows = || run.groups.iter().flat_map(|group| &group.flows);
    match metric {
        VariantMetric::Fairness => {
            let bulk = resolved
                .groups
                .iter()
                .zip(&run.groups)
                .filter(|(info, _)| info.kind == "bulk");
            let shares: Vec<f64> = bulk
                .flat_map(|(_, group)| &group.goodput_bytes_per_connection)
                .map(|bytes| bytes.0 as f64)
                .collect();
            jain(&shares)
        }
        VariantMetric::Delivered => Some(
            resolved
                .spec
                .links
                .iter()
                .zip(&run.links)
                .filter(|(spec, _)| bottleneck.contains(&spec.name))
                .map(|(_, link)| link.data_packets)
                .sum::<u64>() as f64,
        ),
        VariantMetric::LostPackets => Some(lost(run, 0..3)),
        VariantMetric::LostDataPackets => Some(lost(run, 0..1)),
        VariantMetric::BytesSent => {
            let sent: u64 = flows().map(|flow| flow.bytes_sent.0).sum();
            let received: u64 = flows().map(|flow| flow.received.0).sum();
            (sent > 0 && received > 0).then(|| sent as f64 / received as f64)
        }
    }
}

/// Packets of some kinds (data, pure ACK, other) dropped at all links.
fn lost(run: &RunOutput, kinds: std::ops::Range<usize>) -> f64 {
    let reasons = run.links.iter().flat_map(|link| &link.drops);
    reasons.flat_map(|drops| &drops[kinds.clone()]).sum::<u64>() as f64
}

/// A statistic of the runs as they are, and of every resample. What does not exist is not a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Of the runs as they are.
    pub estimate: f64,
    /// Of each resample.
    pub resampled: Vec<f64>,
}

impl Series {
    /// What `both` makes of this and `other`, resample by resample.
    #[must_use]
    pub fn with(&self, other: &Series, both: impl Fn(f64, f64) -> f64) -> Series {
        Series {
            estimate: both(self.estimate, other.estimate),
            resampled: self
                .resampled
                .iter()
                .zip(&other.resampled)
                .map(|(a, b)| both(*a, *b))
                .collect(),
        }
    }

    /// Ratio to `other`.
    #[must_use]
    pub fn over(&self, other: &Series) -> Series {
        self.with(other, |a, b| a / b)
    }

    /// Estimate and 95 % interval; `None` where the estimate does not exist, no interval with fewer than two seeds.
    pub fn measured(&self, resamples: &Resamples) -> Option<(f64, Option<[f64; 2]>)> {
        if !self.estimate.is_finite() {
            return None;
        }
        let finite: Vec<f64> = self
            .resampled
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        // An interval of a part of the resamples would look narrower than it is.
        let most = finite.len() * 10 >= self.resampled.len() * 9;
        let ci95 = if most { resamples.interval(finite) } else { None };
        Some((self.estimate, ci95))
    }
}

/// `statistic` of `values`. [`Statistic::Share`] and [`Statistic::Slope`] are of more than one set of values: they give
/// the sum and the mean that shares and slopes are made of.
pub fn series(values: &Values, statistic: Statistic, resamples: &Resamples) -> Series {
    let ratio_of_sums = |runs: Vec<(f64, f64)>| {
        let of = |row: &[u16]| {
            let weighted = row.iter().zip(&runs);
            let (sum, n) = weighted.fold((0.0, 0.0), |(sum, n), (&weight, run)| {
                (sum + f64::from(weight) * run.0, n + f64::from(weight) * run.1)
            });
            if n > 0.0 { sum / n } else { f64::NAN }
        };
        Series {
            estimate: of(&vec![1; resamples.seeds()]),
            resampled: resamples.rows().map(of).collect(),
        }
    };
    match (statistic, values) {
        (Statistic::Mean | Statistic::Slope, values) => ratio_of_sums(sums(values)),
        (Statistic::Sum | Statistic::Share, values) => {
            ratio_of_sums(sums(values).into_iter().map(|(sum, _)| (sum, 1.0)).collect())
        }
        (Statistic::Jain, values) => ratio_of_sums(
            per_run(values, Statistic::Jain)
                .into_iter()
                .map(|value| {
                    if value.is_finite() {
                        (value, 1.0)
                    } else {
                        (0.0, 0.0)
                    }
                })
                .collect(),
        ),
        (Statistic::Quantile(level), Values::Samples(runs)) => {
            let (estimate, resampled) = resamples.quantiles(runs, level);
            Series { estimate, resampled }
        }
        (Statistic::Quantile(level), Values::Counts(runs, per)) => {
            let (estimate, resampled) = resamples.counted_quantiles(runs, level);
            Series {
                estimate: estimate / per,
                resampled: resampled.into_iter().map(|value| value / per).collect(),
            }
        }
    }
}

/// One number of each run: `statistic` of its own values.
pub fn per_run(values: &Values, statistic: Statistic) -> Vec<f64> {
    let alone = Resamples::none(1);
    let one = |values: Values| match (statistic, &values) {
        (Statistic::Jain, Values::Samples(runs)) => {
            let all: Vec<f64> = runs
                .iter()
                .flat_map(|run| run.completed.iter().chain(&run.censored))
                .copied()
                .collect();
            jain(&all).unwrap_or(f64::NAN)
        }
        (Statistic::Jain, Values::Counts(..)) => f64::NAN,
        _ => series(&values, statistic, &alone).estimate,
    };
    match values {
        Values::Samples(runs) => runs
            .iter()
            .map(|run| one(Values::Samples(vec![run.clone()])))
            .collect(),
        Values::Counts(runs, per) => runs
            .iter()
            .map(|run| one(Values::Counts(vec![run.clone()], *per)))
            .collect(),
    }
}

/// Sum and number of the values of each run.
fn sums(values: &Values) -> Vec<(f64, f64)> {
    match values {
        Values::Samples(runs) => runs.iter().map(|run| (run.sum(), run.len() as f64)).collect(),
        Values::Counts(runs, per) => runs
            .iter()
            .map(|run| {
                let n: u64 = run.counts.iter().map(|pair| pair.1).sum();
                (run.sum as f64 / per, n as f64)
            })
            .collect(),
    }
}
