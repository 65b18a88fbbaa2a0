//! Hosts that take packets ahead of time.
//!
//! A packet's time may come early if it is the next thing that happens at its receiver, and concerns nobody else: nothing
//! can reach the host before it (its only link is a FIFO link), no application acts, no deadline passes, and an established
//! connection without an end takes an ordinary segment. Packets of one flow that follow each other are taken together.

use super::Application;
use super::end::Heeds;
use super::hosts::{Applications, Hosts};
use crate::network::heard::BURST;
use crate::network::{END_AT_ONCE, PacketOnWire, Slab};
use crate::observe::Observer;
use crate::spec::LinkIndex;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::link::PacketSize;
use fleetfoot_core::packet::{BufId, Flags, Packet};
use fleetfoot_core::tcp::{Connection, State, WriteFlags};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

impl<O: Observer> Hosts<'_, O> {
    /// Delivers packets ahead of time where nothing else can happen to the receiver before, and what they cause; lets the
    /// others wait for their turn.
    #[inline(always)]
    pub(crate) fn run_ahead<A: Applications<O>>(&mut self, apps: &mut A) {
        // Those at the end of the list were looked at.
        let mut looked_at = 0;
        let large = self.network.queue.is_large();
        loop {
            if large {
                looked_at = self.look_at_early(looked_at);
            }
            let Some(link) = self.network.early.pop() else {
                return;
            };
            while self.take_run(apps, link) {}
            if let Some(first) = self.network.links[link as usize].wire.front() {
                self.network.queue.set_arrival(link, first.at);
            }
        }
    }

    /// Reads what the endpoints need that are next, unless so many were looked at that another is. How many are then, without the
    /// next.
    #[inline(never)]
    fn look_at_early(&self, looked_at: usize) -> usize {
        let early = self.network.early.next();
        if looked_at > 0 || early.len() < 2 {
            return looked_at.saturating_sub(1);
        }
        let next = &early[early.len().saturating_sub(TOGETHER)..];
        std::hint::black_box(self.look_at_first(next));
        next.len() - 1
    }

    /// Reads what the endpoints need that take the first packets off these wires.
    #[inline(never)]
    fn look_at_first(&self, links: &[u32]) -> u64 {
        let mut first = [None; TOGETHER];
        for (first, &link) in first.iter_mut().zip(links) {
            *first = self.network.links[link as usize]
                .wire
                .front()
                .map(|waiting| waiting.packet);
        }
        let mut flows = [FlowId(0); TOGETHER];
        let mut read = 0;
        for (flow, packet) in flows.iter_mut().zip(first.into_iter().flatten()) {
            let packet = self.packets.get(packet);
            read ^= u64::from(packet.segment.ack.0) ^ u64::from(packet.segment.tsecr);
            *flow = FlowId(packet.flow.0 ^ 1);
        }
        read ^ self.look_at_ends(&flows[..links.len()])
    }

    /// Delivers the packets of one flow at the end of a FIFO link as far as their time may come early. Whether those of
    /// another may follow.
    #[inline(always)]
    fn take_run<A: Applications<O>>(&mut self, apps: &mut A, link: u32) -> bool {
        let Some(first) = self.network.links[link as usize].wire.front() else {
            return false;
        };
        let flow = self.packets.get(first.packet).flow;
        let end = &self.slots[(flow.0 >> 1) as usize].ends[(1 ^ flow.0 & 1) as usize];
        let writes = end.to_write > 0 || end.closing;
        match end.connection.as_deref() {
            Some(connection) if !writes && connection.only_receives() => {
                self.take_run_of::<A, true>(apps, link)
            }
            Some(_) => self.take_run_of::<A, false>(apps, link),
            None => false,
        }
    }

    /// [`Hosts::take_run`]. `RECEIVES`: the connection [only receives](Connection::only_receives), and the application has nothing to
    /// write.
    #[inline(never)]
    fn take_run_of<A: Applications<O>, const RECEIVES: bool>(&mut self, apps: &mut A, link: u32) -> bool {
        let Hosts {
            network,
            packets,
            slots,
            observer,
            groups,
            armed,
            window,
            leaving,
            ..
        } = self;
        let wire = &mut network.links[link as usize].wire;
        let Some(&PacketOnWire {
            packet,
            at: first,
            place: end_of_path,
            ..
        }) = wire.front()
        else {
            return false;
        };
        let flow = packets.get(packet).flow;
        let (index, side) = (flow.0 >> 1, (1 ^ flow.0 & 1) as usize);
        let slot = &mut slots[index as usize];
        let end = &mut slot.ends[side];
        let lonely = armed[end.node.0 as usize] == u32::from(end.is_armed());
        let Some(connection) = end.connection.as_deref_mut() else {
            return false;
        };
        let bursts = connection.waits_at_host().is_some_and(|last| last > first);
        if !slot.endless || !lonely || bursts || network.hops[end_of_path as usize] != END_AT_ONCE {
            return false;
        }
        debug_assert!(
            connection
                .poll_timeout()
                .is_none_or(|timeout| timeout <= end.deadline),
            "armed after every change"
        );
        // What is taken counts as a whole, so it lies on one side of the beginning of the window.
        let counts = first >= window.from;
        let edge = if counts { window.to } else { window.from };
        let latest = network.queue.next_app().min(edge - Duration::from_nanos(1));
        // Nothing that the packets cause comes to the end of this FIFO link.
        let mut wire = std::mem::take(wire);
        let number = flow.0 ^ 1;
        let received = end.received;
        let mut until = latest.min(end.deadline);
        // A longer burst is sent as at any other host.
        let most = match end.heeds_host {
            Heeds::Bursts => BURST as usize,
            Heeds::Never | Heeds::Always => usize::MAX,
        };
        let mut long = false;
        let (mut over, mut more, mut paused) = (false, false, false);
        let mut taken = 0;
        leaving.clear();
        // Where what is sent goes after its first link.
        let onward = end.path.0 + 1;
        for piece in wire.pieces() {
            let mut rest = piece.iter();
            while let Some(waiting) = rest.as_slice().first() {
                let (at, id) = (waiting.at, waiting.packet);
                if at > until && (at > latest || !connection.is_silent_before::<RECEIVES>(at)) {
                    break;
                }
                let (packet, free) = packets.place(id);
                if packet.flow != flow {
                    more = network.hops[waiting.place as usize] == END_AT_ONCE;
                    break;
                }
                debug_assert_eq!(waiting.place, end_of_path, "a flow has one path");
                let predicted = connection.predicts(&packet.segment);
                if !predicted
                    && (packet.segment.flags.intersects(EXTRAORDINARY)
                        || connection.state() != State::Established)
                {
                    break;
                }
                rest.next();
                observer.on_deliver(at, LinkIndex(link), packet, at.since(packet.enqueued_at));
                packet.buf = BufId(std::mem::replace(free, id));
                // What a predicted segment carries is all that it may change of what came.
                let carries = !predicted || packet.segment.is_data();
                let in_order = connection
                    .on_segment_as::<RECEIVES>(at, &packet.segment, predicted)
                    .in_order;
                if carries && in_order > end.received {
                    let before = std::mem::replace(&mut end.received, in_order);
                    observer.on_receive(at, flow, before..in_order);
                }
                let mut application = Application {
                    to_write: &mut end.to_write,
                    closing: &mut end.closing,
                };
                // While nobody watches, what changes nothing is written when the run is over.
                let later = O::DEAF && *application.to_write > 0 && connection.has_plenty();
                let acted = if RECEIVES || later {
                    application.take_events(at, connection)
                } else {
                    application.act(at, connection)
                };
                debug_assert!(!acted.found, "flows that tell others run on time");
                over |= acted.over;
                long = drain::<_, RECEIVES>(
                    packets,
                    *observer,
                    at,
                    FlowId(number),
                    connection,
                    leaving,
                    onward,
                    most,
                );
                until = at;
                if over || long {
                    break;
                }
                if !O::DEAF {
                    connection.settle();
                    observer.on_ack(at, FlowId(number), connection);
                }
                if O::PAUSES && observer.pauses() {
                    paused = true;
                    break;
                }
            }
            taken += piece.len() - rest.len();
            if rest.len() > 0 || over || paused || long {
                break;
            }
        }
        if !RECEIVES && end.to_write > 0 && taken > 0 && !over {
            // What was written later than it could be.
            end.to_write -= connection
                .write(until, Bytes(end.to_write), WriteFlags::default())
                .get();
        }
        connection.settle();
        wire.forget(taken);
        let mut sent = leaving.len() as u32;
        network.send_run(packets, *observer, end.path, leaving);
        if long {
            let flow = FlowId(number);
            sent += network.go_on_with_burst(packets, *observer, until, end.path, flow, connection, BURST);
            if !O::DEAF && !over {
                connection.settle();
                observer.on_ack(until, flow, connection);
            }
        }
        let place = &mut network.links[link as usize].wire;
        debug_assert!(place.is_empty(), "nothing was put here meanwhile");
        *place = wire;
        if taken == 0 {
            return false;
        }
        let last = until;
        slot.in_network += sent;
        slot.in_network -= taken as u32;
        if side == 1 && counts {
            let bytes = Bytes(end.received - received);
            let group = &mut groups[slot.group as usize];
            group.goodput += bytes;
            group.goodput_per_connection[slot.number as usize] += bytes;
        }
        // Events before this deadline are not needed: what has happened since moved it.
        end.arm(last, number, network, armed);
        if over {
            self.end_closed(apps, last, index, side);
            self.tell_ack(last, index, side);
            return false;
        }
        more
    }
}

/// What a connection sends now, `most` segments. Segments are written where they stay until they are delivered. `RECEIVES`: it
/// [only receives](Connection::only_receives). Whether these were that many.
#[inline(always)]
#[expect(
    clippy::too_many_arguments,
    reason = "parts of the world that are borrowed one by one"
)]
fn drain<O: Observer, const RECEIVES: bool>(
    packets: &mut Slab,
    observer: &mut O,
    now: Instant,
    flow: FlowId,
    connection: &mut Connection,
    leaving: &mut Vec<PacketOnWire>,
    onward: u32,
    most: usize,
) -> bool {
    let most = leaving.len().saturating_add(most);
    while !connection.is_drained::<RECEIVES>(now) {
        let (packet, free) = packets.reserve();
        if RECEIVES {
            let Some(all) = connection.poll_answer(now, &mut packet.segment) else {
                return false;
            };
            leave(packet, free, observer, now, flow, leaving, onward);
            if all {
                return false;
            }
            continue;
        }
        if leaving.len() >= most {
            return true;
        }
        if connection.poll_segment(now, &mut packet.segment).is_none() {
            return false;
        }
        let alike = connection.alike(now, &packet.segment);
        leave(packet, free, observer, now, flow, leaving, onward);
        if alike > 0 {
            let mut segment = packet.segment;
            for _ in 0..(alike as usize).min(most - leaving.len()) {
                let (packet, free) = packets.reserve();
                connection.poll_alike(now, &mut segment);
                packet.segment = segment;
                leave(packet, free, observer, now, flow, leaving, onward);
            }
        }
    }
    false
}

/// What has been written to a free place leaves.
#[inline(always)]
fn leave<O: Observer>(
    packet: &mut Packet,
    free: &mut u32,
    observer: &mut O,
    now: Instant,
    flow: FlowId,
    leaving: &mut Vec<PacketOnWire>,
    onward: u32,
) {
    let id = std::mem::replace(free, packet.buf.0);
    if !O::DEAF {
        packet.enqueued_at = now;
    }
    packet.flow = flow;
    observer.on_send(now, flow, &packet.segment);
    leaving.push(PacketOnWire {
        at: now,
        packet: id,
        place: onward,
        size: PacketSize::of(&packet.segment),
    });
}

/// Wires whose endpoints are looked at together.
const TOGETHER: usize = 16;

/// What an ordinary segment does not carry.
pub(crate) const EXTRAORDINARY: Flags = Flags(Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0);
