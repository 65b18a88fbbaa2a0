//! What is known of a mechanism, a queue, a congestion control or a switch of `[tcp]`, as a document; and what is said of a name
//! that nothing has.

use crate::compare::{nearest, shown};
use crate::mechanisms::{self, ENTRIES};
use crate::plugins;
use crate::scenario::{SwitchInfo, parameter_type, switch, switch_names};
use serde_json::{Map, Value, json};

/// The document of what is called `name`; `None`: there is no such mechanism, queue, congestion control or switch.
pub fn document(name: &str) -> Option<Value> {
    let entry = plugins::queue(name).or_else(|| plugins::controller(name));
    let mut document = match (mechanisms::find(name), entry, switch(name)) {
        (Some(mechanism), _, _) => {
            let mut document = mechanism.to_json();
            let ways = mechanism.on_real_packets().into_iter();
            let ways = ways.map(|(what, command)| json!({ "for": what, "command": command }));
            document["on_real_packets"] = ways.collect();
            document
        }
        (None, Some(entry), _) => json!({ "name": entry.name }),
        (None, None, Some(switch)) => of_switch(&switch),
        (None, None, None) => return None,
    };
    if let Some(entry) = entry {
        document["text"] = entry.document().collect::<Vec<_>>().join("\n").into();
        document["parameters"] = entry
            .parameters
            .iter()
            .map(|parameter| {
                json!({
                    "name": parameter.name, "type": parameter_type(parameter.kind), "default": shown(parameter.default),
                    "doc": parameter.doc,
                })
            })
            .collect();
    }
    Some(document)
}

fn of_switch(found: &SwitchInfo) -> Value {
    let profiles: Map<String, Value> = found
        .profiles
        .iter()
        .map(|(profile, value, source)| {
            let cell = json!({ "value": value, "source": source });
            ((*profile).to_owned(), cell)
        })
        .collect();
    json!({
        "name": found.name, "path": format!("tcp.{}", found.name), "values": found.values, "doc": found.doc,
        "profiles": profiles,
    })
}

/// Names of all mechanisms, queues, congestion controls and switches.
pub fn names() -> Vec<String> {
    ENTRIES
        .iter()
        .map(|entry| entry.name)
        .chain(plugins::queues().iter().map(|entry| entry.name))
        .chain(plugins::controllers().iter().map(|entry| entry.name))
        .chain(switch_names())
        .map(str::to_owned)
        .collect()
}

/// Nothing is called `name`, but there is what is called as `known`: the message.
pub fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let nearest =
        nearest(name, known).map_or_else(String::new, |candidate| format!(", did you mean `{candidate}`?"));
    format!("nothing is called `{name}`{nearest}; `fleetfoot list` shows all names")
}
