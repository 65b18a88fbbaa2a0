//! One variant of the document from its runs.

use super::numbers::rate;
use super::sizes::by_size;
use super::{Planned, direction};
use crate::metrics::counters::Counters;
use crate::metrics::units::{LOOKUP_J, NodeCounts, handled};
use crate::metrics::{
    GroupMetric, LinkMetric, LinkRuns, Metric, Of, PlainLinkMetric, Scene, VariantMetric, VariantRuns,
    measured_s, values,
};
use crate::result::{Drops, Group, Link, Node, RunData, Variant};
use crate::scenario::Resolved;
use crate::statistics::{Resamples, Sample, summarize};
use fleetfoot_core::queue::{DropReason, QueueEventKind};
use fleetfoot_sim::output::{LinkOutput, RunOutput};
use fleetfoot_sim::spec::TrafficKind;
use std::collections::BTreeMap;

/// Names of the links that count as the bottleneck: those the scenario names, or those above 90 % utilisation.
pub(crate) fn bottleneck(described: &Resolved, runs: &[RunData]) -> Vec<String> {
    if !described.run.bottleneck.is_empty() {
        return described.run.bottleneck.clone();
    }
    let scene = described.scene(&[]);
    let mut names: Vec<String> = Vec::new();
    for (index, link) in described.spec.links.iter().enumerate() {
        let links: Vec<&LinkOutput> = runs
            .iter()
            .filter_map(|run| run.output.links.get(index))
            .collect();
        let utilisation = PlainLinkMetric::Utilisation.of(&LinkRuns::new(&scene, &links));
        if utilisation.number() > 0.9 && !names.contains(&link.name) {
            names.push(link.name.clone());
        }
    }
    names
}

/// Everything of a variant but the comparison. The second resamples are for links that are no bottleneck.
pub(super) fn variant(
    planned: &Planned,
    runs: &[RunData],
    loss_free: Option<&[RunData]>,
    bottleneck: &[String],
    [resamples, elsewhere]: [&Resamples; 2],
) -> Variant {
    let scene = planned.resolved.scene(bottleneck);
    let outputs: Vec<&RunOutput> = runs.iter().map(|run| run.output.as_ref()).collect();
    let twin = |run: &RunData| {
        let twin = loss_free?.iter().find(|twin| twin.seed == run.seed)?;
        Some(twin.output.as_ref())
    };
    let twins: Vec<Option<&RunOutput>> = runs.iter().map(twin).collect();
    let all = VariantRuns {
        scene: &scene,
        runs: &outputs,
    };
    let number = |metric: VariantMetric| metric.of(&all).number();
    let ratio = |metric| Some(number(metric)).filter(|value| value.is_finite());
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
        groups: (0..planned.resolved.groups.len())
            .map(|index| group(&planned.resolved, &scene, index, &outputs, &twins, resamples))
            .collect(),
        links: (0..scene.spec.links.len())
            .map(|index| {
                let shown = bottleneck.contains(&scene.spec.links[index].name);
                link(&scene, index, &outputs, if shown { resamples } else { elsewhere })
            })
            .collect(),
        nodes: nodes(&scene, &outputs),
        headers_per_byte_delivered: ratio(VariantMetric::Headers),
        lookups_per_s: number(VariantMetric::Lookups),
        lookup_power_w: number(VariantMetric::LookupPower),
        fairness_jain: ratio(VariantMetric::Fairness),
        data_packets_delivered: number(VariantMetric::Delivered) as u64,
        bytes_sent_per_byte_delivered: ratio(VariantMetric::BytesSent),
        versus: None,
        live: None,
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
        None => match delivered(variant) {
            none if none.is_empty() && waits(variant) => {
                String::from("No transfer of a group that waits was measured.")
            }
            none if none.is_empty() => carried(variant),
            sentences => sentences.join(" "),
        },
    }
}

/// What groups that do not wait carried.
fn carried(variant: &Variant) -> String {
    let said = |group: &Group| {
        let goodput = group.goodput_bps.as_ref()?;
        Some(format!("{} {}", group.name, rate(goodput.mean)))
    };
    let carried: Vec<String> = variant.groups.iter().filter_map(said).collect();
    match carried.is_empty() {
        true => String::from("No group waits for anything, and no goodput was measured."),
        false => format!("No group waits; goodput on average: {}.", carried.join(", ")),
    }
}

/// Whether there is a group that waits.
fn waits(variant: &Variant) -> bool {
    variant.groups.iter().any(|group| group.latency_sensitive)
}

/// How long messages and datagrams of groups that wait took to arrive.
fn delivered(variant: &Variant) -> Vec<String> {
    let waiting = variant.groups.iter().filter(|group| group.latency_sensitive);
    let said = |group: &Group| {
        let times = group.delivery_latency_s.as_ref()?;
        let facts = TrafficKind::by_name(&group.kind)?.facts();
        let what = match facts.is_message_stream() {
            true => "Messages",
            false => "Datagrams",
        };
        if group.undelivered > 0 {
            return Some(format!(
                "{} of {} {} of {} arrived; all took at least {:.3} s on average, those that did not arrive counted with their age.",
                times.n.saturating_sub(group.undelivered),
                times.n,
                what.to_lowercase(),
                group.name,
                times.mean
            ));
        }
        Some(format!(
            "{what} of {} took {:.3} s on average to arrive (median {:.3} s, 99th percentile {:.3} s).",
            group.name, times.mean, times.p50, times.p99
        ))
    };
    waiting.filter_map(said).collect()
}

/// A TOML value as JSON.
pub fn json(value: &toml::Value) -> serde_json::Value {
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

fn group(
    resolved: &Resolved,
    scene: &Scene<'_>,
    index: usize,
    outputs: &[&RunOutput],
    twins: &[Option<&RunOutput>],
    resamples: &Resamples,
) -> Group {
    let info = &resolved.groups[index];
    let of = |metric| values(Metric::Group(metric), Of::Group(index), scene, outputs, twins);
    let summary = |metric| of(metric).summary(resamples);
    let total = |metric| of(metric).total();
    let flows = outputs
        .iter()
        .filter_map(|output| output.groups.get(index))
        .flat_map(|group| &group.flows);
    let more = GroupMetric::ALL.iter().filter_map(|&metric| {
        let name = metric.name_in_more()?;
        Some((name.to_owned(), summary(metric)?))
    });
    // What only this kind of traffic measures.
    let measures = info.kind.facts().measures.iter().enumerate();
    let measures = measures.filter_map(|(number, measure)| {
        let groups = outputs.iter().filter_map(|output| output.groups.get(index));
        let samples = groups.map(|group| Sample::of(group.measures.get(number).cloned().unwrap_or_default()));
        let summary = summarize(&samples.collect::<Vec<Sample>>(), resamples)?;
        Some((measure.name.to_owned(), summary))
    });
    Group {
        name: info.name.clone(),
        kind: info.kind.name().to_owned(),
        latency_sensitive: info.latency_sensitive,
        flows: total(GroupMetric::Flows),
        completed: total(GroupMetric::Completed),
        censored: total(GroupMetric::Censored),
        undelivered: total(GroupMetric::Undelivered),
        fct_s: summary(GroupMetric::Fct),
        acked_s: summary(GroupMetric::Acked),
        delivery_latency_s: summary(GroupMetric::DeliveryLatency),
        ack_latency_s: summary(GroupMetric::AckLatency),
        goodput_bps: summary(GroupMetric::Goodput),
        by_size: by_size(info.kind, index, outputs, resamples),
        counters: Counters::of(flows),
        dropped_units: total(GroupMetric::DroppedUnits),
        congestion_events: Some(total(GroupMetric::CongestionEvents)),
        more: more.chain(measures).collect(),
    }
}

fn link(scene: &Scene<'_>, index: usize, outputs: &[&RunOutput], resamples: &Resamples) -> Link {
    let spec = &scene.spec.links[index];
    let links: Vec<&LinkOutput> = outputs.iter().filter_map(|run| run.links.get(index)).collect();
    let all = LinkRuns::new(scene, &links);
    let number = |metric: PlainLinkMetric| metric.of(&all).number();
    let count = |metric| number(metric) as u64;
    let summary = |metric| {
        let metric = Metric::Link(LinkMetric::Plain(metric));
        values(metric, Of::Link(index), scene, outputs, &[]).summary(resamples)
    };
    let drops = DropReason::ALL.iter().enumerate();
    let drops =
        drops.map(|(place, reason)| (format!("drop_{}", reason.name()), all.drops(place).iter().sum()));
    let events = QueueEventKind::ALL.iter().enumerate();
    let events = events.map(|(place, kind)| (kind.name().to_owned(), all.events(place)));
    let counters: BTreeMap<String, u64> = drops.chain(events).filter(|(_, count)| *count > 0).collect();
    Link {
        name: spec.name.clone(),
        direction: direction(spec.forward).to_owned(),
        utilisation: number(PlainLinkMetric::Utilisation),
        queue_delay_s: summary(PlainLinkMetric::QueueDelay),
        queue_packets: summary(PlainLinkMetric::QueuePackets),
        drops: Drops {
            data: count(PlainLinkMetric::DropsData),
            ack: count(PlainLinkMetric::DropsAck),
            other: count(PlainLinkMetric::DropsOther),
        },
        marks: count(PlainLinkMetric::Marks),
        data_units: count(PlainLinkMetric::DataUnits),
        units: count(PlainLinkMetric::Units),
        bytes: count(PlainLinkMetric::Bytes),
        counters,
    }
}

/// The nodes of a variant, in the order of the network.
fn nodes(scene: &Scene<'_>, outputs: &[&RunOutput]) -> Vec<Node> {
    let seconds = measured_s(scene.spec) * outputs.len() as f64;
    let mut all = vec![NodeCounts::default(); scene.spec.nodes.len()];
    for output in outputs {
        for (sum, one) in all.iter_mut().zip(handled(scene.spec, output)) {
            sum.received += one.received;
            sum.sent += one.sent;
        }
    }
    let specs = scene.spec.nodes.iter().zip(all);
    specs
        .map(|(spec, counts)| {
            let lookups_per_s = match spec.host || seconds <= 0.0 {
                true => None,
                false => Some(counts.received as f64 / seconds),
            };
            Node {
                name: spec.name.clone(),
                host: spec.host,
                units_received: counts.received,
                units_sent: counts.sent,
                lookups_per_s,
                lookup_power_w: lookups_per_s.map(|rate| rate * LOOKUP_J),
            }
        })
        .collect()
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
