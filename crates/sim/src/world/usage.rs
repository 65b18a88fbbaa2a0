//! What a run holds in memory: looked at when there is too much of it, to name what grew.

use super::World;
use crate::endpoint::Slot;
use crate::network::{Body, LinkSlot, PacketOnWire};
use crate::output::FlowRecord;
use crate::spec::LinkIndex;
use fleetfoot_core::packet::Packet;
use fleetfoot_core::tcp::Connection;

/// What takes most of the memory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// What it is.
    pub holder: Holder,
    /// How many there are.
    pub count: u64,
    /// The memory they take, estimated (bytes).
    pub bytes: u64,
}

/// Things of which a run may hold many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Connections and other conversations of a traffic group that are open; index of the group.
    Open(u32),
    /// Records of flows, and samples of their latencies, of a traffic group; index of the group.
    Records(u32),
    /// Packets that wait for a link, or are on its wire.
    Packets(LinkIndex),
}

impl<O> World<'_, O> {
    /// What takes most of the memory of this run.
    pub(super) fn usage(&self) -> Usage {
        let mut open = vec![0_u64; self.hosts.groups.len()];
        for slot in &self.hosts.slots {
            open[slot.group as usize] += 1;
        }
        // A place that is free belongs to the group that used it last; there are few while memory grows.
        for &free in &self.hosts.free {
            open[self.hosts.slots[free as usize].group as usize] -= 1;
        }
        let open = (0..).zip(open).map(|(group, count)| Usage {
            holder: Holder::Open(group),
            count,
            bytes: count * CONVERSATION_BYTES,
        });
        let records = (0..).zip(&self.hosts.groups).map(|(group, held)| {
            let [flows, samples] = held.kept();
            Usage {
                holder: Holder::Records(group),
                count: flows + samples,
                bytes: flows * size_of::<FlowRecord>() as u64 + samples * size_of::<f64>() as u64,
            }
        });
        let links = (0..)
            .zip(&self.hosts.network.links)
            .zip(self.hosts.network.in_flight());
        let packets = links.map(|((link, place), in_flight)| {
            let count = queued(place) + in_flight;
            Usage {
                holder: Holder::Packets(LinkIndex(link)),
                count,
                bytes: count * (size_of::<Packet>() + size_of::<PacketOnWire>()) as u64,
            }
        });
        let all = open.chain(records).chain(packets);
        all.max_by_key(|usage| usage.bytes).unwrap_or(Usage {
            holder: Holder::Open(0),
            count: 0,
            bytes: 0,
        })
    }
}

fn queued(place: &LinkSlot) -> u64 {
    match &place.body {
        Body::Fifo(_) => 0,
        Body::Link(link) => u64::from(link.backlog().packets),
    }
}

/// An open conversation with both ends (bytes).
pub const CONVERSATION_BYTES: u64 = (size_of::<Slot>() + 2 * size_of::<Connection>()) as u64;
