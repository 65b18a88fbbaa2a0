//! The ranking on numbers made by hand.

use super::{Made, Studied, Study};
use crate::live::{Metric, Run};
use crate::result::{Comparison, LinkInfo, LiveVariant};

fn study(metric: &str, more_is_better: bool) -> Study {
    Study {
        scenario: String::from("by hand"),
        command: String::from("true"),
        far: None,
        metric: (Metric::parse(metric).expect("it is one"), metric.to_owned()),
        more_is_better,
        kernel: String::from("6.18"),
        seed: 1,
        link: String::from("bottleneck"),
    }
}

fn info(direction: &str) -> LinkInfo {
    LinkInfo {
        name: String::from("bottleneck"),
        direction: direction.to_owned(),
        rate: String::from("10 Mbit/s"),
        delay_s: 0.01,
        queue: String::from("drop-tail"),
        parameters: vec![(String::from("limit"), String::from("100 packets"))],
    }
}

/// A variant whose runs took so long; not a number: the run failed.
fn studied(name: &str, values: &[f64]) -> Studied {
    let run = |(number, &value): (u64, &f64)| Made {
        run: Run {
            run: number,
            kept: true,
            wall_s: value,
            value: Some(value).filter(|value| value.is_finite()),
            problem: value.is_nan().then(|| String::from("exit code 7")),
            ..Run::default()
        },
        ..Made::default()
    };
    Studied {
        name: name.to_owned(),
        set: serde_json::Map::new(),
        links: [info("reverse"), info("forward")],
        rates: [Some(10e6); 2],
        sender: Vec::new(),
        runs: (1..).zip(values).map(run).collect(),
    }
}

fn live<'a>(result: &'a Comparison, name: &str) -> &'a LiveVariant {
    let mut variants = result.document.variants.iter();
    let found = variants.find(|variant| variant.name == name);
    found
        .and_then(|variant| variant.live.as_ref())
        .expect("it was measured")
}

/// Rounds differ much, variants within a round little: pairing finds what means alone do not show.
const ROUNDS: [f64; 10] = [1.0, 3.0, 2.0, 5.0, 4.0, 1.5, 2.5, 3.5, 4.5, 2.2];

fn scaled(by: f64, noise: f64) -> Vec<f64> {
    let up = |index: usize| {
        if index.is_multiple_of(2) {
            1.0 + noise
        } else {
            1.0 - noise
        }
    };
    ROUNDS
        .iter()
        .enumerate()
        .map(|(index, round)| round * by * up(index))
        .collect()
}

#[test]
fn the_best_is_first_and_its_equals_share_its_tier() {
    let result = study("wall", false).result(
        &[
            studied("drop-tail", &scaled(1.0, 0.01)),
            studied("fast", &scaled(0.5, 0.02)),
            studied("equal", &scaled(0.501, 0.015)),
            studied("slow", &scaled(1.3, 0.02)),
        ],
        false,
    );
    let place = |name: &str| (live(&result, name).rank, live(&result, name).tier);
    assert_eq!(
        ["fast", "equal", "drop-tail", "slow"].map(place),
        [
            (Some(1), Some(1)),
            (Some(2), Some(1)),
            (Some(3), Some(2)),
            (Some(4), Some(3))
        ]
    );
    let ratio = live(&result, "fast").ratio.expect("it was compared");
    let [low, high] = ratio.ci95.expect("there are ten rounds");
    assert!(ratio.significant && low < ratio.value && ratio.value < high);
    assert!((ratio.value - 0.5).abs() < 0.01 && high < 0.53, "{ratio:?}");
    assert!(live(&result, "drop-tail").ratio.is_none());
    let document = &result.document;
    let recommended = document.recommended.as_ref().expect("it is better");
    assert_eq!(
        (recommended.variant.as_str(), &recommended.equals[..]),
        ("fast", &[String::from("equal")][..])
    );
    assert!(
        document.answer.starts_with("Best: fast with ")
            && document.answer.contains(" (wall time of the command), ")
            && document.answer.contains("less than drop-tail")
            && document.answer.ends_with("Not distinguishable from it: equal."),
        "{}",
        document.answer
    );
    assert!(document.notes.is_empty(), "{:?}", document.notes);
    let versus = document.variants[3].versus.as_ref().expect("it was compared");
    assert!(versus.significant && versus.win.is_some_and(|win| (win + 0.3).abs() < 0.01));
}

#[test]
fn where_nothing_differs_nothing_is_recommended() {
    let result = study("wall", false).result(
        &[
            studied("drop-tail", &scaled(1.0, 0.05)),
            studied("other", &scaled(0.995, -0.05)),
        ],
        false,
    );
    assert_eq!(live(&result, "drop-tail").tier, Some(1));
    assert_eq!(live(&result, "other").tier, Some(1));
    assert!(result.document.recommended.is_none());
    assert!(
        result
            .document
            .answer
            .ends_with("Not distinguishable from it: drop-tail."),
        "{}",
        result.document.answer
    );
}

#[test]
fn of_a_number_more_may_be_better() {
    let result = study("([0-9]+)", true).result(
        &[
            studied("drop-tail", &scaled(1.0, 0.01)),
            studied("more", &scaled(2.0, 0.02)),
        ],
        false,
    );
    assert_eq!(live(&result, "more").rank, Some(1));
    let versus = result.document.variants[1].versus.as_ref();
    let win = versus.and_then(|versus| versus.win).expect("it was compared");
    assert!((win - 0.5).abs() < 0.01, "twice as much: {win}");
    assert!(
        result.document.answer.contains("99.9 %"),
        "{}",
        result.document.answer
    );
}

#[test]
fn numbers_that_never_vary_can_be_distinguished() {
    let result = study("([0-9]+)", false).result(
        &[
            studied("drop-tail", &[4.0; 10]),
            studied("fewer", &[3.0; 10]),
            studied("same", &[4.0; 10]),
        ],
        false,
    );
    let tier = |name| live(&result, name).tier;
    assert_eq!(
        ["fewer", "drop-tail", "same"].map(tier),
        [Some(1), Some(2), Some(2)]
    );
}

#[test]
fn failed_runs_are_reported_and_make_nothing_better() {
    let mut values = scaled(0.5, 0.01);
    values[3] = f64::NAN;
    values[7] = f64::NAN;
    let result = study("wall", false).result(
        &[
            studied("drop-tail", &scaled(1.0, 0.01)),
            studied("breaks", &values),
        ],
        false,
    );
    let breaks = live(&result, "breaks");
    let ratio = breaks.ratio.expect("eight rounds can be compared");
    assert!(
        (ratio.value - 0.5).abs() < 0.01 && !ratio.significant,
        "{ratio:?}"
    );
    assert_eq!((breaks.failed, result.document.variants[1].runs), (2, 8));
    assert_eq!(breaks.value.as_ref().map(|value| value.n), Some(8));
    assert!(result.document.recommended.is_none());
    assert_eq!(
        result.document.notes,
        ["2 of 10 runs of breaks failed and count in nothing: exit code 7."]
    );
    let versus = result.document.variants[1].versus.as_ref();
    assert_eq!(
        versus.map(|versus| versus.remarks.clone()),
        Some(vec![String::from("2 runs failed")])
    );
    let nothing = study("wall", false).result(&[studied("a", &[f64::NAN]), studied("b", &[])], true);
    assert_eq!(nothing.document.answer, "No run counts: nothing can be ranked.");
    assert!(nothing.document.interrupted && live(&nothing, "b").tier.is_none());
}

#[test]
fn one_round_in_common_shows_nothing() {
    let n = f64::NAN;
    let result = study("wall", false).result(
        &[
            studied("drop-tail", &[2.0, n, 2.1, n]),
            studied("other", &[1.0, 1.1, n, 1.2]),
        ],
        false,
    );
    let ratio = live(&result, "other").ratio.expect("there is one round");
    assert_eq!((ratio.value, ratio.ci95, ratio.significant), (0.5, None, false));
    assert_eq!(live(&result, "drop-tail").tier, Some(1));
}

#[test]
fn a_link_that_was_not_kept_is_said_so() {
    let mut late = studied("late", &scaled(1.0, 0.01));
    late.runs[2].run.kept = false;
    late.runs[2].run.lateness.share_above_1ms = 0.125;
    let result = study("wall", false).result(&[late], false);
    assert_eq!(
        result.document.notes,
        [
            "The described link was not kept in 1 of 10 runs: this machine was late (up to 12.5 % of the packets by more than 1 ms)."
        ]
    );
    assert_eq!(live(&result, "late").not_kept, 1);
}

#[test]
fn a_variant_with_few_good_runs_is_not_the_best() {
    let mut lucky = vec![f64::NAN; 10];
    lucky[3] = 0.1;
    let result = study("wall", false).result(
        &[
            studied("drop-tail", &scaled(1.0, 0.01)),
            studied("lucky", &lucky),
            studied("fast", &scaled(0.5, 0.02)),
        ],
        false,
    );
    let place = |name: &str| (live(&result, name).rank, live(&result, name).tier);
    assert_eq!(
        ["fast", "drop-tail", "lucky"].map(place),
        [(Some(1), Some(1)), (Some(2), Some(2)), (Some(3), None)]
    );
    assert!(
        result.document.answer.starts_with("Best: fast with "),
        "{}",
        result.document.answer
    );
    // Where that is so of all, there is no best.
    let result = study("wall", false).result(&[studied("a", &lucky), studied("b", &lucky)], false);
    assert!(
        result.document.answer.starts_with("Less than half"),
        "{}",
        result.document.answer
    );
}
