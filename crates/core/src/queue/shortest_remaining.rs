//! Shortest remaining first: the flow with the fewest bytes still to come is next.
//!
//! The ideal for the mean completion time on one line. A flow's rank is the least number of bytes from the start of a waiting
//! packet to the end of its stream, which is that of the last one; packets without data, handshakes and acknowledgments, come
//! first, with what waits before them. When the buffer is full the flow with most to come loses its last packet.
//!
//! **Source.** Schrage 1968 (optimality of the shortest remaining processing time); Alizadeh et al., "pFabric" (SIGCOMM
//! 2013): rank by remaining size, oldest packet of the best flow, worst packet dropped. From memory.
//!
//! **Promises.** Work conserving; a flow keeps its order.
//!
//! **Deviations.** An ideal: no header says how long a flow is. The simulator provides it through the table of flows
//! ([`crate::flow::FlowTable::set_stream`]): the sender's data ends where the application has said so far. Flows whose end nobody
//! knows (endless ones, real packets) come last and take turns. Flows are hashed into buckets and those of one bucket
//! share the rank, that of the packet that came last. A retransmission behind newer data gives its flow, while it is the last to wait,
//! the rank of its own start. What an application writes counts from the next data of its bucket that comes: that an end of a stream moves is heard
//! with packets only, so the order of what happens elsewhere in that moment is of no account. Steps per packet grow with the logarithm of the
//! flows that wait.

use super::ranked::{BUCKETS, LIMIT, Ranked, Waiting};
use super::{Backlog, LinkContext, QueueContext, QueueDiscipline};
use crate::flow::FlowTable;
use crate::packet::Packet;
use crate::parameter::{Parameter, Values};
use crate::seq::SeqNumber;
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;

/// A queue that serves the flow with least to come.
#[derive(Clone, Debug)]
pub struct ShortestRemaining {
    /// By bytes to come.
    packets: Ranked,
    /// By bucket.
    heard: Vec<Heard>,
}

/// What the data that came last to a bucket said.
#[derive(Clone, Copy, Debug)]
struct Heard {
    seq: SeqNumber,
    /// Bytes from there to the end of the stream; `u64::MAX`: nobody knows.
    remaining: u64,
}

impl Heard {
    /// Bytes that a flow has to come, of what waits of it; none while a packet without data waits.
    #[inline]
    fn of(self, waiting: Waiting<'_>) -> u64 {
        if waiting.without_data > 0 {
            return 0;
        }
        if self.remaining == u64::MAX {
            return u64::MAX;
        }
        let earlier = self.seq.distance(waiting.last.segment.seq);
        self.remaining.saturating_add_signed(i64::from(earlier))
    }
}

impl ShortestRemaining {
    /// `limit`, `buckets`.
    pub const PARAMETERS: &'static [Parameter] = &[LIMIT, BUCKETS];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> ShortestRemaining {
        let packets = Ranked::new(values, link);
        let nothing = Heard {
            seq: SeqNumber(0),
            remaining: u64::MAX,
        };
        ShortestRemaining {
            heard: vec![nothing; packets.buckets()],
            packets,
        }
    }
}

impl QueueDiscipline for ShortestRemaining {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let bucket = self.packets.bucket(&packet, context);
        let has_data = packet.segment.is_data();
        let before = self.packets.waiting(bucket);
        let without_data = before.map_or(0, |waiting| waiting.without_data) + u32::from(!has_data);
        if has_data {
            self.heard[bucket as usize] = Heard {
                seq: packet.segment.seq,
                remaining: remaining(context.flows, &packet),
            };
        }
        let last = &packet;
        let value = self.heard[bucket as usize].of(Waiting { last, without_data });
        let heard = &self.heard;
        self.packets
            .push(bucket, packet, value, context.drops, |bucket, _, rest| {
                heard[bucket as usize].of(rest)
            });
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        super::work::step();
        let heard = &self.heard;
        self.packets.pop(now, |bucket, _, _, rest| {
            rest.map_or(0, |rest| heard[bucket as usize].of(rest))
        })
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.total()
    }

    fn asks_streams(&self) -> bool {
        true
    }
}

/// Bytes from the start of data to the end of its stream.
#[inline]
fn remaining(flows: &FlowTable, packet: &Packet) -> u64 {
    flows
        .stream(packet.flow)
        .and_then(|stream| stream.remaining(packet.segment.seq))
        .unwrap_or(u64::MAX)
}
