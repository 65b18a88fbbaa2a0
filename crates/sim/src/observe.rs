//! Observers: what a run reports while it goes on.
//!
//! The engine is generic over its observer, so `()` costs nothing; any other is called through a pointer. Calls come in order per link and per endpoint, not
//! globally; a sink that needs global order sorts by time and place. Results ([`crate::output::RunOutput`]) do not depend
//! on the observer.

use crate::error::RunError;
use crate::output::RunOutput;
use crate::spec::{LinkIndex, Spec};
use crate::world::{self, Mode, Pause, Progress};
use fleetfoot_core::flow::{FlowId, FlowKey};
use fleetfoot_core::packet::{Packet, Segment};
use fleetfoot_core::queue::{DropReason, QueueEvent};
use fleetfoot_core::tcp::Connection;
use fleetfoot_core::tfrc;
use fleetfoot_core::time::{Duration, Instant};
use std::ops::Range;

/// What a run reports. All methods default to nothing; `()` and pairs implement it. A run may move to another thread while it pauses, and its
/// observer with it.
pub trait Observer: Send {
    /// The observer ignores everything: what would be computed for it alone is left out.
    const DEAF: bool = false;
    /// The observer may ask the run to pause. One that never does costs nothing.
    const PAUSES: bool = false;
    /// A run that this observer listens to: what [`world::watched`] calls. The engine is compiled twice, both times with this crate, as it
    /// is optimised: for `()`, and for all other observers behind a pointer ([`Behind`]).
    ///
    /// # Errors
    /// As [`world::run`].
    #[doc(hidden)]
    fn watched(&mut self, spec: &Spec, mode: Mode, progress: Progress<'_>) -> Result<RunOutput, RunError>
    where
        Self: Sized,
    {
        world::heard(spec, mode, self, progress)
    }
    /// Whether the run is to pause now. Asked after every event if [`Observer::PAUSES`].
    #[inline]
    fn pauses(&self) -> bool {
        false
    }
    /// An endpoint hands a segment to the network.
    #[inline]
    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment) {
        let _ = (now, flow, segment);
    }
    /// A packet arrives at the sending end of a link, before its queue.
    #[inline]
    fn on_enter(&mut self, now: Instant, at: LinkIndex, packet: &Packet) {
        let _ = (now, at, packet);
    }
    /// A packet reaches the far end of a link, `sojourn` after it arrived at the sending end.
    #[inline]
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, sojourn: Duration) {
        let _ = (now, at, packet, sojourn);
    }
    /// A packet is dropped.
    #[inline]
    fn on_drop(&mut self, now: Instant, at: LinkIndex, packet: &Packet, reason: DropReason) {
        let _ = (now, at, packet, reason);
    }
    /// A queue discipline reports something.
    #[inline]
    fn on_queue_event(&mut self, now: Instant, at: LinkIndex, event: &QueueEvent) {
        let _ = (now, at, event);
    }
    /// An endpoint has processed a segment and sent what it allowed. `flow` is the one that the endpoint sends.
    #[inline]
    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        let _ = (now, flow, connection);
    }
    /// Stream bytes arrived in order at the receiver of `flow`.
    #[inline]
    fn on_receive(&mut self, now: Instant, flow: FlowId, in_order: Range<u64>) {
        let _ = (now, flow, in_order);
    }
    /// A timer of the endpoint that sends `flow` fired and was acted on.
    #[inline]
    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        let _ = (now, flow, connection);
    }
    /// The sender of the TFRC stream that sends `flow` has taken feedback, or its no-feedback timer `expired`.
    #[inline]
    fn on_stream(&mut self, now: Instant, flow: FlowId, sender: &tfrc::Sender, expired: bool) {
        let _ = (now, flow, sender, expired);
    }
    /// An application did something.
    #[inline]
    fn on_app(&mut self, now: Instant, event: &AppEvent) {
        let _ = (now, event);
    }
}

/// What applications do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppEvent {
    /// A connection or datagram stream begins. Flow ids are used again after `Closed`.
    Opened {
        /// Index of the traffic group.
        group: u32,
        /// Index of the pair in the group.
        pair: u32,
        /// Number of the connection in its group.
        number: u32,
        /// Flow of the data.
        data: FlowId,
        /// Flow of the ACKs.
        acks: FlowId,
        /// Key of the data flow.
        key: FlowKey,
    },
    /// The connection opened last has a relay: these are the flows between it and the receiver of the data, towards the
    /// receiver and back. Those of [`AppEvent::Opened`] lie between the sender and the receiver of the data without a relay;
    /// with one the data is between the sender and the relay, and what the receiver sends goes to the relay.
    Relayed {
        /// Flow of the data.
        data: FlowId,
        /// Flow of what the relay sends to the sender of the data.
        acks: FlowId,
        /// Key of the data flow.
        key: FlowKey,
    },
    /// The ids may be used again.
    Closed {
        /// Flow of the data.
        data: FlowId,
    },
}

impl Observer for () {
    const DEAF: bool = true;
    fn watched(&mut self, spec: &Spec, mode: Mode, progress: Progress<'_>) -> Result<RunOutput, RunError> {
        world::begun(spec, mode, self, progress)
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    const DEAF: bool = A::DEAF && B::DEAF;
    const PAUSES: bool = A::PAUSES || B::PAUSES;
    #[inline]
    fn pauses(&self) -> bool {
        self.0.pauses() || self.1.pauses()
    }
    #[inline]
    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment) {
        self.0.on_send(now, flow, segment);
        self.1.on_send(now, flow, segment);
    }
    #[inline]
    fn on_enter(&mut self, now: Instant, at: LinkIndex, packet: &Packet) {
        self.0.on_enter(now, at, packet);
        self.1.on_enter(now, at, packet);
    }
    #[inline]
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, sojourn: Duration) {
        self.0.on_deliver(now, at, packet, sojourn);
        self.1.on_deliver(now, at, packet, sojourn);
    }
    #[inline]
    fn on_drop(&mut self, now: Instant, at: LinkIndex, packet: &Packet, reason: DropReason) {
        self.0.on_drop(now, at, packet, reason);
        self.1.on_drop(now, at, packet, reason);
    }
    #[inline]
    fn on_queue_event(&mut self, now: Instant, at: LinkIndex, event: &QueueEvent) {
        self.0.on_queue_event(now, at, event);
        self.1.on_queue_event(now, at, event);
    }
    #[inline]
    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.0.on_ack(now, flow, connection);
        self.1.on_ack(now, flow, connection);
    }
    #[inline]
    fn on_receive(&mut self, now: Instant, flow: FlowId, in_order: Range<u64>) {
        self.0.on_receive(now, flow, in_order.clone());
        self.1.on_receive(now, flow, in_order);
    }
    #[inline]
    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.0.on_timer(now, flow, connection);
        self.1.on_timer(now, flow, connection);
    }
    #[inline]
    fn on_stream(&mut self, now: Instant, flow: FlowId, sender: &tfrc::Sender, expired: bool) {
        self.0.on_stream(now, flow, sender, expired);
        self.1.on_stream(now, flow, sender, expired);
    }
    #[inline]
    fn on_app(&mut self, now: Instant, event: &AppEvent) {
        self.0.on_app(now, event);
        self.1.on_app(now, event);
    }
}

/// The calls of an [`Observer`], which has constants and so cannot be called through a pointer itself.
pub(crate) trait Calls: Send {
    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment);
    fn on_enter(&mut self, now: Instant, at: LinkIndex, packet: &Packet);
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, sojourn: Duration);
    fn on_drop(&mut self, now: Instant, at: LinkIndex, packet: &Packet, reason: DropReason);
    fn on_queue_event(&mut self, now: Instant, at: LinkIndex, event: &QueueEvent);
    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection);
    fn on_receive(&mut self, now: Instant, flow: FlowId, in_order: Range<u64>);
    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection);
    fn on_stream(&mut self, now: Instant, flow: FlowId, sender: &tfrc::Sender, expired: bool);
    fn on_app(&mut self, now: Instant, event: &AppEvent);
}

impl<O: Observer> Calls for O {
    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment) {
        Observer::on_send(self, now, flow, segment);
    }
    fn on_enter(&mut self, now: Instant, at: LinkIndex, packet: &Packet) {
        Observer::on_enter(self, now, at, packet);
    }
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, sojourn: Duration) {
        Observer::on_deliver(self, now, at, packet, sojourn);
    }
    fn on_drop(&mut self, now: Instant, at: LinkIndex, packet: &Packet, reason: DropReason) {
        Observer::on_drop(self, now, at, packet, reason);
    }
    fn on_queue_event(&mut self, now: Instant, at: LinkIndex, event: &QueueEvent) {
        Observer::on_queue_event(self, now, at, event);
    }
    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        Observer::on_ack(self, now, flow, connection);
    }
    fn on_receive(&mut self, now: Instant, flow: FlowId, in_order: Range<u64>) {
        Observer::on_receive(self, now, flow, in_order);
    }
    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        Observer::on_timer(self, now, flow, connection);
    }
    fn on_stream(&mut self, now: Instant, flow: FlowId, sender: &tfrc::Sender, expired: bool) {
        Observer::on_stream(self, now, flow, sender, expired);
    }
    fn on_app(&mut self, now: Instant, event: &AppEvent) {
        Observer::on_app(self, now, event);
    }
}

/// An observer of which the engine knows nothing but its calls, or the request to pause of a run in steps.
pub(crate) enum Behind<'o> {
    Calls(&'o mut dyn Calls),
    Pause(Pause),
}

impl Observer for Behind<'_> {
    const PAUSES: bool = true;
    #[inline]
    fn pauses(&self) -> bool {
        match self {
            Behind::Calls(_) => false,
            Behind::Pause(pause) => pause.pauses(),
        }
    }
    #[inline]
    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment) {
        if let Behind::Calls(observer) = self {
            observer.on_send(now, flow, segment);
        }
    }
    #[inline]
    fn on_enter(&mut self, now: Instant, at: LinkIndex, packet: &Packet) {
        if let Behind::Calls(observer) = self {
            observer.on_enter(now, at, packet);
        }
    }
    #[inline]
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, sojourn: Duration) {
        if let Behind::Calls(observer) = self {
            observer.on_deliver(now, at, packet, sojourn);
        }
    }
    #[inline]
    fn on_drop(&mut self, now: Instant, at: LinkIndex, packet: &Packet, reason: DropReason) {
        if let Behind::Calls(observer) = self {
            observer.on_drop(now, at, packet, reason);
        }
    }
    #[inline]
    fn on_queue_event(&mut self, now: Instant, at: LinkIndex, event: &QueueEvent) {
        if let Behind::Calls(observer) = self {
            observer.on_queue_event(now, at, event);
        }
    }
    #[inline]
    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        if let Behind::Calls(observer) = self {
            observer.on_ack(now, flow, connection);
        }
    }
    #[inline]
    fn on_receive(&mut self, now: Instant, flow: FlowId, in_order: Range<u64>) {
        if let Behind::Calls(observer) = self {
            observer.on_receive(now, flow, in_order);
        }
    }
    #[inline]
    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        if let Behind::Calls(observer) = self {
            observer.on_timer(now, flow, connection);
        }
    }
    #[inline]
    fn on_stream(&mut self, now: Instant, flow: FlowId, sender: &tfrc::Sender, expired: bool) {
        if let Behind::Calls(observer) = self {
            observer.on_stream(now, flow, sender, expired);
        }
    }
    #[inline]
    fn on_app(&mut self, now: Instant, event: &AppEvent) {
        if let Behind::Calls(observer) = self {
            observer.on_app(now, event);
        }
    }
}
