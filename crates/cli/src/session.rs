//! What verbs that run simulations share: the scenario, Ctrl-C, the first line, the command that repeats.

use crate::failure::Failure;
use crate::forecast::{Forecast, Part};
use crate::import::{is_regular, something_else};
use crate::output::counted;
use clap::Args;
use fleetfoot_lab::compare::Plan;
use fleetfoot_lab::input;
use fleetfoot_lab::run::{Batch, Job, fits, pilot};
use fleetfoot_lab::scenario::{Scenario, Setting};
use fleetfoot_sim::spec::Spec;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Flags of every verb that makes a batch of runs.
#[derive(Clone, Debug, Args)]
pub(crate) struct BatchFlags {
    /// Threads, 1 to 512; by default one per core.
    #[arg(long, value_name = "N", default_value = "auto", hide_default_value = true, value_parser = threads)]
    pub(crate) jobs: usize,
    /// Run everything again, reuse nothing. Finished runs are kept in the output folder, up to 8 GB of them or what the variable
    /// `FLEETFOOT_STORE` says: 500MB, 20GB; beyond, the oldest are removed.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Write over files that exist, and into a folder that holds something else.
    #[arg(long)]
    pub(crate) force: bool,
    /// Write progress as JSON lines into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
}

/// A number of threads; 0: one per core.
fn threads(text: &str) -> Result<usize, String> {
    if text == "auto" {
        return Ok(0);
    }
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=MOST_THREADS).contains(number));
    number.ok_or_else(|| {
        format!("1 to {MOST_THREADS} threads are wanted; without the flag there is one per core")
    })
}

/// More threads than any machine has use for.
const MOST_THREADS: usize = 512;

/// What the runs of a plan will take: refused if they cannot fit into memory, else measured on a short piece of the first.
pub(crate) fn forecast(plan: &Plan, batch: &BatchFlags) -> Result<Forecast, Failure> {
    let part = measured(&plan.jobs(), &plan.seeds)?;
    Ok(Forecast::new(vec![part], cores(batch.jobs)))
}

/// The part of the forecast for some jobs.
pub(crate) fn measured(jobs: &[Job], seeds: &[u64]) -> Result<Part, Failure> {
    fits(jobs, seeds.len()).map_err(Failure::usage)?;
    let run_s = jobs.first().zip(seeds.first()).and_then(|(job, &seed)| {
        let spec = Spec {
            seed,
            ..job.spec.clone()
        };
        pilot(&spec, PILOT)
    });
    Ok(Part::new(jobs, seeds.len()).measured(run_s))
}

/// How long the piece is run that the first estimate comes from: the first line must not wait for it.
const PILOT: Duration = Duration::from_millis(60);

/// Where runs are made, in words: with one run there is one core at work.
pub(crate) fn on_cores(jobs: usize, runs: u64) -> String {
    match (cores(jobs) as u64).min(runs) {
        0 | 1 => String::from("on one core"),
        used => format!("on {used} cores"),
    }
}

/// The seeds of some runs, in words.
pub(crate) fn seeds_in_words(seeds: &[u64]) -> String {
    match seeds {
        [] => String::from("no seed"),
        [one] => format!("seed {one}"),
        [first, .., last] => format!("seeds {first} to {last}"),
    }
}

/// What batches of runs did, and how fast.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    computed: u64,
    reused: u64,
    /// Virtual time of the computed runs (s).
    simulated_s: f64,
    wall_s: f64,
}

impl Done {
    pub(crate) fn of(batch: &Batch) -> Done {
        Done {
            computed: batch.computed,
            reused: batch.reused,
            simulated_s: batch.simulated_s,
            wall_s: batch.wall_s,
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let computed = counted(self.computed, "run");
        write!(
            f,
            "{computed} computed, {} reused, in {:.1} s",
            self.reused, self.wall_s
        )?;
        if self.computed == 0 || self.wall_s <= 0.0 {
            return Ok(());
        }
        let speed = grouped(self.simulated_s / self.wall_s);
        write!(
            f,
            " ({} s of traffic, {speed} times real time)",
            grouped(self.simulated_s)
        )
    }
}

/// A number for people: two digits when small, thousands separated when large.
pub(crate) fn grouped(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for place in (first..digits.len()).step_by(3) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&digits[place..place + 3]);
    }
    text
}

/// The scenario of `file`, or the built-in home line.
pub(crate) fn scenario(file: Option<&Path>) -> Result<Scenario, Failure> {
    Ok(match file {
        Some(path) if path.exists() && !is_regular(path) && !path.is_dir() => {
            let text = input::text(path, input::MOST_SCENARIO).map_err(|error| {
                Failure::usage(format!(
                    "{}: it is read as a scenario, and cannot be: {error}. A capture: fleetfoot import - --out NAME.toml",
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

/// The scenario with what `--set` changes, each a path and a value.
pub(crate) fn with_settings(scenario: Scenario, settings: &[String]) -> Result<Scenario, Failure> {
    if settings.is_empty() {
        return Ok(scenario);
    }
    let mut set = Setting::from_origin("--set");
    for argument in settings {
        set = set.with_argument(argument)?;
    }
    Ok(scenario.with(&set)?)
}

/// A flag that Ctrl-C sets, as do TERM and HUP; the second one ends the program at once. It is always the same: a signal has one handler.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let stop = STOP.get_or_init(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        // Without a handler Ctrl-C still ends the program; finished runs are on disk either way.
        on_stop(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        stop
    });
    Arc::clone(stop)
}

/// Calls `handler` for Ctrl-C, TERM and HUP. What this process was started to ignore stays ignored: `nohup` starts it without HUP.
fn on_stop(handler: impl FnMut() + Send + 'static) {
    #[cfg(target_os = "linux")]
    let ignored = fleetfoot_live::Ignored::now();
    // Without a handler they still end the program.
    let _ = ctrlc::set_handler(handler);
    #[cfg(target_os = "linux")]
    ignored.again();
}

/// Ctrl-C, TERM or HUP writes into `pipe`; the second one ends the program at once. For verbs that sleep in the kernel. Not with
/// [`stop_flag`]: a signal has one handler.
#[cfg(target_os = "linux")]
pub(crate) fn tell_of_stop(pipe: std::io::PipeWriter) {
    use std::io::Write;
    let stopped = AtomicBool::new(false);
    // Without a handler Ctrl-C still ends the program, and the kernel puts away what it had.
    on_stop(move || {
        if stopped.swap(true, Ordering::Relaxed) || (&pipe).write_all(&[1]).is_err() {
            std::process::exit(130);
        }
    });
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
    // A name that is no UTF-8 cannot be repeated by a text, but it can be used.
    let words = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
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
