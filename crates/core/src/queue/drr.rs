//! DRR: deficit round robin, equal bytes for all flows whatever the sizes of their packets.
//!
//! Active flows take turns. In each turn a flow's deficit counter grows by the quantum, and the flow sends packets as long as
//! the counter covers them. When all together exceed the limit, the flow with the longest queue loses a packet.
//!
//! **Source.** Shreedhar and Varghese, SIGCOMM 1995; router digest 2 with its decisions D-3 and D-4.
//!
//! **Deviations.** The longest queue is found within a factor of two, in constant time (D-4). Work per packet is constant
//! when the quantum is at least the largest packet. ns-2's stock queue is `buckets = 10`, `limit = "25000 B"`,
//! `quantum = "250 B"`, `key = "source"`.

use super::classes::BacklogClasses;
use super::hash::HashKey;
use super::store::{NONE, PacketList, PacketPool};
use super::{Backlog, Decides, DropReason, Limit, QueueContext, QueueDiscipline, Surroundings};
use crate::packet::Packet;
use crate::parameter::{Parameter, ParameterKind, Value, Values};
use crate::time::Instant;
use crate::units::Bytes;
use alloc::vec;
use alloc::vec::Vec;

/// A DRR queue.
#[derive(Clone, Debug)]
pub struct Drr {
    limit: Limit,
    flow_limit: Limit,
    quantum: u64,
    by_source: bool,
    drop_tail: bool,
    key: HashKey,
    flows: Vec<Flow>,
    pool: PacketPool,
    classes: BacklogClasses,
    /// Head and tail of the list of active flows.
    head: u32,
    tail: u32,
}

#[derive(Clone, Debug)]
struct Flow {
    packets: PacketList,
    /// DC of the paper.
    deficit: u64,
    /// Whether this turn's quantum was added.
    visited: bool,
    previous: u32,
    next: u32,
}

impl Drr {
    /// `limit`, `flow_limit`, `quantum`, `buckets`, `key`, `drop`.
    pub const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "limit",
            kind: ParameterKind::Limit,
            default: Value::Limit(Limit::Packets(1000)),
            doc: "What may wait in all flows together (as drop-tail; ns-2: 25000 B)",
        },
        Parameter {
            name: "flow_limit",
            kind: ParameterKind::Limit,
            default: Value::Limit(Limit::Unlimited),
            doc: "What may wait of one flow; what exceeds it is dropped on arrival (ns-2 has no such limit)",
        },
        Parameter {
            name: "quantum",
            kind: ParameterKind::Bytes(Bytes(1), Bytes(1_000_000_000)),
            default: Value::Auto,
            doc: "Bytes a flow may send in one turn; by default the link's MTU, which keeps work constant (ns-2: 250 B)",
        },
        Parameter {
            name: "buckets",
            kind: ParameterKind::Integer(1, 65_536),
            default: Value::Integer(1024),
            doc: "Queues that flows are hashed into (as FQ-CoDel; ns-2: 10)",
        },
        Parameter {
            name: "key",
            kind: ParameterKind::Choice(&["flow", "source"]),
            default: Value::Choice("flow"),
            doc: "What shares a queue: packets of one flow, or of one source host (ns-2: source)",
        },
        Parameter {
            name: "drop",
            kind: ParameterKind::Choice(&["head", "tail"]),
            default: Value::Choice("head"),
            doc: "Which packet of the longest queue is dropped when the limit is exceeded (ns-2: head)",
        },
    ];

    /// An empty queue.
    pub fn new(values: &Values, surroundings: &Surroundings) -> Drr {
        let buckets = values.integer("buckets").unwrap_or(1024) as usize;
        Drr {
            limit: values.limit("limit"),
            flow_limit: values.limit("flow_limit"),
            quantum: values
                .bytes("quantum")
                .map_or(u64::from(surroundings.mtu), |quantum| quantum.0)
                .max(1),
            by_source: values.choice("key") == "source",
            drop_tail: values.choice("drop") == "tail",
            key: HashKey::new(surroundings.seed),
            flows: vec![
                Flow {
                    packets: PacketList::EMPTY,
                    deficit: 0,
                    visited: false,
                    previous: NONE,
                    next: NONE,
                };
                buckets
            ],
            pool: PacketPool::new(),
            classes: BacklogClasses::new(buckets),
            head: NONE,
            tail: NONE,
        }
    }

    fn bucket(&self, packet: &Packet, context: &QueueContext<'_>) -> u32 {
        let key = context.flows.key(packet.flow);
        let buckets = self.flows.len() as u32;
        if self.by_source {
            self.key.source(key, buckets)
        } else {
            self.key.flow(key, buckets)
        }
    }

    /// Adds an active flow at the tail (D-3).
    fn link(&mut self, index: u32) {
        let tail = self.tail;
        let flow = &mut self.flows[index as usize];
        (flow.previous, flow.next) = (tail, NONE);
        if tail == NONE {
            self.head = index;
        } else {
            self.flows[tail as usize].next = index;
        }
        self.tail = index;
    }

    fn unlink(&mut self, index: u32) {
        let Flow { previous, next, .. } = self.flows[index as usize];
        if previous == NONE {
            self.head = next;
        } else {
            self.flows[previous as usize].next = next;
        }
        if next == NONE {
            self.tail = previous;
        } else {
            self.flows[next as usize].previous = previous;
        }
    }

    /// Deficits of the flows that are active.
    #[cfg(test)]
    pub(super) fn deficits(&self) -> Vec<u64> {
        let between_turns = self.flows.iter().filter(|flow| !flow.visited);
        between_turns.map(|flow| flow.deficit).collect()
    }

    /// Settles the books of a flow that lost a packet; one that emptied leaves the round with nothing saved.
    fn after_removal(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        self.classes
            .update(index, flow.packets.packets, flow.packets.bytes);
        if flow.packets.packets == 0 {
            flow.deficit = 0;
            flow.visited = false;
            self.unlink(index);
        }
    }
}

impl QueueDiscipline for Drr {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let len = packet.segment.len();
        let index = self.bucket(&packet, context);
        let own = Backlog {
            packets: self.flows[index as usize].packets.packets,
            bytes: Bytes(self.flows[index as usize].packets.bytes),
        };
        if !self.flow_limit.admits(own, len) {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        let flow = &mut self.flows[index as usize];
        self.pool.push(&mut flow.packets, packet);
        self.classes
            .update(index, flow.packets.packets, flow.packets.bytes);
        if own.packets == 0 {
            self.link(index);
        }
        while !self.limit.holds(self.pool.total()) {
            super::work::step();
            let Some(longest) = self.classes.longest() else {
                return;
            };
            let list = &mut self.flows[longest as usize].packets;
            let dropped = if self.drop_tail {
                self.pool.pop_tail(list)
            } else {
                self.pool.pop(list)
            };
            let Some(dropped) = dropped else { return };
            self.after_removal(longest);
            let reason = if self.drop_tail && longest == index {
                DropReason::Full
            } else {
                DropReason::PushedOut
            };
            context.drops.push((dropped, reason));
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        loop {
            super::work::step();
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
                self.after_removal(index);
                return packet;
            }
            flow.visited = false;
            self.unlink(index);
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
}
