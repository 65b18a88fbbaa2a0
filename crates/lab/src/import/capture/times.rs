//! The clock of a capture: times since its first packet, and what of them cannot be.
//!
//! A clock that was set while the capture ran (1970 until somebody set it), or a damaged time, makes a jump of years. No
//! time passes for it, and a note reports it, as it does a clock that goes back.

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
}

impl Times {
    /// Nanoseconds since the first packet, of a packet with this time, number and end in the file.
    pub(super) fn take(&mut self, time_ns: u64, packet: u64, end: u64) -> u64 {
        let Some((before, since)) = self.last else {
            self.last = Some((time_ns, 0));
            return 0;
        };
        if time_ns.abs_diff(before) > DAY_NS {
            self.jumps += 1;
            self.first_jump.get_or_insert((packet, end, before, time_ns));
            self.last = Some((time_ns, since));
            return since;
        }
        if time_ns.saturating_add(BACK_NS) < before {
            self.back += 1;
            self.first_back.get_or_insert((packet, before - time_ns));
        }
        if time_ns.saturating_add(APART_NS) < before {
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

    /// Whether times are too doubtful to show how fast anything came.
    pub(super) fn went_back(&self) -> bool {
        self.earlier > 0
    }

    /// What needs to be known; `span_ns`: from the first packet to the last.
    pub(super) fn notes(&self, span_ns: u64) -> Vec<Counted> {
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
        assert_eq!(times.take(5 * second, 1, 100), 0);
        assert_eq!(times.take(6 * second, 2, 200), second);
        let today = 1_790_000_000 * second;
        assert_eq!(times.take(today, 3, 300), second);
        assert_eq!(times.take(today + second, 4, 400), 2 * second);
        // One damaged time, and two seconds back.
        assert_eq!(times.take(7 * second, 5, 500), 2 * second);
        assert_eq!(times.take(today + 2 * second, 6, 600), 2 * second);
        assert_eq!(times.take(today, 7, 700), 0);
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
    fn the_last_moment_of_the_clock_is_a_time() {
        let mut times = Times::default();
        assert_eq!(times.take(u64::MAX - 10, 1, 100), 0);
        assert_eq!(times.take(u64::MAX, 2, 200), 10);
        assert_eq!(times.take(u64::MAX - 1, 3, 300), 9);
        assert!(!times.went_back(), "by less than interfaces are apart");
    }
}
