//! FQ-PIE: deficit round robin over hashed flows, PIE in each, new flows first.
//!
//! Flows are hashed into queues that take turns as in FQ-CoDel, so sparse flows hardly wait. Each queue has a PIE of its own
//! that looks at that queue's delay and backlog. What exceeds the common limit is dropped on arrival.
//!
//! **Source.** Linux `sch_fq_pie.c` (structure and defaults, read, not copied); turns: RFC 8290 4.1 and 4.2; PIE: RFC 8033.
//!
//! **Promises.** Work conserving; packets of a flow keep their order; all drops are on arrival, so what was queued is sent.
//!
//! **Deviations.** PIE's law is the RFC's as in queue `pie`, with its lazy updates, where Linux has its own variations. An
//! empty new queue always goes to the old ones (RFC 8290 4.2); Linux lets it leave when there are no old ones. Linux also
//! limits memory (32 MB); here `limit` alone does.

use super::hash::HashKey;
use super::pie::parameters::{
    ALPHA, BETA, DELAY, DERANDOMISE, ECN, ECN_THRESHOLD, MAX_BURST, MEAN_PACKET, TARGET, UPDATE_INTERVAL,
};
use super::pie::{Law, State, Verdict};
use super::rounds::Rounds;
use super::store::{PacketList, PacketPool};
use super::{
    Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEventKind,
};
use crate::packet::Packet;
use crate::parameter::{Parameter, ParameterKind, Value, Values};
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::Bytes;
use alloc::vec;
use alloc::vec::Vec;

/// An FQ-PIE queue.
#[derive(Clone, Debug)]
pub struct FqPie {
    limit: Limit,
    quantum: i64,
    law: Law,
    rng: Rng,
    key: HashKey,
    queues: Vec<Queue>,
    pool: PacketPool,
    rounds: Rounds,
}

#[derive(Clone, Debug)]
struct Queue {
    packets: PacketList,
    pie: State,
}

impl FqPie {
    /// `limit`, `queues`, `quantum`, and those of PIE.
    pub const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "limit",
            kind: ParameterKind::Limit,
            default: Value::Limit(Limit::Packets(10_240)),
            doc: "What may wait in all queues together (Linux fq_pie: 10240 packets)",
        },
        Parameter {
            name: "queues",
            kind: ParameterKind::Integer(1, 65_536),
            default: Value::Integer(1024),
            doc: "Queues that flows are hashed into (Linux fq_pie: 1024)",
        },
        Parameter {
            name: "quantum",
            kind: ParameterKind::Bytes(Bytes(1), Bytes(1_000_000_000)),
            default: Value::Auto,
            doc: "Bytes a queue may send in one turn; by default the link's MTU (Linux fq_pie: with Ethernet header)",
        },
        TARGET,
        UPDATE_INTERVAL,
        ALPHA,
        BETA,
        MAX_BURST,
        DELAY,
        MEAN_PACKET,
        DERANDOMISE,
        ECN,
        ECN_THRESHOLD,
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> FqPie {
        let queues = values.integer("queues").unwrap_or(1024) as usize;
        let law = Law::new(values, link);
        FqPie {
            limit: values.limit("limit"),
            quantum: values
                .bytes("quantum")
                .map_or(i64::from(link.mtu), |quantum| quantum.0 as i64)
                .max(1),
            rng: Rng::for_element(link.seed, "queue", "fq-pie"),
            key: HashKey::new(link.seed),
            queues: vec![
                Queue {
                    packets: PacketList::EMPTY,
                    pie: State::new(&law),
                };
                queues
            ],
            law,
            pool: PacketPool::new(),
            rounds: Rounds::new(queues),
        }
    }
}

impl QueueDiscipline for FqPie {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, mut packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let index = self
            .key
            .flow(context.flows.key(packet.flow), self.queues.len() as u32);
        let queue = &mut self.queues[index as usize];
        let waiting = queue.packets.bytes;
        queue.pie.catch_up(now, &self.law, waiting);
        if !self.limit.admits(self.pool.total(), packet.segment.len()) {
            queue.pie.accu_prob = 0.0;
            context.drops.push((packet, DropReason::Full));
            return;
        }
        match queue.pie.arrive(&self.law, waiting, &mut packet, &mut self.rng) {
            Verdict::Drop => {
                context.drops.push((packet, DropReason::Early));
                return;
            }
            Verdict::Mark => context.report(QueueEventKind::Marked, packet.flow),
            Verdict::Pass => {}
        }
        self.pool.push(&mut queue.packets, packet);
        self.rounds.arrive(index, self.quantum);
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        loop {
            let quantum = self.quantum;
            let index = self.rounds.turn(|_| quantum)?;
            let queue = &mut self.queues[index as usize];
            queue.pie.catch_up(now, &self.law, queue.packets.bytes);
            if let Some(packet) = self.pool.pop(&mut queue.packets) {
                queue.pie.depart(now, &self.law, &packet, queue.packets.bytes);
                self.rounds.spend(index, packet.segment.len());
                return Some(packet);
            }
            self.rounds.empty();
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.pool.total()
    }
}
