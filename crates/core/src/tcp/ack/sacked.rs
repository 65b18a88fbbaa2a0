//! SACK blocks on the scoreboard, and the losses that follow from them.
//!
//! **Source.** RFC 6675 (`IsLost`, `Update`); RFC 2018 5.
//! **Deviations.** None known.

use crate::tcp::ack::records::{FIN, LOST, PUSH, RETRANS, Record, SACKED};
use crate::tcp::ack::scoreboard::{Run, Scoreboard};
use crate::time::Instant;

/// What a SACK block reports that was not known.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Newly {
    /// Records.
    pub(in crate::tcp) segments: u32,
    /// Sum of their weights.
    pub(in crate::tcp) weight: u64,
    /// A run holds all of the block now.
    pub(in crate::tcp) held: bool,
}

impl Scoreboard {
    /// Drops what the runs say below `una`.
    #[inline]
    pub(in crate::tcp) fn advance(&mut self, una: u64) {
        if self.marks.runs.is_empty() {
            return;
        }
        while let Some(first) = self.marks.runs.front()
            && first.end <= una
        {
            self.marks.runs.pop_front();
            self.work.add(1);
        }
        if self.marks.runs.is_empty() {
            self.marks.known = [0; 4];
        }
        if let Some(first) = self.marks.runs.front_mut()
            && first.start < una
        {
            // Only after a renege or a partial ACK inside a run: count anew.
            first.start = una;
            let (start, end) = (first.start, first.end);
            let segments = (self.index_from(end) - self.index_from(start)) as u32;
            self.marks.runs[0].segments = segments;
        }
    }

    /// A SACK block: calls `newly` for each record it newly covers.
    #[inline(always)]
    pub(in crate::tcp) fn sack(&mut self, left: u64, right: u64, mut newly: impl FnMut(&Record)) -> Newly {
        if let Some(weight) = self.prolong(left, right, &mut newly) {
            return Newly {
                segments: 1,
                weight,
                held: true,
            };
        }
        let (weight, segments) = (self.marks.sacked, self.marks.sacked_segments);
        let held = self.sack_several(left, right, newly);
        Newly {
            segments: self.marks.sacked_segments - segments,
            weight: self.marks.sacked - weight,
            held,
        }
    }

    /// A SACK block that reports one segment more than the last run holds, of which nothing else is known: its weight. `None`: it is
    /// another one, and nothing was done.
    #[inline(always)]
    fn prolong(&mut self, left: u64, right: u64, newly: &mut impl FnMut(&Record)) -> Option<u64> {
        if self.marks.is_blank() {
            return None;
        }
        let marks = &mut *self.marks;
        let last = marks.runs.back_mut()?;
        if left < last.start || left > last.end || !marks.stale.is_empty() {
            return None;
        }
        if self.ring.numbered(marks.behind, last.end).is_none() {
            marks.behind = self.ring.usual_number(last.end, self.mss)?;
        }
        let record = self.ring.numbered(marks.behind, last.end)?;
        if record.end() != right || record.flags & (SACKED | LOST | RETRANS) != 0 {
            return None;
        }
        newly(record);
        record.flags |= SACKED;
        let weight = u64::from(if self.unit == 0 { record.len } else { self.unit });
        marks.sacked += weight;
        marks.sacked_segments += 1;
        last.end = right;
        last.segments += 1;
        marks.behind = marks.behind.wrapping_add(1);
        self.work.search(self.ring.len());
        self.work.add(1);
        Some(weight)
    }

    /// A SACK block of any length.
    #[inline(never)]
    fn sack_several(&mut self, left: u64, right: u64, mut newly: impl FnMut(&Record)) -> bool {
        // Mostly it reports the newest data: it prolongs the last run or comes after it. Runs are aligned to records.
        let last = self.marks.runs.back().copied();
        let from = match last {
            Some(last) if left < last.start => return self.sack_anywhere(left, right, newly),
            Some(last) if right <= last.end => return true,
            Some(last) => left.max(last.end),
            None => left,
        };
        let first = self.index_from(from);
        self.work.search(self.ring.len());
        let after = match self.ring.get(first) {
            Some(record) if record.end() == right => first + 1, // mostly: it reports one segment more
            Some(_) | None => self.index_after(right),
        };
        let mut run = Run {
            start: 0,
            end: 0,
            segments: 0,
        };
        if first < after {
            run.start = self.ring[first].seq;
            run.end = self.ring[after - 1].end();
            run.segments = (after - first) as u32;
            self.mark_sacked(first, after, &mut newly);
        }
        match self.marks.runs.back_mut() {
            _ if run.segments == 0 => {}
            Some(last) if last.end == run.start => {
                last.end = run.end;
                last.segments += run.segments;
            }
            Some(_) | None => self.marks.runs.push_back(run),
        }
        self.marks
            .runs
            .back()
            .is_some_and(|last| last.start <= left && right <= last.end)
    }

    /// A SACK block anywhere.
    fn sack_anywhere(&mut self, left: u64, right: u64, mut newly: impl FnMut(&Record)) -> bool {
        let block = (left, right);
        // Most blocks repeat what is known: one search says so.
        self.work.search(self.ring.len() + self.marks.runs.len());
        let low = self.marks.runs.partition_point(|run| run.end < left);
        if self
            .marks
            .runs
            .get(low)
            .is_some_and(|run| run.start <= left && right <= run.end)
        {
            return true;
        }
        // Align to records.
        let first = self.index_from(left);
        let last = self.index_after(right);
        if first >= last {
            return false;
        }
        let (left, right) = (self.ring[first].seq, self.ring[last - 1].end());
        let low = self.marks.runs.partition_point(|run| run.end < left);
        let high = low
            + self
                .marks
                .runs
                .range(low..)
                .take_while(|run| run.start <= right)
                .count();
        if low == high && self.marks.runs.len() >= MOST_RUNS {
            return false;
        }
        self.work.shift(self.marks.runs.len(), low, high);
        let mut merged = Run {
            start: left,
            end: right,
            segments: 0,
        };
        let mut at = left;
        for index in low..=high {
            let gap_end = if index < high {
                self.marks.runs[index].start.min(right)
            } else {
                right
            };
            if at < gap_end {
                let (from, to) = (self.index_from(at), self.index_from(gap_end));
                merged.segments += (to - from) as u32;
                self.mark_sacked(from, to, &mut newly);
            }
            if index < high {
                let run = self.marks.runs[index];
                merged.segments += run.segments;
                merged.start = merged.start.min(run.start);
                merged.end = merged.end.max(run.end);
                at = at.max(run.end);
            }
        }
        if low == high {
            self.marks.runs.insert(low, merged);
        } else {
            self.marks.runs[low] = merged;
            self.marks.runs.drain(low + 1..high);
        }
        merged.start <= block.0 && block.1 <= merged.end
    }

    /// One past the index of the last record that ends at or before `offset`.
    #[inline]
    fn index_after(&self, offset: u64) -> usize {
        let index = self.index_from(offset);
        match self.ring.get(index.wrapping_sub(1)) {
            Some(record) if record.end() > offset => index - 1,
            Some(_) | None => index,
        }
    }

    /// Marks records that were not SACKed; calls `newly` for each. A peer's block may cover thousands, and where SACKs are
    /// forgotten (`sack1`) it does so again and again: a record costs a few instructions.
    #[inline]
    fn mark_sacked(&mut self, from: usize, to: usize, newly: &mut impl FnMut(&Record)) {
        if from >= to {
            return;
        }
        if !self.marks.stale.is_empty() {
            return self.mark_again(from, to, newly);
        }
        self.work.add(to - from);
        self.mark_each(from, to, newly);
    }

    #[inline]
    fn mark_each(&mut self, from: usize, to: usize, newly: &mut impl FnMut(&Record)) {
        if from >= to {
            return;
        }
        let unit = self.unit;
        let weight = if unit == 0 {
            self.ring[to - 1].end() - self.ring[from].seq // they follow one another
        } else {
            (to - from) as u64 * u64::from(unit)
        };
        let marks = &mut *self.marks;
        marks.sacked += weight;
        marks.sacked_segments += (to - from) as u32;
        for records in self.ring.parts(from, to) {
            for record in records {
                newly(record);
                let flags = record.flags;
                record.flags = flags & (FIN | PUSH) | SACKED;
                if flags & (LOST | RETRANS) != 0 {
                    let weight = u64::from(if unit == 0 { record.len } else { unit });
                    if flags & LOST != 0 {
                        marks.lost -= weight;
                        marks.to_retransmit -= u32::from(flags & RETRANS == 0);
                    }
                    if flags & RETRANS != 0 {
                        marks.retrans -= weight;
                    }
                }
            }
        }
    }

    /// [`Scoreboard::mark_sacked`] where some runs are stale: one that is reported again as a whole costs no look at its
    /// records, whatever its length.
    #[inline(never)]
    fn mark_again(&mut self, from: usize, to: usize, newly: &mut impl FnMut(&Record)) {
        let (low, high) = (self.ring[from].seq, self.ring[to - 1].end());
        let mut stale = core::mem::take(&mut self.marks.stale);
        let mut at = from;
        stale.retain(|run| {
            if run.end <= low || high <= run.start {
                return true;
            }
            if low <= run.start && run.end <= high {
                let first = self.index_from(run.start);
                self.work.add(first - at);
                self.mark_each(at, first, newly);
                at = first + run.segments as usize;
                self.marks.sacked += self.run_weight(run);
                self.marks.sacked_segments += run.segments;
            } else {
                self.clear_run(run);
            }
            false
        });
        self.marks.stale = stale;
        self.work.add(to - at);
        self.mark_each(at, to, newly);
    }

    fn run_weight(&self, run: &Run) -> u64 {
        if self.unit == 0 {
            run.end - run.start
        } else {
            u64::from(run.segments) * u64::from(self.unit)
        }
    }

    /// Forgets what is SACKed without a look at the records: what the peer reports again is soon known again (`sack1`). Who
    /// looks at a record must see to it that it is not in a stale run.
    pub(in crate::tcp) fn set_aside_sacks(&mut self) {
        self.clear_stale(u64::MAX);
        let marks = &mut *self.marks;
        core::mem::swap(&mut marks.runs, &mut marks.stale);
        marks.known = [0; 4];
        marks.judged = 0;
        marks.sacked = 0;
        marks.sacked_segments = 0;
    }

    /// Writes into the records what stale runs that begin at or before `offset` mean.
    #[inline]
    pub(in crate::tcp) fn clear_stale(&mut self, offset: u64) {
        while let Some(run) = self.marks.stale.front().copied()
            && run.start <= offset
        {
            self.marks.stale.pop_front();
            self.clear_run(&run);
        }
    }

    fn clear_run(&mut self, run: &Run) {
        let first = self.index_from(run.start);
        let last = (first + run.segments as usize).min(self.ring.len());
        self.work.add(last - first);
        for records in self.ring.parts(first, last) {
            for record in records {
                record.flags &= !SACKED;
            }
        }
    }

    /// Record `index` is about to be sent again: it is no part of a stale run. Mostly it is the first of one.
    pub(in crate::tcp) fn take_from_stale(&mut self, index: usize) {
        if self.marks.stale.is_empty() {
            return;
        }
        let Some(record) = self.ring.get_mut(index) else {
            return;
        };
        let (seq, end) = (record.seq, record.end());
        let place = self.marks.stale.partition_point(|run| run.end <= seq);
        let Some(run) = self.marks.stale.get_mut(place) else {
            return;
        };
        if seq == run.start && run.segments > 1 {
            record.flags &= !SACKED;
            run.start = end;
            run.segments -= 1;
        } else if run.holds(seq)
            && let Some(run) = self.marks.stale.remove(place)
        {
            self.clear_run(&run);
        }
    }

    /// RFC 6675 `IsLost` over everything: marks what has `threshold` SACKed runs, or more than `threshold - 1` segments
    /// worth of SACKed data, above it. Returns the weight newly marked.
    pub(in crate::tcp) fn judge(&mut self, threshold: u32, resent: Resent) -> u64 {
        let (mut runs, mut weight, mut below) = (0, 0, 0);
        for run in self.marks.runs.iter().rev() {
            runs += 1;
            weight += if self.unit == 0 {
                run.end - run.start
            } else {
                u64::from(run.segments) * u64::from(self.unit)
            };
            if runs >= threshold || weight > u64::from(threshold - 1) * u64::from(self.mss) {
                below = run.start;
                break;
            }
        }
        self.judge_below(below, resent)
    }

    /// Marks every record below `below` that is neither SACKed nor was judged before.
    pub(in crate::tcp) fn judge_below(&mut self, below: u64, resent: Resent) -> u64 {
        if below <= self.marks.judged {
            return 0;
        }
        let mut index = self.index_from(self.marks.judged);
        let mut marked = 0;
        while let Some(record) = self.ring.get(index) {
            if record.end() > below {
                break;
            }
            if record.flags & (SACKED | LOST) == 0 {
                marked += if resent.has(record) {
                    self.mark_original_lost(index)
                } else {
                    self.mark_lost(index)
                };
            }
            index += 1;
            self.work.add(1);
        }
        self.marks.judged = below;
        marked
    }

    /// Judges lost every retransmission after which new data left that is SACKed (Linux until 4.3, `tcp_mark_lost_retrans`: the highest SACKed
    /// offset lies beyond SND.NXT at the retransmission). Returns the weight judged lost.
    pub(in crate::tcp) fn judge_resent(&mut self) -> u64 {
        let Some(highest) = self.index_from(self.highest_sacked()).checked_sub(1) else {
            return 0;
        };
        let newest = self.ring[highest];
        if newest.first_tx < self.marks.oldest_resent {
            return 0; // what is SACKed left before all of them
        }
        let (mut left, mut lost, mut oldest) = (self.marks.retrans, 0, Instant::FAR_FUTURE);
        for index in 0..highest {
            if left == 0 {
                break;
            }
            self.work.add(1);
            let record = self.ring[index];
            if record.flags & (RETRANS | SACKED) != RETRANS {
                continue;
            }
            left = left.saturating_sub(self.weight(record.len));
            // Within one moment the order of transmission decides; that of a record which was sent again is not known any more.
            let later = newest.tx_count == 1 && (newest.order.wrapping_sub(record.order) as i16) > 0;
            if newest.first_tx > record.last_tx || (newest.first_tx == record.last_tx && later) {
                lost += self.mark_lost(index);
            } else {
                oldest = oldest.min(record.last_tx);
            }
        }
        if left == 0 {
            self.marks.oldest_resent = oldest;
        }
        lost
    }
}

/// Which retransmissions are still under way: a record that is one of them is lost in its first transmission only, and
/// is not sent again.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Resent {
    /// Retransmissions of this recovery below this offset, HighRxt (RFC 6675 4, NextSeg (1.a)).
    pub(in crate::tcp) below: u64,
    /// Retransmissions that left after this: no answer to them can have come.
    pub(in crate::tcp) after: Instant,
}

impl Resent {
    /// Whether a retransmission of `record` is under way.
    pub(in crate::tcp) fn has(&self, record: &Record) -> bool {
        record.is(RETRANS) && (record.end() <= self.below || record.last_tx > self.after)
    }
}

/// Separate SACKed runs among which a new one is put: more than these come from lies, or from a loss of every second
/// segment of thousands, and what they say is left to the timeout. At the end of the list runs are added freely.
const MOST_RUNS: usize = 1024;
