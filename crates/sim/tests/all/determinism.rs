//! The same specification gives the same bytes: twice, and in both modes of the engine.

use crate::common::random_spec;
use fleetfoot_core::link::Loss;
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::tcp::Profile;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::bench::Workload;
use fleetfoot_sim::observe::Observer;
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
            server_time: Distribution::Constant(0.0),
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

/// An observer to whom everything is reported: then conversations keep their slots until the end of the run.
struct Witness;

impl Observer for Witness {}

/// Where nobody watches, a conversation whose timers lie beyond the end of the run is recorded when its last packet is lost.
#[test]
fn what_can_do_nothing_more_is_recorded_as_at_the_end() {
    for (seed, stop) in [(1, None), (2, Some(Duration::from_millis(900))), (3, None)] {
        let mut spec = Workload::idle(3_000).spec(Profile::Linux, Duration::from_millis(1_500));
        spec.seed = seed;
        spec.drain = Duration::from_millis(500 * (seed - 1));
        spec.links[0].impairments.loss = Loss::Random(Probability::from_f64(0.2));
        let size = Distribution::LogNormal { mu: 8.0, sigma: 1.0 };
        let time = Distribution::Exponential { mean: 0.02 };
        for traffic in [
            Traffic::Bulk { count: 100 },
            Traffic::Transfer {
                size: size.clone(),
                interarrival: time.clone(),
                count: None,
            },
            Traffic::ClosedLoop {
                count: 50,
                size: size.clone(),
                think: time.clone(),
            },
            Traffic::OnOff {
                count: 50,
                burst: size,
                interval: time,
            },
        ] {
            let mut group = spec.groups[0].clone();
            group.name = format!("{traffic:?}");
            group.traffic = traffic;
            group.stop = stop;
            spec.groups.push(group);
        }
        let alone = text(&spec, Mode::Fast);
        let mut output =
            run(&spec, Mode::Fast, &mut Witness, |_| ControlFlow::Continue(())).expect("a runnable scenario");
        output.events = 0;
        let watched = format!("{output:#?}");
        assert!(
            alone == watched,
            "seed {seed}: {}",
            first_difference(&alone, &watched)
        );
        let open = alone.matches("completed: None").count();
        assert!(open > 120, "100 without end, and some are cut off: {open}");
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
