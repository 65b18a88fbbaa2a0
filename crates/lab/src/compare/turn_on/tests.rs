//! Hand-written expectations for common lines, and a table over every mechanism, medium and direction.

use super::controllers::controller;
use super::instructions_of;
use super::queues::Discipline;
use crate::compare::{Choice, Plan, build};
use crate::mechanisms::{ENTRIES, Effort, Preset};
use crate::result::{Instruction, Summary, Variant};
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
            "WAN=eth0; tc qdisc replace dev $WAN root cake bandwidth 9500kbit docsis besteffort triple-isolate nat"
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
            "WAN=eth0; IFB=ifb-wan; tc qdisc del dev $WAN ingress 2>/dev/null; ip link add $IFB type ifb 2>/dev/null; ip link set $IFB up && tc qdisc replace dev $IFB root cake bandwidth 45mbit docsis besteffort triple-isolate nat ingress && tc qdisc add dev $WAN handle ffff: ingress && tc filter add dev $WAN parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev $IFB || { tc qdisc del dev $WAN ingress 2>/dev/null; ip link del $IFB 2>/dev/null; false; }"
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
fn dsl_lines_count_their_own_bytes() {
    let vdsl = line("50 Mbit/s", "10 Mbit/s", "medium = \"vdsl\"");
    let vdsl_steps = steps(&vdsl, "cake", UP);
    assert!(vdsl_steps[0].commands[0].contains("cake bandwidth 9500kbit pppoe-ptm besteffort"));
    let without = line("50 Mbit/s", "10 Mbit/s", "medium = \"vdsl\"\nframing = 22");
    assert!(steps(&without, "cake", UP)[0].commands[0].contains("9500kbit bridged-ptm "));
    // Of 65 bytes 64 carry packets: 9.5 Mbit/s times 64/65 is 9353 kbit/s.
    let below = &steps(&vdsl, "fq-codel", UP)[0];
    assert!(
        below
            .why
            .contains("of 65 bytes of this line 64 carry packets, hence the rate 9353kbit"),
        "{below:?}"
    );
    assert!(!vdsl_steps[0].why.contains("of 65 bytes"), "{vdsl_steps:?}");
    let below = &below.commands[1];
    assert!(
        below.contains("stab overhead 16 linklayer ethernet htb") && below.contains("rate 9353kbit"),
        "{below}"
    );
    let adsl = line("8 Mbit/s", "1 Mbit/s", "medium = \"adsl\"");
    assert!(
        steps(&adsl, "cake", UP)[0].commands[0].contains("cake bandwidth 950kbit pppoe-llcsnap besteffort")
    );
    let below = &steps(&adsl, "fq-codel", UP)[0].commands[1];
    assert!(
        below.contains("stab overhead 26 linklayer atm htb") && below.contains("rate 950kbit"),
        "{below}"
    );
}

#[test]
fn the_margin_counts_what_the_scenario_does_not() {
    let of = |more: &str, mechanism: &str, place: &str| {
        let found = steps(&line("16 Mbit/s", "1 Mbit/s", more), mechanism, place);
        let margin = found[0].margin.expect("a shaper");
        ((1000.0 * margin).round() / 10.0, found[0].why.clone())
    };
    // Full packets of 1500 bytes: 33 cells of 53 bytes with 40 more; 1530 bytes times 65/64; 1518; 1538.
    for (medium, mechanism, place, margin) in [
        ("adsl", "cake", UP, 18.5),
        ("adsl", "fq-codel", UP, 18.5),
        ("adsl", "cake", DOWN, 22.8),
        ("vdsl", "cake", UP, 8.3),
        ("docsis", "cake", UP, 6.1),
        ("gpon", "cake", UP, 7.3),
        // A file of the router counts half a cell with each packet.
        ("adsl", "favourtail", UP, 17.5),
    ] {
        let (found, why) = of(&format!("medium = \"{medium}\""), mechanism, place);
        assert_eq!(found, margin, "{medium} {mechanism}: {why}");
        assert!(why.contains(" in the scenario (`framing`)"), "{why}");
    }
    let (found, why) = of("medium = \"adsl\"", "cake", UP);
    assert!(
        found == 18.5
            && why.ends_with(
                "A full packet of 1500 bytes takes 1749 bytes of the rate so, and 1500 in the scenario (`framing`): the line carries 81.5 % of what was simulated."
            ),
        "{why}"
    );
    let (found, why) = of("medium = \"docsis\"\nframing = 18", "cake", UP);
    assert!(found == 5.0 && !why.contains("full packet"), "{found} {why}");
    let (found, _) = of("framing = 80", "cake", UP);
    assert_eq!(found, 5.0, "it counts what the scenario counts");
}

#[test]
fn a_line_of_dsl_without_framing_is_noted() {
    let notes = |more: &str| {
        let plan = planned(&line("16 Mbit/s", "1 Mbit/s", more), &["cake"], UP);
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &engine, &|_| ());
        let notes = build(&plan, &batch.expect("it runs"), "").document.notes;
        notes.into_iter().find(|note| note.contains("`framing` 0"))
    };
    let adsl = notes("medium = \"adsl\"").expect("it is noted");
    assert!(
        adsl.starts_with("`medium` is adsl and `framing` 0 at ") && adsl.contains("1749 bytes"),
        "{adsl}"
    );
    assert!(notes("medium = \"vdsl\"").is_some_and(|note| note.contains("64/65 of the rate")));
    assert_eq!(notes("medium = \"adsl\"\nframing = 40"), None);
    assert_eq!(notes("medium = \"docsis\""), None);
}

#[test]
fn a_port_is_changed_directly_at_its_own_rate() {
    let port = line("100 Mbit/s", "100 Mbit/s", "medium = \"ethernet\"");
    let port_steps = steps(&port, "fq-codel", DOWN);
    assert_eq!(
        port_steps[0].commands,
        ["DEV=eth0; tc qdisc replace dev $DEV root fq_codel limit 46875"]
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
            "WAN=eth0; tc qdisc replace dev $WAN root cake bandwidth 19mbit ethernet besteffort triple-isolate nat"
        ]
    );
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
    assert!(line_steps[1].commands[0].ends_with("root cake besteffort triple-isolate"));
    let even = steps(&line("100 Mbit/s", "100 Mbit/s", ""), "cake", UP);
    assert!(even[0].commands[0].ends_with("root cake besteffort triple-isolate"));
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

#[test]
fn servers_are_not_the_homes() {
    let window_steps = steps(&cable(), "initial-window-20", UP);
    assert_eq!(window_steps.len(), 1);
    assert_eq!(window_steps[0].place, "servers");
    assert!(window_steps[0].device.contains("you cannot do it from home"));
    assert_eq!(
        window_steps[0].commands,
        [
            "ip route change $(ip route show default | head -n 1 | sed 's/rto_min lock/rto_min/; s/ initcwnd [0-9]*//') initcwnd 20"
        ]
    );
    assert!(
        window_steps[0]
            .check
            .as_deref()
            .is_some_and(|check| check.contains("pages"))
    );
    let floor_steps = steps(&cable(), "min-rto-20ms", UP);
    assert!(
        floor_steps[0].commands[0].ends_with(" rto_min 20ms"),
        "{floor_steps:?}"
    );
    // Receivers answer: of servers' data those are the clients.
    assert_eq!(steps(&cable(), "delayed-ack-off", UP)[0].place, "clients");
}

#[test]
fn a_relay_is_set_like_the_hosts_whose_connections_it_ends() {
    let through = cable().replace("name = \"pages\"", "name = \"pages\"\nrelay = \"router-1\"");
    let window = &steps(&through, "initial-window-20", UP)[0];
    assert!(window.device.ends_with(", and the relay router-1"), "{window:?}");
    assert!(
        window
            .needs
            .ends_with("The relay router-1 ends their connections, so it needs the same."),
        "{window:?}"
    );
    let without = &steps(&cable(), "initial-window-20", UP)[0];
    assert!(!without.device.contains("relay") && !without.needs.contains("relay"));
}

#[test]
fn what_is_nowhere_names_the_nearest() {
    for (name, nearest) in [
        ("favourtail", "fq_codel"),
        ("favourtail-budget", "cake bandwidth 9500kbit"),
        ("super-packets", "fq_codel"),
    ] {
        let steps = steps(&cable(), name, UP);
        assert!(
            steps[0].needs.contains("Nowhere but in Fleetfoot") && steps[0].needs.contains(nearest),
            "{name}: {}",
            steps[0].needs
        );
    }
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

#[test]
fn a_queue_of_fleetfoot_alone_is_a_file_of_the_router_at_the_rate_of_the_line() {
    // Of 10 Mbit/s upstream 95 %, of 50 Mbit/s downstream 90 %; the limit stays in bytes.
    for (name, kind, place, at, kbit, bytes) in [
        ("favourtail", "favourtail", UP, 1, 9500, 375_000),
        ("favourtail", "favourtail", DOWN, 0, 45_000, 1_875_000),
        ("favourtail-budget", "favourtail", UP, 1, 9500, 375_000),
        ("super-packets-hardened", "sp-h", UP, 1, 9500, 375_000),
    ] {
        let steps = steps(&cable(), name, place);
        let [command] = steps[0].commands.as_slice() else {
            panic!("{name}: {steps:?}");
        };
        let file = written(command);
        let interfaces = &file.config.interfaces;
        let names: Vec<&str> = interfaces.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["eth1", "eth0"]);
        let (shaped, other) = (&interfaces[at], &interfaces[1 - at]);
        assert_eq!((shaped.queue.name, other.rate), (kind, None), "{name}");
        assert_eq!(shaped.rate, Some(Rate::from_bps(kbit * 1000)), "{name}");
        assert_eq!(shaped.framing, 18, "{name}");
        assert_eq!(
            shaped.queue.values.limit("limit"),
            Limit::Bytes(Bytes(bytes)),
            "{name}"
        );
        if name == "favourtail-budget" {
            assert_eq!(shaped.queue.values.value("budget"), Value::Flag(true));
        }
        assert_eq!(steps[0].nearest, None, "{name}");
    }
    // At a port of the line's own rate nothing need be held to it.
    let port = line("100 Mbit/s", "100 Mbit/s", "medium = \"switch\"");
    let steps = steps(&port, "favourtail", UP);
    assert_eq!(written(&steps[0].commands[0]).config.interfaces[1].rate, None);
}

/// A second router between the same interfaces would be refused.
#[test]
fn both_directions_of_a_line_are_one_router() {
    let no_medium = line("50 Mbit/s", "10 Mbit/s", "");
    for (text, mechanism) in [(cable(), "favourtail"), (no_medium, "super-packets-hardened")] {
        let scenario = Scenario::parse("line.toml", &text).expect("it is correct");
        let choice = Choice {
            only: vec![mechanism.to_owned()],
            places: vec![UP.to_owned(), DOWN.to_owned()],
            ..Choice::default()
        };
        let plan = Plan::compare(scenario, &choice).expect("it resolves");
        let index = plan
            .variants
            .iter()
            .position(|variant| variant.name == mechanism && variant.places.len() == 2);
        let [before, after] = [(0.27, 0.3), (0.005, 0.02)].map(|(mean, p99)| measured(&plan, mean, p99));
        let steps = instructions_of(&plan, index.expect("it applies"), &after, &before);
        let shapers: Vec<&Instruction> = steps
            .iter()
            .filter(|step| step.device.starts_with("your router"))
            .collect();
        let [first, second] = shapers.as_slice() else {
            panic!("{mechanism}: {steps:?}");
        };
        let rates = written(&first.commands[0])
            .config
            .interfaces
            .iter()
            .map(|one| (one.name.clone(), one.rate.map(Rate::bps)))
            .collect::<Vec<_>>();
        let wanted = [("eth1", 45_000_000), ("eth0", 9_500_000)];
        assert_eq!(rates, wanted.map(|(name, bps)| (name.to_owned(), Some(bps))));
        assert!(second.commands.is_empty(), "{second:?}");
        let other = format!("The command for {} starts one router", first.place);
        assert!(second.needs.starts_with(&other), "{second:?}");
    }
}

/// `explain` and `compare` say the same of mechanisms that no kernel has and our TCP does.
#[test]
fn what_only_our_tcp_has_is_turned_on_by_the_proxy_that_explain_names() {
    let plan = planned(&cable(), &[], UP);
    let [before, after] = [(0.27, 0.3), (0.005, 0.02)].map(|(mean, p99)| measured(&plan, mean, p99));
    let own = |command: &str| {
        let words = command
            .split("--set ")
            .skip(1)
            .map(|word| word.trim().trim_matches('\'').to_owned());
        // The rate is that of the user's bottleneck.
        words
            .filter(|word| !word.starts_with("tcp.spreading_rate="))
            .collect::<BTreeSet<String>>()
    };
    let mut found = BTreeSet::new();
    for (index, variant) in plan.variants.iter().enumerate() {
        let [mechanism] = variant.mechanisms.as_slice() else {
            continue;
        };
        let steps = instructions_of(&plan, index, &after, &before);
        let commands: Vec<&String> = steps.iter().flat_map(|step| &step.commands).collect();
        let listed = mechanism
            .turn_on
            .split_once("fleetfoot proxy")
            .map(|(_, rest)| own(rest.split(" (").next().unwrap_or_default()));
        let name = mechanism.name;
        assert!(listed.is_none() || !commands.is_empty(), "{name}: {steps:?}");
        for command in commands
            .iter()
            .filter(|command| command.contains("fleetfoot proxy"))
        {
            assert_eq!(Some(own(command)), listed, "{name}: {command}");
            found.insert(name);
        }
    }
    for name in [
        "rdb",
        "initial-spreading",
        "tlp-restart",
        "hystart-plus-plus",
        "restart-window-rfc5681",
        "cdg-one-way",
        "bbr3",
        "dualpi2-l4s",
    ] {
        assert!(found.contains(name), "{name} is not among {found:?}");
    }
}

/// A server accepts connections: what asks a proxy by SOCKS does nothing for what it sends.
#[test]
fn servers_get_a_proxy_that_accepts() {
    let down = cable();
    let up = down
        .replace("count = 2", "count = 2\ndirection = \"up\"")
        .replace("name = \"pages\"", "name = \"pages\"\ndirection = \"up\"");
    let even = line("50 Mbit/s", "50 Mbit/s", "");
    for (text, device, command) in [
        (
            &down,
            "every server you use",
            "PORT=80; fleetfoot proxy --accept 7000 --to 127.0.0.1:$PORT --address 10.9.0.2/24 --allow 0.0.0.0/0 --set tcp.rdb=one",
        ),
        (
            &even,
            "every server",
            "PORT=80; fleetfoot proxy --accept 7000 --to 127.0.0.1:$PORT --address 10.9.0.2/24 --allow 0.0.0.0/0 --set tcp.rdb=one",
        ),
        (
            &up,
            "every computer of yours",
            "fleetfoot proxy --masquerade --set tcp.rdb=one",
        ),
    ] {
        let steps = steps(text, "rdb", UP);
        assert_eq!(steps[0].commands, [command]);
        assert!(steps[0].device.starts_with(device), "{steps:?}");
        let accepts = steps[0].needs.contains("port 7000");
        assert_eq!(accepts, command.contains("--accept"), "{steps:?}");
        assert_eq!(accepts, !steps[0].needs.contains("SOCKS5"), "{steps:?}");
        assert!(!steps[0].needs.contains("sysctl"), "{steps:?}");
    }
}

/// Core does not know what hosts and routers are set with: `queues` and `endpoints` do, by name. Nothing that a kernel has, released or
/// patched, falls through to their answers for what they do not know.
#[test]
fn what_a_kernel_has_is_turned_on_by_words_of_its_own() {
    let plan = planned(&cable(), &["cake"], UP);
    let kernels = ENTRIES.iter().filter(|entry| entry.effort != Effort::OnlyHere);
    let settings = kernels.flat_map(|entry| entry.set.iter());
    let (mut queues, mut controllers) = (BTreeSet::new(), BTreeSet::new());
    for &(path, value) in settings {
        match (path, value) {
            ("queue.kind", Preset::Text(name)) => queues.insert(name),
            ("tcp.congestion_control", Preset::Text(name)) => controllers.insert(name),
            _ => false,
        };
    }
    for name in &queues {
        let entry = AnyQueue::entry(name).expect("it is registered");
        let link = LinkSpec {
            queue: entry.name,
            queue_values: Values::defaults(entry.parameters),
            ..plan.described.spec.links[0].clone()
        };
        assert!(Discipline::of(&link, None).arguments.is_some(), "{name}");
    }
    let unknown = controller("unheard-of", &[]);
    for name in &controllers {
        assert_ne!(controller(name, &[]).why, unknown.why, "{name}");
    }
    assert!(
        queues.len() > 8 && controllers.len() > 8,
        "{queues:?} {controllers:?}"
    );
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

/// Every mechanism at every kind of line, both ways, with the plan it was made for.
fn table() -> Vec<(String, Instruction)> {
    let mut rows = Vec::new();
    let media = Medium::ALL.iter().map(|(_, name)| format!("medium = \"{name}\""));
    for medium in media.chain([String::new()]) {
        for place in [UP, DOWN] {
            let plan = planned(&line("50 Mbit/s", "10 Mbit/s", &medium), &[], place);
            let [before, after] = [(0.27, 0.3), (0.005, 0.02)].map(|(mean, p99)| measured(&plan, mean, p99));
            assert!(plan.variants.len() > 40, "{}", plan.variants.len());
            for (index, variant) in plan.variants.iter().enumerate() {
                let steps = instructions_of(&plan, index, &after, &before);
                assert_eq!(steps.is_empty(), index == 0, "{} {medium} {place}", variant.name);
                rows.extend(
                    steps
                        .into_iter()
                        .map(|one| (format!("{} {medium} {place}", variant.name), one)),
                );
            }
        }
    }
    rows
}

#[test]
fn every_mechanism_has_steps_at_every_kind_of_line_and_its_commands_parse() {
    let rows = table();
    let mut commands: Vec<&str> = Vec::new();
    for (row, steps) in &rows {
        for text in [&steps.place, &steps.device, &steps.why, &steps.needs] {
            assert!(
                !text.trim().is_empty() && !text.contains('\n'),
                "{row}: {steps:?}"
            );
        }
        assert!(
            !steps.why.contains("  ") && !steps.needs.contains("  "),
            "{row}: {steps:?}"
        );
        assert!(steps.check.is_some(), "{row}: {steps:?}");
        for command in &steps.commands {
            assert!(
                !command.contains('\n') && !command.contains("IF ") && !command.contains("RATE"),
                "{row}: {command}"
            );
            for variable in ["DEV", "WAN", "LAN", "IFB"] {
                let used = command.contains(&format!("${variable}"));
                assert!(
                    !used || command.contains(&format!("{variable}=")),
                    "{row}: {command}"
                );
            }
            commands.push(command);
        }
        // What holds a line of 10 or 50 Mbit/s is slower than it.
        for rate in steps
            .commands
            .iter()
            .flat_map(|command| command.split("rate ").skip(1))
        {
            let kbit: u64 = rate
                .split("kbit")
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or(0);
            assert!(kbit <= 47_500, "{row}: {rate}");
        }
    }
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.len() > 100, "{}", commands.len());
    let Some(problems) = refused(&commands) else {
        eprintln!("skipped: no network namespace with tc here");
        return;
    };
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Two ports and a default route in a network namespace of their own.
const PREPARE: &str = "ip link add eth0 type veth peer name eth1 && ip link set eth0 up && ip link set eth1 up && ip addr add 10.0.0.2/24 dev eth0 && ip route add default via 10.0.0.1 dev eth0";

#[test]
fn a_line_that_fails_leaves_no_shaper_behind() {
    let queues = |command: &str| {
        let script =
            format!("{PREPARE} || exit 3\nethtool() {{ :; }}\n{command}\necho code $?; tc qdisc show");
        let output = Command::new("unshare").args(["-n", "sh", "-c", &script]).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for place in [UP, DOWN] {
        let steps = steps(&cable(), "short-buffer", place);
        let command = &steps[0].commands[1];
        let Some(shaped) = queues(command).filter(|shown| shown.contains("htb")) else {
            eprintln!("skipped: no network namespace with tc and htb here");
            return;
        };
        assert!(shaped.contains("code 0") && shaped.contains("pfifo"), "{shaped}");
        let unknown = command.replace(" pfifo limit", " no_such_queue limit");
        assert_ne!(&unknown, command);
        let left = queues(&unknown).unwrap_or_default();
        assert!(left.contains("code 1"), "{left}");
        assert!(!left.contains("htb") && !left.contains("ingress"), "{left}");
    }
}

/// What tc, ip and sysctl say against `commands` in a network namespace of their own; what only this kernel or this iproute2
/// lacks is left out. `None`: there can be no such namespace here.
fn refused(commands: &[&str]) -> Option<Vec<String>> {
    let prepare = PREPARE;
    let works = Command::new("unshare")
        .args(["-n", "sh", "-c", &format!("{prepare} && tc qdisc show dev eth0")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !works.is_ok_and(|status| status.success()) {
        return None;
    }
    // `fleetfoot mark` runs until it is stopped, and is tested where the program is built: here its ports are looked at.
    let mark = "fleetfoot() { test $1 != mark || { ip link show ${3%,*} > /dev/null; ip link show ${3#*,} > /dev/null; }; }";
    let mut script = format!("cd $(mktemp -d)\n{prepare}\nmodprobe() {{ :; }}\nethtool() {{ :; }}\n{mark}\n");
    for (index, command) in commands.iter().enumerate() {
        // Parameters of the kernel's modules belong to the machine, not to the namespace.
        if !command.contains("/sys/module") {
            // Twice: what is there already must not be in the way.
            script.push_str(&format!("echo '@{index}' >&2\n{command}\n{command}\n"));
        }
    }
    let mut shell = Command::new("unshare")
        .args(["-n", "sh"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = shell.stdin.take()?;
    input.write_all(script.as_bytes()).ok()?;
    drop(input);
    let output = shell.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut current = "";
    let mut problems = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(index) = line.strip_prefix('@') {
            current = index
                .parse::<usize>()
                .ok()
                .and_then(|index| commands.get(index))
                .unwrap_or(&"");
            continue;
        }
        let lacking = line.contains("Specified qdisc kind is unknown")
            || line.contains("Specified qdisc not found")
            || line.contains("Unknown qdisc \"dualpi2\"")
            || line.contains("tcp_congestion_control\": No such file")
            || line.contains("cannot stat")
            || line.starts_with("RED: set bandwidth");
        if !lacking {
            problems.push(format!("{current}: {line}"));
        }
    }
    Some(problems)
}

/// Worked by hand from tc-cake(8) and tc-stab(8): ADSL with PPPoE adds 40 bytes, without 32; Linux counts 14 of them at a port
/// of Ethernet and none at a PPP interface.
#[test]
fn below_htb_the_bytes_of_other_kinds_of_dsl_are_numbers() {
    let adsl = line("50 Mbit/s", "10 Mbit/s", "medium = \"adsl\"");
    let [below] = &steps(&adsl, "fq-codel", UP)[..] else {
        panic!("one place");
    };
    assert!(below.commands[1].contains("stab overhead 26 linklayer atm"));
    for part in ["with overhead 40 instead of 26", "overhead 18 is exact"] {
        assert!(below.needs.contains(part), "{part}: {}", below.needs);
    }
    let [cake] = &steps(&adsl, "cake", UP)[..] else {
        panic!("one place");
    };
    assert!(cake.needs.contains("bridged-llcsnap is exact") && !cake.needs.contains("instead of"));
}

/// The example of a tunnel over VDSL: 98 bytes are added to a packet, of which PTM's own framing are 30.
#[test]
fn a_framing_larger_than_that_of_the_medium_is_counted() {
    for (medium, cake, below) in [
        (
            "vdsl",
            "ptm overhead 98 besteffort",
            "stab overhead 84 linklayer ethernet",
        ),
        (
            "adsl",
            "atm overhead 98 besteffort",
            "stab overhead 84 linklayer atm",
        ),
        (
            "docsis",
            "noatm overhead 98 mpu 64 besteffort",
            "stab overhead 84 mpu 64 linklayer ethernet",
        ),
        (
            "gpon",
            "noatm overhead 98 mpu 84 besteffort",
            "stab overhead 84 mpu 84 linklayer ethernet",
        ),
        (
            "cellular",
            "noatm overhead 98 mpu 84 besteffort",
            "stab overhead 84 mpu 84 linklayer ethernet",
        ),
    ] {
        let text = line(
            "50 Mbit/s",
            "10 Mbit/s",
            &format!("medium = \"{medium}\"\nframing = \"98 B\""),
        );
        let shaper = &steps(&text, "cake", UP)[0];
        assert!(shaper.commands[0].contains(cake), "{medium}: {shaper:?}");
        assert!(shaper.why.contains("counts the 98 bytes"), "{medium}: {shaper:?}");
        assert!(!shaper.needs.contains("is exact"), "{medium}: {shaper:?}");
        let shaper = &steps(&text, "fq-codel", UP)[0];
        assert!(shaper.commands[1].contains(below), "{medium}: {shaper:?}");
        assert!(
            shaper.why.contains("overhead counts the 98 bytes"),
            "{medium}: {shaper:?}"
        );
        let router = &steps(&text, "favourtail", UP)[0];
        let more = if medium == "adsl" { 24 } else { 0 };
        assert_eq!(
            written(&router.commands[0]).config.interfaces[1].framing,
            98 + more,
            "{medium}"
        );
    }
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
