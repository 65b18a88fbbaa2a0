//! Flows made by hand over a link of 10 ms one way, of which everything is known.

use super::{Flow, Flows, Incomplete, Passage, Seen};
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::wire;

const MS: u64 = 1_000_000;
/// One way.
const WAY: u64 = 10 * MS;

struct Link(Flows);

impl Link {
    fn new() -> Link {
        Link(Flows::default())
    }

    /// A segment from the command or to it that arrives, or is dropped where it came.
    fn send(&mut self, at: u64, by_command: bool, segment: &Segment, dropped: bool) {
        let (own, other) = ("100.64.0.2:40000", "100.64.0.1:80");
        let (source, destination) = if by_command { (own, other) } else { (other, own) };
        let address = |text: &str| text.parse().expect("an address");
        let mut frame = vec![0; 14 + 2000];
        frame[12] = 8;
        let payload = vec![0; segment.payload as usize];
        let length = wire::encode(
            &mut frame[14..],
            segment,
            address(source),
            address(destination),
            &payload,
        )
        .expect("it fits");
        self.pass(at, by_command, &frame[..14 + length], dropped);
    }

    fn pass(&mut self, at: u64, by_command: bool, frame: &[u8], dropped: bool) {
        let length = frame.len() as u32;
        let kept = &frame[..frame.len().min(96)];
        self.0.on_frame(at, by_command, Passage::Entered, kept, length);
        match dropped {
            true => self.0.on_frame(at, by_command, Passage::Dropped, kept, length),
            false => self.0.on_frame(at + WAY, by_command, Passage::Left, kept, length),
        }
    }

    fn only(self) -> Flow {
        let Seen { flows, total, .. } = self.0.finish();
        assert_eq!(total, 1, "{flows:?}");
        flows.into_iter().next().expect("it is kept")
    }
}

fn segment(flags: Flags, seq: u32, ack: u32, payload: u32) -> Segment {
    Segment {
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        payload,
        ttl: 64,
        window: 60_000,
        ..Segment::default()
    }
}

#[test]
fn a_connection_that_did_not_come_about_says_why() {
    let mut link = Link::new();
    link.send(0, true, &segment(Flags::SYN, 1000, 0, 0), false);
    link.send(
        WAY,
        false,
        &segment(Flags::RST.with(Flags::ACK), 0, 1001, 0),
        false,
    );
    let flow = link.only();
    assert_eq!(
        (flow.incomplete, flow.completion_s),
        (Some(Incomplete::Refused), None)
    );
    let mut link = Link::new();
    for second in [0, 1, 3] {
        link.send(
            second * 1000 * MS,
            true,
            &segment(Flags::SYN, 1000, 0, 0),
            second == 1,
        );
    }
    assert_eq!(link.only().incomplete, Some(Incomplete::Unanswered));
    // Nothing was to be said.
    let mut link = Link::new();
    link.send(0, true, &segment(Flags::SYN, 1000, 0, 0), false);
    link.send(
        WAY,
        false,
        &segment(Flags::SYN.with(Flags::ACK), 5000, 1001, 0),
        false,
    );
    link.send(2 * WAY, true, &segment(Flags::ACK, 1001, 5001, 0), false);
    assert_eq!(link.only().incomplete, Some(Incomplete::NoData));
}

/// A request of 100 bytes at 30 ms, after a handshake from 0 to 20 ms.
fn asked() -> Link {
    let mut link = Link::new();
    link.send(0, true, &segment(Flags::SYN, 1000, 0, 0), false);
    link.send(
        WAY,
        false,
        &segment(Flags::SYN.with(Flags::ACK), 5000, 1001, 0),
        false,
    );
    link.send(2 * WAY, true, &segment(Flags::ACK, 1001, 5001, 0), false);
    link.send(3 * WAY, true, &segment(Flags::ACK, 1001, 5001, 100), false);
    link
}

#[test]
fn a_download_with_a_lost_tail() {
    let mut link = asked();
    // Three segments of the answer from 40 ms on, the last of which is dropped and sent again 200 ms later.
    for (number, dropped) in [(0, false), (1, false), (2, true)] {
        let data = segment(Flags::ACK, 5001 + 1000 * number, 1101, 1000);
        link.send(40 * MS + u64::from(number) * MS, false, &data, dropped);
    }
    link.send(51 * MS, true, &segment(Flags::ACK, 1101, 7001, 0), false);
    link.send(240 * MS, false, &segment(Flags::ACK, 7001, 1101, 1000), false);
    link.send(250 * MS, true, &segment(Flags::ACK, 1101, 8001, 0), false);
    let fin = Flags::FIN.with(Flags::ACK);
    link.send(260 * MS, false, &segment(fin, 8001, 1101, 0), false);
    link.send(270 * MS, true, &segment(fin, 1101, 8002, 0), false);
    link.send(280 * MS, false, &segment(Flags::ACK, 8002, 1102, 0), false);
    let flow = link.only();
    assert_eq!(
        (
            flow.protocol.as_str(),
            flow.by_command,
            flow.source.as_str(),
            flow.destination.as_str()
        ),
        ("tcp", true, "100.64.0.2:40000", "100.64.0.1:80")
    );
    // From the SYN to the arrival of the last byte.
    assert_eq!((flow.completion_s, flow.completed), (Some(0.25), Some(true)));
    assert_eq!(flow.handshake_rtt_s, Some(0.02));
    assert_eq!(
        (
            flow.received.payload_bytes,
            flow.received.segments,
            flow.received.retransmits,
            flow.received.dropped
        ),
        (3000, 4, 1, 1)
    );
    assert_eq!(
        (flow.sent.payload_bytes, flow.sent.retransmits, flow.sent.dropped),
        (100, 0, 0)
    );
    // The request took 20 ms to its acknowledgment at 50 ms; of the answer, two segments were acknowledged at 61 ms, the newest
    // 20 ms after it was sent. What was sent again has no sample (Karn).
    let rtt = flow.rtt.expect("there was data");
    assert_eq!((rtt.n, rtt.min_s, rtt.max_s), (2, 0.02, 0.02));
}

#[test]
fn a_connection_that_is_cut_off_is_not_completed() {
    let mut link = asked();
    link.send(40 * MS, false, &segment(Flags::ACK, 5001, 1101, 1000), false);
    link.send(
        60 * MS,
        true,
        &segment(Flags::RST.with(Flags::ACK), 1101, 6001, 0),
        false,
    );
    assert_eq!(link.only().incomplete, Some(Incomplete::Reset));
    // The reader closed, and answered what came after with a reset: the writer was not done.
    let mut link = asked();
    link.send(40 * MS, false, &segment(Flags::ACK, 5001, 1101, 1000), false);
    link.send(
        50 * MS,
        true,
        &segment(Flags::FIN.with(Flags::ACK), 1101, 6001, 0),
        false,
    );
    link.send(60 * MS, false, &segment(Flags::ACK, 6001, 1102, 1000), false);
    link.send(70 * MS, true, &segment(Flags::RST, 1102, 0, 0), false);
    assert_eq!(link.only().incomplete, Some(Incomplete::Reset));
    // After the writer's FIN a reset takes nothing away.
    let mut link = asked();
    link.send(
        40 * MS,
        false,
        &segment(Flags::FIN.with(Flags::ACK), 5001, 1101, 1000),
        false,
    );
    link.send(
        60 * MS,
        true,
        &segment(Flags::RST.with(Flags::ACK), 1101, 6002, 0),
        false,
    );
    assert_eq!(link.only().incomplete, None);
    let mut link = asked();
    link.send(40 * MS, false, &segment(Flags::ACK, 5001, 1101, 1000), true);
    let flow = link.only();
    assert_eq!(
        (flow.completed, flow.incomplete),
        (Some(false), Some(Incomplete::DataMissing))
    );
    assert_eq!(
        flow.completion_s,
        Some(0.04),
        "the last that did arrive was the request"
    );
}

#[test]
fn other_protocols_are_packets_and_bytes() {
    let mut link = Link::new();
    let mut datagram = |at, by_command: bool, protocol: u8, first: u8| {
        let mut frame = vec![0; 14 + 20 + 8 + 100];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&128_u16.to_be_bytes());
        frame[22..24].copy_from_slice(&[64, protocol]);
        let (from, to) = if by_command { (2, 1) } else { (1, 2) };
        frame[26..30].copy_from_slice(&[100, 64, 0, from]);
        frame[30..34].copy_from_slice(&[100, 64, 0, to]);
        let ports: [u16; 2] = if by_command { [5000, 443] } else { [443, 5000] };
        frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
        frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
        frame[42..47].copy_from_slice(&[first, 0, 0, 0, 1]);
        link.pass(at, by_command, &frame, false);
    };
    datagram(0, true, 17, 0xc3);
    datagram(20 * MS, false, 17, 0x40);
    datagram(30 * MS, true, 17, 0x40);
    datagram(40 * MS, true, 1, 0);
    link.pass(50 * MS, true, &[0xff; 60], false);
    let Seen {
        flows, other_frames, ..
    } = link.0.finish();
    let [quic, icmp] = &flows[..] else {
        panic!("two flows: {flows:?}");
    };
    assert_eq!((quic.protocol.as_str(), icmp.protocol.as_str()), ("quic", "icmp"));
    assert_eq!(
        (quic.sent.packets, quic.sent.bytes, quic.received.packets),
        (2, 256, 1)
    );
    assert_eq!((quic.start_s, quic.end_s), (0.0, 0.04));
    assert_eq!((quic.destination.as_str(), other_frames), ("100.64.0.1:443", 1));
}

#[test]
fn memory_is_bounded() {
    let mut flows = Flows::new(2, 3);
    for port in 0..10_u16 {
        let mut frame = vec![0; 14 + 2000];
        frame[12] = 8;
        let syn = segment(Flags::SYN, 1, 0, 0);
        let source = format!("100.64.0.2:{}", 1000 + port).parse().expect("an address");
        let destination = "100.64.0.1:80".parse().expect("an address");
        let length = wire::encode(&mut frame[14..], &syn, source, destination, &[]).expect("it fits");
        let frame = &frame[..14 + length];
        flows.on_frame(u64::from(port), true, Passage::Entered, frame, frame.len() as u32);
    }
    let seen = flows.finish();
    assert_eq!((seen.flows.len(), seen.total), (3, 10));
}
