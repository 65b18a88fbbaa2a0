//! Imports from outside: captures that tcpdump made of Linux, and our own captures there and back.

use fleetfoot_lab::import::{Imported, Options, import};
use fleetfoot_lab::report::pcapng;
use fleetfoot_lab::run::course::captured;
use fleetfoot_lab::run::{observe, simulate};
use fleetfoot_lab::scenario::{Scenario, Setting};
use fleetfoot_lab::workload::vectors;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::record::Capture;
use fleetfoot_sim::spec::LinkIndex;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fleetfoot-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the temporary folder can be removed");
    }
}

fn imported(folder: &Folder, capture: &Path) -> Imported {
    let output = folder.0.join("imported.toml");
    import(capture, &output, &Options::default(), |_| true).unwrap_or_else(|error| panic!("{error}"))
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/captures")
        .join(name)
}

fn near(what: &str, found: f64, known: f64) {
    assert!(
        (found / known - 1.0).abs() <= 0.05,
        "{what}: {found}, known {known}"
    );
}

/// Made by `scripts/real-captures.py --small`: Linux over a relay with 40 ms and 20 Mbit/s, captured at the client. Three
/// connections ask twice for 9000 bytes with 400, are answered after 30 ms and ask again after 60 ms.
#[test]
fn pages_captured_at_a_client_come_back() {
    let folder = Folder::new("pages");
    let Imported { vectors, summary, .. } = imported(&folder, &fixture("pages-at-client.pcap"));
    assert_eq!(
        (summary.connections, summary.concurrent, summary.openers),
        (3, 0, 1)
    );
    assert_eq!(summary.segments.map(|segments| segments.bytes), [2_400, 54_000]);
    let middle = |sample: Option<fleetfoot_lab::import::Quantiles>| sample.expect("a sample").p50;
    near("handshakes", middle(summary.handshake_rtt_s), 0.040);
    near("RTT", middle(summary.rtt_s), 0.040);
    near("waits of the server", middle(summary.answer_wait_s), 0.030);
    near("waits of the client", middle(summary.ask_wait_s), 0.060);
    assert!(
        summary.capture_point.expect("both halves") < 0.05,
        "at the client"
    );
    for vector in vectors::read(&vectors).expect("vectors") {
        let bytes: Vec<u64> = vector.units.iter().map(|unit| unit.bytes).collect();
        assert_eq!(bytes, [400, 9_000, 400, 9_000, 0]);
    }
}

/// Two downloads of 60 kB captured at the server, 80 ms away.
#[test]
fn downloads_captured_at_a_server_come_back() {
    let folder = Folder::new("downloads");
    let Imported {
        summary, scenario, ..
    } = imported(&folder, &fixture("bulk-at-server.pcap"));
    assert_eq!(summary.connections, 2);
    assert_eq!(summary.segments.map(|segments| segments.bytes), [400, 120_000]);
    near("handshakes", summary.handshake_rtt_s.expect("two").p50, 0.080);
    near("RTT", summary.rtt_s.expect("two").p50, 0.080);
    assert!(
        summary.capture_point.expect("both halves") > 0.95,
        "at the server"
    );
    let scenario = Scenario::load(&scenario).unwrap_or_else(|error| panic!("{error}"));
    let resolved = scenario
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    let output = simulate(&resolved.spec(1), &AtomicBool::new(false)).expect("a run");
    assert_eq!(output.groups[0].connections.len(), 2);
}

const ORIGINAL: &str = r#"
title = "There and back"
[network]
kind = "dumbbell"
pairs = 6
access = { rate = "1 Gbit/s", delay = "2 ms" }
bottleneck = { rate = "10 Mbit/s", delay = "18 ms", queue = { kind = "drop-tail", limit = "60 packets" } }
[[traffic]]
name = "pages"
kind = "transfer"
size = { dist = "lomax", mean = "40 kB", shape = 1.3 }
arrivals = { dist = "poisson", rate = "15 per second" }
[run]
duration = "40 s"
seeds = 1
"#;

/// Completion times in order.
fn times(output: &RunOutput) -> Vec<f64> {
    let flows = output.groups.iter().flat_map(|group| &group.flows);
    let times = flows.filter_map(|flow| Some(flow.completed?.since(flow.start).as_secs_f64()));
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn our_own_capture_comes_back_within_a_tenth() {
    let folder = Folder::new("there-and-back");
    let scenario = Scenario::parse("original.toml", ORIGINAL).unwrap_or_else(|error| panic!("{error}"));
    let resolved = scenario
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    let links: Vec<LinkIndex> = (0..resolved.spec.links.len() as u32)
        .map(LinkIndex)
        .filter(|link| resolved.spec.links[link.0 as usize].name == "bottleneck")
        .collect();
    let mut capture = Capture::new(links.iter().copied(), usize::MAX);
    let stop = AtomicBool::new(false);
    let original = observe(&resolved.spec(1), &stop, &mut capture).expect("a run");
    let (interfaces, packets) = captured(&capture, &links, &resolved);
    let path = folder.0.join("run.pcapng");
    pcapng::write(
        &path,
        packets,
        &interfaces,
        &capture.flows,
        "test",
        pcapng::Protocol::V4,
    )
    .expect("a capture");

    let Imported {
        scenario, summary, ..
    } = imported(&folder, &path);
    assert_eq!(summary.connections as usize, original.groups[0].flows.len());
    let again = Scenario::load(&scenario).unwrap_or_else(|error| panic!("{error}"));
    let again = again
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    let replayed = simulate(&again.spec(1), &stop).expect("a run");
    let (before, after) = (times(&original), times(&replayed));
    assert_eq!(before.len(), after.len());
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let at = |times: &[f64], share: f64| times[(times.len() as f64 * share) as usize];
    println!("{}", summary.to_text());
    let mut pairs = vec![("mean", mean(&before), mean(&after))];
    for (name, share) in [
        ("p10", 0.1),
        ("p25", 0.25),
        ("p50", 0.5),
        ("p75", 0.75),
        ("p90", 0.9),
        ("p95", 0.95),
    ] {
        pairs.push((name, at(&before, share), at(&after, share)));
    }
    for (name, before, after) in &pairs {
        println!(
            "{name}: {before:.4} s, replayed {after:.4} s ({:+.1} %)",
            (after / before - 1.0) * 100.0
        );
    }
    for (name, before, after) in pairs {
        assert!(
            (after / before - 1.0).abs() <= 0.1,
            "{name}: {before} s, replayed {after} s"
        );
    }
}
