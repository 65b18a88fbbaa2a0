//! The distribution of completion times, over the seeds that all variants of the chart finished: times of other seeds have other arrivals.
//!
//! A lost ping or frame has no time, but it is one that did not come: it counts in the whole of which a line shows the share.

use super::super::text::{rounded, seconds};
use super::{Chart, Data, Distribution, header, names};
use crate::compare::words;
use crate::downsample;
use crate::metrics::flows::completion_times;
use crate::result::{Comparison, RunData, Variant};
use crate::statistics::{Resamples, Sample, summarize};
use fleetfoot_sim::spec::Compared;

/// Points of one line.
const POINTS: usize = 200;

/// The chart; `None` without completion times.
pub(super) fn chart(comparison: &Comparison, variants: &[&Variant]) -> Option<Chart> {
    let baseline = variants.first()?;
    let groups = baseline
        .groups
        .iter()
        .filter(|group| {
            variants
                .iter()
                .any(|v| v.groups.iter().any(|g| g.name == group.name && g.fct_s.is_some()))
        })
        .map(|group| group.name.clone())
        .collect::<Vec<_>>();
    groups.first()?;
    let seeds = common_seeds(comparison, variants);
    let mut rows = Vec::new();
    let mut any_lost = false;
    for variant in variants {
        for group in &variant.groups {
            let Some(whole) = &group.fct_s else { continue };
            let (samples, lost) = samples(comparison, &variant.name, &group.name, &seeds);
            any_lost |= lost > 0;
            let common = summarize(&samples, &Resamples::none(samples.len()));
            let (fct, censored) = match &common {
                Some(fct) => (
                    fct,
                    samples.iter().map(|sample| sample.censored.len() as u64).sum(),
                ),
                // A result without its runs.
                None => (whole, group.censored),
            };
            rows.push(vec![
                variant.name.clone(),
                group.name.clone(),
                (fct.n + lost).to_string(),
                (censored + lost).to_string(),
                seconds(fct.p50),
                seconds(fct.p90),
                seconds(fct.p95),
                seconds(fct.p99),
                seconds(fct.max),
            ]);
        }
    }
    let common = seeds.len() as u64;
    let more = variants.iter().any(|variant| variant.runs > common);
    let over = match common {
        0 if variants
            .iter()
            .any(|variant| !runs(comparison, &variant.name).is_empty()) =>
        {
            String::from(
                " No seed was finished by all of these variants, so there is no line, and the table has all seeds of each.",
            )
        }
        1.. if more => format!(
            " Only the {} that all of these variants finished are in it.",
            words::seeds(common)
        ),
        _ => String::new(),
    };
    let lost = match any_lost {
        true => {
            " Lost pings and frames are among them; the quantiles of a group that has any are those of the ones that came."
        }
        false => "",
    };
    Some(Chart {
        id: "distribution",
        title: "Distribution of completion times".to_owned(),
        text: format!(
            "Share of transfers that were complete after a time (logarithmic axis); further left is better. A line that ends below 100 % has transfers that did not complete.{lost}{over}"
        ),
        groups,
        variants: names(variants),
        data: Data::Distribution(lines(comparison, variants, &seeds)),
        header: header(&[
            "Variant",
            "Group",
            "n",
            "Not completed",
            "Median",
            "90 %",
            "95 %",
            "99 %",
            "Longest",
        ]),
        rows,
    })
}

/// The runs of a variant; none where the comparison has no runs.
fn runs<'a>(comparison: &'a Comparison, variant: &str) -> &'a [RunData] {
    let mut variants = comparison.variants.iter();
    let data = variants.find(|data| data.name == variant);
    data.map_or(&[], |data| &data.runs)
}

/// The seeds that all of these variants finished that finished any, in the order of the first.
fn common_seeds(comparison: &Comparison, variants: &[&Variant]) -> Vec<u64> {
    let all = variants.iter().map(|variant| runs(comparison, &variant.name));
    let finished: Vec<&[RunData]> = all.filter(|runs| !runs.is_empty()).collect();
    let Some((first, others)) = finished.split_first() else {
        return Vec::new();
    };
    let everywhere = |seed: &u64| others.iter().all(|runs| runs.iter().any(|run| run.seed == *seed));
    first.iter().map(|run| run.seed).filter(everywhere).collect()
}

/// Completion times of a group with a variant, a sample for each of these seeds; and how many pings or frames were lost.
fn samples(comparison: &Comparison, variant: &str, group: &str, seeds: &[u64]) -> (Vec<Sample>, u64) {
    let Some(position) = comparison.groups.iter().position(|info| info.name == group) else {
        return (Vec::new(), 0);
    };
    let kind = comparison.groups[position].traffic_kind();
    let mut lost = 0;
    let samples = runs(comparison, variant)
        .iter()
        .filter(|run| seeds.contains(&run.seed))
        .filter_map(|run| {
            let group = run.output.groups.get(position)?;
            if kind.facts().compared == Compared::CompletionOfNext {
                let open = group.flows.iter().filter(|flow| flow.completed.is_none());
                lost += open.count() as u64;
            }
            Some(completion_times(kind, group, &run.output))
        })
        .collect();
    (samples, lost)
}

/// The lines, of all groups; none where the comparison has no runs.
fn lines(comparison: &Comparison, variants: &[&Variant], seeds: &[u64]) -> Vec<Distribution> {
    let mut found = Vec::new();
    for (index, variant) in variants.iter().enumerate() {
        for group in &comparison.groups {
            let (samples, lost) = samples(comparison, &variant.name, &group.name, seeds);
            let all = samples.iter().map(Sample::len).sum::<usize>() + lost as usize;
            let mut completed: Vec<f64> = samples.into_iter().flat_map(|sample| sample.completed).collect();
            completed.sort_unstable_by(f64::total_cmp);
            let points = downsample::distribution(&completed, all, POINTS);
            if points.is_empty() {
                continue;
            }
            found.push(Distribution {
                variant: index,
                group: group.name.clone(),
                fct_s: points.iter().map(|point| rounded(point.0, 4)).collect(),
                share: points.iter().map(|point| rounded(point.1, 5)).collect(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::compare::{Choice, Plan, build};
    use crate::report::charts::{self, Data};
    use crate::result::Comparison;
    use crate::run::{Options, execute, simulate};
    use crate::scenario::Scenario;
    use std::sync::atomic::AtomicBool;

    /// A game over a line that loses one packet in twenty, with two seeds.
    fn played() -> Comparison {
        let text = "[network]\nkind = \"dumbbell\"\n\
             bottleneck = { rate = \"10 Mbit/s\", delay = \"20 ms\", loss = { kind = \"random\", probability = \"5 %\" } }\n\
             [[traffic]]\nname = \"game\"\nkind = \"ping\"\ninterval = \"50 ms\"\n\
             [run]\nduration = \"20 s\"\nwarmup = \"2 s\"\nseeds = 2\n";
        let scenario = Scenario::parse("game.toml", text).expect("it is correct");
        let plan = Plan::single(scenario, &Choice::default())
            .expect("it resolves")
            .expect("it is the scenario as described");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &simulate, &|_| ());
        build(&plan, &batch.expect("it runs"), "fleetfoot run game.toml")
    }

    #[test]
    fn without_a_seed_that_all_finished_the_chart_says_so() {
        let mut comparison = played();
        let mut other = comparison.document.variants[0].clone();
        other.name = String::from("other");
        let mut runs = comparison.variants[0].clone();
        runs.name = other.name.clone();
        runs.runs.remove(0);
        comparison.variants[0].runs.truncate(1);
        comparison.variants.push(runs);
        let charts = charts::all(&comparison, &[&comparison.document.variants[0], &other]);
        let chart = charts.iter().find(|chart| chart.id == "distribution");
        let chart = chart.expect("its table has numbers");
        assert!(
            chart.text.contains("No seed was finished by all"),
            "{}",
            chart.text
        );
        let Data::Distribution(lines) = &chart.data else {
            panic!("distributions");
        };
        assert!(lines.is_empty());
    }

    /// Of twenty pings a second one in twenty is lost. None of those came, whatever the time.
    #[test]
    fn a_lost_ping_is_not_complete() {
        let comparison = played();
        let flows = || {
            let runs = comparison.variants[0].runs.iter();
            runs.flat_map(|run| &run.output.groups[0].flows)
        };
        let (all, came) = (
            flows().count(),
            flows().filter(|flow| flow.completed.is_some()).count(),
        );
        assert!(came > 500 && all - came > 20, "{came} of {all}");
        let charts = charts::all(&comparison, &[&comparison.document.variants[0]]);
        let chart = charts.iter().find(|chart| chart.id == "distribution");
        let chart = chart.expect("it is drawn");
        let Data::Distribution(lines) = &chart.data else {
            panic!("distributions");
        };
        let end = lines[0].share.last().expect("it has points");
        assert!(
            (end - came as f64 / all as f64).abs() < 1e-4,
            "{end}: {came} of {all}"
        );
        assert_eq!(chart.rows[0][2..4], [all.to_string(), (all - came).to_string()]);
        assert!(
            chart.text.contains("Lost pings and frames are among them"),
            "{}",
            chart.text
        );
    }
}
