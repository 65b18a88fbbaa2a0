//! Data beyond a hole: what is held, as ranges, and what the next acknowledgments report of it.
//!
//! **Source.** RFC 2018 4; RFC 2883 4.
//! **Deviations.** With the delayed ACKs of Linux a segment that is partly old is no gap, and is acknowledged in its turn (`tcp_data_queue`).
//! Beyond more than four holes a SACK block is the whole range that a segment is in, as RFC 2018 4 asks; Linux lists four blocks, and a
//! segment that joins one of them to data that is no longer listed extends it only as far as the segment reaches (`tcp_sack_new_ofo_skb`).

use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::tcp::config::{Config, DelayedAck};
use crate::tcp::receive::half::{Receive, Taken};
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

/// How much of a range is held, the first of it, and the first piece of what is not.
type Missing = (u64, Option<(u64, u64)>, Option<Range<u64>>);

/// Blocks as they stand in a segment.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Written {
    /// What had arrived in order.
    rcv_nxt: u64,
    options: [u32; 6],
    count: u8,
}

impl Beyond {
    /// How much of `start..stop` is held, the first of it, and the first piece of what is not; further ones are put into `pieces`.
    #[inline(always)]
    pub(in crate::tcp) fn find_missing(&mut self, start: u64, stop: u64) -> Missing {
        self.pieces.clear();
        if self.ranges.back().is_none_or(|last| last.end <= start) {
            return (0, None, Some(start..stop));
        }
        self.find_missing_between(start, stop)
    }

    #[inline(never)]
    fn find_missing_between(&mut self, start: u64, stop: u64) -> Missing {
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
        let missing = self.pieces.pop();
        (held, first, missing)
    }

    /// Adds a range that begins where the last one ends, of which nothing is held. False: it is another one.
    #[inline(always)]
    pub(in crate::tcp) fn prolong(&mut self, start: u64, stop: u64, most: u8) -> bool {
        match self.ranges.back_mut() {
            Some(last) if start == last.end => {
                last.end = stop;
                let range = (last.start, stop);
                self.remember(range, most);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Adds a range that begins where the last one ends or after it. False: it begins before, or there are too many.
    #[inline(always)]
    pub(in crate::tcp) fn append(&mut self, start: u64, stop: u64, most: u8) -> bool {
        if self.prolong(start, stop, most) {
            return true;
        }
        let full = self.ranges.len() >= MOST_RANGES;
        match self.ranges.back_mut() {
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
    #[inline(always)]
    pub(in crate::tcp) fn insert(&mut self, start: u64, stop: u64, rcv_nxt: u64, most: u8) {
        if !self.append(start, stop, most) {
            self.insert_between(start, stop, rcv_nxt, most);
        }
    }

    #[inline(never)]
    fn insert_between(&mut self, start: u64, stop: u64, rcv_nxt: u64, most: u8) {
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

    /// Blocks that the next acknowledgment reports, were there room for any number.
    pub(in crate::tcp) fn blocks(&self, rcv_nxt: u64) -> usize {
        let reported = || self.recent.iter().filter(|range| range.0 >= rcv_nxt);
        let duplicate = self.duplicate.map_or(0, |(left, _)| {
            let found = left < rcv_nxt || reported().any(|range| (range.0..range.1).contains(&left));
            if found { 1 } else { 2 } // the block that it is in follows it
        });
        reported().count() + duplicate
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

impl Receive {
    /// Takes the payload and FIN of a segment at offset `seq` that is not in order, or leaves or has left a hole. `ANSWERED`: as in
    /// [`Receive::on_data`].
    #[inline(always)]
    pub(super) fn take_any<const ANSWERED: bool>(
        &mut self,
        config: &Config,
        compress: bool,
        seq: i64,
        payload: u32,
        fin: bool,
        limit: u64,
    ) -> Taken {
        let mut taken = Taken {
            start: self.rcv_nxt,
            end: self.rcv_nxt,
            ..Taken::default()
        };
        let end = seq + i64::from(payload);
        let mut start = seq as u64;
        let stop = (end.max(0) as u64).min(limit);
        if seq < self.rcv_nxt as i64 {
            start = self.rcv_nxt;
            let old = (start as i64 - seq).min(i64::from(payload));
            if old > 0 {
                taken.redundant += self.note_old(config, seq, payload, stop > start);
            }
        }
        // A FIN beyond a hole takes its place in the sequence space, and in the SACK blocks.
        let stop = stop
            + u64::from(
                fin && stop == end.max(0) as u64
                    && (stop < self.edge || self.room.is_some())
                    && self.fin_at >= stop,
            );
        if stop > start && !(fin && payload == 0 && start == self.rcv_nxt) {
            taken = self.insert::<ANSWERED>(config, compress, start, stop, taken);
            taken.redundant = taken.redundant.min(payload);
        } else if payload > 0 {
            self.acking.now = true; // nothing new: an immediate ACK
        }
        taken
    }

    /// Puts `start..stop` to what is kept, of which `taken` says what it was so far.
    #[inline(always)]
    fn insert<const ANSWERED: bool>(
        &mut self,
        config: &Config,
        compress: bool,
        start: u64,
        stop: u64,
        mut taken: Taken,
    ) -> Taken {
        self.acking.now |= !compress; // RFC 5681 4.2: out of order, or filling a hole
        let rcv_nxt = self.rcv_nxt;
        let beyond = self.beyond.get_or_insert_default();
        let full = beyond.ranges.len() >= MOST_RANGES && start > rcv_nxt;
        if !full && (ANSWERED || !beyond.held_back.waits()) && beyond.prolong(start, stop, config.sack_blocks)
        {
            // Mostly: one segment more beyond the last hole.
            beyond.pieces.clear();
            (taken.start, taken.end) = (start, stop);
            return taken;
        }
        let (held, first_held, missing) = beyond.find_missing(start, stop);
        taken.redundant += held as u32;
        if config.dsack && beyond.duplicate.is_none() {
            beyond.duplicate = first_held; // RFC 2883 4.1.3; if several, the first
        }
        let first = if full { None } else { missing };
        self.acking.now |= held > 0 || first.is_none();
        let Some(first) = first else {
            beyond.pieces.clear();
            taken.start = start;
            taken.end = start;
            if !config.dsack {
                beyond.remember_at(start, config.sack_blocks); // RFC 2018 4: the block with what just came is first
            }
            return taken;
        };
        // What arrived first stays: of the segment's bytes only those that were missing are taken.
        taken.start = first.start;
        taken.end = first.end;
        self.acking.now |= beyond.held_back.waits() && !beyond.is_among_first(start, stop, rcv_nxt);
        // A part that is old is no gap (Linux `tcp_data_queue`).
        let fills = !beyond.ranges.is_empty() || !matches!(config.delayed_ack, DelayedAck::Linux { .. });
        beyond.insert(start, stop, rcv_nxt, config.sack_blocks);
        if start == rcv_nxt
            && let Some(range) = beyond.ranges.front()
            && range.start <= rcv_nxt
        {
            self.rcv_nxt = range.end;
            beyond.ranges.pop_front();
            taken.advanced = true;
            self.acking.now |= fills;
        }
        taken
    }

    /// The right edge of what the SACK blocks report of data beyond a hole, if they do.
    pub(in crate::tcp) fn right_edge_reported(&self) -> Option<u64> {
        let beyond = self.beyond.as_ref()?;
        let reported = beyond
            .recent
            .iter()
            .filter(|range| range.0 >= self.rcv_nxt.max(1));
        reported.map(|range| range.1).max()
    }

    /// Whether there is anything to report by SACK.
    #[inline]
    pub(in crate::tcp) fn has_blocks(&self) -> bool {
        self.beyond
            .as_ref()
            .is_some_and(|beyond| beyond.duplicate.is_some() || !beyond.ranges.is_empty())
    }

    /// Whether an acknowledgment has more to say of what is beyond a hole: blocks, or that it was held back.
    #[inline(always)]
    pub(in crate::tcp) fn has_disorder(&self) -> bool {
        self.beyond.as_ref().is_some_and(|beyond| {
            !beyond.ranges.is_empty() || beyond.duplicate.is_some() || beyond.held_back.waits()
        })
    }

    /// Octets of the SACK blocks that an acknowledgment reports, at most `most`; beside timestamps three fit (RFC 2018 3).
    #[inline(never)]
    pub(in crate::tcp) fn blocks_len(&self, sack: bool, timestamps: bool, most: u8) -> u32 {
        let fit = usize::from(most).min(if timestamps { 3 } else { 4 });
        match &self.beyond {
            Some(beyond) if sack && self.has_blocks() => 4 + 8 * beyond.blocks(self.rcv_nxt).min(fit) as u32,
            Some(_) | None => 0,
        }
    }

    /// Writes the SACK blocks of an acknowledgment and forgets the duplicate, which is reported once.
    #[inline(always)]
    pub(in crate::tcp) fn write_blocks(&mut self, irs: SeqNumber, most: u8, segment: &mut Segment) {
        if let Some(beyond) = &mut self.beyond {
            beyond.write_blocks(self.rcv_nxt, irs, most, segment);
        }
    }
}

/// Separate ranges beyond holes that are kept: an attacker's tiny segments cost no more than this (CVE-2018-5390,
/// CVE-2018-6922). What would make another is left to a retransmission.
pub(in crate::tcp) const MOST_RANGES: usize = 1024;
