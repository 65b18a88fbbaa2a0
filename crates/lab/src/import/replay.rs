//! What follows an import: its replay, if that is wanted, and the document of both.

use super::files::{self, Imported};
use super::fit::{Fit, LINUX, Trials};
use super::scenario::{Controllers, Part};
use crate::scenario::ReplayFit;
use crate::{plugins, run};
use std::sync::atomic::AtomicBool;

/// When an import is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Where it takes some seconds: up to two million data segments.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Not at all.
    Never,
}

/// Why a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario could not be written.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// It could not be replayed.
    #[error("{0}")]
    Run(String),
}

/// How an import is replayed.
pub struct Replay<'a> {
    /// When.
    pub when: When,
    /// The congestion control of the senders; `None`: those of Linux are tried, and the one that fits best is taken.
    pub congestion_control: Option<&'a str>,
    /// Ends it when it is set.
    pub stop: &'a AtomicBool,
    /// Called for every replay that is finished.
    pub progress: &'a (dyn Fn(&run::Progress) + Sync),
}

impl Replay<'_> {
    /// How well what was imported fits, which is written into the scenario as well; `None`: it was not replayed.
    ///
    /// # Errors
    /// The scenario cannot be run or written.
    pub fn fit(&self, imported: &Imported) -> Result<Option<Fit>, Error> {
        let segments: u64 = imported.summary.segments.iter().map(|one| one.segments).sum();
        let asked = self.congestion_control;
        let names: Vec<&'static str> = match asked.and_then(plugins::controller) {
            Some(entry) => vec![entry.name],
            None => LINUX.to_vec(),
        };
        let why_not = match self.when {
            When::Never => Some("it was not replayed (--fit never)"),
            When::Auto if segments > FIT_SEGMENTS => {
                Some("it was not replayed: more than two million data segments take long")
            }
            When::Auto | When::Always if imported.summary.interrupted => {
                Some("it was not replayed: the import was interrupted")
            }
            When::Auto | When::Always => None,
        };
        let fit = match why_not {
            None => {
                let trials = Trials {
                    names: &names,
                    stop: self.stop,
                    progress: self.progress,
                };
                trials.best(imported).map_err(Error::Run)?
            }
            Some(_) => {
                if let (Some(_), [name]) = (asked, &names[..]) {
                    let controllers = Controllers {
                        all: Some(name),
                        why: String::from("as it was asked for"),
                        ..Controllers::default()
                    };
                    imported.write(&controllers)?;
                }
                None
            }
        };
        let statement = match (&fit, why_not) {
            (Some(fit), _) => fit.statement(),
            // Of a file of vectors no times are known: there is nothing that it could fit.
            (None, _) if !imported.summary.is_capture() => return Ok(None),
            (None, Some(reason)) => ReplayFit::unknown(reason),
            (None, None) => ReplayFit::unknown("its replay was interrupted"),
        };
        imported.write_fit(&statement)?;
        Ok(fit)
    }
}

/// What was imported and how well it fits, as a JSON document.
pub fn document(imported: &Imported, fit: Option<&Fit>) -> serde_json::Value {
    let files = imported.vectors.iter().map(|(part, path)| {
        serde_json::json!({ "group": part.name, "connections": part.connections, "file": path.display().to_string() })
    });
    let files: Vec<_> = files.collect();
    let path = |wanted: &dyn Fn(usize, &Part) -> bool| {
        let mut numbered = imported.vectors.iter().enumerate();
        let found = numbered.find(|(number, (part, _))| wanted(*number, part));
        found.map(|(_, (_, path))| path.display().to_string())
    };
    serde_json::json!({
        "schema": "1.0",
        "fleetfoot": env!("CARGO_PKG_VERSION"),
        "scenario": imported.scenario.display().to_string(),
        "vectors": path(&|number, _| number == 0),
        "vectors_back": path(&|number, part| number > 0 && part.back && !part.long),
        "files": files,
        "summary": imported.summary,
        "fit": fit,
    })
}

/// Data segments whose replay takes some seconds.
const FIT_SEGMENTS: u64 = 2_000_000;
