//! Demand that differs between variants: who is served sooner asks for more, and what others lose then is not the remedy's doing alone.
//!
//! A group of a closed loop that is not held to the demand of the baseline ([`crate::run::Demand`]) completes several times as many
//! transfers where a variant serves it sooner. Beside it a group can be slower for that load alone.

use super::Plan;
use super::numbers::percent;
use crate::result::{Document, Group, Variant};
use crate::scenario;
use fleetfoot_sim::spec::TrafficKind;

/// That beside a group which a variant harms another one completes more than [`TIMES`] as much as before.
pub(super) fn note(plan: &Plan, document: &Document) -> Option<String> {
    let (described, others) = document.variants.split_first()?;
    let found = others.iter().filter_map(|variant| {
        let mut planned = plan.variants.iter();
        let planned = planned.find(|planned| planned.name == variant.name)?;
        // What is one place or one side of another variant repeats it.
        let whole = planned.part_of.is_none();
        whole.then(|| more_asked(&planned.resolved.groups, described, variant))?
    });
    let found: Vec<Found<'_>> = found.collect();
    let worst = found
        .iter()
        .max_by(|one, other| one.harm.total_cmp(&other.harm))?;
    let more = match found.len() - 1 {
        0 => String::new(),
        1 => String::from("; likewise with 1 more variant"),
        more => format!("; likewise with {more} more variants"),
    };
    let Found { group, times, .. } = worst;
    Some(format!(
        "{}: the harm to {} is {} beside {times:.1} times as many transfers of {group}, each of which follows as soon as one is done: that load, and not the \
         setting, may be the harm. With `demand = \"as baseline\"` in {group} variants are compared at equal demand{more}",
        worst.variant,
        worst.harmed,
        percent(worst.harm)
    ))
}

/// A group that asks for much more in a variant that harms another one.
struct Found<'a> {
    variant: &'a str,
    harmed: &'a str,
    harm: f64,
    group: &'a str,
    times: f64,
}

fn more_asked<'a>(
    groups: &[scenario::Group],
    described: &Variant,
    variant: &'a Variant,
) -> Option<Found<'a>> {
    let each = |group: &Group, runs: u64| group.completed as f64 / runs.max(1) as f64;
    let asks_more = described.groups.iter().zip(&variant.groups).zip(groups);
    let asks_more = asks_more.filter_map(|((before, after), own)| {
        let closed = TrafficKind::by_name(&after.kind)?.facts().closed_loop;
        let times = each(after, variant.runs) / each(before, described.runs).max(1.0);
        (closed && !own.equal_demand && times > TIMES).then_some((after.name.as_str(), times))
    });
    let (group, times) = asks_more.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let harmed = variant.versus.as_ref()?.groups.iter().filter_map(|versus| {
        let harm = versus
            .harm
            .filter(|harm| harm.significant && harm.value >= LEAST)?;
        (versus.name != group).then_some((versus.name.as_str(), harm.value))
    });
    let (harmed, harm) = harmed.max_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(Found {
        variant: &variant.name,
        harmed,
        harm,
        group,
        times,
    })
}

/// A group that completes more than this many times as much asks for much more.
const TIMES: f64 = 2.0;

/// A smaller harm needs no explanation.
const LEAST: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::note;
    use crate::compare::{Choice, Plan, build};
    use crate::run::{Options, execute, simulate};
    use crate::scenario::Scenario;
    use std::sync::atomic::AtomicBool;

    /// Eight hosts answer at once into 32 packets, so that a round lasts as long as the smallest RTO, 200 ms; with 1 ms it takes a
    /// few milliseconds, and beside many more rounds the calls of others are slower.
    const RACK: &str = r#"
[network]
kind = "dumbbell"
pairs = 8
access = { rate = "10 Gbit/s", delay = "5 us", jitter = { dist = "uniform", min = "0 us", max = "20 us" } }
bottleneck = { rate = "1 Gbit/s", delay = "15 us", queue = { kind = "drop-tail", limit = "32 packets" } }

[[traffic]]
name = "calls"
kind = "request-response"
count = 8
response = "4 kB"
think = { dist = "exponential", mean = "20 ms" }
tcp = { min_rto = "1 ms", max_ack_delay = "1 ms" }

[[traffic]]
name = "shards"
kind = "incast"
to = 0
size = "32 kB"
rounds = 1000
pause = "1 ms"

[[variant]]
name = "sooner"
set = { "traffic.shards.tcp.min_rto" = "1 ms", "traffic.shards.tcp.max_ack_delay" = "1 ms" }

[run]
duration = "2 s"
warmup = "200 ms"
seeds = 4
"#;

    fn noted(text: &str) -> (Option<String>, [u64; 2]) {
        let scenario = Scenario::parse("rack.toml", text).expect("it is correct");
        let choice = Choice {
            only: vec![String::from("sooner")],
            ..Choice::default()
        };
        let plan = Plan::compare(scenario, &choice).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &simulate, &|_| ());
        let document = build(&plan, &batch.expect("it runs"), "").document;
        let done = [0, 1].map(|variant: usize| document.variants[variant].groups[1].completed);
        (note(&plan, &document), done)
    }

    #[test]
    fn harm_beside_several_times_the_demand_is_put_in_question() {
        let (note, done) = noted(RACK);
        assert!(done[1] > 2 * done[0], "{done:?}");
        let note = note.expect("calls are harmed by the load");
        assert!(
            note.starts_with("sooner: the harm to calls is ")
                && note.contains(" times as many transfers of shards,")
                && note.contains("With `demand = \"as baseline\"` in shards"),
            "{note}"
        );
    }

    #[test]
    fn rounds_of_a_variant_at_equal_demand_are_as_many_as_before() {
        let equal = RACK.replace("pause = \"1 ms\"", "pause = \"1 ms\"\ndemand = \"as baseline\"");
        let (note, done) = noted(&equal);
        assert_eq!(note, None);
        assert!(done[1] <= done[0] + 8, "{done:?}");
    }
}
