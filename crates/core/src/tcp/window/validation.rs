//! Window validation: what an idle or application-limited period does to the window, and whether it may grow.
//!
//! New-CWV (RFC 7661) is in `newcwv`.
//!
//! **Source.** RFC 5681 4.1 and RFC 2861 for idle time; application-limited decay and the meaning of "window-limited" as in
//! Linux (`tcp_cwnd_validate`).
//! **Deviations.** None known.

use crate::tcp::Shared;
use crate::tcp::config::{Growth, WindowValidation};
use crate::tcp::send::half::Sender;
use crate::tcp::state::types::CaState;
use crate::time::Instant;
use crate::units::Bytes;

impl Sender {
    /// The first new data after nothing was out: what idle time does to the window.
    pub(in crate::tcp) fn after_idle(&mut self, now: Instant, shared: &Shared) {
        let idle = now.since(self.last_send);
        let rto = shared.rtt.base();
        if idle <= rto || shared.stats.segments_sent == 0 {
            return;
        }
        self.cc.on_idle(now, idle);
        let (window, ssthresh) = (self.cc.window(), self.cc.ssthresh());
        let restart = Bytes(shared.initial_window()).min(window);
        match shared.config.window_validation {
            WindowValidation::None => return,
            WindowValidation::NewCwv | WindowValidation::NewCwvUnpaced | WindowValidation::NewCwvProbing => {
                self.restart_validation(now, shared); // RFC 7661 4.4: nothing is taken for a pause
                return;
            }
            WindowValidation::Rfc5681 => self.cc.set_window(now, restart, ssthresh), // RFC 5681 4.1
            WindowValidation::Rfc2861 => {
                // RFC 2861 3: halve once per RTO, remember three quarters.
                let mut left = idle;
                let mut halved = window;
                while left > rto && halved > restart {
                    halved = self.whole(halved / 2);
                    left -= rto;
                }
                let ssthresh = ssthresh.max(self.three_quarters(window));
                self.cc.set_window(now, halved.max(restart), ssthresh);
            }
        }
        self.usage.window_stamp = now;
        self.usage.used = 0;
    }

    /// After a drain: was the window the limit?
    #[inline(always)]
    pub(in crate::tcp) fn validate(&mut self, now: Instant, shared: &Shared, mut limited: bool) {
        let out = self.board.out;
        if self.tempo.is_some() && !limited {
            self.on_idle_drain();
        }
        if shared.config.growth == Growth::Linux {
            // tcp_write_xmit: a window that is full was the limit, also if nothing more is to be sent; and a drain that sends
            // nothing new teaches nothing.
            limited = limited || self.in_flight(shared) >= self.window(shared);
            if !limited && self.last_send != now {
                return;
            }
        }
        if self.una >= self.usage.usage_seq || limited || (!self.usage.limited && out > self.usage.max_out) {
            self.usage.limited = limited;
            self.usage.max_out = out;
            self.usage.usage_seq = self.nxt;
        }
        if shared.config.window_validation != WindowValidation::Rfc2861 {
            return;
        }
        if limited {
            self.usage.used = 0;
            self.usage.window_stamp = now;
            return;
        }
        self.usage.used = self.usage.used.max(out);
        if self.recovery.state() == CaState::Open
            && out > 0
            && now.since(self.usage.window_stamp) >= shared.rtt.base()
        {
            // RFC 2861 3.2: application-limited for an RTO.
            let window = self.cc.window();
            let used = Bytes(self.usage.used.max(shared.initial_window()));
            if used < window {
                let ssthresh = self.cc.ssthresh().max(self.three_quarters(window));
                self.cc.set_window(now, self.whole((window + used) / 2), ssthresh);
            }
            self.usage.window_stamp = now;
            self.usage.used = 0;
        }
    }

    /// `bytes` in what the window counts.
    pub(in crate::tcp) fn whole(&self, bytes: Bytes) -> Bytes {
        let unit = self.board.weight(1);
        Bytes(bytes.get() / unit * unit)
    }

    /// RFC 2861 3, and in whole segments as Linux computes it (`tcp_current_ssthresh`).
    fn three_quarters(&self, window: Bytes) -> Bytes {
        self.whole(window / 2) + self.whole(window / 4)
    }

    /// Whether an acknowledgment may let the window grow.
    #[inline(always)]
    pub(in crate::tcp) fn may_grow(&self, shared: &Shared) -> bool {
        if self.tempo.is_some() && self.is_nonvalidated() {
            return self.usage.limited; // RFC 7661 4.3
        }
        match shared.config.growth {
            Growth::Always => true,
            Growth::CwndLimited => self.usage.limited,
            Growth::Linux => {
                let window = self.cc.window();
                self.usage.limited || window < self.cc.ssthresh() && window.get() < 2 * self.usage.max_out
            }
        }
    }
}
