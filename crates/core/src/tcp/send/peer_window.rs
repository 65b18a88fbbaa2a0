//! The window that the peer offers: SND.WND, SND.WL1 and SND.WL2.
//!
//! **Source.** RFC 9293 3.10.7.4, fifth; RFC 7323 2.2; Linux `tcp_may_update_window`.
//! **Deviations.** A segment that acknowledges new data brings its window whatever its sequence number, as in Linux. By the RFC's rule it does
//! not if data beyond a hole came before it; and a peer whose memory is full (ours or Linux's) takes its window back, so that the sequence
//! number of its own acknowledgments falls behind that data (`tcp_acceptable_seq`): both ends then waited for ever.
//! Where nothing new is acknowledged the RFC's rule stands, as in Linux: a window that such a peer opens while all data is acknowledged is heard
//! of when its sequence numbers have caught up. In the profiles of Linux a segment that repeats sequence and acknowledgment number of the last
//! and offers less, but not nothing, brings no window; kernels before 6.6 did not take a window of zero from it, either.

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
    /// Whether no window before was as large.
    pub(in crate::tcp) largest: bool,
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
        self.largest = self.largest.max(bytes);
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

    /// Whether a segment at offset `seq` that acknowledges nothing beyond `una` brings a window (Linux `tcp_may_update_window`).
    pub(in crate::tcp) fn would_take(&self, segment: &Segment, scale: u8, seq: u64, una: u64) -> bool {
        let window = u64::from(segment.window) << scale;
        seq > self.wl1 || seq == self.wl1 && (window == 0 || una + window > self.edge)
    }

    /// Whether a segment that acknowledges up to `ack` offers less than the last one did, but not nothing.
    #[inline(always)]
    fn offers_less(&self, segment: &Segment, scale: u8, ack: u64) -> bool {
        segment.window > 0 && ack + (u64::from(segment.window) << scale) < self.edge
    }

    /// Takes SND.WND from a segment at offset `seq` that acknowledges up to `ack`; `None`: an older segment, or a repeated one that offers
    /// less and not nothing, where that is not taken (`keeps`).
    #[inline(always)]
    pub(in crate::tcp) fn take(
        &mut self,
        segment: &Segment,
        scale: u8,
        seq: u64,
        ack: u64,
        keeps: impl FnOnce() -> bool,
    ) -> Option<WindowUpdate> {
        if ack <= self.wl2
            && (self.wl1 > seq
                || self.wl1 == seq && (self.wl2 > ack || self.offers_less(segment, scale, ack) && keeps()))
        {
            return None;
        }
        let window = u64::from(segment.window) << scale;
        let edge = ack + window;
        let update = WindowUpdate {
            changed: edge != self.edge && ack == self.wl2,
            opened: edge > self.edge,
            largest: window > self.largest,
        };
        (self.edge, self.wl1, self.wl2) = (edge, seq, ack);
        if update.largest {
            self.largest = window;
        }
        Some(update)
    }
}

#[cfg(test)]
mod tests {
    use super::PeerWindow;
    use crate::packet::Segment;

    /// Takes a window of `bytes`: the right edge then, `None` if it was not taken.
    fn take(peer: &mut PeerWindow, seq: u64, ack: u64, bytes: u16) -> Option<u64> {
        let segment = Segment {
            window: bytes,
            ..Segment::default()
        };
        peer.take(&segment, 0, seq, ack, || false).map(|_| peer.edge())
    }

    #[test]
    fn a_repeated_acknowledgment_with_a_smaller_window_is_news_for_the_rfc_alone() {
        for keeps in [false, true] {
            let mut peer = PeerWindow::of_syn(1000, true);
            let mut take = |seq, ack, window| {
                let segment = Segment {
                    window,
                    ..Segment::default()
                };
                peer.take(&segment, 0, seq, ack, || keeps).map(|_| peer.edge())
            };
            assert_eq!(take(101, 501, 1000), Some(1501));
            assert_eq!(take(101, 501, 999), (!keeps).then_some(1500)); // RFC 9293 3.10.7.4: SND.WL1 = SEG.SEQ, SND.WL2 =< SEG.ACK
            assert_eq!(take(101, 501, 1001), Some(1502));
            assert_eq!(take(101, 501, 0), Some(501));
            assert_eq!(take(102, 501, 900), Some(1401), "a later segment");
            assert_eq!(take(102, 601, 100), Some(701), "new data acknowledged");
        }
    }

    #[test]
    fn new_data_acknowledged_brings_its_window_whatever_the_sequence_number() {
        let mut peer = PeerWindow::of_syn(1000, true);
        // Data beyond a hole; then the peer, whose window is taken back, acknowledges with a lower sequence number.
        assert_eq!(take(&mut peer, 5001, 1, 1000), Some(1001));
        assert_eq!(take(&mut peer, 1, 601, 1000), Some(1601));
        assert_eq!(take(&mut peer, 1, 1601, 1000), Some(2601));
        // The same acknowledgment with more room, from the same place of the peer's stream.
        assert_eq!(take(&mut peer, 1, 1601, 2000), Some(3601));
    }

    #[test]
    fn an_older_segment_brings_nothing() {
        let mut peer = PeerWindow::of_syn(1000, true);
        assert_eq!(take(&mut peer, 101, 501, 1000), Some(1501));
        assert_eq!(take(&mut peer, 1, 501, 4000), None);
        assert_eq!(take(&mut peer, 101, 401, 4000), None);
    }
}
