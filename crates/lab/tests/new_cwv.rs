//! New-CWV over pauses, as a run reaches them: RFC 7661 4.4.2 halves a window that was not validated every five minutes, from the first pause
//! on. The windows are worked out by hand from the one before the first pause.

use fleetfoot_core::time::Instant;
use fleetfoot_lab::compare::{Choice, Plan};
use fleetfoot_lab::run::observe;
use fleetfoot_lab::scenario::Scenario;
use fleetfoot_sim::record::{Capture, CapturePlace, Trace};
use fleetfoot_sim::spec::LinkIndex;
use std::sync::atomic::AtomicBool;

const MSS: u64 = 1460;
/// Segments of a burst: less than the window that the first burst earns in slow start.
const BURST: u64 = 40;

/// Bursts of 40 segments on one connection, so many seconds apart: the window when the first pause begins, and how many segments of the
/// second and third burst leave before their first ACK, in segments.
fn bursts(pause_s: u64, settings: &str) -> (u64, [u64; 2]) {
    let text = format!(
        r#"
title = "bursts"
[network]
kind = "dumbbell"
pairs = 1
access = {{ rate = "10 Gbit/s", delay = "0 ms" }}
bottleneck = {{ rate = "10 Gbit/s", delay = "50 ms", queue = {{ kind = "drop-tail", limit = "10000 packets" }} }}
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
        BURST * MSS,
        2 * pause_s + 10,
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
    let burst = |number: u64| Instant::ZERO + fleetfoot_core::time::Duration::from_secs(1 + number * pause_s);
    let window = trace
        .rows
        .iter()
        .rev()
        .find(|row| row.time < burst(1))
        .map_or(0, |row| row.info.cwnd.get());
    let round = fleetfoot_core::time::Duration::from_millis(99);
    let left = |number: u64| {
        let packets = capture.packets.iter().filter(|seen| {
            seen.place == CapturePlace::Enter
                && seen.packet.segment.payload > 0
                && seen.time >= burst(number)
                && seen.time < burst(number) + round
        });
        packets.count() as u64
    };
    (window / MSS, [left(1), left(2)])
}

/// RFC 7661 4.4.2: halved for each five minutes, never below the initial window (ten).
fn halved(window: u64, times: u64) -> u64 {
    (0..times).fold(window, |window, _| (window / 2).max(window.min(10)))
}

#[test]
fn the_window_ages_from_the_first_pause_on() {
    for controller in ["reno", "cubic"] {
        for validation in ["newcwv", "newcwv-unpaced"] {
            let settings =
                format!("congestion_control = \"{controller}\"\nwindow_validation = \"{validation}\"");
            // Data is acknowledged within half a second, and counts for a second more: the phase begins a second or two after a burst.
            for (pause_s, times) in [
                (10, 0),
                (100, 0),
                (298, 0),
                (303, 1),
                (598, 1),
                (603, 2),
                (903, 3),
                (3600, 11),
                (7200, 23),
            ] {
                let (earned, left) = bursts(pause_s, &settings);
                let what = format!("{controller}, {validation}, {pause_s} s, window {earned}: {left:?}");
                assert!(earned > BURST, "{what}");
                assert_eq!(left[0], halved(earned, times).min(BURST), "first pause: {what}");
                if times == 0 {
                    assert_eq!(left[1], BURST, "second pause: {what}");
                }
                if times >= 3 {
                    assert_eq!(left[1], 10, "second pause, the initial window: {what}");
                }
            }
        }
    }
}
