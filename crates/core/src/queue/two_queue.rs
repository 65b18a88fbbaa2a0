//! Two queues: the first bytes of every flow go before all the rest.
//!
//! Packets that lie within the first `threshold` bytes of their flow wait in a queue that is always served first. The router
//! counts the bytes of each flow, or takes the place in the stream from the TCP sequence number and keeps no state, or counts only
//! where it is the first on the path and leaves a mark in the packet, which later routers read.
//!
//! **Source.** Avrachenkov, Ayesta, Brown and Nyberg, "Differentiation between short and long TCP flows: predictability of the
//! response time" (INFOCOM 2004), named in the FavourTail talk as [Avranchenkov04]: two queues by sequence number, with
//! initial sequence numbers that sources restrict. From memory. By mark: Chen and Heidemann, "Preferential treatment for short flows
//! to reduce web latency" (Computer Networks 41(6), 2003), named there as [Chen03]: edge routers count the bytes of flows and set
//! DiffServ codepoints, core routers keep no state and prefer the packets of short flows. From memory, but for its abstract. RFC 2474
//! 6: codepoints xxxx11 are for local use.
//!
//! **Promises.** Work conserving. By bytes a flow keeps its order; by sequence number a retransmission from the first bytes passes
//! the flow's later packets. By mark a flow keeps its order where it is counted, and at a later router unless packets of it wait
//! there longer than `forget`.
//!
//! **Deviations.** Instead of restricting initial sequence numbers the simulator reports where a stream begins
//! ([`crate::flow::FlowTable::set_stream`]); of a stream it does not know all packets are first ones, as are all without data. By
//! bytes, flows are hashed into buckets; a bucket that was silent for `forget` starts at zero unless packets of it still wait among
//! the rest, which its next ones must not pass. A full queue refuses what arrives, whichever queue it is for. The threshold is ours.
//!
//! By mark, a real edge router knows by configuration that it is one. Here both kinds of packets get a codepoint, 11 the first ones of
//! a flow and 15 the rest, so a packet with neither has met no such queue yet, and the one it meets is its edge. Where a host's own
//! line has the queue, the host is the edge. Another codepoint that the packet had is replaced, ECN is left alone, and nobody takes
//! the mark out again. A source that sets codepoint 11 itself is believed, where a real edge router would overwrite it. The core of the
//! paper is one queue that drops long flows earlier (RIO, as we remember it); strict priority is ours, so that only the counting
//! differs from `bytes`. Super-packets of layout A have their mark in the same bits and cannot pass.

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
    by: By,
    threshold: u64,
    forget: Duration,
    key: HashKey,
    buckets: usize,
    /// By bucket; empty until a flow is counted.
    counts: Vec<Count>,
    first: Fifo,
    /// With the bucket of each packet, [`UNCOUNTED`] if it was not counted here.
    rest: Fifo<u32>,
}

/// How the place of a packet in its flow is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Bytes,
    Sequence,
    Mark,
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
        parameter!("by": Choice(&["bytes", "sequence", "mark"]) = "bytes",
            "How the place in the flow is known: bytes that the router counted, the sequence number (Avrachenkov et al.), or the codepoint by which the first such router of the path marked what it counted (Chen and Heidemann)"),
        parameter!("threshold": Bytes(Bytes(1), Bytes(1_000_000_000)) = Bytes(30_000),
            "First bytes of a flow that go before all others (ours: 20 packets)"),
        BUCKETS,
        parameter!("forget": Duration(Duration::from_millis(1), Duration::from_secs(86_400)) = Duration::from_secs(10),
            "Silence after which the count of a flow starts at zero again (ours)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> TwoQueue {
        let by = match values.choice("by") {
            "sequence" => By::Sequence,
            "mark" => By::Mark,
            _ => By::Bytes,
        };
        TwoQueue {
            limit: values.limit("limit"),
            by,
            threshold: values.bytes("threshold").map_or(30_000, |bytes| bytes.0),
            forget: values.duration("forget").unwrap_or(Duration::from_secs(10)),
            key: HashKey::new(link.seed),
            buckets: values.integer("buckets").unwrap_or(16_384) as usize,
            counts: Vec::new(),
            first: Fifo::new(),
            rest: Fifo::new(),
        }
    }

    /// Whether the packet is one of the first of its flow, and the bucket that it was counted in. Marks a packet that has no mark yet.
    fn place(&mut self, now: Instant, packet: &mut Packet, context: &QueueContext<'_>) -> (bool, u32) {
        match self.by {
            By::Bytes => self.count(now, packet, context),
            By::Sequence => (self.is_early(packet, context), UNCOUNTED),
            By::Mark => match packet.segment.tos >> 2 {
                FIRST => (true, UNCOUNTED),
                REST => (false, UNCOUNTED),
                _ => {
                    let (is_first, bucket) = self.count(now, packet, context);
                    let codepoint = if is_first { FIRST } else { REST };
                    packet.segment.tos = codepoint << 2 | packet.segment.tos & 3;
                    (is_first, bucket)
                }
            },
        }
    }

    /// Whether the packet has no data or lies, by its sequence number, in the first bytes of its stream.
    fn is_early(&self, packet: &Packet, context: &QueueContext<'_>) -> bool {
        if !packet.segment.is_data() {
            return true;
        }
        let stream = context.flows.stream(packet.flow);
        stream.is_none_or(|stream| stream.place(packet.segment.seq) < self.threshold)
    }

    /// Whether the packet begins in the first bytes of its flow, which it is added to, and the flow's bucket.
    fn count(&mut self, now: Instant, packet: &Packet, context: &QueueContext<'_>) -> (bool, u32) {
        if self.counts.is_empty() {
            self.counts = vec![Count::NOTHING; self.buckets];
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
        (place < self.threshold, bucket)
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
    fn enqueue(&mut self, now: Instant, mut packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        if !self.limit.admits(self.backlog(), packet.segment.len()) {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        let (is_first, bucket) = self.place(now, &mut packet, context);
        if is_first {
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
        self.by == By::Sequence
    }
}

/// Codepoint of packets that lie in the first bytes of their flow.
const FIRST: u8 = 0b00_1011;
/// Codepoint of all later ones.
const REST: u8 = 0b00_1111;

/// No bucket: there are fewer.
const UNCOUNTED: u32 = u32::MAX;
