//! The admission of hardened super-packets, apart from the queue it is for: what is reserved, for whom, on whose credit.

use super::super::hash::HashKey;
use super::super::{Backlog, Limit, LinkContext, QueueContext, QueueEvent, QueueEventKind};
use super::credit::{Denied, GAIN, PACKET, Ports, Sources};
use super::generations::{Clock, Entry, Held, Slot, Table};
use crate::flow::{FlowKey, HostId};
use crate::packet::{Flags, Packet};
use crate::parameter::Values;
use crate::superpacket::{Layout, Role};
use crate::time::{Duration, Instant};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// What is reserved and who may reserve.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    layout: Layout,
    key: HashKey,
    /// What may wait (size): packets, or bytes if the limit is in bytes.
    size: u64,
    in_bytes: bool,
    /// What a reserved packet takes of `size`: 1, or the MTU in bytes.
    unit: u64,
    /// M: longest super-packet.
    max_length: u8,
    /// R_cap.
    reserve: u16,
    /// P_new.
    newcomers: u16,
    /// theta in eighths.
    share: u64,
    /// Bound of what regular packets leave free, in the unit of the limit.
    headroom: u64,
    /// Whether what is denied is dropped as a whole.
    drops_denied: bool,
    pub(super) clock: Clock,
    pub(super) table: Table,
    /// R.
    pub(super) reserved: Held,
    /// Rnew.
    pub(super) pooled: Held,
    /// Super-packets behind `reserved`.
    unfinished: Held,
    /// R by flow (by place of a flow in the queue); one for all if the queue has no flows.
    flows: Vec<Held>,
    pub(super) sources: Sources,
    pub(super) ports: Ports,
    pub(super) denied: Denied,
    /// Epoch in which the sums were seen last.
    seen: u32,
    /// Most places of the tables that were looked at for one packet before this one.
    most_probes: u32,
}

/// What a packet is to the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// In no super-packet.
    Regular,
    /// Asks for admission of its followers.
    First { key: u64, followers: u8 },
    /// Was promised a place.
    Promised { slot: Slot, last: bool },
    /// A follower that nothing was promised; a regular packet that earns credit.
    Member,
    /// Belongs to a super-packet that was denied, if those are dropped.
    Denied,
}

/// What is to be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Queue it. Nothing else is promised.
    Regular,
    /// Queue it; others rely on it, or it relies on others.
    Promised,
    /// Drop it.
    Refused,
}

/// The room that an arrival finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// What waits (Q), in the unit of the limit.
    pub(super) queue: u64,
    /// What its flow may still have in the queue and reserved together; for queues with flows.
    pub(super) flow: u64,
    /// Place of its flow; 0 for queues without flows.
    pub(super) bucket: u32,
}

impl Ledger {
    pub(super) fn new(values: &Values, link: &LinkContext, flows: usize) -> Ledger {
        let mtu = u64::from(link.mtu.max(1));
        let (size, unit) = match values.limit("limit") {
            Limit::Packets(packets) => (u64::from(packets), 1),
            Limit::Bytes(bytes) => (bytes.0, mtu),
            Limit::Unlimited => (u64::MAX / 4, 1),
        };
        let packets = size / unit;
        let of = |name: &str, default: u64| values.integer(name).unwrap_or(default);
        let most = of("credit", 126) as u32;
        // What `check` refuses is made harmless here: shorter super-packets.
        let max_length = of("max_length", 10).min(packets / 4).min(255) as u8;
        let reserve = of("reserve", packets / 2).min(packets).min(MOST_RESERVED) as u16;
        let share = libm::round(values.number("share").unwrap_or(1.0) * 8.0) as u64;
        let newcomers = of("newcomers", u64::from(max_length).max(u64::from(reserve) / 4));
        Ledger {
            layout: Layout::from_values(values),
            key: HashKey::new(link.seed),
            size,
            in_bytes: unit > 1,
            unit,
            max_length,
            reserve,
            newcomers: newcomers.min(MOST_RESERVED) as u16,
            share,
            headroom: of("headroom", u64::from(max_length)).min(u64::from(reserve)) * unit,
            drops_denied: values.choice("denial") == "drop",
            clock: Clock::new(
                values.duration("min_epoch").unwrap_or(Duration::from_millis(1)),
                values.duration("max_epoch").unwrap_or(Duration::from_millis(200)),
            ),
            table: Table::new(reserve),
            reserved: Held::default(),
            pooled: Held::default(),
            unfinished: Held::default(),
            flows: vec![Held::default(); flows],
            sources: Sources::new(of("sources", 4096) as usize, most),
            ports: Ports::new(
                of("port_credit", 4 * u64::from(most)) as u32,
                values.duration("port_refill"),
            ),
            denied: Denied::EMPTY,
            seen: 0,
            most_probes: 0,
        }
    }

    /// Bytes of memory, with `ports` links coming in.
    pub(super) fn bytes(&self, ports: usize) -> usize {
        size_of::<Ledger>()
            + self.table.bytes()
            + self.sources.bytes()
            + self.flows.len() * size_of::<Held>()
            + ports * Ports::BYTES
    }

    /// Most places of the tables that were looked at for one packet.
    pub(super) fn most_probes(&self) -> u32 {
        let probes = self.table.probes.get() + self.sources.probes.get();
        self.most_probes.max(probes)
    }

    /// The groups of places in which super-packet `id` of a flow may stand.
    pub(super) fn places_of(&self, flow: FlowKey, id: u16) -> [u32; 2] {
        let places = self.table.candidates(self.key.super_packet(flow, id, true));
        places.map(|place| place as u32)
    }

    /// Links that packets have come by.
    pub(super) fn ports_seen(&self) -> usize {
        self.ports.seen()
    }

    /// What a packet takes of the limit.
    pub(super) fn weight(&self, packet: &Packet) -> u64 {
        if self.in_bytes {
            u64::from(packet.segment.len())
        } else {
            1
        }
    }

    /// A backlog in the unit of the limit.
    pub(super) fn occupied(&self, backlog: Backlog) -> u64 {
        if self.in_bytes {
            backlog.bytes.0
        } else {
            u64::from(backlog.packets)
        }
    }

    /// What a reserved packet takes of the limit.
    pub(super) fn reserved_packet(&self) -> u64 {
        self.unit
    }

    /// What may wait, in the unit of the limit.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// What is reserved, in the unit of the limit.
    pub(super) fn reserved(&mut self) -> u64 {
        u64::from(self.reserved.total(self.clock.epoch)) * self.unit
    }

    /// What is reserved for the flows of one place, in the unit of the limit.
    pub(super) fn reserved_for(&mut self, bucket: u32) -> u64 {
        u64::from(self.flows[bucket as usize].total(self.clock.epoch)) * self.unit
    }

    /// Brings the epochs up to `now`.
    pub(super) fn rotate(&mut self, now: Instant, packet: &Packet, context: &mut QueueContext<'_>) {
        self.most_probes = self.most_probes();
        self.table.probes.set(0);
        self.sources.probes.set(0);
        self.clock.rotate(now);
        let epoch = self.clock.epoch;
        if epoch != self.seen {
            let before = self.unfinished.total(self.seen);
            let expired = before - self.unfinished.total(epoch);
            if expired > 0 {
                context.events.push(QueueEvent {
                    kind: QueueEventKind::Expired,
                    flow: packet.flow,
                    count: u32::from(expired),
                });
            }
            self.seen = epoch;
        }
    }

    /// What an arriving packet is. Call [`Ledger::rotate`] before.
    pub(super) fn case(&mut self, packet: &Packet, context: &mut QueueContext<'_>) -> Case {
        let mark = self.layout.decode(&packet.segment);
        // docs/design/super-packets.md#defect-i: a first that is the last is a regular packet.
        if mark.role == Role::Regular || mark.role == Role::First && mark.last {
            return Case::Regular;
        }
        let key = self
            .key
            .super_packet(context.flows.key(packet.flow), mark.id, true);
        if mark.role == Role::First {
            if mark.length > self.max_length {
                context.report(QueueEventKind::TooLong, packet.flow);
                return Case::Regular;
            }
            let followers = mark.length - 1;
            return Case::First { key, followers };
        }
        if let Some(slot) = self.table.find(&self.clock, key) {
            return Case::Promised {
                slot,
                last: mark.last,
            };
        }
        if self.drops_denied && self.denied.contains(self.clock.epoch, key) {
            return Case::Denied;
        }
        context.report(QueueEventKind::Orphan, packet.flow);
        Case::Member
    }

    /// Refuses a first whatever room there is. Its followers are dropped too, or regular packets.
    pub(super) fn deny(&mut self, key: u64, packet: &Packet, bucket: u32, context: &mut QueueContext<'_>) {
        self.forget(key, packet, bucket, context);
        if self.drops_denied {
            self.denied.insert(self.clock.epoch, key);
        }
        context.report(QueueEventKind::Refused, packet.flow);
    }

    /// Decides on a packet, and does the books for the case that it is queued.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        case: Case,
        packet: &Packet,
        room: Room,
        context: &mut QueueContext<'_>,
    ) -> Admission {
        let weight = self.weight(packet);
        match case {
            Case::Denied => Admission::Refused,
            Case::Regular => self.regular(packet, weight, room),
            Case::Member => self.member(now, packet, weight, room, context),
            Case::Promised { slot, last } => self.redeem(now, slot, last, packet, weight, room, context),
            Case::First { key, followers } => self.first(now, key, followers, packet, weight, room, context),
        }
    }

    /// Rule 1: regular packets fill what is neither taken nor promised, but for the headroom. A lost SYN costs a second, a
    /// lost packet of a stream a round trip: SYNs leave none.
    fn regular(&mut self, packet: &Packet, weight: u64, room: Room) -> Admission {
        let kept = if packet.segment.flags.contains(Flags::SYN) {
            0
        } else {
            self.kept()
        };
        let taken = self.reserved().max(kept);
        if room.queue + taken + weight <= self.size && weight <= room.flow {
            Admission::Regular
        } else {
            Admission::Refused
        }
    }

    /// H, what regular packets leave free: the longest super-packet of late, at most `headroom`.
    fn kept(&self) -> u64 {
        (u64::from(self.clock.longest_redeemed()) * self.unit).min(self.headroom)
    }

    /// Rule 8: followers without a promise are regular packets that earn credit. Firsts without one earn nothing: they are
    /// what an attack is made of.
    fn member(
        &mut self,
        now: Instant,
        packet: &Packet,
        weight: u64,
        room: Room,
        context: &QueueContext<'_>,
    ) -> Admission {
        let admission = self.regular(packet, weight, room);
        if admission == Admission::Regular {
            let (host, hash) = self.source(packet, context);
            let place = self.sources.find_or_insert(host, hash);
            self.sources.earn(place, GAIN);
            self.ports.earn(now, context.ingress, GAIN);
        }
        admission
    }

    #[expect(clippy::too_many_arguments, reason = "what is known of one arrival")]
    fn first(
        &mut self,
        now: Instant,
        key: u64,
        followers: u8,
        packet: &Packet,
        weight: u64,
        room: Room,
        context: &mut QueueContext<'_>,
    ) -> Admission {
        self.forget(key, packet, room.bucket, context);
        let epoch = self.clock.epoch;
        let (host, hash) = self.source(packet, context);
        let (credit, held) = match self.sources.find(host, hash) {
            Some(place) => {
                let source = self.sources.at_mut(place);
                (u32::from(source.credit), source.held.total(epoch))
            }
            None => (0, 0),
        };
        let wanted = u16::from(followers);
        let cost = u32::from(wanted) * PACKET;
        // Rules 2 and 4: the reservation has a ceiling, and a source a share of what is left of it.
        let head = self.reserve - self.reserved.total(epoch);
        let share = wanted <= head && u64::from(held + wanted) * 8 <= self.share * u64::from(head - wanted);
        // Rule 7.
        let port = *self.ports.credit(now, context.ingress) >= cost;
        // Rule 6.
        let newcomer = credit < cost;
        let pool = !newcomer || self.pooled.total(epoch) + wanted <= self.newcomers;
        let slot = self.table.vacancy(&self.clock, key);
        let may = share && port && pool;
        let Some(slot) = slot.filter(|_| may) else {
            if may {
                context.report(QueueEventKind::Crowded, packet.flow);
            }
            context.report(QueueEventKind::Downgraded, packet.flow);
            return self.regular(packet, weight, room);
        };
        let need = weight + u64::from(wanted) * self.unit;
        // No easier than for a regular packet, or streams would gain by calling every pair of packets a super-packet.
        let fits = room.queue + self.reserved() + need.max(self.kept()) <= self.size;
        if !fits || need > room.flow {
            context.report(QueueEventKind::Refused, packet.flow);
            if self.drops_denied {
                self.denied.insert(epoch, key);
                return Admission::Refused;
            }
            return self.regular(packet, weight, room);
        }
        let place = self.sources.find_or_insert(host, hash);
        let source = self.sources.at_mut(place);
        source.held.take(epoch, wanted);
        if newcomer {
            self.pooled.take(epoch, wanted);
            context.report(QueueEventKind::Pooled, packet.flow);
        } else {
            source.credit -= cost as u16;
        }
        *self.ports.credit(now, context.ingress) -= cost;
        self.reserved.take(epoch, wanted);
        self.unfinished.take(epoch, 1);
        self.flows[room.bucket as usize].take(epoch, wanted);
        let entry = Entry {
            key,
            epoch,
            began_us: microseconds(now),
            source: place,
            owner: self.sources.at(place).owner,
            port: context.ingress,
            left: followers,
            newcomer,
        };
        *self.table.entry_mut(slot) = entry;
        Admission::Promised
    }

    /// Rule 5: a follower takes the place that was kept for it and is refunded with a gain.
    #[expect(clippy::too_many_arguments, reason = "what is known of one arrival")]
    fn redeem(
        &mut self,
        now: Instant,
        slot: Slot,
        last: bool,
        packet: &Packet,
        weight: u64,
        room: Room,
        context: &mut QueueContext<'_>,
    ) -> Admission {
        let entry = *self.table.entry(slot);
        let spread = microseconds(now).wrapping_sub(entry.began_us);
        // A clock that went backwards says nothing.
        if spread < u32::MAX / 2 {
            self.clock
                .on_redeemed(Duration::from_micros(u64::from(spread)), entry.left + 1);
        }
        // `last` frees what is left; only this packet is refunded.
        let released = if last { entry.left } else { 1 };
        self.release(slot, released, room.bucket);
        let source = self.sources.at(entry.source);
        if source.owner == entry.owner {
            let units = if entry.newcomer { GAIN } else { PACKET + GAIN };
            self.sources.earn(entry.source, units);
        }
        self.ports.earn(now, entry.port, PACKET + GAIN);
        if room.queue + weight > self.size {
            // Only a packet larger than the MTU: a place is one packet of that size.
            context.report(QueueEventKind::BrokenPromise, packet.flow);
            return Admission::Refused;
        }
        Admission::Promised
    }

    /// A first takes the place of an unfinished super-packet with its identifier, whose deposit is lost
    /// (docs/design/super-packets.md#defect-h).
    fn forget(&mut self, key: u64, packet: &Packet, bucket: u32, context: &mut QueueContext<'_>) {
        if let Some(slot) = self.table.find(&self.clock, key) {
            context.report(QueueEventKind::IdReuse, packet.flow);
            let left = self.table.entry(slot).left;
            self.release(slot, left, bucket);
        }
    }

    /// Gives back `n` reserved packets of a super-packet.
    fn release(&mut self, slot: Slot, n: u8, bucket: u32) {
        let epoch = self.clock.epoch;
        let entry = self.table.entry_mut(slot);
        entry.left -= n;
        let entry = *entry;
        let n = u16::from(n);
        self.reserved.give_back(epoch, entry.epoch, n);
        self.flows[bucket as usize].give_back(epoch, entry.epoch, n);
        if entry.newcomer {
            self.pooled.give_back(epoch, entry.epoch, n);
        }
        let source = self.sources.at_mut(entry.source);
        if source.owner == entry.owner {
            source.held.give_back(epoch, entry.epoch, n);
        }
        if entry.left == 0 {
            self.unfinished.give_back(epoch, entry.epoch, 1);
        }
    }

    /// The name of a super-packet in the table.
    #[cfg(test)]
    pub(super) fn fingerprint(&self, key: FlowKey, id: u16) -> u64 {
        self.key.super_packet(key, id, true)
    }

    /// The hash of a source in its table.
    #[cfg(test)]
    pub(super) fn host_hash(&self, key: FlowKey) -> u64 {
        self.key.host(key)
    }

    fn source(&self, packet: &Packet, context: &QueueContext<'_>) -> (HostId, u64) {
        let key = context.flows.key(packet.flow);
        (key.source, self.key.host(key))
    }
}

/// Whether the parameters that [`Ledger::new`] reads make sense together.
pub(super) fn check(values: &Values) -> Result<(), String> {
    let max_length = values.integer("max_length").unwrap_or(10);
    let layout = Layout::from_values(values);
    if max_length > u64::from(layout.max_length()) {
        return Err(format!(
            "`max_length` is {max_length}, but layout {} cannot say more than {}",
            layout.name(),
            layout.max_length()
        ));
    }
    let Limit::Packets(size) = values.limit("limit") else {
        return Ok(());
    };
    // Rule 8: what cannot be reached by a single source must not be promised.
    if u64::from(size) < 4 * max_length {
        return Err(format!(
            "`limit` must be at least four times `max_length`: {} packets for super-packets of {max_length}",
            4 * max_length
        ));
    }
    let reserve = values.integer("reserve").unwrap_or(u64::from(size / 2));
    let share = values.number("share").unwrap_or(1.0);
    let reach = libm::floor(reserve as f64 * share / (1.0 + share)) as u64 + 1;
    if reserve > u64::from(size) {
        return Err(format!("`reserve` must be at most `limit`, {size} packets"));
    }
    if reach < max_length {
        return Err(format!(
            "with a reserve of {reserve} packets a source reaches super-packets of {reach}: less than `max_length`"
        ));
    }
    Ok(())
}

fn microseconds(now: Instant) -> u32 {
    (now.as_nanos() / 1000) as u32
}

/// Bound of what can be reserved at a time: sums have sixteen bits.
const MOST_RESERVED: u64 = 8192;
