//! The scenarios of `bench/peers` as this simulator runs them; prints the same keys as the scripts of the other programs.
//!
//! `peers dumbbell FLOWS ACCESS_BPS BOTTLENECK_BPS RTT_S QUEUE_PACKETS SECONDS [SPREAD [START]]`
//! `peers incast FLOWS PACKETS RATE_BPS LINK_DELAY_S QUEUE_PACKETS [SPREAD]`

use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::tcp::{Config, InitialWindow, Profile};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{
    GroupSpec, Impairments, Interface, LinkRate, LinkSpec, NodeId, NodeSpec, PairPolicy, Spec, Traffic, World,
};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let numbers: Option<Vec<f64>> = arguments.map(|argument| argument.parse().ok()).collect();
    let (spec, bottleneck) = match (kind.as_str(), numbers.as_deref()) {
        ("dumbbell", Some(&[flows, access, rate, rtt, queue, seconds])) => {
            dumbbell([flows, access, rate, rtt, queue, seconds, 0.0, 1.0])
        }
        ("dumbbell", Some(&[flows, access, rate, rtt, queue, seconds, spread])) => {
            dumbbell([flows, access, rate, rtt, queue, seconds, spread, 1.0])
        }
        ("dumbbell", Some(&[flows, access, rate, rtt, queue, seconds, spread, start])) => {
            dumbbell([flows, access, rate, rtt, queue, seconds, spread, start])
        }
        ("incast", Some(&[flows, packets, rate, delay, queue])) => {
            incast(flows as u32, packets, rate, delay, queue as u32, 0.0)
        }
        ("incast", Some(&[flows, packets, rate, delay, queue, spread])) => {
            incast(flows as u32, packets, rate, delay, queue as u32, spread)
        }
        _ => {
            eprintln!("usage: peers dumbbell FLOWS ACCESS BOTTLENECK RTT QUEUE SECONDS [SPREAD [START]]");
            eprintln!("       peers incast FLOWS PACKETS RATE DELAY QUEUE [SPREAD]");
            return ExitCode::from(2);
        }
    };
    let before = cpu_seconds();
    let output = match run(&spec, Mode::Fast, &mut (), |_| ControlFlow::Continue(())) {
        Ok(output) => output,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let after = cpu_seconds();
    print(
        &spec,
        &output,
        bottleneck,
        &kind,
        (after.0 - before.0, after.1 - before.1),
    );
    ExitCode::SUCCESS
}

fn print(spec: &Spec, output: &RunOutput, bottleneck: usize, kind: &str, cpu: (f64, f64)) {
    let link = &output.links[bottleneck];
    let flows = &output.groups[0].flows;
    let drops: u64 = link.drops.iter().flatten().sum();
    println!("user_s {:.3}", cpu.0);
    println!("system_s {:.3}", cpu.1);
    println!("delivered_packets {}", link.data_packets);
    println!("drops {drops}");
    println!(
        "timeouts {}",
        flows
            .iter()
            .map(|flow| u64::from(flow.stats().timeouts))
            .sum::<u64>()
    );
    println!(
        "retransmitted {}",
        flows
            .iter()
            .map(|flow| u64::from(flow.stats().retransmits))
            .sum::<u64>()
    );
    if kind == "dumbbell" {
        let received: u64 = flows.iter().map(|flow| flow.received.0).sum();
        println!("acked_packets {}", received / PAYLOAD);
        println!(
            "throughput_bps {:.0}",
            link.bytes.0 as f64 * 8.0 / spec.duration.as_secs_f64()
        );
    } else {
        // ns-2 sees the end at the sender.
        let ends: Vec<f64> = flows
            .iter()
            .filter_map(|flow| flow.acked)
            .map(Instant::as_secs_f64)
            .collect();
        println!("finished {}", ends.len());
        println!("mean_fct_s {:.6}", ends.iter().sum::<f64>() / ends.len() as f64);
        println!("last_fct_s {:.6}", ends.iter().copied().fold(0.0, f64::max));
    }
    println!("events {}", output.events);
}

/// How many times longer the own link of source `index` is.
fn longer(spread: f64, index: u32) -> f64 {
    1.0 + spread * (f64::from(index) * 0.618_033_988_749_894_9).fract()
}

/// `ns2-sack` with an initial window of 10, 1500 B packets and a window that never limits.
fn endpoint() -> Arc<Config> {
    Arc::new(Config {
        mtu: 1_500,
        initial_window: InitialWindow::Segments(10),
        max_window_segments: None,
        ..Config::profile(Profile::Ns2Sack)
    })
}

fn dumbbell([flows, access, rate, rtt, queue, seconds, spread, start]: [f64; 8]) -> (Spec, usize) {
    let (flows, queue) = (flows as u32, queue as u32);
    let mut nodes = vec![node("left", false), node("right", false)];
    let mut links = Vec::new();
    let mut pairs = Vec::new();
    let (left, right) = (NodeId(0), NodeId(1));
    let wide = Duration::from_secs_f64(rtt * 0.4);
    let narrow = Duration::from_secs_f64(rtt * 0.05);
    links.push(link("bottleneck", left, right, rate, wide, Limit::Packets(queue)));
    links.push(link("bottleneck", right, left, rate, wide, Limit::Unlimited));
    for index in 0..flows {
        let (source, sink) = (NodeId(nodes.len() as u32), NodeId(nodes.len() as u32 + 1));
        nodes.push(node(&format!("source-{index}"), true));
        nodes.push(node(&format!("sink-{index}"), true));
        let own = Limit::Packets((f64::from(queue) * 1.2) as u32);
        let longer = Duration::from_secs_f64(rtt * 0.05 * longer(spread, index));
        for (from, to, delay, limit) in [
            (source, left, longer, own),
            (left, source, longer, Limit::Unlimited),
            (right, sink, narrow, Limit::Unlimited),
            (sink, right, narrow, Limit::Unlimited),
        ] {
            links.push(link(&format!("access-{index}"), from, to, access, delay, limit));
        }
        pairs.push((source, sink));
    }
    let spacing = Duration::from_secs_f64(start * rtt / f64::from(flows));
    let group = GroupSpec {
        start_spacing: spacing,
        spaced_by_host: false,
        ..group(Traffic::Bulk { count: flows }, pairs)
    };
    (spec(nodes, links, group, seconds), 0)
}

fn incast(flows: u32, packets: f64, rate: f64, delay: f64, queue: u32, spread: f64) -> (Spec, usize) {
    let mut nodes = vec![node("switch", false), node("receiver", true)];
    let mut links = Vec::new();
    let mut pairs = Vec::new();
    let (switch, receiver) = (NodeId(0), NodeId(1));
    let delay = Duration::from_secs_f64(delay);
    links.push(link(
        "bottleneck",
        switch,
        receiver,
        rate,
        delay,
        Limit::Packets(queue),
    ));
    links.push(link(
        "bottleneck",
        receiver,
        switch,
        rate,
        delay,
        Limit::Unlimited,
    ));
    for index in 0..flows {
        let source = NodeId(nodes.len() as u32);
        nodes.push(node(&format!("source-{index}"), true));
        for (from, to) in [(source, switch), (switch, source)] {
            links.push(link(
                &format!("access-{index}"),
                from,
                to,
                rate,
                delay.mul_div((1e9 * longer(spread, index)) as u64, 1_000_000_000),
                Limit::Unlimited,
            ));
        }
        pairs.push((source, receiver));
    }
    let size = Distribution::Constant(packets * PAYLOAD as f64);
    let traffic = Traffic::Incast {
        size,
        count: flows,
        rounds: 1,
        pause: Distribution::Constant(0.0),
    };
    (spec(nodes, links, group(traffic, pairs), 100.0), 0)
}

fn spec(nodes: Vec<NodeSpec>, links: Vec<LinkSpec>, group: GroupSpec, seconds: f64) -> Spec {
    Spec {
        nodes,
        links,
        groups: vec![group],
        duration: Duration::from_secs_f64(seconds),
        warmup: Duration::ZERO,
        drain: Duration::ZERO,
        seed: 1,
        bins: None,
        world: World::Simulator,
        plugins: fleetfoot_core::plugin::Plugins::NONE,
    }
}

fn group(traffic: Traffic, pairs: Vec<(NodeId, NodeId)>) -> GroupSpec {
    GroupSpec {
        name: "flows".to_owned(),
        traffic,
        pairs,
        spread: PairPolicy::RoundRobin,
        start: Duration::ZERO,
        start_spacing: Duration::ZERO,
        spaced_by_host: false,
        stop: None,
        sender: endpoint(),
        receiver: endpoint(),
        interface: Interface::default(),
        relay: None,
        tls: None,
        most_requests: None,
        draws: None,
    }
}

fn node(name: &str, host: bool) -> NodeSpec {
    NodeSpec {
        name: name.to_owned(),
        host,
    }
}

fn link(name: &str, from: NodeId, to: NodeId, bps: f64, delay: Duration, limit: Limit) -> LinkSpec {
    let table = AnyQueue::entry("drop-tail").map_or(&[] as &[_], |entry| entry.parameters);
    let mut queue_values = Values::defaults(table);
    if let Err(error) = queue_values.set("limit", Value::Limit(limit)) {
        eprintln!("drop-tail's limit: {error}");
    }
    LinkSpec {
        name: name.to_owned(),
        forward: true,
        from,
        to,
        rate: LinkRate::Constant(Rate::from_bps(bps as u64)),
        delay,
        queue: "drop-tail",
        queue_values,
        impairments: Impairments::default(),
        mtu: 1_500,
        framing: 0,
        processing: Duration::ZERO,
        overlap: false,
        host: false,
    }
}

/// User and system CPU seconds of this process, in steps of 10 ms as Linux counts them; zero elsewhere.
fn cpu_seconds() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) / 100.0, ticks(12) / 100.0)
}

/// Payload of a full packet.
const PAYLOAD: u64 = 1_460;
