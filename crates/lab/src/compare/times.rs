//! The times of a group that are compared.

use crate::metrics::flows::{completion_times, delivery_times, until_next};
use crate::statistics::Sample;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{Compared, TrafficKind};

/// What a group's ratios compare: completion times, for thin streams the delivery latency of writes, for streams of
/// datagrams their one-way delay. What had not come when the run ended enters with its age. Of a frame or ping that never came it is the time until the next one did: for so long the
/// picture stands still.
pub(super) fn compared_times(kind: TrafficKind, output: &RunOutput, index: usize) -> Sample {
    match kind.facts().compared {
        Compared::Delivery => {
            let group = output.groups.get(index);
            group.map_or_else(Sample::default, delivery_times)
        }
        Compared::CompletionOfNext => {
            let group = output.groups.get(index);
            group.map_or_else(Sample::default, until_next)
        }
        Compared::Completion => {
            let group = output.groups.get(index);
            group.map_or_else(Sample::default, |group| completion_times(kind, group, output))
        }
    }
}
