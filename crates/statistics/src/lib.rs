//! Statistics of the comparison: summaries with censoring, paired bootstrap over seeds, Holm's correction, Jain's index.
//!
//! A run (seed) is the unit of independence: flows of one run share queues, so intervals resample whole runs. Baseline
//! and variant of one seed see the same arrivals and sizes, so both are resampled together (paired). A run in which there was nothing to
//! measure says nothing: intervals and tests are those of as many runs as had something, not of all that were made.
//!
//! **Source.** Quantiles: Hyndman and Fan 1996, type 7 (the default of NumPy and R). Bootstrap intervals: percentile
//! intervals, expanded for few seeds as in Hesterberg 2015 ("What teachers should know about the bootstrap"), section 5. No resample of
//! fewer than five seeds lies beyond the largest and the smallest of them, which hold the truth in half of all cases with two
//! seeds and in seven of eight with four: there the interval is Student's, from the bootstrap's standard error.
//! Tests: the logarithm of the ratio over its bootstrap standard error against Student's t with seeds - 1 degrees of
//! freedom, because a count of resamples beyond one cannot show probabilities below their own resolution. Holm 1979.
//! Jain, Chiu and Hawe 1984.
//!
//! This is a crate because thousands of resamples of millions of values take time: it is compiled for speed, the laboratory for a short
//! build.

#![forbid(unsafe_code)]

mod descending;
mod interval;
mod tail;

use descending::Descending;
use fleetfoot_core::rng::Rng;
pub use interval::{are_few, interval, interval_about};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use tail::{BEYOND, level_shown, tail_level};

/// Fewer seeds than this are said to be too few.
pub const ENOUGH_SEEDS: usize = 10;

/// Resamples of a bootstrap.
pub const RESAMPLES: usize = 4000;

/// Level of all tests; intervals have 1 - this.
pub const LEVEL: f64 = 0.05;

/// Summary of a sample (S). Absent (`null`) where there is no sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Sample size.
    pub n: u64,
    /// Mean; flows that did not complete enter with their age.
    pub mean: f64,
    /// Median. Quantiles take flows that did not complete as larger than all that did.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
    /// 95 % interval of the mean, from a bootstrap over seeds; `null` with fewer than two seeds that have a sample.
    pub ci95: Option<[f64; 2]>,
    /// Further quantiles by level: `"0.999"`.
    pub quantiles: BTreeMap<String, f64>,
}

/// Observations of one group in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Values of flows that completed.
    pub completed: Vec<f64>,
    /// Ages at the end of the run of those that did not.
    pub censored: Vec<f64>,
}

impl Sample {
    /// A sample without censored members.
    pub fn of(values: Vec<f64>) -> Sample {
        Sample {
            completed: values,
            censored: Vec::new(),
        }
    }

    /// Number of members, censored ones included.
    pub fn len(&self) -> usize {
        self.completed.len() + self.censored.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum; censored members enter with their age.
    pub fn sum(&self) -> f64 {
        self.completed.iter().sum::<f64>() + self.censored.iter().sum::<f64>()
    }
}

/// How often each of `seeds` runs stands in each resample: drawn once, shared by all statistics of a table, so that
/// they are paired with each other too.
#[derive(Clone, Debug)]
pub struct Resamples {
    seeds: usize,
    weights: Vec<u16>,
}

/// An estimated ratio with its interval and the probability of a deviation from one as large by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The ratio.
    pub value: f64,
    /// 95 % interval; `None` with fewer than two seeds that have something of both.
    pub ci95: Option<[f64; 2]>,
    /// Two-sided probability under "the ratio is one"; 1 with fewer than two such seeds, or where all gave the same.
    pub p: f64,
}

/// A ratio on a logarithmic scale: the estimate, and the same in every resample.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRatio {
    /// Logarithm of the ratio of the pooled samples.
    pub estimate: f64,
    /// Logarithm of the ratio in each resample; not a number where there is none.
    pub resampled: Vec<f64>,
    /// Runs that have something of both sides: as many are independent.
    pub runs: usize,
}

impl Resamples {
    /// `count` resamples of `seeds` runs, from a random stream of their own.
    pub fn new(seed: u64, seeds: usize, count: usize) -> Resamples {
        let mut rng = Rng::for_element(seed, "statistics", "bootstrap");
        let mut weights = vec![0u16; seeds * count];
        if seeds > 0 {
            for row in weights.chunks_exact_mut(seeds) {
                for _ in 0..seeds {
                    row[rng.below(seeds as u64) as usize] += 1;
                }
            }
        }
        Resamples { seeds, weights }
    }

    /// No resamples of `seeds` runs: estimates only.
    pub fn none(seeds: usize) -> Resamples {
        Resamples {
            seeds,
            weights: Vec::new(),
        }
    }

    /// Number of runs that are resampled.
    pub fn seeds(&self) -> usize {
        self.seeds
    }

    /// The resamples: how often each run stands in it.
    pub fn rows(&self) -> impl Iterator<Item = &[u16]> {
        self.weights.chunks_exact(self.seeds.max(1))
    }

    /// 95 % interval of a pooled mean, from sum and count of every run; on a logarithmic scale where all are above zero.
    pub fn mean_interval(&self, runs: &[(f64, f64)]) -> Option<[f64; 2]> {
        debug_assert_eq!(runs.len(), self.seeds, "one pair for each run");
        let mean = |row: &[u16]| {
            let (sum, n) = weighted(row, runs);
            (n > 0.0).then(|| sum / n)
        };
        let means: Vec<f64> = self.rows().filter_map(mean).collect();
        let contributing = runs.iter().filter(|run| run.1 > 0.0).count();
        if !are_few(contributing) {
            return interval(means, contributing);
        }
        let estimate = mean(&vec![1; self.seeds])?;
        if estimate > 0.0 && means.iter().all(|&mean| mean > 0.0) {
            let logs = means.into_iter().map(libm::log).collect();
            let [low, high] = interval_about(libm::log(estimate), logs, contributing)?;
            return Some([libm::exp(low), libm::exp(high)]);
        }
        interval_about(estimate, means, contributing)
    }

    /// Ratio of two pooled means, from sum and count of every run of both. `None` if one of them is not positive.
    ///
    /// A resample in which the variant has nothing of what the baseline has is a ratio of zero, whose logarithm is minus infinity; one in which
    /// the baseline has nothing is no number.
    pub fn mean_ratio(&self, variant: &[(f64, f64)], baseline: &[(f64, f64)]) -> Option<LogRatio> {
        let ratio = |above: (f64, f64), below: (f64, f64)| {
            let (above, below) = (above.0 / above.1, below.0 / below.1);
            match above >= 0.0 && below > 0.0 {
                true => libm::log(above / below),
                false => f64::NAN,
            }
        };
        let ones = vec![1u16; self.seeds];
        let estimate = ratio(weighted(&ones, variant), weighted(&ones, baseline));
        let pairs = variant.iter().zip(baseline);
        let something = |(above, below): &(&(f64, f64), &(f64, f64))| {
            above.1 > 0.0 && below.1 > 0.0 && above.0 + below.0 > 0.0
        };
        let runs = pairs.filter(something).count();
        estimate.is_finite().then(|| LogRatio {
            estimate,
            runs,
            resampled: self
                .rows()
                .map(|row| ratio(weighted(row, variant), weighted(row, baseline)))
                .collect(),
        })
    }

    /// Ratio of two pooled quantiles. `None` if one of them is not positive or has no sample.
    pub fn quantile_ratio(&self, variant: &[Sample], baseline: &[Sample], level: f64) -> Option<LogRatio> {
        let mut above = Descending::new(variant);
        let mut below = Descending::new(baseline);
        let mut ratio = |row: &[u16]| {
            let (above, below) = (above.quantile(row, level)?, below.quantile(row, level)?);
            (above > 0.0 && below > 0.0).then(|| libm::log(above / below))
        };
        let estimate = ratio(&vec![1u16; self.seeds])?;
        let pairs = variant.iter().zip(baseline);
        let runs = pairs
            .filter(|(above, below)| !above.is_empty() && !below.is_empty())
            .count();
        Some(LogRatio {
            estimate,
            runs,
            resampled: self.rows().map(|row| ratio(row).unwrap_or(f64::NAN)).collect(),
        })
    }

    /// A pooled quantile of the runs as they are, and of each resample; not a number without samples.
    pub fn quantiles(&self, runs: &[Sample], level: f64) -> (f64, Vec<f64>) {
        let mut members = Descending::new(runs);
        let mut of = |row: &[u16]| members.quantile(row, level).unwrap_or(f64::NAN);
        let estimate = of(&vec![1; self.seeds]);
        (estimate, self.rows().map(of).collect())
    }

    /// Quantiles of counted values, by nearest rank, and those of each resample.
    pub fn counted_quantiles(&self, runs: &[Counted], level: f64) -> (f64, Vec<f64>) {
        let mut members: Vec<(u64, usize, u64)> = runs
            .iter()
            .enumerate()
            .flat_map(|(run, counted)| {
                let values = counted.counts.iter();
                values.map(move |&(value, count)| (value.min(counted.max), run, count))
            })
            .collect();
        // Stable, which merges what is in order already: the values of each run.
        members.sort();
        let totals: Vec<u64> = runs
            .iter()
            .map(|counted| counted.counts.iter().map(|pair| pair.1).sum())
            .collect();
        let of = |row: &[u16]| {
            let total: u64 = row
                .iter()
                .zip(&totals)
                .map(|(&weight, &n)| u64::from(weight) * n)
                .sum();
            let rank = libm::ceil(level * total as f64).max(1.0) as u64;
            let mut seen = 0;
            for &(value, run, count) in &members {
                seen += u64::from(row[run]) * count;
                if seen >= rank {
                    return value as f64;
                }
            }
            f64::NAN
        };
        (of(&vec![1; self.seeds]), self.rows().map(of).collect())
    }
}

impl LogRatio {
    /// Ratio, interval and test.
    pub fn estimate(&self) -> Estimate {
        Estimate {
            value: libm::exp(self.estimate),
            ci95: interval_about(self.estimate, self.resampled.clone(), self.runs)
                .map(|[low, high]| [libm::exp(low), libm::exp(high)]),
            p: self.probability(),
        }
    }

    /// Two-sided probability of a deviation from a ratio of one as large as this by chance; 1 where every seed gave the same, for
    /// that says nothing about chance: runs that draw nothing are one run. Resamples with a ratio of zero have no place in a standard error.
    pub fn probability(&self) -> f64 {
        let Some(error) = interval::error(&self.resampled, self.runs) else {
            return 1.0;
        };
        if self.estimate.abs() < 1e-12 || error < 1e-12 {
            return 1.0;
        }
        interval::two_sided(self.estimate.abs() / error, self.runs)
    }
}

/// The mean of several log ratios, resample by resample: the logarithm of the geometric mean of the ratios.
///
/// It varies as its parts do together, and each part is known from the runs it has: its degrees of freedom are the harmonic mean of theirs, weighted
/// by their variances, so that one that hardly varies does not count for having few runs, and one that makes up all of the variance does.
pub fn geometric_mean(ratios: &[LogRatio]) -> Option<LogRatio> {
    let first = ratios.first()?;
    let length = ratios.iter().map(|ratio| ratio.resampled.len()).min()?;
    let runs = runs_of_mean(ratios)?;
    let n = ratios.len() as f64;
    debug_assert!(first.resampled.len() >= length, "the minimum is over all");
    Some(LogRatio {
        estimate: ratios.iter().map(|ratio| ratio.estimate).sum::<f64>() / n,
        runs,
        resampled: (0..length)
            .map(|index| ratios.iter().map(|ratio| ratio.resampled[index]).sum::<f64>() / n)
            .collect(),
    })
}

/// As many runs as a mean of these is known from.
fn runs_of_mean(ratios: &[LogRatio]) -> Option<usize> {
    let least = ratios.iter().map(|ratio| ratio.runs).min()?;
    if least < 2 || ratios.iter().all(|ratio| ratio.runs == least) {
        return Some(least);
    }
    let variances = ratios.iter().map(|ratio| {
        let error = interval::error(&ratio.resampled, ratio.runs).unwrap_or(0.0);
        (error * error, ratio.runs as f64 - 1.0)
    });
    let (all, weighted) = variances.fold((0.0, 0.0), |(all, weighted), (variance, freedom)| {
        (all + variance, weighted + variance / freedom)
    });
    match all > 0.0 {
        true => Some(1 + libm::floor(all / weighted + 1e-9) as usize),
        false => Some(least),
    }
}

/// Summary of samples of several runs, one per run. `None` if all are empty.
pub fn summarize(runs: &[Sample], resamples: &Resamples) -> Option<Summary> {
    let n: usize = runs.iter().map(Sample::len).sum();
    if n == 0 {
        return None;
    }
    let sums: Vec<(f64, f64)> = runs.iter().map(|run| (run.sum(), run.len() as f64)).collect();
    let mean = sums.iter().map(|run| run.0).sum::<f64>() / n as f64;
    let ci95 = if sums.len() == resamples.seeds() {
        resamples.mean_interval(&sums)
    } else {
        None
    };

    let mut values = pooled(runs);
    let mut at = |level: f64| quantile(&mut values, level);
    Some(Summary {
        n: n as u64,
        mean,
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        max: at(1.0),
        ci95,
        quantiles: FURTHER_LEVELS
            .iter()
            .map(|(name, level)| ((*name).to_owned(), at(*level)))
            .collect(),
    })
}

/// Counted values of one run, in units of which `per` make one of the summary's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Value (a class of a histogram) and how often it came, ascending.
    pub counts: Vec<(u64, u64)>,
    /// Exact sum of the values.
    pub sum: u128,
    /// Exact largest value.
    pub max: u64,
}

/// Summary of counted values of several runs. Quantiles are those of the nearest rank: the values are classes already,
/// interpolation would invent others.
pub fn summarize_counted(runs: &[Counted], per: f64, resamples: &Resamples) -> Option<Summary> {
    let sums: Vec<(f64, f64)> = runs
        .iter()
        .map(|run| {
            (
                run.sum as f64 / per,
                run.counts.iter().map(|pair| pair.1).sum::<u64>() as f64,
            )
        })
        .collect();
    let n: u64 = runs.iter().flat_map(|run| &run.counts).map(|pair| pair.1).sum();
    if n == 0 {
        return None;
    }
    let max = runs.iter().map(|run| run.max).max().unwrap_or(0);
    let mut counted: Vec<(u64, u64)> = runs.iter().flat_map(|run| &run.counts).copied().collect();
    // Stable, which merges what is in order already.
    counted.sort();
    let at = |level: f64| {
        let rank = libm::ceil(level * n as f64).max(1.0) as u64;
        let mut seen = 0;
        for &(value, count) in &counted {
            seen += count;
            if seen >= rank {
                return value.min(max) as f64 / per;
            }
        }
        max as f64 / per
    };
    Some(Summary {
        n,
        mean: sums.iter().map(|run| run.0).sum::<f64>() / n as f64,
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        max: max as f64 / per,
        ci95: if sums.len() == resamples.seeds() {
            resamples.mean_interval(&sums)
        } else {
            None
        },
        quantiles: FURTHER_LEVELS
            .iter()
            .map(|(name, level)| ((*name).to_owned(), at(*level)))
            .collect(),
    })
}

/// Quantile of `values` (reordered), type 7: linear between the two nearest order statistics.
///
/// # Panics
/// If `values` is empty.
pub fn quantile(values: &mut [f64], level: f64) -> f64 {
    let position = level.clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let lower = libm::floor(position) as usize;
    let share = position - lower as f64;
    let (_, &mut low, above) = values.select_nth_unstable_by(lower, f64::total_cmp);
    // Between minus infinity and anything else there is nothing finite.
    if share <= 0.0 || above.is_empty() || low == f64::NEG_INFINITY {
        return low;
    }
    let high = above.iter().copied().fold(f64::INFINITY, f64::min);
    low + share * (high - low)
}

/// Holm's step-down correction: for each probability whether its hypothesis is rejected at `level` over the whole
/// family. Absent probabilities (`None`) are no members of the family.
pub fn holm(probabilities: &[Option<f64>], level: f64) -> Vec<bool> {
    let mut order: Vec<(f64, usize)> = probabilities
        .iter()
        .enumerate()
        .filter_map(|(index, p)| p.map(|p| (p, index)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rejected = vec![false; probabilities.len()];
    let family = order.len();
    for (step, (p, index)) in order.into_iter().enumerate() {
        if p * (family - step) as f64 > level {
            break;
        }
        rejected[index] = true;
    }
    rejected
}

/// Jain's fairness index; `None` with fewer than two shares or when all are zero.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (shares.len() >= 2 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// All members of all runs; censored ones as their age, but not below the largest that completed.
fn pooled(runs: &[Sample]) -> Vec<f64> {
    let mut values = Vec::with_capacity(runs.iter().map(Sample::len).sum());
    for run in runs {
        values.extend_from_slice(&run.completed);
    }
    let floor = values.iter().copied().fold(0.0, f64::max);
    for run in runs {
        values.extend(run.censored.iter().map(|age| age.max(floor)));
    }
    values
}

fn weighted(row: &[u16], runs: &[(f64, f64)]) -> (f64, f64) {
    row.iter().zip(runs).fold((0.0, 0.0), |(sum, n), (&weight, run)| {
        (sum + f64::from(weight) * run.0, n + f64::from(weight) * run.1)
    })
}

const FURTHER_LEVELS: [(&str, f64); 6] = [
    ("0.01", 0.01),
    ("0.05", 0.05),
    ("0.1", 0.1),
    ("0.25", 0.25),
    ("0.75", 0.75),
    ("0.999", 0.999),
];

#[cfg(test)]
mod tests;
