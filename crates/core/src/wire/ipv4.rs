//! The IPv4 header (RFC 791).

use super::checksum::Sum;
use super::{Error, Network, word};
use crate::packet::{Flags, Segment};
use core::net::{IpAddr, Ipv4Addr};

/// Length without options, which are never written.
pub(super) const HEADER: usize = 20;

/// Fills `header`, which has [`HEADER`] bytes.
pub(super) fn encode(
    header: &mut [u8],
    segment: &Segment,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    total: usize,
) {
    let flags: u16 = if segment.flags.contains(Flags::DF) {
        0x4000
    } else {
        0
    };
    header[0] = 0x45;
    header[1] = segment.tos;
    header[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    header[4..6].copy_from_slice(&segment.ip_id.to_be_bytes());
    header[6..8].copy_from_slice(&flags.to_be_bytes());
    header[8] = segment.ttl;
    header[9] = protocol;
    header[10..12].fill(0);
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let mut sum = Sum::default();
    sum.add(header);
    header[10..12].copy_from_slice(&sum.finish().to_be_bytes());
}

/// Writes traffic class and identification into the header of `packet` and updates its checksum (RFC 1624).
pub(super) fn remark(packet: &mut [u8], tos: u8, ip_id: u16) -> Result<(), Error> {
    let header = packet.get_mut(..HEADER).ok_or(Error::Truncated)?;
    if header[0] >> 4 != 4 {
        return Err(Error::Version);
    }
    let before = [word(header, 0), word(header, 4)];
    header[1] = tos;
    header[4..6].copy_from_slice(&ip_id.to_be_bytes());
    let after = [word(header, 0), word(header, 4)];
    let sum = updated(word(header, 10), before, after);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

/// Takes one from the time to live and updates the checksum (RFC 1624).
pub(super) fn decrement_ttl(packet: &mut [u8]) -> Result<u8, Error> {
    let header = packet.get_mut(..HEADER).ok_or(Error::Truncated)?;
    let before = word(header, 8);
    header[8] = header[8].saturating_sub(1);
    let sum = updated(word(header, 10), [before, 0], [word(header, 8), 0]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    Ok(header[8])
}

/// RFC 1624 equation 3: HC' = ~(~HC + ~m + m'), for two words.
const fn updated(checksum: u16, before: [u16; 2], after: [u16; 2]) -> u16 {
    let mut sum = !checksum as u32;
    sum += !before[0] as u32 + after[0] as u32;
    sum += !before[1] as u32 + after[1] as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

pub(super) fn parse(bytes: &[u8]) -> Result<Network, Error> {
    if bytes.len() < HEADER {
        return Err(Error::Truncated);
    }
    let header = usize::from(bytes[0] & 15) * 4;
    let total = usize::from(word(bytes, 2));
    if header < HEADER || total < header {
        return Err(Error::Header);
    }
    let packet = bytes.get(..total).ok_or(Error::Truncated)?;
    let mut sum = Sum::default();
    sum.add(&packet[..header]);
    if sum.finish() != 0 {
        return Err(Error::Checksum);
    }
    let fragment = word(bytes, 6);
    if fragment & 0x3fff != 0 {
        return Err(Error::Fragment); // more fragments, or an offset
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::from_bits(super::long(bytes, at)));
    let mut segment = Segment {
        tos: bytes[1],
        ttl: bytes[8],
        ip_id: word(bytes, 4),
        ..Segment::default()
    };
    if fragment & 0x4000 != 0 {
        segment.flags = Flags::DF;
    }
    Ok(Network {
        segment,
        source: address(12),
        destination: address(16),
        protocol: bytes[9],
        header,
        total,
    })
}

#[cfg(test)]
mod tests {
    use super::updated;

    #[test]
    fn the_example_of_rfc_1624() {
        // Section 4: the checksum is 0 where RFC 1141's method gave 0xffff.
        assert_eq!(updated(0xdd2f, [0x5555, 0], [0x3285, 0]), 0);
    }
}
