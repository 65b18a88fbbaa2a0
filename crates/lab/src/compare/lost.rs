//! Shares lost, resample by resample, and what a variant is worth after them.

use super::tiers::Net;
use crate::result::Ratio;
use crate::statistics::{LogRatio, Resamples, are_few, interval, interval_about};

/// A share lost, never below zero, as what is kept: 1 - kept.
#[derive(Debug)]
pub(super) struct Lost {
    /// Ratio of what is kept.
    kept: LogRatio,
}

/// What is lost of a ratio (`sign` 1: 1 - ratio) or of its inverse (`sign` -1: 1 - 1 / ratio). Where there was nothing to compare with,
/// nothing could be lost.
pub(super) fn lost(ratio: &LogRatio, sign: f64) -> Lost {
    Lost {
        kept: LogRatio {
            estimate: sign * ratio.estimate,
            runs: ratio.runs,
            resampled: ratio.resampled.iter().map(|log| sign * log).collect(),
        },
    }
}

impl Lost {
    /// A share that is lost whatever the seeds.
    pub(super) fn always(value: f64, resamples: &Resamples) -> Lost {
        let kept = libm::log(1.0 - value);
        Lost {
            kept: LogRatio {
                estimate: kept,
                runs: resamples.seeds(),
                resampled: vec![kept; resamples.rows().count()],
            },
        }
    }

    fn value(&self) -> f64 {
        share(self.kept.estimate).max(0.0)
    }

    fn resampled(&self) -> impl Iterator<Item = f64> {
        self.kept.resampled.iter().map(|&log| share(log).max(0.0))
    }

    /// The share with its interval: with few seeds that of what is kept, since a share that ends at zero varies by less than it is uncertain.
    pub(super) fn ratio(&self) -> Ratio {
        let runs = self.kept.runs;
        let ci95 = match are_few(runs) {
            true => interval_about(self.kept.estimate, self.kept.resampled.clone(), runs)
                .map(|[low, high]| [share(high), share(low)]),
            false => interval(self.resampled().collect(), runs),
        };
        let ci95 = ci95.map(|[low, high]| [low.max(0.0), high.clamp(0.0, 1.0)]);
        Ratio {
            value: self.value(),
            ci95,
            significant: ci95.is_some_and(|[low, _]| low > 0.0),
        }
    }

    /// The share in one resample, as it varies about the estimate: of few seeds, where something is lost, also below zero.
    fn varying(&self, index: usize, few: bool) -> f64 {
        let Some(&log) = self.kept.resampled.get(index) else {
            return 0.0;
        };
        match few && self.kept.estimate < 0.0 && !log.is_nan() {
            true => share(log),
            false => share(log).max(0.0),
        }
    }
}

/// The share that is lost where the logarithm of what is kept is this.
fn share(kept: f64) -> f64 {
    1.0 - libm::exp(kept)
}

/// The one with the largest estimate, and that same one in every resample. The largest of each resample would be another group by chance, so
/// that where nobody is harmed, somebody is in nearly every one. Where estimates are equal, the one that more is lost of on average.
pub(super) fn worst(harms: Vec<Lost>) -> Option<Lost> {
    let all = |harm: &Lost| harm.resampled().sum::<f64>();
    harms.into_iter().max_by(|a, b| {
        a.value()
            .total_cmp(&b.value())
            .then_with(|| all(a).total_cmp(&all(b)))
    })
}

/// Time saved less harm.
pub(super) fn net(win: &LogRatio, harm: Option<&Lost>) -> Net {
    let runs = harm.map_or(win.runs, |harm| win.runs.min(harm.kept.runs));
    let few = are_few(runs);
    Net {
        runs,
        value: share(win.estimate) - harm.map_or(0.0, Lost::value),
        resampled: win
            .resampled
            .iter()
            .enumerate()
            .map(|(index, &log)| share(log) - harm.map_or(0.0, |harm| harm.varying(index, few)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_harmed_most_is_the_same_in_every_resample() {
        // Two groups of which nothing is lost on average and 1 % more or less by chance, and one of which 0.4 % is: in each resample of the
        // table somebody has lost something, but of the third group, as of the others, some have none.
        let of = |value: f64, resampled: &[f64]| Lost {
            kept: LogRatio {
                estimate: libm::log(1.0 - value),
                runs: 10,
                resampled: resampled.iter().map(|lost| libm::log(1.0 - lost)).collect(),
            },
        };
        let harm = worst(vec![
            of(0.0, &[0.01, 0.0, 0.0, 0.01]),
            of(0.0, &[0.0, 0.01, 0.01, 0.0]),
            of(0.004, &[0.014, 0.0, 0.004, 0.0]),
        ])
        .expect("there are three");
        let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(near(harm.value(), 0.004), "{harm:?}");
        let mut each = harm.resampled().zip([0.014, 0.0, 0.004, 0.0]);
        assert!(each.all(|(one, other)| near(one, other)), "{harm:?}");
        let ratio = harm.ratio();
        assert!(
            !ratio.significant && ratio.ci95.is_some_and(|[low, _]| low == 0.0),
            "{ratio:?}"
        );
        assert!(worst(Vec::new()).is_none());
    }

    #[test]
    fn who_carries_nothing_in_most_runs_has_lost_nearly_all_in_every_resample() {
        // 2 % of it in three of ten runs, nothing in the others: 0.6 % of all. No resample keeps more than 2 %, and some nothing.
        let after: Vec<(f64, f64)> = (0..10)
            .map(|run| (if run < 3 { 0.02 } else { 0.0 }, 1.0))
            .collect();
        let before = [(1.0, 1.0); 10];
        let resamples = Resamples::new(7, 10, 4000);
        let ratio = resamples
            .mean_ratio(&after, &before)
            .expect("it carried something");
        let harm = lost(&ratio, 1.0).ratio();
        assert!((harm.value - 0.994).abs() < 1e-12, "{harm:?}");
        let [low, high] = harm.ci95.expect("ten seeds");
        assert!(low >= 0.98 && high == 1.0 && harm.significant, "{harm:?}");
    }

    /// Of two seeds one keeps 94 % and the other 102: 98 % by the geometric mean, half of log(102/94) = 4.1 % to either side is the standard
    /// error, and Student's t of one degree of freedom is 12.7. A share that ends at zero, 6, 2 and 0 %, had half of that spread on its upper side.
    #[test]
    fn the_interval_of_a_harm_of_few_seeds_is_that_of_what_is_kept() {
        let resamples = Resamples::new(7, 2, 4000);
        let after = [(0.94, 1.0), (1.02, 1.0)];
        let ratio = resamples
            .mean_ratio(&after, &[(1.0, 1.0); 2])
            .expect("it carried something");
        let kept = ratio.estimate().ci95.expect("two seeds");
        let of = |sign: f64| lost(&ratio, sign).ratio();
        let harm = of(1.0);
        let [low, high] = harm.ci95.expect("two seeds");
        assert!((harm.value - 0.02).abs() < 1e-12 && !harm.significant, "{harm:?}");
        assert_eq!((low, high), (0.0, 1.0 - kept[0]));
        let by_hand = 1.0 - 0.98 * libm::exp(-12.706 * libm::log(1.02 / 0.94) / 2.0);
        assert!((high - by_hand).abs() < 0.02, "{high} {by_hand}");
        // What is surely gained is surely not lost.
        let less = [(0.5, 1.0), (0.501, 1.0)];
        let ratio = resamples
            .mean_ratio(&less, &[(1.0, 1.0); 2])
            .expect("it took some time");
        let harm = lost(&ratio, -1.0).ratio();
        assert_eq!((harm.value, harm.ci95), (0.0, Some([0.0, 0.0])));
    }

    /// What is kept varies by as much below 1 as above it, and so does what a variant is worth after its harm.
    #[test]
    fn the_net_of_few_seeds_varies_with_all_that_is_kept() {
        let of = |seeds: usize| {
            let resamples = Resamples::new(7, seeds, 400);
            let after: Vec<(f64, f64)> = (0..seeds)
                .map(|run| (if run % 2 == 0 { 0.94 } else { 1.02 }, 1.0))
                .collect();
            let before = vec![(1.0, 1.0); seeds];
            let ratio = resamples
                .mean_ratio(&after, &before)
                .expect("it carried something");
            let same = resamples.mean_ratio(&before, &before).expect("it took some time");
            net(&same, Some(&lost(&ratio, 1.0)))
        };
        let best = |net: &Net| net.resampled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let few = of(2);
        assert!(
            (few.value + 0.02).abs() < 1e-12 && (best(&few) - 0.02).abs() < 1e-12,
            "{few:?}"
        );
        assert_eq!(best(&of(6)), 0.0);
    }
}
