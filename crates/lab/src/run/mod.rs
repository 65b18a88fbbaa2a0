//! Many runs in parallel: one task is one (variant, seed).
//!
//! All variants see the same arrivals and sizes (common random numbers), because every random element of a run has its
//! own stream, derived from seed and name. Finished runs are kept in the output folder, so that the same command
//! resumes; a run is written under another name and renamed, so nothing is ever half there.

mod demand;
mod estimate;
mod kernel;
mod leftovers;
pub mod parts;
#[cfg(target_os = "linux")]
pub mod replay;
mod store;
mod surroundings;
#[cfg(test)]
mod tests;

pub use demand::Demand;
pub use estimate::{expected_s, fits};
pub use kernel::playable_by_kernel;
#[cfg(target_os = "linux")]
pub use kernel::{link_of_kernel, play};
pub use leftovers::{MAKING, remove_leftovers, remove_parts_of};
pub use parts::{Part, execute_parts};
pub use store::{LIMIT_VARIABLE, Store, digest, write_atomically};

use crate::clock::Instant;
use crate::result::RunData;
use crate::{identity, memory, plugins};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{Spec, World};
use fleetfoot_sim::watch::Watch;
use fleetfoot_sim::world::{self, Holder, Mode, Usage};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What runs one specification. It looks at the flag now and then, and returns `interrupted` output when it is set.
pub type Engine<'a> = dyn Fn(&Spec, &AtomicBool) -> Result<RunOutput, String> + Sync + 'a;

/// The engine: the simulator, or the kernel where [`Spec::world`] says so.
///
/// # Errors
/// The specification names something that does not exist or cannot be reached; the kernel cannot play it here.
pub fn simulate(spec: &Spec, stop: &AtomicBool) -> Result<RunOutput, String> {
    simulate_with_progress(spec, stop, &|_| ())
}

/// As [`simulate`], and calls `pulse` now and then with the progress of the run.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with_progress(
    spec: &Spec,
    stop: &AtomicBool,
    pulse: &dyn Fn(&Pulse),
) -> Result<RunOutput, String> {
    if spec.world.is_real() {
        #[cfg(target_os = "linux")]
        return play(spec, stop, pulse, None);
        #[cfg(not(target_os = "linux"))]
        playable_by_kernel(spec)?;
    }
    let Some(bin) = spec.bins else {
        return observe_with_progress(spec, stop, &mut (), pulse);
    };
    let mut watch = Watch::new(spec, bin);
    let mut output = observe_with_progress(spec, stop, &mut watch, pulse)?;
    watch.finish(&mut output);
    Ok(output)
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pulse {
    /// The thread of the batch that works on it.
    pub worker: usize,
    /// Its seed.
    pub seed: u64,
    /// Virtual time reached (s).
    pub at_s: f64,
    /// Virtual time at which arrivals stop (s).
    pub end_s: f64,
    /// Time since it began (s).
    pub wall_s: f64,
}

/// Runs `spec` for about so long and says how long all of it would take (s), or took if it ended before: a measured first
/// estimate. Nothing is kept.
pub fn pilot(spec: &Spec, budget: std::time::Duration) -> Option<f64> {
    if spec.world.is_real() {
        return Some(spec.duration.as_secs_f64());
    }
    let begin = Instant::now();
    let mut reached = 0.0;
    let progress = |now: fleetfoot_core::time::Instant| {
        reached = now.as_secs_f64();
        match begin.elapsed() < budget && !memory::reached() && !plugins::has_failed() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    let output = world::run(spec, Mode::Fast, &mut (), progress);
    if plugins::take_failure().is_some() {
        return None;
    }
    let output = output.ok()?;
    let took_s = begin.elapsed().as_secs_f64();
    let end_s = spec.duration.as_secs_f64();
    Some(match output.interrupted {
        true if reached > 0.0 => took_s * (end_s / reached).max(1.0),
        _ => took_s,
    })
}

/// The simulator with an observer. A run that reaches the ceiling of memory ([`memory`]) fails and says what grew; others
/// that run at the time end as interrupted. A run with a mechanism that fails ([`plugins::fail`]) fails for its reason.
///
/// # Errors
/// As [`simulate`].
pub fn observe<O: Observer>(spec: &Spec, stop: &AtomicBool, observer: &mut O) -> Result<RunOutput, String> {
    observe_with_progress(spec, stop, observer, &|_| ())
}

/// As [`observe`], and calls `pulse` now and then with the progress of the run.
///
/// # Errors
/// As [`observe`].
pub fn observe_with_progress<O: Observer>(
    spec: &Spec,
    stop: &AtomicBool,
    observer: &mut O,
    pulse: &dyn Fn(&Pulse),
) -> Result<RunOutput, String> {
    let begin = Instant::now();
    let worker = rayon::current_thread_index().unwrap_or(0);
    if spec.world.is_real() {
        return Err(String::from(
            "what happens inside cannot be observed where the kernel plays a run (run.world)",
        ));
    }
    let _turn = kernel::Turn::take(World::Simulator);
    let mut too_large = None;
    let progress = |now: fleetfoot_core::time::Instant, usage: &dyn Fn() -> Usage| {
        let was_reached = memory::was_reached();
        if memory::reached() {
            // Those that run beside the first end without a word of their own.
            too_large = (!was_reached).then(|| grown(spec, now, &usage()));
            return ControlFlow::Break(());
        }
        if plugins::has_failed() {
            return ControlFlow::Break(());
        }
        pulse(&Pulse {
            worker,
            seed: spec.seed,
            at_s: now.as_secs_f64(),
            end_s: spec.duration.as_secs_f64(),
            wall_s: begin.elapsed().as_secs_f64(),
        });
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let output = world::watched(spec, Mode::Fast, observer, progress).map_err(|error| error.to_string());
    match plugins::take_failure() {
        Some(reason) => Err(reason),
        None => too_large.map_or(output, Err),
    }
}

/// What made a run too large.
fn grown(spec: &Spec, now: fleetfoot_core::time::Instant, usage: &Usage) -> String {
    let ceiling = memory::shown(memory::ceiling());
    let begin = format!(
        "stopped at {:.3} s of {} s: memory came near to what this program may take ({ceiling}; --memory changes it)",
        now.as_secs_f64(),
        spec.duration.as_secs_f64()
    );
    let count = usage.count;
    let group = |index: u32| &spec.groups[index as usize].name;
    let resident = memory::resident().unwrap_or(0);
    if usage.bytes < resident / 4 {
        return format!(
            "{begin}. Finished runs hold most of it: take fewer seeds or variants, or a shorter duration"
        );
    }
    match usage.holder {
        Holder::Open(index) => format!(
            "{begin}. It is in {count} open connections of `{}`: lower its arrivals or its `count`",
            group(index)
        ),
        Holder::Records(index) => format!(
            "{begin}. It is in {count} flow records and samples of `{}`: lower its arrivals or shorten `run.duration`",
            group(index)
        ),
        Holder::Packets(link) => {
            let link = &spec.links[link.0 as usize];
            let direction = if link.forward { "forward" } else { "reverse" };
            format!(
                "{begin}. It is in {count} packets that wait for link `{}` ({direction}): give its queue a `limit`, or send less",
                link.name
            )
        }
    }
}

/// One variant to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Name of the variant.
    pub name: String,
    /// What identifies the run besides the seed: the resolved scenario.
    pub identity: String,
    /// What to run; the seed is filled in.
    pub spec: Spec,
    /// Whose requests its users are held to, if anybody's.
    pub demand: Option<Demand>,
}

impl Job {
    /// A job whose identity is everything that its runs depend on: lists read from files and the run it takes its demand from
    /// included.
    pub fn new(name: impl Into<String>, spec: Spec, demand: Option<Demand>) -> Job {
        let own = identity::of(&spec);
        let identity = match &demand {
            Some(demand) => format!("{own} with the demand of {}", demand.identity),
            None => own,
        };
        Job {
            name: name.into(),
            identity,
            spec,
            demand,
        }
    }
}

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads; 0: one per core.
    pub jobs: usize,
    /// Where finished runs are kept, if anywhere.
    pub store: Option<Store>,
    /// Ignore what is kept.
    pub fresh: bool,
}

/// Where a batch of runs is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Runs finished, reused ones included.
    pub done: u64,
    /// Runs in all.
    pub total: u64,
    /// Finished runs that were kept from before, or are those of an earlier job that is the same.
    pub reused: u64,
    /// Index of the job whose run just finished.
    pub job: usize,
    /// Its name.
    pub variant: String,
    /// Its seed.
    pub seed: u64,
    /// How long it took (s); zero if reused.
    pub wall_s: f64,
}

impl Progress {
    /// This progress in a larger batch of `total` runs, of which `before` were finished when this one began.
    #[must_use]
    pub fn after(&self, before: u64, total: u64) -> Progress {
        Progress {
            done: before + self.done,
            total,
            ..self.clone()
        }
    }
}

/// What a batch of runs returned.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Finished runs by job, each in the order of the seeds.
    pub runs: Vec<Vec<RunData>>,
    /// Runs computed now.
    pub computed: u64,
    /// Runs reused: kept from before, or those of an earlier job that is the same.
    pub reused: u64,
    /// Time the runs took, added up over threads (s).
    pub cpu_s: f64,
    /// Elapsed time (s).
    pub wall_s: f64,
    /// Virtual time of the computed runs, added up (s).
    pub simulated_s: f64,
    /// Whether it was stopped before all were done.
    pub interrupted: bool,
}

/// Why a batch failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine refused a specification.
    #[error("variant `{variant}`, seed {seed}: {reason}")]
    Engine {
        /// Name of the variant.
        variant: String,
        /// Seed of the run.
        seed: u64,
        /// What the engine said.
        reason: String,
    },
    /// Memory came near to its ceiling.
    #[error("variant `{variant}`, seed {seed}: {reason}")]
    Memory {
        /// Name of the variant.
        variant: String,
        /// Seed of the run.
        seed: u64,
        /// What grew and what to change.
        reason: String,
    },
    /// The pool of threads could not be made.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// A finished run could not be kept.
    #[error("cannot write {0}: {1}")]
    Store(String, std::io::Error),
}

/// Runs every job with every seed. `stop` ends the batch: what is finished is returned.
///
/// Runs are started about seed by seed, so that after an interruption all variants have nearly the same seeds ([`parts`]).
///
/// # Errors
/// The first that a run met, in the order of the tasks.
pub fn execute(
    jobs: &[Job],
    seeds: &[u64],
    options: &Options,
    stop: &AtomicBool,
    engine: &Engine<'_>,
    progress: &(dyn Fn(&Progress) + Sync),
) -> Result<Batch, Error> {
    let whole = Mutex::new(Batch::default());
    let part = Part { jobs, seeds };
    let finished = |_, batch| {
        *whole.lock().unwrap_or_else(PoisonError::into_inner) = batch;
        ControlFlow::Continue(())
    };
    execute_parts(&[part], options, stop, engine, &|_, run| progress(run), &finished)?;
    Ok(whole.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// A run that is there.
#[derive(Clone, Debug)]
struct Finished {
    output: Arc<RunOutput>,
    /// Whether the run was kept from before.
    reused: bool,
}
