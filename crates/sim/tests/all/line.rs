//! Small networks and groups whose results can be worked out by hand.
//!
//! The unit is convenient: at 8 Mbit/s a byte takes a microsecond, so a packet of 1000 bytes takes 1 ms.

use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::tcp::{Config, InitialWindow, Profile, RtoConfig};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{
    GroupSpec, Impairments, Interface, LinkRate, LinkSpec, NodeId, NodeSpec, PairPolicy, Spec, Traffic, World,
};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;
use std::sync::Arc;

/// One byte per microsecond.
pub(crate) const RATE: Rate = Rate::from_bps(8_000_000);

/// One way.
pub(crate) const DELAY: Duration = Duration::from_millis(10);

/// SACK, an ACK for every packet, no timestamps, no delays: headers are 40 bytes, those of a SYN 52 (MSS 4, SACK
/// permitted 2, window scale 3, padded by 3).
pub(crate) fn config() -> Config {
    let ns2 = Config::profile(Profile::Ns2Sack);
    Config {
        rto: RtoConfig {
            tick: Duration::ZERO,
            ..ns2.rto
        },
        mtu: 1_500,
        initial_window: InitialWindow::Segments(10),
        max_window_segments: None,
        ..ns2
    }
}

/// A link of [`RATE`] and [`DELAY`] with an endless queue in front.
pub(crate) fn link(name: &str, forward: bool, from: u32, to: u32) -> LinkSpec {
    LinkSpec {
        name: name.to_owned(),
        forward,
        from: NodeId(from),
        to: NodeId(to),
        rate: LinkRate::Constant(RATE),
        delay: DELAY,
        queue: "drop-tail",
        queue_values: limit("drop-tail", Limit::Unlimited),
        impairments: Impairments::default(),
        mtu: 1_500,
        framing: 0,
        processing: Duration::ZERO,
        overlap: false,
        host: false,
    }
}

/// The parameters of a queue discipline with this limit.
pub(crate) fn limit(queue: &str, limit: Limit) -> Values {
    let mut values = Values::defaults(AnyQueue::entry(queue).expect("registered").parameters);
    values.set("limit", Value::Limit(limit)).expect("a limit");
    values
}

/// `senders` hosts (nodes 0..) on links that take no time, a router, and the bottleneck (links 0 and 1) to one host. With
/// one sender there is no router: links 0 and 1 join hosts 0 and 1.
pub(crate) fn network(senders: u32, duration_ms: u64) -> Spec {
    let host = |name: String| NodeSpec { name, host: true };
    let mut spec = Spec {
        nodes: (0..senders)
            .map(|sender| host(format!("left-{sender}")))
            .collect(),
        links: Vec::new(),
        groups: Vec::new(),
        duration: Duration::from_millis(duration_ms),
        warmup: Duration::ZERO,
        drain: Duration::from_secs(10),
        seed: 1,
        bins: None,
        world: World::Simulator,
        plugins: fleetfoot_core::plugin::Plugins::NONE,
    };
    spec.nodes.push(host("right".to_owned()));
    if senders == 1 {
        spec.links = vec![link("line", true, 0, 1), link("line", false, 1, 0)];
        return spec;
    }
    let router = senders + 1;
    spec.nodes.push(NodeSpec {
        name: "router".to_owned(),
        host: false,
    });
    spec.links = vec![
        link("line", true, router, senders),
        link("line", false, senders, router),
    ];
    for sender in 0..senders {
        for (forward, from, to) in [(true, sender, router), (false, router, sender)] {
            spec.links.push(LinkSpec {
                rate: LinkRate::Constant(Rate::UNLIMITED),
                delay: Duration::ZERO,
                ..link(&format!("access-{sender}"), forward, from, to)
            });
        }
    }
    spec
}

/// A group from every sender of [`network`] to its only receiver.
pub(crate) fn group(senders: u32, traffic: Traffic) -> GroupSpec {
    let config = Arc::new(config());
    GroupSpec {
        name: "group".to_owned(),
        traffic,
        pairs: (0..senders)
            .map(|sender| (NodeId(sender), NodeId(senders)))
            .collect(),
        spread: PairPolicy::RoundRobin,
        start: Duration::ZERO,
        start_spacing: Duration::ZERO,
        spaced_by_host: false,
        stop: None,
        sender: Arc::clone(&config),
        receiver: config,
        interface: Interface::default(),
        relay: None,
        tls: None,
        most_requests: None,
        draws: None,
    }
}

/// One sender, one group.
pub(crate) fn one(duration_ms: u64, traffic: Traffic) -> Spec {
    let mut spec = network(1, duration_ms);
    spec.groups.push(group(1, traffic));
    spec
}

/// Datagrams: `count` streams of one every `gap`.
pub(crate) fn datagrams(count: u32, bytes: u64, gap: Duration) -> Traffic {
    Traffic::Cbr {
        count,
        rate: Rate::from_bps(bytes * 8_000_000_000 / gap.as_nanos()),
        packet: Bytes(bytes),
    }
}

pub(crate) fn always(value: f64) -> Distribution {
    Distribution::Constant(value)
}

pub(crate) fn in_turn(values: &[f64]) -> Distribution {
    Distribution::List {
        values: values.into(),
        shuffle: false,
    }
}

/// Runs in both modes, which must agree in all but the number of events.
pub(crate) fn outcome(spec: &Spec) -> RunOutput {
    let go = |mode| run(spec, mode, &mut (), |_| ControlFlow::Continue(())).expect("a runnable scenario");
    let (fast, mut plain) = (go(Mode::Fast), go(Mode::Plain));
    plain.events = fast.events;
    assert_eq!(
        format!("{fast:?}"),
        format!("{plain:?}"),
        "the modes of the engine differ"
    );
    fast
}

pub(crate) fn us(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// Start, completion and acknowledgment of each flow in microseconds.
pub(crate) fn times(output: &RunOutput, group: usize) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let micros = |at: Instant| at.as_nanos() / 1_000;
    output.groups[group]
        .flows
        .iter()
        .map(|flow| {
            (
                micros(flow.start),
                flow.completed.map(micros),
                flow.acked.map(micros),
            )
        })
        .collect()
}
