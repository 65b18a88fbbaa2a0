//! Groups for segmentation offload: when a sender waits for room for more segments (Linux `tcp_tso_should_defer`).
//!
//! The path has a round trip of 2 ms, so that a millisecond's worth of segments is more than the window, and only its third
//! part lets a sender go that waits.

use super::script::{MSS, Script, T0};
use crate::tcp::{Config, DelayedAck, Profile};
use crate::time::Duration;
use alloc::vec::Vec;

fn config() -> Config {
    let mut config = Config::profile(Profile::Linux);
    config.congestion_control = "reno";
    config.hystart = crate::cc::HyStart::Off;
    config.delayed_ack = DelayedAck::Off;
    config.timestamps = false;
    config
}

const fn us(count: u64) -> Duration {
    Duration::from_micros(count)
}

/// A window of 30 segments, of which all are out, at 0.
fn full(config: &Config, segments: u32) -> Script {
    let mut script = Script::established(config, us(2_000), u64::from(30 * MSS), MSS);
    assert_eq!(script.write(segments), Vec::from_iter(0..30));
    script
}

fn ack(script: &mut Script, at: u64, upto: u32) -> Vec<u32> {
    script.now = T0 + us(at);
    script.ack(upto, &[])
}

#[test]
fn a_group_waits_until_a_third_of_the_window_is_free() {
    let mut script = full(&config(), 200);
    // Nothing left for more than a millisecond: what has room leaves. Slow start: two acknowledged, two more.
    assert_eq!(ack(&mut script, 2_000, 2), [30, 31, 32, 33]);
    // Room for 4 of 34, 8 of 36, 12 of 38: less than a third.
    assert!(ack(&mut script, 2_200, 4).is_empty());
    assert!(ack(&mut script, 2_400, 6).is_empty());
    assert!(ack(&mut script, 2_600, 8).is_empty());
    // 16 of 40.
    assert_eq!(ack(&mut script, 2_800, 10), Vec::from_iter(34..50));
    // Without the rule each acknowledgment is answered.
    let mut config = config();
    config.offload_deferral = false;
    let mut script = full(&config, 200);
    assert_eq!(ack(&mut script, 2_000, 2), [30, 31, 32, 33]);
    assert_eq!(ack(&mut script, 2_200, 4), [34, 35, 36, 37]);
}

#[test]
fn nobody_waits_for_longer_than_a_millisecond() {
    let mut script = full(&config(), 200);
    assert_eq!(ack(&mut script, 2_000, 2).len(), 4);
    assert!(
        ack(&mut script, 2_999, 3).is_empty(),
        "less than a millisecond ago"
    );
    assert_eq!(ack(&mut script, 3_000, 4).len(), 4);
    // The sample moves SRTT to 1,866.6 and 1,866.8 us: the next segment's acknowledgment, sent at 0, is due later than half
    // of that from now, and sooner.
    for (at, expected) in [(933, 2), (934, 0)] {
        let mut script = full(&config(), 200);
        assert_eq!(ack(&mut script, at, 1).len(), expected, "{at}");
    }
}

#[test]
fn the_end_waits_unless_the_fin_follows() {
    // 34 of 36 segments are out or acknowledged: the last two are all there is, and have room.
    let mut script = full(&config(), 36);
    assert_eq!(ack(&mut script, 2_000, 2), [30, 31, 32, 33]);
    assert!(ack(&mut script, 2_200, 4).is_empty(), "more may be written");
    let mut script = full(&config(), 36);
    assert_eq!(ack(&mut script, 2_000, 2), [30, 31, 32, 33]);
    script.connection.shutdown(script.now, crate::tcp::Half::Write);
    assert_eq!(ack(&mut script, 2_200, 4), [34, 35]);
    // A single segment is Nagle's business, not this rule's.
    let mut script = full(&config(), 35);
    assert_eq!(ack(&mut script, 2_000, 2), [30, 31, 32, 33]);
    assert_eq!(ack(&mut script, 2_200, 4), [34]);
}

#[test]
fn nobody_waits_while_losses_are_repaired() {
    let mut script = full(&config(), 200);
    assert_eq!(ack(&mut script, 2_000, 2).len(), 4);
    script.now = T0 + us(2_100);
    let sent = script.ack(2, &[(3, 20)]);
    assert_eq!(sent[0], 2, "{sent:?}");
    script.now = T0 + us(2_200);
    let sent = script.ack(2, &[(3, 30)]);
    assert!(!sent.is_empty());
}
