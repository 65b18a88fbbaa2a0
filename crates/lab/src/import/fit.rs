//! How well the scenario that an import wrote fits the recording: it is replayed once, and the times that came out are held
//! against the times that were seen.
//!
//! The two distributions are compared quantile by quantile: what a replayed quantile is more or less than the recorded one, as
//! a share of it, on average over all quantiles.
//!
//! **Source.** None; it is the first Wasserstein distance between the logarithms of the times.
//! **Deviations.** It is told as a difference, not tested: a replay has the same connections as the recording, so the two are no
//! independent samples, and with enough of them every difference would be significant. Times have three digits.

use super::files::Imported;
use super::summary::Quantiles;
use crate::run::simulate;
use crate::scenario::{Scenario, Setting};
use fleetfoot_sim::output::Histogram;
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

/// A recording and its replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Times of exchanges, without what applications waited.
    pub exchange_s: Likeness,
    /// From the first SYN of a connection to its last byte.
    pub connection_s: Likeness,
    /// Retransmitted shares of segments: recorded and replayed, both directions together.
    pub retransmitted: [f64; 2],
}

/// The same sample of a recording and of its replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Likeness {
    /// As recorded; `None` if there was nothing.
    pub recorded: Option<Quantiles>,
    /// As replayed.
    pub replayed: Option<Quantiles>,
    /// By how much the quantiles differ, on average, as a share: 0.1 is a tenth more or less. `None` without times.
    pub difference: Option<f64>,
}

impl Fit {
    /// Replays what was imported once; `None`: of a file of vectors no times are known, or `stop` was set.
    ///
    /// # Errors
    /// The scenario that was written cannot be run.
    pub fn of(imported: &Imported, stop: &AtomicBool) -> Result<Option<Fit>, String> {
        let summary = &imported.summary;
        if summary.connection_counts.is_empty() {
            return Ok(None);
        }
        let scenario = Scenario::load(&imported.scenario).map_err(|error| error.to_string())?;
        let resolved = scenario
            .resolve(&Setting::none())
            .map_err(|error| error.to_string())?;
        let output = simulate(&resolved.spec(1), stop)?;
        if output.interrupted {
            return Ok(None);
        }
        let (mut exchange, mut connection) = (Histogram::new(), Histogram::new());
        let (mut segments, mut again) = (0, 0);
        for group in &output.groups {
            for flow in &group.flows {
                segments += u64::from(flow.segments_sent);
                again += u64::from(flow.retransmits);
                if let Some(completed) = flow.completed {
                    exchange.record(completed.since(flow.start).as_nanos());
                }
            }
            for took in &group.connections {
                connection.record((took * 1e9) as u64);
            }
        }
        let recorded = summary.segments.iter();
        let (all, retransmitted) = recorded.fold((0, 0), |sums, one| {
            (sums.0 + one.segments, sums.1 + one.retransmitted)
        });
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        Ok(Some(Fit {
            exchange_s: Likeness::of(summary.exchange_s, &summary.exchange_counts, &exchange),
            connection_s: Likeness::of(summary.connection_s, &summary.connection_counts, &connection),
            retransmitted: [share(retransmitted, all), share(again, segments)],
        }))
    }

    /// The text that is printed.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "Fit: this scenario, replayed once, beside the recording\n{:<24}{:>9}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
            "", "n", "mean", "p10", "p50", "p90", "p99"
        );
        for (name, likeness) in [("Exchange", &self.exchange_s), ("Connection", &self.connection_s)] {
            for (what, sample) in [("recorded", &likeness.recorded), ("replayed", &likeness.replayed)] {
                let Some(s) = sample else { continue };
                let name = format!("{name}, {what}");
                let _ = write!(text, "{name:<24}{:>9}", super::summary::count(s.n));
                for value in [s.mean, s.p10, s.p50, s.p90, s.p99] {
                    let _ = write!(text, "{:>10}", super::summary::time(value));
                }
                text.push('\n');
            }
        }
        let percent = |likeness: &Likeness| match likeness.difference {
            Some(share) => format!("{:.1} %", share * 100.0),
            None => String::from("-"),
        };
        let _ = writeln!(
            text,
            "Retransmitted: {:.2} % recorded, {:.2} % replayed\n\
             Quantiles differ by {} (exchanges), {} (connections), on average. {}",
            self.retransmitted[0] * 100.0,
            self.retransmitted[1] * 100.0,
            percent(&self.exchange_s),
            percent(&self.connection_s),
            match self.exchange_s.difference {
                Some(share) if share <= CLOSE => "The fit is close.",
                Some(share) if share <= ROUGH =>
                    "The fit is rough: rate and queue in the scenario are estimates, write what you know of the line.",
                Some(_) | None =>
                    "The fit is poor: write what you know of the line into the scenario before you compare.",
            }
        );
        text
    }
}

impl Likeness {
    fn of(recorded: Option<Quantiles>, counts: &[(u64, u64)], replayed: &Histogram) -> Likeness {
        Likeness {
            recorded,
            replayed: Quantiles::of(replayed, 1e-9),
            difference: difference(counts, &replayed.counts()),
        }
    }
}

/// The mean of |ln| of the ratio of all quantiles, as a share, of values in ascending order and how often each came.
fn difference(one: &[(u64, u64)], other: &[(u64, u64)]) -> Option<f64> {
    let total = |counts: &[(u64, u64)]| counts.iter().map(|count| count.1).sum::<u64>();
    let totals = [one, other].map(total);
    if totals.contains(&0) {
        return None;
    }
    let (mut left, mut right) = (one.iter(), other.iter());
    let (mut own, mut others) = (left.next()?, right.next()?);
    // Shares of the two in units of 1 / (n m): whole numbers.
    let weight = |count: u64, total: u64| u128::from(count) * u128::from(total);
    let mut remain = [weight(own.1, totals[1]), weight(others.1, totals[0])];
    let mut sum = 0.0;
    loop {
        let step = remain[0].min(remain[1]);
        let ratio = own.0.max(1) as f64 / others.0.max(1) as f64;
        sum += libm::fabs(libm::log(ratio)) * step as f64;
        remain = remain.map(|remain| remain - step);
        if remain[0] == 0 {
            let Some(next) = left.next() else { break };
            (own, remain[0]) = (next, weight(next.1, totals[1]));
        }
        if remain[1] == 0 {
            let Some(next) = right.next() else { break };
            (others, remain[1]) = (next, weight(next.1, totals[0]));
        }
    }
    Some(libm::expm1(sum / weight(totals[0], totals[1]) as f64))
}

/// Differences of exchanges up to which a fit is called close, and rough.
const CLOSE: f64 = 0.1;
const ROUGH: f64 = 0.3;

#[cfg(test)]
mod tests {
    use super::difference;

    fn of(one: &[(u64, u64)], other: &[(u64, u64)]) -> f64 {
        difference(one, other).expect("both have values")
    }

    #[test]
    fn quantiles_are_compared_by_their_ratios() {
        let counts = [(1000, 1), (2000, 2), (4000, 1)];
        assert_eq!(of(&counts, &[(1000, 2), (2000, 4), (4000, 2)]), 0.0);
        // All a tenth longer, and a tenth shorter of the other.
        let longer = [(1100, 3), (2200, 6), (4400, 3)];
        assert!((of(&counts, &longer) - 0.1).abs() < 1e-12);
        assert!((of(&longer, &counts) - 0.1).abs() < 1e-12);
        // The upper half twice as long: the root of two on average.
        let spread = [(1000, 1), (2000, 1), (4000, 1), (8000, 1)];
        assert!((of(&counts, &spread) - 0.414_213_562).abs() < 1e-9);
        assert_eq!((difference(&[], &counts), difference(&counts, &[])), (None, None));
    }
}
