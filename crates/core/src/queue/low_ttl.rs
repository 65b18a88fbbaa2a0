//! Low TTL first: of the packets that wait, the one with the smallest time to live is next.
//!
//! A packet that has come far has cost more than one that has just set out. Packets of equal TTL keep their order. A full
//! queue drops the last packet of the highest TTL.
//!
//! **Source.** Named in the FavourTail talk as an idea of Kurose and Ross's textbook ("favour packets with low TTL"); no more is
//! said there, so order and drop rule are ours.
//!
//! **Promises.** Work conserving; constant work; a flow whose packets arrive with one TTL keeps its order.
//!
//! **Deviations.** A router lowers the TTL of what it forwards. The simulator's links do not, so this queue does when a packet
//! leaves: on paths whose routers all have it, the TTL is what it would be. Nothing is dropped at zero. Packets of senders that begin with a lower TTL look like packets that have come far: whoever
//! begins lower goes first.

use super::ranked::LIMIT;
use super::store::{PacketList, PacketPool};
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline};
use crate::packet::Packet;
use crate::parameter::{Parameter, Values};
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;

/// A queue in the order of time to live.
#[derive(Clone, Debug)]
pub struct LowTtl {
    limit: Limit,
    pool: PacketPool,
    /// By TTL.
    lists: Vec<PacketList>,
    /// Bit per TTL that waits.
    waiting: [u64; 4],
}

impl LowTtl {
    /// `limit`.
    pub const PARAMETERS: &'static [Parameter] = &[LIMIT];

    /// An empty queue.
    pub fn new(values: &Values, _link: &LinkContext) -> LowTtl {
        LowTtl {
            limit: values.limit("limit"),
            pool: PacketPool::new(),
            lists: vec![PacketList::EMPTY; 256],
            waiting: [0; 4],
        }
    }

    fn note(&mut self, ttl: u8) {
        let bit = 1 << (ttl % 64);
        let word = &mut self.waiting[usize::from(ttl / 64)];
        if self.lists[usize::from(ttl)].packets > 0 {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    fn lowest(&self) -> Option<u8> {
        let word = self.waiting.iter().position(|word| *word != 0)?;
        Some((64 * word) as u8 + self.waiting[word].trailing_zeros() as u8)
    }

    fn highest(&self) -> Option<u8> {
        let word = self.waiting.iter().rposition(|word| *word != 0)?;
        Some((64 * word) as u8 + 63 - self.waiting[word].leading_zeros() as u8)
    }
}

impl QueueDiscipline for LowTtl {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let ttl = packet.segment.ttl;
        self.pool.push(&mut self.lists[usize::from(ttl)], packet);
        self.note(ttl);
        let mut own = true;
        while !self.limit.holds(self.pool.total()) {
            super::work::step();
            let Some(highest) = self.highest() else { return };
            let Some(packet) = self.pool.pop_tail(&mut self.lists[usize::from(highest)]) else {
                return;
            };
            self.note(highest);
            let reason = if highest == ttl && own {
                own = false;
                DropReason::Full
            } else {
                DropReason::PushedOut
            };
            context.drops.push((packet, reason));
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        let lowest = self.lowest()?;
        let mut packet = self.pool.pop(&mut self.lists[usize::from(lowest)])?;
        self.note(lowest);
        packet.segment.ttl = lowest.saturating_sub(1);
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.pool.total()
    }
}
