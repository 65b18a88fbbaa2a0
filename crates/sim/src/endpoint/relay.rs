//! Relays: nodes that end connections on the way and carry their bytes on over second ones.
//!
//! **Source.** RFC 3135: split connections (2.4), transparent to hosts (2.5), with local acknowledgments (3.1.2): a relay acknowledges
//! bytes that the far end does not have, and holds them until it does. What that means for reliability between hosts is
//! its 4.1.3.
//!
//! A relayed conversation has two slots. That of its own has the ends of its hosts, whose applications know nothing of the
//! relay; its partner has the two ends at the relay. Packets go from the end of one slot to that of the other: what the first
//! host sends (flow 2c) reaches the first connection's end at the relay, which carries it on as flow 2p. Both keep the
//! addresses and ports of the hosts.
//!
//! The relay opens the second connection when the SYN of the first comes, so that both handshakes overlap. It takes from
//! the receive buffer of one connection what the send buffer of the other has room for, so that the first window closes when
//! the second connection is slow. A FIN is carried on after the bytes before it; a reset, or that a connection was given
//! up, at once.
//!
//! **Deviations.** None known; RFC 3135 describes and prescribes nothing.

use super::hosts::{Applications, Hosts};
use super::{End, NONE, Part, Slot};
use crate::error::RunError;
use crate::network::Mode;
use crate::observe::{AppEvent, Observer};
use crate::routing::PathStart;
use crate::spec::NodeId;
use fleetfoot_core::flow::{FlowId, FlowKey};
use fleetfoot_core::packet::Segment;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Connection, Half, Setting, State, Stats, WriteFlags};
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

/// Where a conversation goes on from its relay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Onward {
    node: NodeId,
    /// To the receiver and to the sender of the data.
    paths: [PathStart; 2],
}

impl<O: Observer> Hosts<'_, O> {
    /// The way on from `node`; `paths` become those from the hosts to it.
    pub(crate) fn onward(
        &mut self,
        group: usize,
        node: NodeId,
        [from, to]: [NodeId; 2],
        paths: &mut [PathStart; 2],
    ) -> Result<Onward, RunError> {
        *paths = [self.path(group, from, node)?, self.path(group, to, node)?];
        let paths = [self.path(group, node, to)?, self.path(group, node, from)?];
        Ok(Onward { node, paths })
    }

    /// Makes the ends that a relay will have of conversation `index`.
    pub(crate) fn open_relay(&mut self, now: Instant, index: u32, onward: Onward, key: FlowKey) {
        let created = self.created;
        self.created = created.wrapping_add(1);
        let own = &self.slots[index as usize];
        let mut ends = onward.paths.map(|path| End::new(path, onward.node, created));
        for end in &mut ends {
            end.part = Part::Relay;
        }
        let slot = Slot {
            ends,
            completed: Instant::FAR_FUTURE,
            acked: Instant::FAR_FUTURE,
            bytes: 0,
            acked_goal: u64::MAX,
            iss: SeqNumber(own.iss.0.rotate_left(7).wrapping_mul(0x85eb_ca6b)),
            group: own.group,
            actor: own.actor,
            pair: own.pair,
            partner: NONE,
            number: own.number,
            in_network: 0,
            record: NONE,
            awaited: false,
            unfinished: false,
            live: true,
            endless: false,
            recorded: false,
            configs: None,
        };
        let partner = self.place(slot, key);
        self.slots[partner as usize].partner = index;
        self.slots[index as usize].partner = partner;
        self.observer.on_app(
            now,
            &AppEvent::Relayed {
                data: FlowId(2 * partner),
                acks: FlowId(2 * partner + 1),
                key,
            },
        );
    }

    /// A packet of a relayed conversation reaches the end of its path: an end of the other slot.
    #[inline(never)]
    pub(crate) fn deliver_relayed<A: Applications<O>>(&mut self, apps: &mut A, now: Instant, id: u32) {
        let packet = self.packets.take(id);
        let (sent_by, side) = (packet.flow.0 >> 1, (1 ^ packet.flow.0 & 1) as usize);
        self.slots[sent_by as usize].in_network -= 1;
        let index = self.slots[sent_by as usize].partner;
        let slot = &mut self.slots[index as usize];
        let end = &mut slot.ends[side];
        let at_relay = end.at_relay();
        let Some(connection) = &mut end.connection else {
            self.on_first_segment(apps, now, index, side, &packet.segment);
            return;
        };
        if end.closed {
            self.on_stray_segment(apps, now, index, side, &packet.segment);
            return;
        }
        let accepted = connection.on_segment(now, &packet.segment);
        let acked = connection.acked();
        let mut complete = false;
        if accepted.in_order > end.received {
            let before = std::mem::replace(&mut end.received, accepted.in_order);
            complete = end.goal <= accepted.in_order;
            self.observer
                .on_receive(now, packet.flow, before..accepted.in_order);
            if !at_relay && side == 1 && self.window.contains(now) {
                let group = &mut self.groups[slot.group as usize];
                let bytes = Bytes(accepted.in_order - before);
                group.goodput += bytes;
                group.goodput_per_connection[slot.number as usize] += bytes;
            }
        }
        if complete {
            apps.on_message(self, now, index, side);
        }
        // Whoever sent to the receiver of the data knows what that has.
        if at_relay && side == 0 && acked >= self.slots[sent_by as usize].acked_goal {
            apps.on_acked(self, now, sent_by);
        }
        if at_relay {
            self.carry(apps, now, index);
        }
        self.pump(apps, now, index, side);
        self.tell_ack(now, index, side);
        self.free_if_over(apps, now, index);
    }

    /// The SYN of a conversation reaches its relay.
    pub(crate) fn accept_at_relay<A: Applications<O>>(
        &mut self,
        apps: &mut A,
        now: Instant,
        index: u32,
        side: usize,
        segment: &Segment,
    ) {
        let slot = &mut self.slots[index as usize];
        let Some(relay) = &self.spec.groups[slot.group as usize].relay else {
            return;
        };
        let iss = [0, 1].map(|side| slot.iss_of(side));
        let predict = Setting::HeaderPrediction(self.network.mode == Mode::Fast);
        let mut accepted = Connection::accept(now, &relay.config, iss[side], segment);
        accepted.set(now, predict);
        let ticks = Setting::ClockPhase(self.ticks[relay.node.0 as usize]);
        accepted.set(now, ticks);
        slot.ends[side].connection = Some(Box::new(accepted));
        let mut opened = Connection::connect(now, &relay.config, iss[1 - side]);
        opened.set(now, predict);
        opened.set(now, ticks);
        slot.ends[1 - side].connection = Some(Box::new(opened));
        self.pump(apps, now, index, side);
        self.pump(apps, now, index, 1 - side);
    }

    /// Carries on what arrived at the ends of a relay.
    pub(crate) fn carry<A: Applications<O>>(&mut self, apps: &mut A, now: Instant, index: u32) {
        let slot = &mut self.slots[index as usize];
        let [one, other] = &mut slot.ends;
        let there = carry(now, one, other);
        let back = carry(now, other, one);
        if slot.live && (there || back) {
            self.pump(apps, now, index, 0);
            self.pump(apps, now, index, 1);
        }
    }

    /// One end of a relayed conversation is over.
    pub(crate) fn relayed_end_closed<A: Applications<O>>(
        &mut self,
        apps: &mut A,
        now: Instant,
        index: u32,
        side: usize,
    ) {
        let partner = self.slots[index as usize].partner;
        let end = &mut self.slots[index as usize].ends[side];
        end.closed = true;
        end.forget_timer();
        let (at_relay, failed) = (end.at_relay(), end.part == Part::Failed);
        self.close_peer(partner, 1 - side);
        // One host may be done with its connection while the relay still has bytes for the other.
        let hosts = &self.slots[index as usize].ends;
        if failed {
            apps.on_conversation_end(self, now, partner);
        } else if !at_relay && hosts.iter().all(|end| end.closed) {
            apps.on_conversation_end(self, now, index);
        }
        if at_relay {
            self.carry(apps, now, index);
        }
        self.free_if_over(apps, now, index);
    }

    /// The peer of an end is over: so is the end if it never opened, and what would have followed, or if it is closed as well.
    fn close_peer(&mut self, index: u32, side: usize) {
        let slot = &mut self.slots[index as usize];
        let end = &mut slot.ends[side];
        let never_opened = end.connection.is_none();
        let over = |connection: &Connection| connection.state() == State::Closed;
        if !never_opened && !end.connection.as_deref().is_some_and(over) {
            return;
        }
        end.closed = true;
        if never_opened && end.at_relay() {
            slot.ends[1 - side].closed = true;
            let partner = slot.partner;
            self.slots[partner as usize].ends[side].closed = true;
        }
    }

    /// Frees the slots of a relayed conversation if nothing can happen in it any more.
    pub(crate) fn free_relayed_if_over<A: Applications<O>>(
        &mut self,
        apps: &mut A,
        now: Instant,
        index: u32,
    ) {
        let both = [index, self.slots[index as usize].partner];
        let slots = both.map(|index| &self.slots[index as usize]);
        let idle = slots
            .iter()
            .all(|slot| slot.live && slot.in_network == 0 && slot.ends.iter().all(End::is_idle));
        let over = slots.iter().any(|slot| slot.ends.iter().any(|end| end.closed));
        if !idle || !over {
            return;
        }
        // Its own first, whatever was closed last.
        let relay = usize::from(!slots[0].ends[0].at_relay());
        let (own, relay) = (both[1 - relay], both[relay]);
        apps.on_conversation_end(self, now, own);
        apps.record(self, own);
        self.free(now, own);
        self.free(now, relay);
    }

    /// Up to where the receiver of the data has it, as far as is known to whoever sends to it.
    pub(crate) fn acked(&self, slot: u32) -> u64 {
        let place = &self.slots[slot as usize];
        let last = &self.slots[place.partner as usize];
        last.ends[0].connection.as_deref().map_or(0, Connection::acked)
    }

    /// What the sender of the data counted, and a relay that sent it on; of bytes received more than once what the receiver
    /// counted, and a relay that received it before.
    pub(crate) fn counted(&self, slot: u32) -> Option<Stats> {
        let redundant_bytes = self.counted_at(slot, 1).map_or(0, |taken| taken.redundant_bytes);
        self.counted_at(slot, 0).map(|sent| Stats {
            redundant_bytes,
            ..sent
        })
    }

    fn counted_at(&self, slot: u32, side: usize) -> Option<Stats> {
        let place = &self.slots[slot as usize];
        let own = *place.ends[side].connection.as_deref()?.stats();
        if place.partner == slot {
            return Some(own);
        }
        let relay = self.slots[place.partner as usize].ends[side]
            .connection
            .as_deref();
        Some(relay.map_or(own, |relay| own.plus(relay.stats())))
    }
}

/// Carries what arrived at one end of a relay on from the other; whether anything changed.
fn carry(now: Instant, from: &mut End, to: &mut End) -> bool {
    let (Some(source), Some(sink)) = (&mut from.connection, &mut to.connection) else {
        return false;
    };
    if from.part == Part::Failed {
        from.part = Part::Told;
        sink.abort(now);
        return true;
    }
    let waiting = source.readable();
    let taken = if waiting > Bytes::ZERO {
        sink.write(now, waiting, WriteFlags::default())
    } else {
        Bytes::ZERO
    };
    if taken > Bytes::ZERO {
        source.read(now, taken);
    }
    if from.part == Part::Ended && taken == waiting {
        from.part = Part::Told;
        sink.shutdown(now, Half::Write);
        return true;
    }
    taken > Bytes::ZERO
}
