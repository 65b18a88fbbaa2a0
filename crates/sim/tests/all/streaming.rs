//! Video players on a line that was worked out by hand: see `traffic.rs` for the times.

use crate::line::{one, outcome, times};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::spec::{Streaming, Traffic};

fn player(kbit_s: u64, segment_ms: u64, buffer_ms: u64, start_ms: u64) -> Traffic {
    Traffic::Streaming(Box::new(Streaming {
        count: 1,
        bitrate: Rate::from_bps(1_000 * kbit_s),
        segment: Duration::from_millis(segment_ms),
        buffer: Duration::from_millis(buffer_ms),
        start: Duration::from_millis(start_ms),
        request: Bytes(100),
    }))
}

/// Segments of 10,000 bytes are six packets of 1500 and one of 1280: 10,280 on the wire. The first request, of 140 on the
/// wire, leaves after the handshake (20,104) and arrives at 30,244; the segment is there at 50,524. The next is asked for at
/// once and there 10,140 + 20,280 later, at 80,944: two seconds are buffered, the picture begins, and there is room for a
/// third. With it the buffer is full until one second of it was played, so from then on a second passes between requests.
#[test]
fn a_player_fills_its_buffer_and_then_asks_once_per_segment() {
    let output = outcome(&one(5_000, player(80, 1_000, 3_000, 2_000)));
    let starts = [0, 50_524, 80_944, 1_080_944, 2_080_944, 3_080_944, 4_080_944];
    let took = [50_524, 30_420, 30_420, 30_420, 30_420, 30_420, 30_420];
    let seen: Vec<_> = times(&output, 0).iter().map(|time| (time.0, time.1)).collect();
    let expected: Vec<_> = starts
        .iter()
        .zip(took)
        .map(|(start, took)| (*start, Some(start + took)))
        .collect();
    assert_eq!(seen, expected);
    let measures = &output.groups[0].measures;
    assert_eq!(measures[..3], [vec![0.080_944], vec![0.0], vec![0.0]]);
    let busy = 50_524.0 + 6.0 * 30_420.0;
    assert!((measures[3][0] - (5e6 - busy) / 5e6).abs() < 1e-9, "{measures:?}");
    // Four segments follow a pause; this sender forgets nothing, and its window does not grow while it is not used.
    assert_eq!(measures[4].len(), 4);
    assert!(
        measures[4].iter().all(|kept| *kept > 0.0 && *kept <= 1.0),
        "{measures:?}"
    );
}

/// Segments of 20 ms take 20,380: 10,140 for the request, 240 and 10,000 for the segment. The first is there at 40,484, and
/// each that follows 380 after the one before was over, until the run ends at one second: 47 times.
#[test]
fn a_player_stalls_when_segments_take_longer_than_they_last() {
    let output = outcome(&one(1_000, player(80, 20, 60, 20)));
    let measures = &output.groups[0].measures;
    assert_eq!(measures[..2], [vec![0.040_484], vec![47.0]]);
    let share = 47.0 * 380.0 / (1e6 - 40_484.0);
    assert!((measures[2][0] - share).abs() < 1e-9, "{measures:?}");
    assert_eq!(measures[3], [0.0], "there is always room");
    assert!(measures[4].is_empty(), "it never pauses");
}

/// A player that wants three segments before its first picture, and whose third is there at 111,364, after the end: it stood still for all
/// of its time. One millisecond after that, its picture stood still for none of it.
#[test]
fn a_player_without_a_picture_stood_still_for_all_of_its_time() {
    let measured = |ms| {
        outcome(&one(ms, player(80, 1_000, 5_000, 3_000))).groups[0]
            .measures
            .clone()
    };
    let never = measured(111);
    assert_eq!(
        (&never[1], &never[2], &never[5]),
        (&vec![0.0], &vec![1.0], &vec![1.0])
    );
    let shown = measured(113);
    assert_eq!(
        (&shown[1], &shown[2], &shown[5]),
        (&vec![0.0], &vec![0.0], &vec![0.0])
    );
}

/// The players above, measured from some time on: what lies before it does not count, and neither does a start-up delay that
/// began before. The stall of 380 that begins at 60,484 + 22 x 20,380 = 508,844 reaches 224 into the time from 509,000 on, 24
/// more follow. What the other player asked for at 2,080,944 reaches the server at 2,091,084 and keeps the player busy until
/// 2,111,364; two more follow.
#[test]
fn after_a_warm_up_stalls_and_pauses_count_and_start_up_does_not() {
    let mut stalls = one(1_000, player(80, 20, 60, 20));
    stalls.warmup = Duration::from_millis(509);
    let measures = &outcome(&stalls).groups[0].measures;
    assert_eq!(measures[..2], [vec![], vec![25.0]]);
    let share = (224.0 + 24.0 * 380.0) / 491_000.0;
    assert!((measures[2][0] - share).abs() < 1e-9, "{measures:?}");
    assert_eq!(measures[3], [0.0]);

    let mut pauses = one(5_000, player(80, 1_000, 3_000, 2_000));
    pauses.warmup = Duration::from_millis(2_090);
    let measures = &outcome(&pauses).groups[0].measures;
    assert_eq!(measures[..3], [vec![], vec![0.0], vec![0.0]]);
    let busy = 21_364.0 + 2.0 * 30_420.0;
    assert!(
        (measures[3][0] - (1.0 - busy / 2.91e6)).abs() < 1e-9,
        "{measures:?}"
    );
    assert_eq!(measures[4].len(), 3);
    // Two segments of the film are measured, and their senders count what they took, not what the five before them did.
    let flows = outcome(&pauses).groups.swap_remove(0).flows;
    let sent: Vec<u64> = flows.iter().map(|flow| flow.stats().bytes_sent).collect();
    assert_eq!(sent, [10_000, 10_000]);
}
