//! What the hosts that play by the rules get of a line.

use super::Scene;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Traffic;
use std::collections::BTreeMap;

/// What a host wanted and got in the time that is measured, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Host {
    /// `f64::INFINITY` for who always has data.
    wanted: f64,
    got: f64,
    /// Whether the host sends packets that nobody answers.
    raw: bool,
}

/// The smallest, over all hosts that send but raw packets, of what arrived over what the host wanted or an equal part of
/// what the bottleneck carried in both directions, whichever is less, and 1 at the most. `None` if nobody wanted anything.
///
/// What arrived counts within the measured time, of flows that began before it too; wanted are the flows that began within
/// it. Hosts of raw packets have equal parts too; addresses that nobody has count as the host that made them up.
pub(super) fn worst_share(scene: &Scene<'_>, run: &RunOutput) -> Option<f64> {
    let mut hosts: BTreeMap<u32, Host> = BTreeMap::new();
    for (spec, output) in scene.spec.groups.iter().zip(&run.groups) {
        let raw = matches!(spec.traffic, Traffic::Raw(_));
        let source = |pair: u32| spec.pairs.get(pair as usize).map(|pair| pair.0.0);
        for flow in &output.flows {
            let Some(host) = source(flow.pair).filter(|_| flow.stats().segments_sent > 0) else {
                continue;
            };
            let host = hosts.entry(host).or_default();
            host.raw |= raw;
            host.wanted += match spec.traffic.facts().greedy {
                true => f64::INFINITY,
                false => flow.bytes.0 as f64,
            };
        }
        for (pair, bytes) in output.goodput_bytes_per_pair.iter().enumerate() {
            if let Some(host) = source(pair as u32).filter(|_| bytes.0 > 0) {
                hosts.entry(host).or_default().got += bytes.0 as f64;
            }
        }
    }
    let links = scene.spec.links.iter().zip(&run.links);
    let carried: u64 = links
        .filter(|(spec, _)| scene.bottleneck.contains(&spec.name))
        .map(|(_, link)| link.bytes.0)
        .sum();
    let part = carried as f64 / hosts.len() as f64;
    let shares = hosts.values().filter(|host| !host.raw && host.wanted > 0.0);
    shares
        .map(|host| (host.got / host.wanted.min(part)).min(1.0))
        .filter(|share| share.is_finite())
        .reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::worst_share;
    use crate::scenario::{Scenario, Setting};
    use fleetfoot_core::tcp::Stats;
    use fleetfoot_core::time::Duration;
    use fleetfoot_core::units::Bytes;
    use fleetfoot_sim::output::{FlowRecord, GroupOutput, LinkOutput, RunOutput};

    #[test]
    fn the_worst_host_is_measured_by_its_wants_or_an_equal_part() {
        let text = r#"
            [network]
            kind = "dumbbell"
            pairs = 3
            bottleneck = { rate = "10 Mbit/s", delay = "5 ms" }

            [[traffic]]
            name = "bulk"
            kind = "bulk"
            from = 0
            to = 0

            [[traffic]]
            name = "short"
            kind = "transfer"
            from = 1
            to = 1
            size = "10 kB"
            arrivals = { dist = "poisson", rate = "1 per second" }

            [[traffic]]
            name = "attack"
            kind = "raw"
            from = 2
            to = 2
            arrivals = { dist = "poisson", rate = "1 per second" }

            [run]
            duration = "10 s"
        "#;
        let resolved = Scenario::parse("test.toml", text)
            .and_then(|scenario| scenario.resolve(&Setting::none()))
            .unwrap_or_else(|error| panic!("{error}"));
        let group = |bytes: u64, got: u64| GroupOutput {
            flows: vec![FlowRecord {
                bytes: Bytes(bytes),
                tally: Stats::without_losses(1, 1, Duration::ZERO, 0).into(),
                ..FlowRecord::default()
            }],
            goodput_bytes_per_pair: vec![Bytes(got)],
            ..GroupOutput::default()
        };
        let links = resolved.spec.links.iter().map(|_| LinkOutput {
            bytes: Bytes(1_500_000),
            ..LinkOutput::default()
        });
        let links: Vec<LinkOutput> = links.collect();
        let bottleneck = [String::from("bottleneck")];
        let share = |bulk: u64, short: u64| {
            let run = RunOutput {
                groups: vec![group(bulk, bulk), group(10_000, short), group(0, 0)],
                links: links.clone(),
                ..RunOutput::default()
            };
            worst_share(&resolved.scene(&bottleneck), &run).expect("two hosts want something")
        };
        // Each way 1.5 million bytes were carried. Of three parts of a million the long flow has a quarter, the short one has nine tenths of its wants.
        assert!((share(250_000, 9_000) - 0.25).abs() < 1e-12);
        assert!((share(2_000_000, 9_000) - 0.9).abs() < 1e-12);
        assert!((share(2_000_000, 10_000) - 1.0).abs() < 1e-12);
        assert!(share(2_000_000, 0).abs() < 1e-12);
    }
}
