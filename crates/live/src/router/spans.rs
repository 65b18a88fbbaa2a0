//! Times that frames took, in classes: what can be counted for every frame at next to no cost.

use fleetfoot_core::time::Duration;

/// Times that something took, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// How many were below 1, 2, 4.. microseconds and not below the one before; the last has all others.
    pub classes: [u64; SPANS],
    /// Their sum, nanoseconds.
    pub sum_ns: u64,
    /// The longest, nanoseconds.
    pub longest_ns: u64,
    /// How many were longer than [`LATE`].
    pub late: u64,
}

/// Classes of times: the last but one ends at 2^22 us, four seconds.
pub const SPANS: usize = 24;
/// What is later than this is late.
pub const LATE: Duration = Duration::from_millis(1);

impl Spans {
    #[inline]
    pub(super) fn record(&mut self, span: Duration) {
        let nanos = span.as_nanos();
        let class = (u64::BITS - (nanos / 1000).leading_zeros()) as usize;
        self.classes[class.min(SPANS - 1)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(nanos);
        self.longest_ns = self.longest_ns.max(nanos);
        self.late += u64::from(span > LATE);
    }

    /// How many there are.
    pub fn n(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// Their mean, seconds; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        let n = self.n();
        (n > 0).then(|| self.sum_ns as f64 / n as f64 / 1e9)
    }

    /// The share of those longer than [`LATE`]; `None` without any.
    pub fn late_share(&self) -> Option<f64> {
        let n = self.n();
        (n > 0).then(|| self.late as f64 / n as f64)
    }

    /// The end of each class, seconds, and how many are in it; the last has no end.
    pub fn histogram(&self) -> impl Iterator<Item = (f64, u64)> {
        self.classes.iter().enumerate().map(|(class, &count)| {
            let end = match class {
                _ if class + 1 == SPANS => f64::INFINITY,
                _ => (1_u64 << class) as f64 / 1e6,
            };
            (end, count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{LATE, SPANS, Spans};
    use fleetfoot_core::time::Duration;

    #[test]
    fn each_time_is_in_one_class_and_counts_once() {
        let mut spans = Spans::default();
        assert_eq!((spans.mean(), spans.late_share()), (None, None));
        let nanos = [0, 999, 1000, 1999, 2000, 1_000_000, 1_000_001, u64::MAX / 2];
        for nanos in nanos {
            spans.record(Duration::from_nanos(nanos));
        }
        assert_eq!(spans.n(), 8);
        assert_eq!(spans.classes[..3], [2, 2, 1]);
        assert_eq!(spans.classes[10], 2, "a millisecond is below 2^10 us");
        assert_eq!(spans.classes[SPANS - 1], 1);
        assert_eq!((spans.late, spans.longest_ns), (2, u64::MAX / 2));
        assert_eq!(spans.late_share(), Some(0.25));
        let ends: Vec<f64> = spans.histogram().map(|(end, _)| end).collect();
        assert_eq!((ends[0], ends[10]), (1e-6, 1024e-6));
        assert!(ends[SPANS - 1].is_infinite());
        spans = Spans::default();
        spans.record(LATE);
        assert_eq!((spans.late, spans.mean()), (0, Some(1e-3)));
    }
}
