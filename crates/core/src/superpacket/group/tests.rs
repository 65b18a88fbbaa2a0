//! A naive second transcription, and what holds whatever comes.

use super::{Declare, Grouper, Grouping, Mode, Outgoing};
use crate::packet::{Flags, Segment};
use crate::rng::Rng;
use crate::seq::SeqNumber;
use crate::superpacket::{Layout, Mark, Role};
use crate::time::{Duration, Instant};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

const SIXTY: Duration = Duration::from_micros(60);

fn timer() -> Grouping {
    Grouping {
        mode: Mode::Timer { t_buffer: SIXTY },
        layout: Layout::LOCAL,
        max: 10,
        declare: Declare::Truth,
    }
}

fn segment(number: u32, payload: u32, flags: Flags) -> Segment {
    Segment {
        seq: SeqNumber(number),
        payload,
        flags: flags.with(Flags::ACK).with(Flags::DF),
        overhead: 40,
        ..Segment::default()
    }
}

fn data(number: u32) -> Segment {
    segment(number, 1460, Flags::default())
}

fn micros(us: u64) -> Instant {
    Instant::from_micros(us)
}

fn drain(grouper: &mut Grouper, now: Instant) -> Vec<Outgoing> {
    core::iter::from_fn(|| grouper.poll_transmit(now)).collect()
}

fn grouper(grouping: Grouping) -> Grouper {
    Grouper::new(grouping, Rng::from_seed(1))
}

/// Roles and lengths of what left.
fn marks(layout: Layout, left: &[Outgoing]) -> Vec<(Role, u8)> {
    left.iter()
        .map(|outgoing| layout.decode(&outgoing.packet))
        .map(|mark| (mark.role, mark.length))
        .collect()
}

#[test]
fn a_silence_of_t_buffer_completes_a_group() {
    let mut grouper = grouper(timer());
    for (number, at) in [0, 50, 100].into_iter().enumerate() {
        grouper.on_packet(micros(at), data(number as u32));
        assert_eq!(drain(&mut grouper, micros(at)), []);
    }
    assert_eq!(
        grouper.poll_timeout(),
        Some(micros(160)),
        "counted from the last packet"
    );
    grouper.on_timeout(micros(160));
    let left = drain(&mut grouper, micros(160));
    assert_eq!(
        marks(Layout::LOCAL, &left),
        [(Role::First, 3), (Role::Follower, 3), (Role::Follower, 3)]
    );
    assert_eq!(
        left.iter().map(|outgoing| outgoing.group).collect::<Vec<_>>(),
        [3, 0, 0]
    );
    assert_eq!(grouper.poll_timeout(), None);
    let last = |outgoing: &Outgoing| Layout::LOCAL.decode(&outgoing.packet).last;
    assert!(!left.iter().any(last), "a regular end carries no `last`");
}

#[test]
fn no_packet_is_held_longer_than_the_bound() {
    // docs/design/super-packets.md#bound-example
    let mode = Mode::BoundedTimer {
        t_buffer: SIXTY,
        hold: Duration::from_micros(100),
    };
    let mut grouper = grouper(Grouping { mode, ..timer() });
    let mut left = vec![];
    for (number, (at, until)) in [(0, 60), (50, 100), (90, 100), (100, 160), (150, 200), (230, 290)]
        .into_iter()
        .enumerate()
    {
        let at = micros(at);
        while let Some(due) = grouper.poll_timeout().filter(|&due| due <= at) {
            left.extend(
                drain(&mut grouper, due)
                    .into_iter()
                    .map(|outgoing| (due, outgoing)),
            );
        }
        grouper.on_packet(at, data(number as u32));
        assert_eq!(
            grouper.poll_timeout(),
            Some(micros(until)),
            "after packet {number}"
        );
    }
    left.extend(
        drain(&mut grouper, micros(290))
            .into_iter()
            .map(|outgoing| (micros(290), outgoing)),
    );
    let groups: Vec<(Instant, u8)> = left.iter().map(|(at, outgoing)| (*at, outgoing.group)).collect();
    assert_eq!(
        groups,
        [(100, 3), (100, 0), (100, 0), (200, 2), (200, 0), (290, 1)].map(|(at, group)| (micros(at), group))
    );
}

#[test]
fn a_packet_alone_is_a_regular_packet() {
    let mut grouper = grouper(timer());
    grouper.on_packet(micros(0), data(0));
    let left = drain(&mut grouper, micros(60));
    assert_eq!(left[0].packet, data(0), "nothing is written into it");
    assert_eq!(left[0].group, 1);
}

#[test]
fn a_full_group_and_a_fin_do_not_wait() {
    let mut grouper = grouper(timer());
    for number in 0..10 {
        grouper.on_packet(micros(1), data(number));
    }
    assert_eq!(drain(&mut grouper, micros(1)).len(), 10);
    grouper.on_packet(micros(2), data(10));
    grouper.on_packet(micros(2), segment(11, 0, Flags::FIN));
    let left = drain(&mut grouper, micros(2));
    assert_eq!(
        marks(Layout::LOCAL, &left),
        [(Role::First, 2), (Role::Follower, 2)],
        "a FIN takes sequence space: it is not a control packet"
    );
}

#[test]
fn control_packets_leave_at_once() {
    let mut grouper = grouper(timer());
    grouper.on_packet(micros(0), segment(0, 0, Flags::SYN));
    assert_eq!(drain(&mut grouper, micros(0)).len(), 1);
    grouper.on_packet(micros(1), data(1));
    let ack = segment(2, 0, Flags::default());
    grouper.on_packet(micros(2), ack);
    let left = drain(&mut grouper, micros(2));
    assert_eq!(
        left,
        [Outgoing {
            packet: ack,
            group: 0
        }],
        "it overtakes held data"
    );
    grouper.on_packet(micros(3), data(2));
    let reset = segment(3, 0, Flags::RST);
    grouper.on_packet(micros(4), reset);
    let left = drain(&mut grouper, micros(4));
    assert_eq!(
        marks(Layout::LOCAL, &left),
        [(Role::First, 2), (Role::Follower, 2), (Role::Regular, 0)],
        "a reset must not overtake"
    );
    assert_eq!(left[2].packet, reset);
}

#[test]
fn what_comes_at_one_moment_is_a_burst() {
    let mut grouper = grouper(Grouping {
        mode: Mode::Burst,
        max: 4,
        ..timer()
    });
    for number in 0..6 {
        grouper.on_packet(micros(0), data(number));
    }
    let left = drain(&mut grouper, micros(0));
    let lengths: Vec<u8> = left.iter().map(|outgoing| outgoing.group).collect();
    assert_eq!(lengths, [4, 0, 0, 0, 2, 0]);
    assert_eq!(grouper.poll_timeout(), None, "feed, drain, sleep");
}

#[test]
fn accumulation_waits_for_an_eighth_of_the_rtt_from_the_first_packet() {
    let mode = Mode::Accumulate { t_buffer: SIXTY };
    let mut grouper = grouper(Grouping {
        mode,
        max: 6,
        ..timer()
    });
    grouper.on_packet(micros(0), data(0));
    assert_eq!(grouper.poll_timeout(), Some(micros(60)), "no RTT yet");
    assert_eq!(drain(&mut grouper, micros(60)).len(), 1);
    grouper.set_srtt(Some(Duration::from_millis(40)));
    for number in 0..5 {
        grouper.on_packet(micros(1000 + 900 * u64::from(number)), data(number));
        assert_eq!(grouper.poll_timeout(), Some(micros(6000)), "not restarted");
    }
    grouper.on_packet(micros(5900), data(5));
    assert_eq!(
        drain(&mut grouper, micros(5900)).len(),
        6,
        "complete before its time"
    );
}

#[test]
fn a_fixed_length_holds_nothing_back_and_says_when_it_stops() {
    let mut grouper = grouper(Grouping {
        mode: Mode::Fixed,
        max: 3,
        ..timer()
    });
    let mut seen = vec![];
    for number in 0..4 {
        let at = micros(1000 * u64::from(number));
        grouper.on_packet(at, data(number));
        let left = drain(&mut grouper, at);
        seen.push(Layout::LOCAL.decode(&left[0].packet));
    }
    grouper.on_packet(micros(5000), segment(4, 1, Flags::FIN));
    let left = drain(&mut grouper, micros(5000));
    seen.push(Layout::LOCAL.decode(&left[0].packet));
    let ids = [seen[0].id, seen[3].id];
    assert_ne!(ids[0], ids[1]);
    assert_eq!(
        seen,
        [
            Mark::first(3, ids[0]),
            Mark::follower(3, ids[0]),
            Mark::follower(3, ids[0]),
            Mark::first(3, ids[1]),
            Mark::follower(3, ids[1]).ending(), // docs/design/super-packets.md#last: stopped early
        ]
    );
}

/// Worked table docs/design/super-packets.md#estimate-example: T_buffer 60 us, at most four.
#[test]
fn an_estimate_is_the_length_of_the_window_before() {
    let mut grouper = grouper(Grouping {
        mode: Mode::Estimate { t_buffer: SIXTY },
        max: 4,
        ..timer()
    });
    let steps: [(u64, bool, Role, u8); 17] = [
        (0, false, Role::First, 4),
        (10, false, Role::Follower, 4),
        (20, false, Role::Follower, 4),
        (1000, false, Role::First, 3),
        (1059, false, Role::Follower, 3),
        (1070, false, Role::Follower, 3),
        (1080, false, Role::First, 3),
        (1140, false, Role::First, 4),
        (2000, false, Role::Regular, 0),
        (2010, false, Role::Regular, 0),
        (2020, false, Role::Regular, 0),
        (3000, false, Role::First, 3),
        (3000, true, Role::Follower, 3),
        (3010, false, Role::First, 3),
        (3020, false, Role::Follower, 3),
        (3030, false, Role::Follower, 3),
        (3040, true, Role::Regular, 0),
    ];
    let mut ids = vec![];
    for (number, (at, fin, role, length)) in steps.into_iter().enumerate() {
        let flags = if fin { Flags::FIN } else { Flags::default() };
        grouper.on_packet(micros(at), segment(number as u32, 1460, flags));
        let left = drain(&mut grouper, micros(at));
        assert_eq!(left.len(), 1, "nothing is held back");
        let mark = Layout::LOCAL.decode(&left[0].packet);
        assert_eq!((mark.role, mark.length), (role, length), "packet {number}");
        assert_eq!(mark.last, number == 12, "a FIN stops early");
        if role == Role::First {
            assert!(!ids.contains(&mark.id));
            ids.push(mark.id);
        }
    }
}

/// docs/design/super-packets.md#segment: 8760 bytes in packets of 1500, with headers of 40 bytes, are six.
fn segments() -> Grouping {
    Grouping {
        mode: Mode::Segment { packet: 1500 },
        ..timer()
    }
}

#[test]
fn a_large_segment_is_a_super_packet() {
    let mut grouper = grouper(segments());
    let flags = Flags::FIN.with(Flags::PSH).with(Flags::CWR);
    let large = segment(5000, 8760, flags);
    grouper.on_segment(micros(1), large);
    let left = drain(&mut grouper, micros(1));
    let mut roles = vec![(Role::Follower, 6); 6];
    roles[0].0 = Role::First;
    assert_eq!(marks(Layout::LOCAL, &left), roles);
    let groups: Vec<u8> = left.iter().map(|outgoing| outgoing.group).collect();
    assert_eq!(groups, [6, 0, 0, 0, 0, 0]);
    for (place, outgoing) in left.iter().enumerate() {
        let packet = outgoing.packet;
        assert_eq!((packet.seq.0, packet.len()), (5000 + 1460 * place as u32, 1500));
        assert_eq!(packet.flags.contains(Flags::CWR), place == 0);
        assert_eq!(packet.flags.intersects(Flags::FIN.with(Flags::PSH)), place == 5);
    }
    // Shorter, and longer than `max` packets.
    for (payload, lengths) in [
        (1460, vec![0]),
        (1461, vec![2, 2]),
        (0, vec![0]),
        (1460 * 11, [vec![10; 10], vec![0]].concat()),
        (1460 * 10 + 1461, [vec![10; 10], vec![2; 2]].concat()),
    ] {
        grouper.on_segment(micros(2), segment(0, payload, Flags::default()));
        let left = drain(&mut grouper, micros(2));
        let seen: Vec<u8> = marks(Layout::LOCAL, &left).iter().map(|mark| mark.1).collect();
        assert_eq!(seen, lengths, "{payload} bytes");
    }
    grouper.on_segment(micros(3), segment(0, 0, Flags::SYN));
    assert_eq!(drain(&mut grouper, micros(3)).len(), 1);
}

proptest! {
    /// What is cut is whole again when all pieces have arrived, in any order, with copies; and not before.
    #[test]
    fn what_is_cut_is_joined(payload in 0_u32..14_600, order in any::<u64>(), copies in 0_usize..3, marked in any::<bool>()) {
        let mut grouper = grouper(segments());
        let ends = Flags::PSH.with(Flags::TIMESTAMPS);
        let mut large = segment(u32::MAX - 3000, payload, ends);
        large.set_ecn(crate::packet::Ecn::Ect0);
        grouper.on_segment(micros(1), large);
        let mut pieces: Vec<Segment> = drain(&mut grouper, micros(1)).iter().map(|one| one.packet).collect();
        if marked {
            pieces.last_mut().expect("one").set_ecn(crate::packet::Ecn::Ce);
        }
        let mut rng = Rng::from_seed(order);
        for end in (1..pieces.len()).rev() {
            pieces.swap(end, rng.below(end as u64 + 1) as usize);
        }
        let (last, early) = pieces.split_last().expect("one");
        for piece in early.iter().cycle().take(early.len() * (1 + copies)) {
            prop_assert_eq!(grouper.join(piece), None);
        }
        let whole = grouper.join(last).expect("the last that was missing");
        prop_assert_eq!((whole.seq, whole.payload), (large.seq, large.payload));
        prop_assert_eq!(whole.flags.0, large.flags.0);
        prop_assert_eq!(whole.ecn() == crate::packet::Ecn::Ce, marked);
    }
}

#[test]
fn the_loss_of_one_piece_costs_the_segment() {
    let mut grouper = grouper(segments());
    let mut pieces = |seq| -> Vec<Segment> {
        grouper.on_segment(micros(1), segment(seq, 8760, Flags::default()));
        drain(&mut grouper, micros(1))
            .iter()
            .map(|one| one.packet)
            .collect()
    };
    let mut sent: Vec<Vec<Segment>> = (0..12).map(|number| pieces(8760 * number)).collect();
    let again = pieces(0);
    let mut receiver = self::grouper(segments());
    for (number, segment) in sent.iter_mut().enumerate() {
        // One piece is lost of every second one, of the first as well; one piece of another is damaged.
        if number % 2 == 0 {
            segment.remove(number / 2);
        } else if number == 5 {
            segment[2].flags = segment[2].flags.with(Flags::CORRUPT);
        }
        let whole: Vec<Segment> = segment.iter().filter_map(|piece| receiver.join(piece)).collect();
        assert_eq!(
            whole.len(),
            usize::from(number % 2 == 1 && number != 5),
            "segment {number}"
        );
    }
    let whole: Vec<Segment> = again.iter().filter_map(|piece| receiver.join(piece)).collect();
    assert_eq!(whole.len(), 1);
    assert_eq!((whole[0].seq.0, whole[0].payload), (0, 8760));
    // Not a piece: a regular packet, an acknowledgment.
    for packet in [data(7), segment(1, 0, Flags::default())] {
        assert_eq!(receiver.join(&packet), Some(packet));
    }
}

#[test]
fn liars_declare_what_they_like_within_the_layout() {
    for (declare, packets, declared) in [
        (Declare::Beyond(5), 3, Some(8)),
        (Declare::Beyond(-2), 4, Some(2)),
        (Declare::Beyond(-9), 4, None),
        (Declare::Beyond(60), 10, Some(63)),
        (Declare::Always(63), 1, Some(63)),
        (Declare::Always(10), 20, Some(10)),
    ] {
        let mut grouper = grouper(Grouping {
            declare,
            max: 20,
            ..timer()
        });
        for number in 0..packets {
            grouper.on_packet(micros(0), data(number));
        }
        grouper.end_of_burst();
        let left = drain(&mut grouper, micros(0));
        assert_eq!(left.len(), packets as usize);
        assert_eq!(left[0].group, packets as u8, "what it is, not what it says");
        for (place, (role, length)) in marks(Layout::LOCAL, &left).into_iter().enumerate() {
            let expected = match (declared, place) {
                (None, _) => (Role::Regular, 0),
                (Some(length), 0) => (Role::First, length),
                (Some(length), _) => (Role::Follower, length),
            };
            assert_eq!((role, length), expected, "{declare:?}");
        }
    }
}

#[test]
fn an_identifier_does_not_come_again_soon() {
    let mut grouper = grouper(Grouping {
        mode: Mode::Burst,
        ..timer()
    });
    let mut ids = vec![];
    for round in 0..2000 {
        grouper.on_packet(micros(round), data(0));
        grouper.on_packet(micros(round), data(1));
        let left = drain(&mut grouper, micros(round));
        ids.push(Layout::LOCAL.decode(&left[0].packet).id);
    }
    for window in ids.windows(9) {
        assert!(!window[..8].contains(&window[8]), "{window:?}");
    }
    let mut seen = ids.clone();
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 250, "{} of 256 in use", seen.len());
    let steps = ids
        .windows(2)
        .filter(|pair| pair[1] == pair[0].wrapping_add(1) & 0xff);
    assert!(steps.count() < 40, "they do not count up");
}

/// What the sender does, step by step.
#[derive(Clone, Copy, Debug)]
struct Step {
    wait_us: u64,
    kind: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        prop_oneof![3 => Just(0_u64), 3 => 1_u64..120, 1 => Just(60), 1 => 1000_u64..9000],
        0_u8..20,
    );
    proptest::collection::vec(step.prop_map(|(wait_us, kind)| Step { wait_us, kind }), 1..120)
}

fn groupings() -> impl Strategy<Value = Grouping> {
    let mode = prop_oneof![
        Just(Mode::Timer { t_buffer: SIXTY }),
        Just(Mode::Burst),
        Just(Mode::Accumulate { t_buffer: SIXTY }),
        Just(Mode::Fixed),
        Just(Mode::Estimate { t_buffer: SIXTY }),
    ];
    let layout = prop_oneof![Just(Layout::A), Just(Layout::LOCAL), Just(Layout::C)];
    (mode, layout, 1_u8..=63).prop_map(|(mode, layout, max)| Grouping {
        mode,
        layout,
        max,
        declare: Declare::Truth,
    })
}

fn packet_of(kind: u8, number: u32) -> Segment {
    match kind {
        0 => segment(number, 0, Flags::default()),
        1 => segment(number, 700, Flags::FIN),
        2 => segment(number, 0, Flags::RST),
        _ => data(number),
    }
}

/// The rules of docs/design/super-packets.md#t-buffer to #accumulate once more: all steps are known, so groups are cut with a look ahead. Gives, by number of the
/// packet, when it leaves, its role and its length.
fn oracle(grouping: Grouping, wait: Duration, steps: &[Step]) -> Vec<(Instant, Role, u8)> {
    let mut now = Instant::ZERO;
    let times: Vec<Instant> = steps
        .iter()
        .map(|step| {
            now += Duration::from_micros(step.wait_us);
            now
        })
        .collect();
    let mut result: Vec<(Instant, Role, u8)> = times.iter().map(|&at| (at, Role::Regular, 0)).collect();
    let is_data = |kind: u8| kind != 0 && kind != 2;
    let mut group: Vec<usize> = vec![];
    let close = |group: &mut Vec<usize>, at: Instant, result: &mut Vec<(Instant, Role, u8)>| {
        let length = group.len() as u8;
        for (place, &packet) in group.iter().enumerate() {
            let role = if place == 0 { Role::First } else { Role::Follower };
            result[packet] = if length > 1 {
                (at, role, length)
            } else {
                (at, Role::Regular, 0)
            };
        }
        group.clear();
    };
    let due = |first: usize, last: usize| match grouping.mode {
        Mode::Timer { .. } => times[last] + SIXTY,
        Mode::BoundedTimer { hold, .. } => (times[last] + SIXTY).min(times[first] + hold),
        Mode::Accumulate { .. } => times[first] + wait,
        Mode::Burst | Mode::Fixed | Mode::Estimate { .. } | Mode::Segment { .. } => times[last],
    };
    let mut fixed = 0;
    // Of estimates: when the packets of this window came, how many were expected, and how many of a super-packet were sent.
    let (mut window, mut expected, mut place): (Vec<Instant>, u8, u8) = (vec![], grouping.max, 0);
    for (packet, step) in steps.iter().enumerate() {
        let at = times[packet];
        if let (Some(&first), Some(&last)) = (group.first(), group.last()) {
            let due = due(first, last);
            // A burst is what one moment brings: it ends when time goes on.
            let over = if grouping.mode == Mode::Burst {
                due < at
            } else {
                due <= at
            };
            if over {
                close(&mut group, due, &mut result);
            }
        }
        if step.kind == 2 {
            close(&mut group, at, &mut result);
        }
        if !is_data(step.kind) {
            continue;
        }
        if matches!(grouping.mode, Mode::Estimate { .. }) {
            if window.last().is_some_and(|before| at.since(*before) >= SIXTY) {
                expected = window.len().min(usize::from(grouping.max)) as u8;
                window.clear();
                place = 0;
            }
            window.push(at);
            let fin = step.kind == 1;
            if expected > 1 && (place > 0 || !fin) {
                let role = if place == 0 { Role::First } else { Role::Follower };
                result[packet] = (at, role, expected);
                place = if fin || place + 1 == expected {
                    0
                } else {
                    place + 1
                };
            }
            continue;
        }
        if grouping.mode == Mode::Fixed {
            if grouping.max > 1 && (fixed > 0 || step.kind != 1) {
                let role = if fixed == 0 { Role::First } else { Role::Follower };
                result[packet] = (at, role, grouping.max);
                fixed = if step.kind == 1 {
                    0
                } else {
                    (fixed + 1) % grouping.max
                };
            }
            continue;
        }
        group.push(packet);
        if group.len() == usize::from(grouping.max) || step.kind == 1 {
            close(&mut group, at, &mut result);
        }
    }
    if let (Some(&first), Some(&last)) = (group.first(), group.last()) {
        close(&mut group, due(first, last), &mut result);
    }
    result
}

proptest! {
    #[test]
    fn agrees_with_a_naive_transcription(grouping in groupings(), steps in steps(), srtt_us in 100_u64..20_000, seed in any::<u64>()) {
        let srtt = Duration::from_micros(srtt_us);
        let wait = Duration::from_nanos(srtt.as_nanos() / 8);
        let expected = oracle(grouping, wait, &steps);
        let mut grouper = Grouper::new(grouping, Rng::from_seed(seed));
        grouper.set_srtt(Some(srtt));
        let mut left: Vec<(Instant, Segment)> = vec![];
        let mut data_order = vec![];
        let mut now = Instant::ZERO;
        let mut take = |grouper: &mut Grouper, now: Instant| {
            while let Some(outgoing) = grouper.poll_transmit(now) {
                left.push((now, outgoing.packet));
                if outgoing.packet.payload > 0 || outgoing.packet.flags.contains(Flags::RST) {
                    data_order.push(outgoing.packet.seq.0);
                }
            }
            assert!(grouper.poll_timeout().is_none_or(|at| at > now), "after a drain");
        };
        for (number, step) in steps.iter().enumerate() {
            let next = now + Duration::from_micros(step.wait_us);
            if next > now {
                // The world is at work until then: outputs are taken, deadlines are met.
                take(&mut grouper, now);
                while let Some(at) = grouper.poll_timeout().filter(|&at| at <= next) {
                    grouper.on_timeout(at);
                    take(&mut grouper, at);
                }
            }
            now = next;
            grouper.on_packet(now, packet_of(step.kind, number as u32));
        }
        take(&mut grouper, now);
        while let Some(at) = grouper.poll_timeout() {
            grouper.on_timeout(at);
            take(&mut grouper, at);
        }
        prop_assert!(grouper.is_empty());
        // None is lost or made, and none overtakes but pure ACKs.
        prop_assert_eq!(left.len(), steps.len());
        prop_assert!(data_order.is_sorted());
        // Times, roles and lengths are the oracle's.
        let mut id = None;
        left.sort_by_key(|(_, segment)| segment.seq.0);
        for ((at, segment), expected) in left.iter().zip(&expected) {
            let mark = grouping.layout.decode(segment);
            prop_assert_eq!((*at, mark.role, mark.length), *expected, "packet {}", segment.seq.0);
            match mark.role {
                Role::First => id = Some(mark.id),
                Role::Follower => prop_assert_eq!(id, Some(mark.id), "members share the identifier"),
                Role::Regular => {}
            }
        }
    }

    #[test]
    fn a_late_driver_loses_nothing(grouping in groupings(), steps in steps()) {
        let mut grouper = Grouper::new(grouping, Rng::from_seed(3));
        let (mut now, mut taken) = (Instant::ZERO, 0);
        for (number, step) in steps.iter().enumerate() {
            now += Duration::from_micros(step.wait_us);
            grouper.on_packet(now, packet_of(step.kind, number as u32));
            if step.kind == 7 {
                taken += drain(&mut grouper, now).len();
            }
            prop_assert_eq!(taken + grouper.len(), number + 1);
        }
        grouper.end_of_burst();
        taken += drain(&mut grouper, now).len();
        prop_assert_eq!(taken, steps.len());
    }
}
