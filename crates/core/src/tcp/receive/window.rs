//! The window that a receiver offers, and what lies within it.
//!
//! **Source.** RFC 9293 3.8.6.2.2, 3.10.7.4, SHLD-14; RFC 7323 2; Linux 6.18 `tcp_sequence`.
//! **Deviations.** None known.

use crate::packet::{Flags, Segment};
use crate::tcp::config::Config;
use crate::tcp::receive::half::Receive;

impl Receive {
    #[inline]
    pub(in crate::tcp) fn wanted_edge(&self, config: &Config) -> u64 {
        self.read + config.receive_buffer.get()
    }

    /// The window to offer in bytes, and remembers it as offered.
    #[inline]
    pub(in crate::tcp) fn offer(&mut self, config: &Config, mss: u32, scale: u8) -> u64 {
        if let Some(room) = &mut self.room {
            let left = self.edge.saturating_sub(self.rcv_nxt);
            if room.is_tight() {
                self.acking.quick = 0;
            }
            let window = room.offer(left, self.acking.full());
            self.edge = self.rcv_nxt + window;
            return window.min(65_535 << scale);
        }
        let wanted = self.wanted_edge(config);
        let before = self.edge;
        // RFC 9293 3.8.6.2.2: advance only by min(MSS, buffer / 2).
        if wanted >= self.edge + u64::from(mss).min(config.receive_buffer.get() / 2) {
            self.edge = wanted;
        }
        let window = self.window().min(65_535 << scale);
        // The scaled field rounds down, but nothing below what was offered before is taken back.
        self.edge = self.rcv_nxt + window;
        debug_assert!(self.edge >= before, "the right edge never moves left (SHLD-14)");
        window
    }

    /// [`Receive::offer`] while the buffer is all that bounds the window and no FIN is known; `step` is the least by which the
    /// right edge moves.
    #[inline(always)]
    pub(in crate::tcp) fn offer_buffer(&mut self, config: &Config, step: u32, scale: u8) -> u64 {
        let wanted = self.wanted_edge(config);
        debug_assert!(self.edge >= self.rcv_nxt && self.room.is_none(), "{self:?}");
        if wanted < self.edge + u64::from(step) {
            // As it was offered, less what came since.
            return self.edge - self.rcv_nxt;
        }
        let window = (wanted - self.rcv_nxt).min(65_535 << scale);
        self.edge = self.rcv_nxt + window;
        window
    }

    /// Bytes that may still arrive (RCV.WND).
    #[inline]
    pub(in crate::tcp) fn window(&self) -> u64 {
        self.edge.saturating_sub(self.rcv_nxt)
    }

    /// The first check as Linux makes it (`tcp_sequence`): where nothing waits to be read, a segment may go beyond the
    /// window; a FIN needs no room; nothing is old that was not acknowledged (`acked` is the last acknowledgment sent).
    pub(in crate::tcp) fn fits(&self, seq: i64, segment: &Segment, acked: u64) -> bool {
        let end = seq + i64::from(segment.sequence_len());
        let edge = self.edge.max(self.rcv_nxt) as i64;
        let fin = i64::from(segment.flags.contains(Flags::FIN));
        let empty = self.readable() == 0;
        end >= acked as i64 && (end - fin <= edge || (seq <= edge && empty))
    }

    /// RFC 9293 3.10.7.4, first check, on offsets.
    #[inline]
    pub(in crate::tcp) fn acceptable(&self, seq: i64, len: u32) -> bool {
        let (nxt, window) = (self.rcv_nxt as i64, self.window() as i64);
        let inside = |offset: i64| nxt <= offset && offset < nxt + window;
        match (len, window) {
            (0, 0) => seq == nxt,
            // The right edge itself too: a sender that filled the window acknowledges from there (as in Linux).
            (0, _) => inside(seq) || seq == nxt + window,
            (_, 0) => false,
            (_, _) => inside(seq) || inside(seq + i64::from(len) - 1),
        }
    }
}
