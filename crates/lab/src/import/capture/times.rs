//! The clock of a capture: times since its first packet, and what of them cannot be.
//!
//! A clock that was set while the capture ran (1970 until somebody set it), or a damaged time, makes a jump of years. No
//! time passes for it, and a note reports it. So it is with a clock that is set back, as at a first NTP synchronisation: times go on from there, if
//! the next packets are from then too. What was sent before such a jump and answered behind it is no sample of a round-trip time.

use super::counts::counted;
use crate::import::summary::Counted;

/// What was seen of the clock.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The time of the packet before (since 1970, and since the first packet).
    last: Option<(u64, u64)>,
    jumps: u64,
    /// The first: packet, byte behind it, times.
    first_jump: Option<(u64, u64, u64, u64)>,
    back: u64,
    /// Packets earlier than one before, by more than interfaces are apart, and the most.
    earlier: u64,
    earlier_ns: u64,
    /// The first step back: packet, and by how much.
    first_back: Option<(u64, u64)>,
    /// Times that the clock was set back, and the first of them.
    set_back: u64,
    first_set_back: Option<(u64, u64)>,
    /// Packets that show a clock set back, or damaged times.
    behind: Option<Behind>,
    /// The last time before the last jump, and that for this packet.
    jumped_ns: Option<u64>,
    void_ns: Option<u64>,
    /// The first interface, and whether there are others.
    interface: Option<u32>,
    several: bool,
}

/// Packets from before the last one.
#[derive(Clone, Copy, Debug)]
struct Behind {
    /// The first of them, and by how much it is earlier.
    packet: u64,
    by_ns: u64,
    packets: u64,
    /// The last time before it, since the first packet of all.
    before_ns: u64,
    /// The time of the last of them (since 1970, and since the first packet of all).
    last: (u64, u64),
}

impl Times {
    /// Nanoseconds since the first packet, of a packet with this time, number, end in the file and interface.
    pub(super) fn take(&mut self, time_ns: u64, packet: u64, end: u64, interface: u32) -> u64 {
        self.several |= *self.interface.get_or_insert(interface) != interface;
        let Some((before, since)) = self.last else {
            self.last = Some((time_ns, 0));
            return 0;
        };
        let latest = self.behind.map_or(since, |behind| behind.last.1.max(since));
        if time_ns.abs_diff(before) > DAY_NS {
            self.forget();
            self.jumps += 1;
            self.first_jump.get_or_insert((packet, end, before, time_ns));
            (self.jumped_ns, self.void_ns) = (Some(latest), Some(latest));
            self.last = Some((time_ns, latest + 1));
            return latest + 1;
        }
        let most = if self.several { BACK_NS } else { SET_NS };
        let reached = time_ns.saturating_add(APART_NS) >= before;
        if let Some(behind) = self.behind
            && !reached
            && time_ns.saturating_add(most) >= behind.last.0
        {
            return self.go_on(behind, time_ns);
        }
        self.forget();
        if time_ns.saturating_add(most) < before {
            self.behind = Some(Behind {
                packet,
                by_ns: before - time_ns,
                packets: 1,
                before_ns: latest,
                last: (time_ns, latest + 1),
            });
            self.void_ns = Some(latest);
            return latest + 1;
        }
        self.void_ns = self.jumped_ns;
        if !reached {
            self.earlier += 1;
            self.earlier_ns = self.earlier_ns.max(before - time_ns);
        }
        if time_ns < before {
            // Several interfaces, or several files one behind the other: time waits until it is reached again.
            return since.saturating_sub(before - time_ns);
        }
        let since = since.saturating_add(time_ns - before);
        self.last = Some((time_ns, since));
        since
    }

    /// Another packet from before the last one.
    fn go_on(&mut self, mut behind: Behind, time_ns: u64) -> u64 {
        let (before, since) = behind.last;
        let since = since.saturating_add_signed(time_ns.cast_signed().wrapping_sub(before.cast_signed()));
        let since = since.max(behind.before_ns + 1);
        if time_ns >= before {
            behind.last = (time_ns, since);
        }
        behind.packets += 1;
        self.void_ns = Some(behind.before_ns);
        self.behind = Some(behind);
        if behind.packets >= KEPT {
            self.set_back += 1;
            self.first_set_back.get_or_insert((behind.packet, behind.by_ns));
            self.last = Some(behind.last);
            self.jumped_ns = self.void_ns;
            self.behind = None;
        }
        since
    }

    /// The clock was not set back: times were damaged.
    fn forget(&mut self) {
        let Some(behind) = self.behind.take() else { return };
        self.earlier += behind.packets;
        self.earlier_ns = self.earlier_ns.max(behind.by_ns);
        if behind.by_ns > BACK_NS {
            self.back += behind.packets;
            self.first_back.get_or_insert((behind.packet, behind.by_ns));
        }
    }

    /// What was sent no later than this is from before a jump of the clock that this packet is behind: how long it took is not known.
    pub(super) fn void_ns(&self) -> Option<u64> {
        self.void_ns
    }

    /// Whether times are too doubtful to show how fast anything came.
    pub(super) fn went_back(&self) -> bool {
        self.earlier > 0 || self.set_back > 0 || self.behind.is_some()
    }

    /// What needs to be known; `span_ns`: from the first packet to the last.
    pub(super) fn notes(&mut self, span_ns: u64) -> Vec<Counted> {
        self.forget();
        let mut notes = Vec::new();
        if let Some((packet, end, before, after)) = self.first_jump {
            notes.push(counted(
                self.jumps,
                format!(
                    "[times jump|time jumps] by more than a day, which is taken as no time at all; the first at packet {packet}, which ends at \
                     byte {end}: from the year {} to {}",
                    year(before),
                    year(after)
                ),
            ));
        }
        if self.earlier > self.back {
            notes.push(counted(
                self.earlier,
                format!(
                    "[packets are|packet is] earlier than one before, by {:.3} s at most: no lower bound of a rate is reported",
                    self.earlier_ns as f64 / 1e9
                ),
            ));
        }
        if let Some((packet, by)) = self.first_back {
            notes.push(counted(
                self.back,
                format!(
                    "[packets are|packet is] earlier than one before by more than a second; the first is packet {packet}, by {:.0} s",
                    by as f64 / 1e9
                ),
            ));
        }
        if let Some((packet, by)) = self.first_set_back {
            notes.push(counted(
                self.set_back,
                format!(
                    "time[s] the clock of the capture was set back, which is taken as no time at all; the first at packet {packet}, by {:.1} s. Round-trip \
                     times across it are left out, waits and exchanges across it lasted longer than they seem, and no lower bound of a rate is reported",
                    by as f64 / 1e9
                ),
            ));
        }
        if span_ns > DAY_NS {
            let days = span_ns as f64 / DAY_NS as f64;
            notes.push(counted(
                1,
                format!("capture of {days:.1} days: the scenario replays the first day, unless its duration is changed"),
            ));
        }
        notes
    }
}

/// The year of a time since 1970.
fn year(time_ns: u64) -> u64 {
    let days = time_ns / DAY_NS;
    // A cycle of 400 years has 146,097 days; 1970-01-01 is 719,468 days after 0000-03-01.
    let day = (days + 719_468) % 146_097;
    let of_cycle = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * of_cycle + of_cycle / 4 - of_cycle / 100);
    // Years that begin in March.
    (days + 719_468) / 146_097 * 400 + of_cycle + u64::from(day_of_year >= 306)
}

const DAY_NS: u64 = 86_400_000_000_000;
const BACK_NS: u64 = 1_000_000_000;
/// Packets of one interface are not earlier than one before by more than this unless the clock was set, those of several by more than [`BACK_NS`].
const SET_NS: u64 = 100_000_000;
/// The clock was set back if so many packets in a row are from then.
const KEPT: u64 = 3;
/// Captures of several interfaces are not in order by less than this.
const APART_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::{DAY_NS, Times, year};

    #[test]
    fn years_are_those_of_the_calendar() {
        for (days, known) in [
            (0, 1970),
            (364, 1970),
            (365, 1971),
            (19_722, 2023),
            (19_723, 2024),
            (20_454, 2026),
        ] {
            assert_eq!(year(days * DAY_NS), known, "day {days}");
        }
    }

    #[test]
    fn a_clock_that_is_set_takes_no_time() {
        let mut times = Times::default();
        let second = 1_000_000_000;
        let mut take = |time: u64, packet: u64| times.take(time, packet, 100 * packet, 0);
        assert_eq!([take(5 * second, 1), take(6 * second, 2)], [0, second]);
        let today = 1_790_000_000 * second;
        // What comes behind a jump is behind what was before.
        assert_eq!(
            [take(today, 3), take(today + second, 4)],
            [second + 1, 2 * second + 1]
        );
        // One damaged time, and one of two seconds before.
        assert_eq!(take(7 * second, 5), 2 * second + 2);
        assert_eq!(take(today + 2 * second, 6), 2 * second + 3);
        assert_eq!(take(today, 7), 2 * second + 4);
        assert_eq!(take(today + 3 * second, 8), 3 * second + 3);
        let notes = times.notes(3 * second);
        assert_eq!((notes[0].count, notes[1].count, notes.len()), (3, 1, 2));
        assert!(
            notes[0]
                .what
                .contains("packet 3, which ends at byte 300: from the year 1970 to 2026"),
            "{}",
            notes[0].what
        );
        assert!(times.notes(2 * DAY_NS)[2].what.contains("2.0 days"));
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on() {
        let second = 1_000_000_000;
        let start = 1_790_000_000 * second;
        let mut times = Times::default();
        let mut take =
            |time: u64, interface: u32| (times.take(start + time, 1, 100, interface), times.void_ns());
        assert_eq!(
            [take(0, 0), take(60 * second, 0)],
            [(0, None), (60 * second, None)]
        );
        // By 30 s, of 60 that the capture is old; then beyond all that it is old.
        let void = Some(60 * second);
        assert_eq!(take(30 * second, 0), (60 * second + 1, void));
        assert_eq!(take(31 * second, 0), (61 * second + 1, void));
        assert_eq!(take(32 * second, 0), (62 * second + 1, void));
        assert_eq!(take(70 * second, 0), (100 * second + 1, void));
        let void = Some(100 * second + 1);
        let hour = 3600 * second;
        let mut early = |time: u64| (times.take(start - hour + time, 2, 200, 0), times.void_ns());
        assert_eq!(early(0), (100 * second + 2, void));
        assert_eq!(early(second), (101 * second + 2, void));
        assert_eq!(early(9 * second), (109 * second + 2, void));
        let notes = times.notes(second);
        assert_eq!((notes[0].count, notes.len()), (2, 1));
        assert!(
            notes[0]
                .what
                .contains("times the clock of the capture was set back")
                && notes[0].what.contains("packet 1, by 30.0 s"),
            "{}",
            notes[0].what
        );
        assert!(times.went_back());
    }

    #[test]
    fn interfaces_that_are_apart_are_no_clock_that_is_set() {
        let ms = 1_000_000;
        let mut times = Times::default();
        // Packets of two interfaces come in blocks of half a second.
        for block in 0..20 {
            for number in 0..10 {
                let time = 500 * (block / 2) + 50 * number;
                let taken = times.take((1000 + time) * ms, 1, 100, (block % 2) as u32);
                assert_eq!(taken, time * ms, "block {block}");
            }
        }
        let notes = times.notes(ms);
        assert_eq!((notes.len(), times.void_ns()), (1, None));
        assert!(
            notes[0]
                .what
                .contains("earlier than one before, by 0.450 s at most"),
            "{}",
            notes[0].what
        );
    }

    #[test]
    fn the_last_moment_of_the_clock_is_a_time() {
        let mut times = Times::default();
        assert_eq!(times.take(u64::MAX - 10, 1, 100, 0), 0);
        assert_eq!(times.take(u64::MAX, 2, 200, 0), 10);
        assert_eq!(times.take(u64::MAX - 1, 3, 300, 0), 9);
        assert!(!times.went_back(), "by less than interfaces are apart");
    }
}
