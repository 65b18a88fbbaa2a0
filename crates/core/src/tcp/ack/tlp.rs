//! The tail loss probe: when it is due, what it sends, what its acknowledgment shows.
//!
//! **Source.** RFC 8985 7; draft-dukkipati-tcpm-tcp-loss-probe-01; `tail_loss_probe_restart` counts from the earliest
//! outstanding segment (Rajiullah et al., CCR 45(1), 2015).
//! **Deviations.** A restarted probe that is due is not put off by what is written at that very moment. One probe per episode in both variants, as Linux. Where the probe would come at the RTO, the probe is
//! sent. With `rack_timer_tick` the timer is Linux's: 2 ms more where several segments are out (`TCP_TIMEOUT_MIN_US`), in
//! whole ticks, but never after the RTO (`tcp_schedule_loss_probe`).

use crate::cc::CongestionKind;
use crate::tcp::Shared;
use crate::tcp::ack::delivery::Delivery;
use crate::tcp::ack::rack::{least_timeout, on_tick};
use crate::tcp::config::TailLossProbe;
use crate::tcp::send::half::{Outgoing, Sender};
use crate::tcp::state::timers::Timer;
use crate::tcp::state::types::CaState;
use crate::time::{Duration, Instant};

impl Sender {
    /// A probe at PTO: new data if the peer's window allows, else the last segment (RFC 8985 7.3).
    pub(in crate::tcp) fn loss_probe(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        let sent = if let Some((payload, fin)) = self.new_length(shared) {
            self.recovery.tlp_is_retrans = false;
            let sent = self.transmit::<false>(now, shared, payload, fin);
            Some(sent)
        } else {
            let last = self.board.ring.len().checked_sub(1)?;
            self.recovery.tlp_is_retrans = true;
            self.retransmit(now, shared, last)
        };
        self.recovery.tlp_end = self.nxt;
        shared.stats.probes += 1;
        shared.stats.new_probes += u32::from(!self.recovery.tlp_is_retrans);
        let at = now + shared.rtt.rto(&shared.config.rto);
        shared.timers.arm(Timer::Rto, at);
        sent
    }

    /// Probe timeout from now (RFC 8985 7.2, draft-dukkipati-tcpm-tcp-loss-probe-01 2.1), `None` if there must be none.
    pub(in crate::tcp) fn arm_probe(&mut self, now: Instant, shared: &mut Shared) {
        self.recovery.probed = Instant::FAR_FUTURE;
        let config = &shared.config;
        let eligible = shared.sack
            && self.recovery.state == CaState::Open
            && self.board.marks.sacked_segments == 0
            && self.recovery.tlp_end == 0
            && self.board.out > 0;
        if !eligible {
            return;
        }
        let floor = Duration::from_millis(10);
        let (tick, least) = (config.rack_timer_tick, least_timeout(config.rack_timer_tick));
        let alone = self.board.segments() == 1;
        let mut wait = match (shared.rtt.srtt(), config.tail_loss_probe) {
            (_, TailLossProbe::Off) => return,
            (None, _) => Duration::from_secs(1),
            (Some(srtt), TailLossProbe::Draft | TailLossProbe::Rfc8985) if !alone => {
                srtt.saturating_mul(2) + least
            }
            (Some(srtt), variant) => {
                // RFC 8985 7.2 permits the value of the peer; what varies in the samples bounds what it has shown.
                let ack_delay = if config.learn_ack_delay {
                    config.max_ack_delay.min(shared.rtt.rttvar().saturating_mul(4))
                } else {
                    config.max_ack_delay
                };
                if variant == TailLossProbe::Draft {
                    (srtt.mul_div(3, 2) + ack_delay).max(srtt.saturating_mul(2))
                } else {
                    srtt.saturating_mul(2) + ack_delay
                }
            }
        };
        // As long as several are out and no sample comes, what leaves at this moment has the same timeout.
        if !alone && !config.tail_loss_probe_restart {
            self.recovery.probed = now;
        }
        if config.tail_loss_probe_restart
            && let Some(head) = self.board.ring.front()
            && config
                .probe_restart_threshold
                .is_none_or(|least| self.board.segments() < least)
        {
            let age = now.since(head.last_tx);
            if age < wait {
                wait = (wait - age).max(floor);
            }
        }
        if config.tail_loss_probe == TailLossProbe::Draft {
            wait = wait.max(floor);
        }
        let at = on_tick(now, wait, tick).min(shared.timers.rto_at);
        shared.timers.arm(Timer::Pto, at);
    }

    /// RFC 8985 7.4.2; the draft's rule is the same stated per episode.
    pub(in crate::tcp) fn probe_outcome(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        ack: u64,
        delivery: &Delivery,
    ) {
        if self.recovery.tlp_end == 0 || ack < self.recovery.tlp_end {
            return;
        }
        if !self.recovery.tlp_is_retrans {
            self.recovery.tlp_end = 0; // new data was the probe
        } else if ack > self.recovery.tlp_end {
            self.recovery.tlp_end = 0; // the probe repaired a loss: one reduction
            if matches!(self.recovery.state, CaState::Open | CaState::Disorder) {
                self.enter_cwr(now, shared, CongestionKind::Loss, delivery);
            }
        } else if !delivery.advanced && delivery.duplicate && delivery.sacked == 0 && !delivery.dsack {
            self.recovery.tlp_end = 0; // both copies arrived
            shared.stats.spurious_probes += 1;
        }
    }
}
