//! Drop-tail behind Linux's receive offload: consecutive segments of a flow are one unit, queued or dropped as a whole.
//!
//! A software router with GRO merges what it receives in one poll, so that its queue sees frames of up to 64 kB: a natural
//! super-packet that nobody signals. Here a data segment waits in an open unit of its flow until the unit is complete, and the
//! unit is queued if all of it fits. When the link has nothing else to send, the oldest unit is complete.
//!
//! **Source.** docs/design/queues.md#gro; what merges: Linux 6.x `tcp_gro_receive` and `inet_gro_receive` (same flow, next sequence
//! number, equal acknowledgment, window, flags, options, TTL, traffic class and DF; identification fixed or counting up; a
//! shorter segment, PSH or FIN completes the unit), units of at most 65,535 bytes; `dev_gro_receive`: eight lists of open units by the
//! flow's hash (GRO_HASH_BUCKETS), each with at most eight (MAX_GRO_SKBS), of which the oldest makes room.
//!
//! **Deviations.** A poll is a time, `hold`, from the first segment of a unit. The limit counts the segments of a unit, so that
//! it is comparable with the other queues; a Linux queue with a limit in packets counts a merged frame once. Open units count as
//! waiting. A unit that found no room is dropped to its last segment within `hold`.

use super::hash::HashKey;
use super::store::{PacketList, PacketPool};
use super::{Backlog, DropPoint, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, work};
use crate::flow::FlowId;
use crate::packet::{Flags, Kind, Packet, Segment};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::vec;
use alloc::vec::Vec;

/// Lists of open units (GRO_HASH_BUCKETS of Linux).
const LISTS: usize = 8;
/// Units that can be open in a list (MAX_GRO_SKBS of Linux).
const OPEN: usize = 8;

/// A drop-tail queue of merged frames.
#[derive(Clone, Debug)]
pub struct GroUnit {
    limit: Limit,
    hold: Duration,
    unit_bytes: u64,
    pool: PacketPool,
    /// Complete units.
    queue: PacketList,
    key: HashKey,
    /// Open units by the hash of their flow.
    lists: Vec<OpenUnits>,
    /// Units that were opened so far.
    opened: u64,
    latest: Instant,
}

/// A list of open units, the oldest first.
#[derive(Clone, Copy, Debug)]
struct OpenUnits {
    units: [Unit; OPEN],
    len: usize,
}

/// Segments of one flow that are being merged.
#[derive(Clone, Copy, Debug)]
struct Unit {
    flow: FlowId,
    packets: PacketList,
    /// How many were opened before it.
    number: u64,
    /// Complete from here on.
    until: Instant,
    /// Payload of the first segment: no later one may be longer.
    size: u32,
    /// The newest segment.
    newest: Segment,
    /// Bytes of the merged frame, dropped or not.
    bytes: u64,
    /// The unit found no room.
    dropped: bool,
}

impl Unit {
    fn none() -> Unit {
        Unit {
            flow: FlowId(0),
            packets: PacketList::EMPTY,
            number: 0,
            until: Instant::ZERO,
            size: 0,
            newest: Segment::default(),
            bytes: 0,
            dropped: false,
        }
    }
}

/// What a merged frame may differ in from segment to segment.
const MAY_DIFFER: Flags = Flags(Flags::FIN.0 | Flags::PSH.0);
/// What completes a unit with the segment that carries it.
const COMPLETES: Flags = Flags(Flags::FIN.0 | Flags::PSH.0 | Flags::SYN.0 | Flags::RST.0 | Flags::URG.0);
/// What is never merged into an open unit.
const NEVER: Flags = Flags(Flags::SYN.0 | Flags::RST.0 | Flags::URG.0 | Flags::CWR.0 | Flags::CORRUPT.0);

impl GroUnit {
    /// `limit`, `hold` and `unit`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait, open units included, not counting the packet being sent (as drop-tail)"),
        parameter!("hold": Duration(Duration::ZERO, Duration::from_millis(10)) = Duration::from_micros(50),
            "How long segments of a unit may lie apart from the first one: a poll with moderated interrupts (Linux drivers: 3 to 100 us)"),
        parameter!("unit": Bytes(Bytes(1), Bytes(1_000_000)) = Bytes(65_535),
            "Largest merged frame at layer 3 (Linux: 65,535 B)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> GroUnit {
        GroUnit {
            limit: values.limit("limit"),
            hold: values.duration("hold").unwrap_or(Duration::from_micros(50)),
            unit_bytes: values.bytes("unit").map_or(65_535, |bytes| bytes.0),
            pool: PacketPool::new(),
            queue: PacketList::EMPTY,
            key: HashKey::new(link.seed),
            lists: vec![
                OpenUnits {
                    units: [Unit::none(); OPEN],
                    len: 0,
                };
                LISTS
            ],
            opened: 0,
            latest: Instant::ZERO,
        }
    }

    /// The list of a flow's open unit: by the low bits of its hash.
    fn list(&self, flow: FlowId, context: &QueueContext<'_>) -> usize {
        let fingerprint = self.key.flow_fingerprint(context.flows.key(flow));
        (fingerprint % LISTS as u64) as usize
    }

    /// Queues an open unit and forgets it.
    fn complete(&mut self, list: usize, index: usize) {
        work::step();
        let list = &mut self.lists[list];
        self.pool.append(&mut self.queue, &mut list.units[index].packets);
        list.units.copy_within(index + 1..list.len, index);
        list.len -= 1;
    }

    /// The list with the oldest of all open units. All last equally long, so it is the next one whose time is over.
    fn oldest(&self) -> Option<usize> {
        (0..LISTS)
            .filter(|&list| self.lists[list].len > 0)
            .min_by_key(|&list| self.lists[list].units[0].number)
    }

    /// Completes the units whose time is over.
    fn expire(&mut self, now: Instant) {
        while let Some(list) = self.oldest()
            && self.lists[list].units[0].until <= now
        {
            self.complete(list, 0);
        }
    }

    /// Adds `packet` to an open unit, or drops it with all of the unit.
    fn add(&mut self, list: usize, index: usize, packet: Packet, context: &mut QueueContext<'_>) {
        let len = packet.segment.len();
        let fits = self.limit.admits(self.pool.total(), len);
        let unit = &mut self.lists[list].units[index];
        unit.newest = packet.segment;
        unit.bytes += u64::from(packet.segment.payload);
        if fits && !unit.dropped {
            self.pool.push(&mut unit.packets, packet);
        } else {
            unit.dropped = true;
            while let Some(earlier) = self.pool.pop(&mut unit.packets) {
                work::step();
                context.drops.push((earlier, DropReason::Full));
            }
            context.drops.push((packet, DropReason::Full));
        }
        // tcp_gro_receive: a short segment and some control bits complete the unit.
        let unit = &self.lists[list].units[index];
        if packet.segment.payload < unit.size || packet.segment.flags.intersects(COMPLETES) {
            self.complete(list, index);
        }
    }
}

impl Unit {
    /// Whether `segment` is the next one of the merged frame.
    fn continues(&self, segment: &Segment, largest: u64) -> bool {
        let before = &self.newest;
        let same_flags = (before.flags.0 ^ segment.flags.0) & !MAY_DIFFER.0 == 0;
        let step = segment.ip_id.wrapping_sub(before.ip_id);
        segment.seq == before.seq + before.payload
            && segment.payload <= self.size
            && self.bytes + u64::from(segment.payload) <= largest
            && same_flags
            && !segment.flags.intersects(NEVER)
            && (segment.ack, segment.window, segment.options) == (before.ack, before.window, before.options)
            && (segment.tsval, segment.tsecr, segment.kind_sack)
                == (before.tsval, before.tsecr, before.kind_sack)
            && (segment.tos, segment.ttl, segment.overhead) == (before.tos, before.ttl, before.overhead)
            && step <= 1
    }
}

impl QueueDiscipline for GroUnit {
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        work::step();
        self.latest = self.latest.max(now);
        let now = self.latest;
        self.expire(now);
        let segment = packet.segment;
        let list = self.list(packet.flow, context);
        let OpenUnits { units, len } = &self.lists[list];
        if let Some(index) = units[..*len].iter().position(|unit| unit.flow == packet.flow) {
            if units[index].continues(&segment, self.unit_bytes) {
                self.add(list, index, packet, context);
                return;
            }
            self.complete(list, index);
        }
        if segment.kind() != Kind::Tcp || !segment.is_data() || segment.flags.intersects(NEVER) {
            // Passed on as it is.
            if self.limit.admits(self.pool.total(), segment.len()) {
                self.pool.push(&mut self.queue, packet);
            } else {
                context.drops.push((packet, DropReason::Full));
            }
            return;
        }
        if self.lists[list].len == OPEN {
            self.complete(list, 0);
        }
        let index = self.lists[list].len;
        self.lists[list].len += 1;
        self.lists[list].units[index] = Unit {
            flow: packet.flow,
            number: self.opened,
            until: now.saturating_add(self.hold),
            size: segment.payload,
            bytes: u64::from(segment.overhead),
            ..Unit::none()
        };
        self.opened += 1;
        self.add(list, index, packet, context);
    }

    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        self.latest = self.latest.max(now);
        self.expire(self.latest);
        // An idle link takes what is there: the poll has ended.
        while self.queue.packets == 0
            && let Some(list) = self.oldest()
        {
            self.complete(list, 0);
        }
        self.pool.pop(&mut self.queue)
    }

    fn ready_at(&self) -> Option<Instant> {
        (self.pool.total().packets > 0).then_some(Instant::ZERO)
    }

    fn backlog(&self) -> Backlog {
        self.pool.total()
    }

    fn drop_point(&self) -> DropPoint {
        // A segment in the queue may still be dropped with its unit.
        DropPoint::Departure
    }
}

#[cfg(test)]
mod tests;
