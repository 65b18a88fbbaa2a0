//! Trains of raw packets: headers that say what an attacker likes, in conversations that nobody answers.
//!
//! Each train is a conversation of its own, so that its key stays what it is while its packets wait in queues; it ends when
//! the last of them has left the network. Trains may overlap. What a train says of itself is drawn from the group's own
//! stream when it begins.

use super::Application;
use super::datagrams::{UDP_HEADERS, payload_of};
use super::group::Member;
use crate::collision;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::spec::{self, RawMark, RawPorts, RawSource};
use fleetfoot_core::flow::{FlowId, FlowKey, HostId};
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::ring::Ring;
use fleetfoot_core::rng::Sampler;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::superpacket::Mark;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The processes of trains of a group.
pub(crate) struct Raw<'a> {
    group: u32,
    raw: &'a spec::Raw,
    gap: Sampler,
    processes: Vec<Trains>,
    /// The queue in whose table trains collide.
    table: Option<Box<AnyQueue>>,
}

/// What one process has begun.
#[derive(Debug)]
struct Trains {
    pair: u32,
    /// When the next train begins.
    next: Instant,
    /// Trains begun.
    begun: u64,
    /// Trains that are not over, in the order of their next packets: all have the same interval.
    open: Ring<Train>,
    /// Record of what was sent and what arrived.
    record: u32,
}

#[derive(Clone, Copy, Debug)]
struct Train {
    /// When its next packet leaves.
    at: Instant,
    slot: u32,
    /// Packets that left.
    sent: u32,
    id: u16,
}

impl<'a> Raw<'a> {
    pub(super) fn new<O: Observer>(hosts: &mut Hosts<'a, O>, group: u32, raw: &'a spec::Raw) -> Raw<'a> {
        let mut gap = Sampler::new(raw.interarrival.clone(), hosts.stream(group, "gap"));
        let mut processes = Vec::new();
        for Member { number, pair, start } in hosts.processes(group) {
            let next = start.saturating_add(Duration::from_secs_f64(gap.sample()));
            processes.push(Trains {
                pair,
                next,
                begun: 0,
                open: Ring::new(),
                record: NONE,
            });
            hosts.act_at(group, number, next);
        }
        let spec = &hosts.spec.groups[group as usize];
        let table = match collision::collides(spec) {
            true => collision::queue_with_table(hosts.spec, spec).map(Box::new),
            false => None,
        };
        Raw {
            group,
            raw,
            gap,
            processes,
            table,
        }
    }

    /// Opens the conversation of a train and gives it the headers it claims.
    fn begin_train<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32) -> Train {
        let (index, raw) = (self.group, self.raw);
        let pair = hosts.pair_of_flow(index, self.processes[actor as usize].pair);
        let mut opening = hosts.opening(index, actor, pair, None);
        opening.relay = None;
        let mut key = opening.usual_key(hosts.groups[index as usize].conversations);
        match raw.source {
            RawSource::Own => {}
            RawSource::Drawn(addresses) => {
                let drawn = hosts.groups[index as usize].marks.below(u64::from(addresses));
                key.source = HostId(UNUSED_HOSTS + drawn as u32);
            }
            RawSource::Host(host) => key.source = HostId(host.0),
            RawSource::Victim(group) => key = victim(hosts, index, group, key),
        }
        let random = &mut hosts.groups[index as usize].marks;
        let mut collided = None;
        match (raw.ports, &self.table) {
            (RawPorts::Colliding, Some(queue)) => {
                let (port, id) = raw.collide(queue, key, random);
                key.source_port = port;
                collided = Some(id);
            }
            (RawPorts::New | RawPorts::Known | RawPorts::Colliding, _) => {}
            (RawPorts::Same, _) => (key.source_port, key.destination_port) = (1024, 9),
            (RawPorts::Drawn, _) => {
                key.source_port = random.next_u32() as u16;
                key.destination_port = random.next_u32() as u16;
            }
        }
        let drawn = random.next_u32() as u16;
        opening.key = Some(key);
        Train {
            at: now,
            slot: hosts.open(now, &opening, None),
            sent: 0,
            id: collided.or(raw.id).unwrap_or(drawn) & raw.layout.max_id(),
        }
    }

    /// The next packet of a train leaves; with no interval, all that are left.
    fn continue_train<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        actor: u32,
        mut train: Train,
    ) {
        let (raw, trains) = (self.raw, &mut self.processes[actor as usize]);
        loop {
            let last = train.sent + 1 >= raw.members;
            let mut segment = raw.packet(train.sent, train.id);
            segment.options[2] = trains.record;
            let records = &mut hosts.groups[self.group as usize].records;
            let payload = u64::from(segment.payload);
            records.edit(trains.record).add_datagrams(1, payload);
            if last {
                // The conversation is over when its packets have left the network.
                for end in &mut hosts.slots[train.slot as usize].ends {
                    end.closed = true;
                }
            }
            hosts.send_from(now, train.slot, 0, segment);
            train.sent += 1;
            if last {
                return;
            }
            if !raw.interval.is_zero() {
                train.at = now.saturating_add(raw.interval);
                trains.open.push_back(train);
                return;
            }
        }
    }
}

/// The key of a connection of `group` that is open, or else addresses of one of its pairs.
fn victim<O: Observer>(hosts: &mut Hosts<'_, O>, index: u32, group: u32, own: FlowKey) -> FlowKey {
    let open = |slot: &&crate::endpoint::Slot| slot.live && slot.group == group;
    let count = hosts.slots.iter().filter(open).count() as u64;
    let random = &mut hosts.groups[index as usize].marks;
    if count > 0 {
        let chosen = random.below(count) as usize;
        let slots = hosts.slots.iter().enumerate();
        let found = slots.filter(|(_, slot)| open(slot)).nth(chosen);
        return found.map_or(own, |(slot, _)| hosts.network.flows.key(FlowId(2 * slot as u32)));
    }
    let pairs = hosts.groups[group as usize].routes.len() as u64;
    let pair = hosts.groups[index as usize].marks.below(pairs) as usize;
    let hosts = hosts.groups[group as usize]
        .routes
        .get(pair)
        .map(|route| route.hosts);
    hosts.map_or(own, |[source, destination]| FlowKey {
        source: HostId(source.0),
        destination: HostId(destination.0),
        protocol: 6,
        ..own
    })
}

impl Application for Raw<'_> {
    /// A train begins, or a packet of one is due.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let most = self.raw.count.unwrap_or(u64::MAX);
        let trains = &mut self.processes[actor as usize];
        if trains.record == NONE {
            trains.record = hosts.new_record(self.group, trains.pair, now, Bytes::ZERO);
        }
        let due = |train: &&Train| train.at <= now;
        while let Some(&train) = self.processes[actor as usize].open.front().filter(due) {
            self.processes[actor as usize].open.pop_front();
            self.continue_train(hosts, now, actor, train);
        }
        let trains = &self.processes[actor as usize];
        if trains.next <= now && trains.begun < most {
            let train = self.begin_train(hosts, now, actor);
            let gap = Duration::from_secs_f64(self.gap.sample());
            let trains = &mut self.processes[actor as usize];
            trains.begun += 1;
            trains.next = now.saturating_add(gap.max(Duration::from_nanos(1))); // time must pass
            self.continue_train(hosts, now, actor, train);
        }
        let trains = &self.processes[actor as usize];
        let next = trains.open.front().map_or(Instant::FAR_FUTURE, |train| train.at);
        let next = match trains.begun < most {
            true => next.min(trains.next),
            false => next,
        };
        if next != Instant::FAR_FUTURE {
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
        let Some(bytes) = hosts.count_datagram(now, slot, side, segment) else {
            return;
        };
        let mut arrived = hosts.groups[self.group as usize].records.edit(segment.options[2]);
        arrived.received += bytes;
        arrived.bytes = arrived.received;
    }
}

impl spec::Raw {
    /// Packet `number` of a train with this identifier.
    pub fn packet(&self, number: u32, id: u16) -> Segment {
        let mut segment = Segment {
            seq: SeqNumber(number),
            payload: payload_of(self.packet),
            flags: Flags::DF,
            ttl: 64,
            overhead: UDP_HEADERS,
            ..Segment::default()
        };
        segment.set_kind(Kind::Datagram);
        let mark = match self.mark {
            RawMark::Regular => Mark::REGULAR,
            RawMark::SuperPacket if number > 0 => Mark::follower(self.length, id),
            RawMark::First | RawMark::SuperPacket => Mark::first(self.length, id),
            RawMark::Follower => Mark::follower(self.length, id),
        };
        let last = number + 1 >= self.members;
        let mark = if self.last && last { mark.ending() } else { mark };
        // The length was checked against the layout; a packet without TCP has room for every layout.
        let _ = self.layout.mark(&mut segment, mark);
        segment
    }
}

/// Hosts from here on do not exist.
const UNUSED_HOSTS: u32 = 1 << 23;
