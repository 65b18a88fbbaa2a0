//! Packets of many FIFO queues in one pool: no allocation per packet once the pool has grown to the largest backlog.

use super::Backlog;
use crate::packet::Packet;
use crate::units::Bytes;
use alloc::vec::Vec;

/// "No slot": the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Slots for packets, linked into lists and a free list.
#[derive(Clone, Debug)]
pub(super) struct PacketPool {
    slots: Vec<Slot>,
    free: u32,
    total: Backlog,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    packet: Packet,
    /// Towards the tail; also links free slots.
    next: u32,
    /// Towards the head.
    previous: u32,
}

/// One FIFO queue in a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketList {
    head: u32,
    tail: u32,
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

impl PacketPool {
    pub(super) const fn new() -> PacketPool {
        PacketPool {
            slots: Vec::new(),
            free: NONE,
            total: Backlog {
                packets: 0,
                bytes: Bytes::ZERO,
            },
        }
    }

    /// Packets and bytes of all lists.
    pub(super) const fn total(&self) -> Backlog {
        self.total
    }

    pub(super) fn push(&mut self, list: &mut PacketList, packet: Packet) {
        let len = u64::from(packet.segment.len());
        let entry = Slot {
            packet,
            next: NONE,
            previous: list.tail,
        };
        let slot = if self.free == NONE {
            self.slots.push(entry);
            (self.slots.len() - 1) as u32
        } else {
            let slot = self.free;
            self.free = self.slots[slot as usize].next;
            self.slots[slot as usize] = entry;
            slot
        };
        if list.tail == NONE {
            list.head = slot;
        } else {
            self.slots[list.tail as usize].next = slot;
        }
        list.tail = slot;
        list.packets += 1;
        list.bytes += len;
        self.total.packets += 1;
        self.total.bytes += Bytes(len);
    }

    /// Takes the head.
    pub(super) fn pop(&mut self, list: &mut PacketList) -> Option<Packet> {
        if list.head == NONE {
            return None;
        }
        let slot = list.head;
        list.head = self.slots[slot as usize].next;
        if list.head == NONE {
            list.tail = NONE;
        } else {
            self.slots[list.head as usize].previous = NONE;
        }
        Some(self.release(list, slot))
    }

    /// Moves all of `from` behind the tail of `list`.
    pub(super) fn append(&mut self, list: &mut PacketList, from: &mut PacketList) {
        let moved = core::mem::replace(from, PacketList::EMPTY);
        if moved.head == NONE {
            return;
        }
        if list.tail == NONE {
            list.head = moved.head;
        } else {
            self.slots[list.tail as usize].next = moved.head;
            self.slots[moved.head as usize].previous = list.tail;
        }
        list.tail = moved.tail;
        list.packets += moved.packets;
        list.bytes += moved.bytes;
    }

    /// Takes the tail.
    pub(super) fn pop_tail(&mut self, list: &mut PacketList) -> Option<Packet> {
        if list.tail == NONE {
            return None;
        }
        let slot = list.tail;
        list.tail = self.slots[slot as usize].previous;
        if list.tail == NONE {
            list.head = NONE;
        } else {
            self.slots[list.tail as usize].next = NONE;
        }
        Some(self.release(list, slot))
    }

    /// Frees a slot that was unlinked from `list`.
    fn release(&mut self, list: &mut PacketList, slot: u32) -> Packet {
        let packet = self.slots[slot as usize].packet;
        self.slots[slot as usize].next = self.free;
        self.free = slot;
        let len = u64::from(packet.segment.len());
        list.packets -= 1;
        list.bytes -= len;
        self.total.packets -= 1;
        self.total.bytes -= Bytes(len);
        packet
    }

    /// The tail.
    pub(super) fn tail(&self, list: &PacketList) -> Option<&Packet> {
        self.slots.get(list.tail as usize).map(|slot| &slot.packet)
    }

    /// Length of the head in bytes.
    pub(super) fn head_len(&self, list: &PacketList) -> Option<u32> {
        self.slots
            .get(list.head as usize)
            .map(|slot| slot.packet.segment.len())
    }
}

impl PacketList {
    pub(super) const EMPTY: PacketList = PacketList {
        head: NONE,
        tail: NONE,
        packets: 0,
        bytes: 0,
    };
}
