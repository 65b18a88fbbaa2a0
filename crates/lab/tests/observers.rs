//! What is observed is what is measured: results do not depend on whether anybody observes a run. An observer that wants
//! nothing lets packets pass many at a time ([`Observer::DEAF`]), any other sees each; both ways must agree on every experiment.

use fleetfoot_core::packet::Packet;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_lab::experiment::{Level, Prepared, library};
use fleetfoot_lab::scenario::ErrorKind;
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{LinkIndex, Spec};
use fleetfoot_sim::world::{Mode, run};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::Hasher;
use std::ops::ControlFlow;

/// Counts packets that reach the end of a link.
#[derive(Default)]
struct Listener {
    delivered: u64,
}

impl Observer for Listener {
    fn on_deliver(&mut self, _now: Instant, _at: LinkIndex, _packet: &Packet, _sojourn: Duration) {
        self.delivered += 1;
    }
}

/// Hashes text instead of keeping it.
struct Digest(DefaultHasher);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// A hash of everything in a result but the number of events, which is the engine's effort.
fn digest(mut output: RunOutput) -> u64 {
    output.events = 0;
    let mut digest = Digest(DefaultHasher::new());
    write!(digest, "{output:?}").expect("a hash takes everything");
    digest.0.finish()
}

fn observed<O: Observer>(spec: &Spec, observer: &mut O) -> u64 {
    digest(run(spec, Mode::Fast, observer, |_| ControlFlow::Continue(())).expect("a runnable scenario"))
}

/// Compares the runs of every experiment whose number is a multiple of `step`: `jobs` of each, for `most` at the longest.
fn compare(step: usize, jobs: usize, most: Option<Duration>) {
    let experiments = library::all().expect("experiments that can be read");
    let specs: Vec<(String, Spec)> = experiments
        .iter()
        .step_by(step)
        .flat_map(|experiment| {
            let prepared = match Prepared::new(experiment, Level::Quick) {
                Err(error) if error.kind == ErrorKind::NotBuilt => return Vec::new(),
                other => other.expect("an experiment that can be run"),
            };
            let jobs = prepared.jobs().iter().take(jobs);
            let specs = jobs.map(|job| (job.name.clone(), job.spec.clone()));
            specs.collect::<Vec<_>>()
        })
        .collect();
    assert!(!specs.is_empty());
    let differing: Vec<String> = specs
        .into_par_iter()
        .filter_map(|(name, mut spec)| {
            if let Some(most) = most {
                spec.duration = spec.duration.min(most);
                spec.warmup = spec.warmup.min(Duration::from_nanos(most.as_nanos() / 2));
                spec.drain = spec.drain.min(most);
            }
            let mut listener = Listener::default();
            let listened = observed(&spec, &mut listener);
            (listened != observed(&spec, &mut ())).then_some(name)
        })
        .collect();
    assert!(
        differing.is_empty(),
        "results depend on the observer: {differing:?}"
    );
}

#[test]
fn listening_changes_nothing_in_a_sample_of_the_experiments() {
    compare(17, 2, Some(Duration::from_secs(2)));
}

#[test]
#[ignore = "minutes; run by hand"]
fn listening_changes_nothing_in_any_experiment() {
    compare(1, usize::MAX, None);
}
