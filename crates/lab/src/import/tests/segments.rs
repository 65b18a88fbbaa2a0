//! What is a full segment, and what an end had to send when it sent one that was not.

use super::{Maker, Step, import, noted, unit};
use crate::import::link_layer::{ACK, PSH, SYN};
use crate::workload::vectors::Unit;

/// The SYN, or SYN-ACK, with this maximum segment size.
fn set_mss(packet: &mut [u8], mss: u16) {
    let option = packet.len() - 2;
    packet[option..].copy_from_slice(&mss.to_be_bytes());
}

/// A client 40 ms away, captured there: `options` of client and server; whether its request has PSH.
fn shaken(options: [u16; 2], push: bool) -> Maker {
    let mut maker = Maker::new();
    maker.shake(0, 40_000);
    for (packet, mss) in maker.packets.iter_mut().zip(options) {
        set_mss(&mut packet.1, mss);
    }
    let push = if push { PSH } else { 0 };
    maker.add(&[Step(40_000, true, ACK | push, 1, 1, 200)]);
    maker
}

/// Slow start of an answer: 10, 20 and 40 segments of `payload` bytes, a round-trip time apart, and 300 bytes. With `groups` the last segment of each
/// round has PSH, as with segmentation offload, else none has.
fn slow_start(options: [u16; 2], payload: u32, groups: bool) -> Vec<Unit> {
    let mut maker = shaken(options, groups);
    let last = if groups { PSH } else { 0 };
    let mut seq = 1;
    for (round, segments) in [10_u32, 20, 40].into_iter().enumerate() {
        let at = 80_000 + 40_500 * round as u64;
        for number in 0..segments {
            let push = if number + 1 == segments { last } else { 0 };
            maker.add(&[Step(
                at + 10 * u64::from(number),
                false,
                ACK | push,
                seq,
                201,
                payload,
            )]);
            seq += payload;
        }
        if round == 2 {
            maker.add(&[Step(at + 500, false, ACK | last, seq, 201, 300)]);
            seq += 300;
        }
        maker.add(&[Step(at + 500, true, ACK, 201, seq, 0)]);
    }
    import(&maker.pcap()).0[0].units.clone()
}

/// RFC 9293 3.7.1: the option bounds what the other end may send; no end sends more than its own interface carries.
#[test]
fn a_segment_is_full_by_what_both_ends_take() {
    for (options, payload) in [
        ([1460, 1460], 1460),
        ([1460, 8961], 1460), // a server with jumbo frames
        ([1460, 1492], 1460),
        ([1380, 1460], 1380), // a client behind a tunnel
        ([1460, 1380], 1380), // a server in one
    ] {
        let said = slow_start(options, payload, false);
        let answer = unit(false, 0, 70 * u64::from(payload) + 300);
        assert_eq!(said, [unit(true, 0, 200), answer], "{options:?}");
    }
}

/// RFC 1191: the path carries less than both ends. RFC 9293 MUST-61: what has no PSH is not the last that was queued, so it was cut.
#[test]
fn a_segment_is_full_by_what_the_path_carries() {
    let said = slow_start([1460, 1460], 1348, true);
    assert_eq!(said, [unit(true, 0, 200), unit(false, 0, 70 * 1348 + 300)]);
    // Linux with a smaller `advmss` on its route: the option bounds what it gets, not what it sends.
    let said = slow_start([1460, 536], 1460, true);
    assert_eq!(said, [unit(true, 0, 200), unit(false, 0, 70 * 1460 + 300)]);
}

/// Linux `tcp_mss_split_point`: a segment that the window cuts has the rest of the window, whatever that is.
#[test]
fn a_wait_for_the_window_is_no_pause() {
    for at_client in [true, false] {
        let mut maker = Maker::new();
        maker.window = 16_384;
        let [up, down] = if at_client { [0, 40_000] } else { [20_000, 20_000] };
        maker.add(&[
            Step(up, true, SYN, 0, 0, 0),
            Step(down, false, SYN | ACK, 0, 1, 0),
            Step(40_000 + up, true, ACK, 1, 1, 0),
            Step(40_000 + up, true, ACK, 1, 1, 200),
        ]);
        let mut seq = 1;
        for round in 0..3 {
            let at = 40_000 + down + 41_000 * round;
            for number in 0..12 {
                let payload = if number == 11 { 16_384 - 11 * 1460 } else { 1460 };
                maker.add(&[Step(at + 10 * number, false, ACK | PSH, seq, 201, payload)]);
                seq += payload;
            }
            // The next data passes 40 ms after it, or at once.
            let acknowledged = at + if at_client { 1000 } else { 41_000 };
            maker.add(&[Step(acknowledged, true, ACK, 201, seq, 0)]);
        }
        let at = 40_000 + down + 41_000 * 3;
        maker.add(&[
            Step(at, false, ACK | PSH, seq, 201, 700),
            // The window was open, and nothing was there.
            Step(at + 30_000, false, ACK | PSH, seq + 700, 201, 500),
        ]);
        maker.packets.sort_by_key(|packet| packet.0);
        let (vectors, summary) = import(&maker.pcap());
        assert_eq!(
            noted(&summary.expect("a capture"), "window held its sender back"),
            3
        );
        let said = vectors[0].units.clone();
        assert_eq!(
            said,
            [
                unit(true, 0, 200),
                unit(false, 0, 3 * 16_384 + 700),
                unit(false, 30_000, 500)
            ],
            "at the client: {at_client}"
        );
    }
}

/// From the fourth on each message ends at an edge that was announced with the message four before it. The sender knew of later ones long since.
#[test]
fn messages_whose_size_divides_the_window_do_not_wait_for_it() {
    let mut maker = Maker::new();
    maker.window = 16_384;
    maker.add(&[
        Step(0, true, SYN, 0, 0, 0),
        Step(20_000, false, SYN | ACK, 0, 1, 0),
        Step(20_010, true, ACK, 1, 1, 0),
        Step(20_020, true, ACK, 1, 1, 200),
    ]);
    let (mut at, mut seq) = (60_000, 1);
    for _ in 0..12 {
        for payload in [1460, 1460, 1176] {
            maker.add(&[Step(at, false, ACK | PSH, seq, 201, payload)]);
            seq += payload;
        }
        maker.add(&[Step(at + 10, true, ACK, 201, seq, 0)]);
        at += 200_000;
    }
    let (vectors, summary) = import(&maker.pcap());
    assert_eq!(vectors[0].units.len(), 13);
    assert_eq!(
        noted(&summary.expect("a capture"), "window held its sender back"),
        0
    );
}

/// Each message ends where the window does, which opens again at once: then the sender has nothing to send for 200 ms.
#[test]
fn a_pause_after_the_window_opened_is_one_of_the_application() {
    let mut maker = Maker::new();
    maker.window = 16_384;
    maker.add(&[
        Step(0, true, SYN, 0, 0, 0),
        Step(20_000, false, SYN | ACK, 0, 1, 0),
        Step(20_010, true, ACK, 1, 1, 0),
        Step(20_020, true, ACK, 1, 1, 200),
    ]);
    let (mut at, mut seq) = (60_000, 1);
    for _ in 0..6 {
        for payload in [1460; 11].into_iter().chain([324]) {
            maker.add(&[Step(at, false, ACK | PSH, seq, 201, payload)]);
            seq += payload;
        }
        maker.add(&[Step(at + 10, true, ACK, 201, seq, 0)]);
        at += 200_000;
    }
    let (vectors, summary) = import(&maker.pcap());
    assert_eq!(vectors[0].units.len(), 7, "{:?}", vectors[0].units);
    assert_eq!(
        noted(&summary.expect("a capture"), "window held its sender back"),
        0
    );
}

/// RFC 9293 MUST-61: the last segment that is queued has PSH.
#[test]
fn an_end_that_had_more_to_send_does_not_pause() {
    let said = |push: u8| {
        let mut maker = shaken([1460, 1460], true);
        maker.add(&[
            Step(80_000, false, ACK, 1, 201, 1460),
            Step(80_100, false, ACK | push, 1461, 201, 616),
            Step(80_200, true, ACK, 201, 2077, 0),
            Step(120_100, false, ACK, 2077, 201, 1460),
            Step(120_200, false, ACK | PSH, 3537, 201, 300),
            Step(120_300, true, ACK, 201, 3837, 0),
        ]);
        import(&maker.pcap()).0[0].units.clone()
    };
    assert_eq!(said(0), [unit(true, 0, 200), unit(false, 0, 3836)]);
    assert_eq!(
        said(PSH),
        [
            unit(true, 0, 200),
            unit(false, 0, 2076),
            unit(false, 40_000, 1760)
        ],
        "all that it had"
    );
}
