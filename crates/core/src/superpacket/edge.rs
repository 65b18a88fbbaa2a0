//! The edge of a domain that uses layout B: no mark leaves it, and none from outside is believed.
//!
//! **Source.** docs/design/super-packets.md#edge; RFC 2474 (a domain's codepoints mean nothing outside), RFC 1624 (checksums).
//! **Deviations.** "Refuse inbound" is done by taking the codepoint away: the packet is forwarded as best effort. What a fragment
//! or a packet that may be fragmented has in its identification is left to reassembly.

use super::Layout;
use crate::packet::{Flags, Segment};
use crate::wire;

/// What an edge router did to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Nothing: it did not carry the domain's codepoint.
    Passed,
    /// The codepoint was cleared, and the identification where it carried a mark.
    Cleared,
}

impl Layout {
    /// What the edge of a domain does to a packet that enters or leaves it. Only layout B has an edge: A cannot distinguish its marks
    /// from other traffic, and C is [`Layout::strip`]ped.
    pub const fn at_edge(self, segment: &mut Segment) -> Edge {
        let Layout::B { dscp } = self else {
            return Edge::Passed;
        };
        if segment.tos >> 2 != dscp {
            return Edge::Passed;
        }
        segment.tos &= 3;
        if segment.flags.contains(Flags::DF) {
            segment.ip_id = 0;
        }
        Edge::Cleared
    }

    /// [`Layout::at_edge`] on the bytes of an IPv4 packet, whose header checksum follows.
    ///
    /// # Errors
    /// The bytes are no IPv4 header; nothing has changed then.
    pub fn at_edge_bytes(self, packet: &mut [u8]) -> Result<Edge, wire::Error> {
        let Some(&[version, tos, _, _, high, low, flags, offset]) = packet.first_chunk::<8>() else {
            return Err(wire::Error::Truncated);
        };
        if version >> 4 != 4 {
            return Err(wire::Error::Version);
        }
        // Do not fragment, no more fragments, no offset (RFC 6864: atomic).
        let atomic = flags & 0x7f == 0x40 && offset == 0;
        let mut segment = Segment {
            tos,
            ip_id: u16::from_be_bytes([high, low]),
            flags: if atomic { Flags::DF } else { Flags::default() },
            ..Segment::default()
        };
        let done = self.at_edge(&mut segment);
        if done == Edge::Cleared {
            wire::remark(packet, segment.tos, segment.ip_id)?;
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::{Edge, Layout};
    use crate::packet::{Flags, Segment};
    use crate::superpacket::Mark;
    use crate::wire;
    use core::net::SocketAddr;
    use proptest::prelude::*;

    const ENDS: ([u8; 4], [u8; 4]) = ([10, 0, 0, 1], [192, 0, 2, 7]);

    fn bytes(segment: &Segment) -> [u8; 60] {
        let mut buffer = [0; 60];
        let (source, destination) = (SocketAddr::from((ENDS.0, 1)), SocketAddr::from((ENDS.1, 2)));
        let len = wire::encode(&mut buffer, segment, source, destination, &[]).expect("it fits");
        assert_eq!(len, 60);
        buffer
    }

    #[test]
    fn a_marked_packet_leaves_as_best_effort() {
        let mut segment = Segment {
            payload: 20,
            overhead: 40,
            tos: 2,
            flags: Flags::ACK.with(Flags::DF),
            ..Segment::default()
        };
        Layout::LOCAL
            .mark(&mut segment, Mark::first(10, 77))
            .expect("a mark of layout B");
        let mut packet = bytes(&segment);
        assert_eq!(Layout::LOCAL.at_edge_bytes(&mut packet), Ok(Edge::Cleared));
        let after = wire::parse(&packet).expect("the checksum is right").segment;
        assert_eq!((after.tos, after.ip_id), (2, 0), "ECT(0) stays");
        assert_eq!(Layout::LOCAL.at_edge_bytes(&mut packet), Ok(Edge::Passed));
        // Another codepoint is somebody else's.
        let mut foreign = bytes(&segment);
        assert_eq!(
            Layout::B { dscp: 11 }.at_edge_bytes(&mut foreign),
            Ok(Edge::Passed)
        );
        assert_eq!(foreign, bytes(&segment));
        assert_eq!(Layout::A.at_edge(&mut segment), Edge::Passed);
        // Neither IPv4 nor whole.
        assert_eq!(
            Layout::LOCAL.at_edge_bytes(&mut [0x60; 40]),
            Err(wire::Error::Version)
        );
        assert_eq!(
            Layout::LOCAL.at_edge_bytes(&mut [0x45; 7]),
            Err(wire::Error::Truncated)
        );
        let mut short = [0x45, 3 << 2, 0, 0, 1, 1, 0x40, 0, 1];
        assert_eq!(
            Layout::LOCAL.at_edge_bytes(&mut short),
            Err(wire::Error::Truncated)
        );
        assert_eq!(short[1], 3 << 2, "nothing has changed");
    }

    proptest! {
        /// Inside and outside: no header passes the edge with a mark, and the checksum stays right.
        #[test]
        fn no_mark_passes((tos, ip_id, atomic, dscp) in (any::<u8>(), any::<u16>(), any::<bool>(), 1_u8..64)) {
            let layout = Layout::B { dscp };
            for tos in [tos, dscp << 2 | tos & 3] {
                let segment = Segment {
                    payload: 20,
                    overhead: 40,
                    tos,
                    ip_id,
                    flags: Flags::ACK.with(if atomic { Flags::DF } else { Flags::default() }),
                    ..Segment::default()
                };
                let mut packet = bytes(&segment);
                let done = layout.at_edge_bytes(&mut packet).expect("IPv4");
                let after = wire::parse(&packet).expect("the checksum is right").segment;
                prop_assert!(layout.decode(&after).is_regular());
                prop_assert!(after.tos >> 2 != dscp);
                prop_assert_eq!(after.tos & 3, tos & 3);
                if !atomic || done == Edge::Passed {
                    prop_assert_eq!(after.ip_id, ip_id, "not ours");
                }
            }
        }
    }
}
