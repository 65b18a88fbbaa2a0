//! Was it a mistake? Spurious recoveries and timeouts are found and taken back.
//!
//! Timestamps show it at once (Eifel), D-SACKs when every retransmission was redundant, and F-RTO by what is acknowledged
//! after a timeout when new data is sent instead of retransmissions.
//!
//! **Source.** RFC 3522, RFC 4015, RFC 3708, RFC 5682 2.1 and 3.1.
//! **Deviations.** Undo restores the window and `ssthresh` of before the episode, as Linux does; RFC 4015 step 9 sets the
//! window to FlightSize and what the ACK acknowledged, at most the initial window of it. An ACK with ECN-Echo first restores
//! and then reduces; step 9 leaves the reduced state. Its step 11 is applied with the sample at hand, not with the first of
//! new data. Undo by D-SACK counts retransmissions as Linux does. After a failed F-RTO with SACK the window stays as it is
//! (RFC 5682 step 3a: no more than three segments); without SACK it is three segments. In step 3 of the SACK version an ACK
//! past `RecoveryPoint` that also acknowledges what was sent once before the timeout shows it to be spurious, as in Linux,
//! if no SACK does; step 3a is more cautious.

use crate::cc::CongestionKind;
use crate::packet::{Flags, Segment};
use crate::tcp::Shared;
use crate::tcp::ack::delivery::Delivery;
use crate::tcp::send::half::Sender;
use crate::tcp::state::types::CaState;
use crate::time::{Duration, Instant};
use crate::units::Bytes;

impl Sender {
    pub(in crate::tcp) fn begin_episode(&mut self, shared: &Shared, timeout: bool) {
        self.recovery.episode.undo_marker = if shared.config.undo || shared.config.frto {
            self.una.max(1)
        } else {
            0
        };
        self.recovery.episode.undo_retrans = 0;
        self.recovery.episode.retrans_stamp = 0;
        self.recovery.undo_is_timeout = timeout;
    }

    /// Was the episode a mistake? By timestamps (RFC 3522) or because every retransmission was redundant (RFC 3708).
    pub(in crate::tcp) fn try_undo(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        delivery: &Delivery,
    ) {
        if !shared.config.undo || self.recovery.episode.retrans_stamp == 0 {
            return;
        }
        let redundant =
            self.recovery.episode.retrans_stamp == u32::MAX && self.recovery.episode.undo_retrans == 0;
        let earlier = shared.timestamps
            && delivery.advanced
            && self.recovery.episode.retrans_stamp != u32::MAX
            && segment.flags.contains(Flags::TIMESTAMPS)
            && (segment
                .tsecr
                .wrapping_sub(self.recovery.episode.retrans_stamp & !1) as i32)
                < 0;
        if redundant || earlier {
            self.undo(now, shared, delivery.rtt);
        }
    }

    fn undo(&mut self, now: Instant, shared: &mut Shared, rtt: Option<Duration>) {
        if self.tempo.is_none() || !self.restore_nonvalidated(now) {
            let event = self.flight_event(CongestionKind::Undo);
            self.cc.on_congestion(now, &event);
        }
        shared.stats.undos += 1;
        if self.recovery.undo_is_timeout {
            shared.stats.spurious_timeouts += 1;
            shared.rtt.reset_backoff();
            if shared.config.rto.after_spurious
                && let Some(rtt) = rtt.or(shared.rtt.srtt())
            {
                let config = &shared.config.rto;
                shared.rtt.after_spurious_timeout(config, rtt);
            }
        }
        self.recovery.episode.undo_marker = 0;
        self.recovery.frto = 0;
        self.recovery.frto_new = 0;
        self.recovery.force = false;
        self.board.forget_losses();
        if let Some(rack) = &mut self.recovery.rack {
            rack.reconsider();
        }
        if matches!(
            self.recovery.state,
            CaState::Recovery | CaState::Loss | CaState::Cwr
        ) {
            self.recovery.state = CaState::Open;
            self.board.set_duplicates(0);
        }
    }

    /// F-RTO (RFC 5682 2.1 and 3.1).
    pub(in crate::tcp) fn step_frto(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        match self.recovery.frto {
            1 if delivery.advanced => {
                // Step 2a of 2.1: an ACK of a part of the retransmission proves nothing.
                let whole = shared.sack || delivery.segments > 0;
                // Step 2b: the retransmission, or the original, was acknowledged: try new data.
                if whole && self.new_length(shared).is_some() {
                    self.recovery.frto = 2;
                    self.recovery.frto_new = 2;
                } else {
                    self.recovery.frto = 0;
                }
            }
            1 => {
                if delivery.duplicate && !shared.sack {
                    self.recovery.frto = 0; // step 2a
                }
            }
            _ => {
                if delivery.original && !delivery.beyond && (delivery.advanced || delivery.sacked > 0) {
                    self.undo(now, shared, delivery.rtt); // step 3b
                } else if delivery.duplicate || delivery.sacked > 0 {
                    self.recovery.frto = 0; // step 3a: the loss was real
                    self.recovery.frto_new = 0;
                    if !shared.sack {
                        // Both new segments still count as in flight: the window that slow start would have by now
                        // lets a retransmission leave.
                        let window = Bytes(3 * u64::from(shared.mss));
                        let ssthresh = self.cc.ssthresh();
                        self.cc.set_window(now, window, ssthresh);
                    }
                }
            }
        }
    }
}
