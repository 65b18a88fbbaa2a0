//! The distribution of completion times, over the seeds that all variants of the chart finished: times of other seeds have other arrivals.

use super::super::text::{rounded, seconds};
use super::{Chart, Data, Distribution, header, names};
use crate::compare::words;
use crate::downsample;
use crate::metrics::flows::completion_times;
use crate::result::{Comparison, RunData, Variant};
use crate::statistics::{Resamples, Sample, summarize};

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
    for variant in variants {
        for group in &variant.groups {
            let Some(whole) = &group.fct_s else { continue };
            let samples = samples(comparison, &variant.name, &group.name, &seeds);
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
                fct.n.to_string(),
                censored.to_string(),
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
    let over = match more && common > 0 {
        true => format!(
            " Only the {} that all of these variants finished are in it.",
            words::seeds(common)
        ),
        false => String::new(),
    };
    Some(Chart {
        id: "distribution",
        title: "Distribution of completion times".to_owned(),
        text: format!(
            "Share of transfers that were complete after a time (logarithmic axis); further left is better. A line that ends below 100 % has transfers that did not complete.{over}"
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

/// Completion times of a group with a variant, a sample for each of these seeds.
fn samples(comparison: &Comparison, variant: &str, group: &str, seeds: &[u64]) -> Vec<Sample> {
    let Some(position) = comparison.groups.iter().position(|info| info.name == group) else {
        return Vec::new();
    };
    let kind = comparison.groups[position].traffic_kind();
    runs(comparison, variant)
        .iter()
        .filter(|run| seeds.contains(&run.seed))
        .filter_map(|run| {
            let group = run.output.groups.get(position)?;
            Some(completion_times(kind, group, &run.output))
        })
        .collect()
}

/// The lines, of all groups; none where the comparison has no runs.
fn lines(comparison: &Comparison, variants: &[&Variant], seeds: &[u64]) -> Vec<Distribution> {
    let mut found = Vec::new();
    for (index, variant) in variants.iter().enumerate() {
        for group in &comparison.groups {
            let samples = samples(comparison, &variant.name, &group.name, seeds);
            let all = samples.iter().map(Sample::len).sum();
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
