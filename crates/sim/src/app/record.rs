//! Flow records: what is noted of each transfer, and the results of a group.

use super::{Actor, Dialogue, NONE};
use crate::observe::Observer;
use crate::output::{FlowRecord, GroupOutput, Repairs};
use crate::spec::Traffic;
use crate::world::World;
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

impl<O: Observer> World<'_, O> {
    pub(super) fn new_record(&mut self, index: u32, pair: u32, start: Instant, bytes: Bytes) -> u32 {
        let records = &mut self.groups[index as usize].records;
        records.push(FlowRecord {
            pair,
            bytes,
            start,
            ..FlowRecord::default()
        });
        (records.len() - 1) as u32
    }

    /// Fills the record of a connection that carries one transfer or endless data.
    pub(crate) fn record_connection(&mut self, slot: u32) {
        if self.slots[slot as usize].replay.is_some() {
            self.record_replay(slot);
            return;
        }
        if self.slots[slot as usize].record == NONE {
            return;
        }
        if self.slots[slot as usize].stream.is_some() {
            self.record_stream(slot);
            return;
        }
        self.wake(slot, 0);
        self.wake(slot, 1);
        let (sent, taken) = (self.sent(slot), self.taken(slot));
        let place = &self.slots[slot as usize];
        let record = &mut self.groups[place.group as usize].records[place.record as usize];
        let happened = |at: Instant| (at != Instant::FAR_FUTURE).then_some(at);
        record.completed = happened(place.completed);
        record.acked = happened(place.acked);
        if let Some(sender) = &place.ends[0].connection
            && let Some(sent) = &sent
        {
            record.received = Bytes(place.ends[1].received);
            record.min_rtt = sender.info(self.now).min_rtt;
            add_difference(record, sent, &Stats::default());
        }
        if let Some(taken) = &taken {
            record.redundant_bytes = Bytes(taken.redundant_bytes);
        }
        if matches!(
            self.spec.groups[place.group as usize].traffic,
            Traffic::Bulk { .. } | Traffic::Thin { .. } | Traffic::Cbr { .. }
        ) {
            record.bytes = record.received;
        }
        let window = self.window;
        if let Some(sender) = &self.slots[slot as usize].ends[0].connection {
            let seen = sender.ack_latencies().iter();
            let counted = seen.filter(|(first, _)| window.contains(*first));
            let latencies = &mut self.groups[self.slots[slot as usize].group as usize].ack_latency;
            latencies.extend(counted.map(|(_, latency)| latency.as_secs_f64()));
        }
    }

    pub(crate) fn finish_groups(&mut self) -> Vec<GroupOutput> {
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].live {
                self.record_connection(slot);
            }
        }
        for group in 0..self.groups.len() {
            for actor in 0..self.groups[group].actors.len() {
                let actor = &self.groups[group].actors[actor];
                let waits = |dialogue: &Dialogue| dialogue.messages.front().is_some();
                if actor.slot != NONE && actor.dialogue.as_deref().is_some_and(waits) {
                    self.wake(actor.slot, 0); // asked below
                }
            }
        }
        let groups = std::mem::take(&mut self.groups);
        let world = &*self;
        groups
            .into_iter()
            .zip(&self.spec.groups)
            .map(|(mut group, spec)| {
                // The record of a thin stream is that of its connection.
                let streams = matches!(spec.traffic, Traffic::Thin { .. });
                for actor in group.actors.iter_mut().filter(|_| !streams) {
                    // What a persistent connection did since its last complete message belongs to the one on its way.
                    if let Some(dialogue) = &mut actor.dialogue
                        && let Some(message) = dialogue.messages.front()
                        && message.record != NONE
                        && actor.slot != NONE
                        && let Some(sent) = world.sent(actor.slot)
                    {
                        let record = &mut group.records[message.record as usize];
                        add_difference(record, &sent, &dialogue.counted.stats());
                    }
                }
                // Stable: what began at one moment on one pair keeps its number.
                group.records.sort_by_key(|record| (record.start, record.pair));
                group.streams.sort_unstable_by_key(|stream| stream.number);
                let mut goodput_bytes_per_pair = vec![Bytes::ZERO; group.routes.len()];
                for (bytes, pair) in group.goodput_per_connection.iter().zip(&group.pair_of_connection) {
                    goodput_bytes_per_pair[*pair as usize] += *bytes;
                }
                let requests = if spec.traffic.facts().closed_loop {
                    let begun = |actor: &Actor| actor.dialogue.as_ref().map_or(0, |dialogue| dialogue.begun);
                    group.actors.iter().map(begun).collect()
                } else {
                    Vec::new()
                };
                GroupOutput {
                    flows: group.records,
                    delivery_latency: group.delivery_latency,
                    ack_latency: group.ack_latency,
                    goodput_bytes: group.goodput,
                    dropped: group.dropped,
                    goodput_bytes_per_connection: group.goodput_per_connection,
                    goodput_bytes_per_pair,
                    super_packet_length: group.super_packet_length,
                    streams: group.streams,
                    datagrams: group.datagrams,
                    requests,
                    watched: Vec::new(),
                    connections: group.connections,
                }
            })
            .collect()
    }
}

/// Adds to `record` what a sender counted beyond `before`.
pub(super) fn add_difference(record: &mut FlowRecord, now: &Stats, before: &Stats) {
    record.segments_sent += (now.segments_sent - before.segments_sent) as u32;
    record.bytes_sent += Bytes(now.bytes_sent - before.bytes_sent);
    record.retransmits += now.retransmits - before.retransmits;
    record.timeouts += now.timeouts - before.timeouts;
    record.spurious_timeouts += now.spurious_timeouts - before.spurious_timeouts;
    record.probes += now.probes - before.probes;
    record.spurious_probes += now.spurious_probes - before.spurious_probes;
    record.ack_latency_sum += (now.ack_latency_sum - before.ack_latency_sum).as_secs_f64();
    record.ack_latency_count += (now.ack_latency_count - before.ack_latency_count) as u32;
    let mut repairs = record.repairs();
    repairs.congestion_events += now.congestion_events - before.congestion_events;
    repairs.new_probes += now.new_probes - before.new_probes;
    repairs.rdb_packets += now.rdb_packets - before.rdb_packets;
    repairs.rdb_losses += now.rdb_losses - before.rdb_losses;
    repairs.rdb_bytes += Bytes(now.rdb_bytes - before.rdb_bytes);
    if now.retransmits > before.retransmits {
        repairs.longest_recovery = repairs.longest_recovery.max(now.longest_recovery);
    }
    if repairs != Repairs::default() {
        record.repairs = Some(Box::new(repairs));
    }
}
