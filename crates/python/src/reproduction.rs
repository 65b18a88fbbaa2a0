//! Published values beside measured ones.

use crate::error::{RunError, guarded, of_folder, of_run, usage};
use crate::work::attended;
use fleetfoot_lab::experiment::record::Record;
use fleetfoot_lab::experiment::{Evaluated, Level, Prepared, library};
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::report::reproduction::{self, Finding};
use fleetfoot_lab::run::{Batch, Options};
use pyo3::prelude::*;
use std::path::PathBuf;

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
        let mut findings = Vec::new();
        let Some(level) = level else {
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
        for prepared in &prepared {
            let id = &prepared.experiment.id;
            // A closed form has no runs.
            let batch = match prepared.jobs() {
                [] => Batch::default(),
                jobs => talk
                    .run(id, jobs, &prepared.seeds, &options)
                    .map_err(|error| of_run(&error))?,
            };
            if batch.interrupted {
                break;
            }
            let evaluated = prepared.evaluate(&batch, record.full(id));
            let finding = Finding::of(evaluated, prepared, &batch, folder.as_ref(), &wanted.command);
            findings.push(finding.map_err(of_folder)?);
        }
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
