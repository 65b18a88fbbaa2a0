//! What an acknowledgment means to the sender: delivery, loss, recovery, undo, timers.
//!
//! The order is that of RFC 9293 3.10.7.4 with the congestion states that Linux names: deliveries are counted and
//! sampled, losses are judged (RACK, or RFC 6675, or duplicate ACKs), the state changes, the controller is informed, the
//! timer is set.
//!
//! **Source.** RFC 5681, 6582, 6675, 8985 section 6, 5827, 3168, 6298, 7765.
//! **Deviations.** Early retransmit's `Immediate` and `Delayed` are Linux's (2012 to 2017): with fewer than four segments
//! out one SACKed segment is enough. A retransmission of the first segment restarts the retransmission timer, as Linux does.

use crate::cc::{Ack, CongestionKind, Echo, Progress, Reaction, ReducedSample};
use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::ack::state::{LOOKED_UP, NO_AGENT, NS2, NS2_AGAIN, NS2_REPAIR, is_agent, may_advance};
use crate::tcp::config::{TailLossProbe, TimeoutRules, WindowGrowth};
use crate::tcp::send::half::Sender;
use crate::tcp::send::rdb::Hidden;
use crate::tcp::state::lazy::Lazy;
use crate::tcp::state::timers::Timer;
use crate::tcp::state::types::CaState;
use crate::time::Instant;
use crate::units::Bytes;

/// State of the sender before an acknowledgment.
#[derive(Clone, Copy, Debug)]
struct Before {
    in_flight: u64,
    una: u64,
    /// Whether the controller has nothing to do, whatever is delivered: then what was in flight is not needed.
    idle: bool,
}

impl Sender {
    /// Processes an acceptable acknowledgment up to offset `ack` (at most SND.NXT): what it delivered, what that shows to be
    /// lost, the congestion state, the controller, the timer. `QUIET`: [`Sender::is_quiet`]. `AGENT`: [`Recovery::has_agent`].
    #[inline(always)]
    pub(in crate::tcp) fn on_ack<const QUIET: bool, const AGENT: u8>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        duplicate: bool,
    ) {
        let idle = AGENT == NS2_REPAIR && self.cc.stand_by(now, None);
        let before = Before {
            in_flight: if idle { 0 } else { self.board.pipe_if::<QUIET>() },
            una: self.una,
            idle,
        };
        let mut delivery = Delivery {
            advanced: QUIET || may_advance(AGENT) && ack > self.una,
            duplicate,
            ..Delivery::default()
        };
        let hidden = self.deliver::<QUIET, AGENT>(now, shared, segment, ack, &mut delivery);
        self.recovery.delivered_total += delivery.delivered;
        if !QUIET && shared.accecn.is_some() && segment.ack == SeqNumber::from_offset(shared.iss, ack) {
            shared.on_feedback(segment, delivery.segments, delivery.delivered);
        }
        // RFC 8257 3.3 and Linux's HyStart: a round begins with the first ACK *beyond* the end of the last, so that it
        // counts what the last ACK of a flight released, and a train does not begin before the pause.
        let round_start = delivery.advanced && self.una > self.recovery.round_end;
        if round_start {
            self.recovery.round_end = self.nxt;
        }
        if !QUIET && !self.recovery.has_agent::<AGENT>() {
            if !shared.sack {
                self.count_duplicates(shared, &mut delivery);
            }
            if delivery.rtt.is_some() {
                self.recovery.unsampled = false;
            }
            if self.recovery.probe_outcome(shared, ack, &delivery) {
                self.note_loss(1, true);
                self.enter_cwr(now, shared, CongestionKind::Loss, &delivery);
                self.count_probe();
                if shared.config.timeout_rules == TimeoutRules::Linux {
                    self.finish_episode(now, shared); // `tcp_process_tlp_ack`: the window falls at once
                }
            }
            if self.tempo.is_some() {
                self.sample_pipe(now, shared, &delivery);
                self.sample_rate(now, shared, &mut delivery);
                self.observe_path(now, shared, &delivery, self.una - before.una);
            }
            if hidden.segments > 0 {
                self.on_hidden(now, shared, &hidden, &delivery);
            }
            if let Some(window) = self.recovery.window() {
                self.on_reduced_sample(now, shared, &delivery, (Bytes(window), false), round_start);
            }
        }
        if !QUIET {
            return self.react::<false, AGENT>(now, shared, segment, &delivery, before, round_start);
        }
        // What is out now was sent after all that was delivered: there is nothing to judge or to wait for.
        let in_order = match (&self.recovery.rack, self.board.ring.front()) {
            (Some(rack), Some(head)) => rack.precedes(head),
            (Some(_) | None, _) => true,
        };
        if in_order {
            self.react::<true, AGENT>(now, shared, segment, &delivery, before, round_start);
        } else {
            let delivery = delivery; // a copy: what nobody else refers to stays in registers
            self.react_to_any(now, shared, segment, &delivery, before, round_start);
        }
    }

    /// The RTT sample of an acknowledgment in a recovery or CWR, or of the one that begins it in slow start.
    fn on_reduced_sample(
        &mut self,
        now: Instant,
        shared: &Shared,
        delivery: &Delivery,
        (window, begins): (Bytes, bool),
        round_start: bool,
    ) {
        if let Some(rtt) = delivery.newest_rtt.or(delivery.rtt) {
            let sample = ReducedSample {
                rtt,
                round_start,
                srtt: shared.rtt.srtt(),
                window,
                begins,
            };
            self.cc.on_reduced_sample(now, &sample);
        }
    }

    /// An acknowledgment that may say anything.
    #[inline(always)]
    pub(in crate::tcp) fn on_any_ack(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        duplicate: bool,
    ) {
        match (self.recovery.is_ns2(), ack > self.una) {
            (false, _) => self.on_any_ack_of::<NO_AGENT>(now, shared, segment, ack, duplicate),
            (true, true) => self.on_any_ack_of::<NS2>(now, shared, segment, ack, duplicate),
            (true, false) if self.recovery.state == CaState::Recovery => {
                self.on_any_ack_of::<NS2_REPAIR>(now, shared, segment, ack, duplicate);
            }
            (true, false) => self.on_any_ack_of::<NS2_AGAIN>(now, shared, segment, ack, duplicate),
        }
    }

    #[inline(never)]
    fn on_any_ack_of<const AGENT: u8>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        duplicate: bool,
    ) {
        self.settle_timer(shared);
        self.full_at = Instant::FAR_FUTURE; // it may open the window again
        self.recovery.hold = false;
        self.on_ack::<false, AGENT>(now, shared, segment, ack, duplicate);
        if AGENT != NO_AGENT {
            self.note_shut_sack1::<AGENT>(now, shared);
        }
    }

    /// What follows from an acknowledgment that looked like nothing but progress, but is out of order.
    #[inline(never)]
    fn react_to_any(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        delivery: &Delivery,
        before: Before,
        round_start: bool,
    ) {
        let _ = shared.timers.take_put_off(); // the slot is set anew below
        self.react::<false, LOOKED_UP>(now, shared, segment, delivery, before, round_start);
    }

    /// What an acknowledgment delivered, and its RTT sample.
    #[inline(always)]
    fn deliver<const QUIET: bool, const AGENT: u8>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        delivery: &mut Delivery,
    ) -> Hidden {
        let mut hidden = Hidden::default();
        let blocks =
            !QUIET && !self.recovery.has_agent::<AGENT>() && shared.sack && segment.sack_blocks() > 0;
        if blocks {
            delivery.resent = self.reports_resent(shared, segment, ack);
        }
        if delivery.advanced {
            if !QUIET && AGENT != NS2 && self.thin.is_some() {
                hidden = self.find_hidden(shared, segment, ack);
            }
            self.take_acked::<QUIET>(now, shared, segment, ack, delivery);
            if hidden.bundled && delivery.rtt.is_some() {
                delivery.rtt = delivery.newest_rtt;
            }
        }
        if self.recovery.has_agent::<AGENT>() {
            self.deliver_sack1::<QUIET, AGENT>(now, shared, segment, ack, delivery);
            return hidden;
        }
        if !QUIET {
            if blocks {
                self.take_all_blocks(now, shared, segment, ack, delivery);
            }
            if let Some(rack) = &mut self.recovery.rack {
                rack.settle(self.board.highest_sacked().max(self.una), shared.mss);
            }
        }
        delivery.rtt = self.sample_rtt(
            now,
            shared,
            segment,
            (delivery.rtt, delivery.newest_rtt),
            delivery.advanced,
        );
        hidden
    }

    /// What follows from an acknowledgment that delivered `delivery`. `QUIET`: nothing is lost by it, and nothing was.
    #[inline(always)]
    fn react<const QUIET: bool, const AGENT: u8>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        delivery: &Delivery,
        before: Before,
        round_start: bool,
    ) {
        let known = is_agent(AGENT); // it asks for no rates and knows no PRR
        let mut may_grow = !before.idle && self.may_grow(shared);
        let state_before = if AGENT == NS2_REPAIR {
            CaState::Recovery
        } else {
            self.recovery.state
        };
        let mut lost = 0;
        if QUIET {
            self.recovery.wait_until = Instant::FAR_FUTURE;
        } else if self.recovery.has_agent::<AGENT>() {
            self.transition_sack1::<AGENT>(now, shared, delivery);
        } else {
            let slow_start = (self.cc.window() < self.cc.ssthresh()).then(|| self.cc.window());
            lost = self.transition(now, shared, segment, delivery, before.una);
            if shared.config.growth == WindowGrowth::Linux {
                may_grow = self.may_grow(shared); // asked of the window that an undo has restored (`tcp_cong_control`)
            }
            let enters =
                self.recovery.window().is_some() && !matches!(state_before, CaState::Recovery | CaState::Cwr);
            if let (true, Some(window)) = (enters, slow_start) {
                self.on_reduced_sample(now, shared, delivery, (window, true), round_start);
            }
        }
        let echo = !QUIET && shared.ecn && shared.reports_marks(segment);
        let new = delivery.delivered > 0 || delivery.credited > 0;
        let told = QUIET || !before.idle && (new || delivery.advanced);
        // Linux grows by what was delivered: data SACKed before does not count again, and SACKed data counts at
        // once where reordering is usual (`tcp_may_raise_cwnd`).
        let usual = u32::from(shared.config.dup_thresh);
        let by_delivery = !QUIET
            && shared.config.growth == WindowGrowth::Linux
            && (delivery.advanced
                || self
                    .recovery
                    .rack
                    .as_ref()
                    .is_some_and(|rack| rack.degree() > usual && delivery.sacked > 0));
        let acked = Bytes(if by_delivery {
            delivery.delivered
        } else {
            delivery.acked
        });
        let marked = Bytes(if echo {
            shared.marked_bytes(delivery.delivered, self.board.unit)
        } else {
            0
        });
        if echo {
            let delivery = *delivery;
            if told {
                let echo = Echo {
                    newly: Bytes(delivery.delivered),
                    delivered_total: Bytes(self.recovery.delivered_total),
                    marked,
                    round_start,
                };
                self.cc.on_echo(now, &echo);
            }
            self.on_echo(now, shared, &delivery);
        }
        let reducing = |state| !QUIET && matches!(state, CaState::Recovery | CaState::Cwr);
        let recovering = reducing(self.recovery.state);
        if delivery.advanced && !recovering {
            self.usage.touch(now);
        }
        if told {
            let reported = match &mut self.tempo {
                Some(tempo) if !QUIET => lost + tempo.take_unreported(),
                Some(_) | None => lost,
            };
            let progress = Progress {
                acked,
                rtt: delivery.newest_rtt,
                cwnd_limited: may_grow,
            };
            let held = if self.recovery.has_agent::<AGENT>() {
                reducing(state_before) && state_before == CaState::Recovery || echo
            } else {
                // In Linux the ACK that ends a recovery may already grow the window.
                recovering || (reducing(state_before) && shared.config.growth != WindowGrowth::Linux)
            };
            let done = if QUIET {
                self.cc.on_progress(now, progress)
            } else {
                held && self.cc.stand_by(now, delivery.newest_rtt.or(delivery.rtt))
            };
            let reaction = if done {
                Reaction::None
            } else {
                let board = &self.board;
                let ack = Ack {
                    acked,
                    sacked: Bytes(delivery.sacked),
                    delivered: Bytes(delivery.delivered),
                    sacked_total: Bytes(board.marks.sacked),
                    segments: delivery.segments,
                    delivered_total: Bytes(self.recovery.delivered_total),
                    lost: Bytes(reported),
                    in_flight: Bytes(board.pipe_if::<QUIET>()),
                    prior_in_flight: Bytes(before.in_flight),
                    rtt: delivery.rtt,
                    newest_rtt: delivery.newest_rtt,
                    one_way_delay: shared.one_way_delay(segment),
                    rate: if QUIET || known {
                        None
                    } else {
                        delivery.rate.as_ref()
                    },
                    round_start,
                    app_limited: !self.usage.is_limited(),
                    cwnd_limited: may_grow,
                    recovering: held,
                    ce_bytes: marked,
                    srtt: shared.rtt.srtt(),
                    min_rtt: shared.rtt.min(),
                };
                self.cc.on_ack(now, &ack)
            };
            if reaction == Reaction::ReduceWindow
                && matches!(self.recovery.state, CaState::Open | CaState::Disorder)
            {
                let delivery = *delivery;
                self.enter_cwr(now, shared, CongestionKind::Delay, &delivery);
            }
        }
        if !known && recovering && !self.recovery.keeps_window {
            self.reduce(shared, delivery, lost);
        }
        if delivery.advanced && shared.cold.is_some() {
            self.mtu_probe_acked(now, shared);
        }
        if !QUIET {
            if !known && self.has_reneged(shared, delivery) {
                self.doubt_sacks(now, shared);
            } else {
                let as_linux = shared.config.timeout_rules == TimeoutRules::Linux;
                // RFC 6298 5.3 asks for new data, Linux for a segment of it (`tcp_clean_rtx_queue`: FLAG_DATA_ACKED).
                let acked = delivery.advanced && (delivery.whole || !as_linux);
                let progress = acked || self.sack_sets_timer(now, shared, delivery);
                self.set_timer::<false, AGENT>(now, shared, progress);
            }
            if delivery.partial {
                shared.rtt.reset_backoff();
            }
        } else if shared.fast.defers()
            && self.recovery.state == CaState::Open
            && let Some(head) = self.board.ring.front()
        {
            let least = shared.rtt.least(now.since(head.last_tx));
            shared.timers.put_off(now, least);
        } else {
            let _ = shared.timers.take_put_off();
            self.set_timer_of_progress(now, shared, false);
        }
    }

    /// Linux `tcp_clean_rtx_queue`: data was SACKed for the first time that had left before the first outstanding segment was sent
    /// last, so it says nothing of that one. Not while the window for reordering is waited for.
    fn sack_sets_timer(&self, now: Instant, shared: &Shared, delivery: &Delivery) -> bool {
        shared.config.timeout_rules == TimeoutRules::Linux
            && delivery.sacked > 0
            && self.recovery.wait_until == Instant::FAR_FUTURE
            && delivery.rtt.is_some_and(|rtt| {
                let head = self.board.ring.front();
                head.is_some_and(|head| rtt > now.since(head.last_tx))
            })
    }

    /// Sets the retransmission slot if it is put off.
    #[inline(always)]
    pub(in crate::tcp) fn settle_timer(&mut self, shared: &mut Shared) {
        if let Some(acked_at) = shared.timers.take_put_off() {
            self.set_timer_of_progress(acked_at, shared, shared.timers.has_sent());
        }
    }

    /// The retransmission slot after an acknowledgment that came at `now` and was nothing but progress; whether new data was `sent` upon
    /// it.
    #[inline(never)]
    fn set_timer_of_progress(&mut self, now: Instant, shared: &mut Shared, sent: bool) {
        self.set_timer_when::<true, LOOKED_UP>(now, shared, true, sent);
    }

    /// The retransmission slot after an acknowledgment. `QUIET`: nothing was lost, and nothing is waited for. `AGENT`: as in
    /// [`Sender::on_ack`].
    #[inline(always)]
    pub(in crate::tcp) fn set_timer<const QUIET: bool, const AGENT: u8>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        advanced: bool,
    ) {
        self.set_timer_when::<QUIET, AGENT>(now, shared, advanced, false);
    }

    #[inline(always)]
    fn set_timer_when<const QUIET: bool, const AGENT: u8>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        advanced: bool,
        sent: bool,
    ) {
        if self.board.out == 0 {
            if shared.timers.kind() != Some(Timer::Persist) {
                shared.timers.disarm(); // RFC 6298 5.2
            }
            self.recovery.wait_until = Instant::FAR_FUTURE;
            if self.unsent() > 0 {
                self.board.clear();
            } else {
                self.board.release();
            }
            if self.recovery.state == CaState::Open
                && self.recovery.episode.undo_marker == 0
                && self.una > self.recovery.episode.recover
            {
                self.recovery.episode = Lazy::default(); // nothing follows from it any more
            }
            return;
        }
        if advanced {
            let mut wait = shared.rtt.rto(&shared.config.rto); // RFC 6298 5.3
            let repairing = matches!(self.recovery.state, CaState::Recovery | CaState::Loss);
            if shared.config.rto_restart && !repairing {
                let segments = u64::from(self.board.segments()) + self.unsent_segments(shared.mss);
                if let Some(head) = self.board.ring.front()
                    && segments < u64::from(shared.config.rto_restart_threshold)
                {
                    // RFC 7765 4
                    let age = now.since(head.last_tx);
                    if age < wait {
                        wait -= age;
                    }
                }
            }
            shared.timers.move_rto(now + wait);
        }
        let at = self.recovery.wait_until;
        debug_assert!(
            !is_agent(AGENT) || at == Instant::FAR_FUTURE,
            "RACK and early retransmit are off"
        );
        if !QUIET && !is_agent(AGENT) && at < shared.timers.rto_at() {
            let kind = if self.recovery.rack.is_some() {
                Timer::Reordering
            } else {
                Timer::EarlyRetransmit
            };
            shared.arm(now, kind, at);
            return;
        }
        let probing = shared.config.tail_loss_probe != TailLossProbe::Off;
        if !is_agent(AGENT) && probing && self.recovery.may_probe::<QUIET>(shared, &self.board) {
            // A PTO runs from transmissions and cumulative acknowledgments, and in Linux a timeout becomes one by these only; so does one that
            // took the place of a probe for which the peer's window had no room (RFC 8985 7.3), or whoever acknowledges puts it off for ever.
            let runs = || match shared.timers.kind() {
                Some(Timer::Pto) => true,
                Some(Timer::Rto) => {
                    !QUIET && shared.config.timeout_rules == TimeoutRules::Linux
                        || self.nxt > shared.peer.edge()
                }
                _ => false,
            };
            if !advanced && runs() {
                return;
            }
            if shared.sack {
                self.recovery.arm_probe::<QUIET>(now, shared, &self.board, sent);
                return;
            }
        }
        if !shared.timers.has_rto() {
            let at = shared.timers.rto_at();
            shared.arm(now, Timer::Rto, at);
        }
    }
}
