//! Scenario files: one TOML file, what it extends, its variants, and what it resolves to.
//!
//! Read in this order: [`Scenario`]; `keys` (the list of all keys, from which parser, JSON schema and reference are made),
//! `document` (the tree with places), `read` and `value` (check and read it), `path` (settings), `network`, `link`, `traffic`, `tcp` (what the
//! tables become), `reference` (the generated documents).

mod access_tree;
mod distribution;
mod document;
mod endpoint;
mod error;
mod figure;
mod import;
mod interface;
mod keys;
mod link;
mod mtu;
mod needs;
mod network;
mod node;
mod pace;
mod path;
mod place;
mod portable;
mod quantity;
mod quic;
mod raw;
mod read;
mod reader;
mod reference;
mod relay;
mod replay;
mod resolve;
#[cfg(target_os = "linux")]
mod router;
mod schema;
mod site;
mod spreading;
mod tcp;
#[cfg(test)]
mod tests;
mod tfrc;
mod tls;
mod traffic;
mod value;

pub use endpoint::endpoint;
pub use error::{Error, ErrorKind};
pub use figure::{
    Check, Expect, Figure, FigureSource, Plot, PlotKind, Point, Published, Quantity, Relative, Role, Series,
    Shown,
};
pub use import::{ControllerFit, ReplayFit, Verdict};
pub use path::Setting;
pub use place::{LinkInfo, Medium};
pub use portable::{Files, Portable, provide, travelling};
pub use reference::{parameter_type, reference};
pub use resolve::{BaseRtt, Resolved, RunSettings};
#[cfg(target_os = "linux")]
pub use router::{LogFormat, RouterFile, router};
pub use schema::json_schema;
pub use site::{Site, shown};
pub use tcp::{SwitchInfo, switch, switch_names, switches_only_with};
pub use traffic::Group;

use crate::plugins;
use document::{Node, Table, Value};
use error::{Place, Source};
use keys::Kind;
use reader::Reader;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Name of the scenario as it stands, which is the first variant of every comparison.
pub const BASELINE: &str = "as described";

/// A time as scenario files write it: `"2 min"`; `None` if it is none.
pub fn duration(text: &str) -> Option<fleetfoot_core::time::Duration> {
    quantity::duration(text).ok()
}

/// Sets the switch `key` of `config` to `value`, as `key = value` under `[tcp]` would; a word without quotes is text.
///
/// # Errors
/// There is no such switch, or it does not take this value.
pub fn set_switch(config: &mut fleetfoot_core::tcp::Config, key: &str, value: &str) -> Result<(), String> {
    tcp::set(config, key, value).map_err(|error| error.message.into())
}

/// The built-in example: a busy home line.
pub const HOME_LINE: &str = include_str!("../../../../examples/home-line.toml");

/// A scenario: one file, with what it extends laid under it.
#[derive(Clone, Debug)]
pub struct Scenario {
    title: String,
    document: Table,
    /// The document without what no run depends on: resolving a variant must not copy all the others.
    bare: Table,
    /// The run as described, once it is known.
    described: OnceLock<Arc<Resolved>>,
    variants: Vec<Variant>,
    figure: Option<Figure>,
    /// Whether a setting from outside the file was applied.
    changed: bool,
    /// Whether it only describes: it may then have what this program was built without.
    describes: bool,
}

/// How a file is read.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    /// A variant may change nothing.
    changed: bool,
    /// What this program was built without is read as well.
    describes: bool,
}

/// An experiment: a scenario with a figure, or an analysis without runs.
#[derive(Clone, Debug)]
pub struct ExperimentFile {
    /// What it is called.
    pub title: String,
    /// What was published and what is checked.
    pub figure: Figure,
    /// What is run; `None` for a closed form.
    pub scenario: Option<Scenario>,
}

/// Texts of files by path, for files that are part of the program.
pub type Texts = [(&'static str, &'static str)];

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
        let document = Reader::disk().load(path, None)?;
        Scenario::checked(document, &stem(path))
    }

    /// As [`Scenario::load`]; tables that the file lacks are those of `otherwise`.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn load_or(path: &Path, otherwise: &str) -> Result<Scenario, Error> {
        let mut document = Reader::disk().load(path, None)?;
        let rest = path::read_text("what a file lacks", otherwise, PathBuf::new())?;
        let lacks = |entry: &document::Entry| document.get(&entry.key).is_none();
        let lacking: Vec<_> = rest.entries.into_iter().filter(lacks).collect();
        document.entries.extend(lacking);
        Scenario::checked(document, &stem(path))
    }

    /// Reads a text that messages call `name`. What it extends and the files it names are looked for in the folder
    /// of `name`.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, Error> {
        Scenario::parse_in(Path::new(""), name, text)
    }

    /// As [`Scenario::parse`], with the files that it names in `folder`.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse_in(folder: &Path, name: &str, text: &str) -> Result<Scenario, Error> {
        let path = folder.join(name);
        let document = Reader::disk().extended(&path, name, text)?;
        Scenario::checked(document, &stem(&path))
    }

    /// As [`Scenario::parse`], of what [`Scenario::to_toml`] wrote after a setting was applied: a variant may change nothing.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse_changed(name: &str, text: &str) -> Result<Scenario, Error> {
        let path = Path::new(name);
        let document = Reader::disk().extended(path, name, text)?;
        let changed = Reading {
            changed: true,
            ..Reading::default()
        };
        Scenario::read(document, &stem(path), changed)
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

    /// The names of its [`Scenario::variants`].
    pub fn variant_names(&self) -> Vec<String> {
        self.variants.iter().map(|variant| variant.name.clone()).collect()
    }

    /// What a list of names was before it was parted at its commas: names of variants may have some of their own.
    pub fn rejoined(&self, parts: &[String]) -> Vec<String> {
        let mut names = Vec::new();
        let mut at = 0;
        while at < parts.len() {
            let ends = (at + 2..=parts.len()).rev();
            let mut several = ends.map(|end| (end, parts[at..end].join(",")));
            let own = several.find(|(_, name)| self.variants.iter().any(|variant| variant.name == *name));
            let (end, name) = own.unwrap_or_else(|| (at + 1, parts[at].clone()));
            names.push(name);
            at = end;
        }
        names
    }

    /// The files it was read from and those it names: what it extends, traces of links, lists of flows, recorded connections.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect_files(&self.document, &mut files);
        files.sort();
        files.dedup();
        files
    }

    /// What makes it an experiment, if it is one.
    pub fn figure(&self) -> Option<&Figure> {
        self.figure.as_ref()
    }

    /// The run that the file with `set` laid over it describes.
    ///
    /// # Errors
    /// The first mistake, with its place. [`ErrorKind::NoChange`] if `set` is not empty and leaves everything as it is.
    pub fn resolve(&self, set: &Setting) -> Result<Resolved, Error> {
        if set.is_empty() {
            return self.plain().map(|plain| Resolved::clone(&plain));
        }
        let mut document = self.bare.clone();
        set.apply(&mut document)?;
        let resolved = check_file(&document)
            .and_then(|()| self.resolved(&document))
            .map_err(|error| set.mentioned_in(error))?;
        needs::effects_in_run(set, &resolved)?;
        if resolved.describes_the_same(&*self.plain()?)
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

    fn plain(&self) -> Result<Arc<Resolved>, Error> {
        // What a name means may have changed since.
        let known = self
            .described
            .get()
            .filter(|plain| plain.spec.plugins == plugins::installed());
        if let Some(plain) = known {
            return Ok(Arc::clone(plain));
        }
        let plain = Arc::new(self.resolved(&self.bare)?);
        let _ = self.described.set(Arc::clone(&plain));
        Ok(plain)
    }

    fn resolved(&self, document: &Table) -> Result<Resolved, Error> {
        if !self.describes {
            quic::built(document)?;
        }
        resolve::resolve(document, &self.title)
    }

    /// The scenario as one to run: what this program was built without is refused from here on.
    pub(crate) fn to_run(&self) -> Scenario {
        Scenario {
            describes: false,
            described: OnceLock::new(),
            ..self.clone()
        }
    }

    /// The scenario with `set` laid over it, as a scenario of its own. A variant may change nothing there: a point of a
    /// sweep is sometimes what a variant is.
    ///
    /// # Errors
    /// As [`Scenario::resolve`].
    pub fn with(&self, set: &Setting) -> Result<Scenario, Error> {
        let mut document = self.document.clone();
        set.apply(&mut document)?;
        let reading = Reading {
            changed: true,
            describes: self.describes,
        };
        Scenario::read(document, &self.title, reading).map_err(|error| set.mentioned_in(error))
    }

    /// Whether a setting from outside the file was applied, so that a variant may be the file itself.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// The whole file, everything it extends included.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.document.to_toml())
            .expect("a tree that came from TOML, without its empty values, can be written as TOML")
    }

    fn checked(document: Table, fallback: &str) -> Result<Scenario, Error> {
        Scenario::read(document, fallback, Reading::default())
    }

    fn read(document: Table, fallback: &str, reading: Reading) -> Result<Scenario, Error> {
        let document = figure::expand(document)?;
        if let Some(node) = closed_form(&document) {
            return Err(Error::at(
                &node.place,
                "figure.kind",
                "this is a closed form: there is nothing to run",
            )
            .help(&node.place, "`fleetfoot reproduce FILE` computes it"));
        }
        check_file(&document)?;
        if !reading.changed {
            needs::effects_in_file(&document)?;
        }
        let mut scenario = Scenario {
            title: document.text("title").unwrap_or(fallback).to_owned(),
            variants: variants(&document)?,
            bare: bare(&document),
            described: OnceLock::new(),
            document,
            figure: None,
            changed: reading.changed,
            describes: reading.describes,
        };
        let described = scenario.resolve(&Setting::none())?;
        scenario.figure = figure::read(&scenario.document, Some(&described), &scenario.variants)?;
        for variant in &scenario.variants {
            match scenario.resolve(&variant.set) {
                Err(error) if error.kind == ErrorKind::NoChange && reading.changed => {}
                other => drop(other?),
            }
        }
        scenario.document.entries.retain(|entry| entry.key != "extends");
        Ok(scenario)
    }
}

impl ExperimentFile {
    /// Reads the file at `path` and those it extends.
    ///
    /// # Errors
    /// The first mistake, with its place; a scenario without a figure is one.
    pub fn load(path: &Path) -> Result<ExperimentFile, Error> {
        ExperimentFile::read(path, Reader::disk())
    }

    /// Reads the file called `name` among `texts`, where those it extends are too.
    ///
    /// # Errors
    /// As [`ExperimentFile::load`].
    pub fn embedded(name: &str, texts: &'static Texts) -> Result<ExperimentFile, Error> {
        ExperimentFile::read(Path::new(name), Reader::embedded(texts))
    }

    fn read(path: &Path, mut reader: Reader) -> Result<ExperimentFile, Error> {
        let document = reader.load(path, None)?;
        let title = document.text("title").map_or_else(|| stem(path), str::to_owned);
        let none = || {
            Error::of_file(
                &path.display().to_string(),
                format!(
                    "{} is a scenario, not an experiment: it has no [figure]",
                    path.display()
                ),
            )
            .of_kind(ErrorKind::Invalid)
            .note("`fleetfoot compare` and `run` take scenarios".into())
        };
        if closed_form(&document).is_none() {
            let reading = Reading {
                describes: true,
                ..Reading::default()
            };
            let scenario = Scenario::read(document, &title, reading)?;
            let figure = scenario.figure.clone().ok_or_else(none)?;
            return Ok(ExperimentFile {
                title,
                figure,
                scenario: Some(scenario),
            });
        }
        let mut document = figure::expand(document)?;
        document.entries.retain(|entry| entry.key != "extends");
        check_keys(&document, keys::CLOSED_FORM)?;
        Ok(ExperimentFile {
            title,
            figure: figure::read(&document, None, &[])?.ok_or_else(none)?,
            scenario: None,
        })
    }
}

/// Names of files below `table`, and the files in which its keys stand.
fn collect_files(table: &Table, files: &mut Vec<PathBuf>) {
    let tables = |node: &Node, files: &mut Vec<PathBuf>| match &node.value {
        Value::Table(inner) => collect_files(inner, files),
        Value::List(list) => {
            for inner in list.iter().filter_map(Node::as_table) {
                collect_files(inner, files);
            }
        }
        _ => {}
    };
    for entry in &table.entries {
        let source = &entry.key_place.source;
        if files.last().is_none_or(|last| *last != Path::new(&source.name)) {
            files.push(PathBuf::from(&source.name));
        }
        if let (true, Some(name)) = (
            matches!(entry.key.as_str(), "file" | "trace"),
            entry.node.as_text(),
        ) {
            files.push(entry.node.place.source.folder.join(name));
        }
        tables(&entry.node, files);
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(
        || String::from("scenario"),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

/// The document without variants, figure, checks and plots. Where the run names one of the variants, they stay.
fn bare(document: &Table) -> Table {
    let named = document
        .get("run")
        .and_then(Node::as_table)
        .is_some_and(|run| run.get("loss_free").is_some());
    let entries = document.entries.iter();
    let needed = entries.filter(|entry| match entry.key.as_str() {
        "figure" | "check" | "plot" | "extends" => false,
        "variant" => named,
        _ => true,
    });
    Table {
        entries: needed.cloned().collect(),
    }
}

/// Where the document says that it is a closed form.
fn closed_form(document: &Table) -> Option<&Node> {
    let kind = document.get("figure")?.as_table()?.get("kind")?;
    (kind.as_text() == Some("closed-form")).then_some(kind)
}

fn check_file(document: &Table) -> Result<(), Error> {
    check_keys(document, keys::FILE)
}

fn check_keys(document: &Table, keys: &'static [keys::Key]) -> Result<(), Error> {
    let place = document.entries.first().map_or_else(
        || {
            Place::new(
                &Arc::new(Source {
                    name: String::from("scenario"),
                    text: String::new(),
                    folder: PathBuf::new(),
                    files: Default::default(),
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
    read::check(&node, &Kind::Table(keys), "")
}

fn variants(document: &Table) -> Result<Vec<Variant>, Error> {
    let Some(Value::List(list)) = document.get("variant").map(|node| &node.value) else {
        return Ok(Vec::new());
    };
    let mut variants: Vec<Variant> = Vec::new();
    let mut names = HashSet::new();
    for node in list {
        let Some(table) = node.as_table() else { continue };
        let name = table.text("name").unwrap_or("").to_owned();
        if name == BASELINE {
            let place = table.get("name").map_or(&node.place, |name| &name.place);
            return Err(Error::at(
                place,
                "variant.name",
                format!("`{name}` is the name of the file as it stands, which every comparison has"),
            )
            .help(place, "give the variant another name"));
        }
        if !names.insert(name.clone()) {
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
