//! One direction of the described link: frames in with the time at which they came, frames out when they are due.

use crate::emulator::{Emulator, Way};
use crate::forged::{Before, Forger};
use crate::frames::{self, Frames, HostNumbers};
use crate::outlet::{Measured, Outlet};
use crate::packet_socket::{Refusal, Sent};
use crate::window::{Counted, Measuring, Passed, Window};
use crate::{Clock, Error, Event, Tap};
use fleetfoot_core::link::{Link, LinkObserver, LinkStatistics};
use fleetfoot_core::packet::{Flags, Packet};
use fleetfoot_core::queue::{AnyQueue, DropReason, QueueDiscipline, QueueEventKind};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::output::{Forged, Histogram};
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

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
    /// The measured time of a run, outside of which nothing is counted.
    window: Option<Window>,
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
            window: None,
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

    /// Counts only within this time, for [`Direction::counted`].
    pub(crate) fn count_within(&mut self, measuring: Measuring) {
        self.window = Some(Window::new(measuring));
    }

    /// What was counted, within the measured time where there is one.
    pub(crate) fn counted(&self) -> Counted {
        let now = self.counters();
        match &self.window {
            Some(window) => window.within(now),
            None => now,
        }
    }

    fn counters(&self) -> Counted {
        Counted {
            link: *self.link.statistics(),
            bit_errors: self.bit_errors(),
            queue_delay: self.outlet.measured.queue_delay.clone(),
        }
    }

    fn bit_errors(&self) -> u64 {
        self.outlet.measured.drops[DropReason::BitError as usize]
    }

    /// The link is about to be carried on to `known`.
    fn pass(&mut self) {
        let passed = self.window.as_ref().map(|window| window.passed(self.known));
        let (Some(passed), bit_errors) = (passed, self.bit_errors()) else {
            return;
        };
        let counters = (passed == Passed::End).then(|| self.counters());
        let Some(window) = &mut self.window else {
            return;
        };
        if passed == Passed::Begin {
            window.begin(self.link.statistics(), bit_errors);
            self.outlet.measured.queue_delay = Histogram::new();
        } else if let Some(counters) = counters {
            window.end(counters);
        }
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
        self.pass();
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
        self.pass();
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
    fn work(emulator: &mut Emulator<Self>, clock: &Clock, stop: BorrowedFd<'_>) -> Result<(), Error> {
        emulator.work(clock, stop)
    }

    fn start(&mut self, clock: &Clock) {
        self.outlet.start(clock);
    }

    fn on_frame(&mut self, at: Instant, frame: &[u8]) {
        Direction::on_frame(self, at, frame);
    }

    fn on_cut(&mut self) {
        self.outlet.measured.refused[Refusal::TooLong as usize] += 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use fleetfoot_core::link::LinkConfig;
    use fleetfoot_core::parameter::Values;
    use fleetfoot_core::units::Rate;
    use std::convert::Infallible;

    /// 104 bytes at 832 kbit/s take a millisecond. A frame comes every half a millisecond for 20 ms, so the line is busy for 40 ms: that 10 to 20 ms are
    /// measured, it is full for 10 ms and sends ten packets in them, and those wait 5 to 10 ms.
    #[test]
    fn only_the_measured_time_counts() {
        let at = |us: u64| Instant::ZERO + Duration::from_micros(us);
        let entry = AnyQueue::entry_among(&[], "drop-tail").expect("a registered queue");
        let config = LinkConfig::new(Rate::from_bps(832_000), Duration::ZERO);
        let values = Values::defaults(entry.parameters);
        let queue = AnyQueue::build_among(&[], entry.name, &values, &config.link_context(1));
        let mut direction = Direction::new(Link::new(queue.expect("a queue"), &config, 1, "test"));
        let measuring = Measuring::default();
        direction.count_within(Measuring::clone(&measuring));
        measuring
            .set([at(10_000), at(20_000)])
            .expect("it was not known before");
        let mut frame = vec![0; 14 + 104];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[17] = 104; // total length
        let takes = |frames: &[IoSlice<'_>]| Ok::<_, Infallible>(Sent::Taken(frames.len()));
        for step in 0..100 {
            let now = at(500 * step);
            if step < 40 {
                direction.on_frame(now, &frame);
            }
            let Ok(()) = direction.poll_frames(now, || now, takes);
        }
        let counted = direction.counted();
        assert_eq!(counted.link.packets, 10, "{counted:?}");
        assert_eq!(counted.link.bytes.0, 1040);
        assert_eq!(counted.link.busy, Duration::from_millis(10));
        let waits = &counted.queue_delay;
        assert_eq!(waits.n(), 10);
        let [least, most] = [0.0, 1.0].map(|part| waits.quantile(part).unwrap_or(0) as f64 / 1e6);
        assert!(least > 4.5 && most < 10.5, "{least} to {most} ms");
        assert_eq!(direction.statistics().packets, 40, "the whole is there, too");
    }
}
