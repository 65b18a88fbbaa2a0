//! One run of a point, on whatever thread or machine: the point is resolved, all variants are run, and what is kept is an entry of
//! the journal.

use super::Sweep;
use super::data::Scene;
use super::journal::{Outcome, body};
use crate::memory;
use crate::result::RunData;
use crate::run::{Engine, Job};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// A point with one of its seeds: all of its variants, one after the other, because users who are held to the requests of the first
/// variant need its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Index of the point.
    pub point: usize,
    /// Index of the seed.
    pub index: usize,
}

/// A unit that came back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    pub(super) unit: Unit,
    /// How long it took (s).
    pub(super) wall_s: f64,
    pub(super) what: What,
}

/// What came of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum What {
    /// An entry of the journal.
    Entry(Vec<u8>),
    /// The values of the point do not fit together.
    Misfit(String),
    /// Memory was not enough: others may have room for it, so it is no result.
    Memory(String),
    /// It was stopped.
    Stopped,
}

/// Runs units of a sweep, from any number of threads.
#[derive(Debug)]
pub struct Worker<S> {
    sweep: S,
    /// Points that were resolved last.
    recent: Mutex<VecDeque<(usize, Resolved)>>,
}

type Resolved = Arc<OnceLock<Result<Prepared, String>>>;

/// Points that stay resolved: seeds of one point are run at about the same time.
const RECENT: usize = 64;

impl<S: Deref<Target = Sweep>> Worker<S> {
    /// Runs units of this sweep.
    pub fn new(sweep: S) -> Worker<S> {
        Worker {
            sweep,
            recent: Mutex::default(),
        }
    }

    /// Runs a unit. Never fails: what went wrong is a result too.
    pub fn run(&self, unit: Unit, stop: &AtomicBool, engine: &Engine<'_>) -> Done {
        let begin = Instant::now();
        let what = self.what(unit, stop, engine);
        Done {
            unit,
            wall_s: begin.elapsed().as_secs_f64(),
            what,
        }
    }

    /// Runs a task that travelled ([`Driver::take_bytes`](super::Driver::take_bytes)), and returns what travels back.
    ///
    /// # Errors
    /// The bytes are no task of this sweep.
    pub fn run_bytes(&self, task: &[u8], stop: &AtomicBool, engine: &Engine<'_>) -> Result<Vec<u8>, String> {
        let units: Vec<Unit> = postcard::from_bytes(task).map_err(|error| error.to_string())?;
        let fits = |unit: &Unit| unit.point < self.sweep.points.len() && unit.index < self.sweep.seeds.len();
        if !units.iter().all(fits) {
            return Err(String::from("this is a task of another sweep"));
        }
        let done: Vec<Done> = units.iter().map(|unit| self.run(*unit, stop, engine)).collect();
        postcard::to_stdvec(&done).map_err(|error| error.to_string())
    }

    fn what(&self, unit: Unit, stop: &AtomicBool, engine: &Engine<'_>) -> What {
        let resolved = self.resolved(unit.point);
        let prepared = match resolved.get_or_init(|| Prepared::of(&self.sweep, unit.point)) {
            Ok(prepared) => prepared,
            Err(reason) => return What::Misfit(reason.clone()),
        };
        let seed = self.sweep.seeds[unit.index];
        let outcome = match prepared.run(seed, stop, engine) {
            Ok(None) => return What::Stopped,
            Err(failure) if failure.memory => {
                let label = self.sweep.points.label(unit.point);
                return What::Memory(format!("{label}: {}", failure.reason));
            }
            Err(failure) => Outcome::Failed(failure.reason),
            Ok(Some(outcome)) => outcome,
        };
        let key = self.sweep.key(unit.point).of_seed(seed);
        body(&key, &prepared.inapplicable, &outcome).map_or_else(What::Misfit, What::Entry)
    }

    fn resolved(&self, point: usize) -> Resolved {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = recent.iter().rev().find(|(known, _)| *known == point) {
            return Arc::clone(known);
        }
        if recent.len() >= RECENT {
            recent.pop_front();
        }
        let new = Resolved::default();
        recent.push_back((point, Arc::clone(&new)));
        new
    }
}

/// A point that was resolved.
#[derive(Debug)]
struct Prepared {
    jobs: Vec<Job>,
    scenes: Vec<Scene>,
    inapplicable: String,
}

/// Why a run failed, and whether memory was the cause.
struct Failure {
    reason: String,
    memory: bool,
}

impl Prepared {
    fn of(sweep: &Sweep, point: usize) -> Result<Prepared, String> {
        let plan = sweep
            .plan(&sweep.points.setting(point))
            .map_err(|error| error.message.to_string())?;
        let scenes = plan.variants.iter();
        let scenes = scenes.map(|variant| Scene::of(variant, &plan.described));
        let missing = plan.inapplicable.iter();
        let missing: Vec<String> = missing
            .map(|one| format!("{}: {}", one.name, one.reason))
            .collect();
        Ok(Prepared {
            jobs: plan.jobs(),
            scenes: scenes.collect(),
            inapplicable: missing.join("; "),
        })
    }

    /// Runs all variants with this seed; `None` if it was stopped.
    fn run(&self, seed: u64, stop: &AtomicBool, engine: &Engine<'_>) -> Result<Option<Outcome>, Failure> {
        let (mut runs, mut links) = (Vec::new(), Vec::new());
        let mut first: Option<Arc<RunOutput>> = None;
        for (job, scene) in self.jobs.iter().zip(&self.scenes) {
            let simulate = |spec: &Spec| -> Result<Option<Arc<RunOutput>>, Failure> {
                let spec = Spec { seed, ..spec.clone() };
                let output = engine(&spec, stop).map_err(|reason| Failure {
                    reason: format!("variant `{}`, seed {seed}: {reason}", job.name),
                    memory: memory::was_reached(),
                })?;
                Ok((!output.interrupted).then(|| Arc::new(output)))
            };
            let spec = match (&job.demand, &first) {
                (None, _) => None,
                (Some(demand), Some(first)) if demand.identity == self.jobs[0].identity => {
                    Some(demand.applied_to(&job.spec, first))
                }
                (Some(demand), _) => match simulate(&demand.spec)? {
                    Some(baseline) => Some(demand.applied_to(&job.spec, &baseline)),
                    None => return Ok(None),
                },
            };
            let Some(output) = simulate(spec.as_ref().unwrap_or(&job.spec))? else {
                return Ok(None);
            };
            first.get_or_insert_with(|| Arc::clone(&output));
            let run = RunData { seed, output };
            scene.rows(&job.name, &run, &mut runs, &mut links);
        }
        Ok(Some(Outcome::Rows { runs, links }))
    }
}
