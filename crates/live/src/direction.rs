//! One direction of the described link: frames in with the time at which they came, frames out when they are due.

use crate::emulator::Way;
use crate::forged::{Before, Forger};
use crate::frames::{self, Frames, HostNumbers};
use crate::outlet::{Measured, Outlet};
use crate::packet_socket::{Refusal, Sent};
use crate::{Clock, Event, Tap};
use fleetfoot_core::link::{Link, LinkObserver, LinkStatistics};
use fleetfoot_core::packet::{Flags, Packet};
use fleetfoot_core::queue::{AnyQueue, DropReason, QueueDiscipline, QueueEventKind};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::output::Forged;
use std::io::IoSlice;

/// One direction of the described link: the simulator's own [`Link`] with real frames in it.
pub struct Direction {
    link: Link<AnyQueue>,
    outlet: Outlet,
    /// Packets that were dropped, that left the queue, and copies that were made, in the last call of the link.
    dropped: Vec<(Instant, Packet, DropReason)>,
    departed: Vec<(Packet, Duration)>,
    copies: Vec<Packet>,
    /// Up to when the link has been carried on.
    known: Instant,
    /// What forged packets met, if that is counted.
    forged: Option<Forged>,
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
            outlet: Outlet::new(Frames::default()),
            dropped: Vec::new(),
            departed: Vec::new(),
            copies: Vec::new(),
            known: Instant::ZERO,
            forged: None,
        }
    }

    /// Keeps so many frames at once at most, in the queue and under way; others are refused and counted.
    #[must_use]
    pub fn with_room_for(mut self, frames: usize) -> Direction {
        self.outlet.frames = Frames::of_at_most(frames);
        self
    }

    /// Shows every frame to `tap` from now on.
    pub fn observe(&mut self, tap: Tap) {
        self.outlet.tap = Some(tap);
    }

    /// Counts from now on what forged packets meet, if the queue keeps places for super-packets.
    pub(crate) fn count_forged(&mut self) {
        self.forged = self.link.queue().most_probes().map(|_| Forged::default());
    }

    /// What forged packets met.
    pub(crate) const fn forged(&self) -> Option<Forged> {
        self.forged
    }

    /// Most places of its tables that the queue looked at for one packet.
    pub(crate) fn most_probes(&self) -> Option<u32> {
        self.link.queue().most_probes()
    }

    /// Tells the number of every host that comes from now on.
    pub(crate) fn tell_hosts(&mut self, numbers: HostNumbers) {
        self.outlet.frames.tell_hosts(numbers);
    }

    /// Does something with the link, and afterwards what follows from it for the frames.
    fn with<T>(&mut self, work: impl FnOnce(&mut Link<AnyQueue>, &Frames, &mut Watch<'_>) -> T) -> T {
        let mut watch = Watch {
            dropped: &mut self.dropped,
            departed: &mut self.departed,
            copies: &mut self.copies,
            measured: &mut self.outlet.measured,
        };
        let result = work(&mut self.link, &self.outlet.frames, &mut watch);
        for (packet, waited) in self.departed.drain(..) {
            self.outlet.frames.departed(&packet, waited);
        }
        for packet in self.copies.drain(..) {
            self.outlet.frames.duplicate(&packet);
        }
        for (at, packet, reason) in self.dropped.drain(..) {
            self.outlet.frames.remark(&packet); // a queue may mark a packet and find then that it has no room for it
            self.outlet.report(at, Event::Dropped(reason), &packet);
            self.outlet.frames.release(&packet);
        }
        result
    }

    /// A frame arrived at the queue at `at`. Where the link has been carried on beyond that, by a frame that came at the same
    /// moment on another core, it counts from there.
    pub fn on_frame(&mut self, at: Instant, frame: &[u8]) {
        self.known = self.known.max(at);
        let now = self.known;
        let seen = frames::read(frame, None);
        let Some((packet, taken_over)) = self.outlet.frames.keep(frame, None, &seen) else {
            self.outlet.measured.refused[Refusal::NoRoom as usize] += 1;
            return;
        };
        if let Some(flow) = taken_over {
            self.link.on_flow_end(flow);
        }
        self.outlet.measured.arrived += 1;
        self.outlet.report(now, Event::Entered, &packet);
        let forger = self.forged.and_then(|_| Forger::of(frame));
        let before = Before::read(self.link.statistics());
        self.with(|link, frames, watch| link.on_packet(now, packet, frames.flows(), watch));
        if let (Some(forger), Some(forged)) = (forger, &mut self.forged) {
            before.count(forger, self.link.statistics(), forged);
        }
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
            self.outlet.send(&now, &mut send)?;
        }
        Ok(())
    }

    /// Takes a batch of frames that are due from the link: false if there are none.
    fn collect(&mut self) -> bool {
        let now = self.known;
        // Departures that are due come first: then the head of the wire is what is delivered next.
        self.with(|link, frames, watch| link.on_timeout(now, frames.flows(), watch));
        while !self.outlet.is_full() {
            let Some(at) = self.link.poll_timeout().filter(|&at| at <= now) else {
                break;
            };
            let packet = self.with(|link, frames, watch| link.poll_delivery(now, frames.flows(), watch));
            let Some(packet) = packet else {
                break;
            };
            if packet.segment.flags.contains(Flags::CORRUPT) {
                // The far end finds that the frame's check fails, and throws it away.
                self.outlet.measured.drops[DropReason::BitError as usize] += 1;
                self.outlet
                    .report(at, Event::Dropped(DropReason::BitError), &packet);
                self.outlet.frames.release(&packet);
                continue;
            }
            self.outlet.frames.remark(&packet);
            self.outlet.push(packet, at);
        }
        !self.outlet.is_empty()
    }

    /// What was measured so far.
    pub const fn measured(&self) -> &Measured {
        &self.outlet.measured
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

impl Way for Direction {
    fn start(&mut self, clock: &Clock) {
        self.outlet.start(clock);
    }

    fn on_frame(&mut self, at: Instant, frame: &[u8]) {
        Direction::on_frame(self, at, frame);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Direction::poll_timeout(self)
    }

    fn poll_frames<E>(
        &mut self,
        until: Instant,
        now: impl Fn() -> Instant,
        send: impl FnMut(&[IoSlice<'_>]) -> Result<Sent, E>,
    ) -> Result<(), E> {
        Direction::poll_frames(self, until, now, send)
    }
}
