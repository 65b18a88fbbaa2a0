//! Applications: what each traffic group does, one actor per arrival process, user, persistent connection or stream.
//!
//! An actor has at most one pending event. Sizes, gaps and choices of pair come from streams named after the group (and
//! the user, where there are several), so every variant of a scenario sees the same transfers at the same times. The
//! first event of an open-loop process is one gap after the group's start; a user thinks before the first transfer;
//! bursts, pings and datagrams begin at the start.

use crate::endpoint::Opening;
use crate::event::{EventKey, EventKind};
use crate::observe::Observer;
use crate::output::{Datagrams, FlowRecord, Histogram, StreamRecord};
use crate::relay::Onward;
use crate::routing::PathStart;
use crate::spec::{GroupSpec, NodeId, PairPolicy, Traffic};
use crate::world::World;
use compact::{Counted, Draw, Queue};
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::rng::{Rng, Sampler};
use fleetfoot_core::tcp::Setting;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

mod compact;
mod dns;
mod message;
mod raw;
mod record;
mod replay;
mod setup;
mod stream;
mod video;
mod web;

pub(crate) use replay::Player;
pub(crate) use stream::TfrcStream;

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
    /// Seeds of super-packet identifiers, and what raw packets draw.
    pub(crate) marks: Rng,
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
    /// By actor, the page that is being loaded; empty where there are no pages.
    pages: Vec<Option<Box<web::Page>>>,
    /// Pings that may still come back, by record.
    pings: Vec<u32>,
    /// Frames of video calls that are on their way.
    frames: video::Frames,
    /// What became of datagrams without feedback.
    datagrams: Datagrams,
    delivery_latency: Vec<f64>,
    ack_latency: Vec<f64>,
    /// Packets per group of packets that left together, where super-packets are formed.
    pub(crate) super_packet_length: Histogram,
    streams: Vec<StreamRecord>,
    /// Times that replayed connections took (s).
    connections: Vec<f64>,
    /// By recorded connection, its conversation.
    playing: Vec<u32>,
    /// Data packets of its data senders that the network dropped.
    pub(crate) dropped: u64,
    pub(crate) goodput: Bytes,
    pub(crate) goodput_per_connection: Vec<Bytes>,
    pub(crate) pair_of_connection: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Route {
    hosts: [NodeId; 2],
    paths: [PathStart; 2],
    /// Where packets for its hosts are held before they are handed up.
    receive_queues: [u32; 2],
    /// What ends connections on the way; `paths` are those from the hosts to it.
    relay: Option<Onward>,
}

impl Group {
    /// Flow records and samples of latencies kept so far.
    pub(crate) fn kept(&self) -> [u64; 2] {
        let samples = self.delivery_latency.len() + self.ack_latency.len() + self.connections.len();
        [self.records.len() as u64, samples as u64]
    }

    /// The queue that holds packets for end `side` of a pair.
    pub(crate) fn receive_queue(&self, pair: u32, side: usize) -> u32 {
        self.routes[pair as usize].receive_queues[side]
    }
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
    /// Raw packets.
    trains: Option<Box<raw::Trains>>,
    /// Look-ups.
    resolver: Option<Box<dns::Resolver>>,
}

/// State of a user or of a persistent connection.
struct Dialogue {
    /// Bytes of transfers, responses or bursts.
    size: Draw,
    /// Bytes of requests, where there are any.
    request: Option<Draw>,
    /// Think time or time between bursts.
    gap: Draw,
    /// Exchanges or bursts begun.
    begun: u32,
    /// Messages on their way, oldest first.
    messages: Queue<Message>,
    /// Data whose acknowledgment is awaited: stream offset and record.
    unacked: Queue<(u64, u32)>,
    /// Counters already given to a record.
    counted: Counted,
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
    /// Which pair the next flow of the group gets.
    fn pick_pair(&mut self, index: u32, spec: &GroupSpec) -> u32 {
        let group = &mut self.groups[index as usize];
        let pairs = group.routes.len() as u32;
        match spec.spread {
            PairPolicy::RoundRobin | PairPolicy::Each => {
                let pair = group.next_pair;
                group.next_pair = (pair + 1) % pairs;
                pair
            }
            PairPolicy::Random => group.spread.below(u64::from(pairs)) as u32,
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
        self.network
            .queue
            .push(EventKey::new(at, EventKind::App, group, actor));
    }

    /// An actor's event is due.
    pub(crate) fn on_actor(&mut self, index: u32, actor: u32, now: Instant) {
        let spec = &self.spec.groups[index as usize];
        if let Traffic::Replay(replay) = &spec.traffic {
            self.act_replay(index, actor, now, spec, replay);
            return;
        }
        if let Traffic::Dns(dns) = &spec.traffic {
            self.act_dns(index, actor, now, spec, dns);
            return;
        }
        self.groups[index as usize].actors[actor as usize].pending = false;
        if self.has_asked_enough(index, actor, spec) {
            return;
        }
        match &spec.traffic {
            Traffic::Bulk { .. } => self.act_bulk(index, actor, now, spec),
            Traffic::Transfer { count, .. } => {
                let pair = match spec.spread {
                    PairPolicy::Each => self.groups[index as usize].actors[actor as usize].pair,
                    PairPolicy::RoundRobin | PairPolicy::Random => self.pick_pair(index, spec),
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
                let each = spec.spread == PairPolicy::Each;
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
                dialogue.begun += 1;
                let bytes = whole_bytes(dialogue.size.sample());
                self.transfer(now, index, actor, pair, bytes);
            }
            Traffic::RequestResponse { exchanges, .. } => self.act_request(index, actor, now, *exchanges),
            Traffic::OnOff { .. } | Traffic::Thin { .. } => self.act_burst(index, actor, now),
            Traffic::Web(web) => self.act_page(index, actor, now, web),
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
            Traffic::Raw(raw) => self.act_raw(index, actor, now, spec, raw),
            Traffic::Tfrc(tfrc) => self.act_tfrc(index, actor, now, spec, tfrc),
            Traffic::Video(video) => self.act_frame(index, actor, now, video),
            Traffic::Replay(_) | Traffic::Dns(_) => {} // above
        }
    }

    /// Whether a user has made all of its requests.
    fn has_asked_enough(&self, index: u32, actor: u32, spec: &GroupSpec) -> bool {
        let Some(most) = &spec.most_requests else {
            return false;
        };
        let dialogue = &self.groups[index as usize].actors[actor as usize].dialogue;
        let begun = dialogue.as_ref().map_or(0, |dialogue| dialogue.begun);
        spec.traffic.facts().closed_loop && most.get(actor as usize).is_some_and(|most| begun >= *most)
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
        let stream = matches!(self.spec.groups[index as usize].traffic, Traffic::Thin { .. });
        let place = &self.groups[index as usize].actors[actor as usize];
        let (pair, mut slot) = (place.pair, place.slot);
        if slot == NONE {
            slot = self.open_pair(now, index, actor, pair, Some(0));
            self.groups[index as usize].actors[actor as usize].slot = slot;
            if stream {
                self.slots[slot as usize].record = self.new_record(index, pair, now, Bytes::ZERO);
                if let Some(connection) = &mut self.slots[slot as usize].ends[0].connection {
                    connection.set(now, Setting::NoteLatencies(true));
                }
            }
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
        let record = match counts {
            true if stream => self.slots[slot as usize].record,
            true => self.new_record(index, pair, now, Bytes(bytes)),
            false => NONE,
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
        let goal = dialogue.messages.front().map_or(end, |next| next.end);
        let acked_goal = dialogue.unacked.front().map_or(end, |next| next.0);
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
        let pair = if ping && spec.spread != PairPolicy::Each {
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
        self.send_from(now, slot, 0, datagram(now, number, payload, record));
        self.act_at(index, actor, now.saturating_add(gap));
    }

    fn open_pair(&mut self, now: Instant, index: u32, actor: u32, pair: u32, opener: Option<usize>) -> u32 {
        let opening = self.opening(index, actor, pair, opener);
        self.open(now, &opening)
    }

    /// A new conversation of a pair.
    fn opening(&self, index: u32, actor: u32, pair: u32, opener: Option<usize>) -> Opening {
        let Route {
            hosts, paths, relay, ..
        } = self.groups[index as usize].routes[pair as usize];
        Opening {
            group: index,
            actor,
            pair,
            hosts,
            paths,
            relay,
            opener,
            key: None,
        }
    }
}

/// A datagram that says when it was sent and what it belongs to.
fn datagram(now: Instant, number: u32, payload: u32, record: u32) -> Segment {
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
    segment
}

/// When a datagram was sent.
fn sent_at(segment: &Segment) -> Instant {
    Instant::from_nanos(u64::from(segment.options[0]) | u64::from(segment.options[1]) << 32)
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
