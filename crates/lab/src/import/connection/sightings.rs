//! Packets that stand in a capture twice, later than a copy on the same wire comes.
//!
//! Where captures of two places are merged into one interface (as `mergecap` does unless it is told otherwise), nearly every packet is
//! there twice, the second time by the way between the places later. A sender that retransmits gives the packet another identification, and
//! after a millisecond another timestamp; a packet that is equal in both is the same one. Checksums are not looked at: the
//! sender's own capture may be from before the network card has filled them in.

use crate::import::link_layer::Tcp;
use std::collections::VecDeque;

/// What was seen of the packets of one end.
#[derive(Clone, Debug, Default)]
pub(super) struct Sightings {
    /// Packets that are remembered.
    marks: VecDeque<Mark>,
    packets: u32,
    /// Packets that were looked at, and those that came again.
    pub(super) once: u64,
    pub(super) again: u64,
}

/// Sequence number, ACK, payload, identification and timestamps.
type Mark = (u32, u32, u32, u16, Option<(u32, u32)>);

impl Sightings {
    /// Takes a packet.
    pub(super) fn take(&mut self, tcp: &Tcp) {
        if tcp.payload == 0 || tcp.ip_id == 0 && tcp.timestamps.is_none() {
            return;
        }
        self.packets = self.packets.saturating_add(1);
        // The first ones, and of the others some that the second sighting chooses as well.
        let chosen = tcp.seq.wrapping_mul(2_654_435_769) >> 28 == 0;
        if !chosen && self.packets > 4 * FIRST {
            return;
        }
        let mark = (tcp.seq, tcp.ack, tcp.payload, tcp.ip_id, tcp.timestamps);
        if let Some(place) = self.marks.iter().position(|known| *known == mark) {
            self.marks.remove(place);
            self.again += 1;
        } else if chosen || self.packets <= FIRST {
            self.marks.push_back(mark);
            self.once += 1;
            if self.marks.len() > MOST_MARKS {
                self.marks.pop_front();
            }
        }
    }
}

/// So many of the first packets are remembered, and looked for among four times as many.
const FIRST: u32 = 64;
/// Packets that are remembered.
const MOST_MARKS: usize = 64;
