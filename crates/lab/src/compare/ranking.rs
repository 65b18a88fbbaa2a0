//! Variants against the first one: ratios, significance over the whole table, order, and the answer in a sentence.

use super::groups::{compared_times, goodput};
use super::{Plan, Resampling};
use crate::result::{GroupVersus, Ratio, RunData, Variant, Versus};
use crate::run::Batch;
use crate::statistics::{Estimate, LEVEL, Sample, geometric_mean, holm};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Cost up to which a significant win is ranked by win alone.
const CHEAP: f64 = 0.05;

/// What the ranking found, for the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// Index of the variant ranked first and the estimate of its ratio of mean times.
    best: Option<(usize, Estimate)>,
    class: Option<Class>,
}

/// Order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Win,
    CostlyWin,
    Undecided,
    Loss,
}

/// Estimates of one variant before the table is corrected.
struct Row {
    groups: Vec<GroupEstimates>,
    win: Option<Estimate>,
}

struct GroupEstimates {
    mean: Option<Estimate>,
    p99: Option<Estimate>,
    goodput: Option<Estimate>,
}

/// Fills in `versus` of every variant but the first.
pub(super) fn rank(plan: &Plan, batch: &Batch, resampling: &Resampling, variants: &mut [Variant]) -> Rows {
    let Some((baseline, others)) = variants.split_first_mut() else {
        return Rows::default();
    };
    let rows: Vec<Row> = (1..=others.len())
        .into_par_iter()
        .map(|index| row(plan, batch, resampling, index))
        .collect();
    let significance = Significance::of(&rows);
    let mut order: Vec<(Class, f64, usize)> = Vec::with_capacity(rows.len());
    for (index, (row, variant)) in rows.iter().zip(others.iter_mut()).enumerate() {
        let versus = versus(plan, row, &significance, index, baseline, variant);
        let win = versus.win.unwrap_or(0.0);
        let class = match (versus.significant, versus.cost.unwrap_or(0.0)) {
            (true, cost) if win > 0.0 && cost <= CHEAP => Class::Win,
            (true, _) if win > 0.0 => Class::CostlyWin,
            (true, _) => Class::Loss,
            (false, _) => Class::Undecided,
        };
        order.push((class, win, index));
        variant.versus = Some(versus);
    }
    order.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    for (rank, &(_, _, index)) in order.iter().enumerate() {
        if let Some(versus) = &mut others[index].versus {
            versus.rank = rank as u64 + 1;
        }
    }
    let first = order.first().copied();
    Rows {
        best: first.and_then(|(_, _, index)| Some((index + 1, rows[index].win?))),
        class: first.map(|first| first.0),
    }
}

fn row(plan: &Plan, batch: &Batch, resampling: &Resampling, index: usize) -> Row {
    let (baseline, variant) = common(&batch.runs[0], &batch.runs[index]);
    let resamples = resampling.of(baseline.len());
    let mut wins = Vec::new();
    let mut groups = Vec::new();
    for (number, info) in plan.described.groups.iter().enumerate() {
        let times = |runs: &[&RunData]| -> Vec<Sample> {
            runs.iter()
                .map(|run| compared_times(info.kind, &run.output, number))
                .collect()
        };
        let sums = |samples: &[Sample]| -> Vec<(f64, f64)> {
            samples
                .iter()
                .map(|sample| (sample.sum(), sample.len() as f64))
                .collect()
        };
        let (above, below) = (times(&variant), times(&baseline));
        let mean = resamples.mean_ratio(&sums(&above), &sums(&below));
        let p99 = resamples.quantile_ratio(&above, &below, 0.99);
        let shares = resamples.mean_ratio(&goodput(&variant, number), &goodput(&baseline, number));
        groups.push(GroupEstimates {
            mean: mean.as_ref().map(|ratio| resamples.estimate(ratio)),
            p99: p99.as_ref().map(|ratio| resamples.estimate(ratio)),
            goodput: shares.as_ref().map(|ratio| resamples.estimate(ratio)),
        });
        if info.latency_sensitive {
            wins.extend(mean);
        }
    }
    Row {
        groups,
        win: geometric_mean(&wins).map(|ratio| resamples.estimate(&ratio)),
    }
}

/// The runs of the seeds that both finished.
fn common<'a>(baseline: &'a [RunData], variant: &'a [RunData]) -> (Vec<&'a RunData>, Vec<&'a RunData>) {
    variant
        .iter()
        .filter_map(|run| Some((baseline.iter().find(|other| other.seed == run.seed)?, run)))
        .unzip()
}

/// Holm's correction over each column of the table.
struct Significance {
    wins: Vec<bool>,
    /// Mean, p99 and goodput ratio of each variant and group.
    columns: [Vec<bool>; 3],
    groups: usize,
}

impl Significance {
    fn of(rows: &[Row]) -> Significance {
        let column = |which: &dyn Fn(&GroupEstimates) -> Option<Estimate>| {
            let p: Vec<Option<f64>> = rows
                .iter()
                .flat_map(|row| &row.groups)
                .map(|group| which(group).map(|estimate| estimate.p))
                .collect();
            holm(&p, LEVEL)
        };
        let wins: Vec<Option<f64>> = rows.iter().map(|row| row.win.map(|win| win.p)).collect();
        Significance {
            wins: holm(&wins, LEVEL),
            columns: [
                column(&|group| group.mean),
                column(&|group| group.p99),
                column(&|group| group.goodput),
            ],
            groups: rows.first().map_or(0, |row| row.groups.len()),
        }
    }

    fn ratio(
        &self,
        column: usize,
        variant: usize,
        group: usize,
        estimate: Option<Estimate>,
    ) -> Option<Ratio> {
        estimate.map(|estimate| Ratio {
            value: estimate.value,
            ci95: estimate.ci95,
            significant: self.columns[column][variant * self.groups + group],
        })
    }
}

fn versus(
    plan: &Plan,
    row: &Row,
    significance: &Significance,
    index: usize,
    baseline: &Variant,
    variant: &Variant,
) -> Versus {
    let groups: Vec<GroupVersus> = row
        .groups
        .iter()
        .zip(&plan.described.groups)
        .enumerate()
        .map(|(number, (group, info))| GroupVersus {
            name: info.name.clone(),
            fct_mean_ratio: significance.ratio(0, index, number, group.mean),
            fct_p99_ratio: significance.ratio(1, index, number, group.p99),
            goodput_ratio: significance.ratio(2, index, number, group.goodput),
        })
        .collect();
    let win = row.win.map(|win| 1.0 - win.value);
    let others = groups
        .iter()
        .zip(&plan.described.groups)
        .filter(|(_, info)| !info.latency_sensitive);
    let smallest = others
        .filter_map(|(group, _)| group.goodput_ratio)
        .map(|ratio| ratio.value)
        .reduce(f64::min);
    let worst = groups
        .iter()
        .filter_map(|group| group.fct_p99_ratio)
        .map(|ratio| ratio.value - 1.0)
        .reduce(f64::max);
    let more_censored = censored(variant) > censored(baseline);
    Versus {
        baseline: baseline.name.clone(),
        rank: 0,
        win,
        cost: smallest.map(|ratio| 1.0 - ratio),
        worst_p99: worst,
        significant: significance.wins[index] && !(more_censored && win.unwrap_or(0.0) > 0.0),
        groups,
    }
}

/// Flows that did not complete, per run, so that unfinished variants can be compared.
fn censored(variant: &Variant) -> f64 {
    let flows: u64 = variant.groups.iter().map(|group| group.censored).sum();
    flows as f64 / variant.runs.max(1) as f64
}

impl Rows {
    /// One sentence made from the first line of the table.
    pub(super) fn answer(&self, variants: &[Variant]) -> String {
        let (Some((index, estimate)), Some(class)) = (self.best, self.class) else {
            return String::from("Nothing was compared: no latency-sensitive group was measured.");
        };
        let variant = &variants[index];
        let seeds = variant.runs;
        let percent = |ratio: f64| format!("{:.0} %", 100.0 * (1.0 - ratio));
        let interval = match estimate.ci95 {
            Some([low, high]) if low < high => {
                format!(" (95 % interval {} to {})", percent(high), percent(low))
            }
            Some(_) => String::from(", the same with every seed"),
            None => String::new(),
        };
        let name = &variant.name;
        let cost = match variant.versus.as_ref().and_then(|versus| versus.cost) {
            Some(cost) if cost >= 0.005 => format!(
                " and costs the other traffic up to {:.0} % of its goodput",
                100.0 * cost
            ),
            Some(_) => String::from(" and costs the other traffic nothing"),
            None => String::new(),
        };
        match class {
            Class::Win | Class::CostlyWin => {
                let how = variant
                    .turn_on
                    .as_ref()
                    .map(|text| format!(" To turn it on: {text}"))
                    .unwrap_or_default();
                format!(
                    "{name} makes the short transfers finish {} sooner on average{interval}{cost}, over {seeds} seeds.{how}",
                    percent(estimate.value)
                )
            }
            Class::Undecided => format!(
                "Nothing tried makes the short transfers finish significantly sooner over {seeds} seeds; the best estimate is {name} with {}{interval}.",
                percent(estimate.value)
            ),
            Class::Loss => format!(
                "Nothing tried makes the short transfers finish sooner; the least harmful, {name}, makes them {:.0} % slower{}.",
                100.0 * (estimate.value - 1.0),
                if seeds == 1 { ", over one seed" } else { "" }
            ),
        }
    }
}
