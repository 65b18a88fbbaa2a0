//! Every controller against its naive transcription, the properties all of them have, published values, and tables.

mod bbr;
mod bbr3;
mod cdg;
mod delay_oracle;
#[expect(unreachable_pub, reason = "it is a file of the crate testkit")]
#[path = "../../../testkit/src/controllers.rs"]
mod driver;
mod oracle;

use super::{
    Ack, AnyController, Config, CongestionController, CongestionKind, Cubic, CubicArithmetic, Dctcp, HyStart,
    Phase, Reno,
};
use crate::parameter::{Value, Values};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use driver::{Driver, MSS, Op, congestion, keeps_the_contract, strange_calls};
pub(super) use driver::{ack, config};
use oracle::Oracle;
use proptest::prelude::*;

fn build(name: &str, config: &Config) -> AnyController {
    let entry = AnyController::entry(name).expect("registered");
    AnyController::build(name, &Values::defaults(entry.parameters), config).expect("registered")
}

fn any_op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![
        4 => Just(CongestionKind::Loss),
        2 => Just(CongestionKind::Ecn),
        1 => Just(CongestionKind::Delay),
        2 => any::<bool>().prop_map(|first| CongestionKind::Timeout { first }),
        2 => Just(CongestionKind::Undo),
        2 => Just(CongestionKind::RecoveryEnd),
    ];
    let ack = (
        0_u64..30_000,
        prop_oneof![4 => Just(MSS), 2 => Just(2 * MSS), 1 => 0..9 * MSS],
        prop::option::weighted(0.9, 20_u64..90),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(after_us, bytes, rtt_ms, marked, round, limited, recovering)| Op::Ack {
                after_us,
                bytes,
                rtt_ms,
                marked,
                round,
                limited,
                recovering,
            },
        );
    prop_oneof![
        40 => ack,
        2 => (kind, 1_u64..200).prop_map(|(kind, flight)| Op::Congestion(kind, flight)),
        1 => (0_u64..3_000).prop_map(Op::Idle),
        1 => (0_u64..100, prop::option::of(2_u64..100)).prop_map(|(window, ssthresh)| Op::SetWindow(window, ssthresh)),
    ]
}

fn any_config() -> impl Strategy<Value = Config> {
    let hystart = prop_oneof![
        Just(HyStart::Off),
        Just(HyStart::HyStart),
        Just(HyStart::HyStartPlusPlus),
        Just(HyStart::Linux)
    ];
    let arithmetic = prop_oneof![
        Just(CubicArithmetic::Rfc9438),
        Just(CubicArithmetic::Linux),
        Just(CubicArithmetic::LinuxBefore43)
    ];
    (
        hystart,
        prop::option::of(1_u32..9),
        any::<bool>(),
        any::<bool>(),
        arithmetic,
        any::<bool>(),
    )
        .prop_map(
            |(hystart, abc_limit, reduce_from_window, count_segments, cubic_arithmetic, paced)| Config {
                paced,
                cubic_arithmetic,
                abc_limit,
                reduce_from_window,
                count_segments,
                fractions: false,
                ..config(hystart)
            },
        )
}

fn oracle_of(name: &str, config: &Config) -> Option<Box<dyn Oracle>> {
    match name {
        "reno" => Some(Box::new(oracle::Reno::new(config, false))),
        "dctcp" => Some(Box::new(oracle::Reno::new(config, true))),
        "cubic" if config.cubic_arithmetic.is_linux() => Some(Box::new(oracle::CubicLinux::new(config))),
        "cubic" => Some(Box::new(oracle::Cubic::new(config))),
        "vegas" => Some(Box::new(delay_oracle::Vegas::new(config))),
        "westwood" => Some(Box::new(delay_oracle::Westwood::new(config))),
        "cdg" => Some(Box::new(delay_oracle::Cdg::new(config))),
        "cdg-freebsd" => Some(Box::new(delay_oracle::CdgFreeBsd::new(config))),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Call by call; the oracle then takes over the controller's window, so that rounding to bytes does not add up.
    #[test]
    fn controllers_do_what_their_naive_transcriptions_do(
        config in any_config(), ops in prop::collection::vec(any_op(), 1..400),
    ) {
        for entry in AnyController::ENTRIES {
            let Some(mut oracle) = oracle_of(entry.name, &config) else { continue };
            let mut cc = build(entry.name, &config);
            let mut driver = Driver::default();
            // One unit: where the two round to different sides of a whole unit.
            let whole = config.count_segments;
            let unit = match whole {
                true if entry.name == "cubic" && config.cubic_arithmetic.is_linux() => 0.0,
                true => MSS as f64,
                false => 1.0,
            };
            for (index, op) in ops.iter().enumerate() {
                driver.apply(*op, config.count_segments, &mut cc, |now, input| oracle.hear(now, input));
                let (cwnd, ssthresh) = oracle.state();
                let seen = if cc.ssthresh() == Bytes::MAX { f64::INFINITY } else { cc.ssthresh().0 as f64 };
                prop_assert!(
                    (cc.window().0 as f64 - *cwnd).abs() <= unit,
                    "{} window {} for {} after call {}, {:?}", entry.name, cc.window(), cwnd, index, op
                );
                prop_assert!(
                    *ssthresh == seen || (*ssthresh - seen).abs() <= unit,
                    "{} ssthresh {} for {} after call {}, {:?}", entry.name, seen, ssthresh, index, op
                );
                (*cwnd, *ssthresh) = (cc.window().0 as f64, seen);
            }
        }
    }

    #[test]
    fn every_controller_keeps_the_contract(
        config in any_config(), ops in prop::collection::vec(any_op(), 1..300), flight in 1_u64..500,
    ) {
        for entry in AnyController::ENTRIES {
            keeps_the_contract(entry.name, |config| build(entry.name, config), &config, &ops, flight);
        }
    }

    #[test]
    fn no_input_makes_a_controller_panic(
        numbers in prop::collection::vec(any::<(u64, u64, u64, u8)>(), 1..50), mss in 1_u64..70_000,
    ) {
        for entry in AnyController::ENTRIES {
            let config = Config { mss: Bytes(mss), initial_window: Bytes(mss), ..config(HyStart::HyStart) };
            strange_calls(&mut build(entry.name, &config), mss, &numbers);
        }
    }
}

/// RFC 8257 3.3: steps 4 to 7 move the average before step 9 reduces the window.
#[test]
fn a_mark_that_ends_a_round_is_answered_with_the_average_that_it_moved() {
    let config = config(HyStart::Off);
    for name in ["dctcp", "prague"] {
        let mut controller = build(name, &config);
        controller.set_window(Instant::ZERO, Bytes(100 * MSS), Bytes(100 * MSS));
        let ten = |controller: &mut AnyController, delivered: u64, marked: u64, is_echo: bool| {
            let report = Ack {
                delivered_total: Bytes(delivered),
                ce_bytes: Bytes(marked),
                round_start: true,
                recovering: true,
                ..ack(10)
            };
            let now = Instant::from_millis(delivered / MSS * 100);
            if is_echo {
                controller.on_echo(now, &super::Echo::of(&report));
                controller.on_congestion(now, &congestion(CongestionKind::Ecn, 100));
            }
            controller.on_ack(now, &report);
        };
        // The first mark halves with either; then both averages are 1, and a round without a mark makes 15/16 of it.
        ten(&mut controller, 10 * MSS, 10 * MSS, true);
        assert_eq!(controller.window(), Bytes(50 * MSS), "{name}");
        ten(&mut controller, 20 * MSS, 0, false);
        controller.set_window(Instant::ZERO, Bytes(100 * MSS), Bytes(100 * MSS));
        // A tenth of the next round is marked: 15/16 of 15/16 and 1/160 make 0.8851, of which half is taken.
        ten(&mut controller, 30 * MSS, MSS, true);
        let kept = controller.window().0 as f64 / (100 * MSS) as f64;
        assert!((kept - (1.0 - 0.885_156_25 / 2.0)).abs() < 1e-4, "{name}: {kept}");
    }
}

#[test]
fn dctcp_alpha_takes_the_hand_worked_values() {
    let config = config(HyStart::Off);
    let mut dctcp = Dctcp::new(&Values::defaults(Dctcp::PARAMETERS), &config);
    let mut delivered = 0;
    let mut round = |dctcp: &mut Dctcp, marked: u64| {
        for segment in 0..10 {
            delivered += MSS;
            let report = Ack {
                ce_bytes: Bytes(if segment < marked { MSS } else { 0 }),
                round_start: segment == 9,
                cwnd_limited: false,
                delivered_total: Bytes(delivered),
                ..ack(1)
            };
            dctcp.on_ack(Instant::ZERO, &report);
        }
    };
    for _ in 0..3 {
        round(&mut dctcp, 0);
    }
    assert_eq!(format!("{:.3}", dctcp.alpha()), "0.824"); // (15/16)^3
    for _ in 0..200 {
        round(&mut dctcp, 1);
    }
    assert!((dctcp.alpha() - 0.1).abs() < 1e-5, "{}", dctcp.alpha());
    dctcp.set_window(Instant::ZERO, Bytes(100 * MSS), Bytes(50 * MSS));
    dctcp.on_congestion(Instant::ZERO, &congestion(CongestionKind::Ecn, 30));
    let kept = dctcp.window().0 as f64 / (100 * MSS) as f64;
    assert!((kept - 0.95).abs() < 1e-4, "five per cent off the window: {kept}");
    dctcp.on_congestion(Instant::ZERO, &congestion(CongestionKind::Loss, 90));
    assert_eq!(dctcp.window(), Bytes(45 * MSS)); // a loss halves FlightSize as in NewReno
}

/// `dctcp_ssthresh`: cwnd - ((cwnd * alpha) >> 11), alpha in 1,024ths, two segments at least.
#[test]
fn dctcp_takes_whole_segments_as_linux_does() {
    for (window, alpha, left) in [
        (10, 0.1, 10),
        (11, 0.15, 11),
        (11, 0.19, 10),
        (20, 0.1, 19),
        (39, 0.1, 38),
        (100, 0.001, 100),
        (3, 1.0, 2),
        (2, 1.0, 2),
    ] {
        let mut values = Values::defaults(Dctcp::PARAMETERS);
        let set = values.set("initial_alpha", Value::Number(alpha));
        assert!(set.is_ok());
        let segments = Config {
            count_segments: true,
            ..config(HyStart::Off)
        };
        let mut dctcp = Dctcp::new(&values, &segments);
        dctcp.set_window(Instant::ZERO, Bytes(window * MSS), Bytes(50 * MSS));
        dctcp.on_congestion(Instant::ZERO, &congestion(CongestionKind::Ecn, 30));
        assert_eq!(
            dctcp.window(),
            Bytes(left * MSS),
            "{window} segments, alpha {alpha}"
        );
    }
}

/// Vegas forgets the smallest RTT with every transmission that finds nothing outstanding (Linux: CA_EVENT_TX_START), and is NewReno from
/// a timeout until what it repairs is acknowledged (`tcp_vegas_state`).
#[test]
fn vegas_begins_anew_where_linux_does() {
    let rounds = |cc: &mut dyn CongestionController, delivered: &mut u64, ms: u64, rounds: u64| {
        for ack_of_round in 0..4 * rounds {
            *delivered += MSS;
            let report = Ack {
                rtt: Some(Duration::from_millis(ms)),
                delivered_total: Bytes(*delivered),
                in_flight: Bytes(4 * MSS),
                round_start: ack_of_round % 4 == 0,
                ..ack(1)
            };
            cc.on_ack(Instant::ZERO, &report);
        }
        cc.window().0 / MSS
    };
    // A window of some twenty segments: with 100 ms after 50 ms half of them wait, more than beta.
    let window = |restarts: bool| {
        let mut vegas = build("vegas", &config(HyStart::Off));
        vegas.set_window(Instant::ZERO, Bytes(20 * MSS), Bytes(10 * MSS));
        let mut delivered = 0;
        let before = rounds(&mut vegas, &mut delivered, 50, 2);
        if restarts {
            vegas.on_restart(Instant::ZERO, Duration::from_millis(20));
        }
        (before, rounds(&mut vegas, &mut delivered, 100, 6))
    };
    let (before, after) = window(false);
    assert!(after < before, "{after} after {before}: a queue is seen");
    let (before, after) = window(true);
    assert!(
        after > before,
        "{after} after {before}: 100 ms are the smallest RTT of what may be another path"
    );
    // One segment at a time: each leaves with nothing outstanding and ends a round, whose samples are too few to judge.
    let mut vegas = build("vegas", &config(HyStart::Off));
    vegas.set_window(Instant::ZERO, Bytes(MSS), Bytes(MSS));
    for turn in 1..10 {
        vegas.on_restart(Instant::ZERO, Duration::from_millis(50));
        let report = Ack {
            rtt: Some(Duration::from_millis(50)),
            delivered_total: Bytes(turn * MSS),
            in_flight: Bytes::ZERO,
            ..ack(1)
        };
        vegas.on_ack(Instant::ZERO, &report);
    }
    assert!(vegas.window() >= Bytes(3 * MSS), "{}", vegas.window());
    let repair = |name| {
        let mut cc = build(name, &config(HyStart::Off));
        cc.set_window(Instant::ZERO, Bytes(20 * MSS), Bytes(10 * MSS));
        cc.on_congestion(
            Instant::ZERO,
            &congestion(CongestionKind::Timeout { first: true }, 20),
        );
        let mut delivered = 0;
        rounds(&mut cc, &mut delivered, 50, 2);
        rounds(&mut cc, &mut delivered, 100, 8)
    };
    assert_eq!(repair("vegas"), repair("reno"));
}

/// One ACK per segment; a round trip of ACKs is spread over `rtt`.
fn ack_clocked(cc: &mut dyn CongestionController, now: &mut Instant, rtt: Duration) {
    let segments = cc.window().0 / MSS;
    for segment in 0..segments {
        *now += Duration::from_nanos(rtt.as_nanos() / segments);
        let report = Ack {
            rtt: Some(rtt),
            srtt: Some(rtt),
            round_start: segment == 0,
            // A byte per nanosecond: nothing is marked, and a round trip lasts a round trip.
            delivered_total: Bytes(now.as_nanos()),
            in_flight: Bytes(rtt.as_nanos()),
            ..ack(1)
        };
        cc.on_ack(*now, &report);
    }
}

/// RFC 9293: MAY-18
#[test]
fn cubic_follows_the_curve_of_rfc_9438_within_a_segment() {
    let mut values = Values::defaults(Cubic::PARAMETERS);
    values
        .set("tcp_friendliness", Value::Flag(false))
        .expect("a flag");
    for count_segments in [false, true] {
        let config = Config {
            initial_window: Bytes(1_000 * MSS),
            count_segments,
            fractions: false,
            ..config(HyStart::Off)
        };
        let mut cubic = Cubic::new(&values, &config);
        let mut now = Instant::from_millis(5);
        let rtt = Duration::from_millis(20);
        cubic.on_congestion(now, &congestion(CongestionKind::Loss, 1_000));
        assert_eq!(cubic.window(), Bytes(700 * MSS));
        let k = libm::cbrt(1_000.0 * 0.3 / 0.4);
        let mut begin = None;
        let mut worst = 0.0_f64;
        while now < Instant::from_millis(20_000) {
            ack_clocked(&mut cubic, &mut now, rtt);
            let begin = *begin.get_or_insert(now - rtt);
            let t = now.since(begin).as_secs_f64();
            let curve = 0.4 * (t - k) * (t - k) * (t - k) + 1_000.0;
            worst = worst.max((cubic.window().0 as f64 / MSS as f64 - curve).abs());
        }
        assert!(
            cubic.window() > Bytes(1_400 * MSS),
            "past the plateau and beyond: {}",
            cubic.window()
        );
        assert!(worst < 1.0, "off the curve by {worst} segments");
    }
}

#[test]
fn cubic_is_no_slower_than_its_estimate_of_newreno() {
    let mut cubic = build(
        "cubic",
        &Config {
            initial_window: Bytes(20 * MSS),
            ..config(HyStart::Off)
        },
    );
    let mut now = Instant::ZERO;
    cubic.on_congestion(now, &congestion(CongestionKind::Loss, 20));
    assert_eq!(cubic.window(), Bytes(14 * MSS));
    // With an RTT of 10 ms the curve needs 2.5 s; NewReno's estimate grows by 0.53 segments a round trip.
    for _ in 0..10 {
        ack_clocked(&mut cubic, &mut now, Duration::from_millis(10));
    }
    let window = cubic.window().0 as f64 / MSS as f64;
    assert!((window - (14.0 + 10.0 * 0.529)).abs() < 0.6, "{window}");
}

#[test]
fn cubic_does_not_count_time_without_data() {
    let run = |pause: bool| {
        let mut cubic = build(
            "cubic",
            &Config {
                initial_window: Bytes(1_000 * MSS),
                ..config(HyStart::Off)
            },
        );
        let mut now = Instant::ZERO;
        let rtt = Duration::from_millis(100);
        cubic.on_congestion(now, &congestion(CongestionKind::Loss, 1_000));
        for _ in 0..20 {
            ack_clocked(&mut cubic, &mut now, rtt);
        }
        if pause {
            for _ in 0..50 {
                now += rtt;
                cubic.on_ack(
                    now,
                    &Ack {
                        cwnd_limited: false,
                        app_limited: true,
                        srtt: Some(rtt),
                        ..ack(1)
                    },
                );
            }
            now += Duration::from_secs(7);
            cubic.on_idle(now, Duration::from_secs(7));
        }
        for _ in 0..20 {
            ack_clocked(&mut cubic, &mut now, rtt);
        }
        cubic.window().0 / MSS
    };
    assert!(
        run(true).abs_diff(run(false)) <= 1,
        "{} after a pause, {} without",
        run(true),
        run(false)
    );
}

/// `bictcp_update` before Linux 4.3: a pause of ten seconds is time of the curve, whose plateau of 57 segments is 3.5 s away, so that the window
/// grows as fast as it may, half a segment for each ACK. Since then the curve goes on where it was.
#[test]
fn a_pause_is_time_of_the_curve_in_old_kernels_only() {
    let grown = |cubic_arithmetic| {
        let mut cubic = build(
            "cubic",
            &Config {
                cubic_arithmetic,
                count_segments: true,
                reduce_from_window: true,
                initial_window: Bytes(57 * MSS),
                ..config(HyStart::Off)
            },
        );
        let mut now = Instant::from_millis(1000);
        let rtt = Duration::from_millis(100);
        cubic.on_congestion(now, &congestion(CongestionKind::Loss, 57));
        ack_clocked(&mut cubic, &mut now, rtt);
        let before = cubic.window().0 / MSS;
        let pause = Duration::from_secs(10);
        now += pause;
        cubic.on_restart(now, pause);
        ack_clocked(&mut cubic, &mut now, rtt);
        cubic.window().0 / MSS - before
    };
    assert!(grown(CubicArithmetic::Linux) <= 1);
    assert!(grown(CubicArithmetic::LinuxBefore43) >= 18);
}

#[test]
fn fast_convergence_lowers_the_plateau() {
    let plateau = |fast: bool| {
        let mut values = Values::defaults(Cubic::PARAMETERS);
        values.set("fast_convergence", Value::Flag(fast)).expect("a flag");
        values
            .set("tcp_friendliness", Value::Flag(false))
            .expect("a flag");
        let config = Config {
            initial_window: Bytes(1_000 * MSS),
            ..config(HyStart::Off)
        };
        let mut cubic = Cubic::new(&values, &config);
        cubic.on_congestion(Instant::ZERO, &congestion(CongestionKind::Loss, 1_000));
        cubic.on_congestion(Instant::ZERO, &congestion(CongestionKind::Loss, 700));
        let mut now = Instant::ZERO;
        let k = libm::cbrt((700.0 * if fast { 0.85 } else { 1.0 } - 490.0) / 0.4);
        while now.as_secs_f64() < k {
            ack_clocked(&mut cubic, &mut now, Duration::from_millis(20));
        }
        cubic.window().0 / MSS
    };
    assert!(plateau(false).abs_diff(700) <= 1, "{}", plateau(false));
    assert!(plateau(true).abs_diff(595) <= 1, "{}", plateau(true)); // 700 x 0.85
}

/// A round of `samples` ACKs with this RTT.
fn round(cc: &mut impl CongestionController, now: &mut Instant, rtt_ms: u64, samples: u64) {
    for index in 0..samples {
        *now += Duration::from_millis(3);
        let report = Ack {
            rtt: Some(Duration::from_millis(rtt_ms)),
            round_start: index == 0,
            ..ack(1)
        };
        cc.on_ack(*now, &report);
    }
}

fn reno(hystart: HyStart) -> (Reno, Instant) {
    let config = Config {
        initial_window: Bytes(32 * MSS),
        ..config(hystart)
    };
    (
        Reno::new(&Values::defaults(Reno::PARAMETERS), &config),
        Instant::from_millis(1),
    )
}

#[test]
fn hystart_pp_enters_conservative_slow_start_on_a_rise_of_an_eighth() {
    for (last, rise, expected) in [
        (80, 9, Phase::SlowStart),
        (80, 10, Phase::ConservativeSlowStart),
        (20, 3, Phase::SlowStart), // at least 4 ms
        (20, 4, Phase::ConservativeSlowStart),
        (400, 15, Phase::SlowStart), // at most 16 ms
        (400, 16, Phase::ConservativeSlowStart),
    ] {
        let (mut cc, mut now) = reno(HyStart::HyStartPlusPlus);
        round(&mut cc, &mut now, last, 8);
        round(&mut cc, &mut now, last + rise, 7);
        assert_eq!(cc.phase(), Phase::SlowStart, "seven samples do not suffice");
        let report = Ack {
            rtt: Some(Duration::from_millis(last + rise)),
            ..ack(1)
        };
        cc.on_ack(now, &report);
        assert_eq!(cc.phase(), expected, "{last} + {rise} ms");
    }
}

#[test]
fn conservative_slow_start_grows_a_quarter_and_lasts_five_rounds() {
    let (mut cc, mut now) = reno(HyStart::HyStartPlusPlus);
    round(&mut cc, &mut now, 50, 8);
    round(&mut cc, &mut now, 60, 8);
    assert_eq!(cc.phase(), Phase::ConservativeSlowStart);
    let before = cc.window();
    round(&mut cc, &mut now, 60, 8);
    assert_eq!(cc.window() - before, Bytes(2 * MSS)); // 8 segments / 4
    // The round of the entry was the first; the one above ended it, three more make four.
    for _ in 0..3 {
        round(&mut cc, &mut now, 60, 8);
        assert_eq!(cc.phase(), Phase::ConservativeSlowStart);
    }
    let before = cc.window();
    round(&mut cc, &mut now, 60, 1);
    assert_eq!(cc.phase(), Phase::CongestionAvoidance);
    assert_eq!(cc.ssthresh(), before);
}

#[test]
fn a_falling_rtt_resumes_slow_start() {
    let (mut cc, mut now) = reno(HyStart::HyStartPlusPlus);
    round(&mut cc, &mut now, 50, 8);
    round(&mut cc, &mut now, 60, 8);
    round(&mut cc, &mut now, 59, 7);
    assert_eq!(cc.phase(), Phase::ConservativeSlowStart);
    cc.on_ack(
        now,
        &Ack {
            rtt: Some(Duration::from_millis(59)),
            ..ack(1)
        },
    );
    assert_eq!(cc.phase(), Phase::SlowStart);
    let before = cc.window();
    cc.on_ack(now, &ack(1));
    assert_eq!(cc.window() - before, Bytes(MSS));
}

#[test]
fn hystart_pp_is_for_the_first_slow_start_only() {
    let (mut cc, mut now) = reno(HyStart::HyStartPlusPlus);
    let mut timeout = congestion(CongestionKind::Timeout { first: true }, 400);
    timeout.in_flight = Bytes::ZERO;
    cc.on_congestion(now, &timeout);
    for rtt_ms in [50, 70, 90, 110] {
        round(&mut cc, &mut now, rtt_ms, 9);
        assert_eq!(cc.phase(), Phase::SlowStart);
    }
}

#[test]
fn the_original_hystart_leaves_on_a_train_of_half_the_rtt_and_of_all_of_it_where_paced() {
    // ACKs a millisecond apart at an RTT of 40 ms: the first one later than 20 ms after the round's begin. Linux' hystart_update does
    // not halve `delay_min` where the socket paces: the first one later than 40 ms.
    for (paced, expected) in [(false, 21), (true, 41)] {
        let config = Config {
            initial_window: Bytes(32 * MSS),
            paced,
            ..config(HyStart::HyStart)
        };
        for name in ["reno", "cubic"] {
            let (mut cc, mut now) = (build(name, &config), Instant::from_millis(1));
            let mut timeout = congestion(CongestionKind::Timeout { first: true }, 400);
            timeout.in_flight = Bytes::ZERO;
            for forgotten in [false, true] {
                if forgotten {
                    cc.on_congestion(now, &timeout); // what it measured is forgotten, not that it paces
                    cc.set_window(now, Bytes(32 * MSS), Bytes::MAX);
                    now += Duration::from_secs(2);
                }
                let left_after = (0..100_u64).find(|index| {
                    let report = Ack {
                        rtt: Some(Duration::from_millis(40)),
                        round_start: *index == 0,
                        ..ack(1)
                    };
                    cc.on_ack(now, &report);
                    now += Duration::from_millis(1);
                    cc.phase() == Phase::CongestionAvoidance
                });
                assert_eq!(
                    left_after,
                    Some(expected),
                    "{name}, paced {paced}, after a timeout {forgotten}"
                );
            }
        }
    }
}

#[test]
fn the_original_hystart_leaves_on_delay_and_not_on_sparse_acks() {
    for (rise_ms, expected) in [(5, Phase::SlowStart), (6, Phase::CongestionAvoidance)] {
        let (mut cc, mut now) = reno(HyStart::HyStart);
        round(&mut cc, &mut now, 40, 20); // 3 ms apart: no train
        assert_eq!(cc.phase(), Phase::SlowStart);
        round(&mut cc, &mut now, 40 + rise_ms, 9); // an eighth of 40 ms is 5
        assert_eq!(cc.phase(), expected, "{rise_ms} ms");
    }
}

#[test]
fn linux_has_hystart_in_cubic_only() {
    for (hystart, [by_reno, by_dctcp, by_cubic]) in [
        (HyStart::Off, [false, false, false]),
        (HyStart::HyStart, [true, true, true]),
        (HyStart::Linux, [false, false, true]),
    ] {
        let config = Config {
            initial_window: Bytes(32 * MSS),
            ..config(hystart)
        };
        for (name, leaves) in [("reno", by_reno), ("dctcp", by_dctcp), ("cubic", by_cubic)] {
            let (mut cc, mut now) = (build(name, &config), Instant::from_millis(1));
            round(&mut cc, &mut now, 40, 20);
            round(&mut cc, &mut now, 46, 9); // six milliseconds more, one above an eighth of 40 ms
            let expected = if leaves {
                Phase::CongestionAvoidance
            } else {
                Phase::SlowStart
            };
            assert_eq!(cc.phase(), expected, "{name} with {hystart:?}");
        }
    }
}

/// Window in segments by round trip: slow start, a loss at the tenth round, another controller's answer beside it.
/// RFC 9293: MUST-19
#[test]
fn windows_by_round() {
    let names: Vec<&str> = AnyController::ENTRIES.iter().map(|entry| entry.name).collect();
    let mut table = String::from("round");
    for name in &names {
        write!(table, " {name:>8}").expect("a string takes everything");
    }
    table.push('\n');
    let config = Config {
        count_segments: true,
        fractions: false,
        reduce_from_window: true,
        ..config(HyStart::Off)
    };
    let mut running: Vec<(AnyController, Instant)> = names
        .iter()
        .map(|name| (build(name, &config), Instant::ZERO))
        .collect();
    for round in 0..=60 {
        write!(table, "{round:5}").expect("a string takes everything");
        for (cc, now) in &mut running {
            write!(table, " {:8}", cc.window().0 / MSS).expect("a string takes everything");
            match round {
                4 | 30 => cc.on_congestion(*now, &congestion(CongestionKind::Loss, cc.window().0 / MSS)),
                45 => cc.on_congestion(*now, &congestion(CongestionKind::Timeout { first: true }, 1)),
                20 => cc.on_congestion(*now, &congestion(CongestionKind::Ecn, cc.window().0 / MSS)),
                _ => ack_clocked(cc, now, Duration::from_millis(100)),
            }
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

#[test]
fn entries_have_documents_and_valid_defaults() {
    for entry in AnyController::ENTRIES {
        let document: Vec<&str> = entry.document().collect();
        for heading in ["**Source.**", "**Deviations.**", "**Parameters.**"] {
            assert!(
                document.iter().any(|line| line.contains(heading)),
                "{}: {heading}",
                entry.name
            );
        }
        for parameter in entry.parameters {
            assert_eq!(
                parameter.kind.check(parameter.default),
                Ok(()),
                "{}.{}",
                entry.name,
                parameter.name
            );
        }
        assert_eq!(build(entry.name, &config(HyStart::Off)).name(), entry.name);
    }
}

/// New-CWV's answer to a loss: the curve begins there, in both arithmetics (docs/design/endpoint.md#newcwv-cc).
#[test]
fn an_answer_in_its_place_begins_a_new_epoch_of_cubic() {
    for cubic_arithmetic in [
        CubicArithmetic::Rfc9438,
        CubicArithmetic::Linux,
        CubicArithmetic::LinuxBefore43,
    ] {
        let config = Config {
            count_segments: true,
            cubic_arithmetic,
            ..config(HyStart::Off)
        };
        let mut cc = build("cubic", &config);
        let mut now = Instant::from_millis(100_000);
        let rtt = Duration::from_millis(100);
        cc.set_window(now, Bytes(40 * MSS), Bytes(40 * MSS));
        cc.on_congestion(now, &congestion(CongestionKind::Loss, 40));
        assert_eq!(cc.window(), Bytes(28 * MSS));
        let round = |cc: &mut AnyController, now: &mut Instant| {
            let segments = cc.window().0 / MSS;
            for part in 0..segments {
                let at = *now + rtt.mul_div(part, segments);
                let ack = Ack {
                    rtt: Some(rtt),
                    newest_rtt: Some(rtt),
                    srtt: Some(rtt),
                    ..ack(1)
                };
                cc.on_ack(at, &ack);
            }
            *now += rtt;
        };
        for _ in 0..60 {
            round(&mut cc, &mut now);
        }
        assert!(cc.window() > Bytes(45 * MSS), "past the plateau");
        cc.override_window(now, Bytes(20 * MSS), Bytes(20 * MSS));
        assert_eq!((cc.window(), cc.ssthresh()), (Bytes(20 * MSS), Bytes(20 * MSS)));
        let mut windows = Vec::new();
        for _ in 0..10 {
            round(&mut cc, &mut now);
            windows.push(cc.window().0 / MSS);
        }
        // K = cbrt((40 - 20) / 0.4) = 3.68 s: W(1 s + RTT) = 40 - 0.4 * 2.58^3 = 33.1.
        assert!(
            (31..=34).contains(&windows[9]),
            "{cubic_arithmetic:?}: {windows:?}"
        );
        assert!(windows[0] <= 23, "{cubic_arithmetic:?}: {windows:?}");
    }
}
