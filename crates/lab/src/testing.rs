//! For tests: a scenario with made-up results whose effects are known.

use crate::result::Recommended;
use crate::scenario::Scenario;
use fleetfoot_core::queue::{DropReason, QueueEventKind};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::output::{FlowRecord, GroupOutput, LinkOutput, RunOutput, Tally};
use fleetfoot_sim::spec::{Spec, Traffic};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A line of 10 Mbit/s both ways: pages and two uploads share its queue; many tests change single keys of it.
pub(crate) const BUSY_LINE: &str = include_str!("testing/busy-line.toml");

/// The advice to try `variant` first, with nothing else to say, over 10 seeds.
pub(crate) fn recommended(variant: &str) -> Recommended {
    Recommended {
        variant: variant.to_owned(),
        equals: Vec::new(),
        places: Vec::new(),
        matters: None,
        seeds: 10,
        undecided: 0,
        open: Vec::new(),
        tier: 1,
    }
}

/// Two variants over a small line.
pub(crate) const TEXT: &str = r#"
title = "A test line"
[network]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "10 Mbit/s", delay = "10 ms" }
[[traffic]]
name = "pages"
kind = "transfer"
size = "20 kB"
arrivals = { dist = "poisson", rate = "20 per second" }
[[traffic]]
name = "backup"
kind = "bulk"
count = 2
[[variant]]
name = "better"
set = { "tcp.initial_window" = 20 }
[[variant]]
name = "costly"
set = { "tcp.initial_window" = 40 }
[run]
duration = "10 s"
seeds = 12
"#;

pub(crate) fn scenario() -> Scenario {
    Scenario::parse("test.toml", TEXT).expect("it is correct")
}

/// A new folder of its own.
pub(crate) fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fleetfoot-test-{name}-{}", std::process::id()))
}

/// Results whose transfers of the first group take so many times as long.
pub(crate) fn lasting(mut output: RunOutput, factor: f64) -> RunOutput {
    for flow in &mut output.groups[0].flows {
        let took = |end: Instant| Duration::from_secs_f64(factor * end.since(flow.start).as_secs_f64());
        flow.completed = flow.completed.map(|end| flow.start + took(end));
    }
    output
}

/// Made-up results: with an initial window of 20 completion times shrink to 0.7, with 40 to 0.5 while bulk goodput falls
/// to 0.7; with 5 nothing changes but noise, with 6 a tenth of the flows never completes while the others are fast, with 7
/// times shrink to 0.5 but the last flow of each run is still young and open when the run ends, with 8 times shrink to 0.4 with three
/// seeds of four and grow to 1.8 with the fourth.
pub(crate) fn engine(spec: &Spec, _stop: &AtomicBool) -> Result<RunOutput, String> {
    use fleetfoot_core::tcp::InitialWindow;
    let InitialWindow::Segments(window) = spec.groups[0].sender.initial_window else {
        return Err(String::from("made-up results need a window in segments"));
    };
    let (factor, goodput) = match window {
        20 => (0.7, 1.0),
        40 => (0.5, 0.7),
        7 => (0.5, 1.0),
        6 => (0.3, 1.0),
        8 if spec.seed.is_multiple_of(4) => (1.8, 1.0),
        8 => (0.4, 1.0),
        _ => (1.0, 1.0),
    };
    let mut rng = Rng::for_element(spec.seed, "made-up", "times");
    let mut noise = Rng::for_element(spec.seed, &format!("{window}"), "noise");
    let groups = spec.groups.iter().map(|group| match group.traffic {
        Traffic::Transfer { .. } => GroupOutput {
            flows: (0..200)
                .map(|number| {
                    let start = Instant::from_millis(number * 40);
                    let fct = factor * (0.1 + rng.exponential(0.2)) * (1.0 + 0.02 * noise.uniform());
                    let completed = (window != 6 || number % 10 != 0) && (window != 7 || number != 199);
                    let completed = completed.then(|| start + Duration::from_secs_f64(fct));
                    FlowRecord {
                        bytes: Bytes(20_000),
                        start,
                        completed,
                        acked: completed,
                        received: Bytes(if completed.is_some() { 20_000 } else { 1_000 }),
                        tally: Tally::from(Stats {
                            segments_sent: 15,
                            bytes_sent: 21_460,
                            retransmits: 1,
                            ..Stats::default()
                        }),
                        ..FlowRecord::default()
                    }
                })
                .collect(),
            goodput_bytes: Bytes(4_000_000),
            ..GroupOutput::default()
        },
        _ => {
            let share =
                |bytes: f64, rng: &mut Rng| Bytes((goodput * bytes * (1.0 + 0.05 * rng.uniform())) as u64);
            let shares = vec![share(3e6, &mut rng), share(4e6, &mut rng)];
            GroupOutput {
                flows: vec![FlowRecord::default(); 2],
                goodput_bytes: shares[0] + shares[1],
                goodput_bytes_per_connection: shares,
                ..GroupOutput::default()
            }
        }
    });
    let groups = groups.collect();
    let links = spec.links.iter().map(|_| {
        let mut link = LinkOutput {
            busy: Duration::from_secs(5),
            packets: 1000,
            data_packets: 900,
            bytes: Bytes(1_300_000),
            drops: vec![[0; 3]; DropReason::ALL.len()],
            events: vec![0; QueueEventKind::ALL.len()],
            ..LinkOutput::default()
        };
        link.drops[0] = [7, 2, 1];
        for _ in 0..1000 {
            link.queue_delay.record(rng.below(40_000_000));
            link.queue_packets.record(rng.below(50));
        }
        link
    });
    Ok(RunOutput {
        links: links.collect(),
        groups,
        events: 1000,
        ended: Instant::from_millis(if window == 7 { 8_000 } else { 70_000 }),
        interrupted: false,
    })
}
