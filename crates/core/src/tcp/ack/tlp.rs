//! The tail loss probe: when it is due, what it sends, what its acknowledgment shows.
//!
//! **Source.** RFC 8985 7; draft-dukkipati-tcpm-tcp-loss-probe-01; `tail_loss_probe_restart` counts from the earliest
//! outstanding segment (Rajiullah et al., CCR 45(1), 2015); `learn_ack_delay` is Fleetfoot's own.
//! **Deviations.** A restarted probe that is due is not put off by what is written at that very moment. One probe per episode in both
//! variants, as Linux. With `timeout_rules` of Linux what a probe repaired is answered at once (`tcp_process_tlp_ack`). Where the probe
//! would come at the RTO, the probe is sent. The draft's probe waits for the open state, RFC 8985's also follows where a reduction
//! without a loss is under way (7.2; Linux since 4.16). On the wheel of Linux the timer has 2 ms more where several segments are out
//! (`TCP_TIMEOUT_MIN_US`), but never comes after the RTO (`tcp_schedule_loss_probe`).

use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::ack::records::RETRANS;
use crate::tcp::ack::scoreboard::Scoreboard;
use crate::tcp::ack::state::Recovery;
use crate::tcp::config::{TailLossProbe, TimeoutRules};
use crate::tcp::send::half::{Outgoing, Sender};
use crate::tcp::state::timers::Timer;
use crate::tcp::state::types::CaState;
use crate::time::{Duration, Instant};

impl Sender {
    /// A probe at PTO: new data if the peer's window allows, else the last segment (RFC 8985 7.3).
    pub(in crate::tcp) fn loss_probe(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        let new = self.new_length_if::<true>(shared);
        let sent = if let Some((payload, fin)) = new {
            Some(self.transmit::<false, false>(now, shared, payload, fin))
        } else {
            let last = self.board.ring.len().checked_sub(1)?;
            if self.may_resend(shared, last).is_none() {
                // RFC 8985 7.3: the timeout takes its place, in Linux that of the first segment (`tcp_rearm_rto`).
                if shared.config.timeout_rules == TimeoutRules::Linux {
                    self.await_first(now, shared);
                } else {
                    let at = now + shared.rtt.rto(&shared.config.rto);
                    shared.arm(now, Timer::Rto, at);
                }
                return None;
            }
            let episode = self.recovery.episode();
            let counted = self.board.ring[last].is(RETRANS);
            let weight = self.board.weight(self.board.ring[last].len);
            let sent = self.resend(now, shared, last); // whether it was lost, its acknowledgment says
            self.note_probe(weight);
            if shared.config.timeout_rules == TimeoutRules::Linux {
                // `tcp_send_loss_probe` counts it neither as in flight nor among what an undo or PRR counts.
                self.recovery.restore_episode(episode);
                if !counted {
                    self.board.uncount(last);
                }
            }
            sent
        };
        self.recovery.on_probe(self.nxt, new.is_none());
        shared.stats.probes += 1;
        shared.stats.new_probes += u32::from(new.is_some());
        let at = now + shared.rtt.rto(&shared.config.rto);
        shared.timers.fire(true);
        shared.arm(now, Timer::Rto, at);
        shared.timers.fire(false);
        sent
    }

    /// No probe leaves: the timeout of the first segment is next, if that is over as soon as may be (Linux `tcp_rearm_rto`).
    #[cold]
    pub(super) fn await_first(&self, now: Instant, shared: &mut Shared) {
        let rto = shared.rtt.rto(&shared.config.rto);
        let own = self.board.ring.front().map_or(now, |head| head.last_tx + rto);
        shared.arm(now, Timer::Rto, own.max(now + Duration::from_nanos(1)));
    }

    /// Nothing probes for what the timer of a shut window sent (Linux `tcp_write_wakeup`).
    #[cold]
    pub(in crate::tcp) fn leave_unprobed(&mut self, now: Instant, shared: &mut Shared) {
        if shared.timers.kind() == Some(Timer::Pto) {
            self.recovery.probed = Instant::FAR_FUTURE;
            let at = now + shared.rtt.rto(&shared.config.rto);
            shared.arm(now, Timer::Rto, at);
        }
    }
}

impl Recovery {
    /// A probe left, of new data or of the last segment, after which SND.NXT is `nxt`.
    pub(in crate::tcp) fn on_probe(&mut self, nxt: u64, is_retransmission: bool) {
        self.tlp_is_retrans = is_retransmission;
        self.tlp_end = nxt;
        self.tlp_answered = false;
        self.unsampled = true;
    }

    /// Whether a probe is out whose outcome counts.
    pub(super) const fn is_probing(&self) -> bool {
        self.tlp_end != 0 && !self.tlp_answered
    }

    /// Whether nothing is known to be lost, and no probe is out. `QUIET`: nothing was lost or sent as a probe. RFC 8985 7.3 asks that a
    /// sample was taken since the last one, or since the start.
    #[inline(always)]
    pub(super) fn may_probe<const QUIET: bool>(&self, shared: &Shared, board: &Scoreboard) -> bool {
        let permitted = match self.state {
            CaState::Open => true,
            CaState::Cwr => shared.config.tail_loss_probe == TailLossProbe::Rfc8985,
            CaState::Disorder | CaState::Recovery | CaState::Loss => false,
        };
        let nothing_known = || {
            // Linux asks whether a probe is out when the timer fires (`tcp_send_loss_probe`).
            let may_follow = shared.config.timeout_rules == TimeoutRules::Linux || !self.is_probing();
            board.marks.sacked_segments == 0
                && may_follow
                && !(shared.config.probe_needs_sample && (self.unsampled || shared.rtt.srtt().is_none()))
        };
        permitted && (QUIET || nothing_known())
    }

    /// Sets the timer to the probe timeout from now if a probe may follow (RFC 8985 7.2,
    /// draft-dukkipati-tcpm-tcp-loss-probe-01 2.1). `sent`: new data left. `QUIET`: nothing was lost or sent as a probe.
    #[inline(always)]
    pub(in crate::tcp) fn arm_probe<const QUIET: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        board: &Scoreboard,
        sent: bool,
    ) {
        self.probed = Instant::FAR_FUTURE;
        let config = &shared.config;
        if !(shared.sack && self.may_probe::<QUIET>(shared, board) && board.out > 0) {
            return;
        }
        let floor = Duration::from_millis(10);
        let least = config.timer_grid.least_timeout();
        let alone = board.segments() == 1;
        let mut wait = match (shared.rtt.srtt(), config.tail_loss_probe) {
            (_, TailLossProbe::Off) => return,
            (None, _) => Duration::from_secs(1),
            (Some(srtt), TailLossProbe::Draft | TailLossProbe::Rfc8985) if !alone => {
                srtt.saturating_mul(2) + least
            }
            (Some(srtt), variant) => wait_of_one(shared, srtt, variant, self.probed_in_vain),
        };
        // Linux `tcp_rto_delta_us` (4.15): when new data leaves, the first segment's own timeout is the limit.
        let as_linux =
            config.timeout_rules == TimeoutRules::Linux && config.tail_loss_probe == TailLossProbe::Rfc8985;
        let own = match board.ring.front() {
            Some(head) if as_linux => head.last_tx + shared.rtt.rto(&config.rto),
            Some(_) | None => Instant::FAR_FUTURE,
        };
        // As long as several are out and no sample comes, what leaves at this moment has the same timeout.
        let same = sent || !as_linux || own.min(shared.timers.rto_at()) >= now + wait;
        if !alone && !config.tail_loss_probe_restart && same {
            self.probed = now;
        }
        if config.tail_loss_probe_restart
            && let Some(head) = board.ring.front()
            && config
                .probe_restart_threshold
                .is_none_or(|least| board.segments() < least)
        {
            let age = now.since(head.last_tx);
            if age < wait {
                wait = (wait - age).max(floor);
            }
        }
        if config.tail_loss_probe == TailLossProbe::Draft {
            wait = wait.max(floor);
        }
        let limit = if !(sent && as_linux) {
            shared.timers.rto_at()
        } else if own > now {
            own
        } else {
            Instant::FAR_FUTURE
        };
        let at = (now + wait).min(limit);
        shared.arm(now, Timer::Pto, at);
    }

    /// RFC 8985 7.4.2; the draft's rule is the same stated per episode. True: the probe repaired a loss, to which the
    /// window is yet to answer.
    pub(super) fn probe_outcome(&mut self, shared: &mut Shared, ack: u64, delivery: &Delivery) -> bool {
        if self.tlp_end == 0 || ack < self.tlp_end {
            return false;
        }
        if self.tlp_answered {
            if ack > self.tlp_end {
                self.tlp_end = 0;
            }
        } else if !self.tlp_is_retrans {
            self.tlp_end = 0; // new data was the probe
        } else if ack > self.tlp_end {
            self.tlp_end = 0; // the probe repaired a loss: one reduction
            let reduces = matches!(self.state, CaState::Open | CaState::Disorder);
            // Linux `tcp_process_tlp_ack` does not ask for the state; a recovery or a timeout has answered the probe.
            return reduces
                || self.state == CaState::Cwr && shared.config.timeout_rules == TimeoutRules::Linux;
        } else if !delivery.advanced
            && delivery.duplicate
            && delivery.sacked == 0
            && (!delivery.dsack || shared.config.timeout_rules == TimeoutRules::Linux)
        {
            self.on_redundant_probe(shared); // both copies arrived
        }
        false
    }

    /// A duplicate acknowledgment of everything came: of a peer that sends no D-SACK, it is of the probe.
    #[cold]
    pub(in crate::tcp) fn on_duplicate_of_all(&mut self, shared: &mut Shared, ack: u64) {
        if self.tlp_end == ack && self.tlp_is_retrans && self.is_probing() {
            self.on_redundant_probe(shared);
        }
    }

    /// Nothing was lost: the acknowledgment was late.
    pub(super) fn on_redundant_probe(&mut self, shared: &mut Shared) {
        self.tlp_end = 0;
        self.probed_in_vain = true;
        shared.stats.spurious_probes += 1;
    }
}

/// The probe timeout while one segment is out, whose acknowledgment the peer may delay.
#[inline(never)]
fn wait_of_one(shared: &Shared, srtt: Duration, variant: TailLossProbe, in_vain: bool) -> Duration {
    let config = &shared.config;
    // RFC 8985 7.2 permits the value of the peer; what varies in the samples bounds what it has shown, until a probe was in vain: an
    // acknowledgment that is delayed once in a while is forgotten by RTTVAR in between.
    let most = config.max_ack_delay.unwrap_or(config.rto.min);
    let ack_delay = if config.learn_ack_delay && !in_vain {
        most.min(shared.rtt.rttvar().saturating_mul(4))
    } else {
        most
    };
    if variant == TailLossProbe::Draft {
        (srtt.mul_div(3, 2) + ack_delay).max(srtt.saturating_mul(2))
    } else {
        srtt.saturating_mul(2) + ack_delay
    }
}
