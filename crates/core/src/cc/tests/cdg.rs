//! CDG by hand: probabilities, back-offs, the shadow window, delayed ACKs.

use super::super::{
    Ack, AnyController, Cdg, CdgFreeBsd, Config, CongestionController, CongestionKind, HyStart, Reaction,
};
use super::{MSS, ack, config, congestion};
use crate::parameter::{Value, Values};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::format;
use alloc::vec::Vec;

fn whole() -> Config {
    Config {
        count_segments: true,
        reduce_from_window: true,
        ..config(HyStart::Off)
    }
}

fn values(set: &[(&str, Value)]) -> Values {
    let mut values = Values::defaults(Cdg::PARAMETERS);
    for &(name, value) in set {
        values.set(name, value).expect("a parameter of CDG");
    }
    values
}

/// A path whose RTT the test says; rounds are as long as the window.
struct Path {
    now: Instant,
    delivered: u64,
}

impl Path {
    fn new() -> Path {
        Path {
            now: Instant::from_millis(1),
            delivered: 0,
        }
    }

    /// An ACK of `segments`, with `left` in flight after it.
    fn ack(&mut self, cc: &mut dyn CongestionController, rtt_us: u64, segments: u32, left: u64) -> Reaction {
        self.now += Duration::from_millis(5); // no train
        self.delivered += u64::from(segments) * MSS;
        let rtt = Duration::from_micros(rtt_us);
        cc.on_ack(
            self.now,
            &Ack {
                rtt: Some(rtt),
                newest_rtt: Some(rtt),
                segments,
                delivered_total: Bytes(self.delivered),
                in_flight: Bytes(left * MSS),
                ..ack(u64::from(segments))
            },
        )
    }

    /// A window of ACKs with the same RTT: how many asked for a reduction, which they get.
    fn round(&mut self, cc: &mut dyn CongestionController, rtt_us: u64) -> u32 {
        let segments = cc.window().0 / MSS;
        let mut reductions = 0;
        for _ in 0..segments {
            if self.ack(cc, rtt_us, 1, segments - 1) == Reaction::ReduceWindow {
                reductions += 1;
                cc.on_congestion(self.now, &congestion(CongestionKind::Delay, segments));
                cc.on_congestion(self.now, &congestion(CongestionKind::RecoveryEnd, segments));
            }
        }
        reductions
    }
}

/// S is the sum of eight gradients (docs/design/delay-gradient.md#probability).
#[test]
fn the_probability_is_that_of_the_paper() {
    let seen: Vec<_> = [1, 2, 4, 8, 16, 24]
        .map(|sum_ms| {
            format!(
                "{:.4}",
                super::super::cdg::probability(sum_ms * 1000, 42).as_f64()
            )
        })
        .into();
    assert_eq!(seen, ["0.0411", "0.0806", "0.1546", "0.2854", "0.4893", "0.6351"]);
    // The paper's form: g is the mean, 1 ms, and G is 3 ms.
    let paper = 1.0 - libm::exp(-1.0 / 3.0);
    assert_eq!(format!("{paper:.3}"), "0.283");
}

/// 10^5 draws for each sum. The statistic has six degrees of freedom: 16.8 is its 99th percentile.
#[test]
fn back_offs_are_as_frequent_as_their_probability_says() {
    let mut statistic = 0.0;
    for sum_us in [1000_u64, 2000, 4000, 8000, 16_000, 24_000] {
        let mut cdg = Cdg::new(&values(&[("ineffective", Value::Integer(0))]), &whole());
        let mut path = Path::new();
        let (mut rtt_us, mut seen) = (100_000, 0);
        for round in 0..100_009 {
            let reaction = path.ack(&mut cdg, rtt_us, 1, 0);
            // The first round has nothing to compare with, and eight fill the ring: nothing is extended after that.
            seen += u32::from(round >= 9 && reaction == Reaction::ReduceWindow);
            rtt_us += sum_us / 8;
        }
        let (n, p) = (1e5, 1.0 - libm::exp(-(sum_us as f64) * 42e-6));
        let away = f64::from(seen) - n * p;
        statistic += away * away / (n * p * (1.0 - p));
        std::eprintln!("S = {} ms: {seen} of 100000 for {:.1}", sum_us / 1000, n * p);
    }
    std::eprintln!("chi-square {statistic:.2} of 6 degrees");
    assert!(statistic < 16.81, "chi-square {statistic}");
}

extern crate std;

/// Always backs off when the sum is positive.
fn certain() -> Cdg {
    Cdg::new(
        &values(&[("backoff_factor", Value::Integer(1_000_000))]),
        &whole(),
    )
}

/// 20 becomes 14, the shadow stays at 20; two round trips later 16 and 22; a loss: 11 (docs/design/delay-gradient.md#examples).
#[test]
fn a_loss_takes_back_what_back_offs_gave_up() {
    let segments = |bytes: Bytes| bytes.0 / MSS;
    let mut cdg = certain();
    let mut path = Path::new();
    cdg.set_window(path.now, Bytes(20 * MSS), Bytes(20 * MSS));
    // Not window-limited while it learns, so that the window stays.
    for rtt_us in [100_000, 100_000, 101_000] {
        path.delivered += 100 * MSS;
        let reaction = cdg.on_ack(
            path.now,
            &Ack {
                newest_rtt: Some(Duration::from_micros(rtt_us)),
                segments: 1,
                delivered_total: Bytes(path.delivered),
                cwnd_limited: false,
                ..ack(1)
            },
        );
        assert_eq!(reaction == Reaction::ReduceWindow, rtt_us == 101_000);
    }
    cdg.on_congestion(path.now, &congestion(CongestionKind::Delay, 20));
    assert_eq!((segments(cdg.window()), segments(cdg.ssthresh())), (14, 14));
    assert_eq!(segments(cdg.shadow()), 20);
    cdg.on_congestion(path.now, &congestion(CongestionKind::RecoveryEnd, 14));
    // What followed the reduction is what the first round is held against.
    path.ack(&mut cdg, 101_000, 1, 13);
    for left in (0..13).rev() {
        assert_eq!(path.ack(&mut cdg, 100_000, 1, left), Reaction::None);
    }
    assert_eq!(path.round(&mut cdg, 100_000), 0, "the RTT fell");
    assert_eq!((segments(cdg.window()), segments(cdg.shadow())), (16, 22));
    cdg.on_congestion(path.now, &congestion(CongestionKind::Loss, 16));
    assert_eq!((segments(cdg.ssthresh()), segments(cdg.shadow())), (11, 11));

    // 100, 70, 49: the shadow halves to 50, and is held at the window.
    let mut cdg = certain();
    cdg.set_window(path.now, Bytes(100 * MSS), Bytes(100 * MSS));
    let mut delivered = 0;
    for (rtt_us, window) in [(100_000, 100), (101_000, 70), (102_000, 49)] {
        delivered += 200 * MSS;
        let report = Ack {
            newest_rtt: Some(Duration::from_micros(rtt_us)),
            segments: 1,
            delivered_total: Bytes(delivered),
            ..ack(0)
        };
        if cdg.on_ack(path.now, &report) == Reaction::ReduceWindow {
            cdg.on_congestion(path.now, &congestion(CongestionKind::Delay, 100));
        }
        assert_eq!(segments(cdg.window()), window);
    }
    assert_eq!(segments(cdg.shadow()), 100);
    cdg.on_congestion(path.now, &congestion(CongestionKind::Loss, 49));
    assert_eq!((segments(cdg.ssthresh()), segments(cdg.shadow())), (49, 49));
}

/// Five back-offs without effect are the last, until the gradient falls by 32 us (docs/design/delay-gradient.md#ineffective).
/// Whatever went before, after a loss the shadow window is at most twice the window (docs/design/delay-gradient.md#examples).
#[test]
fn after_a_loss_the_shadow_is_at_most_twice_the_window() {
    use crate::rng::Rng;
    let (mut losses, mut delays, mut larger) = (0, 0, 0);
    for seed in 0..60 {
        let mut rng = Rng::for_element(seed, "cdg", "path");
        let mut cdg = Cdg::new(&values(&[]), &Config { seed, ..whole() });
        let mut path = Path::new();
        for _ in 0..150 {
            delays += path.round(&mut cdg, 20_000 + rng.below(30_000));
            let segments = cdg.window().0 / MSS;
            if segments > 500 || rng.below(5) == 0 {
                cdg.on_congestion(path.now, &congestion(CongestionKind::Loss, segments));
                cdg.on_congestion(path.now, &congestion(CongestionKind::RecoveryEnd, segments));
                losses += 1;
                larger += u32::from(cdg.shadow() > cdg.window());
                assert!(
                    cdg.shadow().0 <= 2 * cdg.window().0,
                    "seed {seed}: {:?} beside {:?}",
                    cdg.shadow(),
                    cdg.window()
                );
            }
        }
    }
    assert!(
        losses > 1000 && delays > 1000,
        "{losses} losses, {delays} delays, {larger}"
    );
}

/// Window validation answered a loss with ten of forty segments, as it would answer NewReno's: the next loss halves them.
#[test]
fn a_window_that_is_set_after_a_loss_leaves_no_larger_shadow() {
    for name in ["cdg", "cdg-freebsd"] {
        let start = Config {
            initial_window: Bytes(40 * MSS),
            ..whole()
        };
        let mut cc = super::build(name, &start);
        let shadow = |cc: &AnyController| match cc {
            AnyController::Cdg(cdg) => cdg.shadow().0 / MSS,
            AnyController::CdgFreeBsd(cdg) => cdg.shadow().0 / MSS,
            _ => unreachable!("the test names both"),
        };
        assert_eq!(shadow(&cc), 40, "{name}");
        cc.override_window(Instant::ZERO, Bytes(10 * MSS), Bytes(10 * MSS));
        assert_eq!((cc.window().0 / MSS, shadow(&cc)), (10, 10), "{name}");
        cc.on_congestion(Instant::ZERO, &congestion(CongestionKind::Loss, 10));
        assert_eq!((cc.window().0 / MSS, shadow(&cc)), (5, 5), "{name}");
        // A larger window gives nothing back.
        cc.override_window(Instant::ZERO, Bytes(40 * MSS), Bytes(40 * MSS));
        assert_eq!((cc.window().0 / MSS, shadow(&cc)), (40, 5), "{name}");
    }
}

#[test]
fn back_offs_without_effect_end() {
    let mut cdg = certain();
    let mut path = Path::new();
    let mut rtt_us = 100_000;
    path.ack(&mut cdg, rtt_us, 1, 0);
    let mut reactions = Vec::new();
    for _ in 0..8 {
        rtt_us += 1000;
        reactions.push(path.ack(&mut cdg, rtt_us, 1, 0) == Reaction::ReduceWindow);
    }
    assert_eq!(reactions, [true, true, true, true, true, false, false, false]);
    // The sum of eight rounds is what has to fall.
    for fall_us in [8031, 1] {
        rtt_us -= fall_us;
        assert_eq!(path.ack(&mut cdg, rtt_us, 1, 0), Reaction::None);
    }
    rtt_us += 9000;
    assert_eq!(path.ack(&mut cdg, rtt_us, 1, 0), Reaction::ReduceWindow);
}

#[test]
fn a_constant_rtt_never_backs_off() {
    for name in ["cdg", "cdg-freebsd"] {
        let mut cc = super::build(name, &whole());
        let mut path = Path::new();
        cc.set_window(path.now, Bytes(20 * MSS), Bytes(20 * MSS));
        for _ in 0..200 {
            let before = cc.window();
            assert_eq!(path.round(&mut cc, 80_000), 0, "{name}");
            assert!(cc.window() >= before, "{name}");
        }
    }
}

/// Every second ACK waited 40 ms for a segment that did not come (docs/design/delay-gradient.md#filter).
#[test]
fn delayed_acknowledgments_are_no_gradient() {
    let mut cdg = certain();
    let mut path = Path::new();
    let mut late = 0;
    for index in 0..400_u32 {
        let two = path.ack(&mut cdg, 50_000, 2, 10);
        let one = path.ack(&mut cdg, 90_000, 1, 9);
        if index >= 10 {
            late += u32::from(two == Reaction::ReduceWindow || one == Reaction::ReduceWindow);
        }
    }
    assert_eq!(late, 0);
}

/// Tolerance: a loss while RTTs rise on both ends of their range is not the queue's.
#[test]
fn tolerance_ignores_losses_while_the_queue_is_not_full() {
    for (tolerance, expected) in [(true, 20), (false, 10)] {
        let mut cdg = Cdg::new(
            &values(&[
                ("tolerance", Value::Flag(tolerance)),
                ("backoff_factor", Value::Integer(1)),
                ("shadow", Value::Flag(false)),
            ]),
            &whole(),
        );
        let mut path = Path::new();
        cdg.set_window(path.now, Bytes(20 * MSS), Bytes(20 * MSS));
        for rtt_us in [100_000, 100_200, 100_400] {
            path.ack(&mut cdg, rtt_us, 1, 0);
        }
        let window = cdg.window().0 / MSS;
        assert_eq!(window, 20);
        cdg.on_congestion(path.now, &congestion(CongestionKind::Loss, 20));
        assert_eq!(cdg.window().0 / MSS, expected);
    }
}

/// The data path's delay counts: the ACK path's queue does not.
#[test]
fn the_one_way_gradient_does_not_see_the_ack_path() {
    for (gradient, expected) in [("rtt", true), ("one-way", false)] {
        let mut cdg = Cdg::new(
            &values(&[
                ("gradient", Value::Choice(gradient)),
                ("backoff_factor", Value::Integer(1_000_000)),
            ]),
            &whole(),
        );
        let mut backs_off = false;
        for round in 0..20_u64 {
            let report = Ack {
                newest_rtt: Some(Duration::from_millis(100 + round)),
                one_way_delay: Some(Duration::from_millis(u64::from(u32::MAX))), // the clocks differ
                segments: 1,
                delivered_total: Bytes((round + 1) * MSS),
                ..ack(1)
            };
            backs_off |= cdg.on_ack(Instant::from_millis(100 * round), &report) == Reaction::ReduceWindow;
        }
        assert_eq!(backs_off, expected, "{gradient}");
    }
    // And the clock may wrap.
    let mut cdg = Cdg::new(
        &values(&[
            ("gradient", Value::Choice("one-way")),
            ("backoff_factor", Value::Integer(1_000_000)),
        ]),
        &whole(),
    );
    let reactions = [(1, u32::MAX), (2, 0)].map(|(round, ms)| {
        let report = Ack {
            newest_rtt: Some(Duration::from_millis(100)),
            one_way_delay: Some(Duration::from_millis(u64::from(ms))),
            segments: 1,
            delivered_total: Bytes(round * MSS),
            ..ack(1)
        };
        cdg.on_ack(Instant::from_millis(round), &report)
    });
    assert_eq!(
        reactions[1],
        Reaction::ReduceWindow,
        "a millisecond more: {reactions:?}"
    );
}

#[test]
fn rounds_of_the_application_may_be_left_out() {
    for (freeze, expected) in [(false, true), (true, false)] {
        let mut cdg = Cdg::new(
            &values(&[
                ("freeze", Value::Flag(freeze)),
                ("backoff_factor", Value::Integer(1_000_000)),
            ]),
            &whole(),
        );
        let mut backs_off = false;
        for round in 0..10_u64 {
            let report = Ack {
                newest_rtt: Some(Duration::from_millis(100 + round)),
                segments: 1,
                delivered_total: Bytes((round + 1) * MSS),
                app_limited: true,
                ..ack(1)
            };
            backs_off |= cdg.on_ack(Instant::ZERO, &report) == Reaction::ReduceWindow;
        }
        assert_eq!(backs_off, expected);
    }
}

#[test]
fn a_back_off_at_once_rests_until_what_was_in_flight_has_arrived() {
    let mut cdg = Cdg::new(
        &values(&[
            ("at_once", Value::Flag(true)),
            ("backoff_factor", Value::Integer(1_000_000)),
        ]),
        &whole(),
    );
    cdg.set_window(Instant::ZERO, Bytes(20 * MSS), Bytes(10 * MSS));
    let mut at = |rtt_ms: u64, delivered: u64| {
        let report = Ack {
            newest_rtt: Some(Duration::from_millis(rtt_ms)),
            segments: 1,
            delivered_total: Bytes(delivered * MSS),
            in_flight: Bytes(20 * MSS),
            ..ack(1)
        };
        assert_eq!(
            cdg.on_ack(Instant::ZERO, &report),
            Reaction::None,
            "nobody is asked"
        );
        cdg.window().0 / MSS
    };
    // The first round ends with the first acknowledgment, the second with the delivery of what was in flight then.
    assert_eq!(at(100, 1), 20);
    assert_eq!(at(100, 2), 20);
    // The RTT has grown by 30 ms: 0.707 of 20.
    assert_eq!(at(130, 22), 14);
    // 20 segments were in flight: it rests until more than 42 have been delivered, and neither grows nor backs off.
    for delivered in 23..=42 {
        assert_eq!(at(160, delivered), 14);
    }
    // The delays of the rest are those of the round before: 190 over 160 ms.
    assert_eq!(at(160, 43), 14);
    assert_eq!(at(190, 64), 9);
}

/// FreeBSD: 70 %, at once; the round after is left out; five in a row, then five are ignored.
#[test]
fn freebsd_backs_off_every_second_round() {
    let mut table = Values::defaults(CdgFreeBsd::PARAMETERS);
    table.set("scale", Value::Integer(1)).expect("a parameter");
    let mut cc = CdgFreeBsd::new(&table, &whole());
    cc.set_window(Instant::ZERO, Bytes(100 * MSS), Bytes(50 * MSS));
    let mut path = Path::new();
    let mut windows = Vec::new();
    for round in 0..26 {
        // 100 ms a round: beyond five G also when divided by eight, so certain.
        path.ack(&mut cc, 100_000 + 100_000 * round, 1, 0);
        windows.push(cc.window().0 / MSS);
    }
    // Each measured round without a back-off adds one segment.
    let expected = [
        101, 70, 71, 49, 50, 35, 36, 25, 26, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23, 23, 24, 16, 17, 11, 12,
        8,
    ];
    assert_eq!(windows, expected);
}

#[test]
fn a_window_of_rounds_is_a_power_of_two() {
    let entry = AnyController::entry("cdg").expect("registered");
    assert_eq!((entry.check)(&values(&[("window", Value::Integer(16))])), Ok(()));
    assert!((entry.check)(&values(&[("window", Value::Integer(12))])).is_err());
}
