//! Events of many hosts, gathered while the network goes on and handed out together.
//!
//! With many connections nearly everything that an event needs comes from memory, which takes as long as hundreds of instructions.
//! Where nothing that an endpoint does reaches anybody sooner than the shortest delay of a link ([`Network::gathers`]), the network may
//! go on by that much while what concerns endpoints waits: packets at the end of their path, timers, and the fate of packets
//! elsewhere. Then it is handed out in an order that no host can tell from the one order of events: where each host is on one side of
//! all of its connections, receivers come before senders. The state of the next endpoints is read together, so that the memory works
//! on many of them at a time. The code of the network and that of the endpoints, which are together larger than the
//! first cache, take turns less often, too.
//!
//! Where hosts have one connection each, packets at the end of their path are not gathered: the hosts take them ahead of time, when
//! the network has gone on.
//!
//! What is handed out may cause events (a timer, an application) before what is still to be handed out: they come first, and so does
//! what a host did not take ahead of time. Observers would see the network ahead of the endpoints, so this is done only while nobody
//! watches.
//!
//! [`Network::gathers`]: crate::network::Network::gathers

use super::{MOST_PASSED, PROGRESS_EVENTS, Part, Progress, World};
use crate::endpoint::{EXTRAORDINARY, Hosts};
use crate::event::{EventKey, EventKind};
use crate::network::{AT_ONCE, Due, LinkSlot, MOST_DUE, What};
use crate::observe::Observer;
use crate::spec::{GroupSpec, PairPolicy};
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::tcp::Connection;
use fleetfoot_core::time::Instant;

impl<O: Observer> World<'_, O> {
    /// Whether what concerns endpoints may be gathered.
    pub(super) fn may_gather(&self) -> bool {
        let hosts = &self.hosts;
        O::DEAF && hosts.network.gathers && hosts.interfaces.is_empty() && !hosts.delays
    }

    /// Whether hosts have several connections. A connection that is alone at its host takes packets ahead of time.
    fn hosts_are_shared(&self) -> bool {
        let spec = self.hosts.spec;
        let connections = |group: &GroupSpec| {
            let each = group.spread == PairPolicy::Each;
            let times = if each { group.pairs.len() } else { 1 };
            group.traffic.members(each).unwrap_or(0) as usize * times
        };
        spec.groups.iter().map(connections).sum::<usize>() > spec.nodes.len()
    }

    /// Whether each host is on one side of all of its connections.
    fn hosts_send_or_receive(&self) -> bool {
        let spec = self.hosts.spec;
        let mut sides = vec![[false; 2]; spec.nodes.len()];
        for group in &spec.groups {
            let listed = group.traffic.listed().iter();
            let listed = listed.map(|line| (line.source, line.destination));
            for (from, to) in group.pairs.iter().copied().chain(listed) {
                sides[from.0 as usize][0] = true;
                sides[to.0 as usize][1] = true;
            }
        }
        sides.iter().all(|&sides| sides != [true; 2])
    }

    /// Processes every event up to `last`.
    pub(super) fn run_gathering(&mut self, last: Instant, progress: Progress<'_>) -> Part {
        let shared = self.hosts_are_shared();
        self.hosts.network.gather_ends(shared);
        self.hosts.network.gathers_wires = true;
        let splits = shared && self.hosts_send_or_receive();
        loop {
            let before = self.events;
            if let Some(latest) = self.gather(last) {
                if !self.hosts.network.early.is_empty() {
                    self.hosts.run_ahead(&mut self.apps);
                }
                if splits {
                    self.hosts.receivers_first();
                }
                self.hand_out();
                self.hosts.now = self.hosts.now.max(latest);
            } else if let Some(key) = self.hosts.network.pop_until(last) {
                debug_assert!(key.kind() != EventKind::Arrival, "gathered");
                self.on_event(key);
                self.events += 1;
            } else {
                return Part::Done;
            }
            if !self.hosts.network.early.is_empty() {
                self.hosts.run_ahead(&mut self.apps);
            }
            self.take_notices();
            if self.events / PROGRESS_EVENTS > before / PROGRESS_EVENTS {
                self.hosts.network.tighten();
                self.hosts.pack_waiting();
                if progress(self.hosts.now, &|| self.usage()).is_break() {
                    self.interrupted = true;
                    return Part::Interrupted;
                }
            }
        }
    }

    /// Takes what comes next up to `last`, and keeps what concerns endpoints. The time of the last event, if there was any.
    fn gather(&mut self, last: Instant) -> Option<Instant> {
        let mut latest = None;
        let mut most = (PROGRESS_EVENTS - self.events % PROGRESS_EVENTS).min(MOST_PASSED);
        let hosts = &mut self.hosts;
        let lookahead = hosts.network.lookahead;
        let mut end = Instant::FAR_FUTURE;
        while most > 0 && hosts.network.due.len() < MOST_DUE {
            hosts.network.queue.limit(last);
            let at = if let Some(at) = hosts.network.next_arrival() {
                if at >= end {
                    break;
                }
                end = end.min(at.saturating_add(lookahead));
                let passed = hosts.network.pass(&mut hosts.packets, hosts.observer, most, end);
                debug_assert!(passed.at_end.is_none(), "it gathers");
                self.events += passed.events;
                most -= passed.events;
                passed.now
            } else if let Some(key) = hosts.network.queue.next_other()
                && key.kind() == EventKind::Timer
                && key.at() <= last
                && key.at() < end
            {
                end = end.min(key.at().saturating_add(lookahead));
                hosts.network.queue.pop_other();
                let what = What::Timer;
                hosts.network.due.push(Due { key, what });
                self.events += 1;
                most -= 1;
                key.at()
            } else {
                break;
            };
            latest = Some(at);
            // In the order in which they would be taken if nothing waited.
            for notice in hosts.network.notices.iter().rev() {
                hosts.network.due.push(Due {
                    key: EventKey::new(at, EventKind::Arrival, 0, 0),
                    what: What::Notice(notice.flow()),
                });
            }
            hosts.network.fates.extend(hosts.network.notices.drain(..).rev());
        }
        latest
    }

    /// Hands out what was gathered.
    fn hand_out(&mut self) {
        let mut due = std::mem::take(&mut self.hosts.network.due);
        let mut fates = std::mem::take(&mut self.hosts.network.fates);
        let mut fate = fates.iter();
        let mut looked_at = 0;
        for (place, &Due { key, what }) in due.iter().enumerate() {
            if place == looked_at {
                let next = &due[place..due.len().min(place + TOGETHER)];
                std::hint::black_box(self.hosts.look_at(next));
                looked_at += next.len();
            }
            self.go_on_to(key);
            self.hosts.now = key.at();
            match what {
                What::Packet(packet) => self.on_delivery(key.place(), key.at(), packet),
                What::OnWire => self.take_off_wire(key),
                What::Timer => self.hosts.on_timer(&mut self.apps, key),
                What::Notice(_) => self.hosts.network.notices.extend(fate.next()),
            }
            self.take_notices();
        }
        due.clear();
        fates.clear();
        self.hosts.network.due = due;
        self.hosts.network.fates = fates;
    }

    /// Does what comes before `key`: what was caused meanwhile, and what hosts did not take ahead of time.
    #[inline]
    fn go_on_to(&mut self, key: EventKey) {
        loop {
            let queue = &mut self.hosts.network.queue;
            let (first, at) = queue.first_arrival();
            if at <= key.at() {
                let arrival = EventKey::new(at, EventKind::Arrival, queue.arrival(first).0, 0);
                if arrival < key && queue.next_other().is_none_or(|other| arrival < other) {
                    queue.set_arrival(arrival.place(), Instant::FAR_FUTURE);
                    self.hosts.now = at;
                    self.take_off_wire(arrival);
                    self.events += 1;
                    self.take_notices();
                    continue;
                }
            }
            let Some(caused) = queue.pop_other_before(key) else {
                return;
            };
            self.on_event(caused);
            self.events += 1;
            self.take_notices();
        }
    }

    /// The first packet on a wire reaches the host that did not take it ahead of time.
    fn take_off_wire(&mut self, key: EventKey) {
        let link = key.place();
        let Some(waiting) = self.hosts.network.links[link as usize].wire.pop_front() else {
            return;
        };
        debug_assert_eq!(waiting.at, key.at(), "nobody took it");
        self.on_delivery(link, key.at(), waiting.packet);
        if let Some(next) = self.hosts.network.links[link as usize].wire.front() {
            self.hosts.network.early.push(link, next.size);
            self.hosts.run_ahead(&mut self.apps);
        }
    }

    #[inline]
    fn take_notices(&mut self) {
        if !self.hosts.network.notices.is_empty() {
            self.hosts.take_notices(&mut self.apps);
        }
    }
}

/// Where something that is due stands among what is due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Before what concerns senders.
    Receiver,
    /// After what concerns receivers.
    Sender,
    /// Where it is.
    Fixed,
}

impl<O: Observer> Hosts<'_, O> {
    /// Puts what concerns receivers of endless data first, as far as nothing else lies between.
    ///
    /// What one host does in that time concerns no other, so only what concerns one host keeps its order, and here each either sends or
    /// receives. Like that the code of one of them at a time stays in the first cache.
    fn receivers_first(&mut self) {
        let mut due = std::mem::take(&mut self.network.due);
        let mut later = std::mem::take(&mut self.network.later);
        let mut end = 0;
        for place in 0..due.len() {
            let next = due[place];
            let turn = self.turn_of(next);
            if turn == Turn::Sender {
                later.push(next);
                continue;
            }
            if turn == Turn::Fixed {
                due[end..end + later.len()].copy_from_slice(&later);
                end += later.len();
                later.clear();
            }
            due[end] = next;
            end += 1;
        }
        due[end..].copy_from_slice(&later);
        later.clear();
        self.network.due = due;
        self.network.later = later;
    }

    /// Two ends concern each other at once only when one of them opens or closes the connection.
    #[inline(always)]
    fn turn_of(&self, due: Due) -> Turn {
        let number = match due.what {
            What::Packet(packet) => {
                let packet = self.packets.get(packet);
                if packet.segment.flags.intersects(EXTRAORDINARY) {
                    return Turn::Fixed;
                }
                packet.flow.0 ^ 1
            }
            What::Timer => due.key.endpoint().1,
            What::OnWire => return Turn::Fixed,
            What::Notice(_) => return Turn::Sender,
        };
        let slot = &self.slots[(number >> 1) as usize];
        let side = (number & 1) as usize;
        match slot.endless && slot.ends[side].connection.is_some() {
            true if side == 1 => Turn::Receiver,
            true => Turn::Sender,
            false => Turn::Fixed,
        }
    }

    /// Reads what the endpoints of at most [`TOGETHER`] events need, one kind of thing after the other: where one leads to the next,
    /// the memory has several to work on.
    #[inline(never)]
    fn look_at(&self, due: &[Due]) -> u64 {
        let mut flows = [FlowId(0); TOGETHER];
        let mut read = 0;
        for (flow, due) in flows.iter_mut().zip(due) {
            *flow = match due.what {
                What::Packet(packet) => {
                    let packet = self.packets.get(packet);
                    read ^= u64::from(packet.segment.ack.0) ^ u64::from(packet.segment.tsecr);
                    FlowId(packet.flow.0 ^ 1)
                }
                What::OnWire => {
                    let link = &self.network.links[due.key.place() as usize];
                    let first = link.wire.front().map(|first| self.packets.get(first.packet));
                    FlowId(first.map_or(u32::MAX, |packet| packet.flow.0 ^ 1))
                }
                What::Timer => FlowId(due.key.endpoint().1),
                What::Notice(flow) => flow,
            };
        }
        read ^ self.look_at_ends(&flows[..due.len()])
    }

    /// Reads what these endpoints need.
    pub(crate) fn look_at_ends(&self, flows: &[FlowId]) -> u64 {
        let mut read = 0;
        let ends = || {
            flows.iter().filter_map(|flow| {
                let slot = self.slots.get((flow.0 >> 1) as usize)?;
                Some((slot, &slot.ends[(flow.0 & 1) as usize]))
            })
        };
        for (slot, end) in ends() {
            read ^= u64::from(slot.in_network) ^ end.received ^ u64::from(end.path.0);
            read ^= u64::from(end.connection.is_some());
        }
        for (_, end) in ends() {
            read ^= end.connection.as_deref().map_or(0, Connection::look_at);
            let first = self.network.hops.get(end.path.0 as usize);
            let first = first.and_then(|&hop| self.network.links.get((hop & !AT_ONCE) as usize));
            read ^= first.map_or(0, LinkSlot::look_at);
        }
        for connection in ends().filter_map(|(_, end)| end.connection.as_deref()) {
            read ^= connection.look_at_sender();
        }
        for connection in ends().filter_map(|(_, end)| end.connection.as_deref()) {
            read ^= connection.look_at_records();
        }
        read
    }
}

/// Events whose endpoints are looked at together.
const TOGETHER: usize = 16;
