//! Whether the congestion window is in use.
//!
//! **Source.** RFC 2861 3.2; Linux `tcp_cwnd_validate`.
//! **Deviations.** None known.

use crate::pack::Pack;
use crate::time::Instant;

/// How much of the window is in use.
pub(in crate::tcp) struct Usage {
    pub(super) limited: bool,
    /// Most in flight in the current window.
    pub(super) max_out: u64,
    pub(super) usage_seq: u64,
    /// Most in flight since `window_stamp` (RFC 2861).
    pub(super) used: u64,
    pub(super) window_stamp: Instant,
}

impl Usage {
    pub(in crate::tcp) fn new(now: Instant) -> Usage {
        Usage {
            limited: false,
            max_out: 0,
            usage_seq: 0,
            used: 0,
            window_stamp: now,
        }
    }

    /// Whether the window was the limit at the end of the last drain.
    #[inline(always)]
    pub(in crate::tcp) const fn is_limited(&self) -> bool {
        self.limited
    }

    /// Writes a state in which nothing is out, or reads it.
    pub(in crate::tcp) fn pack(&mut self, pack: &mut Pack<'_>, una: u64) {
        let Usage {
            limited,
            max_out,
            usage_seq,
            used,
            window_stamp,
        } = self;
        pack.near(una, usage_seq);
        pack.number(max_out);
        pack.number(used);
        pack.instant(window_stamp);
        pack.flags([limited]);
    }
}
