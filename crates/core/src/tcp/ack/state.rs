//! What a sender remembers of acknowledgments, losses and timeouts.
//!
//! **Source.** RFC 5681, 6582, 6675, 8985, 5682, 3522; the names of states are Linux's.
//! **Deviations.** None known.

use crate::packet::Segment;
use crate::tcp::Shared;
use crate::tcp::ack::ns2_agent::Sack1;
use crate::tcp::ack::prr::Prr;
use crate::tcp::ack::rack::Rack;
use crate::tcp::ack::records::Record;
use crate::tcp::ack::undo::NONE_YET;
use crate::tcp::config::Prr as PrrVariant;
use crate::tcp::state::lazy::{Blank, Lazy};
use crate::tcp::state::types::CaState;
use crate::time::Instant;
use alloc::boxed::Box;
use serde::{Deserialize, Serialize};

/// What a sender remembers of acknowledgments, losses and timeouts.
#[derive(Serialize, Deserialize)]
pub(in crate::tcp) struct Recovery {
    pub(super) state: CaState,
    /// Recovery ends when this is acknowledged.
    pub(super) high_seq: u64,
    /// Blank until something is lost or marked.
    pub(super) episode: Lazy<Episode>,
    /// End of the last loss probe, as long as something may follow from it; 0: nothing.
    pub(super) tlp_end: u64,
    /// What it repaired is answered: nothing but a report of its redundancy counts any more.
    pub(super) tlp_answered: bool,
    pub(super) tlp_is_retrans: bool,
    /// A probe was in vain: acknowledgments come later than the samples had shown.
    pub(super) probed_in_vain: bool,
    /// No RTT sample was taken since the last probe.
    pub(super) unsampled: bool,
    /// RACK's or early retransmit's pending deadline; `FAR_FUTURE`: none.
    pub(super) wait_until: Instant,
    /// End of the data that was out when the RTT estimator's round trip began: a sample is taken when it is acknowledged
    /// (ns-2), or the round trip is over when more is (Linux).
    pub(super) rtt_seq: u64,
    /// End of the round trip.
    pub(super) round_end: u64,
    pub(in crate::tcp) delivered_total: u64,
    /// New data sent on duplicate ACKs since SND.UNA moved (RFC 3042).
    pub(super) limited_sent: u64,
    /// When the probe timer was set while several segments were out: at that moment it need not be set again.
    pub(super) probed: Instant,
    /// When the last of the retransmissions left that RACK has just judged lost.
    pub(super) lost_again: Option<Instant>,
    /// When the window was reduced for losses last.
    pub(super) reduced_at: Instant,
    pub(super) dup_acks: u32,
    /// Segments that D-SACKs reported.
    pub(super) copies: u32,
    /// F-RTO's step, 0 when not running.
    pub(super) frto: u8,
    /// New segments F-RTO may still send.
    pub(super) frto_new: u8,
    /// The next segment leaves whatever the window says.
    pub(super) force: bool,
    /// Nothing is sent again before the next acknowledgment or timer: losses may have been delays.
    pub(super) hold: bool,
    pub(super) rescued: bool,
    /// The episode that may be undone began with a timeout.
    pub(super) undo_is_timeout: bool,
    /// The window was reduced for something else than the losses of that episode, or for a mark, too.
    pub(super) undo_spares_window: bool,
    /// The acknowledgment at hand has taken a recovery back, and the reduction stayed as the answer to its mark.
    pub(super) mark_answered: bool,
    /// The last reduction without a recovery was for a mark.
    pub(super) reduced_for_mark: bool,
    /// The controller's window is that of a recovery, too: there is no PRR.
    pub(super) keeps_window: bool,
    pub(super) rack: Option<Box<Rack>>,
    pub(super) sack1: Option<Box<Sack1>>,
}

/// The last episode of recovery, CWR or timeout, as long as something follows from it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::tcp) struct Episode {
    /// Window during recovery and CWR, set by PRR.
    pub(super) recovery_window: u64,
    pub(super) prr: Prr,
    /// Window before which a fast retransmit is not entered without SACK (RFC 6582 `recover`); 0: none.
    pub(super) recover: u64,
    /// Start of the episode if it may be undone; 0: it may not.
    pub(super) undo_marker: u64,
    /// Highest offset retransmitted in this recovery (RFC 6675 HighRxt).
    pub(super) high_rxt: u64,
    /// Retransmissions not shown redundant; [`NONE_YET`]: there was none.
    pub(super) undo_retrans: u32,
    /// TSval of the first retransmission of those that are outstanding; 0: none.
    pub(super) retrans_stamp: u32,
}

impl Blank for Episode {
    fn blank() -> &'static Episode {
        static BLANK: Episode = Episode {
            recovery_window: 0,
            prr: Prr::NONE,
            recover: 0,
            undo_marker: 0,
            high_rxt: 0,
            undo_retrans: 0,
            retrans_stamp: 0,
        };
        &BLANK
    }
}

impl Recovery {
    /// `keeps_window`: that of the controller.
    pub(in crate::tcp) fn new(shared: &Shared, keeps_window: bool) -> Recovery {
        let config = &shared.config;
        let keeps_window = keeps_window || config.prr == PrrVariant::Off;
        Recovery {
            state: CaState::Open,
            high_seq: 0,
            episode: Lazy::default(),
            tlp_end: 0,
            tlp_answered: false,
            tlp_is_retrans: false,
            probed_in_vain: false,
            unsampled: false,
            wait_until: Instant::FAR_FUTURE,
            rtt_seq: 1,
            round_end: 0,
            delivered_total: 0,
            limited_sent: 0,
            probed: Instant::FAR_FUTURE,
            lost_again: None,
            reduced_at: Instant::ZERO,
            dup_acks: 0,
            copies: 0,
            frto: 0,
            frto_new: 0,
            force: false,
            hold: false,
            rescued: false,
            undo_is_timeout: false,
            undo_spares_window: false,
            mark_answered: false,
            reduced_for_mark: false,
            keeps_window,
            rack: (config.rack && shared.sack).then(|| Box::new(Rack::new(config.dup_thresh))),
            sack1: Sack1::new(config, shared.sack),
        }
    }

    /// Reads what an acknowledgment needs; see [`Connection::look_at_records`](crate::tcp::Connection::look_at_records).
    #[inline]
    pub(in crate::tcp) fn look_at(&self) -> u64 {
        self.sack1.as_ref().map_or(0, |agent| agent.next) ^ u64::from(self.rescued)
    }

    /// Linux's congestion state.
    #[inline(always)]
    pub(in crate::tcp) const fn state(&self) -> CaState {
        self.state
    }

    /// Whether ns-2's Sack1 agent takes the place of RFC 6675.
    #[inline(always)]
    pub(in crate::tcp) const fn is_ns2(&self) -> bool {
        self.sack1.is_some()
    }

    /// [`Recovery::is_ns2`], which is known already unless `AGENT` is [`LOOKED_UP`].
    #[inline(always)]
    pub(in crate::tcp) const fn has_agent<const AGENT: u8>(&self) -> bool {
        match AGENT {
            NO_AGENT => false,
            _ => is_agent(AGENT) || self.is_ns2(),
        }
    }

    /// RACK, if it detects losses.
    pub(in crate::tcp) fn rack(&self) -> Option<&Rack> {
        self.rack.as_deref()
    }

    /// Delivered since the connection began, in what the window counts.
    pub(in crate::tcp) const fn delivered_total(&self) -> u64 {
        self.delivered_total
    }

    /// SND.NXT when the last episode began.
    pub(in crate::tcp) const fn high_seq(&self) -> u64 {
        self.high_seq
    }

    /// The window during fast recovery and CWR, as proportional rate reduction sets it.
    #[inline(always)]
    pub(in crate::tcp) fn window(&self) -> Option<u64> {
        let reduces = matches!(self.state, CaState::Recovery | CaState::Cwr) && !self.keeps_window;
        reduces.then(|| self.episode.recovery_window)
    }

    /// A pause lowers that window.
    pub(in crate::tcp) fn lower_window(&mut self, window: u64) {
        self.episode.recovery_window = window;
    }

    /// Whether the next segment leaves whatever the window says.
    pub(in crate::tcp) const fn is_forced(&self) -> bool {
        self.force
    }

    /// Whether nothing is to be sent again now.
    pub(in crate::tcp) const fn is_holding(&self) -> bool {
        self.hold
    }

    /// Whether F-RTO is under way (RFC 5682).
    pub(in crate::tcp) const fn in_frto(&self) -> bool {
        self.frto != 0
    }

    /// Whether F-RTO lets new data leave whatever the window says.
    pub(in crate::tcp) const fn frto_sends(&self) -> bool {
        self.frto_new > 0
    }

    /// Whether F-RTO is about to send new data, of which nothing has left.
    pub(in crate::tcp) const fn frto_begins(&self) -> bool {
        self.frto_new == FRTO_NEW
    }

    /// Nothing new can be sent that would show whether the timeout was spurious: what is lost is sent again.
    pub(in crate::tcp) fn end_frto(&mut self) {
        (self.frto, self.frto_new) = (0, 0);
        self.hold = false;
    }

    /// Whether the probe timer was set at this moment for several segments: then it need not be set again.
    #[inline(always)]
    pub(in crate::tcp) fn probe_set_at(&self, now: Instant) -> bool {
        self.probed == now
    }

    /// Whether nothing is wrong and nothing is to be taken back.
    #[inline]
    pub(in crate::tcp) fn is_calm(&self, shared: &Shared, una: u64, nxt: u64) -> bool {
        self.state == CaState::Open
            && self.tlp_end == 0
            && !self.unsampled
            && self.frto_new == 0
            && self.sack1.as_ref().is_none_or(|agent| agent.is_calm(nxt))
            && self.rack.as_ref().is_none_or(|rack| rack.is_calm(una))
            && !self.undo_is_due(shared)
    }

    /// Whether a retransmission of the last episode may yet be shown to have been a mistake.
    pub(in crate::tcp) fn may_undo(&self, shared: &Shared) -> bool {
        let episode = &*self.episode;
        episode.undo_marker != 0
            && shared.config.undo
            && (episode.retrans_stamp != 0 || episode.undo_retrans == 0)
    }

    /// Whether the next acknowledgment takes the last episode back, whatever it says.
    fn undo_is_due(&self, shared: &Shared) -> bool {
        self.may_undo(shared) && self.episode.undo_retrans == 0
    }

    /// Whether an acknowledgment was sent before the retransmission came (RFC 3522).
    pub(in crate::tcp) fn shows_mistake(&self, shared: &Shared, segment: &Segment) -> bool {
        let stamp = self.episode.retrans_stamp;
        shared.timestamps && stamp != 0 && (segment.tsecr.wrapping_sub(stamp & !1) as i32) < 0
    }

    /// New data left up to `end`, of that weight. `QUIET`: while nothing was wrong.
    #[inline(always)]
    pub(in crate::tcp) fn on_sent<const QUIET: bool>(&mut self, now: Instant, end: u64, weight: u64) {
        if !QUIET {
            self.count_sent(weight);
            self.frto_new = self.frto_new.saturating_sub(1);
        } else if let Some(agent) = &mut self.sack1 {
            agent.on_sent(now, end);
        }
    }

    /// What leaves counts for proportional rate reduction and limited transmit.
    fn count_sent(&mut self, weight: u64) {
        match self.state {
            CaState::Recovery | CaState::Cwr => self.episode.prr.on_sent(weight),
            CaState::Disorder => self.limited_sent += weight,
            CaState::Open | CaState::Loss => {}
        }
    }

    /// A record was retransmitted, of that weight.
    pub(in crate::tcp) fn on_retransmit(
        &mut self,
        now: Instant,
        shared: &Shared,
        record: &Record,
        weight: u64,
    ) {
        self.force = false;
        self.episode.high_rxt = self.episode.high_rxt.max(record.end());
        if let Some(rack) = &mut self.rack {
            rack.on_retransmit(now, record.seq);
        }
        if self.episode.retrans_stamp == 0 {
            self.episode.retrans_stamp = shared.timestamp(now) | 1;
        }
        if self.episode.undo_marker != 0 {
            let before = match self.episode.undo_retrans {
                NONE_YET => 0,
                count => count,
            };
            self.episode.undo_retrans = before + 1;
        }
        if self.state != CaState::Disorder {
            self.count_sent(weight);
        }
    }

    /// What is lost is sent again, but not for congestion: the window stays.
    pub(in crate::tcp) fn resend_without_reduction(&mut self, una: u64, nxt: u64) {
        if matches!(self.state, CaState::Loss | CaState::Recovery) {
            return;
        }
        self.state = CaState::Loss;
        self.high_seq = nxt;
        self.episode.recover = nxt;
        self.episode.undo_marker = 0;
        self.undo_is_timeout = false;
        self.frto = 0;
        self.tlp_end = 0;
        self.begin_retransmitting(una);
    }

    /// What a probe repaired is answered.
    pub(in crate::tcp) fn answer_probe(&mut self) {
        self.tlp_answered = true;
    }

    /// Recovery begins: forget the last one's retransmission marks.
    pub(super) fn begin_retransmitting(&mut self, una: u64) {
        self.episode.high_rxt = una;
        self.rescued = false;
    }

    /// Asserts that no mark is beyond SND.NXT.
    pub(in crate::tcp) fn check(&self, nxt: u64) {
        let marks = [
            self.high_seq,
            self.episode.recover,
            self.tlp_end,
            self.episode.undo_marker,
        ];
        assert!(
            marks.iter().all(|mark| *mark <= nxt),
            "marks are not beyond SND.NXT: {marks:?}, {nxt}"
        );
    }
}

/// New segments that F-RTO sends (RFC 5682 3.1 step 2b).
pub(super) const FRTO_NEW: u8 = 2;

/// Value of `AGENT`: whether ns-2's agent takes the place of RFC 6675 is looked up at run time.
pub(in crate::tcp) const LOOKED_UP: u8 = 0;
/// Value of `AGENT`: no agent of ns-2 takes the place of RFC 6675.
pub(in crate::tcp) const NO_AGENT: u8 = 1;
/// Value of `AGENT`: ns-2's agent takes the place of RFC 6675.
pub(in crate::tcp) const NS2: u8 = 2;
/// Value of `AGENT`: as [`NS2`], and the acknowledgment does not move SND.UNA.
pub(in crate::tcp) const NS2_AGAIN: u8 = 3;
/// Value of `AGENT`: as [`NS2_AGAIN`], while the agent is in recovery.
pub(in crate::tcp) const NS2_REPAIR: u8 = 4;

/// Whether `agent` says that ns-2's agent takes the place of RFC 6675; that agent finds losses by rules of its own.
pub(in crate::tcp) const fn is_agent(agent: u8) -> bool {
    matches!(agent, NS2 | NS2_AGAIN | NS2_REPAIR)
}

/// Whether an acknowledgment may move SND.UNA, as far as `agent` says.
pub(in crate::tcp) const fn may_advance(agent: u8) -> bool {
    !matches!(agent, NS2_AGAIN | NS2_REPAIR)
}
