//! The traffic models of applications against their published statistics.
//!
//! Draws from every model; means and medians are compared with the table. A published median of 0 stands for less than 1 ms and is held to that.
//! **Source.** The table of applications in the slides of 2015 (specs/published-endpoint.toml, thin-apps). **Deviations.** None known.

use super::super::{Analysis, Measured, Metric, Outcome, Run};
use crate::workload::{APPLICATION_NAMES, ThinApplication};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::rng::{Distribution, Rng, Sampler};
use std::sync::Arc;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("thin-models", OPTIONS, include_str!("models.rs")),
    metrics: &[
        Metric {
            name: "applications",
            doc: "Rows of the published table that have a model.",
        },
        Metric {
            name: "payload_mean_deviation",
            doc: "Largest relative difference of a mean payload.",
        },
        Metric {
            name: "interval_mean_deviation",
            doc: "Largest relative difference of a mean interval.",
        },
        Metric {
            name: "interval_median_deviation",
            doc: "Largest relative difference of a median interval.",
        },
        Metric {
            name: "outside",
            doc: "Draws outside of the published extremes.",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[parameter!("draws": Integer(1000, 10_000_000) = 200_000,
    "Draws from each model")];

/// Rows of the published table, in the order of the models.
const ROWS: [&str; 8] = [
    "windows_remote_desktop",
    "vnc_client",
    "vnc_server",
    "skype_2_users",
    "ssh_text",
    "anarchy_online",
    "world_of_warcraft",
    "age_of_conan",
];

fn run(options: &Values) -> Outcome {
    let draws = options.integer("draws").unwrap_or(0);
    let published = super::super::published("thin-apps");
    let (mut rows, mut worst, mut outside) = (0_u32, [0.0_f64; 3], 0_u32);
    for (name, row) in APPLICATION_NAMES.iter().zip(ROWS) {
        let numbers = |key: &str| -> Vec<f64> {
            let list = published.get(row).and_then(|row| row.get(key)?.as_array());
            list.into_iter()
                .flatten()
                .filter_map(|value| Some(value.as_integer()? as f64))
                .collect()
        };
        let (payload, interval) = (numbers("payload"), numbers("iat"));
        let (Some(model), [mean, min, max], [gap, median, least, most]) =
            (ThinApplication::find(name), &payload[..], &interval[..])
        else {
            continue;
        };
        rows += 1;
        let mut draw = |points: Arc<[(f64, f64)]>, scale: f64, low: f64, high: f64| {
            let mut sampler = Sampler::new(
                Distribution::Empirical(points),
                Rng::for_element(1, "thin-models", name),
            );
            let mut values: Vec<f64> = (0..draws).map(|_| sampler.sample() * scale).collect();
            values.sort_by(f64::total_cmp);
            let beyond = values
                .iter()
                .filter(|value| !(low - 1e-6..=high + 1e-6).contains(*value));
            outside += beyond.count() as u32;
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (mean, values[values.len() / 2])
        };
        let found = draw(model.payload(), 1.0, *min, *max);
        worst[0] = worst[0].max((found.0 / mean - 1.0).abs());
        let found = draw(model.interval(), 1e3, *least, *most);
        worst[1] = worst[1].max((found.0 / gap - 1.0).abs());
        // Below a millisecond nothing more is known.
        let off = if *median < 1.0 {
            (found.1 - 1.0).max(0.0)
        } else {
            (found.1 / median - 1.0).abs()
        };
        worst[2] = worst[2].max(off);
    }
    let [payload, gap, median] = worst;
    Outcome {
        values: [f64::from(rows), payload, gap, median, f64::from(outside)]
            .map(Measured::exact)
            .to_vec(),
        curves: Vec::new(),
    }
}
