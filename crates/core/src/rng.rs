//! Random numbers: one seeded stream per (run seed, element name, purpose), so that adding an element does not shift
//! the draws of the others (docs/design/engine.md#random).
//!
//! **Source.** Xoshiro256++ seeded through SplitMix64 (Blackman and Vigna); names are hashed with 64-bit FNV-1a.
//! Samplers are inverse transforms over `libm`, so that the same seed gives the same bytes on every machine.

use alloc::sync::Arc;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// A stream of random numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream of `purpose` at the element called `name` in the run with seed `seed`.
    pub fn for_element(seed: u64, name: &str, purpose: &str) -> Rng {
        let hash = fnv1a(fnv1a(0xcbf2_9ce4_8422_2325, name.as_bytes()), &[0xff]);
        Rng::from_seed(seed ^ fnv1a(hash, purpose.as_bytes()).rotate_left(17))
    }

    /// The stream with this seed.
    pub fn from_seed(seed: u64) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// 32 random bits; a draw that is compared with a probability in Q0.32.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }

    /// Uniform in the half-open interval from 0 to 1, 53 bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `0..n`, without bias (Lemire's multiplication with rejection). Zero for `n = 0`.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let reject = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            if product as u64 >= reject {
                return (product >> 64) as u64;
            }
        }
    }

    /// Uniform in `0..n`; one draw, so with a bias of at most `n` / 2^32.
    pub(crate) fn scaled(&mut self, n: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(n)) >> 32) as u32
    }

    /// Standard normal variate: one of the pair of Box and Muller (1958); always two draws.
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.uniform_above_zero()));
        radius * libm::cos(2.0 * core::f64::consts::PI * self.uniform())
    }

    /// Exponential variate with this mean; one draw.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.uniform_above_zero())
    }

    /// Uniform above 0 up to and including 1: the argument of a logarithm.
    #[inline]
    fn uniform_above_zero(&mut self) -> f64 {
        1.0 - self.uniform()
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: Probability) -> bool {
        u64::from(self.next_u32()) < p.0
    }
}

/// A probability in Q0.32: 2^32 is certainty. Comparing integers keeps draws equal on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(1 << 32);

    /// The nearest Q0.32 value to `p`, held between 0 and 1; not-a-number is 0.
    pub fn from_f64(p: f64) -> Probability {
        Probability(libm::round(p.clamp(0.0, 1.0) * 4_294_967_296.0) as u64)
    }

    /// As a number between 0 and 1.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 4_294_967_296.0
    }

    /// Whether it is exactly 0: no draw is needed.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// A distribution of sizes (bytes), times (seconds) or whatever the name beside it says.
///
/// All samplers are inverse transforms over `libm`, one or two uniform draws each. Empirical tables interpolate
/// linearly between their points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Distribution {
    /// Always this.
    Constant(f64),
    /// Between two values.
    Uniform {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// With this mean; the gaps of a Poisson process.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// P(X > x) = (scale / x)^shape for x >= scale.
    Pareto {
        /// Smallest value.
        scale: f64,
        /// Tail index.
        shape: f64,
    },
    /// P(X > x) = (1 + x / scale)^-shape.
    Lomax {
        /// Scale.
        scale: f64,
        /// Tail index.
        shape: f64,
    },
    /// exp of a normal variate.
    LogNormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Deviation of the logarithm.
        sigma: f64,
    },
    /// Normal, never below `min`.
    Normal {
        /// Mean before truncation.
        mean: f64,
        /// Deviation before truncation.
        deviation: f64,
        /// Draws below it are drawn again.
        min: f64,
    },
    /// P(X > x) = exp(-(x / scale)^shape).
    Weibull {
        /// Scale.
        scale: f64,
        /// Shape.
        shape: f64,
    },
    /// Points (value, cumulative probability), ascending, the last probability 1. The first value has the first
    /// probability for itself alone; begin with probability 0 for none.
    Empirical(Arc<[(f64, f64)]>),
    /// These values in turn, then from the beginning; for lists. Drawn at random with `shuffle`.
    List {
        /// The values.
        values: Arc<[f64]>,
        /// Draw at random with replacement instead of in turn.
        shuffle: bool,
    },
}

impl Distribution {
    /// Checks what the sampler relies on.
    ///
    /// # Errors
    /// The first thing wrong with it.
    pub fn validate(&self) -> Result<(), DistributionError> {
        let finite = |values: &[f64]| {
            if values.iter().all(|value| value.is_finite()) {
                Ok(())
            } else {
                Err(DistributionError::NotFinite)
            }
        };
        let positive = |values: &[f64]| {
            finite(values)?;
            if values.iter().all(|&value| value > 0.0) {
                Ok(())
            } else {
                Err(DistributionError::NotPositive)
            }
        };
        match self {
            Distribution::Constant(value) => finite(&[*value]),
            Distribution::Uniform { min, max } => {
                finite(&[*min, *max])?;
                if min <= max {
                    Ok(())
                } else {
                    Err(DistributionError::Reversed)
                }
            }
            Distribution::Exponential { mean } => positive(&[*mean]),
            Distribution::Pareto { scale, shape }
            | Distribution::Lomax { scale, shape }
            | Distribution::Weibull { scale, shape } => positive(&[*scale, *shape]),
            Distribution::LogNormal { mu, sigma } => {
                finite(&[*mu, *sigma])?;
                if *sigma >= 0.0 {
                    Ok(())
                } else {
                    Err(DistributionError::NotPositive)
                }
            }
            Distribution::Normal { mean, deviation, min } => {
                finite(&[*mean, *deviation, *min])?;
                if *deviation < 0.0 {
                    return Err(DistributionError::NotPositive);
                }
                // Above three deviations nearly every draw would be drawn again.
                if *min > mean + 3.0 * deviation {
                    Err(DistributionError::Truncated)
                } else {
                    Ok(())
                }
            }
            Distribution::Empirical(points) => {
                for (value, probability) in points.iter() {
                    finite(&[*value, *probability])?;
                }
                let Some((first, last)) = points.first().zip(points.last()) else {
                    return Err(DistributionError::Empty);
                };
                if first.1 < 0.0 || last.1 != 1.0 {
                    return Err(DistributionError::Probability);
                }
                if points
                    .windows(2)
                    .any(|pair| pair[0].0 > pair[1].0 || pair[0].1 > pair[1].1)
                {
                    return Err(DistributionError::NotAscending);
                }
                Ok(())
            }
            Distribution::List { values, .. } => {
                if values.is_empty() {
                    Err(DistributionError::Empty)
                } else {
                    finite(values)
                }
            }
        }
    }

    /// The distribution of `factor` times the value.
    pub fn scaled(&self, factor: f64) -> Distribution {
        match self {
            Distribution::Constant(value) => Distribution::Constant(value * factor),
            Distribution::Uniform { min, max } => Distribution::Uniform {
                min: min * factor,
                max: max * factor,
            },
            Distribution::Exponential { mean } => Distribution::Exponential { mean: mean * factor },
            Distribution::Pareto { scale, shape } => Distribution::Pareto {
                scale: scale * factor,
                shape: *shape,
            },
            Distribution::Lomax { scale, shape } => Distribution::Lomax {
                scale: scale * factor,
                shape: *shape,
            },
            Distribution::LogNormal { mu, sigma } => Distribution::LogNormal {
                mu: mu + libm::log(factor),
                sigma: *sigma,
            },
            Distribution::Normal { mean, deviation, min } => Distribution::Normal {
                mean: mean * factor,
                deviation: deviation * factor,
                min: min * factor,
            },
            Distribution::Weibull { scale, shape } => Distribution::Weibull {
                scale: scale * factor,
                shape: *shape,
            },
            Distribution::Empirical(points) => {
                Distribution::Empirical(points.iter().map(|&(value, p)| (value * factor, p)).collect())
            }
            Distribution::List { values, shuffle } => Distribution::List {
                values: values.iter().map(|value| value * factor).collect(),
                shuffle: *shuffle,
            },
        }
    }

    /// The mean, `None` where it is infinite (Pareto and Lomax with a tail index up to 1).
    pub fn mean(&self) -> Option<f64> {
        Some(match self {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { min, max } => (min + max) / 2.0,
            Distribution::Exponential { mean } => *mean,
            Distribution::Pareto { shape, .. } | Distribution::Lomax { shape, .. } if *shape <= 1.0 => {
                return None;
            }
            Distribution::Pareto { scale, shape } => scale * shape / (shape - 1.0),
            Distribution::Lomax { scale, shape } => scale / (shape - 1.0),
            Distribution::LogNormal { mu, sigma } => libm::exp(mu + sigma * sigma / 2.0),
            Distribution::Normal { mean, deviation, min } if *deviation == 0.0 => mean.max(*min),
            Distribution::Normal { mean, deviation, min } => {
                // Mean of a normal variate truncated from below.
                let a = (min - mean) / deviation;
                let density = libm::exp(-a * a / 2.0) / libm::sqrt(2.0 * core::f64::consts::PI);
                mean + deviation * density / (libm::erfc(a / core::f64::consts::SQRT_2) / 2.0)
            }
            Distribution::Weibull { scale, shape } => scale * libm::tgamma(1.0 + 1.0 / shape),
            Distribution::Empirical(points) => {
                let atom = points.first().map_or(0.0, |first| first.0 * first.1);
                let pieces = points.windows(2);
                atom + pieces
                    .map(|pair| (pair[1].1 - pair[0].1) * (pair[0].0 + pair[1].0) / 2.0)
                    .sum::<f64>()
            }
            Distribution::List { values, .. } => values.iter().sum::<f64>() / values.len().max(1) as f64,
        })
    }
}

/// What is wrong with a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistributionError {
    /// A parameter is infinite or not a number.
    NotFinite,
    /// A mean, scale, shape or deviation is not positive.
    NotPositive,
    /// The smallest value is above the largest.
    Reversed,
    /// The lower bound cuts nearly everything away.
    Truncated,
    /// No points or values.
    Empty,
    /// The table's values or probabilities do not ascend.
    NotAscending,
    /// The table's probabilities do not end at 1, or begin below 0.
    Probability,
}

impl core::fmt::Display for DistributionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            DistributionError::NotFinite => "a parameter is infinite or not a number",
            DistributionError::NotPositive => "a mean, scale, shape or deviation is not positive",
            DistributionError::Reversed => "the smallest value is above the largest",
            DistributionError::Truncated => "the lower bound is more than three deviations above the mean",
            DistributionError::Empty => "there are no values",
            DistributionError::NotAscending => "values and cumulative probabilities must ascend",
            DistributionError::Probability => {
                "cumulative probabilities must begin at 0 or above and end at 1"
            }
        })
    }
}

impl core::error::Error for DistributionError {}

/// Draws from a distribution, with its own stream and its place in a list.
#[derive(Clone, Debug)]
pub struct Sampler {
    distribution: Distribution,
    rng: Rng,
    /// Index of the next value of a list.
    next: usize,
}

impl Sampler {
    /// A sampler at the beginning of its stream and list. A distribution that does not [`Distribution::validate`]
    /// gives meaningless values, but never a panic or an endless loop.
    pub const fn new(distribution: Distribution, rng: Rng) -> Sampler {
        Sampler {
            distribution,
            rng,
            next: 0,
        }
    }

    /// What it draws from.
    pub const fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// The next value.
    pub fn sample(&mut self) -> f64 {
        let rng = &mut self.rng;
        match &self.distribution {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { min, max } => min + (max - min) * rng.uniform(),
            Distribution::Exponential { mean } => rng.exponential(*mean),
            Distribution::Pareto { scale, shape } => {
                scale * libm::pow(rng.uniform_above_zero(), -1.0 / shape)
            }
            Distribution::Lomax { scale, shape } => {
                scale * libm::expm1(-libm::log(rng.uniform_above_zero()) / shape)
            }
            Distribution::LogNormal { mu, sigma } => libm::exp(mu + sigma * rng.normal()),
            Distribution::Normal { mean, deviation, min } => {
                for _ in 0..MAX_TRUNCATION_DRAWS {
                    let value = mean + deviation * rng.normal();
                    if value >= *min {
                        return value;
                    }
                }
                *min
            }
            Distribution::Weibull { scale, shape } => scale * libm::pow(rng.exponential(1.0), 1.0 / shape),
            Distribution::Empirical(points) => interpolate(points, rng.uniform()),
            Distribution::List { values, .. } if values.is_empty() => 0.0,
            Distribution::List {
                values,
                shuffle: true,
            } => values[rng.below(values.len() as u64) as usize],
            Distribution::List {
                values,
                shuffle: false,
            } => {
                let value = values[self.next];
                self.next = (self.next + 1) % values.len();
                value
            }
        }
    }
}

/// The value at cumulative probability `u`, linear between the points of the table.
fn interpolate(points: &[(f64, f64)], u: f64) -> f64 {
    let above = points.partition_point(|point| point.1 <= u);
    match (
        above.checked_sub(1).and_then(|below| points.get(below)),
        points.get(above),
    ) {
        (Some(low), Some(high)) => low.0 + (high.0 - low.0) * ((u - low.1) / (high.1 - low.1)),
        (None, Some(end)) | (Some(end), None) => end.0,
        (None, None) => 0.0,
    }
}

/// Draws of a truncated normal variate before it is held at its bound. With a valid distribution at least one draw in
/// 741 is accepted, so the bound is reached with probability below 10^-5 at worst and never in ordinary use.
const MAX_TRUNCATION_DRAWS: u32 = 10_000;

fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests;
