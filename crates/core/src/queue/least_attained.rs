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
//! **Deviations.** An ideal: state for every flow, and steps per packet that grow with the logarithm of the flows that wait. Bytes count when they leave, not when
//! they arrive. Flows are hashed into buckets and those of one bucket count as one. A bucket that was silent for `forget`
//! starts at zero; the paper does not say when a flow ends.

use super::ranked::{BUCKETS, LIMIT, Ranked};
use super::{Backlog, LinkContext, QueueContext, QueueDiscipline};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};

/// A queue that serves the flow that has sent least.
#[derive(Clone, Debug)]
pub struct LeastAttained {
    forget: Duration,
    /// By bytes that the bucket has sent.
    packets: Ranked,
}

impl LeastAttained {
    /// `limit`, `buckets`, `forget`.
    pub const PARAMETERS: &'static [Parameter] = &[
        LIMIT,
        BUCKETS,
        parameter!("forget": Duration(Duration::from_millis(1), Duration::from_secs(86_400)) = Duration::from_secs(10),
            "Silence after which a flow starts at zero again (ours)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> LeastAttained {
        LeastAttained {
            forget: values.duration("forget").unwrap_or(Duration::from_secs(10)),
            packets: Ranked::new(values, link),
        }
    }
}

impl QueueDiscipline for LeastAttained {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let bucket = self.packets.bucket(&packet, context);
        let seen = self.packets.see(bucket, now);
        let forgotten = self.packets.is_empty(bucket) && now.since(seen) >= self.forget;
        let value = match forgotten {
            true => 0,
            false => self.packets.value(bucket),
        };
        self.packets
            .push(bucket, packet, value, context.drops, |_, sent, _| sent);
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        super::work::step();
        self.packets.pop(now, |_, sent, packet, _| {
            sent.saturating_add(u64::from(packet.segment.len()))
        })
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.total()
    }
}
