//! The restarted timers against their formulas.
//!
//! Ten segments leave at 0, some stay unsent; an ACK for m of them arrives at t. What the sender then waits for is compared with the
//! rule. Rule `rto`: RTO - t if fewer than four segments are outstanding and unsent and that is positive, else RTO. Rule `probe`: max(base - t if t < base
//! else base, 10 ms), at most the RTO; base is 2 SRTT, or max(2 SRTT, 1.5 SRTT + 200 ms) with one segment out. SRTT and RTO are the sender's
//! own after the sample. **Source.** RFC 7765; Rajiullah et al., CCR 45(1), 2015. **Deviations.** None known.

use super::super::pair::Pair;
use super::super::{Analysis, Measured, Metric, Outcome, Run};
use super::config;
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::Profile;
use fleetfoot_core::time::{Duration, Instant};

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("restart-timer", OPTIONS, include_str!("timer.rs")),
    metrics: &[
        Metric {
            name: "cases",
            doc: "Cases compared.",
        },
        Metric {
            name: "restarted",
            doc: "Of these, cases in which the age was subtracted.",
        },
        Metric {
            name: "largest_deviation_ms",
            doc: "Largest difference between the timer and its formula (ms).",
        },
        Metric {
            name: "shortest_ms",
            doc: "Shortest timer (ms).",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[parameter!("rule": Choice(&["rto", "probe"]) = "rto", "Which timer")];

fn run(options: &Values) -> Outcome {
    let rto = options.choice("rule") == "rto";
    let (mut cases, mut restarted, mut largest, mut shortest) = (0_u32, 0_u32, 0.0_f64, f64::MAX);
    for srtt in [3_u64, 20, 100, 180] {
        for acked in 1..10_u64 {
            for unsent in if rto { 0..4_u64 } else { 0..1 } {
                // Up to what goes off first: the probe, or the timeout of 200 ms and SRTT.
                for age in (1..if rto { srtt + 200 } else { 2 * srtt }).step_by(7) {
                    let mechanism = if rto { "rtor" } else { "tlpr" };
                    let config = config(Profile::Linux2015, mechanism, None);
                    let mut pair = Pair::new(config, Duration::from_millis(srtt), 10 * MSS, MSS as u32);
                    pair.write((10 + unsent) * MSS);
                    let now = Instant::from_millis(age);
                    let ack = Segment {
                        seq: SeqNumber(u32::MAX - 3),
                        ack: SeqNumber(u32::MAX - 998) + (acked * MSS) as u32,
                        flags: Flags::ACK,
                        window: u16::MAX,
                        ..Segment::default()
                    };
                    pair.sender.on_segment(now, &ack);
                    let info = pair.sender.info(now);
                    let Some(found) = pair.sender.poll_timeout() else {
                        largest = f64::MAX;
                        continue;
                    };
                    let (found, age) = (found.since(now).as_secs_f64() * 1e3, age as f64);
                    let full = info.rto.as_secs_f64() * 1e3;
                    let srtt = info.srtt.unwrap_or_default().as_secs_f64() * 1e3;
                    let out = 10 - acked;
                    let (wanted, whole) = if rto {
                        let few = out + unsent < 4 && full - age > 0.0;
                        (if few { full - age } else { full }, full)
                    } else {
                        let base = if out == 1 {
                            (2.0 * srtt).max(1.5 * srtt + 200.0)
                        } else {
                            2.0 * srtt
                        };
                        let left = if age < base { base - age } else { base };
                        (left.max(10.0).min(full), base.max(10.0).min(full))
                    };
                    cases += 1;
                    restarted += u32::from(wanted < whole);
                    largest = largest.max((wanted - found).abs());
                    shortest = shortest.min(found);
                }
            }
        }
    }
    Outcome {
        values: [f64::from(cases), f64::from(restarted), largest, shortest]
            .map(Measured::exact)
            .to_vec(),
        curves: Vec::new(),
    }
}

const MSS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::{OPTIONS, run};
    use fleetfoot_core::parameter::{Value, Values};

    #[test]
    fn both_timers_follow_their_formulas() {
        for rule in ["rto", "probe"] {
            let mut options = Values::defaults(OPTIONS);
            options.set("rule", Value::Choice(rule)).expect("it is one");
            let values = run(&options).values;
            assert!(
                values[0].value > 100.0 && values[1].value > 50.0,
                "{rule}: {values:?}"
            );
            assert!(values[2].value < 0.001, "{rule}: {values:?}");
        }
    }
}
