//! NewReno's window: slow start, congestion avoidance, halving on loss.
//!
//! **Source.** RFC 5681 3.1, with RFC 3465's byte counting; the window of RFC 6582 and RFC 6675 is the same.
//! **Deviations.** None known; `reduce_from_window` (Linux) halves the window instead of FlightSize, and
//! `count_segments` (Linux) keeps the window a whole number of segments. `fractions` (ns-2) adds one segment per ACK in slow
//! start, beyond `ssthresh` too, and 1/window of one in congestion avoidance, and does not round a half.
//! **Parameters.** None: RFC 5681 leaves nothing open that the endpoint's configuration does not say.

use super::slow_start::SlowStart;
use super::{
    Ack, Config, Congestion, CongestionController, CongestionKind, HyStart, Phase, Progress, Reaction, Units,
};
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use serde::{Deserialize, Serialize};

/// NewReno.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reno {
    units: Units,
    window: Bytes,
    ssthresh: Bytes,
    /// Bytes acknowledged in congestion avoidance since the window last grew.
    acked: Bytes,
    /// The window in segments, with `fractions`.
    exact: f64,
    /// The threshold in segments.
    exact_ssthresh: f64,
    /// Slow start has a detector.
    detecting: bool,
    /// Window and threshold before the last reduction, for undo.
    prior: Option<Box<(Bytes, Bytes)>>,
    slow_start: SlowStart,
}

/// The methods of a controller whose window is that of its NewReno, `self.reno`.
macro_rules! of_reno {
    ($($method:ident)+) => { $(of_reno!(@ $method);)+ };
    (@ set_window) => {
        fn set_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes) {
            self.reno.set_window(now, window, ssthresh);
        }
    };
    (@ window) => {
        fn window(&self) -> Bytes {
            self.reno.window()
        }
    };
    (@ ssthresh) => {
        fn ssthresh(&self) -> Bytes {
            self.reno.ssthresh()
        }
    };
    (@ uses_sent) => {
        fn uses_sent(&self) -> bool {
            self.reno.uses_sent()
        }
    };
    (@ phase) => {
        fn phase(&self) -> $crate::cc::Phase {
            self.reno.phase()
        }
    };
}
pub(super) use of_reno;

impl Reno {
    /// None.
    pub const PARAMETERS: &'static [Parameter] = &[];

    /// A controller with `config.initial_window`.
    pub fn new(_values: &Values, config: &Config) -> Reno {
        let hystart = config.hystart.of_others();
        Reno {
            units: Units::new(config),
            window: config.initial_window.max(config.mss),
            ssthresh: Bytes::MAX,
            acked: Bytes::ZERO,
            exact: Units::new(config).segments(config.initial_window.max(config.mss)),
            exact_ssthresh: Units::new(config).segments(Bytes::MAX),
            detecting: hystart != HyStart::Off,
            prior: None,
            slow_start: SlowStart::new(hystart, config.paced),
        }
    }

    /// Sets the threshold to `factor` of FlightSize or window, as configured.
    pub(super) fn reduce(&mut self, event: &Congestion, factor: f64) {
        let base = self.units.reduction_base(self.window, event);
        let reduced = self.units.share(base, factor);
        self.reduce_from(base, reduced, factor);
    }

    /// Takes `factor` of FlightSize or window and continues from what is left; whole units are taken.
    pub(super) fn give_up(&mut self, event: &Congestion, factor: f64) {
        let base = self.units.reduction_base(self.window, event);
        let reduced = self.units.less(base, factor);
        self.reduce_from(base, reduced, 1.0 - factor);
        self.window = self.ssthresh;
        self.take_exact();
    }

    /// The threshold is `reduced`, which is `factor` of `base`.
    fn reduce_from(&mut self, base: Bytes, mut reduced: Bytes, factor: f64) {
        self.prior = Some(Box::new((self.window, self.ssthresh)));
        if self.units.fractions {
            let base = if self.units.reduce_from_window {
                self.exact
            } else {
                self.units.segments(base)
            };
            let share = base * factor;
            reduced = Bytes(share as u64 * self.units.mss().0);
            self.exact = share.max(1.0);
        }
        self.set_ssthresh(reduced.max(self.units.two_segments())); // RFC 5681 (4)
        self.acked = Bytes::ZERO;
        self.slow_start.on_congestion();
    }

    /// `reduce` and continue from the new threshold.
    pub(super) fn enter_recovery(&mut self, event: &Congestion, factor: f64) {
        self.reduce(event, factor);
        self.window = self.ssthresh;
        self.take_exact();
    }

    /// Sets the threshold to `ssthresh` or two segments.
    pub(super) fn reduce_to(&mut self, ssthresh: Bytes) {
        self.prior = Some(Box::new((self.window, self.ssthresh)));
        self.set_ssthresh(ssthresh.max(self.units.two_segments())); // RFC 5681 (4)
        self.acked = Bytes::ZERO;
        self.slow_start.on_congestion();
    }

    /// Continues from the threshold, if that is below the window.
    pub(super) fn fall_to_threshold(&mut self) {
        self.window = self.window.min(self.ssthresh);
        self.exact = self.units.segments(self.window);
    }

    /// Adds `increase`, which an acknowledgment that may earned.
    pub(super) fn enlarge(&mut self, increase: Bytes) {
        self.window = self.window.saturating_add(increase);
        self.exact = self.units.segments(self.window);
    }

    /// Sets window and threshold; what is counted and what may be undone stay.
    pub(super) fn put(&mut self, window: Bytes, ssthresh: Bytes) {
        self.window = window;
        self.exact = self.units.segments(window);
        self.set_ssthresh(ssthresh);
    }

    /// Slow start ends here.
    pub(super) fn end_slow_start(&mut self) {
        self.set_ssthresh(self.window);
    }

    /// With `fractions` the window is what `exact` says, to the byte below.
    #[inline(always)]
    fn take_exact(&mut self) {
        if self.units.fractions {
            // By way of a signed number, into which a processor converts in one step.
            self.window = Bytes((self.exact * f64::from(self.units.mss)) as i64 as u64);
        }
    }

    /// ns-2's growth by an acknowledgment.
    #[inline(always)]
    pub(crate) fn grow_fraction(&mut self) -> Bytes {
        self.exact += if self.exact < self.exact_ssthresh {
            1.0
        } else {
            1.0 / self.exact
        };
        self.take_exact();
        self.window
    }

    fn set_ssthresh(&mut self, ssthresh: Bytes) {
        self.ssthresh = ssthresh;
        self.exact_ssthresh = self.units.segments(ssthresh);
    }
}

impl CongestionController for Reno {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        if ack.recovering {
            return Reaction::None;
        }
        let mut acked = ack.acked;
        if self.units.fractions {
            let detecting = self.detecting && self.window < self.ssthresh;
            if !detecting {
                if acked > Bytes::ZERO && ack.cwnd_limited {
                    self.grow_fraction();
                }
                return Reaction::None;
            }
        }
        if self.window < self.ssthresh {
            let step = self
                .slow_start
                .on_ack(now, ack, self.units, self.window, self.ssthresh);
            (self.window, acked) = (step.window, step.left);
            self.set_ssthresh(step.ssthresh);
            self.exact = self.units.segments(self.window);
        }
        if acked > Bytes::ZERO && ack.cwnd_limited {
            self.acked = self.acked.saturating_add(acked);
            if self.acked >= self.window {
                let segments = self.acked.0 / self.window.0; // RFC 3465 2.1
                self.acked -= Bytes(segments * self.window.0);
                self.window = self
                    .window
                    .saturating_add(Bytes(self.units.mss().0.saturating_mul(segments)));
            }
        }
        Reaction::None
    }

    /// Where ns-2's growth is all there is to it.
    #[inline(always)]
    fn progress(&mut self, _now: Instant, progress: Progress) -> Option<Bytes> {
        if !self.units.fractions || (self.detecting && self.window < self.ssthresh) {
            return None;
        }
        if progress.cwnd_limited {
            self.grow_fraction();
        }
        Some(self.window)
    }

    #[inline(always)]
    fn stand_by(&mut self, _now: Instant, _rtt: Option<Duration>) -> bool {
        true
    }

    fn on_congestion(&mut self, _now: Instant, event: &Congestion) {
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn | CongestionKind::Delay => {
                self.enter_recovery(event, 0.5);
            }
            CongestionKind::Timeout { first } => {
                if first {
                    self.reduce(event, 0.5);
                }
                self.window = self.units.mss() + event.in_flight; // RFC 5681 3.1: LW
                self.exact = self.units.segments(self.window);
                self.acked = Bytes::ZERO;
                self.slow_start.on_restart();
            }
            CongestionKind::Undo => {
                if let Some(prior) = self.prior.take() {
                    let (window, ssthresh) = *prior;
                    self.window = self.window.max(window);
                    self.set_ssthresh(ssthresh);
                    self.exact = self.units.segments(self.window);
                }
            }
            CongestionKind::RecoveryEnd => {}
        }
    }

    fn set_window(&mut self, _now: Instant, window: Bytes, ssthresh: Bytes) {
        self.window = window.max(self.units.mss());
        self.exact = self.units.segments(self.window);
        self.set_ssthresh(ssthresh);
        self.acked = Bytes::ZERO;
        self.prior = None; // what it would restore is from before the idle period
        self.slow_start.on_restart();
    }

    #[inline]
    fn window(&self) -> Bytes {
        self.window
    }

    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    fn uses_sent(&self) -> bool {
        false
    }

    fn phase(&self) -> Phase {
        if self.window >= self.ssthresh {
            Phase::CongestionAvoidance
        } else if self.slow_start.conservative() {
            Phase::ConservativeSlowStart
        } else {
            Phase::SlowStart
        }
    }
}
