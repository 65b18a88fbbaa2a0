//! Trains of raw packets from the senders' side, as the simulator's hosts send them: headers that say what an attacker likes.
//!
//! They go to addresses that nobody has, so that nobody answers: one for each group and host. Those of a group with a victim have the
//! addresses of a connection of that group which is open. The `injector` sends them and counts what arrives.
//!
//! **Deviations.** A host's own address is the source where the simulator has it too; addresses that nobody has are of 10.0.0.0/8.

use super::connection::Socket;
use super::injector::{Arrived, unanswered};
use super::play::Play;
use crate::Error;
use crate::forged::Forger;
use crate::frames::HostNumbers;
use fleetfoot_core::flow::{FlowKey, HostId};
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::rng::{Rng, Sampler};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::spec::{Raw, RawMark, RawPorts, RawSource};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::PoisonError;

/// What all processes of a group draw from.
pub(super) struct Draws {
    pub(super) gap: Sampler,
    pub(super) marks: Rng,
    /// Trains that have begun.
    pub(super) conversations: u32,
}

/// What an attacker knows of the table in which his trains collide.
pub(super) struct Known {
    queue: AnyQueue,
    hosts: HostNumbers,
    /// Source ports and identifiers that were found, and how many trains have had one.
    found: Vec<(u16, u16)>,
    used: usize,
}

impl Known {
    pub(super) fn new(queue: AnyQueue, hosts: HostNumbers) -> Known {
        Known {
            queue,
            hosts,
            found: Vec::new(),
            used: 0,
        }
    }

    /// A source port and an identifier of a train between these addresses: some are drawn, and are used again in turn, so that the loop,
    /// which serves the sockets of everybody, is not kept by drawing.
    fn collide(&mut self, raw: &Raw, ends: [IpAddr; 2], port: u16, random: &mut Rng) -> (u16, u16) {
        let [source, destination] = ends.map(|end| self.number(end));
        let key = FlowKey {
            source,
            destination,
            source_port: 0,
            destination_port: port,
            protocol: UDP,
        };
        if source == HostId(0) || destination == HostId(0) {
            return raw.collide(&self.queue, key, random);
        }
        if self.found.len() < FOUND {
            self.found.push(raw.collide(&self.queue, key, random));
        }
        self.used += 1;
        self.found[(self.used - 1) % self.found.len()]
    }

    /// The number of a host; 0 of one of which nothing has come yet.
    fn number(&self, address: IpAddr) -> HostId {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get(&address).copied().unwrap_or(HostId(0))
    }
}

/// A process of trains.
pub(super) struct Trains {
    raw: Raw,
    draws: Rc<RefCell<Draws>>,
    /// When the next train begins.
    next: Instant,
    begun: u64,
    /// Trains that are not over, in the order of their next packets.
    open: VecDeque<Train>,
    /// Record of what was sent and what arrived.
    record: Option<usize>,
    /// The table in which trains collide, if they do.
    known: Option<Known>,
}

#[derive(Clone, Copy)]
struct Train {
    at: Instant,
    source: SocketAddr,
    destination: SocketAddr,
    sent: u32,
    id: u16,
    /// Its addresses are a victim's.
    forger: Option<Forger>,
}

impl Trains {
    /// The first train begins at `next`.
    pub(super) fn new(raw: &Raw, next: Instant, draws: Rc<RefCell<Draws>>, known: Option<Known>) -> Trains {
        Trains {
            raw: raw.clone(),
            draws,
            next,
            begun: 0,
            open: VecDeque::new(),
            record: None,
            known,
        }
    }

    /// When something is due again.
    fn due(&self) -> Option<Instant> {
        let more = self.raw.count.is_none_or(|most| self.begun < most);
        let packet = self.open.front().map(|train| train.at);
        packet.into_iter().chain(more.then_some(self.next)).min()
    }
}

impl Play<'_> {
    /// Packets of trains are due, or a train begins.
    pub(super) fn send_trains(&mut self, group: u32, number: u32, now: Instant) -> Result<(), Error> {
        let own = self.groups[group as usize].actors[number as usize].pair;
        let record = match self.trains(group, number).and_then(|trains| trains.record) {
            Some(record) => record,
            None => self.new_record(group, own, now, 0),
        };
        let stop = self.groups[group as usize].stop;
        loop {
            let Some(trains) = self.trains(group, number) else {
                return Ok(());
            };
            trains.record = Some(record);
            let Some(due) = trains.due() else {
                return Ok(());
            };
            if due > now || due >= stop {
                self.act_at(group, number, due);
                return Ok(());
            }
            let begins = trains.open.front().is_none_or(|train| train.at > now);
            let train = match begins {
                true => self.begin_train(group, number, own),
                false => trains.open.pop_front(),
            };
            if let Some(train) = train {
                self.continue_train(group, number, record, train)?;
            }
        }
    }

    fn trains(&mut self, group: u32, number: u32) -> Option<&mut Trains> {
        self.groups[group as usize].actors[number as usize].trains()
    }

    /// A train begins with the headers it claims: they are drawn in the simulator's order.
    fn begin_train(&mut self, group: u32, number: u32, own: u32) -> Option<Train> {
        let pair = self.groups[group as usize].pairs.pick(own);
        let hosts = self.hosts;
        let mut source = hosts.address(group as usize, pair, 0);
        let mut to = unanswered(group, hosts.number(group as usize, pair, 1));
        let trains = self.trains(group, number)?;
        let (at, claimed, mark) = (trains.next, trains.raw.source, trains.raw.mark);
        let draws = Rc::clone(&trains.draws);
        let mut draws = draws.borrow_mut();
        let (mut forger, mut of_victim) = (None, None);
        match claimed {
            RawSource::Own => {}
            RawSource::Victim(victim) => {
                let ends = self.victim(victim, &mut draws.marks);
                (source, to) = (ends[0].ip(), ends[1].ip());
                of_victim = Some(ends.map(|end| end.port())).filter(|ports| ports[0] != 0);
                forger = Some(Forger {
                    group: group as u16,
                    follows: mark == RawMark::Follower,
                });
            }
            RawSource::Drawn(addresses) => {
                let drawn = draws.marks.below(u64::from(addresses)) as u32;
                source = IpAddr::V4(Ipv4Addr::from_bits(NOBODYS | drawn & 0x00ff_ffff));
            }
            RawSource::Host(node) => source = hosts.address_of_sender(node),
        }
        let conversation = draws.conversations;
        draws.conversations += 1;
        let new = [
            1024 + (conversation % 60_000) as u16,
            group_port(group) + 1000 * (conversation / 60_000 % 60) as u16,
        ];
        let trains = self.trains(group, number)?;
        let mut collided = None;
        let ports = match (trains.raw.ports, of_victim) {
            (RawPorts::Known, Some(ports)) => ports,
            (RawPorts::New | RawPorts::Known, _) => new,
            (RawPorts::Same, _) => [1024, 9],
            (RawPorts::Drawn, _) => [draws.marks.next_u32() as u16, draws.marks.next_u32() as u16],
            (RawPorts::Colliding, _) => match &mut trains.known {
                Some(known) => {
                    // The key of a flow has both ports: the one that is not drawn stays.
                    let (port, id) =
                        known.collide(&trains.raw, [source, to], group_port(group), &mut draws.marks);
                    collided = Some(id);
                    [port, group_port(group)]
                }
                None => new,
            },
        };
        let drawn = draws.marks.next_u32() as u16;
        let gap = Duration::from_secs_f64(draws.gap.sample()).max(Duration::from_nanos(1));
        trains.begun += 1;
        let id = collided.or(trains.raw.id).unwrap_or(drawn) & trains.raw.layout.max_id();
        // From when this one was due, not from now: lateness of this machine does not add up.
        trains.next = trains.next.saturating_add(gap);
        let record = trains.record.unwrap_or(0);
        if let Some(injector) = &mut self.injector {
            match forger {
                Some(forger) => injector.counts_forged(forger, record),
                None => injector.counts_for(to, group, record),
            }
        }
        Some(Train {
            at,
            source: SocketAddr::new(source, ports[0]),
            destination: SocketAddr::new(to, ports[1]),
            sent: 0,
            id,
            forger,
        })
    }

    /// Both ends of a connection of a group that is open, or else addresses of one of its pairs without ports.
    fn victim(&self, group: u32, random: &mut Rng) -> [SocketAddr; 2] {
        let ends = |index: usize| {
            let connection = self.connections[index].as_ref()?;
            let Some(Socket::Kernel(socket)) = &connection.ends[0].socket else {
                return None;
            };
            Some([socket.local_addr().ok()?, socket.peer_addr().ok()?])
        };
        let open = |index: &usize| {
            let connection = self.connections[*index].as_ref();
            connection
                .is_some_and(|connection| connection.group == group && connection.ends[0].socket.is_some())
        };
        let count = (0..self.connections.len()).filter(open).count() as u64;
        let chosen = (count > 0).then(|| random.below(count) as usize);
        let chosen = chosen.and_then(|chosen| (0..self.connections.len()).filter(open).nth(chosen));
        // One whose handshake is not over has no address yet.
        chosen.and_then(ends).unwrap_or_else(|| {
            let pair = random.below(u64::from(self.hosts.pairs(group as usize).max(1))) as u32;
            [0, 1].map(|side| SocketAddr::new(self.hosts.address(group as usize, pair, side), 0))
        })
    }

    /// The next packet of a train leaves; with no interval, all that are left.
    fn continue_train(
        &mut self,
        group: u32,
        number: u32,
        record: usize,
        mut train: Train,
    ) -> Result<(), Error> {
        loop {
            let Some(trains) = self.trains(group, number) else {
                return Ok(());
            };
            let (segment, interval) = (trains.raw.packet(train.sent, train.id), trains.raw.interval);
            train.sent += 1;
            let last = train.sent >= trains.raw.members;
            if !last && !interval.is_zero() {
                train.at = train.at.saturating_add(interval);
                trains.open.push_back(train);
            }
            if let Some(injector) = &mut self.injector {
                injector.send(&segment, train.source, train.destination, train.forger)?;
            }
            let flow = &mut self.groups[group as usize].output.flows[record];
            flow.add_datagrams(1, u64::from(segment.payload));
            if last || !interval.is_zero() {
                return Ok(());
            }
        }
    }

    /// Counts the raw packets that have arrived.
    pub(super) fn count_raw(&mut self) -> Result<(), Error> {
        let now = self.now();
        let measured = (Instant::ZERO + self.spec.warmup..Instant::ZERO + self.spec.duration).contains(&now);
        while let Some(injector) = &mut self.injector
            && let Some(Arrived {
                group,
                record,
                payload,
            }) = injector.arrived()?
        {
            let output = &mut self.groups[group as usize].output;
            if measured {
                output.goodput_bytes += payload;
            }
            let flow = &mut output.flows[record];
            flow.received += payload;
            flow.bytes = flow.received;
        }
        Ok(())
    }
}

/// The first destination port of a group's trains.
const fn group_port(group: u32) -> u16 {
    1 + (group % 1000) as u16
}

/// So many colliding pairs of port and identifier are drawn: more than a queue admits at a time of those that nothing follows.
const FOUND: usize = 256;
/// Sources that nobody has.
const NOBODYS: u32 = 0x0a00_0000;
/// Its number as a protocol (RFC 768).
const UDP: u8 = 17;
