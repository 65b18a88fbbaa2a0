//! `fleetfoot list`: what there is.

use crate::failure::Failure;
use crate::layout::{width, wrapped};
use crate::output::{Common, print};
use clap::{Args, ValueEnum};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::tcp::Profile;
use fleetfoot_lab::experiment::library;
use fleetfoot_lab::mechanisms::{ENTRIES, Family, Mechanism};
use fleetfoot_lab::plugins;
use std::fmt::Write;
use std::io::IsTerminal;

/// Flags of `list`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only this.
    what: Option<What>,
    /// Print the JSON Schema of scenario files instead.
    #[arg(long)]
    schema: bool,
    /// What is attached to this machine's kernel instead (`fleetfoot attach`).
    #[arg(long, conflicts_with_all = ["what", "schema"])]
    attached: bool,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// What users choose between.
    Mechanisms,
    /// Queue disciplines.
    Queues,
    /// Congestion controls.
    CongestionControls,
    /// Named TCP configurations.
    Profiles,
    /// Published figures and tables.
    Experiments,
    /// Scenarios to start from.
    Examples,
}

/// Scenarios to start from, with their text: every file of the folder `examples`.
pub(crate) const EXAMPLES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    if arguments.attached {
        return crate::attach::list(common);
    }
    if arguments.schema {
        let schema = fleetfoot_lab::scenario::json_schema();
        return print(&format!("{schema:#}\n"));
    }
    if common.json {
        return print(&format!("{:#}\n", json(arguments.what)?));
    }
    let wanted = |what| arguments.what.is_none_or(|only| only == what);
    let mut text = String::new();
    if wanted(What::Mechanisms) {
        for family in Family::ALL {
            let _ = writeln!(text, "mechanisms, {}:", family.name());
            for entry in ENTRIES.iter().filter(|entry| entry.family == family) {
                row(&mut text, entry.name, first_sentence(entry.document));
            }
        }
    }
    if wanted(What::Queues) {
        text.push_str("queues:\n");
        registered(&mut text, &plugins::queues());
    }
    if wanted(What::CongestionControls) {
        text.push_str("congestion controls:\n");
        registered(&mut text, &plugins::controllers());
    }
    if wanted(What::Profiles) {
        text.push_str("profiles:\n");
        for profile in Profile::ALL {
            row(&mut text, profile.name(), profile.document());
        }
    }
    if wanted(What::Experiments) {
        text.push_str("experiments (`fleetfoot reproduce ID` runs one):\n");
        for experiment in library::all()? {
            row(&mut text, &experiment.id, &experiment.file.figure.claim);
        }
    }
    if wanted(What::Examples) {
        text.push_str("examples (`fleetfoot explain NAME` prints the file):\n");
        for (name, file) in EXAMPLES {
            row(&mut text, name, title(file));
        }
    }
    print(&text)
}

/// Title of an example.
pub(crate) fn title(file: &str) -> &str {
    file.lines()
        .find_map(|line| line.strip_prefix("title = "))
        .unwrap_or("")
        .trim_matches('"')
}

fn registered(text: &mut String, entries: &[&Entry]) {
    for entry in entries {
        let document: Vec<&str> = entry.document().take_while(|line| !line.is_empty()).collect();
        row(text, entry.name, first_sentence(&document.join(" ")));
    }
}

/// A name and what it is: on a terminal in its width, elsewhere on one line.
fn row(text: &mut String, name: &str, what: &str) {
    let what = what.trim_end_matches('.');
    if !std::io::stdout().is_terminal() {
        let _ = writeln!(text, "  {name:24} {what}");
        return;
    }
    let what = wrapped(what, width(), "                           ");
    let _ = writeln!(text, "  {name:24} {}", what.trim_start());
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

fn json(what: Option<What>) -> Result<serde_json::Value, Failure> {
    let wanted = |kind| what.is_none_or(|only| only == kind);
    let mut document = serde_json::Map::new();
    document.insert(String::from("schema"), fleetfoot_lab::result::SCHEMA.into());
    let mut add = |key: &str, list: Vec<serde_json::Value>| {
        document.insert(key.to_owned(), list.into());
    };
    if wanted(What::Mechanisms) {
        let entries = ENTRIES.iter().map(Mechanism::to_json);
        add("mechanisms", entries.collect());
    }
    let names = |entries: Vec<&Entry>| entries.iter().map(|entry| entry.name.into()).collect();
    if wanted(What::Queues) {
        add("queues", names(plugins::queues()));
    }
    if wanted(What::CongestionControls) {
        add("congestion_controls", names(plugins::controllers()));
    }
    if wanted(What::Profiles) {
        add("profiles", Profile::NAMES.map(Into::into).to_vec());
    }
    if wanted(What::Experiments) {
        let entries = library::all()?.into_iter().map(|experiment| {
            serde_json::json!({ "id": experiment.id, "group": experiment.group, "claim": experiment.file.figure.claim })
        });
        add("experiments", entries.collect());
    }
    if wanted(What::Examples) {
        add(
            "examples",
            EXAMPLES.iter().map(|(name, _)| (*name).into()).collect(),
        );
    }
    Ok(document.into())
}
