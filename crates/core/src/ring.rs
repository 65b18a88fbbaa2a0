//! A queue in a ring whose length is a power of two: a mask instead of a comparison finds a place.

use alloc::vec::Vec;

/// First in, first out.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// Its length is zero or a power of two.
    slots: Vec<T>,
    /// One less than the length, 0 without any.
    mask: usize,
    /// How many were taken and put in all; they run over together.
    taken: usize,
    put: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring {
            slots: Vec::new(),
            mask: 0,
            taken: 0,
            put: 0,
        }
    }
}

impl<T: Copy> Ring<T> {
    /// An empty queue.
    pub fn new() -> Ring<T> {
        Ring::default()
    }

    /// How many are in it.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken)
    }

    /// Whether nothing is in it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.put == self.taken
    }

    /// Puts one at the end.
    #[inline(always)]
    pub fn push_back(&mut self, item: T) {
        if self.len() == self.slots.len() {
            self.grow(item);
        }
        let place = self.put & self.mask;
        self.slots[place] = item;
        self.put = self.put.wrapping_add(1);
    }

    /// Puts several at the end.
    #[inline]
    pub fn extend(&mut self, items: &[T]) {
        let Some(&first) = items.first() else { return };
        while self.slots.len() - self.len() < items.len() {
            self.grow(first);
        }
        let place = self.put & self.mask;
        let behind = self.slots.len() - place;
        if items.len() <= behind {
            self.slots[place..place + items.len()].copy_from_slice(items);
        } else {
            let (one, other) = items.split_at(behind);
            self.slots[place..].copy_from_slice(one);
            self.slots[..other.len()].copy_from_slice(other);
        }
        self.put = self.put.wrapping_add(items.len());
    }

    /// The oldest.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() {
            return None;
        }
        self.slots.get(self.taken & self.mask)
    }

    /// The oldest, to be changed.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        if self.is_empty() {
            return None;
        }
        self.slots.get_mut(self.taken & self.mask)
    }

    /// All, the oldest first, in two pieces.
    #[inline]
    pub fn pieces(&self) -> [&[T]; 2] {
        let begin = self.taken & self.mask;
        let (wrapped, straight) = self.slots.split_at(begin.min(self.slots.len()));
        let first = self.len().min(straight.len());
        [&straight[..first], &wrapped[..self.len() - first]]
    }

    /// The newest, as many as that, which are there, the oldest of them first, in two pieces.
    #[inline]
    pub fn newest_mut(&mut self, count: usize) -> [&mut [T]; 2] {
        debug_assert!(count <= self.len(), "as many are there");
        let begin = (self.put.wrapping_sub(count) & self.mask).min(self.slots.len());
        let (wrapped, straight) = self.slots.split_at_mut(begin);
        let first = count.min(straight.len());
        [&mut straight[..first], &mut wrapped[..count - first]]
    }

    /// Drops the oldest, as many as that, which are there.
    #[inline]
    pub fn forget(&mut self, count: usize) {
        debug_assert!(count <= self.len(), "as many are there");
        self.taken = self.taken.wrapping_add(count);
    }

    /// Takes the oldest.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        let front = self.front().copied();
        self.taken = self.taken.wrapping_add(usize::from(front.is_some()));
        front
    }

    /// Takes the oldest; says which is the oldest then.
    #[inline(always)]
    pub fn advance(&mut self) -> Option<(&T, Option<&T>)> {
        if self.is_empty() {
            return None;
        }
        let front = &self.slots[self.taken & self.mask];
        self.taken = self.taken.wrapping_add(1);
        if self.put == self.taken {
            return Some((front, None));
        }
        Some((front, Some(&self.slots[self.taken & self.mask])))
    }

    /// Moves the oldest to the end, as `change` leaves it, as long as `change` says so; the first of which it does not is the
    /// oldest then, and is not changed.
    #[inline(always)]
    pub fn rotate_while(&mut self, mut change: impl FnMut(&mut T) -> bool) {
        if self.is_empty() {
            return;
        }
        let (mask, mut taken, mut put) = (self.mask, self.taken, self.put);
        let slots = &mut self.slots[..=mask];
        loop {
            let mut item = slots[taken & mask];
            if !change(&mut item) {
                break;
            }
            slots[put & mask] = item;
            (taken, put) = (taken.wrapping_add(1), put.wrapping_add(1));
        }
        (self.taken, self.put) = (taken, put);
    }

    /// Puts the one back that was taken last, before anything was put in.
    #[cold]
    pub fn take_back(&mut self) {
        self.taken = self.taken.wrapping_sub(1);
        debug_assert!(self.len() <= self.slots.len(), "nothing was put in since");
    }

    /// Drops the oldest, if there is one.
    #[inline(always)]
    pub fn forget_front(&mut self) {
        self.taken = self.taken.wrapping_add(usize::from(!self.is_empty()));
    }

    /// Gives back room that many needed and few use. A ring goes through all of its room, so that what is large comes from memory each
    /// time.
    pub fn tighten(&mut self) {
        let room = (4 * self.len()).next_power_of_two().max(LEAST);
        if self.slots.len() < 4 * room {
            return;
        }
        let mut slots = Vec::with_capacity(room);
        for piece in self.pieces() {
            slots.extend_from_slice(piece);
        }
        let filling = self.slots[0];
        (self.taken, self.put, self.mask) = (0, slots.len(), room - 1);
        slots.resize(room, filling);
        self.slots = slots;
    }

    /// Forgets all.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.taken = self.put;
    }

    /// Doubles the room; `item` fills it until it is used.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, item: T) {
        let len = self.slots.len();
        self.slots.resize((2 * len).max(LEAST), item);
        self.mask = self.slots.len() - 1;
        if len == 0 {
            return;
        }
        // Of two rounds of numbers the second now lies behind the first.
        let begin = self.taken & (len - 1);
        if self.taken & len == 0 {
            copy_behind(&mut self.slots, 0..begin);
        } else {
            copy_behind(&mut self.slots, begin..len);
        }
    }
}

/// Copies places of the first half of `slots` to the second. In pieces of a few cache lines: processors have a
/// way to copy much at once that begins slowly, and instruction counts take it for one byte after the other.
pub(crate) fn copy_behind<T: Copy>(slots: &mut [T], places: core::ops::Range<usize>) {
    let (front, behind) = slots.split_at_mut(slots.len() / 2);
    let (front, behind) = (&front[places.clone()], &mut behind[places]);
    for (from, to) in front.chunks(PIECE).zip(behind.chunks_mut(PIECE)) {
        to.copy_from_slice(from);
    }
}

/// The least room of a ring that has held something.
const LEAST: usize = 4;

/// Items that are copied at once.
const PIECE: usize = 16;

#[cfg(test)]
mod tests {
    use super::Ring;
    use crate::rng::Rng;
    use alloc::collections::VecDeque;

    #[test]
    fn agrees_with_a_deque() {
        let mut rng = Rng::from_seed(3);
        let (mut ring, mut deque) = (Ring::new(), VecDeque::new());
        // Counts are about to run over.
        ring.put = usize::MAX - 5;
        ring.taken = ring.put;
        for round in 0..20_000_u64 {
            if rng.below(100) == 0 {
                ring.clear();
                deque.clear();
            } else if rng.below(100) < 40 + 20 * (round / 2_000 % 2) {
                ring.push_back(round);
                deque.push_back(round);
                if round % 16 == 0 {
                    let several = [round, round + 1, round + 2];
                    ring.extend(&several[..round as usize / 16 % 4]);
                    deque.extend(&several[..round as usize / 16 % 4]);
                }
            } else {
                let mut moves = round % 7;
                ring.rotate_while(|item| {
                    *item += u64::from(moves > 0);
                    moves = moves.saturating_sub(1);
                    moves > 0
                });
                for _ in 1..round % 7 {
                    if let Some(front) = deque.pop_front() {
                        deque.push_back(front + 1);
                    }
                }
                assert_eq!(ring.pop_front(), deque.pop_front());
                if round % 3 == 0 {
                    ring.forget_front();
                    deque.pop_front();
                    if let Some(&front) = ring.front() {
                        ring.forget_front();
                        ring.take_back();
                        assert_eq!(ring.front(), Some(&front));
                    }
                } else if round % 3 == 1 {
                    let advanced = ring.advance().map(|(front, next)| (*front, next.copied()));
                    assert_eq!(
                        advanced,
                        deque.pop_front().map(|front| (front, deque.front().copied()))
                    );
                }
            }
            assert_eq!((ring.len(), ring.front()), (deque.len(), deque.front()));
            assert_eq!(ring.is_empty(), deque.is_empty());
            if round % 64 == 0 {
                assert!(ring.pieces().concat().iter().eq(&deque));
                let newest = ring.len() / 3;
                let pieces = ring.newest_mut(newest);
                let pieces = pieces.iter().flat_map(|piece| piece.iter());
                assert!(pieces.eq(deque.iter().skip(deque.len() - newest)));
                let some = ring.len() / 40;
                ring.forget(some);
                deque.drain(..some);
                if round % 256 == 0 {
                    ring.tighten();
                    assert!(ring.pieces().concat().iter().eq(&deque));
                }
            }
        }
    }
}
