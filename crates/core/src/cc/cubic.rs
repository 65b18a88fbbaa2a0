//! CUBIC: after a loss the window returns to where the loss was along a cubic function of time, rests there, and
//! then probes beyond.
//!
//! In networks where NewReno does well CUBIC follows an estimate of NewReno's window instead. Since growth depends on
//! time and not on round trips, flows with different RTTs share more evenly.
//!
//! **Source.** RFC 9438 4; where it speaks of an ACK this counts acknowledged segments (as RFC 9438 4.3 does and Linux
//! everywhere), so delayed ACKs do not slow the curve.
//! **Deviations.** In the Reno-friendly region the window is raised to W_est, never lowered to it.
//! `reduce_from_window` (Linux) takes beta of the window instead of FlightSize, which RFC 9438 4.6 permits when growth
//! needs a used window; `count_segments` (Linux) keeps the window a whole number of segments. With `cubic_arithmetic` `linux`
//! congestion avoidance, reduction and undo are those of `cubic_linux.rs`. An answer that New-CWV gives in its place begins a new epoch
//! under either arithmetic; what the window was before the last reduction of CUBIC's own stays known.
//! **Parameters.** `c` 0.4, `beta` 0.7, `fast_convergence` and `tcp_friendliness` on (RFC 9438 4.1, 4.6, 4.7, 4.3).

use super::cubic_linux::Linux;
use super::slow_start::SlowStart;
use super::{
    Ack, Config, Congestion, CongestionController, CongestionKind, CubicArithmetic, Phase, Progress,
    Reaction, ReducedSample, Units,
};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use serde::{Deserialize, Serialize};

/// CUBIC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cubic {
    units: Units,
    /// C, segments per second cubed.
    c: f64,
    /// Share of the window that remains after a congestion event.
    beta: f64,
    fast_convergence: bool,
    tcp_friendliness: bool,
    curve: Curve,
    /// What `curve` was before the last reduction, for undo.
    prior: Option<Box<Curve>>,
    slow_start: SlowStart,
    /// Instead of all but the window and the threshold in `curve`.
    linux: Option<Box<Linux>>,
}

/// Everything an undo restores (RFC 9438 4.9.2).
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Curve {
    window: Bytes,
    ssthresh: Bytes,
    /// Growth earned and not yet a whole unit, bytes.
    credit: f64,
    /// Window before the last reduction, after fast convergence; segments. Zero: undefined.
    w_max: f64,
    /// Window before the last reduction, or at the end of the first slow start; segments.
    cwnd_prior: f64,
    /// The current stage of congestion avoidance; `None` until its first growth.
    epoch: Option<Box<Epoch>>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Epoch {
    /// Its beginning, moved later by the time the application was the limit.
    start: Instant,
    /// The last acknowledgment that could grow the window.
    last_growth: Instant,
    /// Since then an acknowledgment came that could not, or the connection was idle.
    limited: bool,
    /// Time until the curve is back at `w_max`, seconds.
    k: f64,
    /// NewReno's window by estimate, segments.
    w_est: f64,
}

impl Cubic {
    /// `c`, `beta`, `fast_convergence` and `tcp_friendliness`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("c": Number(0.001, 100.0) = 0.4,
            "Steepness of the curve, segments per second cubed (RFC 9438 5.1)"),
        parameter!("beta": Number(0.1, 0.95) = 0.7,
            "Share of the window that remains after a congestion event (RFC 9438 4.6)"),
        parameter!("fast_convergence": Flag = true,
            "Aim lower when a loss comes below the last one, to make room for new flows (RFC 9438 4.7)"),
        parameter!("tcp_friendliness": Flag = true, "Grow at least as fast as NewReno would (RFC 9438 4.3)"),
    ];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Cubic {
        let (c, beta) = (
            values.number("c").unwrap_or(0.4),
            values.number("beta").unwrap_or(0.7),
        );
        let (fast_convergence, tcp_friendliness) =
            (values.flag("fast_convergence"), values.flag("tcp_friendliness"));
        let skips_pauses = config.cubic_arithmetic != CubicArithmetic::LinuxBefore43;
        let linux = config.cubic_arithmetic.is_linux().then(|| {
            Box::new(Linux::new(
                c,
                beta,
                fast_convergence,
                tcp_friendliness,
                skips_pauses,
            ))
        });
        Cubic {
            units: Units::new(config),
            c,
            beta,
            fast_convergence,
            tcp_friendliness,
            curve: Curve {
                window: config.initial_window.max(config.mss),
                ssthresh: Bytes::MAX,
                credit: 0.0,
                w_max: 0.0,
                cwnd_prior: 0.0,
                epoch: None,
            },
            prior: None,
            slow_start: SlowStart::new(config.hystart.of_cubic(), config.paced),
            linux,
        }
    }

    /// The window in segments.
    fn cwnd(&self) -> f64 {
        self.curve.window.0 as f64 / f64::from(self.units.mss.max(1))
    }

    /// Growth in congestion avoidance by `acked` bytes.
    fn avoid(&mut self, now: Instant, acked: Bytes, srtt: Option<Duration>) {
        let cwnd = self.cwnd();
        let mss = f64::from(self.units.mss.max(1));
        let segments_acked = acked.0 as f64 / mss;
        let mut epoch = match self.curve.epoch.take() {
            Some(epoch) => epoch,
            None => Box::new(self.begin_epoch(now, cwnd)),
        };
        if epoch.limited {
            // RFC 9438 4.2: t does not include time in which the window was not updated for want of data.
            epoch.start = epoch.start.saturating_add(now.since(epoch.last_growth));
            epoch.limited = false;
        }
        epoch.last_growth = now;

        // RFC 9438 4.3: alpha until W_est has reached cwnd_prior, then NewReno's 1.
        let alpha = if epoch.w_est >= self.curve.cwnd_prior {
            1.0
        } else {
            3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        };
        epoch.w_est += alpha * segments_acked / cwnd;

        let t = now.since(epoch.start).as_secs_f64();
        if self.tcp_friendliness && self.w_cubic(&epoch, t) < epoch.w_est {
            let estimate = self.units.whole_units(Bytes((epoch.w_est * mss) as u64));
            self.curve.window = self.curve.window.max(estimate);
            self.curve.credit = 0.0;
        } else {
            let rtt = srtt.unwrap_or(Duration::ZERO).as_secs_f64();
            let target = self.w_cubic(&epoch, t + rtt).clamp(cwnd, 1.5 * cwnd); // RFC 9438 4.2
            self.curve.credit += (target - cwnd) / cwnd * segments_acked * mss; // RFC 9438 4.4, 4.5
            let grown = self.units.whole_units(Bytes(self.curve.credit as u64));
            self.curve.credit -= grown.0 as f64;
            self.curve.window = self.curve.window.saturating_add(grown);
        }
        self.curve.epoch = Some(epoch);
    }

    /// RFC 9438 4.2: W_cubic(t) in segments.
    fn w_cubic(&self, epoch: &Epoch, t: f64) -> f64 {
        let distance = t - epoch.k;
        self.c * distance * distance * distance + self.curve.w_max
    }

    fn begin_epoch(&mut self, now: Instant, cwnd_epoch: f64) -> Epoch {
        self.curve.credit = 0.0;
        if self.curve.cwnd_prior == 0.0 {
            self.curve.cwnd_prior = cwnd_epoch; // RFC 9438 4.10: slow start ended without a loss
        }
        let k = if self.curve.w_max > cwnd_epoch {
            libm::cbrt((self.curve.w_max - cwnd_epoch) / self.c) // RFC 9438 4.2 (2)
        } else {
            // RFC 9438 4.8 and 4.10; also a window that slow start or validation left above the old maximum
            self.curve.w_max = cwnd_epoch;
            0.0
        };
        Epoch {
            start: now,
            last_growth: now,
            limited: false,
            k,
            w_est: cwnd_epoch,
        }
    }

    /// RFC 9438 4.6 and 4.7, up to the new threshold. Returns beta of the base, before any floor.
    fn reduce(&mut self, event: &Congestion) -> Bytes {
        let cwnd = self.cwnd();
        self.prior = Some(Box::new(self.curve.clone()));
        self.curve.w_max = if self.fast_convergence && cwnd < self.curve.w_max {
            cwnd * (1.0 + self.beta) / 2.0
        } else {
            cwnd
        };
        self.curve.cwnd_prior = cwnd;
        let base = self.units.reduction_base(self.curve.window, event);
        let reduced = self.units.share(base, self.beta);
        self.curve.ssthresh = reduced.max(self.units.two_segments());
        self.curve.epoch = None;
        self.curve.credit = 0.0;
        self.slow_start.on_congestion();
        reduced
    }
}

impl Cubic {
    /// The window in whole segments, for Linux's rules.
    #[inline]
    fn whole_segments(&self) -> u32 {
        (self.curve.window.0 / u64::from(self.units.mss.max(1))).clamp(1, u64::from(u32::MAX)) as u32
    }

    /// `cubictcp_acked`, then `cubictcp_cong_avoid`.
    fn on_ack_linux(&mut self, now: Instant, ack: &Ack<'_>) {
        let Some(linux) = &mut self.linux else { return };
        let sampled = ack
            .newest_rtt
            .or(ack.rtt)
            .is_some_and(|rtt| linux.on_rtt(now, rtt));
        if ack.recovering {
            return;
        }
        let mut acked = if ack.cwnd_limited { ack.acked } else { Bytes::ZERO };
        let (window, ssthresh) = (self.curve.window, self.curve.ssthresh);
        if window < ssthresh {
            let step = if sampled {
                self.slow_start.set_delay(linux.delay_min());
                self.slow_start.on_ack(now, ack, self.units, window, ssthresh)
            } else {
                let unsampled = Ack {
                    rtt: None,
                    newest_rtt: None,
                    ..*ack
                };
                self.slow_start
                    .on_ack(now, &unsampled, self.units, window, ssthresh)
            };
            (self.curve.window, self.curve.ssthresh, acked) = (step.window, step.ssthresh, step.left);
            if step.ssthresh != ssthresh && ack.app_limited {
                return; // HyStart ended slow start, and with it its laxer view of a used window
            }
        }
        if acked == Bytes::ZERO {
            return;
        }
        let mss = u64::from(self.units.mss.max(1));
        let segments = if acked.0 == mss { 1 } else { acked.0.div_ceil(mss) };
        let window = self.whole_segments();
        let segments = segments.min(u64::from(u32::MAX)) as u32;
        if let Some(linux) = &mut self.linux {
            let grown = linux.grow(now, window, segments);
            if grown > 0 {
                self.curve.window = self.curve.window.saturating_add(Bytes(u64::from(grown) * mss));
            }
        }
    }

    /// A congestion event under Linux's rules.
    fn on_congestion_linux(&mut self, event: &Congestion) {
        let window = self.whole_segments();
        let mss = self.units.mss();
        let segments = |count: u32| Bytes(mss.0 * u64::from(count));
        let saved = (
            self.curve.window,
            self.curve.ssthresh.max(segments((window >> 1) + (window >> 2))), // `tcp_current_ssthresh`
        );
        let Some(linux) = &mut self.linux else { return };
        match event.kind {
            CongestionKind::Loss | CongestionKind::Delay | CongestionKind::Ecn => {
                self.curve.ssthresh = segments(linux.reduce(window, saved));
                self.curve.window = self.curve.ssthresh;
                self.slow_start.on_congestion();
            }
            CongestionKind::Timeout { first } => {
                if first {
                    self.curve.ssthresh = segments(linux.reduce(window, saved));
                    self.slow_start.on_congestion();
                }
                self.curve.window = mss + event.in_flight;
                linux.on_timeout();
                self.slow_start.on_restart();
            }
            CongestionKind::Undo => {
                // `tcp_reno_undo_cwnd`: the curve stays as the reduction left it.
                if let Some((window, ssthresh)) = linux.take_prior() {
                    self.curve.window = self.curve.window.max(window);
                    self.curve.ssthresh = self.curve.ssthresh.max(ssthresh);
                }
            }
            CongestionKind::RecoveryEnd => {}
        }
    }
}

impl CongestionController for Cubic {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        if self.linux.is_some() {
            self.on_ack_linux(now, ack);
            return Reaction::None;
        }
        if ack.recovering {
            return Reaction::None;
        }
        let mut acked = ack.acked;
        if self.curve.window < self.curve.ssthresh {
            let (window, ssthresh) = (self.curve.window, self.curve.ssthresh);
            let step = self.slow_start.on_ack(now, ack, self.units, window, ssthresh);
            (self.curve.window, self.curve.ssthresh, acked) = (step.window, step.ssthresh, step.left);
        }
        if acked == Bytes::ZERO {
            return Reaction::None;
        }
        if ack.cwnd_limited {
            self.avoid(now, acked, ack.srtt);
        } else if let Some(epoch) = &mut self.curve.epoch {
            epoch.limited = true;
        }
        Reaction::None
    }

    /// In congestion avoidance under Linux's rules.
    #[inline(always)]
    fn progress(&mut self, now: Instant, progress: Progress) -> Option<Bytes> {
        let linux = self.linux.as_deref_mut()?;
        let mss = u64::from(self.units.mss.max(1));
        let window = self.curve.window;
        if window < self.curve.ssthresh || window.0 > u64::from(u32::MAX) {
            return None;
        }
        if let Some(rtt) = progress.rtt {
            linux.on_rtt(now, rtt);
        }
        if progress.cwnd_limited {
            let acked = progress.acked.0;
            let segments = if acked == mss { 1 } else { acked.div_ceil(mss) };
            let segments = segments.min(u64::from(u32::MAX)) as u32;
            let grown = linux.grow(now, (window.0 as u32 / mss as u32).max(1), segments);
            self.curve.window = window.saturating_add(Bytes(u64::from(grown) * mss));
        }
        Some(self.curve.window)
    }

    #[inline(always)]
    fn stand_by(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        if let (Some(linux), Some(rtt)) = (&mut self.linux, rtt) {
            linux.on_rtt(now, rtt);
        }
        true
    }

    /// `cubictcp_acked` does not ask for the state: HyStart ends a recovery at the window that it finds.
    fn on_reduced_sample(&mut self, now: Instant, sample: &ReducedSample) {
        let Some(linux) = &mut self.linux else { return };
        if !linux.on_rtt(now, sample.rtt) || !(sample.begins || sample.window < self.curve.ssthresh) {
            return;
        }
        self.slow_start.set_delay(linux.delay_min());
        if self.slow_start.on_reduced_sample(now, sample, self.units) && !sample.begins {
            self.curve.ssthresh = sample.window;
            self.curve.window = sample.window;
        }
    }

    fn on_congestion(&mut self, _now: Instant, event: &Congestion) {
        if self.linux.is_some() {
            return self.on_congestion_linux(event);
        }
        match event.kind {
            CongestionKind::Loss | CongestionKind::Delay => {
                self.reduce(event);
                self.curve.window = self.curve.ssthresh; // at least two segments
            }
            CongestionKind::Ecn => {
                let reduced = self.reduce(event);
                self.curve.window = reduced.max(self.units.mss()); // at least one
            }
            CongestionKind::Timeout { first } => {
                if first {
                    self.reduce(event);
                }
                self.curve.window = self.units.mss() + event.in_flight; // RFC 5681 3.1: LW
                self.curve.w_max = 0.0; // RFC 9438 4.8: set when congestion avoidance begins
                self.curve.epoch = None;
                self.slow_start.on_restart();
            }
            CongestionKind::Undo => {
                // RFC 9438 4.9.2: only while the window is below the one to be restored.
                if let Some(prior) = self.prior.take().filter(|prior| self.curve.window < prior.window) {
                    self.curve = *prior;
                }
            }
            CongestionKind::RecoveryEnd => {}
        }
    }

    fn on_idle(&mut self, _now: Instant, _idle: Duration) {
        if let Some(epoch) = &mut self.curve.epoch {
            epoch.limited = true;
        }
    }

    fn on_restart(&mut self, now: Instant, idle: Duration) {
        if let Some(linux) = &mut self.linux {
            linux.on_restart(now, idle);
        }
    }

    fn set_window(&mut self, _now: Instant, window: Bytes, ssthresh: Bytes) {
        if self.linux.is_some() {
            // `tcp_cwnd_restart`, `tcp_cwnd_application_limited`: the algorithm does not hear of it.
            self.curve.window = self.units.whole_units(window).max(self.units.mss());
            self.curve.ssthresh = ssthresh;
            return;
        }
        self.curve.window = window.max(self.units.mss());
        self.curve.ssthresh = ssthresh;
        self.curve.credit = 0.0;
        self.curve.epoch = None;
        self.prior = None; // what it would restore is from before the idle period
        self.slow_start.on_restart();
    }

    fn override_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes) {
        if let Some(linux) = &mut self.linux {
            // The kernel has no New-CWV; what it forgets at every other answer to congestion.
            linux.forget_epoch();
            self.slow_start.on_restart();
        }
        self.set_window(now, window, ssthresh);
    }

    fn window(&self) -> Bytes {
        self.curve.window
    }

    fn ssthresh(&self) -> Bytes {
        self.curve.ssthresh
    }

    fn uses_sent(&self) -> bool {
        false
    }

    fn phase(&self) -> Phase {
        if self.curve.window >= self.curve.ssthresh {
            Phase::CongestionAvoidance
        } else if self.slow_start.conservative() {
            Phase::ConservativeSlowStart
        } else {
            Phase::SlowStart
        }
    }
}
