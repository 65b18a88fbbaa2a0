//! The IPv6 header and the extension headers one has to skip (RFC 8200).

use super::{Error, Network, word};
use crate::packet::Segment;
use core::net::{IpAddr, Ipv6Addr};

/// Length of the fixed header; extension headers are never written.
pub(super) const HEADER: usize = 40;

/// Fills `header`, which has [`HEADER`] bytes. The flow label is zero.
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
    header[4..6].copy_from_slice(&(transport_len as u16).to_be_bytes());
    header[6] = protocol;
    header[7] = segment.ttl;
    header[8..24].copy_from_slice(&source.octets());
    header[24..40].copy_from_slice(&destination.octets());
}

pub(super) fn parse(bytes: &[u8]) -> Result<Network, Error> {
    if bytes.len() < HEADER {
        return Err(Error::Truncated);
    }
    let total = HEADER + usize::from(word(bytes, 4));
    let packet = bytes.get(..total).ok_or(Error::Truncated)?;
    let (mut protocol, mut header) = (packet[6], HEADER);
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
            ..Segment::default()
        },
        source: address(8),
        destination: address(24),
        protocol,
        header,
        total,
    })
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
