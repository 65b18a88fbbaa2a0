//! Hand-written expectations for common lines, and a table over every mechanism, medium and direction.

use super::controllers::controller;
use super::instructions_of;
use super::queues::Discipline;
use crate::compare::{Choice, Plan, build};
use crate::mechanisms::{ENTRIES, Effort, Preset};
use crate::result::{Instruction, Senders, Summary, Variant};
use crate::run::{Options, execute};
use crate::scenario::{Medium, RouterFile, Scenario, router};
use crate::testing::engine;
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_live::router::Interface;
use fleetfoot_sim::spec::LinkSpec;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

mod framing;
mod hosts;
mod parsed;
mod ports;
mod varying;

/// A line with 300 ms of room in both directions.
fn line(down: &str, up: &str, more: &str) -> String {
    format!(
        r#"
title = "A line"
[network]
kind = "dumbbell"
pairs = 2
[network.bottleneck]
rate = "{down}"
delay = "10 ms"
queue = {{ kind = "drop-tail", limit = "1875 kB" }}
{more}
reverse = {{ rate = "{up}", queue = {{ kind = "drop-tail", limit = "375 kB" }} }}
[[traffic]]
name = "pages"
kind = "transfer"
size = "20 kB"
arrivals = {{ dist = "poisson", rate = "20 per second" }}
[[traffic]]
name = "backup"
kind = "bulk"
count = 2
[run]
duration = "10 s"
seeds = 2
"#
    )
}

fn planned(text: &str, only: &[&str], place: &str) -> Plan {
    let scenario = Scenario::parse("line.toml", text).expect("it is correct");
    let choice = Choice {
        only: only.iter().map(|&name| name.to_owned()).collect(),
        places: vec![place.to_owned()],
        ..Choice::default()
    };
    Plan::compare(scenario, &choice).expect("it resolves")
}

/// The results of `plan`'s variant as described, with waits of this mean and 99th percentile (s) at the bottleneck's way back
/// and none forward.
fn measured(plan: &Plan, mean: f64, p99: f64) -> Variant {
    let (options, never) = (Options::default(), AtomicBool::new(false));
    let batch = execute(&plan.jobs()[..1], &plan.seeds, &options, &never, &engine, &|_| ());
    let mut variant = build(plan, &batch.expect("it runs"), "")
        .document
        .variants
        .swap_remove(0);
    let waits = |mean: f64, p99: f64| Summary {
        n: 100,
        mean,
        p50: mean,
        p90: p99,
        p95: p99,
        p99,
        max: p99,
        ci95: None,
        quantiles: Default::default(),
    };
    for link in &mut variant.links {
        link.queue_delay_s = Some(match (link.name.as_str(), link.direction.as_str()) {
            ("bottleneck", "reverse") => waits(mean, p99),
            _ => waits(0.0, 0.0),
        });
    }
    variant
}

/// What is said of the mechanism `name` at `place`.
fn steps(text: &str, name: &str, place: &str) -> Vec<Instruction> {
    let plan = planned(text, &[name], place);
    let index = plan.variants.iter().position(|variant| variant.name == name);
    let [before, after] = [(0.27, 0.3), (0.005, 0.02)].map(|(mean, p99)| measured(&plan, mean, p99));
    instructions_of(&plan, index.expect("it applies"), &after, &before)
}

const UP: &str = "bottleneck:reverse";
const DOWN: &str = "bottleneck:forward";

fn cable() -> String {
    line("50 Mbit/s", "10 Mbit/s", "medium = \"docsis\"")
}

#[test]
fn the_uplink_of_a_cable_modem_is_shaped_in_front_of_it() {
    let steps = steps(&cable(), "cake", UP);
    let [cake] = steps.as_slice() else {
        panic!("one place: {steps:?}");
    };
    assert_eq!(
        cake.commands,
        [
            "WAN=eth0; tc qdisc del dev $WAN root 2>/dev/null; tc qdisc replace dev $WAN root cake bandwidth 9500kbit docsis besteffort triple-isolate nat"
        ]
    );
    assert_eq!(cake.device, "your router, in front of the cable modem");
    assert_eq!(cake.place, "the uplink, 10 Mbit/s");
    for part in [
        "the cable modem, where you cannot log in",
        "9.5 Mbit/s, 95 % of 10 Mbit/s",
        "docsis counts the 18 bytes",
    ] {
        assert!(cake.why.contains(part), "{part}: {}", cake.why);
    }
    assert!(cake.needs.contains("Linux 4.19"), "{}", cake.needs);
    // Worked by hand: a base RTT of 24 ms (10 ms and two access links of 1 ms each way) and the waits that were put in.
    let check = cake.check.as_deref().unwrap_or_default();
    for part in [
        "ping -c 60 ADDRESS",
        "answers in about 24 ms",
        "before: about 294 ms",
        "at most about 29 ms (waits of both",
    ] {
        assert!(check.contains(part), "{part}: {check}");
    }
}

#[test]
fn other_disciplines_stand_below_a_shaper_of_the_uplink() {
    // 375 kB are 9375 packets of 40 bytes; a millisecond of the rate is less than a packet.
    for (name, queue) in [
        ("fq-codel", "fq_codel limit 9375"),
        ("fq-pie", "fq_pie limit 9375"),
        ("pie", "pie limit 9375"),
        ("codel", "codel limit 9375"),
        ("short-buffer", "pfifo limit 16"),
        ("long-buffer", "pfifo limit 1000"),
        ("drr", "sfq limit 9375 headdrop"),
        ("sfq", "sfq limit 9375"),
    ] {
        let steps = steps(&cable(), name, UP);
        assert_eq!(
            steps[0].commands,
            [
                String::from("WAN=eth0; LAN=eth1; ethtool -K $WAN tso off gso off; ethtool -K $LAN gro off"),
                format!(
                    "WAN=eth0; tc qdisc del dev $WAN root 2>/dev/null; tc qdisc add dev $WAN root handle 1: stab overhead 4 mpu 64 linklayer ethernet htb default 1 && tc class add dev $WAN parent 1: classid 1:1 htb rate 9500kbit burst 1751 cburst 1751 quantum 1514 && tc qdisc add dev $WAN parent 1:1 handle 10: {queue} || {{ tc qdisc del dev $WAN root 2>/dev/null; false; }}"
                )
            ],
            "{name}"
        );
        assert!(steps[0].needs.contains("gso_max_segs 1"), "{name}: {steps:?}");
    }
}

/// 28 bare acknowledgments take the room of one full packet: a limit in packets that counts bytes in full ones would drop them long before
/// the simulated queue is full.
#[test]
fn a_limit_in_bytes_holds_as_many_small_packets_as_were_simulated() {
    let discipline = |kind: &str, limit: Limit| {
        let plan = planned(&cable(), &["cake"], UP);
        let entry = AnyQueue::entry(kind).expect("it is registered");
        let mut queue_values = Values::defaults(entry.parameters);
        queue_values
            .set("limit", Value::Limit(limit))
            .expect("it has one");
        let link = LinkSpec {
            queue: entry.name,
            queue_values,
            ..plan.described.spec.links[0].clone()
        };
        Discipline::of(&link, None)
    };
    for kind in ["codel", "pie", "fq-codel", "fq-pie", "dualpi2", "drr", "sfq"] {
        let bytes = discipline(kind, Limit::Bytes(Bytes(256_000)));
        let arguments = bytes.arguments.unwrap_or_default();
        assert!(arguments.contains(" limit 6400"), "{kind}: {arguments}");
        let room = bytes.room.unwrap_or_default();
        assert!(
            room.contains("256000 B") && room.contains("of 40 bytes"),
            "{kind}: {room}"
        );
        let packets = discipline(kind, Limit::Packets(171));
        assert_eq!(packets.room, None, "{kind}");
        let arguments = packets.arguments.unwrap_or_default();
        assert!(arguments.contains(" limit 171"), "{kind}: {arguments}");
        assert!(!arguments.contains("memory_limit"), "{kind}: {arguments}");
    }
    // Of these tc counts bytes.
    for kind in ["drop-tail", "red", "cake"] {
        assert_eq!(
            discipline(kind, Limit::Bytes(Bytes(256_000))).room,
            None,
            "{kind}"
        );
    }
    // 30 MB are 20,000 full packets, of which the kernel counts 2304 bytes each; 32 MiB are its default.
    for kind in ["fq-codel", "fq-pie"] {
        let arguments = discipline(kind, Limit::Bytes(Bytes(30_000_000)))
            .arguments
            .unwrap_or_default();
        assert!(
            arguments.contains(" limit 750000 memory_limit 46080000"),
            "{kind}: {arguments}"
        );
    }
}

#[test]
fn where_a_command_turns_on_another_mechanism_that_one_s_results_are_given() {
    let mut plan = planned(&cable(), &["drr", "sfq"], UP);
    let nearest = |plan: &Plan, name: &str| {
        let index = plan.variants.iter().position(|variant| variant.name == name);
        let result = measured(plan, 0.1, 0.1);
        let steps = instructions_of(plan, index.expect("it applies"), &result, &result);
        steps[0].nearest.clone()
    };
    assert_eq!(nearest(&plan, "drr").as_deref(), Some("sfq"));
    assert_eq!(nearest(&plan, "sfq"), None);
    assert!((1..3).all(|index| super::can_be_had(&plan, index)));
    let vegas = crate::mechanisms::find("vegas").expect("it is registered");
    let drr = plan.variants.iter_mut().find(|variant| variant.name == "drr");
    drr.expect("it applies").mechanisms.insert(0, vegas);
    assert_eq!(nearest(&plan, "drr").as_deref(), Some("vegas + sfq"));
    // What a switch has is not known.
    let port = line("100 Mbit/s", "100 Mbit/s", "medium = \"switch\"");
    assert_eq!(steps(&port, "drr", UP)[0].nearest, None);
}

#[test]
fn the_downlink_is_shaped_where_packets_arrive() {
    let steps = steps(&cable(), "cake", DOWN);
    assert_eq!(
        steps[0].commands,
        [
            "WAN=eth0; IFB=ifb-wan; tc qdisc del dev $WAN ingress 2>/dev/null; ip link add $IFB type ifb 2>/dev/null; tc qdisc del dev $IFB root 2>/dev/null; ip link set $IFB up && tc qdisc replace dev $IFB root cake bandwidth 45mbit docsis besteffort triple-isolate nat ingress && tc qdisc add dev $WAN handle ffff: ingress && tc filter add dev $WAN parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev $IFB || { tc qdisc del dev $WAN ingress 2>/dev/null; ip link del $IFB 2>/dev/null; false; }"
        ]
    );
    assert_eq!(
        steps[0].device,
        "your router, where packets arrive from the cable modem"
    );
    assert!(
        steps[0]
            .why
            .contains("the provider's head end (CMTS), which is not yours")
    );
}

#[test]
fn a_port_is_changed_directly_at_its_own_rate() {
    let port = line("100 Mbit/s", "100 Mbit/s", "medium = \"ethernet\"");
    let port_steps = steps(&port, "fq-codel", DOWN);
    assert_eq!(
        port_steps[0].commands,
        [
            "DEV=eth0; tc qdisc del dev $DEV root 2>/dev/null; tc qdisc replace dev $DEV root fq_codel limit 46875"
        ]
    );
    // A contract may have the rate of a port: then the queue stands behind a faster one.
    assert_eq!(port_steps.len(), 2);
    assert!(
        port_steps[0]
            .why
            .starts_with("If the port itself runs at 100 Mbit/s")
    );
    assert!(
        port_steps[1]
            .why
            .starts_with("If the port is faster than 100 Mbit/s")
    );
    assert!(
        port_steps[1].commands[1].contains("htb rate 95mbit "),
        "{port_steps:?}"
    );
    let backbone = line("10 Gbit/s", "10 Gbit/s", "medium = \"ethernet\"");
    assert_eq!(steps(&backbone, "fq-codel", DOWN).len(), 1);
    // No port of a switch runs at 200 Mbit/s.
    let switch = line("200 Mbit/s", "200 Mbit/s", "medium = \"switch\"");
    let switch_steps = steps(&switch, "cake", DOWN);
    assert!(
        switch_steps[0].commands[0].contains("cake bandwidth 190mbit "),
        "{switch_steps:?}"
    );
    assert!(!switch_steps[0].needs.contains("router"), "{switch_steps:?}");
    // No port runs at 20 Mbit/s: something behind it does.
    let slower = line("20 Mbit/s", "20 Mbit/s", "medium = \"ethernet\"");
    let steps = steps(&slower, "cake", DOWN);
    assert_eq!(
        steps[0].commands,
        [
            "WAN=eth0; tc qdisc del dev $WAN root 2>/dev/null; tc qdisc replace dev $WAN root cake bandwidth 19mbit ethernet besteffort triple-isolate nat"
        ]
    );
}

/// Worked by hand: 1875 kB are 1250 packets of 1500 bytes, of which Linux counts 2304 bytes each.
#[test]
fn at_a_port_what_fills_its_room_is_limited_to_the_port_s_memory() {
    let port = line("10 Gbit/s", "10 Gbit/s", "medium = \"switch\"");
    for (name, queue) in [
        ("drr", "sfq limit 1250 headdrop"),
        ("sfq", "sfq limit 1250"),
        ("cake", "cake besteffort triple-isolate memlimit 2880000"),
        // These keep their queues short by themselves.
        ("fq-codel", "fq_codel limit 46875"),
    ] {
        let step = &steps(&port, name, DOWN)[0];
        assert_eq!(
            step.commands,
            [format!(
                "DEV=eth0; tc qdisc del dev $DEV root 2>/dev/null; tc qdisc replace dev $DEV root {queue}"
            )]
        );
        let said = step.needs.contains("1875000 B, the memory of the port");
        assert_eq!(said, name != "fq-codel", "{step:?}");
    }
    assert!(!steps(&cable(), "cake", UP)[0].commands[0].contains("memlimit"));
}

#[test]
fn a_longer_buffer_at_a_switch_says_how_much_memory_that_is() {
    let needs = |medium: &str| {
        let text = line("10 Gbit/s", "10 Gbit/s", medium).replace("1875 kB", "90 kB");
        steps(&text, "long-buffer", DOWN)[0].needs.clone()
    };
    let switch = needs("medium = \"switch\"");
    assert!(
        switch.contains("It needs 1.5 MB of memory at ")
            && switch.contains("to which the scenario gives 90 kB"),
        "{switch}"
    );
    let host = needs("medium = \"host\"");
    assert!(!host.contains("of memory at"), "{host}");
}

#[test]
fn only_a_shorter_plain_queue_at_a_port_needs_a_short_ring() {
    let port = line("10 Gbit/s", "10 Gbit/s", "medium = \"switch\"");
    let shorter = &steps(&port, "short-buffer", DOWN)[0];
    assert!(
        shorter.needs.contains("ring must be short too") && shorter.why.contains("no more packets wait"),
        "{shorter:?}"
    );
    let longer = &steps(&port.replace("1875 kB", "90 kB"), "long-buffer", DOWN)[0];
    assert!(longer.commands[0].ends_with("pfifo limit 1000"), "{longer:?}");
    assert!(
        !longer.needs.contains("ring") && longer.why.contains("bursts find room to wait in"),
        "{longer:?}"
    );
    // Below a shaper nothing waits in the ring.
    let shaped = &steps(&cable(), "short-buffer", UP)[0];
    assert!(!shaped.needs.contains("ring"), "{shaped:?}");
}

#[test]
fn an_unknown_line_with_uneven_rates_gets_the_shaper_first() {
    let line_steps = steps(&line("50 Mbit/s", "10 Mbit/s", ""), "cake", UP);
    assert_eq!(line_steps.len(), 2);
    assert!(line_steps[0].commands[0].contains("bandwidth 9500kbit ethernet "));
    assert!(line_steps[1].commands[0].ends_with("root cake besteffort triple-isolate memlimit 576000"));
    let even = steps(&line("100 Mbit/s", "100 Mbit/s", ""), "cake", UP);
    assert!(even[0].commands[0].ends_with("root cake besteffort triple-isolate memlimit 576000"));
    assert!(even[1].commands[0].contains("bandwidth 95mbit ethernet "));
}

#[test]
fn an_unknown_line_of_a_graph_that_no_port_has_gets_the_shaper_first() {
    let graph = |down: &str, up: &str| {
        format!(
            r#"
[network]
kind = "graph"
hosts = ["dc", "pc"]
routers = ["gateway", "branch"]
[[link]]
name = "lan"
from = "dc"
to = "gateway"
delay = "1 ms"
[[link]]
name = "tunnel"
from = "gateway"
to = "branch"
rate = "{down}"
delay = "20 ms"
framing = "80 B"
queue = {{ kind = "drop-tail", limit = "250 ms" }}
reverse = {{ rate = "{up}" }}
[[link]]
name = "desk"
from = "branch"
to = "pc"
[[traffic]]
name = "pages"
kind = "transfer"
size = "20 kB"
arrivals = {{ dist = "poisson", rate = "20 per second" }}
from = "dc"
to = "pc"
[run]
duration = "10 s"
seeds = 2
"#
        )
    };
    let commands = |down: &str, up: &str| -> Vec<Vec<String>> {
        let plan = planned(&graph(down, up), &["cake"], "tunnel:forward");
        let waits = measured(&plan, 0.0, 0.0);
        let steps = instructions_of(&plan, 1, &waits, &waits);
        steps.into_iter().map(|step| step.commands).collect()
    };
    let uneven = commands("12 Mbit/s", "4 Mbit/s");
    assert_eq!(uneven.len(), 2, "{uneven:?}");
    assert!(
        uneven[0][0].contains("root cake bandwidth 11400kbit overhead 80 "),
        "{uneven:?}"
    );
    assert!(uneven[1][0].contains("root cake besteffort"), "{uneven:?}");
    // No port has this rate, though both directions have it; a port has 100 Mbit/s, but not one way.
    assert_eq!(commands("12 Mbit/s", "12 Mbit/s")[0], uneven[0]);
    assert!(commands("100 Mbit/s", "10 Mbit/s")[0][0].contains("bandwidth 95mbit overhead 80 "));
    let port = commands("100 Mbit/s", "100 Mbit/s");
    assert!(
        port.len() == 1 && port[0][0].contains("root cake besteffort"),
        "{port:?}"
    );
}

#[test]
fn a_switch_is_asked_for_a_threshold_in_its_own_words() {
    let text = line("10 Gbit/s", "10 Gbit/s", "medium = \"switch\"").replace("\"10 ms\"", "\"20 us\"");
    let steps = steps(&text, "dctcp", DOWN);
    let queue = &steps[0];
    // A base RTT of 4.04 ms: a seventh is 578 us, at 10 Gbit/s 722 kB or 482 packets.
    assert!(
        queue.commands[0].contains("root codel limit 46875 target 1s ce_threshold 578us"),
        "{queue:?}"
    );
    assert!(
        queue
            .needs
            .contains("K = 722 kB on, which is 482 packets of 1500 bytes"),
        "{}",
        queue.needs
    );
    assert_eq!(
        steps[1].commands,
        [
            "modprobe tcp_dctcp; sysctl -w net.ipv4.tcp_congestion_control=dctcp",
            "sysctl -w net.ipv4.tcp_ecn=3 2>/dev/null || sysctl -w net.ipv4.tcp_ecn=1"
        ]
    );
    assert_eq!(
        (steps[1].place.as_str(), steps[1].device.as_str()),
        ("servers and clients", "every server and every client")
    );
}

#[test]
fn a_mobile_line_is_warned_that_its_rate_moves_and_a_radio_that_no_shaper_holds_it() {
    let mobile = steps(
        &line("50 Mbit/s", "10 Mbit/s", "medium = \"cellular\""),
        "cake",
        UP,
    );
    assert!(mobile[0].commands[0].contains("bandwidth 8500kbit ethernet"));
    assert!(mobile[0].needs.contains("cake-autorate"));
    assert!(
        mobile[0].why.contains(
            "ethernet counts 38 bytes with each packet, as on Ethernet, since what this line adds is not known. A full packet"
        ),
        "{mobile:?}"
    );
    let radio = steps(
        &line("50 Mbit/s", "50 Mbit/s", "medium = \"wifi\""),
        "fq-codel",
        DOWN,
    );
    assert!(
        radio[0].commands.is_empty() && radio[0].needs.contains("mac80211"),
        "{radio:?}"
    );
}

/// The step is that of the queue: two packets of 1500 bytes and 150 more each take 2 x 1650 x 8 bits, 5.28 ms at 5 Mbit/s.
#[test]
fn the_step_of_dualpi2_counts_framing_as_the_queue_does() {
    let plan = planned(&cable(), &["dualpi2-l4s"], UP);
    let links = &plan.variants[1].resolved.spec.links;
    let mut link = links
        .iter()
        .find(|link| link.queue == "dualpi2")
        .expect("it acts")
        .clone();
    (link.mtu, link.framing) = (1500, 150);
    let discipline = Discipline::of(&link, Some(Rate::from_bps(5_000_000)));
    let arguments = discipline.arguments.expect("Linux has it");
    assert!(arguments.contains(" step_thresh 5280us"), "{arguments}");
}

/// Above max Linux marks what is ECN-capable unless `harddrop` is said: the variant simulates what its command does, and a file that drops there, as
/// RFC 3168 has it, gets the word.
#[test]
fn red_with_ecn_is_simulated_as_its_command_works() {
    let plan = planned(&cable(), &["red-ecn"], UP);
    let links = &plan.variants[1].resolved.spec.links;
    let link = links.iter().find(|link| link.queue == "red").expect("it acts");
    for name in ["hard_drop", "gentle"] {
        assert_eq!(link.queue_values.value(name), Value::Flag(false), "{name}");
    }
    let steps = steps(&cable(), "red-ecn", UP);
    let command = steps[0].commands.join("; ");
    assert!(
        command.contains(" ecn") && !command.contains("harddrop"),
        "{command}"
    );
    let needs = &steps[0].needs;
    assert!(
        needs.contains("above max Linux marks every ECN-capable packet and drops the others at once."),
        "{needs}"
    );
    let mut dropping = link.clone();
    for (name, value) in [("hard_drop", true), ("gentle", true)] {
        dropping
            .queue_values
            .set(name, Value::Flag(value))
            .expect("a flag");
    }
    let dropping = Discipline::of(&dropping, None);
    assert!(
        dropping
            .needs
            .contains("above max Linux drops every packet at once (the simulation drops more"),
        "{}",
        dropping.needs
    );
    let arguments = dropping.arguments.expect("Linux has it");
    assert!(arguments.ends_with(" ecn harddrop"), "{arguments}");
}

#[test]
fn what_to_check_is_said_once_after_the_last_place() {
    let one = |place: &str| Instruction {
        place: place.to_owned(),
        device: String::new(),
        commands: Vec::new(),
        why: String::new(),
        needs: String::new(),
        nearest: None,
        margin: None,
        check: Some(String::from("ping")),
    };
    let mut both = [one("the uplink"), one("the downlink")];
    super::check_together(&mut both);
    assert_eq!(
        both.map(|one| one.check),
        [None, Some("With all of it turned on: ping".to_owned())]
    );
    // Two ways to do the same at one place keep theirs.
    let mut same = [one("the uplink"), one("the uplink")];
    super::check_together(&mut same);
    assert!(same.iter().all(|one| one.check.as_deref() == Some("ping")));
}

/// What `printf` writes for a command of the router, as `fleetfoot router` reads it.
fn written(command: &str) -> RouterFile {
    // Tests run in threads of one process.
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let folder = std::env::temp_dir().join(format!("fleetfoot-turn-on-{process}-{thread:?}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let writes = command.replace("&& fleetfoot router router.toml", "");
    assert_ne!(writes, command);
    let status = Command::new("sh")
        .current_dir(&folder)
        .args(["-c", &writes])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{command}");
    let there = ["eth0", "eth1"].map(|name| Interface {
        name: name.to_owned(),
        hardware: Some([2, 0, 0, 0, 0, 1]),
        index: 1,
        mtu: 1500,
        addresses: Vec::new(),
        networks: Vec::new(),
        up: true,
    });
    let file = router(&folder.join("router.toml"), &there).expect("the router reads it");
    let _ = std::fs::remove_dir_all(&folder);
    file
}
