//! What is refused by which reason, and what is written.

use super::{Discard, Fate, fate, finish_checksum, forward, may_be_answered, ttl};
use crate::frames::{HEADER, read};
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::wire;
use fleetfoot_core::wire::checksum::Sum;
use std::net::{IpAddr, SocketAddr};

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn frame(source: &str, destination: &str, ttl: u8) -> Vec<u8> {
    let (source, destination): (SocketAddr, SocketAddr) = (
        source.parse().expect("an address"),
        destination.parse().expect("an address"),
    );
    let mut segment = Segment {
        payload: 40,
        ttl,
        flags: Flags::DF,
        ..Segment::default()
    };
    segment.set_kind(Kind::Datagram);
    let mut bytes = vec![0; HEADER + 200];
    bytes[..6].copy_from_slice(&OWN);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    bytes[12..HEADER].copy_from_slice(if source.is_ipv4() { &[8, 0] } else { &[0x86, 0xdd] });
    let length = wire::encode(&mut bytes[HEADER..], &segment, source, destination, b"abc").expect("it fits");
    bytes.truncate(HEADER + length);
    bytes
}

fn what(frame: &[u8]) -> Fate {
    let ours: [IpAddr; 2] = ["10.0.0.1".parse().expect("one"), "fd00::1".parse().expect("one")];
    fate(frame, &read(frame, None), OWN, 1500, |address| {
        ours.contains(address)
    })
}

#[test]
fn packets_for_others_are_passed_on_and_ours_are_the_kernels() {
    for (source, destination) in [
        ("10.0.0.5:1", "10.0.2.7:2"),
        ("192.0.2.1:1", "203.0.113.4:2"),
        ("[fd00::5]:1", "[fd00:2::7]:2"),
    ] {
        let destination_ip = destination.parse::<SocketAddr>().expect("an address").ip();
        assert_eq!(
            what(&frame(source, destination, 64)),
            Fate::Forward(destination_ip)
        );
    }
    for (source, destination) in [
        ("10.0.0.5:1", "10.0.0.1:2"),
        ("[fd00::5]:1", "[fd00::1]:2"),
        ("10.0.0.5:1", "224.0.0.5:2"),
        ("10.0.0.5:1", "255.255.255.255:2"),
        ("[fe80::5]:1", "[ff02::1]:2"),
    ] {
        assert_eq!(
            what(&frame(source, destination, 64)),
            Fate::Kernel,
            "{destination}"
        );
    }
    let mut others = frame("10.0.0.5:1", "10.0.2.7:2", 64);
    others[5] = 7;
    assert_eq!(what(&others), Fate::Kernel, "another host's");
    let mut arp = frame("10.0.0.5:1", "10.0.2.7:2", 64);
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(what(&arp), Fate::Kernel);
}

#[test]
fn martians_are_refused_by_reason() {
    for (source, destination, reason) in [
        ("127.0.0.1:1", "10.0.2.7:2", Discard::MartianSource),
        ("0.0.0.0:1", "10.0.2.7:2", Discard::MartianSource),
        ("0.1.2.3:1", "10.0.2.7:2", Discard::MartianSource),
        ("224.1.1.1:1", "10.0.2.7:2", Discard::MartianSource),
        ("255.255.255.255:1", "10.0.2.7:2", Discard::MartianSource),
        ("241.0.0.1:1", "10.0.2.7:2", Discard::MartianSource),
        ("10.0.2.7:2", "10.0.2.7:2", Discard::MartianSource),
        ("[fd00:2::7]:2", "[fd00:2::7]:2", Discard::MartianSource),
        ("10.0.0.1:1", "10.0.2.7:2", Discard::OwnSource),
        ("10.0.0.5:1", "127.0.0.1:2", Discard::MartianDestination),
        ("10.0.0.5:1", "0.0.0.0:2", Discard::MartianDestination),
        ("10.0.0.5:1", "240.0.0.1:2", Discard::MartianDestination),
        ("169.254.1.1:1", "10.0.2.7:2", Discard::LinkLocal),
        ("10.0.0.5:1", "169.254.1.1:2", Discard::LinkLocal),
        ("[::1]:1", "[fd00:2::7]:2", Discard::MartianSource),
        ("[::]:1", "[fd00:2::7]:2", Discard::MartianSource),
        ("[ff02::1]:1", "[fd00:2::7]:2", Discard::MartianSource),
        ("[::ffff:10.0.0.1]:1", "[fd00:2::7]:2", Discard::MartianSource),
        ("[fd00::1]:1", "[fd00:2::7]:2", Discard::OwnSource),
        ("[fd00::5]:1", "[::1]:2", Discard::MartianDestination),
        ("[fe80::5]:1", "[fd00:2::7]:2", Discard::LinkLocal),
        ("[fd00::5]:1", "[fe80::7]:2", Discard::LinkLocal),
    ] {
        let found = what(&frame(source, destination, 64));
        assert_eq!(found, Fate::Discard(reason), "{source} to {destination}");
    }
    for ttl in [0, 1] {
        for (source, destination) in [("10.0.0.5:1", "10.0.2.7:2"), ("[fd00::5]:1", "[fd00:2::7]:2")] {
            assert_eq!(
                what(&frame(source, destination, ttl)),
                Fate::Discard(Discard::TtlExpired)
            );
        }
    }
}

/// The packet with other bytes in its IPv4 header, whose checksum is made right again.
fn changed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = frame("10.0.0.5:1", "10.0.2.7:2", 64);
    change(&mut bytes);
    sum(&mut bytes);
    bytes
}

fn sum(bytes: &mut [u8]) {
    let header = usize::from(bytes[HEADER] & 15) * 4;
    bytes[HEADER + 10..HEADER + 12].fill(0);
    let sum = Sum::default().over(&bytes[HEADER..HEADER + header.min(bytes.len() - HEADER)]);
    bytes[HEADER + 10..HEADER + 12].copy_from_slice(&sum.to_be_bytes());
}

fn with_options(options: &[u8]) -> Vec<u8> {
    changed(|bytes| {
        bytes.splice(HEADER + 20..HEADER + 20, options.iter().copied());
        bytes[HEADER] = 0x45 + options.len() as u8 / 4;
        let total = (bytes.len() - HEADER) as u16;
        bytes[HEADER + 2..HEADER + 4].copy_from_slice(&total.to_be_bytes());
    })
}

#[test]
fn headers_that_cannot_be_are_refused_by_reason() {
    let cases: [(Vec<u8>, Discard); 9] = [
        (vec![2, 0, 0, 0, 0, 1, 2], Discard::Runt),
        (changed(|bytes| bytes.truncate(HEADER + 30)), Discard::Truncated),
        (changed(|bytes| bytes[HEADER + 3] = 200), Discard::Truncated),
        (changed(|bytes| bytes[HEADER] = 0x44), Discard::Malformed),
        (changed(|bytes| bytes[HEADER + 3] = 12), Discard::Malformed),
        (with_options(&[131, 7, 4, 10, 0, 0, 9, 0]), Discard::SourceRouted),
        (with_options(&[1, 137, 7, 4, 10, 0, 0, 9]), Discard::SourceRouted),
        (with_options(&[7, 1, 0, 0]), Discard::Malformed),
        (with_options(&[7, 9, 0, 0]), Discard::Malformed),
    ];
    for (bytes, reason) in cases {
        assert_eq!(what(&bytes), Fate::Discard(reason), "{bytes:02x?}");
    }
    assert!(
        matches!(what(&with_options(&[148, 4, 0, 0])), Fate::Forward(_)),
        "router alert"
    );
    let mut wrong = frame("10.0.0.5:1", "10.0.2.7:2", 64);
    wrong[HEADER + 10] ^= 1;
    assert_eq!(what(&wrong), Fate::Discard(Discard::HeaderChecksum));
    let mut wrong = frame("10.0.0.5:1", "10.0.2.7:2", 64);
    wrong[HEADER + 26] ^= 1;
    assert!(
        matches!(what(&wrong), Fate::Forward(_)),
        "the transport is the receiver's"
    );
    let long = changed(|bytes| {
        bytes.resize(HEADER + 3000, 0);
        bytes[HEADER + 2..HEADER + 4].copy_from_slice(&3000_u16.to_be_bytes());
    });
    assert_eq!(what(&long), Fate::Discard(Discard::Aggregate));
    let mut version = frame("10.0.0.5:1", "10.0.2.7:2", 64);
    version[HEADER] = 0x65;
    assert_eq!(
        what(&version),
        Fate::Discard(Discard::Malformed),
        "not what its EtherType says"
    );
}

#[test]
fn routing_headers_of_type_zero_are_refused() {
    for (kind, wanted) in [(0, None), (4, Some("fd00:2::7"))] {
        let mut bytes = frame("[fd00::5]:1", "[fd00:2::7]:2", 64);
        let next = bytes[HEADER + 6];
        let extension = [next, 0, kind, 1, 0, 0, 0, 0];
        bytes.splice(HEADER + 40..HEADER + 40, extension);
        bytes[HEADER + 6] = 43;
        let length = (bytes.len() - HEADER - 40) as u16;
        bytes[HEADER + 4..HEADER + 6].copy_from_slice(&length.to_be_bytes());
        match wanted {
            None => assert_eq!(what(&bytes), Fate::Discard(Discard::SourceRouted)),
            Some(to) => assert_eq!(what(&bytes), Fate::Forward(to.parse().expect("an address"))),
        }
    }
}

#[test]
fn the_patched_checksum_is_that_of_a_header_summed_anew() {
    let mut rng = Rng::from_seed(7);
    for _ in 0..20_000 {
        let mut bytes = frame("10.0.0.5:1", "10.0.2.7:2", 64);
        for at in [1, 4, 5, 8, 12, 13, 14, 15, 16, 17, 18, 19] {
            bytes[HEADER + at] = rng.below(256) as u8;
        }
        bytes[HEADER + 8] = 2 + rng.below(254) as u8;
        sum(&mut bytes);
        let mut summed = bytes.clone();
        summed[HEADER + 8] -= 1;
        sum(&mut summed);
        forward(&mut bytes, HEADER, OWN, [2; 6]);
        // 0 and 0xffff are the same number in one's complement; no header sums to zero, so only 0xffff can be meant.
        assert_eq!(bytes[HEADER..], summed[HEADER..]);
    }
    let mut six = frame("[fd00::5]:1", "[fd00:2::7]:2", 9);
    forward(&mut six, HEADER, OWN, [3; 6]);
    assert_eq!(
        (ttl(&six[HEADER..]), &six[..6], &six[6..12]),
        (8, &[3; 6][..], &OWN[..])
    );
}

#[test]
fn a_checksum_that_was_left_to_a_device_is_made() {
    for (source, destination) in [("10.0.0.5:1", "10.0.2.7:2"), ("[fd00::5]:1", "[fd00:2::7]:2")] {
        let whole = frame(source, destination, 64);
        let seen = read(&whole, None);
        let (from, to) = seen.ends.addresses().expect("an IP packet");
        let begin = HEADER + if from.is_ipv4() { 20 } else { 40 };
        let mut partial = whole.clone();
        let length = (whole.len() - begin) as u32;
        let sum = !Sum::pseudo_header(from, to, 17, length).finish();
        partial[begin + 6..begin + 8].copy_from_slice(&sum.to_be_bytes());
        assert_ne!(partial, whole);
        assert!(finish_checksum(&mut partial[HEADER..]));
        assert_eq!(partial, whole);
    }
}

#[test]
fn errors_are_not_sent_about_errors_and_later_fragments() {
    let good = frame("10.0.0.5:1", "10.0.2.7:2", 64);
    assert!(may_be_answered(&good[HEADER..]));
    for (protocol, kind, fragment, wanted) in [
        (1, 8, 0, true),
        (1, 3, 0, false),
        (1, 11, 0, false),
        (17, 0, 5, false),
        (17, 0, 0x2000, true),
    ] {
        let mut bytes = good.clone();
        bytes[HEADER + 9] = protocol;
        bytes[HEADER + 20] = kind;
        bytes[HEADER + 6..HEADER + 8].copy_from_slice(&u16::to_be_bytes(fragment));
        assert_eq!(
            may_be_answered(&bytes[HEADER..]),
            wanted,
            "{protocol} {kind} {fragment}"
        );
    }
    let six = frame("[fd00::5]:1", "[fd00:2::7]:2", 64);
    assert!(may_be_answered(&six[HEADER..]));
    for (kind, wanted) in [(128, true), (1, false), (3, false)] {
        let mut bytes = six.clone();
        bytes[HEADER + 6] = 58;
        bytes[HEADER + 40] = kind;
        assert_eq!(may_be_answered(&bytes[HEADER..]), wanted);
    }
}
