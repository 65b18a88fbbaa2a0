//! New-CWV by hand (docs/design/window-validation.md#examples): segments of 1000 bytes, SRTT 100 ms, windows in bytes.

use super::script::{Script, T0, bare};
use crate::cc::AnyController;
use crate::tcp::{CaState, Config, Profile, TailLossProbe, TimeoutRules, WindowValidation};
use crate::time::Duration;
use crate::units::Bytes;
use alloc::vec::Vec;
use proptest::prelude::{prop_assert_eq, proptest};

fn config(kind: WindowValidation) -> Config {
    let mut config = bare();
    config.window_validation = kind;
    config
}

fn nonvalidated(script: &Script) -> bool {
    script
        .connection
        .sender
        .as_ref()
        .expect("established")
        .is_nonvalidated()
}

/// Established; a window of 40 of which ten are used: not validated at 100 ms.
fn ten_of_forty(kind: WindowValidation) -> Script {
    let mut script = Script::open(&config(kind), 40);
    assert_eq!(script.write(10).len(), 10);
    assert!(!nonvalidated(&script), "pipeACK is undefined");
    script.at(100).ack(10, &[]);
    assert!(nonvalidated(&script));
    script
}

#[test]
fn an_application_limited_window_stays() {
    let mut script = Script::open(&config(WindowValidation::NewCwv), 40);
    assert_eq!(script.write(40).len(), 40);
    let mut acked = 40;
    for round in 1..2990 {
        script.at(round * 100).ack(acked, &[]);
        let phase = nonvalidated(&script);
        if round < 11 {
            assert!(!phase, "the sample of 40 counts at {} ms", round * 100);
        } else if round >= 12 {
            assert!(phase, "ten of forty at {} ms", round * 100);
        }
        assert_eq!(script.write(10).len(), 10);
        acked += 10;
        assert_eq!(script.cwnd(), 40_000);
    }
}

#[test]
fn after_a_pause_the_whole_window_leaves_in_one_round_trip() {
    let mut script = ten_of_forty(WindowValidation::NewCwvUnpaced);
    assert_eq!(script.at(10_100).write(40).len(), 40);
    assert_eq!(script.cwnd(), 40_000);
    // RFC 5681: 10, then 20 more with each ACK of ten.
    let mut script = Script::open(&config(WindowValidation::Rfc5681), 40);
    script.write(10);
    script.at(100).ack(10, &[]);
    assert_eq!(script.at(10_100).write(40).len(), 10);

    // Paced: ten at once, then one every 2.5 ms, the last after 75 ms.
    let mut script = ten_of_forty(WindowValidation::NewCwv);
    assert_eq!(script.at(10_100).write(40).len(), 10);
    let mut left = 10;
    let mut last = 0;
    while left < 40 {
        let (at, sent) = script.timer();
        assert!(sent.len() <= 1);
        left += sent.len();
        last = at;
    }
    assert_eq!((left, last), (40, 10_175));
}

/// After a pause at the rate of before it; at half of it if RTTs are a quarter longer.
#[test]
fn a_restart_may_probe_the_path() {
    for (rtt_ms, gap_us) in [(100, 10_000), (140, 20_000)] {
        let mut script = Script::open(&config(WindowValidation::NewCwvProbing), 40);
        for round in 0..3 {
            assert_eq!(script.at(round * 100).write(10).len(), 10);
            script.at((round + 1) * 100).ack(round as u32 * 10 + 10, &[]);
        }
        // pipeACK was ten: one every 10 ms.
        assert_eq!(script.at(10_000).write(40).len(), 10, "the quantum");
        let mut times = Vec::new();
        while times.len() < 20 {
            let at = script.connection.poll_timeout().expect("held back");
            let answered = T0 + Duration::from_millis(10_000 + rtt_ms);
            if script.now < answered && answered <= at {
                script.now = answered;
                script.ack(31, &[]);
                continue;
            }
            script.now = at;
            script.connection.on_timeout(at);
            if !script.sent().is_empty() {
                times.push(at.since(T0).as_micros());
            }
        }
        let last = times[19] - times[18];
        // SRTT moves by an eighth of the difference.
        let srtt = if rtt_ms == 100 { 100.0 } else { 105.0 };
        let expected = f64::from(gap_us) * srtt / 100.0;
        assert!(
            (last as f64 - expected).abs() < 2.0,
            "{last} us for {expected} at {rtt_ms} ms"
        );
    }
}

/// pipeACK was ten before the pause. A single segment after it says nothing about that.
#[test]
fn the_first_acknowledgment_after_a_pause_does_not_set_the_pace() {
    let mut script = Script::open(&config(WindowValidation::NewCwvProbing), 40);
    for round in 0..3 {
        script.at(round * 100).write(10);
        script.at((round + 1) * 100).ack(round as u32 * 10 + 10, &[]);
    }
    script.at(10_000).write(1);
    script.at(10_100).ack(31, &[]);
    let mut left = script.write(40).len();
    let mut last = 0;
    while left < 20 {
        let (at, sent) = script.timer();
        left += sent.len();
        last = at;
    }
    assert!(last < 10_250, "one every 10 ms, not every 100: {last} ms");
}

/// A burst of 40 of which the first `lost` are; the rest is SACKed. Returns the window during recovery and after it.
fn burst_of_forty(lost: u32) -> (u64, u64) {
    burst(40, 10, 40, lost)
}

/// The same with a window of which `used` segments were used, and a burst of `flight`.
fn burst(cwnd: u32, used: u32, flight: u32, lost: u32) -> (u64, u64) {
    let mut settings = config(WindowValidation::NewCwvUnpaced);
    settings.dup_thresh = 2;
    let mut script = Script::open(&settings, cwnd);
    script.write(used);
    script.at(100).ack(used, &[]);
    assert!(nonvalidated(&script));
    assert_eq!(script.at(200).write(flight).len() as u32, flight);
    let end = used + flight;
    let mut again = script.at(300).ack(used, &[(used + lost, end)]);
    let during = script.cwnd();
    assert_eq!(script.connection.info(script.now).ca_state, CaState::Recovery);
    let mut acked = used;
    while acked < used + lost {
        acked += again.len() as u32;
        let ack = if acked >= used + lost { end } else { acked };
        let at = script.now.since(T0).as_millis() + 100;
        let newest = [(end - 2, end)];
        again = script.at(at).ack(ack, if ack == end { &[] } else { &newest });
    }
    assert!(!nonvalidated(&script), "pipeACK is undefined again");
    (during, script.cwnd())
}

#[test]
fn a_loss_halves_what_was_used() {
    // D = 40: 20 during, (40 - 12) / 2 after. 38 lost leave one segment.
    assert_eq!(burst_of_forty(12), (20_000, 14_000));
    assert_eq!(burst_of_forty(38), (20_000, 1_000));
    // pipeACK 10, four out, one lost: 5, then 4.5 segments.
    let mut script = ten_of_forty(WindowValidation::NewCwvUnpaced);
    script.at(200).write(4);
    assert_eq!(script.at(300).ack(10, &[(11, 14)]), [10]);
    assert_eq!((script.cwnd(), script.ssthresh()), (5_000, 5_000));
    script.at(400).ack(14, &[]);
    assert_eq!((script.cwnd(), script.ssthresh()), (4_500, 4_500));
}

/// RFC 7661 4.4.1: R is what was retransmitted, also by a loss probe before the answer began. pipeACK 10, four out, the last lost:
/// 5, then 4.5 segments, as by any other retransmission.
#[test]
fn what_a_probe_repaired_is_part_of_the_loss() {
    for rules in [TimeoutRules::Rfc, TimeoutRules::Linux] {
        let mut settings = config(WindowValidation::NewCwvUnpaced);
        settings.tail_loss_probe = TailLossProbe::Rfc8985;
        settings.timeout_rules = rules;
        settings.max_ack_delay = Some(Duration::from_millis(25));
        let mut script = Script::open(&settings, 40);
        script.write(10);
        script.at(100).ack(10, &[]);
        assert!(nonvalidated(&script));
        assert_eq!(script.at(200).write(4).len(), 4);
        script.at(300).ack(13, &[]);
        let (at, probe) = script.timer();
        assert_eq!(probe, [13], "{rules:?}");
        assert_eq!(script.write(1), [14]);
        script.at(at + 100).ack(15, &[]);
        assert_eq!(script.connection.stats().window_reductions, 1, "{rules:?}");
        script.at(at + 200).write(1);
        assert_eq!((script.cwnd(), script.ssthresh()), (4_500, 4_500), "{rules:?}");
    }
}

/// Section 12, New-CWV x CC: in the non-validated phase no controller's factor counts, and CUBIC's epoch begins anew.
#[test]
fn whatever_the_controller_the_answer_is_half_of_what_was_used() {
    // These pace: ten segments do not leave at once.
    let pacing = ["prague", "bbr", "bbr3"];
    let names = AnyController::ENTRIES.iter().map(|entry| entry.name);
    for name in names.filter(|name| !pacing.contains(name)) {
        let mut settings = config(WindowValidation::NewCwvUnpaced);
        settings.congestion_control = name;
        let mut script = Script::open(&settings, 40);
        script.write(10);
        script.at(100).ack(10, &[]);
        assert!(nonvalidated(&script), "{name}");
        script.at(200).write(4);
        assert_eq!(script.at(300).ack(10, &[(11, 14)]), [10], "{name}");
        assert_eq!(script.ssthresh(), 5_000, "{name}");
        script.at(400).ack(14, &[]);
        assert_eq!((script.cwnd(), script.ssthresh()), (4_500, 4_500), "{name}");
        // Nothing is remembered of the window before: a full window grows by a segment in a round trip or two.
        let mut acked = 14;
        for round in 5..8 {
            script.at(round * 100).write(5);
            acked += 4;
            script.at(round * 100 + 100).ack(acked, &[]);
        }
        assert!(script.cwnd() <= 4_500 + 3 * 1_000, "{name}: {}", script.cwnd());
    }
}

#[test]
fn in_the_validated_phase_the_answer_is_the_controllers() {
    let mut script = Script::open(&config(WindowValidation::NewCwv), 40);
    script.write(40);
    script.at(100).ack(40, &[]);
    script.at(200).write(40);
    assert_eq!(script.at(300).ack(40, &[(41, 80)]), [40]);
    assert_eq!(script.cwnd(), 20_000, "NewReno: half of 40 out");
    script.at(400).ack(80, &[]);
    assert_eq!(script.cwnd(), 20_000, "no second reduction");
}

#[test]
fn a_mark_halves_what_was_used_and_nothing_was_lost() {
    let mut settings = config(WindowValidation::NewCwvUnpaced);
    settings.ecn = true.into();
    let mut script = Script::open(&settings, 40);
    script.write(10);
    script.at(100).ack(10, &[]);
    script.at(200).write(20);
    script.at(300).ack_marked_quietly(15_000);
    script.sent();
    assert_eq!(script.cwnd(), 10_000, "max(10, 20 out when the ACK came) / 2");
    script.at(310).ack_bytes_quietly(30_000, &[]);
    assert_eq!(script.cwnd(), 10_000);
}

/// The original comes late: its acknowledgment ends the recovery, and the D-SACK for what was sent again comes after that.
#[test]
fn an_answer_that_was_a_mistake_is_taken_back_after_the_recovery_too() {
    let mut settings = config(WindowValidation::NewCwvUnpaced);
    settings.undo = true;
    let mut script = Script::open(&settings, 40);
    script.write(10);
    script.at(100).ack(10, &[]);
    script.at(200).write(4);
    assert_eq!(script.at(300).ack(10, &[(11, 14)]), [10]);
    assert_eq!(script.cwnd(), 5_000);
    script.at(310).ack(14, &[]);
    assert_eq!((script.cwnd(), script.connection.stats().undos), (4_500, 0));
    script.at(400).ack(14, &[(10, 11)]);
    assert_eq!((script.cwnd(), script.connection.stats().undos), (40_000, 1));
}

/// A mark on the last acknowledgment: the answer is over with it, so five minutes and a second of silence halve the window as any pause does.
#[test]
fn a_pause_right_after_a_mark_ages_the_window() {
    let mut settings = config(WindowValidation::NewCwv);
    settings.ecn = true.into();
    let mut script = Script::open(&settings, 60);
    script.write(60);
    script.at(100).ack_marked_quietly(60_000);
    script.drain();
    assert_eq!(script.connection.info(script.now).ca_state, CaState::Cwr);
    assert_eq!(script.ssthresh(), 30_000);
    script.at(100 + 301_000).write(1);
    assert_eq!((script.cwnd(), script.ssthresh()), (15_000, 30_000));
}

#[test]
fn a_timeout_leaves_the_phase() {
    let mut script = ten_of_forty(WindowValidation::NewCwvUnpaced);
    script.at(200).write(4);
    let (_, again) = script.timer();
    assert_eq!(again, [10]);
    assert_eq!(
        (script.cwnd(), script.ssthresh()),
        (1_000, 2_000),
        "half of four out"
    );
    assert!(!nonvalidated(&script));
}

/// Five minutes and a second after the last ACK; ten and two seconds. The sample of 40 expires after one.
#[test]
fn five_minutes_halve_the_window() {
    let idle = |cwnd: u32, seconds: u64| {
        let mut script = Script::open(&config(WindowValidation::NewCwv), cwnd);
        let sender = script.connection.sender.as_mut().expect("established");
        sender
            .cc
            .set_window(T0, Bytes(u64::from(cwnd) * 1000), Bytes(20_000));
        script.write(cwnd);
        script.at(100).ack(cwnd, &[]);
        script.at(100 + seconds * 1000).write(1);
        (script.cwnd(), script.ssthresh())
    };
    assert_eq!(idle(40, 300), (40_000, 20_000));
    assert_eq!(idle(40, 301), (20_000, 30_000));
    assert_eq!(idle(40, 602), (10_000, 30_000));
    assert_eq!(idle(12, 301), (10_000, 20_000));
    assert_eq!(idle(12, 36_000), (10_000, 20_000));
}

#[test]
fn it_grows_only_where_it_is_full() {
    let mut script = ten_of_forty(WindowValidation::NewCwvUnpaced);
    // Not full: frozen, whatever the growth switch says.
    script.at(200).write(30);
    script.at(300).ack(40, &[]);
    assert_eq!(script.cwnd(), 40_000);
    let mut settings = config(WindowValidation::NewCwvUnpaced);
    settings.growth = crate::tcp::WindowGrowth::Always;
    let mut script = Script::open(&settings, 40);
    script.write(10);
    script.at(100).ack(10, &[]);
    let grown = script.cwnd();
    script.at(200).write(10);
    script.at(300).ack(20, &[]);
    assert_eq!(script.cwnd(), grown, "frozen once it is not validated");
    // Full, with more data waiting.
    let mut script = ten_of_forty(WindowValidation::NewCwvUnpaced);
    script.at(200).write(60);
    script.at(300).ack(50, &[]);
    assert!(script.cwnd() > 40_000);
}

#[test]
fn without_a_pause_nothing_changes() {
    // A bulk transfer uses its window: always validated, and as with no validation at all.
    let run = |kind| {
        let mut script = Script::open(&config(kind), 10);
        let mut windows = Vec::new();
        let mut sent = script.write(600).len() as u32;
        let mut acked = 0;
        for round in 1..6 {
            let upto = sent;
            while acked < upto {
                acked += 2;
                sent += script.at(round * 100).ack(acked.min(upto), &[]).len() as u32;
            }
            windows.push((script.cwnd(), sent, nonvalidated(&script)));
        }
        windows
    };
    let with = run(WindowValidation::NewCwv);
    assert_eq!(with, run(WindowValidation::None));
    assert!(with.iter().all(|state| !state.2));
}

/// RFC 7661 4.4.1, in segments: the window during a recovery and after it.
fn naive_reduction(pipe_ack: u32, loss_flight: u32, lost: u32) -> (f64, f64) {
    let used = f64::from(pipe_ack.max(loss_flight));
    ((used / 2.0).max(1.0), ((used - f64::from(lost)) / 2.0).max(1.0))
}

/// RFC 7661 4.4.2, in bytes: window and threshold after `periods` non-validated periods.
fn naive_periods(cwnd: u64, ssthresh: u64, initial: u64, periods: u64) -> (u64, u64) {
    (0..periods).fold((cwnd, ssthresh), |(cwnd, ssthresh), _| {
        let left = if cwnd > initial {
            (cwnd / 2).max(initial)
        } else {
            cwnd
        };
        (left, ssthresh.max(cwnd * 3 / 4))
    })
}

proptest! {
    #[test]
    fn losses_are_answered_as_the_rfc_says(cwnd in 12_u32..60, used in 1_u32..30, flight in 4_u32..60, lost in 1_u32..58) {
        let used = used.min((cwnd - 1) / 2);
        let flight = flight.min(cwnd);
        let lost = lost.min(flight - 2);
        let (during, after) = burst(cwnd, used, flight, lost);
        let naive = naive_reduction(used, flight, lost);
        prop_assert_eq!((during as f64 / 1e3, after as f64 / 1e3), naive);
    }

    #[test]
    fn idle_periods_shrink_the_window_as_the_rfc_says(cwnd in 2_u32..60, ssthresh in 2_u64..100, seconds in 2_u64..6000) {
        let mut script = Script::open(&config(WindowValidation::NewCwv), cwnd);
        let sender = script.connection.sender.as_mut().expect("established");
        sender.cc.set_window(T0, Bytes(u64::from(cwnd) * 1000), Bytes(ssthresh * 1000));
        script.write(cwnd);
        script.at(100).ack(cwnd, &[]);
        let before = (script.cwnd(), script.ssthresh());
        script.at(100 + seconds * 1000).write(1);
        // The sample expires after a second; then the phase begins.
        let periods = (seconds - 1) / 300;
        prop_assert_eq!(
            (script.cwnd(), script.ssthresh()),
            naive_periods(before.0, before.1, 10_000, periods)
        );
    }
}

/// Section 12: after an answer of New-CWV the curve of CUBIC begins anew, under the arithmetic of every profile.
#[test]
fn after_an_answer_cubic_begins_a_new_epoch() {
    for profile in Profile::ALL {
        let mut settings = config(WindowValidation::NewCwvUnpaced);
        settings.congestion_control = "cubic";
        settings.cubic_arithmetic = Config::profile(profile).cubic_arithmetic;
        let mut script = Script::open(&settings, 10);
        let sender = script.connection.sender.as_mut().expect("established");
        sender.cc.set_window(T0, Bytes(10_000), Bytes(10_000));
        let (mut sent, mut at) = (0, 0);
        // Round trips in which as much is written as `most` and the window allow, and one segment waits.
        let mut rounds = |script: &mut Script, count: u32, most: u32| {
            for _ in 0..count {
                let window = (script.cwnd() / 1000) as u32;
                sent += script.at(at).write(most.min(window + 1)).len() as u32;
                at += 100;
                sent += script.at(at).ack(sent, &[]).len() as u32;
            }
            (sent, at)
        };
        // An epoch of twelve seconds, in the last ten of which two segments are used.
        rounds(&mut script, 20, u32::MAX);
        let (sent, at) = rounds(&mut script, 100, 2);
        assert!(nonvalidated(&script), "{profile:?}");
        // Four of which the first is lost.
        assert_eq!(script.at(at).write(4).len(), 4);
        let again = script.at(at + 100).ack(sent, &[(sent + 1, sent + 4)]);
        assert_eq!(again, [sent], "{profile:?}");
        let mut sent = sent + 4;
        script.at(at + 200).ack(sent, &[]);
        let after = script.cwnd();
        assert_eq!(after, 1_500, "{profile:?}: half of four less one");
        // A second of full windows: along the old curve it would grow by half in each round trip.
        for round in 2..12 {
            let window = (script.cwnd() / 1000) as u32;
            sent += script.at(at + round * 100).write(window + 1).len() as u32;
            sent += script.at(at + (round + 1) * 100).ack(sent, &[]).len() as u32;
        }
        assert!(script.cwnd() <= 8_000, "{profile:?}: {}", script.cwnd());
    }
}
