//! One end of a conversation: its connection, what its application has in mind, its timer event.

use crate::event::EventKey;
use crate::network::{Mode, Network, Slab};
use crate::observe::Observer;
use crate::routing::PathStart;
use crate::spec::NodeId;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::superpacket::group::Grouper;
use fleetfoot_core::tcp::{
    Config, Connection, Event, EventKinds, Half, Models, StoredConnection, WriteFlags,
};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::sync::Arc;

/// One end of a conversation.
pub(crate) struct End {
    /// `None`: not opened yet, resting, or datagrams.
    pub(crate) connection: Option<Box<Connection>>,
    /// The connection while it is idle.
    pub(super) resting: Option<StoredConnection>,
    /// Time of the pending timer event; `FAR_FUTURE` without one.
    pub(super) timer_at: Instant,
    /// Stream bytes that arrived in order.
    pub(crate) received: u64,
    /// Stream offset at which the next message to this end is complete; `MAX`: none.
    pub(crate) goal: u64,
    /// Bytes that the application wants to write and the send buffer has not taken.
    pub(crate) to_write: u64,
    /// Path to the other end.
    pub(crate) path: PathStart,
    /// Number of the conversation in the run, for the order of events.
    pub(super) created: u32,
    /// The node it is at.
    pub(crate) node: NodeId,
    /// Deadline of its connection, `FAR_FUTURE` without one; nodes count those that are.
    pub(crate) deadline: Instant,
    /// Close after the last write.
    pub(crate) closing: bool,
    /// Nothing more will happen at this end.
    pub(crate) closed: bool,
    /// What it is for.
    pub(crate) part: Part,
    /// Forms super-packets of what it sends.
    pub(crate) grouper: Option<Box<Grouper>>,
    /// When its connection heeds what of its data waits in its host.
    pub(crate) heeds_host: Heeds,
}

/// When a connection heeds what of its data waits in its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heeds {
    /// Never: it does without, or its host's own link is none.
    Never,
    /// In long bursts: another link of the path is slower than its host's own.
    Bursts,
    /// Always: its host's own link is the slowest of the path.
    Always,
}

/// What an end is for, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// An application uses it.
    Host,
    /// A relay does, which carries on what arrives here.
    Relay,
    /// The peer has closed, which is to be carried on after what came before.
    Ended,
    /// The connection was reset or given up, which is to be carried on at once.
    Failed,
    /// Nothing more is to be carried on.
    Told,
}

impl End {
    pub(crate) fn new(path: PathStart, node: NodeId, created: u32) -> End {
        End {
            connection: None,
            resting: None,
            timer_at: Instant::FAR_FUTURE,
            received: 0,
            goal: u64::MAX,
            to_write: 0,
            path,
            created,
            node,
            deadline: Instant::FAR_FUTURE,
            closing: false,
            closed: false,
            part: Part::Host,
            grouper: None,
            heeds_host: Heeds::Never,
        }
    }
}

impl End {
    /// Lets the application write, sends, takes the events and arms the timer.
    #[expect(
        clippy::too_many_arguments,
        reason = "parts of the world that are borrowed one by one"
    )]
    pub(super) fn pump<O: Observer>(
        &mut self,
        now: Instant,
        number: u32,
        in_network: &mut u32,
        network: &mut Network,
        packets: &mut Slab,
        observer: &mut O,
        armed: &mut [u32],
    ) -> Acted {
        let Some(connection) = &mut self.connection else {
            return Acted::default();
        };
        let acted = if self.part == Part::Host {
            let mut application = Application {
                to_write: &mut self.to_write,
                closing: &mut self.closing,
            };
            application.act(now, connection)
        } else {
            self.part.act(connection)
        };
        if self.grouper.is_some() {
            self.group(now, in_network);
            return acted; // `World::release` sends and arms
        }
        let flow = FlowId(number);
        *in_network += match self.heeds_host {
            Heeds::Never => {
                network.send_all::<O, false>(packets, observer, now, self.path, flow, connection, u32::MAX)
            }
            Heeds::Bursts => network.send_burst(packets, observer, now, self.path, flow, connection),
            Heeds::Always => network.send_heard(packets, observer, now, self.path, flow, connection),
        };
        self.arm(now, number, network, armed);
        acted
    }

    /// Makes sure that an event comes no later than the deadline of the connection.
    #[inline(always)]
    pub(crate) fn arm(&mut self, now: Instant, number: u32, network: &mut Network, armed: &mut [u32]) {
        let Some(connection) = &self.connection else {
            return;
        };
        let mut wanted = connection.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        if let Some(held_until) = self.grouper.as_ref().and_then(|grouper| grouper.poll_timeout()) {
            wanted = wanted.min(held_until);
        }
        self.arm_at(now, number, wanted, network, armed);
    }

    /// Makes sure that an event comes no later than `wanted`.
    #[inline(always)]
    pub(crate) fn arm_at(
        &mut self,
        now: Instant,
        number: u32,
        wanted: Instant,
        network: &mut Network,
        armed: &mut [u32],
    ) {
        let wanted = wanted.max(now); // what is overdue is due at once
        let (before, after) = (self.is_armed(), wanted != Instant::FAR_FUTURE);
        self.deadline = wanted;
        if before != after {
            let count = &mut armed[self.node.0 as usize];
            *count = if after { *count + 1 } else { *count - 1 };
        }
        // A deadline that moves earlier needs an event of its own (docs/design/engine.md#timers); one that moves later can wait.
        if wanted < self.timer_at || network.mode == Mode::Plain && wanted != self.timer_at {
            self.timer_at = wanted;
            if wanted <= network.horizon {
                network.queue.push(EventKey::timer(wanted, self.created, number));
            }
        }
    }

    /// Whether its connection has a deadline.
    #[inline(always)]
    pub(crate) fn is_armed(&self) -> bool {
        self.deadline != Instant::FAR_FUTURE
    }

    /// Its timer event will find nothing.
    pub(crate) fn forget_timer(&mut self) {
        self.timer_at = Instant::FAR_FUTURE;
    }

    /// Whether it is one of the two ends that a relay has of a connection.
    #[inline(always)]
    pub(crate) fn at_relay(&self) -> bool {
        self.part != Part::Host
    }

    /// Whether this end is closed, or does nothing until a segment comes.
    pub(crate) fn is_idle(&self) -> bool {
        self.closed
            || self.to_write == 0
                && (self.resting.is_some() && !self.is_armed()
                    || self
                        .connection
                        .as_ref()
                        .is_some_and(|connection| connection.poll_timeout().is_none()))
    }

    /// Whether no timer does anything at this end before `end`, after which nothing happens.
    pub(super) fn is_quiet_until(&self, end: Instant) -> bool {
        (self.connection.is_some() || self.resting.is_some()) && self.to_write == 0 && self.deadline > end
    }

    /// Packs the connection if nothing is going on.
    pub(super) fn rest(&mut self, models: &mut Models) {
        if self.to_write == 0 && !self.closing && !self.is_armed() {
            self.pack(models);
        }
    }

    /// Packs the connection if nothing but a timer is awaited.
    pub(super) fn pack(&mut self, models: &mut Models) {
        if self.closed {
            return;
        }
        if let Some(connection) = &mut self.connection
            && let Some(resting) = connection.rest(models)
        {
            self.connection = None;
            self.resting = Some(resting);
        }
    }

    /// Packs the connection although it has data out or misses some.
    pub(super) fn pack_with_data_out(&mut self, models: &mut Models) {
        if let Some(connection) = &mut self.connection
            && let Some(resting) = connection.rest_with_data_out(models)
        {
            self.connection = None;
            self.resting = Some(resting);
        }
    }

    /// Unpacks the connection if it rests, on a host whose timer ticks stand at `ticks`.
    pub(super) fn wake(&mut self, models: &Models, config: &Arc<Config>, ticks: Duration) {
        if let Some(resting) = self.resting.take() {
            self.connection = Some(Box::new(resting.wake(models, config, ticks)));
        }
    }
}

/// What came of the events of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acted {
    /// The connection is over.
    pub(crate) over: bool,
    /// The connection knows more about its path.
    pub(crate) found: bool,
}

impl Part {
    /// Takes the events of a connection at a relay; says what came of them.
    #[cold]
    fn act(&mut self, connection: &mut Connection) -> Acted {
        let mut acted = Acted::default();
        while let Some(event) = connection.poll_event() {
            match event {
                Event::PeerClosed => *self = Part::Ended,
                Event::Closed => acted.over = true,
                Event::Failed(_) => {
                    acted.over = true;
                    *self = Part::Failed;
                }
                Event::Established
                | Event::Readable
                | Event::Writable
                | Event::SendClosed
                | Event::Retransmitting
                | Event::SoftError
                | Event::Urgent
                // The path of a relay's connections is not remembered.
                | Event::PathFound => {}
            }
        }
        acted
    }
}

/// What an application has in mind at one end.
pub(crate) struct Application<'a> {
    pub(crate) to_write: &'a mut u64,
    pub(crate) closing: &'a mut bool,
}

impl Application<'_> {
    /// Writes, closes and takes the events.
    #[inline(always)]
    pub(crate) fn act(&mut self, now: Instant, connection: &mut Connection) -> Acted {
        if *self.to_write > 0 {
            *self.to_write -= connection
                .write(now, Bytes(*self.to_write), WriteFlags::default())
                .get();
        }
        if *self.closing && *self.to_write == 0 {
            *self.closing = false;
            connection.shutdown(now, Half::Write);
        }
        self.take_events(now, connection)
    }

    /// Takes the events.
    #[inline(always)]
    pub(crate) fn take_events(&mut self, now: Instant, connection: &mut Connection) -> Acted {
        connection.discard(IGNORED);
        let mut acted = Acted::default();
        while let Some(event) = connection.poll_event() {
            match event {
                // A peer that is done is answered with our own FIN: applications here never half-close for long.
                Event::PeerClosed => {
                    if *self.to_write == 0 {
                        connection.shutdown(now, Half::Write);
                    } else {
                        *self.closing = true;
                    }
                }
                Event::Closed | Event::Failed(_) => acted.over = true,
                Event::PathFound => acted.found = true,
                Event::Established
                | Event::Readable
                | Event::Writable
                | Event::SendClosed
                | Event::Retransmitting
                | Event::SoftError
                | Event::Urgent => {}
            }
        }
        acted
    }
}

/// Events about which applications do nothing.
const IGNORED: EventKinds = EventKinds::NONE
    .with(Event::Established)
    .with(Event::Readable)
    .with(Event::Writable)
    .with(Event::SendClosed)
    .with(Event::Retransmitting)
    .with(Event::SoftError)
    .with(Event::Urgent);
