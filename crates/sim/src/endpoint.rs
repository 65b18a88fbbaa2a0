//! Endpoints: connections at the two ends of a pair, and how segments, timers and writes reach them.
//!
//! A conversation has a slot. Slot c owns flows 2c (data, end 0 to end 1) and 2c + 1 (the other way). A slot is used
//! again when nothing can happen in it any more: none of its packets is in the network, one end is closed, and the other
//! is closed too or waits for a peer that is gone (it gave up, or its reset was lost) without a timer of its own. So long
//! runs do not grow and a late packet can never reach another conversation. Where nobody watches and no queue knows flows, a timer
//! after the end of the run is none: TIME-WAIT takes longer than many runs. A conversation whose last packet was lost is recorded then
//! and gives its slot back, unless its timers fire before the end or its application has something to do.
//!
//! An end whose timer event finds that there is nothing to wait for any more has been silent for as long as a timeout: it
//! and its peer are packed until somebody writes or a segment comes. Where there are very many conversations, those that
//! wait for a timer because a packet of their opening or close was lost are packed until it fires. Results do not depend on it.

use crate::event::EventKey;
use crate::network::Mode;
use crate::observe::{AppEvent, Observer};
use crate::routing::PathStart;
use crate::spec::{GroupSpec, Interface, NodeId};
use fleetfoot_core::flow::{FlowId, FlowKey, HostId, Stream};
use fleetfoot_core::link::StreamEnd;
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::listener::{self, Answer};
use fleetfoot_core::tcp::{Accepted, Config, Connection, PathMemory, Setting};
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;
use std::sync::Arc;

mod ahead;
mod copies;
mod end;
mod fast_open;
mod group;
mod hosts;
mod interface;
mod over;
mod own;
mod relay;
mod waiting;

pub(crate) use ahead::EXTRAORDINARY;
use end::{Application, End, Part};
pub(crate) use group::{CutOff, Group, Route};
pub(crate) use hosts::{Applications, Hosts};
use relay::Onward;

/// One conversation: a connection, or a stream of datagrams.
pub(crate) struct Slot {
    /// The data sender and the data receiver.
    pub(crate) ends: [End; 2],
    /// The receiver had every byte of the transfer.
    pub(crate) completed: Instant,
    /// The sender knew of every byte of the transfer.
    pub(crate) acked: Instant,
    /// Payload bytes of the transfer.
    pub(crate) bytes: u64,
    /// Stream offset at which the sender's next acknowledgment of interest is complete; `MAX`: none.
    pub(crate) acked_goal: u64,
    /// Initial sequence number of the data.
    pub(crate) iss: SeqNumber,
    /// Traffic group.
    pub(crate) group: u32,
    /// Actor in the group that owns it.
    pub(crate) actor: u32,
    /// Index of the pair in the group.
    pub(crate) pair: u32,
    /// The slot with the ends that this one's are connected to: itself, or the ends at a relay.
    pub(crate) partner: u32,
    /// Number of the conversation in its group.
    pub(crate) number: u32,
    /// Packets in the network, both directions.
    pub(crate) in_network: u32,
    /// Its flow record, if it has one that is filled at the end.
    pub(crate) record: u32,
    /// The run waits for its completion.
    pub(crate) awaited: bool,
    /// A transfer that is not complete.
    pub(crate) unfinished: bool,
    /// In use.
    pub(crate) live: bool,
    /// Data without end, and both ends open: nobody waits for anything that happens here.
    pub(crate) endless: bool,
    /// The connection was recorded: what both ends say counts, and its application wants to know when an end could send.
    pub(crate) recorded: bool,
    /// Configurations of its ends, if they have their own.
    configs: Option<Box<[Arc<Config>; 2]>>,
}

impl Slot {
    /// How one of its ends behaves.
    fn config<'a>(&'a self, spec: &'a GroupSpec, side: usize) -> &'a Arc<Config> {
        match (&self.configs, side) {
            (Some(own), _) => &own[side],
            (None, 0) => &spec.sender,
            (None, _) => &spec.receiver,
        }
    }
}

/// What a new conversation is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) group: u32,
    pub(crate) actor: u32,
    pub(crate) pair: u32,
    /// Data sender and data receiver.
    pub(crate) hosts: [NodeId; 2],
    /// Paths from the first to the second, and back.
    pub(crate) paths: [PathStart; 2],
    /// What ends the connection on the way; the paths are those between its ends and this.
    pub(crate) relay: Option<Onward>,
    /// Which end opens; `None`: datagrams.
    pub(crate) opener: Option<usize>,
    /// What its packets claim instead of [`Opening::usual_key`].
    pub(crate) key: Option<FlowKey>,
}

impl Opening {
    /// The key of the group's conversation `number`. Ports distinguish conversations for queues that hash flows, and are the
    /// same in every variant.
    pub(crate) fn usual_key(&self, number: u32) -> FlowKey {
        FlowKey {
            source: HostId(self.hosts[0].0),
            destination: HostId(self.hosts[1].0),
            source_port: 1024 + (number % 60_000) as u16,
            destination_port: 1 + (self.group % 1000) as u16 + 1000 * (number / 60_000 % 60) as u16,
            protocol: if self.opener.is_some() { 6 } else { 17 },
        }
    }
}

impl Slot {
    /// The initial sequence number of an end that accepts: drawn from the opener's number, so that a retransmitted SYN changes
    /// nothing.
    pub(crate) fn iss_of(&self, side: usize) -> SeqNumber {
        if side == 0 {
            self.iss
        } else {
            SeqNumber(self.iss.0.rotate_left(13).wrapping_mul(0x9e37_79b9))
        }
    }
}

impl<O: Observer> Hosts<'_, O> {
    /// Makes a conversation, whose ends may have `configs` of their own. The opener's SYN leaves with the next
    /// [`Hosts::push`].
    pub(crate) fn open(
        &mut self,
        now: Instant,
        opening: &Opening,
        configs: Option<Box<[Arc<Config>; 2]>>,
    ) -> u32 {
        let group = &mut self.groups[opening.group as usize];
        let created = self.created;
        self.created = created.wrapping_add(1);
        let number = group.conversations;
        group.conversations += 1;
        group.goodput_per_connection.push(Bytes::ZERO);
        group.pair_of_connection.push(opening.pair);
        let iss = [SeqNumber(group.iss.next_u32()), SeqNumber(group.iss.next_u32())];
        let interface = self.spec.groups[opening.group as usize].interface;
        let relay = opening.relay.filter(|_| opening.opener.is_some());
        let mut slot = Slot {
            ends: [
                End::new(opening.paths[0], opening.hosts[0], created),
                End::new(opening.paths[1], opening.hosts[1], created),
            ],
            completed: Instant::FAR_FUTURE,
            acked: Instant::FAR_FUTURE,
            bytes: 0,
            acked_goal: u64::MAX,
            iss: iss[0],
            group: opening.group,
            actor: opening.actor,
            pair: opening.pair,
            partner: NONE,
            number,
            in_network: 0,
            record: NONE,
            awaited: false,
            unfinished: false,
            live: true,
            endless: self.spec.groups[opening.group as usize].traffic.facts().greedy
                && interface == Interface::default()
                && !self.spec.groups[opening.group as usize].sender.remembers_paths()
                && relay.is_none(),
            recorded: false,
            configs,
        };
        if opening.opener.is_some() {
            self.heed_hosts(&mut slot, opening);
        }
        let group = &mut self.groups[opening.group as usize];
        if interface.super_packets.is_some() && opening.opener.is_some() {
            let groupers = interface::groupers(interface.super_packets, &mut group.marks);
            for (end, grouper) in slot.ends.iter_mut().zip(groupers) {
                end.grouper = grouper;
            }
        }
        if let Some(opener) = opening.opener {
            let spec = &self.spec.groups[opening.group as usize];
            let config = slot.config(spec, opener);
            let mut connection = Connection::connect(now, config, iss[opener]);
            connection.set(now, Setting::AutoRead(true));
            connection.set(now, Setting::HeaderPrediction(self.network.mode == Mode::Fast));
            let ticks = self.ticks[opening.hosts[opener].0 as usize];
            connection.set(now, Setting::ClockPhase(ticks));
            let path = (opening.hosts[opener], opening.hosts[1 - opener]);
            tell_path(&self.known_paths, now, path, &mut connection);
            if interface.fast_open {
                connection.request_fast_open(fast_open::request(&interface));
            }
            slot.ends[opener].connection = Some(Box::new(connection));
        }
        let key = opening.key.unwrap_or_else(|| opening.usual_key(number));
        let index = self.place(slot, key);
        self.observer.on_app(
            now,
            &AppEvent::Opened {
                group: opening.group,
                pair: opening.pair,
                number,
                data: FlowId(2 * index),
                acks: FlowId(2 * index + 1),
                key,
            },
        );
        if let Some(relay) = relay {
            self.open_relay(now, index, relay, key);
        }
        index
    }

    /// Gives a conversation a slot; its ends are connected to each other. Where only FIFO links are and nobody watches, nobody asks for
    /// the keys of its flows.
    pub(crate) fn place(&mut self, slot: Slot, key: FlowKey) -> u32 {
        let reused = self.free.pop();
        let index = if let Some(index) = reused {
            self.slots[index as usize] = slot;
            index
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        };
        if !self.frees_early {
            let reverse = FlowKey {
                source: key.destination,
                destination: key.source,
                source_port: key.destination_port,
                destination_port: key.source_port,
                protocol: key.protocol,
            };
            let flows = &mut self.network.flows;
            if reused.is_some() {
                flows.set(FlowId(2 * index), key);
                flows.set(FlowId(2 * index + 1), reverse);
            } else {
                flows.push(key);
                flows.push(reverse);
            }
        }
        self.slots[index as usize].partner = index;
        index
    }

    /// Lets `end` write `bytes` more.
    pub(crate) fn write(&mut self, slot: u32, end: usize, bytes: u64) {
        let place = &mut self.slots[slot as usize].ends[end];
        place.to_write = place.to_write.saturating_add(bytes);
    }

    /// The data that end 0 writes ends at stream offset `end` for now: loss models of the tail and ideal schedulers
    /// want to know.
    pub(crate) fn stream_ends(&mut self, now: Instant, slot: u32, end: u64) {
        let conversation = &self.slots[slot as usize];
        let mtu = self.spec.groups[conversation.group as usize].sender.mtu;
        let path = conversation.ends[0].path;
        if conversation.partner != slot && !conversation.ends[0].at_relay() {
            self.stream_ends(now, conversation.partner, end);
        }
        let conversation = &self.slots[slot as usize];
        let end = StreamEnd {
            origin: conversation.iss + 1,
            end,
            segment: mtu.saturating_sub(u32::from(Segment::IPV4_TCP_HEADER)),
        };
        if self.network.asks_streams {
            let stream = Stream {
                origin: end.origin,
                end: end.end,
            };
            self.network.flows.set_stream(FlowId(2 * slot), stream);
        }
        let links = &self.spec.links;
        self.network
            .announce_end(self.observer, links, now, path, FlowId(2 * slot), end);
    }

    /// A packet reaches the end of its path.
    #[inline(never)]
    pub(crate) fn deliver<A: Applications<O>>(&mut self, apps: &mut A, now: Instant, id: u32) {
        let Hosts {
            packets,
            slots,
            observer,
            groups,
            window,
            ..
        } = self;
        let packet = packets.get(id);
        let index = packet.flow.0 >> 1;
        let side = (1 ^ packet.flow.0 & 1) as usize;
        let slot = &mut slots[index as usize];
        if slot.partner != index {
            return self.deliver_relayed(apps, now, id);
        }
        let end = &mut slot.ends[side];
        if end.connection.is_none() && end.resting.is_some() {
            self.wake(index, side);
            return self.deliver(apps, now, id);
        }
        slot.in_network -= 1;
        let Some(connection) = &mut end.connection else {
            let segment = packet.segment;
            packets.free(id);
            self.on_first_segment(apps, now, index, side, &segment);
            return;
        };
        if end.closed {
            let segment = packet.segment;
            packets.free(id);
            self.on_stray_segment(apps, now, index, side, &segment);
            return;
        }
        let accepted = connection.on_segment(now, &packet.segment);
        packets.free(id);
        let mut message = false;
        if accepted.in_order > end.received {
            let before = std::mem::replace(&mut end.received, accepted.in_order);
            let complete = end.goal <= accepted.in_order;
            observer.on_receive(
                now,
                FlowId(2 * index + (1 ^ side as u32)),
                before..accepted.in_order,
            );
            if (side == 1 || slot.recorded) && window.contains(now) {
                let group = &mut groups[slot.group as usize];
                let bytes = Bytes(accepted.in_order - before);
                group.goodput += bytes;
                group.goodput_per_connection[slot.number as usize] += bytes;
            }
            message = complete;
        }
        if message {
            apps.on_message(self, now, index, side);
        }
        let slot = &self.slots[index as usize];
        if side == 0
            && slot.acked_goal != u64::MAX
            && let Some(connection) = &slot.ends[0].connection
            && connection.acked() >= slot.acked_goal
        {
            apps.on_acked(self, now, index);
        }
        self.pump(apps, now, index, side);
        self.tell_ack(now, index, side);
        if self.slots[index as usize].ends[1 - side].closed {
            self.free_if_over(apps, now, index);
        }
    }

    /// Reports to the observer that an end took a segment and answered.
    pub(crate) fn tell_ack(&mut self, now: Instant, index: u32, side: usize) {
        if let Some(connection) = &self.slots[index as usize].ends[side].connection {
            self.observer
                .on_ack(now, FlowId(2 * index + side as u32), connection);
        }
    }

    /// A segment for a connection that is no more: the peer learns it by a reset (RFC 9293 3.10.7.1).
    #[cold]
    pub(crate) fn on_stray_segment<A: Applications<O>>(
        &mut self,
        apps: &mut A,
        now: Instant,
        index: u32,
        side: usize,
        segment: &Segment,
    ) {
        let peer = self.slots[index as usize].partner;
        if let Answer::Reset(reset) = listener::on_closed(segment)
            && !self.slots[peer as usize].ends[1 - side].closed
        {
            self.send_from(now, index, side, reset);
        }
        self.free_if_over(apps, now, index);
    }

    /// The first segment for an end that has no connection yet, or a datagram.
    pub(crate) fn on_first_segment<A: Applications<O>>(
        &mut self,
        apps: &mut A,
        now: Instant,
        index: u32,
        side: usize,
        segment: &Segment,
    ) {
        if segment.kind() != Kind::Tcp {
            let flow = FlowId(2 * index + 1 - side as u32);
            self.copies.on_left(flow, segment, true);
            apps.on_packet(self, now, index, side, segment);
            self.free_if_over(apps, now, index);
            return;
        }
        let slot = &mut self.slots[index as usize];
        let opening =
            segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK.with(Flags::RST));
        if slot.ends[side].closed || !opening {
            self.free_if_over(apps, now, index);
            return;
        }
        if slot.ends[side].at_relay() {
            self.accept_at_relay(apps, now, index, side, segment);
            return;
        }
        let spec = &self.spec.groups[slot.group as usize];
        let config = slot.config(spec, side);
        let early = spec.interface.fast_open && fast_open::is_valid(segment);
        let (mut connection, accepted) = if early {
            Connection::accept_fast_open(now, config, slot.iss_of(side), segment)
        } else {
            (
                Connection::accept(now, config, slot.iss_of(side), segment),
                Accepted::default(),
            )
        };
        connection.set(now, Setting::AutoRead(true));
        connection.set(now, Setting::HeaderPrediction(self.network.mode == Mode::Fast));
        let ticks = self.ticks[slot.ends[side].node.0 as usize];
        connection.set(now, Setting::ClockPhase(ticks));
        connection.read(now, Bytes(accepted.in_order)); // it came before `AutoRead`
        let path = (slot.ends[side].node, slot.ends[1 - side].node);
        tell_path(&self.known_paths, now, path, &mut connection);
        slot.ends[side].connection = Some(Box::new(connection));
        if accepted.in_order > 0 {
            self.take_early(apps, now, index, side, accepted.in_order);
        }
        self.pump(apps, now, index, side);
    }

    /// Lets an end write and send, arms its timer, and reports what happened.
    pub(crate) fn pump<A: Applications<O>>(&mut self, apps: &mut A, now: Instant, index: u32, side: usize) {
        let over = self.pump_end(now, index, side);
        let slot = &self.slots[index as usize];
        if over {
            self.end_closed(apps, now, index, side);
        } else if slot.recorded {
            apps.on_pushed(self, now, index, side);
        } else if slot.ends[side].at_relay() {
            self.carry(apps, now, index);
        }
    }

    /// As [`Hosts::pump`], for applications: that the connection is over is reported after what they do now. Whether it is.
    pub(crate) fn push(&mut self, now: Instant, index: u32, side: usize) -> bool {
        let over = self.pump_end(now, index, side);
        if over {
            self.over.push((now, index, side));
        }
        over
    }

    /// Lets an end write and send, and arms its timer. Whether its connection is over.
    #[inline(never)]
    fn pump_end(&mut self, now: Instant, index: u32, side: usize) -> bool {
        let Hosts {
            network,
            packets,
            slots,
            observer,
            armed,
            known_paths,
            ..
        } = self;
        let slot = &mut slots[index as usize];
        if slot.ends[side].connection.is_none() && slot.ends[side].resting.is_some() {
            self.wake(index, side);
            return self.pump_end(now, index, side);
        }
        let number = 2 * index + side as u32;
        let in_network = &mut slot.in_network;
        let acted = slot.ends[side].pump(now, number, in_network, network, packets, *observer, armed);
        let over = acted.over;
        if acted.found {
            let path = (slot.ends[side].node, slot.ends[1 - side].node);
            let found = slot.ends[side].connection.as_mut().and_then(|c| c.take_path());
            if let Some(found) = found {
                known_paths.learn(now, path, found);
            }
        }
        if slot.ends[side].grouper.is_some() {
            self.release(now, index, side, over);
        }
        over
    }

    /// Makes sure that an end without a connection is reminded at `wanted`.
    pub(crate) fn arm(&mut self, now: Instant, index: u32, side: usize, wanted: Instant) {
        let number = 2 * index + side as u32;
        let end = &mut self.slots[index as usize].ends[side];
        end.arm_at(now, number, wanted, &mut self.network, &mut self.armed);
    }

    /// A timer event comes due.
    pub(crate) fn on_timer<A: Applications<O>>(&mut self, apps: &mut A, key: EventKey) {
        let now = key.at();
        let (created, number) = key.endpoint();
        let (index, side) = (number >> 1, (number & 1) as usize);
        let end = &mut self.slots[index as usize].ends[side];
        if end.timer_at != now || end.created != created {
            return;
        }
        end.timer_at = Instant::FAR_FUTURE;
        if end.resting.is_some() && end.deadline <= now {
            self.wake(index, side);
        }
        let end = &mut self.slots[index as usize].ends[side];
        let Some(connection) = &mut end.connection else {
            let deadline = end.deadline;
            if deadline > now {
                // Put off, or given up: the stream is over.
                end.arm_at(now, number, deadline, &mut self.network, &mut self.armed);
            } else {
                apps.on_deadline(self, now, index, side);
            }
            return;
        };
        if connection.poll_timeout().is_none_or(|at| at > now) {
            if end.grouper.is_some() {
                self.release(now, index, side, false);
            } else {
                end.arm(now, number, &mut self.network, &mut self.armed);
            }
            if !self.slots[index as usize].ends[side].is_armed() {
                self.rest(index);
            }
            return;
        }
        connection.on_timeout(now);
        self.pump(apps, now, index, side);
        if let Some(connection) = &self.slots[index as usize].ends[side].connection {
            self.observer.on_timer(now, FlowId(number), connection);
        }
    }
}

/// Gives a new connection what earlier ones between the same two nodes learnt (RFC 9040 6.1), if it asks.
fn tell_path(
    known: &PathMemory<(NodeId, NodeId)>,
    now: Instant,
    path: (NodeId, NodeId),
    connection: &mut Connection,
) {
    let config = connection.config();
    if config.remembers_paths() {
        let told = known.recall(now, path, config.spreading_memory);
        connection.set(now, Setting::Path(told));
    }
}

/// No conversation, no record.
pub(crate) const NONE: u32 = u32::MAX;
