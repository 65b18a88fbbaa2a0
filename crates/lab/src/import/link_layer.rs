//! From a captured frame to its TCP header: link layers, IPv4, IPv6, TCP.
//!
//! Only headers are looked at, and lengths are those that the headers state, since captures are cut at a snap length and
//! payload is nobody's business. Nothing is checked by checksum: hosts that let their cards compute them capture wrong ones.
//! IP and TCP headers are read by `etherparse`; link types, tags, and TCP headers that were cut off are read here.
//!
//! **Source.** The link types of tcpdump.org; RFC 791, RFC 8200, RFC 4302, RFC 9293, RFC 2018, RFC 7323, RFC 2675.
//! **Deviations.** Tunnels are not looked into. Fragments are counted and skipped.

use etherparse::{Ipv6Header, LaxIpSlice, TcpHeader, TcpHeaderSlice, err, ip_number};
use std::net::IpAddr;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A TCP segment.
    Tcp(Tcp),
    /// A fragment of an IP packet.
    Fragment,
    /// Another protocol over IP.
    OtherProtocol(Other),
    /// Not IP.
    NotIp,
    /// Cut off before the end of the TCP header.
    Short,
    /// Headers that contradict themselves.
    Malformed,
    /// A kind of link that is not read.
    UnknownLink,
}

/// A packet of another protocol than TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// Address of the sender, and its port (0 without ports).
    pub source: (IpAddr, u16),
    /// Address and port of the receiver.
    pub destination: (IpAddr, u16),
    /// Number of the protocol.
    pub protocol: u8,
    /// Whether it begins like a packet of QUIC with which a connection is opened (long header, version 1 or 2).
    pub quic: bool,
    /// Layer-3 bytes.
    pub length: u32,
}

/// A TCP segment as far as headers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Address and port of the sender.
    pub source: (IpAddr, u16),
    /// Address and port of the receiver.
    pub destination: (IpAddr, u16),
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// The low eight flags.
    pub flags: u8,
    /// Window, not scaled.
    pub window: u16,
    /// Bytes of payload.
    pub payload: u32,
    /// Layer-3 bytes.
    pub length: u32,
    /// Identification of IPv4; 0 in IPv6.
    pub ip_id: u16,
    /// TCP's checksum, to recognise packets that were captured twice.
    pub checksum: u16,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option.
    pub scale: Option<u8>,
    /// Timestamp value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Selectively acknowledged ranges; the rest of the four is empty.
    pub sack: [(u32, u32); 4],
    /// Not all of its options were kept: there may be more ranges.
    pub cut: bool,
}

impl Tcp {
    /// Layer-3 bytes of headers, without selective ACKs: as a data packet has them.
    pub fn headers(&self) -> u32 {
        let blocks = self.sack.iter().filter(|range| range.0 != range.1).count() as u32;
        let sack = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        (self.length - self.payload).saturating_sub(sack)
    }

    /// Whether the sender of this packet, the first that was seen of a connection, opened it. Of one that was open before, the end
    /// with the larger port did, as a rule.
    pub fn sender_opened(&self) -> bool {
        match (self.has(SYN), self.has(ACK)) {
            (true, answer) => !answer,
            (false, _) => self.source.1 >= self.destination.1,
        }
    }

    /// Whether all of these flags are set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// FIN, SYN, RST, PSH and ACK in [`Tcp::flags`].
pub const FIN: u8 = 1;
/// See [`FIN`].
pub const SYN: u8 = 2;
/// See [`FIN`].
pub const RST: u8 = 4;
/// See [`FIN`].
pub const PSH: u8 = 8;
/// See [`FIN`].
pub const ACK: u8 = 16;

/// The name of a link type, `None` if it is not read.
pub fn link_name(link_type: i32) -> Option<&'static str> {
    Some(match link_type {
        ETHERNET => "Ethernet",
        NULL | LOOP => "loopback",
        12 | 14 | RAW | IPV4 | IPV6 => "raw IP",
        SLL => "Linux cooked",
        SLL2 => "Linux cooked v2",
        _ => return None,
    })
}

/// The interface that a frame came by, where the link layer says so.
pub fn interface(link_type: i32, data: &[u8]) -> Option<u32> {
    let index = data.get(4..)?.first_chunk::<4>()?;
    (link_type == SLL2).then(|| u32::from_be_bytes(*index))
}

/// The link-layer address of a station.
pub type Station = [u8; 6];

/// The stations that sent and received a frame, where the link layer says so.
pub fn stations(link_type: i32, data: &[u8]) -> [Option<Station>; 2] {
    let at = |start: usize| {
        let station = *data.get(start..)?.first_chunk::<6>()?;
        (station != [0; 6]).then_some(station) // a loopback has none
    };
    match link_type {
        ETHERNET => [at(6), at(0)],
        SLL => [at(6), None],
        SLL2 => [at(12), None],
        _ => [None, None],
    }
}

/// Reads a frame of which `length` bytes were sent and `data` was kept.
pub fn parse(link_type: i32, data: &[u8], length: u32) -> Parsed {
    let (start, kind) = match link_type {
        ETHERNET => match word(data, 12) {
            Some(kind) => (14, Network::Type(kind)),
            None => return Parsed::Short,
        },
        SLL => match word(data, 14) {
            Some(kind) => (16, Network::Type(kind)),
            None => return Parsed::Short,
        },
        SLL2 => match word(data, 0) {
            Some(kind) => (20, Network::Type(kind)),
            None => return Parsed::Short,
        },
        NULL | LOOP => match data.first_chunk::<4>() {
            // In the byte order of the host that captured: small either way round.
            Some(family) => match u32::from_be_bytes(*family).min(u32::from_le_bytes(*family)) {
                2 | 10 | 24 | 28 | 30 => (4, Network::Version),
                _ => return Parsed::NotIp,
            },
            None => return Parsed::Short,
        },
        12 | 14 | RAW | IPV4 | IPV6 => (0, Network::Version),
        _ => return Parsed::UnknownLink,
    };
    let start = match kind {
        Network::Version => start,
        Network::Type(kind) => match past_tags(data, start, kind) {
            Ok(start) => start,
            Err(parsed) => return parsed,
        },
    };
    match data.get(start..) {
        Some(packet) => ip(packet, (length as usize).saturating_sub(start)),
        None => Parsed::Short,
    }
}

enum Network {
    /// An Ethernet type.
    Type(u16),
    /// Decided by the first half byte.
    Version,
}

/// Past VLAN tags and PPPoE, to where IP begins.
fn past_tags(data: &[u8], mut start: usize, mut kind: u16) -> Result<usize, Parsed> {
    for _ in 0..MOST_TAGS {
        match kind {
            0x0800 | 0x86dd => return Ok(start),
            // 802.1Q, 802.1ad, and what came before it.
            0x8100 | 0x88a8 | 0x9100 => {
                kind = word(data, start + 2).ok_or(Parsed::Short)?;
                start += 4;
            }
            // A PPPoE session (RFC 2516).
            0x8864 => {
                return match word(data, start + 6).ok_or(Parsed::Short)? {
                    0x0021 | 0x0057 => Ok(start + 8),
                    _ => Err(Parsed::NotIp),
                };
            }
            _ => return Err(Parsed::NotIp),
        }
    }
    Err(Parsed::NotIp)
}

/// Reads an IP packet of which `sent` bytes were sent.
fn ip(packet: &[u8], sent: usize) -> Parsed {
    let (ip, stopped) = match LaxIpSlice::from_slice(packet) {
        Ok(read) => read,
        Err(err::ip::LaxHeaderSliceError::Len(_)) => return Parsed::Short,
        Err(err::ip::LaxHeaderSliceError::Content(err::ip::HeaderError::UnsupportedIpVersion { .. })) => {
            return Parsed::NotIp;
        }
        Err(err::ip::LaxHeaderSliceError::Content(_)) => return Parsed::Malformed,
    };
    let (headers, stated, protocol, stopped, ip_id) = match &ip {
        LaxIpSlice::Ipv4(ip) => {
            let header = ip.header();
            let stated = usize::from(header.total_len());
            (
                header.slice().len(),
                stated,
                header.protocol(),
                None,
                header.identification(),
            )
        }
        LaxIpSlice::Ipv6(ip) => {
            let stated = match usize::from(ip.header().payload_length()) {
                0 => 0,
                payload => Ipv6Header::LEN + payload,
            };
            let headers = Ipv6Header::LEN + ip.extensions().slice().len();
            (headers, stated, ip.payload().ip_number, stopped, 0)
        }
    };
    // Segmentation offload leaves the length to the card, and a jumbogram (RFC 2675) states none.
    let total = if stated == 0 { sent } else { stated };
    if total < headers || total > sent {
        return Parsed::Malformed;
    }
    if ip.is_fragmenting_payload() {
        return Parsed::Fragment;
    }
    match stopped {
        Some((err::ipv6_exts::HeaderSliceError::Len(_), _)) if packet.len() < total => return Parsed::Short,
        Some(_) => return Parsed::Malformed,
        None => {}
    }
    let ends = [ip.source_addr(), ip.destination_addr()];
    if protocol != ip_number::TCP {
        let transport = packet.get(headers..).unwrap_or_default();
        return Parsed::OtherProtocol(other(transport, protocol.0, total, ends));
    }
    tcp(
        packet.get(headers..).unwrap_or(&[]),
        total - headers,
        total,
        ends,
        ip_id,
    )
}

/// A packet of another protocol, of which this follows the IP header.
fn other(transport: &[u8], protocol: u8, total: usize, ends: [IpAddr; 2]) -> Other {
    let udp = protocol == ip_number::UDP.0;
    let port = |at| word(transport, at).filter(|_| udp).unwrap_or(0);
    // RFC 9000 17.2, RFC 9369 3.1.
    let quic = udp
        && matches!(
            transport.get(8..13),
            Some([first, 0, 0, 0, 1] | [first, 0x6b, 0x33, 0x43, 0xcf]) if first & 0xc0 == 0xc0
        );
    Other {
        source: (ends[0], port(0)),
        destination: (ends[1], port(2)),
        protocol,
        quic,
        length: u32::try_from(total).unwrap_or(u32::MAX),
    }
}

/// Reads a TCP segment of `length` bytes, of which the first were captured.
fn tcp(segment: &[u8], length: usize, total: usize, ends: [IpAddr; 2], ip_id: u16) -> Parsed {
    if length < TcpHeader::MIN_LEN {
        return Parsed::Malformed;
    }
    if segment.len() < WINDOW_END {
        return Parsed::Short;
    }
    // What was cut off is zero, also half a checksum.
    let mut header = [0; TcpHeader::MAX_LEN];
    let kept = segment.len().min(header.len()) & !1;
    header[..kept].copy_from_slice(&segment[..kept]);
    let header = match TcpHeaderSlice::from_slice(&header) {
        Ok(header) if header.slice().len() <= length => header,
        _ => return Parsed::Malformed,
    };
    let header_length = header.slice().len();
    let mut tcp = Tcp {
        source: (ends[0], header.source_port()),
        destination: (ends[1], header.destination_port()),
        seq: header.sequence_number(),
        ack: header.acknowledgment_number(),
        flags: segment[13],
        window: header.window_size(),
        payload: u32::try_from(length - header_length).unwrap_or(u32::MAX),
        length: u32::try_from(total).unwrap_or(u32::MAX),
        ip_id,
        checksum: header.checksum(),
        mss: None,
        scale: None,
        timestamps: None,
        sack: [(0, 0); 4],
        cut: segment.len() < header_length,
    };
    let options = segment.get(TcpHeader::MIN_LEN..header_length.min(segment.len()));
    read_options(options.unwrap_or(&[]), &mut tcp);
    Parsed::Tcp(tcp)
}

/// Reads options up to the first that is cut off. The iterator of `etherparse` ends at the first option that it does not know.
fn read_options(mut options: &[u8], tcp: &mut Tcp) {
    while let Some(&kind) = options.first() {
        let length = match kind {
            0 => return,
            1 => 1,
            _ => match options.get(1) {
                Some(&length) if length >= 2 => usize::from(length),
                _ => return,
            },
        };
        // Of selective ACKs that were cut off, the first ranges are whole, and the newest.
        let kept = options
            .get(..length)
            .or((kind == 5 && tcp.cut).then_some(options));
        let Some(option) = kept else {
            return;
        };
        match *option {
            [2, 4, high, low] => tcp.mss = Some(u16::from_be_bytes([high, low])),
            // RFC 7323 2.3: at most 14.
            [3, 3, scale] => tcp.scale = Some(scale.min(14)),
            [8, 10, a, b, c, d, e, f, g, h] => {
                tcp.timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            }
            [5, _, ref blocks @ ..] => {
                for (range, block) in tcp.sack.iter_mut().zip(blocks.chunks_exact(8)) {
                    let edge = |at: usize| {
                        u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
                    };
                    *range = (edge(0), edge(4));
                }
            }
            _ => {}
        }
        options = options.get(length..).unwrap_or(&[]);
    }
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

const NULL: i32 = 0;
/// The link type of Ethernet.
pub const ETHERNET: i32 = 1;
const RAW: i32 = 101;
const LOOP: i32 = 108;
const SLL: i32 = 113;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const SLL2: i32 = 276;

/// Bytes of a TCP header up to its window: what must have been captured.
const WINDOW_END: usize = 16;

/// Tags that a frame may have.
const MOST_TAGS: usize = 8;
