//! TCP sequence numbers: 32 bits that wrap, compared by signed distance (RFC 9293 3.4).

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use serde::{Deserialize, Serialize};

/// A sequence number. Ordering is meaningful only between numbers less than 2^31 apart, so `Ord` is not implemented:
/// use [`SeqNumber::lt`] and its siblings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// Signed distance `self - other` modulo 2^32.
    #[inline]
    pub const fn distance(self, other: SeqNumber) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// `self` is before `other`.
    #[inline]
    pub const fn lt(self, other: SeqNumber) -> bool {
        self.distance(other) < 0
    }

    /// `self` is before `other` or equal.
    #[inline]
    pub const fn le(self, other: SeqNumber) -> bool {
        self.distance(other) <= 0
    }

    /// `self` is after `other`.
    #[inline]
    pub const fn gt(self, other: SeqNumber) -> bool {
        self.distance(other) > 0
    }

    /// `self` is after `other` or equal.
    #[inline]
    pub const fn ge(self, other: SeqNumber) -> bool {
        self.distance(other) >= 0
    }

    /// The 64-bit stream offset nearest to `near` whose low 32 bits, counted from `origin`, are this number.
    ///
    /// This is how streams beyond 4 GiB are followed: offsets are 64 bits inside, 32 bits on the wire.
    #[inline]
    pub const fn to_offset(self, origin: SeqNumber, near: u64) -> i64 {
        let low = self.0.wrapping_sub(origin.0);
        let difference = low.wrapping_sub(near as u32) as i32;
        near as i64 + difference as i64
    }

    /// The number on the wire for 64-bit offset `offset` of a stream that begins at `origin`.
    #[inline]
    pub const fn from_offset(origin: SeqNumber, offset: u64) -> SeqNumber {
        SeqNumber(origin.0.wrapping_add(offset as u32))
    }
}

impl Add<u32> for SeqNumber {
    type Output = SeqNumber;
    #[inline]
    fn add(self, n: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_add(n))
    }
}

impl AddAssign<u32> for SeqNumber {
    #[inline]
    fn add_assign(&mut self, n: u32) {
        self.0 = self.0.wrapping_add(n);
    }
}

impl Sub<u32> for SeqNumber {
    type Output = SeqNumber;
    #[inline]
    fn sub(self, n: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_sub(n))
    }
}

impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::SeqNumber;

    #[test]
    fn order_wraps() {
        let before = SeqNumber(u32::MAX - 5);
        let after = before + 10;
        assert!(before.lt(after) && after.gt(before) && before.le(before) && before.ge(before));
        assert_eq!(after.distance(before), 10);
    }

    #[test]
    fn offsets_follow_a_stream_past_four_gibibytes() {
        let origin = SeqNumber(u32::MAX - 999);
        for offset in [
            0_u64,
            1,
            999,
            1000,
            1 << 31,
            (1 << 32) - 1,
            1 << 32,
            (1 << 32) + 1,
            7 << 32,
        ] {
            let wire = SeqNumber::from_offset(origin, offset);
            for near in [offset, offset + 1_000_000, offset.saturating_sub(1_000_000)] {
                assert_eq!(wire.to_offset(origin, near), offset as i64);
            }
        }
        assert_eq!(SeqNumber(4).to_offset(SeqNumber(5), 0), -1);
    }
}
