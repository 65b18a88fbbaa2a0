//! Interfaces: super-packets as they leave a host, packets that are handed up together, raw packets.
//!
//! The line of 8 Mbit/s (1 us per byte) and 10 ms, one sender unless said.

use crate::line::{always, config, group, limit, network, one, outcome, times};
use fleetfoot_core::flow::{FlowId, FlowKey, HostId};
use fleetfoot_core::packet::{Flags, Kind, Packet, Segment};
use fleetfoot_core::queue::{DropReason, Limit, QueueDiscipline};
use fleetfoot_core::rng::{Distribution, Rng};
use fleetfoot_core::superpacket::group::{Declare, Grouping, Mode};
use fleetfoot_core::superpacket::{Layout, Mark, Role};
use fleetfoot_core::tcp::Config;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::collision::queue_with_table;
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{
    Interface, LinkIndex, NodeId, PairPolicy, Raw, RawMark, RawPorts, RawSource, Spec, Traffic,
};
use fleetfoot_sim::world::{Mode as EngineMode, run};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

const MSS: u64 = 1460;

fn transfer(packets: u64, count: u64, every: f64) -> Traffic {
    Traffic::Transfer {
        size: Distribution::Constant((packets * MSS) as f64),
        interarrival: always(every),
        count: Some(count),
    }
}

fn grouped(mode: Mode, max: u8) -> Interface {
    Interface {
        super_packets: Some(Grouping {
            mode,
            layout: Layout::LOCAL,
            max,
            declare: Declare::Truth,
        }),
        coalesce: Duration::ZERO,
        fast_open: false,
    }
}

fn with(mut spec: Spec, interface: Interface) -> Spec {
    for group in &mut spec.groups {
        group.interface = interface;
    }
    spec
}

/// Lengths of the groups that left, with how often.
fn lengths(output: &RunOutput) -> Vec<(u64, u64)> {
    output.groups[0].super_packet_length.counts()
}

/// Everything that was sent, with time and flow.
#[derive(Default)]
struct Sent(Vec<(Instant, FlowId, Segment)>);

impl Observer for Sent {
    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment) {
        self.0.push((now, flow, *segment));
    }
}

fn sent(spec: &Spec) -> Vec<(Instant, FlowId, Segment)> {
    let mut sent = Sent::default();
    run(spec, EngineMode::Fast, &mut sent, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    sent.0
}

fn marks(spec: &Spec) -> Vec<Mark> {
    let data = |(_, _, segment): &(Instant, FlowId, Segment)| (segment.payload > 0).then_some(*segment);
    sent(spec)
        .iter()
        .filter_map(data)
        .map(|segment| Layout::LOCAL.decode(&segment))
        .collect()
}

#[test]
fn the_initial_window_is_one_super_packet() {
    let spec = with(one(1_000, transfer(10, 1, 0.001)), grouped(Mode::Burst, 63));
    assert_eq!(lengths(&outcome(&spec)), [(10, 1)]);
    let marks = marks(&spec);
    assert_eq!(marks[0], Mark::first(10, marks[0].id));
    assert_eq!(marks[1..], [Mark::follower(10, marks[0].id); 9]);
}

#[test]
fn exact_bursts_cost_no_time() {
    let spec = one(2_000, transfer(120, 8, 0.1));
    let (plain, grouped) = (outcome(&spec), outcome(&with(spec, grouped(Mode::Burst, 63))));
    assert_eq!(plain.groups[0].flows, grouped.groups[0].flows);
    assert_eq!(
        grouped.groups[0].super_packet_length.sum(),
        8 * 120,
        "no retransmission"
    );
}

#[test]
fn a_burst_longer_than_the_cap_is_cut() {
    let spec = with(one(1_000, transfer(10, 1, 0.001)), grouped(Mode::Burst, 4));
    assert_eq!(lengths(&outcome(&spec)), [(2, 1), (4, 2)]);
}

#[test]
fn acks_at_the_pace_of_the_line_form_no_super_packets_under_a_short_t_buffer() {
    // docs/design/super-packets.md#lengths: a packet takes 1.5 ms, each ACK lets two packets go in slow start.
    let t_buffer = Duration::from_micros(60);
    let spec = with(
        one(2_000, transfer(60, 1, 0.001)),
        grouped(Mode::Timer { t_buffer }, 63),
    );
    let output = outcome(&spec);
    let formed = &output.groups[0].super_packet_length;
    assert_eq!(formed.max(), 10, "the initial window");
    let counts = lengths(&output);
    assert!(
        counts.iter().all(|&(length, _)| matches!(length, 1 | 2 | 10)),
        "{counts:?}"
    );
    // Five packet times of the line: what the ACKs let go stays together.
    let t_buffer = Duration::from_millis(8);
    let long = outcome(&with(spec, grouped(Mode::Timer { t_buffer }, 63)));
    let mean = |output: &RunOutput| output.groups[0].super_packet_length.mean().expect("some");
    assert!(
        mean(&long) > 2.0 * mean(&output),
        "{} {}",
        mean(&long),
        mean(&output)
    );
}

#[test]
fn t_buffer_delays_the_initial_window_by_itself() {
    let t_buffer = Duration::from_micros(600);
    let spec = one(1_000, transfer(5, 1, 0.001));
    let timed = with(spec.clone(), grouped(Mode::Timer { t_buffer }, 63));
    let time = |spec: &Spec| {
        let flow = outcome(spec).groups[0].flows[0].clone();
        flow.completed.expect("complete").since(flow.start)
    };
    // The connection closes: the last packet has FIN, and nothing waits for it.
    assert_eq!(time(&timed), time(&spec), "the FIN completes the group");
    let longer = with(
        one(1_000, transfer(20, 1, 0.001)),
        grouped(Mode::Timer { t_buffer }, 63),
    );
    let delays: BTreeSet<u64> = sent(&longer)
        .iter()
        .filter(|(_, _, segment)| segment.payload > 0)
        .map(|(at, _, _)| at.as_nanos() / 1000)
        .collect();
    // Start at 1 ms, handshake: 52 us and 10 ms each way; then T_buffer.
    assert_eq!(delays.first(), Some(&(1_000 + 2 * 10_052 + 600)));
}

/// Segments of six packets (docs/design/super-packets.md#segment).
const SEGMENT: u64 = 6 * MSS;

fn segments(mut spec: Spec) -> Spec {
    for group in &mut spec.groups {
        let config = Arc::new(Config {
            mtu: 40 + SEGMENT as u32,
            ..config()
        });
        group.sender = Arc::clone(&config);
        group.receiver = config;
    }
    spec
}

fn cut(spec: Spec) -> Spec {
    with(segments(spec), grouped(Mode::Segment { packet: 1500 }, 6))
}

#[test]
fn a_segment_of_tcp_is_one_super_packet() {
    // The initial window: ten segments.
    let spec = cut(one(2_000, transfer(60, 1, 0.001)));
    let output = outcome(&spec);
    assert_eq!(lengths(&output), [(6, 10)]);
    let sent = sent(&spec);
    let data = |of: &&(Instant, FlowId, Segment)| of.2.payload > 0;
    assert_eq!(sent.iter().filter(data).count(), 60);
    assert!(
        sent.iter()
            .filter(data)
            .all(|(_, _, segment)| segment.len() == 1500)
    );
    // The receiver acknowledges segments, not packets.
    let acks = sent
        .iter()
        .filter(|(_, flow, segment)| flow.0 == 1 && segment.len() == 40);
    let acks: BTreeSet<u32> = acks.map(|(_, _, segment)| segment.ack.0).collect();
    assert_eq!(acks.len(), 10, "{acks:?}");
    // As one packet of the same payload, but for five headers of 40 bytes more for each segment.
    let mut jumbo = segments(one(2_000, transfer(60, 1, 0.001)));
    jumbo.links.iter_mut().for_each(|link| link.mtu = 9000);
    let [cut, whole] = [&output, &outcome(&jumbo)].map(|output| times(output, 0)[0].1.expect("complete"));
    assert_eq!(cut - whole, 10 * 5 * 40);
}

#[test]
fn a_lost_packet_costs_its_segment() {
    /// How often each packet of data was sent, and how many were dropped.
    #[derive(Default)]
    struct Losses(BTreeMap<u32, u32>, u32);
    impl Observer for Losses {
        fn on_send(&mut self, _now: Instant, _flow: FlowId, segment: &Segment) {
            if segment.payload > 0 {
                *self.0.entry(segment.seq.0).or_default() += 1;
            }
        }
        fn on_drop(&mut self, _now: Instant, _at: LinkIndex, _packet: &Packet, _reason: DropReason) {
            self.1 += 1;
        }
    }
    // Of the first window 21 packets find room: three of the fourth segment.
    let mut spec = cut(one(20_000, transfer(60, 1, 0.001)));
    spec.links[0].queue_values = limit("drop-tail", Limit::Packets(20));
    let output = outcome(&spec);
    let mut losses = Losses::default();
    run(
        &spec,
        EngineMode::Fast,
        &mut losses,
        |_| ControlFlow::Continue(()),
    )
    .expect("a runnable scenario");
    let Losses(sent, dropped) = losses;
    assert_eq!(sent.len(), 60);
    assert!(dropped > 0 && dropped % 6 != 0, "{dropped}");
    let counts: Vec<u32> = sent.values().copied().collect();
    assert!(
        counts
            .chunks(6)
            .all(|segment| segment.iter().all(|&count| count == segment[0])),
        "whole segments are sent again: {counts:?}"
    );
    let again: u32 = counts.iter().map(|count| count - 1).sum();
    assert!(again > dropped, "{again}");
    let counted = output.groups[0].flows[0].stats().retransmits;
    assert_eq!(again, 6 * counted);
    assert!(output.groups[0].flows[0].completed.is_some());
}

#[test]
fn a_window_announces_the_length_of_the_one_before() {
    // Ten packets at first, as many as `max`; then, clocked by ACKs, one or two at a time.
    let t_buffer = Duration::from_micros(60);
    let spec = with(
        one(2_000, transfer(30, 1, 0.001)),
        grouped(Mode::Estimate { t_buffer }, 10),
    );
    let marks = marks(&spec);
    assert_eq!(marks[0], Mark::first(10, marks[0].id));
    assert_eq!(marks[1..10], [Mark::follower(10, marks[0].id); 9]);
    assert_eq!(marks[10], Mark::first(10, marks[10].id), "after ten came two");
    assert_eq!(marks[12], Mark::first(2, marks[12].id));
    assert_eq!(marks[13], Mark::follower(2, marks[12].id));
}

#[test]
fn fast_open_puts_the_first_data_on_the_syn() {
    // One packet of 1000 bytes: a SYN of 40 bytes, options of 12, a cookie of 12, and the data. It starts at 1 ms.
    let mut spec = one(1_000, transfer(1, 1, 0.001));
    spec.groups[0].traffic = Traffic::Transfer {
        size: always(1_000.0),
        interarrival: always(0.001),
        count: Some(1),
    };
    let ordinary = times(&outcome(&spec), 0)[0];
    assert_eq!(ordinary.1, Some(1_000 + 2 * 10_052 + 11_040));
    let early = Interface {
        fast_open: true,
        ..Interface::default()
    };
    spec = with(spec, early);
    let output = outcome(&spec);
    assert_eq!(times(&output, 0)[0].1, Some(1_000 + 10_000 + 1_064));
    assert_eq!(output.groups[0].goodput_bytes, Bytes(1_000));
    let carried =
        |sent: &[(Instant, FlowId, Segment)]| sent.iter().find(|one| one.2.payload > 0).map(|one| one.2);
    let syn = carried(&sent(&spec)).expect("data");
    assert!(syn.flags.contains(Flags::SYN.with(Flags::COOKIE)));
    // Longer ones leave the rest for the end of the handshake, here as one super-packet.
    let spec = with(
        one(1_000, transfer(11, 1, 0.001)),
        Interface {
            fast_open: true,
            ..grouped(Mode::Burst, 63)
        },
    );
    let output = outcome(&spec);
    assert!(output.groups[0].flows[0].completed.is_some());
    assert_eq!(output.groups[0].goodput_bytes, Bytes(11 * MSS));
    let marks = marks(&spec);
    assert!(marks[0].is_regular(), "the SYN");
    assert_eq!(marks[1], Mark::first(10, marks[1].id));
}

#[test]
fn a_request_on_the_syn_is_answered_before_the_handshake_is_over() {
    let exchange = Traffic::RequestResponse {
        count: 1,
        request: always(300.0),
        response: always(14_600.0),
        think: always(0.02),
        server_time: always(0.0),
        exchanges: Some(1),
    };
    let mut spec = one(1_000, exchange);
    let first = |spec: &Spec| {
        let sent = sent(spec);
        let answer = sent
            .iter()
            .find(|(_, flow, segment)| flow.0 == 0 && segment.payload > 1_000);
        answer.map(|one| one.0)
    };
    let ordinary = first(&spec).expect("an answer");
    spec = with(
        spec,
        Interface {
            fast_open: true,
            ..Interface::default()
        },
    );
    let early = first(&spec).expect("an answer");
    let gained = ordinary.since(early).as_nanos() / 1000;
    assert!((20_000..20_500).contains(&gained), "a round trip: {gained} us");
}

#[test]
fn packets_are_handed_up_together() {
    // Ten packets of 1500 us each: with 4 ms the interface hands up three at a time, so ACKs come in threes.
    let mut spec = one(1_000, transfer(10, 1, 0.001));
    let coalesce = Duration::from_millis(4);
    spec = with(
        spec,
        Interface {
            coalesce,
            ..Interface::default()
        },
    );
    outcome(&spec);
    let acks: Vec<u64> = sent(&spec)
        .iter()
        .filter(|(_, flow, segment)| flow.0 == 1 && segment.len() == 40)
        .map(|(at, _, _)| at.as_nanos() / 1000)
        .collect();
    let mut moments = acks.clone();
    moments.dedup();
    assert_eq!(acks.len(), 10, "one per packet; the last has the receiver's FIN");
    let of = |moment: &u64| acks.iter().filter(|at| *at == moment).count();
    assert_eq!(moments.iter().map(of).collect::<Vec<_>>(), [3, 3, 3, 1]);
}

#[test]
fn what_a_batch_of_acks_releases_is_one_burst() {
    let spec = one(3_000, transfer(100, 1, 0.001));
    let coalesce = Duration::from_millis(8);
    let alone = with(spec.clone(), grouped(Mode::Burst, 63));
    let both = with(
        spec,
        Interface {
            coalesce,
            ..grouped(Mode::Burst, 63)
        },
    );
    let mean = |spec: &Spec| outcome(spec).groups[0].super_packet_length.mean().expect("some");
    assert!(mean(&alone) < 3.0, "{}", mean(&alone));
    assert!(mean(&both) > 5.0, "{}", mean(&both));
}

#[test]
fn no_packet_is_lost_between_connection_and_line() {
    for seed in 0..12 {
        let mut rng = Rng::from_seed(seed);
        let mut spec = network(3, 1_500);
        let traffic = [
            transfer(30, 20, 0.05),
            Traffic::RequestResponse {
                count: 3,
                request: always(300.0),
                response: always(40_000.0),
                think: always(0.02),
                server_time: always(0.0),
                exchanges: None,
            },
            Traffic::Bulk { count: 2 },
        ];
        for (index, traffic) in traffic.into_iter().enumerate() {
            let mut group = group(3, traffic);
            group.name = format!("group-{index}");
            group.spread = PairPolicy::Each;
            let t_buffer = Duration::from_micros(rng.below(5_000));
            let mode = match rng.below(6) {
                0 => Mode::Burst,
                1 => Mode::Fixed,
                2 => Mode::Accumulate { t_buffer },
                3 => Mode::Estimate { t_buffer },
                4 => Mode::Segment { packet: 600 },
                _ => Mode::Timer { t_buffer },
            };
            group.interface = Interface {
                coalesce: Duration::from_micros(rng.below(3) * 700),
                fast_open: rng.below(2) == 1,
                ..grouped(mode, 2 + rng.below(20) as u8)
            };
            group.stop = Some(Duration::from_millis(900)); // aborts connections that hold packets back
            spec.groups.push(group);
        }
        spec.links[0].queue_values = limit("drop-tail", Limit::Packets(20));
        let output = outcome(&spec); // both modes of the engine agree
        let flows = output.groups.iter().take(2).flat_map(|group| &group.flows);
        let complete = flows.clone().filter(|flow| flow.completed.is_some()).count();
        assert!(complete * 10 >= flows.count() * 9, "seed {seed}: {complete}");
    }
}

fn raw(mark: RawMark) -> Raw {
    Raw {
        interarrival: always(0.01),
        count: None,
        members: 1,
        interval: Duration::ZERO,
        packet: Bytes(40),
        mark,
        layout: Layout::LOCAL,
        length: 10,
        id: None,
        last: false,
        source: RawSource::Own,
        ports: RawPorts::New,
    }
}

fn trains(raw: Raw) -> Spec {
    let mut spec = network(2, 1_000);
    let mut attack = group(2, Traffic::Raw(Box::new(raw)));
    attack.name = "attack".to_owned();
    spec.groups.push(attack);
    spec
}

#[test]
fn firsts_come_at_their_rate_and_are_never_followed() {
    let spec = trains(raw(RawMark::First));
    let output = outcome(&spec);
    let marks = marks(&spec);
    assert_eq!(marks.len(), 99, "from 10 ms on, before 1 s");
    assert!(
        marks
            .iter()
            .all(|mark| mark.role == Role::First && mark.length == 10)
    );
    let ids: BTreeSet<u16> = marks.iter().map(|mark| mark.id).collect();
    assert!(ids.len() > 60, "{}", ids.len());
    let flow = &output.groups[0].flows[0];
    assert_eq!(
        (flow.stats().segments_sent, Bytes(flow.stats().bytes_sent)),
        (99, Bytes(99 * 12))
    );
    assert_eq!(
        flow.received,
        Bytes(98 * 12),
        "the last one is on its way at the end"
    );
}

#[test]
fn a_slow_drip_keeps_its_interval_while_others_begin() {
    let mut drip = raw(RawMark::SuperPacket);
    drip.members = 4;
    drip.interval = Duration::from_millis(25);
    drip.count = Some(3);
    drip.last = true;
    let spec = trains(drip);
    outcome(&spec);
    let seen: Vec<(u64, Role, bool)> = sent(&spec)
        .iter()
        .map(|(at, _, segment)| {
            let mark = Layout::LOCAL.decode(segment);
            (at.as_nanos() / 1_000_000, mark.role, mark.last)
        })
        .collect();
    let mut expected = vec![];
    for begin in [10, 20, 30] {
        for member in 0..4 {
            let role = if member == 0 { Role::First } else { Role::Follower };
            expected.push((begin + 25 * member, role, member == 3));
        }
    }
    expected.sort_by_key(|&(at, ..)| at);
    assert_eq!(seen, expected);
}

/// Keys of what enters the bottleneck, by kind.
#[derive(Default)]
struct Entered(Vec<Packet>);

impl Observer for Entered {
    fn on_enter(&mut self, _: Instant, at: LinkIndex, packet: &Packet) {
        if at == LinkIndex(0) && packet.segment.kind() == Kind::Datagram {
            self.0.push(*packet);
        }
    }
}

/// Collects keys of all conversations.
#[derive(Default)]
struct Opened(Vec<(u32, FlowKey)>);

impl Observer for Opened {
    fn on_app(&mut self, _: Instant, event: &AppEvent) {
        if let AppEvent::Opened { group, key, .. } = *event {
            self.0.push((group, key));
        }
    }
}

#[test]
fn conversations_of_trains_are_used_again() {
    let mut flood = raw(RawMark::First);
    flood.interarrival = always(0.0005);
    flood.source = RawSource::Drawn(1000);
    let spec = trains(flood);
    let mut both = (Entered::default(), Opened::default());
    run(&spec, EngineMode::Fast, &mut both, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    let highest = both.0.0.iter().map(|packet| packet.flow.0).max().expect("some");
    assert!(both.0.0.len() > 1900, "{}", both.0.0.len());
    assert!(
        highest < 2 * 60,
        "flow {highest}: at most 30 are in the network at once"
    );
    assert_eq!(both.1.0.len(), both.0.0.len());
}

#[test]
fn followers_claim_the_key_of_their_victim() {
    let mut attack = raw(RawMark::Follower);
    attack.source = RawSource::Victim(1);
    attack.ports = RawPorts::Known;
    let mut spec = trains(attack);
    let mut victim = group(2, Traffic::Bulk { count: 2 });
    victim.name = "victim".to_owned();
    victim.pairs = vec![(NodeId(1), NodeId(2))];
    spec.groups.push(victim);
    spec.links[0].queue = "drr"; // looks at keys
    spec.links[0].queue_values = limit("drr", Limit::Packets(50));
    let output = outcome(&spec);
    assert!(output.groups[1].goodput_bytes > Bytes(800_000));
    let mut opened = Opened::default();
    run(
        &spec,
        EngineMode::Fast,
        &mut opened,
        |_| ControlFlow::Continue(()),
    )
    .expect("a runnable scenario");
    let keys = |group| {
        opened
            .0
            .iter()
            .filter(move |opened| opened.0 == group)
            .map(|opened| opened.1)
    };
    let victims: Vec<FlowKey> = keys(1).collect();
    assert_eq!((victims.len(), keys(0).count()), (2, 99));
    for victim in victims {
        assert!(keys(0).filter(|key| *key == victim).count() > 30, "{victim:?}");
    }
    // Nobody knows the ports: addresses are right, keys are not.
    let Traffic::Raw(attack) = &mut spec.groups[0].traffic else {
        unreachable!("made above")
    };
    attack.ports = RawPorts::Drawn;
    let mut blind = Opened::default();
    run(&spec, EngineMode::Fast, &mut blind, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    let claimed = blind
        .0
        .iter()
        .filter(|opened| opened.0 == 0)
        .map(|opened| opened.1);
    for key in claimed {
        assert_eq!(
            (key.source, key.destination, key.protocol),
            (HostId(1), HostId(2), 6)
        );
        assert!(!keys(1).any(|victim| victim == key));
    }
}

/// A8 with a known key: every train stands in the same two groups of places, and with an unknown one in any.
#[test]
fn trains_collide_in_the_table_whose_key_is_known() {
    let mut attack = raw(RawMark::First);
    attack.length = 2;
    for ports in [RawPorts::Colliding, RawPorts::New] {
        attack.ports = ports;
        let mut spec = trains(attack.clone());
        assert!(
            queue_with_table(&spec, &spec.groups[0]).is_none(),
            "drop-tail has none"
        );
        spec.links[0].queue = "sp-h";
        spec.links[0].queue_values = limit("sp-h", Limit::Packets(100));
        let queue = queue_with_table(&spec, &spec.groups[0]).expect("it has");
        let mut opened = Opened::default();
        run(
            &spec,
            EngineMode::Fast,
            &mut opened,
            |_| ControlFlow::Continue(()),
        )
        .expect("a runnable scenario");
        let keys: Vec<FlowKey> = opened.0.iter().map(|opened| opened.1).collect();
        let marks = marks(&spec);
        assert_eq!((keys.len(), marks.len()), (99, 99));
        let places = keys
            .iter()
            .zip(&marks)
            .map(|(&key, mark)| queue.places_of(key, mark.id));
        let places: Vec<[u32; 2]> = places.map(|places| places.expect("it has a table")).collect();
        let within = places
            .iter()
            .filter(|places| places.iter().all(|&place| place < 2));
        match ports {
            RawPorts::Colliding => assert_eq!(within.count(), 99, "{places:?}"),
            _ => assert!(within.count() < 5, "{places:?}"),
        }
    }
}
