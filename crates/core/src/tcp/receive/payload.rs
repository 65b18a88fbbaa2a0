//! The payload of a segment: what is taken of it, and when that is acknowledged.
//!
//! A segment that is next and plain takes the shortest step; one that is next, one of disorder and any other have a function each.
//!
//! **Source.** RFC 9293 3.10.7.4, seventh and eighth; RFC 5681 4.2.
//! **Deviations.** Where the window follows memory as in Linux, data beyond the peer's FIN is ignored, and a segment that begins before
//! the FIN and ends beyond it resets the connection (`tcp_rcv_state_process`); by the RFC both are only acknowledged.

use crate::packet::{Flags, Segment};
use crate::tcp::receive::half::Taken;
use crate::tcp::{Accepted, Connection, ConnectionError, Event, State};
use crate::time::Instant;

impl Connection {
    /// The payload and the FIN of an acceptable segment at offset `seq`, which is not a predicted one that is next.
    #[inline(always)]
    pub(in crate::tcp) fn on_payload<const PREDICTED: bool>(
        &mut self,
        now: Instant,
        segment: &Segment,
        seq: i64,
    ) -> Accepted {
        let (start, end) = if PREDICTED && self.shared.fast.answers() {
            self.take_disorder::<true>(now, segment, seq)
        } else if PREDICTED {
            self.take_disorder::<false>(now, segment, seq)
        } else {
            self.take_payload::<false, false, false, false>(now, segment, seq)
        };
        let in_order = if PREDICTED {
            self.receive.rcv_nxt - 1
        } else {
            self.received()
        };
        Accepted { start, end, in_order }
    }

    /// A predicted segment that [is next](crate::tcp::receive::half::Receive::is_next).
    #[inline(always)]
    pub(in crate::tcp) fn take_predicted<const RECEIVES: bool>(
        &mut self,
        now: Instant,
        segment: &Segment,
        seq: i64,
    ) -> Accepted {
        let shared = &self.shared;
        let plain = || self.auto_read && self.receive.is_plain(&shared.config, segment);
        let (start, end) =
            if RECEIVES && shared.fast.answers() && self.receive.is_as_wide(segment.payload, shared.mss) {
                debug_assert!(plain());
                self.take_payload::<true, true, true, true>(now, segment, seq)
            } else if !plain() {
                self.take_next(now, segment, seq)
            } else if RECEIVES {
                self.take_payload::<true, true, true, false>(now, segment, seq)
            } else {
                self.take_plain(now, segment, seq)
            };
        let in_order = self.receive.rcv_nxt - 1;
        Accepted { start, end, in_order }
    }

    /// A plain segment at an end that sends as well.
    #[inline(never)]
    fn take_plain(&mut self, now: Instant, segment: &Segment, seq: i64) -> (u64, u64) {
        self.take_payload::<true, true, true, false>(now, segment, seq)
    }

    /// A predicted segment that is next, but not plain.
    #[inline(never)]
    fn take_next(&mut self, now: Instant, segment: &Segment, seq: i64) -> (u64, u64) {
        self.take_payload::<true, true, false, false>(now, segment, seq)
    }

    /// A predicted segment that is not in order, or leaves or has left a hole. `ANSWERED`: as in [`Connection::take_payload`].
    #[inline(never)]
    fn take_disorder<const ANSWERED: bool>(
        &mut self,
        now: Instant,
        segment: &Segment,
        seq: i64,
    ) -> (u64, u64) {
        self.take_payload::<true, false, false, ANSWERED>(now, segment, seq)
    }

    /// Takes a payload: the stream offsets that were taken. `NEXT`: it is predicted, and what is expected next ([`Receive::is_next`](crate::tcp::receive::half::Receive::is_next)).
    /// `PLAIN`: it also [is plain](crate::tcp::receive::half::Receive::is_plain), and read at once. `ANSWERED`:
    /// [it is answered at once](crate::tcp::fast::FastPath::answers), and if it is plain, by
    /// [a window as wide as before](crate::tcp::receive::half::Receive::is_as_wide).
    #[inline(always)]
    fn take_payload<const PREDICTED: bool, const NEXT: bool, const PLAIN: bool, const ANSWERED: bool>(
        &mut self,
        now: Instant,
        segment: &Segment,
        seq: i64,
    ) -> (u64, u64) {
        if !PLAIN && !ANSWERED {
            self.settle_delay();
        }
        let open = PREDICTED || matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        if !open {
            self.take_after_fin(segment, seq);
            return (self.received(), self.received());
        }
        if !PREDICTED && self.shared.orphan && self.refuse_late_data(segment, seq) {
            return (self.received(), self.received());
        }
        let shared = &mut self.shared;
        let echoes = shared.timestamps && (PREDICTED || segment.flags.contains(Flags::TIMESTAMPS));
        if !ANSWERED && echoes && self.receive.room.is_some() {
            let elapsed = || shared.timestamp(now).wrapping_sub(segment.tsecr);
            self.receive.on_echo(segment.tsecr, elapsed, segment.payload);
        }
        let taken: Taken = self.receive.on_data::<PREDICTED, NEXT, PLAIN, ANSWERED>(
            now,
            &shared.config,
            &shared.rtt,
            shared.sack,
            seq,
            segment,
        );
        if taken.redundant > 0 {
            shared.stats.redundant_bytes += u64::from(taken.redundant);
        }
        if taken.advanced {
            if !ANSWERED && self.receive.acking.now && self.receive.room.is_some() {
                self.receive.fix_window::<PLAIN>();
            }
            if PLAIN || self.auto_read || self.read_shut {
                self.receive.read_all::<PREDICTED, PLAIN, ANSWERED>();
                if !ANSWERED && !self.receive.acking.now {
                    self.receive.after_read(&shared.config);
                }
            } else {
                shared.raise(Event::Readable);
            }
        }
        if !PREDICTED && taken.fin {
            self.on_peer_fin(now);
        }
        if ANSWERED {
            debug_assert!(self.receive.acking.now && !self.shared.timers.delays());
        } else if PLAIN && self.may_put_off_delay() {
            // The next plain segment is acknowledged at once, with this one.
            let least = self.receive.acking.least_delay();
            self.shared.timers.put_off_delay(now, least);
        } else {
            self.delay_ack(now);
        }
        if PREDICTED {
            return (taken.start - 1, taken.end - 1);
        }
        (taken.start.max(1) - 1, taken.end.max(1) - 1)
    }

    /// A segment of a peer that has sent its FIN.
    #[cold]
    fn take_after_fin(&mut self, segment: &Segment, seq: i64) {
        if segment.payload == 0 && !segment.flags.contains(Flags::FIN) {
            return;
        }
        let waits = matches!(self.state, State::CloseWait | State::Closing | State::LastAck);
        if waits && self.receive.room.is_some() {
            let next = self.receive.rcv_nxt as i64;
            if seq >= next {
                return;
            }
            if seq + i64::from(segment.payload) > next {
                self.fail(ConnectionError::Reset);
                self.answer_with_reset(segment.ack);
                return;
            }
            self.note_old(segment, seq);
        }
        self.receive.acking.now = true;
    }

    /// After plain data: whether its acknowledgment is delayed and no other one is, at an end that sends nothing.
    #[inline(always)]
    fn may_put_off_delay(&self) -> bool {
        let shared = &self.shared;
        !self.receive.acking.now
            && shared.timers.delayed_ack == Instant::FAR_FUTURE
            && shared.fast.defers()
            && self.sender.is_none()
            && !self.receive.holds_back()
    }

    /// Delays the acknowledgment whose delay was put off.
    #[inline(always)]
    pub(in crate::tcp) fn settle_delay(&mut self) {
        if let Some(data_at) = self.shared.timers.take_delay() {
            self.start_delay(data_at);
        }
    }

    /// Data was taken: the delayed-ACK timer.
    #[inline(always)]
    pub(in crate::tcp) fn delay_ack(&mut self, now: Instant) {
        if !self.receive.acking.now {
            self.start_delay(now);
        }
        if self.receive.acking.now {
            self.shared.timers.forget_delay();
        }
    }

    #[inline(never)]
    fn start_delay(&mut self, now: Instant) {
        let config = &self.shared.config;
        let timers = &mut self.shared.timers;
        let receive = &mut self.receive;
        let (srtt, running) = (self.shared.rtt.srtt(), timers.delayed_ack);
        timers.delayed_ack = match receive.held_back_until(now, srtt) {
            Some(at) => running.min(at), // a timer of its own in Linux, off the grid of the others
            None => {
                let expiry = |wait| timers.expiry(config.timer_grid, now, now + wait);
                let within = |wait| timers.acks_within(config.timer_grid, now, now + wait);
                receive
                    .acking
                    .delayed_until(config, srtt, running, expiry, within)
            }
        };
    }
}
