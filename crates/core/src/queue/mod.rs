//! Queue disciplines: the trait, the contract, and the registry.
//!
//! The packet being serialised is not in the queue. There are no timers inside a discipline: expiry is lazy, driven
//! by `now` of the next call, so the same code runs in the simulator and on real packets. A discipline decides and
//! keeps no statistics; the link counts what a call leaves in [`QueueContext`]. Random numbers come from a seeded stream given
//! at construction.
//!
//! **Contract** (docs/design/queues.md#g1): G1 conservation, G2 limits after every call, G3 work conservation, G4 per-flow
//! order, G5 constant work per call, G6 determinism, G7 no panic on any header or time. The property tests hold every
//! registry entry to it.

use crate::flow::{FlowId, FlowKey, FlowTable};
use crate::packet::Packet;
use crate::parameter::Values;
use crate::registry;
use crate::registry::Need;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

mod cake;
mod classes;
mod codel;
mod drop_tail;
mod drr;
mod dualpi2;
mod favourtail;
mod fifo;
mod fq_codel;
mod fq_pie;
mod gro_unit;
mod hardened;
mod hash;
mod hull;
mod jumbo;
mod least_attained;
mod low_ttl;
mod pie;
mod ranked;
mod red;
mod round_robin;
mod rounds;
mod sfq;
mod shortest_remaining;
mod store;
mod superpacket;
#[cfg(test)]
mod tests;
mod two_queue;
mod work;

/// A queue discipline.
pub trait QueueDiscipline {
    /// Takes a packet, or reports it dropped to `context`.
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>);
    /// The next packet to serialise. May report others dropped. Who sends asks until there is none: a link whose last packet has
    /// been sent asks once more, as Linux and ns-3 do, and an empty discipline may then end what lasts as long as packets wait.
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet>;
    /// The packet handed out last has been sent, and the next one has to wait: for the line, which follows a trace, or for the
    /// discipline itself. Where the next one leaves at once nobody says so.
    fn on_sent(&mut self) {}
    /// What waits.
    fn backlog(&self) -> Backlog;
    /// `None`: empty. Later than now: shaped. Without a shaper every packet that waits may leave at once.
    #[inline]
    fn ready_at(&self) -> Option<Instant> {
        (self.backlog().packets > 0).then_some(Instant::ZERO)
    }

    /// When the fate of a packet is decided.
    fn drop_point(&self) -> DropPoint {
        DropPoint::Departure
    }

    /// Whether it looks at [`QueueContext::ingress`]: finding it costs, so the driver sets it only for those who ask.
    fn asks_ingress(&self) -> bool {
        false
    }

    /// Whether it looks at [`FlowTable::stream`]: the driver keeps no such table where nobody asks.
    fn asks_streams(&self) -> bool {
        false
    }

    /// Bytes of state beside the packets, if the discipline reports it.
    fn state_bytes(&self) -> Option<usize> {
        None
    }

    /// Most places of its tables that it looked at for one packet so far, if what a packet is depends on tables.
    fn most_probes(&self) -> Option<u32> {
        None
    }

    /// The two groups of places among which it looks for super-packet `id` of a flow, if it has a table of super-packets: what
    /// somebody finds out who knows its hash key.
    fn places_of(&self, flow: FlowKey, id: u16) -> Option<[u32; 2]> {
        let _ = (flow, id);
        None
    }

    /// Longest time from the arrival of a packet that is admitted to the end of its transmission on a link that needs `sending` for
    /// packets, whatever else arrives, if the discipline knows and there is such a time.
    fn longest_wait(&self, sending: &SendingTime) -> Option<Duration> {
        let _ = sending;
        None
    }

    /// Whether `values`, each within its own range, make sense together. Asked again, with a `limit` in bytes as the packets that it
    /// holds, where the MTU of the link is known.
    ///
    /// # Errors
    /// A sentence for the author of the scenario file.
    fn check(values: &Values) -> Result<(), String>
    where
        Self: Sized,
    {
        let _ = values;
        Ok(())
    }

    /// The settings it needs besides its name.
    fn needs() -> &'static [Need]
    where
        Self: Sized,
    {
        &[]
    }
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes at layer 3.
    pub bytes: Bytes,
}

/// When a discipline decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropPoint {
    /// Admission on arrival, FIFO order: departure times follow at once.
    Arrival,
    /// Everything else.
    Departure,
}

/// What a discipline may look at and report to during one call. The vectors are the link's scratch space.
pub struct QueueContext<'a> {
    /// Keys of all flows.
    pub flows: &'a FlowTable,
    /// By which link the packet came to this node, 0 if it was made here. Set for disciplines that ask for it.
    pub ingress: u16,
    /// Packets dropped by this call, before or after they were queued.
    pub drops: &'a mut Vec<(Packet, DropReason)>,
    /// What else happened.
    pub events: &'a mut Vec<QueueEvent>,
}

/// Why a packet was dropped. Every drop in the program is counted by place and reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full.
    Full,
    /// Active queue management dropped it early.
    Early,
    /// Pushed out to make room for another.
    PushedOut,
    /// The link's loss model took it.
    RandomLoss,
    /// Damaged by bit errors.
    BitError,
    /// Larger than the link's MTU.
    TooBig,
    /// No route to its destination.
    NoRoute,
    /// Belongs to a super-packet that was not admitted.
    Orphan,
}

impl DropReason {
    /// All reasons, in order.
    pub const ALL: [DropReason; 8] = [
        DropReason::Full,
        DropReason::Early,
        DropReason::PushedOut,
        DropReason::RandomLoss,
        DropReason::BitError,
        DropReason::TooBig,
        DropReason::NoRoute,
        DropReason::Orphan,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Full => "full",
            DropReason::Early => "early",
            DropReason::PushedOut => "pushed_out",
            DropReason::RandomLoss => "random_loss",
            DropReason::BitError => "bit_error",
            DropReason::TooBig => "too_big",
            DropReason::NoRoute => "no_route",
            DropReason::Orphan => "orphan",
        }
    }
}

/// What a discipline reports besides drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueEvent {
    /// What happened.
    pub kind: QueueEventKind,
    /// To whose packet, or during whose call.
    pub flow: FlowId,
    /// How often it happened in this call; at least 1.
    pub count: u32,
}

impl QueueContext<'_> {
    /// Reports that `kind` happened to a packet of `flow`.
    #[inline]
    pub fn report(&mut self, kind: QueueEventKind, flow: FlowId) {
        self.events.push(QueueEvent { kind, flow, count: 1 });
    }
}

/// Kinds of queue event. Each is a named counter in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum QueueEventKind {
    /// Congestion experienced was set.
    Marked,
    /// A super-packet found no room as a whole.
    Refused,
    /// A packet of an admitted super-packet found the queue full.
    BrokenPromise,
    /// A later packet of a super-packet that the queue does not know.
    Orphan,
    /// A first packet took the place of an unfinished super-packet with the same identifier.
    IdReuse,
    /// A super-packet's reservation ended before its packets came.
    Expired,
    /// A super-packet longer than the queue admits was treated as regular packets.
    TooLong,
    /// A super-packet without credit or share was treated as regular packets.
    Downgraded,
    /// A super-packet was admitted from the common pool of sources without credit.
    Pooled,
    /// A packet was spared because it belongs to an admitted super-packet; the drop is owed.
    Deferred,
    /// A packet whose flow had nothing waiting was put before the packets of flows that had.
    Favoured,
    /// A packet that had come before was overtaken by a favoured one.
    Overtook,
    /// A packet whose flow had nothing waiting was not favoured, for want of tokens.
    Unfavoured,
    /// A super-packet was treated as regular packets because others have all places of the table in which it could stand.
    Crowded,
    /// A frame that was collected from packets to one destination was closed, and its packets leave together.
    Assembled,
}

impl QueueEventKind {
    /// All kinds, in order.
    pub const ALL: [QueueEventKind; 15] = [
        QueueEventKind::Marked,
        QueueEventKind::Refused,
        QueueEventKind::BrokenPromise,
        QueueEventKind::Orphan,
        QueueEventKind::IdReuse,
        QueueEventKind::Expired,
        QueueEventKind::TooLong,
        QueueEventKind::Downgraded,
        QueueEventKind::Pooled,
        QueueEventKind::Deferred,
        QueueEventKind::Favoured,
        QueueEventKind::Overtook,
        QueueEventKind::Unfavoured,
        QueueEventKind::Crowded,
        QueueEventKind::Assembled,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            QueueEventKind::Marked => "marked",
            QueueEventKind::Refused => "refused",
            QueueEventKind::BrokenPromise => "broken_promise",
            QueueEventKind::Orphan => "orphan",
            QueueEventKind::IdReuse => "id_reuse",
            QueueEventKind::Expired => "expired",
            QueueEventKind::TooLong => "too_long",
            QueueEventKind::Downgraded => "downgraded",
            QueueEventKind::Pooled => "pooled",
            QueueEventKind::Deferred => "deferred",
            QueueEventKind::Favoured => "favoured",
            QueueEventKind::Overtook => "overtook",
            QueueEventKind::Unfavoured => "unfavoured",
            QueueEventKind::Crowded => "crowded",
            QueueEventKind::Assembled => "assembled",
        }
    }
}

/// A limit on what may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Limit {
    /// Packets, not counting the one being sent.
    Packets(u32),
    /// Bytes at layer 3, not counting the packet being sent.
    Bytes(Bytes),
    /// None.
    Unlimited,
}

impl Limit {
    /// Whether a packet of `len` bytes still fits beside `backlog`.
    #[inline]
    pub const fn admits(self, backlog: Backlog, len: u32) -> bool {
        match self {
            Limit::Packets(limit) => backlog.packets < limit,
            Limit::Bytes(limit) => backlog.bytes.0 + len as u64 <= limit.0,
            Limit::Unlimited => true,
        }
    }

    /// Bytes that fill it if packets have `mtu` bytes; `None`: without end.
    pub const fn bytes(self, mtu: u32) -> Option<Bytes> {
        match self {
            Limit::Packets(limit) => Some(Bytes(limit as u64 * mtu as u64)),
            Limit::Bytes(limit) => Some(limit),
            Limit::Unlimited => None,
        }
    }

    /// What ns-2.35's drop-tail holds with this limit: it drops a packet with which the limit would be reached.
    const fn as_in_ns2(self) -> Limit {
        match self {
            Limit::Packets(limit) => Limit::Packets(limit.saturating_sub(1)),
            Limit::Bytes(limit) => Limit::Bytes(Bytes(limit.0.saturating_sub(1))),
            Limit::Unlimited => Limit::Unlimited,
        }
    }

    /// Time in which a link sends what fills it and one packet of `mtu` bytes before that.
    fn longest_wait(self, mtu: u32, sending: &SendingTime) -> Option<Duration> {
        let waiting = match self {
            Limit::Packets(packets) => sending.packets(u64::from(packets), mtu),
            Limit::Bytes(bytes) => sending.bytes(bytes),
            Limit::Unlimited => return None,
        };
        Some(sending.last(waiting, mtu))
    }

    /// Whether `backlog` is within the limit.
    #[inline]
    pub const fn holds(self, backlog: Backlog) -> bool {
        match self {
            Limit::Packets(limit) => backlog.packets <= limit,
            Limit::Bytes(limit) => backlog.bytes.0 <= limit.0,
            Limit::Unlimited => true,
        }
    }
}

/// How long a link of a constant rate needs for packets, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendingTime {
    /// Rate of the link, which carries `framing` beside each packet.
    pub rate: Rate,
    /// Bytes that the link adds to each packet at layer 3.
    pub framing: u32,
    /// Time per packet that the sending end needs before it serialises.
    pub processing: Duration,
    /// Whether a packet is processed while the one before is sent.
    pub overlap: bool,
}

/// Fewest bytes of a packet at layer 3: headers of IPv4 and UDP, and no payload.
const SMALLEST_PACKET: u64 = 28;

impl SendingTime {
    /// Of so many packets of `len` bytes, one behind the other.
    fn packets(&self, packets: u64, len: u32) -> Duration {
        self.of(packets, packets.saturating_mul(u64::from(len)))
    }

    /// Of so many bytes in packets of any size: the smaller, the more framing and processing.
    fn bytes(&self, bytes: Bytes) -> Duration {
        self.of(bytes.0.div_ceil(SMALLEST_PACKET), bytes.0)
    }

    /// Of what takes `before` and is sent behind a packet of `len` bytes that is being sent.
    fn last(&self, before: Duration, len: u32) -> Duration {
        let one = self.packets(1, len);
        // Where both overlap a packet holds the sending end up for the longer time, but it arrives after both.
        let both = match self.overlap {
            true => self.processing.min(self.of_wire(1, u64::from(len))),
            false => Duration::ZERO,
        };
        plus(plus(before, one), both)
    }

    fn of(&self, packets: u64, bytes: u64) -> Duration {
        let (wire, processing) = (
            self.of_wire(packets, bytes),
            self.processing.saturating_mul(packets),
        );
        match self.overlap {
            true => wire.max(processing),
            false => plus(wire, processing),
        }
    }

    fn of_wire(&self, packets: u64, bytes: u64) -> Duration {
        let bits = (u128::from(bytes) + u128::from(packets) * u128::from(self.framing)) * 8;
        let nanos = bits
            .saturating_mul(1_000_000_000)
            .div_ceil(u128::from(self.rate.bps().max(1)));
        Duration::from_nanos(nanos.min(u128::from(u64::MAX)) as u64)
    }
}

/// Their sum, or the longest time that there is.
fn plus(one: Duration, other: Duration) -> Duration {
    Duration::from_nanos(one.as_nanos().saturating_add(other.as_nanos()))
}

/// What a discipline learns of the link it stands in front of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkContext {
    /// Largest packet at layer 3, bytes.
    pub mtu: u32,
    /// Rate of the link, which carries `framing` beside each packet.
    pub rate: Rate,
    /// Bytes that the link adds to each packet at layer 3.
    pub framing: u32,
    /// Propagation delay of the link.
    pub delay: Duration,
    /// Seed of the discipline's own random stream and hash keys.
    pub seed: u64,
}

registry! {
    /// Any registered queue discipline.
    AnyQueue for QueueDiscipline from LinkContext {
        drop_tail::DropTail = "drop-tail" in "drop_tail.rs",
        red::Red = "red" in "red.rs",
        codel::CoDel = "codel" in "codel.rs",
        fq_codel::FqCoDel = "fq-codel" in "fq_codel.rs",
        pie::Pie = "pie" in "pie.rs",
        fq_pie::FqPie = "fq-pie" in "fq_pie.rs",
        dualpi2::DualPi2 = "dualpi2" in "dualpi2.rs",
        cake::Cake = "cake" in "cake.rs",
        drr::Drr = "drr" in "drr.rs",
        sfq::Sfq = "sfq" in "sfq.rs",
        gro_unit::GroUnit = "gro-unit" in "gro_unit.rs",
        jumbo::Jumbo = "jumbo" in "jumbo.rs",
        superpacket::SuperPacket = "superpacket" in "superpacket.rs",
        hardened::SpH = "sp-h" in "hardened.rs",
        hardened::SpFq = "sp-fq" in "hardened/fair.rs",
        favourtail::FavourTail = "favourtail" in "favourtail.rs",
        least_attained::LeastAttained = "least-attained" in "least_attained.rs",
        shortest_remaining::ShortestRemaining = "shortest-remaining" in "shortest_remaining.rs",
        two_queue::TwoQueue = "two-queue" in "two_queue.rs",
        low_ttl::LowTtl = "low-ttl" in "low_ttl.rs",
        hull::Hull = "hull" in "hull.rs",
    }
    fast {}
    mut {
        fn enqueue(&mut self)(now: Instant, packet: Packet, context: &mut QueueContext<'_>);
        fn dequeue(&mut self)(now: Instant, context: &mut QueueContext<'_>) -> Option<Packet>;
        fn on_sent(&mut self)();
    }
    ref {
        fn ready_at(&self)() -> Option<Instant>;
        fn backlog(&self)() -> Backlog;
        fn drop_point(&self)() -> DropPoint;
        fn asks_ingress(&self)() -> bool;
        fn asks_streams(&self)() -> bool;
        fn state_bytes(&self)() -> Option<usize>;
        fn most_probes(&self)() -> Option<u32>;
        fn places_of(&self)(flow: FlowKey, id: u16) -> Option<[u32; 2]>;
        fn longest_wait(&self)(sending: &SendingTime) -> Option<Duration>;
    }
}
