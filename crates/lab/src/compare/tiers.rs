//! Tiers: variants that are equal within error, so that noise ranks nobody.
//!
//! What a variant is worth is its *net*: the share of time it saves less the harm it does (`harm`), both as shares of one.
//! One per cent of time saved for one per cent of harm is an even trade: a smooth one, without a limit of cost at which a
//! variant falls out. The best is the one with the largest net. Whoever is behind it by no more than the margin, or by a
//! difference that the seeds cannot distinguish from zero, is in its tier; the best of the rest begins the next tier.
//!
//! The margin is a twentieth of the best net, at least one percentage point: less than that nobody notices, and no number
//! of seeds makes it worth choosing by. Differences are paired: both variants saw the same arrivals.

use crate::statistics::interval_about;

/// Time saved less harm of one variant, and the same in every resample.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Net {
    /// Estimate.
    pub(super) value: f64,
    /// In each resample of the seeds.
    pub(super) resampled: Vec<f64>,
    /// Runs that have something of all that it is made of.
    pub(super) runs: usize,
}

/// How far a variant is behind another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Behind {
    /// Estimate.
    pub(super) value: f64,
    /// 95 % interval; without one, with fewer than two seeds, no two variants can be distinguished.
    pub(super) ci95: Option<[f64; 2]>,
}

/// What is known of a variant's place in the first tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    /// The variant is behind by less than the margin, whatever the seeds.
    Surely,
    /// The estimate says so.
    Likely,
    /// The estimate says no.
    Unlikely,
    /// The variant is behind by more than the margin, whatever the seeds.
    SurelyNot,
}

impl Net {
    /// How far this one is behind `best`, both of the same seeds.
    pub(super) fn behind(&self, best: &Net) -> Behind {
        let differences: Vec<f64> = best
            .resampled
            .iter()
            .zip(&self.resampled)
            .map(|(best, own)| best - own)
            .collect();
        let value = best.value - self.value;
        Behind {
            value,
            ci95: interval_about(value, differences, self.runs.min(best.runs)),
        }
    }
}

/// By how much one may be behind the best net and count as equal.
pub(super) fn margin(best: f64) -> f64 {
    (best / 20.0).max(0.01)
}

impl Behind {
    /// Whether a variant that is so far behind is in the tier, and how sure that is.
    pub(super) fn member(&self, margin: f64) -> Member {
        let Some([low, high]) = self.ci95 else {
            return Member::Likely;
        };
        match (self.value <= margin || low <= 0.0, high <= margin, low > margin) {
            (true, true, _) => Member::Surely,
            (true, false, _) => Member::Likely,
            (false, _, true) => Member::SurelyNot,
            (false, _, false) => Member::Unlikely,
        }
    }
}

impl Member {
    /// Whether it is one.
    pub(super) fn is_in(self) -> bool {
        matches!(self, Member::Surely | Member::Likely)
    }

    /// Whether more seeds could change it.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Member::Likely | Member::Unlikely)
    }
}

/// Tier of each candidate, from 1. `behind(best, other)` compares two of them.
pub(super) fn tiers(nets: &[f64], behind: &dyn Fn(usize, usize) -> Behind) -> Vec<u64> {
    let mut tier = vec![0; nets.len()];
    let mut left: Vec<usize> = (0..nets.len()).collect();
    left.sort_by(|&a, &b| nets[b].total_cmp(&nets[a]).then(a.cmp(&b)));
    let mut number = 0;
    while let Some(&best) = left.first() {
        number += 1;
        let margin = margin(nets[best]);
        left.retain(|&index| {
            let within = index == best || behind(best, index).member(margin).is_in();
            if within {
                tier[index] = number;
            }
            !within
        });
    }
    tier
}

/// Whether each point lies on the Pareto front: no other saves as much for less harm, or more for as much. Differences below
/// a tenth of a percentage point count as none.
pub(super) fn pareto(points: &[Option<(f64, f64)>]) -> Vec<bool> {
    const SAME: f64 = 0.001;
    points
        .iter()
        .map(|point| {
            let Some((win, harm)) = point else { return false };
            *win > 0.0
                && !points.iter().flatten().any(|(other_win, other_harm)| {
                    let better = other_win - win > SAME || harm - other_harm > SAME;
                    better && win - other_win <= SAME && other_harm - harm <= SAME
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(value: f64, error: f64) -> Behind {
        Behind {
            value,
            ci95: Some([value - error, value + error]),
        }
    }

    #[test]
    fn within_the_margin_or_within_error_is_in() {
        let margin = margin(0.6);
        assert!((margin - 0.03).abs() < 1e-12);
        assert_eq!(behind(0.01, 0.005).member(margin), Member::Surely);
        assert_eq!(behind(0.02, 0.02).member(margin), Member::Likely);
        // Beyond the margin, but not significantly different from zero.
        assert_eq!(behind(0.10, 0.11).member(margin), Member::Likely);
        assert_eq!(behind(0.05, 0.03).member(margin), Member::Unlikely);
        assert_eq!(behind(0.05, 0.01).member(margin), Member::SurelyNot);
        let alone = Behind {
            value: 0.5,
            ci95: None,
        };
        assert!(alone.member(margin).is_in() && alone.member(margin).is_open());
    }

    #[test]
    fn a_small_gain_has_a_small_margin() {
        assert!((margin(0.05) - 0.01).abs() < 1e-12);
        assert!((margin(-1.0) - 0.01).abs() < 1e-12);
    }

    #[test]
    fn the_best_of_the_rest_begins_the_next_tier() {
        let nets = [0.50, 0.60, 0.59, 0.30, 0.495];
        let behind = |best: usize, other: usize| behind(nets[best] - nets[other], 0.001);
        assert_eq!(tiers(&nets, &behind), [2, 1, 1, 3, 2]);
        assert!(tiers(&[], &behind).is_empty());
    }

    #[test]
    fn nothing_dominates_the_front() {
        let points = [
            Some((0.6, 0.05)),
            Some((0.5, 0.0)),
            Some((0.55, 0.05)),
            Some((0.4, 0.0)),
            None,
            Some((-0.1, 0.0)),
        ];
        assert_eq!(pareto(&points), [true, true, false, false, false, false]);
        // Equal ones are on it together.
        assert_eq!(pareto(&[Some((0.6, 0.0)), Some((0.6, 0.0005))]), [true, true]);
    }
}
