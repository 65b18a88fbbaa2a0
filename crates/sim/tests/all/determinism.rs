//! The same specification gives the same bytes: twice, and in both modes of the engine.

use crate::common::random_spec;
use fleetfoot_core::link::Loss;
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::tcp::Profile;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::bench::Workload;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{Spec, Traffic};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;

/// Everything but the number of events, which is what the modes differ in.
fn text(spec: &Spec, mode: Mode) -> String {
    let mut output = run(spec, mode, &mut (), |_| ControlFlow::Continue(())).expect("a runnable scenario");
    assert!(output.events > 100, "something happened");
    output.events = 0;
    format!("{output:#?}")
}

fn first_difference(one: &str, other: &str) -> String {
    one.lines()
        .zip(other.lines())
        .enumerate()
        .find(|(_, (one, other))| one != other)
        .map_or_else(String::new, |(line, (one, other))| {
            format!("line {line}: `{one}` against `{other}`")
        })
}

#[test]
fn the_same_run_twice_is_the_same() {
    for seed in 0..30 {
        let spec = random_spec(seed);
        let (one, other) = (text(&spec, Mode::Fast), text(&spec, Mode::Fast));
        assert!(one == other, "seed {seed}: {}", first_difference(&one, &other));
    }
}

#[test]
fn lazy_departures_and_timers_change_nothing() {
    for seed in 0..150 {
        let spec = random_spec(seed);
        let (fast, plain) = (text(&spec, Mode::Fast), text(&spec, Mode::Plain));
        assert!(fast == plain, "seed {seed}: {}", first_difference(&fast, &plain));
    }
}

/// In the fast mode idle connections rest and wake; in the plain one they never do.
#[test]
fn rest_changes_nothing() {
    for (seed, profile) in Profile::ALL.into_iter().enumerate() {
        let duration = Duration::from_secs(90);
        let mut spec = Workload::idle(30).spec(profile, duration);
        spec.seed = seed as u64;
        spec.drain = duration;
        spec.links[0].impairments.loss = Loss::Random(Probability::from_f64(0.03));
        let bytes = Distribution::LogNormal { mu: 8.0, sigma: 2.0 };
        let pause = Distribution::Exponential { mean: 4.0 };
        spec.groups[0].traffic = Traffic::OnOff {
            count: 20,
            burst: bytes.clone(),
            interval: pause.clone(),
        };
        let mut exchanges = spec.groups[0].clone();
        exchanges.name = "exchanges".to_owned();
        exchanges.traffic = Traffic::RequestResponse {
            count: 20,
            request: Distribution::Constant(300.0),
            response: bytes,
            think: pause,
            exchanges: Some(12),
        };
        spec.groups.push(exchanges);
        let (fast, plain) = (text(&spec, Mode::Fast), text(&spec, Mode::Plain));
        assert!(fast == plain, "{profile:?}: {}", first_difference(&fast, &plain));
        assert!(
            fast.matches("completed: Some").count() > 300,
            "bursts and exchanges"
        );
    }
}

#[test]
fn seeds_differ() {
    let spec = random_spec(1);
    let mut other = spec.clone();
    other.seed += 1;
    assert_ne!(text(&spec, Mode::Fast), text(&other, Mode::Fast));
}

#[test]
fn a_break_ends_the_run() {
    let spec = random_spec(3);
    let mut calls = 0;
    let mut long = spec.clone();
    long.duration = Duration::from_secs(1000);
    let output = run(&long, Mode::Fast, &mut (), |_| {
        calls += 1;
        if calls == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .expect("a runnable scenario");
    assert!(output.interrupted);
    assert_eq!((calls, output.events), (2, 2 << 16));
    let whole: RunOutput =
        run(&spec, Mode::Fast, &mut (), |_| ControlFlow::Continue(())).expect("a runnable scenario");
    assert!(!whole.interrupted);
}
