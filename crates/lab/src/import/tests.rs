//! Captures made by hand: what is known goes in, and has to come out.

use super::capture::{Options, read};
use super::link_layer::{self, ACK, FIN, Parsed, RST, SYN};
use super::reader::{self, Frame};
use super::summary::Summary;
use crate::workload::vectors::{Unit, Vector};
use fleetfoot_core::time::Duration;
use proptest::prelude::{any, prop_assert, proptest};

mod clocks;
mod originals;
mod segments;
mod set_back;

/// A segment: microseconds, whether the client sends it, flags, sequence number and ACK from 0, payload.
#[derive(Clone, Copy)]
struct Step(u64, bool, u8, u32, u32, u32);

/// Packets of connections between 192.0.2.1 and 192.0.2.2.
struct Maker {
    port: u16,
    client_isn: u32,
    server_isn: u32,
    window: u16,
    id: u16,
    packets: Vec<(u64, Vec<u8>)>,
}

impl Maker {
    fn new() -> Maker {
        Maker {
            port: 40_000,
            client_isn: 1_000,
            server_isn: 9_000,
            window: 500,
            id: 0,
            packets: Vec::new(),
        }
    }

    fn ip(&mut self, Step(_, up, flags, seq, ack, payload): Step) -> Vec<u8> {
        let (source, destination) = if up { (1, 2) } else { (2, 1) };
        let ports = if up { [self.port, 80] } else { [80, self.port] };
        let (own, other) = if up {
            (self.client_isn, self.server_isn)
        } else {
            (self.server_isn, self.client_isn)
        };
        let syn = flags & SYN != 0;
        let header = if syn { 24 } else { 20 };
        self.id = self.id.wrapping_add(1);
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&((20 + header + payload) as u16).to_be_bytes());
        packet.extend_from_slice(&self.id.to_be_bytes());
        packet.extend_from_slice(&[0x40, 0, 64, 6, 0, 0, 192, 0, 2, source, 192, 0, 2, destination]);
        for port in ports {
            packet.extend_from_slice(&port.to_be_bytes());
        }
        packet.extend_from_slice(&own.wrapping_add(seq).to_be_bytes());
        packet.extend_from_slice(&other.wrapping_add(ack).to_be_bytes());
        packet.extend_from_slice(&[(header as u8 / 4) << 4, flags]);
        packet.extend_from_slice(&self.window.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 0]);
        if syn {
            packet.extend_from_slice(&[2, 4, 0x05, 0xb4]); // 1460
        }
        packet
    }

    /// Captured with headers only: the snap length cuts payload off.
    fn add(&mut self, steps: &[Step]) -> &mut Maker {
        for step in steps {
            let packet = self.ip(*step);
            self.packets.push((step.0, packet));
        }
        self
    }

    /// A handshake of `rtt` seen at the client, from `at` on.
    fn shake(&mut self, at: u64, rtt: u64) -> &mut Maker {
        self.add(&[
            Step(at, true, SYN, 0, 0, 0),
            Step(at + rtt, false, SYN | ACK, 0, 1, 0),
            Step(at + rtt, true, ACK, 1, 1, 0),
        ])
    }

    fn pcap(&self) -> Vec<u8> {
        pcap(101, &self.packets)
    }
}

fn pcap(link_type: u32, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend_from_slice(&65_535_u32.to_le_bytes());
    file.extend_from_slice(&link_type.to_le_bytes());
    for (at, packet) in packets {
        let length = packet.len() as u32;
        for word in [
            1_700_000_000 + (at / 1_000_000) as u32,
            (at % 1_000_000) as u32,
            length,
            length + 3000,
        ] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(packet);
    }
    file
}

fn import(file: &[u8]) -> (Vec<Vector>, Result<Summary, String>) {
    import_with(file, &Options::default())
}

fn import_with(file: &[u8], options: &Options) -> (Vec<Vector>, Result<Summary, String>) {
    let mut vectors = Vec::new();
    let summary = read(file, options, |over| vectors.push(over.vector), |_| true);
    (vectors, summary)
}

fn unit(opener: bool, wait_us: u64, bytes: u64) -> Unit {
    Unit {
        opener,
        wait_us,
        bytes,
    }
}

fn noted(summary: &Summary, what: &str) -> u64 {
    let all = summary.left_out.iter().chain(&summary.notes);
    all.filter(|entry| entry.what.contains(what))
        .map(|entry| entry.count)
        .sum()
}

/// Two exchanges at a client 40 ms away: 300 and 2000 bytes after 25 ms, 100 ms later 200 and 500 after 5 ms.
fn exchanges() -> Maker {
    let mut maker = Maker::new();
    maker.shake(0, 40_000).add(&[
        Step(42_000, true, ACK, 1, 1, 300),
        Step(107_000, false, ACK, 1, 301, 1460),
        Step(107_100, false, ACK, 1461, 301, 540),
        Step(107_200, true, ACK, 301, 2001, 0),
        Step(207_100, true, ACK, 301, 2001, 200),
        Step(252_100, false, ACK, 2001, 501, 500),
        Step(252_200, true, ACK, 501, 2501, 0),
        Step(300_000, true, FIN | ACK, 501, 2501, 0),
        Step(340_000, false, FIN | ACK, 2501, 502, 0),
        Step(340_100, true, ACK, 502, 2502, 0),
    ]);
    maker
}

/// The scenario that is written of it.
fn scenario_of(summary: &Summary) -> String {
    let mut names = ["x.cvec", "x-back.cvec", "x-long.cvec", "x-long-back.cvec"]
        .map(String::from)
        .to_vec();
    names.truncate(super::scenario::parts(summary).len());
    super::scenario::text("x", &names, summary, &Default::default())
}

#[test]
fn requests_answers_and_waits_come_out() {
    let (vectors, summary) = import(&exchanges().pcap());
    let summary = summary.expect("a capture");
    let [vector] = &vectors[..] else {
        panic!("one connection")
    };
    // Seen at the client: what the packets took to the server and back is off the server's waits.
    assert_eq!(
        vector.units,
        [
            unit(true, 2_000, 300),
            unit(false, 25_000, 2_000),
            unit(true, 100_000, 200),
            unit(false, 5_000, 500),
            unit(false, 47_900, 0),
        ]
    );
    assert!(!vector.concurrent);
    assert_eq!((vector.rtt_us, vector.start_us), (40_000, 0));
    assert_eq!(vector.windows, [500, 500]);
    let exchange = summary.exchange_s.expect("two exchanges");
    // From the SYN 107.1 - 27 ms of waiting; then 45 - 5. Mean and maximum are exact.
    assert!(
        (exchange.max - 0.0801).abs() < 1e-9 && (exchange.mean - 0.060_05).abs() < 1e-9,
        "{exchange:?}"
    );
    assert_eq!(summary.capture_point, Some(0.0));
    assert_eq!(summary.segments[1].retransmitted, 0);
    assert!((summary.handshake_rtt_s.expect("a handshake").p50 - 0.04).abs() < 1e-9);
    assert_eq!(summary.mss, Some(1460));
}

#[test]
fn no_address_is_reported_unless_it_is_asked_for() {
    let file = exchanges().pcap();
    let (vectors, summary) = import(&file);
    let summary = summary.expect("a capture");
    let scenario = scenario_of(&summary);
    let json = serde_json::to_string(&summary).expect("JSON");
    let everything = format!("{}{scenario}{json}{}", summary.to_text(), vectors[0]);
    assert!(
        !everything.contains("192") && !everything.contains("40000 "),
        "{everything}"
    );
    let options = Options {
        keep_addresses: true,
        ..Options::default()
    };
    let summary = import_with(&file, &options).1.expect("a capture");
    assert_eq!(summary.hosts, ["192.0.2.1", "192.0.2.2"]);
    assert!(summary.to_text().contains("192.0.2.2"));
}

#[test]
fn both_ends_at_once_are_concurrent() {
    let mut maker = Maker::new();
    maker.shake(0, 20_000).add(&[
        Step(20_100, true, ACK, 1, 1, 100),
        // Sent before the server had the client's words.
        Step(25_000, false, ACK, 1, 1, 400),
        Step(25_100, true, ACK, 101, 401, 0),
        Step(90_000, true, ACK, 101, 401, 50),
        Step(110_000, false, ACK, 401, 151, 0),
    ]);
    let (vectors, summary) = import(&maker.pcap());
    assert_eq!(summary.expect("a capture").concurrent, 1);
    assert!(vectors[0].concurrent);
    assert_eq!(
        vectors[0].units,
        [unit(true, 100, 100), unit(true, 69_900, 50), unit(false, 0, 400)]
    );
}

#[test]
fn a_pause_is_not_a_gap_in_a_window() {
    let mut maker = Maker::new();
    maker.shake(0, 30_000).add(&[
        Step(30_000, true, ACK, 1, 1, 100),
        Step(60_000, false, ACK, 1, 101, 1460),
        Step(60_100, true, ACK, 101, 1461, 0),
        // The next window comes a round-trip time after its ACK: no pause.
        Step(90_100, false, ACK, 1461, 101, 1460),
        Step(90_200, true, ACK, 101, 2921, 0),
        // A retransmission timeout later: none either.
        Step(120_200, false, ACK, 2921, 101, 1460),
        Step(520_200, false, ACK, 2921, 101, 1460),
        Step(520_300, true, ACK, 101, 4381, 0),
        // 600 ms beyond the round-trip time: one.
        Step(1_150_300, false, ACK, 4381, 101, 700),
        // After a short segment 50 ms are one, though it is not acknowledged.
        Step(1_200_300, false, ACK, 5081, 101, 10),
    ]);
    let (vectors, summary) = import(&maker.pcap());
    assert_eq!(
        vectors[0].units,
        [
            unit(true, 0, 100),
            unit(false, 0, 4380),
            unit(false, 1_030_100, 700),
            unit(false, 50_000, 10),
        ]
    );
    assert_eq!(summary.expect("a capture").segments[1].retransmitted, 1);
}

#[test]
fn retransmissions_are_distinguished_from_what_is_none() {
    let mut maker = Maker::new();
    maker.shake(0, 30_000).add(&[
        Step(30_000, true, ACK, 1, 1, 100),
        Step(60_000, false, ACK, 1, 101, 1460),
        // A hole, filled after 2 ms: reordering.
        Step(60_100, false, ACK, 2921, 101, 1460),
        Step(60_200, false, ACK, 1461, 101, 1460),
        // Another, filled after 60 ms: a retransmission.
        Step(62_000, false, ACK, 5841, 101, 1460),
        Step(122_000, false, ACK, 4381, 101, 1460),
        // All of it again: another.
        Step(322_000, false, ACK, 5841, 101, 1460),
        Step(322_100, true, ACK, 101, 7301, 0),
    ]);
    // Captured twice within a microsecond.
    let copy = maker.packets[4].clone();
    maker.packets.insert(5, (copy.0 + 1, copy.1));
    // A keep-alive with a byte, and two probes of a closed window.
    maker.add(&[Step(9_000_000, false, ACK, 7300, 101, 1)]);
    maker.window = 0;
    maker.add(&[Step(9_100_000, true, ACK, 101, 7301, 0)]);
    maker.window = 500;
    maker.add(&[
        Step(9_400_000, false, ACK, 7301, 101, 1),
        Step(9_900_000, false, ACK, 7301, 101, 1),
    ]);
    let summary = import(&maker.pcap()).1.expect("a capture");
    assert_eq!(
        (summary.segments[1].retransmitted, summary.segments[1].segments),
        (2, 7)
    );
    assert_eq!(summary.segments[1].bytes, 7301);
    assert_eq!(noted(&summary, "out of order"), 1);
    assert_eq!(noted(&summary, "captured twice"), 1);
    assert_eq!(noted(&summary, "keep-alives"), 2);
}

#[test]
fn sequence_numbers_wrap() {
    let mut maker = Maker::new();
    (maker.client_isn, maker.server_isn) = (u32::MAX - 50, u32::MAX - 2000);
    let wrapped = exchanges().packets.len();
    let steps: Vec<Step> = (0..100)
        .map(|n| Step(60_000 + u64::from(n) * 100, false, ACK, 1 + n * 1460, 301, 1460))
        .collect();
    maker
        .shake(0, 20_000)
        .add(&[Step(20_000, true, ACK, 1, 1, 300)])
        .add(&steps);
    let (vectors, summary) = import(&maker.pcap());
    assert!(wrapped > 0);
    assert_eq!(vectors[0].bytes(), [300, 146_000]);
    assert_eq!(summary.expect("a capture").segments[1].retransmitted, 0);
}

#[test]
fn what_is_no_connection_is_left_out_and_reported() {
    let mut maker = exchanges();
    // Nobody answers, twice each; refused; opened and closed without a word.
    for (number, refused) in [(1, false), (2, false), (3, true)] {
        maker.port = 50_000 + number;
        maker.add(&[
            Step(400_000, true, SYN, 0, 0, 0),
            Step(1_400_000, true, SYN, 0, 0, 0),
        ]);
        if refused {
            maker.add(&[Step(1_410_000, false, RST | ACK, 0, 1, 0)]);
        }
    }
    maker.port = 51_000;
    maker.shake(2_000_000, 5_000).add(&[
        Step(2_100_000, true, FIN | ACK, 1, 1, 0),
        Step(2_105_000, false, FIN | ACK, 1, 2, 0),
    ]);
    // Stray ACKs and resets of something older.
    maker.port = 52_000;
    maker.add(&[
        Step(2_200_000, true, ACK, 7, 7, 0),
        Step(2_200_100, false, RST, 7, 0, 0),
    ]);
    let (vectors, summary) = import(&maker.pcap());
    let summary = summary.expect("a capture");
    assert_eq!((vectors.len(), summary.connections), (1, 1));
    assert_eq!(noted(&summary, "nobody answered"), 2);
    assert_eq!(noted(&summary, "refused"), 1);
    assert_eq!(noted(&summary, "nothing was said"), 1);
    assert_eq!(noted(&summary, "no data was seen"), 2);
    let none = import(&pcap(101, &maker.packets[13..])).1.expect_err("no data");
    assert!(
        none.contains("no TCP connection with data") && none.contains("refused"),
        "{none}"
    );
}

#[test]
fn ports_are_used_again_and_captures_begin_and_end_anywhere() {
    let mut maker = exchanges();
    (maker.client_isn, maker.server_isn) = (77_000, 88_000);
    maker.shake(1_000_000, 40_000).add(&[
        Step(1_040_000, true, ACK, 1, 1, 10),
        Step(1_050_000, true, RST, 11, 1, 0),
    ]);
    // Again, without a word of how it ended, and open at the end.
    (maker.client_isn, maker.server_isn) = (177_000, 188_000);
    maker
        .shake(2_000_000, 40_000)
        .add(&[Step(2_040_000, true, ACK, 1, 1, 20)]);
    let (vectors, summary) = import(&maker.pcap());
    let summary = summary.expect("a capture");
    let sizes: Vec<[u64; 2]> = vectors.iter().map(Vector::bytes).collect();
    assert_eq!(sizes, [[500, 2500], [10, 0], [20, 0]]);
    assert_eq!(noted(&summary, "ended by a reset"), 1);
    assert_eq!(noted(&summary, "open when it ended"), 1);
    // Without its handshake: the larger port opened it.
    let (vectors, summary) = import(&pcap(101, &exchanges().packets[4..]));
    let summary = summary.expect("a capture");
    assert_eq!(vectors[0].units[0], unit(false, 0, 2000));
    assert_eq!(vectors[0].bytes(), [200, 2500]);
    assert_eq!(noted(&summary, "open before"), 1);
    assert_eq!(summary.handshake_rtt_s, None);
}

#[test]
fn connections_beyond_the_cap_are_given_up() {
    let mut maker = Maker::new();
    for number in 0..50_u64 {
        maker.port = 20_000 + number as u16;
        maker
            .shake(number * 1000, 100)
            .add(&[Step(number * 1000 + 200, true, ACK, 1, 1, 99)]);
    }
    let options = Options {
        most_open: 10,
        idle: Duration::from_secs(1),
        ..Options::default()
    };
    let (vectors, summary) = import_with(&maker.pcap(), &options);
    assert_eq!(vectors.len(), 50);
    assert_eq!(noted(&summary.expect("a capture"), "given up early"), 40);
}

#[test]
fn every_kind_of_link_is_read() {
    let mut maker = exchanges();
    let step = Step(0, true, ACK, 1, 1, 700);
    let v4 = maker.ip(step);
    let v6 = |extensions: &[u8], first: u8| {
        let tcp = &v4[20..];
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend_from_slice(&((extensions.len() + tcp.len() + 700) as u16).to_be_bytes());
        packet.extend_from_slice(&[first, 64]);
        packet.extend_from_slice(&[0x20; 32]);
        packet.extend_from_slice(extensions);
        packet.extend_from_slice(tcp);
        packet
    };
    let framed = |head: &[u8], packet: &[u8]| [head, packet].concat();
    let mac = [2; 12];
    let good: Vec<(i32, Vec<u8>)> = vec![
        (1, framed(&[&mac[..], &[8, 0]].concat(), &v4)),
        (1, framed(&[&mac[..], &[0x81, 0, 0, 5, 8, 0]].concat(), &v4)),
        (
            1,
            framed(
                &[&mac[..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x86, 0xdd]].concat(),
                &v6(&[], 6),
            ),
        ),
        (
            1,
            framed(
                &[&mac[..], &[0x88, 0x64, 0x11, 0, 0, 1, 2, 0, 0, 0x21]].concat(),
                &v4,
            ),
        ),
        (113, framed(&[&[0; 14][..], &[8, 0]].concat(), &v4)),
        (276, framed(&[&[0x86, 0xdd][..], &[0; 18]].concat(), &v6(&[], 6))),
        (0, framed(&[2, 0, 0, 0], &v4)),
        (0, framed(&[0, 0, 0, 30], &v6(&[], 6))),
        (108, framed(&[0, 0, 0, 2], &v4)),
        (101, v4.clone()),
        (12, v6(&[], 6)),
        (228, v4.clone()),
        // Hop-by-hop, routing, an atomic fragment, destination, authentication.
        (
            229,
            v6(
                &[
                    43, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 1, 51, 0, 0, 0,
                    0, 0, 0, 0, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                ],
                0,
            ),
        ),
    ];
    for (link, data) in &good {
        let parsed = link_layer::parse(*link, data, data.len() as u32 + 700);
        let Parsed::Tcp(tcp) = parsed else {
            panic!("link {link}: {parsed:?}")
        };
        assert_eq!(
            (tcp.payload, tcp.source.1, tcp.destination.1, tcp.seq),
            (700, 40_000, 80, 1_001),
            "link {link}"
        );
        for cut in 0..data.len() {
            let short = link_layer::parse(*link, &data[..cut], data.len() as u32 + 700);
            assert!(
                !matches!(short, Parsed::Malformed | Parsed::OtherProtocol(_)),
                "link {link} cut at {cut}: {short:?}"
            );
        }
        assert!(link_layer::link_name(*link).is_some());
    }
    let mut other = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = maker.ip(step);
        change(&mut packet);
        link_layer::parse(101, &packet, packet.len() as u32 + 700)
    };
    assert_eq!(other(&|packet| packet[6] = 0x20), Parsed::Fragment);
    assert_eq!(other(&|packet| packet[7] = 9), Parsed::Fragment);
    assert!(matches!(
        other(&|packet| packet[9] = 17),
        Parsed::OtherProtocol(other) if other.protocol == 17
    ));
    assert_eq!(other(&|packet| packet[0] = 0x44), Parsed::Malformed);
    let cut_off = other(&|packet| packet[32] = 0xf0);
    assert!(
        matches!(cut_off, Parsed::Tcp(_)),
        "options that were cut off are no damage: {cut_off:?}"
    );
    assert_eq!(other(&|packet| packet[32] = 0x10), Parsed::Malformed);
    assert_eq!(link_layer::parse(105, &v4, 40), Parsed::UnknownLink);
    assert_eq!(
        link_layer::parse(101, &v6(&[60, 0, 0, 9, 0, 0, 0, 1], 44), 2000),
        Parsed::Fragment
    );
    // Segmentation offload leaves the length to the card.
    let Parsed::Tcp(tcp) = other(&|packet| packet[2..4].fill(0)) else {
        panic!("a length of zero is that of the frame")
    };
    assert_eq!(tcp.payload, 700);
    let unread = import(&pcap(105, &exchanges().packets)).1.expect_err("unread");
    assert!(unread.contains("kind of link (105)"), "{unread}");
}

/// A pcapng file of one interface with this resolution and one packet at so many of its units.
fn pcapng(resolution: u8, units: u64, packet: &[u8]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section = block(
        0x0a0d_0d0a,
        &[
            0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
        ],
    );
    let interface = block(
        1,
        &[
            101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0,
        ],
    );
    let mut body = vec![0, 0, 0, 0];
    body.extend_from_slice(&((units >> 32) as u32).to_le_bytes());
    body.extend_from_slice(&(units as u32).to_le_bytes());
    body.extend_from_slice(&(packet.len() as u32).to_le_bytes());
    body.extend_from_slice(&1500_u32.to_le_bytes());
    body.extend_from_slice(packet);
    body.resize(body.len().next_multiple_of(4), 0);
    [section, interface, block(6, &body)].concat()
}

#[test]
fn damage_within_a_pcapng_is_reported_by_what_stands_there() {
    let packet = Maker::new().ip(Step(0, true, ACK, 1, 1, 100));
    let one = pcapng(6, 1 << 50, &packet);
    let (head, block) = one.split_at(60);
    let length = block.len() as u32;
    assert_eq!(length, 72, "40 bytes of packet");
    let good = [head, block, block, block, block].concat();
    let stop = reader::read(&good[..], |_, _| true).expect("a capture");
    assert_eq!((stop.frames, stop.damage, stop.unread.blocks), (4, None, 0));
    // The second packet begins at byte 132.
    let with = |at: usize, word: u32| {
        let mut file = good.clone();
        file[132 + at..132 + at + 4].copy_from_slice(&word.to_le_bytes());
        file
    };
    let kept = "40 bytes are said to be kept of it, in a block of 36: one of them is damaged";
    for (at, word, said) in [
        (4, 36, kept),
        // As long as two, and longer than the file.
        (
            4,
            144,
            "its block has 144 bytes by what stands at its beginning, 72 by what stands at its end: one of them is damaged",
        ),
        (
            4,
            148,
            "its block has 148 bytes by what stands at its beginning, 6 by what stands at its end: one of them is damaged",
        ),
        (4, 7200, "the file ends within it: 216 of 7200 bytes are there"),
        (4, 71, "71 stands there as the length of its block"),
        (
            68,
            76,
            "its block has 72 bytes by what stands at its beginning, 76 by what stands at its end: one of them is damaged",
        ),
        (20, 4000, "4000 bytes are said to be kept of it, in a block of 72"),
        // Of another type: what is read of it contradicts its length.
        (
            0,
            5,
            "a block of type 0x00000005 (interface statistics) and 72 bytes stands there, which cannot be read as one",
        ),
    ] {
        let stop = reader::read(&with(at, word)[..], |_, _| true).expect("some of a capture");
        let damage = stop.damage.unwrap_or_else(|| panic!("{word} at {at} is damage"));
        assert!(
            damage.starts_with(&format!("packet 2 at byte 132: {said}")),
            "{word} at {at}: {damage}"
        );
        assert_eq!(stop.frames, 1);
    }
    // A type that nobody knows is no error, since later versions may have it; it is counted.
    let stop = reader::read(&with(0, 0x86)[..], |_, _| true).expect("a capture");
    assert_eq!((stop.frames, stop.damage), (3, None));
    let unread = reader::Unread {
        blocks: 1,
        kind: 0x86,
        at: 132,
        packet: 2,
    };
    assert_eq!(stop.unread, unread);
    let summary = import(&with(0, 2)).1.expect("data");
    let what = "block of a kind that is not read; the first, of type 0x00000002 (packet, as of old), is at byte 132 before packet 2";
    assert_eq!(noted(&summary, what), 1);
}

#[test]
fn times_of_every_resolution_are_nanoseconds() {
    let packet = Maker::new().ip(Step(0, true, SYN, 0, 0, 0));
    for (resolution, units, expected) in [
        (6, 1_700_000_000_000_001, 1_700_000_000_000_001_000),
        (9, 1_700_000_000_000_000_007, 1_700_000_000_000_000_007),
        (3, 1_700_000_000_001, 1_700_000_000_001_000_000),
        (12, 1_700_000_000_000_999, 1_700_000_000_000),
        (0x80 | 10, 1024 * 3 + 512, 3_500_000_000),
        (0x80 | 40, 1 << 39, 500_000_000),
        (0xff, u64::MAX, 0),
        (127, u64::MAX, 0),
    ] {
        let mut times = Vec::new();
        let stop = reader::read(&pcapng(resolution, units, &packet)[..], |frame: Frame<'_>, _| {
            times.push(frame.time_ns);
            true
        });
        assert_eq!(
            (times, stop.expect("a capture").frames),
            (vec![expected], 1),
            "{resolution}"
        );
    }
    let mut nanoseconds = pcap(101, &[(5, packet)]);
    nanoseconds[..4].copy_from_slice(&[0x4d, 0x3c, 0xb2, 0xa1]);
    let mut seen = 0;
    let stop = reader::read(&nanoseconds[..], |frame, _| {
        seen = frame.time_ns;
        true
    });
    assert_eq!(
        (stop.expect("a capture").damage, seen),
        (None, 1_700_000_000_000_000_005)
    );
}

#[test]
fn what_comes_before_the_damage_is_read() {
    let file = exchanges().pcap();
    let whole = import(&file).1.expect("a capture");
    assert_eq!((whole.packets, whole.damage), (13, None));
    let cut = import(&file[..file.len() - 7]).1.expect("most of a capture");
    let damage = cut.damage.expect("it is cut off");
    assert!(
        damage.starts_with("packet 13 at byte ")
            && damage.ends_with("the file ends within it: 49 of 56 bytes are there"),
        "{damage}"
    );
    assert_eq!(cut.packets, 12);
    // A length that cannot be.
    let mut broken = file.clone();
    let second = 24 + 16 + 44;
    broken[second + 8..second + 12].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    let stop = reader::read(&broken[..], |_, _| true).expect("some of a capture");
    let damage = stop.damage.expect("it is damaged");
    assert!(
        damage.starts_with("packet 2 at byte 84: 4294967280 bytes are said to be kept of it, where the file keeps 65535 at most"),
        "{damage}"
    );
    // One that could be, but not in this file.
    broken[second + 8..second + 12].copy_from_slice(&1_000_000_u32.to_le_bytes());
    let stop = reader::read(&broken[..], |_, _| true).expect("some of a capture");
    let damage = stop.damage.expect("it is damaged");
    assert!(
        damage.starts_with("packet 2 at byte 84: 1000000 bytes"),
        "{damage}"
    );
    let cut = reader::read(&file[..90], |_, _| true).expect("some of a capture");
    assert_eq!(
        cut.damage.as_deref(),
        Some("packet 2 at byte 84: the file ends within its header: 6 of 16 bytes are there")
    );
    // A block of pcapng without a possible length.
    let mut broken = pcapng(6, 1 << 50, &Maker::new().ip(Step(0, true, ACK, 1, 1, 100)));
    broken[64..68].copy_from_slice(&6_u32.to_le_bytes());
    let stop = reader::read(&broken[..], |_, _| true).expect("some of a capture");
    let damage = stop.damage.expect("it is damaged");
    assert!(
        damage.starts_with("packet 1 at byte 60: 6 stands there as the length of its block"),
        "{damage}"
    );
    for (bytes, said) in [
        (&b""[..], "it is empty"),
        (&file[..10], "header is damaged or cut off"),
        (&[0x0a, 0x0d, 0x0d, 0x0a, 1][..], "first block is damaged"),
        (b"hello, world, this is a text", "neither pcap nor pcapng"),
        (&[0x1f, 0x8b, 8, 0], "gzip -dc"),
    ] {
        let message = import(bytes).1.expect_err("nothing usable");
        assert!(message.contains(said), "{message}");
    }
    let interrupted = reader::read(&file[..], |_, bytes| bytes < 300).expect("some of a capture");
    assert!(interrupted.interrupted && interrupted.frames < 13);
}

#[test]
fn a_clock_that_jumps_is_reported_and_takes_no_time() {
    let mut file = exchanges().pcap();
    // The first packet is of 1970: its clock was not set yet.
    file[24..28].copy_from_slice(&7_u32.to_le_bytes());
    let (vectors, summary) = import(&file);
    let summary = summary.expect("a capture");
    assert_eq!(
        noted(
            &summary,
            "packet 2, which ends at byte 144: from the year 1970 to 2023"
        ),
        1
    );
    assert!(summary.span_s < 1.0, "{}", summary.span_s);
    assert_eq!(vectors[0].bytes(), [500, 2500]);
    assert_eq!(
        noted(&import(&exchanges().pcap()).1.expect("a capture"), "jump"),
        0
    );
}

#[test]
fn segments_are_counted_where_the_handshake_was_not_seen() {
    let mut maker = Maker::new();
    let steps: Vec<Step> = (0..20)
        .map(|n| Step(u64::from(n) * 1000, false, ACK, 1 + n * 1460, 301, 1460))
        .collect();
    maker.add(&steps);
    let summary = import(&maker.pcap()).1.expect("a capture");
    assert_eq!(summary.segments[1].segments, 20, "segments, not bytes");
}

/// Packets of one direction only, as a tap on one fibre sees them.
fn one_way(up: bool) -> Vec<u8> {
    let sender = if up { 1 } else { 2 };
    let packets: Vec<_> = exchanges().packets.into_iter().collect();
    let own: Vec<_> = packets
        .into_iter()
        .filter(|(_, packet)| packet[15] == sender)
        .collect();
    pcap(101, &own)
}

#[test]
fn acknowledgments_tell_what_an_end_said_that_was_not_seen() {
    // The opener alone: its SYN and the end of its handshake are a round-trip time apart.
    let (vectors, summary) = import(&one_way(true));
    let summary = summary.expect("a capture");
    assert_eq!(
        vectors[0].units,
        [
            unit(true, 2_000, 300),
            unit(false, 25_200, 2_000), // when it was acknowledged, less the way
            unit(true, 99_900, 200),
            unit(false, 5_100, 500),
            unit(false, 47_800, 0),
        ]
    );
    assert_eq!((vectors[0].rtt_us, vectors[0].start_us), (40_000, 0));
    assert_eq!(noted(&summary, "one direction only"), 1);
    assert_eq!(noted(&summary, "open before"), 0);
    assert_eq!(summary.capture_point, None, "nobody knows where it was seen");
    // The server alone: nothing shows how far away it is.
    let (vectors, summary) = import(&one_way(false));
    let summary = summary.expect("a capture");
    assert_eq!(vectors[0].bytes(), [500, 2_500]);
    let answers: Vec<u64> = vectors[0].units.iter().map(|unit| unit.bytes).collect();
    assert_eq!(answers, [300, 2_000, 200, 500, 0]);
    assert_eq!((vectors[0].rtt_us, vectors[0].start_us), (0, 0));
    assert_eq!(noted(&summary, "one direction only"), 1);
    assert_eq!((summary.rtt_s, summary.capture_point), (None, None));
}

#[test]
fn windows_whose_scale_is_not_known_are_not_reported() {
    let windows = |from: usize| import(&pcap(101, &exchanges().packets[from..])).0[0].windows;
    assert_eq!(windows(0), [500, 500]);
    // Without the SYNs the field may have been shifted by anything.
    assert_eq!(windows(3), [0, 0]);
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_captures_do_not_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..40),
        cut in any::<proptest::sample::Index>(),
        ng in any::<bool>(),
    ) {
        let mut file = match ng {
            false => exchanges().pcap(),
            true => pcapng(6, 1 << 50, &Maker::new().ip(Step(0, true, ACK, 1, 1, 100))),
        };
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.truncate(cut.index(file.len()) + 1);
        let (vectors, summary) = import(&file);
        if let Ok(summary) = summary {
            prop_assert!(!summary.to_text().is_empty());
            prop_assert!(!scenario_of(&summary).is_empty());
            for vector in vectors {
                let mut again = Vec::new();
                crate::workload::vectors::read_from(vector.to_string().as_bytes(), |read| again.push(read))
                    .expect("what is written can be read");
                // Rates have six digits in the text.
                prop_assert!(again.len() == 1 && again[0].to_string() == vector.to_string());
            }
        }
    }
}

#[test]
fn sides_stay_where_they_are_whoever_opens() {
    let mut maker = Maker::new();
    maker.shake(0, 10_000).add(&[
        Step(11_000, true, ACK, 1, 1, 1400),
        Step(21_000, false, ACK, 1, 1401, 0),
    ]);
    // The same two hosts, opened by the other one: its data go the other way. The second small segment waits for no ACK.
    maker.port += 1;
    maker.add(&[
        Step(50_000, false, SYN, 0, 0, 0),
        Step(50_000, true, SYN | ACK, 0, 1, 0),
        Step(60_000, false, ACK, 1, 1, 0),
        Step(61_000, false, ACK, 1, 1, 300),
        Step(61_500, false, ACK, 301, 1, 300),
        Step(61_500, true, ACK, 1, 601, 0),
    ]);
    let mut all = Vec::new();
    let read = read(
        &maker.pcap()[..],
        &Options::default(),
        |over| all.push(over),
        |_| true,
    );
    let summary = read.expect("two connections");
    let opened: Vec<_> = all.iter().map(|over| (over.back, over.answerer)).collect();
    assert_eq!(opened, [(false, 1), (true, 0)]);
    assert_eq!(summary.segments.map(|one| one.bytes), [1400, 600]);
    assert_eq!((summary.openers, summary.back, summary.back_openers), (1, 1, 1));
    assert_eq!((summary.sideless_share, noted(&summary, "one side")), (0.0, 0));
    assert_eq!(summary.unheld, 1);
    let scenario = scenario_of(&summary);
    assert!(
        scenario.contains("file = \"x.cvec\"")
            && scenario.contains("file = \"x-back.cvec\"\ndirection = \"up\""),
        "{scenario}"
    );
    // The first one said nothing: there is one file, of the others.
    let mut silent = Maker::new();
    silent.shake(0, 10_000);
    silent.packets.extend(maker.packets.split_off(5));
    let summary = import(&silent.pcap()).1.expect("one connection");
    assert_eq!((summary.connections, summary.back), (1, 1));
    let scenario = scenario_of(&summary);
    assert!(
        scenario.contains("file = \"x.cvec\"")
            && scenario.contains("direction = \"up\"")
            && !scenario.contains("x-back"),
        "{scenario}"
    );
}

#[test]
fn hosts_of_one_side_are_named_by_their_numbers() {
    let mut maker = Maker::new();
    let mut at = 0;
    // 1 asks 2, 3 asks 2, and 1 asks 3: both are on the side that opened.
    for [opener, answerer] in [[1, 2], [3, 2], [1, 3]] {
        maker.port += 1;
        let before = maker.packets.len();
        maker.shake(at, 10_000).add(&[
            Step(at + 11_000, true, ACK, 1, 1, 500),
            Step(at + 21_000, false, ACK, 1, 501, 0),
        ]);
        for (_, packet) in &mut maker.packets[before..] {
            for place in [15, 19] {
                packet[place] = if packet[place] == 1 { opener } else { answerer };
            }
        }
        at += 50_000;
    }
    let summary = import(&maker.pcap()).1.expect("three connections");
    assert_eq!((summary.connections, summary.back), (3, 0));
    assert_eq!(
        noted(
            &summary,
            "connection was between hosts of one side (hosts 0 and 2)"
        ),
        1
    );
    assert!(
        (summary.sideless_share - 1.0 / 3.0).abs() < 1e-9,
        "{}",
        summary.sideless_share
    );
}

#[test]
fn an_ack_on_its_way_holds_small_segments_too() {
    // Captured at the server, 40 ms away: it acknowledges at once, but the client cannot know of it before 40 ms are over.
    let unheld = |gap: u64| {
        let mut maker = Maker::new();
        maker.add(&[
            Step(0, true, SYN, 0, 0, 0),
            Step(10, false, SYN | ACK, 0, 1, 0),
            Step(40_010, true, ACK, 1, 1, 0),
        ]);
        for number in 0..5 {
            let (at, seq) = (50_000 + u64::from(number) * gap, 1 + 100 * number);
            maker.add(&[
                Step(at, true, ACK, seq, 1, 100),
                Step(at + 20, false, ACK, 1, seq + 100, 0),
            ]);
        }
        import(&maker.pcap()).1.expect("a connection").unheld
    };
    assert_eq!(unheld(15_000), 4);
    assert_eq!(
        unheld(40_020),
        0,
        "each may have waited for the ACK of the one before"
    );
}

/// Questions of a client 5 ms away, each as soon as the answer before is there, `think` us of waiting at the server, seen at the client or at
/// the server. No packet waits in a queue, and every ACK rides on data.
fn without_pause(at_client: bool, think: u32, pause: u32, count: u32) -> Maker {
    let way = 2_500;
    let mut maker = Maker::new();
    let [up, down] = if at_client { [0, 2 * way] } else { [way, way] };
    let back = if at_client { 2 * way } else { way };
    maker.add(&[
        Step(u64::from(up), true, SYN, 0, 0, 0),
        Step(u64::from(down), false, SYN | ACK, 0, 1, 0),
        Step(u64::from(up + 2 * way), true, ACK, 1, 1, 0),
    ]);
    let mut now = u64::from(2 * way);
    for number in 0..count {
        let said = 1 + 300 * number;
        maker.add(&[
            Step(now + u64::from(up), true, ACK, said, said, 300),
            Step(now + u64::from(back + think), false, ACK, said, said + 300, 300),
        ]);
        now += u64::from(2 * way + think + pause);
    }
    maker
}

#[test]
fn what_applications_take_is_no_travel_time_though_their_data_carry_the_acks() {
    for (at_client, think, pause) in [
        (true, 10_000, 0),
        (true, 30_000, 0),
        (false, 0, 12_000),
        (false, 9_000, 12_000),
    ] {
        let (vectors, summary) = import(&without_pause(at_client, think, pause, 300).pcap());
        let summary = summary.expect("a capture");
        let said = &vectors[0].units[1..599];
        for unit in said {
            let wait = if unit.opener { pause } else { think };
            assert_eq!(unit.wait_us, u64::from(wait), "{at_client} {think} {pause}");
        }
        let exchange = summary.exchange_s.expect("exchanges");
        assert!((exchange.p50 - 0.005).abs() < 1e-4, "{exchange:?}");
        for rate in summary.rate {
            assert!(!rate.basis.is_estimate(), "{rate:?}");
        }
    }
}

#[test]
fn two_captures_in_one_interface_are_not_believed() {
    let merged = |apart: u64, id: u16| {
        let maker = without_pause(true, 10_000, 0, 60);
        let mut packets = maker.packets.clone();
        packets.extend(maker.packets.iter().map(|(at, packet)| {
            let mut packet = packet.clone();
            packet[8] -= 1; // another router
            packet[4] ^= id as u8;
            (at + apart, packet)
        }));
        packets.sort_by_key(|packet| packet.0);
        import(&pcap(101, &packets)).1
    };
    let refused = merged(2_400, 0).expect_err("twice");
    assert!(
        refused.contains("nearly every packet is in it twice") && refused.contains("mergecap -I none"),
        "{refused}"
    );
    assert!(merged(100, 0).is_ok(), "copies on one wire are left out");
    assert!(merged(2_400, 1).is_ok(), "others that only look alike");
}

#[test]
fn options_that_were_cut_off_are_reported() {
    let cut = |kept: usize| {
        let mut maker = without_pause(true, 10_000, 0, 10);
        for (_, packet) in &mut maker.packets {
            if u16::from_be_bytes([packet[2], packet[3]]) > 60 {
                // Twelve bytes of options, timestamps among them.
                let options = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1];
                packet.splice(40..40, options);
                packet[32] = 8 << 4;
                packet.truncate(40 + kept);
            }
        }
        import(&maker.pcap()).1.expect("a capture")
    };
    assert_eq!(noted(&cut(0), "options that the capture cut off"), 20);
    assert_eq!(noted(&cut(12), "options that the capture cut off"), 0);
}

/// The packet with these options, a multiple of four bytes.
fn with_options(packet: &[u8], options: &[u8]) -> Vec<u8> {
    let length = u16::from_be_bytes([packet[2], packet[3]]) + options.len() as u16;
    let mut packet = packet.to_vec();
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[32] += (options.len() as u8 / 4) << 4;
    packet.extend_from_slice(options);
    packet
}

#[test]
fn segments_that_came_twice_were_not_lost() {
    // Ten questions, each sent again after 300 ms; of the last four only the answer was late, and the server reports that they came twice.
    let mut maker = Maker::new();
    maker.shake(0, 60_000);
    for number in 0..10 {
        let (at, said) = (100_000 + 1_000_000 * u64::from(number), 1 + 100 * number);
        maker.add(&[
            Step(at, true, ACK, said, said, 100),
            Step(at + 300_000, true, ACK, said, said, 100),
            Step(at + 360_000, false, ACK, said, said + 100, 0),
        ]);
        if number >= 6 {
            let last = maker.packets.len() - 1;
            let [from, to] = [said, said + 100].map(|edge| (1_000 + edge).to_be_bytes());
            let options = [&[1, 1, 5, 10][..], &from, &to].concat();
            maker.packets[last].1 = with_options(&maker.packets[last].1, &options);
        }
        maker.add(&[
            Step(at + 361_000, false, ACK, said, said + 100, 100),
            Step(at + 361_100, true, ACK, said + 100, said + 100, 0),
        ]);
    }
    let (vectors, summary) = import(&maker.pcap());
    let segments = summary.expect("a capture").segments[0];
    assert_eq!((segments.segments, segments.retransmitted), (20, 10));
    // Six were lost.
    assert_eq!(vectors[0].loss, [0.3, 0.0]);
}

#[test]
fn waits_next_to_losses_are_told_apart() {
    // Captured at the client: every 4 ms a segment by the server's clock. Forty times they wait longer and longer, up to 80 ms; then one is lost, and
    // comes again later. Ten packets in a row are late by 200 ms.
    let mut maker = Maker::new();
    maker.shake(0, 20_000).add(&[Step(20_000, true, ACK, 1, 1, 100)]);
    let stamps = |ticks: u64| {
        let ticks = (ticks as u32).to_be_bytes();
        [&[1, 1, 8, 10][..], &ticks, &[0, 0, 0, 1]].concat()
    };
    let mut seq = 1;
    let mut packets = Vec::new();
    for round in 0..40_u64 {
        for number in 0..10_u64 {
            let sent_ms = 100 + 160 * round + 4 * number + if round > 20 { 200 } else { 0 };
            let late_ms = if round == 20 { 200 } else { 8 * (number + 1) };
            if number == 9 {
                seq += 1000; // lost before this one
            }
            let step = Step((sent_ms + late_ms) * 1000, false, ACK, seq, 101, 1000);
            packets.push((step.0, with_options(&maker.ip(step), &stamps(sent_ms))));
            if number == 9 {
                let again = Step((sent_ms + 7 + late_ms) * 1000, false, ACK, seq - 1000, 101, 1000);
                packets.push((again.0, with_options(&maker.ip(again), &stamps(sent_ms + 7))));
            }
            seq += 1000;
        }
    }
    packets.sort_by_key(|packet| packet.0);
    maker.packets.extend(packets);
    let summary = import(&maker.pcap()).1.expect("a capture");
    let at_loss = summary.wait_at_loss_s[1].expect("losses");
    assert!(
        at_loss.n >= 38 && (at_loss.p50 - 0.072).abs() < 0.009,
        "{at_loss:?}"
    );
    assert!(summary.queue_s[1] > Some(0.18), "{:?}", summary.queue_s);
}

#[test]
fn a_capture_that_begins_within_a_transfer_says_what_its_queue_hides() {
    let begun = |late: u64, opened: bool| {
        let mut maker = Maker::new();
        if opened {
            maker.shake(0, 20_000).add(&[Step(20_000, true, ACK, 1, 1, 100)]);
        }
        for number in 0..300_u32 {
            let at = 100_000 + 2_000 * u64::from(number);
            let said = 1 + 1000 * number;
            // Data wait in turn for nothing and for so long.
            let wait = late * u64::from(number % 2);
            let step = Step(at + wait, false, ACK, said, 101, 1000);
            let options = [
                &[1, 1, 8, 10][..],
                &(at as u32 / 1000).to_be_bytes(),
                &[0, 0, 0, 1],
            ]
            .concat();
            let packet = with_options(&maker.ip(step), &options);
            maker.packets.push((step.0, packet));
            maker.add(&[Step(at + wait + 100, true, ACK, 101, said + 1000, 0)]);
        }
        maker.packets.sort_by_key(|packet| packet.0);
        import(&maker.pcap()).1.expect("a capture")
    };
    let hint = "the queue may have been full from the first packet on";
    assert_eq!(noted(&begun(50_000, false), hint), 1);
    assert_eq!(noted(&begun(50_000, true), hint), 0);
    assert_eq!(noted(&begun(0, false), hint), 0, "nothing waited");
}

/// Two exchanges at a client 40 ms away: 100 bytes and 3000 in three segments, twice; without the packets with these numbers.
fn without(missed: &[usize]) -> Maker {
    let mut maker = Maker::new();
    maker.shake(0, 40_000).add(&[
        Step(42_000, true, ACK, 1, 1, 100),
        Step(82_000, false, ACK, 1, 101, 1000),
        Step(82_100, false, ACK, 1001, 101, 1000),
        Step(82_200, false, ACK, 2001, 101, 1000),
        Step(82_300, true, ACK, 101, 3001, 0),
        Step(182_000, true, ACK, 101, 3001, 100),
        Step(222_000, false, ACK, 3001, 201, 1000),
        Step(222_100, false, ACK, 4001, 201, 1000),
        Step(222_200, false, ACK, 5001, 201, 1000),
        Step(222_300, true, ACK, 201, 6001, 0),
        Step(322_000, true, FIN | ACK, 201, 6001, 0),
        Step(362_000, false, FIN | ACK, 6001, 202, 0),
        Step(362_100, true, ACK, 202, 6002, 0),
    ]);
    for number in missed.iter().rev() {
        maker.packets.remove(*number);
    }
    maker
}

#[test]
fn what_the_capture_missed_belongs_to_the_turn_in_which_it_was_said() {
    let said = [(true, 100), (false, 3000), (true, 100), (false, 3000)];
    for (missed, gaps, what) in [
        (&[][..], 0, "nothing"),
        (&[5], 1, "a segment within the first answer"),
        (&[6], 1, "the last segment of the first answer"),
        (&[5, 6], 1, "two of its segments"),
        (&[8], 1, "the second request"),
        (&[9, 10, 11], 1, "the second answer"),
        (&[11], 1, "the last segment of all"),
        (
            &[11, 12],
            1,
            "and its ACK, so that only that of the FIN covers it",
        ),
        (&[6, 8, 11], 3, "one of each"),
    ] {
        let (vectors, summary) = import(&without(missed).pcap());
        let summary = summary.expect("a capture");
        let units = &vectors[0].units;
        let data = units.iter().filter(|unit| unit.bytes > 0);
        let data: Vec<(bool, u64)> = data.map(|unit| (unit.opener, unit.bytes)).collect();
        assert_eq!(data, said, "{what}");
        assert_eq!(noted(&summary, "the capture missed packets"), gaps, "{what}");
        assert_eq!(noted(&summary, "open when it ended"), 0, "{what}");
        assert_eq!(summary.segments.map(|sent| sent.retransmitted), [0, 0], "{what}");
    }
    // The capture ends with the ACK of a segment that it missed.
    let mut maker = without(&[11]);
    maker.packets.truncate(12);
    let (vectors, summary) = import(&maker.pcap());
    assert_eq!(vectors[0].bytes(), [200, 6000]);
    assert_eq!(noted(&summary.expect("a capture"), "open when it ended"), 1);
}

#[test]
fn data_that_come_behind_their_ack_were_not_missed() {
    // Of two interfaces: the answer's last segment is read after its ACK, and the second request after its answer began.
    for (first, second) in [(6, 7), (8, 9)] {
        let mut maker = without(&[]);
        maker.packets.swap(first, second);
        let (vectors, summary) = import(&maker.pcap());
        let summary = summary.expect("a capture");
        assert_eq!(vectors[0].bytes(), [200, 6000]);
        assert_eq!(noted(&summary, "the capture missed packets"), 0, "{first}");
        assert_eq!(summary.segments.map(|sent| sent.retransmitted), [0, 0], "{first}");
    }
}
