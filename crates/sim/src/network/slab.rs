//! Packets in the network, each in one place from the moment it is sent until it is delivered or dropped.

use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{BufId, Packet, Segment};
use fleetfoot_core::time::Instant;

/// Packets by number. Numbers are used again, the last one freed first.
#[derive(Debug)]
pub(crate) struct Slab {
    packets: Vec<Packet>,
    /// The number freed last; the free packet's `buf` says which was freed before. The last free one says the number that
    /// would be new.
    free: u32,
}

impl Slab {
    pub(crate) fn new() -> Slab {
        Slab {
            packets: Vec::new(),
            free: 0,
        }
    }

    /// A free place, and its number. A segment may be written there; the number in its `buf`, written over
    /// its own, makes it one in use.
    #[inline(always)]
    pub(crate) fn reserve(&mut self) -> (&mut Packet, &mut u32) {
        if self.free as usize >= self.packets.len() {
            return self.reserve_new();
        }
        (&mut self.packets[self.free as usize], &mut self.free)
    }

    #[cold]
    #[inline(never)]
    fn reserve_new(&mut self) -> (&mut Packet, &mut u32) {
        let next = self.packets.len() as u32 + 1;
        self.packets.extend((next..next + AT_A_TIME).map(|next| Packet {
            enqueued_at: Instant::ZERO,
            flow: FlowId(0),
            buf: BufId(next),
            segment: Segment::default(),
        }));
        (&mut self.packets[self.free as usize], &mut self.free)
    }

    /// Stores a packet; its number.
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        let (place, free) = self.reserve();
        let id = std::mem::replace(free, place.buf.0);
        *place = packet;
        id
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: u32) -> &Packet {
        &self.packets[id as usize]
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Packet {
        &mut self.packets[id as usize]
    }

    /// Gives the number back.
    #[inline(always)]
    pub(crate) fn free(&mut self, id: u32) {
        self.packets[id as usize].buf = BufId(self.free);
        self.free = id;
    }

    /// A packet in use, and the number freed last: this number put there, and that one in the packet's `buf`, give the number
    /// back, while the packet may still be read until another is stored.
    #[inline(always)]
    pub(crate) fn place(&mut self, id: u32) -> (&mut Packet, &mut u32) {
        (&mut self.packets[id as usize], &mut self.free)
    }

    /// Takes a packet out.
    #[inline]
    pub(crate) fn take(&mut self, id: u32) -> Packet {
        let packet = self.packets[id as usize];
        self.free(id);
        packet
    }
}

/// New places are made so many together.
const AT_A_TIME: u32 = 16;
