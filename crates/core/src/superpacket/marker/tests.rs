//! The worked table of docs/design/super-packets.md#marker-example, and what holds for any packets of any flows.

use super::super::group::Declare;
use super::{Marker, Marking, Obstacle, Released, obstacle};
use crate::flow::FlowId;
use crate::packet::{BufId, Flags, Kind, Packet, Segment};
use crate::seq::SeqNumber;
use crate::superpacket::{Layout, Mark, MarkError, Role};
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

const MARKING: Marking = Marking {
    t_buffer: Duration::from_micros(60),
    hold: Duration::from_micros(100),
    max: 3,
    by_write: false,
};

fn micros(us: u64) -> Instant {
    Instant::from_micros(us)
}

fn packet(flow: u32, number: u32, payload: u32, flags: Flags) -> Packet {
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment: Segment {
            seq: SeqNumber(number),
            payload,
            flags: flags.with(Flags::ACK).with(Flags::DF),
            overhead: 40,
            ..Segment::default()
        },
    }
}

fn data(flow: u32, number: u32) -> Packet {
    packet(flow, number, 1460, Flags::default())
}

fn drain(marker: &mut Marker) -> Vec<Released> {
    core::iter::from_fn(|| marker.poll_packet()).collect()
}

/// Microsecond, flow, number, role and length of what left.
fn table(left: &[Released]) -> Vec<(u64, u32, u32, Role, u8)> {
    left.iter()
        .map(|one| {
            let Packet { flow, segment, .. } = one.packet;
            (
                one.at.as_nanos() / 1000,
                flow.0,
                segment.seq.0,
                one.mark.role,
                one.mark.length,
            )
        })
        .collect()
}

#[test]
fn the_worked_table() {
    use Role::{First, Follower, Regular};
    let mut marker = Marker::new(MARKING, 1);
    let mut on = |at, packet, layout: Option<Layout>| {
        marker.on_packet(micros(at), packet, layout);
        let held = marker.held();
        (held, table(&drain(&mut marker)))
    };
    let b = Some(Layout::LOCAL);
    assert_eq!(
        on(0, packet(1, 0, 0, Flags::SYN), b),
        (0, vec![(0, 1, 0, Regular, 0)])
    );
    assert_eq!(on(10, data(1, 1), b), (1, vec![]));
    assert_eq!(on(20, data(2, 1), b), (2, vec![]));
    assert_eq!(on(30, data(1, 2), b), (3, vec![]));
    // A pure ACK of flow 1 does not wait.
    let ack = packet(1, 3, 0, Flags::default());
    assert_eq!(on(40, ack, b), (3, vec![(40, 1, 3, Regular, 0)]));
    // Flow 2 was silent from 20 to 80: its packet alone is regular. Flow 1 is complete at three.
    assert_eq!(
        on(85, data(1, 3), b),
        (
            0,
            vec![
                (80, 2, 1, Regular, 0),
                (85, 1, 1, First, 3),
                (85, 1, 2, Follower, 3),
                (85, 1, 3, Follower, 3)
            ]
        )
    );
    // One that may be fragmented leaves at once, what is held of its flow before it.
    assert_eq!(on(100, data(2, 2), b), (1, vec![]));
    assert_eq!(on(110, data(2, 3), b), (2, vec![]));
    assert_eq!(
        on(120, data(2, 4), None),
        (
            0,
            vec![
                (120, 2, 2, First, 2),
                (120, 2, 3, Follower, 2),
                (120, 2, 4, Regular, 0)
            ]
        )
    );
    // No packet is held for more than 100 us, though the flow is never silent for 60.
    assert_eq!(on(200, data(1, 4), b), (1, vec![]));
    assert_eq!(on(250, data(1, 5), b), (2, vec![]));
    marker.on_timeout(micros(299));
    assert_eq!((marker.held(), marker.poll_timeout()), (2, Some(micros(300))));
    marker.on_timeout(micros(1000));
    assert_eq!(
        table(&drain(&mut marker)),
        [(300, 1, 4, First, 2), (300, 1, 5, Follower, 2)]
    );
    assert_eq!((marker.held(), marker.poll_timeout()), (0, None));
}

#[test]
fn the_end_of_a_write_completes_its_group() {
    let marking = Marking {
        by_write: true,
        ..MARKING
    };
    let mut marker = Marker::new(marking, 1);
    marker.on_packet(micros(0), data(0, 0), Some(Layout::LOCAL));
    marker.on_packet(micros(1), packet(0, 1, 100, Flags::PSH), Some(Layout::LOCAL));
    assert_eq!(
        table(&drain(&mut marker)),
        [(1, 0, 0, Role::First, 2), (1, 0, 1, Role::Follower, 2)]
    );
    marker.on_packet(micros(2), packet(0, 2, 100, Flags::PSH), Some(Layout::LOCAL));
    assert_eq!(
        table(&drain(&mut marker)),
        [(2, 0, 2, Role::Regular, 0)],
        "a small write does not wait"
    );
}

#[test]
fn a_number_that_another_flow_takes_over_begins_anew() {
    let mut marker = Marker::new(MARKING, 1);
    marker.on_packet(micros(0), data(0, 0), Some(Layout::LOCAL));
    marker.on_packet(micros(0), data(1, 0), Some(Layout::C));
    marker.on_flow_end(micros(5), FlowId(0));
    marker.on_flow_end(micros(5), FlowId(7));
    marker.on_packet(micros(10), data(0, 1), Some(Layout::C));
    marker.on_packet(micros(11), data(0, 2), Some(Layout::C));
    marker.release_all(micros(12));
    let left = drain(&mut marker);
    assert_eq!(
        table(&left),
        [
            (5, 0, 0, Role::Regular, 0),
            (12, 0, 1, Role::First, 2),
            (12, 0, 2, Role::Follower, 2),
            (12, 1, 0, Role::Regular, 0)
        ]
    );
    assert!(
        Layout::C.decode(&left[1].packet.segment).length == 2,
        "in the layout of the new flow"
    );
    assert_eq!((marker.held(), marker.poll_timeout()), (0, None));
}

#[test]
fn what_means_something_to_others_is_left_alone() {
    let of = |layout, tos: u8, flags: Flags| {
        let segment = Segment {
            tos,
            ..packet(0, 0, 1, flags).segment
        };
        obstacle(layout, &segment)
    };
    let none = Flags::default();
    let b = Layout::LOCAL;
    assert_eq!(of(b, 0, none), None);
    for ecn in 0..4 {
        assert_eq!(of(b, ecn, none), None, "layout B leaves the ECN field alone");
        assert_eq!(of(b, 3 << 2 | ecn, none), Some(Obstacle::Marked));
        assert_eq!(of(b, 46 << 2 | ecn, none), Some(Obstacle::TrafficClass), "EF");
    }
    assert_eq!(of(Layout::A, 0, none), None);
    for tos in 1..=255 {
        assert_eq!(
            of(Layout::A, tos, none),
            Some(Obstacle::TrafficClass),
            "layout A takes the whole field"
        );
    }
    assert_eq!(of(Layout::C, 46 << 2 | 2, none), None, "layout C takes nothing");
    assert_eq!(of(Layout::C, 0, Flags::URG), Some(Obstacle::Urgent));
    let fragmentable = Segment {
        flags: Flags::ACK,
        ..Segment::default()
    };
    for layout in [Layout::A, b] {
        assert_eq!(obstacle(layout, &fragmentable), Some(Obstacle::Fragmentable));
    }
    let mut marked = fragmentable;
    Layout::C
        .mark(&mut marked, Mark::first(2, 9))
        .expect("a mark of layout C");
    assert_eq!(obstacle(Layout::C, &marked), Some(Obstacle::Marked));
}

/// One packet: how long after the one before (us), its flow, what it is.
type Step = (u64, u32, u8);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![4 => Just(0_u64), 4 => 1_u64..80, 1 => Just(60), 1 => 100_u64..3000];
    proptest::collection::vec((wait, 0_u32..4, 0_u8..20), 1..150)
}

fn markings() -> impl Strategy<Value = Marking> {
    (1_u64..200, 1_u64..200, 2_u8..=63, any::<bool>()).prop_map(|(t_buffer, hold, max, by_write)| Marking {
        t_buffer: Duration::from_micros(t_buffer),
        hold: Duration::from_micros(hold),
        max,
        by_write,
    })
}

fn layout_of(flow: u32) -> Layout {
    [Layout::A, Layout::LOCAL, Layout::C, Layout::B { dscp: 63 }][flow as usize]
}

/// The packet, and whether it may be marked.
fn made(flow: u32, kind: u8, number: u32) -> (Packet, bool) {
    let ecn = if flow == 0 { 0 } else { (number % 4) as u8 };
    let mut packet = match kind {
        0 => packet(flow, number, 0, Flags::default()),
        1 => packet(flow, number, 9, Flags::FIN),
        2 => packet(flow, number, 0, Flags::RST),
        3 => packet(flow, number, 9, Flags::PSH),
        4 => packet(flow, number, 0, Flags::FIN),
        5 => packet(flow, number, 0, Flags::SYN),
        _ => data(flow, number),
    };
    if kind == 6 {
        packet.segment.set_kind(Kind::Datagram);
        packet.segment.payload = 0;
    }
    packet.segment.tos = ecn;
    (packet, kind != 7)
}

/// Plays `steps`; `prompt`: every deadline is met at its time, else only when the next packet comes.
fn played(marking: Marking, steps: &[Step], seed: u64, prompt: bool) -> Vec<Released> {
    let mut marker = Marker::new(marking, seed);
    let (mut now, mut left) = (Instant::ZERO, vec![]);
    for (number, &(wait, flow, kind)) in steps.iter().enumerate() {
        now += Duration::from_micros(wait);
        while let Some(at) = marker.poll_timeout().filter(|&at| prompt && at <= now) {
            marker.on_timeout(at);
            assert!(
                marker.poll_timeout().is_none_or(|next| next > at),
                "after a drain"
            );
            left.extend(drain(&mut marker));
        }
        let (packet, markable) = made(flow, kind, number as u32);
        let layout = layout_of(flow);
        assert!(obstacle(layout, &packet.segment).is_none());
        marker.on_packet(now, packet, markable.then_some(layout));
        if prompt {
            left.extend(drain(&mut marker));
        }
        assert_eq!(left.len() + marker.released.len() + marker.held(), number + 1);
    }
    marker.on_timeout(now + Duration::from_secs(1));
    left.extend(drain(&mut marker));
    assert_eq!(left.len(), steps.len());
    assert_eq!((marker.held(), marker.poll_timeout()), (0, None));
    left
}

proptest! {
    #[test]
    fn any_packets_of_any_flows(marking in markings(), steps in steps(), seed in any::<u64>()) {
        let left = played(marking, &steps, seed, true);
        prop_assert!(left.windows(2).all(|pair| pair[0].at <= pair[1].at), "times do not go back");
        let mut open: BTreeMap<u32, (Mark, u8)> = BTreeMap::new();
        let mut recent: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
        let mut order: BTreeMap<u32, u32> = BTreeMap::new();
        for one in &left {
            let Packet { flow, segment, .. } = one.packet;
            prop_assert!(one.held() <= marking.hold, "{one:?}");
            prop_assert!(one.held() <= marking.t_buffer.saturating_mul(u64::from(marking.max) - 1), "{one:?}");
            let pure_ack = segment.payload == 0 && segment.kind() == Kind::Tcp
                && !segment.flags.intersects(Flags::SYN.with(Flags::RST).with(Flags::FIN));
            if pure_ack {
                prop_assert_eq!((one.held(), one.mark), (Duration::ZERO, Mark::REGULAR));
                continue;
            }
            // In its order but for pure ACKs.
            let before = order.insert(flow.0, segment.seq.0);
            prop_assert!(before.is_none_or(|before| before < segment.seq.0));
            // As it came, but for the mark.
            let (came, markable) = made(flow.0, steps[segment.seq.0 as usize].2, segment.seq.0);
            let layout = layout_of(flow.0);
            let mut again = came.segment;
            prop_assert_eq!(layout.mark(&mut again, one.mark), Ok::<(), MarkError>(()));
            prop_assert_eq!(again, segment);
            if layout != Layout::A {
                prop_assert_eq!(segment.ecn(), came.segment.ecn());
            }
            let alone = segment.flags.intersects(Flags::SYN.with(Flags::RST));
            prop_assert!(one.mark.is_regular() || markable && !alone);
            // Groups are whole, follow one after the other and do not mix.
            match one.mark.role {
                Role::First => {
                    prop_assert!(!open.contains_key(&flow.0));
                    prop_assert_eq!((one.mark.length, one.mark.last), (one.group, false));
                    prop_assert!(one.mark.length <= marking.max);
                    let ids = recent.entry(flow.0).or_default();
                    prop_assert!(!ids.iter().rev().take(8).any(|&id| id == one.mark.id));
                    ids.push(one.mark.id);
                    open.insert(flow.0, (Mark::follower(one.mark.length, one.mark.id), one.mark.length - 1));
                }
                Role::Follower => {
                    let (mark, left) = open.get_mut(&flow.0).expect("a first came before");
                    prop_assert_eq!(*mark, one.mark);
                    *left -= 1;
                    if *left == 0 {
                        open.remove(&flow.0);
                    }
                }
                Role::Regular => prop_assert!(!open.contains_key(&flow.0), "groups leave back to back"),
            }
        }
        prop_assert!(open.is_empty());
    }

    /// All that happens depends on when packets came, not on when the driver looks.
    #[test]
    fn a_late_driver_changes_nothing(marking in markings(), steps in steps(), seed in any::<u64>()) {
        prop_assert_eq!(played(marking, &steps, seed, true), played(marking, &steps, seed, false));
    }

    /// A flow is grouped as if it were alone.
    #[test]
    fn flows_do_not_touch_each_other(marking in markings(), steps in steps()) {
        let together = played(marking, &steps, 5, true);
        for flow in 0..4 {
            let (mut wait, mut own) = (0, vec![]);
            for &(more, other, kind) in &steps {
                wait += more;
                if other == flow {
                    own.push((wait, flow, kind));
                    wait = 0;
                }
            }
            let seen = |left: &[Released]| -> Vec<_> {
                let of_flow = left.iter().filter(|one| one.packet.flow.0 == flow);
                of_flow.map(|one| (one.at, one.mark.role, one.mark.length, one.group)).collect()
            };
            prop_assert_eq!(seen(&together), seen(&played(marking, &own, 5, true)));
        }
    }
}

/// A5: the mark says what it is told to; who is in the group does not depend on it, and another flow says the truth.
#[test]
fn a_liar_announces_another_length() {
    for (declare, said) in [
        (Declare::Truth, 3),
        (Declare::Beyond(4), 7),
        (Declare::Beyond(-1), 2),
        (Declare::Always(63), 63),
    ] {
        let mut marker = Marker::new(MARKING, 1);
        for number in 0..3 {
            marker.on_packet_of(
                micros(number),
                data(1, number as u32),
                Some(Layout::LOCAL),
                declare,
            );
            marker.on_packet(micros(number), data(2, number as u32), Some(Layout::LOCAL));
        }
        let left = drain(&mut marker);
        let of = |flow| left.iter().filter(move |one| one.packet.flow == FlowId(flow));
        let first = of(1).next().expect("it left");
        assert_eq!(
            (first.group, first.mark.role, first.mark.length),
            (3, Role::First, said)
        );
        assert!(
            of(1)
                .skip(1)
                .all(|one| one.mark == Mark::follower(said, first.mark.id))
        );
        assert!(of(2).all(|one| one.mark.length == 3));
    }
}
