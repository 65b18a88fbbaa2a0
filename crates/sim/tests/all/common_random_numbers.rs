//! Variants of a scenario see the same traffic: arrivals, sizes and pairs do not depend on queues, congestion controls,
//! losses or other groups.

use crate::line;

use crate::line::{always, group, limit, network, outcome};
use fleetfoot_core::queue::Limit;
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::output::{GroupOutput, RunOutput};
use fleetfoot_sim::spec::{LinkRate, Loss, PairPolicy, Spec, Traffic};
use std::sync::Arc;

const PAGES: usize = 0;
const ROUNDS: usize = 1;
const USERS: usize = 2;
const EXCHANGES: usize = 3;
const BURSTS: usize = 4;
const PINGS: usize = 5;

fn scenario() -> Spec {
    let size = || Distribution::Lomax {
        scale: 8_000.0,
        shape: 1.5,
    };
    let time = |mean| Distribution::Exponential { mean };
    let mut spec = network(3, 20_000);
    for (name, spread, traffic) in [
        (
            "pages",
            PairPolicy::Random,
            Traffic::Transfer {
                size: size(),
                interarrival: time(0.2),
                count: None,
            },
        ),
        (
            "rounds",
            PairPolicy::Random,
            Traffic::Incast {
                size: size(),
                count: 4,
                rounds: 9,
                pause: time(0.5),
            },
        ),
        (
            "users",
            PairPolicy::RoundRobin,
            Traffic::ClosedLoop {
                count: 1,
                size: size(),
                think: time(0.5),
            },
        ),
        (
            "exchanges",
            PairPolicy::RoundRobin,
            Traffic::RequestResponse {
                count: 1,
                request: size(),
                response: size(),
                think: time(0.5),
                server_time: always(0.0),
                exchanges: None,
            },
        ),
        (
            "bursts",
            PairPolicy::Each,
            Traffic::OnOff {
                count: 1,
                burst: size(),
                interval: time(0.5),
            },
        ),
        (
            "pings",
            PairPolicy::Random,
            Traffic::Ping {
                interval: time(0.1),
                packet: Bytes(84),
            },
        ),
    ] {
        let mut group = group(3, traffic);
        group.name = name.to_owned();
        group.spread = spread;
        spec.groups.push(group);
    }
    spec.links[0].queue_values = limit("drop-tail", Limit::Packets(40));
    spec
}

/// Start, pair and size of every flow.
fn offered(group: &GroupOutput) -> Vec<(u64, u32, u64)> {
    let flows = group.flows.iter();
    flows
        .map(|flow| (flow.start.as_nanos(), flow.pair, flow.bytes.get()))
        .collect()
}

/// The sizes in order, of those flows that both have: how many a closed loop starts depends on the network.
fn same_sizes(one: &RunOutput, other: &RunOutput, group: usize) -> usize {
    let sizes = |output: &RunOutput| -> Vec<(u32, u64)> {
        let flows = output.groups[group].flows.iter();
        flows
            .filter(|flow| flow.bytes.get() > 0)
            .map(|flow| (flow.pair, flow.bytes.get()))
            .collect()
    };
    let (one, other) = (sizes(one), sizes(other));
    let common = one.len().min(other.len());
    assert!(common > 5, "{common} flows show nothing");
    assert_eq!(one[..common], other[..common], "group {group}");
    common
}

#[test]
fn variants_see_the_same_traffic() {
    let base = scenario();
    let described = outcome(&base);
    let with = |change: &dyn Fn(&mut Spec)| {
        let mut spec = base.clone();
        change(&mut spec);
        outcome(&spec)
    };
    let tcp = |config: Config| {
        let config = Arc::new(config);
        move |spec: &mut Spec| {
            for group in &mut spec.groups {
                group.sender = Arc::clone(&config);
                group.receiver = Arc::clone(&config);
            }
        }
    };
    let variants = [
        (
            "a queue",
            with(&|spec| {
                spec.links[0].queue = "fq-codel";
                spec.links[0].queue_values = limit("fq-codel", Limit::Packets(100));
            }),
        ),
        ("another TCP", with(&tcp(Config::profile(Profile::Linux)))),
        (
            "another control",
            with(&tcp(Config {
                congestion_control: "cubic",
                ..line::config()
            })),
        ),
        (
            "a slower, lossy line",
            with(&|spec| {
                spec.links[0].rate = LinkRate::Constant(Rate::from_bps(4_000_000));
                spec.links[0].impairments.loss = Loss::Random(Probability::from_f64(0.02));
            }),
        ),
        (
            "another group",
            with(&|spec| {
                let mut more = group(3, Traffic::Bulk { count: 3 });
                more.name = "backup".to_owned();
                spec.groups.push(more);
            }),
        ),
    ];
    for (name, varied) in &variants {
        let fct = |output: &RunOutput| -> Vec<_> {
            output.groups[PAGES]
                .flows
                .iter()
                .map(|flow| flow.completed)
                .collect()
        };
        assert_ne!(fct(&described), fct(varied), "{name} makes a difference");
        for open_loop in [PAGES, BURSTS, PINGS] {
            let seen = offered(&varied.groups[open_loop]);
            assert!(seen.len() > 50);
            assert_eq!(
                offered(&described.groups[open_loop]),
                seen,
                "{name}, group {open_loop}"
            );
        }
        for closed_loop in [ROUNDS, USERS, EXCHANGES] {
            same_sizes(&described, varied, closed_loop);
        }
    }
}

#[test]
fn users_think_alike_in_every_variant() {
    // Start of a transfer less completion of the one before: the think times, which another rate does not change.
    let thinking = |rate: u64| -> Vec<i64> {
        let mut spec = network(1, 30_000);
        spec.groups.push(group(
            1,
            Traffic::ClosedLoop {
                count: 1,
                size: always(20_000.0),
                think: Distribution::Exponential { mean: 1.0 },
            },
        ));
        spec.links[0].rate = LinkRate::Constant(Rate::from_bps(rate));
        spec.drain = Duration::from_secs(60);
        let flows = outcome(&spec).groups.remove(0).flows;
        let ends: Vec<_> = flows.iter().filter_map(|flow| flow.completed).collect();
        flows[1..]
            .iter()
            .zip(ends)
            .map(|(next, end)| next.start.since(end).as_nanos() as i64)
            .collect()
    };
    let (slow, quick) = (thinking(1_000_000), thinking(8_000_000));
    let common = slow.len().min(quick.len());
    assert!(common > 10);
    assert_eq!(slow[..common], quick[..common]);
}
