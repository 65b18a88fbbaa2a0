//! Many scripts: found in folders, each played with the rules its place asks for, in parallel.

use super::ast::Script;
use super::backend::Setup;
use super::matching::Neutral;
use super::parse::{Definitions, parse};
use super::run::{Played, Rules, Verdict, run};
use super::virtual_time::Virtual;
use fleetfoot_core::tcp::{Config, Profile};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A script file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// Relative to the folder that was named, with slashes.
    pub file: String,
    /// First folder of `file`.
    pub topic: String,
    /// Where it is.
    pub path: PathBuf,
}

/// How scripts are played.
#[derive(Clone, Debug)]
pub struct Options {
    /// Words that are replaced.
    pub definitions: Definitions,
    /// Replaces every tolerance, nanoseconds.
    pub tolerance: Option<u64>,
    /// Packets that no line expects are a failure.
    pub no_extra: bool,
    /// Keep packets for captures.
    pub capture: bool,
    /// The stack under test.
    pub stack: Stack,
    /// Sets a switch of our stack from a key of `[tcp]` and its value, for scripts that say `fleetfoot.key=value`.
    pub set_switch: fn(&mut Config, &str, &str) -> Result<(), String>,
}

impl Options {
    /// Scripts against `stack` as they are written: no word replaced, no tolerance changed, no packet kept.
    pub fn new(stack: Stack, set_switch: fn(&mut Config, &str, &str) -> Result<(), String>) -> Options {
        Options {
            definitions: Definitions::default(),
            tolerance: None,
            no_extra: false,
            capture: false,
            stack,
            set_switch,
        }
    }
}

/// What scripts are played against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// Our TCP with this profile, in virtual time.
    Ours(Profile),
    /// The TCP of this machine's kernel, in real time.
    Linux,
}

/// What came of a file.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which file.
    pub item: Item,
    /// What came of it.
    pub played: Played,
}

/// Finds the scripts (`*.pkt`) that `paths` name: files as they are, folders with everything below, in the order of names.
///
/// # Errors
/// A path that is not there or cannot be read.
pub fn find(paths: &[PathBuf]) -> io::Result<Vec<Item>> {
    let mut items = Vec::new();
    for path in paths {
        if path.is_dir() {
            let begin = items.len();
            below(path, "", &mut items)?;
            items[begin..].sort();
        } else {
            path.metadata()?;
            let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
            // The folder above that of the origin, as in the collection of public scripts.
            let topic = names
                .iter()
                .rev()
                .nth(2)
                .map_or(String::new(), ToString::to_string);
            items.push(Item {
                file: path.to_string_lossy().into_owned(),
                topic,
                path: path.clone(),
            });
        }
    }
    Ok(items)
}

fn below(folder: &Path, prefix: &str, items: &mut Vec<Item>) -> io::Result<()> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            continue;
        };
        let file = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        };
        if path.is_dir() {
            below(&path, &file, items)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            let topic = file.split_once('/').map_or("", |(topic, _)| topic).to_owned();
            items.push(Item { file, topic, path });
        }
    }
    Ok(())
}

/// Checks that `text`, which was read from `item`, is a script, without playing it.
///
/// # Errors
/// The first line that is not understood, and why.
pub fn check(item: &Item, text: &[u8], definitions: &Definitions) -> Result<(), String> {
    match parse(text, definitions) {
        Err(error) if !error.unsupported => Err(format!(
            "{}:{}:{}: {}",
            item.file, error.line, error.column, error.message
        )),
        _ => Ok(()),
    }
}

/// The places whose rules differ from those of other scripts, in words, and how many of the scripts lie there.
pub fn places(items: &[Item]) -> BTreeMap<&'static str, u64> {
    let mut places = BTreeMap::new();
    for place in items.iter().filter_map(|item| Place::of(item).in_words()) {
        *places.entry(place).or_insert(0) += 1;
    }
    places
}

/// Plays every item against the stack of the options; `done` hears of each as it ends.
///
/// # Errors
/// This machine does not let us play against its kernel.
pub fn play_all(
    items: &[Item],
    options: &Options,
    done: impl Fn(&Outcome) + Sync,
) -> Result<Vec<Outcome>, String> {
    play_until(items, options, &AtomicBool::new(false), done)
}

/// The same until `stop` is set: scripts that have not begun by then are left out.
///
/// # Errors
/// This machine does not let us play against its kernel.
pub fn play_until(
    items: &[Item],
    options: &Options,
    stop: &AtomicBool,
    done: impl Fn(&Outcome) + Sync,
) -> Result<Vec<Outcome>, String> {
    match options.stack {
        Stack::Ours(profile) => Ok(each(items, stop, &done, |item| {
            play(item, options, |script, setup, rules| {
                let mut backend = Virtual::new(setup, Config::profile(profile), options.set_switch);
                run(script, &mut backend, setup, rules)
            })
        })),
        Stack::Linux => on_kernel(items, options, stop, &done),
    }
}

fn each(
    items: &[Item],
    stop: &AtomicBool,
    done: &(impl Fn(&Outcome) + Sync),
    play_one: impl Fn(&Item) -> Played + Sync,
) -> Vec<Outcome> {
    items
        .par_iter()
        .filter(|_| !stop.load(Ordering::Relaxed))
        .map(|item| {
            let outcome = Outcome {
                item: item.clone(),
                played: play_one(item),
            };
            done(&outcome);
            outcome
        })
        .collect()
}

/// Scripts wait most of their time: this many at once keep a small machine busy and leave its clock alone.
#[cfg(target_os = "linux")]
const KERNEL_SCRIPTS_AT_ONCE: usize = 6;

/// A runner that was later than this (nanoseconds) proves nothing by a failure.
#[cfg(target_os = "linux")]
const RUNNER_LATE: u64 = 1_000_000;

/// How often a script is then played again.
#[cfg(target_os = "linux")]
const TRIES_ALONE: u32 = 3;

#[cfg(target_os = "linux")]
fn on_kernel(
    items: &[Item],
    options: &Options,
    stop: &AtomicBool,
    done: &(impl Fn(&Outcome) + Sync),
) -> Result<Vec<Outcome>, String> {
    fleetfoot_live::Namespace::available().map_err(|error| error.to_string())?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(KERNEL_SCRIPTS_AT_ONCE)
        .build()
        .map_err(|error| error.to_string())?;
    let once = |item: &Item| {
        play(item, options, |script, setup, rules| {
            super::linux::Linux::run(setup, |backend| run(script, backend, setup, rules))
                .unwrap_or_else(|error| Played::refused(Verdict::Unsupported, None, error.to_string()))
        })
    };
    let too_late = |played: &Played| played.verdict == Verdict::Fail && played.lateness > RUNNER_LATE;
    let mut outcomes = pool.install(|| {
        each(
            items,
            stop,
            &|outcome| {
                if !too_late(&outcome.played) {
                    done(outcome);
                }
            },
            once,
        )
    });
    // What failed while the runner itself was late says nothing: once more, alone.
    for outcome in outcomes.iter_mut().filter(|outcome| too_late(&outcome.played)) {
        for _ in 0..TRIES_ALONE {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            outcome.played = once(&outcome.item);
            if !too_late(&outcome.played) {
                break;
            }
        }
        done(outcome);
    }
    Ok(outcomes)
}

#[cfg(not(target_os = "linux"))]
fn on_kernel(
    _: &[Item],
    _: &Options,
    _: &AtomicBool,
    _: &(impl Fn(&Outcome) + Sync),
) -> Result<Vec<Outcome>, String> {
    Err("the kernel can be played against on Linux only".to_owned())
}

/// Reads an item and has `with` play it, by the rules of its place.
pub fn play(item: &Item, options: &Options, with: impl FnOnce(&Script, &Setup, &Rules) -> Played) -> Played {
    let text = match std::fs::read(&item.path) {
        Ok(text) => text,
        Err(error) => return Played::refused(Verdict::Fail, None, format!("cannot be read: {error}")),
    };
    let script = match parse(&text, &options.definitions) {
        Ok(script) => script,
        Err(error) => {
            let verdict = if error.unsupported {
                Verdict::Unsupported
            } else {
                Verdict::Fail
            };
            let reason = format!("column {}: {}", error.column, error.message);
            return Played::refused(verdict, Some(error.line), reason);
        }
    };
    let place = Place::of(item);
    let rules = Rules {
        tolerance: options.tolerance,
        granted: place.granted,
        neutral: place.neutral,
        old_linux: place.old_linux,
        kernel_tests: place.kernel_tests,
        no_extra: options.no_extra,
        kernel: options.stack == Stack::Linux,
        capture: options.capture,
    };
    let setup = match setup(&script) {
        Ok(setup) => setup,
        Err(reason) => return Played::refused(Verdict::Unsupported, None, reason),
    };
    let mut played = with(&script, &setup, &rules);
    if place.has_to_fail {
        match played.verdict {
            Verdict::Fail => {
                played.verdict = Verdict::Pass;
                played.reason.clear();
                played.detail.clear();
                played.line = None;
            }
            Verdict::Pass => {
                played.verdict = Verdict::Fail;
                played.reason = "passes, but is meant to fail".to_owned();
            }
            Verdict::Unsupported => {}
        }
    }
    played
}

/// What the place of a script in the public collection says about it.
struct Place {
    granted: u64,
    neutral: Option<Neutral>,
    old_linux: bool,
    kernel_tests: bool,
    has_to_fail: bool,
}

impl Place {
    /// What is special about it.
    fn in_words(&self) -> Option<&'static str> {
        if self.neutral.is_some() {
            Some("their folder, freebsd: 90 ms of tolerance, options and delays of FreeBSD are accepted")
        } else if self.old_linux {
            Some("their folder, nplab: as on the Linux they were written for")
        } else if self.granted > 0 {
            Some("their folder, gvisor: 100 ms of tolerance")
        } else if self.kernel_tests {
            Some("their name, tcp_accecn_: with the defaults of the Linux kernel's own tests")
        } else if self.has_to_fail {
            Some("their folder, runner-selftest: they pass when they fail")
        } else {
            None
        }
    }

    fn of(item: &Item) -> Place {
        let absolute = item.path.canonicalize().unwrap_or_else(|_| item.path.clone());
        let names: Vec<_> = absolute
            .iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        let [.., topic, origin, file] = names.as_slice() else {
            return Place {
                granted: 0,
                neutral: None,
                old_linux: false,
                kernel_tests: false,
                has_to_fail: false,
            };
        };
        let reassembly = topic.starts_with("reassembly-");
        let bsd = origin == "freebsd" || file.ends_with(".bsd.pkt");
        Place {
            granted: match origin.as_str() {
                _ if bsd => 90_000_000,
                "gvisor" => 100_000_000, // what its `packetdrill_test.sh` passes as `--tolerance_usecs`
                _ => 0,
            },
            neutral: bsd.then_some(Neutral {
                options: reassembly,
                delayed_from_start: reassembly,
            }),
            old_linux: origin == "nplab" && !file.ends_with(".bsd.pkt"),
            kernel_tests: file.starts_with("tcp_accecn_"),
            // They show that the runner notices.
            has_to_fail: topic == "runner-selftest"
                && matches!(file.as_str(), "packet-timeout.pkt" | "socket_wrong_err.pkt"),
        }
    }
}

/// The machine a script asks for by its options.
fn setup(script: &Script) -> Result<Setup, String> {
    let value = |name: &str| script.option(name).and_then(|option| option.value.as_deref());
    let (local, remote, mapped) = match value("ip_version").unwrap_or("ipv4") {
        "ipv4" => ("192.168.0.1", "192.0.2.1", false),
        "ipv4-mapped-ipv6" => ("192.168.0.1", "192.0.2.1", true),
        "ipv6" => ("fd3d:a0b:17d6::1", "fd3d:fa7b:d17d::1", false),
        other => return Err(format!("--ip_version={other}")),
    };
    let address = |name: &str, default: &str| {
        let text = value(name).unwrap_or(default);
        text.parse::<IpAddr>().map_err(|_| format!("--{name}={text}"))
    };
    Ok(Setup {
        local: address("local_ip", local)?,
        remote: address("remote_ip", remote)?,
        mtu: value("mtu").map_or(Ok(1500), |mtu| mtu.parse().map_err(|_| format!("--mtu={mtu}")))?,
        mapped,
    })
}

/// How far verdicts are those of the manifest.
#[derive(Debug, Default)]
pub struct Agreement<'o> {
    /// Files with the same verdict.
    pub agree: usize,
    /// Files that the manifest has a verdict on.
    pub of: usize,
    /// The others.
    pub differ: Vec<&'o Outcome>,
}

impl Agreement<'_> {
    /// Share of the files with the same verdict, percent.
    pub fn percent(&self) -> f64 {
        100.0 * self.agree as f64 / self.of.max(1) as f64
    }
}

/// What is known about the public scripts on Linux.
#[derive(Clone, Debug, Default)]
pub struct Manifest(BTreeMap<String, (String, String)>);

impl Manifest {
    /// Reads `MANIFEST.csv` of a folder of public scripts; empty if there is none.
    ///
    /// # Errors
    /// The manifest cannot be read, or lacks a column.
    pub fn read(folder: &Path) -> io::Result<Manifest> {
        let path = folder.join("MANIFEST.csv");
        if !path.exists() {
            return Ok(Manifest::default());
        }
        let mut reader = csv::Reader::from_path(path)?;
        let header = reader.headers()?.clone();
        let column = |name: &str| {
            header
                .iter()
                .position(|column| column == name)
                .ok_or_else(|| io::Error::other(format!("MANIFEST.csv has no column {name}")))
        };
        let (file, group, linux) = (column("file")?, column("group")?, column("linux_6_18")?);
        let mut known = BTreeMap::new();
        for record in reader.records() {
            let record = record?;
            let field = |index| record.get(index).unwrap_or_default().to_owned();
            known.insert(field(file), (field(group), field(linux)));
        }
        Ok(Manifest(known))
    }

    /// Group (W wire, C counters, O optional) and result on Linux 6.18 of a file.
    pub fn entry(&self, file: &str) -> Option<(&str, &str)> {
        self.0
            .get(file)
            .map(|(group, linux)| (group.as_str(), linux.as_str()))
    }

    /// Compares with the files that were played on Linux 6.18 for the manifest: how many have the same verdict here, how many
    /// there are, and those that differ.
    pub fn agreement<'o>(&self, outcomes: &'o [Outcome]) -> Agreement<'o> {
        let mut agreement = Agreement::default();
        for outcome in outcomes {
            let there = match self.entry(&outcome.item.file) {
                Some((_, "pass" | "agrees")) => true,
                Some((_, "fail" | "differs")) => false,
                _ => continue,
            };
            agreement.of += 1;
            // What cannot be played here does not agree, however it ended there.
            let here = match outcome.played.verdict {
                Verdict::Pass => Some(true),
                Verdict::Fail => Some(false),
                Verdict::Unsupported => None,
            };
            if here == Some(there) {
                agreement.agree += 1;
            } else {
                agreement.differ.push(outcome);
            }
        }
        agreement
    }

    /// Whether Linux passes it and it needs nothing optional.
    pub fn must_pass(&self, file: &str) -> bool {
        matches!(self.entry(file), Some(("W" | "C", "pass" | "agrees")))
    }
}
