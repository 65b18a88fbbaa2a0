//! What queue disciplines do to TCP, end to end: L4S beside classic flows, and the ideals against drop-tail.

use crate::line::{always, group, in_turn, limit, network};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::Limit;
use fleetfoot_core::tcp::{Config, EcnCodepoint, EcnEcho, Profile};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::spec::{LinkIndex, LinkRate, NodeId, Spec, Traffic};
use fleetfoot_sim::world::{Mode, run};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Waits at link 0 and bytes, by group, after ten seconds.
#[derive(Default)]
struct Waits {
    groups: HashMap<u32, usize>,
    by_group: [Vec<f64>; 2],
    bytes: [u64; 2],
}

impl Observer for Waits {
    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        if let AppEvent::Opened { group, data, .. } = event {
            self.groups.insert(data.0, *group as usize);
        }
    }

    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, sojourn: Duration) {
        if at != LinkIndex(0) || now < Instant::from_millis(10_000) {
            return;
        }
        let Some(&group) = self.groups.get(&packet.flow.0) else {
            return;
        };
        let on_the_way_us = 10_000.0 + f64::from(packet.segment.len()) * 8.0 / 40.0;
        self.by_group[group].push(sojourn.as_secs_f64() * 1e6 - on_the_way_us);
        self.bytes[group] += u64::from(packet.segment.len());
    }
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q) as usize]
}

#[test]
fn l4s_and_classic_flows_share_a_line_at_their_own_delays() {
    let classic = Config {
        ecn: true.into(),
        ..Config::profile(Profile::Linux)
    };
    let scalable = Config {
        congestion_control: "dctcp",
        ecn_echo: EcnEcho::Rfc8257,
        ecn_codepoint: EcnCodepoint::Ect1,
        ..classic.clone()
    };
    let mut spec: Spec = network(2, 40_000);
    spec.links[0].rate = LinkRate::Constant(Rate::from_bps(40_000_000));
    spec.links[0].queue = "dualpi2";
    spec.links[0].queue_values = limit("dualpi2", Limit::Packets(10_000));
    for (sender, config) in [(0, scalable), (1, classic)] {
        let config = Arc::new(config);
        let mut bulk = group(2, Traffic::Bulk { count: 1 });
        bulk.name = format!("from-{sender}");
        bulk.pairs = vec![(NodeId(sender), NodeId(2))];
        bulk.sender = Arc::clone(&config);
        bulk.receiver = config;
        spec.groups.push(bulk);
    }
    let mut waits = Waits::default();
    let output =
        run(&spec, Mode::Fast, &mut waits, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    let share = waits.bytes[0] as f64 / (waits.bytes[0] + waits.bytes[1]) as f64;
    let [l, c] = &mut waits.by_group;
    let (l_median, l_99) = (quantile(l, 0.5), quantile(l, 0.99));
    let (c_median, c_99) = (quantile(c, 0.5), quantile(c, 0.99));
    let drops: u64 = output.links[0].drops.iter().flatten().sum();
    println!(
        "L {l_median:.0} us (p99 {l_99:.0}), C {c_median:.0} us (p99 {c_99:.0}), L's share {share:.2}, {drops} drops"
    );
    assert!(l_99 < 2_000.0, "L waits {l_99} us");
    assert!((5_000.0..25_000.0).contains(&c_median), "C waits {c_median} us");
    // Windows of 1/p' and about 1.2/p' at round trips of 20 and 35 ms would give L a good half; it gets a quarter.
    assert!((0.2..0.7).contains(&share), "L has {share}");
    assert_eq!(drops, 0, "both kinds are marked");
    let busy = (waits.bytes[0] + waits.bytes[1]) as f64 * 8.0 / 30.0 / 40e6;
    assert!(busy > 0.9, "the line is in use: {busy}");
}

/// Mean completion time in milliseconds of all transfers and of those of 3000 bytes, over one line at 90 % load.
fn completion(queue: &'static str) -> (f64, f64) {
    let mut spec: Spec = network(4, 60_000);
    spec.links[0].queue = queue;
    spec.links[0].queue_values = limit(queue, Limit::Packets(200));
    // 111 kB on average every 123 ms: 0.9 of a byte per microsecond.
    spec.groups.push(group(
        4,
        Traffic::Transfer {
            size: in_turn(&[3_000.0, 30_000.0, 300_000.0]),
            interarrival: always(0.123),
            count: None,
        },
    ));
    let output = run(&spec, Mode::Fast, &mut (), |_| ControlFlow::Continue(())).expect("a runnable scenario");
    let times = |largest: u64| {
        let of_size = output.groups[0]
            .flows
            .iter()
            .filter(|flow| flow.bytes.0 <= largest);
        let times: Vec<f64> = of_size
            .filter_map(|flow| Some(flow.completed?.since(flow.start).as_secs_f64() * 1e3))
            .collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    (times(u64::MAX), times(3_000))
}

#[test]
fn the_ideals_finish_short_transfers_sooner() {
    let mut by_queue = HashMap::new();
    for queue in [
        "drop-tail",
        "red",
        "codel",
        "pie",
        "fq-codel",
        "fq-pie",
        "cake",
        "drr",
        "favourtail",
        "two-queue",
        "least-attained",
        "shortest-remaining",
        "low-ttl",
    ] {
        let (all, short) = completion(queue);
        println!("{queue:20} mean {all:7.1} ms, of 3000 B {short:7.1} ms");
        by_queue.insert(queue, (all, short));
    }
    let of = |queue| by_queue[queue];
    for queue in [
        "two-queue",
        "least-attained",
        "shortest-remaining",
        "fq-pie",
        "cake",
    ] {
        assert!(of(queue).1 < of("drop-tail").1, "{queue}");
    }
    for queue in ["least-attained", "shortest-remaining"] {
        assert!(of(queue).0 < 0.8 * of("drop-tail").0, "{queue}");
    }
    for (queue, (_, short)) in &by_queue {
        assert!(of("shortest-remaining").1 <= *short, "{queue}");
    }
    // With one router all packets have one TTL.
    assert_eq!(of("low-ttl"), of("drop-tail"));
}
