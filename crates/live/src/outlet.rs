//! Where the frames of a direction leave: in batches, measured, and shown to an observer.

use crate::frames::Frames;
use crate::packet_socket::{BATCH, Refusal, Sent};
use crate::{Clock, Event, Tap};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::output::Histogram;
use std::io::IoSlice;

/// The frames of a direction, and what became of those that left.
pub(crate) struct Outlet {
    pub(crate) frames: Frames,
    /// Frames that are due, in their order.
    due: Vec<Due>,
    pub(crate) measured: Measured,
    /// Who is shown every frame.
    pub(crate) tap: Option<Tap>,
}

/// A frame that the far end is to have.
#[derive(Clone, Copy)]
struct Due {
    packet: Packet,
    at: Instant,
    /// Whether it is TCP or UDP.
    carried: bool,
}

/// What a direction has measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Frames that arrived at the queue.
    pub arrived: u64,
    /// Frames that were delivered.
    pub delivered: u64,
    /// Layer-3 bytes that were delivered.
    pub bytes: u64,
    /// When the first and the last of them were. Where TCP or UDP passed, it begins with the first of that: hosts look for
    /// each other long before a command sends something.
    pub span: Option<(Instant, Instant)>,
    /// Whether TCP or UDP was among them.
    carried: bool,
    /// Time in the queue of each frame that left it, nanoseconds.
    pub queue_delay: Histogram,
    /// How much later than the link would have frames were delivered, nanoseconds.
    pub lateness: Histogram,
    /// Deliveries that were more than a millisecond late.
    pub late: u64,
    /// Frames dropped, by reason.
    pub drops: [u64; DropReason::ALL.len()],
    /// Frames that the interface at the far end did not take, by reason.
    pub refused: [u64; Refusal::ALL.len()],
}

impl Outlet {
    pub(crate) fn new(frames: Frames) -> Outlet {
        Outlet {
            frames,
            due: Vec::with_capacity(BATCH),
            measured: Measured::default(),
            tap: None,
        }
    }

    /// The direction begins, with this clock.
    pub(crate) fn start(&mut self, clock: &Clock) {
        if let Some(tap) = &mut self.tap {
            tap.start(clock);
        }
    }

    /// Shows the observer what happened to a frame.
    pub(crate) fn report(&self, at: Instant, event: Event, packet: &Packet) {
        if let Some(tap) = &self.tap {
            tap.report(at, event, self.frames.bytes(packet));
        }
    }

    /// A frame is due.
    pub(crate) fn push(&mut self, packet: Packet, at: Instant) {
        let carried = matches!(self.frames.flows().key(packet.flow).protocol, TCP | UDP);
        self.due.push(Due { packet, at, carried });
    }

    /// Whether as many are due as are sent at once.
    pub(crate) fn is_full(&self) -> bool {
        self.due.len() >= BATCH
    }

    /// Whether none is due.
    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Sends the frames that are due, and counts what became of each.
    ///
    /// # Errors
    /// Those of `send`.
    pub(crate) fn send<E>(
        &mut self,
        now: &impl Fn() -> Instant,
        send: &mut impl FnMut(&[IoSlice<'_>]) -> Result<Sent, E>,
    ) -> Result<(), E> {
        let sent = self.hand_over(now, send);
        for due in self.due.drain(..) {
            self.frames.release(&due.packet);
        }
        sent
    }

    fn hand_over<E>(
        &mut self,
        now: &impl Fn() -> Instant,
        send: &mut impl FnMut(&[IoSlice<'_>]) -> Result<Sent, E>,
    ) -> Result<(), E> {
        let mut slices = [IoSlice::new(&[]); BATCH];
        for (slice, due) in slices.iter_mut().zip(&self.due) {
            *slice = IoSlice::new(self.frames.bytes(&due.packet));
        }
        let mut rest = &slices[..self.due.len()];
        let mut batch = &self.due[..];
        let mut began = now();
        while !rest.is_empty() {
            match send(rest)? {
                Sent::Taken(count) => {
                    let (taken, left) = batch.split_at(count.clamp(1, batch.len()));
                    let ended = if taken.len() > 1 || !left.is_empty() {
                        now()
                    } else {
                        began
                    };
                    self.measured.count(taken, began, ended, |due, now, late| {
                        if let Some(tap) = &self.tap {
                            let waited = self.frames.waited(&due.packet);
                            let left = Event::Left { waited, late };
                            tap.report(now, left, self.frames.bytes(&due.packet));
                        }
                    });
                    (batch, rest, began) = (left, &rest[taken.len()..], ended);
                }
                Sent::Refused(refusal) => {
                    self.measured.refused[refusal as usize] += 1;
                    if let (Some(tap), Some(due)) = (&self.tap, batch.first()) {
                        tap.report(began, Event::Refused(refusal), self.frames.bytes(&due.packet));
                    }
                    (batch, rest) = (&batch[1..], &rest[1..]);
                }
            }
        }
        Ok(())
    }
}

impl Measured {
    /// Counts frames that went out one after the other from `began` to `ended`; `each_frame` gets when, and how late.
    fn count(
        &mut self,
        taken: &[Due],
        began: Instant,
        ended: Instant,
        mut each_frame: impl FnMut(&Due, Instant, Duration),
    ) {
        let each = ended.since(began).as_nanos() / taken.len().max(1) as u64;
        let mut now = began;
        for due in taken {
            let late = now.since(due.at);
            self.lateness.record(late.as_nanos());
            self.late += u64::from(late > Duration::from_millis(1));
            each_frame(due, now, late);
            self.delivered += 1;
            self.bytes += u64::from(due.packet.segment.len());
            let begins = due.carried && !self.carried;
            self.carried |= due.carried;
            let first = self.span.filter(|_| !begins).map_or(now, |(first, _)| first);
            self.span = Some((first, now));
            now += Duration::from_nanos(each);
        }
    }

    /// Frames that the interface at the far end did not take, for whatever reason.
    pub fn refused_packets(&self) -> u64 {
        self.refused.iter().sum()
    }
}

/// Protocol numbers of IP.
const TCP: u8 = libc::IPPROTO_TCP as u8;
const UDP: u8 = libc::IPPROTO_UDP as u8;
