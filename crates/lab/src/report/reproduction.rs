//! What `reproduce` writes: a document of all experiments, a report with a chapter for each, and a page with all measurements of
//! each that was simulated. [`Work`] runs them.

use super::chapters::{self, Chapter};
use super::{figures, html};
use crate::compare::build;
use crate::experiment::record::Record;
use crate::experiment::{Document, DocumentEntry, Evaluated, Prepared, SCHEMA};
use crate::folder::{Error, Folder};
use crate::memory;
use crate::run::{self, Batch, Engine, Options, Part, Progress, execute_parts};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// What it takes to run experiments.
pub struct Work<'a> {
    /// How to run.
    pub options: &'a Options,
    /// Ends the work when it is set: what is finished is kept.
    pub stop: &'a AtomicBool,
    /// What runs one specification.
    pub engine: &'a Engine<'a>,
    /// What the full runs said.
    pub record: &'a Record,
    /// Where the pages of experiments are written, if anywhere.
    pub folder: Option<&'a Folder>,
    /// What repeats it.
    pub command: &'a str,
    /// Hears of each run that is done, with the index of its experiment.
    pub progress: &'a (dyn Fn(usize, &Progress) + Sync),
    /// Hears of each experiment that is evaluated, in their order.
    pub told: &'a (dyn Fn(&Evaluated) + Sync),
}

/// What experiments gave.
#[derive(Debug, Default)]
pub struct Found {
    /// By experiment: none if it was not complete when the work was stopped.
    pub findings: Vec<Option<Finding>>,
    /// Runs computed now.
    pub computed: u64,
    /// Runs kept from before.
    pub reused: u64,
    /// Experiments that whoever listens has heard of.
    told: usize,
    error: Option<Error>,
}

/// Why experiments were not reproduced.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// A run failed.
    #[error(transparent)]
    Run(#[from] run::Error),
    /// A page cannot be written.
    #[error(transparent)]
    Folder(#[from] Error),
}

impl Work<'_> {
    /// Runs experiments, the runs of the next ones while the last of one are under way. Each is evaluated, and what its runs gave is
    /// dropped, as soon as they are done: a group has thousands of them. Those that measure this machine are evaluated when nothing
    /// runs any more.
    ///
    /// # Errors
    /// A run fails, or a page cannot be written.
    pub fn run(&self, prepared: &[Prepared]) -> Result<Found, Failed> {
        let parts = prepared.iter().map(|prepared| Part {
            jobs: prepared.jobs(),
            seeds: &prepared.seeds,
        });
        let parts: Vec<Part<'_>> = parts.collect();
        let found = Mutex::new(Found {
            findings: prepared.iter().map(|_| None).collect(),
            ..Found::default()
        });
        let later = Mutex::new(Vec::new());
        let finished = |index: usize, batch: Batch| {
            let mut all = locked(&found);
            all.computed += batch.computed;
            all.reused += batch.reused;
            drop(all);
            if batch.interrupted || self.stop.load(Ordering::Relaxed) {
                return ControlFlow::Continue(());
            }
            if prepared[index].is_timed() {
                locked(&later).push((index, batch));
                return ControlFlow::Continue(());
            }
            self.evaluate(index, prepared, batch, &found)
        };
        execute_parts(
            &parts,
            self.options,
            self.stop,
            self.engine,
            self.progress,
            &finished,
        )?;
        let mut later = later.into_inner().unwrap_or_else(PoisonError::into_inner);
        later.sort_by_key(|(index, _)| *index);
        for (index, batch) in later {
            if self.evaluate(index, prepared, batch, &found).is_break() {
                break;
            }
        }
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        match found.error.take() {
            Some(error) => Err(error.into()),
            None => Ok(found),
        }
    }

    fn evaluate(
        &self,
        index: usize,
        prepared: &[Prepared],
        batch: Batch,
        found: &Mutex<Found>,
    ) -> ControlFlow<()> {
        let own = &prepared[index];
        let evaluated = own.evaluate(&batch, self.record.full(&own.experiment.id));
        let finding = Finding::of(evaluated, own, &batch, self.folder, self.command);
        drop(batch);
        memory::give_back();
        let mut found = locked(found);
        match finding {
            Ok(finding) => found.findings[index] = Some(finding),
            Err(error) => {
                found.error.get_or_insert(error);
                return ControlFlow::Break(());
            }
        }
        while let Some(Some(next)) = found.findings.get(found.told) {
            (self.told)(&next.evaluated);
            found.told += 1;
        }
        ControlFlow::Continue(())
    }
}

/// What a thread that panicked held is not half made.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
