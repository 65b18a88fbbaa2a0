//! What verbs that run simulations share: the scenario, Ctrl-C, the first line, the command that repeats.

use crate::failure::Failure;
use crate::import::{is_regular, something_else};
use clap::Args;
use fleetfoot_lab::scenario::Scenario;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Flags of every verb that makes a batch of runs.
#[derive(Debug, Args)]
pub(crate) struct BatchFlags {
    /// Threads; by default one per core.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) jobs: usize,
    /// Run everything again, reuse nothing.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Overwrite a folder that holds something else.
    #[arg(long)]
    pub(crate) force: bool,
    /// Write progress as JSON lines.
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
}

/// The scenario of `file`, or the built-in home line.
pub(crate) fn scenario(file: Option<&Path>) -> Result<Scenario, Failure> {
    Ok(match file {
        Some(path) if path.exists() && !is_regular(path) && !path.is_dir() => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::usage(format!(
                    "{}: a scenario is expected from a pipe, and this is none: {error}. A capture: fleetfoot import - --out NAME.toml",
                    path.display()
                ))
            })?;
            Scenario::parse(&path.to_string_lossy(), &text)?
        }
        // What cannot be read as a scenario may be something else.
        Some(path) => Scenario::load(path).map_err(|error| match something_else(path) {
            Some(message) => Failure::usage(message),
            None => Failure::from(error),
        })?,
        None => Scenario::home_line()?,
    })
}

/// A flag that Ctrl-C sets; the second Ctrl-C ends the program at once. It is always the same: a signal has one handler.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let stop = STOP.get_or_init(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        // Without a handler Ctrl-C still ends the program; finished runs are on disk either way.
        let _ = ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        stop
    });
    Arc::clone(stop)
}

/// Number of threads.
pub(crate) fn cores(jobs: usize) -> usize {
    match jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    }
}

/// A time for people.
pub(crate) fn about(seconds: f64) -> String {
    match seconds {
        s if s < 1.5 => String::from("a second"),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// The command that repeats this invocation: as typed, without what only concerns display.
pub(crate) fn command() -> String {
    let words = std::env::args()
        .skip(1)
        .filter(|word| !matches!(word.as_str(), "--json" | "--quiet" | "-q"));
    std::iter::once(String::from("fleetfoot"))
        .chain(words.map(|word| quoted(&word)))
        .collect::<Vec<_>>()
        .join(" ")
}

pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
