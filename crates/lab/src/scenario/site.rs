//! How the queues of chosen directed links are set by paths, whatever else the file says: a queue that is inherited by the
//! way back is written out first, so that a change of one direction leaves the other as it is.

use super::path::Setting;
use super::resolve::Resolved;
use fleetfoot_core::parameter::Value;
use fleetfoot_sim::spec::LinkSpec;

/// The queues of some directed links of a scenario, as paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site {
    /// Queues that must be written out before, as whole tables.
    written: Vec<(String, toml::Value)>,
    /// The tables to set keys in: `network.bottleneck.reverse.queue`.
    queues: Vec<String>,
    /// Kinds of the queues as described, each once.
    kinds: Vec<&'static str>,
}

impl Site {
    /// The queues of `links`, which are indices into the directed links of `described`.
    ///
    /// The site of `links`; in a graph whose `network.bottleneck` describes a queue for several links, all of them change together.
    pub fn new(described: &Resolved, links: &[usize]) -> Site {
        let mut site = Site::default();
        let specs = &described.spec.links;
        let mut done: Vec<&str> = Vec::new();
        for &index in links {
            let name = specs[index].name.as_str();
            if !site.kinds.contains(&specs[index].queue) {
                site.kinds.push(specs[index].queue);
            }
            if done.contains(&name) {
                continue;
            }
            done.push(name);
            let wanted = |forward: bool| {
                links
                    .iter()
                    .any(|&link| specs[link].name == name && specs[link].forward == forward)
            };
            let way_back = specs.iter().find(|link| link.name == name && !link.forward);
            site.add(described, name, wanted(true), wanted(false), way_back);
        }
        site
    }

    fn add(
        &mut self,
        described: &Resolved,
        name: &str,
        forward: bool,
        reverse: bool,
        way_back: Option<&LinkSpec>,
    ) {
        let document = &described.document;
        let prefix = prefix(described, name);
        let own = entry(document, name);
        let bases = bases(described, name)
            .iter()
            .filter_map(|key| document.get("network")?.get(key));
        let given = bases.chain(own).any(|table| {
            table
                .get("reverse")
                .and_then(|reverse| reverse.get("queue"))
                .is_some()
        });
        let (queue, back) = (format!("{prefix}.queue"), format!("{prefix}.reverse.queue"));
        // An inherited queue of the way back is written out where only one direction is to change.
        if !given && forward != reverse {
            let table = way_back.map(queue_table);
            self.written
                .extend(table.map(|table| (back.clone(), toml::Value::Table(table))));
        }
        if forward && !self.queues.contains(&queue) {
            self.queues.push(queue);
        }
        if reverse && (given || !forward) && !self.queues.contains(&back) {
            self.queues.push(back);
        }
    }

    /// Whether all of these queues are of this kind as described.
    pub fn is_all(&self, kind: &str) -> bool {
        self.kinds == [kind]
    }

    /// `setting` with what must be written out before keys are set.
    #[must_use]
    pub fn prepared(&self, setting: Setting) -> Setting {
        self.written.iter().fold(setting, |setting, (path, value)| {
            setting.with(path.as_str(), value.clone())
        })
    }

    /// `setting` with `key = value` in every queue.
    #[must_use]
    pub fn with(&self, setting: Setting, key: &str, value: &toml::Value) -> Setting {
        self.queues.iter().fold(setting, |setting, queue| {
            setting.with(format!("{queue}.{key}"), value.clone())
        })
    }
}

/// The path under which the link called `name` is set.
fn prefix(described: &Resolved, name: &str) -> String {
    let document = &described.document;
    let bottleneck = document
        .get("network")
        .and_then(|network| network.get("bottleneck"));
    let overlaid = described.network == "graph"
        && bottleneck.is_some_and(|table| table.get("queue").is_some() || table.get("reverse").is_some());
    let between_routers = || {
        let host = |node: fleetfoot_sim::spec::NodeId| described.spec.nodes[node.0 as usize].host;
        let link = described.spec.links.iter().find(|link| link.name == name);
        link.is_some_and(|link| !host(link.from) && !host(link.to))
    };
    let named = &described.run.bottleneck;
    let is_bottleneck = if named.is_empty() {
        between_routers()
    } else {
        named.iter().any(|bottleneck| bottleneck == name)
    };
    let plain = described.network == "dumbbell" && name == "bottleneck" && entry(document, name).is_none();
    if plain || overlaid && is_bottleneck {
        String::from("network.bottleneck")
    } else {
        format!("link.{name}")
    }
}

/// The tables of `[network]` from which the link called `name` takes what its own entry does not say.
fn bases(described: &Resolved, name: &str) -> &'static [&'static str] {
    match described.network {
        "access-tree" => &["bottleneck", "core", "edge", "dslam", "access"],
        "graph" => &["bottleneck"],
        _ if name.starts_with("access-") => &["access"],
        _ if name.starts_with("egress-") => {
            let egress = described
                .document
                .get("network")
                .and_then(|network| network.get("egress"));
            match egress {
                Some(_) => &["egress"],
                None => &["access"],
            }
        }
        _ => &["bottleneck"],
    }
}

/// The `[[link]]` of this name.
fn entry<'a>(document: &'a toml::Table, name: &str) -> Option<&'a toml::Value> {
    let links = document.get("link")?.as_array()?;
    links
        .iter()
        .find(|link| link.get("name").and_then(toml::Value::as_str) == Some(name))
}

/// The queue of a link as one would write it: its kind and what differs from the defaults.
fn queue_table(link: &LinkSpec) -> toml::Table {
    let mut table = toml::Table::new();
    table.insert(String::from("kind"), link.queue.into());
    for parameter in link.queue_values.table() {
        let value = link.queue_values.value(parameter.name);
        if value == parameter.default {
            continue;
        }
        let value = match value {
            Value::Auto => continue,
            Value::Number(number) => toml::Value::Float(number),
            Value::Integer(number) => toml::Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
            Value::Flag(flag) => toml::Value::Boolean(flag),
            Value::Limit(_) | Value::Duration(_) | Value::Bytes(_) | Value::Rate(_) | Value::Choice(_) => {
                toml::Value::String(shown(value))
            }
        };
        table.insert(parameter.name.to_owned(), value);
    }
    table
}

/// A parameter's value as text.
pub fn shown(value: Value) -> String {
    use fleetfoot_core::queue::Limit;
    match value {
        Value::Auto => String::from("automatic"),
        Value::Limit(Limit::Packets(packets)) => format!("{packets} packets"),
        Value::Limit(Limit::Bytes(bytes)) | Value::Bytes(bytes) => bytes.to_string(),
        Value::Limit(Limit::Unlimited) => String::from("unlimited"),
        Value::Duration(span) => span.to_string(),
        Value::Rate(rate) => rate.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Choice(word) => word.to_owned(),
    }
}
