//! Late originals beside retransmissions.

use super::{Maker, Step, import, noted, with_options};
use crate::import::link_layer::ACK;

/// Segments of 1000 bytes captured at a client 80 ms away: when each comes (us), its number, and when it was sent by its sender's clock (ms); with or without
/// timestamps. Retransmitted segments and those that came out of order.
fn counted(segments: &[(u64, u32, u32)], stamped: bool) -> (u64, u64) {
    let mut maker = Maker::new();
    maker.shake(0, 80_000);
    let mut stamp = |step: Step, ticks: u32| {
        let packet = maker.ip(step);
        let packet = match stamped {
            true => {
                let ticks = ticks.to_be_bytes();
                with_options(&packet, &[&[1, 1, 8, 10][..], &ticks, &[0, 0, 0, 1]].concat())
            }
            false => packet,
        };
        maker.packets.push((step.0, packet));
    };
    stamp(Step(80_000, true, ACK, 1, 1, 100), 5);
    for &(at, number, sent_ms) in segments {
        stamp(Step(at, false, ACK, 1 + 1000 * number, 101, 1000), sent_ms);
    }
    let summary = import(&maker.pcap()).1.expect("a capture");
    (summary.segments[1].retransmitted, noted(&summary, "out of order"))
}

/// A clock never goes back (RFC 7323 4.1), so that an original is never younger than what was sent behind it, and a retransmission, which the
/// acknowledgments of that cause, is.
#[test]
fn an_original_is_older_than_what_overtook_it() {
    // The second one is late by 60 ms, less than its sender needs to hear of it: first the original comes, then what its sender sent again.
    let late = [
        (160_000, 0, 700),
        (160_200, 2, 700),
        (160_300, 3, 701),
        (220_100, 1, 700),
        (240_400, 1, 780),
        (241_000, 4, 781),
    ];
    assert_eq!(counted(&late, true), (1, 1));
    // Without timestamps what comes within a round-trip time of the hole is the original, what has nothing new is none.
    assert_eq!(counted(&late, false), (1, 1));
    // By 100 ms: what was sent again is first.
    let later = [
        (160_000, 0, 700),
        (160_200, 2, 700),
        (160_300, 3, 701),
        (240_400, 1, 780),
        (260_100, 1, 700),
        (261_000, 4, 790),
    ];
    assert_eq!(counted(&later, true), (1, 1));
    assert_eq!(counted(&later, false), (2, 0), "nothing shows it");
    // It was lost, and is sent again by a timer that was not caused by what is seen: soon behind the hole, and younger.
    let lost = [
        (160_000, 0, 700),
        (190_000, 2, 701),
        (200_000, 1, 730),
        (200_100, 3, 731),
    ];
    assert_eq!(counted(&lost, true), (1, 0));
    // In one tick of a clock nothing is older.
    let tick = [(160_000, 0, 700), (160_200, 2, 700), (220_100, 1, 700)];
    assert_eq!(counted(&tick, true), (0, 1));
    let tick = [(160_000, 0, 700), (160_200, 2, 700), (250_100, 1, 700)];
    assert_eq!(counted(&tick, true), (1, 0), "a clock of ticks as long as that");
}
