//! Calls, look-ups and pings from the file to the result.

use super::{refusal, resolved};
use crate::compare::{Choice, Plan, build};
use crate::result::{Comparison, Group};
use crate::run::{Options, execute, simulate};
use crate::scenario::{Scenario, Setting};
use fleetfoot_core::time::Duration;
use fleetfoot_sim::spec::Traffic;
use std::sync::atomic::AtomicBool;

/// A line that is full upwards, as a backup fills it.
const LINE: &str = r#"
[network]
kind = "dumbbell"
pairs = 3

[network.bottleneck]
rate = "20 Mbit/s"
delay = "10 ms"
reverse = { rate = "5 Mbit/s", queue = { kind = "drop-tail", limit = "125 kB" } }

[[traffic]]
name = "call"
kind = "video-call"
frame = "4 kB"

[[traffic]]
name = "names"
kind = "dns"

[[traffic]]
name = "pings"
kind = "ping"
interval = { dist = "exponential", mean = "200 ms" }
latency_sensitive = true

[[traffic]]
name = "voice"
kind = "cbr"
rate = "64 kbit/s"
packet = "200 B"
direction = "up"
latency_sensitive = true

[[traffic]]
name = "backup"
kind = "bulk"
direction = "up"

[[variant]]
name = "fair both ways"
set = { "network.bottleneck.queue.kind" = "fq-codel", "network.bottleneck.reverse.queue.kind" = "fq-codel" }

[run]
duration = "10 s"
warmup = "1 s"
seeds = 3
"#;

fn compared(text: &str) -> Comparison {
    let scenario = Scenario::parse("line.toml", text).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::compare(scenario, &Choice::default()).unwrap_or_else(|error| panic!("{error}"));
    let stop = AtomicBool::new(false);
    let batch = execute(
        &plan.jobs(),
        &plan.seeds,
        &Options::default(),
        &stop,
        &simulate,
        &|_| (),
    )
    .expect("it runs");
    build(&plan, &batch, "fleetfoot compare line.toml")
}

#[test]
fn defaults_are_those_of_a_call_and_of_a_resolver() {
    let plain = resolved(LINE, &Setting::none());
    let Traffic::Video(video) = &plain.spec.groups[0].traffic else {
        panic!("a call");
    };
    assert!(video.both_ways && video.key_every.is_none());
    assert_eq!((video.frame_rate, video.packet.0), (30.0, 1_228));
    assert_eq!(plain.groups[0].deadline, Some(Duration::from_millis(150)));
    assert_eq!(plain.spec.groups[0].pairs.len(), 6, "both ways of each pair");
    let Traffic::Dns(dns) = &plain.spec.groups[1].traffic else {
        panic!("look-ups");
    };
    assert_eq!((dns.timeout, dns.attempts), (Duration::from_secs(5), 2));
    assert_eq!(dns.most.0, 1_232);
    let waits: Vec<bool> = plain.groups.iter().map(|group| group.latency_sensitive).collect();
    assert_eq!(waits, [true, true, true, true, false]);
    let up = Setting::none().with("traffic.call.direction", "up");
    let up = resolved(LINE, &up);
    assert!(matches!(&up.spec.groups[0].traffic, Traffic::Video(video) if !video.both_ways));
    let message = refusal(&LINE.replace("frame = \"4 kB\"", "data_unit = \"500 B\"")).to_string();
    assert!(message.contains("packets of `video-call`"), "{message}");
}

#[test]
fn everybody_who_waits_is_compared_and_losses_are_reported() {
    let comparison = compared(LINE);
    let variants = &comparison.document.variants;
    let of = |variant: usize, name: &str| -> &Group {
        let groups = &variants[variant].groups;
        groups.iter().find(|group| group.name == name).expect("a group")
    };
    let share = |variant: usize, group: &str, name: &str| of(variant, group).more[name].mean;
    // The modem's queue holds 200 ms: half of the frames, those upwards, are later than 150 ms.
    assert!((0.4..=0.55).contains(&share(0, "call", "late_or_lost")));
    assert!(share(1, "call", "late_or_lost") < 0.01);
    // Downwards nothing is full: 12 ms and the 4 kB of a frame. The median of both ways together is between the two.
    let median = |variant: usize, way: &str| of(variant, "call").more[way].p50;
    let (down, up) = (median(0, "frames_down_s"), median(0, "frames_up_s"));
    assert!(down < 0.025 && up > 0.15, "{down} {up}");
    let notes = comparison.document.notes.join("\n");
    assert!(
        notes.contains(
            "call: its times are of frames both ways together, and the ways differ; medians down and up: "
        ),
        "{notes}"
    );
    let up = median(1, "frames_up_s");
    assert!(up < 0.05, "{up}");
    let frames = of(0, "call");
    assert_eq!(frames.censored, 0, "a lost frame is a loss, not an age");
    assert!(
        (1_600..=1_640).contains(&frames.flows),
        "2 x 30 x 9 s x 3 seeds: {}",
        frames.flows
    );
    assert!(share(0, "call", "lost_share") > 0.0);
    for name in ["pings", "voice"] {
        assert!(share(0, name, "lost_share") < 0.2 && of(0, name).latency_sensitive);
    }
    let delay = |variant: usize| {
        of(variant, "voice")
            .delivery_latency_s
            .as_ref()
            .expect("delays")
            .mean
    };
    assert!(delay(0) > 0.1 && delay(1) < 0.05, "{} {}", delay(0), delay(1));
    let versus = variants[1].versus.as_ref().expect("it is compared");
    for group in &versus.groups[..4] {
        let ratio = group.fct_mean_ratio.expect("its times are compared");
        assert!(ratio.value < 0.6, "{}: {}", group.name, ratio.value);
    }
    assert!(versus.win.is_some_and(|win| win > 0.5));
    assert!(
        comparison
            .document
            .notes
            .iter()
            .any(|note| note.starts_with("call: frames that came after")),
        "{:?}",
        comparison.document.notes
    );
}

#[test]
fn a_look_up_that_was_given_up_counts_with_the_time_it_took() {
    let lossy = LINE.replace("delay = \"10 ms\"", "delay = \"10 ms\"\nloss = \"50 %\"");
    let comparison = compared(&lossy);
    let names = &comparison.document.variants[0].groups[1];
    // Half of the answers are lost, so a quarter of the look-ups fail after 10 s; the run ends much later.
    let share = names.censored as f64 / names.flows as f64;
    assert!((0.05..0.5).contains(&share), "{share}");
    let times = names.fct_s.as_ref().expect("times");
    assert!((times.max - 10.0).abs() < 1e-6, "{}", times.max);
    assert!(names.counters.get("retransmits") > Some(0));
}
