//! Completion times of flows, and of flows that did not complete.
//!
//! **Departure from the rule for flows that did not complete.** They enter quantiles as the largest and means as their
//! age; a ping does not. Its echo is one datagram that nobody sends again: without it there is no time, only a loss, and an
//! age would measure when the run ended. Lost pings are the difference of `flows` and `completed`, and a note reports
//! them. Frames of video calls likewise: what is late or lost is a share of its own. A look-up that was given up took as long
//! as the application waited, not until the run ended.

use crate::statistics::Sample;
use fleetfoot_sim::output::{FlowRecord, GroupOutput, RunOutput};
use fleetfoot_sim::spec::TrafficKind;
use std::collections::BTreeMap;

/// Whether a flow should have completed and did not.
pub fn is_censored(kind: TrafficKind, flow: &FlowRecord) -> bool {
    // A TFRC stream without end has as many bytes as arrived.
    let endless = !kind.facts().completes || kind == TrafficKind::Tfrc && flow.bytes == flow.received;
    flow.completed.is_none() && !endless
}

/// Completion times of a group in one run, and the ages of flows that should have completed and did not.
pub fn completion_times(kind: TrafficKind, group: &GroupOutput, run: &RunOutput) -> Sample {
    times(kind, &group.flows, run)
}

/// Completion times of `flows`, and the ages of those that should have completed and did not.
pub fn times<'a>(
    kind: TrafficKind,
    flows: impl IntoIterator<Item = &'a FlowRecord>,
    run: &RunOutput,
) -> Sample {
    let mut sample = Sample::default();
    for flow in flows {
        match flow.completed {
            Some(completed) => sample.completed.push(completed.since(flow.start).as_secs_f64()),
            None if is_censored(kind, flow) => sample.censored.push(age(flow, run)),
            None => {}
        }
    }
    sample
}

/// How long somebody waited in vain for a flow (s): until it was given up, or the run ended.
fn age(flow: &FlowRecord, run: &RunOutput) -> f64 {
    flow.given_up.unwrap_or(run.ended).since(flow.start).as_secs_f64()
}

/// Completion times of a group in one run as multiples of those in `twin`, the run of the same seed without loss and
/// mechanisms. The n-th flow of a pair of hosts is compared with the n-th of that pair there; one of another size, as
/// where the application waits for answers, has no counterpart, nor has one that did not complete there.
pub(super) fn normalised(kind: TrafficKind, run: &RunOutput, twin: &RunOutput, index: usize) -> Sample {
    let twins: BTreeMap<_, _> = numbered(twin, index).collect();
    let mut sample = Sample::default();
    for (number, flow) in numbered(run, index) {
        let unit = twins.get(&number).filter(|twin| twin.bytes == flow.bytes);
        let unit = unit.and_then(|twin| Some(twin.completed?.since(twin.start).as_secs_f64()));
        let Some(unit) = unit.filter(|unit| *unit > 0.0) else {
            continue;
        };
        let own = times(kind, [flow], run);
        sample
            .completed
            .extend(own.completed.iter().map(|time| time / unit));
        sample
            .censored
            .extend(own.censored.iter().map(|time| time / unit));
    }
    sample
}

/// The flows of a group with the index of their pair of hosts and their number within it.
fn numbered(run: &RunOutput, index: usize) -> impl Iterator<Item = ((u32, u32), &FlowRecord)> {
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    let flows = run.groups.get(index).map_or(&[][..], |group| &group.flows);
    flows.iter().map(move |flow| {
        let number = next.entry(flow.pair).or_default();
        *number += 1;
        ((flow.pair, *number), flow)
    })
}
