//! Networks of many links: what is on its way stands in one [`Calendar`], not on the wires.
//!
//! With thousands of links each wire, and its place among the others, comes from memory for every packet. Nothing but the order of arrivals
//! needs the wires, and that order is one. Only where a host may take packets ahead of time do they stand on the wire that leads to it.

use super::passing::{NOBODY, Passed};
use super::{
    AT_ONCE, Body, DROPPED, Due, END_AT_ONCE, LinkSlot, MOST_DUE, Network, Notice, PacketOnWire, Slab, What,
};
use crate::event::{Dated, EventKey, EventKind, EventQueue};
use crate::observe::Observer;
use crate::spec::LinkIndex;
use fleetfoot_core::link::PacketSize;
use fleetfoot_core::time::Instant;

impl Network {
    /// Whether hosts take nothing ahead of time from now on, because what comes to them is [gathered](Network::due).
    pub(crate) fn gather_ends(&mut self, gathers: bool) {
        if self.gathers_ends == gathers {
            return;
        }
        self.gathers_ends = gathers;
        let Some(calendar) = &mut self.calendar else {
            return;
        };
        let mut all = Vec::new();
        while let Some(waiting) = calendar.take_before(u64::MAX) {
            all.push(waiting);
        }
        for index in 0..self.links.len() as u32 {
            let wire = &mut self.links[index as usize].wire;
            while let Some(waiting) = wire.pop_front() {
                all.extend(InFlight::new(&self.queue, index, waiting));
            }
            self.queue.set_arrival(index, Instant::FAR_FUTURE);
        }
        self.early.clear();
        for waiting in all {
            let (index, at) = self.queue.arrival(waiting.number);
            let next = self.hops[waiting.place as usize];
            self.stand(index, next, waiting.on_wire(at));
        }
        // Whoever may take packets early did so before.
        while let Some(index) = self.early.pop() {
            if let Some(first) = self.links[index as usize].wire.front() {
                self.queue.set_arrival(index, first.at);
            }
        }
    }

    /// A packet that is on its way to the end of a FIFO link waits for its turn, or for its host.
    /// `next` is the hop behind.
    #[inline(always)]
    pub(super) fn stand(&mut self, link: u32, next: u32, waiting: PacketOnWire) {
        if let Some(calendar) = &mut self.calendar
            && (next != END_AT_ONCE || self.gathers_ends)
        {
            if let Some(waiting) = InFlight::new(&self.queue, link, waiting) {
                calendar.push(waiting);
            }
            return;
        }
        let wire = &mut self.links[link as usize].wire;
        let first = wire.is_empty();
        wire.push_back(waiting);
        if first {
            if next == END_AT_ONCE {
                self.early.push(link, waiting.size);
            } else {
                self.queue.set_arrival(link, waiting.at);
            }
        }
    }

    /// The time of the next event if it is an arrival, not later than the end that was set last.
    #[inline(always)]
    pub(crate) fn next_arrival(&mut self) -> Option<Instant> {
        if let Some(calendar) = &mut self.calendar {
            let first = calendar.first();
            if first < self.queue.arrivals_are_next() && first < self.queue.first_arrival().0 {
                return Some(self.queue.arrival(first).1);
            }
        }
        self.queue.next_arrival().map(|(_, at)| at)
    }

    /// The next event if it is not later than `end`. An arrival stays until it is taken by [`Network::pass`]; all others are taken.
    pub(crate) fn pop_until(&mut self, end: Instant) -> Option<EventKey> {
        self.queue.limit(end);
        match self.next_arrival() {
            Some(at) => Some(EventKey::new(at, EventKind::Arrival, 0, 0)),
            None => self.queue.pop_until(end),
        }
    }

    /// As [`Network::pass`], where there are many links. While ends are gathered, what comes to them is added to `due`.
    #[inline(never)]
    pub(super) fn pass_crowd<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        most: u64,
        end: Instant,
    ) -> Passed {
        let mut passed = Passed::default();
        let Some(first) = self.next_arrival() else {
            return passed;
        };
        let until = self
            .queue
            .arrivals_until(first.saturating_add(self.lookahead).min(end));
        let bounds = self.bounds();
        loop {
            // What stands on wires is rare.
            let other = self.queue.first_arrival().0;
            let next = self
                .calendar
                .as_mut()
                .and_then(|calendar| calendar.take_before(until.min(other)));
            let Some(waiting) = next else {
                if other < until {
                    self.take_off_wire(packets, observer, other, &mut passed);
                }
                return passed;
            };
            if self.looked_at == 0 {
                std::hint::black_box(self.look_at_next());
            } else {
                self.looked_at -= 1;
            }
            let (index, now) = self.queue.arrival(waiting.number);
            let (id, place) = (waiting.packet, waiting.place);
            passed.events += 1;
            passed.now = now;
            let hop = self.hops[place as usize] & !AT_ONCE;
            if hop < DROPPED {
                let packet = packets.get_mut(id);
                observer.on_deliver(now, LinkIndex(index), packet, now.since(packet.enqueued_at));
                let size = waiting.size;
                if self.enter_behind::<_, true>(
                    observer,
                    bounds,
                    hop,
                    place + 1,
                    now,
                    id,
                    size,
                    packet,
                    NOBODY,
                ) {
                    packets.free(id);
                }
            } else if place == self.dropped {
                self.notices.push(Notice::Dropped(*packets.get(id), now));
                packets.free(id);
            } else if self.gathers_ends {
                self.due.push(Due {
                    key: EventKey::new(now, EventKind::Arrival, index, 0),
                    what: What::Packet(id),
                });
            } else {
                let packet = packets.get(id);
                observer.on_deliver(now, LinkIndex(index), packet, now.since(packet.enqueued_at));
                passed.at_end = Some((index, id));
                return passed;
            }
            if !self.notices.is_empty() || passed.events >= most || self.due.len() >= MOST_DUE {
                return passed;
            }
        }
    }

    /// The first arrival that is not in the calendar: at the end of a link that is no FIFO link, or of one whose host may take it.
    #[inline(never)]
    fn take_off_wire<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        number: u64,
        passed: &mut Passed,
    ) {
        let (index, now) = self.queue.arrival(number);
        passed.events += 1;
        passed.now = now;
        if self.gathers_wires {
            self.queue.set_arrival(index, Instant::FAR_FUTURE);
            let key = EventKey::new(now, EventKind::Arrival, index, 0);
            let what = What::OnWire;
            self.due.push(Due { key, what });
            return;
        }
        let LinkSlot { body, wire, .. } = &mut self.links[index as usize];
        if matches!(body, Body::Link(_)) {
            passed.at_end = self.on_link(packets, observer, index, now);
            return;
        }
        let Some((&PacketOnWire { packet, place, .. }, next)) = wire.advance() else {
            self.queue.forget_arrival(index);
            return;
        };
        let next = next.map_or(Instant::FAR_FUTURE, |next| next.at);
        self.queue.move_first_arrival(index, next);
        passed.at_end = self.arrive_at_end(packets, observer, index, place, now, packet);
    }

    /// Reads what those need that come next, so that the memory works on several at a time.
    #[inline(never)]
    fn look_at_next(&mut self) -> u64 {
        let mut read = 0;
        let Some(calendar) = &self.calendar else { return 0 };
        let next = calendar.soon();
        let next = &next[..next.len().min(TOGETHER)];
        self.looked_at = next.len();
        for waiting in next {
            // Over the next link it mostly goes on at once.
            for place in waiting.place..waiting.place + 2 {
                let hop = self
                    .hops
                    .get(place as usize)
                    .map_or(DROPPED, |hop| hop & !AT_ONCE);
                read ^= self.links.get(hop as usize).map_or(0, LinkSlot::look_at);
            }
        }
        read
    }

    /// The run is over: gives back what events and packets on their way took.
    pub(crate) fn forget_events(&mut self) {
        self.calendar = None;
        self.queue = EventQueue::new(self.links.len());
    }

    /// By link, packets that are on their way over it.
    pub(crate) fn in_flight(&self) -> Vec<u64> {
        let mut counts: Vec<u64> = self.links.iter().map(|place| place.wire.len() as u64).collect();
        for waiting in self.calendar.iter().flat_map(|calendar| calendar.iter()) {
            counts[self.queue.arrival(waiting.number).0 as usize] += 1;
        }
        counts
    }
}

/// A packet on its way to the end of a FIFO link, in the order of arrivals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// When it reaches which end: see [`EventQueue::arrival`].
    pub(crate) number: u64,
    pub(crate) size: PacketSize,
    pub(crate) packet: u32,
    /// Where it goes from there: a place in `hops`.
    pub(crate) place: u32,
}

impl Dated for InFlight {
    #[inline(always)]
    fn key(&self) -> u64 {
        self.number
    }
}

impl InFlight {
    /// What is on its way over a link; `None`: it never comes.
    #[inline(always)]
    fn new(queue: &EventQueue, link: u32, waiting: PacketOnWire) -> Option<InFlight> {
        let PacketOnWire {
            at,
            packet,
            place,
            size,
        } = waiting;
        let number = queue.number(link, at)?;
        Some(InFlight {
            number,
            size,
            packet,
            place,
        })
    }

    fn on_wire(self, at: Instant) -> PacketOnWire {
        PacketOnWire {
            at,
            packet: self.packet,
            place: self.place,
            size: self.size,
        }
    }
}

/// So many are looked at together.
const TOGETHER: usize = 16;
