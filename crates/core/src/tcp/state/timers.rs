//! The timer table of a connection.
//!
//! One slot serves everything that concerns unacknowledged data: retransmission (RTO), probe (PTO), reordering (REO),
//! early retransmit (ER), zero-window probe, SYN. They exclude each other (docs/design/endpoint.md#one-timer), so a slot is a deadline
//! and a kind. The other slots are the delayed ACK and the slow timers (keep-alive, TIME-WAIT), which exclude each
//! other too; and pacing. `next` is a minimum of four numbers. What is set for a moment fires at the next one of the host's grid
//! (`grid`).
//!
//! In a run of acknowledgments that are nothing but progress each sets the retransmission slot anew. There the slot is put off: it
//! is set when the run is over, as the last of them would have set it. In a run of data the delay of an acknowledgment is put off,
//! which mostly the next segment makes needless.

use crate::tcp::config::TimerGrid;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// What the retransmission slot waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Timer {
    /// Retransmission timeout (RFC 6298).
    Rto,
    /// Probe timeout of the tail loss probe.
    Pto,
    /// End of RACK's reordering window.
    Reordering,
    /// Delayed early retransmit.
    EarlyRetransmit,
    /// Zero-window probe.
    Persist,
    /// Retransmission of SYN or SYN-ACK.
    Syn,
    /// Delayed acknowledgment.
    DelayedAck,
    /// Keep-alive probe.
    KeepAlive,
    /// End of TIME-WAIT.
    TimeWait,
}

/// Deadlines; `FAR_FUTURE` is "not running".
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Timers {
    /// When the retransmission slot fires.
    retransmission: Instant,
    /// When the RTO itself expires, apart from the host's grid, also while a PTO, REO or ER deadline stands in the slot.
    rto_at: Instant,
    /// Delayed ACK.
    pub(in crate::tcp) delayed_ack: Instant,
    /// Keep-alive or TIME-WAIT.
    pub(in crate::tcp) slow: Instant,
    /// What is held back may leave.
    pub(in crate::tcp) pace: Instant,
    /// When the acknowledgment came that sets the retransmission slot anew, which is put off; `FAR_FUTURE`: it is not.
    acked_at: Instant,
    /// Whether new data left upon it.
    sent_since: bool,
    /// When data came whose acknowledgment is delayed, which is put off; `FAR_FUTURE`: it is not.
    data_at: Instant,
    /// Nothing that is put off is due before this; `FAR_FUTURE`: nothing is put off.
    silent_until: Instant,
    /// The host's count of ticks when its clock was at zero, microseconds. A resting connection leaves it to its host.
    #[serde(skip)]
    phase: u32,
    /// What the retransmission slot waits for.
    kind: Timer,
    /// The RTO was moved since the slot was set.
    moved: bool,
    /// A timer of the host's wheel fires.
    #[serde(skip)]
    ahead: bool,
}

impl Timers {
    pub(in crate::tcp) const fn new() -> Timers {
        Timers {
            retransmission: Instant::FAR_FUTURE,
            rto_at: Instant::FAR_FUTURE,
            delayed_ack: Instant::FAR_FUTURE,
            slow: Instant::FAR_FUTURE,
            pace: Instant::FAR_FUTURE,
            acked_at: Instant::FAR_FUTURE,
            sent_since: false,
            data_at: Instant::FAR_FUTURE,
            silent_until: Instant::FAR_FUTURE,
            phase: 0,
            kind: Timer::Rto,
            moved: false,
            ahead: false,
        }
    }

    /// Reads what segments need; see [`Connection::look_at`](crate::tcp::Connection::look_at).
    #[inline]
    pub(in crate::tcp) fn look_at(&self) -> u64 {
        self.retransmission.as_nanos() ^ self.pace.as_nanos() ^ self.silent_until.as_nanos()
    }

    /// Whether what is set now is set as a timer of the host's wheel fires.
    pub(in crate::tcp) fn fire(&mut self, fires: bool) {
        self.ahead = fires;
    }

    /// The next deadline.
    #[inline]
    pub(in crate::tcp) fn next(&self) -> Option<Instant> {
        debug_assert!(
            !self.is_put_off() && !self.is_delay_put_off(),
            "set when a run is over"
        );
        let at = self
            .retransmission
            .min(self.delayed_ack)
            .min(self.slow)
            .min(self.pace);
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    /// The retransmission slot is to be set as an acknowledgment at `now` sets it, when the run of acknowledgments is over. It does
    /// not fire within `least`.
    #[inline(always)]
    pub(in crate::tcp) fn put_off(&mut self, now: Instant, least: Duration) {
        debug_assert!(self.armed() && !self.is_delay_put_off(), "something is out");
        self.acked_at = now;
        self.sent_since = false;
        self.silent_until = now + least;
    }

    /// New data leaves at the moment of the acknowledgment that put the slot off.
    #[inline(always)]
    pub(in crate::tcp) fn note_sent(&mut self) {
        self.sent_since = true;
    }

    /// Whether new data left since the slot was put off.
    #[inline(always)]
    pub(in crate::tcp) const fn has_sent(&self) -> bool {
        self.sent_since
    }

    /// Whether the retransmission slot is put off.
    #[inline(always)]
    pub(in crate::tcp) fn is_put_off(&self) -> bool {
        self.acked_at != Instant::FAR_FUTURE
    }

    /// Whether the retransmission slot is put off by an acknowledgment at this moment.
    #[inline(always)]
    pub(in crate::tcp) fn is_put_off_at(&self, now: Instant) -> bool {
        self.acked_at == now
    }

    /// When the acknowledgment came that sets the retransmission slot, if that is put off; now it is not any more.
    #[inline(always)]
    pub(in crate::tcp) fn take_put_off(&mut self) -> Option<Instant> {
        self.is_put_off().then(|| {
            self.silent_until = Instant::FAR_FUTURE;
            core::mem::replace(&mut self.acked_at, Instant::FAR_FUTURE)
        })
    }

    /// The acknowledgment of data that came at `now` is to be delayed, as it would be now, when the run of data is over: by `least`
    /// at least.
    #[inline(always)]
    pub(in crate::tcp) fn put_off_delay(&mut self, now: Instant, least: Duration) {
        debug_assert!(self.delayed_ack == Instant::FAR_FUTURE && !self.is_put_off());
        self.data_at = now;
        self.silent_until = now + least;
    }

    /// Whether the delay of an acknowledgment is put off.
    #[inline(always)]
    pub(in crate::tcp) fn is_delay_put_off(&self) -> bool {
        self.data_at != Instant::FAR_FUTURE
    }

    /// When data came whose acknowledgment is delayed, if that is put off; now it is not any more.
    #[inline(always)]
    pub(in crate::tcp) fn take_delay(&mut self) -> Option<Instant> {
        self.is_delay_put_off().then(|| {
            self.silent_until = Instant::FAR_FUTURE;
            core::mem::replace(&mut self.data_at, Instant::FAR_FUTURE)
        })
    }

    /// Whether an acknowledgment is delayed.
    #[inline(always)]
    pub(in crate::tcp) fn delays(&self) -> bool {
        self.delayed_ack != Instant::FAR_FUTURE || self.is_delay_put_off()
    }

    /// No acknowledgment is delayed.
    #[inline(always)]
    pub(in crate::tcp) fn forget_delay(&mut self) {
        self.delayed_ack = Instant::FAR_FUTURE;
        let _ = self.take_delay();
    }

    /// Whether what is put off might be due before `at`.
    #[inline(always)]
    pub(in crate::tcp) fn must_settle_before(&self, at: Instant) -> bool {
        at > self.silent_until
    }

    /// Whether the next deadline is not before `at`; what is put off is none. `RECEIVES`: nothing was ever sent, so that only
    /// acknowledgments and slow timers may wait.
    #[inline(always)]
    pub(in crate::tcp) fn is_silent_before<const RECEIVES: bool>(&self, at: Instant) -> bool {
        debug_assert!(!RECEIVES || !self.armed() && self.pace == Instant::FAR_FUTURE);
        let sends_nothing = RECEIVES || (self.is_put_off() || self.retransmission >= at) && self.pace >= at;
        sends_nothing && self.delayed_ack >= at && self.slow >= at
    }

    /// Where the host's count of ticks stands.
    pub(in crate::tcp) fn set_phase(&mut self, phase: Duration) {
        self.phase = phase.as_micros() as u32;
    }

    /// When a timer set at `now` for `at` fires.
    #[inline(always)]
    pub(in crate::tcp) fn expiry(&self, grid: TimerGrid, now: Instant, at: Instant) -> Instant {
        grid.expiry(Duration::from_micros(u64::from(self.phase)), now, at, self.ahead)
    }

    /// The time from one moment to another as the host counts it.
    pub(in crate::tcp) fn between(&self, grid: TimerGrid, earlier: Instant, later: Instant) -> Duration {
        grid.between(Duration::from_micros(u64::from(self.phase)), earlier, later)
    }

    /// Whether the delayed ACK expires no later than a timer set at `now` for `at`.
    #[cold]
    pub(in crate::tcp) fn acks_within(&self, grid: TimerGrid, now: Instant, at: Instant) -> bool {
        self.delayed_ack <= self.expiry(grid, now, at)
    }

    /// Sets the retransmission slot.
    #[inline]
    pub(in crate::tcp) fn arm(&mut self, grid: TimerGrid, now: Instant, kind: Timer, at: Instant) {
        self.retransmission = self.expiry(grid, now, at);
        self.kind = kind;
        if kind == Timer::Rto {
            self.rto_at = at;
            self.moved = false;
        }
    }

    /// When the RTO itself expires, apart from the host's grid.
    #[inline(always)]
    pub(in crate::tcp) fn rto_at(&self) -> Instant {
        debug_assert!(!self.is_put_off(), "set when it is needed");
        self.rto_at
    }

    /// The RTO expires at another time; the slot is to be set anew.
    #[inline(always)]
    pub(in crate::tcp) fn move_rto(&mut self, at: Instant) {
        self.rto_at = at;
        self.moved = true;
    }

    /// Whether the slot waits for the RTO as it is: a timer that runs is not rounded again.
    #[inline(always)]
    pub(in crate::tcp) fn has_rto(&self) -> bool {
        debug_assert!(!self.is_put_off(), "set when it is needed");
        self.kind == Timer::Rto && !self.moved && self.armed()
    }

    /// Stops the retransmission slot.
    #[inline]
    pub(in crate::tcp) fn disarm(&mut self) {
        self.retransmission = Instant::FAR_FUTURE;
        self.rto_at = Instant::FAR_FUTURE;
    }

    /// Whether the retransmission slot runs.
    #[inline]
    pub(in crate::tcp) fn armed(&self) -> bool {
        self.retransmission != Instant::FAR_FUTURE
    }

    /// Whether the retransmission slot runs and waits for `kind`.
    #[inline]
    pub(in crate::tcp) fn waits_for(&self, kind: Timer) -> bool {
        self.kind == kind && self.armed()
    }

    /// What the retransmission slot waits for, if it runs.
    #[inline]
    pub(in crate::tcp) fn kind(&self) -> Option<Timer> {
        self.armed().then_some(self.kind)
    }

    /// Whether the retransmission slot waits for `kind`, and no other timer runs.
    pub(in crate::tcp) fn is_alone(&self, kind: Timer) -> bool {
        self.waits_for(kind) && self.delayed_ack.min(self.slow).min(self.pace) == Instant::FAR_FUTURE
    }

    /// Whether the retransmission slot waits for `kind`, and waited long enough.
    pub(in crate::tcp) fn is_due(&self, kind: Timer, now: Instant) -> bool {
        self.kind == kind && self.retransmission <= now
    }

    /// The kind that is due, after which the slot is free.
    pub(in crate::tcp) fn take_due(&mut self, now: Instant) -> Option<Timer> {
        debug_assert!(!self.is_put_off(), "set when a run is over");
        if self.retransmission > now || !self.armed() {
            return None;
        }
        self.retransmission = Instant::FAR_FUTURE;
        Some(self.kind)
    }

    /// Stops everything.
    pub(in crate::tcp) fn clear(&mut self) {
        *self = Timers {
            phase: self.phase,
            ..Timers::new()
        };
    }
}
