//! The handshake: SYN-SENT and SYN-RECEIVED, options, simultaneous open.
//!
//! **Source.** RFC 9293 3.5, 3.10.7.3, 3.10.7.4; RFC 7323 2, 3; RFC 2018 2; RFC 3168 6.1.1; RFC 6298 2, 5.7; the first SYN
//! retransmissions without back-off are Linux's (`tcp_syn_linear_timeouts`), and so is `lone_handshake_ack`
//! (`tcp_rcv_synsent_state_process`).
//! **Deviations.** Data on a SYN without a Fast Open cookie is not queued: it is acknowledged when retransmitted, as in Linux.
//! `TCP_DEFER_ACCEPT` acts on listeners only; in Linux it also holds the acknowledgment of a SYN-ACK back.

use crate::packet::{Ecn, Flags, Segment};
use crate::seq::SeqNumber;
use crate::tcp::accecn::{AccEcn, Agreed, of_syn, of_syn_ack};
use crate::tcp::config::EcnFeedback;
use crate::tcp::send::peer_window::PeerWindow;
use crate::tcp::state::shared::coarse;
use crate::tcp::{Accepted, Connection, ConnectionError, Control, Event, Receive, State, Timer};
use crate::time::{Duration, Instant};

impl Connection {
    pub(in crate::tcp) fn send_syn(&mut self, now: Instant) {
        self.control = Control::Syn;
        self.syn_sent_at = now;
        let at = now + self.shared.rtt.rto(&self.shared.config.rto);
        self.shared.arm(now, Timer::Syn, at);
    }

    pub(in crate::tcp) fn on_syn_timeout(&mut self, now: Instant) {
        self.syn_attempts = self.syn_attempts.saturating_add(1);
        self.shared.stats.timeouts += 1;
        let config = &self.shared.config;
        let active = self.state == State::SynSent;
        let linear = if active {
            config.patience.syn_linear_timeouts
        } else {
            0
        };
        let retries = if active {
            let own = self.shared.cold.as_ref().and_then(|cold| cold.syn_retries);
            own.unwrap_or(config.syn_retries).saturating_add(linear)
        } else {
            config.patience.synack_retries
        };
        let first = self.first_syn_timeout(now);
        let over = self
            .shared
            .user_timeout()
            .is_some_and(|limit| self.syn_attempts > 1 && now.since(first) >= limit);
        // Linux `syn_ack_recalc`: nothing is sent while data is awaited, and so nothing was lost.
        let deferral = self.shared.cold.as_ref().map_or(0, |cold| cold.deferral);
        if self.syn_attempts > retries.max(deferral) || over {
            self.fail(ConnectionError::TimedOut);
            return;
        }
        if self.syn_attempts < deferral {
            self.shared.rtt.back_off(&self.shared.config.rto);
            let at = now + self.shared.rtt.rto(&self.shared.config.rto);
            self.shared.arm(now, Timer::Syn, at);
            return;
        }
        if self.shared.syn_lost == 0 {
            self.shared.first_syn = self.shared.timestamp(self.syn_sent_at);
        }
        self.shared.syn_lost = self.shared.syn_lost.saturating_add(1);
        self.shared.stats.retransmits += 1;
        if self.syn_attempts > linear {
            self.shared.rtt.back_off(&self.shared.config.rto);
        }
        self.send_syn(now);
    }

    /// The SYN-ACK was acknowledged, and the connection waits for data (`TCP_DEFER_ACCEPT`): the SYN-ACK is sent again only after so
    /// many timeouts.
    pub(crate) fn defer(&mut self, timeouts: u8) {
        self.shared.cold_mut().deferral = timeouts;
    }

    /// When the SYN first timed out, remembered if there is a user timeout.
    fn first_syn_timeout(&mut self, now: Instant) -> Instant {
        if self.shared.user_timeout().is_none() {
            return now;
        }
        *self.shared.cold_mut().probing_since.get_or_insert(now)
    }

    /// Options and sequence number of the peer's SYN.
    pub(in crate::tcp) fn on_syn(&mut self, now: Instant, syn: &Segment) {
        let shared = &mut self.shared;
        let own = shared.own_mss();
        let config = &shared.config;
        shared.irs = syn.seq;
        let pingpong = self.receive.acking.in_pingpong();
        self.receive = Receive::new(config);
        if pingpong {
            self.receive.acking.enter_pingpong(); // TCP_QUICKACK was turned off before
        }
        shared.sack = config.sack && syn.flags.contains(Flags::SACK_PERMITTED);
        shared.timestamps = config.timestamps && syn.flags.contains(Flags::TIMESTAMPS);
        if shared.timestamps {
            (shared.ts_recent, shared.ts_recent_at) = (syn.tsval, coarse(now));
        }
        shared.peer_scales = syn.window_scale().is_some();
        if let (Some(ours), Some(theirs)) = (config.window_scale, syn.window_scale()) {
            shared.snd_scale = theirs.min(14); // RFC 7323 2.3
            shared.rcv_scale = ours.min(14);
        } else {
            shared.snd_scale = 0;
            shared.rcv_scale = 0;
        }
        let acked = syn.flags.contains(Flags::ACK);
        let stamps = if shared.timestamps && !acked { 12 } else { 0 };
        let options = if shared.timestamps { 12 } else { 0 };
        let (first, full) = (own.saturating_sub(stamps), own.saturating_sub(options));
        self.receive.on_syn(config, first, full, shared.rcv_scale);
        // RFC 9293 3.7.1: the smaller of both, less what options take (RFC 6691).
        let peer = match syn.mss() {
            None => config.default_mss(),
            Some(u16::MAX) => u32::MAX, // RFC 2675 5.1: no limit but the path's MTU
            Some(mss) => u32::from(mss),
        };
        shared.mss = peer.min(own).saturating_sub(options).max(config.path.min_mss);
        shared.agree_to_ecn(syn, acked);
        shared.peer = PeerWindow::of_syn(u64::from(syn.window), acked); // never scaled (RFC 7323 2.2)
        let _ = now;
    }

    /// RFC 9293 3.10.7.3.
    pub(in crate::tcp) fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment) -> Accepted {
        let acked = segment.flags.contains(Flags::ACK);
        let ack = segment.ack.to_offset(self.shared.iss, 1);
        let reset = segment.flags.contains(Flags::RST);
        // First: the ACK must be for our SYN, or for data on it.
        if acked && !(1..=self.highest_sent() as i64).contains(&ack) {
            if !reset {
                self.answer_with_reset(segment.ack);
            }
            return self.nothing();
        }
        // Second: RST.
        if reset {
            if acked {
                self.fail(ConnectionError::Refused);
            }
            return self.nothing();
        }
        // Fourth: SYN.
        if !segment.flags.contains(Flags::SYN) {
            return self.nothing();
        }
        self.on_syn(now, segment);
        if !acked {
            // RFC 9293 3.5, figure 7: SYNs crossed.
            self.state = State::SynReceived;
            self.control = Control::Syn;
            return self.nothing();
        }
        self.finish_handshake(now, segment, ack as u64);
        self.acknowledge_syn_ack(now);
        if segment.payload == 0 {
            return self.nothing();
        }
        // Fifth: text on the SYN-ACK, as of the octet after the SYN.
        let mut text = *segment;
        text.flags = text.flags.without(Flags::SYN);
        self.on_payload::<false>(now, &text, 1)
    }

    /// The SYN-ACK is to be acknowledged (Linux `tcp_rcv_synsent_state_process`).
    fn acknowledge_syn_ack(&mut self, now: Instant) {
        let (shared, acking) = (&mut self.shared, &mut self.receive.acking);
        // Data of the SYN that was not taken is sent again at once, and carries the acknowledgment.
        let repeats = self.sender.as_ref().is_some_and(|sender| sender.board.out > 0);
        if shared.accecn.is_some() {
            self.control = Control::Ack; // RFC 9768 3.2.2.1: a bare one reports how the SYN-ACK came
        } else if !repeats
            && (acking.in_pingpong() || shared.cold.as_ref().is_some_and(|cold| cold.writer_waits))
        {
            // Data will carry it.
            acking.waits = true;
            acking.enter_quick(&shared.config, u64::MAX, u8::MAX);
            shared.timers.delayed_ack = shared.expiry(now, Duration::from_millis(200)); // TCP_DELACK_MAX
        } else if !repeats && shared.config.lone_handshake_ack {
            self.control = Control::Ack; // it leaves before the program can write
        } else {
            acking.now = true;
        }
    }

    /// The ACK of our SYN in SYN-RECEIVED. False: drop the segment.
    pub(in crate::tcp) fn on_ack_in_syn_received(
        &mut self,
        now: Instant,
        segment: &Segment,
        ack: i64,
    ) -> bool {
        if !(1..=self.highest_sent() as i64).contains(&ack) {
            self.answer_with_reset(segment.ack); // RFC 9293 3.10.7.4, fifth
            return false;
        }
        if let Some(accecn) = self.shared.accecn.as_deref_mut()
            && !segment.flags.contains(Flags::SYN)
        {
            accecn.on_last_ack(&self.shared.config, segment);
        }
        self.finish_handshake(now, segment, ack as u64);
        true
    }

    /// Another SYN of the peer in SYN-RECEIVED, or its SYN-ACK after the first: an answer is due, unless it asks for another kind of
    /// ECN than the first (RFC 9768 3.1.5).
    pub(in crate::tcp) fn on_syn_again(&mut self, syn: &Segment) {
        let config = &self.shared.config;
        let sound = match self.shared.accecn.as_deref_mut() {
            Some(accecn) => accecn.on_another_syn(config, syn),
            None => {
                let most = config.ecn.max(config.ecn_passive);
                !(self.shared.ecn && of_syn(syn.ace(), most) == Agreed::Accurate)
            }
        };
        if sound {
            self.control = Control::Syn; // our SYN-ACK was lost
        } else {
            self.fail(ConnectionError::Reset);
            self.control = Control::Reset;
        }
    }

    fn finish_handshake(&mut self, now: Instant, segment: &Segment, ack: u64) {
        let shared = &mut self.shared;
        shared.timers.disarm();
        // A fourth SACK block stands where timestamps would.
        let echoes = shared.timestamps && segment.flags.contains(Flags::TIMESTAMPS) && segment.tsecr != 0;
        if self.syn_sent_at == Instant::FAR_FUTURE {
            // The SYN-ACK was a cookie: when it left is not known.
        } else if ack > 1 && self.passive {
            // Data of a Fast Open server is acknowledged, too, and gives the sample: it left later (Linux `tcp_synack_rtt_meas`).
        } else if shared.syn_lost == 0 {
            shared.sample(now, now.since(self.syn_sent_at), false);
        } else if echoes {
            let elapsed = shared.timestamp(now).wrapping_sub(segment.tsecr).max(1);
            shared.sample(now, Duration::from_millis(u64::from(elapsed)), false);
        }
        // RFC 3522, Linux `tcp_try_undo_spurious_syn`: the first was answered, so none was lost.
        if shared.config.undo && echoes && segment.tsecr == shared.first_syn {
            shared.syn_lost = 0;
        }
        if shared.syn_lost > 0 {
            shared.rtt.after_syn_timeout(&shared.config.rto); // RFC 6298 5.7
        }
        self.state = State::Established;
        self.receive.start(now);
        if !segment.flags.contains(Flags::SYN) {
            shared.peer.open(u64::from(segment.window) << shared.snd_scale);
        }
        shared.fit_segments_to_window();
        shared.raise(Event::Established);
        if self.close_queued {
            self.state = State::FinWait1;
        }
        if self.shared.cold.is_some() {
            self.settle_syn_data(now, segment, ack);
        }
        self.feed_sender(now);
        if let Some(sender) = &self.sender
            && sender.board.out > 0
        {
            // Sent before the handshake was over (Fast Open).
            let at = now + self.shared.rtt.rto(&self.shared.config.rto);
            self.shared.arm(now, Timer::Rto, at);
        }
        self.start_mtu_search(now);
        self.start_keep_alive(now);
    }

    /// SYN in SYN-SENT, SYN-ACK in SYN-RECEIVED.
    pub(in crate::tcp) fn syn_segment(&mut self, now: Instant) -> Segment {
        let answer = self.state == State::SynReceived;
        let attempts = self.syn_attempts;
        let shared = &mut self.shared;
        let own = shared.own_mss();
        let config = &shared.config;
        let mut flags = Flags::SYN.with(Flags::MSS).with(Flags::DF);
        let mut options = 4_u8;
        let mut word = own.min(65_535);
        if answer {
            flags = flags.with(Flags::ACK);
        }
        let (mut tsval, mut tsecr) = (0, 0);
        if if answer {
            shared.timestamps
        } else {
            config.timestamps
        } {
            flags = flags.with(Flags::TIMESTAMPS);
            tsval = shared.timestamp(now);
            tsecr = if answer { shared.ts_recent } else { 0 };
            options += 12;
        }
        if if answer { shared.sack } else { config.sack } {
            flags = flags.with(Flags::SACK_PERMITTED);
            // Packed into the padding of the timestamps option, as all systems do.
            options += if flags.contains(Flags::TIMESTAMPS) { 0 } else { 4 };
        }
        let scale = if answer {
            shared.rcv_scale_offered(config.window_scale)
        } else {
            config.window_scale
        };
        if let Some(scale) = scale {
            flags = flags.with(Flags::SCALE);
            word |= u32::from(scale) << 16;
            options += 4;
        }
        let mut option = false;
        if let Some(accecn) = shared.accecn.as_deref_mut().filter(|_| answer) {
            let ace;
            (ace, option) = accecn.on_answer(config, attempts);
            flags = flags.with(Flags(u16::from(ace) << 6));
        } else if answer && shared.ecn {
            flags = flags.with(Flags::ECE); // RFC 3168 6.1.1
        } else if !answer && shared.asks_for_ecn(attempts) {
            flags = flags.with(Flags::ECE).with(Flags::CWR);
            if config.ecn == EcnFeedback::Accurate {
                flags = flags.with(Flags::AE); // RFC 9768 3.1.1
            }
        }
        if answer {
            shared.last_ack_sent = self.receive.rcv_nxt;
            self.receive.acking.on_sent(&shared.config);
        }
        let window = match config.receive_memory {
            Some(memory) if !answer => {
                let scale = config.window_scale.unwrap_or(0);
                crate::tcp::receive::rcvbuf::Room::new(memory, own, own, scale)
                    .first_window()
                    .min(65_535)
            }
            Some(_) | None => self.receive.first_window(config),
        };
        let mut segment = Segment {
            seq: shared.iss,
            ack: if answer {
                SeqNumber::from_offset(shared.irs, self.receive.rcv_nxt)
            } else {
                SeqNumber(0)
            },
            tsval,
            tsecr,
            options: [word, 0, 0, 0, 0, 0],
            window: window as u16,
            flags,
            ttl: 64,
            overhead: config.header() as u8 + options,
            ..Segment::default()
        };
        if shared.cold.is_some() {
            self.put_fast_open(&mut segment);
            if let Some(cold) = &self.shared.cold {
                cold.decorate(0, &mut segment);
            }
        }
        if option {
            self.shared.put_first_option(&mut segment);
        }
        segment
    }
}

impl crate::tcp::Shared {
    /// What both ends use of ECN, by the peer's SYN or SYN-ACK (`acked`).
    fn agree_to_ecn(&mut self, syn: &Segment, acked: bool) {
        let config = &self.config;
        let accurate = config.ecn == EcnFeedback::Accurate;
        let (agreed, arrived) = match (acked, accurate) {
            (true, true) => of_syn_ack(syn.ace(), Ecn::NotEct),
            (true, false) => {
                // RFC 3168 6.1.1: a SYN-ACK agrees with ECE alone.
                let on = config.ecn.is_on() && syn.ace() & 3 == 1;
                (if on { Agreed::Classic } else { Agreed::No }, Ecn::NotEct)
            }
            (false, _) => (of_syn(syn.ace(), config.ecn.max(config.ecn_passive)), Ecn::NotEct),
        };
        self.ecn = agreed != Agreed::No;
        self.accecn = (agreed == Agreed::Accurate).then(|| {
            alloc::boxed::Box::new(if acked {
                AccEcn::of_syn_ack(config, syn, arrived)
            } else {
                AccEcn::of_syn(syn)
            })
        });
    }

    /// Whether the SYN asks for ECN after so many timeouts: perhaps ECN is in the way (RFC 3168 6.1.1.1, RFC 9768 3.1.4.1).
    fn asks_for_ecn(&self, timeouts: u8) -> bool {
        let config = &self.config;
        let tries = match config.ecn {
            EcnFeedback::Off => return false,
            EcnFeedback::Classic => 1,
            EcnFeedback::Accurate => 2,
        };
        timeouts < tries || !config.ecn_fallback
    }

    /// The scale a SYN-ACK carries: only if the SYN carried one (RFC 7323 2.2).
    fn rcv_scale_offered(&self, ours: Option<u8>) -> Option<u8> {
        // `snd_scale` and `rcv_scale` are both zero when the peer offered none; offering zero then would be wrong.
        (self.peer_scales).then_some(ours).flatten()
    }
}
