//! What New-CWV does to the sender: samples, the non-validated phase, its losses and pauses.
//!
//! **Source.** RFC 7661; the deviations stand in `new_cwv`.
//! **Deviations.** See `new_cwv`.

use crate::cc::CongestionKind;
use crate::tcp::Shared;
use crate::tcp::ack::delivery::Delivery;
use crate::tcp::send::half::Sender;
use crate::tcp::state::types::CaState;
use crate::tcp::window::new_cwv::{Episode, NONVALIDATED_PERIOD, Restart, Validation, period};
use crate::time::{Duration, Instant};
use crate::units::Bytes;

impl Sender {
    fn validation(&mut self) -> Option<&mut Validation> {
        self.tempo.as_deref_mut()?.validation.as_mut()
    }

    /// Whether New-CWV holds the window for not validated.
    pub(in crate::tcp) fn is_nonvalidated(&self) -> bool {
        let validation = self.tempo.as_deref().and_then(|tempo| tempo.validation.as_ref());
        validation.is_some_and(Validation::is_nonvalidated)
    }

    /// The first data after nothing was out.
    pub(in crate::tcp) fn on_first_out(&mut self) {
        if let Some(validation) = self.validation() {
            validation.fresh = true;
        }
    }

    /// The first data after a pause longer than the RTO.
    pub(in crate::tcp) fn restart_validation(&mut self, now: Instant, shared: &Shared) {
        if let Some(validation) = self.validation()
            && validation.probing
        {
            validation.restart = Some(Restart {
                at: now,
                known: shared.rtt.min(),
                seen: Duration::MAX,
            });
        }
    }

    /// An acknowledgment: a sample, if it ends a round trip.
    pub(in crate::tcp) fn sample_pipe(&mut self, now: Instant, shared: &Shared, delivery: &Delivery) {
        let (una, nxt) = (self.una, self.nxt);
        let (window, full) = (self.cc.window().get(), self.usage.limited);
        let recovering = matches!(self.recovery.state(), CaState::Recovery | CaState::Loss);
        let Some(validation) = self.validation() else {
            return;
        };
        let period = period(shared.rtt.srtt());
        if let (Some(restart), Some(rtt)) = (&mut validation.restart, delivery.rtt) {
            restart.seen = restart.seen.min(rtt);
        }
        if !delivery.advanced {
            return;
        }
        let before = validation.acked;
        validation.acked += delivery.acked;
        if recovering {
            return; // RFC 7661 4.2
        }
        if validation.fresh {
            validation.fresh = false;
            (validation.prior_acked, validation.prior_nxt) = (before, nxt);
        }
        if una >= validation.prior_nxt {
            let sample = validation.acked - validation.prior_acked;
            (validation.prior_acked, validation.prior_nxt) = (validation.acked, nxt);
            validation.take(now, period, sample);
            validation.earned = validation.pipe_ack(now, period).unwrap_or(0);
        }
        validation.judge(now, period, window, full);
    }

    /// Before data leaves: the phase, and what five minutes of it do (RFC 7661 4.4.2).
    pub(in crate::tcp) fn refresh_validation(&mut self, now: Instant, shared: &Shared) {
        if self.recovery.state() != CaState::Open {
            return;
        }
        let (window, mut ssthresh) = (self.cc.window(), self.cc.ssthresh());
        let (initial, full) = (Bytes(shared.initial_window()), self.usage.limited);
        let period = period(shared.rtt.srtt());
        let Some(validation) = self.validation() else {
            return;
        };
        validation.judge(now, period, window.get(), full);
        let mut reduced = window;
        if let Some(since) = validation.since {
            let periods = now.since(since).as_nanos() / NONVALIDATED_PERIOD.as_nanos();
            for _ in 0..periods.min(64) {
                ssthresh = ssthresh.max(reduced * 3 / 4);
                reduced = (reduced / 2).max(initial.min(reduced));
            }
            validation.since = Some(since + NONVALIDATED_PERIOD.saturating_mul(periods));
        }
        if reduced != window || ssthresh != self.cc.ssthresh() {
            let reduced = self.whole(reduced);
            self.cc.override_window(now, reduced, ssthresh);
        }
    }

    /// A loss or a mark: in the non-validated phase the answer is half of what was used (RFC 7661 4.4.1). False: the answer
    /// is the controller's.
    pub(in crate::tcp) fn reduce_nonvalidated(
        &mut self,
        now: Instant,
        shared: &Shared,
        kind: CongestionKind,
    ) -> bool {
        let prior = (self.cc.window(), self.cc.ssthresh());
        let (flight, full) = (self.board.out, self.usage.limited);
        let period = period(shared.rtt.srtt());
        let Some(validation) = self.validation() else {
            return false;
        };
        if !matches!(kind, CongestionKind::Loss | CongestionKind::Ecn) {
            return false;
        }
        validation.judge(now, period, prior.0.get(), full);
        if validation.since.is_none() {
            return false;
        }
        let used = validation.pipe_ack(now, period).unwrap_or(0).max(flight);
        validation.episode = Some(Episode {
            begin: now,
            used,
            lost: 0,
            prior,
        });
        let half = self.at_least_a_segment(shared, used / 2);
        self.cc.override_window(now, half, half);
        true
    }

    /// A segment that left at `sent_at` leaves again.
    pub(in crate::tcp) fn on_lost_again(&mut self, sent_at: Instant, weight: u64) {
        if let Some(validation) = self.validation()
            && let Some(episode) = &mut validation.episode
            && sent_at < episode.begin
        {
            episode.lost += weight;
        }
    }

    /// Recovery, or the answer to a mark, is over.
    pub(in crate::tcp) fn end_nonvalidated(&mut self, now: Instant, shared: &Shared) {
        let Some(validation) = self.validation() else {
            return;
        };
        let episode = validation.episode.take();
        validation.forget();
        if let Some(episode) = episode {
            // RFC 7661 4.4.1: (max(pipeACK, LossFlightSize) - R) / 2
            let left = episode.used.saturating_sub(episode.lost) / 2;
            let window = self.at_least_a_segment(shared, left);
            self.cc.override_window(now, window, window);
        }
    }

    /// The reduction was a mistake. False: it was the controller's.
    pub(in crate::tcp) fn restore_nonvalidated(&mut self, now: Instant) -> bool {
        let Some(episode) = self.validation().and_then(|validation| validation.episode.take()) else {
            return false;
        };
        let window = self.cc.window().max(episode.prior.0);
        self.cc.override_window(now, window, episode.prior.1);
        true
    }

    /// A timeout: the standard answer, and nothing is known any more.
    pub(in crate::tcp) fn leave_nonvalidated(&mut self) {
        if let Some(validation) = self.validation() {
            validation.episode = None;
            validation.forget();
        }
    }

    fn at_least_a_segment(&self, shared: &Shared, amount: u64) -> Bytes {
        self.whole(Bytes(amount)).max(Bytes(u64::from(shared.mss)))
    }
}
