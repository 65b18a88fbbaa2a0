//! The naive transcription call by call, and what can be proved (docs/design/sp-hardened.md#p1) over a million random operations.

extern crate std;

use super::super::{AnyQueue, DropReason, DropTail, Limit, QueueEvent};
use super::*;
use crate::flow::{FlowId, FlowKey, FlowTable, HostId};
use crate::packet::{BufId, Flags, Segment};
use crate::parameter::Value;
use crate::rng::Rng;
use crate::superpacket::{Layout, Mark, Role};
use crate::time::Duration;
use crate::units::{Bytes, Rate};
use alloc::vec::Vec;
use std::collections::BTreeMap;
use std::println;

mod aqm;
mod attacks;
mod fair;
mod oracle;
mod properties;

use oracle::{Constants, Fate, Oracle};

const LINK: LinkContext = LinkContext {
    mtu: 1500,
    rate: Rate(1_000_000_000),
    framing: 0,
    delay: Duration::ZERO,
    seed: 7,
};

/// Flows of eight hosts, five each.
fn flows() -> FlowTable {
    let mut table = FlowTable::new();
    for i in 0..40_u32 {
        table.push(FlowKey {
            source: HostId(i % HOSTS),
            destination: HostId(100),
            source_port: i as u16,
            destination_port: 80,
            protocol: 6,
        });
    }
    table
}

const HOSTS: u32 = 8;

fn packet(flow: u32, number: u32, mark: Mark) -> Packet {
    let mut segment = Segment {
        seq: crate::seq::SeqNumber(number),
        payload: 1460,
        overhead: 40,
        flags: Flags::ACK.with(Flags::DF),
        ..Segment::default()
    };
    Layout::LOCAL
        .mark(&mut segment, mark)
        .expect("the layout can say it");
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment,
    }
}

fn values(table: &'static [Parameter], given: &[(&str, Value)]) -> Values {
    let mut values = Values::defaults(table);
    for &(name, value) in given {
        values.set(name, value).expect("a parameter of this table");
    }
    values
}

/// Scratch space of one queue.
struct Bench<Q> {
    queue: Q,
    flows: FlowTable,
    drops: Vec<(Packet, DropReason)>,
    events: Vec<QueueEvent>,
}

impl<Q: QueueDiscipline> Bench<Q> {
    fn new(queue: Q) -> Bench<Q> {
        Bench {
            queue,
            flows: flows(),
            drops: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Whether it was queued.
    fn enqueue(&mut self, now: u64, port: u16, mut packet: Packet) -> bool {
        self.drops.clear();
        self.events.clear();
        let now = Instant::from_nanos(now);
        packet.enqueued_at = now;
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: port,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.enqueue(now, packet, &mut context);
        self.drops.is_empty()
    }

    fn dequeue(&mut self, now: u64) -> Option<Packet> {
        self.drops.clear();
        self.events.clear();
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: 0,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.dequeue(Instant::from_nanos(now), &mut context)
    }

    fn saw(&self, kind: QueueEventKind) -> bool {
        self.events.iter().any(|event| event.kind == kind)
    }
}

/// A super-packet that a random host is sending.
#[derive(Clone, Copy, Debug)]
struct Sending {
    flow: u32,
    id: u16,
    length: u8,
    sent: u8,
}

/// Random traffic: hosts that begin, continue, cut short and abandon super-packets; regular packets, strays, departures.
struct Traffic {
    rng: Rng,
    now: u64,
    sending: Vec<Sending>,
    number: u32,
}

enum Operation {
    Enqueue { flow: u32, port: u16, mark: Mark },
    Dequeue,
}

impl Traffic {
    fn new(seed: u64) -> Traffic {
        Traffic {
            rng: Rng::from_seed(seed),
            now: 1_000_000,
            sending: Vec::new(),
            number: 0,
        }
    }

    fn next(&mut self) -> Operation {
        let rng = &mut self.rng;
        self.number += 1;
        self.now += match rng.below(1000) {
            0 => rng.below(30_000_000),
            1 if rng.below(20) == 0 => rng.below(2_500_000_000),
            2..300 => 0,
            _ => rng.below(20_000),
        };
        let choice = rng.below(100);
        let flow = rng.below(40) as u32;
        let mut mark = Mark::REGULAR;
        let mut sender = flow;
        match choice {
            0..47 => return Operation::Dequeue,
            47..55 => (),
            55..61 => {
                let ids = if rng.below(4) == 0 { 3 } else { 256 };
                let sending = Sending {
                    flow,
                    id: rng.below(ids) as u16,
                    length: 2 + rng.below(11) as u8,
                    sent: 1,
                };
                mark = Mark::first(sending.length, sending.id);
                if rng.below(100) == 0 {
                    mark = mark.ending();
                }
                // Some are never continued.
                if rng.below(8) != 0 {
                    self.sending.push(sending);
                }
            }
            61..63 => mark = Mark::follower(5, rng.below(256) as u16),
            _ if self.sending.is_empty() => (),
            _ => {
                let at = rng.below(self.sending.len() as u64) as usize;
                let sending = &mut self.sending[at];
                sending.sent += 1;
                sender = sending.flow;
                mark = Mark::follower(sending.length, sending.id);
                // Now and then one more than announced.
                let over = sending.sent >= sending.length && rng.below(20) != 0;
                if rng.below(60) == 0 {
                    mark = mark.ending();
                }
                if mark.last || over || rng.below(200) == 0 {
                    self.sending.swap_remove(at);
                }
            }
        }
        let port = (sender % HOSTS / 2) as u16;
        Operation::Enqueue {
            flow: sender,
            port,
            mark,
        }
    }
}

fn small(reserve: u64, newcomers: u64, credit: u64) -> Values {
    values(
        SpH::PARAMETERS,
        &[
            ("limit", Value::Limit(Limit::Packets(60))),
            ("reserve", Value::Integer(reserve)),
            ("newcomers", Value::Integer(newcomers)),
            ("credit", Value::Integer(credit)),
            ("port_refill", Value::Duration(Duration::from_secs(1))),
            ("max_epoch", Value::Duration(Duration::from_millis(20))),
        ],
    )
}

fn constants(values: &Values) -> Constants {
    let Limit::Packets(size) = values.limit("limit") else {
        panic!("a limit in packets");
    };
    let of = |name| values.integer(name).map(|value| value as i64);
    let c_max = of("credit").expect("given");
    let c_port_max = of("port_credit").unwrap_or(4 * c_max);
    let m = of("max_length").expect("given");
    let r_cap = of("reserve").unwrap_or(i64::from(size) / 2);
    Constants {
        size: i64::from(size),
        m,
        r_cap,
        p_new: of("newcomers").unwrap_or(m.max(r_cap / 4)),
        c_max,
        c_port_max,
        growth: values
            .duration("port_refill")
            .map_or(0, |refill| refill.as_nanos() / (8 * c_port_max as u64)),
        e_min: values.duration("min_epoch").expect("given").as_nanos(),
        e_max: values.duration("max_epoch").expect("given").as_nanos(),
        headroom: of("headroom").unwrap_or(m).min(r_cap),
        drops: values.choice("denial") == "drop",
    }
}

#[test]
fn equals_the_naive_transcription_call_by_call() {
    let mut seen = BTreeMap::new();
    let configurations = [
        (30, 10, 40, "drop", Some(0)),
        (40, 12, 126, "regular", None),
        (20, 0, 9, "drop", None),
        (20, 20, 20, "regular", Some(5)),
    ];
    for (round, &(reserve, newcomers, credit, denial, headroom)) in configurations.iter().enumerate() {
        let mut values = small(reserve, newcomers, credit);
        values.set("denial", Value::Choice(denial)).expect("a parameter");
        if let Some(headroom) = headroom {
            values
                .set("headroom", Value::Integer(headroom))
                .expect("a parameter");
        }
        let mut bench = Bench::new(SpH::new(&values, &LINK));
        let mut oracle = Oracle::new(constants(&values), LINK.seed);
        let mut traffic = Traffic::new(round as u64);
        for step in 0..250_000 {
            match traffic.next() {
                Operation::Dequeue => {
                    let some = bench.dequeue(traffic.now).is_some();
                    assert_eq!(some, oracle.q > 0);
                    oracle.q -= i64::from(some);
                }
                Operation::Enqueue { flow, port, mark } => {
                    let queued = bench.enqueue(traffic.now, port, packet(flow, step, mark));
                    let fate = match bench.queue.packets.last() {
                        Some(true) if queued => Fate::Promised,
                        _ if queued => Fate::Regular,
                        _ => Fate::Dropped,
                    };
                    let key = bench.flows.key(FlowId(flow));
                    let expected = oracle.enqueue(traffic.now, key, port, mark);
                    assert_eq!(fate, expected, "round {round}, step {step}: {mark:?}");
                    *seen.entry((mark.role as u8, fate as u8)).or_insert(0_u32) += 1;
                    let ledger = &mut bench.queue.ledger;
                    let epoch = ledger.clock.epoch;
                    assert_eq!(i64::from(ledger.reserved.total(epoch)), oracle.r());
                    assert_eq!(i64::from(ledger.pooled.total(epoch)), oracle.r_new());
                    let now = Instant::from_nanos(traffic.now);
                    assert_eq!(
                        i64::from(*ledger.ports.credit(now, port)),
                        *oracle.port(traffic.now, port)
                    );
                    let places: Vec<u16> = ledger.sources.all().map(|(place, _)| place).collect();
                    for place in places {
                        let source = ledger.sources.at_mut(place);
                        let host = source.host();
                        assert_eq!(i64::from(source.credit), oracle.credit(host));
                        assert_eq!(i64::from(source.held.total(epoch)), oracle.out(host));
                    }
                }
            }
        }
    }
    println!("role, fate: calls: {seen:?}");
    // Every branch was taken: regular and follower as regular, promised or dropped, first all three.
    assert_eq!(seen.len(), 2 + 3 + 3);
    assert!(seen.values().all(|&count| count > 500), "{seen:?}");
}

#[test]
fn without_super_packets_it_is_drop_tail() {
    for limit in [Limit::Packets(40), Limit::Bytes(Bytes(70_000))] {
        let of = |table| values(table, &[("limit", Value::Limit(limit))]);
        let mut hardened = Bench::new(SpH::new(&of(SpH::PARAMETERS), &LINK));
        let mut plain = Bench::new(DropTail::new(&of(DropTail::PARAMETERS), &LINK));
        let mut rng = Rng::from_seed(3);
        let mut refused = 0;
        for number in 0..1_000_000_u32 {
            let now = u64::from(number) * 1000;
            if rng.below(100) < 49 {
                assert_eq!(hardened.dequeue(now), plain.dequeue(now));
            } else {
                let mut packet = packet(rng.below(40) as u32, number, Mark::REGULAR);
                packet.segment.payload = rng.below(1461) as u32;
                let queued = hardened.enqueue(now, 0, packet);
                assert_eq!(queued, plain.enqueue(now, 0, packet));
                refused += u32::from(!queued);
            }
            assert_eq!(hardened.queue.backlog(), plain.queue.backlog());
        }
        assert!(refused > 5000, "only {refused} were refused");
    }
}
