//! P1 to P5, I3 and I4, and the edges of the design.

use super::*;
use crate::queue::hardened::credit::GAIN;
use crate::queue::hardened::generations::Entry;
use alloc::format;

/// What one source did in the test's own books, in eighths of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Books {
    debited: i64,
    refunded: i64,
    useful: i64,
}

#[test]
fn what_can_be_proved_holds_over_a_million_operations() {
    const CREDIT: i64 = 40;
    let values = small(30, 10, CREDIT as u64);
    let mut bench = Bench::new(SpH::new(&values, &LINK));
    let mut traffic = Traffic::new(99);
    let mut pooled: BTreeMap<u64, bool> = BTreeMap::new();
    let mut books = [Books::default(); HOSTS as usize];
    let mut marks = [Books::default(); HOSTS as usize];
    let (mut drops_of_regular, mut most_reserved) = (0, 0);
    for step in 0..1_000_000 {
        let Operation::Enqueue { flow, port, mark } = traffic.next() else {
            bench.dequeue(traffic.now);
            continue;
        };
        let packet = packet(flow, step, mark);
        let now = traffic.now;
        let key = bench.flows.key(FlowId(flow));
        let name = bench.queue.ledger.fingerprint(key, mark.id);
        // The state before the call, at the time of the call.
        bench.queue.ledger.clock.rotate(Instant::from_nanos(now));
        let epoch = bench.queue.ledger.clock.epoch;
        let reserved = usize::from(bench.queue.ledger.reserved.total(epoch));
        let kept = usize::from(bench.queue.ledger.clock.longest_redeemed()).min(10);
        let before = bench.queue.packets.len() + reserved.max(kept);
        let queued = bench.enqueue(now, port, packet);
        let promised = queued && bench.queue.packets.last() == Some(&true);
        assert!(!bench.saw(QueueEventKind::BrokenPromise), "I3, step {step}");
        if mark.is_regular() {
            // P3 with the headroom, and the other way round. What is kept of places is never more than R_cap.
            assert!(kept <= 30);
            assert_eq!(queued, before < 60, "P3, step {step}");
            drops_of_regular += u32::from(!queued);
        }

        let own = &mut books[(flow % HOSTS) as usize];
        match (mark.role, promised) {
            (Role::First, true) => {
                let pool = bench.saw(QueueEventKind::Pooled);
                pooled.insert(name, pool);
                if !pool {
                    own.debited += 8 * i64::from(mark.length - 1);
                }
            }
            (Role::Follower, true) => {
                own.useful += 8;
                if !pooled[&name] {
                    own.refunded += 8;
                }
            }
            (Role::Follower, false) if queued => {
                own.useful += 8;
            }
            _ => (),
        }
        // P2 from the beginning and from the last mark, whatever is still expected counted as wasted.
        let (own, since) = (books[(flow % HOSTS) as usize], marks[(flow % HOSTS) as usize]);
        assert!(
            8 * (own.debited - own.refunded) <= own.useful,
            "P2, step {step}: {own:?}"
        );
        let wasted = (own.debited - since.debited) - (own.refunded - since.refunded);
        assert!(
            8 * wasted <= 64 * CREDIT + (own.useful - since.useful),
            "P2, step {step}: {own:?} since {since:?}"
        );
        if step % 5000 == 0 {
            marks = books;
        }

        let ledger = &mut bench.queue.ledger;
        let reserved = ledger.reserved.total(epoch);
        most_reserved = most_reserved.max(reserved);
        assert!(reserved <= 30, "P1: R <= R_cap, step {step}");
        assert!(ledger.pooled.total(epoch) <= 10, "P1: Rnew <= P_new, step {step}");
        assert!(
            bench.queue.packets.len() + usize::from(reserved) <= 60,
            "P1: Q + R <= size, step {step}"
        );
        if step % 16 == 0 {
            sums_agree(ledger);
        }
    }
    println!("{drops_of_regular} regular packets dropped, at most {most_reserved} places reserved");
    // A share of one needs as much free as it takes: with one follower 29 are reached, never 30.
    assert!(drops_of_regular > 1000 && most_reserved == 29);
}

/// P5: every sum is that of the table's entries.
fn sums_agree(ledger: &mut Ledger) {
    let epoch = ledger.clock.epoch;
    let live: Vec<_> = ledger.table.live(&ledger.clock).copied().collect();
    let sum = |filter: &dyn Fn(&&Entry) -> bool| {
        live.iter()
            .filter(filter)
            .map(|entry| u16::from(entry.left))
            .sum::<u16>()
    };
    assert_eq!(ledger.reserved.total(epoch), sum(&|_| true), "P5: R");
    assert_eq!(
        ledger.pooled.total(epoch),
        sum(&|entry| entry.newcomer),
        "P5: Rnew"
    );
    let places: Vec<(u16, u16)> = ledger
        .sources
        .all()
        .map(|(place, source)| (place, source.owner))
        .collect();
    for (place, owner) in places {
        let own = sum(&|entry| entry.source == place && entry.owner == owner);
        assert_eq!(ledger.sources.at_mut(place).held.total(epoch), own, "P5: out(s)");
    }
}

#[test]
fn sources_that_push_each_other_out_keep_the_sums() {
    // Four places for eight hosts.
    let mut values = small(30, 10, 20);
    values.set("sources", Value::Integer(4)).expect("a parameter");
    let mut bench = Bench::new(SpH::new(&values, &LINK));
    let mut traffic = Traffic::new(5);
    for step in 0..300_000 {
        match traffic.next() {
            Operation::Dequeue => drop(bench.dequeue(traffic.now)),
            Operation::Enqueue { flow, port, mark } => {
                bench.enqueue(traffic.now, port, packet(flow, step, mark));
            }
        }
        if step % 4 == 0 {
            sums_agree(&mut bench.queue.ledger);
        }
    }
    assert_eq!(bench.queue.ledger.sources.all().count(), 4);
}

#[test]
fn super_packets_enter_as_a_whole_or_not_at_all() {
    // I4: members in order, all sent, within an epoch; strangers in between.
    let values = values(
        SpH::PARAMETERS,
        &[
            ("limit", Value::Limit(Limit::Packets(60))),
            ("reserve", Value::Integer(60)),
            ("denial", Value::Choice("drop")),
            ("share", Value::Number(64.0)),
            ("newcomers", Value::Integer(60)),
            ("port_credit", Value::Integer(1_000_000)),
            ("max_epoch", Value::Duration(Duration::from_secs(8))),
            ("min_epoch", Value::Duration(Duration::from_secs(8))),
        ],
    );
    let mut bench = Bench::new(SpH::new(&values, &LINK));
    let mut rng = Rng::from_seed(1);
    let mut outcomes = BTreeMap::new();
    let mut now = 0;
    for round in 0..25_000_u32 {
        // Four super-packets of ten, interleaved at random; a fresh epoch now and then keeps the filter sparse.
        now += if round % 50 == 0 { 20_000_000_000 } else { 0 };
        let mut taken = [(0, 0); 4];
        while let Some(open) = taken.iter().position(|member| member.0 < 10) {
            now += 1;
            let of = rng.below(8) as usize;
            if of >= 4 {
                for _ in 0..rng.below(3) {
                    bench.dequeue(now);
                }
                bench.enqueue(now, 0, packet(rng.below(40) as u32, round, Mark::REGULAR));
                continue;
            }
            let of = if taken[of].0 < 10 { of } else { open };
            let id = (round % 50 * 4 + of as u32) as u16;
            let mark = if taken[of].0 == 0 {
                Mark::first(10, id)
            } else {
                Mark::follower(10, id)
            };
            taken[of].0 += 1;
            let queued = bench.enqueue(now, 0, packet(of as u32, round, mark));
            assert!(!bench.saw(QueueEventKind::Downgraded));
            taken[of].1 += u32::from(queued);
        }
        for (_, queued) in taken {
            *outcomes.entry(queued).or_insert(0_u32) += 1;
        }
    }
    println!("members queued: super-packets: {outcomes:?}");
    assert_eq!(outcomes.keys().copied().collect::<Vec<_>>(), [0, 10]);
    assert!(outcomes[&0] > 1000 && outcomes[&10] > 1000);
}

#[test]
fn credit_grows_by_eighths_and_saturates() {
    let mut bench = Bench::new(SpH::new(&small(30, 10, 4), &LINK));
    let place = |bench: &Bench<SpH>| bench.queue.ledger.sources.all().next().map(|(_, s)| s.credit);
    let send = |bench: &mut Bench<SpH>, now: u64| {
        for member in 0..5 {
            let mark = if member == 0 {
                Mark::first(5, now as u16 & 255)
            } else {
                Mark::follower(5, now as u16 & 255)
            };
            assert!(bench.enqueue(now * 1000, 0, packet(0, 0, mark)));
            bench.dequeue(now * 1000);
        }
    };
    // From the pool: four followers earn an eighth each.
    send(&mut bench, 1);
    assert_eq!(place(&bench), Some(4));
    for now in 2..8 {
        send(&mut bench, now);
    }
    assert_eq!(place(&bench), Some(28));
    // Credit for four followers: from here each is paid, refunded, and earns; the most is four packets.
    for now in 8..20 {
        send(&mut bench, now);
        assert_eq!(place(&bench), Some(32));
    }
    assert_eq!(GAIN, 1);
}

#[test]
fn a_deposit_is_lost_with_last_or_without_followers() {
    let mut bench = Bench::new(SpH::new(&small(30, 10, 4), &LINK));
    let place = bench.queue.ledger.sources.find_or_insert(HostId(0), {
        let key = bench.flows.key(FlowId(0));
        bench.queue.ledger.host_hash(key)
    });
    bench.queue.ledger.sources.earn(place, 32);
    assert!(bench.enqueue(0, 0, packet(0, 0, Mark::first(5, 1))));
    assert_eq!(bench.queue.ledger.sources.at(place).credit, 0);
    // `last` on the first follower: one packet and an eighth come back, three places are free.
    assert!(bench.enqueue(0, 0, packet(0, 1, Mark::follower(5, 1).ending())));
    assert_eq!(bench.queue.ledger.sources.at(place).credit, 9);
    assert_eq!(bench.queue.ledger.reserved(), 0);
}

#[test]
fn reservations_end_after_one_to_two_epochs_however_long_it_was_quiet() {
    const EPOCH: u64 = 20_000_000;
    // Admitted at the beginning and at the end of an epoch; quiet until then; how many places are left.
    for (admitted, then, left, expired) in [
        (0, EPOCH - 1, 4, 0),
        (0, EPOCH, 4, 0),
        (0, 2 * EPOCH - 1, 4, 0),
        (0, 2 * EPOCH, 0, 1),
        (EPOCH - 1, 2 * EPOCH - 1, 4, 0),
        (EPOCH - 1, 2 * EPOCH, 0, 1),
        (0, 10 * EPOCH, 0, 1),
        (0, 10_000_000 * EPOCH + 1, 0, 1),
    ] {
        let mut bench = Bench::new(SpH::new(&small(30, 10, 4), &LINK));
        assert!(bench.enqueue(admitted, 0, packet(0, 0, Mark::first(5, 1))));
        let before = crate::queue::work::steps();
        bench.enqueue(then, 0, packet(0, 1, Mark::REGULAR));
        assert_eq!(
            crate::queue::work::steps() - before,
            1,
            "one step whatever passed"
        );
        assert_eq!(bench.queue.ledger.reserved(), left, "{admitted} to {then}");
        let events = bench
            .events
            .iter()
            .filter(|event| event.kind == QueueEventKind::Expired);
        assert_eq!(events.map(|event| event.count).sum::<u32>(), expired);
        // A follower after that is an orphan, and finds what it needs as a regular packet.
        assert!(bench.enqueue(then, 0, packet(0, 2, Mark::follower(5, 1))));
        assert_eq!(bench.saw(QueueEventKind::Orphan), left == 0);
    }
}

#[test]
fn an_epoch_is_four_times_what_was_seen_within_bounds() {
    let mut bench = Bench::new(SpH::new(&small(30, 10, 40), &LINK));
    let millisecond = 1_000_000;
    assert_eq!(bench.queue.ledger.clock.length(), Duration::from_millis(20));
    bench.enqueue(0, 0, packet(0, 0, Mark::first(3, 1)));
    bench.enqueue(2 * millisecond, 0, packet(0, 1, Mark::follower(3, 1)));
    // From the next epoch on: 8 ms.
    bench.enqueue(20 * millisecond, 0, packet(0, 2, Mark::REGULAR));
    assert_eq!(bench.queue.ledger.clock.length(), Duration::from_millis(8));
    // Two seconds later nothing is known.
    bench.enqueue(1100 * millisecond, 0, packet(0, 3, Mark::REGULAR));
    bench.enqueue(2200 * millisecond, 0, packet(0, 4, Mark::REGULAR));
    assert_eq!(bench.queue.ledger.clock.length(), Duration::from_millis(20));
}

#[test]
fn a_full_filter_is_the_report_s_rule() {
    let mut values = small(30, 10, 4);
    values.set("denial", Value::Choice("drop")).expect("a parameter");
    let mut bench = Bench::new(SpH::new(&values, &LINK));
    assert!(
        bench.enqueue(1, 0, packet(0, 0, Mark::follower(5, 1))),
        "an orphan is regular"
    );
    let epoch = bench.queue.ledger.clock.epoch;
    bench.queue.ledger.denied.saturate(epoch);
    for id in 0..100 {
        assert!(
            !bench.enqueue(2, 0, packet(0, 1, Mark::follower(5, id))),
            "every orphan is dropped"
        );
    }
    assert!(bench.enqueue(3, 0, packet(0, 2, Mark::REGULAR)));
    assert!(bench.enqueue(4, 0, packet(0, 3, Mark::first(5, 1))));
    assert!(
        bench.enqueue(5, 0, packet(0, 4, Mark::follower(5, 1))),
        "promised"
    );
}

#[test]
fn a_denied_super_packet_is_regular_packets_and_leaves_the_headroom() {
    let mut bench = Bench::new(SpH::new(&small(30, 30, 40), &LINK));
    let regular = |bench: &mut Bench<SpH>| bench.enqueue(10, 0, packet(1, 0, Mark::REGULAR));
    // Nothing was redeemed yet: 55 regular packets find room, a first of ten does not, but its packets do.
    for _ in 0..52 {
        assert!(regular(&mut bench));
    }
    assert!(bench.enqueue(10, 0, packet(0, 0, Mark::first(10, 1))));
    assert!(bench.saw(QueueEventKind::Refused));
    assert!(bench.enqueue(10, 0, packet(0, 1, Mark::follower(10, 1))));
    assert!(bench.saw(QueueEventKind::Orphan));
    assert_eq!(bench.queue.ledger.reserved(), 0);
    // A super-packet of four is admitted, and with its first follower regular packets leave four places: 60 - 56.
    assert!(bench.enqueue(10, 0, packet(0, 2, Mark::first(4, 2))));
    assert!(bench.enqueue(10, 0, packet(0, 3, Mark::follower(4, 2))));
    assert_eq!(
        (bench.queue.packets.len(), bench.queue.ledger.reserved()),
        (56, 2)
    );
    assert!(!regular(&mut bench), "two reserved and two more are kept");
    // A first of two must find four places as well: it would be easier to get in as a pair than as a packet.
    assert!(!bench.enqueue(10, 0, packet(2, 4, Mark::first(2, 3))));
    // A connection request may take what is not reserved.
    let mut syn = packet(3, 5, Mark::REGULAR);
    syn.segment.flags = Flags::SYN;
    assert!(bench.enqueue(10, 0, syn) && bench.enqueue(10, 0, syn));
    assert!(!bench.enqueue(10, 0, syn), "the last two are promised");
    assert!(bench.enqueue(10, 0, packet(0, 6, Mark::follower(4, 2))));
    assert!(bench.enqueue(10, 0, packet(0, 7, Mark::follower(4, 2))));
    assert_eq!(bench.queue.packets.len(), 60);
    // Two seconds without a follower: drop-tail again.
    for now in [1_200_000_000, 2_400_000_000] {
        bench.enqueue(now, 0, packet(1, 8, Mark::REGULAR));
    }
    for _ in 0..4 {
        bench.dequeue(2_400_000_000);
    }
    for _ in 0..4 {
        assert!(bench.enqueue(2_400_000_000, 0, packet(1, 9, Mark::REGULAR)));
    }
}

#[test]
fn a_drained_port_harms_no_other_and_recovers() {
    let mut values = small(30, 30, 10);
    let slow = Value::Duration(Duration::from_secs(100));
    values.set("port_refill", slow).expect("a parameter");
    let mut bench = Bench::new(SpH::new(&values, &LINK));
    // 40 packets of credit for each port, 8 of them for a super-packet of nine; a new source each time.
    let admitted = |bench: &mut Bench<SpH>, now: u64, port: u16| {
        let flow = (now / 1_000_000) as u32 % 8;
        bench.enqueue(
            now,
            port,
            packet(flow, 0, Mark::first(9, (now / 1_000_000) as u16 & 255)),
        );
        let done = !bench.saw(QueueEventKind::Downgraded);
        while bench.dequeue(now).is_some() {}
        done
    };
    // Each first comes when what the one before reserved has expired.
    let mut taken = 0;
    for attack in 0..20_u64 {
        taken += u32::from(admitted(&mut bench, attack * 41_000_000, 1));
    }
    println!("{taken} of 20 firsts without followers admitted by one port");
    // Five for the credit; 0.4 packets a second grow back.
    assert_eq!(taken, 5);
    let now = 20 * 41_000_000;
    assert!(!admitted(&mut bench, now, 1));
    assert!(
        admitted(&mut bench, now + 41_000_000, 2),
        "another port is not harmed"
    );
    assert!(
        admitted(&mut bench, now + 30_000_000_000, 1),
        "the refill brings it back"
    );
}

#[test]
fn configurations_that_promise_what_cannot_be_kept_are_refused() {
    let with = |given: &[(&str, Value)]| SpH::check(&values(SpH::PARAMETERS, given));
    let limit = |packets| ("limit", Value::Limit(Limit::Packets(packets)));
    assert_eq!(with(&[]), Ok(()));
    assert_eq!(with(&[limit(40)]), Ok(()));
    assert!(with(&[limit(39)]).is_err_and(|message| message.contains("four times")));
    assert!(with(&[limit(251), ("max_length", Value::Integer(63))]).is_err());
    assert_eq!(with(&[limit(252), ("max_length", Value::Integer(63))]), Ok(()));
    assert!(with(&[("max_length", Value::Integer(64)), limit(1000)]).is_err_and(|m| m.contains("layout")));
    assert!(with(&[("reserve", Value::Integer(101))]).is_err());
    assert!(with(&[("reserve", Value::Integer(17))]).is_err_and(|message| message.contains("reaches")));
    assert_eq!(with(&[("reserve", Value::Integer(18))]), Ok(()));
    // And what was not checked works as drop-tail: no super-packet is short enough.
    let values = values(SpH::PARAMETERS, &[limit(3)]);
    let mut bench = Bench::new(SpH::new(&values, &LINK));
    let queued: Vec<bool> = (0..4)
        .map(|number| bench.enqueue(0, 0, packet(0, number, Mark::first(2, 1))))
        .collect();
    assert_eq!(queued, [true, true, true, false]);
}

#[test]
fn memory_is_fixed_by_the_configuration() {
    let mut table = String::from("limit  max_length  sp-h bytes  sp-fq bytes (16 ports)\n");
    for (limit, max_length) in [(100, 10), (1000, 10), (1000, 63)] {
        let given = [
            ("limit", Value::Limit(Limit::Packets(limit))),
            ("max_length", Value::Integer(max_length)),
        ];
        let plain = SpH::new(&values(SpH::PARAMETERS, &given), &LINK);
        let fair = SpFq::new(&values(SpFq::PARAMETERS, &given), &LINK);
        let (plain, fair) = (plain.admission_bytes(16), fair.admission_bytes(16));
        table += &format!("{limit:>5}  {max_length:>10}  {plain:>10}  {fair:>11}\n");
        // docs/design/sp-hardened.md#memory: reservations, 64 kB of sources, 1 kB of filter, ports.
        assert!(plain < 100_000 && fair < 200_000);
    }
    println!("{table}");
}

#[test]
fn stranger_packets_never_panic() {
    let mut rng = Rng::from_seed(12);
    for name in ["sp-h", "sp-fq"] {
        let entry = AnyQueue::entry(name).expect("an entry");
        for layout in Layout::NAMES {
            let given = [
                ("layout", Value::Choice(layout)),
                ("max_length", Value::Integer(25)),
            ];
            let values = values(entry.parameters, &given);
            let queue = AnyQueue::build(name, &values, &LINK).expect("an entry");
            let mut bench = Bench::new(queue);
            for _ in 0..200_000 {
                let now = if rng.below(100) == 0 {
                    rng.next_u64()
                } else {
                    rng.below(1 << 40)
                };
                if rng.below(3) == 0 {
                    bench.dequeue(now);
                    continue;
                }
                let mut packet = packet(rng.below(50) as u32, 0, Mark::REGULAR);
                packet.segment.tos = rng.next_u32() as u8;
                packet.segment.ip_id = rng.next_u32() as u16;
                packet.segment.urgent = rng.next_u32() as u16;
                packet.segment.flags = Flags(rng.next_u32() as u16);
                bench.enqueue(now, rng.below(70) as u16, packet);
                assert!(bench.queue.backlog().packets <= 100);
                assert!(!bench.saw(QueueEventKind::BrokenPromise));
            }
        }
    }
}
