//! What every entry must have.

use super::{ENTRIES, PAIRS, Preset, find};
use crate::run::simulate;
use crate::scenario::{Resolved, Scenario, Setting, Site};
use std::sync::atomic::AtomicBool;

/// The queue at the bottleneck, both directions.
fn bottleneck(described: &Resolved) -> Site {
    let links = &described.spec.links;
    let wanted: Vec<usize> = (0..links.len())
        .filter(|&link| described.run.bottleneck.contains(&links[link].name))
        .collect();
    Site::new(described, &wanted)
}

#[test]
fn every_entry_is_complete_and_its_name_is_its_own() {
    for (index, entry) in ENTRIES.iter().enumerate() {
        for (what, text) in [
            ("turn_on", entry.turn_on),
            ("document", entry.document),
            ("source", entry.source),
            ("evidence", entry.evidence),
        ] {
            assert!(!text.trim().is_empty(), "{} has no {what}", entry.name);
        }
        assert!(!entry.set.is_empty(), "{} sets nothing", entry.name);
        assert!(
            ENTRIES[..index].iter().all(|other| other.name != entry.name),
            "{} is there twice",
            entry.name
        );
        assert!(
            entry
                .name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{}",
            entry.name
        );
    }
}

/// Begins of commands and calls that turn something on in a released kernel of today, or that it is on.
const OF_TODAY: [&str; 8] = [
    "tc qdisc",
    "sysctl ",
    "ip route ",
    "ethtool ",
    "net.ipv4.",
    "/sys/module/",
    "always on",
    "setsockopt(",
];
/// Verbs of Fleetfoot that do so.
const OURS: [&str; 4] = [
    "fleetfoot router",
    "fleetfoot mark",
    "fleetfoot proxy",
    "fleetfoot attach",
];
/// Words about what today's released kernels do not have.
const NOT_OF_TODAY: [&str; 6] = [
    "n no kernel",
    "n no Linux",
    "n no released",
    "to 4.",
    "patch",
    "L4STeam",
];

#[test]
fn every_entry_names_a_command_that_works_today() {
    for entry in ENTRIES {
        let has = |words: &[&str]| words.iter().any(|word| entry.turn_on.contains(word));
        let works = match has(&NOT_OF_TODAY) {
            true => has(&OURS),
            false => has(&OURS) || has(&OF_TODAY),
        };
        assert!(works, "{}: {}", entry.name, entry.turn_on);
    }
}

#[test]
fn the_switches_of_the_proxy_are_those_of_the_entry() {
    for entry in ENTRIES {
        let Some((_, command)) = entry.turn_on.split_once("fleetfoot proxy") else {
            continue;
        };
        let command = command.split(['(', ';']).next().unwrap_or_default();
        // A value with a space stands in quotes.
        let named: Vec<String> = command
            .split("--set ")
            .skip(1)
            .map(|word| word.trim().trim_matches('\'').to_owned())
            // The rate is that of the user's bottleneck.
            .filter(|word| !word.starts_with("tcp.spreading_rate="))
            .collect();
        let set = entry.set.iter().filter(|(key, _)| key.starts_with("tcp."));
        let wanted: Vec<String> = set
            .filter_map(|(key, preset)| {
                let value = match preset {
                    Preset::Text(text) => (*text).to_owned(),
                    Preset::Flag(flag) => flag.to_string(),
                    Preset::Integer(number) => number.to_string(),
                    _ => return None,
                };
                Some(format!("{key}={value}"))
            })
            .collect();
        assert_eq!(named, wanted, "{}", entry.name);
    }
}

/// Whoever has no such kernel has the program: a bridge or a trial for queues, a proxy for what our TCP does, marks for super-packets.
#[test]
fn every_entry_names_what_has_it_on_real_packets() {
    let of = |name: &str| find(name).expect("it is an entry").on_real_packets();
    let commands = |name: &str| -> Vec<String> { of(name).into_iter().map(|(_, command)| command).collect() };
    for entry in ENTRIES
        .iter()
        .filter(|entry| entry.set.iter().any(|(path, _)| path.starts_with("tcp.")))
    {
        assert!(!of(entry.name).is_empty(), "{}", entry.name);
    }
    assert_eq!(
        commands("favourtail-budget"),
        [
            "fleetfoot router router.toml, a file with queue = { kind = \"favourtail\", budget = true } before an output",
            "fleetfoot shell --rate 20mbit --delay 20ms --queue favourtail --set network.bottleneck.queue.budget=true -- COMMAND"
        ]
    );
    assert_eq!(
        commands("rdb"),
        [
            "fleetfoot proxy --masquerade --set tcp.rdb=one",
            "fleetfoot proxy --accept 7000 --to 127.0.0.1:PORT --address 10.9.0.2/24 --allow 0.0.0.0/0 --set tcp.rdb=one"
        ]
    );
    let known = commands("initial-spreading-known");
    assert!(
        known[0].contains("--set tcp.spreading_rate='RATE' --set 'tcp.spreading_jiffy=0 ms'"),
        "{known:?}"
    );
    let marked = commands("super-packets");
    assert!(
        marked[0].contains("kind = \"superpacket\" }") && marked[2] == "fleetfoot mark -- COMMAND",
        "{marked:?}"
    );
}

#[test]
fn pairs_name_entries() {
    for (first, second) in PAIRS {
        assert!(
            find(first).is_some() && find(second).is_some(),
            "{first} + {second}"
        );
    }
}

#[test]
fn every_entry_runs_on_the_home_line_or_says_why_not() {
    let text = crate::testing::BUSY_LINE
        .replace("duration = \"20 s\"", "duration = \"3 s\"")
        .replace("warmup = \"3 s\"", "warmup = \"500 ms\"");
    let scenario = Scenario::parse("home-line.toml", &text).expect("it is correct");
    let described = scenario.resolve(&Setting::none()).expect("it is correct");
    let mut ran = 0;
    for entry in ENTRIES {
        let resolved = match entry.apply(&scenario, &described, &bottleneck(&described)) {
            Ok(resolved) => resolved,
            Err(reason) => {
                assert!(
                    reason == "already so in this scenario" || reason.starts_with("no sender uses"),
                    "{}: {reason}",
                    entry.name
                );
                continue;
            }
        };
        let specs = [&resolved.spec, &described.spec].map(|spec| format!("{spec:?}"));
        assert_ne!(specs[0], specs[1], "{} changes nothing", entry.name);
        let output = simulate(&resolved.spec(1), &AtomicBool::new(false)).expect(entry.name);
        let completed = output.groups[0]
            .flows
            .iter()
            .filter(|flow| flow.completed.is_some());
        assert!(completed.count() > 0, "{}: no page arrived", entry.name);
        ran += 1;
    }
    assert!(ran > ENTRIES.len() / 2, "only {ran} of {} ran", ENTRIES.len());
}

/// The gap of `initial-spreading-known` comes from the scenario's bottleneck, whatever its rate.
#[test]
fn the_known_rate_is_the_bottlenecks() {
    let text = crate::testing::BUSY_LINE;
    let entry = find("initial-spreading-known").expect("an entry");
    for rate in ["2 Mbit/s", "37.5 Mbit/s", "999.999 kbit/s"] {
        let scenario = Scenario::parse("home-line.toml", text).expect("it is correct");
        let set = Setting::none().with("network.bottleneck.rate", rate);
        let scenario = scenario.with(&set).expect("another rate");
        let described = scenario.resolve(&Setting::none()).expect("it is correct");
        let resolved = entry
            .apply(&scenario, &described, &bottleneck(&described))
            .expect("it applies");
        let rates: Vec<String> = resolved
            .spec
            .groups
            .iter()
            .map(|group| group.sender.spreading_rate.to_string())
            .collect();
        assert!(rates.iter().all(|rates| rates == rate), "{rates:?} for {rate}");
    }
}

#[test]
fn without_one_rate_nobody_knows_it() {
    let text = r#"
        [network]
        kind = "graph"
        hosts = ["a", "b", "c"]
        [[link]]
        name = "one"
        from = "a"
        to = "c"
        rate = "2 Mbit/s"
        delay = "9 ms"
        [[link]]
        name = "two"
        from = "b"
        to = "c"
        rate = "3 Mbit/s"
        delay = "9 ms"
        [tcp]
        profile = "linux"
        [[traffic]]
        name = "short"
        kind = "transfer"
        from = "a"
        to = "c"
        size = "15 kB"
        arrivals = { dist = "poisson", rate = "1 per second" }
        [run]
        bottleneck = ["one", "two"]
    "#;
    let scenario = Scenario::parse("test.toml", text).expect("it is correct");
    let described = scenario.resolve(&Setting::none()).expect("it is correct");
    let entry = find("initial-spreading-known").expect("an entry");
    let reason = entry
        .apply(&scenario, &described, &bottleneck(&described))
        .expect_err("two rates");
    assert!(reason.contains("no single constant rate"), "{reason}");
    // Without a name there is no bottleneck to have a rate, though every link has one.
    let unnamed = text.replace("bottleneck = [\"one\", \"two\"]", "");
    let scenario = Scenario::parse("test.toml", &unnamed).expect("it is correct");
    let described = scenario.resolve(&Setting::none()).expect("it is correct");
    let reason = entry.missing(&described).expect("nobody said which link it is");
    assert!(reason.contains("name the link in `run.bottleneck`"), "{reason}");
}

/// What `tc` turns on is Linux's queue, so that is what is simulated; one of this kind that stands there already keeps its own details, since with
/// another value alone nothing would be turned on.
#[test]
fn a_queue_of_linux_is_simulated_with_the_details_of_linux() {
    let text = crate::testing::BUSY_LINE;
    let with = |kind: &str| {
        let scenario = Scenario::parse("home-line.toml", text).expect("it is correct");
        let set = Setting::none().with("network.bottleneck.queue.kind", kind);
        scenario.with(&set).expect("another queue")
    };
    let applied = |scenario: &Scenario, name: &str| {
        let described = scenario.resolve(&Setting::none()).expect("it is correct");
        let entry = find(name).expect("an entry");
        let resolved = entry.apply(scenario, &described, &bottleneck(&described))?;
        let mut links = resolved.bottleneck_links();
        let link = links.next().expect("a bottleneck");
        Ok::<_, String>((link.queue, link.queue_values.choice("details")))
    };
    for (name, kind) in [
        ("codel", "codel"),
        ("codel-ecn", "codel"),
        ("fq-codel", "fq-codel"),
        ("fq-codel-ecn", "fq-codel"),
        ("cake", "cake"),
    ] {
        let entry = find(name).expect("an entry");
        assert!(entry.turn_on.contains(": tc qdisc"), "{}", entry.turn_on);
        assert_eq!(applied(&with("drop-tail"), name), Ok((kind, "linux")), "{name}");
    }
    let already = applied(&with("fq-codel"), "fq-codel");
    assert_eq!(already, Err(String::from("already so in this scenario")));
    assert_eq!(
        applied(&with("fq-codel"), "fq-codel-ecn"),
        Ok(("fq-codel", "rfc"))
    );
}

/// Why it matters: where flows hold one packet each in turns, RFC 8289 5.4 lets each keep it and Linux counts the packets of all. Eight flows and two
/// packets of each are 96 ms at 2 Mbit/s, far above the target.
#[test]
fn on_a_slow_line_with_many_flows_the_details_of_linux_halve_the_wait() {
    let text = r#"
        [network]
        kind = "dumbbell"
        pairs = 8
        access = { rate = "1 Gbit/s", delay = "5 ms", jitter = { dist = "uniform", min = "0 ms", max = "6 ms" } }
        bottleneck = { rate = "2 Mbit/s", delay = "10 ms", queue = { kind = "fq-codel" } }
        [run]
        duration = "40 s"
        warmup = "10 s"
        [tcp]
        profile = "linux"
        [[traffic]]
        name = "bulk"
        kind = "bulk"
        count = 8
    "#;
    let scenario = Scenario::parse("slow.toml", text).expect("it is correct");
    let wait = |details: &str| {
        let set = Setting::none().with("network.bottleneck.queue.details", details);
        let resolved = scenario
            .with(&set)
            .and_then(|scenario| scenario.resolve(&Setting::none()));
        let resolved = resolved.expect("it is correct");
        let output = simulate(&resolved.spec(1), &AtomicBool::new(false)).expect("it runs");
        let means = output.links.iter().filter_map(|link| link.queue_delay.mean());
        means.fold(0.0, f64::max)
    };
    let (rfc, linux) = (wait("rfc"), wait("linux"));
    assert!(rfc >= 1.5 * linux, "{rfc} and {linux}");
}

/// ns-2's lower threshold is 2.5 ms of the rate: at 10 Gbit/s 3125 packets of 1000 bytes. A switch with room for 500 kB, 333 packets of 1500 bytes, would be
/// full before, and RED would be drop-tail under another name.
#[test]
fn red_does_not_apply_where_its_thresholds_are_above_the_queue() {
    let with = |rate: &str, limit: &str| {
        let scenario = Scenario::parse("home-line.toml", crate::testing::BUSY_LINE).expect("it is correct");
        let set = Setting::none()
            .with("network.bottleneck.rate", rate)
            .with("network.bottleneck.queue.kind", "drop-tail")
            .with("network.bottleneck.queue.limit", limit);
        let scenario = scenario.with(&set).expect("another line");
        let described = scenario.resolve(&Setting::none()).expect("it is correct");
        let applied = |name: &str| {
            let entry = find(name).expect("an entry");
            entry
                .apply(&scenario, &described, &bottleneck(&described))
                .map(|_| ())
        };
        ["red", "red-ecn"].map(applied)
    };
    for result in with("10 Gbit/s", "500 kB") {
        let reason = result.expect_err("it could never act");
        assert!(
            reason.contains("an average of 3125 packets") && reason.contains("room for 333"),
            "{reason}"
        );
    }
    assert_eq!(with("10 Gbit/s", "5 MB"), [Ok(()), Ok(())]);
    assert_eq!(with("20 Mbit/s", "500 kB"), [Ok(()), Ok(())]);
}
