//! The congestion controller with its window at hand: every segment looks at the window, few acknowledgments change it.

use crate::cc::{
    Ack, AnyController, Congestion, CongestionController, Echo, Phase, Progress, Reaction, ReducedSample,
    Sent,
};
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

/// A controller, and what it answers until the next input.
#[derive(Serialize, Deserialize)]
pub(in crate::tcp) struct Controller {
    any: AnyController,
    window: Bytes,
    ssthresh: Bytes,
}

impl Controller {
    pub(in crate::tcp) fn new(any: AnyController) -> Controller {
        let (window, ssthresh) = (any.window(), any.ssthresh());
        Controller {
            any,
            window,
            ssthresh,
        }
    }

    #[inline]
    pub(in crate::tcp) const fn window(&self) -> Bytes {
        self.window
    }

    #[inline]
    pub(in crate::tcp) const fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    pub(in crate::tcp) fn phase(&self) -> Phase {
        self.any.phase()
    }

    /// The controller itself.
    #[cfg(test)]
    pub(in crate::tcp) const fn any(&self) -> &AnyController {
        &self.any
    }

    /// Whether it comes from outside the tree.
    pub(in crate::tcp) const fn is_custom(&self) -> bool {
        matches!(self.any, AnyController::Custom(_))
    }

    #[inline]
    fn look(&mut self) {
        self.window = self.any.window();
        self.ssthresh = self.any.ssthresh();
    }

    /// An acknowledgment that is nothing but progress: whether the algorithm has done what it does with it. Else
    /// [`Controller::on_ack`] is to be called.
    #[inline(always)]
    pub(in crate::tcp) fn on_progress(&mut self, now: Instant, progress: Progress) -> bool {
        let window = self.any.progress(now, progress);
        self.window = window.unwrap_or(self.window);
        window.is_some()
    }

    /// An acknowledgment while the window is the recovery's: whether the algorithm has done what it does with it. Else
    /// [`Controller::on_ack`] is to be called.
    #[inline(always)]
    pub(in crate::tcp) fn stand_by(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        self.any.stand_by(now, rtt)
    }

    /// An acknowledgment.
    pub(in crate::tcp) fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        let reaction = self.any.on_ack(now, ack);
        self.look();
        reaction
    }

    #[inline(always)]
    pub(in crate::tcp) fn on_sent(&mut self, now: Instant, sent: impl FnOnce() -> Sent) {
        if self.any.uses_sent() {
            self.any.on_sent(now, &sent());
            self.look();
        }
    }

    /// Whether it asks for delivery rate samples.
    pub(in crate::tcp) fn uses_rates(&self) -> bool {
        self.any.uses_rates()
    }

    /// The rate that the algorithm sets.
    pub(in crate::tcp) fn pacing_rate(&self) -> Option<Rate> {
        self.any.pacing_rate()
    }

    /// What leaves at once at that rate.
    pub(in crate::tcp) fn send_quantum(&self) -> Bytes {
        self.any.send_quantum()
    }

    /// Data leaves while nothing is in flight.
    pub(in crate::tcp) fn on_restart(&mut self, now: Instant, idle: Duration) {
        self.any.on_restart(now, idle);
        self.look();
    }

    /// An RTT sample while the window is not the algorithm's.
    pub(in crate::tcp) fn on_reduced_sample(&mut self, now: Instant, sample: &ReducedSample) {
        self.any.on_reduced_sample(now, sample);
        self.look();
    }

    /// An acknowledgment echoes marks.
    pub(in crate::tcp) fn on_echo(&mut self, now: Instant, echo: &Echo) {
        self.any.on_echo(now, echo);
    }

    /// Whether its window is that of a recovery, too.
    pub(in crate::tcp) fn keeps_window(&self) -> bool {
        self.any.keeps_window()
    }

    /// Whether pauses may lower its window.
    pub(in crate::tcp) fn restarts_after_pauses(&self) -> bool {
        self.any.restarts_after_pauses()
    }

    /// Whether it hears of the end of a repair after a timeout.
    pub(in crate::tcp) fn hears_of_repairs(&self) -> bool {
        self.any.hears_of_repairs()
    }

    /// Whether a mark costs less than a loss.
    pub(in crate::tcp) fn is_milder_on_marks(&self) -> bool {
        self.any.is_milder_on_marks()
    }

    pub(in crate::tcp) fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        self.any.on_congestion(now, event);
        self.look();
    }

    pub(in crate::tcp) fn on_idle(&mut self, now: Instant, idle: Duration) {
        self.any.on_idle(now, idle);
        self.look();
    }

    /// A restart window follows; see [`CongestionController::on_window_restart`].
    pub(in crate::tcp) fn on_window_restart(&mut self, now: Instant) {
        self.any.on_window_restart(now);
        self.look();
    }

    /// In the controller's place; see [`CongestionController::override_window`].
    pub(in crate::tcp) fn override_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes) {
        self.any.override_window(now, window, ssthresh);
        self.look();
    }

    pub(in crate::tcp) fn set_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes) {
        self.any.set_window(now, window, ssthresh);
        self.look();
    }
}
