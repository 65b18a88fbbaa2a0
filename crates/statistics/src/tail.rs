//! Which percentile of the slowest a comparison may speak of.
//!
//! A percentile is an order statistic: beyond the 99th of a hundred members there is one, and a bootstrap can only return members that are
//! there. Simulated with exponential and lognormal times, the 95 % range of resamples of the 99th percentile of 110 members covers the true value in
//! 66 to 69 %, and the ratio of such percentiles of 80 and of 240 members with the same distribution is 6 to 10 % too small. With [`BEYOND`] members
//! beyond the percentile in the smaller sample the range covers 91 to 94 %, and the ratio is 1 to 2 % too small.
//!
//! Of members that did not complete it is only known that they take longer than until the end: a percentile that lies among them is that of no
//! sample, and the same in every resample. So they may be no more than half of what lies beyond it.

/// Members of each sample that must lie beyond a percentile that is compared.
pub const BEYOND: usize = 10;

/// Percentiles that are compared, the highest first, each with one over the share beyond it.
const LEVELS: [(f64, usize); 3] = [(0.99, 100), (0.95, 20), (0.9, 10)];

/// The highest of the levels 0.99, 0.95 and 0.9 beyond which at least [`BEYOND`] members of each sample lie, at most half of them unfinished. Of each
/// sample this is how many it has, and how many of them did not complete. `None` where there is none: with fewer than a hundred members, or
/// without a sample.
pub fn tail_level(samples: &[(usize, usize)]) -> Option<f64> {
    let borne = |share: usize| {
        let mut samples = samples.iter();
        samples.all(|&(all, unfinished)| all >= BEYOND * share && 2 * unfinished * share <= all)
    };
    let mut levels = LEVELS.iter().filter(|_| !samples.is_empty());
    levels.find(|&&(_, share)| borne(share)).map(|&(level, _)| level)
}

/// The highest of these levels beyond which a sample of so many members has any, all of which are beyond those that completed; `None` with fewer than ten,
/// or where a tenth did not complete.
pub fn level_shown(all: u64, unfinished: u64) -> Option<f64> {
    let shown = |&&(_, share): &&(f64, usize)| all >= share as u64 && unfinished * (share as u64) < all;
    LEVELS.iter().find(shown).map(|&(level, _)| level)
}

#[cfg(test)]
mod tests {
    use super::{level_shown, tail_level};

    #[test]
    fn ten_members_of_both_lie_beyond_the_percentile_that_is_compared() {
        for (sizes, level) in [
            ([1_000, 1_000], Some(0.99)),
            ([999, 5_000], Some(0.95)),
            ([200, 200], Some(0.95)),
            ([199, 200], Some(0.9)),
            ([5_000, 109], Some(0.9)),
            ([100, 100], Some(0.9)),
            ([99, 5_000], None),
            ([0, 0], None),
        ] {
            let samples = sizes.map(|size| (size, 0));
            assert_eq!(tail_level(&samples), level, "{sizes:?}");
        }
        assert_eq!(tail_level(&[]), None);
    }

    #[test]
    fn no_percentile_lies_among_what_did_not_complete() {
        for (unfinished, level) in [
            ([0, 10], Some(0.99)),
            ([11, 0], Some(0.95)),
            ([0, 50], Some(0.95)),
            ([51, 0], Some(0.9)),
            ([100, 100], Some(0.9)),
            ([0, 101], None),
        ] {
            let samples = unfinished.map(|unfinished| (2_000, unfinished));
            assert_eq!(tail_level(&samples), level, "{unfinished:?}");
        }
        for (all, unfinished, level) in [
            (100, 0, Some(0.99)),
            (100, 1, Some(0.95)),
            (99, 0, Some(0.95)),
            (10, 0, Some(0.9)),
            (10, 1, None),
            (9, 0, None),
        ] {
            assert_eq!(level_shown(all, unfinished), level, "{unfinished} of {all}");
        }
    }
}
