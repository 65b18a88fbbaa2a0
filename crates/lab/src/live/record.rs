//! One run of a command behind the link, as the result document has it.

use super::timeline::Timeline;
use crate::import::flows::Flow;
use crate::result::Drops;
use crate::statistics::{Counted, Resamples, Summary, summarize_counted};
use fleetfoot_sim::output::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of the command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its number, from 1; runs with the same number stand beside each other in a comparison.
    pub run: u64,
    /// Seed of what was random on the link.
    pub seed: u64,
    /// Exit status of the command; 128 plus the number of the signal that ended it.
    pub exit_code: i32,
    /// From the start of the command to its end (s).
    pub wall_s: f64,
    /// What the run is compared by; `null` where the run has no such value.
    pub value: Option<f64>,
    /// Why the run counts as failed; `null` if it does not.
    pub problem: Option<String>,
    /// Whether the described link was kept.
    pub kept: bool,
    /// How late this machine was.
    pub lateness: Lateness,
    /// Share of the time in which programs of this machine that could run waited for a core; `null` where its kernel does not say, and for
    /// runs shorter than 0.2 s.
    #[serde(default)]
    pub waited_for_cores: Option<f64>,
    /// Frames that were lost because this machine did not read them in time.
    pub missed_packets: u64,
    /// Records of frames that the analysis lost because it was slower than the link: flows and capture lack them.
    pub unobserved: u64,
    /// What the command sent.
    pub sent: Direction,
    /// What it received.
    pub received: Direction,
    /// Flows that were seen; more than [`Run::flows`] has if there were very many.
    pub flows_seen: u64,
    /// Frames that belong to no flow: not IP, fragments, of neighbour discovery.
    pub other_frames: u64,
    /// The flows, in order of their first packet.
    pub flows: Vec<Flow>,
    /// The link over time.
    pub timeline: Timeline,
}

/// One direction of the link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Frames that arrived at the queue.
    pub arrived_packets: u64,
    /// Frames that were delivered.
    pub delivered_packets: u64,
    /// Their layer-3 bytes.
    pub delivered_bytes: u64,
    /// Layer-3 bits delivered per second, from the first delivery of TCP or UDP, where there is any, to the last.
    pub throughput_bps: f64,
    /// Time in the queue of each packet that left it.
    pub queue_delay_s: Option<Summary>,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets dropped, by kind, as far as they were observed.
    pub dropped: Drops,
    /// Packets marked congestion experienced.
    pub marks: u64,
    /// Packets that the interface at the far end did not take, by reason.
    pub refused: BTreeMap<String, u64>,
    /// How much later than the described link packets were delivered.
    pub lateness_s: Option<Summary>,
    /// Deliveries that were more than a millisecond late.
    pub late_packets: u64,
}

/// How late this machine was, over both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lateness {
    /// Mean (s).
    pub mean_s: f64,
    /// 99th percentile (s).
    pub p99_s: f64,
    /// Largest (s).
    pub max_s: f64,
    /// Share of deliveries that were more than a millisecond late.
    pub share_above_1ms: f64,
}

impl Lateness {
    /// The lateness of deliveries with these `values` (ns), of which `late` were late by more than a millisecond.
    pub fn of(values: &Histogram, late: u64) -> Lateness {
        let seconds = |ns: u64| ns as f64 / 1e9;
        Lateness {
            mean_s: values.mean().unwrap_or(0.0) / 1e9,
            p99_s: values.quantile(0.99).map_or(0.0, seconds),
            max_s: seconds(values.max()),
            share_above_1ms: late as f64 / values.n().max(1) as f64,
        }
    }
}

impl Run {
    /// Whether the run counts in a comparison.
    pub fn is_good(&self) -> bool {
        self.problem.is_none() && self.value.is_some()
    }

    /// Whether programs waited for cores so much that their times are those of a busy machine.
    pub fn is_starved(&self) -> bool {
        self.waited_for_cores.is_some_and(|share| share > MOST_WAITED)
    }

    /// Packets dropped in both directions, for whatever reason.
    pub fn dropped(&self) -> u64 {
        let of = |direction: &Direction| direction.drops.values().sum::<u64>();
        of(&self.sent) + of(&self.received)
    }
}

/// Whether a link with so many late deliveries and missed packets is still the described one.
pub fn is_kept(share_above_1ms: f64, missed: u64) -> bool {
    share_above_1ms <= MOST_LATE && missed == 0
}

/// A histogram of nanoseconds as a summary in seconds.
pub fn summary(histogram: &Histogram) -> Option<Summary> {
    summarize_counted(&[counted(histogram)], 1e9, &Resamples::none(1))
}

/// A histogram for the statistics of several runs.
pub(super) fn counted(histogram: &Histogram) -> Counted {
    Counted {
        counts: histogram.counts(),
        sum: histogram.sum(),
        max: histogram.max(),
    }
}

/// Share of the time spent in waiting for a core beyond which times are those of a busy machine.
pub const MOST_WAITED: f64 = 0.1;

/// Share of deliveries more than a millisecond late beyond which the link was not kept.
pub const MOST_LATE: f64 = 0.01;
