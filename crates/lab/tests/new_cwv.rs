//! New-CWV over pauses, as a run reaches them: RFC 7661 4.4.2 halves a window that was not validated every five minutes, from the first pause
//! on, never below the initial window, and keeps three quarters of it in the threshold. The tables are worked out by hand.
//!
//! RTT 100 ms, initial window 10, every segment acknowledged at once: slow start sends 10, 20 and 40 segments in three round trips, and each of
//! the 70 acknowledgments opens the window by one, to 80. The last one comes 0.4 s after the write and counts for a second more, so the window
//! ages from 1.4 s after the write on: a pause of 298 s costs nothing, one of 303 s a halving, one of 3600 s eleven.

use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_lab::compare::{Choice, Plan};
use fleetfoot_lab::run::observe;
use fleetfoot_lab::scenario::Scenario;
use fleetfoot_sim::record::{Capture, CapturePlace, Trace};
use fleetfoot_sim::spec::LinkIndex;
use std::sync::atomic::AtomicBool;

const MSS: u64 = 1460;
/// Segments of a burst: three full round trips of slow start.
const BURST: u64 = 70;
/// The initial window.
const INITIAL: u64 = 10;

/// A pause and what follows it.
#[derive(Clone, Copy, Debug)]
struct Pause {
    /// The window when it begins, in bytes: whole segments until a threshold of three quarters ends slow start.
    window: u64,
    /// The threshold then, in bytes.
    threshold: u64,
    /// Segments of the next burst that leave before its first acknowledgment.
    left: u64,
    /// The threshold after that acknowledgment, in bytes.
    threshold_after: u64,
}

/// Bursts of so many segments on one connection, `pause_s` apart: what three pauses do. `loss`: of the bottleneck.
fn pauses(segments: u64, pause_s: u64, settings: &str, loss: &str) -> [Pause; 3] {
    let text = format!(
        r#"
title = "bursts"
[network]
kind = "dumbbell"
pairs = 1
access = {{ rate = "10 Gbit/s", delay = "0 ms" }}
bottleneck = {{ rate = "10 Gbit/s", delay = "50 ms", queue = {{ kind = "drop-tail", limit = "10000 packets" }}{loss} }}
[tcp]
profile = "linux-2015"
hystart = "off"
delayed_ack = "off"
nagle = false
timestamps = false
{settings}
[[traffic]]
name = "b"
kind = "on-off"
count = 1
burst = "{} B"
interval = "{pause_s} s"
start = "1 s"
[run]
duration = "{} s"
drain = "5 s"
"#,
        segments * MSS,
        3 * pause_s + 10,
    );
    let scenario = Scenario::parse("bursts.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::single(scenario, &Choice::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .expect("the scenario itself");
    let spec = plan.variants[0].resolved.spec(1);
    let forward = spec
        .links
        .iter()
        .position(|link| link.name == "bottleneck" && link.forward)
        .expect("there is one") as u32;
    let mut observers = (Trace::new([0], 1), Capture::new([LinkIndex(forward)], usize::MAX));
    observe(&spec, &AtomicBool::new(false), &mut observers).expect("it runs");
    let (trace, capture) = observers;
    let begin = |number: u64| Instant::ZERO + Duration::from_secs(1 + number * pause_s);
    [1, 2, 3].map(|number| {
        let before = trace.rows.iter().rev().find(|row| row.time < begin(number));
        let after = trace.rows.iter().find(|row| row.time >= begin(number));
        let (before, after) = (
            before.expect("the last ACK").info,
            after.expect("the first ACK").info,
        );
        let round = begin(number) + Duration::from_millis(99);
        let left = capture.packets.iter().filter(|seen| {
            seen.place == CapturePlace::Enter
                && seen.packet.segment.payload > 0
                && (begin(number)..round).contains(&seen.time)
        });
        Pause {
            window: before.cwnd.get(),
            threshold: before.ssthresh.get(),
            left: left.count() as u64,
            threshold_after: after.ssthresh.get(),
        }
    })
}

/// Segments of a window in bytes that is halved so often, never below the initial window (RFC 7661 4.4.2).
fn halved(window: u64, times: u64) -> u64 {
    let least = |window: u64| window.min(INITIAL * MSS);
    (0..times).fold(window, |window, _| (window / 2).max(least(window))) / MSS
}

/// Both controllers, paced or not.
fn settings() -> impl Iterator<Item = String> {
    ["reno", "cubic"].into_iter().flat_map(|controller| {
        ["newcwv", "newcwv-unpaced"].map(|validation| {
            format!("congestion_control = \"{controller}\"\nwindow_validation = \"{validation}\"")
        })
    })
}

#[test]
fn the_window_ages_from_the_first_pause_on() {
    // Pause, halvings, and the segments that leave at once after the first pause: 80, 40, 20 and 10, of a burst of 70.
    let table = [
        (10, 0, 70),
        (100, 0, 70),
        (298, 0, 70),
        (303, 1, 40),
        (598, 1, 40),
        (603, 2, 20),
        (898, 2, 20),
        (903, 3, 10),
        (3600, 11, 10),
        (7200, 23, 10),
    ];
    for settings in settings() {
        for (pause_s, times, left) in table {
            let seen = pauses(BURST, pause_s, &settings, "");
            let what = format!("{settings}, {pause_s} s: {seen:?}");
            assert_eq!(
                (seen[0].window, seen[0].left),
                (80 * MSS, left),
                "first pause: {what}"
            );
            for pause in seen {
                assert_eq!(pause.left, halved(pause.window, times).min(BURST), "{what}");
                assert_eq!(pause.threshold_after, pause.threshold, "none was set: {what}");
            }
            if times >= 3 {
                // Each burst earns its window anew: every pause is as the first.
                assert_eq!(
                    seen.map(|pause| (pause.window, pause.left)),
                    [(80 * MSS, left); 3],
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn three_quarters_of_the_window_stay_in_the_threshold() {
    // The sixth segment of 300 is lost: half of the window of then is the threshold, and the window grows by one per round trip, to
    // more than four thirds of the threshold. RFC 7661 4.4.2: ssthresh = max(ssthresh, 3/4 cwnd), of the window before the first halving.
    for settings in settings() {
        for (pause_s, times) in [(10, 0), (298, 0), (310, 1), (610, 2), (3600, 11)] {
            let seen = pauses(
                300,
                pause_s,
                &settings,
                ", loss = { kind = \"script\", packets = [5], data_only = true }",
            );
            let what = format!("{settings}, {pause_s} s: {seen:?}");
            let [first, ..] = seen;
            assert!(
                3 * first.window > 4 * first.threshold,
                "worth remembering: {what}"
            );
            for pause in seen {
                assert_eq!(pause.left, halved(pause.window, times).min(300), "{what}");
                let kept = if times == 0 { 0 } else { pause.window * 3 / 4 };
                assert_eq!(pause.threshold_after, pause.threshold.max(kept), "{what}");
            }
        }
    }
}

#[test]
fn a_pause_right_after_a_recovery_ages_the_window_too() {
    // The 50th segment of 70 is lost, so the burst ends with its recovery: pipeACK is undefined, which for RFC 7661 4.2 is validated, and no
    // sample comes in the pause. Before, the window that the recovery left was kept for ever.
    for settings in settings() {
        for (pause_s, times) in [(10, 0), (298, 0), (310, 1), (610, 2), (3600, 11)] {
            let seen = pauses(
                BURST,
                pause_s,
                &settings,
                ", loss = { kind = \"script\", packets = [49], data_only = true }",
            );
            let what = format!("{settings}, {pause_s} s: {seen:?}");
            assert!(
                seen[0].window >= 2 * INITIAL * MSS,
                "there is something to halve: {what}"
            );
            for pause in seen {
                assert_eq!(pause.left, halved(pause.window, times).min(BURST), "{what}");
            }
        }
    }
}

#[test]
fn the_older_rules_take_the_window_in_every_pause() {
    // RFC 5681 4.1: the initial window after an idle time longer than the timeout. RFC 2861 3: a halving for each timeout of it, 33 after ten
    // seconds. No validation: nothing is taken.
    for (validation, left) in [("rfc5681", INITIAL), ("rfc2861", INITIAL), ("none", BURST)] {
        for controller in ["reno", "cubic"] {
            let settings =
                format!("congestion_control = \"{controller}\"\nwindow_validation = \"{validation}\"");
            let seen = pauses(BURST, 10, &settings, "");
            assert_eq!(seen.map(|pause| pause.left), [left; 3], "{settings}: {seen:?}");
        }
    }
    // A pause of two timeouts and a bit: the last data leaves 0.3 s after the write that opened the connection, 0.7 s before the next one, and the timeout is
    // 300 ms. RFC 2861: from 80 to 20.
    let settings = "congestion_control = \"reno\"\nwindow_validation = \"rfc2861\"";
    let seen = pauses(BURST, 1, settings, "");
    assert_eq!((seen[0].window, seen[0].left), (80 * MSS, 20), "{seen:?}");
}
