//! `[[node]]`: what single hosts and routers have of their own.

use super::document::Table;
use super::error::Error;
use super::keys;
use super::network::{Network, entries, unknown};
use super::read::Section;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::spec::NodeId;
use std::collections::BTreeMap;

/// What one node does with each packet that leaves it.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    processing: Option<Duration>,
    overlap: Option<bool>,
}

/// Gives the links of `network` what the nodes at their sending ends need; `own` says which link has said it itself.
pub(super) fn read(document: &Table, network: &mut Network, own: &[[bool; 2]]) -> Result<(), Error> {
    let mut of_groups = Vec::new();
    let mut of_nodes: BTreeMap<NodeId, Own> = BTreeMap::new();
    for (name, node) in entries(document, "node")? {
        let section = Section::open(&node, keys::NODE, &format!("node.{name}"))?;
        let read = Own {
            processing: section
                .find("processing")?
                .map(|field| field.duration())
                .transpose()?,
            overlap: section
                .find("processing_overlap")?
                .map(|field| field.flag())
                .transpose()?,
        };
        if read.processing.is_none() && read.overlap.is_none() {
            return Err(section.need("name")?.fail(format!("nothing is said of `{name}`")));
        }
        match (network.by_name(&name), network.groups.get(&name)) {
            (Some(id), _) => {
                of_nodes.insert(id, read);
            }
            (None, Some(members)) => of_groups.extend(members.iter().map(|id| (*id, read))),
            (None, None) => {
                let name_field = section.need("name")?;
                let mut known = network.names(false);
                known.extend(network.groups.keys().cloned());
                return Err(unknown(
                    name_field.place(),
                    &name_field.path,
                    "node",
                    &name,
                    &known,
                ));
            }
        }
    }
    for (id, group) in of_groups {
        let node = of_nodes.entry(id).or_default();
        node.processing = node.processing.or(group.processing);
        node.overlap = node.overlap.or(group.overlap);
    }
    if of_nodes.is_empty() {
        return Ok(());
    }
    for (link, [processing, overlap]) in network.links.iter_mut().zip(own) {
        let Some(node) = of_nodes.get(&link.from) else {
            continue;
        };
        if let (false, Some(time)) = (processing, node.processing) {
            link.processing = time;
        }
        if let (false, Some(hidden)) = (overlap, node.overlap) {
            link.overlap = hidden;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Scenario, Setting};
    use crate::run::observe;
    use fleetfoot_core::time::Duration;
    use fleetfoot_sim::spec::{LinkSpec, Spec};
    use std::sync::atomic::AtomicBool;

    const ROW: &str = "[network]\nkind = \"dumbbell\"\npairs = 2\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }\n";
    const GRAPH: &str = "[network]\nkind = \"graph\"\nhosts = [\"left-0\", \"left-1\", \"right-0\", \"right-1\"]\n\
        routers = [\"router-0\", \"router-1\"]\n\
        groups = { left = [\"left-0\", \"left-1\"], right = [\"right-0\", \"right-1\"] }\n\
        [[link]]\nname = \"access-0\"\nfrom = \"left-0\"\nto = \"router-0\"\n\
        [[link]]\nname = \"access-1\"\nfrom = \"left-1\"\nto = \"router-0\"\n\
        [[link]]\nname = \"egress-0\"\nfrom = \"router-1\"\nto = \"right-0\"\n\
        [[link]]\nname = \"egress-1\"\nfrom = \"router-1\"\nto = \"right-1\"\n\
        [[link]]\nname = \"bottleneck\"\nfrom = \"router-0\"\nto = \"router-1\"\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nPROCESSING\n";

    fn spec(network: &str, rest: &str, set: &Setting) -> Result<Spec, String> {
        let text = format!(
            "{network}\n{rest}\n[[traffic]]\nname = \"it\"\nkind = \"transfer\"\nsize = \"100 kB\"\n\
             arrivals = {{ dist = \"poisson\", rate = \"5 per second\" }}\nfrom = \"left\"\nto = \"right\"\n\
             [run]\nduration = \"4 s\"\n"
        );
        let scenario = Scenario::parse("test.toml", &text).map_err(|error| error.to_string())?;
        let resolved = scenario.resolve(set).map_err(|error| error.to_string())?;
        Ok(resolved.spec(1))
    }

    /// Links with any processing: from, to, microseconds, overlap.
    fn slow(spec: &Spec) -> Vec<String> {
        let name = |id: fleetfoot_sim::spec::NodeId| spec.nodes[id.0 as usize].name.clone();
        let shown = |link: &LinkSpec| {
            let hidden = if link.overlap { " hidden" } else { "" };
            let time = link.processing.as_micros();
            format!("{}>{} {time}{hidden}", name(link.from), name(link.to))
        };
        let mut all: Vec<String> = spec
            .links
            .iter()
            .filter(|link| link.processing > Duration::ZERO || link.overlap)
            .map(shown)
            .collect();
        all.sort();
        all
    }

    #[test]
    fn what_a_node_needs_holds_for_all_that_leaves_it() {
        let node = "[[node]]\nname = \"router-0\"\nprocessing = \"300 us\"";
        let wanted = [
            "router-0>left-0 300",
            "router-0>left-1 300",
            "router-0>router-1 300",
        ];
        for network in [ROW, &GRAPH.replace("PROCESSING", "")] {
            let spec = spec(network, node, &Setting::none()).expect("correct");
            assert_eq!(slow(&spec), wanted);
        }
    }

    #[test]
    fn what_would_do_nothing_is_refused() {
        let refused =
            |network: &str, rest: &str| spec(network, rest, &Setting::none()).expect_err("no effect");
        let with = |keys: &str| ROW.replace("\"10 ms\" }", &format!("\"10 ms\", {keys} }}"));
        for (network, rest, what) in [
            (
                ROW.to_owned(),
                "[[node]]\nname = \"router-0\"",
                "nothing is said of `router-0`",
            ),
            (
                with("fec = { overhead = 0.1, bit_errors = 1e-9 }"),
                "",
                "`fec` has nothing to do",
            ),
            (
                with("arq = { retransmissions = 7, delay = \"100 us\" }"),
                "",
                "`arq` has nothing to do",
            ),
            (
                with("bit_errors = 1e-9, fec = { overhead = 0.1, bit_errors = 1e-5 }"),
                "",
                "fewer bit errors than there are without it: 1e-9",
            ),
        ] {
            let message = refused(&network, rest);
            assert!(message.contains(what), "{message}");
        }
        let code = with("bit_errors = 1e-5, fec = { overhead = 0.1, bit_errors = 1e-9 }");
        assert!(spec(&code, "", &Setting::none()).is_ok());
    }

    #[test]
    fn a_group_is_all_its_hosts_and_what_says_so_itself_keeps_its_own() {
        let nodes = "[[node]]\nname = \"left-1\"\nprocessing = \"5 us\"\n\
            [[node]]\nname = \"left\"\nprocessing = \"7 us\"\nprocessing_overlap = true\n\
            [[node]]\nname = \"router-0\"\nprocessing = \"9 us\"\n\
            [[link]]\nname = \"bottleneck\"\nprocessing = \"3 us\"\n";
        let spec = spec(ROW, nodes, &Setting::none()).expect("correct");
        assert_eq!(
            slow(&spec),
            [
                "left-0>router-0 7 hidden",
                "left-1>router-0 5 hidden",
                "router-0>left-0 9",
                "router-0>left-1 9",
                "router-0>router-1 3",
                "router-1>router-0 3",
            ]
        );
    }

    #[test]
    fn a_path_sets_it_with_or_without_an_entry() {
        let set = Setting::none().with("node.router-1.processing", "40 us");
        assert_eq!(
            slow(&spec(ROW, "", &set).expect("correct")),
            [
                "router-1>right-0 40",
                "router-1>right-1 40",
                "router-1>router-0 40"
            ]
        );
        let entry = "[[node]]\nname = \"router-1\"\nprocessing = \"1 ms\"";
        let set = set.with("node.router-1.processing_overlap", true);
        let set = spec(ROW, entry, &set).expect("correct");
        assert_eq!(
            slow(&set),
            [
                "router-1>right-0 40 hidden",
                "router-1>right-1 40 hidden",
                "router-1>router-0 40 hidden"
            ]
        );
    }

    /// Two routers that need as long for every packet to every side are links that need as long at both ends.
    #[test]
    fn nodes_and_links_that_say_the_same_give_the_same_run() {
        for overlap in ["", "\nprocessing_overlap = true"] {
            let of_links = format!("processing = \"700 us\"{overlap}");
            let of_nodes: String = ["left", "right", "router-0", "router-1"]
                .map(|name| format!("[[node]]\nname = \"{name}\"\nprocessing = \"700 us\"{overlap}\n"))
                .concat();
            let links: String = ["access-0", "access-1", "egress-0", "egress-1", "bottleneck"]
                .map(|name| format!("[[link]]\nname = \"{name}\"\n{of_links}\n"))
                .concat();
            let run = |rest: &str| {
                let spec = spec(ROW, rest, &Setting::none()).expect("correct");
                let output = observe(&spec, &AtomicBool::new(false), &mut ()).expect("it runs");
                (format!("{:?}", spec.links), format!("{output:?}"))
            };
            let plain = run("");
            let linked = run(&links);
            assert_ne!(plain.1, linked.1, "it changes something");
            assert_eq!(run(&of_nodes), linked);
        }
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (rest, line, said) in [
            (
                "[[node]]\nname = \"router-9\"\nprocessing = \"1 us\"",
                "test.toml:7",
                "there is no node called `router-9`",
            ),
            (
                "[[node]]\nname = \"router-9\"\nprocessing = \"1 us\"",
                "test.toml:7",
                "did you mean `router-",
            ),
            (
                "[[node]]\nname = \"router-9\"\nprocessing = \"1 us\"",
                "test.toml:7",
                "left, right",
            ),
            (
                "[[node]]\nname = \"router-0\"\nprocessing = 12",
                "test.toml:8",
                "node.router-0.processing",
            ),
            (
                "[[node]]\nname = \"router-0\"\nprocesing = \"12 us\"",
                "test.toml:8",
                "did you mean `processing`",
            ),
            (
                "[[node]]\nprocessing = \"12 us\"",
                "test.toml:6",
                "`name` is missing",
            ),
            (
                "[[node]]\nname = \"left\"\n[[node]]\nname = \"left\"\n",
                "test.toml:8",
                "two nodes are called `left`",
            ),
        ] {
            let error = spec(ROW, rest, &Setting::none()).expect_err(rest);
            assert!(error.contains(line) && error.contains(said), "{rest}: {error}");
        }
        let set = Setting::from_origin("--set").with("node.ruter-0.processing", "1 us");
        let error = spec(ROW, "", &set).expect_err("there is no such node");
        assert!(error.contains("did you mean `router-0`"), "{error}");
    }
}
