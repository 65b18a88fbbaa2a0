//! Round trips, a second opinion, and bytes from anywhere.

use super::{Error, encode, parse};
use crate::packet::{AccEcnOption, Flags, Kind, Segment};
use crate::seq::SeqNumber;
use crate::tcp::Cookie;
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;
use etherparse::{NetHeaders, PacketHeaders, TcpOptionElement, TransportHeader};
use proptest::prelude::*;

fn v4() -> (SocketAddr, SocketAddr) {
    (
        SocketAddr::from(([10, 0, 0, 1], 1_024)),
        SocketAddr::from(([192, 168, 7, 9], 443)),
    )
}

fn v6() -> (SocketAddr, SocketAddr) {
    let address = |last| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    (
        SocketAddr::from((address(1), 40_000)),
        SocketAddr::from((address(2), 80)),
    )
}

fn packet(segment: &Segment, (source, destination): (SocketAddr, SocketAddr), payload: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0xaa; 70_000];
    let len = encode(&mut buffer, segment, source, destination, payload).expect("fits");
    buffer.truncate(len);
    buffer
}

prop_compose! {
    /// Any TCP segment that a connection of this crate could make, with `overhead` still to be set.
    fn any_segment()(
        (seq, ack, tsval, tsecr) in any::<(u32, u32, u32, u32)>(),
        (window, urgent, ip_id) in any::<(u16, u16, u16)>(),
        (tos, ttl, mss, scale) in any::<(u8, u8, u16, u8)>(),
        control in 0_u16..0x200,
        (timestamps, has_mss, has_scale, sack_permitted, cookie, df) in any::<(bool, bool, bool, bool, bool, bool)>(),
        (cookie_bytes, cookie_len, experimental) in (any::<[u8; 16]>(), 1_usize..=8, any::<bool>()),
        blocks in prop::collection::vec(any::<(u32, u32)>(), 0..=4),
        payload in 0_u32..3_000,
        accecn in prop::option::of((any::<bool>(), prop::collection::vec(0_u32..1 << 24, 0..=3))),
    ) -> Segment {
        let mut segment = Segment {
            seq: SeqNumber(seq), ack: SeqNumber(ack), window, urgent, ip_id, tos, ttl, payload,
            flags: Flags(control),
            ..Segment::default()
        };
        let mut present = |on: bool, flag: Flags| if on { segment.flags = segment.flags.with(flag); };
        let syn = control & Flags::SYN.0 != 0;
        present(timestamps, Flags::TIMESTAMPS);
        present(df, Flags::DF);
        present(syn && has_mss, Flags::MSS);
        present(syn && has_scale, Flags::SCALE);
        present(syn && sack_permitted, Flags::SACK_PERMITTED);
        present(syn && cookie, Flags::COOKIE);
        if timestamps {
            (segment.tsval, segment.tsecr) = (tsval, tsecr);
        }
        if syn {
            segment.options[0] = if has_mss { u32::from(mss) } else { 0 } | if has_scale { u32::from(scale) << 16 } else { 0 };
            if cookie {
                let len = if cookie_len == 1 { 0 } else { 2 * cookie_len };
                segment.set_cookie(&Cookie::new(&cookie_bytes[..len], experimental).expect("a legal length"));
            }
        } else {
            for (left, right) in blocks {
                segment.push_sack_block(SeqNumber(left), SeqNumber(right));
            }
        }
        // Beside what takes no more than the header has; never on a SYN, where it is ignored.
        let room = 40 - if timestamps { 12 } else { 0 } - if syn { 12 } else { 0 } - if segment.flags.contains(Flags::COOKIE) { 20 } else { 0 };
        let room = room - match segment.sack_blocks() { 0 => 0, blocks => 4 + 8 * blocks as i32 };
        if let Some((ect1_first, counters)) = accecn && (!syn || segment.flags.contains(Flags::ACK)) && room >= 12 {
            if segment.sack_blocks() == 3 && !timestamps {
                segment.urgent = 0; // it may take the third counter
            }
            segment.set_accecn(&AccEcnOption::new(ect1_first, &counters));
        }
        segment
    }
}

proptest! {
    #[test]
    fn a_mark_in_bytes_is_the_mark_in_the_segment(
        segment in any_segment(), tos: u8, ip_id: u16, again in any::<(u8, u16)>(),
    ) {
        let mut bytes = packet(&segment, v4(), &[]);
        for (tos, ip_id) in [(tos, ip_id), again, (segment.tos, segment.ip_id)] {
            super::remark(&mut bytes, tos, ip_id).expect("IPv4");
            // The incremental checksum is the full one.
            prop_assert_eq!(&bytes, &packet(&Segment { tos, ip_id, ..segment }, v4(), &[]));
        }
    }

    /// RFC 9293: MUST-2
    #[test]
    fn what_is_written_is_read(segment in any_segment(), data in prop::collection::vec(any::<u8>(), 0..3_000), six: bool) {
        let mut segment = segment;
        segment.payload = data.len() as u32;
        let ends = if six { v6() } else { v4() };
        let bytes = packet(&segment, ends, &data);
        let parsed = parse(&bytes).expect("our own packet");
        prop_assert_eq!((parsed.source, parsed.destination), ends);
        prop_assert_eq!(&bytes[parsed.payload.clone()], &data[..]);
        prop_assert_eq!(parsed.segment.len() as usize, bytes.len());
        let mut expected = segment;
        expected.overhead = (bytes.len() - data.len()) as u8;
        if six {
            expected.flags = expected.flags.without(Flags::DF);
        }
        let urgent = segment.urgent_in_use();
        if six && !urgent && segment.urgent >> 14 == 1 {
            expected.urgent &= 0xf0ff; // the option of layout C, without its reserved bits
        } else {
            expected.urgent = if urgent { segment.urgent } else { 0 };
            expected.ip_id = if six { 0 } else { segment.ip_id };
        }
        prop_assert_eq!(parsed.segment, expected);
        // With the overhead known, the bytes are the same again.
        prop_assert_eq!(packet(&parsed.segment, ends, &data), bytes);
    }

    /// RFC 9293: MUST-2
    #[test]
    fn a_second_parser_agrees(segment in any_segment(), six: bool) {
        let (source, destination) = if six { v6() } else { v4() };
        let bytes = packet(&segment, (source, destination), &[]);
        let headers = PacketHeaders::from_ip_slice(&bytes).expect("etherparse reads it");
        let payload = headers.payload.slice();
        prop_assert!(payload.len() == segment.payload as usize && payload.iter().all(|&byte| byte == 0));
        let Some(TransportHeader::Tcp(tcp)) = headers.transport else { panic!("not TCP") };
        match headers.net {
            Some(NetHeaders::Ipv4(ip, _)) => {
                prop_assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                prop_assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, payload).expect("short enough"));
                prop_assert_eq!((ip.identification, ip.time_to_live), (segment.ip_id, segment.ttl));
                prop_assert_eq!(ip.dscp.value() << 2 | ip.ecn.value(), segment.tos);
                prop_assert_eq!(ip.dont_fragment, segment.flags.contains(Flags::DF));
            }
            Some(NetHeaders::Ipv6(ip, _)) => {
                prop_assert_eq!(tcp.checksum, tcp.calc_checksum_ipv6(&ip, payload).expect("short enough"));
                prop_assert_eq!((ip.traffic_class, ip.hop_limit), (segment.tos, segment.ttl));
            }
            _ => panic!("not IP"),
        }
        prop_assert_eq!((tcp.source_port, tcp.destination_port), (source.port(), destination.port()));
        prop_assert_eq!((tcp.sequence_number, tcp.acknowledgment_number), (segment.seq.0, segment.ack.0));
        prop_assert_eq!((tcp.window_size, tcp.urgent_pointer),
            (segment.window, if segment.flags.contains(Flags::URG) { segment.urgent } else { 0 }));
        let bits = [tcp.fin, tcp.syn, tcp.rst, tcp.psh, tcp.ack, tcp.urg, tcp.ece, tcp.cwr, tcp.ns];
        for (index, bit) in bits.into_iter().enumerate() {
            prop_assert_eq!(bit, segment.flags.0 >> index & 1 == 1, "bit {}", index);
        }
        let mut unknown = false;
        let mut blocks = 0;
        for option in tcp.options_iterator() {
            match option {
                // The two options etherparse does not know end its iteration.
                Err(_) => {
                    prop_assert!(segment.flags.contains(Flags::COOKIE) || segment.accecn().is_some());
                    unknown = true;
                }
                Ok(TcpOptionElement::MaximumSegmentSize(mss)) => prop_assert_eq!(Some(mss), segment.mss()),
                Ok(TcpOptionElement::WindowScale(scale)) => prop_assert_eq!(Some(scale), segment.window_scale()),
                Ok(TcpOptionElement::SelectiveAcknowledgementPermitted) => {
                    prop_assert!(segment.flags.contains(Flags::SACK_PERMITTED));
                }
                Ok(TcpOptionElement::Timestamp(tsval, tsecr)) => {
                    prop_assert_eq!((tsval, tsecr), (segment.tsval, segment.tsecr));
                }
                Ok(TcpOptionElement::SelectiveAcknowledgement(first, more)) => {
                    for block in core::iter::once(Some(first)).chain(more).flatten() {
                        let (left, right) = segment.sack_block(blocks);
                        prop_assert_eq!(block, (left.0, right.0));
                        blocks += 1;
                    }
                }
                Ok(TcpOptionElement::Noop) => {}
            }
        }
        let written = if segment.flags.contains(Flags::SYN) { 0 } else { segment.sack_blocks() };
        prop_assert!(unknown || blocks == written);
    }

    /// RFC 9293: MUST-7
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn a_router_reads_what_a_receiver_reads_and_leaves_the_transports_checksum_to_it(
        segment in any_segment(), six: bool, at: prop::sample::Index,
    ) {
        let mut bytes = packet(&segment, if six { v6() } else { v4() }, &[]);
        let parsed = parse(&bytes).expect("our own packet");
        prop_assert_eq!(super::parse_headers(&bytes), Ok(parsed.clone()));
        if !parsed.payload.is_empty() {
            bytes[parsed.payload.start + at.index(parsed.payload.len())] ^= 0x10;
            prop_assert_eq!(parse(&bytes), Err(Error::Checksum));
            prop_assert_eq!(super::parse_headers(&bytes), Ok(parsed));
        }
    }

    #[test]
    fn a_decremented_packet_is_one_that_was_sent_with_less(segment in any_segment(), six: bool) {
        let ends = || if six { v6() } else { v4() };
        let mut bytes = packet(&segment, ends(), &[]);
        let less = segment.ttl.saturating_sub(1);
        prop_assert_eq!(super::decrement_ttl(&mut bytes), Ok(less));
        // The incremental checksum is the full one.
        prop_assert_eq!(&bytes, &packet(&Segment { ttl: less, ..segment }, ends(), &[]));
    }

    /// Damage to a good packet: more of the parser is reached than with noise, and no single bit passes.
    /// RFC 9293: MUST-3
    #[test]
    fn a_flipped_bit_is_noticed(segment in any_segment(), six: bool, at: prop::sample::Index, bit in 0_u32..8) {
        let mut bytes = packet(&segment, if six { v6() } else { v4() }, &[]);
        let index = at.index(bytes.len());
        let before = parse(&bytes).expect("our own packet");
        bytes[index] ^= 1_u8 << bit;
        let after = parse(&bytes);
        // IPv6 protects neither traffic class, flow label nor hop limit, nor the option of a super-packet.
        let option = six && before.segment.overhead >= 68 && (40..48).contains(&index) && bytes[6] == 0;
        if !six || index >= 8 && !option {
            prop_assert!(after.is_err());
        } else if let Ok(after) = after {
            prop_assert_eq!((after.segment.seq, after.payload), (before.segment.seq, before.payload));
        }
    }

    #[test]
    fn any_header_with_right_checksums_is_read_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 40..120), offset in 5_u8..16,
    ) {
        let len = bytes.len() as u16;
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        bytes[6..8].fill(0);
        bytes[9] = 6;
        bytes[10..12].fill(0);
        bytes[32] = offset << 4;
        bytes[36..38].fill(0);
        let mut sum = super::checksum::Sum::default();
        sum.add(&bytes[..20]);
        let header = sum.finish();
        let address = |at: usize| core::net::IpAddr::from([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut sum = super::checksum::Sum::pseudo_header(address(12), address(16), 6, u32::from(len) - 20);
        sum.add(&bytes[20..]);
        let transport = sum.finish();
        bytes[10..12].copy_from_slice(&header.to_be_bytes());
        bytes[36..38].copy_from_slice(&transport.to_be_bytes());
        match parse(&bytes) {
            Ok(parsed) => prop_assert_eq!(parsed.segment.len(), u32::from(len)),
            Err(error) => prop_assert!(matches!(error, Error::Option | Error::Truncated), "{}", error),
        }
    }
}

/// A SYN as Linux sends it, byte for byte but for the checksums computed here by hand.
#[test]
fn a_syn_looks_as_linux_writes_it() {
    let mut segment = Segment {
        seq: SeqNumber(0x0102_0304),
        tsval: 0x1111_1111,
        window: 64_240,
        ttl: 64,
        flags: Flags::SYN
            .with(Flags::MSS)
            .with(Flags::SCALE)
            .with(Flags::SACK_PERMITTED)
            .with(Flags::TIMESTAMPS)
            .with(Flags::DF),
        ..Segment::default()
    };
    segment.options[0] = 1460 | 7 << 16;
    let bytes = packet(&segment, v4(), &[]);
    assert_eq!(bytes.len(), 60);
    assert_eq!(bytes[..10], [0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6]);
    assert_eq!(
        bytes[40..],
        [
            2, 4, 5, 0xb4, 4, 2, 8, 10, 0x11, 0x11, 0x11, 0x11, 0, 0, 0, 0, 1, 3, 3, 7
        ]
    );
}

#[test]
fn overhead_beyond_the_options_is_padding() {
    let segment = Segment {
        payload: 1_448,
        overhead: 52,
        flags: Flags::ACK,
        ..Segment::default()
    };
    let bytes = packet(&segment, v4(), &[]);
    assert_eq!(bytes.len(), 1_500);
    assert_eq!(bytes[40..52], [1; 12]);
    assert_eq!(parse(&bytes).expect("our own packet").segment.len(), 1_500);
}

#[test]
fn a_corrupt_segment_gets_a_wrong_checksum() {
    let flags = Flags::ACK.with(Flags::CORRUPT);
    let bytes = packet(
        &Segment {
            flags,
            ..Segment::default()
        },
        v4(),
        &[],
    );
    assert_eq!(parse(&bytes), Err(Error::Checksum));
}

#[test]
fn datagrams_carry_their_number() {
    let mut segment = Segment {
        seq: SeqNumber(77),
        payload: 100,
        ttl: 9,
        ..Segment::default()
    };
    segment.set_kind(Kind::Datagram);
    for ends in [v4(), v6()] {
        let bytes = packet(&segment, ends, &[]);
        let parsed = parse(&bytes).expect("our own packet");
        assert_eq!(
            (parsed.segment.kind(), parsed.segment.seq, parsed.segment.payload),
            (Kind::Datagram, SeqNumber(77), 100)
        );
        let headers = PacketHeaders::from_ip_slice(&bytes).expect("etherparse reads it");
        assert!(matches!(headers.transport, Some(TransportHeader::Udp(udp)) if udp.length == 108));
    }
}

/// TFRC packets are UDP for everyone else: the headers of [`crate::tfrc`], then the payload.
#[test]
fn tfrc_packets_carry_their_fields() {
    let mut data = Segment {
        seq: SeqNumber(7),
        tsval: 0x0102_0304,
        payload: 100,
        flags: Flags::DF,
        overhead: crate::tfrc::DATA_HEADERS,
        ttl: 64,
        ..Segment::default()
    };
    data.options[0] = 54_321;
    data.set_kind(Kind::TfrcData);
    let bytes = packet(&data, v4(), &[]);
    assert_eq!(bytes.len() as u32, data.len());
    assert_eq!(bytes[28..32], [0, 0, 0, 7]);
    assert_eq!(bytes[32..36], [1, 2, 3, 4]);
    assert_eq!(bytes[36..40], 54_321_u32.to_be_bytes());
    assert!(bytes[40..].iter().all(|byte| *byte == 0));
    let feedback = crate::tfrc::Feedback {
        timestamp: 0x0102_0304,
        delay_us: 5,
        receive_rate: 6.0,
        loss_event_rate: 0.5,
    };
    let bytes = packet(&feedback.write(), v4(), &[]);
    assert_eq!(bytes.len(), 44);
    assert_eq!(bytes[28..], [1, 2, 3, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0x80, 0, 0, 0]);
    let parsed = parse(&bytes).expect("a datagram with a checksum");
    assert_eq!(
        (parsed.segment.kind(), parsed.segment.payload),
        (Kind::Datagram, 16)
    );
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut small = [0; 39];
    let segment = Segment::default();
    let (source, destination) = v4();
    assert_eq!(
        encode(&mut small, &segment, source, destination, &[]),
        Err(Error::Buffer)
    );
    assert_eq!(
        encode(&mut small, &segment, source, v6().1, &[]),
        Err(Error::Families)
    );
    assert_eq!(
        encode(&mut small, &segment, source, destination, &[1]),
        Err(Error::Payload)
    );
    let long = Segment {
        payload: 65_500,
        ..segment
    };
    assert_eq!(
        encode(&mut [0; 70_000], &long, source, destination, &[]),
        Err(Error::TooLong)
    );
    let mut icmp = segment;
    icmp.set_kind(Kind::Icmp);
    assert_eq!(
        encode(&mut [0; 100], &icmp, source, destination, &[]),
        Err(Error::Protocol)
    );
}

#[test]
fn fragments_and_foreign_protocols_are_named() {
    let mut bytes = packet(&Segment::default(), v4(), &[]);
    let fix = |bytes: &mut [u8]| {
        bytes[10..12].fill(0);
        let mut sum = super::checksum::Sum::default();
        sum.add(&bytes[..20]);
        bytes[10..12].copy_from_slice(&sum.finish().to_be_bytes());
    };
    bytes[6] = 0x20;
    fix(&mut bytes);
    assert_eq!(parse(&bytes), Err(Error::Fragment));
    bytes[6] = 0;
    bytes[9] = 1;
    fix(&mut bytes);
    assert_eq!(parse(&bytes), Err(Error::Protocol));
    assert_eq!(parse(&[]), Err(Error::Truncated));
    assert_eq!(parse(&[0x75; 60]), Err(Error::Version));
    assert_eq!(parse(&bytes[..30]), Err(Error::Truncated));
}

#[test]
fn ipv6_extension_headers_are_skipped() {
    let plain = packet(
        &Segment {
            payload: 10,
            ..Segment::default()
        },
        v6(),
        &[],
    );
    let mut bytes = plain[..40].to_vec();
    bytes[5] += 8;
    bytes[6] = 60;
    bytes.extend([6, 0, 1, 4, 0, 0, 0, 0]);
    bytes.extend(&plain[40..]);
    let parsed = parse(&bytes).expect("a destination options header is legal");
    assert_eq!((parsed.segment.payload, parsed.segment.overhead), (10, 68));
}

#[test]
fn the_option_of_a_super_packet_stands_in_eight_bytes() {
    use crate::superpacket::{Layout, Mark};
    let mut segment = Segment {
        payload: 10,
        overhead: 60,
        tos: 2,
        flags: Flags::ACK,
        ..Segment::default()
    };
    let plain = packet(&segment, v6(), &[]);
    let mark = Mark::first(200, 0xabcd).ending();
    Layout::C.mark(&mut segment, mark).expect("room for the option");
    let bytes = packet(&segment, v6(), &[]);
    assert_eq!(bytes.len(), plain.len() + 8);
    // Payload length 38, next header hop-by-hop; then TCP, 8 bytes, option 0x1e of 4: version 1, first, last, 200, identifier.
    assert_eq!(bytes[4..7], [0, 38, 0]);
    assert_eq!(bytes[40..48], [6, 0, 0x1e, 4, 0x70, 200, 0xab, 0xcd]);
    assert_eq!(bytes[48..], plain[40..], "TCP's checksum does not cover it");
    let parsed = parse(&bytes).expect("our own packet").segment;
    assert_eq!(Layout::C.decode(&parsed), mark);
    assert_eq!(parsed.len() as usize, bytes.len());
    // A second parser finds the transport header behind the option.
    let headers = PacketHeaders::from_ip_slice(&bytes).expect("etherparse reads it");
    assert!(matches!(headers.transport, Some(TransportHeader::Tcp(_))));
    // Padding before it, reserved bits, other versions and other options.
    let read = |option: &[u8; 6]| {
        let mut bytes = bytes.clone();
        bytes[42..48].copy_from_slice(option);
        Layout::C.decode(&parse(&bytes).expect("any option is skipped").segment)
    };
    assert_eq!(read(&[0x1e, 4, 0x7f, 200, 0xab, 0xcd]), mark);
    assert_eq!(read(&[0x1e, 4, 0xb0, 200, 0xab, 0xcd]), Mark::REGULAR);
    assert_eq!(read(&[0x1f, 4, 0x70, 200, 0xab, 0xcd]), Mark::REGULAR);
    assert_eq!(read(&[0x1e, 200, 0x70, 200, 0xab, 0xcd]), Mark::REGULAR);
    assert_eq!(read(&[0, 0, 0, 0, 0, 0x1e]), Mark::REGULAR);
    let mut padded = bytes.clone();
    padded[5] += 8;
    // Two units; PadN of 2, Pad1 four times.
    padded.splice(41..42, [1, 1, 2, 9, 9, 0, 0, 0, 0]);
    assert_eq!(padded.len(), bytes.len() + 8);
    assert_eq!(
        Layout::C.decode(&parse(&padded).expect("PadN before it").segment),
        mark
    );
}

#[test]
fn urgent_data_and_the_option_exclude_each_other() {
    let urgent = Segment {
        urgent: 0x4005,
        ip_id: 9,
        flags: Flags::ACK.with(Flags::URG),
        ..Segment::default()
    };
    let bytes = packet(&urgent, v6(), &[]);
    assert_eq!(bytes.len(), 60, "no option");
    assert_eq!(parse(&bytes).expect("our own packet").segment.urgent, 0x4005);
    // Without URG the pointer on the wire is zero, whatever the segment's field says.
    let quiet = Segment {
        urgent: 5,
        flags: Flags::ACK,
        ..urgent
    };
    let bytes = packet(&quiet, v4(), &[]);
    assert_eq!(bytes[38..40], [0, 0]);
    assert_eq!(parse(&bytes).expect("our own packet").segment.urgent, 0);
    assert_eq!(
        super::remark(&mut packet(&quiet, v6(), &[]), 0, 0),
        Err(Error::Version)
    );
    assert_eq!(super::remark(&mut [0x45; 19], 0, 0), Err(Error::Truncated));
}

#[test]
fn what_is_no_packet_is_not_decremented() {
    for (mut bytes, error) in [
        (vec![0x45; 19], Error::Truncated),
        (vec![0x60; 39], Error::Truncated),
        (vec![0x15; 60], Error::Version),
        (vec![], Error::Truncated),
    ] {
        let before = bytes.clone();
        assert_eq!(super::decrement_ttl(&mut bytes), Err(error));
        assert_eq!(bytes, before);
    }
}

#[test]
fn an_inserted_option_makes_the_packet_that_would_have_been_written() {
    use crate::superpacket::{Layout, Mark};
    let mut segment = Segment {
        payload: 5,
        tos: 0x2e << 2 | 2,
        ttl: 64,
        flags: Flags::ACK,
        ..Segment::default()
    };
    let mut bytes = packet(&segment, v6(), b"hello");
    // A flow label, which the encoder does not write, stays; so does what follows the packet (Ethernet padding).
    bytes[2..4].copy_from_slice(&[0xbe, 0xef]);
    bytes.extend_from_slice(&[7, 7]);
    let len = bytes.len();
    let before = bytes.clone();
    Layout::C
        .mark(&mut segment, Mark::follower(10, 0xabcd))
        .expect("a mark of layout C");
    assert_eq!(
        super::insert_option(&mut bytes, len, &segment),
        Err(Error::Buffer)
    );
    assert_eq!(bytes, before, "nothing has changed");
    bytes.resize(len + 8, 0);
    assert_eq!(super::insert_option(&mut bytes, len, &segment), Ok(len + 8));
    let mut expected = packet(&segment, v6(), b"hello");
    expected[2..4].copy_from_slice(&[0xbe, 0xef]);
    expected.extend_from_slice(&[7, 7]);
    assert_eq!(bytes, expected);
    // Twice, into another version, without an option, into less than a header.
    bytes.resize(len + 16, 0);
    assert_eq!(
        super::insert_option(&mut bytes, len + 8, &segment),
        Err(Error::Header)
    );
    let mut four = packet(&Segment::default(), v4(), &[]);
    four.resize(80, 0);
    assert_eq!(super::insert_option(&mut four, 40, &segment), Err(Error::Version));
    assert_eq!(
        super::insert_option(&mut four, 40, &Segment::default()),
        Err(Error::Option)
    );
    assert_eq!(
        super::insert_option(&mut [0x60; 50], 39, &segment),
        Err(Error::Truncated)
    );
    let mut full = vec![0; 70_000];
    (full[0], full[6]) = (0x60, 6);
    full[4..6].copy_from_slice(&0xfff8_u16.to_be_bytes());
    assert_eq!(
        super::insert_option(&mut full, 0xfff8 + 40, &segment),
        Err(Error::TooLong)
    );
}

/// A TCP segment between the ends of [`v4`] with these control bits and options, whose length is a multiple of four.
fn with_options(control: u16, options: &[u8]) -> Segment {
    let segment = Segment {
        flags: Flags(control),
        overhead: 40 + options.len() as u8,
        ..Segment::default()
    };
    let mut bytes = packet(&segment, v4(), &[]);
    bytes[40..].copy_from_slice(options);
    super::parse_headers(&bytes).expect("sound headers").segment
}

/// RFC 9768: AE-54, AE-56, AE-60
#[test]
fn accurate_ecn_options_of_every_length_are_read() {
    let bytes = [174, 0, 0, 0, 9, 0, 0, 8, 0, 0, 7, 6, 5, 4];
    for len in 2..=14 {
        let mut options = [1; 16];
        options[..len].copy_from_slice(&bytes[..len]);
        options[1] = len as u8;
        let fields = ((len - 2) / 3).min(3);
        let expected = AccEcnOption::new(true, &[9, 8, 7][..fields]);
        assert_eq!(with_options(0x10, &options).accecn(), Some(expected), "{len}");
        assert_eq!(
            with_options(0x12, &options).accecn(),
            Some(expected),
            "on a SYN-ACK"
        );
        assert_eq!(with_options(0x02, &options).accecn(), None, "on a SYN");
        options[0] = 172;
        let expected = AccEcnOption::new(false, &[9, 8, 7][..fields]);
        assert_eq!(with_options(0x10, &options).accecn(), Some(expected), "{len}");
    }
}

/// As Linux writes them: padded, before SACK-permitted or blocks.
#[test]
fn accurate_ecn_options_stand_where_linux_puts_them() {
    let mut answer = Segment {
        flags: Flags(0x12)
            .with(Flags::MSS)
            .with(Flags::SACK_PERMITTED)
            .with(Flags::SCALE),
        options: [1460 | 8 << 16, 0, 0, 0, 0, 0],
        overhead: 64,
        ..Segment::default()
    };
    answer.set_accecn(&AccEcnOption::new(true, &[1, 0, 1]));
    let bytes = packet(&answer, v4(), &[]);
    let option = [174, 11, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1];
    assert_eq!(&bytes[40..44], [2, 4, 5, 180]);
    assert_eq!(&bytes[44..56], option);
    assert_eq!(&bytes[56..], [1, 1, 4, 2, 1, 3, 3, 8]);
    let mut ack = Segment {
        flags: Flags(0x10),
        overhead: 64,
        ..Segment::default()
    };
    ack.push_sack_block(SeqNumber(1), SeqNumber(2));
    ack.set_accecn(&AccEcnOption::new(true, &[1, 0, 1]));
    let bytes = packet(&ack, v4(), &[]);
    assert_eq!(&bytes[40..52], option);
    assert_eq!(&bytes[52..], [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
}
