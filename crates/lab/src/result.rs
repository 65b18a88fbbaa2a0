//! The result of `compare` and `run`: the JSON document that everything else is made from, and the samples behind it.
//!
//! [`Document`] is schema "1.3" field for field: fields may be added later, never renamed. HTML, CSV, Parquet and Python
//! read the same structure. [`Comparison`] is what lives in memory beside it: every run's records, the traces of
//! chosen flows, what did not apply and why. Quantities are in SI units with the unit in the name.

mod packed;
mod place;
mod trace;
mod versus;

use crate::metrics::GroupMetric;
use crate::metrics::counters::Counters;
use crate::scenario::ReplayFit;
pub use crate::statistics::Summary;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::TrafficKind;
pub use packed::Packed;
pub use place::{Instruction, Senders, Standing};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
pub use trace::{FlowTrace, SendPoint, StatePoint};
pub use versus::{GroupVersus, Ratio, SizeVersus, Tail, TailRatio, Versus};

/// Version of the document: the first number changes when something is renamed or removed.
pub const SCHEMA: &str = "1.3";

/// The result document of `compare` and `run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub fleetfoot: String,
    /// Title of the scenario.
    pub scenario: String,
    /// The seeds, in the order they were run.
    pub seeds: Vec<u64>,
    /// Simulated time in which flows arrive, warm-up included (s).
    pub duration_s: f64,
    /// What was asked.
    pub question: String,
    /// What to try, where, what it wins and harms, how sure that is and how to turn it on; or why nothing is recommended.
    pub answer: String,
    /// The setting to try first; `null` where none is recommended.
    #[serde(default)]
    pub recommended: Option<Recommended>,
    /// The best setting in the described network, which `recommend` does not recommend because near that network it is no win.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuted: Option<String>,
    /// What a reader must know beside the figures, the most important first.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How well the scenario, replayed, fits the recording it was made of; `null` for one that was not imported.
    #[serde(default)]
    pub fit: Option<ReplayFit>,
    /// Whether it was stopped before all runs were done (Ctrl-C).
    #[serde(default)]
    pub interrupted: bool,
    /// The commit the program was built from; empty outside a repository.
    #[serde(default)]
    pub commit: String,
    /// Where packets wait in the baseline: every queue of the network, in the order of its links.
    #[serde(default)]
    pub queues: Vec<Standing>,
    /// Whether the recommendation holds near the described network; empty when not asked for.
    #[serde(default)]
    pub sensitivity: Vec<SensitivityPoint>,
    /// This comparison with jitter of one packet time, where nothing in the scenario varies packet times.
    #[serde(default)]
    pub jittered: Option<Jittered>,
    /// The recommended setting at the rate of its command, against the network as described, where somebody misses what the command leaves of the line;
    /// the answer goes by it. Absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_commanded: Option<Versus>,
    /// Where the energy of a look-up comes from, of which every `lookup_power_w` is made.
    #[serde(default)]
    pub lookup_energy_source: String,
    /// What real program was measured, and how; absent in results of the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// The first is the scenario as described.
    pub variants: Vec<Variant>,
    /// The only part that differs between two equal runs; absent in files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// One variant, pooled over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What it changes: path to value.
    pub set: serde_json::Map<String, serde_json::Value>,
    /// Finished runs (seeds).
    pub runs: u64,
    /// How to switch it on outside Fleetfoot; `null` when it is not a registered mechanism.
    pub turn_on: Option<String>,
    /// How to turn it on in this network: what to do at which device, with its numbers; empty for the first variant.
    #[serde(default)]
    pub instructions: Vec<Instruction>,
    /// Traffic groups, in file order.
    pub groups: Vec<Group>,
    /// Directed links, in the order of the network.
    pub links: Vec<Link>,
    /// Hosts and routers, in the order of the network.
    pub nodes: Vec<Node>,
    /// Headers that hosts sent, acknowledgments included, per payload byte that arrived in order; `null` if none did.
    pub headers_per_byte_delivered: Option<f64>,
    /// Look-ups of all routers per second, mean over the runs: one for each data unit that reaches a router.
    pub lookups_per_s: f64,
    /// Power that these look-ups take (W), estimated at 100 nJ each ([`Document::lookup_energy_source`]).
    pub lookup_power_w: f64,
    /// Jain's index of the goodput of long-lived connections, mean over the runs; `null` with fewer than two.
    pub fairness_jain: Option<f64>,
    /// Data packets that left the bottleneck, all runs together.
    pub data_packets_delivered: u64,
    /// Payload bytes sent, retransmissions and probes included, per payload byte received.
    pub bytes_sent_per_byte_delivered: Option<f64>,
    /// Against the first variant; `null` for the first itself.
    pub versus: Option<Versus>,
    /// What was measured of a real program; absent in results of the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveVariant>,
}

/// A real program behind the described link (`fleetfoot shell`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Live {
    /// The command, as one would type it.
    pub command: String,
    /// The command that was started at the far end.
    pub far: Option<String>,
    /// What runs are compared by: `wall`, `flows`, or a regular expression.
    pub metric: String,
    /// The same in words.
    pub metric_words: String,
    /// Unit of the values; empty for numbers that the command prints.
    pub unit: String,
    /// Whether a larger value is the better one.
    pub more_is_better: bool,
    /// Version of the kernel, whose TCP the programs used.
    pub kernel: String,
    /// Whether any run was compared with another.
    pub compared: bool,
}

/// What was measured of a real program with one variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveVariant {
    /// The link in words, towards the command and from it.
    pub link: Vec<String>,
    /// What was set of the senders: commands, as they could be typed.
    pub sender: Vec<String>,
    /// Position among the variants, from 1; `null` without a run that counts.
    pub rank: Option<u64>,
    /// 1 for the best variant and those that cannot be distinguished from it, then 2...; `null` without a run that counts.
    pub tier: Option<u64>,
    /// What runs are compared by, over all runs that count.
    pub value: Option<Summary>,
    /// Its mean over that of the first variant, over the runs that count in both; `null` for the first.
    pub ratio: Option<Ratio>,
    /// Runs that failed; they count in nothing.
    pub failed: u64,
    /// Runs in which the described link was not kept; they count.
    pub not_kept: u64,
    /// The runs, those that failed included.
    pub measured: Vec<crate::live::Run>,
}

/// A traffic group of a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its kind: `transfer`, `bulk`...
    pub kind: String,
    /// Whether its users wait for each transfer.
    pub latency_sensitive: bool,
    /// Flows counted: those that started within [warmup, duration).
    pub flows: u64,
    /// Those that completed.
    pub completed: u64,
    /// Those that should have completed and did not.
    pub censored: u64,
    /// Application writes within [warmup, duration) that had not arrived when the run ended, over all runs.
    #[serde(default)]
    pub undelivered: u64,
    /// Flow completion time: first SYN sent to last payload byte received.
    pub fct_s: Option<Summary>,
    /// First SYN sent to last payload byte acknowledged, of kinds of which that is noted; a flow that did not complete enters with its age.
    pub acked_s: Option<Summary>,
    /// From `write` to in-order arrival, per application write; one that had not arrived enters as a flow that did not complete.
    pub delivery_latency_s: Option<Summary>,
    /// From first transmission to acknowledgment: mean per flow.
    pub ack_latency_s: Option<Summary>,
    /// Kinds `transfer`, `incast`, `closed-loop` and `flows`: payload bits of a finished transfer by its FCT. Other kinds: per
    /// connection over [warmup, duration), its pauses included; bytes count when they arrive in order, those too that had waited for a lost
    /// packet since before `warmup`, so it can be a few per cent more than the line carried.
    pub goodput_bps: Option<Summary>,
    /// FCT by transfer size; classes that no variant filled are left out.
    pub by_size: Vec<SizeClass>,
    /// Reported counters of TCP, a field each: of all the life of the flows, warm-up and drain included.
    #[serde(flatten)]
    pub counters: Counters,
    /// Data units of its data senders that the network dropped within [warmup, duration).
    pub dropped_units: u64,
    /// Fast recoveries, timeouts and reductions on ECN within [warmup, duration): loss events.
    pub congestion_events: Option<u64>,
    /// Further measures by name.
    pub more: BTreeMap<String, Summary>,
}

impl Group {
    /// A measure that only some groups have.
    pub fn more(&self, metric: GroupMetric) -> Option<&Summary> {
        self.more.get(metric.name_in_more()?)
    }
}

/// Transfers of `from_bytes <= size < to_bytes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeClass {
    /// Smallest size.
    pub from_bytes: u64,
    /// Next class's smallest size.
    pub to_bytes: u64,
    /// Their completion times.
    pub fct_s: Option<Summary>,
}

/// A host or router, within [warmup, duration).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether flows end here; routers forward.
    pub host: bool,
    /// Data units (packets, larger frames, acknowledgments) that reached it, all runs together.
    pub units_received: u64,
    /// Data units that it put on its links, all runs together.
    pub units_sent: u64,
    /// Headers that a router looks up per second, mean over the runs; `null` for a host.
    pub lookups_per_s: Option<f64>,
    /// Power that these look-ups take (W), estimated at 100 nJ each; `null` for a host.
    pub lookup_power_w: Option<f64>,
}

/// One direction of a link, within [warmup, duration), all runs together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name of the duplex link.
    pub name: String,
    /// `forward` or `reverse`.
    pub direction: String,
    /// Share of time the serialiser was busy, mean over the runs.
    pub utilisation: f64,
    /// Waiting time of packets that left, from acceptance to start of serialisation.
    pub queue_delay_s: Option<Summary>,
    /// Packets waiting, as seen by each arriving packet.
    pub queue_packets: Option<Summary>,
    /// Dropped packets by kind.
    pub drops: Drops,
    /// Packets marked congestion experienced.
    pub marks: u64,
    /// Data units that left (one per data packet unless a packet carries several).
    pub data_units: u64,
    /// Everything that left, acknowledgments and handshakes included: headers.
    pub units: u64,
    /// Their layer-3 bytes.
    pub bytes: u64,
    /// Drops by reason (`drop_full`...) and other queue events by name; zeros are left out.
    pub counters: BTreeMap<String, u64>,
}

/// Dropped packets by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drops {
    /// Packets with payload.
    pub data: u64,
    /// Pure acknowledgments.
    pub ack: u64,
    /// Everything else.
    pub other: u64,
}

/// The setting to try first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recommended {
    /// Name of the variant.
    pub variant: String,
    /// Names of those that are equal to it within error, in the order of the table.
    pub equals: Vec<String>,
    /// Where it is to be turned on, in the user's words.
    pub places: Vec<String>,
    /// The place or places (joined by `and at`) at which it makes the difference, where several queues stand and not all of them do.
    pub matters: Option<String>,
    /// Seeds over which its tier was compared.
    pub seeds: u64,
    /// Of how many other variants more seeds could still say whether they belong to its tier.
    pub undecided: u64,
    /// Names of those variants.
    #[serde(default)]
    pub open: Vec<String>,
    /// The tier that it is of: 1, unless nothing better can be had where it would act, or the networks near this one refute what is better.
    #[serde(default = "first_tier")]
    pub tier: u64,
}

const fn first_tier() -> u64 {
    1
}

/// A comparison that was repeated with jitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jittered {
    /// The jitter, as a setting that can be put into the scenario.
    pub set: String,
    /// The answer's setting there; `null` where nothing is recommended there.
    pub recommended: Option<String>,
    /// Those equal to it there.
    pub equals: Vec<String>,
    /// Whether the setting of the answer is one of them.
    pub holds: bool,
    /// Where nothing is recommended there and the described network's setting may save as much there as here: the seeds with which it could
    /// not be confirmed; else `null`.
    #[serde(default)]
    pub open_with_seeds: Option<u64>,
    /// All wins as described that may save as much there as here: their intervals have something in common.
    #[serde(default)]
    pub possible: Vec<String>,
    /// All that are a win there: they save time, significantly, and more than they harm.
    #[serde(default)]
    pub wins: Vec<String>,
}

/// Cost of computing a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Processor time of the runs (s).
    pub cpu_s: f64,
    /// Elapsed time (s).
    pub wall_s: f64,
    /// Events processed.
    pub events: u64,
    /// Simulated time, all runs together (s).
    pub simulated_s: f64,
}

impl Document {
    /// The text of `result.json`: without timing, so that two equal runs give equal bytes.
    pub fn to_file_text(&self) -> String {
        let mut document = self.clone();
        document.timing = None;
        document.to_json_text()
    }

    /// The document as indented JSON with a final newline.
    pub fn to_json_text(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("the document has text keys and finite numbers");
        text.push('\n');
        text
    }
}

/// A result with everything behind it: what reports and data files are written from.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The result document.
    pub document: Document,
    /// Identity of scenario, variants, seeds and program (hexadecimal).
    pub hash: String,
    /// The resolved scenario as TOML.
    pub scenario_toml: String,
    /// The command that repeats this.
    pub command: String,
    /// Groups in file order, as every variant has them.
    pub groups: Vec<GroupInfo>,
    /// Directed links, as every variant has them.
    pub links: Vec<LinkInfo>,
    /// Names of the links that count as the bottleneck.
    pub bottleneck: Vec<String>,
    /// Base RTT of each pair of hosts that exchanges data.
    pub pairs: Vec<PairInfo>,
    /// Measured from here on.
    pub warmup_s: f64,
    /// Up to here.
    pub duration_s: f64,
    /// Samples per variant, in the document's order.
    pub variants: Vec<VariantData>,
    /// Registered mechanisms that do not apply here, with the reason.
    pub inapplicable: Vec<Inapplicable>,
}

/// What is known of a group before any run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Whether its users wait for each transfer.
    pub latency_sensitive: bool,
}

impl GroupInfo {
    /// What is known of this group.
    pub fn of(group: &crate::scenario::Group) -> GroupInfo {
        GroupInfo {
            name: group.name.clone(),
            kind: group.kind.name().to_owned(),
            latency_sensitive: group.latency_sensitive,
        }
    }

    /// Its kind; one that is not known counts as transfers.
    pub fn traffic_kind(&self) -> TrafficKind {
        TrafficKind::by_name(&self.kind).unwrap_or(TrafficKind::Transfer)
    }
}

/// What is known of a directed link before any run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkInfo {
    /// Name of the duplex link.
    pub name: String,
    /// `forward` or `reverse`.
    pub direction: String,
    /// Human-readable rate.
    pub rate: String,
    /// Propagation delay (s).
    pub delay_s: f64,
    /// Queue discipline.
    pub queue: String,
    /// Its parameters as text, the limit first.
    pub parameters: Vec<(String, String)>,
}

/// A pair of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairInfo {
    /// Data sender.
    pub from: String,
    /// Data receiver.
    pub to: String,
    /// RTT of a full data packet and a pure ACK with empty queues (s).
    pub base_rtt_s: f64,
}

/// Samples of one variant.
#[derive(Clone, Debug, Default)]
pub struct VariantData {
    /// Its name.
    pub name: String,
    /// Its runs, in the order of the seeds.
    pub runs: Vec<RunData>,
    /// Traces of chosen flows of the first seed, for charts.
    pub traces: Vec<FlowTrace>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct RunData {
    /// Its seed.
    pub seed: u64,
    /// What it returned; groups and links in the order of [`Comparison::groups`] and [`Comparison::links`].
    pub output: Arc<RunOutput>,
}

/// A mechanism that does not apply to a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inapplicable {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The ranking at a neighbouring network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SensitivityPoint {
    /// What was changed: `bottleneck rate x 0.5`.
    pub change: String,
    /// Places that queue mechanisms are applied to there, where queues stand elsewhere than in the described network.
    #[serde(default)]
    pub places: Vec<String>,
    /// Name and win of the first-ranked variant there.
    pub best: String,
    /// Its win there.
    pub best_win: Option<f64>,
    /// Win there of the variant that is first in the described network.
    pub described_best_win: Option<f64>,
    /// Whether the described network's first variant belongs to the first tier there too, or nothing is a win there and it costs nothing.
    pub holds: bool,
    /// The first tier there; empty where nothing is a win.
    #[serde(default)]
    pub first_tier: Vec<String>,
    /// All that are a win there: they save time, significantly, and more than they harm.
    #[serde(default)]
    pub wins: Vec<String>,
    /// All that cost nothing there: the time saved, less the harm, is at least minus one percentage point.
    #[serde(default)]
    pub harmless: Vec<String>,
}

impl SensitivityPoint {
    /// Whether nothing is a win there and `name` costs nothing: it is not needed in that network, and may stand.
    #[must_use]
    pub fn needs_nothing(&self, name: &str) -> bool {
        self.wins.is_empty() && self.harmless.iter().any(|other| other == name)
    }
}
