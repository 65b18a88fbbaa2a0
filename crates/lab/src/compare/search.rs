//! `fleetfoot recommend`: one setting to try first, searched for among everything that applies and that the user can turn on.
//!
//! **Source.** Successive halving (Jamieson and Talwalkar 2016, sections 2 and 3): everything is run with few seeds, the worse half
//! goes, the rest gets twice the seeds, until the finalists have all of them. All have common random numbers. What a candidate is worth
//! is the time it saves those who wait, less the harm to the others, as in the ranking of `compare`. After the first rung the best
//! changes of senders are joined with the best queues; after the second the parameters of the best queues are halved and doubled. The
//! finalists are then compared as `compare --sensitivity` does, with intervals and tiers.
//!
//! **Ours.** How many seeds the first rung has, how many finalists there are, and how many are joined and tuned: as few as found the same
//! answer on the home line; they are not tested beyond that. What is refuted near the described network is not recommended: of the first tier the first is taken that belongs to
//! the first tier in every neighbouring network too, else the first of the table that is a win in all of them; if none is, nothing is
//! recommended and the answer says why.

use super::plan::Candidate;
use super::ranked;
use super::ranking::WORTHWHILE;
use super::study::{Extent, Runner, Study, StudyError, count, decide};
use super::{Choice, Plan};
use crate::mechanisms::{self, Effort, Mechanism};
use crate::result::RunData;
use crate::run::Batch;
use crate::scenario::Scenario;
use fleetfoot_core::parameter::{Parameter, ParameterKind, Value};
use std::time::Instant;

/// Where the user has power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Over hosts that send.
    Sender,
    /// Over queues of routers.
    Router,
    /// Over both.
    #[default]
    Both,
}

/// What may be recommended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Where.
    pub control: Control,
    /// Only what a released Linux kernel has.
    pub only_linux: bool,
}

/// Seeds of the first rung.
const FIRST_SEEDS: usize = 2;
/// Candidates that are compared over all seeds.
const FINALISTS: usize = 6;
/// Changes of senders, and queues, that are joined with each other.
const JOINED: usize = 3;
/// Candidates whose parameters are changed.
const TUNED: usize = 2;

impl Wish {
    /// Whether this mechanism may be part of an answer.
    fn allows(self, mechanism: &Mechanism) -> bool {
        let queues = mechanism.changes_queues();
        let senders = mechanism.changes_senders();
        let where_ = match self.control {
            Control::Both => true,
            Control::Sender => !queues,
            Control::Router => !senders,
        };
        where_ && (!self.only_linux || mechanism.effort < Effort::Patch)
    }
}

/// Something that is tried, with its runs.
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
    let mut search = Search {
        baseline,
        described: &described,
        tried: candidates(&baseline.scenario, wish)
            .into_iter()
            .map(|candidate| Tried {
                candidate,
                runs: Vec::new(),
            })
            .collect(),
    };
    let all = baseline.seeds.len();
    let mut seeds = FIRST_SEEDS.min(all);
    for rung in 1.. {
        if total.interrupted {
            break;
        }
        search.climb(seeds, &mut total, run)?;
        if total.interrupted {
            break;
        }
        let plan = search.sort()?;
        match rung {
            1 => search.join(wish),
            2 => search.tune(&plan),
            _ => {}
        }
        if search.grown(seeds) {
            search.climb(seeds, &mut total, run)?;
            if total.interrupted {
                break;
            }
            search.sort()?;
        }
        if seeds == all && search.tried.len() <= FINALISTS {
            break;
        }
        let keep = FINALISTS.max(search.tried.len().div_ceil(2));
        search.tried.truncate(if seeds == all { FINALISTS } else { keep });
        seeds = (2 * seeds).min(all);
    }
    let plan = search.plan()?;
    total.runs = vec![described.clone()];
    total
        .runs
        .extend(search.tried.into_iter().map(|tried| tried.runs));
    total.runs.truncate(plan.variants.len());
    let extent = Extent {
        budget: None,
        sensitivity: true,
        only_what_holds: true,
    };
    decide(plan, total, extent, started, command, run)
}

/// What is tried first: variants of the file and mechanisms, one alone or as registered pairs.
pub fn candidates(scenario: &Scenario, wish: Wish) -> Vec<Candidate> {
    let alone = |names: Vec<&'static str>| Candidate {
        variant: None,
        mechanisms: names,
        tuned: None,
    };
    let of_file = scenario.variants().iter().map(|variant| Candidate {
        variant: Some(variant.name.clone()),
        mechanisms: Vec::new(),
        tuned: None,
    });
    let single = mechanisms::ENTRIES
        .iter()
        .filter(|mechanism| wish.allows(mechanism))
        .map(|mechanism| alone(vec![mechanism.name]));
    let allowed = |name: &str| mechanisms::find(name).is_some_and(|mechanism| wish.allows(mechanism));
    let pairs = mechanisms::PAIRS
        .iter()
        .filter(|(first, second)| allowed(first) && allowed(second))
        .map(|&(first, second)| alone(vec![first, second]));
    let everything = wish == Wish::default();
    of_file
        .filter(|_| everything)
        .chain(single)
        .chain(pairs)
        .collect()
}

struct Search<'a> {
    baseline: &'a Plan,
    described: &'a [RunData],
    /// The best first, after a rung.
    tried: Vec<Tried>,
}

impl Search<'_> {
    /// The plan of what is left. Candidates that do not apply, or are the same as one before, go.
    fn plan(&mut self) -> Result<Plan, StudyError> {
        let choice = Choice {
            candidates: self.tried.iter().map(|tried| tried.candidate.clone()).collect(),
            ..self.baseline.choice().clone()
        };
        let plan = self
            .baseline
            .clone()
            .choosing(choice)
            .with_baseline(self.described)?;
        Ok(plan)
    }

    /// Gives everything that is left so many seeds.
    fn climb(&mut self, seeds: usize, total: &mut Batch, run: &mut Runner<'_>) -> Result<(), StudyError> {
        let plan = self.matched()?;
        let jobs = plan.jobs();
        // Those that have equally many runs are run together.
        let mut had: Vec<usize> = self.tried.iter().map(|tried| tried.runs.len()).collect();
        had.sort_unstable();
        had.dedup();
        for had in had.into_iter().filter(|&had| had < seeds) {
            let members: Vec<usize> = (0..self.tried.len())
                .filter(|&index| self.tried[index].runs.len() == had)
                .collect();
            let jobs: Vec<_> = members.iter().map(|&index| jobs[index + 1].clone()).collect();
            let title = format!("{} candidates with {seeds} seeds", jobs.len());
            let batch = run(&title, &jobs, &self.baseline.seeds[had..seeds])?;
            count(total, &batch);
            total.interrupted |= batch.interrupted;
            for (index, runs) in members.into_iter().zip(batch.runs) {
                self.tried[index].runs.extend(runs);
            }
            if total.interrupted {
                break;
            }
        }
        Ok(())
    }

    /// The plan, with exactly one variant for each that is left.
    fn matched(&mut self) -> Result<Plan, StudyError> {
        let mut kept: Vec<Tried> = Vec::new();
        let mut identities: Vec<String> = vec![crate::identity::of(&self.baseline.described.spec)];
        for tried in std::mem::take(&mut self.tried) {
            let choice = Choice {
                candidates: vec![tried.candidate.clone()],
                ..self.baseline.choice().clone()
            };
            let alone = self
                .baseline
                .clone()
                .choosing(choice)
                .with_baseline(self.described)?;
            let identity = alone
                .variants
                .get(1)
                .map(|variant| crate::identity::of(&variant.resolved.spec));
            if let Some(identity) = identity.filter(|identity| !identities.contains(identity)) {
                identities.push(identity);
                kept.push(tried);
            }
        }
        self.tried = kept;
        self.plan()
    }

    /// Sorts what is left by what it saves less what it harms, over the seeds that it has.
    fn sort(&mut self) -> Result<Plan, StudyError> {
        let plan = self.plan()?;
        let mut runs = vec![self.described.to_vec()];
        runs.extend(self.tried.iter().map(|tried| tried.runs.clone()));
        let batch = Batch {
            runs,
            ..Batch::default()
        };
        let table = ranked(&plan, &batch);
        let net = |index: usize| {
            let versus = table.variants[index + 1].versus.as_ref();
            let win = versus.and_then(|versus| versus.win).unwrap_or(f64::NEG_INFINITY);
            let harm = versus
                .and_then(|versus| versus.harm)
                .map_or(0.0, |harm| harm.value);
            win - harm
        };
        let mut order: Vec<(f64, Tried)> = std::mem::take(&mut self.tried)
            .into_iter()
            .enumerate()
            .map(|(index, tried)| (net(index), tried))
            .collect();
        order.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        // A parameter with another value is more to do than the mechanism alone: it has to be worth it, and the best one is enough.
        let alone: Vec<(f64, Vec<&'static str>)> = order
            .iter()
            .filter(|(_, tried)| tried.candidate.tuned.is_none() && tried.candidate.variant.is_none())
            .map(|(net, tried)| (*net, tried.candidate.mechanisms.clone()))
            .collect();
        let mut tuned: Vec<Vec<&'static str>> = Vec::new();
        order.retain(|(net, tried)| {
            let names = &tried.candidate.mechanisms;
            if tried.candidate.tuned.is_none() {
                return true;
            }
            let own = alone.iter().find(|(_, other)| other == names);
            let worth = own.is_none_or(|(own, _)| *net >= own + WORTHWHILE) && !tuned.contains(names);
            tuned.extend(worth.then(|| names.clone()));
            worth
        });
        self.tried = order.into_iter().map(|(_, tried)| tried).collect();
        self.plan()
    }

    /// Whether something new has fewer seeds than the rest.
    fn grown(&self, seeds: usize) -> bool {
        self.tried.iter().any(|tried| tried.runs.len() < seeds)
    }

    fn add(&mut self, candidate: Candidate) {
        if self.tried.iter().all(|tried| tried.candidate != candidate) {
            self.tried.push(Tried {
                candidate,
                runs: Vec::new(),
            });
        }
    }

    /// Joins the best changes of senders with the best queues.
    fn join(&mut self, wish: Wish) {
        if wish.control != Control::Both {
            return;
        }
        let single = |queues: bool| -> Vec<&'static str> {
            let names = self
                .tried
                .iter()
                .filter_map(|tried| match tried.candidate.mechanisms.as_slice() {
                    [one] => mechanisms::find(one),
                    _ => None,
                });
            names
                .filter(|one| one.changes_queues() == queues && one.changes_senders() != queues)
                .map(|one| one.name)
                .take(JOINED)
                .collect()
        };
        let (senders, queues) = (single(false), single(true));
        for sender in senders {
            for &queue in &queues {
                self.add(Candidate {
                    variant: None,
                    mechanisms: vec![sender, queue],
                    tuned: None,
                });
            }
        }
    }

    /// Halves and doubles the parameters of the best queues.
    fn tune(&mut self, plan: &Plan) {
        let best: Vec<(Candidate, usize)> = self
            .tried
            .iter()
            .enumerate()
            .filter(|(_, tried)| tried.candidate.variant.is_none() && tried.candidate.tuned.is_none())
            .filter(|(index, _)| !plan.variants[index + 1].places.is_empty())
            .map(|(index, tried)| (tried.candidate.clone(), index))
            .take(TUNED)
            .collect();
        for (candidate, index) in best {
            let planned = &plan.variants[index + 1];
            let Some(&place) = planned.places.first() else {
                continue;
            };
            let Some(&link) = plan.places[place].links.first() else {
                continue;
            };
            let values = &planned.resolved.spec.links[link].queue_values;
            for parameter in values.table() {
                for value in near(parameter, values.value(parameter.name)) {
                    self.add(Candidate {
                        tuned: Some((parameter.name, value)),
                        ..candidate.clone()
                    });
                }
            }
        }
    }
}

/// Half and double of a parameter's value, as far as its range has them.
fn near(parameter: &Parameter, value: Value) -> Vec<toml::Value> {
    let text = |value: Value| toml::Value::String(super::shown(value));
    [0.5, 2.0]
        .into_iter()
        .filter_map(|factor| match (parameter.kind, value) {
            (ParameterKind::Duration(low, high), Value::Duration(span)) => {
                let changed = fleetfoot_core::time::Duration::from_secs_f64(span.as_secs_f64() * factor);
                (low <= changed && changed <= high && changed != span).then(|| text(Value::Duration(changed)))
            }
            (ParameterKind::Bytes(low, high), Value::Bytes(bytes)) => {
                let changed = fleetfoot_core::units::Bytes((bytes.get() as f64 * factor) as u64);
                (low <= changed && changed <= high && changed != bytes).then(|| text(Value::Bytes(changed)))
            }
            (ParameterKind::Number(low, high), Value::Number(number)) => {
                let changed = number * factor;
                ((low..=high).contains(&changed) && changed != number).then_some(toml::Value::Float(changed))
            }
            (ParameterKind::Integer(low, high), Value::Integer(number)) => {
                let changed = (number as f64 * factor) as u64;
                let fits = (low..=high).contains(&changed) && changed != number;
                fits.then(|| toml::Value::Integer(i64::try_from(changed).unwrap_or(i64::MAX)))
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Control, Wish, recommend};
    use crate::compare::study::Study;
    use crate::compare::{Choice, Plan};
    use crate::run::{Engine, Options, execute};
    use crate::testing::{engine, scenario};
    use fleetfoot_core::tcp::InitialWindow;
    use fleetfoot_core::time::{Duration, Instant};
    use fleetfoot_sim::output::RunOutput;
    use fleetfoot_sim::spec::{LinkRate, Spec};
    use std::sync::atomic::AtomicBool;

    fn searched(wish: Wish, engine: &Engine<'_>) -> Study {
        let choice = Choice {
            search: Some(wish),
            ..Choice::default()
        };
        let plan = Plan::baseline(scenario(), &choice).expect("it resolves");
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
            let slow = spec
                .links
                .iter()
                .any(|link| matches!(link.rate, LinkRate::Constant(rate) if rate.bps() == 5_000_000));
            let window = spec.groups[0].sender.initial_window;
            let mut spec = spec.clone();
            if slow && window == InitialWindow::Segments(20) || window == InitialWindow::Segments(40) {
                std::sync::Arc::make_mut(&mut spec.groups[0].sender).initial_window =
                    InitialWindow::Segments(10);
            }
            let mut output = engine(&spec, stop)?;
            if window == InitialWindow::Segments(3) {
                for flow in &mut output.groups[0].flows {
                    let took =
                        |end: Instant| Duration::from_secs_f64(0.9 * end.since(flow.start).as_secs_f64());
                    flow.completed = flow.completed.map(|end| flow.start + took(end));
                }
            }
            Ok(output)
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
        // At half the rate a window of 20 is as good as one of 10.
        let elsewhere = |spec: &Spec, stop: &AtomicBool| -> Result<RunOutput, String> {
            let slow = spec
                .links
                .iter()
                .any(|link| matches!(link.rate, LinkRate::Constant(rate) if rate.bps() == 5_000_000));
            let mut spec = spec.clone();
            if slow {
                std::sync::Arc::make_mut(&mut spec.groups[0].sender).initial_window =
                    InitialWindow::Segments(10);
            }
            engine(&spec, stop)
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
}
