//! Intervals and tests from what was computed per resample.

use crate::{LEVEL, quantile};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// 95 % interval of numbers computed per resample, to which so many `runs` contribute. `None` with fewer than two of them, or of resamples.
///
/// Resamples in which there was nothing to compare are not numbers; they are left out here, and not before, so that the
/// same position is the same resample in everything that is computed from several of them.
pub fn interval(mut values: Vec<f64>, runs: usize) -> Option<[f64; 2]> {
    values.retain(|value| !value.is_nan());
    if runs < 2 || values.len() < 2 {
        return None;
    }
    let tail = expanded_tail(runs);
    let low = quantile(&mut values, tail);
    let high = quantile(&mut values, 1.0 - tail);
    Some([low, high])
}

/// 95 % interval about `estimate` of a quantity without bounds, from numbers computed per resample: percentiles as in
/// [`interval`], and with fewer than five runs Student's t times the standard error. `None` with fewer than two runs or resamples.
pub fn interval_about(estimate: f64, values: Vec<f64>, runs: usize) -> Option<[f64; 2]> {
    let finite = estimate.is_finite() && values.iter().all(|value| !value.is_infinite());
    let (Some(t), true) = (student_of_few(runs), finite) else {
        return interval(values, runs);
    };
    let half = t * error(&values, runs)?;
    Some([estimate - half, estimate + half])
}

/// Whether intervals are Student's, since percentiles of so few runs do not reach as far as one.
pub fn are_few(runs: usize) -> bool {
    student_of_few(runs).is_some()
}

/// Student's t of a 95 % interval with so few runs that percentiles do not reach as far as one.
fn student_of_few(runs: usize) -> Option<f64> {
    STUDENT.get(runs.checked_sub(FEWEST_SEEDS)?).copied()
}

/// Standard error of what was computed per resample: the bootstrap's variance is that of the plug-in estimate, and n/(n-1) makes it
/// unbiased for a mean. What is no number is left out. `None` with fewer than two runs or resamples.
pub(crate) fn error(values: &[f64], runs: usize) -> Option<f64> {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if runs < 2 || finite.len() < 2 {
        return None;
    }
    let n = runs as f64;
    Some(standard_deviation(&finite) * libm::sqrt(n / (n - 1.0)))
}

/// Two-sided probability of a deviation of `t` standard errors, or of more, by chance.
pub(crate) fn two_sided(t: f64, runs: usize) -> f64 {
    (2.0 * student(runs).sf(t)).min(1.0)
}

fn standard_deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    libm::sqrt(
        values
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum::<f64>()
            / (n - 1.0),
    )
}

/// Student's t of so many seeds, two or more.
pub(crate) fn student(seeds: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, seeds as f64 - 1.0).expect("degrees of freedom are positive")
}

/// Share cut off at each end so that a percentile interval of few seeds is as wide as a t interval.
pub(crate) fn expanded_tail(seeds: usize) -> f64 {
    let known = seeds.checked_sub(FEWEST_SEEDS).and_then(|index| TAILS.get(index));
    known.copied().unwrap_or_else(|| computed_tail(seeds))
}

pub(crate) fn computed_tail(seeds: usize) -> f64 {
    let n = seeds as f64;
    let normal = Normal::new(0.0, 1.0).expect("the standard normal exists");
    normal.cdf(-libm::sqrt(n / (n - 1.0)) * student(seeds).inverse_cdf(1.0 - LEVEL / 2.0))
}

/// What [`computed_tail`] gives from [`FEWEST_SEEDS`] seeds on with the logarithm of glibc and musl. A browser's engine has another logarithm,
/// whose last digit differs, and so would the last digit of every interval.
pub(crate) const TAILS: [f64; 19] = [
    1.6952190724861873e-72,
    6.834137312109902e-8,
    0.00011903073916287348,
    0.0009541005518433635,
    0.0024318031745103417,
    0.004109153815464397,
    0.0057375205167864264,
    0.0072248191828453495,
    0.0085506390240394,
    0.00972240689966055,
    0.010756614916087377,
    0.011671300553087086,
    0.012483255222804867,
    0.0132071731262363,
    0.013855570404163145,
    0.014438984971676469,
    0.014966254465086986,
    0.015444791815617198,
    0.015880829919653255,
];

pub(crate) const FEWEST_SEEDS: usize = 2;

/// Student's t at 97.5 % from [`FEWEST_SEEDS`] seeds on, with one degree of freedom less. All of five seeds lie on one side of the truth in
/// one case of sixteen: from there on percentiles reach.
pub(crate) const STUDENT: [f64; 3] = [12.706204736174704, 4.302652729749464, 3.182446305283709];
