//! Recorded connections: exact times on the line of `common/line.rs`, and the same bytes in both modes of the engine.
//!
//! 8 Mbit/s is 1 us per byte, 10,000 us each way; a packet of n bytes takes n + 10,000, here 5,000 more of its own. SYN and
//! SYN-ACK have 52 bytes, headers 40. Times are in microseconds.

use crate::common::random_spec;
use crate::line::{one, outcome, times};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{Loss, NodeId, PairPolicy, Recorded, Replay, Spec, Traffic, Unit};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;

/// End, wait, bytes.
fn units(list: &[(u8, u64, u64)]) -> Box<[Unit]> {
    let unit = |&(from, wait_us, bytes): &(u8, u64, u64)| Unit {
        from,
        wait: Duration::from_micros(wait_us),
        bytes: Bytes(bytes),
    };
    list.iter().map(unit).collect()
}

fn recorded(start_us: u64, concurrent: bool, list: &[(u8, u64, u64)]) -> Recorded {
    Recorded {
        start: Duration::from_micros(start_us),
        pair: 0,
        delay: Duration::from_micros(5_000),
        rtt: Duration::from_micros(30_104),
        concurrent,
        windows: [0; 2],
        losses_ppm: [0; 2],
        units: units(list),
    }
}

fn replay(mut connections: Vec<Recorded>) -> Traffic {
    connections.sort_by_key(|connection| connection.start);
    Traffic::Replay(Box::new(Replay {
        connections: connections.into(),
        start_jitter: Duration::ZERO,
        identity: "test".into(),
    }))
}

fn micros(seconds: &[f64]) -> Vec<u64> {
    seconds.iter().map(|s| libm::round(s * 1e6) as u64).collect()
}

#[test]
fn exchanges_take_what_network_and_transport_take() {
    // The request leaves with the end of the handshake at 30,104 and is there at 46,104; 7,000 later the answer is written,
    // at 69,604 it is there; 3,000 later a last word of 140 bytes on the wire, at 87,744 it is there.
    let list = [(1, 0, 960), (0, 7_000, 1_460), (1, 3_000, 100)];
    let output = outcome(&one(1_000, replay(vec![recorded(100_000, false, &list)])));
    let start = 100_000;
    assert_eq!(
        times(&output, 0),
        [
            (start + 7_000, Some(start + 69_604), None),
            (start + 72_604, Some(start + 87_744), None),
        ],
        "the first counts from the SYN, without the 7,000 that the answer waited"
    );
    let group = &output.groups[0];
    assert_eq!(group.flows[0].bytes, Bytes(960 + 1_460));
    assert_eq!(group.flows[1].bytes, Bytes(100));
    assert_eq!(micros(&group.connections), [87_744]);
    assert_eq!(micros(&group.delivery_latency), [46_104, 16_500, 15_140]);
    assert_eq!(group.goodput_bytes, Bytes(960 + 1_460 + 100), "both ways");
    assert_eq!(
        group
            .flows
            .iter()
            .map(|flow| flow.stats().bytes_sent)
            .sum::<u64>(),
        2_520
    );
    assert_eq!(group.flows[0].min_rtt, Some(Duration::from_micros(30_104)));
    assert_eq!(group.flows[0].stats().retransmits, 0);
}

#[test]
fn one_end_pauses_between_what_it_says_and_closes_late() {
    // The server speaks first, 1.5 round-trip times after the SYN and 2,000: at 47,156. 3000 bytes in three packets of 3120
    // bytes leave at once; 4,000 later 1000 more; the end 50,000 after that changes nothing.
    let list = [(0, 2_000, 3_000), (0, 4_000, 1_000), (0, 50_000, 0)];
    let output = outcome(&one(1_000, replay(vec![recorded(0, false, &list)])));
    assert_eq!(
        times(&output, 0),
        [
            (2_000, Some(47_156 + 3_120 + 15_000), None),
            (51_156, Some(51_156 + 1_040 + 15_000), None),
        ]
    );
    assert_eq!(micros(&output.groups[0].connections), [67_196]);
}

#[test]
fn ends_of_a_concurrent_connection_speak_for_themselves() {
    // 140 bytes on the wire leave at 30,104, 240 bytes 10,000 after they did. The other end may speak at 45,156, and does
    // when the end of the handshake is there at 45,244; 440 bytes follow 2,000 after that.
    let list = [(1, 0, 100), (0, 0, 300), (0, 2_000, 400), (1, 10_000, 200)];
    let output = outcome(&one(1_000, replay(vec![recorded(0, true, &list)])));
    assert_eq!(
        times(&output, 0),
        [
            (0, Some(45_244), None),
            (40_104, Some(40_104 + 240 + 15_000), None),
            (45_156, Some(45_244 + 340 + 15_000), None),
            (47_244, Some(47_244 + 440 + 15_000), None),
        ]
    );
    assert_eq!(micros(&output.groups[0].connections), [62_684]);
}

#[test]
fn packets_of_every_connection_take_their_own_time() {
    let mut connections: Vec<Recorded> = (0..5)
        .map(|number| recorded(number * 200_000, false, &[(1, 0, 60), (0, 0, 60)]))
        .collect();
    for (number, connection) in connections.iter_mut().enumerate() {
        connection.delay = Duration::from_millis(7 * number as u64);
    }
    let output = outcome(&one(2_000, replay(connections)));
    let took = micros(&output.groups[0].connections);
    for (number, took) in took.into_iter().enumerate() {
        assert_eq!(took, 2 * (52 + 100) + 4 * (10_000 + 7_000 * number as u64));
    }
    assert_eq!(output.groups[0].connections.len(), 5);
}

#[test]
fn a_recorded_window_is_all_that_an_end_offers() {
    // 30 segments are three flights as the window of congestion grows; with a window of two segments they are 15.
    let list = [(1, 0, 100), (0, 0, 30 * 1_460)];
    let took = |windows| {
        let connection = Recorded {
            windows,
            ..recorded(0, false, &list)
        };
        let output = outcome(&one(5_000, replay(vec![connection])));
        micros(&output.groups[0].connections)[0]
    };
    let (free, held) = (took([0; 2]), took([0, 2_920]));
    assert_eq!(free, took([60_000, 0]), "the opener says little");
    // The request is there at 45,244. A segment is acknowledged 1,500 + 15,000 + 40 + 15,000 after it began to leave, 14 times;
    // the last two take 3,000 and 15,000.
    assert_eq!((free, held), (121_784, 45_244 + 14 * 31_540 + 18_000));
}

#[test]
fn recorded_losses_take_data_of_the_end_that_they_are_for() {
    let list = [(1, 0, 20_000), (0, 0, 200_000)];
    let lost = |losses_ppm| {
        let connections = (0..40).map(|number| Recorded {
            losses_ppm,
            ..recorded(number * 2_000_000, false, &list)
        });
        let output = outcome(&one(120_000, replay(connections.collect())));
        let group = &output.groups[0];
        assert_eq!(group.connections.len(), 40, "all arrives in the end");
        group.dropped
    };
    assert_eq!(lost([0; 2]), 0);
    // 137 segments each: 2 % of 5480 are 110, with a standard deviation of 10.4; some more, of what is sent again.
    let data = lost([20_000, 0]);
    assert!((75..=150).contains(&data), "{data}");
    assert_eq!(lost([0, 20_000]), 0, "counted are those of the sender");
}

/// Random connections on a random network with losses, jitter and other traffic.
fn random_replay(seed: u64) -> Spec {
    let mut spec = random_spec(seed);
    let mut rng = Rng::from_seed(seed ^ 0x5eed);
    let connections = (0..40)
        .map(|_| {
            let list: Vec<(u8, u64, u64)> = (0..1 + rng.below(6))
                .map(|_| {
                    let wait = [0, 300, 20_000, 150_000][rng.below(4) as usize];
                    let bytes = [0, 1, 400, 20_000, 200_000][rng.below(5) as usize];
                    (rng.below(2) as u8, wait, bytes)
                })
                .collect();
            Recorded {
                pair: rng.below(5) as u32,
                delay: Duration::from_micros([0, 0, 2_000, 30_000][rng.below(4) as usize]),
                rtt: Duration::from_millis(rng.below(80)),
                windows: [0, 1].map(|_| [0, 0, 4_000, 65_535][rng.below(4) as usize]),
                losses_ppm: [0, 1].map(|_| [0, 0, 10_000][rng.below(3) as usize]),
                ..recorded(rng.below(1_500_000), rng.below(2) == 0, &list)
            }
        })
        .collect();
    let mut group = spec.groups[0].clone();
    group.name = "replay".to_owned();
    group.spread = PairPolicy::RoundRobin;
    group.stop = None;
    group.pairs = vec![(NodeId(3), NodeId(7)), (NodeId(4), NodeId(8))];
    group.traffic = replay(connections);
    spec.groups.push(group);
    spec
}

fn played(spec: &Spec, mode: Mode) -> RunOutput {
    run(spec, mode, &mut (), |_| ControlFlow::Continue(())).expect("a runnable scenario")
}

#[test]
fn replays_are_the_same_in_both_modes() {
    let mut complete = 0;
    for seed in 0..60 {
        let spec = random_replay(seed);
        let [fast, plain] = [Mode::Fast, Mode::Plain].map(|mode| {
            let mut output = played(&spec, mode);
            output.events = 0;
            output
        });
        assert!(format!("{fast:?}") == format!("{plain:?}"), "seed {seed}");
        let group = fast.groups.last().expect("the replay");
        complete += group.connections.len();
        let answered = group.flows.iter().filter(|flow| flow.completed.is_some());
        assert!(answered.count() >= group.connections.len() / 2, "seed {seed}");
    }
    assert!(complete > 800, "{complete} connections were complete");
}

#[test]
fn a_seed_moves_starts_by_less_than_the_jitter() {
    let list = [(1, 0, 100)];
    let starts = |seed: u64, jitter_us: u64| -> Vec<u64> {
        let mut traffic = replay(
            (0..50)
                .map(|number| recorded(number * 20_000, false, &list))
                .collect(),
        );
        if let Traffic::Replay(replay) = &mut traffic {
            replay.start_jitter = Duration::from_micros(jitter_us);
        }
        let mut spec = one(1_000, traffic);
        spec.seed = seed;
        let flows = &outcome(&spec).groups[0].flows;
        flows.iter().map(|flow| flow.start.as_nanos() / 1_000).collect()
    };
    let (plain, moved) = (starts(1, 0), starts(1, 5_000));
    assert_eq!(plain, (0..50).map(|number| number * 20_000).collect::<Vec<_>>());
    assert_eq!(plain, starts(2, 0));
    assert_ne!(moved, starts(2, 5_000));
    let late: Vec<u64> = moved
        .iter()
        .zip(&plain)
        .map(|(moved, plain)| moved - plain)
        .collect();
    assert!(late.iter().all(|&late| late < 5_000), "{late:?}");
    let mean = late.iter().sum::<u64>() / 50;
    assert!((1_500..3_500).contains(&mean), "{mean}");
}

/// Twenty connections 1 ms apart, each with bytes and a delay of its own, up to 1 s later: none waits for one that was recorded before it.
#[test]
fn no_start_waits_for_a_connection_that_was_recorded_earlier() {
    let connections: Vec<Recorded> = (0..20)
        .map(|number| Recorded {
            delay: Duration::from_micros(100 * number),
            ..recorded(1_000 * number, false, &[(1, 0, 100 + number)])
        })
        .collect();
    let mut traffic = replay(connections);
    if let Traffic::Replay(replay) = &mut traffic {
        replay.start_jitter = Duration::from_secs(1);
    }
    let mut spec = one(2_000, traffic);
    spec.drain = Duration::from_secs(1);
    let flows = outcome(&spec).groups.swap_remove(0).flows;
    let mut numbers: Vec<u64> = Vec::new();
    for flow in &flows {
        let number = flow.bytes.get() - 100;
        // Its own start, drawn with its place in the recording, and its own delay.
        let mut random = Rng::for_element(spec.seed, "group", &format!("start {number}"));
        let start = Duration::from_millis(number) + Duration::from_secs_f64(random.uniform());
        assert_eq!(flow.start, Instant::ZERO + start, "connection {number}");
        let took = flow.completed.map(|end| end.since(flow.start).as_nanos() / 1_000);
        let alone = 2 * 52 + 140 + number + 3 * (10_000 + 100 * number);
        assert!(
            took.is_some_and(|took| (alone..alone + 1_000).contains(&took)),
            "connection {number}: {took:?} us, alone {alone}"
        );
        numbers.push(number);
    }
    assert!(!numbers.is_sorted(), "the starts change places");
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
}

/// Three exchanges of 960 bytes and 1,460, 100,000 apart, as in `exchanges_take_what_network_and_transport_take`: asked for at 0, 169,604 and
/// 309,104, over at 69,604, 209,104 and 348,604.
#[test]
fn exchanges_that_begin_in_the_measured_time_count_whenever_their_connection_opened() {
    let ask = [(1, 100_000, 960), (0, 7_000, 1_460)];
    let list = [(1, 0, 960), ask[1], ask[0], ask[1], ask[0], ask[1]];
    let measured = |warmup_ms: u64| {
        let mut spec = one(1_000, replay(vec![recorded(0, false, &list)]));
        spec.warmup = Duration::from_millis(warmup_ms);
        let output = outcome(&spec);
        for flow in &output.groups[0].flows {
            assert_eq!((flow.bytes, flow.received), (Bytes(2_420), Bytes(2_420)));
            assert_eq!(flow.stats().bytes_sent, 2_420, "warm-up {warmup_ms} ms");
        }
        (
            times(&output, 0),
            micros(&output.groups[0].delivery_latency),
            micros(&output.groups[0].connections),
        )
    };
    let flows = [
        (7_000, Some(69_604), None),
        (176_604, Some(209_104), None),
        (316_104, Some(348_604), None),
    ];
    let first = [46_104, 16_500];
    let others = [16_000, 16_500];
    assert_eq!(
        measured(0),
        (flows.to_vec(), [first, others, others].concat(), vec![348_604])
    );
    assert_eq!(
        measured(100),
        (flows[1..].to_vec(), [others, others].concat(), vec![])
    );
    // The second asks in the warm-up. What answers it in the measured time is no exchange of its own.
    assert_eq!(measured(180), (flows[2..].to_vec(), others.to_vec(), vec![]));
}

#[test]
fn what_an_exchange_of_the_warm_up_took_is_of_no_other() {
    // The first answer is lost and comes again after a timeout; 3 s later the next exchange.
    let list = [
        (1, 0, 960),
        (0, 7_000, 1_460),
        (1, 3_000_000, 960),
        (0, 7_000, 1_460),
    ];
    let retransmits = |warmup_ms: u64| -> Vec<(u64, u32)> {
        let mut spec = one(10_000, replay(vec![recorded(0, false, &list)]));
        spec.links[0].impairments.loss = Loss::Script([0].into());
        spec.links[0].impairments.loss_data_only = true;
        spec.warmup = Duration::from_millis(warmup_ms);
        let output = outcome(&spec);
        let flows = output.groups[0].flows.iter();
        flows
            .map(|flow| (flow.stats().bytes_sent, flow.stats().retransmits))
            .collect()
    };
    assert_eq!(retransmits(0), [(2_420 + 1_460, 1), (2_420, 0)]);
    assert_eq!(retransmits(2_000), [(2_420, 0)]);
}
