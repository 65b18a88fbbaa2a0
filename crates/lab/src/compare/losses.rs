//! What nobody can make up for: datagrams and pings that never came, and time in which a film stood still.
//!
//! A stream of datagrams that waits, a ping or a player needs what it asks for and no less: a constant stream of 7 Mbit/s that gets a fair
//! share of 5 does not become one of 5, it becomes one with gaps. So what is missing of it is harm whatever its fair share is, and a variant
//! with which much more is missing of what somebody waits for is no win, however quick the rest is. Of datagrams that nobody waits for it is
//! harm where they arrived whole before; a stream that the network could not carry as described either keeps its fair share.
//!
//! **Source.** ITU-T G.1010 (2001), table I.1: conversational voice wants less than 3 % of its packets lost, other interactive
//! traffic less.

use crate::result::RunData;
use fleetfoot_sim::output::{Datagrams, GroupOutput};
use fleetfoot_sim::spec::{Facts, Losses};

/// For each run what group `index` got of what cannot be repeated, and the whole of it: datagrams, pings that are waited for, playing time
/// where a player can stand still. `None`: everything of it is sent again.
pub(super) fn kept(facts: &Facts, waits: bool, runs: &[&RunData], index: usize) -> Option<Vec<(f64, f64)>> {
    let of: &dyn Fn(&GroupOutput) -> (f64, f64) = match (facts.losses, facts.stood_still) {
        (Losses::Datagrams, _) => &|group| {
            let Datagrams { arrived, lost } = group.datagrams;
            (arrived as f64, (arrived + lost) as f64)
        },
        (Losses::Flows, _) if waits => &|group| {
            let came = group.flows.iter().filter(|flow| flow.completed.is_some());
            (came.count() as f64, group.flows.len() as f64)
        },
        (_, Some(measure)) => {
            let place = facts.measures.iter().position(|own| own.name == measure)?;
            &move |group| {
                let stood = group.measures.get(place).map_or(&[][..], Vec::as_slice);
                let still: f64 = stood.iter().sum();
                (stood.len() as f64 - still, stood.len() as f64)
            }
        }
        (Losses::Repaired | Losses::Flows, _) => return None,
    };
    let groups = runs.iter().map(|run| run.output.groups.get(index));
    Some(groups.map(|group| group.map_or((0.0, 0.0), of)).collect())
}

/// The share that is missing; `None` of nothing.
pub(super) fn missing(kept: &[(f64, f64)]) -> Option<f64> {
    let (came, all) = kept
        .iter()
        .fold((0.0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    (all > 0.0).then(|| 1.0 - came / all)
}

/// Whether hardly anything is missing.
pub(super) fn is_whole(kept: &[(f64, f64)]) -> bool {
    missing(kept).is_none_or(|share| share <= MOST_MORE)
}

/// Whether so much more is missing in a variant that it is no win for those who wait.
pub(super) fn too_much(variant: &[(f64, f64)], baseline: &[(f64, f64)]) -> bool {
    let before = missing(baseline).unwrap_or(0.0);
    missing(variant).is_some_and(|after| after - before > MOST_MORE)
}

/// So much more of what somebody waits for may be missing: conversational voice, the least sensitive of what waits, tolerates 3 %.
const MOST_MORE: f64 = 0.03;

#[cfg(test)]
mod tests {
    use super::*;
    use fleetfoot_core::time::Instant;
    use fleetfoot_sim::output::{FlowRecord, RunOutput};
    use fleetfoot_sim::spec::TrafficKind;
    use std::sync::Arc;

    fn run(group: GroupOutput) -> RunData {
        RunData {
            seed: 1,
            output: Arc::new(RunOutput {
                groups: vec![group],
                ..RunOutput::default()
            }),
        }
    }

    fn share(kind: TrafficKind, waits: bool, group: GroupOutput) -> Option<f64> {
        missing(&kept(kind.facts(), waits, &[&run(group)], 0)?)
    }

    #[test]
    fn what_is_missing_is_counted_as_each_kind_counts_it() {
        let datagrams = || GroupOutput {
            datagrams: Datagrams { arrived: 3, lost: 1 },
            ..GroupOutput::default()
        };
        assert_eq!(share(TrafficKind::Cbr, true, datagrams()), Some(0.25));
        assert_eq!(share(TrafficKind::Video, true, datagrams()), Some(0.25));
        let ping = |completed| FlowRecord {
            completed,
            ..FlowRecord::default()
        };
        let pings = GroupOutput {
            flows: vec![ping(Some(Instant::ZERO)), ping(None)],
            ..GroupOutput::default()
        };
        assert_eq!(share(TrafficKind::Ping, true, pings.clone()), Some(0.5));
        assert_eq!(
            share(TrafficKind::Ping, false, pings),
            None,
            "nobody waits for it"
        );
        // Two players, of which one stood still for half of the time.
        let films = GroupOutput {
            measures: vec![vec![], vec![], vec![0.5, 0.0]],
            ..GroupOutput::default()
        };
        assert_eq!(share(TrafficKind::Streaming, false, films), Some(0.25));
        assert_eq!(share(TrafficKind::Bulk, false, GroupOutput::default()), None);
    }

    #[test]
    fn three_in_a_hundred_more_are_too_much() {
        let of = |came: f64| vec![(came, 100.0)];
        assert!(!too_much(&of(97.5), &of(100.0)));
        assert!(too_much(&of(96.5), &of(100.0)));
        assert!(!too_much(&of(80.0), &of(78.0)), "fewer are missing than before");
        assert!(!too_much(&[], &of(100.0)), "nothing was measured");
        assert!(is_whole(&of(97.5)) && !is_whole(&of(90.0)));
    }
}
