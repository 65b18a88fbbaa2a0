//! What `ping` would show beside the traffic, before and after, where the scenario describes no pings.
//!
//! The packets of the traffic are a poor measure of it: a transfer sends where the queue is long because of itself, and with a queue for
//! each flow its packets stand behind one another. A ping comes at other times and stands behind others' packets only. So the network
//! as described and the recommended variant are run once more with echo requests that arrive at random (a Poisson process: what they meet
//! on average is the average over time) through every line that a command changes. They are of the size that `ping` sends, and so rare that they
//! take [`SHARE`] of the slowest link at most. The other results are those of the runs without them.

use super::study::{Runner, StudyError, count};
use super::{Plan, words};
use crate::identity;
use crate::metrics::{GroupMetric, Metric, Of, Scene, values};
use crate::result::{Comparison, RunData, Variant};
use crate::run::{Batch, Demand, Job};
use crate::statistics::Resamples;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::routing::Paths;
use fleetfoot_sim::spec::{GroupSpec, Interface, LinkIndex, NodeId, PairPolicy, Spec, Traffic};

/// The round-trip times that echo requests met in a variant, through one line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Echo {
    /// Name of the variant.
    pub(super) variant: String,
    /// Name of the link, or of the links that are alike.
    pub(super) line: String,
    /// Mean (s).
    pub(super) mean: f64,
    /// 99th percentile (s).
    pub(super) p99: f64,
}

impl Plan {
    /// What echo requests met in the variant of this name, through this line.
    pub(super) fn echo(&self, variant: &str, line: &str) -> Option<&Echo> {
        let mut echoes = self.echoes.iter();
        echoes.find(|echo| echo.variant == variant && echo.line == line)
    }

    /// Whether the scenario describes pings itself.
    pub(super) fn describes_pings(&self) -> bool {
        let mut groups = self.described.spec.groups.iter();
        groups.any(|group| matches!(group.traffic, Traffic::Ping { .. }))
    }
}

/// Measures what is to be checked after what is recommended, and has the instructions say it. `may` is asked where it is to be run.
///
/// # Errors
/// A run fails.
pub(super) fn measure(
    plan: &mut Plan,
    comparison: &mut Comparison,
    total: &mut Batch,
    may: impl FnOnce() -> bool,
    run: &mut Runner<'_>,
) -> Result<(), StudyError> {
    let document = &mut comparison.document;
    let done = document.recommended.as_ref();
    let Some(done) = done.and_then(|recommended| words::done(document, recommended)) else {
        return Ok(());
    };
    let lines = lines(plan, done);
    if lines.is_empty() || plan.describes_pings() || plan.described.spec.world.is_real() || !may() {
        return Ok(());
    }
    let wanted = wanted(plan, done);
    let jobs: Vec<Job> = wanted
        .iter()
        .map(|&index| {
            let planned = &plan.variants[index];
            let spec = with_pings(&planned.resolved.spec, &lines);
            let demand = Demand::new(&planned.resolved.groups, &plan.described.spec);
            let demand = demand.filter(|demand| demand.identity != identity::of(&spec));
            Job::new(&planned.name, spec, demand)
        })
        .collect();
    let seeds: Vec<u64> = total.runs[0]
        .iter()
        .map(|run| run.seed)
        .take(MOST_SEEDS)
        .collect();
    let batch = run("what a ping meets, before and after", &jobs, &seeds)?;
    count(total, &batch);
    if batch.interrupted {
        total.interrupted = true;
        return Ok(());
    }
    for (job, runs) in jobs.iter().zip(&batch.runs) {
        let first = job.spec.groups.len() - lines.len();
        for (number, line) in lines.iter().enumerate() {
            plan.echoes
                .extend(met(&job.name, &line.name, &job.spec, first + number, runs));
        }
    }
    let instructions: Vec<_> = (0..document.variants.len())
        .map(|index| super::instructions(plan, index, &document.variants))
        .collect();
    for (variant, instructions) in document.variants.iter_mut().zip(instructions) {
        variant.instructions = instructions;
    }
    Ok(())
}

/// A line that pings cross, and between which hosts.
struct Line {
    name: String,
    pair: (NodeId, NodeId),
}

/// The lines that the instructions of `done` change, each with the pair of hosts with traffic through it whose base RTT is the median.
fn lines(plan: &Plan, done: &Variant) -> Vec<Line> {
    let spec = &plan.described.spec;
    let mut pairs: Vec<(NodeId, NodeId)> = spec
        .groups
        .iter()
        .flat_map(|group| group.pairs.iter().copied())
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut paths = Paths::new(spec);
    let mut links = |(from, to): (NodeId, NodeId)| -> Vec<LinkIndex> {
        let ways = [(from, to), (to, from)].map(|(from, to)| {
            let start = paths.find(spec, from, to);
            start.map_or_else(Vec::new, |start| paths.links(start).collect())
        });
        ways.concat()
    };
    let crossed: Vec<(Duration, (NodeId, NodeId), Vec<LinkIndex>)> = pairs
        .into_iter()
        .map(|pair| {
            let links = links(pair);
            let delays = links.iter().map(|link| &spec.links[link.0 as usize]);
            let rtt = delays.fold(Duration::ZERO, |sum, link| sum + link.delay + link.processing);
            (rtt, pair, links)
        })
        .collect();
    let mut lines: Vec<Line> = Vec::new();
    for place in &plan.places {
        let changed = |place: &super::place::Place| {
            let mut instructions = done.instructions.iter();
            instructions.any(|instruction| instruction.place == place.described())
        };
        if !changed(place) || lines.iter().any(|line| line.name == place.link) {
            continue;
        }
        let through = |links: &[LinkIndex]| links.iter().any(|link| place.links.contains(&(link.0 as usize)));
        let mut through: Vec<_> = crossed.iter().filter(|(.., links)| through(links)).collect();
        through.sort_by_key(|(rtt, pair, _)| (*rtt, *pair));
        if let Some((_, pair, _)) = through.get(through.len() / 2) {
            lines.push(Line {
                name: place.link.clone(),
                pair: *pair,
            });
        }
    }
    lines
}

/// The network as described, what is to be done, and what commands turn on in its stead.
fn wanted(plan: &Plan, done: &Variant) -> Vec<usize> {
    let of = done.versus.as_ref().and_then(|versus| versus.part_of.as_ref());
    let own = plan.variants.iter().find(|planned| planned.name == done.name);
    let nearest: Vec<&str> = done
        .instructions
        .iter()
        .filter_map(|instruction| instruction.nearest.as_deref())
        .collect();
    let stands_in = |index: usize| {
        let planned = &plan.variants[index];
        match (of, &planned.part_of) {
            (None, None) => nearest.contains(&planned.name.as_str()),
            (Some(_), Some(whole)) => {
                nearest.contains(&whole.as_str()) && own.is_some_and(|own| own.places == planned.places)
            }
            _ => false,
        }
    };
    (0..plan.variants.len())
        .filter(|&index| index == 0 || plan.variants[index].name == done.name || stands_in(index))
        .collect()
}

/// The same with a group of pings through each line, behind all others.
fn with_pings(spec: &Spec, lines: &[Line]) -> Spec {
    let mut with = spec.clone();
    let Some(any) = spec.groups.first() else {
        return with;
    };
    let slowest = spec
        .links
        .iter()
        .map(|link| link.rate.mean())
        .filter(|rate| *rate != Rate::UNLIMITED)
        .map(Rate::bps)
        .min();
    let rarest = slowest.map_or(0.0, |bps| PACKET.0 as f64 * 8.0 / (SHARE * bps.max(1) as f64));
    for (number, line) in lines.iter().enumerate() {
        with.groups.push(GroupSpec {
            name: format!("ping through line {number}"),
            draws: None,
            traffic: Traffic::Ping {
                interval: Distribution::Exponential {
                    mean: rarest.max(INTERVAL_S),
                },
                packet: PACKET,
            },
            pairs: vec![line.pair],
            spread: PairPolicy::RoundRobin,
            start: Duration::ZERO,
            start_spacing: Duration::ZERO,
            spaced_by_host: false,
            stop: None,
            sender: any.sender.clone(),
            receiver: any.receiver.clone(),
            interface: Interface::default(),
            relay: None,
            tls: None,
            most_requests: None,
        });
    }
    with
}

/// What the pings of the group with this index met; `None`: none came back.
fn met(variant: &str, line: &str, spec: &Spec, group: usize, runs: &[RunData]) -> Option<Echo> {
    let scene = Scene {
        spec,
        deadlines: vec![None; spec.groups.len()],
        bottleneck: &[],
    };
    let outputs: Vec<&RunOutput> = runs.iter().map(|run| &*run.output).collect();
    let times = values(
        Metric::Group(GroupMetric::Fct),
        Of::Group(group),
        &scene,
        &outputs,
        &[],
    );
    let summary = times.summary(&Resamples::none(runs.len()))?;
    Some(Echo {
        variant: variant.to_owned(),
        line: line.to_owned(),
        mean: summary.mean,
        p99: summary.p99,
    })
}

/// Layer-3 bytes of what `ping` sends unless told otherwise.
pub(super) const PACKET: Bytes = Bytes(84);

/// Mean time between two of them (s).
const INTERVAL_S: f64 = 0.1;

/// The share of the slowest link that they take at most.
const SHARE: f64 = 0.005;

/// Seeds of these runs at most.
const MOST_SEEDS: usize = 40;

#[cfg(test)]
mod tests {
    use crate::compare::study::{Extent, Study, study};
    use crate::compare::{Choice, Plan};
    use crate::run::{Options, execute, simulate};
    use crate::scenario::Scenario;
    use std::sync::atomic::AtomicBool;

    const LINE: &str = r#"title = "A line"
[network]
kind = "dumbbell"
pairs = 2
access = { rate = "1 Gbit/s", delay = "2 ms" }
[network.bottleneck]
rate = "8 Mbit/s"
delay = "8 ms"
queue = { kind = "drop-tail", limit = "300 ms" }
medium = "ethernet"
[[traffic]]
name = "transfers"
kind = "transfer"
size = "60 kB"
arrivals = { dist = "poisson", rate = "8 per second" }
[[traffic]]
name = "load"
kind = "bulk"
[run]
duration = "20 s"
warmup = "2 s"
seeds = 6
"#;

    /// With these pings described; latency is not what it is ranked by.
    const PINGS: &str = r#"
[[traffic]]
name = "echo"
kind = "ping"
interval = { dist = "exponential", mean = "100 ms" }
latency_sensitive = false
"#;

    fn compared(text: &str, queue: &str) -> Study {
        let scenario = Scenario::parse("line.toml", text).expect("it is correct");
        let choice = Choice {
            only: vec![queue.to_owned()],
            places: vec![String::from("bottleneck:forward")],
            ..Choice::default()
        };
        let plan = Plan::baseline(scenario, &choice).expect("it resolves");
        let never = AtomicBool::new(false);
        let mut run = |_: &str, jobs: &[crate::run::Job], seeds: &[u64]| {
            execute(jobs, seeds, &Options::default(), &never, &simulate, &|_| ())
        };
        study(plan, Extent::default(), "", &mut run).expect("it runs")
    }

    #[test]
    fn a_ping_that_nobody_described_meets_what_one_that_is_described_meets() {
        for (queue, bound) in [("fq-codel", 0.05), ("pie", 0.05), ("codel", 0.05)] {
            let predicted = compared(LINE, queue);
            let described = compared(&format!("{LINE}{PINGS}"), queue);
            assert!(described.plan.echoes.is_empty(), "it is described");
            for (index, name) in ["as described", queue].into_iter().enumerate() {
                let groups = &described.comparison.document.variants[index].groups;
                let real = groups[2].fct_s.as_ref().expect("pings came back").mean;
                let echo = predicted.plan.echo(name, "bottleneck").expect("it was measured");
                assert!(
                    (echo.mean / real - 1.0).abs() < bound,
                    "{queue}, {name}: {} s predicted, {real} s measured",
                    echo.mean
                );
            }
            let document = &predicted.comparison.document;
            let check = document.variants[1].instructions[0].check.as_deref();
            let check = check.expect("it can be checked");
            assert!(
                check.ends_with(", as pings beside this traffic saw in the simulation."),
                "{check}"
            );
            let other = described.comparison.document.variants[1].instructions[0]
                .check
                .as_deref();
            assert!(
                other.is_some_and(|check| check.ends_with("as echo saw in the simulation.")),
                "{other:?}"
            );
        }
    }
}
