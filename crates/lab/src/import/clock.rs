//! The clock of a host as the timestamps of its packets show it (RFC 7323).
//!
//! A packet says when it was sent, by its sender's clock: by how much it is later than the most punctual one is what it waited on its way, to a tick of that
//! clock. Most hosts count milliseconds, and those that do are believed. Others do not: Linux before 4.13 counts jiffies, 1000, 250 or 100 a second as it was
//! built, and it can count microseconds since 6.7. Read as milliseconds, these make every packet later than the one before.
//!
//! So nothing is said of waits before a clock seems to count milliseconds: as much time has passed by it as in the capture, more than half and less than
//! twice, over 20 ms. Over 100 ms that is proven, and known of all later connections of its host; until then it can be refuted.

/// A clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    first: Option<(u64, u32)>,
    /// Smallest difference between the two clocks in this span of time and in the one before, and when it began: clocks drift.
    least: [Option<i64>; 2],
    since_ns: u64,
    /// By how much more than the first packet the last one waited.
    difference: i64,
    rate: Rate,
}

/// What a clock counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rate {
    /// Not known yet.
    #[default]
    Unknown,
    /// As it seems, milliseconds.
    Likely,
    Milliseconds,
    Other,
}

impl Clock {
    /// Other connections of the host have shown what its clock counts.
    pub(super) fn know(&mut self, rate: Rate) {
        if self.rate == Rate::Unknown {
            self.rate = rate;
        }
    }

    /// What it counts.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether it seems to count milliseconds.
    pub(super) fn is_believed(&self) -> bool {
        matches!(self.rate, Rate::Likely | Rate::Milliseconds)
    }

    /// By how much a packet is later than the most punctual one (ns, at most a millisecond too much); `None`: the clock is not known to count
    /// milliseconds.
    pub(super) fn late(&mut self, now_ns: u64, stamp: u32) -> Option<u64> {
        let (began_ns, began) = *self.first.get_or_insert((now_ns, stamp));
        let elapsed = now_ns.saturating_sub(began_ns) as i64;
        let ticks = i64::from(stamp.wrapping_sub(began) as i32) * 1_000_000;
        let alike = (elapsed / 2..elapsed.saturating_mul(2)).contains(&ticks);
        self.rate = match self.rate {
            Rate::Unknown | Rate::Likely if alike && elapsed >= PROVEN_NS => Rate::Milliseconds,
            Rate::Unknown | Rate::Likely if elapsed >= UNKNOWN_NS => Rate::Other,
            // At the beginning of a transfer a queue grows nearly as fast as time passes: that proves nothing either way.
            Rate::Likely if elapsed >= PROVEN_NS => Rate::Unknown,
            Rate::Unknown if alike && elapsed >= LIKELY_NS => Rate::Likely,
            Rate::Milliseconds if !alike && elapsed >= CLOCK_NS => Rate::Other,
            rate => rate,
        };
        if now_ns.saturating_sub(self.since_ns) >= DRIFT_NS {
            self.since_ns = now_ns;
            self.least = [None, self.least[0]];
        }
        let difference = elapsed.saturating_sub(ticks);
        let own = self.least[0].map_or(difference, |least| least.min(difference));
        self.least[0] = Some(own);
        let least = self.least[1].map_or(own, |before| before.min(own));
        self.difference = difference;
        let late = u64::try_from(difference.saturating_sub(least)).unwrap_or(0);
        self.is_believed().then_some(late)
    }

    /// By how much more than the first packet the last one waited, if this clock counts milliseconds; `None` without timestamps.
    pub(super) fn difference(&self) -> Option<i64> {
        self.first.map(|_| self.difference)
    }
}

/// Timestamps have this precision, plus what jitter on the way adds.
pub(super) const TICK_NS: u64 = 1_000_000;
/// Ticks of three milliseconds or more are not taken for one over this time, unless the first packet waited for as long.
const LIKELY_NS: i64 = 20_000_000;
/// A clock is proven by no less time than this: less may have been waits.
const PROVEN_NS: i64 = 100_000_000;
/// How long a clock is watched before it is believed not to count milliseconds: one that was believed to, and one of which nothing is known.
const CLOCK_NS: i64 = 500_000_000;
const UNKNOWN_NS: i64 = 5_000_000_000;
/// Clocks drift by less than a millisecond in this time.
const DRIFT_NS: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::{Clock, Rate};

    #[test]
    fn timestamps_tell_how_long_a_packet_waited() {
        let mut clock = Clock::default();
        let mut late = |ms: u64, stamp: u32| clock.late(ms * 1_000_000, stamp);
        assert_eq!(late(1000, 77), None, "nothing is known of it");
        assert_eq!(late(1010, 87), None);
        assert_eq!(late(1020, 97), Some(0));
        assert_eq!(late(1500, 577), Some(0));
        // 80 ms in queues.
        assert_eq!(late(2080, 1077), Some(80_000_000));
        // Earlier than all before by 2 ms.
        assert_eq!(late(2498, 1577), Some(0));
        assert_eq!(late(2600, 1677), Some(2_000_000));
    }

    #[test]
    fn times_of_any_size_are_taken() {
        let mut clock = Clock::default();
        for now in [0, u64::MAX / 2, u64::MAX, 1, i64::MAX as u64] {
            for stamp in [0, u32::MAX, 1 << 31, 5] {
                clock.late(now, stamp);
            }
        }
    }

    #[test]
    fn a_clock_is_believed_once_it_is_proven() {
        // Packets that were sent at once and had to wait for each other prove nothing.
        let mut clock = Clock::default();
        assert_eq!(
            [0, 150_000_000, 300_000_000].map(|now| clock.late(now, 5)),
            [None; 3]
        );
        assert_eq!(clock.rate(), Rate::Unknown);
        assert_eq!(clock.late(400_000_000, 355), Some(50_000_000));
        // Ticks of 4 ms, of 10 ms and of a microsecond.
        for ticks in [250, 100, 1_000_000] {
            let mut other = Clock::default();
            for ms in (0..5100_u64).step_by(10) {
                let stamp = (ms * ticks / 1000) as u32;
                assert_eq!(
                    other.late(ms * 1_000_000, stamp),
                    None,
                    "{ticks} a second, {ms} ms"
                );
            }
            assert_eq!(other.rate(), Rate::Other, "{ticks} a second");
        }
        // The first packet waited for 28 ms, so that ticks of 4 ms look like a millisecond, but not for long.
        let mut refuted = Clock::default();
        let found = [0, 20, 99, 100, 140].map(|ms: u32| {
            refuted
                .late(u64::from(ms) * 1_000_000, if ms == 0 { 0 } else { (ms + 28) / 4 })
                .is_some()
        });
        assert_eq!(found, [false, true, true, false, false]);
        // A queue that grew by 400 ms in the first 700.
        let mut deep = Clock::default();
        assert_eq!(
            [0, 700_000_000].map(|now| deep.late(now, (now / 2_400_000) as u32)),
            [None; 2]
        );
        assert_eq!(deep.late(1_000_000_000, 600), Some(400_000_000));
        // Of the same host.
        let mut known = Clock::default();
        known.know(Rate::Milliseconds);
        assert_eq!(
            [known.late(0, 7), known.late(9_000_000, 9)],
            [Some(0), Some(7_000_000)]
        );
    }
}
