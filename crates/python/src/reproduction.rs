//! Published values beside measured ones.

use crate::error::{RunError, guarded, of_folder, of_run, usage};
use crate::work::attended;
use fleetfoot_lab::experiment::record::Record;
use fleetfoot_lab::experiment::{Evaluated, Level, Prepared, library};
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::report::reproduction::{self, Failed, Finding, Work};
use fleetfoot_lab::run::{Options, Progress, simulate};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The document as JSON, and the drawings: name and SVG.
type Reproduced = (String, Vec<(String, String)>);

/// Arguments of `reproduce`.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    /// Ids, groups, files and folders; empty: all.
    names: Vec<String>,
    /// `quick`, `usual`, `full`, or `recorded`: nothing is run.
    level: String,
    jobs: usize,
    out: Option<PathBuf>,
    fresh: bool,
    force: bool,
    command: String,
}

/// Runs experiments, or shows what their full runs said.
#[pyfunction]
pub(crate) fn reproduce(
    py: Python<'_>,
    wanted: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Reproduced> {
    let wanted = &wanted.extract::<Wanted>()?;
    let level = match wanted.level.as_str() {
        "quick" => Some(Level::Quick),
        "usual" => Some(Level::Usual),
        "full" => Some(Level::Full),
        "recorded" => None,
        other => {
            return Err(usage(format!(
                "level: \"{other}\" is none of quick, usual, full, recorded"
            )));
        }
    };
    attended(py, progress, |talk| {
        let experiments = library::select(&wanted.names).map_err(|error| usage(error.to_string()))?;
        let record =
            Record::embedded().map_err(|error| RunError::new_err(format!("recorded verdicts: {error}")))?;
        let Some(level) = level else {
            let mut findings = Vec::new();
            for experiment in &experiments {
                if let Some(recorded) = record.full(&experiment.id) {
                    findings.push(Finding::recorded(Evaluated::recorded(experiment, recorded)));
                }
            }
            return Ok(reproduced(&findings));
        };
        let prepared = experiments
            .iter()
            .map(|experiment| Prepared::new(experiment, level));
        let prepared: Vec<Prepared> = prepared
            .collect::<Result<_, _>>()
            .map_err(|error| usage(error.to_string()))?;
        let open = |path| Folder::open(Some(path), "reproduce", "reproduce", wanted.force);
        let folder = wanted.out.as_deref().map(open).transpose().map_err(of_folder)?;
        let options = Options {
            jobs: wanted.jobs,
            store: folder.as_ref().map(|folder| folder.store.clone()),
            fresh: wanted.fresh,
        };
        let counts = Mutex::new(vec![(0, 0); prepared.len()]);
        let work = Work {
            options: &options,
            stop: talk.stop,
            engine: &simulate,
            record: &record,
            folder: folder.as_ref(),
            command: &wanted.command,
            progress: &|index, progress| {
                // The counts are those of all experiments; a step is one of them.
                let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                let (done, reused) = &mut counts[index];
                *done += 1;
                *reused += u64::from(progress.wall_s == 0.0);
                let (own, step) = (&prepared[index], &prepared[index].experiment.id);
                let progress = Progress {
                    done: *done,
                    total: (own.jobs().len() * own.seeds.len()) as u64,
                    reused: *reused,
                    ..progress.clone()
                };
                talk.say(step, &progress);
            },
            told: &|_| (),
        };
        let found = work.run(&prepared).map_err(|failed| match failed {
            Failed::Run(error) => of_run(&error),
            Failed::Folder(error) => of_folder(error),
        })?;
        let findings: Vec<Finding> = found.findings.into_iter().flatten().collect();
        if let Some(folder) = &folder {
            reproduction::write(folder, &findings, &wanted.command).map_err(of_folder)?;
        }
        Ok(reproduced(&findings))
    })
}

fn reproduced(findings: &[Finding]) -> Reproduced {
    let document = reproduction::document(findings.iter().map(|finding| &finding.evaluated));
    let figures = findings.iter().flat_map(|finding| &finding.figures);
    (
        document.to_json_text(),
        figures
            .map(|figure| (figure.name.clone(), figure.standalone()))
            .collect(),
    )
}

/// The experiments as a JSON text: a list of `{id, group, claim}`.
#[pyfunction]
pub(crate) fn experiments() -> PyResult<String> {
    guarded(|| {
        let all = library::all().map_err(|error| RunError::new_err(error.to_string()))?;
        let list = all.iter().map(|experiment| {
            serde_json::json!({ "id": experiment.id, "group": experiment.group, "claim": experiment.file.figure.claim })
        });
        Ok(serde_json::Value::from_iter(list).to_string())
    })
}
