//! The UDP header (RFC 768), for packets that are not TCP.

use super::checksum::Sum;
use super::{Error, long, word};
use crate::packet::{Flags, Kind, Segment};
use crate::seq::SeqNumber;
use core::net::SocketAddr;

pub(super) const PROTOCOL: u8 = 17;
pub(super) const HEADER: usize = 8;

/// Bytes of TFRC after it in a data packet: number, time sent, round-trip time.
pub(super) const TFRC_DATA: usize = 12;

/// And in feedback: time echoed, delay, receive rate, loss event rate.
pub(super) const TFRC_FEEDBACK: usize = 16;

/// Fills the header of `datagram`, whose payload is in place; `numbered` puts the packet number into it.
pub(super) fn encode(
    datagram: &mut [u8],
    segment: &Segment,
    source: SocketAddr,
    destination: SocketAddr,
    numbered: bool,
) {
    let len = datagram.len() as u16;
    datagram[..2].copy_from_slice(&source.port().to_be_bytes());
    datagram[2..4].copy_from_slice(&destination.port().to_be_bytes());
    datagram[4..6].copy_from_slice(&len.to_be_bytes());
    datagram[6..8].fill(0);
    let data = [segment.seq.0, segment.tsval, segment.options[0]];
    let [delay, receive_rate, loss_event_rate, ..] = segment.options;
    let feedback = [segment.tsecr, delay, receive_rate, loss_event_rate];
    let words: &[u32] = match segment.kind() {
        Kind::TfrcData => &data,
        Kind::TfrcFeedback => &feedback,
        Kind::Datagram if numbered && datagram.len() >= HEADER + 4 => &data[..1],
        Kind::Datagram | Kind::Tcp | Kind::Icmp => &[],
    };
    for (place, word) in datagram[HEADER..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    let mut sum = Sum::pseudo_header(source.ip(), destination.ip(), PROTOCOL, u32::from(len));
    sum.add(datagram);
    let sum = match sum.finish() {
        0 => 0xffff, // zero means that there is none
        sum => sum,
    };
    let corrupt = u16::from(segment.flags.contains(Flags::CORRUPT));
    datagram[6..8].copy_from_slice(&(sum ^ corrupt).to_be_bytes());
}

/// Reads a datagram into `segment`; returns the header's length and the ports. With the `sum` of the pseudo header the checksum must
/// be right, if there is one.
pub(super) fn parse(
    bytes: &[u8],
    sum: Option<Sum>,
    segment: &mut Segment,
) -> Result<(usize, (u16, u16)), Error> {
    if bytes.len() < HEADER {
        return Err(Error::Truncated);
    }
    if usize::from(word(bytes, 4)) != bytes.len() {
        return Err(Error::Header);
    }
    if word(bytes, 6) != 0 && sum.is_some_and(|sum| sum.over(bytes) != 0) {
        return Err(Error::Checksum);
    }
    segment.set_kind(Kind::Datagram);
    segment.seq = SeqNumber(long(bytes, HEADER));
    Ok((HEADER, (word(bytes, 0), word(bytes, 2))))
}
