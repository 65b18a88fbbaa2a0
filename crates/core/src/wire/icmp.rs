//! ICMP and ICMPv6 errors that quote a TCP segment, read and written.
//!
//! A message holds the IP header and at least the first eight bytes of the transport header of the packet it is about: that
//! gives the connection and the sequence number.
//!
//! **Source.** RFC 792, RFC 1191 4 (next-hop MTU), RFC 1812 4.3.2.3, RFC 4443 2.4, 3.
//! **Deviations.** Only what a TCP endpoint reacts to; echo and the like are [`Error::Protocol`]. The quoted packet's
//! checksum is not verified: it is rarely quoted whole.

use super::checksum::Sum;
use super::{Error, ipv4, ipv6, long, tcp, word};
use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::tcp::{Icmp, IcmpKind};
use core::net::{IpAddr, SocketAddr};

pub(super) const PROTOCOL: u8 = 1;
pub(super) const PROTOCOL_V6: u8 = 58;
const HEADER: usize = 8;
/// Bytes of the TCP header that are quoted.
const QUOTED: usize = 8;

/// An ICMP error about a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpPacket {
    /// What it says.
    pub icmp: Icmp,
    /// Who says it.
    pub from: IpAddr,
    /// Address and port that the quoted segment came from: ours.
    pub source: SocketAddr,
    /// Address and port it went to.
    pub destination: SocketAddr,
}

/// Reads an IP packet that is an ICMP error about a TCP segment.
///
/// # Errors
/// What is wrong with it; [`Error::Protocol`] if it is something else.
pub fn parse_icmp(bytes: &[u8]) -> Result<IcmpPacket, Error> {
    let network = match bytes.first().map(|first| first >> 4) {
        Some(4) => ipv4::parse(bytes)?,
        Some(6) => ipv6::parse(bytes)?,
        Some(_) => return Err(Error::Version),
        None => return Err(Error::Truncated),
    };
    let message = bytes.get(network.header..network.total).ok_or(Error::Truncated)?;
    let v6 = network.source.is_ipv6();
    let mut sum = match (network.protocol, v6) {
        (PROTOCOL, false) => Sum::default(),
        (PROTOCOL_V6, true) => Sum::pseudo_header(
            network.source,
            network.destination,
            PROTOCOL_V6,
            message.len() as u32,
        ),
        _ => return Err(Error::Protocol),
    };
    sum.add(message);
    if sum.finish() != 0 {
        return Err(Error::Checksum);
    }
    if message.len() < HEADER {
        return Err(Error::Truncated);
    }
    let rest = long(message, 4);
    let kind = kind_of(v6, message[0], message[1], rest).ok_or(Error::Protocol)?;
    let quoted = &message[HEADER..];
    let (source, destination, transport) = quoted_packet(quoted, v6)?;
    Ok(IcmpPacket {
        icmp: Icmp {
            kind,
            seq: SeqNumber(long(transport, 4)),
        },
        from: network.source,
        source: SocketAddr::new(source, word(transport, 0)),
        destination: SocketAddr::new(destination, word(transport, 2)),
    })
}

/// The quoted packet's addresses and the start of its TCP header.
fn quoted_packet(quoted: &[u8], v6: bool) -> Result<(IpAddr, IpAddr, &[u8]), Error> {
    let (header, protocol, source, destination) = if v6 {
        let bytes = quoted.get(..ipv6::HEADER).ok_or(Error::Truncated)?;
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&bytes[at..at + 16]);
            IpAddr::from(octets)
        };
        let (header, protocol) = ipv6::past_mark(quoted).ok_or(Error::Truncated)?;
        (header, protocol, address(8), address(24))
    } else {
        let bytes = quoted.get(..ipv4::HEADER).ok_or(Error::Truncated)?;
        let address = |at: usize| IpAddr::from([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        (usize::from(bytes[0] & 15) * 4, bytes[9], address(12), address(16))
    };
    if quoted[0] >> 4 != if v6 { 6 } else { 4 } || header < ipv4::HEADER {
        return Err(Error::Header);
    }
    if protocol != tcp::PROTOCOL {
        return Err(Error::Protocol);
    }
    let transport = quoted.get(header..header + QUOTED).ok_or(Error::Truncated)?;
    Ok((source, destination, transport))
}

/// What a type and code mean; `rest` is the second word of the header. `None`: nothing to TCP.
pub const fn kind_of(v6: bool, kind: u8, code: u8, rest: u32) -> Option<IcmpKind> {
    Some(match (v6, kind, code) {
        (false, 3, 0) | (true, 1, 0) => IcmpKind::NetUnreachable,
        (false, 3, 1) | (true, 1, 2 | 3) => IcmpKind::HostUnreachable,
        (false, 3, 2) => IcmpKind::ProtocolUnreachable,
        (false, 3, 3) | (true, 1, 4) => IcmpKind::PortUnreachable,
        (false, 3, 4) => IcmpKind::TooBig { mtu: rest & 0xffff },
        (true, 2, _) => IcmpKind::TooBig { mtu: rest },
        (false, 3, 5) => IcmpKind::SourceRouteFailed,
        (false, 3, 6) => IcmpKind::NetUnknown,
        (false, 3, 7) => IcmpKind::HostUnknown,
        (false, 3, 8) => IcmpKind::SourceHostIsolated,
        (false, 3, 9) => IcmpKind::NetProhibited,
        (false, 3, 10) => IcmpKind::HostProhibited,
        (false, 3, 11) => IcmpKind::NetUnreachableForTos,
        (false, 3, 12) => IcmpKind::HostUnreachableForTos,
        (false, 3, 13..=15) => IcmpKind::Filtered,
        (true, 1, 1 | 5 | 6) => IcmpKind::PolicyRefused,
        (false, 4, _) => IcmpKind::SourceQuench,
        (false, 5, _) => IcmpKind::Redirect,
        (false, 11, _) | (true, 3, _) => IcmpKind::TimeExceeded,
        (false, 12, _) | (true, 4, _) => IcmpKind::ParameterProblem,
        _ => return None,
    })
}

/// Type, code and second word of a message; the inverse of [`kind_of`].
pub const fn code_of(v6: bool, kind: IcmpKind) -> Option<(u8, u8, u32)> {
    Some(match (v6, kind) {
        (true, IcmpKind::NetUnreachable) => (1, 0, 0),
        (true, IcmpKind::HostUnreachable) => (1, 3, 0),
        (true, IcmpKind::PortUnreachable) => (1, 4, 0),
        (true, IcmpKind::PolicyRefused) => (1, 1, 0),
        (true, IcmpKind::TooBig { mtu }) => (2, 0, mtu),
        (true, IcmpKind::TimeExceeded) => (3, 0, 0),
        (true, IcmpKind::ParameterProblem) => (4, 0, 0),
        (true, _) | (false, IcmpKind::PolicyRefused) => return None,
        (false, IcmpKind::NetUnreachable) => (3, 0, 0),
        (false, IcmpKind::HostUnreachable) => (3, 1, 0),
        (false, IcmpKind::ProtocolUnreachable) => (3, 2, 0),
        (false, IcmpKind::PortUnreachable) => (3, 3, 0),
        (false, IcmpKind::TooBig { mtu }) => (3, 4, mtu & 0xffff),
        (false, IcmpKind::SourceRouteFailed) => (3, 5, 0),
        (false, IcmpKind::NetUnknown) => (3, 6, 0),
        (false, IcmpKind::HostUnknown) => (3, 7, 0),
        (false, IcmpKind::SourceHostIsolated) => (3, 8, 0),
        (false, IcmpKind::NetProhibited) => (3, 9, 0),
        (false, IcmpKind::HostProhibited) => (3, 10, 0),
        (false, IcmpKind::NetUnreachableForTos) => (3, 11, 0),
        (false, IcmpKind::HostUnreachableForTos) => (3, 12, 0),
        (false, IcmpKind::Filtered) => (3, 13, 0),
        (false, IcmpKind::SourceQuench) => (4, 0, 0),
        (false, IcmpKind::Redirect) => (5, 0, 0),
        (false, IcmpKind::TimeExceeded) => (11, 0, 0),
        (false, IcmpKind::ParameterProblem) => (12, 0, 0),
    })
}

/// Writes an IP packet that reports an error of `segment` from `from`, quoting its IP header and eight bytes of TCP.
///
/// # Errors
/// The buffer is too small, the address families differ, or the message does not exist in the family.
pub fn encode_icmp(
    buffer: &mut [u8],
    kind: IcmpKind,
    from: IpAddr,
    segment: &Segment,
    source: SocketAddr,
    destination: SocketAddr,
) -> Result<usize, Error> {
    let v6 = source.is_ipv6();
    let (code_type, code, rest) = code_of(v6, kind).ok_or(Error::Protocol)?;
    let (network, quoted_network) = if v6 {
        (ipv6::HEADER, ipv6::header_len(segment))
    } else {
        (ipv4::HEADER, ipv4::HEADER)
    };
    let total = network + HEADER + quoted_network + QUOTED;
    let packet = buffer.get_mut(..total).ok_or(Error::Buffer)?;
    let (outer, message) = packet.split_at_mut(network);
    let quoted_len = usize::try_from(segment.len()).unwrap_or(usize::MAX).min(0xffff);
    let ours = Segment {
        ttl: 64,
        ..Segment::default()
    };
    match (source.ip(), destination.ip(), from) {
        (IpAddr::V4(source), IpAddr::V4(destination), IpAddr::V4(from)) => {
            ipv4::encode(
                &mut message[HEADER..HEADER + quoted_network],
                segment,
                source,
                destination,
                tcp::PROTOCOL,
                quoted_len,
            );
            ipv4::encode(outer, &ours, from, source, PROTOCOL, total);
        }
        (IpAddr::V6(source), IpAddr::V6(destination), IpAddr::V6(from)) => {
            ipv6::encode(
                &mut message[HEADER..HEADER + quoted_network],
                segment,
                source,
                destination,
                tcp::PROTOCOL,
                quoted_len.saturating_sub(quoted_network),
            );
            ipv6::encode(outer, &ours, from, source, PROTOCOL_V6, total - network);
        }
        _ => return Err(Error::Families),
    }
    message[0] = code_type;
    message[1] = code;
    message[2..4].fill(0);
    message[4..8].copy_from_slice(&rest.to_be_bytes());
    let transport = &mut message[HEADER + quoted_network..];
    transport[..2].copy_from_slice(&source.port().to_be_bytes());
    transport[2..4].copy_from_slice(&destination.port().to_be_bytes());
    transport[4..8].copy_from_slice(&segment.seq.0.to_be_bytes());
    let mut sum = if v6 {
        Sum::pseudo_header(from, source.ip(), PROTOCOL_V6, message.len() as u32)
    } else {
        Sum::default()
    };
    sum.add(message);
    let sum = sum.finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::{code_of, encode_icmp, kind_of, parse_icmp};
    use crate::packet::{Flags, Segment};
    use crate::seq::SeqNumber;
    use crate::tcp::{Icmp, IcmpKind};
    use crate::wire::Error;
    use core::net::{IpAddr, SocketAddr};

    fn ends(v6: bool) -> (SocketAddr, SocketAddr, IpAddr) {
        let address = |n: u8| {
            if v6 {
                IpAddr::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n])
            } else {
                IpAddr::from([192, 0, 2, n])
            }
        };
        (
            SocketAddr::new(address(1), 40_000),
            SocketAddr::new(address(2), 80),
            address(9),
        )
    }

    #[test]
    fn what_is_written_is_read_in_both_families() {
        let segment = Segment {
            seq: SeqNumber(0xfedc_ba98),
            payload: 1448,
            overhead: 52,
            flags: Flags::ACK.with(Flags::DF),
            ..Segment::default()
        };
        let mut seen = 0;
        for v6 in [false, true] {
            let (source, destination, from) = ends(v6);
            for kind in 0..=255 {
                for code in 0..=16 {
                    let Some(kind) = kind_of(v6, kind, code, 1280) else {
                        continue;
                    };
                    assert!(code_of(v6, kind).is_some(), "{kind:?}");
                    let mut buffer = [0; 128];
                    let len =
                        encode_icmp(&mut buffer, kind, from, &segment, source, destination).expect("it fits");
                    let parsed = parse_icmp(&buffer[..len]).expect("our own packet");
                    assert_eq!(
                        parsed.icmp,
                        Icmp {
                            kind,
                            seq: segment.seq
                        }
                    );
                    assert_eq!(
                        (parsed.source, parsed.destination, parsed.from),
                        (source, destination, from)
                    );
                    seen += 1;
                    buffer[len - 1] ^= 1;
                    assert_eq!(parse_icmp(&buffer[..len]), Err(Error::Checksum));
                    for cut in 0..len {
                        assert!(parse_icmp(&buffer[..cut]).is_err());
                    }
                }
            }
        }
        assert!(seen > 60);
    }

    #[test]
    fn a_frag_needed_message_byte_by_byte() {
        let (source, destination, from) = ends(false);
        let segment = Segment {
            seq: SeqNumber(0x0102_0304),
            payload: 1460,
            overhead: 40,
            flags: Flags::DF,
            ..Segment::default()
        };
        let mut buffer = [0; 64];
        let kind = IcmpKind::TooBig { mtu: 1200 };
        let len = encode_icmp(&mut buffer, kind, from, &segment, source, destination).expect("it fits");
        assert_eq!(len, 56);
        assert_eq!(buffer[20..22], [3, 4]);
        assert_eq!(buffer[24..28], [0, 0, 0x04, 0xb0]);
        assert_eq!(buffer[28..32], [0x45, 0, 0x05, 0xdc]); // the quoted packet of 1500 bytes
        assert_eq!(buffer[48..56], [0x9c, 0x40, 0, 80, 1, 2, 3, 4]);
        // Other protocols are left to others.
        buffer[9] = 17;
        buffer[10..12].fill(0);
        let mut sum = crate::wire::checksum::Sum::default();
        sum.add(&buffer[..20]);
        let sum = sum.finish();
        buffer[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(parse_icmp(&buffer[..len]), Err(Error::Protocol));
    }
}
