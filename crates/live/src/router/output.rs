//! What leaves by one interface: a registered queue discipline, shaped or at line rate, and the frames that wait in it.
//!
//! At a rate the queue stands before the simulator's own [`Link`], without a delay. At line rate a frame leaves the queue when the
//! interface takes it: what the interface does not take at once waits, and the discipline decides what leaves next.
//!
//! **Another queue takes over** ([`Output::replace`]) without losing a packet: what waits in the old one leaves by the old one's
//! rules, at the new rate, before the first packet that came after. The packet that is being sent at that moment is handed to the
//! interface at once.

use super::config::{InterfaceConfig, Queue};
use super::spans::Spans;
use crate::Error;
use crate::frames::{Frames, HEADER, Seen, TAG};
use crate::packet_socket::{BATCH, Refusal, Sent};
use fleetfoot_core::link::{Link, LinkConfig, LinkObserver};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::{
    AnyQueue, Backlog, DropReason, QueueContext, QueueDiscipline, QueueEvent, QueueEventKind,
};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use std::collections::VecDeque;
use std::io::IoSlice;

/// The queue before an interface.
pub(super) struct Output {
    frames: Frames,
    path: Path,
    mtu: u32,
    /// Packets that were dropped in the last call of the queue.
    dropped: Vec<Packet>,
    /// Packets that have left the queue; those from `begin` on the interface has not taken.
    due: Vec<Due>,
    begin: usize,
    /// The interface was full: when it is asked again.
    retry: Option<Instant>,
    /// Up to when the queue has been carried on.
    known: Instant,
    counters: OutputCounters,
}

/// A packet that the interface is to have.
#[derive(Clone, Copy)]
struct Due {
    packet: Packet,
    /// When.
    at: Instant,
}

/// What an output has counted.
#[derive(Clone, Debug)]
pub struct OutputCounters {
    /// Frames that arrived at the queue.
    pub queued: u64,
    /// Frames that the interface took, and their bytes at layer 3.
    pub sent: u64,
    /// Their bytes at layer 3.
    pub bytes: u64,
    /// Frames that the queue dropped, by reason ([`DropReason::ALL`]).
    pub drops: [u64; DropReason::ALL.len()],
    /// What the queue reported besides ([`QueueEventKind::ALL`]).
    pub events: [u64; QueueEventKind::ALL.len()],
    /// Frames that the interface did not take and that are lost, by reason ([`Refusal::ALL`]).
    pub refused: [u64; Refusal::ALL.len()],
    /// How often the interface was full, and frames had to wait.
    pub full: u64,
    /// Times in the queue.
    pub delay: Spans,
    /// How much later than the described queue and rate frames were handed to the interface. Without a rate: how long after the
    /// kernel had received them, where nothing had to wait for the interface.
    pub lateness: Spans,
}

impl Default for OutputCounters {
    fn default() -> OutputCounters {
        OutputCounters {
            queued: 0,
            sent: 0,
            bytes: 0,
            drops: [0; DropReason::ALL.len()],
            events: [0; QueueEventKind::ALL.len()],
            refused: [0; Refusal::ALL.len()],
            full: 0,
            delay: Spans::default(),
            lateness: Spans::default(),
        }
    }
}

impl OutputCounters {
    /// Frames that the queue dropped.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }
}

/// How packets leave the queue.
enum Path {
    /// At a rate.
    Shaped(Box<Link<Succession>>),
    /// When the interface takes them.
    Line(Box<Line>),
}

/// A queue at line rate.
#[derive(Default)]
struct Line {
    queue: Succession,
    ingress: u16,
    drops: Vec<(Packet, DropReason)>,
    events: Vec<QueueEvent>,
}

/// Disciplines that took over from each other: arrivals go to the last; the first that holds something is emptied first.
#[derive(Default)]
struct Succession {
    queues: VecDeque<AnyQueue>,
}

impl Succession {
    fn of(queue: AnyQueue) -> Succession {
        Succession {
            queues: VecDeque::from([queue]),
        }
    }
}

impl QueueDiscipline for Succession {
    #[inline]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        match self.queues.back_mut() {
            Some(queue) => queue.enqueue(now, packet, context),
            None => context.drops.push((packet, DropReason::Full)),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        while self.queues.len() > 1 {
            let oldest = self.queues.front_mut()?;
            if oldest.backlog().packets > 0 {
                if oldest.ready_at().is_some_and(|ready| ready > now) {
                    return None;
                }
                // Where the discipline drops all that waits there is nothing to return.
                if let Some(packet) = oldest.dequeue(now, context) {
                    return Some(packet);
                }
                if oldest.backlog().packets > 0 {
                    return None;
                }
            }
            self.queues.pop_front();
        }
        self.queues.front_mut()?.dequeue(now, context)
    }

    fn on_sent(&mut self) {
        if let Some(queue) = self.queues.front_mut() {
            queue.on_sent();
        }
    }

    #[inline]
    fn ready_at(&self) -> Option<Instant> {
        self.queues.iter().find_map(QueueDiscipline::ready_at)
    }

    fn backlog(&self) -> Backlog {
        let mut all = Backlog::default();
        for queue in &self.queues {
            let backlog = queue.backlog();
            all.packets += backlog.packets;
            all.bytes += backlog.bytes;
        }
        all
    }

    fn asks_ingress(&self) -> bool {
        self.queues.iter().any(QueueDiscipline::asks_ingress)
    }

    fn most_probes(&self) -> Option<u32> {
        self.queues.iter().filter_map(QueueDiscipline::most_probes).max()
    }
}

/// What a queue does with packets, as it happens.
struct Watch<'a> {
    dropped: &'a mut Vec<Packet>,
    counters: &'a mut OutputCounters,
}

impl LinkObserver for Watch<'_> {
    #[inline]
    fn on_departure(&mut self, _: Instant, _: &Packet, waited: Duration) {
        self.counters.delay.record(waited);
    }

    fn on_drop(&mut self, _: Instant, packet: &Packet, reason: DropReason) {
        self.counters.drops[reason as usize] += 1;
        self.dropped.push(*packet);
    }

    fn on_event(&mut self, _: Instant, event: QueueEvent) {
        self.counters.events[event.kind as usize] += u64::from(event.count);
    }
}

impl Line {
    #[inline]
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: Packet,
        mtu: u32,
        frames: &Frames,
        watch: &mut Watch<'_>,
    ) {
        packet.enqueued_at = now;
        if packet.segment.len() > mtu {
            watch.on_drop(now, &packet, DropReason::TooBig);
            return;
        }
        let mut context = QueueContext {
            flows: frames.flows(),
            ingress: self.ingress,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        self.queue.enqueue(now, packet, &mut context);
        self.report(now, watch);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, frames: &Frames, watch: &mut Watch<'_>) -> Option<Packet> {
        let mut context = QueueContext {
            flows: frames.flows(),
            ingress: self.ingress,
            drops: &mut self.drops,
            events: &mut self.events,
        };
        let ready = self.queue.ready_at().is_none_or(|ready| ready <= now);
        let packet = ready.then(|| self.queue.dequeue(now, &mut context)).flatten();
        self.report(now, watch);
        if let Some(packet) = &packet {
            watch.on_departure(now, packet, now.since(packet.enqueued_at));
        }
        packet
    }

    #[inline]
    fn report(&mut self, now: Instant, watch: &mut Watch<'_>) {
        if self.drops.is_empty() && self.events.is_empty() {
            return;
        }
        for (packet, reason) in self.drops.drain(..) {
            watch.on_drop(now, &packet, reason);
        }
        for event in self.events.drain(..) {
            watch.on_event(now, event);
        }
    }
}

/// A path with `queues` in it.
fn path(queues: Succession, rate: Option<Rate>, framing: u32, mtu: u32) -> Path {
    match rate {
        Some(rate) if rate != Rate::UNLIMITED => {
            let config = LinkConfig {
                mtu,
                framing,
                ..LinkConfig::new(rate, Duration::ZERO)
            };
            Path::Shaped(Box::new(Link::new(queues, &config, 0, "output")))
        }
        _ => Path::Line(Box::new(Line {
            queue: queues,
            ..Line::default()
        })),
    }
}

impl Output {
    /// The output of an interface with the MTU `mtu`; `seed` is not to be guessed by those who send. `None`: there is no such queue.
    pub(super) fn new(config: &InterfaceConfig, mtu: u32, seed: u64) -> Option<Output> {
        let queue = config.queue.build(mtu, config.rate, config.framing, seed)?;
        Some(Output {
            frames: Frames::of_at_most(most_frames(mtu)),
            path: path(Succession::of(queue), config.rate, config.framing, mtu),
            mtu,
            dropped: Vec::new(),
            due: Vec::with_capacity(BATCH),
            begin: 0,
            retry: None,
            known: Instant::ZERO,
            counters: OutputCounters::default(),
        })
    }

    /// Another queue, rate or MTU takes over. `None`: there is no such queue, and nothing has changed.
    pub(super) fn replace(
        &mut self,
        queue: &Queue,
        rate: Option<Rate>,
        framing: u32,
        mtu: u32,
        seed: u64,
    ) -> Option<()> {
        let queue = queue.build(mtu, rate, framing, seed)?;
        let mut queues = match std::mem::replace(&mut self.path, Path::Line(Box::default())) {
            Path::Shaped(link) => {
                let (under_way, queues) = link.into_parts();
                for packet in under_way {
                    self.frames.remark(&packet);
                    let at = self.known;
                    self.due.push(Due { packet, at });
                }
                queues
            }
            Path::Line(line) => line.queue,
        };
        queues.queues.retain(|queue| queue.backlog().packets > 0);
        queues.queues.push_back(queue);
        self.mtu = mtu;
        self.path = path(queues, rate, framing, mtu);
        if let Path::Shaped(link) = &mut self.path {
            link.begin_at(self.known);
        }
        Some(())
    }

    /// A frame that came at `at` by the interface number `ingress` is to leave here. `patch` changes its bytes, of which those from
    /// the given place on are the packet. False if there is no memory for it.
    #[inline]
    pub(super) fn push(
        &mut self,
        at: Instant,
        ingress: u16,
        frame: &[u8],
        tag: Option<[u8; TAG]>,
        seen: &Seen,
        patch: impl FnOnce(&mut [u8], usize),
    ) -> bool {
        self.known = self.known.max(at);
        let Some((packet, taken_over)) = self.frames.keep(frame, tag, seen) else {
            return false;
        };
        let (bytes, network) = self.frames.bytes_mut(&packet);
        patch(bytes, network);
        self.counters.queued += 1;
        let mut watch = Watch {
            dropped: &mut self.dropped,
            counters: &mut self.counters,
        };
        match &mut self.path {
            Path::Shaped(link) => {
                if let Some(flow) = taken_over {
                    link.on_flow_end(flow);
                }
                link.set_ingress(ingress + 1);
                link.on_packet(self.known, packet, self.frames.flows(), &mut watch);
            }
            Path::Line(line) => {
                line.ingress = ingress + 1;
                line.enqueue(self.known, packet, self.mtu, &self.frames, &mut watch);
            }
        }
        self.release_dropped();
        // At line rate nothing waits but for an interface that is full.
        if matches!(self.path, Path::Line(_)) && self.retry.is_none() && self.due.len() < BATCH {
            self.collect(at);
        }
        true
    }

    #[inline]
    fn release_dropped(&mut self) {
        for packet in self.dropped.drain(..) {
            self.frames.release(&packet);
        }
    }

    /// When [`Output::flush`] is to be called next; `None`: nothing waits.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.begin < self.due.len() {
            return Some(self.retry.unwrap_or(self.known));
        }
        match &self.path {
            Path::Shaped(link) => link.poll_timeout(),
            Path::Line(line) => line.queue.ready_at(),
        }
    }

    /// Hands what is due at `now` to `send`, in batches, as far as the interface takes it.
    ///
    /// # Errors
    /// The errors of `send`.
    pub(super) fn flush(
        &mut self,
        now: Instant,
        mut send: impl FnMut(&[IoSlice<'_>]) -> Result<Sent, Error>,
    ) -> Result<(), Error> {
        self.known = self.known.max(now);
        if self.retry.is_some_and(|retry| self.known < retry) {
            return Ok(());
        }
        self.retry = None;
        loop {
            if self.begin == self.due.len() {
                self.due.clear();
                self.begin = 0;
                self.collect(self.known);
            }
            let batch = &self.due[self.begin..];
            if batch.is_empty() {
                return Ok(());
            }
            let mut slices = [IoSlice::new(&[]); BATCH];
            let count = batch.len().min(BATCH);
            for (slice, due) in slices.iter_mut().zip(batch) {
                *slice = IoSlice::new(self.frames.bytes(&due.packet));
            }
            let done = match send(&slices[..count])? {
                Sent::Taken(taken) => {
                    let taken = taken.clamp(1, count);
                    self.counters.sent += taken as u64;
                    for due in &batch[..taken] {
                        self.counters.bytes += u64::from(due.packet.segment.len());
                        self.counters.lateness.record(self.known.since(due.at));
                    }
                    taken
                }
                Sent::Refused(Refusal::Full) => {
                    self.counters.full += 1;
                    self.retry = Some(self.known + RETRY);
                    return Ok(());
                }
                Sent::Refused(refusal) => {
                    self.counters.refused[refusal as usize] += 1;
                    1
                }
            };
            for due in &self.due[self.begin..self.begin + done] {
                self.frames.release(&due.packet);
            }
            self.begin += done;
        }
    }

    /// Takes a batch of packets that are due from the queue; without a rate they have been due since `came`.
    fn collect(&mut self, came: Instant) {
        let now = self.known;
        let mut watch = Watch {
            dropped: &mut self.dropped,
            counters: &mut self.counters,
        };
        if let Path::Shaped(link) = &mut self.path {
            // Departures first: then the head of the wire is what is delivered next, and when.
            link.on_timeout(now, self.frames.flows(), &mut watch);
        }
        while self.due.len() < BATCH {
            let (at, packet) = match &mut self.path {
                Path::Shaped(link) => (
                    link.poll_timeout().unwrap_or(now),
                    link.poll_delivery(now, self.frames.flows(), &mut watch),
                ),
                Path::Line(line) => (came, line.dequeue(now, &self.frames, &mut watch)),
            };
            let Some(packet) = packet else { break };
            self.frames.remark(&packet);
            self.due.push(Due { packet, at });
        }
        self.release_dropped();
    }

    pub(super) const fn counters(&self) -> &OutputCounters {
        &self.counters
    }

    /// What waits in the queue.
    pub(super) fn backlog(&self) -> Backlog {
        match &self.path {
            Path::Shaped(link) => link.backlog(),
            Path::Line(line) => line.queue.backlog(),
        }
    }

    /// Most places of its tables that the queue looked at for one packet, if it has tables.
    pub(super) fn most_probes(&self) -> Option<u32> {
        match &self.path {
            Path::Shaped(link) => link.queue().most_probes(),
            Path::Line(line) => line.queue.most_probes(),
        }
    }

    /// Frames for which memory is in use, those that the interface is to get next included.
    pub(super) fn kept(&self) -> usize {
        self.frames.len()
    }
}

/// How many frames one output keeps at most, whatever its queue's limit, with the MTU `mtu`: all of them at their longest take
/// [`MOST_BYTES`] at most.
pub(super) fn most_frames(mtu: u32) -> usize {
    let longest = mtu as usize + HEADER + 2 * TAG;
    (MOST_BYTES / longest).clamp(1, MOST_FRAMES)
}

/// Frames that one output keeps at most.
pub(super) const MOST_FRAMES: usize = 65_536;
/// Bytes of frames that one output keeps at most.
const MOST_BYTES: usize = 128 << 20;
/// After so long an interface that was full is asked again.
const RETRY: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests;
