//! Flows by rank: a FIFO per bucket, and the waiting buckets in a heap by rank.
//!
//! What the ideal schedulers share. Flows are hashed into buckets, and each scheduler gives a bucket its value. The bucket of the least
//! value is served; buckets of equal values take turns. When the buffer is full the bucket of the greatest value loses its last
//! packet. Steps per packet grow with the logarithm of the buckets that wait, not of all. The greatest values have a heap only
//! while packets are pushed out: it is made for the first of them, and given up after more arrivals without than buckets wait.
//! Nothing is allocated per packet.

use super::hash::HashKey;
use super::store::{NONE, PacketList, PacketPool};
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use heap::Heap;

mod heap;

pub(super) const LIMIT: Parameter = parameter!("limit": Limit = Limit::Packets(1000),
    "What may wait, not counting the packet being sent (as drop-tail)");

pub(super) const BUCKETS: Parameter = parameter!("buckets": Integer(1, 65_536) = 16_384,
    "Flows that are distinguished, by hash (ours; the ideal has one for each flow)");

/// Packets of flows in buckets, and the ranks of the buckets that wait.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    limit: Limit,
    key: HashKey,
    /// Counts what joins the buckets of equal values, so no two buckets that wait have the same rank.
    turn: u64,
    buckets: Vec<Bucket>,
    pool: PacketPool,
    least: Heap<LEAST>,
    greatest: Heap<GREATEST>,
    /// Whether `greatest` holds what `least` holds.
    is_tracked: bool,
    /// Arrivals since a packet was pushed out, while `is_tracked`.
    quiet: usize,
}

/// The heaps, and where a bucket keeps its place in them.
const LEAST: usize = 0;
const GREATEST: usize = 1;

/// One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket {
    packets: PacketList,
    rank: Rank,
    /// Places in the heaps, or [`NONE`].
    places: [u32; 2],
    /// Packets without data among those that wait.
    without_data: u32,
    /// When a packet of it came or left last, if the scheduler wants to know.
    seen: Instant,
}

const _: () = assert!(size_of::<Bucket>() == 64);

/// What waits in a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting<'a> {
    /// The packet that came last.
    pub(super) last: &'a Packet,
    /// Packets without data.
    pub(super) without_data: u32,
}

/// Lower is served first; of equal values the lower turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    value: u64,
    turn: u64,
}

impl Ranked {
    /// From [`LIMIT`] and [`BUCKETS`].
    pub(super) fn new(values: &Values, link: &LinkContext) -> Ranked {
        let bucket = Bucket {
            packets: PacketList::EMPTY,
            rank: Rank { value: 0, turn: 0 },
            places: [NONE; 2],
            without_data: 0,
            seen: Instant::ZERO,
        };
        Ranked {
            limit: values.limit("limit"),
            key: HashKey::new(link.seed),
            turn: 0,
            buckets: vec![bucket; values.integer("buckets").unwrap_or(16_384) as usize],
            pool: PacketPool::new(),
            least: Heap::new(),
            greatest: Heap::new(),
            is_tracked: false,
            quiet: 0,
        }
    }

    /// The bucket of a packet's flow.
    #[inline]
    pub(super) fn bucket(&self, packet: &Packet, context: &QueueContext<'_>) -> u32 {
        let key = context.flows.key(packet.flow);
        self.key.flow(key, self.buckets.len() as u32)
    }

    /// Buckets that there are.
    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    #[inline]
    pub(super) fn total(&self) -> Backlog {
        self.pool.total()
    }

    /// The value of a bucket, as it was given last.
    #[inline]
    pub(super) fn value(&self, bucket: u32) -> u64 {
        self.buckets[bucket as usize].rank.value
    }

    /// Notes that a packet of the bucket comes now; when one came or left before.
    #[inline]
    pub(super) fn see(&mut self, bucket: u32, now: Instant) -> Instant {
        core::mem::replace(&mut self.buckets[bucket as usize].seen, now)
    }

    #[inline]
    pub(super) fn is_empty(&self, bucket: u32) -> bool {
        self.buckets[bucket as usize].packets.packets == 0
    }

    /// What waits in a bucket; `None` if nothing does.
    #[inline]
    pub(super) fn waiting(&self, bucket: u32) -> Option<Waiting<'_>> {
        let here = &self.buckets[bucket as usize];
        Some(Waiting {
            last: self.pool.tail(&here.packets)?,
            without_data: here.without_data,
        })
    }

    /// Puts a packet behind those of its bucket, which has this value from now on; where more waits than the limit holds, the
    /// buckets of the greatest values lose their last packets. `value_of_rest` says what a bucket has from then on, of its number,
    /// its value before and what is left in it.
    #[inline]
    pub(super) fn push(
        &mut self,
        bucket: u32,
        packet: Packet,
        value: u64,
        drops: &mut Vec<(Packet, DropReason)>,
        value_of_rest: impl Fn(u32, u64, Waiting<'_>) -> u64,
    ) {
        let joins = self.is_empty(bucket);
        let here = &mut self.buckets[bucket as usize];
        if joins {
            self.turn += 1;
            here.rank.turn = self.turn;
        }
        here.without_data += u32::from(!packet.segment.is_data());
        self.pool.push(&mut here.packets, packet);
        if joins || value != here.rank.value {
            here.rank.value = value;
            self.place(bucket);
        }
        if self.limit.holds(self.total()) {
            self.rest();
            return;
        }
        let mut own = true;
        while !self.limit.holds(self.total()) {
            let Some((worst, packet)) = self.pop_worst(&value_of_rest) else {
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

    /// Takes the head of the bucket of the least value; `value` says what the bucket has from now on, behind all that are equal,
    /// of its number, its value before, the packet taken and what is left.
    #[inline]
    pub(super) fn pop(
        &mut self,
        now: Instant,
        value: impl FnOnce(u32, u64, &Packet, Option<Waiting<'_>>) -> u64,
    ) -> Option<Packet> {
        let bucket = self.least.first()?;
        let here = &mut self.buckets[bucket as usize];
        let packet = self.pool.pop(&mut here.packets)?;
        here.without_data -= u32::from(!packet.segment.is_data());
        let value = value(bucket, here.rank.value, &packet, self.waiting(bucket));
        self.turn += 1;
        let here = &mut self.buckets[bucket as usize];
        here.seen = now;
        here.rank = Rank {
            value,
            turn: self.turn,
        };
        self.place(bucket);
        Some(packet)
    }

    /// Puts a bucket where its rank and what waits in it want it.
    #[inline]
    fn place(&mut self, bucket: u32) {
        self.least.update(&mut self.buckets, bucket);
        if self.is_tracked {
            self.greatest.update(&mut self.buckets, bucket);
        }
    }

    /// Gives the heap of the greatest up when nothing was pushed out for long: to make it again is paid for by the arrivals since.
    #[inline]
    fn rest(&mut self) {
        if self.is_tracked {
            self.quiet += 1;
            if self.quiet > 2 * self.least.len() + 64 {
                self.is_tracked = false;
                self.greatest.clear(&mut self.buckets);
            }
        }
    }

    /// Takes the tail of the bucket of the greatest rank, and says which bucket that was.
    fn pop_worst(&mut self, value_of_rest: impl Fn(u32, u64, Waiting<'_>) -> u64) -> Option<(u32, Packet)> {
        if !self.is_tracked {
            self.is_tracked = true;
            self.greatest.fill(self.least.members(), &mut self.buckets);
        }
        self.quiet = 0;
        let bucket = self.greatest.first()?;
        let here = &mut self.buckets[bucket as usize];
        let packet = self.pool.pop_tail(&mut here.packets)?;
        here.without_data -= u32::from(!packet.segment.is_data());
        let before = here.rank.value;
        let value = self
            .waiting(bucket)
            .map(|rest| value_of_rest(bucket, before, rest));
        if value != Some(before) {
            self.buckets[bucket as usize].rank.value = value.unwrap_or(before);
            self.place(bucket);
        }
        Some((bucket, packet))
    }
}
