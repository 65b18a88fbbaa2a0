//! SFQ: stochastic fairness queueing as Linux has it, turns of bytes for hashed flows.
//!
//! Flows are hashed into queues that take turns; in each turn a queue may send a quantum of bytes. When the limit is exceeded, a
//! queue with the most packets loses one. The hash can change from time to time (`perturb`), so that flows which share
//! a queue do not share it for ever.
//!
//! **Source.** McKenney, "Stochastic Fairness Queueing", INFOCOM 1990; `net/sched/sch_sfq.c` of Linux 6.18 (read, not copied):
//! turns, the choice of the queue that pays, defaults.
//!
//! **Promises.** Work conserving; a flow keeps its order.
//!
//! **Deviations.** Lengths are those of layer 3; Linux adds link headers, to the default quantum too. The limit may be in bytes, and
//! there are never more queues than it has packets; Linux's default allows one more. The hash changes at the first
//! call after its time, and once however often it was due. RED in each queue (`redflowlimit`) and `tc` filters are not here. The work of a
//! change of the hash grows with what waits, that of all other calls is constant if the quantum is at least the largest packet.

use super::hash::HashKey;
use super::store::{NONE, PacketList, PacketPool};
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, drr};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// An SFQ queue.
#[derive(Clone, Debug)]
pub struct Sfq {
    limit: Limit,
    depth: u32,
    quantum: i64,
    head_drop: bool,
    /// Time between two changes of the hash, and when the next one is due.
    perturb: Option<(Duration, Instant)>,
    rng: Rng,
    key: HashKey,
    /// Queue of each value of the hash, or [`NONE`].
    table: Vec<u32>,
    queues: Vec<Queue>,
    pool: PacketPool,
    /// By number of packets, the queue that came to it last.
    by_packets: Vec<u32>,
    /// Packets of the longest queue.
    longest: u32,
    /// The last queue of the round, or [`NONE`].
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    packets: PacketList,
    /// The value of the hash that leads here.
    hash: u32,
    /// Bytes that it may still send in this turn.
    allot: i64,
    /// The queue after it in the round.
    next: u32,
    /// Neighbours among the queues with as many packets.
    newer: u32,
    older: u32,
}

impl Sfq {
    /// `limit`, `flows`, `depth`, `divisor`, `quantum`, `perturb`, `headdrop`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(127),
            "What may wait in all queues together (Linux: 127 packets)"),
        parameter!("flows": Integer(1, 65_408) = 128,
            "Queues that may be in use at once; a packet that needs another one is dropped (Linux: 128)"),
        parameter!("depth": Integer(1, 127) = 127, "Packets that may wait in one queue (Linux: 127)"),
        parameter!("divisor": Integer(1, 65_536) = 1024, "Values of the hash, a power of two (Linux: 1024)"),
        parameter!("quantum": Bytes(Bytes(1), Bytes(1_000_000_000)) = auto,
            "Bytes that a queue may send in one turn; by default the link's MTU (Linux: with the link's header)"),
        parameter!("perturb": Duration(Duration::ZERO, Duration::from_secs(86_400)) = Duration::ZERO,
            "Time after which the hash changes; 0: never (Linux: never)"),
        parameter!("headdrop": Flag = false,
            "Drop the oldest packet of a queue, not the newest (Linux: off)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> Sfq {
        let limit = values.limit("limit");
        let integer = |name, default| values.integer(name).unwrap_or(default) as u32;
        let (divisor, depth) = (integer("divisor", 1024), integer("depth", 127));
        let most = match limit {
            Limit::Packets(packets) => packets.max(1),
            Limit::Bytes(_) | Limit::Unlimited => u32::MAX,
        };
        let flows = integer("flows", 128).min(divisor).min(most);
        let queue = Queue {
            packets: PacketList::EMPTY,
            hash: NONE,
            allot: 0,
            next: NONE,
            newer: NONE,
            older: NONE,
        };
        let period = values.duration("perturb").filter(|period| !period.is_zero());
        let mut sfq = Sfq {
            limit,
            depth,
            quantum: (drr::quantum(values, link) as i64).max(1),
            head_drop: values.flag("headdrop"),
            perturb: period.map(|period| (period, Instant::ZERO + period)),
            rng: Rng::for_element(link.seed, "queue", "sfq"),
            key: HashKey::new(link.seed),
            table: vec![NONE; divisor as usize],
            queues: vec![queue; flows as usize],
            pool: PacketPool::new(),
            by_packets: vec![NONE; depth as usize + 1],
            longest: 0,
            tail: NONE,
        };
        for index in 0..flows {
            sfq.link(index);
        }
        sfq
    }

    fn queue(&mut self, index: u32) -> &mut Queue {
        &mut self.queues[index as usize]
    }

    /// Puts a queue before those with as many packets.
    fn link(&mut self, index: u32) {
        let packets = self.queue(index).packets.packets;
        let first = core::mem::replace(&mut self.by_packets[packets as usize], index);
        let queue = self.queue(index);
        (queue.newer, queue.older) = (NONE, first);
        if first != NONE {
            self.queue(first).newer = index;
        }
        self.longest = self.longest.max(packets);
    }

    /// Takes a queue out of those with as many packets.
    fn unlink(&mut self, index: u32) {
        let Queue {
            packets,
            newer,
            older,
            ..
        } = *self.queue(index);
        match newer {
            NONE => self.by_packets[packets.packets as usize] = older,
            newer => self.queue(newer).older = older,
        }
        if older != NONE {
            self.queue(older).newer = newer;
        }
        // The caller moves it by one packet.
        if (newer, older) == (NONE, NONE) && self.longest == packets.packets {
            self.longest = packets.packets.saturating_sub(1);
        }
    }

    /// Appends a packet to the queue of its flow.
    fn append(&mut self, packet: Packet, context: &QueueContext<'_>) -> Appended {
        let hash = self
            .key
            .flow(context.flows.key(packet.flow), self.table.len() as u32);
        let index = match self.table[hash as usize] {
            NONE => self.by_packets[0],
            index => index,
        };
        if index == NONE {
            return Appended::Full(packet);
        }
        if self.queue(index).packets.packets >= self.depth {
            return Appended::TooDeep(index, packet);
        }
        self.table[hash as usize] = index;
        self.unlink(index);
        self.pool.push(&mut self.queues[index as usize].packets, packet);
        self.link(index);
        let (tail, quantum) = (self.tail, self.quantum);
        if self.queue(index).packets.packets == 1 {
            // At the end of the round, so that new flows cannot starve the others.
            let next = match tail {
                NONE => index,
                tail => core::mem::replace(&mut self.queue(tail).next, index),
            };
            let queue = self.queue(index);
            (queue.next, queue.hash, queue.allot) = (next, hash, quantum);
            self.tail = index;
        }
        Appended::To(index)
    }

    /// Takes the oldest or the newest packet of a queue.
    fn take(&mut self, index: u32, oldest: bool) -> Option<Packet> {
        self.unlink(index);
        let list = &mut self.queues[index as usize].packets;
        let packet = match oldest {
            true => self.pool.pop(list),
            false => self.pool.pop_tail(list),
        };
        self.link(index);
        packet
    }

    /// The first queue of the round leaves it.
    fn leave(&mut self, first: u32) {
        let Queue { next, hash, .. } = *self.queue(first);
        let tail = self.tail;
        if next == first {
            self.tail = NONE;
        } else {
            self.queue(tail).next = next;
        }
        self.table[hash as usize] = NONE;
    }

    /// Takes a packet of the queue that has most; where all have one, of the first of the round.
    fn push_out(&mut self) -> Option<(u32, Packet)> {
        let index = match self.longest {
            0 => return None,
            1 => {
                let first = self.queues[self.tail as usize].next;
                self.leave(first);
                first
            }
            longest => self.by_packets[longest as usize],
        };
        Some((index, self.take(index, self.head_drop)?))
    }

    /// Changes the hash if it is time to, and moves what waits to where it belongs now.
    fn perturb(&mut self, now: Instant, context: &mut QueueContext<'_>) {
        let Some((period, due)) = &mut self.perturb else {
            return;
        };
        if now < *due {
            return;
        }
        let missed = now.since(*due).as_nanos() / period.as_nanos();
        *due = due.saturating_add(period.saturating_mul(missed + 1));
        self.key = HashKey::new(self.rng.next_u64());
        let mut waiting = PacketList::EMPTY;
        for index in 0..self.queues.len() as u32 {
            if self.queue(index).packets.packets == 0 {
                continue;
            }
            self.unlink(index);
            self.pool
                .append(&mut waiting, &mut self.queues[index as usize].packets);
            let hash = self.queue(index).hash;
            self.table[hash as usize] = NONE;
            self.link(index);
        }
        (self.tail, self.longest) = (NONE, 0);
        while let Some(packet) = self.pool.pop(&mut waiting) {
            if let Appended::Full(packet) | Appended::TooDeep(_, packet) = self.append(packet, context) {
                context.drops.push((packet, DropReason::PushedOut));
            }
        }
    }
}

/// What became of a packet.
enum Appended {
    To(u32),
    /// All queues are in use.
    Full(Packet),
    /// Its queue holds as many packets as it may.
    TooDeep(u32, Packet),
}

impl QueueDiscipline for Sfq {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        self.perturb(now, context);
        let index = match self.append(packet, context) {
            Appended::To(index) => index,
            Appended::TooDeep(index, packet) if self.head_drop => {
                let list = &mut self.queues[index as usize].packets;
                let oldest = self.pool.pop(list);
                self.pool.push(list, packet);
                let oldest = oldest.map(|oldest| (oldest, DropReason::PushedOut));
                context.drops.extend(oldest);
                index
            }
            Appended::Full(packet) | Appended::TooDeep(_, packet) => {
                context.drops.push((packet, DropReason::Full));
                return;
            }
        };
        let mut arrived = !self.head_drop;
        while !self.limit.holds(self.pool.total()) {
            super::work::step();
            let Some((queue, packet)) = self.push_out() else {
                return;
            };
            // The newest packet of the arrival's own queue is the arrival, the first time.
            let reason = if queue == index && arrived {
                arrived = false;
                DropReason::Full
            } else {
                DropReason::PushedOut
            };
            context.drops.push((packet, reason));
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        self.perturb(now, context);
        while self.tail != NONE {
            super::work::step();
            let (first, quantum) = (self.queues[self.tail as usize].next, self.quantum);
            let queue = self.queue(first);
            if queue.allot <= 0 {
                queue.allot += quantum;
                self.tail = first;
                continue;
            }
            let packet = self.take(first, true)?;
            let queue = self.queue(first);
            if queue.packets.packets == 0 {
                self.leave(first);
            } else {
                queue.allot -= i64::from(packet.segment.len());
            }
            return Some(packet);
        }
        None
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.pool.total()
    }

    fn check(values: &Values) -> Result<(), String> {
        match values.integer("divisor") {
            Some(divisor) if !divisor.is_power_of_two() => Err(alloc::format!(
                "`divisor` is {divisor}, and must be a power of two"
            )),
            Some(_) | None => Ok(()),
        }
    }
}
