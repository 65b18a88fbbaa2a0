//! Runs that several engines share: one ranks, others make runs for it. A page has one engine in each worker, and they have no memory in
//! common.
//!
//! The one that ranks says which runs its next step wants ([`missing`]); another, which was given those of the baseline, makes one of them
//! ([`make`]); what came out is handed over ([`keep`]). Who makes a run changes nothing: its name is a hash of everything that it
//! follows from. What others cannot make, the one that ranks makes itself.

use crate::failure::Failure;
use crate::runs;
use crate::study::{Wanted, simulated, studied};
use fleetfoot_lab::compare::Plan;
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
    /// The comparison that it belongs to.
    pub of: Wanted,
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

/// `{runs, more}`: the runs `{key, variant, seed}` that the next step of the comparison wants and that are not here, and whether another step
/// may follow. Without runs others can do nothing more for it.
pub(crate) fn missing(wanted: &Wanted) -> Result<Value, Failure> {
    let (scenario, _files) = wanted.scenario.scenario()?;
    let plan = Plan::baseline(scenario, &wanted.choice())?;
    run::fits(&plan.jobs(), plan.seeds.len()).map_err(Failure::new)?;
    let mut found = Vec::new();
    let (mut steps, mut ended) = (0, false);
    let mut step = |_: &str, jobs: &[Job], seeds: &[u64]| {
        steps += 1;
        let last = wanted.preview && steps == STEPS_OF_PREVIEW;
        if let Some(batch) = runs::all(jobs, seeds).filter(|_| !last) {
            return Ok(batch);
        }
        for (seed, job) in seeds
            .iter()
            .flat_map(|seed| jobs.iter().map(move |job| (*seed, job)))
        {
            // What is held to the demand of another run is made where that run is.
            if let Some(key) = runs::key_of(job, seed).filter(|key| !runs::has(key)) {
                found.push(json!({ "key": key, "variant": job.name, "seed": seed }));
            }
        }
        ended = true;
        Err(run::Error::Engine {
            variant: String::new(),
            seed: 0,
            reason: String::from("runs of this step are still to be made"),
        })
    };
    match studied(wanted, plan, &mut step) {
        Err(error) if !ended => Err(error.into()),
        _ => Ok(json!({ "runs": found, "more": !(wanted.preview && steps == STEPS_OF_PREVIEW) })),
    }
}

/// The baseline, and the variants.
const STEPS_OF_PREVIEW: u32 = 2;

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
            "`{}` with seed {} follows from runs that are not here",
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

/// Jobs of the comparison that a task belonged to last: planning them takes longer than many a run.
static PLANNED: Mutex<Option<(Wanted, Vec<Job>)>> = Mutex::new(None);

/// What a task runs, if its comparison was planned for a task before.
fn planned_before(task: &Task) -> Option<Spec> {
    let planned = PLANNED.lock().unwrap_or_else(PoisonError::into_inner);
    let (of, jobs) = planned.as_ref()?;
    if *of != task.of {
        return None;
    }
    spec_of(jobs, task)
}

/// What a task runs, by planning its comparison as far as needed: the baseline, the variants, and each variant at one place alone. `None`:
/// it follows from runs that are not here.
fn planned(task: &Task) -> Result<Option<Spec>, Failure> {
    let (scenario, _files) = task.of.scenario.scenario()?;
    let plan = Plan::baseline(scenario, &task.of.choice())?;
    let mut jobs = plan.jobs();
    let mut spec = spec_of(&jobs, task);
    if spec.is_none() {
        let runs = described(&jobs, &plan.seeds);
        let mut plan = plan.with_baseline(&runs)?;
        jobs = plan.jobs();
        spec = spec_of(&jobs, task);
        if spec.is_none() {
            let wholes: Vec<String> = plan.variants.iter().map(|variant| variant.name.clone()).collect();
            for whole in wholes {
                plan.add_parts(&whole);
            }
            jobs = plan.jobs();
            spec = spec_of(&jobs, task);
        }
    }
    *PLANNED.lock().unwrap_or_else(PoisonError::into_inner) = Some((task.of.clone(), jobs));
    Ok(spec)
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
