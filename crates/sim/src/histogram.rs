//! Histograms of per-packet values with three significant digits; number, sum, smallest and largest are exact.
//!
//! A histogram that saw only zeros, which links that never queue are full of, owns no memory. The table has sixteen bits for each class,
//! since thousands of links have one; what is beyond them stands beside it. One to which nothing is added any more
//! can be packed: it then holds only the classes that have counts.

use serde::{Deserialize, Serialize};

/// Values with three significant digits, in nanoseconds or packets as the name beside it says.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "Counts", into = "Counts")]
pub struct Histogram {
    sum: u128,
    /// Counts by class, as far as they are not in `apart`; empty when packed.
    table: Vec<u16>,
    /// Classes with counts that are not in the table, ascending: when packed all, else what the table had no room for.
    apart: Vec<(u32, u64)>,
    /// Zeros that are not in the table: all that came before another value.
    zeros: u64,
    max: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Counts one value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.sum += u128::from(value);
        if value > self.max {
            self.max = value;
        }
        let class = class_of(value);
        let Some(counter) = self.table.get_mut(class) else {
            return self.add_to(class, 1);
        };
        *counter = counter.wrapping_add(1);
        if *counter == 0 {
            self.set_apart(class, 1 << u16::BITS);
        }
    }

    /// Counts `count` zeros.
    pub fn record_zeros(&mut self, count: u64) {
        self.zeros += count;
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        self.zeros += other.zeros();
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        for (class, count) in other.classes() {
            self.add_to(class, count);
        }
    }

    /// Keeps only the classes that have counts. Adding a value later takes a table again.
    pub fn pack(&mut self) {
        if self.table.is_empty() {
            return;
        }
        let packed = self.classes().map(|(class, count)| (class as u32, count));
        let mut packed: Vec<_> = packed.collect();
        packed.shrink_to_fit();
        self.zeros = self.zeros();
        self.apart = packed;
        self.table = Vec::new();
    }

    /// Values that are not zero.
    pub fn non_zeros(&self) -> u64 {
        let table = self.table.iter().skip(1).map(|&count| u64::from(count));
        let apart = self.apart.iter().map(|&(_, count)| count);
        table.sum::<u64>() + apart.sum::<u64>()
    }

    /// Values that are zero.
    fn zeros(&self) -> u64 {
        self.zeros + self.table.first().map_or(0, |&count| u64::from(count))
    }

    /// Values counted.
    pub fn n(&self) -> u64 {
        self.zeros() + self.non_zeros()
    }

    /// Exact sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Exact mean, `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let n = self.n();
        (n > 0).then(|| self.sum as f64 / n as f64)
    }

    /// Largest value, exact; 0 without values.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The smallest counted value (to three digits) that at least the share `quantile` of the values does not exceed.
    /// `None` without values.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let n = self.n();
        if n == 0 {
            return None;
        }
        let wanted = (libm::ceil(quantile.clamp(0.0, 1.0) * n as f64) as u64).clamp(1, n);
        let mut seen = self.zeros();
        if wanted <= seen {
            return Some(0);
        }
        for (value, count) in self.recorded() {
            seen += count;
            if wanted <= seen {
                return Some(value.min(self.max));
            }
        }
        Some(self.max)
    }

    /// What was counted: the largest value of each class (three digits) and how often it came, ascending.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let zeros = Some((0, self.zeros())).filter(|&(_, count)| count > 0);
        zeros.into_iter().chain(self.recorded()).collect()
    }

    /// Values of any class.
    #[cold]
    #[inline(never)]
    fn add_to(&mut self, class: usize, count: u64) {
        if class == 0 {
            return self.set_apart(class, count);
        }
        if class >= self.table.len() {
            // To the end of the octave: a few allocations in a histogram's life.
            self.table.resize((class / HALF as usize + 1) * HALF as usize, 0);
        }
        let counter = &mut self.table[class];
        let sum = u64::from(*counter) + count;
        if let Ok(sum) = u16::try_from(sum) {
            *counter = sum;
            return;
        }
        *counter = 0;
        self.set_apart(class, sum);
    }

    /// Values of a class that go into no table.
    #[cold]
    #[inline(never)]
    fn set_apart(&mut self, class: usize, count: u64) {
        if class == 0 {
            self.zeros += count;
            return;
        }
        let class = class as u32;
        match self.apart.binary_search_by_key(&class, |&(class, _)| class) {
            Ok(place) => self.apart[place].1 += count,
            Err(place) => self.apart.insert(place, (class, count)),
        }
    }

    /// Classes beyond zero that have counts: largest value and count, ascending.
    fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.classes().map(|(class, count)| (last_of(class), count))
    }

    /// Classes beyond zero that have counts, ascending.
    fn classes(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let mut apart = self
            .apart
            .iter()
            .map(|&(class, count)| (class as usize, count))
            .peekable();
        let mut table = filled(&self.table).peekable();
        std::iter::from_fn(move || {
            let Some(&(class, _)) = table.peek() else {
                return apart.next();
            };
            if let Some(before) = apart.next_if(|&(other, _)| other < class) {
                return Some(before);
            }
            let more = apart
                .next_if(|&(other, _)| other == class)
                .map_or(0, |(_, count)| count);
            table.next().map(|(class, count)| (class, count + more))
        })
    }
}

/// Classes of a table beyond zero that have counts, ascending. Most have none, so they are passed over by groups.
fn filled(table: &[u16]) -> impl Iterator<Item = (usize, u64)> + '_ {
    let groups = table.chunks(GROUP).enumerate();
    let groups = groups.filter(|(_, counts)| counts.iter().fold(0, |any, count| any | count) > 0);
    let each = groups.flat_map(|(group, counts)| {
        let classes = GROUP * group..;
        classes.zip(counts.iter().map(|&count| u64::from(count)))
    });
    each.filter(|&(class, count)| class > 0 && count > 0)
}

/// A histogram as it is stored: its [`Histogram::counts`], exact sum and largest value.
#[derive(Serialize, Deserialize)]
struct Counts {
    counts: Vec<(u64, u64)>,
    sum: u128,
    max: u64,
}

impl From<Histogram> for Counts {
    fn from(histogram: Histogram) -> Counts {
        Counts {
            counts: histogram.counts(),
            sum: histogram.sum,
            max: histogram.max,
        }
    }
}

impl From<Counts> for Histogram {
    fn from(Counts { counts, sum, max }: Counts) -> Histogram {
        let mut counts = counts.as_slice();
        let mut zeros = 0;
        if let [(0, count), rest @ ..] = counts {
            (zeros, counts) = (*count, rest);
        }
        let class = |&(value, count): &(u64, u64)| (class_of(value) as u32, count);
        Histogram {
            sum,
            table: Vec::new(),
            apart: counts.iter().map(class).collect(),
            zeros,
            max,
        }
    }
}

/// Classes per octave. Values below twice as many have a class each; above, a class is at most a thousandth wide.
const HALF: u64 = 1024;

/// Classes that are looked at together.
const GROUP: usize = 32;

/// The class of a value.
#[inline(always)]
fn class_of(value: u64) -> usize {
    if value < 2 * HALF {
        return value as usize;
    }
    // Bits beyond the eleven that count.
    let shift = u64::from(value.ilog2()) - 10;
    (shift * HALF + (value >> shift)) as usize
}

/// The largest value of a class.
fn last_of(class: usize) -> u64 {
    let shift = (class as u64 / HALF).saturating_sub(1);
    let first = class as u64 - shift * HALF;
    (first << shift) + ((1 << shift) - 1)
}

impl std::fmt::Debug for Histogram {
    /// In short.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "n {} sum {} max {}", self.n(), self.sum, self.max)?;
        for quantile in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999] {
            write!(f, " q{quantile} {}", self.quantile(quantile).unwrap_or(0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Histogram};
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
        assert!(zeros.table.is_empty());
        assert_eq!(
            (zeros.n(), zeros.mean(), zeros.quantile(1.0)),
            (1000, Some(0.0), Some(0))
        );
    }

    #[test]
    fn a_class_has_room_for_more_than_its_place_in_the_table() {
        let mut histogram = Histogram::new();
        for turn in 0..200_000_u64 {
            histogram.record(7 * (turn & 1));
        }
        let other = histogram.clone();
        histogram.merge(&other);
        histogram.record(3);
        let counts = [(0, 200_000), (3, 1), (7, 200_000)];
        assert_eq!(histogram.counts(), counts);
        assert_eq!((histogram.n(), histogram.quantile(0.9)), (400_001, Some(7)));
        histogram.pack();
        histogram.record(7);
        assert_eq!(histogram.counts(), [counts[0], counts[1], (7, 200_001)]);
    }

    proptest! {
        #[test]
        fn agrees_with_sorted_samples(values in vec((any::<u64>(), 0_u32..64, 1_usize..4), 1..200), split in any::<proptest::sample::Index>(), pack in any::<(bool, bool, bool)>()) {
            let values: Vec<u64> = values.iter().flat_map(|&(bits, shift, repeat)| vec![bits >> shift.max(20); repeat]).collect();
            let (mut first, mut second) = (Histogram::new(), Histogram::new());
            let split = split.index(values.len());
            values[..split].iter().for_each(|&value| first.record(value));
            values[split..].iter().for_each(|&value| second.record(value));
            if pack.0 {
                second.pack();
            }
            if pack.1 {
                first.pack();
            }
            first.merge(&second);
            if pack.2 {
                let before = first.counts();
                first.pack();
                prop_assert!(first.table.is_empty());
                prop_assert_eq!(first.counts(), before);
            }
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
        let copy = Histogram::from(Counts::from(histogram.clone()));
        assert_eq!(copy.counts(), histogram.counts());
        assert_eq!(
            (copy.n(), copy.sum(), copy.max()),
            (9, histogram.sum(), 123_456_789)
        );
        assert_eq!(copy.quantile(0.5), histogram.quantile(0.5));
    }
}
