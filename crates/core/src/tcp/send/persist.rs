//! Zero-window probes: the peer's window stops us, and nothing is out that would be answered.
//!
//! **Source.** RFC 9293 3.8.6.1; with `ZeroWindowProbe::Empty` Linux `tcp_probe0_base`.
//! **Deviations.** None known. What a probe is, an octet or an old sequence number, is a switch.

use crate::tcp::Shared;
use crate::tcp::config::ZeroWindowProbe;
use crate::tcp::send::half::{Outgoing, Sender};
use crate::tcp::state::timers::{Timer, Timers};
use crate::time::{Duration, Instant};

impl Sender {
    /// RFC 9293 3.8.6.1: nothing is out and the peer's window stops us.
    #[inline]
    pub(in crate::tcp) fn await_window(&self, now: Instant, shared: &mut Shared) {
        if self.board.out != 0 || (self.unsent() == 0 && !self.fin_waits()) || shared.timers.armed() {
            return;
        }
        let mut patience = shared.rtt.rto(&shared.config.rto);
        if shared.config.zero_window_probe == ZeroWindowProbe::Empty {
            patience = patience.max(LEAST_PATIENCE);
        }
        let patience = patience.saturating_mul(1 << self.persist_backoff.min(16));
        shared.arm(now, Timer::Persist, now + patience.min(shared.config.rto.max));
    }

    /// RFC 9293 3.8.6.1: one octet beyond the window, or an old sequence number, which is answered too.
    pub(in crate::tcp) fn zero_window_probe(&mut self, shared: &mut Shared) -> Option<Outgoing> {
        if self.board.out != 0 || (self.unsent() == 0 && !self.fin_waits()) {
            return None;
        }
        shared.stats.zero_window_probes += 1;
        if shared.config.zero_window_probe == ZeroWindowProbe::Empty {
            let announces = shared.probe_announces(self.una);
            self.zero_probe_due = announces;
            return Some(Outgoing {
                seq: if announces { self.una } else { self.una - 1 },
                payload: 0,
                fin: false,
                push: false,
                retransmission: false,
                cwr: false,
            });
        }
        self.zero_probe_out = true;
        let payload = u32::from(self.unsent() > 0);
        let fin = payload == 0;
        Some(Outgoing {
            seq: self.nxt,
            payload,
            fin,
            push: false,
            retransmission: false,
            cwr: false,
        })
    }

    /// Bytes of record `index` that the peer's window lets leave again. The first record always may, whole where the window is shut: it is
    /// what asks for the window (RFC 9293 3.8.6, SHLD-16, MAY-7, MUST-35; Linux `__tcp_retransmit_skb`).
    #[inline(always)]
    pub(in crate::tcp) fn may_resend(&self, shared: &Shared, index: usize) -> Option<u32> {
        let record = self.board.ring.get(index)?;
        if record.end() <= shared.peer.edge() {
            return Some(shared.mss);
        }
        self.fits_shrunk_window(shared, record.seq)
    }

    #[cold]
    fn fits_shrunk_window(&self, shared: &Shared, seq: u64) -> Option<u32> {
        match shared.peer.edge().saturating_sub(seq) {
            0 => (seq == self.una).then_some(shared.mss),
            room => Some(room.min(u64::from(shared.mss)) as u32),
        }
    }

    /// Whether the octet of a zero-window probe is out.
    #[inline(always)]
    pub(in crate::tcp) const fn is_probing_window(&self) -> bool {
        self.zero_probe_out
    }

    /// Whether a probe is due, of a loss or of a shut window.
    #[inline(always)]
    pub(in crate::tcp) const fn probes_soon(&self) -> bool {
        self.probe_due | self.zero_probe_due
    }

    /// Whether what arrives next is looked at for more than it acknowledges: the octet of a zero-window probe is out or leaves next, or
    /// what a write held back leaves.
    #[inline(always)]
    pub(in crate::tcp) const fn watches_arrivals(&self) -> bool {
        self.zero_probe_out | self.zero_probe_due | self.more
    }

    /// Zero-window probes since the window shut.
    pub(in crate::tcp) fn zero_probes(&self) -> u8 {
        self.persist_backoff
    }

    /// The persist timer fired.
    pub(in crate::tcp) fn on_persist(&mut self, shared: &Shared) {
        if shared.peer.edge() > self.nxt {
            self.persist_backoff = 0; // data leaves, and is waited for as any other (Linux `tcp_send_probe0`)
            self.sws_override = true; // RFC 9293 3.8.6.2.1 (4)
        } else {
            self.persist_backoff = (self.persist_backoff + 1).min(16);
            self.zero_probe_due = true;
        }
    }

    /// The peer acknowledged a zero-window probe.
    pub(in crate::tcp) fn accept_probe(&mut self, timers: &mut Timers) {
        self.zero_probe_out = false;
        if self.unsent() == 0 {
            self.fin_sent = true;
        }
        self.nxt += 1;
        self.una = self.nxt;
        if self.unsent() == 0 && !self.fin_waits() {
            timers.disarm(); // no window is awaited any more
        }
    }

    /// The peer answered; if its window `opened`, probing starts anew next time. Linux counts the next interval from the answer, and starts
    /// anew where the window has room for the next segment (`tcp_ack_probe`).
    pub(in crate::tcp) fn on_window_answer(&mut self, shared: &mut Shared, opened: bool) {
        let as_linux = shared.config.zero_window_probe == ZeroWindowProbe::Empty;
        let next = self.unsent().clamp(1, u64::from(shared.mss));
        let opened = if as_linux {
            self.nxt + next <= shared.peer.edge()
        } else {
            opened
        };
        if opened || as_linux {
            shared.timers.disarm();
        }
        if opened {
            self.persist_backoff = 0;
        }
        self.attempts.forget();
    }
}

/// Linux waits no less for a window, however short the timeout may be (`tcp_probe0_base`: `TCP_RTO_MIN`).
const LEAST_PATIENCE: Duration = Duration::from_millis(200);
