//! The share of a size distribution below a number of segments.
//!
//! **Source.** specs/published-endpoint.toml (iw-motivation); the distributions state theirs. **Deviations.** None known.

use super::super::{Analysis, Measured, Metric, Outcome, Run};
use crate::workload::SizeTable;
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::Entry;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("size-share", OPTIONS, include_str!("share.rs")),
    metrics: &[Metric {
        name: "share_below",
        doc: "Share of sizes below so many full segments.",
    }],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[
    parameter!("table": Choice(&["web-objects", "web-search", "data-mining", "cache"]) = "web-objects",
        "Named size distribution"),
    parameter!("segments": Integer(1, 1_000_000) = 10,
        "Segments of 1460 bytes (draft-irtf-iccrg-sallantin-initial-spreading: 10)"),
];

fn run(options: &Values) -> Outcome {
    let limit = (options.integer("segments").unwrap_or(10) * 1460) as f64;
    let points = SizeTable::find(options.choice("table")).map(SizeTable::points);
    let share = points.map_or(0.0, |points| below(&points, limit));
    Outcome {
        values: vec![Measured::exact(share)],
        curves: Vec::new(),
    }
}

/// Cumulative probability at `limit`, linear between the points.
fn below(points: &[(f64, f64)], limit: f64) -> f64 {
    let mut before = (0.0, 0.0);
    for &(value, probability) in points {
        if value >= limit {
            let part = (limit - before.0) / (value - before.0);
            return before.1 + part * (probability - before.1);
        }
        before = (value, probability);
    }
    1.0
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn between_points_it_is_linear() {
        let points = [(100.0, 0.5), (300.0, 1.0)];
        for (limit, share) in [(50.0, 0.25), (100.0, 0.5), (200.0, 0.75), (400.0, 1.0)] {
            assert!((below(&points, limit) - share).abs() < 1e-9, "{limit}");
        }
    }
}
