//! Trains of raw packets: headers that say what an attacker likes, in conversations that nobody answers.
//!
//! Each train is a conversation of its own, so that its key stays what it is while its packets wait in queues; it ends when
//! the last of them has left the network. Trains may overlap. What a train says of itself is drawn from the group's own
//! stream when it begins.

use super::{Route, UDP_HEADERS};
use crate::endpoint::Opening;
use crate::observe::Observer;
use crate::spec::{GroupSpec, PairPolicy, Raw, RawMark, RawPorts, RawSource};
use crate::world::World;
use fleetfoot_core::flow::{FlowId, FlowKey, HostId};
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::ring::Ring;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::superpacket::Mark;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// What one actor has begun.
#[derive(Debug)]
pub(super) struct Trains {
    /// When the next train begins.
    next: Instant,
    /// Trains begun.
    begun: u64,
    /// Those that are not over, in the order of their next packets: all have the same interval.
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

impl Trains {
    /// The first train begins at `next`.
    pub(super) fn new(next: Instant) -> Trains {
        Trains {
            next,
            begun: 0,
            open: Ring::new(),
            record: super::NONE,
        }
    }
}

impl<O: Observer> World<'_, O> {
    /// A train begins, or a packet of one is due.
    pub(super) fn act_raw(&mut self, index: u32, actor: u32, now: Instant, spec: &GroupSpec, raw: &Raw) {
        let place = &mut self.groups[index as usize].actors[actor as usize];
        let (pair, Some(mut trains)) = (place.pair, place.trains.take()) else {
            return;
        };
        if trains.record == super::NONE {
            trains.record = self.new_record(index, pair, now, Bytes::ZERO);
        }
        while let Some(&train) = trains.open.front().filter(|train| train.at <= now) {
            trains.open.pop_front();
            self.continue_train(now, index, raw, &mut trains, train);
        }
        if trains.next <= now && raw.count.is_none_or(|count| trains.begun < count) {
            let pair = match spec.spread {
                PairPolicy::Each => pair,
                PairPolicy::RoundRobin | PairPolicy::Random => self.pick_pair(index, spec),
            };
            let train = self.begin_train(now, index, actor, pair, raw);
            trains.begun += 1;
            let gap = Duration::from_secs_f64(self.groups[index as usize].gap.sample());
            trains.next = now.saturating_add(gap.max(Duration::from_nanos(1))); // time must pass
            self.continue_train(now, index, raw, &mut trains, train);
        }
        let more = raw.count.is_none_or(|count| trains.begun < count);
        let next = trains.open.front().map_or(Instant::FAR_FUTURE, |train| train.at);
        let next = if more { next.min(trains.next) } else { next };
        self.groups[index as usize].actors[actor as usize].trains = Some(trains);
        if next != Instant::FAR_FUTURE {
            self.act_at(index, actor, next);
        }
    }

    /// Opens the conversation of a train and gives it the headers it claims.
    fn begin_train(&mut self, now: Instant, index: u32, actor: u32, pair: u32, raw: &Raw) -> Train {
        let Route { hosts, paths, .. } = self.groups[index as usize].routes[pair as usize];
        let mut opening = Opening {
            group: index,
            actor,
            pair,
            hosts,
            paths,
            relay: None,
            opener: None,
            key: None,
        };
        let mut key = opening.usual_key(self.groups[index as usize].conversations);
        match raw.source {
            RawSource::Own => {}
            RawSource::Drawn(addresses) => {
                let drawn = self.groups[index as usize].marks.below(u64::from(addresses));
                key.source = HostId(UNUSED_HOSTS + drawn as u32);
            }
            RawSource::Host(host) => key.source = HostId(host.0),
            RawSource::Victim(group) => key = self.victim(index, group, key),
        }
        let random = &mut self.groups[index as usize].marks;
        match raw.ports {
            RawPorts::New | RawPorts::Known => {}
            RawPorts::Same => (key.source_port, key.destination_port) = (1024, 9),
            RawPorts::Drawn => {
                key.source_port = random.next_u32() as u16;
                key.destination_port = random.next_u32() as u16;
            }
        }
        let drawn = random.next_u32() as u16;
        opening.key = Some(key);
        Train {
            at: now,
            slot: self.open(now, &opening),
            sent: 0,
            id: raw.id.unwrap_or(drawn) & raw.layout.max_id(),
        }
    }

    /// The key of a connection of `group` that is open, or else addresses of one of its pairs.
    fn victim(&mut self, index: u32, group: u32, own: FlowKey) -> FlowKey {
        let open = |slot: &&crate::endpoint::Slot| slot.live && slot.group == group;
        let count = self.slots.iter().filter(open).count() as u64;
        let random = &mut self.groups[index as usize].marks;
        if count > 0 {
            let chosen = random.below(count) as usize;
            let slots = self.slots.iter().enumerate();
            let found = slots.filter(|(_, slot)| open(slot)).nth(chosen);
            return found.map_or(own, |(slot, _)| self.network.flows.key(FlowId(2 * slot as u32)));
        }
        let pairs = self.groups[group as usize].routes.len() as u64;
        let pair = self.groups[index as usize].marks.below(pairs) as usize;
        let hosts = self.groups[group as usize]
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

    /// The next packet of a train leaves; with no interval, all that are left.
    fn continue_train(&mut self, now: Instant, index: u32, raw: &Raw, trains: &mut Trains, mut train: Train) {
        loop {
            let last = train.sent + 1 >= raw.members;
            let segment = packet(raw, &train, last, trains.record);
            let sent = &mut self.groups[index as usize].records[trains.record as usize];
            sent.segments_sent += 1;
            sent.bytes_sent += Bytes(u64::from(segment.payload));
            if last {
                // The conversation is over when its packets have left the network.
                for end in &mut self.slots[train.slot as usize].ends {
                    end.closed = true;
                }
            }
            self.send_from(now, train.slot, 0, segment);
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

/// Packet number `train.sent` of a train.
fn packet(raw: &Raw, train: &Train, last: bool, record: u32) -> Segment {
    let mut segment = Segment {
        seq: SeqNumber(train.sent),
        payload: (raw.packet.get() as u32)
            .saturating_sub(u32::from(UDP_HEADERS))
            .max(1),
        flags: Flags::DF,
        ttl: 64,
        overhead: UDP_HEADERS,
        ..Segment::default()
    };
    segment.set_kind(Kind::Datagram);
    segment.options[2] = record;
    let mark = match raw.mark {
        RawMark::Regular => Mark::REGULAR,
        RawMark::SuperPacket if train.sent > 0 => Mark::follower(raw.length, train.id),
        RawMark::First | RawMark::SuperPacket => Mark::first(raw.length, train.id),
        RawMark::Follower => Mark::follower(raw.length, train.id),
    };
    let mark = if raw.last && last { mark.ending() } else { mark };
    // The length was checked against the layout; a packet without TCP has room for every layout.
    let _ = raw.layout.mark(&mut segment, mark);
    segment
}

/// Hosts from here on do not exist.
const UNUSED_HOSTS: u32 = 1 << 23;
