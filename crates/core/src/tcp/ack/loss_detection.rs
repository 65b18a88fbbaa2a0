//! Which segments are lost, and what is sent when none is known to be and the window has room.
//!
//! **Source.** RFC 6675 4 (`NextSeg`) and 5; RFC 6582 3.2; RFC 5827 3; RFC 8985 6.2 by `rack`.
//! **Deviations.** Early retransmit as `recovery` says. What counting SACKs judges lost is not sent again while its retransmission
//! may be answered yet: in this recovery (RFC 6675's HighRxt), and within the smallest RTT also what a rescue or a probe sent. Under FACK a
//! retransmission is lost, too, once new data that left after it is SACKed, as in Linux until 4.3 (`tcp_mark_lost_retrans`).
//! Linux gives FACK up for a connection whose path was seen to reorder (`tcp_disable_fack`); here it stays on.

use crate::tcp::Shared;
use crate::tcp::ack::records::{LOST, RETRANS, Record, SACKED};
use crate::tcp::ack::sacked::Resent;
use crate::tcp::ack::scoreboard::Scoreboard;
use crate::tcp::ack::state::Recovery;
use crate::tcp::config::{EarlyRetransmit, TimeoutRules};
use crate::tcp::state::types::CaState;
use crate::time::{Duration, Instant};

/// What counting duplicates goes by where few segments are out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Few {
    /// SACKed segments (or duplicate ACKs) that are enough; `None`: the usual number.
    pub(super) early: Option<u32>,
    /// One SACKed segment is enough (`thin_dupack`).
    pub(super) thin: bool,
    /// The acknowledgment reports marks: nothing is delayed.
    pub(super) marked: bool,
}

/// A segment that is sent again although it is not known to be lost.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct LastResort {
    /// Its record.
    pub(in crate::tcp) index: usize,
    /// HighRxt as it stays, if sending this one does not move it.
    high_rxt: Option<u64>,
}

/// SACKed segments (or duplicate ACKs) that are enough because few segments are `out` and nothing new may be sent; `None`: the
/// usual number.
pub(super) fn early_threshold(
    kind: EarlyRetransmit,
    out: u32,
    blocked: impl FnOnce() -> bool,
) -> Option<u32> {
    let enough = match kind {
        EarlyRetransmit::Off => return None,
        EarlyRetransmit::Rfc5827 => out.saturating_sub(1), // RFC 5827 3.2
        EarlyRetransmit::Immediate | EarlyRetransmit::Delayed => 1,
    };
    ((2..4).contains(&out) && blocked()).then_some(enough)
}

impl Recovery {
    /// Whether a loss is being repaired.
    fn repairs(&self) -> bool {
        matches!(self.state, CaState::Recovery | CaState::Loss)
    }

    /// RFC 5681 4.3: what was sent again after the last reduction was lost, which lowers the window once more. In Linux it does not.
    pub(super) fn has_lost_twice(&self, shared: &Shared) -> bool {
        shared.config.timeout_rules == TimeoutRules::Rfc
            && self.lost_again.is_some_and(|at| at >= self.reduced_at)
    }

    /// Whether RACK has just judged a retransmission lost.
    #[cfg(test)]
    pub(in crate::tcp) const fn lost_a_retransmission(&self) -> bool {
        self.lost_again.is_some()
    }

    /// Judges losses by RACK, if that is on. Returns what is newly judged lost.
    pub(super) fn detect_by_time(
        &mut self,
        now: Instant,
        shared: &Shared,
        board: &mut Scoreboard,
    ) -> Option<u64> {
        let recovering = self.repairs();
        let found = self
            .rack
            .as_mut()?
            .detect(now, board, recovering, shared.rtt.min(), shared.rtt.srtt());
        let least = shared.config.timer_grid.least_timeout();
        self.wait_until = found
            .wait_until
            .map_or(Instant::FAR_FUTURE, |at| at.max(now) + least);
        self.lost_again = found.lost_again;
        Some(found.lost)
    }

    /// Judges losses by what was SACKed, or by duplicate ACKs. Returns what is newly judged lost.
    pub(super) fn detect_by_count(
        &mut self,
        now: Instant,
        shared: &Shared,
        board: &mut Scoreboard,
        una: u64,
        few: Few,
    ) -> u64 {
        let config = &shared.config;
        let recovering = self.repairs();
        let threshold = u32::from(config.dup_thresh.max(1));
        if !shared.sack {
            let needed = few.early.map_or(threshold, |early| early.min(threshold));
            // RFC 6582 3.2 step 1: not for what was sent before the last recovery.
            if !recovering
                && board.marks.duplicates >= needed
                && (self.episode.recover == 0 || una > self.episode.recover)
            {
                return board.mark_lost(0);
            }
            return 0;
        }
        let resent = self.resent(now, shared);
        let mut lost = board.judge(threshold, resent);
        if config.fack && self.state == CaState::Recovery && board.marks.retrans > 0 {
            lost += board.judge_resent();
        }
        let highest = board.highest_sacked();
        if config.fack && board.marks.sacked_segments > 0 {
            let spread = board.index_from(highest) as u32;
            if spread > threshold {
                let upto = if self.is_probing() {
                    highest // a probe's SACK shows that everything before it is gone
                } else {
                    board.ring[(spread - threshold) as usize].seq
                };
                lost += board.judge_below(upto, resent);
            }
        }
        if recovering {
            return lost;
        }
        if lost == 0
            && self.dup_acks >= threshold
            && board.marks.to_retransmit == 0
            && !resent.has(&board.ring[0])
        {
            lost += board.mark_lost(0); // RFC 6675 5 (4)
        }
        if lost == 0 && few.thin {
            return board.judge_below(highest, resent);
        }
        if lost == 0
            && let Some(needed) = few.early
            && board.marks.sacked_segments >= needed
        {
            // Linux 3.x `tcp_pause_early_retransmit`
            if config.early_retransmit == EarlyRetransmit::Delayed
                && !few.marked
                && let Some(srtt) = shared.rtt.srtt()
            {
                let quarter = srtt.mul_div(1, 4);
                let at = now + quarter.max(Duration::from_millis(2));
                if at < shared.timers.rto_at() {
                    self.wait_until = at; // every acknowledgment begins the delay anew (Linux 3.x `tcp_ack`)
                    return 0;
                }
            }
            lost += board.judge_below(highest, resent);
        }
        lost
    }

    /// Which retransmissions cannot have been lost yet, as far as counting SACKs shows.
    pub(super) fn resent(&self, now: Instant, shared: &Shared) -> Resent {
        Resent {
            below: if self.repairs() { self.episode.high_rxt } else { 0 },
            after: shared.rtt.min().map_or(now, |rtt| now - rtt),
        }
    }

    /// Whether something may be sent again although nothing is known to be lost.
    pub(in crate::tcp) fn has_last_resort(&self, sack: bool) -> bool {
        self.state == CaState::Recovery && self.rack.is_none() && sack
    }

    /// What is sent again when nothing is known to be lost and there is no new data: RFC 6675 NextSeg rules 3 and 4.
    pub(in crate::tcp) fn last_resort(&mut self, board: &mut Scoreboard, una: u64) -> Option<LastResort> {
        let highest = board.highest_sacked();
        let high_rxt = self.episode.high_rxt;
        let mut index = board.index_from(high_rxt.max(una));
        while let Some(record) = board.ring.get(index) {
            if record.seq >= highest {
                break;
            }
            if record.flags & (SACKED | RETRANS) == 0 {
                return Some(LastResort {
                    index,
                    high_rxt: None,
                }); // (3)
            }
            // Not to be looked at again: it stays SACKed or retransmitted for this recovery.
            self.episode.high_rxt = record.end();
            board.work.add(1);
            index += 1;
        }
        if !self.rescued && self.high_seq > una {
            // (4): the highest un-SACKed segment, once per recovery.
            let sent = board.ring.back().map_or(0, Record::end);
            let last = match board.marks.runs.back() {
                Some(run) if run.end == sent => board.index_from(run.start),
                Some(_) | None => board.ring.len(),
            }
            .checked_sub(1)?;
            if board.ring[last].flags & (RETRANS | LOST) == 0 {
                self.rescued = true;
                return Some(LastResort {
                    index: last,
                    high_rxt: Some(high_rxt),
                });
            }
        }
        None
    }

    /// The peer's window has no room for the last resort, which is left for later.
    pub(in crate::tcp) fn keep_last_resort(&mut self, kept: &LastResort) {
        if kept.high_rxt.is_some() {
            self.rescued = false;
        }
    }

    /// The last resort left.
    pub(in crate::tcp) fn after_last_resort(&mut self, sent: LastResort) {
        if let Some(high_rxt) = sent.high_rxt {
            self.episode.high_rxt = high_rxt; // RFC 6675 4, NextSeg (4)
        }
    }
}
