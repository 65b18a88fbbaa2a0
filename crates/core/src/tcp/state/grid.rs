//! When a timer really fires: exactly, or on the grid of a kernel's clock.
//!
//! A kernel counts ticks ("jiffies") and looks at its timers only when one passes. Since 4.8 Linux rounds the more, the
//! longer a timer runs: less than 63 jiffies to the next one, less than 504 to the next multiple of 8, less than 4032 to
//! that of 64, and so on, and never early. Before, a timer fired at the very jiffy, up to one early.
//!
//! **Source.** Linux 6.18 `kernel/time/timer.c`: `calc_index`, `calc_wheel_index` (4.8, commit 500462a9de65); Linux until 4.7
//! `internal_add_timer`, `apply_slack`. TCP's timers are jiffies (`sk_reset_timer`); pacing is not.
//! **Deviations.** The tick is that of HZ 250. The count of ticks is where the host set it
//! ([`Setting::ClockPhase`](crate::tcp::Setting)), by default at zero when the clock is, and is complete to 2^20 ticks.
//! Timers of one host that fire at the same tick keep the order of the driver; in Linux the last one armed fires first.
//! `base->clk` runs a tick ahead where a timer is set as another fires, and a timer of exactly 63, 504, ... jiffies then falls on the finer
//! grid; on a busy processor it may run ahead at other times, too. A keep-alive timer
//! runs from the last activity; Linux looks when it fires how much is left. TIME-WAIT ends exactly.

use crate::tcp::config::TimerGrid;
use crate::time::{Duration, Instant};

impl TimerGrid {
    /// When a timer set at `now` for `at` fires, on a host whose count of ticks was at `phase` when the clock was at zero.
    /// Never before the next tick. `ahead`: another timer fires now, so that the wheel is a tick ahead of the host's count.
    #[inline(always)]
    pub(in crate::tcp) fn expiry(self, phase: Duration, now: Instant, at: Instant, ahead: bool) -> Instant {
        if self == TimerGrid::Exact || at == Instant::FAR_FUTURE {
            return at;
        }
        let phase = phase.as_nanos();
        let jiffies = (now.as_nanos() + phase) / JIFFY;
        let wait = at.since(now).as_nanos().saturating_add(JIFFY - 1) / JIFFY; // a part of one counts
        let fires = if self == TimerGrid::Jiffies {
            cascading(jiffies, wait)
        } else if wait < LEVEL + u64::from(ahead) {
            jiffies + wait + 1
        } else if wait < LEVEL << 3 {
            (((jiffies + wait) >> 3) + 1) << 3 // the second level, as `levels` has it
        } else {
            levels(jiffies, wait, u64::from(ahead))
        };
        Instant::from_nanos(fires * JIFFY - phase)
    }

    /// The time from one moment to another as such a host counts it: the ticks between them.
    pub(in crate::tcp) fn between(self, phase: Duration, earlier: Instant, later: Instant) -> Duration {
        if self == TimerGrid::Exact {
            return later.since(earlier);
        }
        let ticks = |at: Instant| (at.as_nanos() + phase.as_nanos()) / JIFFY;
        Duration::from_nanos(ticks(later).saturating_sub(ticks(earlier)) * JIFFY)
    }

    /// `wait` without what is not a whole tick.
    #[inline]
    pub(in crate::tcp) fn whole(self, wait: Duration) -> Duration {
        match self {
            TimerGrid::Exact => wait,
            TimerGrid::Jiffies | TimerGrid::Wheel => Duration::from_nanos(wait.as_nanos() / JIFFY * JIFFY),
        }
    }

    /// The least that Linux adds to a timer whose time is measured (`TCP_TIMEOUT_MIN_US`); none where timers are exact.
    #[inline]
    pub(in crate::tcp) const fn least_timeout(self) -> Duration {
        match self {
            TimerGrid::Exact | TimerGrid::Jiffies => Duration::ZERO,
            TimerGrid::Wheel => Duration::from_millis(2),
        }
    }
}

/// The tick at which a timer of `wait` ticks fires in the wheel of levels, which is so many ticks ahead.
#[inline(never)]
const fn levels(jiffies: u64, wait: u64, ahead: u64) -> u64 {
    let wait = if wait < LEVEL << 24 { wait } else { LONGEST };
    let mut shift = 0;
    while wait - ahead >= LEVEL << shift {
        shift += 3;
    }
    (((jiffies + wait) >> shift) + 1) << shift
}

/// The tick at which a timer of `wait` ticks fires in the cascading wheel: a long one may be moved, by at most 1/256, to a
/// rounder number.
#[inline(never)]
const fn cascading(jiffies: u64, wait: u64) -> u64 {
    let expires = jiffies + if wait == 0 { 1 } else { wait };
    let limit = expires + if wait < 256 { 0 } else { wait / 256 };
    let differ = expires ^ limit;
    if differ == 0 {
        return expires;
    }
    limit & !((1 << differ.ilog2()) - 1)
}

/// A tick of HZ 250, nanoseconds.
const JIFFY: u64 = 4_000_000;

/// Ticks of a level; each level is eight times as coarse as the one before.
const LEVEL: u64 = 63;

/// Ticks of a timer that is longer than nine levels (`WHEEL_TIMEOUT_MAX`).
const LONGEST: u64 = (LEVEL - 1) << 24;

#[cfg(test)]
mod tests {
    use super::TimerGrid;
    use crate::rng::Rng;
    use crate::time::{Duration, Instant};

    /// Jiffies since the start at which a timer fires that is set `offset` nanoseconds into jiffy `now`.
    fn fires(grid: TimerGrid, now: u64, offset: u64, wait: Duration) -> u64 {
        // The count is at 1000 when the clock is at zero.
        let phase = Duration::from_millis(4_000);
        let now = Instant::from_nanos((now - 1_000) * 4_000_000 + offset);
        let at = grid.expiry(phase, now, now + wait, false);
        let since = at.as_nanos() + 4_000_000_000;
        assert!(since.is_multiple_of(4_000_000) && at > now);
        since / 4_000_000
    }

    #[test]
    fn time_passes_in_ticks() {
        // Ticks at 3, 7, 11 ms.
        let phase = Duration::from_millis(1);
        let between = |grid: TimerGrid, from_us, to_us| {
            let at = |us| Instant::ZERO + Duration::from_micros(us);
            grid.between(phase, at(from_us), at(to_us)).as_micros()
        };
        for (from, to, ticks) in [
            (3_100, 6_900, 0),
            (2_900, 3_100, 1),
            (2_900, 11_000, 3),
            (3_000, 10_999, 1),
        ] {
            assert_eq!(
                between(TimerGrid::Wheel, from, to),
                4_000 * ticks,
                "{from} to {to}"
            );
            assert_eq!(
                between(TimerGrid::Jiffies, from, to),
                4_000 * ticks,
                "{from} to {to}"
            );
            assert_eq!(between(TimerGrid::Exact, from, to), to - from);
        }
    }

    #[test]
    fn the_wheel_rounds_up_by_level() {
        let ms = Duration::from_millis;
        // Jiffy of arming, wait, jiffy of expiry, worked by hand from `calc_wheel_index`.
        let cases = [
            (1_000, ms(0), 1_001),
            (1_000, ms(4), 1_002),
            (1_000, ms(40), 1_011),     // delayed ACK: 40 to 44 ms
            (1_000, ms(200), 1_051),    // the least RTO: 200 to 204 ms
            (1_000, ms(201), 1_052),    // 51 jiffies
            (1_000, ms(248), 1_063),    // 62 jiffies: the last of level 0
            (1_000, ms(252), 1_064),    // 63: (1063 >> 3) + 1 = 133, * 8
            (1_001, ms(252), 1_072),    // 1064 is 133 * 8, and the next is 134 * 8
            (1_000, ms(300), 1_080),    // 75: (1075 >> 3) + 1 = 135
            (1_005, ms(300), 1_088),    // (1080 >> 3) + 1 = 136
            (1_000, ms(1_000), 1_256),  // a SYN: 250, (1250 >> 3) + 1 = 157, * 8 = 1024 ms
            (1_005, ms(1_000), 1_256),  // (1255 >> 3) + 1 = 157: 1004 ms
            (1_006, ms(1_000), 1_264),  // (1256 >> 3) + 1 = 158: 1032 ms
            (1_000, ms(2_012), 1_504),  // 503: (1503 >> 3) + 1 = 188
            (1_000, ms(2_016), 1_536),  // 504: (1504 >> 6) + 1 = 24, * 64
            (1_000, ms(16_128), 5_120), // 4032: (5032 >> 9) + 1 = 10, * 512
        ];
        for (now, wait, expected) in cases {
            for offset in [0, 1, 3_999_999] {
                assert_eq!(
                    fires(TimerGrid::Wheel, now, offset, wait),
                    expected,
                    "{now} {wait:?} {offset}"
                );
            }
        }
    }

    /// `base->clk` is at the next jiffy, so that 63 and 504 of them are on the finer level.
    #[test]
    fn a_timer_set_as_another_fires_is_on_the_finer_grid() {
        let ahead = |now: u64, ms| {
            let now = Instant::from_millis(now * 4);
            let at = TimerGrid::Wheel.expiry(Duration::ZERO, now, now + Duration::from_millis(ms), true);
            at.as_nanos() / 4_000_000
        };
        assert_eq!(
            ahead(1_001, 252),
            1_065,
            "63: not (1064 >> 3) + 1 = 134, * 8 = 1072"
        );
        assert_eq!(ahead(1_001, 256), 1_072, "64");
        assert_eq!(ahead(1_000, 2_016), 1_512, "504: not 1536");
        assert_eq!(ahead(1_000, 2_020), 1_536, "505");
    }

    #[test]
    fn sixty_lost_syns_are_sent_again_after_a_second_and_up_to_36_ms() {
        let mut late = [0; 9];
        for start in 0..36_000 {
            let now = Instant::from_micros(1_000 * start + 13 * (start % 77));
            let at = TimerGrid::Wheel.expiry(Duration::ZERO, now, now + Duration::from_secs(1), false);
            late[(at.since(now).as_micros() - 1_000_000) as usize / 4_000] += 1;
        }
        assert_eq!(late.iter().sum::<u32>(), 36_000);
        assert!(
            late[1..8].iter().all(|&count| (4_400..4_600).contains(&count)),
            "{late:?}"
        );
        assert!(late[0] + late[8] > 4_400, "{late:?}");
    }

    #[test]
    fn the_cascading_wheel_fires_at_the_jiffy() {
        let ms = Duration::from_millis;
        let cases = [
            (1_000, ms(0), 1_001),
            (1_000, ms(40), 1_010), // 36 to 40 ms
            (1_000, ms(200), 1_050),
            (1_000, ms(300), 1_075),
            (1_000, ms(1_000), 1_250),
            (1_000, ms(1_020), 1_255), // 255 jiffies: no slack
            (1_000, ms(1_024), 1_256), // 256 of slack 1: 1256 ^ 1257 = 1, nothing to clear: 1257 & !0
            (1_001, ms(3_000), 1_752), // 750, slack 2: 1751..1753, 0x6d7 ^ 0x6d9 = 0xe: 1753 & !7 = 1752
        ];
        for (now, wait, expected) in cases {
            let expected = if wait == ms(1_024) { 1_257 } else { expected };
            assert_eq!(
                fires(TimerGrid::Jiffies, now, 1, wait),
                expected,
                "{now} {wait:?}"
            );
        }
    }

    /// The kernel's `calc_wheel_index` again, level by level, to the expiry of the bucket.
    fn bucket_expiry(expires: u64, clk: u64) -> u64 {
        let delta = expires - clk;
        let start = |level: u32| 63 * 8_u64.pow(level - 1);
        for level in 0..9 {
            if delta < start(level + 1) {
                let granularity = 8_u64.pow(level);
                return (expires / granularity + 1) * granularity;
            }
        }
        let granularity = 8_u64.pow(8);
        ((clk + start(9) - granularity) / granularity + 1) * granularity
    }

    #[test]
    fn the_wheel_as_the_kernel_transcribed_naively() {
        let mut rng = Rng::from_seed(7);
        for _ in 0..100_000 {
            let jiffies = 1_000 + rng.below(1 << 30);
            let bits = rng.below(36);
            let wait = rng.below(1 << bits);
            let offset = rng.below(4_000_000);
            let wait_ns = Duration::from_nanos(wait * 4_000_000);
            assert_eq!(
                fires(TimerGrid::Wheel, jiffies, offset, wait_ns),
                bucket_expiry(jiffies + wait, jiffies),
                "{jiffies} {wait}"
            );
        }
    }

    #[test]
    fn a_later_timer_never_fires_earlier() {
        let mut rng = Rng::from_seed(8);
        for grid in TimerGrid::ALL {
            for _ in 0..10_000 {
                let phase = Duration::from_micros(rng.below(1 << 32));
                let now = Instant::from_nanos(rng.below(1 << 50));
                let [first, more] = [44, 40].map(|most| {
                    let bits = rng.below(most);
                    Duration::from_nanos(rng.below(1 << bits))
                });
                let (first, second) = (now + first, now + first + more);
                let [one, other] = [first, second].map(|at| grid.expiry(phase, now, at, false));
                assert!(one <= other, "{grid:?}");
                if grid == TimerGrid::Wheel {
                    assert!(one >= first && one > now);
                }
            }
        }
    }
}
