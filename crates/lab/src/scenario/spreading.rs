//! Initial Spreading whose rate can never be known is an error: its rate is written, measured, or remembered by another group.

use super::document::Node;
use super::error::Error;
use super::read::{Section, join};
use fleetfoot_core::tcp::{Config, InitialSpreading};
use fleetfoot_sim::spec::{GroupSpec, NodeId};
use std::collections::BTreeSet;

/// Known spreading needs its rate written.
pub(super) fn rate(config: &Config, section: &Section) -> Result<(), Error> {
    if config.initial_spreading != InitialSpreading::Known || section.table.get("spreading_rate").is_some() {
        return Ok(());
    }
    let field = section.need_named("initial_spreading")?;
    let path = |name| join(&section.path, name);
    let (rate, kind) = (path("spreading_rate"), path("initial_spreading"));
    Err(field
        .fail("`known` spreading needs the bottleneck's rate, and `spreading_rate` is not written")
        .help(
            field.place(),
            format!("set {rate} to that rate, or {kind} = \"estimated\" to measure it"),
        ))
}

/// Estimated spreading needs a group that measures the rate. The groups stand at `nodes`, and what the file says for all of them
/// at `shared`.
pub(super) fn groups(specs: &[GroupSpec], nodes: &[Node], shared: Option<&Node>) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use crate::scenario::needs::tests::{file, refused, text};
    use crate::scenario::{Scenario, Setting};

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
}
