//! The hand-worked cases of docs/design/super-packets.md, the invariants I1 to I5, and second transcriptions compared call by call.

extern crate std;

use super::*;
use crate::flow::{FlowKey, FlowTable, HostId};
use crate::packet::{BufId, Ecn, Flags, Segment};
use crate::parameter::Value;
use crate::queue::AnyQueue;
use crate::rng::Rng;
use crate::seq::SeqNumber;
use crate::superpacket::Mark;
use crate::units::{Bytes, Rate};
use alloc::vec;
use alloc::vec::Vec;

mod invariants;
mod oracle;

const FLOWS: u32 = 8;

const fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn values(settings: &[(&str, Value)]) -> Values {
    let mut values = Values::defaults(SuperPacket::PARAMETERS);
    for (name, value) in settings {
        values.set(name, *value).expect("a legal value");
    }
    values
}

const fn packets(limit: u32) -> (&'static str, Value) {
    ("limit", Value::Limit(Limit::Packets(limit)))
}

const fn longest(max_length: u64) -> (&'static str, Value) {
    ("max_length", Value::Integer(max_length))
}

const fn weight(weight: f64) -> (&'static str, Value) {
    ("weight", Value::Number(weight))
}

const BY_LENGTH: (&str, Value) = ("need", Value::Choice("length"));
const BY_LONGEST: (&str, Value) = ("need", Value::Choice("longest"));
const LAYOUT_C: (&str, Value) = ("layout", Value::Choice("C"));

/// A queue with what its calls report.
struct Rig {
    queue: SuperPacket,
    flows: FlowTable,
    drops: Vec<(Packet, DropReason)>,
    events: Vec<QueueEvent>,
    counts: [u64; QueueEventKind::ALL.len()],
    now: Instant,
    number: u32,
}

impl Rig {
    fn new(settings: &[(&str, Value)]) -> Rig {
        let link = LinkContext {
            mtu: 1500,
            rate: Rate(100_000_000),
            framing: 0,
            delay: Duration::ZERO,
            seed: 3,
        };
        let mut flows = FlowTable::new();
        for flow in 0..FLOWS {
            flows.push(FlowKey {
                source: HostId(flow / 2),
                destination: HostId(100),
                source_port: flow as u16,
                destination_port: 80,
                protocol: 6,
            });
        }
        Rig {
            queue: SuperPacket::new(&values(settings), &link),
            flows,
            drops: Vec::new(),
            events: Vec::new(),
            counts: [0; QueueEventKind::ALL.len()],
            now: Instant::ZERO,
            number: 0,
        }
    }

    fn offer_packet(&mut self, mut packet: Packet) -> Result<(), DropReason> {
        packet.segment.seq = SeqNumber(self.number);
        self.number += 1;
        self.queue.enqueue(
            self.now,
            packet,
            &mut QueueContext {
                flows: &self.flows,
                ingress: 0,
                drops: &mut self.drops,
                events: &mut self.events,
            },
        );
        for event in self.events.drain(..) {
            self.counts[event.kind as usize] += u64::from(event.count);
        }
        self.drops.pop().map_or(Ok(()), |(_, reason)| Err(reason))
    }

    fn offer(&mut self, flow: u32, mark: Mark) -> Result<(), DropReason> {
        let packet = marked(self.queue.layout, flow, mark, 1500);
        self.offer_packet(packet)
    }

    fn regular(&mut self) -> bool {
        self.offer(0, Mark::REGULAR).is_ok()
    }

    fn dequeue(&mut self) -> Option<Packet> {
        self.queue.dequeue(
            self.now,
            &mut QueueContext {
                flows: &self.flows,
                ingress: 0,
                drops: &mut self.drops,
                events: &mut self.events,
            },
        )
    }

    fn q(&self) -> u32 {
        self.queue.backlog().packets
    }

    fn r(&self) -> u32 {
        self.queue.reserved()
    }

    fn count(&self, kind: QueueEventKind) -> u64 {
        self.counts[kind as usize]
    }

    /// A rig with `q` regular packets in it.
    fn filled(settings: &[(&str, Value)], q: u32) -> Rig {
        let mut rig = Rig::new(settings);
        for _ in 0..q {
            assert!(rig.regular());
        }
        rig
    }
}

fn marked(layout: Layout, flow: u32, mark: Mark, len: u32) -> Packet {
    let mut segment = Segment {
        payload: len - 40,
        overhead: 40,
        flags: Flags::ACK.with(Flags::DF),
        ..Segment::default()
    };
    // Lengths 0 and 1 cannot be written, and are regular packets.
    if mark.length >= 2 {
        layout
            .mark(&mut segment, mark)
            .expect("a mark the layout can say");
    }
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment,
    }
}

const FULL: Result<(), DropReason> = Err(DropReason::Full);
const ORPHAN: Result<(), DropReason> = Err(DropReason::Orphan);

#[test]
fn the_hand_worked_trace() {
    // docs/design/super-packets.md#trace: size 20, M 4, alpha 0.7.
    let mut rig = Rig::filled(&[packets(20), longest(4)], 10);
    let state = |rig: &Rig| (rig.q(), rig.r());
    assert_eq!(state(&rig), (10, 0));
    assert!(rig.regular());
    assert_eq!(state(&rig), (11, 0));
    assert_eq!(rig.offer(1, Mark::first(4, 7)), Ok(()));
    assert_eq!(state(&rig), (12, 3));
    assert_eq!(rig.offer(2, Mark::first(4, 7)), Ok(()));
    assert_eq!(state(&rig), (13, 6));
    assert!(!rig.regular());
    for _ in 0..3 {
        assert_eq!(rig.offer(1, Mark::follower(4, 7)), Ok(()));
    }
    assert_eq!(state(&rig), (16, 3));
    assert_eq!(rig.queue.promises.entries(), 1, "A is removed");
    assert!(!rig.regular());
    for _ in 0..3 {
        assert!(rig.dequeue().is_some());
    }
    assert!(rig.regular());
    assert_eq!(state(&rig), (14, 3));
    assert_eq!(rig.offer(2, Mark::follower(4, 7).ending()), Ok(()));
    assert_eq!(state(&rig), (15, 0));
    assert_eq!(rig.queue.promises.entries(), 0, "B is removed");
    assert_eq!(rig.offer(2, Mark::follower(4, 7)), ORPHAN);
    assert_eq!(state(&rig), (15, 0));
    assert_eq!(rig.count(QueueEventKind::Orphan), 1);
}

#[test]
fn the_longest_counts_for_everybody() {
    // docs/design/super-packets.md#longest-trace: size 12, M 10, alpha 1.
    let mut rig = Rig::filled(&[packets(12), BY_LONGEST, weight(1.0)], 5);
    let state = |rig: &Rig| (rig.q(), rig.r());
    assert!(rig.regular());
    assert_eq!(rig.offer(1, Mark::first(4, 1)), Ok(()));
    assert_eq!(state(&rig), (7, 3));
    assert!(!rig.regular(), "two places are free, and four are asked for");
    assert_eq!(rig.offer(2, Mark::first(2, 1)), FULL, "as the regular packet");
    for _ in 0..3 {
        assert_eq!(rig.offer(1, Mark::follower(4, 1)), Ok(()));
    }
    assert_eq!(state(&rig), (10, 0));
    for _ in 0..3 {
        assert!(rig.dequeue().is_some());
    }
    assert_eq!(rig.offer(2, Mark::first(2, 2)), Ok(()));
    assert_eq!(state(&rig), (8, 1));
    assert_eq!(rig.offer(3, Mark::first(6, 1)), FULL);
    assert_eq!(rig.offer(2, Mark::follower(2, 2)), Ok(()));
    for _ in 0..2 {
        assert!(rig.dequeue().is_some());
    }
    assert_eq!(state(&rig), (7, 0));
    rig.now = ms(1_999);
    assert!(!rig.regular(), "the refused first of six counts");
    rig.now = ms(2_000);
    assert!(rig.regular());
    assert_eq!(state(&rig), (8, 0));
    assert_eq!(rig.count(QueueEventKind::Refused), 2);
    // What is longer than M, or ends with its first packet, announces nothing.
    assert_eq!(rig.offer(4, Mark::first(11, 1)), Ok(()));
    assert_eq!(rig.offer(4, Mark::first(9, 1).ending()), Ok(()));
    assert!(rig.regular() && rig.regular());
    assert_eq!(state(&rig), (12, 0));
}

#[test]
fn reservations_end_with_the_second_epoch() {
    // docs/design/super-packets.md#epoch-example: E = 100 ms.
    let epoch = ("epoch", Value::Duration(Duration::from_millis(100)));
    let mut rig = Rig::new(&[epoch]);
    rig.now = ms(190);
    assert_eq!(rig.offer(0, Mark::first(5, 1)), Ok(()));
    assert_eq!(rig.r(), 4);
    rig.now = ms(250); // straddles one boundary
    assert_eq!(rig.offer(0, Mark::follower(5, 1)), Ok(()));
    assert_eq!(rig.r(), 3);
    rig.now = Instant::from_nanos(299_999_999);
    assert!(rig.regular());
    assert_eq!(rig.r(), 3);
    rig.now = ms(300); // the exact boundary
    assert!(rig.regular());
    assert_eq!(rig.r(), 0);
    assert_eq!(rig.count(QueueEventKind::Expired), 1);
    rig.now = ms(301); // straddles two
    assert_eq!(rig.offer(0, Mark::follower(5, 1)), ORPHAN);
    // A clock that steps back changes nothing.
    rig.now = ms(5);
    assert_eq!(rig.offer(0, Mark::first(3, 2)), Ok(()));
    assert_eq!(rig.r(), 2);
    for (idle, left) in [(1, 2), (2, 0), (10, 0)] {
        let mut rig = Rig::new(&[epoch]);
        rig.now = ms(150);
        assert_eq!(rig.offer(0, Mark::first(3, 2)), Ok(()));
        rig.now = ms(150 + 100 * idle);
        assert!(rig.regular());
        assert_eq!(rig.r(), left, "after {idle} idle epochs");
    }
}

/// A packet without data.
fn control(flow: u32, flags: Flags, ack: u32) -> Packet {
    let mut packet = marked(Layout::LOCAL, flow, Mark::REGULAR, 40);
    packet.segment.flags = flags;
    packet.segment.ack = SeqNumber(ack);
    packet
}

/// docs/design/super-packets.md#rtt-epoch-example: epoch at most 200 ms, a flow whose round trip takes 30 ms and then one of 40 ms.
#[test]
fn an_epoch_follows_the_largest_round_trip_of_handshakes() {
    let longest = ("epoch", Value::Duration(Duration::from_millis(200)));
    let mut rig = Rig::new(&[longest, ("rtt_epoch", Value::Flag(true))]);
    let syn_ack = Flags::SYN.with(Flags::ACK);
    for (at, packet) in [
        (10, control(0, Flags::SYN, 0)),
        (40, control(0, Flags::ACK, 1)),
        (60, control(2, syn_ack, 1)),
        (60, control(2, Flags::ACK, 1)),
        (100, control(2, Flags::ACK, 301)),
        (150, control(2, Flags::ACK, 301)),
    ] {
        rig.now = ms(at);
        assert_eq!(rig.offer_packet(packet), Ok(()));
        assert_eq!(
            rig.queue.epoch(),
            Duration::from_millis(200),
            "until it ends, at {at}"
        );
    }
    rig.now = ms(200);
    assert_eq!(rig.offer(0, Mark::first(5, 1)), Ok(()));
    let epoch = rig.queue.epoch().as_nanos();
    assert!(
        (80_000_000..80_005_000).contains(&epoch),
        "{epoch} ns: twice 40 ms"
    );
    assert_eq!(rig.r(), 4);
    rig.now = ms(359);
    assert!(rig.regular());
    assert_eq!(rig.r(), 4, "old");
    rig.now = ms(361);
    assert!(rig.regular());
    assert_eq!(rig.r(), 0, "forgotten after two epochs");
}

#[test]
fn lengths_at_the_edges() {
    // M = 63 of 200: the longest that layout B can say.
    let mut rig = Rig::new(&[packets(200), longest(63)]);
    for length in [0, 1] {
        assert_eq!(rig.offer(0, Mark::first(length, 9)), Ok(()));
        assert_eq!(rig.r(), 0, "length {length} is a regular packet");
    }
    assert_eq!(rig.offer(0, Mark::first(2, 9)), Ok(()));
    assert_eq!(rig.r(), 1);
    assert_eq!(rig.offer(1, Mark::first(63, 9)), Ok(()));
    assert_eq!(rig.r(), 63);
    for _ in 0..62 {
        assert_eq!(rig.offer(1, Mark::follower(63, 9)), Ok(()));
    }
    assert_eq!(rig.offer(1, Mark::follower(63, 9)), ORPHAN);
    assert_eq!(rig.r(), 1);
}

#[test]
fn last_on_the_first_the_second_and_the_final_member() {
    let mut rig = Rig::new(&[]);
    assert_eq!(rig.offer(0, Mark::first(10, 1).ending()), Ok(()));
    assert_eq!(rig.r(), 0, "a first that is the last is a regular packet");
    assert_eq!(rig.offer(0, Mark::first(10, 2)), Ok(()));
    assert_eq!(rig.offer(0, Mark::follower(10, 2).ending()), Ok(()));
    assert_eq!(rig.r(), 0, "on the second the other eight are given back");
    assert_eq!(rig.offer(0, Mark::follower(10, 2)), ORPHAN);
    assert_eq!(rig.offer(0, Mark::first(10, 3)), Ok(()));
    for _ in 0..8 {
        assert_eq!(rig.offer(0, Mark::follower(10, 3)), Ok(()));
    }
    assert_eq!(rig.r(), 1);
    assert_eq!(rig.offer(0, Mark::follower(10, 3).ending()), Ok(()));
    assert_eq!(rig.r(), 0, "on the tenth of ten exactly nine were released");
    assert_eq!(rig.offer(0, Mark::follower(10, 3)), ORPHAN, "the eleventh of ten");
}

#[test]
fn identifiers_that_come_again() {
    let mut rig = Rig::new(&[]);
    assert_eq!(rig.offer(0, Mark::follower(10, 1)), ORPHAN, "before its first");
    assert_eq!(rig.offer(0, Mark::first(10, 1)), Ok(()));
    assert_eq!(rig.offer(0, Mark::follower(10, 1)), Ok(()));
    assert_eq!(rig.offer(0, Mark::first(6, 1)), Ok(()), "a duplicate first");
    assert_eq!((rig.r(), rig.count(QueueEventKind::IdReuse)), (5, 1));
    // Two sources with one identifier, and two connections of one host.
    assert_eq!(rig.offer(2, Mark::first(4, 1)), Ok(()));
    assert_eq!(rig.offer(1, Mark::first(4, 1)), Ok(()));
    assert_eq!((rig.r(), rig.count(QueueEventKind::IdReuse)), (11, 1));
    // The report's key knows addresses only: flows 0 and 1 are of one host.
    let mut rig = Rig::new(&[("key", Value::Choice("hosts"))]);
    assert_eq!(rig.offer(0, Mark::first(10, 1)), Ok(()));
    assert_eq!(rig.offer(2, Mark::first(4, 1)), Ok(()));
    assert_eq!(rig.offer(1, Mark::first(4, 1)), Ok(()));
    assert_eq!((rig.r(), rig.count(QueueEventKind::IdReuse)), (6, 1));
    // Released in the old generation too.
    let mut rig = Rig::new(&[]);
    rig.now = ms(190);
    assert_eq!(rig.offer(0, Mark::first(10, 1)), Ok(()));
    rig.now = ms(210);
    assert_eq!(rig.offer(0, Mark::first(10, 1)), Ok(()));
    assert_eq!((rig.r(), rig.count(QueueEventKind::IdReuse)), (9, 1));
    // And when the test then fails.
    let mut rig = Rig::filled(&[], 88);
    assert_eq!(rig.offer(0, Mark::first(2, 1)), Ok(()));
    while rig.q() < 91 {
        assert_eq!(rig.offer(0, Mark::follower(2, 1)).is_ok(), rig.q() == 90);
        assert!(rig.q() == 90 || rig.regular());
        if rig.q() == 90 {
            assert_eq!(rig.offer(0, Mark::first(2, 1)), Ok(()));
        }
    }
    assert_eq!(rig.offer(0, Mark::first(2, 1)), FULL);
    assert_eq!(rig.r(), 0);
    assert_eq!(rig.count(QueueEventKind::Refused), 1);
}

#[test]
fn the_test_admits_on_the_boundary() {
    // 10 * (size - Q) - 7 R = 10 M exactly: size 100, M 10, R 10 needs 83 taken.
    for (q, admitted) in [(82, true), (83, false)] {
        let mut rig = Rig::filled(&[], 0);
        assert_eq!(rig.offer(0, Mark::first(8, 1)), Ok(()));
        assert_eq!(rig.offer(1, Mark::first(4, 1)), Ok(()));
        assert_eq!(rig.r(), 10);
        while rig.q() < q {
            assert!(rig.regular());
        }
        assert_eq!(10 * (100 - i64::from(rig.q())) - 70 >= 100, q <= 83);
        if !admitted {
            // 83: equality still admits, 84 does not.
            assert!(rig.regular());
        }
        assert_eq!(rig.regular(), admitted);
    }
    // M = size admits only when the queue is empty and nothing is promised.
    let mut rig = Rig::new(&[packets(10)]);
    assert!(rig.regular());
    assert!(!rig.regular());
    assert!(rig.dequeue().is_some());
    assert_eq!(rig.offer(0, Mark::first(2, 1)), Ok(()));
    assert!(rig.dequeue().is_some());
    assert!(!rig.regular());
    assert_eq!(rig.offer(0, Mark::follower(2, 1)), Ok(()));
    assert!(!rig.regular());
    assert!(rig.dequeue().is_some());
    assert!(rig.regular());
}

#[test]
fn longer_ones_are_regular_packets() {
    let mut rig = Rig::new(&[]);
    assert_eq!(rig.offer(0, Mark::first(11, 1)), Ok(()));
    for _ in 0..10 {
        assert_eq!(rig.offer(0, Mark::follower(11, 1)), Ok(()));
    }
    assert_eq!(rig.r(), 0);
    assert_eq!(rig.count(QueueEventKind::TooLong), 1);
    assert_eq!(rig.count(QueueEventKind::Orphan), 0);
    // Without any room for super-packets all of them are.
    let mut rig = Rig::new(&[longest(1)]);
    assert_eq!(rig.offer(0, Mark::first(2, 1)), Ok(()));
    assert_eq!(rig.offer(0, Mark::follower(2, 1)), Ok(()));
    assert_eq!((rig.r(), rig.count(QueueEventKind::TooLong)), (0, 1));
}

#[test]
fn orphans_can_be_regular_packets() {
    let mut rig = Rig::new(&[packets(12), ("orphan", Value::Choice("regular"))]);
    for expected in [Ok(()), Ok(()), Ok(()), FULL] {
        assert_eq!(rig.offer(0, Mark::follower(5, 1)), expected);
    }
    assert_eq!(rig.count(QueueEventKind::Orphan), 4);
}

#[test]
fn tens_that_arrive_together() {
    // docs/design/super-packets.md#broken: size 100, M = L = 10, firsts without departures.
    for (alpha, admitted) in [(1.0, 10), (0.7, 13), (0.0, 91)] {
        let mut rig = Rig::new(&[weight(alpha), LAYOUT_C]);
        let ids: Vec<u16> = (0..200)
            .filter(|&id| rig.offer(0, Mark::first(10, id)).is_ok())
            .collect();
        assert_eq!(ids.len(), admitted, "alpha {alpha}");
        for id in &ids {
            for _ in 0..9 {
                let _ = rig.offer(0, Mark::follower(10, *id));
            }
        }
        assert_eq!(rig.q(), 100);
        let broken = rig.count(QueueEventKind::BrokenPromise);
        assert_eq!(broken as usize, 10 * admitted - 100, "alpha {alpha}");
    }
}

#[test]
fn one_first_of_sixty_three_closes_the_report_s_queue() {
    // docs/design/sp-hardened.md#why: with M = 63 an empty queue refuses everything until the promise expires.
    let mut rig = Rig::new(&[longest(63)]);
    assert_eq!(rig.offer(0, Mark::first(63, 1)), Ok(()));
    assert!(rig.dequeue().is_some());
    assert_eq!(rig.q(), 0);
    assert!(!rig.regular());
    rig.now = ms(399);
    assert!(!rig.regular());
    rig.now = ms(400);
    assert!(rig.regular());
}

#[test]
fn the_worst_overflow_of_all_reachable_states() {
    for (alpha, worst) in [(10, 0), (7, 38), (5, 90)] {
        // Every (Q, R) reachable by admissions of lengths up to 10, later packets and departures.
        const SIZE: i64 = 100;
        const M: i64 = 10;
        let mut seen = vec![vec![false; 400]; SIZE as usize + 1];
        let mut open = vec![(0_i64, 0_i64)];
        let mut most = 0;
        while let Some((q, r)) = open.pop() {
            let state = &mut seen[q as usize][r as usize];
            if *state {
                continue;
            }
            *state = true;
            most = most.max(q + r - SIZE);
            if q > 0 {
                open.push((q - 1, r));
            }
            if r > 0 {
                open.push(((q + 1).min(SIZE), r - 1)); // a full queue breaks the promise
            }
            if 10 * (SIZE - q) - alpha * r >= 10 * M {
                open.extend((1..=10).map(|length| (q + 1, r + length - 1)));
            }
        }
        assert_eq!(most, worst, "alpha {alpha}/10");
        // The discipline itself gets there: firsts that leave at once.
        let mut rig = Rig::new(&[weight(alpha as f64 / 10.0), LAYOUT_C]);
        let mut highest = 0;
        for round in 0..400_u16 {
            // The lengths that take R from one bound to the next exactly.
            let length = [10, 9, 2][usize::from(round) % 3];
            if rig.offer(0, Mark::first(length, round)).is_ok() {
                highest = highest.max(i64::from(rig.q() + rig.r()) - SIZE);
                assert!(rig.dequeue().is_some());
            }
        }
        assert!(highest <= worst);
        let mut best = highest;
        for target in 2..=10_u8 {
            // Fill up to the bound with `target` and cross it with a ten.
            let mut rig = Rig::new(&[weight(alpha as f64 / 10.0), LAYOUT_C]);
            let bound = (SIZE - M) * 10 / alpha;
            let mut id = 0;
            while i64::from(rig.r()) < bound {
                let step = (bound - i64::from(rig.r())).min(i64::from(target) - 1) as u8;
                assert_eq!(rig.offer(0, Mark::first(step + 1, id)), Ok(()));
                assert!(rig.dequeue().is_some());
                id += 1;
            }
            assert_eq!(rig.offer(0, Mark::first(10, id)), Ok(()));
            best = best.max(i64::from(rig.q() + rig.r()) - SIZE);
        }
        assert_eq!(best, worst);
    }
}

#[test]
fn tables_have_the_size_that_promises_need() {
    assert_eq!(most_reserved(100, 10, Need::Max, 700), Some(137));
    assert_eq!(most_reserved(1000, 10, Need::Max, 700), Some(1423));
    assert_eq!(most_reserved(100, 10, Need::Length(0), 1000), Some(99));
    assert_eq!(most_reserved(100, 10, Need::Max, 0), None);
    for size in [100, 1000] {
        let rig = Rig::new(&[packets(size)]);
        let bytes = rig.queue.state_bytes().expect("it is known");
        std::println!("limit {size} packets: {bytes} B of state");
        assert!(bytes < 100 * size as usize);
    }
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    let check = |settings: &[(&str, Value)]| {
        let entry = AnyQueue::entry("superpacket").expect("an entry of the registry");
        (entry.check)(&values(settings))
    };
    assert_eq!(check(&[]), Ok(()));
    assert_eq!(check(&[packets(10)]), Ok(()), "M = size");
    let bytes = ("limit", Value::Limit(Limit::Bytes(Bytes(5760))));
    assert_eq!(check(&[bytes]), Ok(()), "ten packets of an MTU of 576");
    for (settings, words) in [
        (
            &[packets(9)][..],
            "`max_length` is 10, but `limit` holds 9 packets",
        ),
        (
            &[
                packets(20),
                longest(18),
                BY_LENGTH,
                ("headroom", Value::Integer(3)),
            ],
            "`max_length + headroom` is 21",
        ),
        (&[("limit", Value::Limit(Limit::Unlimited))], "reserve room"),
        (&[packets(5_000_000)], "at most 4194304"),
        (&[packets(500), longest(64)], "layout B can announce at most 63"),
        (
            &[("ecn", Value::Flag(true)), ("layout", Value::Choice("A"))],
            "`ecn` needs layout B or C",
        ),
        (
            &[
                ("adaptive_epoch", Value::Flag(true)),
                ("state", Value::Choice("bloom")),
            ],
            "the filter does not know",
        ),
        (
            &[
                ("adaptive_epoch", Value::Flag(true)),
                ("rtt_epoch", Value::Flag(true)),
            ],
            "exclude each other",
        ),
    ] {
        let sentence = check(settings).expect_err("contradictory");
        assert!(sentence.contains(words), "{sentence}");
    }
}

/// Quick super-packets, whose packets come within 0.9 ms, make the epoch 4 ms; those of a slow host take 11 ms. The first of these is
/// forgotten when a part of it has come, and what has come says that there are such: the next ones are complete.
#[test]
fn an_adaptive_epoch_that_quick_super_packets_made_short_learns_of_slow_ones() {
    let mut rig = Rig::new(&[("adaptive_epoch", Value::Flag(true)), longest(10)]);
    let mut packets = Vec::new();
    let mut super_packet = |flow: u32, id: u16, from_us: u64, gap_us: u64| {
        packets.extend((0..10).map(|number| (from_us + number * gap_us, flow, id, number == 0)));
    };
    (0..400).for_each(|number| super_packet(0, number % 10, 10_000 * u64::from(number), 100));
    (0..10).for_each(|number| super_packet(2, number, 2_000_300 + 200_000 * u64::from(number), 1_200));
    packets.sort_unstable();
    let mut orphans = [0; 10];
    for (us, flow, id, first) in packets {
        rig.now = Instant::from_nanos(us * 1000);
        let mark = match first {
            true => Mark::first(10, id),
            false => Mark::follower(10, id),
        };
        let offered = rig.offer(flow, mark);
        assert!(
            flow == 2 || offered.is_ok(),
            "quick super-packets are never forgotten"
        );
        orphans[usize::from(id)] += u32::from(offered == ORPHAN);
        while rig.dequeue().is_some() {}
    }
    assert!(orphans[0] > 0, "an epoch of 4 ms is too short for 11 ms");
    assert_eq!(
        orphans[1..],
        [0; 9],
        "the epoch is long enough as soon as one was seen"
    );
}

/// A super-packet of ten packets within 0.1 ms makes the next epoch 1 ms, and the next super-packet comes 150 ms after the end of the long one.
#[test]
fn the_super_packet_that_makes_the_epoch_shorter_keeps_its_promises() {
    let mut rig = Rig::new(&[("adaptive_epoch", Value::Flag(true)), longest(10)]);
    for (id, from_us, gap_us) in [(1, 10_000, 11), (2, 350_000, 12)] {
        for number in 0..10 {
            rig.now = Instant::from_nanos((from_us + number * gap_us) * 1000);
            let mark = match number {
                0 => Mark::first(10, id),
                _ => Mark::follower(10, id),
            };
            assert_eq!(rig.offer(0, mark), Ok(()), "packet {number} of {id}");
            assert!(rig.dequeue().is_some());
        }
    }
    assert_eq!(rig.queue.epoch(), Duration::from_millis(1));
    assert_eq!(rig.count(QueueEventKind::Expired), 0);
}

#[test]
fn a_limit_in_bytes_counts_room_in_packets_of_the_mtu() {
    let limit = Limit::Bytes(Bytes(15_000));
    let mut rig = Rig::new(&[("limit", Value::Limit(limit)), longest(4), BY_LENGTH, weight(1.0)]);
    assert_eq!(rig.offer(0, Mark::first(4, 1)), Ok(()));
    assert_eq!(rig.offer(1, Mark::first(4, 1)), Ok(()));
    assert!(rig.regular());
    assert_eq!(rig.offer(2, Mark::first(4, 1)), FULL);
    let small = marked(Layout::LOCAL, 3, Mark::REGULAR, 100);
    assert_eq!(rig.offer_packet(small), Ok(()), "the tenth packet of the MTU");
    assert_eq!(rig.offer_packet(small), FULL, "the rest is promised");
    for flow in [0, 0, 0, 1, 1, 1] {
        assert_eq!(rig.offer(flow, Mark::follower(4, 1)), Ok(()));
    }
    assert_eq!(rig.count(QueueEventKind::BrokenPromise), 0);
}

/// Nine places of the MTU are taken, and 1400 bytes of the tenth are free.
#[test]
fn a_limit_in_bytes_takes_what_fits_where_only_the_packet_s_own_place_is_asked_for() {
    let limit = ("limit", Value::Limit(Limit::Bytes(Bytes(15_000))));
    let red = ("red", Value::Choice("queue"));
    let never = ("min_threshold", Value::Number(1000.0));
    let small = |len| marked(Layout::LOCAL, 0, Mark::REGULAR, len);
    for settings in [
        &[limit, BY_LONGEST][..],
        &[limit, BY_LENGTH],
        &[limit, longest(1)],
        &[limit, red, never],
    ] {
        let mut rig = Rig::new(settings);
        for _ in 0..9 {
            assert_eq!(rig.offer_packet(small(1500)), Ok(()));
        }
        assert_eq!(rig.offer_packet(small(100)), Ok(()));
        assert_eq!(rig.queue.backlog().bytes, Bytes(13_600));
        assert_eq!(rig.offer_packet(small(1500)), FULL);
        assert_eq!(rig.offer_packet(small(40)), Ok(()));
        assert_eq!(rig.offer_packet(small(1361)), FULL);
        assert_eq!(rig.offer_packet(small(1360)), Ok(()), "to the last byte");
    }
    // A promised place is a whole MTU.
    let mut rig = Rig::new(&[limit, BY_LENGTH, weight(1.0)]);
    assert_eq!(rig.offer(0, Mark::first(2, 1)), Ok(()));
    for _ in 0..7 {
        assert_eq!(rig.offer_packet(small(1500)), Ok(()));
    }
    assert_eq!(rig.offer_packet(small(100)), Ok(()));
    assert_eq!(rig.offer_packet(small(40)), FULL);
    assert_eq!(rig.offer(0, Mark::follower(2, 1)), Ok(()));
    assert_eq!(rig.offer_packet(small(40)), Ok(()));
}

#[test]
fn the_filter_lets_a_host_use_its_own_allowance_only() {
    let mut rig = Rig::new(&[("state", Value::Choice("bloom"))]);
    assert_eq!(rig.offer(0, Mark::first(4, 1)), Ok(()));
    assert_eq!(
        rig.offer(1, Mark::first(3, 1)),
        Ok(()),
        "another flow of the same host"
    );
    assert_eq!(rig.offer(2, Mark::first(3, 1)), Ok(()), "another host");
    assert_eq!(rig.r(), 7);
    // Flow 0 takes what flow 1 was promised, but no more.
    for _ in 0..5 {
        assert_eq!(rig.offer(0, Mark::follower(4, 1)), Ok(()));
    }
    assert_eq!(rig.offer(0, Mark::follower(4, 1)), ORPHAN);
    assert_eq!(rig.r(), 2);
    assert_eq!(rig.offer(2, Mark::follower(3, 1).ending()), Ok(()));
    assert_eq!(rig.r(), 1, "the filter gives back one");
    rig.now = ms(1_000);
    assert!(rig.regular());
    assert_eq!((rig.r(), rig.count(QueueEventKind::Expired)), (0, 1));
}

#[test]
fn red_on_the_queue_breaks_promises_and_red_on_promises_keeps_them() {
    let mut broken = [0; 2];
    for (at, variant) in ["queue", "promised"].into_iter().enumerate() {
        let mut rig = Rig::new(&[
            ("red", Value::Choice(variant)),
            ("red_weight", Value::Number(0.02)),
            weight(1.0),
            BY_LENGTH,
            LAYOUT_C,
        ]);
        let mut rng = Rng::from_seed(5);
        let (mut pending, mut id, mut admitted): (Vec<(u16, u8)>, u16, u32) = (Vec::new(), 0, 0);
        for _ in 0..200_000 {
            rig.now += Duration::from_micros(12);
            match rng.below(10) {
                0 if pending.len() < 60 => {
                    id = id.wrapping_add(1);
                    if rig.offer(0, Mark::first(10, id)).is_ok() {
                        admitted += 1;
                        pending.push((id, 9));
                    }
                }
                0..=5 if !pending.is_empty() => {
                    let one = rng.below(pending.len() as u64) as usize;
                    let _ = rig.offer(0, Mark::follower(10, pending[one].0));
                    pending[one].1 -= 1;
                    if pending[one].1 == 0 {
                        pending.swap_remove(one);
                    }
                }
                _ => drop(rig.dequeue()),
            }
        }
        assert!(admitted > 1000);
        assert!(rig.count(QueueEventKind::Refused) > 100, "RED refuses");
        broken[at] = rig.count(QueueEventKind::BrokenPromise);
        std::println!("red = {variant}: {admitted} admitted, {} broken", broken[at]);
    }
    assert!(broken[0] > 100, "{broken:?}");
    assert_eq!(broken[1], 0);
}

/// Promises that are not redeemed end with their epochs, and RED's average decays from then on: found by a run in which one lone first had switched that off for good.
#[test]
fn red_on_promises_forgets_an_old_burst_after_a_lone_first() {
    for lone in [false, true] {
        let mut rig = Rig::new(&[
            ("red", Value::Choice("promised")),
            ("red_weight", Value::Number(0.05)),
            ("min_threshold", Value::Number(1.0)),
            ("max_threshold", Value::Number(2.0)),
            LAYOUT_C,
        ]);
        if lone {
            assert!(rig.offer(1, Mark::first(10, 1)).is_ok());
        }
        for _ in 0..80 {
            rig.now += Duration::from_micros(12);
            let _ = rig.regular();
        }
        assert!(rig.q() > 1);
        while rig.q() > 0 {
            rig.now += Duration::from_micros(120);
            rig.dequeue().expect("one waits");
        }
        rig.now += Duration::from_secs(100);
        let passed = (0..30)
            .filter(|_| {
                let passed = rig.regular();
                rig.now += Duration::from_millis(1);
                let _ = rig.dequeue();
                rig.now += Duration::from_secs(1);
                passed
            })
            .count();
        assert_eq!(passed, 30, "a lone first: {lone}");
    }
}

#[test]
fn red_marks_what_can_carry_a_mark_and_drops_the_rest() {
    for (variant, ecn, capable) in [
        ("queue", true, true),
        ("promised", true, true),
        ("queue", true, false),
        ("queue", false, true),
    ] {
        let mut rig = Rig::new(&[
            ("red", Value::Choice(variant)),
            ("ecn", Value::Flag(ecn)),
            ("red_weight", Value::Number(0.1)),
            ("min_threshold", Value::Number(5.0)),
            ("max_threshold", Value::Number(80.0)),
            BY_LENGTH,
        ]);
        let (mut early, mut seen) = (0, 0);
        for step in 0..20_000 {
            rig.now += Duration::from_micros(12);
            let mut packet = marked(Layout::LOCAL, 0, Mark::REGULAR, 1500);
            if capable {
                packet.segment.set_ecn(Ecn::Ect0);
            }
            early += u64::from(rig.offer_packet(packet) == Err(DropReason::Early));
            if step >= 40 {
                let packet = rig.dequeue().expect("forty wait");
                seen += u64::from(packet.segment.ecn() == Ecn::Ce);
                if early > 0 {
                    // Keeps the queue where it is.
                    rig.offer_packet(marked(Layout::LOCAL, 0, Mark::REGULAR, 1500))
                        .ok();
                }
            }
        }
        let marks = rig.count(QueueEventKind::Marked);
        std::println!("red = {variant}, ecn {ecn}, capable {capable}: {marks} marked, {early} dropped early");
        assert_eq!(marks > 500, ecn && capable);
        assert_eq!(early > 100, !(ecn && capable));
        assert!(
            seen <= marks && marks - seen < 100,
            "what is marked leaves with its mark"
        );
    }
}

#[test]
fn a_full_table_refuses_and_loses_nothing() {
    // Weight 0 bounds nothing but the table does: 16 * 20 + 256 entries.
    let mut rig = Rig::new(&[packets(20), longest(2), weight(0.0), LAYOUT_C]);
    for id in 0..600 {
        let admitted = rig.offer(0, Mark::first(2, id)).is_ok();
        assert_eq!(admitted, id < 576);
        let _ = rig.dequeue();
    }
    assert_eq!((rig.r(), rig.count(QueueEventKind::Refused)), (576, 24));
    rig.queue.promises.check();
}
