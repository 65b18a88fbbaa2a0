//! What is turned on at hosts and relays, by the router of this program and by its proxy.

use super::parsed::route_after;
use super::*;

#[test]
fn servers_are_not_the_homes() {
    let window_steps = steps(&cable(), "initial-window-20", UP);
    assert_eq!(window_steps.len(), 1);
    assert_eq!(window_steps[0].place, "servers");
    assert!(
        window_steps[0]
            .device
            .contains("nothing at your end of the line can")
    );
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

/// Who reaches servers by a radio runs them no more than who reaches them by a cable modem; between machines of one's own a command is for all of them.
#[test]
fn servers_beyond_a_radio_are_another_s() {
    let device = |medium: &str, name: &str| {
        let text = line("40 Mbit/s", "40 Mbit/s", &format!("medium = \"{medium}\""));
        steps(&text, name, UP)[0].device.clone()
    };
    for medium in ["wifi", "docsis", "adsl", "cellular"] {
        assert_eq!(
            device(medium, "vegas"),
            "every server at the other end: whoever runs it can do this, nothing at your end of the line can",
            "{medium}"
        );
        assert_eq!(
            device(medium, "delayed-ack-off"),
            "every device of yours at this line",
            "{medium}"
        );
    }
    for medium in ["switch", "host", "ethernet"] {
        assert_eq!(device(medium, "vegas"), "every server", "{medium}");
    }
    // A shaper in a router has no place before a radio.
    let radio = line("40 Mbit/s", "40 Mbit/s", "medium = \"wifi\"");
    let queue = &steps(&radio, "fq-codel", UP)[0];
    assert!(
        queue.commands.is_empty() && queue.margin.is_none() && queue.device.ends_with("radio driver"),
        "{queue:?}"
    );
}

/// The simulation gives a switch to both ends of a group. A client's timer repairs its requests, and whoever answers must not wait longer
/// than the timer of who asks (Linux: `tcp_delack_max` follows the least timeout).
#[test]
fn what_repairs_requests_is_set_at_both_ends() {
    let exchanges = |request: &str| {
        cable().replace(
            "kind = \"transfer\"\nsize = \"20 kB\"\narrivals = { dist = \"poisson\", rate = \"20 per second\" }",
            &format!("kind = \"request-response\"\ncount = 4\nrequest = \"{request}\"\nresponse = \"20 kB\"\nthink = \"100 ms\""),
        )
    };
    let transfers = cable();
    let (short, long) = (exchanges("300 B"), exchanges("200 kB"));
    let (both, servers): (&[&str], &[&str]) = (&["servers and clients"], &["servers"]);
    for (text, name, places) in [
        (&short, "min-rto-20ms", both),
        (&short, "min-rto-1s", both),
        (&short, "no-rack-tlp", both),
        // A first window has room for three hundred bytes.
        (&short, "initial-window-20", servers),
        (&short, "cdg", servers),
        (&long, "initial-window-20", both),
        // Nothing is sent from the clients. A shorter floor acts on their acknowledgments, a longer one does not.
        (&transfers, "no-rack-tlp", servers),
        (&transfers, "min-rto-20ms", both),
        (&transfers, "min-rto-1s", servers),
        // A server accepts, and programs at a client ask.
        (&short, "tlp-restart", &["servers", "clients"]),
        (&transfers, "tlp-restart", servers),
    ] {
        let plan = planned(text, &[name], UP);
        let index = plan.variants.iter().position(|variant| variant.name == name);
        let index = index.expect("it applies");
        let [before, after] = [(0.27, 0.3), (0.005, 0.02)].map(|(mean, p99)| measured(&plan, mean, p99));
        let steps = instructions_of(&plan, index, &after, &before);
        let found: Vec<&str> = steps.iter().map(|step| step.place.as_str()).collect();
        assert_eq!(found, places, "{name}: {steps:?}");
        let expected = match places {
            ["servers"] => Senders::Servers,
            _ => Senders::Both,
        };
        assert_eq!(plan.variants[index].senders, Some(expected), "{name}");
        for step in &steps {
            let [command] = step.commands.as_slice() else {
                panic!("{name}: {step:?}");
            };
            let accepts = command.contains("--accept");
            assert_eq!(
                accepts,
                name == "tlp-restart" && step.place == "servers",
                "{name}: {command}"
            );
            assert_eq!(
                step.device.contains("of yours at this line"),
                step.place.contains("clients"),
                "{step:?}"
            );
            assert_eq!(
                step.device.contains("whoever runs it can do"),
                step.place.contains("servers"),
                "{step:?}"
            );
        }
    }
}

/// Hosts of a subnet have a route for it, which is longer than the default route and comes first (longest prefix).
#[test]
fn within_a_site_the_route_to_the_peers_is_changed() {
    let rack = line("10 Gbit/s", "10 Gbit/s", "medium = \"switch\"")
        .replace("delay = \"10 ms\"", "delay = \"20 us\"");
    let near = rack.replace(
        "pairs = 2",
        "pairs = 2\naccess = { rate = \"10 Gbit/s\", delay = \"10 us\" }",
    );
    for (name, property) in [
        ("min-rto-20ms", "rto_min 20ms"),
        ("initial-window-20", "initcwnd 20"),
        ("delayed-ack-off", "quickack 1"),
    ] {
        let near = steps(&near, name, UP);
        let [command] = near[0].commands.as_slice() else {
            panic!("{near:?}");
        };
        assert!(
            command.starts_with("PEER=10.0.0.3; ip route change $(ip route get fibmatch $PEER | ")
                && command.ends_with(property),
            "{command}"
        );
        assert!(
            near[0]
                .needs
                .contains("PEER is the address of a host at the other end"),
            "{near:?}"
        );
        let shown = route_after(command);
        let Some(shown) = shown else {
            eprintln!("skipped: no network namespace with ip here");
            continue;
        };
        let changed: Vec<&str> = shown
            .lines()
            .filter(|line| line.replace("lock ", "").contains(property))
            .collect();
        assert!(
            matches!(changed.as_slice(), [own] if own.starts_with("10.0.0.0/24 ")),
            "{name}: {shown}"
        );
        // Over a line to a provider it is the default route.
        let far = steps(&cable(), name, UP);
        assert!(far[0].commands[0].contains("ip route show default"), "{far:?}");
    }
}

/// A side alone is one of groups that send from there; a group whose both ends send has no side.
#[test]
fn what_acts_at_both_ends_has_no_part_on_one_side() {
    let sides = |name: &str| {
        let text = cable()
            .replace("count = 2", "count = 2\ndirection = \"up\"")
            .replace("size = \"20 kB\"", "size = \"20 kB\"\nlatency_sensitive = true");
        let mut plan = planned(&text, &[name], UP);
        plan.add_parts(name);
        let parts = plan.variants.iter().filter(|variant| variant.part_of.is_some());
        parts.count()
    };
    assert_eq!(sides("initial-window-20"), 2);
    assert_eq!(sides("min-rto-20ms"), 0);
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
fn counting_answers_alone_is_for_kernels_that_can() {
    let said = |profile: &str, name: &str| {
        let text = cable().replace("[run]", &format!("[tcp]\nprofile = \"{profile}\"\n[run]"));
        let steps = steps(&text, name, UP);
        let step = steps
            .into_iter()
            .find(|step| step.commands.iter().any(|one| one.contains("tcp_recovery")));
        step.expect("it is a sysctl").needs
    };
    // Linux 6.17 took the older detection out. ip-sysctl.rst: "setting this bit to 0 has no effect".
    let off = said("linux", "no-rack-tlp");
    assert!(
        off.contains("Linux 4.4 to 6.16. From 6.17 on the command has no effect"),
        "{off}"
    );
    let on = said("linux-2015", "rack-tlp");
    assert!(
        on.contains("Linux 4.4 or later") && !on.contains("no effect"),
        "{on}"
    );
}

/// "tcp: adjust tail loss probe timeout" (bb4d991a28cc) came with Linux 4.14; 4.4 brought RACK, and FACK is off by default from 4.11 on
/// (94bdc9785aab).
#[test]
fn the_probe_of_the_draft_is_that_of_kernels_before_4_14() {
    let steps = steps(&cable(), "tail-loss-probe-draft", UP);
    let step = steps
        .iter()
        .find(|step| step.commands.iter().any(|one| one.contains("tcp_early_retrans")));
    let needs = &step.expect("it is a sysctl").needs;
    assert!(
        needs.contains("To 4.13 as simulated, from 4.11 on with sysctl net.ipv4.tcp_fack=1"),
        "{needs}"
    );
    let entry = ENTRIES.iter().find(|entry| entry.name == "tail-loss-probe-draft");
    let explained = entry.expect("it is registered").turn_on;
    for wanted in [
        "Linux 3.10 to 4.13:",
        "from 4.4 on with net.ipv4.tcp_recovery=0",
        "from 4.11 on with net.ipv4.tcp_fack=1",
    ] {
        assert!(explained.contains(wanted), "{explained}");
    }
}

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
            "every server at the other end",
            "PORT=80; fleetfoot proxy --accept 7000 --to 127.0.0.1:$PORT --address 10.9.0.2/24 --allow 0.0.0.0/0 --set tcp.rdb=one",
        ),
        (
            &even,
            "every server",
            "PORT=80; fleetfoot proxy --accept 7000 --to 127.0.0.1:$PORT --address 10.9.0.2/24 --allow 0.0.0.0/0 --set tcp.rdb=one",
        ),
        (
            &up,
            "every device of yours",
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
    let unknown = controller("unheard-of", None);
    for name in &controllers {
        assert_ne!(controller(name, None).why, unknown.why, "{name}");
    }
    assert!(
        queues.len() > 8 && controllers.len() > 8,
        "{queues:?} {controllers:?}"
    );
}
