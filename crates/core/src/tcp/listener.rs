//! What answers in LISTEN and CLOSED: which SYN opens a connection, and who gets a reset.
//!
//! **Source.** RFC 9293 3.10.7.1, 3.10.7.2.
//! **Deviations.** No SYN cookies.

use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;

/// The answer to a segment that belongs to no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Open a connection with [`Connection::accept`](super::Connection::accept).
    Accept,
    /// Send this reset.
    Reset(Segment),
    /// Say nothing.
    Drop,
}

/// RFC 9293 3.10.7.2: a segment for a port where somebody listens.
pub fn on_listen(segment: &Segment) -> Answer {
    if segment.flags.contains(Flags::CORRUPT) || segment.flags.contains(Flags::RST) {
        return Answer::Drop;
    }
    if segment.flags.contains(Flags::ACK) {
        return on_closed(segment);
    }
    if segment.flags.contains(Flags::SYN) {
        return Answer::Accept;
    }
    Answer::Drop
}

/// RFC 9293 3.10.7.1: a segment for a port where nobody is.
pub fn on_closed(segment: &Segment) -> Answer {
    if segment.flags.contains(Flags::CORRUPT) || segment.flags.contains(Flags::RST) {
        return Answer::Drop;
    }
    let mut reset = Segment {
        flags: Flags::RST.with(Flags::DF),
        ttl: 64,
        overhead: Segment::IPV4_TCP_HEADER,
        ..Segment::default()
    };
    if segment.flags.contains(Flags::ACK) {
        reset.seq = segment.ack;
    } else {
        reset.seq = SeqNumber(0);
        reset.ack = segment.seq + segment.sequence_len();
        reset.flags = reset.flags.with(Flags::ACK);
    }
    Answer::Reset(reset)
}
