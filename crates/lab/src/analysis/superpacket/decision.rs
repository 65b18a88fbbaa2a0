//! What a decision of the super-packet queue costs on this machine.
//!
//! The same packets pass the super-packet queue and a drop-tail queue: `flows` flows in turn, super-packets of ten, one in
//! one out. The time is that of putting a packet in and taking one out, the median of seven rounds. **Source.** Schinazi 2014, section 5.2
//! (forwarding rates of a router). **Deviations.** Nothing is forwarded: no network card, no interrupts, no header is
//! parsed; so rates cannot be compared with the published ones, only what the decision adds.

use super::super::{Analysis, Measured, Metric, Outcome, Run};
use super::{Rig, limit, packet};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::superpacket::Mark;
use fleetfoot_core::time::Instant;
use std::hint::black_box;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("decision-time", OPTIONS, include_str!("decision.rs")),
    metrics: &[
        Metric {
            name: "super_packets_ns",
            doc: "Time per packet in and out of the super-packet queue (ns).",
        },
        Metric {
            name: "drop_tail_ns",
            doc: "The same of a drop-tail queue (ns).",
        },
        Metric {
            name: "added_ns",
            doc: "What super-packets add (ns).",
        },
        Metric {
            name: "rate_ratio",
            doc: "Rate with super-packets over the rate of drop-tail, queue alone.",
        },
        Metric {
            name: "packets_per_s",
            doc: "Packets per second through the super-packet queue.",
        },
    ],
    timed: true,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[
    parameter!("packets": Integer(1000, 1_000_000_000) = 200_000, "Packets of a round"),
    parameter!("flows": Integer(1, 4096) = 64, "Flows that they belong to"),
];

fn run(options: &Values) -> Outcome {
    let packets = options.integer("packets").unwrap_or(0);
    let flows = options.integer("flows").unwrap_or(1) as u32;
    // One turn of every flow: a super-packet of ten each, the first of all, then the second of all, ...
    let turn: Vec<Packet> = (0..10)
        .flat_map(|member| {
            let mark = if member == 0 {
                Mark::first(10, 1)
            } else {
                Mark::follower(10, 1)
            };
            (0..flows).map(move |flow| packet(flow, mark))
        })
        .collect();
    let time = |kind: &str| {
        let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round(kind, &turn, packets, flows)).collect();
        rounds.sort_unstable_by(f64::total_cmp);
        rounds[ROUNDS / 2]
    };
    let (drop_tail, super_packets) = (time("drop-tail"), time("superpacket"));
    Outcome {
        values: [
            super_packets,
            drop_tail,
            super_packets - drop_tail,
            drop_tail / super_packets,
            1e9 / super_packets,
        ]
        .map(Measured::exact)
        .to_vec(),
        curves: Vec::new(),
    }
}

/// Nanoseconds per packet of one round.
fn round(kind: &str, turn: &[Packet], packets: u64, flows: u32) -> f64 {
    // Room for every promise: nothing is refused.
    let mut rig = Rig::new(kind, &[("limit", limit(u64::from(flows) * 20))], flows);
    let begin = std::time::Instant::now();
    let mut done = 0;
    while done < packets {
        for packet in turn {
            black_box(rig.offer_packet(Instant::ZERO, *packet));
            black_box(rig.take(Instant::ZERO));
        }
        done += turn.len() as u64;
    }
    begin.elapsed().as_nanos() as f64 / done as f64
}

const ROUNDS: usize = 7;
