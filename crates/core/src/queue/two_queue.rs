//! Two queues: the first bytes of every flow go before all the rest.
//!
//! Packets that lie within the first `threshold` bytes of their flow wait in a queue that is always served first. The router
//! counts the bytes of each flow, or takes the place in the stream from the TCP sequence number and keeps no state.
//!
//! **Source.** Avrachenkov, Ayesta, Brown and Nyberg, "Differentiation between short and long TCP flows: predictability of the
//! response time" (INFOCOM 2004), named in the FavourTail talk as [Avranchenkov04]: two queues by sequence number, with
//! initial sequence numbers that sources restrict. From memory.
//!
//! **Promises.** Work conserving. By bytes a flow keeps its order; by sequence number a retransmission from the first bytes passes
//! the flow's later packets.
//!
//! **Deviations.** Instead of restricting initial sequence numbers the simulator reports where a stream begins
//! ([`crate::flow::FlowTable::set_stream`]); of a stream it does not know all packets are first ones, as are all without data. By
//! bytes, flows are hashed into buckets; a bucket that was silent for `forget` starts at zero unless packets of it still wait among
//! the rest, which its next ones must not pass. A full queue refuses what arrives, whichever queue it is for. The threshold is ours.

use super::fifo::Fifo;
use super::hash::HashKey;
use super::ranked::BUCKETS;
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::vec;
use alloc::vec::Vec;

/// Two queues by place in the flow.
#[derive(Clone, Debug)]
pub struct TwoQueue {
    limit: Limit,
    threshold: u64,
    forget: Duration,
    key: HashKey,
    /// By bucket; empty when sequence numbers show the place.
    counts: Vec<Count>,
    first: Fifo,
    /// With the bucket of each packet, 0 by sequence number.
    rest: Fifo<u32>,
}

/// What is known of the flows of a bucket.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// Bytes that arrived.
    bytes: u64,
    /// When the last came.
    seen: Instant,
    /// Packets that wait among the rest.
    waiting: u32,
}

impl TwoQueue {
    /// `limit`, `by`, `threshold`, `buckets`, `forget`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait in both queues together (as drop-tail)"),
        parameter!("by": Choice(&["bytes", "sequence"]) = "bytes",
            "How the place in the flow is known: bytes that the router counted, or the sequence number (Avrachenkov et al.)"),
        parameter!("threshold": Bytes(Bytes(1), Bytes(1_000_000_000)) = Bytes(30_000),
            "First bytes of a flow that go before all others (ours: 20 packets)"),
        BUCKETS,
        parameter!("forget": Duration(Duration::from_millis(1), Duration::from_secs(86_400)) = Duration::from_secs(10),
            "Silence after which the count of a flow starts at zero again (ours)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> TwoQueue {
        let buckets = values.integer("buckets").unwrap_or(16_384) as usize;
        let by_bytes = values.choice("by") == "bytes";
        TwoQueue {
            limit: values.limit("limit"),
            threshold: values.bytes("threshold").map_or(30_000, |bytes| bytes.0),
            forget: values.duration("forget").unwrap_or(Duration::from_secs(10)),
            key: HashKey::new(link.seed),
            counts: vec![Count::NOTHING; if by_bytes { buckets } else { 0 }],
            first: Fifo::new(),
            rest: Fifo::new(),
        }
    }

    /// The bucket of the packet's flow, and bytes of the flow before it.
    fn place(&mut self, now: Instant, packet: &Packet, context: &QueueContext<'_>) -> (u32, u64) {
        if self.counts.is_empty() {
            if !packet.segment.is_data() {
                return (0, 0);
            }
            let stream = context.flows.stream(packet.flow);
            return (0, stream.map_or(0, |stream| stream.place(packet.segment.seq)));
        }
        let key = context.flows.key(packet.flow);
        let bucket = self.key.flow(key, self.counts.len() as u32);
        let count = &mut self.counts[bucket as usize];
        if now.since(count.seen) >= self.forget && count.waiting == 0 {
            count.bytes = 0;
        }
        let place = count.bytes;
        count.bytes = place.saturating_add(u64::from(packet.segment.len()));
        count.seen = now;
        (bucket, place)
    }
}

impl Count {
    const NOTHING: Count = Count {
        bytes: 0,
        seen: Instant::ZERO,
        waiting: 0,
    };
}

impl QueueDiscipline for TwoQueue {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        if !self.limit.admits(self.backlog(), packet.segment.len()) {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        let (bucket, place) = self.place(now, &packet, context);
        if place < self.threshold {
            self.first.push(packet, ());
            return;
        }
        if let Some(count) = self.counts.get_mut(bucket as usize) {
            count.waiting += 1;
        }
        self.rest.push(packet, bucket);
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        if let Some((packet, ())) = self.first.pop() {
            return Some(packet);
        }
        let (packet, bucket) = self.rest.pop()?;
        if let Some(count) = self.counts.get_mut(bucket as usize) {
            count.waiting -= 1;
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let (first, rest) = (self.first.backlog(), self.rest.backlog());
        Backlog {
            packets: first.packets + rest.packets,
            bytes: first.bytes + rest.bytes,
        }
    }

    fn asks_streams(&self) -> bool {
        self.counts.is_empty()
    }
}
