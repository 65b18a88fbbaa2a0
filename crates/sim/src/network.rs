//! The network: links between nodes, and the packets on their way.
//!
//! Each link has one pending event, the head of its wire; where there are many links, packets on FIFO links stand in one calendar
//! instead. A drop-tail link at a constant rate is a [`FifoLink`]: the fate of a
//! packet is known when it arrives, so a packet passes at once through every following FIFO link that is fed by nobody else.
//! At the end of its last FIFO link the receiver may take it ahead of time ([`Hosts::run_ahead`](crate::endpoint::Hosts::run_ahead)) if
//! nothing else can happen to it before.
//!
//! The place of a packet in the arena of paths stands beside it on the wire (inside other links in `buf`, which the core
//! leaves to the driver), so a router needs one load to find the next link and how to go there.

use crate::error::RunError;
use crate::event::{Calendar, EventKey, EventKind, EventQueue};
use crate::observe::Observer;
use crate::routing::{PathStart, Paths};
use crate::spec::{LinkIndex, LinkSpec, Spec};
use fleetfoot_core::flow::{FlowId, FlowTable};
use fleetfoot_core::link::{FifoLink, FifoPacket, Link, LinkStatistics, Loss, PacketSize, StreamEnd};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::{AnyQueue, QueueDiscipline};
use fleetfoot_core::ring::Ring;
use fleetfoot_core::time::{Duration, Instant};

mod crowd;
mod early;
pub(crate) mod heard;
mod junction;
mod meter;
mod passing;
mod slab;

use crowd::InFlight;
use early::Early;
pub(crate) use meter::Meter;
use meter::Tap;
pub(crate) use slab::Slab;

/// How events are processed; results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// FIFO links, lazy departures and lazy timers.
    #[default]
    Fast,
    /// Every departure is an event, every moved deadline is inserted anew, connections predict no headers: slow and obviously right.
    Plain,
}

/// A span of time, the end not included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

impl Window {
    #[inline]
    pub(crate) fn contains(self, at: Instant) -> bool {
        self.from <= at && at < self.to
    }

    /// How much of the time between `begin` and `end` lies within.
    pub(crate) fn part(self, begin: Instant, end: Instant) -> Duration {
        end.min(self.to).since(begin.max(self.from))
    }
}

/// Links, packets, and the events of both.
pub(crate) struct Network {
    pub(crate) queue: EventQueue,
    pub(crate) flows: FlowTable,
    /// Some discipline asks where streams end.
    pub(crate) asks_streams: bool,
    pub(crate) links: Vec<LinkSlot>,
    /// Link indices, path after path, as [`Paths::hops`] has them, with [`AT_ONCE`].
    pub(crate) hops: Vec<u32>,
    /// The place of [`DROPPED`] in `hops`, where packets go that were dropped ahead of time.
    pub(crate) dropped: u32,
    /// What was done to the number of packets in the network and is not reported yet.
    pub(crate) notices: Vec<Notice>,
    /// FIFO links at whose end the first packet may come ahead of time.
    pub(crate) early: Early,
    /// The shortest delay of a FIFO link whose packets may be taken ahead of time. What is taken happens later than this after
    /// its packet entered the FIFO link, so arrivals up to then need not wait for it (docs/design/engine.md#ahead).
    pub(crate) lookahead: Duration,
    /// Where FIFO links meet.
    pub(crate) junctions: Vec<Junction>,
    /// What passes a junction together.
    pub(crate) batch: Vec<PacketOnWire>,
    /// What concerns endpoints may wait in `due` while the network goes on: every host is at the end of a FIFO link with a delay,
    /// sends over such links that nobody else feeds, and no link asks what endpoints do.
    pub(crate) gathers: bool,
    /// What [`Network::pass`] has found for endpoints while ends are gathered, in order.
    pub(crate) due: Vec<Due>,
    /// What of it comes later while it is put in another order.
    pub(crate) later: Vec<Due>,
    /// The notices among it.
    pub(crate) fates: Vec<Notice>,
    /// Where there are many links, what is on its way over FIFO links stands here and not on their wires, but for what hosts may take
    /// ahead of time.
    calendar: Option<Box<Calendar<InFlight>>>,
    /// Of what stands there so much was looked at, from the first on.
    looked_at: usize,
    /// What comes to endpoints is gathered, and hosts take nothing ahead of time: see [`Network::gather_ends`].
    gathers_ends: bool,
    /// What comes off a wire, because its host did not take it ahead of time, is gathered.
    pub(crate) gathers_wires: bool,
    /// FIFO links on whose wires packets stand that have come to them and not gone through yet.
    pub(crate) entered: Vec<u32>,
    pub(crate) mode: Mode,
    pub(crate) window: Window,
    /// What is sent now and is over before this lies within the window.
    pub(crate) inside: Instant,
    /// Nothing happens after this.
    pub(crate) horizon: Instant,
}

/// A link, its pending events and what is measured on it. What every packet needs stands first.
#[repr(C, align(64))]
pub(crate) struct LinkSlot {
    /// Packets on their way on a FIFO link.
    pub(crate) wire: Ring<PacketOnWire>,
    /// So many of those, the last, have come to the FIFO link and not gone through yet: their times are those of coming.
    pub(crate) entering: u32,
    /// No packet goes on from its end at once.
    stops: bool,
    /// Its queue is in the host that sends, and connections there heed what leaves it.
    host: bool,
    /// Its rate, on average.
    own_rate: fleetfoot_core::units::Rate,
    pub(crate) body: Body,
    pub(crate) meter: Meter,
    /// Time of the pending delivery event of a link that is no FIFO link; `FAR_FUTURE` without one.
    pub(crate) delivery_at: Instant,
    /// Time of the pending departure event, in [`Mode::Plain`].
    departure_at: Instant,
    /// When the last packet came, to see that they come in order.
    #[cfg(debug_assertions)]
    pub(crate) entered_at: Instant,
}

/// A FIFO link that several FIFO links feed, but not very many, which send over no other. What they bring is taken together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Junction {
    pub(crate) target: u32,
    /// The shortest delay of those FIFO links: what happens elsewhere concerns the junction later by at least this.
    pub(crate) near: Duration,
    /// This and the delay of the target.
    pub(crate) around: Duration,
}

/// What a link is to the engine.
#[expect(clippy::large_enum_variant, reason = "fifos are the many and the fast")]
pub(crate) enum Body {
    /// Decides on arrival; what is on its way to where it must wait for its turn stands on the wire.
    Fifo(FifoLink),
    /// Any other.
    Link(Box<Link>),
}

/// A packet on the wire of a FIFO link, or on its way to one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketOnWire {
    /// When it reaches the end of the FIFO link.
    pub(crate) at: Instant,
    pub(crate) packet: u32,
    /// Where it goes from there: a place in `hops`.
    pub(crate) place: u32,
    /// Size of the packet, so that FIFO links need not look at it.
    pub(crate) size: PacketSize,
}

impl Default for PacketOnWire {
    fn default() -> PacketOnWire {
        PacketOnWire {
            at: Instant::ZERO,
            packet: 0,
            place: 0,
            size: PacketSize::NONE,
        }
    }
}

impl FifoPacket for PacketOnWire {
    #[inline(always)]
    fn at(&self) -> Instant {
        self.at
    }

    #[inline(always)]
    fn set_at(&mut self, at: Instant) {
        self.at = at;
    }

    #[inline(always)]
    fn size(&self) -> PacketSize {
        self.size
    }
}

/// What concerns an endpoint, when, and in which order: a packet that has come to the end of its path, a timer, or the fate of a
/// packet elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) key: EventKey,
    pub(crate) what: What,
}

/// What is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// This packet has come to the end of its path, over the link that the key names.
    Packet(u32),
    /// The first packet on the wire of the link that the key names has come to the end of its path.
    OnWire,
    /// The timer that the key names.
    Timer,
    /// A packet of this flow left the network, or was added to it: a notice waits for its turn.
    Notice(FlowId),
}

/// A packet left the network without arriving, or was added to it; or data left the queue of its host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notice {
    /// With the moment.
    Dropped(Packet, Instant),
    Doubled(Packet),
    /// Data of a flow left the queue of its host: how much.
    Left(FlowId, u32),
}

impl Notice {
    pub(crate) fn flow(&self) -> FlowId {
        match self {
            Notice::Dropped(packet, _) | Notice::Doubled(packet) => packet.flow,
            Notice::Left(flow, _) => *flow,
        }
    }
}

impl Network {
    pub(crate) fn new(
        spec: &Spec,
        mode: Mode,
        window: Window,
        horizon: Instant,
    ) -> Result<Network, RunError> {
        let links = spec.links.iter().map(|link| LinkSlot::new(spec, link, mode));
        let links = links.collect::<Result<Vec<_>, _>>()?;
        let asks = |place: &LinkSlot| matches!(&place.body, Body::Link(link) if link.queue().asks_streams());
        Ok(Network {
            queue: EventQueue::new(spec.links.len()),
            flows: FlowTable::new(),
            asks_streams: links.iter().any(asks),
            links,
            hops: Vec::new(),
            dropped: 0,
            notices: Vec::new(),
            early: Early::default(),
            lookahead: Duration::ZERO,
            junctions: Vec::new(),
            batch: vec![PacketOnWire::default(); LARGEST_BATCH],
            gathers: false,
            due: Vec::new(),
            later: Vec::new(),
            fates: Vec::new(),
            calendar: None,
            looked_at: 0,
            gathers_ends: false,
            gathers_wires: false,
            entered: Vec::new(),
            mode,
            window,
            inside: Instant::ZERO,
            horizon,
        })
    }

    /// Takes over the paths and finds where packets may go on ahead of time: from a FIFO link to one that is fed by no other.
    /// Passing takes time, so that what happens at one moment keeps its order. `eager` says which links end at receivers
    /// that may take packets early.
    pub(crate) fn set_paths(&mut self, paths: &Paths, eager: &[bool]) {
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
        for hops in self.hops.windows(2) {
            if hops[0] != Paths::END
                && hops[0] != END_AT_ONCE
                && hops[1] & AT_ONCE != 0
                && hops[1] != END_AT_ONCE
            {
                self.links[(hops[0] & !AT_ONCE) as usize].stops = false;
            }
        }
        self.dropped = self.hops.len() as u32;
        self.hops.push(DROPPED);
        let ends = self.hops.windows(2).filter(|hops| hops[1] == END_AT_ONCE);
        let delays = ends.filter_map(|hops| match &self.links[(hops[0] & !AT_ONCE) as usize].body {
            Body::Fifo(fifo) => Some(fifo.delay()),
            Body::Link(_) => None,
        });
        // Nobody takes anything ahead of time: any span will do.
        self.lookahead = delays.min().unwrap_or(Duration::from_secs(1));
        if self.mode == Mode::Fast && self.queue.is_large() {
            self.calendar = Some(Box::new(Calendar::new(self.queue.link_bits())));
        } else {
            self.find_junctions(paths);
        }
        self.decide_gathering(paths);
    }

    /// Decides whether what concerns endpoints may be gathered. Small networks stay in the caches: they gain nothing by it.
    fn decide_gathering(&mut self, paths: &Paths) {
        let fifo = |place: &LinkSlot| matches!(place.body, Body::Fifo(_));
        self.gathers = self.calendar.is_some()
            && self.links.iter().all(fifo)
            && self.hops.contains(&END_AT_ONCE)
            && !self.hops.contains(&Paths::END);
        // What an endpoint sends comes to the end of its first link no sooner than this after what it was caused by.
        let mut before = Paths::END;
        for &hop in paths.hops() {
            if before == Paths::END
                && let Some(place) = self.links.get(hop as usize)
                && let Body::Fifo(fifo) = &place.body
                && self.gathers
            {
                self.lookahead = self.lookahead.min(fifo.delay());
            }
            before = hop;
        }
    }

    /// Finds the FIFO links that several FIFO links feed, which feed nothing else.
    fn find_junctions(&mut self, paths: &Paths) {
        let feeders = paths.feeders(self.links.len());
        // The one link that packets go to from a link, if there is only one and no packet ends there.
        let mut onward: Vec<Option<u32>> = vec![None; self.links.len()];
        for hops in paths.hops().windows(2).filter(|hops| hops[0] != Paths::END) {
            let known = &mut onward[hops[0] as usize];
            *known = Some(known.map_or(hops[1], |known| if known == hops[1] { known } else { Paths::END }));
        }
        let delay = |link: u32| match &self.links[link as usize].body {
            Body::Fifo(fifo) => Some(fifo.delay()),
            Body::Link(_) => None,
        };
        let mut groups = Vec::new();
        for (target, feeders) in (0..).zip(feeders) {
            let meet = |&feeder: &u32| {
                let alone = feeder != Paths::END && onward[feeder as usize] == Some(target);
                alone.then(|| delay(feeder)).flatten()
            };
            let delays: Option<Vec<Duration>> = feeders.iter().map(meet).collect();
            if let Some(own) = delay(target)
                && let Some(near) = delays.and_then(|delays| delays.into_iter().min())
                && (2..=MOST_FEEDERS).contains(&feeders.len())
            {
                let around = near + own;
                self.junctions.push(Junction { target, near, around });
                groups.push(feeders);
            }
        }
        self.queue.join(&groups);
    }

    /// Whether a link is a FIFO link with a delay.
    pub(crate) fn takes_time(&self, link: u32) -> bool {
        matches!(&self.links[link as usize].body, Body::Fifo(fifo) if !fifo.delay().is_zero())
    }

    pub(crate) fn on_departure<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant) {
        let place = &mut self.links[index as usize];
        if place.departure_at == now {
            place.departure_at = Instant::FAR_FUTURE;
            self.catch_up(observer, index, now);
        }
    }

    /// Says what leaves the queues of hosts only where connections heed it (`heeded`, by node).
    pub(crate) fn hear_hosts(&mut self, links: &[LinkSpec], heeded: &[bool]) {
        for (place, link) in self.links.iter_mut().zip(links) {
            place.host &= heeded[link.from.0 as usize];
        }
    }

    /// Re-arms a link's events.
    #[inline]
    pub(crate) fn after_link(&mut self, index: u32) {
        let place = &mut self.links[index as usize];
        let Body::Link(link) = &mut place.body else { return };
        if let Some(at) = link.poll_timeout()
            && at < place.delivery_at
        {
            place.delivery_at = at;
            self.queue.set_arrival(index, at);
        }
        // Connections hear of what leaves their host when it does.
        if (self.mode == Mode::Plain || place.host)
            && let Some(at) = link.next_departure()
            && at != place.departure_at
        {
            place.departure_at = at;
            self.queue.push(EventKey::new(at, EventKind::Departure, index, 0));
        }
    }

    /// Informs the links on a path whose loss model asks for it that the data of `flow` ends at `end`.
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
        let LinkSlot {
            body, meter, host, ..
        } = &mut self.links[index as usize];
        let Body::Link(link) = body else { return };
        let mut tap = Tap {
            index,
            window: self.window,
            meter,
            observer,
            notices: &mut self.notices,
            host: *host,
        };
        link.on_timeout(now, &self.flows, &mut tap);
        self.after_link(index);
    }

    /// Whether no link has anything to forget of a flow.
    pub(crate) fn knows_no_flows(&self) -> bool {
        self.links.iter().all(|place| matches!(place.body, Body::Fifo(_)))
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
    pub(crate) fn mark<O: Observer>(
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
            let LinkSlot { body, meter, .. } = &mut self.links[index as usize];
            if let Body::Link(link) = body {
                note(meter, link.statistics(), link.busy(at));
            }
        }
    }

    /// Makes of the busy time of links that follow a trace the share used of what these offered from `from` to `to`. Once, at the end.
    pub(crate) fn weigh_busy(&mut self, from: Instant, to: Instant) {
        for LinkSlot { body, meter, .. } in &mut self.links {
            if let Body::Link(link) = body {
                let before = meter.rest.busy_before;
                let within = link.busy_within(from, to, meter.busy.saturating_sub(before));
                meter.busy = before + within;
            }
        }
    }

    /// Gives back room on wires that few packets use.
    pub(crate) fn tighten(&mut self) {
        for place in &mut self.links {
            place.wire.tighten();
        }
    }

    /// What was measured, link by link.
    pub(crate) fn into_meters(self) -> impl Iterator<Item = Meter> {
        self.links.into_iter().map(|place| {
            let LinkSlot { body, mut meter, .. } = place;
            match body {
                Body::Fifo(fifo) => meter.add(fifo.counted()),
                Body::Link(link) => meter.rest.most_probes = link.queue().most_probes(),
            }
            meter
        })
    }
}

impl LinkSlot {
    /// Reads what the next packet will need that comes to it; see [`FifoLink::look_at`].
    #[inline(always)]
    pub(crate) fn look_at(&self) -> u64 {
        let wire = self.wire.len() as u64;
        match &self.body {
            Body::Fifo(fifo) => fifo.look_at() ^ wire,
            Body::Link(_) => wire,
        }
    }

    /// Whether it is a FIFO link that every packet leaves at its end for an event or an endpoint, and that has room for so many
    /// packets of up to `mtu` bytes from `at` on.
    #[inline(always)]
    pub(crate) fn takes_all(&mut self, at: Instant, mtu: u32, count: usize) -> bool {
        match &mut self.body {
            Body::Fifo(fifo) => self.stops && fifo.mtu() >= mtu && fifo.sure_room(at) >= count as u64,
            Body::Link(_) => false,
        }
    }

    fn new(spec: &Spec, link: &LinkSpec, mode: Mode) -> Result<LinkSlot, RunError> {
        let (config, queue) = (link.config(), link.discipline(spec)?);
        let fifo = match (mode, &queue) {
            (Mode::Fast, AnyQueue::DropTail(queue)) => FifoLink::new(&config, queue.limit()),
            _ => None,
        };
        let body = match fifo {
            Some(fifo) => Body::Fifo(fifo),
            None => Body::Link(Box::new(Link::new(
                queue,
                &config,
                spec.seed,
                &link.directed_name(),
            ))),
        };
        Ok(LinkSlot {
            body,
            wire: Ring::new(),
            entering: 0,
            stops: true,
            host: link.host,
            own_rate: link.rate.mean(),
            delivery_at: Instant::FAR_FUTURE,
            departure_at: Instant::FAR_FUTURE,
            meter: Meter::default(),
            #[cfg(debug_assertions)]
            entered_at: Instant::ZERO,
        })
    }
}

/// By which link a packet came whose next hop has this place: the link's index plus one, or 0 if the packet was made here.
pub(crate) fn ingress(hops: &[u32], place: u32) -> u16 {
    let before = place
        .checked_sub(2)
        .map(|before| hops[before as usize] & !AT_ONCE);
    before.filter(|&before| before < DROPPED).map_or(0, |before| {
        before.saturating_add(1).min(u32::from(u16::MAX)) as u16
    })
}

/// Where more FIFO links meet than stand in a list, taking what they bring together costs more than it saves.
const MOST_FEEDERS: usize = 64;

/// So much waits for endpoints at most: its state is still in the caches when it is taken.
pub(crate) const MOST_DUE: usize = 512;

/// So many pass a junction together at most.
const LARGEST_BATCH: usize = 256;

/// Beside a hop: a packet that comes there from the hop before may go on ahead of time.
pub(crate) const AT_ONCE: u32 = 1 << 31;

/// The end of a path whose packets the receiver may take ahead of time.
pub(crate) const END_AT_ONCE: u32 = Paths::END | AT_ONCE;

/// The next hop of a packet that was dropped ahead of time.
pub(crate) const DROPPED: u32 = Paths::END - 1;

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, DROPPED, ingress};
    use crate::routing::Paths;

    #[test]
    fn a_packet_came_by_the_link_before_or_from_its_own_host() {
        // Two paths: links 4, 7, 70000 and link 9; a place is that of the next hop.
        let hops = [
            4,
            7 | AT_ONCE,
            70_000,
            Paths::END,
            9,
            Paths::END | AT_ONCE,
            DROPPED,
        ];
        let by = |place| ingress(&hops, place);
        assert_eq!([by(1), by(2), by(3)], [0, 5, 8]);
        assert_eq!(by(4), u16::MAX, "links beyond the sixteen bits share a port");
        assert_eq!(by(5), 0, "the first link of another path");
    }
}
