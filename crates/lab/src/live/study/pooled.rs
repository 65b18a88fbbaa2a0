//! All runs of a variant together, as the result document has groups and links.

use super::Studied;
use crate::compare::numbers::seconds;
use crate::live::Metric;
use crate::live::record::counted;
use crate::metrics::counters::Counters;
use crate::result::{Drops, Group, Link, LinkInfo};
use crate::statistics::{RESAMPLES, Resamples, Sample, summarize, summarize_counted};
use std::collections::BTreeMap;

/// A direction of the link in words.
pub(super) fn described(link: &LinkInfo) -> String {
    let limit = link
        .parameters
        .iter()
        .find(|parameter| parameter.0 == "limit")
        .map_or_else(String::new, |limit| format!(", limit {}", limit.1));
    format!(
        "{}, {} one way, {}{limit}",
        link.rate,
        seconds(link.delay_s),
        link.queue
    )
}

/// The TCP flows of all runs as a group.
pub(super) fn flows(studied: &Studied) -> Group {
    let samples: Vec<Sample> = studied
        .runs
        .iter()
        .map(|made| Metric::Flows.sample(&made.run).unwrap_or_default())
        .collect();
    let all = || {
        let runs = studied.runs.iter();
        runs.flat_map(|made| made.run.flows.iter())
            .filter(|flow| flow.protocol == "tcp")
    };
    let goodput: Vec<f64> = all()
        .filter(|flow| flow.completed == Some(true))
        .filter_map(|flow| {
            let bytes = flow.sent.payload_bytes + flow.received.payload_bytes;
            flow.completion_s
                .filter(|time| *time > 0.0)
                .map(|time| bytes as f64 * 8.0 / time)
        })
        .collect();
    let resamples = Resamples::new(0, samples.len(), RESAMPLES);
    let completed: usize = samples.iter().map(|sample| sample.completed.len()).sum();
    let censored: usize = samples.iter().map(|sample| sample.censored.len()).sum();
    Group {
        name: String::from("flows"),
        kind: String::from("live"),
        latency_sensitive: true,
        flows: (completed + censored) as u64,
        completed: completed as u64,
        censored: censored as u64,
        undelivered: 0,
        fct_s: summarize(&samples, &resamples),
        acked_s: None,
        delivery_latency_s: None,
        ack_latency_s: None,
        goodput_bps: summarize(&[Sample::of(goodput)], &Resamples::none(1)),
        by_size: Vec::new(),
        counters: Counters::from_values(&[(
            "retransmits",
            all()
                .map(|flow| flow.sent.retransmits + flow.received.retransmits)
                .sum(),
        )]),
        dropped_units: all().map(|flow| flow.sent.dropped + flow.received.dropped).sum(),
        congestion_events: None,
        more: BTreeMap::new(),
    }
}

/// A direction over all runs; 0: what the command sent.
pub(super) fn link(studied: &Studied, direction: usize) -> Link {
    let directions = || {
        studied.runs.iter().map(move |made| match direction {
            0 => &made.run.sent,
            _ => &made.run.received,
        })
    };
    let info = &studied.links[direction];
    let bytes: u64 = directions().map(|one| one.delivered_bytes).sum();
    let packets: u64 = directions().map(|one| one.delivered_packets).sum();
    let wall_s: f64 = studied.runs.iter().map(|made| made.run.wall_s).sum();
    let mut counters = BTreeMap::new();
    let mut drops = Drops::default();
    for one in directions() {
        for (reason, count) in one.drops.iter().filter(|drop| *drop.1 > 0) {
            *counters.entry(format!("drop_{reason}")).or_default() += count;
        }
        drops.data += one.dropped.data;
        drops.ack += one.dropped.ack;
        drops.other += one.dropped.other;
    }
    let waits: Vec<_> = studied
        .runs
        .iter()
        .map(|made| counted(&made.queue_delay[direction]))
        .collect();
    Link {
        name: info.name.clone(),
        direction: info.direction.clone(),
        utilisation: studied.rates[direction]
            .filter(|rate| *rate > 0.0 && wall_s > 0.0)
            .map_or(0.0, |rate| bytes as f64 * 8.0 / wall_s / rate),
        queue_delay_s: summarize_counted(&waits, 1e9, &Resamples::new(0, waits.len(), RESAMPLES)),
        queue_packets: None,
        drops,
        marks: directions().map(|one| one.marks).sum(),
        data_units: packets,
        units: packets,
        bytes,
        counters,
    }
}
