//! Whether short transfers gain more than long ones from FavourTail, by three notions of how long a transfer is.
//!
//! The runs of `ft-global` are made with FavourTail and with drop-tail, and each transfer is compared with itself. Its length is
//! the number of its packets; that number over the routers it crosses; or that number over the transfers that are under way,
//! on average, while it is (with drop-tail). For each notion the transfers are put in order and cut into fifths; the gain of
//! a fifth is one minus the ratio of its summed times. Intervals are a bootstrap over the seeds.
//!
//! **Source.** Dedu and Lochin, PDP 2009, short flow metrics (1) and (2): curves without numbers, the second notion underlined.
//!
//! **Deviations.** The slides do not say how they smooth; fifths of all runs are taken.

use super::{Analysis, Curve, Measured, Metric, Outcome, Run};
use crate::statistics::{Resamples, interval};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::routing::Paths;
use fleetfoot_sim::spec::Spec;
use fleetfoot_sim::world::{Mode, run as simulate};
use std::ops::ControlFlow;

pub(super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("flow-length", OPTIONS, include_str!("flow_length.rs")),
    metrics: &[
        gain(
            "gain_shortest_by_packets",
            "Gain of the shortest fifth by packets.",
        ),
        gain("gain_longest_by_packets", "Gain of the longest fifth by packets."),
        gain(
            "gain_shortest_by_routers",
            "Gain of the shortest fifth by packets over routers.",
        ),
        gain(
            "gain_longest_by_routers",
            "Gain of the longest fifth by packets over routers.",
        ),
        gain(
            "gain_shortest_by_concurrency",
            "Gain of the shortest fifth by packets over concurrent transfers.",
        ),
        gain(
            "gain_longest_by_concurrency",
            "Gain of the longest fifth by packets over concurrent transfers.",
        ),
        gain(
            "more_for_shortest_by_routers",
            "Gain of the shortest fifth by packets over routers less that of the longest.",
        ),
    ],
    timed: false,
    run: Run::Of("ft-global", run),
};

const fn gain(name: &'static str, doc: &'static str) -> Metric {
    Metric { name, doc }
}

const OPTIONS: &[Parameter] =
    &[parameter!("seeds": Integer(1, 1000) = 2, "Pairs of runs (20 for a verdict)")];

/// Payload bytes of a packet (`data_unit` of the scenario without its header).
const PACKET: f64 = 1000.0;
/// Parts of equal size.
const PARTS: usize = 5;
const RESAMPLES: usize = 1000;
const NOTIONS: [(&str, &str); 3] = [
    ("packets", "packets"),
    ("packets / routers", "packets per router"),
    (
        "packets / concurrent transfers",
        "packets per concurrent transfer",
    ),
];

/// The notion that the source underlines.
const UNDERLINED: &str = "packets / routers";

/// One transfer in both runs.
struct Transfer {
    seed: usize,
    lengths: [f64; 3],
    /// Times with drop-tail and with FavourTail (s).
    times: [f64; 2],
}

/// With the runs of `ft-global` as described and with drop-tail, its first variant.
fn run(options: &Values, specs: &[Spec]) -> Outcome {
    let seeds = options.integer("seeds").unwrap_or(2) as usize;
    let (favoured, plain) = (&specs[0], &specs[1]);
    let transfers: Vec<Transfer> = (0..seeds)
        .flat_map(|seed| transfers(seed, &outcome(plain, seed), &outcome(favoured, seed), plain))
        .collect();
    let (resamples, ones) = (Resamples::new(1, seeds, RESAMPLES), vec![1.0; seeds]);
    let mut outcome = Outcome::default();
    let mut more = None;
    for (notion, (name, x)) in NOTIONS.into_iter().enumerate() {
        let mut order: Vec<&Transfer> = transfers.iter().collect();
        order.sort_by(|a, b| a.lengths[notion].total_cmp(&b.lengths[notion]));
        let parts: Vec<&[&Transfer]> = (0..PARTS)
            .map(|part| &order[part * order.len() / PARTS..(part + 1) * order.len() / PARTS])
            .collect();
        let (shortest, longest) = (sums(parts[0], seeds), sums(parts[PARTS - 1], seeds));
        outcome
            .values
            .push(measured(&resamples, |weights| gained(&shortest, weights)));
        outcome
            .values
            .push(measured(&resamples, |weights| gained(&longest, weights)));
        if name == UNDERLINED {
            more = Some(measured(&resamples, |weights| {
                gained(&shortest, weights) - gained(&longest, weights)
            }));
        }
        let mean = |part: &[&Transfer]| {
            part.iter().map(|transfer| transfer.lengths[notion]).sum::<f64>() / part.len().max(1) as f64
        };
        outcome.curves.push(Curve {
            name: format!("by {name}"),
            x,
            y: "gain of transmission time",
            points: parts
                .iter()
                .map(|part| [mean(part), gained(&sums(part, seeds), &ones)])
                .collect(),
        });
    }
    outcome.values.extend(more);
    outcome
}

fn outcome(spec: &Spec, seed: usize) -> RunOutput {
    let spec = Spec {
        seed: spec.seed + seed as u64,
        ..spec.clone()
    };
    simulate(&spec, Mode::Fast, &mut (), |_| ControlFlow::Continue(())).expect("a resolved scenario runs")
}

fn transfers(seed: usize, plain: &RunOutput, favoured: &RunOutput, spec: &Spec) -> Vec<Transfer> {
    let mut paths = Paths::new(spec);
    let pairs = &spec.groups[0].pairs;
    // Starts, ends and payload bytes; arrivals do not depend on the queue, so both runs have the same transfers.
    let of = |run: &RunOutput| -> Vec<(f64, f64)> {
        let flows = run.groups[0].flows.iter();
        flows
            .map(|flow| {
                let end = flow.completed.unwrap_or(run.ended);
                (flow.start.as_secs_f64(), end.as_secs_f64())
            })
            .collect()
    };
    let (before, after) = (of(plain), of(favoured));
    let flows = plain.groups[0].flows.iter().zip(before.iter().zip(&after));
    flows
        .map(|(flow, (&(start, end), &(again, later)))| {
            let (from, to) = pairs[flow.pair as usize];
            let links = paths.find(spec, from, to);
            let routers = links.map_or(1, |start| paths.links(start).count() - 1).max(1);
            let overlap = |other: &(f64, f64)| (other.1.min(end) - other.0.max(start)).max(0.0);
            let concurrent = before.iter().map(overlap).sum::<f64>() / (end - start);
            let packets = (flow.bytes.0 as f64 / PACKET).ceil();
            Transfer {
                seed,
                lengths: [packets, packets / routers as f64, packets / concurrent],
                times: [end - start, later - again],
            }
        })
        .collect()
}

/// Sums of the times of each seed, with drop-tail and with FavourTail (s).
fn sums(part: &[&Transfer], seeds: usize) -> Vec<[f64; 2]> {
    let mut sums = vec![[0.0; 2]; seeds];
    for transfer in part {
        for (sum, time) in sums[transfer.seed].iter_mut().zip(transfer.times) {
            *sum += time;
        }
    }
    sums
}

/// One minus the ratio of the sums, each seed counted as often as its weight.
fn gained(sums: &[[f64; 2]], weights: &[f64]) -> f64 {
    let (plain, favoured) = weights
        .iter()
        .zip(sums)
        .fold((0.0, 0.0), |(plain, favoured), (weight, sum)| {
            (plain + weight * sum[0], favoured + weight * sum[1])
        });
    1.0 - favoured / plain
}

/// What `value` says of the seeds as they are, and its interval over resampled ones.
fn measured(resamples: &Resamples, value: impl Fn(&[f64]) -> f64) -> Measured {
    let resampled = resamples.rows().map(|row| {
        let weights: Vec<f64> = row.iter().map(|&weight| f64::from(weight)).collect();
        value(&weights)
    });
    Measured {
        value: value(&vec![1.0; resamples.seeds()]),
        ci95: interval(resampled.collect(), resamples.seeds()),
    }
}
