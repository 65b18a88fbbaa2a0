//! Imports from outside: captures that tcpdump made of Linux, and our own captures there and back.

use fleetfoot_lab::import::fit::{LINUX, Verdict};
use fleetfoot_lab::import::{Fit, Imported, Options, Trials, import};
use fleetfoot_lab::report::pcapng;
use fleetfoot_lab::report::time_series::captured;
use fleetfoot_lab::run::{observe, simulate};
use fleetfoot_lab::scenario::{Resolved, Scenario, Setting};
use fleetfoot_lab::workload::vectors;
use fleetfoot_sim::output::{GroupOutput, RunOutput};
use fleetfoot_sim::record::{Capture, CapturePlace};
use fleetfoot_sim::spec::LinkIndex;
use std::collections::BTreeMap;
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
    assert_eq!(vectors.len(), 1);
    for vector in vectors::read(&vectors[0].1).expect("vectors") {
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
    times_of(&output.groups)
}

fn times_of(groups: &[GroupOutput]) -> Vec<f64> {
    let flows = groups.iter().flat_map(|group| &group.flows);
    let times = flows.filter_map(|flow| Some(flow.completed?.since(flow.start).as_secs_f64()));
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times
}

/// An original, its capture at a place, and what became of it: recorded and replayed.
struct Trip {
    original: Vec<f64>,
    replayed: Vec<f64>,
    outputs: [RunOutput; 2],
    scenarios: [Resolved; 2],
    imported: Imported,
}

/// The original at so many transfers per second.
fn there_and_back(folder: &Folder, per_second: u32, place: &str, seed: u64) -> Trip {
    let text = ORIGINAL.replace("15 per second", &format!("{per_second} per second"));
    let trip = trip(folder, &text, place, seed);
    assert_eq!(trip.imported.summary.connections as usize, trip.original.len());
    trip
}

/// Simulates, captures at the bottleneck as `run --pcap` does, or at the hosts that send or receive, imports and replays.
fn trip(folder: &Folder, text: &str, place: &str, seed: u64) -> Trip {
    let scenario = Scenario::parse("original.toml", text).unwrap_or_else(|error| panic!("{error}"));
    let resolved = scenario
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    let name = |link: &LinkIndex| resolved.spec.links[link.0 as usize].name.as_str();
    let links: Vec<LinkIndex> = (0..resolved.spec.links.len() as u32)
        .map(LinkIndex)
        .filter(|link| name(link).starts_with(place))
        .collect();
    let mut capture = Capture::new(links.iter().copied(), usize::MAX);
    let stop = AtomicBool::new(false);
    let original = observe(&resolved.spec(seed), &stop, &mut capture).expect("a run");
    // At a host: what leaves it and what comes.
    capture.packets.retain(|seen| {
        let forward = resolved.spec.links[seen.link.0 as usize].forward;
        match place {
            "access" => forward == (seen.place == CapturePlace::Enter),
            "egress" => forward == (seen.place == CapturePlace::Deliver),
            _ => true,
        }
    });
    let (interfaces, mut packets) = captured(&capture, &links, &resolved);
    if place != "bottleneck" {
        packets.iter_mut().for_each(|packet| packet.interface = 0);
    }
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

    let imported = imported(folder, &path);
    let again = Scenario::load(&imported.scenario).unwrap_or_else(|error| panic!("{error}"));
    let again = again
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    let replayed = simulate(&again.spec(1), &stop).expect("a run");
    Trip {
        original: times(&original),
        replayed: times(&replayed),
        outputs: [original, replayed],
        scenarios: [resolved, again],
        imported,
    }
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn at(times: &[f64], share: f64) -> f64 {
    times[(times.len() as f64 * share) as usize]
}

fn within(what: &str, found: f64, known: f64, share: f64) {
    println!(
        "{what}: {known:.4}, {found:.4} ({:+.1} %)",
        (found / known - 1.0) * 100.0
    );
    assert!(
        (found / known - 1.0).abs() <= share,
        "{what}: {found}, known {known}"
    );
}

/// At half of what the line can carry.
#[test]
fn our_own_capture_comes_back_within_a_tenth() {
    let folder = Folder::new("there-and-back");
    let trip = there_and_back(&folder, 15, "bottleneck", 1);
    assert_eq!(trip.original.len(), trip.replayed.len());
    println!("{}", trip.imported.summary.to_text());
    within("mean", mean(&trip.replayed), mean(&trip.original), 0.1);
    for share in [0.1, 0.25, 0.5, 0.75, 0.9] {
        let name = format!("p{:.0}", share * 100.0);
        within(&name, at(&trip.replayed, share), at(&trip.original, share), 0.1);
    }
    let fit = Fit::of(&trip.imported, &AtomicBool::new(false))
        .expect("it runs")
        .expect("a fit");
    println!("{}", fit.to_text());
    assert_eq!(fit.verdict, Verdict::Close, "{fit:?}");
}

/// At nine tenths and more it is chance which packets a full queue drops: on a line that is faster by a ten-thousandth the original
/// itself has other times, by a fifth. So many replays are right on average, and the fit shows what is chance: several times what it
/// is at half load.
#[test]
fn at_full_load_our_own_captures_come_back_on_average() {
    let mut ratios = vec![Vec::new(); 5];
    let mut chance = Vec::new();
    for seed in 1..=24 {
        let folder = Folder::new(&format!("full-load-{seed}"));
        let trip = there_and_back(&folder, 30, "bottleneck", seed);
        let of = |times: &[f64]| {
            [
                mean(times),
                at(times, 0.1),
                at(times, 0.5),
                at(times, 0.75),
                at(times, 0.9),
            ]
        };
        for ((ratios, before), after) in ratios.iter_mut().zip(of(&trip.original)).zip(of(&trip.replayed)) {
            ratios.push((after / before).ln());
        }
        let fit = Fit::of(&trip.imported, &AtomicBool::new(false))
            .expect("it runs")
            .expect("a fit");
        let off = (mean(&trip.replayed) / mean(&trip.original) - 1.0).abs();
        println!("seed {seed}: mean {:.1} % off\n{}", off * 100.0, fit.to_text());
        assert!(off <= 0.1 || fit.verdict > Verdict::Close, "{fit:?}");
        chance.push(fit.chance.expect("two replays"));
    }
    for (name, ratios) in ["mean", "p10", "p50", "p75", "p90"].iter().zip(&ratios) {
        let average = mean(ratios).exp();
        println!("{name}: {:+.1} % on average", (average - 1.0) * 100.0);
        assert!((average - 1.0).abs() <= 0.1, "{name}: {average}");
    }
    let calm: Vec<f64> = (1..=8)
        .map(|seed| {
            let folder = Folder::new(&format!("half-load-{seed}"));
            let fit = Fit::of(
                &there_and_back(&folder, 15, "bottleneck", seed).imported,
                &AtomicBool::new(false),
            );
            let fit = fit.expect("it runs").expect("a fit");
            fit.chance.expect("two replays")
        })
        .collect();
    let (full, half) = (mean(&chance), mean(&calm));
    println!(
        "chance: {:.1} % at full load, {:.1} % at half load",
        full * 100.0,
        half * 100.0
    );
    assert!(
        full > 2.0 * half,
        "{chance:?} at full load, {calm:?} at half load"
    );
}

/// What the last packets wait behind the capture point, and the first before it, belongs to their exchange.
#[test]
fn exchanges_last_as_long_wherever_they_are_captured() {
    for (load, place) in [
        (15, "access"),
        (15, "bottleneck"),
        (15, "egress"),
        (30, "access"),
        (30, "egress"),
    ] {
        let folder = Folder::new(&format!("exchanges-{load}-{place}"));
        let trip = there_and_back(&folder, load, place, 1);
        let recorded = trip.imported.summary.exchange_s.expect("exchanges");
        let name = |what: &str| format!("{load} per second, {place}, {what}");
        within(&name("p10"), recorded.p10, at(&trip.original, 0.1), 0.02);
        within(&name("p50"), recorded.p50, at(&trip.original, 0.5), 0.02);
        if place != "egress" {
            // Where SYNs are lost before the capture point nobody knows when they were sent first.
            within(&name("mean"), recorded.mean, mean(&trip.original), 0.02);
            within(&name("p90"), recorded.p90, at(&trip.original, 0.9), 0.02);
        }
    }
}

/// Both sides open: pages from the left, and larger files from the right, over another queue.
const TWO_WAY: &str = r#"
title = "Opened from both sides"
[network]
kind = "dumbbell"
pairs = 6
access = { rate = "1 Gbit/s", delay = "2 ms" }
bottleneck = { rate = "10 Mbit/s", delay = "18 ms", queue = { kind = "drop-tail", limit = "60 packets" } }
[[traffic]]
name = "pages"
kind = "transfer"
size = { dist = "lomax", mean = "40 kB", shape = 1.3 }
arrivals = { dist = "poisson", rate = "12 per second" }
[[traffic]]
name = "files"
kind = "transfer"
direction = "up"
size = "250 kB"
arrivals = { dist = "poisson", rate = "2 per second" }
[run]
duration = "40 s"
seeds = 1
"#;

#[test]
fn what_both_sides_opened_comes_back_from_its_own_side() {
    // Some of the transfers lose their tails or their SYNs, which is chance: replays are right on average.
    let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for seed in 1..=10 {
        two_way(seed, &mut ratios);
    }
    for (what, ratios) in &ratios {
        let average = mean(ratios).exp();
        println!("{what}: {:+.1} % on average", (average - 1.0) * 100.0);
        assert!((average - 1.0).abs() <= 0.1, "{what}: {average}, of {ratios:?}");
    }
}

fn two_way(seed: u64, ratios: &mut BTreeMap<String, Vec<f64>>) {
    let folder = Folder::new(&format!("two-way-{seed}"));
    let trip = trip(&folder, TWO_WAY, "bottleneck", seed);
    let mut beside = |what: &str, found: f64, known: f64| {
        let of = ratios.entry(what.to_owned()).or_default();
        of.push((found / known).ln());
    };
    let summary = &trip.imported.summary;
    println!("{}", summary.to_text());
    let [before, after] = &trip.outputs;
    // Whoever opened first is on the right of the replay.
    let [pages, files] = [0, 1].map(|group| before.groups[group].flows.len() as u64);
    let files_first = summary.connections - summary.back == files;
    assert!(
        files_first || summary.back == files,
        "{} of {pages} + {files}",
        summary.back
    );
    for (name, group) in [("pages", 0), ("files", 1)] {
        let again = group ^ usize::from(files_first);
        let known = times_of(&before.groups[group..=group]);
        let found = times_of(&after.groups[again..=again]);
        // The end of the run may cut one off, there or here.
        let under_way = known.len().abs_diff(found.len());
        assert!(under_way <= 1, "{name}: {} and {}", known.len(), found.len());
        beside(&format!("{name}, mean"), mean(&found), mean(&known));
        for share in [0.1, 0.5, 0.9] {
            let quantile = format!("{name}, p{:.0}", share * 100.0);
            beside(&quantile, at(&found, share), at(&known, share));
        }
    }
    // What opened first came from the left of the original, and from the right of its replay.
    let bytes = |output: &RunOutput, scenario: &Resolved| {
        let links = scenario.spec.links.iter().zip(&output.links);
        let line = links.filter(|(link, _)| link.name == "bottleneck");
        let sum = |forward| {
            let own = line.clone().filter(|(link, _)| link.forward == forward);
            own.map(|(_, link)| link.bytes.get() as f64).sum::<f64>()
        };
        [sum(true), sum(false)]
    };
    let known = bytes(before, &trip.scenarios[0]);
    let mut found = bytes(after, &trip.scenarios[1]);
    if !files_first {
        found.reverse();
    }
    within("bytes of pages", found[0], known[0], 0.1);
    within("bytes of files", found[1], known[1], 0.1);
    let fit = Fit::of(&trip.imported, &AtomicBool::new(false))
        .expect("it runs")
        .expect("a fit");
    println!("{}", fit.to_text());
    // The fit says when a single replay is not close.
    let off = (mean(&trip.replayed) / mean(&trip.original) - 1.0).abs();
    assert!(off <= 0.1 || fit.verdict > Verdict::Close, "{fit:?}");
}

/// Small messages both ways, four in a second, over a line of which they fill a thousandth.
const THIN: &str = r#"
title = "Thin"
[network]
kind = "dumbbell"
pairs = 2
access = { rate = "1 Gbit/s", delay = "0 ms" }
bottleneck = { rate = "10 Mbit/s", delay = "20 ms" }
[tcp]
nagle = false
[[traffic]]
TRAFFIC
[run]
duration = "60 s"
seeds = 1
"#;

const MOVES: &str = "kind = \"thin\"\npayload = \"100 B\"\ninterval = \"250 ms\"\n";

fn thin(folder: &Folder, traffic: &str) -> Trip {
    trip(folder, &THIN.replace("TRAFFIC", traffic), "egress", 1)
}

/// What decides slow start besides the line: how long segments are, and what the receiver's window lets pass.
#[test]
fn segments_and_windows_come_back() {
    const DOWNLOADS: &str = r#"
title = "Downloads"
[network]
kind = "dumbbell"
pairs = 3
access = { rate = "1 Gbit/s", delay = "1 ms", mtu = "MTU B" }
bottleneck = { rate = "50 Mbit/s", delay = "38 ms", mtu = "MTU B", queue = { kind = "drop-tail", limit = "500 packets" } }
[tcp]
profile = "linux"
[[traffic]]
name = "files"
kind = "request-response"
request = "200 B"
response = "300 kB"
think = "1500 ms"
count = 3
[run]
duration = "20 s"
seeds = 1
"#;
    for (mtu, mss) in [("576", 536), ("1500", 1460), ("9000", 8960)] {
        let folder = Folder::new(&format!("segments-{mtu}"));
        let trip = trip(&folder, &DOWNLOADS.replace("MTU", mtu), "bottleneck", 1);
        let summary = &trip.imported.summary;
        assert_eq!(summary.mss, Some(mss));
        let exchange = summary.exchange_s.expect("exchanges");
        // A wait for the window is no end of an exchange.
        assert_eq!(exchange.n as usize, trip.original.len(), "{mtu}");
        assert_eq!(summary.pause_s, None, "{mtu}");
        let fit = Fit::of(&trip.imported, &AtomicBool::new(false));
        let fit = fit.expect("it runs").expect("a fit");
        let replayed = fit.exchange_s.replayed.expect("times");
        within(&format!("{mtu}, mean"), replayed.mean, exchange.mean, 0.1);
    }
}

/// A line that was never full is fast enough for what was sent, even if that was hardly anything.
#[test]
fn thin_streams_keep_their_times() {
    let asked = "kind = \"request-response\"\nrequest = \"100 B\"\nresponse = \"100 B\"\nthink = \"250 ms\"\ncount = 1\n";
    let often = MOVES.replace("250 ms", "15 ms");
    let both =
        |one: &str| format!("name = \"down\"\n{one}[[traffic]]\nname = \"up\"\ndirection = \"up\"\n{one}");
    for (name, traffic) in [
        ("asked", String::from(asked)),
        ("moves", String::from(MOVES)),
        ("moves back", format!("direction = \"up\"\n{MOVES}")),
        ("both ways", both(MOVES)),
        ("often, both ways", both(&often)),
    ] {
        let folder = Folder::new(&format!("thin-{}", name.replace([' ', ','], "-")));
        let trip = thin(&folder, &traffic);
        let fit = Fit::of(&trip.imported, &AtomicBool::new(false))
            .expect("it runs")
            .expect("a fit");
        println!("{}\n{}", trip.imported.summary.to_text(), fit.to_text());
        let scenario = std::fs::read_to_string(&trip.imported.scenario).expect("a scenario");
        scenario
            .lines()
            .filter(|line| line.starts_with("rate ="))
            .for_each(|line| println!("{line}"));
        let (known, found) = (
            fit.exchange_s.recorded.expect("times"),
            fit.exchange_s.replayed.expect("times"),
        );
        assert_eq!(known.n, found.n, "{name}");
        within(&format!("{name}, p50"), found.p50, known.p50, 0.1);
        within(&format!("{name}, p90"), found.p90, known.p90, 0.1);
        assert_eq!(fit.verdict, Verdict::Close, "{name}: {fit:?}");
    }
}

#[test]
fn the_fit_says_why_exchanges_did_not_end() {
    let folder = Folder::new("unfinished");
    let trip = thin(&folder, &MOVES.replace("250 ms", "15 ms"));
    let of = |change: &dyn Fn(&str) -> String| {
        let path = &trip.imported.scenario;
        let text = std::fs::read_to_string(path).expect("a scenario");
        std::fs::write(path, change(&text)).expect("a scenario");
        let fit = Fit::of(&trip.imported, &AtomicBool::new(false))
            .expect("it runs")
            .expect("a fit");
        std::fs::write(path, text).expect("a scenario");
        fit.to_text()
    };
    let whole = of(&|text| String::from(text));
    assert!(!whole.contains("did not end"), "{whole}");
    let short = of(&|text| text.replace("duration = \"61 s\"", "duration = \"30 s\""));
    assert!(
        short.contains(
            "exchanges did not end (the run of 30.0 s was over before 1 connection had said all): 5"
        ),
        "{short}"
    );
    // With Nagle's algorithm messages are joined, and wait for a round-trip time each.
    let held = of(&|text| text.replace("nagle = false", "nagle = true"));
    println!("{held}");
    assert!(held.contains("Nagle's algorithm holds small segments"), "{held}");
}

/// Pages and two uploads on a symmetric line of 10 Mbit/s.
const BUSY_LINE: &str = include_str!("../src/testing/busy-line.toml");

/// A scenario that is kept beside the captures.
fn described(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).expect("it is checked in")
}

/// Two backups keep the queue of a home line full: pages of other hosts never see it empty.
#[test]
fn a_queue_that_stands_is_distinguished_from_distance() {
    let folder = Folder::new("standing");
    let trip = trip(&folder, BUSY_LINE, "bottleneck", 1);
    let standing = trip.imported.summary.standing.expect("a queue that stands");
    // 16 ms and three times 2 ms, half of which the links of the hosts take twice: 40 ms, and the packets themselves.
    assert!((0.040..0.042).contains(&standing.least_s), "{standing:?}");
    assert!(standing.pairs >= 9 && standing.of == 12, "{standing:?}");
    println!("{}", trip.imported.summary.to_text());
    let scenario = std::fs::read_to_string(&trip.imported.scenario).expect("a scenario");
    let wish = wished_scale(&scenario);
    assert!(wish.parse::<f64>().is_ok_and(|scale| scale < 0.6), "{scenario}");
    // It is tried by itself, with every congestion control, and taken only if the replay is clearly closer.
    let best = best(&trip.imported);
    let scaled: Vec<bool> = best
        .controllers
        .iter()
        .map(|one| one.name.ends_with(&format!(", rtt_scale {wish}")))
        .collect();
    assert_eq!(
        scaled.iter().filter(|scaled| **scaled).count(),
        LINUX.len(),
        "{best:?}"
    );
    let text = std::fs::read_to_string(&trip.imported.scenario).expect("a scenario");
    assert_eq!(
        text.contains(&format!(
            "rtt_scale = {wish} # all hosts as near as the nearest, with which"
        )),
        scaled[0]
    );
}

/// With the `rtt_scale` that the summary names the smallest round-trip times come back within 5 % on average over eight recordings, and
/// exchanges are closer.
///
/// For a single recording 5 % is too strict: the smallest round-trip time of a short connection is distance and what the queue
/// held just then, and where the queue is full decides chance. Single ones are off by up to 9 %; without the scale by 25 % to 44 %.
#[test]
fn without_the_queue_that_stood_hosts_are_as_far_as_they_were() {
    // Of each recording: by how much round-trip times are longer in the replay, and exchanges differ, without the scale and with it.
    let mut longer = [Vec::new(), Vec::new()];
    let mut differ = [Vec::new(), Vec::new()];
    let mut hints = [0, 0];
    for seed in 1..=16 {
        let folder = Folder::new(&format!("scaled-{seed}"));
        let trip = trip(&folder, BUSY_LINE, "bottleneck", seed);
        let scenario = std::fs::read_to_string(&trip.imported.scenario).expect("a scenario");
        let wish = wished_scale(&scenario);
        for (with, scale) in ["1", wish].into_iter().enumerate() {
            let text = scenario.replace("rtt_scale = 1 ", &format!("rtt_scale = {scale} "));
            let text = text.replace("rtt_scale = 1\n", &format!("rtt_scale = {scale}\n"));
            std::fs::write(&trip.imported.scenario, text).expect("a scenario");
            let fit = Fit::of(&trip.imported, &AtomicBool::new(false))
                .expect("it runs")
                .expect("a fit");
            let [recorded, replayed] = fit.rtt_s.map(|rtt| rtt.expect("round-trip times"));
            longer[with].push(replayed / recorded - 1.0);
            differ[with].push(fit.exchange_s.difference.expect("exchanges"));
            let shown = fit.to_text();
            println!("{shown}");
            hints[with] += usize::from(shown.contains("see rtt_scale"));
            assert!(with == 1 || fit.verdict > Verdict::Close, "{shown}");
        }
    }
    println!("longer {longer:.3?}\ndiffer {differ:.3?}\nhints {hints:?}");
    // In some of the sixteen recordings round-trip times are longer by an eighth only: their hosts saw a shorter queue.
    let stood = longer[0].iter().filter(|longer| **longer > 0.2);
    assert!(stood.count() >= 12, "{longer:?}");
    assert!(hints[0] >= 12, "without the scale it is advised: {hints:?}");
    // Two replays of one recording differ by chance, so the recordings count together (sign tests at 5 %: 12 of 16).
    let near = longer[1].iter().filter(|longer| longer.abs() < 0.1);
    assert!(near.count() >= 12 && hints[1] <= 4, "{longer:?}, {hints:?}");
    assert!(mean(&longer[1]).abs() <= 0.05, "{longer:?}");
    let pairs = differ[0].iter().zip(&differ[1]);
    assert!(
        pairs.filter(|(without, with)| with < without).count() >= 12,
        "{differ:?}"
    );
    assert!(mean(&differ[1]) < 0.9 * mean(&differ[0]), "{differ:?}");
}

/// The scale of round-trip times that a scenario advises in a comment.
fn wished_scale(scenario: &str) -> &str {
    let line = scenario.lines().find(|line| line.starts_with("rtt_scale"));
    let wish = line.and_then(|line| line.split(['#', ':']).nth(1));
    wish.expect("it is advised").trim()
}

/// A large queue drops few packets of a download, but it was full.
#[test]
fn a_full_queue_is_known_by_its_longest_waits() {
    let folder = Folder::new("satellite");
    let trip = trip(&folder, &described("large-queue.toml"), "bottleneck", 1);
    assert_eq!(trip.imported.summary.standing, None, "all hosts saw it empty");
    let fit = Fit::of(&trip.imported, &AtomicBool::new(false))
        .expect("it runs")
        .expect("a fit");
    println!("{}", fit.to_text());
    let scenario = std::fs::read_to_string(&trip.imported.scenario).expect("a scenario");
    println!("{scenario}");
    assert!(fit.exchange_s.difference.expect("times") < 0.1, "{fit:?}");
}

/// Nothing was lost, so what waited is the least that the queue has room for; where the replays lose packets with no more room than that, twice and
/// four times are tried, and the one that loses nothing is taken, whatever its times.
#[test]
fn a_queue_that_lost_nothing_has_more_room_than_was_seen() {
    let folder = Folder::new("roomy");
    let text = "title = \"Upload\"\n[network]\nkind = \"dumbbell\"\npairs = 3\naccess = { rate = \"1 Gbit/s\", delay = \"2 ms\", jitter = { dist = \"uniform\", min = \"0 ms\", max = \"0.3 ms\" } }\n\
        bottleneck = { rate = \"10 Mbit/s\", delay = \"16 ms\", queue = { kind = \"drop-tail\", limit = \"1000 packets\" }, reverse = { rate = \"2 Mbit/s\" } }\n\
        [tcp]\nprofile = \"linux\"\ncongestion_control = \"bbr\"\n\
        [[traffic]]\nname = \"pages\"\nkind = \"transfer\"\nsize = { dist = \"lomax\", mean = \"20 kB\", shape = 1.3 }\narrivals = { dist = \"poisson\", rate = \"3 per second\" }\n\
        [[traffic]]\nname = \"upload\"\nkind = \"transfer\"\ndirection = \"up\"\nsize = \"3 MB\"\narrivals = { dist = \"constant\", rate = \"1 per second\" }\ncount = 1\nstart = \"1 s\"\n\
        [run]\nduration = \"20 s\"\nseeds = 1\n";
    let trip = trip(&folder, text, "bottleneck", 1);
    let lost: u64 = trip
        .imported
        .summary
        .segments
        .iter()
        .map(|one| one.retransmitted)
        .sum();
    assert_eq!(lost, 0, "nothing of the original is lost");
    let fit = best(&trip.imported);
    let scenario = std::fs::read_to_string(&trip.imported.scenario).expect("a scenario");
    println!("{scenario}");
    assert!(fit.retransmitted[1] <= 0.001, "{fit:?}");
}

/// At the receiver only timestamps show what data waited: without them nothing is known of it, which is no wait of nothing.
#[test]
fn waits_that_nobody_saw_are_no_difference() {
    for stamps in [true, false] {
        let folder = Folder::new(&format!("waits-{stamps}"));
        let text = ORIGINAL.replace(
            "[[traffic]]",
            &format!("[tcp]\ntimestamps = {stamps}\n[[traffic]]"),
        );
        let trip = trip(&folder, &text.replace("15 per", "6 per"), "egress", 1);
        let fit = Fit::of(&trip.imported, &AtomicBool::new(false))
            .expect("it runs")
            .expect("a fit");
        assert_eq!(fit.wait_s[0][0].is_some(), stamps, "{fit:?}");
        assert_eq!(fit.verdict, Verdict::Close, "{fit:?}");
    }
}

/// Two backups beside pages over this line, with this congestion control.
fn backups(line: [&str; 3], controller: &str) -> String {
    let [rate, delay, limit] = line;
    format!(
        r#"
title = "Backups"
[network]
kind = "dumbbell"
pairs = 6
access = {{ rate = "1 Gbit/s", delay = "2 ms", jitter = {{ dist = "uniform", min = "0 ms", max = "0.3 ms" }} }}
bottleneck = {{ rate = "{rate}", delay = "{delay}", queue = {{ kind = "drop-tail", limit = "{limit}" }} }}
[tcp]
profile = "linux"
congestion_control = "{controller}"
[[traffic]]
name = "pages"
kind = "transfer"
size = {{ dist = "lomax", mean = "40 kB", shape = 1.3 }}
arrivals = {{ dist = "poisson", rate = "4 per second" }}
[[traffic]]
name = "backup"
kind = "bulk"
count = 2
start_spacing = "700 ms"
[run]
duration = "30 s"
seeds = 1
"#
    )
}

/// The fit with the congestion control that fits best of those of Linux.
fn best(imported: &Imported) -> Fit {
    let trials = Trials {
        names: &LINUX,
        stop: &AtomicBool::new(false),
        progress: &|_| {},
    };
    let fit = trials.best(imported).expect("it runs").expect("a fit");
    println!("{}", fit.to_text());
    fit
}

/// Recordings of three lines with queues of twice, four times and half of what the pipe holds.
#[test]
fn the_congestion_control_of_a_capture_is_recognised() {
    let lines = [
        ["10 Mbit/s", "18 ms", "100 packets"],
        ["50 Mbit/s", "28 ms", "250 packets"],
        ["20 Mbit/s", "48 ms", "40 packets"],
    ];
    let (mut right, mut of) = (0, 0);
    for (number, line) in lines.into_iter().enumerate() {
        for controller in ["cubic", "bbr", "reno"] {
            let folder = Folder::new(&format!("controllers-{number}-{controller}"));
            let trip = trip(&folder, &backups(line, controller), "bottleneck", 1);
            let fit = best(&trip.imported);
            // Round-trip times may be scaled as well.
            let found = fit.controllers[0]
                .name
                .split(", rtt_scale")
                .next()
                .unwrap_or_default();
            println!("{line:?} {controller}: {found}");
            (right, of) = (right + usize::from(found == controller), of + 1);
            // It stands in the scenario, with what else was tried.
            let text = std::fs::read_to_string(&trip.imported.scenario).expect("a scenario");
            let first = found.split(',').next().unwrap_or_default();
            assert!(
                text.contains(&format!("\ncongestion_control = \"{first}\" # ")),
                "{text}"
            );
            assert!(fit.controllers.len() >= LINUX.len(), "{fit:?}");
        }
    }
    assert!(right >= 7, "{right} of {of}");
}

/// A link that loses in bursts, whose buffer is never full: no congestion control explains why a download is slow there.
#[test]
fn losses_without_a_full_queue_are_replayed_as_losses() {
    let folder = Folder::new("lossy");
    let text = backups(["8 Mbit/s", "30 ms", "300 packets"], "cubic");
    let lossy = "loss = { kind = \"burst\", enter = 0.005, leave = 0.33, bad = \"40 %\" }, queue =";
    let trip = trip(&folder, &text.replace("queue =", lossy), "bottleneck", 1);
    let fit = best(&trip.imported);
    let text = std::fs::read_to_string(&trip.imported.scenario).expect("a scenario");
    assert!(
        text.contains("losses = true # the retransmitted shares as random losses"),
        "{text}"
    );
    assert!(!text.contains("losses = false"), "{text}");
    let [taken, others @ ..] = &fit.controllers[..] else {
        panic!("{fit:?}")
    };
    assert!(taken.name.ends_with(", losses"), "{fit:?}");
    let without = others.iter().filter(|one| !one.name.ends_with(", losses"));
    let least = without.map(|one| one.difference).fold(f64::MAX, f64::min);
    assert!(taken.difference < 0.7 * least, "{fit:?}");
}

/// What lasts for most of the capture is no short transfer, and is replayed as a group of its own.
#[test]
fn long_transfers_are_a_group_of_their_own() {
    let folder = Folder::new("long");
    let line = ["10 Mbit/s", "18 ms", "100 packets"];
    let trip = trip(&folder, &backups(line, "cubic"), "bottleneck", 1);
    let Imported { summary, vectors, .. } = &trip.imported;
    assert_eq!(summary.long, [2, 0]);
    assert_eq!(summary.long_s.expect("two").n, 2);
    let shown = summary.to_text();
    assert!(
        shown.contains("Long transfer") && shown.contains("connections are long transfers"),
        "{shown}"
    );
    let parts: Vec<_> = vectors.iter().map(|(part, _)| (part.name, part.long)).collect();
    assert_eq!(parts, [("recorded", false), ("long", true)]);
    let all: u64 = vectors.iter().map(|(part, _)| part.connections).sum();
    assert_eq!(all, summary.connections);
    for (part, path) in vectors {
        assert_eq!(
            vectors::read(path).expect("vectors").len() as u64,
            part.connections
        );
    }
    // Whoever opened first: both kinds replay from one side.
    let [_, replay] = &trip.scenarios;
    let sensitive: Vec<_> = replay
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.latency_sensitive))
        .collect();
    assert_eq!(sensitive, [("recorded", true), ("long", false)]);
    let fit = best(&trip.imported);
    assert!(fit.long_s.recorded.expect("two").p50 > 25.0, "{fit:?}");
    assert!(fit.exchange_s.recorded.expect("pages").max < 25.0, "{fit:?}");
}

#[test]
fn the_scenario_says_how_well_it_fits() {
    let folder = Folder::new("statement");
    let trip = there_and_back(&folder, 15, "bottleneck", 1);
    let fit = best(&trip.imported);
    trip.imported
        .write_fit(&fit.statement())
        .expect("it can be written");
    let resolved = |path: &Path| {
        let scenario = Scenario::load(path).unwrap_or_else(|error| panic!("{error}"));
        scenario
            .resolve(&Setting::none())
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let read = resolved(&trip.imported.scenario).fit.expect("it has one");
    assert_eq!((read.verdict, read.changed), (Verdict::Close, false));
    assert_eq!(read.controllers.len(), fit.controllers.len());
    assert!(read.permits_an_answer());
    // Written again, it replaces what it said before.
    let poor = fleetfoot_lab::scenario::ReplayFit {
        verdict: Verdict::Poor,
        ..read
    };
    trip.imported.write_fit(&poor).expect("it can be written");
    let again = resolved(&trip.imported.scenario).fit.expect("it has one");
    assert!(!again.permits_an_answer() && !again.changed, "{again:?}");
    // What the connections say is a part of what the fit was measured with.
    let (_, vectors) = &trip.imported.vectors[0];
    let text = std::fs::read_to_string(vectors).expect("vectors");
    std::fs::write(vectors, text.replacen("> ", "> 1", 1)).expect("vectors");
    assert!(resolved(&trip.imported.scenario).fit.expect("it has one").changed);
}
