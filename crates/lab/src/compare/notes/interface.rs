//! A note where a link that says nothing of its medium is taken for a host's own interface, at a rate that no interface has.

use crate::compare::Plan;
use fleetfoot_core::tcp::Config;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::spec::{GroupSpec, LinkRate, NodeId, Transport};

/// Rates of Ethernet, Mbit/s: a host may well have an interface of one of them.
const OF_ETHERNET: [u64; 10] = [
    10, 100, 1_000, 2_500, 5_000, 10_000, 25_000, 40_000, 50_000, 100_000,
];

/// Which place is taken for an interface though it is likely a line, and how to say that it is one. `None`: no such place is the slowest of the
/// network, or its `medium` says what it is.
pub(super) fn taken_for_own(plan: &Plan) -> Option<String> {
    let links = &plan.described.spec.links;
    let constant = |rate: &LinkRate| match rate {
        LinkRate::Constant(rate) => Some(*rate),
        _ => None,
    };
    let slowest = links
        .iter()
        .filter(|link| !link.host)
        .map(|link| constant(&link.rate).map_or(0, Rate::bps))
        .min()?;
    let place = plan.places.iter().find(|place| {
        place.links.iter().all(|&index| {
            let rate = constant(&links[index].rate).map_or(u64::MAX, Rate::bps);
            let unsaid = plan.described.links_info[index].medium.is_none();
            let usual = OF_ETHERNET.iter().any(|mbps| mbps * 1_000_000 == rate);
            links[index].host && unsaid && !usual && rate <= slowest && keeps_short(plan, links[index].from)
        })
    })?;
    Some(format!(
        "{} is taken for the host's own interface, whose queue its TCP keeps short (`tcp.small_queues`); if a modem, an access point or a router \
         sends there, say so with its `medium` (`docsis`, `vdsl`, `gpon`, `wifi`...)",
        place.described()
    ))
}

/// Whether a TCP that keeps its host's own queue short sends from this host: data, or what its receiver writes.
fn keeps_short(plan: &Plan, host: NodeId) -> bool {
    let tcp = |group: &&GroupSpec| group.traffic.facts().transport == Transport::Tcp;
    plan.described.spec.groups.iter().filter(tcp).any(|group| {
        let at = |end: fn(&(NodeId, NodeId)) -> NodeId| group.pairs.iter().any(|pair| end(pair) == host);
        let keeps = |config: &Config| config.path.small_queues != Bytes::MAX;
        at(|pair| pair.0) && keeps(&group.sender) || at(|pair| pair.1) && keeps(&group.receiver)
    })
}

#[cfg(test)]
mod tests {
    use super::taken_for_own;
    use crate::compare::{Choice, Plan};
    use crate::scenario::Scenario;

    fn noted(access: &str) -> Option<String> {
        noted_of(access, "kind = \"bulk\"")
    }

    fn noted_of(access: &str, traffic: &str) -> Option<String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\naccess = {{ {access}, delay = \"1 ms\" }}\n\
             bottleneck = {{ rate = \"50 Mbit/s\", delay = \"10 ms\" }}\n[[traffic]]\n{traffic}\n"
        );
        let scenario = Scenario::parse("home.toml", &text).expect("it is correct");
        taken_for_own(&Plan::baseline(scenario, &Choice::default()).expect("it resolves"))
    }

    #[test]
    fn a_line_without_a_medium_is_named() {
        let note = noted("rate = \"20 Mbit/s\"").expect("no interface has 20 Mbit/s");
        assert!(
            note.contains("20 Mbit/s is taken for the host's own interface"),
            "{note}"
        );
        // An interface has 10 Mbit/s; 100 are not the slowest; a modem is none, and a host's own says so.
        for access in [
            "rate = \"10 Mbit/s\"",
            "rate = \"100 Mbit/s\"",
            "rate = \"20 Mbit/s\", medium = \"docsis\"",
            "rate = \"20 Mbit/s\", medium = \"host\"",
        ] {
            assert_eq!(noted(access), None, "{access}");
        }
        // Neither datagrams nor a TCP without the rule keep a queue short.
        for traffic in [
            "kind = \"cbr\"\nrate = \"1 Mbit/s\"",
            "kind = \"bulk\"\ntcp = { small_queues = \"unlimited\" }",
        ] {
            assert_eq!(noted_of("rate = \"20 Mbit/s\"", traffic), None, "{traffic}");
        }
    }
}
