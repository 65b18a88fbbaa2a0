//! The TCP header and its options.
//!
//! Options are written in the order Linux uses, each aligned by padding in front: on a SYN MSS, SACK-permitted,
//! timestamps, Accurate ECN, window scale, Fast Open cookie (Accurate ECN before SACK-permitted where there are no timestamps);
//! elsewhere timestamps, Accurate ECN, then SACK blocks.

use super::checksum::Sum;
use super::{Error, long, word};
use crate::packet::{AccEcnOption, Flags, Kind, Segment};
use crate::seq::SeqNumber;
use crate::tcp::Cookie;
use core::net::SocketAddr;

pub(super) const PROTOCOL: u8 = 6;
const HEADER: usize = 20;
const MAX_HEADER: usize = 60;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const COOKIE: u8 = 34;
/// Accurate ECN, bytes of ECT(0) first, and of ECT(1) first (RFC 9768 3.2.3).
const ACCECN: [u8; 2] = [172, 174];
/// Fast Open before RFC 7413 (RFC 6994, RFC 7413 A).
const EXPERIMENT: u8 = 254;
const FAST_OPEN: u16 = 0xf989;

/// Length of the header with options, at least `wanted` if that is possible.
pub(super) fn header_len(segment: &Segment, wanted: usize) -> Result<usize, Error> {
    let mut scratch = [0; MAX_HEADER - HEADER];
    let needed = HEADER + write_options(&mut scratch, segment)?;
    Ok(needed.max(wanted.min(MAX_HEADER) / 4 * 4))
}

/// Fills the header, `header` bytes long, of a segment whose payload is in place.
pub(super) fn encode(
    bytes: &mut [u8],
    header: usize,
    segment: &Segment,
    source: SocketAddr,
    destination: SocketAddr,
) {
    let control = segment.flags.0 & Flags::CONTROL.0;
    bytes[..2].copy_from_slice(&source.port().to_be_bytes());
    bytes[2..4].copy_from_slice(&destination.port().to_be_bytes());
    bytes[4..8].copy_from_slice(&segment.seq.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&segment.ack.0.to_be_bytes());
    bytes[12..14].copy_from_slice(&((header as u16 / 4) << 12 | control).to_be_bytes());
    bytes[14..16].copy_from_slice(&segment.window.to_be_bytes());
    bytes[16..18].fill(0);
    // Without URG the field of the segment is layout C's, not TCP's.
    let urgent = if segment.flags.contains(Flags::URG) {
        segment.urgent
    } else {
        0
    };
    bytes[18..20].copy_from_slice(&urgent.to_be_bytes());
    let mut scratch = [0; MAX_HEADER - HEADER];
    // `header_len` has made this call with success.
    let len = write_options(&mut scratch, segment).unwrap_or(0);
    bytes[HEADER..HEADER + len].copy_from_slice(&scratch[..len]);
    bytes[HEADER + len..header].fill(NOP);
    let mut sum = Sum::pseudo_header(source.ip(), destination.ip(), PROTOCOL, bytes.len() as u32);
    sum.add(bytes);
    let corrupt = u16::from(segment.flags.contains(Flags::CORRUPT));
    bytes[16..18].copy_from_slice(&(sum.finish() ^ corrupt).to_be_bytes());
}

/// Reads a segment; returns the header's length and the ports. With the `sum` of the pseudo header the checksum must be right.
pub(super) fn parse(
    bytes: &[u8],
    sum: Option<Sum>,
    segment: &mut Segment,
) -> Result<(usize, (u16, u16)), Error> {
    if bytes.len() < HEADER {
        return Err(Error::Truncated);
    }
    let header = usize::from(bytes[12] >> 4) * 4;
    if header < HEADER {
        return Err(Error::Header);
    }
    let options = bytes.get(HEADER..header).ok_or(Error::Truncated)?;
    if sum.is_some_and(|sum| sum.over(bytes) != 0) {
        return Err(Error::Checksum);
    }
    segment.set_kind(Kind::Tcp);
    segment.seq = SeqNumber(long(bytes, 4));
    segment.ack = SeqNumber(long(bytes, 8));
    segment.flags = segment.flags.with(Flags(word(bytes, 12) & Flags::CONTROL.0));
    segment.window = word(bytes, 14);
    if segment.flags.contains(Flags::URG) {
        // The urgent pointer and the super-packet option share a field: TCP's meaning wins.
        segment.urgent = word(bytes, 18);
    }
    read_options(options, segment)?;
    Ok((header, (word(bytes, 0), word(bytes, 2))))
}

/// Writes the options; returns their length, a multiple of four.
fn write_options(buffer: &mut [u8; MAX_HEADER - HEADER], segment: &Segment) -> Result<usize, Error> {
    let mut options = Options { buffer, len: 0 };
    let flags = segment.flags;
    if flags.contains(Flags::SYN) {
        if let Some(mss) = segment.mss() {
            options.put(&[MSS, 4])?;
            options.put(&mss.to_be_bytes())?;
        }
        let sack = flags.contains(Flags::SACK_PERMITTED);
        if flags.contains(Flags::TIMESTAMPS) {
            options.put(if sack { &[SACK_PERMITTED, 2] } else { &[NOP, NOP] })?;
            options.timestamps(segment)?;
        }
        options.accecn(segment)?;
        if sack && !flags.contains(Flags::TIMESTAMPS) {
            options.put(&[NOP, NOP, SACK_PERMITTED, 2])?;
        }
        if let Some(scale) = segment.window_scale() {
            options.put(&[NOP, SCALE, 3, scale])?;
        }
        if flags.contains(Flags::COOKIE) {
            let cookie = segment.cookie().ok_or(Error::Option)?;
            let len = cookie.bytes().len() as u8;
            if cookie.experimental {
                options.put(&[EXPERIMENT, len + 4])?;
                options.put(&FAST_OPEN.to_be_bytes())?;
            } else {
                options.put(&[COOKIE, len + 2])?;
            }
            options.put(cookie.bytes())?;
        }
    } else {
        if flags.contains(Flags::TIMESTAMPS) {
            options.put(&[NOP, NOP])?;
            options.timestamps(segment)?;
        }
        options.accecn(segment)?;
        let blocks = segment.sack_blocks();
        if blocks > 4 {
            return Err(Error::Options);
        }
        if blocks > 0 {
            options.put(&[NOP, NOP, SACK, 2 + 8 * blocks as u8])?;
            for index in 0..blocks {
                let (left, right) = segment.sack_block(index);
                options.put(&left.0.to_be_bytes())?;
                options.put(&right.0.to_be_bytes())?;
            }
        }
    }
    while !options.len.is_multiple_of(4) {
        options.put(&[NOP])?;
    }
    Ok(options.len)
}

/// Options in the making.
struct Options<'a> {
    buffer: &'a mut [u8; MAX_HEADER - HEADER],
    len: usize,
}

impl Options<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let end = self.len + bytes.len();
        self.buffer
            .get_mut(self.len..end)
            .ok_or(Error::Options)?
            .copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    fn timestamps(&mut self, segment: &Segment) -> Result<(), Error> {
        self.put(&[TIMESTAMPS, 10])?;
        self.put(&segment.tsval.to_be_bytes())?;
        self.put(&segment.tsecr.to_be_bytes())
    }

    fn accecn(&mut self, segment: &Segment) -> Result<(), Error> {
        let Some(option) = segment.accecn() else {
            return Ok(());
        };
        let counters = option.counters();
        let kind = ACCECN[usize::from(option.ect1_first())];
        self.put(&[kind, 2 + 3 * counters.len() as u8])?;
        for counter in counters {
            self.put(&counter.to_be_bytes()[1..])?;
        }
        while !self.len.is_multiple_of(4) {
            self.put(&[NOP])?;
        }
        Ok(())
    }
}

/// Reads the options that concern this kind of segment. Others, and known ones of a wrong length, are skipped
/// (RFC 9293 MUST-6); a length that leaves the header is an error (MUST-7).
fn read_options(mut options: &[u8], segment: &mut Segment) -> Result<(), Error> {
    let syn = segment.flags.contains(Flags::SYN);
    // An option on a SYN is ignored (RFC 9768 3.2.3.2.1).
    let takes_accecn = !syn || segment.flags.contains(Flags::ACK);
    let mut sack: &[u8] = &[];
    let mut accecn = None;
    while let [kind, rest @ ..] = options {
        match *kind {
            END => break,
            NOP => {
                options = rest;
                continue;
            }
            _ => {}
        }
        let len = usize::from(*rest.first().ok_or(Error::Option)?);
        if len < 2 || len > options.len() {
            return Err(Error::Option);
        }
        let (option, after) = options.split_at(len);
        options = after;
        let value = &option[2..];
        match (*kind, len) {
            (MSS, 4) if syn => {
                segment.flags = segment.flags.with(Flags::MSS);
                segment.options[0] = segment.options[0] & 0xffff_0000 | u32::from(word(value, 0));
            }
            (SCALE, 3) if syn => {
                segment.flags = segment.flags.with(Flags::SCALE);
                segment.options[0] = segment.options[0] & 0xff00_ffff | u32::from(value[0]) << 16;
            }
            (SACK_PERMITTED, 2) if syn => segment.flags = segment.flags.with(Flags::SACK_PERMITTED),
            (COOKIE, _) if syn => {
                if let Some(cookie) = Cookie::new(value, false) {
                    segment.set_cookie(&cookie);
                }
            }
            (EXPERIMENT, 4..) if syn && word(value, 0) == FAST_OPEN => {
                if let Some(cookie) = Cookie::new(&value[2..], true) {
                    segment.set_cookie(&cookie);
                }
            }
            (TIMESTAMPS, 10) => {
                segment.flags = segment.flags.with(Flags::TIMESTAMPS);
                segment.tsval = long(value, 0);
                segment.tsecr = long(value, 4);
            }
            (SACK, _) if !syn => sack = value,
            // What follows the whole counters that fit is padding (RFC 9768 3.2.3).
            (kind, _) if ACCECN.contains(&kind) && takes_accecn => {
                let mut counters = [0; AccEcnOption::FIELDS];
                let mut len = 0;
                for (counter, bytes) in counters.iter_mut().zip(value.chunks_exact(3)) {
                    *counter = u32::from(bytes[0]) << 16 | u32::from(word(bytes, 1));
                    len += 1;
                }
                accecn = Some(AccEcnOption::new(kind == ACCECN[1], &counters[..len]));
            }
            _ => {}
        }
    }
    // After the loop: whether there is room for a fourth block depends on timestamps.
    for block in sack.chunks_exact(8) {
        segment.push_sack_block(SeqNumber(long(block, 0)), SeqNumber(long(block, 4)));
    }
    if let Some(option) = accecn {
        segment.set_accecn(&option);
    }
    Ok(())
}
