//! Scenario files: one TOML file, what it extends, its variants, and what it resolves to.
//!
//! Read in this order: [`Scenario`]; `keys` (the list of all keys, from which parser, JSON schema and reference are made),
//! `document` (the tree with places), `read` and `value` (check and read it), `path` (settings), `network`, `link`, `traffic`, `tcp` (what the
//! tables become), `reference` (the generated documents).

mod document;
mod error;
mod keys;
mod link;
mod network;
mod pace;
mod path;
mod quantity;
mod read;
mod reference;
mod resolve;
mod tcp;
#[cfg(test)]
mod tests;
mod traffic;
mod value;

pub use error::{Error, ErrorKind};
pub use path::Setting;
pub use reference::{json_schema, parameter_type, reference};
pub use resolve::{BaseRtt, Resolved, RunSettings};
pub use traffic::Group;

use crate::workload;
use document::{Node, Table, Value};
use error::{Place, Source};
use keys::Kind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The built-in example: a busy home line.
pub const HOME_LINE: &str = include_str!("../../../../examples/home-line.toml");

/// A scenario: one file, with what it extends laid under it.
#[derive(Clone, Debug)]
pub struct Scenario {
    title: String,
    document: Table,
    variants: Vec<Variant>,
}

/// A named setting to compare with the file as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What it changes.
    pub set: Setting,
}

impl Scenario {
    /// Reads the file at `path` and those it extends, and checks the scenario and all of its variants.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn load(path: &Path) -> Result<Scenario, Error> {
        let mut open = Vec::new();
        let document = load_table(path, None, &mut open)?;
        Scenario::checked(
            document,
            path.file_stem()
                .map_or("scenario".into(), |stem| stem.to_string_lossy())
                .as_ref(),
        )
    }

    /// Reads a text that messages call `name`. What it extends and the files it names are looked for in the folder
    /// of `name`.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, Error> {
        let path = Path::new(name);
        let mut open = Vec::new();
        let document = extended(path, name, text, &mut open)?;
        Scenario::checked(
            document,
            path.file_stem()
                .map_or(name.into(), |stem| stem.to_string_lossy())
                .as_ref(),
        )
    }

    /// The home line that `compare` runs without a file.
    ///
    /// # Errors
    /// None in a release: a test reads it.
    pub fn home_line() -> Result<Scenario, Error> {
        Scenario::parse("home-line.toml", HOME_LINE)
    }

    /// What it is called in every output.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What the file compares, in its order.
    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// The run that the file with `set` laid over it describes.
    ///
    /// # Errors
    /// The first mistake, with its place. [`ErrorKind::NoChange`] if `set` is not empty and leaves everything as it is.
    pub fn resolve(&self, set: &Setting) -> Result<Resolved, Error> {
        let plain = || resolve::resolve(&self.document, &self.title);
        if set.is_empty() {
            return plain();
        }
        let mut document = self.document.clone();
        set.apply(&mut document)?;
        let resolved = check_file(&document)
            .and_then(|()| resolve::resolve(&document, &self.title))
            .map_err(|error| set.mentioned_in(error))?;
        if resolved.describes_the_same(&plain()?)
            && let Some((place, path)) = set.place()
        {
            return Err(Error::at(
                &place,
                path,
                "this changes nothing: it is already so in this file",
            )
            .help(&place, "give it another value, or leave it out")
            .of_kind(ErrorKind::NoChange));
        }
        Ok(resolved)
    }

    /// The scenario with `set` laid over it, as a scenario of its own.
    ///
    /// # Errors
    /// As [`Scenario::resolve`].
    pub fn with(&self, set: &Setting) -> Result<Scenario, Error> {
        let mut document = self.document.clone();
        set.apply(&mut document)?;
        Scenario::checked(document, &self.title)
    }

    /// The whole file, everything it extends included.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.document.to_toml())
            .expect("a tree that came from TOML, without its empty values, can be written as TOML")
    }

    fn checked(document: Table, fallback: &str) -> Result<Scenario, Error> {
        check_file(&document)?;
        let mut scenario = Scenario {
            title: document.text("title").unwrap_or(fallback).to_owned(),
            variants: variants(&document)?,
            document,
        };
        scenario.resolve(&Setting::none())?;
        for variant in &scenario.variants {
            scenario.resolve(&variant.set)?;
        }
        scenario.document.entries.retain(|entry| entry.key != "extends");
        Ok(scenario)
    }
}

fn check_file(document: &Table) -> Result<(), Error> {
    let place = document.entries.first().map_or_else(
        || {
            Place::new(
                &Arc::new(Source {
                    name: String::from("scenario"),
                    text: String::new(),
                    folder: PathBuf::new(),
                }),
                0..0,
            )
        },
        |entry| Place::new(&entry.key_place.source, 0..0),
    );
    let node = Node {
        value: Value::Table(document.clone()),
        place,
    };
    read::check(&node, &Kind::Table(keys::FILE), "")
}

fn variants(document: &Table) -> Result<Vec<Variant>, Error> {
    let Some(Value::List(list)) = document.get("variant").map(|node| &node.value) else {
        return Ok(Vec::new());
    };
    let mut variants: Vec<Variant> = Vec::new();
    for node in list {
        let Some(table) = node.as_table() else { continue };
        let name = table.text("name").unwrap_or("").to_owned();
        if variants.iter().any(|variant| variant.name == name) {
            return Err(Error::at(
                &node.place,
                "variant.name",
                format!("two variants are called `{name}`"),
            ));
        }
        let Some(set) = table.entry("set") else { continue };
        let setting = Setting::of_table(set.node.as_table().unwrap_or(&Table::default()));
        if setting.is_empty() {
            return Err(
                Error::at(&set.node.place, "variant.set", "a variant must set something").help(
                    &set.node.place,
                    "for example set = { \"tcp.initial_window\" = 3 }",
                ),
            );
        }
        variants.push(Variant { name, set: setting });
    }
    Ok(variants)
}

/// Reads a file; `from` is where its name stands.
fn load_table(path: &Path, from: Option<&Node>, open: &mut Vec<PathBuf>) -> Result<Table, Error> {
    let shown = path.display().to_string();
    let unreadable = |message: String| match from {
        Some(node) => Error::at(&node.place, "extends", message).of_kind(ErrorKind::Unreadable),
        None => Error::of_file(&shown, message),
    };
    let identity = path
        .canonicalize()
        .map_err(|error| unreadable(format!("cannot read {shown}: {}", workload::reason(&error))))?;
    if open.contains(&identity) {
        let message = format!("{shown} extends itself, directly or by way of others");
        return Err(match from {
            Some(node) => Error::at(&node.place, "extends", message),
            None => Error::of_file(&shown, message),
        });
    }
    let bytes = std::fs::read(path)
        .map_err(|error| unreadable(format!("cannot read {shown}: {}", workload::reason(&error))))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(format!("{shown} is not UTF-8 text")))?;
    open.push(identity);
    let table = extended(path, &shown, &text, open)?;
    open.pop();
    Ok(table)
}

/// Parses `text` and lays it over what it extends.
fn extended(path: &Path, name: &str, text: &str, open: &mut Vec<PathBuf>) -> Result<Table, Error> {
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let over = path::read_text(name, text, folder.clone())?;
    if over.entries.is_empty() {
        return Err(Error::of_file(name, format!("{name} describes nothing"))
            .of_kind(ErrorKind::Invalid)
            .note("a scenario begins with [network] and [[traffic]]".into()));
    }
    let Some(node) = over.get("extends") else {
        return Ok(over);
    };
    let Some(base) = node.as_text() else {
        return Err(Error::at(
            &node.place,
            "extends",
            "the name of a file in quotes is wanted",
        ));
    };
    let mut table = load_table(&folder.join(base), Some(node), open)?;
    table.merge(over);
    Ok(table)
}
