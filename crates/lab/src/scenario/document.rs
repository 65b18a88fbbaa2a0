//! The file as a tree whose every key and value knows its place.
//!
//! serde loses positions inside tagged tables, so the file is read into `toml`'s spanned tree and from there into this
//! one, which can be merged (`extends`), changed (variants) and written again.

use super::error::{Error, ErrorKind, Place, Source};
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Keys in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries
            .iter_mut()
            .find(|entry| entry.key == key)
            .map(|entry| &mut entry.node)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Node::as_text)
    }

    /// Puts `node` at `key`, in the place of an older value or at the end.
    pub(crate) fn put(&mut self, key: &str, key_place: Place, node: Node) {
        let entry = Entry {
            key: key.to_owned(),
            key_place,
            node,
        };
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }

    pub(crate) fn to_toml(&self) -> toml::Table {
        self.entries
            .iter()
            .map(|entry| (entry.key.clone(), entry.node.to_toml()))
            .collect()
    }

    /// The key that says which kind of table this is.
    pub(crate) fn tag(&self) -> Option<&'static str> {
        ["kind", "dist"].into_iter().find(|tag| self.get(tag).is_some())
    }

    /// Lays `over` upon this table: tables merge, entries with names merge by name, everything else is replaced. A
    /// table whose kind changes keeps only the keys that every kind has.
    pub(crate) fn merge(&mut self, over: Table) {
        if let Some(tag) = over.tag()
            && let (Some(old), Some(new)) = (self.text(tag), over.text(tag))
            && old != new
        {
            self.keep_common_keys(tag, new.to_owned().as_str());
        }
        for Entry { key, key_place, node } in over.entries {
            match (self.get_mut(&key), node) {
                (
                    Some(Node {
                        value: Value::Table(old),
                        ..
                    }),
                    Node {
                        value: Value::Table(new),
                        ..
                    },
                ) => old.merge(new),
                (
                    Some(Node {
                        value: Value::List(old),
                        ..
                    }),
                    Node {
                        value: Value::List(new),
                        ..
                    },
                ) if are_named(old) && are_named(&new) => merge_named(old, new),
                (_, node) => self.put(&key, key_place, node),
            }
        }
    }

    /// Drops what belongs to the old kind only.
    pub(crate) fn keep_common_keys(&mut self, tag: &str, new_kind: &str) {
        let queue = crate::plugins::queue(new_kind);
        self.entries.retain(|entry| match entry.key.as_str() {
            key if key == tag => true,
            key @ ("limit" | "ecn") => {
                queue.is_some_and(|queue| queue.parameters.iter().any(|p| p.name == key))
            }
            key => super::keys::TRAFFIC_COMMON
                .iter()
                .any(|common| common.name == key),
        });
    }
}

fn are_named(list: &[Node]) -> bool {
    !list.is_empty() && list.iter().all(|node| node.name().is_some())
}

fn merge_named(old: &mut Vec<Node>, new: Vec<Node>) {
    for node in new {
        let twin = old.iter_mut().find(|candidate| candidate.name() == node.name());
        match (twin, node) {
            (
                Some(Node {
                    value: Value::Table(old),
                    ..
                }),
                Node {
                    value: Value::Table(new),
                    ..
                },
            ) => old.merge(new),
            (_, node) => old.push(node),
        }
    }
}

impl Node {
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Name of a named entry: its `name`, or the kind of a traffic group without one.
    pub(crate) fn name(&self) -> Option<&str> {
        let table = self.as_table()?;
        table.text("name").or_else(|| table.text("kind"))
    }

    /// The value as one would write it, for messages.
    pub(crate) fn shown(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("\"{text}\""),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(_) => String::from("a list"),
            Value::Table(_) => String::from("a table"),
        }
    }

    pub(crate) fn to_toml(&self) -> toml::Value {
        match &self.value {
            Value::Text(text) => toml::Value::String(text.clone()),
            Value::Integer(number) => toml::Value::Integer(*number),
            Value::Float(number) => toml::Value::Float(*number),
            Value::Flag(flag) => toml::Value::Boolean(*flag),
            Value::List(list) => toml::Value::Array(list.iter().map(Node::to_toml).collect()),
            Value::Table(table) => toml::Value::Table(table.to_toml()),
        }
    }

    /// A value from elsewhere; everything in it stands at `place`.
    pub(crate) fn from_toml(value: &toml::Value, place: &Place) -> Node {
        let value = match value {
            toml::Value::String(text) => Value::Text(text.clone()),
            toml::Value::Integer(number) => Value::Integer(*number),
            toml::Value::Float(number) => Value::Float(*number),
            toml::Value::Boolean(flag) => Value::Flag(*flag),
            toml::Value::Datetime(date) => Value::Text(date.to_string()),
            toml::Value::Array(list) => {
                Value::List(list.iter().map(|value| Node::from_toml(value, place)).collect())
            }
            toml::Value::Table(table) => Value::Table(Table {
                entries: table
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_place: place.clone(),
                        node: Node::from_toml(value, place),
                    })
                    .collect(),
            }),
        };
        Node {
            value,
            place: place.clone(),
        }
    }
}

/// The name at `span`, if it is that of a list of tables.
fn listed(text: &str, span: Option<std::ops::Range<usize>>) -> Option<&str> {
    text.get(span?).filter(|name| LISTS.contains(name))
}

/// Lists of tables at the top of a scenario.
const LISTS: [&str; 3] = ["traffic", "variant", "link"];

/// Reads a TOML text.
pub(crate) fn parse(source: &Arc<Source>) -> Result<Table, Error> {
    let tree = DeTable::parse(&source.text).map_err(|error| {
        let place = Place::new(source, error.span().unwrap_or(0..0));
        let own = Error::at(&place, "", format!("this is not TOML: {}", error.message()));
        let own = own.of_kind(ErrorKind::Syntax);
        match listed(&source.text, error.span()) {
            Some(name) if error.message().contains("duplicate key") => own.help(
                &place,
                format!("each entry begins with [[{name}]], with two brackets on each side; one of them has a single one"),
            ),
            _ => own,
        }
    })?;
    table(source, tree.get_ref())
}

fn table(source: &Arc<Source>, tree: &DeTable<'_>) -> Result<Table, Error> {
    let entries = tree
        .iter()
        .map(|(key, value)| {
            Ok(Entry {
                key: key.get_ref().to_string(),
                key_place: Place::new(source, key.span()),
                node: node(source, value.get_ref(), Place::new(source, value.span()))?,
            })
        })
        .collect::<Result<Vec<Entry>, Error>>()?;
    Ok(Table { entries })
}

fn node(source: &Arc<Source>, value: &DeValue<'_>, place: Place) -> Result<Node, Error> {
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Integer(
            i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| Error::at(&place, "", "this number is too large").of_kind(ErrorKind::Syntax))?,
        ),
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(list) => Value::List(
            list.iter()
                .map(|value| node(source, value.get_ref(), Place::new(source, value.span())))
                .collect::<Result<Vec<Node>, Error>>()?,
        ),
        DeValue::Table(inner) => Value::Table(table(source, inner)?),
    };
    Ok(Node { value, place })
}
