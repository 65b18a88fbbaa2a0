//! Marks and gaps.

use crate::rules::{
    State, ff_marker_next, ff_marker_obstacle, ff_marker_size, ff_marker_write, ff_spread_gap_ns,
};
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::superpacket::group::{Declare, Grouper, Grouping, Mode};
use fleetfoot_core::superpacket::marker::{Obstacle, obstacle};
use fleetfoot_core::time::Instant;

/// Layouts A and B, every length, FINs in every place: the bytes of the header are those of `core`'s sender.
#[test]
fn every_packet_has_the_mark_of_core() {
    let mut packets = 0;
    for seed in 0..200_u64 {
        let mut rng = Rng::from_seed(seed);
        let dscp = if seed % 3 == 0 { 0 } else { 1 + rng.below(63) as u8 };
        let layout = if dscp == 0 { Layout::A } else { Layout::B { dscp } };
        let length = 1 + rng.below(63) as u8;
        let draws = Rng::from_seed(seed + 1);
        let mut random = draws.clone();
        let grouping = Grouping {
            mode: Mode::Fixed,
            layout,
            max: length,
            declare: Declare::Truth,
        };
        let mut grouper = Grouper::new(grouping, draws);
        let mut marker = State::new(ff_marker_size());
        let mut followers = 0;
        for _ in 0..500 {
            let fin = rng.below(20) == 0;
            let tos = rng.below(256) as u8;
            let segment = Segment {
                payload: 1448,
                overhead: 40,
                tos,
                flags: Flags::ACK
                    .with(Flags::DF)
                    .with(if fin { Flags::FIN } else { Flags::default() }),
                ..Segment::default()
            };
            grouper.on_packet(Instant::ZERO, segment);
            let expected = grouper
                .poll_transmit(Instant::ZERO)
                .expect("it holds nothing back")
                .packet;
            let drawn = random.clone().next_u32();
            let said = ff_marker_next(&mut marker, length, i32::from(fin), drawn, layout.max_id());
            let (mark, id) = ((said >> 16) as u8, said as u16);
            if mark & 0x80 != 0 {
                random.next_u32();
                followers += 1;
            }
            let (tos, ip_id) = if mark == 0 {
                (tos, 0)
            } else {
                let written = ff_marker_write(mark, id, tos, dscp);
                ((written >> 16) as u8, written as u16)
            };
            assert_eq!((tos, ip_id), (expected.tos, expected.ip_id), "seed {seed}");
            packets += 1;
        }
        assert!(followers > 0 || length < 2);
    }
    println!("{packets} packets");
}

/// Every type of service, with and without DF, and every codepoint: the program leaves alone what core's marker does.
#[test]
fn what_keeps_a_packet_from_being_marked_is_what_core_says() {
    for dscp in 0..64 {
        let layout = if dscp == 0 { Layout::A } else { Layout::B { dscp } };
        for tos in 0..=255 {
            for df in [Flags::default(), Flags::DF] {
                let segment = Segment {
                    tos,
                    flags: Flags::ACK.with(df),
                    ..Segment::default()
                };
                let expected = match obstacle(layout, &segment) {
                    None => 0,
                    Some(Obstacle::Marked | Obstacle::TrafficClass) => 1,
                    Some(Obstacle::Fragmentable) => 2,
                    Some(Obstacle::Urgent) => panic!("of layout C"),
                };
                let said = ff_marker_obstacle(tos, i32::from(df == Flags::DF), dscp);
                assert_eq!(said, expected, "{layout:?}, type of service {tos:#x}");
            }
        }
    }
}

/// 100 ms and 20 segments: 5 ms, so the bound; a window of 30 of that path: 3.3 ms, which is below the tick.
#[test]
fn gaps_are_the_share_of_the_round_trip_within_the_bounds_of_the_draft() {
    assert_eq!(ff_spread_gap_ns(8 * 100_000, 20), 4_000_000);
    assert_eq!(ff_spread_gap_ns(8 * 80_000, 20), 4_000_000);
    assert_eq!(ff_spread_gap_ns(8 * 79_999, 20), 0);
    assert_eq!(ff_spread_gap_ns(8 * 100_000, 30), 0);
    assert_eq!(ff_spread_gap_ns(0, 0), 0);
}
