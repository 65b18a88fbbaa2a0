//! TFRC streams: what one is made of, and how its packets, timers and writes reach it.
//!
//! A stream is a conversation with a TFRC sender at its first end and the receiver at its second. It sends what it has and
//! nothing twice, so it is complete with the last packet that arrives. It is over when its last packet has been reported, or
//! when both ends have stopped waiting. What the network does to a packet is never asked: it may be known late.

use super::{NONE, whole_bytes};
use crate::observe::Observer;
use crate::output::StreamRecord;
use crate::spec::{GroupSpec, PairPolicy, Tfrc};
use crate::world::World;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::tfrc::{Receiver, Sender};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The two ends of a stream.
pub(crate) struct TfrcStream {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// When the last new packet arrived.
    arrived: Option<Instant>,
    /// The application will write nothing more.
    written: bool,
}

impl<O: Observer> World<'_, O> {
    /// A stream begins, an application writes its next packet, or endless streams stop.
    pub(super) fn act_tfrc(&mut self, index: u32, actor: u32, now: Instant, spec: &GroupSpec, tfrc: &Tfrc) {
        if tfrc.interarrival.is_some() {
            let pair = match spec.spread {
                PairPolicy::Each => self.groups[index as usize].actors[actor as usize].pair,
                PairPolicy::RoundRobin | PairPolicy::Random => self.pick_pair(index, spec),
            };
            let group = &mut self.groups[index as usize];
            let started = &mut group.actors[actor as usize].started;
            *started += 1;
            let more = tfrc.count.is_none_or(|count| *started < count);
            let gap = Duration::from_secs_f64(group.gap.sample()).max(Duration::from_nanos(1));
            let bytes = tfrc.size.as_ref().map(|_| whole_bytes(group.size.sample()));
            let slot = self.open_stream(now, index, actor, pair, bytes, tfrc);
            self.write_stream(now, slot, bytes.unwrap_or(super::ENDLESS), true);
            if more {
                self.act_at(index, actor, now.saturating_add(gap));
            }
            return;
        }
        let place = &mut self.groups[index as usize].actors[actor as usize];
        let (pair, mut slot) = (place.pair, place.slot);
        let number = place.started;
        place.started += 1;
        if number == 0 {
            let group = &mut self.groups[index as usize];
            let bytes = tfrc.size.as_ref().map(|_| whole_bytes(group.size.sample()));
            slot = self.open_stream(now, index, actor, pair, bytes, tfrc);
            self.groups[index as usize].actors[actor as usize].slot = slot;
            if tfrc.rate.is_none() {
                self.write_stream(now, slot, bytes.unwrap_or(super::ENDLESS), bytes.is_some());
                if bytes.is_none() {
                    // Comes back to stop it.
                    let stop = self.groups[index as usize].stop;
                    self.push_event(index, actor, stop.max(now));
                }
                return;
            }
        }
        let Some(rate) = tfrc.rate else {
            self.stop_stream(now, slot);
            return;
        };
        // Differences of exact times: no drift, whatever the rate.
        let at = |number: u32| rate.time_for(Bytes(u64::from(tfrc.config.packet)) * u64::from(number));
        let next = now.saturating_add((at(number + 1) - at(number)).max(Duration::from_nanos(1)));
        let packet = u64::from(tfrc.config.segment());
        let left = match self.slots[slot as usize].bytes {
            0 => u64::MAX,
            bytes => bytes.saturating_sub(u64::from(number) * packet),
        };
        let last = left <= packet || next >= self.groups[index as usize].stop;
        self.write_stream(now, slot, left.min(packet), last);
        if !last {
            self.act_at(index, actor, next);
        }
    }

    /// Opens a stream of `bytes`, or one without end.
    fn open_stream(
        &mut self,
        now: Instant,
        index: u32,
        actor: u32,
        pair: u32,
        bytes: Option<u64>,
        tfrc: &Tfrc,
    ) -> u32 {
        let slot = self.open_pair(now, index, actor, pair, None);
        let counts = self.window.contains(now);
        let awaited = counts && bytes.is_some();
        let record = if counts || bytes.is_none() {
            self.new_record(index, pair, now, Bytes(bytes.unwrap_or(0)))
        } else {
            NONE
        };
        self.open += u64::from(awaited);
        let place = &mut self.slots[slot as usize];
        place.record = record;
        place.awaited = awaited;
        place.bytes = bytes.unwrap_or(0);
        place.stream = Some(Box::new(TfrcStream {
            sender: Sender::new(now, &tfrc.config),
            receiver: Receiver::new(&tfrc.config),
            arrived: None,
            written: false,
        }));
        slot
    }

    /// The application has `bytes` more; `last`: and then no more.
    fn write_stream(&mut self, now: Instant, slot: u32, bytes: u64, last: bool) {
        if let Some(stream) = &mut self.slots[slot as usize].stream {
            stream.sender.write(now, Bytes(bytes));
            stream.written = last;
        }
        self.pump_stream(now, slot, 0);
    }

    /// The application of an endless stream gives up what is not sent.
    fn stop_stream(&mut self, now: Instant, slot: u32) {
        if let Some(stream) = &mut self.slots[slot as usize].stream {
            stream.sender.discard();
            stream.written = true;
        }
        self.pump_stream(now, slot, 0);
    }

    /// A packet of a stream reaches an end.
    pub(crate) fn on_stream_packet(&mut self, now: Instant, index: u32, side: usize, segment: &Segment) {
        let slot = &mut self.slots[index as usize];
        let Some(stream) = &mut slot.stream else { return };
        if side == 0 {
            stream.sender.on_feedback(now, segment);
        } else {
            let before = stream.receiver.received().bytes;
            let bytes = stream.receiver.on_data(now, segment);
            if bytes > 0 {
                stream.arrived = Some(now);
            }
            self.observer
                .on_receive(now, FlowId(2 * index), before..before + bytes);
            if self.window.contains(now) {
                let group = &mut self.groups[slot.group as usize];
                group.goodput += Bytes(bytes);
                group.goodput_per_connection[slot.number as usize] += Bytes(bytes);
            }
        }
        self.pump_stream(now, index, side);
        if side == 0
            && let Some(stream) = &self.slots[index as usize].stream
        {
            self.observer
                .on_stream(now, FlowId(2 * index), &stream.sender, false);
        }
    }

    /// A timer of a stream comes due.
    pub(crate) fn on_stream_timer(&mut self, now: Instant, index: u32, side: usize) {
        let Some(stream) = &mut self.slots[index as usize].stream else {
            return;
        };
        let before = stream.sender.info().expiries;
        if side == 0 {
            stream.sender.on_timeout(now);
        } else {
            stream.receiver.on_timeout(now);
        }
        self.pump_stream(now, index, side);
        if let Some(stream) = &self.slots[index as usize].stream
            && stream.sender.info().expiries > before
        {
            self.observer
                .on_stream(now, FlowId(2 * index), &stream.sender, true);
        }
    }

    /// Lets an end send what it may, arms its timer, and sees whether the stream is complete or over.
    fn pump_stream(&mut self, now: Instant, index: u32, side: usize) {
        loop {
            let Some(stream) = &mut self.slots[index as usize].stream else {
                return;
            };
            let segment = if side == 0 {
                stream.sender.poll_transmit(now)
            } else {
                stream.receiver.poll_transmit(now)
            };
            let Some(segment) = segment else { break };
            self.send_from(now, index, side, segment);
        }
        let slot = &mut self.slots[index as usize];
        if let Some(stream) = &slot.stream {
            let wanted = if side == 0 {
                stream.sender.poll_timeout()
            } else {
                stream.receiver.poll_timeout()
            };
            let (number, wanted) = (2 * index + side as u32, wanted.unwrap_or(Instant::FAR_FUTURE));
            slot.ends[side].arm_at(now, number, wanted, &mut self.network, &mut self.armed);
        }
        self.stream_progress(now, index);
    }

    /// Notes what has come to an end.
    fn stream_progress(&mut self, now: Instant, index: u32) {
        let slot = &mut self.slots[index as usize];
        let Some(stream) = &slot.stream else { return };
        if !stream.written || stream.sender.queued() > Bytes::ZERO {
            return;
        }
        let reached = stream.receiver.has_reached(stream.sender.last_sent());
        if stream.sender.is_reported() && slot.acked == Instant::FAR_FUTURE {
            slot.acked = now;
        }
        let silent = stream.receiver.poll_timeout().is_none();
        let over = silent && (reached || stream.sender.poll_timeout().is_none());
        if over || reached {
            slot.completed = stream.arrived.unwrap_or(Instant::FAR_FUTURE);
        }
        for side in 0..2 {
            let number = 2 * index + side as u32;
            let end = &mut slot.ends[side];
            end.closed = over;
            if over {
                end.arm_at(
                    now,
                    number,
                    Instant::FAR_FUTURE,
                    &mut self.network,
                    &mut self.armed,
                );
            }
        }
        if over {
            self.open -= u64::from(std::mem::take(&mut slot.awaited));
            self.free_if_over(now, index);
        }
    }

    /// Fills the record of a stream.
    pub(super) fn record_stream(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        let Some(stream) = &place.stream else { return };
        let group = &mut self.groups[place.group as usize];
        let record = &mut group.records[place.record as usize];
        let (sent, received) = (stream.sender.info(), stream.receiver.received());
        let happened = |at: Instant| (at != Instant::FAR_FUTURE).then_some(at);
        if place.bytes > 0 {
            record.completed = happened(place.completed);
            record.acked = happened(place.acked);
        } else {
            record.bytes = Bytes(received.bytes);
        }
        record.received = Bytes(received.bytes);
        record.min_rtt = sent.min_rtt;
        record.segments_sent = sent.packets_sent as u32;
        record.bytes_sent = Bytes(sent.bytes_sent);
        record.timeouts = sent.expiries as u32;
        group.streams.push(StreamRecord {
            number: place.number,
            lost: received.lost,
            loss_events: received.loss_events,
            loss_event_rate: received.loss_event_rate,
        });
    }
}
