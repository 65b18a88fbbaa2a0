//! Segments out: what an established segment carries, data, acknowledgments, resets and keep-alive probes.
//!
//! **Source.** RFC 9293 3.1, 3.8.4, 3.10.7; RFC 7323 3.2; RFC 2018 3; RFC 3168 6.1; RFC 8257 3.
//! **Deviations.** Linux makes full segments shorter while it has SACK blocks to report (`tcp_current_mss`); here they leave without them.

use crate::packet::{Ecn, Flags, Segment};
use crate::seq::SeqNumber;
use crate::tcp::config::{EcnCodepoint, EcnEcho};
use crate::tcp::send::half::Outgoing;
use crate::tcp::{Connection, Control, State};
use crate::time::Instant;

impl Connection {
    /// SYN, SYN-ACK, the acknowledgment of a SYN-ACK, RST or a keep-alive probe.
    #[cold]
    pub(in crate::tcp) fn control_segment(&mut self, now: Instant, segment: &mut Segment) -> (u64, u64) {
        match core::mem::replace(&mut self.control, Control::None) {
            Control::Syn => {
                *segment = self.syn_segment(now);
                return (0, u64::from(segment.payload));
            }
            Control::Ack => {
                let nxt = self.snd_nxt();
                self.bare::<false>(now, nxt, u32::MAX, 0, segment);
                if let Some(accecn) = self.shared.accecn.as_deref_mut() {
                    accecn.answer(segment);
                }
            }
            Control::Answer => *segment = self.reset_answer(),
            Control::Reset => {
                let nxt = self.snd_nxt();
                self.bare::<false>(now, nxt, u32::MAX, 0, segment);
                segment.flags = segment.flags.with(Flags::RST);
                segment.set_ecn(Ecn::NotEct);
            }
            Control::None => {
                self.keep_alive_due = false;
                self.bare::<false>(now, self.snd_nxt(), u32::MAX, 0, segment);
                segment.seq = segment.seq - 1; // an old octet without data (SHLD-12)
            }
        }
        (self.written, self.written)
    }

    pub(in crate::tcp) fn snd_nxt(&self) -> u64 {
        self.sender.as_ref().map_or(1, |sender| sender.nxt)
    }

    /// A pure acknowledgment, if one is due.
    #[inline(always)]
    pub(in crate::tcp) fn pending_ack<const QUIET: bool, const RECEIVES: bool>(
        &mut self,
        now: Instant,
        segment: &mut Segment,
    ) -> Option<(u64, u64)> {
        if !self.receive.acking.now || (!QUIET && matches!(self.state, State::Closed | State::SynSent)) {
            return None;
        }
        let nxt = if RECEIVES { 1 } else { self.snd_nxt() };
        self.bare::<QUIET>(now, nxt, u32::MAX, 0, segment);
        Some((0, 0))
    }

    /// What the sender chose, as a segment, and the stream offsets that it carries. `FULL`: it is a full segment.
    #[inline(always)]
    pub(in crate::tcp) fn data_segment<const QUIET: bool, const FULL: bool>(
        &mut self,
        now: Instant,
        outgoing: Outgoing,
        segment: &mut Segment,
    ) -> (u64, u64) {
        debug_assert!(!FULL || outgoing.payload == self.shared.mss);
        let room = if FULL || !QUIET && outgoing.retransmission && self.shared.accecn.is_some() {
            0 // RFC 9768 3.2.3.2.2: perhaps its option was in the way
        } else {
            self.shared.mss.saturating_sub(outgoing.payload)
        };
        self.bare::<QUIET>(now, outgoing.seq, room, outgoing.payload, segment);
        if FULL || outgoing.payload > 0 {
            self.receive.acking.on_data_sent(now);
        }
        if outgoing.push && (FULL || outgoing.payload > 0) {
            segment.flags = segment.flags.with(Flags::PSH); // RFC 9293 MUST-61
        }
        if !QUIET && outgoing.fin {
            segment.flags = segment.flags.with(Flags::FIN);
        }
        if !QUIET && self.shared.ecn && self.shared.accecn.is_none() {
            let dctcp = self.shared.config.ecn_echo == EcnEcho::Rfc8257;
            // RFC 3168 6.1.6: not on the octet of a window probe.
            let probes = self
                .sender
                .as_ref()
                .is_some_and(|sender| sender.is_probing_window());
            if outgoing.payload > 0 && (!outgoing.retransmission && !probes || dctcp) {
                segment.set_ecn(match self.shared.config.ecn_codepoint {
                    EcnCodepoint::Ect0 => Ecn::Ect0,
                    EcnCodepoint::Ect1 => Ecn::Ect1,
                }); // RFC 3168 6.1.5: not on retransmissions
            }
            if outgoing.cwr {
                segment.flags = segment.flags.with(Flags::CWR);
            }
        }
        // A window probe may stand on the SYN, before the stream.
        let start = outgoing.seq.saturating_sub(1);
        (start, start + u64::from(outgoing.payload))
    }

    /// The SACK blocks, if there are any.
    #[inline(never)]
    pub(in crate::tcp) fn report_blocks(&mut self, segment: &mut Segment) {
        let shared = &self.shared;
        if let Some(beyond) = &mut self.receive.beyond {
            beyond.held_back.release();
        }
        if shared.sack && self.receive.has_blocks() {
            self.receive
                .write_blocks(shared.irs, shared.config.sack_blocks, segment);
            let blocks = segment.sack_blocks() as u8;
            // Two octets of padding go with either option (RFC 7323 A, RFC 2018 3).
            segment.overhead += if blocks > 0 { 4 + 8 * blocks } else { 0 };
        }
    }

    /// An ACK at offset `seq` with everything an established segment carries, for a `payload` that leaves `room` bytes of the MSS.
    /// Where the SACK blocks that there are do not fit beside it (RFC 6691 2: options and data together are no longer than the MSS), an
    /// acknowledgment of its own brings them.
    #[inline(always)]
    fn bare<const QUIET: bool>(
        &mut self,
        now: Instant,
        seq: u64,
        room: u32,
        payload: u32,
        segment: &mut Segment,
    ) {
        let (shared, receive) = (&mut self.shared, &mut self.receive);
        let window = receive.offer(&shared.config, shared.mss, shared.rcv_scale);
        let mut flags = Flags(Flags::ACK.0 | Flags::DF.0);
        let overhead = if QUIET {
            debug_assert_eq!(shared.fast.overhead(), shared.overhead());
            shared.fast.overhead()
        } else {
            shared.overhead()
        };
        let (mut tsval, mut tsecr) = (0, 0);
        if shared.timestamps {
            flags = flags.with(Flags::TIMESTAMPS);
            (tsval, tsecr) = (shared.timestamp(now), shared.ts_recent);
        }
        *segment = Segment {
            seq: SeqNumber::from_offset(shared.iss, seq),
            ack: SeqNumber::from_offset(shared.irs, receive.rcv_nxt),
            tsval,
            tsecr,
            payload,
            window,
            flags,
            ttl: 64,
            overhead,
            ..Segment::default()
        };
        if !QUIET && let Some(cold) = &shared.cold {
            cold.decorate(seq, segment);
        }
        if !QUIET && receive.echo && shared.ecn {
            segment.flags = segment.flags.with(Flags::ECE);
        }
        if !QUIET && let Some(accecn) = shared.accecn.as_deref_mut() {
            accecn.on_departure(segment, &shared.config);
        }
        let mut unreported = false;
        if receive.has_disorder() {
            let most = shared.config.sack_blocks;
            if room < MOST_BLOCKS && room < receive.blocks_len(shared.sack, shared.timestamps, most) {
                let acking = &receive.acking;
                unreported = acking.now || acking.waits || shared.timers.delays();
            } else {
                self.report_blocks(segment);
            }
        }
        if !QUIET && self.shared.accecn.is_some() {
            let left = room.saturating_sub(u32::from(segment.overhead - overhead));
            self.shared.put_option(now, left, room == u32::MAX, segment);
        }
        // It acknowledges all that came.
        let (shared, receive) = (&mut self.shared, &mut self.receive);
        shared.last_ack_sent = receive.rcv_nxt;
        shared.timers.forget_delay();
        receive.acking.on_sent(&shared.config);
        receive.acking.now |= unreported;
    }
}

/// Octets of as many SACK blocks as any segment holds, padding included.
const MOST_BLOCKS: u32 = 4 + 4 * 8;
