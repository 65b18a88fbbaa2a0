//! Which percentile of the slowest a comparison may speak of.
//!
//! A percentile is an order statistic: beyond the 99th of a hundred members there is one, and a bootstrap can only return members that are
//! there. Simulated with exponential and lognormal times, the 95 % range of resamples of the 99th percentile of 110 members covers the true value in
//! 66 to 69 %, and the ratio of such percentiles of 80 and of 240 members with the same distribution is 6 to 10 % too small. With [`BEYOND`] members
//! beyond the percentile in the smaller sample the range covers 91 to 94 %, and the ratio is 1 to 2 % too small.

/// Members of each sample that must lie beyond a percentile that is compared.
pub const BEYOND: usize = 10;

/// Percentiles that are compared, the highest first, each with one over the share beyond it.
const LEVELS: [(f64, usize); 3] = [(0.99, 100), (0.95, 20), (0.9, 10)];

/// The highest of the levels 0.99, 0.95 and 0.9 beyond which at least [`BEYOND`] members of each sample lie, whose sizes these are; `None` where
/// there is none: with fewer than a hundred members, or without a sample.
pub fn tail_level(sizes: &[usize]) -> Option<f64> {
    let smallest = sizes.iter().copied().min()?;
    let borne = |&&(_, share): &&(f64, usize)| smallest >= BEYOND * share;
    LEVELS.iter().find(borne).map(|&(level, _)| level)
}

#[cfg(test)]
mod tests {
    use super::tail_level;

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
            assert_eq!(tail_level(&sizes), level, "{sizes:?}");
        }
        assert_eq!(tail_level(&[]), None);
    }
}
