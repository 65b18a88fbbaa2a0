//! Pages of the documents that are made from the code: `docs/profiles.md` and `docs/mechanisms.md`; and the figures in
//! `docs/images` that are drawn from the record of full runs, or from one run.
//!
//! `FLEETFOOT_BLESS=1 cargo test -p fleetfoot-lab --test documents` writes them; without it they are compared.

use fleetfoot_core::cc::AnyController;
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::registry::Entry;
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_lab::experiment::record::Record;
use fleetfoot_lab::experiment::{Evaluated, Level, Prepared, library};
use fleetfoot_lab::mechanisms;
use fleetfoot_lab::report::figures;
use fleetfoot_lab::scenario::PlotKind;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

#[path = "documents/citations.rs"]
mod citations;
#[path = "documents/favourtail.rs"]
mod favourtail;
#[path = "documents/findings.rs"]
mod findings;
#[path = "documents/notes.rs"]
mod notes;
#[path = "documents/reality.rs"]
mod reality;
#[path = "documents/recorded.rs"]
mod recorded;
#[path = "documents/words.rs"]
mod words;

#[test]
fn the_table_of_profiles_is_current() {
    let mut page = String::from(
        "# Profiles\n\n\
         A profile is a complete configuration of a TCP endpoint: `profile = \"linux\"` under `[tcp]`. The table has a row per switch\n\
         and the source of each value below it. A switch under `[tcp]` overrides the profile; what may be written is in the\n\
         [scenario reference](scenario-reference.md), and what is not there is fixed by the profile. The profile `linux` is held\n\
         to recorded transfers of Linux 6.18 (`specs/linux-6.18/`). Generated from `crates/core/src/tcp/config/`.\n\n",
    );
    let _ = writeln!(page, "| switch | {} |", Profile::NAMES.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(Profile::NAMES.len()));
    for switch in Config::SWITCHES {
        let values = Profile::ALL.map(|profile| switch.cell(profile).0);
        let _ = writeln!(page, "| `{}` | {} |", switch.name(), values.join(" | "));
    }
    page.push_str("\n## What each does, and where its values come from\n");
    for switch in Config::SWITCHES {
        let _ = writeln!(page, "\n### {}\n\n{}\n", switch.name(), switch.doc);
        for profile in Profile::ALL {
            let (value, source) = switch.cell(profile);
            let _ = writeln!(page, "- {}: {value} ({source})", profile.name());
        }
    }
    current("profiles.md", &page);
}

#[test]
fn the_pages_of_mechanisms_are_current() {
    let mut page = String::from(
        "# Mechanisms, queue disciplines, congestion controls\n\n\
         What `compare` tries, and how to turn each on outside Fleetfoot; then the page of each queue discipline and congestion\n\
         control, which is the head of its source file. `fleetfoot explain NAME` prints the same. Generated.\n\n",
    );
    for mechanism in mechanisms::ENTRIES {
        let _ = writeln!(page, "## {}\n\n{}\n", mechanism.name, mechanism.document);
        let _ = writeln!(page, "- Source: {}", mechanism.source);
        let _ = writeln!(page, "- Evidence: {}", mechanism.evidence);
        let _ = writeln!(page, "- Turn it on: {}\n", mechanism.turn_on);
    }
    for (kind, entries) in [
        ("Queue discipline", AnyQueue::ENTRIES),
        ("Congestion control", AnyController::ENTRIES),
    ] {
        for entry in entries {
            let _ = writeln!(page, "## {kind} {}\n", entry.name);
            page.push_str(&document(entry));
        }
    }
    current("mechanisms.md", &page);
}

/// Each figure in `docs/images/GROUP` that can be drawn without runs is drawn from the record.
#[test]
fn the_figures_in_the_documents_are_current() {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let mut compared = 0;
    for experiment in library::all().unwrap_or_else(|error| panic!("{error}")) {
        let Some(recorded) = record.full(&experiment.id) else {
            continue;
        };
        for figure in figures::of(&Evaluated::recorded(&experiment, recorded), None) {
            let file = format!("images/{}/{}.svg", experiment.group, figure.name);
            let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
            if std::path::Path::new(&path).exists() {
                current(&file, &figure.standalone());
                compared += 1;
            }
        }
    }
    assert!(
        compared > 0,
        "docs/images has no figure that is drawn from the record"
    );
}

/// Each time series in the documents is drawn from a run that is made again.
#[test]
fn the_time_series_in_the_documents_are_current() {
    let mut compared = 0;
    for experiment in library::all().unwrap_or_else(|error| panic!("{error}")) {
        let plots = &experiment.file.figure.plots;
        if !plots
            .iter()
            .any(|plot| matches!(plot.kind, PlotKind::TimeSeries { .. }))
        {
            continue;
        }
        let prepared = Prepared::new(&experiment, Level::Full).unwrap_or_else(|error| panic!("{error}"));
        for figure in figures::time_series(&prepared) {
            let file = format!("images/{}/{}.svg", experiment.group, figure.name);
            current(&file, &figure.standalone());
            compared += 1;
        }
    }
    assert!(compared > 0, "no experiment draws a time series");
}

fn document(entry: &Entry) -> String {
    let mut text: String = entry.document().map(|line| format!("{line}\n")).collect();
    text.push('\n');
    for parameter in entry.parameters {
        let _ = writeln!(text, "- `{}`: {}", parameter.name, parameter.doc);
    }
    text.push('\n');
    text
}

/// Puts `table` into the page `file` in place of what was recorded there as `name`.
fn put_recorded(page: &mut String, file: &str, name: &str, table: &str) {
    let (begin, end) = (format!("<!-- recorded: {name} -->\n"), "<!-- end -->");
    let from = page
        .find(&begin)
        .unwrap_or_else(|| panic!("{file} has no {begin}"))
        + begin.len();
    let length = page[from..].find(end);
    let to = from + length.unwrap_or_else(|| panic!("{name} does not end in {file}"));
    page.replace_range(from..to, table);
}

/// Reads the page `file`, has `change` put into it what is made from the record, and compares or writes it. One at a time: several tests make parts
/// of the same page.
fn edit(file: &str, change: impl FnOnce(&mut String)) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    change(&mut page);
    current(file, &page);
}

fn current(file: &str, page: &str) {
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("FLEETFOOT_BLESS").is_some() {
        std::fs::write(&path, page).expect("docs can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "{file} is not current: FLEETFOOT_BLESS=1 cargo test -p fleetfoot-lab --test documents"
    );
}
