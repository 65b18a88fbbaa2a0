//! That a group which waits has something to measure in few of the seeds.

use crate::compare::Plan;
use crate::compare::times::compared_times;
use crate::run::Batch;
use crate::statistics::ENOUGH_SEEDS;

/// For each such group: in how many seeds of the network as described there is anything. As many are independent, however many were made.
pub(super) fn notes(plan: &Plan, batch: &Batch) -> Vec<String> {
    let runs = batch.runs.first().map_or(&[][..], Vec::as_slice);
    let groups = plan.described.groups.iter().enumerate();
    let waiting: Vec<(&str, usize)> = groups
        .filter(|(_, info)| info.latency_sensitive)
        .map(|(number, info)| {
            let any =
                |run: &&crate::result::RunData| !compared_times(info.kind, &run.output, number).is_empty();
            (info.name.as_str(), runs.iter().filter(any).count())
        })
        .collect();
    let others = waiting.iter().any(|(_, with)| *with >= 2);
    let few = waiting
        .into_iter()
        .filter(|(_, with)| (1..ENOUGH_SEEDS.min(runs.len())).contains(with));
    few.map(|(name, with)| {
        let of = format!(
            "{name}: there is something to measure in {with} of {} seeds only",
            runs.len()
        );
        let so = match (with, others) {
            (1, true) => "which says nothing of chance: the time saved by all together leaves it out",
            (1, false) => "which says nothing of chance",
            _ => "and its intervals are those of so many",
        };
        format!("{of}, {so}; a longer `run.duration` has more")
    })
    .collect()
}
