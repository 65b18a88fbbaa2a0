//! The records of the scoreboard in a ring whose length is a power of two: a mask finds a place, and what is at the end
//! costs no question where the ring begins again.

use crate::ring::copy_behind;
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};
use serde::{Deserialize, Serialize};

/// A transmitted segment that is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Record {
    /// First offset.
    pub(in crate::tcp) seq: u64,
    /// First transmission.
    pub(in crate::tcp) first_tx: Instant,
    /// Last transmission.
    pub(in crate::tcp) last_tx: Instant,
    /// Sequence space: payload and FIN.
    pub(in crate::tcp) len: u32,
    /// Place of the last transmission among those of the same moment, wrapping.
    pub(in crate::tcp) order: u16,
    /// Transmissions, at most 255.
    pub(in crate::tcp) tx_count: u8,
    /// [`SACKED`], [`LOST`], [`RETRANS`], [`FIN`], [`PUSH`].
    pub(in crate::tcp) flags: u8,
}

/// Selectively acknowledged.
pub(in crate::tcp) const SACKED: u8 = 1;
/// Judged lost.
pub(in crate::tcp) const LOST: u8 = 2;
/// A retransmission is in flight.
pub(in crate::tcp) const RETRANS: u8 = 4;
/// Carries our FIN.
pub(in crate::tcp) const FIN: u8 = 8;
/// The end of what the application wrote.
pub(in crate::tcp) const PUSH: u8 = 16;

impl Record {
    /// What is transmitted for the first time.
    #[inline(always)]
    pub(in crate::tcp) fn new(now: Instant, seq: u64, len: u32, flags: u8) -> Record {
        Record {
            seq,
            first_tx: now,
            last_tx: now,
            len,
            order: 0,
            tx_count: 1,
            flags,
        }
    }

    /// One past its last offset.
    #[inline]
    pub(in crate::tcp) fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Bytes of payload.
    #[inline]
    pub(in crate::tcp) fn payload(&self) -> u32 {
        self.len - u32::from(self.is(FIN))
    }

    #[inline]
    pub(in crate::tcp) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Records in the order of their offsets; the index counts from the first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(in crate::tcp) struct Records {
    /// Its length is zero or a power of two.
    slots: Vec<Record>,
    /// How many were taken and put in all; they run over together.
    taken: u32,
    put: u32,
}

/// The number of the first record, and the records.
#[derive(Serialize, Deserialize)]
struct Stored(u32, Vec<Record>);

impl From<Records> for Stored {
    fn from(records: Records) -> Stored {
        Stored(records.taken, records.iter().copied().collect())
    }
}

impl From<Stored> for Records {
    fn from(Stored(first, stored): Stored) -> Records {
        let mut records = Records {
            slots: Vec::new(),
            taken: first,
            put: first,
        };
        stored.into_iter().for_each(|record| records.push_back(record));
        records
    }
}

impl Records {
    pub(in crate::tcp) fn new() -> Records {
        Records::default()
    }

    #[inline(always)]
    pub(in crate::tcp) fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken) as usize
    }

    #[inline(always)]
    pub(in crate::tcp) fn is_empty(&self) -> bool {
        self.put == self.taken
    }

    /// How many it has room for.
    pub(in crate::tcp) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Place of the record that is put as number `number`.
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        number as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline(always)]
    pub(in crate::tcp) fn get(&self, index: usize) -> Option<&Record> {
        if index >= self.len() {
            return None;
        }
        self.slots.get(self.place(self.taken.wrapping_add(index as u32)))
    }

    #[inline(always)]
    pub(in crate::tcp) fn get_mut(&mut self, index: usize) -> Option<&mut Record> {
        if index >= self.len() {
            return None;
        }
        let place = self.place(self.taken.wrapping_add(index as u32));
        self.slots.get_mut(place)
    }

    #[inline(always)]
    pub(in crate::tcp) fn front(&self) -> Option<&Record> {
        if self.is_empty() {
            return None;
        }
        self.slots.get(self.place(self.taken))
    }

    #[inline(always)]
    pub(in crate::tcp) fn front_mut(&mut self) -> Option<&mut Record> {
        self.get_mut(0)
    }

    #[inline]
    pub(in crate::tcp) fn back(&self) -> Option<&Record> {
        self.get(self.len().wrapping_sub(1))
    }

    /// Forgets the first record, if there is one.
    #[inline(always)]
    pub(in crate::tcp) fn drop_front(&mut self) {
        self.taken = self.taken.wrapping_add(u32::from(self.put != self.taken));
    }

    /// The record that was dropped last, until another is put in its place.
    #[inline(always)]
    pub(in crate::tcp) fn dropped(&self) -> Option<&Record> {
        self.slots.get(self.place(self.taken.wrapping_sub(1)))
    }

    #[inline(always)]
    pub(in crate::tcp) fn push_back(&mut self, record: Record) {
        if self.len() == self.slots.len() {
            self.grow(record);
        }
        let place = self.place(self.put);
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = record;
        }
        self.put = self.put.wrapping_add(1);
    }

    /// Puts a record before the one at `index`, or at the end.
    pub(in crate::tcp) fn insert(&mut self, index: usize, record: Record) {
        self.push_back(record);
        for at in (index + 1..self.len()).rev() {
            self[at] = self[at - 1];
        }
        self[index] = record;
    }

    /// Takes out `count` records from the one at `index` on, as far as there are so many.
    pub(in crate::tcp) fn remove(&mut self, index: usize, count: usize) {
        let count = count.min(self.len().saturating_sub(index));
        for at in index + count..self.len() {
            self[at - count] = self[at];
        }
        self.put = self.put.wrapping_sub(count as u32);
    }

    /// The number of records at the beginning for which `holds` says yes; it says no from then on.
    pub(in crate::tcp) fn partition_point(&self, mut holds: impl FnMut(&Record) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(&self[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Index of the first record with `seq >= offset`; `usual` is the usual length.
    #[inline]
    pub(in crate::tcp) fn index_from(&self, offset: u64, usual: u32) -> usize {
        let Some(front) = self.front() else { return 0 };
        if offset <= front.seq {
            return 0;
        }
        let guess = ((offset - front.seq) / u64::from(usual)) as usize;
        if self.get(guess).is_some_and(|record| record.seq == offset) {
            return guess;
        }
        self.search(offset)
    }

    /// The number of the record with `seq == offset`, if all before it have the usual length.
    #[inline(always)]
    pub(in crate::tcp) fn usual_number(&self, offset: u64, usual: u32) -> Option<u32> {
        let front = self.front()?;
        let index = offset.checked_sub(front.seq)? / u64::from(usual);
        Some(self.taken.wrapping_add(index as u32))
    }

    /// The record that was put as number `number`, if it is there and begins at `offset`.
    #[inline(always)]
    pub(in crate::tcp) fn numbered(&mut self, number: u32, offset: u64) -> Option<&mut Record> {
        if number.wrapping_sub(self.taken) >= self.put.wrapping_sub(self.taken) {
            return None;
        }
        let place = self.place(number);
        self.slots.get_mut(place).filter(|record| record.seq == offset)
    }

    #[inline(never)]
    fn search(&self, offset: u64) -> usize {
        self.partition_point(|record| record.seq < offset)
    }

    pub(in crate::tcp) fn iter(&self) -> impl Iterator<Item = &Record> {
        (0..self.len()).map(|index| &self[index])
    }

    /// Records `from..to` as slices: a loop over one needs no look at the ring for each record.
    #[inline]
    pub(in crate::tcp) fn parts(&mut self, from: usize, to: usize) -> [&mut [Record]; 2] {
        let to = to.min(self.len());
        let from = from.min(to);
        let begin = self.place(self.taken.wrapping_add(from as u32));
        // Without any room there is no such place.
        let (wrapped, straight) = self.slots.split_at_mut_checked(begin).unwrap_or_default();
        let count = to - from;
        let first = count.min(straight.len());
        [&mut straight[..first], &mut wrapped[..count - first]]
    }

    /// Forgets all records. Little room is kept; without any the numbers begin anew, since a number has no place then.
    pub(in crate::tcp) fn clear(&mut self) {
        if self.slots.len() > MOST_KEPT {
            *self = Records::new();
        }
        self.taken = self.put;
    }

    /// Gives back room that many records needed and few use. A ring goes through all of its room, so that what is large comes from
    /// memory each time.
    #[cold]
    #[inline(never)]
    pub(in crate::tcp) fn tighten(&mut self) {
        let room = (2 * self.len()).next_power_of_two().max(LEAST_KEPT);
        let Some(&filling) = self.front().filter(|_| self.slots.len() >= 2 * room) else {
            return;
        };
        let mut slots = vec![filling; room];
        for number in 0..self.len() as u32 {
            let number = self.taken.wrapping_add(number);
            slots[number as usize & (room - 1)] = self.slots[self.place(number)];
        }
        self.slots = slots;
    }

    /// Doubles the room; `record` fills it until it is used.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, record: Record) {
        let len = self.slots.len();
        let room = (2 * len).max(LEAST);
        self.slots.reserve_exact(room - len);
        self.slots.resize(room, record);
        if len == 0 {
            return;
        }
        // Of two rounds of numbers the second now lies behind the first.
        let taken = self.taken as usize;
        let begin = taken & (len - 1);
        if taken & len == 0 {
            copy_behind(&mut self.slots, 0..begin);
        } else {
            copy_behind(&mut self.slots, begin..len);
        }
    }
}

impl Index<usize> for Records {
    type Output = Record;
    #[inline(always)]
    fn index(&self, index: usize) -> &Record {
        assert!(index < self.len(), "record {index} of {}", self.len());
        &self.slots[self.place(self.taken.wrapping_add(index as u32))]
    }
}

impl IndexMut<usize> for Records {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut Record {
        assert!(index < self.len(), "record {index} of {}", self.len());
        let place = self.place(self.taken.wrapping_add(index as u32));
        &mut self.slots[place]
    }
}

/// The least room that is made: many ends send nothing but a FIN.
const LEAST: usize = 1;

/// No less room is left when much is given back.
const LEAST_KEPT: usize = 4;

/// So much room is kept when all records are forgotten.
const MOST_KEPT: usize = 8;

#[cfg(test)]
mod tests {
    use super::{LEAST_KEPT, Records, Stored};
    use crate::rng::Rng;
    use crate::tcp::ack::records::Record;
    use crate::time::Instant;
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    fn record(seq: u64) -> Record {
        Record::new(Instant::ZERO, seq, 1, 0)
    }

    #[test]
    fn without_room_there_are_no_parts() {
        let stored = Stored(7, Vec::new());
        assert!(
            Records::from(stored)
                .parts(0, 1)
                .into_iter()
                .all(|part| part.is_empty())
        );
        let mut records = Records::new();
        (0..9).for_each(|seq| records.push_back(record(seq)));
        records.clear();
        assert_eq!(records.capacity(), 0);
        assert!(records.parts(0, 1).into_iter().all(|part| part.is_empty()));
    }

    #[test]
    fn agrees_with_a_deque() {
        let mut rng = Rng::from_seed(5);
        let (mut records, mut deque) = (Records::new(), VecDeque::new());
        // Counts are about to run over.
        records.put = u32::MAX - 5;
        records.taken = records.put;
        for round in 0..20_000_u64 {
            let len = deque.len() as u64;
            match rng.below(100) {
                draw if draw < 40 + 20 * (round / 2_000 % 2) => {
                    records.push_back(record(round));
                    deque.push_back(round);
                }
                draw if draw < 90 => {
                    records.drop_front();
                    deque.pop_front();
                }
                draw if draw < 95 => {
                    let index = rng.below(len + 1) as usize;
                    records.insert(index, record(round));
                    deque.insert(index, round);
                    let index = rng.below(len + 2) as usize;
                    let count = rng.below(3) as usize;
                    records.remove(index, count);
                    let end = (index + count).min(deque.len());
                    deque.drain(index.min(end)..end);
                }
                _ => {
                    let (from, to) = (rng.below(len + 1) as usize, rng.below(len + 3) as usize);
                    for part in records.parts(from, to) {
                        part.iter_mut().for_each(|record| record.seq += 1);
                    }
                    let to = to.min(deque.len());
                    deque.range_mut(from.min(to)..to).for_each(|seq| *seq += 1);
                }
            }
            assert_eq!(records.len(), deque.len());
            assert_eq!(records.is_empty(), deque.is_empty());
            assert_eq!(records.front().map(|record| record.seq), deque.front().copied());
            let middle = records.get(deque.len() / 2).map(|record| record.seq);
            assert_eq!(middle, deque.get(deque.len() / 2).copied());
            assert_eq!(records.back().map(|record| record.seq), deque.back().copied());
            if round % 50 == 0 {
                records.tighten();
                assert!(
                    records.capacity() <= (4 * deque.len()).next_power_of_two().max(LEAST_KEPT)
                        || deque.is_empty()
                );
                let held: Vec<u64> = records.iter().map(|record| record.seq).collect();
                assert!(held.iter().eq(deque.iter()));
                let found = records.partition_point(|record| record.seq < round / 2);
                assert!(records.iter().take(found).all(|record| record.seq < round / 2) || found > 0);
            }
        }
    }
}
