//! Deficit round robin over numbered queues: the service that `drr` and `sp-fq` share.
//!
//! **Source.** Shreedhar and Varghese, SIGCOMM 1995; docs/design/queues.md#drr-join: a queue that wakes up joins the round at its
//! tail with nothing saved.

use super::store::{NONE, PacketList, PacketPool};
use super::{Backlog, work};
use crate::packet::Packet;
use crate::units::Bytes;
use alloc::vec;
use alloc::vec::Vec;

/// Queues that take turns. In each turn a queue may send `quantum` bytes and what it saved in the turns before.
#[derive(Clone, Debug)]
pub(super) struct RoundRobin {
    quantum: u64,
    turns: Vec<Turn>,
    pool: PacketPool,
    /// Head and tail of the list of queues that wait.
    head: u32,
    tail: u32,
}

#[derive(Clone, Debug)]
struct Turn {
    packets: PacketList,
    /// DC of the paper.
    deficit: u64,
    /// Whether this turn's quantum was added.
    visited: bool,
    previous: u32,
    next: u32,
}

impl RoundRobin {
    pub(super) fn new(queues: usize, quantum: u64) -> RoundRobin {
        let turn = Turn {
            packets: PacketList::EMPTY,
            deficit: 0,
            visited: false,
            previous: NONE,
            next: NONE,
        };
        RoundRobin {
            quantum: quantum.max(1),
            turns: vec![turn; queues],
            pool: PacketPool::new(),
            head: NONE,
            tail: NONE,
        }
    }

    /// Number of queues.
    pub(super) fn queues(&self) -> u32 {
        self.turns.len() as u32
    }

    /// Bytes of memory without the packets.
    pub(super) fn bytes(&self) -> usize {
        self.turns.len() * size_of::<Turn>()
    }

    /// What waits in all queues.
    pub(super) const fn total(&self) -> Backlog {
        self.pool.total()
    }

    /// What waits in one.
    pub(super) fn backlog(&self, queue: u32) -> Backlog {
        let list = &self.turns[queue as usize].packets;
        Backlog {
            packets: list.packets,
            bytes: Bytes(list.bytes),
        }
    }

    /// Appends a packet to a queue.
    pub(super) fn push(&mut self, queue: u32, packet: Packet) {
        let turn = &mut self.turns[queue as usize];
        let idle = turn.packets.packets == 0;
        self.pool.push(&mut turn.packets, packet);
        if idle {
            self.link(queue);
        }
    }

    /// Takes the first or the last packet out of a queue, which earns nothing by it.
    pub(super) fn remove(&mut self, queue: u32, from_tail: bool) -> Option<Packet> {
        let list = &mut self.turns[queue as usize].packets;
        let packet = if from_tail {
            self.pool.pop_tail(list)
        } else {
            self.pool.pop(list)
        }?;
        self.after_removal(queue);
        Some(packet)
    }

    /// The packet whose turn it is, and its queue.
    pub(super) fn next(&mut self) -> Option<(u32, Packet)> {
        loop {
            work::step();
            let queue = self.head;
            if queue == NONE {
                return None;
            }
            let turn = &mut self.turns[queue as usize];
            if !turn.visited {
                turn.deficit += self.quantum;
                turn.visited = true;
            }
            let len = u64::from(self.pool.head_len(&turn.packets)?);
            if len <= turn.deficit {
                turn.deficit -= len;
                let packet = self.pool.pop(&mut turn.packets)?;
                self.after_removal(queue);
                return Some((queue, packet));
            }
            turn.visited = false;
            self.unlink(queue);
            self.link(queue);
        }
    }

    /// A queue that emptied leaves the round with nothing saved.
    fn after_removal(&mut self, queue: u32) {
        let turn = &mut self.turns[queue as usize];
        if turn.packets.packets == 0 {
            turn.deficit = 0;
            turn.visited = false;
            self.unlink(queue);
        }
    }

    /// Adds a queue at the tail of the round.
    fn link(&mut self, queue: u32) {
        let tail = self.tail;
        let turn = &mut self.turns[queue as usize];
        (turn.previous, turn.next) = (tail, NONE);
        if tail == NONE {
            self.head = queue;
        } else {
            self.turns[tail as usize].next = queue;
        }
        self.tail = queue;
    }

    fn unlink(&mut self, queue: u32) {
        let Turn { previous, next, .. } = self.turns[queue as usize];
        if previous == NONE {
            self.head = next;
        } else {
            self.turns[previous as usize].next = next;
        }
        if next == NONE {
            self.tail = previous;
        } else {
            self.turns[next as usize].previous = previous;
        }
    }

    /// Deficits between turns.
    #[cfg(test)]
    pub(super) fn deficits(&self) -> Vec<u64> {
        let between_turns = self.turns.iter().filter(|turn| !turn.visited);
        between_turns.map(|turn| turn.deficit).collect()
    }
}
