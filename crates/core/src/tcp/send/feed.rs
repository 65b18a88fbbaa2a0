//! What the application has handed over, and how much of it waits.
//!
//! **Source.** RFC 9293 3.10.2, 3.10.4; `MSG_MORE` and `TCP_CORK` as in Linux.
//! **Deviations.** None known.

use crate::tcp::ack::scoreboard::Scoreboard;
use crate::tcp::send::half::Sender;
use crate::time::{Duration, Instant};

impl Sender {
    /// Something was written: the stream ends before offset `end` now.
    #[inline]
    pub(in crate::tcp) fn on_write(&mut self, end: u64) {
        self.end = end;
    }

    /// The last write, perhaps an empty one, announced `more`, or the stream is `corked`: a partial segment waits.
    #[inline]
    pub(in crate::tcp) fn hold_back(&mut self, more: bool, corked: bool) {
        self.unpushed = more;
        self.more = more || corked;
    }

    /// What is written ends before offset `end`, and if it is `closed` a FIN follows: nothing is held back any more.
    pub(in crate::tcp) fn feed(&mut self, end: u64, closed: bool) {
        self.end = end;
        self.fin_queued = closed;
        self.more &= !closed;
        self.unpushed &= !closed;
    }

    /// Bytes written and not sent.
    #[inline]
    pub(in crate::tcp) fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.nxt)
    }

    #[inline]
    pub(in crate::tcp) fn fin_waits(&self) -> bool {
        self.fin_queued && !self.fin_sent
    }

    /// Segments that what is unsent would make.
    pub(in crate::tcp) fn unsent_segments(&self, mss: u32) -> u64 {
        let unsent = self.unsent();
        let segments = match &self.thin {
            Some(thin) => thin.segments(self.nxt, self.end, mss),
            None => unsent.div_ceil(u64::from(mss)),
        };
        segments + u64::from(unsent == 0 && self.fin_waits())
    }

    /// Whether something is out, or waits for a window.
    pub(in crate::tcp) fn waits(&self) -> bool {
        self.board.out > 0 || self.unsent() > 0 || self.fin_waits()
    }

    /// Whether a FIN was asked for.
    pub(in crate::tcp) const fn is_closed(&self) -> bool {
        self.fin_queued
    }

    /// Whether the peer acknowledged our FIN.
    #[inline(always)]
    pub(in crate::tcp) const fn fin_is_acked(&self) -> bool {
        self.fin_sent && self.una == self.nxt
    }

    /// Time since something was sent.
    pub(in crate::tcp) fn since_sent(&self, now: Instant) -> Duration {
        now.since(self.last_send)
    }

    /// Nothing is sent any more: what was acknowledged is remembered, and the records are freed.
    pub(in crate::tcp) fn stop(&mut self) {
        if !self.board.ring.is_empty() {
            self.board = Scoreboard::default();
        }
        self.board.release();
    }
}
