//! The scoreboard: what was sent, and what is known of it.
//!
//! Records stand in a ring in the order of their offsets. SACKed ranges are kept beside it, aligned to records, so that
//! a block that repeats what is known costs a binary search, and work is proportional to what is newly SACKed. Counters
//! hold the sums that the pipe needs; a test recounts them.
//!
//! **Source.** RFC 6675 (`IsLost`, `Update`, pipe); RFC 2018 8.
//! **Deviations.** A record that SACK blocks cover only in part counts in full as in flight. With `WindowUnit::Packets` every record weighs one MSS (Linux, ns-2).

use crate::tcp::ack::records::FIN;
use crate::tcp::ack::records::LOST;
use crate::tcp::ack::records::PUSH;
use crate::tcp::ack::records::RETRANS;
use crate::tcp::ack::records::Record;
use crate::tcp::ack::records::Records;
use crate::tcp::ack::records::SACKED;
use crate::tcp::state::lazy::{Blank, Lazy};
use crate::tcp::state::work::Work;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A run of SACKed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tcp) struct Run {
    pub(in crate::tcp) start: u64,
    pub(in crate::tcp) end: u64,
    /// Records in it.
    pub(in crate::tcp) segments: u32,
}

impl Run {
    /// Whether `offset` lies in it.
    #[inline]
    pub(in crate::tcp) const fn holds(&self, offset: u64) -> bool {
        self.start <= offset && offset < self.end
    }
}

/// Records, their sum, and what is known of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::tcp) struct Scoreboard {
    pub(in crate::tcp) ring: Records,
    /// Sum of weights.
    pub(in crate::tcp) out: u64,
    /// Blank while everything outstanding was sent once and nothing is known of it.
    pub(in crate::tcp) marks: Lazy<Marks>,
    /// Weight of every record; zero: its length.
    pub(in crate::tcp) unit: u32,
    /// Usual length, for finding records.
    pub(in crate::tcp) mss: u32,
    /// Transmissions so far, wrapping.
    pub(in crate::tcp) transmissions: u16,
    pub(in crate::tcp) work: Work,
}

/// What is known of records that are not just outstanding. Sums are of weights.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::tcp) struct Marks {
    pub(in crate::tcp) runs: VecDeque<Run>,
    /// Discarded runs, whose records still carry the flag [`SACKED`]; the flag is ignored until it is cleared.
    pub(in crate::tcp) stale: VecDeque<Run>,
    pub(in crate::tcp) sacked: u64,
    pub(in crate::tcp) lost: u64,
    pub(in crate::tcp) retrans: u64,
    /// SACKed records.
    pub(in crate::tcp) sacked_segments: u32,
    /// Lost records of which no retransmission is in flight.
    pub(in crate::tcp) to_retransmit: u32,
    /// Duplicate ACKs that stand for SACKed segments when SACK is off.
    pub(in crate::tcp) duplicates: u32,
    /// End of the highest record that was sent more than once.
    pub(in crate::tcp) resent_end: u64,
    /// No record below this offset waits for retransmission.
    pub(in crate::tcp) hint: u64,
    /// Everything below this offset was judged by SACKed data above it.
    pub(in crate::tcp) judged: u64,
    /// No retransmission that is under way left before this.
    pub(in crate::tcp) oldest_resent: Instant,
    /// The number of the record behind the last run, as far as it is known.
    pub(in crate::tcp) behind: u32,
    /// Records that went along with another: their ends, and when they left first.
    pub(in crate::tcp) joined: Vec<(u64, Instant)>,
    /// SACK blocks of the last acknowledgment that lie within runs, as on the wire; zero: none.
    pub(in crate::tcp) known: [u64; 4],
}

impl Blank for Marks {
    fn blank() -> &'static Marks {
        static BLANK: Marks = Marks {
            runs: VecDeque::new(),
            stale: VecDeque::new(),
            sacked: 0,
            lost: 0,
            retrans: 0,
            sacked_segments: 0,
            to_retransmit: 0,
            duplicates: 0,
            resent_end: 0,
            hint: 0,
            judged: 0,
            oldest_resent: Instant::ZERO,
            behind: 0,
            joined: Vec::new(),
            known: [0; 4],
        };
        &BLANK
    }
}

impl Scoreboard {
    pub(in crate::tcp) fn new(mss: u32, packets: bool) -> Scoreboard {
        Scoreboard {
            mss,
            unit: if packets { mss } else { 0 },
            ..Scoreboard::default()
        }
    }

    /// What a record counts in windows.
    #[inline]
    pub(in crate::tcp) fn weight(&self, len: u32) -> u64 {
        u64::from(if self.unit == 0 { len } else { self.unit })
    }

    /// RFC 6675's pipe.
    #[inline]
    pub(in crate::tcp) fn pipe(&self) -> u64 {
        let marks = &*self.marks;
        let left = marks.sacked + marks.lost + u64::from(marks.duplicates) * u64::from(self.mss);
        (self.out + marks.retrans).saturating_sub(left)
    }

    /// [`Scoreboard::pipe`]; of a `CALM` scoreboard all that is outstanding.
    #[inline(always)]
    pub(in crate::tcp) fn pipe_if<const CALM: bool>(&self) -> u64 {
        if CALM { self.out } else { self.pipe() }
    }

    #[inline]
    pub(in crate::tcp) fn segments(&self) -> u32 {
        self.ring.len() as u32
    }

    /// Segments outstanding that are not judged lost.
    pub(in crate::tcp) fn segments_not_lost(&self) -> u32 {
        let each = self.weight(self.mss).max(1);
        self.segments()
            .saturating_sub(self.marks.lost.div_ceil(each) as u32)
    }

    /// Something new is outstanding.
    #[inline(always)]
    pub(in crate::tcp) fn push(&mut self, mut record: Record) {
        let weight = self.weight(record.len);
        self.transmissions = self.transmissions.wrapping_add(1);
        record.order = self.transmissions;
        self.out += weight;
        self.ring.push_back(record);
    }

    /// Index of the first record with `seq >= offset`.
    #[inline]
    pub(in crate::tcp) fn index_from(&self, offset: u64) -> usize {
        self.ring.index_from(offset, self.mss)
    }

    /// Whether anything of that range was sent again.
    pub(in crate::tcp) fn was_resent(&self, left: u64, right: u64) -> bool {
        (self.index_from(left)..self.ring.len())
            .map(|index| &self.ring[index])
            .take_while(|record| record.seq < right)
            .any(|record| record.tx_count > 1)
    }

    /// Removes the first record if `ack` covers it; its flags say what it was. `QUIET`: the scoreboard
    /// [is calm](Scoreboard::is_calm).
    #[inline(always)]
    pub(in crate::tcp) fn pop_acked<const QUIET: bool>(&mut self, ack: u64) -> Option<Record> {
        let front = self.ring.front()?;
        if front.end() > ack {
            return None;
        }
        let record = *front;
        self.ring.drop_front();
        self.work.add(1);
        let weight = self.weight(record.len);
        self.out -= weight;
        if !QUIET && record.flags & (SACKED | LOST | RETRANS) != 0 {
            self.forget(&record, weight);
        }
        Some(record)
    }

    /// Cuts record `index` after `len` bytes, if it is longer than that without its FIN.
    #[cold]
    pub(in crate::tcp) fn split(&mut self, index: usize, len: u32) {
        let Some(record) = self.ring.get_mut(index) else {
            return;
        };
        if record.len - u32::from(record.is(FIN)) <= len {
            return;
        }
        let mut rest = *record;
        record.len = len;
        record.flags &= !(FIN | PUSH);
        rest.seq += u64::from(len);
        rest.len -= len;
        if rest.flags & (LOST | RETRANS) == LOST {
            self.marks.to_retransmit += 1;
        }
        let place = self.marks.runs.partition_point(|run| run.end <= rest.seq);
        let run = self.marks.runs.get_mut(place).filter(|run| run.holds(rest.seq));
        let sacked = rest.is(SACKED) && run.is_some();
        if sacked && let Some(run) = run {
            run.segments += 1;
            self.marks.sacked_segments += 1;
        }
        // With packets as unit there is one more of them.
        let more = u64::from(self.unit);
        self.out += more;
        self.marks.sacked += if sacked { more } else { 0 };
        self.marks.lost += if rest.is(LOST) { more } else { 0 };
        self.marks.retrans += if rest.is(RETRANS) { more } else { 0 };
        self.ring.insert(index + 1, rest);
    }

    /// Record `index`, which is about to be sent again, takes the short records that follow along, as far as nothing of them is SACKed, as
    /// they end at or before `edge`, and as all of it has no more than `most` bytes (Linux `tcp_retrans_try_collapse`).
    pub(in crate::tcp) fn join(&mut self, index: usize, most: u32, edge: u64) {
        let Some(&first) = self.ring.get(index) else {
            return;
        };
        let (mut joined, mut count) = (first, 0);
        while joined.payload() < most
            && let Some(&next) = self.ring.get(index + 1 + count)
            && joined.payload() + next.payload() <= most
            && next.end() <= edge
            && !next.is(SACKED)
        {
            let weight = self.weight(next.len);
            self.forget(&next, weight);
            if self.unit == 0 {
                self.marks.lost += if first.is(LOST) { weight } else { 0 };
                self.marks.retrans += if first.is(RETRANS) { weight } else { 0 };
            } else {
                self.out -= weight;
            }
            joined.len += next.len;
            joined.flags |= next.flags & (FIN | PUSH);
            joined.tx_count = joined.tx_count.max(next.tx_count);
            let place = self.marks.joined.partition_point(|&(end, _)| end < next.end());
            self.marks.joined.insert(place, (next.end(), next.first_tx));
            count += 1;
        }
        if count > 0 {
            self.work.add(self.ring.len() - index);
            self.ring[index] = joined;
            self.ring.remove(index + 1, count);
            let duplicates = self.marks.duplicates;
            self.set_duplicates(duplicates.saturating_sub(count as u32));
        }
    }

    /// What an acknowledgment up to `ack` covers of records that went along with others: when each was sent first.
    pub(in crate::tcp) fn take_joined(&mut self, ack: u64) -> Vec<Instant> {
        let count = self.marks.joined.partition_point(|&(end, _)| end <= ack);
        self.marks.joined.drain(..count).map(|(_, sent)| sent).collect()
    }

    fn forget(&mut self, record: &Record, weight: u64) {
        if record.is(SACKED) {
            self.marks.sacked -= weight;
            self.marks.sacked_segments -= 1;
        }
        if record.is(LOST) {
            self.marks.lost -= weight;
            if !record.is(RETRANS) {
                self.marks.to_retransmit -= 1;
            }
        }
        if record.is(RETRANS) {
            self.marks.retrans -= weight;
        }
    }

    /// The peer may have acknowledged part of the first record: keep the rest.
    #[inline(always)]
    pub(in crate::tcp) fn trim_front(&mut self, ack: u64) -> u64 {
        match self.ring.front() {
            Some(front) if front.seq < ack => self.cut_front(ack),
            Some(_) | None => 0,
        }
    }

    #[cold]
    pub(in crate::tcp) fn cut_front(&mut self, ack: u64) -> u64 {
        let unit = self.unit;
        let Some(front) = self.ring.front_mut() else {
            return 0;
        };
        let cut = (ack - front.seq) as u32;
        front.seq = ack;
        front.len -= cut;
        if unit == 0 {
            let flags = front.flags;
            self.out -= u64::from(cut);
            if flags & SACKED != 0 {
                self.marks.sacked -= u64::from(cut);
            }
            if flags & LOST != 0 {
                self.marks.lost -= u64::from(cut);
            }
            if flags & RETRANS != 0 {
                self.marks.retrans -= u64::from(cut);
            }
        }
        // Records that weigh a segment count when they are acknowledged whole: splitting ACKs earns nothing.
        if unit == 0 { u64::from(cut) } else { 0 }
    }

    /// Whether everything outstanding was sent once and nothing is known of it.
    #[inline]
    pub(in crate::tcp) fn is_clean(&self) -> bool {
        let marks = &self.marks;
        marks.is_blank()
            || marks.sacked
                | marks.lost
                | marks.retrans
                | u64::from(marks.duplicates)
                | marks.stale.len() as u64
                == 0
    }

    /// Whether everything outstanding was sent once, nothing is known of it, and nothing that lies beyond is remembered.
    pub(in crate::tcp) fn is_calm(&self, una: u64) -> bool {
        self.is_clean() && self.marks.resent_end <= una
    }

    /// Remembers the blocks of an acknowledgment, so that a repeated block is recognised without a search. This stays valid until
    /// SACK information is discarded.
    #[inline]
    pub(in crate::tcp) fn set_known(&mut self, blocks: [u64; 4]) {
        self.marks.known = blocks;
    }

    /// Offset one past the highest SACKed record, 0 if none.
    #[inline]
    pub(in crate::tcp) fn highest_sacked(&self) -> u64 {
        self.marks.runs.back().map_or(0, |run| run.end)
    }

    /// Judges record `index` lost. A lost retransmission counts again.
    pub(in crate::tcp) fn mark_lost(&mut self, index: usize) -> u64 {
        let Some(record) = self.ring.get_mut(index) else {
            return 0;
        };
        if record.is(SACKED) || record.flags & (LOST | RETRANS) == LOST {
            return 0;
        }
        let weight = u64::from(if self.unit == 0 { record.len } else { self.unit });
        if record.is(RETRANS) {
            self.marks.retrans -= weight;
        }
        if !record.is(LOST) {
            self.marks.lost += weight;
        }
        record.flags = record.flags & !RETRANS | LOST;
        self.marks.to_retransmit += 1;
        let seq = record.seq;
        self.marks.hint = self.marks.hint.min(seq);
        weight
    }

    /// Judges the first transmission of record `index` lost, while its retransmission counts as under way.
    pub(in crate::tcp) fn mark_original_lost(&mut self, index: usize) -> u64 {
        let Some(record) = self.ring.get_mut(index) else {
            return 0;
        };
        record.flags |= LOST;
        let weight = u64::from(if self.unit == 0 { record.len } else { self.unit });
        self.marks.lost += weight;
        weight
    }

    /// Marks everything lost that is not SACKed (RTO).
    pub(in crate::tcp) fn mark_all_lost(&mut self) -> u64 {
        self.work.add(self.ring.len());
        let mut marked = 0;
        for index in 0..self.ring.len() {
            marked += self.mark_lost(index);
        }
        marked
    }

    /// The peer may have reneged: no SACK information is trusted any more (RFC 2018 8).
    pub(in crate::tcp) fn forget_sacks(&mut self) {
        // Whatever is SACKed is in a run.
        self.clear_stale(u64::MAX);
        self.set_aside_sacks();
        self.clear_stale(u64::MAX);
    }

    /// Nothing was lost after all: originals count as in flight again.
    pub(in crate::tcp) fn forget_losses(&mut self) {
        self.work.add(self.ring.len());
        let len = self.ring.len();
        for record in self.ring.parts(0, len).into_iter().flatten() {
            record.flags &= !LOST;
        }
        self.marks.lost = 0;
        self.marks.to_retransmit = 0;
        self.marks.judged = 0;
    }

    /// Whether something that was sent more than once is outstanding: a retransmission in flight, or the first record (Linux's
    /// `tcp_any_retrans_done`).
    pub(in crate::tcp) fn has_resent(&self) -> bool {
        self.marks.retrans > 0 || self.ring.front().is_some_and(|head| head.tx_count > 1)
    }

    /// Records of which a retransmission is in flight.
    pub(in crate::tcp) fn retransmissions_in_flight(&self) -> u32 {
        let (mut left, mut count) = (self.marks.retrans, 0);
        for index in 0..self.ring.len() {
            if left == 0 {
                break;
            }
            let record = &self.ring[index];
            if record.flags & (RETRANS | SACKED) == RETRANS {
                left = left.saturating_sub(self.weight(record.len));
                count += 1;
            }
        }
        count
    }

    /// Index of the lowest record that waits for retransmission.
    #[inline]
    pub(in crate::tcp) fn next_lost(&mut self) -> Option<usize> {
        if self.marks.to_retransmit == 0 {
            return None;
        }
        let from = self.index_from(self.marks.hint);
        let found = (from..self.ring.len())
            .find(|&index| self.ring[index].flags & (LOST | RETRANS) == LOST)
            .or_else(|| (0..from).find(|&index| self.ring[index].flags & (LOST | RETRANS) == LOST))?;
        self.work.add(if found >= from {
            found - from
        } else {
            self.ring.len()
        });
        self.marks.hint = self.ring[found].seq;
        Some(found)
    }

    /// Record `index` is sent again now.
    pub(in crate::tcp) fn on_retransmit(&mut self, now: Instant, index: usize) -> Option<Record> {
        let record = self.ring.get_mut(index)?;
        self.transmissions = self.transmissions.wrapping_add(1);
        record.order = self.transmissions;
        record.last_tx = now;
        record.tx_count = record.tx_count.saturating_add(1);
        self.marks.resent_end = self.marks.resent_end.max(record.end());
        if record.is(SACKED) {
            return Some(*record); // sent for nothing (`sack1`): what is SACKed does not count (RFC 6675 4)
        }
        if !record.is(RETRANS) {
            if self.marks.retrans == 0 {
                self.marks.oldest_resent = now;
            }
            self.marks.retrans += u64::from(if self.unit == 0 { record.len } else { self.unit });
            if record.is(LOST) {
                self.marks.to_retransmit -= 1;
            }
        }
        record.flags |= RETRANS;
        Some(*record)
    }

    /// What was sent again last, at `index`, is not taken to be in flight (Linux `tcp_send_loss_probe`).
    pub(in crate::tcp) fn uncount(&mut self, index: usize) {
        let Some(record) = self.ring.get_mut(index).filter(|record| record.is(RETRANS)) else {
            return;
        };
        record.flags &= !RETRANS;
        let record = *record;
        self.marks.retrans -= self.weight(record.len);
        self.marks.to_retransmit += u32::from(record.is(LOST));
    }

    #[inline]
    pub(in crate::tcp) fn set_duplicates(&mut self, duplicates: u32) {
        if self.marks.duplicates != duplicates {
            self.marks.duplicates = duplicates;
        }
    }

    /// Everything is acknowledged, and more will be sent.
    pub(in crate::tcp) fn clear(&mut self) {
        self.ring.clear();
        let Some(marks) = self.marks.written() else { return };
        let [mut runs, mut stale] = [&mut marks.runs, &mut marks.stale].map(core::mem::take);
        runs.clear();
        stale.clear();
        *marks = Marks {
            runs,
            stale,
            duplicates: marks.duplicates,
            ..Marks::default()
        };
    }

    /// Everything is acknowledged: an idle flow holds no rings.
    pub(in crate::tcp) fn release(&mut self) {
        self.ring = Records::new();
        let duplicates = self.marks.duplicates;
        self.marks = Lazy::default();
        self.set_duplicates(duplicates);
    }

    /// Judges the first record lost, unless it is.
    pub(in crate::tcp) fn mark_front_lost(&mut self) {
        if self.ring.front().is_some_and(|front| !front.is(LOST)) {
            self.mark_lost(0);
        }
    }

    /// Judges lost what carries more than `mss` bytes and was not SACKed. True if there is any.
    pub(in crate::tcp) fn mark_long_lost(&mut self, mss: u32) -> bool {
        let mut found = false;
        self.clear_stale(u64::MAX);
        for index in 0..self.ring.len() {
            let record = self.ring[index];
            let payload = record.len - u32::from(record.is(FIN));
            if payload > mss && !record.is(SACKED) {
                found |= self.mark_lost(index) > 0;
            }
        }
        found
    }

    /// The sums, recounted: (out, sacked, lost, retrans, sacked records, records to retransmit).
    pub(in crate::tcp) fn recount(&self) -> (u64, u64, u64, u64, u32, u32) {
        let mut sums = (0, 0, 0, 0, 0, 0);
        for record in self.ring.iter() {
            let weight = self.weight(record.len);
            sums.0 += weight;
            let stale = &self.marks.stale;
            if record.is(SACKED) && !stale.iter().any(|run| run.holds(record.seq)) {
                sums.1 += weight;
                sums.4 += 1;
            }
            if record.is(LOST) {
                sums.2 += weight;
                sums.5 += u32::from(!record.is(RETRANS));
            }
            if record.is(RETRANS) {
                sums.3 += weight;
            }
        }
        sums
    }

    /// The sums as kept.
    pub(in crate::tcp) fn sums(&self) -> (u64, u64, u64, u64, u32, u32) {
        (
            self.out,
            self.marks.sacked,
            self.marks.lost,
            self.marks.retrans,
            self.marks.sacked_segments,
            self.marks.to_retransmit,
        )
    }
}
