//! Bytes and segments: IPv4, IPv6, TCP and UDP headers written from a [`Segment`] and read into one.
//!
//! [`encode`] writes a whole packet into the caller's buffer ([`encode_with`] one whose payload is in pieces); [`parse`] reads one and never panics, whatever the bytes
//! are. Payload is named by its place, not copied out.
//!
//! **Source.** RFC 791 and RFC 8200 (headers), RFC 9293 3.1, RFC 7323, RFC 2018, RFC 7413 (TCP and its options),
//! RFC 768, RFC 3168 and RFC 9768 (the ECN bits).
//! **Deviations.** Fragments are refused: reassembly is the driver's. The identification field exists in IPv4 only; a segment of
//! IPv6 keeps a super-packet's option there and in `urgent` ([`crate::superpacket::Layout::C`]), unless TCP needs the
//! field (URG, or three SACK blocks beside an Accurate ECN option).
//! Datagrams are written as UDP with the packet number in the first four payload bytes, TFRC packets as UDP with the fields
//! of [`crate::tfrc`] before the payload; both are read as datagrams.

use crate::packet::{Kind, Segment};
use core::net::SocketAddr;
use core::ops::Range;

pub mod checksum;
mod icmp;
mod ipv4;
mod ipv6;
mod tcp;
mod udp;

pub use icmp::{IcmpPacket, code_of, encode_icmp, kind_of, parse_icmp};

/// A packet that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Its headers. `overhead` is the length of all of them, so `len()` is the packet's.
    pub segment: Segment,
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver.
    pub destination: SocketAddr,
    /// Where in the bytes the payload is.
    pub payload: Range<usize>,
}

/// Writes the packet of `segment` into `buffer` and returns its length. The payload is `payload`, then zeros up to
/// `segment.payload` bytes; checksums cover both. A segment flagged `CORRUPT` gets a wrong transport checksum.
///
/// Options are written from the segment's flags and SACK count. If `segment.overhead` asks for more header than they
/// need, the rest is padding, so that the packet is `segment.len()` bytes long.
///
/// # Errors
/// The segment does not fit the buffer or the protocol's length fields, or the addresses are of two families.
pub fn encode(
    buffer: &mut [u8],
    segment: &Segment,
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
) -> Result<usize, Error> {
    if payload.len() > segment.payload as usize {
        return Err(Error::Payload);
    }
    write(buffer, segment, source, destination, payload.is_empty(), |room| {
        let (given, zeros) = room.split_at_mut(payload.len());
        given.copy_from_slice(payload);
        zeros.fill(0);
    })
}

/// As [`encode`], with a payload that is in several pieces: `fill` puts it where it belongs, into `segment.payload` bytes.
///
/// # Errors
/// The segment does not fit the buffer or the protocol's length fields, or the addresses are of two families.
pub fn encode_with(
    buffer: &mut [u8],
    segment: &Segment,
    source: SocketAddr,
    destination: SocketAddr,
    fill: impl FnOnce(&mut [u8]),
) -> Result<usize, Error> {
    write(buffer, segment, source, destination, segment.payload == 0, fill)
}

fn write(
    buffer: &mut [u8],
    segment: &Segment,
    source: SocketAddr,
    destination: SocketAddr,
    no_payload: bool,
    fill: impl FnOnce(&mut [u8]),
) -> Result<usize, Error> {
    let network = match (source, destination) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => ipv4::HEADER,
        (SocketAddr::V6(_), SocketAddr::V6(_)) => ipv6::header_len(segment),
        _ => return Err(Error::Families),
    };
    let spare = usize::from(segment.overhead).saturating_sub(network);
    let (protocol, header) = match segment.kind() {
        Kind::Tcp => (tcp::PROTOCOL, tcp::header_len(segment, spare)?),
        Kind::Datagram => (udp::PROTOCOL, udp::HEADER),
        Kind::TfrcData => (udp::PROTOCOL, udp::HEADER + udp::TFRC_DATA),
        Kind::TfrcFeedback => (udp::PROTOCOL, udp::HEADER + udp::TFRC_FEEDBACK),
        Kind::Icmp => return Err(Error::Protocol),
    };
    let data = segment.payload as usize;
    let transport_len = header + data;
    // IPv4's length counts the header, IPv6's does not, but counts extension headers.
    let counted = if source.is_ipv4() {
        network
    } else {
        network - ipv6::HEADER
    };
    if transport_len + counted > usize::from(u16::MAX) {
        return Err(Error::TooLong);
    }
    let total = network + transport_len;
    let packet = buffer.get_mut(..total).ok_or(Error::Buffer)?;
    let (network_header, transport) = packet.split_at_mut(network);
    fill(&mut transport[header..]);
    match (source, destination) {
        (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
            ipv4::encode(
                network_header,
                segment,
                *source.ip(),
                *destination.ip(),
                protocol,
                total,
            );
        }
        (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
            ipv6::encode(
                network_header,
                segment,
                *source.ip(),
                *destination.ip(),
                protocol,
                transport_len,
            );
        }
        _ => return Err(Error::Families),
    }
    if protocol == tcp::PROTOCOL {
        tcp::encode(transport, header, segment, source, destination);
    } else {
        udp::encode(transport, segment, source, destination, no_payload);
    }
    Ok(total)
}

/// Reads one packet. Bytes after the packet's own length are ignored (Ethernet padding).
///
/// # Errors
/// What is wrong with it. A wrong checksum is an error: such a packet carries no trustworthy field.
pub fn parse(bytes: &[u8]) -> Result<Parsed, Error> {
    read(bytes, true)
}

/// As [`parse`], for one who passes the packet on: the transport's checksum, which costs a look at every byte, is left to the
/// receiver. That of an IPv4 header must be right.
///
/// # Errors
/// What is wrong with the headers.
pub fn parse_headers(bytes: &[u8]) -> Result<Parsed, Error> {
    read(bytes, false)
}

#[inline]
fn read(bytes: &[u8], verify: bool) -> Result<Parsed, Error> {
    let network = match bytes.first().map(|first| first >> 4) {
        Some(4) => ipv4::parse(bytes)?,
        Some(6) => ipv6::parse(bytes)?,
        Some(_) => return Err(Error::Version),
        None => return Err(Error::Truncated),
    };
    let transport = bytes.get(network.header..network.total).ok_or(Error::Truncated)?;
    let mut segment = network.segment;
    let sum = verify.then(|| {
        checksum::Sum::pseudo_header(
            network.source,
            network.destination,
            network.protocol,
            transport.len() as u32,
        )
    });
    let (header, ports) = match network.protocol {
        tcp::PROTOCOL => tcp::parse(transport, sum, &mut segment)?,
        udp::PROTOCOL => udp::parse(transport, sum, &mut segment)?,
        _ => return Err(Error::Protocol),
    };
    let payload = network.header + header..network.total;
    // Header chains of more than 255 bytes: IPv6 extension headers beyond what a segment can say.
    if network.source.is_ipv6() && segment.urgent_in_use() {
        segment.ip_id = 0; // the rest of the option gave way to the urgent pointer
    }
    segment.overhead = u8::try_from(payload.start).map_err(|_| Error::Header)?;
    segment.payload = payload.len() as u32;
    Ok(Parsed {
        segment,
        source: SocketAddr::new(network.source, ports.0),
        destination: SocketAddr::new(network.destination, ports.1),
        payload,
    })
}

/// Writes traffic class and identification into an IPv4 packet, as a marker or an edge router does, and updates the checksum
/// of its header without summing the rest (RFC 1624). No transport checksum covers either.
///
/// # Errors
/// The bytes are no IPv4 header; nothing has changed then.
pub fn remark(packet: &mut [u8], tos: u8, ip_id: u16) -> Result<(), Error> {
    ipv4::remark(packet, tos, ip_id)
}

/// Takes one from the time to live or hop limit, as a router does, and updates the checksum of an IPv4 header without summing
/// the rest (RFC 1624). What is left; 0: the packet must not be passed on.
///
/// # Errors
/// The bytes are no IP header; nothing has changed then.
pub fn decrement_ttl(packet: &mut [u8]) -> Result<u8, Error> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => ipv4::decrement_ttl(packet),
        Some(6) => ipv6::decrement_hop_limit(packet),
        Some(_) => Err(Error::Version),
        None => Err(Error::Truncated),
    }
}

/// Puts the option of `segment` (docs/design/super-packets.md#layout-c) into the IPv6 packet in the first `len` bytes of `buffer`, as a marker does,
/// and returns the new length: [`Layout::overhead`](crate::superpacket::Layout::overhead) bytes more. No checksum covers it.
///
/// # Errors
/// The bytes are no IPv6 packet, one with extension headers of its own (what must stand first, or be counted, is then not ours to
/// decide), the segment carries no option, or there is no room. Nothing has changed then.
pub fn insert_option(buffer: &mut [u8], len: usize, segment: &Segment) -> Result<usize, Error> {
    ipv6::insert_option(buffer, len, segment)
}

/// What the network header says.
struct Network {
    segment: Segment,
    source: core::net::IpAddr,
    destination: core::net::IpAddr,
    protocol: u8,
    /// Bytes before the transport header.
    header: usize,
    /// Bytes of the whole packet.
    total: usize,
}

/// Why bytes are not a packet, or a segment cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Fewer bytes than the headers announce.
    Truncated,
    /// Neither IPv4 nor IPv6.
    Version,
    /// A header length is impossible.
    Header,
    /// A transport protocol that is not spoken here.
    Protocol,
    /// A fragment.
    Fragment,
    /// A checksum is wrong.
    Checksum,
    /// A TCP option has an impossible length.
    Option,
    /// The options need more than 40 bytes.
    Options,
    /// The buffer is too small.
    Buffer,
    /// More bytes than a packet can have.
    TooLong,
    /// More payload bytes than the segment says it has.
    Payload,
    /// Source and destination are of different address families.
    Families,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Error::Truncated => "the packet ends before its headers say so",
            Error::Version => "the packet is neither IPv4 nor IPv6",
            Error::Header => "a header length is impossible",
            Error::Protocol => "the transport protocol is not known here",
            Error::Fragment => "the packet is a fragment",
            Error::Checksum => "a checksum is wrong",
            Error::Option => "a TCP option has an impossible length",
            Error::Options => "the TCP options need more than 40 bytes",
            Error::Buffer => "the buffer is too small for the packet",
            Error::TooLong => "the packet would be longer than its length field can say",
            Error::Payload => "there are more payload bytes than the segment carries",
            Error::Families => "source and destination are of different address families",
        })
    }
}

impl core::error::Error for Error {}

/// Two bytes at `at`, zero outside. Callers have checked the length.
fn word(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..at + 2)
        .map_or(0, |two| u16::from_be_bytes([two[0], two[1]]))
}

/// Four bytes at `at`, zero outside. Callers have checked the length.
fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from(word(bytes, at)) << 16 | u32::from(word(bytes, at + 2))
}

#[cfg(test)]
mod tests;
