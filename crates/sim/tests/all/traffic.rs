//! Every kind of traffic on networks small enough to be worked out by hand; times are in microseconds.
//!
//! All on one line of 8 Mbit/s (1 us per byte) and 10,000 us each way. A packet of n bytes takes n + 10,000.
//!
//! **The handshake**: SYN of 52 bytes, arrives at 10,052; SYN-ACK, arrives at 20,104; the ACK that ends it rides on the
//! first data. So a transfer that begins at 0 and takes n bytes at layer 3 is complete at 20,104 + n + 10,000, and known
//! to be 40 + 10,000 later.

use crate::line::{always, config, datagrams, group, in_turn, network, one, outcome, times, us};
use fleetfoot_core::rng::{Probability, Rng};
use fleetfoot_core::tcp::{Config, DelayedAck, InitialWindow};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::output::FlowRecord;
use fleetfoot_sim::spec::{FlowLine, Loss, NodeId, PairPolicy, Spec, Traffic, Web};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The handshake and the way of the last byte.
const BEFORE: u64 = 20_104 + 10_000;

/// The way of an ACK.
const ACK: u64 = 10_040;

fn transfers(size: f64, gap: f64, count: Option<u64>) -> Traffic {
    Traffic::Transfer {
        size: always(size),
        interarrival: always(gap),
        count,
    }
}

#[test]
fn a_transfer_counts_from_its_syn_to_its_last_byte() {
    // 3000 bytes are two segments of 1460 and one of 80: 1500 + 1500 + 120 on the wire.
    let output = outcome(&one(1_000, transfers(3_000.0, 0.1, Some(3))));
    let fct = BEFORE + 3_120;
    assert_eq!(
        times(&output, 0),
        [100_000, 200_000, 300_000].map(|start| (start, Some(start + fct), Some(start + fct + ACK)))
    );
    for flow in &output.groups[0].flows {
        assert_eq!((flow.bytes, flow.received), (Bytes(3_000), Bytes(3_000)));
        assert_eq!(
            (flow.stats().segments_sent, Bytes(flow.stats().bytes_sent)),
            (3, Bytes(3_000))
        );
        assert_eq!(
            (
                flow.stats().retransmits,
                flow.stats().timeouts,
                flow.stats().probes
            ),
            (0, 0, 0)
        );
        assert_eq!(flow.stats().redundant_bytes, 0);
        // The smallest sample is that of the SYN.
        assert_eq!(flow.min_rtt, Some(Duration::from_micros(20_104)));
        // The three segments were sent in one moment, 20,104 after the start, and acknowledged one by one.
        assert_eq!(flow.stats().ack_latency_count, 3);
        let latencies = [1_500, 3_000, 3_120].map(|end| end + 10_000 + ACK);
        let sum = latencies.iter().sum::<u64>() as f64 / 1e6;
        assert!(
            (flow.ack_latency_sum - sum).abs() < 1e-9,
            "{}",
            flow.ack_latency_sum
        );
    }
    assert_eq!(output.groups[0].goodput_bytes, Bytes(9_000));
    assert_eq!(output.groups[0].goodput_bytes_per_connection, [Bytes(3_000); 3]);
    assert!(output.groups[0].delivery_latency.is_empty());
    // No flow was open at the end: nothing to drain.
    assert_eq!(output.ended, us(1_000_000));
    // SYN, three segments (the FIN rides on the last), the ACK of the peer's FIN.
    assert_eq!(
        (output.links[0].packets, output.links[0].data_packets),
        (3 * 5, 3 * 3)
    );
    assert_eq!(output.links[0].bytes, Bytes(3 * (52 + 3_120 + 40)));
    assert_eq!(
        output.links[0].busy,
        Duration::from_micros(output.links[0].bytes.get())
    );
}

#[test]
fn flows_count_from_warmup_to_duration_the_end_not_included() {
    let transfer = transfers(1_000.0, 0.1, None);
    let count = |warmup_ms: u64, duration_ms: u64, stop_ms: Option<u64>| {
        let mut spec = one(duration_ms, transfer.clone());
        spec.warmup = Duration::from_millis(warmup_ms);
        spec.groups[0].stop = stop_ms.map(Duration::from_millis);
        let output = outcome(&spec);
        let starts: Vec<u64> = times(&output, 0).iter().map(|flow| flow.0 / 1_000).collect();
        (starts, output.groups[0].goodput_bytes.get())
    };
    // Complete 31,144 after the start (20,104 + 1,040 + 10,000).
    assert_eq!(count(0, 350, None), (vec![100, 200, 300], 3_000));
    assert_eq!(
        count(200, 350, None),
        (vec![200, 300], 2_000),
        "the first moment counts"
    );
    assert_eq!(
        count(201, 350, None),
        (vec![300], 2_000),
        "a flow of the warm-up does not, its bytes do"
    );
    assert_eq!(
        count(131, 350, None),
        (vec![200, 300], 3_000),
        "but its bytes at 131.144 do"
    );
    assert_eq!(
        count(0, 300, None),
        (vec![100, 200], 2_000),
        "nothing starts at the end"
    );
    assert_eq!(
        count(0, 320, None),
        (vec![100, 200, 300], 2_000),
        "what arrives in the drain is no goodput"
    );
    assert_eq!(count(0, 350, Some(250)), (vec![100, 200], 2_000));
    assert_eq!(count(0, 350, Some(200)), (vec![100], 1_000), "nor at `stop`");
}

/// One transfer of 1 MB whose window never stops it: segment n of 1460 bytes arrives at `BEFORE` + 1500 n, and the 685th,
/// of 1360, completes it at `BEFORE` + 684 x 1500 + 1400.
fn megabyte(duration_ms: u64, drain_ms: u64) -> fleetfoot_sim::output::RunOutput {
    let line = FlowLine {
        start: Duration::ZERO,
        source: NodeId(0),
        destination: NodeId(1),
        bytes: Bytes(1_000_000),
    };
    let mut spec = one(
        duration_ms,
        Traffic::Flows {
            list: Arc::new([line]),
        },
    );
    let wide = Arc::new(Config {
        initial_window: InitialWindow::Segments(1_000),
        ..config()
    });
    spec.groups[0].sender = wide;
    spec.drain = Duration::from_millis(drain_ms);
    outcome(&spec)
}

#[test]
fn a_flow_that_the_drain_does_not_finish_is_censored() {
    // Until 700,000: (700,000 - 30,104) / 1500 = 446.6 segments; until 500,000: 313.3.
    let output = megabyte(500, 200);
    let flow = &output.groups[0].flows[0];
    assert_eq!((flow.completed, flow.acked), (None, None));
    assert_eq!(flow.received, Bytes(446 * 1_460));
    assert_eq!(output.groups[0].goodput_bytes, Bytes(313 * 1_460));
    assert_eq!(output.ended, us(700_000));

    let done = BEFORE + 684 * 1_500 + 1_400;
    // One nanosecond short, and exactly enough; a millisecond is what durations are given in here.
    let output = megabyte(500, done / 1_000 - 500);
    assert_eq!(
        output.groups[0].flows[0].completed, None,
        "1057.504 is later than 1057"
    );
    let output = megabyte(500, done / 1_000 - 500 + 1);
    assert_eq!(
        times(&output, 0),
        [(0, Some(done), None)],
        "complete at 1057.504, the ACK is 10.040 later"
    );
    assert_eq!(output.ended, us(1_058_000));
    let output = megabyte(500, 10_000);
    assert_eq!(times(&output, 0), [(0, Some(done), Some(done + ACK))]);
    assert_eq!(
        output.ended,
        us(done + ACK),
        "the drain ends with what it waits for"
    );
    assert_eq!(output.groups[0].goodput_bytes, Bytes(313 * 1_460));
}

/// A page that is one document of 1 MB, asked for with 100 bytes at 0.
fn page(duration_ms: u64) -> Spec {
    let mut spec = one(
        duration_ms,
        Traffic::Web(Box::new(Web {
            count: 1,
            document: always(1_000_000.0),
            objects: 0,
            object: always(1.0),
            request: Bytes(100),
            connections: 1,
            multiplex: false,
            think: always(0.0),
            server_time: always(0.0),
        })),
    );
    spec.groups[0].sender = Arc::new(Config {
        initial_window: InitialWindow::Segments(1_000),
        ..config()
    });
    spec.drain = Duration::ZERO;
    spec
}

#[test]
fn a_page_that_is_not_over_counts_what_its_connection_did() {
    // SYN, SYN-ACK and the request of 140 bytes: the answer leaves at 20,104 + 10,140, and segment n is there 10,000 + 1500 n later.
    // Until 500,000: (500,000 - 40,244) / 1500 = 306.5 segments. All 685 have left.
    let output = outcome(&page(500));
    let flow = &output.groups[0].flows[0];
    assert_eq!((flow.completed, flow.received), (None, Bytes(306 * 1_460)));
    let stats = flow.stats();
    assert_eq!((stats.segments_sent, stats.bytes_sent), (685, 1_000_000));
    // The smallest sample is that of the SYN-ACK: 10,052 there, 10,140 back.
    assert_eq!(flow.min_rtt, Some(Duration::from_micros(20_192)));

    // Of each connection all data is lost but its first packet: ten segments, two more when the first is acknowledged, one again after
    // a timeout; then the server gives up and the browser asks again. What each of them did counts.
    let mut spec = page(20_000);
    spec.links[0].impairments.loss = Loss::Script((1..100).collect());
    spec.links[0].impairments.loss_data_only = true;
    spec.groups[0].sender = Arc::new(Config {
        retries: 1,
        ..config()
    });
    let (slots, output) = slots(&spec);
    let flow = &output.groups[0].flows[0];
    let (stats, opened) = (flow.stats(), slots.opened as u64);
    assert!(opened > 10, "{opened}");
    assert_eq!((flow.completed, flow.received), (None, Bytes(1_460 * opened)));
    assert_eq!(stats.segments_sent, 13 * opened);
    assert_eq!(
        (u64::from(stats.retransmits), u64::from(stats.timeouts)),
        (opened, opened)
    );
}

#[test]
fn a_bulk_flow_sends_until_its_stop_and_has_no_end() {
    // A window of four segments: the first four leave at 20,104, each arrives 11,500 after it leaves and its ACK, 10,040
    // later, lets the next one go: a round is 21,540. Segment i of round r leaves at 20,104 + 1500 i + 21,540 r. Before
    // 300,000 that is r <= 12 for all four (the last at 283,084), after it r = 13.
    let mut spec = one(400, Traffic::Bulk { count: 2 });
    spec.groups[0].sender = Arc::new(Config {
        initial_window: InitialWindow::Segments(4),
        max_window_segments: Some(4),
        ..config()
    });
    spec.groups[0].stop = Some(Duration::from_millis(300));
    spec.groups[0].start_spacing = Duration::from_millis(350);
    let output = outcome(&spec);
    // The second member would start after the stop.
    assert_eq!(times(&output, 0), [(0, None, None)]);
    let flow = &output.groups[0].flows[0];
    assert_eq!(
        (flow.stats().segments_sent, Bytes(flow.stats().bytes_sent)),
        (52, Bytes(52 * 1_460))
    );
    assert_eq!(
        (flow.bytes, flow.received),
        (Bytes(52 * 1_460), Bytes(52 * 1_460))
    );
    assert_eq!(output.groups[0].goodput_bytes, Bytes(52 * 1_460));
    // A bulk flow keeps nobody waiting.
    assert_eq!(output.ended, us(400_000));

    // Members start one spacing apart; those of the warm-up are reported, with the goodput of the window only.
    spec.groups[0].stop = None;
    spec.groups[0].start_spacing = Duration::from_millis(50);
    spec.warmup = Duration::from_millis(100);
    let output = outcome(&spec);
    let starts: Vec<_> = times(&output, 0).iter().map(|flow| (flow.0, flow.1)).collect();
    assert_eq!(starts, [(0, None), (50_000, None)]);
    let total: u64 = output.groups[0]
        .goodput_bytes_per_connection
        .iter()
        .map(|bytes| bytes.get())
        .sum();
    assert_eq!(output.groups[0].goodput_bytes, Bytes(total));
    let received: u64 = output.groups[0]
        .flows
        .iter()
        .map(|flow| flow.received.get())
        .sum();
    // What came before 100,000: rounds of the first member arrive at 31,644 + 1500 i + 21,540 r, four for r <= 2 and one
    // at 96,264 of r = 3, three more until 100,764 of which two (97,764 and 99,264) count; the second member begins with
    // its data at 70,144 behind what the first has in the queue, so its own part is what is left.
    assert!(
        received - total >= 15 * 1_460 && received - total < 20 * 1_460,
        "{}",
        received - total
    );
}

#[test]
fn a_user_thinks_transfers_and_thinks_again() {
    let spec = one(
        250,
        Traffic::ClosedLoop {
            count: 1,
            size: in_turn(&[1_000.0, 2_000.0]),
            think: always(0.05),
        },
    );
    let output = outcome(&spec);
    // 1000 bytes: 1040 on the wire; 2000: 1500 + 580. The next transfer begins 50,000 after the last one's completion.
    let (short, long) = (BEFORE + 1_040, BEFORE + 2_080);
    let second = 50_000 + short + 50_000;
    let third = second + long + 50_000;
    assert!(
        third < 250_000 && third + short + 50_000 > 250_000,
        "three begin before the end"
    );
    assert_eq!(
        times(&output, 0),
        [(50_000, short), (second, long), (third, short)].map(|(start, fct)| (
            start,
            Some(start + fct),
            Some(start + fct + ACK)
        ))
    );
    let bytes: Vec<u64> = output.groups[0]
        .flows
        .iter()
        .map(|flow| flow.bytes.get())
        .collect();
    assert_eq!(bytes, [1_000, 2_000, 1_000]);
}

#[test]
fn a_request_goes_to_the_data_sender_and_the_response_comes_back() {
    let spec = one(
        1_000,
        Traffic::RequestResponse {
            count: 1,
            request: always(500.0),
            response: always(3_000.0),
            think: always(0.02),
            server_time: always(0.0),
            exchanges: Some(2),
        },
    );
    let output = outcome(&spec);
    // The receiver of the data opens, from the right. Handshake and request of 540: at the server at 30,644.
    let request = BEFORE + 540;
    // The response carries the ACK of the request: 1500 + 1500 + 120 and the way.
    let first = request + 3_120 + 10_000;
    // The connection stands: 540 there, 3120 back.
    let second_start = first + 20_000;
    let second = 10_540 + 13_120;
    assert_eq!(
        times(&output, 0),
        [
            (0, Some(first), Some(first + ACK)),
            (
                second_start,
                Some(second_start + second),
                Some(second_start + second + ACK)
            ),
        ]
    );
    for flow in &output.groups[0].flows {
        assert_eq!((flow.bytes, flow.received), (Bytes(3_000), Bytes(3_000)));
        assert_eq!(
            (flow.stats().segments_sent, Bytes(flow.stats().bytes_sent)),
            (3, Bytes(3_000)),
            "the response's only"
        );
    }
    // Requests and responses by turns, each from its own write.
    let latency: Vec<u64> = latencies_us(&output);
    assert_eq!(latency, [request, 13_120, 10_540, 13_120]);
    // Goodput is what the data receiver got.
    assert_eq!(output.groups[0].goodput_bytes, Bytes(6_000));
    // The requests and nothing else of payload went from right to left.
    assert_eq!(output.links[1].data_packets, 2);
    assert_eq!(output.links[0].data_packets, 6);
}

#[test]
fn a_server_may_need_time_for_an_answer() {
    // As above, with 100 ms from each request to its answer: the request's ACK does not wait for it, 10,040 back.
    let spec = |server_time: f64| {
        one(
            2_000,
            Traffic::RequestResponse {
                count: 1,
                request: always(500.0),
                response: always(3_000.0),
                think: always(0.02),
                server_time: always(server_time),
                exchanges: Some(2),
            },
        )
    };
    let (soon, output) = (outcome(&spec(0.0)), outcome(&spec(0.1)));
    let first = BEFORE + 540 + 100_000 + 3_120 + 10_000;
    let second_start = first + 20_000;
    let second = 10_540 + 100_000 + 13_120;
    assert_eq!(
        times(&output, 0),
        [
            (0, Some(first), Some(first + ACK)),
            (
                second_start,
                Some(second_start + second),
                Some(second_start + second + ACK)
            ),
        ]
    );
    // Both are on their way as long as ever; each request has an ACK of its own. The FIN, which answers that of the client,
    // went with the last data of the answer.
    const FIN: u64 = 1;
    assert_eq!(latencies_us(&output), latencies_us(&soon));
    assert_eq!(output.links[0].data_packets, soon.links[0].data_packets);
    assert_eq!(output.links[0].packets, soon.links[0].packets + 2 + FIN);

    // With a timer of 40 ms the request's ACK comes then. An answer sooner than that carries it.
    for (server_time, acks) in [(0.03, 0), (0.05, 2)] {
        let delayed = |server_time| {
            let mut spec = spec(server_time);
            spec.groups[0].sender = Arc::new(Config {
                delayed_ack: DelayedAck::Standard {
                    timeout: Duration::from_millis(40),
                },
                ..config()
            });
            outcome(&spec)
        };
        let (soon, output) = (delayed(0.0), delayed(server_time));
        assert_eq!(
            output.links[0].packets,
            soon.links[0].packets + acks + FIN,
            "{server_time}"
        );
    }
}

#[test]
fn the_objects_of_a_page_wait_for_a_server_that_needs_time() {
    // Ten objects on one connection, one after the other, after the document; over three connections the document and
    // four rounds of objects wait, and their packets meet others than before.
    let page = |connections, server_time| {
        let traffic = Traffic::Web(Box::new(Web {
            count: 1,
            document: always(1_000.0),
            objects: 10,
            object: always(1_000.0),
            request: Bytes(100),
            connections,
            multiplex: false,
            think: always(0.5),
            server_time: always(server_time),
        }));
        let output = outcome(&one(5_000, traffic));
        let (begun, done, _) = times(&output, 0)[0];
        done.expect("complete") - begun
    };
    assert_eq!(page(1, 0.1), page(1, 0.0) + 11 * 100_000);
    let (soon, later) = (page(3, 0.0), page(3, 0.1));
    assert!(
        (500_000 - 5_000..500_000 + 5_000).contains(&(later - soon)),
        "{soon} {later}"
    );
}

fn latencies_us(output: &fleetfoot_sim::output::RunOutput) -> Vec<u64> {
    let latencies = output.groups[0].delivery_latency.iter();
    latencies.map(|seconds| (seconds * 1e6).round() as u64).collect()
}

#[test]
fn bursts_begin_on_time_on_one_connection() {
    let mut spec = one(
        1_000,
        Traffic::OnOff {
            count: 1,
            burst: in_turn(&[1_000.0, 3_000.0]),
            interval: always(0.1),
        },
    );
    spec.groups[0].start = Duration::from_millis(7);
    spec.groups[0].stop = Some(Duration::from_millis(250));
    let output = outcome(&spec);
    // The first burst waits for the handshake; the others take 1040 or 3120 and the way.
    let after = [BEFORE + 1_040, 13_120, 11_040];
    let starts = [7_000, 107_000, 207_000];
    let expected: Vec<_> = std::iter::zip(starts, after)
        .map(|(start, fct)| (start, Some(start + fct), Some(start + fct + ACK)))
        .collect();
    assert_eq!(times(&output, 0), expected);
    assert_eq!(latencies_us(&output), after);
    assert_eq!(output.groups[0].goodput_bytes_per_connection, [Bytes(5_000)]);
    assert_eq!(output.groups[0].flows[1].stats().segments_sent, 3);
}

/// Six exchanges or bursts on one connection, 120 ms and more apart. Of the first the first packet is lost: the six behind it bring it again.
/// The measured time begins between the third and the fourth.
#[test]
fn what_was_sent_in_the_warm_up_is_of_no_measured_flow() {
    let exchanges = Traffic::RequestResponse {
        count: 1,
        request: always(500.0),
        response: always(10_000.0),
        think: always(0.09),
        server_time: always(0.0),
        exchanges: Some(6),
    };
    let bursts = Traffic::OnOff {
        count: 1,
        burst: always(10_000.0),
        interval: always(0.15),
    };
    for (traffic, warmup_ms) in [(exchanges, 340), (bursts, 400)] {
        let mut spec = one(2_000, traffic);
        spec.groups[0].stop = Some(Duration::from_millis(890));
        spec.links[0].impairments.loss = Loss::Script([0].into());
        spec.links[0].impairments.loss_data_only = true;
        let all = sent(&outcome(&spec));
        let others = (Bytes(10_000), Bytes(10_000), 7, 0);
        assert_eq!(all[0], (Bytes(10_000), Bytes(11_460), 8, 1));
        assert_eq!(all[1..], [others; 5]);
        spec.warmup = Duration::from_millis(warmup_ms);
        assert_eq!(sent(&outcome(&spec)), [others; 3]);
    }
}

/// Of each flow: bytes that arrived and bytes, segments and retransmissions that its sender counted.
fn sent(output: &fleetfoot_sim::output::RunOutput) -> Vec<(Bytes, Bytes, u64, u32)> {
    let flows = output.groups[0].flows.iter().map(|flow| {
        let stats = flow.stats();
        (
            flow.received,
            Bytes(stats.bytes_sent),
            stats.segments_sent,
            stats.retransmits,
        )
    });
    flows.collect()
}

#[test]
fn datagrams_leave_at_exact_times_and_know_no_feedback() {
    // 1000 bytes every 10,000: ten before 100,000. Each takes 1000 + 10,000, so the one of 90,000 arrives too late for the goodput.
    let output = outcome(&one(100, datagrams(1, 1_000, Duration::from_millis(10))));
    let flow = &output.groups[0].flows[0];
    assert_eq!((flow.start, flow.completed), (us(0), None));
    assert_eq!(
        (flow.stats().segments_sent, Bytes(flow.stats().bytes_sent)),
        (10, Bytes(10 * 972)),
        "28 bytes are headers"
    );
    assert_eq!((flow.received, flow.bytes), (Bytes(10 * 972), Bytes(10 * 972)));
    assert_eq!(output.groups[0].goodput_bytes, Bytes(9 * 972));
    assert_eq!(latencies_us(&output), [11_000; 10]);
    assert_eq!(output.links[1].packets, 0);

    // 500 bytes at 3 Mbit/s: every 1333 1/3 us. The 300th leaves at 398,666, the next would at 400,000 exactly.
    let spec = one(
        400,
        Traffic::Cbr {
            count: 1,
            rate: Rate::from_bps(3_000_000),
            packet: Bytes(500),
        },
    );
    assert_eq!(outcome(&spec).groups[0].flows[0].stats().segments_sent, 300);
}

/// Who waits for a ping that was lost waits for the next one of the same process, wherever that goes.
#[test]
fn pings_of_a_process_are_one_stream_whichever_pairs_they_go_to() {
    let ping = Traffic::Ping {
        interval: always(0.05),
        packet: Bytes(84),
    };
    let mut spec = network(3, 280);
    spec.groups.push(group(3, ping));
    spec.warmup = Duration::from_millis(60);
    let streams = |spec: &Spec| {
        let group = &outcome(spec).groups[0];
        let flows = group.flows.iter().zip(&group.stream_of_flow);
        flows
            .map(|(flow, stream)| (flow.pair, *stream))
            .collect::<Vec<_>>()
    };
    // At 100, 150, 200 and 250 ms; those of 0 and 50 ms belong to the warm-up.
    assert_eq!(streams(&spec), [(2, 0), (0, 0), (1, 0), (2, 0)]);
    spec.groups[0].spread = PairPolicy::Each;
    spec.groups[0].stop = Some(Duration::from_millis(160));
    assert_eq!(streams(&spec), [(0, 0), (1, 1), (2, 2), (0, 0), (1, 1), (2, 2)]);
}

#[test]
fn a_ping_comes_back() {
    let spec = one(
        160,
        Traffic::Ping {
            interval: always(0.05),
            packet: Bytes(84),
        },
    );
    let output = outcome(&spec);
    // 84 bytes there and 84 back.
    let rtt = 2 * 10_084;
    assert_eq!(
        times(&output, 0),
        [0, 50_000, 100_000, 150_000].map(|start| (start, Some(start + rtt), Some(start + rtt)))
    );
    assert_eq!(
        output.ended,
        us(150_000 + rtt),
        "the last answer came in the drain"
    );

    // A lost request has no completion, and nobody waits for it.
    let mut lossy = spec.clone();
    lossy.links[0].impairments.loss = Loss::Script(Arc::new([1]));
    let completed: Vec<bool> = times(&outcome(&lossy), 0)
        .iter()
        .map(|ping| ping.1.is_some())
        .collect();
    assert_eq!(completed, [true, false, true, true]);
    let mut lossy = spec;
    lossy.links[1].impairments.loss = Loss::Script(Arc::new([3]));
    let output = outcome(&lossy);
    assert_eq!(times(&output, 0)[3], (150_000, None, None));
    assert_eq!(
        output.ended,
        us(150_000 + 10_084),
        "over when the answer is lost, which the link knows when it begins to send it"
    );
}

#[test]
fn incast_rounds_begin_together_and_wait_for_the_last() {
    let mut spec = network(3, 1_000);
    spec.groups.push(group(
        3,
        Traffic::Incast {
            size: always(1_000.0),
            count: 3,
            rounds: 2,
            pause: always(0.01),
        },
    ));
    let output = outcome(&spec);
    // The SYNs leave the bottleneck at 52, 104 and 156, so handshakes end 52 apart, at 20,104, 20,156 and 20,208. The
    // data of the first occupies the bottleneck until 21,144, the others queue behind: 22,184 and 23,224.
    let done = [31_144, 32_184, 33_224];
    // The next round 10,000 after the last. The last ACK of a FIN comes into it at 43,264, behind the three SYNs.
    let next = 43_224;
    let expected: Vec<_> = [0, next]
        .into_iter()
        .flat_map(|start| done.map(|at| (start, Some(start + at), Some(start + at + ACK))))
        .collect();
    assert_eq!(times(&output, 0), expected);
    let pairs: Vec<u32> = output.groups[0].flows.iter().map(|flow| flow.pair).collect();
    assert_eq!(pairs, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_host_that_opens_one_connection_of_a_round_after_the_other_has_no_syn_that_waits() {
    let mut spec = network(1, 1_000);
    let mut answers = group(
        1,
        Traffic::Incast {
            size: always(1_000.0),
            count: 3,
            rounds: 2,
            pause: always(0.01),
        },
    );
    answers.start_spacing = Duration::from_micros(200);
    spec.groups.push(answers);
    let output = outcome(&spec);
    // SYNs at 0, 200 and 400 take 52 each, so handshakes end at 20,104, 20,304 and 20,504. Data as when all begin together: the
    // first occupies the bottleneck until 21,144, the others queue behind.
    let done = [31_144, 32_184, 33_224];
    let next = 43_224; // 10,000 after the last
    let expected: Vec<_> = [0, next]
        .into_iter()
        .flat_map(|round| {
            let flow =
                move |(at, over): (u64, u64)| (round + at, Some(round + over), Some(round + over + ACK));
            [0, 200, 400].into_iter().zip(done).map(flow)
        })
        .collect();
    assert_eq!(times(&output, 0), expected);
    let smallest: Vec<_> = output.groups[0].flows.iter().map(|flow| flow.min_rtt).collect();
    assert!(smallest.windows(2).all(|pair| pair[0] == pair[1]), "{smallest:?}");
}

/// Transfers of 1,000 bytes 200 us apart on each host: which pair, and when.
#[test]
fn every_host_spaces_its_own_transfers_of_a_round() {
    let begun = |pairs: &[(u32, u32)], spread: PairPolicy, count: u32| {
        let mut spec = network(3, 1_000);
        let mut answers = group(
            3,
            Traffic::Incast {
                size: always(1_000.0),
                count,
                rounds: 2,
                pause: always(0.01),
            },
        );
        answers.pairs = pairs
            .iter()
            .map(|&(from, to)| (NodeId(from), NodeId(to)))
            .collect();
        answers.spread = spread;
        answers.start_spacing = Duration::from_micros(200);
        answers.spaced_by_host = true;
        spec.groups.push(answers);
        let flows = outcome(&spec).groups.swap_remove(0).flows;
        let half = flows.len() / 2;
        let of_round = |round: &[FlowRecord]| -> Vec<(u64, u32)> {
            let begun = round.iter().map(|flow| flow.start.since(round[0].start));
            let begun = begun.map(|at| at.as_nanos() / 1_000);
            begun.zip(round.iter().map(|flow| flow.pair)).collect()
        };
        [of_round(&flows[..half]), of_round(&flows[half..])]
    };
    // Three hosts, seven transfers: the first host has three of the first round, the second host of the next, which goes on with it.
    let own = [(0, 3), (1, 3), (2, 3)];
    assert_eq!(
        begun(&own, PairPolicy::RoundRobin, 7),
        [
            vec![(0, 0), (0, 1), (0, 2), (200, 0), (200, 1), (200, 2), (400, 0)],
            vec![(0, 0), (0, 1), (0, 2), (200, 0), (200, 1), (200, 2), (400, 1)],
        ]
    );
    // On every pair two: as by pair, since each has a host of its own.
    let two = vec![(0, 0), (0, 1), (0, 2), (200, 0), (200, 1), (200, 2)];
    assert_eq!(begun(&own, PairPolicy::Each, 2), [two.clone(), two]);
    // The first host sends on two pairs.
    let shared = [(0, 3), (0, 1), (2, 3)];
    let once = vec![(0, 0), (0, 2), (200, 1)];
    for (spread, count) in [(PairPolicy::RoundRobin, 3), (PairPolicy::Each, 1)] {
        assert_eq!(
            begun(&shared, spread, count),
            [once.clone(), once.clone()],
            "{spread:?}"
        );
    }
}

#[test]
fn nothing_of_a_round_begins_after_the_stop() {
    // One every 400,000: that of 400,000 begins before 500,000, that of 800,000 would begin after.
    for stop in [None, Some(Duration::from_millis(500))] {
        let duration_ms = if stop.is_some() { 3_000 } else { 500 };
        let mut spec = one(
            duration_ms,
            Traffic::Incast {
                size: always(1_000.0),
                count: 4,
                rounds: 2,
                pause: always(0.01),
            },
        );
        spec.groups[0].start_spacing = Duration::from_millis(400);
        spec.groups[0].stop = stop;
        let (slots, output) = slots(&spec);
        let starts: Vec<u64> = times(&output, 0).iter().map(|flow| flow.0).collect();
        assert_eq!(starts, [0, 400_000]);
        assert_eq!(slots.opened, 2);
    }
}

#[test]
fn listed_flows_start_when_and_where_the_list_says() {
    let line = |start_ms: u64, source: u32, bytes: u64| FlowLine {
        start: Duration::from_millis(start_ms),
        source: NodeId(source),
        destination: NodeId(2),
        bytes: Bytes(bytes),
    };
    let mut spec = network(2, 400);
    let list = Arc::new([
        line(0, 1, 1_000),
        line(100, 0, 2_000),
        line(100, 1, 1),
        line(390, 0, 1_000),
        line(391, 0, 9),
    ]);
    let mut listed = group(2, Traffic::Flows { list });
    listed.pairs.clear(); // the list names them
    listed.start = Duration::from_millis(9);
    spec.groups.push(listed);
    let output = outcome(&spec);
    // Two begin at 109,000: the SYN of the second waits 52 for that of the first, so its handshake ends 52 later; its
    // byte (41) then queues behind the data of the first (1500 + 580).
    let seen: Vec<_> = output.groups[0]
        .flows
        .iter()
        .zip(times(&output, 0))
        .map(|(flow, (start, completed, _))| {
            (flow.pair, flow.bytes.get(), start, completed.map(|at| at - start))
        })
        .collect();
    let (alone, first) = (BEFORE + 1_040, BEFORE + 2_080);
    assert_eq!(
        seen,
        [
            (0, 1_000, 9_000, Some(alone)),
            (0, 1, 109_000, Some(first + 41)),
            (1, 2_000, 109_000, Some(first)),
            (1, 1_000, 399_000, Some(alone)),
        ],
        "pairs are numbered as the list names them; 400,000 is the end"
    );
}

#[test]
fn flows_are_dealt_to_pairs() {
    let dealt = |spread, traffic: Traffic| {
        let mut spec = network(3, 1_000);
        spec.groups.push(group(3, traffic));
        spec.groups[0].spread = spread;
        spec.groups[0].start_spacing = Duration::from_millis(20);
        let output = outcome(&spec);
        let flows = output.groups[0].flows.iter();
        flows
            .map(|flow| (flow.start.as_nanos() / 1_000_000, flow.pair))
            .collect::<Vec<_>>()
    };
    let seven = || transfers(1_000.0, 0.1, Some(7));
    let starts = 1..8;
    assert_eq!(
        dealt(PairPolicy::RoundRobin, seven()),
        starts
            .clone()
            .map(|n| (100 * n, (n as u32 - 1) % 3))
            .collect::<Vec<_>>()
    );
    let mut stream = Rng::for_element(1, "group", "spread");
    let drawn: Vec<_> = starts.map(|n| (100 * n, stream.below(3) as u32)).collect();
    assert_eq!(dealt(PairPolicy::Random, seven()), drawn);
    let mut used: Vec<u32> = drawn.iter().map(|flow| flow.1).collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used, [0, 1, 2], "a sequence that shows something");
    // Each: every pair has its own two.
    assert_eq!(
        dealt(PairPolicy::Each, transfers(1_000.0, 0.1, Some(2))),
        [(100, 0), (100, 1), (100, 2), (200, 0), (200, 1), (200, 2)]
    );
    // Members of a group start one spacing apart, pair by pair; with each, all pairs at once.
    assert_eq!(
        dealt(PairPolicy::RoundRobin, Traffic::Bulk { count: 4 }),
        [(0, 0), (20, 1), (40, 2), (60, 0)]
    );
    assert_eq!(
        dealt(PairPolicy::Each, Traffic::Bulk { count: 2 }),
        [(0, 0), (0, 1), (0, 2), (20, 0), (20, 1), (20, 2)]
    );
}

/// Counts slots in use.
#[derive(Default)]
struct Slots {
    opened: usize,
    closed: usize,
    highest: u32,
}

impl Observer for Slots {
    fn on_app(&mut self, _now: fleetfoot_core::time::Instant, event: &AppEvent) {
        match event {
            AppEvent::Opened { data, .. } => {
                self.opened += 1;
                self.highest = self.highest.max(data.0 / 2);
            }
            AppEvent::Relayed { .. } => {}
            AppEvent::Closed { .. } => self.closed += 1,
        }
    }
}

fn slots(spec: &Spec) -> (Slots, fleetfoot_sim::output::RunOutput) {
    let mut slots = Slots::default();
    let output =
        run(spec, Mode::Fast, &mut slots, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    (slots, output)
}

#[test]
fn a_peer_that_is_left_alone_gives_its_slot_back() {
    // All data is lost: senders give up after their last retransmission, receivers stay established and hear nothing.
    let mut spec = one(60_000, transfers(1_000.0, 1.0, None));
    spec.links[0].impairments.loss = Loss::Random(Probability::ONE);
    spec.links[0].impairments.loss_data_only = true;
    spec.groups[0].sender = Arc::new(Config {
        retries: 1,
        ..config()
    });
    let (slots, output) = slots(&spec);
    assert_eq!(slots.opened, 59);
    assert!(
        output.groups[0]
            .flows
            .iter()
            .all(|flow| flow.completed.is_none() && flow.stats().timeouts > 0)
    );
    // The last retransmission fails 600 ms after the data. The receiver repeats its SYN-ACK after 3 s, is answered with a
    // reset, and the slot is free, 3.03 s after the SYN: four slots serve one transfer per second. The run ends with the
    // last sender, 0.62 s after 59 s: then those of 57, 58 and 59 s still wait for their reset.
    assert_eq!((slots.closed, slots.highest), (56, 3));
}

#[test]
fn exchanges_go_on_after_their_connection_died() {
    // All but the first data packet of each connection from the server are lost: its second exchange never completes.
    for server_time in [0.0, 0.05] {
        connections_die(server_time);
    }
}

fn connections_die(server_time: f64) {
    let mut spec = one(
        30_000,
        Traffic::RequestResponse {
            count: 1,
            request: always(100.0),
            response: always(100.0),
            think: always(0.1),
            server_time: always(server_time),
            exchanges: Some(5),
        },
    );
    spec.warmup = Duration::from_millis(500);
    spec.links[0].impairments.loss = Loss::Script((1..100).collect());
    spec.links[0].impairments.loss_data_only = true;
    spec.groups[0].sender = Arc::new(Config {
        retries: 1,
        ..config()
    });
    let (slots, output) = slots(&spec);
    // Exchanges 1, 3 and 5 are each the first of a connection, 2 and 4 the second and die with it. The first two began in
    // the warm-up (0 and 140 ms); that the second fails must not end the user.
    let done: Vec<bool> = output.groups[0]
        .flows
        .iter()
        .map(|flow| flow.completed.is_some())
        .collect();
    assert_eq!(done, [true, false, true]);
    assert!(
        output.groups[0].flows[1].stats().timeouts > 0,
        "the counters of a dead connection are kept"
    );
    assert_eq!((slots.opened, slots.closed), (3, 3));
}
