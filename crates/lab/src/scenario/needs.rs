//! What mechanisms and switches need: a mechanism without it, and a switch without effect, are errors at their place, with what
//! to write instead. The needs themselves stand with the mechanisms, as [`Need`](fleetfoot_core::registry::Need)s of their
//! registry entries, and in the table of switches, as [`OnlyWith`].

use super::document::{Node, Table, Value};
use super::error::Error;
use super::path::Setting;
use super::read::{Section, join};
use super::resolve::Resolved;
use super::tcp;
use fleetfoot_core::tcp::{Config, OnlyWith};
use fleetfoot_sim::spec::{GroupSpec, TrafficKind, Transport};

/// Sets what the congestion control needs and sets by itself, and is an error if anything it needs is missing.
pub(super) fn controller(config: &mut Config, section: &Section) -> Result<(), Error> {
    let needs =
        crate::plugins::controller(config.congestion_control).map_or(&[][..], |entry| (entry.needs)());
    for need in needs {
        let values = config.congestion_control_values.as_ref();
        let chosen = |(name, word)| values.is_some_and(|values| values.choice(name) == word);
        let Some(key) = need
            .path
            .strip_prefix("tcp.")
            .filter(|_| need.when.is_none_or(chosen))
        else {
            continue;
        };
        let written = section.table.get(key).is_some();
        let is_met = |config: &Config| {
            let values = [Some(need.value), need.or];
            let shown = tcp::switches().find(|(name, _)| *name == key);
            let shown = shown.map(|(_, switch)| switch.shown(config));
            let mut words = values.into_iter().flatten().map(|value| value.trim_matches('"'));
            words.any(|word| shown.as_deref() == Some(word))
        };
        if need.by_itself && !written && !is_met(config) {
            tcp::set(config, key, need.value)?;
        }
        if let Some(reason) = need.refusal.filter(|_| !is_met(config)) {
            let field = section.need_named(if written { key } else { "congestion_control" })?;
            let path = join(&section.path, key);
            return Err(field
                .fail(reason)
                .help(field.place(), format!("set {path} = {}", need.value)));
        }
    }
    Ok(())
}

/// Switches that a file writes although no group, variant or sweep of it writes what gives them an effect.
pub(super) fn effects_in_file(document: &Table) -> Result<(), Error> {
    let (mut chosen, mut conditional) = (Vec::new(), Vec::new());
    walk(document, &mut |key, node| {
        let last = key.rsplit('.').next().unwrap_or(key);
        conditional.extend(only_with(last).map(|(name, with)| (name, with, node.clone())));
        chosen.push((last.to_owned(), node.as_text().unwrap_or("").to_owned()));
    });
    for (name, with, node) in conditional {
        let effective = |(key, word): &(String, String)| {
            // The path of a sweep: any value may come.
            let swept = word.ends_with(with.key);
            swept || key == with.key && (word.is_empty() || with.words.contains(&word.as_str()))
        };
        if !chosen.iter().any(effective) {
            return Err(without_effect(name, with, &node));
        }
    }
    effects_in_traffic(document)
}

/// Keys of traffic groups that a file writes although their kind has nothing that they act on; unless the file changes the kind
/// somewhere.
fn effects_in_traffic(document: &Table) -> Result<(), Error> {
    let mut written = Vec::new();
    walk(document, &mut |key, node| {
        written.extend(
            [Some(key), node.as_text()]
                .into_iter()
                .flatten()
                .map(str::to_owned),
        );
    });
    let Some(Value::List(groups)) = document.get("traffic").map(|node| &node.value) else {
        return Ok(());
    };
    for (group, name) in groups.iter().filter_map(|node| node.as_table().zip(node.name())) {
        let kind = group.text("kind").and_then(TrafficKind::by_name);
        let own_kind = format!("traffic.{name}.kind");
        let Some(kind) = kind.filter(|_| !written.iter().any(|word| word.ends_with(&own_kind))) else {
            continue;
        };
        for key in ["from", "to", "pairing", "direction", "spread"] {
            if let Some(node) = group.get(key).filter(|_| kind.facts().lists_hosts) {
                return Err(idle(
                    node,
                    name,
                    key,
                    "the file says of each transfer who sends to whom",
                ));
            }
        }
        if let Some(node) = group.get("start_spacing") {
            let own = format!("nothing of `{}` starts one after the other", kind.name());
            let reason = match kind {
                TrafficKind::Tfrc if group.get("arrivals").is_some() => "`arrivals` says when streams start",
                kind if !kind.facts().has_members => &own,
                _ => "",
            };
            if !reason.is_empty() {
                return Err(idle(node, name, "start_spacing", reason));
            }
        }
        let key_frames = written.iter().any(|word| word.ends_with("key_frame_every"));
        if let Some(node) = group.get("key_frame").filter(|_| !key_frames) {
            return Err(idle(
                node,
                name,
                "key_frame",
                "`key_frame_every` is nowhere written",
            ));
        }
        // How a host hands up what arrives is no matter of TCP alone.
        let own = group.get("tcp").and_then(Node::as_table);
        let switch = own.and_then(|own| own.entries.iter().find(|entry| entry.key != "host_coalesce"));
        if let Some(entry) = switch
            && matches!(kind.facts().transport, Transport::Datagrams | Transport::Tfrc)
        {
            let reason = format!("`{}` does not use TCP", kind.name());
            return Err(idle(&entry.node, name, &format!("tcp.{}", entry.key), &reason));
        }
    }
    Ok(())
}

/// The mistake that a key of a traffic group does nothing.
fn idle(node: &Node, group: &str, key: &str, reason: &str) -> Error {
    let last = key.rsplit('.').next().unwrap_or(key);
    let path = join(&join("traffic", group), key);
    let message = format!("`{last}` has no effect: {reason}");
    Error::at(&node.place, &path, message).help(&node.place, "leave it out")
}

/// Switches that a setting adds although nothing gives them an effect in the run that it makes.
pub(super) fn effects_in_run(set: &Setting, resolved: &Resolved) -> Result<(), Error> {
    for (path, place) in set.places() {
        let last = path.rsplit('.').next().unwrap_or(path);
        let Some((name, with)) = only_with(last) else {
            continue;
        };
        let other = Config::SWITCHES
            .iter()
            .find(|switch| switch.key == Some(with.key));
        let effective = |group: &GroupSpec| {
            other.is_some_and(|other| with.words.contains(&other.shown(&group.sender).as_str()))
        };
        if !resolved.spec.groups.iter().any(effective) {
            return Err(without_effect(name, with, &place));
        }
    }
    Ok(())
}

fn only_with(key: &str) -> Option<(&'static str, OnlyWith)> {
    tcp::conditional().find(|(name, _)| *name == key)
}

fn without_effect(name: &str, with: OnlyWith, node: &Node) -> Error {
    let words: Vec<String> = with.words.iter().map(|word| format!("\"{word}\"")).collect();
    let (key, words) = (with.key, words.join(" or "));
    Error::at(
        &node.place,
        &join("tcp", name),
        format!("`{name}` has no effect: {key} is nowhere {words}"),
    )
    .help(&node.place, format!("set tcp.{key} = {words}, or leave it out"))
}

/// Every value of the tree that stands under a key.
fn walk(table: &Table, see: &mut impl FnMut(&str, &Node)) {
    for entry in &table.entries {
        see(&entry.key, &entry.node);
        descend(&entry.node, see);
    }
}

fn descend(node: &Node, see: &mut impl FnMut(&str, &Node)) {
    match &node.value {
        Value::Table(table) => walk(table, see),
        Value::List(nodes) => {
            for node in nodes {
                descend(node, see);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::scenario::{Error, Scenario, Setting};
    use fleetfoot_core::tcp::{EcnCodepoint, EcnFeedback};

    pub(in crate::scenario) fn text(tcp: &str, group: &str, rest: &str) -> String {
        format!(
            "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n\
             [tcp]\nprofile = \"linux\"\n{tcp}\n\
             [[traffic]]\nname = \"short\"\nkind = \"transfer\"\nsize = \"15 kB\"\narrivals = {{ dist = \"poisson\", rate = \"1 per second\" }}\n{group}\n{rest}\n"
        )
    }

    pub(in crate::scenario) fn file(tcp: &str, group: &str, rest: &str) -> Result<Scenario, Error> {
        Scenario::parse("test.toml", &text(tcp, group, rest))
    }

    pub(in crate::scenario) fn refused(tcp: &str, group: &str, key: &str, line: u32, help: &str) {
        let error = file(tcp, group, "").expect_err(tcp);
        assert_eq!((&*error.key, error.line), (key, line), "{error}");
        assert!(error.help.iter().any(|text| text.contains(help)), "{error}");
    }

    #[test]
    fn a_controller_without_what_it_needs_is_refused() {
        for name in ["prague", "dctcp"] {
            let tcp = format!("congestion_control = \"{name}\"");
            refused(
                &format!("{tcp}\necn = false"),
                "",
                "tcp.ecn",
                7,
                "set tcp.ecn = \"accurate\"",
            );
            // What is written stays; where nothing is, every mark is counted.
            for (written, feedback) in [
                ("", EcnFeedback::Accurate),
                ("\necn = true", EcnFeedback::Classic),
                ("\necn = \"accurate\"", EcnFeedback::Accurate),
            ] {
                let scenario = file(&format!("{tcp}{written}"), "", "").expect("complete");
                let resolved = scenario.resolve(&Setting::none()).expect("complete");
                assert_eq!(resolved.spec.groups[0].sender.ecn, feedback);
                assert_eq!(resolved.spec.groups[0].receiver.ecn, feedback);
            }
        }
        let one_way = "congestion_control = { kind = \"cdg\", gradient = \"one-way\" }";
        refused(
            &format!("{one_way}\ntimestamps = false"),
            "",
            "tcp.timestamps",
            7,
            "set tcp.timestamps = true",
        );
        file(one_way, "", "").expect("Linux has timestamps");
        file("congestion_control = \"cdg\"\ntimestamps = false", "", "").expect("round trips need none");
        // A group of its own, and what a mechanism turns off.
        let group = "tcp = { congestion_control = \"prague\", ecn = false }";
        let error = file("", group, "").expect_err("no ECN");
        assert!(error.message.contains("answers marks"), "{error}");
        let scenario = file("congestion_control = \"prague\"\necn = true", "", "").expect("complete");
        let set = Setting::from_origin("--set").with("tcp.ecn", false);
        let error = scenario.resolve(&set).expect_err("no ECN");
        assert!(error.message.contains("answers marks"), "{error}");
    }

    #[test]
    fn prague_asks_for_the_queue_of_l4s_unless_configured_otherwise() {
        let codepoint = |tcp: &str| {
            let scenario = file(tcp, "", "").expect("complete");
            let resolved = scenario.resolve(&Setting::none()).expect("complete");
            resolved.spec.groups[0].sender.ecn_codepoint
        };
        let prague = "congestion_control = \"prague\"\necn = true";
        assert_eq!(codepoint(prague), EcnCodepoint::Ect1);
        let written = "ecn_codepoint = \"ect1\"\necn_echo = \"rfc8257\"";
        assert_eq!(codepoint(&format!("{prague}\n{written}")), EcnCodepoint::Ect1);
        assert_eq!(
            codepoint("congestion_control = \"dctcp\"\necn = true"),
            EcnCodepoint::Ect0
        );
    }

    #[test]
    fn prague_with_the_codepoint_or_the_echo_of_classic_ecn_is_refused() {
        for (key, classic, needed) in [
            ("ecn_codepoint", "ect0", "ect1"),
            ("ecn_echo", "rfc3168", "rfc8257"),
        ] {
            let written = format!("{key} = \"{classic}\"");
            let path = format!("tcp.{key}");
            let help = format!("set tcp.{key} = \"{needed}\"");
            let prague = "congestion_control = \"prague\"\necn = true";
            refused(&format!("{prague}\n{written}"), "", &path, 8, &help);
            // Of the file, with the controller of a group; DCTCP and CUBIC take it.
            let group = |name| format!("tcp = {{ congestion_control = \"{name}\", ecn = true }}");
            let help = format!("set traffic.short.tcp.{key} = \"{needed}\"");
            refused(
                &written,
                &group("prague"),
                &format!("traffic.short.{path}"),
                6,
                &help,
            );
            for other in ["dctcp", "cubic"] {
                file(&written, &group(other), "").expect(other);
            }
        }
        // What a setting adds.
        let scenario = file("congestion_control = \"prague\"\necn = true", "", "").expect("complete");
        let set = Setting::from_origin("--set").with("tcp.ecn_codepoint", "ect0");
        let error = scenario.resolve(&set).expect_err("classic");
        assert!(error.message.contains("RFC 9331 4.1"), "{error}");
    }

    #[test]
    fn a_switch_of_spreading_that_nobody_looks_at_is_refused() {
        let rate = "spreading_rate = \"5 Mbit/s\"";
        for kind in ["off", "variable", "bounded", "estimated"] {
            let tcp = format!("initial_spreading = \"{kind}\"\n{rate}");
            refused(
                &tcp,
                "",
                "tcp.spreading_rate",
                7,
                "tcp.initial_spreading = \"known\"",
            );
        }
        refused(rate, "", "tcp.spreading_rate", 6, "\"known\"");
        refused(
            "spreading_phase = true",
            "",
            "tcp.spreading_phase",
            6,
            "\"estimated\"",
        );
        refused(
            "spreading_jitter_percent = 50",
            "",
            "tcp.spreading_jitter_percent",
            6,
            "\"variable\" or",
        );
        file(&format!("initial_spreading = \"known\"\n{rate}"), "", "").expect("looked at");
        // In a group, a variant or a sweep: whoever writes the kind.
        file(rate, "tcp = { initial_spreading = \"known\" }", "").expect("looked at by a group");
        let variant = "[[variant]]\nname = \"told\"\nset = { \"tcp.initial_spreading\" = \"known\" }";
        let scenario = file(rate, "", variant).expect("looked at by a variant");
        // What a setting adds must count in the run that it makes.
        let alone = Setting::from_origin("--set").with("tcp.spreading_gap", "2 ms");
        let error = scenario.resolve(&alone).expect_err("nothing is spread");
        assert!(error.message.contains("`spreading_gap` has no effect"), "{error}");
        let both = alone.with("tcp.initial_spreading", "bounded");
        scenario.resolve(&both).expect("spread");
    }
}
