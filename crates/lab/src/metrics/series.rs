//! Statistics of values, with those of all resamples.

use super::Values;
use crate::statistics::{Resamples, interval, jain};

/// A statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Mean.
    Mean,
    /// This quantile; 1 is the largest.
    Quantile(f64),
    /// Sum of a run, on average.
    Sum,
    /// Part of the sum over all groups.
    Share,
    /// Slope of the logarithms over the points of a sweep.
    Slope,
    /// Slope of the values themselves over the points of a sweep, by least squares.
    Trend,
    /// Slope of the logarithms of the mean over the groups of the same kind, against their data unit.
    SizeSlope,
    /// Jain's index of each run's values, on average.
    Jain,
}

impl Statistic {
    /// The statistic called `word`.
    pub fn parse(word: &str) -> Option<Statistic> {
        Some(match word {
            "mean" => Statistic::Mean,
            "p40" => Statistic::Quantile(0.4),
            "p50" => Statistic::Quantile(0.5),
            "p60" => Statistic::Quantile(0.6),
            "p70" => Statistic::Quantile(0.7),
            "p80" => Statistic::Quantile(0.8),
            "p89" => Statistic::Quantile(0.89),
            "p90" => Statistic::Quantile(0.9),
            "p91" => Statistic::Quantile(0.91),
            "p95" => Statistic::Quantile(0.95),
            "p97" => Statistic::Quantile(0.97),
            "p99" => Statistic::Quantile(0.99),
            "p99.9" => Statistic::Quantile(0.999),
            "max" => Statistic::Quantile(1.0),
            "min" => Statistic::Quantile(0.0),
            "sum" => Statistic::Sum,
            "share" => Statistic::Share,
            "slope" => Statistic::Slope,
            "trend" => Statistic::Trend,
            "size-slope" => Statistic::SizeSlope,
            "jain" => Statistic::Jain,
            _ => return None,
        })
    }
}

/// A statistic of the runs as they are, and of every resample. What does not exist is not a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Estimate from the runs as they are.
    pub estimate: f64,
    /// Estimate from each resample.
    pub resampled: Vec<f64>,
}

impl Series {
    /// What `both` makes of this and `other`, resample by resample.
    #[must_use]
    pub fn with(&self, other: &Series, both: impl Fn(f64, f64) -> f64) -> Series {
        Series {
            estimate: both(self.estimate, other.estimate),
            resampled: self
                .resampled
                .iter()
                .zip(&other.resampled)
                .map(|(a, b)| both(*a, *b))
                .collect(),
        }
    }

    /// Ratio to `other`.
    #[must_use]
    pub fn over(&self, other: &Series) -> Series {
        self.with(other, |a, b| a / b)
    }

    /// Estimate and 95 % interval; `None` where the estimate does not exist, no interval with fewer than two seeds.
    pub fn measured(&self, resamples: &Resamples) -> Option<(f64, Option<[f64; 2]>)> {
        if !self.estimate.is_finite() {
            return None;
        }
        let finite: Vec<f64> = self
            .resampled
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        // An interval of a part of the resamples would look narrower than it is.
        let most = finite.len() * 10 >= self.resampled.len() * 9;
        let ci95 = if most {
            interval(finite, resamples.seeds())
        } else {
            None
        };
        Some((self.estimate, ci95))
    }
}

/// `statistic` of `values`. [`Statistic::Share`], [`Statistic::Slope`] and [`Statistic::Trend`] are of more than one set of values: they
/// give the sum and the mean that shares and slopes are made of.
pub fn series(values: &Values, statistic: Statistic, resamples: &Resamples) -> Series {
    let ratio_of_sums = |runs: Vec<(f64, f64)>| {
        let of = |row: &[u16]| {
            let weighted = row.iter().zip(&runs);
            let (sum, n) = weighted.fold((0.0, 0.0), |(sum, n), (&weight, run)| {
                (sum + f64::from(weight) * run.0, n + f64::from(weight) * run.1)
            });
            if n > 0.0 { sum / n } else { f64::NAN }
        };
        Series {
            estimate: of(&vec![1; resamples.seeds()]),
            resampled: resamples.rows().map(of).collect(),
        }
    };
    match (statistic, values) {
        (Statistic::Mean | Statistic::Slope | Statistic::Trend | Statistic::SizeSlope, values) => {
            ratio_of_sums(sums(values))
        }
        (Statistic::Sum | Statistic::Share, values) => {
            ratio_of_sums(sums(values).into_iter().map(|(sum, _)| (sum, 1.0)).collect())
        }
        (Statistic::Jain, values) => ratio_of_sums(
            per_run(values, Statistic::Jain)
                .into_iter()
                .map(|value| {
                    if value.is_finite() {
                        (value, 1.0)
                    } else {
                        (0.0, 0.0)
                    }
                })
                .collect(),
        ),
        (Statistic::Quantile(level), Values::Samples(runs)) => {
            let (estimate, resampled) = resamples.quantiles(runs, level);
            Series { estimate, resampled }
        }
        (Statistic::Quantile(level), Values::Counts(runs, per)) => {
            let (estimate, resampled) = resamples.counted_quantiles(runs, level);
            Series {
                estimate: estimate / per,
                resampled: resampled.into_iter().map(|value| value / per).collect(),
            }
        }
    }
}

/// One number of each run: `statistic` of its own values.
pub fn per_run(values: &Values, statistic: Statistic) -> Vec<f64> {
    let alone = Resamples::none(1);
    let one = |values: Values| match (statistic, &values) {
        (Statistic::Jain, Values::Samples(runs)) => {
            let all: Vec<f64> = runs
                .iter()
                .flat_map(|run| run.completed.iter().chain(&run.censored))
                .copied()
                .collect();
            jain(&all).unwrap_or(f64::NAN)
        }
        (Statistic::Jain, Values::Counts(..)) => f64::NAN,
        _ => series(&values, statistic, &alone).estimate,
    };
    match values {
        Values::Samples(runs) => runs
            .iter()
            .map(|run| one(Values::Samples(vec![run.clone()])))
            .collect(),
        Values::Counts(runs, per) => runs
            .iter()
            .map(|run| one(Values::Counts(vec![run.clone()], *per)))
            .collect(),
    }
}

/// Sum and number of the values of each run.
fn sums(values: &Values) -> Vec<(f64, f64)> {
    match values {
        Values::Samples(runs) => runs.iter().map(|run| (run.sum(), run.len() as f64)).collect(),
        Values::Counts(runs, per) => runs
            .iter()
            .map(|run| {
                let n: u64 = run.counts.iter().map(|pair| pair.1).sum();
                (run.sum as f64 / per, n as f64)
            })
            .collect(),
    }
}
