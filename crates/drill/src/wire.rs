//! Packets of the runner as bytes, both ways, with everything a script can say: any option in any order, any flags.
//!
//! It is deliberately not `core::wire`: that codec writes and reads what our TCP says and is tested against this one.
//!
//! **Source.** RFC 791, RFC 8200, RFC 9293 3.1, RFC 792, RFC 4443, RFC 768; RFC 7323, 2018, 7413, 2385, 9768 (options).
//! **Deviations.** IPv4 options and IPv6 extension headers are refused: no stack under test sends any.

use super::ast::{AccEcnField, TcpOption};
use fleetfoot_core::wire::checksum::Sum;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A packet, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) tos: u8,
    pub(super) ttl: u8,
    pub(super) flow_label: u32,
    pub(super) body: Body,
}

/// Behind the IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Tcp(Segment),
    Icmp { kind: u8, code: u8 },
    Udp { ports: (u16, u16), len: u32 },
    Other(u8),
}

/// A TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// Nine control bits.
    pub(super) flags: u16,
    /// The three bits that must be zero.
    pub(super) reserved: u8,
    pub(super) window: u16,
    pub(super) urgent: u16,
    pub(super) options: Vec<TcpOption>,
    pub(super) len: u32,
    /// Every payload byte is zero.
    pub(super) zeros: bool,
}

/// Addresses and the fields of an IP header that a script can say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) tos: u8,
    pub(super) ttl: u8,
    pub(super) flow_label: u32,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// Reads a packet and checks its lengths and checksums.
pub(super) fn decode(bytes: &[u8]) -> Result<Packet, String> {
    let version = bytes.first().map_or(0, |first| first >> 4);
    let (mut packet, protocol, header) = match version {
        4 => decode_v4(bytes)?,
        6 => decode_v6(bytes)?,
        _ => return Err(format!("an IP packet of version {version}")),
    };
    let transport = &bytes[header..];
    let sum = |protocol: u8| {
        let mut sum = Sum::pseudo_header(
            packet.source,
            packet.destination,
            protocol,
            transport.len() as u32,
        );
        sum.add(transport);
        sum.finish()
    };
    packet.body = match protocol {
        TCP => {
            if sum(TCP) != 0 {
                return Err("a wrong TCP checksum".to_owned());
            }
            Body::Tcp(decode_tcp(transport)?)
        }
        ICMP | ICMP6 => {
            let right = if protocol == ICMP6 {
                sum(ICMP6)
            } else {
                let mut sum = Sum::default();
                sum.add(transport);
                sum.finish()
            };
            match (right, transport) {
                (0, [kind, code, ..]) => Body::Icmp {
                    kind: *kind,
                    code: *code,
                },
                _ => return Err("a damaged ICMP message".to_owned()),
            }
        }
        UDP if transport.len() >= 8 => Body::Udp {
            ports: (word(transport, 0), word(transport, 2)),
            len: transport.len() as u32 - 8,
        },
        other => Body::Other(other),
    };
    Ok(packet)
}

fn decode_v4(bytes: &[u8]) -> Result<(Packet, u8, usize), String> {
    if bytes.len() < 20 || bytes[0] & 15 != 5 {
        return Err("a cut IPv4 header, or one with options".to_owned());
    }
    let total = usize::from(word(bytes, 2));
    if total != bytes.len() {
        return Err(format!(
            "an IPv4 packet of {} bytes that says {total}",
            bytes.len()
        ));
    }
    let mut sum = Sum::default();
    sum.add(&bytes[..20]);
    if sum.finish() != 0 {
        return Err("a wrong IPv4 header checksum".to_owned());
    }
    if word(bytes, 6) & 0xbfff != 0 {
        return Err("a fragment, or the reserved bit of the IPv4 header".to_owned());
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::from_bits(long(bytes, at)));
    Ok((
        Packet {
            source: address(12),
            destination: address(16),
            tos: bytes[1],
            ttl: bytes[8],
            flow_label: 0,
            body: Body::Other(bytes[9]),
        },
        bytes[9],
        20,
    ))
}

fn decode_v6(bytes: &[u8]) -> Result<(Packet, u8, usize), String> {
    if bytes.len() < 40 || usize::from(word(bytes, 4)) + 40 != bytes.len() {
        return Err("an IPv6 packet of a wrong length".to_owned());
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&bytes[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Ok((
        Packet {
            source: address(8),
            destination: address(24),
            tos: bytes[0] << 4 | bytes[1] >> 4,
            ttl: bytes[7],
            flow_label: long(bytes, 0) & 0xf_ffff,
            body: Body::Other(bytes[6]),
        },
        bytes[6],
        40,
    ))
}

fn decode_tcp(bytes: &[u8]) -> Result<Segment, String> {
    let header = bytes.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    if header < 20 || header > bytes.len() {
        return Err("a TCP header of a wrong length".to_owned());
    }
    let payload = &bytes[header..];
    Ok(Segment {
        source_port: word(bytes, 0),
        destination_port: word(bytes, 2),
        seq: long(bytes, 4),
        ack: long(bytes, 8),
        flags: word(bytes, 12) & 0x1ff,
        reserved: bytes[12] >> 1 & 7,
        window: word(bytes, 14),
        urgent: word(bytes, 18),
        options: decode_options(&bytes[20..header])?,
        len: payload.len() as u32,
        zeros: payload.iter().all(|byte| *byte == 0),
    })
}

fn decode_options(mut bytes: &[u8]) -> Result<Vec<TcpOption>, String> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        if *kind < 2 {
            options.push(if *kind == 0 {
                TcpOption::Eol
            } else {
                TcpOption::Nop
            });
            bytes = rest;
            continue;
        }
        let len = rest.first().map_or(0, |len| usize::from(*len));
        if len < 2 || len > bytes.len() {
            return Err(format!("TCP option {kind} of a wrong length"));
        }
        let (option, after) = bytes.split_at(len);
        let value = &option[2..];
        bytes = after;
        options.push(match (*kind, value.len()) {
            (2, 2) => TcpOption::Mss(word(value, 0)),
            (3, 1) => TcpOption::WindowScale(value[0]),
            (4, 0) => TcpOption::SackPermitted,
            (5, len) if len % 8 == 0 => TcpOption::Sack(
                value
                    .chunks_exact(8)
                    .map(|edges| (long(edges, 0), long(edges, 4)))
                    .collect(),
            ),
            (8, 8) => TcpOption::Timestamps {
                val: long(value, 0),
                ecr: long(value, 4),
            },
            (19, _) => TcpOption::Md5(value.to_vec()),
            (34, _) => TcpOption::FastOpen(value.to_vec()),
            (172 | 174, len) if len % 3 == 0 => {
                let order = accecn_order(*kind == 172);
                TcpOption::AccEcn(
                    value
                        .chunks_exact(3)
                        .zip(order)
                        .map(|(counter, field)| {
                            (field, u32::from(counter[0]) << 16 | u32::from(word(counter, 1)))
                        })
                        .collect(),
                )
            }
            (254, 2..) if value[..2] == FAST_OPEN_MAGIC => {
                TcpOption::FastOpenExperimental(value[2..].to_vec())
            }
            (kind, _) => TcpOption::Other(kind, value.to_vec()),
        });
    }
    Ok(options)
}

/// The bytes of a list of options.
pub(super) fn encode_options(options: &[TcpOption]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for option in options {
        let (kind, value) = match option {
            TcpOption::Eol => {
                out.push(0);
                continue;
            }
            TcpOption::Nop => {
                out.push(1);
                continue;
            }
            TcpOption::Mss(mss) => (2, mss.to_be_bytes().to_vec()),
            TcpOption::WindowScale(scale) => (3, vec![*scale]),
            TcpOption::SackPermitted => (4, Vec::new()),
            TcpOption::Sack(blocks) => (
                5,
                blocks
                    .iter()
                    .flat_map(|(left, right)| [left.to_be_bytes(), right.to_be_bytes()].concat())
                    .collect(),
            ),
            TcpOption::Timestamps { val, ecr } => (8, [val.to_be_bytes(), ecr.to_be_bytes()].concat()),
            TcpOption::Md5(digest) => (19, digest.clone()),
            TcpOption::FastOpen(cookie) => (34, cookie.clone()),
            TcpOption::FastOpenExperimental(cookie) => (254, [&FAST_OPEN_MAGIC[..], cookie].concat()),
            TcpOption::AccEcn(fields) => {
                let first = fields.first().map(|field| field.0);
                let kind = if first == Some(AccEcnField::Ect1) {
                    174
                } else {
                    172
                };
                let counters = fields
                    .iter()
                    .flat_map(|(_, count)| count.to_be_bytes()[1..].to_vec());
                (kind, counters.collect())
            }
            TcpOption::Other(kind, value) => (*kind, value.clone()),
        };
        out.extend([kind, value.len() as u8 + 2]);
        out.extend(value);
    }
    if !out.len().is_multiple_of(4) {
        return Err(format!(
            "TCP options of {} bytes; they have to fill a multiple of four",
            out.len()
        ));
    }
    if out.len() > 40 {
        return Err(format!(
            "TCP options of {} bytes; there is room for 40",
            out.len()
        ));
    }
    Ok(out)
}

/// A TCP packet with zero bytes as payload.
pub(super) fn encode_tcp(envelope: &Envelope, segment: &Segment) -> Result<Vec<u8>, String> {
    let options = encode_options(&segment.options)?;
    let header = 20 + options.len();
    fits(segment.len)?;
    let mut transport = vec![0; header + segment.len as usize];
    transport[..2].copy_from_slice(&segment.source_port.to_be_bytes());
    transport[2..4].copy_from_slice(&segment.destination_port.to_be_bytes());
    transport[4..8].copy_from_slice(&segment.seq.to_be_bytes());
    transport[8..12].copy_from_slice(&segment.ack.to_be_bytes());
    let bits = (header as u16 / 4) << 12 | segment.flags & 0x1ff;
    transport[12..14].copy_from_slice(&bits.to_be_bytes());
    transport[14..16].copy_from_slice(&segment.window.to_be_bytes());
    transport[18..20].copy_from_slice(&segment.urgent.to_be_bytes());
    transport[20..header].copy_from_slice(&options);
    let sum = transport_sum(envelope, TCP, &transport);
    transport[16..18].copy_from_slice(&sum.to_be_bytes());
    wrap(envelope, TCP, &transport)
}

/// An ICMP message of the envelope's IP version around what it quotes.
pub(super) fn encode_icmp(
    envelope: &Envelope,
    kind: u8,
    code: u8,
    rest: u32,
    quoted: &[u8],
) -> Result<Vec<u8>, String> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(rest.to_be_bytes());
    message.extend_from_slice(quoted);
    let (protocol, sum) = if envelope.source.is_ipv4() {
        let mut sum = Sum::default();
        sum.add(&message);
        (ICMP, sum.finish())
    } else {
        (ICMP6, transport_sum(envelope, ICMP6, &message))
    };
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    wrap(envelope, protocol, &message)
}

/// What an ICMP message quotes of a TCP packet with `len` bytes of payload: IP header and eight bytes.
pub(super) fn quote_tcp(
    envelope: &Envelope,
    ports: (u16, u16),
    seq: u32,
    len: u32,
) -> Result<Vec<u8>, String> {
    fits(len)?;
    let mut transport = vec![0; 20 + len as usize];
    transport[..2].copy_from_slice(&ports.0.to_be_bytes());
    transport[2..4].copy_from_slice(&ports.1.to_be_bytes());
    transport[4..8].copy_from_slice(&seq.to_be_bytes());
    let mut packet = wrap(envelope, TCP, &transport)?;
    packet.truncate(packet.len() - transport.len() + 8);
    Ok(packet)
}

/// A UDP packet with `len` zero bytes as payload (RFC 768).
pub(super) fn encode_udp(envelope: &Envelope, ports: (u16, u16), len: u32) -> Result<Vec<u8>, String> {
    fits(len)?;
    let total = u16::try_from(len + 8).map_err(|_| format!("{len} bytes do not fit a UDP packet"))?;
    let mut transport = vec![0; usize::from(total)];
    transport[..2].copy_from_slice(&ports.0.to_be_bytes());
    transport[2..4].copy_from_slice(&ports.1.to_be_bytes());
    transport[4..6].copy_from_slice(&total.to_be_bytes());
    let sum = match transport_sum(envelope, UDP, &transport) {
        0 => u16::MAX, // zero says that there is none
        sum => sum,
    };
    transport[6..8].copy_from_slice(&sum.to_be_bytes());
    wrap(envelope, UDP, &transport)
}

/// What an ICMP message quotes of it: IP header and UDP header.
pub(super) fn quote_udp(envelope: &Envelope, ports: (u16, u16), len: u32) -> Result<Vec<u8>, String> {
    let mut packet = encode_udp(envelope, ports, len)?;
    packet.truncate(packet.len() - len as usize);
    Ok(packet)
}

/// Whether a payload may fit an IP packet, before memory is asked for.
fn fits(len: u32) -> Result<(), String> {
    if len > 65_535 {
        return Err(format!("{len} bytes do not fit an IP packet"));
    }
    Ok(())
}

fn transport_sum(envelope: &Envelope, protocol: u8, transport: &[u8]) -> u16 {
    let mut sum = Sum::pseudo_header(
        envelope.source,
        envelope.destination,
        protocol,
        transport.len() as u32,
    );
    sum.add(transport);
    sum.finish()
}

fn wrap(envelope: &Envelope, protocol: u8, transport: &[u8]) -> Result<Vec<u8>, String> {
    match (envelope.source, envelope.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = u16::try_from(transport.len() + 20)
                .map_err(|_| format!("{} bytes do not fit an IPv4 packet", transport.len()))?;
            let mut header = vec![0x45, envelope.tos];
            header.extend(total.to_be_bytes());
            header.extend([0, 0, 0, 0, envelope.ttl, protocol, 0, 0]);
            header.extend(source.octets());
            header.extend(destination.octets());
            let mut sum = Sum::default();
            sum.add(&header);
            header[10..12].copy_from_slice(&sum.finish().to_be_bytes());
            header.extend_from_slice(transport);
            Ok(header)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let len = u16::try_from(transport.len())
                .map_err(|_| format!("{} bytes do not fit an IPv6 packet", transport.len()))?;
            let first = 6 << 28 | u32::from(envelope.tos) << 20 | envelope.flow_label & 0xf_ffff;
            let mut header = first.to_be_bytes().to_vec();
            header.extend(len.to_be_bytes());
            header.extend([protocol, envelope.ttl]);
            header.extend(source.octets());
            header.extend(destination.octets());
            header.extend_from_slice(transport);
            Ok(header)
        }
        _ => Err("addresses of two IP versions".to_owned()),
    }
}

fn accecn_order(zero_first: bool) -> [AccEcnField; 3] {
    if zero_first {
        [AccEcnField::Ect0, AccEcnField::Ce, AccEcnField::Ect1]
    } else {
        [AccEcnField::Ect1, AccEcnField::Ce, AccEcnField::Ect0]
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Identifier of Fast Open among experimental options (RFC 7413, appendix A.1).
const FAST_OPEN_MAGIC: [u8; 2] = [0xf9, 0x89];
