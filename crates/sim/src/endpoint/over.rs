//! The end of conversations: what left the network, who has closed, and slots that become free.

use crate::observe::{AppEvent, Observer};
use crate::world::World;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Kind, Packet, Segment};
use fleetfoot_core::tcp::State;
use fleetfoot_core::time::Instant;

impl<O: Observer> World<'_, O> {
    /// Ends a conversation without ceremony: the peer gets a reset, nobody waits for anything.
    pub(crate) fn abort(&mut self, now: Instant, index: u32) {
        self.wake(index, 0);
        if let Some(connection) = &mut self.slots[index as usize].ends[0].connection {
            connection.abort(now);
        }
        self.pump(now, index, 0);
    }

    pub(crate) fn end_closed(&mut self, now: Instant, index: u32, side: usize) {
        if self.slots[index as usize].partner != index {
            self.relayed_end_closed(now, index, side);
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
        self.on_conversation_end(now, index);
        self.free_if_over(now, index);
    }

    /// A packet was dropped, or discarded on arrival.
    pub(crate) fn left_network(&mut self, now: Instant, packet: &Packet) {
        let index = packet.flow.0 >> 1;
        self.slots[index as usize].in_network -= 1;
        if packet.segment.kind() == Kind::Datagram {
            self.on_datagram_lost(index, &packet.segment);
        }
        self.free_if_over(now, index);
    }

    /// Counts a packet that the network dropped at `at`.
    pub(crate) fn count_dropped(&mut self, at: Instant, packet: &Packet) {
        if packet.segment.is_data() && packet.flow.0 & 1 == 0 && self.window.contains(at) {
            let group = self.slots[(packet.flow.0 >> 1) as usize].group;
            self.groups[group as usize].dropped += 1;
        }
    }

    /// A packet was doubled on the way.
    pub(crate) fn doubled(&mut self, packet: &Packet) {
        let index = packet.flow.0 >> 1;
        self.slots[index as usize].in_network += 1;
        if packet.segment.kind() == Kind::Datagram {
            self.on_datagram_doubled(index, &packet.segment);
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
    pub(crate) fn free_if_over(&mut self, now: Instant, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.partner != index {
            self.free_relayed_if_over(now, index);
            return;
        }
        let [one, other] = &slot.ends;
        let over = one.closed && other.is_idle() || other.closed && one.is_idle();
        if !slot.live || slot.in_network > 0 || !over {
            return;
        }
        self.record_connection(index);
        self.free(now, index);
    }

    /// Frees a slot.
    pub(crate) fn free(&mut self, now: Instant, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.live = false;
        let paths = [slot.ends[0].path, slot.ends[1].path];
        slot.stream = None;
        slot.replay = None;
        for end in &mut slot.ends {
            end.connection = None;
            end.resting = None;
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
