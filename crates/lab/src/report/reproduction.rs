//! What `reproduce` writes: a document of all experiments, a report with a chapter for each, and a page with all measurements of
//! each that was simulated.

use super::chapters::{self, Chapter};
use super::{figures, html};
use crate::compare::build;
use crate::experiment::{Document, DocumentEntry, Evaluated, Prepared, SCHEMA};
use crate::folder::{Error, Folder};
use crate::run::Batch;

/// What is kept of an experiment.
#[derive(Debug)]
pub struct Finding {
    /// Its checks and verdict.
    pub evaluated: Evaluated,
    /// Its drawings.
    pub figures: Vec<figures::Figure>,
    /// Name of the page with all measurements, if it was simulated and is written.
    detail: Option<String>,
}

impl Finding {
    /// What `evaluated` says of the runs in `batch`; its page is written into `folder`. `command` repeats it.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn of(
        evaluated: Evaluated,
        prepared: &Prepared,
        batch: &Batch,
        folder: Option<&Folder>,
        command: &str,
    ) -> Result<Finding, Error> {
        let figures = figures::of(&evaluated, Some((prepared, batch)));
        let detail = match folder {
            Some(folder) => detail(folder, prepared, &evaluated, batch, command)?,
            None => None,
        };
        Ok(Finding {
            evaluated,
            figures,
            detail,
        })
    }

    /// What the full runs said of an experiment, which is not run now.
    pub fn recorded(evaluated: Evaluated) -> Finding {
        Finding {
            figures: figures::of(&evaluated, None),
            evaluated,
            detail: None,
        }
    }
}

/// The document of these experiments.
pub fn document<'a>(evaluated: impl IntoIterator<Item = &'a Evaluated>) -> Document {
    Document {
        schema: SCHEMA,
        experiments: evaluated.into_iter().map(DocumentEntry::from).collect(),
    }
}

/// Writes document, command and report.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Folder, findings: &[Finding], command: &str) -> Result<(), Error> {
    let document = document(findings.iter().map(|finding| &finding.evaluated));
    let chapters: Vec<Chapter<'_>> = findings
        .iter()
        .map(|finding| Chapter {
            evaluated: &finding.evaluated,
            figures: &finding.figures,
            detail: finding.detail.as_deref(),
        })
        .collect();
    let report = chapters::render(&chapters, command).map_err(|error| no_report(&error))?;
    folder.write_texts(&[
        ("reproduce.json", document.to_json_text()),
        ("command.txt", format!("{command}\n")),
        ("reproduce.html", report),
    ])
}

fn no_report(error: &dyn std::fmt::Display) -> Error {
    Error::Failed(format!("the report: {error}"))
}

/// Writes the page with all measurements of an experiment that was simulated: its name.
fn detail(
    folder: &Folder,
    prepared: &Prepared,
    evaluated: &Evaluated,
    batch: &Batch,
    command: &str,
) -> Result<Option<String>, Error> {
    let Some((_, plan)) = prepared.points.first() else {
        return Ok(None);
    };
    let mut comparison = build(plan, &prepared.batch_of(0, batch), command);
    let figure = &evaluated.experiment.file.figure;
    comparison.document.question.clone_from(&figure.claim);
    comparison.document.answer = format!("{}: {}", evaluated.experiment.id, evaluated.verdict.name());
    let name = format!("{}.html", evaluated.experiment.id);
    let page = html::render(&comparison).map_err(|error| no_report(&error))?;
    folder.write_texts(&[(&name, page)])?;
    Ok(Some(name))
}
