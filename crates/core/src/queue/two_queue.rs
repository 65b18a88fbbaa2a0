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
//! bytes, flows are hashed into buckets and a bucket that was silent for `forget` starts at zero. A full queue refuses what
//! arrives, whichever queue it is for. The threshold is ours.

use super::fifo::Fifo;
use super::hash::HashKey;
use super::ranked::BUCKETS;
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline};
use crate::packet::Packet;
use crate::parameter::{Parameter, ParameterKind, Value, Values};
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
    /// Bytes that arrived by bucket, and when the last came; empty when sequence numbers show it.
    counts: Vec<(u64, Instant)>,
    first: Fifo,
    rest: Fifo,
}

impl TwoQueue {
    /// `limit`, `by`, `threshold`, `buckets`, `forget`.
    pub const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "limit",
            kind: ParameterKind::Limit,
            default: Value::Limit(Limit::Packets(1000)),
            doc: "What may wait in both queues together (as drop-tail)",
        },
        Parameter {
            name: "by",
            kind: ParameterKind::Choice(&["bytes", "sequence"]),
            default: Value::Choice("bytes"),
            doc: "How the place in the flow is known: bytes that the router counted, or the sequence number (Avrachenkov et al.)",
        },
        Parameter {
            name: "threshold",
            kind: ParameterKind::Bytes(Bytes(1), Bytes(1_000_000_000)),
            default: Value::Bytes(Bytes(30_000)),
            doc: "First bytes of a flow that go before all others (ours: 20 packets)",
        },
        BUCKETS,
        Parameter {
            name: "forget",
            kind: ParameterKind::Duration(Duration::from_millis(1), Duration::from_secs(86_400)),
            default: Value::Duration(Duration::from_secs(10)),
            doc: "Silence after which the count of a flow starts at zero again (ours)",
        },
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
            counts: vec![(0, Instant::ZERO); if by_bytes { buckets } else { 0 }],
            first: Fifo::new(),
            rest: Fifo::new(),
        }
    }

    /// Bytes of the packet's flow before it.
    fn place(&mut self, now: Instant, packet: &Packet, context: &QueueContext<'_>) -> u64 {
        if self.counts.is_empty() {
            if !packet.segment.is_data() {
                return 0;
            }
            let stream = context.flows.stream(packet.flow);
            return stream.map_or(0, |stream| stream.place(packet.segment.seq));
        }
        let key = context.flows.key(packet.flow);
        let bucket = self.key.flow(key, self.counts.len() as u32);
        let (count, seen) = &mut self.counts[bucket as usize];
        if now.since(*seen) >= self.forget {
            *count = 0;
        }
        let place = *count;
        *count = count.saturating_add(u64::from(packet.segment.len()));
        *seen = now;
        place
    }
}

impl QueueDiscipline for TwoQueue {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        if !self.limit.admits(self.backlog(), packet.segment.len()) {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        if self.place(now, &packet, context) < self.threshold {
            self.first.push(packet, ());
        } else {
            self.rest.push(packet, ());
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        let next = self.first.pop().or_else(|| self.rest.pop());
        next.map(|(packet, ())| packet)
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
