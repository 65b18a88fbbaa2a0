//! `run`, `compare` and `recommend`: from a scenario to a result, as the program does it.

use crate::comparison::Comparison;
use crate::error::{of_folder, of_run, of_scenario, of_study, usage};
use crate::scenario::Scenario;
use crate::work::{Talk, attended};
use fleetfoot_lab::compare::search::{Control, Wish, candidates, recommend as search};
use fleetfoot_lab::compare::study::{Budget, Extent, Runner, Study, StudyError, nothing_waits, study};
use fleetfoot_lab::compare::{BASELINE, Choice, Plan, build, unknown_variant};
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::report::time_series::{of_the_best, traces};
use fleetfoot_lab::run::{Batch, Job, Options, fits};
use fleetfoot_lab::{result, scenario};
use pyo3::prelude::*;
use std::path::PathBuf;

/// What the three have in common; each field is an argument of the functions of Python.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Request {
    /// Names of variants or mechanisms; of `run` the one that is run, if any.
    only: Vec<String>,
    /// Where queue mechanisms are applied.
    places: Vec<String>,
    pairs: bool,
    sensitivity: bool,
    budget: Option<String>,
    /// Where the user of `recommend` can change something.
    control: String,
    only_linux: bool,
    seed: Option<u64>,
    seeds: Option<u32>,
    /// Threads; 0: one per core.
    jobs: usize,
    /// The folder that is written, in which finished runs are kept.
    out: Option<PathBuf>,
    fresh: bool,
    force: bool,
    /// Whether the flows of every run are kept.
    samples: bool,
    /// Whether single flows are recorded over time.
    traces: bool,
    /// What repeats this.
    command: String,
}

impl Request {
    fn choice(&self) -> Choice {
        Choice {
            pairs: self.pairs,
            only: self.only.clone(),
            places: self.places.clone(),
            seed: self.seed,
            seeds: self.seeds,
            ..Choice::default()
        }
    }

    fn folder(&self, plan: &Plan) -> PyResult<Option<Folder>> {
        let open = |path| Folder::open(Some(path), plan.scenario.title(), &plan.hash(), self.force);
        self.out.as_deref().map(open).transpose().map_err(of_folder)
    }

    fn options(&self, folder: Option<&Folder>) -> Options {
        Options {
            jobs: self.jobs,
            store: folder.map(|folder| folder.store.clone()),
            fresh: self.fresh,
        }
    }

    /// Writes the result, if that is wanted, and keeps what is.
    fn keep(
        &self,
        mut comparison: result::Comparison,
        batch: &Batch,
        folder: Option<&Folder>,
    ) -> PyResult<Comparison> {
        comparison.document.commit = String::from(env!("FLEETFOOT_COMMIT"));
        if let Some(folder) = folder {
            folder.write(&comparison).map_err(of_folder)?;
        }
        Comparison::kept(comparison, batch, self.samples)
    }

    /// Makes a comparison step by step, as `make` wants.
    fn carried_out(
        &self,
        talk: &Talk<'_>,
        scenario: scenario::Scenario,
        (choice, likely): (&Choice, &Choice),
        make: impl FnOnce(Plan, &mut Runner<'_>) -> Result<Study, StudyError>,
    ) -> PyResult<Comparison> {
        let of_plan =
            |planned: Result<Plan, scenario::Error>| planned.map_err(|mistake| of_scenario(&mistake));
        let likely = of_plan(Plan::compare(scenario.clone(), likely))?;
        if !likely.waits() {
            return Err(usage(nothing_waits(scenario.title())));
        }
        fits(&likely.jobs(), likely.seeds.len()).map_err(usage)?;
        drop(likely);
        let plan = of_plan(Plan::baseline(scenario, choice))?;
        let folder = self.folder(&plan)?;
        let options = self.options(folder.as_ref());
        let mut step = |title: &str, jobs: &[Job], seeds: &[u64]| talk.run(title, jobs, seeds, &options);
        let mut made = make(plan, &mut step).map_err(|error| of_study(&error))?;
        if (self.traces || folder.is_some()) && !made.batch.interrupted {
            of_the_best(&made.plan, &mut made.comparison, talk.stop);
        }
        self.keep(made.comparison, &made.batch, folder.as_ref())
    }
}

/// A scenario, or one of its variants, alone.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    request: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let (scenario, request) = (&scenario.inner, &request.extract::<Request>()?);
    attended(py, progress, |talk| {
        let single = request.only.first();
        let choice = Choice {
            single: single.cloned(),
            seeds: Some(request.seeds.unwrap_or(1)),
            only: Vec::new(),
            ..request.choice()
        };
        let plan = Plan::single(scenario.clone(), &choice).map_err(|mistake| of_scenario(&mistake))?;
        let Some(plan) = plan else {
            let names = scenario.variant_names();
            return Err(usage(unknown_variant(
                single.map_or(BASELINE, String::as_str),
                &names,
            )));
        };
        let jobs = plan.jobs();
        fits(&jobs, plan.seeds.len()).map_err(usage)?;
        let folder = request.folder(&plan)?;
        let options = request.options(folder.as_ref());
        let batch = talk
            .run("runs", &jobs, &plan.seeds, &options)
            .map_err(|error| of_run(&error))?;
        let mut comparison = build(&plan, &batch, &request.command);
        let resolved = &plan.variants[0].resolved;
        if (request.traces || folder.is_some()) && !batch.interrupted && !resolved.spec.world.is_real() {
            let traces = traces(resolved, plan.seeds[0], talk.stop).map_err(usage)?;
            comparison.variants[0].traces = traces.unwrap_or_default();
        }
        request.keep(comparison, &batch, folder.as_ref())
    })
}

/// Every variant with common random numbers, ranked.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    scenario: &Scenario,
    request: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let (scenario, request) = (&scenario.inner, &request.extract::<Request>()?);
    let budget = request.budget.as_deref().map(str::parse::<Budget>).transpose();
    let extent = Extent {
        budget: budget.map_err(|wanted| usage(format!("budget: {wanted}")))?,
        sensitivity: request.sensitivity,
        ..Extent::default()
    };
    attended(py, progress, |talk| {
        let choice = request.choice();
        request.carried_out(talk, scenario.clone(), (&choice, &choice), |plan, step| {
            study(plan, extent, &request.command, step)
        })
    })
}

/// One setting to try first.
#[pyfunction]
pub(crate) fn recommend(
    py: Python<'_>,
    scenario: &Scenario,
    request: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let (scenario, request) = (&scenario.inner, &request.extract::<Request>()?);
    let wish = Wish {
        control: match request.control.as_str() {
            "sender" => Control::Sender,
            "router" => Control::Router,
            "both" => Control::Both,
            other => {
                return Err(usage(format!(
                    "control: \"{other}\" is none of sender, router, both"
                )));
            }
        },
        only_linux: request.only_linux,
    };
    attended(py, progress, |talk| {
        let choice = Choice {
            search: Some(wish),
            ..request.choice()
        };
        let likely = Choice {
            candidates: candidates(scenario, wish),
            ..choice.clone()
        };
        request.carried_out(talk, scenario.clone(), (&choice, &likely), |plan, step| {
            search(&plan, wish, &request.command, step)
        })
    })
}
