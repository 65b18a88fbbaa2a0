//! TIME-WAIT, and FIN-WAIT-2 of a socket that nobody holds: small records in place of connections.
//!
//! **Source.** RFC 9293 3.10.7.4 for TIME-WAIT; RFC 6191 (a new SYN may end it); RFC 7323 5.3 (PAWS); RFC 1337 (a reset
//! ends it, as in Linux by default, unless `StackConfig::rfc1337`). The behaviour of either state is that of Linux's `tcp_timewait_state_process`.
//! **Deviations.** The rate limit of acknowledgments that Linux puts on stray segments is left out.

use super::{Stack, Tuple};
use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::tcp::{TimeWaitState, listener};
use crate::time::{Duration, Instant};

/// A connection that has ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeWait {
    state: TimeWaitState,
    /// When it is forgotten.
    until: Instant,
    /// Since when it waits.
    since: Instant,
    tos: u8,
    ttl: u8,
}

/// What a segment does to it.
enum Verdict {
    /// Nothing is said.
    Silence,
    /// An acknowledgment.
    Acknowledge,
    /// TIME-WAIT ends silently.
    End,
    /// TIME-WAIT ends with a reset.
    Reset,
    /// TIME-WAIT ends; the SYN opens a connection with this sequence number.
    Reopen(SeqNumber),
}

impl TimeWait {
    pub(super) fn half_closed(&self) -> bool {
        self.state.half_closed
    }

    fn on_segment(&mut self, now: Instant, lasts: Duration, rfc1337: bool, segment: &Segment) -> Verdict {
        let state = &mut self.state;
        let (syn, ack) = (
            segment.flags.contains(Flags::SYN),
            segment.flags.contains(Flags::ACK),
        );
        let (reset, fin) = (
            segment.flags.contains(Flags::RST),
            segment.flags.contains(Flags::FIN),
        );
        let end = segment.seq + segment.sequence_len();
        let stamped = segment.flags.contains(Flags::TIMESTAMPS);
        // RFC 7323 5.3
        let recent = state.ts_recent.filter(|_| stamped);
        let old = recent.is_some_and(|recent| (segment.tsval.wrapping_sub(recent) as i32) < 0) && !reset;
        if state.half_closed {
            let edge = state.rcv_nxt + state.window;
            let inside = segment.seq == state.rcv_nxt
                || segment.seq.lt(edge) && end.gt(state.rcv_nxt)
                || segment.seq == end && segment.seq.le(edge) && segment.seq.ge(state.rcv_nxt);
            if old || !inside {
                return if reset {
                    Verdict::Silence
                } else {
                    Verdict::Acknowledge
                };
            }
            if reset {
                return Verdict::End;
            }
            if syn && segment.seq.ge(state.rcv_nxt) {
                return Verdict::Reset;
            }
            if !ack || !end.gt(state.rcv_nxt) || end == segment.seq {
                return Verdict::Silence;
            }
            if !fin || end != state.rcv_nxt + 1 {
                return Verdict::Reset; // RFC 1122 4.2.2.13: nobody will read it
            }
            state.half_closed = false;
            state.rcv_nxt = end;
            state.ts_recent = if stamped {
                state.ts_recent.map(|_| segment.tsval)
            } else {
                state.ts_recent
            };
            self.since = now;
            self.until = now + lasts;
            return Verdict::Acknowledge;
        }
        if !old && segment.seq == state.rcv_nxt && (end == segment.seq || reset) {
            if reset {
                return if rfc1337 { Verdict::Silence } else { Verdict::End };
            }
            self.until = now + lasts;
            if let Some(recent) = recent
                && (segment.tsval.wrapping_sub(recent) as i32) > 0
            {
                state.ts_recent = Some(segment.tsval);
            }
            return Verdict::Silence;
        }
        let newer = recent.is_some_and(|recent| (segment.tsval.wrapping_sub(recent) as i32) > 0);
        if syn && !reset && !ack && !old && (segment.seq.gt(state.rcv_nxt) || newer) {
            return Verdict::Reopen(state.snd_nxt + 65_537); // RFC 6191 2, RFC 9293 3.6.1 SHLD-4
        }
        if reset {
            return Verdict::Silence;
        }
        if old || ack {
            self.until = now + lasts;
        }
        Verdict::Acknowledge
    }

    /// The acknowledgment that answers stray segments.
    fn acknowledgment(&self, now: Instant) -> Segment {
        let state = &self.state;
        let mut segment = Segment {
            seq: state.snd_nxt,
            ack: state.rcv_nxt,
            window: (state.window >> state.scale).min(65_535) as u16,
            flags: Flags::ACK.with(Flags::DF),
            tos: self.tos,
            ttl: self.ttl,
            overhead: Segment::IPV4_TCP_HEADER,
            ..Segment::default()
        };
        if let Some(recent) = state.ts_recent {
            segment.flags = segment.flags.with(Flags::TIMESTAMPS);
            segment.tsval = ((now.as_nanos() / 1_000_000) as u32).wrapping_add(state.ts_offset);
            segment.tsecr = recent;
            segment.overhead += 12;
        }
        segment
    }
}

impl Stack {
    /// Puts a record in place of a connection, unless there are too many: then nothing is left of it, as in Linux (`tcp_time_wait`), and what
    /// its peer still sends is answered with resets.
    pub(super) fn begin_wait(
        &mut self,
        now: Instant,
        tuple: Tuple,
        state: TimeWaitState,
        span: Duration,
        index: usize,
    ) {
        let options = &self.socks[index].options;
        let wait = TimeWait {
            state,
            until: now + span,
            since: now,
            tos: options.tos & !3,
            ttl: options.ttl,
        };
        self.end_wait(tuple);
        if self.waits.len() >= self.config.time_wait_limit as usize {
            self.refused.time_wait += 1;
            return;
        }
        self.waits.insert(tuple, wait);
        self.wait_timers.insert((wait.until, tuple));
        *self.wait_ports.entry(tuple.0.port()).or_default() += 1;
    }

    pub(super) fn end_wait(&mut self, tuple: Tuple) {
        let Some(wait) = self.waits.remove(&tuple) else {
            return;
        };
        self.wait_timers.remove(&(wait.until, tuple));
        if let Some(count) = self.wait_ports.get_mut(&tuple.0.port()) {
            *count -= 1;
            if *count == 0 {
                self.wait_ports.remove(&tuple.0.port());
            }
        }
    }

    /// Forgets those whose time is over.
    pub(super) fn expire_waits(&mut self, now: Instant) {
        while let Some(&(at, tuple)) = self.wait_timers.first()
            && at <= now
        {
            self.end_wait(tuple);
        }
    }

    /// A segment for a connection in TIME-WAIT. `Some`: it is a SYN that opens a new one, with this sequence number.
    pub(super) fn on_waiting(&mut self, now: Instant, tuple: Tuple, segment: &Segment) -> Option<SeqNumber> {
        let lasts = self.config.time_wait;
        let wait = self.waits.get_mut(&tuple)?;
        let before = wait.until;
        let verdict = wait.on_segment(now, lasts, self.config.rfc1337, segment);
        let after = *wait;
        if after.until != before {
            self.wait_timers.remove(&(before, tuple));
            self.wait_timers.insert((after.until, tuple));
        }
        match verdict {
            Verdict::Silence => {}
            Verdict::Acknowledge => {
                let answer = after.acknowledgment(now);
                self.queue_answer(tuple, answer);
            }
            Verdict::End => self.end_wait(tuple),
            Verdict::Reset => {
                self.end_wait(tuple);
                if let listener::Answer::Reset(mut answer) = listener::on_closed(segment) {
                    (answer.tos, answer.ttl) = (after.tos, after.ttl);
                    self.queue_answer(tuple, answer);
                }
            }
            Verdict::Reopen(iss) => {
                self.end_wait(tuple);
                return Some(iss);
            }
        }
        None
    }

    /// Whether an active open may take the place of a connection in TIME-WAIT, and with which sequence number: only if
    /// timestamps separate old segments from new ones, and a second has passed (RFC 6191 3, Linux `tcp_twsk_unique`).
    pub(super) fn replace_wait(&mut self, now: Instant, tuple: Tuple) -> Option<SeqNumber> {
        let wait = self.waits.get(&tuple)?;
        let replaceable = !wait.state.half_closed
            && wait.state.ts_recent.is_some()
            && now.since(wait.since) > Duration::from_secs(1);
        let next = wait.state.snd_nxt + 65_537;
        replaceable.then(|| {
            self.end_wait(tuple);
            next
        })
    }
}
