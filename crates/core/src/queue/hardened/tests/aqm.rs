//! Super-packets under active queue management (docs/design/sp-hardened.md#aqm).

use super::super::super::{CoDel, Red};
use super::*;
use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

/// Ten senders behind one link of 100 Mbit/s, 20 ms round trip: each sends its window at once, adds a packet when all came
/// through and halves the window when one was lost or marked.
struct Loop<Q> {
    bench: Bench<Q>,
    senders: Vec<Sender>,
    /// When: sender begins a round (`None`) or sends this member.
    events: BinaryHeap<Reverse<(u64, u32, Option<u32>)>>,
    grouped: bool,
    ect: bool,
    free_at: u64,
    waited: u64,
    sent: u64,
    lost: u64,
    /// Packets of admitted super-packets that were dropped after they were queued.
    broken: u64,
}

#[derive(Clone, Debug)]
struct Sender {
    window: u32,
    outstanding: u32,
    signalled: bool,
    id: u16,
}

const PACKET_NS: u64 = 120_000;
const RTT_NS: u64 = 20_000_000;
const END_NS: u64 = 60_000_000_000;

impl<Q: QueueDiscipline> Loop<Q> {
    /// Mean wait in milliseconds, use of the link, share of packets lost.
    fn run(queue: Q, grouped: bool, ect: bool) -> (f64, f64, f64) {
        let mut all = Loop {
            bench: Bench::new(queue),
            senders: alloc::vec![Sender { window: 10, outstanding: 0, signalled: false, id: 0 }; 10],
            events: (0..10)
                .map(|sender| Reverse((u64::from(sender) * 2_000_000, sender, None)))
                .collect(),
            grouped,
            ect,
            free_at: 0,
            waited: 0,
            sent: 0,
            lost: 0,
            broken: 0,
        };
        loop {
            let Some(Reverse((now, sender, member))) = all.events.pop() else {
                // Everybody waits for what is in the queue.
                all.serve(all.free_at);
                continue;
            };
            if now > END_NS {
                break;
            }
            all.serve(now);
            match member {
                None => all.begin(now, sender),
                Some(member) => all.send(now, sender, member),
            }
        }
        assert_eq!(all.broken, 0, "members with a promise were dropped");
        (
            all.waited as f64 / all.sent as f64 / 1e6,
            (all.sent * PACKET_NS) as f64 / END_NS as f64,
            all.lost as f64 / (all.lost + all.sent) as f64,
        )
    }

    fn begin(&mut self, now: u64, sender: u32) {
        let own = &mut self.senders[sender as usize];
        own.signalled = false;
        own.outstanding = own.window;
        for member in 0..own.window {
            self.events
                .push(Reverse((now + u64::from(member) * 12_000, sender, Some(member))));
        }
    }

    fn send(&mut self, now: u64, sender: u32, member: u32) {
        let own = &mut self.senders[sender as usize];
        // Groups of ten; what is left is one more group.
        let length = 10.min(own.window - member / 10 * 10) as u8;
        let mut mark = Mark::REGULAR;
        if self.grouped && length > 1 {
            if member.is_multiple_of(10) {
                own.id = (own.id + 1) & 255;
                mark = Mark::first(length, own.id);
            } else {
                mark = Mark::follower(length, own.id);
            }
        }
        let mut packet = packet(sender, 0, mark);
        if self.ect {
            packet.segment.set_ecn(Ecn::Ect0);
        }
        self.free_at = self.free_at.max(now);
        self.bench.enqueue(now, sender as u16, packet);
        self.after_drops(now, false);
        self.serve(now);
    }

    fn serve(&mut self, until: u64) {
        while self.free_at <= until && self.bench.queue.backlog().packets > 0 {
            let start = self.free_at;
            let packet = self.bench.dequeue(start);
            self.after_drops(start, true);
            let Some(packet) = packet else { return };
            self.waited += start - packet.enqueued_at.as_nanos();
            self.sent += 1;
            self.free_at = start + PACKET_NS;
            let marked = packet.segment.ecn() == Ecn::Ce;
            self.outcome(start, packet.flow.0, marked);
        }
    }

    fn after_drops(&mut self, now: u64, departing: bool) {
        for (packet, _) in core::mem::take(&mut self.bench.drops) {
            self.lost += 1;
            // With one queue the members of a super-packet are downgraded together, so marked packets that were queued as
            // regular ones may be dropped; `Deferred` speaks of the others.
            self.broken += u64::from(departing && self.bench.saw(QueueEventKind::BrokenPromise));
            self.outcome(now, packet.flow.0, true);
        }
    }

    fn outcome(&mut self, now: u64, sender: u32, signalled: bool) {
        let own = &mut self.senders[sender as usize];
        own.signalled |= signalled;
        own.outstanding -= 1;
        if own.outstanding == 0 {
            own.window = if own.signalled {
                (own.window / 2).max(1)
            } else {
                own.window + 1
            };
            self.events.push(Reverse((now + RTT_NS, sender, None)));
        }
    }
}

fn hardened(aqm: &'static str) -> SpH {
    let given = [
        ("limit", Value::Limit(Limit::Packets(250))),
        ("aqm", Value::Choice(aqm)),
        ("max_epoch", Value::Duration(Duration::from_millis(40))),
    ];
    SpH::new(&values(SpH::PARAMETERS, &given), &AQM_LINK)
}

const AQM_LINK: LinkContext = LinkContext {
    rate: Rate(100_000_000),
    ..LINK
};

#[test]
fn the_delay_stays_near_that_of_the_management_alone() {
    let limit = ("limit", Value::Limit(Limit::Packets(250)));
    for ect in [false, true] {
        let given = [limit, ("ecn", Value::Flag(true))];
        let red = Loop::run(Red::new(&values(Red::PARAMETERS, &given), &AQM_LINK), false, ect);
        let codel = Loop::run(
            CoDel::new(&values(CoDel::PARAMETERS, &given), &AQM_LINK),
            false,
            ect,
        );
        for (aqm, alone) in [("red", red), ("codel", codel)] {
            let with = Loop::run(hardened(aqm), true, ect);
            println!(
                "{aqm:<5} ect {ect:<5}: alone {:5.2} ms, use {:.3}, loss {:.4}; with super-packets {:5.2} ms, {:.3}, {:.4}",
                alone.0, alone.1, alone.2, with.0, with.1, with.2
            );
            assert!(
                with.0 <= 1.2 * alone.0,
                "{aqm}, ECT {ect}: {} ms, alone {} ms",
                with.0,
                alone.0
            );
        }
        let none = Loop::run(hardened("none"), true, ect);
        println!(
            "none  ect {ect:<5}: with super-packets {:5.2} ms, {:.3}, {:.4}",
            none.0, none.1, none.2
        );
        // The managements do something at all.
        assert!(none.0 > 1.5 * codel.0);
    }
}

#[test]
fn what_red_drops_it_drops_as_a_whole_and_it_spares_what_was_promised() {
    // RED that drops everything it may.
    let given = [
        ("aqm", Value::Choice("red")),
        ("denial", Value::Choice("drop")),
        ("min_threshold", Value::Number(0.0)),
        ("max_threshold", Value::Number(0.0)),
        ("max_probability", Value::Number(1.0)),
    ];
    let mut bench = Bench::new(SpH::new(&values(SpH::PARAMETERS, &given), &LINK));
    assert!(!bench.enqueue(0, 0, packet(0, 0, Mark::REGULAR)));
    assert!(!bench.enqueue(0, 0, packet(0, 1, Mark::first(3, 1))));
    assert_eq!(bench.drops[0].1, DropReason::Early);
    assert!(bench.saw(QueueEventKind::Refused));
    assert!(!bench.enqueue(0, 0, packet(0, 2, Mark::follower(3, 1))));
    assert_eq!(
        bench.drops[0].1,
        DropReason::Full,
        "its follower finds itself denied"
    );
    // A member of nothing is asked like any other.
    assert!(!bench.enqueue(0, 0, packet(0, 3, Mark::follower(3, 9))));
    assert_eq!(bench.drops[0].1, DropReason::Early);
    // A super-packet that is in already is spared.
    let plain = values(SpH::PARAMETERS, &given[..2]);
    let mut patient = SpH::new(&plain, &LINK);
    core::mem::swap(&mut bench.queue, &mut patient);
    assert!(bench.enqueue(0, 0, packet(0, 4, Mark::first(3, 2))));
    bench.queue.aqm = patient.aqm;
    assert!(bench.enqueue(0, 0, packet(0, 5, Mark::follower(3, 2))));
    assert!(!bench.enqueue(0, 0, packet(0, 6, Mark::REGULAR)));
    assert!(bench.enqueue(0, 0, packet(0, 7, Mark::follower(3, 2))));
}

#[test]
fn codel_marks_or_defers_what_was_promised_and_refuses_a_later_first() {
    for ect in [false, true] {
        let mut bench = Bench::new(hardened("codel"));
        let member = |bench: &mut Bench<SpH>, now: u64, number: u32| {
            let mark = if number.is_multiple_of(10) {
                Mark::first(10, (number / 10) as u16)
            } else {
                Mark::follower(10, (number / 10) as u16)
            };
            let mut packet = packet(number / 10, number, mark);
            if ect {
                packet.segment.set_ecn(Ecn::Ect0);
            }
            bench.enqueue(now, 0, packet)
        };
        for number in 0..50 {
            assert!(member(&mut bench, 0, number));
        }
        let (mut deferred, mut marked) = (0, 0);
        for number in 0..30_u64 {
            // Each waits 10 ms more: beyond target and interval soon.
            let packet = bench.dequeue(number * 10_000_000).expect("nothing was dropped");
            assert_eq!(packet.segment.seq.0, number as u32);
            deferred += u32::from(bench.saw(QueueEventKind::Deferred));
            marked += u32::from(packet.segment.ecn() == Ecn::Ce);
        }
        assert_eq!((deferred > 0, marked > 0), (!ect, ect));
        // The drop that is owed falls on the next first, not on a regular packet, and once.
        assert!(bench.enqueue(300_000_000, 0, packet(30, 50, Mark::REGULAR)));
        assert_eq!(member(&mut bench, 300_000_000, 60), ect);
        assert!(
            member(&mut bench, 300_000_000, 61),
            "its follower is a regular packet"
        );
        assert!(member(&mut bench, 300_000_000, 70));
    }
}

/// A drop that is owed for a packet without ECN passes by the firsts with ECN, which keep their places (RFC 3168 5: what can be marked is not dropped), and
/// falls on the next first without.
#[test]
fn a_first_that_can_be_marked_does_not_pay_for_one_that_cannot() {
    let ect = |flow: u32, number: u32, mark: Mark| {
        let mut packet = packet(flow, number, mark);
        packet.segment.set_ecn(Ecn::Ect0);
        packet
    };
    let owing = |ecn: bool| {
        let given = [
            ("limit", Value::Limit(Limit::Packets(250))),
            ("aqm", Value::Choice("codel")),
            ("ecn", Value::Flag(ecn)),
        ];
        let mut bench = Bench::new(SpH::new(&values(SpH::PARAMETERS, &given), &AQM_LINK));
        assert!(drained_until(&mut bench, 0, 20) > 0, "a packet was spared");
        bench
    };
    let now = 300_000_000;
    let mut bench = owing(true);
    for id in 1..4 {
        assert!(bench.enqueue(now, 0, ect(8, u32::from(id), Mark::first(3, id))));
        assert!(!bench.saw(QueueEventKind::Marked));
        let reserved = bench.queue.ledger.reserved();
        assert_eq!(reserved, 2 * u64::from(id), "its followers have their places");
    }
    assert!(!bench.enqueue(now, 0, packet(9, 0, Mark::first(3, 4))));
    assert_eq!(bench.drops[0].1, DropReason::Early);
    assert!(bench.enqueue(now, 0, packet(9, 1, Mark::first(3, 5))), "once");
    // Where nothing is marked, every first pays.
    let mut bench = owing(false);
    assert!(!bench.enqueue(now, 0, ect(8, 0, Mark::first(3, 1))));
    assert_eq!(bench.drops[0].1, DropReason::Early);
}

/// Fifty packets of super-packets that come at once and leave one every 10 ms, until `left` still wait; the last spared one, in ms.
fn drained_until(bench: &mut Bench<SpH>, begin: u64, left: u32) -> u64 {
    for number in 0..50 {
        let mark = if number % 10 == 0 {
            Mark::first(10, (number / 10) as u16)
        } else {
            Mark::follower(10, (number / 10) as u16)
        };
        assert!(bench.enqueue(begin * 1_000_000, 0, packet(number / 10, number, mark)));
    }
    let mut spared = 0;
    for now in (begin..).step_by(10).take(50 - left as usize) {
        assert!(bench.dequeue(now * 1_000_000).is_some());
        if bench.saw(QueueEventKind::Deferred) {
            spared = now;
        }
    }
    assert_eq!(bench.queue.backlog().packets, left);
    spared
}

/// RFC 8289 5.4: nothing is dropped while at most one packet waits.
#[test]
fn a_drop_owed_by_codel_ends_with_an_empty_queue() {
    let mut bench = Bench::new(hardened("codel"));
    let spared = drained_until(&mut bench, 9_520, 0);
    assert!((9_950..=10_010).contains(&spared), "{spared} ms");
    let minutes_later = 600_000_000_000;
    for number in 0..10 {
        let mark = if number == 0 {
            Mark::first(10, 9)
        } else {
            Mark::follower(10, 9)
        };
        assert!(bench.enqueue(minutes_later, 0, packet(9, number, mark)));
        assert!(bench.dequeue(minutes_later).is_some());
    }
}

/// RFC 8289 5.4: nothing is dropped while the wait is below the target.
#[test]
fn a_drop_owed_by_codel_ends_when_the_wait_is_below_the_target() {
    let mut bench = Bench::new(hardened("codel"));
    assert!(drained_until(&mut bench, 0, 20) > 0);
    for number in 0..4 {
        assert!(bench.enqueue(300_000_000, 0, packet(8, number, Mark::REGULAR)));
    }
    while bench.queue.backlog().packets > 4 {
        assert!(bench.dequeue(300_000_000).is_some());
    }
    assert!(bench.dequeue(301_000_000).is_some());
    assert_eq!(bench.queue.backlog().packets, 3);
    assert!(bench.enqueue(301_000_000, 0, packet(9, 0, Mark::first(10, 9))));
}

#[test]
fn a_mark_is_counted_only_of_a_packet_that_is_queued() {
    // 1 Mbit/s, so the average follows the queue within some hundred packets; most of what finds the queue full is chosen by RED.
    let link = LinkContext {
        rate: Rate(1_000_000),
        ..LINK
    };
    let given = [
        ("limit", Value::Limit(Limit::Packets(40))),
        ("aqm", Value::Choice("red")),
        ("min_threshold", Value::Number(5.0)),
        ("max_threshold", Value::Number(60.0)),
        ("max_probability", Value::Number(1.0)),
    ];
    let mut bench = Bench::new(SpH::new(&values(SpH::PARAMETERS, &given), &link));
    let (mut reported, mut marked, mut dropped) = (0, 0, 0);
    for number in 0..3000 {
        let mut packet = packet(number % 40, number, Mark::REGULAR);
        packet.segment.set_ecn(Ecn::Ect0);
        dropped += usize::from(!bench.enqueue(0, 0, packet));
        reported += usize::from(bench.saw(QueueEventKind::Marked));
        // One leaves for ten that come.
        if number % 10 == 0 {
            marked += usize::from(
                bench
                    .dequeue(0)
                    .is_some_and(|packet| packet.segment.ecn() == Ecn::Ce),
            );
        }
    }
    while let Some(packet) = bench.dequeue(0) {
        marked += usize::from(packet.segment.ecn() == Ecn::Ce);
    }
    assert!(marked > 0 && dropped > 1000, "{marked} {dropped}");
    assert_eq!(reported, marked);
}
