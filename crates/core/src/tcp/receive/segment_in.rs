//! Segments in: the arrival procedure of RFC 9293 3.10.7.4 in its order.
//!
//! **Source.** RFC 9293 3.10.7; RFC 5961 3 to 5; RFC 7323 4.3, 5.3, 5.5; RFC 3168 6.1.
//! **Deviations.** A segment without timestamps where they were negotiated is
//! dropped, as RFC 7323 3.2 recommends. A TS.Recent of zero refuses nothing. Where the window follows memory as in Linux
//! (`receive_memory`), so does PAWS: a segment without timestamps passes (`tcp_validate_incoming`), one tick passes, an overtaken
//! duplicate acknowledgment is taken, and an older bare one is not answered (`tcp_disordered_ack_check`); and bytes that were never sent
//! cannot be acknowledged. What PAWS refuses is reported as a duplicate in every profile (RFC 2883 4; Linux `tcp_send_dupack`).
//! There a FIN that comes again is reported as a duplicate, too, and TS.Recent is outdated after 2147 s, not 24 days (`TCP_PAWS_WRAP`:
//! timestamps may be microseconds).

use crate::packet::{Ecn, Flags, Segment};
use crate::seq::SeqNumber;
use crate::tcp::ack::state::LOOKED_UP;
use crate::tcp::config::ZeroWindowProbe;
use crate::tcp::fast::FastPath;
use crate::tcp::send::half::Sender;
use crate::tcp::send::peer_window::WindowUpdate;
use crate::tcp::state::types::CaState;
use crate::tcp::{Accepted, Connection, ConnectionError, Control, Event, State, UNUSUAL};
use crate::time::{Duration, Instant};

impl Connection {
    /// A segment arrived.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Instant, segment: &Segment) -> Accepted {
        let accepted = self.on_segment_as::<false>(now, segment, self.predicts(segment));
        self.settle();
        accepted
    }

    /// A segment that may be anything.
    #[inline(never)]
    pub(in crate::tcp) fn arrive(&mut self, now: Instant, segment: &Segment) -> Accepted {
        self.settle();
        let accepted = self.arrive_anyhow(now, segment);
        self.shared.fast = self.fast_path();
        accepted
    }

    fn arrive_anyhow(&mut self, now: Instant, segment: &Segment) -> Accepted {
        if segment.flags.contains(Flags::CORRUPT) {
            return self.nothing(); // the checksum would have failed (RFC 9293 MUST-3)
        }
        match self.state {
            State::Closed => self.nothing(),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => self.on_synchronised::<false, false>(now, segment),
        }
    }

    #[inline]
    pub(in crate::tcp) fn nothing(&self) -> Accepted {
        let at = self.received();
        Accepted {
            start: at,
            end: at,
            in_order: at,
        }
    }

    /// RFC 9293 3.10.7.4 in its order. `PREDICTED`: [`FastPath::predicts`](crate::tcp::fast::FastPath::predicts). `RECEIVES`: this end
    /// [only receives](Connection::only_receives).
    #[inline(always)]
    pub(in crate::tcp) fn on_synchronised<const PREDICTED: bool, const RECEIVES: bool>(
        &mut self,
        now: Instant,
        segment: &Segment,
    ) -> Accepted {
        let shared = &mut self.shared;
        let seq = segment.seq.to_offset(shared.irs, self.receive.rcv_nxt);
        let len = if PREDICTED {
            segment.payload
        } else {
            segment.sequence_len()
        };
        let reset = !PREDICTED && segment.flags.contains(Flags::RST);
        if shared.timestamps && !reset {
            let stamped = PREDICTED || segment.flags.contains(Flags::TIMESTAMPS);
            if !stamped && self.receive.room.is_none() {
                return self.nothing(); // RFC 7323 3.2
            }
            let age = shared.ts_recent.wrapping_sub(segment.tsval) as i32;
            if age > 0 && stamped && !self.takes_older(now, segment, seq, age) {
                // RFC 7323 5.3 R1: PAWS. An original that comes after its retransmission is a duplicate, too (Linux `tcp_send_dupack`).
                self.note_old(segment, seq);
                // In Linux an older bare acknowledgment is not answered (`tcp_disordered_ack_check`).
                let bare = segment.sequence_len() == 0;
                let silent = bare && self.receive.room.is_some() && seq < self.receive.rcv_nxt as i64;
                self.receive.acking.now |= !bare || !silent && self.within_budget(now);
                return self.nothing();
            }
        }
        // First: sequence number.
        let next = PREDICTED && self.receive.is_next(seq, segment.payload);
        let fits = if next {
            true
        } else if self.receive.room.is_some() && (PREDICTED || self.state != State::SynReceived) {
            self.receive.fits(seq, segment, self.shared.last_ack_sent)
        } else {
            self.receive.acceptable(seq, len)
        };
        if !fits {
            if !reset {
                self.on_unacceptable(now, segment, seq);
            } else if self.resets_as_in_linux(seq) {
                self.on_reset();
            }
            return self.nothing();
        }
        if !PREDICTED && segment.flags.intersects(UNUSUAL) {
            // Second: RST.
            if reset {
                if seq == self.receive.rcv_nxt as i64 || self.resets_as_in_linux(seq) {
                    self.on_reset();
                } else if seq < (self.receive.rcv_nxt + self.receive.window()) as i64
                    || (self.receive.room.is_some() && self.state != State::SynReceived)
                {
                    self.challenge(now); // RFC 5961 3.2; at the right edge it is outside, but for Linux
                }
                return self.nothing();
            }
            // Fourth: SYN.
            if segment.flags.contains(Flags::SYN) {
                self.challenge_syn(now, segment, seq);
                return self.nothing();
            }
        }
        let urgent = !PREDICTED && segment.flags.contains(Flags::URG);
        // Fifth: ACK.
        let has_ack = PREDICTED || segment.flags.contains(Flags::ACK);
        if !has_ack || !self.on_ack_field::<PREDICTED, RECEIVES>(now, segment, seq) {
            return self.nothing();
        }
        let shared = &mut self.shared;
        if shared.timestamps
            && (PREDICTED || segment.flags.contains(Flags::TIMESTAMPS))
            && seq <= shared.last_ack_sent as i64
            && (segment.tsval.wrapping_sub(shared.ts_recent) as i32 >= 0
                || shared.ts_recent == 0
                || shared.ts_recent_is_outdated(now, self.receive.room.is_some()))
        {
            // RFC 7323 4.3 (2), after the ACK was found acceptable: who guesses a sequence number cannot poison PAWS.
            shared.set_ts_recent(now, segment.tsval);
        }
        if !PREDICTED {
            self.on_activity(now);
            if segment.ecn() == Ecn::Ce {
                self.shared.stats.ce_received += 1;
            }
            if self.shared.ecn {
                self.on_ecn(segment, seq);
            }
        }
        if urgent {
            self.on_urgent(segment, seq); // Sixth
        }
        // Seventh and eighth: payload and FIN.
        if len == 0 {
            return self.nothing();
        }
        if next {
            return self.take_predicted::<RECEIVES>(now, segment, seq);
        }
        self.on_payload::<PREDICTED>(now, segment, seq)
    }

    /// Whether a segment is taken although its timestamp is `age` older than the last: if that is zero or outdated, and in Linux if they are one
    /// tick apart (`TCP_PAWS_WINDOW`), or if it is a duplicate acknowledgment that another has overtaken, and brings no window
    /// (`tcp_disordered_ack`).
    #[cold]
    fn takes_older(&self, now: Instant, segment: &Segment, seq: i64, age: i32) -> bool {
        let shared = &self.shared;
        if shared.ts_recent_is_outdated(now, self.receive.room.is_some()) {
            return true; // RFC 7323 5.5
        }
        if shared.ts_recent == 0 {
            return true; // some systems send SYNs with a TSval of zero, and then their clock (Linux `tcp_paws_check`)
        }
        if self.receive.room.is_none() {
            return false; // RFC 7323 5.3
        }
        let una = self.sender.as_ref().map_or(1 + self.acked(), |sender| sender.una);
        let repeats = || {
            segment.flags.contains(Flags::ACK)
                && segment.sequence_len() == 0
                && seq == self.receive.rcv_nxt as i64
                && segment.ack == SeqNumber::from_offset(shared.iss, una)
                && !shared.peer.would_take(segment, shared.snd_scale, seq as u64, una)
        };
        let recent = || {
            let rto = shared.rtt.rto(&shared.config.rto).mul_div(6, 5); // `tcp_tsval_replay`
            i64::from(age) <= (rto.as_nanos() / 1_000_000) as i64
        };
        age == 1 || repeats() && recent()
    }

    /// RFC 9293 3.10.7.4: an unacceptable segment is answered with an ACK.
    fn on_unacceptable(&mut self, now: Instant, segment: &Segment, seq: i64) {
        self.settle_delay();
        if segment.flags.contains(Flags::SYN) {
            if self.state == State::SynReceived && seq == 0 && segment.flags.contains(Flags::ACK) {
                // RFC 9293 3.5, figure 7: SYNs crossed, and this acknowledges ours.
                let ack = segment.ack.to_offset(self.shared.iss, 1);
                if self.on_ack_in_syn_received(now, segment, ack) {
                    self.receive.acking.now = true;
                }
            } else if self.state == State::SynReceived && seq == 0 {
                self.on_syn_again(segment);
            } else {
                self.challenge_syn(now, segment, seq);
            }
            return;
        }
        self.note_old(segment, seq);
        // Without payload within the budget: two ends that do not accept each other's ACKs must not answer for ever.
        self.receive.acking.now |= segment.sequence_len() > 0 || self.within_budget(now);
        if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
            self.start_time_wait(now); // RFC 9293 3.10.7.4: restart the 2 MSL timeout
        }
        // A zero-window probe's ACK field may still be news, and an ACK at the left edge of a closed window is valid.
        if segment.flags.contains(Flags::ACK)
            && self.receive.window() == 0
            && seq == self.receive.rcv_nxt as i64
        {
            self.on_ack_field::<false, false>(now, segment, seq);
            self.shared.fast = self.fast_path(); // the segment may have been a predicted one
            if segment.flags.contains(Flags::URG) {
                self.on_urgent(segment, seq); // RFC 9293 MUST-66
            }
        }
    }

    /// Notes that what a segment carries, or some of it, came before. In Linux a FIN counts, too (`tcp_send_dupack`).
    pub(in crate::tcp) fn note_old(&mut self, segment: &Segment, seq: i64) {
        let len = match self.receive.room {
            Some(_) => segment.sequence_len(),
            None => segment.payload,
        };
        let old = self.receive.note_old(&self.shared.config, seq, len, false);
        self.shared.stats.redundant_bytes += u64::from(old.min(segment.payload));
    }

    /// Congestion marks of an acceptable segment at offset `seq`, and what it says of ours.
    fn on_ecn(&mut self, segment: &Segment, seq: i64) {
        let Some(accecn) = self.shared.accecn.as_deref_mut() else {
            return self.receive.on_ecn(&self.shared.config, segment);
        };
        let old = seq + i64::from(segment.payload) <= self.receive.rcv_nxt as i64;
        let answers = self.shared.sack && !self.receive.has_disorder();
        accecn.on_arrival(&mut self.receive.acking, segment, old, answers);
    }

    /// RFC 5961 4.2: a challenge ACK answers a SYN. With Accurate ECN it reports how a repeated SYN-ACK came (RFC 9768 3.2.2.1).
    fn challenge_syn(&mut self, now: Instant, segment: &Segment, seq: i64) {
        self.challenge(now);
        if seq == 0
            && !self.passive
            && segment.flags.contains(Flags::ACK)
            && self.receive.acking.now
            && let Some(accecn) = self.shared.accecn.as_deref_mut()
        {
            accecn.on_another_syn_ack(segment);
            self.control = Control::Ack;
        }
    }

    /// A challenge ACK within the budget (RFC 5961 7).
    pub(in crate::tcp) fn challenge(&mut self, now: Instant) {
        if self.within_budget(now) {
            self.shared.stats.challenge_acks += 1;
            self.receive.acking.now = true;
        }
    }

    /// Takes an acknowledgment from this second's budget, if there is one left and the last is long enough ago.
    fn within_budget(&mut self, now: Instant) -> bool {
        let allowance = self.shared.challenge_allowance(now);
        let interval = self.shared.config.challenge_interval;
        let cold = self.shared.cold_mut();
        if !interval.is_zero() && cold.challenged_at.is_some_and(|at| now.since(at) < interval) {
            return false; // Linux `tcp_oow_rate_limited`
        }
        cold.challenged_at = Some(now);
        if now >= cold.challenge_until {
            cold.challenge_until = now + Duration::from_secs(1);
            cold.challenge_budget = allowance;
        }
        let left = cold.challenge_budget > 0;
        cold.challenge_budget -= u16::from(left);
        left
    }

    /// The ACK field. False: the segment is to be dropped.
    #[inline(always)]
    fn on_ack_field<const PREDICTED: bool, const RECEIVES: bool>(
        &mut self,
        now: Instant,
        segment: &Segment,
        seq: i64,
    ) -> bool {
        let sender = self.sender.as_ref().filter(|_| !RECEIVES);
        let (una, mut nxt) = sender.map_or((1, 1), |sender| (sender.una, sender.nxt));
        let ack = segment.ack.to_offset(self.shared.iss, una);
        if !PREDICTED && self.state == State::SynReceived && !self.on_ack_in_syn_received(now, segment, ack) {
            return false;
        }
        let mut probed = false;
        if !PREDICTED
            && ack == nxt as i64 + 1
            && let Some(sender) = &mut self.sender
            && sender.is_probing_window()
        {
            sender.accept_probe(&mut self.shared.timers);
            nxt = sender.nxt;
            probed = true;
        }
        let old = ack < una as i64;
        let below = || {
            let largest = self.shared.peer.largest().max(1);
            // Linux `tcp_ack` (6.7, CVE-2023-52881): nor what was never sent.
            let sent = self.receive.room.is_some().then_some(una - 1);
            largest.min(sent.unwrap_or(largest)) as i64
        };
        // RFC 5961 5.2.
        if ack > nxt as i64 || old && ack < una as i64 - below() {
            self.challenge(now);
            return false;
        }
        let (seq, ack) = (seq.max(0) as u64, if old { ack.max(0) } else { ack } as u64);
        if !old {
            self.take_ack::<PREDICTED, RECEIVES>(now, segment, seq, ack);
            if !PREDICTED && probed {
                self.on_advance::<false>(now); // the probe was a byte of the stream, or the FIN
            }
            return true;
        }
        // Any acknowledgment that is not refused sends what `MSG_MORE` held back (Linux `tcp_data_snd_check`).
        if !PREDICTED && let Some(sender) = &mut self.sender {
            sender.expect_no_more();
        }
        // An acknowledgment below SND.UNA brings no window (RFC 9293 3.10.7.4), but it may still carry SACK or D-SACK blocks,
        // which are taken as of SND.UNA, also when nothing is out: a D-SACK then still takes a reduction back.
        if let Some(sender) = &mut self.sender
            && segment.sack_blocks() > 0
        {
            let at = sender.una;
            sender.on_any_ack(now, &mut self.shared, segment, at, false);
            self.shared.fast = self.fast_path();
        }
        true
    }

    /// An acknowledgment up to offset `ack`, from SND.UNA to SND.NXT, on an acceptable segment at offset `seq`.
    #[inline(always)]
    pub(in crate::tcp) fn take_ack<const PREDICTED: bool, const RECEIVES: bool>(
        &mut self,
        now: Instant,
        segment: &Segment,
        seq: u64,
        ack: u64,
    ) {
        if RECEIVES || self.sender.is_none() {
            let shared = &mut self.shared;
            let keeps = || shared.config.zero_window_probe == ZeroWindowProbe::Empty;
            shared.peer.take(segment, shared.snd_scale, seq, ack, keeps);
            if !PREDICTED && self.shared.accecn.is_some() {
                self.shared.on_feedback(segment, 0, 0);
            }
            return; // no timer waits for a window
        }
        let window_changed = self.update_window(now, segment, seq, ack);
        // Linux: not data that comes as predicted (`tcp_rcv_established`).
        let usual = segment.payload > 0 && seq == self.receive.rcv_nxt && !self.receive.has_disorder();
        let Some(sender) = &mut self.sender else { return };
        if !PREDICTED && sender.expects_more() && (ack > sender.una || window_changed || !usual) {
            sender.expect_no_more();
        }
        sender.full_at = Instant::FAR_FUTURE;
        if self.shared.peer.edge() <= ack {
            sender.attempts.on_answer_with_shut_window(now);
        }
        let advanced = ack > sender.una;
        if advanced && sender.is_quiet(&self.shared, segment, ack) {
            sender.on_ack::<true, LOOKED_UP>(now, &mut self.shared, segment, ack, false);
            if sender.recovery.state() != CaState::Open {
                self.shared.fast = self.fast_path();
            }
            return self.on_advance::<PREDICTED>(now);
        }
        // RFC 5681 2: what counts as a duplicate.
        let duplicate = !advanced
            && !window_changed
            && sender.nxt > sender.una
            && segment.payload == 0
            && (PREDICTED || !segment.flags.contains(Flags::FIN));
        let echo = !PREDICTED && self.shared.may_report_marks(segment);
        if advanced || duplicate || echo || segment.sack_blocks() > 0 {
            sender.on_any_ack(now, &mut self.shared, segment, ack, duplicate);
            // During loss recovery acknowledgments that were unusual before stay so: the fast path is not worked out anew.
            if PREDICTED && (self.shared.fast.acks() || sender.recovery.state() == CaState::Open) {
                self.shared.fast = self.fast_path();
            }
        } else if segment.payload == 0
            && ack == sender.nxt
            && !window_changed
            && (PREDICTED || !segment.flags.contains(Flags::FIN))
        {
            sender.recovery.on_duplicate_of_all(&mut self.shared, ack);
        }
        if advanced {
            self.on_advance::<false>(now);
        }
    }

    /// SND.UNA moved.
    #[inline(always)]
    fn on_advance<const QUIET: bool>(&mut self, now: Instant) {
        if self.write_blocked {
            self.write_blocked = false;
            self.shared.raise(Event::Writable);
        }
        if !QUIET
            && let Some(sender) = &self.sender
            && sender.fin_is_acked()
        {
            self.on_fin_acked(now);
        }
    }

    /// SND.WND from an acceptable segment (RFC 9293 3.10.7.4, fifth).
    #[inline(always)]
    fn update_window(&mut self, now: Instant, segment: &Segment, seq: u64, ack: u64) -> bool {
        let shared = &mut self.shared;
        let keeps = || shared.config.zero_window_probe == ZeroWindowProbe::Empty;
        let update = shared.peer.take(segment, shared.snd_scale, seq, ack, keeps);
        let Some(WindowUpdate {
            changed,
            opened,
            largest,
        }) = update
        else {
            return false;
        };
        if largest && shared.cold.is_some() {
            shared.fit_segments_to_window();
            if let Some(sender) = &mut self.sender {
                sender.hold_a_segment(now, shared);
            }
        }
        if shared.timers.waits_for(crate::tcp::Timer::Persist)
            && let Some(sender) = &mut self.sender
        {
            sender.on_window_answer(shared, opened);
        }
        changed
    }

    fn on_fin_acked(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.shared.raise(Event::SendClosed);
                self.watch_fin_wait2(now);
            }
            State::Closing => {
                self.shared.raise(Event::SendClosed);
                self.start_time_wait(now);
            }
            State::LastAck => {
                self.enter_closed();
                self.shared.raise(Event::SendClosed);
                self.shared.raise(Event::Closed);
            }
            State::Closed
            | State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait2
            | State::CloseWait
            | State::TimeWait => {}
        }
    }

    pub(in crate::tcp) fn on_peer_fin(&mut self, now: Instant) {
        self.shared.fast = FastPath::NONE;
        self.shared.raise(Event::PeerClosed);
        let answered = self.state != State::Established;
        self.receive.on_fin(&self.shared.config, answered);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => {
                let acked = self.sender.as_deref().is_some_and(Sender::fin_is_acked);
                if acked {
                    self.start_time_wait(now);
                } else {
                    self.state = State::Closing;
                }
            }
            State::FinWait2 => self.start_time_wait(now),
            State::Closed
            | State::SynSent
            | State::SynReceived
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
        }
    }

    fn start_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.shared.timers.disarm();
        self.shared.timers.slow = now + self.shared.config.msl.saturating_mul(2); // RFC 9293 MUST-13
        self.sender_done();
    }

    /// Something acceptable arrived: the peer lives.
    #[inline]
    fn on_activity(&mut self, now: Instant) {
        if self.keep_alive {
            self.keep_alive_probes = 0;
            self.start_keep_alive(now);
        }
    }

    pub(in crate::tcp) fn start_keep_alive(&mut self, now: Instant) {
        if self.keep_alive && !self.shared.orphan && !matches!(self.state, State::Closed | State::TimeWait) {
            self.shared.timers.slow = self.shared.expiry(now, self.keep_alive_values().idle);
        }
    }

    fn keep_alive_values(&self) -> crate::tcp::KeepAlive {
        let own = self.shared.cold.as_ref().and_then(|cold| cold.keep_alive);
        own.or(self.shared.config.keep_alive)
            .unwrap_or(crate::tcp::KeepAlive {
                idle: Duration::from_secs(7200), // RFC 9293 MUST-28
                interval: Duration::from_secs(75),
                probes: 9,
            })
    }

    /// RFC 9293 3.8.4.
    pub(in crate::tcp) fn on_keep_alive(&mut self, now: Instant) {
        let values = self.keep_alive_values();
        let busy = self
            .sender
            .as_ref()
            .is_some_and(|s| s.nxt > s.una || s.unsent() > 0)
            || matches!(self.state, State::SynSent | State::SynReceived);
        if busy {
            self.start_keep_alive(now); // MUST-26
            return;
        }
        let silent = values.idle + values.interval.saturating_mul(u64::from(self.keep_alive_probes));
        let gone = match self.shared.user_timeout() {
            Some(limit) => self.keep_alive_probes > 0 && silent >= limit,
            None => self.keep_alive_probes >= values.probes,
        };
        if gone {
            self.fail(ConnectionError::TimedOut);
            self.control = Control::Reset;
            return;
        }
        self.keep_alive_probes += 1;
        self.keep_alive_due = true;
        self.shared.timers.slow = self.shared.expiry(now, values.interval);
    }
}
