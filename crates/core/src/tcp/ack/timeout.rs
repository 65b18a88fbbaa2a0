//! What the retransmission slot does when it fires: RTO, probe, reordering window, early retransmit, persist.
//!
//! **Source.** RFC 6298 5.4 to 5.6; RFC 5681 3.1; RFC 6675 5.1; RFC 8985 6.3; RFC 5827 3; RFC 6069 4.2 (Linux `tcp_ld_RTO_revert`); with
//! `timeout_rules` of Linux `tcp_enter_loss`, `tcp_check_sack_reneging`, `tcp_rack_skb_timeout` and `tcp_rack_reo_timeout` (6.18).
//! **Deviations.** None known.

use crate::cc::CongestionKind;
use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::ack::records::SACKED;
use crate::tcp::ack::state::LOOKED_UP;
use crate::tcp::config::{Prr as PrrVariant, TimeoutRules};
use crate::tcp::send::half::Sender;
use crate::tcp::state::error::{ConnectionError, Event};
use crate::tcp::state::timers::Timer;
use crate::tcp::state::types::{CaState, State};
use crate::time::{Duration, Instant};
use crate::units::Bytes;

impl Sender {
    /// The retransmission slot of a connection in `state` fired. `Err` gives the connection up.
    pub(in crate::tcp) fn on_timer(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        state: State,
        kind: Timer,
    ) -> Result<(), ConnectionError> {
        self.recovery.hold = false;
        match kind {
            Timer::Rto => return self.on_rto(now, shared, state),
            Timer::Pto if self.recovery.is_probing() => self.await_first(now, shared),
            Timer::Pto => self.request_probe(),
            Timer::Reordering | Timer::EarlyRetransmit => {
                self.recovery.wait_until = Instant::FAR_FUTURE;
                let before = self.board.marks.to_retransmit;
                if kind == Timer::EarlyRetransmit {
                    let highest = self.board.highest_sacked();
                    let resent = self.recovery.resent(now, shared);
                    self.board.judge_below(highest, resent);
                } else {
                    let lost = self.detect(now, shared, false);
                    if let Some(tempo) = &mut self.tempo {
                        tempo.on_timer_loss(lost);
                    }
                }
                // Linux `tcp_rack_reo_timeout` counts a segment as delivered.
                let as_linux = shared.config.prr == PrrVariant::Linux && self.recovery.rack.is_some();
                let delivery = Delivery::default();
                let found = self.board.marks.to_retransmit > before;
                // Linux: also while a timeout is repaired.
                let by_linux = as_linux && shared.config.timeout_rules == TimeoutRules::Linux;
                let begins = match self.recovery.state {
                    CaState::Open | CaState::Disorder | CaState::Cwr => true,
                    CaState::Recovery => self.recovery.has_lost_twice(shared),
                    CaState::Loss => by_linux || self.recovery.has_lost_twice(shared),
                };
                if found && begins {
                    self.enter_recovery(now, shared, &delivery);
                    if !self.recovery.keeps_window {
                        let delivered = if as_linux {
                            self.board.weight(shared.mss)
                        } else {
                            0
                        };
                        let counted = Delivery {
                            delivered,
                            ..delivery
                        };
                        self.reduce(shared, &counted, 1);
                    }
                } else if found && self.recovery.state == CaState::Recovery {
                    self.recovery.force |= self.board.pipe() == 0;
                }
                self.set_timer::<false, LOOKED_UP>(now, shared, false);
            }
            Timer::Persist => {
                if self.attempts.probed_enough(now, shared, self.zero_probes()) {
                    return Err(ConnectionError::TimedOut);
                }
                self.on_persist(shared);
            }
            Timer::Syn | Timer::DelayedAck | Timer::KeepAlive | Timer::TimeWait => {}
        }
        Ok(())
    }

    /// RFC 6298 5.4 to 5.6, RFC 5681 3.1, RFC 6675 5.1.
    fn on_rto(&mut self, now: Instant, shared: &mut Shared, state: State) -> Result<(), ConnectionError> {
        if self.board.out == 0 {
            return Ok(());
        }
        if self.attempts.retried_enough(now, shared) {
            return Err(ConnectionError::TimedOut);
        }
        self.attempts.on_timeout(now);
        shared.mtu_probe_unclear();
        if self.attempts.count() == 3 {
            shared.raise(Event::Retransmitting); // RFC 9293 3.8.3: R1
            shared.suspect_black_hole(now);
        }
        shared.stats.timeouts += 1;
        shared.count_congestion(now);
        if self.thin.is_some() {
            self.note_loss(0, true);
        }
        if self.recovery.sack1.is_some() {
            self.go_back(now, shared);
            return Ok(());
        }
        let reneged = self.board.ring[0].is(SACKED);
        if reneged {
            self.board.forget_sacks(); // RFC 2018 8
        }
        let first = self.attempts.count() == 1;
        let as_rfc = shared.config.timeout_rules == TimeoutRules::Rfc;
        // Linux: not if what was out when the window was reduced last is still not acknowledged.
        let reduces = match self.recovery.state {
            _ if as_rfc => first,
            CaState::Open | CaState::Disorder => true,
            CaState::Cwr | CaState::Recovery => self.una >= self.recovery.high_seq,
            CaState::Loss => first || self.una >= self.recovery.high_seq,
        };
        let mut event = self.flight_event(CongestionKind::Timeout { first: reduces });
        if !first {
            event.flight_size = event.flight_size.max(Bytes(u64::from(shared.mss)));
        }
        self.usage.touch(now);
        self.end_spreading();
        self.leave_nonvalidated();
        let new_episode = reduces && (!as_rfc || self.recovery.state != CaState::Loss);
        if let Some(rack) = &mut self.recovery.rack
            && matches!(self.recovery.state, CaState::Open | CaState::Disorder)
        {
            rack.doubt_degree(self.board.marks.sacked_segments, shared.config.dup_thresh);
        }
        // RFC 5682 2.1 and 3.1 step 1: not while a fast recovery (with SACK) or a recovery from a timeout is under way, but
        // again when the timer expires once more for the same segment.
        let eligible = match self.recovery.state {
            CaState::Open | CaState::Disorder | CaState::Cwr => true,
            CaState::Recovery if as_rfc => !shared.sack,
            CaState::Recovery => !first,
            CaState::Loss => {
                !first
                    && (!as_rfc
                        || self.recovery.undo_is_timeout
                            && self.recovery.episode.undo_marker == self.una.max(1))
            }
        };
        if new_episode {
            self.recovery.begin_episode(shared, &self.board, self.una, true);
        }
        self.recovery.frto = u8::from(shared.config.frto && eligible && self.board.segments() > 0);
        self.recovery.frto_new = 0;
        if shared.announces_reductions() {
            self.announce_reduction();
        }
        self.recovery.state = CaState::Loss;
        self.recovery.high_seq = self.nxt;
        self.recovery.episode.recover = self.nxt;
        self.board.set_duplicates(0);
        self.recovery.dup_acks = 0;
        self.recovery.wait_until = Instant::FAR_FUTURE;
        self.recovery.begin_retransmitting(self.una);
        if let Some(rack) = &mut self.recovery.rack {
            // Linux `tcp_rack_skb_timeout`: without a window for reordering. What a peer has that discarded SACKed data is unknown, so all of
            // it is lost, however young (`tcp_timeout_mark_lost`).
            let min = shared.rtt.min().filter(|_| as_rfc);
            let all = reneged && !as_rfc;
            rack.on_timeout(now, &mut self.board, min, shared.rtt.srtt(), all);
        } else {
            self.board.mark_all_lost();
        }
        if new_episode && shared.config.undoes_as_linux() {
            // Linux `tcp_enter_loss` (4.18): what was just judged lost is not under way any more.
            self.recovery.count_under_way(shared, &self.board);
        }
        self.recovery.tlp_end = 0;
        if reduces {
            self.recovery.reduced_at = now;
        }
        event.in_flight = Bytes(if as_rfc { 0 } else { self.board.pipe() });
        self.cc.on_congestion(now, &event);
        self.recovery.force = true;
        if self.backs_off_linearly(shared, state) {
            shared.rtt.reset_backoff();
        } else {
            shared.rtt.back_off(&shared.config.rto);
        }
        let at = now + self.attempts.clamped_rto(now, shared);
        shared.arm(now, Timer::Rto, at);
        Ok(())
    }

    /// The peer seems to have discarded what it had SACKed. It has half of a round trip to show that it has not, and then the timer expires
    /// (Linux `tcp_check_sack_reneging`).
    #[cold]
    pub(super) fn doubt_sacks(&self, now: Instant, shared: &mut Shared) {
        let half = shared.rtt.srtt().unwrap_or_default().mul_div(1, 2);
        let at = now + half.max(Duration::from_millis(10));
        shared.arm(now, Timer::Rto, at);
    }

    /// RFC 6069 4.2: the network says that the retransmission did not get through for lack of a path, so the RTO was
    /// doubled without congestion. If the shorter one is over already, it expires now.
    #[cold]
    pub(in crate::tcp) fn revert_backoff(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        state: State,
    ) -> Result<(), ConnectionError> {
        if self.attempts.count() == 0 || shared.timers.kind() != Some(Timer::Rto) {
            return Ok(());
        }
        let Some(head) = self.board.ring.front().filter(|head| !head.is(SACKED)) else {
            return Ok(());
        };
        let sent = head.last_tx;
        if !shared.rtt.revert_one() {
            return Ok(());
        }
        let at = sent + shared.rtt.rto(&shared.config.rto);
        if at > now {
            shared.arm(now, Timer::Rto, at);
            return Ok(());
        }
        shared.timers.disarm();
        self.on_timer(now, shared, state, Timer::Rto)
    }
}
