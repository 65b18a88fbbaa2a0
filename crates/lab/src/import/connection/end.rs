//! What follows from what is known of one end.

use super::{End, Prompt};

impl End {
    /// Bytes of its stream that were seen, without those in holes that are remembered.
    pub(in crate::import) fn seen_bytes(&self) -> u64 {
        let holes: u64 = self.holes.iter().map(|hole| hole.1 - hole.0).sum();
        self.next.saturating_sub(holes)
    }

    pub(super) fn handshake(&mut self, now_ns: u64, half_ns: u64) {
        self.handshake_half_ns.get_or_insert(half_ns);
        self.prompt.get_or_insert(Prompt {
            way_ns: half_ns,
            gap_ns: 0,
            at_ns: now_ns,
        });
        self.half_ns = Some(self.half_ns.map_or(half_ns, |least| least.min(half_ns)));
    }

    /// Payload of a full segment: what was agreed, less the timestamps, or the largest that was seen.
    pub(super) fn full(&self) -> u32 {
        match self.mss {
            Some(mss) => {
                let options = if self.stamps { 12 } else { 0 };
                u32::from(mss).saturating_sub(options).max(1)
            }
            // More than fits into a frame, and no round number of it: segmentation offload.
            None if self.largest > ETHERNET_MSS && self.largest < JUMBO_MSS
                || self.largest > JUMBO_MSS + 52 =>
            {
                ETHERNET_MSS - if self.stamps { 12 } else { 0 }
            }
            None => self.largest.max(1),
        }
    }
}

/// Payload of an Ethernet frame, and of a jumbo frame with timestamps over IPv6.
const ETHERNET_MSS: u32 = 1460;
const JUMBO_MSS: u32 = 8908;
