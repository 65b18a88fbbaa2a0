//! Packets in the order of their arrival, with the sum of their bytes: what disciplines of one queue hold.

use super::Backlog;
use crate::packet::Packet;
use crate::units::Bytes;
use alloc::collections::VecDeque;

/// A queue of packets, each with what its discipline wants to know when it leaves.
#[derive(Clone, Debug)]
pub(super) struct Fifo<M = ()> {
    waiting: VecDeque<(Packet, M)>,
    bytes: u64,
}

impl<M> Fifo<M> {
    pub(super) const fn new() -> Fifo<M> {
        Fifo {
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, packet: Packet, mark: M) {
        self.bytes += u64::from(packet.segment.len());
        self.waiting.push_back((packet, mark));
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Packet, M)> {
        let (packet, mark) = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.segment.len());
        Some((packet, mark))
    }

    /// The packet that leaves next.
    #[inline]
    pub(super) fn head(&self) -> Option<&Packet> {
        self.waiting.front().map(|(packet, _)| packet)
    }

    /// Takes the last.
    pub(super) fn pop_last(&mut self) -> Option<(Packet, M)> {
        let (packet, mark) = self.waiting.pop_back()?;
        self.bytes -= u64::from(packet.segment.len());
        Some((packet, mark))
    }

    /// What was pushed with the last that waits.
    #[cfg(test)]
    pub(super) fn last(&self) -> Option<&M> {
        self.waiting.back().map(|(_, mark)| mark)
    }

    /// Packets waiting.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Their bytes at layer 3.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets and bytes.
    #[inline]
    pub(super) fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.len() as u32,
            bytes: Bytes(self.bytes),
        }
    }
}
