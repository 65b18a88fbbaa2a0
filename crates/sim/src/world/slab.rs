//! Packets in the network, each in one place from the moment it is sent until it is delivered or dropped.

use fleetfoot_core::packet::Packet;

/// Packets by number. Numbers are used again, the last one freed first.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Slab {
    /// Stores a packet; its number.
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(id) = self.free.pop() {
            self.packets[id as usize] = packet;
            return id;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &Packet {
        &self.packets[id as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Packet {
        &mut self.packets[id as usize]
    }

    /// Gives the number back. The packet can be read until the next [`Slab::insert`].
    #[inline]
    pub(crate) fn free(&mut self, id: u32) {
        self.free.push(id);
    }

    /// Takes a packet out.
    #[inline]
    pub(crate) fn take(&mut self, id: u32) -> Packet {
        self.free.push(id);
        self.packets[id as usize]
    }
}
