//! Several batches on the same threads, with an engine that makes up its results.

use super::jobs;
use crate::run::parts::order_of;
use crate::run::{Batch, Demand, Error, Job, Options, Part, execute_parts};
use crate::testing::engine;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

const TWO: Options = Options {
    jobs: 2,
    store: None,
    fresh: false,
};

#[test]
fn the_next_part_begins_while_the_last_run_of_the_one_before_is_under_way() {
    let jobs = &jobs()[..1];
    let parts = [1, 2].map(|seed| [seed]);
    let parts = parts.each_ref().map(|seeds| Part { jobs, seeds });
    // The run of the first part ends when that of the second has begun, and is never alone.
    let (tell, hear) = channel();
    let hear = Mutex::new(hear);
    let waiting = |spec: &Spec, stop: &AtomicBool| {
        if spec.seed == 2 {
            tell.send(()).map_err(|error| error.to_string())?;
        } else {
            let hear = hear.lock().map_err(|error| error.to_string())?;
            hear.recv_timeout(std::time::Duration::from_secs(60))
                .map_err(|_| String::from("the second part has not begun"))?;
        }
        engine(spec, stop)
    };
    let heard = Mutex::new(Vec::new());
    let progress = |part, run: &crate::run::Progress| {
        let mut heard = heard.lock().expect("nobody panics holding it");
        heard.push((part, run.seed, run.done, run.total));
    };
    let ended = Mutex::new(Vec::new());
    let finished = |part, batch: Batch| {
        let mut ended = ended.lock().expect("nobody panics holding it");
        ended.push((part, batch.computed, batch.runs[0][0].seed, batch.interrupted));
        ControlFlow::Continue(())
    };
    let stop = AtomicBool::new(false);
    execute_parts(&parts, &TWO, &stop, &waiting, &progress, &finished).expect("it runs");
    let mut ended = ended.into_inner().expect("nobody panics holding it");
    ended.sort_unstable();
    assert_eq!(ended, [(0, 1, 1, false), (1, 1, 2, false)]);
    // The counts are those of all parts, and go up.
    let mut heard = heard.into_inner().expect("nobody panics holding it");
    assert_eq!(
        heard.iter().map(|run| (run.2, run.3)).collect::<Vec<_>>(),
        [(1, 2), (2, 2)]
    );
    heard.sort_unstable();
    assert_eq!(
        heard.iter().map(|run| (run.0, run.1)).collect::<Vec<_>>(),
        [(0, 1), (1, 2)]
    );
}

#[test]
fn no_more_parts_are_under_way_than_there_are_threads() {
    let jobs = jobs();
    let seeds: Vec<[u64; 4]> = (0..40)
        .map(|part| [0, 1, 2, 3].map(|seed| 4 * part + seed))
        .collect();
    let parts: Vec<Part<'_>> = seeds.iter().map(|seeds| Part { jobs: &jobs, seeds }).collect();
    let (begun, most) = (Mutex::new(vec![false; parts.len()]), AtomicU64::new(0));
    let counting = |spec: &Spec, stop: &AtomicBool| {
        let mut begun = begun.lock().expect("nobody panics holding it");
        begun[spec.seed as usize / 4] = true;
        let under_way = begun.iter().filter(|begun| **begun).count() as u64;
        most.fetch_max(under_way, Ordering::Relaxed);
        drop(begun);
        engine(spec, stop)
    };
    let ended = AtomicU64::new(0);
    let finished = |part: usize, batch: Batch| {
        begun.lock().expect("nobody panics holding it")[part] = false;
        assert_eq!((batch.computed, batch.interrupted), (12, false));
        ended.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let stop = AtomicBool::new(false);
    execute_parts(&parts, &TWO, &stop, &counting, &|_, _| (), &finished).expect("it runs");
    assert_eq!(ended.into_inner(), 40);
    assert!((1..=2).contains(&most.into_inner()));
}

/// What [`execute_parts`] says on one thread of three parts, of which those with these seeds fail; which parts were handed over, and
/// the runs that were made.
fn with_failures(failing: &[u64], ends_after: usize) -> (Result<(), Error>, Vec<usize>, u64) {
    let jobs = &jobs()[..1];
    let seeds = [[0, 1], [2, 3], [4, 5]];
    let parts = seeds.each_ref().map(|seeds| Part { jobs, seeds });
    let (runs, ended) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let failing = |spec: &Spec, stop: &AtomicBool| {
        runs.fetch_add(1, Ordering::Relaxed);
        match failing.contains(&spec.seed) {
            true => Err(format!("seed {}", spec.seed)),
            false => engine(spec, stop),
        }
    };
    let finished = |part, _| {
        ended.lock().expect("nobody panics holding it").push(part);
        match part == ends_after {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let options = Options { jobs: 1, ..TWO };
    let stop = AtomicBool::new(false);
    let said = execute_parts(&parts, &options, &stop, &failing, &|_, _| (), &finished);
    let ended = ended.into_inner().expect("nobody panics holding it");
    (said, ended, runs.into_inner())
}

#[test]
fn what_fails_or_is_enough_ends_the_parts_after_it() {
    let (said, ended, runs) = with_failures(&[], 9);
    assert!(said.is_ok());
    assert_eq!((ended, runs), (vec![0, 1, 2], 6));
    let (said, ended, runs) = with_failures(&[3, 4], 9);
    let said = said.expect_err("a run failed").to_string();
    assert!(said.ends_with("seed 3: seed 3"), "{said}");
    assert_eq!((ended, runs), (vec![0], 4));
    let (said, ended, runs) = with_failures(&[4], 1);
    assert!(said.is_ok());
    assert_eq!((ended, runs), (vec![0, 1], 4));
}

#[test]
fn a_part_without_runs_is_handed_over_and_a_stopped_one_is_interrupted() {
    let jobs = jobs();
    let none = Part {
        jobs: &[],
        seeds: &[],
    };
    let some = Part {
        jobs: &jobs,
        seeds: &[1],
    };
    let go = |stop: bool| {
        let ended = Mutex::new(Vec::new());
        let finished = |part, batch: Batch| {
            let mut ended = ended.lock().expect("nobody panics holding it");
            ended.push((part, batch.computed, batch.interrupted));
            ControlFlow::Continue(())
        };
        let stop = AtomicBool::new(stop);
        execute_parts(&[none, some, none], &TWO, &stop, &engine, &|_, _| (), &finished).expect("it runs");
        let mut ended = ended.into_inner().expect("nobody panics holding it");
        ended.sort_unstable();
        ended
    };
    assert_eq!(go(false), [(0, 0, false), (1, 3, false), (2, 0, false)]);
    assert_eq!(go(true), [(0, 0, false), (1, 0, true), (2, 0, false)]);
}

#[test]
fn long_runs_begin_first_within_a_seed_and_within_the_last_seeds() {
    let lasting = |seconds: &[u64]| {
        let job = &jobs()[0];
        let jobs = seconds.iter().map(|seconds| {
            let spec = Spec {
                duration: Duration::from_secs(*seconds),
                ..job.spec.clone()
            };
            Job::new(format!("{seconds} s"), spec, None)
        });
        jobs.collect::<Vec<Job>>()
    };
    let order = |jobs: &[Job], seeds: &[u64], threads| {
        let order = order_of(&Part { jobs, seeds }, threads);
        let named = order.into_iter().flatten();
        named
            .map(|task| (task / jobs.len(), task % jobs.len()))
            .collect::<Vec<_>>()
    };
    let jobs = lasting(&[10, 30, 20]);
    assert_eq!(
        order(&jobs, &[1, 2, 3, 4], 2),
        [
            [(0, 1), (0, 2), (0, 0)],
            [(1, 1), (1, 2), (1, 0)],
            [(2, 1), (3, 1), (2, 2)],
            [(3, 2), (2, 0), (3, 0)],
        ]
        .concat()
    );
    assert_eq!(order(&jobs, &[1], 8), [(0, 1), (0, 2), (0, 0)]);

    // The first asks for as much as the last has: that one begins a seed ahead on one thread, and before all on many.
    let mut jobs = lasting(&[30, 20, 10]);
    let scenario = crate::scenario::Scenario::parse("users.toml", super::USERS).expect("it is a scenario");
    let described = scenario
        .resolve(&crate::scenario::Setting::none())
        .expect("it resolved before");
    jobs[0].demand = Demand::new(&described.groups, &jobs[2].spec);
    assert!(jobs[0].demand.is_some());
    assert_eq!(
        order(&jobs, &[1, 2, 3], 1),
        [
            [(0, 2), (0, 0), (0, 1)],
            [(1, 2), (1, 0), (1, 1)],
            [(2, 2), (2, 0), (2, 1)],
        ]
        .concat()
    );
    assert_eq!(order(&jobs, &[1, 2], 8)[..2], [(0, 2), (1, 2)]);
}

/// A thread that panics ends the work instead of leaving it to the others.
#[test]
fn a_panic_reaches_the_caller_and_nothing_more_begins() {
    let jobs = &jobs()[..1];
    let seeds: Vec<u64> = (0..100).collect();
    let runs = AtomicU64::new(0);
    let panicking = |_: &Spec, _: &AtomicBool| -> Result<RunOutput, String> {
        runs.fetch_add(1, Ordering::Relaxed);
        panic!("as the test wants");
    };
    let part = Part { jobs, seeds: &seeds };
    let stop = AtomicBool::new(false);
    let work = std::panic::AssertUnwindSafe(|| {
        execute_parts(&[part], &TWO, &stop, &panicking, &|_, _| (), &|_, _| {
            ControlFlow::Continue(())
        })
    });
    assert!(std::panic::catch_unwind(work).is_err());
    assert!(runs.into_inner() <= 2);
}

/// Two names for one specification: it is run once with each seed, and the second is reused, whichever thread comes first.
#[test]
fn jobs_that_are_the_same_run_share_it() {
    let folder = crate::testing::folder("same-job");
    let mut jobs = jobs();
    let again = Job::new("better under another name", jobs[1].spec.clone(), None);
    assert_eq!(again.identity, jobs[1].identity);
    jobs.push(again);
    let options = Options {
        jobs: 8,
        store: Some(crate::run::Store::open(&folder).expect("it can be made")),
        fresh: false,
    };
    let seeds: Vec<u64> = (0..50).collect();
    let (made, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let counting = |spec: &Spec, stop: &AtomicBool| {
        made.fetch_add(1, Ordering::Relaxed);
        engine(spec, stop)
    };
    let batch = crate::run::execute(&jobs, &seeds, &options, &stop, &counting, &|_| ()).expect("it runs");
    assert_eq!(made.into_inner(), 3 * 50);
    assert_eq!((batch.computed, batch.reused), (3 * 50, 50));
    for (one, other) in batch.runs[1].iter().zip(&batch.runs[3]) {
        assert_eq!(one.seed, other.seed);
        assert!(std::sync::Arc::ptr_eq(&one.output, &other.output));
    }
    assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 3 * 50);
    std::fs::remove_dir_all(&folder).expect("it was made here");
}
