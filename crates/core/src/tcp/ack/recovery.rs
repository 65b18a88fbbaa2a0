//! Congestion state: fast recovery, CWR, and what of them may be taken back.
//!
//! **Source.** RFC 5681 3.2; RFC 6582; RFC 6675 5; RFC 3168 6.1.2; RFC 9937.
//! **Deviations.** See `pipeline`.

use crate::cc::{Congestion, CongestionKind};
use crate::packet::Segment;
use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::ack::loss_detection::{Few, early_threshold};
use crate::tcp::ack::prr::{Entry, Prr, PrrAck};
use crate::tcp::ack::records::{LOST, Record, SACKED};
use crate::tcp::ack::undo::{Frto, Mistake};
use crate::tcp::config::{DsackRules, Prr as PrrVariant, TimeoutRules};
use crate::tcp::send::half::Sender;
use crate::tcp::state::types::CaState;
use crate::time::{Duration, Instant};
use crate::units::Bytes;

impl Sender {
    /// Loss detection and change of state; SND.UNA was `una` before. Returns what was newly judged lost.
    pub(super) fn transition(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        delivery: &Delivery,
        una: u64,
    ) -> u64 {
        let marked = shared.ecn && shared.reports_marks(segment);
        self.recovery.undo_spares_window |= marked;
        let alerts = self.recovery.state != CaState::Open
            || delivery.duplicate
            || delivery.sacked > 0
            || delivery.dsack
            || marked;
        if self.has_reneged(shared, delivery) {
            self.recovery.wait_until = Instant::FAR_FUTURE;
            self.recovery.lost_again = None;
            return 0;
        }
        if shared.config.timeout_rules == TimeoutRules::Linux
            && self.recovery.original_shows_mistake(shared.sack, delivery)
        {
            self.undo(now, shared, delivery.rtt);
        }
        // CWR lasts until something beyond `high_seq` is acknowledged: up to there the peer may not have seen CWR yet, and goes
        // on echoing (RFC 3168 6.1.2).
        let over = self.una > self.recovery.high_seq
            || (self.una == self.recovery.high_seq && self.recovery.state != CaState::Cwr);
        // A recovery that went on from CWR may be over when it begins.
        let asked = delivery.advanced
            || self.recovery.state == CaState::Recovery && shared.config.timeout_rules == TimeoutRules::Linux;
        let mistake = self.recovery.mistake(shared, segment, delivery);
        let ends = asked && over && self.recovery.state != CaState::Open;
        if ends {
            self.end_episode(now, shared, mistake.is_some());
        }
        if let Some(mistake) = mistake {
            let repairing = self.recovery.state == CaState::Loss;
            if let Some(rack) = &mut self.recovery.rack
                && shared.config.timeout_rules == TimeoutRules::Linux
                && mistake == Mistake::Redundant
                && !ends
                && !repairing
            {
                rack.on_redundant_recovery();
            }
            let recovering = self.recovery.state == CaState::Recovery;
            if mistake == Mistake::Late && recovering {
                let highest = self.board.highest_sacked().max(self.una);
                if shared.config.timeout_rules == TimeoutRules::Linux
                    && let Some(rack) = &mut self.recovery.rack
                {
                    rack.on_late_original(una, highest, shared.mss);
                }
                if self.board.marks.retrans > 0 {
                    self.recovery.hold = true;
                    return 0;
                }
            }
            self.recovery.mark_answered = marked && recovering;
            self.undo(now, shared, delivery.rtt);
        }
        self.recovery.forget_stamp(&self.board);
        if self.recovery.state == CaState::Loss && self.recovery.frto != 0 {
            self.step_frto(now, shared, delivery);
        }
        if self.board.out == 0 {
            self.recovery.wait_until = Instant::FAR_FUTURE;
            self.recovery.lost_again = None;
            if self.recovery.state == CaState::Disorder {
                self.recovery.state = CaState::Open;
            }
            return 0;
        }
        let mut lost = 0;
        if delivery.advanced && self.recovery.rack.is_none() {
            self.recovery.wait_until = Instant::FAR_FUTURE; // early retransmit waits anew for what is out now
        }
        if self.recovery.state == CaState::Recovery && delivery.advanced && !shared.sack {
            // RFC 6582 3.2 step 3: partial acknowledgment. Not of a retransmission that took others along.
            let under_way = |head: &Record| shared.config.collapse_retransmissions && head.is(LOST);
            if !self.board.ring.front().is_some_and(under_way) {
                lost += self.board.mark_lost(0);
                self.recovery.force = true;
            }
        }
        if self.board.marks.sacked_segments > 0
            || self.board.marks.duplicates > 0
            || self.recovery.rack.is_some()
        {
            lost += self.detect(now, shared, marked);
        }
        match self.recovery.state {
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                // Also for what was retransmitted already: it was sent after the last reduction (RFC 5681 4.3: losses in two
                // successive windows lower the window twice; Linux's `tcp_time_to_recover`).
                if self.board.marks.lost > 0 {
                    if !self.mtu_probe_lost(now, shared) {
                        self.enter_recovery(now, shared, delivery);
                    }
                } else if self.recovery.state != CaState::Cwr {
                    // Linux `tcp_try_keep_open`, where `tcp_fastretrans_alert` runs: also while what was sent again is outstanding.
                    let alerted = alerts && shared.config.timeout_rules == TimeoutRules::Linux;
                    let quiet = self.board.marks.sacked_segments == 0
                        && self.board.marks.duplicates == 0
                        && !(alerted && self.board.has_resent());
                    self.recovery.state = if quiet { CaState::Open } else { CaState::Disorder };
                }
            }
            CaState::Loss => {
                // Linux: what repaired the timeout was lost in its turn.
                let as_linux = shared.config.timeout_rules == TimeoutRules::Linux;
                if as_linux && self.recovery.lost_again.is_some() || self.recovery.has_lost_twice(shared) {
                    self.enter_recovery(now, shared, delivery);
                }
            }
            CaState::Recovery => {
                if self.recovery.has_lost_twice(shared) {
                    self.enter_recovery(now, shared, delivery);
                }
            }
        }
        self.recovery.undo_spares_window |= marked; // also of a recovery that begins here
        lost
    }

    /// SND.UNA moved onto what is SACKed: the peer has discarded it, so its SACKs say nothing (Linux `tcp_check_sack_reneging`).
    pub(super) fn has_reneged(&self, shared: &Shared, delivery: &Delivery) -> bool {
        delivery.advanced
            && self.board.marks.sacked_segments > 0
            && shared.config.timeout_rules == TimeoutRules::Linux
            && self.board.ring.front().is_some_and(|head| head.is(SACKED))
    }

    /// Judges losses by the mechanism that is on. Returns what is newly judged lost. `marked`: an acknowledgment that reports marks asks.
    pub(super) fn detect(&mut self, now: Instant, shared: &Shared, marked: bool) -> u64 {
        if let Some(lost) = self.recovery.detect_by_time(now, shared, &mut self.board) {
            return lost;
        }
        // Nothing is to be sent, or the peer's window does not permit it.
        let blocked = || self.new_length(shared).is_none();
        let few = Few {
            early: early_threshold(shared.config.early_retransmit, self.board.segments(), blocked),
            thin: self.thin_dupack_shows_loss(shared),
            marked,
        };
        self.recovery
            .detect_by_count(now, shared, &mut self.board, self.una, few)
    }

    /// The last reduction was a mistake: windows and timers are as if it had not been.
    fn undo(&mut self, now: Instant, shared: &mut Shared, rtt: Option<Duration>) {
        if self.recovery.undo_spares_window {
            // The reduction was for something else, too, and stays (RFC 4015 3.2 step 9; Linux: `prior_ssthresh` is 0).
            self.keep_reduced(now, shared);
            if self.recovery.state != CaState::Loss || self.cc.hears_of_repairs() {
                let event = self.flight_event(CongestionKind::RecoveryEnd);
                self.cc.on_congestion(now, &event);
            }
            if self.tempo.is_some() {
                self.end_nonvalidated(now, shared);
            }
        } else {
            self.withdraw_announcement(); // Linux `tcp_ecn_withdraw_cwr`
            self.recovery.high_seq = self.una; // nothing was reduced, so the next mark is answered
            if self.tempo.is_none() || !self.restore_nonvalidated(now) {
                let event = self.flight_event(CongestionKind::Undo);
                self.cc.on_congestion(now, &event);
            }
        }
        shared.stats.undos += 1;
        if self.recovery.state == CaState::Loss {
            self.attempts.forget(); // Linux `tcp_try_undo_loss`: the next timeout is a first one
        }
        if self.recovery.undo_is_timeout {
            shared.stats.spurious_timeouts += 1;
            if shared.config.timeout_rules == TimeoutRules::Rfc {
                shared.rtt.reset_backoff(); // in Linux a sample has to do it
            }
            if shared.config.rto.after_spurious
                && let Some(rtt) = rtt.or(shared.rtt.srtt())
            {
                let config = &shared.config.rto;
                shared.rtt.after_spurious_timeout(config, rtt);
            }
        }
        self.recovery.take_back(&mut self.board);
    }

    /// What is taken back leaves the window as it is: in Linux that is the one of the recovery, not the threshold
    /// (`tcp_end_cwnd_reduction` asks for `undo_marker`).
    fn keep_reduced(&mut self, now: Instant, shared: &Shared) {
        if shared.config.timeout_rules == TimeoutRules::Linux
            && self.recovery.undo_spares_window
            && let Some(window) = self.recovery.window()
        {
            let ssthresh = self.cc.ssthresh();
            self.cc.set_window(now, Bytes(window), ssthresh);
        }
    }

    fn step_frto(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        let more = self.new_length_if::<true>(shared).is_some();
        // Linux `tcp_ack`: a report of a duplicate is none itself (`num_dupack`).
        let reports = delivery.dsack && shared.config.dsack_rules == DsackRules::Linux;
        let delivery = Delivery {
            duplicate: delivery.duplicate && !reports,
            ..*delivery
        };
        match self.recovery.step_frto(shared, &delivery, more) {
            Frto::Spurious => self.undo(now, shared, delivery.rtt),
            // In Linux duplicates count as delivered, which makes room.
            Frto::Real if !shared.sack && shared.config.timeout_rules != TimeoutRules::Linux => {
                // Both new segments still count as in flight: the window that slow start would have by now lets a
                // retransmission leave.
                let window = Bytes(3 * u64::from(shared.mss));
                let ssthresh = self.cc.ssthresh();
                self.cc.set_window(now, window, ssthresh);
            }
            Frto::Continue | Frto::Real => {}
        }
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
        event.flight_size = Bytes(self.board.out.saturating_sub(self.recovery.limited_sent) + delivery.acked);
        if matches!(self.recovery.state, CaState::Recovery | CaState::Loss) {
            // The second reduction for what is out, most of which has arrived or is lost: at most the window of the first.
            event.flight_size = event.flight_size.min(self.cc.window());
        }
        event
    }

    pub(super) fn enter_recovery(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        self.recovery.begin_episode(shared, &self.board, self.una, false);
        // In CWR the window is reduced for what was sent before `high_seq`; what was sent later is lost in another window of data
        // (RFC 5681 3.2). Linux finds that out an ACK later: its recovery without a reduction is over at once, and begins again.
        let as_linux = shared.config.timeout_rules == TimeoutRules::Linux;
        let answered = self.recovery.state == CaState::Cwr && (as_linux || self.una < self.recovery.high_seq);
        if answered && !(self.recovery.reduced_for_mark && self.cc.is_milder_on_marks()) {
            self.recovery.undo_spares_window = true;
            self.note_recovery();
            if self.cc.keeps_window() {
                let event = self.reduction_event(CongestionKind::Loss, delivery);
                self.cc.on_congestion(now, &event); // it looks at the state itself
            }
        } else {
            if shared.announces_reductions() {
                self.announce_reduction();
            }
            let window = self.cc.window();
            self.shrink(now, shared, CongestionKind::Loss, delivery);
            self.begin_reduction(shared, delivery, window);
            self.recovery.reduced_at = now;
        }
        self.recovery.answer_probe(); // RFC 8985 7.1
        (self.recovery.frto, self.recovery.frto_new) = (0, 0); // losses are repaired before new data is sent
        shared.stats.recoveries += 1;
        shared.count_congestion(now);
        if self.thin.is_some() {
            self.note_loss(0, true);
        }
        self.recovery.state = CaState::Recovery;
        // Linux: out of CWR nothing but the state changes (`tcp_enter_recovery`), so nothing is forced, either.
        let goes_on = answered && as_linux;
        if !goes_on {
            self.recovery.high_seq = self.nxt;
            self.recovery.episode.recover = self.nxt;
        }
        self.recovery.begin_retransmitting(self.una);
        let own_window = as_linux && self.cc.keeps_window();
        self.recovery.force = self.board.marks.to_retransmit > 0 && !goes_on && !own_window; // RFC 6675 5 (4.3)
        let at = now + shared.rtt.rto(&shared.config.rto);
        shared.timers.move_rto(at);
    }

    /// The window's answer to a loss, a mark or delay.
    fn shrink(&mut self, now: Instant, shared: &Shared, kind: CongestionKind, delivery: &Delivery) {
        self.end_spreading();
        if self.tempo.is_none() || !self.reduce_nonvalidated(now, shared, kind, delivery.acked) {
            let event = self.reduction_event(kind, delivery);
            self.cc.on_congestion(now, &event);
        }
    }

    fn begin_reduction(&mut self, shared: &Shared, delivery: &Delivery, window: Bytes) {
        self.recovery.episode.prr = Prr::enter(
            shared.config.prr,
            Entry {
                flight: self.board.out,
                sacked_before: (self.board.marks.sacked
                    + u64::from(self.board.marks.duplicates) * u64::from(shared.mss))
                .saturating_sub(delivery.sacked + delivery.emulated),
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
        // As the window counts it: after the path MTU fell a record still weighs what it weighed before.
        let least = match in_flight {
            0 => u64::from(shared.mss).max(self.board.weight(shared.mss)),
            _ => 0,
        };
        self.recovery.episode.recovery_window = (in_flight + count).max(least);
    }

    /// Reduces the window without a loss.
    pub(in crate::tcp) fn enter_cwr(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        kind: CongestionKind,
        delivery: &Delivery,
    ) {
        self.recovery.episode.undo_marker = 0;
        let window = self.cc.window();
        self.shrink(now, shared, kind, delivery);
        self.begin_reduction(shared, delivery, window);
        if kind == CongestionKind::Delay {
            // Decided after this ACK had its turn at the window: the next is the first to reduce it (as in Linux).
            self.recovery.episode.recovery_window = self.recovery.episode.recovery_window.max(window.get());
        }
        if shared.announces_reductions() {
            self.announce_reduction(); // RFC 3168 6.1.2: for any reason
        }
        self.recovery.reduced_for_mark = kind == CongestionKind::Ecn;
        self.recovery.state = CaState::Cwr;
        self.recovery.high_seq = self.nxt;
        self.recovery.answer_probe(); // the reduction is also for what a probe repaired (Linux `tcp_init_cwnd_reduction`)
        shared.stats.window_reductions += 1;
        shared.count_congestion(now);
    }

    /// An ACK that reports marks (RFC 3168 6.1.2; RFC 8257 3.3): at most one reduction per round trip.
    pub(in crate::tcp) fn on_echo(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        shared.stats.ecn_echoes += 1;
        let answered = core::mem::take(&mut self.recovery.mark_answered);
        let free = matches!(self.recovery.state, CaState::Open | CaState::Disorder) && !answered;
        // In Linux the state alone decides: after an undo, and after what a probe repaired, a mark is answered (`tcp_try_to_open`).
        let as_linux = shared.config.timeout_rules == TimeoutRules::Linux;
        let next_window = as_linux || self.una >= self.recovery.high_seq;
        if free && (delivery.advanced || delivery.delivered > 0) && next_window {
            self.enter_cwr(now, shared, CongestionKind::Ecn, delivery);
        }
    }

    /// RFC 9937 6, each ACK of the episode.
    pub(super) fn reduce(&mut self, shared: &Shared, delivery: &Delivery, lost: u64) {
        // RFC 9937 4: less what the duplicates before it were counted for.
        let mut delivered = delivery.delivered.saturating_sub(delivery.counted) + delivery.emulated;
        if !shared.sack && shared.config.prr == PrrVariant::Rfc9937 {
            // RFC 9937 6.2: extraneous duplicates cannot deliver more than was out.
            delivered = delivered.min(self.recovery.episode.prr.undelivered());
        }
        if delivered == 0 && !self.recovery.force {
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
        let count =
            self.recovery
                .episode
                .prr
                .on_ack(shared.config.prr, ssthresh, u64::from(shared.mss), unit, ack);
        self.reduce_to(shared, count);
    }

    pub(in crate::tcp) fn finish_episode(&mut self, now: Instant, shared: &Shared) {
        self.end_episode(now, shared, false);
    }

    /// Recovery, CWR or the repair after a timeout is over, or taken back at the same time.
    fn end_episode(&mut self, now: Instant, shared: &Shared, undone: bool) {
        if undone {
            self.keep_reduced(now, shared);
        }
        match self.recovery.state {
            CaState::Recovery | CaState::Cwr => {
                let event = self.flight_event(CongestionKind::RecoveryEnd);
                self.cc.on_congestion(now, &event);
                self.usage.touch(now);
                if self.tempo.is_some() {
                    self.end_nonvalidated(now, shared);
                }
            }
            CaState::Loss if self.cc.hears_of_repairs() => {
                let event = self.flight_event(CongestionKind::RecoveryEnd);
                self.cc.on_congestion(now, &event);
            }
            CaState::Open | CaState::Disorder | CaState::Loss => {}
        }
        // RFC 8985 6.2 step 4: of fast recovery and of that from a timeout; in Linux not of one that was a mistake (`tcp_try_undo_recovery`).
        let repaired = match self.recovery.state {
            CaState::Recovery => true,
            CaState::Loss => self.recovery.undo_is_timeout,
            CaState::Open | CaState::Disorder | CaState::Cwr => false,
        };
        let counts = !undone || shared.config.timeout_rules != TimeoutRules::Linux;
        if repaired
            && counts
            && let Some(rack) = &mut self.recovery.rack
        {
            rack.on_recovery_end();
        }
        if self.recovery.state != CaState::Disorder {
            self.recovery.state = CaState::Open;
            self.board.ring.tighten(); // the window is smaller than before
        }
        self.board.set_duplicates(0);
        self.recovery.frto = 0;
        self.recovery.frto_new = 0;
        self.recovery.force = false;
    }
}
