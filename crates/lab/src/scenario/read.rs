//! Checks a tree against the list of keys, and reads single values from it.

use super::document::{Entry, Node, Table, Value};
use super::error::{Error, Place, Source, alternatives, nearest};
use super::keys::{self, Dimension, Key, Kind, Tagged};
use super::quantity::{self, Mistake};
use fleetfoot_core::cc::AnyController;
use fleetfoot_core::parameter::{Parameter, ParameterKind, Values};
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::registry;
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
        tagged: &'static Tagged,
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
        match self.kind {
            Kind::Either(forms) => forms.iter().copied().find(|form| fits(form)).unwrap_or(self.kind),
            kind => kind,
        }
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
        Kind::Either(forms) => check(node, fitting_form(node, forms), path),
        Kind::Queue => queue(node, path).map(drop),
        Kind::CongestionControl => congestion_control(node, path).map(drop),
        Kind::Distribution(dimension) => match &node.value {
            Value::Table(_) => check(node, &Kind::Tagged(dimension.distributions()), path),
            _ => quantity(node, path, dimension).map(drop),
        },
        Kind::Setting => table(node, path).map(drop),
    }
}

impl Dimension {
    /// The distributions of this dimension.
    pub(crate) fn distributions(self) -> &'static Tagged {
        match self {
            Dimension::Bytes => &keys::SIZE_DISTRIBUTION,
            Dimension::Time => &keys::TIME_DISTRIBUTION,
        }
    }
}

/// The form that the type of `node` points to; the first if none does.
fn fitting_form<'a>(node: &Node, forms: &'a [Kind]) -> &'a Kind {
    let fits = |form: &&Kind| {
        matches!(
            (&node.value, form),
            (Value::Table(_), Kind::Table(_) | Kind::Tagged(_))
                | (
                    Value::Text(_),
                    Kind::Text | Kind::Choice(_) | Kind::Rate | Kind::Probability
                )
                | (
                    Value::Integer(_) | Value::Float(_),
                    Kind::Integer(..) | Kind::Probability
                )
                | (Value::Flag(_), Kind::Flag)
        )
    };
    forms.iter().find(fits).unwrap_or(&forms[0])
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
    kind: Option<(&Tagged, &str)>,
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
            return Err(unknown_key(entry, path, &names, kind));
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

fn unknown_key(entry: &Entry, path: &str, names: &[&str], kind: Option<(&Tagged, &str)>) -> Error {
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
    if let Some(near) = nearest(&entry.key, names.iter().copied()) {
        error = error.help(place, format!("did you mean `{near}`?"));
    }
    if let Some((tagged, _)) = kind
        && let Some(home) = tagged
            .kinds
            .iter()
            .find(|kind| kind.keys.iter().any(|key| key.name == entry.key))
    {
        error = error.help(
            place,
            format!("`{}` belongs to the kind `{}`", entry.key, home.name),
        );
    }
    error.help(place, format!("valid keys here: {}", names.join(", ")))
}

fn missing(place: &Place, key: &Key, path: &str) -> Error {
    Error::at(place, path, format!("`{}` is missing", key.name)).help(place, key.doc)
}

fn variety(node: &Node, tagged: &'static Tagged, path: &str) -> Result<&'static keys::Variety, Error> {
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

fn unknown_word(node: &Node, path: &str, message: &str, word: &str, names: &[&str]) -> Error {
    let mut error = Error::at(&node.place, path, message);
    if let Some(near) = nearest(word, names.iter().copied()) {
        error = error.help(&node.place, format!("did you mean `{near}`?"));
    }
    error.help(&node.place, format!("valid choices: {}", alternatives(names)))
}

/// The registered discipline and its parameters.
pub(crate) fn queue(node: &Node, path: &str) -> Result<(&'static str, Values), Error> {
    let names: Vec<&str> = AnyQueue::ENTRIES.iter().map(|entry| entry.name).collect();
    registered(node, path, "queue discipline", &names, AnyQueue::entry)
}

/// The registered algorithm and its parameters.
pub(crate) fn congestion_control(node: &Node, path: &str) -> Result<(&'static str, Values), Error> {
    let names: Vec<&str> = AnyController::ENTRIES.iter().map(|entry| entry.name).collect();
    registered(node, path, "congestion control", &names, AnyController::entry)
}

fn registered(
    node: &Node,
    path: &str,
    what: &str,
    names: &[&str],
    find: fn(&str) -> Option<&'static registry::Entry>,
) -> Result<(&'static str, Values), Error> {
    let (tag, tag_path, table) = match &node.value {
        Value::Table(table) => {
            let tag = table.get("kind").ok_or_else(|| {
                Error::at(
                    &node.place,
                    &join(path, "kind"),
                    format!("`kind` is missing: it says which {what} this is"),
                )
                .help(&node.place, format!("valid choices: {}", alternatives(names)))
            })?;
            (tag, join(path, "kind"), Some(table))
        }
        _ => (node, path.to_owned(), None),
    };
    let word = text(tag, &tag_path)?;
    let entry = find(word)
        .ok_or_else(|| unknown_word(tag, &tag_path, &format!("unknown {what} `{word}`"), word, names))?;
    let mut values = Values::defaults(entry.parameters);
    for given in table.map_or(&[][..], |table| &table.entries) {
        if given.key == "kind" {
            continue;
        }
        let full = join(path, &given.key);
        let Some(parameter) = entry
            .parameters
            .iter()
            .find(|parameter| parameter.name == given.key)
        else {
            let place = &given.key_place;
            let keys: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
            let mut error = Error::at(
                place,
                &full,
                format!("`{}` is no parameter of {what} `{word}`", given.key),
            );
            if let Some(near) = nearest(&given.key, keys.iter().copied()) {
                error = error.help(place, format!("did you mean `{near}`?"));
            }
            return Err(error.help(place, format!("valid keys here: kind, {}", keys.join(", "))));
        };
        let value = parameter_value(&given.node, parameter, &full)?;
        values
            .set(parameter.name, value)
            .map_err(|error| Error::at(&given.node.place, &full, error.to_string()))?;
    }
    Ok((entry.name, values))
}

fn parameter_value(
    node: &Node,
    parameter: &Parameter,
    path: &str,
) -> Result<fleetfoot_core::parameter::Value, Error> {
    use fleetfoot_core::parameter::Value;
    Ok(match parameter.kind {
        ParameterKind::Limit => Value::Limit(limit(node, path)?),
        ParameterKind::Duration(low, high) => Value::Duration(duration(node, path, low, high)?),
        ParameterKind::Bytes(low, high) => Value::Bytes(bytes(node, path, low.get(), high.get())?),
        ParameterKind::Rate(low, high) => {
            let rate = rate(node, path)?;
            if rate < low || high < rate {
                return Err(out_of_range(node, path, low, high));
            }
            Value::Rate(rate)
        }
        ParameterKind::Number(low, high) => Value::Number(number(node, path, low, high)?),
        ParameterKind::Integer(low, high) => Value::Integer(integer(node, path, low, high)?),
        ParameterKind::Flag => Value::Flag(flag(node, path)?),
        ParameterKind::Choice(words) => Value::Choice(choice(node, path, words)?),
    })
}

/// A value in bytes or seconds.
pub(crate) fn quantity(node: &Node, path: &str, dimension: Dimension) -> Result<f64, Error> {
    match dimension {
        Dimension::Bytes => Ok(bytes(node, path, 0, 1 << 50)?.get() as f64),
        Dimension::Time => {
            Ok(duration(node, path, Duration::ZERO, Duration::from_secs(86_400))?.as_secs_f64())
        }
    }
}

/// A point of an empirical distribution.
pub(crate) fn point(node: &Node, path: &str, dimension: Dimension) -> Result<(f64, f64), Error> {
    match list(node, path)? {
        [value, cumulative] => Ok((quantity(value, path, dimension)?, probability(cumulative, path)?)),
        _ => Err(Error::at(
            &node.place,
            path,
            "a point is a value and a cumulative probability",
        )
        .help(&node.place, "write [\"10 kB\", 0.5]")),
    }
}

fn text<'a>(node: &'a Node, path: &str) -> Result<&'a str, Error> {
    node.as_text()
        .ok_or_else(|| wrong_type(node, path, "text in quotes"))
}

fn flag(node: &Node, path: &str) -> Result<bool, Error> {
    match node.value {
        Value::Flag(flag) => Ok(flag),
        _ => Err(wrong_type(node, path, "true or false")),
    }
}

fn integer(node: &Node, path: &str, low: u64, high: u64) -> Result<u64, Error> {
    let number = match node.value {
        Value::Integer(number) => number,
        _ => return Err(wrong_type(node, path, "a whole number")),
    };
    match u64::try_from(number) {
        Ok(number) if low <= number && number <= high => Ok(number),
        _ => Err(out_of_range(node, path, low, high)),
    }
}

fn number(node: &Node, path: &str, low: f64, high: f64) -> Result<f64, Error> {
    let number = match node.value {
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        _ => return Err(wrong_type(node, path, "a number")),
    };
    if low <= number && number <= high {
        Ok(number)
    } else {
        Err(out_of_range(node, path, low, high))
    }
}

fn probability(node: &Node, path: &str) -> Result<f64, Error> {
    let help = "write a number from 0 to 1, or \"1 %\"";
    match &node.value {
        Value::Text(text) => {
            let part = quantity::percent(text)
                .map_err(|mistake| explain(node, path, text, &mistake, "a probability", help))?;
            if part <= 1.0 {
                Ok(part)
            } else {
                Err(Error::at(
                    &node.place,
                    path,
                    format!("a probability is at most 100 %, found \"{text}\""),
                ))
            }
        }
        Value::Integer(_) | Value::Float(_) => number(node, path, 0.0, 1.0),
        _ => Err(wrong_type(node, path, "a probability").help(&node.place, help)),
    }
}

fn duration(node: &Node, path: &str, low: Duration, high: Duration) -> Result<Duration, Error> {
    let span = parsed(node, path, "a time", quantity::DURATION_HELP, quantity::duration)?;
    if low <= span && span <= high {
        Ok(span)
    } else {
        Err(out_of_range(node, path, low, high))
    }
}

fn bytes(node: &Node, path: &str, low: u64, high: u64) -> Result<Bytes, Error> {
    let amount = parsed(node, path, "an amount", quantity::BYTES_HELP, quantity::bytes)?;
    if low <= amount.get() && amount.get() <= high {
        Ok(amount)
    } else {
        Err(out_of_range(node, path, Bytes(low), Bytes(high)))
    }
}

fn rate(node: &Node, path: &str) -> Result<Rate, Error> {
    let rate = parsed(node, path, "a speed", quantity::RATE_HELP, quantity::rate)?;
    if rate.bps() == 0 {
        return Err(
            Error::at(&node.place, path, "a rate of zero carries nothing").help(
                &node.place,
                "the smallest rate is \"1 bit/s\"; \"unlimited\" is also possible",
            ),
        );
    }
    Ok(rate)
}

fn frequency(node: &Node, path: &str) -> Result<f64, Error> {
    let frequency = parsed(
        node,
        path,
        "a frequency",
        quantity::FREQUENCY_HELP,
        quantity::frequency,
    )?;
    if (1e-6..=1e9).contains(&frequency) {
        Ok(frequency)
    } else {
        Err(
            Error::at(&node.place, path, format!("{} is out of range", node.shown()))
                .help(&node.place, "from 0.000001 to 1000000000 per second"),
        )
    }
}

fn limit(node: &Node, path: &str) -> Result<Limit, Error> {
    let limit = parsed(node, path, "a queue limit", quantity::LIMIT_HELP, quantity::limit)?;
    if matches!(limit, Limit::Packets(0) | Limit::Bytes(Bytes::ZERO)) {
        return Err(
            Error::at(&node.place, path, "a queue must hold at least one packet")
                .help(&node.place, quantity::LIMIT_HELP),
        );
    }
    Ok(limit)
}

fn choice(node: &Node, path: &str, words: &'static [&'static str]) -> Result<&'static str, Error> {
    let Some(word) = node.as_text() else {
        return Err(wrong_type(node, path, "a word in quotes")
            .help(&node.place, format!("valid choices: {}", alternatives(words))));
    };
    words
        .iter()
        .find(|candidate| **candidate == word)
        .copied()
        .ok_or_else(|| unknown_word(node, path, &format!("`{word}` is not possible here"), word, words))
}

pub(crate) fn table<'a>(node: &'a Node, path: &str) -> Result<&'a Table, Error> {
    node.as_table().ok_or_else(|| wrong_type(node, path, "a table"))
}

fn list<'a>(node: &'a Node, path: &str) -> Result<&'a [Node], Error> {
    match &node.value {
        Value::List(nodes) => Ok(nodes),
        _ => Err(wrong_type(node, path, "a list")),
    }
}

fn parsed<T>(
    node: &Node,
    path: &str,
    what: &str,
    help: &str,
    parse: fn(&str) -> Result<T, Mistake>,
) -> Result<T, Error> {
    match &node.value {
        Value::Text(text) => parse(text).map_err(|mistake| explain(node, path, text, &mistake, what, help)),
        Value::Integer(_) | Value::Float(_) => Err(Error::at(
            &node.place,
            path,
            format!("{} has no unit: {what} is wanted", node.shown()),
        )
        .help(&node.place, help)),
        Value::Flag(_) | Value::List(_) | Value::Table(_) => {
            Err(wrong_type(node, path, what).help(&node.place, help))
        }
    }
}

fn explain(node: &Node, path: &str, text: &str, mistake: &Mistake, what: &str, help: &str) -> Error {
    let message = match mistake {
        Mistake::NoNumber => format!("\"{text}\" does not begin with a number"),
        Mistake::NoUnit => format!("\"{text}\" has no unit: {what} is wanted"),
        Mistake::WrongUnit(..) => format!("{what} is wanted, found \"{text}\""),
        Mistake::TooLarge => format!("\"{text}\" is negative or too large"),
    };
    let error = Error::at(&node.place, path, message);
    match mistake {
        Mistake::WrongUnit(_, Some(meant)) => error.help(&node.place, format!("did you mean `{meant}`?")),
        _ => error,
    }
    .help(&node.place, help)
}

fn wrong_type(node: &Node, path: &str, wanted: &str) -> Error {
    Error::at(
        &node.place,
        path,
        format!("{wanted} is wanted, found {}", node.shown()),
    )
}

fn out_of_range(node: &Node, path: &str, low: impl std::fmt::Display, high: impl std::fmt::Display) -> Error {
    Error::at(&node.place, path, format!("{} is out of range", node.shown()))
        .help(&node.place, format!("from {low} to {high}"))
}

/// The tree of a default, which stands where the table that lacks it stands.
fn default_node(literal: &str, place: &Place) -> Node {
    let source = Arc::new(Source {
        name: String::from("default"),
        text: format!("value = {literal}"),
        folder: PathBuf::new(),
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
