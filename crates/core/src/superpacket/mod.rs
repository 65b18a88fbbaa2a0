//! Super-packets: groups of consecutive packets of one flow that routers admit or refuse together.
//!
//! A sender announces the length of the group on its first packet; each member travels as an ordinary packet that carries a
//! [`Mark`]. A router decides on the first packet and abides by it (`queue::SuperPacket`). Where the mark stands in the
//! headers is a [`Layout`]; all decoders are total: any header is some mark.
//!
//! **Source.** Schinazi, "Improving TCP latency with super-packets", UCB/EECS-2014-80 (2014), section 3.2; docs/design/super-packets.md.
//! **Deviations.** Layout A is the report's. Layouts B and C are ours: they leave the ECN field alone, use a field that other
//! traffic does not happen to set, and work with IPv6. Length 1 is a regular packet: it promises nothing.

mod edge;
pub mod group;
mod layout;
pub mod marker;
pub mod pieces;
#[cfg(test)]
mod tests;

pub use edge::Edge;
pub use layout::Layout;

/// What a packet is to a router that knows super-packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// Not a member of a super-packet.
    Regular,
    /// The first member: asks for admission.
    First,
    /// A later member: shares the fate of the first.
    Follower,
}

/// What the headers of one packet say of its super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Place in the super-packet.
    pub role: Role,
    /// Packets of the super-packet, the first one counted; 0 for regular packets, else at least 2.
    pub length: u8,
    /// No more packets will follow, although `length` announced more.
    pub last: bool,
    /// Identifies a super-packet within its flow; 0 for regular packets.
    pub id: u16,
}

impl Mark {
    /// The mark of a packet that belongs to no super-packet.
    pub const REGULAR: Mark = Mark {
        role: Role::Regular,
        length: 0,
        last: false,
        id: 0,
    };

    /// The mark of the first packet of a super-packet of `length` packets.
    pub const fn first(length: u8, id: u16) -> Mark {
        Mark {
            role: Role::First,
            length,
            last: false,
            id,
        }
    }

    /// The mark of a later packet of a super-packet of `length` packets.
    pub const fn follower(length: u8, id: u16) -> Mark {
        Mark {
            role: Role::Follower,
            length,
            last: false,
            id,
        }
    }

    /// This mark with `last` set: the sender stops early.
    #[must_use]
    pub const fn ending(self) -> Mark {
        Mark { last: true, ..self }
    }

    /// Whether it belongs to no super-packet.
    pub const fn is_regular(self) -> bool {
        matches!(self.role, Role::Regular)
    }
}

/// Why a mark cannot be written into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkError {
    /// The length is below 2 or beyond [`Layout::max_length`].
    Length,
    /// The identifier is beyond [`Layout::max_id`].
    Identifier,
    /// The packet may be fragmented: its identification belongs to reassembly (RFC 6864).
    Fragmentable,
    /// The packet carries urgent data, which takes the same field of a `Segment`.
    Urgent,
    /// The headers have no room for eight bytes more.
    Room,
}

impl core::fmt::Display for MarkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            MarkError::Length => "the layout cannot say this length",
            MarkError::Identifier => "the layout cannot say this identifier",
            MarkError::Fragmentable => "the packet may be fragmented, so its identification is taken",
            MarkError::Urgent => "the packet carries urgent data, or TCP options in its place",
            MarkError::Room => "the headers have no room for the option",
        })
    }
}

impl core::error::Error for MarkError {}
