//! ICMP messages as the stack takes them.

use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::socket::{Header, IcmpError};
use std::net::{IpAddr, SocketAddr};

/// The quoted packet's protocol and addresses, and the error, of an ICMP message (RFC 792, RFC 4443).
pub(super) fn read(packet: &[u8]) -> Option<(u8, Header, IcmpError)> {
    let four = packet.first()? >> 4 == 4;
    let (at, protocol) = if four {
        (usize::from(packet.first()? & 15) * 4, *packet.get(9)?)
    } else {
        (40, *packet.get(6)?)
    };
    let message = packet.get(at..)?;
    let long = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let (mut kind, mut code) = (*message.first()?, *message.get(1)?);
    let mut mtu = long(message, 4)?;
    if four {
        mtu &= 0xffff;
    } else {
        // The errors of ICMPv6 under the numbers they have in ICMP.
        (kind, code) = match (kind, code) {
            (1, 0) => (3, 0),
            (1, 1) => (3, 13),
            (1, 4) => (3, 3),
            (1, _) => (3, 1),
            (2, _) => (3, 4),
            (3, _) => (11, code),
            (4, _) => (12, code),
            _ => return None,
        };
    }
    if protocol != if four { 1 } else { 58 } {
        return None;
    }
    let quoted = message.get(8..)?;
    let of = if quoted.first()? >> 4 == 4 { 9 } else { 6 };
    let protocol = *quoted.get(of)?;
    let (source, destination, transport): (IpAddr, IpAddr, &[u8]) = if quoted.first()? >> 4 == 4 {
        let header = usize::from(quoted.first()? & 15) * 4;
        let address = |at| long(quoted, at).map(|bits| IpAddr::from(bits.to_be_bytes()));
        (address(12)?, address(16)?, quoted.get(header..)?)
    } else {
        let address = |at: usize| {
            let octets: [u8; 16] = quoted.get(at..at + 16)?.try_into().ok()?;
            Some(IpAddr::from(octets))
        };
        (address(8)?, address(24)?, quoted.get(40..)?)
    };
    let ports = long(transport, 0)?;
    Some((
        protocol,
        Header {
            source: SocketAddr::new(source, (ports >> 16) as u16),
            destination: SocketAddr::new(destination, ports as u16),
        },
        IcmpError {
            kind,
            code,
            mtu,
            seq: SeqNumber(long(transport, 4)?),
        },
    ))
}
