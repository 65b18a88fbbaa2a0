//! The network: links between nodes, and the packets on their way.
//!
//! Each link has one pending event, the head of its wire. A drop-tail link at a constant rate is a [`Lane`]: the fate of a
//! packet is known when it arrives, so a packet passes at once through every following lane that is fed by nobody else.
//! At the end of its last lane it waits in `early` for the receiver, which may take it ahead of time
//! ([`World::run_ahead`](super::World::run_ahead)) if nothing else can happen to it before.
//!
//! A packet carries its place in the arena of paths (in `buf`, which the core leaves to the driver), so a router needs one
//! load to find the next link and how to go there.

use super::meter::{Meter, Tap};
use super::slab::Slab;
use super::{Mode, RunError, Window};
use crate::event::{EventKey, EventKind, EventQueue};
use crate::observe::Observer;
use crate::routing::{PathStart, Paths};
use crate::spec::{LinkIndex, LinkSpec, Spec};
use fleetfoot_core::flow::{FlowId, FlowTable};
use fleetfoot_core::link::{
    Lane, Link, LinkConfig, LinkStatistics, Loss, PacketClass, PacketSize, Refusal, StreamEnd,
};
use fleetfoot_core::packet::{BufId, Packet, Segment};
use fleetfoot_core::queue::{AnyQueue, QueueDiscipline as _};
use fleetfoot_core::ring::Ring;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::time::{Duration, Instant};

/// Links, packets, and the events of both.
pub(crate) struct Network {
    pub(crate) queue: EventQueue,
    pub(crate) flows: FlowTable,
    pub(crate) packets: Slab,
    links: Vec<Place>,
    /// Link indices, path after path, as [`Paths::hops`] has them, with [`AT_ONCE`].
    hops: Vec<u32>,
    /// The place of [`DROPPED`] in `hops`, which stands in the `buf` of packets that were dropped ahead of time.
    dropped: BufId,
    /// What was done to the number of packets in the network and is not told yet.
    pub(super) notices: Vec<Notice>,
    /// Packets at the end of their last lane, ahead of time.
    pub(super) early: Box<Earlies>,
    pub(crate) mode: Mode,
    window: Window,
    /// Nothing happens after this.
    horizon: Instant,
}

/// A link, its pending events and what is measured on it.
struct Place {
    body: Body,
    /// Time of the pending delivery event of a link that is no lane; `FAR_FUTURE` without one.
    delivery_at: Instant,
    /// Time of the pending departure event, in [`Mode::Plain`].
    departure_at: Instant,
    meter: Meter,
    /// When the last packet came, to see that they come in order.
    #[cfg(debug_assertions)]
    entered_at: Instant,
}

/// What a link is to the engine.
#[expect(clippy::large_enum_variant, reason = "lanes are the many and the fast")]
enum Body {
    /// Decides on arrival; what is on its way to where it must wait for its turn stands in `wire`.
    Lane { lane: Lane, wire: Ring<(Instant, u32)> },
    /// Any other.
    Link(Box<Link>),
}

/// Some packets at the end of their paths, ahead of time.
#[derive(Debug)]
pub(super) struct Earlies {
    /// How many of the list are delivered or wait by now.
    pub(super) done: usize,
    pub(super) len: usize,
    pub(super) list: [Early; MOST_EARLY],
}

impl Default for Earlies {
    fn default() -> Earlies {
        Earlies {
            done: 0,
            len: 0,
            list: [Early::default(); MOST_EARLY],
        }
    }
}

/// A packet at the end of its path, ahead of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Early {
    pub(super) link: u32,
    pub(super) packet: u32,
    pub(super) at: Instant,
    /// Another packet of its link waits for its turn: so must this one.
    pub(super) behind: bool,
}

/// A packet left the network without arriving, or was added to it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notice {
    Dropped(Packet),
    Doubled(Packet),
}

/// What an arrival event brought.
pub(super) enum Arrived {
    /// A packet, passed on or of no further interest.
    Nothing,
    /// A packet at the end of its path.
    AtEnd { packet: u32 },
}

impl Network {
    pub(super) fn new(
        spec: &Spec,
        mode: Mode,
        window: Window,
        horizon: Instant,
    ) -> Result<Network, RunError> {
        let links = spec.links.iter().map(|link| Place::new(spec, link, mode));
        Ok(Network {
            queue: EventQueue::new(spec.links.len()),
            flows: FlowTable::new(),
            packets: Slab::new(),
            links: links.collect::<Result<_, _>>()?,
            hops: Vec::new(),
            dropped: BufId::NONE,
            notices: Vec::new(),
            early: Box::default(),
            mode,
            window,
            horizon,
        })
    }

    /// Takes over the paths and finds where packets may go on ahead of time: from a lane to one that is fed by no other.
    /// Passing takes time, so that what happens at one moment keeps its order. `eager` says which links end at receivers
    /// that may take packets early.
    pub(super) fn set_paths(&mut self, paths: &Paths, eager: &[bool]) {
        let feeders = paths.sole_feeders(self.links.len());
        let mut before = Paths::END;
        let mut with_haste = |&hop: &u32| {
            let at_once = before != Paths::END
                && self.takes_time(before)
                && if hop == Paths::END {
                    eager[before as usize]
                } else {
                    feeders[hop as usize] == Some(LinkIndex(before)) && self.takes_time(hop)
                };
            before = hop;
            if at_once { hop | AT_ONCE } else { hop }
        };
        self.hops = paths.hops().iter().map(&mut with_haste).collect();
        self.dropped = BufId(self.hops.len() as u32);
        self.hops.push(DROPPED);
    }

    /// Whether a link is a lane with a delay.
    pub(super) fn takes_time(&self, link: u32) -> bool {
        matches!(&self.links[link as usize].body, Body::Lane { lane, .. } if !lane.delay().is_zero())
    }

    /// Sends a packet on its way from an endpoint.
    #[inline(always)]
    pub(crate) fn send<O: Observer>(
        &mut self,
        observer: &mut O,
        now: Instant,
        path: PathStart,
        flow: FlowId,
        segment: Segment,
    ) {
        observer.on_send(now, flow, &segment);
        let first = self.hops[path.0 as usize];
        let id = self.packets.insert(Packet {
            enqueued_at: now,
            flow,
            buf: BufId::NONE,
            segment,
        });
        self.enter(observer, first, path.0 + 1, now, id);
    }

    /// A packet arrives at the sending end of a link, and passes on through lanes as far as its fate is known. `place` is
    /// that of the next hop.
    #[inline(always)]
    fn enter<O: Observer>(
        &mut self,
        observer: &mut O,
        mut index: u32,
        mut place: u32,
        mut now: Instant,
        id: u32,
    ) {
        let mut before = NOBODY;
        let packet = self.packets.get_mut(id);
        let size = PacketSize::of(&packet.segment);
        loop {
            let at = &mut self.links[index as usize];
            #[cfg(debug_assertions)]
            {
                assert!(now >= at.entered_at, "packets enter a link in order of time");
                at.entered_at = now;
            }
            observer.on_enter(now, LinkIndex(index), packet);
            let Body::Lane { lane, wire } = &mut at.body else {
                packet.buf = BufId(place);
                self.enter_link(observer, index, now, id);
                return;
            };
            let passage = match lane.on_packet(now, size) {
                Ok(passage) => passage,
                Err(refusal) => {
                    self.drop_at_lane(observer, index, before, now, id, refusal);
                    return;
                }
            };
            at.meter
                .count_passage(self.window, lane, &packet.segment, now, passage);
            let arrival = passage.arrival;
            let next = self.hops[place as usize];
            if next == END_AT_ONCE {
                packet.enqueued_at = now;
                packet.buf = BufId(place);
                let early = Early {
                    link: index,
                    packet: id,
                    at: arrival,
                    behind: !wire.is_empty(),
                };
                let Earlies { len, list, .. } = &mut *self.early;
                if *len >= MOST_EARLY {
                    self.wait_all(early);
                    return;
                }
                list[*len] = early;
                *len += 1;
                return;
            }
            if next & AT_ONCE == 0 || arrival > self.horizon {
                packet.enqueued_at = now;
                packet.buf = BufId(place);
                if wire.is_empty() {
                    self.queue.set_arrival(index, arrival);
                }
                wire.push_back((arrival, id));
                return;
            }
            observer.on_deliver(arrival, LinkIndex(index), packet, arrival.since(now));
            place += 1;
            before = index;
            index = next & !AT_ONCE;
            now = arrival;
        }
    }

    /// So many packets came ahead of time that they wait, after all, in the order in which they came.
    #[cold]
    fn wait_all(&mut self, last: Early) {
        while self.early.done < self.early.len {
            let Early { link, packet, at, .. } = self.early.list[self.early.done];
            self.early.done += 1;
            self.wait(link, at, packet);
        }
        self.wait(last.link, last.at, last.packet);
    }

    /// A lane has no room. Ahead of time the packet counts as in the network until the moment comes, at the end of the
    /// lane `before`.
    #[cold]
    fn drop_at_lane<O: Observer>(
        &mut self,
        observer: &mut O,
        index: u32,
        before: u32,
        now: Instant,
        id: u32,
        refusal: Refusal,
    ) {
        let Refusal { reason, waiting } = refusal;
        let packet = self.packets.get_mut(id);
        let meter = &mut self.links[index as usize].meter;
        meter.count_arrival(self.window, now, waiting);
        if self.window.contains(now) {
            let class = PacketClass::of(packet) as usize;
            meter.rest.after.drops[reason as usize][class] += 1;
        }
        observer.on_drop(now, LinkIndex(index), packet, reason);
        if before == NOBODY {
            self.notices.push(Notice::Dropped(*packet));
            self.packets.free(id);
        } else {
            packet.buf = self.dropped;
            self.wait(before, now, id);
        }
    }

    /// A packet stands at the end of a lane until its time comes.
    pub(super) fn wait(&mut self, lane: u32, at: Instant, id: u32) {
        if let Body::Lane { wire, .. } = &mut self.links[lane as usize].body {
            if wire.is_empty() {
                self.queue.set_arrival(lane, at);
            }
            wire.push_back((at, id));
        }
    }

    /// A packet arrives at a link that is no lane.
    #[inline(never)]
    fn enter_link<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant, id: u32) {
        let packet = self.packets.take(id);
        let Place { body, meter, .. } = &mut self.links[index as usize];
        let Body::Link(link) = body else { return };
        if link.queue().asks_ingress() {
            link.set_ingress(ingress(&self.hops, packet.buf.0));
        }
        let mut tap = Tap {
            index,
            window: self.window,
            meter,
            observer,
            notices: &mut self.notices,
        };
        link.on_packet(now, packet, &self.flows, &mut tap);
        self.after_link(index);
    }

    /// The head of a link's wire is due: passes it on.
    #[inline(always)]
    pub(super) fn on_arrival<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant) -> Arrived {
        let Body::Lane { wire, .. } = &mut self.links[index as usize].body else {
            return self.on_link(observer, index, now);
        };
        let head = wire.pop_front();
        let next = wire.front().map_or(Instant::FAR_FUTURE, |next| next.0);
        self.queue.set_arrival(index, next);
        let Some((_, id)) = head else {
            return Arrived::Nothing;
        };
        if self.queue.is_large() {
            std::hint::black_box(self.look_ahead());
        }
        self.arrive(observer, index, now, id)
    }

    /// Reads of the next arrival what comes from memory, which takes as long as many instructions: while it is on its way,
    /// this arrival is worked on. Small networks stay in the caches.
    #[inline(always)]
    fn look_ahead(&self) -> u32 {
        let Some((link, _)) = self.queue.next_arrival() else {
            return 0;
        };
        match &self.links[link as usize].body {
            Body::Lane { wire, .. } => wire.front().map_or(0, |&(_, id)| self.packets.get(id).buf.0),
            Body::Link(_) => 0,
        }
    }

    /// The head of the wire of a link that is no lane is due.
    #[inline(never)]
    fn on_link<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant) -> Arrived {
        let Place { body, meter, .. } = &mut self.links[index as usize];
        let Body::Link(link) = body else {
            return Arrived::Nothing;
        };
        let mut tap = Tap {
            index,
            window: self.window,
            meter,
            observer,
            notices: &mut self.notices,
        };
        let packet = link.poll_delivery(now, &self.flows, &mut tap);
        // The event that came is over.
        self.links[index as usize].delivery_at = Instant::FAR_FUTURE;
        self.queue.set_arrival(index, Instant::FAR_FUTURE);
        self.after_link(index);
        let Some(packet) = packet else {
            return Arrived::Nothing;
        };
        let id = self.packets.insert(packet);
        self.arrive(observer, index, now, id)
    }

    /// A packet reaches the far end of link `index`.
    #[inline(always)]
    fn arrive<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant, id: u32) -> Arrived {
        let packet = self.packets.get(id);
        let place = packet.buf.0;
        let next = self.hops[place as usize] & !AT_ONCE;
        if next >= DROPPED {
            return self.arrive_at_end(observer, index, now, id);
        }
        observer.on_deliver(now, LinkIndex(index), packet, now.since(packet.enqueued_at));
        self.enter(observer, next, place + 1, now, id);
        Arrived::Nothing
    }

    /// A packet reaches the end of its path, or the moment has come at which it is dropped.
    #[inline(never)]
    fn arrive_at_end<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant, id: u32) -> Arrived {
        let packet = self.packets.get(id);
        if packet.buf == self.dropped {
            self.notices.push(Notice::Dropped(*packet));
            self.packets.free(id);
            return Arrived::Nothing;
        }
        observer.on_deliver(now, LinkIndex(index), packet, now.since(packet.enqueued_at));
        Arrived::AtEnd { packet: id }
    }

    /// Counts a packet whose checksum fails at the receiver.
    pub(super) fn count_damaged(&mut self, link: u32, now: Instant, packet: &Packet) {
        if self.window.contains(now) {
            self.links[link as usize].meter.rest.damaged[PacketClass::of(packet) as usize] += 1;
        }
    }

    pub(super) fn on_departure<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant) {
        let place = &mut self.links[index as usize];
        if place.departure_at == now {
            place.departure_at = Instant::FAR_FUTURE;
            self.catch_up(observer, index, now);
        }
    }

    /// Re-arms a link's events.
    #[inline]
    fn after_link(&mut self, index: u32) {
        let place = &mut self.links[index as usize];
        let Body::Link(link) = &mut place.body else { return };
        if let Some(at) = link.poll_timeout()
            && at < place.delivery_at
        {
            place.delivery_at = at;
            self.queue.set_arrival(index, at);
        }
        if self.mode == Mode::Plain
            && let Some(at) = link.next_departure()
            && at != place.departure_at
        {
            place.departure_at = at;
            self.queue.push(EventKey::new(at, EventKind::Departure, index, 0));
        }
    }

    /// Tells the links on a path whose loss model asks for it that the data of `flow` ends at `end`.
    pub(crate) fn announce_end<O: Observer>(
        &mut self,
        observer: &mut O,
        links: &[LinkSpec],
        now: Instant,
        path: PathStart,
        flow: FlowId,
        end: StreamEnd,
    ) {
        for hop in path.0.. {
            let index = self.hops[hop as usize] & !AT_ONCE;
            if index == Paths::END {
                return;
            }
            if !matches!(links[index as usize].impairments.loss, Loss::Tail(_)) {
                continue;
            }
            // What departs until now was lost or not by the old end.
            self.catch_up(observer, index, now);
            if let Body::Link(link) = &mut self.links[index as usize].body {
                link.on_stream_end(flow, end);
            }
        }
    }

    /// Does every departure of a link that is due.
    fn catch_up<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant) {
        let Place { body, meter, .. } = &mut self.links[index as usize];
        let Body::Link(link) = body else { return };
        let mut tap = Tap {
            index,
            window: self.window,
            meter,
            observer,
            notices: &mut self.notices,
        };
        link.on_timeout(now, &self.flows, &mut tap);
        self.after_link(index);
    }

    /// Lets every link on a path forget `flow`, whose id will be used again.
    pub(crate) fn forget_flow(&mut self, path: PathStart, flow: FlowId) {
        for hop in path.0.. {
            let index = self.hops[hop as usize] & !AT_ONCE;
            if index == Paths::END {
                return;
            }
            if let Body::Link(link) = &mut self.links[index as usize].body {
                link.on_flow_end(flow);
            }
        }
    }

    /// Brings every link up to just before `at` and notes its counters.
    pub(super) fn mark<O: Observer>(
        &mut self,
        observer: &mut O,
        at: Instant,
        note: impl Fn(&mut Meter, &LinkStatistics, Duration),
    ) {
        if at == Instant::ZERO {
            return;
        }
        for index in 0..self.links.len() as u32 {
            self.catch_up(observer, index, at - Duration::from_nanos(1));
            let Place { body, meter, .. } = &mut self.links[index as usize];
            if let Body::Link(link) = body {
                note(meter, link.statistics(), link.busy(at));
            }
        }
    }

    /// What was measured, link by link.
    pub(super) fn into_meters(self) -> impl Iterator<Item = Meter> {
        self.links.into_iter().map(|place| {
            let Place { body, mut meter, .. } = place;
            if let Body::Lane { lane, .. } = body {
                meter.add(lane.counted());
            }
            meter
        })
    }
}

impl Place {
    fn new(spec: &Spec, link: &LinkSpec, mode: Mode) -> Result<Place, RunError> {
        let direction = if link.forward { "forward" } else { "reverse" };
        let name = format!("{}/{direction}", link.name);
        let config = LinkConfig {
            rate: link.rate.clone(),
            delay: link.delay,
            mtu: link.mtu,
            framing: link.framing,
            processing: link.processing,
            impairments: link.impairments.clone(),
        };
        let seed = Rng::for_element(spec.seed, &name, "queue").next_u64();
        let queue = AnyQueue::build(link.queue, &link.queue_values, &config.surroundings(seed))
            .ok_or_else(|| RunError::UnknownQueue(link.queue.to_owned()))?;
        let lane = match (mode, &queue) {
            (Mode::Fast, AnyQueue::DropTail(queue)) => Lane::new(&config, queue.limit()),
            _ => None,
        };
        let body = match lane {
            Some(lane) => Body::Lane {
                lane,
                wire: Ring::new(),
            },
            None => Body::Link(Box::new(Link::new(queue, &config, spec.seed, &name))),
        };
        Ok(Place {
            body,
            delivery_at: Instant::FAR_FUTURE,
            departure_at: Instant::FAR_FUTURE,
            meter: Meter::default(),
            #[cfg(debug_assertions)]
            entered_at: Instant::ZERO,
        })
    }
}

/// By which link a packet came whose next hop has this place: the link's index plus one, or 0 if the packet was made here.
fn ingress(hops: &[u32], place: u32) -> u16 {
    let before = place
        .checked_sub(2)
        .map(|before| hops[before as usize] & !AT_ONCE);
    before.filter(|&before| before < DROPPED).map_or(0, |before| {
        before.saturating_add(1).min(u32::from(u16::MAX)) as u16
    })
}

/// Beside a hop: a packet that comes there from the hop before may go on ahead of time.
const AT_ONCE: u32 = 1 << 31;

/// The end of a path whose packets the receiver may take ahead of time.
const END_AT_ONCE: u32 = Paths::END | AT_ONCE;

/// Packets that may come ahead of time in one event: the loop looks around now and then.
pub(super) const MOST_EARLY: usize = 64;

/// No lane before.
const NOBODY: u32 = u32::MAX;

/// The next hop of a packet that was dropped ahead of time.
const DROPPED: u32 = Paths::END - 1;
