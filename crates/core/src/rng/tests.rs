//! Golden values, Kolmogorov-Smirnov tests against the distribution functions, and limits.

use super::{Distribution, DistributionError, Rng, Sampler};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

fn samples(distribution: &Distribution, count: usize) -> Vec<f64> {
    let mut sampler = Sampler::new(distribution.clone(), Rng::for_element(1, "element", "test"));
    (0..count).map(|_| sampler.sample()).collect()
}

/// A distribution's name, itself, and its distribution function.
type Subject = (&'static str, Distribution, fn(f64) -> f64);

/// Every continuous distribution with its distribution function, written from its definition.
fn continuous() -> Vec<Subject> {
    vec![
        ("uniform", Distribution::Uniform { min: -2.0, max: 6.0 }, |x| {
            (x + 2.0) / 8.0
        }),
        ("exponential", Distribution::Exponential { mean: 0.25 }, |x| {
            1.0 - libm::exp(-x / 0.25)
        }),
        (
            "pareto",
            Distribution::Pareto {
                scale: 3.0,
                shape: 1.2,
            },
            |x| 1.0 - libm::pow(3.0 / x, 1.2),
        ),
        (
            "lomax",
            Distribution::Lomax {
                scale: 20_000.0,
                shape: 1.2,
            },
            |x| 1.0 - libm::pow(1.0 + x / 20_000.0, -1.2),
        ),
        (
            "log-normal",
            Distribution::LogNormal { mu: 1.0, sigma: 0.5 },
            |x| libm::erfc(-(libm::log(x) - 1.0) / 0.5 / core::f64::consts::SQRT_2) / 2.0,
        ),
        (
            "normal",
            Distribution::Normal {
                mean: 10.0,
                deviation: 4.0,
                min: 8.0,
            },
            |x| {
                let phi = |x: f64| libm::erfc(-(x - 10.0) / 4.0 / core::f64::consts::SQRT_2) / 2.0;
                (phi(x) - phi(8.0)) / (1.0 - phi(8.0))
            },
        ),
        (
            "weibull",
            Distribution::Weibull {
                scale: 2.0,
                shape: 0.7,
            },
            |x| 1.0 - libm::exp(-libm::pow(x / 2.0, 0.7)),
        ),
        (
            "empirical",
            Distribution::Empirical(Arc::new([(0.0, 0.0), (10.0, 0.5), (12.0, 0.6), (100.0, 1.0)])),
            |x| match x {
                ..10.0 => x / 20.0,
                10.0..12.0 => 0.5 + (x - 10.0) / 20.0,
                _ => 0.6 + (x - 12.0) / 220.0,
            },
        ),
    ]
}

#[test]
fn first_draws_are_the_golden_ones() {
    use core::fmt::Write as _;
    let mut table = alloc::string::String::new();
    for (name, distribution, _) in continuous() {
        write!(table, "{name:12}").expect("a string takes everything");
        for value in samples(&distribution, 4) {
            write!(table, " {value:<22?}").expect("a string takes everything");
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

/// Largest distance between the empirical and the true distribution function; below 1.95 / sqrt(n) in 999 of 1000
/// streams (Smirnov 1948), and the stream is fixed.
#[test]
fn draws_follow_their_distribution_function() {
    const COUNT: usize = 20_000;
    for (name, distribution, cdf) in continuous() {
        assert_eq!(distribution.validate(), Ok(()), "{name}");
        let mut drawn = samples(&distribution, COUNT);
        drawn.sort_by(f64::total_cmp);
        let n = COUNT as f64;
        let distance = drawn.iter().enumerate().fold(0.0_f64, |largest, (index, &x)| {
            let expected = cdf(x);
            largest
                .max((expected - index as f64 / n).abs())
                .max(((index + 1) as f64 / n - expected).abs())
        });
        assert!(distance < 1.95 / libm::sqrt(n), "{name}: distance {distance}");
    }
}

#[test]
fn means_are_those_of_the_draws() {
    for (name, distribution, _) in continuous() {
        let mean = distribution.mean().expect("all of these have one");
        // Tail index 1.2 has no variance: the mean of its draws says nothing, the table below does.
        if matches!(
            distribution,
            Distribution::Pareto { .. } | Distribution::Lomax { .. }
        ) {
            continue;
        }
        let drawn = samples(&distribution, 100_000).iter().sum::<f64>() / 100_000.0;
        assert!((drawn / mean - 1.0).abs() < 0.015, "{name}: {drawn} for {mean}");
    }
    let mean = |distribution: Distribution| distribution.mean();
    assert_eq!(
        mean(Distribution::Pareto {
            scale: 1.0,
            shape: 1.0
        }),
        None
    );
    assert_eq!(
        mean(Distribution::Lomax {
            scale: 1.0,
            shape: 0.5
        }),
        None
    );
    assert_eq!(
        mean(Distribution::Pareto {
            scale: 2.0,
            shape: 3.0
        }),
        Some(3.0)
    );
    assert_eq!(
        mean(Distribution::Lomax {
            scale: 2.0,
            shape: 3.0
        }),
        Some(1.0)
    );
    assert_eq!(
        mean(Distribution::List {
            values: Arc::new([1.0, 2.0, 6.0]),
            shuffle: false
        }),
        Some(3.0)
    );
    assert_eq!(mean(Distribution::Constant(7.0)), Some(7.0));
}

#[test]
fn lists_come_in_turn_or_shuffled() {
    let values: Arc<[f64]> = Arc::new([5.0, 3.0, 9.0]);
    let turn = Distribution::List {
        values: values.clone(),
        shuffle: false,
    };
    assert_eq!(samples(&turn, 7), [5.0, 3.0, 9.0, 5.0, 3.0, 9.0, 5.0]);
    let drawn = samples(
        &Distribution::List {
            values,
            shuffle: true,
        },
        9_000,
    );
    for value in [5.0, 3.0, 9.0] {
        let count = drawn.iter().filter(|&&x| x == value).count();
        assert!((2_800..3_200).contains(&count), "{value} came {count} times");
    }
}

#[test]
fn a_table_that_begins_above_zero_has_an_atom() {
    let table = Distribution::Empirical(Arc::new([(1.0, 0.5), (2.0, 1.0)]));
    let drawn = samples(&table, 10_000);
    let ones = drawn.iter().filter(|&&x| x == 1.0).count();
    assert!((4_800..5_200).contains(&ones), "{ones}");
    assert_eq!(table.mean(), Some(0.5 + 0.75));
    // A vertical step: two probabilities at one value, two values at one probability.
    let step = Distribution::Empirical(Arc::new([(1.0, 0.0), (1.0, 0.5), (3.0, 0.5), (3.0, 1.0)]));
    assert!(samples(&step, 1_000).iter().all(|&x| x == 1.0 || x == 3.0));
}

#[test]
fn the_same_seed_gives_the_same_draws_and_names_separate_streams() {
    for (_, distribution, _) in continuous() {
        assert_eq!(samples(&distribution, 100), samples(&distribution, 100));
    }
    let mut streams: Vec<u64> = [("a", "b"), ("ab", ""), ("", "ab"), ("b", "a"), ("a", "c")]
        .iter()
        .map(|(name, purpose)| Rng::for_element(1, name, purpose).next_u64())
        .chain([Rng::for_element(2, "a", "b").next_u64()])
        .collect();
    streams.sort_unstable();
    streams.dedup();
    assert_eq!(streams.len(), 6);
}

#[test]
fn what_cannot_be_drawn_from_is_refused() {
    let check = |distribution: Distribution| distribution.validate().expect_err("invalid");
    assert_eq!(
        check(Distribution::Exponential { mean: 0.0 }),
        DistributionError::NotPositive
    );
    assert_eq!(
        check(Distribution::Constant(f64::NAN)),
        DistributionError::NotFinite
    );
    assert_eq!(
        check(Distribution::Uniform { min: 2.0, max: 1.0 }),
        DistributionError::Reversed
    );
    assert_eq!(
        check(Distribution::LogNormal { mu: 0.0, sigma: -1.0 }),
        DistributionError::NotPositive
    );
    assert_eq!(
        check(Distribution::Normal {
            mean: 0.0,
            deviation: 1.0,
            min: 4.0
        }),
        DistributionError::Truncated
    );
    assert_eq!(
        check(Distribution::Empirical(Arc::new([]))),
        DistributionError::Empty
    );
    assert_eq!(
        check(Distribution::Empirical(Arc::new([(1.0, 0.5)]))),
        DistributionError::Probability
    );
    let falling = Distribution::Empirical(Arc::new([(2.0, 0.0), (1.0, 1.0)]));
    assert_eq!(check(falling), DistributionError::NotAscending);
    assert_eq!(
        check(Distribution::List {
            values: Arc::new([]),
            shuffle: true
        }),
        DistributionError::Empty
    );
}

#[test]
fn even_invalid_distributions_terminate_without_panic() {
    let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE];
    for a in odd {
        for b in odd {
            for distribution in [
                Distribution::Uniform { min: a, max: b },
                Distribution::Exponential { mean: a },
                Distribution::Pareto { scale: a, shape: b },
                Distribution::Lomax { scale: a, shape: b },
                Distribution::LogNormal { mu: a, sigma: b },
                Distribution::Normal {
                    mean: 0.0,
                    deviation: a,
                    min: b,
                },
                Distribution::Weibull { scale: a, shape: b },
                Distribution::Empirical(Arc::new([(a, b), (b, a)])),
                Distribution::Empirical(Arc::new([])),
                Distribution::List {
                    values: Arc::new([]),
                    shuffle: true,
                },
            ] {
                assert_eq!(samples(&distribution, 3).len(), 3);
                let _ = (distribution.mean(), distribution.validate());
            }
        }
    }
}
