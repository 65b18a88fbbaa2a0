//! Runs that the kernel plays (`run.world`). Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use fleetfoot_core::queue::QueueEventKind;
use fleetfoot_lab::run::simulate;
use fleetfoot_lab::scenario::{Scenario, Setting};
use fleetfoot_live::Namespace;
use fleetfoot_sim::output::RunOutput;
use std::sync::atomic::AtomicBool;

const NETWORK: &str = r#"
title = "kernel"
[network]
kind = "dumbbell"
pairs = 2
access = { rate = "10 Gbit/s", delay = "1 ms" }
bottleneck = { rate = "50 Mbit/s", delay = "3 ms", queue = { kind = "drop-tail", limit = "500 packets" } }
[tcp]
profile = "linux"
[run]
duration = "1 s"
drain = "10 s"
"#;

fn skips() -> bool {
    match Namespace::available() {
        Ok(()) => false,
        Err(reason) => {
            println!("skipped: {reason}");
            true
        }
    }
}

/// The same run in the simulator and by the kernel.
fn both(traffic: &str, changes: &[(&str, toml::Value)]) -> [RunOutput; 2] {
    beside("kernel", traffic, changes)
}

/// The same run in the simulator and in another world.
fn beside(world: &str, traffic: &str, changes: &[(&str, toml::Value)]) -> [RunOutput; 2] {
    let scenario = Scenario::parse("kernel", &format!("{NETWORK}{traffic}")).expect("it reads");
    [None, Some(world)].map(|world| {
        let mut set = Setting::from_origin("test");
        if let Some(world) = world {
            set = set.with("run.world", world);
        }
        for (key, value) in changes {
            set = set.with(*key, value.clone());
        }
        let resolved = scenario.resolve(&set).expect("both can play it");
        simulate(&resolved.spec(7), &AtomicBool::new(false)).expect("it runs")
    })
}

/// What does not depend on time: flows begin in the same order with the same sizes, never early, and all of them end.
fn same_traffic(kind: &str, [simulated, played]: &[RunOutput; 2], reacts: bool) {
    let (simulated, played) = (&simulated.groups[0], &played.groups[0]);
    assert!(!played.flows.is_empty(), "{kind}");
    if !reacts {
        assert_eq!(simulated.flows.len(), played.flows.len(), "{kind}");
    }
    for (number, (one, other)) in simulated.flows.iter().zip(&played.flows).enumerate() {
        assert_eq!(one.bytes, other.bytes, "{kind}, flow {number}");
        assert!(reacts || one.pair == other.pair, "{kind}, flow {number}");
        assert!(reacts || other.start >= one.start, "{kind}, flow {number}");
        assert!(other.completed.is_some(), "{kind}, flow {number}");
        assert_eq!(other.received, other.bytes, "{kind}, flow {number}");
        let rtt = other.min_rtt.expect("the kernel measured one");
        assert!(rtt.as_nanos() >= 8_000_000, "{kind}, flow {number}: {rtt:?}");
    }
}

#[test]
fn the_kernel_plays_the_same_traffic() {
    if skips() {
        return;
    }
    for (kind, keys, reacts) in [
        (
            "transfer",
            "size = \"30 kB\"\narrivals = { dist = \"poisson\", rate = \"20 per second\" }",
            false,
        ),
        (
            "incast",
            "size = \"10 kB\"\ncount = 8\nrounds = 3\npause = \"50 ms\"",
            true,
        ),
        (
            "request-response",
            "count = 3\nrequest = \"200 B\"\nresponse = \"20 kB\"\nthink = \"20 ms\"",
            true,
        ),
        (
            "on-off",
            "count = 2\nburst = \"20 kB\"\ninterval = \"100 ms\"",
            false,
        ),
    ] {
        let traffic = format!("[[traffic]]\nname = \"short\"\nkind = \"{kind}\"\n{keys}\n");
        let outputs = both(&traffic, &[]);
        same_traffic(kind, &outputs, reacts);
        let link = &outputs[1].links[0];
        assert!(
            outputs[1]
                .links
                .iter()
                .any(|link| link.data_packets > 0 && link.lateness.is_some())
        );
        assert_eq!(
            link.drops.iter().flatten().sum::<u64>(),
            0,
            "{kind}: the queue has room for all"
        );
    }
}

#[test]
fn thin_streams_and_bulk_are_counted() {
    if skips() {
        return;
    }
    let thin = "[[traffic]]\nname = \"thin\"\nkind = \"thin\"\ncount = 2\npayload = \"100 B\"\ninterval = \"50 ms\"\n";
    let [simulated, played] = both(thin, &[]);
    let writes = |output: &RunOutput| {
        let group = &output.groups[0];
        group.delivery_latency.len() + group.delivery_censored.len()
    };
    assert_eq!(writes(&simulated), writes(&played));
    // None has time to arrive on a path of this length, and all are counted.
    let [simulated, played] = both(
        thin,
        &[
            ("run.drain", "0 s".into()),
            ("network.bottleneck.delay", "20 s".into()),
        ],
    );
    assert!(!simulated.groups[0].delivery_censored.is_empty());
    assert_eq!(writes(&simulated), writes(&played));
    assert!(played.groups[0].delivery_latency.is_empty());
    let bulk = "[[traffic]]\nname = \"long\"\nkind = \"bulk\"\n";
    let [_, played] = both(bulk, &[("tcp.congestion_control", "bbr".into())]);
    let group = &played.groups[0];
    assert_eq!(group.flows.len(), 1);
    // Not more than the link carries, and more than nothing.
    let goodput = group.goodput_bytes.get() * 8;
    assert!((1_000_000..50_000_000).contains(&goodput), "{goodput} bit/s");
    assert_eq!(group.goodput_bytes_per_connection.len(), 1);
}

/// Trains of raw packets: as many and as large as in the simulator, from other addresses than those of the kernel too, and counted
/// where they arrive. The bottleneck serves the hosts one after the other, so it must tell them apart.
#[test]
fn raw_packets_leave_as_in_the_simulator() {
    if skips() {
        return;
    }
    for source in [
        "",
        "source = \"random\"\n",
        "ports = \"random\"\ninterval = \"1 ms\"\n",
    ] {
        let traffic = format!(
            "[[traffic]]\nname = \"attack\"\nkind = \"raw\"\npacket = \"1000 B\"\nmembers = 3\nmark = \"super-packet\"\nlength = 3\n\
             arrivals = {{ dist = \"poisson\", rate = \"100 per second\" }}\n{source}"
        );
        let [simulated, played] = both(&traffic, &[]);
        let [simulated, played] = [&simulated, &played].map(|output| &output.groups[0].flows[0]);
        let sent = simulated.stats().bytes_sent;
        assert!(sent > 100_000, "{source:?}: {sent} B");
        assert_eq!(played.stats().bytes_sent, sent, "{source:?}");
        for world in [simulated, played] {
            // The queue has room for all; three trains may be on their way when the run ends.
            let lost = sent - world.received.get();
            assert!(lost <= 9 * 972, "{source:?}: {lost} of {sent} B");
        }
    }
}

/// A3 and A4 on real packets: forged followers take the places of forged firsts, which both name the one connection of the victim, and
/// begin it anew; none reaches the victim's receiver, whose stream goes on.
#[test]
fn forged_packets_have_the_addresses_of_a_connection_that_is_open() {
    if skips() {
        return;
    }
    let marked = "tcp = { super_packets = { mode = \"timer\", t_buffer = \"60 us\", max = 10 } }\n";
    for (marks, ports) in [(marked, "known"), ("", "known"), (marked, "random")] {
        let forger = |name: &str, start: &str| {
            format!(
                "[[traffic]]\nname = \"{name}\"\nkind = \"raw\"\nmark = \"{name}\"\nlength = 10\nid = 7\nvictim = \"victim\"\nports = \"{ports}\"\n\
                 packet = \"60 B\"\narrivals = {{ dist = \"constant\", rate = \"200 per second\" }}\nstart = \"{start}\"\n"
            )
        };
        let traffic = format!(
            "[[traffic]]\nname = \"victim\"\nkind = \"bulk\"\n{marks}{}{}",
            forger("first", "300 ms"),
            forger("follower", "301 ms")
        );
        let queue = "kind = \"sp-h\"\nlimit = \"100 packets\""
            .parse()
            .expect("a table");
        let changes = [("network.bottleneck.queue", toml::Value::Table(queue))];
        let [simulated, played] = both(&traffic, &changes);
        let forged = played
            .links
            .iter()
            .find_map(|link| link.forged)
            .expect("it is counted");
        assert!(simulated.links.iter().all(|link| link.forged.is_none()));
        if ports == "known" {
            assert!(forged.places > 0 && forged.restarted > 0, "{forged:?}");
        } else {
            // A hit needs the right two of 65,536 ports.
            assert_eq!((forged.places, forged.restarted), (0, 0));
        }
        assert_eq!(forged.super_packets > 0, !marks.is_empty(), "{forged:?}");
        for [simulated, played] in
            [1, 2].map(|group| [&simulated, &played].map(|run| &run.groups[group].flows[0]))
        {
            assert_eq!(played.stats().bytes_sent, simulated.stats().bytes_sent);
            let sent = played.stats().bytes_sent;
            let received = played.received.get();
            assert!(received > 0 && received <= sent, "{received} of {sent} B arrived");
        }
        let goodput = played.groups[0].goodput_bytes.get() * 8;
        assert!(
            goodput > 1_000_000,
            "the victim's stream goes on: {goodput} bit/s"
        );
    }
}

#[test]
fn connections_of_our_host_are_no_victims() {
    let traffic = "[[traffic]]\nname = \"victim\"\nkind = \"bulk\"\n[[traffic]]\nname = \"attack\"\nkind = \"raw\"\n\
                   packet = \"1000 B\"\nvictim = \"victim\"\narrivals = { dist = \"poisson\", rate = \"9 per second\" }\n";
    let scenario = Scenario::parse("kernel", &format!("{NETWORK}{traffic}")).expect("it reads");
    let ours = Setting::from_origin("test").with("run.world", "host-sends");
    let error = scenario
        .resolve(&ours)
        .expect_err("it cannot be played")
        .to_string();
    assert!(
        error.contains("traffic `attack`") && error.contains("connections of `victim`"),
        "{error}"
    );
}

/// A5 on real packets: who announces more than he sends leaves places behind that expire, who announces less sends followers that nothing
/// was kept for, who announces too much is not asked; nothing of that happens to who says the truth.
#[test]
fn a_liar_s_lengths_are_marked_as_he_says() {
    if skips() {
        return;
    }
    for (declare, said) in [
        ("\"true\"", "neither"),
        ("\"+3\"", "expired"),
        ("\"-2\"", "orphan"),
        ("63", "too_long"),
    ] {
        // A window of ten is one write, and long enough apart that groups are of one window; the marker waits long for a busy kernel.
        let traffic = format!(
            "[[traffic]]\nname = \"liar\"\nkind = \"transfer\"\nsize = \"8688 B\"\narrivals = {{ dist = \"constant\", rate = \"20 per second\" }}\n\
             tcp = {{ super_packets = {{ mode = \"timer\", t_buffer = \"5 ms\", max = 10, declare = {declare} }} }}\n"
        );
        let queue = "kind = \"sp-h\"\nlimit = \"100 packets\""
            .parse()
            .expect("a table");
        let changes = [("network.bottleneck.queue", toml::Value::Table(queue))];
        let [_, played] = both(&traffic, &changes);
        let link = &played.links[playable(&traffic, &changes)];
        let kinds = [
            QueueEventKind::Expired,
            QueueEventKind::Orphan,
            QueueEventKind::TooLong,
        ];
        for kind in kinds {
            let count = link.events[kind as usize];
            // A lie has other consequences, too: what expires late leaves no place for others.
            if kind.name() == said || said == "neither" {
                assert_eq!(
                    count > 0,
                    kind.name() == said,
                    "{declare}: {} {count} times",
                    kind.name()
                );
            }
        }
        let whole = played.groups[0]
            .flows
            .iter()
            .filter(|flow| flow.completed.is_some());
        assert_eq!(
            whole.count(),
            played.groups[0].flows.len(),
            "{declare}: all arrive"
        );
    }
}

/// A8 on real packets: who knows the hash key fills the places that he likes, who does not fills none; no packet makes the queue look
/// further either way.
#[test]
fn who_knows_the_key_collides_in_the_table() {
    if skips() {
        return;
    }
    for (ports, crowds) in [("colliding", true), ("new", false)] {
        // Twelve newcomers are admitted at a time, and eight places are two groups. Nothing is redeemed, so an epoch lasts 200 ms.
        let traffic = "[[traffic]]\nname = \"attack\"\nkind = \"raw\"\nmark = \"first\"\nlength = 2\n\
                       arrivals = { dist = \"constant\", rate = \"500 per second\" }\n";
        let queue = "kind = \"sp-h\"\nlimit = \"100 packets\""
            .parse()
            .expect("a table");
        let changes = [
            ("network.bottleneck.queue", toml::Value::Table(queue)),
            ("traffic.attack.ports", ports.into()),
        ];
        for output in both(traffic, &changes) {
            let link = &output.links[playable(traffic, &changes)];
            let crowded = link.events[QueueEventKind::Crowded as usize];
            assert_eq!(crowded > 0, crowds, "{ports}: {crowded}");
            let probes = link.most_probes.expect("it has tables");
            assert!((16..=40).contains(&probes), "{probes} places");
        }
    }
}

/// The bottleneck of a run, towards the receivers.
fn playable(traffic: &str, changes: &[(&str, toml::Value)]) -> usize {
    let scenario = Scenario::parse("kernel", &format!("{NETWORK}{traffic}")).expect("it reads");
    let mut set = Setting::from_origin("test").with("run.world", "kernel");
    for (key, value) in changes {
        set = set.with(*key, value.clone());
    }
    let spec = scenario.resolve(&set).expect("it can be played").spec(7);
    fleetfoot_live::kernel::playable(&spec).expect("it can be played")[0]
}

#[test]
fn what_is_lost_is_sent_again() {
    if skips() {
        return;
    }
    let traffic = "[[traffic]]\nname = \"short\"\nkind = \"transfer\"\nsize = \"100 kB\"\narrivals = { dist = \"constant\", rate = \"10 per second\" }\n";
    let outputs = both(traffic, &[("network.bottleneck.loss", 0.05.into())]);
    same_traffic("transfer", &outputs, false);
    for (world, output) in ["simulator", "kernel"].iter().zip(&outputs) {
        let dropped: u64 = output
            .links
            .iter()
            .flat_map(|link| link.drops.iter())
            .map(|kinds| kinds[0])
            .sum();
        let again: u32 = output.groups[0]
            .flows
            .iter()
            .map(|flow| flow.stats().retransmits)
            .sum();
        assert!(
            dropped > 0 && u64::from(again) >= dropped,
            "{world}: {dropped} lost, {again} sent again"
        );
    }
}

#[test]
fn our_tcp_plays_at_either_end_with_the_kernel_at_the_other() {
    if skips() {
        return;
    }
    let kinds = [
        (
            "transfer",
            "size = \"100 kB\"\narrivals = { dist = \"constant\", rate = \"10 per second\" }",
            false,
        ),
        (
            "incast",
            "size = \"10 kB\"\ncount = 8\nrounds = 3\npause = \"50 ms\"",
            true,
        ),
        (
            "request-response",
            "count = 3\nrequest = \"200 B\"\nresponse = \"20 kB\"\nthink = \"20 ms\"",
            true,
        ),
        (
            "on-off",
            "count = 2\nburst = \"20 kB\"\ninterval = \"100 ms\"",
            false,
        ),
    ];
    for world in ["host-sends", "host-receives"] {
        for (kind, keys, reacts) in kinds {
            let traffic = format!("[[traffic]]\nname = \"short\"\nkind = \"{kind}\"\n{keys}\n");
            let outputs = beside(world, &traffic, &[("network.bottleneck.loss", 0.02.into())]);
            same_traffic(&format!("{world}, {kind}"), &outputs, reacts);
        }
        let bulk = "[[traffic]]\nname = \"long\"\nkind = \"bulk\"\n";
        let [_, played] = beside(world, bulk, &[]);
        let goodput = played.groups[0].goodput_bytes.get() * 8;
        assert!(
            (1_000_000..50_000_000).contains(&goodput),
            "{world}: {goodput} bit/s"
        );
    }
    // Our sender has every switch; the kernel's has not.
    let bulk = "[[traffic]]\nname = \"long\"\nkind = \"bulk\"\n";
    let changes = [
        ("tcp.congestion_control", toml::Value::from("cdg")),
        ("tcp.tail_loss_probe", "off".into()),
    ];
    let [_, played] = beside("host-sends", bulk, &changes);
    assert!(played.groups[0].goodput_bytes.get() > 100_000);
}

#[test]
fn one_host_has_one_set_of_switches() {
    let traffic = "[[traffic]]\nname = \"one\"\nkind = \"bulk\"\n[[traffic]]\nname = \"two\"\nkind = \"bulk\"\ntcp = { congestion_control = \"reno\" }\n";
    let scenario = Scenario::parse("kernel", &format!("{NETWORK}{traffic}")).expect("it reads");
    let set = Setting::from_origin("test").with("run.world", "host-sends");
    let error = scenario.resolve(&set).expect_err("it is refused").to_string();
    assert!(
        error.contains("the [tcp] of traffic `two` must be that of `one`"),
        "{error}"
    );
}

/// Congestion controls of `fleetfoot attach` have names of their own in the kernel, which knows them once they are attached.
#[test]
fn what_is_not_attached_is_named() {
    if skips() {
        return;
    }
    let traffic = "[[traffic]]\nname = \"long\"\nkind = \"bulk\"\n";
    let scenario = Scenario::parse("kernel", &format!("{NETWORK}{traffic}")).expect("it reads");
    for (key, value, name) in [
        ("tcp.congestion_control", "cdg", "cdg"),
        ("tcp.window_validation", "newcwv", "newcwv"),
    ] {
        let set = Setting::from_origin("test")
            .with("run.world", "kernel")
            .with(key, value);
        let resolved = scenario.resolve(&set).expect("the kernel may have it");
        match simulate(&resolved.spec(7), &AtomicBool::new(false)) {
            Ok(output) => assert!(
                output.groups[0].goodput_bytes.get() > 0,
                "it is attached on this machine"
            ),
            Err(problem) => {
                let expected =
                    format!("no congestion control ff_{name}; `fleetfoot attach {name}` makes it known");
                assert!(problem.contains(&expected), "{problem}");
            }
        }
    }
    let probing = Setting::from_origin("test").with("run.world", "kernel");
    let probing = probing.with("tcp.window_validation", "newcwv-probing");
    let problem = scenario
        .resolve(&probing)
        .expect_err("no kernel has it")
        .to_string();
    assert!(problem.contains("`window_validation` differs"), "{problem}");
}

#[test]
fn what_the_kernel_cannot_play_is_refused_where_it_is_asked_for() {
    for (traffic, changes, message) in [
        (
            "kind = \"web\"\ndocument = \"10 kB\"\nobject = \"10 kB\"\nobjects = 3\nthink = \"1 s\"",
            vec![],
            "of kind `web`; it can play bulk, transfer, flows, incast, request-response, on-off, thin",
        ),
        (
            "kind = \"request-response\"\nresponse = \"10 kB\"\nthink = \"1 s\"\nserver_time = \"10 ms\"",
            vec![],
            "`one`: its servers answer at once",
        ),
        (
            "kind = \"bulk\"",
            vec![("tcp.tail_loss_probe", toml::Value::from("off"))],
            "`tail_loss_probe` differs",
        ),
        ("kind = \"bulk\"", vec![("run.bins", "1 s".into())], "run.bins"),
    ] {
        let text = format!("{NETWORK}[[traffic]]\nname = \"one\"\n{traffic}\n");
        let scenario = Scenario::parse("kernel", &text).expect("it reads");
        let mut set = Setting::from_origin("test").with("run.world", "kernel");
        for (key, value) in changes {
            set = set.with(key, value);
        }
        let error = scenario.resolve(&set).expect_err("it is refused").to_string();
        assert!(error.contains(message), "{error}");
        assert!(error.contains("run.world"), "{error}");
    }
}

#[test]
fn a_run_in_real_time_can_be_interrupted() {
    if skips() {
        return;
    }
    let text = format!("{NETWORK}[[traffic]]\nname = \"long\"\nkind = \"bulk\"\n");
    let scenario = Scenario::parse("kernel", &text).expect("it reads");
    let set = Setting::from_origin("test")
        .with("run.world", "kernel")
        .with("run.duration", "1 h");
    let resolved = scenario.resolve(&set).expect("the kernel can play it");
    let output = simulate(&resolved.spec(1), &AtomicBool::new(true)).expect("it ends");
    assert!(output.interrupted);
}
