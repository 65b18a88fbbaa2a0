//! Settings: paths and new values, from a variant, a mechanism or the command line.

use super::document::{self, Entry, Node, Table, Value};
use super::error::{Error, Place, Source, alternatives, nearest};
use super::read::join;
use std::path::PathBuf;
use std::sync::Arc;

/// What to change in a scenario: paths and values, in order.
///
/// Two settings are equal when they change the same things to the same values, wherever they come from.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// Who asks, for messages.
    origin: String,
    assignments: Vec<Assignment>,
}

#[derive(Clone, Debug)]
struct Assignment {
    path: String,
    value: toml::Value,
    /// Who asks for it, for messages; empty: whoever asks for the setting.
    origin: String,
    /// Where path and value stand, if in a file.
    places: Option<(Place, Node)>,
}

impl PartialEq for Setting {
    fn eq(&self, other: &Setting) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Setting {
    /// Changes nothing: the scenario as described.
    pub fn none() -> Setting {
        Setting::default()
    }

    /// An empty setting that messages call `origin`: the name of a mechanism, `--set`.
    pub fn from_origin(origin: impl Into<String>) -> Setting {
        Setting {
            origin: origin.into(),
            assignments: Vec::new(),
        }
    }

    /// Adds `path = value`.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, value: impl Into<toml::Value>) -> Setting {
        self.assignments.push(Assignment {
            path: path.into(),
            value: value.into(),
            origin: self.origin.clone(),
            places: None,
        });
        self
    }

    /// Adds `path=value` as written on a command line. The value is TOML; what is not TOML is text.
    ///
    /// # Errors
    /// There is no `=`.
    pub fn with_argument(self, argument: &str) -> Result<Setting, Error> {
        let Some((path, value)) = argument.split_once('=') else {
            let source = Arc::new(Source {
                name: self.origin.clone(),
                text: argument.to_owned(),
                folder: PathBuf::new(),
                files: Default::default(),
            });
            let place = Place::new(&source, 0..argument.len());
            return Err(Error::at(&place, "", "a setting is PATH=VALUE")
                .help(&place, "for example run.duration=\"10 s\""));
        };
        let value = value.trim();
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"))
            .ok()
            .filter(|table| table.len() == 1)
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        Ok(self.with(path.trim(), parsed))
    }

    /// All of this, then all of `other`.
    #[must_use]
    pub fn and(mut self, other: &Setting) -> Setting {
        if self.origin.is_empty() {
            self.origin.clone_from(&other.origin);
        }
        self.assignments.extend(other.assignments.iter().cloned());
        self
    }

    /// Paths and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &toml::Value)> {
        self.assignments
            .iter()
            .map(|assignment| (assignment.path.as_str(), &assignment.value))
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.assignments.is_empty()
    }

    /// The setting in a variant's `set` table. Unquoted dotted keys are paths as well.
    pub(crate) fn of_table(table: &Table) -> Setting {
        let mut setting = Setting::from_origin("variant");
        setting.collect("", table);
        setting
    }

    fn collect(&mut self, prefix: &str, table: &Table) {
        for Entry { key, key_place, node } in &table.entries {
            let path = join(prefix, key);
            match &node.value {
                Value::Table(inner) if is_dotted(key_place) => self.collect(&path, inner),
                _ => self.assignments.push(Assignment {
                    path,
                    value: node.to_toml(),
                    origin: String::new(),
                    places: Some((key_place.clone(), node.clone())),
                }),
            }
        }
    }

    /// Where the setting begins, for messages about all of it.
    pub(crate) fn place(&self) -> Option<(Place, &str)> {
        let first = self.assignments.first()?;
        Some((first.nodes(&self.origin).0, &first.path))
    }

    /// Every path with its value, for messages about one of them.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&str, Node)> {
        self.assignments
            .iter()
            .map(|assignment| (assignment.path.as_str(), assignment.nodes(&self.origin).1))
    }

    /// The error, with what was set if it stands elsewhere.
    pub(crate) fn mentioned_in(&self, error: Error) -> Error {
        let stands_here = self.assignments.iter().any(|assignment| {
            let (place, _) = assignment.nodes(&self.origin);
            let there = Error::at(&place, "", "");
            there.file == error.file && there.line == error.line
        });
        if stands_here {
            return error;
        }
        let set: Vec<String> = self
            .iter()
            .map(|(path, value)| format!("{path} = {value}"))
            .collect();
        error.note(format!("this comes with {}", set.join(", ")))
    }

    /// Makes the changes.
    pub(crate) fn apply(&self, document: &mut Table) -> Result<(), Error> {
        self.assignments.iter().try_for_each(|assignment| {
            let (place, node) = assignment.nodes(&self.origin);
            assign(document, &assignment.path, &place, node)
        })
    }
}

impl Assignment {
    /// Place of the path and tree of the value; a setting from outside a file gets a text of its own.
    fn nodes(&self, origin: &str) -> (Place, Node) {
        if let Some(places) = &self.places {
            return places.clone();
        }
        let names = [self.origin.as_str(), origin, "setting"];
        let name = names
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        let value = self.value.to_string();
        let source = Arc::new(Source {
            name: name.to_owned(),
            text: format!("{} = {value}", self.path),
            folder: PathBuf::new(),
            files: Default::default(),
        });
        let start = self.path.len() + 3;
        let place = Place::new(&source, start..start + value.len());
        let node = Node::from_toml(&self.value, &place);
        (Place::new(&source, 0..self.path.len()), node)
    }
}

/// Whether the key goes on with a dot: `a.b = 1`, not `a = { b = 1 }`.
fn is_dotted(key_place: &Place) -> bool {
    key_place
        .source
        .text
        .get(key_place.span.end..)
        .is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with('.'))
}

/// The part of a path's place that holds `segment`, which begins `offset` bytes into the path.
fn segment_place(place: &Place, path: &str, offset: usize, segment: &str) -> Place {
    let written = place.source.text.get(place.span.clone()).unwrap_or("");
    match written.find(path) {
        Some(at) => {
            let start = place.span.start + at + offset;
            Place::new(&place.source, start..start + segment.len())
        }
        None => place.clone(),
    }
}

fn assign(document: &mut Table, path: &str, place: &Place, node: Node) -> Result<(), Error> {
    let segments: Vec<&str> = path.split('.').collect();
    if segments.iter().any(|segment| segment.is_empty()) {
        return Err(Error::at(place, path, format!("`{path}` is not a path")).help(
            place,
            "a path is keys joined by dots: network.bottleneck.rate, traffic.NAME.size",
        ));
    }
    if matches!(segments[0], "variant" | "extends" | "figure" | "check" | "plot") {
        return Err(Error::at(place, path, format!("`{}` cannot be set", segments[0])));
    }
    let named = matches!(segments[0], "traffic" | "link" | "node");
    if !named || segments.len() == 1 {
        return assign_below(document, &segments, path, 0, place, node);
    }
    let (which, name) = (segments[0], segments[1]);
    let list_place = segment_place(place, path, 0, which);
    let name_place = segment_place(place, path, which.len() + 1, name);
    if document.get(which).is_none() {
        let empty = Node {
            value: Value::List(Vec::new()),
            place: list_place.clone(),
        };
        document.put(which, list_place.clone(), empty);
    }
    let Some(Value::List(list)) = document.get_mut(which).map(|node| &mut node.value) else {
        return Err(Error::at(
            &list_place,
            path,
            format!("`{which}` is not a list of tables"),
        ));
    };
    let entry = select(list, which, name, &name_place)?;
    if segments.len() == 2 {
        *entry = renamed(node, name, &name_place);
        return Ok(());
    }
    let Value::Table(table) = &mut entry.value else {
        return Err(Error::at(
            &name_place,
            path,
            format!("`{which}.{name}` is not a table"),
        ));
    };
    // The name is kept even where it came from the kind, which may be about to change.
    if table.get("name").is_none() {
        let text = Node {
            value: Value::Text(name.to_owned()),
            place: name_place.clone(),
        };
        table.put("name", name_place, text);
    }
    assign_below(
        table,
        &segments[2..],
        path,
        which.len() + name.len() + 2,
        place,
        node,
    )
}

/// The rest of a path, from `offset` on, below `table`.
fn assign_below(
    mut table: &mut Table,
    segments: &[&str],
    path: &str,
    mut offset: usize,
    place: &Place,
    node: Node,
) -> Result<(), Error> {
    let Some((last, way)) = segments.split_last() else {
        return Ok(());
    };
    for segment in way {
        let at = segment_place(place, path, offset, segment);
        offset += segment.len() + 1;
        if table.get(segment).is_none() {
            table.put(
                segment,
                at.clone(),
                Node {
                    value: Value::Table(Table::default()),
                    place: at.clone(),
                },
            );
        }
        let entry = table
            .get_mut(segment)
            .expect("it was put there if it was missing");
        written_out(entry, segment);
        let shown = shown(entry);
        let Value::Table(inner) = &mut entry.value else {
            return Err(
                Error::at(&at, path, format!("`{segment}` is {shown}, not a table"))
                    .help(&at, "set the whole value to a table instead"),
            );
        };
        table = inner;
    }
    let at = segment_place(place, path, offset, last);
    finish(table, last, at, node);
    Ok(())
}

/// Keys whose table has a short form that is the value of one of its keys.
const SHORT_FORMS: &[(&str, &str)] = &[
    ("relay", "node"),
    ("congestion_control", "kind"),
    ("super_packets", "mode"),
];

/// Makes the table that a short form stands for, so that a path can lead into it.
fn written_out(node: &mut Node, key: &str) {
    let form = SHORT_FORMS.iter().find(|(name, _)| *name == key);
    if let (Some((_, inner)), Some(word)) = (form, node.as_text())
        && !matches!(word, "none" | "off")
    {
        let mut table = Table::default();
        table.put(inner, node.place.clone(), node.clone());
        node.value = Value::Table(table);
    }
}

fn shown(node: &Node) -> String {
    match &node.value {
        Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Flag(_) => node.shown(),
        Value::List(_) => String::from("a list"),
        Value::Table(_) => String::from("a table"),
    }
}

/// Puts the value; another kind drops the keys of the old one.
fn finish(table: &mut Table, key: &str, place: Place, node: Node) {
    if matches!(key, "kind" | "dist")
        && let (Some(old), Some(new)) = (table.text(key), node.as_text())
        && old != new
    {
        table.keep_common_keys(key, new);
    }
    table.put(key, place, node);
}

/// The entry called `name`; a link or node without an entry of its own gets one.
fn select<'a>(
    list: &'a mut Vec<Node>,
    which: &str,
    name: &str,
    place: &Place,
) -> Result<&'a mut Node, Error> {
    if let Some(index) = list.iter().position(|node| node.name() == Some(name)) {
        return Ok(&mut list[index]);
    }
    if which != "traffic" {
        let entry = Node {
            value: Value::Table(Table::default()),
            place: place.clone(),
        };
        list.push(renamed(entry, name, place));
        let last = list.len() - 1;
        return Ok(&mut list[last]);
    }
    let names: Vec<&str> = list.iter().filter_map(Node::name).collect();
    let path = format!("{which}.{name}");
    let mut error = Error::at(place, &path, format!("there is no {which} called `{name}`"));
    if let Some(near) = nearest(name, names.iter().copied()) {
        error = error.help(place, format!("did you mean `{near}`?"));
    }
    Err(error.help(place, format!("this file has {}", alternatives(&names))))
}

/// The table with this name in it.
fn renamed(mut node: Node, name: &str, place: &Place) -> Node {
    if let Value::Table(table) = &mut node.value
        && table.get("name").is_none()
    {
        let name = Node {
            value: Value::Text(name.to_owned()),
            place: place.clone(),
        };
        table.put("name", place.clone(), name);
    }
    node
}

/// Reads a text into a tree.
pub(crate) fn read_text(name: &str, text: &str, folder: PathBuf) -> Result<Table, Error> {
    document::parse(&Arc::new(Source {
        name: name.to_owned(),
        text: text.to_owned(),
        folder,
        files: Default::default(),
    }))
}
