//! What a connection holds: pieces of a stream by their place in it, in blocks that come from one pool.

use std::collections::VecDeque;

/// Bytes of a block.
const BLOCK: usize = 16_384;
/// Blocks that are kept for later while nobody needs them; more are given back to the system.
const KEPT: usize = 4096;

type Block = Box<[u8; BLOCK]>;

/// Blocks that wait for use.
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: Vec<Block>,
    /// Blocks in use.
    used: u64,
    /// The most that were in use at once.
    most: u64,
}

impl Pool {
    fn take(&mut self) -> Block {
        self.used += 1;
        self.most = self.most.max(self.used);
        self.free.pop().unwrap_or_else(|| Box::new([0; BLOCK]))
    }

    fn give_back(&mut self, block: Block) {
        self.used -= 1;
        if self.free.len() < KEPT {
            self.free.push(block);
        }
    }

    /// The most bytes that were held at once.
    pub(super) const fn most_bytes(&self) -> u64 {
        self.most * BLOCK as u64
    }

    /// Bytes that are held now.
    pub(super) const fn bytes(&self) -> u64 {
        self.used * BLOCK as u64
    }
}

/// One direction of a stream: the part of it that is needed, perhaps with holes.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Offset of the first block, a multiple of [`BLOCK`].
    base: u64,
    blocks: VecDeque<Option<Block>>,
    /// What lies before this is not needed.
    low: u64,
    /// One past the last byte that was kept.
    end: u64,
}

impl Stream {
    /// Keeps `bytes`, which stand at `offset`. What was released before is dropped.
    pub(super) fn put(&mut self, pool: &mut Pool, mut offset: u64, mut bytes: &[u8]) {
        if offset < self.low {
            let behind = usize::try_from(self.low - offset).unwrap_or(usize::MAX);
            bytes = bytes.get(behind..).unwrap_or_default();
            offset = self.low;
        }
        self.end = self.end.max(offset + bytes.len() as u64);
        while !bytes.is_empty() {
            let (index, at) = self.place(offset);
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - at));
            while self.blocks.len() <= index {
                self.blocks.push_back(None);
            }
            let block = self.blocks[index].get_or_insert_with(|| pool.take());
            block[at..at + now.len()].copy_from_slice(now);
            offset += now.len() as u64;
            bytes = later;
        }
    }

    /// Copies what stands at `offset`; false if not all of it is there.
    pub(super) fn get(&self, mut offset: u64, mut room: &mut [u8]) -> bool {
        while !room.is_empty() {
            if offset < self.base {
                return false;
            }
            let (index, at) = self.place(offset);
            let Some(Some(block)) = self.blocks.get(index) else {
                return false;
            };
            let length = room.len().min(BLOCK - at);
            let (now, later) = room.split_at_mut(length);
            now.copy_from_slice(&block[at..at + length]);
            offset += length as u64;
            room = later;
        }
        true
    }

    /// What lies before `offset` is no longer needed.
    pub(super) fn release(&mut self, pool: &mut Pool, offset: u64) {
        self.low = self.low.max(offset);
        // A stream of which nothing waits holds nothing, also not its last block.
        let needless = self.low >= self.end;
        while !self.blocks.is_empty() && (needless || self.base + BLOCK as u64 <= self.low) {
            if let Some(Some(block)) = self.blocks.pop_front() {
                pool.give_back(block);
            }
            self.base += BLOCK as u64;
        }
        if self.blocks.is_empty() {
            self.base = self.low - self.low % BLOCK as u64;
        }
    }

    /// Nothing of the stream is needed any more, and another may begin.
    pub(super) fn clear(&mut self, pool: &mut Pool) {
        for block in self.blocks.drain(..).flatten() {
            pool.give_back(block);
        }
        (self.base, self.low, self.end) = (0, 0, 0);
    }

    fn place(&self, offset: u64) -> (usize, usize) {
        let ahead = offset - self.base;
        ((ahead / BLOCK as u64) as usize, (ahead % BLOCK as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Pool, Stream};

    fn sample(offset: u64, length: usize) -> Vec<u8> {
        (offset..offset + length as u64)
            .map(|at| ((at * 31) >> 3) as u8)
            .collect()
    }

    #[test]
    fn pieces_in_any_order_are_one_stream() {
        let (mut pool, mut stream) = (Pool::default(), Stream::default());
        let length = 3 * BLOCK + 77;
        for (start, end) in [(30_000, length), (0, 10), (9, 20_001), (20_001, 30_000)] {
            stream.put(&mut pool, start as u64, &sample(start as u64, end - start));
        }
        let mut all = vec![0; length];
        assert!(stream.get(0, &mut all));
        assert!(all == sample(0, length));
        assert!(!stream.get(1, &mut vec![0; 4 * BLOCK]), "beyond what is there");
        stream.release(&mut pool, BLOCK as u64 + 1);
        assert!(!stream.get(BLOCK as u64 - 1, &mut [0; 2]));
        assert!(stream.get(BLOCK as u64 + 1, &mut [0; 2]));
        assert_eq!(pool.bytes(), 3 * BLOCK as u64);
        stream.put(&mut pool, 0, &sample(0, BLOCK + 9)); // an old copy
        assert_eq!(pool.bytes(), 3 * BLOCK as u64);
        stream.clear(&mut pool);
        assert_eq!((pool.bytes(), pool.most_bytes()), (0, 4 * BLOCK as u64));
    }

    #[test]
    fn what_was_read_to_its_end_holds_nothing() {
        let (mut pool, mut stream) = (Pool::default(), Stream::default());
        let mut at = 0;
        for length in [1, BLOCK, 100, 3 * BLOCK - 5, 7] {
            stream.put(&mut pool, at, &sample(at, length));
            let mut room = vec![0; length];
            assert!(stream.get(at, &mut room) && room == sample(at, length));
            at += length as u64;
            stream.release(&mut pool, at);
            assert_eq!(pool.bytes(), 0);
        }
    }

    #[test]
    fn a_hole_is_not_read() {
        let (mut pool, mut stream) = (Pool::default(), Stream::default());
        stream.put(&mut pool, 5, &[1]);
        stream.put(&mut pool, 3 * BLOCK as u64, &[2]);
        assert!(!stream.get(2 * BLOCK as u64, &mut [0]));
        assert!(stream.get(3 * BLOCK as u64, &mut [0]));
        assert_eq!(pool.bytes(), 2 * BLOCK as u64);
        stream.put(&mut pool, BLOCK as u64, &[7; BLOCK]);
        assert!(stream.get(BLOCK as u64, &mut [0; BLOCK]));
    }
}
