//! The window that a receiver offers, and what lies within it.
//!
//! **Source.** RFC 9293 3.8.6.2.2, 3.10.7.4, SHLD-14; RFC 7323 2; Linux 6.18 `tcp_sequence`.
//! **Deviations.** None known.

use crate::packet::{Flags, Segment};
use crate::tcp::config::{Config, DelayedAck};
#[cfg(doc)]
use crate::tcp::fast::FastPath;
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

    /// The window of which quick acknowledgments are counted: in Linux the one offered last (`tcp_incr_quickack`).
    pub(super) fn window_for_quick(&self) -> u64 {
        let room = self.room.as_ref();
        room.map_or_else(|| self.window(), |room| room.offered())
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

    /// Whether a predicted segment of so much `payload` at offset `seq` is what is expected next, within the window and with
    /// nothing beyond it.
    #[inline(always)]
    pub(in crate::tcp) fn is_next(&self, seq: i64, payload: u32) -> bool {
        seq == self.rcv_nxt as i64
            && payload > 0
            && self.beyond_is_empty()
            && self.rcv_nxt + u64::from(payload) <= self.edge
    }

    /// Whether a segment that [is next](Receive::is_next) and is read at once changes nothing but where the stream is, and when to
    /// acknowledge: it is as long as the ones before, and the window stays what it is.
    #[inline(always)]
    pub(in crate::tcp) fn is_plain(&self, config: &Config, segment: &Segment) -> bool {
        self.acking.is_full(segment.payload)
            && match &self.room {
                Some(room) => room.is_plain(segment.payload, u32::from(segment.overhead)),
                None => !self.grows(config),
            }
    }

    /// Whether all data is acknowledged at once, and no receive memory bounds the window.
    pub(in crate::tcp) fn answers(&self, config: &Config) -> bool {
        matches!(config.delayed_ack, DelayedAck::Off) && self.room.is_none()
    }

    /// Whether the window to be offered reaches as far beyond what came in order as the one offered last, for a segment that
    /// [is plain](Receive::is_plain) where each [is answered at once](FastPath::answers). `mss` is our own.
    #[inline(always)]
    pub(in crate::tcp) fn is_as_wide(&self, payload: u32, mss: u32) -> bool {
        // The window that stands was chosen when all was read, too, and a full segment is step enough: see `choose_window`.
        self.standing.is_some() && self.read == self.rcv_nxt && payload >= mss && self.acking.is_full(payload)
    }

    /// Nothing beyond this offset is taken of a segment of so much `payload` at offset `seq`.
    #[inline(always)]
    pub(super) fn limit<const PREDICTED: bool>(&self, seq: i64, payload: u32) -> u64 {
        let before = self.rcv_nxt;
        let fin_at = if PREDICTED { u64::MAX } else { self.fin_at };
        match &self.room {
            None => self.edge.min(fin_at),
            // `tcp_try_rmem_schedule`: there is no memory for it.
            Some(room) if seq > before as i64 && room.is_full() => before,
            // Linux takes a segment whole that it takes, but nothing when the window is shut.
            Some(_) if payload == 0 || (seq < self.edge as i64 && self.edge > before) => fin_at,
            Some(_) => before,
        }
    }
}
