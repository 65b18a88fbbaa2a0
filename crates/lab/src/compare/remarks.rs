//! What must be known of single rows beside what the ranking found: that a variant changed no queue that stands, or that a switch of it
//! never acted, or that it is what another row is.

use super::notes::first_of;
use super::{Plan, Planned, turn_on};
use crate::identity;
use crate::metrics::GroupMetric;
use crate::result::{RunData, Variant};
use crate::run::Batch;
use fleetfoot_sim::output::RunOutput;

/// Fills in the remarks of every variant but the first.
pub(super) fn fill(plan: &Plan, batch: &Batch, variants: &mut [Variant]) {
    let standing: Vec<usize> = plan.stands().collect();
    let identities: Vec<String> = plan
        .variants
        .iter()
        .map(|planned| identity::of(&planned.resolved.spec))
        .collect();
    let earlier = |index: usize| (0..index).find(|&other| identities[other] == identities[index]);
    for (index, variant) in variants.iter_mut().enumerate().skip(1) {
        let planned = &plan.variants[index];
        let mut remarks = Vec::new();
        let queues_only = !planned.places.is_empty() && planned.senders.is_none();
        if !plan.standing.is_empty()
            && queues_only
            && !planned.places.iter().any(|place| standing.contains(place))
        {
            remarks.push(String::from("acts on a queue that never fills here"));
        }
        remarks.extend(turn_on::missing_at(plan, index).map(|missing| missing.reason()));
        if let Some(same) = earlier(index).filter(|&same| same > 0) {
            let name = &plan.variants[same].name;
            remarks.push(format!(
                "the same as {name} here: with what else is set, both change the same"
            ));
        } else if let Some(twin) = twin(plan, &batch.runs, index, &identities) {
            remarks.push(match twin {
                0 => String::from("never acted: its runs are those of the network as described"),
                twin => without_effect(plan, &plan.variants[twin], planned),
            });
        }
        let lengths = variant
            .groups
            .iter()
            .filter_map(|group| group.more(GroupMetric::SuperPacketLength));
        let longest = lengths.map(|length| length.mean).reduce(f64::max);
        if let Some(longest) = longest.filter(|longest| *longest < 2.0) {
            remarks.push(format!(
                "senders hardly formed super-packets (mean length {longest:.2}; docs/superpackets.md, Senders)"
            ));
        }
        if let Some(versus) = &mut variant.versus {
            versus.remarks.extend(remarks);
        }
    }
}

/// A variant with the same runs but not the same specification, of which this one is an extension, or the baseline.
fn twin(plan: &Plan, runs: &[Vec<RunData>], index: usize, identities: &[String]) -> Option<usize> {
    let own = &runs[index];
    if own.is_empty() {
        return None;
    }
    let alike = |run: &RunData, one: &RunData| {
        one.seed == run.seed && happened(&one.output).eq(happened(&run.output))
    };
    let same = |other: usize| {
        own.iter()
            .all(|run| runs[other].iter().any(|one| alike(run, one)))
    };
    let larger = |other: usize| {
        let smaller = &plan.variants[other].set;
        smaller
            .iter()
            .all(|pair| plan.variants[index].set.iter().any(|own| own == pair))
    };
    let another = |other: usize| other == 0 || identities[other] != identities[index];
    (0..runs.len()).find(|&other| other != index && another(other) && larger(other) && same(other))
}

/// That a variant has the runs of a smaller one, and by what it is larger: the places beside those of its part, or its settings.
fn without_effect(plan: &Plan, smaller: &Planned, larger: &Planned) -> String {
    let more = larger
        .places
        .iter()
        .filter(|place| !smaller.places.contains(place))
        .map(|&place| plan.places[place].name.clone())
        .collect::<Vec<_>>();
    let name = &smaller.name;
    if smaller.part_of.as_ref() == Some(&larger.name) && !more.is_empty() {
        return format!("never acted at {}: the same runs as {name}", first_of(&more));
    }
    let settings = beyond(smaller.set.iter(), larger.set.iter());
    format!("{} never acted: the same runs as {name}", first_of(&settings))
}

/// The settings that one variant has beyond another. Links whose names differ by a number and whose setting is the same are counted:
/// `link.access-*.queue.ecn = true (40 links)`.
fn beyond<'a>(
    smaller: impl Iterator<Item = (&'a str, &'a toml::Value)>,
    larger: impl Iterator<Item = (&'a str, &'a toml::Value)>,
) -> Vec<String> {
    let smaller: Vec<_> = smaller.collect();
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for pair in larger.filter(|pair| !smaller.contains(pair)) {
        let (path, value) = pair;
        let kind = format!("{} = {value}", without_number(path));
        match kinds.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, paths)) => paths.push(path),
            None => kinds.push((kind, vec![path])),
        }
    }
    let said = |(kind, paths): (String, Vec<&str>)| match paths.as_slice() {
        [path] => kind.replacen(&without_number(path), path, 1),
        paths => format!("{kind} ({} links)", paths.len()),
    };
    kinds.into_iter().map(said).collect()
}

/// The path of a link's setting with `*` for the number at the end of the link's name; other paths as they are.
fn without_number(path: &str) -> String {
    let numbered = || {
        let (name, key) = path.strip_prefix("link.")?.split_once('.')?;
        let (stem, number) = name.rsplit_once('-')?;
        let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then(|| format!("link.{stem}-*.{key}"))
    };
    numbered().unwrap_or_else(|| path.to_owned())
}

/// What happened to flows and links. Queue events are left out: another discipline names other ones.
fn happened(output: &RunOutput) -> impl Iterator<Item = u64> {
    let groups = output.groups.iter().flat_map(|group| {
        let flows = group.flows.iter().flat_map(|flow| {
            [
                flow.start.as_nanos(),
                flow.completed
                    .map_or(u64::MAX, fleetfoot_core::time::Instant::as_nanos),
                flow.stats().bytes_sent,
                flow.stats().segments_sent,
            ]
        });
        let latencies = group.delivery_latency.iter().chain(&group.delivery_censored);
        let latencies = latencies.map(|latency| latency.to_bits());
        [group.goodput_bytes.0, group.dropped]
            .into_iter()
            .chain(flows)
            .chain(latencies)
    });
    let links = output
        .links
        .iter()
        .flat_map(|link| [link.packets, link.bytes.0, link.queue_delay.sum() as u64]);
    groups.chain(links)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Choice;
    use crate::scenario::Scenario;

    const RACK: &str = r#"title = "Rack"
[network]
kind = "dumbbell"
pairs = 40
access = { rate = "10 Gbit/s", delay = "8 us", queue = { kind = "drop-tail", limit = "1 MB" }, medium = "host" }
[network.bottleneck]
rate = "10 Gbit/s"
delay = "8 us"
queue = { kind = "drop-tail", limit = "200 kB" }
label = "the port"
[[traffic]]
name = "shards"
kind = "incast"
to = 0
size = "32 kB"
[run]
duration = "1 s"
"#;

    #[test]
    fn a_variant_that_acts_at_one_of_many_places_is_remarked_on_in_one_sentence() {
        let scenario = Scenario::parse("rack.toml", RACK).expect("it is correct");
        let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
        let at = |name: &str| plan.places.iter().position(|place| place.name == name);
        let [hosts, port] = ["40 links access forward", "the port, down"].map(|name| at(name).expect(name));
        let mut whole = plan.variants[0].clone();
        (whole.name, whole.places) = (String::from("long-buffer"), vec![hosts, port]);
        let mut part = plan.variants[0].clone();
        part.name = String::from("long-buffer at the port, down only");
        (part.places, part.part_of) = (vec![port], Some(whole.name.clone()));
        assert_eq!(
            without_effect(&plan, &part, &whole),
            "never acted at 40 links access forward: the same runs as long-buffer at the port, down only"
        );
    }

    #[test]
    fn settings_of_links_that_only_count_up_are_counted() {
        let on = toml::Value::Boolean(true);
        let limit = toml::Value::Integer(9);
        let paths: Vec<String> = (0..40)
            .map(|link| format!("link.access-{link}.queue.ecn"))
            .collect();
        let mut set: Vec<(&str, &toml::Value)> = paths.iter().map(|path| (path.as_str(), &on)).collect();
        set.push(("link.access-7.queue.limit", &limit));
        set.push(("tcp.ecn", &on));
        assert_eq!(
            beyond([("tcp.sack", &on)].into_iter(), set.iter().copied()),
            [
                "link.access-*.queue.ecn = true (40 links)",
                "link.access-7.queue.limit = 9",
                "tcp.ecn = true"
            ]
        );
        assert_eq!(
            beyond(set[1..].iter().copied(), set.iter().copied()),
            ["link.access-0.queue.ecn = true"]
        );
    }
}
