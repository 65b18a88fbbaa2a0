//! The times of a group that are compared.

use crate::metrics::flows::completion_times;
use crate::statistics::Sample;
use fleetfoot_core::time::Instant;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{Compared, TrafficKind};
use std::collections::BTreeMap;

/// What a group's ratios compare: completion times, for thin streams the delivery latency of writes, for streams of
/// datagrams their one-way delay. Of a frame or ping that never came it is the time until the next one did: for so long the
/// picture stands still.
pub(super) fn compared_times(kind: TrafficKind, output: &RunOutput, index: usize) -> Sample {
    match kind.facts().compared {
        Compared::Delivery => Sample::of(
            output
                .groups
                .get(index)
                .map_or_else(Vec::new, |group| group.delivery_latency.clone()),
        ),
        Compared::CompletionOfNext => gaps_filled(output, index),
        Compared::Completion => {
            let group = output.groups.get(index);
            group.map_or_else(Sample::default, |group| completion_times(kind, group, output))
        }
    }
}

/// Times of frames or pings; of one that was lost until the next one of its pair came, or at least until the last one was sent.
fn gaps_filled(output: &RunOutput, index: usize) -> Sample {
    let mut sample = Sample::default();
    // Of each pair, from the end: when the next one came, and when the last one was sent.
    let mut next: BTreeMap<u32, (Option<Instant>, Instant)> = BTreeMap::new();
    let flows = output.groups.get(index).map_or(&[][..], |group| &group.flows);
    for flow in flows.iter().rev() {
        let (came, last) = next.entry(flow.pair).or_insert((None, flow.start));
        *came = match (*came, flow.completed) {
            (Some(next), Some(own)) => Some(next.min(own)),
            (next, own) => next.or(own),
        };
        match flow.completed.or(*came) {
            Some(came) => sample.completed.push(came.since(flow.start).as_secs_f64()),
            None => sample.censored.push(last.since(flow.start).as_secs_f64()),
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetfoot_core::time::Duration;
    use fleetfoot_sim::output::{FlowRecord, GroupOutput};

    /// Frames of 25 per second in ms: sent at 0, 40, 80 and 120. The second is lost: the picture stands from 40 until the third
    /// comes at 95. After the last one nothing came any more: it is not known for how long the fourth was missed.
    #[test]
    fn a_lost_frame_is_waited_for_until_the_next_one_comes() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let frame = |start: u64, completed: Option<u64>| FlowRecord {
            start: at(start),
            completed: completed.map(at),
            ..FlowRecord::default()
        };
        let output = RunOutput {
            groups: vec![GroupOutput {
                flows: vec![
                    frame(0, Some(10)),
                    frame(40, None),
                    frame(80, Some(95)),
                    frame(120, None),
                    frame(160, None),
                ],
                ..GroupOutput::default()
            }],
            ..RunOutput::default()
        };
        let sample = compared_times(TrafficKind::Video, &output, 0);
        let ms = |times: &[f64]| -> Vec<u64> {
            let mut times: Vec<u64> = times.iter().map(|time| (time * 1e3).round() as u64).collect();
            times.sort_unstable();
            times
        };
        assert_eq!(ms(&sample.completed), [10, 15, 55]);
        assert_eq!(ms(&sample.censored), [0, 40]);
    }
}
