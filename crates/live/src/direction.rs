//! One direction of the described link: frames in with the time at which they came, frames out when they are due.

use crate::frames::{self, Frames};
use crate::packet_socket::{BATCH, Refusal, Sent};
use crate::{Clock, Event, Tap};
use fleetfoot_core::link::{Link, LinkObserver, LinkStatistics};
use fleetfoot_core::packet::{Flags, Packet};
use fleetfoot_core::queue::{AnyQueue, DropReason, QueueEventKind};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::output::Histogram;
use std::io::IoSlice;

/// One direction of the described link: the simulator's own [`Link`] with real frames in it.
pub struct Direction {
    link: Link<AnyQueue>,
    frames: Frames,
    measured: Measured,
    /// Packets that were dropped, that left the queue, and copies that were made, in the last call of the link.
    dropped: Vec<(Instant, Packet, DropReason)>,
    departed: Vec<(Packet, Duration)>,
    copies: Vec<Packet>,
    /// Frames that are due, in their order.
    due: Vec<Due>,
    /// Up to when the link has been carried on.
    known: Instant,
    /// Who is shown every frame.
    tap: Option<Tap>,
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

/// What the link reports, as it happens.
struct Watch<'a> {
    dropped: &'a mut Vec<(Instant, Packet, DropReason)>,
    departed: &'a mut Vec<(Packet, Duration)>,
    copies: &'a mut Vec<Packet>,
    measured: &'a mut Measured,
}

impl LinkObserver for Watch<'_> {
    fn on_departure(&mut self, _: Instant, packet: &Packet, waited: Duration) {
        self.departed.push((*packet, waited));
        self.measured.queue_delay.record(waited.as_nanos());
    }

    fn on_drop(&mut self, now: Instant, packet: &Packet, reason: DropReason) {
        self.measured.drops[reason as usize] += 1;
        self.dropped.push((now, *packet, reason));
    }

    fn on_duplicate(&mut self, _: Instant, packet: &Packet) {
        self.copies.push(*packet);
    }
}

impl Direction {
    /// A direction over `link`, in which nothing is under way yet.
    pub fn new(link: Link<AnyQueue>) -> Direction {
        Direction {
            link,
            frames: Frames::default(),
            measured: Measured::default(),
            dropped: Vec::new(),
            departed: Vec::new(),
            copies: Vec::new(),
            due: Vec::with_capacity(BATCH),
            known: Instant::ZERO,
            tap: None,
        }
    }

    /// Shows every frame to `tap` from now on.
    pub fn observe(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// The link begins, with this clock.
    pub(crate) fn start(&mut self, clock: &Clock) {
        if let Some(tap) = &mut self.tap {
            tap.start(clock);
        }
    }

    /// Does something with the link, and afterwards what follows from it for the frames.
    fn with<T>(&mut self, work: impl FnOnce(&mut Link<AnyQueue>, &Frames, &mut Watch<'_>) -> T) -> T {
        let mut watch = Watch {
            dropped: &mut self.dropped,
            departed: &mut self.departed,
            copies: &mut self.copies,
            measured: &mut self.measured,
        };
        let result = work(&mut self.link, &self.frames, &mut watch);
        for (packet, waited) in self.departed.drain(..) {
            self.frames.departed(&packet, waited);
        }
        for packet in self.copies.drain(..) {
            self.frames.duplicate(&packet);
        }
        for (at, packet, reason) in self.dropped.drain(..) {
            if let Some(tap) = &self.tap {
                tap.report(at, Event::Dropped(reason), self.frames.bytes(&packet));
            }
            self.frames.release(&packet);
        }
        result
    }

    /// A frame arrived at the queue at `at`. Where the link has been carried on beyond that, by a frame that came at the same
    /// moment on another core, it counts from there.
    pub fn on_frame(&mut self, at: Instant, frame: &[u8]) {
        self.known = self.known.max(at);
        let now = self.known;
        let seen = frames::read(frame, None);
        let Some((packet, taken_over)) = self.frames.keep(frame, None, &seen) else {
            return;
        };
        if let Some(flow) = taken_over {
            self.link.on_flow_end(flow);
        }
        self.measured.arrived += 1;
        if let Some(tap) = &self.tap {
            tap.report(at, Event::Entered, frame);
        }
        self.with(|link, frames, watch| link.on_packet(now, packet, frames.flows(), watch));
    }

    /// When [`Direction::poll_frames`] is to be called next; `None`: nothing is under way.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.link.poll_timeout()
    }

    /// Hands the frames that are due at `until` to `send`, in batches; `until` is the time up to which all arrivals are known.
    /// How late a frame is shows the clock `now` when its turn comes.
    ///
    /// # Errors
    /// Those of `send`.
    pub fn poll_frames<E>(
        &mut self,
        until: Instant,
        now: impl Fn() -> Instant,
        mut send: impl FnMut(&[IoSlice<'_>]) -> Result<Sent, E>,
    ) -> Result<(), E> {
        self.known = self.known.max(until);
        while self.collect() {
            let sent = self.hand_over(&now, &mut send);
            for due in self.due.drain(..) {
                self.frames.release(&due.packet);
            }
            sent?;
        }
        Ok(())
    }

    /// Takes a batch of frames that are due from the link: false if there are none.
    fn collect(&mut self) -> bool {
        let now = self.known;
        // Departures that are due come first: then the head of the wire is what is delivered next.
        self.with(|link, frames, watch| link.on_timeout(now, frames.flows(), watch));
        while self.due.len() < BATCH {
            let Some(at) = self.link.poll_timeout().filter(|&at| at <= now) else {
                break;
            };
            let packet = self.with(|link, frames, watch| link.poll_delivery(now, frames.flows(), watch));
            let Some(packet) = packet else {
                break;
            };
            if packet.segment.flags.contains(Flags::CORRUPT) {
                // The far end finds that the frame's check fails, and throws it away.
                self.measured.drops[DropReason::BitError as usize] += 1;
                if let Some(tap) = &self.tap {
                    tap.report(
                        at,
                        Event::Dropped(DropReason::BitError),
                        self.frames.bytes(&packet),
                    );
                }
                self.frames.release(&packet);
                continue;
            }
            self.frames.remark(&packet);
            let carried = matches!(self.frames.flows().key(packet.flow).protocol, TCP | UDP);
            self.due.push(Due { packet, at, carried });
        }
        !self.due.is_empty()
    }

    /// Sends the batch, and counts what became of each frame.
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

    /// What was measured so far.
    pub const fn measured(&self) -> &Measured {
        &self.measured
    }

    /// What the link has counted, up to the last call.
    pub fn statistics(&self) -> &LinkStatistics {
        self.link.statistics()
    }

    /// Packets that the queue marked with congestion experienced (ECN).
    pub fn marks(&self) -> u64 {
        self.link.statistics().count(QueueEventKind::Marked)
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
