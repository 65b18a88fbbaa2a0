//! Completion times by transfer size: of every variant over all its runs, and against the baseline over the seeds that both finished.
//!
//! Variants get different numbers of seeds, the best of them the most. Means of other seeds have other arrivals, so they are never set against
//! each other.

use super::ranking::common;
use super::{Plan, Resampling};
use crate::metrics::flows::times;
use crate::result::{RunData, SizeClass, SizeVersus, Variant};
use crate::run::Batch;
use crate::statistics::{Resamples, Sample, summarize};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::TrafficKind;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};

/// Completion times by classes of size: 1, 3, 10, 30... kB.
pub(super) fn by_size(
    kind: TrafficKind,
    index: usize,
    outputs: &[&RunOutput],
    resamples: &Resamples,
) -> Vec<SizeClass> {
    let classes = samples(kind, index, outputs).into_iter().zip(SIZES.windows(2));
    let classes = classes.map(|(runs, edges)| SizeClass {
        from_bytes: edges[0],
        to_bytes: edges[1],
        fct_s: summarize(&runs, resamples),
    });
    classes.collect()
}

/// Leaves out classes that are empty in every variant.
pub(super) fn leave_out_empty(variants: &mut [Variant]) {
    let groups = variants.first().map_or(0, |variant| variant.groups.len());
    for group in 0..groups {
        let classes = variants[0].groups[group].by_size.len();
        let filled: Vec<bool> = (0..classes)
            .map(|class| {
                variants
                    .iter()
                    .filter_map(|variant| variant.groups.get(group)?.by_size.get(class))
                    .any(|size| size.fct_s.is_some())
            })
            .collect();
        for variant in &mut *variants {
            let mut keep = filled.iter();
            variant.groups[group]
                .by_size
                .retain(|_| keep.next().copied().unwrap_or(false));
        }
    }
}

/// Fills in `by_size` of the groups of every `versus`.
pub(super) fn fill(plan: &Plan, batch: &Batch, resampling: &Resampling, variants: &mut [Variant]) {
    variants.par_iter_mut().enumerate().for_each(|(index, variant)| {
        let Some(versus) = &mut variant.versus else {
            return;
        };
        let (baseline, own) = common(&batch.runs[0], &batch.runs[index]);
        let resamples = resampling.of(own.len());
        for (number, group) in versus.groups.iter_mut().enumerate() {
            let kind = plan.described.groups[number].kind;
            group.by_size = against(kind, number, &baseline, &own, &resamples);
        }
    });
}

/// The classes of a group that have transfers on both sides, over these runs, pair by pair.
fn against(
    kind: TrafficKind,
    index: usize,
    baseline: &[&RunData],
    variant: &[&RunData],
    resamples: &Resamples,
) -> Vec<SizeVersus> {
    let of = |runs: &[&RunData]| {
        let outputs: Vec<&RunOutput> = runs.iter().map(|run| run.output.as_ref()).collect();
        samples(kind, index, &outputs)
    };
    let sums = |runs: &[Sample]| -> Vec<(f64, f64)> {
        let sums = runs.iter().map(|run| (run.sum(), run.len() as f64));
        sums.collect()
    };
    let classes = of(variant).into_iter().zip(of(baseline)).zip(SIZES.windows(2));
    classes
        .filter_map(|((after, before), edges)| {
            let (after, before) = (sums(&after), sums(&before));
            let ratio = resamples.mean_ratio(&after, &before)?.estimate();
            let total = |runs: &[(f64, f64)]| {
                runs.iter()
                    .fold((0.0, 0.0), |(sum, n), run| (sum + run.0, n + run.1))
            };
            let ((sum, n), (baseline_sum, baseline_n)) = (total(&after), total(&before));
            Some(SizeVersus {
                from_bytes: edges[0],
                to_bytes: edges[1],
                n: n as u64,
                baseline_n: baseline_n as u64,
                mean_s: sum / n,
                baseline_mean_s: baseline_sum / baseline_n,
                mean_ratio: ratio.value,
                ci95: ratio.ci95,
            })
        })
        .collect()
}

/// Completion times of each class, run by run; nothing for what does not complete.
fn samples(kind: TrafficKind, index: usize, outputs: &[&RunOutput]) -> Vec<Vec<Sample>> {
    if !kind.facts().completes {
        return Vec::new();
    }
    let class = |bytes: u64| {
        SIZES
            .partition_point(|edge| *edge <= bytes)
            .clamp(1, SIZES.len() - 1)
            - 1
    };
    let mut classes = vec![Vec::new(); SIZES.len() - 1];
    for output in outputs {
        let mut flows = vec![Vec::new(); SIZES.len() - 1];
        for flow in output.groups.get(index).map_or(&[][..], |group| &group.flows) {
            flows[class(flow.bytes.0)].push(flow);
        }
        for (class, flows) in classes.iter_mut().zip(flows) {
            class.push(times(kind, flows, output));
        }
    }
    classes
}

const SIZES: [u64; 20] = [
    0,
    1_000,
    3_000,
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
    100_000_000_000,
    300_000_000_000,
    1_000_000_000_000,
];
