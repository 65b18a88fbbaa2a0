//! How well the scenario that an import wrote fits the recording: it is replayed, and the times that came out are held
//! against the times that were seen.
//!
//! The two distributions are compared quantile by quantile: what a replayed quantile is more or less than the recorded one, as
//! a share of it, on average over all quantiles; exchanges and long transfers apart. Round-trip times, waits in the queue, and
//! retransmissions are compared as well: the verdict is that of the worst.
//!
//! Read in this order: this file (what is compared), `judge` (what is close, and what to try where it is not), `controllers` (with which
//! congestion control it fits best).
//!
//! **Source.** None; it is the first Wasserstein distance between the logarithms of the times.
//! **Deviations.** The fit is reported as a difference, not tested: a replay has the same connections as the recording, so the two are no
//! independent samples, and with enough of them every difference would be significant. Times have three digits.

use super::files::Imported;
use super::scenario;
use super::summary::{Quantiles, Summary};
use crate::run::simulate;
use crate::scenario::{ControllerFit, Resolved, Scenario, Setting};
use fleetfoot_core::link::LinkRate;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::output::{Histogram, RunOutput};
use fleetfoot_sim::spec::Spec;
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

mod controllers;
mod judge;

pub use crate::scenario::Verdict;
pub use controllers::{LINUX, Trials};
pub use judge::Measure;

/// A recording and its replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Times of exchanges, without what applications waited. Not those of long transfers.
    pub exchange_s: Likeness,
    /// Times of exchanges of long transfers.
    pub long_s: Likeness,
    /// From the first SYN of a connection to its last byte.
    pub connection_s: Likeness,
    /// Median of the smallest round-trip times: recorded and replayed.
    pub rtt_s: [Option<f64>; 2],
    /// What nine tenths of the data waited no longer than in queues, from the hosts that opened and to them: recorded and replayed.
    pub wait_s: [[Option<f64>; 2]; 2],
    /// Retransmitted shares of segments: recorded and replayed, both directions together.
    pub retransmitted: [f64; 2],
    /// By how much the quantiles of exchanges, or their mean, differ from those of another replay over a line that is faster by a
    /// ten-thousandth: what chance alone does.
    pub chance: Option<f64>,
    /// Whether the rate of the line that most data took is an estimate, not a bound.
    pub rate_known: bool,
    /// All of it together.
    pub verdict: Verdict,
    /// What the verdict is made of, in the order of the text.
    pub measures: Vec<Measure>,
    /// What of it is not close, in words.
    pub reasons: Vec<String>,
    /// What would probably make it better, one sentence each; empty where it is close.
    pub advice: Vec<String>,
    /// Congestion controls that were tried, the one that fits best first.
    pub controllers: Vec<ControllerFit>,
}

/// One sample of a recording and the corresponding one of its replay.
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
        let beside = neighbour(&resolved.spec(1));
        let (output, beside) = std::thread::scope(|scope| {
            let beside = scope.spawn(|| simulate(&beside, stop));
            (simulate(&resolved.spec(1), stop), beside.join())
        });
        let (output, beside) = (output?, beside.map_err(|_| "a replay failed")??);
        if output.interrupted || beside.interrupted {
            return Ok(None);
        }
        let mut fit = Fit::between(summary, &resolved, &output);
        fit.judge(summary, &resolved, &output, &beside);
        Ok(Some(fit))
    }

    /// What is recorded and replayed, without a verdict.
    fn between(summary: &Summary, resolved: &Resolved, output: &RunOutput) -> Fit {
        let mut connection = Histogram::new();
        let (mut segments, mut again) = (0, 0);
        for group in &output.groups {
            for flow in &group.flows {
                segments += flow.stats().segments_sent;
                again += u64::from(flow.stats().retransmits);
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
        let mut rtts: Vec<f64> = output
            .groups
            .iter()
            .flat_map(|group| &group.flows)
            .filter_map(|flow| Some(flow.min_rtt?.as_secs_f64()))
            .collect();
        rtts.sort_by(f64::total_cmp);
        let mut wait_s = summary.wait_s.map(|wait| [wait.map(|wait| wait.p90), None]);
        for (direction, queue) in queues(resolved, output) {
            wait_s[direction][1] = queue.quantile(0.9).map(|wait| wait as f64 * 1e-9);
        }
        Fit {
            exchange_s: Likeness::of(
                summary.exchange_s,
                &summary.exchange_counts,
                &exchanges(resolved, output, false),
            ),
            long_s: Likeness::of(
                summary.long_s,
                &summary.long_counts,
                &exchanges(resolved, output, true),
            ),
            connection_s: Likeness::of(summary.connection_s, &summary.connection_counts, &connection),
            rtt_s: [
                summary.rtt_s.map(|rtt| rtt.p50),
                rtts.get(rtts.len() / 2).copied(),
            ],
            wait_s,
            retransmitted: [share(retransmitted, all), share(again, segments)],
            chance: None,
            rate_known: summary.rate[summary.busy()].basis.is_estimate(),
            verdict: Verdict::Close,
            measures: Vec::new(),
            reasons: Vec::new(),
            advice: Vec::new(),
            controllers: Vec::new(),
        }
    }

    /// The text that is printed.
    pub fn to_text(&self) -> String {
        let mut table = super::summary::Table::new(["", "n", "mean", "p10", "p50", "p90", "p99"]);
        for (name, likeness) in [
            ("Exchange", &self.exchange_s),
            ("Long transfer", &self.long_s),
            ("Connection", &self.connection_s),
        ] {
            for (what, sample) in [("recorded", &likeness.recorded), ("replayed", &likeness.replayed)] {
                let Some(s) = sample else { continue };
                let head = [format!("{name}, {what}"), super::summary::count(s.n)];
                let values = [s.mean, s.p10, s.p50, s.p90, s.p99].map(super::summary::time);
                table.row(head.into_iter().chain(values));
            }
        }
        let mut text = String::from("Fit: this scenario, replayed once, beside the recording\n");
        text.push_str(&table.to_text());
        let percent = |likeness: &Likeness| match likeness.difference {
            Some(share) => format!("{:.1} %", share * 100.0),
            None => String::from("-"),
        };
        let shown = |what: Option<f64>| what.map_or_else(|| String::from("-"), super::summary::time);
        let pair =
            |pair: [Option<f64>; 2]| format!("{} recorded, {} replayed", shown(pair[0]), shown(pair[1]));
        let _ = writeln!(text, "RTT, smallest, median: {}", pair(self.rtt_s));
        for (way, waits) in ["from them", "to them"].iter().zip(self.wait_s) {
            if waits[0].is_some() {
                let _ = writeln!(text, "Queues {way}, p90: {}", pair(waits));
            }
        }
        if let Some(chance) = self.chance {
            let _ = writeln!(
                text,
                "Another replay, over a line faster by a ten-thousandth, differs by {:.1} % from this one.",
                chance * 100.0
            );
        }
        if !self.controllers.is_empty() {
            let tried = self.controllers.iter();
            let tried = tried.map(|one| format!("{} {:.1} %", one.name, one.difference * 100.0));
            let _ = writeln!(
                text,
                "Congestion controls tried, and what the replay differs by with them, the first one taken: {}",
                tried.collect::<Vec<_>>().join(", ")
            );
        }
        let _ = writeln!(
            text,
            "Retransmitted: {:.2} % recorded, {:.2} % replayed\n\
             Quantiles differ by {} (exchanges), {} (connections), on average. {}",
            self.retransmitted[0] * 100.0,
            self.retransmitted[1] * 100.0,
            percent(&self.exchange_s),
            percent(&self.connection_s),
            self.sentence(),
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

/// The scenario on a line that is faster by a ten-thousandth, which shows how far the numbers are chance.
fn neighbour(spec: &Spec) -> Spec {
    let mut neighbour = spec.clone();
    for link in &mut neighbour.links {
        if let LinkRate::Constant(rate) = &mut link.rate
            && *rate != Rate::UNLIMITED
        {
            *rate = Rate::from_bps(rate.bps() + rate.bps() / 10_000);
        }
    }
    neighbour
}

/// Times of the exchanges of a replay: of long transfers, or of the others.
fn exchanges(resolved: &Resolved, output: &RunOutput, long: bool) -> Histogram {
    let mut times = Histogram::new();
    let groups = resolved.groups.iter().zip(&output.groups);
    let groups = groups.filter(|(info, _)| scenario::is_long(&info.name) == long);
    for flow in groups.flat_map(|(_, group)| &group.flows) {
        if let Some(completed) = flow.completed {
            times.record(completed.since(flow.start).as_nanos());
        }
    }
    times
}

/// What packets waited at the bottleneck of a replay, with the direction: 0 from the hosts that opened, 1 to them.
fn queues<'a>(resolved: &'a Resolved, output: &'a RunOutput) -> impl Iterator<Item = (usize, &'a Histogram)> {
    let links = resolved.spec.links.iter().zip(&output.links);
    let line = links.filter(|(link, _)| link.name == "bottleneck");
    line.map(|(link, said)| (usize::from(link.forward), &said.queue_delay))
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
