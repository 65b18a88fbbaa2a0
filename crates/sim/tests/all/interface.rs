//! Interfaces: super-packets as they leave a host, packets that are handed up together, raw packets.
//!
//! The line of 8 Mbit/s (1 us per byte) and 10 ms, one sender unless said.

use crate::line::{always, group, limit, network, one, outcome};
use fleetfoot_core::flow::{FlowId, FlowKey, HostId};
use fleetfoot_core::packet::{Kind, Packet, Segment};
use fleetfoot_core::queue::{Limit, QueueDiscipline};
use fleetfoot_core::rng::{Distribution, Rng};
use fleetfoot_core::superpacket::group::{Declare, Grouping, Mode};
use fleetfoot_core::superpacket::{Layout, Mark, Role};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::collision::queue_with_table;
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{
    Interface, LinkIndex, NodeId, PairPolicy, Raw, RawMark, RawPorts, RawSource, Spec, Traffic,
};
use fleetfoot_sim::world::{Mode as EngineMode, run};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

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

#[test]
fn packets_are_handed_up_together() {
    // Ten packets of 1500 us each: with 4 ms the interface hands up three at a time, so ACKs come in threes.
    let mut spec = one(1_000, transfer(10, 1, 0.001));
    let coalesce = Duration::from_millis(4);
    spec = with(
        spec,
        Interface {
            super_packets: None,
            coalesce,
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
                exchanges: None,
            },
            Traffic::Bulk { count: 2 },
        ];
        for (index, traffic) in traffic.into_iter().enumerate() {
            let mut group = group(3, traffic);
            group.name = format!("group-{index}");
            group.spread = PairPolicy::Each;
            let t_buffer = Duration::from_micros(rng.below(5_000));
            let mode = match rng.below(4) {
                0 => Mode::Burst,
                1 => Mode::Fixed,
                2 => Mode::Accumulate { t_buffer },
                _ => Mode::Timer { t_buffer },
            };
            group.interface = Interface {
                coalesce: Duration::from_micros(rng.below(3) * 700),
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
