//! Scenarios that travel to other processes and machines: their text with everything it extends, and the files it names.

use super::document::{Node, Table, Value};
use super::reader::Reader;
use super::{Reading, Scenario};
use crate::input;
use crate::scenario::Error;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;

/// A scenario as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Portable {
    title: String,
    text: String,
    /// Whether a setting from outside the file was applied.
    changed: bool,
}

/// Files that travel, by the name that stands in the text.
pub type Files = Vec<(String, Vec<u8>)>;

impl Scenario {
    /// The scenario as it travels. The files that it names are added to `files`, and stand in the text under names that follow
    /// from their content.
    pub fn portable(&self, files: &mut Files) -> Portable {
        let mut document = self.document.clone();
        rename(&mut document, files);
        let text = toml::to_string(&document.to_toml())
            .expect("a tree that came from TOML, without its empty values, can be written as TOML");
        Portable {
            title: self.title.clone(),
            text,
            changed: self.changed,
        }
    }

    /// What every run of it follows from: the text without title, seeds, figure and those variants that are not `wanted`. Files
    /// stand in it by their content.
    pub fn essence(&self, wanted: &[String]) -> String {
        let mut document = self.bare.clone();
        document.entries.retain(|entry| entry.key != "title");
        if let Some(Value::Table(run)) = document.get_mut("run").map(|node| &mut node.value) {
            run.entries
                .retain(|entry| !matches!(entry.key.as_str(), "seed" | "seeds"));
        }
        let variants = match self.document.get("variant").map(|node| &node.value) {
            Some(Value::List(list)) => list.as_slice(),
            _ => &[],
        };
        let wanted = variants.iter().filter(|node| {
            node.name()
                .is_some_and(|name| wanted.iter().any(|one| one == name))
        });
        let mut text = String::new();
        for node in wanted {
            let mut table = node.as_table().cloned().unwrap_or_default();
            rename(&mut table, &mut Files::new());
            text.push_str(&table.to_toml().to_string());
        }
        rename(&mut document, &mut Files::new());
        format!("{}\n{text}", document.to_toml())
    }
}

impl Portable {
    /// The scenario again. Its `files` must have been provided ([`provide`]).
    ///
    /// # Errors
    /// As [`Scenario::parse`]: none, if it comes from [`Scenario::portable`] of the same version.
    pub fn scenario(&self) -> Result<Scenario, Error> {
        let document = Reader::disk().extended(Path::new("scenario.toml"), "scenario.toml", &self.text)?;
        let reading = Reading {
            changed: self.changed,
            ..Reading::default()
        };
        Scenario::read(document, &self.title, reading)
    }
}

/// Makes files that travelled readable in this process.
pub fn provide(files: &Files) {
    for (name, bytes) in files {
        input::provide(name, bytes);
    }
}

/// Names the files of a table by their content. One that cannot be read keeps its name: whoever resolves the scenario says so.
fn rename(table: &mut Table, files: &mut Files) {
    for entry in &mut table.entries {
        if matches!(entry.key.as_str(), "file" | "trace")
            && let Some(name) = entry.node.as_text()
            && let Some(renamed) = travels(&entry.node.place.source.folder.join(name), files)
        {
            entry.node.value = Value::Text(renamed);
        }
        rename_in(&mut entry.node, files);
    }
}

fn rename_in(node: &mut Node, files: &mut Files) {
    match &mut node.value {
        Value::Table(inner) => rename(inner, files),
        Value::List(list) => {
            for inner in list {
                rename_in(inner, files);
            }
        }
        _ => {}
    }
}

/// A value of a path with its files named by their content.
pub fn travelling(path: &str, value: &toml::Value, files: &mut Files) -> toml::Value {
    let last = path.rsplit('.').next().unwrap_or(path);
    match value {
        toml::Value::String(name) if matches!(last, "file" | "trace") => {
            travels(Path::new(name), files).map_or_else(|| value.clone(), toml::Value::String)
        }
        toml::Value::Table(table) => {
            let entries = table.iter();
            let entries = entries.map(|(key, value)| (key.clone(), travelling(key, value, files)));
            toml::Value::Table(entries.collect())
        }
        toml::Value::Array(list) => {
            let list = list.iter().map(|value| travelling(path, value, files));
            toml::Value::Array(list.collect())
        }
        other => other.clone(),
    }
}

fn travels(path: &Path, files: &mut Files) -> Option<String> {
    let mut bytes = Vec::new();
    input::open(path, input::MOST_FLOWS)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .ok()?;
    let name = input::travelling_name(path, &bytes);
    if files.iter().all(|(known, _)| *known != name) {
        files.push((name.clone(), bytes));
    }
    Some(name)
}
