//! State as few bytes, for things that rest: one description of a structure both writes and reads it.
//!
//! A structure takes itself apart field by field and hands each to [`Pack`], which writes it, or replaces it by what was
//! written. So both directions follow one list, and the compiler finds a field that the list forgets. Nothing is lost:
//! numbers are whole, floating-point numbers keep their bits.

use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Writes numbers, or reads what was written.
pub(crate) struct Pack<'a> {
    written: Vec<u8>,
    /// What is left to read; `None` while writing.
    source: Option<&'a [u8]>,
}

impl<'a> Pack<'a> {
    pub(crate) fn writer() -> Pack<'static> {
        Pack {
            written: Vec::with_capacity(256),
            source: None,
        }
    }

    pub(crate) fn reader(source: &'a [u8]) -> Pack<'a> {
        Pack {
            written: Vec::new(),
            source: Some(source),
        }
    }

    /// What was written.
    pub(crate) fn finish(self) -> Box<[u8]> {
        self.written.into_boxed_slice()
    }

    /// Whether everything was read.
    #[cfg(debug_assertions)]
    pub(crate) fn at_end(&self) -> bool {
        self.source.is_none_or(<[u8]>::is_empty)
    }

    /// A number; small ones take little, and the largest, which often stands for "none", as little as zero.
    pub(crate) fn number(&mut self, value: &mut u64) {
        if let Some(source) = &mut self.source {
            let (mut read, mut shift) = (0_u64, 0);
            while let Some((&byte, rest)) = source.split_first() {
                *source = rest;
                read |= u64::from(byte & 127) << shift;
                shift += 7;
                if byte < 128 || shift > 63 {
                    break;
                }
            }
            *value = read.wrapping_sub(1);
            return;
        }
        let mut left = value.wrapping_add(1);
        while left > 127 {
            self.written.push(left as u8 | 128);
            left >>= 7;
        }
        self.written.push(left as u8);
    }

    /// A number that is mostly close to `base`.
    pub(crate) fn near(&mut self, base: u64, value: &mut u64) {
        let away = value.wrapping_sub(base) as i64;
        let mut folded = ((away << 1) ^ (away >> 63)) as u64;
        self.number(&mut folded);
        let away = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        *value = base.wrapping_add(away as u64);
    }

    pub(crate) fn word(&mut self, value: &mut u32) {
        let mut wide = u64::from(*value);
        self.number(&mut wide);
        *value = wide as u32;
    }

    pub(crate) fn half(&mut self, value: &mut u16) {
        let mut wide = u64::from(*value);
        self.number(&mut wide);
        *value = wide as u16;
    }

    pub(crate) fn byte(&mut self, value: &mut u8) {
        let mut wide = u64::from(*value);
        self.number(&mut wide);
        *value = wide as u8;
    }

    /// A number with a sign.
    pub(crate) fn signed(&mut self, value: &mut i32) {
        let mut wide = i64::from(*value) as u64;
        self.near(0, &mut wide);
        *value = wide as i64 as i32;
    }

    /// A wide number with a sign.
    pub(crate) fn integer(&mut self, value: &mut i64) {
        let mut wide = *value as u64;
        self.near(0, &mut wide);
        *value = wide as i64;
    }

    pub(crate) fn float(&mut self, value: &mut f64) {
        let mut bits = value.to_bits().swap_bytes(); // the low bits of a round number are zero
        self.number(&mut bits);
        *value = f64::from_bits(bits.swap_bytes());
    }

    pub(crate) fn bytes(&mut self, value: &mut Bytes) {
        self.number(&mut value.0);
    }

    pub(crate) fn duration(&mut self, value: &mut Duration) {
        let mut ns = value.as_nanos();
        self.number(&mut ns);
        *value = Duration::from_nanos(ns);
    }

    pub(crate) fn instant(&mut self, value: &mut Instant) {
        let mut ns = value.as_nanos();
        self.number(&mut ns);
        *value = Instant::from_nanos(ns);
    }

    /// Up to 64 flags.
    pub(crate) fn flags<const N: usize>(&mut self, values: [&mut bool; N]) {
        const { assert!(N <= 64, "a flag has a bit") };
        let mut bits = 0_u64;
        for (place, value) in values.iter().enumerate() {
            bits |= u64::from(**value) << place;
        }
        self.number(&mut bits);
        for (place, value) in values.into_iter().enumerate() {
            *value = bits >> place & 1 != 0;
        }
    }

    /// One of `all`.
    pub(crate) fn choice<T: Copy + PartialEq>(&mut self, all: &[T], value: &mut T) {
        let mut place = all.iter().position(|other| other == value).unwrap_or(0) as u64;
        self.number(&mut place);
        if let Some(&chosen) = all.get(place as usize) {
            *value = chosen;
        }
    }

    /// What may be there; `blank` makes a value for `inner` to fill.
    pub(crate) fn option<T>(
        &mut self,
        value: &mut Option<T>,
        blank: impl FnOnce() -> T,
        inner: impl FnOnce(&mut Pack<'a>, &mut T),
    ) {
        let mut there = value.is_some();
        self.flags([&mut there]);
        if there {
            inner(self, value.get_or_insert_with(blank));
        } else {
            *value = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pack;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn what_was_written_is_read(
            number in any::<u64>(), shift in 0_u32..64, base in any::<u64>(), float in any::<f64>(),
            signed in any::<i32>(), flags in any::<[bool; 5]>(), there in any::<Option<u16>>(),
        ) {
            let number = number >> shift;
            let mut written = (number, base.wrapping_add(number), float, signed, flags, there);
            let list = |pack: &mut Pack<'_>, all: &mut (u64, u64, f64, i32, [bool; 5], Option<u16>)| {
                pack.number(&mut all.0);
                pack.near(base, &mut all.1);
                pack.float(&mut all.2);
                pack.signed(&mut all.3);
                pack.flags(all.4.each_mut());
                pack.option(&mut all.5, || 0, Pack::half);
            };
            let mut pack = Pack::writer();
            list(&mut pack, &mut written);
            let bytes = pack.finish();
            let mut read = (1, 2, 3.0, 4, [false; 5], Some(6));
            let mut pack = Pack::reader(&bytes);
            list(&mut pack, &mut read);
            prop_assert_eq!(read.2.to_bits(), float.to_bits());
            (read.2, written.2) = (0.0, 0.0);
            prop_assert_eq!(read, written);
            prop_assert_eq!(read.1, base.wrapping_add(number));
            prop_assert_eq!(pack.source, Some(&[][..]));
        }
    }

    #[test]
    fn usual_values_take_a_byte() {
        for value in [0, 1, 100, u64::MAX] {
            let mut pack = Pack::writer();
            pack.number(&mut { value });
            assert_eq!(pack.finish().len(), 1, "{value}");
        }
        let mut pack = Pack::writer();
        pack.near(1 << 40, &mut { (1 << 40) - 7 });
        pack.float(&mut 0.0);
        pack.float(&mut 10.0);
        assert_eq!(pack.finish().len(), 1 + 1 + 2);
    }
}
