//! What a ping takes on average where nothing else uses the network: by that users find the server to measure with.
//!
//! Beside delays and processing a packet takes its time on each wire, the mean jitter, and on a trace the wait for the next opportunity. What damaged packets
//! take to be sent again (`arq`) is left out: a ping is short, and seldom damaged.

use super::super::echo;
use crate::scenario::Resolved;
use fleetfoot_core::link::LinkRate;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::routing::Paths;
use fleetfoot_sim::spec::{LinkIndex, LinkSpec, NodeId};

/// Round-trip time (s) of a ping between the pair of hosts with traffic whose base RTT is the median; zero without any.
pub(super) fn ping(described: &Resolved) -> f64 {
    let mut pairs: Vec<_> = described.base_rtts().iter().collect();
    pairs.sort_by_key(|pair| pair.rtt);
    let Some(pair) = pairs.get(pairs.len() / 2) else {
        return 0.0;
    };
    let spec = &described.spec;
    let node = |name: &str| {
        let found = spec.nodes.iter().position(|node| node.name == name);
        found.map(|index| NodeId(index as u32))
    };
    let mut more = 0.0;
    if let Some((from, to)) = node(&pair.from).zip(node(&pair.to)) {
        let mut paths = Paths::new(spec);
        for (from, to) in [(from, to), (to, from)] {
            let Some(start) = paths.find(spec, from, to) else {
                continue;
            };
            let links = paths
                .links(start)
                .map(|LinkIndex(link)| &spec.links[link as usize]);
            more += links.map(beyond_delay).sum::<f64>();
        }
    }
    pair.rtt.as_secs_f64() + more
}

/// What a ping takes on a link beyond its delay and processing (s), on average.
fn beyond_delay(link: &LinkSpec) -> f64 {
    let bits = 8.0 * (echo::PACKET.0 as f64 + f64::from(link.framing));
    let sending = match &link.rate {
        LinkRate::Constant(Rate::UNLIMITED) => 0.0,
        LinkRate::Constant(rate) => bits / rate.bps().max(1) as f64,
        LinkRate::Trace {
            opportunities,
            period,
        } => wait(opportunities, *period),
    };
    let jitter = link.impairments.jitter.as_ref().and_then(Distribution::mean);
    let reorder = link.impairments.reorder.as_ref();
    let held = reorder.map_or(0.0, |(probability, time)| {
        probability.as_f64() * time.as_secs_f64()
    });
    sending + jitter.unwrap_or(0.0) + held
}

/// From a random moment to the next opportunity of a trace (s), on average: half of each gap, as often as the gap is long.
fn wait(opportunities: &[Duration], period: Duration) -> f64 {
    let Some((first, last)) = opportunities.first().zip(opportunities.last()) else {
        return 0.0;
    };
    let around = *first + period.saturating_sub(*last);
    let gaps = opportunities.windows(2).map(|pair| pair[1] - pair[0]);
    let squares = gaps
        .chain([around])
        .map(|gap| gap.as_secs_f64() * gap.as_secs_f64());
    squares.sum::<f64>() / (2.0 * period.as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::{ping, wait};
    use crate::run::simulate;
    use crate::scenario::{Resolved, Scenario, Setting};
    use fleetfoot_core::link::LinkRate;
    use fleetfoot_core::time::Duration;
    use std::sync::atomic::AtomicBool;

    /// Pings, one a second, and nothing else.
    fn idle(line: &str) -> Resolved {
        let text = format!(
            r#"title = "An idle line"
[network]
kind = "dumbbell"
pairs = 1
access = {{ rate = "1 Gbit/s", delay = "5 ms" }}
egress = {{ rate = "1 Gbit/s", delay = "0.5 ms" }}
[network.bottleneck]
delay = "13 ms"
{line}
[[traffic]]
kind = "ping"
interval = {{ dist = "uniform", min = "0.9 s", max = "1.1 s" }}
[run]
duration = "2000 s"
warmup = "0 s"
seeds = 1
"#
        );
        let scenario = Scenario::parse("idle.toml", &text).expect("it is correct");
        scenario.resolve(&Setting::none()).expect("it resolves")
    }

    /// Mean time of the pings of a run (s).
    fn simulated(described: &Resolved) -> f64 {
        let output = simulate(&described.spec(1), &AtomicBool::new(false)).expect("it runs");
        let flows = output.groups.iter().flat_map(|group| &group.flows);
        let times: Vec<f64> = flows
            .filter_map(|flow| Some(flow.completed?.since(flow.start).as_secs_f64()))
            .collect();
        assert!(times.len() > 1900, "{}", times.len());
        times.iter().sum::<f64>() / times.len() as f64
    }

    #[test]
    fn an_idle_ping_takes_what_a_simulated_one_takes() {
        for (line, at_least) in [
            // 37 ms of delay; 84 bytes take 0.67 ms at 1 Mbit/s and 6.7 us at 100 Mbit/s.
            ("rate = \"1 Mbit/s\"", 0.0383),
            ("rate = \"1 Mbit/s\"\nframing = 40", 0.0389),
            // 6 ms more each way.
            (
                "rate = \"100 Mbit/s\"\njitter = { dist = \"uniform\", min = \"0 ms\", max = \"12 ms\" }\n\
                 reverse = { rate = \"10 Mbit/s\", jitter = { dist = \"uniform\", min = \"0 ms\", max = \"12 ms\" } }",
                0.0490,
            ),
            (
                "rate = \"100 Mbit/s\"\njitter = { dist = \"exponential\", mean = \"8 ms\" }",
                0.0450,
            ),
            (
                "rate = \"100 Mbit/s\"\njitter = { dist = \"normal\", mean = \"5 ms\", deviation = \"4 ms\", min = \"0 ms\" }",
                0.0420,
            ),
            (
                "rate = \"100 Mbit/s\"\nreorder = { probability = 0.5, delay = \"20 ms\" }",
                0.0470,
            ),
        ] {
            let described = idle(line);
            let (said, real) = (ping(&described), simulated(&described));
            assert!(said > at_least, "{line}: {said} s");
            assert!(
                (said / real - 1.0).abs() < 0.01,
                "{line}: {said} s said, {real} s simulated"
            );
        }
    }

    #[test]
    fn on_a_trace_an_idle_ping_waits_for_the_next_opportunity() {
        // Opportunities at 5, 10 and 40 ms of every 40: gaps of 5, 5 and 30 ms, so 11.9 ms on average.
        let opportunities = [5, 10, 40].map(Duration::from_millis);
        let period = Duration::from_millis(40);
        assert!((wait(&opportunities, period) - 950e-6 / 80e-3).abs() < 1e-12);
        let mut described = idle("rate = \"10 Mbit/s\"");
        let link = described
            .spec
            .links
            .iter_mut()
            .find(|link| link.name == "bottleneck" && link.forward);
        link.expect("it is there").rate = LinkRate::Trace {
            opportunities: opportunities.into(),
            period,
        };
        let (said, real) = (ping(&described), simulated(&described));
        assert!(
            said > 0.0488 && (said / real - 1.0).abs() < 0.02,
            "{said} s said, {real} s simulated"
        );
    }
}
