//! Metrics of directed links.

use super::{RunValues, Scene, measured_s, metrics};
use fleetfoot_core::queue::{DropReason, QueueEventKind};
use fleetfoot_sim::output::{Forged, Histogram, LinkOutput};
use std::sync::LazyLock;

metrics! {
    /// Fields of a directed link. Counts are sums over the runs.
    PlainLinkMetric(runs: LinkRuns<'_>) {
        /// Share of time busy.
        Utilisation = "utilisation" => runs.utilisation();
        /// Waiting times.
        QueueDelay = "queue_delay_s" => (runs.histogram(|link| &link.queue_delay), 1e9);
        /// Packets found waiting.
        QueuePackets = "queue_packets" => (runs.histogram(|link| &link.queue_packets), 1.0);
        /// Dropped packets with payload.
        DropsData = "drops.data" => runs.dropped(0);
        /// Dropped acknowledgments.
        DropsAck = "drops.ack" => runs.dropped(1);
        /// Other dropped packets.
        DropsOther = "drops.other" => runs.dropped(2);
        /// Marked packets.
        Marks = "marks" => runs.events(QueueEventKind::Marked as usize);
        /// Data packets that left.
        DataUnits = "data_units" => runs.sum(|link| link.data_packets);
        /// Everything that left, acknowledgments included.
        Units = "units" => runs.sum(|link| link.packets);
        /// Layer-3 bytes that left.
        Bytes = "bytes" => runs.sum(|link| link.bytes.0);
        /// Layer-3 bits that left per second.
        Throughput = "throughput_bps" => runs.sum(|link| link.bytes.0) as f64 * 8.0 / runs.measured_s();
        /// Share of real packets that were delivered more than a millisecond later than by the link; 0 in the simulator.
        Late = "late_share" => runs.late_share();
        /// Most places of its tables that the queue looked at for one packet, from the start of the run, if it has tables.
        MostProbes = "most_probes" => runs.most_probes();
        /// Places kept for followers that packets with the addresses of a victim took, per super-packet that was sent; from the start of the run, on real packets only.
        StolenShare = "stolen_share" => runs.forged(|forged| forged.places);
        /// Super-packets begun anew by a first with the addresses of a victim, per super-packet that was sent; from the start of the run, on real packets only.
        RestartedShare = "restarted_share" => runs.forged(|forged| forged.restarted);
    }
}

/// Fields of a directed link, its counters included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkMetric {
    /// A field.
    Plain(PlainLinkMetric),
    /// Drops for a reason, by its index: `counters.drop_full`.
    Drop(usize),
    /// A queue event, by its index: `counters.marked`.
    Event(usize),
}

impl LinkMetric {
    pub(super) fn parse(word: &str) -> Option<LinkMetric> {
        let counter = || {
            let name = word.strip_prefix("counters.")?;
            let event = QueueEventKind::ALL.iter().position(|kind| kind.name() == name);
            let reason = || {
                let name = name.strip_prefix("drop_")?;
                DropReason::ALL.iter().position(|reason| reason.name() == name)
            };
            event
                .map(LinkMetric::Event)
                .or_else(|| reason().map(LinkMetric::Drop))
        };
        PlainLinkMetric::parse(word)
            .map(LinkMetric::Plain)
            .or_else(counter)
    }

    pub(super) fn of(self, runs: &LinkRuns<'_>) -> RunValues {
        match self {
            LinkMetric::Plain(metric) => metric.of(runs),
            LinkMetric::Drop(reason) => runs.drops(reason).iter().sum::<u64>().into(),
            LinkMetric::Event(kind) => runs.events(kind).into(),
        }
    }
}

/// A directed link in one or more runs.
#[derive(Clone, Copy, Debug)]
pub struct LinkRuns<'a> {
    measured_s: f64,
    links: &'a [&'a LinkOutput],
}

impl<'a> LinkRuns<'a> {
    /// The link with these results.
    pub fn new(scene: &Scene<'_>, links: &'a [&'a LinkOutput]) -> LinkRuns<'a> {
        LinkRuns {
            measured_s: measured_s(scene.spec),
            links,
        }
    }

    /// Drops for the reason with this index: data, pure ACKs, other.
    pub fn drops(&self, reason: usize) -> [u64; 3] {
        let of = |link: &&LinkOutput| link.drops.get(reason).copied().unwrap_or_default();
        let add = |sum: [u64; 3], one: [u64; 3]| [sum[0] + one[0], sum[1] + one[1], sum[2] + one[2]];
        self.links.iter().map(of).fold([0; 3], add)
    }

    /// Queue events of the kind with this index.
    pub fn events(&self, kind: usize) -> u64 {
        self.sum(|link| link.events.get(kind).copied().unwrap_or(0))
    }

    fn most_probes(&self) -> Option<f64> {
        let most = self.links.iter().filter_map(|link| link.most_probes).max();
        most.map(f64::from)
    }

    fn forged(&self, count: fn(&Forged) -> u64) -> Option<f64> {
        let counted = || self.links.iter().filter_map(|link| link.forged.as_ref());
        let sent: u64 = counted().map(|forged| forged.super_packets).sum();
        (sent > 0).then(|| counted().map(count).sum::<u64>() as f64 / sent as f64)
    }

    fn measured_s(&self) -> f64 {
        self.measured_s * self.links.len() as f64
    }

    fn sum(&self, count: impl Fn(&LinkOutput) -> u64) -> u64 {
        self.links.iter().map(|link| count(link)).sum()
    }

    fn dropped(&self, kind: usize) -> u64 {
        self.sum(|link| link.drops.iter().map(|kinds| kinds[kind]).sum())
    }

    fn late_share(&self) -> f64 {
        let real = || self.links.iter().filter_map(|link| link.lateness.as_ref());
        let packets: u64 = real().map(|lateness| lateness.times.n()).sum();
        real().map(|lateness| lateness.late).sum::<u64>() as f64 / packets.max(1) as f64
    }

    fn utilisation(&self) -> f64 {
        let busy: f64 = self.links.iter().map(|link| link.busy.as_secs_f64()).sum();
        match self.links.is_empty() {
            true => 0.0,
            false => busy / self.measured_s(),
        }
    }

    /// Values of the first run: histograms of several runs are kept apart.
    fn histogram(&self, of: impl Fn(&'a LinkOutput) -> &'a Histogram) -> &'a Histogram {
        static NONE: LazyLock<Histogram> = LazyLock::new(Histogram::new);
        self.links.first().map_or(&NONE, |link| of(link))
    }
}
