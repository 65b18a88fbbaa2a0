//! HULL's phantom queue: marks what would wait if the link were a little slower than it is.
//!
//! A counter grows by every packet that leaves, framing included, and drains at `drain` of the link's rate, as a queue in front of a link of that
//! rate would. A packet that leaves while the counter is above `threshold` is marked. Senders that answer marks keep the
//! link below that rate, so that hardly anything waits in the queue itself, which is drop-tail.
//!
//! **Source.** Alizadeh, Kabbani, Edsall, Prabhakar, Vahdat and Yasuda, "Less is more: trading a little bandwidth for ultra-low
//! latency in the data center" (NSDI 2012), named in the super-packet report, section 6.1: a counter of what would wait at 95 % of the
//! bandwidth, and marks above that. The rest of HULL is in the senders: `tcp.congestion_control = "dctcp"` and
//! `tcp.pacing`. From memory. The counter: docs/design/queues.md#hull.
//!
//! **Promises.** Order and drops are those of drop-tail with the same limit. A link that is loaded below `drain` in every
//! interval, but for bursts of `threshold` bytes, marks nothing.
//!
//! **Deviations.** The counter is looked at when a packet begins to be sent, not when it has been. It has no upper end: beside senders that
//! ignore marks it grows as the queue of the slower link would. Packets that cannot be marked count and are not dropped. The
//! default threshold, four packets of 1500 B, is ours: the report names none. On a link whose rate changes the drain is of the rate
//! at the start.

use super::fifo::Fifo;
use super::{
    Backlog, DropPoint, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEventKind,
};
use crate::packet::{Ecn, Packet};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::Instant;
use crate::units::Bytes;

/// Parts of a bit in the counter, so that a rate in bit/s times nanoseconds is whole.
const PER_BIT: u128 = 1_000_000_000;

/// A drop-tail queue with a phantom queue behind it.
#[derive(Clone, Debug)]
pub struct Hull {
    limit: Limit,
    packets: Fifo,
    /// Rate at which the counter drains, bit/s.
    drain: u64,
    /// Bytes that the link adds to each packet: its rate carries them, too.
    framing: u32,
    /// Above this the packet that leaves is marked, in parts of a bit.
    threshold: u128,
    /// What would wait, in parts of a bit, at the time `latest`.
    level: u128,
    latest: Instant,
}

impl Hull {
    /// `limit`, `drain` and `threshold`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait, not counting the packet being sent (as drop-tail)"),
        parameter!("drain": Number(0.01, 1.0) = 0.95,
            "Rate of the phantom queue as a share of the link's (the report: 0.95)"),
        parameter!("threshold": Bytes(Bytes(0), Bytes(1_000_000_000)) = Bytes(6000),
            "Hull queue above which a packet is marked as it leaves, that packet included (ours: 4 packets of 1500 B)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> Hull {
        let share = values.number("drain").unwrap_or(0.95);
        let threshold = values.bytes("threshold").map_or(6000, |bytes| bytes.0);
        Hull {
            limit: values.limit("limit"),
            packets: Fifo::new(),
            drain: libm::round(link.rate.bps() as f64 * share) as u64,
            framing: link.framing,
            threshold: u128::from(threshold) * 8 * PER_BIT,
            level: 0,
            latest: Instant::ZERO,
        }
    }
}

impl QueueDiscipline for Hull {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        if self.limit.admits(self.packets.backlog(), packet.segment.len()) {
            self.packets.push(packet, ());
        } else {
            context.drops.push((packet, DropReason::Full));
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        let (mut packet, ()) = self.packets.pop()?;
        let now = self.latest.max(now);
        let drained = u128::from(self.drain) * u128::from(now.since(self.latest).as_nanos());
        self.latest = now;
        let bytes = u128::from(packet.segment.len()) + u128::from(self.framing);
        self.level = self.level.saturating_sub(drained) + bytes * 8 * PER_BIT;
        if self.level > self.threshold && packet.segment.ecn_capable() {
            packet.segment.set_ecn(Ecn::Ce);
            context.report(QueueEventKind::Marked, packet.flow);
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn drop_point(&self) -> DropPoint {
        DropPoint::Departure
    }
}
