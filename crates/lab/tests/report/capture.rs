//! Captures: what was written reads back, and Wireshark has nothing to say against it.

use super::scratch;
use fleetfoot_core::flow::{FlowKey, FlowTable, HostId};
use fleetfoot_core::packet::{BufId, Flags, Packet, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::superpacket::{Layout, Mark};
use fleetfoot_core::time::Instant;
use fleetfoot_lab::report::pcapng::{self, Captured, Interface, Protocol};
use std::process::Command;

fn conversation() -> (FlowTable, Vec<Captured>) {
    let mut flows = FlowTable::new();
    let key = |source, destination, source_port, destination_port| FlowKey {
        source: HostId(source),
        destination: HostId(destination),
        source_port,
        destination_port,
        protocol: 6,
    };
    let forward = flows.push(key(0, 1, 40_000, 80));
    let back = flows.push(key(1, 0, 80, 40_000));
    let segment = |seq: u32, ack: u32, payload: u32, flags: Flags, overhead: u8| Segment {
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        payload,
        window: 65_535,
        flags: flags.with(Flags::DF),
        ttl: 64,
        overhead,
        ..Segment::default()
    };
    let mut syn = segment(1_000, 0, 0, Flags::SYN.with(Flags::MSS), 44);
    syn.options[0] = 1460;
    let mut answer = segment(9_000, 1_001, 0, Flags::SYN.with(Flags::ACK).with(Flags::MSS), 44);
    answer.options[0] = 1460;
    let packets = [
        (10, 0, forward, syn),
        (20, 1, back, answer),
        (30, 0, forward, segment(1_001, 9_001, 0, Flags::ACK, 40)),
        (31, 0, forward, segment(1_001, 9_001, 1460, Flags::ACK, 40)),
        (
            32,
            0,
            forward,
            segment(2_461, 9_001, 1460, Flags::ACK.with(Flags::PSH), 40),
        ),
        (41, 1, back, segment(9_001, 3_921, 0, Flags::ACK, 40)),
        (
            50,
            0,
            forward,
            segment(3_921, 9_001, 0, Flags::ACK.with(Flags::FIN), 40),
        ),
    ];
    let captured = packets
        .map(|(ms, interface, flow, segment)| Captured {
            time: Instant::from_nanos(ms * 1_000_000 + 7),
            interface,
            packet: Packet {
                enqueued_at: Instant::ZERO,
                flow,
                buf: BufId::NONE,
                segment,
            },
            comment: (ms == 32).then_some("a remark"),
        })
        .to_vec();
    (flows, captured)
}

fn interfaces() -> [Interface; 2] {
    ["forward", "reverse"].map(|direction| Interface {
        name: format!("bottleneck-{direction}"),
        description: format!("bottleneck, {direction}, packets as they leave"),
    })
}

#[test]
fn a_capture_reads_back_with_times_interfaces_and_lengths() {
    use pcap_parser::pcapng::{Block, OptionCode};
    let (flows, captured) = conversation();
    let mut bytes = Vec::new();
    pcapng::write_to(
        &mut bytes,
        captured.clone(),
        &interfaces(),
        &flows,
        "title, variant, seed 1",
        pcapng::SNAP_LENGTH,
        Protocol::V4,
    )
    .expect("memory is writable");
    let mut rest = bytes.as_slice();
    let (mut points, mut packets, mut comments) = (Vec::new(), Vec::new(), Vec::new());
    while !rest.is_empty() {
        let (after, block) = pcap_parser::parse_block_le(rest).expect("well-formed");
        rest = after;
        match block {
            Block::SectionHeader(section) => {
                comments.extend(
                    section
                        .options
                        .iter()
                        .filter(|o| o.code == OptionCode::Comment)
                        .map(|o| o.value.to_vec()),
                );
            }
            Block::InterfaceDescription(interface) => {
                assert_eq!((interface.if_tsresol, interface.snaplen), (9, 128));
                points.push(interface.linktype.0);
            }
            Block::EnhancedPacket(packet) => {
                let ns = (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low);
                let data = packet.data[..packet.caplen as usize].to_vec();
                packets.push((packet.if_id, ns, packet.origlen, data));
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(
        points,
        [228, 228],
        "IPv4, which tcpdump reads of several interfaces"
    );
    assert!(comments[0].starts_with(b"title, variant, seed 1"));
    assert_eq!(packets.len(), captured.len());
    for (packet, captured) in packets.iter().zip(&captured) {
        let len = captured.packet.segment.len();
        assert_eq!(
            (packet.0, packet.1, packet.2),
            (captured.interface, captured.time.as_nanos(), len)
        );
        assert_eq!(packet.3.len() as u32, len.min(128));
        assert_eq!(u32::from(u16::from_be_bytes([packet.3[2], packet.3[3]])), len);
    }
    assert_eq!(packets[0].3[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
}

#[test]
fn marks_that_need_ipv6_are_in_its_packets() {
    use pcap_parser::pcapng::Block;
    let (flows, mut captured) = conversation();
    captured.retain(|captured| captured.packet.segment.payload > 0);
    let mark = Mark::first(200, 0xabcd);
    for captured in &mut captured {
        Layout::C
            .mark(&mut captured.packet.segment, mark)
            .expect("there is room");
    }
    captured[0].packet.segment.payload = 70_000; // too long for any length field
    let mut bytes = Vec::new();
    let points = interfaces();
    pcapng::write_to(
        &mut bytes,
        captured.clone(),
        &points,
        &flows,
        "",
        65_535,
        Protocol::V6,
    )
    .expect("memory is writable");
    let (mut rest, mut seen) = (bytes.as_slice(), 0);
    while !rest.is_empty() {
        let (after, block) = pcap_parser::parse_block_le(rest).expect("well-formed");
        rest = after;
        if let Block::EnhancedPacket(packet) = block {
            let segment = captured[seen].packet.segment;
            assert_eq!(packet.origlen, segment.len() + 20);
            if seen == 0 {
                assert_eq!(packet.data[4..6], [0, 0], "length zero");
            } else {
                let parsed =
                    fleetfoot_core::wire::parse(&packet.data[..packet.caplen as usize]).expect("well-formed");
                assert_eq!(Layout::C.decode(&parsed.segment), mark);
                assert_eq!(parsed.source.to_string(), "[fd00::a00:1]:40000");
            }
            seen += 1;
        }
    }
    assert_eq!(seen, captured.len());
    assert!(seen > 1);
}

#[test]
fn a_packet_too_long_for_its_length_field_is_kept_with_length_zero() {
    let (flows, mut captured) = conversation();
    captured[3].packet.segment.payload = 200_000;
    let mut bytes = Vec::new();
    pcapng::write_to(&mut bytes, captured, &interfaces(), &flows, "", 128, Protocol::V4)
        .expect("memory is writable");
    assert!(bytes.windows(4).any(|word| word == 200_040_u32.to_le_bytes()));
}

/// libpcap refuses a second interface of the link type RAW.
#[test]
fn tcpdump_reads_captures_of_several_interfaces() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        println!("skipped: needs tcpdump");
        return;
    }
    let directory = scratch("tcpdump");
    for (name, protocol) in [("v4.pcapng", Protocol::V4), ("v6.pcapng", Protocol::V6)] {
        let (flows, captured) = conversation();
        let path = directory.join(name);
        let file = std::fs::File::create(&path).expect("writable");
        pcapng::write_to(
            file,
            captured,
            &interfaces(),
            &flows,
            "",
            pcapng::SNAP_LENGTH,
            protocol,
        )
        .expect("writable");
        let output = Command::new("tcpdump")
            .args(["-n", "-tt", "--nano", "-r"])
            .arg(&path)
            .output()
            .expect("tcpdump runs");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {printed}");
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(lines.lines().count(), 7, "{name}: {lines}");
        let first = match protocol {
            Protocol::V4 => "0.010000007 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S]",
            Protocol::V6 => "0.010000007 IP6 fd00::a00:1.40000 > fd00::a00:2.80: Flags [S]",
        };
        assert!(lines.starts_with(first), "{name}: {lines}");
    }
}

#[test]
fn wireshark_finds_nothing_to_complain_about() {
    if Command::new("tshark").arg("-v").output().is_err() {
        println!("skipped: needs tshark");
        return;
    }
    let (flows, captured) = conversation();
    let directory = scratch("tshark");
    for (name, snap) in [("whole.pcapng", 65_535), ("short.pcapng", pcapng::SNAP_LENGTH)] {
        let path = directory.join(name);
        let file = std::fs::File::create(&path).expect("writable");
        pcapng::write_to(
            file,
            captured.clone(),
            &interfaces(),
            &flows,
            "a comment",
            snap,
            Protocol::V4,
        )
        .expect("writable");
        let run = |arguments: &[&str]| {
            let output = Command::new("tshark")
                .args(["-n", "-r"])
                .arg(&path)
                .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
                .args(arguments)
                .output()
                .expect("tshark runs");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(
            run(&[
                "-Y",
                "ip.checksum.status == 1",
                "-T",
                "fields",
                "-e",
                "frame.number"
            ])
            .lines()
            .count(),
            7
        );
        if snap == 65_535 {
            assert_eq!(
                run(&[
                    "-Y",
                    "tcp.checksum.status == 1",
                    "-T",
                    "fields",
                    "-e",
                    "frame.number"
                ])
                .lines()
                .count(),
                7
            );
        }
        assert_eq!(
            run(&[
                "-Y",
                "_ws.malformed or tcp.analysis.flags or _ws.expert.severity >= 0x600000"
            ]),
            ""
        );
        assert_eq!(
            run(&[
                "-Y",
                "frame.number == 2",
                "-T",
                "fields",
                "-e",
                "frame.interface_name",
                "-e",
                "frame.time_epoch"
            ])
            .trim(),
            "bottleneck-reverse\t0.020000007"
        );
        assert_eq!(
            run(&["-Y", "frame.comment", "-T", "fields", "-e", "frame.comment"]).trim(),
            "a remark"
        );
    }
}
