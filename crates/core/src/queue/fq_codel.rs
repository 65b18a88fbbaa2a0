//! FQ-CoDel: deficit round robin over hashed flows, CoDel in each, new flows first.
//!
//! Flows are hashed into queues. A queue that becomes active is served before the old ones for one quantum, so sparse flows
//! hardly wait; each queue runs its own CoDel. When the limit is exceeded the fattest queue loses a batch from its head.
//!
//! **Source.** RFC 8290 sections 4.1 and 4.2, defaults from 5.2; batch drop as in Linux's `fq_codel`.
//!
//! **Deviations.** The fattest queue is found within a factor of two, in constant time (docs/design/queues.md#drr-longest), where RFC 8290
//! searches all queues, as is done here only when `details` follows Linux or ns-3. Linux also limits memory (32 MB); here `limit`
//! alone does.
//!
//! Where the sources disagree, `details` says who is followed. CoDel's "backlog at most one packet" counts the flow's own queue,
//! as RFC 8289 says and ns-3 does; Linux counts all queues, so that with many flows it also drops the only packet of one. An empty
//! new queue always goes to the old ones (RFC 8290 4.2, ns-3); Linux lets it leave when there are no old ones. In Linux the packets
//! of a batch drop count as drops of that queue's CoDel. For its arithmetic see queue `codel`.

use super::classes::BacklogClasses;
use super::codel::{CE_THRESHOLD, DETAILS, Details, INTERVAL, Law, State, TARGET};
use super::rounds::FairQueues;
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::Instant;
use crate::units::Bytes;

/// An FQ-CoDel queue.
#[derive(Clone, Debug)]
pub struct FqCoDel {
    limit: Limit,
    batch: u64,
    law: Law,
    flows: FairQueues<State>,
    classes: BacklogClasses,
}

impl FqCoDel {
    /// `limit`, `queues`, `quantum`, `target`, `interval`, `ecn`, `ce_threshold`, `batch`, `details`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(10_240),
            "What may wait in all queues together (RFC 8290 5.2.3: 10240 packets)"),
        parameter!("queues": Integer(1, 65_536) = 1024,
            "Queues that flows are hashed into (RFC 8290 5.2.5: 1024)"),
        parameter!("quantum": Bytes(Bytes(1), Bytes(1_000_000_000)) = auto,
            "Bytes a queue may send in one turn; by default the link's MTU (RFC 8290 5.2.4: 1514 with Ethernet header)"),
        TARGET,
        INTERVAL,
        parameter!("ecn": Flag = true,
            "Mark ECN-capable packets instead of dropping them (RFC 8290 5.2.6: on)"),
        CE_THRESHOLD,
        parameter!("batch": Integer(1, 65_536) = 64,
            "Most packets dropped from the fattest queue at once, at most half of it (RFC 8290 4.1: 64)"),
        DETAILS,
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> FqCoDel {
        let flows = FairQueues::new(values, link, State::default());
        FqCoDel {
            limit: values.limit("limit"),
            batch: values.integer("batch").unwrap_or(64),
            law: Law::new(values, link),
            classes: BacklogClasses::new(flows.len() as usize),
            flows,
        }
    }

    /// The queue that pays for overflow.
    fn fattest(&self) -> Option<u32> {
        if self.law.details == Details::Rfc {
            return self.classes.longest();
        }
        let bytes = |index: u32| self.flows.packets(index).bytes;
        (0..self.flows.len())
            .rev() // of equal ones the first
            .max_by_key(|&index| bytes(index))
            .filter(|&index| bytes(index) > 0)
    }

    /// Drops up to a batch and at most half of the bytes from the head of the fattest queue (at least one packet).
    fn drop_batch(&mut self, context: &mut QueueContext<'_>) {
        let Some(index) = self.fattest() else {
            return;
        };
        let threshold = self.flows.packets(index).bytes / 2;
        let (mut bytes, mut dropped) = (0, 0);
        for _ in 0..self.batch {
            super::work::step();
            let Some(packet) = self.flows.pop(index) else {
                break;
            };
            bytes += u64::from(packet.segment.len());
            dropped += 1;
            context.drops.push((packet, DropReason::PushedOut));
            if bytes >= threshold {
                break;
            }
        }
        self.flows.queue(index).state.overflowed(&self.law, dropped);
        self.update(index);
    }

    /// Reports to the classes what waits in a queue.
    #[inline]
    fn update(&mut self, index: u32) {
        let packets = self.flows.packets(index);
        self.classes.update(index, packets.packets, packets.bytes);
    }
}

impl QueueDiscipline for FqCoDel {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let index = self.flows.index(&packet, context);
        self.flows.push(index, packet);
        self.update(index);
        while !self.limit.holds(self.flows.total()) {
            self.drop_batch(context);
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        let all = self.law.details == Details::Linux;
        let (law, classes) = (&self.law, &mut self.classes);
        self.flows.next(all, |index, queue, pool| {
            let packets = &mut queue.packets;
            let packet = queue.state.dequeue(now, law, context, || {
                let packet = pool.pop(packets)?;
                let left = if all { pool.total().bytes.0 } else { packets.bytes };
                Some((packet, left))
            });
            classes.update(index, queue.packets.packets, queue.packets.bytes);
            packet
        })
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.flows.total()
    }
}
