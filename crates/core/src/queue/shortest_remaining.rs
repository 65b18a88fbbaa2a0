//! Shortest remaining first: the flow with the fewest bytes still to come is next.
//!
//! The ideal for the mean completion time on one line. A flow's rank is the least number of bytes from the start of a waiting
//! packet to the end of its stream; packets without data, handshakes and acknowledgments, come first. When the buffer is
//! full the flow with most to come loses its last packet.
//!
//! **Source.** Schrage 1968 (optimality of the shortest remaining processing time); Alizadeh et al., "pFabric" (SIGCOMM
//! 2013): rank by remaining size, oldest packet of the best flow, worst packet dropped. From memory.
//!
//! **Promises.** Work conserving; a flow keeps its order.
//!
//! **Deviations.** An ideal: no header says how long a flow is. The simulator provides it through the table of flows
//! ([`crate::flow::FlowTable::set_stream`]): the sender's data ends where the application has said so far. Flows whose end nobody
//! knows (endless ones, real packets) come last and take turns. Flows are hashed into buckets and those of one bucket
//! share the rank. Steps per packet grow with the logarithm of the flows that wait.

use super::ranked::{BUCKETS, LIMIT, Ranked};
use super::{Backlog, LinkContext, QueueContext, QueueDiscipline};
use crate::packet::Packet;
use crate::parameter::{Parameter, Values};
use crate::time::Instant;

/// A queue that serves the flow with least to come.
#[derive(Clone, Debug)]
pub struct ShortestRemaining {
    /// By bytes to come.
    packets: Ranked,
}

impl ShortestRemaining {
    /// `limit`, `buckets`.
    pub const PARAMETERS: &'static [Parameter] = &[LIMIT, BUCKETS];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> ShortestRemaining {
        ShortestRemaining {
            packets: Ranked::new(values, link),
        }
    }
}

impl QueueDiscipline for ShortestRemaining {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let bucket = self.packets.bucket(&packet, context);
        let remaining = if packet.segment.is_data() {
            context
                .flows
                .stream(packet.flow)
                .and_then(|stream| stream.remaining(packet.segment.seq))
                .unwrap_or(u64::MAX)
        } else {
            0
        };
        let value = match self.packets.is_empty(bucket) {
            true => remaining,
            false => remaining.min(self.packets.value(bucket)),
        };
        self.packets.push(bucket, packet, value, context.drops);
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        super::work::step();
        self.packets.pop(now, |remaining, _| remaining)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.total()
    }

    fn asks_streams(&self) -> bool {
        true
    }
}
