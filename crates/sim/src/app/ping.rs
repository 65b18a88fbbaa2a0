//! Echo requests. A flow record is one exchange; its completion time is the round-trip time.

use super::Application;
use super::datagrams::payload_of;
use super::group::Member;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::rng::{Distribution, Sampler};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The processes of a group.
pub(crate) struct Ping {
    group: u32,
    gap: Sampler,
    packet: Bytes,
    /// By pair, its conversation: a process that deals its pings over pairs keeps one for each.
    conversations: Vec<u32>,
    /// Pings that may still come back.
    open: Vec<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    record: u32,
    /// Copies of its request and of the answers that are in the network.
    in_network: u32,
}

impl Ping {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'_, O>,
        group: u32,
        interval: &Distribution,
        packet: Bytes,
    ) -> Ping {
        for Member { number, start, .. } in hosts.processes(group) {
            hosts.act_at(group, number, start);
        }
        Ping {
            group,
            gap: Sampler::new(interval.clone(), hosts.stream(group, "gap")),
            packet,
            conversations: vec![NONE; hosts.groups[group as usize].routes.len()],
            open: Vec::new(),
        }
    }

    /// Whether this ping was still awaited; it no longer is.
    fn over<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, record: u32) -> bool {
        let Some(at) = self.at(record) else {
            return false;
        };
        self.open.swap_remove(at);
        hosts.open -= 1;
        true
    }

    fn at(&self, record: u32) -> Option<usize> {
        self.open.iter().position(|open| open.record == record)
    }
}

impl Application for Ping {
    /// The next request leaves.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let gap = Duration::from_secs_f64(self.gap.sample()).max(Duration::from_nanos(1));
        let pair = hosts.pair_of_flow(self.group, actor);
        let slot = &mut self.conversations[pair as usize];
        if *slot == NONE {
            *slot = hosts.open_pair(now, self.group, actor, pair, None);
        }
        let payload = payload_of(self.packet);
        let record = hosts.open_record(self.group, pair, now, Bytes(u64::from(payload)));
        if record != NONE {
            // Wherever its pings go, whoever waits for one that was lost waits until the next one of the process.
            let group = &mut hosts.groups[self.group as usize];
            group.stream_of_record.push(actor);
            self.open.push(Open {
                record,
                in_network: 1,
            });
        }
        hosts.send_datagram(now, *slot, payload, record);
        hosts.act_at(self.group, actor, now.saturating_add(gap));
    }

    /// A request reaches the far end, which sends it back, or an answer is there.
    fn on_packet<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        side: usize,
        segment: &Segment,
    ) {
        hosts.count_datagram(now, slot, side, segment);
        if side == 1 {
            hosts.send_from(now, slot, 1, *segment);
            return;
        }
        let record = segment.options[2];
        if self.over(hosts, record) {
            let mut answered = hosts.groups[self.group as usize].records.edit(record);
            answered.completed = Some(now);
            answered.acked = Some(now);
            answered.received = Bytes(u64::from(segment.payload));
        }
    }

    fn on_datagram_lost<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, segment: &Segment) {
        let Some(at) = self.at(segment.options[2]) else {
            return;
        };
        self.open[at].in_network -= 1;
        if self.open[at].in_network == 0 {
            self.over(hosts, segment.options[2]);
        }
    }

    /// A request that is doubled is answered twice; the first answer counts.
    fn on_datagram_doubled<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, segment: &Segment) {
        if let Some(at) = self.at(segment.options[2]) {
            self.open[at].in_network += 1;
        }
    }
}
