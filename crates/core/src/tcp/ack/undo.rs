//! Was it a mistake? Spurious recoveries and timeouts are found and taken back.
//!
//! Timestamps show it at once (Eifel), D-SACKs when every retransmission was redundant, and F-RTO by what is acknowledged
//! after a timeout when new data is sent instead of retransmissions.
//!
//! **Source.** RFC 3522, RFC 4015, RFC 3708, RFC 5682 2.1 and 3.1.
//! **Deviations.** Undo restores the window and `ssthresh` of before the episode, as Linux does; RFC 4015 step 9 sets the
//! window to FlightSize and what the ACK acknowledged, at most the initial window of it. Where a mark was echoed in the episode the
//! window stays reduced, as in Linux; step 9 asks that of the ACK that shows the mistake. Its step 11 is applied with the sample at hand, not with the first of
//! new data. Undo by D-SACK counts retransmissions as Linux does. While a retransmission is outstanding when an episode begins,
//! `RetransmitTS` stays that of the episode before (Linux: `tcp_retrans_stamp_cleanup`): RFC 3522 assumes that the first
//! acceptable ACK answers the oldest segment, and an earlier retransmission may bring it about. In fast recovery an echo that
//! is too old takes nothing back while retransmissions are under way; by that ACK nothing more is judged lost or sent again
//! (`tcp_try_undo_partial`). A tail loss probe counts as such a retransmission, except with `timeout_rules` of Linux. After a failed F-RTO with SACK the window stays as it is
//! (RFC 5682 step 3a: no more than three segments); without SACK it is three segments. In step 3 of the SACK version an ACK
//! past `RecoveryPoint` that also acknowledges what was sent once before the timeout shows it to be spurious, as in Linux,
//! if no SACK does; step 3a is more cautious. Where the loss of a retransmission reduced once more (`timeout_rules = "rfc"`), an undo takes back the second
//! reduction only.

use crate::packet::{Flags, Segment};
use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::ack::scoreboard::Scoreboard;
use crate::tcp::ack::state::{Episode, FRTO_NEW, Recovery};
use crate::tcp::config::TimeoutRules;
use crate::tcp::state::lazy::Lazy;
use crate::tcp::state::types::CaState;

/// How a reduction was shown to be a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// What was thought lost came late: the acknowledgment is older than the retransmission.
    Late,
    /// The peer had received everything that was retransmitted.
    Redundant,
}

/// Nothing was retransmitted in this episode: that does not make all of it redundant.
pub(in crate::tcp::ack) const NONE_YET: u32 = u32::MAX;

/// What F-RTO makes of an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frto {
    /// The next acknowledgment, or the retransmissions, show more.
    Continue,
    /// The timeout was spurious.
    Spurious,
    /// The loss was real.
    Real,
}

impl Recovery {
    /// An episode begins that may be taken back. While retransmissions of the last one are outstanding, the first of them counts
    /// as the first of this one: an acknowledgment that it brings about is no answer to an original.
    pub(super) fn begin_episode(&mut self, shared: &Shared, board: &Scoreboard, una: u64, timeout: bool) {
        let may_undo = shared.config.undo || shared.config.frto;
        let episode = &mut *self.episode;
        episode.undo_marker = if may_undo { una.max(1) } else { 0 };
        if !board.has_resent() {
            episode.retrans_stamp = 0;
        }
        self.count_under_way(shared, board);
        self.undo_is_timeout = timeout;
        self.undo_spares_window = false;
    }

    /// What is sent again and under way may be redundant, too: an undo waits for reports of it (Linux `tcp_init_undo`).
    pub(super) fn count_under_way(&mut self, shared: &Shared, board: &Scoreboard) {
        // A probe is one of them, though it does not count as in flight (0ec986ed7bab, 6.10).
        let probe = shared.config.undoes_as_linux() && self.is_probing() && self.tlp_is_retrans;
        let under_way = board.retransmissions_in_flight() + u32::from(probe);
        self.episode.undo_retrans = if under_way > 0 { under_way } else { NONE_YET };
    }

    /// Was the episode a mistake? By timestamps (RFC 3522) or because every retransmission was redundant (RFC 3708).
    pub(super) fn mistake(&self, shared: &Shared, segment: &Segment, delivery: &Delivery) -> Option<Mistake> {
        if !self.may_undo(shared) {
            return None;
        }
        if self.episode.undo_retrans == 0 {
            return Some(Mistake::Redundant);
        }
        let earlier = delivery.advanced
            && segment.flags.contains(Flags::TIMESTAMPS)
            && self.shows_mistake(shared, segment);
        earlier.then_some(Mistake::Late)
    }

    /// Outside of recovery nothing answers a retransmission any more once none is outstanding (Linux: `tcp_try_to_open`).
    pub(super) fn forget_stamp(&mut self, board: &Scoreboard) {
        let over = matches!(self.state, CaState::Open | CaState::Disorder | CaState::Cwr);
        if over && self.episode.retrans_stamp != 0 && !board.has_resent() {
            self.episode.retrans_stamp = 0;
        }
    }

    /// The last episode, if there is anything of it.
    pub(super) fn episode(&self) -> Option<Episode> {
        (!self.episode.is_blank()).then(|| *self.episode)
    }

    /// What was sent since does not count: the episode is as [`Recovery::episode`] said.
    pub(super) fn restore_episode(&mut self, before: Option<Episode>) {
        match before {
            Some(episode) => *self.episode = episode,
            None => self.episode = Lazy::default(),
        }
    }

    /// The episode is taken back: nothing is lost.
    pub(super) fn take_back(&mut self, board: &mut Scoreboard) {
        self.episode.undo_marker = 0;
        self.frto = 0;
        self.frto_new = 0;
        self.force = false;
        board.forget_losses();
        if let Some(rack) = &mut self.rack {
            rack.reconsider(board);
        }
        if matches!(self.state, CaState::Recovery | CaState::Loss | CaState::Cwr) {
            self.state = CaState::Open;
            board.set_duplicates(0);
        }
    }

    /// Whether an original that arrived shows that the timeout was spurious (Linux `tcp_process_loss`). Without SACK it may have arrived
    /// before, behind the hole that the retransmission has filled (`tcp_clean_rtx_queue`).
    pub(super) fn original_shows_mistake(&self, sack: bool, delivery: &Delivery) -> bool {
        self.state == CaState::Loss
            && self.frto != 0
            && delivery.original
            && (sack || !delivery.retransmitted)
            && (delivery.advanced || delivery.sacked > 0)
    }

    /// F-RTO (RFC 5682 2.1 and 3.1); `more`: new data may be sent.
    pub(super) fn step_frto(&mut self, shared: &Shared, delivery: &Delivery, more: bool) -> Frto {
        let sack = shared.sack;
        match self.frto {
            1 if delivery.advanced => {
                // Step 2a of 2.1: an ACK of a part of the retransmission proves nothing.
                let whole = sack || delivery.segments > 0;
                // Step 2b: the retransmission, or the original, was acknowledged: try new data.
                if whole && more {
                    self.frto = 2;
                    self.frto_new = FRTO_NEW;
                    self.hold = true; // new data leaves in place of retransmissions
                } else {
                    self.frto = 0;
                }
            }
            1 => {
                // Step 2a. In Linux since 3.10 such a duplicate says nothing, with SACK or without (`tcp_process_loss`).
                if delivery.duplicate && !sack && shared.config.timeout_rules != TimeoutRules::Linux {
                    self.frto = 0;
                }
            }
            _ => {
                if delivery.original && !delivery.beyond && (delivery.advanced || delivery.sacked > 0) {
                    return Frto::Spurious; // step 3b
                } else if delivery.duplicate || delivery.sacked > 0 {
                    self.frto = 0; // step 3a
                    self.frto_new = 0;
                    return Frto::Real;
                }
            }
        }
        Frto::Continue
    }
}
