//! The handshake: SYN-SENT and SYN-RECEIVED, options, simultaneous open.
//!
//! **Source.** RFC 9293 3.5, 3.10.7.3, 3.10.7.4; RFC 7323 2, 3; RFC 2018 2; RFC 3168 6.1.1; RFC 6298 2, 5.7.
//! **Deviations.** Data on a SYN is not accepted (no Fast Open): it is acknowledged when retransmitted.

use super::{Connection, ConnectionError, Control, Event, Receive, State, Timer};
use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::time::Instant;

/// Send MSS without an option (RFC 9293 MUST-15), IPv4.
const DEFAULT_MSS: u32 = 536;
/// Smallest payload of a full segment that we go down to, whatever the peer offers.
const SMALLEST_MSS: u32 = 48;

impl Connection {
    pub(super) fn send_syn(&mut self, now: Instant) {
        self.control = Control::Syn;
        self.syn_sent_at = now;
        let at = now + self.shared.rtt.rto(&self.shared.config.rto);
        self.shared.timers.arm(Timer::Syn, at);
    }

    pub(super) fn on_syn_timeout(&mut self, now: Instant) {
        self.syn_attempts = self.syn_attempts.saturating_add(1);
        self.shared.stats.timeouts += 1;
        if self.syn_attempts > self.shared.config.syn_retries {
            self.fail(ConnectionError::TimedOut);
            return;
        }
        self.shared.syn_lost = self.shared.syn_lost.saturating_add(1);
        self.shared.stats.retransmits += 1;
        self.shared.rtt.back_off();
        if self.syn_attempts > 1 {
            self.shared.ecn = false; // RFC 3168 6.1.1.1: perhaps ECN is in the way
        }
        self.send_syn(now);
    }

    /// Options and sequence number of the peer's SYN.
    pub(super) fn on_syn(&mut self, now: Instant, syn: &Segment) {
        let shared = &mut self.shared;
        let config = &shared.config;
        shared.irs = syn.seq;
        self.receive = Receive::new(config);
        self.receive.on_syn(config);
        shared.sack = config.sack && syn.flags.contains(Flags::SACK_PERMITTED);
        shared.timestamps = config.timestamps && syn.flags.contains(Flags::TIMESTAMPS);
        if shared.timestamps {
            shared.ts_recent = syn.tsval;
        }
        shared.peer_scales = syn.window_scale().is_some();
        if let (Some(ours), Some(theirs)) = (config.window_scale, syn.window_scale()) {
            shared.snd_scale = theirs.min(14); // RFC 7323 2.3
            shared.rcv_scale = ours.min(14);
        } else {
            shared.snd_scale = 0;
            shared.rcv_scale = 0;
        }
        // RFC 9293 3.7.1: the smaller of both, less what options take (RFC 6691).
        let peer = syn.mss().map_or(DEFAULT_MSS, u32::from);
        let options = if shared.timestamps { 12 } else { 0 };
        shared.mss = peer.min(config.mss()).saturating_sub(options).max(SMALLEST_MSS);
        let acked = syn.flags.contains(Flags::ACK);
        shared.ecn = if acked {
            // RFC 3168 6.1.1: a SYN-ACK agrees with ECE alone.
            config.ecn
                && syn.flags.contains(Flags::ECE)
                && !syn.flags.contains(Flags::CWR)
                && shared.syn_lost < 2
        } else {
            (config.ecn || config.ecn_passive) && syn.flags.contains(Flags::ECE.with(Flags::CWR))
        };
        shared.snd_edge = 1 + u64::from(syn.window); // never scaled (RFC 7323 2.2)
        shared.max_snd_wnd = u64::from(syn.window);
        shared.snd_wl1 = 0;
        shared.snd_wl2 = if acked { 1 } else { 0 };
        let _ = now;
    }

    /// RFC 9293 3.10.7.3.
    pub(super) fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let acked = segment.flags.contains(Flags::ACK);
        if acked && segment.ack != self.shared.iss + 1 {
            return; // the listener's side answers an impossible ACK with RST; a stray one is ignored here
        }
        if segment.flags.contains(Flags::RST) {
            if acked {
                self.fail(ConnectionError::Refused);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.on_syn(now, segment);
        if acked {
            self.finish_handshake(now, Some(segment));
            self.receive.ack_now = true;
        } else {
            // RFC 9293 3.5, figure 7: SYNs crossed.
            self.state = State::SynReceived;
            self.control = Control::Syn;
        }
    }

    /// The ACK of our SYN in SYN-RECEIVED. False: drop the segment.
    pub(super) fn on_ack_in_syn_received(&mut self, now: Instant, segment: &Segment, ack: i64) -> bool {
        if ack != 1 {
            return false; // the listener resets what does not belong here
        }
        self.finish_handshake(now, Some(segment));
        true
    }

    fn finish_handshake(&mut self, now: Instant, segment: Option<&Segment>) {
        let shared = &mut self.shared;
        shared.timers.disarm();
        let config = &shared.config.rto;
        if self.syn_sent_at == Instant::FAR_FUTURE {
            // The SYN-ACK was a cookie: when it left is not known.
        } else if shared.syn_lost == 0 {
            shared.rtt.sample(config, now.since(self.syn_sent_at));
        } else if let Some(segment) = segment
            && shared.timestamps
            && segment.tsecr != 0
        {
            let elapsed = shared.timestamp(now).wrapping_sub(segment.tsecr).max(1);
            shared
                .rtt
                .sample(config, crate::time::Duration::from_millis(u64::from(elapsed)));
        }
        if shared.syn_lost > 0 {
            shared.rtt.after_syn_timeout(config); // RFC 6298 5.7
        }
        self.state = State::Established;
        if let Some(segment) = segment
            && !segment.flags.contains(Flags::SYN)
        {
            shared.snd_edge = 1 + (u64::from(segment.window) << shared.snd_scale);
        }
        shared.raise(Event::Established);
        if self.close_queued {
            self.state = State::FinWait1;
        }
        self.feed_sender(now);
        self.start_keep_alive(now);
    }

    /// SYN in SYN-SENT, SYN-ACK in SYN-RECEIVED.
    pub(super) fn syn_segment(&mut self, now: Instant) -> Segment {
        let answer = self.state == State::SynReceived;
        let shared = &mut self.shared;
        let config = &shared.config;
        let mut flags = Flags::SYN.with(Flags::MSS).with(Flags::DF);
        let mut options = 4_u8;
        let mut word = config.mss().min(65_535);
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
        if answer && shared.ecn {
            flags = flags.with(Flags::ECE); // RFC 3168 6.1.1
        } else if !answer && config.ecn && self.syn_attempts < 2 {
            flags = flags.with(Flags::ECE).with(Flags::CWR);
        }
        if answer {
            shared.last_ack_sent = self.receive.rcv_nxt;
            self.receive.on_ack_sent();
        }
        Segment {
            seq: shared.iss,
            ack: if answer {
                SeqNumber::from_offset(shared.irs, self.receive.rcv_nxt)
            } else {
                SeqNumber(0)
            },
            tsval,
            tsecr,
            options: [word, 0, 0, 0, 0, 0],
            window: config.receive_buffer.get().min(65_535) as u16,
            flags,
            ttl: 64,
            overhead: Segment::IPV4_TCP_HEADER + options,
            ..Segment::default()
        }
    }
}

impl super::Shared {
    /// The scale a SYN-ACK carries: only if the SYN carried one (RFC 7323 2.2).
    fn rcv_scale_offered(&self, ours: Option<u8>) -> Option<u8> {
        // `snd_scale` and `rcv_scale` are both zero when the peer offered none; offering zero then would be wrong.
        (self.peer_scales).then_some(ours).flatten()
    }
}
