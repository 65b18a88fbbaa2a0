//! Drop-tail: first in, first out, refuse what does not fit.
//!
//! **Source.** Router digest 1.2. In byte mode a large packet is refused while smaller ones still enter.
//! **Deviations.** `ns2_compat` copies ns-2.35, which drops when `len + 1 >= limit`: a limit of 50 holds 49 waiting.

use super::{Backlog, Decides, DropReason, Limit, QueueContext, QueueDiscipline, Surroundings};
use crate::packet::Packet;
use crate::parameter::{Parameter, ParameterKind, Value, Values};
use crate::time::Instant;
use crate::units::Bytes;
use alloc::collections::VecDeque;

/// A drop-tail queue.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: Limit,
    packets: VecDeque<Packet>,
    bytes: Bytes,
}

impl DropTail {
    /// `limit` and `ns2_compat`.
    pub const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "limit",
            kind: ParameterKind::Limit,
            default: Value::Limit(Limit::Packets(1000)),
            doc: "What may wait, not counting the packet being sent (Linux's default device queue holds 1000)",
        },
        Parameter {
            name: "ns2_compat",
            kind: ParameterKind::Flag,
            default: Value::Flag(false),
            doc: "Hold one packet less, as ns-2.35 does (it drops when length + 1 >= limit)",
        },
    ];

    /// An empty queue.
    pub fn new(values: &Values, _surroundings: &Surroundings) -> DropTail {
        let limit = match values.limit("limit") {
            Limit::Packets(limit) if values.flag("ns2_compat") => Limit::Packets(limit.saturating_sub(1)),
            limit => limit,
        };
        DropTail {
            limit,
            packets: VecDeque::new(),
            bytes: Bytes::ZERO,
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
            self.bytes += Bytes(u64::from(len));
            self.packets.push_back(packet);
        } else {
            context.drops.push((packet, DropReason::Full));
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= Bytes(u64::from(packet.segment.len()));
        Some(packet)
    }

    #[inline]
    fn ready_at(&self) -> Option<Instant> {
        if self.packets.is_empty() {
            None
        } else {
            Some(Instant::ZERO)
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets.len() as u32,
            bytes: self.bytes,
        }
    }

    fn decides(&self) -> Decides {
        Decides::Arrival
    }
}
