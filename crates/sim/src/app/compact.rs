//! Small forms of what every persistent connection has and few use at a time: an idle flow should be cheap.

use fleetfoot_core::rng::{Distribution, Rng, Sampler};
use fleetfoot_core::tcp::Stats;
use std::collections::VecDeque;

/// A source of values; one that is constant needs no stream.
pub(super) enum Draw {
    Constant(f64),
    Random(Box<Sampler>),
}

impl Draw {
    pub(super) fn new(distribution: &Distribution, stream: impl FnOnce() -> Rng) -> Draw {
        match distribution {
            Distribution::Constant(value) => Draw::Constant(*value),
            other => Draw::Random(Box::new(Sampler::new(other.clone(), stream()))),
        }
    }

    pub(super) fn sample(&mut self) -> f64 {
        match self {
            Draw::Constant(value) => *value,
            Draw::Random(sampler) => sampler.sample(),
        }
    }
}

/// A queue that takes a word while it is empty.
#[expect(clippy::box_collection, reason = "a word, not four, while it is empty")]
pub(super) struct Queue<T>(Option<Box<VecDeque<T>>>);

impl<T> Queue<T> {
    pub(super) const fn new() -> Queue<T> {
        Queue(None)
    }

    pub(super) fn push_back(&mut self, value: T) {
        self.0.get_or_insert_default().push_back(value);
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        let queue = self.0.as_mut()?;
        let value = queue.pop_front();
        if queue.is_empty() {
            self.0 = None; // idle for long, maybe
        }
        value
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.0.as_ref()?.front()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()?.front_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|queue| queue.iter())
    }

    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}

/// Counters of a connection that were given to a record; those of losses only if there was any.
pub(super) struct Counted {
    bytes_sent: u64,
    ack_latency_ns: u64,
    ack_latency_count: u32,
    segments_sent: u32,
    losses: Option<Box<LossCounters>>,
}

#[derive(Default, PartialEq)]
struct LossCounters {
    redundant_bytes: u64,
    retransmits: u32,
    timeouts: u32,
    congestion_events: u32,
    spurious_timeouts: u32,
    probes: u32,
    new_probes: u32,
    spurious_probes: u32,
    rdb_packets: u32,
    rdb_losses: u32,
    rdb_bytes: u64,
}

impl Counted {
    /// Nothing was given to a record.
    pub(super) const NOTHING: Counted = Counted {
        bytes_sent: 0,
        ack_latency_ns: 0,
        ack_latency_count: 0,
        segments_sent: 0,
        losses: None,
    };

    /// Everything the sender has counted, and what the receiver received twice.
    pub(super) fn new(sender: &Stats, redundant_bytes: u64) -> Counted {
        let losses = LossCounters {
            redundant_bytes,
            retransmits: sender.retransmits,
            timeouts: sender.timeouts,
            congestion_events: sender.congestion_events,
            spurious_timeouts: sender.spurious_timeouts,
            probes: sender.probes,
            new_probes: sender.new_probes,
            spurious_probes: sender.spurious_probes,
            rdb_packets: sender.rdb_packets,
            rdb_losses: sender.rdb_losses,
            rdb_bytes: sender.rdb_bytes,
        };
        Counted {
            bytes_sent: sender.bytes_sent,
            ack_latency_ns: sender.ack_latency_sum.as_nanos(),
            ack_latency_count: sender.ack_latency_count as u32,
            segments_sent: sender.segments_sent as u32,
            losses: (losses != LossCounters::default()).then(|| Box::new(losses)),
        }
    }

    /// These counters as those of a connection.
    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats {
            bytes_sent: self.bytes_sent,
            ack_latency_sum: fleetfoot_core::time::Duration::from_nanos(self.ack_latency_ns),
            ack_latency_count: u64::from(self.ack_latency_count),
            segments_sent: u64::from(self.segments_sent),
            ..Stats::default()
        };
        if let Some(losses) = &self.losses {
            stats.redundant_bytes = losses.redundant_bytes;
            stats.retransmits = losses.retransmits;
            stats.timeouts = losses.timeouts;
            stats.congestion_events = losses.congestion_events;
            stats.spurious_timeouts = losses.spurious_timeouts;
            stats.probes = losses.probes;
            stats.new_probes = losses.new_probes;
            stats.spurious_probes = losses.spurious_probes;
            stats.rdb_packets = losses.rdb_packets;
            stats.rdb_losses = losses.rdb_losses;
            stats.rdb_bytes = losses.rdb_bytes;
        }
        stats
    }
}
