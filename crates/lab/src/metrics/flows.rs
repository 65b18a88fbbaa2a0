//! Completion times of flows, and of flows that did not complete; delivery latencies of messages, and of those that did not arrive.
//!
//! **Departure from the rule for flows that did not complete.** They enter quantiles as the largest and means as their
//! age; a ping does not. Its echo is one datagram that nobody sends again: without it there is no time, only a loss, and an
//! age would measure when the run ended. Lost pings are the difference of `flows` and `completed`, and a note reports
//! them. Frames of video calls likewise: what is late or lost is a share of its own. A look-up that was given up took as long
//! as the application waited, not until the run ended.

use crate::statistics::Sample;
use fleetfoot_core::time::Instant;
use fleetfoot_sim::output::{FlowRecord, GroupOutput, RunOutput};
use fleetfoot_sim::spec::{GroupSpec, PairPolicy, Traffic, TrafficKind};
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

/// Times of a group in one run until the last byte of a flow was acknowledged, and the ages of flows that should have completed and did not.
pub fn acked_times(kind: TrafficKind, group: &GroupOutput, run: &RunOutput) -> Sample {
    let mut sample = Sample::default();
    for flow in &group.flows {
        match flow.acked {
            Some(acked) => sample.completed.push(acked.since(flow.start).as_secs_f64()),
            None if kind.facts().notes_acked && is_censored(kind, flow) => {
                sample.censored.push(age(flow, run));
            }
            None => {}
        }
    }
    sample
}

/// Delivery latencies of the writes of a group in one run, or one-way delays of its datagrams, and the ages of the writes that had not arrived when
/// the run ended.
pub fn delivery_times(group: &GroupOutput) -> Sample {
    Sample {
        completed: group.delivery_latency.clone(),
        censored: group.delivery_censored.clone(),
    }
}

/// How long somebody waited in vain for a flow (s): until it was given up, or the run ended.
fn age(flow: &FlowRecord, run: &RunOutput) -> f64 {
    flow.given_up
        .as_deref()
        .copied()
        .unwrap_or(run.ended)
        .since(flow.start)
        .as_secs_f64()
}

/// Times of the rounds of `incast` of which all transfers were recorded, each from the first start to the last end: what a request waits
/// for that needs all answers. A round with a transfer that did not complete enters as such a transfer does.
pub(super) fn rounds(spec: &GroupSpec, group: &GroupOutput, run: &RunOutput) -> Sample {
    let Traffic::Incast { count, .. } = spec.traffic else {
        return Sample::default();
    };
    let transfers = match spec.spread {
        PairPolicy::Each => count as usize * spec.pairs.len(),
        PairPolicy::RoundRobin | PairPolicy::Random => count as usize,
    };
    let mut flows: Vec<&FlowRecord> = group.flows.iter().collect();
    flows.sort_by_key(|flow| flow.start);
    let known = |flow: &FlowRecord| flow.completed.or(flow.given_up.as_deref().copied());
    // The first transfers of a round that began in the warm-up are missing.
    let cut = flows.len() % transfers.max(1);
    let offsets = if cut == 0 { vec![0] } else { vec![0, cut] };
    let whole =
        |offset: usize| -> Vec<&[&FlowRecord]> { flows[offset..].chunks_exact(transfers.max(1)).collect() };
    let found = offsets.into_iter().map(whole).find(|rounds| {
        let mut pairs = rounds.iter().zip(rounds.iter().skip(1));
        pairs.all(|(before, after)| {
            before
                .iter()
                .all(|flow| known(flow).is_none_or(|end| end <= after[0].start))
        })
    });
    let mut sample = Sample::default();
    for round in found.unwrap_or_default() {
        let ends = round.iter().map(|flow| known(flow).unwrap_or(run.ended));
        let (Some(first), Some(last)) = (round.first(), ends.max()) else {
            continue;
        };
        let time = last.since(first.start).as_secs_f64();
        match round.iter().all(|flow| flow.completed.is_some()) {
            true => sample.completed.push(time),
            false => sample.censored.push(time),
        }
    }
    sample
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

/// Times of frames or pings (s); of one that was lost until the next one of its stream came, or at least until the last one was sent. A stream is one
/// direction of a call, of which several can share a pair, or the pings of one process, whichever pairs they are dealt to.
pub(crate) fn until_next(group: &GroupOutput) -> Sample {
    let mut sample = Sample::default();
    // Of each stream, from the end: when the next one came, and when the last one was sent.
    let mut next: BTreeMap<u32, (Option<Instant>, Instant)> = BTreeMap::new();
    for (place, flow) in group.flows.iter().enumerate().rev() {
        let stream = group.stream_of_flow.get(place).copied().unwrap_or(flow.pair);
        let (came, last) = next.entry(stream).or_insert((None, flow.start));
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
    use crate::scenario::{Scenario, Setting};
    use fleetfoot_core::time::Duration;
    use fleetfoot_sim::world::{Mode, run};
    use std::ops::ControlFlow;

    #[test]
    fn a_round_lasts_from_its_first_start_to_its_last_end() {
        let text = "[network]\nkind = \"dumbbell\"\npairs = 3\nbottleneck = { rate = \"10 Mbit/s\", delay = \"5 ms\" }\n\
                    [[traffic]]\nkind = \"incast\"\nsize = \"10 kB\"\ncount = 3\nrounds = 4\n";
        let scenario = Scenario::parse("incast.toml", text).expect("it is correct");
        let described = scenario.resolve(&Setting::none()).expect("it is correct");
        let spec = &described.spec.groups[0];
        let flow = |start: u64, end: Option<u64>| FlowRecord {
            start: Instant::from_millis(start),
            completed: end.map(Instant::from_millis),
            ..FlowRecord::default()
        };
        let run = RunOutput {
            ended: Instant::from_millis(1000),
            ..RunOutput::default()
        };
        let of = |flows: &[FlowRecord]| {
            let group = GroupOutput {
                flows: flows.to_vec(),
                ..GroupOutput::default()
            };
            let sample = rounds(spec, &group, &run);
            let millis = |times: &[f64]| -> Vec<u64> {
                times.iter().map(|time| (time * 1e3).round() as u64).collect()
            };
            (millis(&sample.completed), millis(&sample.censored))
        };
        // One transfer of the second round is late, one of the third was never done.
        let mut flows = vec![
            flow(0, Some(7)),
            flow(1, Some(4)),
            flow(2, Some(9)),
            flow(20, Some(25)),
            flow(20, Some(80)),
            flow(20, Some(26)),
            flow(90, Some(95)),
            flow(90, None),
            flow(90, Some(96)),
        ];
        assert_eq!(of(&flows), (vec![9, 60], vec![910]));
        // The first of the first round began in the warm-up; of the last round one was not begun.
        assert_eq!(of(&flows[1..]), (vec![60], vec![910]));
        flows.pop();
        assert_eq!(of(&flows), (vec![9, 60], vec![]));
        assert_eq!(of(&[]), (vec![], vec![]));
    }

    #[test]
    fn a_transfer_that_did_not_complete_is_not_acknowledged_for_its_age() {
        let at = Instant::from_millis;
        let flow = |start: u64, end: Option<u64>| FlowRecord {
            start: at(start),
            completed: end.map(at),
            acked: end.map(|end| at(end + 20)),
            ..FlowRecord::default()
        };
        let group = GroupOutput {
            flows: vec![flow(0, Some(50)), flow(100, None), flow(200, Some(300))],
            ..GroupOutput::default()
        };
        let run = RunOutput {
            ended: at(1_000),
            ..RunOutput::default()
        };
        let sample = acked_times(TrafficKind::Transfer, &group, &run);
        assert_eq!((sample.completed, sample.censored), (vec![0.07, 0.12], vec![0.9]));
        // A page has no last byte whose acknowledgment is noted, and a connection without end has none.
        for kind in [TrafficKind::Web, TrafficKind::Replay, TrafficKind::Bulk] {
            assert!(acked_times(kind, &group, &run).censored.is_empty());
        }
    }

    /// One player sends a ping every 50 ms; a tenth of all is lost. Dealt to eight pairs or to one, a lost one is waited for until the
    /// next answer to the player comes, which no answer to a later ping of the same player can come after.
    #[test]
    fn a_lost_ping_is_waited_for_until_the_next_one_of_its_process_comes() {
        for pairs in [1, 8] {
            let text = format!(
                "[network]\nkind = \"dumbbell\"\npairs = {pairs}\n\
                 bottleneck = {{ rate = \"10 Mbit/s\", delay = \"20 ms\", loss = {{ kind = \"random\", probability = \"5 %\" }} }}\n\
                 [[traffic]]\nname = \"game\"\nkind = \"ping\"\ninterval = \"50 ms\"\n[run]\nduration = \"20 s\"\nwarmup = \"2 s\"\n"
            );
            let scenario = Scenario::parse("game.toml", &text).expect("it is correct");
            let spec = scenario.resolve(&Setting::none()).expect("it is correct").spec;
            let run = run(&spec, Mode::Fast, &mut (), |_| ControlFlow::Continue(())).expect("it can run");
            let group = &run.groups[0];
            let lost = group.flows.iter().filter(|flow| flow.completed.is_none());
            assert!(lost.count() > 10, "{pairs} pairs");
            let next = |from: usize| group.flows[from..].iter().filter_map(|flow| flow.completed).min();
            let mut expected: Vec<f64> = (0..group.flows.len())
                .filter_map(|number| Some(next(number)?.since(group.flows[number].start).as_secs_f64()))
                .collect();
            let mut found = until_next(group).completed;
            expected.sort_by(f64::total_cmp);
            found.sort_by(f64::total_cmp);
            assert_eq!(found, expected, "{pairs} pairs");
        }
    }

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
        let group = GroupOutput {
            flows: vec![
                frame(0, Some(10)),
                frame(40, None),
                frame(80, Some(95)),
                frame(120, None),
                frame(160, None),
            ],
            ..GroupOutput::default()
        };
        let sample = until_next(&group);
        let ms = |times: &[f64]| -> Vec<u64> {
            let mut times: Vec<u64> = times.iter().map(|time| (time * 1e3).round() as u64).collect();
            times.sort_unstable();
            times
        };
        assert_eq!(ms(&sample.completed), [10, 15, 55]);
        assert_eq!(ms(&sample.censored), [0, 40]);
        // Of another call on this pair every frame comes, at once: it ends no wait of the first.
        let mut two = GroupOutput::default();
        for (number, frame_of_first) in group.flows.iter().enumerate() {
            let start = 40 * number as u64 + 20;
            two.flows
                .extend([frame_of_first.clone(), frame(start, Some(start + 5))]);
            two.stream_of_flow.extend([0, 1]);
        }
        let sample = until_next(&two);
        assert_eq!(ms(&sample.completed), [5, 5, 5, 5, 5, 10, 15, 55]);
        assert_eq!(ms(&sample.censored), [0, 40]);
    }
}
