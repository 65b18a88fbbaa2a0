//! CAKE-like: fair among hosts, then among each host's flows; COBALT in each queue; an optional shaper.
//!
//! Flows find a queue in a set-associative table, so few share one. Queues take turns as in FQ-CoDel, but the quantum of a
//! queue is divided by the number of busy queues of its host, so a host gets no more for opening more flows. Each queue runs
//! COBALT (CoDel, and BLUE against senders that do not listen). The longest queue pays for overflow.
//!
//! **Source.** Høiland-Jørgensen, Täht and Morton, "Piece of CAKE" (LANMAN 2018); Linux `sch_cake.c` for the pieces and their
//! constants (read, not copied).
//!
//! **Promises.** Work conserving without a shaper. With `triple-isolate` a host, as sender or receiver, that keeps n queues busy
//! gets an n-th of a quantum for each. A packet alone in its queue is never dropped, only marked. A flow keeps its order
//! unless its set was full when it came: then it may move once.
//!
//! **Deviations.** One tin: no Diffserv classes. No ACK filter, NAT look-up, overhead compensation or splitting of offloaded
//! frames (packets here are not aggregates). A queue that is found empty leaves the rounds, and its next packet makes it new, as in Linux and
//! not as in RFC 8290 4.2; only one that has spent its deficit stays, uncounted, until its turn among the old ones. Linux visits an
//! empty queue until its COBALT has come down and keeps it for its flow; here an idle queue is not visited, its COBALT comes down when
//! the flow returns, and starts anew for another flow. By default the limit is what Linux holds of full packets: its limit counts memory, of
//! which small packets take more than here. In a full set the owner keeps its place and its hosts are charged; Linux relabels it. Hosts in the table are held as
//! long as a queue of theirs is busy. The quantum of a busy queue is cut without Linux's dithering, to at least one byte. In
//! Linux the first drop of a new flow follows the first long wait at once, which neither the paper nor the source's own comment
//! wants: here only with `details = "linux"`. There is no `ingress`, with which Linux charges dropped packets to the shaper and to their flow, as they have crossed
//! the line already, and lets a queue wait for two packets of each busy queue before it signals: a command for arrivals has it, the simulation sends at the
//! link's rate what is not dropped. Without `bandwidth` target, interval, quantum and limit are those of a shaper at the link's rate: in Linux
//! a device without a shaper is taken for infinitely fast, which a slow line never is. The longest queue is found within a factor of two (docs/design/queues.md#drr-longest). Work per
//! packet grows with the busy queues of one host, as in Linux: each turn grants a share only.

use super::classes::BacklogClasses;
use super::codel::{INTERVAL, TARGET};
use super::hash::HashKey;
use super::rounds::Rounds;
use super::store::{PacketList, PacketPool};
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEventKind};
use crate::flow::{FlowKey, HostId};
use crate::packet::{Ecn, Packet};
use crate::parameter;
use crate::parameter::{Parameter, Value, Values};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

pub(super) mod cobalt;
pub(super) mod ways;

use cobalt::{Cobalt, Constants};
use ways::{Place, WAYS, Ways};

/// Packets by which Linux limits the memory of all queues (cake_init).
const LINUX_PACKETS: u32 = 10_240;
/// Bytes of the header that Linux counts with a packet.
const ETHERNET_HEADER: u32 = 14;
/// Bytes of the largest quantum, at layer 3 (`cake_set_rate`).
const MOST_QUANTUM: u32 = 1500;
/// Memory that Linux grants a shaper of any rate, bytes.
const LEAST_MEMORY: u128 = 4 << 20;

/// A CAKE-like queue.
#[derive(Clone, Debug)]
pub struct Cake {
    limit: Limit,
    ecn: bool,
    constants: Constants,
    key: HashKey,
    rng: Rng,
    flows: Ways,
    queues: Vec<Queue>,
    hosts: Hosts,
    pool: PacketPool,
    classes: BacklogClasses,
    rounds: Rounds<Places>,
    shaper: Option<Shaper>,
}

#[derive(Clone, Debug)]
struct Queue {
    packets: PacketList,
    cobalt: Cobalt,
    set: Set,
    hosts: Places,
}

/// Places of the hosts of a queue in their tables, sender and receiver; there are at most 65,536.
type Places = [u16; 2];

/// Where a queue stands in the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// In no list.
    Idle,
    /// Among the new.
    Sparse,
    /// Among the old, but empty when it came there: it does not count as busy.
    SparseWait,
    /// Among the old and counted.
    Bulk,
}

/// Busy queues by host, senders and receivers apart.
#[derive(Clone, Debug)]
struct Hosts {
    /// What the queues of a host may send together in a turn.
    quantum: u32,
    isolates: [bool; 2],
    tags: [Ways; 2],
    loads: [Vec<Load>; 2],
    /// The quantum divided by the busy queues of the host.
    shares: [Vec<u32>; 2],
    /// The host that was looked up last, and its fingerprint.
    last: [(HostId, u64); 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Queues of the host that are in the rounds.
    active: u32,
    /// Queues of the host that are busy.
    bulk: u32,
}

/// Sends at a rate below the link's.
#[derive(Clone, Copy, Debug)]
struct Shaper {
    rate: Rate,
    next: Instant,
    /// Remainder of the last division, in bits times 10^9.
    remainder: u64,
}

impl Cake {
    /// `limit`, `bandwidth`, `isolation`, `queues`, `quantum`, `target`, `interval`, `ecn`, `details`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = auto,
            "What may wait in all queues together; by default 1500/2304 of Linux's memory: that of 10240 packets, and no more than four intervals at the rate or 4 MiB, whichever is more"),
        parameter!("bandwidth": Rate(Rate(1000), Rate(1_000_000_000_000)) = auto,
            "Rate to shape to, layer 3; by default none: the link's own rate holds"),
        parameter!("isolation": Choice(&["triple-isolate", "dual-srchost", "dual-dsthost", "flows"]) = "triple-isolate",
            "Fair among senders and receivers, among senders, among receivers, or among flows alone (Linux cake: triple-isolate)"),
        parameter!("queues": Integer(8, 65_536) = 1024, "Queues, in sets of eight (Linux cake: 1024)"),
        parameter!("quantum": Bytes(Bytes(1), Bytes(1_000_000_000)) = auto,
            "Bytes a host's queues may send in one round; by default the bytes of 244 us at the rate, at least 300 and at most the MTU or 1500 (Linux)"),
        TARGET,
        INTERVAL,
        parameter!("ecn": Flag = true,
            "Mark ECN-capable packets instead of dropping them, for CoDel's part (Linux cake: always)"),
        parameter!("details": Choice(&["paper", "linux"]) = "paper",
            "Whether the first drop of a new flow comes an interval after the first long wait, or, as in Linux, at once"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> Cake {
        let queues = values.integer("queues").unwrap_or(1024) as u32;
        let mtu = link.mtu;
        let shaper = values.rate("bandwidth").map(|rate| Shaper {
            rate,
            next: Instant::ZERO,
            remainder: 0,
        });
        // A line of this rate is one that somebody shapes to it: without `bandwidth`, too, a packet takes its time on it.
        let rate = shaper.map_or(link.rate, |shaper| shaper.rate);
        let mtu_time = rate.time_for(Bytes(u64::from(mtu)));
        let target = values.duration("target").unwrap_or(Duration::from_millis(5));
        let configured_interval = values.duration("interval").unwrap_or(Duration::from_millis(100));
        // Linux cake_set_rate: at low rates the target is one and a half packets, and the interval follows.
        let longer = target.max(Duration::from_nanos(mtu_time.as_nanos().saturating_mul(3) / 2));
        let longer_by = longer.as_nanos() - target.as_nanos();
        let interval =
            Duration::from_nanos(configured_interval.as_nanos() + longer_by).max(longer.saturating_mul(2));
        // The same: at most 1514 bytes with the header, whatever the MTU.
        let most = i64::from(mtu.min(MOST_QUANTUM));
        let usual = (((rate.bps() / 8) >> 12) as i64).min(most).max(300);
        let isolates = match values.choice("isolation") {
            "triple-isolate" => [true, true],
            "dual-srchost" => [true, false],
            "dual-dsthost" => [false, true],
            _ => [false, false],
        };
        let quantum = values
            .bytes("quantum")
            .map_or(usual, |quantum| quantum.0 as i64)
            .clamp(1, i64::from(u32::MAX)) as u32;
        let key = HashKey::new(link.seed);
        let limit = match values.value("limit") {
            Value::Limit(limit) => limit,
            _ => usual_limit(mtu, rate, configured_interval),
        };
        Cake {
            limit,
            ecn: values.flag("ecn"),
            constants: Constants {
                target: longer,
                interval,
                mtu_time,
                first_at_once: values.choice("details") == "linux",
            },
            key,
            rng: Rng::for_element(link.seed, "queue", "cake"),
            flows: Ways::new(queues),
            queues: vec![
                Queue {
                    packets: PacketList::EMPTY,
                    cobalt: Cobalt::default(),
                    set: Set::Idle,
                    hosts: [0; 2],
                };
                queues as usize
            ],
            hosts: Hosts::new(queues, quantum, isolates, key),
            pool: PacketPool::new(),
            classes: BacklogClasses::new(queues as usize),
            rounds: Rounds::new(queues as usize),
            shaper,
        }
    }

    /// The queue of a flow; one that was idle has had its rest.
    fn classify(&mut self, now: Instant, key: FlowKey) -> u32 {
        let queues = &self.queues;
        let place = self.flows.find(self.key.flow_fingerprint(key), |index| {
            queues[index as usize].set == Set::Idle
        });
        let queue = &mut self.queues[place.index() as usize];
        match place {
            Place::New(_) => queue.cobalt = Cobalt::default(),
            Place::Own(_) if queue.set == Set::Idle => queue.cobalt.rested(now, &self.constants),
            Place::Own(_) | Place::Shared(_) => {}
        }
        place.index()
    }

    /// Puts a queue that got a packet into the rounds.
    fn activate(&mut self, index: u32, key: FlowKey) {
        let queue = &mut self.queues[index as usize];
        match queue.set {
            Set::Idle => {
                queue.set = Set::Sparse;
                queue.hosts = self.hosts.enter(self.key, key);
                let quantum = share(self.hosts.shares(), queue.hosts);
                self.rounds.arrive(index, quantum, queue.hosts);
            }
            Set::SparseWait => {
                queue.set = Set::Bulk;
                self.hosts.busy(queue.hosts, true);
            }
            Set::Sparse | Set::Bulk => {}
        }
    }

    fn drop_from_longest(&mut self, now: Instant, context: &mut QueueContext<'_>) {
        let Some(index) = self.classes.longest() else {
            return;
        };
        let queue = &mut self.queues[index as usize];
        let Some(packet) = self.pool.pop(&mut queue.packets) else {
            return;
        };
        queue.cobalt.overflowed(now, &self.constants);
        self.classes
            .update(index, queue.packets.packets, queue.packets.bytes);
        context.drops.push((packet, DropReason::PushedOut));
    }

    /// A packet of the queue whose turn it is, if COBALT leaves one.
    fn take(&mut self, now: Instant, index: u32, context: &mut QueueContext<'_>) -> Option<Packet> {
        let queue = &mut self.queues[index as usize];
        let mut taken = None;
        while let Some(mut packet) = self.pool.pop(&mut queue.packets) {
            let capable = self.ecn && packet.segment.ecn_capable();
            let sojourn = now.since(packet.enqueued_at);
            let rng = &mut self.rng;
            let judgement = queue
                .cobalt
                .judge(now, &self.constants, sojourn, capable, || rng.next_u32());
            // The last packet of a queue may be marked, not dropped.
            if !judgement.drop || queue.packets.packets == 0 {
                if judgement.mark && packet.segment.ecn() != Ecn::Ce {
                    packet.segment.set_ecn(Ecn::Ce);
                    context.report(QueueEventKind::Marked, packet.flow);
                }
                taken = Some(packet);
                break;
            }
            super::work::step();
            context.drops.push((packet, DropReason::Early));
        }
        self.classes
            .update(index, queue.packets.packets, queue.packets.bytes);
        taken
    }
}

impl Hosts {
    fn new(queues: u32, quantum: u32, isolates: [bool; 2], key: HashKey) -> Hosts {
        let none = (HostId(0), key.host_id(HostId(0)));
        Hosts {
            quantum,
            isolates,
            tags: [Ways::new(queues), Ways::new(queues)],
            loads: core::array::from_fn(|_| vec![Load::default(); queues as usize]),
            shares: core::array::from_fn(|_| vec![quantum; queues as usize]),
            last: [none; 2],
        }
    }

    /// Finds the hosts of a queue that enters the rounds.
    fn enter(&mut self, hash: HashKey, key: FlowKey) -> Places {
        let mut places = [0; 2];
        for (side, host) in [key.source, key.destination].into_iter().enumerate() {
            if self.isolates[side] {
                if self.last[side].0 != host {
                    self.last[side] = (host, hash.host_id(host));
                }
                let loads = &self.loads[side];
                let place = self.tags[side]
                    .find(self.last[side].1, |index| loads[index as usize].active == 0)
                    .index();
                self.loads[side][place as usize].active += 1;
                places[side] = place as u16;
            }
        }
        places
    }

    /// A queue of these hosts became busy, or ceased to be.
    fn busy(&mut self, hosts: Places, is_busy: bool) {
        for (side, place) in hosts.into_iter().enumerate() {
            if self.isolates[side] {
                let bulk = &mut self.loads[side][usize::from(place)].bulk;
                *bulk = if is_busy { *bulk + 1 } else { *bulk - 1 };
                self.shares[side][usize::from(place)] = (self.quantum / (*bulk).max(1)).max(1);
            }
        }
    }

    /// What sender and receiver allow a queue in a turn, by their places.
    #[inline(always)]
    fn shares(&self) -> [&[u32]; 2] {
        let [senders, receivers] = &self.shares;
        [senders, receivers]
    }

    /// A queue left the rounds.
    fn leave(&mut self, hosts: Places) {
        for ((loads, place), isolates) in self.loads.iter_mut().zip(hosts).zip(self.isolates) {
            if isolates {
                loads[usize::from(place)].active -= 1;
            }
        }
    }
}

/// What Linux's cake_reconfigure lets wait, in bytes at layer 3. Linux limits the memory of packets: here a packet of 1500 bytes takes
/// the 2304 bytes that it takes in most drivers, and others take in proportion.
fn usual_limit(mtu: u32, rate: Rate, interval: Duration) -> Limit {
    // sch->limit * psched_mtu(), which counts the Ethernet header.
    let most = u128::from(LINUX_PACKETS) * u128::from(mtu + ETHERNET_HEADER);
    let four_intervals = u128::from(rate.bps() / 8) * 4 * u128::from(interval.as_nanos()) / 1_000_000_000;
    let memory = four_intervals.max(LEAST_MEMORY).min(most);
    Limit::Bytes(Bytes((memory * 1500 / 2304).max(u128::from(mtu)) as u64))
}

/// The quantum of a queue of these hosts: that of the host divided by its busy queues.
#[inline(always)]
fn share(shares: [&[u32]; 2], hosts: Places) -> i64 {
    let share = |side: usize| shares[side][usize::from(hosts[side])];
    i64::from(share(0).min(share(1)))
}

impl Shaper {
    fn sent(&mut self, bytes: u32) {
        let bits = u128::from(bytes) * 8 * 1_000_000_000 + u128::from(self.remainder);
        let rate = u128::from(self.rate.bps().max(1));
        self.remainder = (bits % rate) as u64;
        self.next = self
            .next
            .saturating_add(Duration::from_nanos((bits / rate) as u64));
    }
}

impl QueueDiscipline for Cake {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        if let Some(shaper) = &mut self.shaper
            && self.pool.total().packets == 0
            && shaper.next < now
        {
            (shaper.next, shaper.remainder) = (now, 0);
        }
        let key = context.flows.key(packet.flow);
        let index = self.classify(now, key);
        let queue = &mut self.queues[index as usize];
        self.pool.push(&mut queue.packets, packet);
        self.classes
            .update(index, queue.packets.packets, queue.packets.bytes);
        self.activate(index, key);
        while !self.limit.holds(self.pool.total()) {
            super::work::step();
            self.drop_from_longest(now, context);
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        // Linux looks at the lists only if something waits, so a queue that sent a short time ago is not new.
        if self.pool.total().packets == 0 || self.shaper.is_some_and(|shaper| now < shaper.next) {
            return None;
        }
        loop {
            let (queues, hosts) = (&mut self.queues, &mut self.hosts);
            let new = self.rounds.turn_of_new(|index| {
                let queue = &mut queues[index as usize];
                if queue.set == Set::Sparse {
                    if queue.packets.packets > 0 {
                        queue.set = Set::Bulk;
                        hosts.busy(queue.hosts, true);
                    } else {
                        queue.set = Set::SparseWait;
                    }
                }
                share(hosts.shares(), queue.hosts)
            });
            let shares = self.hosts.shares();
            let index = match new {
                Some(index) => index,
                None => self.rounds.turn_of_old(|hosts| share(shares, hosts))?,
            };
            if let Some(packet) = self.take(now, index, context) {
                let len = packet.segment.len();
                self.rounds.spend(len);
                if let Some(shaper) = &mut self.shaper {
                    shaper.sent(len);
                }
                return Some(packet);
            }
            let queue = &mut self.queues[index as usize];
            queue.cobalt.emptied(now, &self.constants);
            if queue.set == Set::Bulk {
                self.hosts.busy(queue.hosts, false);
            }
            // cake_dequeue: an empty queue with a deficit left never becomes an old one.
            queue.set = Set::Idle;
            self.hosts.leave(queue.hosts);
            self.rounds.remove();
        }
    }

    #[inline]
    fn ready_at(&self) -> Option<Instant> {
        (self.pool.total().packets > 0).then(|| self.shaper.map_or(Instant::ZERO, |shaper| shaper.next))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.pool.total()
    }

    fn state_bytes(&self) -> Option<usize> {
        let places = self.queues.len();
        Some(
            places * (size_of::<Queue>() + 3 * size_of::<u64>() + 2 * (size_of::<Load>() + size_of::<u32>())),
        )
    }

    fn check(values: &Values) -> Result<(), String> {
        let queues = values.integer("queues").unwrap_or(1024);
        if !queues.is_multiple_of(u64::from(WAYS)) {
            return Err(String::from(
                "`queues` must be a multiple of 8, the places of a set",
            ));
        }
        Ok(())
    }
}
