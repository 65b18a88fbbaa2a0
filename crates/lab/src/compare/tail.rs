//! The slowest of a group: by which percentile they are compared, and whether two variants that are equal on average differ there.
//!
//! The percentile is the highest of the 99th, 95th and 90th beyond which at least ten times of both lie, at most half of them of what did not complete
//! ([`tail_level`]); a higher one is chance, or not known.

use super::ranking::common;
use super::times::compared_times;
use super::{Plan, Resampling};
use crate::result::{GroupVersus, RunData, Tail, TailRatio};
use crate::run::Batch;
use crate::statistics::{Estimate, LEVEL, LogRatio, Resamples, Sample, holm, tail_level};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

/// The level at which the slowest of two variants are compared, and the ratio there. `None`: too few times.
pub(super) fn ratio(above: &[Sample], below: &[Sample], resamples: &Resamples) -> Option<(f64, LogRatio)> {
    let size = |runs: &[Sample]| {
        let unfinished = runs.iter().map(|run| run.censored.len());
        (runs.iter().map(Sample::len).sum(), unfinished.sum())
    };
    let level = tail_level(&[size(above), size(below)])?;
    Some((level, resamples.quantile_ratio(above, below, level)?))
}

/// The largest worsening of the slowest of these groups: of those that the seeds show, if there are any.
pub(super) fn worst(groups: &[GroupVersus]) -> Option<Tail> {
    let tails = groups.iter().filter_map(|group| group.fct_tail_ratio);
    let changes = tails.map(|TailRatio { level, ratio }| Tail {
        level,
        change: ratio.value - 1.0,
        ci95: ratio.ci95.map(|ends| ends.map(|end| end - 1.0)),
    });
    let shown = |tail: &Tail| tail.ci95.is_some_and(|[low, _]| low > 0.0);
    changes.reduce(|worst, other| {
        let worse = other.change > worst.change;
        match (shown(&worst), shown(&other)) {
            (true, false) => worst,
            (false, true) => other,
            _ if worse => other,
            _ => worst,
        }
    })
}

/// `99th percentile`.
pub(crate) fn percentile(level: f64) -> String {
    format!("{:.0}th percentile", 100.0 * level)
}

/// `p99`.
pub(crate) fn short(level: f64) -> String {
    format!("p{:.0}", 100.0 * level)
}

/// `slowest hundredth`: what lies beyond the percentile.
pub(super) fn slowest(level: f64) -> &'static str {
    match 100.0 * level {
        l if l > 98.0 => "slowest hundredth",
        l if l > 94.0 => "slowest twentieth",
        _ => "slowest tenth",
    }
}

/// Of which groups the slowest take longer: level, and the group with how much longer. Empty without one.
pub(super) fn longer(groups: &[(f64, String)]) -> String {
    let mut levels: Vec<f64> = groups.iter().map(|(level, _)| *level).collect();
    levels.sort_by(|one, other| other.total_cmp(one));
    levels.dedup();
    let of = |level: f64| {
        let groups = groups.iter().filter(|(own, _)| own.total_cmp(&level).is_eq());
        let groups: Vec<&str> = groups.map(|(_, group)| group.as_str()).collect();
        groups.join(", of ")
    };
    let clauses = levels.iter().enumerate().map(|(index, &level)| {
        let (slowest, percentile) = (slowest(level), percentile(level));
        let begin = match index {
            0 => format!(" The {slowest} takes longer, though"),
            _ => format!("; so does the {slowest}"),
        };
        format!("{begin}: the {percentile} of {} more", of(level))
    });
    let clauses: String = clauses.collect();
    match clauses.is_empty() {
        true => clauses,
        false => format!("{clauses}."),
    }
}

/// How the slowest of a group differ between two variants.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// Name of the group.
    pub(super) group: String,
    /// Level of the percentile.
    pub(super) level: f64,
    /// The percentile with the other variant over that with the first.
    pub(super) ratio: f64,
}

/// In which groups that wait the slowest differ between the variant `own` and each of `others`, a list for each of these: by more than chance
/// (paired over the seeds that both finished, Holm's correction over all of it) and enough to be noticed.
pub(super) fn differences(plan: &Plan, batch: &Batch, own: &str, others: &[&str]) -> Vec<Vec<Difference>> {
    let runs = |name: &str| {
        let index = plan.variants.iter().position(|variant| variant.name == name);
        index
            .and_then(|index| batch.runs.get(index))
            .map_or(&[][..], Vec::as_slice)
    };
    let described = batch.runs.first().map_or(&[][..], Vec::as_slice);
    let resampling = Resampling::new(plan);
    let compared: Vec<Vec<Option<Compared>>> = others
        .par_iter()
        .map(|other| three(described, runs(own), runs(other)).of_groups(plan, &resampling))
        .collect();
    let p: Vec<Option<f64>> = compared
        .iter()
        .flatten()
        .map(|found| found.as_ref().map(|found| found.estimate.p))
        .collect();
    let mut significant = holm(&p, LEVEL).into_iter();
    compared
        .iter()
        .map(|groups| {
            let named = groups.iter().zip(&plan.described.groups);
            named
                .filter_map(|(found, info)| {
                    let significant = significant.next().unwrap_or(false);
                    let found = found.as_ref().filter(|found| significant && found.is_noticed())?;
                    Some(Difference {
                        group: info.name.clone(),
                        level: found.level,
                        ratio: found.estimate.value,
                    })
                })
                .collect()
        })
        .collect()
}

/// Runs of the same seeds, in the same order.
struct Three<'a> {
    described: Vec<&'a RunData>,
    own: Vec<&'a RunData>,
    other: Vec<&'a RunData>,
}

/// The runs of the seeds that all three finished.
fn three<'a>(described: &'a [RunData], own: &'a [RunData], other: &'a [RunData]) -> Three<'a> {
    let (own, other) = common(own, other);
    let mut all = Three {
        described: Vec::new(),
        own: Vec::new(),
        other: Vec::new(),
    };
    for (own, other) in own.into_iter().zip(other) {
        if let Some(run) = described.iter().find(|run| run.seed == own.seed) {
            all.described.push(run);
            all.own.push(own);
            all.other.push(other);
        }
    }
    all
}

/// The slowest of a group with two variants.
struct Compared {
    level: f64,
    estimate: Estimate,
    /// How far apart they are, as a share of what they are in the network as described.
    share: f64,
}

impl Compared {
    fn is_noticed(&self) -> bool {
        let ratio = self.estimate.value;
        (ratio.max(1.0 / ratio) - 1.0) >= NOTICED && self.share >= LEAST_SHARE
    }
}

impl Three<'_> {
    /// Group by group; `None` of groups that do not wait, and where there are too few times.
    fn of_groups(&self, plan: &Plan, resampling: &Resampling) -> Vec<Option<Compared>> {
        let resamples = resampling.of(self.own.len());
        let groups = plan.described.groups.iter().enumerate();
        groups
            .map(|(number, info)| {
                if !info.latency_sensitive {
                    return None;
                }
                let times = |runs: &[&RunData]| -> Vec<Sample> {
                    let times = runs
                        .iter()
                        .map(|run| compared_times(info.kind, &run.output, number));
                    times.collect()
                };
                let (own, other) = (times(&self.own), times(&self.other));
                let (level, ratio) = ratio(&other, &own, &resamples)?;
                let at = |runs: &[Sample]| Resamples::none(runs.len()).quantiles(runs, level).0;
                let described = at(&times(&self.described));
                Some(Compared {
                    level,
                    estimate: ratio.estimate(),
                    share: (at(&other) - at(&own)).abs() / described,
                })
            })
            .collect()
    }
}

/// Percentiles that differ by less than this share count as the same.
const NOTICED: f64 = 0.05;

/// So do those that differ by less than this share of what the percentile is in the network as described.
const LEAST_SHARE: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::{Difference, differences, longer, percentile, short, slowest};
    use crate::compare::{Choice, Plan, build};
    use crate::result::RunData;
    use crate::run::Batch;
    use crate::scenario::Scenario;
    use crate::testing::TEXT;
    use fleetfoot_core::queue::{DropReason, QueueEventKind};
    use fleetfoot_core::rng::Rng;
    use fleetfoot_core::time::{Duration, Instant};
    use fleetfoot_core::units::Bytes;
    use fleetfoot_sim::output::{FlowRecord, GroupOutput, LinkOutput, RunOutput};
    use std::sync::Arc;

    /// Pages, backups and calls, of which the first and the last wait.
    fn plan() -> Plan {
        let calls = "[[traffic]]\nname = \"calls\"\nkind = \"transfer\"\nsize = \"20 kB\"\narrivals = { dist = \"poisson\", rate = \"20 per second\" }\n[[variant]]\nname = \"better\"";
        let text = TEXT.replacen("[[variant]]\nname = \"better\"", calls, 1);
        let scenario = Scenario::parse("test.toml", &text).expect("it is correct");
        Plan::compare(scenario, &Choice::default()).expect("it resolves")
    }

    /// Twelve runs with so many pages and as many calls; the slowest tenth of each takes so many times as long, the rest is alike.
    fn runs(plan: &Plan, flows: u64, slower: [f64; 2]) -> Vec<RunData> {
        let of = |seed: u64| {
            let mut rng = Rng::for_element(seed, "made-up", "times");
            let mut noise = Rng::for_element(seed, &format!("{slower:?}"), "noise");
            let mut group = |factor: f64| GroupOutput {
                flows: (0..flows)
                    .map(|number| {
                        let start = Instant::from_millis(number);
                        let own = (1.0 + 0.2 * rng.uniform()) * (1.0 + 0.01 * noise.uniform());
                        let time = if number % 10 == 0 { 3.0 * factor * own } else { own };
                        let completed = Some(start + Duration::from_secs_f64(0.1 * time));
                        FlowRecord {
                            bytes: Bytes(20_000),
                            start,
                            completed,
                            acked: completed,
                            received: Bytes(20_000),
                            ..FlowRecord::default()
                        }
                    })
                    .collect(),
                goodput_bytes: Bytes(4_000_000),
                ..GroupOutput::default()
            };
            let [pages, calls] = slower.map(&mut group);
            let backup = GroupOutput {
                flows: vec![FlowRecord::default(); 2],
                goodput_bytes: Bytes(2_000_000),
                goodput_bytes_per_connection: vec![Bytes(1_000_000); 2],
                ..GroupOutput::default()
            };
            let links = plan.described.spec.links.iter();
            RunData {
                seed,
                output: Arc::new(RunOutput {
                    groups: vec![pages, backup, calls],
                    links: links
                        .map(|_| LinkOutput {
                            drops: vec![[0; 3]; DropReason::ALL.len()],
                            events: vec![0; QueueEventKind::ALL.len()],
                            ..LinkOutput::default()
                        })
                        .collect(),
                    ended: Instant::from_millis(70_000),
                    ..RunOutput::default()
                }),
            }
        };
        plan.seeds.iter().map(|&seed| of(seed)).collect()
    }

    fn found(flows: u64, better: [f64; 2], costly: [f64; 2]) -> Vec<(String, f64, f64)> {
        let plan = plan();
        let batch = Batch {
            runs: [[4.0, 4.0], better, costly]
                .map(|slower| runs(&plan, flows, slower))
                .to_vec(),
            ..Batch::default()
        };
        let [found] = differences(&plan, &batch, "better", &["costly"])
            .try_into()
            .expect("one other");
        let rounded = |value: f64| (10.0 * value).round() / 10.0;
        let parts = |found: Difference| (found.group, found.level, rounded(found.ratio));
        found.into_iter().map(parts).collect()
    }

    #[test]
    fn every_group_whose_slowest_differ_is_found_with_its_direction() {
        let (pages, calls) = (String::from("pages"), String::from("calls"));
        // 12 seeds of 100 flows: 12 of 1,200 lie beyond the 99th percentile.
        assert_eq!(
            found(100, [1.0, 1.0], [1.5, 0.5]),
            [(pages.clone(), 0.99, 1.5), (calls.clone(), 0.99, 0.5)]
        );
        // Of 240 beyond the 95th, of 120 beyond the 90th, of 84 beyond none.
        let levels = |flows| found(flows, [1.0, 1.0], [1.5, 1.0]).first().map(|found| found.1);
        assert_eq!(levels(20), Some(0.95));
        assert_eq!(levels(10), Some(0.9));
        assert_eq!(levels(7), None);
    }

    #[test]
    fn what_nobody_notices_is_no_difference() {
        let of_pages = |own: f64, other: f64| !found(100, [own, 1.0], [other, 1.0]).is_empty();
        assert!(of_pages(1.0, 1.1) && !of_pages(1.0, 1.03));
        // An eighth of what it was in the network as described: 12 % of that are 1.5 % of what it was, 20 % are 2.5 %.
        assert!(of_pages(0.5, 0.6) && !of_pages(0.5, 0.56));
    }

    #[test]
    fn a_result_has_the_percentile_that_its_times_bear() {
        let plan = plan();
        let of = |flows: u64| {
            let all = [[4.0, 4.0], [1.0, 2.0], [1.0, 8.0]].map(|slower| runs(&plan, flows, slower));
            let batch = Batch {
                runs: all.to_vec(),
                ..Batch::default()
            };
            let comparison = build(&plan, &batch, "fleetfoot compare test.toml");
            let versus = comparison.document.variants[2].versus.clone();
            let versus = versus.expect("it was compared");
            let group = &versus.groups[2];
            let levels = [
                group.fct_tail_ratio.map(|tail| tail.level),
                versus.worst_tail.map(|tail| tail.level),
            ];
            (levels, group.fct_p99_ratio.is_some(), versus.worst_p99.is_some())
        };
        assert_eq!(of(100), ([Some(0.99); 2], true, true));
        // 12 times 9: 108.
        assert_eq!(of(9), ([Some(0.9); 2], false, false));
        assert_eq!(of(8), ([None; 2], false, false));
    }

    #[test]
    fn what_takes_longer_is_said_with_its_percentile() {
        let of = |groups: &[(f64, &str)]| {
            let groups: Vec<(f64, String)> = groups
                .iter()
                .map(|&(level, group)| (level, group.to_owned()))
                .collect();
            longer(&groups)
        };
        assert_eq!(of(&[]), "");
        assert_eq!(
            of(&[(0.99, "pages 20 %"), (0.99, "calls 30 %")]),
            " The slowest hundredth takes longer, though: the 99th percentile of pages 20 %, of calls 30 % more."
        );
        assert_eq!(
            of(&[(0.95, "pages 20 %"), (0.99, "calls 30 %")]),
            " The slowest hundredth takes longer, though: the 99th percentile of calls 30 % more; so does the slowest twentieth: the 95th percentile of pages 20 % more."
        );
    }

    #[test]
    fn levels_have_words() {
        let words = |level| (short(level), percentile(level), slowest(level));
        let of = |short: &str, percentile: &str, slowest| (short.to_owned(), percentile.to_owned(), slowest);
        assert_eq!(words(0.99), of("p99", "99th percentile", "slowest hundredth"));
        assert_eq!(words(0.95), of("p95", "95th percentile", "slowest twentieth"));
        assert_eq!(words(0.9), of("p90", "90th percentile", "slowest tenth"));
    }
}
