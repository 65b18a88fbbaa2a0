//! What every entry must have.

use super::{ENTRIES, PAIRS, find};
use crate::run::simulate;
use crate::scenario::{Scenario, Setting};
use std::sync::atomic::AtomicBool;

#[test]
fn every_entry_is_complete_and_its_name_is_its_own() {
    for (index, entry) in ENTRIES.iter().enumerate() {
        for (what, text) in [
            ("turn_on", entry.turn_on),
            ("document", entry.document),
            ("source", entry.source),
            ("evidence", entry.evidence),
        ] {
            assert!(!text.trim().is_empty(), "{} has no {what}", entry.name);
        }
        assert!(!entry.set.is_empty(), "{} sets nothing", entry.name);
        assert!(
            ENTRIES[..index].iter().all(|other| other.name != entry.name),
            "{} is there twice",
            entry.name
        );
        assert!(
            entry
                .name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{}",
            entry.name
        );
    }
}

#[test]
fn pairs_name_entries() {
    for (first, second) in PAIRS {
        assert!(
            find(first).is_some() && find(second).is_some(),
            "{first} + {second}"
        );
    }
}

#[test]
fn every_entry_runs_on_the_home_line_or_says_why_not() {
    let text = include_str!("../../../../examples/home-line.toml")
        .replace("duration = \"20 s\"", "duration = \"3 s\"")
        .replace("warmup = \"3 s\"", "warmup = \"500 ms\"");
    let scenario = Scenario::parse("home-line.toml", &text).expect("it is correct");
    let described = scenario.resolve(&Setting::none()).expect("it is correct");
    let mut ran = 0;
    for entry in ENTRIES {
        let resolved = match entry.apply(&scenario, &described) {
            Ok(resolved) => resolved,
            Err(reason) => {
                assert!(
                    reason == "already so in this scenario" || reason.starts_with("no sender uses"),
                    "{}: {reason}",
                    entry.name
                );
                continue;
            }
        };
        let specs = [&resolved.spec, &described.spec].map(|spec| format!("{spec:?}"));
        assert_ne!(specs[0], specs[1], "{} changes nothing", entry.name);
        let output = simulate(&resolved.spec(1), &AtomicBool::new(false)).expect(entry.name);
        let completed = output.groups[0]
            .flows
            .iter()
            .filter(|flow| flow.completed.is_some());
        assert!(completed.count() > 0, "{}: no page arrived", entry.name);
        ran += 1;
    }
    assert!(ran > ENTRIES.len() / 2, "only {ran} of {} ran", ENTRIES.len());
}
