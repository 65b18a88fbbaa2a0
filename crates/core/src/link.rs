//! A link: queue discipline, serialiser and propagation delay as one sans-IO element.
//!
//! A packet is queued on arrival, departs (leaves the queue and begins to be serialised) when the serialiser is free, and
//! is delivered at the far end after serialisation and propagation. Packets in flight live in the link's rings.
//!
//! **Time.** Integer nanoseconds; serialisation carries its remainder, so the long-run rate is exact. Departures are
//! lazy: before each arrival and each delivery at `now` the link catches up on every departure that begins at or before
//! `now`, each with the time at which it happens, so departures precede arrivals at equal times and a late call loses
//! nothing. One deadline is pending per link ([`Link::poll_timeout`]) and none when the link is empty. A driver may also
//! run every departure as an event of its own ([`Link::next_departure`], [`Link::on_timeout`]): both give the same results.
//!
//! **Discipline and wire.** The discipline sees layer-3 bytes and never the packet being sent. Damage to packets
//! ([`Impairments`]) happens after serialisation, each kind from a random stream of its own.

use crate::flow::{FlowId, FlowTable};
use crate::packet::Packet;
use crate::queue::{
    AnyQueue, Backlog, DropPoint, DropReason, LinkContext, QueueContext, QueueDiscipline, QueueEvent,
    SendingTime,
};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

mod fifo;
mod impairment;
mod serialiser;
mod statistics;

pub use fifo::{Counted, FifoLink, FifoPacket, PacketSize, Refusal, Schedule, WaitMeter};
pub use impairment::{Arq, Impairments, Loss, StreamEnd};
pub use serialiser::{LinkRate, OPPORTUNITY_BYTES};
pub use statistics::{LinkStatistics, PacketClass};

use impairment::{Fate, ImpairedWire};
use serialiser::Serialiser;

/// What a link is made of besides its queue.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Speed.
    pub rate: LinkRate,
    /// Propagation delay.
    pub delay: Duration,
    /// Largest packet at layer 3; larger ones are dropped on arrival and counted.
    pub mtu: u32,
    /// Bytes per packet beyond layer 3 that take time on the wire.
    pub framing: u32,
    /// Time per packet that the sending end needs before it serialises, not overlapped with another packet's
    /// serialisation (docs/design/packet-size.md#processing).
    pub processing: Duration,
    /// Whether a packet is processed while the one before is sent: each then occupies the sending end for the longer of both
    /// times, and arrives after both, one behind the other.
    pub overlap: bool,
    /// What else happens to packets.
    pub impairments: Impairments,
}

impl LinkConfig {
    /// A plain link with an MTU of 1500 bytes.
    pub fn new(rate: Rate, delay: Duration) -> LinkConfig {
        LinkConfig {
            rate: LinkRate::Constant(rate),
            delay,
            mtu: 1500,
            framing: 0,
            processing: Duration::ZERO,
            overlap: false,
            impairments: Impairments::default(),
        }
    }

    /// From the end of a packet's serialisation to its arrival.
    fn latency(&self) -> Duration {
        if self.overlap {
            Duration::from_nanos(self.delay.as_nanos().saturating_add(self.processing.as_nanos()))
        } else {
            self.delay
        }
    }

    /// How long it needs for packets.
    ///
    /// # Errors
    /// Why there is no longest time for a packet.
    pub fn sending_time(&self) -> Result<SendingTime, &'static str> {
        match self.rate {
            LinkRate::Constant(_) if self.impairments.arq.is_some() => {
                Err("the link sends again what bit errors damage")
            }
            LinkRate::Constant(rate) => Ok(SendingTime {
                rate,
                framing: self.framing,
                processing: self.processing,
                overlap: self.overlap,
            }),
            LinkRate::Trace { .. } => Err("the rate follows a trace, which may pause"),
        }
    }

    /// What a queue discipline in front of this link learns of it.
    pub fn link_context(&self, seed: u64) -> LinkContext {
        LinkContext {
            mtu: self.mtu,
            rate: self.rate.mean(),
            framing: self.framing,
            delay: self.delay,
            seed,
        }
    }
}

/// What a link reports while it works. Times are those at which things happen, not those of the call. Everything defaults
/// to nothing, and `()` implements it at no cost.
pub trait LinkObserver {
    /// `packet` arrived and finds `waiting` in the queue.
    #[inline]
    fn on_arrival(&mut self, now: Instant, packet: &Packet, waiting: Backlog) {
        let _ = (now, packet, waiting);
    }
    /// `packet` left the queue after waiting for `waited`.
    #[inline]
    fn on_departure(&mut self, now: Instant, packet: &Packet, waited: Duration) {
        let _ = (now, packet, waited);
    }
    /// `packet` was dropped.
    #[inline]
    fn on_drop(&mut self, now: Instant, packet: &Packet, reason: DropReason) {
        let _ = (now, packet, reason);
    }
    /// `packet` will arrive once more than it was sent.
    #[inline]
    fn on_duplicate(&mut self, now: Instant, packet: &Packet) {
        let _ = (now, packet);
    }
    /// The discipline reported something.
    #[inline]
    fn on_event(&mut self, now: Instant, event: QueueEvent) {
        let _ = (now, event);
    }
}

impl LinkObserver for () {}

/// A queue, a serialiser and a wire.
///
/// A driver calls [`Link::on_packet`] for each arrival; at [`Link::poll_timeout`] it calls [`Link::poll_delivery`] until
/// it says `None`.
pub struct Link<Q = AnyQueue> {
    queue: Q,
    serialiser: Serialiser,
    /// When the packet being sent will have been sent, or the last arrival at an idle link.
    free_at: Instant,
    delay: Duration,
    mtu: u32,
    /// By which link the next packet comes in.
    ingress: u16,
    /// Packets on the wire in order of delivery.
    wire: VecDeque<InFlight>,
    impaired: Option<Box<Impaired>>,
    drops: Vec<(Packet, DropReason)>,
    events: Vec<QueueEvent>,
    statistics: LinkStatistics,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    at: Instant,
    packet: Packet,
}

/// What only an impaired wire has. A held-back packet waits longer by a constant, so held packets keep order among
/// themselves and a second ring serves them.
struct Impaired {
    wire: ImpairedWire,
    held: VecDeque<InFlight>,
}

impl<Q: QueueDiscipline> Link<Q> {
    /// An idle link. `seed` is the run's; `name` separates its random streams from those of other links.
    pub fn new(queue: Q, config: &LinkConfig, seed: u64, name: &str) -> Link<Q> {
        let impaired = ImpairedWire::new(&config.impairments, seed, name).map(|wire| {
            Box::new(Impaired {
                wire,
                held: VecDeque::new(),
            })
        });
        Link {
            queue,
            serialiser: Serialiser::new(config),
            free_at: Instant::ZERO,
            delay: config.latency(),
            mtu: config.mtu,
            ingress: 0,
            wire: VecDeque::new(),
            impaired,
            drops: Vec::new(),
            events: Vec::new(),
            statistics: LinkStatistics::default(),
        }
    }

    /// A packet arrives at the sending end. Its `enqueued_at` is set here.
    #[inline]
    pub fn on_packet(
        &mut self,
        now: Instant,
        mut packet: Packet,
        flows: &FlowTable,
        observer: &mut impl LinkObserver,
    ) {
        self.catch_up(now, flows, observer);
        if self.free_at <= now {
            self.resume(now, flows, observer);
        }
        packet.enqueued_at = now;
        observer.on_arrival(now, &packet, self.queue.backlog());
        if packet.segment.len() > self.mtu {
            self.statistics.count_drop(&packet, DropReason::TooBig);
            observer.on_drop(now, &packet, DropReason::TooBig);
            return;
        }
        let mut context = QueueContext {
            flows,
            ingress: self.ingress,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.enqueue(now, packet, &mut context);
        if !self.drops.is_empty() || !self.events.is_empty() {
            self.report(now, observer);
        }
        self.catch_up(now, flows, observer);
    }

    /// Says by which link of this node the next packets come in; only disciplines that ask for it look at it
    /// ([`QueueDiscipline::asks_ingress`]).
    pub fn set_ingress(&mut self, ingress: u16) {
        self.ingress = ingress;
    }

    /// The next packet that reaches the far end at or before `now`, in order of delivery.
    #[inline]
    pub fn poll_delivery(
        &mut self,
        now: Instant,
        flows: &FlowTable,
        observer: &mut impl LinkObserver,
    ) -> Option<Packet> {
        self.catch_up(now, flows, observer);
        if let Some(impaired) = &mut self.impaired {
            // At equal times the held packet is the one that was sent first.
            if let Some(&held) = impaired.held.front()
                && held.at <= now
                && self.wire.front().is_none_or(|next| held.at <= next.at)
            {
                impaired.held.pop_front();
                return Some(held.packet);
            }
        }
        match self.wire.front() {
            Some(next) if next.at <= now => self.wire.pop_front().map(|next| next.packet),
            _ => None,
        }
    }

    /// When the driver must call [`Link::poll_delivery`] next; `None` while nothing is on its way.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        // Whatever departs later arrives no earlier than what is on the wire already, so the head of the ring stands for
        // all of it. Only with an empty ring (packets lost, held back, or a shaped queue) the departure itself is due.
        let next = match self.wire.front() {
            Some(next) => Some(next.at),
            None => self.next_departure(),
        };
        match &self.impaired {
            None => next,
            Some(impaired) => match (next, impaired.held.front()) {
                (Some(next), Some(held)) => Some(next.min(held.at)),
                (next, held) => next.or(held.map(|held| held.at)),
            },
        }
    }

    /// When the next packet leaves the queue, if nothing else arrives before.
    #[inline]
    pub fn next_departure(&self) -> Option<Instant> {
        let ready = self.queue.ready_at()?;
        Some(self.serialiser.start(self.free_at.max(ready)))
    }

    /// Does what is due at or before `now`. Never needed: arrivals and deliveries do it. Drivers that run every departure
    /// as an event call it at [`Link::next_departure`]; others call it before they read statistics.
    pub fn on_timeout(&mut self, now: Instant, flows: &FlowTable, observer: &mut impl LinkObserver) {
        self.catch_up(now, flows, observer);
    }

    /// The data of `flow` that follows ends at `end`. Needed by [`Loss::Tail`] only; ignored by other links.
    pub fn on_stream_end(&mut self, flow: FlowId, end: StreamEnd) {
        if let Some(impaired) = &mut self.impaired {
            impaired.wire.on_stream_end(flow, end);
        }
    }

    /// The id of `flow` will be used for another flow: forgets what loss models remember of it.
    pub fn on_flow_end(&mut self, flow: FlowId) {
        if let Some(impaired) = &mut self.impaired {
            impaired.wire.on_flow_end(flow);
        }
    }

    /// Counters since the start, complete up to the last call. `busy` counts the packet being sent in full; see
    /// [`Link::busy`].
    pub fn statistics(&self) -> &LinkStatistics {
        &self.statistics
    }

    /// Time the serialiser was busy up to `now`; on a trace what the packets would have taken at its mean rate
    /// ([`Link::busy_within`]). Call [`Link::on_timeout`] with the same `now` first.
    pub fn busy(&self, now: Instant) -> Duration {
        let after = self.serialiser.busy_after(self.free_at, now);
        self.statistics.busy.saturating_sub(after)
    }

    /// Time the serialiser was busy from `from` until just before `to`, of which `busy` is the difference of [`Link::busy`]. On a trace
    /// it is the share of this time that was used of the delivery opportunities in it.
    pub fn busy_within(&self, from: Instant, to: Instant, busy: Duration) -> Duration {
        self.serialiser.busy_within(from, to, busy)
    }

    /// What waits in the queue, the packet being sent not included.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Packets being sent or on the wire.
    pub fn in_flight(&self) -> usize {
        self.wire.len() + self.impaired.as_ref().map_or(0, |impaired| impaired.held.len())
    }

    /// When the discipline decides. With [`DropPoint::Arrival`], a constant rate and no impairments the delivery time of a
    /// packet is settled when it is admitted, so a driver may compute it ahead.
    pub fn drop_point(&self) -> DropPoint {
        self.queue.drop_point()
    }

    /// What is being sent or on the wire, in order of delivery, and the queue with what waits in it: for a driver that goes on with
    /// another link in this one's place.
    pub fn into_parts(self) -> (Vec<Packet>, Q) {
        let mut under_way: Vec<InFlight> = self.wire.into();
        under_way.extend(self.impaired.into_iter().flat_map(|impaired| impaired.held));
        under_way.sort_by_key(|flight| flight.at);
        (
            under_way.into_iter().map(|flight| flight.packet).collect(),
            self.queue,
        )
    }

    /// Nothing departs before `at`: for a link that takes over, at that time, a queue in which packets wait.
    pub fn begin_at(&mut self, at: Instant) {
        self.free_at = self.free_at.max(at);
        self.serialiser.idle();
    }

    /// The queue discipline.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// Does every departure that begins at or before `now`. A link that is sending is the common case and costs a comparison.
    #[inline(always)]
    fn catch_up(&mut self, now: Instant, flows: &FlowTable, observer: &mut impl LinkObserver) {
        if self.free_at <= now {
            self.depart_until(now, flows, observer);
        }
    }

    /// A packet comes to a link that sends nothing. When the last packet had been sent an idle link asked for the next one and there
    /// was none ([`QueueDiscipline::dequeue`]), or the link had to wait ([`QueueDiscipline::on_sent`]); that is made up for here.
    #[inline]
    fn resume(&mut self, now: Instant, flows: &FlowTable, observer: &mut impl LinkObserver) {
        if self.queue.ready_at().is_none() {
            self.depart(self.free_at, flows, observer);
        } else {
            self.queue.on_sent();
        }
        if self.free_at < now {
            self.free_at = now;
            self.serialiser.idle();
        }
    }

    #[inline(never)]
    fn depart_until(&mut self, now: Instant, flows: &FlowTable, observer: &mut impl LinkObserver) {
        while self.free_at <= now {
            match self.next_departure() {
                Some(start) if start <= now => self.depart(start, flows, observer),
                _ => return,
            }
        }
    }

    /// A packet leaves the queue at `start` and begins to be serialised.
    #[inline]
    fn depart(&mut self, start: Instant, flows: &FlowTable, observer: &mut impl LinkObserver) {
        let mut context = QueueContext {
            flows,
            ingress: self.ingress,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        let packet = self.queue.dequeue(start, &mut context);
        if !self.drops.is_empty() || !self.events.is_empty() {
            self.report(start, observer);
        }
        let Some(packet) = packet else {
            // All that waited was dropped: what follows is not asked for before this.
            if self.free_at < start {
                self.free_at = start;
                self.serialiser.idle();
            }
            return;
        };
        if self.free_at < start {
            self.serialiser.idle();
        }
        let len = packet.segment.len();
        let finish = self.serialiser.send(start, len);
        self.free_at = finish;
        self.statistics
            .count_departure(&packet, self.serialiser.busy(start, finish, len));
        observer.on_departure(start, &packet, start.since(packet.enqueued_at));
        if self.impaired.is_none() {
            let at = finish.saturating_add(self.delay.saturating_sub(self.serialiser.early()));
            self.wire.push_back(InFlight { at, packet });
        } else {
            self.travel(start, finish, packet, observer);
        }
    }

    /// Sends a packet over an impaired wire.
    #[cold]
    fn travel(&mut self, start: Instant, finish: Instant, packet: Packet, observer: &mut impl LinkObserver) {
        let Some(impaired) = &mut self.impaired else {
            return;
        };
        let (serialiser, delay, len) = (&mut self.serialiser, self.delay, packet.segment.len());
        let mut repaired = (finish, Duration::ZERO);
        let Fate {
            packet,
            at,
            lost,
            held,
            copies,
        } = impaired.wire.fate(packet, |again, wait| {
            repaired = serialiser.repair(start, finish, len, again, wait);
            repaired
                .0
                .saturating_add(delay.saturating_sub(serialiser.early()))
        });
        self.free_at = repaired.0;
        self.statistics.count_repair(repaired.1);
        if lost {
            self.statistics.count_drop(&packet, DropReason::RandomLoss);
            observer.on_drop(finish, &packet, DropReason::RandomLoss);
            return;
        }
        let ring = if held { &mut impaired.held } else { &mut self.wire };
        for copy in 0..copies {
            if copy > 0 {
                observer.on_duplicate(finish, &packet);
            }
            ring.push_back(InFlight { at, packet });
        }
    }

    /// Counts what the discipline reported and passes it on.
    #[cold]
    fn report(&mut self, now: Instant, observer: &mut impl LinkObserver) {
        for (packet, reason) in self.drops.drain(..) {
            self.statistics.count_drop(&packet, reason);
            observer.on_drop(now, &packet, reason);
        }
        for event in self.events.drain(..) {
            self.statistics.count_event(&event);
            observer.on_event(now, event);
        }
    }
}

#[cfg(test)]
mod tests;
