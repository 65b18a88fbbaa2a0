//! What is measured on a link: by a FIFO link as packets pass, by any other link as it reports.

use super::{Notice, Window};
use crate::observe::Observer;
use crate::output::{Histogram, LinkOutput};
use crate::spec::LinkIndex;
use fleetfoot_core::link::{
    Counted, FifoLink, LinkObserver, LinkStatistics, PacketSize, Schedule, WaitMeter,
};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::{Backlog, DropReason, QueueEvent};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) queue_delay: Histogram,
    pub(crate) queue_packets: Histogram,
    /// Time the serialiser was busy up to the end of the window; of a FIFO link, what it does not count itself.
    pub(crate) busy: Duration,
    pub(crate) rest: Box<Rest>,
}

/// What is seldom touched, apart from the rest: many links share the caches.
#[derive(Default)]
pub(crate) struct Rest {
    /// Packets in `queue_delay` that waited and that a FIFO link did not count.
    waited_at_edge: u64,
    /// Packets that arrived damaged, by class.
    pub(crate) damaged: [u64; 3],
    /// Counters at the beginning of the window, for links that are no FIFO links.
    pub(crate) before: LinkStatistics,
    pub(crate) busy_before: Duration,
    /// Counters at the end of the window; a FIFO link counts what falls into it.
    pub(crate) after: LinkStatistics,
    /// See [`LinkOutput::most_probes`].
    pub(crate) most_probes: Option<u32>,
}

impl Meter {
    /// Counts a packet that passes a FIFO link, ahead of time as it may be: what falls into the window. Packets that have been
    /// sent before `inside` lie within it.
    #[inline(always)]
    pub(crate) fn count_passage(
        &mut self,
        inside: Instant,
        window: Window,
        fifo: &mut FifoLink,
        size: PacketSize,
        now: Instant,
        schedule: Schedule,
    ) {
        let (start, finish) = (schedule.start, schedule.finish);
        if finish >= inside {
            fifo.pass_over(schedule);
            self.count_at_edge(window, size, now, start, finish, schedule.waiting);
            return;
        }
        fifo.count();
        if start != now {
            self.on_wait(start.since(now), schedule.waiting);
        }
    }

    /// Counts a packet whose wait or transmission may lie partly outside the measured window.
    #[cold]
    #[inline(never)]
    fn count_at_edge(
        &mut self,
        window: Window,
        size: PacketSize,
        now: Instant,
        start: Instant,
        finish: Instant,
        waiting: u32,
    ) {
        self.count_arrival(window, now, waiting);
        if window.contains(start) {
            let waited = start.since(now);
            self.queue_delay.record(waited.as_nanos());
            self.rest.waited_at_edge += u64::from(!waited.is_zero());
            self.rest.after.packets += 1;
            self.rest.after.data_packets += u64::from(size.is_data());
            self.rest.after.bytes += Bytes(u64::from(size.len()));
        }
        if start < window.to {
            self.busy += finish.min(window.to).since(start.max(window.from));
        }
    }

    /// Counts what a packet found waiting.
    pub(crate) fn count_arrival(&mut self, window: Window, now: Instant, waiting: u32) {
        if window.contains(now) {
            self.queue_packets.record(u64::from(waiting));
        }
    }

    /// Adds what a FIFO link counted.
    pub(crate) fn add(&mut self, counted: Counted) {
        self.rest.after.packets += counted.packets;
        self.rest.after.data_packets += counted.data_packets;
        self.rest.after.bytes += counted.bytes;
        self.busy += counted.busy;
        let waited = self.queue_delay.non_zeros() - self.rest.waited_at_edge;
        let idle = counted.packets - waited;
        self.queue_delay.record_zeros(idle);
        self.queue_packets.record_zeros(idle);
    }

    pub(crate) fn output(mut self) -> LinkOutput {
        self.queue_delay.pack();
        self.queue_packets.pack();
        let Rest {
            waited_at_edge: _,
            damaged,
            before,
            busy_before,
            after,
            most_probes,
        } = *self.rest;
        let mut drops: Vec<[u64; 3]> = after
            .drops
            .iter()
            .zip(before.drops)
            .map(|(after, before)| std::array::from_fn(|class| after[class] - before[class]))
            .collect();
        for (class, damaged) in damaged.into_iter().enumerate() {
            drops[DropReason::BitError as usize][class] += damaged;
        }
        LinkOutput {
            busy: self.busy - busy_before,
            packets: after.packets - before.packets,
            data_packets: after.data_packets - before.data_packets,
            bytes: after.bytes - before.bytes,
            drops,
            events: after
                .events
                .iter()
                .zip(before.events)
                .map(|(after, before)| after - before)
                .collect(),
            queue_delay: self.queue_delay,
            queue_packets: self.queue_packets,
            lateness: None,
            most_probes,
            forged: None,
        }
    }
}

impl WaitMeter for Meter {
    #[inline(always)]
    fn on_wait(&mut self, waited: Duration, waiting: u32) {
        self.queue_delay.record(waited.as_nanos());
        self.queue_packets.record(u64::from(waiting));
    }
}

/// Listens to one link during one call.
pub(crate) struct Tap<'t, O> {
    pub(crate) index: u32,
    pub(crate) window: Window,
    pub(crate) meter: &'t mut Meter,
    pub(crate) observer: &'t mut O,
    pub(crate) notices: &'t mut Vec<Notice>,
    /// The queue is in the host that sends.
    pub(crate) host: bool,
}

impl<O> Tap<'_, O> {
    /// A packet leaves the queue.
    fn tell(&mut self, packet: &Packet) {
        if self.host && packet.segment.payload > 0 {
            self.notices
                .push(Notice::Left(packet.flow, packet.segment.payload));
        }
    }
}

impl<O: Observer> LinkObserver for Tap<'_, O> {
    #[inline]
    fn on_arrival(&mut self, now: Instant, _packet: &Packet, waiting: Backlog) {
        if self.window.contains(now) {
            self.meter.queue_packets.record(u64::from(waiting.packets));
        }
    }

    #[inline]
    fn on_departure(&mut self, now: Instant, packet: &Packet, waited: Duration) {
        if self.window.contains(now) {
            self.meter.queue_delay.record(waited.as_nanos());
        }
        self.tell(packet);
    }

    #[inline]
    fn on_drop(&mut self, now: Instant, packet: &Packet, reason: DropReason) {
        self.observer.on_drop(now, LinkIndex(self.index), packet, reason);
        self.notices.push(Notice::Dropped(*packet, now));
        // What is lost on the wire has left the queue before, and was told of then.
        if reason != DropReason::RandomLoss {
            self.tell(packet);
        }
    }

    #[inline]
    fn on_duplicate(&mut self, _now: Instant, packet: &Packet) {
        self.notices.push(Notice::Doubled(*packet));
    }

    #[inline]
    fn on_event(&mut self, now: Instant, event: QueueEvent) {
        self.observer.on_queue_event(now, LinkIndex(self.index), &event);
    }
}
