//! The reference page of scenario files, made from the list of keys.

use super::keys::{self, Default, Dimension, Key, Kind, KindTable};
use super::quantity;
use crate::plugins;
use fleetfoot_core::parameter::{Parameter, ParameterKind, Value as ParameterValue};
use fleetfoot_core::queue::Limit;
use fleetfoot_core::registry::Entry;
use std::fmt::Write as _;

/// The reference page of scenario files, as Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Scenario reference\n\n\
         Every key of a scenario file with its type, default and meaning. This page is generated from the list that the\n\
         reader itself uses. Keys are checked: an unknown one is refused with its place and the nearest valid key.\n\n\
         ## Quantities\n\n",
    );
    for line in [
        quantity::DURATION_HELP,
        quantity::BYTES_HELP,
        quantity::RATE_HELP,
        quantity::FREQUENCY_HELP,
        quantity::LIMIT_HELP,
    ] {
        let _ = writeln!(page, "- {line}");
    }
    page.push_str(
        "\n## Paths\n\n\
         A variant's `set` and a mechanism name a key by its path: `network.bottleneck.queue.kind`.\n\
         `traffic.NAME`, `link.NAME` and `node.NAME` select an entry by its name. Setting a `kind` keeps only the keys that every kind\n\
         has (`limit` and `ecn` of a queue, the common keys of traffic) and drops the rest. A table replaces the whole\n\
         table. A setting that changes nothing is an error.\n\n\
         `extends = \"other.toml\"`: tables merge, named entries merge by name, other lists are replaced.\n\n## The file\n\n",
    );
    table(&mut page, keys::FILE);
    kinds(&mut page, "network", &keys::NETWORK);
    section(
        &mut page,
        "Links",
        "`access`, `bottleneck`, `egress` and `[[link]]` entries.",
        keys::LINK,
    );
    section(
        &mut page,
        "Rates that change",
        "`rate = { trace = \"FILE\" }`: what a mobile line lets through, as recorded by mahimahi.",
        keys::TRACE,
    );
    section(
        &mut page,
        "[[link]]",
        "All links of a graph, and what single links of other networks have of their own.",
        keys::LINK_ENTRY,
    );
    page.push_str(GRAPH);
    section(&mut page, "Nodes", "`[[node]]` entries.", keys::NODE);
    section(&mut page, "The way back of a link", "`reverse`.", keys::REVERSE);
    section(&mut page, "Reordering", "`reorder`.", keys::REORDER);
    section(&mut page, "Link-layer retransmission", "`arq`.", keys::ARQ);
    section(&mut page, "Correcting codes", "`fec`.", keys::FEC);
    kinds(&mut page, "loss", &keys::LOSS);
    page.push_str("\n## Queues\n\n`queue = { kind = ..., ... }`, one of:\n");
    entries(&mut page, &plugins::queues());
    section(
        &mut page,
        "[tcp]",
        "Switches of an endpoint. What is not written is as the profile says.",
        keys::TCP,
    );
    kinds(&mut page, "delayed_ack", &keys::DELAYED_ACK);
    section(
        &mut page,
        "Redundant data bundling",
        "`rdb = { ... }`; \"one\" is the table with its defaults, \"all\" the same with `max_segments = 0`. What it does and costs: [thin-streams.md](thin-streams.md).",
        keys::RDB,
    );
    section(
        &mut page,
        "Super-packets",
        "`super_packets = { ... }`; a word is the table with this mode. How to use them: [superpackets.md](superpackets.md).",
        keys::SUPER_PACKETS,
    );
    page.push_str("\n## Congestion controls\n\n`congestion_control = \"NAME\"` or `{ kind = \"NAME\", ... }`, one of:\n");
    entries(&mut page, &plugins::controllers());
    section(
        &mut page,
        "[[traffic]]",
        "Keys of every kind.",
        keys::TRAFFIC_COMMON,
    );
    section(
        &mut page,
        "Relays",
        "`relay = { ... }`; a name is the table with this `node`. What it is good for: [xlframes.md](xlframes.md).",
        keys::RELAY,
    );
    kinds(&mut page, "traffic", &keys::TRAFFIC);
    kinds(&mut page, "arrivals", &keys::ARRIVALS);
    kinds(&mut page, "sizes", &keys::SIZE_DISTRIBUTION);
    page.push_str(
        "\nTimes take the same distributions, without named tables.\n\n### Named size distributions\n\n",
    );
    for table in crate::workload::TABLES {
        let source = table.source();
        let _ = writeln!(
            page,
            "- `{}`: {}",
            table.name,
            source.trim_start_matches("Source: ")
        );
    }
    section(
        &mut page,
        "[[variant]]",
        "What to compare with the file as it stands.",
        keys::VARIANT,
    );
    section(&mut page, "[run]", "How long and how often.", keys::RUN);
    section(
        &mut page,
        "[import]",
        "What `fleetfoot import` says of a scenario that it made of a capture. See [import](import.md).",
        keys::IMPORT,
    );
    section(
        &mut page,
        "Congestion controls that an import tried",
        "Entries of `import.controllers`.",
        keys::CONTROLLER,
    );
    section(
        &mut page,
        "[figure]",
        "What was published; `[figure.source]`, `[figure.sweep]` and `[figure.quick]` are tables in it. See [reproduce](reproduce.md).",
        keys::FIGURE,
    );
    section(
        &mut page,
        "[figure.source]",
        "Where it was published.",
        keys::SOURCE,
    );
    section(
        &mut page,
        "[figure.quick]",
        "What `--quick` runs instead.",
        keys::QUICK,
    );
    section(
        &mut page,
        "[[check]]",
        "What of a figure is checked.",
        keys::CHECK,
    );
    section(&mut page, "What a check divides by", "`per`.", keys::PER);
    section(
        &mut page,
        "What a check is relative to",
        "`relative_to`; a name is the table with this `variant`.",
        keys::RELATIVE,
    );
    section(&mut page, "What a check expects", "`expect`.", keys::EXPECT);
    section(
        &mut page,
        "[[plot]]",
        "How a figure is drawn again, in the report of `reproduce` and with `--figures`.",
        keys::PLOT,
    );
    page.push_str("\n## Analyses\n\n`analysis = \"NAME\"` or `{ kind = \"NAME\", ... }`, one of:\n");
    for analysis in crate::analysis::ENTRIES {
        entries(&mut page, &[&analysis.entry]);
    }
    page
}

/// A graph, for the page.
const GRAPH: &str = r#"
A graph, for example, of two hosts on either side of a satellite:

```toml
[network]
kind = "graph"
hosts = ["office", "server"]
routers = ["terminal", "gateway"]

[[link]]
name = "lan"
from = "office"
to = "terminal"

[[link]]
name = "beam"
from = "terminal"
to = "gateway"
rate = "5 Mbit/s"
delay = "270 ms"
reverse = { rate = "20 Mbit/s" }

[[link]]
name = "backbone"
from = "gateway"
to = "server"

[[traffic]]
kind = "bulk"
from = "server"
to = "office"
```
"#;

fn section(page: &mut String, title: &str, words: &str, keys: &[Key]) {
    let _ = write!(page, "\n## {title}\n\n{words}\n\n");
    table(page, keys);
}

fn kinds(page: &mut String, title: &str, tagged: &KindTable) {
    let _ = write!(page, "\n## Kinds of {title}\n");
    for kind in tagged.kinds {
        let _ = write!(
            page,
            "\n### `{} = \"{}\"`\n\n{}\n\n",
            tagged.tag, kind.name, kind.doc
        );
        if !kind.keys.is_empty() {
            table(page, kind.keys);
        }
    }
}

fn table(page: &mut String, keys: &[Key]) {
    page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    for key in keys {
        let default = match key.default {
            Default::Required => String::from("required"),
            Default::Value(literal) => format!("`{literal}`"),
            Default::Described(words) => words.to_owned(),
        };
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {} |",
            key.name,
            type_of(&key.kind),
            key.doc
        );
    }
}

fn entries(page: &mut String, entries: &[&Entry]) {
    for entry in entries {
        let first: Vec<&str> = entry.document().take_while(|line| !line.is_empty()).collect();
        let first = first.join("\n");
        let _ = write!(page, "\n### `kind = \"{}\"`\n\n{first}\n\n", entry.name);
        if entry.parameters.is_empty() {
            continue;
        }
        page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
        for parameter in entry.parameters {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                parameter.name,
                parameter_type(parameter.kind),
                parameter_default(parameter),
                parameter.doc
            );
        }
    }
}

pub(super) fn type_of(kind: &Kind) -> String {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match *kind {
        Kind::Text | Kind::Line | Kind::Name => "text".into(),
        Kind::Flag => "flag".into(),
        Kind::Integer(low, high) if high >= i64::MAX as u64 => format!("whole number from {low}"),
        Kind::Integer(low, high) => format!("whole number, {low} to {high}"),
        Kind::Number(low, high) => number_range(low, high),
        Kind::Probability => "probability".into(),
        Kind::Duration(..) | Kind::Quantity(Dimension::Time) => "time".into(),
        Kind::Bytes(..) | Kind::Quantity(Dimension::Bytes) => "amount".into(),
        Kind::Rate => "speed".into(),
        Kind::Frequency => "frequency".into(),
        Kind::Limit => "queue limit".into(),
        Kind::Choice(list) => words(list),
        Kind::Table(_) => "table".into(),
        Kind::Tagged(tagged) => format!("table with `{}`", tagged.tag),
        Kind::Map(_) => "table of free keys".into(),
        Kind::List(inner) => format!("list: {}", type_of(inner)),
        Kind::OneOrMore(inner) => format!("{}, or a list", type_of(inner)),
        Kind::Either(_) | Kind::Forms(_) => {
            let forms: Vec<String> = kind.forms().iter().map(type_of).collect();
            forms.join(" or ")
        }
        Kind::Queue => "a queue".into(),
        Kind::CongestionControl => "a congestion control".into(),
        Kind::Distribution(Dimension::Bytes) => "amount or distribution".into(),
        Kind::Distribution(Dimension::Time) => "time or distribution".into(),
        Kind::Point(_) => "`[value, probability]`".into(),
        Kind::Setting => "paths and values".into(),
        Kind::Any => "any value".into(),
        Kind::Analysis => "an analysis".into(),
    }
}

fn number_range(low: f64, high: f64) -> String {
    match (low <= f64::MIN, high >= f64::MAX) {
        (true, true) => String::from("any number"),
        (true, false) => format!("number up to {high}"),
        (false, true) => format!("number from {low}"),
        (false, false) => format!("number, {low} to {high}"),
    }
}

/// Type and permitted range of a parameter, in words.
pub fn parameter_type(kind: ParameterKind) -> String {
    match kind {
        ParameterKind::Limit => "queue limit".into(),
        ParameterKind::Duration(low, high) => format!("time, {low} to {high}"),
        ParameterKind::Bytes(low, high) => format!("amount, {low} to {high}"),
        ParameterKind::Rate(low, high) => format!("speed, {low} to {high}"),
        ParameterKind::Number(low, high) => number_range(low, high),
        ParameterKind::Integer(low, high) => format!("whole number, {low} to {high}"),
        ParameterKind::Flag => "flag".into(),
        ParameterKind::Choice(words) => type_of(&Kind::Choice(words)),
    }
}

pub(super) fn parameter_default(parameter: &Parameter) -> String {
    match parameter.default {
        ParameterValue::Auto => "automatic".into(),
        ParameterValue::Limit(Limit::Packets(packets)) => format!("`\"{packets} packets\"`"),
        ParameterValue::Limit(Limit::Bytes(bytes)) => format!("`\"{bytes}\"`"),
        ParameterValue::Limit(Limit::Unlimited) => "`\"unlimited\"`".into(),
        ParameterValue::Duration(span) => format!("`\"{span}\"`"),
        ParameterValue::Bytes(bytes) => format!("`\"{bytes}\"`"),
        ParameterValue::Rate(rate) => format!("`\"{rate}\"`"),
        ParameterValue::Number(number) => format!("`{number}`"),
        ParameterValue::Integer(integer) => format!("`{integer}`"),
        ParameterValue::Flag(flag) => format!("`{flag}`"),
        ParameterValue::Choice(word) => format!("`\"{word}\"`"),
    }
}
