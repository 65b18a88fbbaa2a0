//! packetdrill scripts against our TCP, or against the kernel's.

use crate::error::{RunError, usage};
use crate::work::attended;
use fleetfoot_core::tcp::Profile;
use fleetfoot_drill::Definitions;
use fleetfoot_drill::folder::{Options, Stack, check, find, play_until};
use fleetfoot_lab::scenario::set_switch;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// A script: file, topic, verdict, line, reason, detail, duration (s), what it printed.
type Played = (
    String,
    String,
    &'static str,
    Option<u32>,
    String,
    String,
    f64,
    Vec<String>,
);

/// Arguments of `drill`.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    paths: Vec<PathBuf>,
    profile: String,
    /// `fleetfoot` or `linux`.
    backend: String,
    /// Microseconds.
    tolerance: Option<u64>,
    no_extra: bool,
    define: Vec<(String, String)>,
}

/// Plays scripts, each of them whole; between two it looks whether it shall stop.
#[pyfunction]
pub(crate) fn drill(py: Python<'_>, wanted: &Bound<'_, PyAny>) -> PyResult<Vec<Played>> {
    let wanted = wanted.extract::<Wanted>()?;
    let profile = Profile::by_name(&wanted.profile).ok_or_else(|| {
        usage(format!(
            "there is no profile {:?}; there are {}",
            wanted.profile,
            Profile::NAMES.join(", ")
        ))
    })?;
    let stack = match wanted.backend.as_str() {
        "fleetfoot" => Stack::Ours(profile),
        "linux" => Stack::Linux,
        other => return Err(usage(format!("backend: \"{other}\" is none of fleetfoot, linux"))),
    };
    let mut definitions = Definitions::default();
    for (name, value) in &wanted.define {
        definitions.define(name, value);
    }
    let options = Options {
        definitions,
        tolerance: wanted
            .tolerance
            .map(|usecs| usecs.saturating_mul(1000).min(i64::MAX as u64)),
        no_extra: wanted.no_extra,
        capture: false,
        stack,
        set_switch,
    };
    let paths = &wanted.paths;
    attended(py, None, |talk| {
        let items = find(paths).map_err(|error| {
            let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
            usage(format!("cannot read {}: {error}", names.join(", ")))
        })?;
        if items.is_empty() {
            return Err(usage("no script (*.pkt) there"));
        }
        for item in items.iter().filter(|item| paths.contains(&item.path)) {
            if talk.stop.load(Ordering::Relaxed) {
                break;
            }
            let text = std::fs::read(&item.path)
                .map_err(|error| usage(format!("cannot read {}: {error}", item.file)))?;
            check(item, &text, &options.definitions).map_err(usage)?;
        }
        let outcomes = play_until(&items, &options, talk.stop, |_| {}).map_err(RunError::new_err)?;
        let played = outcomes.into_iter().map(|outcome| {
            let played = outcome.played;
            (
                outcome.item.file,
                outcome.item.topic,
                played.verdict.name(),
                played.line,
                played.reason,
                played.detail,
                played.duration as f64 / 1e9,
                played.printed,
            )
        });
        Ok(played.collect())
    })
}
