//! TFRC streams: what one is made of, and how its packets, timers and writes reach it.
//!
//! A stream is a conversation with a TFRC sender at its first end and the receiver at its second. It sends what it has and
//! nothing twice, so it is complete with the last packet that arrives. It is over when its last packet has been reported, or
//! when both ends have stopped waiting. What the network does to a packet is never asked: it may be known late.

use super::Application;
use super::group::{ENDLESS, Member, whole_bytes};
use super::record::happened;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::output::StreamRecord;
use crate::record::as_window;
use crate::spec;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::rng::{Distribution, Sampler};
use fleetfoot_core::tfrc::{Receiver, Sender};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The streams of a group.
pub(crate) struct Tfrc<'a> {
    group: u32,
    tfrc: &'a spec::Tfrc,
    size: Sampler,
    gap: Sampler,
    writers: Vec<Writer>,
    /// By number of the conversation, while it lasts.
    streams: Vec<Option<Box<Stream>>>,
}

/// Who begins streams, or writes to one.
struct Writer {
    pair: u32,
    /// Its conversation, or `NONE`.
    slot: u32,
    /// Streams begun, or packets written.
    started: u32,
}

/// The two ends of a stream.
struct Stream {
    sender: Sender,
    receiver: Receiver,
    /// When the last new packet arrived.
    arrived: Option<Instant>,
    /// The application will write nothing more.
    written: bool,
}

impl<'a> Tfrc<'a> {
    pub(super) fn new<O: Observer>(hosts: &mut Hosts<'a, O>, group: u32, tfrc: &'a spec::Tfrc) -> Tfrc<'a> {
        let constant = || Distribution::Constant(0.0);
        let size = tfrc.size.clone().unwrap_or_else(constant);
        let gap = tfrc.interarrival.clone().unwrap_or_else(constant);
        let mut gap = Sampler::new(gap, hosts.stream(group, "gap"));
        let members = match &tfrc.interarrival {
            Some(_) => hosts.processes(group),
            None => hosts.members(group),
        };
        let mut writers = Vec::new();
        for Member { number, pair, start } in members {
            writers.push(Writer {
                pair,
                slot: NONE,
                started: 0,
            });
            let at = match &tfrc.interarrival {
                Some(_) if tfrc.count == Some(0) => continue,
                Some(_) => start.saturating_add(Duration::from_secs_f64(gap.sample())),
                None => start,
            };
            hosts.act_at(group, number, at);
        }
        Tfrc {
            group,
            tfrc,
            size: Sampler::new(size, hosts.stream(group, "size")),
            gap,
            writers,
            streams: Vec::new(),
        }
    }

    /// The stream of a conversation, while it lasts.
    fn stream<O>(&mut self, hosts: &Hosts<'_, O>, slot: u32) -> Option<&mut Stream> {
        let number = hosts.slots[slot as usize].number;
        self.streams.get_mut(number as usize)?.as_deref_mut()
    }

    /// Opens a stream of `bytes`, or one without end.
    fn open_stream<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        actor: u32,
        pair: u32,
        bytes: Option<u64>,
    ) -> u32 {
        let slot = hosts.open_pair(now, self.group, actor, pair, None);
        let record = match bytes {
            Some(bytes) => hosts.open_record(self.group, pair, now, Bytes(bytes)),
            None => hosts.new_record(self.group, pair, now, Bytes::ZERO),
        };
        let place = &mut hosts.slots[slot as usize];
        place.record = record;
        place.awaited = bytes.is_some() && record != NONE;
        place.bytes = bytes.unwrap_or(0);
        debug_assert_eq!(place.number as usize, self.streams.len(), "numbered in order");
        self.streams.push(Some(Box::new(Stream {
            sender: Sender::new(now, &self.tfrc.config),
            receiver: Receiver::new(&self.tfrc.config),
            arrived: None,
            written: false,
        })));
        slot
    }

    /// The application has `bytes` more; `last`: and then no more.
    fn write<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        bytes: u64,
        last: bool,
    ) {
        if let Some(stream) = self.stream(hosts, slot) {
            stream.sender.write(now, Bytes(bytes));
            stream.written = last;
        }
        self.push(hosts, now, slot, 0);
    }

    /// The application of an endless stream gives up what is not sent.
    fn stop<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        if let Some(stream) = self.stream(hosts, slot) {
            stream.sender.discard();
            stream.written = true;
        }
        self.push(hosts, now, slot, 0);
    }

    /// Lets an end send what it may, arms its timer, and sees whether the stream is complete or over.
    fn push<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let Some(stream) = self.stream(hosts, slot) else {
            return;
        };
        let wanted = if side == 0 {
            while let Some(segment) = stream.sender.poll_transmit(now) {
                hosts.send_from(now, slot, 0, segment);
            }
            stream.sender.poll_timeout()
        } else {
            while let Some(segment) = stream.receiver.poll_transmit(now) {
                hosts.send_from(now, slot, 1, segment);
            }
            stream.receiver.poll_timeout()
        };
        hosts.arm(now, slot, side, wanted.unwrap_or(Instant::FAR_FUTURE));
        self.progress(hosts, now, slot);
    }

    /// Notes what has come to an end.
    fn progress<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let Some(stream) = self.stream(hosts, slot) else {
            return;
        };
        if !stream.written || stream.sender.queued() > Bytes::ZERO {
            return;
        }
        let place = &mut hosts.slots[slot as usize];
        let reached = stream.receiver.has_reached(stream.sender.last_sent());
        if stream.sender.is_reported() && place.acked == Instant::FAR_FUTURE {
            place.acked = now;
        }
        let silent = stream.receiver.poll_timeout().is_none();
        let over = silent && (reached || stream.sender.poll_timeout().is_none());
        if over || reached {
            place.completed = stream.arrived.unwrap_or(Instant::FAR_FUTURE);
        }
        for end in &mut place.ends {
            end.closed = over;
        }
        if over {
            hosts.open -= u64::from(std::mem::take(&mut place.awaited));
            for side in 0..2 {
                hosts.arm(now, slot, side, Instant::FAR_FUTURE);
            }
            if hosts.is_over(slot) {
                self.record(hosts, slot);
                hosts.free(now, slot);
            }
        }
    }
}

impl Application for Tfrc<'_> {
    /// A stream begins, an application writes its next packet, or endless streams stop.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let tfrc = self.tfrc;
        let mut size = || tfrc.size.as_ref().map(|_| whole_bytes(self.size.sample()));
        let writer = &mut self.writers[actor as usize];
        let number = writer.started;
        writer.started += 1;
        if tfrc.interarrival.is_some() {
            let pair = hosts.pair_of_flow(self.group, writer.pair);
            let more = tfrc.count.is_none_or(|count| writer.started < count);
            let gap = Duration::from_secs_f64(self.gap.sample()).max(Duration::from_nanos(1));
            let bytes = size();
            let slot = self.open_stream(hosts, now, actor, pair, bytes);
            self.write(hosts, now, slot, bytes.unwrap_or(ENDLESS), true);
            if more {
                hosts.act_at(self.group, actor, now.saturating_add(gap));
            }
            return;
        }
        let (pair, mut slot) = (writer.pair, writer.slot);
        if number == 0 {
            let bytes = size();
            slot = self.open_stream(hosts, now, actor, pair, bytes);
            self.writers[actor as usize].slot = slot;
            if tfrc.rate.is_none() {
                self.write(hosts, now, slot, bytes.unwrap_or(ENDLESS), bytes.is_some());
                if bytes.is_none() {
                    // Comes back to stop it.
                    let stop = hosts.stop_of(self.group);
                    hosts.push_event(self.group, actor, stop.max(now));
                }
                return;
            }
        }
        let Some(rate) = tfrc.rate else {
            self.stop(hosts, now, slot);
            return;
        };
        // Differences of exact times: no drift, whatever the rate.
        let at = |number: u32| rate.time_for(Bytes(u64::from(tfrc.config.packet)) * u64::from(number));
        let next = now.saturating_add((at(number + 1) - at(number)).max(Duration::from_nanos(1)));
        let packet = u64::from(tfrc.config.segment());
        let left = match hosts.slots[slot as usize].bytes {
            0 => u64::MAX,
            bytes => bytes.saturating_sub(u64::from(number) * packet),
        };
        let last = left <= packet || next >= hosts.stop_of(self.group);
        self.write(hosts, now, slot, left.min(packet), last);
        if !last {
            hosts.act_at(self.group, actor, next);
        }
    }

    fn on_packet<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        side: usize,
        segment: &Segment,
    ) {
        let Some(stream) = self.stream(hosts, slot) else {
            return;
        };
        if side == 0 {
            stream.sender.on_feedback(now, segment);
        } else {
            let before = stream.receiver.received().bytes;
            let bytes = stream.receiver.on_data(now, segment);
            if bytes > 0 {
                stream.arrived = Some(now);
            }
            hosts
                .observer
                .on_receive(now, FlowId(2 * slot), before..before + bytes);
            if hosts.window.contains(now) {
                let group = &mut hosts.groups[self.group as usize];
                group.goodput += Bytes(bytes);
                let number = hosts.slots[slot as usize].number;
                group.goodput_per_connection[number as usize] += Bytes(bytes);
            }
        }
        self.push(hosts, now, slot, side);
        if side == 0
            && let Some(stream) = self.stream(hosts, slot)
        {
            let sender = &stream.sender;
            hosts.observer.on_stream(now, FlowId(2 * slot), sender, false);
        }
    }

    fn on_timer<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let Some(stream) = self.stream(hosts, slot) else {
            return;
        };
        let before = stream.sender.info().expiries;
        if side == 0 {
            stream.sender.on_timeout(now);
        } else {
            stream.receiver.on_timeout(now);
        }
        self.push(hosts, now, slot, side);
        if let Some(stream) = self.stream(hosts, slot)
            && stream.sender.info().expiries > before
        {
            let sender = &stream.sender;
            hosts.observer.on_stream(now, FlowId(2 * slot), sender, true);
        }
    }

    /// Fills the record of a stream, which is over.
    fn record<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        let place = &hosts.slots[slot as usize];
        let stream = self.streams.get_mut(place.number as usize);
        let Some(stream) = stream.and_then(Option::take).filter(|_| place.record != NONE) else {
            return;
        };
        let group = &mut hosts.groups[self.group as usize];
        let mut record = group.records.edit(place.record);
        let (sent, received) = (stream.sender.info(), stream.receiver.received());
        if place.bytes > 0 {
            record.completed = happened(place.completed);
            record.acked = happened(place.acked);
        } else {
            record.bytes = Bytes(received.bytes);
        }
        record.received = Bytes(received.bytes);
        record.min_rtt = sent.min_rtt;
        record.tally = as_window(&sent).stats.into();
        group.streams.push(StreamRecord {
            number: place.number,
            lost: received.lost,
            loss_events: received.loss_events,
            loss_event_rate: received.loss_event_rate,
        });
    }
}
