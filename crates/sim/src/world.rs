//! The engine: one loop over events, links between nodes, endpoints at hosts.
//!
//! Each link has one pending event (the head of its wire); packets in flight live in the link's rings. Departures are lazy,
//! and so are timers: an endpoint has one pending event, which moves only when its deadline moves earlier; a deadline
//! that moved later is looked at when the event comes. A drop-tail link at a constant rate is a [`Lane`]: the fate of a
//! packet is known when it arrives, so a packet passes at once through every following lane that is fed by nobody else.
//! [`Mode::Plain`] knows no lanes, runs every departure as an event of its own and inserts every moved deadline anew; both
//! modes give the same results, which a test compares byte by byte.
//!
//! A packet carries its place in the arena of paths (in `buf`, which the core leaves to the driver), so a router needs one
//! load to find the next link. Nothing later than the end of the run is processed.

use crate::app::Group;
use crate::endpoint::Slot;
use crate::event::{EventKey, EventKind, EventQueue};
use crate::observe::Observer;
use crate::output::RunOutput;
use crate::routing::{PathStart, Paths};
use crate::spec::{LinkIndex, NodeId, Spec};
use fleetfoot_core::flow::{FlowId, FlowTable};
use fleetfoot_core::link::{Lane, Link, LinkConfig, LinkStatistics, Loss, PacketClass, StreamEnd};
use fleetfoot_core::packet::{BufId, Flags, Packet};
use fleetfoot_core::queue::{AnyQueue, DropReason};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::time::{Duration, Instant};
use std::collections::VecDeque;
use std::ops::ControlFlow;

mod error;
mod meter;

pub use error::RunError;
use meter::{Meter, Tap};

/// How events are processed; results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Lanes, lazy departures and lazy timers.
    #[default]
    Fast,
    /// Every departure is an event, every moved deadline is inserted anew: slow and obviously right.
    Plain,
}

/// Runs a specification. `progress` is called now and then with the virtual time; `Break` ends the run early, and what was
/// measured until then is returned, marked as interrupted.
///
/// # Errors
/// The specification names something that does not exist or cannot be reached.
pub fn run<O: Observer>(
    spec: &Spec,
    mode: Mode,
    observer: &mut O,
    progress: impl FnMut(Instant) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    let mut world = World::new(spec, mode, observer)?;
    world.run(progress);
    Ok(world.finish())
}

/// Everything that exists during a run.
pub(crate) struct World<'a, O> {
    pub(crate) spec: &'a Spec,
    pub(crate) mode: Mode,
    pub(crate) observer: &'a mut O,
    pub(crate) queue: EventQueue,
    links: Vec<Place>,
    pub(crate) paths: Paths,
    pub(crate) flows: FlowTable,
    pub(crate) slots: Vec<Slot>,
    pub(crate) free: Vec<u32>,
    pub(crate) groups: Vec<Group>,
    /// When things are counted.
    pub(crate) window: Window,
    /// Counted flows that are not complete.
    pub(crate) open: u64,
    /// Conversations made so far.
    pub(crate) created: u32,
    /// What the last call to a link did to the number of packets in the network.
    notices: Vec<Notice>,
    events: u64,
    /// Time of the last event.
    pub(crate) now: Instant,
    interrupted: bool,
    /// Nothing happens after this.
    horizon: Instant,
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
}

/// A link, its pending events and what is measured on it.
struct Place {
    body: Body,
    /// The only link that feeds this lane, if packets may pass from it at once; else `NOBODY`.
    feeder: u32,
    /// Time of the pending delivery event; `FAR_FUTURE` without one.
    delivery_at: Instant,
    /// Time of the pending departure event, in [`Mode::Plain`].
    departure_at: Instant,
    meter: Meter,
}

/// What a link is to the engine.
enum Body {
    /// Decides on arrival; what is on its way to where it must wait for its turn stands in `wire`.
    Lane {
        lane: Lane,
        wire: VecDeque<(Instant, Packet)>,
    },
    /// Any other.
    Link(Box<Link>),
}

impl<'a, O: Observer> World<'a, O> {
    fn new(spec: &'a Spec, mode: Mode, observer: &'a mut O) -> Result<Self, RunError> {
        let mut links = Vec::with_capacity(spec.links.len());
        for link in &spec.links {
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
                    wire: VecDeque::new(),
                },
                None => Body::Link(Box::new(Link::new(queue, &config, spec.seed, &name))),
            };
            links.push(Place {
                body,
                feeder: NOBODY,
                delivery_at: Instant::FAR_FUTURE,
                departure_at: Instant::FAR_FUTURE,
                meter: Meter::default(),
            });
        }
        let mut world = World {
            spec,
            mode,
            observer,
            queue: EventQueue::new(spec.links.len()),
            links,
            paths: Paths::new(spec),
            flows: FlowTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            groups: Vec::new(),
            window: Window {
                from: Instant::ZERO + spec.warmup,
                to: Instant::ZERO + spec.duration,
            },
            open: 0,
            created: 0,
            notices: Vec::new(),
            events: 0,
            now: Instant::ZERO,
            interrupted: false,
            horizon: (Instant::ZERO + spec.duration).saturating_add(spec.drain),
        };
        world.set_up_groups()?;
        world.join_lanes();
        Ok(world)
    }

    /// Finds the lanes that packets may enter ahead of time: those fed by one lane only. Passing takes time, so that
    /// what happens at one moment keeps its order.
    fn join_lanes(&mut self) {
        for (index, feeder) in self.paths.sole_feeders(self.links.len()).into_iter().enumerate() {
            let Some(LinkIndex(feeder)) = feeder else { continue };
            if let Body::Lane { lane, .. } = &self.links[feeder as usize].body
                && !lane.delay().is_zero()
                && let Body::Lane { lane, .. } = &self.links[index].body
                && !lane.delay().is_zero()
            {
                self.links[index].feeder = feeder;
            }
        }
    }

    fn run(&mut self, mut progress: impl FnMut(Instant) -> ControlFlow<()>) {
        let Window { from, to } = self.window;
        let warm = self.run_until(from, false, &mut progress);
        self.mark(from, |meter, statistics, busy| {
            meter.before = *statistics;
            meter.busy_before = busy;
        });
        let measured = warm
            .is_continue()
            .then(|| self.run_until(to, false, &mut progress));
        let seen = if self.interrupted { self.now.max(from) } else { to };
        self.mark(seen, |meter, statistics, busy| {
            meter.after = *statistics;
            meter.busy_after = busy;
        });
        if measured.is_some_and(|flow| flow.is_continue()) && self.open > 0 {
            let end = to.saturating_add(self.spec.drain);
            let flow = self.run_until(end.saturating_add(Duration::from_nanos(1)), true, &mut progress);
            if flow.is_continue() && self.open > 0 {
                self.now = end;
            }
        } else if !self.interrupted {
            self.now = to;
        }
    }

    /// Processes every event before `end`; with `drain` only until no counted flow is left.
    fn run_until(
        &mut self,
        end: Instant,
        drain: bool,
        progress: &mut impl FnMut(Instant) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if end == Instant::ZERO {
            return ControlFlow::Continue(());
        }
        let last = end - Duration::from_nanos(1);
        while let Some(key) = self.queue.pop_until(last) {
            debug_assert!(key.at() >= self.now, "time runs forwards");
            self.now = key.at();
            self.events += 1;
            match key.kind() {
                EventKind::Arrival => self.on_arrival(key.place(), key.at()),
                EventKind::Timer | EventKind::Pacing => self.on_timer(key),
                EventKind::App => self.on_actor(key.place(), key.number(), key.at()),
                EventKind::Departure => self.on_departure(key.place(), key.at()),
            }
            if self.events.is_multiple_of(PROGRESS_EVENTS) && progress(self.now).is_break() {
                self.interrupted = true;
                return ControlFlow::Break(());
            }
            if drain && self.open == 0 {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    /// Sends a packet on its way from an endpoint.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, path: PathStart, mut packet: Packet) {
        self.observer.on_send(now, packet.flow, &packet.segment);
        let first = self.paths.hop(path.0);
        packet.buf = BufId(path.0 + 1);
        self.enter(first, now, packet);
    }

    /// A packet arrives at the sending end of a link, and passes on through lanes as far as its fate is known.
    fn enter(&mut self, mut index: u32, mut now: Instant, mut packet: Packet) {
        let mut before = NOBODY;
        loop {
            self.observer.on_enter(now, LinkIndex(index), &packet);
            let place = &mut self.links[index as usize];
            let Body::Lane { lane, .. } = &mut place.body else {
                self.enter_link(index, now, packet);
                return;
            };
            let (waiting, fate) = lane.on_packet(now, &mut packet);
            if self.window.contains(now) {
                place.meter.queue_packets.record(u64::from(waiting.packets));
            }
            let passage = match fate {
                Ok(passage) => passage,
                Err(reason) => {
                    self.drop_at_lane(index, before, now, packet, reason);
                    return;
                }
            };
            place.meter.count_passage(self.window, &packet, now, passage);
            let next = self.paths.hop(packet.buf.0);
            let joined = next != Paths::END && passage.arrival <= self.horizon && {
                self.links[next as usize].feeder == index
            };
            if !joined {
                let Body::Lane { wire, .. } = &mut self.links[index as usize].body else {
                    return;
                };
                if wire.is_empty() {
                    self.queue.set_arrival(index, passage.arrival);
                }
                wire.push_back((passage.arrival, packet));
                return;
            }
            self.observer.on_deliver(
                passage.arrival,
                LinkIndex(index),
                &packet,
                passage.arrival.since(now),
            );
            packet.buf.0 += 1;
            before = index;
            index = next;
            now = passage.arrival;
        }
    }

    /// A lane has no room. Ahead of time the packet counts as in the network until the moment comes, at the end of the
    /// lane `before`.
    #[cold]
    fn drop_at_lane(
        &mut self,
        index: u32,
        before: u32,
        now: Instant,
        mut packet: Packet,
        reason: DropReason,
    ) {
        if self.window.contains(now) {
            let class = PacketClass::of(&packet) as usize;
            self.links[index as usize].meter.after.drops[reason as usize][class] += 1;
        }
        self.observer.on_drop(now, LinkIndex(index), &packet, reason);
        if before == NOBODY {
            self.left_network(now, &packet);
        } else if let Body::Lane { wire, .. } = &mut self.links[before as usize].body {
            if wire.is_empty() {
                self.queue.set_arrival(before, now);
            }
            packet.buf = DROPPED;
            wire.push_back((now, packet));
        }
    }

    /// A packet arrives at a link that is no lane.
    fn enter_link(&mut self, index: u32, now: Instant, packet: Packet) {
        let Place { body, meter, .. } = &mut self.links[index as usize];
        let Body::Link(link) = body else { return };
        let mut tap = Tap {
            index,
            window: self.window,
            meter,
            observer: self.observer,
            notices: &mut self.notices,
        };
        link.on_packet(now, packet, &self.flows, &mut tap);
        self.after_link(index);
    }

    /// The head of a link's wire is due.
    #[inline]
    fn on_arrival(&mut self, index: u32, now: Instant) {
        loop {
            let Body::Lane { wire, .. } = &mut self.links[index as usize].body else {
                self.on_link(index, now);
                return;
            };
            let packet = wire.pop_front();
            let next = wire.front().map_or(Instant::FAR_FUTURE, |next| next.0);
            self.queue.set_arrival(index, next);
            let Some((_, packet)) = packet else { return };
            if packet.buf == DROPPED {
                self.left_network(now, &packet);
            } else {
                self.arrive(index, now, packet);
            }
            if next != now {
                return;
            }
        }
    }

    /// The head of the wire of a link that is no lane is due.
    fn on_link(&mut self, index: u32, now: Instant) {
        loop {
            let Place { body, meter, .. } = &mut self.links[index as usize];
            let Body::Link(link) = body else { return };
            let mut tap = Tap {
                index,
                window: self.window,
                meter,
                observer: self.observer,
                notices: &mut self.notices,
            };
            let Some(packet) = link.poll_delivery(now, &self.flows, &mut tap) else {
                break;
            };
            // Mostly nothing else is due: asking again would catch up once more.
            let more = link.poll_timeout().is_some_and(|at| at <= now);
            if !self.notices.is_empty() {
                self.take_notices();
            }
            self.arrive(index, now, packet);
            if !more {
                break;
            }
        }
        // The event that came is over.
        self.links[index as usize].delivery_at = Instant::FAR_FUTURE;
        self.queue.set_arrival(index, Instant::FAR_FUTURE);
        self.after_link(index);
    }

    /// A packet reaches the far end of link `index`.
    #[inline]
    fn arrive(&mut self, index: u32, now: Instant, mut packet: Packet) {
        self.observer
            .on_deliver(now, LinkIndex(index), &packet, now.since(packet.enqueued_at));
        let next = self.paths.hop(packet.buf.0);
        if next != Paths::END {
            packet.buf.0 += 1;
            self.enter(next, now, packet);
        } else if packet.segment.flags.contains(Flags::CORRUPT) {
            self.discard_damaged(index, now, &packet);
        } else {
            self.deliver(now, &packet);
        }
    }

    /// The receiver's checksum fails.
    #[cold]
    fn discard_damaged(&mut self, index: u32, now: Instant, packet: &Packet) {
        if self.window.contains(now) {
            self.links[index as usize].meter.damaged[PacketClass::of(packet) as usize] += 1;
        }
        self.observer
            .on_drop(now, LinkIndex(index), packet, DropReason::BitError);
        self.left_network(now, packet);
    }

    fn on_departure(&mut self, index: u32, now: Instant) {
        let place = &mut self.links[index as usize];
        if place.departure_at == now {
            place.departure_at = Instant::FAR_FUTURE;
            self.catch_up(index, now);
        }
    }

    /// Re-arms a link's events and forgets dropped packets.
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
        if !self.notices.is_empty() {
            self.take_notices();
        }
    }

    #[cold]
    fn take_notices(&mut self) {
        let now = self.now;
        while let Some(notice) = self.notices.pop() {
            match notice {
                Notice::Dropped(packet) => self.left_network(now, &packet),
                Notice::Doubled(packet) => self.doubled(&packet),
            }
        }
    }

    /// Tells the links on a path whose loss model asks for it that the data of `flow` ends at `end`.
    pub(crate) fn announce_end(&mut self, now: Instant, path: PathStart, flow: FlowId, end: StreamEnd) {
        let mut hop = path.0;
        while self.paths.hop(hop) != Paths::END {
            let index = self.paths.hop(hop);
            hop += 1;
            if !matches!(self.spec.links[index as usize].impairments.loss, Loss::Tail(_)) {
                continue;
            }
            // What departs until now was lost or not by the old end.
            self.catch_up(index, now);
            if let Body::Link(link) = &mut self.links[index as usize].body {
                link.on_stream_end(flow, end);
            }
        }
    }

    /// Does every departure of a link that is due.
    fn catch_up(&mut self, index: u32, now: Instant) {
        let Place { body, meter, .. } = &mut self.links[index as usize];
        let Body::Link(link) = body else { return };
        let mut tap = Tap {
            index,
            window: self.window,
            meter,
            observer: self.observer,
            notices: &mut self.notices,
        };
        link.on_timeout(now, &self.flows, &mut tap);
        self.after_link(index);
    }

    /// Lets every link on a path forget `flow`, whose id will be used again.
    pub(crate) fn forget_flow(&mut self, path: PathStart, flow: FlowId) {
        for link in self.paths.links(path) {
            if let Body::Link(link) = &mut self.links[link.0 as usize].body {
                link.on_flow_end(flow);
            }
        }
    }

    /// The path between two nodes.
    pub(crate) fn path(&mut self, group: usize, from: NodeId, to: NodeId) -> Result<PathStart, RunError> {
        self.paths
            .find(self.spec, from, to)
            .ok_or_else(|| RunError::Unreachable {
                group: self.spec.groups[group].name.clone(),
                from: self.spec.nodes[from.0 as usize].name.clone(),
                to: self.spec.nodes[to.0 as usize].name.clone(),
            })
    }

    /// Brings every link up to just before `at` and notes its counters.
    fn mark(&mut self, at: Instant, note: impl Fn(&mut Meter, &LinkStatistics, Duration)) {
        if at == Instant::ZERO {
            return;
        }
        for index in 0..self.links.len() as u32 {
            self.catch_up(index, at - Duration::from_nanos(1));
            let Place { body, meter, .. } = &mut self.links[index as usize];
            if let Body::Link(link) = body {
                note(meter, link.statistics(), link.busy(at));
            }
        }
    }

    fn finish(mut self) -> RunOutput {
        let groups = self.finish_groups();
        let links = self.links.into_iter().map(|place| place.meter.output()).collect();
        RunOutput {
            groups,
            links,
            events: self.events,
            ended: self.now,
            interrupted: self.interrupted,
        }
    }
}

/// A packet left the network without arriving, or was added to it.
#[derive(Clone, Copy, Debug)]
enum Notice {
    Dropped(Packet),
    Doubled(Packet),
}

/// No link feeds a lane ahead of time.
const NOBODY: u32 = u32::MAX;

/// What `buf` says of a packet that was dropped ahead of time.
const DROPPED: BufId = BufId::NONE;

/// Events between two calls of the progress function.
const PROGRESS_EVENTS: u64 = 1 << 16;
