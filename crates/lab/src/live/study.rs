//! Runs of a command under several variants become a ranked result.
//!
//! Runs are made in rounds, one of each variant, so that what changes on the machine meanwhile meets all of them: the number of a
//! round is the unit of independence, and differences are paired over the rounds in which both variants have a run that counts. A
//! run that failed counts in nothing and is reported; it is not made again.
//!
//! The best variant has the best mean. In its tier are those whose paired ratio to it cannot be distinguished from one (Holm's
//! correction over all that are compared with it); the best of the rest begins the next tier. A variant of which more runs failed
//! than of the first stands behind the others, in no tier.
//!
//! **Source.** The statistics are those of [`crate::statistics`], with rounds in place of seeds.

use super::metric::Metric;
use super::record::Run;
use crate::compare::numbers::{interval, percent, seconds};
use crate::result::{
    Comparison, Document, LinkInfo, Live, LiveVariant, Ratio, Recommended, SCHEMA, Variant, Versus,
};
use crate::statistics::{ENOUGH_SEEDS, Estimate, LEVEL, RESAMPLES, Resamples, Sample, holm, summarize};
use fleetfoot_sim::output::Histogram;
use serde::{Deserialize, Serialize};

mod pooled;

use pooled::{described, flows, link};

/// What is asked of which command.
#[derive(Clone, Debug)]
pub struct Study {
    /// Title of the scenario.
    pub scenario: String,
    /// The command and what is started at the far end.
    pub command: String,
    /// What is started at the far end.
    pub far: Option<String>,
    /// What runs are compared by, and the text that it was made from.
    pub metric: (Metric, String),
    /// Whether a larger value is the better one.
    pub more_is_better: bool,
    /// Version of the kernel.
    pub kernel: String,
    /// Seed of the first run; the next round has the next one.
    pub seed: u64,
    /// Name of the link.
    pub link: String,
}

/// A variant with its runs.
#[derive(Clone, Debug)]
pub struct Studied {
    /// Its name.
    pub name: String,
    /// What it changes: path to value.
    pub set: serde_json::Map<String, serde_json::Value>,
    /// The link: what the command sends, and what it receives.
    pub links: [LinkInfo; 2],
    /// Speeds of both (bit/s), where they are constant.
    pub rates: [Option<f64>; 2],
    /// What was set of the senders.
    pub sender: Vec<String>,
    /// Its runs.
    pub runs: Vec<Made>,
}

/// A run with the values behind its quantiles, as it is kept in a folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Made {
    /// The run.
    pub run: Run,
    /// Time in the queue of what the command sent, and of what it received (ns).
    pub queue_delay: [Histogram; 2],
}

impl Study {
    /// The result of these variants, the first of which is the baseline.
    pub fn result(&self, variants: &[Studied], interrupted: bool) -> Comparison {
        let table = Table::new(self, variants);
        let compared = variants.len() > 1;
        let mut documented: Vec<Variant> = (0..variants.len())
            .map(|index| self.variant(&table, index))
            .collect();
        let seeds: Vec<u64> = (0..table.rounds as u64).map(|round| self.seed + round).collect();
        let recommended = compared.then(|| table.recommended()).flatten();
        let mut comparison = Comparison {
            document: Document {
                schema: SCHEMA.to_owned(),
                fleetfoot: env!("CARGO_PKG_VERSION").to_owned(),
                scenario: self.scenario.clone(),
                seeds,
                duration_s: variants
                    .iter()
                    .flat_map(|variant| &variant.runs)
                    .map(|made| made.run.wall_s)
                    .fold(0.0, f64::max),
                question: match compared {
                    true => format!(
                        "Which of these {} is best for `{}`, by the {}?",
                        variants.len(),
                        self.command,
                        self.metric.0.words()
                    ),
                    false => format!("What does `{}` see behind this link?", self.command),
                },
                answer: table.answer(self),
                notes: table.notes(),
                interrupted,
                refuted: None,
                recommended,
                live: Some(Live {
                    command: self.command.clone(),
                    far: self.far.clone(),
                    metric: self.metric.1.clone(),
                    metric_words: self.metric.0.words(),
                    unit: self.metric.0.unit().to_owned(),
                    more_is_better: self.more_is_better,
                    kernel: self.kernel.clone(),
                    compared,
                }),
                ..Document::default()
            },
            links: variants.first().map_or_else(Vec::new, |first| {
                let [sent, received] = first.links.clone();
                vec![received, sent]
            }),
            bottleneck: vec![self.link.clone()],
            ..Comparison::default()
        };
        comparison.document.variants.append(&mut documented);
        comparison
    }

    fn variant(&self, table: &Table<'_>, index: usize) -> Variant {
        let studied = &table.variants[index];
        let row = &table.rows[index];
        let runs = || studied.runs.iter().map(|made| &made.run);
        let link = |direction: usize| link(studied, direction);
        Variant {
            name: studied.name.clone(),
            set: studied.set.clone(),
            runs: runs().filter(|run| run.is_good()).count() as u64,
            turn_on: None,
            instructions: Vec::new(),
            groups: vec![flows(studied)],
            links: vec![link(1), link(0)],
            nodes: Vec::new(),
            headers_per_byte_delivered: None,
            lookups_per_s: 0.0,
            lookup_power_w: 0.0,
            fairness_jain: None,
            data_packets_delivered: runs()
                .map(|run| run.sent.delivered_packets + run.received.delivered_packets)
                .sum(),
            bytes_sent_per_byte_delivered: None,
            versus: row.versus(table, self.more_is_better, index),
            live: Some(LiveVariant {
                link: vec![described(&studied.links[1]), described(&studied.links[0])],
                sender: studied.sender.clone(),
                rank: row.rank,
                tier: row.tier,
                value: summarize(&row.samples, &table.resamples),
                ratio: row.ratio.map(|ratio| Ratio {
                    value: ratio.value,
                    ci95: ratio.ci95,
                    significant: row.significant,
                }),
                failed: row.failed,
                not_kept: row.not_kept,
                measured: runs().cloned().collect(),
            }),
        }
    }
}

/// The ranking.
struct Table<'a> {
    variants: &'a [Studied],
    rows: Vec<Row>,
    rounds: usize,
    seed: u64,
    resamples: Resamples,
}

/// A variant in it.
#[derive(Default)]
struct Row {
    /// Values of each round.
    samples: Vec<Sample>,
    mean: Option<f64>,
    failed: u64,
    not_kept: u64,
    starved: u64,
    rank: Option<u64>,
    tier: Option<u64>,
    /// To the first variant.
    ratio: Option<Estimate>,
    significant: bool,
}

impl<'a> Table<'a> {
    fn new(study: &Study, variants: &'a [Studied]) -> Table<'a> {
        let rounds = variants
            .iter()
            .flat_map(|variant| &variant.runs)
            .map(|made| made.run.run as usize)
            .max()
            .unwrap_or(0);
        let mut table = Table {
            variants,
            rows: variants
                .iter()
                .map(|variant| row(&study.metric.0, variant, rounds))
                .collect(),
            rounds,
            seed: study.seed,
            resamples: Resamples::new(study.seed, rounds, RESAMPLES),
        };
        table.compare_with_the_first();
        table.rank(study.more_is_better);
        table
    }

    /// The paired ratio of two variants, over the rounds in which both have values.
    fn ratio(&self, one: usize, other: usize) -> Option<Estimate> {
        let rounds = self.rows[one].samples.iter().zip(&self.rows[other].samples);
        let sums = |sample: &Sample| (sample.sum(), sample.len() as f64);
        let (one, other): (Vec<_>, Vec<_>) = rounds
            .filter(|(one, other)| !one.is_empty() && !other.is_empty())
            .map(|(one, other)| (sums(one), sums(other)))
            .unzip();
        let own;
        let resamples = match one.len() == self.rounds {
            true => &self.resamples,
            false => {
                own = Resamples::new(self.seed, one.len(), RESAMPLES);
                &own
            }
        };
        let ratio = resamples.mean_ratio(&one, &other)?;
        let mut estimate = ratio.estimate();
        // Runs of the simulator that never vary drew nothing and are one run. Real ones are several that agree.
        let agree = estimate.ci95.is_some_and(|[low, high]| high - low < 1e-9);
        if agree && ratio.estimate.abs() > 1e-9 {
            estimate.p = 0.0;
        }
        Some(estimate)
    }

    fn compare_with_the_first(&mut self) {
        let ratios: Vec<Option<Estimate>> = (0..self.rows.len())
            .map(|index| (index > 0).then(|| self.ratio(index, 0)).flatten())
            .collect();
        let significant = holm(
            &ratios.iter().map(|ratio| ratio.map(|r| r.p)).collect::<Vec<_>>(),
            LEVEL,
        );
        for ((row, ratio), significant) in self.rows.iter_mut().zip(ratios).zip(significant) {
            (row.ratio, row.significant) = (ratio, significant);
        }
    }

    /// Whether a variant has values of less than half of the rounds.
    fn is_few(&self, index: usize) -> bool {
        let samples = &self.rows[index].samples;
        let good = samples.iter().filter(|sample| !sample.is_empty()).count();
        2 * good < self.rounds
    }

    fn rank(&mut self, more_is_better: bool) {
        let key = |mean: f64| if more_is_better { -mean } else { mean };
        let mut left: Vec<usize> = (0..self.rows.len())
            .filter(|&index| self.rows[index].mean.is_some())
            .collect();
        let mean = |index: usize| key(self.rows[index].mean.unwrap_or(f64::NAN));
        // What failed in more than half of the rounds comes last, and is in no tier: its good runs may be the easy ones.
        // What failed more often than the first is never called better than that: it stands behind those that did not, in no tier.
        let failed_first = self.rows.first().map_or(0, |row| row.failed);
        let few = |index: usize| self.is_few(index) || self.rows[index].failed > failed_first;
        left.sort_by(|&a, &b| {
            few(a)
                .cmp(&few(b))
                .then(mean(a).total_cmp(&mean(b)))
                .then(a.cmp(&b))
        });
        let order = left.clone();
        left.retain(|&index| !few(index));
        for row in &mut self.rows {
            let better = row
                .ratio
                .is_some_and(|ratio| (ratio.value < 1.0) != more_is_better);
            row.significant &= !(better && row.failed > failed_first);
        }
        let mut tier = 0;
        while let Some((&best, rest)) = left.split_first() {
            tier += 1;
            let p: Vec<Option<f64>> = rest
                .iter()
                .map(|&index| self.ratio(index, best).map(|ratio| ratio.p))
                .collect();
            let beyond = holm(&p, LEVEL);
            let next: Vec<usize> = rest
                .iter()
                .zip(beyond)
                .filter(|(_, beyond)| *beyond)
                .map(|(index, _)| *index)
                .collect();
            for index in left.iter().filter(|index| !next.contains(index)) {
                self.rows[*index].tier = Some(tier);
            }
            left = next;
        }
        for (rank, index) in (1..).zip(order) {
            self.rows[index].rank = Some(rank);
        }
    }

    /// Variants of the first tier, in the order of the table.
    fn best(&self) -> Vec<usize> {
        let mut best: Vec<usize> = (0..self.rows.len())
            .filter(|&index| self.rows[index].tier == Some(1))
            .collect();
        best.sort_by_key(|&index| self.rows[index].rank);
        best
    }

    fn recommended(&self) -> Option<Recommended> {
        let best = self.best();
        let (&first, equals) = best.split_first()?;
        // What cannot be distinguished from the first variant is no reason to change anything.
        (!best.contains(&0) && self.rows[first].significant).then(|| Recommended {
            variant: self.variants[first].name.clone(),
            equals: equals
                .iter()
                .map(|&index| self.variants[index].name.clone())
                .collect(),
            places: Vec::new(),
            matters: None,
            seeds: self.rounds as u64,
            undecided: 0,
            open: Vec::new(),
            tier: 1,
        })
    }

    fn answer(&self, study: &Study) -> String {
        let names = |indices: &[usize]| {
            let names: Vec<&str> = indices
                .iter()
                .map(|&index| self.variants[index].name.as_str())
                .collect();
            names.join(", ")
        };
        let value = |value: f64| valued(value, study.metric.0.unit());
        if self.variants.len() < 2 {
            let run = self.variants.first().and_then(|variant| variant.runs.first());
            return run.map_or_else(String::new, |made| {
                format!(
                    "`{}` took {} and ended with exit code {}.",
                    study.command,
                    seconds(made.run.wall_s),
                    made.run.exit_code
                )
            });
        }
        let best = self.best();
        let Some((&first, equals)) = best.split_first() else {
            return String::from(match self.rows.iter().any(|row| row.mean.is_some()) {
                true => "Less than half of the runs count, of every variant: nothing can be ranked.",
                false => "No run counts: nothing can be ranked.",
            });
        };
        let row = &self.rows[first];
        let mut answer = format!(
            "Best: {} with {} ({})",
            self.variants[first].name,
            row.mean.map_or_else(String::new, value),
            study.metric.0.words(),
        );
        if let (Some(ratio), true) = (&row.ratio, row.significant) {
            let less = 1.0 - ratio.value;
            let ends = ratio.ci95.map(|[low, high]| match less < 0.0 {
                true => [low - 1.0, high - 1.0],
                false => [1.0 - high, 1.0 - low],
            });
            answer.push_str(&format!(
                ", {} {} {} than {}",
                percent(less.abs()),
                interval(ends),
                if less < 0.0 { "more" } else { "less" },
                self.variants[0].name
            ));
            if let Some(mean) = self.rows[0].mean {
                answer.push_str(&format!(" with {}", value(mean)));
            }
        }
        answer.push('.');
        if !equals.is_empty() {
            answer.push_str(&format!(" Not distinguishable from it: {}.", names(equals)));
        }
        let of = |which: fn(&Row) -> u64| self.rows.iter().map(which).sum::<u64>();
        let (late, starved) = (of(|row| row.not_kept), of(|row| row.starved));
        if late + starved > 0 {
            let all: usize = self.variants.iter().map(|variant| variant.runs.len()).sum();
            let mut why = Vec::new();
            if late > 0 {
                why.push(format!("the link was not kept in {late}"));
            }
            if starved > 0 {
                why.push(format!("programs waited for cores in {starved}"));
            }
            answer.push_str(&format!(
                " This machine was busy: of {} {}. Measure again when it is idle before you rely on the numbers.",
                counted_noun(all as u64, "run"),
                why.join(" and ")
            ));
        }
        answer
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (variant, row) in self.variants.iter().zip(&self.rows) {
            let all = variant.runs.len();
            let of = match self.variants.len() {
                1 => String::new(),
                _ => format!(" of {}", variant.name),
            };
            if row.not_kept > 0 {
                let worst = variant
                    .runs
                    .iter()
                    .map(|made| made.run.lateness.share_above_1ms)
                    .fold(0.0, f64::max);
                notes.push(format!(
                    "The described link was not kept in {} of {}{of}: this machine was late (up to {} of the packets by more than 1 ms).",
                    row.not_kept,
                    counted_noun(all as u64, "run"),
                    percent(worst),
                ));
            }
            let starved = || variant.runs.iter().filter(|made| made.run.is_starved());
            if starved().count() > 0 {
                let shares = starved().filter_map(|made| made.run.waited_for_cores);
                notes.push(format!(
                    "In {} of {}{of} programs waited for a core (up to {} of the time): their own times are those of a busy machine.",
                    starved().count(),
                    counted_noun(all as u64, "run"),
                    percent(shares.fold(0.0, f64::max)),
                ));
            }
            let problems: Vec<&str> = variant
                .runs
                .iter()
                .filter_map(|made| made.run.problem.as_deref())
                .collect();
            if let Some(first) = problems.first() {
                notes.push(format!(
                    "{} of {}{of} failed and count in nothing: {first}.",
                    problems.len(),
                    counted_noun(all as u64, "run"),
                ));
            }
            let unobserved: u64 = variant.runs.iter().map(|made| made.run.unobserved).sum();
            if unobserved > 0 {
                notes.push(format!(
                    "The analysis was slower than the link and lost {unobserved} records of frames{of}: flows lack them."
                ));
            }
        }
        if self.variants.len() > 1 && self.rounds < ENOUGH_SEEDS {
            notes.push(format!(
                "Too few runs for good intervals: {}, {ENOUGH_SEEDS} are enough.",
                self.rounds
            ));
        }
        notes
    }
}

/// Values of a variant by round.
fn row(metric: &Metric, variant: &Studied, rounds: usize) -> Row {
    let mut samples = vec![Sample::default(); rounds];
    for made in variant.runs.iter().filter(|made| made.run.is_good()) {
        if let Some(slot) = samples.get_mut((made.run.run as usize).wrapping_sub(1)) {
            *slot = metric.sample(&made.run).unwrap_or_default();
        }
    }
    let n: usize = samples.iter().map(Sample::len).sum();
    let sum: f64 = samples.iter().map(Sample::sum).sum();
    let count = |which: fn(&Run) -> bool| variant.runs.iter().filter(|made| which(&made.run)).count() as u64;
    Row {
        mean: (n > 0).then(|| sum / n as f64),
        samples,
        failed: count(|run| !run.is_good()),
        not_kept: count(|run| !run.kept),
        starved: count(Run::is_starved),
        ..Row::default()
    }
}

impl Row {
    fn versus(&self, table: &Table<'_>, more_is_better: bool, index: usize) -> Option<Versus> {
        if index == 0 {
            return None;
        }
        // As a share of what is lost or won: half the time, or twice the number, is a win of one half.
        let win = |ratio: f64| match more_is_better {
            true => 1.0 - 1.0 / ratio,
            false => 1.0 - ratio,
        };
        let mut remarks = Vec::new();
        if self.failed > 0 {
            remarks.push(format!("{} failed", counted_noun(self.failed, "run")));
        }
        if self.not_kept > 0 {
            remarks.push(format!(
                "the link was not kept in {}",
                counted_noun(self.not_kept, "run")
            ));
        }
        Some(Versus {
            baseline: table.variants[0].name.clone(),
            rank: self.rank.unwrap_or(table.rows.len() as u64),
            tier: self.tier,
            win: self.ratio.map(|ratio| win(ratio.value)),
            win_ci95: self.ratio.and_then(|ratio| ratio.ci95).map(|[low, high]| {
                let [a, b] = [win(low), win(high)];
                [a.min(b), a.max(b)]
            }),
            cost: None,
            harm: None,
            pareto: false,
            worst_p99: None,
            worst_tail: None,
            significant: self.significant,
            places: Vec::new(),
            senders: None,
            part_of: None,
            remarks,
            groups: Vec::new(),
        })
    }
}

/// A count with its noun.
fn counted_noun(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A value with its unit.
pub fn valued(value: f64, unit: &str) -> String {
    match unit {
        "s" => seconds(value),
        // Four digits.
        _ => {
            let before = if value == 0.0 {
                0
            } else {
                value.abs().log10().floor() as i32
            };
            let after = (3 - before).clamp(0, 6) as usize;
            format!("{value:.after$}")
        }
    }
}

#[cfg(test)]
mod tests;
