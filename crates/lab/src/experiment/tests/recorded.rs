//! Quick runs against the record that is checked in, and what the record may name.

use super::super::library;
use super::super::record::{Record, Recorded};
use super::super::verdict::Verdict;
use super::super::{Level, Prepared};
use crate::run::{Batch, Options, execute, simulate};
use crate::scenario::ErrorKind;
use fleetfoot_sim::spec::QUIC_BUILT;
use std::sync::atomic::AtomicBool;

/// Simulated experiments that are quick enough to be repeated here; with `FLEETFOOT_LONG` all are.
const SAMPLE: &[&str] = &["sp-fig1", "own-quic-queues"];

/// Closed forms that are not: their analysis runs the simulator for minutes.
const SLOW: &[&str] = &["ft-short"];

#[test]
fn quick_runs_say_what_is_recorded() {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let long = std::env::var_os("FLEETFOOT_LONG").is_some();
    let mut differ = Vec::new();
    for experiment in library::all().unwrap_or_else(|error| panic!("{error}")) {
        if experiment.file.figure.live {
            continue; // real packets never give the same numbers twice
        }
        let closed = experiment.file.figure.closed_form && !SLOW.contains(&experiment.id.as_str());
        if !closed && !SAMPLE.contains(&experiment.id.as_str()) && !long {
            continue;
        }
        let prepared = match Prepared::new(&experiment, Level::Quick) {
            Err(error) if !QUIC_BUILT && error.kind == ErrorKind::NotBuilt => continue,
            other => other.unwrap_or_else(|error| panic!("{error}")),
        };
        let batch = if prepared.jobs().is_empty() {
            Batch::default()
        } else {
            let stop = AtomicBool::new(false);
            execute(
                prepared.jobs(),
                &prepared.seeds,
                &Options::default(),
                &stop,
                &simulate,
                &|_| (),
            )
            .unwrap_or_else(|error| panic!("{error}"))
        };
        let found = prepared.evaluate(&batch, record.full(&experiment.id));
        let found = Recorded::of(&found, prepared.seeds.len() as u32);
        let recorded = record
            .0
            .get(&experiment.id)
            .and_then(|entry| entry.quick.as_ref());
        if recorded != Some(&found) {
            differ.push(format!(
                "{}: recorded {recorded:#?}, found {found:#?}",
                experiment.id
            ));
        }
    }
    assert!(
        differ.is_empty(),
        "`fleetfoot reproduce --quick --record` writes what is found:\n{}",
        differ.join("\n")
    );
}

#[test]
fn the_record_names_only_experiments_of_the_tree() {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    for (id, entry) in &record.0 {
        assert!(library::ids().any(|other| other == id), "{id}");
        // What a quick run says is never more than what the full run says.
        if let (Some(quick), Some(full)) = (&entry.quick, &entry.full) {
            let definite = |verdict| matches!(verdict, Verdict::Reproduced | Verdict::NotReproduced);
            assert!(!definite(quick.verdict) || quick.verdict == full.verdict, "{id}");
        }
    }
    for experiment in library::all().unwrap_or_else(|error| panic!("{error}")) {
        let entry = record.0.get(&experiment.id);
        let recorded = entry.and_then(|entry| match experiment.file.figure.live {
            true => entry.full.as_ref(),
            false => entry.quick.as_ref(),
        });
        assert!(recorded.is_some(), "{} is not recorded", experiment.id);
    }
}
