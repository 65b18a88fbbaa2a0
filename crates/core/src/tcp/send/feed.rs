//! What the application has handed over, and how much of it waits.
//!
//! **Source.** RFC 9293 3.8.6.2.1, 3.10.2, 3.10.4; `MSG_MORE` and `TCP_CORK` as in Linux. Where the FIN goes with `lone_fin`: Linux
//! `tcp_send_fin`.
//! **Deviations.** Nagle's rule is for the last of what was written only, as in Linux (`tcp_write_xmit`); probes and F-RTO do not ask it. Linux short of memory gives the FIN to the last segment that has left, which carries it when it is sent
//! again; memory is not modelled.

use crate::tcp::Shared;
use crate::tcp::ack::scoreboard::Scoreboard;
use crate::tcp::send::half::{Outgoing, Sender};
use crate::tcp::send::offload::GROUP_BYTES;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;

impl Sender {
    /// Something was written: the stream ends before offset `end` now.
    #[inline]
    pub(in crate::tcp) fn on_write(&mut self, end: u64) {
        self.end = end;
    }

    /// A write announced `more`, or the stream is `corked`: a partial segment waits.
    #[inline]
    pub(in crate::tcp) fn hold_back(&mut self, more: bool, corked: bool) {
        self.unpushed = more;
        self.more = more;
        self.corked = corked;
    }

    /// What was written is held back no longer. It keeps its PSH, or has none (Linux `__tcp_sock_set_cork`, `__tcp_sock_set_nodelay`,
    /// `tcp_send_fin`).
    pub(in crate::tcp) fn uncork(&mut self) {
        self.more = false;
        self.corked = false;
    }

    /// Whether a write announced more, and nothing has sent what it held back.
    #[inline(always)]
    pub(in crate::tcp) const fn expects_more(&self) -> bool {
        self.more
    }

    /// `MSG_MORE` is of its own call: what arrives later sends what it held back (Linux `tcp_data_snd_check`).
    pub(in crate::tcp) fn expect_no_more(&mut self) {
        self.more = false;
    }

    /// What is written ends before offset `end`, and if it is `closed` a FIN follows: nothing is held back any more.
    pub(in crate::tcp) fn feed(&mut self, shared: &Shared, end: u64, closed: bool) {
        self.end = end;
        if closed && !self.fin_queued {
            self.fin_queued = true;
            self.fin_apart = shared.config.lone_fin && self.unsent() > 0;
        }
        if closed && !self.fin_apart {
            self.uncork();
        }
    }

    /// The writes before the FIN have sent what they could: the FIN goes along with the last of what still waits, and if
    /// nothing does, in a segment of its own.
    #[cold]
    #[inline(never)]
    pub(super) fn place_fin(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        self.fin_apart = false;
        if self.unsent() == 0 {
            return None;
        }
        self.uncork();
        self.next::<false, false>(now, shared) // a small segment was held back, perhaps, and with FIN it is not
    }

    /// Bytes written and not sent.
    #[inline]
    pub(in crate::tcp) fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.nxt)
    }

    /// Whether so much waits that no more of it makes a difference to the next drain, while nothing is wrong: the window is full
    /// before it has left, and groups for offload are as long as they may be.
    #[inline(always)]
    pub(in crate::tcp) fn has_plenty(&self) -> bool {
        let room = self.cc.window().get().saturating_sub(self.board.out);
        self.unsent() >= room.saturating_add(PLENTY)
    }

    /// [`Sender::new_length`], with its most frequent answer first.
    #[inline(always)]
    pub(in crate::tcp) fn new_or_full_length(&self, shared: &Shared) -> Option<(u32, bool)> {
        if self.thin.is_none() && self.may_send_full(shared) {
            return Some((shared.mss, false));
        }
        self.new_length(shared)
    }

    /// Whether more than a full segment waits, and the peer's window permits one. Nothing bundles or keeps writes apart.
    #[inline(always)]
    pub(in crate::tcp) fn may_send_full(&self, shared: &Shared) -> bool {
        debug_assert!(self.thin.is_none());
        let end = self.nxt + u64::from(shared.mss);
        end < self.end && end <= shared.peer.edge()
    }

    /// Length of the next new segment the peer's window, Nagle and silly-window avoidance permit, and whether the FIN goes along.
    pub(in crate::tcp) fn new_length(&self, shared: &Shared) -> Option<(u32, bool)> {
        self.new_length_if::<false>(shared)
    }

    /// [`Sender::new_length`]. `AT_ONCE`: neither Nagle nor a cork holds anything back.
    #[inline]
    pub(in crate::tcp) fn new_length_if<const AT_ONCE: bool>(&self, shared: &Shared) -> Option<(u32, bool)> {
        let mut unsent = self.unsent();
        let mut last = true; // what is looked at is the end of what was written
        if let Some(thin) = &self.thin {
            let boundary = thin.boundary(self.nxt, self.end);
            last = boundary >= self.end;
            unsent = unsent.min(boundary - self.nxt.min(boundary));
        }
        let usable = shared.peer.edge().saturating_sub(self.nxt);
        let mss = u64::from(shared.mss);
        if unsent == 0 {
            return (self.fin_waits() && usable > 0).then_some((0, true));
        }
        if unsent >= mss && usable >= mss {
            // RFC 9293 3.8.6.2.1 (1): a full segment.
            return Some((
                shared.mss,
                last && self.fin_rides() && unsent == mss && usable > mss,
            ));
        }
        let length = unsent.min(usable).min(mss);
        if length == 0 {
            return None;
        }
        let fin = last && self.fin_rides() && length == unsent && usable > length;
        let idle = self.una == self.nxt;
        let free = idle || !shared.nagle || (shared.config.nagle_minshall && self.small_end <= self.una);
        // (2); what more was written after is not held back (Linux `tcp_write_xmit`: `TCP_NAGLE_PUSH`).
        let pushed = length == unsent && (AT_ONCE || !last || free && !(self.more | self.corked));
        let half = length >= shared.peer.largest() / 2 && length == usable; // (3)
        let grouped = self.group_left > 0 && length == usable && free; // the end of a group (Linux `tcp_mss_split_point`)
        // The last segment is never held back (Linux `tcp_nagle_test`).
        let at_once = self.sws_override || shared.is_urgent(self.una);
        (pushed || fin || half || grouped || at_once).then_some((length as u32, fin))
    }

    #[inline]
    pub(in crate::tcp) fn fin_waits(&self) -> bool {
        self.fin_queued && !self.fin_sent
    }

    /// Whether the FIN leaves with the last of what is unsent.
    #[inline]
    pub(super) fn fin_rides(&self) -> bool {
        self.fin_waits() && !self.fin_apart
    }

    /// Segments that what is unsent before `end` would make.
    pub(super) fn segments_until(&self, end: u64, mss: u32) -> u64 {
        match &self.thin {
            Some(thin) => thin.segments(self.nxt, end, mss),
            None => end.saturating_sub(self.nxt).div_ceil(u64::from(mss)),
        }
    }

    /// Segments that what is unsent would make.
    pub(in crate::tcp) fn unsent_segments(&self, mss: u32) -> u64 {
        let unsent = self.unsent();
        self.segments_until(self.end, mss) + u64::from((unsent == 0 || self.fin_apart) && self.fin_waits())
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

    /// First transmissions of the segments with data that are not acknowledged, if somebody asked for latencies.
    pub(in crate::tcp) fn unacknowledged(&self) -> impl Iterator<Item = Instant> {
        let thin = self.thin.as_ref().filter(|thin| thin.latencies.is_some());
        thin.into_iter().flat_map(|thin| {
            let sent = self.board.ring.iter().filter(|record| record.payload() > 0);
            let sent = sent.map(|record| record.first_tx);
            let joined = self.board.marks.joined.iter().map(|joined| joined.1);
            sent.chain(joined).chain(thin.given_up.iter().copied())
        })
    }

    /// Nothing is sent any more: what was acknowledged is remembered, and the records are freed.
    pub(in crate::tcp) fn stop(&mut self) {
        if self.thin.is_some() {
            let given_up: Vec<Instant> = self.unacknowledged().collect();
            if let Some(thin) = &mut self.thin {
                thin.given_up = given_up;
            }
        }
        if !self.board.ring.is_empty() {
            self.board = Scoreboard::default();
        }
        self.board.release();
    }
}

/// Bytes of several groups for offload.
const PLENTY: u64 = 4 * GROUP_BYTES;
