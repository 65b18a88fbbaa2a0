//! Packets come off the wires in order of time: one by one, or many together where FIFO links meet.
//!
//! What FIFO links bring to a junction goes over its target in order, and on from there; nothing else happens there. So a junction
//! may run ahead of the rest of the network until something could come from there that it does not know of: many packets are
//! merged, go through the target, and go on, each step in a loop of its own. What is dropped at the target is somebody's
//! business at once, so it waits for its turn.

use super::passing::{Bounds, NOBODY, Passed};
use super::{AT_ONCE, Body, DROPPED, END_AT_ONCE, Junction, LinkSlot, Network, PacketOnWire, Slab};
use crate::event::Feeders;
use crate::observe::Observer;
use crate::spec::LinkIndex;
use fleetfoot_core::time::Instant;

impl Network {
    /// Arrivals before `end` in order of time, from the first to one that concerns an endpoint, or beyond which something that was
    /// caused by the first may happen. `most` is the largest number of them.
    #[inline(never)]
    pub(crate) fn pass<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        most: u64,
        end: Instant,
    ) -> Passed {
        let mut passed = Passed::default();
        if self.calendar.is_some() {
            return self.pass_crowd(packets, observer, most, end);
        }
        let Some((_, first)) = self.queue.next_arrival() else {
            return passed;
        };
        let until = self
            .queue
            .arrivals_until(first.saturating_add(self.lookahead).min(end));
        let bounds = self.bounds();
        while let Some((index, now)) = self.queue.arrival_before(until) {
            if let Some(junction) = self.queue.group(index) {
                if self.pass_junction(packets, observer, junction, now, until, most, &mut passed) {
                    break;
                }
                continue;
            }
            passed.events += 1;
            passed.now = now;
            let LinkSlot { body, wire, .. } = &mut self.links[index as usize];
            if matches!(body, Body::Link(_)) {
                passed.at_end = self.on_link(packets, observer, index, now);
                break;
            }
            let Some((head, next)) = wire.advance() else {
                self.queue.forget_arrival(index);
                continue;
            };
            let (id, place, size) = (head.packet, head.place, head.size);
            let next = next.map_or(Instant::FAR_FUTURE, |next| next.at);
            self.queue.move_first_arrival(index, next);
            let hop = self.hops[place as usize] & !AT_ONCE;
            if hop >= DROPPED {
                passed.at_end = self.arrive_at_end(packets, observer, index, place, now, id);
                break;
            }
            let packet = packets.get_mut(id);
            observer.on_deliver(now, LinkIndex(index), packet, now.since(packet.enqueued_at));
            if self.enter_behind::<_, true>(observer, bounds, hop, place + 1, now, id, size, packet, NOBODY) {
                packets.free(id);
            }
            if !self.notices.is_empty() || passed.events == most {
                break;
            }
        }
        passed
    }

    /// Arrivals at a junction, of which the first is the next event, at `first`: as many as nothing that is still to happen
    /// elsewhere can come before. Whether to stop.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "a part of `pass`")]
    fn pass_junction<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        group: u32,
        first: Instant,
        until: u64,
        most: u64,
        passed: &mut Passed,
    ) -> bool {
        let Junction { target, near, around } = self.junctions[group as usize];
        passed.now = first;
        let Some(mut feeders) = self.queue.take_out(group) else {
            return true;
        };
        let (_, other_at) = self.queue.first_arrival();
        // What comes from elsewhere comes over a feeder, and what goes on from here may come back no sooner than it has gone
        // over the target and a feeder.
        let limit = other_at.saturating_add(near).min(first.saturating_add(around));
        let until = until.min(self.queue.before(limit)).max(feeders.first() + 1);
        let bounds = self.bounds();
        let mut batch = std::mem::take(&mut self.batch);
        let mut stops = false;
        while feeders.first() < until && !stops {
            let (_, now) = feeders.read(feeders.first());
            let room = match &mut self.links[target as usize].body {
                Body::Fifo(fifo) => fifo.sure_room(now),
                Body::Link(_) => 0,
            };
            // More than are sure of room: while they come, others leave.
            let together = if room == 0 { 1 } else { room.max(HOPEFUL) };
            let together = together.min(most - passed.events).min(batch.len() as u64);
            let next = feeders.first();
            let merged = self.merge(&mut feeders, until, &mut batch[..together as usize]);
            let merged = &mut batch[..merged];
            let through = self.go_through::<_, true>(packets, observer, target, bounds, merged);
            passed.events += through as u64;
            if through > 0 {
                // One that found no room will be refused again when it is its turn.
                self.send_back(&mut feeders, &merged[through..]);
                self.go_on(packets, observer, target, bounds, &merged[..through]);
                stops = passed.events == most || !self.notices.is_empty();
                continue;
            }
            if next > self.queue.first_arrival().0 {
                self.send_back(&mut feeders, merged);
                break;
            }
            self.send_back(&mut feeders, &merged[1..]);
            let PacketOnWire {
                at,
                packet: id,
                place,
                size,
            } = merged[0];
            let packet = packets.get_mut(id);
            let before = LinkIndex(self.hops[place as usize - 1] & !AT_ONCE);
            observer.on_deliver(at, before, packet, at.since(packet.enqueued_at));
            let place = place + 1;
            if self.enter_behind::<_, false>(observer, bounds, target, place, at, id, size, packet, NOBODY) {
                packets.free(id);
            }
            passed.events += 1;
            passed.now = at;
            stops = true;
        }
        self.batch = batch;
        self.queue.put_back(group, feeders);
        stops
    }

    /// Takes what comes before `until` off the wires of feeders, in order: how many.
    #[inline(never)]
    fn merge(&mut self, feeders: &mut Feeders, until: u64, batch: &mut [PacketOnWire]) -> usize {
        let links = &mut self.links;
        feeders.merge(until, batch, |index, slot| {
            let (head, next) = links[index as usize].wire.advance()?;
            *slot = *head;
            Some(next.map(|next| next.at))
        })
    }

    /// Puts back what was merged last.
    #[inline(never)]
    fn send_back(&mut self, feeders: &mut Feeders, batch: &[PacketOnWire]) {
        for waiting in batch.iter().rev() {
            let index = self.hops[waiting.place as usize - 1] & !AT_ONCE;
            self.links[index as usize].wire.take_back();
            feeders.set_first(index, waiting.at);
        }
    }

    /// Packets have gone through a FIFO link, and go on.
    #[inline(never)]
    fn go_on<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        index: u32,
        bounds: Bounds,
        batch: &[PacketOnWire],
    ) {
        let mtu = match &self.links[index as usize].body {
            Body::Fifo(fifo) => fifo.mtu(),
            Body::Link(_) => u32::MAX,
        };
        let mut batch = batch;
        while !batch.is_empty() {
            if O::DEAF {
                let entering = self.let_enter(bounds, mtu, batch);
                batch = &batch[entering..];
            }
            let Some(&waiting) = batch.first() else { break };
            batch = &batch[1..];
            let PacketOnWire {
                at,
                packet: id,
                place,
                size,
            } = waiting;
            let place = place + 1;
            let next = self.hops[place as usize];
            if next & AT_ONCE == 0 || next == END_AT_ONCE || at > bounds.horizon {
                let wire = &mut self.links[index as usize].wire;
                let first = wire.is_empty();
                wire.push_back(PacketOnWire { place, ..waiting });
                if first {
                    if next == END_AT_ONCE {
                        self.early.push(index, size);
                    } else {
                        self.queue.set_arrival(index, at);
                    }
                }
                continue;
            }
            let next = next & !AT_ONCE;
            let place = place + 1;
            let packet = packets.get_mut(id);
            observer.on_deliver(at, LinkIndex(index), packet, at.since(packet.enqueued_at));
            if self.enter_behind::<_, true>(observer, bounds, next, place, at, id, size, packet, index) {
                packets.free(id);
            }
        }
        while let Some(next) = self.entered.pop() {
            self.go_through_entered(next, bounds);
        }
    }

    /// Packets from the end of a FIFO link of this `mtu` come to FIFO links that have room for all of them, and stand on their wires until they
    /// go through: how many, from the first on.
    #[inline(always)]
    fn let_enter(&mut self, bounds: Bounds, mtu: u32, batch: &[PacketOnWire]) -> usize {
        let Network {
            links, hops, entered, ..
        } = self;
        let (links, hops) = (&mut links[..], &hops[..]);
        for (count, &waiting) in batch.iter().enumerate() {
            let place = waiting.place + 1;
            let next = hops[place as usize];
            if next & AT_ONCE == 0 || next == END_AT_ONCE || waiting.at > bounds.horizon {
                return count;
            }
            let next = next & !AT_ONCE;
            let there = &mut links[next as usize];
            if there.entering == 0 {
                if !there.takes_all(waiting.at, mtu, batch.len()) {
                    return count;
                }
                entered.push(next);
            }
            there.entering += 1;
            there.wire.push_back(PacketOnWire {
                place: place + 1,
                ..waiting
            });
        }
        batch.len()
    }
}

/// At least this many packets are sent together to a FIFO link that is sure to have room for one.
const HOPEFUL: u64 = 8;
