//! The engine: one loop over events, links between nodes, endpoints at hosts.
//!
//! The `network` knows the fate of most packets when they are sent; endpoints have one pending timer event, which moves
//! only when its deadline moves earlier: a deadline that moved later is looked at when the event comes. A host whose next
//! input is known takes it ahead of time (`World::run_ahead`). [`Mode::Plain`] knows no lanes, runs every departure as
//! an event of its own, takes nothing early and inserts every moved deadline anew; both modes give the same results, which
//! a test compares byte by byte. Nothing later than the end of the run is processed.

use crate::app::Group;
use crate::endpoint::Slot;
use crate::event::{EventKind, EventQueue};
use crate::interface::Interfaces;
use crate::observe::Observer;
use crate::output::RunOutput;
use crate::routing::{PathStart, Paths};
use crate::spec::{Interface, LinkIndex, NodeId, Spec};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::tcp::PathMemory;
use fleetfoot_core::time::{Duration, Instant};
use std::ops::ControlFlow;

mod ahead;
mod error;
mod junction;
mod meter;
mod network;
mod passing;
mod slab;
mod usage;

pub use error::RunError;
use meter::Meter;
pub(crate) use network::Network;
use network::Notice;
pub(crate) use slab::Slab;
pub use usage::{CONVERSATION_BYTES, Holder, Usage};

/// How events are processed; results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Lanes, lazy departures and lazy timers.
    #[default]
    Fast,
    /// Every departure is an event, every moved deadline is inserted anew, connections predict no headers: slow and obviously right.
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
    mut progress: impl FnMut(Instant) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    watched(spec, mode, observer, |now, _| progress(now))
}

/// As [`run`]; `progress` may also ask what the run holds in memory, which takes time.
///
/// # Errors
/// As [`run`].
pub fn watched<O: Observer>(
    spec: &Spec,
    mode: Mode,
    observer: &mut O,
    mut progress: impl FnMut(Instant, &dyn Fn() -> Usage) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    let mut world = World::new(spec, mode, observer)?;
    world.run(&mut progress);
    Ok(world.finish())
}

/// Called now and then with the virtual time and what tells what is held.
type Progress<'a> = &'a mut dyn FnMut(Instant, &dyn Fn() -> Usage) -> ControlFlow<()>;

/// Everything that exists during a run.
pub(crate) struct World<'a, O> {
    pub(crate) spec: &'a Spec,
    pub(crate) observer: &'a mut O,
    pub(crate) network: Network,
    pub(crate) packets: Slab,
    /// What a run of packets made an endpoint send.
    leaving: Vec<network::Waiting>,
    paths: Paths,
    pub(crate) slots: Vec<Slot>,
    pub(crate) free: Vec<u32>,
    pub(crate) groups: Vec<Group>,
    /// By node: endpoints there whose connection has a deadline.
    pub(crate) armed: Vec<u32>,
    /// What connections learnt, by the nodes of sender and receiver.
    pub(crate) known_paths: PathMemory<(NodeId, NodeId)>,
    /// When things are counted.
    pub(crate) window: Window,
    /// Counted flows that are not complete.
    pub(crate) open: u64,
    /// Conversations made so far.
    pub(crate) created: u32,
    events: u64,
    /// Time of the last event.
    pub(crate) now: Instant,
    interrupted: bool,
    /// Interfaces that coalesce interrupts.
    pub(crate) interfaces: Interfaces,
    /// Packets of some connections take time beyond that of their links.
    pub(crate) delays: bool,
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

impl<'a, O: Observer> World<'a, O> {
    fn new(spec: &'a Spec, mode: Mode, observer: &'a mut O) -> Result<Self, RunError> {
        let window = Window {
            from: Instant::ZERO + spec.warmup,
            to: Instant::ZERO + spec.duration,
        };
        let horizon = window.to.saturating_add(spec.drain);
        let longest = EventQueue::longest(spec.links.len());
        if horizon > longest {
            return Err(RunError::TooLong(longest.since(Instant::ZERO)));
        }
        let mut world = World {
            spec,
            observer,
            network: Network::new(spec, mode, window, horizon)?,
            packets: Slab::new(),
            leaving: Vec::new(),
            paths: Paths::new(spec),
            slots: Vec::new(),
            free: Vec::new(),
            groups: Vec::new(),
            armed: vec![0; spec.nodes.len()],
            known_paths: PathMemory::new(),
            window,
            open: 0,
            created: 0,
            events: 0,
            now: Instant::ZERO,
            interrupted: false,
            interfaces: Interfaces::default(),
            delays: false,
        };
        world.set_up_groups()?;
        let eager = world.eager_links();
        world.network.set_paths(&world.paths, &eager);
        Ok(world)
    }

    /// The links whose far end is a node that may take packets ahead of time: they come over no other link and end there,
    /// what it sends goes over lanes that nobody else feeds, and no application there acts because of what happens
    /// elsewhere.
    fn eager_links(&self) -> Vec<bool> {
        let nodes = self.spec.nodes.len();
        // The one link that packets to a node end on; the links it sends over.
        let mut last: Vec<Option<u32>> = vec![None; nodes];
        let mut eager_node = vec![true; nodes];
        let feeders = self.paths.feeders(self.spec.links.len());
        let mut before = Paths::END;
        for &hop in self.paths.hops() {
            if hop == Paths::END {
                let node = self.spec.links[before as usize].to.0 as usize;
                eager_node[node] &= last[node].is_none_or(|last| last == before);
                last[node] = Some(before);
            } else {
                let node = self.spec.links[hop as usize].from.0 as usize;
                let first = before == Paths::END;
                eager_node[node] &=
                    first && self.network.takes_time(hop) && feeders[hop as usize] == [Paths::END];
            }
            before = hop;
        }
        for group in &self.spec.groups {
            // Where an interface holds packets back, what is sent later may leave earlier.
            let holds = group.interface != Interface::default() || group.relay.is_some();
            if let Some(relay) = &group.relay {
                eager_node[relay.node.0 as usize] = false;
            }
            let listed = group.traffic.listed().iter();
            let listed = listed.map(|line| (line.source, line.destination));
            let pairs = group.pairs.iter().copied().chain(listed);
            for (from, to) in pairs.filter(|_| group.traffic.reacts() || holds) {
                eager_node[from.0 as usize] = false;
                eager_node[to.0 as usize] = false;
            }
        }
        let mut eager = vec![false; self.spec.links.len()];
        for (last, eager_node) in last.into_iter().zip(eager_node) {
            if let Some(last) = last {
                eager[last as usize] = eager_node;
            }
        }
        eager
    }

    fn run(&mut self, progress: Progress<'_>) {
        let Window { from, to } = self.window;
        let warm = self.run_until(from, false, progress);
        self.network.mark(self.observer, from, |meter, statistics, busy| {
            meter.rest.before = *statistics;
            meter.rest.busy_before = busy;
        });
        self.network.inside = to;
        self.take_notices();
        let measured = warm.is_continue().then(|| self.run_until(to, false, progress));
        let seen = if self.interrupted { self.now.max(from) } else { to };
        self.network.mark(self.observer, seen, |meter, statistics, busy| {
            meter.rest.after = *statistics;
            meter.busy = busy;
        });
        self.take_notices();
        if measured.is_some_and(|flow| flow.is_continue()) && self.open > 0 {
            let end = to.saturating_add(self.spec.drain);
            let flow = self.run_until(end.saturating_add(Duration::from_nanos(1)), true, progress);
            if flow.is_continue() && self.open > 0 {
                self.now = end;
            }
        } else if !self.interrupted {
            self.now = to;
        }
    }

    /// Processes every event before `end`; with `drain` only until no counted flow is left.
    fn run_until(&mut self, end: Instant, drain: bool, progress: Progress<'_>) -> ControlFlow<()> {
        if end == Instant::ZERO {
            return ControlFlow::Continue(());
        }
        let last = end - Duration::from_nanos(1);
        loop {
            if self.network.queue.next_arrival().is_some() {
                let most = match self.network.mode {
                    Mode::Fast => PROGRESS_EVENTS - self.events % PROGRESS_EVENTS,
                    Mode::Plain => 1,
                };
                let passed = self
                    .network
                    .pass(&mut self.packets, self.observer, most.min(MOST_PASSED));
                // Junctions run ahead of each other: this may be earlier than before.
                self.now = passed.now;
                self.events += passed.events;
                if let Some((link, packet)) = passed.at_end {
                    self.on_delivery(link, passed.now, packet);
                }
            } else if let Some(key) = self.network.queue.pop_until(last) {
                debug_assert!(key.at() >= self.now, "time runs forwards");
                self.now = key.at();
                match key.kind() {
                    // Known from now on.
                    EventKind::Arrival => continue,
                    EventKind::Timer | EventKind::Pacing => self.on_timer(key),
                    EventKind::App => self.on_actor(key.place(), key.number(), key.at()),
                    EventKind::Interrupt => self.on_interrupt(key.place(), key.at()),
                    EventKind::Delayed => self.on_delayed(key.place(), key.number(), key.at()),
                    EventKind::Departure => self.network.on_departure(self.observer, key.place(), key.at()),
                }
                self.events += 1;
            } else {
                break;
            }
            if !self.network.early.is_empty() {
                self.run_ahead();
            }
            if !self.network.notices.is_empty() {
                self.take_notices();
            }
            if self.events.is_multiple_of(PROGRESS_EVENTS) && progress(self.now, &|| self.usage()).is_break()
            {
                self.interrupted = true;
                return ControlFlow::Break(());
            }
            if drain && self.open == 0 {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    /// A packet is at the end of its path.
    #[inline(never)]
    fn on_delivery(&mut self, link: u32, now: Instant, packet: u32) {
        if !self.delays || !self.delay(link, now, packet) {
            self.hand_up(now, packet);
        }
    }

    /// A packet has reached the interface of its host.
    #[inline]
    pub(crate) fn hand_up(&mut self, now: Instant, packet: u32) {
        if self.interfaces.is_empty() || !self.hold(now, packet) {
            self.deliver(now, packet);
        }
    }

    /// A packet that came off a link goes no further.
    #[cold]
    pub(crate) fn discard(&mut self, link: u32, now: Instant, packet: u32, reason: DropReason) {
        let packet = self.packets.take(packet);
        self.observer.on_drop(now, LinkIndex(link), &packet, reason);
        self.network.notices.push(Notice::Dropped(packet, now));
    }

    /// Counts what left the network, or was added to it.
    pub(crate) fn take_notices(&mut self) {
        let now = self.now;
        while let Some(notice) = self.network.notices.pop() {
            match notice {
                Notice::Dropped(packet, at) => {
                    self.count_dropped(at, &packet);
                    self.left_network(now, &packet);
                }
                Notice::Doubled(packet) => self.doubled(&packet),
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

    fn finish(mut self) -> RunOutput {
        let groups = self.finish_groups();
        RunOutput {
            groups,
            links: self.network.into_meters().map(Meter::output).collect(),
            events: self.events,
            ended: self.now,
            interrupted: self.interrupted,
        }
    }
}

/// Events between two calls of the progress function.
const PROGRESS_EVENTS: u64 = 1 << 16;

/// Arrivals at a time, so that what they bring is still in the caches when it is taken.
const MOST_PASSED: u64 = 1024;
