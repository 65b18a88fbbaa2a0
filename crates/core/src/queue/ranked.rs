//! Flows by rank: a FIFO per bucket, the bucket of the least and of the greatest rank found in log2(buckets) steps.
//!
//! What the ideal schedulers share. Flows are hashed into buckets, and each scheduler gives a bucket its value. The bucket of the least
//! value is served; buckets of equal values take turns. When the buffer is full the bucket of the greatest value loses its last
//! packet. Two trees of winners over a fixed number of buckets; nothing is allocated per packet.

use super::hash::HashKey;
use super::store::{NONE, PacketList, PacketPool};
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use alloc::vec;
use alloc::vec::Vec;

pub(super) const LIMIT: Parameter = parameter!("limit": Limit = Limit::Packets(1000),
    "What may wait, not counting the packet being sent (as drop-tail)");

pub(super) const BUCKETS: Parameter = parameter!("buckets": Integer(1, 65_536) = 16_384,
    "Flows that are distinguished, by hash (ours; the ideal has one for each flow)");

/// Packets of flows in buckets, and the ranks of the buckets that wait.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    limit: Limit,
    key: HashKey,
    /// Counts what joins the buckets of equal values.
    turn: u64,
    lists: Vec<PacketList>,
    ranks: Vec<Rank>,
    pool: PacketPool,
    least: Winners,
    greatest: Winners,
}

/// Lower is served first; of equal ranks the lower turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    value: u64,
    turn: u64,
}

/// A tree whose inner nodes name the better of their two children. Node 1 is the root.
#[derive(Clone, Debug)]
struct Winners {
    nodes: Vec<u32>,
}

impl Ranked {
    /// From [`LIMIT`] and [`BUCKETS`].
    pub(super) fn new(values: &Values, link: &LinkContext) -> Ranked {
        let buckets = values.integer("buckets").unwrap_or(16_384) as usize;
        let nodes = vec![NONE; buckets.next_power_of_two()];
        Ranked {
            limit: values.limit("limit"),
            key: HashKey::new(link.seed),
            turn: 0,
            lists: vec![PacketList::EMPTY; buckets],
            ranks: vec![Rank { value: 0, turn: 0 }; buckets],
            pool: PacketPool::new(),
            least: Winners { nodes: nodes.clone() },
            greatest: Winners { nodes },
        }
    }

    /// Number of buckets.
    pub(super) fn buckets(&self) -> usize {
        self.lists.len()
    }

    /// The bucket of a packet's flow.
    pub(super) fn bucket(&self, packet: &Packet, context: &QueueContext<'_>) -> u32 {
        let key = context.flows.key(packet.flow);
        self.key.flow(key, self.lists.len() as u32)
    }

    pub(super) fn total(&self) -> Backlog {
        self.pool.total()
    }

    /// The value of a bucket, as it was given last.
    pub(super) fn value(&self, bucket: u32) -> u64 {
        self.ranks[bucket as usize].value
    }

    pub(super) fn is_empty(&self, bucket: u32) -> bool {
        self.lists[bucket as usize].packets == 0
    }

    /// Puts a packet behind those of its bucket, which has this value from now on; where more waits than the limit holds, the
    /// buckets of the greatest values lose their last packets.
    pub(super) fn push(
        &mut self,
        bucket: u32,
        packet: Packet,
        value: u64,
        drops: &mut Vec<(Packet, DropReason)>,
    ) {
        let turn = match self.is_empty(bucket) {
            true => self.next_turn(),
            false => self.ranks[bucket as usize].turn,
        };
        self.pool.push(&mut self.lists[bucket as usize], packet);
        self.set_rank(bucket, Rank { value, turn });
        let mut own = true;
        while !self.limit.holds(self.total()) {
            let Some((worst, packet)) = self.pop_worst() else {
                return;
            };
            // The tail of the arrival's own flow is the arrival, the first time.
            let reason = if worst == bucket && own {
                own = false;
                DropReason::Full
            } else {
                DropReason::PushedOut
            };
            drops.push((packet, reason));
        }
    }

    /// Takes the head of the bucket of the least value; `value` says what the bucket has from now on, behind all that are equal.
    pub(super) fn pop(&mut self, value: impl FnOnce(u32, u64, &Packet) -> u64) -> Option<Packet> {
        let bucket = self.least.winner()?;
        let packet = self.pool.pop(&mut self.lists[bucket as usize])?;
        let value = value(bucket, self.value(bucket), &packet);
        let turn = self.next_turn();
        self.set_rank(bucket, Rank { value, turn });
        Some(packet)
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// Gives a bucket another rank.
    fn set_rank(&mut self, bucket: u32, rank: Rank) {
        self.ranks[bucket as usize] = rank;
        let (lists, ranks) = (&self.lists, &self.ranks);
        let waits = |bucket: u32| lists[bucket as usize].packets > 0;
        let rank = |bucket: u32| ranks[bucket as usize];
        let buckets = lists.len() as u32;
        self.least
            .update(bucket, buckets, waits, |a, b| rank(a) <= rank(b));
        self.greatest
            .update(bucket, buckets, waits, |a, b| rank(a) >= rank(b));
    }

    /// Takes the tail of the bucket of the greatest rank, and says which bucket that was.
    fn pop_worst(&mut self) -> Option<(u32, Packet)> {
        let bucket = self.greatest.winner()?;
        let packet = self.pool.pop_tail(&mut self.lists[bucket as usize])?;
        self.set_rank(bucket, self.ranks[bucket as usize]);
        Some((bucket, packet))
    }
}

impl Winners {
    fn winner(&self) -> Option<u32> {
        let winner = self.nodes[self.root()];
        (winner != NONE).then_some(winner)
    }

    /// The root; with a single bucket there is no inner node but the one that would be above the root.
    fn root(&self) -> usize {
        usize::from(self.nodes.len() > 1)
    }

    /// Plays the games of `bucket` again, up to the root.
    fn update(
        &mut self,
        bucket: u32,
        buckets: u32,
        waits: impl Fn(u32) -> bool,
        beats: impl Fn(u32, u32) -> bool,
    ) {
        let leaves = self.nodes.len() as u32;
        let leaf = |index: u32| {
            if index < buckets && waits(index) {
                index
            } else {
                NONE
            }
        };
        let better = |a: u32, b: u32| {
            if a == NONE || b != NONE && !beats(a, b) {
                b
            } else {
                a
            }
        };
        if leaves == 1 {
            self.nodes[0] = leaf(0);
            return;
        }
        super::work::step();
        let pair = bucket & !1;
        let mut node = (leaves + bucket) as usize / 2;
        self.nodes[node] = better(leaf(pair), leaf(pair + 1));
        while node > 1 {
            node /= 2;
            self.nodes[node] = better(self.nodes[2 * node], self.nodes[2 * node + 1]);
        }
    }
}
