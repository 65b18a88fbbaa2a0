//! The window that a receiver offers, and what lies within it.
//!
//! **Source.** RFC 9293 3.8.6.2.2, 3.10.7.4, SHLD-14; RFC 7323 2; Linux 6.18 `tcp_sequence`.
//! **Deviations.** None known.

use crate::packet::{Flags, Segment};
use crate::tcp::config::Config;
use crate::tcp::receive::half::Receive;

impl Receive {
    #[inline(always)]
    pub(in crate::tcp) fn wanted_edge(&self, config: &Config) -> u64 {
        self.read + config.receive_buffer.get()
    }

    /// The window to offer, as its field says it, and remembers it as offered.
    #[inline(always)]
    pub(in crate::tcp) fn offer(&mut self, config: &Config, mss: u32, scale: u8) -> u16 {
        if let Some(field) = self.standing {
            if cfg!(debug_assertions) {
                let anew = self.try_offer(config, mss, scale);
                assert_eq!(field, anew, "what is kept is still so");
            }
            return field;
        }
        self.offer_anew(config, mss, scale)
    }

    /// What would be offered if nothing were kept. Everything stays as it is, and nothing is allocated for it.
    fn try_offer(&mut self, config: &Config, mss: u32, scale: u8) -> u16 {
        let (standing, edge, quick) = (self.standing, self.edge, self.acking.quick);
        let kept = self.room.as_deref().cloned();
        let field = self.offer_anew(config, mss, scale);
        (self.standing, self.edge, self.acking.quick) = (standing, edge, quick);
        if let Some((room, kept)) = self.room.as_deref_mut().zip(kept) {
            *room = kept;
        }
        field
    }

    #[inline(always)]
    fn offer_anew(&mut self, config: &Config, mss: u32, scale: u8) -> u16 {
        let (window, stands) = self.choose_window(config, mss, scale);
        let field = (window >> scale) as u16;
        self.standing = stands.then_some(field);
        field
    }

    /// The window to offer in bytes, and whether it stays the same until something is received or read.
    #[inline(always)]
    fn choose_window(&mut self, config: &Config, mss: u32, scale: u8) -> (u64, bool) {
        if let Some(room) = &mut self.room {
            let (left, full) = (self.edge.saturating_sub(self.rcv_nxt), self.acking.full());
            let decided = core::mem::take(&mut room.decided);
            let stands = !decided && room.is_settled(left, full);
            if !decided && !stands {
                self.decide_window::<false>();
            }
            return (self.window().min(65_535 << scale), stands);
        }
        let (wanted, before) = (self.wanted_edge(config), self.edge);
        // RFC 9293 3.8.6.2.2: advance only by min(MSS, buffer / 2).
        if wanted < before + u64::from(mss).min(config.receive_buffer.get() / 2) {
            return (self.window(), false); // as it was offered, less what came since
        }
        // The scaled field rounds down, but nothing below what was offered before is taken back.
        let window = (wanted - self.rcv_nxt.min(wanted)).min(65_535 << scale);
        self.edge = self.rcv_nxt + window;
        debug_assert!(self.edge >= before, "the right edge never moves left (SHLD-14)");
        (window, true)
    }

    /// Decides on the window to offer by what is free now. `PLAIN`: a segment [is plain](Receive::is_plain) that just came.
    #[inline(always)]
    fn decide_window<const PLAIN: bool>(&mut self) {
        self.standing = None;
        let left = self.window();
        let full = self.acking.full();
        if let Some(room) = &mut self.room {
            let (window, tight) = room.offer::<PLAIN>(left, full);
            if !PLAIN && tight {
                self.acking.quick = 0;
            }
            self.edge = self.rcv_nxt + window;
        }
    }

    /// An acknowledgment leaves before the application reads what came: with the window of now.
    #[inline(always)]
    pub(in crate::tcp) fn fix_window<const PLAIN: bool>(&mut self) {
        self.decide_window::<PLAIN>();
        if let Some(room) = &mut self.room {
            room.decided = true;
        }
    }

    /// Bytes that may still arrive (RCV.WND).
    #[inline(always)]
    pub(in crate::tcp) fn window(&self) -> u64 {
        self.edge.saturating_sub(self.rcv_nxt)
    }

    /// The first check as Linux makes it (`tcp_sequence`): where nothing waits to be read, a segment may go beyond the
    /// window; a FIN needs no room; nothing is old that was not acknowledged (`acked` is the last acknowledgment sent).
    #[inline(always)]
    pub(in crate::tcp) fn fits(&self, seq: i64, segment: &Segment, acked: u64) -> bool {
        // What is expected next, within the window: all before it was acknowledged or is about to be.
        if seq == self.rcv_nxt as i64 && (self.rcv_nxt + u64::from(segment.payload)) < self.edge {
            debug_assert!(acked <= self.rcv_nxt);
            return true;
        }
        self.fits_anyhow(seq, segment, acked)
    }

    #[inline(never)]
    fn fits_anyhow(&self, seq: i64, segment: &Segment, acked: u64) -> bool {
        let end = seq + i64::from(segment.sequence_len());
        let edge = self.edge.max(self.rcv_nxt) as i64;
        let fin = i64::from(segment.flags.contains(Flags::FIN));
        let empty = self.readable() == 0;
        end >= acked as i64 && (end - fin <= edge || (seq <= edge && empty))
    }

    /// RFC 9293 3.10.7.4, first check, on offsets.
    #[inline(always)]
    pub(in crate::tcp) fn acceptable(&self, seq: i64, len: u32) -> bool {
        let (ahead, len, window) = (seq - self.rcv_nxt as i64, i64::from(len), self.window() as i64);
        // The right edge itself too: a sender that filled the window acknowledges from there (as in Linux).
        if ahead >= 0 && ahead + len <= window {
            return true;
        }
        let last = ahead + len - 1;
        len > 0 && ((0..window).contains(&ahead) || (0..window).contains(&last))
    }
}
