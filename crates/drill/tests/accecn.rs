//! Linux's own scripts for Accurate ECN, where they are: every one passes in virtual time that is not listed with a reason in
//! `specs/packetdrill-accecn.toml`, which also says what a kernel that was there made of each.

use fleetfoot_core::tcp::Profile;
use fleetfoot_drill::Verdict;
use fleetfoot_drill::folder::{Options, Stack, find, play_all};
use fleetfoot_lab::scenario::set_switch;
use std::path::{Path, PathBuf};

/// Where the scripts are; absent on most machines.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("FLEETFOOT_PACKETDRILL_ACCECN").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/packetdrill-accecn"),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    println!("40 scripts skipped: {} is not there", folder.display());
    None
}

#[test]
fn the_scripts_for_accurate_ecn_pass_unless_they_are_listed() {
    let listed = include_str!("../../../specs/packetdrill-accecn.toml");
    let listed: toml::Table = listed.parse().expect("specs/packetdrill-accecn.toml is TOML");
    let reasons = listed["not_passing"].as_table().expect("a table of reasons");
    let count = |key: &str| listed[key].as_integer().expect("a count");
    let (of, floor) = (count("of"), count("must_pass"));
    assert_eq!(
        of - floor,
        reasons.len() as i64,
        "a reason for each that does not pass"
    );
    let Some(folder) = folder() else { return };
    let items = find(&[folder]).expect("the folder can be read");
    assert_eq!(items.len() as i64, of, "another collection than the one listed");
    let options = Options::new(Stack::Ours(Profile::Linux), set_switch);
    let outcomes = play_all(&items, &options, |_| {}).expect("our stack needs nothing of the machine");
    let (passed, failed): (Vec<_>, Vec<_>) = outcomes
        .iter()
        .partition(|outcome| outcome.played.verdict == Verdict::Pass);
    let late: Vec<_> = passed
        .iter()
        .filter(|outcome| reasons.contains_key(&outcome.item.file))
        .map(|outcome| &outcome.item.file)
        .collect();
    assert!(
        late.is_empty(),
        "specs/packetdrill-accecn.toml is out of date: {late:?} pass"
    );
    let surprises: Vec<_> = failed
        .iter()
        .filter(|outcome| !reasons.contains_key(&outcome.item.file))
        .map(|outcome| {
            let line = outcome.played.line.unwrap_or(0);
            format!("{}:{line}: {}", outcome.item.file, outcome.played.reason)
        })
        .collect();
    assert!(surprises.is_empty(), "{surprises:#?}");
    println!("{} of {of} scripts for Accurate ECN pass", passed.len());
}
