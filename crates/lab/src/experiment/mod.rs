//! Experiments: published figures, tables and statements, run and put beside what was published.
//!
//! Read in this order: [`library`] (which there are), [`Prepared`] (points, variants and seeds to run), [`metrics`](crate::metrics) (what
//! checks measure), `evaluate` (their values and intervals), [`verdict`] (the rules), [`shares`] (over how much of a range), [`record`] (the verdicts that are
//! checked in). Files are described in `scenario/figure.rs`.

mod evaluate;
pub mod library;
pub mod record;
pub mod shares;
#[cfg(test)]
mod tests;
pub mod verdict;
pub mod worlds;

pub use library::{Experiment, UnknownName};

use crate::compare::{Plan, Planned};
use crate::run::{Batch, Job};
use crate::scenario::{Error, ErrorKind, Point, Published, Scenario, Setting};
use evaluate::words;
use record::Recorded;
use serde::Serialize;
use verdict::{Interval, Verdict};

/// Version of the document of `reproduce --json`.
pub const SCHEMA: &str = "2.0";

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A few short runs: every experiment of a group within two minutes.
    Quick,
    /// The file as it stands with at most ten seeds.
    Usual,
    /// The file as it stands.
    Full,
}

impl Level {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Quick => "quick",
            Level::Usual => "usual",
            Level::Full => "full",
        }
    }
}

/// An experiment ready to run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The experiment.
    pub experiment: Experiment,
    /// How much is run.
    pub level: Level,
    /// One plan for each point of the sweep; none for a closed form.
    pub points: Vec<(Point, Plan)>,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// Which job each (point, variant) is: equal runs are made once.
    job_of: Vec<Vec<usize>>,
    jobs: Vec<Job>,
}

impl Prepared {
    /// Resolves every variant at every point.
    ///
    /// # Errors
    /// The first mistake, with its place; of [`ErrorKind::NotBuilt`] if this program was built without something that it needs.
    pub fn new(experiment: &Experiment, level: Level) -> Result<Prepared, Error> {
        let figure = &experiment.file.figure;
        let mut prepared = Prepared {
            experiment: experiment.clone(),
            level,
            points: Vec::new(),
            seeds: Vec::new(),
            job_of: Vec::new(),
            jobs: Vec::new(),
        };
        let Some(scenario) = &experiment.file.scenario else {
            return Ok(prepared);
        };
        let scenario = &scenario.to_run();
        let scenario = match level {
            Level::Quick if !figure.quick_set.is_empty() => scenario.with(&figure.quick_set)?,
            Level::Quick | Level::Usual | Level::Full => scenario.clone(),
        };
        for point in &figure.points {
            let scenario = if point.set.is_empty() {
                scenario.clone()
            } else {
                scenario.with(&point.set)?
            };
            let plan = plan(scenario, &figure.as_described)?;
            prepared.points.push((point.clone(), plan));
        }
        if let Some((_, plan)) = prepared.points.first() {
            let run = &plan.described.run;
            let seeds = match level {
                Level::Quick => figure.quick_seeds.unwrap_or(QUICK_SEEDS).min(run.seeds),
                Level::Usual => run.seeds.min(USUAL_SEEDS),
                Level::Full => run.seeds,
            };
            prepared.seeds = (0..u64::from(seeds))
                .map(|number| run.seed.wrapping_add(number))
                .collect();
        }
        prepared.number_jobs();
        Ok(prepared)
    }

    fn number_jobs(&mut self) {
        for (point, plan) in &mut self.points {
            plan.seeds.clone_from(&self.seeds);
            let label = point.label();
            let numbers = plan.jobs().into_iter().map(|mut job| {
                if let Some(index) = self.jobs.iter().position(|other| other.identity == job.identity) {
                    return index;
                }
                job.name = match label.as_str() {
                    "" => format!("{}: {}", self.experiment.id, job.name),
                    label => format!("{}: {} ({label})", self.experiment.id, job.name),
                };
                self.jobs.push(job);
                self.jobs.len() - 1
            });
            self.job_of.push(numbers.collect());
        }
    }

    /// The different runs to make, without the seeds.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Whether its numbers measure this machine: nothing else should run while it is evaluated.
    pub fn is_timed(&self) -> bool {
        let analysis = self.experiment.file.figure.analysis.as_ref();
        analysis.is_some_and(|(analysis, _)| analysis.timed)
    }

    /// The finished runs of one point, one list for each of its variants.
    pub fn batch_of(&self, point: usize, batch: &Batch) -> Batch {
        Batch {
            runs: self.job_of[point]
                .iter()
                .map(|&job| batch.runs.get(job).cloned().unwrap_or_default())
                .collect(),
            ..batch.clone()
        }
    }

    /// Evaluates the checks. `recorded` is what the full run said, where that is known.
    pub fn evaluate(&self, batch: &Batch, recorded: Option<&Recorded>) -> Evaluated {
        evaluate::evaluate(self, batch, recorded)
    }
}

/// Every variant of `scenario`, the file as it stands first. A variant that changes nothing at this point of a sweep is
/// the file as it stands.
fn plan(scenario: Scenario, as_described: &str) -> Result<Plan, Error> {
    let described = scenario.resolve(&Setting::none())?;
    let mut variants = vec![Planned::plain(
        as_described.to_owned(),
        Setting::none(),
        described.clone(),
    )];
    for variant in scenario.variants() {
        let resolved = match scenario.resolve(&variant.set) {
            Err(error) if error.kind == ErrorKind::NoChange => described.clone(),
            other => other?,
        };
        variants.push(Planned::plain(
            variant.name.clone(),
            variant.set.clone(),
            resolved,
        ));
    }
    Ok(Plan::listed(scenario, described, variants))
}

/// An experiment with its verdict.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// The experiment.
    pub experiment: Experiment,
    /// The verdict.
    pub verdict: Verdict,
    /// What a reader should know.
    pub note: Option<String>,
    /// Its checks, one for each point they are made at.
    pub checks: Vec<CheckResult>,
    /// Curves of its analysis.
    pub curves: Vec<crate::analysis::Curve>,
    /// Whether its numbers measure this machine and are not recorded.
    pub timed: bool,
}

impl Evaluated {
    /// What the record says of an experiment, without runs.
    pub fn recorded(experiment: &Experiment, recorded: &Recorded) -> Evaluated {
        evaluate::recorded(experiment, recorded)
    }
}

/// What a check measured.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckResult {
    /// Its name, with the point if there are several.
    pub name: String,
    /// What is checked.
    pub claim: String,
    /// What was published.
    pub published: Option<Published>,
    /// What is expected, in words.
    pub expected: Option<String>,
    /// Unit for tables.
    pub unit: Option<String>,
    /// The estimate.
    pub measured: Option<f64>,
    /// Its interval.
    pub interval: Interval,
    /// Whether it holds; `None`: undecided, or nothing was expected.
    pub holds: Option<bool>,
    /// Whether the verdict depends on it.
    pub counts: bool,
    /// Whether the claim of the figure rests on it.
    pub primary: bool,
}

/// The document of `reproduce --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Experiments in the order they were asked for.
    pub experiments: Vec<DocumentEntry>,
}

/// An experiment in the document.
#[derive(Clone, Debug, Serialize)]
pub struct DocumentEntry {
    id: String,
    group: String,
    document: String,
    claim: String,
    verdict: Option<Verdict>,
    note: Option<String>,
    checks: Vec<DocumentCheck>,
}

/// A check in the document.
#[derive(Clone, Debug, Serialize)]
struct DocumentCheck {
    name: String,
    claim: String,
    published: serde_json::Value,
    /// What is expected, in words; `null`: nothing is, the value is a report.
    expected: Option<String>,
    /// Whether the verdict depends on it.
    counts: bool,
    measured: Option<f64>,
    ci95: Option<[f64; 2]>,
    /// Whether it holds; `null`: undecided, or nothing is expected.
    holds: Option<bool>,
}

impl DocumentEntry {
    /// An experiment that was not run.
    pub fn listed(experiment: &Experiment) -> DocumentEntry {
        let figure = &experiment.file.figure;
        let checks = figure.checks.iter().map(|check| DocumentCheck {
            name: check.name.clone(),
            claim: check.claim.clone(),
            published: published(check.published.as_ref()),
            expected: check.expect.map(|expect| words(expect, check.unit.as_deref())),
            counts: check.counts(),
            measured: None,
            ci95: None,
            holds: None,
        });
        DocumentEntry {
            id: experiment.id.clone(),
            group: experiment.group.clone(),
            document: figure.source.document.clone(),
            claim: figure.claim.clone(),
            verdict: None,
            note: figure.note.clone(),
            checks: checks.collect(),
        }
    }
}

impl From<&Evaluated> for DocumentEntry {
    fn from(evaluated: &Evaluated) -> DocumentEntry {
        let checks = evaluated.checks.iter().map(|check| DocumentCheck {
            name: check.name.clone(),
            claim: check.claim.clone(),
            published: published(check.published.as_ref()),
            expected: check.expected.clone(),
            counts: check.counts,
            measured: check.measured,
            ci95: check.interval.ends(),
            holds: check.holds,
        });
        DocumentEntry {
            verdict: Some(evaluated.verdict),
            note: evaluated.note.clone(),
            checks: checks.collect(),
            ..DocumentEntry::listed(&evaluated.experiment)
        }
    }
}

impl Document {
    /// The document as indented JSON with a final newline.
    pub fn to_json_text(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("the document has text keys and finite numbers");
        text.push('\n');
        text
    }
}

fn published(published: Option<&Published>) -> serde_json::Value {
    match published {
        None => serde_json::Value::Null,
        Some(Published::Number(number)) => (*number).into(),
        Some(Published::Text(text)) => text.as_str().into(),
    }
}

/// Seeds of a quick run of a file that does not say.
const QUICK_SEEDS: u32 = 3;

/// Most seeds of a run that is neither quick nor full.
const USUAL_SEEDS: u32 = 10;
