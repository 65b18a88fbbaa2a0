//! CUBIC in whole segments and scaled integers, as Linux computes it.
//!
//! Growth is a count: `count` acknowledged segments for one more. The count is worked out anew when the window has changed,
//! or after a 32nd of a second, and never twice in a jiffy; between, an acknowledgment costs an addition and a comparison.
//!
//! **Source.** Linux 6.18: `net/ipv4/tcp_cubic.c` for the curve, the estimate of NewReno and the events, `tcp_cong.c` for
//! `tcp_cong_avoid_ai`, `tcp_input.c` for undo. Rules and constants only.
//! Before Linux 4.3 a pause was time of the curve (`linux-4.2`: commit 30927520dbae, September 2015, whose release is from memory).
//! **Deviations.** The clock of jiffies starts with the simulated clock, so its phase is not that of any kernel.
//! **Parameters.** Those of `cubic`, in Linux's scales: `c` in 1/1024 per (100 ms)^3, `beta` in 1/1024. 250 jiffies a second.

use crate::time::{Duration, Instant};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Ticks of the kernel's clock per second.
const HZ: u32 = 250;
/// One tick, nanoseconds.
const JIFFY: u64 = 1_000_000_000 / HZ as u64;
/// Times of the curve have 10 binary places of a second.
const FRACTION: u32 = 10;

/// State of CUBIC between acknowledgments. Windows are in segments, times in jiffies unless they say otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Linux {
    /// Acknowledged segments that one segment of growth takes.
    count: u32,
    /// Acknowledged segments that have not yet paid for one (`snd_cwnd_cnt`).
    paid: u32,
    /// The window before the last reduction, after fast convergence; 0: none, or a timeout since.
    last_max: u32,
    /// Window and time of the last look at the curve.
    seen_window: u32,
    seen_at: u32,
    /// Plateau of the curve.
    origin: u32,
    /// Time from the begin of the epoch to the plateau, 1/1024 s.
    k: u32,
    /// Begin of the epoch; `None` from a reduction to the next growth.
    epoch: Option<u32>,
    /// Acknowledged segments that NewReno's estimate has not used.
    estimate_paid: u32,
    /// NewReno's window by estimate.
    estimate: u32,
    /// Smallest RTT since the beginning or the last timeout.
    delay_min: Duration,
    /// Window and threshold that an undo restores; zero: none.
    prior: (Bytes, Bytes),
    /// C in 1/1024 segment per (100 ms)^3, times ten.
    steepness: u32,
    /// Beta in 1/1024.
    beta: u32,
    /// Acknowledged segments per segment of the estimate's growth, in eighths of the window.
    friendliness: u32,
    fast_convergence: bool,
    /// Whether a pause moves the curve.
    skips_pauses: bool,
}

impl Linux {
    pub(super) fn new(
        c: f64,
        beta: f64,
        fast_convergence: bool,
        tcp_friendliness: bool,
        skips_pauses: bool,
    ) -> Linux {
        let beta = (libm::round(beta * 1024.0) as u32).clamp(1, 1023);
        Linux {
            count: 0,
            paid: 0,
            last_max: 0,
            seen_window: 0,
            seen_at: 0,
            origin: 0,
            k: 0,
            epoch: None,
            estimate_paid: 0,
            estimate: 0,
            delay_min: Duration::ZERO,
            prior: (Bytes::ZERO, Bytes::ZERO),
            steepness: (libm::round(c * 102.4) as u32).max(1) * 10,
            beta,
            friendliness: if tcp_friendliness {
                8 * (1024 + beta) / 3 / (1024 - beta)
            } else {
                u32::MAX
            },
            fast_convergence,
            skips_pauses,
        }
    }

    /// An RTT sample. False if it is not to be looked at: in the first second of an epoch queues are still full
    /// (`cubictcp_acked`).
    #[inline]
    pub(super) fn on_rtt(&mut self, now: Instant, rtt: Duration) -> bool {
        if let Some(epoch) = self.epoch
            && (jiffies(now).wrapping_sub(epoch) as i32) < HZ as i32
        {
            return false;
        }
        if self.delay_min == Duration::ZERO || rtt < self.delay_min {
            self.delay_min = rtt.max(Duration::from_micros(1));
        }
        true
    }

    /// Data leaves when nothing was in flight, `idle` after the last: that time is not the curve's (`cubictcp_cwnd_event`, since
    /// Linux 4.3).
    pub(super) fn on_restart(&mut self, now: Instant, idle: Duration) {
        if !self.skips_pauses {
            return;
        }
        let now_jiffies = jiffies(now);
        if let Some(epoch) = &mut self.epoch {
            let last = jiffies(Instant::ZERO.saturating_add(now.since(Instant::ZERO).saturating_sub(idle)));
            let later = epoch.wrapping_add(now_jiffies.wrapping_sub(last));
            *epoch = if (later.wrapping_sub(now_jiffies) as i32) > 0 {
                now_jiffies
            } else {
                later
            };
        }
    }

    /// Congestion avoidance: what `acked` segments add to a window of `window` segments.
    #[inline(always)]
    pub(super) fn grow(&mut self, now: Instant, window: u32, acked: u32) -> u32 {
        self.look(jiffies(now), window, acked);
        // `tcp_cong_avoid_ai`: what was paid while a segment cost more buys one at once.
        let mut grown = 0;
        if self.paid >= self.count {
            self.paid = 0;
            grown = 1;
        }
        self.paid = self.paid.saturating_add(acked);
        if self.paid >= self.count {
            grown += self.paid / self.count;
            self.paid %= self.count;
        }
        grown
    }

    /// `bictcp_update`: the price of a segment.
    #[inline(always)]
    fn look(&mut self, at: u32, window: u32, acked: u32) {
        self.estimate_paid = self.estimate_paid.wrapping_add(acked);
        let since = at.wrapping_sub(self.seen_at);
        if self.seen_window == window && since as i32 <= (HZ / 32) as i32 {
            return;
        }
        if self.epoch.is_none() || since != 0 {
            self.follow(at, window, acked);
        }
        self.befriend(window);
        self.count = self.count.max(2); // at most half a window per round trip
    }

    /// The curve.
    fn follow(&mut self, at: u32, window: u32, acked: u32) {
        self.seen_window = window;
        self.seen_at = at;
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.estimate_paid = acked;
            self.estimate = window;
            if self.last_max > window {
                let distance = u64::from(self.last_max - window);
                self.k = cube_root(
                    ((1 << (10 + 3 * FRACTION)) / u64::from(self.steepness)).wrapping_mul(distance),
                );
                self.origin = self.last_max;
            } else {
                self.k = 0;
                self.origin = window;
            }
            at
        });
        let delay = self.delay_min.as_micros().div_ceil(JIFFY / 1_000) as i64;
        let elapsed = i64::from(at.wrapping_sub(epoch) as i32) + delay;
        let t = (elapsed as u64) << FRACTION;
        let t = t / u64::from(HZ);
        let below = t < u64::from(self.k);
        let distance = t.abs_diff(u64::from(self.k));
        // Wraps, as there, after six minutes on either side of the plateau.
        let cube = u64::from(self.steepness)
            .wrapping_mul(distance)
            .wrapping_mul(distance)
            .wrapping_mul(distance);
        let offset = (cube >> (10 + 3 * FRACTION)) as u32;
        let target = if below {
            self.origin.wrapping_sub(offset)
        } else {
            self.origin.wrapping_add(offset)
        };
        self.count = if target > window {
            window / (target - window)
        } else {
            window.wrapping_mul(100)
        };
        if self.last_max == 0 {
            self.count = self.count.min(20); // nothing is known of the path: at least five per cent per round trip
        }
    }

    /// At least NewReno's growth.
    fn befriend(&mut self, window: u32) {
        if self.friendliness == u32::MAX {
            return;
        }
        let price = window.wrapping_mul(self.friendliness) >> 3;
        if self.estimate_paid > price && price > 0 {
            // So many that one is left at most: a loop of subtractions while more than the price is left.
            let bought = (self.estimate_paid - 1) / price;
            self.estimate_paid -= bought * price;
            self.estimate = self.estimate.wrapping_add(bought);
        }
        if self.estimate > window {
            self.count = self.count.min(window / (self.estimate - window));
        }
    }

    /// `cubictcp_recalc_ssthresh`: the threshold in segments. `saved` is what an undo restores.
    pub(super) fn reduce(&mut self, window: u32, saved: (Bytes, Bytes)) -> u32 {
        self.prior = saved;
        self.epoch = None;
        self.paid = 0; // `tcp_init_cwnd_reduction`, `tcp_enter_loss`
        self.last_max = if self.fast_convergence && window < self.last_max {
            scaled(window, 1024 + self.beta, 2048)
        } else {
            window
        };
        scaled(window, self.beta, 1024).max(2)
    }

    /// An answer to congestion that is not CUBIC's own: the next growth begins an epoch, and nothing is to be undone.
    pub(super) fn forget_epoch(&mut self) {
        self.epoch = None;
        self.paid = 0;
        self.prior = (Bytes::ZERO, Bytes::ZERO);
    }

    /// A timeout forgets the path (`bictcp_reset`).
    pub(super) fn on_timeout(&mut self) {
        *self = Linux {
            prior: self.prior,
            steepness: self.steepness,
            beta: self.beta,
            friendliness: self.friendliness,
            fast_convergence: self.fast_convergence,
            ..Linux::new(0.4, 0.7, true, true, self.skips_pauses)
        };
    }

    /// The smallest RTT; zero before the first sample.
    #[inline]
    pub(super) const fn delay_min(&self) -> Duration {
        self.delay_min
    }

    /// Window and threshold before the last reduction, once.
    pub(super) fn take_prior(&mut self) -> Option<(Bytes, Bytes)> {
        let prior = core::mem::replace(&mut self.prior, (Bytes::ZERO, Bytes::ZERO));
        (prior.0 > Bytes::ZERO).then_some(prior)
    }
}

#[inline]
const fn jiffies(now: Instant) -> u32 {
    (now.as_nanos() / JIFFY) as u32
}

fn scaled(window: u32, numerator: u32, denominator: u32) -> u32 {
    (u64::from(window) * u64::from(numerator) / u64::from(denominator)) as u32
}

/// 64 times the cube root of 8 to 63, as Linux estimates it (tuned there for the step that follows).
const ESTIMATES: [u16; 56] = [
    133, 139, 144, 148, 153, 157, 161, 166, 167, 171, 174, 178, 180, 183, 186, 189, 191, 195, 197, 200, 202,
    204, 207, 209, 210, 212, 214, 216, 219, 221, 223, 225, 227, 229, 231, 232, 234, 235, 237, 239, 241, 242,
    244, 246, 247, 249, 250, 252, 254, 255, 256, 258, 260, 261, 262, 264,
];

/// Cube root to about 0.2 per cent: an estimate from the leading bits, and one step of Newton and Raphson's method with a
/// third taken as 341/1024. `a` is at least 64.
fn cube_root(a: u64) -> u32 {
    let bits = 64 - a.leading_zeros();
    let thirds = (bits * 84 / 256).saturating_sub(1);
    let leading = (a >> (3 * thirds)) as usize;
    let estimate = ESTIMATES.get(leading.wrapping_sub(8)).copied().unwrap_or(128);
    let x = ((u64::from(estimate) << thirds) / 64).max(2);
    ((2 * x + a / (x * (x - 1))) * 341 / 1024) as u32
}
