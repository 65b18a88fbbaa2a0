//! SP-FQ: hardened super-packets for the buffer, round robin over flows for the bandwidth.
//!
//! The admission is SP-H's, with one test more: what waits and what is reserved of one flow stays within the flow's limit. What
//! is admitted is served by deficit round robin, so the rate of a flow does not depend on the length of its super-packets,
//! and announcing too much gains nothing. A short flow's window still enters as a whole or not at all.
//!
//! **Source.** Router digest 11.5 over 11.2; service: Shreedhar and Varghese, SIGCOMM 1995, as in `drr`.
//!
//! **Deviations.** Nothing that waits is pushed out, for it may have been promised a place: arrivals are refused instead. By
//! default the limit of a flow is not fixed but as much as nobody has (Choudhury and Hahne 1998): a single flow gets half
//! of the buffer, n flows 1/(n+1) each, and a newcomer always finds room.

use super::super::hash::HashKey;
use super::super::store::{NONE, PacketList, PacketPool};
use super::super::{Backlog, Decides, DropReason, Limit, QueueContext, QueueDiscipline, Surroundings, work};
use super::ledger::{self, Admission, Ledger, Room};
use super::parameters;
use crate::packet::Packet;
use crate::parameter::{Parameter, ParameterKind, Value, Values};
use crate::superpacket::Layout;
use crate::time::Instant;
use crate::units::Bytes;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// A fair queue with hardened super-packets.
#[derive(Clone, Debug)]
pub struct SpFq {
    pub(super) ledger: Ledger,
    /// `None`: as much as is free.
    flow_limit: Option<u64>,
    quantum: u64,
    by_source: bool,
    pub(super) key: HashKey,
    flows: Vec<Flow>,
    pool: PacketPool,
    /// Head and tail of the list of flows that wait.
    head: u32,
    tail: u32,
}

#[derive(Clone, Debug)]
struct Flow {
    packets: PacketList,
    deficit: u64,
    /// Whether this turn's quantum was added.
    visited: bool,
    next: u32,
}

impl SpFq {
    /// Those of SP-H without `aqm`; `flow_limit`, `quantum`, `buckets`, `key`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameters::LIMIT,
        Parameter {
            name: "flow_limit",
            kind: ParameterKind::Integer(1, 1_000_000),
            default: Value::Auto,
            doc: "Packets of one flow that may wait or be reserved; by default as many as are free (ours)",
        },
        Parameter {
            name: "quantum",
            kind: ParameterKind::Bytes(Bytes(1), Bytes(1_000_000_000)),
            default: Value::Auto,
            doc: "Bytes a flow may send in one turn; by default the link's MTU, which keeps work constant",
        },
        Parameter {
            name: "buckets",
            kind: ParameterKind::Integer(1, 65_536),
            default: Value::Integer(1024),
            doc: "Queues that flows are hashed into (as queue `drr`)",
        },
        Parameter {
            name: "key",
            kind: ParameterKind::Choice(&["flow", "source"]),
            default: Value::Choice("flow"),
            doc: "What shares a queue: packets of one flow, or of one source host",
        },
        parameters::MAX_LENGTH,
        Layout::PARAMETER,
        Layout::CODEPOINT,
        parameters::RESERVE,
        parameters::SHARE,
        parameters::NEWCOMERS,
        parameters::CREDIT,
        parameters::PORT_CREDIT,
        parameters::PORT_REFILL,
        parameters::MIN_EPOCH,
        parameters::MAX_EPOCH,
        parameters::SOURCES,
    ];

    /// An empty queue.
    pub fn new(values: &Values, surroundings: &Surroundings) -> SpFq {
        let buckets = values.integer("buckets").unwrap_or(1024) as usize;
        let ledger = Ledger::new(values, surroundings, buckets);
        let packet = ledger.reserved_packet();
        SpFq {
            flow_limit: values
                .integer("flow_limit")
                .map(|packets| packets.saturating_mul(packet)),
            quantum: values
                .bytes("quantum")
                .map_or(u64::from(surroundings.mtu), |quantum| quantum.0)
                .max(1),
            by_source: values.choice("key") == "source",
            key: HashKey::new(surroundings.seed),
            flows: vec![
                Flow {
                    packets: PacketList::EMPTY,
                    deficit: 0,
                    visited: false,
                    next: NONE,
                };
                buckets
            ],
            ledger,
            pool: PacketPool::new(),
            head: NONE,
            tail: NONE,
        }
    }

    /// Bytes of memory that the admission takes with `ports` links coming in, without the packets.
    pub fn admission_bytes(&self, ports: usize) -> usize {
        self.ledger.bytes(ports) + self.flows.len() * size_of::<Flow>()
    }

    fn room(&mut self, bucket: u32) -> Room {
        let queue = self.ledger.occupied(self.pool.total());
        let list = &self.flows[bucket as usize].packets;
        let own = self.ledger.occupied(Backlog {
            packets: list.packets,
            bytes: Bytes(list.bytes),
        }) + self.ledger.reserved_for(bucket);
        let flow = match self.flow_limit {
            Some(limit) => limit.saturating_sub(own),
            None => {
                // own + x <= free - x, the share of Choudhury and Hahne.
                let free = self.ledger.size().saturating_sub(queue + self.ledger.reserved());
                free.saturating_sub(own) / 2
            }
        };
        // A flow with nothing may always send one packet if there is room at all.
        let flow = if own == 0 {
            flow.max(self.ledger.reserved_packet())
        } else {
            flow
        };
        Room { queue, flow, bucket }
    }

    /// Adds a flow that waits again at the tail.
    fn link(&mut self, index: u32) {
        self.flows[index as usize].next = NONE;
        if self.tail == NONE {
            self.head = index;
        } else {
            self.flows[self.tail as usize].next = index;
        }
        self.tail = index;
    }

    /// Takes the flow whose turn it is out of the round.
    fn unlink_head(&mut self) {
        self.head = self.flows[self.head as usize].next;
        if self.head == NONE {
            self.tail = NONE;
        }
    }
}

impl QueueDiscipline for SpFq {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        work::step();
        self.ledger.rotate(now, &packet, context);
        let key = context.flows.key(packet.flow);
        let buckets = self.flows.len() as u32;
        let bucket = if self.by_source {
            self.key.source(key, buckets)
        } else {
            self.key.flow(key, buckets)
        };
        let case = self.ledger.case(&packet, context);
        let room = self.room(bucket);
        if self.ledger.admit(now, case, &packet, room, context) == Admission::Refused {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        let flow = &mut self.flows[bucket as usize];
        let idle = flow.packets.packets == 0;
        self.pool.push(&mut flow.packets, packet);
        if idle {
            self.link(bucket);
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        loop {
            work::step();
            let index = self.head;
            if index == NONE {
                return None;
            }
            let flow = &mut self.flows[index as usize];
            if !flow.visited {
                flow.deficit += self.quantum;
                flow.visited = true;
            }
            let len = u64::from(self.pool.head_len(&flow.packets)?);
            if len <= flow.deficit {
                flow.deficit -= len;
                let packet = self.pool.pop(&mut flow.packets);
                if flow.packets.packets == 0 {
                    flow.deficit = 0;
                    flow.visited = false;
                    self.unlink_head();
                }
                return packet;
            }
            flow.visited = false;
            self.unlink_head();
            self.link(index);
        }
    }

    #[inline]
    fn ready_at(&self) -> Option<Instant> {
        (self.head != NONE).then_some(Instant::ZERO)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.pool.total()
    }

    fn decides(&self) -> Decides {
        Decides::Departure
    }

    fn asks_ingress(&self) -> bool {
        true
    }

    fn check(values: &Values) -> Result<(), String> {
        ledger::check(values)?;
        let longest = values.integer("max_length").unwrap_or(10);
        match (values.integer("flow_limit"), values.limit("limit")) {
            (Some(limit), _) if limit < longest => Err(String::from(
                "`flow_limit` must be at least `max_length`: no super-packet would ever be admitted",
            )),
            (Some(limit), Limit::Packets(size)) if limit > u64::from(size) => {
                Err(String::from("`flow_limit` must be at most `limit`"))
            }
            _ => Ok(()),
        }
    }
}
