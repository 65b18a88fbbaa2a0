//! Shares lost, resample by resample, and what a variant is worth after them.

use super::tiers::Net;
use crate::result::Ratio;
use crate::statistics::{LogRatio, Resamples};

/// A share lost, and the same in every resample; never below zero.
#[derive(Debug)]
pub(super) struct Lost {
    value: f64,
    resampled: Vec<f64>,
}

/// What is lost of a ratio (`sign` 1: 1 - ratio) or of its inverse (`sign` -1: 1 - 1 / ratio). Where there was nothing to compare with,
/// nothing could be lost.
pub(super) fn lost(ratio: &LogRatio, sign: f64) -> Lost {
    let of = |log: f64| (1.0 - libm::exp(sign * log)).max(0.0);
    Lost {
        value: of(ratio.estimate),
        resampled: ratio.resampled.iter().map(|&log| of(log)).collect(),
    }
}

impl Lost {
    /// A share that is lost whatever the seeds.
    pub(super) fn always(value: f64, resamples: &Resamples) -> Lost {
        Lost {
            value,
            resampled: vec![value; resamples.rows().count()],
        }
    }

    pub(super) fn ratio(&self, resamples: &Resamples) -> Ratio {
        let ci95 = resamples
            .interval_about(self.value, self.resampled.clone())
            .map(|[low, high]| [low.max(0.0), high.min(1.0)]);
        Ratio {
            value: self.value,
            ci95,
            significant: ci95.is_some_and(|[low, _]| low > 0.0),
        }
    }
}

/// The one with the largest estimate, and that same one in every resample. The largest of each resample would be another group by chance, so
/// that where nobody is harmed, somebody is in nearly every one. Where estimates are equal, the one that more is lost of on average.
pub(super) fn worst(harms: Vec<Lost>) -> Option<Lost> {
    let all = |harm: &Lost| harm.resampled.iter().sum::<f64>();
    harms.into_iter().max_by(|a, b| {
        a.value
            .total_cmp(&b.value)
            .then_with(|| all(a).total_cmp(&all(b)))
    })
}

/// Time saved less harm.
pub(super) fn net(win: &LogRatio, harm: Option<&Lost>) -> Net {
    let saved = |log: f64| 1.0 - libm::exp(log);
    Net {
        value: saved(win.estimate) - harm.map_or(0.0, |harm| harm.value),
        resampled: win
            .resampled
            .iter()
            .enumerate()
            .map(|(index, &log)| {
                let harm = harm.and_then(|harm| harm.resampled.get(index));
                saved(log) - harm.copied().unwrap_or(0.0)
            })
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
            value,
            resampled: resampled.to_vec(),
        };
        let harm = worst(vec![
            of(0.0, &[0.01, 0.0, 0.0, 0.01]),
            of(0.0, &[0.0, 0.01, 0.01, 0.0]),
            of(0.004, &[0.014, 0.0, 0.004, 0.0]),
        ])
        .expect("there are three");
        assert_eq!(
            (harm.value, harm.resampled.as_slice()),
            (0.004, &[0.014, 0.0, 0.004, 0.0][..])
        );
        let ratio = harm.ratio(&Resamples::new(7, 10, 4));
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
        let harm = lost(&ratio, 1.0).ratio(&resamples);
        assert!((harm.value - 0.994).abs() < 1e-12, "{harm:?}");
        let [low, high] = harm.ci95.expect("ten seeds");
        assert!(low >= 0.98 && high == 1.0 && harm.significant, "{harm:?}");
    }
}
