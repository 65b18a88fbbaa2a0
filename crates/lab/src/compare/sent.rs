//! What a setting costs in bytes: how many are sent for each that arrives.
//!
//! Bundles, probes and retransmissions repair losses with bytes that time and goodput do not show, and that a metered line is paid by.

use super::{Plan, Planned};
use crate::result::{Document, RunData};
use crate::run::Batch;
use fleetfoot_sim::spec::{GroupSpec, Transport};

/// For the recommended setting and what is equal to it: the group whose bytes sent per byte delivered grow most, if by more than [`MORE`].
/// Without a recommendation, for the variant in which they do.
pub(super) fn note(plan: &Plan, batch: &Batch, document: &Document) -> Option<String> {
    let (unchanged, described) = plan.variants.first().zip(batch.runs.first())?;
    let named = |name: &str| {
        document
            .recommended
            .as_ref()
            .is_none_or(|setting| setting.variant == name || setting.equals.iter().any(|equal| equal == name))
    };
    let variants = plan.variants.iter().zip(&batch.runs).skip(1);
    let grown = variants.filter(|(planned, _)| named(&planned.name) && planned.part_of.is_none());
    let grown = grown.flat_map(|(planned, runs)| {
        (0..plan.described.groups.len()).filter_map(move |index| {
            let before = per_byte(unchanged, described, index)?;
            let after = per_byte(planned, runs, index)?;
            Some((planned.name.as_str(), index, before, after))
        })
    });
    let (name, index, before, after) = grown
        .filter(|(.., before, after)| *after > (1.0 + MORE) * before)
        .max_by(|one, other| (one.3 / one.2).total_cmp(&(other.3 / other.2)))?;
    Some(format!(
        "{name}: for each byte of {} that arrives {after:.2} are sent, headers included, as described {before:.2}: {:.0} % more, which a line that is paid \
         by the byte charges for",
        plan.described.groups[index].name,
        100.0 * (after / before - 1.0)
    ))
}

/// Bytes that the senders of a group sent for each byte that arrived, of all its flows; `None`: nothing arrived.
fn per_byte(planned: &Planned, runs: &[RunData], index: usize) -> Option<f64> {
    let headers = headers(planned.resolved.spec.groups.get(index)?);
    let flows = runs
        .iter()
        .filter_map(|run| run.output.groups.get(index))
        .flat_map(|group| &group.flows);
    let (sent, arrived) = flows.fold((0_u64, 0_u64), |(sent, arrived), flow| {
        let stats = flow.stats();
        let whole = stats.bytes_sent + headers * stats.segments_sent;
        (sent + whole, arrived + flow.received.0)
    });
    (sent > 0 && arrived > 0).then(|| sent as f64 / arrived as f64)
}

/// Bytes of the headers of a segment of `group`, with timestamps where its ends agree on them.
fn headers(group: &GroupSpec) -> u64 {
    let (sender, receiver) = (&group.sender, &group.receiver);
    let agreed = sender.timestamps && receiver.timestamps;
    match group.traffic.facts().transport {
        Transport::Tcp if agreed => u64::from(sender.header()) + TIMESTAMPS,
        Transport::Tcp => u64::from(sender.header()),
        _ => OTHERS,
    }
}

/// Bytes of the timestamps option with its padding.
const TIMESTAMPS: u64 = 12;

/// Bytes of the smallest headers of what is not TCP.
const OTHERS: u64 = 40;

/// A growth by less than this share is hardly a cost.
const MORE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::note;
    use crate::compare::{Choice, Plan, build};
    use crate::run::{Options, execute, simulate};
    use crate::scenario::Scenario;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn bundles_that_nearly_double_what_a_stream_sends_are_a_cost() {
        // 150 bytes every 50 ms over a round trip of 80 ms: with bundling nearly every segment carries the one before along.
        let text = r#"
[network]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "20 Mbit/s", delay = "40 ms", loss = "5 %" }
[[traffic]]
name = "state"
kind = "thin"
payload = "150 B"
interval = "50 ms"
tcp = { nagle = false }
[run]
duration = "20 s"
seeds = 2
"#;
        let noted = |only: &str| {
            let scenario = Scenario::parse("game.toml", text).expect("it is correct");
            let choice = Choice {
                only: vec![only.to_owned()],
                ..Choice::default()
            };
            let plan = Plan::compare(scenario, &choice).expect("it resolves");
            let (options, never) = (Options::default(), AtomicBool::new(false));
            let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &simulate, &|_| ());
            let batch = batch.expect("it runs");
            let document = build(&plan, &batch, "").document;
            note(&plan, &batch, &document)
        };
        let said = noted("rdb").expect("it carries bytes twice");
        assert!(
            said.starts_with("rdb: for each byte of state that arrives ") && said.contains("% more, which"),
            "{said}"
        );
        assert_eq!(noted("fq-codel"), None);
    }

    /// Writes of 50 bytes, one by one: 90 bytes each with headers of 40, 102 with timestamps, which is 13 % more.
    #[test]
    fn timestamps_are_sent_too() {
        let noted = |described: bool| {
            let text = format!(
                "[network]\nkind = \"dumbbell\"\npairs = 1\nbottleneck = {{ rate = \"20 Mbit/s\", delay = \"10 ms\" }}\n[tcp]\ntimestamps = {described}\nnagle = \
                 false\n[[traffic]]\nname = \"sensors\"\nkind = \"thin\"\npayload = \"50 B\"\ninterval = \"50 ms\"\n[[variant]]\nname = \"other\"\n\
                 set = {{ \"tcp.timestamps\" = {} }}\n[run]\nduration = \"60 s\"\nseeds = 1\n",
                !described
            );
            let scenario = Scenario::parse("iot.toml", &text).expect("it is correct");
            let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
            let (options, never) = (Options::default(), AtomicBool::new(false));
            let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &simulate, &|_| ());
            let batch = batch.expect("it runs");
            let document = build(&plan, &batch, "").document;
            note(&plan, &batch, &document)
        };
        let added = noted(false).expect("twelve bytes in ninety");
        assert!(
            added.starts_with("other: for each byte of sensors that arrives 2.04 are sent, headers included, as described 1.80: 13 % more"),
            "{added}"
        );
        assert_eq!(noted(true), None);
    }
}
