//! The mechanisms users choose between: one entry each, read by `compare`, `list`, `explain`, the documents and Python.
//!
//! An entry is a named list of settings in the same form as a variant, a rule when it applies, what it does and where
//! that is written, and how to switch it on outside Fleetfoot. Adding one is one entry in `list`.

mod list;
#[cfg(test)]
mod tests;

pub use list::{ENTRIES, PAIRS};

use crate::scenario::{ErrorKind, Resolved, Scenario, Setting, Site};
use fleetfoot_core::queue::{Limit, Red};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::spec::LinkRate;

/// A mechanism users choose between.
#[derive(Clone, Copy, Debug)]
pub struct Mechanism {
    /// Its name in tables and on the command line.
    pub name: &'static str,
    /// The family it belongs to.
    pub family: Family,
    /// What it changes: paths and values as in a variant; `queue.` stands for the queue at each place it is applied to.
    pub set: &'static [(&'static str, Preset)],
    /// What must be true besides that the settings change something.
    pub needs: Needs,
    /// What it does, in one paragraph.
    pub document: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// What is known of its effect, and from where.
    pub evidence: &'static str,
    /// How to switch it on outside Fleetfoot.
    pub turn_on: &'static str,
    /// How hard that is.
    pub effort: Effort,
}

/// How hard it is to turn a mechanism on, from the easiest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Effort {
    /// What systems and the usual tools set by themselves: the default queue of distributions, the choice of router pages.
    Usual,
    /// One setting of a host or router that runs a released kernel.
    OneSetting,
    /// Several settings of released kernels, at one or at several hosts or routers.
    SeveralSettings,
    /// A patch, or another operating system.
    Patch,
    /// The mechanism exists only in Fleetfoot.
    OnlyHere,
}

/// Families of mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Queue disciplines at the bottleneck.
    Queues,
    /// The first round trips of a connection.
    StartUp,
    /// Loss at the end of a transfer, and recovery.
    TailLoss,
    /// Connections that pause.
    BurstyFlows,
    /// Long flows that share the line.
    GreedyFlows,
    /// When and what the receiver answers.
    Acknowledgments,
    /// Bursts that routers admit or refuse as a whole.
    SuperPackets,
}

/// What paths into the queues that a mechanism is applied to begin with.
const QUEUE_KEYS: &str = "queue.";
/// Who is followed where the sources of a queue differ. A queue of the same kind that stands there already keeps its own: with another one alone
/// nothing would be turned on.
pub(crate) const QUEUE_DETAILS: &str = "queue.details";

/// Value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A word or a quantity.
    Text(&'static str),
    /// A whole number.
    Integer(i64),
    /// On or off.
    Flag(bool),
    /// This part of the largest base RTT of the scenario, and twice the largest mean jitter of its links: packets that jitter brings together
    /// are no standing queue.
    RttShare(u64),
    /// The rate of the scenario's bottleneck.
    BottleneckRate,
}

/// What of a scenario a preset may depend on.
#[derive(Clone, Copy, Debug)]
struct LinkContext {
    /// The largest.
    base_rtt: Duration,
    /// Twice the largest mean of a link.
    jitter: Duration,
    /// The rate of all bottlenecks in the forward direction, if it is one and constant.
    rate: Option<Rate>,
}

/// What must be true of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A queue at the bottleneck.
    Queue,
    /// TCP in at least one group.
    Tcp,
    /// Both.
    QueueAndTcp,
    /// TCP whose controller is this one, as described.
    Controller(&'static str),
    /// TCP with SACK, as described.
    Sack,
}

impl Effort {
    /// The name in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Effort::Usual => "usual",
            Effort::OneSetting => "one setting",
            Effort::SeveralSettings => "several settings",
            Effort::Patch => "patch",
            Effort::OnlyHere => "only here",
        }
    }
}

impl Family {
    /// All families, in the order they are listed.
    pub const ALL: [Family; 7] = [
        Family::Queues,
        Family::StartUp,
        Family::TailLoss,
        Family::BurstyFlows,
        Family::GreedyFlows,
        Family::Acknowledgments,
        Family::SuperPackets,
    ];

    /// The name in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Queues => "queues",
            Family::StartUp => "start-up",
            Family::TailLoss => "tail loss",
            Family::BurstyFlows => "bursty flows",
            Family::GreedyFlows => "greedy flows",
            Family::Acknowledgments => "acknowledgments",
            Family::SuperPackets => "super-packets",
        }
    }
}

impl Preset {
    /// `None`: the scenario has no such value.
    fn to_toml(self, scenario: LinkContext) -> Option<toml::Value> {
        Some(match self {
            Preset::Text(text) => toml::Value::String(text.to_owned()),
            Preset::Integer(number) => toml::Value::Integer(number),
            Preset::Flag(flag) => toml::Value::Boolean(flag),
            Preset::RttShare(part) => {
                let rtt = scenario.base_rtt.as_nanos().div_ceil(part.max(1));
                let micros = (rtt + scenario.jitter.as_nanos()).div_ceil(1000).max(1);
                toml::Value::String(format!("{micros} us"))
            }
            Preset::BottleneckRate => toml::Value::String(scenario.rate?.to_string()),
        })
    }
}

/// The mechanism called `name`.
pub fn find(name: &str) -> Option<&'static Mechanism> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// The rate of the bottlenecks forward, if it is one and constant.
fn one_rate(described: &Resolved) -> Option<Rate> {
    let mut rates = described
        .bottleneck_links()
        .filter(|link| link.forward)
        .map(|link| match link.rate {
            LinkRate::Constant(rate) if rate != Rate::UNLIMITED => Some(rate),
            LinkRate::Constant(_) | LinkRate::Trace { .. } => None,
        });
    let first = rates.next()??;
    rates.all(|rate| rate == Some(first)).then_some(first)
}

/// Why RED with automatic thresholds, where `resolved` has it and `described` has not, could neither mark nor drop early: the queue is full before its
/// average is at the lower one.
fn never_early(described: &Resolved, resolved: &Resolved) -> Option<String> {
    let links = resolved.spec.links.iter().zip(&described.spec.links);
    let mut new = links.filter(|(after, before)| after.queue == "red" && before.queue != "red");
    new.find_map(|(link, _)| {
        let values = &link.queue_values;
        let room = match values.limit("limit") {
            Limit::Packets(packets) => u64::from(packets),
            Limit::Bytes(bytes) => bytes.0 / u64::from(link.mtu.max(1)),
            Limit::Unlimited => return None,
        };
        let rate = link.config().link_context(0).rate;
        let mean = values.bytes("mean_packet").map_or(1000.0, |bytes| bytes.0 as f64);
        let lowest = Red::automatic_threshold(rate, mean);
        (values.number("min_threshold").is_none() && lowest >= room as f64).then(|| {
            format!(
                "RED would begin to act at an average of {lowest:.0} packets, 2.5 ms of the rate or 5 packets, and the queue has room for {room}: \
                 a variant with `min_threshold` and `max_threshold` below that can be compared"
            )
        })
    })
}

/// Twice the largest mean jitter of a link: what uniform jitter from zero spans.
fn jitter(described: &Resolved) -> Duration {
    let links = described.spec.links.iter();
    let means = links.filter_map(|link| link.impairments.jitter.as_ref()?.mean());
    Duration::from_secs_f64(2.0 * means.fold(0.0, f64::max))
}

impl std::fmt::Display for Preset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Preset::RttShare(part) => write!(f, "1/{part} of the largest base RTT and twice the mean jitter"),
            Preset::BottleneckRate => f.write_str("the bottleneck's rate"),
            Preset::Text(text) => write!(f, "{text:?}"),
            Preset::Integer(number) => write!(f, "{number}"),
            Preset::Flag(flag) => write!(f, "{flag}"),
        }
    }
}

/// The value as a file has it.
fn written(value: &Preset) -> String {
    match value {
        Preset::BottleneckRate => String::from("\"RATE\""),
        Preset::RttShare(_) => String::from("\"TIME\""),
        other => other.to_string(),
    }
}

impl Mechanism {
    /// Its settings in the scenario `described`, with its queue at `site`.
    pub fn setting(&self, described: &Resolved, site: &Site) -> Setting {
        let scenario = LinkContext {
            base_rtt: described
                .base_rtts()
                .iter()
                .map(|pair| pair.rtt)
                .max()
                .unwrap_or(Duration::ZERO),
            jitter: jitter(described),
            rate: one_rate(described),
        };
        let setting = Setting::from_origin(self.name);
        let setting = if self.changes_queues() {
            site.prepared(setting)
        } else {
            setting
        };
        let stands = self.set.iter().any(
            |(path, value)| matches!(value, Preset::Text(kind) if *path == "queue.kind" && site.is_all(kind)),
        );
        let set = self
            .set
            .iter()
            .filter(|(path, _)| !stands || *path != QUEUE_DETAILS);
        set.fold(setting, |setting, &(path, value)| {
            match (value.to_toml(scenario), path.strip_prefix(QUEUE_KEYS)) {
                (Some(value), Some(key)) => site.with(setting, key, &value),
                (Some(value), None) => setting.with(path, value),
                (None, _) => setting, // `missing` says so to whoever asks whether it applies
            }
        })
    }

    /// Whether it changes queues.
    pub fn changes_queues(&self) -> bool {
        self.set.iter().any(|(path, _)| path.starts_with(QUEUE_KEYS))
    }

    /// Whether it changes hosts.
    pub fn changes_senders(&self) -> bool {
        self.set.iter().any(|(path, _)| !path.starts_with(QUEUE_KEYS))
    }

    /// Paths and values as one writes them for the bottleneck of a scenario.
    pub fn as_written(&self) -> impl Iterator<Item = (String, Preset)> {
        self.set.iter().map(|&(path, value)| {
            let written = match path.strip_prefix(QUEUE_KEYS) {
                Some(key) => format!("network.bottleneck.queue.{key}"),
                None => path.to_owned(),
            };
            (written, value)
        })
    }

    /// How to have it on real packets with Fleetfoot itself, whatever the kernel has: what each command is for, and the command.
    pub fn on_real_packets(&self) -> Vec<(&'static str, String)> {
        let text = |value: &Preset| match value {
            Preset::Text(text) => (*text).to_owned(),
            Preset::BottleneckRate => String::from("'RATE'"),
            Preset::RttShare(_) => String::from("'TIME'"),
            other => other.to_string(),
        };
        let with = |of: &dyn Fn(&str) -> bool| -> String {
            let mut words = String::new();
            for (path, value) in self.as_written().filter(|(path, _)| of(path)) {
                let value = text(&value);
                words.push_str(&match value.contains(' ') && !value.starts_with('\'') {
                    true => format!(" --set '{path}={value}'"),
                    false => format!(" --set {path}={value}"),
                });
            }
            words
        };
        let mut ways = Vec::new();
        let queue = self.set.iter().find(|(path, _)| *path == "queue.kind");
        if let Some((_, Preset::Text(kind))) = queue {
            let more = self.set.iter().filter_map(|(path, value)| {
                let key = path.strip_prefix(QUEUE_KEYS).filter(|key| *key != "kind")?;
                Some(format!(", {key} = {}", written(value)))
            });
            let more: String = more.collect();
            ways.push((
                "a Linux machine of yours on the way (docs/router.md)",
                format!("fleetfoot router router.toml, a file with queue = {{ kind = \"{kind}\"{more} }} before an output"),
            ));
            ways.push((
                "one program, behind a line that you describe (docs/shell.md)",
                format!(
                    "fleetfoot shell --rate 20mbit --delay 20ms --queue {kind}{} -- COMMAND",
                    with(&|path| path.contains(".queue.") && !path.ends_with(".kind"))
                ),
            ));
        }
        if self.set.iter().any(|(path, _)| *path == "tcp.super_packets") {
            ways.push((
                "marks for the packets of one program (docs/mark.md)",
                String::from("fleetfoot mark -- COMMAND"),
            ));
        } else if self.changes_senders() {
            let set = with(&|path| path.starts_with("tcp."));
            ways.push((
                "what programs of this machine send, over Fleetfoot's TCP (docs/proxy.md)",
                format!("fleetfoot proxy --masquerade{set}"),
            ));
            ways.push((
                "what a server answers, over Fleetfoot's TCP in front of it",
                format!("fleetfoot proxy --accept 7000 --to 127.0.0.1:PORT --address 10.9.0.2/24 --allow 0.0.0.0/0{set}"),
            ));
        }
        ways
    }

    /// The mechanism as the JSON of listings.
    pub fn to_json(&self) -> serde_json::Value {
        let set: serde_json::Map<String, serde_json::Value> = self
            .as_written()
            .map(|(path, value)| {
                let value = match value {
                    Preset::Text(text) => text.into(),
                    Preset::Integer(number) => number.into(),
                    Preset::Flag(flag) => flag.into(),
                    Preset::RttShare(_) | Preset::BottleneckRate => value.to_string().into(),
                };
                (path, value)
            })
            .collect();
        serde_json::json!({
            "name": self.name,
            "family": self.family.name(),
            "set": set,
            "document": self.document,
            "source": self.source,
            "evidence": self.evidence,
            "turn_on": self.turn_on,
        })
    }

    /// What `scenario` becomes with it, with its queue at `site`.
    ///
    /// # Errors
    /// Why it does not apply, as a sentence for the user.
    pub fn apply(&self, scenario: &Scenario, described: &Resolved, site: &Site) -> Result<Resolved, String> {
        if let Some(reason) = self.missing(described) {
            return Err(reason);
        }
        let resolved = scenario
            .resolve(&self.setting(described, site))
            .map_err(|error| match error.kind {
                ErrorKind::NoChange => String::from("already so in this scenario"),
                _ => error.message.into_string(),
            })?;
        match never_early(described, &resolved) {
            Some(reason) => Err(reason),
            None => Ok(resolved),
        }
    }

    /// Why it does not apply whatever it changes, as a sentence for the user.
    pub(crate) fn missing(&self, described: &Resolved) -> Option<String> {
        let (tcp, queue) = match self.needs {
            Needs::Queue => (false, true),
            Needs::QueueAndTcp => (true, true),
            Needs::Tcp | Needs::Controller(_) | Needs::Sack => (true, false),
        };
        if tcp && !described.uses_tcp() {
            return Some(String::from("no group uses TCP"));
        }
        if queue && described.spec.links.is_empty() {
            return Some(String::from("there is no queue"));
        }
        if self.set.iter().any(|(_, value)| *value == Preset::BottleneckRate) && one_rate(described).is_none()
        {
            return Some(String::from(match described.bottleneck_links().next() {
                None => "senders have to know the bottleneck's rate: name the link in `run.bottleneck`",
                Some(_) => "the bottleneck has no single constant rate that senders could know",
            }));
        }
        let any = |wanted: &dyn Fn(&fleetfoot_core::tcp::Config) -> bool| {
            described.spec.groups.iter().any(|group| wanted(&group.sender))
        };
        match self.needs {
            Needs::Controller(name) if !any(&|config| config.congestion_control == name) => {
                Some(format!("no sender uses {name}"))
            }
            Needs::Sack if !any(&|config| config.sack) => Some(String::from("no sender uses SACK")),
            _ => None,
        }
    }
}
