use super::{Arrival, Basis, Meter, Place, class, value};
use crate::import::delivery::Delivered;

#[test]
fn classes_are_within_a_percent() {
    for bps in [1_000.0, 12_345.0, 1e6, 9.87e8, 1e12] {
        assert!((value(class(bps)) / bps - 1.0).abs() < 0.006, "{bps}");
    }
}

fn packet(now_ns: u64, bytes: u64) -> Arrival {
    Arrival {
        now_ns,
        bytes,
        full: true,
        connection: 1,
    }
}

/// An ACK of what came since the ACK before.
fn delivered(before_ns: u64, bytes: u64, queued_ns: u64) -> Delivered {
    Delivered {
        bytes,
        since_ns: Some(before_ns),
        previous_ack_ns: Some(before_ns),
        queued_ns,
        within_ns: Some(queued_ns),
        prompt: true,
        double: true,
        ..Delivered::default()
    }
}

/// ACKs of two segments each, 2.4 ms apart: 10 Mbit/s, for 3 s.
fn full_line(meter: &mut Meter, queued_ns: u64) {
    for ack in 1..1250_u64 {
        let now = ack * 2_400_000;
        meter.on_delivered(&packet(now, 3000), &delivered(now - 2_400_000, 2896, queued_ns));
    }
}

fn near(found: Option<f64>, known: f64) {
    let found = found.expect("a rate");
    assert!((found / known - 1.0).abs() < 0.01, "{found}, known {known}");
}

#[test]
fn a_full_line_is_known_by_its_acks() {
    let mut meter = Meter::default();
    full_line(&mut meter, 50_000_000);
    let estimate = meter.estimate(Place::Elsewhere, 0.0, false);
    assert_eq!(estimate.basis, Basis::Spacing);
    near(estimate.bps, 1e7);
    assert!((estimate.held_bps.expect("held") / 1e7 - 1.0).abs() < 0.02);
}

#[test]
fn what_never_waited_is_the_pace_of_its_sender() {
    let mut meter = Meter::default();
    full_line(&mut meter, 0);
    let estimate = meter.estimate(Place::Elsewhere, 0.0, false);
    assert_eq!((estimate.basis, estimate.held_bps), (Basis::AtLeast, None));
    let least = estimate.bps.expect("a bound");
    assert!((0.95e7..=1.001e7).contains(&least), "{least}");
}

#[test]
fn an_ack_that_may_tell_of_long_ago_is_no_burst() {
    let mut meter = Meter::default();
    full_line(&mut meter, 0);
    // After a recovery: a megabyte at once, that came within three seconds.
    meter.on_delivered(
        &packet(3_010_000_000, 1_000_000),
        &delivered(10_000_000, 1_000_000, 0),
    );
    let least = meter.estimate(Place::Elsewhere, 0.0, false).bps.expect("a bound");
    assert!(least <= 1.001e7, "{least}");
}

#[test]
fn data_before_the_bottleneck_are_not_its_rate() {
    let mut meter = Meter::default();
    // Sent two by two at 1 Gbit/s, acknowledged at 10 Mbit/s.
    for ack in 1..1250_u64 {
        let now = ack * 2_400_000;
        meter.on_delivered(&packet(now, 3000), &delivered(now - 2_400_000, 2896, 50_000_000));
        for packets in [1, 2] {
            meter.on_data(&packet(now + packets * 12_000, 1500), Some((0, 0)));
        }
    }
    let estimate = meter.estimate(Place::Elsewhere, 0.0, false);
    assert_eq!(estimate.basis, Basis::Spacing);
    near(estimate.bps, 1e7);
    // Without their ACKs nothing is known.
    let mut meter = Meter::default();
    for pair in 0..1000_u64 {
        for packets in [1, 2] {
            meter.on_data(&packet(pair * 2_400_000 + packets * 12_000, 1500), Some((0, 0)));
        }
    }
    let estimate = meter.estimate(Place::Elsewhere, 0.0, false);
    assert_eq!((estimate.basis, estimate.bps), (Basis::Unknown, None));
}

#[test]
fn data_alone_tell_of_the_path_that_they_took() {
    // In bursts of fifty, queued behind each other at 10 Mbit/s.
    let mut meter = Meter::default();
    for burst in 0..20_u64 {
        for number in 0..50 {
            let now = burst * 1_000_000_000 + number * 1_200_000;
            meter.on_data(
                &packet(now, 1500),
                Some(((number * 1_200_000).saturating_sub(1_000_000), number * 1_200_000)),
            );
        }
    }
    let estimate = meter.estimate(Place::Elsewhere, 0.0, false);
    assert_eq!(estimate.basis, Basis::AtMost);
    near(estimate.bps, 1e7);
}

#[test]
fn what_an_application_sends_now_and_then_is_not_held() {
    // Every 100 ms a burst of 40 ms at 10 Mbit/s, which waits.
    let bursts = |meter: &mut Meter, late_ns: u64, gap_ns: u64| {
        let mut before = 0;
        for burst in 0..40_u64 {
            for ack in 1..=17_u64 {
                let now = burst * 100_000_000 + ack * gap_ns + 20_000_000;
                let delivered = Delivered {
                    late_ns: Some(late_ns),
                    ..delivered(before, 2896, 30_000_000)
                };
                meter.on_delivered(&packet(now, 3000), &delivered);
                before = now;
            }
        }
    };
    let mut meter = Meter::default();
    bursts(&mut meter, 0, 2_400_000);
    let estimate = meter.estimate(Place::Elsewhere, 0.0, false);
    assert!(estimate.held_bps.is_none_or(|held| held < 0.9e7), "{estimate:?}");
    assert_eq!(estimate.basis, Basis::Spacing);
    near(estimate.bps, 1e7);
    // ACKs driven together: those that were late themselves show no line, nor does one that was hardly used.
    for late_ns in [0, 5_000_000] {
        let mut meter = Meter::default();
        bursts(&mut meter, late_ns, 832);
        let estimate = meter.estimate(Place::Elsewhere, 0.0, false);
        assert_eq!(estimate.basis, Basis::AtLeast, "{estimate:?}");
    }
}

#[test]
fn without_a_clock_nothing_is_certain() {
    let mut meter = Meter::default();
    full_line(&mut meter, 0);
    meter.clock_went_back();
    let estimate = meter.estimate(Place::Elsewhere, 0.0, false);
    assert_eq!((estimate.basis, estimate.at_least_bps), (Basis::Unknown, None));
}

#[test]
fn nothing_sent_is_nothing_known() {
    let estimate = Meter::default().estimate(Place::Receiver, 0.0, false);
    assert_eq!(
        (estimate.basis, estimate.bps, estimate.bytes),
        (Basis::Unknown, None, 0)
    );
}

#[test]
fn acks_that_waited_among_data_are_not_the_data() {
    // Two of them 0.4 ms apart, of 3000 bytes each, every 4.8 ms: 60 Mbit/s by the spacing of the ACKs.
    let both_ways = |late_ns: Option<u64>| {
        let mut meter = Meter::default();
        for pair in 1..800_u64 {
            for (now, before) in [
                (pair * 4_800_000, pair * 4_800_000 - 4_400_000),
                (pair * 4_800_000 + 400_000, pair * 4_800_000),
            ] {
                let delivered = Delivered {
                    late_ns,
                    ..delivered(before, 2896, 50_000_000)
                };
                meter.on_delivered(&packet(now, 3000), &delivered);
            }
        }
        meter.estimate(Place::Elsewhere, 0.5, false)
    };
    // By their timestamps they waited, but nobody knows by how much the data did; without any nobody knows either.
    for late_ns in [Some(20_000_000), None] {
        let both = both_ways(late_ns);
        assert_eq!(
            (both.basis, both.spacing_bps),
            (Basis::AtLeast, None),
            "{late_ns:?}"
        );
        assert!(both.bps.expect("a bound") <= 1.001e7);
    }
}

#[test]
fn packets_that_something_else_delays_tell_of_no_line() {
    // 4 Mbit/s, three packets behind each other every 9 ms, which waited for up to 20 ms: for a radio, not for a line of 4 Mbit/s.
    let mut meter = Meter::default();
    let mut before = 0;
    for bunch in 1..800_u64 {
        for ack in 0..3 {
            let now = bunch * 9_000_000 + ack * 30_000;
            meter.on_delivered(&packet(now, 1500), &delivered(before, 1448, 20_000_000));
            before = now;
        }
    }
    let estimate = meter.estimate(Place::Elsewhere, 0.0, false);
    assert_eq!(estimate.basis, Basis::AtLeast, "{estimate:?}");
    // What came within a twentieth of a second may have left the line within as much more as packets waited.
    assert!(estimate.bps.expect("a bound") <= 4.0e6, "{estimate:?}");
}

#[test]
fn acks_of_the_other_direction_take_their_part_of_the_line() {
    // Behind the line, fair queues: one ACK of 60 bytes between every two data packets of 1500, 10 Mbit/s together.
    let mut meter = Meter::default();
    let mut now = 0;
    for _ in 0..4000 {
        now += 1_248_000;
        meter.on_ack(now - 1_200_000, 60);
        meter.on_data(&packet(now, 1500), Some((20_000_000, 22_000_000)));
        meter.on_delivered(&packet(now, 1500), &delivered(now - 1_248_000, 1448, 20_000_000));
    }
    let estimate = meter.estimate(Place::Receiver, 1.0, false);
    assert_eq!(estimate.basis, Basis::Spacing, "{estimate:?}");
    near(estimate.bps, 1e7);
}
