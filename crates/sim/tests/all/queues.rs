//! What queue disciplines do to TCP, end to end: L4S beside classic flows, and the ideals against drop-tail.

use crate::line::{DELAY, always, group, in_turn, limit, network};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::Limit;
use fleetfoot_core::tcp::{Config, EcnCodepoint, EcnEcho, Pacing, Profile};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
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

#[test]
fn a_phantom_queue_keeps_its_part_of_the_line_free_and_the_queue_short() {
    let config = Arc::new(Config {
        ecn: true.into(),
        congestion_control: "dctcp",
        ecn_echo: EcnEcho::Rfc8257,
        pacing: Pacing::Full,
        ..Config::profile(Profile::Linux)
    });
    let measured = |queue: &'static str| {
        let mut spec: Spec = network(2, 40_000);
        spec.links[0].rate = LinkRate::Constant(Rate::from_bps(40_000_000));
        spec.links[0].queue = queue;
        spec.links[0].queue_values = limit(queue, Limit::Packets(10_000));
        for sender in 0..2 {
            let mut bulk = group(2, Traffic::Bulk { count: 1 });
            bulk.name = format!("from-{sender}");
            bulk.pairs = vec![(NodeId(sender), NodeId(2))];
            bulk.sender = Arc::clone(&config);
            bulk.receiver = Arc::clone(&config);
            spec.groups.push(bulk);
        }
        let mut waits = Waits::default();
        run(&spec, Mode::Fast, &mut waits, |_| ControlFlow::Continue(())).expect("a runnable scenario");
        let busy = (waits.bytes[0] + waits.bytes[1]) as f64 * 8.0 / 30.0 / 40e6;
        let mut all = waits.by_group.concat();
        (busy, quantile(&mut all, 0.99))
    };
    let (busy, wait) = measured("hull");
    println!("hull: {busy:.3} of the line, 99th percentile of waits {wait:.0} us");
    // At most the drain of 95 %; DCTCP needs a seventh of the bandwidth-delay product above the threshold to use all of that.
    assert!((0.75..=0.955).contains(&busy), "{busy} of the line");
    // Four packets take 1.2 ms.
    assert!(wait < 1_200.0, "{wait} us");
    let (full, standing) = measured("drop-tail");
    assert!(
        full > 0.99 && standing > 10.0 * wait,
        "without marks {full}, {standing} us"
    );
}

/// What a packet needs from its arrival at link 0 to its delivery, in arrival order.
#[derive(Default)]
struct Sojourns(Vec<Duration>);

impl Observer for Sojourns {
    fn on_deliver(&mut self, _now: Instant, at: LinkIndex, _packet: &Packet, sojourn: Duration) {
        if at == LinkIndex(0) {
            self.0.push(sojourn);
        }
    }
}

#[test]
fn a_packet_that_finds_no_company_waits_for_the_hold() {
    // A packet of 1000 B every 10 ms: 1 ms on the line. The default hold of 1 ms ends before the next.
    let mut spec: Spec = network(1, 2_000);
    spec.links[0].queue = "jumbo";
    spec.links[0].queue_values = limit("jumbo", Limit::Packets(100));
    let (rate, packet) = (Rate::from_bps(800_000), Bytes(1_000));
    spec.groups.push(group(
        1,
        Traffic::Cbr {
            count: 1,
            rate,
            packet,
        },
    ));
    for mode in [Mode::Fast, Mode::Plain] {
        let mut sojourns = Sojourns::default();
        let output =
            run(&spec, mode, &mut sojourns, |_| ControlFlow::Continue(())).expect("a runnable scenario");
        let expected = Duration::from_millis(1) + Duration::from_millis(1) + DELAY;
        assert!(sojourns.0.len() >= 199, "{} packets", sojourns.0.len());
        assert!(
            sojourns.0.iter().all(|&sojourn| sojourn == expected),
            "{:?}",
            &sojourns.0[..3]
        );
        assert!(output.groups[0].delivery_latency.len() >= 199);
    }
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
        "hull",
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

/// When packets with data reach the other end of link 0.
#[derive(Default)]
struct Arrivals(Vec<Instant>);

impl Observer for Arrivals {
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, _sojourn: Duration) {
        if at == LinkIndex(0) && packet.segment.payload > 1_000 {
            self.0.push(now);
        }
    }
}

/// The RTT is known from the handshake at both ends. A server sent its first window at once before, since the one of CDG counts at the
/// end that opened only.
#[test]
fn prague_paces_its_first_window_whoever_opened() {
    for (what, traffic) in [
        (
            "sender opens",
            Traffic::Transfer {
                interarrival: always(1.0),
                size: always(60_000.0),
                count: Some(1),
            },
        ),
        (
            "receiver opens",
            Traffic::RequestResponse {
                count: 1,
                request: always(300.0),
                response: always(60_000.0),
                think: always(1.0),
                server_time: always(0.0),
                exchanges: Some(1),
            },
        ),
    ] {
        let config = Arc::new(Config {
            ecn: true.into(),
            congestion_control: "prague",
            ecn_echo: EcnEcho::Rfc8257,
            ecn_codepoint: EcnCodepoint::Ect1,
            ..Config::profile(Profile::Linux)
        });
        let mut spec = network(1, 5_000);
        for link in &mut spec.links {
            link.rate = LinkRate::Constant(Rate::UNLIMITED);
        }
        let mut group = group(1, traffic);
        group.sender = Arc::clone(&config);
        group.receiver = config;
        spec.groups.push(group);
        let mut arrivals = Arrivals::default();
        run(&spec, Mode::Fast, &mut arrivals, |_| ControlFlow::Continue(())).expect("a runnable scenario");
        let span = arrivals.0[9].since(arrivals.0[0]);
        // Twice the window over a round trip of 20 ms: a packet each millisecond.
        assert!(
            (Duration::from_millis(8)..Duration::from_millis(11)).contains(&span),
            "{what}: ten packets in {span:?}"
        );
    }
}
