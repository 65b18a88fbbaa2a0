//! The hand-worked tables of lost tails, cell by cell.
//!
//! One-way delay 50 ms, no serialisation, ten segments at 0, the last k of them lost once, SRTT 100 ms, RTTVAR 0, every segment
//! acknowledged or ACKs delayed. Two connections are stepped through each case; the time of the first repair and the time at which the last byte is
//! delivered are compared with the published file. **Source.** specs/published-endpoint.toml. **Deviations.** None known.

use super::super::pair::Pair;
use super::super::{Analysis, Curve, Measured, Metric, Outcome, Run};
use super::{MECHANISMS, config};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::tcp::Profile;
use fleetfoot_core::time::Duration;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("tail-table", OPTIONS, include_str!("table.rs")),
    metrics: &[
        Metric {
            name: "cells",
            doc: "Times compared: two for each mechanism and each number of lost segments, or each delay.",
        },
        Metric {
            name: "largest_deviation_ms",
            doc: "Largest difference between a time and the published one (ms).",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[parameter!("table": Choice(TABLES) = TABLES[0],
    "Id of the table in the published file")];

const TABLES: &[&str] = &[
    "tail-handworked",
    "tail-handworked-rfc-rto",
    "tail-handworked-delack",
];

fn run(options: &Values) -> Outcome {
    let id = options.choice("table");
    let profile = if id == TABLES[1] {
        Profile::Rfc
    } else {
        Profile::Linux2015
    };
    let (mut cells, mut largest, mut curves) = (0_u32, 0.0_f64, Vec::new());
    let mut compare = |published: &toml::Value, measured: [f64; 2]| {
        for (wanted, found) in published.as_array().into_iter().flatten().zip(measured) {
            let wanted = wanted
                .as_float()
                .or(wanted.as_integer().map(|whole| whole as f64));
            cells += 1;
            largest = largest.max((wanted.unwrap_or(f64::MAX) - found).abs());
        }
    };
    let published = super::super::published(id);
    for mechanism in MECHANISMS {
        let mut points = Vec::new();
        if id == TABLES[2] {
            for delay in [40_u64, 200] {
                let Some(cell) = published
                    .get(&format!("d{delay}"))
                    .and_then(|row| row.get(mechanism))
                else {
                    continue;
                };
                let times = times(profile, mechanism, 1, Some(Duration::from_millis(delay)));
                points.push([delay as f64, times[1]]);
                compare(cell, times);
            }
        } else {
            for lost in [1_u64, 2, 3, 4, 5, 10] {
                let Some(cell) = published
                    .get(mechanism)
                    .and_then(|row| row.get(format!("k{lost}")))
                else {
                    continue;
                };
                let times = times(profile, mechanism, lost, None);
                points.push([lost as f64, times[1]]);
                compare(cell, times);
            }
        }
        curves.push(Curve {
            name: mechanism.to_owned(),
            x: if id == TABLES[2] {
                "delay of ACKs (ms)"
            } else {
                "segments lost"
            },
            y: "last byte delivered (ms)",
            points,
        });
    }
    Outcome {
        values: vec![Measured::exact(f64::from(cells)), Measured::exact(largest)],
        curves,
    }
}

/// First repair and last delivery (ms).
fn times(profile: Profile, mechanism: &str, lost: u64, delayed: Option<Duration>) -> [f64; 2] {
    let config = config(profile, mechanism, delayed);
    let mut pair = Pair::new(config, Duration::from_millis(100), 10 * MSS, MSS as u32);
    pair.lost_from = (10 - lost) * MSS;
    pair.write(10 * MSS);
    while pair.received() < 10 * MSS && pair.step() {}
    let ms = |at: fleetfoot_core::time::Instant| at.as_secs_f64() * 1e3;
    [
        pair.sent.get(10).map_or(f64::MAX, |sent| ms(sent.at)),
        ms(pair.now),
    ]
}

const MSS: u64 = 1000;
