//! `fleetfoot drill`: packetdrill scripts against our TCP in virtual time, or against the kernel's.

use crate::failure::Failure;
use crate::output::{Common, counted, print};
use crate::target::Targets;
use clap::{Args, ValueEnum};
use fleetfoot_core::tcp::Profile;
use fleetfoot_drill::capture;
use fleetfoot_drill::exactness::{Exactness, Excluded};
use fleetfoot_drill::folder::{Item, Manifest, Options, Outcome, Stack, check, find, places, play_all};
use fleetfoot_drill::{Definitions, Verdict};
use fleetfoot_lab::input;
use fleetfoot_lab::scenario::set_switch;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read as _;
use std::path::PathBuf;

/// Flags of `drill`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Scripts, or folders of them (`*.pkt`). Default: the folder in $FLEETFOOT_PACKETDRILL, else `conformance`, that of this project.
    /// Scripts in folders called nplab, freebsd and gvisor are played as those collections ask for.
    #[arg(value_name = "SCRIPT|FOLDER")]
    paths: Vec<PathBuf>,
    /// A table of verdicts by topic, and one line on each script that does not pass.
    #[arg(long)]
    report: bool,
    /// Replace the tolerance of every time, microseconds; 0 also lists the lines that miss their time.
    #[arg(long, value_name = "USECS")]
    tolerance: Option<u64>,
    /// Fail on segments that no line expects.
    #[arg(long)]
    no_extra: bool,
    /// Write a capture of each script into this folder.
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// The profile of our TCP.
    #[arg(long, value_name = "NAME", default_value = "linux")]
    profile: String,
    /// The stack under test.
    #[arg(long, value_name = "STACK", value_enum, default_value_t = Backend::Fleetfoot)]
    backend: Backend,
    /// Replace a word in the scripts; also what `#ifdef` asks for.
    #[arg(long, short = 'D', value_name = "NAME=VALUE")]
    define: Vec<String>,
}

/// The stack under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// Our TCP in virtual time.
    Fleetfoot,
    /// The kernel's TCP, each script in a network namespace of its own (needs root); in real time.
    Linux,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let options = options(arguments)?;
    let paths = if arguments.paths.is_empty() {
        vec![default_folder()?]
    } else {
        arguments.paths.clone()
    };
    let items = find(&paths).map_err(|error| {
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        Failure::usage(format!("cannot read {}: {error}", names.join(", ")))
    })?;
    if items.is_empty() {
        return Err(Failure::usage("no script (*.pkt) there"));
    }
    for item in items.iter().filter(|item| paths.contains(&item.path)) {
        check(item, &read(item)?, &options.definitions).map_err(Failure::usage)?;
    }
    let mut targets = Targets::reading([], true);
    if let Some(folder) = arguments.pcap.as_ref().filter(|folder| !folder.is_dir()) {
        if folder.exists() {
            return Err(Failure::usage(format!(
                "--pcap {}: it is no folder",
                folder.display()
            )));
        }
        targets.file("--pcap", folder)?; // where the folder is made
    }
    for (place, count) in places(&items) {
        common.say(&format!(
            "{} played by the rules of {place}",
            counted(count, "script")
        ));
    }
    let outcomes = play_all(&items, &options, |_| {}).map_err(Failure::other)?;
    if let Some(folder) = &arguments.pcap {
        for outcome in &outcomes {
            capture::write(folder, outcome).map_err(|error| {
                Failure::other(format!("cannot write captures to {}: {error}", folder.display()))
            })?;
        }
    }
    let manifest = manifest(&paths)?;
    let text = if common.json {
        format!("{:#}\n", json(&outcomes))
    } else if arguments.report {
        let kernel = arguments.backend == Backend::Linux;
        report(&outcomes, &manifest) + &agreement(&outcomes, &manifest, kernel)
    } else {
        verdicts(&outcomes)
    };
    print(&text)?;
    if arguments.tolerance == Some(0) && !common.json {
        // A script ends where it fails: to see every line, they are played as they are.
        let lenient = Options {
            tolerance: None,
            ..options
        };
        let outcomes = play_all(&items, &lenient, |_| {}).map_err(Failure::other)?;
        print(&Exactness::of(&outcomes, &Excluded::public()).report())?;
    }
    let failed = outcomes
        .iter()
        .filter(|outcome| outcome.played.verdict == Verdict::Fail)
        .count();
    if failed > 0 {
        return Err(Failure::reported());
    }
    Ok(())
}

/// The bytes of a script that was named.
fn read(item: &Item) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    input::open(&item.path, MOST_SCRIPT)
        .and_then(|mut file| file.read_to_end(&mut text))
        .map_err(|error| Failure::usage(format!("cannot read {}: {}", item.file, input::reason(&error))))?;
    Ok(text)
}

/// The longest script (bytes).
const MOST_SCRIPT: u64 = 16 << 20;

fn options(arguments: &Arguments) -> Result<Options, Failure> {
    let mut definitions = Definitions::default();
    for definition in &arguments.define {
        let (name, value) = definition.split_once('=').unwrap_or((definition, ""));
        definitions.define(name, value);
    }
    let profile = Profile::by_name(&arguments.profile).ok_or_else(|| {
        Failure::usage(format!(
            "there is no profile {:?}; there are {}",
            arguments.profile,
            Profile::NAMES.join(", ")
        ))
    })?;
    Ok(Options {
        definitions,
        tolerance: arguments
            .tolerance
            .map(|usecs| usecs.saturating_mul(1000).min(i64::MAX as u64)),
        no_extra: arguments.no_extra,
        capture: arguments.pcap.is_some(),
        stack: match arguments.backend {
            Backend::Fleetfoot => Stack::Ours(profile),
            Backend::Linux => Stack::Linux,
        },
        set_switch,
    })
}

fn default_folder() -> Result<PathBuf, Failure> {
    if let Some(folder) = std::env::var_os("FLEETFOOT_PACKETDRILL") {
        return Ok(PathBuf::from(folder));
    }
    let folder = PathBuf::from("conformance");
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(Failure::usage(
        "name a script or a folder of scripts, or set FLEETFOOT_PACKETDRILL; there is no folder `conformance` here",
    ))
}

/// What is known about the scripts of the folder, where one folder was named.
fn manifest(paths: &[PathBuf]) -> Result<Manifest, Failure> {
    match paths {
        [folder] if folder.is_dir() => Manifest::read(folder)
            .map_err(|error| Failure::other(format!("cannot read MANIFEST.csv: {error}"))),
        _ => Ok(Manifest::default()),
    }
}

/// `{ schema, scripts: [ { file, topic, verdict, line, reason, duration_s } ] }`.
fn json(outcomes: &[Outcome]) -> serde_json::Value {
    let scripts: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            serde_json::json!({
                "file": outcome.item.file,
                "topic": outcome.item.topic,
                "verdict": outcome.played.verdict.name(),
                "line": outcome.played.line,
                "reason": outcome.played.reason,
                "duration_s": outcome.played.duration as f64 / 1e9,
            })
        })
        .collect();
    serde_json::json!({ "schema": "1.0", "scripts": scripts })
}

/// One line a script; for a failure what was expected and what was seen.
fn verdicts(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let played = &outcome.played;
        let _ = writeln!(text, "{:11} {}", played.verdict.name(), outcome.item.file);
        if played.verdict != Verdict::Pass {
            let line = played.line.map_or(String::new(), |line| format!("line {line}: "));
            let _ = writeln!(text, "  {line}{}", played.reason);
            text.push_str(&played.detail);
        }
        for printed in &played.printed {
            let _ = writeln!(text, "  printed: {printed}");
        }
        if !played.extra.is_empty() && played.verdict == Verdict::Pass {
            let _ = writeln!(
                text,
                "  {} segments that no line expects, first: {}",
                played.extra.len(),
                played.extra[0]
            );
        }
    }
    let _ = writeln!(text, "{}", Count::of(outcomes.iter()).sentence());
    text
}

/// Verdicts of some scripts.
#[derive(Default)]
struct Count {
    pass: usize,
    fail: usize,
    unsupported: usize,
}

impl Count {
    fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Count {
        let mut count = Count::default();
        for outcome in outcomes {
            match outcome.played.verdict {
                Verdict::Pass => count.pass += 1,
                Verdict::Fail => count.fail += 1,
                Verdict::Unsupported => count.unsupported += 1,
            }
        }
        count
    }

    fn sentence(&self) -> String {
        format!(
            "{}: {} pass, {} fail, {} unsupported",
            counted((self.pass + self.fail + self.unsupported) as u64, "script"),
            self.pass,
            self.fail,
            self.unsupported
        )
    }
}

/// How far the verdicts of this kernel are those of the manifest: it proves the runner.
fn agreement(outcomes: &[Outcome], manifest: &Manifest, kernel: bool) -> String {
    let agreement = manifest.agreement(outcomes);
    if !kernel || agreement.of == 0 {
        return String::new();
    }
    let mut text = format!(
        "\nagrees with the manifest (Linux 6.18) on {} of {} files ({:.1} %)\n",
        agreement.agree,
        agreement.of,
        agreement.percent()
    );
    for outcome in agreement.differ {
        let there = manifest.entry(&outcome.item.file).map_or("", |entry| entry.1);
        let _ = writeln!(
            text,
            "  {}: {there} there, {} here",
            outcome.item.file,
            outcome.played.verdict.name()
        );
    }
    text
}

/// The table by topic, and one line on each script that does not pass.
fn report(outcomes: &[Outcome], manifest: &Manifest) -> String {
    let mut topics: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes {
        topics.entry(&outcome.item.topic).or_default().push(outcome);
    }
    let must = |outcomes: &[&Outcome]| {
        let must: Vec<_> = outcomes
            .iter()
            .filter(|outcome| manifest.must_pass(&outcome.item.file))
            .collect();
        let pass = must
            .iter()
            .filter(|outcome| outcome.played.verdict == Verdict::Pass)
            .count();
        (pass, must.len())
    };
    let mut text = format!(
        "{:26} {:>5} {:>5} {:>12}  {}\n",
        "topic", "pass", "fail", "unsupported", "must pass"
    );
    let row = |text: &mut String, name: &str, outcomes: &[&Outcome]| {
        let count = Count::of(outcomes.iter().copied());
        let (pass, of) = must(outcomes);
        let of = if of == 0 {
            "-".to_owned()
        } else {
            format!("{pass} of {of}")
        };
        let _ = writeln!(
            text,
            "{name:26} {:>5} {:>5} {:>12}  {of}",
            count.pass, count.fail, count.unsupported
        );
    };
    for (topic, outcomes) in &topics {
        row(&mut text, topic, outcomes);
    }
    let all: Vec<_> = outcomes.iter().collect();
    row(&mut text, "all", &all);
    text.push('\n');
    for outcome in outcomes {
        let played = &outcome.played;
        if played.verdict == Verdict::Pass {
            continue;
        }
        let star = if manifest.must_pass(&outcome.item.file) {
            "*"
        } else {
            " "
        };
        let linux = manifest.entry(&outcome.item.file).map_or("", |entry| entry.1);
        let line = played.line.map_or(String::new(), |line| format!(":{line}"));
        let _ = writeln!(
            text,
            "{star} {:11} {}{line} [Linux: {}] {}",
            played.verdict.name(),
            outcome.item.file,
            if linux.is_empty() { "not known" } else { linux },
            played.reason
        );
    }
    text
}
