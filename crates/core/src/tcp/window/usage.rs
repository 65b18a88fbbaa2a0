//! Whether the congestion window is in use, and what an idle or application-limited period does to it.
//!
//! New-CWV (RFC 7661) is in `new_cwv`.
//!
//! **Source.** RFC 5681 4.1 and RFC 2861 for idle time; application-limited decay and the meaning of "window-limited" as in
//! Linux (`tcp_cwnd_validate`).
//! **Deviations.** As in Linux, an acknowledgment that may raise the window begins RFC 2861's period of little use anew (3.2 does not say so;
//! `tcp_cong_avoid` sets `snd_cwnd_stamp`). So a window of which little is used stays as it is as long as acknowledgments come, and
//! only a pause lowers it: `conformance/idle` has the script, which Linux 6.18 passes.

use crate::tcp::config::{WindowGrowth, WindowValidation};
use crate::tcp::window::controller::Controller;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// How much of the window is in use.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Usage {
    limited: bool,
    /// Most in flight in the current window.
    max_out: u64,
    usage_seq: u64,
    /// Most in flight since the window was last the limit, or lowered (RFC 2861).
    used: u64,
    /// Since when little is used, at the earliest.
    window_stamp: Instant,
}

/// The window as it is now, for those who validate it.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct View {
    /// The controller's window.
    pub(in crate::tcp) window: Bytes,
    /// The controller's threshold.
    pub(in crate::tcp) ssthresh: Bytes,
    /// Whether the window was the limit at the end of the last drain.
    pub(in crate::tcp) full: bool,
    /// What the window counts: bytes, or segments of so many.
    pub(in crate::tcp) unit: u64,
    /// Payload of a full segment.
    pub(in crate::tcp) mss: u32,
    /// The window after a pause, above which it stays.
    pub(in crate::tcp) restart: Bytes,
    /// Smoothed RTT, if known.
    pub(in crate::tcp) srtt: Option<Duration>,
}

impl View {
    /// `bytes` in what the window counts.
    pub(super) fn whole(&self, bytes: Bytes) -> Bytes {
        Bytes(bytes.get() / self.unit * self.unit)
    }

    /// RFC 2861 3, and in whole segments as Linux computes it (`tcp_current_ssthresh`).
    fn three_quarters(&self) -> Bytes {
        self.whole(self.window / 2) + self.whole(self.window / 4)
    }
}

impl Usage {
    /// Reads it; see [`Connection::look_at_sender`](crate::tcp::Connection::look_at_sender).
    #[inline]
    pub(in crate::tcp) fn look_at(&self) -> u64 {
        self.max_out ^ self.window_stamp.as_nanos()
    }

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

    /// A drain ended with `out` in flight, from `una` to `nxt`; `limited`: the window was the limit.
    #[inline(always)]
    pub(in crate::tcp) fn on_drain(&mut self, una: u64, nxt: u64, out: u64, limited: bool) {
        if una >= self.usage_seq || limited || (!self.limited && out > self.max_out) {
            self.limited = limited;
            self.max_out = out;
            self.usage_seq = nxt;
        }
    }

    /// An acknowledgment that may raise the window, or the end of a reduction: a period of little use begins here at the earliest.
    #[inline(always)]
    pub(in crate::tcp) fn touch(&mut self, now: Instant) {
        self.window_stamp = now;
    }

    /// RFC 2861 at the end of a drain. True once the application was the limit for an RTO without an acknowledgment.
    #[inline(always)]
    pub(in crate::tcp) fn is_stale(
        &mut self,
        now: Instant,
        out: u64,
        limited: bool,
        rto: impl FnOnce() -> Duration,
    ) -> bool {
        if limited {
            self.used = 0;
            self.window_stamp = now;
            return false;
        }
        self.used = self.used.max(out);
        out > 0 && now.since(self.window_stamp) >= rto()
    }

    /// RFC 2861 3.2: the window and the threshold after the application was the limit for an RTO, if they change.
    pub(in crate::tcp) fn decay(&mut self, now: Instant, view: &View) -> Option<(Bytes, Bytes)> {
        let used = Bytes(self.used).max(view.restart);
        self.forget(now);
        (used < view.window).then(|| {
            let ssthresh = view.ssthresh.max(view.three_quarters());
            (view.whole((view.window + used) / 2), ssthresh)
        })
    }

    /// The window and the threshold after `idle` without sending, longer than the timeout `rto`, if they change.
    pub(in crate::tcp) fn after_idle(
        &mut self,
        now: Instant,
        kind: WindowValidation,
        idle: Duration,
        rto: Duration,
        view: &View,
    ) -> Option<(Bytes, Bytes)> {
        let restart = view.restart.min(view.window);
        let set = match kind {
            // RFC 7661 4.4: nothing is taken for a pause.
            WindowValidation::None
            | WindowValidation::NewCwv
            | WindowValidation::NewCwvUnpaced
            | WindowValidation::NewCwvProbing => return None,
            WindowValidation::Rfc5681 => (restart, view.ssthresh), // RFC 5681 4.1
            WindowValidation::Rfc2861 => {
                // RFC 2861 3: halve once per RTO, remember three quarters.
                let mut left = idle;
                let mut halved = view.window;
                while left > rto && halved > restart {
                    halved = view.whole(halved / 2);
                    left -= rto;
                }
                (halved.max(restart), view.ssthresh.max(view.three_quarters()))
            }
        };
        self.forget(now);
        Some(set)
    }

    /// What was used counts anew.
    fn forget(&mut self, now: Instant) {
        self.window_stamp = now;
        self.used = 0;
    }

    /// Whether an acknowledgment may let a window that is validated grow.
    #[inline(always)]
    pub(in crate::tcp) fn may_grow(&self, growth: WindowGrowth, cc: &Controller) -> bool {
        match growth {
            WindowGrowth::Always => true,
            WindowGrowth::CwndLimited => self.limited,
            WindowGrowth::Linux => {
                let window = cc.window();
                self.limited || window < cc.ssthresh() && window.get() < 2 * self.max_out
            }
        }
    }
}
