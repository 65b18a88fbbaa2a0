//! What the closed forms of the super-packet queue share: the queue of the core, fed packet by packet without a network.

pub(super) mod decision;
pub(super) mod equal_drop;
pub(super) mod state_age;

use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable, HostId};
use fleetfoot_core::packet::{BufId, Flags, Packet, Segment};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{
    AnyQueue, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEvent,
};
use fleetfoot_core::superpacket::{Layout, Mark};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;

/// A queue with the scratch space of its calls.
struct Rig {
    queue: AnyQueue,
    flows: FlowTable,
    drops: Vec<(Packet, DropReason)>,
    events: Vec<QueueEvent>,
}

impl Rig {
    /// The queue `kind` with these parameters, for `flows` flows of as many hosts.
    fn new(kind: &str, parameters: &[(&str, Value)], flows: u32) -> Rig {
        let entry = AnyQueue::entry(kind).expect("the analyses name registered queues");
        let mut values = Values::defaults(entry.parameters);
        for (name, value) in parameters {
            values
                .set(name, *value)
                .expect("the options of an analysis have the ranges of the queue's parameters");
        }
        let link = LinkContext {
            mtu: 1500,
            rate: RATE,
            framing: 0,
            delay: Duration::ZERO,
            seed: 1,
        };
        let mut table = FlowTable::new();
        for flow in 0..flows {
            table.push(FlowKey {
                source: HostId(flow),
                destination: HostId(flows),
                source_port: 1,
                destination_port: 2,
                protocol: 6,
            });
        }
        Rig {
            queue: AnyQueue::build(kind, &values, &link).expect("it is registered"),
            flows: table,
            drops: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Offers a packet of 1500 bytes; whether it was admitted.
    fn offer(&mut self, now: Instant, flow: u32, mark: Mark) -> bool {
        let packet = packet(flow, mark);
        self.offer_packet(now, packet)
    }

    fn offer_packet(&mut self, now: Instant, packet: Packet) -> bool {
        let before = self.drops.len();
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: 0,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.enqueue(now, packet, &mut context);
        let admitted = self.drops.len() == before;
        self.drops.clear();
        self.events.clear();
        admitted
    }

    /// Takes a packet out; whether there was one.
    fn take(&mut self, now: Instant) -> bool {
        let mut context = QueueContext {
            flows: &self.flows,
            ingress: 0,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.dequeue(now, &mut context).is_some()
    }

    /// Packets promised and not yet seen.
    fn reserved(&self) -> u32 {
        match &self.queue {
            AnyQueue::SuperPacket(queue) => queue.reserved(),
            _ => 0,
        }
    }
}

fn packet(flow: u32, mark: Mark) -> Packet {
    let mut segment = Segment {
        payload: 1460,
        overhead: 40,
        flags: Flags::ACK.with(Flags::DF),
        ..Segment::default()
    };
    if !mark.is_regular() {
        Layout::LOCAL
            .mark(&mut segment, mark)
            .expect("lengths up to 63 and identifiers up to 255 fit the layout");
    }
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment,
    }
}

/// The queue's limit in packets.
fn limit(packets: u64) -> Value {
    Value::Limit(Limit::Packets(packets as u32))
}

/// Speed of the line behind the queue.
const RATE: Rate = Rate::from_bps(100_000_000);

/// Time of a packet of 1500 bytes at that speed.
const PACKET_TIME: Duration = Duration::from_micros(120);
