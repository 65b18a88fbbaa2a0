//! What both versions of BBR know of a path.

use super::RateSample;
use crate::time::Instant;
use crate::units::Rate;
use serde::{Deserialize, Serialize};

/// The methods of the window and the rate, which both versions keep in `self.0`.
macro_rules! of_model {
    () => {
        fn set_window(&mut self, _now: Instant, window: Bytes, _ssthresh: Bytes) {
            self.0.window = window.0.max(self.0.units.mss().0);
            self.0.prior_window = 0;
        }

        fn window(&self) -> Bytes {
            let least = self.0.units.mss();
            self.0.units.whole_units(Bytes(self.0.window)).max(least)
        }

        fn ssthresh(&self) -> Bytes {
            Bytes::MAX
        }

        fn keeps_window(&self) -> bool {
            true
        }

        fn restarts_after_pauses(&self) -> bool {
            false
        }

        fn pacing_rate(&self) -> Option<Rate> {
            (self.0.pacing > 0.0).then(|| as_rate(self.0.pacing))
        }

        fn send_quantum(&self) -> Bytes {
            Bytes(self.0.send_quantum())
        }

        fn uses_rates(&self) -> bool {
            true
        }

        fn uses_sent(&self) -> bool {
            false
        }
    };
}
pub(super) use of_model;

/// Bytes per second in bits per second.
pub(super) fn as_rate(bytes_per_second: f64) -> Rate {
    Rate::from_bps((bytes_per_second * 8.0) as u64)
}

/// The rate of a sample in bytes per second.
pub(super) fn rate_of(sample: &RateSample) -> f64 {
    sample.delivered.0 as f64 / sample.interval.as_secs_f64().max(1e-9)
}

/// How far ACKs come in bunches: what an epoch delivered beyond what the rate of the path explains. An epoch begins where
/// nothing is left over.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct AckEpoch {
    pub(super) from: Instant,
    delivered: u64,
}

impl AckEpoch {
    pub(super) const fn new() -> AckEpoch {
        AckEpoch {
            from: Instant::ZERO,
            delivered: 0,
        }
    }

    /// A new epoch.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.from, self.delivered) = (now, 0);
    }

    /// An ACK delivered `new` bytes, where the path carries `rate` bytes per second: what has come too soon, at most `most`.
    pub(super) fn excess(&mut self, now: Instant, new: u64, rate: f64, most: u64) -> u64 {
        let mut expected = (rate * now.since(self.from).as_secs_f64()) as u64;
        if self.delivered <= expected {
            self.begin(now);
            expected = 0;
        }
        self.delivered = self.delivered.saturating_add(new);
        self.delivered.saturating_sub(expected).min(most)
    }
}

/// Looks for the round trip after which the rate no longer grows: the pipe is full after three without a quarter more.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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
