//! One run with every kind of damage and traffic, as a number: the same on every machine, in debug and release.
//!
//! When a mechanism changes on purpose the number changes with it: the failure prints the new one and what the run holds.

use crate::line::{group, limit, network, outcome};
use fleetfoot_core::queue::Limit;
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::output::{Datagrams, FlowRecord, RunOutput};
use fleetfoot_sim::spec::{FlowLine, LinkRate, Loss, NodeId, PairPolicy, Spec, Traffic};
use std::fmt::Write;
use std::sync::Arc;

const GOLDEN: u64 = 0xd304_7524_3b3f_3868;

fn scenario() -> Spec {
    let size = Distribution::LogNormal { mu: 8.5, sigma: 1.2 };
    let time = Distribution::Weibull {
        scale: 0.2,
        shape: 0.7,
    };
    let mut spec = network(4, 5_000);
    spec.warmup = Duration::from_millis(500);
    spec.seed = 20;
    let list = (0..10).map(|line: u64| FlowLine {
        start: Duration::from_millis(331 * line),
        source: NodeId((line % 4) as u32),
        destination: NodeId(4),
        bytes: Bytes(1_000 << line),
    });
    for (name, spread, traffic) in [
        ("bulk", PairPolicy::RoundRobin, Traffic::Bulk { count: 1 }),
        (
            "transfer",
            PairPolicy::Random,
            Traffic::Transfer {
                size: size.clone(),
                interarrival: time.clone(),
                count: None,
            },
        ),
        (
            "incast",
            PairPolicy::Each,
            Traffic::Incast {
                size: size.clone(),
                count: 1,
                rounds: 3,
                pause: time.clone(),
            },
        ),
        (
            "closed loop",
            PairPolicy::RoundRobin,
            Traffic::ClosedLoop {
                count: 2,
                size: size.clone(),
                think: time.clone(),
            },
        ),
        (
            "request-response",
            PairPolicy::RoundRobin,
            Traffic::RequestResponse {
                count: 2,
                request: size.clone(),
                response: size.clone(),
                think: time.clone(),
                server_time: Distribution::Constant(0.0),
                exchanges: Some(9),
            },
        ),
        (
            "on-off",
            PairPolicy::RoundRobin,
            Traffic::OnOff {
                count: 2,
                burst: size,
                interval: time.clone(),
            },
        ),
        (
            "cbr",
            PairPolicy::Each,
            Traffic::Cbr {
                count: 1,
                rate: Rate::from_bps(130_001),
                packet: Bytes(201),
            },
        ),
        (
            "flows",
            PairPolicy::RoundRobin,
            Traffic::Flows { list: list.collect() },
        ),
        (
            "ping",
            PairPolicy::Random,
            Traffic::Ping {
                interval: time,
                packet: Bytes(84),
            },
        ),
    ] {
        let mut group = group(4, traffic);
        group.name = name.to_owned();
        group.spread = spread;
        spec.groups.push(group);
    }
    for (index, link) in spec.links.iter_mut().enumerate() {
        let loss = &mut link.impairments.loss;
        *loss = match index {
            0 | 1 => Loss::Burst {
                enter: Probability::from_f64(0.005),
                leave: Probability::from_f64(0.4),
                good: Probability::from_f64(0.001),
                bad: Probability::from_f64(0.6),
            },
            2 => Loss::Random(Probability::from_f64(0.01)),
            4 => Loss::Tail(1),
            6 => Loss::Script(Arc::new([2, 9])),
            _ => Loss::None,
        };
        if index < 2 {
            link.queue_values = limit("drop-tail", Limit::Packets(30));
            link.rate = LinkRate::Constant(Rate::from_bps(7_777_777));
            link.framing = 38;
            link.processing = Duration::from_nanos(777);
            link.impairments.jitter = Some(Distribution::Exponential { mean: 0.0007 });
            link.impairments.reorder = Some((Probability::from_f64(0.01), Duration::from_micros(3_333)));
            link.impairments.duplicate = Probability::from_f64(0.01);
            link.impairments.bit_error_rate = 1e-7;
        }
    }
    spec
}

/// Flow records as the number was first made from them: the counters of then, each by its name.
fn recorded(flows: &[FlowRecord]) -> String {
    let one = |flow: &FlowRecord| {
        let stats = flow.stats();
        let mut repairs = format!(
            "Repairs {{ congestion_events: {}, new_probes: {}, rdb_packets: {}, rdb_losses: {}, rdb_bytes: {:?}, longest_recovery: {:?} }}",
            stats.congestion_events,
            stats.new_probes,
            stats.rdb_packets,
            stats.rdb_losses,
            Bytes(stats.rdb_bytes),
            stats.longest_recovery,
        );
        let counts = [
            stats.congestion_events,
            stats.new_probes,
            stats.rdb_packets,
            stats.rdb_losses,
        ];
        repairs = match counts == [0; 4] && stats.longest_recovery == Duration::ZERO {
            true => String::from("None"),
            false => format!("Some({repairs})"),
        };
        let FlowRecord {
            pair,
            start,
            completed,
            acked,
            received,
            min_rtt,
            ack_latency_sum,
            ..
        } = flow;
        format!(
            "FlowRecord {{ pair: {pair}, bytes: {:?}, start: {start:?}, completed: {completed:?}, acked: {acked:?}, \
             received: {received:?}, segments_sent: {}, bytes_sent: {:?}, retransmits: {}, timeouts: {}, \
             spurious_timeouts: {}, probes: {}, spurious_probes: {}, repairs: {repairs}, redundant_bytes: {:?}, \
             min_rtt: {min_rtt:?}, ack_latency_sum: {ack_latency_sum:?}, ack_latency_count: {} }}",
            flow.bytes,
            stats.segments_sent,
            Bytes(stats.bytes_sent),
            stats.retransmits,
            stats.timeouts,
            stats.spurious_timeouts,
            stats.probes,
            stats.spurious_probes,
            Bytes(stats.redundant_bytes),
            stats.ack_latency_count,
        )
    };
    format!("[{}]", flows.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// 64-bit FNV-1a of everything but the number of events, which is the engine's own business.
fn hash(output: &RunOutput) -> u64 {
    let mut output = output.clone();
    output.events = 0;
    // What never happened is left out at the end of each list, so that a new kind of event changes nothing here.
    for link in &mut output.links {
        link.events.truncate(
            link.events
                .iter()
                .rposition(|&count| count > 0)
                .map_or(0, |last| last + 1),
        );
        link.drops.truncate(
            link.drops
                .iter()
                .rposition(|kinds| *kinds != [0; 3])
                .map_or(0, |last| last + 1),
        );
    }
    // Nothing is replayed or given up here, and nobody watches. What users ask for, datagrams that are lost and streams of pings have tests
    // of their own.
    for group in &mut output.groups {
        group.datagrams = Datagrams::default();
        group.requests.clear();
        group.stream_of_flow.clear();
    }
    let records: Vec<String> = output
        .groups
        .iter_mut()
        .map(|group| recorded(&std::mem::take(&mut group.flows)))
        .collect();
    let mut text = format!("{output:?}");
    for records in records {
        text = text.replacen("flows: []", &format!("flows: {records}"), 1);
    }
    let text = text
        .replace(", datagrams: Datagrams { arrived: 0, lost: 0 }", "")
        .replace(", requests: []", "")
        .replace(", stream_of_flow: []", "")
        .replace(", measures: []", "")
        .replace(", connections: []", "")
        .replace(", delivery_censored: []", "")
        .replace(", ack_latency_censored: []", "")
        .replace(", connections_censored: []", "")
        .replace(", watched: []", "")
        .replace(", lateness: None", "")
        .replace(", most_probes: None", "")
        .replace(", forged: None", "");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn a_run_with_everything_is_the_same_everywhere() {
    let spec = scenario();
    let output = outcome(&spec);
    let mut summary = String::new();
    for (group, output) in spec.groups.iter().zip(&output.groups) {
        let flows = &output.flows;
        let completed = flows.iter().filter(|flow| flow.completed.is_some()).count();
        let retransmits: u32 = flows.iter().map(|flow| flow.stats().retransmits).sum();
        let (name, count, goodput) = (&group.name, flows.len(), output.goodput_bytes);
        writeln!(
            summary,
            "{name}: {count} flows, {completed} complete, {goodput}, {retransmits} retransmissions"
        )
        .expect("a string takes everything");
        assert!(
            count > 0 && goodput > Bytes(0),
            "every kind takes part:\n{summary}"
        );
    }
    for (link, output) in spec.links.iter().zip(&output.links) {
        let (name, packets) = (&link.name, output.packets);
        writeln!(
            summary,
            "{name} {}: {packets} packets, drops {:?}",
            link.forward, output.drops
        )
        .expect("a string takes everything");
    }
    let hash = hash(&output);
    assert_eq!(hash, GOLDEN, "GOLDEN is now {hash:#018x}:\n{summary}");
}
