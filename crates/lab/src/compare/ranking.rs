//! Variants against the first one: ratios, harm, significance over the whole table, tiers, order.
//!
//! Within a tier, what the user can turn on stands before what cannot be had, a mechanism before a pair that contains it, then the
//! least harm, then the least effort.

use super::groups::goodput;
use super::harm::Fair;
use super::ladder::Seen;
use super::losses;
use super::lost::{Lost, lost, net, worst};
use super::significance::Significance;
use super::tiers::{Net, pareto};
use super::times::compared_times;
use super::{Plan, Resampling, tail, turn_on};
use crate::result::{GroupVersus, Ratio, RunData, TailRatio, Variant, Versus};
use crate::run::Batch;
use crate::statistics::{Estimate, LogRatio, Resamples, Sample, are_few, geometric_mean, interval_about};
use fleetfoot_sim::spec::{Compared, Losses, TrafficKind};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// What the ranking found, for the answer and for whoever decides whether more seeds are needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// Indices of the variants of the tier to choose from, the one to try first: the best one of which anything can be had where it acts, or
    /// the first.
    pub(super) first: Vec<usize>,
    /// That tier, from 1.
    pub(super) tier: u64,
    /// Index of the variant at the top of the table where no variant is a significant win.
    pub(super) top: Option<usize>,
    /// Indices of the variants of which more seeds could say whether they belong to that tier, or stay in it: those that are wins
    /// first, then the undecided ones, the best first.
    pub(super) contenders: Vec<usize>,
    /// Indices of those of them that may or may not belong to it, as far as the seeds say.
    pub(super) open: Vec<usize>,
    /// Indices of those of them that are no significant win.
    pub(super) hopeful: Vec<usize>,
    /// Index of the variant that saves most time of those with which over 3 % more is lost of what a group waits for.
    pub(super) starving: Option<usize>,
    /// Whether every seed of the baseline gave the same run.
    pub(super) same_seeds: bool,
    /// Time saved less harm of each variant but the first; `None` where nobody waits, or more of those who wait wait in vain.
    pub(super) nets: Vec<Option<Net>>,
}

/// Order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Saves more time than it harms.
    Win,
    /// Saves time, significantly, and harms more.
    CostlyWin,
    /// Saves less time than anybody notices.
    Small,
    Undecided,
    Loss,
}

/// Estimates of one variant before the table is corrected.
pub(super) struct Row {
    pub(super) groups: Vec<GroupEstimates>,
    pub(super) win: Option<Estimate>,
    harm: Option<Ratio>,
    pub(super) net: Option<Net>,
    pub(super) seeds: usize,
    /// More of those who wait, wait in vain, or much more of what they wait for is lost.
    unfinished: bool,
}

impl Row {
    /// Time saved less harm; less than anything where it is not known.
    pub(super) fn worth(&self) -> f64 {
        self.net.as_ref().map_or(f64::NEG_INFINITY, |net| net.value)
    }
}

pub(super) struct GroupEstimates {
    pub(super) mean: Option<Estimate>,
    /// The percentile by which the slowest are compared.
    pub(super) tail: Option<(f64, Estimate)>,
    pub(super) goodput: Option<Estimate>,
    harm: Option<Ratio>,
    /// Much more of what those who wait wait for never comes.
    starved: bool,
}

/// Fills in `versus` of every variant but the first.
pub(super) fn rank(plan: &Plan, batch: &Batch, resampling: &Resampling, variants: &mut [Variant]) -> Rows {
    let Some((baseline, others)) = variants.split_first_mut() else {
        return Rows::default();
    };
    let table = Table::new(plan, batch, resampling);
    let rows: Vec<Row> = (1..=others.len())
        .into_par_iter()
        .map(|index| table.row(index, None))
        .collect();
    let part = |index: usize| plan.variants[index + 1].part_of.is_some();
    let mut significance = Significance::of(&rows, &part);
    let same_seeds = same_seeds(&batch.runs[0]);
    if same_seeds {
        significance.nothing();
    }
    for (index, (row, variant)) in rows.iter().zip(others.iter_mut()).enumerate() {
        variant.versus = Some(versus(plan, row, &significance, index, baseline));
    }
    let class = |index: usize| -> Class {
        let versus = others[index].versus.as_ref();
        let win = versus.and_then(|versus| versus.win).unwrap_or(0.0);
        let net = rows[index].net.as_ref().map_or(win, |net| net.value);
        match versus.is_some_and(|versus| versus.significant) {
            true if win >= WORTHWHILE && net > 0.0 => Class::Win,
            true if win >= WORTHWHILE => Class::CostlyWin,
            true if win > 0.0 => Class::Small,
            true => Class::Loss,
            false => Class::Undecided,
        }
    };
    let classes: Vec<Class> = (0..others.len()).map(class).collect();
    // A part of a variant says which place matters; it is no rival of the whole.
    let whole = |index: &usize| plan.variants[index + 1].part_of.is_none();
    let winners: Vec<usize> = (0..others.len())
        .filter(|&index| classes[index] == Class::Win)
        .filter(whole)
        .collect();
    let seen = Seen {
        rows: &rows,
        over_fewer: &|index, seeds| table.row(index + 1, Some(seeds)),
    };
    let ladder = seen.ladder(&winners);
    let is_missing = |index: usize| turn_on::missing_at(plan, index + 1).is_some();
    let had = winners
        .iter()
        .zip(&ladder.tiers)
        .filter(|(index, _)| !is_missing(**index));
    let tier = had.map(|(_, tier)| *tier).min().unwrap_or(1);
    // Tiers are made from the best on, so that those of the rest are the same without the first.
    let rivals: Vec<usize> = winners
        .iter()
        .zip(&ladder.tiers)
        .filter(|(_, other)| **other >= tier)
        .map(|(&index, _)| index)
        .collect();
    let undecided = (0..others.len())
        .filter(|&index| classes[index] == Class::Undecided && whole(&index) && !rows[index].unfinished)
        .filter(|&index| tier == 1 || !is_missing(index));
    let hopefuls = seen.hopefuls(&rivals, undecided);
    let (contenders, open) = match tier {
        1 => (ladder.contenders, ladder.open),
        _ => {
            let below = seen.ladder(&rivals);
            (below.contenders, below.open)
        }
    };
    // At one place alone less may be harmed, or more saved, than everywhere.
    let front = pareto(
        &others
            .iter()
            .map(|variant| {
                let versus = variant.versus.as_ref()?;
                Some((versus.win?, versus.harm.map_or(0.0, |harm| harm.value)))
            })
            .collect::<Vec<_>>(),
    );
    let tier_of = |index: usize| {
        let position = winners.iter().position(|&winner| winner == index)?;
        Some(ladder.tiers[position])
    };
    let mut order: Vec<usize> = (0..others.len()).collect();
    let harm = |index: usize| rows[index].harm.map_or(0.0, |harm| harm.value);
    let least = |tier: u64| -> f64 {
        let members = (0..others.len()).filter(|&other| tier_of(other) == Some(tier));
        members.map(harm).fold(f64::INFINITY, f64::min)
    };
    let key = |index: usize| {
        let tier = tier_of(index);
        // A point more harm than the least of the tier is the same; then what is easier to turn on.
        let more = tier.map_or(0.0, |tier| harm(index) - least(tier));
        let more = if more <= SAME_HARM { 0.0 } else { more };
        let nowhere = tier.is_some() && !turn_on::can_be_had(plan, index + 1);
        // What contains another of the tier is more to do and no better.
        let contains = tier.is_some()
            && (0..others.len()).any(|other| tier_of(other) == tier && is_part(plan, other + 1, index + 1));
        (
            (classes[index], tier.unwrap_or(u64::MAX), nowhere, contains),
            more,
            effort(plan, index + 1),
            -rows[index].worth(),
        )
    };
    let keys: Vec<_> = (0..others.len()).map(key).collect();
    order.sort_by(|&a, &b| {
        let (one, two) = (&keys[a], &keys[b]);
        one.0
            .cmp(&two.0)
            .then(one.1.total_cmp(&two.1))
            .then_with(|| match one.0.0 {
                Class::Win => one.2.cmp(&two.2),
                _ => std::cmp::Ordering::Equal,
            })
            .then(one.3.total_cmp(&two.3))
            .then(a.cmp(&b))
    });
    let tiers: Vec<Option<u64>> = (0..others.len()).map(tier_of).collect();
    for (rank, &index) in order.iter().enumerate() {
        if let Some(versus) = &mut others[index].versus {
            versus.rank = rank as u64 + 1;
            versus.tier = tiers[index];
            versus.pareto = front[index];
        }
    }
    // With what leaves more of those who wait in vain nobody is helped.
    // Of equal ones it is the first.
    let least_bad = order
        .iter()
        .rev()
        .copied()
        .filter(|&index| whole(&index))
        .max_by(|&a, &b| {
            let in_vain = |index: usize| rows[index].unfinished;
            in_vain(b)
                .cmp(&in_vain(a))
                .then(rows[a].worth().total_cmp(&rows[b].worth()))
        });
    let win = |index: usize| others[index].versus.as_ref().and_then(|versus| versus.win);
    let starving = (0..others.len())
        .filter(whole)
        .filter(|&index| rows[index].groups.iter().any(|group| group.starved))
        .filter(|&index| win(index).is_some_and(|win| win >= WORTHWHILE))
        .max_by(|&a, &b| {
            win(a)
                .unwrap_or(0.0)
                .total_cmp(&win(b).unwrap_or(0.0))
                .then(b.cmp(&a))
        });
    Rows {
        first: order
            .iter()
            .filter(|&&index| tiers[index] == Some(tier))
            .map(|index| index + 1)
            .collect(),
        tier,
        top: least_bad.map(|index| index + 1),
        contenders: contenders
            .iter()
            .chain(&hopefuls)
            .map(|&index| index + 1)
            .collect(),
        open: open.iter().chain(&hopefuls).map(|&index| index + 1).collect(),
        hopeful: hopefuls.into_iter().map(|index| index + 1).collect(),
        starving: starving.map(|index| index + 1),
        same_seeds,
        nets: rows
            .into_iter()
            .map(|row| row.net.filter(|_| !row.unfinished))
            .collect(),
    }
}

/// Whether `one` is some of the mechanisms of `whole`, or the same without the other value of a parameter.
fn is_part(plan: &Plan, one: usize, whole: usize) -> bool {
    let [one, whole] = [one, whole].map(|index| &plan.variants[index]);
    let contained = one
        .mechanisms
        .iter()
        .all(|part| whole.mechanisms.iter().any(|own| own.name == part.name));
    let fewer = one.mechanisms.len() < whole.mechanisms.len() || !whole.tuned.is_empty();
    !one.mechanisms.is_empty() && one.tuned.is_empty() && contained && fewer
}

/// How hard the variant is to turn on, parts that only Fleetfoot has last; then how much there is to change.
fn effort(plan: &Plan, index: usize) -> (u8, usize) {
    let planned = &plan.variants[index];
    let hardest = planned.mechanisms.iter().map(|mechanism| mechanism.effort as u8);
    let changes = planned.mechanisms.len() + usize::from(!planned.tuned.is_empty());
    (hardest.max().unwrap_or(u8::MAX), changes)
}

/// Who saves less is not worth a change: nobody notices it.
pub(super) const WORTHWHILE: f64 = 0.01;

/// Harms that differ by less count as equal.
const SAME_HARM: f64 = 0.01;

/// Whether there are several runs and all returned the same.
pub(super) fn same_seeds(runs: &[RunData]) -> bool {
    let Some((first, rest)) = runs.split_first() else {
        return false;
    };
    let flows = |run: &RunData| -> Vec<Vec<(u64, Option<u64>)>> {
        let times = |flow: &fleetfoot_sim::output::FlowRecord| {
            (
                flow.start.as_nanos(),
                flow.completed.map(fleetfoot_core::time::Instant::as_nanos),
            )
        };
        let groups = run.output.groups.iter();
        groups
            .map(|group| group.flows.iter().map(times).collect())
            .collect()
    };
    let goodput = |run: &RunData| -> Vec<u64> {
        run.output
            .groups
            .iter()
            .map(|group| group.goodput_bytes.0)
            .collect()
    };
    let measured =
        goodput(first).iter().any(|&bytes| bytes > 0) || flows(first).iter().any(|group| !group.is_empty());
    // Long flows that share a full line carry the same together, however differently each fares.
    let events = first.output.events;
    measured
        && !rest.is_empty()
        && rest.iter().all(|run| run.output.events == events)
        && rest
            .iter()
            .all(|run| goodput(run) == goodput(first) && flows(run) == flows(first))
}

/// What rows are made from.
struct Table<'a> {
    plan: &'a Plan,
    batch: &'a Batch,
    resampling: &'a Resampling,
    fair: Fair<'a>,
}

impl<'a> Table<'a> {
    fn new(plan: &'a Plan, batch: &'a Batch, resampling: &'a Resampling) -> Table<'a> {
        Table {
            plan,
            batch,
            resampling,
            fair: Fair::new(&plan.described),
        }
    }

    /// The row of variant `index` over the seeds that it and the baseline finished, at most the first `most` of them.
    fn row(&self, index: usize, most: Option<usize>) -> Row {
        let (mut baseline, mut variant) = common(&self.batch.runs[0], &self.batch.runs[index]);
        if let Some(most) = most {
            baseline.truncate(most);
            variant.truncate(most);
        }
        let resamples = self.resampling.of(baseline.len());
        let mut wins = Vec::new();
        let mut harms = Vec::new();
        let mut groups = Vec::new();
        let mut unfinished = false;
        for (number, info) in self.plan.described.groups.iter().enumerate() {
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
            let tail = match most {
                Some(_) => None,
                None => tail::ratio(&above, &below, &resamples),
            };
            let shares = resamples.mean_ratio(&goodput(&variant, number), &goodput(&baseline, number));
            let carried = || {
                let kept = self.fair.kept(number, &baseline, &variant);
                let sum = |runs: &[(f64, f64)]| runs.iter().map(|run| run.0).sum::<f64>();
                if sum(&kept.carried) <= 0.0 && sum(&kept.rightful) > 0.0 {
                    return Some(Lost::always(1.0, &resamples));
                }
                let ratio = resamples.mean_ratio(&kept.carried, &kept.rightful);
                ratio.map(|ratio| lost(&ratio, 1.0))
            };
            let facts = info.kind.facts();
            // Bursts that are done sooner may lie before the measured time, and slow ones reach into it.
            let sooner = || {
                let ci95 = mean.as_ref().and_then(|ratio| ratio.estimate().ci95);
                // A TFRC stream may have no end.
                facts.completes
                    && info.kind != TrafficKind::Tfrc
                    && ci95.is_some_and(|[_, high]| high < 1.0)
                    && !gives_up_more(&above, &below, &resamples)
            };
            let kept = match (info.latency_sensitive, facts.losses) {
                (false, _) if sooner() => Some(Lost::always(0.0, &resamples)),
                (false, _) => carried(),
                // Times that grew: 1 - before / after. Datagrams that never came are in no time of a stream.
                (true, Losses::Datagrams) => {
                    let longer = mean.as_ref().map(|ratio| lost(ratio, -1.0));
                    worst([longer, carried()].into_iter().flatten().collect())
                }
                (true, _) => mean.as_ref().map(|ratio| lost(ratio, -1.0)),
            };
            // What never came is harm whatever the fair share is.
            let came = |runs: &[&RunData]| losses::kept(facts, info.latency_sensitive, runs, number);
            let came = came(&variant).zip(came(&baseline));
            let needed = info.latency_sensitive || facts.losses != Losses::Datagrams;
            let came = came.filter(|(_, before)| needed || losses::is_whole(before));
            let missing = came.as_ref().and_then(|(after, before)| {
                if losses::missing(after) == Some(1.0) && losses::missing(before) < Some(1.0) {
                    return Some(Lost::always(1.0, &resamples));
                }
                let ratio = resamples.mean_ratio(after, before)?;
                Some(lost(&ratio, 1.0))
            });
            let kept = worst([kept, missing].into_iter().flatten().collect());
            let starved = info.latency_sensitive
                && came.is_some_and(|(after, before)| losses::too_much(&after, &before));
            groups.push(GroupEstimates {
                mean: mean.as_ref().map(LogRatio::estimate),
                tail: tail.map(|(level, ratio)| (level, ratio.estimate())),
                goodput: shares.as_ref().map(LogRatio::estimate),
                harm: kept.as_ref().map(Lost::ratio),
                starved,
            });
            unfinished |= starved;
            harms.extend(kept);
            if info.latency_sensitive {
                wins.extend(mean);
                let nothing = |samples: &[Sample]| samples.iter().all(Sample::is_empty);
                // Of lost frames and pings the gap counts; the last ones of a run are chance.
                let filled = facts.compared == Compared::CompletionOfNext;
                unfinished |= (!filled && gives_up_more(&above, &below, &resamples))
                    || (nothing(&above) && !nothing(&below));
            }
        }
        // One run says nothing of chance, and beside groups of which it is known it would make all of it unknown.
        if wins.iter().any(|win| win.runs >= 2) {
            wins.retain(|win| win.runs >= 2);
        }
        let win = geometric_mean(&wins);
        let harm = worst(harms);
        Row {
            groups,
            net: win.as_ref().map(|win| net(win, harm.as_ref())),
            win: win.as_ref().map(LogRatio::estimate),
            harm: harm.as_ref().map(Lost::ratio),
            seeds: baseline.len(),
            unfinished,
        }
    }
}

/// The runs of the seeds that both finished.
pub(super) fn common<'a>(
    baseline: &'a [RunData],
    variant: &'a [RunData],
) -> (Vec<&'a RunData>, Vec<&'a RunData>) {
    variant
        .iter()
        .filter_map(|run| Some((baseline.iter().find(|other| other.seed == run.seed)?, run)))
        .unzip()
}

fn versus(plan: &Plan, row: &Row, significance: &Significance, index: usize, baseline: &Variant) -> Versus {
    let groups: Vec<GroupVersus> = row
        .groups
        .iter()
        .zip(&plan.described.groups)
        .enumerate()
        .map(|(number, (group, info))| {
            let tail = group.tail.and_then(|(level, estimate)| {
                let ratio = significance.ratio(1, index, number, Some(estimate))?;
                Some(TailRatio { level, ratio })
            });
            GroupVersus {
                name: info.name.clone(),
                fct_mean_ratio: significance.ratio(0, index, number, group.mean),
                fct_p99_ratio: tail.filter(|tail| tail.level >= 0.99).map(|tail| tail.ratio),
                fct_tail_ratio: tail,
                goodput_ratio: significance.ratio(2, index, number, group.goodput),
                harm: group.harm,
                by_size: Vec::new(),
            }
        })
        .collect();
    let win = row.win.map(|win| 1.0 - win.value);
    // Of those who wait what a stream of datagrams carries counts, too: nobody asks for more of it because it is quick.
    let others = groups
        .iter()
        .zip(&plan.described.groups)
        .filter(|(_, info)| !info.latency_sensitive || info.kind.facts().losses == Losses::Datagrams);
    // A group that carries nothing any more has no ratio, but lost everything.
    let smallest = others
        .filter_map(|(group, _)| match (group.goodput_ratio, group.harm) {
            (Some(ratio), _) => Some(ratio.value),
            (None, Some(harm)) => Some(1.0 - harm.value),
            (None, None) => None,
        })
        .reduce(f64::min);
    let worst = groups
        .iter()
        .filter_map(|group| group.fct_p99_ratio)
        .map(|ratio| ratio.value - 1.0)
        .reduce(f64::max);
    let planned = &plan.variants[index + 1];
    Versus {
        baseline: baseline.name.clone(),
        rank: 0,
        tier: None,
        win,
        win_ci95: row
            .win
            .and_then(|win| win.ci95)
            .map(|[low, high]| [1.0 - high, 1.0 - low]),
        cost: smallest.map(|ratio| 1.0 - ratio),
        harm: row.harm,
        pareto: false,
        worst_p99: worst,
        worst_tail: tail::worst(&groups),
        significant: significance.wins[index] && !(row.unfinished && win.unwrap_or(0.0) > 0.0),
        places: planned
            .places
            .iter()
            .map(|&place| plan.places[place].described())
            .collect(),
        senders: planned.senders,
        part_of: planned.part_of.clone(),
        remarks: starved(row, &groups).into_iter().collect(),
        groups,
    }
}

/// That much more is lost of groups that wait.
fn starved(row: &Row, groups: &[GroupVersus]) -> Option<String> {
    let starved = row.groups.iter().zip(groups).filter(|(row, _)| row.starved);
    let names: Vec<&str> = starved.map(|(_, group)| group.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "no win: of what {} waits for, over 3 % more is lost than in the network as described",
            names.join(" or ")
        )
    })
}

/// Whether more of a group's flows wait in vain: one in a hundred more, or more of them whatever the seeds. Of their times it is only known
/// that they are at least so long.
///
/// All of two to four seeds have more by chance in one case of four to sixteen, and one more each has no spread from which an interval could
/// be made. So of few seeds the flows themselves must show it, too: that most of those which stay unfinished on either side do so in the variant
/// (binomial, by the normal distribution with the correction for continuity).
fn gives_up_more(variant: &[Sample], baseline: &[Sample], resamples: &Resamples) -> bool {
    const SHARE: f64 = 0.01;
    /// Of chi squared with one degree of freedom, 95 %.
    const CHANCE: f64 = 3.841;
    let open = |samples: &[Sample]| {
        samples
            .iter()
            .map(|run| run.censored.len() as f64)
            .collect::<Vec<f64>>()
    };
    let (after, before) = (open(variant), open(baseline));
    let more: Vec<f64> = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after - before)
        .collect();
    let all: usize = baseline.iter().map(Sample::len).sum();
    let total: f64 = more.iter().sum();
    if total > SHARE * all as f64 {
        return true;
    }
    let either: f64 = after.iter().chain(&before).sum();
    if are_few(more.len()) && (total - 1.0).max(0.0).powi(2) <= CHANCE * either {
        return false;
    }
    let n = more.len() as f64;
    let mean = |row: &[u16]| {
        row.iter()
            .zip(&more)
            .map(|(&weight, more)| f64::from(weight) * more)
            .sum::<f64>()
            / n
    };
    let interval = interval_about(total / n, resamples.rows().map(mean).collect(), more.len());
    interval.is_some_and(|[low, _]| low > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each run so many of 1000 transfers that stay unfinished.
    fn open(runs: &[usize]) -> Vec<Sample> {
        let run = |&censored: &usize| Sample {
            completed: vec![0.1; 1000 - censored],
            censored: vec![1.0; censored],
        };
        runs.iter().map(run).collect()
    }

    #[test]
    fn one_more_unfinished_transfer_in_each_of_few_runs_is_no_proof() {
        let more = |after: &[usize], before: &[usize]| {
            let resamples = Resamples::new(7, after.len(), 400);
            gives_up_more(&open(after), &open(before), &resamples)
        };
        for seeds in 2..=4 {
            assert!(!more(&vec![1; seeds], &vec![0; seeds]), "{seeds} seeds");
            // Eleven in a thousand are more than one in a hundred.
            assert!(more(&vec![11; seeds], &vec![0; seeds]), "{seeds} seeds");
            assert!(!more(&vec![0; seeds], &vec![9; seeds]), "{seeds} seeds");
        }
        // One and two more: Student's interval of two seeds about 1.5 is 6.4 to either side; of one and three more with others that differ by
        // chance nothing is known, with four times three more (12 of 12) it is.
        assert!(!more(&[1, 2], &[0, 0]));
        assert!(!more(&[40, 43], &[39, 40]));
        assert!(more(&[3, 3, 3, 3], &[0, 0, 0, 0]));
        // Five seeds all have more in one case of 32.
        assert!(more(&[1; 5], &[0; 5]));
    }
}
