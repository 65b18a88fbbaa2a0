//! A cell of a heat map, a point of a line: the mean over points of a sweep, with its interval.
//!
//! Every point counts once, however many seeds it took until its interval was narrow: a cell is the mean of the means of its points, of ratios
//! the geometric mean. The half width of its interval is Student's t over the seeds that all its points have: runs of one seed see the same
//! arrivals at all points, so a seed is the unit of independence. Where the points share fewer than two seeds, it is made of their own
//! variances, with the degrees of freedom of Welch and Satterthwaite. Where seeds end when an interval is narrow, the level is that of each look.

use super::stopping::{interval, student};
use crate::report::figures::heat;

/// The cell of these points, of each of which `values` has the values seed by seed: their mean, or the ratio to `baseline`, with the interval at one of
/// `looks` looks.
pub(super) fn cell(
    points: &[usize],
    values: &[Vec<Option<f64>>],
    baseline: Option<&[Vec<Option<f64>>]>,
    factor: f64,
    looks: usize,
) -> Option<heat::Cell> {
    let of_point = |&point: &usize| -> Vec<Option<f64>> {
        let seeds = values[point].iter().enumerate();
        let value = |(seed, value): (usize, &Option<f64>)| {
            let Some(baseline) = baseline else {
                return value.map(|value| value * factor);
            };
            let ratio = (*value)? / baseline[point].get(seed).copied().flatten()?;
            (ratio.is_finite() && ratio > 0.0).then(|| libm::log(ratio))
        };
        seeds.map(value).collect()
    };
    let there = |seeds: &Vec<Option<f64>>| seeds.iter().any(Option::is_some);
    let points: Vec<Vec<Option<f64>>> = points.iter().map(of_point).filter(there).collect();
    let means = points.iter().map(|seeds| {
        let known: Vec<f64> = seeds.iter().copied().flatten().collect();
        known.iter().sum::<f64>() / known.len() as f64
    });
    let count = points.len() as f64;
    let mean = (count > 0.0).then(|| means.sum::<f64>() / count)?;
    let half = of_shared_seeds(&points, looks).or_else(|| of_own_variances(&points, looks));
    // What is measured is nothing or more; logarithms of ratios may be less.
    let least = match baseline {
        Some(_) => f64::NEG_INFINITY,
        None => 0.0_f64.min(mean),
    };
    let ends = half.map(|half| [(mean - half).max(least), mean + half]);
    let back = |value: f64| match baseline {
        Some(_) => libm::exp(value),
        None => value,
    };
    Some(heat::Cell {
        value: back(mean),
        ends: ends.map(|ends| ends.map(back)),
    })
}

/// Half width of the interval of the mean over all points, from the seeds that all of them have; `None` with fewer than two of these.
fn of_shared_seeds(points: &[Vec<Option<f64>>], looks: usize) -> Option<f64> {
    let seeds = points.iter().map(Vec::len).min()?;
    let of_seed = |seed: usize| -> Option<f64> {
        let values: Option<Vec<f64>> = points.iter().map(|values| values[seed]).collect();
        Some(values?.iter().sum::<f64>() / points.len() as f64)
    };
    let means: Vec<f64> = (0..seeds).filter_map(of_seed).collect();
    interval(&means, looks).map(|(_, half)| half)
}

/// The same from the variance of each point by itself; `None` where one has fewer than two seeds.
fn of_own_variances(points: &[Vec<Option<f64>>], looks: usize) -> Option<f64> {
    let (mut sum, mut squares) = (0.0, 0.0);
    for values in points {
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        if known.len() < 2 {
            return None;
        }
        let n = known.len() as f64;
        let mean = known.iter().sum::<f64>() / n;
        let deviations = known.iter().map(|value| (value - mean) * (value - mean));
        let of_mean = deviations.sum::<f64>() / (n - 1.0) / n;
        sum += of_mean;
        squares += of_mean * of_mean / (n - 1.0);
    }
    if sum <= 0.0 {
        return Some(0.0);
    }
    let error = libm::sqrt(sum) / points.len() as f64;
    Some(student(sum * sum / squares, looks)? * error)
}

#[cfg(test)]
mod tests {
    use super::cell;
    use crate::sweep::stopping::interval;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_point_counts_once_however_many_seeds_it_took() {
        let values = [vec![Some(1.0); 10], vec![Some(3.0); 40]];
        let both = cell(&[0, 1], &values, None, 1.0, 1).expect("there are values");
        assert_eq!((both.value, both.ends), (2.0, Some([2.0, 2.0])));
        // Ratios of 1 and 4 have the geometric mean 2.
        let ones = [vec![Some(1.0); 10], vec![Some(1.0); 40]];
        let fours = [vec![Some(1.0); 10], vec![Some(4.0); 40]];
        let ratio = cell(&[0, 1], &fours, Some(&ones), 1e-6, 1).expect("there are values");
        assert!(close(ratio.value, 2.0), "{}", ratio.value);
    }

    #[test]
    fn the_interval_is_that_of_the_seeds_which_all_points_share() {
        let noisy: Vec<Option<f64>> = (0..40u8).map(|seed| Some(f64::from(seed % 7))).collect();
        let quiet: Vec<Option<f64>> = (0..10u8).map(|seed| Some(f64::from(seed % 3))).collect();
        let of_seeds: Vec<f64> = (0..10usize)
            .map(|seed| ((seed % 7) + (seed % 3)) as f64 / 2.0)
            .collect();
        let (_, half) = interval(&of_seeds, 3).expect("ten seeds");
        let both = cell(&[0, 1], &[noisy.clone(), quiet], None, 1.0, 3).expect("there are values");
        // The sum of 40 values is 5 * 21 + 0 + 1 + 2 + 3 + 4, that of ten is 9.
        let mean = f64::midpoint(115.0 / 40.0, 0.9);
        let [low, high] = both.ends.expect("ten seeds");
        assert!(close(both.value, mean) && close(low, mean - half) && close(high, mean + half));
        // Of one point it is that of all its seeds.
        let all: Vec<f64> = noisy.iter().copied().flatten().collect();
        let (mean, half) = interval(&all, 1).expect("forty seeds");
        let one = cell(&[0], &[noisy], None, 1.0, 1).expect("there are values");
        let [low, high] = one.ends.expect("forty seeds");
        assert!(close(one.value, mean) && close(low, mean - half) && close(high, mean + half));
    }

    /// Of values 1, 2, 3 and 4, 6, 8 the means have variances 1/3 and 4/3, so the mean of both has the standard error sqrt(5/3)/2 = 0.645497; the degrees
    /// of freedom are (5/3)^2 / ((1/9)/2 + (16/9)/2) = 50/17, for which the density of Student's t integrated by
    /// Simpson's rule gives 3.218758615 at 0.975.
    #[test]
    fn points_without_seeds_in_common_have_an_interval_of_their_own_variances() {
        let values = [
            vec![Some(1.0), Some(2.0), Some(3.0), None, None, None],
            vec![None, None, None, Some(4.0), Some(6.0), Some(8.0)],
        ];
        let both = cell(&[0, 1], &values, None, 1.0, 1).expect("there are values");
        let [low, high] = both.ends.expect("each has three seeds");
        assert_eq!(both.value, 4.0);
        let half = (high - low) / 2.0;
        assert!((half / 0.645_497_224 - 3.218_758_615).abs() < 1e-6, "{half}");
        // With one seed there is none.
        let values = [vec![Some(1.0), None], vec![None, Some(2.0)]];
        assert!(
            cell(&[0, 1], &values, None, 1.0, 1)
                .expect("there are values")
                .ends
                .is_none()
        );
        assert!(cell(&[], &values, None, 1.0, 1).is_none());
    }
}
