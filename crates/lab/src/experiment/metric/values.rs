//! The values of a metric, run by run.

use super::watched;
use super::{GroupMetric, LinkMetric, LinkPlain, Metric, Of, VariantMetric};
use crate::compare::groups::{completion_times, normalised};
use crate::compare::units;
use crate::scenario::Resolved;
use crate::statistics::{Counted, Sample, jain};
use fleetfoot_core::queue::QueueEventKind;
use fleetfoot_core::tcp::Config;
use fleetfoot_sim::output::{FlowRecord, GroupOutput, Histogram, LinkOutput, RunOutput};
use fleetfoot_sim::spec::TrafficKind;

/// Values of a metric, run by run.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// One or more values of each run.
    Samples(Vec<Sample>),
    /// Counted values of each run, and how many make one of the unit.
    Counts(Vec<Counted>, f64),
}

/// The values of `metric` in `runs` of the scenario `resolved`; `loss_free` are the same runs without loss and
/// mechanisms, if there are such, `bottleneck` names the links.
pub fn values(
    metric: Metric,
    of: Of,
    resolved: &Resolved,
    runs: &[&RunOutput],
    loss_free: Option<&[&RunOutput]>,
    bottleneck: &[String],
) -> Values {
    let measured_s = (resolved.run.duration - resolved.run.warmup).as_secs_f64();
    match (metric, of) {
        (Metric::Group(metric), Of::Group(index)) => {
            let info = GroupFacts {
                kind: resolved.groups[index].kind,
                unit: unit(&resolved.spec.groups[index].sender),
                measured_s,
            };
            if metric == GroupMetric::SuperPacketLength {
                let groups = runs.iter().filter_map(|run| run.groups.get(index));
                return Values::Counts(
                    groups.map(|group| counted(&group.super_packet_length)).collect(),
                    1.0,
                );
            }
            if metric == GroupMetric::NormalisedFct {
                let twins = loss_free.unwrap_or_default();
                let times = runs
                    .iter()
                    .zip(twins)
                    .map(|(run, twin)| normalised(info.kind, run, twin, index));
                return Values::Samples(times.collect());
            }
            let one = |run: &&RunOutput| {
                run.groups.get(index).map_or_else(Sample::default, |group| {
                    group_values(metric, &info, group, run, index, resolved)
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
        (Metric::Variant(VariantMetric::SettledFairness), _) => {
            let run_settings = &resolved.run;
            let bin = run_settings.bins.unwrap_or(run_settings.duration);
            let one = |run: &&RunOutput| watched::settled_fairness(run, bin, run_settings.duration);
            Values::Samples(runs.iter().map(one).collect())
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
    info: &GroupFacts,
    group: &GroupOutput,
    run: &RunOutput,
    index: usize,
    resolved: &Resolved,
) -> Sample {
    let &GroupFacts {
        kind,
        unit,
        measured_s,
    } = info;
    // Sent, as far as it had an end within the measured time: arrived in order or dropped.
    let sent = || group.goodput_bytes.0 as f64 / f64::from(unit.payload) + group.dropped as f64;
    let events = || flows_total(group, |flow| u64::from(flow.stats().congestion_events));
    let per_unit = |count: f64| Sample::of((sent() > 0.0).then(|| count / sent()).into_iter().collect());
    let flows = &group.flows;
    let (bin, warmup) = (
        resolved.run.bins.unwrap_or(resolved.run.duration),
        resolved.run.warmup,
    );
    let each =
        |value: &dyn Fn(&FlowRecord) -> Option<f64>| Sample::of(flows.iter().filter_map(value).collect());
    let total =
        |count: &dyn Fn(&FlowRecord) -> u64| Sample::of(vec![flows.iter().map(count).sum::<u64>() as f64]);
    match metric {
        GroupMetric::Fct => completion_times(kind, run, index),
        GroupMetric::Acked => each(&|flow| Some(flow.acked?.since(flow.start).as_secs_f64())),
        GroupMetric::DeliveryLatency => Sample::of(group.delivery_latency.clone()),
        GroupMetric::AckLatency => each(&|flow| flow.mean_ack_latency()),
        GroupMetric::Goodput if kind.facts().flow_is_connection => each(&|flow| {
            let fct = flow.completed?.since(flow.start).as_secs_f64();
            (fct > 0.0).then(|| flow.bytes.0 as f64 * 8.0 / fct)
        }),
        GroupMetric::Goodput => {
            let shares = group.goodput_bytes_per_connection.iter();
            Sample::of(shares.map(|bytes| bytes.0 as f64 * 8.0 / measured_s).collect())
        }
        GroupMetric::Throughput => {
            let shares = group.goodput_bytes_per_connection.iter();
            let scale = f64::from(unit.len) / f64::from(unit.payload) * 8.0 / measured_s;
            Sample::of(shares.map(|bytes| bytes.0 as f64 * scale).collect())
        }
        GroupMetric::DropRate => per_unit(group.dropped as f64),
        GroupMetric::CongestionEventRate => per_unit(events() as f64),
        GroupMetric::CongestionEvents => Sample::of(vec![events() as f64]),
        GroupMetric::DroppedUnits => Sample::of(vec![group.dropped as f64]),
        GroupMetric::Flows => Sample::of(vec![flows.len() as f64]),
        GroupMetric::Completed => total(&|flow| u64::from(flow.completed.is_some())),
        GroupMetric::Censored => Sample::of(vec![completion_times(kind, run, index).censored.len() as f64]),
        GroupMetric::Retransmits => total(&|flow| u64::from(flow.stats().retransmits)),
        GroupMetric::Timeouts => total(&|flow| u64::from(flow.stats().timeouts)),
        GroupMetric::SpuriousTimeouts => total(&|flow| u64::from(flow.stats().spurious_timeouts)),
        GroupMetric::Probes => total(&|flow| u64::from(flow.stats().probes)),
        GroupMetric::SpuriousProbes => total(&|flow| u64::from(flow.stats().spurious_probes)),
        GroupMetric::NewProbes => total(&|flow| u64::from(flow.stats().new_probes)),
        GroupMetric::SegmentAckLatency => Sample::of(group.ack_latency.clone()),
        GroupMetric::Connection => Sample::of(group.connections.clone()),
        GroupMetric::LongestRecovery => each(&|flow| {
            let longest = flow.stats().longest_recovery.as_secs_f64();
            (longest > 0.0).then_some(longest)
        }),
        GroupMetric::RdbPackets => total(&|flow| u64::from(flow.stats().rdb_packets)),
        GroupMetric::RdbLosses => total(&|flow| u64::from(flow.stats().rdb_losses)),
        GroupMetric::Redundancy => {
            let received: u64 = flows.iter().map(|flow| flow.received.0).sum();
            let carried: u64 = flows.iter().map(|flow| flow.stats().rdb_bytes).sum();
            let share = (received > 0).then(|| carried as f64 / received as f64);
            Sample::of(share.into_iter().collect())
        }
        GroupMetric::RedundantBytes => total(&|flow| flow.stats().redundant_bytes),
        GroupMetric::SuperPackets => {
            let lengths = group.super_packet_length.counts();
            let formed: u64 = lengths.iter().filter(|pair| pair.0 > 1).map(|pair| pair.1).sum();
            Sample::of(vec![formed as f64])
        }
        // The one has many values per run and is read as counts, the other is of two runs.
        GroupMetric::SuperPacketLength | GroupMetric::NormalisedFct => Sample::default(),
        GroupMetric::LossEventRate => crate::compare::groups::loss_event_rates(group),
        GroupMetric::LossShare | GroupMetric::DeliveredShare => {
            let sent: u64 = flows.iter().map(|flow| flow.stats().bytes_sent).sum();
            let received: u64 = flows.iter().map(|flow| flow.received.0).sum();
            let share = (sent > 0).then(|| received as f64 / sent as f64);
            let share = share.map(|share| match metric {
                GroupMetric::LossShare => 1.0 - share,
                _ => share,
            });
            Sample::of(share.into_iter().collect())
        }
        GroupMetric::LossSynchronisation => watched::loss_synchronisation(&group.watched, bin, warmup),
        GroupMetric::Reductions => Sample::of(vec![watched::reductions(&group.watched, bin, warmup)]),
        GroupMetric::FirstSegmentLoss => watched::first_segments(&group.watched),
        GroupMetric::FirstWindowLoss => watched::first_losses(&group.watched, false),
        GroupMetric::FirstWindowLossAfterLoss => watched::first_losses(&group.watched, true),
        GroupMetric::FirstWindowThrough => watched::first_arrivals(&group.watched, false),
        GroupMetric::FirstWindowThroughAfterLoss => watched::first_arrivals(&group.watched, true),
        GroupMetric::IntactShare => {
            let whole = |flow: &&FlowRecord| flow.completed.is_some() && flow.stats().retransmits == 0;
            let intact = flows.iter().filter(whole).count() as f64;
            let share = (!flows.is_empty()).then(|| intact / flows.len() as f64);
            Sample::of(share.into_iter().collect())
        }
    }
}

/// What the values of a group need beside its runs.
struct GroupFacts {
    kind: TrafficKind,
    unit: Unit,
    measured_s: f64,
}

/// A full data unit of a group.
#[derive(Clone, Copy)]
struct Unit {
    /// Bytes at layer 3.
    len: u32,
    /// Payload.
    payload: u32,
}

fn unit(config: &Config) -> Unit {
    let options = if config.timestamps { 12 } else { 0 };
    Unit {
        len: config.mtu,
        payload: config.mss().saturating_sub(options).max(1),
    }
}

/// Layer-3 size of the full data units of a group, for slopes over groups.
pub fn unit_bytes(resolved: &Resolved, index: usize) -> f64 {
    f64::from(unit(&resolved.spec.groups[index].sender).len)
}

fn flows_total(group: &GroupOutput, count: impl Fn(&FlowRecord) -> u64) -> u64 {
    group.flows.iter().map(count).sum()
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
            LinkPlain::Units => link.packets as f64,
            LinkPlain::Bytes => link.bytes.0 as f64,
            LinkPlain::Throughput => link.bytes.0 as f64 * 8.0 / measured_s,
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
                .filter(|(info, _)| info.kind.facts().greedy);
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
        VariantMetric::Headers => units::headers_per_byte(resolved, std::iter::once(run)),
        VariantMetric::Lookups => Some(lookups_per_s(resolved, run)),
        VariantMetric::LookupPower => Some(lookups_per_s(resolved, run) * units::LOOKUP_J),
        VariantMetric::LostPackets => Some(lost(run, 0..3)),
        VariantMetric::LostDataPackets => Some(lost(run, 0..1)),
        // It has many values per run and is read apart.
        VariantMetric::SettledFairness => None,
        VariantMetric::WorstHost => super::super::hosts::worst_share(resolved, run, bottleneck),
        VariantMetric::BytesSent => {
            let sent: u64 = flows().map(|flow| flow.stats().bytes_sent).sum();
            let received: u64 = flows().map(|flow| flow.received.0).sum();
            (sent > 0 && received > 0).then(|| sent as f64 / received as f64)
        }
    }
}

fn lookups_per_s(resolved: &Resolved, run: &RunOutput) -> f64 {
    units::lookups(resolved, run) as f64 / units::measured_s(resolved)
}

/// Packets of some kinds (data, pure ACK, other) dropped at all links.
fn lost(run: &RunOutput, kinds: std::ops::Range<usize>) -> f64 {
    let reasons = run.links.iter().flat_map(|link| &link.drops);
    reasons.flat_map(|drops| &drops[kinds.clone()]).sum::<u64>() as f64
}
