//! `sweep` as a user sees it: what it writes, what it says, and that whatever ends it loses nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const LINE: &str = include_str!("line.toml");

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fleetfoot-sweep-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        fs::write(path.join("line.toml"), LINE).expect("a temporary file can be written");
        Folder(path)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleetfoot"));
        command.arg("sweep").args(arguments).current_dir(&self.0);
        command
    }

    /// Exit code, standard output, standard error.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).output().expect("the program was built");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.0.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("the temporary folder can be removed");
    }
}

/// The tables, and everything else that follows from the sweep alone.
fn data(folder: &Folder, out: &str) -> Vec<(String, Vec<u8>)> {
    let ending = if cfg!(feature = "parquet") {
        "parquet"
    } else {
        "csv"
    };
    let tables = ["points", "runs", "links"].map(|name| format!("{name}.{ending}"));
    let names = tables
        .into_iter()
        .chain(["sweep.json", "scenario.toml", "sweep.journal"].map(String::from));
    names
        .map(|name| {
            let bytes = folder.read(&format!("{out}/{name}"));
            (name, bytes)
        })
        .collect()
}

/// Waits until so many runs are told in the file of events, then kills.
fn killed_after(mut child: Child, events: &Path, runs: usize) {
    loop {
        let told = fs::read_to_string(events).unwrap_or_default();
        let done = told
            .lines()
            .filter(|line| line.contains("\"event\":\"run\""))
            .count();
        let ended = child.try_wait().expect("it is our child").is_some();
        if done >= runs || ended {
            break;
        }
        std::thread::yield_now();
    }
    // What has ended meanwhile cannot be killed.
    let _ = child.kill();
    child.wait().expect("it is our child");
}

const AXES: [&str; 4] = [
    "--set",
    "tcp.initial_window=3,10,20",
    "--range",
    "network.bottleneck.rate=2 Mbit/s:20 Mbit/s:log:8",
];

#[test]
fn killed_ten_times_it_ends_in_the_same_data_set() {
    let folder = Folder::new("killed");
    let with = |out: &'static str, more: &[&'static str]| {
        let mut arguments = vec!["line.toml", "--out", out];
        arguments.extend(AXES);
        arguments.extend(more);
        arguments
    };
    let (code, told, talk) = folder.run(&with("whole", &[]));
    assert_eq!(code, Some(0), "{talk}");
    assert!(told.starts_with("Best fct_mean_s of pages: "), "{told}");
    assert!(
        talk.contains("24 points of \"A small line\" with seeds 1 to 3: 72 runs"),
        "{talk}"
    );
    for kill in 0..10 {
        let events = folder.0.join(format!("events-{kill}"));
        let arguments = with("cut", &[]);
        let mut command = folder.command(&arguments);
        command
            .arg("--events")
            .arg(&events)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Those that were finished are told again: each time a few more.
        killed_after(
            command.spawn().expect("the program was built"),
            &events,
            6 * kill + kill * kill % 5,
        );
    }
    let (code, told, talk) = folder.run(&with("cut", &["--json"]));
    assert_eq!(code, Some(0), "{talk}");
    let document: serde_json::Value = serde_json::from_str(&told).expect("one document");
    let count = |name: &str| document["timing"][name].as_u64().expect("a count");
    assert_eq!(count("computed") + count("reused"), 72);
    assert!(count("reused") >= 54, "{document}");
    assert_eq!(document["points"]["done"], 24);
    for ((name, whole), (_, cut)) in data(&folder, "whole").iter().zip(&data(&folder, "cut")) {
        assert!(whole == cut, "{name} differs");
    }
    // Nothing is run twice.
    let (_, told, _) = folder.run(&with("cut", &["--json", "--quiet"]));
    let document: serde_json::Value = serde_json::from_str(&told).expect("one document");
    assert_eq!(document["timing"]["computed"], 0);
}

#[test]
fn a_width_that_was_not_reached_is_said() {
    let folder = Folder::new("wide");
    let with = |width: &'static str| {
        let until = ["--until", width, "--seeds", "4", "--out", width];
        folder.run(&[&["line.toml", AXES[0], AXES[1]][..], &until[..]].concat())
    };
    let (code, told, talk) = with("pages.fct_mean_s=0.0001%");
    assert_eq!(code, Some(0), "{talk}");
    assert!(told.starts_with("Best fct_mean (ms) of pages: "), "{told}");
    assert!(
        talk.contains("--until pages.fct_mean_s=0.0001% was not met at 3 of 3 points with all 4 seeds"),
        "{talk}"
    );
    let (code, _, talk) = with("pages.fct_mean_s=1000");
    assert!(code == Some(0) && !talk.contains("was not met"), "{talk}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let folder = Folder::new("dry");
    let (code, told, talk) = folder.run(&["line.toml", AXES[0], AXES[1], "--dry-run"]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    assert!(
        told.starts_with("3 points of \"A small line\" with seeds 1 to 3: 9 runs"),
        "{told}"
    );
    assert!(told.ends_with("  tcp.initial_window = 20\n"), "{told}");
    let (code, told, _) = folder.run(&["line.toml", AXES[0], AXES[1], "--dry-run", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&told).expect("one document");
    assert_eq!((code, &document["runs"]), (Some(0), &serde_json::json!(9)));
    assert_eq!(fs::read_dir(&folder.0).expect("it is there").count(), 1);
}

#[test]
fn a_grown_sweep_reuses_what_it_shares_and_another_is_refused() {
    let folder = Folder::new("grown");
    let sweep = |list: &str, more: &[&str]| {
        let mut arguments = vec!["line.toml", "--out", "o", "--set", list, "--json", "--quiet"];
        arguments.extend(more);
        folder.run(&arguments)
    };
    assert_eq!(sweep("tcp.initial_window=3,10", &[]).0, Some(0));
    let (code, told, _) = sweep("tcp.initial_window=3,10,20", &[]);
    assert_eq!(code, Some(2));
    assert!(told.contains("holds something else"), "{told}");
    let (code, told, _) = sweep("tcp.initial_window=3,10,20", &["--force"]);
    assert_eq!(code, Some(0), "{told}");
    let document: serde_json::Value = serde_json::from_str(&told).expect("one document");
    assert_eq!(
        (&document["timing"]["computed"], &document["timing"]["reused"]),
        (&3.into(), &6.into())
    );
}

#[test]
fn points_that_fail_are_told_and_the_rest_is_there() {
    let folder = Folder::new("failed");
    // 2.5 s of warm-up fit 3 s and not 1 s.
    let arguments = [
        "line.toml",
        "--out",
        "o",
        "--set",
        "run.warmup=100 ms,2500 ms",
        "--set",
        "run.duration=3 s,1 s",
    ];
    let (code, _, talk) = folder.run(&arguments);
    assert_eq!(code, Some(1), "{talk}");
    assert!(
        talk.contains("1 point failed and the data set lacks them; the first, run.warmup = 2500 ms, run.duration = 1 s: "),
        "{talk}"
    );
    let document: serde_json::Value =
        serde_json::from_slice(&folder.read("o/sweep.json")).expect("a document");
    assert_eq!(
        (&document["points"]["done"], &document["points"]["failed"]),
        (&3.into(), &1.into())
    );
    let page = String::from_utf8(folder.read("o/report.html")).expect("text");
    assert!(page.contains("Points that failed"));
}

#[test]
fn without_the_package_the_program_says_what_to_install() {
    let folder = Folder::new("no-ray");
    let empty = folder.0.join("empty");
    fs::create_dir_all(&empty).expect("it can be made");
    let output = folder
        .command(&["line.toml", AXES[0], AXES[1], "--out", "o", "--engine", "ray"])
        .env("PATH", &empty)
        .output()
        .expect("the program was built");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(talk.contains("pip install \".[ray]\""), "{talk}");
    // Nothing was lost by it: the folder is free for the same sweep.
    let (code, _, talk) = folder.run(&["line.toml", AXES[0], AXES[1], "--out", "o"]);
    assert_eq!(code, Some(0), "{talk}");
}

/// Keys of the whole entries of a journal, in the order of the file.
fn keys(journal: &[u8]) -> Vec<[u8; 16]> {
    let mut rest = journal.get(8..).unwrap_or_default();
    let mut keys = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (Some(key), Some(next)) = (behind.first_chunk::<16>(), behind.get(length + 8..)) else {
            break;
        };
        keys.push(*key);
        rest = next;
    }
    keys
}

#[test]
#[ignore = "long: 10,000 points"]
fn ten_thousand_points_killed_at_ten_random_moments_end_in_the_same_data_set() {
    const POINTS: usize = 10_000;
    let folder = Folder::new("ten-thousand");
    let with = |out: &'static str| {
        [
            "line.toml",
            "--out",
            out,
            "--seeds",
            "1",
            "--range",
            "network.bottleneck.rate=2 Mbit/s:20 Mbit/s:log:100",
            "--range",
            "network.bottleneck.delay=1 ms:50 ms:log:100",
        ]
    };
    let (code, _, talk) = folder.run(&with("whole"));
    assert_eq!(code, Some(0), "{talk}");
    println!(
        "{}",
        talk.lines()
            .find(|line| line.contains("computed"))
            .unwrap_or_default()
    );
    let whole = folder.read("whole/sweep.journal");
    assert_eq!(keys(&whole).len(), POINTS);
    let page = folder.read("whole/report.html").len();
    println!("journal {} bytes, report {page} bytes", whole.len());
    assert!(page < 3_000_000, "{page}");
    // Lengths of the journal at which it is killed: the kernel's random numbers would not be repeatable.
    let mut state = 2026_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let mut moments: Vec<u64> = (0..10).map(|_| (random() * whole.len() as f64) as u64).collect();
    moments.sort_unstable();
    for moment in moments {
        let mut child = folder
            .command(&with("cut"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program was built");
        let path = folder.0.join("cut/sweep.journal");
        let length = || fs::metadata(&path).map_or(0, |file| file.len());
        while length() < moment && child.try_wait().expect("it is our child").is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().expect("it is our child");
        child.wait().expect("it is our child");
        let mut there = keys(&folder.read("cut/sweep.journal"));
        let entries = there.len();
        there.sort_unstable();
        there.dedup();
        println!("killed at {entries} finished runs");
        assert_eq!(there.len(), entries, "a run was made twice");
    }
    let kept = keys(&folder.read("cut/sweep.journal")).len();
    let mut arguments = with("cut").to_vec();
    arguments.push("--json");
    let (code, told, talk) = folder.run(&arguments);
    assert_eq!(code, Some(0), "{talk}");
    let document: serde_json::Value = serde_json::from_str(&told).expect("one document");
    let count = |name: &str| document["timing"][name].as_u64().expect("a count") as usize;
    assert_eq!((count("computed"), count("reused")), (POINTS - kept, kept));
    for ((name, whole), (_, cut)) in data(&folder, "whole").iter().zip(&data(&folder, "cut")) {
        assert!(whole == cut, "{name} differs");
    }
    assert!(whole == folder.read("cut/sweep.journal"), "the journals differ");
}
