//! Runs that were made lately, so that a comparison with more seeds makes only those that are new.

use fleetfoot_lab::result::RunData;
use fleetfoot_lab::run::{Batch, Job};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs that are kept at most.
const MOST: usize = 400;

/// Events of all kept runs together: a measure of what their records take.
const MOST_EVENTS: u64 = 200_000_000;

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

#[derive(Debug, Default)]
struct Kept {
    runs: HashMap<String, Run>,
    events: u64,
    clock: u64,
}

#[derive(Debug)]
struct Run {
    output: Arc<RunOutput>,
    used: u64,
}

/// What identifies a run of `spec`, its seed included.
pub(crate) fn key(spec: &Spec) -> String {
    let seed = spec.seed;
    named(
        &Job::new(
            "",
            Spec {
                seed: 0,
                ..spec.clone()
            },
            None,
        ),
        seed,
    )
}

/// What identifies a run of `job`, which stands in it without a seed.
fn named(job: &Job, seed: u64) -> String {
    format!("{} {seed}", job.identity)
}

/// The run of `spec` that is kept, or what `make` returns, which is kept if it was not interrupted.
pub(crate) fn get(
    spec: &Spec,
    make: impl FnOnce() -> Result<RunOutput, String>,
) -> Result<RunOutput, String> {
    let key = key(spec);
    if let Some(output) = find(&key) {
        return Ok(RunOutput::clone(&output));
    }
    let output = make()?;
    if !output.interrupted {
        put(key, output.clone());
    }
    Ok(output)
}

/// Whether the run of this name is kept.
pub(crate) fn has(key: &str) -> bool {
    with(|kept| kept.runs.contains_key(key))
}

/// The run of this name, if it is kept.
pub(crate) fn find(key: &str) -> Option<Arc<RunOutput>> {
    with(|kept| kept.find(key))
}

/// Keeps a run.
pub(crate) fn put(key: String, output: RunOutput) {
    with(|kept| kept.keep(key, output));
}

/// The runs of these jobs with these seeds, if all are kept and none is held to the demand of another.
pub(crate) fn all(jobs: &[Job], seeds: &[u64]) -> Option<Batch> {
    let one = |job: &Job, seed: u64| {
        let output = find(&key_of(job, seed)?)?;
        Some(RunData { seed, output })
    };
    let runs = jobs
        .iter()
        .map(|job| seeds.iter().map(|seed| one(job, *seed)).collect());
    Some(Batch {
        runs: runs.collect::<Option<Vec<Vec<RunData>>>>()?,
        reused: (jobs.len() * seeds.len()) as u64,
        ..Batch::default()
    })
}

/// The key of a run of `job`; `None`: what it does follows from another run.
pub(crate) fn key_of(job: &Job, seed: u64) -> Option<String> {
    let free = job.demand.is_none() && job.spec.seed == 0;
    free.then(|| named(job, seed))
}

fn with<T>(work: impl FnOnce(&mut Kept) -> T) -> T {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    work(kept.get_or_insert_default())
}

impl Kept {
    fn find(&mut self, key: &str) -> Option<Arc<RunOutput>> {
        self.clock += 1;
        let run = self.runs.get_mut(key)?;
        run.used = self.clock;
        Some(Arc::clone(&run.output))
    }

    fn keep(&mut self, key: String, output: RunOutput) {
        if output.events > MOST_EVENTS / 4 {
            return;
        }
        self.clock += 1;
        self.events += output.events;
        let (used, output) = (self.clock, Arc::new(output));
        if let Some(before) = self.runs.insert(key, Run { output, used }) {
            self.events -= before.output.events;
        }
        while self.runs.len() > MOST || self.events > MOST_EVENTS {
            let oldest = self.runs.iter().min_by_key(|(_, run)| run.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some(run) = self.runs.remove(&key) {
                self.events -= run.output.events;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kept, MOST};
    use fleetfoot_sim::output::RunOutput;

    #[test]
    fn the_oldest_runs_go_first() {
        let mut kept = Kept::default();
        for number in 0..MOST + 10 {
            kept.keep(number.to_string(), RunOutput::default());
            assert!(kept.find("0").is_some(), "it was asked for all the time");
        }
        assert_eq!(kept.runs.len(), MOST);
        assert!(kept.find("1").is_none() && kept.find(&(MOST + 9).to_string()).is_some());
    }
}
