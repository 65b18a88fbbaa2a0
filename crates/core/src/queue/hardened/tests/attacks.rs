//! The attacks of docs/design/sp-hardened.md#attacks that aim at the books and the tables, not at what TCP makes of them.

use super::*;
use crate::queue::work;

/// `small(30, 10, 40)` of 60 places: R_cap 30, P_new 10, C_max 40, epochs of at most 20 ms.
const R_CAP: u16 = 30;
const P_NEW: u16 = 10;
const C_MAX: u32 = 40;
const LONGEST_NS: u64 = 20_000_000;

fn bench() -> Bench<SpH> {
    Bench::new(SpH::new(
        &small(u64::from(R_CAP), u64::from(P_NEW), u64::from(C_MAX)),
        &LINK,
    ))
}

impl Bench<SpH> {
    /// Sends a packet of `flow` by its own port and lets everything that waits leave.
    fn pass(&mut self, now: u64, flow: u32, mark: Mark) -> bool {
        let queued = self.enqueue(now, (flow % HOSTS) as u16, packet(flow, 0, mark));
        let events = core::mem::take(&mut self.events);
        while self.dequeue(now).is_some() {}
        self.events = events;
        queued
    }

    /// Credit, in eighths, and reserved places of the source of `flow`.
    fn source(&mut self, flow: u32) -> (u32, u16) {
        let key = self.flows.key(FlowId(flow));
        let ledger = &mut self.queue.ledger;
        let hash = ledger.host_hash(key);
        match ledger.sources.find(key.source, hash) {
            Some(place) => {
                let epoch = ledger.clock.epoch;
                let source = ledger.sources.at_mut(place);
                (u32::from(source.credit), source.held.total(epoch))
            }
            None => (0, 0),
        }
    }

    /// Gives the source of `flow` all the credit there is, by honest super-packets of five.
    fn earn_all(&mut self, mut now: u64, flow: u32) -> u64 {
        for round in 0..100 {
            for member in 0..5 {
                now += 10_000;
                let mark = if member == 0 {
                    Mark::first(5, round)
                } else {
                    Mark::follower(5, round)
                };
                assert!(self.pass(now, flow, mark));
            }
        }
        assert_eq!(self.source(flow).0, 8 * C_MAX);
        now
    }
}

#[test]
fn a4_a_duplicate_first_is_paid_by_the_source_it_claims() {
    let mut bench = bench();
    let now = bench.earn_all(0, 0);
    assert!(bench.pass(now, 0, Mark::first(5, 200)));
    assert_eq!(bench.source(0), (8 * (C_MAX - 4), 4));
    for forged in 1..=5 {
        assert!(bench.pass(now, 0, Mark::first(5, 200)));
        assert!(bench.saw(QueueEventKind::IdReuse));
        assert_eq!(bench.source(0), (8 * (C_MAX - 4 - 4 * forged), 4), "its deposit");
    }
    // The victim's packets come as before: nothing of it is lost.
    for _ in 0..4 {
        assert!(bench.pass(now, 0, Mark::follower(5, 200)));
        assert!(!bench.saw(QueueEventKind::Orphan));
    }
    assert_eq!(bench.queue.ledger.reserved(), 0);
    // A forged first that is shorter makes regular packets of the rest; they find room as those do.
    assert!(bench.pass(now, 0, Mark::first(5, 201)));
    assert!(bench.pass(now, 0, Mark::first(2, 201)));
    assert!(bench.pass(now, 0, Mark::follower(5, 201)));
    for _ in 0..3 {
        assert!(bench.pass(now, 0, Mark::follower(5, 201)));
        assert!(bench.saw(QueueEventKind::Orphan));
    }
}

#[test]
fn a6_a_slow_drip_holds_its_places_for_two_epochs_at_most() {
    let mut bench = bench();
    let mut now = 1_000_000;
    let (mut oldest, mut redeemed, mut debited, mut most) = (0, 0_u32, 0_u32, 0);
    for id in 0..2000_u16 {
        let began = now;
        let before = bench.source(0).0;
        bench.pass(now, 0, Mark::first(10, id % 256));
        if bench.saw(QueueEventKind::Downgraded) {
            now += LONGEST_NS;
            continue;
        }
        if !bench.saw(QueueEventKind::Pooled) {
            debited += before - bench.source(0).0;
        }
        for _ in 0..9 {
            let epoch = bench.queue.ledger.clock.length().as_nanos();
            now += epoch / 2;
            most = most.max(bench.source(0).1);
            bench.pass(now, 0, Mark::follower(10, id % 256));
            if bench.saw(QueueEventKind::Orphan) {
                // Passed as a regular packet, for which nothing was kept.
                continue;
            }
            redeemed += 1;
            oldest = oldest.max(now - began);
        }
    }
    let length = bench.queue.ledger.clock.length();
    std::println!(
        "{redeemed} places redeemed, the oldest after {} ms of an epoch of {length:?}, at most {most} held",
        oldest as f64 / 1e6
    );
    assert!(oldest < 2 * LONGEST_NS, "held for {oldest} ns");
    assert!(oldest > LONGEST_NS, "it drips as slowly as it can");
    assert!(most <= R_CAP / 2);
    // P2: what was debited and not refunded is covered by what was useful.
    assert!(debited <= 8 * redeemed + 8 * C_MAX + 2 * 9 * 2000);
    bench.pass(now + 2 * LONGEST_NS, 1, Mark::REGULAR);
    assert_eq!(bench.queue.ledger.reserved(), 0);
}

#[test]
fn a7_credit_that_was_built_is_burnt_once_and_for_two_epochs() {
    for gap_ns in [0, 50_000, 1_000_000, 30_000_000] {
        let mut bench = bench();
        let mut now = bench.earn_all(0, 0);
        let (mut wasted, mut last_paid, mut most) = (0, now, 0);
        for id in 0..500_u16 {
            now += gap_ns;
            bench.pass(now, 0, Mark::first(5, id % 256));
            let paid = !bench.saw(QueueEventKind::Pooled) && !bench.saw(QueueEventKind::Downgraded);
            wasted += if paid { 4 } else { 0 };
            last_paid = if paid { now } else { last_paid };
            most = most.max(bench.source(0).1);
        }
        std::println!(
            "a first every {gap_ns} ns: {wasted} places wasted of {C_MAX} earned, {most} at a time"
        );
        assert!(wasted <= C_MAX, "waste is bounded by the credit");
        assert!(wasted > 0 && most <= R_CAP / 2);
        // Two epochs after the burst only what newcomers may hold is gone.
        let end = last_paid + 2 * LONGEST_NS;
        bench.pass(now.max(end), 1, Mark::REGULAR);
        assert!(bench.queue.ledger.reserved() <= u64::from(P_NEW));
        if now < end {
            assert_eq!(bench.queue.ledger.reserved(), 0);
        }
    }
}

#[test]
fn a8_no_choice_of_keys_makes_a_call_look_further() {
    // Places in reservations: looked up, and a free one sought. Places of a source: looked up, looked up again, replaced.
    const BOUND: u64 = 2 * 8 + 3 * 8;
    let fill = |known: bool| {
        let mut values = small(30, 30, 40);
        values.set("sources", Value::Integer(16)).expect("a parameter");
        let mut bench = Bench::new(SpH::new(&values, &LINK));
        let victim = bench.flows.key(FlowId(0));
        let buckets = |bench: &Bench<SpH>, key, id| {
            let name = bench.queue.ledger.fingerprint(key, id);
            [name & 15, name >> 32 & 15]
        };
        let wanted = buckets(&bench, victim, 1);
        let mut flow = 40;
        for port in 0..40_000_u16 {
            let key = FlowKey {
                source: HostId(1000 + u32::from(port)),
                destination: HostId(100),
                source_port: port,
                destination_port: 80,
                protocol: 6,
            };
            // Who knows the key sends only what falls among the victim's eight places.
            let places = bench.queue.places_of(key, 0).expect("there is a table");
            assert_eq!(places.map(u64::from), buckets(&bench, key, 0));
            if !known
                || buckets(&bench, key, 0)
                    .iter()
                    .all(|bucket| wanted.contains(bucket))
            {
                bench.flows.push(key);
                flow += 1;
            }
            if flow == 40 + 20 {
                break;
            }
        }
        let mut most = 0;
        for attack in 40..flow {
            let before = work::probed();
            bench.enqueue(0, 0, packet(attack, 0, Mark::first(2, 0)));
            most = most.max(work::probed() - before);
        }
        let before = work::probed();
        assert!(bench.enqueue(0, 0, packet(0, 0, Mark::first(5, 1))));
        most = most.max(work::probed() - before);
        let admitted = !bench.saw(QueueEventKind::Downgraded);
        assert_eq!(
            bench.saw(QueueEventKind::Crowded),
            !admitted,
            "why it is downgraded"
        );
        assert_eq!(
            bench.queue.most_probes(),
            Some(most as u32),
            "the queue counts its own"
        );
        (
            most,
            admitted,
            bench.queue.ledger.table.live(&bench.queue.ledger.clock).count(),
        )
    };
    let (known, unknown) = (fill(true), fill(false));
    std::println!("key known: probes, victim admitted, live: {known:?}; unknown: {unknown:?}; bound {BOUND}");
    assert!(known.0 <= BOUND && unknown.0 <= BOUND);
    // With the key eight small super-packets shut one out, which then is regular packets; without it twenty do not.
    assert_eq!((known.1, known.2), (false, 8));
    assert_eq!((unknown.1, unknown.2), (true, 21));
}

#[test]
fn a10_a_tenant_holds_half_of_the_reserve_at_most_and_pays_in_packets() {
    let mut bench = bench();
    let mut now = 1_000_000;
    let (mut most, mut packets, mut held_ns) = (0, 0_u64, 0_u64);
    let mut open: Vec<(u64, u16)> = Vec::new();
    let mut id = 0;
    for _ in 0..200_000 {
        now += 100_000;
        let epoch = bench.queue.ledger.clock.length().as_nanos();
        // All that would expire soon is redeemed.
        while let Some(&(began, old)) = open.first()
            && now - began >= epoch * 9 / 10
        {
            open.remove(0);
            for _ in 0..9 {
                bench.pass(now, 0, Mark::follower(10, old));
                packets += 1;
            }
        }
        id = (id + 1) % 256;
        bench.pass(now, 0, Mark::first(10, id));
        packets += 1;
        if !bench.saw(QueueEventKind::Downgraded) {
            open.push((now, id));
        }
        let held = bench.source(0).1;
        most = most.max(held);
        held_ns += u64::from(held) * 100_000;
    }
    let epochs = now / LONGEST_NS;
    std::println!(
        "at most {most} places held, {:.1} on average, for {} packets in each longest epoch",
        held_ns as f64 / now as f64,
        packets / epochs
    );
    assert!((9..=R_CAP / 2).contains(&most));
    assert!(packets >= 10 * epochs, "L packets in each epoch");
    assert_eq!(bench.source(1), (0, 0), "nobody else pays");
}
