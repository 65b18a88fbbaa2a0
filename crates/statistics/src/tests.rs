//! Golden values come from `tests/oracle/statistics.py` (NumPy and SciPy).

use super::interval::{FEWEST_SEEDS, STUDENT, TAILS, computed_tail, expanded_tail, student};
use super::{
    Counted, Descending, LEVEL, Resamples, Sample, geometric_mean, holm, jain, quantile, summarize,
    summarize_counted,
};
use fleetfoot_core::rng::Rng;
use statrs::distribution::ContinuousCDF;

const BASE: [f64; 10] = [1.10, 0.95, 1.30, 1.05, 1.22, 0.99, 1.15, 1.08, 1.27, 1.01];
const VARIANT: [f64; 10] = [0.80, 0.78, 1.01, 0.83, 0.90, 0.82, 0.86, 0.88, 0.99, 0.77];

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance
}

fn sums(values: &[f64]) -> Vec<(f64, f64)> {
    values.iter().map(|&value| (value, 1.0)).collect()
}

#[test]
fn quantiles_are_those_of_numpy() {
    let mut values = [3.1, 0.4, 7.25, 1.5, 2.2, 9.9, 0.05, 4.4, 4.4, 6.0, 1.25];
    let golden = [
        (0.01, 0.085),
        (0.5, 3.1),
        (0.9, 7.25),
        (0.95, 8.575),
        (0.99, 9.635),
        (0.999, 9.8735),
    ];
    for (level, expected) in golden {
        assert!(close(quantile(&mut values, level), expected, 1e-12), "{level}");
    }
    let summary =
        summarize(&[Sample::of(values.to_vec())], &Resamples::new(1, 1, 10)).expect("there is a sample");
    assert!(close(summary.mean, 3.6772727272727277, 1e-12));
    assert_eq!((summary.n, summary.max, summary.ci95), (11, 9.9, None));
}

#[test]
fn intervals_and_tests_are_those_of_scipy() {
    for (seeds, expected) in [
        (5, 0.0009541005518824907),
        (10, 0.008550639024406366),
        (20, 0.015880829920347974),
    ] {
        assert!(close(expanded_tail(seeds), expected, 1e-8));
    }
    for (seeds, &known) in (FEWEST_SEEDS..).zip(&TAILS) {
        let computed = computed_tail(seeds);
        assert!(close(known / computed, 1.0, 1e-12), "{seeds}: {known} {computed}");
    }
    let beyond = FEWEST_SEEDS + TAILS.len();
    assert_eq!(expanded_tail(beyond), computed_tail(beyond));
    let resamples = Resamples::new(7, 10, 100_000);
    // The last digits differ by the resamples drawn: a standard error of 0.013 over sqrt(100,000), several times over.
    let ratio = resamples
        .mean_ratio(&sums(&VARIANT), &sums(&BASE))
        .expect("means are positive");
    let estimate = ratio.estimate();
    let [low, high] = estimate.ci95.expect("ten seeds");
    assert!(close(estimate.value, 0.7769784172661872, 1e-12));
    assert!(
        close(low, 0.7534366206631471, 3e-4) && close(high, 0.8018518518518517, 3e-4),
        "{low} {high}"
    );
    assert!(estimate.p > 1.7e-8 && estimate.p < 2.6e-8, "{}", estimate.p);
    let [low, high] = resamples.mean_interval(&sums(&BASE)).expect("ten seeds");
    assert!(
        close(low, 1.03, 1.5e-3) && close(high, 1.199, 1.5e-3),
        "{low} {high}"
    );
}

#[test]
fn intervals_of_fewer_than_five_seeds_hold_the_truth_as_often_as_they_say() {
    for (seeds, known) in (FEWEST_SEEDS..).zip(STUDENT) {
        let computed = student(seeds).inverse_cdf(1.0 - LEVEL / 2.0);
        assert!(close(known / computed, 1.0, 1e-9), "{seeds}: {known} {computed}");
    }
    // Ratios of two products of normal errors of 5 %; the truth is a ratio of 0.8. Their percentiles hold it in 50, 75 and 88 %.
    let mut rng = Rng::from_seed(5);
    let mut noisy = |mean: f64| mean * libm::exp(0.05 * rng.normal());
    const TIMES: usize = 1000;
    for seeds in 2..=4 {
        let (mut ratios, mut means) = (0, 0);
        for time in 0..TIMES {
            let resamples = Resamples::new(time as u64, seeds, 500);
            let base: Vec<f64> = (0..seeds).map(|_| noisy(1.0)).collect();
            let variant: Vec<f64> = (0..seeds).map(|_| noisy(0.8)).collect();
            let ratio = resamples
                .mean_ratio(&sums(&variant), &sums(&base))
                .expect("means are positive");
            let estimate = ratio.estimate();
            let [low, high] = estimate.ci95.expect("two seeds or more");
            ratios += usize::from(low <= 0.8 && 0.8 <= high);
            assert!(0.0 < low && low <= estimate.value && estimate.value <= high);
            // Interval and test are of one distribution.
            assert_eq!(estimate.p < LEVEL, high < 1.0 || low > 1.0, "{estimate:?}");
            let [low, high] = resamples.mean_interval(&sums(&base)).expect("two seeds or more");
            means += usize::from(low <= 1.0 && 1.0 <= high);
        }
        for share in [ratios, means].map(|held| held as f64 / TIMES as f64) {
            assert!((0.92..0.98).contains(&share), "{seeds} seeds: {share}");
        }
    }
}

#[test]
fn seeds_in_which_nothing_was_measured_are_no_evidence() {
    // As above, but only in three of ten seeds there is anything, more or less.
    let mut rng = Rng::from_seed(6);
    const TIMES: u64 = 2000;
    const SEEDS: usize = 10;
    let (mut intervals, mut ratios, mut medians, mut means, mut by_chance) = (0, 0, 0, 0, 0);
    for time in 0..TIMES {
        let resamples = Resamples::new(time, SEEDS, 300);
        let there: Vec<bool> = (0..SEEDS).map(|_| rng.below(10) < 3).collect();
        let mut noisy = |mean: f64| -> Vec<Sample> {
            let value = |there: &bool| match there {
                true => Sample::of(vec![mean * libm::exp(0.05 * rng.normal())]),
                false => Sample::default(),
            };
            there.iter().map(value).collect()
        };
        let (base, variant, like_base) = (noisy(1.0), noisy(0.8), noisy(1.0));
        let pairs = |runs: &[Sample]| -> Vec<(f64, f64)> {
            runs.iter().map(|run| (run.sum(), run.len() as f64)).collect()
        };
        let Some(ratio) = resamples.mean_ratio(&pairs(&variant), &pairs(&base)) else {
            continue;
        };
        let runs = there.iter().filter(|&&there| there).count();
        assert_eq!(ratio.runs, runs);
        let estimate = ratio.estimate();
        assert_eq!(estimate.ci95.is_some(), runs >= 2, "{runs} runs");
        assert_eq!(resamples.mean_interval(&pairs(&base)).is_some(), runs >= 2);
        let Some([low, high]) = estimate.ci95 else {
            assert!(estimate.p >= 1.0, "one run is none");
            continue;
        };
        intervals += 1;
        ratios += u32::from(low <= 0.8 && 0.8 <= high);
        let median = resamples
            .quantile_ratio(&variant, &base, 0.5)
            .expect("they have one");
        let [low, high] = median.estimate().ci95.expect("two runs");
        medians += u32::from(low <= 0.8 && 0.8 <= high);
        let [low, high] = resamples.mean_interval(&pairs(&base)).expect("two runs");
        means += u32::from(low <= 1.0 && 1.0 <= high);
        let same = resamples
            .mean_ratio(&pairs(&like_base), &pairs(&base))
            .expect("it is as above");
        by_chance += u32::from(same.probability() < LEVEL);
    }
    assert!(intervals > 1500, "{intervals}");
    let share = |count: u32| f64::from(count) / f64::from(intervals);
    for share in [ratios, medians, means].map(share) {
        assert!((0.91..0.99).contains(&share), "{share}");
    }
    assert!((0.02..0.08).contains(&share(by_chance)), "{}", share(by_chance));
}

#[test]
fn equal_samples_give_one_and_no_significance() {
    let resamples = Resamples::new(7, 10, 500);
    let ratio = resamples
        .mean_ratio(&sums(&BASE), &sums(&BASE))
        .expect("means are positive");
    let estimate = ratio.estimate();
    assert_eq!(
        (estimate.value, estimate.ci95, estimate.p),
        (1.0, Some([1.0, 1.0]), 1.0)
    );
}

#[test]
fn one_seed_has_no_interval() {
    let resamples = Resamples::new(7, 1, 500);
    let ratio = resamples
        .mean_ratio(&[(2.0, 1.0)], &[(4.0, 1.0)])
        .expect("means are positive");
    let estimate = ratio.estimate();
    assert!(close(estimate.value, 0.5, 1e-12));
    assert_eq!((estimate.ci95, estimate.p), (None, 1.0));
}

#[test]
fn nothing_of_something_is_a_ratio_of_zero() {
    // Of two runs the variant carried 0 and 2, the baseline 4 each time: ratios of 0, 1/4 and 1/2.
    let resamples = Resamples::new(7, 2, 200);
    let ratio = resamples
        .mean_ratio(&sums(&[0.0, 2.0]), &sums(&[4.0, 4.0]))
        .expect("it carried something");
    for (row, &log) in resamples.rows().zip(&ratio.resampled) {
        assert!(close(libm::exp(log), f64::from(row[1]) / 4.0, 1e-12), "{row:?}");
    }
    let estimate = ratio.estimate();
    assert_eq!((estimate.value, estimate.ci95), (0.25, Some([0.0, 0.5])));
    // Nothing to compare with is no number.
    let ratio = resamples
        .mean_ratio(&sums(&[0.0, 2.0]), &sums(&[0.0, 4.0]))
        .expect("both carried something");
    for (row, &log) in resamples.rows().zip(&ratio.resampled) {
        assert_eq!(log.is_nan(), row[1] == 0, "{row:?}: {log}");
    }
}

#[test]
fn quantiles_beside_infinite_values_are_numbers() {
    let none = f64::NEG_INFINITY;
    let mut values = [1.0, none, 3.0, none, 2.0];
    let at = |values: &mut [f64], level| quantile(values, level);
    // Between the two: neither is finite; between the second and the third: any share of minus infinity is.
    assert_eq!(at(&mut values, 0.1), none);
    assert_eq!(at(&mut values, 0.3), none);
    assert_eq!((at(&mut values, 0.5), at(&mut values, 0.625)), (1.0, 1.5));
    assert_eq!(at(&mut [1.0, f64::INFINITY], 0.5), f64::INFINITY);
}

#[test]
fn censored_members_are_larger_than_all_completed_and_enter_the_mean_as_their_age() {
    let sample = Sample {
        completed: vec![1.0, 2.0, 10.0],
        censored: vec![4.0],
    };
    let summary = summarize(&[sample], &Resamples::new(1, 1, 10)).expect("there is a sample");
    assert_eq!(summary.mean, 17.0 / 4.0);
    assert_eq!((summary.p50, summary.max), (6.0, 10.0));
    let late = Sample {
        completed: vec![1.0, 2.0, 3.0],
        censored: vec![60.0],
    };
    let summary = summarize(&[late], &Resamples::new(1, 1, 10)).expect("there is a sample");
    assert_eq!((summary.p50, summary.max), (2.5, 60.0));
}

#[test]
fn quantiles_of_resamples_equal_those_of_the_expanded_multiset() {
    let mut rng = Rng::from_seed(3);
    for case in 0..50 {
        let runs: Vec<Sample> = (0..4)
            .map(|_| Sample {
                completed: (0..rng.below(2500)).map(|_| rng.uniform()).collect(),
                censored: (0..rng.below(3)).map(|_| 2.0 * rng.uniform()).collect(),
            })
            .collect();
        let mut pooled = Descending::new(&runs);
        let floor = runs
            .iter()
            .flat_map(|run| &run.completed)
            .copied()
            .fold(0.0, f64::max);
        // One after the other, as resamples are: what was sorted for one stays for the next.
        for level in [0.99, 0.5, 0.999, 0.0, 1.0] {
            let row: Vec<u16> = (0..4).map(|_| rng.below(3) as u16).collect();
            let mut expanded: Vec<f64> = Vec::new();
            for (run, &weight) in runs.iter().zip(&row) {
                for _ in 0..weight {
                    expanded.extend(&run.completed);
                    expanded.extend(run.censored.iter().map(|age| age.max(floor)));
                }
            }
            let got = pooled.quantile(&row, level);
            if expanded.is_empty() {
                assert_eq!(got, None);
            } else {
                let expected = quantile(&mut expanded, level);
                assert!(
                    close(got.expect("not empty"), expected, 1e-12),
                    "case {case}, {level}"
                );
            }
        }
    }
}

#[test]
fn holm_steps_down_until_the_first_that_holds() {
    // Holm 1979: 0.01 * 4 and 0.013 * 3 are below 0.05; 0.03 * 2 is not, so 0.04 * 1 is not reached.
    let p = [Some(0.04), Some(0.01), None, Some(0.03), Some(0.013)];
    assert_eq!(holm(&p, 0.05), [false, true, false, false, true]);
    assert!(holm(&[], 0.05).is_empty());
}

#[test]
fn jain_is_one_for_equal_and_one_over_n_for_a_single_taker() {
    assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
    assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
    assert_eq!(jain(&[1.0]), None);
    assert_eq!(jain(&[0.0, 0.0]), None);
}

#[test]
fn geometric_mean_of_half_and_double_is_one() {
    let resamples = Resamples::new(7, 10, 100);
    let twice: Vec<f64> = BASE.iter().map(|value| value * 2.0).collect();
    let up = resamples
        .mean_ratio(&sums(&twice), &sums(&BASE))
        .expect("positive");
    let down = resamples
        .mean_ratio(&sums(&BASE), &sums(&twice))
        .expect("positive");
    let mean = geometric_mean(&[up, down]).expect("two ratios");
    assert!(close(mean.estimate, 0.0, 1e-12));
    assert!(mean.resampled.iter().all(|log| close(*log, 0.0, 1e-12)));
}

#[test]
fn counted_values_have_nearest_rank_quantiles() {
    let counted = |counts: &[(u64, u64)], max| Counted {
        counts: counts.to_vec(),
        sum: counts.iter().map(|pair| u128::from(pair.0 * pair.1)).sum(),
        max,
    };
    let runs = [counted(&[(0, 50), (10, 40)], 10), counted(&[(30, 10)], 29)];
    let summary = summarize_counted(&runs, 10.0, &Resamples::new(1, 2, 100)).expect("there is a sample");
    assert_eq!((summary.n, summary.mean), (100, 0.7));
    assert_eq!((summary.p50, summary.p90, summary.max), (0.0, 1.0, 2.9));
    assert!(summarize_counted(&[Counted::default()], 1.0, &Resamples::new(1, 1, 10)).is_none());
}

#[test]
fn resamples_depend_on_the_seed_alone() {
    let rows = |seed| {
        Resamples::new(seed, 5, 20)
            .rows()
            .flatten()
            .copied()
            .collect::<Vec<_>>()
    };
    assert_eq!(rows(4), rows(4));
    assert_ne!(rows(4), rows(5));
    assert!(
        Resamples::new(4, 5, 20)
            .rows()
            .all(|row| row.iter().sum::<u16>() == 5)
    );
}
