//! Least attained service: the flow that has sent least is next.
//!
//! The router counts the bytes that each flow has sent and serves the flow with the lowest count; flows that are equal take
//! turns. A short flow passes all long ones without saying how long it is. When the buffer is full the flow that has
//! sent most loses its last packet.
//!
//! **Source.** Rai, Urvoy-Keller, Vernon and Biersack, "Performance analysis of LAS-based scheduling disciplines in a packet
//! switched network" (SIGMETRICS 2004); named in the FavourTail talk as [Rai05]: bytes of each flow kept in the router, packets ordered
//! by them. From memory.
//!
//! **Promises.** Work conserving; a flow keeps its order. No packet waits behind one of a flow that had sent more.
//!
//! **Deviations.** An ideal: state for every flow, and log2(buckets) steps per packet. Bytes count when they leave, not when
//! they arrive. Flows are hashed into buckets and those of one bucket count as one. A bucket that was silent for `forget`
//! starts at zero; the paper does not say when a flow ends.

use super::hash::HashKey;
use super::ranked::{BUCKETS, LIMIT, Rank, Ranked};
use super::{Backlog, Limit, LinkContext, QueueContext, QueueDiscipline};
use crate::packet::Packet;
use crate::parameter::{Parameter, ParameterKind, Value, Values};
use crate::time::{Duration, Instant};
use alloc::vec;
use alloc::vec::Vec;

/// A queue that serves the flow that has sent least.
#[derive(Clone, Debug)]
pub struct LeastAttained {
    limit: Limit,
    forget: Duration,
    key: HashKey,
    packets: Ranked,
    /// When a packet of the bucket came or left last.
    seen: Vec<Instant>,
    turn: u64,
}

impl LeastAttained {
    /// `limit`, `buckets`, `forget`.
    pub const PARAMETERS: &'static [Parameter] = &[
        LIMIT,
        BUCKETS,
        Parameter {
            name: "forget",
            kind: ParameterKind::Duration(Duration::from_millis(1), Duration::from_secs(86_400)),
            default: Value::Duration(Duration::from_secs(10)),
            doc: "Silence after which a flow starts at zero again (ours)",
        },
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> LeastAttained {
        let buckets = values.integer("buckets").unwrap_or(16_384) as u32;
        LeastAttained {
            limit: values.limit("limit"),
            forget: values.duration("forget").unwrap_or(Duration::from_secs(10)),
            key: HashKey::new(link.seed),
            packets: Ranked::new(buckets),
            seen: vec![Instant::ZERO; buckets as usize],
            turn: 0,
        }
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }
}

impl QueueDiscipline for LeastAttained {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let key = context.flows.key(packet.flow);
        let bucket = self.key.flow(key, self.packets.buckets());
        let mut rank = self.packets.rank(bucket);
        if self.packets.is_empty(bucket) {
            if now.since(self.seen[bucket as usize]) >= self.forget {
                rank.value = 0;
            }
            rank.turn = self.next_turn();
        }
        self.seen[bucket as usize] = now;
        self.packets
            .push_within(self.limit, bucket, packet, rank, context.drops);
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        super::work::step();
        let bucket = self.packets.least()?;
        let packet = self.packets.pop(bucket)?;
        self.seen[bucket as usize] = now;
        let value = self.packets.rank(bucket).value;
        let rank = Rank {
            value: value.saturating_add(u64::from(packet.segment.len())),
            turn: self.next_turn(),
        };
        self.packets.set_rank(bucket, rank);
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.total()
    }
}
