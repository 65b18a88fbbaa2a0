//! Dialogues: persistent connections that carry many messages. Each message is a flow, or all of them together are one.

use super::compact::Queue;
use super::record::add_unfinished;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::output::Tally;
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

/// The messages of a persistent connection.
pub(super) struct Dialogue {
    /// Its conversation, or `NONE`.
    pub(super) slot: u32,
    /// Messages, or requests with their responses, begun.
    pub(super) begun: u32,
    /// Messages on their way, oldest first.
    messages: Queue<Message>,
    /// Data whose acknowledgment is awaited: stream offset and record.
    unacked: Queue<(u64, u32)>,
    /// Counters when the last message was complete: what they were before is of it and of those before it.
    counted: Tally,
    /// Stream offsets written so far by each end.
    written: [u64; 2],
}

#[derive(Clone, Copy)]
struct Message {
    /// Stream offset of its end.
    end: u64,
    written_at: Instant,
    record: u32,
    /// It is a request that the server has and has not answered.
    heard: bool,
}

impl Dialogue {
    pub(super) const fn new() -> Dialogue {
        Dialogue {
            slot: NONE,
            begun: 0,
            messages: Queue::new(),
            unacked: Queue::new(),
            counted: Tally::NOTHING,
            written: [0; 2],
        }
    }

    /// The next message that an end writes begins at stream offset `begin`: what is before it and no message was written already.
    pub(super) fn goes_on_at(&mut self, side: usize, begin: u64) {
        self.written[side] = begin;
    }

    /// The receiver of the data asks for `bytes` of request. Where the stream of requests ends.
    pub(super) fn ask(&mut self, now: Instant, bytes: u64, record: u32) -> u64 {
        self.written[1] += bytes;
        self.send(now, self.written[1], record)
    }

    /// The sender of the data writes a message of `bytes`. Where its stream ends, and up to where it is to arrive and to be
    /// acknowledged next.
    pub(super) fn tell(&mut self, now: Instant, bytes: u64, record: u32) -> [u64; 3] {
        self.written[0] += bytes;
        let end = self.send(now, self.written[0], record);
        self.unacked.push_back((end, record));
        let goal = self.messages.front().map_or(end, |next| next.end);
        let acked_goal = self.unacked.front().map_or(end, |next| next.0);
        [end, goal, acked_goal]
    }

    fn send(&mut self, now: Instant, end: u64, record: u32) -> u64 {
        self.messages.push_back(Message {
            end,
            written_at: now,
            record,
            heard: false,
        });
        end
    }

    /// The server has a whole request, and answers later.
    pub(super) fn requested<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let place = &mut hosts.slots[slot as usize];
        place.ends[0].goal = u64::MAX;
        if let Some(message) = self.messages.front_mut() {
            message.heard = true;
            if message.record != NONE {
                let latency = now.since(message.written_at).as_secs_f64();
                hosts.groups[place.group as usize].delivery_latency.push(latency);
            }
        }
    }

    /// The server has a whole request and answers with `bytes`.
    pub(super) fn respond<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        bytes: u64,
    ) {
        self.requested(hosts, now, slot);
        self.answer(hosts, now, slot, bytes);
    }

    /// The server answers a request that it [has](Dialogue::requested) with `bytes`.
    pub(super) fn answer<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        bytes: u64,
    ) {
        self.written[0] += bytes;
        let end = self.written[0];
        let place = &mut hosts.slots[slot as usize];
        if let Some(message) = self.messages.front_mut() {
            if message.record != NONE {
                let group = &mut hosts.groups[place.group as usize];
                group.records.edit(message.record).bytes = Bytes(bytes);
                self.unacked.push_back((end, message.record));
            }
            message.end = end;
            message.written_at = now;
            message.heard = false;
        }
        place.ends[1].goal = end;
        place.acked_goal = self.unacked.front().map_or(u64::MAX, |next| next.0);
        hosts.write(slot, 0, bytes);
        hosts.stream_ends(now, slot, end);
    }

    /// The oldest message has arrived in order at the receiver of the data. `stream`: all of them are one flow.
    pub(super) fn arrived<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        stream: bool,
    ) {
        let counted = hosts.counted(slot).filter(|_| !stream);
        let place = &mut hosts.slots[slot as usize];
        let group = &mut hosts.groups[place.group as usize];
        let Some(message) = self.messages.pop_front() else {
            place.ends[1].goal = u64::MAX;
            return;
        };
        place.ends[1].goal = self.messages.front().map_or(u64::MAX, |next| next.end);
        if message.record == NONE {
            // What it took is of no record, nor is it of the next one.
            if let Some(counted) = counted {
                self.counted = counted.into();
            }
            return;
        }
        let latency = now.since(message.written_at).as_secs_f64();
        if stream {
            group.delivery_latency.push(latency);
            return;
        }
        if let Some(connection) = &place.ends[0].connection
            && let Some(counted) = counted
        {
            let mut record = group.records.edit(message.record);
            record.add(&counted.since(&self.counted.stats()));
            record.completed = Some(now);
            record.received = record.bytes;
            record.min_rtt = connection.info(now).min_rtt;
            self.counted = counted.into();
            group.delivery_latency.push(latency);
        }
    }

    /// Data was acknowledged.
    pub(super) fn acked<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let acked = hosts.acked(slot);
        let place = &mut hosts.slots[slot as usize];
        if self.slot != slot {
            // This connection was given up.
            place.acked_goal = u64::MAX;
            return;
        }
        while let Some(&(end, record)) = self.unacked.front()
            && end <= acked
        {
            self.unacked.pop_front();
            if record != NONE {
                hosts.groups[place.group as usize].records.edit(record).acked = Some(now);
                hosts.open -= 1;
            }
        }
        place.acked_goal = self.unacked.front().map_or(u64::MAX, |next| next.0);
    }

    /// The connection is over, and takes the messages on their way with it. Whether there were any.
    pub(super) fn ended<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, stream: bool) -> bool {
        let counted = hosts.counted(slot);
        if self.slot != slot {
            return false;
        }
        self.slot = NONE;
        let interrupted = self.messages.front().copied();
        if let Some(message) = interrupted
            && message.record != NONE
            && !stream
            && let Some(counted) = &counted
        {
            let group = &mut hosts.groups[hosts.slots[slot as usize].group as usize];
            let mut record = group.records.edit(message.record);
            add_unfinished(&mut record, counted, &self.counted.stats());
        }
        if interrupted.is_some() {
            self.cut_off(hosts, slot);
        }
        // Those that were not acknowledged, and requests that were not answered.
        let unacked = self.unacked.iter().map(|unacked| unacked.1);
        let unanswered = self.messages.iter().map(|message| message.record);
        let unanswered =
            unanswered.filter(|record| !stream && self.unacked.iter().all(|(_, other)| other != record));
        hosts.open -= unacked.chain(unanswered).filter(|&record| record != NONE).count() as u64;
        self.messages.clear();
        self.unacked.clear();
        self.written = [0; 2];
        self.counted = Tally::NOTHING;
        interrupted.is_some()
    }

    /// Notes the writes on their way, which will not arrive any more within this run. A request that the server has is none: what it took is noted.
    fn cut_off<O: Observer>(&self, hosts: &mut Hosts<'_, O>, slot: u32) {
        let group = &mut hosts.groups[hosts.slots[slot as usize].group as usize];
        let counted = |message: &&Message| message.record != NONE && !message.heard;
        let counted = self.messages.iter().filter(counted);
        group
            .cut_off
            .writes
            .extend(counted.map(|message| message.written_at));
    }

    /// The run is over. What the connection did since its last complete message belongs to the one on its way, unless all of them are one
    /// flow (`stream`).
    pub(super) fn finish<O: Observer>(&self, hosts: &mut Hosts<'_, O>, stream: bool) {
        let Some(message) = self.messages.front().filter(|_| self.slot != NONE) else {
            return;
        };
        self.cut_off(hosts, self.slot);
        if message.record == NONE || stream {
            return;
        }
        hosts.wake(self.slot, 0);
        let group = hosts.slots[self.slot as usize].group as usize;
        if let Some(counted) = hosts.counted(self.slot) {
            let mut record = hosts.groups[group].records.edit(message.record);
            add_unfinished(&mut record, &counted, &self.counted.stats());
        }
        hosts.slots[self.slot as usize].ends[0].connection = None; // many may have been packed
    }
}
