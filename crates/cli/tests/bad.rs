//! Bad input: hundreds of wrong files, flags and places to write to, from the tables in `tests/bad`. Each ends with exit code 2 and
//! one message, leaves every file as it was and nothing new behind, and stays below a limit of memory that the system enforces.
//!
//! Tables hold a case on each line and, after ` => `, the first line of its message, or its begin and `...`. `FLEETFOOT_BLESS=1`
//! writes those anew that differ: read the difference.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const TABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bad");

/// Address space that the program may take (kB): memory that is in RAM is less than that.
const MOST_KB: u32 = 1_000_000;

/// A line of a table.
#[derive(Clone, Debug)]
struct Case {
    section: String,
    /// What is wrong.
    what: String,
    /// First line of the message.
    message: String,
}

#[test]
fn mistakes_in_a_scenario() {
    check("edits.txt", |case, folder| {
        let good = read(&folder.join("good.toml"));
        let text = match (case.what.strip_prefix("+ "), case.what.split_once(" -> ")) {
            (Some(added), _) => [good, unescaped(added)].concat(),
            (None, Some((old, new))) => replaced(&good, &unescaped(old), &unescaped(new), &case.what),
            (None, None) => panic!("no ` -> ` in {}", case.what),
        };
        write(&folder.join("bad.toml"), &text);
        vec!["run", "bad.toml"].into_iter().map(String::from).collect()
    });
}

#[test]
fn contents_that_are_something_else() {
    check("contents.txt", |case, folder| {
        let content = content(&case.what);
        let (name, words): (&str, &str) = match case.section.as_str() {
            "run FLOWS" => ("bad.csv", "run flows-bad.toml"),
            "run TRACE" => ("bad.trace", "run traced-bad.toml"),
            "drill FILE" => ("bad.pkt", "drill bad.pkt"),
            "import FILE" => ("bad.pcap", "import bad.pcap --out new.toml"),
            "run FILE" => ("bad.toml", "run bad.toml"),
            "compare FILE" => ("bad.toml", "compare bad.toml --out new"),
            "explain codel --scenario FILE" => ("bad.toml", "explain codel --scenario bad.toml"),
            "reproduce FILE" => ("bad.toml", "reproduce bad.toml --out new"),
            other => panic!("no section {other}"),
        };
        write(&folder.join(name), &content);
        words.split(' ').map(String::from).collect()
    });
}

#[test]
fn commands_that_cannot_be_followed() {
    check("commands.txt", |case, _| words(&case.what));
}

impl Case {
    /// Whether the message is the expected one; what ends with `...` goes on in whatever words.
    fn expects(&self, message: &str) -> bool {
        match self.message.strip_suffix("...") {
            Some(begin) => message.starts_with(begin),
            None => self.message == message,
        }
    }
}

/// Makes and runs every case of a table, on all cores.
fn check(table: &str, make: impl Fn(&Case, &Path) -> Vec<String> + Sync) {
    let path = Path::new(TABLES).join(table);
    let text = fs::read_to_string(&path).expect("the table is there");
    let mut cases: Vec<(usize, Case)> = cases(&text);
    if cfg!(feature = "parquet") {
        cases.retain(|(_, case)| !case.message.contains("built without Parquet"));
    }
    let next = AtomicUsize::new(0);
    let (faults, seen) = (Mutex::new(String::new()), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (next, cases, make, faults, seen) = (&next, &cases, &make, &faults, &seen);
            scope.spawn(move || {
                let name = format!("fleetfoot-bad-{table}-{thread}-{}", std::process::id());
                let folder = std::env::temp_dir().join(name);
                lay_out(&folder);
                while let Some((line, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let words = make(case, &folder);
                    let before = snapshot(&folder);
                    let (message, faulty) = run(&folder, &words);
                    let mut faulty = faulty;
                    if snapshot(&folder) != before {
                        faulty.push_str("  files were changed or left behind\n");
                        fs::remove_dir_all(&folder).expect("it was made here");
                        lay_out(&folder);
                    }
                    let expected = case.expects(&message);
                    if !case.message.is_empty() && !expected {
                        let _ = writeln!(faulty, "  expected: {}\n  printed:  {message}", case.message);
                    }
                    if !expected {
                        seen.lock().expect("no panic").insert(*line, message);
                    }
                    if !faulty.is_empty() {
                        let place = format!("{table}:{}: {}\n", line + 1, case.what);
                        faults.lock().expect("no panic").push_str(&(place + &faulty));
                    }
                }
                fs::remove_dir_all(&folder).expect("it was made here");
            });
        }
    });
    let faults = faults.into_inner().expect("no panic");
    if std::env::var_os("FLEETFOOT_BLESS").is_some() {
        let seen = seen.into_inner().expect("no panic");
        let line = |(number, line): (usize, &str)| match seen.get(&number) {
            Some(message) => format!("{} => {message}\n", line.split(" => ").next().unwrap_or("")),
            None => format!("{line}\n"),
        };
        let blessed: String = text.lines().enumerate().map(line).collect();
        fs::write(&path, blessed).expect("the table can be written");
    }
    assert!(faults.is_empty(), "\n{faults}");
    let without: Vec<_> = cases.iter().filter(|(_, case)| case.message.is_empty()).collect();
    assert!(
        without.is_empty() || std::env::var_os("FLEETFOOT_BLESS").is_some(),
        "no message stands beside {without:?}"
    );
}

/// The first line of the message, without `error: `, and what is wrong with how the program ended.
fn run(folder: &Path, words: &[String]) -> (String, String) {
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MOST_KB} && exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(words)
        .current_dir(folder)
        .env_remove("FLEETFOOT_PACKETDRILL")
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .expect("the program was built");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut wrong = String::new();
    let mut note = |what: &str| {
        let _ = writeln!(
            wrong,
            "  {what}\n    {}",
            message.trim_end().replace('\n', "\n    ")
        );
    };
    if output.status.code() != Some(2) {
        note(&format!("ended with {} instead of 2", output.status));
    }
    if !output.stdout.is_empty() && words.first().is_some_and(|verb| verb != "drill") {
        note("something stands on the standard output");
    }
    if message.contains("panicked") || message.contains("backtrace") {
        note("it panicked");
    }
    if message.chars().any(|c| c.is_control() && c != '\n') {
        note("control characters reach the terminal");
    }
    let messages = message.lines().filter(|line| line.starts_with("error")).count();
    if messages > 1 || message.trim().is_empty() {
        note(&format!("{messages} messages"));
    }
    let first = message
        .lines()
        .find(|line| line.starts_with("error"))
        .or(message.lines().next());
    let first = first.unwrap_or("").trim_start_matches("error: ");
    (first.trim_end().to_owned(), wrong)
}

/// The cases of a table with the numbers of their lines.
fn cases(text: &str) -> Vec<(usize, Case)> {
    let mut section = String::new();
    let mut cases = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let header = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        if line.starts_with("# ") && number < 8 {
            continue;
        }
        match header.filter(|name| SECTIONS.contains(name)) {
            Some(name) => name.clone_into(&mut section),
            None => {
                let (what, message) = line.split_once(" => ").unwrap_or((line, ""));
                cases.push((
                    number,
                    Case {
                        section: section.clone(),
                        what: what.to_owned(),
                        message: message.to_owned(),
                    },
                ));
            }
        }
    }
    cases
}

/// Headings of all tables.
const SECTIONS: &[&str] = &[
    "syntax",
    "unknown keys and names",
    "duplicates and missing keys",
    "types",
    "units",
    "ranges",
    "more than memory holds",
    "files that a scenario names",
    "run FILE",
    "run FLOWS",
    "run TRACE",
    "drill FILE",
    "import FILE",
    "compare FILE",
    "explain codel --scenario FILE",
    "reproduce FILE",
    "usage",
    "files that cannot be read",
    "places that cannot be written",
];

/// The files that cases are made with.
fn lay_out(folder: &Path) {
    let _ = fs::remove_dir_all(folder); // of an earlier process with this number
    for inner in ["folder", "folder.toml", "empty-folder", "out"] {
        fs::create_dir_all(folder.join(inner)).expect("the temporary folder can be written");
    }
    for name in ["good.toml", "good.csv", "good.trace", "good.pkt"] {
        fs::copy(Path::new(TABLES).join(name), folder.join(name)).expect("it can be copied");
    }
    let good = read(&folder.join("good.toml"));
    let listed = |file: &str| {
        let flows = format!("kind = \"flows\"\nfile = \"{file}\"\n");
        replaced(&good, b"kind = \"bulk\"\ncount = 1\n", flows.as_bytes(), file)
    };
    let traced = |file: &str| {
        let rate = format!("rate = {{ trace = \"{file}\" }}");
        replaced(&good, b"rate = \"10 Mbit/s\"", rate.as_bytes(), file)
    };
    let extending = |file: &str| format!("extends = \"{file}\"\n").into_bytes();
    for (name, text) in [
        ("flows.toml", listed("good.csv")),
        ("flows-bad.toml", listed("bad.csv")),
        ("traced.toml", traced("good.trace")),
        ("traced-bad.toml", traced("bad.trace")),
        ("cycle-a.toml", extending("cycle-b.toml")),
        ("cycle-b.toml", extending("cycle-a.toml")),
        ("out/scenario.toml", good.clone()),
        ("old.txt", b"somebody else's\n".to_vec()),
        ("folder/other", b"somebody else's\n".to_vec()),
        ("empty", Vec::new()),
        ("binary", (0..=255).collect()),
        ("good.pcap", capture()),
    ] {
        write(&folder.join(name), &text);
    }
    for (name, target) in [("link.toml", "good.toml"), ("dangling", "none"), ("loop", "loop")] {
        symlink(target, folder.join(name)).expect("a link can be made");
    }
    fs::hard_link(folder.join("good.toml"), folder.join("hard.toml")).expect("a second name can be given");
    let made = Command::new("mkfifo").arg(folder.join("fifo")).status();
    assert!(made.expect("mkfifo is there").success());
}

/// A capture of one packet.
fn capture() -> Vec<u8> {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    bytes.extend([0; 8]);
    bytes.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    bytes.extend([0; 8]);
    bytes.extend([60, 0, 0, 0, 60, 0, 0, 0]);
    bytes.extend([0; 60]);
    bytes
}

/// Everything in a folder: files with what they hold, links with where they lead.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("it is there"));
        if kind.is_dir() {
            found.extend(snapshot(&path));
            found.insert(path, b"folder".to_vec());
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).expect("it is a link");
            found.insert(path, target.to_string_lossy().into_owned().into_bytes());
        } else if kind.is_file() {
            let text = read(&path);
            found.insert(path, text);
        } else {
            found.insert(path, b"special".to_vec());
        }
    }
    found
}

/// What a line of `contents.txt` stands for.
fn content(what: &str) -> Vec<u8> {
    match what.rsplit_once('*') {
        Some((text, count)) if !count.is_empty() && count.bytes().all(|c| c.is_ascii_digit()) => {
            unescaped(text).repeat(count.parse().expect("a number"))
        }
        _ => unescaped(what),
    }
}

/// Text with `\n`, `\\` and `\x00` to `\xff`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        match rest {
            [b'n', tail @ ..] => {
                bytes.push(b'\n');
                rest = tail;
            }
            [b'x', high, low, tail @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("two digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
                rest = tail;
            }
            [other, tail @ ..] => {
                bytes.push(*other);
                rest = tail;
            }
            [] => bytes.push(b'\\'),
        }
    }
    bytes
}

/// Words of a command line; `""` is an empty one.
fn words(line: &str) -> Vec<String> {
    let words = line.split(' ').filter(|word| !word.is_empty());
    words
        .map(|word| {
            if word == "\"\"" {
                String::new()
            } else {
                word.to_owned()
            }
        })
        .collect()
}

fn replaced(text: &[u8], old: &[u8], new: &[u8], what: &str) -> Vec<u8> {
    let at = text.windows(old.len()).position(|window| window == old);
    let at = at.unwrap_or_else(|| panic!("good.toml has no such text: {what}"));
    [&text[..at], new, &text[at + old.len()..]].concat()
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("it is there")
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("the temporary folder can be written");
}
