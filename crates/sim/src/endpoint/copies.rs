//! Datagrams that were doubled on their way: which of their copies counts.

use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::Segment;
use std::collections::BTreeMap;

/// Datagrams of which several copies are, or were, in the network: no more than there are packets in it.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    open: BTreeMap<Key, Copied>,
    another_counts: bool,
}

/// A datagram: its flow, its number, and the begin of its options, in which most say when they were sent.
type Key = (u32, u32, u32);

#[derive(Debug, Default)]
struct Copied {
    /// Copies in the network.
    left: u32,
    /// Whether one has arrived.
    arrived: bool,
}

impl Copies {
    /// A datagram was doubled on the way.
    pub(super) fn on_doubled(&mut self, flow: FlowId, segment: &Segment) {
        let copied = self.open.entry(key(flow, segment)).or_insert(Copied {
            left: 1,
            arrived: false,
        });
        copied.left += 1;
    }

    /// A datagram, or a copy of one, arrives or was dropped.
    #[inline]
    pub(super) fn on_left(&mut self, flow: FlowId, segment: &Segment, arrives: bool) {
        self.another_counts = !self.open.is_empty() && self.settle(key(flow, segment), arrives);
    }

    #[cold]
    fn settle(&mut self, key: Key, arrives: bool) -> bool {
        let Some(copied) = self.open.get_mut(&key) else {
            return false;
        };
        copied.left -= 1;
        let another_counts = copied.arrived || !arrives && copied.left > 0;
        copied.arrived |= arrives;
        if copied.left == 0 {
            self.open.remove(&key);
        }
        another_counts
    }

    /// Of the datagram that arrives, whether a copy of it came before; of one that was dropped, whether a copy has arrived or still may.
    pub(crate) fn another_counts(&self) -> bool {
        self.another_counts
    }
}

fn key(flow: FlowId, segment: &Segment) -> Key {
    (flow.0, segment.seq.0, segment.options[0])
}
