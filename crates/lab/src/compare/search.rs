//! `fleetfoot recommend`: one setting to try first, searched for among everything that applies and that the user can turn on (`space`).
//!
//! **Source.** Successive halving (Jamieson and Talwalkar 2016, sections 2 and 3) with a rate of three: everything is run with two seeds,
//! the best third stays and gets twice the seeds, and so on. All have common random numbers. What a candidate is worth is the time it
//! saves those who wait, less the harm to the others, as in the ranking of `compare`. A pair, or a parameter with another value, is more
//! to do than a mechanism alone: it stays only while it is worth more than the mechanism alone by what anybody notices.
//!
//! What a change of senders is worth depends on the queue before it: after the first round every one is joined with the best queue, and
//! the best few with the best few queues; after the second the parameters of the best queues are halved and doubled.
//!
//! The finalists are then compared as `compare --sensitivity` does, over the seeds of the scenario, none of which the search has seen.
//! So the intervals are those of an ordinary comparison of few variants, and the choice among many does not flatter them.
//!
//! **Ours.** The seeds of the first round, the finalists, how many are joined and tuned. `tests/advice` compares what is found with the
//! best of the whole space in ten networks. What is refuted near the described network is not recommended: of the first tier the first
//! is taken that belongs to the first tier in every neighbouring network too, else the first of the table that is a win in all of them;
//! if none is, nothing is recommended and the answer says why.

use super::exhaustive::planned;
use super::plan::Candidate;
use super::ranking::WORTHWHILE;
use super::sensitivity::NEIGHBOURS;
use super::space;
use super::study::{Budget, Extent, Runner, Study, StudyError, count, decide};
use super::{Plan, Ranked, ranked, turn_on};
use crate::clock::Instant;
use crate::result::{Inapplicable, RunData};
use crate::run::Batch;

pub use super::space::{Control, Wish, candidates};

/// Seeds of the first round.
const FIRST_SEEDS: usize = 2;
/// Rounds: 2, 4 and 8 seeds.
const ROUNDS: u32 = 3;
/// One in so many stays after a round.
const STAYS: usize = 3;
/// Candidates that are compared over the seeds of the scenario.
const FINALISTS: usize = 6;
/// Changes of senders, and queues, that are joined with each other; every change of senders is joined with the best queue.
const JOINED: usize = 3;
/// Queues whose parameters are changed.
const TUNED: usize = 2;
/// Runs that may be spent on more seeds for finalists that are undecided. With twice as many a search of everything took 7.7, 7.8 and
/// 10.7 % of the runs of everything in three networks (docs/recommend.md); a tenth is the aim.
const MORE_RUNS: u64 = 100;
/// How far the seeds of the search are from those of the scenario.
const APART: u64 = 1 << 32;

/// Something that is tried, with its runs over the seeds of the search.
struct Tried {
    candidate: Candidate,
    runs: Vec<RunData>,
}

/// Searches. `run` is called for each step, as in [`study`](super::study::study).
///
/// # Errors
/// A variant cannot be resolved, or a run fails.
pub fn recommend(
    baseline: &Plan,
    wish: Wish,
    command: &str,
    run: &mut Runner<'_>,
) -> Result<Study, StudyError> {
    let started = Instant::now();
    let mut total = run("as described", &baseline.jobs(), &baseline.seeds)?;
    let described = total.runs.first().cloned().unwrap_or_default();
    let first = baseline.seeds.first().copied().unwrap_or(0).wrapping_add(APART);
    let mut search = Search {
        baseline,
        described: &described,
        seeds: (0..baseline.seeds.len().min(FIRST_SEEDS << (ROUNDS - 1)) as u64)
            .map(|number| first.wrapping_add(number))
            .collect(),
        without: Vec::new(),
        missing: Vec::new(),
        tried: candidates(&baseline.scenario, wish)
            .into_iter()
            .map(Tried::new)
            .collect(),
    };
    if !total.interrupted {
        search.narrow(wish, &mut total, run)?;
    }
    let mut plan = search.plan()?;
    plan.inapplicable.append(&mut search.missing);
    if total.interrupted {
        // What there is, over the seeds that it has.
        total.runs = search.runs();
        total.runs.truncate(plan.variants.len());
    } else {
        let batch = run(
            "the finalists, with seeds of their own",
            &plan.jobs()[1..],
            &plan.seeds,
        )?;
        count(&mut total, &batch);
        total.interrupted = batch.interrupted;
        total.runs = std::iter::once(described).chain(batch.runs).collect();
    }
    let extent = Extent {
        budget: Some(Budget::Runs(MORE_RUNS)),
        sensitivity: true,
        only_what_holds: true,
    };
    decide(plan, total, extent, started, command, run)
}

/// How many runs a search takes, about, of which `first` is the plan of the first candidates: for a forecast.
pub fn expected_runs(first: &Plan, wish: Wish) -> u64 {
    let only = |queues: bool| {
        let candidates = first.choice().candidates.iter().filter_map(space::single);
        candidates.filter(|one| space::changes_only(one, queues)).count()
    };
    let joined = match (wish.control, only(true)) {
        (Control::Both, 1..) => only(false) + JOINED * (JOINED - 1),
        _ => 0,
    };
    let (mut tried, mut had) = (first.variants.len() - 1 + joined, 0);
    let mut runs = 0;
    for round in 0..ROUNDS {
        let seeds = (FIRST_SEEDS << round).min(first.seeds.len());
        runs += tried * (seeds - had);
        tried = tried.div_ceil(STAYS).max(FINALISTS.min(tried));
        had = seeds;
    }
    let compared = first.seeds.len() * (1 + FINALISTS.min(tried));
    (runs + had + compared * (1 + NEIGHBOURS.len())) as u64
}

impl Tried {
    fn new(candidate: Candidate) -> Tried {
        Tried {
            candidate,
            runs: Vec::new(),
        }
    }
}

struct Search<'a> {
    baseline: &'a Plan,
    /// The runs of the network as described over the seeds of the scenario: they show where queues stand.
    described: &'a [RunData],
    /// Seeds of the search.
    seeds: Vec<u64>,
    /// The runs of the network as described over the seeds of the search.
    without: Vec<RunData>,
    /// What nobody can have where it would act, and so was not tried.
    missing: Vec<Inapplicable>,
    /// The best first, after a round.
    tried: Vec<Tried>,
}

impl Search<'_> {
    /// Leaves the finalists.
    fn narrow(&mut self, wish: Wish, total: &mut Batch, run: &mut Runner<'_>) -> Result<(), StudyError> {
        for round in 1..=ROUNDS {
            let seeds = (FIRST_SEEDS << (round - 1)).min(self.seeds.len());
            self.climb(seeds, total, run)?;
            if total.interrupted {
                return Ok(());
            }
            let (plan, mut table) = self.sort()?;
            match round {
                1 => self.join(wish),
                2 => self.tune(&plan),
                _ => {}
            }
            if self.tried.iter().any(|tried| tried.runs.len() < seeds) {
                self.climb(seeds, total, run)?;
                if total.interrupted {
                    return Ok(());
                }
                (_, table) = self.sort()?;
            }
            if round == ROUNDS {
                self.choose(&table);
            } else {
                let third = self.tried.len().div_ceil(STAYS);
                self.tried.truncate(third.max(FINALISTS));
            }
        }
        Ok(())
    }

    /// The plan of what is left.
    fn plan(&self) -> Result<Plan, StudyError> {
        let left = self.tried.iter().map(|tried| tried.candidate.clone());
        planned(self.baseline, self.described, left.collect())
    }

    /// The runs of the network as described and of what is left.
    fn runs(&self) -> Vec<Vec<RunData>> {
        let tried = self.tried.iter().map(|tried| tried.runs.clone());
        std::iter::once(self.without.clone()).chain(tried).collect()
    }

    /// Gives everything that is left so many seeds.
    fn climb(&mut self, seeds: usize, total: &mut Batch, run: &mut Runner<'_>) -> Result<(), StudyError> {
        let plan = self.matched()?;
        let jobs = plan.jobs();
        // Those that have equally many runs are run together; the first is the network as described.
        let runs: Vec<usize> = std::iter::once(self.without.len())
            .chain(self.tried.iter().map(|tried| tried.runs.len()))
            .collect();
        let mut had = runs.clone();
        had.sort_unstable();
        had.dedup();
        for had in had.into_iter().filter(|&had| had < seeds) {
            let members: Vec<usize> = (0..runs.len()).filter(|&index| runs[index] == had).collect();
            let jobs: Vec<_> = members.iter().map(|&index| jobs[index].clone()).collect();
            let title = format!("{} candidates with {seeds} seeds", jobs.len());
            let batch = run(&title, &jobs, &self.seeds[had..seeds])?;
            count(total, &batch);
            total.interrupted |= batch.interrupted;
            for (index, runs) in members.into_iter().zip(batch.runs) {
                match index.checked_sub(1) {
                    None => self.without.extend(runs),
                    Some(index) => self.tried[index].runs.extend(runs),
                }
            }
            if total.interrupted {
                break;
            }
        }
        Ok(())
    }

    /// The plan, with exactly one variant for each that is left: what does not apply, cannot be had where it would act, or is the same as
    /// one before, goes.
    fn matched(&mut self) -> Result<Plan, StudyError> {
        let mut kept: Vec<Tried> = Vec::new();
        let mut identities: Vec<String> = vec![crate::identity::of(&self.baseline.described.spec)];
        for tried in std::mem::take(&mut self.tried) {
            let alone = planned(self.baseline, self.described, vec![tried.candidate.clone()])?;
            let identity = alone
                .variants
                .get(1)
                .map(|variant| crate::identity::of(&variant.resolved.spec));
            if let Some(identity) = identity.filter(|identity| !identities.contains(identity)) {
                if let Some(missing) = turn_on::missing_at(&alone, 1) {
                    self.missing.push(Inapplicable {
                        name: alone.variants[1].name.clone(),
                        reason: missing.reason(),
                    });
                    continue;
                }
                identities.push(identity);
                kept.push(tried);
            }
        }
        self.tried = kept;
        self.plan()
    }

    /// Sorts what is left by what it saves less what it harms, over the seeds that it has, and leaves out what is more to do than
    /// something as good. Returns the plan and the table of what is left.
    fn sort(&mut self) -> Result<(Plan, Ranked), StudyError> {
        let table = self.table(&self.plan()?);
        let net = |index: usize| {
            let net = table.rows.nets[index].as_ref();
            net.map_or(f64::NEG_INFINITY, |net| net.value)
        };
        let mut order: Vec<(f64, Tried)> = std::mem::take(&mut self.tried)
            .into_iter()
            .enumerate()
            .map(|(index, tried)| (net(index), tried))
            .collect();
        order.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let alone: Vec<(f64, &'static str)> = order
            .iter()
            .filter_map(|(net, tried)| Some((*net, space::single(&tried.candidate)?.name)))
            .collect();
        let mut tuned: Vec<Vec<&'static str>> = Vec::new();
        order.retain(|(net, tried)| {
            let Candidate { mechanisms, .. } = &tried.candidate;
            if space::single(&tried.candidate).is_some() || tried.candidate.variant.is_some() {
                return true;
            }
            let mut parts = alone.iter().filter(|(_, name)| mechanisms.contains(name));
            let worth = parts.all(|(own, _)| *net >= own + WORTHWHILE);
            // Of the values of one mechanism the best is enough.
            let again = !tried.candidate.tuned.is_empty() && tuned.contains(mechanisms);
            if worth && !tried.candidate.tuned.is_empty() {
                tuned.push(mechanisms.clone());
            }
            worth && !again
        });
        self.tried = order.into_iter().map(|(_, tried)| tried).collect();
        let plan = self.plan()?;
        let table = self.table(&plan);
        Ok((plan, table))
    }

    fn table(&self, plan: &Plan) -> Ranked {
        let batch = Batch {
            runs: self.runs(),
            ..Batch::default()
        };
        ranked(plan, &batch)
    }

    fn add(&mut self, candidate: Candidate) {
        if self.tried.iter().all(|tried| tried.candidate != candidate) {
            self.tried.push(Tried::new(candidate));
        }
    }

    /// Joins every change of senders with the best queue, and the best few with the best few queues.
    fn join(&mut self, wish: Wish) {
        if wish.control != Control::Both {
            return;
        }
        let only = |queues: bool| -> Vec<&'static str> {
            self.tried
                .iter()
                .filter_map(|tried| space::single(&tried.candidate))
                .filter(|one| space::changes_only(one, queues))
                .map(|one| one.name)
                .collect()
        };
        let (senders, queues) = (only(false), only(true));
        for (sender, name) in senders.into_iter().enumerate() {
            let few = if sender < JOINED { JOINED } else { 1 };
            for queue in queues.iter().take(few) {
                if !space::is_registered(name, queue) {
                    self.add(space::joined(name, queue));
                }
            }
        }
    }

    /// Halves and doubles the parameters of the best queues.
    fn tune(&mut self, plan: &Plan) {
        let best: Vec<Vec<Candidate>> = plan.variants[1..]
            .iter()
            .map(|planned| space::tuned(plan, planned))
            .filter(|tuned| !tuned.is_empty())
            .take(TUNED)
            .collect();
        for candidate in best.into_iter().flatten() {
            self.add(candidate);
        }
    }

    /// Leaves the finalists: the best, what no other surpasses in both time saved and harm, what the table would recommend (of those that
    /// are equal within error the one that can be had, harms least and is least to do), and then the next best.
    fn choose(&mut self, table: &Ranked) {
        let versus = |index: usize| table.variants[index + 1].versus.as_ref();
        let all = 0..self.tried.len();
        let front = all
            .clone()
            .filter(|&index| versus(index).is_some_and(|versus| versus.pareto))
            .take(FINALISTS / 2);
        let mut by_rank: Vec<usize> = all.clone().collect();
        by_rank.sort_by_key(|&index| versus(index).map_or(u64::MAX, |versus| versus.rank));
        let order = (0..1)
            .chain(front)
            .chain(by_rank.into_iter().take(FINALISTS / 3))
            .chain(all.clone());
        let mut chosen: Vec<usize> = Vec::new();
        for index in order.filter(|index| all.contains(index)) {
            if chosen.len() < FINALISTS && !chosen.contains(&index) {
                chosen.push(index);
            }
        }
        let mut index = 0;
        self.tried.retain(|_| {
            index += 1;
            chosen.contains(&(index - 1))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{candidates, expected_runs, recommend};
    use crate::compare::space::{Control, Wish};
    use crate::compare::study::Study;
    use crate::compare::{Choice, Plan};
    use crate::run::{Engine, Options, execute};
    use crate::testing::{engine, lasting, scenario};
    use fleetfoot_core::tcp::InitialWindow;
    use fleetfoot_sim::output::RunOutput;
    use fleetfoot_sim::spec::{LinkRate, Spec};
    use std::sync::atomic::AtomicBool;

    fn search_for(wish: Wish) -> Choice {
        Choice {
            search: Some(wish),
            ..Choice::default()
        }
    }

    fn searched(wish: Wish, engine: &Engine<'_>) -> Study {
        let plan = Plan::baseline(scenario(), &search_for(wish)).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        recommend(&plan, wish, "", &mut |_, jobs, seeds| {
            execute(jobs, seeds, &options, &never, engine, &|_| ())
        })
        .expect("it runs")
    }

    const SENDERS: Wish = Wish {
        control: Control::Sender,
        only_linux: true,
    };

    #[test]
    fn a_search_among_senders_finds_the_window_that_saves_most_less_harm() {
        // In the made-up results a window of 20 saves 30 % and one of 40 half, but takes 30 % from the backup.
        let study = searched(SENDERS, &engine);
        let document = &study.comparison.document;
        let own = document.recommended.as_ref();
        let own = own.unwrap_or_else(|| panic!("{}", document.answer));
        assert_eq!(own.variant, "initial-window-20");
        assert!(
            study.plan.variants[1..]
                .iter()
                .all(|variant| variant.places.is_empty())
        );
        assert!(
            study
                .plan
                .variants
                .iter()
                .any(|variant| variant.name == "initial-window-40")
        );
        // At half the rate the backup's fair share is what 40 leaves it: there 40 harms nobody and is better, and 20 is a win still.
        let better = document.sensitivity.iter().filter(|point| !point.holds);
        assert!(better.clone().count() > 0 && better.clone().all(|point| point.best == "initial-window-40"));
        assert!(
            document
                .answer
                .contains("It saves time in every network tried near this one, though others save more"),
            "{}",
            document.answer
        );
    }

    #[test]
    fn a_search_among_routers_changes_queues_only() {
        let wish = Wish {
            control: Control::Router,
            only_linux: true,
        };
        let study = searched(wish, &engine);
        assert!(study.plan.variants.len() > 1);
        for variant in &study.plan.variants[1..] {
            assert!(variant.senders.is_none(), "{}", variant.name);
        }
        // No queue changes the made-up results.
        assert!(study.comparison.document.recommended.is_none());
    }

    #[test]
    fn a_smaller_win_that_holds_everywhere_stands_in_for_a_larger_one_that_does_not() {
        // At half the rate a window of 20 is as good as one of 10, one of 40 is so always, and one of 3 saves a tenth everywhere.
        let elsewhere = |spec: &Spec, stop: &AtomicBool| -> Result<RunOutput, String> {
            let slow = is_slow(spec);
            let window = spec.groups[0].sender.initial_window;
            let mut spec = spec.clone();
            if slow && window == InitialWindow::Segments(20) || window == InitialWindow::Segments(40) {
                std::sync::Arc::make_mut(&mut spec.groups[0].sender).initial_window =
                    InitialWindow::Segments(10);
            }
            let output = engine(&spec, stop)?;
            Ok(match window {
                InitialWindow::Segments(3) => lasting(output, 0.9),
                _ => output,
            })
        };
        let document = searched(SENDERS, &elsewhere).comparison.document;
        let own = document.recommended.as_ref();
        let own = own.unwrap_or_else(|| panic!("{}", document.answer));
        assert_eq!(own.variant, "initial-window-3");
        assert_eq!(document.refuted.as_deref(), Some("initial-window-20"));
        let answer = &document.answer;
        assert!(
            answer.contains(
                "initial-window-20 saves more here, less its harm, but is no win with bottleneck rate x 0.5."
            ),
            "{answer}"
        );
    }

    #[test]
    fn what_does_not_hold_near_the_network_is_not_recommended() {
        // At half the rate windows of 20 and 40 take longer.
        let elsewhere = |spec: &Spec, stop: &AtomicBool| -> Result<RunOutput, String> {
            let slow = is_slow(spec);
            // Nothing is a win there, and a window of 20 costs something.
            match spec.groups[0].sender.initial_window {
                window if slow => without_windows(spec, stop).map(|output| match window {
                    InitialWindow::Segments(20 | 40) => lasting(output, 1.1),
                    _ => output,
                }),
                _ => engine(spec, stop),
            }
        };
        let document = searched(SENDERS, &elsewhere).comparison.document;
        assert_eq!(document.recommended, None);
        assert_eq!(document.refuted.as_deref(), Some("initial-window-20"));
        let answer = &document.answer;
        assert!(
            answer.starts_with("Nothing is recommended: initial-window-20 is best in the described network"),
            "{answer}"
        );
        assert!(answer.contains("with bottleneck rate x 0.5"), "{answer}");
    }

    #[test]
    fn where_nothing_saves_time_near_the_network_what_costs_nothing_stands() {
        // At half the rate no window changes anything.
        let elsewhere = |spec: &Spec, stop: &AtomicBool| -> Result<RunOutput, String> {
            let slow = is_slow(spec);
            if slow {
                without_windows(spec, stop)
            } else {
                engine(spec, stop)
            }
        };
        let document = searched(SENDERS, &elsewhere).comparison.document;
        let own = document.recommended.as_ref();
        let own = own.unwrap_or_else(|| panic!("{}", document.answer));
        assert_eq!(own.variant, "initial-window-20");
        assert_eq!(document.refuted, None);
        let slow = document.sensitivity.iter().find(|point| point.wins.is_empty());
        assert!(slow.is_some_and(|slow| slow.holds && slow.change == "bottleneck rate x 0.5"));
        let answer = &document.answer;
        assert!(
            answer.contains("With bottleneck rate x 0.5 no win is significant, and this costs nothing."),
            "{answer}"
        );
        let line = slow.map(crate::compare::words::near).unwrap_or_default();
        assert!(line.contains("no win there is significant"), "{line}");
    }

    /// Whether it is the network with half the rate.
    fn is_slow(spec: &Spec) -> bool {
        let half = |rate: &LinkRate| matches!(rate, LinkRate::Constant(rate) if rate.bps() == 5_000_000);
        spec.links.iter().any(|link| half(&link.rate))
    }

    /// The made-up results as if every window were ten.
    fn without_windows(spec: &Spec, stop: &AtomicBool) -> Result<RunOutput, String> {
        let mut spec = spec.clone();
        std::sync::Arc::make_mut(&mut spec.groups[0].sender).initial_window = InitialWindow::Segments(10);
        engine(&spec, stop)
    }

    /// Completion times with `drr` at any queue shrink to this.
    const WITH_DRR: f64 = 0.6;

    /// The made-up results, sooner where a queue is `drr`.
    fn with_queues(spec: &Spec, stop: &AtomicBool) -> Result<RunOutput, String> {
        let output = engine(spec, stop)?;
        Ok(match spec.links.iter().any(|link| link.queue == "drr") {
            true => lasting(output, WITH_DRR),
            false => output,
        })
    }

    #[test]
    fn a_change_of_senders_is_joined_with_the_best_queue_where_both_are_worth_it() {
        // A window of 20 alone saves 30 %, the queue 40 %, both 58 %; one of 40 with the queue saves 70 % and takes 20 % from others.
        let study = searched(Wish::default(), &with_queues);
        let document = &study.comparison.document;
        let own = document.recommended.as_ref();
        let own = own.unwrap_or_else(|| panic!("{}", document.answer));
        assert_eq!(own.variant, "initial-window-20 + drr", "{}", document.answer);
    }

    #[test]
    fn a_pair_that_is_worth_no_more_than_one_of_the_two_is_not_recommended() {
        // No change of senders does anything.
        let queues = |spec: &Spec, stop: &AtomicBool| -> Result<RunOutput, String> {
            let mut spec = spec.clone();
            std::sync::Arc::make_mut(&mut spec.groups[0].sender).initial_window = InitialWindow::Segments(10);
            with_queues(&spec, stop)
        };
        let study = searched(Wish::default(), &queues);
        let document = &study.comparison.document;
        let own = document.recommended.as_ref();
        let own = own.unwrap_or_else(|| panic!("{}", document.answer));
        assert_eq!(own.variant, "drr");
        let finalists = &study.plan.variants[1..];
        assert!(
            finalists
                .iter()
                .all(|one| !one.name.contains("drr +") && !one.name.contains("+ drr"))
        );
    }

    #[test]
    fn what_chose_the_finalists_is_not_what_they_are_compared_by() {
        let plan = Plan::baseline(scenario(), &search_for(SENDERS)).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let mut chosen_by: Vec<u64> = Vec::new();
        let study = recommend(&plan, SENDERS, "", &mut |title, jobs, seeds| {
            if title.contains("candidates with") {
                chosen_by.extend(seeds);
            }
            execute(jobs, seeds, &options, &never, &engine, &|_| ())
        })
        .expect("it runs");
        chosen_by.sort_unstable();
        chosen_by.dedup();
        assert_eq!(chosen_by.len(), 8, "{chosen_by:?}");
        for variant in &study.comparison.variants {
            assert!(variant.runs.len() >= plan.seeds.len(), "{}", variant.name);
            assert!(
                variant.runs.iter().all(|run| !chosen_by.contains(&run.seed)),
                "{}",
                variant.name
            );
        }
        let answer = &study.comparison.document.answer;
        assert!(answer.contains("the search had other seeds"), "{answer}");
    }

    #[test]
    fn an_interrupted_search_says_that_its_seeds_are_those_that_chose() {
        let plan = Plan::baseline(scenario(), &search_for(SENDERS)).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let answer = |interrupted_at: &str| {
            let study = recommend(&plan, SENDERS, "", &mut |title, jobs, seeds| {
                let mut batch = execute(jobs, seeds, &options, &never, &engine, &|_| ())?;
                batch.interrupted = title.contains(interrupted_at);
                Ok(batch)
            });
            let study = study.expect("it runs");
            assert!(study.comparison.document.interrupted);
            let document = study.comparison.document;
            assert!(document.recommended.is_some(), "{}", document.answer);
            let own = study.batch.runs[1]
                .iter()
                .all(|run| plan.seeds.contains(&run.seed));
            (own, document.answer)
        };
        let (own, text) = answer("candidates with 8 seeds");
        assert!(
            !own && text.contains("; these are the seeds that chose it, so chance may have helped."),
            "{text}"
        );
        assert!(!text.contains("the search had other seeds"), "{text}");
        // The finalists have seeds of their own, as far as they got.
        let (own, text) = answer("the finalists");
        assert!(own && text.contains("; the search had other seeds"), "{text}");
    }

    #[test]
    fn a_search_of_everything_stays_in_its_space_and_takes_a_tenth_of_its_runs() {
        let wish = Wish::default();
        let plan = Plan::baseline(scenario(), &search_for(wish)).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let (mut runs, mut tried, mut near) = (0, std::collections::BTreeSet::new(), false);
        let mut made = 0;
        let study = recommend(&plan, wish, "", &mut |title, jobs, seeds| {
            near |= title.starts_with("with ");
            made += jobs.len() * seeds.len();
            runs += usize::from(!near) * jobs.len() * seeds.len();
            tried.extend(jobs.iter().filter(|_| !near).map(|job| job.name.clone()));
            execute(jobs, seeds, &options, &never, &with_queues, &|_| ())
        })
        .expect("it runs");
        let described = &study.batch.runs[0];
        let space = crate::compare::exhaustive::space(&plan, described, wish).expect("it resolves");
        let all = crate::compare::exhaustive::planned(&plan, described, space).expect("it resolves");
        let names: Vec<&String> = all.variants.iter().map(|one| &one.name).collect();
        let outside: Vec<&String> = tried.iter().filter(|name| !names.contains(name)).collect();
        assert!(outside.iter().all(|name| name.ends_with(" only")), "{outside:?}");
        let everything = all.variants.len() * plan.seeds.len();
        assert!(10 * runs <= everything, "{runs} of {everything} runs");
        let first = crate::compare::exhaustive::planned(&plan, described, candidates(&plan.scenario, wish));
        let expected = expected_runs(&first.expect("it resolves"), wish) as f64;
        let share = made as f64 / expected;
        assert!(
            (0.75..=1.25).contains(&share),
            "{made} runs, {expected} were expected"
        );
    }

    #[test]
    fn an_interrupted_check_still_refutes() {
        // At half the rate, the first network tried near this one, every window but that of ten takes longer; then the user stops the search.
        let plan = Plan::baseline(scenario(), &search_for(SENDERS)).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let slower = |spec: &Spec, stop: &AtomicBool| {
            let window = spec.groups[0].sender.initial_window;
            without_windows(spec, stop).map(|output| match window {
                InitialWindow::Segments(10) => output,
                _ => lasting(output, 1.1),
            })
        };
        let study = recommend(&plan, SENDERS, "", &mut |title, jobs, seeds| {
            let mut batch = match title.starts_with("with ") {
                true => execute(jobs, seeds, &options, &never, &slower, &|_| ())?,
                false => execute(jobs, seeds, &options, &never, &engine, &|_| ())?,
            };
            batch.interrupted = title.starts_with("with bottleneck rate x 2");
            Ok(batch)
        })
        .expect("it runs");
        let document = &study.comparison.document;
        assert!(document.interrupted && document.sensitivity.len() == 1);
        assert_eq!(document.recommended, None, "{}", document.answer);
        assert!(document.refuted.is_some());
    }

    #[test]
    fn where_nothing_applies_the_answer_says_so() {
        // Pings and a stream of datagrams have no TCP that could be changed.
        let text = crate::testing::TEXT;
        let start = text.find("[[traffic]]").expect("it has traffic");
        let text = format!(
            "{}[[traffic]]\nname = \"game\"\nkind = \"ping\"\ninterval = \"20 ms\"\nlatency_sensitive = true\n[run]\nduration = \"2 s\"\nseeds = 3\n",
            &text[..start]
        );
        let scenario = crate::scenario::Scenario::parse("test.toml", &text).expect("it is correct");
        let plan = Plan::baseline(scenario, &search_for(SENDERS)).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let study = recommend(&plan, SENDERS, "", &mut |_, jobs, seeds| {
            execute(jobs, seeds, &options, &never, &crate::run::simulate, &|_| ())
        })
        .expect("it runs");
        let answer = &study.comparison.document.answer;
        assert!(answer.starts_with("Nothing is recommended"), "{answer}");
    }
}
