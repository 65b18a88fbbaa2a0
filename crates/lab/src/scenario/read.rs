//! Checks a tree against the list of keys, and reads single values from it.

use super::document::{Entry, Node, Table, Value};
use super::error::{Error, Place, Source, alternatives, nearest};
use super::keys::{self, Dimension, Key, Kind, KindTable};
use super::value::{
    self, bytes, choice, congestion_control, duration, flag, frequency, integer, limit, line, list, number,
    point, probability, quantity, queue, rate, table, text, unknown_word,
};
use fleetfoot_core::parameter::{self, ParameterKind};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use std::path::PathBuf;
use std::sync::Arc;

/// A table that belongs to a list of keys.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) table: Table,
    /// Where its header stands.
    pub(crate) place: Place,
    pub(crate) path: String,
    keys: Vec<&'static Key>,
}

/// One value of a section, with what the list of keys says of it.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) node: Node,
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Whether it is written, not a default.
    pub(crate) given: bool,
}

impl Section {
    /// The table at `node`, whose keys are `keys`.
    pub(crate) fn open(node: &Node, keys: &'static [Key], path: &str) -> Result<Section, Error> {
        Section::of_keys(node, keys.iter().collect(), path)
    }

    /// The table at `node` and its kind.
    pub(crate) fn open_tagged(
        node: &Node,
        tagged: &'static KindTable,
        path: &str,
    ) -> Result<(&'static str, Section), Error> {
        let variety = variety(node, tagged, path)?;
        let keys = tagged.common.iter().chain(variety.keys).collect();
        Ok((variety.name, Section::of_keys(node, keys, path)?))
    }

    fn of_keys(node: &Node, keys: Vec<&'static Key>, path: &str) -> Result<Section, Error> {
        Ok(Section {
            table: table(node, path)?.clone(),
            place: node.place.clone(),
            path: path.to_owned(),
            keys,
        })
    }

    /// The value of `name`: as written, or its default; `None` if its default is decided elsewhere.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Field>, Error> {
        let Some(key) = self.keys.iter().find(|key| key.name == name) else {
            return Ok(None);
        };
        let path = join(&self.path, name);
        let (node, given) = match (self.table.get(name), key.default) {
            (Some(node), _) => (node.clone(), true),
            (None, keys::Default::Described(_)) => return Ok(None),
            (None, keys::Default::Required) => return Err(missing(&self.place, key, &path)),
            (None, keys::Default::Value(literal)) => (default_node(literal, &self.place), false),
        };
        Ok(Some(Field {
            node,
            path,
            kind: key.kind,
            given,
        }))
    }

    /// As [`Section::find`], for a key that has a value always or without which the caller cannot go on.
    pub(crate) fn need(&self, name: &'static str) -> Result<Field, Error> {
        self.need_named(name)
    }

    /// The field of a name that is not known in advance, which must be there.
    pub(crate) fn need_named(&self, name: &str) -> Result<Field, Error> {
        self.find(name)?.ok_or_else(|| {
            let path = join(&self.path, name);
            Error::at(&self.place, &path, format!("`{name}` is missing"))
        })
    }
}

impl Field {
    pub(crate) fn place(&self) -> &Place {
        &self.node.place
    }

    /// A mistake in this value.
    pub(crate) fn fail(&self, message: impl Into<String>) -> Error {
        Error::at(&self.node.place, &self.path, message)
    }

    /// The first of the forms this value may have that its type fits.
    fn form(&self, fits: impl Fn(&Kind) -> bool) -> Kind {
        self.kind.forms().into_iter().find(fits).unwrap_or(self.kind)
    }

    pub(crate) fn text(&self) -> Result<&str, Error> {
        text(&self.node, &self.path)
    }

    /// The file it names, relative to the file it is written in.
    pub(crate) fn file(&self) -> Result<PathBuf, Error> {
        Ok(self.node.place.source.folder.join(self.text()?))
    }

    pub(crate) fn flag(&self) -> Result<bool, Error> {
        flag(&self.node, &self.path)
    }

    pub(crate) fn integer(&self) -> Result<u64, Error> {
        match self.form(|form| matches!(form, Kind::Integer(..))) {
            Kind::Integer(low, high) => integer(&self.node, &self.path, low, high),
            _ => integer(&self.node, &self.path, 0, u64::MAX),
        }
    }

    pub(crate) fn number(&self) -> Result<f64, Error> {
        match self.kind {
            Kind::Number(low, high) => number(&self.node, &self.path, low, high),
            _ => number(&self.node, &self.path, f64::MIN, f64::MAX),
        }
    }

    pub(crate) fn probability(&self) -> Result<f64, Error> {
        probability(&self.node, &self.path)
    }

    pub(crate) fn duration(&self) -> Result<Duration, Error> {
        match self.kind {
            Kind::Duration(low, high) => duration(&self.node, &self.path, low, high),
            _ => duration(&self.node, &self.path, Duration::ZERO, Duration::MAX),
        }
    }

    pub(crate) fn bytes(&self) -> Result<Bytes, Error> {
        match self.kind {
            Kind::Bytes(low, high) => bytes(&self.node, &self.path, low, high),
            _ => bytes(&self.node, &self.path, 0, u64::MAX),
        }
    }

    pub(crate) fn rate(&self) -> Result<Rate, Error> {
        rate(&self.node, &self.path)
    }

    pub(crate) fn frequency(&self) -> Result<f64, Error> {
        frequency(&self.node, &self.path)
    }

    pub(crate) fn choice(&self) -> Result<&'static str, Error> {
        match self.form(|form| matches!(form, Kind::Choice(_))) {
            Kind::Choice(words) => choice(&self.node, &self.path, words),
            _ => Err(self.fail("a word is wanted")),
        }
    }

    /// The value of a parameter that is written in one of the forms `kinds`.
    pub(crate) fn parameter(&self, kinds: &[ParameterKind]) -> Result<parameter::Value, Error> {
        let forms: Vec<Kind> = kinds.iter().copied().map(Kind::of).collect();
        let kind = kinds[fitting_form(&self.node, &forms).unwrap_or(0)];
        value::parameter_value(&self.node, kind, &self.path)
    }

    /// The elements, each with its own path.
    pub(crate) fn list(&self) -> Result<Vec<Field>, Error> {
        let (Kind::List(element) | Kind::OneOrMore(element)) = self.kind else {
            return Err(self.fail("a list is wanted"));
        };
        let single = !matches!(self.node.value, Value::List(_));
        let nodes = match (&self.node.value, self.kind) {
            (Value::List(nodes), _) => nodes.clone(),
            (_, Kind::OneOrMore(_)) => vec![self.node.clone()],
            _ => list(&self.node, &self.path)?.to_vec(),
        };
        Ok(nodes
            .into_iter()
            .enumerate()
            .map(|(index, node)| Field {
                path: if single {
                    self.path.clone()
                } else {
                    element_path(&self.path, index, &node)
                },
                node,
                kind: *element,
                given: self.given,
            })
            .collect())
    }
}

/// Checks `node` and everything in it.
pub(crate) fn check(node: &Node, kind: &Kind, path: &str) -> Result<(), Error> {
    match *kind {
        Kind::Text => text(node, path).map(drop),
        Kind::Line => line(node, path).map(drop),
        Kind::Name => value::name(node, path).map(drop),
        Kind::Flag => flag(node, path).map(drop),
        Kind::Integer(low, high) => integer(node, path, low, high).map(drop),
        Kind::Number(low, high) => number(node, path, low, high).map(drop),
        Kind::Probability => probability(node, path).map(drop),
        Kind::Duration(low, high) => duration(node, path, low, high).map(drop),
        Kind::Bytes(low, high) => bytes(node, path, low, high).map(drop),
        Kind::Rate => rate(node, path).map(drop),
        Kind::Frequency => frequency(node, path).map(drop),
        Kind::Limit => limit(node, path).map(drop),
        Kind::Choice(words) => choice(node, path, words).map(drop),
        Kind::Quantity(dimension) => quantity(node, path, dimension).map(drop),
        Kind::Point(dimension) => point(node, path, dimension).map(drop),
        Kind::Table(keys) => check_keys(node, &keys.iter().collect::<Vec<_>>(), path),
        Kind::Tagged(tagged) => {
            let variety = variety(node, tagged, path)?;
            let tag = tagged.tag;
            let keys: Vec<&Key> = tagged.common.iter().chain(variety.keys).collect();
            check_table(node, path, &keys, &[tag], Some((tagged, variety.name)))
        }
        Kind::Map(inner) => {
            for entry in &table(node, path)?.entries {
                check(&entry.node, inner, &join(path, &entry.key))?;
            }
            Ok(())
        }
        Kind::List(inner) => check_list(list(node, path)?, inner, path),
        Kind::OneOrMore(inner) => match &node.value {
            Value::List(nodes) => check_list(nodes, inner, path),
            _ => check(node, inner, path),
        },
        Kind::Either(_) | Kind::Forms(_) => {
            let forms = kind.forms();
            match fitting_form(node, &forms) {
                None if matches!(forms[0], Kind::Text) => {
                    Err(value::wrong_type(node, path, &form_names(&forms)))
                }
                index => check(node, &forms[index.unwrap_or(0)], path),
            }
        }
        Kind::Queue => {
            // How much a limit in time is depends on the link, which says so when it is read.
            let any = |_: Duration, _: &Place, _: &str| Ok(Bytes(1 << 20));
            queue(&value::with_limits_in_bytes(node, path, &any)?, path).map(drop)
        }
        Kind::CongestionControl => congestion_control(node, path).map(drop),
        Kind::Distribution(dimension) => match &node.value {
            Value::Table(_) => check(node, &Kind::Tagged(dimension.distributions()), path),
            _ => quantity(node, path, dimension).map(drop),
        },
        Kind::Setting => table(node, path).map(drop),
        Kind::Any => Ok(()),
        Kind::Analysis => value::analysis(node, path).map(drop),
    }
}

impl Dimension {
    /// The distributions of this dimension.
    pub(crate) fn distributions(self) -> &'static KindTable {
        match self {
            Dimension::Bytes => &keys::SIZE_DISTRIBUTION,
            Dimension::Time => &keys::TIME_DISTRIBUTION,
        }
    }
}

/// The index of the form that the type of `node` points to.
fn fitting_form(node: &Node, forms: &[Kind]) -> Option<usize> {
    let fits = |form: &Kind| match (&node.value, form) {
        // Words beside a time: what is none of them is the time.
        (Value::Text(text), Kind::Choice(words))
            if forms.iter().any(|form| matches!(form, Kind::Duration(..))) =>
        {
            words.contains(&text.as_str())
        }
        (Value::Table(_), form) => matches!(form, Kind::Table(_) | Kind::Tagged(_) | Kind::Setting),
        (Value::Text(_), form) => !matches!(
            form,
            Kind::Table(_) | Kind::Tagged(_) | Kind::Integer(..) | Kind::Number(..) | Kind::Flag
        ),
        (Value::Integer(_) | Value::Float(_), form) => {
            matches!(form, Kind::Integer(..) | Kind::Number(..) | Kind::Probability)
        }
        (Value::Flag(_), form) => matches!(form, Kind::Flag),
        (Value::List(_), _) => false,
    };
    forms.iter().position(fits)
}

/// What may be written, in words.
fn form_names(forms: &[Kind]) -> String {
    let name = |form: &Kind| match *form {
        Kind::Integer(..) => String::from("a whole number"),
        Kind::Number(..) => String::from("a number"),
        Kind::Table(keys) => {
            let names: Vec<String> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
            format!("a table of {}", names.join(", "))
        }
        Kind::Setting => String::from("a table of paths and values"),
        _ => String::from("text in quotes"),
    };
    let names: Vec<String> = forms.iter().map(name).collect();
    names.join(" or ")
}

fn check_list(nodes: &[Node], inner: &Kind, path: &str) -> Result<(), Error> {
    for (index, node) in nodes.iter().enumerate() {
        check(node, inner, &element_path(path, index, node))?;
    }
    Ok(())
}

fn check_keys(node: &Node, keys: &[&Key], path: &str) -> Result<(), Error> {
    check_table(node, path, keys, &[], None)
}

fn check_table(
    node: &Node,
    path: &str,
    keys: &[&Key],
    tags: &[&str],
    kind: Option<(&KindTable, &str)>,
) -> Result<(), Error> {
    let table = table(node, path)?;
    for entry in &table.entries {
        if tags.contains(&entry.key.as_str()) {
            continue;
        }
        let Some(key) = keys.iter().find(|key| key.name == entry.key) else {
            let names: Vec<&str> = tags
                .iter()
                .copied()
                .chain(keys.iter().map(|key| key.name))
                .collect();
            // A key of a file that belongs to one of its tables.
            let homes = homes_of(&entry.key, keys, path.is_empty());
            let home = homes.first().copied().filter(|_| path.is_empty());
            let mut error = unknown_key(entry, path, &names, kind, home);
            if !homes.is_empty() && !path.is_empty() {
                let there: Vec<String> = homes
                    .iter()
                    .map(|home| join(&join(path, home), &entry.key))
                    .collect();
                let table = match homes[..] {
                    [home] => format!("the table `{home}`"),
                    _ => "a table".to_owned(),
                };
                error = error.help(
                    &entry.key_place,
                    format!(
                        "`{}` belongs to {table} here: {}",
                        entry.key,
                        alternatives(&there)
                    ),
                );
            }
            return Err(error);
        };
        check(&entry.node, &key.kind, &join(path, key.name))?;
    }
    for key in keys {
        if matches!(key.default, keys::Default::Required) && table.get(key.name).is_none() {
            return Err(missing(&node.place, key, &join(path, key.name)));
        }
    }
    Ok(())
}

/// The tables, among these keys, that have a key of this name; those of several kinds only if `tagged_too`.
fn homes_of(name: &str, keys: &[&Key], tagged_too: bool) -> Vec<&'static str> {
    let has = |own: &[Key]| own.iter().any(|key| key.name == name);
    let homes = keys.iter().filter(|key| match key.kind {
        Kind::Table(own) => has(own),
        Kind::Tagged(tagged) if tagged_too => {
            has(tagged.common) || tagged.kinds.iter().any(|kind| has(kind.keys))
        }
        _ => false,
    });
    homes.map(|key| key.name).collect()
}

fn unknown_key(
    entry: &Entry,
    path: &str,
    names: &[&str],
    kind: Option<(&KindTable, &str)>,
    home: Option<&str>,
) -> Error {
    let full = join(path, &entry.key);
    let place = &entry.key_place;
    let message = match kind {
        Some((tagged, name)) => format!(
            "unknown key `{}`: this {} is of kind `{name}`",
            entry.key, tagged.what
        ),
        None => format!("unknown key `{}`", entry.key),
    };
    let mut error = Error::at(place, &full, message);
    if let Some((_, now)) = FORMER.iter().find(|(former, _)| *former == full) {
        error = error.help(place, format!("this key is called `{now}` now"));
    }
    let other = SYNONYMS
        .iter()
        .find(|(word, ours)| *word == entry.key && names.contains(ours));
    let near = other.map(|(_, ours)| *ours);
    if let Some(home) = home {
        error = error.help(place, format!("`{}` belongs to the table [{home}]", entry.key));
    } else if let Some(near) = near.or_else(|| nearest(&entry.key, names.iter().copied())) {
        error = error.help(place, format!("did you mean `{near}`?"));
    }
    if let Some((_, advice)) = FOLLOWS.iter().find(|(word, _)| *word == entry.key) {
        error = error.help(place, *advice);
    }
    if let Some((tagged, _)) = kind {
        let homes = tagged
            .kinds
            .iter()
            .filter(|kind| kind.keys.iter().any(|key| key.name == entry.key));
        let homes: Vec<String> = homes.map(|home| format!("`{}`", home.name)).collect();
        error = match homes.as_slice() {
            [] => error,
            [home] => error.help(place, format!("`{}` belongs to the kind {home}", entry.key)),
            homes => error.help(
                place,
                format!("`{}` belongs to the kinds {}", entry.key, homes.join(", ")),
            ),
        };
    }
    error.help(place, format!("valid keys here: {}", names.join(", ")))
}

/// What others call a key.
const SYNONYMS: &[(&str, &str)] = &[
    ("bandwidth", "rate"),
    ("bitrate", "rate"),
    ("capacity", "rate"),
    ("speed", "rate"),
    ("latency", "delay"),
    ("buffer", "queue"),
    ("qdisc", "queue"),
    ("packet_loss", "loss"),
    ("cc", "congestion_control"),
    ("iw", "initial_window"),
    ("cwnd", "initial_window"),
    ("rmem", "receive_buffer"),
    ("wmem", "send_buffer"),
];

/// What is no key because it follows from others.
const FOLLOWS: &[(&str, &str)] = &[
    (
        "mss",
        "the MSS follows from the smallest `mtu` of the links on the path, for instance network.bottleneck.mtu",
    ),
    (
        "rtt",
        "the round-trip time follows from the `delay` of the links on the path, both ways",
    ),
];

/// Paths of keys that had another name in earlier files, and their names now.
const FORMER: &[(&str, &str)] = &[("figure.source.seed", "document")];

fn missing(place: &Place, key: &Key, path: &str) -> Error {
    Error::at(place, path, format!("`{}` is missing", key.name))
        .help(place, format!("`{}` is: {}", key.name, key.doc))
}

fn variety(node: &Node, tagged: &'static KindTable, path: &str) -> Result<&'static keys::KindKeys, Error> {
    let names: Vec<&str> = tagged.kinds.iter().map(|kind| kind.name).collect();
    let table = table(node, path)?;
    let full = join(path, tagged.tag);
    let Some(tag) = table.get(tagged.tag) else {
        return Err(Error::at(
            &node.place,
            &full,
            format!(
                "`{}` is missing: it says which {} this is",
                tagged.tag, tagged.what
            ),
        )
        .help(&node.place, format!("valid choices: {}", alternatives(&names))));
    };
    let word = text(tag, &full)?;
    tagged.kinds.iter().find(|kind| kind.name == word).ok_or_else(|| {
        unknown_word(
            tag,
            &full,
            &format!("unknown {} `{word}`", tagged.what),
            word,
            &names,
        )
    })
}

/// The tree of a default, which stands where the table that lacks it stands.
fn default_node(literal: &str, place: &Place) -> Node {
    let source = Arc::new(Source {
        name: String::from("default"),
        text: format!("value = {literal}"),
        folder: PathBuf::new(),
        files: Default::default(),
    });
    let mut node = super::document::parse(&source)
        .ok()
        .and_then(|table| table.get("value").cloned())
        .expect("every default of the list of keys is TOML, as a test of the list shows");
    node.place = place.clone();
    node
}

/// `path.key`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn element_path(path: &str, index: usize, node: &Node) -> String {
    match node.name() {
        Some(name) => join(path, name),
        None => format!("{path}[{index}]"),
    }
}
