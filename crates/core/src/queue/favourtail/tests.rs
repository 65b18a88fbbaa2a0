//! The trace and F1 to F5 of docs/design/favourtail.md, the pointer form as oracle, and the bounds of the budget under adversaries.

extern crate std;

use super::budget::Hosts;
use super::*;
use crate::flow::{FlowId, FlowKey, FlowTable, HostId};
use crate::packet::{BufId, Flags, Segment};
use crate::queue::{AnyQueue, DropTail, SendingTime};
use crate::rng::Rng;
use crate::seq::SeqNumber;
use crate::units::Rate;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use oracle::{Oracle, Rules};
use std::collections::BTreeMap;
use std::println;

mod oracle;

/// Operations of each random run; with the eight variants below more than 10^6 in all.
const OPERATIONS: u32 = 150_000;

const LINK: LinkContext = LinkContext {
    mtu: 1500,
    rate: Rate(1_000_000),
    framing: 0,
    delay: Duration::ZERO,
    seed: 11,
};

fn build(values: &[(&str, Value)]) -> FavourTail {
    let mut all = Values::defaults(FavourTail::PARAMETERS);
    for &(name, value) in values {
        all.set(name, value).expect("a legal value");
    }
    assert_eq!(FavourTail::check(&all), Ok(()));
    FavourTail::new(&all, &LINK)
}

fn limit(packets: u32) -> (&'static str, Value) {
    ("limit", Value::Limit(Limit::Packets(packets)))
}

const BUDGET: (&str, Value) = ("budget", Value::Flag(true));

/// `n` flows of `hosts` sources.
fn table(n: u32, hosts: u32) -> FlowTable {
    let mut table = FlowTable::new();
    for flow in 0..n {
        table.push(FlowKey {
            source: HostId(flow % hosts),
            destination: HostId(1000 + flow % 3),
            source_port: flow as u16,
            destination_port: (flow >> 16) as u16,
            protocol: 6,
        });
    }
    table
}

fn packet(flow: u32, number: u32, len: u32) -> Packet {
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment: Segment {
            seq: SeqNumber(number),
            payload: len.saturating_sub(40),
            overhead: len.min(40) as u8,
            flags: Flags::ACK,
            ..Segment::default()
        },
    }
}

/// A queue and what it said.
struct Bench<Q> {
    queue: Q,
    flows: FlowTable,
    drops: Vec<(Packet, DropReason)>,
    events: Vec<QueueEvent>,
}

impl<Q: QueueDiscipline> Bench<Q> {
    fn new(queue: Q, flows: FlowTable) -> Bench<Q> {
        Bench {
            queue,
            flows,
            drops: Vec::new(),
            events: Vec::new(),
        }
    }

    fn enqueue(&mut self, packet: Packet) {
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: 0,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.enqueue(Instant::ZERO, packet, &mut context);
    }

    fn dequeue(&mut self) -> Option<Packet> {
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: 0,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.dequeue(Instant::ZERO, &mut context)
    }

    fn numbers(&mut self) -> Vec<u32> {
        core::iter::from_fn(|| self.dequeue().map(|packet| packet.segment.seq.0)).collect()
    }

    /// Numbers of the packets dropped since the last call, in order.
    fn dropped(&mut self) -> Vec<u32> {
        self.drops
            .drain(..)
            .map(|(packet, _)| packet.segment.seq.0)
            .collect()
    }

    fn overtakes(&mut self) -> Vec<(u32, u32)> {
        let of = |event: QueueEvent| {
            (event.kind == QueueEventKind::Overtook).then_some((event.flow.0, event.count))
        };
        self.events.drain(..).filter_map(of).collect()
    }
}

/// A1 A2 A3 wait as normal packets: an A before them, favoured for want of any other, has left.
fn three_of_a(values: &[(&str, Value)]) -> Bench<FavourTail> {
    let mut bench = Bench::new(build(values), table(3, 3));
    for number in 0..4 {
        bench.enqueue(packet(0, number, 500));
    }
    assert_eq!(bench.dequeue().map(|packet| packet.segment.seq.0), Some(0));
    bench.events.clear();
    bench
}

#[test]
fn the_worked_trace_is_served_as_written() {
    // docs/design/favourtail.md#trace: A1 A2 A3, then B1 B2 C1 arrive.
    let mut bench = three_of_a(&[]);
    for (flow, number) in [(1, 11), (1, 12), (2, 21)] {
        bench.enqueue(packet(flow, number, 500));
    }
    assert_eq!(
        bench.overtakes(),
        [(1, 3), (2, 4)],
        "B1 overtakes A1 to A3, C1 also B2"
    );
    // B3 after B1 left but before B2 left is a normal packet.
    assert_eq!(bench.dequeue().map(|packet| packet.segment.seq.0), Some(11));
    bench.enqueue(packet(1, 13, 500));
    assert_eq!(bench.overtakes(), []);
    assert_eq!(bench.numbers(), [21, 1, 2, 3, 12, 13]);
    // With all B gone the next is favoured again.
    for number in [5, 6] {
        bench.enqueue(packet(0, number, 500));
    }
    bench.enqueue(packet(1, 14, 500));
    assert_eq!(bench.overtakes(), [(1, 1)]);
    assert_eq!(bench.numbers(), [5, 14, 6]);
}

#[test]
fn what_is_being_sent_counts_only_if_asked() {
    for (asked, order) in [(false, [12, 1, 2, 3]), (true, [1, 2, 3, 12])] {
        let mut bench = three_of_a(&[("count_in_service", Value::Flag(asked))]);
        bench.enqueue(packet(1, 11, 500));
        assert_eq!(bench.dequeue().map(|packet| packet.segment.seq.0), Some(11));
        bench.enqueue(packet(1, 12, 500));
        assert_eq!(bench.numbers(), order, "{asked}");
    }
}

#[test]
fn a_full_queue_drops_the_arrival_or_the_newest_normal_packet() {
    for (push_out, dropped, order) in [(false, [11, 5], [1, 2, 3, 4]), (true, [4, 5], [11, 1, 2, 3])] {
        let mut bench = three_of_a(&[limit(4), ("push_out", Value::Flag(push_out))]);
        bench.enqueue(packet(0, 4, 500));
        bench.enqueue(packet(1, 11, 500));
        bench.enqueue(packet(0, 5, 500));
        assert_eq!(bench.dropped(), dropped);
        assert_eq!(bench.numbers(), order);
    }
}

#[test]
fn a_large_packet_pushes_out_as_many_as_it_needs_and_none_if_that_is_not_enough() {
    let values = [
        ("limit", Value::Limit(Limit::Bytes(Bytes(2000)))),
        ("push_out", Value::Flag(true)),
    ];
    let mut bench = Bench::new(build(&values), table(3, 3));
    for (flow, number, len) in [(0, 1, 500), (0, 2, 500), (0, 3, 500), (0, 4, 500), (1, 5, 900)] {
        bench.enqueue(packet(flow, number, len));
    }
    assert_eq!(bench.dropped(), [4, 3]);
    bench.enqueue(packet(2, 6, 700));
    assert_eq!(
        bench.dropped(),
        [6],
        "the favoured 1400 bytes leave no room for it"
    );
    assert_eq!(bench.numbers(), [1, 5, 2]);
}

#[test]
fn who_cannot_pay_waits_with_the_others() {
    let values = [
        BUDGET,
        limit(100),
        ("burst", Value::Bytes(Bytes(1000))),
        ("host", Value::Choice("none")),
    ];
    let mut bench = Bench::new(build(&values), table(5, 5));
    for (number, flow) in [0, 0, 1, 2, 3].into_iter().enumerate() {
        bench.enqueue(packet(flow, number as u32, 500));
    }
    // The first packet and that of flow 1 spend the tokens; flows 2 and 3 are never dropped.
    assert_eq!(bench.queue.tokens(), Some((Bytes(0), Bytes(1000))));
    assert_eq!(bench.overtakes(), [(1, 1)]);
    assert_eq!(bench.numbers(), [0, 2, 1, 3, 4]);
    assert!(bench.drops.is_empty());
    // Five packets of 500 bytes gave back 250 each, but no more than the burst.
    assert_eq!(bench.queue.tokens(), Some((Bytes(1000), Bytes(1000))));
}

#[test]
fn a_host_may_have_as_much_in_the_favoured_part_as_tokens_are_left() {
    for (host, favoured) in [("source", 2), ("destination", 3), ("none", 4)] {
        let values = [
            BUDGET,
            limit(100),
            ("burst", Value::Bytes(Bytes(2000))),
            ("host", Value::Choice(host)),
        ];
        // Flows 0, 1, 2, ... of one source, to three destinations.
        let mut bench = Bench::new(build(&values), table(8, 1));
        for flow in 0..8 {
            bench.enqueue(packet(flow, flow, 500));
        }
        // A source: 500 of 2000, 1000 of 1500, then 1500 of 1000 is too much. A destination has had one packet when the
        // third comes: 500 of 1000; its second would be 1000 of 500.
        assert_eq!(bench.queue.parts()[0].packets, favoured, "{host}");
    }
}

#[test]
fn what_leaves_pays_the_debts_of_hosts_in_turn() {
    let values = [BUDGET, limit(100), ("burst", Value::Bytes(Bytes(4000)))];
    // Flows 0, 3, 6 are of host 0, and so on.
    let mut bench = Bench::new(build(&values), table(12, 3));
    let owed = |bench: &Bench<FavourTail>| {
        let budget = bench.queue.budget.as_ref().expect("it has one");
        (budget.burst - budget.tokens) / WHOLE
    };
    // Host 0 with two packets of a flow, hosts 1 and 2 with one: 500 bytes are owed by each.
    for (number, flow) in [0, 0, 1, 2].into_iter().enumerate() {
        bench.enqueue(packet(flow, number as u32, 500));
    }
    assert_eq!(owed(&bench), 1500);
    // Each that leaves pays 250 for one of them: 0, 1, 2, and 0 again, which owes nothing then.
    for left in [1250, 1000, 750, 500] {
        assert!(bench.dequeue().is_some());
        assert_eq!(owed(&bench), left);
    }
    // Nobody waits; 1 and 2 still owe 250 each and have the next turns. Host 0 comes with a window of one flow: the first
    // packet is favoured and leaves in the turn of 1, then 2 pays, then host 0 has its turns alone.
    for number in 10..16 {
        bench.enqueue(packet(3, number, 500));
    }
    for left in [750, 500, 250, 0, 0, 0] {
        assert!(bench.dequeue().is_some());
        assert_eq!(owed(&bench), left);
    }
}

#[test]
fn a_host_that_owes_nothing_lets_its_turn_pass() {
    // Host 0 fills the queue with one flow; host 1 sends a packet of a new flow whenever its last has left. Half of what
    // leaves is earned, and half of that by host 0, which has no use for it.
    let values = [BUDGET, limit(20)];
    let mut bench = Bench::new(build(&values), table(40_000, 2));
    let (mut bytes, mut favoured) = (0, 0);
    let mut number = 0;
    let mut attack = 1;
    while attack < 20_000 {
        while bench.queue.backlog().packets < 15 {
            bench.enqueue(packet(0, number, 1500));
            number += 1;
        }
        let before = bench.queue.parts()[0].packets;
        attack += 2;
        bench.enqueue(packet(attack, number, 1500));
        number += 1;
        let paid = bench.queue.parts()[0].packets > before;
        favoured += if paid && attack > 2_000 { 1500 } else { 0 };
        for _ in 0..2 {
            let out = bench.dequeue().expect("it is busy");
            bytes += if attack > 2_000 { out.segment.len() } else { 0 };
        }
    }
    let share = f64::from(favoured) / f64::from(bytes);
    println!("favoured: {share:.4} of what left");
    assert!((share - 0.25).abs() < 0.005, "{share}");
}

#[test]
fn the_bound_is_that_of_the_worked_example() {
    // docs/design/favourtail.md#bound: 1 Mbit/s, 500 bytes, 20 packets, a burst of five: 208 ms.
    let mut all = Values::defaults(FavourTail::PARAMETERS);
    for (name, value) in [BUDGET, limit(20), ("burst", Value::Bytes(Bytes(2500)))] {
        all.set(name, value).expect("a legal value");
    }
    let link = LinkContext { mtu: 500, ..LINK };
    let queue = AnyQueue::FavourTail(FavourTail::new(&all, &link));
    let line = SendingTime {
        rate: Rate(1_000_000),
        framing: 0,
        processing: Duration::ZERO,
        overlap: false,
    };
    assert_eq!(queue.longest_wait(&line), Some(Duration::from_millis(208)));
    assert_eq!(build(&[]).longest_wait(&line), None);
    // With 14 bytes of framing: 21 normal packets of 514 bytes take 86.352 ms. Of the 26000 bytes 15500 are favoured, 554 packets
    // of 28 bytes at the most: 23256 bytes on the wire, 186.048 ms.
    let framed = SendingTime { framing: 14, ..line };
    assert_eq!(queue.longest_wait(&framed), Some(Duration::from_micros(272_400)));
}

#[test]
fn the_longest_wait_of_drop_tail_counts_framing_and_processing() {
    let link = LinkContext { mtu: 500, ..LINK };
    let wait = |limit: Limit, sending: SendingTime| {
        let mut all = Values::defaults(DropTail::PARAMETERS);
        all.set("limit", Value::Limit(limit)).expect("a limit");
        let wait = DropTail::new(&all, &link).longest_wait(&sending);
        wait.expect("there is one").as_micros()
    };
    let packets = Limit::Packets(20);
    let bytes = Limit::Bytes(Bytes(2800));
    let line = SendingTime {
        rate: Rate(1_000_000),
        framing: 0,
        processing: Duration::ZERO,
        overlap: false,
    };
    // 20 packets and the one being sent, of 500 bytes. 2800 bytes and one packet.
    assert_eq!(wait(packets, line), 84_000);
    assert_eq!(wait(bytes, line), 26_400);
    // 21 times 14 bytes more. 2800 bytes may be 100 packets of 28 bytes: 101 times.
    let framed = SendingTime { framing: 14, ..line };
    assert_eq!(wait(packets, framed), 84_000 + 2_352);
    assert_eq!(wait(bytes, framed), 26_400 + 11_312);
    // 3 ms for each packet.
    let processing = Duration::from_millis(3);
    let processed = SendingTime { processing, ..line };
    assert_eq!(wait(packets, processed), 84_000 + 63_000);
    assert_eq!(wait(bytes, processed), 26_400 + 303_000);
    // While others are sent: 4 ms are the longer time of a full packet, and 3 ms of one of 28 bytes; the last is processed and sent.
    let overlap = true;
    let at_once = SendingTime { overlap, ..processed };
    assert_eq!(wait(packets, at_once), 84_000 + 3_000);
    assert_eq!(wait(bytes, at_once), 300_000 + 4_000 + 3_000);
}

#[test]
fn parameters_of_the_budget_need_it() {
    let mut all = Values::defaults(FavourTail::PARAMETERS);
    all.set("share", Value::Number(0.25)).expect("a number");
    assert_eq!(
        FavourTail::check(&all).expect_err("there is no budget"),
        "`share` belongs to `budget = true`"
    );
    all.set("budget", Value::Flag(true)).expect("a flag");
    assert_eq!(FavourTail::check(&all), Ok(()));
}

/// What a random arrival is like.
#[derive(Clone, Copy)]
struct Arrivals {
    /// Per cent of packets that are of a flow never seen before.
    strangers: u64,
    /// Flows that come again and again.
    regulars: u64,
    /// Per cent of operations that are arrivals.
    busy: u64,
}

impl Arrivals {
    fn draw(self, rng: &mut Rng, fresh: &mut u32) -> (u32, u32) {
        let flow = if rng.below(100) < self.strangers {
            *fresh += 1;
            self.regulars as u32 + *fresh % 4000
        } else {
            // Some speak much more than others.
            let most = 1 + rng.below(self.regulars);
            rng.below(most) as u32
        };
        let len = [40, 576, 1500, 1 + rng.below(1500) as u32][rng.below(4) as usize];
        (flow, len)
    }
}

const ARRIVALS: [Arrivals; 4] = [
    Arrivals {
        strangers: 0,
        regulars: 8,
        busy: 50,
    },
    Arrivals {
        strangers: 30,
        regulars: 20,
        busy: 55,
    },
    Arrivals {
        strangers: 80,
        regulars: 3,
        busy: 52,
    },
    Arrivals {
        strangers: 100,
        regulars: 1,
        busy: 60,
    },
];

/// Every rule of docs/design/favourtail.md on and off, in packets and in bytes.
fn variants() -> Vec<Vec<(&'static str, Value)>> {
    vec![
        vec![limit(50)],
        vec![limit(50), ("count_in_service", Value::Flag(true))],
        vec![
            limit(20),
            ("push_out", Value::Flag(true)),
            ("ns2_compat", Value::Flag(true)),
        ],
        vec![
            ("limit", Value::Limit(Limit::Bytes(Bytes(30_000)))),
            ("push_out", Value::Flag(true)),
        ],
        vec![limit(100), BUDGET],
        vec![
            limit(60),
            BUDGET,
            ("count_in_service", Value::Flag(true)),
            ("host", Value::Choice("destination")),
        ],
        vec![
            limit(40),
            BUDGET,
            ("push_out", Value::Flag(true)),
            ("share", Value::Number(0.2)),
        ],
        vec![
            ("limit", Value::Limit(Limit::Unlimited)),
            BUDGET,
            ("burst", Value::Bytes(Bytes(3000))),
            ("host", Value::Choice("none")),
        ],
    ]
}

#[test]
fn the_queue_agrees_with_the_pointer_form_call_by_call() {
    let mut rng = Rng::from_seed(5);
    let mut favoured = 0;
    for values in variants() {
        let rules = Rules::of(&build(&values));
        let mut bench = Bench::new(build(&values), table(5000, 40));
        let mut oracle = Oracle::new(rules);
        let mut fresh = 0;
        for number in 0..OPERATIONS {
            let arrivals = ARRIVALS[(number / 5000) as usize % ARRIVALS.len()];
            if rng.below(100) < arrivals.busy && oracle.list.len() < 120 {
                let (flow, len) = arrivals.draw(&mut rng, &mut fresh);
                bench.enqueue(packet(flow, number, len));
                let (dropped, overtaken) = oracle.enqueue(&bench.flows, flow, number, len);
                assert_eq!(bench.dropped(), dropped, "{number}: {values:?}");
                let overtaken: Vec<(u32, u32)> = overtaken.map(|count| (flow, count)).into_iter().collect();
                favoured += overtaken.len();
                assert_eq!(bench.overtakes(), overtaken, "{number}: {values:?}");
            } else {
                let out = bench.dequeue().map(|packet| packet.segment.seq.0);
                assert_eq!(out, oracle.dequeue(), "{number}: {values:?}");
            }
            let tokens = bench.queue.budget.as_ref().map_or(0, |budget| budget.tokens);
            assert_eq!(tokens, oracle.tokens, "{number}: {values:?}");
        }
    }
    assert!(
        favoured > 50_000,
        "{favoured} packets were favoured: the runs say something"
    );
}

#[test]
fn the_invariants_hold_in_a_million_operations() {
    let mut rng = Rng::from_seed(6);
    for values in variants() {
        let plain = !values
            .iter()
            .any(|(name, _)| matches!(*name, "push_out" | "budget"));
        let mut bench = Bench::new(build(&values), table(5000, 40));
        // F2: the same arrivals and departures through drop-tail.
        let mut all = Values::defaults(DropTail::PARAMETERS);
        all.set("limit", Value::Limit(bench.queue.limit))
            .expect("a limit");
        let mut tail = Bench::new(DropTail::new(&all, &LINK), table(1, 1));
        let (mut fresh, mut waiting) = (0, BTreeMap::<u32, u32>::new());
        let mut last_out = BTreeMap::<u32, u32>::new();
        for number in 0..OPERATIONS {
            let arrivals = ARRIVALS[(number / 5000) as usize % ARRIVALS.len()];
            let before = bench.queue.backlog();
            if rng.below(100) < arrivals.busy && before.packets < 3000 {
                let (flow, mut len) = arrivals.draw(&mut rng, &mut fresh);
                if plain {
                    len = 1000; // F2 and F3 speak of packets of one size
                }
                bench.enqueue(packet(flow, number, len));
                tail.enqueue(packet(0, number, len));
                *waiting.entry(flow).or_default() += 1;
                if plain {
                    assert_eq!(bench.drops.len(), tail.drops.len(), "F2: {number}");
                }
                for (packet, _) in bench.drops.drain(..) {
                    *waiting.get_mut(&packet.flow.0).expect("it came") -= 1;
                }
                tail.drops.clear();
                bench.events.clear();
            } else {
                let out = bench.dequeue();
                tail.dequeue();
                assert_eq!(out.is_none(), before.packets == 0, "F3: {number}");
                if let Some(packet) = out {
                    *waiting.get_mut(&packet.flow.0).expect("it came") -= 1;
                    let last = last_out.insert(packet.flow.0, packet.segment.seq.0);
                    assert!(last < Some(packet.segment.seq.0), "F1: {number}, {last:?}");
                    if before.packets == 1 {
                        assert_eq!(bench.queue.backlog().packets, 0, "F4: {number}");
                    }
                }
            }
            waiting.retain(|_, count| *count > 0);
            if plain {
                assert_eq!(bench.queue.backlog(), tail.queue.backlog(), "F3: {number}");
            }
            assert!(
                bench.queue.parts()[0].packets as usize <= waiting.len(),
                "F5: {number}"
            );
            if number % 1024 == 0 && !bench.queue.count_in_service {
                let packets: u64 = waiting.values().map(|&count| u64::from(count)).sum();
                assert_eq!(
                    bench.queue.flows.population(),
                    (waiting.len(), packets),
                    "{number}"
                );
            }
        }
    }
}

#[test]
fn without_congestion_it_is_drop_tail() {
    // F4: at most one packet waits, from flows of every kind.
    let mut rng = Rng::from_seed(8);
    let mut bench = Bench::new(build(&[limit(50)]), table(10, 10));
    let mut waiting = None;
    for number in 0..100_000 {
        if waiting.is_none() && rng.below(2) == 0 {
            bench.enqueue(packet(rng.below(10) as u32, number, 1000));
            waiting = Some(number);
        } else {
            assert_eq!(bench.dequeue().map(|packet| packet.segment.seq.0), waiting.take());
        }
    }
    assert!(bench.events.is_empty() && bench.drops.is_empty());
}

#[test]
fn the_budget_bounds_what_normal_packets_wait() {
    // Every way to be favoured: strangers, flows that send when their last packet left, one host or many, bursts, silence.
    let mut rng = Rng::from_seed(9);
    let (mut worst_wait, mut worst_share) = (0.0_f64, 0.0_f64);
    let mut operations = 0;
    for run in 0..64 {
        let share = [0.0, 0.1, 0.5, 0.9][run % 4];
        let burst = [1500, 4000, 20_000, 100_000][run / 4 % 4];
        let host = ["source", "none", "destination"][run % 3];
        let mut values = vec![
            limit(60),
            BUDGET,
            ("share", Value::Number(share)),
            ("burst", Value::Bytes(Bytes(burst))),
            ("host", Value::Choice(host)),
        ];
        if run % 5 == 0 {
            values.push(("count_in_service", Value::Flag(true)));
        }
        let mut bench = Bench::new(build(&values), table(60_000, [1, 7, 60_000][run % 3]));
        let (mut fresh, mut served, mut in_favour) = (10_u32, 0_u64, 0_u64);
        // Normal packets in order: bytes served when they came and bytes of normal packets ahead, with themselves.
        let mut normal: VecDeque<(u32, u64, u64)> = VecDeque::new();
        // Since the normal part last began to be busy: bytes served, of these normal, and the largest debt.
        let (mut since, mut of_normal) = (0_u64, 0_u64);
        let strangers = [80, 50, 99][run % 3];
        for number in 0..16_000_u32 {
            operations += 1;
            let phase = number / 500 % 4;
            let arrives = rng.below(100) < [70, 52, 45, 90][phase as usize];
            if arrives {
                let flow = if rng.below(100) < strangers {
                    fresh = 10 + (fresh + 1) % 59_000;
                    fresh
                } else {
                    rng.below(10) as u32
                };
                let len = [40, 1500, 500, 1 + rng.below(1500) as u32][rng.below(4) as usize];
                let ahead = bench.queue.parts()[1];
                bench.enqueue(packet(flow, number, len));
                let [p, n] = bench.queue.parts();
                if n.packets > ahead.packets {
                    if normal.is_empty() {
                        (since, of_normal) = (0, 0);
                    }
                    normal.push_back((number, served, n.bytes.0));
                } else if bench.drops.is_empty() {
                    in_favour += u64::from(len);
                }
                assert_eq!(p.bytes.0, in_favour);
                bench.drops.clear();
                bench.events.clear();
            } else if let Some(out) = bench.dequeue() {
                let len = u64::from(out.segment.len());
                served += len;
                since += len;
                if normal.front().is_some_and(|front| front.0 == out.segment.seq.0) {
                    of_normal += len;
                    let Some((_, then, ahead)) = normal.pop_front() else {
                        unreachable!("it was there")
                    };
                    let bound = (ahead + burst) as f64 / (1.0 - share);
                    let waited = (served - then) as f64;
                    assert!(
                        waited <= bound + 1e-6,
                        "run {run}: {waited} bytes, {bound} allowed"
                    );
                    worst_wait = worst_wait.max(waited / bound);
                } else {
                    in_favour -= len;
                }
                if !normal.is_empty() {
                    // Over the backlogged interval normal packets got 1 - phi of the bytes but for the burst.
                    let owed = (1.0 - share) * since as f64 - of_normal as f64;
                    assert!(owed <= (burst + 1500) as f64, "run {run}: {owed} bytes behind");
                    worst_share = worst_share.max(owed / (burst + 1500) as f64);
                }
            }
            let budget = bench.queue.budget.as_ref().expect("it has one");
            assert!(
                budget.tokens + in_favour * WHOLE <= budget.burst,
                "T + bytes(P) <= sigma: run {run}, {number}"
            );
            if let Some(hosts) = &budget.hosts
                && number % 64 == 0
            {
                assert_eq!(
                    budget.tokens + hosts.debts(),
                    budget.burst,
                    "what is not there is owed: run {run}, {number}"
                );
            }
        }
    }
    println!(
        "{operations} operations; waited {worst_wait:.3} of the bound, {worst_share:.3} of the debt allowed"
    );
    assert!(operations >= 1_000_000);
    assert!(
        worst_wait > 0.9,
        "the adversary comes near the bound: {worst_wait}"
    );
}

#[test]
fn a_flow_or_host_that_is_gone_leaves_nothing_behind() {
    let mut bench = Bench::new(build(&[BUDGET, limit(100)]), table(50_000, 50_000));
    let memory = |bench: &Bench<FavourTail>| bench.queue.state_bytes().expect("it is known");
    for flow in 0..100 {
        bench.enqueue(packet(flow, flow, 100));
    }
    // Every packet is of a host that never comes again: 100 wait, and hosts with debts only make 200 with them at the most
    // when a stranger is favoured.
    let most = 2 * 128 * 4 + 100 * 16 + 300 * 32;
    for flow in 100..50_000 {
        bench.dequeue();
        bench.enqueue(packet(flow, flow, 100));
        assert!(memory(&bench) <= most, "{} bytes, {most} allowed", memory(&bench));
    }
    let debts = |bench: &Bench<FavourTail>| {
        let budget = bench.queue.budget.as_ref().expect("it has one");
        budget.hosts.as_ref().map(Hosts::debts)
    };
    assert!(debts(&bench) > Some(0), "strangers were favoured");
    while bench.dequeue().is_some() {}
    assert_eq!(bench.queue.flows.population(), (0, 0));
    // One host that comes again earns for all that owe something, and then they are forgotten.
    for number in 0..2000 {
        bench.enqueue(packet(0, 50_000 + number, 1500));
        bench.dequeue();
    }
    let budget = bench.queue.budget.as_ref().expect("it has one");
    let hosts = budget.hosts.as_ref().expect("sources");
    assert!(
        hosts.present.population().0 <= 1,
        "{:?}",
        hosts.present.population()
    );
}
