//! Flow records: what is noted of each flow, and the results of a group.

use crate::endpoint::{Group, Hosts, NONE};
use crate::observe::Observer;
use crate::output::{FlowRecord, GroupOutput, Repairs};
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

impl<O: Observer> Hosts<'_, O> {
    pub(super) fn new_record(&mut self, group: u32, pair: u32, start: Instant, bytes: Bytes) -> u32 {
        let records = &mut self.groups[group as usize].records;
        records.push(FlowRecord {
            pair,
            bytes,
            start,
            ..FlowRecord::default()
        });
        (records.len() - 1) as u32
    }

    /// Fills the record of a conversation that is one flow. The bytes of one that is `endless` are those that arrived.
    pub(super) fn record_connection(&mut self, slot: u32, endless: bool) {
        if self.slots[slot as usize].record == NONE {
            return;
        }
        self.wake(slot, 0);
        self.wake(slot, 1);
        let (sent, taken) = (self.sent(slot), self.taken(slot));
        let place = &self.slots[slot as usize];
        let group = &mut self.groups[place.group as usize];
        let record = &mut group.records[place.record as usize];
        record.completed = happened(place.completed);
        record.acked = happened(place.acked);
        if let Some(sender) = &place.ends[0].connection
            && let Some(sent) = &sent
        {
            record.received = Bytes(place.ends[1].received);
            record.min_rtt = sender.info(self.now).min_rtt;
            add_difference(record, sent, &Stats::default());
            let seen = sender.ack_latencies().iter();
            let counted = seen.filter(|(first, _)| self.window.contains(*first));
            group
                .ack_latency
                .extend(counted.map(|(_, latency)| latency.as_secs_f64()));
        }
        if let Some(taken) = &taken {
            record.redundant_bytes = Bytes(taken.redundant_bytes);
        }
        if endless {
            record.bytes = record.received;
        }
    }
}

/// The results of a group.
pub(super) fn output(mut group: Group, requests: Vec<u32>) -> GroupOutput {
    // Stable: what began at one moment on one pair keeps its number.
    group.records.sort_by_key(|record| (record.start, record.pair));
    group.streams.sort_unstable_by_key(|stream| stream.number);
    let mut goodput_bytes_per_pair = vec![Bytes::ZERO; group.routes.len()];
    for (bytes, pair) in group.goodput_per_connection.iter().zip(&group.pair_of_connection) {
        goodput_bytes_per_pair[*pair as usize] += *bytes;
    }
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
}

/// A moment, if it came.
pub(super) fn happened(at: Instant) -> Option<Instant> {
    (at != Instant::FAR_FUTURE).then_some(at)
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
