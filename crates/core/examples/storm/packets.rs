//! Packets, changed: every layer's fields, lengths and options, with right and wrong checksums.

use crate::{Draw, Storm};
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::Cookie;
use fleetfoot_core::wire::{self, checksum::Sum};
use std::net::{IpAddr, SocketAddr};

/// Packets to start from.
const ORIGINALS: u64 = 4096;
const LONGEST: usize = 256;

pub(crate) struct Packets {
    originals: Vec<Vec<u8>>,
    read: [u64; 3],
    refused: u64,
}

impl Packets {
    pub(crate) fn new() -> Packets {
        Packets {
            originals: (0..ORIGINALS)
                .map(|index| original(&mut Draw::new(0x5eed, index)))
                .collect(),
            read: [0; 3],
            refused: 0,
        }
    }
}

impl Storm for Packets {
    fn play(&mut self, seed: u64, index: u64) {
        let mut draw = Draw::new(seed, index);
        let mut bytes = [0; LONGEST];
        let len = self.input(&mut draw, &mut bytes);
        let bytes = &bytes[..len];
        let what = check(bytes);
        match what {
            Some(kind) => self.read[kind] += 1,
            None => self.refused += 1,
        }
    }

    fn summary(&self) -> String {
        let [tcp, udp, icmp] = self.read;
        format!(
            "read: {tcp} TCP, {udp} UDP, {icmp} ICMP; refused: {}",
            self.refused
        )
    }
}

impl Packets {
    /// Fills `bytes` with an input; returns its length.
    fn input(&self, draw: &mut Draw, bytes: &mut [u8; LONGEST]) -> usize {
        if draw.once_in(16) {
            // Anything at all, with a version that is known.
            let len = draw.below(120) as usize;
            for chunk in bytes[..len].chunks_mut(8) {
                chunk.copy_from_slice(&draw.next().to_le_bytes()[..chunk.len()]);
            }
            bytes[0] = if draw.once_in(2) { 0x45 } else { 0x60 };
            return len;
        }
        let original = &self.originals[draw.below(ORIGINALS) as usize];
        let mut len = original.len();
        bytes[..len].copy_from_slice(original);
        for _ in 0..draw.below(4) {
            let at = draw.below(len as u64) as usize;
            match draw.below(8) {
                0 | 1 => bytes[at] ^= 1 << draw.below(8),
                2 | 3 => bytes[at] = draw.next() as u8,
                4 => bytes[at] = [0, 1, 2, 3, 4, 5, 8, 10, 34, 254, 255][draw.below(11) as usize],
                5 => {
                    let from = draw.below(len as u64) as usize;
                    bytes.copy_within(from..len.min(from + 8), at.min(LONGEST - 8));
                }
                6 => len -= draw.below(len as u64) as usize / 4,
                _ => len = (len + draw.below(9) as usize).min(LONGEST),
            }
        }
        if draw.once_in(2) {
            mend(&mut bytes[..len]);
        }
        len
    }
}

/// Reads a packet; what is read must be written and read again as the same. Returns what it was.
fn check(bytes: &[u8]) -> Option<usize> {
    let mut buffer = [0; 2 * LONGEST];
    if let Ok(parsed) = wire::parse(bytes) {
        let payload = &bytes[parsed.payload.clone()];
        let len = wire::encode(
            &mut buffer,
            &parsed.segment,
            parsed.source,
            parsed.destination,
            payload,
        )
        .expect("what was read can be written");
        let mut again = wire::parse(&buffer[..len]).expect("what was written can be read");
        assert_eq!(&buffer[again.payload.clone()], payload);
        // Options of IP and extension headers are not kept.
        again.payload = parsed.payload.clone();
        again.segment.overhead = parsed.segment.overhead;
        assert_eq!(again, parsed);
        return Some(usize::from(parsed.segment.kind() != Kind::Tcp));
    }
    let icmp = wire::parse_icmp(bytes).ok()?;
    let segment = Segment {
        seq: icmp.icmp.seq,
        overhead: 40,
        ..Segment::default()
    };
    let len = wire::encode_icmp(
        &mut buffer,
        icmp.icmp.kind,
        icmp.from,
        &segment,
        icmp.source,
        icmp.destination,
    )
    .expect("what was read can be written");
    assert_eq!(wire::parse_icmp(&buffer[..len]), Ok(icmp));
    Some(2)
}

/// A valid packet of any kind.
fn original(draw: &mut Draw) -> Vec<u8> {
    let v6 = draw.once_in(2);
    let address = |last: u8| {
        if v6 {
            IpAddr::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
        } else {
            IpAddr::from([192, 0, 2, last])
        }
    };
    let source = SocketAddr::new(address(1), draw.next() as u16);
    let destination = SocketAddr::new(address(2), draw.next() as u16);
    let mut segment = Segment {
        seq: SeqNumber(draw.next() as u32),
        ack: SeqNumber(draw.next() as u32),
        window: draw.next() as u16,
        tos: draw.next() as u8,
        ttl: 64,
        payload: draw.below(24) as u32,
        flags: Flags(draw.below(0x200) as u16),
        ..Segment::default()
    };
    let mut buffer = [0; LONGEST];
    let len = match draw.below(8) {
        0 => {
            let kind = loop {
                if let Some(kind) = wire::kind_of(v6, draw.below(13) as u8, draw.below(8) as u8, 1280) {
                    break kind;
                }
            };
            wire::encode_icmp(&mut buffer, kind, address(9), &segment, source, destination)
        }
        1 => {
            segment.set_kind(Kind::Datagram);
            wire::encode(&mut buffer, &segment, source, destination, &[])
        }
        _ => {
            options(draw, &mut segment);
            wire::encode(&mut buffer, &segment, source, destination, &[])
        }
    };
    buffer[..len.expect("it fits")].to_vec()
}

fn options(draw: &mut Draw, segment: &mut Segment) {
    let present = |flag: Flags, draw: &mut Draw| if draw.once_in(2) { flag } else { Flags(0) };
    segment.flags = segment.flags.with(present(Flags::TIMESTAMPS, draw));
    if !segment.flags.contains(Flags::SYN) {
        for _ in 0..draw.below(4) {
            let left = SeqNumber(draw.next() as u32);
            segment.push_sack_block(left, left + draw.below(5000) as u32);
        }
        return;
    }
    for flag in [Flags::MSS, Flags::SCALE, Flags::SACK_PERMITTED] {
        segment.flags = segment.flags.with(present(flag, draw));
    }
    segment.options[0] = draw.next() as u32 & 0x000e_ffff;
    if draw.once_in(2) {
        let cookie = draw.next().to_le_bytes();
        let len = [0, 4, 6, 8][draw.below(4) as usize];
        let cookie = Cookie::new(&cookie[..len], draw.once_in(2)).expect("a legal length");
        segment.set_cookie(&cookie);
    }
}

/// Makes the length field and the checksums right, as far as the headers can be found.
fn mend(bytes: &mut [u8]) {
    let len = bytes.len();
    let word = |value: u16| value.to_be_bytes();
    let (header, protocol, mut sum) = match bytes.first().map(|first| first >> 4) {
        Some(4) if len >= 20 => {
            let header = usize::from(bytes[0] & 15) * 4;
            if header < 20 || header > len {
                return;
            }
            bytes[2..4].copy_from_slice(&word(len as u16));
            bytes[10..12].fill(0);
            let mut sum = Sum::default();
            sum.add(&bytes[..header]);
            bytes[10..12].copy_from_slice(&word(sum.finish()));
            let mut pseudo = Sum::default();
            pseudo.add(&bytes[12..20]);
            (header, bytes[9], pseudo)
        }
        Some(6) if len >= 40 => {
            bytes[4..6].copy_from_slice(&word(len as u16 - 40));
            let mut pseudo = Sum::default();
            pseudo.add(&bytes[8..40]);
            (40, bytes[6], pseudo)
        }
        _ => return,
    };
    let at = match protocol {
        6 => 16,
        17 => 6,
        1 | 58 => 2,
        _ => return,
    };
    let transport = &mut bytes[header..];
    if transport.len() < at + 2 {
        return;
    }
    if protocol == 17 {
        transport[4..6].copy_from_slice(&word((len - header) as u16));
    }
    transport[at..at + 2].fill(0);
    if protocol == 1 {
        sum = Sum::default();
    } else {
        sum.add(&[0, protocol]);
        sum.add(&word(transport.len() as u16));
    }
    sum.add(transport);
    let sum = sum.finish();
    transport[at..at + 2].copy_from_slice(&word(sum));
}
