//! Runs that the kernel plays, held to the simulator: what arrived at the bottleneck passes the simulated queue, and every packet that was
//! dropped, was marked or left must be the same at the same nanosecond. Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::{Duration as Span, Instant};
use fleetfoot_lab::report::pcapng::{FrameWriter, Interface, RealFrame};
use fleetfoot_lab::run::{play, replay};
use fleetfoot_lab::scenario::{Scenario, Setting};
use fleetfoot_live::{Event, Held, Namespace, RING, Recording, SNAP_LENGTH, TapReader, Tapped, kernel, tap};
use fleetfoot_sim::output::{LinkOutput, RunOutput};
use fleetfoot_sim::spec::Spec;
use fleetfoot_sim::world::Mode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The testbed in small: many first windows at once beside a long flow and packets that promise others. All of them are over before
/// the measured time is, so that the link's counters have everything that the tap sees.
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
kind = "transfer"
size = "2 MB"
count = 1
arrivals = { dist = "list", values = ["1 ms"] }
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
count = 40
[run]
world = "kernel"
duration = "3 s"
warmup = "0 s"
drain = "0 s"
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
    assert_eq!(real.most_probes, simulated.most_probes, "{what}");
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

/// An Ethernet frame of 1500 bytes at layer 3, whose headers cannot be read.
fn frame() -> [u8; SNAP_LENGTH] {
    let mut bytes = [0; SNAP_LENGTH];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14..].fill(0x45);
    bytes
}

fn tapped(at_us: u64, event: Event) -> Tapped {
    Tapped {
        unix_ns: 1_800_000_000_000_000_000 + at_us * 1000,
        at: Instant::from_nanos(at_us * 1000),
        event,
        direction: 0,
        kept: SNAP_LENGTH as u8,
        length: 1514,
        bytes: frame(),
    }
}

/// A capture with these frames, each at a point and with a comment; `lacks`: so many are not in it.
fn capture(name: &str, frames: &[(Tapped, u32, Option<String>)], lacks: u64) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    let points: Vec<Interface> = (0..8)
        .map(|point| Interface {
            name: point.to_string(),
            description: String::new(),
        })
        .collect();
    let file = std::fs::File::create(&path).expect("the folder for tests can be written");
    let mut writer = FrameWriter::new(file, &points, "test", SNAP_LENGTH as u32).expect("it can be written");
    for (tapped, interface, comment) in frames {
        let written = writer.write(&RealFrame {
            unix_ns: tapped.unix_ns,
            interface: *interface,
            inbound: false,
            data: tapped.frame(),
            length: tapped.length,
            comment: comment.as_deref(),
        });
        written.expect("it can be written");
    }
    if lacks > 0 {
        writer.lacks(lacks).expect("it can be written");
    }
    writer.flush().expect("it can be written");
    std::fs::read(path).expect("it was written")
}

/// What the writer of a capture says beside frames is what its reader needs. 1500 bytes at 20 Mbit/s take 0.6 ms, and 0.5 ms to the far end.
#[test]
fn a_capture_says_what_the_replay_needs() {
    let spec = spec(&[]);
    let held = |late_ns: u64| {
        let late = Span::from_nanos(late_ns);
        let waited = Span::ZERO;
        let events = [
            tapped(50_000, Event::Entered),
            tapped(51_200, Event::Left { waited, late }),
        ];
        let frames: Vec<_> = events
            .iter()
            .enumerate()
            .map(|(number, tapped)| {
                let comment = replay::remark(tapped, number == 0);
                (*tapped, replay::point(0, tapped.event), comment)
            })
            .collect();
        let [there, back] = replay::hold(&spec, &capture("needs", &frames, 0)[..]).expect("it is whole");
        assert_eq!((there.arrived, there.left, back.arrived), (1, 1, 0));
        there.difference
    };
    assert_eq!(held(100_000), None);
    let difference = held(99_999).expect("it left a nanosecond later");
    assert!(
        difference.contains("at 0.051100001 s in the recording"),
        "{difference}"
    );
    assert!(
        difference.contains("at 0.051100000 s in the simulator"),
        "{difference}"
    );
}

#[test]
fn what_is_no_capture_of_a_run_in_real_time_is_refused() {
    let first = tapped(50_000, Event::Entered);
    let clock = replay::remark(&first, true);
    let begins = || (first, 0, clock.clone());
    let second = |point, comment: &str| vec![begins(), (first, point, Some(comment.to_owned()))];
    for (what, frames, lacks, message) in [
        (
            "no clock",
            vec![(first, 0, None)],
            0,
            "packet 1: it does not say what the clock of the link showed",
        ),
        (
            "no lateness",
            second(1, "full"),
            0,
            "packet 2: it does not say how late it left",
        ),
        (
            "no reason",
            second(2, "fate"),
            0,
            "a reason that is not known, \"fate\"; known are full, early",
        ),
        (
            "a seventh point",
            second(6, ""),
            0,
            "packet 2: it was captured at a seventh point",
        ),
        ("frames lost", vec![begins()], 3, "3 frames are not in it"),
        ("nothing", vec![], 0, "there is no packet in it"),
    ] {
        let problem = replay::recordings(&capture("refused", &frames, lacks)[..]).expect_err(what);
        assert!(problem.contains(message), "{what}: {problem}");
    }
    let problem = replay::recordings(&b"[network]\n"[..]).expect_err("a scenario");
    assert!(problem.contains("neither pcap nor pcapng"), "{problem}");
}
