//! Links as a whole run sees them: counters and delays of bursts worked out by hand, damage within binomial bounds.
//!
//! Streams of datagrams cross the bottleneck of 8 Mbit/s (1 us per byte) and 10,000 us, so a packet of 1000 bytes takes 1 ms.

use crate::line::{always, datagrams, group, in_turn, limit, network, one, outcome, times, us};
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::link::OPPORTUNITY_BYTES;
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::{DropReason, Limit};
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{LinkIndex, LinkRate, Loss, Spec, Traffic};
use fleetfoot_sim::world::{Mode, run};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Drops on the bottleneck by reason, packets with payload.
fn dropped(output: &RunOutput, reason: DropReason) -> u64 {
    output.links[0].drops[reason as usize][0]
}

fn all_drops(output: &RunOutput) -> u64 {
    output.links[0].drops.iter().flatten().sum()
}

/// Eight packets of 1000 bytes at one moment.
fn burst() -> Spec {
    let mut spec = network(2, 20);
    spec.groups
        .push(group(2, datagrams(8, 1_000, Duration::from_secs(1))));
    spec.links[0].queue_values = limit("drop-tail", Limit::Packets(5));
    spec
}

#[test]
fn a_burst_fills_the_queue_to_the_packet() {
    // The first goes on the wire at once, five wait, two find no room.
    let output = outcome(&burst());
    let line = &output.links[0];
    assert_eq!(
        (line.packets, line.data_packets, line.bytes),
        (6, 6, Bytes(6_000))
    );
    assert_eq!((dropped(&output, DropReason::Full), all_drops(&output)), (2, 2));
    assert_eq!(line.busy, Duration::from_millis(6));
    // Waiting: 0, 1, 2, 3, 4 and 5 ms.
    assert_eq!((line.queue_delay.n(), line.queue_delay.sum()), (6, 15_000_000));
    assert_eq!(line.queue_delay.max(), 5_000_000);
    // Seen by those that arrive: 0, 0, 1, 2, 3, 4, 5, 5.
    assert_eq!((line.queue_packets.n(), line.queue_packets.sum()), (8, 20));
    assert_eq!(line.queue_packets.max(), 5);
    // They arrive from 11 to 16 ms.
    let mut latencies: Vec<u64> = output.groups[0]
        .delivery_latency
        .iter()
        .map(|seconds| (seconds * 1e6).round() as u64)
        .collect();
    latencies.sort_unstable();
    assert_eq!(latencies, [11_000, 12_000, 13_000, 14_000, 15_000, 16_000]);
    assert_eq!(output.groups[0].goodput_bytes, Bytes(6 * 972));
    // The way back carries nothing, and the access links see four each that take no time and never wait.
    assert_eq!(output.links[1].packets, 0);
    for access in [2, 4] {
        assert_eq!(
            (output.links[access].packets, output.links[access].busy),
            (4, Duration::ZERO)
        );
        assert_eq!(output.links[access].queue_delay.sum(), 0);
    }
}

#[test]
fn links_are_measured_in_the_window_only() {
    // Packets leave the queue at 0, 1, .. 5 ms; from 2.5 ms to 4.5 ms: those of 3 and 4, and 2 ms of sending.
    let mut spec = burst();
    spec.warmup = Duration::from_micros(2_500);
    spec.duration = Duration::from_micros(4_500);
    let output = outcome(&spec);
    let line = &output.links[0];
    assert_eq!((line.packets, line.busy), (2, Duration::from_millis(2)));
    assert_eq!((line.queue_delay.n(), line.queue_delay.sum()), (2, 7_000_000));
    assert_eq!(
        (line.queue_packets.n(), all_drops(&output)),
        (0, 0),
        "they arrived before"
    );
    // The edges: 3 ms is in, 5 ms is not.
    spec.warmup = Duration::from_millis(3);
    spec.duration = Duration::from_millis(5);
    let output = outcome(&spec);
    assert_eq!(
        (output.links[0].packets, output.links[0].busy),
        (2, Duration::from_millis(2))
    );
}

#[test]
fn a_limit_in_bytes_counts_what_waits() {
    let mut spec = burst();
    spec.links[0].queue_values = limit("drop-tail", Limit::Bytes(Bytes(2_999)));
    let output = outcome(&spec);
    assert_eq!(
        (output.links[0].packets, all_drops(&output)),
        (3, 5),
        "one on the wire, two waiting"
    );
    spec.links[0].queue_values = limit("drop-tail", Limit::Bytes(Bytes(3_000)));
    assert_eq!(outcome(&spec).links[0].packets, 4);
}

#[test]
fn framing_and_processing_take_time_and_are_no_bytes() {
    let mut spec = burst();
    spec.links[0].framing = 38;
    spec.links[0].processing = Duration::from_micros(62);
    let output = outcome(&spec);
    // 1000 + 38 + 62 us each.
    assert_eq!(
        (output.links[0].busy, output.links[0].bytes),
        (Duration::from_micros(6_600), Bytes(6_000))
    );
    assert_eq!(output.links[0].queue_delay.sum(), 15 * 1_100_000);
}

#[test]
fn packets_larger_than_the_mtu_are_dropped_and_counted() {
    let mut spec = one(100, datagrams(1, 1_000, Duration::from_millis(10)));
    spec.groups
        .push(group(1, datagrams(1, 1_001, Duration::from_millis(10))));
    spec.links[0].mtu = 1_000;
    let output = outcome(&spec);
    assert_eq!(
        (dropped(&output, DropReason::TooBig), all_drops(&output)),
        (10, 10)
    );
    assert_eq!(output.links[0].packets, 10);
    assert_eq!(
        (output.groups[0].goodput_bytes, output.groups[1].goodput_bytes),
        (Bytes(9 * 972), Bytes(0))
    );
}

#[test]
fn the_way_back_has_its_own_parameters() {
    let mut spec = one(
        100,
        Traffic::Ping {
            interval: always(0.05),
            packet: Bytes(1_000),
        },
    );
    spec.links[1].rate = LinkRate::Constant(Rate::from_bps(1_000_000));
    spec.links[1].delay = Duration::from_millis(30);
    // 1 ms and 10 ms there; 8 ms and 30 ms back.
    assert_eq!(times(&outcome(&spec), 0)[0], (0, Some(49_000), Some(49_000)));
    spec.links[1].mtu = 999;
    let output = outcome(&spec);
    assert_eq!(times(&output, 0)[0], (0, None, None));
    assert_eq!(output.links[1].drops[DropReason::TooBig as usize], [2, 0, 0]);
}

/// What arrives at the far end of the bottleneck, and when something is lost there.
#[derive(Default)]
struct Arrivals {
    delivered: Vec<(Instant, FlowId, u32)>,
    dropped: Vec<u32>,
}

impl Observer for Arrivals {
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, _sojourn: Duration) {
        if at == LinkIndex(0) {
            self.delivered.push((now, packet.flow, packet.segment.seq.0));
        }
    }

    fn on_drop(&mut self, _now: Instant, _at: LinkIndex, packet: &Packet, _reason: DropReason) {
        self.dropped.push(packet.segment.seq.0);
    }
}

fn watched(spec: &Spec) -> (Arrivals, RunOutput) {
    let mut arrivals = Arrivals::default();
    let output =
        run(spec, Mode::Fast, &mut arrivals, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    (arrivals, output)
}

/// One packet of 100 bytes every millisecond.
fn stream(packets: u64) -> Spec {
    one(packets, datagrams(1, 100, Duration::from_millis(1)))
}

/// Whether a count lies within four deviations of a binomial distribution, whose variance is `inflated` by correlation.
fn plausible(count: u64, n: u64, p: f64, inflated: f64) -> bool {
    let n = n as f64;
    let deviation = (n * p * (1.0 - p) * inflated).sqrt();
    println!("{count} of {n}: expected {:.0} +- {deviation:.0}", n * p);
    (count as f64 - n * p).abs() <= 4.0 * deviation
}

#[test]
fn random_loss_takes_its_share() {
    for (seed, p) in [(1, 0.001), (2, 0.01), (3, 0.1), (4, 0.5)] {
        let mut spec = stream(40_000);
        spec.seed = seed;
        spec.links[0].impairments.loss = Loss::Random(Probability::from_f64(p));
        let output = outcome(&spec);
        let lost = dropped(&output, DropReason::RandomLoss);
        assert!(plausible(lost, 40_000, p, 1.0), "p {p}");
        assert_eq!(all_drops(&output), lost);
        // Lost on the wire: they left the queue. Those sent in the last 10.1 ms are on their way at the end.
        assert_eq!(output.links[0].packets, 40_000);
        let arrived = output.groups[0].goodput_bytes.get() / 72;
        assert!(
            (40_000 - 11 - lost..=40_000 - lost).contains(&arrived),
            "{arrived}"
        );
    }
}

#[test]
fn burst_loss_has_its_share_and_its_length() {
    // Gilbert and Elliott: in the bad state for enter / (enter + leave) of the packets, 1 / leave in a row. Successive
    // packets are correlated by 1 - enter - leave, so the variance of a sum is (2 - enter - leave) / (enter + leave) times
    // that of independent ones.
    let (enter, leave) = (0.01, 0.2);
    let mut spec = stream(200_000);
    spec.links[0].impairments.loss = Loss::Burst {
        enter: Probability::from_f64(enter),
        leave: Probability::from_f64(leave),
        good: Probability::ZERO,
        bad: Probability::ONE,
    };
    let (seen, output) = watched(&spec);
    let lost = dropped(&output, DropReason::RandomLoss);
    assert_eq!(seen.dropped.len() as u64, lost);
    let sum = enter + leave;
    assert!(plausible(lost, 200_000, enter / sum, (2.0 - sum) / sum));
    let bursts = 1 + seen
        .dropped
        .windows(2)
        .filter(|pair| pair[1] != pair[0] + 1)
        .count();
    // Lengths are geometric: mean 1 / leave, variance (1 - leave) / leave^2.
    let mean = lost as f64 / bursts as f64;
    let deviation = ((1.0 - leave) / leave.powi(2) / bursts as f64).sqrt();
    println!(
        "{bursts} bursts of {mean:.3} on average, expected {:.3} +- {deviation:.3}",
        1.0 / leave
    );
    assert!((mean - 1.0 / leave).abs() <= 4.0 * deviation);
}

#[test]
fn scripted_loss_takes_what_it_names() {
    let mut spec = stream(20);
    spec.links[0].impairments.loss = Loss::Script(Arc::new([0, 3, 4]));
    let (seen, output) = watched(&spec);
    assert_eq!(seen.dropped, [0, 3, 4]);
    assert_eq!(dropped(&output, DropReason::RandomLoss), 3);
}

#[test]
fn the_lost_tail_is_the_tail_of_each_transfer() {
    // Transfers of 1000, 5000 and 20,000 bytes; the last two segments are lost once. RTO: the SYN's sample of 20.104 ms
    // plus four times its half is below the floor of 200 ms.
    let mut spec = one(
        3_000,
        Traffic::Transfer {
            size: in_turn(&[1_000.0, 5_000.0, 20_000.0]),
            interarrival: always(0.9),
            count: Some(3),
        },
    );
    spec.links[0].impairments.loss = Loss::Tail(2);
    let output = outcome(&spec);
    assert_eq!(dropped(&output, DropReason::RandomLoss), 1 + 2 + 2);
    let flows = &output.groups[0].flows;
    assert!(
        flows
            .iter()
            .all(|flow| flow.completed.is_some() && flow.stats().timeouts == 1),
        "{flows:#?}"
    );
}

#[test]
fn duplicates_arrive_twice() {
    let mut spec = stream(100);
    spec.links[0].impairments.duplicate = Probability::ONE;
    let (seen, output) = watched(&spec);
    let numbers: Vec<u32> = seen.delivered.iter().map(|packet| packet.2).collect();
    let twice: Vec<u32> = (0..100).flat_map(|number| [number, number]).collect();
    assert_eq!(numbers, twice, "the run waits for both of each");
    // The wire doubles, not the queue.
    assert_eq!(output.links[0].packets, 100);

    let mut spec = stream(40_000);
    spec.links[0].impairments.duplicate = Probability::from_f64(0.02);
    let (seen, output) = watched(&spec);
    assert!(plausible(seen.delivered.len() as u64 - 40_000, 40_000, 0.02, 1.0));
    // The last ten arrive in the drain.
    let end = Instant::ZERO + spec.duration;
    // Of two copies one is goodput.
    let measured = seen.delivered.iter().filter(|packet| packet.0 < end);
    let measured: BTreeSet<u32> = measured.map(|packet| packet.2).collect();
    assert_eq!(output.groups[0].goodput_bytes.get() / 72, measured.len() as u64);

    // TCP takes a duplicate once and says so.
    let mut spec = one(
        500,
        Traffic::Transfer {
            size: always(3_000.0),
            interarrival: always(0.1),
            count: Some(1),
        },
    );
    spec.links[0].impairments.duplicate = Probability::ONE;
    let output = outcome(&spec);
    let flow = &output.groups[0].flows[0];
    assert_eq!(
        (flow.received, Bytes(flow.stats().redundant_bytes)),
        (Bytes(3_000), Bytes(3_000))
    );
    assert_eq!((flow.stats().segments_sent, flow.stats().retransmits), (3, 0));
    assert_eq!(output.groups[0].goodput_bytes, Bytes(3_000));
}

#[test]
fn a_held_back_packet_is_overtaken() {
    let hold = Duration::from_micros(2_500);
    let mut spec = stream(100);
    spec.links[0].impairments.reorder = Some((Probability::ONE, hold));
    let (seen, _) = watched(&spec);
    for &(at, _, number) in &seen.delivered {
        assert_eq!(at, us(1_000 * u64::from(number) + 100 + 10_000) + hold);
    }

    let mut spec = stream(20_000);
    spec.links[0].impairments.reorder = Some((Probability::from_f64(0.1), hold));
    let (seen, _) = watched(&spec);
    let mut held = 0;
    for &(at, _, number) in &seen.delivered {
        let due = us(1_000 * u64::from(number) + 100 + 10_000);
        assert!(at == due || at == due + hold);
        held += u64::from(at != due);
    }
    assert!(plausible(held, seen.delivered.len() as u64, 0.1, 1.0));
    let order: Vec<u32> = seen.delivered.iter().map(|packet| packet.2).collect();
    // Held for two and a half packets: overtaken by two, unless they are held as well.
    let late = |number: u32| {
        order
            .iter()
            .position(|&other| other == number)
            .expect("delivered")
    };
    let overtaken = (0..19_000)
        .filter(|&number| late(number) > late(number + 1))
        .count() as u64;
    assert!(plausible(overtaken, 19_000, 0.1 * 0.9, 1.0));
}

#[test]
fn jitter_delays_and_keeps_order() {
    let mut spec = stream(20_000);
    spec.links[0].impairments.jitter = Some(Distribution::Uniform { min: 0.0, max: 0.005 });
    let (seen, _) = watched(&spec);
    assert!(seen.delivered.is_sorted());
    let numbers = seen.delivered.iter().map(|packet| packet.2);
    assert!(numbers.eq(0..seen.delivered.len() as u32));
    let extra: Vec<f64> = seen
        .delivered
        .iter()
        .map(|&(at, _, number)| at.since(us(1_000 * u64::from(number) + 10_100)).as_secs_f64())
        .collect();
    assert!(extra.iter().all(|&extra| (0.0..=0.005).contains(&extra)));
    // Order is kept by waiting for the packet before: the delay is the largest of max(0, own, last - 1 ms, ..), so
    // P(delay <= x) = product over k of min(1, (x + k) / 5): with x in [0, 1): x (x+1) (x+2) (x+3) (x+4) / 5^5 and so on.
    let cumulative = |x: f64| {
        (0..5)
            .map(|k| ((x + f64::from(k)) / 5.0).min(1.0))
            .product::<f64>()
    };
    for x in [0.5, 1.5, 2.5, 3.5, 4.5] {
        let below = extra.iter().filter(|&&extra| extra <= x / 1_000.0).count() as u64;
        // Delays up to five packets apart are correlated: no more than nine terms.
        assert!(plausible(below, extra.len() as u64, cumulative(x), 9.0), "{x} ms");
    }
}

#[test]
fn the_receiver_drops_damaged_packets_and_they_are_counted() {
    // 1 - (1 - 1e-5)^(8 x 100) = 0.79681 %.
    let p = 1.0 - (1.0 - 1e-5_f64).powi(800);
    let mut spec = stream(100_000);
    spec.links[0].impairments.bit_error_rate = 1e-5;
    let output = outcome(&spec);
    let damaged = dropped(&output, DropReason::BitError);
    assert!(plausible(damaged, 99_990, p, 1.0));
    assert_eq!(all_drops(&output), damaged);
    // They crossed the link, and did not reach the application.
    assert_eq!(output.links[0].packets, 100_000);
    assert_eq!(output.groups[0].goodput_bytes.get() / 72, 99_990 - damaged);

    // Larger packets suffer more: 1 - (1 - 1e-5)^(8 x 1000) = 7.688 %.
    let mut spec = one(100_000, datagrams(1, 1_000, Duration::from_millis(2)));
    spec.links[0].impairments.bit_error_rate = 1e-5;
    let p = 1.0 - (1.0 - 1e-5_f64).powi(8_000);
    assert!(plausible(
        dropped(&outcome(&spec), DropReason::BitError),
        49_995,
        p,
        1.0
    ));
}

/// What the links of [`network`] saw of packets: those that came, were delivered, and were damaged, by link.
#[derive(Default)]
struct Seen {
    entered: [u64; 6],
    delivered: [u64; 6],
    damaged: [u64; 6],
}

impl Observer for Seen {
    fn on_enter(&mut self, _now: Instant, at: LinkIndex, _packet: &Packet) {
        self.entered[at.0 as usize] += 1;
    }

    fn on_deliver(&mut self, _now: Instant, at: LinkIndex, _packet: &Packet, _sojourn: Duration) {
        self.delivered[at.0 as usize] += 1;
    }

    fn on_drop(&mut self, _now: Instant, at: LinkIndex, _packet: &Packet, reason: DropReason) {
        self.damaged[at.0 as usize] += u64::from(reason == DropReason::BitError);
    }
}

#[test]
fn a_router_throws_away_what_the_link_to_it_damaged() {
    // 1000 packets of 100 bytes; 1 - (1 - 1e-3)^(8 x 100) = 55 % are damaged on the first of two links. Neither the queue of
    // the second nor the receiver sees them.
    let mut spec = network(2, 1_000);
    spec.groups
        .push(group(2, datagrams(1, 100, Duration::from_millis(1))));
    spec.links[2].impairments.bit_error_rate = 1e-3;
    let output = outcome(&spec);
    let damaged = output.links[2].drops[DropReason::BitError as usize][0];
    assert!(plausible(damaged, 1_000, 0.5509, 1.0), "{damaged}");
    assert_eq!((output.links[2].packets, all_drops(&output)), (1_000, 0));
    let left = 1_000 - damaged;
    assert_eq!(
        (output.links[0].packets, output.links[0].queue_packets.n()),
        (left, left)
    );
    assert_eq!(output.groups[0].dropped, damaged);

    for mode in [Mode::Fast, Mode::Plain] {
        let mut seen = Seen::default();
        let mut observed =
            run(&spec, mode, &mut seen, |_| ControlFlow::Continue(())).expect("a runnable scenario");
        assert_eq!((seen.entered[2], seen.entered[0]), (1_000, left));
        assert_eq!((seen.damaged[2], seen.damaged[0]), (damaged, 0));
        assert_eq!(seen.delivered[2], left);
        observed.events = output.events;
        assert_eq!(format!("{observed:?}"), format!("{output:?}"));
    }
}

#[test]
fn tcp_recovers_from_every_impairment() {
    let mut spec = one(
        30_000,
        Traffic::ClosedLoop {
            count: 3,
            size: always(50_000.0),
            think: always(0.1),
        },
    );
    for link in &mut spec.links {
        link.impairments.loss = Loss::Random(Probability::from_f64(0.01));
        link.impairments.jitter = Some(Distribution::Exponential { mean: 0.001 });
        link.impairments.reorder = Some((Probability::from_f64(0.01), Duration::from_millis(4)));
        link.impairments.duplicate = Probability::from_f64(0.01);
        link.impairments.bit_error_rate = 1e-7;
    }
    let output = outcome(&spec);
    let flows = &output.groups[0].flows;
    assert!(flows.len() > 100, "{}", flows.len());
    for flow in flows {
        assert_eq!((flow.completed.is_some(), flow.received), (true, Bytes(50_000)));
    }
    assert!(flows.iter().any(|flow| flow.stats().retransmits > 0));
}

#[test]
fn a_trace_delivers_at_its_opportunities() {
    // Four opportunities in ten milliseconds, at 1, 2, 2 and 5 ms: 4 x 1504 bytes, 4.8128 Mbit/s.
    let ms = Duration::from_millis;
    let rate = LinkRate::Trace {
        opportunities: Arc::new([ms(1), ms(2), ms(2), ms(5)]),
        period: ms(10),
    };
    // Twenty packets that fill an opportunity, at once.
    let mut spec = one(
        100,
        datagrams(20, u64::from(OPPORTUNITY_BYTES), Duration::from_secs(1)),
    );
    spec.links[0].rate = rate.clone();
    spec.links[0].mtu = OPPORTUNITY_BYTES;
    let (seen, output) = watched(&spec);
    let expected: Vec<Instant> = (0..5)
        .flat_map(|period| [1, 2, 2, 5].map(|at| Instant::ZERO + ms(10 * period + at + 10)))
        .collect();
    let at: Vec<Instant> = seen.delivered.iter().map(|packet| packet.0).collect();
    assert_eq!(at, expected);
    // Busy is the share of the mean capacity: 20 of 40 opportunities in 100 ms.
    assert_eq!(output.links[0].busy, ms(50));
    assert_eq!(outcome(&spec).links[0].packets, 20);

    // Offered twice the mean rate, for ten seconds: what leaves is what the trace can carry.
    let mut spec = one(
        10_000,
        datagrams(1, u64::from(OPPORTUNITY_BYTES), Duration::from_micros(1_250)),
    );
    spec.links[0].rate = rate;
    spec.links[0].mtu = OPPORTUNITY_BYTES;
    spec.links[0].queue_values = limit("drop-tail", Limit::Packets(10));
    let output = outcome(&spec);
    // All 4000 opportunities but one: the third packet comes at 2.5 ms, too late for the second one of 2 ms.
    assert_eq!(output.links[0].packets, 3_999);
    assert_eq!(output.links[0].busy, Duration::from_micros(3_999 * 2_500));
    // 8000 sent, ten wait at the end.
    assert_eq!(all_drops(&output), 8_000 - 3_999 - 10);
}
