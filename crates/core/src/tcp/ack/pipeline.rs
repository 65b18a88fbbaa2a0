//! What an acknowledgment means to the sender: delivery, loss, recovery, undo, timers.
//!
//! The order is that of RFC 9293 3.10.7.4 with the congestion states that Linux names: deliveries are counted and
//! sampled, losses are judged (RACK, or RFC 6675, or duplicate ACKs), the state changes, the controller is informed, the
//! timer is set.
//!
//! **Source.** RFC 5681, 6582, 6675, 8985 section 6, 5827, 3168, 6298, 7765.
//! **Deviations.** Early retransmit's `Immediate` and `Delayed` are Linux's (2012 to 2017): with fewer than four segments
//! out one SACKed segment is enough. A retransmission of the first segment restarts the retransmission timer, as Linux does.

use crate::cc::{Ack, Congestion, CongestionKind, Progress, Reaction};
use crate::packet::{Flags, Segment};
use crate::tcp::Shared;
use crate::tcp::ack::delivery::Delivery;
use crate::tcp::ack::prr::{Entry, Prr, PrrAck};
use crate::tcp::ack::scoreboard::SACKED;
use crate::tcp::config::{EcnEcho, Growth, Prr as PrrVariant, TailLossProbe};
use crate::tcp::send::half::{CaState, Sender};
use crate::tcp::send::rdb::Hidden;
use crate::tcp::state::error::{ConnectionError, Event};
use crate::tcp::state::lazy::Lazy;
use crate::tcp::state::timers::Timer;
use crate::time::Instant;
use crate::units::Bytes;

/// What was so before an acknowledgment.
#[derive(Clone, Copy, Debug)]
struct Before {
    in_flight: u64,
    una: u64,
}

impl Sender {
    /// Processes an acceptable acknowledgment up to offset `ack` (at most SND.NXT): what it delivered, what that shows to be
    /// lost, the congestion state, the controller, the timer. `QUIET`: [`Sender::is_quiet`].
    #[inline(always)]
    pub(in crate::tcp) fn on_ack<const QUIET: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        duplicate: bool,
    ) {
        let before = Before {
            in_flight: self.board.pipe_if::<QUIET>(),
            una: self.una,
        };
        let mut delivery = Delivery {
            advanced: QUIET || ack > self.una,
            duplicate,
            ..Delivery::default()
        };
        let hidden = self.deliver::<QUIET>(now, shared, segment, ack, &mut delivery);
        self.delivered_total += delivery.delivered;
        // RFC 8257 3.3 and Linux's HyStart: a round begins with the first ACK *beyond* the end of the last, so that it
        // counts what the last ACK of a flight released, and a train does not begin before the pause.
        let round_start = delivery.advanced && self.una > self.round_end;
        if round_start {
            self.round_end = self.nxt;
        }
        if !QUIET && self.sack1.is_none() {
            if !shared.sack {
                self.count_duplicates(shared, &mut delivery);
            }
            self.probe_outcome(now, shared, ack, &delivery);
            if self.tempo.is_some() {
                self.sample_pipe(now, shared, &delivery);
                delivery.rate = self.rate_sample(now, shared, delivery.delivered, delivery.newest_tx);
                self.observe_path(now, shared, &delivery, self.una - before.una);
            }
            if hidden.segments > 0 {
                self.on_hidden(now, shared, &hidden, &delivery);
            }
        }
        // What is out now was sent after all that was delivered: there is nothing to judge or to wait for.
        let in_order = QUIET
            && match (&self.rack, self.board.ring.front()) {
                (Some(rack), Some(head)) => rack.precedes(head),
                (Some(_) | None, _) => true,
            };
        if in_order {
            self.react::<true>(now, shared, segment, &delivery, before, round_start);
        } else {
            self.react_to_any(now, shared, segment, delivery, before, round_start);
        }
    }

    /// An acknowledgment that may say anything.
    #[inline(never)]
    pub(in crate::tcp) fn on_any_ack(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        duplicate: bool,
    ) {
        self.on_ack::<false>(now, shared, segment, ack, duplicate);
    }

    #[inline(never)]
    fn react_to_any(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        delivery: Delivery,
        before: Before,
        round_start: bool,
    ) {
        self.react::<false>(now, shared, segment, &delivery, before, round_start);
    }

    /// What an acknowledgment delivered, and its RTT sample.
    #[inline(always)]
    fn deliver<const QUIET: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        delivery: &mut Delivery,
    ) -> Hidden {
        let mut hidden = Hidden::default();
        if delivery.advanced {
            if !QUIET && self.thin.is_some() {
                hidden = self.find_hidden(shared, segment, ack);
            }
            self.take_acked::<QUIET>(now, shared, segment, ack, delivery);
            if hidden.bundled && delivery.rtt.is_some() {
                delivery.rtt = delivery.newest_rtt;
            }
        }
        if self.sack1.is_some() {
            self.deliver_sack1::<QUIET>(now, shared, segment, ack, delivery);
            return hidden;
        }
        if !QUIET {
            if segment.sack_blocks() > 0 && shared.sack {
                self.take_blocks::<false>(now, shared, segment, ack, delivery);
            }
            if let Some(rack) = &mut self.rack {
                rack.settle(self.board.highest_sacked().max(self.una), shared.mss);
            }
        }
        delivery.rtt = self.sample_rtt(now, shared, segment, delivery.rtt, delivery.advanced);
        hidden
    }

    /// What follows from an acknowledgment that delivered `delivery`. `QUIET`: nothing is lost by it, and nothing was.
    #[inline(always)]
    fn react<const QUIET: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        delivery: &Delivery,
        before: Before,
        round_start: bool,
    ) {
        let may_grow = self.may_grow(shared);
        let state_before = self.state;
        let mut lost = 0;
        if QUIET {
            self.wait_until = Instant::FAR_FUTURE;
        } else if self.sack1.is_some() {
            self.transition_sack1(now, shared, delivery);
        } else {
            lost = self.transition(now, shared, segment, delivery);
        }
        let echo = !QUIET && shared.ecn && segment.flags.contains(Flags::ECE);
        if echo {
            self.on_echo(now, shared, delivery);
        }
        let reducing = |state| !QUIET && matches!(state, CaState::Recovery | CaState::Cwr);
        let recovering = reducing(self.state);
        if QUIET || delivery.delivered > 0 || delivery.advanced {
            let reported = match &mut self.tempo {
                Some(tempo) if !QUIET => lost + core::mem::take(&mut tempo.unreported),
                Some(_) | None => lost,
            };
            let (board, delivered_total, limited) = (&self.board, self.delivered_total, self.limited);
            // Linux grows by what was delivered: data SACKed before does not count again, and SACKed data counts at
            // once where reordering is usual (`tcp_may_raise_cwnd`).
            let usual = u32::from(shared.config.dup_thresh);
            let by_delivery = !QUIET
                && shared.config.growth == Growth::Linux
                && (delivery.advanced || self.rack.as_ref().is_some_and(|rack| rack.degree() > usual));
            let acked = Bytes(if by_delivery {
                delivery.delivered
            } else {
                delivery.acked
            });
            let progress = Progress {
                acked,
                rtt: delivery.newest_rtt,
                cwnd_limited: may_grow,
            };
            let held = match &self.sack1 {
                Some(_) => reducing(state_before) && state_before == CaState::Recovery || echo,
                // In Linux the ACK that ends a recovery may already grow the window.
                None => recovering || (reducing(state_before) && shared.config.growth != Growth::Linux),
            };
            let reaction = self.cc.on_ack::<QUIET>(now, progress, || Ack {
                acked,
                sacked: Bytes(delivery.sacked),
                sacked_total: Bytes(board.marks.sacked),
                segments: delivery.segments,
                delivered_total: Bytes(delivered_total),
                lost: Bytes(reported),
                in_flight: Bytes(board.pipe_if::<QUIET>()),
                prior_in_flight: Bytes(before.in_flight),
                rtt: delivery.rtt,
                newest_rtt: delivery.newest_rtt,
                one_way_delay: shared.one_way_delay(segment),
                rate: delivery.rate.as_ref(),
                round_start,
                app_limited: !limited,
                cwnd_limited: may_grow,
                recovering: held,
                ce_bytes: Bytes(if echo { delivery.delivered } else { 0 }),
                srtt: shared.rtt.srtt(),
                min_rtt: shared.rtt.min(),
            });
            if reaction == Reaction::ReduceWindow && matches!(self.state, CaState::Open | CaState::Disorder) {
                let delivery = *delivery;
                self.enter_cwr(now, shared, CongestionKind::Delay, &delivery);
            }
        }
        if recovering && shared.config.prr != PrrVariant::Off {
            self.reduce(shared, delivery, lost);
        }
        if shared.cold.is_some() && delivery.advanced {
            self.mtu_probe_acked(now, shared);
        }
        self.set_timer(now, shared, delivery.advanced);
        if delivery.partial {
            shared.rtt.reset_backoff();
        }
    }

    /// Loss detection and change of state. Returns what was newly judged lost.
    fn transition(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        delivery: &Delivery,
    ) -> u64 {
        // CWR lasts until something beyond `high_seq` is acknowledged: up to there the peer may not have seen CWR yet, and goes
        // on echoing (RFC 3168 6.1.2).
        let over = self.una > self.high_seq || (self.una == self.high_seq && self.state != CaState::Cwr);
        if delivery.advanced && over && self.state != CaState::Open {
            self.finish_episode(now, shared);
        }
        if self.episode.undo_marker != 0 {
            self.try_undo(now, shared, segment, delivery);
        }
        if self.state == CaState::Loss && self.frto != 0 {
            self.step_frto(now, shared, delivery);
        }
        if self.board.out == 0 {
            self.wait_until = Instant::FAR_FUTURE;
            if self.state == CaState::Disorder {
                self.state = CaState::Open;
            }
            return 0;
        }
        let mut lost = 0;
        if delivery.advanced && self.rack.is_none() {
            self.wait_until = Instant::FAR_FUTURE; // early retransmit waits anew for what is out now
        }
        if self.state == CaState::Recovery && delivery.advanced && !shared.sack {
            lost += self.board.mark_lost(0); // RFC 6582 3.2 step 3: partial acknowledgment
            self.force = true;
        }
        if self.board.marks.sacked_segments > 0 || self.board.marks.duplicates > 0 || self.rack.is_some() {
            lost += self.detect(now, shared);
        }
        match self.state {
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if self.board.marks.to_retransmit > 0 {
                    if !self.mtu_probe_lost(now, shared) {
                        self.enter_recovery(now, shared, delivery);
                    }
                } else if self.state != CaState::Cwr {
                    let quiet = self.board.marks.sacked_segments == 0 && self.board.marks.duplicates == 0;
                    self.state = if quiet { CaState::Open } else { CaState::Disorder };
                }
            }
            CaState::Recovery | CaState::Loss => {}
        }
        lost
    }

    pub(in crate::tcp) fn flight_event(&self, kind: CongestionKind) -> Congestion {
        Congestion {
            kind,
            flight_size: Bytes(self.board.out),
            in_flight: Bytes(self.board.pipe()),
        }
    }

    /// What was in flight when the acknowledgment arrived: FlightSize of RFC 5681 (4).
    fn reduction_event(&self, kind: CongestionKind, delivery: &Delivery) -> Congestion {
        let mut event = self.flight_event(kind);
        // RFC 5681 3.2 step 2: less what limited transmit sent.
        event.flight_size = Bytes(self.board.out.saturating_sub(self.limited_sent) + delivery.acked);
        event
    }

    fn enter_recovery(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        self.begin_episode(shared, false);
        // In CWR the window is reduced for what was sent before `high_seq`; what was sent later is lost in another window of data
        // (RFC 5681 3.2). Linux finds that out an ACK later: its recovery without a reduction is over at once, and begins again.
        if self.state != CaState::Cwr || self.una >= self.high_seq {
            let window = self.cc.window();
            self.shrink(now, shared, CongestionKind::Loss, delivery);
            self.begin_reduction(shared, delivery, window);
        }
        shared.stats.recoveries += 1;
        shared.count_congestion(now);
        if self.thin.is_some() {
            self.note_loss(0, true);
        }
        self.state = CaState::Recovery;
        self.high_seq = self.nxt;
        self.episode.recover = self.nxt;
        self.begin_recovery();
        self.force = true; // RFC 6675 5 (4.3)
        shared.timers.rto_at = now + shared.rtt.rto(&shared.config.rto);
    }

    /// The window's answer to a loss, a mark or delay.
    fn shrink(&mut self, now: Instant, shared: &Shared, kind: CongestionKind, delivery: &Delivery) {
        self.end_spreading();
        if self.tempo.is_none() || !self.reduce_nonvalidated(now, shared, kind) {
            let event = self.reduction_event(kind, delivery);
            self.cc.on_congestion(now, &event);
        }
    }

    fn begin_reduction(&mut self, shared: &Shared, delivery: &Delivery, window: Bytes) {
        self.episode.prr = Prr::enter(
            shared.config.prr,
            Entry {
                flight: self.board.out,
                sacked_before: self.board.marks.sacked
                    + u64::from(self.board.marks.duplicates) * u64::from(shared.mss)
                    - delivery.sacked.min(self.board.marks.sacked),
                acked: delivery.acked,
                window: window.get(),
            },
        );
        self.reduce_to(shared, 0);
    }

    /// `count` beyond what is in flight. With nothing in flight no acknowledgment would ever free more (an ECE on one that
    /// delivers only what was SACKed before): at least a segment (RFC 9937 6.2's forced transmission).
    fn reduce_to(&mut self, shared: &Shared, count: u64) {
        let in_flight = self.board.pipe();
        let least = if in_flight == 0 { u64::from(shared.mss) } else { 0 };
        self.episode.recovery_window = (in_flight + count).max(least);
    }

    /// Reduces the window without a loss.
    pub(in crate::tcp) fn enter_cwr(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        kind: CongestionKind,
        delivery: &Delivery,
    ) {
        self.episode.undo_marker = 0;
        let window = self.cc.window();
        self.shrink(now, shared, kind, delivery);
        self.begin_reduction(shared, delivery, window);
        if kind == CongestionKind::Delay {
            // Decided after this ACK had its turn at the window: the next is the first to reduce it (as in Linux).
            self.episode.recovery_window = self.episode.recovery_window.max(window.get());
        }
        self.state = CaState::Cwr;
        self.high_seq = self.nxt;
        shared.stats.window_reductions += 1;
        shared.count_congestion(now);
    }

    /// An ACK with ECE (RFC 3168 6.1.2; RFC 8257 3.3): at most one reduction per round trip.
    pub(in crate::tcp) fn on_echo(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        shared.stats.ecn_echoes += 1;
        let free = matches!(self.state, CaState::Open | CaState::Disorder);
        if free && (delivery.advanced || delivery.delivered > 0) && self.una >= self.high_seq {
            self.enter_cwr(now, shared, CongestionKind::Ecn, delivery);
        }
        if shared.config.ecn_echo == EcnEcho::Rfc3168 && self.state == CaState::Cwr {
            self.cwr_pending = true;
        }
    }

    /// RFC 9937 6, each ACK of the episode.
    fn reduce(&mut self, shared: &Shared, delivery: &Delivery, lost: u64) {
        let emulated =
            u64::from(delivery.duplicate && !shared.sack && !delivery.advanced) * u64::from(shared.mss);
        // RFC 9937 4: less what the duplicates before it were counted for.
        let mut delivered = delivery.delivered.saturating_sub(delivery.counted) + emulated;
        if !shared.sack && shared.config.prr == PrrVariant::Rfc9937 {
            // RFC 9937 6.2: extraneous duplicates cannot deliver more than was out.
            delivered = delivered.min(self.episode.prr.undelivered());
        }
        if delivered == 0 && !self.force {
            return;
        }
        let in_flight = self.board.pipe();
        let unit = self.board.weight(1);
        let ssthresh = self.cc.ssthresh().get() / unit * unit;
        let ack = PrrAck {
            delivered,
            in_flight,
            safe: delivery.advanced && lost == 0,
        };
        let count = self
            .episode
            .prr
            .on_ack(shared.config.prr, ssthresh, u64::from(shared.mss), unit, ack);
        self.reduce_to(shared, count);
    }

    fn finish_episode(&mut self, now: Instant, shared: &Shared) {
        match self.state {
            CaState::Recovery | CaState::Cwr => {
                let event = self.flight_event(CongestionKind::RecoveryEnd);
                self.cc.on_congestion(now, &event);
                if self.tempo.is_some() {
                    self.end_nonvalidated(now, shared);
                }
                if self.state == CaState::Recovery
                    && let Some(rack) = &mut self.rack
                {
                    rack.on_recovery_end();
                }
            }
            CaState::Open | CaState::Disorder | CaState::Loss => {}
        }
        if self.state != CaState::Disorder {
            self.state = CaState::Open;
        }
        self.board.set_duplicates(0);
        self.frto = 0;
        self.frto_new = 0;
        self.force = false;
    }

    /// The retransmission slot after an acknowledgment.
    #[inline(always)]
    pub(in crate::tcp) fn set_timer(&mut self, now: Instant, shared: &mut Shared, advanced: bool) {
        if self.board.out == 0 {
            if shared.timers.kind() != Some(Timer::Persist) {
                shared.timers.disarm(); // RFC 6298 5.2
            }
            self.wait_until = Instant::FAR_FUTURE;
            self.board.release();
            if self.state == CaState::Open && self.episode.undo_marker == 0 && self.una > self.episode.recover
            {
                self.episode = Lazy::default(); // nothing follows from it any more
            }
            return;
        }
        if advanced {
            let mut wait = shared.rtt.rto(&shared.config.rto); // RFC 6298 5.3
            let open = matches!(self.state, CaState::Open | CaState::Disorder);
            if shared.config.rto_restart && open {
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
            shared.timers.rto_at = now + wait;
        }
        let at = self.wait_until;
        if at < shared.timers.rto_at {
            let kind = if self.rack.is_some() {
                Timer::Reordering
            } else {
                Timer::EarlyRetransmit
            };
            shared.timers.arm(kind, at);
            return;
        }
        let probing = shared.config.tail_loss_probe != TailLossProbe::Off;
        if probing
            && self.state == CaState::Open
            && self.board.marks.sacked_segments == 0
            && self.tlp_end == 0
        {
            if !advanced && shared.timers.kind() == Some(Timer::Pto) {
                return; // a PTO runs from transmissions and cumulative acknowledgments
            }
            if shared.sack {
                self.arm_probe(now, shared);
                return;
            }
        }
        let at = shared.timers.rto_at;
        shared.timers.arm(Timer::Rto, at);
    }

    /// The retransmission slot fired. `Err` gives the connection up.
    pub(in crate::tcp) fn on_timer(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        kind: Timer,
    ) -> Result<(), ConnectionError> {
        match kind {
            Timer::Rto => return self.on_rto(now, shared),
            Timer::Pto => self.probe_due = true,
            Timer::Reordering | Timer::EarlyRetransmit => {
                self.wait_until = Instant::FAR_FUTURE;
                let before = self.board.marks.to_retransmit;
                if kind == Timer::EarlyRetransmit {
                    let highest = self.board.highest_sacked();
                    let resent = self.resent(now, shared);
                    self.board.judge_below(highest, resent);
                } else {
                    let lost = self.detect(now, shared);
                    if let Some(tempo) = &mut self.tempo {
                        tempo.unreported += lost;
                    }
                }
                let delivery = Delivery::default();
                let found = self.board.marks.to_retransmit > before;
                if found && !matches!(self.state, CaState::Recovery | CaState::Loss) {
                    self.enter_recovery(now, shared, &delivery);
                    if shared.config.prr != PrrVariant::Off {
                        self.reduce(shared, &delivery, 1);
                    }
                } else if found && self.state == CaState::Recovery {
                    self.force |= self.board.pipe() == 0;
                }
                self.set_timer(now, shared, false);
            }
            Timer::Persist => {
                if self.probed_enough(now, shared) {
                    return Err(ConnectionError::TimedOut);
                }
                self.on_persist(shared);
            }
            Timer::Syn | Timer::DelayedAck | Timer::KeepAlive | Timer::TimeWait => {}
        }
        Ok(())
    }

    /// RFC 6298 5.4 to 5.6, RFC 5681 3.1, RFC 6675 5.1.
    fn on_rto(&mut self, now: Instant, shared: &mut Shared) -> Result<(), ConnectionError> {
        if self.board.out == 0 {
            return Ok(());
        }
        if self.retried_enough(now, shared) {
            return Err(ConnectionError::TimedOut);
        }
        self.retries = self.retries.saturating_add(1);
        if self.retries == 1 {
            self.note_first_timeout(now);
        }
        Sender::mtu_probe_unclear(shared);
        if self.retries == 3 {
            shared.raise(Event::Retransmitting); // RFC 9293 3.8.3: R1
            shared.suspect_black_hole(now);
        }
        shared.stats.timeouts += 1;
        shared.count_congestion(now);
        if self.thin.is_some() {
            self.note_loss(0, true);
        }
        if self.sack1.is_some() {
            self.go_back(now, shared);
            return Ok(());
        }
        if self.board.ring[0].is(SACKED) {
            self.board.forget_sacks(); // RFC 2018 8
        }
        let first = self.retries == 1;
        let mut event = self.flight_event(CongestionKind::Timeout { first });
        if !first {
            event.flight_size = event.flight_size.max(Bytes(u64::from(shared.mss)));
        }
        self.cc.on_congestion(now, &event);
        self.end_spreading();
        self.leave_nonvalidated();
        let new_episode = self.state != CaState::Loss && first;
        if let Some(rack) = &mut self.rack
            && matches!(self.state, CaState::Open | CaState::Disorder)
        {
            rack.doubt_degree(self.board.marks.sacked_segments, shared.config.dup_thresh);
        }
        // RFC 5682 2.1 and 3.1 step 1: not while a fast recovery (with SACK) or a recovery from a timeout is under way, but
        // again when the timer expires once more for the same segment.
        let eligible = match self.state {
            CaState::Open | CaState::Disorder | CaState::Cwr => true,
            CaState::Recovery => !shared.sack,
            CaState::Loss => !first && self.undo_is_timeout && self.episode.undo_marker == self.una.max(1),
        };
        if new_episode {
            self.begin_episode(shared, true);
        }
        self.frto = u8::from(shared.config.frto && eligible && self.board.segments() > 0);
        self.frto_new = 0;
        self.state = CaState::Loss;
        self.high_seq = self.nxt;
        self.episode.recover = self.nxt;
        self.board.set_duplicates(0);
        self.dup_acks = 0;
        self.tlp_end = 0;
        self.wait_until = Instant::FAR_FUTURE;
        self.begin_recovery();
        if let Some(rack) = &mut self.rack {
            rack.on_timeout(now, &mut self.board, shared.rtt.min(), shared.rtt.srtt());
        } else {
            self.board.mark_all_lost();
        }
        self.force = true;
        if self.backs_off_linearly(shared) {
            shared.rtt.reset_backoff();
        } else {
            shared.rtt.back_off(&shared.config.rto);
        }
        let at = now + self.clamped_rto(now, shared);
        shared.timers.arm(Timer::Rto, at);
        Ok(())
    }
}
