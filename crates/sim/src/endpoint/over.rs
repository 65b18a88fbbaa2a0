//! The end of conversations: what left the network, who has closed, and slots that become free.

use super::End;
use super::hosts::{Applications, Hosts};
use crate::observe::{AppEvent, Observer};
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Flags, Kind, Packet, Segment};
use fleetfoot_core::tcp::State;
use fleetfoot_core::time::Instant;

impl<O: Observer> Hosts<'_, O> {
    /// Ends a conversation without ceremony: the peer gets a reset, nobody waits for anything.
    pub(crate) fn abort(&mut self, now: Instant, index: u32) {
        self.wake(index, 0);
        if let Some(connection) = &mut self.slots[index as usize].ends[0].connection {
            connection.abort(now);
        }
        self.push(now, index, 0);
    }

    pub(crate) fn end_closed<A: Applications<O>>(
        &mut self,
        apps: &mut A,
        now: Instant,
        index: u32,
        side: usize,
    ) {
        if self.slots[index as usize].partner != index {
            self.relayed_end_closed(apps, now, index, side);
            return;
        }
        self.wake(index, 1 - side);
        let slot = &mut self.slots[index as usize];
        slot.endless = false;
        slot.ends[side].closed = true;
        slot.ends[side].forget_timer();
        let never_opened = slot.ends[1 - side].connection.is_none();
        let other_over = slot.ends[1 - side]
            .connection
            .as_ref()
            .is_some_and(|connection| connection.state() == State::Closed);
        if never_opened || other_over {
            slot.ends[1 - side].closed = true;
        }
        apps.on_conversation_end(self, now, index);
        self.free_if_over(apps, now, index);
    }

    /// A packet was dropped, or discarded on arrival.
    pub(crate) fn left_network<A: Applications<O>>(&mut self, apps: &mut A, now: Instant, packet: &Packet) {
        let index = packet.flow.0 >> 1;
        let slot = &mut self.slots[index as usize];
        slot.in_network -= 1;
        let waits = slot.in_network == 0 && (!slot.endless || packet.segment.flags.contains(Flags::SYN));
        if packet.segment.kind() == Kind::Datagram {
            self.copies.on_left(packet.flow, &packet.segment, false);
            apps.on_datagram_lost(self, index, &packet.segment);
        }
        self.free_if_over(apps, now, index);
        if self.frees_early && self.has_no_future(index) && apps.on_last_event(self, index) {
            self.free(now, index);
        } else if waits {
            self.pack(index);
        }
    }

    /// Whether nothing is in the network and every timer of a conversation without a relay lies beyond the end of the run: unless its
    /// application does something, nothing happens in it any more.
    fn has_no_future(&self, index: u32) -> bool {
        let slot = &self.slots[index as usize];
        let horizon = self.network.horizon;
        slot.live
            && slot.in_network == 0
            && slot.partner == index
            && slot
                .ends
                .iter()
                .all(|end| end.deadline > horizon && end.grouper.is_none())
    }

    /// Counts a packet that the network dropped at `at`.
    pub(crate) fn count_dropped(&mut self, at: Instant, packet: &Packet) {
        if packet.segment.is_data() && packet.flow.0 & 1 == 0 && self.window.contains(at) {
            let group = self.slots[(packet.flow.0 >> 1) as usize].group;
            self.groups[group as usize].dropped += 1;
        }
    }

    /// A packet was doubled on the way.
    pub(crate) fn doubled<A: Applications<O>>(&mut self, apps: &mut A, packet: &Packet) {
        let index = packet.flow.0 >> 1;
        self.slots[index as usize].in_network += 1;
        if packet.segment.kind() == Kind::Datagram {
            self.copies.on_doubled(packet.flow, &packet.segment);
            apps.on_datagram_doubled(self, index, &packet.segment);
        }
    }

    /// Sends a segment without a connection from one end of a slot to the other.
    pub(crate) fn send_from(&mut self, now: Instant, index: u32, side: usize, segment: Segment) {
        let slot = &mut self.slots[index as usize];
        slot.in_network += 1;
        let path = slot.ends[side].path;
        let flow = FlowId(2 * index + side as u32);
        self.network
            .send(&mut self.packets, self.observer, now, path, flow, segment);
    }

    /// Frees the slot if nothing can happen in it any more.
    pub(crate) fn free_if_over<A: Applications<O>>(&mut self, apps: &mut A, now: Instant, index: u32) {
        if self.slots[index as usize].partner != index {
            self.free_relayed_if_over(apps, now, index);
        } else if self.is_over(index) {
            apps.record(self, index);
            self.free(now, index);
        }
    }

    /// Whether nothing can happen any more in a conversation without a relay.
    pub(crate) fn is_over(&self, index: u32) -> bool {
        let slot = &self.slots[index as usize];
        let [one, other] = &slot.ends;
        let horizon = self.network.horizon;
        let idle = |end: &End| end.is_idle() || self.frees_early && end.is_quiet_until(horizon);
        let over = one.closed && idle(other) || other.closed && idle(one);
        slot.live && slot.in_network == 0 && over
    }

    /// Frees a slot.
    pub(crate) fn free(&mut self, now: Instant, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.live = false;
        let paths = [slot.ends[0].path, slot.ends[1].path];
        slot.configs = None;
        for end in &mut slot.ends {
            end.connection = None;
            end.resting = None;
            if end.is_armed() {
                self.armed[end.node.0 as usize] -= 1;
                end.deadline = Instant::FAR_FUTURE;
            }
        }
        for (side, path) in paths.into_iter().enumerate() {
            self.network.forget_flow(path, FlowId(2 * index + side as u32));
        }
        self.observer.on_app(
            now,
            &AppEvent::Closed {
                data: FlowId(2 * index),
            },
        );
        self.free.push(index);
    }
}
