//! The longest super-packet announced lately: what `need = "longest"` asks of every packet (docs/design/super-packets.md#longest).

use crate::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// The longest announced in this second and in the one before.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    lengths: [u8; 2],
    /// Start of this second.
    second: Instant,
}

impl Longest {
    pub(super) const fn new() -> Longest {
        Longest {
            lengths: [0; 2],
            second: Instant::ZERO,
        }
    }

    /// A first announces `length`.
    #[inline]
    pub(super) fn announced(&mut self, now: Instant, length: u8) {
        self.pass(now);
        self.lengths[0] = self.lengths[0].max(length);
    }

    /// Packets; 1 if none was announced.
    #[inline]
    pub(super) fn length(&mut self, now: Instant) -> u8 {
        self.pass(now);
        self.lengths[0].max(self.lengths[1]).max(1)
    }

    #[inline]
    fn pass(&mut self, now: Instant) {
        let seconds = now.since(self.second).as_nanos() / SECOND.as_nanos();
        match seconds {
            0 => return,
            1 => self.lengths = [0, self.lengths[0]],
            _ => self.lengths = [0; 2],
        }
        self.second += Duration::from_nanos(seconds * SECOND.as_nanos());
    }
}

#[cfg(test)]
mod tests {
    use super::Longest;
    use crate::time::Instant;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_length_counts_until_the_end_of_the_next_second() {
        let mut longest = Longest::new();
        assert_eq!(longest.length(at(0)), 1);
        longest.announced(at(100), 6);
        longest.announced(at(900), 4);
        assert_eq!(longest.length(at(900)), 6);
        longest.announced(at(1_500), 3);
        assert_eq!(longest.length(at(1_999)), 6, "the second before still counts");
        assert_eq!(longest.length(at(2_000)), 3);
        assert_eq!(longest.length(at(1_000)), 3, "a clock that steps back");
        assert_eq!(longest.length(at(3_000)), 1);
        longest.announced(at(3_200), 9);
        assert_eq!(longest.length(at(5_000)), 1, "two seconds at once");
    }
}
