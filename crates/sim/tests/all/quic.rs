//! QUIC: the time of transfers and pages by hand, repaired losses, every queue, and the same bytes from the same seed.

use crate::line::{always, in_turn, limit, network, one, outcome};
use fleetfoot_core::link::Loss;
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{
    LinkRate, Quic, QuicController, QuicTransport, QuicWeb, Spec, TlsHandshake, Traffic, Web,
};

fn transfers(sizes: &[f64], transport: QuicTransport) -> Traffic {
    Traffic::Quic(Box::new(Quic {
        size: in_turn(sizes),
        interarrival: always(2.0),
        count: Some(sizes.len() as u64),
        transport,
    }))
}

fn pages(transport: QuicTransport) -> QuicWeb {
    QuicWeb {
        count: 1,
        document: always(20_000.0),
        objects: 40,
        object: Distribution::LogNormal { mu: 9.0, sigma: 1.5 },
        request: Bytes(300),
        think: always(1.0),
        server_time: always(0.0),
        transport,
    }
}

/// One sender on a line of 1 Gbit/s and 50 ms each way: packets take no time worth mentioning, round trips 100 ms.
fn long(traffic: Traffic) -> Spec {
    let mut spec = one(20_000, traffic);
    for link in &mut spec.links {
        link.rate = LinkRate::Constant(Rate::from_bps(1_000_000_000));
        link.delay = Duration::from_millis(50);
    }
    spec
}

/// Completion times in milliseconds.
fn times_ms(output: &RunOutput) -> Vec<f64> {
    let time = |flow: &fleetfoot_sim::output::FlowRecord| {
        flow.completed.map(|at| at.since(flow.start).as_secs_f64() * 1e3)
    };
    let times: Option<Vec<f64>> = output.groups[0].flows.iter().map(time).collect();
    times.expect("every flow is complete")
}

#[test]
fn a_transfer_takes_the_round_trips_of_its_handshake_and_its_window() {
    let usual = QuicTransport {
        largest_datagram: 1_200,
        ..QuicTransport::default()
    };
    let with = |handshake, chain| QuicTransport {
        handshake,
        certificate_chain: Bytes(chain),
        ..usual.clone()
    };
    // 100 ms of handshake, 50 ms for the data to arrive. A window of 12000 bytes lets nine datagrams go, each with more
    // than 1100 bytes of data; what is more waits for the first acknowledgments, another 100 ms.
    for (size, transport, expected) in [
        (9_000.0, usual.clone(), 150.0),
        (19_000.0, usual.clone(), 250.0),
        // Data goes with the first packet; what exceeds the window follows with the first acknowledgments.
        (5_000.0, with(TlsHandshake::ZeroRtt, 2_500), 50.0),
        (5_000.0, with(TlsHandshake::Resumed, 2_500), 150.0),
        // The server may send 3600 bytes to 1200 of the client: 5000 bytes of certificates take two round trips.
        (9_000.0, with(TlsHandshake::Full, 5_000), 250.0),
        (9_000.0, with(TlsHandshake::Resumed, 5_000), 150.0),
    ] {
        let output = outcome(&long(transfers(&[size], transport.clone())));
        let took = times_ms(&output)[0];
        assert!(
            (expected..expected + 1.0).contains(&took),
            "{size} bytes, {:?}: {took} ms",
            transport.handshake
        );
        let flow = &output.groups[0].flows[0];
        assert_eq!((flow.received, flow.stats().retransmits), (Bytes(size as u64), 0));
        // The acknowledgment needs half a round trip, and waits 25 ms at most.
        let acked = flow.acked.expect("acknowledged").since(flow.start).as_secs_f64() * 1e3;
        assert!((took + 49.0..took + 77.0).contains(&acked), "{acked}");
    }
}

#[test]
fn a_long_transfer_takes_the_serialisation_of_its_packets() {
    // At a byte per microsecond, 10 ms each way. Client's first packet 1228 us and 10 ms; the server's three datagrams, 3 kB
    // of certificates and headers, and 10 ms: 24 ms. Then 2 MB in packets of at most 1480 bytes that carry at least
    // 1400, without a gap once the window is above 20 kB, and the 10 ms of the last one.
    let output = outcome(&one(20_000, transfers(&[2e6], QuicTransport::default())));
    let took = times_ms(&output)[0];
    let serialised = 2e6 / 1_452.0 * 1_480.0 / 1e3;
    let least = 24.0 + serialised + 10.0;
    assert!(
        (least..1.04 * least).contains(&took),
        "{took} ms, at least {least}"
    );
    assert_eq!(output.groups[0].goodput_bytes, Bytes(2_000_000));
}

#[test]
fn a_client_that_comes_back_with_a_token_gets_whole_answers_at_once() {
    // RFC 9000 8.1.3: who brings a token of an earlier connection has a validated address, and the limit of three times
    // what it sent (8.1) does not hold the answer back. The document arrives with the first flight of the server if it
    // fits the window of 12000 bytes; a round trip is 100 ms.
    let with = |handshake, token| QuicTransport {
        handshake,
        token,
        largest_datagram: 1_200,
        ..QuicTransport::default()
    };
    let page = |bytes, transport| {
        Traffic::QuicWeb(Box::new(QuicWeb {
            document: always(bytes),
            objects: 0,
            ..pages(transport)
        }))
    };

    for (handshake, token, expected) in [
        (TlsHandshake::Resumed, true, [200.0, 200.0, 200.0, 300.0]),
        (TlsHandshake::ZeroRtt, true, [100.0, 100.0, 100.0, 200.0]),
        // At a new address, three times the first datagram come in the first flight: 3600 bytes.
        (TlsHandshake::ZeroRtt, false, [100.0, 200.0, 200.0, 300.0]),
        (TlsHandshake::Full, false, [200.0, 200.0, 200.0, 300.0]),
    ] {
        for (bytes, expected) in [2e3, 5e3, 9e3, 19e3].into_iter().zip(expected) {
            let mut spec = long(page(bytes, with(handshake, token)));
            spec.duration = Duration::from_millis(1_900);
            let took = times_ms(&outcome(&spec))[0];
            assert!(
                (expected..expected + 1.0).contains(&took),
                "{bytes} bytes, {handshake:?}, token {token}: {took} ms"
            );
        }
    }
    // Certificates that exceed the limit are held back from an unknown address only.
    for (token, expected) in [(false, 250.0), (true, 150.0)] {
        let transport = QuicTransport {
            certificate_chain: Bytes(5_000),
            ..with(TlsHandshake::Full, token)
        };
        let took = times_ms(&outcome(&long(transfers(&[9_000.0], transport))))[0];
        assert!(
            (expected..expected + 1.0).contains(&took),
            "token {token}: {took} ms"
        );
    }
}

#[test]
fn a_server_may_need_time_for_the_parts_of_a_page() {
    // The document, then all objects at once: twice 100 ms. An answer that comes at once carries an acknowledgment, some bytes
    // of a microsecond for 125.
    let page = |objects, server_time| {
        let traffic = QuicWeb {
            document: always(2_000.0),
            objects,
            object: always(500.0),
            server_time: always(server_time),
            ..pages(QuicTransport::default())
        };
        times_ms(&outcome(&long(Traffic::QuicWeb(Box::new(traffic)))))[0]
    };
    for (objects, waits) in [(0, 1.0), (10, 2.0)] {
        let more = page(objects, 0.1) - page(objects, 0.0);
        assert!((more - waits * 100.0).abs() < 0.01, "{objects}: {more}");
    }
}

#[test]
fn a_large_stream_window_is_not_held_back_by_the_sender() {
    // 1 Gbit/s and 200 ms: 25 MB are a round trip's. With 16 MB on the way at most a transfer of 100 MB takes longer than
    // with 128 MB, which exceed it.
    let time = |megabytes: u64| {
        let transport = QuicTransport {
            stream_window: Bytes(megabytes * 1_000_000),
            initial_window: Bytes(30_000_000),
            ..QuicTransport::default()
        };
        let mut spec = long(transfers(&[100e6], transport));
        for link in &mut spec.links {
            link.delay = Duration::from_millis(100);
        }
        times_ms(&outcome(&spec))[0]
    };
    let times = [16, 128].map(time);
    assert!(times[1] < 0.8 * times[0], "{times:?}");
}

#[test]
fn losses_are_repaired() {
    for controller in QuicController::ALL {
        let mut spec = one(
            60_000,
            transfers(
                &[300_000.0, 3_000.0, 500_000.0, 1.0],
                QuicTransport {
                    controller: *controller,
                    ..QuicTransport::default()
                },
            ),
        );
        for link in &mut spec.links {
            link.impairments.loss = Loss::Random(Probability::from_f64(0.02));
            link.impairments.duplicate = Probability::from_f64(0.01);
        }
        let output = outcome(&spec);
        let flows = &output.groups[0].flows;
        assert_eq!(times_ms(&output).len(), 4, "{controller:?}");
        assert!(
            flows.iter().all(|flow| flow.received == flow.bytes),
            "{controller:?}"
        );
        assert!(flows[2].stats().retransmits > 0, "{controller:?}");
    }
}

#[test]
fn every_queue_carries_pages_over_tcp_and_over_quic() {
    for entry in AnyQueue::ENTRIES {
        let QuicWeb {
            count,
            document,
            objects,
            object,
            request,
            think,
            ..
        } = pages(QuicTransport::default());
        let over_tcp = Traffic::Web(Box::new(Web {
            count,
            document,
            objects,
            object,
            request,
            connections: 6,
            multiplex: false,
            think,
            server_time: always(0.0),
        }));
        let over_quic = Traffic::QuicWeb(Box::new(pages(QuicTransport::default())));
        let mut bytes = [over_tcp, over_quic].map(|traffic| {
            let mut spec = one(20_000, traffic);
            for link in &mut spec.links {
                let mut values = Values::defaults(entry.parameters);
                // Disciplines without a limit keep their defaults.
                let _ = values.set("limit", Value::Limit(Limit::Packets(30)));
                (link.queue, link.queue_values) = (entry.name, values);
            }
            let output = outcome(&spec);
            let times = times_ms(&output);
            assert!(
                times.len() >= 5 && times.iter().all(|took| *took < 10_000.0),
                "{}: {times:?}",
                entry.name
            );
            let flows = &output.groups[0].flows;
            flows.iter().map(|flow| flow.bytes.get()).collect::<Vec<u64>>()
        });
        // The same pages in the same order, as many as there was time for.
        let pages = bytes[0].len().min(bytes[1].len());
        bytes.iter_mut().for_each(|bytes| bytes.truncate(pages));
        assert_eq!(bytes[0], bytes[1], "{}", entry.name);
    }
}

#[test]
fn a_group_that_draws_as_another_has_its_sizes() {
    let QuicWeb {
        document,
        object,
        think,
        ..
    } = pages(QuicTransport::default());
    let over_tcp = Traffic::Web(Box::new(Web {
        count: 1,
        document,
        objects: 3,
        object,
        request: Bytes(300),
        connections: 6,
        multiplex: false,
        think,
        server_time: always(0.0),
    }));
    let over_quic = Traffic::QuicWeb(Box::new(QuicWeb {
        objects: 3,
        ..pages(QuicTransport::default())
    }));
    // Bytes of the pages, in their order.
    let bytes = |draws: Option<&str>| {
        let mut spec = one(20_000, over_tcp.clone());
        let mut second = one(20_000, over_quic.clone()).groups.remove(0);
        second.name = String::from("second");
        second.draws = draws.map(Into::into);
        spec.groups.push(second);
        let output = outcome(&spec);
        let bytes = [0, 1].map(|group: usize| {
            let flows = &output.groups[group].flows;
            flows
                .iter()
                .map(|flow| flow.bytes.get())
                .take(10)
                .collect::<Vec<u64>>()
        });
        assert!(bytes.iter().all(|bytes| bytes.len() == 10));
        bytes
    };
    let [tcp, quic] = bytes(Some("group"));
    assert_eq!(tcp, quic);
    let [tcp, quic] = bytes(None);
    assert_ne!(tcp, quic);
}

#[test]
fn a_page_that_is_not_over_counts_what_its_connection_did() {
    // A document of 10 MB takes 10 s at 8 Mbit/s. The handshake and the request take 41 to 45 ms, a tenth of a second of slow start, and then
    // the line is full: of 2 s at least 1.5 bring payload, 0.95 of what is carried. What has begun to arrive twice is not read twice.
    let mut web = pages(QuicTransport::default());
    web.document = always(10e6);
    web.think = always(0.0);
    let mut spec = one(2_000, Traffic::QuicWeb(Box::new(web)));
    spec.drain = Duration::ZERO;
    spec.links[0].impairments.loss = Loss::Script(std::sync::Arc::new([500]));
    let output = outcome(&spec);
    let flow = &output.groups[0].flows[0];
    let Bytes(received) = flow.received;
    assert!(flow.completed.is_none() && output.groups[0].flows.len() == 1);
    assert_eq!(flow.received, output.groups[0].goodput_bytes);
    assert!((1_425_000..2_000_000).contains(&received), "{received}");
    let stats = flow.stats();
    assert!(
        stats.bytes_sent > received && stats.segments_sent > 900,
        "{stats:?}"
    );
    assert_eq!(stats.retransmits, 1);
    assert!(flow.min_rtt >= Some(Duration::from_millis(20)));
}

#[test]
fn marks_reduce_the_window_unless_ecn_is_off() {
    let lost = [true, false].map(|ecn| {
        let mut spec = one(
            20_000,
            transfers(
                &[1e6],
                QuicTransport {
                    ecn,
                    ..QuicTransport::default()
                },
            ),
        );
        spec.links[0].queue = "codel";
        spec.links[0].queue_values = limit("codel", Limit::Packets(1_000));
        spec.links[0]
            .queue_values
            .set("ecn", Value::Flag(true))
            .expect("codel can mark");
        let output = outcome(&spec);
        times_ms(&output);
        output.groups[0].dropped
    });
    assert!(lost[0] == 0 && lost[1] > 0, "{lost:?}");
}

#[test]
fn fewer_acknowledgments_can_be_asked_for() {
    let packets = [None, Some(10)].map(|ack_every| {
        let transport = QuicTransport {
            ack_every,
            ..QuicTransport::default()
        };
        let output = outcome(&one(20_000, transfers(&[1e6], transport)));
        times_ms(&output);
        output.links[1].packets
    });
    assert!(packets[1] * 3 < packets[0], "{packets:?}");
}

#[test]
fn datagrams_grow_to_what_they_may_and_the_path_takes() {
    let packets = [1_200, 1_452, 8_900].map(|largest_datagram| {
        let transport = QuicTransport {
            largest_datagram,
            ..QuicTransport::default()
        };
        let mut spec = one(20_000, transfers(&[4e6], transport));
        for link in &mut spec.links {
            link.mtu = 9_000;
        }
        let output = outcome(&spec);
        times_ms(&output);
        let Bytes(bytes) = output.links[0].bytes;
        bytes / output.links[0].packets
    });
    // Mean size of what the sender sends, acknowledgments and the first round trips among it.
    assert!((1_200..=1_228).contains(&packets[0]), "{packets:?}");
    assert!((1_440..=1_480).contains(&packets[1]), "{packets:?}");
    assert!((7_000..=8_928).contains(&packets[2]), "{packets:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for controller in QuicController::ALL {
        let transport = QuicTransport {
            controller: *controller,
            handshake: TlsHandshake::ALL[*controller as usize % 3],
            ..QuicTransport::default()
        };
        let mut spec = network(1, 10_000);
        // Long enough for BBR to have probed for the round-trip time and begun another gain cycle.
        let bytes = if *controller == QuicController::QuinnBbr {
            1.6e7
        } else {
            1e6
        };
        for traffic in [
            transfers(&[bytes], transport.clone()),
            Traffic::QuicWeb(Box::new(pages(transport))),
        ] {
            let mut group = crate::line::group(1, traffic);
            group.name = format!("group-{}", spec.groups.len());
            spec.groups.push(group);
        }
        for link in &mut spec.links {
            link.queue_values = limit("drop-tail", Limit::Packets(20));
            link.impairments.loss = Loss::Random(Probability::from_f64(0.002));
        }
        let text = |spec: &Spec| format!("{:?}", outcome(spec));
        let one = text(&spec);
        assert!(one == text(&spec), "{controller:?}");
        spec.seed = 2;
        assert!(one != text(&spec), "{controller:?}");
    }
}
