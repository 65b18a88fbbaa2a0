//! Runs that the kernel plays, held to the simulator: what arrived at the bottleneck passes the simulated queue, and every packet that was
//! dropped, was marked or left must be the same at the same nanosecond. Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use fleetfoot_core::queue::DropReason;
use fleetfoot_lab::run::play;
use fleetfoot_lab::scenario::{Scenario, Setting};
use fleetfoot_live::{Held, Namespace, RING, Recording, TapReader, kernel, tap};
use fleetfoot_sim::output::{LinkOutput, RunOutput};
use fleetfoot_sim::spec::Spec;
use fleetfoot_sim::world::Mode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The testbed in small: many first windows at once beside a long flow and packets that promise others.
const TESTBED: &str = r#"
title = "replayed"
[network]
kind = "dumbbell"
pairs = 3
access = { rate = "10 Gbit/s", delay = "50 us" }
bottleneck = { rate = "20 Mbit/s", delay = "400 us", queue = { kind = "drop-tail", limit = "40 packets" }, reverse = { queue = { kind = "drop-tail", limit = "1000 packets" } } }
[tcp]
profile = "linux"
congestion_control = "cubic"
[[traffic]]
name = "flows"
kind = "incast"
from = 0
to = 0
size = "14480 B"
count = 12
rounds = 2
pause = "100 ms"
[[traffic]]
name = "long"
kind = "bulk"
from = 1
to = 1
[[traffic]]
name = "attack"
kind = "raw"
from = 2
to = 2
mark = "first"
length = 10
source = "random"
arrivals = { dist = "poisson", rate = "50 per second" }
[run]
world = "kernel"
duration = "800 ms"
drain = "2 s"
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

fn spec(changes: &[(&str, toml::Value)]) -> Spec {
    let mut set = Setting::from_origin("test");
    for (key, value) in changes {
        set = set.with(*key, value.clone());
    }
    let scenario = Scenario::parse("replayed", TESTBED).expect("it reads");
    scenario.resolve(&set).expect("the kernel can play it").spec(5)
}

/// Plays a run, and what a tap at its bottleneck saw.
fn played(spec: &Spec) -> (RunOutput, [Recording; 2]) {
    let (taps, reader) = tap(RING);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let of_recorder = &over;
        let recorder = scope.spawn(move || recorded(&reader, of_recorder));
        let output = play(spec, &AtomicBool::new(false), &|_| (), Some(taps));
        over.store(true, Ordering::Release);
        let recordings = recorder.join().expect("the recorder ends");
        (output.expect("it is played"), recordings)
    })
}

fn recorded(reader: &TapReader, over: &AtomicBool) -> [Recording; 2] {
    let mut recordings = [Recording::new(), Recording::new()];
    loop {
        let last = over.load(Ordering::Acquire);
        while let Some(tapped) = reader.next() {
            let recording = &mut recordings[usize::from(tapped.direction)];
            let added = recording.add(tapped.at, tapped.event, tapped.frame(), tapped.length);
            added.expect("a tap saw it");
        }
        if last {
            assert_eq!(reader.lost(), 0, "the ring has room for a short run");
            return recordings;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Holds both directions of a run to the simulator, in both of its modes: those of its fast mode.
fn held(what: &str, changes: &[(&str, toml::Value)]) -> [Held; 2] {
    let spec = spec(changes);
    let (output, recordings) = played(&spec);
    let bottleneck = kernel::playable(&spec).expect("it was played");
    let links = kernel::links(&spec, bottleneck);
    let held = [0, 1].map(|side| {
        let [fast, plain] = [Mode::Fast, Mode::Plain].map(|mode| {
            let held = recordings[side].hold(&spec, &links[side], mode);
            let held = held.expect("it is simulated");
            assert_eq!(held.difference, None, "{what}, direction {side}, {mode:?}");
            held
        });
        assert_eq!(fast.simulated.events, plain.simulated.events, "{what}");
        counted_alike(what, &output.links[bottleneck[side]], &fast);
        fast
    });
    assert!(held[0].left > 50, "{what}: {}", held[0].left);
    held
}

/// What the link counted by itself while the run went on is what the simulated one counts: drops by reason, admissions and other events
/// of the queue, and packets that left but for those that were being sent at the end.
fn counted_alike(what: &str, real: &LinkOutput, held: &Held) {
    let simulated = &held.simulated;
    assert_eq!(real.drops, simulated.drops, "{what}");
    assert_eq!(real.events, simulated.events, "{what}");
    assert!(real.packets >= held.left, "{what}");
    let dropped: Vec<u64> = real.drops.iter().map(|classes| classes.iter().sum()).collect();
    assert_eq!(dropped, held.dropped, "{what}");
}

fn table(text: &str) -> toml::Value {
    toml::Value::Table(text.parse().expect("a table"))
}

#[test]
fn queues_of_the_testbed_do_the_same_in_the_simulator() {
    if skips() {
        return;
    }
    let marks = "super_packets = { mode = \"timer\", t_buffer = \"60 us\", max = 10 }";
    let marks = table(marks)["super_packets"].clone();
    for (queue, is_marked) in [
        ("kind = \"drop-tail\"\nlimit = \"30 packets\"", false),
        (
            "kind = \"superpacket\"\nlimit = \"45 packets\"\nmax_length = 10\nweight = 0.7\nepoch = \"200 ms\"",
            true,
        ),
        ("kind = \"sp-h\"\nlimit = \"45 packets\"\nmax_length = 10", true),
        ("kind = \"sp-fq\"\nlimit = \"45 packets\"\nmax_length = 10", true),
        ("kind = \"favourtail\"\nlimit = \"30 packets\"", false),
        (
            "kind = \"favourtail\"\nlimit = \"30 packets\"\npush_out = true\nbudget = true",
            false,
        ),
    ] {
        let mut changes = vec![("network.bottleneck.queue", table(queue))];
        if is_marked {
            changes.push(("traffic.flows.tcp.super_packets", marks.clone()));
        }
        let [there, _] = held(queue, &changes);
        let full = [DropReason::Full, DropReason::PushedOut, DropReason::Orphan];
        let dropped: u64 = full.iter().map(|&reason| there.dropped[reason as usize]).sum();
        assert!(dropped > 0, "{queue}: twelve first windows do not fit");
    }
}

#[test]
fn queues_that_draw_numbers_and_mark_do_the_same_in_the_simulator() {
    if skips() {
        return;
    }
    for queue in [
        "kind = \"fq-codel\"\nlimit = \"60 packets\"\necn = true",
        "kind = \"pie\"\nlimit = \"60 packets\"\necn = true",
        "kind = \"red\"\nlimit = \"60 packets\"\necn = true",
    ] {
        let changes = [
            ("network.bottleneck.queue", table(queue)),
            ("tcp.ecn", true.into()),
        ];
        let [there, _] = held(queue, &changes);
        let dropped: u64 = there.dropped.iter().sum();
        assert!(dropped + there.marked > 0, "{queue}: a long flow fills it");
    }
}

#[test]
fn loss_on_the_line_and_our_own_sender_are_held_to_the_simulator_too() {
    if skips() {
        return;
    }
    let changes = [
        ("run.world", toml::Value::from("host-sends")),
        ("network.bottleneck.loss", 0.02.into()),
        ("traffic.attack.count", 1.into()),
    ];
    let [there, back] = held("host-sends, 2 % lost", &changes);
    assert!(there.dropped[DropReason::RandomLoss as usize] > 0);
    assert!(back.arrived > 50);
}
