//! The dynamic limit of packets in flight.
//!
//! Small writes leave at one moment, until one no longer carries older data along: how many were in flight then is the limit. Where RTT / interval is
//! not whole, that is the next whole number above. **Source.** Opstad et al., slides of 2015 (rdb-dpifl). **Deviations.** None known.

use super::super::pair::Pair;
use super::super::{Analysis, Curve, Measured, Metric, Outcome, Run};
use super::{MSS, config};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::registry::Entry;
use fleetfoot_core::tcp::{Rdb, ThinRule};
use fleetfoot_core::time::Duration;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("thin-limit", &[], include_str!("limit.rs")),
    metrics: &[
        Metric {
            name: "rtt_150_interval_10",
            doc: "Fewest packets in flight that are not thin, RTT 150 ms, least interval 10 ms.",
        },
        Metric {
            name: "rtt_150_interval_20",
            doc: "The same with a least interval of 20 ms.",
        },
        Metric {
            name: "rtt_100_interval_10",
            doc: "The same at an RTT of 100 ms, least interval 10 ms.",
        },
        Metric {
            name: "static",
            doc: "The same with the static limit 4.",
        },
        Metric {
            name: "off_the_curve",
            doc: "RTTs of 1 to 170 ms, a millisecond apart, at which the limit with a least interval of 10 or 20 ms is not RTT / interval rounded up.",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

fn run(_: &Values) -> Outcome {
    let dynamic = |ms| ThinRule::Interval {
        min: Duration::from_millis(ms),
        smoothed: false,
    };
    let fixed = ThinRule::Packets(4);
    let curve = |name: &str, rule| Curve {
        name: name.to_owned(),
        x: "RTT (ms)",
        y: "packets in flight that are not thin",
        points: (1..=17)
            .map(|step| [f64::from(step) * 10.0, limit(u64::from(step as u32) * 10, rule)])
            .collect(),
    };
    let off = [10, 20]
        .map(|interval| {
            (1..=170)
                .filter(|&rtt| limit(rtt, dynamic(interval)) != rtt.div_ceil(interval).max(1) as f64)
                .count() as f64
        })
        .iter()
        .sum();
    Outcome {
        values: [
            limit(150, dynamic(10)),
            limit(150, dynamic(20)),
            limit(100, dynamic(10)),
            limit(150, fixed),
            off,
        ]
        .map(Measured::exact)
        .to_vec(),
        curves: vec![
            curve("interval 10 ms", dynamic(10)),
            curve("interval 20 ms", dynamic(20)),
            curve("static limit 4", fixed),
        ],
    }
}

fn limit(rtt_ms: u64, thin: ThinRule) -> f64 {
    let rdb = Rdb {
        thin,
        ..Rdb::STANDARD
    };
    let rtt = Duration::from_millis(rtt_ms);
    let mut pair = Pair::new(config(rdb), rtt, 100 * u64::from(MSS), MSS);
    pair.write(WRITE);
    for in_flight in 1..100_u32 {
        pair.write(WRITE);
        if pair.sent.last().is_none_or(|sent| sent.end - sent.start == WRITE) {
            return f64::from(in_flight);
        }
    }
    f64::MAX
}

/// Bytes.
const WRITE: u64 = 50;
