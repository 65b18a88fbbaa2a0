//! The IPv6 header, the super-packet option (docs/design/super-packets.md#layout-c) and the extension headers one has to skip (RFC 8200).

use super::{Error, Network, word};
use crate::packet::Segment;
use crate::superpacket::Layout;
use core::net::{IpAddr, Ipv6Addr};

/// Length of the fixed header.
pub(super) const HEADER: usize = 40;
/// Length of the hop-by-hop header that carries a super-packet's mark, the only extension header that is written.
const MARK_HEADER: usize = 8;
/// Option for experiments that routers skip when they do not know it, and do not change (RFC 4727 4.2.1 with RFC 8200 4.2).
const MARK_OPTION: u8 = 0x1e;
const MARK_LEN: u8 = 4;
/// Version 1 in the two high bits of the option.
const MARK_VERSION: u8 = 0x40;
const MARK_VERSION_MASK: u8 = 0xc0;
/// Version, `first`, `last` and length: the reserved bits are ignored.
const MARK_FIELDS: u16 = 0xf0ff;

/// Length of the headers that [`encode`] writes.
pub(super) const fn header_len(segment: &Segment) -> usize {
    if Layout::has_option(segment) {
        HEADER + MARK_HEADER
    } else {
        HEADER
    }
}

/// Fills `header`, which has [`header_len`] bytes; `transport_len` counts what comes after. The flow label is zero.
pub(super) fn encode(
    header: &mut [u8],
    segment: &Segment,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    transport_len: usize,
) {
    header[0] = 0x60 | segment.tos >> 4;
    header[1] = segment.tos << 4;
    header[2..4].fill(0);
    let extension = header.len() - HEADER;
    header[4..6].copy_from_slice(&((extension + transport_len) as u16).to_be_bytes());
    header[6] = if extension == 0 { protocol } else { HOP_BY_HOP };
    header[7] = segment.ttl;
    header[8..24].copy_from_slice(&source.octets());
    header[24..40].copy_from_slice(&destination.octets());
    if extension == MARK_HEADER {
        write_mark(header, segment, protocol);
    }
}

/// Takes one from the hop limit.
pub(super) fn decrement_hop_limit(packet: &mut [u8]) -> Result<u8, Error> {
    let header = packet.get_mut(..HEADER).ok_or(Error::Truncated)?;
    header[7] = header[7].saturating_sub(1);
    Ok(header[7])
}

/// Puts the option of `segment` behind the fixed header of the packet in the first `len` bytes.
pub(super) fn insert_option(buffer: &mut [u8], len: usize, segment: &Segment) -> Result<usize, Error> {
    if !Layout::has_option(segment) {
        return Err(Error::Option);
    }
    let packet = buffer.get(..len).ok_or(Error::Truncated)?;
    if packet.len() < HEADER {
        return Err(Error::Truncated);
    }
    if packet[0] >> 4 != 6 {
        return Err(Error::Version);
    }
    let (protocol, carried) = (packet[6], word(packet, 4));
    if [HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION_OPTIONS].contains(&protocol) {
        return Err(Error::Header);
    }
    let longer = carried.checked_add(MARK_HEADER as u16).ok_or(Error::TooLong)?;
    let room = buffer.get_mut(..len + MARK_HEADER).ok_or(Error::Buffer)?;
    room.copy_within(HEADER..len, HEADER + MARK_HEADER);
    room[4..6].copy_from_slice(&longer.to_be_bytes());
    write_mark(room, segment, protocol);
    Ok(len + MARK_HEADER)
}

/// Writes the hop-by-hop header with the option; `header` has room for it behind the fixed one.
fn write_mark(header: &mut [u8], segment: &Segment, protocol: u8) {
    header[6] = HOP_BY_HOP;
    header[HEADER..HEADER + 4].copy_from_slice(&[protocol, 0, MARK_OPTION, MARK_LEN]);
    header[44..46].copy_from_slice(&(segment.urgent & MARK_FIELDS).to_be_bytes());
    header[46..48].copy_from_slice(&segment.ip_id.to_be_bytes());
}

pub(super) fn parse(bytes: &[u8]) -> Result<Network, Error> {
    if bytes.len() < HEADER {
        return Err(Error::Truncated);
    }
    let total = HEADER + usize::from(word(bytes, 4));
    let packet = bytes.get(..total).ok_or(Error::Truncated)?;
    let (mut protocol, mut header) = (packet[6], HEADER);
    // RFC 8200 4.1: a hop-by-hop header stands first or not at all.
    let (urgent, ip_id) = if protocol == HOP_BY_HOP {
        read_mark(packet.get(HEADER..).unwrap_or_default())
    } else {
        (0, 0)
    };
    loop {
        match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                let len = packet.get(header + 1).ok_or(Error::Truncated)?;
                protocol = packet[header];
                header += (usize::from(*len) + 1) * 8;
            }
            FRAGMENT => return Err(Error::Fragment),
            _ => break,
        }
    }
    if header > total {
        return Err(Error::Truncated);
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&packet[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Ok(Network {
        segment: Segment {
            tos: packet[0] << 4 | packet[1] >> 4,
            ttl: packet[7],
            urgent,
            ip_id,
            ..Segment::default()
        },
        source: address(8),
        destination: address(24),
        protocol,
        header,
        total,
    })
}

/// Where the transport header of a packet we wrote begins, and its protocol: behind the hop-by-hop header, if there is one.
pub(super) fn past_mark(packet: &[u8]) -> Option<(usize, u8)> {
    let protocol = *packet.get(6)?;
    if protocol != HOP_BY_HOP {
        return Some((HEADER, protocol));
    }
    let next = *packet.get(HEADER)?;
    let units = *packet.get(HEADER + 1)?;
    Some((HEADER + (usize::from(units) + 1) * 8, next))
}

/// The super-packet option of a hop-by-hop header, as a segment keeps it; zeros if there is none of a version we know. An
/// option whose length leaves the header ends the search.
fn read_mark(header: &[u8]) -> (u16, u16) {
    let Some(&units) = header.get(1) else {
        return (0, 0);
    };
    let end = (usize::from(units) + 1) * 8;
    let mut options = header.get(2..end).unwrap_or_default();
    loop {
        options = match options {
            // Pad1
            [0, rest @ ..] => rest,
            [MARK_OPTION, MARK_LEN, a, b, c, d, ..] if a & MARK_VERSION_MASK == MARK_VERSION => {
                return (
                    u16::from_be_bytes([*a, *b]) & MARK_FIELDS,
                    u16::from_be_bytes([*c, *d]),
                );
            }
            [_, len, rest @ ..] => match rest.get(usize::from(*len)..) {
                Some(after) => after,
                None => return (0, 0),
            },
            _ => return (0, 0),
        };
    }
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
