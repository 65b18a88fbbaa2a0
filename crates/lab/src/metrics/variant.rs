//! Metrics of variants as a whole.

use super::group::bin;
use super::{Scene, hosts, measured_s, metrics, units, watched};
use crate::statistics::{Sample, jain};
use fleetfoot_sim::output::RunOutput;

metrics! {
    /// Fields of a variant. Counts are sums over the runs.
    VariantMetric(runs: VariantRuns<'_>) {
        /// Jain's index of long-lived connections, mean over the runs that have at least two.
        Fairness = "fairness_jain" => runs.fairness();
        /// Data packets that left the bottleneck.
        Delivered = "data_packets_delivered" => runs.delivered();
        /// Payload bytes sent, retransmissions and probes included, per payload byte received.
        BytesSent = "bytes_sent_per_byte_delivered" => runs.bytes_sent();
        /// Headers that hosts sent per payload byte that arrived.
        Headers = "headers_per_byte_delivered" => units::headers_per_byte(runs.scene.spec, runs.runs.iter().copied());
        /// Look-ups of all routers per second.
        Lookups = "lookups_per_s" => runs.lookups_per_s();
        /// Power that look-ups take.
        LookupPower = "lookup_power_w" => runs.lookups_per_s() * units::LOOKUP_J;
        /// Packets dropped at all links.
        LostPackets = "lost_packets" => runs.lost(0..3);
        /// Dropped packets with payload.
        LostDataPackets = "lost_data_packets" => runs.lost(0..1);
        /// Jain's index of the bulk connections that are open: means of five bins, from 8 s after one came or went (`run.bins`).
        SettledFairness = "settled_fairness" => runs.settled_fairness();
        /// What arrived in the measured time, as a share of what a host wanted to send or of an equal part of the bottleneck if that
        /// is less: the smallest over hosts that send nothing raw.
        WorstHost = "worst_host_share" => {
            let shares = runs.runs.iter().filter_map(|run| hosts::worst_share(runs.scene, run));
            shares.reduce(f64::min)
        };
    }
}

/// A variant in one or more runs.
#[derive(Clone, Copy, Debug)]
pub struct VariantRuns<'a> {
    /// What was run.
    pub scene: &'a Scene<'a>,
    /// The results.
    pub runs: &'a [&'a RunOutput],
}

impl VariantRuns<'_> {
    fn fairness(&self) -> Option<f64> {
        let of = |run: &&RunOutput| {
            let groups = self.scene.spec.groups.iter().zip(&run.groups);
            let bulk = groups.filter(|(spec, _)| spec.traffic.facts().greedy);
            let connections = bulk.flat_map(|(_, group)| &group.goodput_bytes_per_connection);
            jain(&connections.map(|bytes| bytes.0 as f64).collect::<Vec<_>>())
        };
        let indices: Vec<f64> = self.runs.iter().filter_map(of).collect();
        (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
    }

    fn settled_fairness(&self) -> Sample {
        let spec = self.scene.spec;
        let of = |run: &&RunOutput| watched::settled_fairness(run, bin(spec), spec.duration).completed;
        Sample::of(self.runs.iter().flat_map(of).collect())
    }

    fn delivered(&self) -> u64 {
        let of = |run: &&RunOutput| -> u64 {
            let links = self.scene.spec.links.iter().zip(&run.links);
            let bottleneck = links.filter(|(spec, _)| self.scene.bottleneck.contains(&spec.name));
            bottleneck.map(|(_, link)| link.data_packets).sum()
        };
        self.runs.iter().map(of).sum()
    }

    fn bytes_sent(&self) -> Option<f64> {
        let flows = || {
            self.runs
                .iter()
                .flat_map(|run| &run.groups)
                .flat_map(|group| &group.flows)
        };
        let sent: u64 = flows().map(|flow| flow.stats().bytes_sent).sum();
        let received: u64 = flows().map(|flow| flow.received.0).sum();
        (sent > 0 && received > 0).then(|| sent as f64 / received as f64)
    }

    fn lookups_per_s(&self) -> f64 {
        let lookups: u64 = self
            .runs
            .iter()
            .map(|run| units::lookups(self.scene.spec, run))
            .sum();
        match self.runs.len() {
            0 => 0.0,
            runs => lookups as f64 / (measured_s(self.scene.spec) * runs as f64),
        }
    }

    /// Packets of some kinds (data, pure ACK, other) dropped at all links.
    fn lost(&self, kinds: std::ops::Range<usize>) -> u64 {
        let links = self.runs.iter().flat_map(|run| &run.links);
        let drops = links.flat_map(|link| &link.drops);
        drops.flat_map(|drops| &drops[kinds.clone()]).sum()
    }
}
