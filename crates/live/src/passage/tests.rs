//! Frames through a passage in virtual time.

use super::{MarkRules, Network, Passage, Unmarked};
use crate::emulator::Way;
use crate::packet_socket::Sent;
use fleetfoot_core::packet::{Ecn, Flags, Kind, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::superpacket::group::Declare;
use fleetfoot_core::superpacket::marker::Marking;
use fleetfoot_core::superpacket::{Layout, Mark, Role};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::wire;
use std::convert::Infallible;
use std::net::SocketAddr;

const FOUR: [&str; 2] = ["10.0.0.1:40000", "192.0.2.7:80"];
const SIX: [&str; 2] = ["[fd00::1]:40000", "[fd00:1::2]:80"];

fn rules() -> MarkRules {
    MarkRules {
        marking: Marking {
            t_buffer: Duration::from_micros(60),
            hold: Duration::from_micros(60),
            max: 10,
            by_write: false,
        },
        four: Some(Layout::LOCAL),
        six: Some(Layout::C),
        udp: false,
        ports: Vec::new(),
        networks: Vec::new(),
        mtu: 1500,
        seed: 1,
        lies: Vec::new(),
    }
}

fn data(number: u32) -> Segment {
    let mut segment = Segment {
        seq: SeqNumber(number),
        payload: 100,
        flags: Flags::ACK.with(Flags::DF),
        ttl: 64,
        ..Segment::default()
    };
    segment.set_ecn(Ecn::Ect0);
    segment
}

fn frame([source, destination]: [&str; 2], segment: &Segment) -> Vec<u8> {
    let (source, destination): (SocketAddr, SocketAddr) = (
        source.parse().expect("an address"),
        destination.parse().expect("an address"),
    );
    let mut bytes = vec![0; 14 + 2000];
    let kind = if source.is_ipv4() { 0x0800_u16 } else { 0x86dd };
    bytes[12..14].copy_from_slice(&kind.to_be_bytes());
    let length = wire::encode(&mut bytes[14..], segment, source, destination, &[]).expect("it fits");
    bytes.truncate(14 + length);
    bytes
}

/// All at one moment, and what leaves in the end.
fn through(passage: &mut Passage, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let began = passage.known + Duration::from_micros(5);
    for frame in frames {
        passage.on_frame(began, frame);
    }
    let mut left = Vec::new();
    let at = began + Duration::from_millis(1);
    let Ok(()) = passage.poll_frames::<Infallible>(
        at,
        || at,
        |batch| {
            left.extend(batch.iter().map(|frame| frame.to_vec()));
            Ok(Sent::Taken(batch.len()))
        },
    );
    assert_eq!(left.len(), frames.len(), "every frame leaves");
    let (marked, measured) = (passage.marked(), passage.measured());
    assert_eq!(
        marked.packets + marked.unmarked_packets(),
        measured.arrived,
        "each is counted once"
    );
    assert_eq!(measured.delivered, measured.arrived);
    left
}

/// Counts of the reasons that were given.
fn reasons(passage: &Passage) -> Vec<(&'static str, u64)> {
    let all = Unmarked::ALL.iter();
    all.map(|&reason| (reason.name(), passage.marked().unmarked[reason as usize]))
        .filter(|&(_, count)| count > 0)
        .collect()
}

#[test]
fn a_burst_is_marked_in_both_versions_of_ip() {
    for (ends, layout) in [(FOUR, Layout::LOCAL), (SIX, Layout::C), (FOUR, Layout::A)] {
        let mut passage = Passage::marking(MarkRules {
            four: Some(layout),
            ..rules()
        });
        let mut came: Vec<Segment> = (0..4).map(data).collect();
        if layout == Layout::A {
            for segment in &mut came {
                segment.tos = 0;
            }
        }
        let frames: Vec<Vec<u8>> = came.iter().map(|segment| frame(ends, segment)).collect();
        let left = through(&mut passage, &frames);
        let mut marks = Vec::new();
        for ((left, came), before) in left.iter().zip(&came).zip(&frames) {
            let parsed = wire::parse(&left[14..]).expect("checksums are right");
            marks.push(layout.decode(&parsed.segment));
            assert_eq!(left[..14], before[..14], "the frame's own header");
            assert_eq!(parsed.segment.seq, came.seq);
            assert_eq!(left.len(), before.len() + usize::from(layout.overhead()));
            if layout != Layout::A {
                assert_eq!(parsed.segment.ecn(), Ecn::Ect0);
            }
        }
        let id = marks[0].id;
        assert_eq!(marks[0], Mark::first(4, id));
        assert!(
            marks[1..].iter().all(|&mark| mark == Mark::follower(4, id)),
            "{marks:?}"
        );
        assert_eq!((passage.marked().packets, passage.marked().groups[4]), (4, 1));
        assert_eq!(passage.marked().held.max(), 60_000);
    }
}

/// A frame of IPv6 with destination options before its transport.
fn with_options(segment: &Segment) -> Vec<u8> {
    let mut frame = frame(SIX, segment);
    frame[14 + 6] = 60;
    let length = u16::from_be_bytes([frame[18], frame[19]]) + 8;
    frame[18..20].copy_from_slice(&length.to_be_bytes());
    frame.splice(54..54, [6, 0, 1, 4, 0, 0, 0, 0]);
    frame
}

#[test]
fn a_packet_with_extension_headers_does_not_overtake_its_flow() {
    let mut passage = Passage::marking(rules());
    let frames = [
        frame(SIX, &data(0)),
        frame(SIX, &data(1)),
        with_options(&data(2)),
        frame(SIX, &data(3)),
    ];
    let left = through(&mut passage, &frames);
    let seqs: Vec<u32> = left
        .iter()
        .map(|frame| {
            wire::parse(&frame[14..])
                .expect("checksums are right")
                .segment
                .seq
                .0
        })
        .collect();
    assert_eq!(seqs, [0, 1, 2, 3]);
    assert_eq!(reasons(&passage), [("alone", 1), ("extension_headers", 1)]);
}

#[test]
fn why_packets_are_not_marked_is_counted() {
    let mut passage = Passage::marking(MarkRules {
        ports: vec![80..=81],
        networks: vec!["192.0.2.0/24", "fd00:1::/32"]
            .into_iter()
            .map(network)
            .collect(),
        ..rules()
    });
    let of = |change: fn(&mut Segment)| {
        let mut segment = data(0);
        change(&mut segment);
        segment
    };
    let arp = [[0xff; 12].as_slice(), &[0x08, 0x06], &[0; 28]].concat();
    let mut fragment = frame(FOUR, &data(0));
    fragment[20] = 0x20; // more fragments
    let mut sum = frame(FOUR, &data(0));
    sum[14 + 20 + 16] ^= 1;
    let mut fragment_sum = fragment.clone();
    repair(&mut fragment_sum);
    let mut cut = frame(FOUR, &data(0));
    cut.truncate(60);
    let options = with_options(&data(0));
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("no_data", frame(FOUR, &of(|segment| segment.payload = 0))),
        (
            "no_data",
            frame(FOUR, &of(|segment| segment.flags = Flags::SYN.with(Flags::DF))),
        ),
        ("alone", frame(FOUR, &data(0))),
        ("not_selected", frame([FOUR[0], "192.0.2.7:82"], &data(0))),
        ("not_selected", frame([FOUR[0], "192.0.3.7:80"], &data(0))),
        ("not_selected", frame([SIX[0], "[fd00:2::2]:80"], &data(0))),
        (
            "protocol",
            frame(FOUR, &of(|segment| segment.set_kind(Kind::Datagram))),
        ),
        (
            "already_marked",
            frame(FOUR, &of(|segment| segment.tos |= 3 << 2)),
        ),
        (
            "fragmentable",
            frame(FOUR, &of(|segment| segment.flags = Flags::ACK)),
        ),
        ("fragment", fragment_sum),
        (
            "traffic_class",
            frame(FOUR, &of(|segment| segment.tos |= 46 << 2)),
        ),
        (
            "urgent",
            frame(SIX, &of(|segment| segment.flags = Flags::ACK.with(Flags::URG))),
        ),
        ("extension_headers", options),
        ("no_room", frame(SIX, &of(|segment| segment.payload = 1433))),
        ("checksum", fragment),
        ("checksum", sum),
        ("malformed", cut),
        ("not_ip", arp),
        ("not_ip", vec![1, 2, 3]),
        ("not_ip", Vec::new()),
    ];
    for (reason, bytes) in cases {
        let before = reasons(&passage);
        let left = through(&mut passage, std::slice::from_ref(&bytes));
        assert_eq!(left, [bytes], "{reason}: as it came");
        let after = reasons(&passage);
        let more: Vec<_> = after.iter().filter(|count| !before.contains(count)).collect();
        assert!(
            matches!(more[..], [(name, _)] if *name == reason),
            "{reason}: {more:?}"
        );
    }
    let mut passage = Passage::marking(MarkRules { six: None, ..rules() });
    through(&mut passage, &[frame(SIX, &data(0)), frame(SIX, &data(1))]);
    assert_eq!(reasons(&passage), [("family", 2)]);
}

/// Makes the checksum of the IPv4 header right.
fn repair(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let mut sum = wire::checksum::Sum::default();
    sum.add(&frame[14..34]);
    let sum = sum.finish().to_be_bytes();
    frame[24..26].copy_from_slice(&sum);
}

fn network(text: &str) -> Network {
    let (address, prefix) = text.split_once('/').expect("a network");
    Network {
        address: address.parse().expect("an address"),
        prefix: prefix.parse().expect("a number"),
    }
}

#[test]
fn networks_hold_what_begins_alike() {
    for (text, inside, outside) in [
        ("10.1.2.0/24", "10.1.2.255", "10.1.3.0"),
        ("10.1.2.3/32", "10.1.2.3", "10.1.2.2"),
        ("fd00::/8", "fdff::1", "fe00::1"),
        ("fd00::7/128", "fd00::7", "fd00::6"),
        ("0.0.0.0/0", "255.1.2.3", "::1"),
        ("::/0", "::1", "10.0.0.1"),
    ] {
        assert!(
            network(text).contains(inside.parse().expect("an address")),
            "{text} {inside}"
        );
        assert!(
            !network(text).contains(outside.parse().expect("an address")),
            "{text} {outside}"
        );
    }
}

#[test]
fn udp_is_marked_where_it_is_asked_for() {
    let mut passage = Passage::marking(MarkRules { udp: true, ..rules() });
    let frames: Vec<Vec<u8>> = (0..3)
        .map(|number| {
            let mut segment = data(number);
            segment.set_kind(Kind::Datagram);
            frame(FOUR, &segment)
        })
        .collect();
    let left = through(&mut passage, &frames);
    let marks: Vec<Role> = left
        .iter()
        .map(|frame| {
            Layout::LOCAL
                .decode(&wire::parse(&frame[14..]).expect("whole").segment)
                .role
        })
        .collect();
    assert_eq!(marks, [Role::First, Role::Follower, Role::Follower]);
}

#[test]
fn what_cannot_be_read_lets_everything_go_before_it() {
    let mut passage = Passage::marking(rules());
    let mut fragment = frame(FOUR, &data(2));
    fragment[20] = 0x20;
    repair(&mut fragment);
    let frames = [
        frame(FOUR, &data(0)),
        frame(SIX, &data(0)),
        fragment.clone(),
        frame(FOUR, &data(3)),
    ];
    let left = through(&mut passage, &frames);
    assert_eq!(left[2], fragment);
    assert_eq!(reasons(&passage), [("alone", 3), ("fragment", 1)]);
}

#[test]
fn the_end_lets_go_what_is_held() {
    let mut passage = Passage::marking(MarkRules {
        marking: Marking {
            t_buffer: Duration::from_secs(10),
            hold: Duration::from_secs(10),
            ..rules().marking
        },
        ..rules()
    });
    passage.on_frame(Instant::ZERO, &frame(FOUR, &data(0)));
    assert!(passage.poll_timeout().is_some());
    let mut sent = 0;
    let mut poll = |passage: &mut Passage| {
        let Ok(()) = passage.poll_frames::<Infallible>(
            Instant::from_millis(1),
            || Instant::from_millis(1),
            |batch| {
                sent += batch.len();
                Ok(Sent::Taken(batch.len()))
            },
        );
    };
    poll(&mut passage);
    assert_eq!(passage.measured().delivered, 0, "its time has not come");
    passage.end();
    poll(&mut passage);
    assert_eq!(sent, 1);
    assert_eq!((passage.measured().delivered, passage.poll_timeout()), (1, None));
}

#[test]
fn a_plain_passage_changes_nothing() {
    let mut passage = Passage::plain();
    let frames = [
        frame(FOUR, &data(0)),
        frame(SIX, &data(1)),
        vec![9; 2000],
        Vec::new(),
    ];
    for frame in &frames {
        passage.on_frame(Instant::ZERO, frame);
    }
    let mut left = Vec::new();
    let Ok(()) = passage.poll_frames::<Infallible>(
        Instant::ZERO,
        || Instant::ZERO,
        |batch| {
            left.extend(batch.iter().map(|frame| frame.to_vec()));
            Ok(Sent::Taken(batch.len()))
        },
    );
    assert_eq!(left, frames);
    assert_eq!(passage.marked().unmarked_packets(), 0, "nobody looks at them");
}

/// A5: packets of the named ports announce what they are told to, and what is counted is how many there were.
#[test]
fn only_the_ports_of_a_liar_lie() {
    for (ports, said) in [(80..=80, 9), (81..=90, 4)] {
        let mut passage = Passage::marking(MarkRules {
            lies: vec![(ports, Declare::Beyond(5))],
            ..rules()
        });
        let frames: Vec<Vec<u8>> = (0..4).map(|number| frame(FOUR, &data(number))).collect();
        for left in through(&mut passage, &frames) {
            let parsed = wire::parse(&left[14..]).expect("checksums are right");
            assert_eq!(Layout::LOCAL.decode(&parsed.segment).length, said);
        }
        assert_eq!((passage.marked().packets, passage.marked().groups[4]), (4, 1));
    }
}
