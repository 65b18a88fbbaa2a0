//! Hand-worked units, and drop-tail where nothing merges.

use super::*;
use crate::flow::{FlowKey, FlowTable, HostId};
use crate::packet::BufId;
use crate::parameter::Value;
use crate::queue::{DropTail, QueueEvent};
use crate::rng::Rng;
use crate::seq::SeqNumber;
use crate::units::Rate;
use alloc::vec::Vec;

const LINK: LinkContext = LinkContext {
    mtu: 1500,
    rate: Rate(1_000_000_000),
    framing: 0,
    delay: Duration::ZERO,
    seed: 1,
};

/// Flows that the table of the tests knows.
const FLOWS: u32 = 400;

fn table() -> FlowTable {
    let mut flows = FlowTable::new();
    for port in 0..FLOWS {
        flows.push(FlowKey {
            source: HostId(1),
            destination: HostId(2),
            source_port: port as u16,
            destination_port: 80,
            protocol: 6,
        });
    }
    flows
}

struct Rig<Q> {
    queue: Q,
    flows: FlowTable,
    drops: Vec<(Packet, DropReason)>,
    events: Vec<QueueEvent>,
    now: Instant,
}

impl<Q: QueueDiscipline> Rig<Q> {
    fn new(queue: Q) -> Rig<Q> {
        Rig {
            queue,
            flows: table(),
            drops: Vec::new(),
            events: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// Numbers of the segments that this arrival dropped.
    fn offer(&mut self, packet: Packet) -> Vec<u32> {
        self.now += Duration::from_micros(1);
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: 0,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.enqueue(self.now, packet, &mut context);
        self.drops
            .drain(..)
            .map(|(packet, _)| packet.segment.seq.0 / 1460)
            .collect()
    }

    fn dequeue(&mut self) -> Option<Packet> {
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: 0,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.dequeue(self.now, &mut context)
    }

    /// Flow and number of everything that waits.
    fn drain(&mut self) -> Vec<(u32, u32)> {
        core::iter::from_fn(|| self.dequeue())
            .map(|packet| (packet.flow.0, packet.segment.seq.0 / 1460))
            .collect()
    }
}

fn rig(limit: u32, hold_us: u64) -> Rig<GroUnit> {
    let mut values = Values::defaults(GroUnit::PARAMETERS);
    let hold = Value::Duration(Duration::from_micros(hold_us));
    values
        .set("limit", Value::Limit(Limit::Packets(limit)))
        .expect("a limit");
    values.set("hold", hold).expect("a duration");
    Rig::new(GroUnit::new(&values, &LINK))
}

fn segment(flow: u32, number: u32) -> Packet {
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment: Segment {
            seq: SeqNumber(1460 * number),
            payload: 1460,
            overhead: 40,
            ip_id: number as u16,
            flags: Flags::ACK.with(Flags::DF),
            ..Segment::default()
        },
    }
}

#[test]
fn a_unit_that_does_not_fit_is_dropped_whole() {
    let mut rig = rig(10, 1000);
    // Flow 0 has six segments waiting; flow 1 sends six at once: the fifth finds no room.
    for number in 0..6 {
        assert!(rig.offer(segment(0, number)).is_empty());
    }
    for number in 0..4 {
        assert!(rig.offer(segment(1, number)).is_empty());
    }
    assert_eq!(rig.offer(segment(1, 4)), [0, 1, 2, 3, 4]);
    assert_eq!(rig.offer(segment(1, 5)), [5], "although there is room now");
    assert_eq!(rig.queue.backlog().packets, 6);
    // The next unit is another matter.
    rig.now += Duration::from_millis(2);
    assert!(rig.offer(segment(1, 6)).is_empty());
    let all: Vec<(u32, u32)> = (0..6).map(|number| (0, number)).chain([(1, 6)]).collect();
    assert_eq!(rig.drain(), all);
}

#[test]
fn interleaved_flows_leave_in_units() {
    let mut rig = rig(100, 1000);
    assert!(rig.offer(segment(9, 0)).is_empty());
    assert_eq!(rig.drain(), [(9, 0)], "an idle link takes what is there");
    for number in 0..3 {
        for flow in [0, 1] {
            assert!(rig.offer(segment(flow, number)).is_empty());
        }
    }
    assert_eq!(rig.drain(), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    // Without hold every segment is a unit.
    let mut rig = self::rig(100, 0);
    for number in 0..2 {
        for flow in [0, 1] {
            assert!(rig.offer(segment(flow, number)).is_empty());
        }
    }
    assert_eq!(rig.drain(), [(0, 0), (1, 0), (0, 1), (1, 1)]);
}

#[test]
fn what_does_not_merge_starts_a_unit() {
    let merges = |change: &dyn Fn(&mut Segment)| {
        // Two segments of flow 0 with one of flow 1 between them: merged, they leave together.
        let mut rig = rig(100, 1000);
        let mut second = segment(0, 1);
        change(&mut second.segment);
        assert!(rig.offer(segment(0, 0)).is_empty());
        assert!(rig.offer(segment(1, 0)).is_empty());
        assert!(rig.offer(second).is_empty());
        let flows: Vec<u32> = rig.drain().into_iter().map(|(flow, _)| flow).collect();
        flows == [0, 0, 1]
    };
    assert!(merges(&|_| ()));
    assert!(merges(&|segment| segment.ip_id = 0), "a fixed identification");
    assert!(merges(&|segment| segment.payload = 100), "a shorter last one");
    assert!(merges(&|segment| segment.flags = segment.flags.with(Flags::PSH)));
    for (what, change) in [
        (
            "a gap",
            &(|segment: &mut Segment| segment.seq += 1) as &dyn Fn(&mut Segment),
        ),
        ("a longer one", &|segment| segment.payload = 1461),
        ("another acknowledgment", &|segment| segment.ack += 1),
        ("another window", &|segment| segment.window += 1),
        ("another timestamp", &|segment| segment.tsval = 1),
        ("CE", &|segment| segment.tos = 3),
        ("another codepoint", &|segment| segment.tos = 12),
        ("another TTL", &|segment| segment.ttl = 9),
        ("a jump of the identification", &|segment| segment.ip_id = 0x8a00),
        ("no DF", &|segment| segment.flags = Flags::ACK),
    ] {
        assert!(!merges(change), "{what}");
    }
}

#[test]
fn a_unit_ends_at_64_kb_at_push_and_with_the_poll() {
    // 44 segments of 1460 B and 40 B of headers are 64,280 B; a 45th would exceed 65,535.
    let mut rig = rig(200, 10_000);
    for number in 0..45 {
        let _ = rig.offer(segment(0, number));
        if number == 0 {
            let _ = rig.offer(segment(1, 0));
        }
    }
    let places: Vec<usize> = rig
        .drain()
        .iter()
        .enumerate()
        .filter_map(|(place, (flow, _))| (*flow == 1).then_some(place))
        .collect();
    assert_eq!(places, [44]);
    // PSH completes a unit, so that room for the next one is judged anew.
    let mut rig = self::rig(2, 10_000);
    let mut pushed = segment(0, 1);
    pushed.segment.flags = pushed.segment.flags.with(Flags::PSH);
    let _ = rig.offer(segment(0, 0));
    assert!(rig.offer(pushed).is_empty());
    assert_eq!(rig.offer(segment(0, 2)), [2]);
    assert_eq!(rig.drain(), [(0, 0), (0, 1)]);
    // The poll ends 50 us after the first segment.
    let mut rig = self::rig(100, 50);
    let _ = rig.offer(segment(0, 0));
    let _ = rig.offer(segment(1, 0));
    rig.now += Duration::from_micros(48);
    let _ = rig.offer(segment(0, 1));
    assert_eq!(rig.drain(), [(0, 0), (1, 0), (0, 1)]);
}

/// Linux's dev_gro_receive keeps open units in eight lists by the flow's hash, each with up to eight.
#[test]
fn a_ninth_open_unit_of_a_list_completes_the_oldest_of_that_list() {
    let mut rig = rig(1000, 10_000);
    let list = |flow| HashKey::new(LINK.seed).flow_fingerprint(rig.flows.key(FlowId(flow))) % 8;
    let nine: Vec<u32> = (0..FLOWS).filter(|&flow| list(flow) == 3).take(9).collect();
    let other = (0..FLOWS)
        .find(|&flow| list(flow) == 5)
        .expect("hundreds of flows");
    let _ = rig.offer(segment(other, 0));
    for &flow in &nine {
        let _ = rig.offer(segment(flow, 0));
    }
    for flow in [other, nine[0], nine[1]] {
        let _ = rig.offer(segment(flow, 1));
    }
    // The unit of nine[0] was completed by nine[8], and its next segment is a new unit that completed nine[1]'s, and so on.
    let expected = [
        (nine[0], 0),
        (nine[1], 0),
        (nine[2], 0),
        (other, 0),
        (other, 1),
        (nine[3], 0),
    ];
    assert_eq!(rig.drain()[..6], expected);
}

/// 40 flows take turns with three segments each: all merge unless more than eight share a list, and nobody's order suffers.
#[test]
fn forty_interleaved_flows_merge_where_their_lists_have_room() {
    let mut rig = rig(1000, 10_000);
    let list = |flow| HashKey::new(LINK.seed).flow_fingerprint(rig.flows.key(FlowId(flow))) % 8;
    let mut of_list = [0; 8];
    let flows: Vec<u32> = (0..FLOWS)
        .filter(|&flow| {
            let count = &mut of_list[list(flow) as usize];
            *count += 1;
            *count <= 5
        })
        .collect();
    assert_eq!(flows.len(), 40);
    for number in 0..3 {
        for &flow in &flows {
            let _ = rig.offer(segment(flow, number));
        }
    }
    let expected: Vec<(u32, u32)> = flows
        .iter()
        .flat_map(|&flow| (0..3).map(move |number| (flow, number)))
        .collect();
    assert_eq!(rig.drain(), expected);
}

/// Units of all lists end `hold` after their first segment, in the order in which they began.
#[test]
fn units_expire_in_the_order_of_their_first_segments() {
    let mut rig = rig(1000, 50);
    for flow in 0..20 {
        let _ = rig.offer(segment(flow, 0));
    }
    // Flow 9 began at 10 us, and now it is 60 us: flows 0 to 9 are complete, the others merge.
    for flow in 0..20 {
        rig.now = Instant::from_micros(59);
        let _ = rig.offer(segment(flow, 1));
    }
    let left = rig.drain();
    let first: Vec<(u32, u32)> = (0..10).map(|flow| (flow, 0)).collect();
    assert_eq!(left[..10], first);
    let merged: Vec<(u32, u32)> = (10..20).flat_map(|flow| [(flow, 0), (flow, 1)]).collect();
    assert_eq!(left[10..30], merged);
}

#[test]
fn without_data_it_is_drop_tail() {
    let mut rng = Rng::from_seed(9);
    let limit = Value::Limit(Limit::Packets(20));
    let mut ours = rig(20, 1000);
    let mut values = Values::defaults(DropTail::PARAMETERS);
    values.set("limit", limit).expect("a limit");
    let mut theirs = Rig::new(DropTail::new(&values, &LINK));
    for number in 0..100_000 {
        if rng.below(2) == 0 {
            let mut ack = segment(rng.below(5) as u32, number);
            ack.segment.payload = 0;
            assert_eq!(ours.offer(ack), theirs.offer(ack));
        } else {
            assert_eq!(ours.dequeue(), theirs.dequeue());
        }
    }
}
