//! Goodput that is more than a line carries.
//!
//! A byte counts as delivered when it arrives in order. Behind a lost packet a receiver holds back what comes after it; where such a packet is
//! sent again after the measured time has begun, all that was held back counts within it, although it crossed the line before. So the goodput of a
//! group can be more than its line carried in that time. The results keep this definition, since the checks of published figures use it; where
//! it shows, it is said.

use super::words::rate;
use crate::result::{Group, Variant};
use fleetfoot_sim::spec::{TrafficKind, Transport};

/// What is to be said of goodputs of `variant` that are more than the payload that left the links called `bottleneck` within `measured_s`.
///
/// A group may send both ways and its pairs may pass different links, so what all of these links carried in both directions is the bound:
/// nothing is said by mistake, and an excess beside much other traffic may be passed over.
pub fn early(variant: &Variant, bottleneck: &[String], measured_s: f64) -> Option<String> {
    let links = variant
        .links
        .iter()
        .filter(|link| bottleneck.contains(&link.name));
    let payload: u64 = links
        .map(|link| link.bytes.saturating_sub(HEADERS * link.units))
        .sum();
    let most = payload as f64 * 8.0 / (measured_s * variant.runs as f64);
    let more: Vec<String> = variant
        .groups
        .iter()
        .filter_map(|group| {
            let all = all(group)? / variant.runs.max(1) as f64;
            (most > 0.0 && all > most * (1.0 + SEEN)).then(|| format!("{} {}", group.name, rate(all)))
        })
        .collect();
    (!more.is_empty()).then(|| {
        format!(
            "goodput of {} is more than the line carried as payload in the measured time ({}): bytes count when they arrive in order, and some had crossed the \
             line before that time and waited for a lost packet; with a longer warm-up (run.warmup) they are left out",
            more.join(", of "),
            rate(most)
        )
    })
}

/// The goodput of all connections of a group in all runs (bit/s), if bytes of it can have waited for a lost packet: of TCP that sent
/// something again, and of kinds whose goodput is over the measured time.
fn all(group: &Group) -> Option<f64> {
    let facts = TrafficKind::by_name(&group.kind)?.facts();
    let waited = facts.transport == Transport::Tcp && group.counters.get("retransmits") > Some(0);
    let goodput = group
        .goodput_bps
        .as_ref()
        .filter(|_| waited && !facts.flow_is_connection)?;
    Some(goodput.mean * goodput.n as f64)
}

/// Bytes of the smallest TCP/IP headers.
const HEADERS: u64 = 40;

/// An excess of less than this share is not visible.
const SEEN: f64 = 0.005;

#[cfg(test)]
mod tests {
    use super::early;
    use crate::compare::{Choice, Plan, build};
    use crate::result::Variant;
    use crate::run::{Options, execute, simulate};
    use crate::scenario::Scenario;
    use std::sync::atomic::AtomicBool;

    /// A download whose first round trips without HyStart lose many packets; a warm-up this long.
    fn download(warmup: &str) -> Variant {
        run(&format!(
            r#"[network]
kind = "dumbbell"
pairs = 1
bottleneck = {{ rate = "20 Mbit/s", delay = "100 ms", queue = {{ kind = "drop-tail", limit = "500 ms" }} }}
[tcp]
hystart = "off"
[[traffic]]
name = "load"
kind = "bulk"
[run]
duration = "12 s"
warmup = "{warmup}"
seeds = 1
"#
        ))
    }

    fn run(text: &str) -> Variant {
        let scenario = Scenario::parse("line.toml", text).expect("it is correct");
        let plan = Plan::baseline(scenario, &Choice::default()).expect("it resolves");
        let never = AtomicBool::new(false);
        let batch = execute(
            &plan.jobs(),
            &plan.seeds,
            &Options::default(),
            &never,
            &simulate,
            &|_| (),
        );
        let mut document = build(&plan, &batch.expect("it runs"), "").document;
        document.variants.swap_remove(0)
    }

    #[test]
    fn a_goodput_beyond_the_rate_of_the_line_is_explained() {
        let line = [String::from("bottleneck")];
        let said = early(&download("3 s"), &line, 9.0).expect("what was held back counts at once");
        assert!(
            said.starts_with("goodput of load ") && said.contains("waited for a lost packet"),
            "{said}"
        );
        assert_eq!(
            early(&download("8 s"), &line, 4.0),
            None,
            "the losses are long over"
        );
    }

    #[test]
    fn goodput_both_ways_and_of_datagrams_is_no_excess() {
        let line = [String::from("bottleneck")];
        for traffic in [
            "kind = \"bulk\"\ncount = 2\ndirection = \"both\"",
            "kind = \"video-call\"\ncount = 2",
            "kind = \"cbr\"\nrate = \"80 kbit/s\"\npacket = \"200 B\"",
            "kind = \"ping\"",
        ] {
            let variant = run(&format!(
                r#"[network]
kind = "dumbbell"
bottleneck = {{ rate = "10 Mbit/s", delay = "10 ms", queue = {{ kind = "drop-tail", limit = "20 packets" }} }}
[[traffic]]
{traffic}
[run]
duration = "3 s"
warmup = "1 s"
seeds = 1
"#
            ));
            assert_eq!(early(&variant, &line, 2.0), None, "{traffic}");
        }
    }
}
