//! Switches that need others: what would be read and have no effect is refused, at its place and with what to set.

use super::document::{Node, Table, Value};
use super::error::Error;
use super::keys;
use super::path::Setting;
use super::read::{Section, join};
use super::reference::type_of;
use super::resolve::Resolved;
use fleetfoot_core::tcp::{Config, EcnCodepoint, EcnEcho, InitialSpreading, OnlyWith, Profile, Switch};
use fleetfoot_sim::spec::{GroupSpec, NodeId};
use std::collections::BTreeSet;

/// What a congestion control needs besides its name.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Its name in the registry.
    pub controller: &'static str,
    /// A key and its value, and what it is for.
    pub keys: &'static [(&'static str, &'static str, &'static str)],
}

/// Of every congestion control that needs something.
pub const NEEDS: &[Needs] = &[
    Needs {
        controller: "prague",
        keys: &[
            ("tcp.ecn", "true", "marks are what it answers; required"),
            (
                "tcp.ecn_codepoint",
                "\"ect1\"",
                "the queue of L4S; required, and set by itself",
            ),
            (
                "tcp.ecn_echo",
                "\"rfc8257\"",
                "every mark is reported; required, and set by itself",
            ),
            (
                "network.bottleneck.queue.kind",
                "\"dualpi2\"",
                "a queue that marks early",
            ),
        ],
    },
    Needs {
        controller: "dctcp",
        keys: &[
            ("tcp.ecn", "true", "marks are what it answers; required"),
            (
                "tcp.ecn_echo",
                "\"rfc8257\"",
                "every mark is reported; so unless written otherwise",
            ),
            (
                "network.bottleneck.queue.ce_threshold",
                "1/7 of the RTT",
                "a queue that marks early; a key of codel and fq-codel",
            ),
        ],
    },
    Needs {
        controller: "cdg",
        keys: &[(
            "tcp.timestamps",
            "true",
            "with gradient = \"one-way\" only; required then",
        )],
    },
];

/// What the congestion control called `name` needs, if anything.
pub fn needs(name: &str) -> Option<&'static Needs> {
    NEEDS.iter().find(|needs| needs.controller == name)
}

/// A switch of `[tcp]`, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchInfo {
    /// Its key under `[tcp]`.
    pub name: &'static str,
    /// What may be written.
    pub values: String,
    /// What it does.
    pub doc: &'static str,
    /// Its value in every profile, with the source.
    pub profiles: Vec<(&'static str, String, &'static str)>,
}

/// The switch called `name`, with or without `tcp.` before it.
pub fn switch(name: &str) -> Option<SwitchInfo> {
    let name = name.strip_prefix("tcp.").unwrap_or(name);
    let key = keys::TCP.iter().find(|key| key.name == name)?;
    let switch = Config::SWITCHES.iter().find(|switch| switch.key == Some(name));
    let cell = |switch: &Switch, profile: Profile| {
        let (value, source) = switch.cell(profile);
        (profile.name(), value, source)
    };
    Some(SwitchInfo {
        name: key.name,
        values: type_of(&key.kind),
        doc: key.doc,
        profiles: switch.map_or_else(Vec::new, |switch| {
            Profile::ALL.map(|profile| cell(switch, profile)).to_vec()
        }),
    })
}

/// Names of all switches of `[tcp]`.
pub fn switches() -> impl Iterator<Item = &'static str> {
    keys::TCP.iter().map(|key| key.name)
}

/// Switches that have an effect only where the switch `key` is one of some words, `word` among them.
pub fn switches_only_with(key: &str, word: &str) -> impl Iterator<Item = &'static str> {
    conditional()
        .filter(move |(_, with)| with.key == key && with.words.contains(&word))
        .map(|(name, _)| name)
}

/// The switches that have an effect only with another one.
fn conditional() -> impl Iterator<Item = (&'static str, OnlyWith)> {
    super::tcp::switches().filter_map(|(key, switch)| Some((key, switch.only_with?)))
}

/// A congestion control without what it needs.
pub(super) fn controller(config: &Config, section: &Section) -> Result<(), Error> {
    let name = config.congestion_control;
    let values = config.congestion_control_values.as_ref();
    let (wanted, value, reason) = match name {
        "prague" | "dctcp" if !config.ecn => (
            "ecn",
            "true",
            format!("`{name}` answers marks, and without ECN it would see none: it would be Reno"),
        ),
        "prague" if config.ecn_codepoint == EcnCodepoint::Ect0 => (
            "ecn_codepoint",
            "\"ect1\"",
            String::from(
                "`prague` needs ECT(1) (RFC 9331 4.1): with ECT(0) it would wait in the classic queue, whose marks ask for more than it gives; `dctcp` takes either",
            ),
        ),
        "prague" if config.ecn_echo == EcnEcho::Rfc3168 => (
            "ecn_echo",
            "\"rfc8257\"",
            String::from(
                "`prague` answers the share of marks (RFC 9331 4.2), and this echo tells only that there was one",
            ),
        ),
        "cdg"
            if !config.timestamps && values.is_some_and(|values| values.choice("gradient") == "one-way") =>
        {
            (
                "timestamps",
                "true",
                String::from(
                    "one-way delays are read from timestamps, which are off here: it would take round trips",
                ),
            )
        }
        _ => return Ok(()),
    };
    let written = section.table.get(wanted).is_some();
    let field = section.need_named(if written { wanted } else { "congestion_control" })?;
    let path = join(&section.path, wanted);
    Err(field
        .fail(reason)
        .help(field.place(), format!("set {path} = {value}")))
}

/// Known spreading that nobody tells the rate.
pub(super) fn spreading_rate(config: &Config, section: &Section) -> Result<(), Error> {
    if config.initial_spreading != InitialSpreading::Known || section.table.get("spreading_rate").is_some() {
        return Ok(());
    }
    let field = section.need_named("initial_spreading")?;
    let path = |name| join(&section.path, name);
    let (rate, kind) = (path("spreading_rate"), path("initial_spreading"));
    Err(field
        .fail("`known` spreading is told the bottleneck's rate, and `spreading_rate` is not written")
        .help(
            field.place(),
            format!("set {rate} to that rate, or {kind} = \"estimated\" to measure it"),
        ))
}

/// Estimated spreading that can never have a rate: the groups are those of `nodes`, with what the file says for all at `shared`.
pub(super) fn spreading_of_groups(
    specs: &[GroupSpec],
    nodes: &[Node],
    shared: Option<&Node>,
) -> Result<(), Error> {
    for (spec, node) in specs.iter().zip(nodes) {
        let config = &spec.sender;
        if config.initial_spreading != InitialSpreading::Estimated || config.measures_path_rate() {
            continue;
        }
        let remembers = config.remembers_paths();
        let tells = |other: &GroupSpec| {
            other.sender.measures_path_rate() && other.sender.remembers_paths() && meet(spec, other)
        };
        if remembers && specs.iter().any(tells) {
            continue;
        }
        let measured = match config.spreading_pair {
            false => "`spreading_pair` is off",
            true => "`sack1_recovery` measures none",
        };
        let told = match remembers {
            false => "`spreading_memory` is 0 s",
            true => "no other group between these hosts fills `spreading_memory`",
        };
        let written = |table: Option<&Node>, path: &str| {
            let table = table?.as_table()?;
            let names = ["spreading_pair", "sack1_recovery", "initial_spreading"];
            let name = names.iter().find(|name| table.get(name).is_some())?;
            Some((table.get(name)?.place.clone(), join(path, name)))
        };
        let own = node.as_table().and_then(|table| table.get("tcp"));
        let (place, path) = written(own, &format!("traffic.{}.tcp", spec.name))
            .or_else(|| written(shared, "tcp"))
            .unwrap_or_else(|| (node.place.clone(), join("traffic", &spec.name)));
        return Err(Error::at(
            &place,
            &path,
            format!("estimated spreading would never have a rate: {measured}, and {told}"),
        )
        .help(
            &place,
            "set `spreading_pair` = true without `sack1_recovery`, or `initial_spreading` = \"bounded\", which it would be",
        ));
    }
    Ok(())
}

/// Whether some connections of both groups have the same ends.
fn meet(one: &GroupSpec, other: &GroupSpec) -> bool {
    let ends = |&(a, b): &(NodeId, NodeId)| (a.min(b), a.max(b));
    let of_one: BTreeSet<_> = one.pairs.iter().map(ends).collect();
    other.pairs.iter().any(|pair| of_one.contains(&ends(pair)))
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
    Ok(())
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
    conditional().find(|(name, _)| *name == key)
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
mod tests {
    use super::{conditional, switch, switches_only_with};
    use crate::scenario::{Error, Scenario, Setting};
    use fleetfoot_core::tcp::EcnCodepoint;

    fn text(tcp: &str, group: &str, rest: &str) -> String {
        format!(
            "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n\
             [tcp]\nprofile = \"linux\"\n{tcp}\n\
             [[traffic]]\nname = \"short\"\nkind = \"transfer\"\nsize = \"15 kB\"\narrivals = {{ dist = \"poisson\", rate = \"1 per second\" }}\n{group}\n{rest}\n"
        )
    }

    fn file(tcp: &str, group: &str, rest: &str) -> Result<Scenario, Error> {
        Scenario::parse("test.toml", &text(tcp, group, rest))
    }

    fn refused(tcp: &str, group: &str, key: &str, line: u32, help: &str) {
        let error = file(tcp, group, "").expect_err(tcp);
        assert_eq!((&*error.key, error.line), (key, line), "{error}");
        assert!(error.help.iter().any(|text| text.contains(help)), "{error}");
    }

    #[test]
    fn a_controller_without_what_it_needs_is_refused() {
        for name in ["prague", "dctcp"] {
            let tcp = format!("congestion_control = \"{name}\"");
            refused(&tcp, "", "tcp.congestion_control", 6, "set tcp.ecn = true");
            refused(
                &format!("{tcp}\necn = false"),
                "",
                "tcp.ecn",
                7,
                "set tcp.ecn = true",
            );
            file(&format!("{tcp}\necn = true"), "", "").expect("complete");
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
        let error = file("", "tcp = { congestion_control = \"prague\" }", "").expect_err("no ECN");
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
    fn known_spreading_without_a_rate_is_refused() {
        let known = "initial_spreading = \"known\"";
        refused(known, "", "tcp.initial_spreading", 6, "set tcp.spreading_rate to");
        refused(
            "",
            &format!("tcp = {{ {known} }}"),
            "traffic.short.tcp.initial_spreading",
            12,
            "traffic.short.tcp.spreading_rate",
        );
        let rate = "spreading_rate = \"5 Mbit/s\"";
        file(rate, &format!("tcp = {{ {known} }}"), "").expect("told by the file");
        file("", &format!("tcp = {{ {known}, {rate} }}"), "").expect("told by the group");
        // A variant and a setting.
        let variant = "[[variant]]\nname = \"told\"\nset = { \"tcp.initial_spreading\" = \"known\" }";
        let error = file("", "", variant).expect_err("not told");
        assert!(
            error.message.contains("`spreading_rate` is not written"),
            "{error}"
        );
        file(rate, "", variant).expect("told by the file");
        let set = Setting::from_origin("--set").with("tcp.initial_spreading", "known");
        let scenario = file("", "", "").expect("nothing is spread");
        let error = scenario.resolve(&set).expect_err("not told");
        assert!(
            error.message.contains("`spreading_rate` is not written"),
            "{error}"
        );
        scenario
            .resolve(&set.with("tcp.spreading_rate", "5 Mbit/s"))
            .expect("told");
    }

    #[test]
    fn estimated_spreading_that_can_never_have_a_rate_is_refused() {
        let estimated = "initial_spreading = \"estimated\"";
        let blind = format!("{estimated}\nspreading_pair = false");
        let refused = |tcp: &str, group: &str, rest: &str, key: &str, line: u32, words: &str| {
            let error = file(tcp, group, rest).expect_err(words);
            assert_eq!((&*error.key, error.line), (key, line), "{error}");
            assert!(error.message.contains(words), "{error}");
        };
        let forgetful = format!("{blind}\nspreading_memory = \"0 s\"");
        let words = "`spreading_pair` is off, and `spreading_memory` is 0 s";
        refused(&forgetful, "", "", "tcp.spreading_pair", 7, words);
        let words = "`spreading_pair` is off, and no other group";
        refused(&blind, "", "", "tcp.spreading_pair", 7, words);
        let own = "tcp = { initial_spreading = \"estimated\", spreading_pair = false }";
        refused("", own, "", "traffic.short.tcp.spreading_pair", 12, words);
        // Recovery as in ns-2 measures nothing either.
        let ns2 = format!(
            "{estimated}\nsack1_recovery = true\nrack = false\nprr = \"off\"\ntail_loss_probe = \"off\"\nearly_retransmit = \"off\""
        );
        refused(
            &ns2,
            "",
            "",
            "tcp.sack1_recovery",
            7,
            "`sack1_recovery` measures none",
        );
        // Either a pair or a memory that others fill is enough.
        file(&format!("{estimated}\nspreading_memory = \"0 s\""), "", "").expect("a pair");
        let other = |pair: bool, place: &str| {
            format!(
                "[[traffic]]\nname = \"other\"\nkind = \"transfer\"\nsize = \"15 kB\"\narrivals = {{ dist = \"poisson\", rate = \"1 per second\" }}\n{place}\n\
                 tcp = {{ initial_spreading = \"estimated\", spreading_pair = {pair} }}"
            )
        };
        file("", own, &other(true, "")).expect("the other group measures");
        refused(
            "",
            own,
            &other(false, ""),
            "traffic.short.tcp.spreading_pair",
            12,
            words,
        );
        let two_pairs = |at: u32| {
            let ends = |at: u32| format!("from = {at}\nto = {at}");
            let text = text("", &format!("{own}\n{}", ends(0)), &other(true, &ends(at)));
            Scenario::parse(
                "test.toml",
                &text.replace("\"dumbbell\"", "\"dumbbell\"\npairs = 2"),
            )
        };
        two_pairs(0).expect("the same hosts");
        let error = two_pairs(1).expect_err("other hosts");
        assert!(error.message.contains(words), "{error}");
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

    #[test]
    fn switches_that_need_another_one_name_its_key_and_words() {
        for (name, with) in conditional() {
            let other = switch(with.key).expect(name);
            for word in with.words {
                assert!(other.values.contains(&format!("`{word}`")), "{name}: {word}");
            }
        }
        assert_eq!(
            switches_only_with("initial_spreading", "known").collect::<Vec<_>>(),
            [
                "spreading_jiffy",
                "spreading_gap",
                "spreading_rate",
                "spreading_jitter_percent"
            ]
        );
        assert_eq!(switch("tcp.pacing"), switch("pacing"));
        assert_eq!(switch("nothing"), None);
    }

    /// Every switch of the core's table has its sources here, so that `explain` can print them.
    #[test]
    fn a_switch_tells_its_value_in_every_profile() {
        let pacing = switch("pacing").expect("a switch");
        assert_eq!(pacing.profiles.len(), 6);
        assert!(pacing.values.contains("`full`"), "{}", pacing.values);
        assert_eq!(pacing.profiles[4].0, "linux");
    }
}
