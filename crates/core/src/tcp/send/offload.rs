//! Groups for segmentation offload: how many segments a device is given as one, of which the last carries PSH.
//!
//! **Source.** Linux 6.18 `tcp_write_xmit`, `tcp_tso_autosize`.
//! **Deviations.** None known.

use crate::tcp::Shared;
use crate::tcp::send::half::Sender;
use crate::time::Instant;

impl Sender {
    /// Whether the new segment about to leave is the last of several that a device is given as one (Linux
    /// `tcp_write_xmit`): at most half the window, what the window has room for, and a millisecond's worth.
    /// `QUIET`: [`Sender::is_calm`].
    #[inline(always)]
    pub(in crate::tcp) fn group_ends<const QUIET: bool>(
        &mut self,
        now: Instant,
        shared: &Shared,
        least: u8,
    ) -> bool {
        if self.group_left == 0 || self.last_send != now {
            self.group_left = self.group_length::<QUIET>(shared, least);
            if self.group_left < 2 {
                self.group_left = 0;
                return false;
            }
        }
        self.group_left -= 1;
        self.group_left == 0
    }

    #[inline(always)]
    fn group_length<const QUIET: bool>(&self, shared: &Shared, least: u8) -> u8 {
        let mss = u64::from(shared.mss);
        let weight = self.board.weight(shared.mss).max(1);
        let (window, in_flight) = self.window_and_in_flight::<QUIET>(shared);
        let free = window.saturating_sub(in_flight);
        if free < 2 * weight {
            return 0; // mostly: what one acknowledgment made room for
        }
        let usable = shared.peer.edge().saturating_sub(self.nxt);
        // Or one of two segments, without a division: nothing below makes it less.
        let two = free < 3 * weight && least >= 2 && 2 * mss <= GROUP_BYTES;
        if two && window >= 4 * weight && self.unsent().min(usable) >= 2 * mss {
            return 2;
        }
        self.longer_group(shared, least, window, free)
    }

    #[inline(never)]
    fn longer_group(&self, shared: &Shared, least: u8, window: u64, free: u64) -> u8 {
        let mss = u64::from(shared.mss);
        let weight = self.board.weight(shared.mss).max(1);
        let usable = shared.peer.edge().saturating_sub(self.nxt);
        let room = free / weight;
        // What the peer's window cuts off ends the group, if Nagle lets it.
        let free = !shared.nagle || self.small_end <= self.una;
        let cut = usable < self.unsent() && usable > mss && !usable.is_multiple_of(mss) && free;
        let full = self.unsent().min(usable) / mss + u64::from(cut);
        let half = (window / weight / 2).max(1);
        let device = (GROUP_BYTES / mss).max(1);
        let most = full.min(room).min(half);
        if most <= u64::from(least).min(device) {
            return most as u8; // the rate cannot make it less
        }
        let worth = match shared.rtt.srtt() {
            None => device,
            Some(srtt) => {
                // Paced at twice the window per round trip in slow start, else at 1.2 times; 1/1024 s of that.
                let slow_start = window < self.cc.ssthresh().get() / 2;
                let percent = if slow_start { 200 } else { 120 };
                let round = srtt.as_micros().max(1);
                let paced = (window / weight * mss * percent / 100).saturating_mul(1_000_000) / round;
                let near = shared.rtt.min().map_or(17, |min| min.as_micros() >> 9);
                // A near peer gets longer ones (`tcp_tso_rtt_log`).
                let bytes = paced / 1024 + if near < 17 { GROUP_BYTES >> near } else { 0 };
                (bytes / mss).max(u64::from(least)).min(device)
            }
        };
        most.min(worth).min(255) as u8
    }
}

/// Most bytes of a group for offload (Linux `GSO_LEGACY_MAX_SIZE`).
const GROUP_BYTES: u64 = 65_536;
