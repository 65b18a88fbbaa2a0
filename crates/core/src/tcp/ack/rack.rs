//! RACK: loss detection by time.
//!
//! A segment is lost when one sent after it was delivered and a reordering window has passed since. Two queues in order
//! of transmission make the work proportional to what changes: first transmissions are in the order of their offsets,
//! retransmissions in the order they were made.
//!
//! **Source.** RFC 8985 sections 5 and 6.
//! **Deviations.** The RTT filter of step 2 compares with the timestamp echo only what is acknowledged cumulatively: the echo
//! on an ACK with SACKs is that of the last segment in order (RFC 7323 4.3), which would reject the SACK of every loss
//! probe, and leave a lost tail to the timer. So does Linux (`tcp_skb_spurious_retrans` in `tcp_clean_rtx_queue`, not in
//! `tcp_sacktag_one`). `reo_wnd` is at most SRTT. Transmissions of the same moment are distinguished by
//! their order, not by their sequence numbers: the RFC's tie-break stands in for a clock that virtual time does not need,
//! and takes new data sent before a retransmission of that moment for newer than it. The timer waits for the earliest
//! of the segments that may be lost, not for the latest. Reordering is seen against what was delivered before the
//! acknowledgment, so that the order of its blocks does not matter (Linux `tcp_check_sack_reordering`), and its degree is
//! kept. On the wheel of Linux the timer has 2 ms more (`tcp_rack_mark_lost`, `TCP_TIMEOUT_MIN_US`).

use crate::tcp::ack::records::{LOST, RETRANS, Record, SACKED};
use crate::tcp::ack::scoreboard::Scoreboard;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use serde::{Deserialize, Serialize};

/// State of RACK.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Rack {
    /// Transmission time of the most recently sent segment that was delivered.
    xmit_ts: Instant,
    /// Its place among the transmissions of that moment.
    order: u16,
    /// Its RTT.
    rtt: Duration,
    /// Highest offset delivered.
    fack: u64,
    /// `fack` before the acknowledgment under way.
    prior_fack: u64,
    /// Lowest segment never retransmitted that the acknowledgment under way delivers below that: acknowledged, SACKed.
    late: [u64; 2],
    /// The end of the segment that gave `rtt` in the acknowledgment under way; the largest number if it was acknowledged.
    last: u64,
    /// Most segments by which one was seen to be late, at least `dup_thresh`.
    degree: u16,
    /// Acknowledgments that showed reordering.
    pub(in crate::tcp) reorderings: u32,
    /// End of the D-SACK round, `u64::MAX` outside one.
    dsack_round: u64,
    /// First transmissions below this offset have been judged.
    judged: u64,
    /// Retransmissions in flight, in the order they were made.
    retransmissions: VecDeque<(u64, Instant)>,
    /// Multiplier of the reordering window.
    reo_wnd_mult: u8,
    /// Recoveries for which the multiplier stays.
    reo_wnd_persist: u8,
}

/// What `detect` found.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Detected {
    /// Weight newly marked lost.
    pub(in crate::tcp) lost: u64,
    /// When the last of the retransmissions among it left.
    pub(in crate::tcp) lost_again: Option<Instant>,
    /// When the next segment would be judged lost.
    pub(in crate::tcp) wait_until: Option<Instant>,
}

impl Rack {
    pub(in crate::tcp) fn new(dup_thresh: u8) -> Rack {
        Rack {
            xmit_ts: Instant::ZERO,
            order: 0,
            rtt: Duration::ZERO,
            fack: 0,
            prior_fack: 0,
            late: [u64::MAX; 2],
            last: 0,
            degree: u16::from(dup_thresh),
            reorderings: 0,
            dsack_round: u64::MAX,
            judged: 0,
            retransmissions: VecDeque::new(),
            reo_wnd_mult: 1,
            reo_wnd_persist: RECOVERIES,
        }
    }

    /// Steps 1 to 3: `record` was newly acknowledged or SACKed. `echo_proves` is whether the timestamp echo shows that
    /// the retransmission itself was delivered; `None` where it says nothing. `sacked`: by a block.
    #[inline]
    pub(in crate::tcp) fn on_delivered(
        &mut self,
        now: Instant,
        record: &Record,
        sacked: bool,
        min_rtt: Option<Duration>,
        echo_proves: Option<bool>,
    ) {
        let rtt = now.since(record.last_tx);
        if record.tx_count > 1 && (echo_proves == Some(false) || min_rtt.is_some_and(|min| rtt < min)) {
            return; // RFC 8985 6.2 step 2: probably the original
        }
        let end = record.end();
        if record.tx_count == 1 && end < self.prior_fack {
            let late = &mut self.late[usize::from(sacked)];
            *late = record.seq.min(*late); // step 3
        }
        self.fack = self.fack.max(end);
        self.take_rtt(rtt, end, sacked);
        if !self.before_or_at(record) {
            self.xmit_ts = record.last_tx;
            self.order = record.order;
        }
    }

    /// RACK.rtt is that of the last segment delivered, also where another was sent later. In Linux what is SACKed comes before what is
    /// acknowledged, both from the first to the last.
    #[inline]
    fn take_rtt(&mut self, rtt: Duration, end: u64, sacked: bool) {
        if !sacked {
            self.last = u64::MAX;
        } else if end < self.last {
            return;
        } else {
            self.last = end;
        }
        self.rtt = rtt;
    }

    /// No retransmission is in flight, and nothing beyond SND.UNA was delivered or judged.
    pub(in crate::tcp) fn is_calm(&self, una: u64) -> bool {
        self.retransmissions.is_empty() && self.judged <= una && self.fack <= una
    }

    /// [`Rack::on_delivered`] and [`Rack::settle`] while it [is calm](Rack::is_calm), for an acknowledgment's last record, which
    /// was sent once.
    #[inline(always)]
    pub(in crate::tcp) fn on_newest(&mut self, now: Instant, record: &Record) {
        self.fack = record.end();
        self.prior_fack = self.fack;
        self.rtt = now.since(record.last_tx);
        if !self.before_or_at(record) {
            self.xmit_ts = record.last_tx;
            self.order = record.order;
        }
    }

    /// Whether [`Rack::detect`] finds nothing to judge or wait for in `head` and what was sent after it.
    #[inline(always)]
    pub(in crate::tcp) fn precedes(&self, head: &Record) -> bool {
        head.tx_count == 1 && !self.before(head)
    }

    /// The end of an acknowledgment: was a segment late, and by how much? `highest` is the end of what is SACKed, or else
    /// SND.UNA.
    #[inline]
    pub(in crate::tcp) fn settle(&mut self, highest: u64, mss: u32) {
        self.prior_fack = self.fack;
        self.last = 0;
        if self.late == [u64::MAX; 2] {
            return;
        }
        for late in core::mem::replace(&mut self.late, [u64::MAX; 2]) {
            if late < highest {
                self.note_reordering(highest - late, mss);
            }
        }
    }

    /// The acknowledgment under way ends a part of a recovery from `una` on, and its timestamp is older than the retransmissions: an
    /// original was late (Linux `tcp_try_undo_partial`). `highest`: as in [`Rack::settle`].
    #[cold]
    pub(in crate::tcp) fn on_late_original(&mut self, una: u64, highest: u64, mss: u32) {
        if una < highest {
            self.note_reordering(highest - una, mss);
        }
    }

    /// A segment was late by `bytes`.
    fn note_reordering(&mut self, bytes: u64, mss: u32) {
        let degree = bytes.div_ceil(u64::from(mss.max(1))).min(MOST_REORDERING);
        self.degree = self.degree.max(degree as u16);
        self.reorderings += 1;
    }

    /// The degree of reordering, segments.
    #[inline]
    pub(in crate::tcp) fn degree(&self) -> u32 {
        u32::from(self.degree)
    }

    /// Step 4: a D-SACK arrived.
    pub(in crate::tcp) fn on_dsack(&mut self, una: u64, nxt: u64) {
        if self.dsack_round == u64::MAX || una >= self.dsack_round {
            self.dsack_round = nxt;
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = RECOVERIES;
        }
    }

    /// A recovery ended.
    pub(in crate::tcp) fn on_recovery_end(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// D-SACKs showed a recovery to have been a mistake while it lasted or afterwards, when it was counted (Linux `tcp_try_undo_dsack`).
    pub(in crate::tcp) fn on_redundant_recovery(&mut self) {
        self.reo_wnd_persist = (self.reo_wnd_persist + 1).min(RECOVERIES);
    }

    #[inline]
    pub(in crate::tcp) fn on_retransmit(&mut self, now: Instant, seq: u64) {
        self.retransmissions.push_back((seq, now));
    }

    /// Step 4's window.
    fn reo_wnd(
        &self,
        recovering: bool,
        sacked: u32,
        min: Option<Duration>,
        srtt: Option<Duration>,
    ) -> Duration {
        if self.reorderings == 0 && (recovering || sacked >= self.degree()) {
            return Duration::ZERO;
        }
        let window = min.unwrap_or_default().mul_div(u64::from(self.reo_wnd_mult), 4);
        window.min(srtt.unwrap_or(window))
    }

    /// Whether `record` was sent before the segment RACK holds (`RACK_sent_after`).
    #[inline]
    fn before(&self, record: &Record) -> bool {
        record.last_tx < self.xmit_ts
            || (record.last_tx == self.xmit_ts && (record.order.wrapping_sub(self.order) as i16) < 0)
    }

    #[inline]
    fn before_or_at(&self, record: &Record) -> bool {
        record.last_tx < self.xmit_ts
            || (record.last_tx == self.xmit_ts && (record.order.wrapping_sub(self.order) as i16) <= 0)
    }

    /// Step 5.
    pub(in crate::tcp) fn detect(
        &mut self,
        now: Instant,
        board: &mut Scoreboard,
        recovering: bool,
        min_rtt: Option<Duration>,
        srtt: Option<Duration>,
    ) -> Detected {
        let mut found = Detected::default();
        let patience = self.rtt + self.reo_wnd(recovering, board.marks.sacked_segments, min_rtt, srtt);
        let mut index = board.index_from(self.judged);
        while let Some(record) = board.ring.get(index) {
            let record = *record;
            if record.flags & (SACKED | LOST) == 0 && record.tx_count == 1 {
                if !self.before(&record) {
                    break;
                }
                let due = record.last_tx + patience;
                if due > now {
                    found.wait_until = Some(due);
                    break;
                }
                found.lost += board.mark_lost(index);
            } else if record.tx_count == 1 && !self.before(&record) {
                break;
            }
            self.judged = record.end();
            index += 1;
            board.work.add(1);
        }
        while let Some(&(seq, at)) = self.retransmissions.front() {
            let seq = board.ring.front().map_or(seq, |head| seq.max(head.seq)); // a part of it may be acknowledged
            let index = board.index_from(seq);
            let current = board
                .ring
                .get(index)
                .is_some_and(|r| r.seq == seq && r.last_tx == at && (r.is(RETRANS) || !r.is(SACKED | LOST)));
            if current {
                if !self.before(&board.ring[index]) {
                    break;
                }
                let due = at + patience;
                if due > now {
                    found.wait_until = Some(found.wait_until.map_or(due, |other| other.min(due)));
                    break;
                }
                if board.ring[index].is(RETRANS) {
                    found.lost_again = Some(at); // they are in order
                }
                found.lost += board.mark_lost(index);
            }
            self.retransmissions.pop_front();
            board.work.add(1);
        }
        found
    }

    /// On a retransmission timeout (6.3): the head, and whatever was sent long enough ago, or `all`.
    pub(in crate::tcp) fn on_timeout(
        &mut self,
        now: Instant,
        board: &mut Scoreboard,
        min: Option<Duration>,
        srtt: Option<Duration>,
        all: bool,
    ) {
        let patience = self.rtt + self.reo_wnd(false, board.marks.sacked_segments, min, srtt);
        board.work.add(board.ring.len());
        for index in 0..board.ring.len() {
            if all || index == 0 || board.ring[index].last_tx + patience <= now {
                board.mark_lost(index);
            }
        }
    }

    /// The reordering window at this smallest RTT, outside recovery.
    #[cfg(test)]
    pub(in crate::tcp) fn window_for_tests(&self, min: Duration) -> Duration {
        min.mul_div(u64::from(self.reo_wnd_mult), 4)
    }

    /// Bytes of its queue.
    pub(in crate::tcp) fn held(&self) -> usize {
        self.retransmissions.capacity() * size_of::<(u64, Instant)>()
    }

    /// A timeout with so many SACKed contradicts the degree (Linux `tcp_enter_loss`).
    pub(in crate::tcp) fn doubt_degree(&mut self, sacked: u32, dup_thresh: u8) {
        if sacked >= self.degree() {
            self.degree = self.degree.min(u16::from(dup_thresh));
        }
    }

    /// Losses were taken back: judge again.
    pub(in crate::tcp) fn reconsider(&mut self, board: &Scoreboard) {
        self.judged = 0;
        self.retransmissions.clear();
        for index in 0..board.ring.len() {
            let record = &board.ring[index];
            if record.tx_count > 1 && !record.is(SACKED) {
                self.retransmissions.push_back((record.seq, record.last_tx));
            }
        }
        // Those of one moment were sent in order.
        let resent = self.retransmissions.make_contiguous();
        resent.sort_unstable_by_key(|&(seq, at)| (at, seq));
    }
}

/// Recoveries for which a wider reordering window lasts (6.2 step 4).
const RECOVERIES: u8 = 16;

/// Largest degree of reordering (Linux `tcp_max_reordering`).
const MOST_REORDERING: u64 = 300;
