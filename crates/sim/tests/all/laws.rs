//! Known laws of TCP, measured on whole simulated connections.
//!
//! Run with `--nocapture` to see the figures that are printed beside the judged ones.

use fleetfoot_core::cc::HyStart;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::rng::Probability;
use fleetfoot_core::tcp::{CaState, Config, Connection, DelayedAck, Profile};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::spec::{
    GroupSpec, Impairments, Interface, LinkRate, LinkSpec, Loss, NodeId, NodeSpec, PairPolicy, Spec, Traffic,
    World,
};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;
use std::sync::Arc;

const MSS: u32 = 1_460;

/// One bulk flow over a path of 100 ms with an endless queue; `loss` strikes data on the way there.
fn path(config: Config, rate: Rate, loss: Loss, duration: Duration, seed: u64) -> Spec {
    let mut queue_values = Values::defaults(AnyQueue::entry("drop-tail").expect("registered").parameters);
    queue_values
        .set("limit", Value::Limit(Limit::Unlimited))
        .expect("a limit");
    let link = |forward: bool, loss: Loss| LinkSpec {
        name: "path".to_owned(),
        forward,
        from: NodeId(u32::from(!forward)),
        to: NodeId(u32::from(forward)),
        rate: LinkRate::Constant(rate),
        delay: Duration::from_millis(50),
        queue: "drop-tail",
        queue_values: queue_values.clone(),
        impairments: Impairments {
            loss,
            loss_data_only: true,
            ..Impairments::default()
        },
        mtu: 1_500,
        framing: 0,
        processing: Duration::ZERO,
        overlap: false,
        host: false,
    };
    let config = Arc::new(config);
    Spec {
        nodes: ["sender", "receiver"]
            .map(|name| NodeSpec {
                name: name.to_owned(),
                host: true,
            })
            .into(),
        links: vec![link(true, loss), link(false, Loss::None)],
        groups: vec![GroupSpec {
            name: "bulk".to_owned(),
            traffic: Traffic::Bulk { count: 1 },
            pairs: vec![(NodeId(0), NodeId(1))],
            spread: PairPolicy::RoundRobin,
            start: Duration::ZERO,
            start_spacing: Duration::ZERO,
            spaced_by_host: false,
            stop: None,
            sender: config.clone(),
            receiver: config,
            interface: Interface::default(),
            relay: None,
            tls: None,
            most_requests: None,
            draws: None,
        }],
        duration,
        warmup: Duration::ZERO,
        drain: Duration::ZERO,
        seed,
        bins: None,
        world: World::Simulator,
        plugins: fleetfoot_core::plugin::Plugins::NONE,
    }
}

fn unlimited(profile: Profile) -> Config {
    Config {
        mtu: 1_500,
        max_window_segments: None,
        receive_buffer: Bytes(1 << 30),
        receive_memory: None,
        send_buffer: Bytes(1 << 30),
        timestamps: false, // the law's MSS is the payload
        ..Config::profile(profile)
    }
}

/// Payload bytes per second over several seeds.
fn throughput(config: &Config, p: f64) -> f64 {
    const SECONDS: u64 = 600;
    const SEEDS: u64 = 4;
    let received: u64 = (0..SEEDS)
        .map(|seed| {
            let loss = Loss::Random(Probability::from_f64(p));
            let spec = path(
                config.clone(),
                Rate::from_bps(100_000_000_000),
                loss,
                Duration::from_secs(SECONDS),
                seed,
            );
            let output =
                run(&spec, Mode::Fast, &mut (), |_| ControlFlow::Continue(())).expect("a valid path");
            output.groups[0].goodput_bytes.get()
        })
        .sum();
    received as f64 / (SEEDS * SECONDS) as f64
}

/// Mathis, Semke, Mahdavi and Ott (1997): MSS / (RTT sqrt(2p/3)), one ACK per packet.
#[test]
fn newreno_obeys_the_square_root_law() {
    let mut rfc = unlimited(Profile::Rfc);
    rfc.congestion_control = "reno";
    rfc.congestion_control_values = None;
    let mut delayed = unlimited(Profile::Ns2NewReno);
    delayed.delayed_ack = DelayedAck::Standard {
        timeout: Duration::from_millis(200),
    };
    println!(
        "{:>7} {:>12} {:>12} {:>14} {:>12}",
        "p", "law B/s", "ns2-newreno", "delayed ACKs", "rfc, reno"
    );
    for p in [0.001, 0.003, 0.01] {
        let law = f64::from(MSS) / (0.1 * (2.0 * p / 3.0_f64).sqrt());
        let measured = throughput(&unlimited(Profile::Ns2NewReno), p);
        let (delayed, rfc) = (throughput(&delayed, p), throughput(&rfc, p));
        println!(
            "{p:>7} {law:>12.0} {measured:>12.0} {delayed:>14.0} {rfc:>12.0}   ratios {:.3} {:.3} {:.3}",
            measured / law,
            delayed / law,
            rfc / law
        );
        assert!(
            (measured / law - 1.0).abs() < 0.15,
            "p {p}: {measured:.0} B/s, the law says {law:.0}"
        );
    }
}

/// Window in segments and state after each acknowledgment at the sender.
#[derive(Default)]
struct Windows(Vec<(Instant, f64, CaState)>);

impl Observer for Windows {
    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        if flow == FlowId(0) {
            let info = connection.info(now);
            self.0
                .push((now, info.cwnd.get() as f64 / f64::from(MSS), info.ca_state));
        }
    }
}

/// RFC 9438 4.2 from the end of one recovery to the next loss, in a connection that loses two packets far apart.
///
/// The bottleneck is slower than the smallest window per round trip, so ACKs come evenly. With ACKs in one burst per
/// round trip the window stands still in between, while the curve moves on.
#[test]
fn cubic_follows_its_curve_between_losses() {
    let config = Config {
        congestion_control: "cubic",
        congestion_control_values: None,
        delayed_ack: DelayedAck::Off,
        hystart: HyStart::Off,
        ..unlimited(Profile::Rfc)
    };
    let loss = Loss::Script(Arc::new([100, 6_500]));
    let spec = path(
        config,
        Rate::from_bps(9_000_000),
        loss,
        Duration::from_secs(12),
        1,
    );
    let mut seen = Windows::default();
    run(&spec, Mode::Fast, &mut seen, |_| ControlFlow::Continue(())).expect("a valid path");

    let recovery = seen
        .0
        .iter()
        .position(|sample| sample.2 == CaState::Recovery)
        .expect("a loss");
    let w_max = seen.0[recovery - 1].1;
    let epoch = recovery
        + seen.0[recovery..]
            .iter()
            .position(|sample| sample.2 == CaState::Open)
            .expect("a recovery that ends");
    let (t0, cwnd_epoch, _) = seen.0[epoch];
    let k = ((w_max - cwnd_epoch) / 0.4).cbrt();
    let mut worst = 0.0_f64;
    let mut last = Duration::ZERO;
    for &(now, window, state) in &seen.0[epoch..] {
        if state != CaState::Open {
            break;
        }
        last = now.since(t0);
        let t = last.as_secs_f64();
        worst = worst.max((window - (0.4 * (t - k).powi(3) + w_max)).abs());
    }
    println!(
        "W_max {w_max:.1}, cwnd_epoch {cwnd_epoch:.1}, K {k:.3} s, followed for {last}, off by at most {worst:.3}"
    );
    assert!(
        last.as_secs_f64() > 1.5 * k,
        "the stretch is too short to show the curve: {last}"
    );
    assert!(worst <= 1.0, "off the curve by {worst} segments");
}
