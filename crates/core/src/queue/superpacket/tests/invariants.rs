//! I1 to I5 of docs/design/super-packets.md, at least a million calls each.

use super::*;
use crate::queue::DropTail;
use std::collections::HashMap;

const CALLS: u64 = 1_000_000;

/// One random call: a packet or a departure, with few flows and identifiers so that they meet.
fn call(rig: &mut Rig, rng: &mut Rng, longest: u64, step: u64) -> Result<(), DropReason> {
    rig.now += Duration::from_nanos(if rng.below(300) == 0 {
        rng.below(300 * step)
    } else {
        rng.below(step)
    });
    if rng.below(10) < 4 {
        let _ = rig.dequeue();
        return Ok(());
    }
    let (length, id) = (2 + rng.below(longest - 1) as u8, rng.below(6) as u16);
    let mark = match rng.below(8) {
        0 => Mark::REGULAR,
        1 | 2 => Mark::first(length, id),
        3 => Mark::follower(length, id).ending(),
        _ => Mark::follower(length, id),
    };
    rig.offer(rng.below(u64::from(FLOWS)) as u32, mark)
}

#[test]
fn i1_and_i2_the_counter_is_the_sum_and_the_tables_suffice() {
    for state in ["table", "bloom"] {
        let mut most = 0;
        for case in 0..50 {
            let mut rng = Rng::from_seed(100 + case);
            let size = 12 + rng.below(30) as u32;
            let alpha = 0.1 + 0.1 * rng.below(10) as f64;
            let mut rig = Rig::new(&[
                packets(size),
                weight(alpha),
                ("state", Value::Choice(state)),
                ("epoch", Value::Duration(Duration::from_micros(500))),
            ]);
            let bound = most_reserved(size, 10, Need::Max, thousandths(&values(&[weight(alpha)])));
            let bound = bound.expect("a weight above 0");
            for _ in 0..CALLS / 50 {
                let _ = call(&mut rig, &mut rng, 10, 10_000);
                rig.queue.promises.check();
                let (entries, reserved) = (rig.queue.promises.entries(), rig.r());
                assert!(entries <= reserved && reserved <= bound);
                most = most.max(entries);
            }
            // R returns to 0 after two epochs of silence.
            rig.now += Duration::from_millis(1);
            let _ = rig.regular();
            assert_eq!(rig.r(), 0);
        }
        std::println!("{state}: at most {most} entries");
        assert!(most > if state == "table" { 20 } else { 4 });
    }
}

#[test]
fn i3_strict_reservations_are_never_broken() {
    for (name, settings) in [
        ("length", &[weight(1.0), BY_LENGTH][..]),
        ("max_length", &[weight(1.0)]),
        ("longest", &[weight(1.0), BY_LONGEST]),
    ] {
        let mut fullest = 0;
        for case in 0..20 {
            let mut rng = Rng::from_seed(200 + case);
            let size = 10 + rng.below(90) as u32;
            let mut all = settings.to_vec();
            all.push(packets(size));
            all.push(("epoch", Value::Duration(Duration::from_millis(2))));
            let mut rig = Rig::new(&all);
            for _ in 0..CALLS / 20 {
                let _ = call(&mut rig, &mut rng, 10, 10_000);
                assert!(rig.q() + rig.r() <= size);
                fullest = fullest.max(100 * (rig.q() + rig.r()) / size);
            }
            assert_eq!(rig.count(QueueEventKind::BrokenPromise), 0);
            assert!(rig.count(QueueEventKind::Refused) > 0);
        }
        assert_eq!(fullest, 100, "{name}: the bound is met");
    }
    // In bytes: no promise is broken while packets are no longer than the MTU.
    let mut rng = Rng::from_seed(300);
    let limit = Limit::Bytes(Bytes(40_000));
    let mut rig = Rig::new(&[weight(1.0), BY_LENGTH, ("limit", Value::Limit(limit))]);
    for _ in 0..CALLS {
        let _ = call(&mut rig, &mut rng, 10, 10_000);
        let backlog = rig.queue.backlog();
        assert!(backlog.bytes.0 + 1500 * u64::from(rig.r()) <= 40_000);
    }
    assert_eq!(rig.count(QueueEventKind::BrokenPromise), 0);
}

#[test]
fn i4_all_or_nothing() {
    let mut rng = Rng::from_seed(400);
    let mut rig = Rig::new(&[
        weight(1.0),
        BY_LENGTH,
        LAYOUT_C,
        longest(40),
        ("epoch", Value::Duration(Duration::from_secs(8))),
    ]);
    // Identifier to flow, length, sent, delivered.
    let mut open: Vec<(u16, u32, u8, u8, u8)> = Vec::new();
    let (mut whole, mut none, mut id) = (0_u64, 0_u64, 0_u16);
    for _ in 0..CALLS {
        rig.now += Duration::from_nanos(rng.below(20_000));
        let action = rng.below(100);
        if action < 52 {
            let _ = rig.dequeue();
        } else if action < 58 && open.len() < 40 {
            id = id.wrapping_add(1);
            let (flow, length) = (
                rng.below(u64::from(FLOWS)) as u32,
                2 + rng.below(39).min(rng.below(39)) as u8,
            );
            let delivered = u8::from(rig.offer(flow, Mark::first(length, id)).is_ok());
            open.push((id, flow, length, 1, delivered));
        } else if action < 62 {
            let _ = rig.regular();
        } else if !open.is_empty() {
            let at = rng.below(open.len() as u64) as usize;
            let (id, flow, length, sent, delivered) = open[at];
            let delivered = delivered + u8::from(rig.offer(flow, Mark::follower(length, id)).is_ok());
            open[at] = (id, flow, length, sent + 1, delivered);
            if sent + 1 == length {
                assert!(
                    delivered == 0 || delivered == length,
                    "{delivered} of {length} delivered"
                );
                whole += u64::from(delivered > 0);
                none += u64::from(delivered == 0);
                open.swap_remove(at);
            }
        }
    }
    std::println!("{whole} delivered whole, {none} not at all");
    assert!(whole > 5_000 && none > 5_000);
}

#[test]
fn i5_refusal_does_not_depend_on_the_length() {
    for need in ["max_length", "longest"] {
        refusal_is_equal(need);
    }
}

fn refusal_is_equal(need: &'static str) {
    let mut rng = Rng::from_seed(500);
    let epoch = ("epoch", Value::Duration(Duration::from_millis(10)));
    let mut rig = Rig::new(&[LAYOUT_C, epoch, ("need", Value::Choice(need))]);
    let mut pending: Vec<(u16, u8, u8)> = Vec::new();
    // Offered and refused by length.
    let mut counts: HashMap<u8, (u64, u64)> = HashMap::new();
    let (mut firsts, mut id) = (0_u64, 0_u16);
    while firsts < CALLS {
        rig.now += Duration::from_nanos(2_000);
        let action = rng.below(64);
        if action < 30 {
            let _ = rig.dequeue();
        } else if action < 36 {
            // Memoryless arrivals of lengths that nothing in the queue knows.
            let length = 2 + rng.below(9) as u8;
            id = id.wrapping_add(1);
            let refused = rig.offer(0, Mark::first(length, id)).is_err();
            let (offered, lost) = counts.entry(length).or_default();
            *offered += 1;
            *lost += u64::from(refused);
            firsts += 1;
            if !refused {
                pending.push((id, length, length - 1));
            }
        } else if !pending.is_empty() {
            let at = rng.below(pending.len() as u64) as usize;
            let (id, length, left) = pending[at];
            let _ = rig.offer(0, Mark::follower(length, id));
            pending[at].2 = left - 1;
            if left == 1 {
                pending.swap_remove(at);
            }
        }
    }
    let lost: u64 = counts.values().map(|(_, lost)| lost).sum();
    let share = lost as f64 / firsts as f64;
    let chi_square: f64 = counts
        .values()
        .map(|&(offered, lost)| {
            let expected = offered as f64 * share;
            (lost as f64 - expected).powi(2) / (expected * (1.0 - share))
        })
        .sum();
    std::println!(
        "{need}: {:.1} % refused, chi-square {chi_square:.1} (8 degrees)",
        100.0 * share
    );
    assert!(share > 0.05 && share < 0.9);
    assert!(chi_square < 26.12, "0.1 % of fair runs exceed this");
}

#[test]
fn without_super_packets_it_is_drop_tail() {
    for case in 0..20 {
        let mut rng = Rng::from_seed(600 + case);
        let size = 1 + rng.below(100) as u32;
        let limit = match case % 4 {
            0 | 1 => Limit::Packets(size),
            _ => Limit::Bytes(Bytes(1500 + rng.below(150_000))),
        };
        let limit = ("limit", Value::Limit(limit));
        // Nothing is reserved for super-packets that nobody sends.
        let none_expected = [limit, longest(1), weight(1.0)];
        let none_seen = [limit, BY_LONGEST, weight(1.0)];
        let mut rig = Rig::new(if case % 2 == 0 { &none_expected } else { &none_seen });
        let mut other = Values::defaults(DropTail::PARAMETERS);
        other.set("limit", limit.1).expect("a limit");
        let link = LinkContext {
            mtu: 1500,
            rate: Rate(1),
            framing: 0,
            delay: Duration::ZERO,
            seed: 0,
        };
        let mut drop_tail = DropTail::new(&other, &link);
        let (mut drops, mut events) = (Vec::new(), Vec::new());
        for _ in 0..CALLS / 20 {
            rig.now += Duration::from_nanos(rng.below(100_000_000));
            let mut context = QueueContext {
                flows: &rig.flows,
                ingress: 0,
                drops: &mut drops,
                events: &mut events,
            };
            if rng.below(2) == 0 {
                let theirs = drop_tail.dequeue(rig.now, &mut context);
                assert_eq!(rig.dequeue(), theirs);
            } else {
                let len = 40 + rng.below(1461) as u32;
                let mut packet = marked(Layout::LOCAL, rng.below(8) as u32, Mark::REGULAR, len);
                packet.segment.seq = SeqNumber(rig.number);
                drop_tail.enqueue(rig.now, packet, &mut context);
                let theirs = drops.pop().map_or(Ok(()), |(_, reason)| Err(reason));
                assert_eq!(rig.offer_packet(packet), theirs);
            }
        }
    }
}
