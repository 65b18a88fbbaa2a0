//! What stands between an endpoint and its links: grouping of what it sends; joining of pieces and coalescing of what arrives.
//!
//! Packets that are held back count as in the network, so that their conversation goes on living. Nodes where something is
//! held back take no packets ahead of time (`Hosts::eager_links`).

use super::End;
use super::hosts::{Applications, Hosts};
use crate::event::{EventKey, EventKind};
use crate::observe::Observer;
use crate::spec::NodeId;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::superpacket::group::{Grouper, Grouping, Mode};
use fleetfoot_core::time::{Duration, Instant};

/// What hosts do with packets that arrive before TCP gets them.
#[derive(Debug, Default)]
pub(crate) struct Interfaces {
    /// Some host coalesces interrupts or joins pieces.
    busy: bool,
    queues: Vec<ReceiveQueue>,
    /// A queue hands up its packets: what endpoints send meanwhile is one burst.
    handing_up: bool,
    /// Endpoints that sent meanwhile.
    sent: Vec<u32>,
}

/// What arrived at one host and is not handed up.
#[derive(Debug)]
struct ReceiveQueue {
    node: NodeId,
    span: Duration,
    packets: Vec<u32>,
}

impl Interfaces {
    /// Whether every packet goes to its connection as it comes.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        !self.busy
    }

    /// Pieces of segments may arrive.
    pub(crate) fn join_pieces(&mut self) {
        self.busy = true;
    }

    /// The queue of a host for groups that wait for `span`, [`AT_ONCE`] if that is no time.
    pub(crate) fn queue(&mut self, node: NodeId, span: Duration) -> u32 {
        if span.is_zero() {
            return AT_ONCE;
        }
        self.busy = true;
        let known = |queue: &ReceiveQueue| queue.node == node && queue.span == span;
        let index = self.queues.iter().position(known).unwrap_or_else(|| {
            self.queues.push(ReceiveQueue {
                node,
                span,
                packets: Vec::new(),
            });
            self.queues.len() - 1
        });
        index as u32
    }
}

impl<O: Observer> Hosts<'_, O> {
    /// Keeps a packet that arrived until its segment is complete and its interface hands it up; `false`: it is to be delivered at once.
    pub(crate) fn hold<A: Applications<O>>(&mut self, apps: &mut A, now: Instant, id: u32) -> bool {
        let packet = self.packets.get_mut(id);
        let (index, side) = (packet.flow.0 >> 1, (1 ^ packet.flow.0 & 1) as usize);
        let slot = &mut self.slots[index as usize];
        if let Some(grouper) = &mut slot.ends[side].grouper
            && grouper.joins()
        {
            let Some(segment) = grouper.join(&packet.segment) else {
                self.packets.free(id);
                slot.in_network -= 1;
                self.free_if_over(apps, now, index);
                return true;
            };
            packet.segment = segment;
        }
        let queue = self.groups[slot.group as usize].receive_queue(slot.pair, side);
        let Some(place) = self.interfaces.queues.get_mut(queue as usize) else {
            return false;
        };
        if place.packets.is_empty() {
            let at = now.saturating_add(place.span);
            self.network
                .queue
                .push(EventKey::new(at, EventKind::Interrupt, queue, 0));
        }
        place.packets.push(id);
        true
    }

    /// An interface hands up what arrived.
    pub(crate) fn on_interrupt<A: Applications<O>>(&mut self, apps: &mut A, queue: u32, now: Instant) {
        let mut packets = std::mem::take(&mut self.interfaces.queues[queue as usize].packets);
        self.interfaces.handing_up = true;
        for id in packets.drain(..) {
            self.deliver(apps, now, id);
        }
        self.interfaces.handing_up = false;
        self.interfaces.queues[queue as usize].packets = packets; // nothing arrives while they are delivered
        let mut sent = std::mem::take(&mut self.interfaces.sent);
        for number in sent.drain(..) {
            self.release(now, number >> 1, (number & 1) as usize, false);
        }
        self.interfaces.sent = sent;
    }

    /// Sends what the grouper of an end lets go, and arms the end's timer. `over`: the connection will send nothing more.
    pub(crate) fn release(&mut self, now: Instant, index: u32, side: usize, over: bool) {
        let number = 2 * index + side as u32;
        let slot = &mut self.slots[index as usize];
        let end = &mut slot.ends[side];
        let Some(grouper) = &mut end.grouper else { return };
        if over {
            grouper.end_of_burst();
        } else if self.interfaces.handing_up {
            self.interfaces.sent.push(number);
            return;
        }
        let counts = self.window.contains(now);
        let lengths = &mut self.groups[slot.group as usize].super_packet_length;
        while let Some(outgoing) = grouper.poll_transmit(now) {
            if counts && outgoing.group > 0 {
                lengths.record(u64::from(outgoing.group));
            }
            self.network.send(
                &mut self.packets,
                self.observer,
                now,
                end.path,
                FlowId(number),
                outgoing.packet,
            );
        }
        end.arm(now, number, &mut self.network, &mut self.armed);
    }
}

impl End {
    /// What the connection sends now goes to the grouper.
    #[inline(never)]
    pub(crate) fn group(&mut self, now: Instant, in_network: &mut u32) {
        let (Some(grouper), Some(connection)) = (&mut self.grouper, &mut self.connection) else {
            return;
        };
        if matches!(grouper.mode(), Mode::Accumulate { .. }) {
            grouper.set_srtt(connection.info(now).srtt);
        }
        let mut segment = fleetfoot_core::packet::Segment::default();
        let before = grouper.len();
        while connection.poll_segment(now, &mut segment).is_some() {
            grouper.on_segment(now, segment);
        }
        *in_network += (grouper.len() - before) as u32;
    }
}

/// The groupers of the two ends of a new conversation.
pub(crate) fn groupers(grouping: Option<Grouping>, random: &mut Rng) -> [Option<Box<Grouper>>; 2] {
    [(); 2].map(|()| {
        grouping.map(|grouping| Box::new(Grouper::new(grouping, Rng::from_seed(random.next_u64()))))
    })
}

/// No queue: packets are delivered as they come.
pub(crate) const AT_ONCE: u32 = u32::MAX;
