//! Resets that arrive: which count beside the one at RCV.NXT, and what they end.
//!
//! **Source.** RFC 9293 3.10.7.4, second; RFC 5961 3.2; RFC 1337; Linux 6.18 `tcp_validate_incoming`.
//! **Deviations.** A reset in TIME-WAIT is ignored (RFC 1337 F1). Where the window follows memory as in Linux (`receive_memory`), a reset
//! also counts at the right edge of what the SACK blocks report, and at the peer's FIN.

use crate::tcp::{Connection, ConnectionError, State};

impl Connection {
    /// Whether Linux takes a reset that RFC 5961 3.2 does not: at the FIN of a peer that may not have heard of its acknowledgment
    /// (`tcp_reset_check`), or at the right edge of the SACK blocks (`tcp_validate_incoming`).
    #[cold]
    pub(super) fn resets_as_in_linux(&self, seq: i64) -> bool {
        if self.receive.room.is_none() || self.state == State::SynReceived {
            return false;
        }
        let after_fin = matches!(self.state, State::CloseWait | State::LastAck | State::Closing);
        let sacked = self.receive.right_edge_reported().filter(|_| self.shared.sack);
        after_fin && seq == self.receive.rcv_nxt as i64 - 1 || sacked.is_some_and(|edge| seq == edge as i64)
    }

    /// A reset that counts arrived.
    pub(super) fn on_reset(&mut self) {
        match self.state {
            // RFC 9293 3.10.7.4: "connection refused" after an active open; Linux resets a passive one.
            State::SynReceived if self.passive => self.fail(ConnectionError::Reset),
            State::SynReceived => self.fail(ConnectionError::Refused),
            State::TimeWait => {} // RFC 1337 F1: a reset does not end TIME-WAIT
            State::Closed
            | State::SynSent
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::LastAck
            | State::Closing => self.fail(ConnectionError::Reset),
        }
    }
}
