//! What the ECN flags of a handshake mean: tables 2, 3 and 4 of RFC 9768, and which changes of a codepoint are none of a sound path.
//!
//! **Source.** RFC 9768 3.1.1 to 3.1.3, 3.2.2.1, 3.2.2.3; RFC 3168 6.1.1.
//! **Deviations.** None known.

use crate::packet::Ecn;
use crate::tcp::config::EcnFeedback;

/// The feedback of a connection, by its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Agreed {
    /// No ECN feedback.
    No,
    /// The feedback of RFC 3168 or RFC 8257.
    Classic,
    /// Accurate ECN.
    Accurate,
}

/// What a server that knows `most` agrees to when a SYN with this ACE field comes (RFC 9768 3.1.2, 3.1.3).
pub(in crate::tcp) const fn of_syn(ace: u8, most: EcnFeedback) -> Agreed {
    match (most, ace & 7) {
        (EcnFeedback::Off, _) | (_, 0) => Agreed::No,
        (EcnFeedback::Classic | EcnFeedback::Accurate, 0b011) => Agreed::Classic,
        // A server of RFC 3168 does not know the third flag.
        (EcnFeedback::Classic, ace) => {
            if ace & 3 == 3 {
                Agreed::Classic
            } else {
                Agreed::No
            }
        }
        (EcnFeedback::Accurate, _) => Agreed::Accurate,
    }
}

/// What a client that asked for Accurate ECN uses when a SYN-ACK with this ACE field comes, and how its SYN came there, if that is said
/// (RFC 9768 table 2, 3.1.3).
pub(in crate::tcp) const fn of_syn_ack(ace: u8, sent: Ecn) -> (Agreed, Ecn) {
    match ace & 7 {
        0b001 => (Agreed::Classic, sent),
        0b010 => (Agreed::Accurate, Ecn::NotEct),
        0b011 => (Agreed::Accurate, Ecn::Ect1),
        0b100 => (Agreed::Accurate, Ecn::Ect0),
        0b101 => (Agreed::Accurate, sent), // reserved: as if it had come unchanged
        0b110 => (Agreed::Accurate, Ecn::Ce),
        // None, or flags that were sent back as they came.
        _ => (Agreed::No, sent),
    }
}

/// The ACE field that reports how a SYN or SYN-ACK came: its codepoint (RFC 9768 table 3).
pub(super) const fn code_of(codepoint: u8) -> u8 {
    match codepoint & 3 {
        0 => 0b010,
        1 => 0b011,
        2 => 0b100,
        _ => 0b110,
    }
}

/// The meaning of the acknowledgment of a SYN-ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastAck {
    /// The peer is not in this mode, or something cleared the field.
    Zero,
    /// A value that says nothing yet.
    Unused,
    /// How the SYN-ACK came.
    Arrived(Ecn),
}

/// RFC 9768 table 4.
pub(super) const fn of_last_ack(ace: u8) -> LastAck {
    match ace & 7 {
        0b000 => LastAck::Zero,
        0b010 => LastAck::Arrived(Ecn::NotEct),
        0b011 => LastAck::Arrived(Ecn::Ect1),
        0b100 => LastAck::Arrived(Ecn::Ect0),
        0b110 => LastAck::Arrived(Ecn::Ce),
        _ => LastAck::Unused,
    }
}

/// Whether a packet that left as `sent` may have come as `arrived` over a sound path (RFC 3168 18.1.1).
pub(super) fn arrives_soundly(sent: Ecn, arrived: Ecn) -> bool {
    sent == arrived || !(sent == Ecn::NotEct || arrived == Ecn::NotEct || sent == Ecn::Ce)
}
