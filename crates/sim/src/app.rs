//! Applications: what each traffic group does, one actor per arrival process, user, persistent connection or stream.
//!
//! An actor has at most one pending event. Sizes, gaps and choices of pair come from streams named after the group (and
//! the user, where there are several), so every variant of a scenario sees the same transfers at the same times. The
//! first event of an open-loop process is one gap after the group's start; a user thinks before the first transfer;
//! bursts, pings and datagrams begin at the start.

use crate::endpoint::Opening;
use crate::event::{EventKey, EventKind};
use crate::observe::Observer;
use crate::output::{FlowRecord, GroupOutput};
use crate::routing::PathStart;
use crate::spec::{GroupSpec, NodeId, Spread, Traffic};
use crate::world::{RunError, World};
use fleetfoot_core::cc::AnyController;
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::rng::{Distribution, Rng, Sampler};
use fleetfoot_core::tcp::{Connection, Stats};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::collections::{HashMap, VecDeque};

/// A traffic group while it runs.
pub(crate) struct Group {
    actors: Vec<Actor>,
    /// Sizes of transfers.
    size: Sampler,
    /// Time between arrivals, rounds or pings.
    gap: Sampler,
    spread: Rng,
    next_pair: u32,
    /// Initial sequence numbers.
    pub(crate) iss: Rng,
    /// Hosts and paths there and back, by pair.
    routes: Vec<Route>,
    /// Pair of each listed transfer.
    listed: Vec<u32>,
    /// Conversations so far.
    pub(crate) conversations: u32,
    /// Transfers, rounds or pings started so far.
    started: u64,
    /// Transfers of the current round that are not complete.
    remaining: u32,
    /// Nothing starts from here on.
    stop: Instant,
    records: Vec<FlowRecord>,
    /// Pings that may still come back, by record.
    pings: Vec<u32>,
    delivery_latency: Vec<f64>,
    pub(crate) goodput: Bytes,
    pub(crate) goodput_per_connection: Vec<Bytes>,
}

#[derive(Clone, Copy)]
struct Route {
    hosts: [NodeId; 2],
    paths: [PathStart; 2],
}

/// Somebody who acts.
struct Actor {
    pair: u32,
    /// The conversation it holds, or `NONE`.
    slot: u32,
    /// Transfers or datagrams started so far.
    started: u32,
    /// Its event is pending.
    pending: bool,
    /// Connections that carry many messages.
    dialogue: Option<Box<Dialogue>>,
}

/// State of a user or of a persistent connection.
struct Dialogue {
    /// Bytes of transfers, responses or bursts.
    size: Sampler,
    /// Bytes of requests, where there are any.
    request: Option<Box<Sampler>>,
    /// Think time or time between bursts.
    gap: Sampler,
    /// Exchanges or bursts begun.
    begun: u32,
    /// Messages on their way, oldest first.
    messages: VecDeque<Message>,
    /// Data whose acknowledgment is awaited: stream offset and record.
    unacked: VecDeque<(u64, u32)>,
    /// Counters already given to a record.
    counted: Stats,
    /// The same for bytes that the receiver had already.
    redundant_counted: u64,
    /// Stream offsets written so far by each end.
    written: [u64; 2],
}

#[derive(Clone, Copy)]
struct Message {
    /// Stream offset of its end.
    end: u64,
    written_at: Instant,
    record: u32,
}

impl<O: Observer> World<'_, O> {
    pub(crate) fn set_up_groups(&mut self) -> Result<(), RunError> {
        let spec = self.spec;
        for (index, group) in spec.groups.iter().enumerate() {
            for config in [&group.sender, &group.receiver] {
                let name = config.congestion_control;
                if !AnyController::ENTRIES.iter().any(|entry| entry.name == name) {
                    return Err(RunError::UnknownController(name.to_owned()));
                }
            }
            let stream = |purpose| Rng::for_element(spec.seed, &group.name, purpose);
            let none = || Distribution::Constant(0.0);
            let (size, gap) = match &group.traffic {
                Traffic::Transfer {
                    size, interarrival, ..
                } => (size.clone(), interarrival.clone()),
                Traffic::Incast { size, pause, .. } => (size.clone(), pause.clone()),
                Traffic::Ping { interval, .. } => (none(), interval.clone()),
                Traffic::Bulk { .. }
                | Traffic::ClosedLoop { .. }
                | Traffic::RequestResponse { .. }
                | Traffic::OnOff { .. }
                | Traffic::Cbr { .. }
                | Traffic::Flows { .. } => (none(), none()),
            };
            let mut pairs = group.pairs.clone();
            let mut listed = Vec::new();
            if let Traffic::Flows { list } = &group.traffic {
                let mut known: HashMap<_, _> = pairs.iter().copied().zip(0_u32..).collect();
                for line in list.iter() {
                    let ends = (line.source, line.destination);
                    listed.push(*known.entry(ends).or_insert_with(|| {
                        pairs.push(ends);
                        (pairs.len() - 1) as u32
                    }));
                }
            }
            let mut routes = Vec::with_capacity(pairs.len());
            for &(from, to) in &pairs {
                let paths = [self.path(index, from, to)?, self.path(index, to, from)?];
                routes.push(Route {
                    hosts: [from, to],
                    paths,
                });
            }
            if routes.is_empty() && !matches!(&group.traffic, Traffic::Flows { list } if list.is_empty()) {
                return Err(RunError::NoPairs(group.name.clone()));
            }
            self.groups.push(Group {
                actors: Vec::new(),
                size: Sampler::new(size, stream("size")),
                gap: Sampler::new(gap, stream("gap")),
                spread: stream("spread"),
                next_pair: 0,
                iss: stream("iss"),
                routes,
                listed,
                conversations: 0,
                started: 0,
                remaining: 0,
                stop: Instant::ZERO + group.stop.unwrap_or(spec.duration).min(spec.duration),
                records: Vec::new(),
                pings: Vec::new(),
                delivery_latency: Vec::new(),
                goodput: Bytes::ZERO,
                goodput_per_connection: Vec::new(),
            });
            self.set_up_actors(index as u32, group);
        }
        Ok(())
    }

    fn set_up_actors(&mut self, index: u32, spec: &GroupSpec) {
        let start = Instant::ZERO + spec.start;
        let each = spec.spread == Spread::Each;
        let pairs = self.groups[index as usize].routes.len() as u32;
        let processes = if each { pairs } else { 1 };
        let (members, one_per_member) = match &spec.traffic {
            Traffic::Transfer { .. } | Traffic::Ping { .. } => (processes, false),
            Traffic::Incast { .. } | Traffic::Flows { .. } => (1, false),
            Traffic::Bulk { count }
            | Traffic::ClosedLoop { count, .. }
            | Traffic::RequestResponse { count, .. }
            | Traffic::OnOff { count, .. }
            | Traffic::Cbr { count, .. } => (count * processes, true),
        };
        for member in 0..members {
            let pair = if one_per_member && !each {
                self.pick_pair(index, spec)
            } else {
                member % pairs.max(1)
            };
            let dialogue = self.dialogue(spec, member);
            let group = &mut self.groups[index as usize];
            group.actors.push(Actor {
                pair,
                slot: NONE,
                started: 0,
                pending: false,
                dialogue,
            });
            let spacing = spec.start_spacing.saturating_mul(u64::from(if one_per_member {
                member / processes
            } else {
                0
            }));
            let mut at = start.saturating_add(spacing);
            match &spec.traffic {
                Traffic::Transfer { count: Some(0), .. } => continue,
                Traffic::Transfer { .. } => {
                    at = at.saturating_add(Duration::from_secs_f64(group.gap.sample()));
                }
                Traffic::ClosedLoop { .. } => {
                    if let Some(dialogue) = &mut group.actors[member as usize].dialogue {
                        at = at.saturating_add(Duration::from_secs_f64(dialogue.gap.sample()));
                    }
                }
                Traffic::Flows { list } => match list.first() {
                    Some(line) => at = at.saturating_add(line.start),
                    None => continue,
                },
                Traffic::Bulk { .. }
                | Traffic::Incast { .. }
                | Traffic::RequestResponse { .. }
                | Traffic::OnOff { .. }
                | Traffic::Cbr { .. }
                | Traffic::Ping { .. } => {}
            }
            self.act_at(index, member, at);
        }
    }

    /// What a user or a persistent connection draws from.
    fn dialogue(&self, spec: &GroupSpec, member: u32) -> Option<Box<Dialogue>> {
        let (size, request, gap) = match &spec.traffic {
            Traffic::ClosedLoop { size, think, .. } => (size, None, think),
            Traffic::RequestResponse {
                request,
                response,
                think,
                ..
            } => (response, Some(request), think),
            Traffic::OnOff { burst, interval, .. } => (burst, None, interval),
            Traffic::Bulk { .. }
            | Traffic::Transfer { .. }
            | Traffic::Incast { .. }
            | Traffic::Cbr { .. }
            | Traffic::Flows { .. }
            | Traffic::Ping { .. } => return None,
        };
        let name = format!("{}/{member}", spec.name);
        let stream = |purpose| Rng::for_element(self.spec.seed, &name, purpose);
        Some(Box::new(Dialogue {
            size: Sampler::new(size.clone(), stream("size")),
            request: request.map(|request| Box::new(Sampler::new(request.clone(), stream("request")))),
            gap: Sampler::new(gap.clone(), stream("gap")),
            begun: 0,
            messages: VecDeque::new(),
            unacked: VecDeque::new(),
            counted: Stats::default(),
            redundant_counted: 0,
            written: [0; 2],
        }))
    }

    /// Which pair the next flow of the group gets.
    fn pick_pair(&mut self, index: u32, spec: &GroupSpec) -> u32 {
        let group = &mut self.groups[index as usize];
        let pairs = group.routes.len() as u32;
        match spec.spread {
            Spread::RoundRobin | Spread::Each => {
                let pair = group.next_pair;
                group.next_pair = (pair + 1) % pairs;
                pair
            }
            Spread::Random => group.spread.below(u64::from(pairs)) as u32,
        }
    }

    /// Schedules an actor, unless its group stops before.
    fn act_at(&mut self, group: u32, actor: u32, at: Instant) {
        if at < self.groups[group as usize].stop {
            self.push_event(group, actor, at);
        }
    }

    fn push_event(&mut self, group: u32, actor: u32, at: Instant) {
        let pending = &mut self.groups[group as usize].actors[actor as usize].pending;
        debug_assert!(!*pending, "two events of one actor");
        *pending = true;
        self.queue.push(EventKey::new(at, EventKind::App, group, actor));
    }

    /// An actor's event is due.
    pub(crate) fn on_actor(&mut self, index: u32, actor: u32, now: Instant) {
        let spec = &self.spec.groups[index as usize];
        self.groups[index as usize].actors[actor as usize].pending = false;
        match &spec.traffic {
            Traffic::Bulk { .. } => self.act_bulk(index, actor, now, spec),
            Traffic::Transfer { count, .. } => {
                let pair = match spec.spread {
                    Spread::Each => self.groups[index as usize].actors[actor as usize].pair,
                    Spread::RoundRobin | Spread::Random => self.pick_pair(index, spec),
                };
                let group = &mut self.groups[index as usize];
                let started = &mut group.actors[actor as usize].started;
                *started += 1;
                let more = count.is_none_or(|count| u64::from(*started) < count);
                let bytes = whole_bytes(group.size.sample());
                let mut gap = Duration::from_secs_f64(group.gap.sample());
                if count.is_none() {
                    gap = gap.max(Duration::from_nanos(1)); // time must pass
                }
                let next = now.saturating_add(gap);
                self.transfer(now, index, actor, pair, bytes);
                if more {
                    self.act_at(index, actor, next);
                }
            }
            Traffic::Incast { count, .. } => {
                self.groups[index as usize].started += 1;
                let pairs = self.groups[index as usize].routes.len() as u32;
                let each = spec.spread == Spread::Each;
                let members = if each { count * pairs } else { *count };
                self.groups[index as usize].remaining = members;
                for member in 0..members {
                    let pair = if each {
                        member % pairs
                    } else {
                        self.pick_pair(index, spec)
                    };
                    let bytes = whole_bytes(self.groups[index as usize].size.sample());
                    self.transfer(now, index, actor, pair, bytes);
                }
            }
            Traffic::ClosedLoop { .. } => {
                let place = &mut self.groups[index as usize].actors[actor as usize];
                let pair = place.pair;
                let Some(dialogue) = &mut place.dialogue else {
                    return;
                };
                let bytes = whole_bytes(dialogue.size.sample());
                self.transfer(now, index, actor, pair, bytes);
            }
            Traffic::RequestResponse { exchanges, .. } => self.act_request(index, actor, now, *exchanges),
            Traffic::OnOff { .. } => self.act_burst(index, actor, now),
            Traffic::Cbr { rate, packet, .. } => {
                // Differences of exact times: no drift, whatever the rate.
                let started = &mut self.groups[index as usize].actors[actor as usize].started;
                let at = |number: u32| rate.time_for(*packet * u64::from(number));
                let gap = at(*started + 1) - at(*started);
                *started += 1;
                self.act_datagram(index, actor, now, *packet, gap.max(Duration::from_nanos(1)));
            }
            Traffic::Flows { list } => {
                let mut line = self.groups[index as usize].started as usize;
                while let Some(listed) = list.get(line) {
                    let at = Instant::ZERO + spec.start + listed.start;
                    if at > now {
                        self.act_at(index, actor, at);
                        break;
                    }
                    let pair = self.groups[index as usize].listed[line];
                    self.transfer(now, index, actor, pair, listed.bytes.get());
                    line += 1;
                }
                self.groups[index as usize].started = line as u64;
            }
            Traffic::Ping { packet, .. } => {
                let gap = Duration::from_secs_f64(self.groups[index as usize].gap.sample());
                self.act_datagram(index, actor, now, *packet, gap.max(Duration::from_nanos(1)));
            }
        }
    }

    fn act_bulk(&mut self, index: u32, actor: u32, now: Instant, spec: &GroupSpec) {
        let place = &mut self.groups[index as usize].actors[actor as usize];
        place.started += 1;
        if place.started > 1 {
            let slot = std::mem::replace(&mut place.slot, NONE);
            // It may have died before.
            if slot != NONE {
                self.abort(now, slot);
            }
            return;
        }
        let pair = place.pair;
        let slot = self.open_pair(now, index, actor, pair, Some(0));
        self.groups[index as usize].actors[actor as usize].slot = slot;
        // Long-lived background is reported whenever it began.
        self.slots[slot as usize].record = self.new_record(index, pair, now, Bytes::ZERO);
        self.write(slot, 0, ENDLESS);
        self.pump(now, slot, 0);
        if let Some(stop) = spec.stop {
            self.push_event(index, actor, (Instant::ZERO + stop).max(now));
        }
    }

    /// Opens a connection for one transfer.
    fn transfer(&mut self, now: Instant, index: u32, actor: u32, pair: u32, bytes: u64) {
        let slot = self.open_pair(now, index, actor, pair, Some(0));
        let counts = self.window.contains(now);
        let record = if counts {
            self.open += 1;
            self.new_record(index, pair, now, Bytes(bytes))
        } else {
            NONE
        };
        let place = &mut self.slots[slot as usize];
        place.record = record;
        place.awaited = counts;
        place.unfinished = true;
        place.acked_goal = bytes;
        place.ends[1].goal = bytes;
        place.ends[0].closing = true;
        self.write(slot, 0, bytes);
        self.stream_ends(now, slot, bytes);
        self.pump(now, slot, 0);
    }

    fn act_request(&mut self, index: u32, actor: u32, now: Instant, exchanges: Option<u32>) {
        let place = &self.groups[index as usize].actors[actor as usize];
        let (pair, mut slot) = (place.pair, place.slot);
        if slot == NONE {
            // The client, who receives the data, opens.
            slot = self.open_pair(now, index, actor, pair, Some(1));
            self.groups[index as usize].actors[actor as usize].slot = slot;
        }
        let counts = self.window.contains(now);
        self.open += u64::from(counts);
        let record = if counts {
            self.new_record(index, pair, now, Bytes::ZERO)
        } else {
            NONE
        };
        let Some(dialogue) = &mut self.groups[index as usize].actors[actor as usize].dialogue else {
            return;
        };
        dialogue.begun += 1;
        let bytes = dialogue
            .request
            .as_mut()
            .map_or(1, |size| whole_bytes(size.sample()));
        dialogue.written[1] += bytes;
        let end = dialogue.written[1];
        dialogue.messages.push_back(Message {
            end,
            written_at: now,
            record,
        });
        let last = exchanges.is_some_and(|exchanges| dialogue.begun >= exchanges);
        self.write(slot, 1, bytes);
        let place = &mut self.slots[slot as usize];
        place.ends[0].goal = end;
        place.ends[1].closing = last;
        self.pump(now, slot, 1);
    }

    fn act_burst(&mut self, index: u32, actor: u32, now: Instant) {
        let place = &self.groups[index as usize].actors[actor as usize];
        let (pair, mut slot) = (place.pair, place.slot);
        if slot == NONE {
            slot = self.open_pair(now, index, actor, pair, Some(0));
            self.groups[index as usize].actors[actor as usize].slot = slot;
        }
        let counts = self.window.contains(now);
        let group = &mut self.groups[index as usize];
        let Some(dialogue) = &mut group.actors[actor as usize].dialogue else {
            return;
        };
        dialogue.begun += 1;
        let bytes = whole_bytes(dialogue.size.sample());
        let gap = Duration::from_secs_f64(dialogue.gap.sample()).max(Duration::from_nanos(1));
        dialogue.written[0] += bytes;
        let end = dialogue.written[0];
        let record = if counts {
            self.new_record(index, pair, now, Bytes(bytes))
        } else {
            NONE
        };
        self.open += u64::from(counts);
        let group = &mut self.groups[index as usize];
        let Some(dialogue) = &mut group.actors[actor as usize].dialogue else {
            return;
        };
        dialogue.messages.push_back(Message {
            end,
            written_at: now,
            record,
        });
        dialogue.unacked.push_back((end, record));
        let goal = dialogue.messages[0].end;
        let acked_goal = dialogue.unacked[0].0;
        let next = now.saturating_add(gap);
        let last = next >= group.stop;
        let place = &mut self.slots[slot as usize];
        place.ends[1].goal = goal;
        place.acked_goal = acked_goal;
        place.ends[0].closing = last;
        self.write(slot, 0, bytes);
        self.stream_ends(now, slot, end);
        self.pump(now, slot, 0);
        self.act_at(index, actor, next);
    }

    fn act_datagram(&mut self, index: u32, actor: u32, now: Instant, packet: Bytes, gap: Duration) {
        let spec = &self.spec.groups[index as usize];
        let ping = matches!(spec.traffic, Traffic::Ping { .. });
        let pair = if ping && spec.spread != Spread::Each {
            self.pick_pair(index, spec)
        } else {
            self.groups[index as usize].actors[actor as usize].pair
        };
        let mut slot = self.groups[index as usize].actors[actor as usize].slot;
        if slot == NONE || self.slots[slot as usize].pair != pair {
            // A process that deals its pings over pairs keeps one conversation per pair.
            slot = self
                .slots
                .iter()
                .position(|slot| slot.live && slot.group == index && slot.actor == actor && slot.pair == pair)
                .map_or_else(
                    || self.open_pair(now, index, actor, pair, None),
                    |slot| slot as u32,
                );
            self.groups[index as usize].actors[actor as usize].slot = slot;
            if !ping && self.slots[slot as usize].record == NONE {
                self.slots[slot as usize].record = self.new_record(index, pair, now, Bytes::ZERO);
            }
        }
        let payload = (packet.get() as u32)
            .saturating_sub(u32::from(UDP_HEADERS))
            .max(1);
        let mut record = self.slots[slot as usize].record;
        if ping {
            record = NONE;
            if self.window.contains(now) {
                record = self.new_record(index, pair, now, Bytes(u64::from(payload)));
                self.open += 1;
                self.groups[index as usize].pings.push(record);
            }
        }
        if record != NONE {
            let sent = &mut self.groups[index as usize].records[record as usize];
            sent.segments_sent += 1;
            sent.bytes_sent += Bytes(u64::from(payload));
        }
        let place = &mut self.slots[slot as usize];
        let number = place.bytes as u32;
        place.bytes += 1;
        let mut segment = Segment {
            seq: fleetfoot_core::seq::SeqNumber(number),
            payload,
            flags: Flags::DF,
            ttl: 64,
            overhead: UDP_HEADERS,
            ..Segment::default()
        };
        segment.set_kind(Kind::Datagram);
        segment.options[0] = now.as_nanos() as u32;
        segment.options[1] = (now.as_nanos() >> 32) as u32;
        segment.options[2] = record;
        self.send_from(now, slot, 0, segment);
        self.act_at(index, actor, now.saturating_add(gap));
    }

    /// A datagram reaches an end.
    pub(crate) fn on_datagram(&mut self, now: Instant, slot: u32, side: usize, segment: &Segment) {
        let place = &self.slots[slot as usize];
        let (index, number, record) = (place.group as usize, place.number, place.record);
        let ping = matches!(self.spec.groups[index].traffic, Traffic::Ping { .. });
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
        } else {
            let sent_ns = u64::from(segment.options[0]) | u64::from(segment.options[1]) << 32;
            let sent = Instant::from_nanos(sent_ns);
            if record != NONE {
                self.groups[index].records[record as usize].received += bytes;
            }
            if self.window.contains(sent) {
                self.groups[index]
                    .delivery_latency
                    .push(now.since(sent).as_secs_f64());
            }
        }
    }

    /// A datagram will not arrive.
    pub(crate) fn on_datagram_lost(&mut self, slot: u32, segment: &Segment) {
        let index = self.slots[slot as usize].group as usize;
        if matches!(self.spec.groups[index].traffic, Traffic::Ping { .. }) {
            self.ping_over(index, segment.options[2]);
        }
    }

    /// Whether this ping was still awaited; it no longer is.
    fn ping_over(&mut self, index: usize, record: u32) -> bool {
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
            Traffic::RequestResponse { .. } | Traffic::OnOff { .. }
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
            Traffic::OnOff { .. } => {
                // Several bursts may be completed by one segment.
                while self.slots[slot as usize].ends[1].goal <= self.slots[slot as usize].ends[1].received {
                    self.message_arrived(now, index, actor, slot);
                }
            }
            Traffic::Bulk { .. } | Traffic::Cbr { .. } | Traffic::Ping { .. } => {}
        }
    }

    /// The server has the whole request.
    fn respond(&mut self, now: Instant, index: u32, actor: u32, slot: u32) {
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
    fn message_arrived(&mut self, now: Instant, index: u32, actor: u32, slot: u32) {
        let group = &mut self.groups[index as usize];
        let Some(dialogue) = &mut group.actors[actor as usize].dialogue else {
            return;
        };
        let place = &mut self.slots[slot as usize];
        let Some(message) = dialogue.messages.pop_front() else {
            place.ends[1].goal = u64::MAX;
            return;
        };
        if dialogue.messages.is_empty() {
            dialogue.messages = VecDeque::new(); // idle for long, maybe
        }
        place.ends[1].goal = dialogue.messages.front().map_or(u64::MAX, |next| next.end);
        if let Some(connection) = &place.ends[0].connection
            && message.record != NONE
        {
            let record = &mut group.records[message.record as usize];
            add_difference(record, connection.stats(), &dialogue.counted);
            record.completed = Some(now);
            record.received = record.bytes;
            record.min_rtt = connection.info(now).min_rtt;
            dialogue.counted = *connection.stats();
            if let Some(receiver) = &place.ends[1].connection {
                let redundant = receiver.stats().redundant_bytes;
                record.redundant_bytes = Bytes(redundant - dialogue.redundant_counted);
                dialogue.redundant_counted = redundant;
            }
            group
                .delivery_latency
                .push(now.since(message.written_at).as_secs_f64());
        }
    }

    /// Data of interest was acknowledged.
    pub(crate) fn on_acked(&mut self, now: Instant, slot: u32) {
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
        let acked = place.ends[0].connection.as_ref().map_or(0, Connection::acked);
        while let Some(&(end, record)) = dialogue.unacked.front()
            && end <= acked
        {
            dialogue.unacked.pop_front();
            if record != NONE {
                group.records[record as usize].acked = Some(now);
                self.open -= 1;
            }
        }
        if dialogue.unacked.is_empty() {
            dialogue.unacked = VecDeque::new();
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
        let sender = place.ends[0].connection.as_ref().map(|sender| *sender.stats());
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
            && let Some(sender) = &sender
        {
            let record = &mut group.records[message.record as usize];
            add_difference(record, sender, &dialogue.counted);
        }
        // Those that were not acknowledged, and requests that were not answered.
        let unacked = dialogue.unacked.iter().map(|unacked| unacked.1);
        let unanswered = dialogue.messages.iter().map(|message| message.record);
        let unanswered =
            unanswered.filter(|record| dialogue.unacked.iter().all(|(_, other)| other != record));
        self.open -= unacked.chain(unanswered).filter(|&record| record != NONE).count() as u64;
        dialogue.messages.clear();
        dialogue.unacked.clear();
        dialogue.written = [0; 2];
        dialogue.counted = Stats::default();
        dialogue.redundant_counted = 0;
        if interrupted.is_some()
            && let Traffic::RequestResponse { exchanges, .. } = &self.spec.groups[index].traffic
            && exchanges.is_none_or(|exchanges| begun < exchanges)
        {
            let gap = Duration::from_secs_f64(dialogue.gap.sample()).max(Duration::from_nanos(1));
            self.act_at(index as u32, actor as u32, now.saturating_add(gap));
        }
    }

    /// A transfer is complete, or never will be.
    fn transfer_over(&mut self, now: Instant, slot: u32) {
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
            | Traffic::Cbr { .. }
            | Traffic::Flows { .. }
            | Traffic::Ping { .. } => {}
        }
    }

    fn open_pair(&mut self, now: Instant, index: u32, actor: u32, pair: u32, opener: Option<usize>) -> u32 {
        let Route { hosts, paths } = self.groups[index as usize].routes[pair as usize];
        self.open(
            now,
            &Opening {
                group: index,
                actor,
                pair,
                hosts,
                paths,
                opener,
            },
        )
    }

    fn new_record(&mut self, index: u32, pair: u32, start: Instant, bytes: Bytes) -> u32 {
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
        let place = &self.slots[slot as usize];
        if place.record == NONE {
            return;
        }
        let record = &mut self.groups[place.group as usize].records[place.record as usize];
        let happened = |at: Instant| (at != Instant::FAR_FUTURE).then_some(at);
        record.completed = happened(place.completed);
        record.acked = happened(place.acked);
        if let Some(sender) = &place.ends[0].connection {
            record.received = Bytes(place.ends[1].received);
            record.min_rtt = sender.info(self.now).min_rtt;
            add_difference(record, sender.stats(), &Stats::default());
        }
        if let Some(receiver) = &place.ends[1].connection {
            record.redundant_bytes = Bytes(receiver.stats().redundant_bytes);
        }
        if matches!(
            self.spec.groups[place.group as usize].traffic,
            Traffic::Bulk { .. } | Traffic::Cbr { .. }
        ) {
            record.bytes = record.received;
        }
    }

    pub(crate) fn finish_groups(&mut self) -> Vec<GroupOutput> {
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].live {
                self.record_connection(slot);
            }
        }
        let slots = &self.slots;
        std::mem::take(&mut self.groups)
            .into_iter()
            .map(|mut group| {
                for actor in &mut group.actors {
                    // What a persistent connection did since its last complete message belongs to the one on its way.
                    if let Some(dialogue) = &mut actor.dialogue
                        && let Some(message) = dialogue.messages.front()
                        && message.record != NONE
                        && let Some(slot) = slots.get(actor.slot as usize)
                        && let Some(sender) = &slot.ends[0].connection
                    {
                        let record = &mut group.records[message.record as usize];
                        add_difference(record, sender.stats(), &dialogue.counted);
                    }
                }
                // Stable: what began at one moment on one pair keeps its number.
                group.records.sort_by_key(|record| (record.start, record.pair));
                GroupOutput {
                    flows: group.records,
                    delivery_latency: group.delivery_latency,
                    goodput_bytes: group.goodput,
                    goodput_bytes_per_connection: group.goodput_per_connection,
                }
            })
            .collect()
    }
}

/// Adds to `record` what a sender counted beyond `before`.
fn add_difference(record: &mut FlowRecord, now: &Stats, before: &Stats) {
    record.segments_sent += (now.segments_sent - before.segments_sent) as u32;
    record.bytes_sent += Bytes(now.bytes_sent - before.bytes_sent);
    record.retransmits += now.retransmits - before.retransmits;
    record.timeouts += now.timeouts - before.timeouts;
    record.spurious_timeouts += now.spurious_timeouts - before.spurious_timeouts;
    record.probes += now.probes - before.probes;
    record.spurious_probes += now.spurious_probes - before.spurious_probes;
    record.ack_latency_sum += (now.ack_latency_sum - before.ack_latency_sum).as_secs_f64();
    record.ack_latency_count += (now.ack_latency_count - before.ack_latency_count) as u32;
}

/// A drawn size in whole bytes, at least one.
fn whole_bytes(size: f64) -> u64 {
    (libm::round(size) as u64).max(1)
}

/// No conversation, no record.
pub(crate) const NONE: u32 = u32::MAX;

/// More than any run can send.
const ENDLESS: u64 = 1 << 62;

/// IPv4 and UDP headers.
const UDP_HEADERS: u8 = 28;
