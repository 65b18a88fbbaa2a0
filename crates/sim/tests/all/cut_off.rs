//! What the end of a run cuts off is counted with its age, worked out by hand on the line of `line.rs`; both modes of the engine agree.
//!
//! 8 Mbit/s is 1 us per byte, 10,000 us each way. The handshake takes 20,104 us; headers have 40 bytes, so a write of 1,000 bytes in
//! one segment is there 11,040 us after it left. Times are in microseconds.

use crate::line::{always, config, datagrams, in_turn, one, outcome, us};
use fleetfoot_core::rng::Probability;
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::output::{Datagrams, RunOutput};
use fleetfoot_sim::spec::{Loss, Recorded, Replay, Spec, Traffic, Unit, Video, Web};
use std::sync::Arc;

fn micros(seconds: &[f64]) -> Vec<u64> {
    seconds.iter().map(|s| libm::round(s * 1e6) as u64).collect()
}

/// Latencies of writes that arrived, and ages of those that did not.
fn writes(output: &RunOutput) -> [Vec<u64>; 2] {
    let group = &output.groups[0];
    [&group.delivery_latency, &group.delivery_censored].map(|times| micros(times))
}

/// A stream of 1,000 bytes at 0, 30, 60 and 90 ms.
fn thin(drain_ms: u64) -> Spec {
    let mut spec = one(
        100,
        Traffic::Thin {
            count: 1,
            payload: always(1_000.0),
            interval: always(0.03),
        },
    );
    spec.drain = Duration::from_millis(drain_ms);
    spec
}

#[test]
fn a_write_that_is_under_way_at_the_end_has_its_age() {
    // The first leaves with the end of the handshake; the last is there at 101,040.
    let arrived = [20_104 + 11_040, 11_040, 11_040];
    for (drain_ms, age) in [(0, 10_000), (1, 11_000)] {
        let output = outcome(&thin(drain_ms));
        assert_eq!(writes(&output), [arrived.to_vec(), vec![age]], "{drain_ms} ms");
        assert_eq!(output.ended, us(100_000 + 1_000 * drain_ms));
    }
    let output = outcome(&thin(2));
    assert_eq!(writes(&output), [[&arrived[..], &[11_040]].concat(), vec![]]);
}

#[test]
fn writes_before_the_handshake_is_over_wait_too_and_those_of_the_warm_up_do_not_count() {
    let mut spec = thin(0);
    spec.duration = Duration::from_millis(20);
    if let Traffic::Thin { interval, .. } = &mut spec.groups[0].traffic {
        *interval = always(0.005);
    }
    assert_eq!(
        writes(&outcome(&spec)),
        [vec![], vec![20_000, 15_000, 10_000, 5_000]]
    );
    spec.warmup = Duration::from_millis(7);
    assert_eq!(writes(&outcome(&spec)), [vec![], vec![10_000, 5_000]]);
    // Bursts are writes as well.
    spec.groups[0].traffic = Traffic::OnOff {
        count: 1,
        burst: always(1_000.0),
        interval: always(0.005),
    };
    let output = outcome(&spec);
    assert_eq!(writes(&output), [vec![], vec![10_000, 5_000]]);
    assert_eq!(output.groups[0].flows.len(), 2);
}

#[test]
fn a_segment_that_is_not_acknowledged_has_its_age() {
    // Headers of 52 bytes: sent with the end of the handshake (behind an ACK of 52), at 30,000, 60,000 and 90,000; each is acknowledged
    // 11,052 + 10,052 later, the last at 111,104.
    let noted = |drain_ms: u64| {
        let mut spec = thin(drain_ms);
        let linux = Arc::new(Config::profile(Profile::Linux));
        (spec.groups[0].sender, spec.groups[0].receiver) = (Arc::clone(&linux), linux);
        outcome(&spec)
    };
    let output = noted(5);
    let group = &output.groups[0];
    assert_eq!(micros(&group.ack_latency), [21_104, 21_104, 21_156]);
    assert_eq!(micros(&group.ack_latency_censored), [15_000]);
    let output = noted(20);
    assert_eq!(
        micros(&output.groups[0].ack_latency),
        [21_104, 21_104, 21_104, 21_156]
    );
    assert!(output.groups[0].ack_latency_censored.is_empty());
}

#[test]
fn what_a_dead_connection_took_with_it_is_as_old_as_the_run() {
    // No data passes, so connections die one after the other: none of the writes arrives, and each is a sample.
    let mut spec = thin(1_000);
    spec.duration = Duration::from_secs(10);
    if let Traffic::Thin { interval, .. } = &mut spec.groups[0].traffic {
        *interval = always(1.0);
    }
    spec.links[0].impairments.loss = Loss::Random(Probability::ONE);
    spec.links[0].impairments.loss_data_only = true;
    spec.groups[0].sender = Arc::new(Config {
        retries: 1,
        ..Config::profile(Profile::Linux)
    });
    let output = outcome(&spec);
    let ended = output.ended.as_nanos() / 1_000;
    let group = &output.groups[0];
    assert!(group.flows.len() > 1, "another connection followed");
    let ages: Vec<u64> = (0..10).map(|second| ended - 1_000_000 * second).collect();
    assert_eq!(writes(&output), [vec![], ages.clone()]);
    // Every write was a segment of its own; the first of a connection left with the end of its handshake.
    let sent: u64 = group.flows.iter().map(|flow| flow.stats().segments_sent).sum();
    let again: u32 = group.flows.iter().map(|flow| flow.stats().retransmits).sum();
    assert_eq!(group.ack_latency_censored.len() as u64, sent - u64::from(again));
    assert!(group.ack_latency.is_empty());
}

#[test]
fn a_request_and_an_answer_that_are_cut_off_have_their_ages() {
    // A request of 960 bytes: there at 20,104 + 11,000. The answer of 2,920 bytes: there 3,000 + 10,000 later, at 44,104.
    let mut spec = one(
        30,
        Traffic::RequestResponse {
            count: 1,
            request: always(960.0),
            response: always(2_920.0),
            think: always(1.0),
            server_time: always(0.0),
            exchanges: Some(1),
        },
    );
    spec.drain = Duration::ZERO;
    assert_eq!(writes(&outcome(&spec)), [vec![], vec![30_000]]);
    spec.drain = Duration::from_millis(10);
    assert_eq!(writes(&outcome(&spec)), [vec![31_104], vec![40_000 - 31_104]]);
    spec.drain = Duration::from_millis(15);
    assert_eq!(writes(&outcome(&spec)), [vec![31_104, 13_000], vec![]]);
    // While the server works nothing is on its way; its answer is written 20 ms later, at 51,104, and there at 64,104.
    if let Traffic::RequestResponse { server_time, .. } = &mut spec.groups[0].traffic {
        *server_time = always(0.02);
    }
    spec.drain = Duration::from_millis(10);
    assert_eq!(writes(&outcome(&spec)), [vec![31_104], vec![]]);
    spec.drain = Duration::from_millis(25);
    assert_eq!(writes(&outcome(&spec)), [vec![31_104], vec![55_000 - 51_104]]);
    spec.drain = Duration::from_millis(40);
    assert_eq!(writes(&outcome(&spec)), [vec![31_104, 13_000], vec![]]);
}

#[test]
fn a_recorded_connection_that_is_cut_off_has_its_age() {
    // As above, 10 ms after the begin; the answer comes 20 ms after its request.
    let unit = |from, wait_ms, bytes| Unit {
        from,
        wait: Duration::from_millis(wait_ms),
        bytes: Bytes(bytes),
    };
    let mut spec = one(
        40,
        Traffic::Replay(Box::new(Replay {
            connections: [Recorded {
                start: Duration::from_millis(10),
                pair: 0,
                delay: Duration::ZERO,
                rtt: Duration::from_millis(20),
                concurrent: false,
                windows: [0; 2],
                losses_ppm: [0; 2],
                units: [unit(1, 0, 960), unit(0, 20, 2_920)].into(),
            }]
            .into(),
            start_jitter: Duration::ZERO,
            identity: "test".into(),
        })),
    );
    let times = |output: &RunOutput| {
        let group = &output.groups[0];
        [&group.connections, &group.connections_censored].map(|times| micros(times))
    };
    spec.drain = Duration::ZERO;
    let output = outcome(&spec);
    assert_eq!(writes(&output), [vec![], vec![30_000]]);
    assert_eq!(times(&output), [vec![], vec![30_000]]);
    // The request is there at 41,104, the answer is written at 61,104 and there at 74,104.
    spec.drain = Duration::from_millis(30);
    let output = outcome(&spec);
    assert_eq!(writes(&output), [vec![31_104], vec![70_000 - 61_104]]);
    assert_eq!(times(&output), [vec![], vec![60_000]]);
    spec.drain = Duration::from_millis(100);
    let output = outcome(&spec);
    assert_eq!(writes(&output), [vec![31_104, 13_000], vec![]]);
    assert_eq!(times(&output), [vec![64_104], vec![]]);
}

#[test]
fn a_write_of_the_measured_time_that_is_cut_off_counts_on_a_connection_of_the_warm_up() {
    // Asked for at 0, there at 31,104; 50 ms later the next, which is cut off after 5 ms.
    let unit = |wait_ms| Unit {
        from: 1,
        wait: Duration::from_millis(wait_ms),
        bytes: Bytes(960),
    };
    let connection = Recorded {
        start: Duration::ZERO,
        pair: 0,
        delay: Duration::ZERO,
        rtt: Duration::from_micros(20_104),
        concurrent: false,
        windows: [0; 2],
        losses_ppm: [0; 2],
        units: [unit(0), unit(50)].into(),
    };
    let mut spec = one(
        75,
        Traffic::Replay(Box::new(Replay {
            connections: [connection].into(),
            start_jitter: Duration::ZERO,
            identity: "test".into(),
        })),
    );
    spec.drain = Duration::ZERO;
    // All of the first was sent with the end of the handshake, at 20,104.
    assert_eq!(writes(&outcome(&spec)), [vec![31_104], vec![75_000 - 70_104]]);
    spec.warmup = Duration::from_millis(40);
    let output = outcome(&spec);
    assert_eq!(writes(&output), [vec![], vec![75_000 - 70_104]]);
    assert!(output.groups[0].connections_censored.is_empty());
    spec.warmup = Duration::from_millis(72);
    assert_eq!(writes(&outcome(&spec)), [vec![], vec![]]);
}

/// A page over HTTP/2, at 0: a document and three objects of 1,451 bytes, each a frame of a packet of 1,500, asked for with 100 bytes each.
fn page(duration_ms: u64, objects: u32) -> Spec {
    let mut spec = one(
        duration_ms,
        Traffic::Web(Box::new(Web {
            count: 1,
            document: always(1_451.0),
            objects,
            object: always(1_451.0),
            request: Bytes(91),
            connections: 1,
            multiplex: true,
            think: always(0.0),
            server_time: always(0.0),
        })),
    );
    spec.drain = Duration::ZERO;
    spec
}

#[test]
fn parts_of_a_page_that_have_not_arrived_have_their_ages() {
    // The document is asked for with the end of the handshake and there at 20,104 + 10,140 + 11,500. The requests of the objects are a packet
    // of 340 bytes, there at 52,084; the objects are there at 63,584, 65,084 and 66,584.
    let asked = 41_744;
    for (end_ms, arrived) in [(30, 0), (64, 1), (66, 2)] {
        let output = outcome(&page(end_ms, 3));
        let end = 1_000 * end_ms;
        if arrived == 0 {
            assert_eq!(writes(&output), [vec![], vec![end]], "the document");
            continue;
        }
        let objects: Vec<u64> = (0..arrived)
            .map(|number| 63_584 + 1_500 * number - asked)
            .collect();
        let missing = vec![end - asked; 3 - arrived as usize];
        assert_eq!(
            writes(&output),
            [[&[asked][..], &objects].concat(), missing],
            "{end_ms} ms"
        );
    }
    // A page that began in the warm-up is not measured, nor is any part of it.
    let mut spec = page(64, 3);
    spec.warmup = Duration::from_millis(1);
    assert_eq!(writes(&outcome(&spec)), [vec![], vec![]]);
}

#[test]
fn what_another_connection_asks_for_again_was_asked_for_at_first() {
    // The first connection brings the document, and its server gives up after sending the object twice; the second one brings it.
    let mut spec = page(60_000, 1);
    spec.links[0].impairments.loss = Loss::Script([1, 2].into());
    spec.links[0].impairments.loss_data_only = true;
    spec.groups[0].sender = Arc::new(Config {
        retries: 1,
        ..config()
    });
    if let Traffic::Web(web) = &mut spec.groups[0].traffic {
        web.think = in_turn(&[0.0, 100.0]);
    }
    let output = outcome(&spec);
    let flow = &output.groups[0].flows[0];
    assert_eq!(flow.stats().retransmits, 1);
    let end = flow.completed.map_or(0, |end| end.as_nanos() / 1_000);
    assert!(end > 600_000, "two timeouts, of 200 ms and 400 ms: {end}");
    let asked = 41_744;
    assert_eq!(writes(&output), [vec![asked, end - asked], vec![]]);
    // A little earlier it is still on its way over the second connection.
    spec.duration = Duration::from_micros(end - 5_000);
    assert_eq!(writes(&outcome(&spec)), [vec![asked], vec![end - 5_000 - asked]]);
}

#[test]
fn a_run_waits_for_datagrams_and_counts_those_as_lost_that_never_come() {
    // Two of 1,000 bytes each millisecond, which fill the line twice: the last of 20 leaves it at 20,000 and is there at 30,000.
    let mut spec = one(10, datagrams(2, 1_000, Duration::from_millis(1)));
    let output = outcome(&spec);
    assert_eq!(output.groups[0].datagrams, Datagrams { arrived: 20, lost: 0 });
    assert_eq!(output.groups[0].delivery_latency.len(), 20);
    assert_eq!(output.ended, us(30_000));
    // Those of the warm-up are not waited for: the last of both streams left at 9,000, after 18 others.
    spec.warmup = Duration::from_millis(5);
    let output = outcome(&spec);
    assert_eq!(output.groups[0].datagrams, Datagrams { arrived: 10, lost: 0 });
    spec.warmup = Duration::ZERO;
    // Until 10 ms nothing came; at 13.5 ms three are there.
    for (drain_us, arrived) in [(0, 0), (3_500, 3)] {
        spec.drain = Duration::from_micros(drain_us);
        let output = outcome(&spec);
        let lost = 20 - arrived;
        assert_eq!(output.groups[0].datagrams, Datagrams { arrived, lost });
        assert_eq!(output.groups[0].delivery_latency.len() as u64, arrived);
        assert_eq!(output.ended, us(10_000 + drain_us));
    }
    // Where each is doubled one copy of each counts.
    spec.drain = Duration::from_secs(1);
    spec.links[0].impairments.duplicate = Probability::ONE;
    let output = outcome(&spec);
    assert_eq!(output.groups[0].datagrams, Datagrams { arrived: 20, lost: 0 });
    // Copies of those that have not come are no datagrams.
    for (drain_us, arrived) in [(0, 0), (3_500, 3)] {
        spec.drain = Duration::from_micros(drain_us);
        let lost = 20 - arrived;
        assert_eq!(
            outcome(&spec).groups[0].datagrams,
            Datagrams { arrived, lost },
            "{drain_us} us"
        );
    }
}

#[test]
fn datagrams_of_frames_that_never_come_are_lost() {
    // One frame in 40 ms, of ten datagrams of 1,000 bytes, at a phase that the seed draws.
    let mut spec = one(
        40,
        Traffic::Video(Box::new(Video {
            count: 1,
            both_ways: false,
            frame_rate: 25.0,
            frame: always(9_720.0),
            key_every: None,
            key_frame: always(9_720.0),
            packet: Bytes(1_000),
        })),
    );
    let output = outcome(&spec);
    assert_eq!(output.groups[0].datagrams, Datagrams { arrived: 10, lost: 0 });
    let start = output.groups[0].flows[0].start.as_nanos() / 1_000;
    // 3.5 ms after the first could be there.
    let end = start + 10_000 + 3_500;
    spec.duration = Duration::from_micros(start + 1);
    spec.drain = Duration::from_micros(end - start - 1);
    let output = outcome(&spec);
    assert_eq!(output.groups[0].datagrams, Datagrams { arrived: 3, lost: 7 });
}
