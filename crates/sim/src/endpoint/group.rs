//! What endpoints and applications of a traffic group share: routes, records, counters.

use super::relay::Onward;
use crate::output::{Datagrams, FlowRecords, Histogram, StreamRecord};
use crate::routing::PathStart;
use crate::spec::NodeId;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

/// A traffic group while it runs.
pub(crate) struct Group {
    /// Chooses pairs.
    pub(crate) pairs: Rng,
    pub(crate) next_pair: u32,
    /// Initial sequence numbers.
    pub(crate) iss: Rng,
    /// Seeds of super-packet identifiers, and what raw packets draw.
    pub(crate) marks: Rng,
    /// Hosts and paths there and back, by pair.
    pub(crate) routes: Vec<Route>,
    /// Conversations so far.
    pub(crate) conversations: u32,
    /// Nothing starts from here on.
    pub(crate) stop: Instant,
    pub(crate) records: FlowRecords,
    /// By record, the stream that it is a part of; of video calls only.
    pub(crate) stream_of_record: Vec<u32>,
    /// What became of datagrams without feedback.
    pub(crate) datagrams: Datagrams,
    pub(crate) delivery_latency: Vec<f64>,
    pub(crate) ack_latency: Vec<f64>,
    pub(crate) cut_off: CutOff,
    /// Packets per group of packets that left together, where super-packets are formed.
    pub(crate) super_packet_length: Histogram,
    pub(crate) streams: Vec<StreamRecord>,
    /// Times that replayed connections took (s).
    pub(crate) connections: Vec<f64>,
    /// Samples of what only its kind measures.
    pub(crate) measures: Vec<Vec<f64>>,
    /// Data packets of its data senders that the network dropped.
    pub(crate) dropped: u64,
    pub(crate) goodput: Bytes,
    pub(crate) goodput_per_connection: Vec<Bytes>,
    pub(crate) pair_of_connection: Vec<u32>,
    /// By actor: its event is to come.
    pub(crate) pending: Vec<bool>,
}

/// When what was waited for in vain began: whether it would have come later, the run does not tell.
#[derive(Default)]
pub(crate) struct CutOff {
    /// Writes that did not arrive.
    pub(crate) writes: Vec<Instant>,
    /// First transmissions of segments that were not acknowledged, of those whose latencies are noted.
    pub(crate) segments: Vec<Instant>,
    /// Replayed connections that did not complete.
    pub(crate) connections: Vec<Instant>,
}

/// A pair of a group: its hosts and how packets go between them.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) hosts: [NodeId; 2],
    pub(crate) paths: [PathStart; 2],
    /// Where packets for its hosts are held before they are handed up.
    pub(crate) receive_queues: [u32; 2],
    /// What ends connections on the way; `paths` are those from the hosts to it.
    pub(crate) relay: Option<Onward>,
}

impl Group {
    /// Flow records and samples of latencies kept so far.
    pub(crate) fn kept(&self) -> [u64; 2] {
        let samples = self.delivery_latency.len() + self.ack_latency.len() + self.connections.len();
        [self.records.len() as u64, samples as u64]
    }

    /// The queue that holds packets for end `side` of a pair.
    pub(crate) fn receive_queue(&self, pair: u32, side: usize) -> u32 {
        self.routes[pair as usize].receive_queues[side]
    }

    /// The event of an actor has come.
    pub(crate) fn event_came(&mut self, actor: u32) {
        if let Some(pending) = self.pending.get_mut(actor as usize) {
            *pending = false;
        }
    }

    /// Whether the event of an actor is to come.
    pub(crate) fn is_event_to_come(&self, actor: u32) -> bool {
        self.pending.get(actor as usize).is_some_and(|pending| *pending)
    }

    pub(crate) fn event_is_to_come(&mut self, actor: u32) {
        let length = self.pending.len().max(actor as usize + 1);
        self.pending.resize(length, false);
        let before = std::mem::replace(&mut self.pending[actor as usize], true);
        debug_assert!(!before, "two events of one actor");
    }
}
