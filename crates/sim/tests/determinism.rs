//! The same specification gives the same bytes: twice, and in both modes of the engine.

mod common;

use common::random_spec;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
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
    long.duration = fleetfoot_core::time::Duration::from_secs(1000);
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
