//! Transfers that a file lists go between the hosts that it names, in every kind of network.

use super::super::{Resolved, Scenario, Setting};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;

const GRAPH: &str = r#"
[network]
kind = "graph"
hosts = ["a", "b", "c"]
routers = ["r"]
[[link]]
name = "x"
from = "a"
to = "r"
mtu = 9000
[[link]]
name = "y"
from = "r"
to = "b"
mtu = 9000
[[link]]
name = "z"
from = "c"
to = "r"
delay = "7 ms"
[[traffic]]
name = "listed"
kind = "flows"
file = "list.csv"
[run]
duration = "1 s"
warmup = "0 s"
"#;

const TREE: &str = r#"
[network]
kind = "access-tree"
bottleneck = { rate = "10 Mbit/s", delay = "1 ms" }
[[traffic]]
name = "listed"
kind = "flows"
file = "list.csv"
[run]
duration = "1 s"
warmup = "0 s"
"#;

/// What is read of a scenario beside a list with these lines.
fn read(name: &str, text: &str, lines: &str) -> Result<Resolved, String> {
    let folder = std::env::temp_dir().join(format!("fleetfoot-listed-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
    let file = folder.join("list.toml");
    std::fs::write(&file, text).expect("a temporary file can be written");
    let list = format!("start,source,destination,bytes\n{lines}");
    std::fs::write(folder.join("list.csv"), list).expect("a temporary file can be written");
    let resolved = Scenario::load(&file).and_then(|scenario| scenario.resolve(&Setting::none()));
    std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
    resolved.map_err(|error| error.to_string())
}

/// Pairs of the flows of a run, and what arrived.
fn arrived(resolved: &Resolved) -> Vec<(u32, Bytes)> {
    let output = run(&resolved.spec(1), Mode::Fast, &mut (), |_| {
        ControlFlow::Continue(())
    });
    let output = output.unwrap_or_else(|error| panic!("{error}"));
    let flows = output.groups[0].flows.iter();
    flows
        .map(|flow| {
            assert!(flow.completed.is_some());
            (flow.pair, flow.received)
        })
        .collect()
}

#[test]
fn listed_hosts_of_a_graph_are_the_pairs() {
    let lines = "0.3,a,b,9000\n0.1,c,b,50000\n0.2,c,b,1000\n";
    let resolved = read("graph", GRAPH, lines).unwrap_or_else(|error| panic!("{error}"));
    let name = |id: fleetfoot_sim::spec::NodeId| resolved.spec.nodes[id.0 as usize].name.as_str();
    let pairs = resolved.spec.groups[0].pairs.iter();
    let pairs: Vec<_> = pairs.map(|&(from, to)| (name(from), name(to))).collect();
    assert_eq!(pairs, [("c", "b"), ("a", "b")]);
    assert_eq!(
        arrived(&resolved),
        [(0, Bytes(50_000)), (0, Bytes(1_000)), (1, Bytes(9_000))]
    );
    // c's link takes 1500 bytes and 7 ms, the other ones 1 ms.
    assert_eq!(resolved.spec.groups[0].sender.mtu, 1500);
    let rtts = resolved.base_rtts().iter();
    let rtts: Vec<_> = rtts.map(|pair| (pair.from.as_str(), pair.rtt)).collect();
    assert_eq!(
        rtts,
        [("a", Duration::from_millis(4)), ("c", Duration::from_millis(16))]
    );
    let large = read("large", GRAPH, "0.1,a,b,50000\n").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(large.spec.groups[0].sender.mtu, 9000);
    assert_eq!(arrived(&large), [(0, Bytes(50_000))]);
}

#[test]
fn listed_hosts_of_a_tree_need_no_receivers() {
    let lines = "0.1,host-0-0-0,host-1-0-0,50000\n";
    let resolved = read("tree", TREE, lines).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(arrived(&resolved), [(0, Bytes(50_000))]);
}

#[test]
fn hosts_beside_a_list_are_refused() {
    for key in [
        "from = \"a\"",
        "to = \"b\"",
        "direction = \"up\"",
        "spread = \"each\"",
    ] {
        let text = GRAPH.replace("file =", &format!("{key}\nfile ="));
        let error = read("keys", &text, "0.1,a,b,50000\n").expect_err(key);
        assert!(error.contains("has no effect: the file says"), "{key}: {error}");
    }
    let error = read("self", GRAPH, "0.1,a,a,50000\n").expect_err("a to a");
    assert!(error.contains("no path leads from `a` to `a`"), "{error}");
}
