//! Places of every topology, their names, and that setting a queue at one changes that one and no other.

use super::{changed, places, selected, standing, stands};
use crate::result::RunData;
use crate::scenario::{Resolved, Scenario, Setting, Site};
use fleetfoot_core::parameter::Value;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::output::{LinkOutput, RunOutput};
use std::sync::Arc;

const TRAFFIC: &str = "\n[[traffic]]\nname = \"pages\"\nkind = \"transfer\"\nsize = \"20 kB\"\n\
    arrivals = { dist = \"poisson\", rate = \"5 per second\" }\n[run]\nduration = \"5 s\"\n";

fn scenario(network: &str) -> Scenario {
    let ends = match (network.contains("\"graph\""), network.contains("\"access-tree\"")) {
        (true, _) => "from = \"a\"\nto = \"b\"\n",
        (_, true) => "from = \"host-0-0-0\"\nto = \"host-1-0-1\"\n",
        (false, false) => "",
    };
    let traffic = TRAFFIC.replace("[run]", &format!("{ends}[run]"));
    Scenario::parse("test.toml", &format!("{network}{traffic}"))
        .unwrap_or_else(|error| panic!("{error}\n{network}"))
}

fn resolved(scenario: &Scenario) -> Resolved {
    scenario.resolve(&Setting::none()).expect("it is correct")
}

const NETWORKS: [&str; 9] = [
    "[network]\nkind = \"dumbbell\"\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }",
    "[network]\nkind = \"dumbbell\"\npairs = 3\nbottleneck = { rate = \"50 Mbit/s\", delay = \"10 ms\", queue = { kind = \"drop-tail\", limit = \"1875 kB\" }, \
     reverse = { rate = \"10 Mbit/s\", queue = { kind = \"drop-tail\", limit = \"375 kB\" } } }",
    "[network]\nkind = \"dumbbell\"\npairs = 2\naccess = { queue = { kind = \"red\", limit = \"200 packets\" } }\n\
     bottleneck = { rate = \"50 Mbit/s\", delay = \"10 ms\", queue = { kind = \"codel\", target = \"7 ms\", limit = \"90 packets\" }, reverse = { rate = \"10 Mbit/s\" } }",
    "[network]\nkind = \"dumbbell\"\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }\n\
     [[link]]\nname = \"bottleneck\"\nqueue = { kind = \"drop-tail\", limit = \"33 packets\" }\n[[link]]\nname = \"access-0\"\ndelay = \"9 ms\"",
    "[network]\nkind = \"chain\"\nhops = 3\npairs = 2\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }\n[[link]]\nname = \"hop-1\"\nrate = \"5 Mbit/s\"",
    "[network]\nkind = \"parking-lot\"\nhops = 2\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\", reverse = { queue = { kind = \"pie\" } } }",
    "[network]\nkind = \"access-tree\"\ncores = 2\nchords = 0\nedges = 1\ndslams = 1\nhosts = 2\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }",
    "[network]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nrouters = [\"r\", \"s\"]\n\
     [[link]]\nname = \"one\"\nfrom = \"a\"\nto = \"r\"\n[[link]]\nname = \"two\"\nfrom = \"r\"\nto = \"s\"\nrate = \"2 Mbit/s\"\n\
     queue = { kind = \"drop-tail\", limit = \"40 packets\" }\n[[link]]\nname = \"three\"\nfrom = \"s\"\nto = \"b\"",
    "[network]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nrouters = [\"r\", \"s\"]\nbottleneck = { queue = { kind = \"drop-tail\", limit = \"70 packets\" } }\n\
     [[link]]\nname = \"one\"\nfrom = \"a\"\nto = \"r\"\n[[link]]\nname = \"two\"\nfrom = \"r\"\nto = \"s\"\nrate = \"2 Mbit/s\"\n[[link]]\nname = \"three\"\nfrom = \"s\"\nto = \"b\"",
];

/// Whether written out or inherited: the queue of a place is set, with its limit kept, and every other queue stays as it is.
#[test]
fn a_queue_is_set_at_one_place_and_nowhere_else() {
    for network in NETWORKS {
        let scenario = scenario(network);
        let described = resolved(&scenario);
        let all = places(&described);
        assert!(all.len() >= 2, "{network}");
        for (index, place) in all.iter().enumerate() {
            let before = &described.spec.links[place.links[0]];
            let kind = if before.queue == "fq-codel" {
                "codel"
            } else {
                "fq-codel"
            };
            let site = Site::new(&described, &place.links);
            let set = site.prepared(Setting::from_origin("test"));
            let set = site.with(set, "kind", &kind.into());
            let after = scenario
                .resolve(&set)
                .unwrap_or_else(|error| panic!("{error}\n{network}"));
            assert_eq!(
                changed(&described, &after, &all),
                [index],
                "{}\n{network}\n{set:?}",
                place.selector()
            );
            for &link in &place.links {
                let link = &after.spec.links[link];
                assert_eq!(link.queue, kind, "{network}");
                // A limit that the file gives is kept; where it gives none each discipline has its own.
                let given = before.queue_values.limit("limit");
                let default = before
                    .queue_values
                    .table()
                    .iter()
                    .find(|parameter| parameter.name == "limit");
                if default.is_some_and(|default| default.default != Value::Limit(given)) {
                    assert_eq!(link.queue_values.limit("limit"), given, "{network}");
                }
            }
        }
        // All of them at once.
        let links: Vec<usize> = (0..described.spec.links.len()).collect();
        let site = Site::new(&described, &links);
        let set = site.with(site.prepared(Setting::from_origin("test")), "kind", &"drr".into());
        let after = scenario
            .resolve(&set)
            .unwrap_or_else(|error| panic!("{error}\n{network}"));
        assert!(
            after.spec.links.iter().all(|link| link.queue == "drr"),
            "{network}"
        );
    }
}

#[test]
fn places_have_the_names_that_users_give_them() {
    let names = |network: &str| -> Vec<String> {
        places(&resolved(&scenario(network)))
            .iter()
            .map(super::Place::described)
            .collect()
    };
    let one_way = names(NETWORKS[0]);
    assert!(
        one_way.contains(&String::from("the bottleneck, 10 Mbit/s")),
        "{one_way:?}"
    );
    let two_way = names(NETWORKS[1]);
    for wanted in [
        "the downlink, 50 Mbit/s",
        "the uplink, 10 Mbit/s",
        "3 links access forward, 1 Gbit/s",
    ] {
        assert!(two_way.contains(&String::from(wanted)), "{two_way:?}");
    }
    let labelled = names(
        "[network]\nkind = \"dumbbell\"\nbottleneck = { label = \"the cable line\", rate = \"50 Mbit/s\", delay = \"10 ms\", reverse = { rate = \"10 Mbit/s\" } }",
    );
    for wanted in ["the cable line, down, 50 Mbit/s", "the cable line, up, 10 Mbit/s"] {
        assert!(labelled.contains(&String::from(wanted)), "{labelled:?}");
    }
    let graph = names(NETWORKS[7]);
    assert!(
        graph.contains(&String::from("link two from r to s, 2 Mbit/s")),
        "{graph:?}"
    );
}

#[test]
fn a_place_is_found_by_link_direction_and_label() {
    let all = places(&resolved(&scenario(NETWORKS[1])));
    let find = |text: &str| selected(&all, &[text.to_owned()]);
    let names = |text: &str| -> Vec<String> {
        let found = find(text).unwrap_or_else(|error| panic!("{error}"));
        found.iter().map(|&index| all[index].selector()).collect()
    };
    assert_eq!(names("bottleneck"), ["bottleneck:forward", "bottleneck:reverse"]);
    assert_eq!(names("bottleneck:up"), ["bottleneck:reverse"]);
    assert_eq!(names("uplink"), ["bottleneck:reverse"]);
    assert_eq!(names("the downlink"), ["bottleneck:forward"]);
    assert_eq!(names("access:forward"), ["access:forward"]);
    let wrong = find("botleneck").expect_err("there is none");
    assert!(
        wrong.contains("no link is called `botleneck`") && wrong.contains("bottleneck:reverse"),
        "{wrong}"
    );
    let wrong = find("bottleneck:sideways").expect_err("there is none");
    assert!(
        wrong.contains("forward (or down), reverse (or up), both"),
        "{wrong}"
    );
}

#[test]
fn no_queue_stands_on_a_line_that_is_hardly_used_unless_packets_wait_for_a_round_trip_or_are_dropped() {
    let rtt = 50e-6;
    let waits = [6e-6, 36e-6];
    assert!(!stands(rtt, waits, 0.01, 0.0), "bursts of a feed at 10 Gbit/s");
    assert!(stands(rtt, waits, 0.2, 0.0));
    assert!(stands(rtt, waits, 0.01, 0.001), "some are turned away");
    assert!(
        stands(rtt, [2.0 * rtt, 9.0 * rtt], 0.05, 0.0),
        "many answers at once"
    );
    assert!(stands(rtt, [1e-6, 30e-6], 0.1, 0.0));
    assert!(!stands(0.0, [0.0, 0.0], 1.0, 0.0));
}

/// Sixteen lines of 5 seconds, base RTT above 20 ms. On one packets wait 100 ms and it is full, on the others nothing waits: together they are used for
/// a sixteenth of the time, and of their packets' waits the mean is 1.6 ms.
#[test]
fn a_full_line_among_idle_ones_is_no_less_full() {
    let network = NETWORKS[0].replace(
        "bottleneck",
        "pairs = 16\negress = { rate = \"10 Mbit/s\" }\nbottleneck",
    );
    let described = resolved(&scenario(&network));
    let all = places(&described);
    let lines = all
        .iter()
        .position(|place| place.links.len() == 16 && place.link.starts_with("egress") && place.forward);
    let lines = lines.expect("they are alike");
    for full in [0, 9] {
        let mut output = RunOutput {
            links: vec![LinkOutput::default(); described.spec.links.len()],
            ..RunOutput::default()
        };
        for (number, &link) in all[lines].links.iter().enumerate() {
            let link = &mut output.links[link];
            link.drops = vec![[0; 3]; DropReason::ALL.len()];
            link.packets = 1000;
            let wait = if number == full { 100_000_000 } else { 0 };
            (0..1000).for_each(|_| link.queue_delay.record(wait));
            if number == full {
                link.busy = Duration::from_secs(5);
            }
        }
        let runs = [1, 2].map(|seed| RunData {
            seed,
            output: Arc::new(output.clone()),
        });
        let standing = standing(&described, &all, &runs);
        assert_eq!(standing.len(), all.len());
        let there = &standing[lines];
        assert!(there.stands && there.utilisation == 1.0, "{there:?}");
        assert!((there.wait_mean_s / 0.1 - 1.0).abs() < 0.01, "{there:?}");
        assert_eq!(there.link, all[lines].link);
        let others = standing.iter().enumerate().filter(|(place, _)| *place != lines);
        assert!(others.filter(|(_, one)| one.stands).count() == 0);
    }
}
