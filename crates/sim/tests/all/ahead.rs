//! Hosts that take packets ahead of time, FIFO links that are passed at once: what comes out is as if everything had waited
//! for its turn.

use crate::line::{always, limit, outcome};
use fleetfoot_core::queue::Limit;
use fleetfoot_core::rng::{Probability, Rng};
use fleetfoot_core::tcp::{Config, DelayedAck, InitialWindow, Profile};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::bench::Workload;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{
    GroupSpec, Impairments, Interface, LinkRate, LinkSpec, Loss, NodeId, NodeSpec, PairPolicy, Spec, Traffic,
    World,
};
use std::sync::Arc;

#[test]
fn the_workloads_do_not_depend_on_the_mode() {
    for (name, seconds) in [
        ("bench-xlf1g", 1.0),
        ("bench-xlf100m", 5.0),
        ("bench-10g", 0.02),
        ("bench-many", 1.3),
        ("bench-incast", 10.0),
    ] {
        let workload = Workload::by_name(name).expect("a workload");
        for profile in [Profile::Ns2Sack, Profile::Linux] {
            let output = outcome(&workload.spec(profile, Duration::from_secs_f64(seconds)));
            let link = &output.links[Workload::BOTTLENECK];
            println!("{name} {profile:?}: {} packets", link.data_packets);
            assert!(link.data_packets >= 1_000);
        }
    }
}

/// A dumbbell of FIFO links with traffic of several kinds, some hosts shared, some queues short.
fn dumbbell(seed: u64) -> Spec {
    let mut rng = Rng::from_seed(seed);
    let pairs = 1 + rng.below(5) as u32;
    let host = |name: String| NodeSpec { name, host: true };
    let router = |name: &str| NodeSpec {
        name: name.to_owned(),
        host: false,
    };
    let mut nodes = vec![router("left"), router("right")];
    let mut links = Vec::new();
    let mut duplex = |rng: &mut Rng, name: String, from: u32, to: u32, mbps: u64, delay_us: u64| {
        let impaired = rng.below(12) == 0;
        for (from, to, forward) in [(from, to, true), (to, from, false)] {
            let room = match rng.below(3) {
                0 => Limit::Packets(2 + rng.below(30) as u32),
                1 => Limit::Bytes(Bytes(3_000 + rng.below(60_000))),
                _ => Limit::Unlimited,
            };
            let mut impairments = Impairments::default();
            if impaired {
                // Data arrives while the handshake's answer is still sent again, where most of what goes back is lost.
                let loss = if forward {
                    0.02
                } else {
                    [0.0, 0.9][rng.below(2) as usize]
                };
                impairments.loss = Loss::Random(Probability::from_f64(loss));
            }
            links.push(LinkSpec {
                name: name.clone(),
                forward,
                from: NodeId(from),
                to: NodeId(to),
                rate: LinkRate::Constant(Rate::from_bps(mbps * 1_000_000)),
                delay: Duration::from_micros(delay_us),
                queue: "drop-tail",
                queue_values: limit("drop-tail", room),
                impairments,
                mtu: 1_500,
                framing: 0,
                processing: Duration::ZERO,
                overlap: false,
                host: from >= 2,
            });
        }
    };
    let rate = 1 + rng.below(20);
    let wide = 1 + rng.below(20_000);
    duplex(&mut rng, "bottleneck".to_owned(), 0, 1, rate, wide);
    for pair in 0..pairs {
        let (left, right) = (2 + 2 * pair, 3 + 2 * pair);
        nodes.push(host(format!("left-{pair}")));
        nodes.push(host(format!("right-{pair}")));
        // Sometimes no delay at all, sometimes equal ones, so that ties are common.
        for (name, from, to) in [("access", left, 0), ("egress", 1, right)] {
            let delay = [0, 100, 100, 1_000][rng.below(4) as usize];
            let mbps = [2, 10, 10, 1_000][rng.below(4) as usize];
            duplex(&mut rng, format!("{name}-{pair}"), from, to, mbps, delay);
        }
    }
    let mut spec = Spec {
        nodes,
        links,
        groups: Vec::new(),
        duration: Duration::from_millis(1_000 + rng.below(3_000)),
        warmup: Duration::from_millis(rng.below(1_000)),
        drain: Duration::from_millis(rng.below(2_000)),
        seed,
        bins: None,
        world: World::Simulator,
        plugins: fleetfoot_core::plugin::Plugins::NONE,
    };
    for index in 0..1 + rng.below(4) {
        let profile = [Profile::Ns2Sack, Profile::Linux, Profile::Rfc][rng.below(3) as usize];
        let mut config = Config::profile(profile);
        config.initial_window = InitialWindow::Segments(10);
        config.mtu = 1_500;
        if rng.below(4) == 0 {
            config.delayed_ack = DelayedAck::Off;
        }
        let config = Arc::new(config);
        let count = 1 + rng.below(6) as u32;
        let size = always(1_000.0 + rng.below(100_000) as f64);
        let traffic = match rng.below(8) {
            0 => Traffic::Transfer {
                size,
                interarrival: always(0.21),
                count: None,
            },
            1 => Traffic::Incast {
                size,
                count,
                rounds: 1 + rng.below(3) as u32,
                pause: always(0.1),
            },
            2 => Traffic::OnOff {
                count,
                burst: size,
                interval: always(0.37),
            },
            3 => Traffic::Cbr {
                count,
                rate: Rate::from_bps(300_000),
                packet: Bytes(500),
            },
            4 => Traffic::ClosedLoop {
                count,
                size,
                think: always(0.05),
            },
            _ => Traffic::Bulk { count },
        };
        spec.groups.push(GroupSpec {
            name: format!("group-{index}"),
            traffic,
            pairs: (0..pairs)
                .map(|pair| (NodeId(2 + 2 * pair), NodeId(3 + 2 * pair)))
                .collect(),
            spread: PairPolicy::RoundRobin,
            start: Duration::from_millis(rng.below(300)),
            start_spacing: Duration::from_millis(rng.below(50)),
            spaced_by_host: false,
            stop: (rng.below(3) == 0).then(|| Duration::from_millis(700 + rng.below(1_500))),
            sender: Arc::clone(&config),
            receiver: config,
            interface: Interface::default(),
            relay: None,
            tls: None,
            most_requests: None,
            draws: None,
        });
    }
    spec
}

/// More links than stand in a list. Either each has a delay, and nothing makes applications act but the clock, so that what concerns hosts is
/// gathered while the network goes on; or `other` things are there: applications that react, links without delay, queues that
/// decide on departure. `each`: greedy connections at each host, beside those of the other groups.
fn crowd(seed: u64, other: bool, each: u32) -> Spec {
    let mut rng = Rng::from_seed(seed ^ 0xc0de);
    let mut spec = dumbbell(seed);
    let pairs = 17 + rng.below(24) as u32;
    let (left, right) = (spec.links[2].clone(), spec.links[4].clone());
    spec.nodes.truncate(2);
    spec.links.truncate(2);
    for link in &mut spec.links {
        link.delay = Duration::from_micros(1 + rng.below(3_000));
        if other && rng.below(3) == 0 {
            link.delay = Duration::ZERO;
        }
        if other && rng.below(3) == 0 {
            link.queue = ["codel", "fq-codel", "pie"][rng.below(3) as usize];
            link.queue_values = limit(link.queue, Limit::Packets(2 + rng.below(100) as u32));
        }
    }
    for pair in 0..pairs {
        let (from, to) = (NodeId(2 + 2 * pair), NodeId(3 + 2 * pair));
        for (link, [from, to]) in [(&left, [from, NodeId(0)]), (&right, [NodeId(1), to])] {
            let name = format!("{}-{pair}", if to == NodeId(0) { "access" } else { "egress" });
            let rate = LinkRate::Constant(Rate::from_bps(
                [10_000_000, 100_000_000, 1_000_000_000][rng.below(3) as usize],
            ));
            let delays = if other { [100, 0, 20_000] } else { [100, 100, 700] };
            let delay = Duration::from_micros(delays[rng.below(3) as usize]);
            for (forward, from, to) in [(true, from, to), (false, to, from)] {
                spec.links.push(LinkSpec {
                    name: name.clone(),
                    forward,
                    from,
                    to,
                    rate: rate.clone(),
                    delay,
                    impairments: Impairments::default(),
                    ..link.clone()
                });
            }
        }
        for name in [format!("left-{pair}"), format!("right-{pair}")] {
            spec.nodes.push(NodeSpec { name, host: true });
        }
    }
    spec.groups.retain(|group| other || !group.traffic.reacts());
    for group in &mut spec.groups {
        group.pairs = (0..pairs)
            .map(|pair| (NodeId(2 + 2 * pair), NodeId(3 + 2 * pair)))
            .collect();
    }
    let mut many = spec
        .groups
        .first()
        .cloned()
        .unwrap_or_else(|| dumbbell(0).groups[0].clone());
    many.name = "many".to_owned();
    many.traffic = Traffic::Bulk { count: each * pairs };
    many.pairs = (0..pairs)
        .map(|pair| (NodeId(2 + 2 * pair), NodeId(3 + 2 * pair)))
        .collect();
    spec.groups.push(many);
    spec.duration = Duration::from_millis(400 + rng.below(600));
    spec
}

#[test]
fn what_is_gathered_for_many_hosts_changes_nothing() {
    let (mut dropped, mut delivered) = (0, 0);
    for seed in 0..60 {
        // Several connections at each host: no one of them is alone there.
        let output = outcome(&crowd(seed, false, 3));
        dropped += drops(&output);
        delivered += output.links[0].data_packets;
    }
    println!("{delivered} packets delivered, {dropped} dropped");
    assert!(dropped > 1_000 && delivered > 10_000);
}

#[test]
fn timers_and_drops_that_are_gathered_where_hosts_take_packets_ahead_change_nothing() {
    let (mut dropped, mut delivered, mut alone) = (0, 0, 0);
    for seed in 200..300 {
        let spec = crowd(seed, false, 1);
        let output = outcome(&spec);
        dropped += drops(&output);
        delivered += output.links[0].data_packets;
        let connections: usize = output.groups.iter().map(|group| group.flows.len()).sum();
        alone += u64::from(connections <= spec.nodes.len());
    }
    println!("{delivered} packets delivered, {dropped} dropped; {alone} runs with a connection for a host");
    assert!(dropped > 1_000 && delivered > 10_000 && alone > 20);
}

#[test]
fn one_calendar_for_many_links_changes_nothing() {
    let (mut dropped, mut delivered) = (0, 0);
    for seed in 100..180 {
        let output = outcome(&crowd(seed, true, 1));
        dropped += drops(&output);
        delivered += output.links[0].data_packets;
    }
    println!("{delivered} packets delivered, {dropped} dropped");
    assert!(dropped > 1_000 && delivered > 10_000);
}

fn drops(output: &RunOutput) -> u64 {
    output.links.iter().flat_map(|link| &link.drops).flatten().sum()
}

#[test]
fn what_is_taken_ahead_of_time_changes_nothing() {
    let (mut dropped, mut early) = (0, 0);
    for seed in 0..200 {
        let spec = dumbbell(seed);
        let output = outcome(&spec);
        dropped += drops(&output);
        // Two events per delivered packet are what those need that wait for nobody at hosts.
        let delivered: u64 = output.links[0].data_packets;
        early += u64::from(delivered > 200 && output.events < 3 * delivered);
    }
    println!("{dropped} packets dropped; {early} runs mostly ahead of time");
    assert!(dropped > 1_000 && early > 5);
}
