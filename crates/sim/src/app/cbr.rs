//! Datagrams at a constant bit rate, without feedback. A flow record is a stream; datagrams have their one-way delays.

use super::Application;
use super::datagrams::{payload_of, sent_at};
use super::group::Member;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};

/// The streams of a group.
pub(crate) struct Cbr {
    group: u32,
    rate: Rate,
    packet: Bytes,
    streams: Vec<Stream>,
    /// Copies on their way of datagrams that left in the measured time; below zero for a moment where both copies of one arrive before it is
    /// heard that it was doubled.
    on_their_way: i64,
    /// Datagrams of the measured time of which neither a copy has arrived nor the last one was lost; below zero as above.
    unsettled: i64,
}

struct Stream {
    pair: u32,
    /// Its conversation, or `NONE`.
    slot: u32,
    /// Datagrams sent.
    sent: u32,
}

impl Cbr {
    pub(super) fn new<O: Observer>(hosts: &mut Hosts<'_, O>, group: u32, rate: Rate, packet: Bytes) -> Cbr {
        let mut streams = Vec::new();
        for Member { number, pair, start } in hosts.members(group) {
            streams.push(Stream {
                pair,
                slot: NONE,
                sent: 0,
            });
            hosts.act_at(group, number, start);
        }
        Cbr {
            group,
            rate,
            packet,
            streams,
            on_their_way: 0,
            unsettled: 0,
        }
    }

    /// So many more copies of a datagram that was sent at `sent` are on their way, or fewer. The run waits for them.
    fn more_on_their_way<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, sent: Instant, more: i64) {
        if hosts.window.contains(sent) {
            let before = self.on_their_way.max(0);
            self.on_their_way += more;
            let now = self.on_their_way.max(0);
            hosts.open = hosts.open.saturating_add_signed(now - before);
        }
    }
}

impl Application for Cbr {
    /// The next datagram of a stream leaves.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let stream = &mut self.streams[actor as usize];
        // Differences of exact times: no drift, whatever the rate.
        let at = |number: u32| self.rate.time_for(self.packet * u64::from(number));
        let gap = at(stream.sent + 1) - at(stream.sent);
        stream.sent += 1;
        if stream.slot == NONE {
            stream.slot = hosts.open_pair(now, self.group, actor, stream.pair, None);
            hosts.slots[stream.slot as usize].record =
                hosts.new_record(self.group, stream.pair, now, Bytes::ZERO);
        }
        let slot = stream.slot;
        let record = hosts.slots[slot as usize].record;
        self.more_on_their_way(hosts, now, 1);
        self.unsettled += i64::from(hosts.window.contains(now));
        hosts.send_datagram(now, slot, payload_of(self.packet), record);
        let next = now.saturating_add(gap.max(Duration::from_nanos(1)));
        hosts.act_at(self.group, actor, next);
    }

    fn on_packet<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        side: usize,
        segment: &Segment,
    ) {
        let sent = sent_at(segment);
        if let Some(bytes) = hosts.count_datagram(now, slot, side, segment) {
            let record = hosts.slots[slot as usize].record;
            let group = &mut hosts.groups[self.group as usize];
            if record != NONE {
                group.records.edit(record).received += bytes;
            }
            if hosts.window.contains(sent) {
                self.unsettled -= 1;
                group.datagrams.arrived += 1;
                group.delivery_latency.push(now.since(sent).as_secs_f64());
            }
        }
        self.more_on_their_way(hosts, sent, -1);
    }

    fn on_datagram_lost<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, segment: &Segment) {
        if !hosts.copies.another_counts() && hosts.window.contains(sent_at(segment)) {
            self.unsettled -= 1;
            hosts.groups[self.group as usize].datagrams.lost += 1;
        }
        self.more_on_their_way(hosts, sent_at(segment), -1);
    }

    fn on_datagram_doubled<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, segment: &Segment) {
        self.more_on_their_way(hosts, sent_at(segment), 1);
    }

    /// What has not come by now never does.
    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        hosts.groups[self.group as usize].datagrams.lost += self.unsettled.max(0).unsigned_abs();
        Vec::new()
    }

    fn record<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        hosts.record_connection(slot, true);
    }
}
