//! A Bloom filter that is cleared at once: each word of 64 bits holds 48 bits of the filter and the stamp they were set under.

use crate::queue::work;
use alloc::vec;
use alloc::vec::Vec;

const BITS: u64 = 48;

/// One generation of the filter.
#[derive(Clone, Debug)]
pub(super) struct Bloom {
    words: Vec<u64>,
    stamp: u16,
    hashes: u32,
}

impl Bloom {
    /// For `expected` members with `bits` each and `hashes` probes.
    pub(super) fn new(expected: u64, bits: u32, hashes: u32) -> Bloom {
        let words = (expected.max(1) * u64::from(bits)).div_ceil(BITS);
        Bloom {
            words: vec![0; words as usize],
            stamp: 1,
            hashes,
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    pub(super) fn clear(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            // Once in 65,536 epochs: stamps are about to repeat.
            self.words.fill(0);
            self.stamp = 1;
        }
    }

    /// Word and mask of probe `index`: the two halves of one hash give all probes (Kirsch and Mitzenmacher 2006).
    fn probe(&self, fingerprint: u64, index: u32) -> (usize, u64) {
        let step = (fingerprint >> 32 | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = fingerprint
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
            .wrapping_add(step.wrapping_mul(u64::from(index)));
        let bits = self.words.len() as u64 * BITS;
        let bit = ((u128::from(hash) * u128::from(bits)) >> 64) as u64;
        ((bit / BITS) as usize, 1 << (bit % BITS))
    }

    pub(super) fn insert(&mut self, fingerprint: u64) {
        let stamp = u64::from(self.stamp) << BITS;
        for index in 0..self.hashes {
            work::step();
            let (word, mask) = self.probe(fingerprint, index);
            let old = self.words[word];
            let kept = if old >> BITS == u64::from(self.stamp) {
                old
            } else {
                stamp
            };
            self.words[word] = kept | mask;
        }
    }

    pub(super) fn contains(&self, fingerprint: u64) -> bool {
        (0..self.hashes).all(|index| {
            work::step();
            let (word, mask) = self.probe(fingerprint, index);
            self.words[word] >> BITS == u64::from(self.stamp) && self.words[word] & mask != 0
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Bloom;
    use crate::rng::Rng;

    /// Bits and hashes per super-packet, and false hits over two generations (docs/design/super-packets.md#bloom).
    #[test]
    fn false_positives_are_as_rare_as_the_sizes_promise() {
        for (bits, hashes, expected) in [(10, 7, 0.0163), (12, 8, 0.0063), (16, 11, 0.0009)] {
            let mut rng = Rng::from_seed(11);
            let mut generations = [Bloom::new(16_667, bits, hashes), Bloom::new(16_667, bits, hashes)];
            for generation in &mut generations {
                for _ in 0..16_667 {
                    generation.insert(rng.next_u64());
                }
            }
            const PROBES: u32 = 400_000;
            let hits = (0..PROBES)
                .filter(|_| {
                    let key = rng.next_u64();
                    generations.iter().any(|generation| generation.contains(key))
                })
                .count();
            let rate = hits as f64 / f64::from(PROBES);
            std::println!(
                "{bits} bits, {hashes} hashes: {:.2} % false positives, {} B per generation",
                100.0 * rate,
                generations[0].memory()
            );
            // Four standard deviations of the count, and 3 % for the model's own approximation.
            let deviation = 4.0 * (expected / f64::from(PROBES)).sqrt() + 0.03 * expected;
            assert!((rate - expected).abs() < deviation, "{rate} for {expected}");
        }
    }

    #[test]
    fn members_are_found_until_the_filter_is_cleared() {
        let mut bloom = Bloom::new(100, 10, 7);
        for generation in 0..70_000_u64 {
            // Past the wrap of the stamp.
            assert!(!bloom.contains(generation));
            bloom.insert(generation);
            assert!(bloom.contains(generation));
            bloom.clear();
        }
    }
}
