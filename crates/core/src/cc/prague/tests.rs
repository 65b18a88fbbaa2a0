//! Hand-worked values: the average, reductions, growth of unmarked bytes, the virtual RTT, pacing.

use super::*;
use crate::cc::{Phase, tests};

const MSS: u64 = 1_000;

fn prague(rtt_ms: u64) -> Prague {
    let config = Config {
        mss: Bytes(MSS),
        initial_window: Bytes(10 * MSS),
        reduce_from_window: true,
        handshake_rtt: Some(Duration::from_millis(rtt_ms)),
        passive: false,
        ..tests::config(HyStart::HyStart)
    };
    Prague::new(&Values::defaults(Prague::PARAMETERS), &config)
}

fn congestion(kind: CongestionKind, flight: u64) -> Congestion {
    Congestion {
        kind,
        flight_size: Bytes(flight),
        in_flight: Bytes(flight),
    }
}

/// An acknowledgment of `acked` bytes, of which `marked` came with an echo.
fn ack(acked: u64, marked: u64, rtt_ms: u64, round_start: bool) -> Ack<'static> {
    Ack {
        acked: Bytes(acked),
        delivered: Bytes(acked),
        segments: (acked / MSS) as u32,
        round_start,
        ce_bytes: Bytes(marked),
        srtt: Some(Duration::from_millis(rtt_ms)),
        ..tests::ack(0)
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn the_first_mark_halves_and_later_ones_take_half_of_alpha() {
    let mut prague = prague(40);
    prague.set_window(at(0), Bytes(100 * MSS), Bytes(100 * MSS));
    prague.on_congestion(at(0), &congestion(CongestionKind::Ecn, 100 * MSS));
    assert_eq!(prague.window(), Bytes(50 * MSS));
    prague.on_congestion(at(40), &congestion(CongestionKind::RecoveryEnd, 50 * MSS));
    // Three rounds without a mark: alpha is (15/16)^3 = 0.824; the next mark takes 0.412 of 100 segments.
    for round in 1..=3 {
        prague.on_ack(at(40 * round + 40), &ack(1, 0, 40, true));
    }
    assert_eq!(alloc::format!("{:.3}", prague.alpha()), "0.824");
    prague.set_window(at(200), Bytes(100 * MSS), Bytes(100 * MSS));
    prague.on_congestion(at(200), &congestion(CongestionKind::Ecn, 70 * MSS));
    assert_eq!(prague.window(), Bytes(58_801)); // 1 - 0.823975 / 2 = 0.588013
    // A fifth of the bytes marked in each round: alpha comes to 0.2.
    for round in 0..200 {
        prague.on_ack(at(300 + 40 * round), &ack(5 * MSS, MSS, 40, true));
    }
    assert!((prague.alpha() - 0.2).abs() < 1e-5, "{}", prague.alpha());
}

#[test]
fn the_average_moves_once_per_virtual_round_trip() {
    // Rounds of 5 ms, all marked: five of them are one step of the average, from 1/16 of 1 on.
    let mut prague = prague(5);
    for round in 1..=10 {
        prague.on_ack(at(5 * round), &ack(MSS, MSS, 5, true));
        let steps = round / 5;
        let expected = 1.0 - libm::pow(15.0 / 16.0, steps as f64);
        assert!(
            (prague.alpha() - expected).abs() < 1e-12,
            "round {round}: {}",
            prague.alpha()
        );
    }
}

#[test]
fn unmarked_bytes_add_a_segment_per_round_trip_in_a_reduction_too() {
    let mut prague = prague(40);
    prague.set_window(at(0), Bytes(20 * MSS), Bytes(20 * MSS));
    for _ in 0..20 {
        prague.on_ack(at(10), &ack(MSS, 0, 40, false));
    }
    // Each adds 10^6 / window, so the square of the window grows by 2 10^6 and a little: the root of 440.05 10^6 after 20.
    assert_eq!(prague.window(), Bytes(20_977));
    // What was SACKed before was delivered then: of twenty segments acknowledged none is new.
    let known = Ack {
        delivered: Bytes::ZERO,
        ..ack(20 * MSS, 0, 40, false)
    };
    prague.on_ack(at(15), &known);
    assert_eq!(prague.window(), Bytes(20_977));
    // Marked bytes add nothing.
    let before = prague.window();
    prague.on_ack(at(20), &ack(5 * MSS, 5 * MSS, 40, false));
    assert_eq!(prague.window(), before);
    // In the round trip of a reduction it is kept until that is over: of ten segments five are unmarked, a half of a
    // window of ten.
    prague.set_window(at(30), Bytes(20 * MSS), Bytes(20 * MSS));
    prague.on_congestion(at(30), &congestion(CongestionKind::Ecn, 20 * MSS));
    assert_eq!(prague.window(), Bytes(10 * MSS));
    for segment in 0..10 {
        let report = Ack {
            recovering: true,
            ..ack(MSS, MSS * (segment % 2), 40, false)
        };
        prague.on_ack(at(40), &report);
    }
    assert_eq!(prague.window(), Bytes(10 * MSS));
    prague.on_congestion(at(70), &congestion(CongestionKind::RecoveryEnd, 10 * MSS));
    assert_eq!(prague.window(), Bytes(10_500));
    // A loss forgets what was earned and halves.
    prague.on_congestion(at(80), &congestion(CongestionKind::Loss, 10_500));
    assert_eq!(prague.window(), Bytes(5_250));
}

#[test]
fn short_paths_grow_as_the_square_of_their_rtt() {
    // 5 ms are a fifth of 25 ms: after 500 rounds a twenty-fifth of a segment per round trip.
    let mut prague = prague(5);
    prague.set_window(at(0), Bytes(50 * MSS), Bytes(50 * MSS));
    prague.on_ack(at(0), &ack(25 * MSS, 0, 5, false));
    assert_eq!(prague.window(), Bytes(50_500));
    for round in 0..500 {
        let report = Ack {
            cwnd_limited: false,
            ..ack(MSS, 0, 5, true)
        };
        prague.on_ack(at(5 * round), &report);
    }
    prague.set_window(at(2500), Bytes(50 * MSS), Bytes(50 * MSS));
    prague.on_ack(at(2500), &ack(50 * MSS, 0, 5, false));
    let grown = prague.window().0 as f64 + prague.earned;
    assert!((grown - 50_040.0).abs() < 1e-6, "{grown}");
}

#[test]
fn marks_reduce_once_per_virtual_round_trip_after_the_transition() {
    let mut prague = prague(5);
    prague.set_window(at(0), Bytes(100 * MSS), Bytes(100 * MSS));
    let mark = |prague: &mut Prague, ms: u64| {
        let window = prague.window().0;
        prague.on_congestion(at(ms), &congestion(CongestionKind::Ecn, window));
        prague.on_congestion(at(ms + 5), &congestion(CongestionKind::RecoveryEnd, window));
        prague.window().0
    };
    // Before it every round trip of 5 ms may reduce; alpha is 1.
    assert_eq!(
        (mark(&mut prague, 0), mark(&mut prague, 10)),
        (50 * MSS, 25 * MSS)
    );
    for round in 0..500 {
        let report = Ack {
            cwnd_limited: false,
            ..ack(MSS, MSS, 5, true)
        };
        prague.on_ack(at(20 + 5 * round), &report);
    }
    prague.set_window(at(3_000), Bytes(100 * MSS), Bytes(100 * MSS));
    assert_eq!(mark(&mut prague, 3_000), 50 * MSS);
    assert_eq!(
        (mark(&mut prague, 3_010), mark(&mut prague, 3_024)),
        (50 * MSS, 50 * MSS)
    );
    assert_eq!(mark(&mut prague, 3_025), 25 * MSS, "25 ms later");
}

#[test]
fn it_paces_at_a_window_per_round_trip_and_twice_that_in_slow_start() {
    let mut prague = prague(40);
    // 10 segments of 1000 bytes in 40 ms are 2 Mbit/s.
    assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(4_000_000)));
    prague.set_window(at(0), Bytes(10 * MSS), Bytes(10 * MSS));
    assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(2_000_000)));
    assert_eq!(prague.phase(), Phase::CongestionAvoidance);
}
