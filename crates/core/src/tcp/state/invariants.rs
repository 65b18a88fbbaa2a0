//! What must hold in a connection after every event.
//!
//! Builds with debug assertions (the tests, the fuzz targets) check after every call of the driver. What costs a walk
//! over the scoreboard is done now and then, so that a call costs the same on average whatever the window; in
//! [`Connection::check`] always.
//!
//! - SND.UNA <= SND.NXT <= what was written and the FIN; the records of the scoreboard are those of SND.UNA to SND.NXT
//!   without a gap; its sums, and with them the pipe, are what a recount gives; the SACKed runs agree with the records.
//! - The congestion window is at least one segment; the RTO is within its bounds.
//! - What the application read is not beyond RCV.NXT, and RCV.NXT not beyond the right edge of the window; data beyond a
//!   hole is in order, disjoint and inside the window. (That the edge never moves left is asserted where it is set.)
//! - After a drain a timer runs whenever a SYN or data is out, or data waits and nothing is out (a closed window), or an
//!   acknowledgment is delayed, and in TIME-WAIT; in CLOSED none runs, nor one of the sender when nothing is out or waits.

use crate::tcp::config::DelayedAck;
use crate::tcp::state::timers::Timer;
use crate::tcp::{Connection, Control, State};
use crate::time::Instant;

impl Connection {
    /// Panics if something is wrong inside; `drained`: `poll_transmit` has just said `None`.
    #[track_caller]
    pub fn check(&self, drained: bool) {
        self.check_sums();
        self.check_event(drained);
    }

    /// What a build with debug assertions does after every call.
    #[inline]
    pub(in crate::tcp) fn checked(&self, drained: bool) {
        if cfg!(debug_assertions) {
            if self.recount_is_due() {
                self.check_sums();
            }
            self.check_event(drained);
        }
    }

    /// Once in about a quarter of the records' number of events, spread by a hash of what happened so far.
    fn recount_is_due(&self) -> bool {
        let Some(sender) = &self.sender else { return false };
        let quarter = sender.board.ring.len() as u64 / 4;
        if quarter < 16 {
            return true;
        }
        let stats = &self.shared.stats;
        let seen =
            stats.segments_sent + stats.ack_latency_count + sender.recovery.delivered_total() + sender.una;
        (seen.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).is_multiple_of(quarter)
    }

    fn check_event(&self, drained: bool) {
        let shared = &self.shared;
        if let Some(sender) = &self.sender {
            sender.check(shared, self.written);
        }
        self.receive.check();
        let (rto, bounds) = (shared.rtt.rto(&shared.config.rto), &shared.config.rto);
        assert!(
            rto >= bounds.min.min(bounds.initial)
                && rto <= bounds.max.max(bounds.initial).max(bounds.after_syn_timeout),
            "the RTO is within its bounds: {rto:?}"
        );
        self.check_fast_path();
        if drained {
            self.check_timers();
        }
    }

    fn check_timers(&self) {
        let shared = &self.shared;
        let timers = &shared.timers;
        assert!(self.control == Control::None, "a drain sends what waits");
        match self.state {
            State::Closed => assert!(timers.next().is_none(), "no timer runs in CLOSED: {timers:?}"),
            State::SynSent | State::SynReceived => {
                assert!(timers.armed(), "a timer runs while the SYN is out: {timers:?}");
            }
            State::TimeWait => assert!(timers.slow != Instant::FAR_FUTURE, "TIME-WAIT ends"),
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => {
                if let Some(sender) = &self.sender {
                    assert!(
                        timers.armed() || timers.pace != Instant::FAR_FUTURE || !sender.waits(),
                        "a timer runs while data is out or waits: {:?} out {} unsent {} window {} cwnd {} mss {}",
                        sender.recovery.state(),
                        sender.board.out,
                        sender.unsent(),
                        shared.peer.edge() as i64 - sender.nxt as i64,
                        sender.window(shared),
                        shared.mss
                    );
                }
                let waits = self.sender.as_ref().is_some_and(|sender| sender.waits());
                assert!(
                    waits || !matches!(timers.kind(), Some(Timer::Rto | Timer::Pto | Timer::Persist)),
                    "no timer of the sender runs while nothing is out or waits: {timers:?}"
                );
                let delays = self.shared.config.delayed_ack != DelayedAck::Off;
                assert!(
                    !self.receive.acking.scheduled() || (delays && timers.delays()),
                    "a timer runs while an acknowledgment is delayed"
                );
            }
        }
    }

    fn check_sums(&self) {
        if let Some(sender) = &self.sender {
            sender.board.check_sums();
        }
    }
}
