//! One variant of the document from its runs.
//!
//! **Departure from the rule for flows that did not complete.** They enter quantiles as the largest and means as their
//! age; a ping does not. Its echo is one datagram that nobody sends again: without it there is no time, only a loss, and an
//! age would measure when the run ended. Lost pings are the difference of `flows` and `completed`, and a note reports
//! them. Frames of video calls likewise: what is late or lost is a share of its own. A look-up that was given up took as long
//! as the application waited, not until the run ended.

use super::{Planned, direction, units};
use crate::metrics::counters::Counters;
use crate::result::{Drops, Group, Link, RunData, SizeClass, Summary, Variant};
use crate::scenario::{self, Resolved};
use crate::statistics::{Counted, Resamples, Sample, jain, summarize, summarize_counted};
use fleetfoot_core::queue::{DropReason, QueueEventKind};
use fleetfoot_core::time::Duration;
use fleetfoot_sim::output::{Datagrams, FlowRecord, GroupOutput, Histogram, RunOutput};
use fleetfoot_sim::spec::{Losses, TrafficKind};
use std::collections::BTreeMap;

/// Names of the links that count as the bottleneck: those the scenario names, or those above 90 % utilisation.
pub(crate) fn bottleneck(described: &Resolved, runs: &[RunData]) -> Vec<String> {
    if !described.run.bottleneck.is_empty() {
        return described.run.bottleneck.clone();
    }
    let mut names: Vec<String> = Vec::new();
    for (index, link) in described.spec.links.iter().enumerate() {
        if utilisation(described, runs, index) > 0.9 && !names.contains(&link.name) {
            names.push(link.name.clone());
        }
    }
    names
}

/// Everything of a variant but the comparison.
pub(super) fn variant(
    planned: &Planned,
    runs: &[RunData],
    loss_free: Option<&[RunData]>,
    bottleneck: &[String],
    resamples: &Resamples,
) -> Variant {
    let resolved = &planned.resolved;
    let outputs: Vec<&RunOutput> = runs.iter().map(|run| run.output.as_ref()).collect();
    let mut groups: Vec<Group> = (0..resolved.groups.len())
        .map(|index| group(resolved, index, &outputs, resamples))
        .collect();
    if let Some(loss_free) = loss_free {
        for (index, group) in groups.iter_mut().enumerate() {
            let kind = resolved.groups[index].kind;
            let of = |run: &RunData| {
                let twin = loss_free.iter().find(|twin| twin.seed == run.seed)?;
                Some(normalised(kind, &run.output, &twin.output, index))
            };
            let times: Vec<Sample> = runs.iter().map(|run| of(run).unwrap_or_default()).collect();
            if let Some(times) = summarize(&times, resamples) {
                group.more.insert(NORMALISED_FCT.to_owned(), times);
            }
        }
    }
    let flows = || {
        outputs
            .iter()
            .flat_map(|output| &output.groups)
            .flat_map(|group| &group.flows)
    };
    let received: u64 = flows().map(|flow| flow.received.0).sum();
    let sent: u64 = flows().map(|flow| flow.stats().bytes_sent).sum();
    let bottleneck_packets = |output: &&RunOutput| -> u64 {
        let links = resolved.spec.links.iter().zip(&output.links);
        links
            .filter(|(spec, _)| bottleneck.contains(&spec.name))
            .map(|(_, link)| link.data_packets)
            .sum()
    };
    let lookups: u64 = outputs
        .iter()
        .map(|output| units::lookups(resolved, output))
        .sum();
    let lookups_per_s = match outputs.len() {
        0 => 0.0,
        runs => lookups as f64 / (units::measured_s(resolved) * runs as f64),
    };
    Variant {
        name: planned.name.clone(),
        set: planned
            .set
            .iter()
            .map(|(path, value)| (path.to_owned(), json(value)))
            .collect(),
        runs: runs.len() as u64,
        turn_on: turn_on(planned),
        instructions: Vec::new(),
        groups,
        links: (0..resolved.spec.links.len())
            .map(|index| link(resolved, index, runs, resamples))
            .collect(),
        nodes: units::nodes(planned, &outputs),
        headers_per_byte_delivered: units::headers_per_byte(resolved, outputs.iter().copied()),
        lookups_per_s,
        lookup_power_w: lookups_per_s * units::LOOKUP_J,
        fairness_jain: fairness(resolved, &outputs),
        data_packets_delivered: outputs.iter().map(bottleneck_packets).sum(),
        bytes_sent_per_byte_delivered: (received > 0 && sent > 0).then(|| sent as f64 / received as f64),
        versus: None,
    }
}

/// How to switch on the mechanisms that a variant consists of.
fn turn_on(planned: &Planned) -> Option<String> {
    let texts: Vec<&str> = planned
        .mechanisms
        .iter()
        .map(|mechanism| mechanism.turn_on)
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Completion times of a group in one run.
pub(crate) fn completion_times(kind: TrafficKind, output: &RunOutput, index: usize) -> Sample {
    let flows = output.groups.get(index).map_or(&[][..], |group| &group.flows);
    Sample {
        completed: flows
            .iter()
            .filter_map(|flow| Some(flow.completed?.since(flow.start).as_secs_f64()))
            .collect(),
        censored: flows
            .iter()
            .filter(|flow| is_censored(kind, flow))
            .map(|flow| age(flow, output))
            .collect(),
    }
}

/// How long somebody waited in vain for a flow (s): until it was given up, or the run ended.
pub(crate) fn age(flow: &FlowRecord, output: &RunOutput) -> f64 {
    flow.given_up
        .unwrap_or(output.ended)
        .since(flow.start)
        .as_secs_f64()
}

/// Completion times of a group in one run as multiples of those in `twin`, the run of the same seed without loss and
/// mechanisms. The n-th flow of a pair of hosts is compared with the n-th of that pair there; one of another size, as
/// where the application waits for answers, has no counterpart, nor has one that did not complete there.
pub(crate) fn normalised(kind: TrafficKind, output: &RunOutput, twin: &RunOutput, index: usize) -> Sample {
    let twins: BTreeMap<_, _> = numbered(twin, index).collect();
    let mut sample = Sample::default();
    for (number, flow) in numbered(output, index) {
        let unit = twins.get(&number).filter(|twin| twin.bytes == flow.bytes);
        let unit = unit.and_then(|twin| Some(twin.completed?.since(twin.start).as_secs_f64()));
        let Some(unit) = unit.filter(|unit| *unit > 0.0) else {
            continue;
        };
        match flow.completed {
            Some(completed) => sample
                .completed
                .push(completed.since(flow.start).as_secs_f64() / unit),
            None if is_censored(kind, flow) => sample.censored.push(age(flow, output) / unit),
            None => {}
        }
    }
    sample
}

/// The flows of a group with the index of their pair of hosts and their number within it.
fn numbered(output: &RunOutput, index: usize) -> impl Iterator<Item = ((u32, u32), &FlowRecord)> {
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    let flows = output.groups.get(index).map_or(&[][..], |group| &group.flows);
    flows.iter().map(move |flow| {
        let number = next.entry(flow.pair).or_default();
        *number += 1;
        ((flow.pair, *number), flow)
    })
}

/// Leaves out classes that are empty in every variant.
pub(super) fn leave_out_empty_sizes(variants: &mut [Variant]) {
    let groups = variants.first().map_or(0, |variant| variant.groups.len());
    for group in 0..groups {
        let classes = variants[0].groups[group].by_size.len();
        let filled: Vec<bool> = (0..classes)
            .map(|class| {
                variants
                    .iter()
                    .any(|variant| variant.groups[group].by_size[class].fct_s.is_some())
            })
            .collect();
        for variant in &mut *variants {
            let mut keep = filled.iter();
            variant.groups[group]
                .by_size
                .retain(|_| keep.next().copied().unwrap_or(false));
        }
    }
}

/// The answer of a single run.
pub(super) fn answer(variant: &Variant) -> String {
    let group = variant
        .groups
        .iter()
        .find(|group| group.latency_sensitive && group.fct_s.is_some());
    match group.and_then(|group| Some((group, group.fct_s.as_ref()?))) {
        Some((group, fct)) if group.censored == 0 => format!(
            "{} transfers of {} took {:.3} s on average (median {:.3} s, 99th percentile {:.3} s).",
            fct.n, group.name, fct.mean, fct.p50, fct.p99
        ),
        Some((group, fct)) if group.completed == 0 => format!(
            "None of the {} transfers of {} completed; they were {:.3} s old on average when the run ended.",
            fct.n, group.name, fct.mean
        ),
        Some((group, fct)) => format!(
            "{} of {} transfers of {} completed; all took at least {:.3} s on average, those that did not complete counted with their age.",
            group.completed, fct.n, group.name, fct.mean
        ),
        None => String::from("No latency-sensitive transfer was measured."),
    }
}

/// A TOML value as JSON.
pub(super) fn json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(list) => list.iter().map(json).collect(),
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| (key.clone(), json(value)))
            .collect(),
    }
}

pub(crate) fn is_censored(kind: TrafficKind, flow: &FlowRecord) -> bool {
    // A TFRC stream without end has as many bytes as arrived.
    let endless = !kind.facts().completes || kind == TrafficKind::Tfrc && flow.bytes == flow.received;
    flow.completed.is_none() && !endless
}

fn group(resolved: &Resolved, index: usize, outputs: &[&RunOutput], resamples: &Resamples) -> Group {
    let info = &resolved.groups[index];
    let parts: Vec<_> = outputs
        .iter()
        .filter_map(|output| output.groups.get(index))
        .collect();
    let flows = || parts.iter().flat_map(|part| &part.flows);
    let total = |count: &dyn Fn(&FlowRecord) -> u64| flows().map(count).sum::<u64>();
    let per_flow = |value: &dyn Fn(&FlowRecord) -> Option<f64>| {
        let runs: Vec<Sample> = parts
            .iter()
            .map(|part| Sample::of(part.flows.iter().filter_map(value).collect()))
            .collect();
        summarize(&runs, resamples)
    };
    let measured_s = (resolved.run.duration - resolved.run.warmup).as_secs_f64();
    let times: Vec<Sample> = outputs
        .iter()
        .map(|output| completion_times(info.kind, output, index))
        .collect();
    let goodput = if info.kind.facts().flow_is_connection {
        per_flow(&|flow| {
            let fct = flow.completed?.since(flow.start).as_secs_f64();
            (fct > 0.0).then(|| flow.bytes.0 as f64 * 8.0 / fct)
        })
    } else {
        let runs: Vec<Sample> = parts
            .iter()
            .map(|part| {
                let rates = part
                    .goodput_bytes_per_connection
                    .iter()
                    .map(|bytes| bytes.0 as f64 * 8.0 / measured_s);
                Sample::of(rates.collect())
            })
            .collect();
        summarize(&runs, resamples)
    };
    let latencies: Vec<Sample> = parts
        .iter()
        .map(|part| Sample::of(part.delivery_latency.clone()))
        .collect();
    Group {
        name: info.name.clone(),
        kind: info.kind.name().to_owned(),
        latency_sensitive: info.latency_sensitive,
        flows: flows().count() as u64,
        completed: flows().filter(|flow| flow.completed.is_some()).count() as u64,
        censored: flows().filter(|flow| is_censored(info.kind, flow)).count() as u64,
        fct_s: summarize(&times, resamples),
        acked_s: per_flow(&|flow| Some(flow.acked?.since(flow.start).as_secs_f64())),
        delivery_latency_s: summarize(&latencies, resamples),
        ack_latency_s: per_flow(&FlowRecord::mean_ack_latency),
        goodput_bps: goodput,
        by_size: by_size(info.kind, index, outputs, resamples),
        counters: Counters::of(flows()),
        dropped_units: parts.iter().map(|part| part.dropped).sum(),
        congestion_events: total(&|flow| u64::from(flow.stats().congestion_events)),
        more: more(info, &parts, resamples),
    }
}

/// Measures that only some groups have.
fn more(info: &scenario::Group, parts: &[&GroupOutput], resamples: &Resamples) -> BTreeMap<String, Summary> {
    let lengths: Vec<Counted> = parts
        .iter()
        .map(|part| counted(&part.super_packet_length))
        .collect();
    let lengths = summarize_counted(&lengths, 1.0, resamples);
    let lengths = lengths.map(|summary| (SUPER_PACKET_LENGTH.to_owned(), summary));
    let rates: Vec<Sample> = parts.iter().map(|part| loss_event_rates(part)).collect();
    let rates = summarize(&rates, resamples);
    let rates = rates.map(|summary| (LOSS_EVENT_RATE.to_owned(), summary));
    // What only some mechanisms and kinds of traffic have.
    let each = |value: &dyn Fn(&FlowRecord) -> Option<f64>| {
        let runs: Vec<Sample> = parts
            .iter()
            .map(|part| Sample::of(part.flows.iter().filter_map(value).collect()))
            .collect();
        summarize(&runs, resamples)
    };
    let segments: Vec<Sample> = parts
        .iter()
        .map(|part| Sample::of(part.ack_latency.clone()))
        .collect();
    let connections: Vec<Sample> = parts
        .iter()
        .map(|part| Sample::of(part.connections.clone()))
        .collect();
    let redundancy = each(&|flow| {
        let carried = flow.stats().rdb_bytes;
        (carried > 0 && flow.received.0 > 0).then(|| carried as f64 / flow.received.0 as f64)
    });
    let recovery = each(&|flow| {
        let longest = flow.stats().longest_recovery;
        (longest != Duration::ZERO).then(|| longest.as_secs_f64())
    });
    let late = info.deadline.and_then(|deadline| {
        each(&|flow| {
            let in_time = flow.completed.is_some_and(|at| at.since(flow.start) <= deadline);
            Some(f64::from(u8::from(!in_time)))
        })
    });
    let lost: Vec<Sample> = parts
        .iter()
        .map(|part| Sample::of(lost_share(info.kind, part).into_iter().collect()))
        .collect();
    let more = [
        (LATE_OR_LOST, late),
        (LOST_SHARE, summarize(&lost, resamples)),
        (SEGMENT_ACK_LATENCY, summarize(&segments, resamples)),
        (REDUNDANCY, redundancy),
        (LONGEST_RECOVERY, recovery),
        (CONNECTION, summarize(&connections, resamples)),
    ];
    let more = more
        .into_iter()
        .filter_map(|(name, summary)| Some((name.to_owned(), summary?)));
    lengths.into_iter().chain(rates).chain(more).collect()
}

/// Share of the datagrams of a run that were lost: of kinds that nobody sends again.
pub(crate) fn lost_share(kind: TrafficKind, group: &GroupOutput) -> Option<f64> {
    let (lost, all) = match kind.facts().losses {
        Losses::Datagrams => {
            let Datagrams { arrived, lost } = group.datagrams;
            (lost, arrived + lost)
        }
        Losses::Flows => {
            let lost = group.flows.iter().filter(|flow| flow.completed.is_none());
            (lost.count() as u64, group.flows.len() as u64)
        }
        Losses::Repaired => return None,
    };
    (all > 0).then(|| lost as f64 / all as f64)
}

/// Per TFRC stream: loss events per packet that arrived or was lost, as its receiver computed it last.
pub(crate) fn loss_event_rates(group: &GroupOutput) -> Sample {
    Sample::of(
        group
            .streams
            .iter()
            .map(|stream| stream.loss_event_rate)
            .collect(),
    )
}

fn counted(histogram: &Histogram) -> Counted {
    Counted {
        counts: histogram.counts(),
        sum: histogram.sum(),
        max: histogram.max(),
    }
}

/// In `more`: share of frames that arrived after the deadline of their call, or never whole.
pub(super) const LATE_OR_LOST: &str = "late_or_lost";

/// In `more`: per run, the share of datagrams that were lost, of kinds that nobody sends again; of pings, that of those
/// without an answer.
pub(super) const LOST_SHARE: &str = "lost_share";

/// In `more`: packets of each group of data packets that left together.
pub(super) const SUPER_PACKET_LENGTH: &str = "super_packet_length";

/// In `more`: loss event rates of TFRC streams.
pub(super) const LOSS_EVENT_RATE: &str = "loss_event_rate";

/// In `more`: from the first transmission of a segment of a thin stream to its ACK (s).
pub(super) const SEGMENT_ACK_LATENCY: &str = "segment_ack_latency_s";

/// In `more`: per flow that bundled, bytes carried along per byte received.
pub(super) const REDUNDANCY: &str = "redundancy";

/// In `more`: per flow that sent a segment again, the longest time from its first transmission to its ACK (s).
pub(super) const LONGEST_RECOVERY: &str = "longest_recovery_s";

/// In `more`: completion time over that of the same flow without loss and mechanisms (`run.loss_free`).
pub(super) const NORMALISED_FCT: &str = "normalised_fct";

/// In `more`: of replayed connections, from the first SYN to the last payload byte of either end, waiting included (s).
pub(super) const CONNECTION: &str = "connection_s";

/// Completion times by classes of size: 1, 3, 10, 30... kB.
fn by_size(kind: TrafficKind, index: usize, outputs: &[&RunOutput], resamples: &Resamples) -> Vec<SizeClass> {
    if !kind.facts().completes {
        return Vec::new();
    }
    let mut classes = vec![vec![Sample::default(); outputs.len()]; SIZES.len() - 1];
    for (run, output) in outputs.iter().enumerate() {
        for flow in output.groups.get(index).map_or(&[][..], |group| &group.flows) {
            let class = SIZES
                .partition_point(|edge| *edge <= flow.bytes.0)
                .clamp(1, SIZES.len() - 1)
                - 1;
            let sample = &mut classes[class][run];
            match flow.completed {
                Some(completed) => sample.completed.push(completed.since(flow.start).as_secs_f64()),
                None if !is_censored(kind, flow) => {}
                None => sample.censored.push(age(flow, output)),
            }
        }
    }
    classes
        .iter()
        .zip(SIZES.windows(2))
        .map(|(runs, edges)| SizeClass {
            from_bytes: edges[0],
            to_bytes: edges[1],
            fct_s: summarize(runs, resamples),
        })
        .collect()
}

fn link(resolved: &Resolved, index: usize, runs: &[RunData], resamples: &Resamples) -> Link {
    let spec = &resolved.spec.links[index];
    let parts: Vec<_> = runs
        .iter()
        .filter_map(|run| run.output.links.get(index))
        .collect();
    let delays: Vec<Counted> = parts.iter().map(|part| counted(&part.queue_delay)).collect();
    let packets: Vec<Counted> = parts.iter().map(|part| counted(&part.queue_packets)).collect();
    let mut drops = Drops::default();
    let mut counters: BTreeMap<String, u64> = BTreeMap::new();
    let mut marks = 0;
    for part in &parts {
        for (reason, &[data, ack, other]) in DropReason::ALL.iter().zip(&part.drops) {
            drops.data += data;
            drops.ack += ack;
            drops.other += other;
            if data + ack + other > 0 {
                *counters.entry(format!("drop_{}", reason.name())).or_default() += data + ack + other;
            }
        }
        for (kind, &count) in QueueEventKind::ALL.iter().zip(&part.events) {
            if *kind == QueueEventKind::Marked {
                marks += count;
            }
            if count > 0 {
                *counters.entry(kind.name().to_owned()).or_default() += count;
            }
        }
    }
    Link {
        name: spec.name.clone(),
        direction: direction(spec.forward).to_owned(),
        utilisation: utilisation(resolved, runs, index),
        queue_delay_s: summarize_counted(&delays, 1e9, resamples),
        queue_packets: summarize_counted(&packets, 1.0, resamples),
        drops,
        marks,
        data_units: parts.iter().map(|part| part.data_packets).sum(),
        units: parts.iter().map(|part| part.packets).sum(),
        bytes: parts.iter().map(|part| part.bytes.0).sum(),
        counters,
    }
}

fn utilisation(resolved: &Resolved, runs: &[RunData], index: usize) -> f64 {
    let measured_s = (resolved.run.duration - resolved.run.warmup).as_secs_f64();
    let busy: f64 = runs
        .iter()
        .filter_map(|run| run.output.links.get(index))
        .map(|link| link.busy.as_secs_f64())
        .sum();
    if runs.is_empty() {
        0.0
    } else {
        busy / (measured_s * runs.len() as f64)
    }
}

/// Jain's index over the long-lived connections, mean over the runs that have at least two.
fn fairness(resolved: &Resolved, outputs: &[&RunOutput]) -> Option<f64> {
    let indices: Vec<f64> = outputs
        .iter()
        .filter_map(|output| {
            let shares: Vec<f64> = resolved
                .groups
                .iter()
                .zip(&output.groups)
                .filter(|(info, _)| info.kind.facts().greedy)
                .flat_map(|(_, group)| {
                    group
                        .goodput_bytes_per_connection
                        .iter()
                        .map(|bytes| bytes.0 as f64)
                })
                .collect();
            jain(&shares)
        })
        .collect();
    (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
}

/// Sums of payload of a group per run, for the goodput ratio.
pub(super) fn goodput(runs: &[&RunData], index: usize) -> Vec<(f64, f64)> {
    runs.iter()
        .map(|run| {
            (
                run.output
                    .groups
                    .get(index)
                    .map_or(0.0, |group| group.goodput_bytes.0 as f64),
                1.0,
            )
        })
        .collect()
}

const SIZES: [u64; 20] = [
    0,
    1_000,
    3_000,
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
    100_000_000_000,
    300_000_000_000,
    1_000_000_000_000,
];
