//! The batch is tested with an engine that makes up its results.

mod parts;

use super::{Batch, Job, Options, Store, execute, observe};
use crate::plugins;
use crate::testing::{engine, folder, scenario};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::parameter::Values;
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::{AnyQueue, Backlog, DropTail, LinkContext, QueueContext, QueueDiscipline};
use fleetfoot_core::registry::{Entry, Plugin};
use fleetfoot_core::time::Instant;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn jobs() -> Vec<Job> {
    let plan =
        crate::compare::Plan::compare(scenario(), &crate::compare::Choice::default()).expect("it resolves");
    plan.jobs()
}

fn run(options: &Options, stop: &AtomicBool) -> (Batch, u64) {
    let calls = AtomicU64::new(0);
    let counting = |spec: &_, stop: &_| {
        calls.fetch_add(1, Ordering::Relaxed);
        engine(spec, stop)
    };
    let batch = execute(&jobs(), &[1, 2, 3], options, stop, &counting, &|_| ()).expect("it runs");
    (batch, calls.load(Ordering::Relaxed))
}

#[test]
fn finished_runs_are_reused_and_equal_to_computed_ones() {
    let folder = folder("reuse");
    let kept = Options {
        jobs: 2,
        store: Some(Store::open(&folder).expect("it can be made")),
        fresh: false,
    };
    let stop = AtomicBool::new(false);
    let (first, calls) = run(&kept, &stop);
    assert_eq!((calls, first.computed, first.reused), (9, 9, 0));
    let (second, calls) = run(&kept, &stop);
    assert_eq!((calls, second.computed, second.reused), (0, 0, 9));
    for (a, b) in first.runs.iter().flatten().zip(second.runs.iter().flatten()) {
        assert_eq!(a.seed, b.seed);
        assert_eq!(a.output.groups[0].flows, b.output.groups[0].flows);
        assert_eq!(
            a.output.links[0].queue_delay.counts(),
            b.output.links[0].queue_delay.counts()
        );
        assert_eq!(a.output.links[0].drops, b.output.links[0].drops);
    }
    let (_, calls) = run(&Options { fresh: true, ..kept }, &stop);
    assert_eq!(calls, 9);
    std::fs::remove_dir_all(&folder).expect("it was made here");
}

#[test]
fn a_damaged_run_is_computed_again() {
    let folder = folder("damaged");
    let kept = Options {
        jobs: 1,
        store: Some(Store::open(&folder).expect("it can be made")),
        fresh: false,
    };
    let stop = AtomicBool::new(false);
    run(&kept, &stop);
    let key = Store::key(&jobs()[0].identity, 1);
    let place = kept.store.as_ref().expect("set above").place(&key);
    let mut bytes = std::fs::read(&place).expect("it was kept");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&place, bytes).expect("it is ours");
    let (batch, calls) = run(&kept, &stop);
    assert_eq!((calls, batch.reused), (1, 8));
    std::fs::remove_dir_all(&folder).expect("it was made here");
}

/// Stopped after four of nine runs and begun again, with a store that cannot hold all of them.
#[test]
fn a_batch_goes_on_where_it_was_stopped_although_its_store_is_full() {
    let folder = folder("full");
    let open = |limit| Options {
        jobs: 1,
        store: Some(Store::with_limit(&folder, limit).expect("it can be made")),
        fresh: false,
    };
    let stop = AtomicBool::new(false);
    let (whole, _) = run(&open(u64::MAX), &stop);
    let all = open(u64::MAX).store.expect("set above").bytes();
    std::fs::remove_dir_all(&folder).expect("it was made here");

    let limit = all * 6 / 10;
    let done = AtomicU64::new(0);
    let progress = |_: &super::Progress| {
        if done.fetch_add(1, Ordering::Relaxed) == 3 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let options = open(limit);
    let first = execute(&jobs(), &[1, 2, 3], &options, &stop, &engine, &progress).expect("it runs");
    assert!(first.interrupted);
    stop.store(false, Ordering::Relaxed);
    let options = open(limit);
    let (second, calls) = run(&options, &stop);
    assert_eq!((calls, second.reused, second.interrupted), (5, 4, false));
    let store = options.store.expect("set above");
    assert!(store.bytes() <= limit && store.remark().is_some());
    for (a, b) in whole.runs.iter().flatten().zip(second.runs.iter().flatten()) {
        assert_eq!(
            (a.seed, super::digest(&a.output)),
            (b.seed, super::digest(&b.output))
        );
    }
    assert_eq!(second.runs.iter().flatten().count(), 9);
    std::fs::remove_dir_all(&folder).expect("it was made here");
}

#[test]
fn a_stopped_batch_keeps_what_is_finished() {
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let options = Options {
        jobs: 1,
        ..Options::default()
    };
    let progress = |_: &super::Progress| {
        if done.fetch_add(1, Ordering::Relaxed) == 3 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let batch = execute(&jobs(), &[1, 2, 3], &options, &stop, &engine, &progress).expect("it runs");
    assert!(batch.interrupted);
    assert_eq!(batch.runs.iter().map(Vec::len).sum::<usize>(), 4);
}

#[test]
fn progress_counts_up_on_many_threads() {
    let options = Options {
        jobs: 8,
        ..Options::default()
    };
    let heard = std::sync::Mutex::new(Vec::new());
    let seeds: Vec<u64> = (0..200).collect();
    let progress = |progress: &super::Progress| {
        heard
            .lock()
            .expect("nobody panics holding it")
            .push(progress.done);
    };
    let stop = AtomicBool::new(false);
    let batch = execute(&jobs(), &seeds, &options, &stop, &engine, &progress).expect("it runs");
    let heard = heard.into_inner().expect("nobody panics holding it");
    assert_eq!(heard, (1..=batch.computed).collect::<Vec<_>>());
}

const USERS: &str = r#"
[network]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "2 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "300 packets" } }

[[traffic]]
name = "users"
kind = "closed-loop"
count = 3
size = { dist = "lognormal", mean = "20 kB", sigma = 1 }
think = { dist = "exponential", mean = "200 ms" }
demand = "as baseline"

[[traffic]]
kind = "bulk"

[[variant]]
name = "fair"
set = { "network.bottleneck.queue.kind" = "fq-codel" }

[[variant]]
name = "as much as they like"
set = { "network.bottleneck.queue.kind" = "fq-codel", "traffic.users.demand" = "free" }

[run]
duration = "8 s"
"#;

#[test]
fn users_of_a_variant_ask_for_what_they_asked_for_in_the_baseline() {
    let scenario = crate::scenario::Scenario::parse("users.toml", USERS).expect("it is a scenario");
    let choice = crate::compare::Choice::default();
    let plan = crate::compare::Plan::compare(scenario, &choice).expect("it resolves");
    let jobs = plan.jobs();
    let wants: Vec<bool> = jobs.iter().map(|job| job.demand.is_some()).collect();
    assert_eq!(wants, [false, true, false]);
    let folder = folder("demand");
    let options = Options {
        jobs: 2,
        store: Some(Store::open(&folder).expect("it can be made")),
        fresh: false,
    };
    let stop = AtomicBool::new(false);
    let seeds = [1, 2];
    let go =
        |jobs: &[Job]| execute(jobs, &seeds, &options, &stop, &super::simulate, &|_| ()).expect("it runs");
    // Alone, as `run --variant` does it: the baseline is run for its demand, and reported nowhere.
    let alone = go(&jobs[1..2]);
    assert_eq!((alone.runs.len(), alone.computed, alone.reused), (1, 2, 0));
    let all = go(&jobs);
    assert_eq!((all.computed, all.reused), (2, 4), "only the free variant is new");
    for seed in 0..seeds.len() {
        let asked = |job: usize| &all.runs[job][seed].output.groups[0].requests;
        let sizes = |job: usize| {
            let flows = &all.runs[job][seed].output.groups[0].flows;
            let mut sizes: Vec<u64> = flows.iter().map(|flow| flow.bytes.0).collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(asked(1), asked(0));
        assert_eq!(sizes(1), sizes(0));
        assert!(
            asked(2).iter().sum::<u32>() > asked(0).iter().sum(),
            "they are served sooner"
        );
        assert_eq!(
            alone.runs[0][seed].output.groups[0].flows,
            all.runs[1][seed].output.groups[0].flows
        );
    }
    std::fs::remove_dir_all(&folder).expect("it was made here");
}

/// A drop-tail queue under a name from outside that fails when the hundredth packet comes.
struct Failing(DropTail, u32);

impl QueueDiscipline for Failing {
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        self.1 += 1;
        if self.1 == 100 {
            plugins::fail("the hundredth packet came".into());
            plugins::fail("a later reason".into());
        }
        self.0.enqueue(now, packet, context);
    }

    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        self.0.dequeue(now, context)
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
}

fn named(source: &'static str, last: u32) -> Plugins {
    let build = move |values: &Values, around: &LinkContext| {
        AnyQueue::Custom(Box::new(Failing(DropTail::new(values, around), last)))
    };
    let queue = Plugin {
        entry: Entry::new("foreign", DropTail::PARAMETERS, source),
        build: Box::leak(Box::new(build)),
    };
    let other = Plugin {
        entry: Entry::new("other", DropTail::PARAMETERS, source),
        ..queue
    };
    Plugins {
        queues: Vec::leak(vec![other, queue]),
        ..Plugins::NONE
    }
}

#[test]
fn a_mechanism_that_fails_ends_its_run_with_its_reason_and_no_other() {
    let mut spec = jobs().swap_remove(0).spec;
    for link in &mut spec.links {
        (link.queue, link.queue_values) = ("foreign", Values::defaults(DropTail::PARAMETERS));
    }
    spec.plugins = named("//! Fails.", 0);
    let stop = AtomicBool::new(false);
    let failed = observe(&spec, &stop, &mut ()).map(|_| ());
    assert_eq!(failed, Err(String::from("the hundredth packet came")));
    spec.plugins = named("//! Works.", 100);
    assert!(observe(&spec, &stop, &mut ()).is_ok_and(|output| !output.interrupted));
}

#[test]
fn the_identity_of_a_run_changes_with_the_plugins_that_it_names_only() {
    let mut spec = jobs().swap_remove(0).spec;
    let plain = crate::identity::of(&spec);
    spec.plugins = named("//! Mine.", 0);
    assert_eq!(crate::identity::of(&spec), plain);
    spec.links[0].queue = "foreign";
    let first = crate::identity::of(&spec);
    spec.plugins = named("//! Mine, better.", 0);
    assert_ne!(crate::identity::of(&spec), first);
}

/// What can be marked is not dropped (RFC 3168 5), so flows with ECN do not pay with losses for what CoDel owes to flows without it: three of each get about the same.
#[test]
fn beside_flows_without_ecn_those_with_it_are_not_dropped_by_sp_h() {
    let text = r#"
        [network]
        kind = "dumbbell"
        pairs = 8
        access = { rate = "100 Mbit/s", delay = "1 ms", jitter = { dist = "uniform", min = "0 ms", max = "0.2 ms" } }
        bottleneck = { rate = "10 Mbit/s", delay = "20 ms", queue = { kind = "sp-h", aqm = "codel", limit = "400 packets" } }
        [run]
        duration = "60 s"
        [tcp]
        profile = "linux"
        super_packets = "burst"
        [[traffic]]
        name = "plain"
        kind = "bulk"
        count = 3
        tcp.ecn = false
        [[traffic]]
        name = "marked"
        kind = "bulk"
        count = 3
        tcp.ecn = true
    "#;
    let scenario = crate::scenario::Scenario::parse("mixed.toml", text).expect("it is correct");
    let resolved = scenario
        .resolve(&crate::scenario::Setting::none())
        .expect("it is correct");
    let mut bytes = [0; 2];
    for seed in 1..=3 {
        let output = super::simulate(&resolved.spec(seed), &AtomicBool::new(false)).expect("it runs");
        for (sum, group) in bytes.iter_mut().zip(&output.groups) {
            *sum += group.flows.iter().map(|flow| flow.received.0).sum::<u64>();
        }
    }
    let ratio = bytes[0] as f64 / bytes[1] as f64;
    assert!((0.8..=1.25).contains(&ratio), "{ratio}: {bytes:?}");
}
