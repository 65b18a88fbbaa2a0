//! A scenario as a page shows it: whether it is correct, and which of its values can be moved.

use crate::EXAMPLES;
use crate::failure::Failure;
use fleetfoot_lab::compare::{Choice, Plan};
use fleetfoot_lab::input::Folder;
use fleetfoot_lab::scenario::{Resolved, Scenario, Setting};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;

/// A scenario and what is changed in it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    /// What messages call the file.
    pub name: String,
    /// Its text.
    pub toml: String,
    /// Files that it names, as [`capture`](crate::capture) made them; all others are looked for on disk.
    #[serde(default)]
    pub files: Vec<Beside>,
    /// Changes, each `path=value` as `--set` takes it.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A file that a scenario names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// As it stands in the scenario.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// The longest text that is read (bytes).
pub const MOST_TEXT: usize = 1 << 20;

/// What all files that a scenario names may have, of those that come with it (bytes).
pub const MOST_FILES: usize = 32 << 20;

impl Described {
    /// The example of this name and text, which the program brings.
    pub(crate) fn brought(&self) -> Option<&'static str> {
        let name = self.name.strip_suffix(".toml")?;
        let (name, _) = EXAMPLES
            .iter()
            .find(|(own, text)| *own == name && *text == self.toml)?;
        self.files.is_empty().then_some(*name)
    }

    /// Reads and checks it. The files that came with it are there as long as the folder lives.
    pub(crate) fn scenario(&self) -> Result<(Scenario, Folder), Failure> {
        if self.toml.len() > MOST_TEXT {
            return Err(Failure::new(format!(
                "{}: a scenario file of {} bytes is longer than {MOST_TEXT}, the most that the explorer reads; `fleetfoot compare` reads it",
                self.name,
                self.toml.len()
            )));
        }
        let beside: usize = self.files.iter().map(|file| file.text.len()).sum();
        if beside > MOST_FILES {
            return Err(Failure::new(format!(
                "{}: its files of {beside} bytes are longer than {MOST_FILES}, the most that the explorer reads",
                self.name
            )));
        }
        // A path would name another place, which others may read.
        let beside = |file: &&Beside| Path::new(&file.name).file_name() == Some(OsStr::new(&file.name));
        if let Some(file) = self.files.iter().find(|file| !beside(file)) {
            return Err(Failure::new(format!(
                "{}: `{}` is no name of a file: one part of a path, without `/`",
                self.name, file.name
            )));
        }
        let files = self.files.iter();
        let folder = Folder::with(files.map(|file| (file.name.as_str(), file.text.as_bytes())));
        let scenario = match self.files.is_empty() {
            true => Scenario::parse(&self.name, &self.toml)?,
            false => Scenario::parse_in(folder.path(), &self.name, &self.toml)?,
        };
        if self.set.is_empty() {
            return Ok((scenario, folder));
        }
        let mut set = Setting::from_origin("--set");
        for argument in &self.set {
            set = set.with_argument(argument)?;
        }
        Ok((scenario.with(&set)?, folder))
    }
}

/// The scenario, what it can be compared with, and what can be moved in it.
pub(crate) fn check(described: &Described) -> Result<Value, Failure> {
    let (scenario, _files) = described.scenario()?;
    let own: Vec<&str> = scenario
        .variants()
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    let own = json!(own);
    let toml = scenario.to_toml();
    let title = scenario.title().to_owned();
    let plan = Plan::compare(scenario, &Choice::default())?;
    let resolved = &plan.described;
    let groups: Vec<Value> = resolved
        .groups
        .iter()
        .map(|group| {
            json!({ "name": group.name, "kind": group.kind.name(), "waits": group.latency_sensitive })
        })
        .collect();
    let links: Vec<Value> = plan
        .places
        .iter()
        .map(|place| json!({ "name": place.name, "described": place.described(), "selector": place.selector() }))
        .collect();
    let inapplicable: Vec<Value> = plan
        .inapplicable
        .iter()
        .map(|entry| json!({ "name": entry.name, "reason": entry.reason }))
        .collect();
    let all: Vec<&str> = plan
        .variants
        .iter()
        .skip(1)
        .map(|variant| variant.name.as_str())
        .collect();
    Ok(json!({
        "title": title,
        "toml": toml,
        "own": own,
        "variants": all,
        "inapplicable": inapplicable,
        "controls": controls(resolved),
        "groups": groups,
        "places": links,
        "waits": plan.waits(),
        "base_rtt_s": base_rtt(resolved),
        "seeds": resolved.run.seeds,
        "duration_s": resolved.run.duration.as_secs_f64(),
    }))
}

/// The median base RTT of the pairs of hosts (s).
fn base_rtt(resolved: &Resolved) -> Option<f64> {
    let mut rtts: Vec<f64> = resolved
        .base_rtts()
        .iter()
        .map(|pair| pair.rtt.as_secs_f64())
        .collect();
    rtts.sort_by(f64::total_cmp);
    rtts.get(rtts.len() / 2).copied()
}

/// What can be moved: `{kind, label, path, value}`, of the RTT and the load what a page computes the value from.
fn controls(resolved: &Resolved) -> Vec<Value> {
    let mut controls = Vec::new();
    let Some(toml::Value::Table(network)) = resolved.document.get("network") else {
        return controls;
    };
    for (path, table) in links(network) {
        let text = |key: &str| table.get(key).and_then(toml::Value::as_str);
        let label = text("label").map_or_else(|| name_of(&path), str::to_owned);
        if let Some(rate) = text("rate") {
            controls.push(json!({ "kind": "rate", "label": format!("Rate of {label}"), "path": format!("{path}.rate"), "value": rate }));
        }
        let forward = !path.ends_with(".reverse");
        if let Some(delay) = text("delay").filter(|_| forward) {
            // Without a delay of its own the way back has the same.
            let back = table.get("reverse").and_then(|reverse| reverse.get("delay"));
            let ways = if back.is_some() { 1 } else { 2 };
            controls.push(json!({
                "kind": "rtt", "label": "Base round-trip time", "path": format!("{path}.delay"), "value": delay,
                "rtt_s": base_rtt(resolved), "ways": ways,
            }));
        }
        let limit = table
            .get("queue")
            .and_then(|queue| queue.get("limit"))
            .and_then(toml::Value::as_str);
        if let Some(limit) = limit.filter(|limit| *limit != "unlimited") {
            controls.push(json!({
                "kind": "limit", "label": format!("Buffer of {label}"), "path": format!("{path}.queue.limit"), "value": limit,
            }));
        }
    }
    let load = load(resolved);
    if !load.is_empty() {
        controls.push(json!({ "kind": "load", "label": "Load of those who wait", "values": load }));
    }
    controls
}

/// The tables of links whose values are worth moving: the bottleneck and its way back; without one all that have a rate.
fn links(network: &toml::Table) -> Vec<(String, &toml::Table)> {
    let mut found = Vec::new();
    let named = |key: &str| match network.get(key) {
        Some(toml::Value::Table(table)) => Some(table),
        _ => None,
    };
    let keys: Vec<&str> = match named("bottleneck") {
        Some(_) => vec!["bottleneck"],
        None => network.keys().map(String::as_str).collect(),
    };
    for key in keys {
        let Some(table) = named(key).filter(|table| table.contains_key("rate")) else {
            continue;
        };
        found.push((format!("network.{key}"), table));
        if let Some(toml::Value::Table(reverse)) = table.get("reverse") {
            found.push((format!("network.{key}.reverse"), reverse));
        }
    }
    found.truncate(4);
    found
}

/// What a link is called that has no label: `bottleneck`.
fn name_of(path: &str) -> String {
    let name = path.strip_prefix("network.").unwrap_or(path);
    match name.strip_suffix(".reverse") {
        Some(name) => format!("{name}, way back"),
        None => name.to_owned(),
    }
}

/// Per group that waits what its load follows from: a number of users, or a rate of arrivals.
fn load(resolved: &Resolved) -> Vec<Value> {
    let mut found = Vec::new();
    let Some(toml::Value::Array(traffic)) = resolved.document.get("traffic") else {
        return found;
    };
    for (group, table) in resolved.groups.iter().zip(traffic) {
        if !group.latency_sensitive {
            continue;
        }
        let arrivals = table
            .get("arrivals")
            .and_then(|arrivals| arrivals.get("rate"))
            .and_then(toml::Value::as_str);
        let count = table.get("count").and_then(toml::Value::as_integer);
        let name = &group.name;
        match (arrivals, count) {
            (Some(rate), _) => {
                found.push(json!({ "path": format!("traffic.{name}.arrivals.rate"), "value": rate }));
            }
            (None, Some(count)) => {
                found.push(json!({ "path": format!("traffic.{name}.count"), "value": count }));
            }
            (None, None) => {}
        }
    }
    found
}
