//! What one decision of a queue discipline costs, with many super-packets under way.
//!
//! Every flow sends super-packets of ten, in layout B; the flows take turns in an order that caches do not foresee, so that each
//! packet's entry is as cold as it can be. Each packet is followed by a departure once 32 wait.

use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable, HostId};
use fleetfoot_core::packet::{BufId, Flags, Packet, Segment};
use fleetfoot_core::parameter::{ParameterKind, Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit, LinkContext, QueueContext, QueueDiscipline};
use fleetfoot_core::superpacket::{Layout, Mark};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use std::fmt;
use std::hint::black_box;

/// Flows, each with a super-packet under way, in the order of the table.
pub const ACTIVE: [u32; 2] = [1_000, 100_000];
/// Packets of a super-packet.
const LENGTH: u8 = 10;
/// Packets whose decisions are timed one by one.
const TIMED: usize = 200_000;
/// FavourTail with its budget, which asks for hosts too.
const BUDGET: &str = "favourtail, budget";
/// Packets waiting.
const BACKLOG: u32 = 32;

/// Cost of one discipline.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueCost {
    /// Registered name.
    pub discipline: &'static str,
    /// Super-packets under way.
    pub active: u32,
    /// Median of the calls of `enqueue`, less the cost of reading the clock.
    pub median_ns: u64,
    /// 99th percentile of the same.
    pub p99_ns: u64,
    /// Mean of one packet's `enqueue` and `dequeue`, with making the packet.
    pub packet_ns: f64,
    /// `packet_ns` over drop-tail's in the same run.
    pub ratio: f64,
    /// Packets that were dropped, of those timed.
    pub drops: u64,
    /// Bytes of the discipline's state, if it reports them.
    pub state_bytes: Option<usize>,
}

/// Measures every registered discipline, and FavourTail with a budget, at each of [`ACTIVE`]. `clock` counts nanoseconds.
pub fn measure(clock: &mut dyn FnMut() -> u64) -> Vec<QueueCost> {
    let mut costs: Vec<QueueCost> = Vec::new();
    for active in ACTIVE {
        let mut drop_tail = None;
        for name in names() {
            let mut cost = one(name, active, clock);
            let base = *drop_tail.get_or_insert(cost.packet_ns);
            cost.ratio = cost.packet_ns / base;
            costs.push(cost);
        }
    }
    costs
}

/// What [`measure`] and [`pass`] know by name.
pub fn names() -> impl Iterator<Item = &'static str> {
    AnyQueue::ENTRIES.iter().map(|entry| entry.name).chain([BUDGET])
}

/// As many packets as that through the discipline `name` of [`names`] with this number of flows, after as many as [`measure`]
/// lets pass first: for programs that count instructions. How many waited at the end.
///
/// # Panics
/// `name` is none of [`names`], or `active` is 0.
pub fn pass(name: &str, active: u32, packets: u32) -> u32 {
    let mut feed = Feed::new(name, active);
    for _ in 0..feed.warm_up() + packets {
        feed.step();
    }
    feed.queue.backlog().packets
}

fn build(name: &str, active: u32) -> AnyQueue {
    let (name, budget) = match name {
        BUDGET => ("favourtail", true),
        other => (other, false),
    };
    let entry = AnyQueue::entry(name).expect("an entry of the registry");
    let mut values = Values::defaults(entry.parameters);
    for parameter in entry.parameters {
        // Nine of ten packets are promised at the most, and a discipline may promise half of its room.
        if matches!(parameter.kind, ParameterKind::Limit) && parameter.name == "limit" {
            let limit = Limit::Packets(12 * active + 1000);
            values.set(parameter.name, Value::Limit(limit)).expect("a limit");
        }
    }
    if budget {
        values.set("budget", Value::Flag(true)).expect("a flag");
    }
    let link = LinkContext {
        mtu: 1500,
        rate: Rate::from_bps(100_000_000_000),
        framing: 0,
        delay: Duration::ZERO,
        seed: 1,
    };
    AnyQueue::build(name, &values, &link).expect("an entry of the registry")
}

/// A queue, and the flows that feed it.
struct Feed {
    queue: AnyQueue,
    flows: FlowTable,
    /// Identifier of the super-packet under way and packets of it that were sent.
    slots: Vec<(u8, u8)>,
    next: u32,
    /// Odd and far from small: consecutive packets are of distant flows.
    stride: u32,
    now: Instant,
    drops: Vec<(Packet, fleetfoot_core::queue::DropReason)>,
    events: Vec<fleetfoot_core::queue::QueueEvent>,
    dropped: u64,
}

impl Feed {
    fn new(name: &str, active: u32) -> Feed {
        let mut flows = FlowTable::new();
        for flow in 0..active {
            flows.push(FlowKey {
                source: HostId(flow),
                destination: HostId(active),
                source_port: flow as u16,
                destination_port: 80,
                protocol: 6,
            });
        }
        Feed {
            queue: build(name, active),
            flows,
            slots: vec![(0, 0); active as usize],
            next: 0,
            stride: (active / 5 * 3) | 1,
            now: Instant::ZERO,
            drops: Vec::new(),
            events: Vec::new(),
            dropped: 0,
        }
    }

    /// The next packet: 12 ns after the one before, a first or a later one of its flow.
    fn packet(&mut self) -> Packet {
        self.now += Duration::from_nanos(12);
        self.next = (self.next + self.stride) % self.slots.len() as u32;
        let slot = &mut self.slots[self.next as usize];
        let mark = if slot.1 == 0 {
            slot.0 = slot.0.wrapping_add(1);
            Mark::first(LENGTH, u16::from(slot.0))
        } else {
            Mark::follower(LENGTH, u16::from(slot.0))
        };
        slot.1 = (slot.1 + 1) % LENGTH;
        let mut segment = Segment {
            payload: 1460,
            overhead: 40,
            flags: Flags::ACK.with(Flags::DF),
            ..Segment::default()
        };
        let marked = Layout::LOCAL.mark(&mut segment, mark);
        debug_assert!(marked.is_ok());
        Packet {
            enqueued_at: self.now,
            flow: FlowId(self.next),
            buf: BufId::NONE,
            segment,
        }
    }

    /// Packets of two super-packets of every flow: tables are warm then, and filled as they will be.
    fn warm_up(&self) -> u32 {
        2 * u32::from(LENGTH) * (self.slots.len() as u32).max(1000)
    }

    fn step(&mut self) {
        let packet = self.packet();
        self.enqueue(packet);
        self.dequeue();
    }

    fn enqueue(&mut self, packet: Packet) {
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: 0,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.enqueue(self.now, packet, &mut context);
    }

    fn dequeue(&mut self) {
        if self.queue.backlog().packets > BACKLOG {
            let mut context = QueueContext {
                flows: &self.flows,
                ingress: 0,
                drops: &mut self.drops,
                events: &mut self.events,
            };
            black_box(self.queue.dequeue(self.now, &mut context));
        }
        self.dropped += self.drops.len() as u64;
        self.drops.clear();
        self.events.clear();
    }
}

fn one(name: &'static str, active: u32, clock: &mut dyn FnMut() -> u64) -> QueueCost {
    let mut feed = Feed::new(name, active);
    for _ in 0..feed.warm_up() {
        feed.step();
    }
    let packets = (u32::from(LENGTH) * active).max(1_000_000);
    let begin = clock();
    for _ in 0..packets {
        feed.step();
    }
    let packet_ns = clock().saturating_sub(begin) as f64 / f64::from(packets);
    // Decisions one by one, less what two readings of the clock cost by themselves.
    let mut empty: Vec<u64> = (0..10_000)
        .map(|_| {
            let begin = clock();
            clock().saturating_sub(begin)
        })
        .collect();
    empty.sort_unstable();
    let overhead = empty[empty.len() / 2];
    feed.dropped = 0;
    let mut timed: Vec<u64> = (0..TIMED)
        .map(|_| {
            let packet = black_box(feed.packet());
            let begin = clock();
            feed.enqueue(packet);
            let taken = clock().saturating_sub(begin);
            feed.dequeue();
            taken.saturating_sub(overhead)
        })
        .collect();
    timed.sort_unstable();
    QueueCost {
        discipline: name,
        active,
        median_ns: timed[TIMED / 2],
        p99_ns: timed[TIMED * 99 / 100],
        packet_ns,
        ratio: 1.0,
        drops: feed.dropped,
        state_bytes: feed.queue.state_bytes(),
    }
}

/// A table of costs.
#[derive(Debug)]
pub struct Table<'a>(pub &'a [QueueCost]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:22} {:>8} {:>10} {:>10} {:>10} {:>12} {:>8} {:>12}",
            "queue", "flows", "median/ns", "p99/ns", "packet/ns", "/ drop-tail", "drops", "state/B"
        )?;
        for cost in self.0 {
            let state = cost
                .state_bytes
                .map_or(String::from("-"), |bytes| bytes.to_string());
            writeln!(
                f,
                "{:22} {:>8} {:>10} {:>10} {:>10.1} {:>12.2} {:>8} {:>12}",
                cost.discipline,
                cost.active,
                cost.median_ns,
                cost.p99_ns,
                cost.packet_ns,
                cost.ratio,
                cost.drops,
                state
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Feed, one};

    #[test]
    fn super_packets_are_under_way_and_all_are_admitted() {
        let mut now = 0;
        let mut clock = || {
            now += 10;
            now
        };
        for name in ["drop-tail", "superpacket"] {
            let cost = one(name, 100, &mut clock);
            assert_eq!((cost.drops, cost.median_ns), (0, 0), "{name}");
        }
        let mut feed = Feed::new("superpacket", 100);
        for _ in 0..350 {
            let packet = feed.packet();
            feed.enqueue(packet);
            feed.dequeue();
        }
        let fleetfoot_core::queue::AnyQueue::SuperPacket(queue) = &feed.queue else {
            panic!("built by name");
        };
        // Half of the flows have sent four of ten, the others three.
        assert_eq!(queue.reserved(), 100 * 10 - 350);
    }
}
