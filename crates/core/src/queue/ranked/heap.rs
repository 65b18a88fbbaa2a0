//! A heap with four children to a node, of buckets that know their places in it.

use super::super::store::NONE;
use super::super::work;
use super::{Bucket, GREATEST, Rank};
use alloc::vec::Vec;

/// Children of a node.
const CHILDREN: usize = 4;

/// The waiting buckets, the one of the least rank first, or with `SIDE` = [`GREATEST`] the one of the greatest.
#[derive(Clone, Debug)]
pub(super) struct Heap<const SIDE: usize> {
    nodes: Vec<Node>,
}

/// A bucket and its rank, which is turned round where the greatest comes first.
#[derive(Clone, Copy, Debug)]
struct Node {
    rank: Rank,
    bucket: u32,
}

impl<const SIDE: usize> Heap<SIDE> {
    pub(super) const fn new() -> Heap<SIDE> {
        Heap { nodes: Vec::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The bucket that comes first.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        self.nodes.first().map(|node| node.bucket)
    }

    /// All buckets, in no order.
    pub(super) fn members(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().map(|node| node.bucket)
    }

    pub(super) fn clear(&mut self, buckets: &mut [Bucket]) {
        for node in self.nodes.drain(..) {
            buckets[node.bucket as usize].places[SIDE] = NONE;
        }
    }

    /// Puts all these into the heap, which is empty.
    pub(super) fn fill(&mut self, members: impl Iterator<Item = u32>, buckets: &mut [Bucket]) {
        for (place, bucket) in members.enumerate() {
            self.nodes.push(Self::node(bucket, buckets));
            buckets[bucket as usize].places[SIDE] = place as u32;
        }
        for place in (0..self.nodes.len().div_ceil(CHILDREN)).rev() {
            self.sink(place, self.nodes[place], buckets);
        }
    }

    /// Puts a bucket where its rank wants it, or takes it out if nothing waits in it.
    #[inline]
    pub(super) fn update(&mut self, buckets: &mut [Bucket], bucket: u32) {
        let here = &buckets[bucket as usize];
        let (waits, place) = (here.packets.packets > 0, here.places[SIDE]);
        let node = Self::node(bucket, buckets);
        match (place, waits) {
            (NONE, false) => {}
            (NONE, true) => {
                self.nodes.push(node);
                self.rise(self.nodes.len() - 1, node, buckets);
            }
            (place, true) => self.settle(place as usize, node, buckets),
            (place, false) => {
                buckets[bucket as usize].places[SIDE] = NONE;
                let Some(last) = self.nodes.pop() else { return };
                if (place as usize) < self.nodes.len() {
                    self.settle(place as usize, last, buckets);
                }
            }
        }
    }

    #[inline]
    fn node(bucket: u32, buckets: &[Bucket]) -> Node {
        let Rank { value, turn } = buckets[bucket as usize].rank;
        let rank = match SIDE {
            GREATEST => Rank {
                value: !value,
                turn: !turn,
            },
            _ => Rank { value, turn },
        };
        Node { rank, bucket }
    }

    /// Puts a node at a free place, or above or below it.
    #[inline]
    fn settle(&mut self, place: usize, node: Node, buckets: &mut [Bucket]) {
        if place > 0 && node.rank < self.nodes[(place - 1) / CHILDREN].rank {
            self.rise(place, node, buckets);
        } else {
            self.sink(place, node, buckets);
        }
    }

    #[inline]
    fn rise(&mut self, mut place: usize, node: Node, buckets: &mut [Bucket]) {
        while place > 0 {
            work::step();
            let parent = (place - 1) / CHILDREN;
            if self.nodes[parent].rank <= node.rank {
                break;
            }
            self.put(place, self.nodes[parent], buckets);
            place = parent;
        }
        self.put(place, node, buckets);
    }

    #[inline]
    fn sink(&mut self, mut place: usize, node: Node, buckets: &mut [Bucket]) {
        loop {
            work::step();
            let first = CHILDREN * place + 1;
            let end = (first + CHILDREN).min(self.nodes.len());
            let Some(children) = self.nodes.get(first..end) else {
                break;
            };
            let Some((nth, least)) = children.iter().enumerate().min_by_key(|(_, child)| child.rank) else {
                break;
            };
            if node.rank <= least.rank {
                break;
            }
            self.put(place, *least, buckets);
            place = first + nth;
        }
        self.put(place, node, buckets);
    }

    #[inline]
    fn put(&mut self, place: usize, node: Node, buckets: &mut [Bucket]) {
        self.nodes[place] = node;
        buckets[node.bucket as usize].places[SIDE] = place as u32;
    }
}
