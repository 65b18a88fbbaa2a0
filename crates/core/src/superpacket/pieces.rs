//! Pieces: TCP segments that are larger than a packet, put together again where they arrive.
//!
//! With [`Mode::Segment`](super::group::Mode::Segment) a TCP segment is cut, below TCP, into the packets of one super-packet. The receiving
//! interface hands a segment to TCP when all its packets are there, and throws away what is incomplete: the loss of one packet costs the whole
//! segment, as if it had been one large packet.
//!
//! **Source.** Schinazi, UCB/EECS-2014-80 (2014), sections 1 and 2: losses "at the granularity of a super-packet", with the throughput of
//! the larger MSS; docs/design/super-packets.md#segment. **Deviations.** The report does not say what its simulated sender and receiver do. Ours: pieces
//! are complete TCP packets with sequence numbers of their own, as segmentation offload makes them; an incomplete segment is
//! forgotten when more than [`KEPT`] newer ones have begun.

use super::{Layout, Role};
use crate::packet::{Ecn, Flags, Segment};
use crate::seq::SeqNumber;
use alloc::vec::Vec;

/// Incomplete segments of one flow that are kept. The sender does not draw the identifier of any of its last eight groups.
pub const KEPT: usize = 8;

/// What has arrived of the segments of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Joiner {
    /// In the order in which they began.
    incomplete: Vec<Incomplete>,
}

#[derive(Clone, Debug)]
struct Incomplete {
    id: u16,
    /// Pieces of the whole.
    length: u8,
    /// The first piece, whose headers the segment gets.
    head: Option<Segment>,
    /// First sequence number and payload bytes of each piece.
    pieces: Vec<(SeqNumber, u32)>,
    /// FIN and PSH of any piece.
    ends: Flags,
    congested: bool,
}

impl Joiner {
    /// A packet has arrived: what TCP gets now, if anything. That is the packet itself if it is no piece, and with the last piece of a
    /// segment the segment.
    pub(super) fn on_packet(&mut self, layout: Layout, packet: &Segment) -> Option<Segment> {
        let mark = layout.decode(packet);
        if mark.is_regular() {
            return Some(*packet);
        }
        if packet.flags.contains(Flags::CORRUPT) {
            return None;
        }
        let same = |one: &Incomplete| one.id == mark.id && one.length == mark.length && one.is_near(packet);
        let place = self.incomplete.iter().position(same).unwrap_or_else(|| {
            if self.incomplete.len() == KEPT {
                self.incomplete.remove(0);
            }
            self.incomplete.push(Incomplete {
                id: mark.id,
                length: mark.length,
                head: None,
                pieces: Vec::with_capacity(usize::from(mark.length)),
                ends: Flags::default(),
                congested: false,
            });
            self.incomplete.len() - 1
        });
        let segment = &mut self.incomplete[place];
        segment.take(packet, mark.role);
        if segment.pieces.len() < usize::from(segment.length) {
            return None;
        }
        self.incomplete.remove(place).whole()
    }
}

impl Incomplete {
    /// Whether a packet can be of the same segment: no further away than the announced number of pieces is long.
    fn is_near(&self, packet: &Segment) -> bool {
        let Some(&(seq, payload)) = self.pieces.first() else {
            return true;
        };
        let span = u32::from(self.length) * payload.max(packet.payload);
        let distance = packet.seq.0.wrapping_sub(seq.0);
        distance.min(distance.wrapping_neg()) <= span
    }

    fn take(&mut self, packet: &Segment, role: Role) {
        if self.pieces.iter().any(|&(seq, _)| seq == packet.seq) {
            return; // a copy
        }
        if role == Role::First {
            self.head = Some(*packet);
        }
        self.pieces.push((packet.seq, packet.payload));
        self.ends = self
            .ends
            .with(Flags(packet.flags.0 & (Flags::FIN.0 | Flags::PSH.0)));
        self.congested |= packet.ecn() == Ecn::Ce;
    }

    /// The segment, if its pieces follow one another without a gap.
    fn whole(mut self) -> Option<Segment> {
        let mut segment = self.head?;
        self.pieces
            .sort_unstable_by_key(|&(seq, _)| seq.0.wrapping_sub(segment.seq.0));
        let mut payload = 0;
        for (seq, bytes) in self.pieces {
            if seq.0.wrapping_sub(segment.seq.0) != payload {
                return None;
            }
            payload += bytes;
        }
        segment.payload = payload;
        segment.flags = segment.flags.with(self.ends);
        if self.congested {
            segment.set_ecn(Ecn::Ce); // RFC 3168 5.3: a mark on any fragment
        }
        Some(segment)
    }
}
