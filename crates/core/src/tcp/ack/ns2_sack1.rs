//! Loss recovery of ns-2's Sack1 agent, in place of RFC 6675's: the switch `sack1_recovery`.
//!
//! Its own few numbers decide what is sent; the scoreboard beside them keeps the records. In recovery every ACK takes one
//! from the pipe and every segment adds one, and each hole below the highest SACKed segment is sent again once. Outside
//! recovery SACKs show only whether an ACK is a duplicate: one that SACKs nothing new is not. A timeout forgets them and
//! goes back to the first unacknowledged segment.
//!
//! **Source.** ns-2.35: `tcp/tcp-sack1.cc`, `tcp/scoreboard-rq.cc`, `tcp/tcp.cc` (`newack`, `slowdown`, `send_one`,
//! `reset_rtx_timer`) with the values of `ns-default.tcl`. Recorded transfers: `specs/ns-2.35`.
//! **Deviations.** An ACK older than SND.UNA without SACK blocks does not count in recovery. The window does not fall
//! below one segment; ns-2's may, and then waits for the timer. ECN follows RFC 3168.
//! **Parameters.** `dup_thresh`, `limited_transmit`, `max_window_segments` of the configuration.

use crate::cc::CongestionKind;
use crate::packet::Segment;
use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::ack::ns2_agent::Sack1;
use crate::tcp::ack::state::{LOOKED_UP, NS2_REPAIR};
use crate::tcp::config::Prr;
use crate::tcp::send::half::{Outgoing, Sender};
use crate::tcp::state::timers::Timer;
use crate::tcp::state::types::CaState;
use crate::time::Instant;
use crate::units::Bytes;

impl Sender {
    /// The next segment to send now.
    pub(in crate::tcp) fn next_sack1(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        let mut agent = self.recovery.sack1.take()?;
        let sent = self.choose(&mut agent, now, shared);
        self.recovery.sack1 = Some(agent);
        if sent.is_some() {
            self.note_shut_sack1::<LOOKED_UP>(now, shared);
        }
        sent
    }

    fn choose(&mut self, agent: &mut Sack1, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        let window = self.own_window(shared);
        let widest = shared.config.max_window_segments.map_or(u64::MAX, u64::from);
        if agent.first_due {
            agent.first_due = false;
            agent.high_rxt = self.board.ring.front()?.end();
            return self.send_again(now, shared, 0);
        }
        if self.is_shut::<LOOKED_UP>(agent, shared) {
            return None;
        }
        if self.recovery.state == CaState::Recovery {
            if let Some(index) = self.hole(agent.high_rxt) {
                self.may_resend(shared, index)?;
                agent.pipe += 1;
                let sent = self.send_again(now, shared, index);
                agent.high_rxt = self.board.ring[index].end();
                return sent;
            }
            if u64::from(self.board.segments()) >= widest {
                return None;
            }
            let sent = self.send_new(agent, now, shared)?;
            agent.pipe += 1;
            return Some(sent);
        }
        let extra = u64::from(agent.dup_acks); // limited transmit
        agent.one_due &= extra == 0;
        let index = if agent.next == self.nxt {
            self.board.ring.len()
        } else {
            self.board.index_from(agent.next)
        };
        if index as u64 >= (window + extra).min(widest) {
            return None;
        }
        if index < self.board.ring.len() {
            self.may_resend(shared, index)?;
            let sent = self.send_again(now, shared, index);
            agent.next = self.board.ring[index].end(); // of what the window holds of it
            return sent;
        }
        self.send_new(agent, now, shared)
    }

    /// The window in segments: there is no PRR beside the agent.
    fn own_window(&self, shared: &Shared) -> u64 {
        debug_assert_eq!(shared.config.prr, Prr::Off);
        Sender::bounded(shared, self.cc.window().get()) / u64::from(shared.mss)
    }

    /// Whether nothing leaves before the next acknowledgment, where the fast retransmit has left.
    #[inline(always)]
    fn is_shut<const AGENT: u8>(&self, agent: &Sack1, shared: &Shared) -> bool {
        if AGENT == NS2_REPAIR || self.recovery.state == CaState::Recovery {
            i64::from(agent.pipe) >= self.own_window(shared) as i64
        } else {
            agent.dup_acks > 0 && !agent.one_due
        }
    }

    /// Notes whether a drain will find the window full although something waits, as far as that is seen without a look at the
    /// scoreboard.
    #[inline(always)]
    pub(in crate::tcp) fn note_shut_sack1<const AGENT: u8>(&mut self, now: Instant, shared: &Shared) {
        let Some(agent) = &self.recovery.sack1 else { return };
        let alone = self.tempo.is_none() && !self.probes_soon();
        if shared.predict
            && alone
            && !agent.first_due
            && self.board.out > 0
            && self.unsent() > 0
            && self.is_shut::<AGENT>(agent, shared)
        {
            (self.full_at, self.shut) = (now, true);
        }
    }

    /// The lowest segment from `from` on that is not SACKed and has SACKed data above it.
    fn hole(&self, from: u64) -> Option<usize> {
        let runs = &self.board.marks.runs;
        let next = runs.partition_point(|run| run.end <= from);
        let run = runs.get(next)?;
        let hole = if from < run.start {
            from
        } else {
            runs.get(next + 1)?;
            run.end
        };
        Some(self.board.index_from(hole.max(self.una)))
    }

    fn send_again(&mut self, now: Instant, shared: &mut Shared, index: usize) -> Option<Outgoing> {
        self.board.take_from_stale(index);
        self.board.mark_lost(index);
        self.retransmit(now, shared, index)
    }

    fn send_new(&mut self, agent: &mut Sack1, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        let (payload, fin) = self.new_or_full_length(shared)?;
        let sent = self.transmit::<false, false>(now, shared, payload, fin);
        agent.on_sent(now, self.nxt);
        Some(sent)
    }

    /// What an acknowledgment delivers as the agent sees it: its own RTT sample, and blocks where they are looked at.
    #[inline(always)]
    pub(in crate::tcp) fn deliver_sack1<const QUIET: bool, const AGENT: u8>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        delivery: &mut Delivery,
    ) {
        let recovering = AGENT == NS2_REPAIR || !QUIET && self.recovery.state == CaState::Recovery;
        (delivery.rtt, delivery.newest_rtt) = (None, None);
        delivery.partial = recovering && delivery.advanced && self.una < self.recovery.high_seq;
        let una = self.una;
        if AGENT == NS2_REPAIR {
            self.take_blocks::<true>(now, shared, segment, ack, delivery);
            return;
        }
        let Some(agent) = &mut self.recovery.sack1 else {
            return;
        };
        if QUIET || delivery.advanced && !delivery.partial {
            delivery.rtt = agent.sample(now, una, shared);
        } else if recovering || !agent.timeout {
            self.take_blocks::<true>(now, shared, segment, ack, delivery);
            (delivery.rtt, delivery.newest_rtt) = (None, None);
        }
    }

    /// What follows for the agent's state.
    #[inline(always)]
    pub(in crate::tcp) fn transition_sack1<const AGENT: u8>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        delivery: &Delivery,
    ) {
        if AGENT == NS2_REPAIR {
            if let Some(agent) = &mut self.recovery.sack1 {
                agent.pipe -= 1;
            }
            return self.sample_pipe_of_agent(now, shared, delivery);
        }
        let Some(mut agent) = self.recovery.sack1.take() else {
            return;
        };
        let recovering = self.recovery.state == CaState::Recovery;
        if recovering {
            agent.pipe -= if delivery.partial { 2 } else { 1 };
        }
        if delivery.advanced && !delivery.partial {
            // After a timeout nearly every segment sent again is reported by blocks that go on reporting the rest.
            let again =
                shared.predict && self.recovery.state == CaState::Loss && self.una < self.recovery.high_seq;
            let reported = self.board.marks.sacked_segments > 0;
            if again && reported {
                self.board.set_aside_sacks();
            } else if reported || !again && !self.board.marks.stale.is_empty() {
                self.board.forget_sacks();
            }
            agent.dup_acks = 0;
            agent.timeout = false;
            agent.next = agent.next.max(self.una);
            if recovering {
                let event = self.flight_event(CongestionKind::RecoveryEnd);
                self.cc.on_congestion(now, &event);
                self.recovery.episode.recover = 0;
            }
            if self.una >= self.recovery.high_seq
                || matches!(self.recovery.state, CaState::Recovery | CaState::Disorder)
            {
                if matches!(self.recovery.state, CaState::Recovery | CaState::Loss) {
                    self.board.ring.tighten(); // the window is smaller than before
                }
                self.recovery.state = CaState::Open;
            }
        } else if !recovering && delivery.sacked > 0 {
            self.on_duplicate(&mut agent, now, shared);
        }
        self.recovery.sack1 = Some(agent);
        self.sample_pipe_of_agent(now, shared, delivery);
    }

    #[inline(always)]
    fn sample_pipe_of_agent(&mut self, now: Instant, shared: &Shared, delivery: &Delivery) {
        if self.tempo.is_some() {
            let delivery = *delivery;
            self.sample_pipe(now, shared, &delivery);
        }
    }

    /// An ACK that SACKs something new, outside recovery.
    fn on_duplicate(&mut self, agent: &mut Sack1, now: Instant, shared: &mut Shared) {
        agent.dup_acks += 1;
        if self.recovery.state == CaState::Open {
            self.recovery.state = CaState::Disorder;
        }
        let threshold = u32::from(shared.config.dup_thresh);
        agent.one_due = agent.dup_acks < threshold && shared.config.limited_transmit;
        // Not for what was sent before the last timeout, except for the first segment (`bugFix_`, `bugfix_ss_`).
        if agent.dup_acks != threshold || (self.una <= self.recovery.episode.recover && self.una != 1) {
            return;
        }
        if self.recovery.state != CaState::Cwr {
            self.bound_window(now, shared);
            let event = self.flight_event(CongestionKind::Loss);
            self.cc.on_congestion(now, &event);
        }
        shared.stats.recoveries += 1;
        shared.count_congestion(now);
        self.recovery.state = CaState::Recovery;
        self.recovery.high_seq = self.nxt;
        self.recovery.episode.recover = self.nxt;
        agent.pipe = self.board.segments() as i32 - threshold as i32;
        agent.timed = None;
        agent.first_due = true;
        let at = now + shared.rtt.rto(&shared.config.rto);
        shared.timers.move_rto(at);
    }

    /// A window beyond the bound is not used, and a share of it is not taken.
    pub(in crate::tcp) fn bound_window(&mut self, now: Instant, shared: &Shared) {
        let Some(segments) = shared.config.max_window_segments else {
            return;
        };
        let bound = Bytes(u64::from(segments) * u64::from(shared.mss));
        if self.cc.window() > bound {
            let ssthresh = self.cc.ssthresh();
            self.cc.set_window(now, bound, ssthresh);
        }
    }

    /// The retransmission timer fired.
    pub(in crate::tcp) fn go_back(&mut self, now: Instant, shared: &mut Shared) {
        self.bound_window(now, shared);
        // Every expiry halves anew: after the second in a row `ssthresh` is two segments.
        let mut event = self.flight_event(CongestionKind::Timeout { first: true });
        event.in_flight = Bytes::ZERO;
        self.cc.on_congestion(now, &event);
        self.recovery.state = CaState::Loss;
        self.recovery.high_seq = self.nxt;
        self.recovery.episode.recover = self.nxt;
        self.board.forget_sacks();
        self.board.mark_all_lost();
        if let Some(agent) = &mut self.recovery.sack1 {
            agent.next = self.una;
            agent.timed = None;
            agent.dup_acks = 0;
            agent.timeout = true;
            agent.first_due = false;
            agent.one_due = false;
        }
        shared.rtt.back_off(&shared.config.rto);
        let at = now + self.attempts.clamped_rto(now, shared);
        shared.arm(now, Timer::Rto, at);
    }
}
