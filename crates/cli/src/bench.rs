//! `fleetfoot bench`: the workloads of the engine and the decisions of the queues, by wall clock.

use crate::failure::Failure;
use crate::output::{Common, print};
use clap::Args;
use fleetfoot_core::tcp::Profile;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::bench::{WORKLOADS, Workload, queues};
use fleetfoot_sim::world::{self, Mode};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::Instant;

/// The name that asks for the cost of the queues.
const QUEUES: &str = "queues";

/// Flags of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only these workloads; `queues` is the cost of each queue discipline.
    names: Vec<String>,
    /// Share of each workload's full duration.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    share: f64,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    if !(arguments.share > 0.0 && arguments.share <= 1.0) {
        return Err(Failure::usage("--share is above 0 and at most 1"));
    }
    let known = || {
        WORKLOADS
            .iter()
            .map(|workload| workload.name)
            .chain([QUEUES])
            .collect::<Vec<_>>()
            .join(", ")
    };
    for name in &arguments.names {
        if name != QUEUES && Workload::by_name(name).is_none() {
            return Err(Failure::usage(format!(
                "no workload is called `{name}`; there are {}",
                known()
            )));
        }
    }
    let chosen: Vec<&Workload> = WORKLOADS
        .iter()
        .filter(|workload| {
            arguments.names.is_empty() || arguments.names.iter().any(|name| name == workload.name)
        })
        .collect();
    let with_queues = arguments.names.is_empty() || arguments.names.iter().any(|name| name == QUEUES);
    let what = if with_queues { " and the queues" } else { "" };
    common.say(&format!(
        "Measuring {} workloads{what} on one core.",
        chosen.len()
    ));
    let mut text = format!(
        "{:22} {:>12} {:>14} {:>12} {:>10}\n",
        "workload", "packets", "packets/s", "events", "ns/packet"
    );
    let mut list = Vec::new();
    for workload in chosen {
        let duration = Duration::from_secs_f64(workload.duration.as_secs_f64() * arguments.share);
        let spec = workload.spec(Profile::Ns2Sack, duration);
        let begin = Instant::now();
        let output = world::run(&spec, Mode::Fast, &mut (), |_| ControlFlow::Continue(()))
            .map_err(|error| Failure::other(error.to_string()))?;
        let wall_s = begin.elapsed().as_secs_f64();
        let packets = output
            .links
            .get(Workload::BOTTLENECK)
            .map_or(0, |link| link.data_packets);
        let per_packet_ns = wall_s * 1e9 / packets.max(1) as f64;
        let _ = writeln!(
            text,
            "{:22} {packets:>12} {:>14.0} {:>12} {per_packet_ns:>10.0}",
            workload.name,
            packets as f64 / wall_s,
            output.events
        );
        list.push(serde_json::json!({
            "name": workload.name,
            "simulated_s": duration.as_secs_f64(),
            "data_packets_delivered": packets,
            "events": output.events,
            "wall_s": wall_s,
            "ns_per_packet": per_packet_ns,
        }));
    }
    let mut costs = Vec::new();
    if with_queues {
        let start = Instant::now();
        costs = queues::measure(&mut || start.elapsed().as_nanos() as u64);
        let table = queues::Table(&costs);
        text = if list.is_empty() {
            table.to_string()
        } else {
            format!("{text}\n{table}")
        };
    }
    if common.json {
        let costs: Vec<_> = costs
            .iter()
            .map(|cost| {
                serde_json::json!({
                    "queue": cost.discipline,
                    "super_packets": cost.active,
                    "decision_median_ns": cost.median_ns,
                    "decision_p99_ns": cost.p99_ns,
                    "ns_per_packet": cost.packet_ns,
                    "ratio_to_drop_tail": cost.ratio,
                    "drops": cost.drops,
                    "state_bytes": cost.state_bytes,
                })
            })
            .collect();
        let document = serde_json::json!({
            "schema": fleetfoot_lab::result::SCHEMA, "workloads": list, "queues": costs,
        });
        return print(&format!("{document:#}\n"));
    }
    print(&text)
}
