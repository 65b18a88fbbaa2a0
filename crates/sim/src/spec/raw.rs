//! Parameters of raw packets: trains for attacks on queues, at hosts that have no TCP.

use super::{Bytes, Distribution, Duration, NodeId};
use fleetfoot_core::superpacket::Layout;
use serde::Serialize;

/// Trains of packets for attacks on queues: what a host can send that has no TCP.
#[derive(Clone, Debug, Serialize)]
pub struct Raw {
    /// Seconds between trains.
    pub interarrival: Distribution,
    /// At most this many trains.
    pub count: Option<u64>,
    /// Packets of each train, at least 1.
    pub members: u32,
    /// Time between the packets of a train.
    pub interval: Duration,
    /// Layer-3 bytes per packet.
    pub packet: Bytes,
    /// What the packets claim to be.
    pub mark: RawMark,
    /// Where they say so.
    pub layout: Layout,
    /// Length they declare.
    pub length: u8,
    /// Identifier of every train; `None`: drawn for each.
    pub id: Option<u16>,
    /// The final packet of a train carries `last`.
    pub last: bool,
    /// Who they say sent them.
    pub source: RawSource,
    /// Their ports.
    pub ports: RawPorts,
}

/// What the packets of a train claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RawMark {
    /// Ordinary packets.
    Regular,
    /// Each the first of the same super-packet.
    First,
    /// Each a later packet of a super-packet whose first is not among them.
    Follower,
    /// A first packet and its followers.
    SuperPacket,
}

/// Source address of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RawSource {
    /// The address of the host itself.
    Own,
    /// Drawn for each train from so many addresses that nobody has.
    Drawn(u32),
    /// The address of another host.
    Host(NodeId),
    /// The source address of a connection of this group that is open, drawn for each train, with its destination address; of any pair
    /// of the group if none is open.
    Victim(u32),
}

/// Ports of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RawPorts {
    /// Others for each train.
    New,
    /// The same ports for all trains.
    Same,
    /// Drawn for each train.
    Drawn,
    /// The ports of the victim's connection.
    Known,
    /// Drawn with the identifier until the queue on the way keeps the train in two certain groups of places of its table.
    Colliding,
}
