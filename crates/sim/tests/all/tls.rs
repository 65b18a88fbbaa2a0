//! TLS before requests over TCP, and pages whose objects are streams of one connection: times by hand.

use crate::line::{always, config, one, outcome, times};
use crate::relay::two_lines;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::link::Loss;
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{LinkRate, Spec, Tls, TlsHandshake, Traffic, Web};
use fleetfoot_sim::world::{Mode, run};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

fn tls(handshake: TlsHandshake) -> Option<Tls> {
    Some(Tls {
        handshake,
        certificate_chain: Bytes(2_500),
    })
}

/// One page, over and over.
fn page(document: f64, objects: u32, object: f64) -> Web {
    Web {
        count: 1,
        document: always(document),
        objects,
        object: always(object),
        request: Bytes(300),
        connections: 6,
        multiplex: false,
        think: always(0.0),
        server_time: always(0.0),
    }
}

/// A page on a line of a byte per microsecond and 10 ms each way; the next one is not counted.
fn loads(web: Web, tls: Option<Tls>) -> Spec {
    let mut spec = one(1, Traffic::Web(Box::new(web)));
    spec.groups[0].tls = tls;
    spec
}

/// The completion time of the first page in round trips of 50 ms, on a line so fast that nothing else takes time.
fn round_trips(web: Web, tls: Option<Tls>) -> f64 {
    let mut spec = loads(web, tls);
    for link in &mut spec.links {
        link.rate = LinkRate::Constant(Rate::from_bps(100_000_000_000));
        link.delay = Duration::from_millis(25);
    }
    let output = outcome(&spec);
    times(&output, 0)[0].1.expect("complete") as f64 / 50_000.0
}

#[test]
fn tls_takes_a_round_trip_on_every_new_connection() {
    let whole = |trips: f64| {
        assert!(trips.fract() < 0.01, "{trips}");
        trips as u32
    };
    let page = || page(5_000.0, 12, 1_000.0);
    // The SYN, the document; the SYNs of five more connections, two objects on each of the six: RFC 8446 2 adds one to
    // either set of connections, certificates or none, and nothing with early data.
    for (tls, trips) in [
        (None, 5),
        (tls(TlsHandshake::Full), 7),
        (tls(TlsHandshake::Resumed), 7),
        (tls(TlsHandshake::ZeroRtt), 5),
    ] {
        assert_eq!(whole(round_trips(page(), tls)), trips, "{tls:?}");
    }
    // Certificates of more than ten packets do not fit into the first window.
    let long = Tls {
        handshake: TlsHandshake::Full,
        certificate_chain: Bytes(15_000),
    };
    assert_eq!(whole(round_trips(page(), Some(long))), 9);
    // All objects at once over the first connection: SYN, TLS, document, objects.
    let multiplexed = || Web {
        multiplex: true,
        ..page()
    };
    for (tls, trips) in [
        (None, 3),
        (tls(TlsHandshake::Full), 4),
        (tls(TlsHandshake::Resumed), 4),
        (tls(TlsHandshake::ZeroRtt), 3),
    ] {
        assert_eq!(whole(round_trips(multiplexed(), tls)), trips, "{tls:?}");
    }
}

/// A server that needs time keeps a page waiting for that of the document and once for that of all objects, which are asked for together.
#[test]
fn answers_of_streams_are_prepared_together() {
    let page = |server_time| {
        let web = Web {
            multiplex: true,
            server_time: always(server_time),
            ..page(5_000.0, 12, 1_000.0)
        };
        let output = outcome(&loads(web, tls(TlsHandshake::Resumed)));
        let (begun, done, _) = times(&output, 0)[0];
        done.expect("complete") - begun
    };
    assert_eq!(page(0.1), page(0.0) + 2 * 100_000);
}

fn exchanges(tls: Option<Tls>) -> Spec {
    let mut spec = one(
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
    spec.groups[0].tls = tls;
    spec
}

#[test]
fn a_handshake_and_its_records_by_hand() {
    // SYN and SYN-ACK: 20,104. Hello of 217: at the server at 30,361. Flight of 2796, in packets of 1500 and 1376: at 43,237.
    // Finished of 64 and a record of 522 for the request: at 53,863. A record of 3022 and two tickets of 87, in packets of 1500, 1500
    // and 316: 13,316 later.
    let (first, ack) = (67_179, 10_040);
    // 20,000 later the next request, a packet of 562; records of 3022 are packets of 1500, 1500 and 142.
    let (begun, second) = (first + 20_000, first + 20_000 + 10_562 + 13_142);
    let output = outcome(&exchanges(tls(TlsHandshake::Full)));
    let by_hand = |first, begun, second| {
        [
            (0, Some(first), Some(first + ack)),
            (begun, Some(second), Some(second + ack)),
        ]
    };
    assert_eq!(times(&output, 0), by_hand(first, begun, second));
    // A flow has the bytes of its answer; what TCP brought has the rest.
    let flows = &output.groups[0].flows;
    assert!(
        flows
            .iter()
            .all(|flow| flow.bytes == Bytes(3_000) && flow.received == flow.bytes)
    );
    let Bytes(brought) = output.groups[0].goodput_bytes;
    assert_eq!(brought, 2_796 + 2 * 3_022 + 174);

    // With early data: hello of 318 and the request in a packet of 880: at 30,984. Flight of 216, tickets and answer, 3412 in three
    // packets: 13,532 later. The second exchange is as before: EndOfEarlyData and Finished are there long ago.
    let first = 30_984 + 13_532;
    let (begun, second) = (first + 20_000, first + 20_000 + 10_562 + 13_142);
    let output = outcome(&exchanges(tls(TlsHandshake::ZeroRtt)));
    assert_eq!(times(&output, 0), by_hand(first, begun, second));
    let requests = output.links[1].data_packets;
    assert_eq!(
        requests, 3,
        "hello with request, the end of the handshake, a request"
    );
}

#[test]
fn a_multiplexed_page_by_hand() {
    let web = Web {
        multiplex: true,
        ..page(5_000.0, 12, 1_000.0)
    };
    // Hello of 312 at the server at 30,456, flight of 212 back at 40,708, Finished and the frame of the request, 64 + 331, there at
    // 51,143. Tickets and the document, 174 + 5031 in packets of 4500 and 865: at 66,508.
    // Twelve requests of 331 are packets of 1500, 1500 and 1092: four objects each, a third of 12,372 bytes in packets of 4244. The
    // first leave at 78,008 and there is no gap between them.
    let page_over = 78_008 + 3 * 4_244 + 10_000;
    let output = outcome(&loads(web, tls(TlsHandshake::Resumed)));
    assert_eq!(times(&output, 0), [(0, Some(page_over), None)]);
    // The document and then twelve objects from the request to the last byte, in the order of their requests.
    let latencies = &output.groups[0].delivery_latency;
    assert_eq!(latencies.len(), 13);
    assert!(latencies[1..].is_sorted(), "{latencies:?}");
    assert_eq!((latencies[12] * 1e6).round() as u64, page_over - 66_508);
}

/// When stream bytes arrived, by flow: the moment and what is there since.
#[derive(Default)]
struct Arrivals {
    by_flow: BTreeMap<u32, Vec<(u64, u64)>>,
    /// Connections.
    opened: u32,
}

impl Observer for Arrivals {
    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        self.opened += u32::from(matches!(event, AppEvent::Opened { .. }));
    }

    fn on_receive(&mut self, now: Instant, flow: FlowId, in_order: Range<u64>) {
        let list = self.by_flow.entry(flow.0).or_default();
        list.push((now.as_nanos() / 1_000, in_order.end));
    }
}

impl Arrivals {
    /// When the answers of a flow were there up to stream offset `end`.
    fn at(&self, flow: u32, end: u64) -> u64 {
        let list = &self.by_flow[&flow];
        list[list.partition_point(|(_, there)| *there < end)].0
    }
}

fn watched(spec: &Spec) -> (Arrivals, RunOutput) {
    let mut arrivals = Arrivals::default();
    let output =
        run(spec, Mode::Fast, &mut arrivals, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    outcome(spec); // the modes agree
    (arrivals, output)
}

/// When each object was there, in microseconds, of a page whose document was requested at `begun` and its objects at once after it.
fn objects_us(output: &RunOutput, begun: u64) -> Vec<u64> {
    let micros = |seconds: &f64| (seconds * 1e6).round() as u64;
    let latencies: Vec<u64> = output.groups[0].delivery_latency.iter().map(micros).collect();
    latencies[1..]
        .iter()
        .map(|latency| begun + latencies[0] + latency)
        .collect()
}

#[test]
fn streams_take_turns_of_a_frame() {
    // Three objects of four frames each, requests of a packet each: the server has one request, then two, then three.
    let web = Web {
        multiplex: true,
        request: Bytes(1_451),
        ..page(1_000.0, 3, 65_536.0)
    };
    let (arrivals, output) = watched(&loads(web, None));
    // Ten packets leave at once, less than the first frame of 16,393 bytes. Then A B C, A B C, A B C, and B C.
    let (document, frame) = (1_009, 16_393);
    let ends = [8, 11, 12].map(|frames| arrivals.at(0, document + frames * frame));
    assert_eq!(objects_us(&output, 0), ends);
    assert_eq!(times(&output, 0)[0].1, Some(ends[2]));
    assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
}

#[test]
fn a_lost_packet_keeps_streams_waiting_and_not_connections() {
    // The first packet of data is the document. The one after it, with the first object, is lost.
    let page = || page(1_000.0, 6, 1_000.0);
    let with = |web: Web, lost: &[u32]| {
        let mut spec = loads(web, None);
        spec.links[0].impairments.loss = Loss::Script(lost.into());
        spec.links[0].impairments.loss_data_only = true;
        spec
    };
    let multiplexed = |lost: &[u32]| {
        let web = Web {
            multiplex: true,
            ..page()
        };
        objects_us(&watched(&with(web, lost)).1, 0)
    };
    let (whole, lossy) = (multiplexed(&[]), multiplexed(&[1]));
    assert_eq!((whole.len(), lossy.len()), (6, 6));
    // Repaired at the third duplicate acknowledgment: a round trip of 20 ms later at least, and nothing is read before.
    let waits: Vec<u64> = lossy
        .iter()
        .zip(&whole)
        .map(|(lossy, whole)| lossy - whole)
        .collect();
    assert!(waits.iter().all(|wait| *wait > 15_000), "{waits:?}");
    assert!(lossy[5] - lossy[0] < 1_500, "all at once: {lossy:?}");

    // Six connections: one object waits for its own packet, five do not.
    let connections = |lost: &[u32]| {
        let (arrivals, _) = watched(&with(page(), lost));
        // The first carries the document before.
        let end = |flow: u32| if flow == 0 { 2_000 } else { 1_000 };
        (0..6)
            .map(|line| arrivals.at(2 * line, end(2 * line)))
            .collect::<Vec<u64>>()
    };
    let (whole, lossy) = (connections(&[]), connections(&[1]));
    let late: Vec<bool> = lossy
        .iter()
        .zip(&whole)
        .map(|(lossy, whole)| lossy > whole)
        .collect();
    assert_eq!(
        late,
        [true, false, false, false, false, false],
        "{lossy:?} {whole:?}"
    );
}

/// Pages of every kind and handshake, and exchanges, on a line that loses packets.
fn lossy(profile: Profile, seed: u64, relayed: bool) -> Spec {
    let web = |multiplex| {
        Traffic::Web(Box::new(Web {
            count: 2,
            objects: 25,
            object: Distribution::LogNormal { mu: 8.5, sigma: 1.5 },
            multiplex,
            think: always(0.3),
            ..page(20_000.0, 0, 0.0)
        }))
    };
    let mut spec = two_lines(6_000, web(false), Config::profile(profile), 60_000);
    let first = spec.groups.remove(0);
    for handshake in TlsHandshake::ALL {
        for traffic in [web(false), web(true), exchanges(None).groups.remove(0).traffic] {
            let mut group = first.clone();
            group.name = format!("group-{}", spec.groups.len());
            group.traffic = traffic;
            group.tls = tls(*handshake);
            if !relayed {
                group.relay = None;
            }
            spec.groups.push(group);
        }
    }
    for link in &mut spec.links {
        link.rate = LinkRate::Constant(Rate::from_bps(40_000_000));
        link.impairments.loss = Loss::Random(Probability::from_f64(0.02));
    }
    spec.seed = seed;
    spec.drain = Duration::from_secs(200);
    spec
}

#[test]
fn losses_and_relays_keep_nothing_from_arriving() {
    for (seed, profile) in Profile::ALL.into_iter().enumerate() {
        for relayed in [false, true] {
            let output = outcome(&lossy(profile, seed as u64, relayed));
            for group in &output.groups {
                assert!(group.flows.len() >= 2, "{profile:?}");
                for flow in &group.flows {
                    assert!(
                        flow.completed.is_some(),
                        "{profile:?}, relayed {relayed}: {flow:?}"
                    );
                    assert_eq!(flow.received, flow.bytes);
                }
            }
        }
    }
}

#[test]
fn what_a_broken_connection_owes_is_asked_for_again() {
    // Six packets of data of each connection arrive; then the server gives up. The first: flight, tickets with the document, 5840 bytes
    // of objects of 1031, five of them. The second: flight, 7300 bytes, of them 174 of tickets: six. The third has one left.
    let web = Web {
        multiplex: true,
        ..page(1_000.0, 12, 1_000.0)
    };
    let mut spec = loads(web, tls(TlsHandshake::Resumed));
    spec.links[0].impairments.loss = Loss::Script((6..100).collect());
    spec.links[0].impairments.loss_data_only = true;
    spec.groups[0].sender = Arc::new(Config {
        retries: 1,
        ..config()
    });
    spec.groups[0].stop = Some(Duration::from_millis(1));
    spec.drain = Duration::from_secs(60);
    let (arrivals, output) = watched(&spec);
    assert_eq!((output.groups[0].flows.len(), arrivals.opened), (1, 3));
    let flow = &output.groups[0].flows[0];
    assert!(flow.completed.is_some(), "{flow:?}");
    assert_eq!((flow.bytes, flow.received), (Bytes(13_000), Bytes(13_000)));
    assert_eq!(flow.stats().timeouts, 2);
    let latencies = &output.groups[0].delivery_latency;
    assert_eq!(latencies.len(), 13, "each arrives once");
}
