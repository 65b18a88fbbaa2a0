//! A policy outside against the same algorithm inside.

use super::{Decision, Each, Seen, Steered};
use crate::run::{digest, observe};
use crate::scenario::{Scenario, Setting};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::output::RunOutput;
use std::sync::atomic::AtomicBool;

const LINE: &str = r#"
title = "One flow"
[network]
kind = "dumbbell"
pairs = 2
access = { rate = "1 Gbit/s", delay = "1 ms" }
bottleneck = { rate = "12 Mbit/s", delay = "18 ms", queue = { kind = "drop-tail", limit = "40 packets" } }
[tcp]
profile = "linux"
congestion_control = "reno"
[[traffic]]
name = "flow"
kind = "bulk"
[run]
duration = "60 s"
warmup = "10 s"
"#;

fn resolved(text: &str) -> crate::scenario::Resolved {
    let scenario = Scenario::parse("line.toml", text).expect("it is well formed");
    scenario.resolve(&Setting::none()).expect("it resolves")
}

fn of_window(bytes: u64) -> Decision {
    Decision {
        window: Some(Bytes(bytes)),
        ..Decision::NONE
    }
}

/// NewReno as a policy: slow start, one segment per window, half of the window at a loss.
struct Aimd {
    window: u64,
    ssthresh: u64,
    acked: u64,
}

impl Aimd {
    fn decide(&mut self, seen: &Seen) -> Decision {
        let mss = seen.mss_bytes;
        if seen.timeouts > 0 {
            self.ssthresh = (seen.flight_size_bytes / 2).max(2 * mss);
            (self.window, self.acked) = (mss, 0);
        } else if seen.recoveries > 0 {
            self.ssthresh = (self.window / 2 / mss * mss).max(2 * mss);
            (self.window, self.acked) = (self.ssthresh, 0);
        } else if !seen.recovering && seen.window_limited {
            let mut acked = seen.acked_bytes;
            if self.window < self.ssthresh {
                let step = acked.min(self.ssthresh - self.window);
                self.window += step;
                acked -= step;
            }
            self.acked += acked;
            if self.acked >= self.window {
                self.acked -= self.window;
                self.window += mss;
            }
        }
        of_window(self.window)
    }
}

fn steered(text: &str) -> (RunOutput, u64) {
    let mut run = Steered::new(&resolved(text), "flow", 1, Each::Ack, false).expect("it can be steered");
    let mut seen = run.step(Decision::NONE).expect("nothing fails");
    let mut policy = Aimd {
        window: seen.window_bytes,
        ssthresh: u64::MAX,
        acked: 0,
    };
    let mut decisions = 0;
    while !run.has_ended() {
        let decision = policy.decide(&seen);
        decisions += 1;
        seen = run.step(decision).expect("nothing fails");
    }
    (run.output().expect("it is over"), decisions)
}

/// Goodput in bytes and mean wait in nanoseconds at the bottleneck.
fn measured(output: &RunOutput, text: &str) -> [f64; 2] {
    let spec = resolved(text).spec;
    let at = |link: &fleetfoot_sim::spec::LinkSpec| link.name == "bottleneck" && link.forward;
    let index = spec.links.iter().position(at).expect("a dumbbell has one");
    [
        output.groups[0].goodput_bytes.get() as f64,
        output.links[index].queue_delay.mean().expect("packets passed"),
    ]
}

#[test]
fn aimd_from_outside_has_the_goodput_and_the_queue_of_reno() {
    let (output, decisions) = steered(LINE);
    assert!(decisions > 10_000, "{decisions}");
    let spec = resolved(LINE).spec(1);
    let reno = observe(&spec, &AtomicBool::new(false), &mut ()).expect("it runs");
    let (own, inside) = (measured(&output, LINE), measured(&reno, LINE));
    for (own, inside) in own.into_iter().zip(inside) {
        assert!((own / inside - 1.0).abs() < 0.02, "{own} {inside}");
    }
}

#[test]
fn the_same_decisions_give_the_same_run() {
    let (first, second) = (steered(LINE).0, steered(LINE).0);
    assert_eq!(digest(&first), digest(&second));
    assert_eq!(first.events, second.events);
}

#[test]
fn a_run_does_not_depend_on_how_often_it_stops() {
    let played = |each| {
        let mut run = Steered::new(&resolved(LINE), "flow", 1, each, false).expect("it can be steered");
        let mut stops = 0;
        while !run.has_ended() {
            run.step(Decision::NONE).expect("nothing fails");
            stops += 1;
        }
        (run.output().expect("it is over"), stops)
    };
    let ((often, many), (seldom, few)) = (played(Each::Ack), played(Each::RoundTrip));
    assert!(many > 4 * few, "{many} {few}");
    assert_eq!(digest(&often), digest(&seldom));
}

#[test]
fn a_decision_each_round_trip_comes_once_each_round_trip() {
    let mut run =
        Steered::new(&resolved(LINE), "flow", 1, Each::RoundTrip, false).expect("it can be steered");
    let mut seen = run.step(Decision::NONE).expect("nothing fails");
    let mut rounds = 0;
    while !run.has_ended() {
        seen = run.step(of_window(20 * seen.mss_bytes)).expect("nothing fails");
        rounds += 1;
        if rounds > 3 && !run.has_ended() {
            assert!((0.035..0.06).contains(&seen.elapsed_s), "{seen:?}");
            assert_eq!((seen.window_bytes, seen.lost_bytes), (20 * seen.mss_bytes, 0));
        }
    }
    // 20 segments in 40 ms are half of the line: nothing waits, and a minute has 1,500 round trips of 40 ms.
    assert!((1_000..1_600).contains(&rounds), "{rounds}");
}

#[test]
fn a_rate_is_kept() {
    let mut run = Steered::new(&resolved(LINE), "flow", 1, Each::RoundTrip, true).expect("it can be steered");
    let mut seen = run.step(Decision::NONE).expect("nothing fails");
    run.step(of_window(200 * seen.mss_bytes)).expect("nothing fails");
    while !run.has_ended() {
        let rate = Some(Rate(6_000_000));
        seen = run
            .step(Decision {
                rate,
                ..Decision::NONE
            })
            .expect("nothing fails");
    }
    assert_eq!(seen.pacing_rate_bps, 6_000_000);
    let output = run.output().expect("it is over");
    let goodput = output.groups[0].goodput_bytes.get() as f64 * 8.0 / 50.0;
    // Pacing counts payload.
    assert!((goodput / 6e6 - 1.0).abs() < 0.001, "{goodput}");
}

#[test]
fn what_cannot_be_steered_is_refused() {
    let refused = |text: &str, group: &str| match Steered::new(&resolved(text), group, 1, Each::Ack, false) {
        Ok(_) => String::from("taken"),
        Err(reason) => reason,
    };
    assert!(refused(LINE, "none").contains("the scenario has `flow`"));
    let two = LINE.replace("kind = \"bulk\"", "kind = \"bulk\"\ncount = 2");
    assert!(refused(&two, "flow").contains("not one connection of kind `bulk`"));
}
