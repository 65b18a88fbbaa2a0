//! Random numbers: one seeded stream per (run seed, element name, purpose), so that adding an element does not shift
//! the draws of the others (engine rule 8).
//!
//! **Source.** Xoshiro256++ seeded through SplitMix64 (Blackman and Vigna); names are hashed with 64-bit FNV-1a.
//! Samplers are inverse transforms over `libm`, so that the same seed gives the same bytes on every machine.

use alloc::sync::Arc;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers.
#[derive(Clone, Debug)]
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

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: Probability) -> bool {
        u64::from(self.next_u32()) < p.0
    }
}

/// A probability in Q0.32: 2^32 is certainty. Comparing integers keeps draws equal on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
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
#[derive(Clone, Debug, PartialEq)]
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
    /// Points (value, cumulative probability), ascending, the last probability 1.
    Empirical(Arc<[(f64, f64)]>),
    /// These values in turn, then from the beginning; for lists. Drawn at random with `shuffle`.
    List {
        /// The values.
        values: Arc<[f64]>,
        /// Draw at random with replacement instead of in turn.
        shuffle: bool,
    },
}

fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}
