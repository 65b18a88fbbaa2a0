//! The contract of every queue discipline (G1 to G7 in `fleetfoot_core::queue`), held call by call.
//!
//! The unit tests of core include this file, which they cannot reach as a crate.

use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable, HostId};
use fleetfoot_core::packet::{BufId, Flags, Packet, Segment};
use fleetfoot_core::queue::{DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEvent};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use std::collections::BTreeMap;
use std::vec::Vec;

/// A slow link, as a discipline learns of it.
pub const LINK: LinkContext = LinkContext {
    mtu: 1500,
    rate: Rate(10_000_000),
    framing: 0,
    delay: Duration::ZERO,
    seed: 7,
};

/// A table of `n` flows from five hosts to one.
pub fn flows(n: u32) -> FlowTable {
    let mut table = FlowTable::new();
    for i in 0..n {
        table.push(FlowKey {
            source: HostId(i % 5),
            destination: HostId(100),
            source_port: i as u16,
            destination_port: 80,
            protocol: 6,
        });
    }
    table
}

/// The packet `number` of the run: `len` bytes at layer 3 with the traffic class `tos`.
pub fn packet(flow: u32, number: u32, len: u32, tos: u8) -> Packet {
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment: Segment {
            seq: SeqNumber(number),
            payload: len.saturating_sub(40),
            overhead: len.min(40) as u8,
            flags: Flags::ACK,
            tos,
            ..Segment::default()
        },
    }
}

/// A discipline with its scratch space, which checks conservation, limits and work conservation after every call.
pub struct Bench<Q> {
    /// The discipline.
    pub queue: Q,
    /// Its flows.
    pub flows: FlowTable,
    /// The link by which packets come.
    pub ingress: u16,
    /// The limit that its backlog is held to.
    pub limit: Limit,
    /// What the last call dropped.
    pub drops: Vec<(Packet, DropReason)>,
    /// What the last call reported.
    pub events: Vec<QueueEvent>,
    waiting: BTreeMap<u32, Packet>,
    last_out: BTreeMap<(FlowId, u8), u32>,
    /// Part of a flow that keeps its order: all of it unless a discipline separates packets of one flow.
    pub class: fn(&Packet) -> u8,
    /// Number, traffic class and reason of every packet that left or was dropped.
    pub log: Vec<(Option<u32>, u8, DropReason)>,
}

impl<Q: QueueDiscipline> Bench<Q> {
    /// An empty bench.
    pub fn new(queue: Q, flows: FlowTable, limit: Limit) -> Bench<Q> {
        Bench {
            queue,
            flows,
            ingress: 0,
            limit,
            drops: Vec::new(),
            events: Vec::new(),
            waiting: BTreeMap::new(),
            last_out: BTreeMap::new(),
            class: |_| 0,
            log: Vec::new(),
        }
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, now: Instant, mut packet: Packet) {
        packet.enqueued_at = now;
        self.waiting.insert(packet.segment.seq.0, packet);
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: self.ingress,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.enqueue(now, packet, &mut context);
        self.check();
    }

    /// The link asks for a packet.
    pub fn dequeue(&mut self, now: Instant) -> Option<Packet> {
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: self.ingress,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        let had = self.queue.backlog().packets;
        let out = self.queue.dequeue(now, &mut context);
        if let Some(packet) = out {
            let number = packet.segment.seq.0;
            let arrived = self.waiting.remove(&number);
            let arrived = arrived.unwrap_or_else(|| panic!("G1: {number} was made up"));
            let part = (packet.flow, (self.class)(&arrived));
            // G4: packets carry rising numbers, so within a flow they must leave in rising order.
            if let Some(last) = self.last_out.insert(part, number) {
                assert!(last < number, "G4: {number} left after {last}");
            }
            self.log
                .push((Some(number), packet.segment.tos, DropReason::Full));
        } else {
            assert!(
                had == 0 || !self.drops.is_empty(),
                "G3: {had} waited and none left"
            );
        }
        self.check();
        if out.is_none() {
            assert_eq!(self.queue.backlog().packets, 0, "G3: work is left behind");
        }
        out
    }

    fn check(&mut self) {
        for (packet, reason) in self.drops.drain(..) {
            let number = packet.segment.seq.0;
            assert!(
                self.waiting.remove(&number).is_some(),
                "G1: {number} dropped twice"
            );
            self.log.push((Some(number), packet.segment.tos, reason));
        }
        self.events.clear();
        let backlog = self.queue.backlog();
        let bytes: u64 = self.waiting.values().map(|p| u64::from(p.segment.len())).sum();
        assert_eq!(
            (backlog.packets as usize, backlog.bytes.0),
            (self.waiting.len(), bytes),
            "G1: conservation"
        );
        assert!(
            self.limit.holds(backlog),
            "G2: {backlog:?} exceeds {:?}",
            self.limit
        );
        assert_eq!(
            self.queue.ready_at().is_none(),
            backlog.packets == 0,
            "readiness follows the backlog"
        );
    }
}

/// A call of a discipline.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Negative: the clock of the call is behind the previous one.
    pub step_ns: i64,
    /// Enqueue this flow, length, traffic class and identification, or dequeue.
    pub packet: Option<(u32, u32, u8, u16)>,
}

/// Plays `operations` on a bench and returns its log. Numbers rise with the calls.
pub fn play<Q: QueueDiscipline>(
    bench: &mut Bench<Q>,
    operations: &[Operation],
) -> Vec<(Option<u32>, u8, DropReason)> {
    let mut now = 1_000_000_000_i64;
    for (number, operation) in operations.iter().enumerate() {
        now += operation.step_ns;
        let now = Instant::from_nanos(now.max(0) as u64);
        match operation.packet {
            Some((flow, len, tos, ip_id)) => {
                let mut packet = packet(flow, number as u32, len, tos);
                packet.segment.ip_id = ip_id;
                packet.segment.flags = Flags::ACK.with(Flags::DF);
                bench.enqueue(now, packet);
            }
            None => drop(bench.dequeue(now)),
        }
    }
    std::mem::take(&mut bench.log)
}

/// A call with any header at any time.
#[derive(Clone, Copy, Debug)]
pub struct StrangeCall {
    /// When, nanoseconds.
    pub now: u64,
    /// A packet arrives; otherwise the link asks for one.
    pub arrives: bool,
    /// Flow, identification and the link by which it comes.
    pub flow: u32,
    /// Payload, and the urgent pointer.
    pub payload: u32,
    /// Traffic class, header bytes, kind.
    pub bytes: [u8; 3],
    /// Flags.
    pub flags: u16,
}

/// Makes `calls`, which must not panic (G7). `departs` decides by the payload whether the link asks for a packet.
pub fn strange_calls(queue: &mut impl QueueDiscipline, calls: &[StrangeCall], departs: impl Fn(u32) -> bool) {
    let table = flows(3);
    let (mut drops, mut events) = (Vec::new(), Vec::new());
    for call in calls {
        let mut context = QueueContext {
            flows: &table,
            ingress: call.flow as u16,
            drops: &mut drops,
            events: &mut events,
        };
        let now = Instant::from_nanos(call.now);
        if call.arrives {
            let mut strange = packet(call.flow, call.flow, 0, call.bytes[0]);
            strange.enqueued_at = now;
            strange.segment.payload = call.payload;
            strange.segment.overhead = call.bytes[1];
            strange.segment.kind_sack = call.bytes[2];
            strange.segment.flags = Flags(call.flags);
            strange.segment.ip_id = call.flow as u16;
            strange.segment.urgent = (call.payload >> 16) as u16;
            queue.enqueue(now, strange, &mut context);
        } else if departs(call.payload) {
            queue.dequeue(now, &mut context);
        }
    }
}
