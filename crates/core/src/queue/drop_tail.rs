//! Drop-tail: first in, first out, refuse what does not fit.
//!
//! **Source.** docs/design/queues.md#tail-packets and #tail-bytes. With a limit in bytes a large packet is refused while smaller
//! ones still enter.
//! **Deviations.** `ns2_compat` copies ns-2.35, which drops when `len + 1 >= limit`: a limit of 50 holds 49 waiting. With a limit in bytes
//! it drops when the bytes that wait and those of the packet are the limit or more.

use super::fifo::Fifo;
use super::{Backlog, DropPoint, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, SendingTime};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};

/// A drop-tail queue.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: Limit,
    mtu: u32,
    packets: Fifo,
}

impl DropTail {
    /// `limit` and `ns2_compat`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait, not counting the packet being sent (Linux's default device queue holds 1000)"),
        parameter!("ns2_compat": Flag = false,
            "Hold one packet less, or one byte less with a limit in bytes, as ns-2.35 does (it drops when length + 1 >= limit)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> DropTail {
        let limit = match values.limit("limit") {
            limit if values.flag("ns2_compat") => limit.as_in_ns2(),
            limit => limit,
        };
        DropTail {
            limit,
            mtu: link.mtu,
            packets: Fifo::new(),
        }
    }

    /// What may wait.
    pub fn limit(&self) -> Limit {
        self.limit
    }
}

impl QueueDiscipline for DropTail {
    #[inline]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        let len = packet.segment.len();
        if self.limit.admits(self.backlog(), len) {
            self.packets.push(packet, ());
        } else {
            context.drops.push((packet, DropReason::Full));
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        self.packets.pop().map(|(packet, ())| packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn drop_point(&self) -> DropPoint {
        DropPoint::Arrival
    }

    fn longest_wait(&self, sending: &SendingTime) -> Option<Duration> {
        self.limit.longest_wait(self.mtu, sending)
    }
}
