//! Drop from front: first in, first out; a packet that finds the queue full pushes out the oldest.
//!
//! The sender learns of a loss one queue earlier than with drop-tail, and what is waiting stays fresh.
//!
//! **Source.** T. V. Lakshman, A. Neidhardt, T. J. Ott, "The Drop from Front Strategy in TCP and in TCP over ATM", IEEE
//! INFOCOM 1996.
//! **Deviations.** With a limit in bytes as many packets are pushed out as the new one needs; one that would not fit into an
//! empty queue is refused.

use fleetfoot_core::packet::Packet;
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::queue::{
    AnyQueue, Backlog, DropPoint, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline,
};
use fleetfoot_core::registry::{Entry, Plugin};
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;
use std::collections::VecDeque;

/// What the program knows of it.
pub const PLUGIN: Plugin<AnyQueue, LinkContext> = Plugin {
    entry: Entry::new("drop-front", DropFront::PARAMETERS, include_str!("drop_front.rs")),
    build: &|values, _| AnyQueue::Custom(Box::new(DropFront::new(values))),
};

/// A queue that drops its oldest packets.
#[derive(Clone, Debug)]
pub struct DropFront {
    limit: Limit,
    waiting: VecDeque<Packet>,
    bytes: u64,
}

impl DropFront {
    /// `limit`.
    pub const PARAMETERS: &'static [Parameter] = &[parameter!("limit": Limit = Limit::Packets(1000),
        "What may wait, not counting the packet being sent (as for drop-tail)")];

    /// An empty queue.
    pub fn new(values: &Values) -> DropFront {
        DropFront {
            limit: values.limit("limit"),
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }

    fn pop(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.segment.len());
        Some(packet)
    }
}

impl QueueDiscipline for DropFront {
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        let len = packet.segment.len();
        if !self.limit.admits(Backlog::default(), len) {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        while !self.limit.admits(self.backlog(), len) {
            if let Some(oldest) = self.pop() {
                context.drops.push((oldest, DropReason::PushedOut));
            }
        }
        self.bytes += u64::from(len);
        self.waiting.push_back(packet);
    }

    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        self.pop()
    }

    fn ready_at(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(Instant::ZERO)
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.waiting.len() as u32,
            bytes: Bytes(self.bytes),
        }
    }

    /// A packet that waits may still be dropped.
    fn drop_point(&self) -> DropPoint {
        DropPoint::Departure
    }
}
