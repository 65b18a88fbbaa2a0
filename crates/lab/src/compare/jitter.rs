//! The comparison with jitter, where nothing in the scenario varies packet times: what holds without it only is a matter of phase (docs/trust.md).
//!
//! The recommended setting and the network as described get as many seeds there as they have in the table, so that it is not called refuted
//! for want of seeds. Nothing significant refutes it where its interval there is another; where the two have something in common it is open.

use super::plan::{Choice, Plan};
use super::study::{Runner, StudyError, count, join_variants};
use super::{answer, ranked};
use crate::result::{Comparison, Jittered, RunData, Variant};
use crate::run::{Batch, Job};
use crate::scenario::{Scenario, Setting};

/// A comparison to be repeated with jitter.
pub(super) struct Jitter<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) choice: &'a Choice,
    /// The jitter.
    pub(super) set: Setting,
    pub(super) recommended: Option<Recommendation>,
}

/// What is recommended without jitter.
pub(super) struct Recommendation {
    name: String,
    seeds: Vec<u64>,
}

impl Recommendation {
    pub(super) fn of(plan: &Plan, comparison: &Comparison, total: &Batch) -> Option<Recommendation> {
        let recommended = comparison.document.recommended.as_ref()?;
        let mut variants = plan.variants.iter();
        let index = variants.position(|variant| variant.name == recommended.variant)?;
        Some(Recommendation {
            name: recommended.variant.clone(),
            seeds: total.runs.get(index)?.iter().map(|run| run.seed).collect(),
        })
    }
}

impl Jitter<'_> {
    /// The comparison with jitter, in short. `None`: the network takes no such jitter, or it was interrupted.
    pub(super) fn compare(
        self,
        described: &Comparison,
        total: &mut Batch,
        run: &mut Runner<'_>,
    ) -> Result<Option<Jittered>, StudyError> {
        let Ok(scenario) = self.scenario.with(&self.set) else {
            return Ok(None);
        };
        let baseline = Plan::baseline(scenario, self.choice)?;
        let mut all = run("as described, with jitter", &baseline.jobs(), &baseline.seeds)?;
        count(total, &all);
        if !all.interrupted {
            let runs: Vec<RunData> = all.runs.first().cloned().unwrap_or_default();
            let plan = baseline.with_baseline(&runs)?;
            let batch = run("variants, with jitter", &plan.jobs()[1..], &plan.seeds)?;
            count(total, &batch);
            join_variants(&mut all, batch);
            if !all.interrupted {
                self.more_seeds(&plan, &mut all, total, run)?;
            }
            if !all.interrupted {
                return Ok(Some(self.found(&plan, &all, described)));
            }
        }
        total.interrupted = true;
        Ok(None)
    }

    /// The seeds that the recommended setting has in the table and not here.
    fn more_seeds(
        &self,
        plan: &Plan,
        all: &mut Batch,
        total: &mut Batch,
        run: &mut Runner<'_>,
    ) -> Result<(), StudyError> {
        let Some(own) = &self.recommended else {
            return Ok(());
        };
        let mut variants = plan.variants.iter();
        let Some(index) = variants.position(|variant| variant.name == own.name) else {
            return Ok(());
        };
        let seeds = own.seeds.iter().copied();
        let more: Vec<u64> = seeds.filter(|seed| !plan.seeds.contains(seed)).collect();
        if more.is_empty() {
            return Ok(());
        }
        let jobs = plan.jobs();
        let jobs: Vec<Job> = [0, index].map(|wanted| jobs[wanted].clone()).to_vec();
        let batch = run("more seeds of the best, with jitter", &jobs, &more)?;
        count(total, &batch);
        all.interrupted |= batch.interrupted;
        for (wanted, runs) in [0, index].into_iter().zip(batch.runs) {
            all.runs[wanted].extend(runs);
        }
        Ok(())
    }

    fn found(&self, plan: &Plan, all: &Batch, described: &Comparison) -> Jittered {
        let there = ranked(plan, all);
        let recommended = there.recommended;
        let own = described.document.recommended.as_ref();
        let equals = recommended
            .as_ref()
            .map_or_else(Vec::new, |recommended| recommended.equals.clone());
        let possible = wins(&described.document.variants);
        let possible: Vec<String> = possible
            .filter(|variant| is_possible(variant, &there.variants))
            .map(|variant| variant.name.clone())
            .collect();
        let open = self
            .recommended
            .as_ref()
            .filter(|own| recommended.is_none() && possible.contains(&own.name));
        let set = self.set.iter().map(|(path, value)| format!("{path} = {value}"));
        Jittered {
            set: set.collect::<Vec<_>>().join(", "),
            holds: answer::holds(own, recommended.as_ref()),
            open_with_seeds: open.map(|own| own.seeds.len() as u64),
            recommended: recommended.map(|there| there.variant),
            equals,
            possible,
            wins: wins(&there.variants)
                .map(|variant| variant.name.clone())
                .collect(),
        }
    }
}

/// Those that save time, significantly, and more than they harm.
fn wins(variants: &[Variant]) -> impl Iterator<Item = &Variant> {
    let is_win = |variant: &&Variant| {
        let versus = variant.versus.as_ref();
        versus.is_some_and(|versus| versus.tier.is_some())
    };
    variants.iter().filter(is_win)
}

/// Whether the time that `variant` saves may be the same among `there`: the intervals have something in common, or are not known.
fn is_possible(variant: &Variant, there: &[Variant]) -> bool {
    let there = there.iter().find(|other| other.name == variant.name);
    let common = |([low, high], [least, most]): ([f64; 2], [f64; 2])| low <= most && least <= high;
    interval(variant).zip(there.and_then(interval)).is_none_or(common)
}

fn interval(variant: &Variant) -> Option<[f64; 2]> {
    variant.versus.as_ref()?.win_ci95
}

#[cfg(test)]
mod tests {
    use super::{Jitter, Recommendation};
    use crate::compare::{Choice, Plan, answer, build, ranked, step};
    use crate::result::Jittered;
    use crate::run::{Options, execute};
    use crate::scenario::Scenario;
    use crate::testing::{TEXT, engine};
    use fleetfoot_core::tcp::InitialWindow;
    use fleetfoot_sim::output::RunOutput;
    use fleetfoot_sim::spec::Spec;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// Jobs of a step, and their seeds.
    type Step = (usize, Vec<u64>);

    /// A variant that has eight seeds in the table of a scenario of two is compared with jitter. Its results are those of the window of
    /// `engine` that `window` chooses for a seed, with and without jitter: 8 takes 0.4 of the time (1.8 with every fourth seed), 5 all of it.
    /// Returned are what is found, the answer that follows, and the steps.
    fn compared(window: fn(u64, bool) -> u32) -> (Jittered, String, Vec<Step>) {
        let [variant, run] = ["[[variant]]", "[run]"].map(|begin| TEXT.find(begin).expect("it is there"));
        let planned = |seeds: &str| {
            let text = format!(
                "{}[[variant]]\nname = \"swinging\"\nset = {{ \"tcp.initial_window\" = 20 }}\n{}",
                &TEXT[..variant],
                TEXT[run..].replace("seeds = 12", seeds)
            );
            let scenario = Scenario::parse("test.toml", &text).expect("it is correct");
            Plan::compare(scenario, &Choice::default()).expect("it resolves")
        };
        let play = move |spec: &Spec, stop: &AtomicBool| -> Result<RunOutput, String> {
            let mut spec = spec.clone();
            let jitter = spec.links.iter().any(|link| link.impairments.jitter.is_some());
            let mut sender = (*spec.groups[0].sender).clone();
            if sender.initial_window == InitialWindow::Segments(20) {
                sender.initial_window = InitialWindow::Segments(window(spec.seed, jitter));
            }
            spec.groups[0].sender = Arc::new(sender);
            engine(&spec, stop)
        };
        let (options, stop) = (Options::default(), AtomicBool::new(false));
        let (plan, short) = (planned("seeds = 8"), planned("seeds = 2"));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &stop, &play, &|_| ());
        let mut total = batch.expect("it runs");
        let mut comparison = build(&plan, &total, "");
        let check = Jitter {
            scenario: &short.scenario,
            choice: short.choice(),
            set: step::jitter(&plan, false).expect("nothing varies packet times"),
            recommended: Recommendation::of(&plan, &comparison, &total),
        };
        let mut steps = Vec::new();
        let found = check.compare(&comparison, &mut total, &mut |_, jobs, seeds| {
            steps.push((jobs.len(), seeds.to_vec()));
            execute(jobs, seeds, &options, &stop, &play, &|_| ())
        });
        let found = found.expect("it runs").expect("the network takes jitter");
        comparison.document.jittered = Some(found.clone());
        let rows = ranked(&plan, &total).rows;
        let answer = answer::answer(&plan, &rows, &total, &comparison.document);
        (found, answer, steps)
    }

    /// Times of 0.4, 1, 0.4, 0.7: two seeds decide nothing, and eight do. Their mean is 0.625 with a standard error of 0.088, which is 0.14 in the
    /// logarithm: t = 0.47 / 0.14 = 3.4, where 2.4 are enough.
    fn swinging(seed: u64) -> u32 {
        match seed % 4 {
            0 => 20,
            2 => 5,
            _ => 8,
        }
    }

    #[test]
    fn what_is_recommended_has_as_many_seeds_with_jitter_as_without() {
        let (found, answer, steps) = compared(|seed, _| swinging(seed));
        assert_eq!(steps, [(1, vec![1, 2]), (1, vec![1, 2]), (2, (3..=8).collect())]);
        assert_eq!(found.recommended.as_deref(), Some("swinging"));
        assert!(found.holds && found.open_with_seeds.is_none(), "{found:?}");
        assert!(
            answer.starts_with("Try swinging") && !answer.contains("itter"),
            "{answer}"
        );
    }

    #[test]
    fn what_is_undecided_with_jitter_is_open_and_what_is_nothing_is_a_matter_of_phase() {
        // Times of 0.4, 1, 0.4, 1.8: 0.9 on average, and anything from half to a third more.
        let (found, answer, _) = compared(|seed, jitter| match jitter && seed.is_multiple_of(4) {
            true => 8,
            false => swinging(seed),
        });
        assert_eq!(
            (found.recommended.as_deref(), found.open_with_seeds),
            (None, Some(8))
        );
        assert!(
            answer.contains("could not be confirmed with 8 seeds") && !answer.contains("matter of phase"),
            "{answer}"
        );
        let (found, answer, _) = compared(|seed, jitter| if jitter { 5 } else { swinging(seed) });
        assert_eq!(
            (found.recommended.as_deref(), found.open_with_seeds),
            (None, None)
        );
        assert!(
            answer.contains("the order is a matter of phase (docs/trust.md), so do not go by it"),
            "{answer}"
        );
    }
}
