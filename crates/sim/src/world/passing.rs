//! How packets pass the network: into a lane and on as far as their fate is known, off the wires in order of time.

use super::ahead::Leaving;
use super::meter::Tap;
use super::network::{AT_ONCE, Body, DROPPED, END_AT_ONCE, Network, Notice, Place, Waiting, ingress};
use super::{Slab, Window};
use crate::observe::Observer;
use crate::routing::PathStart;
use crate::spec::LinkIndex;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::link::{PacketClass, PacketSize, Refusal};
use fleetfoot_core::packet::{BufId, Packet, Segment};
use fleetfoot_core::queue::QueueDiscipline as _;
use fleetfoot_core::tcp::Connection;
use fleetfoot_core::time::Instant;

/// When things are counted, and when they no longer happen.
#[derive(Clone, Copy)]
struct Bounds {
    inside: Instant,
    window: Window,
    horizon: Instant,
}

/// What some arrivals brought.
pub(super) struct Passed {
    /// How many there were.
    pub(super) events: u64,
    /// When the last was.
    pub(super) now: Instant,
    /// The last brought this packet to the end of its path, over this link.
    pub(super) at_end: Option<(u32, u32)>,
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

    /// Sends segments on their way from an endpoint, in order of time.
    #[inline(never)]
    pub(super) fn send_run<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        path: PathStart,
        leaving: &[Leaving],
    ) {
        let (first, place) = (self.hops[path.0 as usize], path.0 + 1);
        let next = self.hops[place as usize];
        let waits = next & AT_ONCE == 0 || next == END_AT_ONCE;
        let mut left = leaving;
        while let Some((&Leaving { at, packet: id }, others)) = left.split_first() {
            if waits {
                let taken = self.take_in(packets, observer, first, place, left);
                if taken > 0 {
                    left = &left[taken..];
                    continue;
                }
            }
            let packet = packets.get_mut(id);
            if self.enter(observer, first, place, at, id, packet) {
                packets.free(id);
            }
            left = others;
        }
    }

    /// Lets segments into a lane at whose end they wait, as many of them as are of the usual size and find room. Says how
    /// many.
    fn take_in<O: Observer>(
        &mut self,
        packets: &Slab,
        observer: &mut O,
        index: u32,
        place: u32,
        leaving: &[Leaving],
    ) -> usize {
        let at = &mut self.links[index as usize];
        let Body::Lane { lane, wire } = &mut at.body else {
            return 0;
        };
        let window = self.window;
        let inside = self.inside;
        let first = wire.is_empty();
        let mut taken = 0;
        for &Leaving { at: now, packet: id } in leaving {
            let packet = packets.get(id);
            let size = PacketSize::of(&packet.segment);
            if !lane.is_usual(size) && !lane.turn_to(now, size) {
                break;
            }
            let Ok(passage) = lane.on_usual(now) else {
                break;
            };
            #[cfg(debug_assertions)]
            {
                assert!(now >= at.entered_at, "packets enter a link in order of time");
                at.entered_at = now;
            }
            observer.on_enter(now, LinkIndex(index), packet);
            at.meter
                .count_passage(inside, window, lane, &packet.segment, now, passage);
            wire.push_back(Waiting {
                at: passage.arrival,
                packet: id,
                place,
            });
            taken += 1;
        }
        if first && let Some(head) = wire.front() {
            if self.hops[place as usize] == END_AT_ONCE {
                self.early.push(index);
            } else {
                self.queue.set_arrival(index, head.at);
            }
        }
        taken
    }

    /// Sends what a connection allows. Segments are written where they stay until they are delivered.
    #[inline(always)]
    pub(crate) fn send_all<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        now: Instant,
        path: PathStart,
        flow: FlowId,
        connection: &mut Connection,
    ) -> u32 {
        let mut sent = 0;
        loop {
            let (packet, free) = packets.reserve();
            if connection.poll_segment(now, &mut packet.segment).is_none() {
                return sent;
            }
            sent += 1;
            let id = std::mem::replace(free, packet.buf.0);
            packet.enqueued_at = now;
            packet.flow = flow;
            observer.on_send(now, flow, &packet.segment);
            let first = self.hops[path.0 as usize];
            if self.enter(observer, first, path.0 + 1, now, id, packet) {
                packets.free(id);
            }
        }
    }

    /// A packet arrives at the sending end of a link, and passes on through lanes as far as its fate is known. `place` is
    /// that of the next hop. Whether the packet is no longer where it is.
    #[inline(always)]
    fn enter<O: Observer>(
        &mut self,
        observer: &mut O,
        index: u32,
        place: u32,
        now: Instant,
        id: u32,
        packet: &mut Packet,
    ) -> bool {
        let bounds = self.bounds();
        self.enter_behind::<_, true>(observer, bounds, index, place, now, id, packet, NOBODY)
    }

    /// What stays as it is while packets pass.
    #[inline(always)]
    fn bounds(&self) -> Bounds {
        Bounds {
            inside: self.inside,
            window: self.window,
            horizon: self.horizon,
        }
    }

    /// The same where packets of several sizes wait, and where it goes on from there.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "a part of `enter`")]
    fn enter_any<O: Observer>(
        &mut self,
        observer: &mut O,
        index: u32,
        place: u32,
        now: Instant,
        id: u32,
        packet: &mut Packet,
        before: u32,
    ) -> bool {
        let bounds = self.bounds();
        self.enter_behind::<_, false>(observer, bounds, index, place, now, id, packet, before)
    }

    /// The same at the end of the lane `before`; with `USUAL`, the code here is for the usual case alone.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "what is carried from lane to lane")]
    fn enter_behind<O: Observer, const USUAL: bool>(
        &mut self,
        observer: &mut O,
        bounds: Bounds,
        mut index: u32,
        mut place: u32,
        mut now: Instant,
        id: u32,
        packet: &mut Packet,
        mut before: u32,
    ) -> bool {
        let size = PacketSize::of(&packet.segment);
        loop {
            let at = &mut self.links[index as usize];
            let Body::Lane { lane, wire } = &mut at.body else {
                observer.on_enter(now, LinkIndex(index), packet);
                packet.buf = BufId(place);
                self.enter_link(observer, index, now, packet);
                return true;
            };
            if USUAL && !lane.is_usual(size) && !lane.turn_to(now, size) {
                return self.enter_any(observer, index, place, now, id, packet, before);
            }
            #[cfg(debug_assertions)]
            {
                assert!(now >= at.entered_at, "packets enter a link in order of time");
                at.entered_at = now;
            }
            observer.on_enter(now, LinkIndex(index), packet);
            let passage = if USUAL {
                lane.on_usual(now)
            } else {
                lane.on_packet(now, size)
            };
            let passage = match passage {
                Ok(passage) => passage,
                Err(refusal) => {
                    return self.drop_at_lane(observer, index, before, now, id, packet, refusal);
                }
            };
            at.meter
                .count_passage(bounds.inside, bounds.window, lane, &packet.segment, now, passage);
            let arrival = passage.arrival;
            let next = self.hops[place as usize];
            if next & AT_ONCE == 0 || next == END_AT_ONCE || arrival > bounds.horizon {
                packet.enqueued_at = now;
                let first = wire.is_empty();
                wire.push_back(Waiting {
                    at: arrival,
                    packet: id,
                    place,
                });
                if first {
                    if next == END_AT_ONCE {
                        self.early.push(index);
                    } else {
                        self.queue.set_arrival(index, arrival);
                    }
                }
                return false;
            }
            observer.on_deliver(arrival, LinkIndex(index), packet, arrival.since(now));
            place += 1;
            before = index;
            index = next & !AT_ONCE;
            now = arrival;
        }
    }

    /// A lane has no room. Ahead of time the packet counts as in the network until the moment comes, at the end of the
    /// lane `before`.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "what `enter` knows")]
    fn drop_at_lane<O: Observer>(
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
            self.notices.push(Notice::Dropped(*packet));
            return true;
        }
        if let Body::Lane { wire, .. } = &mut self.links[before as usize].body {
            if wire.is_empty() {
                self.queue.set_arrival(before, now);
            }
            wire.push_back(Waiting {
                at: now,
                packet: id,
                place: self.dropped,
            });
        }
        false
    }

    /// A packet arrives at a link that is no lane.
    #[inline(never)]
    fn enter_link<O: Observer>(&mut self, observer: &mut O, index: u32, now: Instant, packet: &Packet) {
        let Place { body, meter, .. } = &mut self.links[index as usize];
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
        };
        link.on_packet(now, *packet, &self.flows, &mut tap);
        self.after_link(index);
    }

    /// Arrivals in order of time, from the first to one that concerns an endpoint, or beyond which something that was
    /// caused by the first may happen. `most` is the largest number of them.
    #[inline(never)]
    pub(super) fn pass<O: Observer>(&mut self, packets: &mut Slab, observer: &mut O, most: u64) -> Passed {
        let mut passed = Passed {
            events: 0,
            now: Instant::ZERO,
            at_end: None,
        };
        let Some((_, first)) = self.queue.next_arrival() else {
            return passed;
        };
        let until = self.queue.arrivals_until(first.saturating_add(self.lookahead));
        let large = self.queue.is_large();
        let bounds = self.bounds();
        while let Some((index, now)) = self.queue.arrival_before(until) {
            passed.events += 1;
            passed.now = now;
            let Body::Lane { wire, .. } = &mut self.links[index as usize].body else {
                passed.at_end = self.on_link(packets, observer, index, now);
                break;
            };
            let Some((head, next)) = wire.advance() else {
                self.queue.forget_arrival(index);
                continue;
            };
            let (id, place) = (head.packet, head.place);
            let next = next.map_or(Instant::FAR_FUTURE, |next| next.at);
            self.queue.move_first_arrival(index, next);
            if large {
                std::hint::black_box(self.look_ahead(packets));
            }
            let hop = self.hops[place as usize] & !AT_ONCE;
            if hop >= DROPPED {
                passed.at_end = self.arrive_at_end(packets, observer, index, place, now, id);
                break;
            }
            let packet = packets.get_mut(id);
            observer.on_deliver(now, LinkIndex(index), packet, now.since(packet.enqueued_at));
            if self.enter_behind::<_, true>(observer, bounds, hop, place + 1, now, id, packet, NOBODY) {
                packets.free(id);
            }
            if !self.notices.is_empty() || passed.events == most {
                break;
            }
        }
        passed
    }

    /// Reads of the next arrival what comes from memory, which takes as long as many instructions: while it is on its way,
    /// this arrival is worked on. Small networks stay in the caches.
    #[inline(always)]
    fn look_ahead(&self, packets: &Slab) -> u32 {
        let Some((link, _)) = self.queue.next_arrival() else {
            return 0;
        };
        match &self.links[link as usize].body {
            Body::Lane { wire, .. } => wire
                .front()
                .map_or(0, |waiting| packets.get(waiting.packet).buf.0),
            Body::Link(_) => 0,
        }
    }

    /// The head of the wire of a link that is no lane is due. What reaches the end of its path by it.
    #[inline(never)]
    fn on_link<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        index: u32,
        now: Instant,
    ) -> Option<(u32, u32)> {
        let Place { body, meter, .. } = &mut self.links[index as usize];
        let Body::Link(link) = body else { return None };
        let mut tap = Tap {
            index,
            window: self.window,
            meter,
            observer,
            notices: &mut self.notices,
        };
        let packet = link.poll_delivery(now, &self.flows, &mut tap);
        // The event that came is over.
        self.links[index as usize].delivery_at = Instant::FAR_FUTURE;
        self.queue.set_arrival(index, Instant::FAR_FUTURE);
        self.after_link(index);
        let packet = packet?;
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

    /// A packet reaches the end of its path, or the moment has come at which it is dropped.
    #[inline(never)]
    fn arrive_at_end<O: Observer>(
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
            self.notices.push(Notice::Dropped(*packet));
            packets.free(id);
            return None;
        }
        observer.on_deliver(now, LinkIndex(index), packet, now.since(packet.enqueued_at));
        // Those behind it may have waited for no more than this one.
        if self.hops[place as usize] == END_AT_ONCE
            && let Body::Lane { wire, .. } = &self.links[index as usize].body
            && !wire.is_empty()
        {
            self.queue.set_arrival(index, Instant::FAR_FUTURE);
            self.early.push(index);
        }
        Some((index, id))
    }
}

/// No lane before.
const NOBODY: u32 = u32::MAX;
