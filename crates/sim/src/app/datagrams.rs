//! Datagrams: packets of UDP that say when they were sent and what they belong to.

use crate::endpoint::Hosts;
use crate::observe::Observer;
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

impl<O: Observer> Hosts<'_, O> {
    /// A datagram arrives: at the receiver of the data it counts as goodput. Returns its payload; `None`: it is a copy of one that came
    /// before, and counts as nothing.
    pub(super) fn count_datagram(
        &mut self,
        now: Instant,
        slot: u32,
        side: usize,
        segment: &Segment,
    ) -> Option<Bytes> {
        if self.copies.another_counts() {
            return None;
        }
        let bytes = Bytes(u64::from(segment.payload));
        if side == 1 && self.window.contains(now) {
            let place = &self.slots[slot as usize];
            let group = &mut self.groups[place.group as usize];
            group.goodput += bytes;
            group.goodput_per_connection[place.number as usize] += bytes;
        }
        Some(bytes)
    }

    /// Sends the next datagram of a conversation of datagrams.
    pub(super) fn send_datagram(&mut self, now: Instant, slot: u32, payload: u32, record: u32) {
        let place = &mut self.slots[slot as usize];
        if record != crate::endpoint::NONE {
            let mut sent = self.groups[place.group as usize].records.edit(record);
            sent.add_datagrams(1, u64::from(payload));
        }
        let number = place.bytes as u32;
        place.bytes += 1;
        self.send_from(now, slot, 0, datagram(now, number, payload, record));
    }
}

/// A datagram that says when it was sent and what it belongs to.
pub(super) fn datagram(now: Instant, number: u32, payload: u32, record: u32) -> Segment {
    let mut segment = Segment {
        seq: fleetfoot_core::seq::SeqNumber(number),
        payload,
        flags: Flags::DF,
        ttl: 64,
        overhead: UDP_HEADERS,
        ..Segment::default()
    };
    segment.set_kind(Kind::Datagram);
    segment.options[0] = now.as_nanos() as u32;
    segment.options[1] = (now.as_nanos() >> 32) as u32;
    segment.options[2] = record;
    segment
}

/// When a datagram was sent.
pub(super) fn sent_at(segment: &Segment) -> Instant {
    Instant::from_nanos(u64::from(segment.options[0]) | u64::from(segment.options[1]) << 32)
}

/// Payload of a datagram with this many bytes at layer 3.
pub(super) fn payload_of(packet: Bytes) -> u32 {
    (packet.get() as u32)
        .saturating_sub(u32::from(UDP_HEADERS))
        .max(1)
}

/// IPv4 and UDP headers.
pub(super) const UDP_HEADERS: u8 = 28;
