//! Groups that pile up on few hosts while others carry nothing.
//!
//! Members of every group are dealt to its pairs from the first one on (`spread = "round-robin"`), so groups of few members all stand at
//! the first hosts. Where a queue is fair among hosts, or the links of hosts are no wider than the line, it matters that two hundred
//! described hosts are a few.

use super::Plan;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::spec::{GroupSpec, NodeId, PairPolicy, Spec, Traffic};
use std::collections::{BTreeMap, BTreeSet};

/// How many groups share the most crowded host, and how many hosts of theirs carry nothing; `None`: most hosts have traffic, or it does not
/// matter.
pub(super) fn note(plan: &Plan) -> Option<String> {
    let spec = &plan.described.spec;
    // How many groups have traffic at a host though they could have it at another one.
    let mut busy: BTreeMap<NodeId, usize> = BTreeMap::new();
    let (mut used, mut all) = (BTreeSet::new(), BTreeSet::new());
    for group in &spec.groups {
        let mut ends: BTreeSet<NodeId> = BTreeSet::new();
        for end in [|pair: &(NodeId, NodeId)| pair.0, |pair: &(NodeId, NodeId)| pair.1] {
            let possible: BTreeSet<NodeId> = group.pairs.iter().map(end).collect();
            let dealt: BTreeSet<NodeId> = group.pairs[..used_pairs(group)].iter().map(end).collect();
            used.extend(&dealt);
            if possible.len() > 1 {
                ends.extend(dealt);
            }
            all.extend(possible);
        }
        for end in ends {
            *busy.entry(end).or_default() += 1;
        }
    }
    let idle = all.difference(&used).count();
    // Of hosts that are equally crowded the first.
    let (&host, &groups) = busy.iter().rev().max_by_key(|(_, groups)| **groups)?;
    (idle > used.len() && groups > 1 && matters(plan, spec)).then(|| {
        format!(
            "{groups} groups share host {} while {idle} hosts carry nothing: every group begins at the first pair of hosts; `from`, `to` or \
             `spread = \"random\"` share them out",
            spec.nodes[host.0 as usize].name
        )
    })
}

/// How many of its pairs, from the first on, members of a group are dealt to.
fn used_pairs(group: &GroupSpec) -> usize {
    let all = group.pairs.len();
    let few = match (group.spread, &group.traffic) {
        (PairPolicy::Each | PairPolicy::Random, _) => None,
        (_, Traffic::Transfer { count, .. }) => *count,
        (_, traffic) => traffic.members(false).map(u64::from),
    };
    few.map_or(all, |few| all.min(few.try_into().unwrap_or(all)))
}

/// Whether it matters at which hosts traffic is: a queue is fair among them, or their links are no wider than twice the lines between routers.
fn matters(plan: &Plan, spec: &Spec) -> bool {
    let host = |node: NodeId| spec.nodes[node.0 as usize].host;
    let mut variants = plan.variants.iter().map(|planned| &planned.resolved.spec);
    let by_host = variants.any(|variant| {
        let mut links = variant.links.iter();
        links.any(|link| {
            link.queue_values
                .table()
                .iter()
                .any(|own| own.name == "isolation")
        })
    });
    let rates = |of_hosts: bool| {
        let links = spec.links.iter();
        let links = links.filter(move |link| (host(link.from) || host(link.to)) == of_hosts);
        links
            .map(|link| link.rate.mean())
            .filter(|rate| *rate != Rate::UNLIMITED)
    };
    let narrow = rates(true).map(Rate::bps).min();
    let line = rates(false).map(Rate::bps).max();
    by_host || narrow.zip(line).is_some_and(|(narrow, line)| narrow <= 2 * line)
}

#[cfg(test)]
mod tests {
    use super::note;
    use crate::compare::{Choice, Plan};
    use crate::scenario::Scenario;

    /// Forty tablets with links of 60 Mbit/s behind a line of 100: two uploads, five players and one call begin at the first ones.
    const SCHOOL: &str = r#"
[network]
kind = "dumbbell"
pairs = 40
egress = { rate = "60 Mbit/s", delay = "2 ms" }
bottleneck = { rate = "100 Mbit/s", delay = "3 ms" }
[[traffic]]
name = "films"
kind = "streaming"
bitrate = "3 Mbit/s"
count = 5
[[traffic]]
name = "call"
kind = "video-call"
count = 2
direction = "down"
[[traffic]]
name = "updates"
kind = "bulk"
count = 3
[run]
duration = "10 s"
"#;

    fn noted(text: &str) -> Option<String> {
        let scenario = Scenario::parse("school.toml", text).expect("it is correct");
        note(&Plan::baseline(scenario, &Choice::default()).expect("it resolves"))
    }

    #[test]
    fn groups_that_share_a_host_beside_idle_ones_are_noted() {
        // Five of forty pairs carry something, and a pair is two hosts.
        let note_of = noted(SCHOOL).expect("three groups begin at the first pair");
        assert!(
            note_of.starts_with("3 groups share host left-0 while 70 hosts carry nothing:"),
            "{note_of}"
        );
        let random = SCHOOL.replace("count = 5", "count = 5\nspread = \"random\"");
        assert_eq!(noted(&random), None, "any host may have a player");
        let wide = SCHOOL.replace(
            "egress = { rate = \"60 Mbit/s\"",
            "egress = { rate = \"1 Gbit/s\"",
        );
        assert_eq!(
            noted(&wide),
            None,
            "the links of hosts are no limit, and no queue is fair among hosts"
        );
        let cake = wide.replace(
            "delay = \"3 ms\" }",
            "delay = \"3 ms\", queue = { kind = \"cake\" } }",
        );
        assert!(noted(&cake).is_some(), "it is fair among hosts");
        // One server, and clients of each group's own: nothing else could send.
        let group = |name: &str, clients: &str| {
            format!(
                "[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\ncount = 1\nfrom = \"left-0\"\nto = [{clients}]\n"
            )
        };
        let clients = |from: usize| {
            let names: Vec<String> = (from..from + 5)
                .map(|number| format!("\"right-{number}\""))
                .collect();
            names.join(", ")
        };
        let network = &cake[..cake.find("[[traffic]]").expect("it has traffic")];
        let server = format!(
            "{network}{}{}",
            group("films", &clients(1)),
            group("updates", &clients(11))
        );
        assert_eq!(noted(&server), None);
    }
}
