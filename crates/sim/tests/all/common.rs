//! Random small scenarios with every kind of traffic and impairment.

use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::rng::{Distribution, Probability, Rng};
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_core::tfrc;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::spec::{
    Arq, Dns, FlowLine, GroupSpec, Impairments, Interface, LinkRate, LinkSpec, Loss, NodeId, NodeSpec,
    PairPolicy, Spec, Tfrc, Traffic, Video, World,
};
use std::sync::Arc;

/// A chain of three routers with hosts on each, a few seconds of mixed traffic.
pub(crate) fn random_spec(seed: u64) -> Spec {
    let mut rng = Rng::from_seed(seed);
    let mut spec = Spec {
        nodes: Vec::new(),
        links: Vec::new(),
        groups: Vec::new(),
        duration: Duration::from_millis(2000 + rng.below(2000)),
        warmup: Duration::from_millis(rng.below(3) * 300),
        drain: Duration::from_secs(3),
        seed: rng.next_u64(),
        bins: None,
        world: World::Simulator,
        plugins: fleetfoot_core::plugin::Plugins::NONE,
    };
    for router in 0..3 {
        spec.nodes.push(node(format!("router-{router}"), false));
    }
    for host in 0..6 {
        spec.nodes.push(node(format!("host-{host}"), true));
    }
    for (from, to) in [(0, 1), (1, 2)] {
        let rate = [2_000_000, 10_000_000, 100_000_000][rng.below(3) as usize];
        let delay = Duration::from_micros([0, 100, 5_000, 30_000][rng.below(4) as usize]);
        duplex(&mut spec, &mut rng, from, to, rate, delay, true);
    }
    for host in 0..6 {
        let rate = [10_000_000, 1_000_000_000][rng.below(2) as usize];
        let delay = Duration::from_micros([0, 10, 1_000][rng.below(3) as usize]);
        duplex(&mut spec, &mut rng, 3 + host, host / 2, rate, delay, false);
    }
    for index in 0..2 + rng.below(4) {
        let traffic = random_traffic(&mut rng, index as usize + seed as usize);
        let profiles = [
            Profile::Ns2Sack,
            Profile::Ns2NewReno,
            Profile::Linux3_2,
            Profile::Linux2015,
            Profile::Linux,
            Profile::Rfc,
        ];
        let config = Arc::new(Config::profile(profiles[rng.below(6) as usize]));
        spec.groups.push(GroupSpec {
            name: format!("group-{index}"),
            traffic,
            pairs: vec![
                (NodeId(3), NodeId(7)),
                (NodeId(4), NodeId(8)),
                (NodeId(6), NodeId(3)),
            ],
            spread: [PairPolicy::RoundRobin, PairPolicy::Random, PairPolicy::Each][rng.below(3) as usize],
            start: Duration::from_millis(rng.below(3) * 100),
            start_spacing: Duration::from_millis(rng.below(2) * 10),
            spaced_by_host: false,
            stop: (rng.below(3) == 0).then(|| Duration::from_millis(1500)),
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

fn node(name: String, host: bool) -> NodeSpec {
    NodeSpec { name, host }
}

fn duplex(spec: &mut Spec, rng: &mut Rng, from: u32, to: u32, rate: u64, delay: Duration, core: bool) {
    let entry = &AnyQueue::ENTRIES[if core {
        rng.below(AnyQueue::ENTRIES.len() as u64) as usize
    } else {
        0
    }];
    let mut values = Values::defaults(entry.parameters);
    // Disciplines without a limit keep their defaults.
    let _ = values.set("limit", Value::Limit(Limit::Packets(5 + rng.below(60) as u32)));
    let chance =
        |rng: &mut Rng, p: f64| Probability::from_f64(if core && rng.below(3) == 0 { p } else { 0.0 });
    for (from, to, forward) in [(from, to, true), (to, from, false)] {
        let loss = match rng.below(if core { 6 } else { 1 }) {
            1 => Loss::Random(Probability::from_f64(0.01)),
            2 => Loss::Burst {
                enter: Probability::from_f64(0.005),
                leave: Probability::from_f64(0.3),
                good: Probability::ZERO,
                bad: Probability::from_f64(0.5),
            },
            3 => Loss::Tail(2),
            4 => Loss::Script(Arc::from([3_u32, 7])),
            _ => Loss::None,
        };
        let reorder = chance(rng, 0.02);
        let duplicate = chance(rng, 0.02);
        let bit_error_rate = if chance(rng, 1.0).is_zero() { 0.0 } else { 1e-7 };
        let arq = (bit_error_rate > 0.0 && rng.below(2) == 0).then_some(Arq {
            retransmissions: 2,
            delay: Duration::from_micros(300),
        });
        let bit_error_rate = if arq.is_some() { 2e-5 } else { bit_error_rate };
        let jitter = (!chance(rng, 1.0).is_zero()).then_some(Distribution::Exponential { mean: 0.0005 });
        spec.links.push(LinkSpec {
            name: format!("{from}-{to}"),
            forward,
            from: NodeId(from),
            to: NodeId(to),
            rate: LinkRate::Constant(Rate::from_bps(rate)),
            delay,
            queue: entry.name,
            queue_values: values.clone(),
            impairments: Impairments {
                loss,
                loss_data_only: rng.below(2) == 0,
                jitter,
                reorder: (!reorder.is_zero()).then_some((reorder, Duration::from_millis(4))),
                duplicate,
                bit_error_rate,
                arq,
            },
            mtu: 1500,
            framing: 0,
            processing: Duration::ZERO,
            overlap: false,
            host: from >= 3,
        });
    }
}

fn random_traffic(rng: &mut Rng, index: usize) -> Traffic {
    let size = Distribution::Lomax {
        scale: 20_000.0,
        shape: 1.5,
    };
    let think = Distribution::Exponential { mean: 0.05 };
    match index % 12 {
        0 => Traffic::Bulk {
            count: 1 + rng.below(3) as u32,
        },
        1 => Traffic::Transfer {
            size,
            interarrival: think,
            count: (rng.below(2) == 0).then_some(30),
        },
        2 => Traffic::Incast {
            size: Distribution::Constant(30_000.0),
            count: 4,
            rounds: 3,
            pause: think,
        },
        3 => Traffic::ClosedLoop {
            count: 2,
            size,
            think,
        },
        4 => Traffic::RequestResponse {
            count: 2,
            request: Distribution::Constant(300.0),
            response: size,
            think,
            server_time: if rng.below(2) == 0 {
                Distribution::Constant(0.0)
            } else {
                Distribution::Exponential { mean: 0.02 }
            },
            exchanges: (rng.below(2) == 0).then_some(5),
        },
        5 => Traffic::OnOff {
            count: 2,
            burst: Distribution::Uniform {
                min: 100.0,
                max: 9000.0,
            },
            interval: think,
        },
        6 => Traffic::Cbr {
            count: 1,
            rate: Rate::from_bps(500_000),
            packet: Bytes(500),
        },
        7 => Traffic::Flows {
            list: (0..20)
                .map(|line| FlowLine {
                    start: Duration::from_millis(line * 70 / 3),
                    source: NodeId(3 + (line % 2) as u32),
                    destination: NodeId(7 + (line % 2) as u32),
                    bytes: Bytes(1 + line * 3000),
                })
                .collect(),
        },
        8 => Traffic::Ping {
            interval: think,
            packet: Bytes(84),
        },
        9 => Traffic::Video(Box::new(Video {
            count: 1 + rng.below(2) as u32,
            both_ways: false,
            frame_rate: 30.0,
            frame: size,
            key_every: (rng.below(2) == 0).then_some(10),
            key_frame: Distribution::Constant(40_000.0),
            packet: Bytes(1_228),
        })),
        10 => Traffic::Dns(Box::new(Dns {
            interarrival: think,
            request: Distribution::Constant(50.0),
            response: size,
            most: Bytes(1_232),
            server_time: Distribution::Exponential { mean: 0.003 },
            timeout: Duration::from_millis(200),
            attempts: 1 + rng.below(3) as u32,
        })),
        _ => random_streams(rng, size, think),
    }
}

/// TFRC streams: endless, finite, paced by applications, or arriving.
fn random_streams(rng: &mut Rng, size: Distribution, think: Distribution) -> Traffic {
    let what = rng.below(4);
    Traffic::Tfrc(Box::new(Tfrc {
        count: (what != 3).then_some(1 + rng.below(3) as u32),
        size: (what != 0).then_some(size),
        interarrival: (what == 3).then_some(think),
        rate: (what == 2).then_some(Rate::from_bps(400_000)),
        config: tfrc::Config {
            packet: [200, 1500][rng.below(2) as usize],
            variant: [tfrc::Variant::Standard, tfrc::Variant::SmallPackets][rng.below(2) as usize],
            ecn: rng.below(2) == 0,
            ..tfrc::Config::default()
        },
    }))
}
