//! Runs that were made lately, so that a comparison with more seeds makes only those that are new.

use fleetfoot_lab::run::Job;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

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
    output: RunOutput,
    used: u64,
}

/// What identifies a run of `spec`, its seed included.
fn key(spec: &Spec) -> String {
    let seed = spec.seed;
    format!("{} {seed}", Job::new("", spec.clone(), None).identity)
}

/// The run of `spec` that is kept, or what `make` returns, which is kept if it was not interrupted.
pub(crate) fn get(
    spec: &Spec,
    make: impl FnOnce() -> Result<RunOutput, String>,
) -> Result<RunOutput, String> {
    let key = key(spec);
    if let Some(output) = with(|kept| kept.find(&key)) {
        return Ok(output);
    }
    let output = make()?;
    if !output.interrupted {
        with(|kept| kept.keep(key, output.clone()));
    }
    Ok(output)
}

fn with<T>(work: impl FnOnce(&mut Kept) -> T) -> T {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    work(kept.get_or_insert_default())
}

impl Kept {
    fn find(&mut self, key: &str) -> Option<RunOutput> {
        self.clock += 1;
        let run = self.runs.get_mut(key)?;
        run.used = self.clock;
        Some(run.output.clone())
    }

    fn keep(&mut self, key: String, output: RunOutput) {
        if output.events > MOST_EVENTS / 4 {
            return;
        }
        self.clock += 1;
        self.events += output.events;
        let used = self.clock;
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
