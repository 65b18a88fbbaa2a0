//! Refusal of super-packets by length: the queue of the core under independent Poisson firsts.
//!
//! Lengths are drawn evenly from 1 (a regular packet) to `max_length`; the packets of each super-packet follow one another
//! in a tenth of the line's packet time. Whether refusal depends on the length is tested by chi-square over the table of
//! lengths and fates: each length is drawn independently of what the queue holds, so the test is valid although successive
//! refusals are not independent of each other. **Source.** Schinazi 2014, section 3.3. **Deviations.** Packets of refused
//! super-packets are not offered: they are orphans and change nothing.

use super::super::{Analysis, Curve, Measured, Metric, Outcome, Run};
use super::{PACKET_TIME, Rig, limit};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Value, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::superpacket::Mark;
use fleetfoot_core::time::{Duration, Instant};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("refusal-by-length", OPTIONS, include_str!("equal_drop.rs")),
    metrics: &[
        Metric {
            name: "p_value",
            doc: "Probability of a deviation from equal refusal as large as this by chance.",
        },
        Metric {
            name: "refused_share",
            doc: "Share of firsts that were refused.",
        },
        Metric {
            name: "largest_deviation",
            doc: "Largest difference between the refusal of a length and the mean.",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[
    parameter!("firsts": Integer(1000, 10_000_000) = 20_000, "Firsts offered"),
    parameter!("queue": Integer(64, 100_000) = 100, "The queue's limit, packets (Schinazi 2014: 100)"),
    parameter!("max_length": Integer(2, 63) = 63, "Longest super-packet (six bits of length: 63)"),
    parameter!("load": Number(0.01, 100.0) = 1.1, "Packets offered per packet that the line can send"),
    parameter!("need": Choice(&["max_length", "length", "longest"]) = "max_length", "Room that the queue asks for, its key `need` (Schinazi 2014: max_length)"),
    parameter!("weight": Number(0.0, 1.0) = 0.7, "Share of promised room that counts as taken (Schinazi 2014: 0.7)"),
];

fn run(options: &Values) -> Outcome {
    let firsts = options.integer("firsts").unwrap_or(0);
    let longest = options.integer("max_length").unwrap_or(2);
    let load = options.number("load").unwrap_or(1.0);
    let settings = [
        ("limit", limit(options.integer("queue").unwrap_or(100))),
        ("max_length", Value::Integer(longest)),
        ("need", Value::Choice(options.choice("need"))),
        ("weight", Value::Number(options.number("weight").unwrap_or(0.7))),
    ];
    let mut rig = Rig::new("superpacket", &settings, FLOWS);
    let mut rng = Rng::for_element(1, "refusal-by-length", "arrivals");
    let mean_length = (1 + longest) as f64 / 2.0;
    let gap_s = mean_length / load * PACKET_TIME.as_secs_f64();
    let spacing = Duration::from_nanos(PACKET_TIME.as_nanos() / 10);
    // Later packets still to come.
    let mut coming = BinaryHeap::<Reverse<Follower>>::new();
    let (mut now, mut free) = (Instant::ZERO, Instant::ZERO);
    let mut table = vec![[0u64; 2]; longest as usize + 1];
    for number in 0..firsts {
        let next = now + Duration::from_secs_f64(rng.exponential(gap_s));
        while coming.peek().is_some_and(|first| first.0.at <= next) {
            let Some(Reverse(follower)) = coming.pop() else {
                break;
            };
            let Follower {
                at,
                flow,
                id,
                length,
                left,
            } = follower;
            depart(&mut rig, &mut free, at);
            rig.offer(at, flow, Mark::follower(length, id));
            if left > 1 {
                coming.push(Reverse(Follower {
                    at: at + spacing,
                    left: left - 1,
                    ..follower
                }));
            }
        }
        now = next;
        depart(&mut rig, &mut free, now);
        let length = 1 + rng.below(longest) as u8;
        let (flow, id) = (
            (number % u64::from(FLOWS)) as u32,
            (number / u64::from(FLOWS) % 256) as u16,
        );
        let mark = if length == 1 {
            Mark::REGULAR
        } else {
            Mark::first(length, id)
        };
        let admitted = rig.offer(now, flow, mark);
        table[usize::from(length)][usize::from(admitted)] += 1;
        if admitted && length > 1 {
            coming.push(Reverse(Follower {
                at: now + spacing,
                flow,
                id,
                length,
                left: length - 1,
            }));
        }
    }
    summary(&table)
}

/// The next packet of an admitted super-packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Follower {
    at: Instant,
    flow: u32,
    id: u16,
    length: u8,
    /// Packets still to come, this one included.
    left: u8,
}

/// Lets the line send until `now`; `free` is when it can take the next packet.
fn depart(rig: &mut Rig, free: &mut Instant, now: Instant) {
    while *free <= now && rig.take(*free) {
        *free += PACKET_TIME;
    }
    *free = (*free).max(now);
}

/// Chi-square over lengths and fates.
fn summary(table: &[[u64; 2]]) -> Outcome {
    let (refused, admitted) = table.iter().fold((0, 0), |(refused, admitted), row| {
        (refused + row[0], admitted + row[1])
    });
    let share = refused as f64 / (refused + admitted) as f64;
    let (mut statistic, mut lengths, mut largest) = (0.0, 0u32, 0.0_f64);
    let mut points = Vec::new();
    for (length, row) in table.iter().enumerate() {
        let n = (row[0] + row[1]) as f64;
        if n == 0.0 {
            continue;
        }
        lengths += 1;
        for (count, expected) in [(row[0], n * share), (row[1], n * (1.0 - share))] {
            statistic += (count as f64 - expected) * (count as f64 - expected) / expected;
        }
        largest = largest.max((row[0] as f64 / n - share).abs());
        points.push([length as f64, row[0] as f64 / n]);
    }
    let chi = ChiSquared::new(f64::from(lengths.max(2) - 1)).expect("there are degrees of freedom");
    Outcome {
        values: vec![
            Measured::exact(chi.sf(statistic)),
            Measured::exact(share),
            Measured::exact(largest),
        ],
        curves: vec![Curve {
            name: String::from("refused"),
            x: "announced length (packets)",
            y: "share refused",
            points,
        }],
    }
}

/// Flows that the firsts are dealt to; with identifiers in turn none is used again while it is remembered.
const FLOWS: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::{run, summary};
    use fleetfoot_core::parameter::{Value, Values};

    #[test]
    fn the_test_finds_unequal_refusal_and_accepts_equal() {
        let equal = summary(&[[0, 0], [500, 500], [510, 490], [495, 505]]);
        assert!(equal.values[0].value > 0.5, "{equal:?}");
        let unequal = summary(&[[0, 0], [400, 600], [510, 490], [600, 400]]);
        assert!(unequal.values[0].value < 1e-6, "{unequal:?}");
        // Two lengths with 40 and 60 of 100: 8 with one degree of freedom.
        let known = summary(&[[40, 60], [60, 40]]);
        assert!((known.values[0].value - 0.004_677_7).abs() < 1e-6, "{known:?}");
    }

    #[test]
    fn a_queue_that_asks_for_the_length_is_found_out() {
        let p_value = |need: &'static str| {
            let mut options = Values::defaults(super::OPTIONS);
            options.set("need", Value::Choice(need)).expect("it is in range");
            run(&options).values[0].value
        };
        assert!(p_value("length") < 1e-6);
        assert!(p_value("max_length") > 0.001 && p_value("longest") > 0.001);
    }

    #[test]
    fn refusal_grows_with_the_load() {
        // With hardly any load nothing is refused; with much, most is.
        let with = |load: f64| {
            let mut options = Values::defaults(super::OPTIONS);
            options.set("load", Value::Number(load)).expect("it is in range");
            run(&options).values[1].value
        };
        assert!(with(0.02) < 0.01);
        assert!(with(3.0) > 0.6);
    }
}
