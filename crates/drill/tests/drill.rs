//! The public packetdrill scripts, where they are: every one parses, and every one passes that is not listed with a reason
//! in `specs/packetdrill.toml`.

use fleetfoot_core::tcp::Profile;
use fleetfoot_drill::exactness::{Exactness, Excluded};
use fleetfoot_drill::folder::{Manifest, Options, Outcome, Stack, find, play_all};
use fleetfoot_drill::{Definitions, Verdict, parse};
use fleetfoot_lab::scenario::set_switch;
use std::path::{Path, PathBuf};

/// Where the public scripts are; absent on most machines.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("FLEETFOOT_PACKETDRILL").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/packetdrill"),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    println!("384 public scripts skipped: {} is not there", folder.display());
    None
}

#[test]
fn every_public_script_parses() {
    let Some(folder) = folder() else { return };
    let items = find(&[folder]).expect("the folder can be read");
    let mut mistakes = Vec::new();
    for item in &items {
        let text = std::fs::read(&item.path).expect("a file that was listed can be read");
        if let Err(error) = parse(&text, &Definitions::default()) {
            mistakes.push(format!("{}: {error}", item.file));
        }
    }
    println!("{} public scripts parsed", items.len());
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

#[test]
fn public_scripts_pass_unless_they_are_listed() {
    let Some(folder) = folder() else { return };
    let listed = include_str!("../../../specs/packetdrill.toml");
    let listed: toml::Table = listed.parse().expect("specs/packetdrill.toml is TOML");
    let reasons = listed["not_passing"].as_table().expect("a table of reasons");
    assert!(
        reasons
            .values()
            .all(|reason| reason.as_str().is_some_and(|reason| !reason.is_empty()))
    );
    let floor = listed["must_pass"].as_integer().expect("a count");
    let items = find(std::slice::from_ref(&folder)).expect("the folder can be read");
    let manifest = Manifest::read(&folder).expect("the manifest can be read");
    let options = Options::new(Stack::Ours(Profile::Linux), set_switch);
    let outcomes = play_all(&items, &options, |_| {}).expect("our stack needs nothing of the machine");
    let passed = |outcome: &&Outcome| outcome.played.verdict == Verdict::Pass;
    let must = outcomes
        .iter()
        .filter(|outcome| manifest.must_pass(&outcome.item.file));
    let count = must.filter(passed).count() as i64;
    println!("{count} scripts pass of those that Linux passes");
    for file in reasons.keys() {
        let outcome = outcomes.iter().find(|outcome| outcome.item.file == *file);
        assert!(
            outcome.is_some_and(|outcome| !passed(&outcome)),
            "specs/packetdrill.toml is out of date: {file} is not there, or passes"
        );
    }
    let surprises: Vec<_> = outcomes
        .iter()
        .filter(|outcome| !passed(outcome) && !reasons.contains_key(&outcome.item.file))
        .map(|outcome| format!("{}: {}", outcome.item.file, outcome.played.reason))
        .collect();
    assert!(surprises.is_empty(), "{surprises:#?}");
    assert_eq!(count, floor, "specs/packetdrill.toml is out of date: must_pass");
}

#[test]
fn the_same_script_twice_gives_the_same() {
    let Some(folder) = folder() else { return };
    let items = find(&[folder.join("reassembly-overlapping")]).expect("the folder can be read");
    let options = Options {
        tolerance: Some(0),
        capture: true,
        ..Options::new(Stack::Ours(Profile::Linux), set_switch)
    };
    let played = || -> Vec<_> {
        let outcomes = play_all(&items, &options, |_| {}).expect("our stack needs nothing of the machine");
        outcomes.into_iter().map(|outcome| outcome.played).collect()
    };
    assert!(!items.is_empty());
    assert_eq!(played(), played());
}

#[test]
fn times_that_follow_from_the_constants_are_exact() {
    let Some(folder) = folder() else { return };
    let items = find(&[folder]).expect("the folder can be read");
    let options = Options::new(Stack::Ours(Profile::Linux), set_switch);
    let outcomes = play_all(&items, &options, |_| {}).expect("our stack needs nothing of the machine");
    let listed = Excluded::parse(include_str!("../../../specs/packetdrill-times.toml")).expect("a list");
    let exactness = Exactness::of(&outcomes, &listed);
    print!("{}", exactness.report());
    assert!(
        exactness.stale.is_empty(),
        "they are exact: {:#?}",
        exactness.stale
    );
    let reached: Vec<_> = exactness
        .missed
        .iter()
        .map(|missed| missed.place.as_str())
        .collect();
    for line in listed.lines() {
        assert!(
            reached.contains(&line),
            "{line} is listed, and is not a timed outbound line that is reached"
        );
    }
    let share = exactness.excluded() as f64 / exactness.timed as f64;
    assert!(share <= 0.10, "{share} of the lines are excluded");
    assert!(exactness.percent() >= 95.0, "{} %", exactness.percent());
}
