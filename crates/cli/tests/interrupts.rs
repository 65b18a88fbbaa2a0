//! What an interruption leaves: no part that looks like a whole, and nothing lost that was whole.
#![cfg(unix)]

mod folder;

use folder::Folder;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const LINE: &str = "title = \"Line\"\n[network]\nkind = \"dumbbell\"\npairs = 1\nbottleneck = { rate = \"50 Mbit/s\", delay = \"10 ms\" }\n\
     [[traffic]]\nname = \"pages\"\nkind = \"transfer\"\nsize = \"30 kB\"\narrivals = { dist = \"poisson\", rate = \"20 per second\" }\n[[traffic]]\nname = \"backup\"\nkind = \"bulk\"\n\
     [run]\nduration = \"60 s\"\nseeds = 3\n";

fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetfoot"));
    command.args(arguments).current_dir(folder);
    command
}

/// Runs the program and interrupts it when `when` stands in a line that it says.
fn interrupted(folder: &Path, arguments: &[&str], when: &str) -> (Output, String) {
    let mut child = program(folder, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped"));
    while !said.contains(when) && lines.read_line(&mut said).expect("it is text") > 0 {}
    interrupt(&child);
    while lines.read_line(&mut said).expect("it is text") > 0 {}
    (child.wait_with_output().expect("it ends"), said)
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.is_ok_and(|status| status.success()));
}

#[test]
fn a_capture_that_was_interrupted_is_not_written() {
    let folder = Folder::new("interrupted-capture");
    std::fs::write(folder.path().join("line.toml"), LINE).expect("it can be written");
    std::fs::write(folder.path().join("own.pcap"), "what was there").expect("it can be written");
    let arguments = [
        "run",
        "line.toml",
        "--seeds",
        "1",
        "--set",
        "run.duration=2000s",
        "--pcap",
        "own.pcap",
        "--trace",
        "own.csv",
        "--force",
    ];
    let (output, said) = interrupted(folder.path(), &arguments, "time series");
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("no capture, trace or diagram is written"), "{said}");
    let kept = std::fs::read_to_string(folder.path().join("own.pcap")).expect("it is there");
    assert_eq!(kept, "what was there");
    assert!(!folder.path().join("own.csv").exists());
}

#[test]
fn a_whole_result_outlives_an_interruption() {
    let folder = Folder::new("interrupted-comparison");
    std::fs::write(folder.path().join("line.toml"), LINE).expect("it can be written");
    let arguments = [
        "compare",
        "line.toml",
        "--only",
        "sfq,codel",
        "--budget",
        "0",
        "--out",
        "out",
    ];
    let whole = program(folder.path(), &arguments)
        .output()
        .expect("the program was built");
    assert!(whole.status.success(), "{whole:?}");
    let of = |name: &str| std::fs::read(folder.path().join("out").join(name)).expect("it is there");
    let (result, report) = (of("result.json"), of("report.html"));
    let again: Vec<&str> = arguments
        .into_iter()
        .chain(["--fresh", "--events", "events"])
        .collect();
    let child = program(folder.path(), &again)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    // From its first event on it heeds Ctrl-C.
    let events = folder.path().join("events");
    while !std::fs::read_to_string(&events).is_ok_and(|text| text.contains("started")) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(
        of("result.json") == result && of("report.html") == report,
        "{output:?}"
    );
}

/// Each in a folder of its own, until it has its name.
#[test]
fn a_capture_is_compared_twice_at_once() {
    let folder = Folder::new("two-imports");
    std::fs::write(folder.path().join("line.toml"), LINE).expect("it can be written");
    let capture = [
        "run",
        "line.toml",
        "--seeds",
        "1",
        "--set",
        "run.duration=5s",
        "--pcap",
        "own.pcap",
    ];
    let made = program(folder.path(), &capture)
        .output()
        .expect("the program was built");
    assert!(made.status.success(), "{made:?}");
    // What a user keeps has a name of this kind, too.
    let own = folder.path().join("fleetfoot-out/import-own.part");
    std::fs::create_dir_all(&own).expect("it can be made");
    let compare = |seeds: &str| {
        let mut command = program(
            folder.path(),
            &[
                "compare", "own.pcap", "--only", "sfq", "--seeds", seeds, "--budget", "0",
            ],
        );
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program was built")
    };
    let both = ["1", "2"]
        .map(compare)
        .map(|child| child.wait_with_output().expect("it ends"));
    for output in both {
        assert!(output.status.success(), "{output:?}");
    }
    assert!(own.is_dir());
    // With --out the scenario of the capture is beside it.
    let elsewhere = [
        "compare",
        "own.pcap",
        "--only",
        "sfq",
        "--seeds",
        "1",
        "--budget",
        "0",
        "--out",
        "there/result",
    ];
    let output = program(folder.path(), &elsewhere)
        .output()
        .expect("the program was built");
    assert!(output.status.success(), "{output:?}");
    assert!(folder.path().join("there/import-own/own.toml").exists());
}
