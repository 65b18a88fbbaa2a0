//! What both versions of BBR know of a path.

use super::RateSample;
use crate::units::Rate;

/// Bytes per second in bits per second.
pub(super) fn as_rate(bytes_per_second: f64) -> Rate {
    Rate::from_bps((bytes_per_second * 8.0) as u64)
}

/// The rate of a sample in bytes per second.
pub(super) fn rate_of(sample: &RateSample) -> f64 {
    sample.delivered.0 as f64 / sample.interval.as_secs_f64().max(1e-9)
}

/// Looks for the round trip after which the rate no longer grows: the pipe is full after three without a quarter more.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullPipe {
    rate: f64,
    count: u8,
}

impl FullPipe {
    pub(super) const fn new() -> FullPipe {
        FullPipe { rate: 0.0, count: 0 }
    }

    /// Counts from `rate` on.
    pub(super) fn begin(&mut self, rate: f64) {
        (self.rate, self.count) = (rate, 0);
    }

    /// A round trip of this rate is over.
    pub(super) fn is_full(&mut self, rate: f64) -> bool {
        if rate >= self.rate * 1.25 {
            self.begin(rate);
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.count >= 3
    }
}
