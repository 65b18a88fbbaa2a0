//! Groups for segmentation offload: how many segments a device is given as one, of which the last carries PSH, and whether a
//! sender waits until there is room for more of them.
//!
//! **Source.** Linux 6.18 `tcp_write_xmit`, `tcp_tso_autosize`, `tcp_tso_should_defer` (as of commit 295ce1eb36ae).
//! **Deviations.** What was written counts as one buffer of the kernel, which holds 64 kB at most: a buffer in the middle of
//! the queue that can be sent whole does not wait there. An acknowledgment alone does not count as sent a moment ago. A
//! sender that is paced does not wait, be it segment by segment or, at a rate of the controller's own, in quanta (in Linux always group by
//! group), nor does one that keeps writes apart.

use crate::tcp::Shared;
use crate::tcp::send::half::Sender;
use crate::tcp::send::thin::Thin;
use crate::tcp::state::lazy::Blank;
use crate::tcp::state::types::CaState;
use crate::time::{Duration, Instant};

/// When a sender surely waits for room for a longer group: where all conditions hold. They were worked out for an earlier
/// acknowledgment and change little from one to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Wait {
    /// Condition: there is room for less than this many bytes.
    room: u64,
    /// Condition: the congestion window is at least this.
    window: u64,
    /// Condition: the window that the peer offers is at least this.
    offered: u64,
    /// Condition: SRTT is at most this.
    srtt: Duration,
    /// Condition: the payload of a full segment is this, and its weight as well.
    mss: u32,
}

impl Blank for Wait {
    fn blank() -> &'static Wait {
        static BLANK: Wait = Wait {
            room: 0,
            window: 0,
            offered: 0,
            srtt: Duration::ZERO,
            mss: 0,
        };
        &BLANK
    }
}

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

    /// Whether several segments of a group are yet to leave, of which one left at this moment.
    #[inline(always)]
    pub(in crate::tcp) fn is_in_group(&self, now: Instant) -> bool {
        self.group_left >= 2 && self.last_send == now
    }

    /// How many more full segments of a group that [is under way](Sender::is_in_group) leave before its last one, none of which
    /// fills the window, while nothing is wrong.
    #[inline(never)]
    pub(in crate::tcp) fn alike(&self, shared: &Shared) -> u32 {
        let (mss, weight) = (u64::from(shared.mss), self.board.weight(shared.mss).max(1));
        let (window, in_flight) = self.window_and_in_flight::<true>(shared);
        let room = (window.saturating_sub(in_flight) / weight).saturating_sub(1);
        let waiting = self.unsent().saturating_sub(1) / mss;
        let offered = shared.peer.edge().saturating_sub(self.nxt) / mss;
        u64::from(self.group_left.saturating_sub(1))
            .min(room)
            .min(waiting)
            .min(offered) as u32
    }

    /// Whether new data waits for the next acknowledgment, which makes room for a longer group (Linux
    /// `tcp_tso_should_defer`); if so, whether the congestion window is what it waits for. `QUIET`: [`Sender::is_calm`].
    #[inline(always)]
    pub(in crate::tcp) fn deferred<const QUIET: bool>(
        &mut self,
        now: Instant,
        shared: &Shared,
    ) -> Option<bool> {
        // Not the rest of a group, nor after a pause.
        if self.last_send == now {
            if self.group_left > 0 {
                return None;
            }
        } else if now >= self.last_send + MOMENT {
            return None;
        }
        let head = self.board.ring.front()?;
        let srtt = shared.rtt.srtt().unwrap_or_default();
        if head.last_tx + srtt > now + MOMENT.min(srtt.mul_div(1, 2)) {
            return None; // the next acknowledgment is far
        }
        if QUIET && self.surely_waits(shared) {
            debug_assert_eq!(self.deferred_for::<QUIET>(shared), Some(true));
            return Some(true);
        }
        self.deferred_for::<QUIET>(shared)
    }

    /// Whether what was seen before is enough to know that it waits, while nothing is wrong.
    #[inline(always)]
    fn surely_waits(&self, shared: &Shared) -> bool {
        let (window, in_flight) = self.window_and_in_flight::<true>(shared);
        let (wait, free, edge) = (&*self.wait, window.saturating_sub(in_flight), shared.peer.edge());
        free < wait.room
            && free >= u64::from(shared.mss)
            && self.unsent() >= wait.room
            && edge.saturating_sub(self.nxt) > free
            && wait.holds(shared, window, edge.saturating_sub(self.una))
    }

    /// Looks at when it surely waits: with a window a sixteenth smaller and a round trip as much longer, and however slow start
    /// goes on.
    #[inline(never)]
    fn look_at_wait(&mut self, shared: &Shared, least: u8, window: u64, offered: u64) {
        let (mss, Some(srtt)) = (u64::from(shared.mss), shared.rtt.srtt()) else {
            return;
        };
        let stale = window - window / 4 > self.wait.window;
        if self.board.weight(shared.mss) != mss || self.wait.holds(shared, window, offered) && !stale {
            return;
        }
        let (window, offered) = (window - window / 16, offered - offered / 16);
        let srtt = srtt + srtt.mul_div(1, 16);
        let worth = self.worth_at(shared, least, window, srtt, PACED_AFTER_SLOW_START);
        let share = offered.min(window / mss * mss) / WINDOW_DIVISOR;
        *self.wait = Wait {
            room: (worth * mss).min(share).min(GROUP_BYTES),
            window,
            offered,
            srtt,
            mss: shared.mss,
        };
    }

    #[inline(never)]
    fn deferred_for<const QUIET: bool>(&mut self, shared: &Shared) -> Option<bool> {
        let least = shared.config.offload_segments?;
        let mss = u64::from(shared.mss);
        if self.unsent() <= mss
            || matches!(self.recovery.state(), CaState::Recovery | CaState::Loss)
            || self.is_spaced(shared)
            || self.thin.as_deref().is_some_and(Thin::keeps_writes_apart)
        {
            return None;
        }
        let weight = self.board.weight(shared.mss).max(1);
        let (window, in_flight) = self.window_and_in_flight::<QUIET>(shared);
        let room = window.saturating_sub(in_flight) / weight * mss;
        let (edge, offered) = (shared.peer.edge(), shared.peer.edge().saturating_sub(self.una));
        let usable = edge.saturating_sub(self.nxt);
        let limit = room.min(usable);
        let share = offered.min(window / weight * mss) / WINDOW_DIVISOR;
        if room == 0 || usable < mss || limit >= share || limit >= self.worth(shared, least, window) * mss {
            return None;
        }
        if QUIET {
            self.look_at_wait(shared, least, window, offered);
        }
        let buffer = self.unsent().min(GROUP_BYTES);
        if room.min(usable) <= buffer {
            return Some(room < usable);
        }
        // What will not get longer leaves: the FIN follows.
        (!(self.fin_waits() && self.unsent() == buffer)).then_some(false)
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
        most.min(self.worth(shared, least, window)).min(255) as u8
    }

    /// How many segments a group is to have: a millisecond's worth (Linux `tcp_tso_autosize`).
    pub(super) fn worth(&self, shared: &Shared, least: u8, window: u64) -> u64 {
        let Some(srtt) = shared.rtt.srtt() else {
            return (GROUP_BYTES / u64::from(shared.mss)).max(1);
        };
        self.worth_at(shared, least, window, srtt, self.pacing_percent(window))
    }

    /// Hundredths of the window per round trip at which Linux paces: twice as fast in slow start.
    pub(super) fn pacing_percent(&self, window: u64) -> u64 {
        let slow_start = window < self.cc.ssthresh().get() / 2;
        if slow_start { 200 } else { PACED_AFTER_SLOW_START }
    }

    /// Bytes per second of that many hundredths of the window in a round trip of `srtt`.
    #[inline(always)]
    pub(super) fn paced_at(&self, shared: &Shared, window: u64, srtt: Duration, percent: u64) -> u64 {
        let weight = self.board.weight(shared.mss).max(1);
        let round = srtt.as_micros().max(1);
        (window / weight * u64::from(shared.mss) * percent / 100).saturating_mul(1_000_000) / round
    }

    /// Full segments of a group with a round trip of `srtt`, paced at `percent` hundredths of the window per round trip.
    #[inline(always)]
    fn worth_at(&self, shared: &Shared, least: u8, window: u64, srtt: Duration, percent: u64) -> u64 {
        let mss = u64::from(shared.mss);
        let device = (GROUP_BYTES / mss).max(1);
        // 1/1024 s of the pacing rate.
        let paced = self.paced_at(shared, window, srtt, percent);
        let near = shared.rtt.min().map_or(17, |min| min.as_micros() >> 9);
        // A near peer gets longer ones (`tcp_tso_rtt_log`).
        let bytes = paced / 1024 + if near < 17 { GROUP_BYTES >> near } else { 0 };
        (bytes / mss).max(u64::from(least)).min(device)
    }
}

impl Wait {
    /// Whether what it depends on has not changed too much.
    #[inline(always)]
    fn holds(&self, shared: &Shared, window: u64, offered: u64) -> bool {
        self.mss == shared.mss
            && window >= self.window
            && offered >= self.offered
            && shared.rtt.srtt().is_some_and(|srtt| srtt <= self.srtt)
    }
}

/// Hundredths of the window per round trip at which Linux paces after slow start (`tcp_pacing_ca_ratio`).
const PACED_AFTER_SLOW_START: u64 = 120;

/// Who sent nothing for so long does not wait. In Linux it must be longer: a clock that reads nanoseconds does not hit it.
const MOMENT: Duration = Duration::from_millis(1);

/// This share of the window leaves without waiting for more (Linux `tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// Most bytes of a group for offload (Linux `GSO_LEGACY_MAX_SIZE`).
pub(super) const GROUP_BYTES: u64 = 65_536;
