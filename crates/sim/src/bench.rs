//! The workloads behind every speed figure (docs/design/engine.md#workloads).
//!
//! All use initial window 10 and run with profile `ns2-sack` (SACK, one ACK per packet, no timestamps) or `linux`.

use crate::spec::{
    GroupSpec, Impairments, Interface, LinkRate, LinkSpec, NodeId, NodeSpec, PairPolicy, Spec, Traffic, World,
};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{DropTail, Limit};
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::tcp::{Config, InitialWindow, Profile};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use std::sync::Arc;

pub mod queues;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// Simulated time.
    pub duration: Duration,
    /// Pairs of hosts on both sides of the bottleneck.
    pairs: u32,
    /// Connections, dealt over the pairs.
    flows: u32,
    /// Connections that send without end; the others send one segment and then stay idle.
    active: u32,
    access: Rate,
    bottleneck: Rate,
    /// Propagation delay of each access link and of the bottleneck.
    delays: (Duration, Duration),
    queue: Limit,
    /// Segments per transfer, all to one receiver at the end of the bottleneck; `None`: without end.
    transfer: Option<u64>,
    /// Starts are spread over this time.
    start_within: Duration,
}

/// The workloads, in the order of the table.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "bench-xlf1g",
        duration: Duration::from_secs(20),
        pairs: 10,
        flows: 10,
        active: 10,
        access: Rate::from_bps(120_000_000),
        bottleneck: Rate::from_bps(1_000_000_000),
        delays: (Duration::from_millis(5), Duration::from_millis(40)),
        queue: Limit::Bytes(Bytes(12_500_000)),
        transfer: None,
        start_within: Duration::ZERO,
    },
    Workload {
        name: "bench-xlf100m",
        duration: Duration::from_secs(60),
        pairs: 10,
        flows: 10,
        active: 10,
        access: Rate::from_bps(12_000_000),
        bottleneck: Rate::from_bps(100_000_000),
        delays: (Duration::from_millis(5), Duration::from_millis(40)),
        queue: Limit::Bytes(Bytes(1_250_000)),
        transfer: None,
        start_within: Duration::ZERO,
    },
    Workload {
        name: "bench-10g",
        duration: Duration::from_secs(5),
        pairs: 10,
        flows: 10,
        active: 10,
        access: Rate::from_bps(10_000_000_000),
        bottleneck: Rate::from_bps(10_000_000_000),
        delays: (Duration::from_micros(50), Duration::from_micros(400)),
        queue: Limit::Bytes(Bytes(1_000_000)),
        transfer: None,
        start_within: Duration::ZERO,
    },
    Workload {
        name: "bench-many",
        duration: Duration::from_secs(10),
        pairs: 1000,
        flows: 1000,
        active: 1000,
        access: Rate::from_bps(1_000_000_000),
        bottleneck: Rate::from_bps(1_000_000_000),
        delays: (Duration::from_millis(1), Duration::from_millis(8)),
        queue: Limit::Packets(1000),
        transfer: None,
        start_within: Duration::from_millis(1000),
    },
    Workload {
        name: "bench-100k",
        duration: Duration::from_secs(1),
        pairs: 1000,
        flows: 100_000,
        active: 100_000,
        access: Rate::from_bps(100_000_000_000),
        bottleneck: Rate::from_bps(100_000_000_000),
        delays: (Duration::from_millis(1), Duration::from_millis(8)),
        queue: Limit::Packets(10_000),
        transfer: None,
        start_within: Duration::from_millis(100),
    },
    Workload {
        name: "bench-idle1m",
        duration: Duration::from_secs(1),
        pairs: 1000,
        flows: 1_000_000,
        active: 50_000,
        access: Rate::from_bps(100_000_000_000),
        bottleneck: Rate::from_bps(100_000_000_000),
        delays: (Duration::from_millis(1), Duration::from_millis(8)),
        queue: Limit::Packets(100_000),
        transfer: None,
        start_within: Duration::from_millis(800),
    },
    Workload {
        name: "bench-incast",
        duration: Duration::from_secs(10),
        pairs: 50,
        flows: 50,
        active: 50,
        access: Rate::from_bps(1_000_000_000),
        bottleneck: Rate::from_bps(1_000_000_000),
        delays: (Duration::from_micros(25), Duration::from_micros(25)),
        queue: Limit::Packets(100),
        transfer: Some(100),
        start_within: Duration::ZERO,
    },
];

impl Workload {
    /// The workload called `name`.
    pub fn by_name(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }

    /// `flows` connections that send one segment each within the first second and are idle from then on.
    pub fn idle(flows: u32) -> Workload {
        Workload {
            name: "idle",
            flows,
            active: 0,
            pairs: 100,
            ..WORKLOADS[IDLE]
        }
    }

    /// Connections.
    pub fn flows(&self) -> u32 {
        self.flows
    }

    /// Index of the link whose delivered packets are counted.
    pub const BOTTLENECK: usize = 0;

    /// The run, with `profile` at both ends, for `duration`.
    pub fn spec(&self, profile: Profile, duration: Duration) -> Spec {
        let mut config = Config::profile(profile);
        config.initial_window = InitialWindow::Segments(10);
        config.max_window_segments = None;
        config.mtu = 1500;
        let config = Arc::new(config);
        let mss = u64::from(config.mtu) - 40 - if config.timestamps { 12 } else { 0 };
        let mut spec = self.network();
        spec.duration = duration;
        spec.drain = if self.transfer.is_some() {
            duration
        } else {
            Duration::ZERO
        };
        let pairs: Vec<_> = (0..self.pairs)
            .map(|pair| match self.transfer {
                None => (NodeId(2 + 2 * pair), NodeId(3 + 2 * pair)),
                Some(_) => (NodeId(2 + pair), NodeId(1)),
            })
            .collect();
        let group = |name: &str, traffic, count: u32| GroupSpec {
            name: name.to_owned(),
            traffic,
            pairs: pairs.clone(),
            spread: PairPolicy::RoundRobin,
            start: Duration::ZERO,
            start_spacing: self.start_within.mul_div(1, u64::from(count.max(1))),
            spaced_by_host: false,
            stop: None,
            sender: Arc::clone(&config),
            receiver: Arc::clone(&config),
            interface: Interface::default(),
            relay: None,
            tls: None,
            most_requests: None,
            draws: None,
        };
        match self.transfer {
            Some(segments) => spec.groups.push(group(
                "transfers",
                Traffic::Incast {
                    size: Distribution::Constant((segments * mss) as f64),
                    count: self.active,
                    rounds: 1,
                    pause: Distribution::Constant(0.0),
                },
                self.active,
            )),
            None => spec
                .groups
                .push(group("bulk", Traffic::Bulk { count: self.active }, self.active)),
        }
        let idle = self.flows - self.active;
        if idle > 0 {
            let traffic = Traffic::OnOff {
                count: idle,
                burst: Distribution::Constant(mss as f64),
                interval: Distribution::Constant(3600.0),
            };
            spec.groups.push(group("idle", traffic, idle));
        }
        spec
    }

    fn network(&self) -> Spec {
        let node = |name: String, host| NodeSpec { name, host };
        let star = self.transfer.is_some();
        let mut nodes = vec![node("left".into(), false), node("right".into(), star)];
        let mut links = Vec::new();
        let mut duplex = |name: &str, from: u32, to: u32, rate, delay, queue| {
            let mut values = Values::defaults(DropTail::PARAMETERS);
            values
                .set("limit", Value::Limit(queue))
                .expect("drop-tail has a limit");
            for (from, to, forward) in [(from, to, true), (to, from, false)] {
                links.push(LinkSpec {
                    name: name.to_owned(),
                    forward,
                    from: NodeId(from),
                    to: NodeId(to),
                    rate: LinkRate::Constant(rate),
                    delay,
                    queue: "drop-tail",
                    queue_values: values.clone(),
                    impairments: Impairments::default(),
                    mtu: 1500,
                    framing: 0,
                    processing: Duration::ZERO,
                    overlap: false,
                    host: false,
                });
            }
        };
        duplex("bottleneck", 0, 1, self.bottleneck, self.delays.1, self.queue);
        for pair in 0..self.pairs {
            if star {
                nodes.push(node(format!("left-{pair}"), true));
                let access = format!("access-{pair}");
                duplex(&access, 2 + pair, 0, self.access, self.delays.0, self.queue);
                continue;
            }
            let (left, right) = (2 + 2 * pair, 3 + 2 * pair);
            nodes.push(node(format!("left-{pair}"), true));
            nodes.push(node(format!("right-{pair}"), true));
            duplex(
                &format!("access-{pair}"),
                left,
                0,
                self.access,
                self.delays.0,
                Limit::Unlimited,
            );
            duplex(
                &format!("egress-{pair}"),
                1,
                right,
                self.access,
                self.delays.0,
                Limit::Unlimited,
            );
        }
        Spec {
            nodes,
            links,
            groups: Vec::new(),
            duration: self.duration,
            warmup: Duration::ZERO,
            drain: Duration::ZERO,
            seed: 1,
            bins: None,
            world: World::Simulator,
            plugins: fleetfoot_core::plugin::Plugins::NONE,
        }
    }
}

/// Index of `bench-idle1m`.
const IDLE: usize = 5;
