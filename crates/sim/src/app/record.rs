//! Flow records: what is noted of each flow, and the results of a group.

use crate::endpoint::{Group, Hosts, NONE};
use crate::observe::Observer;
use crate::output::{FlowRecord, GroupOutput};
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
        })
    }

    /// Fills the record of a conversation that is one flow. The bytes of one that is `endless` are those that arrived.
    pub(super) fn record_connection(&mut self, slot: u32, endless: bool) {
        if self.slots[slot as usize].record == NONE {
            return;
        }
        self.wake(slot, 0);
        self.wake(slot, 1);
        let counted = self.counted(slot);
        let place = &self.slots[slot as usize];
        let group = &mut self.groups[place.group as usize];
        let mut record = group.records.edit(place.record);
        record.completed = happened(place.completed);
        record.acked = happened(place.acked);
        if let Some(sender) = &place.ends[0].connection
            && let Some(counted) = &counted
        {
            record.received = Bytes(place.ends[1].received);
            record.min_rtt = sender.info(self.now).min_rtt;
            record.add(counted);
            let seen = sender.ack_latencies().iter();
            let counted = seen.filter(|(first, _)| self.window.contains(*first));
            group
                .ack_latency
                .extend(counted.map(|(_, latency)| latency.as_secs_f64()));
            let waiting = sender.unacknowledged();
            let waiting = waiting.filter(|first| self.window.contains(*first));
            group.cut_off.segments.extend(waiting);
        }
        if endless {
            record.bytes = record.received;
        }
    }

    /// Adds what one of several connections of a flow counted and brought to the flow's record.
    pub(super) fn add_connection(&mut self, slot: u32, record: u32) {
        if record == NONE {
            return;
        }
        self.wake(slot, 0);
        self.wake(slot, 1);
        let counted = self.counted(slot);
        let place = &self.slots[slot as usize];
        let mut record = self.groups[place.group as usize].records.edit(record);
        record.received += Bytes(place.ends[1].received);
        if let Some(sender) = &place.ends[0].connection
            && let Some(counted) = &counted
        {
            record.add(counted);
            let rtt = sender.info(self.now).min_rtt;
            record.min_rtt = record.min_rtt.into_iter().chain(rtt).min();
        }
    }
}

/// The results of a group in a run that ended at `ended`.
pub(super) fn output(mut group: Group, requests: Vec<u32>, ended: Instant) -> GroupOutput {
    // Stable: what began at one moment on one pair keeps its number. Mostly they are in order, and to sort takes half as much again.
    let order = |record: &FlowRecord| (record.start, record.pair);
    let mut flows = group.records.into_vec();
    let mut stream_of_flow = group.stream_of_record;
    if !flows.is_sorted_by_key(order) {
        if stream_of_flow.is_empty() {
            flows.sort_by_key(order);
        } else {
            let mut both: Vec<(FlowRecord, u32)> = flows.into_iter().zip(stream_of_flow).collect();
            both.sort_by_key(|(flow, _)| order(flow));
            (flows, stream_of_flow) = both.into_iter().unzip();
        }
    }
    group.streams.sort_unstable_by_key(|stream| stream.number);
    // In the order in which connections ended, which is another where somebody watches.
    group.ack_latency.sort_unstable_by(f64::total_cmp);
    let ages = |mut since: Vec<Instant>| -> Vec<f64> {
        since.sort_unstable();
        since.iter().map(|at| ended.since(*at).as_secs_f64()).collect()
    };
    let mut goodput_bytes_per_pair = vec![Bytes::ZERO; group.routes.len()];
    for (bytes, pair) in group.goodput_per_connection.iter().zip(&group.pair_of_connection) {
        goodput_bytes_per_pair[*pair as usize] += *bytes;
    }
    GroupOutput {
        flows,
        stream_of_flow,
        delivery_latency: group.delivery_latency,
        delivery_censored: ages(group.cut_off.writes),
        ack_latency: group.ack_latency,
        ack_latency_censored: ages(group.cut_off.segments),
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
        connections_censored: ages(group.cut_off.connections),
        measures: group.measures,
    }
}

/// A moment, if it came.
pub(super) fn happened(at: Instant) -> Option<Instant> {
    (at != Instant::FAR_FUTURE).then_some(at)
}

/// Adds to the record of a message that did not arrive what was counted since `before`; bytes received more than once were those
/// of the message before it.
pub(super) fn add_unfinished(record: &mut FlowRecord, now: &Stats, before: &Stats) {
    let redundant_bytes = before.redundant_bytes;
    let now = Stats {
        redundant_bytes,
        ..*now
    };
    record.add(&now.since(before));
}
