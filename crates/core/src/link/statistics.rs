//! What a link counts.

use crate::packet::{Flags, Kind, Packet};
use crate::queue::{DropReason, QueueEvent, QueueEventKind};
use crate::time::Duration;
use crate::units::Bytes;

/// Counters of a link since its start. Differences of two copies give an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LinkStatistics {
    /// Packets that left the queue.
    pub packets: u64,
    /// Packets with payload that left the queue.
    pub data_packets: u64,
    /// Bytes at layer 3 of the packets that left the queue.
    pub bytes: Bytes,
    /// Time the serialiser was busy, including the whole of the packet being sent.
    pub busy: Duration,
    /// Drops by reason ([`DropReason::ALL`]) and class ([`PacketClass`]).
    pub drops: [[u64; 3]; DropReason::ALL.len()],
    /// Events of the discipline, in the order of [`QueueEventKind::ALL`].
    pub events: [u64; QueueEventKind::ALL.len()],
}

/// How drops are classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketClass {
    /// With payload.
    Data = 0,
    /// A pure acknowledgment.
    Ack = 1,
    /// Everything else: SYN, FIN and RST without payload, feedback, ICMP.
    Other = 2,
}

impl PacketClass {
    /// The class of `packet`.
    #[inline]
    pub const fn of(packet: &Packet) -> PacketClass {
        let segment = &packet.segment;
        const CONTROL: Flags = Flags::SYN.with(Flags::FIN).with(Flags::RST);
        if segment.is_data() {
            PacketClass::Data
        } else if matches!(segment.kind(), Kind::Tcp)
            && segment.flags.contains(Flags::ACK)
            && !segment.flags.intersects(CONTROL)
        {
            PacketClass::Ack
        } else {
            PacketClass::Other
        }
    }
}

impl LinkStatistics {
    /// All drops.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().flatten().sum()
    }

    /// Drops for `reason`, all classes.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize].iter().sum()
    }

    /// How often `kind` happened.
    pub fn count(&self, kind: QueueEventKind) -> u64 {
        self.events[kind as usize]
    }

    #[inline]
    pub(super) fn count_departure(&mut self, packet: &Packet, busy: Duration) {
        self.packets += 1;
        self.data_packets += u64::from(packet.segment.is_data());
        self.bytes += Bytes(u64::from(packet.segment.len()));
        self.busy = Duration::from_nanos(self.busy.as_nanos().saturating_add(busy.as_nanos()));
    }

    pub(super) fn count_repair(&mut self, time: Duration) {
        self.busy = Duration::from_nanos(self.busy.as_nanos().saturating_add(time.as_nanos()));
    }

    pub(super) fn count_drop(&mut self, packet: &Packet, reason: DropReason) {
        self.drops[reason as usize][PacketClass::of(packet) as usize] += 1;
    }

    pub(super) fn count_event(&mut self, event: &QueueEvent) {
        self.events[event.kind as usize] += u64::from(event.count);
    }
}
