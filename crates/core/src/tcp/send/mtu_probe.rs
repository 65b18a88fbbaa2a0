//! Probes for a larger path MTU: when one leaves, what its acknowledgment or its loss does, and segments that are too long.
//!
//! **Source.** As `path::mtu`.
//! **Deviations.** See there.

use crate::tcp::Shared;
use crate::tcp::send::half::{Outgoing, Sender};
use crate::tcp::state::types::CaState;
use crate::time::Instant;
use crate::units::Bytes;

/// Smallest window in segments at which a probe is sent (Linux).
const PROBE_WINDOW: u64 = 11;

impl Sender {
    /// Segments longer than the MSS are to be sent again in pieces, at once and without a reduction (RFC 1191 6.4,
    /// RFC 8201 5.4).
    pub(in crate::tcp) fn cut_long_segments(&mut self, now: Instant, shared: &Shared) {
        if self.board.mark_long_lost(shared.mss) {
            self.resend_without_reduction(now);
        }
    }

    /// Segments have become longer: the window holds one.
    #[cold]
    pub(in crate::tcp) fn hold_a_segment(&mut self, now: Instant, shared: &Shared) {
        let (window, ssthresh) = (self.cc.window(), self.cc.ssthresh());
        if window.get() < u64::from(shared.mss) {
            self.cc.set_window(now, Bytes(u64::from(shared.mss)), ssthresh);
        }
    }

    /// Losses that do not mean congestion (Linux `tcp_non_congestion_loss_retransmit`).
    pub(in crate::tcp) fn resend_without_reduction(&mut self, now: Instant) {
        self.recovery.resend_without_reduction(self.una, self.nxt);
        self.last_send = now;
    }

    /// A probe for a larger MTU, if now is the time (RFC 4821 7.3, 7.4).
    #[cold]
    pub(in crate::tcp) fn mtu_probe(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        let size = shared.next_mtu_probe()?;
        let quiet = self.recovery.state() == CaState::Open && self.board.marks.sacked_segments == 0;
        let unit = self.board.weight(shared.mss).max(1);
        if !quiet || self.window(shared) / unit < PROBE_WINDOW {
            return None;
        }
        let payload = shared.payload_of(size);
        let needed = u64::from(payload) + 4 * u64::from(shared.mss); // what follows shows the loss of the probe
        let room = shared.peer.edge().saturating_sub(self.nxt);
        let fits = self.in_flight(shared) + 2 * unit <= self.window(shared);
        if payload <= shared.mss || self.unsent() < needed || room < needed || !fits {
            return None;
        }
        let start = self.nxt;
        let outgoing = self.transmit::<false, false>(now, shared, payload, false);
        shared.on_mtu_probe(size, start, start + u64::from(payload));
        Some(outgoing)
    }

    /// An acknowledgment: did it cover the probe?
    #[cold]
    pub(in crate::tcp) fn mtu_probe_acked(&mut self, now: Instant, shared: &mut Shared) {
        let Some((before, passed)) = shared.mtu_probe_passed(now, self.una) else {
            return;
        };
        // Linux: the window stays the same in bytes, so it falls in segments.
        let window = self.cc.window().mul_div(u64::from(before), u64::from(passed));
        let ssthresh = self.cc.ssthresh();
        if self.board.weight(1) > 1 {
            self.cc.set_window(now, window, ssthresh);
        }
    }

    /// Something is lost. True if it is the probe: the size does not pass, and that is all (RFC 4821 7.6.2).
    #[cold]
    pub(in crate::tcp) fn mtu_probe_lost(&mut self, now: Instant, shared: &mut Shared) -> bool {
        if !shared.mtu_probe_failed(now, self.una) {
            return false;
        }
        self.board.mark_front_lost();
        self.resend_without_reduction(now);
        true
    }
}
