//! TFRC on whole paths: the equation's rate under random loss, its share beside TCP, its smoothness, and where every packet
//! went.
//!
//! Run with `--nocapture` to see the figures.

use crate::line::{group, limit, network};
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Kind, Packet, Segment};
use fleetfoot_core::queue::{DropReason, Limit};
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_core::tfrc::{self, Variant};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{GroupSpec, LinkIndex, LinkRate, Loss, PairPolicy, Spec, Tfrc, Traffic};
use fleetfoot_sim::world::{Mode, run};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

fn streams(count: u32, config: tfrc::Config) -> Traffic {
    Traffic::Tfrc(Box::new(Tfrc {
        count: Some(count),
        size: None,
        interarrival: None,
        rate: None,
        config,
    }))
}

/// The line's speed (bit/s), one-way delay (ms) and queue, both ways.
fn wire(spec: &mut Spec, bps: u64, delay_ms: u64, queue: Limit) {
    for link in &mut spec.links[..2] {
        link.rate = LinkRate::Constant(Rate::from_bps(bps));
        link.delay = Duration::from_millis(delay_ms);
        link.queue_values = limit("drop-tail", queue);
    }
}

fn go<O: Observer>(spec: &Spec, observer: &mut O) -> RunOutput {
    run(spec, Mode::Fast, observer, |_| ControlFlow::Continue(())).expect("a runnable scenario")
}

/// Bytes that arrived per flow and bin of time.
struct Bins {
    width: Duration,
    bytes: Vec<Vec<u64>>,
}

impl Observer for Bins {
    fn on_receive(&mut self, now: Instant, flow: FlowId, in_order: Range<u64>) {
        let (flow, bin) = (
            flow.0 as usize / 2,
            (now.as_nanos() / self.width.as_nanos()) as usize,
        );
        self.bytes.resize(self.bytes.len().max(flow + 1), Vec::new());
        let bins = &mut self.bytes[flow];
        bins.resize(bins.len().max(bin + 1), 0);
        bins[bin] += in_order.end - in_order.start;
    }
}

impl Bins {
    /// Coefficient of variation of a flow's rate from `from` (bins) on.
    fn variation(&self, flow: usize, from: usize) -> f64 {
        let bins = &self.bytes[flow][from..self.bytes[flow].len() - 1];
        let mean = bins.iter().sum::<u64>() as f64 / bins.len() as f64;
        let square = bins
            .iter()
            .map(|bytes| (*bytes as f64 - mean).powi(2))
            .sum::<f64>()
            / bins.len() as f64;
        square.sqrt() / mean
    }
}

#[test]
fn random_loss_gives_the_equations_rate() {
    // Packets per second that ns-2.35's Agent/TFRC sends there (bench/peers/ns2-tfrc.tcl, seeds 1 to 4): as it comes, and with
    // t_RTO = 4 R. As it comes, t_RTO is a TCP's timer made of ticks of 100 ms, one for R and two for its variance: 0.3 s, not 0.4.
    for (loss, seconds, ns2, ns2_4r) in [
        (0.001, 1500, 394.7, 396.1),
        (0.01, 600, 123.6, 120.9),
        (0.05, 600, 46.6, 42.4),
    ] {
        let config = tfrc::Config::default();
        // 100 ms there and back, wide enough that queues stay empty.
        let mut spec = network(1, 1000 * seconds);
        wire(&mut spec, 100_000_000, 50, Limit::Unlimited);
        spec.links[0].impairments.loss = Loss::Random(Probability::from_f64(loss));
        spec.groups = vec![group(1, streams(1, config))];
        spec.warmup = Duration::from_secs(60);
        let rtt = path_rtt(&spec);
        let mut packets = 0.0;
        let mut events = 0.0;
        let runs = 4;
        for seed in 0..runs {
            spec.seed = seed;
            let output = go(&spec, &mut ());
            let stream = output.groups[0].streams[0];
            let sent = output.groups[0].flows[0].stats().segments_sent;
            // The equation is about what is sent: what arrived, and the packets that were lost on the way.
            let arrived = output.groups[0].goodput_bytes.0 as f64 / f64::from(config.segment());
            let all = sent as f64 / (sent as f64 - stream.lost as f64);
            packets += arrived * all / (seconds - 60) as f64 / f64::from(runs as u32);
            events += stream.loss_events as f64 / sent as f64 / f64::from(runs as u32);
        }
        // Losses within a round-trip time are one event, so p is below the loss rate. Intervals vary, and the mean over time of a
        // rate that a smoothed p gives is near the rate of the mean p, not the same.
        let segment = f64::from(config.segment());
        let expected = config.allowed(rtt, events) / segment;
        let raw = config.allowed(rtt, loss) / segment;
        println!(
            "loss {loss}: {packets:.1} packets/s ({:.3} of ns-2's, {:.3} with t_RTO = 4 R), equation {expected:.1} at p = {events:.5} (ratio {:.3}), {raw:.1} at the loss rate (ratio {:.3})",
            packets / ns2,
            packets / ns2_4r,
            packets / expected,
            packets / raw
        );
        assert!(
            (packets / expected - 1.0).abs() < 0.1,
            "loss {loss}: {}",
            packets / expected
        );
        assert!(
            (packets / ns2_4r - 1.0).abs() < 0.05,
            "loss {loss}: {packets}, ns-2 {ns2_4r}"
        );
    }
}

/// Round-trip time without queues, of a data packet and its report.
fn path_rtt(spec: &Spec) -> f64 {
    let along: Duration = spec
        .links
        .iter()
        .fold(Duration::ZERO, |sum, link| sum + link.delay);
    along.as_secs_f64()
}

#[test]
fn beside_tcp_it_takes_about_its_share_and_is_smoother() {
    let (mut tcp, mut tfrc, mut rough, mut smooth) = (0.0, 0.0, 0.0, 0.0);
    let runs = 4;
    for seed in 0..runs {
        let mut spec = network(4, 200_000);
        spec.seed = seed;
        wire(&mut spec, 10_000_000, 20, Limit::Packets(50));
        // Drop-tail locks in phases: RED does not.
        spec.links[0].queue = "red";
        spec.links[0].queue_values = limit("red", Limit::Packets(100));
        let tcp_config = Arc::new(Config::profile(Profile::Rfc));
        let bulk = GroupSpec {
            sender: Arc::clone(&tcp_config),
            receiver: tcp_config,
            ..group(4, Traffic::Bulk { count: 4 })
        };
        let mut beside = group(4, streams(4, tfrc::Config::default()));
        beside.name = "tfrc".to_owned();
        beside.start = Duration::from_millis(137);
        spec.groups = vec![bulk, beside];
        spec.warmup = Duration::from_secs(20);
        let mut bins = Bins {
            width: Duration::from_millis(500),
            bytes: Vec::new(),
        };
        let output = go(&spec, &mut bins);
        tcp += output.groups[0].goodput_bytes.0 as f64;
        tfrc += output.groups[1].goodput_bytes.0 as f64;
        for flow in 0..4 {
            rough += bins.variation(flow, 40) / 4.0 / runs as f64;
            smooth += bins.variation(flow + 4, 40) / 4.0 / runs as f64;
        }
    }
    let share = tfrc / (tcp + tfrc);
    println!(
        "TFRC's share {share:.3}; coefficient of variation over 0.5 s: TCP {rough:.3}, TFRC {smooth:.3}"
    );
    assert!((0.3..0.7).contains(&share), "{share}");
    assert!(smooth < rough, "TFRC {smooth}, TCP {rough}");
}

/// Data packets sent, doubled, dropped and delivered.
#[derive(Default)]
struct Count {
    sent: u64,
    dropped: u64,
}

impl Observer for Count {
    fn on_send(&mut self, _now: Instant, _flow: FlowId, segment: &Segment) {
        self.sent += u64::from(segment.kind() == Kind::TfrcData);
    }

    fn on_drop(&mut self, _now: Instant, _at: LinkIndex, packet: &Packet, _reason: DropReason) {
        self.dropped += u64::from(packet.segment.kind() == Kind::TfrcData);
    }
}

#[test]
fn every_packet_arrives_or_is_dropped() {
    for seed in 0..20 {
        let mut spec = network(2, 30_000);
        spec.seed = seed;
        wire(&mut spec, 2_000_000, 10, Limit::Packets(8));
        let traffic = Traffic::Tfrc(Box::new(Tfrc {
            count: Some(40),
            size: Some(Distribution::Exponential { mean: 60_000.0 }),
            interarrival: Some(Distribution::Exponential { mean: 0.4 }),
            rate: None,
            config: tfrc::Config {
                packet: if seed % 2 == 0 { 1500 } else { 200 },
                variant: if seed % 4 == 1 {
                    Variant::SmallPackets
                } else {
                    Variant::Standard
                },
                ..tfrc::Config::default()
            },
        }));
        spec.groups = vec![group(2, traffic)];
        spec.groups[0].spread = PairPolicy::Random;
        spec.drain = Duration::from_secs(600);
        let mut count = Count::default();
        let output = go(&spec, &mut count);
        let group = &output.groups[0];
        assert_eq!(group.flows.len(), 40);
        let sent: u64 = group.flows.iter().map(|flow| flow.stats().segments_sent).sum();
        let whole = |flow: &&fleetfoot_sim::output::FlowRecord| flow.received == flow.bytes;
        assert_eq!(sent, count.sent);
        for flow in &group.flows {
            assert_eq!(Bytes(flow.stats().bytes_sent), flow.bytes, "what there was, once");
            assert!(flow.received <= flow.bytes);
            assert!(
                flow.completed.is_some() || flow.received == Bytes::ZERO,
                "{flow:?}"
            );
            assert!(flow.completed.is_none_or(|at| at > flow.start));
        }
        if count.dropped == 0 {
            assert_eq!(group.flows.iter().filter(whole).count(), 40);
        }
        let lost: u64 = group
            .flows
            .iter()
            .map(|flow| flow.bytes.0 - flow.received.0)
            .sum();
        assert_eq!(
            lost == 0,
            count.dropped == 0,
            "seed {seed}: {lost} bytes, {} drops",
            count.dropped
        );
        assert!(
            output.ended < Instant::ZERO + Duration::from_secs(600),
            "streams end: {:?}",
            output.ended
        );
    }
}

#[test]
fn an_application_paces_its_stream() {
    let mut spec = network(1, 20_000);
    let traffic = Traffic::Tfrc(Box::new(Tfrc {
        count: Some(2),
        size: Some(Distribution::Constant(146_000.0)),
        interarrival: None,
        rate: Some(Rate::from_bps(120_000)),
        config: tfrc::Config::default(),
    }));
    spec.groups = vec![group(1, traffic)];
    let output = go(&spec, &mut ());
    // 100 packets of 1500 bytes at 120 kbit/s: one each 100 ms.
    for flow in &output.groups[0].flows {
        assert_eq!((flow.stats().segments_sent, flow.received), (100, Bytes(146_000)));
        let took = flow.completed.expect("complete").since(flow.start).as_secs_f64();
        assert!((9.9..10.1).contains(&took), "{took}");
    }
}
