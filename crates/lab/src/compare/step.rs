//! Phase effects: senders that keep step with a drop-tail queue or with each other, because nothing in the network varies the time of
//! a packet (docs/trust.md, Phase effects).

use super::Plan;
use super::place::Place;
use crate::scenario::Setting;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::spec::{GroupSpec, LinkRate, LinkSpec, NodeId, PairPolicy, Traffic};
use std::collections::BTreeSet;

/// What keeps step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// Connections that always have data are among it.
    long: bool,
    /// The group whose rounds have most senders, and their number.
    rounds: Option<(String, u64)>,
}

/// What keeps step where phase effects must be expected: long flows or rounds of several senders, a drop-tail bottleneck, and nothing that
/// varies a packet's time.
pub(super) fn of(plan: &Plan) -> Option<Steps> {
    let spec = &plan.described.spec;
    let varies = spec.links.iter().any(|link| {
        let constant = matches!(link.rate, LinkRate::Constant(_));
        let jitter = link.impairments.jitter.as_ref();
        !constant || jitter.is_some_and(|jitter| !matches!(jitter, Distribution::Constant(_)))
    });
    if varies || !plan.described.bottleneck_queues().contains(&"drop-tail") {
        return None;
    }
    let packet = packet_time(&spec.links);
    let rounds = spec.groups.iter().filter_map(|group| {
        let senders = senders_at_once(group, packet)?;
        (senders > 1).then(|| (group.name.clone(), senders))
    });
    let steps = Steps {
        long: spec.groups.iter().any(|group| group.traffic.facts().greedy),
        rounds: rounds.max_by_key(|(_, senders)| *senders),
    };
    (steps.long || steps.rounds.is_some()).then_some(steps)
}

/// What a full packet takes on the slowest of these links; nothing where no rate is known.
fn packet_time(links: &[LinkSpec]) -> Duration {
    let times = links.iter().map(|link| {
        let bps = link.rate.mean().bps().max(1);
        Duration::from_nanos(u64::from(link.mtu) * 8 * 1_000_000_000 / bps)
    });
    times.max().unwrap_or(Duration::ZERO)
}

/// Transfers of a round of incast that begin together, on all its pairs: less than the time of a packet apart.
fn senders_at_once(group: &GroupSpec, packet: Duration) -> Option<u64> {
    let Traffic::Incast { count, .. } = group.traffic else {
        return None;
    };
    let each = group.spread == PairPolicy::Each;
    let pairs = if each { group.pairs.len() as u64 } else { 1 };
    if group.start_spacing < packet {
        return Some(u64::from(count) * pairs);
    }
    if !group.spaced_by_host {
        return Some(pairs);
    }
    let begin = if each { group.pairs.len() } else { count as usize };
    let hosts: BTreeSet<NodeId> = group
        .pairs
        .iter()
        .take(begin)
        .map(|&(sender, _)| sender)
        .collect();
    Some(hosts.len() as u64)
}

impl Steps {
    /// Packets that come in the same step: one of each sender of a round.
    fn senders(&self) -> u64 {
        self.rounds.as_ref().map_or(1, |(_, senders)| *senders)
    }

    /// What a reader must know of it.
    pub(super) fn note(&self) -> String {
        match &self.rounds {
            None => String::from(
                "no link has jitter, so long flows keep step with the drop-tail queue and others take the losses; \
                 jitter of one packet time at the bottleneck (network.access.jitter) prevents it: docs/trust.md, Phase effects",
            ),
            Some((group, senders)) => format!(
                "no link has jitter, so the {senders} transfers of a round of {group} keep step and lose together, which hosts are never exact \
                 enough for; jitter of {senders} packet times of the bottleneck (network.access.jitter) prevents it: docs/trust.md, Phase effects"
            ),
        }
    }
}

/// The jitter to try at every access link, where nothing varies packet times: up to one packet time of the bottleneck, for rounds one
/// for each sender, so that any of them may come first.
pub(super) fn jitter(plan: &Plan, same_seeds: bool) -> Option<Setting> {
    let steps = of(plan);
    if !same_seeds && steps.is_none() {
        return None;
    }
    let links = &plan.described.spec.links;
    let slowest = plan
        .chosen
        .iter()
        .flat_map(|&place| place_links(&plan.places[place]))
        .map(|link| (links[link].rate.mean(), links[link].mtu))
        .filter(|(rate, _)| *rate != Rate::UNLIMITED)
        .min_by_key(|(rate, _)| rate.bps())?;
    let packets = steps.map_or(1, |steps| steps.senders());
    let nanos = packets * u64::from(slowest.1) * 8 * 1_000_000_000 / slowest.0.bps().max(1);
    let table = toml::Table::from_iter([
        (String::from("dist"), toml::Value::from("uniform")),
        (String::from("min"), toml::Value::from("0 s")),
        (
            String::from("max"),
            toml::Value::from(Duration::from_nanos(nanos.max(1)).to_string()),
        ),
    ]);
    let path = match plan.described.network {
        "dumbbell" | "chain" | "parking-lot" | "access-tree" => String::from("network.access.jitter"),
        _ => {
            let host = |link: &LinkSpec| plan.described.spec.nodes[link.from.0 as usize].host;
            let mut setting = Setting::from_origin("jitter");
            for link in links.iter().filter(|link| link.forward && host(link)) {
                setting = setting.with(format!("link.{}.jitter", link.name), table.clone());
            }
            return Some(setting);
        }
    };
    Some(Setting::from_origin("jitter").with(path, table))
}

fn place_links(place: &Place) -> impl Iterator<Item = usize> + '_ {
    place.links.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Choice;
    use crate::scenario::Scenario;

    const RACK: &str = r#"[network]
kind = "dumbbell"
pairs = 8
access = { rate = "10 Gbit/s", delay = "5 us" }
bottleneck = { rate = "1 Gbit/s", delay = "15 us", queue = { kind = "drop-tail", limit = "64 packets" } }
[[traffic]]
name = "shards"
kind = "incast"
to = 0
size = "32 kB"
[run]
duration = "1 s"
"#;

    fn plan(text: &str) -> Plan {
        let scenario = Scenario::parse("rack.toml", text).expect("it is correct");
        Plan::compare(scenario, &Choice::default()).expect("it resolves")
    }

    #[test]
    fn rounds_of_several_senders_keep_step_without_jitter() {
        let steps = of(&plan(RACK)).expect("nothing varies");
        assert_eq!(steps.rounds, Some((String::from("shards"), 8)));
        assert!(
            steps
                .note()
                .contains("the 8 transfers of a round of shards keep step")
        );
        // A packet of 1500 bytes takes 12 us at 1 Gbit/s, and any of eight may come first.
        let jitter = jitter(&plan(RACK), false).expect("it can have some");
        let set: Vec<String> = jitter
            .iter()
            .map(|(path, value)| format!("{path} = {value}"))
            .collect();
        assert!(
            set.len() == 1 && set[0].starts_with("network.access.jitter = ") && set[0].contains("\"96 us\""),
            "{set:?}"
        );
        let alone = RACK.replace("size = ", "count = 1\nsize = ");
        assert_eq!(
            of(&plan(&alone)),
            None,
            "one transfer has nothing to keep step with"
        );
        // One after another nothing keeps step; hosts that begin together do, each with one of its transfers.
        let spaced =
            |more: &str| RACK.replace("size = ", &format!("start_spacing = \"50 us\"\n{more}size = "));
        let rounds = |text: &str| of(&plan(text)).and_then(|steps| steps.rounds);
        let eight = Some((String::from("shards"), 8));
        assert_eq!(rounds(&spaced("count = 8\n")), None);
        assert_eq!(
            rounds(&spaced("spread = \"each\"\ncount = 4\n")),
            eight,
            "one of each pair at a time"
        );
        assert_eq!(
            rounds(&RACK.replace(
                "size = ",
                "spread = \"each\"\ncount = 4\nstart_spacing = \"11 us\"\nsize = "
            )),
            Some((String::from("shards"), 32)),
            "within the time of a packet"
        );
        let varied = RACK.replace(
            "delay = \"5 us\"",
            "delay = \"5 us\", jitter = { dist = \"uniform\", min = \"0 us\", max = \"50 us\" }",
        );
        assert_eq!(of(&plan(&varied)), None);
    }

    #[test]
    fn a_long_flow_before_drop_tail_without_jitter_is_reported() {
        let keeps = |edit: fn(String) -> String| {
            let text = edit(crate::testing::BUSY_LINE.to_owned());
            let scenario = Scenario::parse("home-line.toml", &text).expect("it is correct");
            of(&Plan::compare(scenario, &Choice::default()).expect("it resolves")).is_some()
        };
        let jitter = ", jitter = { dist = \"uniform\", min = \"0 ms\", max = \"1.2 ms\" }";
        assert!(crate::testing::BUSY_LINE.contains(jitter));
        assert!(!keeps(|text| text));
        assert!(keeps(|text| text.replace(
            ", jitter = { dist = \"uniform\", min = \"0 ms\", max = \"1.2 ms\" }",
            ""
        )));
        assert!(keeps(|text| text.replace(
            "dist = \"uniform\", min = \"0 ms\", max",
            "dist = \"constant\", value"
        )));
        assert!(!keeps(|text| text
            .replace(
                "{ dist = \"uniform\", min = \"0 ms\", max = \"1.2 ms\" }",
                "\"0 s\""
            )
            .replace("drop-tail", "codel")));
    }
}
