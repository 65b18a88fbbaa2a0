//! How packets pass the network: into a FIFO link and on as far as their fate is known, off the wires in order of time.

use super::meter::{Meter, Tap};
use super::{
    AT_ONCE, Body, DROPPED, END_AT_ONCE, LinkSlot, Network, Notice, PacketOnWire, Slab, Window, ingress,
};
use crate::observe::Observer;
use crate::routing::PathStart;
use crate::spec::LinkIndex;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::link::{FifoLink, PacketClass, PacketSize, Refusal};
use fleetfoot_core::packet::{BufId, Flags, Packet, Segment};
use fleetfoot_core::queue::{DropReason, QueueDiscipline as _};
use fleetfoot_core::tcp::Connection;
use fleetfoot_core::time::Instant;

/// When things are counted, and when they no longer happen.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    inside: Instant,
    window: Window,
    pub(crate) horizon: Instant,
}

/// What some arrivals brought.
#[derive(Default)]
pub(crate) struct Passed {
    /// How many there were.
    pub(crate) events: u64,
    /// When the last was.
    pub(crate) now: Instant,
    /// The last brought this packet to the end of its path, over this link.
    pub(crate) at_end: Option<(u32, u32)>,
}

impl Network {
    /// Sends a segment on its way from an endpoint.
    pub(crate) fn send<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        now: Instant,
        path: PathStart,
        flow: FlowId,
        segment: Segment,
    ) {
        observer.on_send(now, flow, &segment);
        let id = packets.insert(Packet {
            enqueued_at: now,
            flow,
            buf: BufId::NONE,
            segment,
        });
        let first = self.hops[path.0 as usize];
        if self.enter(observer, first, path.0 + 1, now, id, packets.get_mut(id)) {
            packets.free(id);
        }
    }

    /// Sends segments on their way from an endpoint, in order of time. Their place is that of the next hop.
    #[inline(never)]
    pub(crate) fn send_run<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        path: PathStart,
        leaving: &mut [PacketOnWire],
    ) {
        let (first, place) = (self.hops[path.0 as usize], path.0 + 1);
        let next = self.hops[place as usize];
        let waits = next & AT_ONCE == 0 || next == END_AT_ONCE;
        let mut left = leaving;
        while let Some(&PacketOnWire { at, packet: id, .. }) = left.first() {
            if waits {
                let taken = self.take_in(packets, observer, first, next, left);
                if taken > 0 {
                    left = &mut left[taken..];
                    continue;
                }
            }
            let packet = packets.get_mut(id);
            if self.enter(observer, first, place, at, id, packet) {
                packets.free(id);
            }
            left = &mut left[1..];
        }
    }

    /// Lets segments into a FIFO link at whose end they wait, as many of them as find room. Says how many.
    #[inline(always)]
    fn take_in<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        index: u32,
        next: u32,
        leaving: &mut [PacketOnWire],
    ) -> usize {
        let bounds = self.bounds();
        let taken = self.go_through::<_, false>(packets, observer, index, bounds, leaving);
        if self.calendar.is_some() {
            for &waiting in &leaving[..taken] {
                self.stand(index, next, waiting);
            }
            return taken;
        }
        let wire = &mut self.links[index as usize].wire;
        let first = wire.is_empty();
        wire.extend(&leaving[..taken]);
        if first && let Some(head) = wire.front() {
            if next == END_AT_ONCE {
                self.early.push(index, head.size);
            } else {
                self.queue.set_arrival(index, head.at);
            }
        }
        taken
    }

    /// Lets packets into a FIFO link, as many of them as find room: how many. Their time becomes that at which they reach the far
    /// end. With `ARRIVES` they come from another FIFO link, and the FIFO link has their place.
    #[inline(always)]
    pub(crate) fn go_through<O: Observer, const ARRIVES: bool>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        index: u32,
        bounds: Bounds,
        batch: &mut [PacketOnWire],
    ) -> usize {
        let at = &mut self.links[index as usize];
        let Body::Fifo(fifo) = &mut at.body else {
            return 0;
        };
        #[cfg(debug_assertions)]
        {
            let first = batch.first().map_or(at.entered_at, |first| first.at);
            let in_order = batch.is_sorted_by_key(|waiting| waiting.at) && at.entered_at <= first;
            assert!(in_order, "packets enter a link in order of time");
            at.entered_at = first;
        }
        if O::DEAF {
            return pass_fifo(fifo, &mut at.meter, bounds, batch);
        }
        for (through, waiting) in batch.iter_mut().enumerate() {
            let now = waiting.at;
            let Some(arrival) = pass_alone(fifo, &mut at.meter, bounds, waiting.size, now) else {
                return through;
            };
            waiting.at = arrival;
            let packet = packets.get_mut(waiting.packet);
            if ARRIVES {
                let before = LinkIndex(self.hops[waiting.place as usize - 1] & !AT_ONCE);
                observer.on_deliver(now, before, packet, now.since(packet.enqueued_at));
            }
            observer.on_enter(now, LinkIndex(index), packet);
            packet.enqueued_at = now;
        }
        batch.len()
    }

    /// Packets that have come to a FIFO link go through it: nothing is too large, and there is room for all.
    #[inline(never)]
    pub(crate) fn go_through_entered(&mut self, index: u32, bounds: Bounds) {
        let at = &mut self.links[index as usize];
        let entering = std::mem::take(&mut at.entering) as usize;
        let Body::Fifo(fifo) = &mut at.body else { return };
        for batch in at.wire.newest_mut(entering) {
            if batch.is_empty() {
                continue;
            }
            let through = pass_fifo(fifo, &mut at.meter, bounds, batch);
            debug_assert_eq!(through, batch.len(), "there was room for all");
        }
        if at.wire.len() == entering
            && let Some(head) = at.wire.front()
        {
            if self.hops[head.place as usize] == END_AT_ONCE {
                self.early.push(index, head.size);
            } else {
                self.queue.set_arrival(index, head.at);
            }
        }
    }

    /// Sends what a connection allows, `most` segments. Segments are written where they stay until they are delivered. With `HEARD` the first link's queue is in
    /// the host, and the connection hears what waits there.
    #[expect(
        clippy::too_many_arguments,
        reason = "parts of the world that are borrowed one by one"
    )]
    #[inline(always)]
    pub(crate) fn send_all<O: Observer, const HEARD: bool>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        now: Instant,
        path: PathStart,
        flow: FlowId,
        connection: &mut Connection,
        most: u32,
    ) -> u32 {
        let mut sent = 0;
        while sent < most {
            let (packet, free) = packets.reserve();
            if connection.poll_segment(now, &mut packet.segment).is_none() {
                break;
            }
            sent += 1;
            let id = std::mem::replace(free, packet.buf.0);
            packet.enqueued_at = now;
            packet.flow = flow;
            observer.on_send(now, flow, &packet.segment);
            let first = self.hops[path.0 as usize];
            let coming = HEARD.then(|| self.coming(first, packet.segment.payload));
            if self.enter(observer, first, path.0 + 1, now, id, packet) {
                packets.free(id);
            }
            if let Some(coming) = coming {
                self.tell_what_waits(now, flow, &coming, connection);
            }
        }
        sent
    }

    /// A packet arrives at the sending end of a link, and passes on through FIFO links as far as its fate is known. `place` is
    /// that of the next hop. Whether the packet is no longer where it is.
    #[inline(always)]
    pub(super) fn enter<O: Observer>(
        &mut self,
        observer: &mut O,
        index: u32,
        place: u32,
        now: Instant,
        id: u32,
        packet: &mut Packet,
    ) -> bool {
        let bounds = self.bounds();
        let size = PacketSize::of(&packet.segment);
        self.enter_behind::<_, true>(observer, bounds, index, place, now, id, size, packet, NOBODY)
    }

    /// What stays as it is while packets pass.
    #[inline(always)]
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            inside: self.inside,
            window: self.window,
            horizon: self.horizon,
        }
    }

    /// As `enter`, where packets of several sizes wait, and where the packet goes on from there.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "a part of `enter`")]
    fn enter_any<O: Observer>(
        &mut self,
        observer: &mut O,
        index: u32,
        place: u32,
        now: Instant,
        id: u32,
        size: PacketSize,
        packet: &mut Packet,
        before: u32,
    ) -> bool {
        let bounds = self.bounds();
        self.enter_behind::<_, false>(observer, bounds, index, place, now, id, size, packet, before)
    }

    /// As `enter`, for a packet that comes off the FIFO link `before`; with `USUAL` the code is for the usual case alone.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "what is carried from fifo to fifo")]
    pub(crate) fn enter_behind<O: Observer, const USUAL: bool>(
        &mut self,
        observer: &mut O,
        bounds: Bounds,
        mut index: u32,
        mut place: u32,
        mut now: Instant,
        id: u32,
        size: PacketSize,
        packet: &mut Packet,
        mut before: u32,
    ) -> bool {
        loop {
            let at = &mut self.links[index as usize];
            let Body::Fifo(fifo) = &mut at.body else {
                observer.on_enter(now, LinkIndex(index), packet);
                packet.buf = BufId(place);
                self.enter_link(observer, index, now, packet);
                return true;
            };
            if USUAL && !fifo.is_usual(size) && !fifo.turn_to(now, size) {
                return self.enter_any(observer, index, place, now, id, size, packet, before);
            }
            #[cfg(debug_assertions)]
            {
                assert!(now >= at.entered_at, "packets enter a link in order of time");
                at.entered_at = now;
            }
            observer.on_enter(now, LinkIndex(index), packet);
            let schedule = if USUAL {
                fifo.on_usual(now)
            } else {
                fifo.on_packet(now, size)
            };
            let schedule = match schedule {
                Ok(schedule) => schedule,
                Err(refusal) => {
                    return self.drop_at_fifo(observer, index, before, now, id, packet, refusal);
                }
            };
            at.meter
                .count_passage(bounds.inside, bounds.window, fifo, size, now, schedule);
            let arrival = schedule.arrival;
            let next = self.hops[place as usize];
            if next & AT_ONCE == 0 || next == END_AT_ONCE || arrival > bounds.horizon {
                if !O::DEAF {
                    packet.enqueued_at = now;
                }
                let waiting = PacketOnWire {
                    at: arrival,
                    packet: id,
                    place,
                    size,
                };
                if self.calendar.is_some() {
                    self.stand(index, next, waiting);
                    return false;
                }
                let first = at.wire.is_empty();
                at.wire.push_back(waiting);
                if first {
                    if next == END_AT_ONCE {
                        self.early.push(index, size);
                    } else {
                        self.queue.set_arrival(index, arrival);
                    }
                }
                return false;
            }
            observer.on_deliver(arrival, LinkIndex(index), packet, arrival.since(now));
            if USUAL {
                // No loop here: mostly it is not gone through twice.
                let next = next & !AT_ONCE;
                return self.enter_any(observer, next, place + 1, arrival, id, size, packet, index);
            }
            place += 1;
            before = index;
            index = next & !AT_ONCE;
            now = arrival;
        }
    }

    /// A FIFO link has no room. Ahead of time the packet counts as in the network until the moment comes, at the end of the
    /// FIFO link `before`.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "what `enter` knows")]
    pub(crate) fn drop_at_fifo<O: Observer>(
        &mut self,
        observer: &mut O,
        index: u32,
        before: u32,
        now: Instant,
        id: u32,
        packet: &Packet,
        refusal: Refusal,
    ) -> bool {
        let Refusal { reason, waiting } = refusal;
        let meter = &mut self.links[index as usize].meter;
        meter.count_arrival(self.window, now, waiting);
        if self.window.contains(now) {
            let class = PacketClass::of(packet) as usize;
            meter.rest.after.drops[reason as usize][class] += 1;
        }
        observer.on_drop(now, LinkIndex(index), packet, reason);
        if before == NOBODY {
            self.notices.push(Notice::Dropped(*packet, now));
            return true;
        }
        let waiting = PacketOnWire {
            at: now,
            packet: id,
            place: self.dropped,
            size: PacketSize::of(&packet.segment),
        };
        self.stand(before, DROPPED, waiting);
        false
    }

    /// A packet arrives at a link that is no FIFO link.
    #[inline(never)]
    fn enter_link<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant, packet: &Packet) {
        let LinkSlot {
            body, meter, host, ..
        } = &mut self.links[index as usize];
        let Body::Link(link) = body else { return };
        if link.queue().asks_ingress() {
            link.set_ingress(ingress(&self.hops, packet.buf.0));
        }
        let mut tap = Tap {
            index,
            window: self.window,
            meter,
            observer,
            notices: &mut self.notices,
            host: *host,
        };
        link.on_packet(now, *packet, &self.flows, &mut tap);
        self.after_link(index);
    }

    /// The head of the wire of a link that is no FIFO link is due. What reaches the end of its path by it.
    #[inline(never)]
    pub(crate) fn on_link<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        index: u32,
        now: Instant,
    ) -> Option<(u32, u32)> {
        let LinkSlot {
            body, meter, host, ..
        } = &mut self.links[index as usize];
        let Body::Link(link) = body else { return None };
        let mut tap = Tap {
            index,
            window: self.window,
            meter,
            observer,
            notices: &mut self.notices,
            host: *host,
        };
        let packet = link.poll_delivery(now, &self.flows, &mut tap);
        // The event that came is over.
        self.links[index as usize].delivery_at = Instant::FAR_FUTURE;
        self.queue.set_arrival(index, Instant::FAR_FUTURE);
        self.after_link(index);
        let packet = packet?;
        if packet.segment.flags.contains(Flags::CORRUPT) {
            self.discard_damaged(observer, index, now, packet);
            return None;
        }
        let place = packet.buf.0;
        let hop = self.hops[place as usize] & !AT_ONCE;
        let id = packets.insert(packet);
        if hop >= DROPPED {
            return self.arrive_at_end(packets, observer, index, place, now, id);
        }
        let packet = packets.get_mut(id);
        observer.on_deliver(now, LinkIndex(index), packet, now.since(packet.enqueued_at));
        if self.enter(observer, hop, place + 1, now, id, packet) {
            packets.free(id);
        }
        None
    }

    /// The node at the far end of a link, a router as well as a host, finds that a frame fails its check and throws it away. FIFO links
    /// damage nothing, so what comes over them need not be looked at.
    #[cold]
    fn discard_damaged<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant, packet: Packet) {
        if self.window.contains(now) {
            let damaged = &mut self.links[index as usize].meter.rest.damaged;
            damaged[PacketClass::of(&packet) as usize] += 1;
        }
        observer.on_drop(now, LinkIndex(index), &packet, DropReason::BitError);
        self.notices.push(Notice::Dropped(packet, now));
    }

    /// A packet reaches the end of its path, or the moment has come at which it is dropped.
    #[inline(never)]
    pub(crate) fn arrive_at_end<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        index: u32,
        place: u32,
        now: Instant,
        id: u32,
    ) -> Option<(u32, u32)> {
        let packet = packets.get(id);
        if place == self.dropped {
            self.notices.push(Notice::Dropped(*packet, now));
            packets.free(id);
            return None;
        }
        observer.on_deliver(now, LinkIndex(index), packet, now.since(packet.enqueued_at));
        // Those behind it may have waited for no more than this one.
        if self.hops[place as usize] == END_AT_ONCE
            && let Some(next) = self.links[index as usize].wire.front()
        {
            self.queue.set_arrival(index, Instant::FAR_FUTURE);
            self.early.push(index, next.size);
        }
        Some((index, id))
    }
}

/// Packets pass a FIFO link in order, as many of them as find room: how many. Their time becomes that at which they reach the far end.
#[inline(never)]
fn pass_fifo(fifo: &mut FifoLink, meter: &mut Meter, bounds: Bounds, batch: &mut [PacketOnWire]) -> usize {
    let mut through = 0;
    loop {
        through += fifo.on_run(&mut batch[through..], bounds.inside, meter);
        let Some(waiting) = batch.get_mut(through) else {
            return through;
        };
        if !fifo.is_usual(waiting.size) {
            let (at, size) = (waiting.at, waiting.size);
            let idle = fifo.on_idle_packets(&mut batch[through..], bounds.inside);
            through += idle;
            if idle > 0 || fifo.turn_to(at, size) {
                continue;
            }
        }
        let waiting = &mut batch[through];
        let Some(arrival) = pass_alone(fifo, meter, bounds, waiting.size, waiting.at) else {
            return through;
        };
        waiting.at = arrival;
        through += 1;
    }
}

/// A packet passes a FIFO link: when it reaches the far end. `None`: it does not find room.
#[inline(never)]
fn pass_alone(
    fifo: &mut FifoLink,
    meter: &mut Meter,
    bounds: Bounds,
    size: PacketSize,
    now: Instant,
) -> Option<Instant> {
    let schedule = fifo.on_packet(now, size).ok()?;
    meter.count_passage(bounds.inside, bounds.window, fifo, size, now, schedule);
    Some(schedule.arrival)
}

/// No FIFO link before.
pub(crate) const NOBODY: u32 = u32::MAX;
