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
//! share the rank. log2(buckets) steps per packet.

use super::hash::HashKey;
use super::ranked::{BUCKETS, LIMIT, Rank, Ranked};
use super::{Backlog, Limit, LinkContext, QueueContext, QueueDiscipline};
use crate::packet::Packet;
use crate::parameter::{Parameter, Values};
use crate::time::Instant;

/// A queue that serves the flow with least to come.
#[derive(Clone, Debug)]
pub struct ShortestRemaining {
    limit: Limit,
    key: HashKey,
    packets: Ranked,
    turn: u64,
}

impl ShortestRemaining {
    /// `limit`, `buckets`.
    pub const PARAMETERS: &'static [Parameter] = &[LIMIT, BUCKETS];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> ShortestRemaining {
        ShortestRemaining {
            limit: values.limit("limit"),
            key: HashKey::new(link.seed),
            packets: Ranked::new(values.integer("buckets").unwrap_or(16_384) as u32),
            turn: 0,
        }
    }
}

impl QueueDiscipline for ShortestRemaining {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let key = context.flows.key(packet.flow);
        let bucket = self.key.flow(key, self.packets.buckets());
        let value = if packet.segment.is_data() {
            context
                .flows
                .stream(packet.flow)
                .and_then(|stream| stream.remaining(packet.segment.seq))
                .unwrap_or(u64::MAX)
        } else {
            0
        };
        let mut rank = self.packets.rank(bucket);
        if self.packets.is_empty(bucket) {
            self.turn += 1;
            rank = Rank {
                value,
                turn: self.turn,
            };
        }
        rank.value = rank.value.min(value);
        self.packets
            .push_within(self.limit, bucket, packet, rank, context.drops);
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        super::work::step();
        let bucket = self.packets.least()?;
        let packet = self.packets.pop(bucket)?;
        self.turn += 1;
        let rank = Rank {
            value: self.packets.rank(bucket).value,
            turn: self.turn,
        };
        self.packets.set_rank(bucket, rank);
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.total()
    }

    fn asks_streams(&self) -> bool {
        true
    }
}
