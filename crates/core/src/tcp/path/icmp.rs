//! What an ICMP error about one of our segments does to a connection.
//!
//! A message is believed only if the sequence number it quotes is in flight. Before the handshake is over an error may
//! end the attempt; afterwards every error is soft: it is remembered, reported to the owner, and becomes the reason if the
//! connection later times out. "Too big" messages lower the path MTU ([`mtu`](crate::tcp::path::mtu)).
//!
//! **Source.** RFC 9293 3.9.2.2, RFC 1122 4.2.3.9, RFC 5927 4.1 (sequence check) and 5.2 (hard errors are soft in
//! synchronised states), RFC 6633 (source quench), RFC 6069 (reverting the back-off); which error is reported for which
//! code, and that any code ends a connection in SYN-SENT, is Linux's (`icmp_err_convert`, `tcp_v4_err`, `tcp_req_err`).
//! **Deviations.** RFC 5927 4.1 wants SEG.SEQ < SND.NXT; a quoted SND.NXT is taken as well, as Linux does (a
//! zero-window probe and a pure ACK carry it). The profile `rfc` ends SYN-SENT only for hard codes, as RFC 1122 asks.

use crate::seq::SeqNumber;
use crate::tcp::config::IcmpAbort;
use crate::tcp::state::error::NetworkError;
use crate::tcp::{Connection, ConnectionError, Control, Event, State};
use crate::time::Instant;

/// An ICMP error that quotes one of our segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Icmp {
    /// Type and code.
    pub kind: IcmpKind,
    /// Sequence number of the quoted segment.
    pub seq: SeqNumber,
}

/// Types and codes that mean something to TCP, of ICMP (RFC 792, RFC 1122 3.2.2.1) and ICMPv6 (RFC 4443).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IcmpKind {
    /// Type 3 code 0; ICMPv6 type 1 code 0.
    NetUnreachable,
    /// Type 3 code 1; ICMPv6 type 1 codes 2 and 3.
    HostUnreachable,
    /// Type 3 code 2.
    ProtocolUnreachable,
    /// Type 3 code 3; ICMPv6 type 1 code 4.
    PortUnreachable,
    /// Type 3 code 4, or ICMPv6 packet too big, with the next hop's MTU (0: unknown).
    TooBig {
        /// Next hop's MTU, bytes.
        mtu: u32,
    },
    /// Type 3 code 5.
    SourceRouteFailed,
    /// Type 3 code 6.
    NetUnknown,
    /// Type 3 code 7.
    HostUnknown,
    /// Type 3 code 8.
    SourceHostIsolated,
    /// Type 3 code 9.
    NetProhibited,
    /// Type 3 code 10.
    HostProhibited,
    /// Type 3 code 11.
    NetUnreachableForTos,
    /// Type 3 code 12.
    HostUnreachableForTos,
    /// Type 3 codes 13 to 15; ICMPv6 type 1 codes 1, 5 and 6 are [`IcmpKind::PolicyRefused`].
    Filtered,
    /// ICMPv6 type 1 codes 1, 5 and 6.
    PolicyRefused,
    /// Type 11; ICMPv6 type 3.
    TimeExceeded,
    /// Type 12; ICMPv6 type 4.
    ParameterProblem,
    /// Type 4: ignored (RFC 9293 MUST-55).
    SourceQuench,
    /// Type 5: a matter of routing.
    Redirect,
}

impl IcmpKind {
    /// The error that is reported to the owner; `None`: nothing.
    pub const fn error(self) -> Option<NetworkError> {
        Some(match self {
            IcmpKind::NetUnreachable
            | IcmpKind::NetUnknown
            | IcmpKind::NetProhibited
            | IcmpKind::NetUnreachableForTos => NetworkError::NetUnreachable,
            IcmpKind::HostUnreachable
            | IcmpKind::HostProhibited
            | IcmpKind::HostUnreachableForTos
            | IcmpKind::Filtered
            | IcmpKind::TimeExceeded => NetworkError::HostUnreachable,
            IcmpKind::ProtocolUnreachable => NetworkError::ProtocolUnreachable,
            IcmpKind::PortUnreachable => NetworkError::PortUnreachable,
            IcmpKind::TooBig { .. } => NetworkError::MessageTooBig,
            IcmpKind::SourceRouteFailed => NetworkError::SourceRouteFailed,
            IcmpKind::HostUnknown => NetworkError::HostDown,
            IcmpKind::SourceHostIsolated => NetworkError::NoNetwork,
            IcmpKind::PolicyRefused => NetworkError::Refused,
            IcmpKind::ParameterProblem => NetworkError::Protocol,
            IcmpKind::SourceQuench | IcmpKind::Redirect => return None,
        })
    }

    /// RFC 1122 4.2.3.9: the codes that say it will never work.
    const fn is_hard(self) -> bool {
        matches!(self, IcmpKind::ProtocolUnreachable | IcmpKind::PortUnreachable)
    }

    /// What makes Linux forget a half-open passive connection (`tcp_req_err`).
    const fn ends_passive_open(self) -> bool {
        matches!(
            self,
            IcmpKind::NetUnreachable
                | IcmpKind::HostUnreachable
                | IcmpKind::TimeExceeded
                | IcmpKind::ParameterProblem
        )
    }
}

impl Connection {
    /// An ICMP error about a segment of this connection arrived (RFC 9293 3.9.2.2, MUST-54).
    pub fn on_icmp(&mut self, now: Instant, icmp: &Icmp) {
        let Some(error) = icmp.kind.error() else {
            return; // RFC 9293 MUST-55
        };
        let una = self.snd_una();
        let offset = icmp.seq.to_offset(self.shared.iss, una);
        if self.state == State::Closed || offset < una as i64 || offset > self.highest_sent() as i64 {
            self.shared.cold_mut().icmp_ignored += 1; // RFC 5927 4.1
            return;
        }
        if let IcmpKind::TooBig { mtu } = icmp.kind {
            self.on_too_big(now, mtu);
            return;
        }
        match self.state {
            State::SynSent => {
                let ends = match self.shared.config.path.icmp_abort {
                    IcmpAbort::Any => true,
                    IcmpAbort::Hard => icmp.kind.is_hard(), // RFC 9293 MUST-56, SHLD-26
                };
                if ends {
                    self.fail(ConnectionError::Network(error));
                } else {
                    self.note(error);
                }
            }
            State::SynReceived => {
                let linux = self.shared.config.path.icmp_abort == IcmpAbort::Any;
                let accepted = self.shared.cold.as_ref().is_some_and(|cold| cold.accepted);
                let ends = match (self.passive && !self.is_fast_open_child(), linux) {
                    _ if accepted => false, // the owner has it: as if established
                    (true, true) => icmp.kind.ends_passive_open(),
                    (false, true) => true,
                    (_, false) => icmp.kind.is_hard(),
                };
                if ends {
                    self.fail(ConnectionError::Network(error));
                } else {
                    self.note(error);
                }
            }
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => {
                self.note(error); // RFC 5927 5.2
                let revert = self.shared.config.path.icmp_reverts_backoff
                    && matches!(icmp.kind, IcmpKind::NetUnreachable | IcmpKind::HostUnreachable);
                if revert
                    && offset == una as i64
                    && let Some(sender) = &mut self.sender
                    && let Err(error) = sender.revert_backoff(now, &mut self.shared, self.state)
                {
                    self.fail(error);
                }
            }
            State::TimeWait | State::Closed => {}
        }
    }

    /// ICMP errors so far that quoted nothing in flight (RFC 5927 4.1).
    pub fn icmp_ignored(&self) -> u32 {
        self.shared.cold.as_ref().map_or(0, |cold| cold.icmp_ignored)
    }

    /// Takes the last soft error, as `SO_ERROR` would once a connection has failed (RFC 9293 SHLD-25).
    pub fn take_soft_error(&mut self) -> Option<NetworkError> {
        self.shared.cold.as_mut().and_then(|cold| cold.soft_error.take())
    }

    /// Whether soft errors raise [`Event::SoftError`] (RFC 9293 MUST-47, SHLD-20); they are remembered either way.
    fn note(&mut self, error: NetworkError) {
        self.shared.cold_mut().soft_error = Some(error);
        self.shared.raise(Event::SoftError);
    }

    /// First offset that is not acknowledged.
    pub(in crate::tcp) fn snd_una(&self) -> u64 {
        match self.state {
            State::SynSent | State::SynReceived => 0, // the SYN
            State::Closed
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => self.sender.as_ref().map_or(1, |sender| sender.una),
        }
    }

    /// One past the highest offset sent, data on a SYN included.
    pub(in crate::tcp) fn highest_sent(&self) -> u64 {
        let on_syn = self.shared.cold.as_ref().map_or(0, |cold| cold.fast_open.on_syn);
        self.sender
            .as_ref()
            .map_or(1 + u64::from(on_syn), |sender| sender.nxt)
    }

    /// A reset in answer to a segment that has no place here (RFC 9293 3.10.7.3); the connection stays as it is.
    pub(in crate::tcp) fn answer_with_reset(&mut self, seq: SeqNumber) {
        self.shared.cold_mut().reset_at = Some(seq);
        if self.control == Control::None {
            self.control = Control::Answer;
        }
    }
}
