//! Histograms of per-packet values with three significant digits; number, sum, smallest and largest are exact.
//!
//! Runs of equal values, above all zeros on links that never queue, are counted without touching the table, and a
//! histogram that saw only zeros owns no memory.

/// Values with three significant digits, in nanoseconds or packets as the name beside it says.
#[derive(Clone, Default)]
pub struct Histogram {
    /// Non-zero values that are not part of the current run.
    table: Option<Box<hdrhistogram::Histogram<u64>>>,
    zeros: u64,
    /// The value recorded last, and how often it came in a row and is not in the table yet.
    run_value: u64,
    run_length: u64,
    sum: u128,
    n: u64,
    max: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.n += 1;
        if value == 0 {
            self.zeros += 1;
            return;
        }
        self.sum += u128::from(value);
        if value == self.run_value {
            self.run_length += 1;
            return;
        }
        self.flush();
        self.run_value = value;
        self.run_length = 1;
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        self.n += other.n;
        self.zeros += other.zeros;
        self.sum += other.sum;
        self.max = self.max.max(other.max()).max(self.run_value);
        if let Some(table) = &other.table {
            let own = self.table.get_or_insert_with(new_table);
            // Both resize automatically and have the same precision.
            own.add(table.as_ref())
                .expect("an automatic histogram takes every value");
        }
        if other.run_length > 0 {
            self.table
                .get_or_insert_with(new_table)
                .record_n(other.run_value, other.run_length)
                .expect("an automatic histogram takes every value");
        }
    }

    /// Values counted.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Exact sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Exact mean, `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }

    /// Largest value, exact; 0 without values.
    pub fn max(&self) -> u64 {
        self.max.max(self.run_value)
    }

    /// The smallest counted value (to three digits) that at least the share `quantile` of the values does not exceed.
    /// `None` without values.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        if self.n == 0 {
            return None;
        }
        let wanted = (libm::ceil(quantile.clamp(0.0, 1.0) * self.n as f64) as u64).clamp(1, self.n);
        let mut seen = self.zeros;
        if wanted <= seen {
            return Some(0);
        }
        let mut run = (self.run_length > 0).then_some((self.run_value, self.run_length));
        if let Some(table) = &self.table {
            for step in table.iter_recorded() {
                let value = step.value_iterated_to();
                if let Some((run_value, count)) = run
                    && run_value <= value
                {
                    seen += count;
                    run = None;
                    if wanted <= seen {
                        return Some(run_value);
                    }
                }
                seen += step.count_at_value();
                if wanted <= seen {
                    return Some(value.min(self.max()));
                }
            }
        }
        Some(self.max())
    }

    /// What was counted: the largest value of each class (three digits) and how often it came, ascending.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let mut flushed = self.clone();
        flushed.flush();
        let zeros = (self.zeros > 0).then_some((0, self.zeros));
        let rest = flushed
            .table
            .iter()
            .flat_map(|table| table.iter_recorded())
            .map(|step| (step.value_iterated_to(), step.count_at_value()));
        zeros.into_iter().chain(rest).collect()
    }

    /// A histogram with these [`Histogram::counts`], sum and largest value.
    pub fn from_counts(counts: &[(u64, u64)], sum: u128, max: u64) -> Histogram {
        let mut histogram = Histogram::new();
        for &(value, count) in counts {
            histogram.n += count;
            if value == 0 {
                histogram.zeros += count;
                continue;
            }
            histogram
                .table
                .get_or_insert_with(new_table)
                .record_n(value, count)
                .expect("an automatic histogram takes every value");
        }
        histogram.sum = sum;
        histogram.max = max;
        histogram
    }

    #[cold]
    #[inline(never)]
    fn first_flush(&mut self) {
        self.table = Some(new_table());
    }

    #[inline]
    fn flush(&mut self) {
        if self.run_length == 0 {
            return;
        }
        self.max = self.max.max(self.run_value);
        if self.table.is_none() {
            self.first_flush();
        }
        if let Some(table) = &mut self.table {
            table
                .record_n(self.run_value, self.run_length)
                .expect("an automatic histogram takes every value");
        }
    }
}

/// An empty table that grows to whatever is recorded: a few allocations in a histogram's life.
fn new_table() -> Box<hdrhistogram::Histogram<u64>> {
    Box::new(hdrhistogram::Histogram::new(3).expect("three digits are valid"))
}

impl std::fmt::Debug for Histogram {
    /// Everything that two equal histograms share, however the values were recorded.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "n {} sum {} max {}", self.n, self.sum, self.max())?;
        for quantile in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999] {
            write!(f, " q{quantile} {}", self.quantile(quantile).unwrap_or(0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn an_empty_histogram_has_no_statistics() {
        let empty = Histogram::new();
        assert_eq!(
            (empty.n(), empty.mean(), empty.quantile(0.5), empty.max()),
            (0, None, None, 0)
        );
    }

    #[test]
    fn only_zeros_take_no_table() {
        let mut zeros = Histogram::new();
        (0..1000).for_each(|_| zeros.record(0));
        assert!(zeros.table.is_none());
        assert_eq!(
            (zeros.n(), zeros.mean(), zeros.quantile(1.0)),
            (1000, Some(0.0), Some(0))
        );
    }

    proptest! {
        #[test]
        fn agrees_with_sorted_samples(values in vec((any::<u64>(), 0_u32..64, 1_usize..4), 1..200), split in any::<proptest::sample::Index>()) {
            let values: Vec<u64> = values.iter().flat_map(|&(bits, shift, repeat)| vec![bits >> shift.max(20); repeat]).collect();
            let (mut first, mut second) = (Histogram::new(), Histogram::new());
            let split = split.index(values.len());
            values[..split].iter().for_each(|&value| first.record(value));
            values[split..].iter().for_each(|&value| second.record(value));
            first.merge(&second);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!(first.n(), sorted.len() as u64);
            prop_assert_eq!(first.sum(), sorted.iter().map(|&value| u128::from(value)).sum::<u128>());
            prop_assert_eq!(first.max(), sorted[sorted.len() - 1]);
            for quantile in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
                let rank = (libm::ceil(quantile * sorted.len() as f64) as usize).clamp(1, sorted.len());
                let exact = sorted[rank - 1];
                let estimate = first.quantile(quantile).expect("there are values");
                prop_assert!(estimate.abs_diff(exact) <= exact / 1000 + 1, "{} against {}", estimate, exact);
            }
        }
    }

    #[test]
    fn counts_and_back_keep_everything() {
        let mut histogram = Histogram::new();
        for value in [0, 0, 5, 5, 5, 123_456_789, 7, 1_000_001, 7] {
            histogram.record(value);
        }
        let copy = Histogram::from_counts(&histogram.counts(), histogram.sum(), histogram.max());
        assert_eq!(copy.counts(), histogram.counts());
        assert_eq!(
            (copy.n(), copy.sum(), copy.max()),
            (9, histogram.sum(), 123_456_789)
        );
        assert_eq!(copy.quantile(0.5), histogram.quantile(0.5));
    }
}
