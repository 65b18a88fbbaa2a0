//! Data beyond a hole: what is held, as ranges, and what the next acknowledgments report of it.
//!
//! **Source.** RFC 2018 4; RFC 2883 4.
//! **Deviations.** None known.

use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::tcp::receive::held_back::HeldBack;
use crate::tcp::state::work::Work;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// Out-of-order data and what the next acknowledgments must report.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::tcp) struct Beyond {
    /// Disjoint, not adjacent, ascending.
    pub(in crate::tcp) ranges: VecDeque<Range<u64>>,
    /// Ranges reported or changed most recently, newest first. One that `rcv_nxt` has passed, or that became part of
    /// another, keeps its place until it is pushed out.
    pub(in crate::tcp) recent: [(u64, u64); 4],
    /// The blocks written last, if they are those of `recent` but for the right edge of the first.
    #[serde(skip)]
    pub(in crate::tcp) written: Option<Written>,
    /// A duplicate to report first (RFC 2883).
    pub(in crate::tcp) duplicate: Option<(u64, u64)>,
    /// Further pieces that the last segment filled, latest first: for the driver, which keeps the bytes.
    pub(in crate::tcp) pieces: Vec<Range<u64>>,
    /// Acknowledgments that are held back.
    pub(in crate::tcp) held_back: HeldBack,
    pub(in crate::tcp) work: Work,
}

/// Blocks as they stand in a segment.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Written {
    /// What had arrived in order.
    rcv_nxt: u64,
    options: [u32; 6],
    count: u8,
}

impl Beyond {
    /// Puts the pieces of `start..stop` that are not held into `pieces`; returns how much is held, and the first of it.
    pub(in crate::tcp) fn find_missing(&mut self, start: u64, stop: u64) -> (u64, Option<(u64, u64)>) {
        self.pieces.clear();
        let mut first = None;
        let mut held = 0;
        let mut at = start;
        if self.ranges.back().is_some_and(|last| last.end > start) {
            let index = self.ranges.partition_point(|range| range.end <= start);
            for range in self.ranges.range(index..) {
                if range.start >= stop {
                    break;
                }
                if range.start > at {
                    self.pieces.push(at..range.start);
                }
                at = range.end.min(stop);
                let piece = (range.start.max(start), at);
                first = first.or(Some(piece));
                held += piece.1 - piece.0;
            }
        }
        if at < stop {
            self.pieces.push(at..stop);
        }
        self.pieces.reverse();
        (held, first)
    }

    /// Adds a range that begins where the last one ends or after it. False: it begins before, or there are too many.
    #[inline(always)]
    pub(in crate::tcp) fn append(&mut self, start: u64, stop: u64, most: u8) -> bool {
        let full = self.ranges.len() >= MOST_RANGES;
        match self.ranges.back_mut() {
            Some(last) if start == last.end => {
                last.end = stop;
                let range = (last.start, stop);
                self.remember(range, most);
                true
            }
            Some(last) if start < last.end => false,
            Some(_) if full => false,
            Some(_) | None => {
                self.ranges.push_back(start..stop);
                self.remember((start, stop), most);
                true
            }
        }
    }

    /// Adds a range; what is held of it is joined with it.
    pub(in crate::tcp) fn insert(&mut self, start: u64, stop: u64, rcv_nxt: u64, most: u8) {
        if self.append(start, stop, most) {
            return;
        }
        let low = self.ranges.partition_point(|range| range.end < start);
        self.work.search(self.ranges.len());
        let high = low
            + self
                .ranges
                .range(low..)
                .take_while(|range| range.start <= stop)
                .count();
        let mut merged = start..stop;
        for range in self.ranges.range(low..high) {
            merged = merged.start.min(range.start)..merged.end.max(range.end);
        }
        self.work.shift(self.ranges.len(), low, high);
        let range = (merged.start, merged.end);
        if low == high {
            self.ranges.insert(low, merged);
        } else {
            self.ranges[low] = merged;
            self.ranges.drain(low + 1..high);
        }
        self.report(range, range.0 <= rcv_nxt, most);
    }

    /// Puts a range first, if it is not in order now, and forgets the others that are part of it or in order.
    pub(in crate::tcp) fn report(&mut self, range: (u64, u64), in_order: bool, most: u8) {
        let (mut recent, mut count) = ([(0, 0); 4], 0);
        if !in_order {
            recent[0] = range;
            count = 1;
        }
        for other in self.recent {
            let part = (in_order || range.0 <= other.0) && other.1 <= range.1;
            if !part && count < usize::from(most.min(4)) {
                recent[count] = other;
                count += 1;
            }
        }
        self.recent = recent;
        self.written = None;
    }

    /// Puts a range first.
    #[inline(always)]
    pub(in crate::tcp) fn remember(&mut self, range: (u64, u64), most: u8) {
        if self.recent[0].0 != range.0 {
            self.make_room(range, most);
        }
        self.recent[0] = range;
    }

    #[inline(never)]
    fn make_room(&mut self, range: (u64, u64), most: u8) {
        let old = self.recent.iter().position(|other| other.0 == range.0);
        let last = usize::from(most.clamp(1, 4)) - 1;
        self.recent.copy_within(0..old.unwrap_or(last), 1);
        self.written = None;
    }

    /// Whether `start..stop` touches one of the two ranges reported first, or there are fewer.
    pub(in crate::tcp) fn is_among_first(&self, start: u64, stop: u64, rcv_nxt: u64) -> bool {
        let mut reported = self.recent.iter().filter(|range| range.0 >= rcv_nxt).take(2);
        (0..2).any(|_| {
            reported
                .next()
                .is_none_or(|range| start <= range.1 && range.0 <= stop)
        })
    }

    /// Puts the range first that `offset` is in.
    pub(in crate::tcp) fn remember_at(&mut self, offset: u64, most: u8) {
        let index = self.ranges.partition_point(|range| range.end <= offset);
        self.work.search(self.ranges.len());
        if let Some(range) = self.ranges.get(index)
            && range.start <= offset
        {
            let range = (range.start, range.end);
            self.remember(range, most);
        }
    }

    #[inline(always)]
    pub(in crate::tcp) fn write_blocks(
        &mut self,
        rcv_nxt: u64,
        irs: SeqNumber,
        most: u8,
        segment: &mut Segment,
    ) {
        if let Some(written) = &self.written
            && written.rcv_nxt == rcv_nxt
            && self.duplicate.is_none()
        {
            // Mostly a segment came that prolongs the first.
            segment.options = written.options;
            segment.options[1] = SeqNumber::from_offset(irs, self.recent[0].1).0;
            segment.set_sack_blocks(written.count);
            return;
        }
        self.write_all_blocks(rcv_nxt, irs, most, segment);
    }

    #[inline(never)]
    fn write_all_blocks(&mut self, rcv_nxt: u64, irs: SeqNumber, most: u8, segment: &mut Segment) {
        let wire = |offset: u64| SeqNumber::from_offset(irs, offset);
        let repeats = self.duplicate.is_none() && self.recent[0].0 >= rcv_nxt;
        if let Some((left, right)) = self.duplicate.take() {
            segment.push_sack_block(wire(left), wire(right)); // RFC 2883 4
            // RFC 2883 4.2: a duplicate inside a block beyond the cumulative point is followed by that block.
            self.remember_at(left, most);
        }
        for (left, right) in self.recent {
            if segment.sack_blocks() >= usize::from(most) {
                break;
            }
            if left >= rcv_nxt && !segment.push_sack_block(wire(left), wire(right)) {
                break;
            }
        }
        let count = segment.sack_blocks();
        if repeats && count <= 3 {
            self.written = Some(Written {
                rcv_nxt,
                options: segment.options,
                count: count as u8,
            });
        }
    }
}

/// Separate ranges beyond holes that are kept: an attacker's tiny segments cost no more than this (CVE-2018-5390,
/// CVE-2018-6922). What would make another is left to a retransmission.
pub(in crate::tcp) const MOST_RANGES: usize = 1024;
