//! Round-trip time and retransmission timeout.
//!
//! Keeps SRTT, RTTVAR and the smallest RTT, and computes the timeout with its floor, cap and back-off, all in
//! nanoseconds.
//!
//! **Source.** RFC 6298; Linux 6.18 `tcp_rtt_estimator`, `tcp_set_rto`, in its integers.
//! **Deviations.** With `EveryAck` each valid sample counts with the gains of RFC 6298, as Linux does; RFC 7323
//! appendix G would scale them. With `tick` the estimator is BSD's in integers, as ns-2 has it. Linux keeps the RTT of
//! earlier connections to the same host for the first timeout (`tcp_metrics`), and the smallest RTT of five minutes, not
//! of the connection. Linux 3.2 measured in jiffies; here all versions measure in microseconds, as since 3.15.
//!
//! Parameters: [`RtoConfig`].

use crate::tcp::config::{RtoConfig, RtoFloor, RttEstimator};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// RTT estimator and RTO.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Rtt {
    /// Smoothed RTT; zero before the first sample.
    srtt: Duration,
    /// RTT variation; with Linux's estimator the smoothed deviation, a quarter of `mdev_us`.
    rttvar: Duration,
    /// Smallest sample; `MAX` before the first.
    min: Duration,
    /// RTO without back-off.
    base: Duration,
    /// Doublings since the last valid sample.
    backoff: u8,
    /// Linux's `rttvar_us`, four times the variation in force, less its floor, microseconds.
    peak: u32,
    /// Linux's `mdev_max_us`, the largest `mdev_us` of this round trip, less its floor, microseconds.
    round_peak: u32,
    /// Whether there was a sample (a sample may be zero).
    sampled: bool,
    /// Whether `kernel` is worked out.
    #[serde(skip)]
    in_kernel: bool,
    /// What Linux's estimator needs of `srtt`, `rttvar` and the configuration, in its units.
    #[serde(skip)]
    kernel: Kernel,
}

/// SRTT, the deviation and the least variation as Linux has them: a sample divides none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kernel {
    /// SRTT in eighths of a microsecond (`srtt_us`).
    srtt: i64,
    /// Four times the deviation, microseconds (`mdev_us`).
    mdev: u32,
    /// The [floor](variance_floor) of the variation.
    floor: u32,
}

impl Rtt {
    pub(in crate::tcp) fn new(config: &RtoConfig) -> Rtt {
        Rtt {
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            min: Duration::MAX,
            base: config.initial,
            backoff: 0,
            peak: 0,
            round_peak: 0,
            sampled: false,
            in_kernel: false,
            kernel: Kernel::default(),
        }
    }

    /// A preset estimator.
    pub(in crate::tcp) fn with_state(config: &RtoConfig, srtt: Duration, rttvar: Duration) -> Rtt {
        let mut rtt = Rtt::new(config);
        rtt.srtt = srtt;
        rtt.rttvar = rttvar;
        rtt.min = srtt;
        rtt.sampled = true;
        rtt.peak = rtt.mdev().saturating_sub(variance_floor(config));
        rtt.round_peak = rtt.peak;
        rtt.update_base(config);
        rtt
    }

    /// An RTT that may be the smallest.
    #[inline(always)]
    pub(in crate::tcp) fn note_least(&mut self, rtt: Duration) {
        self.min = self.min.min(rtt);
    }

    /// A valid sample (RFC 6298 2.2, 2.3): ends the back-off. `round_over`: what was out when the last round trip began is
    /// acknowledged.
    #[inline(always)]
    pub(in crate::tcp) fn sample(&mut self, config: &RtoConfig, rtt: Duration, round_over: bool) {
        self.min = self.min.min(rtt);
        if config.estimator == RttEstimator::Linux {
            self.backoff = 0;
            return self.sample_linux(config, rtt, round_over);
        }
        self.in_kernel = false;
        if self.sampled && !config.tick.is_zero() {
            self.sample_ticks(config.tick.as_nanos(), rtt);
        } else if self.sampled {
            let (srtt, sample) = (self.srtt.as_nanos(), rtt.as_nanos());
            let rttvar = self.rttvar.as_nanos();
            self.rttvar = Duration::from_nanos(rttvar - rttvar / 4 + srtt.abs_diff(sample) / 4);
            self.srtt = Duration::from_nanos(srtt - srtt / 8 + sample / 8);
        } else {
            self.srtt = rtt;
            self.rttvar = Duration::from_nanos(rtt.as_nanos() / 2);
            self.sampled = true;
        }
        self.backoff = 0;
        self.update_base(config);
    }

    /// Linux's estimator: SRTT in 1/8 and the deviation in 1/4 of a microsecond. A sample below SRTT that would
    /// raise the deviation raises it by an eighth of what a sample above would; the timeout follows the peak of the deviation at once, and
    /// comes down by a quarter of the excess per round trip.
    #[inline(always)]
    fn sample_linux(&mut self, config: &RtoConfig, rtt: Duration, round_over: bool) {
        let sample = rtt.as_micros().min(LONGEST) as i64;
        if !self.sampled {
            let floor = variance_floor(config);
            self.in_kernel = false;
            self.sampled = true;
            self.srtt = eighths((sample * 8).max(1));
            self.rttvar = quarters(sample * 2);
            self.peak = self.mdev().saturating_sub(floor);
            self.round_peak = self.peak;
            return self.update_base_linux(config, self.srtt.as_micros(), floor);
        }
        let kernel = if self.in_kernel {
            self.kernel
        } else {
            self.in_kernel_units(config)
        };
        debug_assert_eq!(kernel, self.in_kernel_units(config), "what is kept is still so");
        let Kernel { srtt, mdev, floor } = kernel;
        let mdev = i64::from(mdev);
        let error = sample - (srtt >> 3);
        let mut change = error.abs() - (mdev >> 2);
        if error < 0 && change > 0 {
            change >>= 3;
        }
        let (srtt, mdev) = ((srtt + error).max(1), mdev + change);
        self.srtt = eighths(srtt);
        self.rttvar = quarters(mdev);
        let mdev = mdev.min(i64::from(u32::MAX)) as u32;
        (self.in_kernel, self.kernel) = (true, Kernel { srtt, mdev, floor });
        self.round_peak = self.round_peak.max(mdev.saturating_sub(floor));
        self.peak = self.peak.max(self.round_peak);
        if round_over {
            self.peak -= (self.peak - self.round_peak) >> 2;
            self.round_peak = 0;
        }
        self.update_base_linux(config, srtt as u64 >> 3, floor);
    }

    #[inline(never)]
    fn in_kernel_units(&self, config: &RtoConfig) -> Kernel {
        Kernel {
            srtt: (self.srtt.as_nanos() / EIGHTH) as i64,
            mdev: self.mdev(),
            floor: variance_floor(config),
        }
    }

    /// Linux's `mdev_us`: four times the deviation, microseconds.
    fn mdev(&self) -> u32 {
        (self.rttvar.as_nanos() / QUARTER).min(u64::from(u32::MAX)) as u32
    }

    /// BSD's estimator in integers.
    #[inline(never)]
    fn sample_ticks(&mut self, tick: u64, rtt: Duration) {
        let (srtt, rttvar) = self.in_ticks(tick);
        let delta = (rtt.as_nanos() / tick) as i64 - (srtt >> 3);
        let srtt = (srtt + delta).max(1);
        let rttvar = (rttvar + delta.abs() - (rttvar >> 2)).max(1);
        self.srtt = Duration::from_nanos(srtt as u64 * tick / 8);
        self.rttvar = Duration::from_nanos(rttvar as u64 * tick / 4);
    }

    /// SRTT in 1/8 and RTTVAR in 1/4 of a tick.
    fn in_ticks(&self, tick: u64) -> (i64, i64) {
        let eighths = self.srtt.as_nanos() * 8 / tick;
        let quarters = self.rttvar.as_nanos() * 4 / tick;
        (eighths as i64, quarters as i64)
    }

    #[inline(always)]
    fn update_base(&mut self, config: &RtoConfig) {
        if config.estimator == RttEstimator::Linux {
            return self.update_base_linux(config, self.srtt.as_micros(), variance_floor(config));
        }
        if !config.tick.is_zero() {
            return self.update_base_in_ticks(config);
        }
        let spread = self.rttvar.saturating_mul(4).max(config.granularity);
        let rto = match config.floor {
            RtoFloor::Rto => (self.srtt + spread).max(config.min), // RFC 6298 2.3, 2.4
            RtoFloor::Variance => self.srtt + spread.max(config.min),
        };
        self.base = rto.min(config.max);
    }

    /// `srtt` in microseconds, and the [floor](variance_floor) of the variation.
    #[inline(always)]
    fn update_base_linux(&mut self, config: &RtoConfig, srtt: u64, floor: u32) {
        let rto = (srtt + u64::from(floor + self.peak)) * MICROSECOND;
        self.base = match config.floor {
            RtoFloor::Rto => up_to_whole(rto, config.granularity).max(config.min),
            RtoFloor::Variance => up_to_whole(rto, config.granularity),
        }
        .min(config.max);
    }

    #[inline(never)]
    fn update_base_in_ticks(&mut self, config: &RtoConfig) {
        let tick = config.tick.as_nanos();
        let (srtt, rttvar) = self.in_ticks(tick);
        let rto = Duration::from_nanos(((srtt >> 3) + rttvar) as u64 * tick);
        self.base = rto.max(config.min).min(config.max);
    }

    /// RFC 6298 5.7: the SYN timed out and no sample was taken since.
    pub(in crate::tcp) fn after_syn_timeout(&mut self, config: &RtoConfig) {
        self.backoff = 0;
        if !self.sampled {
            self.base = config.after_syn_timeout;
        }
    }

    /// RFC 6298 5.5.
    pub(in crate::tcp) fn back_off(&mut self, config: &RtoConfig) {
        self.backoff = (self.backoff + 1).min(40);
        if !config.tick.is_zero() && self.backoff > 3 {
            self.sampled = false; // BSD: so far off, the next sample counts as the first
        }
    }

    /// Takes back one doubling (RFC 6069 4.2); false if there was none.
    pub(in crate::tcp) fn revert_one(&mut self) -> bool {
        let reverted = self.backoff > 0;
        self.backoff = self.backoff.saturating_sub(1);
        reverted
    }

    /// Takes back the back-off (thin streams, spurious timeouts).
    pub(in crate::tcp) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The timeout now.
    #[inline]
    pub(in crate::tcp) fn rto(&self, config: &RtoConfig) -> Duration {
        if self.backoff == 0 {
            return self.base;
        }
        self.base.saturating_mul(1 << self.backoff).min(config.max)
    }

    /// No timer for what is out expires earlier than this after an acknowledgment that set it, be it that of the timeout or that of
    /// the tail loss probe, which takes two smoothed RTTs at least.
    /// Nor earlier than the timeout of the first segment, which is of that `age`.
    #[inline(always)]
    pub(in crate::tcp) fn least(&self, age: Duration) -> Duration {
        self.base.saturating_sub(age).min(self.srtt)
    }

    /// The timeout without back-off.
    pub(in crate::tcp) fn base(&self) -> Duration {
        self.base
    }

    /// RFC 4015 3.1 step 11: a timeout was spurious because the RTT had grown to `rtt`.
    pub(in crate::tcp) fn after_spurious_timeout(&mut self, config: &RtoConfig, rtt: Duration) {
        self.in_kernel = false;
        // Conservative: SRTT = max(SRTT, sample), RTTVAR = max(RTTVAR, sample / 2).
        self.srtt = self.srtt.max(rtt);
        self.rttvar = self.rttvar.max(Duration::from_nanos(rtt.as_nanos() / 2));
        let above = self.mdev().saturating_sub(variance_floor(config));
        (self.peak, self.round_peak) = (self.peak.max(above), self.round_peak.max(above));
        self.sampled = true;
        self.backoff = 0;
        self.update_base(config);
    }

    #[inline]
    pub(in crate::tcp) fn srtt(&self) -> Option<Duration> {
        self.sampled.then_some(self.srtt)
    }

    /// Doublings in force.
    pub(in crate::tcp) fn back_offs(&self) -> u8 {
        self.backoff
    }

    /// RTT variation; in Linux the smoothed deviation (`tcpi_rttvar`), not its peak, of which the timeout is made.
    #[inline]
    pub(in crate::tcp) fn rttvar(&self) -> Duration {
        self.rttvar
    }

    #[inline]
    pub(in crate::tcp) fn min(&self) -> Option<Duration> {
        (self.min != Duration::MAX).then_some(self.min)
    }
}

/// The least variation, times four, in microseconds: Linux's `tcp_rto_min_us`.
#[inline(always)]
fn variance_floor(config: &RtoConfig) -> u32 {
    match config.floor {
        RtoFloor::Rto => 0,
        RtoFloor::Variance => config.min.as_micros().min(LONGEST) as u32,
    }
}

/// A time given in eighths of a microsecond.
const fn eighths(count: i64) -> Duration {
    Duration::from_nanos(count as u64 * EIGHTH)
}

/// A time given in quarters of a microsecond.
const fn quarters(count: i64) -> Duration {
    Duration::from_nanos(count as u64 * QUARTER)
}

/// A time given in nanoseconds, rounded up to a multiple of `step`.
#[inline(always)]
fn up_to_whole(nanos: u64, step: Duration) -> Duration {
    Duration::from_nanos(match step.as_nanos() {
        0 => nanos,
        JIFFY => nanos.next_multiple_of(JIFFY), // a division by a constant is a multiplication
        step => nanos.next_multiple_of(step),
    })
}

/// Nanoseconds.
const MICROSECOND: u64 = 1_000;
const QUARTER: u64 = MICROSECOND / 4;
const EIGHTH: u64 = MICROSECOND / 8;

/// A jiffy of HZ 250, nanoseconds.
const JIFFY: u64 = 4_000_000;

/// A longer sample counts as this, microseconds: eight of them are to fit into 32 bits.
const LONGEST: u64 = 500_000_000;

#[cfg(test)]
mod tests {
    use super::Rtt;
    use crate::rng::Rng;
    use crate::tcp::{Config, Profile, RtoConfig, RtoFloor};
    use crate::time::Duration;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn three_equal_samples_give_the_worked_variance() {
        let config = Config::profile(Profile::Linux2015).rto;
        let mut rtt = Rtt::new(&config);
        let mut seen = [Duration::ZERO; 3];
        for slot in &mut seen {
            rtt.sample(&config, ms(100), false);
            *slot = rtt.rttvar();
            assert_eq!(rtt.srtt(), Some(ms(100)));
            assert_eq!(rtt.rto(&config), ms(300));
        }
        let expected = [50_000, 37_500, 28_125].map(Duration::from_micros);
        assert_eq!(seen, expected);
    }

    /// RFC 9293: MUST-18
    #[test]
    fn one_late_sample_after_steady_state() {
        let config = Config::profile(Profile::Linux2015).rto;
        for (sample, srtt, rttvar, rto) in [(140, 105, 10, 308), (300, 125, 50, 328)] {
            let mut rtt = Rtt::with_state(&config, ms(100), Duration::ZERO);
            rtt.sample(&config, ms(sample), false);
            assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(srtt)), ms(rttvar)));
            assert_eq!(rtt.rto(&config), ms(rto));
        }
    }

    /// RFC 9293: MUST-18
    #[test]
    fn the_rfc_floor_is_on_the_sum() {
        let config = Config::profile(Profile::Rfc).rto;
        let mut rtt = Rtt::with_state(&config, ms(100), Duration::ZERO);
        assert_eq!(rtt.rto(&config), ms(1000));
        rtt.back_off(&config);
        rtt.back_off(&config);
        assert_eq!(rtt.rto(&config), ms(4000));
        rtt.sample(&config, ms(100), false);
        assert_eq!(rtt.rto(&config), ms(1000), "a valid sample ends the back-off");
        for _ in 0..20 {
            rtt.back_off(&config);
        }
        assert_eq!(rtt.rto(&config), config.max);
    }

    #[test]
    fn ticks_keep_the_fractions_of_bsd() {
        let config = Config::profile(Profile::Ns2Sack).rto;
        let mut rtt = Rtt::new(&config);
        // Samples of 30, 30, 30, 31, 30, 30 ticks: SRTT in 1/8 of a tick, RTTVAR in 1/4, the timeout in ticks.
        let expected = [
            (30, 240, 60, 90),
            (30, 240, 45, 75),
            (30, 240, 34, 64),
            (31, 241, 27, 57),
            (30, 241, 21, 51),
            (30, 241, 16, 46),
        ];
        for (ticks, srtt, rttvar, rto) in expected {
            rtt.sample(&config, ms(10 * ticks), false);
            assert_eq!(rtt.srtt(), Some(Duration::from_micros(1_250 * srtt)));
            assert_eq!(rtt.rttvar(), Duration::from_micros(2_500 * rttvar));
            assert_eq!(rtt.rto(&config), ms(10 * rto));
        }
        // The variance decays to three quarters of a tick and no further.
        for _ in 0..40 {
            rtt.sample(&config, ms(300), false);
        }
        assert_eq!(rtt.rto(&config), ms(330));
        for _ in 0..4 {
            rtt.back_off(&config);
        }
        assert_eq!(rtt.rto(&config), ms(330 * 16));
        rtt.sample(&config, ms(200), false);
        assert_eq!(
            rtt.rto(&config),
            ms(600),
            "SRTT + 4 * SRTT / 2: as the first sample"
        );
    }

    const fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    /// The kernel's estimator a second time, as naively as possible: its own names, units and 32 bits.
    #[derive(Default)]
    struct Kernel {
        srtt_us: u32,
        mdev_us: u32,
        mdev_max_us: u32,
        rttvar_us: u32,
    }

    impl Kernel {
        fn sample(&mut self, measured: u32, round_over: bool) {
            const RTO_MIN: u32 = 200_000;
            if self.srtt_us == 0 {
                self.srtt_us = (measured << 3).max(1);
                self.mdev_us = measured << 1;
                self.rttvar_us = self.mdev_us.max(RTO_MIN);
                self.mdev_max_us = self.rttvar_us;
                return;
            }
            let old = self.srtt_us >> 3;
            let quarter = self.mdev_us >> 2;
            if measured >= old {
                let error = measured - old;
                self.srtt_us += error;
                self.mdev_us = self.mdev_us - quarter + error;
            } else {
                let error = old - measured;
                self.srtt_us -= error;
                self.mdev_us = if error > quarter {
                    self.mdev_us + (error - quarter) / 8
                } else {
                    self.mdev_us - (quarter - error)
                };
            }
            self.srtt_us = self.srtt_us.max(1);
            if self.mdev_us > self.mdev_max_us {
                self.mdev_max_us = self.mdev_us;
                if self.mdev_max_us > self.rttvar_us {
                    self.rttvar_us = self.mdev_max_us;
                }
            }
            if round_over {
                if self.mdev_max_us < self.rttvar_us {
                    self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) / 4;
                }
                self.mdev_max_us = RTO_MIN;
            }
        }

        fn rto_jiffies(&self) -> u64 {
            u64::from((self.srtt_us >> 3) + self.rttvar_us).div_ceil(4_000)
        }
    }

    #[test]
    fn linux_follows_the_peak_of_the_deviation() {
        let config = Config::profile(Profile::Linux).rto;
        let mut rtt = Rtt::new(&config);
        // Sample in ms, whether it ends a round trip; then SRTT in 1/8 us, mdev, mdev_max and rttvar in us, the timeout in
        // ms, worked by hand from `tcp_rtt_estimator`.
        let expected = [
            (100, false, 800_000, 200_000, 200_000, 200_000, 300), // mdev = 2 m
            (300, false, 1_000_000, 350_000, 350_000, 350_000, 476), // error 200: mdev + 200 - 50; 125 + 350
            (300, false, 1_175_000, 437_500, 437_500, 437_500, 588), // error 175: + 175 - 87.5; 146.875 + 437.5
            (100, false, 1_128_125, 375_000, 437_500, 437_500, 580), // error -46.875: + 46.875 - 109.375
            (100, true, 1_087_110, 322_265, 200_000, 437_500, 576), // the peak of this round trip was as high
            (150, true, 1_101_222, 255_811, 200_000, 392_078, 532), // 437.5 less a quarter of 437.5 - 255.811
            (150, true, 1_113_570, 204_207, 200_000, 345_111, 488), // less a quarter of 392.078 - 204.207
            (150, true, 1_124_374, 163_960, 200_000, 308_834, 452), // less a quarter of 345.111 - 200, the floor
        ];
        for (sample, over, srtt, mdev, round_peak, peak, rto) in expected {
            rtt.sample(&config, ms(sample), over);
            assert_eq!(rtt.srtt(), Some(Duration::from_nanos(125 * srtt)), "{sample}");
            assert_eq!(
                (rtt.mdev(), 200_000 + rtt.round_peak, 200_000 + rtt.peak),
                (mdev, round_peak, peak)
            );
            assert_eq!(rtt.rto(&config), ms(rto));
        }
        // A sample far below SRTT counts an eighth: 80 ms move the deviation by 10.
        let mut rtt = Rtt::with_state(&config, ms(100), Duration::ZERO);
        rtt.sample(&config, ms(20), false);
        assert_eq!((rtt.srtt(), rtt.mdev()), (Some(ms(90)), 10_000));
        assert_eq!(rtt.rto(&config), ms(292), "90 + 200, in jiffies");
    }

    #[test]
    fn the_floor_of_linux_may_be_that_of_the_whole_timer() {
        let config = RtoConfig {
            floor: RtoFloor::Rto,
            ..Config::profile(Profile::Linux).rto
        };
        let mut rtt = Rtt::with_state(&config, ms(100), ms(1));
        assert_eq!(rtt.rto(&config), ms(200));
        rtt = Rtt::with_state(&config, ms(300), ms(1));
        assert_eq!(rtt.rto(&config), ms(304));
    }

    #[test]
    fn linux_as_the_kernel_transcribed_naively() {
        let config = Config::profile(Profile::Linux).rto;
        let mut rng = Rng::from_seed(6);
        for _ in 0..200 {
            let (mut ours, mut kernel) = (Rtt::new(&config), Kernel::default());
            let scale = 1 << rng.below(24);
            for _ in 0..200 {
                let measured = rng.below(scale);
                let over = rng.below(5) == 0;
                ours.sample(&config, us(measured), over);
                kernel.sample(measured as u32, over);
                let srtt = Duration::from_nanos(u64::from(kernel.srtt_us) * 125);
                assert_eq!(ours.srtt(), Some(srtt));
                assert_eq!(
                    ours.rttvar(),
                    Duration::from_nanos(u64::from(kernel.mdev_us) * 250)
                );
                assert_eq!(
                    (200_000 + ours.peak, 200_000 + ours.round_peak),
                    (kernel.rttvar_us, kernel.mdev_max_us)
                );
                assert_eq!(ours.rto(&config), ms(4 * kernel.rto_jiffies()).min(config.max));
            }
        }
    }
}
