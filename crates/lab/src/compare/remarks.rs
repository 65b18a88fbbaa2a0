//! What must be known of single rows: that a variant changed no queue that stands, or that a switch of it never acted.

use super::{Plan, Planned};
use crate::metrics::GroupMetric;
use crate::result::{RunData, Variant};
use crate::run::Batch;
use fleetfoot_sim::output::RunOutput;

/// Fills in the remarks of every variant but the first.
pub(super) fn fill(plan: &Plan, batch: &Batch, variants: &mut [Variant]) {
    let prints: Vec<Vec<(u64, blake3::Hash)>> = batch.runs.iter().map(|runs| fingerprints(runs)).collect();
    let standing: Vec<usize> = plan.stands().collect();
    for (index, variant) in variants.iter_mut().enumerate().skip(1) {
        let planned = &plan.variants[index];
        let mut remarks = Vec::new();
        let queues_only = !planned.places.is_empty() && planned.senders.is_none();
        if !plan.standing.is_empty()
            && queues_only
            && !planned.places.iter().any(|place| standing.contains(place))
        {
            remarks.push(String::from(
                "changes no queue that stands in the network as described",
            ));
        }
        if let Some(twin) = twin(plan, &prints, index) {
            remarks.push(match twin {
                0 => String::from("never acted: its runs are those of the network as described"),
                twin => format!(
                    "{} never acted: the same runs as {}",
                    beyond(&plan.variants[twin], planned),
                    plan.variants[twin].name
                ),
            });
        }
        let lengths = variant
            .groups
            .iter()
            .filter_map(|group| group.more(GroupMetric::SuperPacketLength));
        let longest = lengths.map(|length| length.mean).reduce(f64::max);
        if let Some(longest) = longest.filter(|longest| *longest < 2.0) {
            remarks.push(format!(
                "senders hardly formed super-packets (mean length {longest:.2}; docs/superpackets.md, Senders)"
            ));
        }
        if let Some(versus) = &mut variant.versus {
            versus.remarks = remarks;
        }
    }
}

/// An earlier variant with the same runs, of which this one is an extension, or the baseline.
fn twin(plan: &Plan, prints: &[Vec<(u64, blake3::Hash)>], index: usize) -> Option<usize> {
    let own = &prints[index];
    if own.is_empty() {
        return None;
    }
    let same = |other: usize| own.iter().all(|print| prints[other].contains(print));
    let larger = |other: usize| {
        let smaller = &plan.variants[other].set;
        smaller
            .iter()
            .all(|pair| plan.variants[index].set.iter().any(|own| own == pair))
    };
    (0..prints.len()).find(|&other| other != index && larger(other) && same(other))
}

/// The settings that one variant has beyond another.
fn beyond(smaller: &Planned, larger: &Planned) -> String {
    let more = larger
        .set
        .iter()
        .filter(|pair| !smaller.set.iter().any(|other| other == *pair))
        .map(|(path, value)| format!("{path} = {value}"));
    more.collect::<Vec<_>>().join(", ")
}

fn fingerprints(runs: &[RunData]) -> Vec<(u64, blake3::Hash)> {
    runs.iter()
        .map(|run| (run.seed, fingerprint(&run.output)))
        .collect()
}

/// What happened to flows and links, as a hash. Queue events are left out: another discipline names other ones.
fn fingerprint(output: &RunOutput) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut number = |value: u64| {
        hasher.update(&value.to_le_bytes());
    };
    for group in &output.groups {
        number(group.goodput_bytes.0);
        number(group.dropped);
        for flow in &group.flows {
            number(flow.start.as_nanos());
            number(
                flow.completed
                    .map_or(u64::MAX, fleetfoot_core::time::Instant::as_nanos),
            );
            number(flow.stats().bytes_sent);
            number(flow.stats().segments_sent);
        }
        for latency in &group.delivery_latency {
            number(latency.to_bits());
        }
    }
    for link in &output.links {
        number(link.packets);
        number(link.bytes.0);
        number(link.queue_delay.sum() as u64);
    }
    hasher.finalize()
}
