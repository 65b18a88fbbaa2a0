//! The engine: one loop over events of links, endpoints and applications. Applications know the endpoints that they use,
//! endpoints the network, and neither knows what stands above it.
//!
//! The `network` knows the fate of most packets when they are sent; endpoints have one pending timer event, which moves
//! only when its deadline moves earlier: a deadline that moved later is looked at when the event comes. A host whose next
//! input is known takes it ahead of time (`Hosts::run_ahead`). [`Mode::Plain`] knows no FIFO links, runs every departure as
//! an event of its own, takes nothing early and inserts every moved deadline anew; both modes give the same results, which
//! a test compares byte by byte. Nothing later than the end of the run is processed.

use crate::app::Apps;
use crate::endpoint::Hosts;
pub use crate::error::RunError;
use crate::event::{EventKey, EventKind, EventQueue};
pub use crate::network::Mode;
use crate::network::{Meter, Window};
use crate::observe::{Behind, Calls, Observer};
use crate::output::RunOutput;
use crate::routing::Paths;
use crate::spec::{Interface, Spec};
use fleetfoot_core::time::{Duration, Instant};
use std::ops::ControlFlow;

mod gather;
mod steps;
mod usage;

pub use steps::{Pause, Steps};
pub use usage::{CONVERSATION_BYTES, Holder, Usage};

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
    observer.watched(spec, mode, &mut progress)
}

/// The whole of a run.
pub(crate) fn begun<O: Observer>(
    spec: &Spec,
    mode: Mode,
    observer: &mut O,
    progress: Progress<'_>,
) -> Result<RunOutput, RunError> {
    let mut world = World::new(spec, mode, observer)?;
    while world.advance(progress) == Advance::Paused {}
    Ok(world.finish())
}

/// The whole of a run with an observer behind a pointer.
pub(crate) fn heard(
    spec: &Spec,
    mode: Mode,
    observer: &mut dyn Calls,
    progress: Progress<'_>,
) -> Result<RunOutput, RunError> {
    begun(spec, mode, &mut Behind::Calls(observer), progress)
}

/// Called now and then with the virtual time and a function that reports what is held.
pub type Progress<'a> = &'a mut dyn FnMut(Instant, &dyn Fn() -> Usage) -> ControlFlow<()>;

/// Everything that exists during a run.
pub(crate) struct World<'a, O> {
    hosts: Hosts<'a, O>,
    apps: Apps<'a>,
    events: u64,
    interrupted: bool,
    stage: Stage,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before what is measured.
    Warmup,
    /// Within what is measured.
    Measured,
    /// Waiting for counted flows.
    Drain,
    /// Nothing happens any more.
    Over,
}

/// Why a run does not go on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Its observer asked for it ([`Observer::pauses`]).
    Paused,
    /// It is over.
    Ended,
}

/// How a part of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Everything before its end was processed.
    Done,
    /// The observer asked for a pause.
    Paused,
    /// The progress function ended the run.
    Interrupted,
}

impl<'a, O: Observer> World<'a, O> {
    pub(crate) fn new(spec: &'a Spec, mode: Mode, observer: &'a mut O) -> Result<Self, RunError> {
        let window = Window {
            from: Instant::ZERO + spec.warmup,
            to: Instant::ZERO + spec.duration,
        };
        let horizon = window.to.saturating_add(spec.drain);
        let longest = EventQueue::longest(spec.links.len());
        if horizon > longest {
            return Err(RunError::TooLong(longest.since(Instant::ZERO)));
        }
        let mut hosts = Hosts::new(spec, mode, observer, window, horizon)?;
        let mut world = World {
            apps: Apps::new(&mut hosts)?,
            hosts,
            events: 0,
            interrupted: false,
            stage: Stage::Warmup,
        };
        let mut heeded = vec![false; spec.nodes.len()];
        world
            .hosts
            .each_held_at_host(|node| heeded[node.0 as usize] = true);
        world.hosts.network.hear_hosts(&spec.links, &heeded);
        let eager = world.eager_links(&heeded);
        world.hosts.network.set_paths(&world.hosts.paths, &eager);
        world.hosts.frees_early = O::DEAF && world.hosts.network.knows_no_flows();
        Ok(world)
    }

    /// The links whose far end is a node that may take packets ahead of time: they come over no other link and end there,
    /// what it sends goes over FIFO links that nobody else feeds, and no application there acts because of what happens
    /// elsewhere. Where connections heed what waits in their host (`heeded`, by node), packets are not taken ahead.
    fn eager_links(&self, heeded: &[bool]) -> Vec<bool> {
        let nodes = self.hosts.spec.nodes.len();
        // The one link that packets to a node end on; the links it sends over.
        let mut last: Vec<Option<u32>> = vec![None; nodes];
        let mut eager_node: Vec<bool> = heeded.iter().map(|heeded| !heeded).collect();
        let feeders = self.hosts.paths.feeders(self.hosts.spec.links.len());
        let mut before = Paths::END;
        for &hop in self.hosts.paths.hops() {
            if hop == Paths::END {
                let node = self.hosts.spec.links[before as usize].to.0 as usize;
                eager_node[node] &= last[node].is_none_or(|last| last == before);
                last[node] = Some(before);
            } else {
                let node = self.hosts.spec.links[hop as usize].from.0 as usize;
                let first = before == Paths::END;
                eager_node[node] &=
                    first && self.hosts.network.takes_time(hop) && feeders[hop as usize] == [Paths::END];
            }
            before = hop;
        }
        for group in &self.hosts.spec.groups {
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
        let mut eager = vec![false; self.hosts.spec.links.len()];
        for (last, eager_node) in last.into_iter().zip(eager_node) {
            if let Some(last) = last {
                eager[last as usize] = eager_node;
            }
        }
        eager
    }

    /// The time of the last event.
    pub(crate) fn now(&self) -> Instant {
        self.hosts.now
    }

    /// Runs until the end or the next pause.
    pub(crate) fn advance(&mut self, progress: Progress<'_>) -> Advance {
        let Window { from, to } = self.hosts.window;
        if self.stage == Stage::Warmup {
            if self.run_until(from, false, progress) == Part::Paused {
                return Advance::Paused;
            }
            self.stage = Stage::Measured;
            self.hosts
                .network
                .mark(self.hosts.observer, from, |meter, statistics, busy| {
                    meter.rest.before = *statistics;
                    meter.rest.busy_before = busy;
                });
            self.hosts.network.inside = to;
            self.hosts.take_notices(&mut self.apps);
        }
        if self.stage == Stage::Measured {
            if !self.interrupted && self.run_until(to, false, progress) == Part::Paused {
                return Advance::Paused;
            }
            self.stage = Stage::Over;
            let seen = if self.interrupted {
                self.hosts.now.max(from)
            } else {
                to
            };
            self.hosts
                .network
                .mark(self.hosts.observer, seen, |meter, statistics, busy| {
                    meter.rest.after = *statistics;
                    meter.busy = busy;
                });
            self.hosts.network.weigh_busy(from, seen);
            self.hosts.take_notices(&mut self.apps);
            if self.interrupted {
                return Advance::Ended;
            }
            if self.hosts.open == 0 {
                self.hosts.now = to;
                return Advance::Ended;
            }
            self.stage = Stage::Drain;
        }
        if self.stage == Stage::Drain {
            let end = to.saturating_add(self.hosts.spec.drain);
            let part = self.run_until(end.saturating_add(Duration::from_nanos(1)), true, progress);
            if part == Part::Paused {
                return Advance::Paused;
            }
            self.stage = Stage::Over;
            if part == Part::Done && self.hosts.open > 0 {
                self.hosts.now = end;
            }
        }
        Advance::Ended
    }

    /// Processes every event before `end`; with `drain` only until no counted flow is left.
    fn run_until(&mut self, end: Instant, drain: bool, progress: Progress<'_>) -> Part {
        if end == Instant::ZERO {
            return Part::Done;
        }
        let last = end - Duration::from_nanos(1);
        // The drain ends with the event that completes the last flow.
        if !drain && self.may_gather() {
            return self.run_gathering(last, progress);
        }
        self.hosts.network.gather_ends(false);
        self.hosts.network.gathers_wires = false;
        loop {
            if self.hosts.network.next_arrival().is_some() {
                let most = match self.hosts.network.mode {
                    Mode::Fast => PROGRESS_EVENTS - self.events % PROGRESS_EVENTS,
                    Mode::Plain => 1,
                };
                let hosts = &mut self.hosts;
                let passed = hosts.network.pass(
                    &mut hosts.packets,
                    hosts.observer,
                    most.min(MOST_PASSED),
                    Instant::FAR_FUTURE,
                );
                // Junctions run ahead of each other: this may be earlier than before.
                self.hosts.now = passed.now;
                self.events += passed.events;
                if let Some((link, packet)) = passed.at_end {
                    self.on_delivery(link, passed.now, packet);
                }
            } else if let Some(key) = self.hosts.network.pop_until(last) {
                debug_assert!(key.at() >= self.hosts.now, "time runs forwards");
                if key.kind() == EventKind::Arrival {
                    continue; // known from now on
                }
                self.on_event(key);
                self.events += 1;
            } else {
                break;
            }
            if !self.hosts.network.early.is_empty() {
                self.hosts.run_ahead(&mut self.apps);
            }
            if !self.hosts.network.notices.is_empty() {
                self.hosts.take_notices(&mut self.apps);
            }
            if self.events.is_multiple_of(PROGRESS_EVENTS)
                && progress(self.hosts.now, &|| self.usage()).is_break()
            {
                self.interrupted = true;
                return Part::Interrupted;
            }
            if drain && self.hosts.open == 0 {
                break;
            }
            if O::PAUSES && self.hosts.observer.pauses() {
                return Part::Paused;
            }
        }
        Part::Done
    }

    /// An event that is no arrival.
    #[inline(always)]
    fn on_event(&mut self, key: EventKey) {
        self.hosts.now = key.at();
        match key.kind() {
            EventKind::Arrival => {}
            EventKind::Timer | EventKind::Pacing => self.hosts.on_timer(&mut self.apps, key),
            EventKind::App => {
                self.apps
                    .on_actor(&mut self.hosts, key.place(), key.number(), key.at());
            }
            EventKind::Interrupt => {
                self.hosts.on_interrupt(&mut self.apps, key.place(), key.at());
            }
            EventKind::Delayed => self.on_delayed(key.place(), key.number(), key.at()),
            EventKind::Departure => {
                self.hosts
                    .network
                    .on_departure(self.hosts.observer, key.place(), key.at());
            }
        }
    }

    /// A packet is at the end of its path.
    #[inline(never)]
    fn on_delivery(&mut self, link: u32, now: Instant, packet: u32) {
        let World { hosts, apps, .. } = self;
        if !hosts.delays || !apps.delay(hosts, link, now, packet) {
            hosts.hand_up(apps, now, packet);
        }
    }

    /// The time of packets that were kept has come.
    fn on_delayed(&mut self, group: u32, number: u32, now: Instant) {
        while let Some(id) = self.apps.next_delayed(&mut self.hosts, group, number, now) {
            self.hosts.hand_up(&mut self.apps, now, id);
        }
    }

    pub(crate) fn finish(mut self) -> RunOutput {
        let groups = self.apps.finish(&mut self.hosts);
        RunOutput {
            groups,
            links: self.hosts.network.into_meters().map(Meter::output).collect(),
            events: self.events,
            ended: self.hosts.now,
            interrupted: self.interrupted,
        }
    }
}

/// Events between two calls of the progress function.
const PROGRESS_EVENTS: u64 = 1 << 16;

/// Arrivals at a time, so that what they bring is still in the caches when it is taken.
const MOST_PASSED: u64 = 1024;
