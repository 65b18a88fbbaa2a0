//! Accurate ECN: the receiver of data counts every congestion mark, and the sender learns the count.
//!
//! The three flags of the SYN and the SYN-ACK negotiate it and report how each of the two arrived (`handshake`). From then on
//! each end counts the packets that came with CE, and the payload bytes per codepoint (`received`); the lowest three bits of
//! the first count stand in every header (ACE), the others in an option where there is room. What comes back is decoded by
//! the sender of data (`reported`), and its congestion control learns how many packets and bytes were marked, in place of the
//! echo of RFC 3168 or RFC 8257. A connection without it holds a pointer that is empty.
//!
//! **Source.** RFC 9768; RFC 3168 18.1.1 (invalid changes of the codepoint), RFC 5562 3.2 (a marked SYN-ACK begins with a window of one segment).
//! Where the RFC leaves it open, Linux 6.18 to 7.0 (`include/net/tcp_ecn.h`, `tcp_input.c`, `tcp_output.c`).
//! **Decisions.** All segments after the handshake are ECN-capable, pure acknowledgments and retransmissions included, as in Linux
//! and draft-ietf-tcpm-generalized-ecn. Any change of the codepoint on data is acknowledged at once, not only one to CE. The option
//! has order 1 (kind 174), the only one that Linux writes (`tcp_options_write`), so bytes of ECT(0) are its third field and do not fit beside
//! timestamps and two SACK blocks. It is sent only to a peer that was seen to send it (RFC 9768 3.2.3.2.3 would have it sent anyway).
//! **Deviations.** The option never shortens a segment: full data segments go without, and so do retransmissions. Marks are reconciled with
//! the option as the fewest packets that agree with both counters, not by the algorithm of A.2.2. Blocked options and failed
//! attempts are not remembered for later connections; data without ECT is acknowledged at once as a change of the codepoint, without the further
//! quick acknowledgment of Linux (`tcp_data_ecn_check`); the tests of 3.2.2.3 for continuous marks and of 3.2.2.4, which the RFC leaves
//! open, are not made.

mod handshake;
mod received;
mod reported;
#[cfg(test)]
mod tests;

pub(in crate::tcp) use handshake::{Agreed, of_syn, of_syn_ack};

use crate::packet::{AccEcnOption, Ecn, Flags, Segment};
use crate::tcp::Shared;
use crate::tcp::config::{Config, EcnCodepoint, EcnEcho, EcnOption};
use crate::tcp::receive::ack_policy::Acking;
use crate::time::{Duration, Instant};
use handshake::{LastAck, arrives_soundly, code_of, of_last_ack};
use received::{Received, Room, Rule};
use reported::{Feedback, Reported};
use serde::{Deserialize, Serialize};

/// State of a connection on which both ends agreed to Accurate ECN.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct AccEcn {
    /// What came from the peer: this end as a receiver of data.
    pub(in crate::tcp) received: Received,
    /// What the peer reports: this end as a sender of data.
    pub(in crate::tcp) reported: Reported,
    /// Codepoint of the newest SYN or SYN-ACK of the peer.
    peer_syn: u8,
    /// SYN-ACKs sent.
    answers: u8,
    /// The next bare acknowledgment reports how the SYN-ACK came.
    answer_due: bool,
    /// The segment that just came reported how the SYN-ACK came: its ACE field is no counter.
    answered: bool,
    /// Segments are ECN-capable.
    capable: bool,
    /// The peer reported that our SYN or SYN-ACK was marked.
    syn_marked: bool,
}

impl AccEcn {
    /// The server's state: `syn` asked for it.
    pub(in crate::tcp) fn of_syn(syn: &Segment) -> AccEcn {
        let mut state = AccEcn::new(syn);
        state.received.demand(1);
        state
    }

    /// The state after a handshake that was not looked at.
    pub(in crate::tcp) fn established() -> AccEcn {
        let mut state = AccEcn::new(&Segment::default());
        state.received.peer_sends_option();
        state
    }

    /// The client's state: `syn_ack` agreed to it, and reported that the SYN came as `arrived`.
    pub(in crate::tcp) fn of_syn_ack(config: &Config, syn_ack: &Segment, arrived: Ecn) -> AccEcn {
        let mut state = AccEcn::new(syn_ack);
        state.answer_due = true;
        state.received.demand(2);
        state.received.on_syn_ack(syn_ack.ecn());
        state.note_option(syn_ack);
        state.check_path(config, arrived);
        state
    }

    fn new(syn: &Segment) -> AccEcn {
        AccEcn {
            received: Received::new(syn.ecn()),
            reported: Reported::new(),
            peer_syn: syn.ecn() as u8,
            answers: 0,
            answer_due: false,
            answered: false,
            capable: true,
            syn_marked: false,
        }
    }

    /// RFC 9768 3.2.2.3: our SYN or SYN-ACK, which was not ECN-capable, came as `arrived`.
    fn check_path(&mut self, config: &Config, arrived: Ecn) {
        self.syn_marked |= arrived == Ecn::Ce;
        if config.ecn_fallback && !arrives_soundly(Ecn::NotEct, arrived) {
            self.capable = false;
        }
    }

    /// The option of a SYN-ACK or of a later segment.
    fn note_option(&mut self, segment: &Segment) {
        if let Some(option) = segment.accecn() {
            self.reported.on_option(&option);
            self.received.peer_sends_option();
        }
    }

    /// The ACE field of a SYN-ACK after so many timeouts, and whether its option is tried with it (RFC 9768 3.1.1, 3.2.3.2.2).
    pub(in crate::tcp) fn on_answer(&mut self, config: &Config, timeouts: u8) -> (u8, bool) {
        let first = self.answers == 0;
        self.answers = self.answers.saturating_add(1);
        if timeouts >= 2 && config.ecn_fallback {
            self.capable = false; // RFC 9768 3.1.5: not after a SYN-ACK without the flags
            return (0, false);
        }
        (
            code_of(self.peer_syn),
            first && config.ecn_option != EcnOption::Never,
        )
    }

    /// Another SYN of the peer in the same handshake. False: it asks for another kind of feedback, and the connection is to be reset
    /// (RFC 9768 3.1.5).
    pub(in crate::tcp) fn on_another_syn(&mut self, config: &Config, syn: &Segment) -> bool {
        self.peer_syn = syn.ecn() as u8;
        match of_syn(syn.ace(), config.ecn.max(config.ecn_passive)) {
            Agreed::Accurate => true,
            Agreed::No => {
                self.capable = false;
                true
            }
            Agreed::Classic => false,
        }
    }

    /// The segment that acknowledges the SYN-ACK in SYN-RECEIVED (RFC 9768 3.2.2.1, table 4).
    pub(in crate::tcp) fn on_last_ack(&mut self, config: &Config, segment: &Segment) {
        self.note_option(segment);
        if segment.payload > 0 || segment.sack_blocks() > 0 || segment.sequence_len() > 0 {
            return; // its field is the counter
        }
        self.answered = true;
        match of_last_ack(segment.ace()) {
            LastAck::Zero => {
                self.capable = false;
                self.reported.ignore_marks();
            }
            LastAck::Unused => {}
            LastAck::Arrived(ecn) => {
                if ecn == Ecn::Ce {
                    self.reported.syn_ack_was_marked();
                }
                self.check_path(config, ecn);
            }
        }
    }

    /// An acceptable segment of the peer; see [`Received::on_arrival`].
    pub(in crate::tcp) fn on_arrival(
        &mut self,
        acking: &mut Acking,
        segment: &Segment,
        old: bool,
        answers: bool,
    ) {
        self.answered = false;
        self.received.on_arrival(acking, segment, old, answers);
    }

    /// Another SYN-ACK after the first: its acknowledgment reports how it came (RFC 9768 3.2.2.1).
    pub(in crate::tcp) fn on_another_syn_ack(&mut self, segment: &Segment) {
        self.peer_syn = segment.ecn() as u8;
        self.answer_due = true;
        self.received.on_syn_ack(segment.ecn());
    }

    /// The bare acknowledgment of a SYN-ACK leaves: without SACK blocks its ACE field reports how that came (RFC 9768 3.2.2.1).
    pub(in crate::tcp) fn answer(&mut self, segment: &mut Segment) {
        if core::mem::take(&mut self.answer_due) && segment.sack_blocks() == 0 {
            segment.set_ace(code_of(self.peer_syn));
        }
    }

    /// A segment leaves: its ACE field and its codepoint.
    pub(in crate::tcp) fn on_departure(&mut self, segment: &mut Segment, config: &Config) {
        segment.set_ace(self.received.on_departure());
        if self.capable {
            segment.set_ecn(match config.ecn_codepoint {
                EcnCodepoint::Ect0 => Ecn::Ect0,
                EcnCodepoint::Ect1 => Ecn::Ect1,
            });
        }
    }

    /// Whether the peer reported a mark on our SYN or SYN-ACK: the first window is one segment (RFC 5562 3.2).
    pub(in crate::tcp) const fn syn_was_marked(&self) -> bool {
        self.syn_marked
    }
}

impl Shared {
    /// An acceptable acknowledgment that delivered so many `segments` with so many `bytes` of payload.
    #[cold]
    pub(in crate::tcp) fn on_feedback(&mut self, segment: &Segment, segments: u32, bytes: u64) {
        let newer = self.timestamps && (segment.tsval.wrapping_sub(self.ts_recent) as i32) > 0;
        let Some(state) = self.accecn.as_deref_mut() else {
            return;
        };
        state.note_option(segment);
        let feedback = Feedback {
            segments,
            bytes,
            mss: self.mss,
            sent: self.stats.bytes_sent,
        };
        // RFC 9768 A.1: an acknowledgment that shows neither new data nor a later time may be an old one.
        let sound = if (bytes > 0 || newer) && !state.answered {
            state.reported.take(segment, &feedback)
        } else {
            state.reported.skip();
            true
        };
        state.capable &= sound;
    }

    /// Whether an acknowledgment reports marks that were not known: by its echo, or by what was just decoded of it.
    pub(in crate::tcp) fn reports_marks(&self, segment: &Segment) -> bool {
        match &self.accecn {
            None => segment.flags.contains(Flags::ECE),
            Some(state) => state.reported.newly().packets > 0,
        }
    }

    /// Whether an acknowledgment may report marks, before it is decoded.
    pub(in crate::tcp) fn may_report_marks(&self, segment: &Segment) -> bool {
        match &self.accecn {
            None => segment.flags.contains(Flags::ECE),
            Some(state) => state.reported.differs(segment.ace()),
        }
    }

    /// Whether the peer repeats a mark until it is told that the window was reduced (RFC 3168 6.1.2). With Accurate ECN the flag counts marks
    /// (RFC 9768 3.1.5).
    pub(in crate::tcp) fn announces_reductions(&self) -> bool {
        self.ecn && self.config.ecn_echo == EcnEcho::Rfc3168 && self.accecn.is_none()
    }

    /// Bytes that the last acknowledgment reported marked, of so many that it delivered. `unit`: what a segment counts, whatever it
    /// carries; 0: its bytes.
    pub(in crate::tcp) fn marked_bytes(&self, delivered: u64, unit: u32) -> u64 {
        match &self.accecn {
            None => delivered,
            Some(state) if unit == 0 => state.reported.newly().bytes.min(delivered),
            Some(state) => {
                let packets = state.reported.newly().packets;
                (u64::from(packets) * u64::from(unit)).min(delivered)
            }
        }
    }

    /// Puts the option into an acknowledgment that leaves, if it is due and there is room: `room` bytes of the segment, and in a bare
    /// acknowledgment the place of SACK blocks after the second (`spare`).
    pub(in crate::tcp) fn put_option(&mut self, now: Instant, room: u32, spare: bool, segment: &mut Segment) {
        let rule = Rule {
            when: self.config.ecn_option,
            beacon: self.config.ecn_option_beacon,
            srtt: self.rtt.srtt().unwrap_or(Duration::ZERO),
        };
        let used = u32::from(segment.overhead).saturating_sub(self.config.header());
        let room = Room {
            header: 40_u32.saturating_sub(used),
            segment: room,
            spare,
        };
        if let Some(state) = self.accecn.as_deref_mut() {
            state.received.put_option(now, rule, room, segment);
        }
    }

    /// Puts the first option into a SYN-ACK, if there is room.
    pub(in crate::tcp) fn put_first_option(&mut self, segment: &mut Segment) {
        let used = u32::from(segment.overhead).saturating_sub(self.config.header());
        let fields = AccEcnOption::FIELDS as u8;
        let padded = AccEcnOption::padded(fields);
        if let Some(state) = self.accecn.as_deref()
            && used + u32::from(padded) <= 40
            && segment.set_accecn(&AccEcnOption::new(true, &state.received.wire())) == Some(fields)
        {
            segment.overhead += padded;
        }
    }
}
