//! A variant against the baseline: what is compared, over the seeds that both finished.

use super::Senders;
use serde::{Deserialize, Serialize};

/// A variant against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versus {
    /// Name of the baseline.
    pub baseline: String,
    /// Position in the table, from 1. Within a tier it is no ranking.
    pub rank: u64,
    /// Among the significant wins: 1 for those that are equal to the best within error, then 2...; `null` for all others.
    #[serde(default)]
    pub tier: Option<u64>,
    /// 1 - geometric mean of `fct_mean_ratio` over the latency-sensitive groups; `null` without such a group.
    pub win: Option<f64>,
    /// 95 % interval of `win`; `null` with fewer than two seeds.
    #[serde(default)]
    pub win_ci95: Option<[f64; 2]>,
    /// 1 - smallest `goodput_ratio` of the groups that do not wait and of streams of datagrams; `null` without such a group.
    pub cost: Option<f64>,
    /// Largest harm of any group, with the interval of that group: 0 nobody loses what was rightfully theirs, 1 somebody loses all of it
    /// (docs/trust.md, Harm).
    #[serde(default)]
    pub harm: Option<Ratio>,
    /// Whether no other variant, nor one at one place or on one side only, saves as much time for less harm.
    #[serde(default)]
    pub pareto: bool,
    /// Largest worsening of a p99 over all groups, as a share (0.1: ten percent longer); `null` where no group has a `fct_p99_ratio`.
    pub worst_p99: Option<f64>,
    /// Largest worsening of the slowest over all groups, each by the percentile that it has in `fct_tail_ratio`; `null` where no group has one.
    #[serde(default)]
    pub worst_tail: Option<Tail>,
    /// Whether `win` differs from zero, Holm-corrected over the table, and if it is positive no more flows were censored and no more than 3 % more is lost of
    /// datagrams or pings that are waited for. False of what acts at some places or on one side only (`part_of`), which is not tested.
    pub significant: bool,
    /// The places whose queue it changes, in the user's words.
    #[serde(default)]
    pub places: Vec<String>,
    /// The senders it changes; `null` if none.
    #[serde(default)]
    pub senders: Option<Senders>,
    /// Name of the variant of which it is some places or one side only; `null` for all others.
    #[serde(default)]
    pub part_of: Option<String>,
    /// What must be known of this row: that it changed no queue that stands, that it never acted.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Ratios per group.
    pub groups: Vec<GroupVersus>,
}

/// Ratios of one group, variant over baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupVersus {
    /// Name of the group.
    pub name: String,
    /// Mean FCT (thin streams: delivery latency).
    pub fct_mean_ratio: Option<Ratio>,
    /// 99th percentile of the same; `null` with fewer than 1,000 times of either: then fewer than 10 lie beyond it.
    pub fct_p99_ratio: Option<Ratio>,
    /// The highest of the 99th, 95th and 90th percentiles of the same beyond which at least 10 times of both lie, at most half of them of what did not
    /// complete; `null` with fewer than 100 times of either, or where more of them did not complete.
    #[serde(default)]
    pub fct_tail_ratio: Option<TailRatio>,
    /// Payload received in order within [warmup, duration).
    pub goodput_ratio: Option<Ratio>,
    /// Share it loses of the smaller of what it had and its fair share; of a group that waits, 1 - before / after of its times.
    #[serde(default)]
    pub harm: Option<Ratio>,
    /// Completion times by transfer size, over the seeds that the variant and the baseline both finished; classes that either has no transfer of
    /// are left out.
    #[serde(default)]
    pub by_size: Vec<SizeVersus>,
}

/// Completion times of transfers of `from_bytes <= size < to_bytes`, variant against baseline over the seeds that both finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeVersus {
    /// Smallest size.
    pub from_bytes: u64,
    /// Next class's smallest size.
    pub to_bytes: u64,
    /// Transfers of the variant.
    pub n: u64,
    /// Transfers of the baseline.
    pub baseline_n: u64,
    /// Their mean with the variant (s); those that did not complete count with their age.
    pub mean_s: f64,
    /// Their mean with the baseline (s).
    pub baseline_mean_s: f64,
    /// `mean_s` over `baseline_mean_s`.
    pub mean_ratio: f64,
    /// 95 % interval of `mean_ratio` from a paired bootstrap over seeds; `null` with fewer than two seeds.
    pub ci95: Option<[f64; 2]>,
}

/// A ratio to the baseline of a percentile of the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailRatio {
    /// Level of the percentile: 0.99, 0.95 or 0.9.
    pub level: f64,
    /// Its ratio.
    pub ratio: Ratio,
}

/// A change of a percentile of the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Level of the percentile: 0.99, 0.95 or 0.9.
    pub level: f64,
    /// By how much it is longer, as a share (0.1: ten percent longer).
    pub change: f64,
    /// 95 % interval; `null` with fewer than two seeds.
    #[serde(default)]
    pub ci95: Option<[f64; 2]>,
}

/// A ratio to the baseline (R).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Estimate.
    pub value: f64,
    /// 95 % interval from a paired bootstrap over seeds; `null` with fewer than two seeds.
    pub ci95: Option<[f64; 2]>,
    /// Whether it differs from one, Holm-corrected over the table (false where `part_of` is set: not tested); of a harm, whether `ci95` begins above zero, without a correction: many
    /// comparisons must not hide a harm.
    pub significant: bool,
}
