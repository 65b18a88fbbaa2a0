//! The JSON schema of scenario files, made from the list of keys. Tables and kinds that stand in several places are written once,
//! under `$defs`, named by the first key that holds them.

use super::keys::{self, Default, Dimension, Key, Kind, KindTable};
use super::reference::parameter_default;
use crate::plugins;
use fleetfoot_core::registry::Entry;
use serde_json::{Map, Value, json};

/// Where the schema of a whole file stands.
const WHOLE: &str = "#/$defs/file";

/// The JSON schema (draft 2020-12) of scenario files, for editors.
///
/// A file that extends another may hold any part of a scenario, so no key is required of it; a closed form has neither network
/// nor traffic. Editors that complete do not all look into conditions: `anyOf`, which holds always, leads them to the whole file.
pub fn json_schema() -> Value {
    let mut schemas = Schemas::default();
    let whole = schemas.object(&keys::FILE.iter().collect::<Vec<_>>(), None);
    let part = schemas.part(WHOLE, &whole);
    let own: Map<String, Value> = keys::CLOSED_FORM
        .iter()
        .map(|key| pointer(WHOLE, key.name))
        .collect();
    let closed = json!({ "properties": own, "additionalProperties": false });
    schemas.shared.insert("file".into(), whole);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Fleetfoot scenario",
        "type": "object",
        "anyOf": [{ "$ref": WHOLE }, true],
        "if": { "required": ["extends"] },
        "then": part,
        "else": {
            "if": {
                "required": ["figure"],
                "properties": {
                    "figure": { "required": ["kind"], "properties": { "kind": { "const": "closed-form" } } },
                },
            },
            "then": closed,
            "else": { "$ref": WHOLE },
        },
        "$defs": schemas.shared,
    })
}

/// A property as a reference to the one of the same name of the object at `place`.
fn pointer(place: &str, name: &str) -> (String, Value) {
    (
        name.to_owned(),
        json!({ "$ref": format!("{place}/properties/{name}") }),
    )
}

/// The subschemas that are written once.
#[derive(Default)]
struct Schemas {
    shared: Map<String, Value>,
}

impl Schemas {
    /// The schema of a part of what `schema`, which stands at `place`, describes: what requires nothing as it is, tables without their
    /// required keys, of lists and of tables of several kinds only what they are.
    fn part(&self, place: &str, schema: &Value) -> Value {
        if let Some(place) = schema["$ref"].as_str() {
            return self
                .referred(schema)
                .map_or(json!({}), |schema| self.part(place, schema));
        }
        if !self.requires(schema) {
            return json!({ "$ref": place });
        }
        let Some(properties) = schema["properties"].as_object() else {
            let kinds = schema["oneOf"].as_array();
            let tables = kinds.is_some_and(|kinds| kinds.iter().all(|kind| kind["type"] == "object"));
            return match schema["type"].as_str() {
                Some("array") => json!({ "type": "array", "items": { "type": "object" } }),
                _ if tables => json!({ "type": "object" }),
                _ => json!({}),
            };
        };
        let parts: Map<String, Value> = properties
            .iter()
            .map(|(name, inner)| {
                (
                    name.clone(),
                    self.part(&format!("{place}/properties/{name}"), inner),
                )
            })
            .collect();
        json!({ "type": "object", "properties": parts, "additionalProperties": false })
    }

    /// Whether something in `schema` must be written.
    fn requires(&self, schema: &Value) -> bool {
        match schema {
            Value::Object(map) => {
                map.get("required")
                    .and_then(Value::as_array)
                    .is_some_and(|keys| !keys.is_empty())
                    || self.referred(schema).is_some_and(|schema| self.requires(schema))
                    || map.values().any(|inner| self.requires(inner))
            }
            Value::Array(list) => list.iter().any(|inner| self.requires(inner)),
            _ => false,
        }
    }

    /// What `schema` refers to, if it does.
    fn referred(&self, schema: &Value) -> Option<&Value> {
        self.shared
            .get(schema["$ref"].as_str()?.strip_prefix("#/$defs/")?)
    }

    /// A reference to the schema under `$defs`, named after the first key that holds it.
    fn reference(&mut self, name: &str, schema: Value) -> Value {
        let known = self.shared.iter().find(|(_, other)| **other == schema);
        let named = known.map(|(name, _)| name.clone()).unwrap_or_else(|| {
            let others = (2..).map(|number| format!("{name}-{number}"));
            let mut names = std::iter::once(name.to_owned()).chain(others);
            let free = names.find(|name| !self.shared.contains_key(name));
            let free = free.expect("there are more names than schemas");
            self.shared.insert(free.clone(), schema);
            free
        });
        json!({ "$ref": format!("#/$defs/{named}") })
    }

    fn object(&mut self, keys: &[&Key], tag: Option<(&str, &str, &str)>) -> Value {
        let mut properties = Map::new();
        let mut required: Vec<&str> = Vec::new();
        if let Some((tag, name, doc)) = tag {
            properties.insert(tag.into(), json!({ "const": name, "description": doc }));
            required.push(tag);
        }
        for key in keys {
            let mut schema = self.of(key.name, &key.kind);
            if let Value::Object(map) = &mut schema {
                let doc = match key.default {
                    Default::Described(words) => format!("{} Default: {words}.", key.doc),
                    Default::Required | Default::Value(_) => key.doc.to_owned(),
                };
                map.insert("description".into(), json!(doc));
                if let Default::Value(literal) = key.default
                    && let Ok(table) = toml::from_str::<toml::Table>(&format!("value = {literal}"))
                    && let Ok(value) = serde_json::to_value(&table["value"])
                {
                    map.insert("default".into(), value);
                }
            }
            properties.insert(key.name.into(), schema);
            if matches!(key.default, Default::Required) {
                required.push(key.name);
            }
        }
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }

    fn tagged(&mut self, tagged: &KindTable) -> Value {
        let kinds: Vec<Value> = tagged
            .kinds
            .iter()
            .map(|kind| {
                let keys: Vec<&Key> = tagged.common.iter().chain(kind.keys).collect();
                self.object(&keys, Some((tagged.tag, kind.name, kind.doc)))
            })
            .collect();
        json!({ "oneOf": kinds })
    }

    /// The schema of a value of this kind, which the key `name` holds.
    fn of(&mut self, name: &str, kind: &Kind) -> Value {
        match *kind {
            Kind::Table(keys) => {
                let schema = self.object(&keys.iter().collect::<Vec<_>>(), None);
                self.reference(name, schema)
            }
            Kind::Tagged(kinds) => {
                let schema = self.tagged(kinds);
                self.reference(name, schema)
            }
            Kind::Map(inner) => json!({ "type": "object", "additionalProperties": self.of(name, inner) }),
            Kind::List(inner) => json!({ "type": "array", "items": self.of(name, inner) }),
            Kind::OneOrMore(inner) => {
                let one = self.of(name, inner);
                json!({ "anyOf": [one, { "type": "array", "items": one }] })
            }
            Kind::Either(_) | Kind::Forms(_) => {
                let forms: Vec<Value> = kind.forms().iter().map(|form| self.of(name, form)).collect();
                json!({ "anyOf": forms })
            }
            Kind::Queue => {
                let queues = plugins::queues();
                let entries: Vec<Value> = queues.iter().map(|entry| self.entry(entry)).collect();
                self.reference("queue", json!({ "oneOf": entries }))
            }
            Kind::CongestionControl => {
                let schema = self.named(&plugins::controllers());
                self.reference("congestion-control", schema)
            }
            Kind::Analysis => {
                let entries = crate::analysis::ENTRIES.iter().map(|analysis| &analysis.entry);
                let schema = self.named(&entries.collect::<Vec<_>>());
                self.reference("analysis", schema)
            }
            Kind::Distribution(dimension) => {
                let distributions = self.tagged(dimension.distributions());
                let plain = self.of(name, &Kind::Quantity(dimension));
                let of = match dimension {
                    Dimension::Bytes => "bytes-or-distribution",
                    Dimension::Time => "time-or-distribution",
                };
                self.reference(of, json!({ "anyOf": [plain, distributions] }))
            }
            Kind::Text => json!({ "type": "string" }),
            Kind::Line => json!({ "type": "string", "minLength": 1 }),
            Kind::Name => json!({ "type": "string", "pattern": "^[^=+@-]" }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Integer(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
            Kind::Number(low, high) => json!({ "type": "number", "minimum": low, "maximum": high }),
            Kind::Probability => json!({ "type": ["number", "string"], "minimum": 0, "maximum": 1 }),
            Kind::Duration(..) | Kind::Quantity(Dimension::Time) => quantity("40 ms"),
            Kind::Bytes(..) | Kind::Quantity(Dimension::Bytes) => amount(),
            Kind::Rate => quantity("10 Mbit/s"),
            Kind::Frequency => quantity("4 per second"),
            Kind::Limit => json!({ "type": "string", "examples": ["50 packets", "300 ms"] }),
            Kind::Point(dimension) => json!({
                "type": "array",
                "prefixItems": [self.of(name, &Kind::Quantity(dimension)), self.of(name, &Kind::Probability)],
                "minItems": 2,
                "maxItems": 2,
            }),
            Kind::Choice(words) => json!({ "enum": words }),
            Kind::Setting => json!({ "type": "object", "minProperties": 1 }),
            Kind::Any => json!({}),
        }
    }

    /// A registered name, or a table with its parameters.
    fn named(&mut self, entries: &[&Entry]) -> Value {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        let tables: Vec<Value> = entries.iter().map(|entry| self.entry(entry)).collect();
        json!({ "anyOf": [{ "enum": names }, { "oneOf": tables }] })
    }

    fn entry(&mut self, entry: &Entry) -> Value {
        let mut properties = Map::new();
        properties.insert("kind".into(), json!({ "const": entry.name }));
        for parameter in entry.parameters {
            let mut schema = self.of(parameter.name, &Kind::of(parameter.kind));
            if let Value::Object(map) = &mut schema {
                let doc = format!(
                    "{}. Default: {}.",
                    parameter.doc.trim_end_matches('.'),
                    parameter_default(parameter)
                );
                map.insert("description".into(), json!(doc));
            }
            properties.insert(parameter.name.into(), schema);
        }
        json!({ "type": "object", "properties": properties, "required": ["kind"], "additionalProperties": false })
    }
}

/// Bytes may stand without their unit.
fn amount() -> Value {
    json!({ "type": ["string", "integer"], "examples": ["64 kB"] })
}

fn quantity(example: &str) -> Value {
    json!({ "type": "string", "examples": [example] })
}
