//! Round-trip time and retransmission timeout.
//!
//! Keeps SRTT, RTTVAR and the smallest RTT, and computes the timeout with its floor, cap and back-off, all in
//! nanoseconds.
//!
//! **Source.** RFC 6298; the floor on the variance term is Linux's (`tcp_set_rto`).
//! **Deviations.** With `EveryAck` each valid sample counts with the gains of RFC 6298, as Linux does; RFC 7323
//! appendix G would scale them. With `tick` the estimator is BSD's in integers, as ns-2 has it.
//!
//! Parameters: [`RtoConfig`].

use crate::tcp::config::{RtoConfig, RtoFloor};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// RTT estimator and RTO.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Rtt {
    /// Smoothed RTT; zero before the first sample.
    srtt: Duration,
    /// RTT variation.
    rttvar: Duration,
    /// Smallest sample; `MAX` before the first.
    min: Duration,
    /// RTO without back-off.
    base: Duration,
    /// Doublings since the last valid sample.
    backoff: u8,
    /// Whether there was a sample (a sample may be zero).
    sampled: bool,
}

impl Rtt {
    pub(in crate::tcp) fn new(config: &RtoConfig) -> Rtt {
        Rtt {
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            min: Duration::MAX,
            base: config.initial,
            backoff: 0,
            sampled: false,
        }
    }

    /// A preset estimator.
    pub(in crate::tcp) fn with_state(config: &RtoConfig, srtt: Duration, rttvar: Duration) -> Rtt {
        let mut rtt = Rtt::new(config);
        rtt.srtt = srtt;
        rtt.rttvar = rttvar;
        rtt.min = srtt;
        rtt.sampled = true;
        rtt.update_base(config);
        rtt
    }

    /// A valid sample (RFC 6298 2.2, 2.3): ends the back-off.
    #[inline(always)]
    pub(in crate::tcp) fn sample(&mut self, config: &RtoConfig, rtt: Duration) {
        self.min = self.min.min(rtt);
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

    /// The timeout without back-off.
    pub(in crate::tcp) fn base(&self) -> Duration {
        self.base
    }

    /// RFC 4015 3.1 step 11: a timeout was spurious because the RTT had grown to `rtt`.
    pub(in crate::tcp) fn after_spurious_timeout(&mut self, config: &RtoConfig, rtt: Duration) {
        // Conservative: SRTT = max(SRTT, sample), RTTVAR = max(RTTVAR, sample / 2).
        self.srtt = self.srtt.max(rtt);
        self.rttvar = self.rttvar.max(Duration::from_nanos(rtt.as_nanos() / 2));
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

    #[inline]
    pub(in crate::tcp) fn rttvar(&self) -> Duration {
        self.rttvar
    }

    #[inline]
    pub(in crate::tcp) fn min(&self) -> Option<Duration> {
        (self.min != Duration::MAX).then_some(self.min)
    }
}

#[cfg(test)]
mod tests {
    use super::Rtt;
    use crate::tcp::{Config, Profile};
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
            rtt.sample(&config, ms(100));
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
        for (sample, srtt, rttvar, rto) in [(140, 105, 10, 305), (300, 125, 50, 325)] {
            let mut rtt = Rtt::with_state(&config, ms(100), Duration::ZERO);
            rtt.sample(&config, ms(sample));
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
        rtt.sample(&config, ms(100));
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
            rtt.sample(&config, ms(10 * ticks));
            assert_eq!(rtt.srtt(), Some(Duration::from_micros(1_250 * srtt)));
            assert_eq!(rtt.rttvar(), Duration::from_micros(2_500 * rttvar));
            assert_eq!(rtt.rto(&config), ms(10 * rto));
        }
        // The variance decays to three quarters of a tick and no further.
        for _ in 0..40 {
            rtt.sample(&config, ms(300));
        }
        assert_eq!(rtt.rto(&config), ms(330));
        for _ in 0..4 {
            rtt.back_off(&config);
        }
        assert_eq!(rtt.rto(&config), ms(330 * 16));
        rtt.sample(&config, ms(200));
        assert_eq!(
            rtt.rto(&config),
            ms(600),
            "SRTT + 4 * SRTT / 2: as the first sample"
        );
    }
}
