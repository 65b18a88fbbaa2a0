//! How often a timer fired in a row for what is out.
//!
//! **Source.** RFC 9293 3.8.3 (R1, R2); RFC 5482.
//! **Deviations.** None known.

use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// How often a timer fired in a row for what is out now, and since when.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::tcp) struct Attempts {
    pub(super) count: u8,
    /// When the timer first expired: milliseconds of the clock, wrapping.
    pub(super) first_ms: u32,
}

impl Attempts {
    /// How often the timer fired in a row.
    pub(in crate::tcp) const fn count(self) -> u8 {
        self.count
    }

    /// The peer acknowledged something new, or answered a zero-window probe.
    #[inline(always)]
    pub(in crate::tcp) fn forget(&mut self) {
        self.count = 0;
    }

    /// The retransmission timer fired.
    pub(in crate::tcp) fn on_timeout(&mut self, now: Instant) {
        self.count = self.count.saturating_add(1);
        if self.count == 1 {
            self.begin(now);
        }
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.first_ms = (now.as_nanos() / 1_000_000) as u32;
    }

    /// The peer answers, but its window is shut: counting begins anew (RFC 9293 SHLD-17, MUST-37).
    #[inline]
    pub(in crate::tcp) fn on_answer_with_shut_window(&mut self, now: Instant) {
        if self.count > 0 {
            self.count = 1;
            self.begin(now);
        }
    }

    /// Time since the first timeout of what is out now.
    pub(super) fn waited(self, now: Instant) -> Duration {
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        Duration::from_millis(u64::from(now_ms.wrapping_sub(self.first_ms)))
    }
}
