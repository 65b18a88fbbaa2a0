//! `fleetfoot shell`: a command behind the described link.

use crate::failure::Failure;
use crate::output::plain;
use clap::Args;
use fleetfoot_lab::scenario::{Scenario, Setting};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Flags of `shell`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scenario whose link is used: the one called `bottleneck`, or --link. Without a file the flags describe the link.
    file: Option<PathBuf>,
    /// Speed, or speed towards the command and from it: 20mbit, "20 Mbit/s", 50mbit/10mbit.
    #[arg(long, value_name = "RATE[/RATE]", allow_hyphen_values = true)]
    rate: Option<String>,
    /// Propagation delay one way, in both directions: 20ms. The round-trip time is twice as long.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    delay: Option<String>,
    /// Packets lost at random, each way: 1%, 0.01.
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    loss: Option<String>,
    /// Extra delay of each packet, evenly from nothing to this; order is kept.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    jitter: Option<String>,
    /// Queue discipline, both ways: any of `fleetfoot list queues`.
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Its limit, or that towards the command and from it: "100 packets", "64 kB", 100ms, 100ms/300ms.
    #[arg(long, value_name = "SIZE[/SIZE]", allow_hyphen_values = true)]
    limit: Option<String>,
    /// Settings of the senders at both ends, joined by +: cc=cubic, initcwnd=4, ecn=on, pacing=on. Without any they are as this machine has
    /// them.
    #[arg(long, value_name = "SETTINGS")]
    sender: Option<String>,
    /// A mahimahi file instead of a rate, both ways.
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    trace: Option<PathBuf>,
    /// Change anything else, as in a scenario file: --set network.bottleneck.mtu=1400.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The link of the file that is meant, by its name.
    #[arg(long, value_name = "NAME", requires = "file")]
    link: Option<String>,
    /// Seed of what is random on the link.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write every frame that enters, leaves or is dropped, headers only, as pcapng: interfaces `command`, `far` and `dropped`.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Output folder: result.json, report.html, flows and runs as tables, command.txt.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write over files that exist, and into a folder that holds something else.
    #[arg(long)]
    force: bool,
    /// Run the command under each of these by turns and rank them: queues, variants of FILE, settings of senders (cc=bbr, initcwnd=4,
    /// ecn=on, pacing=on), joined by +: drop-tail,fq-codel,fq-codel+cc=bbr.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    compare: Vec<String>,
    /// A variant of FILE; several are compared.
    #[arg(long, value_name = "NAME", requires = "file")]
    variant: Vec<String>,
    /// Rounds of a comparison: runs of each. [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: Option<u32>,
    /// What a comparison is by: wall (time of the command), flows (completion times of its TCP flows), or a regular expression whose
    /// first group is a number that the command prints.
    #[arg(long, value_name = "wall|flows|REGEX")]
    metric: Option<String>,
    /// A larger number is the better one.
    #[arg(long)]
    more_is_better: bool,
    /// A command to start first at the far end, which is then a network of its own: --far "python3 -m http.server 80".
    #[arg(long, value_name = "COMMAND")]
    far: Option<String>,
    /// The command reaches the networks that this machine reaches (root only; needs nft). It is undone when the command ends.
    #[arg(long, conflicts_with = "far")]
    masquerade: bool,
    /// The command and its arguments; without one, the shell in $SHELL.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A link that nobody feels, to be changed by flags. Its limit is that of the discipline, whichever it is.
const PLAIN: &str = r#"
title = "fleetfoot shell"
[network]
kind = "dumbbell"
pairs = 1
[network.access]
delay = "0 ms"
[network.bottleneck]
rate = "100 Gbit/s"
delay = "0 ms"
queue = { kind = "drop-tail" }
"#;

/// What a scenario must have beside its network.
const TRAFFIC: &str = r#"
[[traffic]]
name = "command"
kind = "bulk"
"#;

impl Arguments {
    fn scenario(&self) -> Result<Scenario, Failure> {
        let scenario = match &self.file {
            // The command is the traffic.
            Some(path) if self.command.is_empty() && is_program(path) => {
                return Err(Failure::usage(format!(
                    "there is no scenario file {0}; if it is the command, write it behind `--`: fleetfoot shell -- {0}",
                    plain(&path.to_string_lossy())
                )));
            }
            Some(path) => Scenario::load_or(path, TRAFFIC)?,
            None => Scenario::parse("the flags of shell", &format!("{PLAIN}{TRAFFIC}"))?,
        };
        let has_own_back = |key: &str| has_own_back(&scenario, self.link.as_deref(), key);
        let own = has_own_back("queue");
        let link = link_path(self.link.as_deref());
        let mut all = Setting::none();
        let mut set = |flag: &str, path: &str, value: toml::Value| {
            all = std::mem::take(&mut all)
                .and(&Setting::from_origin(flag).with(format!("{link}.{path}"), value));
        };
        if let Some(rate) = &self.rate {
            let (down, up) = split_rates(rate);
            set("--rate", "rate", down.into());
            set("--rate", "reverse.rate", up.into());
        }
        if let Some(trace) = &self.trace {
            let path = std::path::absolute(trace).unwrap_or_else(|_| trace.clone());
            let table =
                toml::Table::from_iter([(String::from("trace"), path.to_string_lossy().into_owned().into())]);
            set("--trace", "rate", table.clone().into());
            if has_own_back("rate") {
                set("--trace", "reverse.rate", table.into());
            }
        }
        if let Some(delay) = &self.delay {
            set("--delay", "delay", spaced(delay).into());
            if has_own_back("delay") {
                set("--delay", "reverse.delay", spaced(delay).into());
            }
        }
        if let Some(jitter) = &self.jitter {
            let table = toml::Table::from_iter([
                (String::from("dist"), toml::Value::from("uniform")),
                (String::from("min"), "0 ms".into()),
                (String::from("max"), spaced(jitter).into()),
            ]);
            set("--jitter", "jitter", table.clone().into());
            set("--jitter", "reverse.jitter", table.into());
        }
        if let Some(loss) = &self.loss {
            let share = share(loss)?;
            set("--loss", "loss", share.into());
            set("--loss", "reverse.loss", share.into());
        }
        if let Some(queue) = &self.queue {
            // What the file says of the limit stays, as in a comparison.
            set("--queue", "queue.kind", queue.as_str().into());
            if own {
                set("--queue", "reverse.queue.kind", queue.as_str().into());
            }
        }
        if let Some(limit) = &self.limit {
            let (down, up) = limit.split_once('/').unwrap_or((limit, limit));
            set("--limit", "queue.limit", spaced(down).into());
            if own {
                set("--limit", "reverse.queue.limit", spaced(up).into());
            } else if up != down {
                // A queue of its own, of the same kind.
                let kind = self
                    .queue
                    .clone()
                    .or_else(|| queue_kind(&scenario, self.link.as_deref()));
                let table = toml::Table::from_iter([
                    (
                        String::from("kind"),
                        kind.unwrap_or_else(|| String::from("drop-tail")).into(),
                    ),
                    (String::from("limit"), spaced(up).into()),
                ]);
                set("--limit", "reverse.queue", table.into());
            }
        }
        let mut changes = all;
        for argument in &self.set {
            changes = changes.and(&Setting::from_origin("--set").with_argument(argument)?);
        }
        Ok(if changes.is_empty() {
            scenario
        } else {
            scenario.with(&changes)?
        })
    }

    /// The command, or a shell.
    fn command(&self) -> Vec<OsString> {
        if self.command.is_empty() {
            vec![std::env::var_os("SHELL").unwrap_or_else(|| OsString::from("/bin/sh"))]
        } else {
            self.command.clone()
        }
    }
}

/// Whether this is no file here, but the name of a program, as far as one can see.
fn is_program(path: &Path) -> bool {
    let bare = path.components().count() == 1 && path.extension().is_none();
    bare && !path.exists()
}

/// The path under which the link is set that `--link` names.
fn link_path(link: Option<&str>) -> String {
    match link {
        None | Some("bottleneck") => String::from("network.bottleneck"),
        Some(name) => format!("link.{name}"),
    }
}

/// Whether the way back has a value of its own in the file, such as a queue, which does not follow what is written for the way there.
fn has_own_back(scenario: &Scenario, link: Option<&str>, key: &str) -> bool {
    let tables = tables_of(scenario, link);
    let back = |table: &toml::Value| table.get("reverse").and_then(|back| back.get(key)).is_some();
    tables.iter().any(back)
}

/// The kind of queue that the file gives the link.
fn queue_kind(scenario: &Scenario, link: Option<&str>) -> Option<String> {
    let tables = tables_of(scenario, link);
    let kind = |table: &toml::Value| Some(table.get("queue")?.get("kind")?.as_str()?.to_owned());
    tables.iter().find_map(kind)
}

/// The tables of the file that describe the link: its own, and what it takes the rest from.
fn tables_of(scenario: &Scenario, link: Option<&str>) -> Vec<toml::Value> {
    let Ok(file) = scenario.to_toml().parse::<toml::Table>() else {
        return Vec::new();
    };
    let link = link.unwrap_or("bottleneck");
    let base = ["access", "egress"]
        .into_iter()
        .find(|base| link.starts_with(base));
    let network = file.get("network");
    let of_network = network.and_then(|network| network.get(base.unwrap_or("bottleneck")));
    let links = file.get("link").and_then(toml::Value::as_array);
    let own = links.into_iter().flatten();
    let own = own.filter(|entry| entry.get("name").and_then(toml::Value::as_str) == Some(link));
    own.chain(of_network).cloned().collect()
}

/// Both speeds of `20mbit` or `50mbit/10mbit`; the slash of `Mbit/s` is none.
fn split_rates(text: &str) -> (String, String) {
    let text = text.replace("bit/s", "bit");
    match text.split_once('/') {
        Some((down, up)) => (speed(down), speed(up)),
        None => (speed(&text), speed(&text)),
    }
}

/// A speed as scenario files write it, of one as `tc` writes it.
fn speed(text: &str) -> String {
    let text = spaced(text.trim());
    let Some((number, unit)) = text.split_once(' ') else {
        return text;
    };
    let unit = match unit.to_ascii_lowercase().as_str() {
        "bit" | "bps" => "bit/s",
        "kbit" | "kbps" => "kbit/s",
        "mbit" | "mbps" => "Mbit/s",
        "gbit" | "gbps" => "Gbit/s",
        _ => return text,
    };
    format!("{number} {unit}")
}

/// A quantity with a space between number and unit.
pub(crate) fn spaced(text: &str) -> String {
    let text = text.trim();
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() || unit.is_empty() {
        text.to_owned()
    } else {
        format!("{} {unit}", number.trim_end())
    }
}

/// A probability of `1%` or `0.01`.
fn share(text: &str) -> Result<f64, Failure> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text.trim(), 1.0),
    };
    let value: Option<f64> = number.trim_end().parse().ok();
    let value = value.map(|value| value * scale);
    value.filter(|share| (0.0..1.0).contains(share)).ok_or_else(|| {
        Failure::usage(format!(
            "--loss {text:?}: a share below 100% is wanted, such as 1% or 0.01"
        ))
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn execute(arguments: &Arguments, _: &crate::output::Common) -> Result<(), Failure> {
    arguments.scenario()?;
    let _ = arguments.command();
    Err(Failure::usage(
        "shell needs Linux: it is built on network namespaces",
    ))
}

#[cfg(target_os = "linux")]
mod behind;
#[cfg(target_os = "linux")]
mod compare;
#[cfg(target_os = "linux")]
mod observe;
#[cfg(target_os = "linux")]
mod output;
mod progress;
#[cfg(target_os = "linux")]
mod words;

#[cfg(target_os = "linux")]
pub(crate) use behind::{code_of, ended_with_its_link, execute};
