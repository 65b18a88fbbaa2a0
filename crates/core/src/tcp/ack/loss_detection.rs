//! Which segments are lost, and what is sent when none is known to be and the window has room.
//!
//! **Source.** RFC 6675 4 (`NextSeg`) and 5; RFC 6582 3.2; RFC 5827 3; RFC 8985 6.2 by `rack`.
//! **Deviations.** Early retransmit as `recovery` says. What counting SACKs judges lost is not sent again while its retransmission
//! may be answered yet: in this recovery (RFC 6675's HighRxt), and within the smallest RTT also what a rescue or a probe sent.

use crate::tcp::Shared;
use crate::tcp::ack::rack::{least_timeout, on_tick};
use crate::tcp::ack::records::{LOST, RETRANS, Record, SACKED};
use crate::tcp::ack::sacked::Resent;
use crate::tcp::config::EarlyRetransmit;
use crate::tcp::send::half::{Outgoing, Sender};
use crate::tcp::state::types::CaState;
use crate::time::{Duration, Instant};

impl Sender {
    /// Judges losses by the mechanism that is on.
    pub(in crate::tcp) fn detect(&mut self, now: Instant, shared: &Shared) -> u64 {
        let config = &shared.config;
        let recovering = matches!(self.recovery.state, CaState::Recovery | CaState::Loss);
        if let Some(rack) = &mut self.recovery.rack {
            let found = rack.detect(
                now,
                &mut self.board,
                recovering,
                shared.rtt.min(),
                shared.rtt.srtt(),
            );
            self.recovery.wait_until = found.wait_until.map_or(Instant::FAR_FUTURE, |at| {
                let tick = config.rack_timer_tick;
                on_tick(now, at.since(now) + least_timeout(tick), tick)
            });
            return found.lost;
        }
        let threshold = u32::from(config.dup_thresh.max(1));
        if !shared.sack {
            let early = self.early_threshold(shared);
            let needed = early.map_or(threshold, |early| early.min(threshold));
            // RFC 6582 3.2 step 1: not for what was sent before the last recovery.
            if !recovering
                && self.board.marks.duplicates >= needed
                && (self.recovery.episode.recover == 0 || self.una > self.recovery.episode.recover)
            {
                return self.board.mark_lost(0);
            }
            return 0;
        }
        let resent = self.resent(now, shared);
        let mut lost = self.board.judge(threshold, resent);
        let highest = self.board.highest_sacked();
        if config.fack && self.board.marks.sacked_segments > 0 {
            let spread = self.board.index_from(highest) as u32;
            if spread > threshold {
                let upto = if self.recovery.tlp_end != 0 {
                    highest // a probe's SACK shows that everything before it is gone
                } else {
                    self.board.ring[(spread - threshold) as usize].seq
                };
                lost += self.board.judge_below(upto, resent);
            }
        }
        if recovering {
            return lost;
        }
        if lost == 0
            && self.recovery.dup_acks >= threshold
            && self.board.marks.to_retransmit == 0
            && !resent.has(&self.board.ring[0])
        {
            lost += self.board.mark_lost(0); // RFC 6675 5 (4)
        }
        if lost == 0 && self.thin_dupack_shows_loss(shared) {
            return self.board.judge_below(highest, resent);
        }
        if lost == 0
            && let Some(needed) = self.early_threshold(shared)
            && self.board.marks.sacked_segments >= needed
        {
            if config.early_retransmit == EarlyRetransmit::Delayed {
                let quarter = shared.rtt.srtt().unwrap_or_default().mul_div(1, 4);
                let at = now + quarter.max(Duration::from_millis(2));
                if at < shared.timers.rto_at {
                    self.recovery.wait_until = at; // every acknowledgment begins the delay anew (Linux 3.x `tcp_ack`)
                    return 0;
                }
            }
            lost += self.board.judge_below(highest, resent);
        }
        lost
    }

    /// Which retransmissions cannot have been lost yet, as far as counting SACKs shows.
    pub(in crate::tcp) fn resent(&self, now: Instant, shared: &Shared) -> Resent {
        let recovering = matches!(self.recovery.state, CaState::Recovery | CaState::Loss);
        Resent {
            below: if recovering {
                self.recovery.episode.high_rxt
            } else {
                0
            },
            after: shared.rtt.min().map_or(now, |rtt| now - rtt),
        }
    }

    /// SACKed segments (or duplicate ACKs) that are enough because few segments are out; `None`: the usual number.
    pub(in crate::tcp) fn early_threshold(&self, shared: &Shared) -> Option<u32> {
        let out = self.board.segments();
        let blocked = self.new_length(shared).is_none(); // nothing, or the peer's window does not permit it
        if !(2..4).contains(&out) || !blocked {
            return None;
        }
        match shared.config.early_retransmit {
            EarlyRetransmit::Off => None,
            EarlyRetransmit::Rfc5827 => Some(out - 1), // RFC 5827 3.2
            EarlyRetransmit::Immediate | EarlyRetransmit::Delayed => Some(1),
        }
    }

    /// What is sent when nothing is known to be lost, there is no new data, and the window has room.
    #[inline(never)]
    pub(in crate::tcp) fn last_resort(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        let recovery = &self.recovery;
        if recovery.state != CaState::Recovery || recovery.rack.is_some() || !shared.sack {
            return None;
        }
        let (rescued, high_rxt) = (recovery.rescued, recovery.episode.high_rxt);
        let index = self.last_resort_index(shared)?;
        let sent = self.retransmit(now, shared, index);
        if self.recovery.rescued && !rescued {
            self.recovery.episode.high_rxt = high_rxt; // RFC 6675 4, NextSeg (4)
        }
        sent
    }

    /// RFC 6675 NextSeg rules 3 and 4.
    fn last_resort_index(&mut self, shared: &Shared) -> Option<usize> {
        let fits = self.in_flight(shared) + u64::from(shared.mss) <= self.window(shared);
        if !fits {
            return None;
        }
        let highest = self.board.highest_sacked();
        let mut index = self
            .board
            .index_from(self.recovery.episode.high_rxt.max(self.una));
        while let Some(record) = self.board.ring.get(index) {
            if record.seq >= highest {
                break;
            }
            if record.flags & (SACKED | RETRANS) == 0 {
                return Some(index); // (3)
            }
            // Not to be looked at again: it stays SACKed or retransmitted for this recovery.
            self.recovery.episode.high_rxt = record.end();
            self.board.work.add(1);
            index += 1;
        }
        if !self.recovery.rescued && self.recovery.high_seq > self.una {
            // (4): the highest un-SACKed segment, once per recovery.
            let sent = self.board.ring.back().map_or(0, Record::end);
            let last = match self.board.marks.runs.back() {
                Some(run) if run.end == sent => self.board.index_from(run.start),
                Some(_) | None => self.board.ring.len(),
            }
            .checked_sub(1)?;
            if self.board.ring[last].flags & (RETRANS | LOST) == 0 {
                self.recovery.rescued = true;
                return Some(last);
            }
        }
        None
    }
}
