//! `fleetfoot run` of what this machine's kernel plays (`run.world`). Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// All transfers are over before the measured time is, so that the counters of the links have everything that a capture has.
const PLAYED: &str = r#"
title = "played"
[network]
kind = "dumbbell"
pairs = 1
access = { rate = "1 Gbit/s", delay = "0 ms" }
bottleneck = { rate = "10 Mbit/s", delay = "5 ms", queue = { kind = "drop-tail", limit = "8 packets" } }
[tcp]
profile = "linux"
congestion_control = "cubic"
[[traffic]]
name = "short"
kind = "transfer"
size = "40 kB"
arrivals = { dist = "poisson", rate = "20 per second" }
count = 4
[run]
world = "kernel"
duration = "4 s"
warmup = "0 s"
drain = "0 s"
"#;

/// A folder of its own with the scenario in it.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("played-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests can be written");
    fs::write(folder.join("played.toml"), PLAYED).expect("the folder for tests can be written");
    folder
}

fn run(folder: &Path, flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .current_dir(folder)
        .args(["run", "played.toml"])
        .args(flags)
        .output()
        .expect("the program was built")
}

/// Interfaces of a capture by name, and how many packets each has.
fn packets(path: &Path) -> Vec<(String, usize)> {
    use pcap_file::pcapng::PcapNgReader;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption::IfName;
    let mut reader =
        PcapNgReader::new(fs::File::open(path).expect("it was written")).expect("it is a capture");
    let mut seen = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Some(packet) = block.expect("it is whole").into_enhanced_packet() {
            seen.push(packet.interface_id as usize);
        }
    }
    let names = reader.interfaces().iter().map(|interface| {
        let name = interface.options.iter().find_map(|option| match option {
            IfName(name) => Some(name.to_string()),
            _ => None,
        });
        name.unwrap_or_default()
    });
    names
        .enumerate()
        .map(|(index, name)| (name, seen.iter().filter(|&&of| of == index).count()))
        .collect()
}

#[test]
fn a_capture_has_the_frames_of_the_run_that_is_measured() {
    if let Err(reason) = fleetfoot_live::Namespace::available() {
        println!("skipped: {reason}");
        return;
    }
    let folder = folder("captured");
    let output = run(
        &folder,
        &["--pcap", "all.pcapng", "--out", "result", "--json", "-q"],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one document");
    let packets = packets(&folder.join("all.pcapng"));
    let count = |name: &str| packets.iter().find(|of| of.0 == name).map_or(0, |of| of.1);
    let (came, left, dropped) = (
        count("bottleneck-forward-in"),
        count("bottleneck-forward-out"),
        count("bottleneck-forward-drop"),
    );
    let (sent, drops) = counted(of(&document, "forward"));
    // A queue of eight packets drops some of the first windows.
    assert!(sent > 50 && drops > 0, "{document}");
    assert_eq!((came, dropped), (sent + drops, drops), "{packets:?}");
    // What was sent last may be on its way at the end of the run.
    assert!(left <= sent && sent - left <= FEW, "{packets:?}");
    // At one end every frame is there once.
    let output = run(
        &folder,
        &[
            "--pcap",
            "far.pcapng",
            "--pcap-at",
            "bottleneck:far",
            "--json",
            "-q",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one document");
    let (sent, drops) = counted(of(&document, "forward"));
    let (acks, _) = counted(of(&document, "reverse"));
    let at_end = self::packets(&folder.join("far.pcapng"));
    assert_eq!(at_end.len(), 1, "{at_end:?}");
    // What arrived, and what was sent back: none that the queue dropped.
    let (name, all) = &at_end[0];
    assert_eq!(name, "bottleneck-far");
    assert!(drops > FEW && *all <= sent + acks, "{all}: {document}");
    assert!(sent + acks - all <= FEW, "{all}: {document}");
}

/// More packets are not on the way at the end of the run.
const FEW: usize = 4;

/// A direction of the bottleneck.
fn of<'a>(document: &'a serde_json::Value, direction: &str) -> &'a serde_json::Value {
    let links = document["variants"][0]["links"].as_array().expect("a list");
    links
        .iter()
        .find(|link| link["name"] == "bottleneck" && link["direction"] == direction)
        .expect("the bottleneck is there")
}

/// Packets that it carried, and those that it dropped.
fn counted(link: &serde_json::Value) -> (usize, usize) {
    let number = |value: &serde_json::Value| value.as_u64().expect("a number") as usize;
    let drops = &link["drops"];
    let dropped = ["data", "ack", "other"].map(|kind| number(&drops[kind]));
    (number(&link["units"]), dropped.iter().sum())
}

#[test]
fn what_only_a_simulated_run_shows_is_refused_before_it_begins() {
    if let Err(reason) = fleetfoot_live::Namespace::available() {
        println!("skipped: {reason}");
        return;
    }
    let folder = folder("refused");
    for (flags, message) in [
        (&["--trace", "trace.csv"][..], "--trace shows what happens inside"),
        (&["--diagram", "flow.svg"], "--diagram shows what happens inside"),
        (
            &["--pcap", "a.pcapng", "--pcap-at", "access-0"],
            "packets can be captured at link `bottleneck` only",
        ),
    ] {
        let output = run(&folder, flags);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {errors}");
        assert!(errors.contains(message), "{flags:?}: {errors}");
        assert!(
            fs::read_dir(&folder).expect("it is there").count() == 1,
            "nothing was written"
        );
    }
}

#[test]
fn a_capture_is_held_to_the_simulated_queue() {
    if let Err(reason) = fleetfoot_live::Namespace::available() {
        println!("skipped: {reason}");
        return;
    }
    let folder = folder("replayed");
    for flags in [
        &["--pcap", "all.pcapng", "-q"][..],
        &["--pcap", "far.pcapng", "--pcap-at", "bottleneck:far", "-q"],
    ] {
        let output = run(&folder, flags);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let replayed = |flags: &[&str]| {
        let output = run(&folder, flags);
        let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        (output.status.code(), texts.concat())
    };
    let (code, text) = replayed(&["--replay", "all.pcapng", "--json"]);
    assert_eq!(code, Some(0), "{text}");
    let document: serde_json::Value = serde_json::from_str(&text).expect("one document");
    assert_eq!(document["same"], true, "{text}");
    assert!(
        document["directions"][0]["dropped"]["full"].as_u64() > Some(0),
        "{text}"
    );
    let (code, text) = replayed(&["--replay", "all.pcapng"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("at the same times").count(), 2, "{text}");
    // What is no such capture.
    fs::write(folder.join("notes.txt"), "nothing").expect("it can be written");
    let whole = fs::read(folder.join("all.pcapng")).expect("it was written");
    fs::write(folder.join("cut.pcapng"), &whole[..whole.len() - 10]).expect("it can be written");
    for (capture, message) in [
        ("far.pcapng", "it does not say what the clock of the link showed"),
        ("cut.pcapng", "the file ends within it"),
        ("notes.txt", "it is neither pcap nor pcapng"),
        ("missing.pcapng", "No such file"),
        (".", "it is a folder"),
    ] {
        let (code, text) = replayed(&["--replay", capture]);
        assert_eq!(code, Some(2), "{capture}: {text}");
        assert!(
            text.contains(message) && text.starts_with("error: --replay"),
            "{capture}: {text}"
        );
    }
    // Another queue drops others.
    fs::write(
        folder.join("played.toml"),
        PLAYED.replace("8 packets", "9 packets"),
    )
    .expect("it can be written");
    let (code, text) = replayed(&["--replay", "all.pcapng"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("the simulated queue differs: packet 1 that was dropped"),
        "{text}"
    );
}
