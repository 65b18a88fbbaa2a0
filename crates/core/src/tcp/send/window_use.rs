//! How much of the window the sender uses, and what the validation of the window makes of it.
//!
//! The rules stand in `window::usage` and in `window::new_cwv`; here is when they are asked, and what they are shown.
//!
//! **Source.** As `window::usage` and `window::new_cwv`.
//! **Deviations.** See there.

use crate::cc::CongestionKind;
use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::ack::records::Record;
use crate::tcp::config::{WindowGrowth, WindowValidation};
use crate::tcp::send::half::Sender;
use crate::tcp::send::tempo::Tempo;
use crate::tcp::state::types::CaState;
use crate::tcp::window::new_cwv::Validation;
use crate::tcp::window::usage::View;
use crate::time::Instant;
use crate::units::Bytes;

impl Sender {
    /// The window as it is now.
    fn view(&self, shared: &Shared) -> View {
        View {
            window: self.cc.window(),
            ssthresh: self.cc.ssthresh(),
            full: self.usage.is_limited(),
            unit: self.board.weight(1),
            mss: shared.mss,
            restart: Bytes(shared.restart_window()),
            srtt: shared.rtt.srtt(),
        }
    }

    fn validation(&mut self) -> Option<&mut Validation> {
        self.tempo.as_deref_mut()?.validation()
    }

    /// Whether New-CWV holds the window for not validated.
    pub(in crate::tcp) fn is_nonvalidated(&self) -> bool {
        self.tempo.as_deref().is_some_and(Tempo::is_nonvalidated)
    }

    /// Whether an acknowledgment may let the window grow.
    #[inline(always)]
    pub(in crate::tcp) fn may_grow(&self, shared: &Shared) -> bool {
        if self.tempo.is_some() && self.is_nonvalidated() {
            return self.usage.is_limited(); // RFC 7661 4.3
        }
        self.usage.may_grow(shared.config.growth, &self.cc)
    }

    /// After a drain: was the window the limit?
    #[inline(always)]
    pub(in crate::tcp) fn validate(&mut self, now: Instant, shared: &Shared, mut limited: bool) {
        let out = self.board.out;
        if shared.config.growth == WindowGrowth::Linux {
            // tcp_write_xmit: a window that is full was the limit, also if nothing more is to be sent; and a drain that sends
            // nothing new teaches nothing. Without new data it is not even called: retransmissions do not count.
            let new = |record: &Record| record.tx_count == 1 && record.last_tx == now;
            if self.unsent() == 0 && !self.board.ring.back().is_some_and(new) {
                return;
            }
            limited = limited || self.in_flight(shared) >= self.window(shared);
            if !limited && self.last_send != now {
                return;
            }
        }
        self.usage.on_drain(self.una, self.nxt, out, limited);
        if shared.config.window_validation != WindowValidation::Rfc2861 {
            return;
        }
        // Linux `tcp_is_cwnd_limited`: in use is also what was the limit since it was last acknowledged, or half used in slow start.
        let growth = shared.config.growth;
        let in_use = limited || growth == WindowGrowth::Linux && self.usage.may_grow(growth, &self.cc);
        let open = self.recovery.state() == CaState::Open;
        if self.usage.is_stale(now, out, in_use, || shared.rtt.base()) && open {
            self.decay(now, shared);
        }
    }

    /// A drain ends that an acknowledgment has shown to send nothing more: the window was the limit.
    #[inline(always)]
    pub(in crate::tcp) fn end_drain(&mut self, now: Instant, shared: &Shared) {
        self.shut = false;
        self.validate(now, shared, true);
    }

    /// RFC 2861 3.2: the application was the limit for an RTO.
    #[inline(never)]
    fn decay(&mut self, now: Instant, shared: &Shared) {
        if !self.cc.restarts_after_pauses() {
            return;
        }
        let view = self.view(shared);
        if let Some((window, ssthresh)) = self.usage.decay(now, &view) {
            self.cc.set_window(now, window, ssthresh);
        }
    }

    /// The first new data after nothing was out: what idle time does to the window.
    pub(in crate::tcp) fn after_idle(&mut self, now: Instant, shared: &Shared) {
        // Linux compares ticks (`tcp_slow_start_after_idle_check`).
        let counted = shared
            .timers
            .between(shared.config.timer_grid, self.last_send, now);
        let idle = now.since(self.last_send);
        let rto = shared.rtt.base();
        if counted <= rto || shared.stats.segments_sent == 0 {
            return;
        }
        self.cc.on_idle(now, idle);
        // CWR may last over a pause: it is over when something beyond its end is acknowledged.
        let reduced = self.recovery.window();
        let mut view = self.view(shared);
        view.window = reduced.map_or(view.window, Bytes);
        let kind = shared.config.window_validation;
        if self.cc.restarts_after_pauses()
            && let Some((window, ssthresh)) = self.usage.after_idle(now, kind, counted, rto, &view)
        {
            self.cc.on_window_restart(now);
            if reduced.is_none() {
                self.cc.set_window(now, window, ssthresh);
            } else {
                self.recovery.lower_window(window.get());
                if kind == WindowValidation::Rfc5681 {
                    // In Linux the end of CWR makes the threshold the window (`tcp_end_cwnd_reduction`).
                    let (window, ssthresh) = (window.min(self.cc.window()), self.cc.ssthresh());
                    self.cc.set_window(now, window, ssthresh);
                }
            }
        }
        if let Some(validation) = self.validation() {
            validation.on_pause(now, shared.rtt.min());
        }
    }

    /// The first data after nothing was out.
    pub(in crate::tcp) fn on_first_out(&mut self) {
        if let Some(validation) = self.validation() {
            validation.on_first_out();
        }
    }

    /// An acknowledgment: New-CWV's sample.
    pub(in crate::tcp) fn sample_pipe(&mut self, now: Instant, shared: &Shared, delivery: &Delivery) {
        let (view, range) = (self.view(shared), (self.una, self.nxt));
        let recovering = matches!(self.recovery.state(), CaState::Recovery | CaState::Loss);
        if let Some(validation) = self.validation() {
            validation.on_ack(now, &view, delivery, range, recovering);
        }
    }

    /// Before data leaves: New-CWV's phase, and what the time that it lasts does to the window.
    pub(in crate::tcp) fn refresh_validation(&mut self, now: Instant, shared: &Shared) {
        // The answer to a mark is over for New-CWV when everything is acknowledged: what follows may be a pause.
        if self.recovery.state() == CaState::Cwr
            && self.board.out == 0
            && self.una >= self.recovery.high_seq()
            && self.validation().is_some()
        {
            self.finish_episode(now, shared);
            self.recovery.answer_probe();
        }
        if self.recovery.state() != CaState::Open {
            return;
        }
        let view = self.view(shared);
        let set = self
            .validation()
            .and_then(|validation| validation.before_sending(now, &view));
        if let Some((window, ssthresh)) = set {
            self.cc.override_window(now, window, ssthresh);
        }
    }

    /// A loss or a mark, shown by an acknowledgment of `acked`. False: the answer is the controller's.
    pub(in crate::tcp) fn reduce_nonvalidated(
        &mut self,
        now: Instant,
        shared: &Shared,
        kind: CongestionKind,
        acked: u64,
    ) -> bool {
        // LossFlightSize: what was out when the acknowledgment came.
        let (view, flight) = (self.view(shared), self.board.out + acked);
        let answer = self
            .validation()
            .and_then(|validation| validation.on_congestion(now, &view, kind, flight));
        if let Some(half) = answer {
            self.cc.override_window(now, half, half);
        }
        answer.is_some()
    }

    /// A recovery begins in the round trip of an earlier reduction, which is its answer.
    pub(in crate::tcp) fn note_recovery(&mut self) {
        if let Some(validation) = self.validation() {
            validation.on_recovery_begin();
        }
    }

    /// A segment that left at `sent_at` leaves again.
    pub(in crate::tcp) fn on_lost_again(&mut self, sent_at: Instant, weight: u64) {
        if let Some(validation) = self.validation() {
            validation.on_lost_again(sent_at, weight);
        }
    }

    /// A loss probe sent `weight` again, which may turn out to be lost.
    pub(in crate::tcp) fn note_probe(&mut self, weight: u64) {
        if let Some(validation) = self.validation() {
            validation.on_probe(weight);
        }
    }

    /// What the last loss probe sent again was lost, and the answer to that has begun.
    pub(in crate::tcp) fn count_probe(&mut self) {
        if let Some(validation) = self.validation() {
            validation.count_probe();
        }
    }

    /// Recovery, or the answer to a mark, is over.
    pub(in crate::tcp) fn end_nonvalidated(&mut self, now: Instant, shared: &Shared) {
        let view = self.view(shared);
        let left = self
            .validation()
            .and_then(|validation| validation.on_recovery_end(&view));
        if let Some(window) = left {
            self.cc.override_window(now, window, window);
        }
    }

    /// The reduction was a mistake. False: it was the controller's.
    pub(in crate::tcp) fn restore_nonvalidated(&mut self, now: Instant) -> bool {
        let Some((window, ssthresh)) = self.validation().and_then(Validation::take_back) else {
            return false;
        };
        let window = self.cc.window().max(window);
        self.cc.override_window(now, window, ssthresh);
        true
    }

    /// A timeout: the answer is the controller's.
    pub(in crate::tcp) fn leave_nonvalidated(&mut self) {
        if let Some(validation) = self.validation() {
            validation.on_timeout();
        }
    }
}
