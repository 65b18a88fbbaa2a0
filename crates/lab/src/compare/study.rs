//! A comparison from beginning to end: the baseline first, then every variant with queue mechanisms where queues stand,
//! the best ones one place at a time, more seeds while the first tier is undecided, the same with jitter where nothing
//! varies packet times, and the networks near this one.
//!
//! What is run follows from scenario, choice and finished runs alone, never from the clock, unless a budget of time is given.

use super::jitter::{Jitter, Recommendation};
use super::parts::{doubtful_places, is_enough, part_at, part_that_matters};
use super::ranking::Rows;
use super::sensitivity::{NEIGHBOURS, judge};
use super::{Evaluation, Plan, evaluate, ranked};
use crate::clock::Instant;
use crate::result::{Comparison, RunData, Senders};
use crate::run::{Batch, Job};
use crate::scenario::Error;
use std::str::FromStr;

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// Most runs that more seeds may take to decide the first tier; the steps after it are made in any case.
    Runs(u64),
    /// Time for everything, from the start, after which no further step begins; the first pass is made whole, and a step that has begun is finished. What
    /// is run then depends on the machine.
    Time(std::time::Duration),
}

/// What a budget of time left out.
struct Left<'a> {
    budget: Option<Budget>,
    started: Instant,
    out: Vec<&'a str>,
}

impl<'a> Left<'a> {
    /// Whether there is time for this step; if not, it is left out.
    fn for_step(&mut self, step: &'a str) -> bool {
        let over = matches!(self.budget, Some(Budget::Time(time)) if self.started.elapsed() >= time);
        if over {
            self.out.push(step);
        }
        !over
    }

    /// What is said of it.
    fn note(&self) -> Option<String> {
        (!self.out.is_empty()).then(|| {
            format!(
                "the budget of time was over before these were run: {}",
                self.out.join(", ")
            )
        })
    }
}

impl FromStr for Budget {
    type Err = String;

    /// A budget as it is written: `500` or `2 min`.
    fn from_str(text: &str) -> Result<Budget, String> {
        if let Ok(runs) = text.trim().parse::<u64>() {
            return Ok(Budget::Runs(runs));
        }
        crate::scenario::duration(text)
            .map(|time| Budget::Time(std::time::Duration::from_nanos(time.as_nanos())))
            .ok_or_else(|| {
                let minutes = text.trim().strip_suffix('m').map(str::trim);
                let minutes = minutes.filter(|number| number.parse::<f64>().is_ok());
                let meant = minutes.map_or_else(String::new, |number| {
                    format!("; m alone is no unit here: \"{number} min\" are minutes")
                });
                format!(
                    "a number of runs (\"500\") or a time with its unit (\"2 min\", \"90 s\"; units: ms, s, min, h) is wanted{meant}"
                )
            })
    }
}

/// Why the scenario with this title cannot be compared: no group of it waits.
pub fn nothing_waits(title: &str) -> String {
    format!(
        "\"{title}\": nothing here waits, so nothing can be ranked: give the [[traffic]] whose users wait `latency_sensitive = true`; \
         `fleetfoot run` shows what each group gets"
    )
}

/// What of a comparison is wanted beyond the ranking.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// How many runs may be made to decide the first tier; `None`: as many as the first pass took.
    pub budget: Option<Budget>,
    /// Also the networks near this one.
    pub sensitivity: bool,
    /// Recommend only what belongs to the first tier in those networks too.
    pub only_what_holds: bool,
}

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The scenario.
    #[error(transparent)]
    Scenario(#[from] Box<Error>),
    /// A run.
    #[error(transparent)]
    Run(#[from] crate::run::Error),
}

impl From<Error> for StudyError {
    fn from(error: Error) -> StudyError {
        StudyError::Scenario(Box::new(error))
    }
}

/// Runs jobs with seeds: title of the step, jobs, seeds.
pub type Runner<'a> = dyn FnMut(&str, &[Job], &[u64]) -> Result<Batch, crate::run::Error> + 'a;

/// A finished comparison and the plan behind it.
#[derive(Debug)]
pub struct Study {
    /// What was run.
    pub plan: Plan,
    /// The result.
    pub comparison: Comparison,
    /// All runs; counts and times of all steps.
    pub batch: Batch,
}

/// Makes a comparison. `run` is called for each step; what it returns with `interrupted` set ends the comparison with what is there.
///
/// # Errors
/// A variant cannot be resolved, or a run fails.
pub fn study(
    baseline: Plan,
    extent: Extent,
    command: &str,
    run: &mut Runner<'_>,
) -> Result<Study, StudyError> {
    let started = Instant::now();
    let first = run("as described", &baseline.jobs(), &baseline.seeds)?;
    let runs = first.runs.first().cloned().unwrap_or_default();
    let mut total = first;
    if total.interrupted {
        let comparison = super::build(&baseline, &total, command);
        return Ok(Study {
            plan: baseline,
            comparison,
            batch: total,
        });
    }
    let plan = baseline.with_baseline(&runs)?;
    let batch = run("variants", &plan.jobs()[1..], &plan.seeds)?;
    join_variants(&mut total, batch);
    decide(plan, total, extent, started, command, run)
}

/// The rest of a comparison whose variants were run: more seeds for the best, their parts, jitter, the networks near this one.
pub(super) fn decide(
    mut plan: Plan,
    mut total: Batch,
    extent: Extent,
    started: Instant,
    command: &str,
    run: &mut Runner<'_>,
) -> Result<Study, StudyError> {
    let scenario = plan.scenario.clone();
    let choice = plan.choice().clone();
    let described = total.runs.first().cloned().unwrap_or_default();
    let mut left = Left {
        budget: extent.budget,
        started,
        out: Vec::new(),
    };
    let mut rows = ranked(&plan, &total).rows;
    if !total.interrupted && !rows.same_seeds {
        more_seeds(&plan, extent.budget, started, &mut total, &mut rows, run)?;
        let first = || rows.first.iter().map(|&whole| &plan.variants[whole]);
        let parts = first().any(|whole| whole.places.len() > 1 || whole.senders == Some(Senders::Both));
        if !total.interrupted && parts && left.for_step("the best, one place at a time") {
            one_place_at_a_time(&mut plan, &mut total, &rows, run)?;
            if !total.interrupted && left.for_step("all of the first tier at the place that matters") {
                the_others_at_its_place(&mut plan, &mut total, &rows, run)?;
            }
        }
    }
    let Evaluation { mut comparison, rows } = evaluate(&plan, &total, command);
    if !total.interrupted
        && plan.variants.len() > 1
        && let Some(set) = super::step::jitter(&plan, rows.same_seeds)
        && left.for_step("the comparison with jitter")
    {
        let check = Jitter {
            scenario: &scenario,
            choice: &choice,
            set,
            recommended: Recommendation::of(&plan, &comparison, &total),
        };
        comparison.document.jittered = check.compare(&comparison, &mut total, run)?;
    }
    if extent.sensitivity && !total.interrupted && left.for_step("the networks near this one") {
        sensitivity(&plan, &described, &mut comparison, &mut total, run)?;
    }
    if extent.only_what_holds {
        // Of an interrupted check what it got to counts.
        super::answer::keep_what_holds(&plan, &mut comparison.document);
    }
    if !total.interrupted {
        let may = || left.for_step("the recommended setting at the rate of its command");
        comparison.document.as_commanded =
            super::commanded::at_command(&plan, &comparison, &mut total, may, run)?;
    }
    if !total.interrupted {
        let may = || left.for_step("what a ping meets, before and after");
        super::echo::measure(&mut plan, &mut comparison, &mut total, may, run)?;
    }
    comparison.document.interrupted = total.interrupted;
    super::conclude(&plan, &rows, &total, &mut comparison);
    let notes = &mut comparison.document.notes;
    notes.splice(0..0, left.note());
    Ok(Study {
        plan,
        comparison,
        batch: total,
    })
}

/// Repeats the comparison on the networks near this one, and with queue mechanisms where most waits only.
fn sensitivity(
    plan: &Plan,
    described: &[RunData],
    comparison: &mut Comparison,
    total: &mut Batch,
    run: &mut Runner<'_>,
) -> Result<(), StudyError> {
    for neighbour in NEIGHBOURS {
        let title = format!("with {}", neighbour.name());
        let first = run(
            &title,
            &[neighbour.baseline(plan, &comparison.bottleneck)],
            &plan.seeds,
        )?;
        count(total, &first);
        if first.interrupted {
            total.interrupted = true;
            return Ok(());
        }
        // Queues may stand elsewhere there.
        let near = neighbour.described(plan, &comparison.bottleneck);
        let mut there = plan.moved(&near, &first.runs[0])?;
        let jobs = neighbour.jobs(&there, &comparison.bottleneck);
        let mut batch = run(&title, &jobs[1..], &plan.seeds)?;
        count(total, &batch);
        if batch.interrupted {
            total.interrupted = true;
            return Ok(());
        }
        batch.runs.splice(0..0, first.runs);
        // Fair shares are those of this network.
        there.described = near;
        let mut point = judge(neighbour.name(), &there, &batch, comparison);
        if acts_elsewhere(plan, &there) {
            let names = there.chosen.iter().map(|&place| there.places[place].name.clone());
            point.places = names.collect();
        }
        comparison.document.sensitivity.push(point);
    }
    let Some(place) = plan.most_waits() else {
        return Ok(());
    };
    let there = plan.at(vec![place])?;
    if !acts_elsewhere(plan, &there) {
        return Ok(());
    }
    let change = format!("queue mechanisms at {} only", plan.places[place].name);
    let mut batch = run(&change, &there.jobs()[1..], &there.seeds)?;
    count(total, &batch);
    if batch.interrupted {
        total.interrupted = true;
        return Ok(());
    }
    batch.runs.insert(0, described.to_vec());
    let point = judge(change, &there, &batch, comparison);
    comparison.document.sensitivity.push(point);
    Ok(())
}

/// Whether a variant changes other queues in `there` than in `plan`: those of a file act where the file says.
fn acts_elsewhere(plan: &Plan, there: &Plan) -> bool {
    there.variants.iter().any(|variant| {
        let mut same = plan.variants.iter().filter(|other| other.name == variant.name);
        same.any(|other| other.places != variant.places)
    })
}

/// Adds the counts and times of a step.
pub(super) fn count(total: &mut Batch, batch: &Batch) {
    total.computed += batch.computed;
    total.reused += batch.reused;
    total.cpu_s += batch.cpu_s;
    total.wall_s += batch.wall_s;
    total.simulated_s += batch.simulated_s;
}

pub(super) fn join_variants(total: &mut Batch, batch: Batch) {
    count(total, &batch);
    total.interrupted |= batch.interrupted;
    total.runs.extend(batch.runs);
}

/// Doubles the seeds of the baseline and of all that may belong to the first tier while it is undecided and the budget lasts. Where it does
/// not last for all of them, the last ones, undecided ones that come least near the best, stay as they are.
fn more_seeds(
    plan: &Plan,
    budget: Option<Budget>,
    started: Instant,
    total: &mut Batch,
    rows: &mut Rows,
    run: &mut Runner<'_>,
) -> Result<(), StudyError> {
    let first_pass = (plan.variants.len() * plan.seeds.len()) as u64;
    let (mut made, mut seeds) = (0, plan.seeds.clone());
    let most = MOST_SEEDS * plan.seeds.len();
    // Seeds are added to what has all those before.
    let mut able: Vec<usize> = (0..plan.variants.len()).collect();
    while seeds.len() >= 2 && (budget.is_some() || seeds.len() < most) {
        if !rows.open.iter().any(|index| able.contains(index)) {
            break;
        }
        // The last one is not the largest where they go on from zero.
        let last = seeds.last().copied().unwrap_or(0);
        let more: Vec<u64> = (1..=seeds.len() as u64)
            .map(|number| last.wrapping_add(number))
            .collect();
        let contenders = rows
            .contenders
            .iter()
            .copied()
            .filter(|index| able.contains(index));
        let mut wanted: Vec<usize> = std::iter::once(0).chain(contenders).collect();
        let cost = |wanted: &[usize]| (wanted.len() * more.len()) as u64;
        let affordable = |cost: u64| match budget {
            None => made + cost <= first_pass.max(FEW_RUNS.min(3 * first_pass)),
            Some(Budget::Runs(runs)) => made + cost <= runs,
            Some(Budget::Time(time)) => {
                let each = total.wall_s / ((first_pass + made) as f64).max(1.0);
                started.elapsed().as_secs_f64() + each * cost as f64 <= time.as_secs_f64()
            }
        };
        let undecided = |index: &usize| rows.hopeful.contains(index);
        while !affordable(cost(&wanted)) && wanted.len() > 2 && wanted.last().is_some_and(undecided) {
            wanted.pop();
        }
        if !affordable(cost(&wanted)) || !rows.open.iter().any(|index| wanted.contains(index)) {
            break;
        }
        let cost = cost(&wanted);
        able.clone_from(&wanted);
        let jobs = plan.jobs();
        let jobs: Vec<Job> = wanted.iter().map(|&index| jobs[index].clone()).collect();
        let title = format!("{} more seeds of the best", more.len());
        let batch = run(&title, &jobs, &more)?;
        count(total, &batch);
        made += cost;
        total.interrupted |= batch.interrupted;
        for (&index, runs) in wanted.iter().zip(batch.runs) {
            total.runs[index].extend(runs);
        }
        seeds.extend(more);
        *rows = ranked(plan, total).rows;
        if total.interrupted {
            break;
        }
    }
    Ok(())
}

/// The best few that change several queues, or the senders of both sides: each place or side alone, and of three or more places those that
/// are left when one that is of no use alone is left out, as long as that costs nothing.
fn one_place_at_a_time(
    plan: &mut Plan,
    total: &mut Batch,
    rows: &Rows,
    run: &mut Runner<'_>,
) -> Result<(), StudyError> {
    for &whole in rows.first.iter().take(BEST_FEW) {
        let before = plan.variants.len();
        plan.add_parts(&plan.variants[whole].name.clone());
        let title = "the best, one place at a time";
        if !run_parts(title, plan, total, before, whole, run)? {
            return Ok(());
        }
        let mut kept = plan.variants[whole].places.clone();
        if kept.len() < 3 {
            continue;
        }
        for place in doubtful_places(plan, &ranked(plan, total).variants, whole) {
            let others: Vec<usize> = kept.iter().copied().filter(|&other| other != place).collect();
            let before = plan.variants.len();
            // A single place was tried.
            if others.len() > 1 {
                plan.add_part_at(whole, others.clone());
            }
            let title = "the best, without a place";
            if !run_parts(title, plan, total, before, whole, run)? {
                return Ok(());
            }
            if plan.variants.len() > before && is_enough(&ranked(plan, total).variants, before, whole) {
                kept = others;
            }
        }
    }
    Ok(())
}

/// Where the first of its tier is advised at some of its places only, the others of the tier there too: a queue is chosen by what it does where it is
/// to be put.
fn the_others_at_its_place(
    plan: &mut Plan,
    total: &mut Batch,
    rows: &Rows,
    run: &mut Runner<'_>,
) -> Result<(), StudyError> {
    let Some(&first) = rows.first.first() else {
        return Ok(());
    };
    let variants = ranked(plan, total).variants;
    let Some(part) = part_that_matters(plan, &variants, first) else {
        return Ok(());
    };
    let places = plan.variants[part].places.clone();
    if places.is_empty() {
        return Ok(()); // It is a side whose senders matter.
    }
    for &other in rows.first.iter().take(MOST_RIVALS) {
        let is_larger = plan.variants[other].places.len() > places.len();
        if !is_larger || part_at(plan, &variants, other, &places).is_some() {
            continue;
        }
        let before = plan.variants.len();
        plan.add_part_at(other, places.clone());
        let title = "the best, at the place that matters";
        if !run_parts(title, plan, total, before, other, run)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs the parts of the variant `whole` that were added from `before` on; whether they were finished.
fn run_parts(
    title: &str,
    plan: &mut Plan,
    total: &mut Batch,
    before: usize,
    whole: usize,
    run: &mut Runner<'_>,
) -> Result<bool, StudyError> {
    if plan.variants.len() == before {
        return Ok(true);
    }
    // Over the seeds of the whole, whatever the budget: what is advised is the part, by what it has of the whole.
    let seeds: Vec<u64> = total.runs[whole].iter().map(|run| run.seed).collect();
    let batch = run(title, &plan.jobs()[before..], &seeds)?;
    if batch.interrupted {
        // Of some parts nothing or little was run: none is reported.
        count(total, &batch);
        plan.variants.truncate(before);
        total.interrupted = true;
        return Ok(false);
    }
    join_variants(total, batch);
    Ok(true)
}

/// Runs that a comparison of few variants may make to decide between them, up to three times those of its first pass.
const FEW_RUNS: u64 = 200;

/// How many times the scenario's seeds the best may get unless a budget is given: what they do not decide hardly matters.
const MOST_SEEDS: usize = 4;

/// Most variants of the first tier that are run one place at a time.
const BEST_FEW: usize = 3;

/// Most variants of the first tier that are run where the first of them makes the difference.
const MOST_RIVALS: usize = 8;

#[cfg(test)]
mod tests {
    use super::{Budget, Extent, Instant, Left, Study, study};
    use crate::compare::parts::UNEVEN_LINE;
    use crate::compare::{Choice, Plan};
    use crate::run::{Options, execute};
    use crate::scenario::Scenario;
    use crate::testing::{engine, lasting};
    use fleetfoot_sim::output::RunOutput;
    use fleetfoot_sim::spec::Spec;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_budget_names_the_units_it_can_have_and_what_m_may_mean() {
        assert_eq!("500".parse(), Ok(Budget::Runs(500)));
        assert_eq!(
            "2 min".parse(),
            Ok(Budget::Time(std::time::Duration::from_secs(120)))
        );
        let message = "2m".parse::<Budget>().expect_err("no unit is called m");
        assert!(
            message.contains("units: ms, s, min, h") && message.ends_with("\"2 min\" are minutes"),
            "{message}"
        );
    }

    #[test]
    fn no_step_begins_after_a_budget_of_time_and_what_is_left_out_is_noted() {
        let left = |budget| Left {
            budget,
            started: Instant::now(),
            out: Vec::new(),
        };
        let mut over = left(Some(Budget::Time(std::time::Duration::ZERO)));
        assert!(!over.for_step("jitter") && !over.for_step("networks near"));
        assert_eq!(
            over.note().as_deref(),
            Some("the budget of time was over before these were run: jitter, networks near")
        );
        for budget in [
            None,
            Some(Budget::Runs(0)),
            Some(Budget::Time(std::time::Duration::from_secs(3600))),
        ] {
            let mut enough = left(budget);
            assert!(enough.for_step("jitter"));
            assert_eq!(enough.note(), None);
        }
    }

    /// Made-up results where a queue called `drr` takes 0.4 of the time with every second seed and 0.95 with the others.
    fn swinging(spec: &Spec, stop: &AtomicBool) -> Result<RunOutput, String> {
        let output = engine(spec, stop)?;
        let factor = if spec.seed.is_multiple_of(2) { 0.95 } else { 0.4 };
        Ok(match spec.links.iter().any(|link| link.queue == "drr") {
            true => lasting(output, factor),
            false => output,
        })
    }

    /// What `swinging` says of DRR at both places of an uneven line, within this budget.
    fn studied(choice: &Choice, budget: Option<Budget>) -> Study {
        let scenario = Scenario::parse("line.toml", UNEVEN_LINE).expect("it is correct");
        let choice = Choice {
            only: vec![String::from("drr")],
            places: vec![String::from("bottleneck")],
            ..choice.clone()
        };
        let plan = Plan::baseline(scenario, &choice).expect("it resolves");
        let (options, stop) = (Options::default(), AtomicBool::new(false));
        let extent = Extent {
            budget,
            ..Extent::default()
        };
        study(
            plan,
            extent,
            "fleetfoot compare line.toml",
            &mut |_, jobs, seeds| execute(jobs, seeds, &options, &stop, &swinging, &|_| ()),
        )
        .expect("it runs")
    }

    fn five_seeds() -> Choice {
        Choice {
            seeds: Some(5),
            ..Choice::default()
        }
    }

    /// Five seeds decide nothing, so the whole gets more; the parts, of which the headline is one, are compared with it.
    #[test]
    fn with_a_budget_too_parts_have_the_seeds_of_their_whole() {
        for budget in [None, Some(Budget::Runs(100))] {
            let Study { plan, batch, .. } = studied(&five_seeds(), budget);
            let of = |index: usize| -> Vec<u64> { batch.runs[index].iter().map(|run| run.seed).collect() };
            let whole = plan.variants.iter().position(|variant| variant.name == "drr");
            let whole = of(whole.expect("it was compared"));
            assert!(whole.len() > plan.seeds.len(), "{whole:?}");
            let parts: Vec<usize> = (0..plan.variants.len())
                .filter(|&index| plan.variants[index].part_of.is_some())
                .collect();
            assert_eq!(parts.len(), 2);
            for part in parts {
                assert_eq!(of(part), whole, "{}: {budget:?}", plan.variants[part].name);
            }
        }
    }

    /// Seeds are whole numbers of 64 bits; after the largest comes zero.
    #[test]
    fn more_seeds_go_on_behind_the_last_one() {
        let choice = Choice {
            seed: Some(u64::MAX),
            ..five_seeds()
        };
        let Study { plan, batch, .. } = studied(&choice, Some(Budget::Runs(100)));
        assert_eq!(plan.seeds, [u64::MAX, 0, 1, 2, 3]);
        let seeds: Vec<u64> = batch.runs[1].iter().map(|run| run.seed).collect();
        let expected = std::iter::once(u64::MAX).chain(0..);
        assert!(seeds.len() > plan.seeds.len());
        assert_eq!(seeds, expected.take(seeds.len()).collect::<Vec<u64>>());
    }
}
