//! Captures become scenarios.

use crate::error::{RunError, usage};
use crate::work::attended;
use fleetfoot_core::time::Duration;
use fleetfoot_lab::import::files::{self, vectors_beside, would_be_overwritten, writes_over};
use fleetfoot_lab::import::replay::{self, Replay, When};
use fleetfoot_lab::import::{Options, import};
use fleetfoot_lab::plugins;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Arguments of `import_capture`.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    file: PathBuf,
    /// The scenario to write.
    out: PathBuf,
    force: bool,
    keep_addresses: bool,
    most_open: usize,
    quiet_ms: u64,
    idle_s: u64,
    /// `auto`, `always` or `never`.
    fit: String,
    congestion_control: Option<String>,
}

/// Reads a capture, writes a scenario and the files beside it: the document of `fleetfoot import --json`.
#[pyfunction]
pub(crate) fn import_capture(
    py: Python<'_>,
    wanted: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let wanted = &wanted.extract::<Wanted>()?;
    let when = match wanted.fit.as_str() {
        "auto" => When::Auto,
        "always" => When::Always,
        "never" => When::Never,
        other => return Err(usage(format!("fit: \"{other}\" is none of auto, always, never"))),
    };
    if let Some(name) = &wanted.congestion_control
        && plugins::controller(name).is_none()
    {
        let known: Vec<&str> = plugins::controllers().iter().map(|entry| entry.name).collect();
        return Err(usage(format!(
            "congestion_control: there is no \"{name}\"; there are {}",
            known.join(", ")
        )));
    }
    if writes_over(&wanted.file, &wanted.out) {
        return Err(usage(would_be_overwritten(&wanted.file, "out=")));
    }
    for path in std::iter::once(&wanted.out).chain(&vectors_beside(&wanted.out)) {
        if path.exists() && !wanted.force {
            return Err(usage(format!(
                "{} exists: give another name with out=, or force=True",
                path.display()
            )));
        }
    }
    attended(py, progress, |talk| {
        let options = Options {
            keep_addresses: wanted.keep_addresses,
            most_open: wanted.most_open,
            idle: Duration::from_secs(wanted.idle_s),
            quiet: Duration::from_millis(wanted.quiet_ms),
        };
        let imported = import(&wanted.file, &wanted.out, &options, |_| {
            !talk.stop.load(Ordering::Relaxed)
        });
        let imported = imported.map_err(of_files)?;
        let replay = Replay {
            when,
            congestion_control: wanted.congestion_control.as_deref(),
            stop: talk.stop,
            progress: &|progress| talk.say("replay", progress),
        };
        let fit = replay.fit(&imported).map_err(|error| match error {
            replay::Error::Files(error) => of_files(error),
            replay::Error::Run(message) => RunError::new_err(message),
        })?;
        Ok(replay::document(&imported, fit.as_ref()).to_string())
    })
}

fn of_files(error: files::Error) -> PyErr {
    match error {
        files::Error::Input(message) => usage(message),
        files::Error::Output(..) => RunError::new_err(error.to_string()),
    }
}
