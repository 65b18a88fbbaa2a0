//! DRR: deficit round robin, equal bytes for all flows whatever the sizes of their packets.
//!
//! Active flows take turns. In each turn a flow's deficit counter grows by the quantum, and the flow sends packets as long as
//! the counter covers them. When all together exceed the limit, the flow with the longest queue loses a packet.
//!
//! **Source.** Shreedhar and Varghese, SIGCOMM 1995; docs/design/queues.md#drr-turn.
//!
//! **Deviations.** The longest queue is found within a factor of two, in constant time. Work per packet is constant
//! when the quantum is at least the largest packet. ns-2's stock queue is `buckets = 10`, `limit = "25000 B"`,
//! `quantum = "250 B"`, `key = "source"`.

use super::classes::BacklogClasses;
use super::hash::HashKey;
use super::round_robin::RoundRobin;
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::Instant;
use crate::units::Bytes;
#[cfg(test)]
use alloc::vec::Vec;

/// What a turn allows, of every queue served by [`RoundRobin`].
pub(super) const QUANTUM: Parameter = parameter!("quantum": Bytes(Bytes(1), Bytes(1_000_000_000)) = auto,
    "Bytes a flow may send in one turn; by default the link's MTU, which keeps work constant (ns-2: 250 B)");

/// How many queues there are.
pub(super) const BUCKETS: Parameter = parameter!("buckets": Integer(1, 65_536) = 1024,
    "Queues that flows are hashed into (as FQ-CoDel; ns-2: 10)");

/// What has a queue.
pub(super) const KEY: Parameter = parameter!("key": Choice(&["flow", "source"]) = "flow",
    "What shares a queue: packets of one flow, or of one source host (ns-2: source)");

/// The value of [`QUANTUM`].
pub(super) fn quantum(values: &Values, link: &LinkContext) -> u64 {
    values
        .bytes("quantum")
        .map_or(u64::from(link.mtu), |quantum| quantum.0)
}

/// A DRR queue.
#[derive(Clone, Debug)]
pub struct Drr {
    limit: Limit,
    flow_limit: Limit,
    by_source: bool,
    drop_tail: bool,
    key: HashKey,
    rounds: RoundRobin,
    classes: BacklogClasses,
}

impl Drr {
    /// `limit`, `flow_limit`, `quantum`, `buckets`, `key`, `drop`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait in all flows together (as drop-tail; ns-2: 25000 B)"),
        parameter!("flow_limit": Limit = Limit::Unlimited,
            "What may wait of one flow; what exceeds it is dropped on arrival (ns-2 has no such limit)"),
        QUANTUM,
        BUCKETS,
        KEY,
        parameter!("drop": Choice(&["head", "tail"]) = "head",
            "Which packet of the longest queue is dropped when the limit is exceeded (ns-2: head)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> Drr {
        let buckets = values.integer("buckets").unwrap_or(1024) as usize;
        Drr {
            limit: values.limit("limit"),
            flow_limit: values.limit("flow_limit"),
            by_source: values.choice("key") == "source",
            drop_tail: values.choice("drop") == "tail",
            key: HashKey::new(link.seed),
            rounds: RoundRobin::new(buckets, quantum(values, link)),
            classes: BacklogClasses::new(buckets),
        }
    }

    /// Deficits of the flows that are active.
    #[cfg(test)]
    pub(super) fn deficits(&self) -> Vec<u64> {
        self.rounds.deficits()
    }

    /// Updates the class of a queue after its backlog changed.
    fn update(&mut self, index: u32) {
        let Backlog { packets, bytes } = self.rounds.backlog(index);
        self.classes.update(index, packets, bytes.0);
    }
}

impl QueueDiscipline for Drr {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let len = packet.segment.len();
        let index = self
            .key
            .bucket_of(&packet, context, self.by_source, self.rounds.queues());
        if !self.flow_limit.admits(self.rounds.backlog(index), len) {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        self.rounds.push(index, packet);
        self.update(index);
        while !self.limit.holds(self.rounds.total()) {
            super::work::step();
            let Some(longest) = self.classes.longest() else {
                return;
            };
            let Some(dropped) = self.rounds.remove(longest, self.drop_tail) else {
                return;
            };
            self.update(longest);
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
        let (index, packet) = self.rounds.next()?;
        self.update(index);
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.rounds.total()
    }
}
