//! Comparisons.

use crate::failure::Failure;
use crate::runs;
use crate::scenario::Described;
use fleetfoot_lab::compare::study::{Budget, Extent, Runner, Study, StudyError, nothing_waits, study};
use fleetfoot_lab::compare::{Choice, Plan, build};
use fleetfoot_lab::report::parts;
use fleetfoot_lab::run::{self, Job, Options, execute, fits, simulate_with_progress};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A comparison that is wanted: what `fleetfoot compare` takes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The scenario.
    pub scenario: Described,
    /// Only these variants or mechanisms; empty: all.
    #[serde(default)]
    pub only: Vec<String>,
    /// Number of seeds, instead of the scenario's.
    #[serde(default)]
    pub seeds: Option<u32>,
    /// Runs that may be made beyond the first pass; `None`: as many as the program makes by itself.
    #[serde(default)]
    pub budget: Option<u64>,
    /// Only the first pass: no variant at one place alone, no network near this one. It says sooner what comes out.
    #[serde(default)]
    pub preview: bool,
}

impl Wanted {
    pub(crate) fn choice(&self) -> Choice {
        Choice {
            only: self.only.clone(),
            seeds: self.seeds,
            ..Choice::default()
        }
    }

    /// What is likely to be run, if it fits into memory.
    fn likely(&self) -> Result<Plan, Failure> {
        let (scenario, _files) = self.scenario.scenario()?;
        let plan = Plan::compare(scenario, &self.choice())?;
        ranked(&plan)?;
        fits(&plan.jobs(), plan.seeds.len()).map_err(Failure::new)?;
        Ok(plan)
    }

    /// Refuses a comparison with this baseline in which nothing waits, or whose runs do not fit into memory.
    pub(crate) fn possible(&self, baseline: &Plan) -> Result<(), Failure> {
        ranked(baseline)?;
        // A variant keeps as much as the baseline, since it has the same traffic.
        let jobs: Vec<Job> = baseline
            .jobs()
            .into_iter()
            .cycle()
            .take(1 + self.only.len())
            .collect();
        fits(&jobs, baseline.seeds.len()).map_err(Failure::new)
    }

    /// The command that gives the same result, and runs as it stands wherever the file is: what the program brings need not be one.
    pub(crate) fn command(&self) -> String {
        let mut command = match self.scenario.brought() {
            Some(HOME_LINE) => String::from("fleetfoot compare"),
            Some(example) => format!("fleetfoot explain {example} | fleetfoot compare /dev/stdin"),
            None => format!("fleetfoot compare {}", file(&self.scenario.name)),
        };
        for set in &self.scenario.set {
            command.push_str(&format!(" --set {}", quoted(set)));
        }
        if !self.only.is_empty() {
            command.push_str(&format!(" --only {}", quoted(&self.only.join(","))));
        }
        if let Some(seeds) = self.seeds {
            command.push_str(&format!(" --seeds {seeds}"));
        }
        if let Some(budget) = self.budget {
            command.push_str(&format!(" --budget {budget}"));
        }
        command
    }
}

/// Refuses what cannot be ranked.
fn ranked(plan: &Plan) -> Result<(), Failure> {
    match plan.waits() {
        true => Ok(()),
        false => Err(Failure::new(nothing_waits(plan.scenario.title()))),
    }
}

/// The example that the program compares without a file.
const HOME_LINE: &str = "home-line";

/// The name of a file as a shell takes it, and as no flag.
fn file(name: &str) -> String {
    match name.starts_with('-') {
        true => quoted(&format!("./{name}")),
        false => quoted(name),
    }
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:".contains(c);
    match argument.chars().all(plain) && !argument.is_empty() {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

/// How long a pilot run may take.
const PILOT: Duration = Duration::from_millis(60);

/// `{runs, seconds}`: how many runs the first pass takes, and about how long all of them on one core.
pub(crate) fn estimate(wanted: &Wanted) -> Result<Value, Failure> {
    let plan = wanted.likely()?;
    let runs = plan.variants.len() * plan.seeds.len();
    let spec = Spec {
        seed: plan.seeds.first().copied().unwrap_or(0),
        ..plan.described.spec.clone()
    };
    let each = run::pilot(&spec, PILOT);
    Ok(json!({
        "runs": runs,
        "variants": plan.variants.len(),
        "seconds": each.map(|each| each * runs as f64),
    }))
}

/// Runs and ranks: what a page shows of it and, but for a preview, the document as the text that the program prints.
pub(crate) fn compare(
    wanted: &Wanted,
    stop: &AtomicBool,
    progress: &(dyn Fn(&Value) + Sync),
) -> Result<Value, Failure> {
    let (scenario, _files) = wanted.scenario.scenario()?;
    let plan = Plan::baseline(scenario, &wanted.choice())?;
    wanted.possible(&plan)?;
    let options = Options::default();
    let engine = simulated(progress);
    let command = wanted.command();
    let mut step = |title: &str, jobs: &[Job], seeds: &[u64]| {
        if let Some(batch) = runs::all(jobs, seeds) {
            return Ok(batch);
        }
        execute(jobs, seeds, &options, stop, &engine, &|done| {
            progress(
                &json!({ "step": title, "done": done.done, "total": done.total, "variant": done.variant, "seed": done.seed }),
            );
        })
    };
    let mut study = studied(wanted, plan, &mut step)?;
    study.comparison.document.commit = String::from(env!("FLEETFOOT_COMMIT"));
    if study.batch.interrupted {
        return Err(Failure::new("stopped before all runs were done"));
    }
    Ok(json!({
        "json": (!wanted.preview).then(|| study.comparison.document.to_json_text()),
        "command": command,
        "page": parts::of(&study.comparison),
        "computed": study.batch.computed,
        "chosen": study.plan.chosen,
    }))
}

/// The comparison of a plan as it is wanted. `run` is called for each step.
pub(crate) fn studied(wanted: &Wanted, plan: Plan, run: &mut Runner<'_>) -> Result<Study, StudyError> {
    let command = wanted.command();
    let extent = Extent {
        budget: wanted.budget.map(Budget::Runs),
        ..Extent::default()
    };
    match wanted.preview {
        true => first_pass(plan, &command, run),
        false => study(plan, extent, &command, run),
    }
}

/// The simulator, which keeps its runs, and says where one is that goes on for long.
pub(crate) fn simulated<'a>(
    progress: &'a (dyn Fn(&Value) + Sync),
) -> impl Fn(&Spec, &AtomicBool) -> Result<RunOutput, String> + Sync + 'a {
    let pulses = AtomicU64::new(0);
    move |spec, stop| {
        runs::get(spec, || {
            simulate_with_progress(spec, stop, &|pulse| {
                let number = pulses.fetch_add(1, Ordering::Relaxed) + 1;
                if number.is_multiple_of(PULSES) {
                    progress(&json!({ "at_s": pulse.at_s, "end_s": pulse.end_s }));
                }
            })
        })
    }
}

/// The baseline and the variants, each with all seeds, and nothing else.
fn first_pass(plan: Plan, command: &str, run: &mut Runner<'_>) -> Result<Study, StudyError> {
    let mut batch = run("as described", &plan.jobs(), &plan.seeds)?;
    let described = batch.runs.first().cloned().unwrap_or_default();
    let mut plan = plan.with_baseline(&described)?;
    plan.brief = true;
    if !batch.interrupted {
        let variants = run("variants", &plan.jobs()[1..], &plan.seeds)?;
        batch.computed += variants.computed;
        batch.interrupted |= variants.interrupted;
        batch.runs.extend(variants.runs);
    }
    let comparison = build(&plan, &batch, command);
    Ok(Study {
        plan,
        comparison,
        batch,
    })
}

/// Pulses of a run between two words of it.
const PULSES: u64 = 200;
