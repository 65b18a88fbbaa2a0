//! Captures for Wireshark: pcapng with nanoseconds, one interface per capture point, both directions of every flow.
//!
//! Packets begin with their IPv4 header (link type IPV4, or IPV6) and have valid checksums. Not the link type RAW, which stands for both:
//! libpcap 1.10, and so tcpdump, takes a second interface of that type for one of another type than the first and refuses the file. Payload is zeros, so it is not written beyond the snap length; the
//! original length is kept. Hosts get the addresses 10.0.0.1 and up, in the order of their ids. Where super-packets need an
//! IPv6 option, all packets are IPv6, from fd00::a00:1 on.
//!
//! **Source.** draft-ietf-opsawg-pcapng (blocks and options), RFC 791, RFC 9293.
//! **Deviations.** A packet too long for IPv4's length field (only the simulator makes them) is written with total length
//! 0, as Linux's captures of segmentation offload are, and without a transport checksum. IPv6's header is 20 bytes longer
//! than the simulator counts, which always counts IPv4's.

use fleetfoot_core::flow::{FlowTable, HostId};
use fleetfoot_core::packet::{Packet, Segment};
use fleetfoot_core::time::Instant;
use fleetfoot_core::wire;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Bytes of a packet that are written: all headers and some of the zeros.
pub const SNAP_LENGTH: u32 = 128;

/// A place where packets are captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Short name: `bottleneck-forward`.
    pub name: String,
    /// What it is, for a reader.
    pub description: String,
}

/// A packet that passed a capture point.
#[derive(Clone, Debug)]
pub struct Captured {
    /// When.
    pub time: Instant,
    /// Where: index into the interfaces.
    pub interface: u32,
    /// What.
    pub packet: Packet,
    /// A remark that Wireshark shows, such as `full`, the reason of a drop.
    pub comment: Option<&'static str>,
}

/// Internet protocol of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Version 4.
    #[default]
    V4,
    /// Version 6, which super-packets of layout C need.
    V6,
}

impl Protocol {
    fn socket(self, host: HostId, port: u16) -> SocketAddr {
        let v4 = address(host);
        let [a, b, c, d] = v4.octets().map(u16::from);
        match self {
            Protocol::V4 => SocketAddr::new(v4.into(), port),
            Protocol::V6 => {
                let v6 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, a << 8 | b, c << 8 | d);
                SocketAddr::new(v6.into(), port)
            }
        }
    }

    /// What its packets begin with, for readers.
    const fn link_type(self) -> u16 {
        match self {
            Protocol::V4 => IPV4,
            Protocol::V6 => IPV6,
        }
    }

    /// Header bytes beyond those of version 4.
    const fn more(self) -> u8 {
        match self {
            Protocol::V4 => 0,
            Protocol::V6 => 20,
        }
    }
}

/// The address of a host in a capture.
pub fn address(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0001_u32.wrapping_add(host.0 & 0x00ff_ffff))
}

/// Writes the capture `path`.
///
/// # Errors
/// What the file system says.
pub fn write(
    path: &Path,
    packets: impl IntoIterator<Item = Captured>,
    interfaces: &[Interface],
    flows: &FlowTable,
    comment: &str,
    protocol: Protocol,
) -> io::Result<()> {
    let mut output = BufWriter::new(File::create(path)?);
    write_to(
        &mut output,
        packets,
        interfaces,
        flows,
        comment,
        SNAP_LENGTH,
        protocol,
    )?;
    output.flush()
}

/// Writes a capture to `output`, keeping `snap_length` bytes of every packet.
///
/// # Errors
/// What `output` says.
pub fn write_to(
    output: impl Write,
    packets: impl IntoIterator<Item = Captured>,
    interfaces: &[Interface],
    flows: &FlowTable,
    comment: &str,
    snap_length: u32,
    protocol: Protocol,
) -> io::Result<()> {
    let mut writer = begin(output, interfaces, comment, snap_length, protocol.link_type())?;
    let mut buffer = vec![0_u8; usize::from(u16::MAX)];
    for captured in packets {
        let mut segment = captured.packet.segment;
        segment.overhead = segment.overhead.saturating_add(protocol.more());
        let key = flows.key(captured.packet.flow);
        let source = protocol.socket(key.source, key.source_port);
        let destination = protocol.socket(key.destination, key.destination_port);
        let written = encode(&mut buffer, &segment, source, destination)?;
        let kept = written.min(snap_length as usize);
        let data = &buffer[..kept];
        let comment = captured.comment.map(|text| (COMMENT, text.as_bytes()));
        let time_ns = captured.time.as_nanos();
        writer.packet(
            captured.interface,
            time_ns,
            segment.len(),
            data,
            comment.as_slice(),
        )?;
    }
    Ok(())
}

/// A capture with its section and interfaces.
fn begin<W: Write>(
    output: W,
    interfaces: &[Interface],
    comment: &str,
    snap_length: u32,
    link_type: u16,
) -> io::Result<Blocks<W>> {
    let mut writer = Blocks {
        output,
        block: Vec::new(),
    };
    let mut body = Vec::with_capacity(16);
    body.extend(BYTE_ORDER.to_le_bytes());
    body.extend([1, 0, 0, 0]); // version 1.0
    body.extend((-1_i64).to_le_bytes()); // of unknown length
    let program = concat!("fleetfoot ", env!("CARGO_PKG_VERSION"));
    let options = [(COMMENT, comment.as_bytes()), (PROGRAM, program.as_bytes())];
    writer.write(SECTION, &body, &[], &options)?;
    for interface in interfaces {
        let mut body = [0; 8];
        body[..2].copy_from_slice(&link_type.to_le_bytes());
        body[4..].copy_from_slice(&snap_length.to_le_bytes());
        let options: [(u16, &[u8]); 3] = [
            (NAME, interface.name.as_bytes()),
            (DESCRIPTION, interface.description.as_bytes()),
            (RESOLUTION, &[9]), // 10^-9 s
        ];
        writer.write(INTERFACE, &body, &[], &options)?;
    }
    Ok(writer)
}

/// Blocks of pcapng, little-endian.
struct Blocks<W> {
    output: W,
    block: Vec<u8>,
}

impl<W: Write> Blocks<W> {
    /// A block of `kind`: what it begins with, data, options by code.
    fn write(&mut self, kind: u32, body: &[u8], data: &[u8], options: &[(u16, &[u8])]) -> io::Result<()> {
        let block = &mut self.block;
        block.clear();
        block.extend(kind.to_le_bytes());
        block.extend([0; 4]); // its length, when it is known
        block.extend(body);
        block.extend(data);
        block.resize(block.len().next_multiple_of(4), 0);
        for &(code, value) in options {
            let value = &value[..value.len().min(usize::from(u16::MAX))];
            block.extend(code.to_le_bytes());
            block.extend((value.len() as u16).to_le_bytes());
            block.extend(value);
            block.resize(block.len().next_multiple_of(4), 0);
        }
        if !options.is_empty() {
            block.extend([0; 4]); // the end of them
        }
        let length = (block.len() as u32 + 4).to_le_bytes();
        block[4..8].copy_from_slice(&length);
        block.extend(length);
        self.output.write_all(block)
    }

    /// A packet of which `data` was kept.
    fn packet(
        &mut self,
        interface: u32,
        time_ns: u64,
        length: u32,
        data: &[u8],
        options: &[(u16, &[u8])],
    ) -> io::Result<()> {
        let mut body = [0; 20];
        let fields = [
            interface,
            (time_ns >> 32) as u32,
            time_ns as u32,
            data.len() as u32,
            length,
        ];
        for (place, field) in body.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        self.write(PACKET, &body, data, options)
    }
}

/// A capture of real frames (Ethernet) that is written while they pass.
pub struct FrameWriter {
    writer: Blocks<BufWriter<File>>,
}

/// A real frame that passed a capture point.
#[derive(Clone, Copy, Debug)]
pub struct RealFrame<'a> {
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
    /// Where: index into the interfaces.
    pub interface: u32,
    /// Whether it came in here, or went out.
    pub inbound: bool,
    /// What was kept of it.
    pub data: &'a [u8],
    /// How long it was.
    pub length: u32,
    /// A remark that Wireshark shows.
    pub comment: Option<&'a str>,
}

impl FrameWriter {
    /// Begins the capture `file`, which keeps up to `snap_length` bytes of every frame.
    ///
    /// # Errors
    /// What the file system says.
    pub fn new(
        file: File,
        interfaces: &[Interface],
        comment: &str,
        snap_length: u32,
    ) -> io::Result<FrameWriter> {
        let output = BufWriter::with_capacity(1 << 16, file);
        let writer = begin(output, interfaces, comment, snap_length, ETHERNET)?;
        Ok(FrameWriter { writer })
    }

    /// Writes a frame.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&mut self, frame: &RealFrame<'_>) -> io::Result<()> {
        // Direction is in the two lowest bits (draft-ietf-opsawg-pcapng 4.3.1): 1 inbound, 2 outbound.
        let flags = u32::from(if frame.inbound { 1_u8 } else { 2 }).to_le_bytes();
        let comment = frame.comment.unwrap_or_default().as_bytes();
        let options = [(FLAGS, &flags[..]), (COMMENT, comment)];
        let options = &options[..1 + usize::from(frame.comment.is_some())];
        self.writer
            .packet(frame.interface, frame.unix_ns, frame.length, frame.data, options)
    }

    /// So many frames are not in the file.
    ///
    /// # Errors
    /// What the file system says.
    pub fn lacks(&mut self, frames: u64) -> io::Result<()> {
        // Of interface 0, at no time.
        self.writer
            .write(STATISTICS, &[0; 12], &[], &[(DROPPED, &frames.to_le_bytes())])
    }

    /// Hands everything that was written to the system.
    ///
    /// # Errors
    /// What the file system says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.output.flush()
    }
}

/// The packet's bytes; those of one too long for its length field are its headers with length 0.
fn encode(
    buffer: &mut [u8],
    segment: &Segment,
    source: SocketAddr,
    destination: SocketAddr,
) -> io::Result<usize> {
    let fits = segment.len() <= u32::from(u16::MAX);
    let short = Segment {
        payload: 0,
        ..*segment
    };
    let part = if fits { segment } else { &short };
    let written = wire::encode(buffer, part, source, destination, &[])
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, format!("{error:?}")))?;
    if !fits && source.is_ipv6() {
        buffer[4..6].fill(0); // payload length
    } else if !fits {
        // Total length, then the header checksum (RFC 791) over the changed header.
        buffer[2..4].fill(0);
        buffer[10..12].fill(0);
        let sum = buffer[..20]
            .chunks_exact(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum::<u32>();
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = ((folded & 0xffff) + (folded >> 16)) as u16;
        buffer[10..12].copy_from_slice(&(!folded).to_be_bytes());
    }
    Ok(written)
}

/// Kinds of blocks.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
/// What a section begins with, so that readers see its byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Codes of options; all but the first belong to a kind of block.
const COMMENT: u16 = 1;
const PROGRAM: u16 = 4;
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;
const DROPPED: u16 = 5;
/// Link types.
const ETHERNET: u16 = 1;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
