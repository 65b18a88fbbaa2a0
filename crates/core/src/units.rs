//! Amounts and speeds: `Bytes` and `Rate`.

use crate::time::Duration;
use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use serde::{Deserialize, Serialize};

/// A number of bytes (of payload, at layer 3, or of a window, as the name beside it says).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);
    /// More than any buffer; "unlimited".
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// The number.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self - other`, not below zero.
    #[inline]
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// `self + other`, held at `MAX`.
    #[inline]
    pub const fn saturating_add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }

    /// `self * numerator / denominator` in 128 bits, rounded down.
    #[inline]
    pub const fn mul_div(self, numerator: u64, denominator: u64) -> Bytes {
        Bytes((self.0 as u128 * numerator as u128 / denominator as u128) as u64)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    #[inline]
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    #[inline]
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    #[inline]
    fn mul(self, n: u64) -> Bytes {
        Bytes(self.0 * n)
    }
}

impl Div<u64> for Bytes {
    type Output = Bytes;
    #[inline]
    fn div(self, n: u64) -> Bytes {
        Bytes(self.0 / n)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

/// A speed, in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Rate(pub u64);

impl Rate {
    /// No limit: serialisation takes no time.
    pub const UNLIMITED: Rate = Rate(u64::MAX);

    /// A rate of `bps` bits per second.
    #[inline]
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// Bits per second.
    #[inline]
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Time that `bytes` take at this rate, rounded down to the nanosecond; `ZERO` when unlimited.
    #[inline]
    pub const fn time_for(self, bytes: Bytes) -> Duration {
        if self.0 == u64::MAX || self.0 == 0 {
            return Duration::ZERO;
        }
        let bits_ns = bytes.0 as u128 * 8_000_000_000;
        Duration::from_nanos((bits_ns / self.0 as u128) as u64)
    }

    /// Whole bytes that fit into `span` at this rate.
    #[inline]
    pub const fn bytes_in(self, span: Duration) -> Bytes {
        Bytes((self.0 as u128 * span.as_nanos() as u128 / 8_000_000_000) as u64)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => write!(f, "unlimited"),
            bps @ 1_000_000_000.. => write!(f, "{} Gbit/s", bps as f64 / 1e9),
            bps @ 1_000_000.. => write!(f, "{} Mbit/s", bps as f64 / 1e6),
            bps @ 1_000.. => write!(f, "{} kbit/s", bps as f64 / 1e3),
            bps => write!(f, "{bps} bit/s"),
        }
    }
}
