//! Packets of a capture, one by one: pcap and pcapng, either byte order, micro- or nanoseconds, several interfaces.
//!
//! A capture may end anywhere and hold anything. What comes before the damage is read; [`Stop`] says where it ended and why.
//!
//! **Source.** draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; parsing by the crate pcap-parser.
//! **Deviations.** Simple packet blocks have no time and are counted only. Times before 1970 are taken as 1970, and those after 2554 as the
//! last that fits; they are counted.

use pcap_parser::pcapng::{Block, OptionCode, PcapNGOption};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{PcapBlockOwned, PcapError, create_reader};
use std::io::{self, Read};

/// A captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// Number of the interface in its section.
    pub interface: u32,
    /// What its first bytes are.
    pub link_type: i32,
    /// What was kept of it.
    pub data: &'a [u8],
    /// How long it was.
    pub length: u32,
    /// What somebody remarked on it.
    pub comment: Option<&'a str>,
}

/// How reading ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Frames read.
    pub frames: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Simple packet blocks, which have no time.
    pub timeless: u64,
    /// Frames of interfaces that the file does not describe.
    pub homeless: u64,
    /// Frames whose time was before 1970, or later than can be counted in nanoseconds.
    pub out_of_time: u64,
    /// Frames that the capturing system says it dropped.
    pub dropped: u64,
    /// Blocks of pcapng of kinds that are not read.
    pub unread: Unread,
    /// Why before the end of the file, in words; `None`: all of it was read.
    pub damage: Option<String>,
    /// Whether somebody stopped it.
    pub interrupted: bool,
}

/// Blocks of kinds that are not read, and the first of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// How many.
    pub blocks: u64,
    /// What stands there as the kind of the first.
    pub kind: u32,
    /// Where it begins.
    pub at: u64,
    /// The packet that would be next.
    pub packet: u64,
}

/// Reads all frames of `source`. `take` gets each with the bytes read so far; `false` ends it.
///
/// # Errors
/// A sentence if the file is no capture at all.
pub fn read(source: impl Read + Send, mut take: impl FnMut(Frame<'_>, u64) -> bool) -> Result<Stop, String> {
    let mut source = Whole(source);
    let mut head = [0; 4];
    let got = source
        .read(&mut head)
        .map_err(|error| format!("it cannot be read: {error}"))?;
    match &head[..got] {
        [] => return Err(String::from("it is empty")),
        [0x1f, 0x8b, ..] => {
            return Err(String::from(
                "it is compressed: gzip -dc FILE | fleetfoot import -",
            ));
        }
        [0x28, 0xb5, 0x2f, 0xfd] => {
            return Err(String::from(
                "it is compressed: zstd -dc FILE | fleetfoot import -",
            ));
        }
        _ => {}
    }
    let source = Whole(io::Cursor::new(head[..got].to_vec()).chain(source.0));
    let mut reader = create_reader(CAPACITY, source).map_err(|_| match head {
        // The beginning of a magic number.
        [0x0a | 0xa1 | 0xd4 | 0x4d, ..] if got < 4 => {
            String::from("it begins like a capture, but is cut off within its header")
        }
        [0x0a, 0x0d, 0x0d, 0x0a] => String::from("it is pcapng, but its first block is damaged or cut off"),
        [0xa1, 0xb2, ..] | [0xd4 | 0x4d, ..] => {
            String::from("it is pcap, but its header is damaged or cut off")
        }
        _ => String::from("it is neither pcap nor pcapng, nor a file of connection vectors"),
    })?;
    let mut state = State::default();
    let mut stop = Stop {
        frames: 0,
        bytes: 0,
        timeless: 0,
        homeless: 0,
        out_of_time: 0,
        dropped: 0,
        unread: Unread::default(),
        damage: None,
        interrupted: false,
    };
    let mut capacity = CAPACITY;
    loop {
        let problem = match reader.next() {
            Ok((length, block)) => {
                let at = stop.bytes;
                if let Some(reason) = state.absurd(&block) {
                    stop.damage = Some(format!("packet {} at byte {at}: {reason}", stop.frames + 1));
                    return Ok(stop);
                }
                stop.bytes += length as u64;
                let go_on = match state.block(&block, &mut stop) {
                    Some(frame) => {
                        stop.frames += 1;
                        take(frame, stop.bytes)
                    }
                    None => true,
                };
                if length == 0 {
                    stop.damage = Some(format!("a block without length at byte {at}"));
                    return Ok(stop);
                }
                reader.consume(length);
                if !go_on {
                    stop.interrupted = true;
                    return Ok(stop);
                }
                continue;
            }
            Err(PcapError::Eof) => return Ok(stop),
            Err(PcapError::Incomplete(_)) => state.broken(reader.data()),
            Err(PcapError::BufferTooSmall) if capacity < MOST_CAPACITY => {
                capacity *= 4;
                match state.broken(reader.data()) {
                    None if !reader.grow(capacity) => Some(String::from("it does not fit into memory")),
                    broken => broken,
                }
            }
            Err(PcapError::ReadError) => Some(String::from("it cannot be read from the disk")),
            Err(_) => Some(state.why(reader.data())),
        };
        // What cannot be is reported before the rest of the file is read in search of its end.
        let problem = problem.or_else(|| state.contradiction(reader.data()));
        let problem = problem.or_else(|| match reader.refill() {
            Ok(()) => None,
            Err(_) => Some(String::from("it cannot be read from the disk")),
        });
        if let Some(problem) = problem {
            stop.damage = Some(format!(
                "packet {} at byte {}: {problem}",
                stop.frames + 1,
                stop.bytes
            ));
            return Ok(stop);
        }
    }
}

/// Fills what it is given as far as there is anything: a pipe returns less than asked for.
struct Whole<R>(R);

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if filled == 0 => return Err(error),
                Err(_) => break, // reported next time
            }
        }
        Ok(filled)
    }
}

#[derive(Default)]
struct State {
    /// Link type of a pcap file, and nanoseconds per unit of the fraction.
    legacy: Option<(i32, u64)>,
    /// Bytes of a packet that a pcap file keeps at most.
    snap: u32,
    /// Numbers have their high byte first.
    big: bool,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy)]
struct Interface {
    link_type: i32,
    resolution: u8,
    offset_s: i64,
    /// Frames that it dropped, by its last statistics.
    dropped: u64,
}

impl Interface {
    /// Units of the interface as nanoseconds since 1970, and whether that fits.
    fn time_ns(self, units: u64) -> (u64, bool) {
        let exponent = u32::from(self.resolution & 0x7f);
        let units = u128::from(units);
        let nanos = if self.resolution & 0x80 != 0 {
            match exponent {
                0..=63 => (units * 1_000_000_000) >> exponent,
                _ => 0,
            }
        } else if exponent <= 9 {
            units * 10_u128.pow(9 - exponent)
        } else {
            10_u128.checked_pow(exponent - 9).map_or(0, |unit| units / unit)
        };
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        let time = i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(offset);
        match u64::try_from(time) {
            Ok(time) => (time, true),
            Err(_) => (if time < 0 { 0 } else { u64::MAX }, false),
        }
    }
}

impl State {
    fn word(&self, data: &[u8], at: usize) -> Option<u32> {
        let bytes = *data.get(at..)?.first_chunk::<4>()?;
        Some(match self.big {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        })
    }

    /// The eight bytes of an option.
    fn long(&self, option: &PcapNGOption<'_>) -> Option<[u8; 8]> {
        let mut bytes: [u8; 8] = option.as_bytes().ok()?.try_into().ok()?;
        if self.big {
            bytes.reverse();
        }
        Some(bytes)
    }

    /// Why what begins with `data` cannot be a packet or a block, as far as it is there; `None`: it can be.
    fn contradiction(&self, data: &[u8]) -> Option<String> {
        if self.legacy.is_some() {
            let kept = self.word(data, 8)?;
            return (kept > self.most()).then(|| self.too_long(kept));
        }
        let length = self.word(data, 4)?;
        // The byte order of a section stands behind its length.
        if data.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            return None;
        }
        if length < 12 || !length.is_multiple_of(4) || length as usize > MOST_CAPACITY {
            return Some(format!(
                "{length} stands there as the length of its block, which is that of none: it or what is before it is damaged"
            ));
        }
        let kept = self.word(data, 20).filter(|_| self.word(data, 0) == Some(PACKET));
        if let Some(kept) = kept.filter(|kept| u64::from(*kept) + 32 > u64::from(length)) {
            return Some(format!(
                "{kept} bytes are said to be kept of it, in a block of {length}: one of them is damaged"
            ));
        }
        let end = self.word(data, length as usize - 4)?;
        (end != length).then(|| lengths(length, end))
    }

    /// What a packet of a pcap file can have.
    fn most(&self) -> u32 {
        self.snap.max(LARGEST)
    }

    fn too_long(&self, kept: u32) -> String {
        format!(
            "{kept} bytes are said to be kept of it, where the file keeps {} at most: it or what is before it is damaged",
            self.snap
        )
    }

    /// Why a block of pcapng cannot be read of which all is there, by its length; `None`: there may be more of it.
    fn broken(&self, data: &[u8]) -> Option<String> {
        let length = self.word(data, 4).filter(|_| self.legacy.is_none())?;
        let section = data.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
        (!section && length as usize <= data.len()).then(|| self.why(data))
    }

    /// Why a packet or a block that could be read is none.
    fn absurd(&self, block: &PcapBlockOwned<'_>) -> Option<String> {
        match block {
            PcapBlockOwned::Legacy(packet) if packet.caplen > self.most() => {
                Some(self.too_long(packet.caplen))
            }
            PcapBlockOwned::NG(Block::Unknown(block)) if block.block_len1 != block.block_len2 => {
                Some(lengths(block.block_len1, block.block_len2))
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(block))
                if !are_whole(&block.options, block.block_len1 - 20) =>
            {
                Some(unreadable(1, block.block_len1))
            }
            PcapBlockOwned::NG(Block::InterfaceStatistics(block))
                if !are_whole(&block.options, block.block_len1 - 24) =>
            {
                Some(unreadable(5, block.block_len1))
            }
            _ => None,
        }
    }

    /// Why what begins with `data`, the rest of the file or of the buffer, cannot be read.
    fn why(&self, data: &[u8]) -> String {
        if let Some(reason) = self.contradiction(data) {
            return reason;
        }
        let header = if self.legacy.is_some() { 16 } else { 8 };
        let wanted = match self.legacy {
            Some(_) => self.word(data, 8).map(|kept| u64::from(kept) + header),
            None => self.word(data, 4).map(u64::from),
        };
        let there = data.len() as u64;
        match wanted {
            None => format!("the file ends within its header: {there} of {header} bytes are there"),
            Some(wanted) if there < wanted => {
                format!("the file ends within it: {there} of {wanted} bytes are there")
            }
            Some(_) if self.legacy.is_some() => {
                String::from("what stands there is not a packet: it is damaged")
            }
            Some(length) => unreadable(self.word(data, 0).unwrap_or(0), length as u32),
        }
    }

    fn block<'a>(&mut self, block: &'a PcapBlockOwned<'a>, stop: &mut Stop) -> Option<Frame<'a>> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let unit = if header.is_nanosecond_precision() { 1 } else { 1000 };
                self.legacy = Some((header.network.0 & 0x0fff_ffff, unit));
                self.big = header.is_bigendian();
                self.snap = header.snaplen;
                None
            }
            PcapBlockOwned::Legacy(packet) => {
                let (link_type, unit) = self.legacy?;
                let fraction = u64::from(packet.ts_usec) * unit;
                Some(Frame {
                    time_ns: u64::from(packet.ts_sec) * 1_000_000_000 + fraction,
                    interface: 0,
                    link_type,
                    data: packet.data,
                    length: packet.origlen,
                    comment: None,
                })
            }
            PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                self.big = section.big_endian();
                self.interfaces.clear();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                // pcap-parser 0.17 reads it as if the low byte were first in every section.
                let mut options = interface.options.iter();
                let offset = options.find(|option| option.code == OptionCode::IfTsoffset);
                self.interfaces.push(Interface {
                    link_type: interface.linktype.0,
                    resolution: interface.if_tsresol,
                    offset_s: offset
                        .and_then(|offset| self.long(offset))
                        .map_or(0, i64::from_le_bytes),
                    dropped: 0,
                });
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let Some(interface) = self.interfaces.get(packet.if_id as usize) else {
                    stop.homeless += 1;
                    return None;
                };
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let (time_ns, fits) = interface.time_ns(units);
                stop.out_of_time += u64::from(!fits);
                Some(Frame {
                    time_ns,
                    interface: packet.if_id,
                    link_type: interface.link_type,
                    data: packet.packet_data(),
                    length: packet.origlen,
                    comment: packet
                        .options
                        .iter()
                        .find(|option| option.code == OptionCode::Comment)
                        .and_then(|option| option.as_str().ok()),
                })
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                stop.timeless += 1;
                None
            }
            PcapBlockOwned::NG(Block::InterfaceStatistics(statistics)) => {
                let options = statistics.options.iter();
                let dropped = options.filter(|option| matches!(option.code.0, 5 | 7));
                let counts = dropped.filter_map(|option| Some(u64::from_le_bytes(self.long(option)?)));
                let counts = counts.filter(|count| *count < 1 << 48);
                let sum = counts.fold(0, u64::saturating_add);
                // Counters of one interface since the start: its last block has all.
                let interface = self.interfaces.get_mut(statistics.if_id as usize)?;
                stop.dropped = stop.dropped.saturating_add(sum.saturating_sub(interface.dropped));
                interface.dropped = interface.dropped.max(sum);
                None
            }
            PcapBlockOwned::NG(Block::Unknown(block)) => {
                let kind = if self.big {
                    block.block_type.swap_bytes()
                } else {
                    block.block_type
                };
                if stop.unread.blocks == 0 {
                    // What was read so far has this block in it.
                    let at = stop.bytes - u64::from(block.block_len1);
                    (stop.unread.kind, stop.unread.at, stop.unread.packet) = (kind, at, stop.frames + 1);
                }
                stop.unread.blocks += 1;
                None
            }
            PcapBlockOwned::NG(_) => None,
        }
    }
}

fn lengths(first: u32, last: u32) -> String {
    format!(
        "its block has {first} bytes by what stands at its beginning, {last} by what stands at its end: one of them is damaged"
    )
}

fn unreadable(kind: u32, length: u32) -> String {
    let name = kind_name(kind).map_or_else(String::new, |name| format!(" ({name})"));
    format!(
        "a block of type 0x{kind:08x}{name} and {length} bytes stands there, which cannot be read as one: it is damaged"
    )
}

/// Whether options fill their part of a block, or end before it as they should.
fn are_whole(options: &[PcapNGOption<'_>], bytes: u32) -> bool {
    let filled = options
        .iter()
        .map(|option| 4 + u32::from(option.len).next_multiple_of(4));
    options.iter().any(|option| option.code.0 == 0) || filled.sum::<u32>() == bytes
}

/// What blocks of pcapng are called.
pub fn kind_name(kind: u32) -> Option<&'static str> {
    Some(match kind {
        1 => "interface description",
        2 => "packet, as of old",
        3 => "simple packet",
        4 => "name resolution",
        5 => "interface statistics",
        PACKET => "packet",
        _ => return None,
    })
}

/// The type of an enhanced packet block.
const PACKET: u32 = 6;

/// Bytes read at once.
const CAPACITY: usize = 1 << 20;

/// Bytes of a packet that tcpdump keeps at most.
const LARGEST: u32 = 262_144;

/// A longer block is damage.
const MOST_CAPACITY: usize = 1 << 26;

#[cfg(test)]
mod tests;
