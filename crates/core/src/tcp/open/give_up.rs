//! How long to try: retransmissions, zero-window probes, FIN-WAIT-2, and what a closed owner still waits for.
//!
//! Data that is not acknowledged is given up after a number of retransmissions (R2), or, as Linux has it, after the time
//! that so many would have taken had the RTO been 200 ms. `TCP_USER_TIMEOUT` replaces both, also for zero-window probes
//! and keep-alives, and shortens the last RTO so that it is met. An owner that closed both halves has less patience.
//!
//! **Source.** RFC 9293 3.8.3 (MUST-20 to MUST-23), 3.8.6.1 (MUST-37), 3.6.1 (SHLD-3); RFC 5482 1 (the local part of the user
//! timeout); Linux `tcp_write_timeout`, `retransmits_timed_out`, `tcp_probe_timer`, `tcp_orphan_retries`,
//! `tcp_clamp_rto_to_user_timeout`, `tcp_fin_time`.
//! **Deviations.** The time counts from the first timeout, where Linux counts from the first retransmission of any kind.
//! Linux's limits on orphans by memory are not modelled.

use crate::packet::{Flags, Segment};
use crate::tcp::open::attempts::Attempts;
use crate::tcp::{Connection, ConnectionError, Setting, Shared, State};
use crate::time::{Duration, Instant};

impl Shared {
    /// Longest time without an answer, if there is such a limit.
    pub(in crate::tcp) fn user_timeout(&self) -> Option<Duration> {
        let own = self.cold.as_ref().and_then(|cold| cold.user_timeout);
        own.or(self.config.patience.user_timeout)
    }

    /// Time that `boundary` retransmissions take from an RTO of 200 ms on, whatever the floor of this connection's is (Linux
    /// `tcp_model_timeout`, `retransmits_timed_out`).
    fn model_timeout(&self, boundary: u8) -> Duration {
        let (min, max) = (TCP_RTO_MIN, self.config.rto.max);
        let doublings = (max.as_nanos() / min.as_nanos().max(1)).max(1).ilog2();
        let linear = u32::from(boundary).saturating_sub(doublings);
        let doubled = u32::from(boundary).min(doublings);
        min.saturating_mul((2 << doubled) - 1) + max.saturating_mul(u64::from(linear))
    }

    /// Retransmissions an orphan still tries (Linux `tcp_orphan_retries`).
    fn orphan_retries(&self) -> Option<u8> {
        let configured = self.config.patience.orphan_retries.filter(|_| self.orphan)?;
        let alive = self.rtt.rto(&self.config.rto) < self.config.rto.max;
        let unreachable = self.cold.as_ref().is_some_and(|cold| cold.soft_error.is_some());
        Some(match configured {
            _ if unreachable && !alive => 0,
            0 if alive => 8,
            retries => retries,
        })
    }
}

impl Attempts {
    /// Whether the retransmission timer that just fired is the last straw.
    #[cold]
    pub(in crate::tcp) fn retried_enough(self, now: Instant, shared: &Shared) -> bool {
        let patience = &shared.config.patience;
        if self.count == 0 {
            return false;
        }
        let waited = self.waited(now);
        if let Some(limit) = shared.user_timeout() {
            return waited >= limit; // RFC 9293 MUST-21
        }
        let retries = shared.orphan_retries().unwrap_or(shared.config.retries);
        if patience.retries_as_time {
            waited >= shared.model_timeout(retries)
        } else {
            self.count >= retries
        }
    }

    /// The RTO, shortened so that the user timeout is met.
    pub(in crate::tcp) fn clamped_rto(self, now: Instant, shared: &Shared) -> Duration {
        let rto = shared.rtt.rto(&shared.config.rto);
        match shared.user_timeout() {
            Some(limit) => {
                let left = limit.saturating_sub(self.waited(now));
                rto.min(left.max(Duration::from_millis(1)))
            }
            None => rto,
        }
    }

    /// Whether the zero-window probe that is due now, after `unanswered` ones, is one too many. Answered probes do not count
    /// (RFC 9293 MUST-37), but the user timeout and an orphan's patience do not care for answers.
    #[cold]
    pub(in crate::tcp) fn probed_enough(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        unanswered: u8,
    ) -> bool {
        let user = shared.user_timeout();
        let orphan = shared.orphan_retries();
        if let Some(limit) = user {
            let since = *shared.cold_mut().probing_since.get_or_insert(now);
            if unanswered == 0 {
                shared.cold_mut().probing_since = Some(now);
            } else if now.since(since) >= limit {
                return true;
            }
        }
        if unanswered >= orphan.unwrap_or(u8::MAX) || self.count >= orphan.unwrap_or(shared.config.retries) {
            return true;
        }
        self.count = self.count.saturating_add(1);
        false
    }
}

impl Connection {
    /// Both halves are closed: nobody will read what comes, and patience is short.
    pub(in crate::tcp) fn become_orphan(&mut self, now: Instant) {
        self.shared.orphan = true;
        self.watch_fin_wait2(now);
    }

    /// FIN-WAIT-2 does not last for ever when nobody reads (Linux `tcp_fin_timeout`).
    pub(in crate::tcp) fn watch_fin_wait2(&mut self, now: Instant) {
        let own = self.shared.cold.as_ref().and_then(|cold| cold.fin_wait2);
        if self.shared.orphan
            && self.state == State::FinWait2
            && let Some(limit) = own.or(self.shared.config.patience.fin_wait2)
        {
            self.shared.timers.slow = self.shared.expiry(now, limit);
        }
    }

    /// New data for an owner that has closed: RST (RFC 9293 SHLD-3). True if the connection ended.
    #[cold]
    pub(in crate::tcp) fn refuse_late_data(&mut self, segment: &Segment, seq: i64) -> bool {
        let end = seq + i64::from(segment.payload);
        if !self.shared.config.patience.reset_on_unread
            || segment.payload == 0
            || end <= self.receive.rcv_nxt as i64
        {
            return false;
        }
        self.fail(ConnectionError::Aborted);
        self.answer_with_reset(segment.ack);
        true
    }

    /// The reset that answers a stray segment.
    #[cold]
    pub(in crate::tcp) fn reset_answer(&mut self) -> Segment {
        let at = self.shared.cold.as_mut().and_then(|cold| cold.reset_at.take());
        Segment {
            seq: at.unwrap_or(self.shared.iss),
            flags: Flags::RST.with(Flags::DF),
            ttl: 64,
            overhead: self.shared.config.header() as u8,
            ..Segment::default()
        }
    }

    /// What may leave before the handshake is over: an ACK, and data of a Fast Open server (RFC 7413 4.2.2).
    #[cold]
    pub(in crate::tcp) fn transmit_early(
        &mut self,
        now: Instant,
        segment: &mut Segment,
    ) -> Option<(u64, u64)> {
        if self.state == State::SynReceived
            && let Some(sender) = &mut self.sender
        {
            // The slot belongs to the SYN-ACK; data is not retransmitted before it is acknowledged.
            let timers = self.shared.timers.clone();
            let outgoing = sender.next::<false, false>(now, &mut self.shared);
            let (delayed_ack, pace) = (self.shared.timers.delayed_ack, self.shared.timers.pace);
            self.shared.timers = timers;
            (self.shared.timers.delayed_ack, self.shared.timers.pace) = (delayed_ack, pace);
            if let Some(outgoing) = outgoing {
                return Some(self.data_segment::<false, false>(now, outgoing, segment));
            }
        }
        self.pending_ack::<false, false>(now, segment)
    }

    /// Settings that few connections use.
    #[cold]
    pub(in crate::tcp) fn set_cold(&mut self, setting: Setting) {
        let cold = self.shared.cold_mut();
        match setting {
            Setting::UserTimeout(limit) => cold.user_timeout = limit,
            Setting::SynRetries(retries) => cold.syn_retries = Some(retries),
            Setting::MaxSegment(payload) => cold.max_segment = Some(payload),
            Setting::Tos(tos) => cold.tos = Some(tos & !3),
            Setting::Ttl(ttl) => cold.ttl = Some(ttl),
            Setting::FinWait2(limit) => cold.fin_wait2 = Some(limit),
            Setting::KeepAliveValues(values) => cold.keep_alive = Some(values),
            Setting::Nagle(_)
            | Setting::KeepAlive(_)
            | Setting::AutoRead(_)
            | Setting::ClockPhase(_)
            | Setting::HeaderPrediction(_)
            | Setting::NoteLatencies(_)
            | Setting::Path(_)
            | Setting::EcnOption(_)
            | Setting::QuickAck(_) => {}
        }
    }
}

/// The floor of Linux's RTO as it is by default.
const TCP_RTO_MIN: Duration = Duration::from_millis(200);
