//! Video calls, look-ups of names and requests that are limited, worked out by hand; both modes of the engine agree.

use crate::line;

use crate::line::{always, group, in_turn, network, one, outcome, times};
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::output::{Datagrams, RunOutput};
use fleetfoot_sim::spec::{
    Dns, Loss, NodeId, PairPolicy, Raw, RawMark, RawPorts, RawSource, Spec, Traffic, Video, Web,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Frames of 2500 bytes at 25 per second: two datagrams of 1028 bytes and one of 528.
fn video() -> Video {
    Video {
        count: 1,
        both_ways: false,
        frame_rate: 25.0,
        frame: always(2_500.0),
        key_every: None,
        key_frame: always(5_000.0),
        packet: Bytes(1_028),
    }
}

fn call(video: Video) -> Spec {
    let both = video.both_ways;
    let mut spec = one(400, Traffic::Video(Box::new(video)));
    if both {
        spec.groups[0].pairs.push((NodeId(1), NodeId(0)));
    }
    spec
}

/// Serialisation of a frame, and propagation (us).
const FRAME: u64 = 1_028 + 1_028 + 528 + 10_000;

fn delays(output: &RunOutput) -> Vec<Option<u64>> {
    let flows = times(output, 0);
    flows
        .into_iter()
        .map(|(start, end, _)| Some(end? - start))
        .collect()
}

#[test]
fn a_frame_is_there_when_its_last_datagram_is() {
    let output = outcome(&call(video()));
    // Ten in 400 ms, whatever the phase: the first within 40 ms.
    assert_eq!(delays(&output), [Some(FRAME); 10]);
    let flows = &output.groups[0].flows;
    let starts: Vec<u64> = times(&output, 0).iter().map(|flow| flow.0).collect();
    assert!(starts[0] < 40_000);
    assert!(
        starts.windows(2).all(|pair| pair[1] - pair[0] == 40_000),
        "{starts:?}"
    );
    let all = |flow: &fleetfoot_sim::output::FlowRecord| {
        (
            flow.stats().segments_sent,
            flow.bytes,
            Bytes(flow.stats().bytes_sent),
            flow.received,
        )
    };
    assert!(
        flows
            .iter()
            .all(|flow| all(flow) == (3, Bytes(2_500), Bytes(2_500), Bytes(2_500)))
    );
    let datagrams = &output.groups[0].datagrams;
    assert_eq!((datagrams.arrived, datagrams.lost), (30, 0));
}

#[test]
fn a_call_goes_both_ways_at_its_own_phase() {
    let output = outcome(&call(Video {
        both_ways: true,
        ..video()
    }));
    assert_eq!(delays(&output), [Some(FRAME); 20]);
    let ways: Vec<u32> = output.groups[0].flows.iter().map(|flow| flow.pair).collect();
    assert_eq!(ways.iter().filter(|way| **way == 0).count(), 10);
    // Two calls over two pairs of hosts, drawn at random: the way back is that of the way there.
    for spread in [PairPolicy::RoundRobin, PairPolicy::Random, PairPolicy::Each] {
        let mut spec = network(3, 400);
        spec.groups.push(group(
            3,
            Traffic::Video(Box::new(Video {
                count: 2,
                both_ways: true,
                ..video()
            })),
        ));
        let there = spec.groups[0].pairs.clone();
        spec.groups[0].pairs = there
            .iter()
            .flat_map(|&(from, to)| [(from, to), (to, from)])
            .collect();
        spec.groups[0].spread = spread;
        let output = outcome(&spec);
        let mut frames = [0; 6];
        for flow in &output.groups[0].flows {
            frames[flow.pair as usize] += 1;
        }
        assert!(
            frames.chunks(2).all(|ways| ways[0] == ways[1]),
            "{spread:?} {frames:?}"
        );
        let calls = if spread == PairPolicy::Each { 6 } else { 2 };
        assert_eq!(frames.iter().sum::<i32>(), 2 * 10 * calls);
    }
}

#[test]
fn calls_that_share_a_pair_keep_their_frames_apart() {
    let output = outcome(&call(Video { count: 3, ..video() }));
    let group = &output.groups[0];
    let mut starts = [const { Vec::new() }; 3];
    for (flow, stream) in times(&output, 0).iter().zip(&group.stream_of_flow) {
        starts[*stream as usize].push(flow.0);
    }
    for starts in starts {
        assert_eq!(starts.len(), 10);
        assert!(
            starts.windows(2).all(|pair| pair[1] - pair[0] == 40_000),
            "{starts:?}"
        );
    }
}

#[test]
fn a_frame_without_one_of_its_datagrams_is_never_complete() {
    let mut spec = call(video());
    spec.links[0].impairments.loss = Loss::Script(Arc::new([4]));
    let output = outcome(&spec);
    let mut expected = [Some(FRAME); 10];
    expected[1] = None;
    // The wire loses it: it took its time before.
    assert_eq!(delays(&output), expected);
    assert_eq!(output.groups[0].flows[1].received, Bytes(1_500));
    assert_eq!(output.groups[0].datagrams, Datagrams { arrived: 29, lost: 1 });
}

#[test]
fn key_frames_are_larger_and_come_at_their_intervals() {
    let output = outcome(&call(Video {
        key_every: Some(4),
        ..video()
    }));
    let bytes: Vec<u64> = output.groups[0].flows.iter().map(|flow| flow.bytes.0).collect();
    let (key, other) = (5_000, 2_500);
    assert_eq!(
        bytes,
        [key, other, other, other, key, other, other, other, key, other]
    );
    assert_eq!(delays(&output)[0], Some(5 * 1_028 + 10_000));
}

#[test]
fn doubled_datagrams_count_once_and_a_lost_copy_is_no_loss() {
    let mut spec = call(video());
    spec.links[0].impairments.duplicate = Probability::from_f64(1.0);
    let output = outcome(&spec);
    assert_eq!(delays(&output), [Some(FRAME); 10]);
    assert!(
        output.groups[0]
            .flows
            .iter()
            .all(|flow| flow.received == flow.bytes)
    );
    assert_eq!(output.groups[0].datagrams, Datagrams { arrived: 30, lost: 0 });
}

#[test]
fn lost_datagrams_of_constant_streams_are_counted() {
    let mut spec = one(100, line::datagrams(1, 1_000, Duration::from_millis(10)));
    spec.links[0].impairments.loss = Loss::Script(Arc::new([2, 5]));
    let datagrams = &outcome(&spec).groups[0].datagrams;
    // The run waits for the last of ten, which is on its way when no more are sent.
    assert_eq!((datagrams.arrived, datagrams.lost), (8, 2));
}

/// A group of one sender, each of whose packets is doubled before it comes to the line, which loses these.
fn doubled(duration_ms: u64, traffic: Traffic, lost: &[u32]) -> Spec {
    let mut spec = network(2, duration_ms);
    spec.groups.push(group(2, traffic));
    spec.groups[0].pairs.truncate(1);
    spec.links[2].impairments.duplicate = Probability::from_f64(1.0);
    spec.links[0].impairments.loss = Loss::Script(Arc::from(lost));
    spec
}

#[test]
fn a_datagram_of_a_constant_stream_is_lost_with_its_last_copy_and_arrives_once() {
    // Packets 0 and 1 of the line are the first datagram, 2 and 3 the second.
    let stream = line::datagrams(1, 1_000, Duration::from_millis(10));
    let output = outcome(&doubled(100, stream, &[0, 3, 4, 5]));
    let group = &output.groups[0];
    // The first comes as its second copy, the third not at all; the last of ten comes when no more are sent, too late for the goodput.
    assert_eq!(group.datagrams, Datagrams { arrived: 9, lost: 1 });
    assert_eq!(group.goodput_bytes, Bytes(8 * 972));
    assert_eq!(group.flows[0].received, Bytes(9 * 972));
    let latencies = group.delivery_latency.iter();
    let latencies: Vec<u64> = latencies.map(|latency| (latency * 1e6).round() as u64).collect();
    assert_eq!(latencies[..3], [12_000, 11_000, 11_000]);
    assert_eq!(latencies.len(), 9);
}

#[test]
fn a_ping_is_over_when_no_copy_of_it_is_left() {
    let ping = Traffic::Ping {
        interval: always(0.05),
        packet: Bytes(84),
    };
    // Of the first request a copy is lost, of the second both; of the two answers to the third the first is lost.
    let mut spec = doubled(160, ping, &[0, 2, 3]);
    spec.links[1].impairments.loss = Loss::Script(Arc::new([1]));
    let output = outcome(&spec);
    let rtt = 2 * 10_084;
    let expected = [
        (0, Some(rtt + 84)),
        (50_000, None),
        (100_000, Some(rtt + 84)),
        (150_000, Some(rtt)),
    ];
    let expected = expected.map(|(start, took)| {
        (
            start,
            took.map(|took| start + took),
            took.map(|took| start + took),
        )
    });
    assert_eq!(times(&output, 0), expected);
    assert_eq!(
        output.groups[0].goodput_bytes,
        Bytes(2 * 56),
        "the fourth request comes after the run"
    );
}

#[test]
fn copies_are_no_goodput() {
    let trains = Traffic::Raw(Box::new(Raw {
        interarrival: always(0.1),
        count: None,
        members: 3,
        interval: Duration::ZERO,
        packet: Bytes(500),
        mark: RawMark::Regular,
        layout: Layout::A,
        length: 2,
        id: None,
        last: false,
        source: RawSource::Own,
        ports: RawPorts::New,
    }));
    let trains = one(400, trains);
    for spec in [call(video()), lookups(dns()), trains] {
        let goodput = |duplicate: f64| {
            let mut spec = spec.clone();
            spec.links[0].impairments.duplicate = Probability::from_f64(duplicate);
            let output = outcome(&spec);
            let group = &output.groups[0];
            let received: u64 = group.flows.iter().map(|flow| flow.received.0).sum();
            (group.goodput_bytes, received)
        };
        assert!(goodput(0.0).0 > Bytes::ZERO);
        assert_eq!(goodput(0.0), goodput(1.0));
        assert_eq!(goodput(0.0), goodput(0.4));
    }
}

/// A look-up each second: requests of 100 bytes with headers, answers of 200.
fn dns() -> Dns {
    Dns {
        interarrival: always(1.0),
        request: always(72.0),
        response: always(172.0),
        most: Bytes(1_232),
        server_time: always(0.0),
        timeout: Duration::from_secs(5),
        attempts: 2,
    }
}

fn lookups(dns: Dns) -> Spec {
    let mut spec = one(3_500, Traffic::Dns(Box::new(dns)));
    spec.drain = Duration::from_secs(60);
    spec
}

/// Both datagrams there and back (us).
const LOOKUP: u64 = 100 + 10_000 + 200 + 10_000;

#[test]
fn a_look_up_is_a_request_and_an_answer() {
    let output = outcome(&lookups(dns()));
    let answered = |seconds: u64| {
        let end = Some(seconds * 1_000_000 + LOOKUP);
        (seconds * 1_000_000, end, end)
    };
    assert_eq!(times(&output, 0), [1, 2, 3].map(answered));
    assert_eq!(output.groups[0].goodput_bytes, Bytes(3 * 172));
    // The server takes its time.
    let output = outcome(&lookups(Dns {
        server_time: always(0.007),
        ..dns()
    }));
    assert_eq!(delays(&output), [Some(LOOKUP + 7_000); 3]);
}

#[test]
fn a_lost_request_or_answer_is_asked_again_after_the_timeout() {
    // Each look-up is a flow of its own; links[1] leads from the client to the server.
    for link in [1, 0] {
        let mut spec = lookups(dns());
        spec.links[link].impairments.loss = Loss::Script(Arc::new([0]));
        let output = outcome(&spec);
        assert_eq!(delays(&output), [Some(5_000_000 + LOOKUP); 3], "link {link}");
        let flow = &output.groups[0].flows[0];
        assert_eq!(
            (
                flow.stats().segments_sent,
                flow.stats().retransmits,
                flow.stats().timeouts
            ),
            (2, 1, 1)
        );
        assert_eq!(flow.given_up, None);
    }
}

#[test]
fn a_look_up_that_nobody_answers_is_given_up() {
    let mut spec = lookups(dns());
    spec.links[1].impairments.loss = Loss::Script(Arc::new([0, 1]));
    let output = outcome(&spec);
    assert_eq!(delays(&output), [None; 3]);
    for flow in &output.groups[0].flows {
        let given_up = flow.given_up.as_deref().expect("the resolver gives up");
        assert_eq!(given_up.since(flow.start), Duration::from_secs(10));
    }
    // Nothing is awaited any more: the run is over with the last.
    assert_eq!(output.ended, line::us(13_000_000));
    let once = outcome(&lookups(Dns {
        attempts: 1,
        timeout: Duration::from_millis(20),
        ..dns()
    }));
    assert_eq!(delays(&once), [None; 3], "the answer comes too late");
}

#[test]
fn an_answer_to_the_first_request_counts_while_the_second_is_on_its_way() {
    let output = outcome(&lookups(Dns {
        server_time: always(6.0),
        ..dns()
    }));
    assert_eq!(delays(&output), [Some(6_000_000 + LOOKUP); 3]);
    assert!(
        output.groups[0]
            .flows
            .iter()
            .all(|flow| flow.stats().segments_sent == 2)
    );
}

#[test]
fn answers_are_never_larger_than_a_resolver_takes() {
    let output = outcome(&lookups(Dns {
        response: always(4_000.0),
        ..dns()
    }));
    assert_eq!(delays(&output), [Some(LOOKUP - 200 + 1_260); 3]);
}

/// Closed-loop kinds with two users, in file order.
fn closed_loops() -> Vec<Traffic> {
    let size = in_turn(&[1_000.0, 30_000.0, 5_000.0]);
    let think = Distribution::Exponential { mean: 0.05 };
    vec![
        Traffic::ClosedLoop {
            count: 2,
            size: size.clone(),
            think: think.clone(),
        },
        Traffic::RequestResponse {
            count: 2,
            request: always(300.0),
            response: size.clone(),
            think: think.clone(),
            server_time: always(0.0),
            exchanges: None,
        },
        Traffic::Web(Box::new(Web {
            count: 2,
            document: always(10_000.0),
            objects: 3,
            object: size,
            request: Bytes(300),
            connections: 2,
            multiplex: false,
            think,
            server_time: always(0.0),
        })),
    ]
}

#[test]
fn users_make_no_more_requests_than_they_are_given() {
    for traffic in closed_loops() {
        let spec = one(5_000, traffic);
        let free = outcome(&spec);
        let made = &free.groups[0].requests;
        assert_eq!(made.len(), 2);
        assert!(made.iter().all(|requests| *requests > 5), "{made:?}");
        assert_eq!(
            made.iter().sum::<u32>() as usize,
            free.groups[0].flows.len(),
            "without warm-up each request has a record"
        );
        // The same number changes nothing.
        let mut same = spec.clone();
        same.groups[0].most_requests = Some(made.clone().into());
        assert_eq!(times(&outcome(&same), 0), times(&free, 0));
        // On a line five times as fast they would ask for more, and do not; what they ask for is the same.
        let mut fast = spec.clone();
        for link in &mut fast.links {
            link.delay = Duration::from_millis(2);
        }
        let more = &outcome(&fast).groups[0].requests;
        assert!(more.iter().zip(made).all(|(more, made)| more > made));
        fast.groups[0].most_requests = Some(made.clone().into());
        let equal = outcome(&fast);
        assert_eq!(&equal.groups[0].requests, made);
        let sizes = |output: &RunOutput| -> Vec<u64> {
            let mut sizes: Vec<u64> = output.groups[0].flows.iter().map(|flow| flow.bytes.0).collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sizes(&equal), sizes(&free));
        // None at all.
        let mut none = spec;
        none.groups[0].most_requests = Some([0, 3].into());
        assert_eq!(outcome(&none).groups[0].requests, [0, 3]);
    }
}

#[test]
fn there_are_no_more_rounds_of_incast_than_are_given() {
    let mut spec = one(
        2_000,
        Traffic::Incast {
            size: in_turn(&[1_000.0, 30_000.0, 5_000.0]),
            count: 2,
            rounds: 1_000,
            pause: Distribution::Exponential { mean: 0.02 },
        },
    );
    let free = outcome(&spec);
    let made = free.groups[0].requests.clone();
    assert_eq!(made.len(), 1, "whoever asks for rounds is one user");
    // Two transfers make a round; the last may have begun just before the end.
    assert_eq!(made[0] as usize, free.groups[0].flows.len() / 2);
    assert!(made[0] > 10, "{made:?}");
    for link in &mut spec.links {
        link.delay = Duration::from_millis(2);
    }
    assert!(
        outcome(&spec).groups[0].requests[0] > made[0],
        "rounds are sooner over"
    );
    spec.groups[0].most_requests = Some(made.clone().into());
    let equal = outcome(&spec);
    assert_eq!(equal.groups[0].requests, made);
    let sizes = |output: &RunOutput| -> Vec<u64> {
        let flows = output.groups[0].flows.iter();
        flows.map(|flow| flow.bytes.0).collect()
    };
    assert_eq!(sizes(&equal), sizes(&free));
    spec.groups[0].most_requests = Some([0].into());
    assert_eq!(outcome(&spec).groups[0].requests, [0]);
}

#[test]
fn other_kinds_have_no_users() {
    let output = outcome(&call(video()));
    assert_eq!(output.groups[0].requests, []);
}

#[test]
fn every_look_up_is_a_flow_of_its_own_and_ends() {
    let mut spec = lookups(Dns {
        interarrival: Distribution::Exponential { mean: 0.01 },
        ..dns()
    });
    spec.links[1].impairments.loss = Loss::Random(Probability::from_f64(0.2));
    let output = outcome(&spec);
    let flows = &output.groups[0].flows;
    assert!(flows.len() > 250);
    for flow in flows {
        assert!(flow.completed.is_some() != flow.given_up.is_some());
    }
    let asked: BTreeSet<u64> = flows.iter().map(|flow| flow.stats().segments_sent).collect();
    assert_eq!(asked, BTreeSet::from([1, 2]));
    let failed = flows.iter().filter(|flow| flow.completed.is_none()).count();
    let share = failed as f64 / flows.len() as f64;
    assert!((0.01..0.09).contains(&share), "both lost: 0.04, not {share}");
}
