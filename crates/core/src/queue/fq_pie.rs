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

use super::pie::parameters::{
    ALPHA, BETA, DELAY, DERANDOMISE, ECN, ECN_THRESHOLD, MAX_BURST, MEAN_PACKET, TARGET, UPDATE_INTERVAL,
};
use super::pie::{Law, State, Verdict};
use super::rounds::FairQueues;
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEventKind};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::Bytes;

/// An FQ-PIE queue.
#[derive(Clone, Debug)]
pub struct FqPie {
    limit: Limit,
    law: Law,
    rng: Rng,
    flows: FairQueues<State>,
}

impl FqPie {
    /// `limit`, `queues`, `quantum`, and those of PIE.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(10_240),
            "What may wait in all queues together (Linux fq_pie: 10240 packets)"),
        parameter!("queues": Integer(1, 65_536) = 1024,
            "Queues that flows are hashed into (Linux fq_pie: 1024)"),
        parameter!("quantum": Bytes(Bytes(1), Bytes(1_000_000_000)) = auto,
            "Bytes a queue may send in one turn; by default the link's MTU (Linux fq_pie: with Ethernet header)"),
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
        let law = Law::new(values, link);
        FqPie {
            limit: values.limit("limit"),
            rng: Rng::for_element(link.seed, "queue", "fq-pie"),
            flows: FairQueues::new(values, link, State::new(&law)),
            law,
        }
    }
}

impl QueueDiscipline for FqPie {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, mut packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let index = self.flows.index(&packet, context);
        let total = self.flows.total();
        let queue = self.flows.queue(index);
        let waiting = queue.packets.bytes;
        queue.state.catch_up(now, &self.law, waiting);
        if !self.limit.admits(total, packet.segment.len()) {
            queue.state.accu_prob = 0.0;
            context.drops.push((packet, DropReason::Full));
            return;
        }
        match queue.state.arrive(&self.law, waiting, &mut packet, &mut self.rng) {
            Verdict::Drop => {
                context.drops.push((packet, DropReason::Early));
                return;
            }
            Verdict::Mark => context.report(QueueEventKind::Marked, packet.flow),
            Verdict::Pass => {}
        }
        self.flows.push(index, packet);
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        let law = &self.law;
        self.flows.next(false, |_, queue, pool| {
            queue.state.catch_up(now, law, queue.packets.bytes);
            let packet = pool.pop(&mut queue.packets)?;
            queue.state.depart(now, law, &packet, queue.packets.bytes);
            Some(packet)
        })
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.flows.total()
    }
}
