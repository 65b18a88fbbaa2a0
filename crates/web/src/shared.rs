//! Runs that several engines share: one ranks, others make runs for it. A page has one engine in each worker, and they have no memory in
//! common.
//!
//! The one that ranks says which runs its next step wants, and at which places ([`missing`]); another makes one of them ([`make`]); what
//! came out is handed over ([`keep`]). Who makes a run changes nothing: its name is a hash of everything that it
//! follows from. What others cannot make, the one that ranks makes itself.

use crate::failure::Failure;
use crate::runs;
use crate::scenario::Described;
use crate::study::{Wanted, simulated, studied};
use fleetfoot_lab::compare::parts::whole_of;
use fleetfoot_lab::compare::{BASELINE, Choice, Plan};
use fleetfoot_lab::result::RunData;
use fleetfoot_lab::run::{self, Job};
use fleetfoot_sim::spec::Spec;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// A run that is to be made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The scenario.
    pub scenario: Described,
    /// Indices of the places that queue mechanisms are applied to.
    pub chosen: Vec<usize>,
    /// What is run.
    pub variant: String,
    /// Its seed.
    pub seed: u64,
    /// Its name.
    pub key: String,
}

/// A run that was made: its record is attached.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// Its name.
    pub key: String,
}

/// `{runs, likely, more, chosen}`: the runs `{key, variant, seed}` that the next step of the comparison wants and that are not
/// here; those that the step after it wants, if queues stand where they do in the runs of the baseline that are here, or did in the
/// comparison before; whether another step may follow; the places of queue mechanisms. Without runs others can do nothing more for it.
pub(crate) fn missing(wanted: &Wanted) -> Result<Value, Failure> {
    let (scenario, _files) = wanted.scenario.scenario()?;
    let plan = Plan::baseline(scenario, &wanted.choice())?;
    wanted.possible(&plan)?;
    let place = Placed::of(wanted, &plan);
    let mut found = Vec::new();
    let (mut steps, mut ended) = (0, false);
    let mut step = |_: &str, jobs: &[Job], seeds: &[u64]| {
        steps += 1;
        let last = wanted.preview && steps == STEPS_OF_PREVIEW;
        if let Some(batch) = runs::all(jobs, seeds).filter(|_| !last) {
            return Ok(batch);
        }
        found = lacking(jobs, seeds);
        ended = true;
        Err(run::Error::Engine {
            variant: String::new(),
            seed: 0,
            reason: String::from("runs of this step are still to be made"),
        })
    };
    let (chosen, likely) = (place.plan.chosen.clone(), place.likely()?);
    match studied(wanted, plan, &mut step) {
        Err(error) if !ended => Err(error.into()),
        _ => Ok(json!({
            "runs": found, "likely": likely, "more": !(wanted.preview && steps == STEPS_OF_PREVIEW),
            "chosen": chosen,
        })),
    }
}

/// The baseline, and the variants.
const STEPS_OF_PREVIEW: u32 = 2;

/// Those of these runs that are not here: `{key, variant, seed}`.
fn lacking(jobs: &[Job], seeds: &[u64]) -> Vec<Value> {
    let mut found = Vec::new();
    for (seed, job) in seeds
        .iter()
        .flat_map(|seed| jobs.iter().map(move |job| (*seed, job)))
    {
        // What is held to the demand of another run is made where that run is.
        if let Some(key) = runs::key_of(job, seed).filter(|key| !runs::has(key)) {
            found.push(json!({ "key": key, "variant": job.name, "seed": seed }));
        }
    }
    found
}

/// A plan whose queue mechanisms have their places.
struct Placed {
    plan: Plan,
    /// Whether not all runs of the baseline are here that the places follow from, yet something is known.
    guessed: bool,
}

/// Where queues stood in the last comparison, and the file.
static STOOD: Mutex<Option<(String, Vec<usize>)>> = Mutex::new(None);

impl Placed {
    fn of(wanted: &Wanted, plan: &Plan) -> Placed {
        let runs = described(&plan.jobs(), &plan.seeds);
        let mut plan = plan.clone().with_standing(&runs);
        let mut stood = STOOD.lock().unwrap_or_else(PoisonError::into_inner);
        if !runs.is_empty() {
            *stood = Some((wanted.scenario.toml.clone(), plan.chosen.clone()));
        }
        let before = stood.as_ref().filter(|(toml, chosen)| {
            *toml == wanted.scenario.toml && chosen.iter().all(|&place| place < plan.places.len())
        });
        let guessed = runs.len() < plan.seeds.len() && before.is_some();
        if let Some((_, chosen)) = before.filter(|_| runs.is_empty()) {
            plan.chosen.clone_from(chosen);
        }
        Placed { plan, guessed }
    }

    fn likely(self) -> Result<Vec<Value>, Failure> {
        if !self.guessed {
            return Ok(Vec::new());
        }
        let plan = self.plan.with_variants()?;
        Ok(lacking(&plan.jobs()[1..], &plan.seeds))
    }
}

/// Makes a run: `{key}`, and its record.
pub(crate) fn make(
    task: &Task,
    stop: &AtomicBool,
    progress: &(dyn Fn(&Value) + Sync),
) -> Result<(Value, Vec<u8>), Failure> {
    let spec = match planned_before(task) {
        Some(spec) => Some(spec),
        None => planned(task)?,
    };
    let spec = spec.ok_or_else(|| {
        Failure::new(format!(
            "`{}` with seed {} follows from more than the scenario",
            task.variant, task.seed
        ))
    })?;
    let output = simulated(progress)(&spec, stop).map_err(Failure::new)?;
    if output.interrupted {
        return Err(Failure::new("stopped before the run was done"));
    }
    let record = postcard::to_stdvec(&output).map_err(|error| Failure::new(error.to_string()))?;
    Ok((json!({ "key": task.key }), record))
}

/// What was planned for tasks of the last comparison: planning takes longer than many a run.
static PLANNED: Mutex<Option<Planned>> = Mutex::new(None);

struct Planned {
    scenario: Described,
    chosen: Vec<usize>,
    jobs: Vec<Job>,
}

/// What a task runs, if its variant was planned for a task before.
fn planned_before(task: &Task) -> Option<Spec> {
    let planned = PLANNED.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |planned: &&Planned| planned.scenario == task.scenario && planned.chosen == task.chosen;
    spec_of(&planned.as_ref().filter(same)?.jobs, task)
}

/// What a task runs, by planning its variant. `None`: it does not follow from scenario and places alone.
fn planned(task: &Task) -> Result<Option<Spec>, Failure> {
    let jobs = plan_of(&task.scenario, &task.variant, &task.chosen, None)?.jobs();
    let spec = spec_of(&jobs, task);
    let mut planned = PLANNED.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *planned {
        Some(planned) if planned.scenario == task.scenario && planned.chosen == task.chosen => {
            planned.jobs.extend(jobs);
        }
        planned => {
            *planned = Some(Planned {
                scenario: task.scenario.clone(),
                chosen: task.chosen.clone(),
                jobs,
            });
        }
    }
    Ok(spec)
}

/// The plan of a variant with queue mechanisms at these places: the baseline, the variant and, where it is a part of another, that and its parts.
pub(crate) fn plan_of(
    described: &Described,
    variant: &str,
    chosen: &[usize],
    seed: Option<u64>,
) -> Result<Plan, Failure> {
    let (scenario, _files) = described.scenario()?;
    let named = scenario.variants().iter().any(|own| own.name == variant);
    let whole = match named || variant == BASELINE {
        true => variant,
        false => whole_of(variant),
    };
    let choice = Choice {
        only: Vec::from_iter((variant != BASELINE).then(|| whole.to_owned())),
        seed,
        seeds: Some(1),
        ..Choice::default()
    };
    let mut plan = Plan::baseline(scenario, &choice)?;
    if variant == BASELINE {
        return Ok(plan);
    }
    if chosen.iter().all(|&place| place < plan.places.len()) {
        plan.chosen = chosen.to_vec();
    }
    let mut plan = plan.with_variants()?;
    if whole != variant {
        plan.add_parts(whole);
        plan.add_part_called(whole, variant);
    }
    Ok(plan)
}

/// The runs of the baseline that are here.
fn described(jobs: &[Job], seeds: &[u64]) -> Vec<RunData> {
    let Some(job) = jobs.first() else {
        return Vec::new();
    };
    let found = seeds.iter().filter_map(|&seed| {
        let output = runs::find(&runs::key_of(job, seed)?)?;
        Some(RunData { seed, output })
    });
    found.collect()
}

/// The specification of a task's run: that of the job which gives a run of the task's name.
fn spec_of(jobs: &[Job], task: &Task) -> Option<Spec> {
    let named = jobs.iter().find(|job| job.name == task.variant)?;
    let name = runs::key_of(named, task.seed)?;
    (name == task.key).then(|| Spec {
        seed: task.seed,
        ..named.spec.clone()
    })
}

/// Keeps a run that another engine made.
pub(crate) fn keep(made: &Made, record: &[u8]) -> Result<Value, Failure> {
    let output = postcard::from_bytes(record)
        .map_err(|error| Failure::new(format!("this is no record of a run: {error}")))?;
    runs::put(made.key.clone(), output);
    Ok(json!({ "key": made.key }))
}
