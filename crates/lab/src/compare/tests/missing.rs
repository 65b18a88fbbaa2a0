//! What nobody can have where it would act is no answer.

use super::compare;
use crate::compare::search::{Control, Wish, recommend};
use crate::compare::study::Study;
use crate::compare::{Choice, Plan, build};
use crate::result::Comparison;
use crate::run::{Options, execute};
use crate::scenario::Scenario;
use crate::testing::{TEXT, engine};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use std::sync::atomic::AtomicBool;

/// The line is a radio, in whose driver there are no queues but those of FQ-CoDel.
fn radio(variants: &str) -> Scenario {
    let text = TEXT.replace(
        "delay = \"10 ms\"",
        "delay = \"10 ms\", medium = \"wifi\", label = \"the radio\"",
    );
    let (before, rest) = text.split_once("[[variant]]").expect("there are variants");
    let (_, run) = rest.split_once("[run]").expect("there are runs");
    Scenario::parse("test.toml", &format!("{before}{variants}\n[run]{run}")).expect("it is correct")
}

const SFQ: &str = "[[variant]]\nname = \"sfq\"\nset = { \"network.bottleneck.queue.kind\" = \"sfq\" }\n";
const BETTER: &str = "[[variant]]\nname = \"better\"\nset = { \"tcp.initial_window\" = 20 }\n";

/// Made-up results in which transfers behind sfq take 0.3 of their time.
fn with_sfq(spec: &Spec, stop: &AtomicBool) -> Result<RunOutput, String> {
    let mut output = engine(spec, stop)?;
    if spec.links.iter().any(|link| link.queue == "sfq") {
        for flow in output.groups.iter_mut().flat_map(|group| &mut group.flows) {
            let times = |end: Instant| {
                flow.start + Duration::from_secs_f64(0.3 * end.since(flow.start).as_secs_f64())
            };
            flow.completed = flow.completed.map(times);
            flow.acked = flow.acked.map(times);
        }
    }
    Ok(output)
}

fn compared(scenario: Scenario) -> Comparison {
    let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
    let (options, never) = (Options::default(), AtomicBool::new(false));
    let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &with_sfq, &|_| ());
    build(&plan, &batch.expect("it runs"), "")
}

#[test]
fn what_can_be_had_is_recommended_and_what_would_be_better_is_named() {
    let document = compared(radio(&format!("{SFQ}{BETTER}"))).document;
    let tiers: Vec<Option<u64>> = document.variants[1..]
        .iter()
        .map(|variant| variant.versus.as_ref().and_then(|versus| versus.tier))
        .collect();
    assert_eq!(tiers, [Some(1), Some(2)], "the table is of what was simulated");
    let recommended = document.recommended.expect("better is a win");
    assert_eq!((recommended.variant.as_str(), recommended.tier), ("better", 2));
    assert!(recommended.equals.is_empty());
    for part in [
        "Try better on the servers: the times of pages are 30 % shorter",
        " What saves more, less its harm, cannot be had at the radio, down, 10 Mbit/s: sfq saves 70 %, and nobody is harmed.",
    ] {
        assert!(document.answer.contains(part), "{part}: {}", document.answer);
    }
    let remarks = &document.variants[1]
        .versus
        .as_ref()
        .expect("it was compared")
        .remarks;
    assert_eq!(
        remarks,
        &["cannot be had at the radio, down, 10 Mbit/s; the nearest there is fq-codel"]
    );
}

#[test]
fn where_nothing_that_can_be_had_is_a_win_the_answer_begins_with_that() {
    let document = compared(radio(SFQ)).document;
    assert!(
        document
            .answer
            .starts_with("Nothing that can be had here wins more than it harms; the best would be sfq at the radio, down, 10 Mbit/s and at the radio, up, 10 Mbit/s: "),
        "{}",
        document.answer
    );
    let end = "sfq cannot be had at the radio, down, 10 Mbit/s: the nearest there is fq-codel; fq-codel was not compared.";
    assert!(document.answer.ends_with(end), "{}", document.answer);
    // What can be had and saves nothing is no better.
    let with_other = compare(radio(SFQ), 1).document;
    assert_eq!(with_other.recommended, None, "nothing differs there");
}

#[test]
fn a_search_tries_only_what_can_be_had_there() {
    let wish = Wish {
        control: Control::Router,
        only_linux: true,
    };
    let choice = Choice {
        search: Some(wish),
        ..Choice::default()
    };
    let plan = Plan::baseline(radio(""), &choice).expect("it resolves");
    let (options, never) = (Options::default(), AtomicBool::new(false));
    let study: Study = recommend(&plan, wish, "", &mut |_, jobs, seeds| {
        execute(jobs, seeds, &options, &never, &with_sfq, &|_| ())
    })
    .expect("it runs");
    let tried: Vec<&str> = study.plan.variants[1..]
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    assert!(tried.iter().all(|name| name.starts_with("fq-codel")), "{tried:?}");
    let left_out = &study.comparison.inapplicable;
    let sfq = left_out
        .iter()
        .find(|one| one.name == "sfq")
        .expect("it is named");
    assert!(
        sfq.reason.starts_with("cannot be had at the radio"),
        "{}",
        sfq.reason
    );
}
