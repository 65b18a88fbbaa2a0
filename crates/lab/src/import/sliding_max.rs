//! The largest value of the last seconds.

/// The largest value that was noted in the last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlidingMax {
    /// Largest values of the current span of time and of the previous one.
    most: [Option<u64>; 2],
    /// When the current span began.
    since_ns: u64,
}

impl SlidingMax {
    pub(super) fn note(&mut self, now_ns: u64, value: Option<u64>) {
        self.pass(now_ns);
        self.most[0] = self.most[0].max(value);
    }

    /// `None`: nothing known was noted.
    pub(super) fn most(&mut self, now_ns: u64) -> Option<u64> {
        self.pass(now_ns);
        self.most[0].max(self.most[1])
    }

    fn pass(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.since_ns) / SPAN_NS;
        if passed > 0 {
            self.most = [None, self.most[0].filter(|_| passed == 1)];
            self.since_ns += passed * SPAN_NS;
        }
    }
}

/// Windows are looked at within a second and a half after their first packet came.
const SPAN_NS: u64 = 2_000_000_000;

#[cfg(test)]
mod tests {
    use super::SlidingMax;

    #[test]
    fn values_are_forgotten_after_two_to_four_seconds() {
        let mut recent = SlidingMax::default();
        assert_eq!(recent.most(0), None);
        recent.note(1_000_000_000, Some(7));
        recent.note(1_500_000_000, Some(5));
        recent.note(1_600_000_000, None);
        assert_eq!(recent.most(3_900_000_000), Some(7));
        recent.note(3_950_000_000, Some(1));
        assert_eq!(recent.most(4_100_000_000), Some(1));
        assert_eq!(recent.most(9_000_000_000), None);
    }
}
