//! Packets in the network, each in one place from the moment it is sent until it is delivered or dropped.

use fleetfoot_core::packet::{BufId, Packet};

/// Packets by number. Numbers are used again, the last one freed first.
#[derive(Debug)]
pub(crate) struct Slab {
    packets: Vec<Packet>,
    /// The number freed last; the free packet's `buf` says which was freed before.
    free: u32,
}

impl Slab {
    pub(crate) fn new() -> Slab {
        Slab {
            packets: Vec::new(),
            free: NONE,
        }
    }

    /// Stores a packet; its number.
    #[inline(always)]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        let id = self.free;
        if let Some(place) = self.packets.get_mut(id as usize) {
            self.free = place.buf.0;
            *place = packet;
            return id;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
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

    /// Takes a packet out.
    #[inline]
    pub(crate) fn take(&mut self, id: u32) -> Packet {
        let packet = self.packets[id as usize];
        self.free(id);
        packet
    }
}

/// Nothing is free: there are never so many packets.
const NONE: u32 = u32::MAX;
