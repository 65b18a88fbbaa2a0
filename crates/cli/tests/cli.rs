//! The program's output, word for word. `TRYCMD=overwrite cargo test -p fleetfoot-cli` writes it anew: read the difference.

use std::path::Path;
use std::process::{Command, Output, Stdio};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/small.toml");

fn fleetfoot(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program was built")
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("fleetfoot-cli-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    folder
}

#[test]
fn output_is_as_recorded() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

/// Whatever `explain` says in words it says as a document too: mechanisms, experiments, profiles, examples, keys.
#[test]
fn everything_that_is_explained_is_explained_as_json() {
    let place = folder("explain");
    for name in [
        "rack-tlp",
        "drr",
        "own-ft-gaming",
        "linux",
        "home-line",
        "traffic",
        "min_rto",
    ] {
        let output = fleetfoot(&["explain", name, "--json"], &place);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {text}");
        assert!(
            text.starts_with('{') && text.contains(&format!("\"name\": \"{name}\"")),
            "{text}"
        );
    }
    std::fs::remove_dir_all(&place).expect("it was made here");
}

/// The paths that `--set` and the reference use are names, too; of a key the tables that the path means.
#[test]
fn a_path_of_a_key_is_explained() {
    let place = folder("paths");
    let explained = |name: &str| {
        let output = fleetfoot(&["explain", name], &place);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    };
    for (name, has, lacks) in [
        (
            "network.bottleneck.queue.limit",
            "`kind = \"codel\"`: queue limit",
            "Links",
        ),
        ("network.bottleneck.rate", "Links: speed", "cbr"),
        (
            "network.bottleneck.reverse.rate",
            "The way back of a link: speed",
            "cbr",
        ),
        ("run.warmup", "[run]: time", "Links"),
        ("traffic.pages.count", "`kind = \"bulk\"`: whole number", "Links"),
        ("link.uplink.delay", "[[link]]: ", "Links:"),
        ("traffic.pages.tcp.rdb", "rdb (switch of [tcp])", "Links"),
    ] {
        let text = explained(name).unwrap_or_else(|| panic!("{name} is unknown"));
        assert!(text.contains(has), "{name}: {text}");
        assert!(!text.contains(lacks), "{name}: {text}");
    }
    for name in [
        "network.bottleneck.queue.limits",
        "somewhere.limit",
        "run.limit",
        ".",
    ] {
        assert_eq!(explained(name), None, "{name}");
    }
    std::fs::remove_dir_all(&place).expect("it was made here");
}

/// Without a link that is named as the bottleneck there is none whose wait could be said.
#[test]
fn explain_says_that_a_scenario_names_no_bottleneck() {
    let place = folder("nobottleneck");
    let graph = "[network]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\n[[link]]\nname = \"line\"\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n[run]\nduration = \"1 s\"\n";
    for (named, says) in [
        ("", "name the link in run.bottleneck"),
        ("bottleneck = [\"line\"]\n", "line forward, drr"),
    ] {
        std::fs::write(place.join("graph.toml"), format!("{graph}{named}")).expect("it can be written");
        let output = fleetfoot(&["explain", "drr", "--scenario", "graph.toml"], &place);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(says), "{text}");
        assert_eq!(text.contains("Longest wait"), !named.is_empty(), "{text}");
    }
    std::fs::remove_dir_all(&place).expect("it was made here");
}

/// The bound is one of the link as it is: 100 packets of 1500 bytes, and the one being sent, at 10 Mbit/s.
#[test]
fn explain_counts_what_a_link_adds_to_packets() {
    let place = folder("longestwait");
    std::fs::write(place.join("pauses.trace"), "1\n2\n3000\n").expect("it can be written");
    let constant = "rate = \"10 Mbit/s\"";
    for (link, says) in [
        (constant.to_owned(), "10 Mbit/s: 121.2 ms"),
        // 101 times 1538 bytes; 101 times 1.2 + 1 ms; once 1.2 ms where they overlap, and 101 times 2.
        (format!("{constant}\nframing = \"38 B\""), ": 124.2704 ms"),
        (format!("{constant}\nprocessing = \"1 ms\""), ": 222.2 ms"),
        (
            format!("{constant}\nprocessing = \"2 ms\"\nprocessing_overlap = true"),
            ": 203.2 ms",
        ),
        (
            format!("{constant}\nbit_errors = 1e-5\narq = {{ retransmissions = 5, delay = \"2 ms\" }}"),
            ": no bound: the link sends again what bit errors damage",
        ),
        (
            String::from("rate = { trace = \"pauses.trace\" }"),
            ": no bound: the rate follows a trace, which may pause",
        ),
    ] {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\n[network.bottleneck]\n{link}\ndelay = \"1 ms\"\n\
             queue = {{ kind = \"drop-tail\", limit = \"100 packets\" }}\n[[traffic]]\nkind = \"bulk\"\n[run]\nduration = \"1 s\"\n"
        );
        std::fs::write(place.join("line.toml"), text).expect("it can be written");
        let output = fleetfoot(&["explain", "drop-tail", "--scenario", "line.toml"], &place);
        let text = String::from_utf8_lossy(&output.stdout);
        let trouble = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(says), "{says}\n{text}{trouble}");
    }
    std::fs::remove_dir_all(&place).expect("it was made here");
}

#[test]
fn equal_commands_give_equal_bytes_and_reuse_runs() {
    let place = folder("equal");
    let run = |out: &str, jobs: &str| {
        let output = fleetfoot(&["compare", SMALL, "--out", out, "--jobs", jobs], &place);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let first = run("one", "1");
    // Two variants with three seeds, and the same with jitter, since nothing in this scenario varies packet times; one at the rate of its command; both with
    // pings beside the traffic.
    assert!(first.contains("21 runs computed, 0 reused"), "{first}");
    run("two", "2");
    let read = |out: &str, name: &str| std::fs::read(place.join(out).join(name)).expect("it was written");
    for name in ["result.json", "runs.csv", "samples.csv", "scenario.toml"] {
        assert_eq!(read("one", name), read("two", name), "{name}");
    }
    let before = read("one", "result.json");
    let again = run("one", "2");
    assert!(again.contains("0 runs computed, 21 reused"), "{again}");
    assert_eq!(before, read("one", "result.json"));

    let other = fleetfoot(&["compare", SMALL, "--out", "one", "--seeds", "2"], &place);
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("holds something else"));
    let forced = fleetfoot(
        &["compare", SMALL, "--out", "one", "--seeds", "2", "--force"],
        &place,
    );
    assert!(forced.status.success());
    std::fs::remove_dir_all(&place).expect("it was made here");
}

#[test]
fn a_run_takes_settings() {
    let place = folder("settings");
    let flows = |arguments: &[&str]| {
        let output = fleetfoot(arguments, &place);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one document");
        document["variants"][0]["groups"][1]["flows"].as_u64()
    };
    assert_eq!(flows(&["run", SMALL, "--json"]), Some(1));
    let three = ["run", SMALL, "--json", "--set", "traffic.backup.count=3"];
    assert_eq!(flows(&three), Some(3));
    std::fs::remove_dir_all(&place).expect("it was made here");
}

#[test]
fn json_is_one_document_also_for_a_failure() {
    let place = folder("json");
    let good = fleetfoot(&["run", SMALL, "--json"], &place);
    let document: serde_json::Value = serde_json::from_slice(&good.stdout).expect("one document");
    assert_eq!(document["schema"], "1.3");
    for (arguments, code) in [
        (&["run", "absent.toml", "--json"][..], 2),
        (&["compare", "--bogus", "--json"][..], 2),
        (&["explain", "nothing-like-it", "--json"][..], 2),
    ] {
        let output = fleetfoot(arguments, &place);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one document");
        assert!(document["error"]["message"].is_string(), "{arguments:?}");
    }
    std::fs::remove_dir_all(&place).expect("it was made here");
}

/// Scenarios of which the first two can be compared and in the third nothing waits.
fn three(place: &Path) {
    let small = std::fs::read_to_string(SMALL).expect("it is here");
    let bulk = "title = \"only bulk\"\n[network]\nkind = \"dumbbell\"\nbottleneck = { rate = \"10 Mbit/s\", delay = \"6 ms\" }\n[[traffic]]\n\
                name = \"upload\"\nkind = \"bulk\"\n[run]\nduration = \"2 s\"\n";
    let titled = |title: &str| {
        let lines = small.lines().filter(|line| !line.starts_with("title"));
        format!("title = \"{title}\"\n{}\n", lines.collect::<Vec<_>>().join("\n"))
    };
    for (name, text) in [
        ("a.toml", titled("a")),
        ("b.toml", titled("b")),
        ("bulk.toml", bulk.to_owned()),
    ] {
        std::fs::write(place.join(name), text).expect("the temporary folder can be written");
    }
}

#[test]
fn of_several_comparisons_a_later_one_that_cannot_be_made_loses_none() {
    let place = folder("several");
    three(&place);
    let compare = |files: &[&str], json: bool| {
        let flags = ["--only", "codel", "--seeds", "2", "--budget", "0"];
        let arguments = std::iter::once("compare")
            .chain(files.iter().copied())
            .chain(flags);
        let arguments: Vec<&str> = arguments.chain(json.then_some("--json")).collect();
        let output = fleetfoot(&arguments, &place);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    // What can be known before the first run is said before it.
    let (code, shown, talk) = compare(&["a.toml", "bulk.toml"], false);
    assert!(
        code == Some(2) && shown.is_empty() && talk.contains("nothing here waits"),
        "{talk}"
    );
    assert!(!place.join("fleetfoot-out").exists(), "{talk}");
    // The folder of b is of something else.
    let (code, _, talk) = compare(&["b.toml"], false);
    assert_eq!(code, Some(0), "{talk}");
    let folders = std::fs::read_dir(place.join("fleetfoot-out")).expect("it was written");
    for folder in folders.flatten() {
        std::fs::write(folder.path().join("plan"), "another\n").expect("it can be written");
    }
    let (code, shown, talk) = compare(&["a.toml", "b.toml"], false);
    assert!(code == Some(2) && talk.contains("holds something else"), "{talk}");
    assert!(
        shown.contains("1: a") && shown.contains("codel") && !shown.contains("2: b"),
        "{shown}"
    );
    assert!(talk.contains("report.html"), "{talk}");
    let (code, shown, _) = compare(&["a.toml", "b.toml"], true);
    let document: serde_json::Value = serde_json::from_str(&shown).expect("one document");
    assert_eq!(code, Some(2));
    assert_eq!(
        document["comparisons"].as_array().map(Vec::len),
        Some(1),
        "{document}"
    );
    assert_eq!(document["comparisons"][0]["scenario"], "a");
    let said = document["error"]["message"].as_str();
    assert!(
        said.is_some_and(|said| said.contains("holds something else")),
        "{document}"
    );
    std::fs::remove_dir_all(&place).expect("it was made here");
}

#[test]
fn an_unwritable_folder_is_refused_before_anything_runs() {
    let place = folder("unwritable");
    std::fs::write(place.join("file"), "not a folder").expect("the temporary folder can be written");
    let output = fleetfoot(&["compare", SMALL, "--out", "file/below"], &place);
    assert_eq!(output.status.code(), Some(2));
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        talk.contains("cannot write to the output folder file/below"),
        "{talk}"
    );
    std::fs::remove_dir_all(&place).expect("it was made here");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(["list", "--schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn reproduce_prints_verdicts_keeps_runs_and_writes_its_report() {
    let place = folder("reproduce");
    let json = fleetfoot(
        &[
            "reproduce",
            "sp-tbuffer",
            "sp-state-age",
            "--json",
            "--out",
            "out",
        ],
        &place,
    );
    assert!(json.status.success(), "{}", String::from_utf8_lossy(&json.stderr));
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).expect("one JSON document");
    let experiments = document["experiments"].as_array().expect("a list");
    let ids: Vec<_> = experiments
        .iter()
        .map(|experiment| experiment["id"].clone())
        .collect();
    assert_eq!(ids, ["sp-tbuffer", "sp-state-age"]);
    assert_eq!(experiments[0]["verdict"], "reproduced");
    assert_eq!(experiments[0]["checks"][0]["measured"], 60e-6);
    let listed = fleetfoot(&["reproduce", "sp-tbuffer", "--list", "--json"], &place);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("one JSON document");
    assert!(listed["experiments"][0]["verdict"].is_null());
    let page = std::fs::read_to_string(place.join("out/reproduce.html")).expect("it was written");
    assert!(page.contains("id=\"sp-tbuffer\"") && page.contains("2 reproduced"));

    // A copy of an experiment, changed: the exit code is 0 whatever the verdict, and a second time nothing is run.
    let copy = "[network]\nkind = \"dumbbell\"\nbottleneck = { rate = \"1 Mbit/s\", delay = \"10 ms\" }\n\
                [[traffic]]\nname = \"one\"\nkind = \"transfer\"\nsize = \"10 kB\"\narrivals = { dist = \"poisson\", rate = \"5 per second\" }\n\
                [run]\nduration = \"2 s\"\nseeds = 12\n[figure]\nclaim = \"c\"\nsource = { document = \"own\", where = \"here\" }\n\
                [[check]]\nname = \"slow\"\nmetric = \"fct_s\"\ngroup = \"one\"\nexpect = \"> 100\"\n";
    std::fs::write(place.join("mine.toml"), copy).expect("the folder can be written");
    let run = || {
        let output = fleetfoot(&["reproduce", "mine.toml", "--full", "--out", "mine"], &place);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (first, talk) = run();
    assert!(
        first.contains("not-reproduced") && talk.contains("12 runs computed, 0 reused"),
        "{first}{talk}"
    );
    let (second, talk) = run();
    assert!(talk.contains("0 runs computed, 12 reused"), "{talk}");
    assert_eq!(first, second);
    // The same file is a scenario.
    let compared = fleetfoot(&["run", "mine.toml", "--out", "run"], &place);
    assert!(
        compared.status.success(),
        "{}",
        String::from_utf8_lossy(&compared.stderr)
    );
    std::fs::remove_dir_all(&place).expect("it was made here");
}

#[test]
fn a_pause_ages_the_window_of_new_cwv_in_a_run_as_the_user_starts_it() {
    // RFC 7661 4.4.2. A burst of 70 segments opens the window to 80 (10, 20 and 40 in three round trips); after a pause it is 80, 40, 20 or 10, and the
    // first acknowledgment of the next burst opens it by one where it was full.
    let place = folder("pauses");
    let mss = 1460_u64;
    for controller in ["reno", "cubic"] {
        for validation in ["newcwv", "newcwv-unpaced"] {
            for (pause_s, segments) in [(10, 80), (298, 80), (303, 41), (603, 21), (3600, 11), (7200, 11)] {
                let scenario = format!(
                    "title = \"pauses\"\n[network]\nkind = \"dumbbell\"\naccess = {{ rate = \"10 Gbit/s\", delay = \"0 ms\" }}\n\
                     bottleneck = {{ rate = \"10 Gbit/s\", delay = \"50 ms\" }}\n\
                     [tcp]\nprofile = \"linux-2015\"\nhystart = \"off\"\ndelayed_ack = \"off\"\nnagle = false\ntimestamps = false\n\
                     congestion_control = \"{controller}\"\nwindow_validation = \"{validation}\"\n\
                     [[traffic]]\nname = \"b\"\nkind = \"on-off\"\nburst = \"{} B\"\ninterval = \"{pause_s} s\"\nstart = \"1 s\"\n\
                     [run]\nduration = \"{} s\"\n",
                    70 * mss,
                    pause_s + 10,
                );
                std::fs::write(place.join("pauses.toml"), scenario).expect("the folder can be written");
                let run = fleetfoot(&["run", "pauses.toml", "--trace", "trace.csv", "--force"], &place);
                assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
                let trace = std::fs::read_to_string(place.join("trace.csv")).expect("it was written");
                let mut lines = trace.lines();
                let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
                let column = |name| header.iter().position(|other| *other == name).expect("a column");
                let (time, event, window) = (column("time_s"), column("event"), column("cwnd_bytes"));
                let cells = lines.map(|line| line.split(',').collect::<Vec<_>>());
                let rows: Vec<(f64, u64)> = cells
                    .filter(|cells| cells[event] == "ack")
                    .map(|cells| {
                        let number = |at: usize| cells[at].parse::<f64>().expect("a number");
                        (number(time), number(window) as u64)
                    })
                    .collect();
                let begin = f64::from(1 + pause_s);
                let before = rows
                    .iter()
                    .rev()
                    .find(|row| row.0 < begin)
                    .expect("the first burst");
                let after = rows.iter().find(|row| row.0 >= begin).expect("the second burst");
                assert_eq!(
                    (before.1, after.1),
                    (80 * mss, segments * mss),
                    "{controller}, {validation}, {pause_s} s"
                );
            }
        }
    }
    std::fs::remove_dir_all(&place).expect("it was made here");
}

#[test]
fn a_search_says_about_how_many_runs_it_makes() {
    let place = folder("search");
    let line = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/line.toml");
    let wanted = [
        "--control",
        "router",
        "--only-linux",
        "--seeds",
        "1",
        "--out",
        "found",
    ];
    let output = fleetfoot(&[&["recommend", line], &wanted[..]].concat(), &place);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let before = |words: &str| -> f64 {
        let (start, _) = told
            .split_once(words)
            .unwrap_or_else(|| panic!("{words}: {told}"));
        let number = start.rsplit(char::is_whitespace).next().expect("there is a word");
        number.parse().unwrap_or_else(|_| panic!("{number}: {told}"))
    };
    assert!(
        told.starts_with("Searching for one setting to try first in \"A small line\": some "),
        "{told}"
    );
    let share = before(" runs computed") / before(" runs on ");
    assert!((0.75..=1.25).contains(&share), "{told}");
    std::fs::remove_dir_all(&place).expect("it was written");
}
