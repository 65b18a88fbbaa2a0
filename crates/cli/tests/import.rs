//! `import` and `compare CAPTURE` as a user sees them: good captures, cut off and damaged ones, other files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Linux over a relay with 40 ms and 20 Mbit/s, captured at the client: three connections with two exchanges each.
const PAGES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lab/tests/captures/pages-at-client.pcap"
);

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fleetfoot-import-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
            .args(arguments)
            .current_dir(&self.0)
            .output()
            .expect("the program was built");
        outcome(&output)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("a temporary file can be written");
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the temporary folder can be read");
        let mut names: Vec<String> = entries
            .map(|entry| {
                let entry = entry.expect("an entry");
                entry.file_name().to_string_lossy().into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the temporary folder can be removed");
    }
}

/// Exit code, standard output, standard error.
fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn pages() -> Vec<u8> {
    std::fs::read(PAGES).expect("the capture is checked in")
}

#[test]
fn a_capture_becomes_a_scenario_that_runs() {
    let folder = Folder::new("good");
    let (code, summary, talk) = folder.run(&["import", PAGES]);
    assert_eq!(code, Some(0), "{talk}");
    for line in [
        "Taken                 at or near the hosts that opened",
        "Connections           3 with data, 0 of them concurrent, opened by 1 host",
        "RTT, handshakes",
        "Exchange, recorded",
        "Exchange, replayed",
        "The fit is close.",
    ] {
        assert!(summary.contains(line), "{line} in {summary}");
    }
    assert!(
        talk.contains("Next: fleetfoot compare pages-at-client.toml"),
        "{talk}"
    );
    assert_eq!(folder.names(), ["pages-at-client.cvec", "pages-at-client.toml"]);
    let vectors = std::fs::read_to_string(folder.0.join("pages-at-client.cvec")).expect("vectors");
    assert_eq!(vectors.matches("SEQ ").count(), 3);
    assert!(!vectors.contains("10.9.0."), "no address");

    let (code, table, talk) = folder.run(&["run", "pages-at-client.toml", "--seeds", "1"]);
    assert_eq!(code, Some(0), "{talk}");
    assert!(table.contains("recorded"), "{table}");

    // What exists is not overwritten.
    let (code, _, talk) = folder.run(&["import", PAGES]);
    assert_eq!(code, Some(2));
    assert_eq!(
        talk,
        "error: pages-at-client.toml exists: give another name with --out FILE.toml, or --force\n"
    );
    let (code, json, talk) = folder.run(&["import", PAGES, "--force", "--json", "--fit", "never"]);
    assert_eq!(code, Some(0), "{talk}");
    let document: serde_json::Value = serde_json::from_str(&json).expect("one document");
    assert_eq!(document["summary"]["connections"], 3);
    assert!(document["fit"].is_null(), "it was not wanted");
    assert!(document["vectors_back"].is_null(), "only one side opened");
}

/// Hosts on the left upload, hosts on the right too.
const TWO_WAY: &str = r#"
title = "Both ways"
[network]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "10 Mbit/s", delay = "10 ms" }
[[traffic]]
name = "there"
kind = "transfer"
size = "20 kB"
arrivals = { dist = "poisson", rate = "4 per second" }
count = 12
[[traffic]]
name = "back"
kind = "transfer"
direction = "up"
size = "50 kB"
arrivals = { dist = "poisson", rate = "2 per second" }
count = 6
[run]
duration = "6 s"
seeds = 1
"#;

#[test]
fn a_capture_at_one_end_of_a_link_has_every_packet_once() {
    let folder = Folder::new("tap");
    folder.write("ways.toml", TWO_WAY.as_bytes());
    for (at, out) in [
        ("bottleneck", "near.pcapng"),
        ("bottleneck:far", "far.pcapng"),
        ("access-0:near", "host.pcapng"),
    ] {
        let (code, _, talk) = folder.run(&["run", "ways.toml", "--pcap", out, "--pcap-at", at]);
        assert_eq!(code, Some(0), "{talk}");
        let name = at.split(':').next().unwrap_or_default();
        let bytes = std::fs::read(folder.0.join(out)).expect("a capture");
        let interface = format!("{name}-{}", if at.ends_with("far") { "far" } else { "near" });
        assert!(
            bytes
                .windows(interface.len())
                .any(|window| window == interface.as_bytes()),
            "{interface}"
        );
        if name != "bottleneck" {
            continue; // links of several hosts
        }
        let (code, json, talk) = folder.run(&["import", out, "--json", "--fit", "never"]);
        assert_eq!(code, Some(0), "{talk}");
        let document: serde_json::Value = serde_json::from_str(&json).expect("one document");
        assert_eq!(document["summary"]["connections"], 18, "{at}");
        assert!(
            !json.contains("captured twice"),
            "every packet of {at} is there once: {json}"
        );
    }
    let both = ["run", "ways.toml", "--pcap", "both.pcapng"];
    let (code, _, talk) = folder.run(&both);
    assert_eq!(code, Some(0), "{talk}");
    let (_, json, _) = folder.run(&["import", "both.pcapng", "--json", "--fit", "never"]);
    assert!(json.contains("captured twice"), "{json}");

    let (code, _, talk) = folder.run(&["run", "ways.toml", "--pcap", "x.pcapng", "--pcap-at", "line"]);
    assert_eq!(code, Some(2));
    assert!(
        talk.contains("there is no link called `line`") && talk.contains("bottleneck"),
        "{talk}"
    );
    assert!(!folder.names().contains(&String::from("x.pcapng")), "{talk}");
}

#[test]
fn what_the_other_side_opened_gets_a_file_of_its_own() {
    let folder = Folder::new("two-way");
    folder.write("ways.toml", TWO_WAY.as_bytes());
    let (code, _, talk) = folder.run(&["run", "ways.toml", "--pcap", "ways.pcapng"]);
    assert_eq!(code, Some(0), "{talk}");
    let (code, summary, talk) = folder.run(&["import", "ways.pcapng", "--out", "again.toml"]);
    assert_eq!(code, Some(0), "{talk}");
    assert!(
        summary.contains("18 with data")
            && summary.contains("From the other side")
            && !summary.contains("one side"),
        "{summary}"
    );
    assert!(summary.contains("The fit is close"), "{summary}");
    assert!(
        talk.contains("Written: again.toml, again.cvec and again-back.cvec\n"),
        "{talk}"
    );
    let said = |name: &str| {
        let text = std::fs::read_to_string(folder.0.join(name)).expect("vectors");
        ["> 20000\n", "> 50000\n"].map(|unit| text.matches(unit).count())
    };
    let mut both = [said("again.cvec"), said("again-back.cvec")];
    both.sort_unstable();
    assert_eq!(both, [[0, 6], [12, 0]]);
    let (code, table, talk) = folder.run(&["run", "again.toml", "--seeds", "1"]);
    assert_eq!(code, Some(0), "{talk}");
    assert!(table.contains("recorded-back"), "{table}");

    // Neither of the files is overwritten.
    for name in ["again.toml", "again.cvec"] {
        std::fs::remove_file(folder.0.join(name)).expect("it was written");
    }
    let (code, _, talk) = folder.run(&["import", "ways.pcapng", "--out", "again.toml"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        talk,
        "error: again-back.cvec exists: give another name with --out FILE.toml, or --force\n"
    );
    let arguments = [
        "import",
        "ways.pcapng",
        "--out",
        "again.toml",
        "--force",
        "--fit",
        "never",
        "--json",
    ];
    let (code, json, talk) = folder.run(&arguments);
    assert_eq!(code, Some(0), "{talk}");
    let document: serde_json::Value = serde_json::from_str(&json).expect("one document");
    assert_eq!(document["vectors_back"], "again-back.cvec");
    assert_eq!(document["summary"]["back_openers"], 2);
}

#[test]
fn a_capture_comes_through_a_pipe() {
    use std::io::Write;
    let folder = Folder::new("pipe");
    let mut child = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(["import", "-", "--out", "piped.toml", "--fit", "never"])
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&pages()).expect("it reads");
    drop(input);
    let (code, summary, talk) = outcome(&child.wait_with_output().expect("it ends"));
    assert_eq!(code, Some(0), "{talk}");
    assert!(summary.contains("3 with data"), "{summary}");
    assert_eq!(folder.names(), ["piped.cvec", "piped.toml"]);
}

#[test]
fn what_comes_before_the_end_or_the_damage_is_imported() {
    let folder = Folder::new("damaged");
    let good = pages();
    folder.write("cut.pcap", &good[..good.len() - 10]);
    let (code, summary, talk) = folder.run(&["import", "cut.pcap", "--fit", "never"]);
    assert_eq!(code, Some(0), "{talk}");
    assert!(summary.contains("3 with data"), "{summary}");
    let warning = talk.lines().next().unwrap_or_default();
    assert!(
        warning.starts_with("warning: cut.pcap was read up to packet ")
            && warning.ends_with(
                "the file ends within it: 72 of 82 bytes are there. What came before is imported."
            ),
        "{talk}"
    );

    // Two thirds are good; then a length that no packet has.
    let mut at = 24;
    while at < good.len() * 2 / 3 {
        let length = good[at + 8..at + 12].try_into().expect("four bytes");
        at += 16 + u32::from_le_bytes(length) as usize;
    }
    let mut damaged = good.clone();
    damaged[at + 8..at + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    folder.write("damaged.pcap", &damaged);
    let (code, summary, talk) = folder.run(&["import", "damaged.pcap", "--fit", "never"]);
    assert_eq!(code, Some(0), "{talk}");
    assert!(summary.contains("with data"), "{summary}");
    assert!(talk.contains(&format!("at byte {at}: ")), "{talk}");

    // Nothing usable came before.
    folder.write("head.pcap", &good[..30]);
    let (code, summary, talk) = folder.run(&["import", "head.pcap"]);
    assert_eq!((code, summary.as_str()), (Some(2), ""), "{talk}");
    assert!(
        talk.starts_with("error: head.pcap: no TCP connection with data is in its 0 packets; it ended at"),
        "{talk}"
    );
    assert!(
        !folder
            .names()
            .iter()
            .any(|name| name.starts_with("head.") && name != "head.pcap")
    );
}

#[test]
fn other_files_are_refused_in_one_sentence() {
    let folder = Folder::new("text");
    folder.write("notes.txt", b"Dear diary,\ntoday the line was slow.\n");
    folder.write("empty.pcap", b"");
    for (arguments, message) in [
        (
            &["import", "notes.txt"][..],
            "error: notes.txt: it is neither pcap nor pcapng, nor a file of connection vectors\n",
        ),
        (&["import", "empty.pcap"], "error: empty.pcap: it is empty\n"),
        (
            &["import", "absent.pcap"],
            "error: cannot read absent.pcap: there is no such file\n",
        ),
        (
            &["import", "notes.txt", "-o", "v2.cvec"],
            "error: --out names the scenario to write, not a file of .cvec: --out v2.toml; the connection vectors are written beside it, as v2.cvec\n",
        ),
        (
            &["import", "a.cvec", "--out", "a.toml"],
            "error: a.cvec would be overwritten: give another name with --out FILE.toml\n",
        ),
    ] {
        let (code, summary, talk) = folder.run(arguments);
        assert_eq!((code, summary.as_str(), talk.as_str()), (Some(2), "", message));
    }
    assert_eq!(folder.names(), ["empty.pcap", "notes.txt"]);
}

#[test]
fn compare_says_what_a_file_is_that_is_no_scenario() {
    let folder = Folder::new("others");
    let good = pages();
    folder.write("notes.txt", b"Dear diary,\ntoday the line was slow.\n");
    folder.write("table.csv", b"start,source,destination,bytes\n0,a,b,7\n");
    folder.write("result.json", b"{ \"schema\": \"1.0\" }");
    folder.write("capture.pcap.gz", &[0x1f, 0x8b, 8, 0, 0, 0]);
    folder.write("short.pcap", &good[..3]);
    folder.write("head.pcap", &good[..20]);
    folder.write("noise.bin", &[7, 0, 9, 200, 0]);
    folder.write("broken.toml", b"[network\nkind = 7\n");
    for (name, what) in [
        (
            "notes.txt",
            "it is text, but no scenario. What is taken: a scenario (TOML",
        ),
        ("table.csv", "it looks like a table (CSV). What is taken"),
        ("result.json", "it looks like JSON. What is taken"),
        (
            "capture.pcap.gz",
            "it is compressed: `gzip -dc capture.pcap.gz | fleetfoot import -",
        ),
        (
            "short.pcap",
            "it begins like a capture, but is cut off within its header. What",
        ),
        (
            "head.pcap",
            "it begins like a capture, but is cut off within its header. What",
        ),
        ("noise.bin", "it is no text. What is taken"),
    ] {
        let (code, _, talk) = folder.run(&["compare", name]);
        assert_eq!(code, Some(2), "{name}: {talk}");
        assert!(talk.starts_with(&format!("error: {name}: {what}")), "{talk}");
        assert!(!talk.contains("TOML:"), "{talk}");
    }
    // What is meant to be a scenario keeps its place and reason.
    let (code, _, talk) = folder.run(&["compare", "broken.toml"]);
    assert_eq!(code, Some(2));
    assert!(
        talk.contains("broken.toml") && talk.contains("not TOML"),
        "{talk}"
    );
    let (code, _, talk) = folder.run(&["run", PAGES]);
    assert_eq!(code, Some(2));
    assert!(
        talk.contains("it is a capture, no scenario: `fleetfoot import "),
        "{talk}"
    );
}

#[test]
fn a_scenario_comes_through_a_pipe_and_a_capture_is_explained() {
    use std::io::Write;
    let folder = Folder::new("pipes");
    let scenario = "[network]\nkind = \"dumbbell\"\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }\n\
                    [[traffic]]\nname = \"one\"\nkind = \"bulk\"\nlatency_sensitive = true\n[run]\nduration = \"1 s\"\nseeds = 1\n";
    for (input, good) in [(scenario.as_bytes(), true), (&pages()[..], false)] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
            .args(["compare", "/dev/stdin", "--out", "compared"])
            .current_dir(&folder.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program was built");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(input).expect("it reads");
        drop(pipe);
        let (code, _, talk) = outcome(&child.wait_with_output().expect("it ends"));
        assert_eq!(code, Some(if good { 0 } else { 2 }), "{talk}");
        assert!(
            good || talk.contains("fleetfoot import - --out NAME.toml"),
            "{talk}"
        );
    }
}

/// From the example of the ns-2 manual.
const TMIX: &str = "\
SEQ 6851 1 21217 555382
w 64800 6432
r 1176194
l 0.000000 0.000000
> 245
t 51257
< 510
t 6304943
SEQ 200000 2 3 1
w 4096 8192
r 40000
l 0.01 0.02
> 300
t 1000
< 20000
t 50000
> 300
t 1000
< 20000
";

#[test]
fn connection_vectors_of_tmix_become_a_scenario() {
    let folder = Folder::new("tmix");
    folder.write("sample.cvec", TMIX.as_bytes());
    let (code, summary, talk) = folder.run(&["import", "sample.cvec", "--out", "mixed.toml"]);
    assert_eq!(code, Some(0), "{talk}");
    assert!(summary.contains("2 with data"), "{summary}");
    assert!(!summary.contains("Fit"), "no times are known: {summary}");
    assert!(!summary.contains("To know"), "{summary}");
    let scenario = std::fs::read_to_string(folder.0.join("mixed.toml")).expect("a scenario");
    assert!(
        scenario.contains("windows = true") && scenario.contains("losses = true"),
        "{scenario}"
    );
    let (code, table, talk) = folder.run(&["run", "mixed.toml", "--seeds", "1"]);
    assert_eq!(code, Some(0), "{talk}{table}");

    // A count that is not that of the units is reported with its line.
    folder.write(
        "counts.cvec",
        TMIX.replace("SEQ 200000 2", "SEQ 200000 7").as_bytes(),
    );
    let (code, summary, talk) = folder.run(&["import", "counts.cvec", "--out", "counted.toml"]);
    assert_eq!(code, Some(0), "{talk}");
    assert!(
        summary.contains("1  connection announces another number in its first line than there is (line 9: 7 exchanges announced, 2 there)"),
        "{summary}"
    );

    folder.write("tmix.txt", TMIX.replace("t 51257", "t soon").as_bytes());
    let (code, _, talk) = folder.run(&["import", "tmix.txt", "--out", "wrong.toml"]);
    assert_eq!(code, Some(2));
    assert!(talk.starts_with("error: tmix.txt: line 6: "), "{talk}");
}

#[test]
fn compare_takes_a_capture() {
    let folder = Folder::new("compare");
    let arguments = ["compare", PAGES, "--seeds", "1", "--out", "compared"];
    let (code, table, talk) = folder.run(&arguments);
    assert_eq!(code, Some(0), "{talk}");
    assert!(
        talk.contains("The scenario made of it: fleetfoot-out/import-pages-at-client/pages-at-client.toml"),
        "{talk}"
    );
    assert!(talk.contains("3 with data"), "{talk}");
    assert!(table.contains("recorded"), "{table}");
    assert!(folder.0.join("compared/result.json").exists());
    assert!(
        Path::new(&folder.0)
            .join("fleetfoot-out/import-pages-at-client/pages-at-client.cvec")
            .exists()
    );
    // A second time the same scenario is written anew, and its runs are used again.
    let (code, again, talk) = folder.run(&arguments);
    assert_eq!((code, again), (Some(0), table), "{talk}");
    assert!(talk.contains("0 runs computed"), "{talk}");
    // What somebody changed stays.
    let mine = folder
        .0
        .join("fleetfoot-out/import-pages-at-client/pages-at-client.toml");
    let changed = std::fs::read_to_string(&mine).expect("it was written") + "# mine\n";
    std::fs::write(&mine, &changed).expect("it can be written");
    let (code, _, talk) = folder.run(&arguments);
    assert_eq!(code, Some(0), "{talk}");
    assert!(
        talk.contains("import-pages-at-client-2/pages-at-client.toml"),
        "{talk}"
    );
    assert_eq!(std::fs::read_to_string(&mine).ok(), Some(changed));
}

#[test]
fn any_file_name_makes_a_scenario() {
    let folder = Folder::new("names");
    for name in ["a\"b.pcap", "a\\b.pcap", "a\u{7f}\tb.pcap"] {
        std::fs::copy(PAGES, folder.0.join(name)).expect("a capture can be copied");
        let (code, said, talk) = folder.run(&["import", name]);
        assert_eq!(code, Some(0), "{name}: {said}{talk}");
    }
}
