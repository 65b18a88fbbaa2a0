//! The window that the peer offers: SND.WND, SND.WL1 and SND.WL2.
//!
//! **Source.** RFC 9293 3.10.7.4, fifth; RFC 7323 2.2.
//! **Deviations.** None known.

use crate::packet::Segment;
use serde::{Deserialize, Serialize};

/// What the peer's segments said of its window. Offsets are those of our stream.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct PeerWindow {
    /// Right edge: SND.UNA + SND.WND when it was offered.
    edge: u64,
    /// Largest window offered so far.
    largest: u64,
    wl1: u64,
    wl2: u64,
}

/// What a window field changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) struct WindowUpdate {
    /// Whether the peer offers another right edge although it acknowledges nothing new.
    pub(in crate::tcp) changed: bool,
    /// Whether the right edge moved to the right.
    pub(in crate::tcp) opened: bool,
}

impl PeerWindow {
    /// Nothing was offered yet.
    pub(in crate::tcp) const NONE: PeerWindow = PeerWindow {
        edge: 1,
        largest: 0,
        wl1: 0,
        wl2: 0,
    };

    /// The window of `bytes` that a SYN offers; `acked`: it acknowledges ours.
    pub(in crate::tcp) fn of_syn(bytes: u64, acked: bool) -> PeerWindow {
        PeerWindow {
            edge: 1 + bytes,
            largest: bytes,
            wl1: 0,
            wl2: u64::from(acked),
        }
    }

    /// The window of `bytes` that the last segment of the handshake offers.
    pub(in crate::tcp) fn open(&mut self, bytes: u64) {
        self.edge = 1 + bytes;
    }

    /// Right edge of the window.
    #[inline(always)]
    pub(in crate::tcp) const fn edge(&self) -> u64 {
        self.edge
    }

    /// Largest window offered so far, bytes.
    #[inline(always)]
    pub(in crate::tcp) const fn largest(&self) -> u64 {
        self.largest
    }

    /// Takes SND.WND from a segment at offset `seq` that acknowledges up to `ack`; `None`: an older segment.
    #[inline(always)]
    pub(in crate::tcp) fn take(
        &mut self,
        segment: &Segment,
        scale: u8,
        seq: u64,
        ack: u64,
    ) -> Option<WindowUpdate> {
        if self.wl1 > seq || (self.wl1 == seq && self.wl2 > ack) {
            return None;
        }
        let window = u64::from(segment.window) << scale;
        let edge = ack + window;
        let update = WindowUpdate {
            changed: edge != self.edge && ack == self.wl2,
            opened: edge > self.edge,
        };
        (self.edge, self.wl1, self.wl2) = (edge, seq, ack);
        if window > self.largest {
            self.largest = window;
        }
        Some(update)
    }
}
