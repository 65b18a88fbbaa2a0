//! What applications do when something reaches them: messages, acknowledgments, datagrams, ends.

use super::compact::Counted;
use super::record::add_difference;
use super::{NONE, sent_at, whole_bytes};
use crate::observe::Observer;
use crate::spec::Traffic;
use crate::world::World;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

impl<O: Observer> World<'_, O> {
    /// A datagram reaches an end.
    pub(crate) fn on_datagram(&mut self, now: Instant, slot: u32, side: usize, segment: &Segment) {
        let place = &self.slots[slot as usize];
        let (index, number, record) = (place.group as usize, place.number, place.record);
        let traffic = &self.spec.groups[index].traffic;
        let ping = matches!(traffic, Traffic::Ping { .. });
        let raw = matches!(traffic, Traffic::Raw(_));
        let bytes = Bytes(u64::from(segment.payload));
        if side == 1 && self.window.contains(now) {
            self.groups[index].goodput += bytes;
            self.groups[index].goodput_per_connection[number as usize] += bytes;
        }
        if ping && side == 1 {
            self.send_from(now, slot, 1, *segment);
        } else if ping {
            let record = segment.options[2];
            if self.ping_over(index, record) {
                let answered = &mut self.groups[index].records[record as usize];
                answered.completed = Some(now);
                answered.acked = Some(now);
                answered.received = bytes;
            }
        } else if matches!(traffic, Traffic::Video(_)) {
            self.on_frame_datagram(now, index, segment);
        } else if matches!(traffic, Traffic::Dns(_)) {
            self.on_dns_datagram(now, slot, side, segment);
        } else if raw {
            let arrived = &mut self.groups[index].records[segment.options[2] as usize];
            arrived.received += bytes;
            arrived.bytes = arrived.received;
        } else {
            let sent = sent_at(segment);
            if record != NONE {
                self.groups[index].records[record as usize].received += bytes;
            }
            if self.window.contains(sent) {
                self.groups[index].datagrams.arrived += 1;
                self.groups[index]
                    .delivery_latency
                    .push(now.since(sent).as_secs_f64());
            }
        }
    }

    /// A datagram will not arrive.
    pub(crate) fn on_datagram_lost(&mut self, slot: u32, segment: &Segment) {
        let index = self.slots[slot as usize].group as usize;
        match self.spec.groups[index].traffic {
            Traffic::Ping { .. } => {
                self.ping_over(index, segment.options[2]);
            }
            Traffic::Cbr { .. } if self.window.contains(sent_at(segment)) => {
                self.groups[index].datagrams.lost += 1;
            }
            Traffic::Video(_) => self.on_frame_datagram_lost(index, segment),
            _ => {}
        }
    }

    /// A datagram was doubled on the way.
    pub(crate) fn on_datagram_doubled(&mut self, slot: u32, segment: &Segment) {
        let index = self.slots[slot as usize].group as usize;
        if matches!(self.spec.groups[index].traffic, Traffic::Video(_)) {
            self.on_frame_datagram_doubled(index, segment);
        }
    }

    /// Whether this ping was still awaited; it no longer is.
    pub(super) fn ping_over(&mut self, index: usize, record: u32) -> bool {
        let pings = &mut self.groups[index].pings;
        let Some(at) = pings.iter().position(|&ping| ping == record) else {
            return false;
        };
        pings.swap_remove(at);
        self.open -= 1;
        true
    }

    /// An end has every byte up to its goal.
    pub(crate) fn on_message(&mut self, now: Instant, slot: u32, side: usize) {
        self.wake(slot, 1 - side); // its counters are wanted
        let place = &mut self.slots[slot as usize];
        let (index, actor) = (place.group, place.actor);
        match &self.spec.groups[index as usize].traffic {
            Traffic::Transfer { .. }
            | Traffic::Incast { .. }
            | Traffic::ClosedLoop { .. }
            | Traffic::Flows { .. } => {
                place.completed = now;
                place.ends[1].goal = u64::MAX;
                self.transfer_over(now, slot);
            }
            Traffic::Web(web) => self.on_web_message(now, slot, side, web),
            Traffic::Replay(replay) => self.on_replay_message(now, slot, side, replay),
            Traffic::RequestResponse { .. } | Traffic::OnOff { .. } | Traffic::Thin { .. }
                if self.groups[index as usize].actors[actor as usize].slot != slot =>
            {
                // The actor has given this connection up.
                place.ends[side].goal = u64::MAX;
            }
            Traffic::RequestResponse { .. } if side == 0 => self.respond(now, index, actor, slot),
            Traffic::RequestResponse { exchanges, .. } => {
                let exchanges = *exchanges;
                self.message_arrived(now, index, actor, slot);
                let Some(dialogue) = &mut self.groups[index as usize].actors[actor as usize].dialogue else {
                    return;
                };
                let more = exchanges.is_none_or(|exchanges| dialogue.begun < exchanges);
                let next = now.saturating_add(Duration::from_secs_f64(dialogue.gap.sample()));
                if more && next < self.groups[index as usize].stop {
                    self.act_at(index, actor, next);
                } else {
                    self.slots[slot as usize].ends[1].closing = true;
                }
            }
            Traffic::OnOff { .. } | Traffic::Thin { .. } => {
                // Several bursts may be completed by one segment.
                while self.slots[slot as usize].ends[1].goal <= self.slots[slot as usize].ends[1].received {
                    self.message_arrived(now, index, actor, slot);
                }
            }
            Traffic::Bulk { .. }
            | Traffic::Cbr { .. }
            | Traffic::Ping { .. }
            | Traffic::Video(_)
            | Traffic::Dns(_)
            | Traffic::Raw(_)
            | Traffic::Tfrc(_) => {}
        }
    }

    /// The server has the whole request.
    pub(super) fn respond(&mut self, now: Instant, index: u32, actor: u32, slot: u32) {
        let group = &mut self.groups[index as usize];
        let Some(dialogue) = &mut group.actors[actor as usize].dialogue else {
            return;
        };
        let bytes = whole_bytes(dialogue.size.sample());
        dialogue.written[0] += bytes;
        let end = dialogue.written[0];
        if let Some(message) = dialogue.messages.front_mut() {
            if message.record != NONE {
                group
                    .delivery_latency
                    .push(now.since(message.written_at).as_secs_f64());
                group.records[message.record as usize].bytes = Bytes(bytes);
                dialogue.unacked.push_back((end, message.record));
            }
            message.end = end;
            message.written_at = now;
        }
        let acked_goal = dialogue.unacked.front().map_or(u64::MAX, |next| next.0);
        let place = &mut self.slots[slot as usize];
        place.ends[0].goal = u64::MAX;
        place.ends[1].goal = end;
        place.acked_goal = acked_goal;
        self.write(slot, 0, bytes);
        self.stream_ends(now, slot, end);
    }

    /// The oldest message has arrived in order at end 1.
    pub(super) fn message_arrived(&mut self, now: Instant, index: u32, actor: u32, slot: u32) {
        let stream = matches!(self.spec.groups[index as usize].traffic, Traffic::Thin { .. });
        let sent = self.sent(slot).filter(|_| !stream);
        let taken = self.taken(slot).filter(|_| !stream);
        let group = &mut self.groups[index as usize];
        let Some(dialogue) = &mut group.actors[actor as usize].dialogue else {
            return;
        };
        let place = &mut self.slots[slot as usize];
        let Some(message) = dialogue.messages.pop_front() else {
            place.ends[1].goal = u64::MAX;
            return;
        };
        place.ends[1].goal = dialogue.messages.front().map_or(u64::MAX, |next| next.end);
        if stream {
            if message.record != NONE {
                let latency = now.since(message.written_at).as_secs_f64();
                group.delivery_latency.push(latency);
            }
            return;
        }
        if let Some(connection) = &place.ends[0].connection
            && let Some(sent) = &sent
            && message.record != NONE
        {
            let record = &mut group.records[message.record as usize];
            let counted = dialogue.counted.stats();
            let mut redundant = counted.redundant_bytes;
            add_difference(record, sent, &counted);
            record.completed = Some(now);
            record.received = record.bytes;
            record.min_rtt = connection.info(now).min_rtt;
            if let Some(taken) = &taken {
                let before = std::mem::replace(&mut redundant, taken.redundant_bytes);
                record.redundant_bytes = Bytes(redundant - before);
            }
            dialogue.counted = Counted::new(sent, redundant);
            group
                .delivery_latency
                .push(now.since(message.written_at).as_secs_f64());
        }
    }

    /// Data of interest was acknowledged.
    pub(crate) fn on_acked(&mut self, now: Instant, slot: u32) {
        let acked = self.acked(slot);
        let place = &mut self.slots[slot as usize];
        let group = &mut self.groups[place.group as usize];
        let actor = &mut group.actors[place.actor as usize];
        let transfer = place.unfinished || place.completed != Instant::FAR_FUTURE;
        let Some(dialogue) = &mut actor.dialogue.as_mut().filter(|_| !transfer) else {
            place.acked = now;
            place.acked_goal = u64::MAX;
            self.open -= u64::from(std::mem::take(&mut place.awaited));
            return;
        };
        if actor.slot != slot {
            // The actor has given this connection up.
            place.acked_goal = u64::MAX;
            return;
        }
        while let Some(&(end, record)) = dialogue.unacked.front()
            && end <= acked
        {
            dialogue.unacked.pop_front();
            if record != NONE {
                group.records[record as usize].acked = Some(now);
                self.open -= 1;
            }
        }
        place.acked_goal = dialogue.unacked.front().map_or(u64::MAX, |next| next.0);
    }

    /// A conversation has no more to say at one end, in good or bad order.
    pub(crate) fn on_conversation_end(&mut self, now: Instant, slot: u32) {
        let place = &mut self.slots[slot as usize];
        self.open -= u64::from(std::mem::take(&mut place.awaited));
        if place.unfinished {
            self.transfer_over(now, slot);
            return;
        }
        let (index, actor) = (place.group as usize, place.actor as usize);
        if let Traffic::Web(web) = &self.spec.groups[index].traffic {
            self.on_web_end(now, slot, web);
            return;
        }
        if place.replay.is_some() {
            self.on_replay_end(slot);
            return;
        }
        let stream = matches!(self.spec.groups[index].traffic, Traffic::Thin { .. });
        let sender = self.sent(slot);
        // A connection that died takes the messages on their way with it; the actor opens another with its next event.
        let group = &mut self.groups[index];
        let place = &mut group.actors[actor];
        if place.slot != slot {
            return;
        }
        place.slot = NONE;
        let Some(dialogue) = &mut place.dialogue else {
            return;
        };
        let begun = dialogue.begun;
        let interrupted = dialogue.messages.front().copied();
        if let Some(message) = interrupted
            && message.record != NONE
            && !stream
            && let Some(sender) = &sender
        {
            let record = &mut group.records[message.record as usize];
            add_difference(record, sender, &dialogue.counted.stats());
        }
        // Those that were not acknowledged, and requests that were not answered.
        let unacked = dialogue.unacked.iter().map(|unacked| unacked.1);
        let unanswered = dialogue.messages.iter().map(|message| message.record);
        let unanswered =
            unanswered.filter(|record| !stream && dialogue.unacked.iter().all(|(_, other)| other != record));
        self.open -= unacked.chain(unanswered).filter(|&record| record != NONE).count() as u64;
        dialogue.messages.clear();
        dialogue.unacked.clear();
        dialogue.written = [0; 2];
        dialogue.counted = Counted::default();
        if interrupted.is_some()
            && let Traffic::RequestResponse { exchanges, .. } = &self.spec.groups[index].traffic
            && exchanges.is_none_or(|exchanges| begun < exchanges)
        {
            let gap = Duration::from_secs_f64(dialogue.gap.sample()).max(Duration::from_nanos(1));
            self.act_at(index as u32, actor as u32, now.saturating_add(gap));
        }
    }

    /// A transfer is complete, or never will be.
    pub(super) fn transfer_over(&mut self, now: Instant, slot: u32) {
        let place = &mut self.slots[slot as usize];
        if !std::mem::take(&mut place.unfinished) {
            return;
        }
        let (index, actor) = (place.group, place.actor);
        let group = &mut self.groups[index as usize];
        match &self.spec.groups[index as usize].traffic {
            Traffic::Incast { rounds, .. } => {
                group.remaining -= 1;
                if group.remaining == 0 && group.started < u64::from(*rounds) {
                    let pause = Duration::from_secs_f64(group.gap.sample());
                    self.act_at(index, actor, now.saturating_add(pause));
                }
            }
            Traffic::ClosedLoop { .. } => {
                if let Some(dialogue) = &mut group.actors[actor as usize].dialogue {
                    let think = Duration::from_secs_f64(dialogue.gap.sample());
                    self.act_at(index, actor, now.saturating_add(think));
                }
            }
            Traffic::Bulk { .. }
            | Traffic::Transfer { .. }
            | Traffic::RequestResponse { .. }
            | Traffic::OnOff { .. }
            | Traffic::Thin { .. }
            | Traffic::Web(_)
            | Traffic::Cbr { .. }
            | Traffic::Flows { .. }
            | Traffic::Ping { .. }
            | Traffic::Video(_)
            | Traffic::Dns(_)
            | Traffic::Raw(_)
            | Traffic::Tfrc(_)
            | Traffic::Replay(_) => {}
        }
    }
}
