//! Metrics of traffic groups.

use super::flows::{acked_times, completion_times, delivery_times, normalised, rounds, times, until_next};
use super::{Scene, measured_s, metrics, watched};
use crate::statistics::Sample;
use fleetfoot_core::tcp::{Config, Stats};
use fleetfoot_core::time::Duration;
use fleetfoot_sim::output::{Datagrams, FlowRecord, GroupOutput, RunOutput};
use fleetfoot_sim::spec::{Compared, Facts, GroupSpec, Losses, Spec, Traffic};

metrics! {
    /// Fields of a group. Counts are those of one run.
    GroupMetric(run: GroupRun<'_>) {
        /// Completion times.
        Fct = "fct_s" => run.completion_times();
        /// Completion times over those of the same flows in the variant `run.loss_free`.
        NormalisedFct = "more.normalised_fct" => run.normalised();
        /// Times until the last byte is acknowledged, and the ages of flows that should have completed and did not.
        Acked = "acked_s" => acked_times(run.group_spec.traffic.kind(), run.group, run.run);
        /// Latencies of application writes, and the ages of those that had not arrived.
        DeliveryLatency = "delivery_latency_s" => delivery_times(run.group);
        /// Latencies of ACKs, a mean per flow.
        AckLatency = "ack_latency_s" => run.each(FlowRecord::mean_ack_latency);
        /// Goodput per transfer or connection.
        Goodput = "goodput_bps" => run.goodput();
        /// Throughput per connection: layer-3 bits of the data units that arrived in order, per second.
        Throughput = "throughput_bps" => run.throughput();
        /// Share of the data units of the group that the network dropped.
        DropRate = "drop_rate" => run.per_unit(run.group.dropped);
        /// Loss events per data unit: fast recoveries, timeouts and reductions on ECN.
        CongestionEventRate = "congestion_event_rate" => run.per_unit(run.congestion_events());
        /// Loss events.
        CongestionEvents = "congestion_events" => run.congestion_events();
        /// Data units that the network dropped.
        DroppedUnits = "dropped_units" => run.group.dropped;
        /// Flows counted.
        Flows = "flows" => run.group.flows.len() as u64;
        /// Flows that completed.
        Completed = "completed" => run.count(|flow| flow.completed.is_some());
        /// Flows that should have completed and did not.
        Censored = "censored" => run.completion_times().censored.len() as u64;
        /// Writes that had not arrived when the run ended.
        Undelivered = "undelivered" => run.group.delivery_censored.len() as u64;
        /// Tail loss probes that carried new data.
        NewProbes = "new_probes" => run.total(|stats| u64::from(stats.new_probes));
        /// Times from the first transmission of a segment of a thin stream to its ACK, and the ages of those that were not acknowledged.
        SegmentAckLatency = "more.segment_ack_latency_s" => Sample {
            completed: run.group.ack_latency.clone(),
            censored: run.group.ack_latency_censored.clone(),
        };
        /// Longest time from the first transmission of a segment to its ACK, per flow that sent a segment again.
        LongestRecovery = "more.longest_recovery_s" => run.each(|flow| {
            let longest = flow.stats().longest_recovery;
            (longest != Duration::ZERO).then(|| longest.as_secs_f64())
        });
        /// Times of replayed connections from the first SYN to the last payload byte, waiting included, and the ages of those that had not
        /// completed.
        Connection = "more.connection_s" => Sample {
            completed: run.group.connections.clone(),
            censored: run.group.connections_censored.clone(),
        };
        /// Packets that carried older data along (redundant data bundling).
        RdbPackets = "rdb_packets" => run.total(|stats| u64::from(stats.rdb_packets));
        /// Losses that bundles repaired, as far as the sender found them.
        RdbLosses = "rdb_losses" => run.total(|stats| u64::from(stats.rdb_losses));
        /// Bytes that bundles carried along, per byte received.
        Redundancy = "redundancy" => share(run.total(|stats| stats.rdb_bytes), run.received());
        /// Bytes that bundles carried along, per byte received of each flow that bundled.
        FlowRedundancy = "more.redundancy" => run.each(|flow| {
            let carried = flow.stats().rdb_bytes;
            share(carried, flow.received.0).filter(|_| carried > 0)
        });
        /// Payload sent and not received, as a share: what a stream without retransmission lost.
        LossShare = "loss_share" => run.delivered_share().map(|share| 1.0 - share);
        /// Payload received, as a share of the payload sent.
        DeliveredShare = "delivered_share" => run.delivered_share();
        /// Packets of each group of data packets that left together, where super-packets are formed.
        SuperPacketLength = "more.super_packet_length" => (&run.group.super_packet_length, 1.0);
        /// Super-packets sent: groups of two packets and more.
        SuperPackets = "super_packets" => {
            let lengths = run.group.super_packet_length.counts();
            lengths.iter().filter(|pair| pair.0 > 1).map(|pair| pair.1).sum::<u64>()
        };
        /// Loss event rates of TFRC streams, as their receivers computed them last.
        LossEventRate = "more.loss_event_rate" => {
            let streams = run.group.streams.iter();
            Sample::of(streams.map(|stream| stream.loss_event_rate).collect())
        };
        /// Times of rounds of incast: from the first start to the last end.
        Round = "more.round_s" => rounds(run.group_spec, run.group, run.run);
        /// Times of frames and pings, of those that never came until the next one did: what is compared of them.
        UntilNext = "more.until_next_s" => match run.facts().compared {
            Compared::CompletionOfNext => until_next(run.group),
            Compared::Completion | Compared::Delivery => Sample::default(),
        };
        /// Times of the frames that went from `from` to `to`, of calls that go both ways.
        FramesDown = "more.frames_down_s" => run.frames(0);
        /// Times of the frames that went the other way, of calls that go both ways.
        FramesUp = "more.frames_up_s" => run.frames(1);
        /// Share of frames that arrived after the deadline of their call, or never whole.
        LateOrLost = "more.late_or_lost" => run.late_or_lost();
        /// Share of the datagrams that were lost, of kinds that nobody sends again; of pings, that of those without an answer.
        LostShare = "more.lost_share" => run.lost_share();
        /// Share of flows that completed and retransmitted nothing: where a flow is one super-packet, those that stayed whole.
        IntactShare = "intact_share" => {
            let whole = run.count(|flow| flow.completed.is_some() && flow.stats().retransmits == 0);
            share(whole, run.group.flows.len() as u64)
        };
        /// Share of the connections that lost a packet, in each bin in which any did (`run.bins`).
        LossSynchronisation = "loss_synchronisation" => {
            watched::loss_synchronisation(&run.group.watched, bin(run.spec), run.spec.warmup)
        };
        /// Window reductions of bulk connections (`run.bins`).
        Reductions = "reductions" => watched::reductions(&run.group.watched, bin(run.spec), run.spec.warmup);
        /// Losses of the first segments of connections, as a share (`run.bins`).
        FirstSegmentLoss = "first_segment_loss" => watched::first_segments(&run.group.watched);
        /// Losses of segments 2 to 10 of connections, as a share (`run.bins`).
        FirstWindowLoss = "first_window_loss" => watched::first_losses(&run.group.watched, false);
        /// Losses of segments 2 to 10 whose predecessor was lost, as a share (`run.bins`).
        FirstWindowLossAfterLoss = "first_window_loss_after_loss" => watched::first_losses(&run.group.watched, true);
        /// Segments 2 to 10 of connections that got through at first, as a share (`run.bins`).
        FirstWindowThrough = "first_window_through" => watched::first_arrivals(&run.group.watched, false);
        /// Segments 2 to 10 that got through at first, of those whose predecessor was lost, as a share (`run.bins`).
        FirstWindowThroughAfterLoss = "first_window_through_after_loss" => watched::first_arrivals(&run.group.watched, true);
    }
}

impl GroupMetric {
    /// The name under `more` in the result, of metrics that only some groups have.
    pub fn name_in_more(self) -> Option<&'static str> {
        self.name().strip_prefix("more.")
    }

    pub(super) fn needs_bins(self) -> bool {
        matches!(
            self,
            GroupMetric::LossSynchronisation
                | GroupMetric::Reductions
                | GroupMetric::FirstSegmentLoss
                | GroupMetric::FirstWindowLoss
                | GroupMetric::FirstWindowLossAfterLoss
                | GroupMetric::FirstWindowThrough
                | GroupMetric::FirstWindowThroughAfterLoss
        )
    }
}

/// A group in one run.
#[derive(Clone, Copy, Debug)]
pub struct GroupRun<'a> {
    index: usize,
    deadline: Option<Duration>,
    spec: &'a Spec,
    group_spec: &'a GroupSpec,
    group: &'a GroupOutput,
    run: &'a RunOutput,
    twin: Option<&'a RunOutput>,
}

impl<'a> GroupRun<'a> {
    pub(super) fn new(
        scene: &Scene<'a>,
        index: usize,
        run: &'a RunOutput,
        twin: Option<&'a RunOutput>,
    ) -> Option<GroupRun<'a>> {
        Some(GroupRun {
            index,
            deadline: scene.deadlines.get(index).copied().flatten(),
            spec: scene.spec,
            group_spec: scene.spec.groups.get(index)?,
            group: run.groups.get(index)?,
            run,
            twin,
        })
    }

    fn facts(&self) -> &'static Facts {
        self.group_spec.traffic.facts()
    }

    fn completion_times(&self) -> Sample {
        completion_times(self.group_spec.traffic.kind(), self.group, self.run)
    }

    /// Times of the frames of a call's way there (0) or back (1): pairs stand by turns one way and the other.
    fn frames(&self, way: u32) -> Sample {
        match &self.group_spec.traffic {
            Traffic::Video(video) if video.both_ways => {
                let flows = self.group.flows.iter().filter(|flow| flow.pair % 2 == way);
                times(self.group_spec.traffic.kind(), flows, self.run)
            }
            _ => Sample::default(),
        }
    }

    fn normalised(&self) -> Sample {
        let of = |twin| normalised(self.group_spec.traffic.kind(), self.run, twin, self.index);
        self.twin.map_or_else(Sample::default, of)
    }

    fn each(&self, value: impl Fn(&FlowRecord) -> Option<f64>) -> Sample {
        Sample::of(self.group.flows.iter().filter_map(value).collect())
    }

    fn count(&self, of: impl Fn(&FlowRecord) -> bool) -> u64 {
        self.group.flows.iter().filter(|flow| of(flow)).count() as u64
    }

    fn total(&self, counter: impl Fn(&Stats) -> u64) -> u64 {
        self.group.flows.iter().map(|flow| counter(&flow.stats())).sum()
    }

    fn received(&self) -> u64 {
        self.group.flows.iter().map(|flow| flow.received.0).sum()
    }

    fn congestion_events(&self) -> u64 {
        self.total(|stats| u64::from(stats.congestion_events))
    }

    fn delivered_share(&self) -> Option<f64> {
        share(self.received(), self.total(|stats| stats.bytes_sent))
    }

    fn goodput(&self) -> Sample {
        if self.facts().flow_is_connection {
            return self.each(|flow| {
                let fct = flow.completed?.since(flow.start).as_secs_f64();
                (fct > 0.0).then(|| flow.bytes.0 as f64 * 8.0 / fct)
            });
        }
        let shares = self.group.goodput_bytes_per_connection.iter();
        Sample::of(
            shares
                .map(|bytes| bytes.0 as f64 * 8.0 / measured_s(self.spec))
                .collect(),
        )
    }

    fn throughput(&self) -> Sample {
        let unit = unit(&self.group_spec.sender);
        let shares = self.group.goodput_bytes_per_connection.iter();
        let scale = f64::from(unit.len) / f64::from(unit.payload) * 8.0 / measured_s(self.spec);
        Sample::of(shares.map(|bytes| bytes.0 as f64 * scale).collect())
    }

    /// A count per data unit that was sent, as far as it had an end within the measured time: arrived in order or dropped.
    fn per_unit(&self, count: u64) -> Option<f64> {
        let payload = f64::from(unit(&self.group_spec.sender).payload);
        let sent = self.group.goodput_bytes.0 as f64 / payload + self.group.dropped as f64;
        (sent > 0.0).then(|| count as f64 / sent)
    }

    fn late_or_lost(&self) -> Sample {
        let Some(deadline) = self.deadline else {
            return Sample::default();
        };
        self.each(|flow| {
            let in_time = flow.completed.is_some_and(|at| at.since(flow.start) <= deadline);
            Some(f64::from(u8::from(!in_time)))
        })
    }

    fn lost_share(&self) -> Option<f64> {
        let (lost, all) = match self.facts().losses {
            Losses::Datagrams => {
                let Datagrams { arrived, lost } = self.group.datagrams;
                (lost, arrived + lost)
            }
            Losses::Flows => (
                self.count(|flow| flow.completed.is_none()),
                self.group.flows.len() as u64,
            ),
            Losses::Repaired => return None,
        };
        share(lost, all)
    }
}

/// `part` of `all`; `None` of nothing.
fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// Width of the bins in which connections are kept.
pub(super) fn bin(spec: &Spec) -> Duration {
    spec.bins.unwrap_or(spec.duration)
}

/// A full data unit of a group.
#[derive(Clone, Copy)]
struct Unit {
    /// Bytes at layer 3.
    len: u32,
    /// Payload.
    payload: u32,
}

fn unit(config: &Config) -> Unit {
    let options = if config.timestamps { 12 } else { 0 };
    Unit {
        len: config.mtu,
        payload: config.mss().saturating_sub(options).max(1),
    }
}

/// Layer-3 size of the full data units of a group, for slopes over groups.
pub fn unit_bytes(spec: &Spec, index: usize) -> f64 {
    f64::from(unit(&spec.groups[index].sender).len)
}
