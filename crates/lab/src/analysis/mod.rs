//! Analyses: what a figure needs beyond the vocabulary of checks, as Rust functions that its file names.
//!
//! A closed form is computed without runs. Adding one is a file here, a line in [`ENTRIES`] and its name in an
//! experiment: `analysis = { kind = "NAME", ... }` under `[figure]`. Its options are a parameter table like that of a
//! queue discipline, so that units, ranges, schema and documents come from there.

mod favour_order;
mod flow_length;
mod packet_size;
mod packet_time;
mod pair;
mod superpacket;
mod tail;
mod thin;
mod window;

use fleetfoot_core::parameter::Values;
use fleetfoot_core::registry::Entry;
use fleetfoot_sim::spec::Spec;

/// A registered analysis.
#[derive(Debug)]
pub struct Analysis {
    /// Name, options, document.
    pub entry: Entry,
    /// What it gives: names for the key `metric` of a check.
    pub metrics: &'static [Metric],
    /// Whether it measures this machine: such numbers differ between two runs and are not recorded.
    pub timed: bool,
    /// Computes it. The result has a value for each metric, in their order.
    pub run: Run,
}

/// How an analysis is computed.
#[derive(Debug)]
pub enum Run {
    /// From its options.
    Alone(fn(&Values) -> Outcome),
    /// From its options and the runs of an experiment, which is named: those of its scenario as described and of each variant.
    Of(&'static str, fn(&Values, &[Spec]) -> Outcome),
}

impl Analysis {
    /// Computes it; `runs` gives the runs of the experiment with a name.
    pub fn outcome(&self, options: &Values, runs: impl FnOnce(&str) -> Vec<Spec>) -> Outcome {
        match self.run {
            Run::Alone(run) => run(options),
            Run::Of(experiment, run) => run(options, &runs(experiment)),
        }
    }
}

/// A name that an analysis reduces to.
#[derive(Debug)]
pub struct Metric {
    /// Its name, with the unit.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub doc: &'static str,
}

const fn metric(name: &'static str, doc: &'static str) -> Metric {
    Metric { name, doc }
}

/// What an analysis found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// A value for each metric.
    pub values: Vec<Measured>,
    /// Curves to draw.
    pub curves: Vec<Curve>,
}

/// A value with its interval, if it is an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// 95 % interval; `None` for what is exact.
    pub ci95: Option<[f64; 2]>,
}

impl Measured {
    /// An exact value.
    pub fn exact(value: f64) -> Measured {
        Measured { value, ci95: None }
    }
}

/// A line of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// Name and unit of the horizontal axis.
    pub x: &'static str,
    /// Name and unit of the vertical axis.
    pub y: &'static str,
    /// Its points.
    pub points: Vec<[f64; 2]>,
}

/// Every analysis.
pub static ENTRIES: &[Analysis] = &[
    packet_time::ANALYSIS,
    packet_size::flow_sizes::ANALYSIS,
    packet_size::wireless::ANALYSIS,
    flow_length::ANALYSIS,
    favour_order::ANALYSIS,
    superpacket::equal_drop::ANALYSIS,
    superpacket::state_age::ANALYSIS,
    superpacket::decision::ANALYSIS,
    tail::table::ANALYSIS,
    tail::timer::ANALYSIS,
    thin::bundles::ANALYSIS,
    thin::limit::ANALYSIS,
    thin::models::ANALYSIS,
    window::validation::ANALYSIS,
    window::backoff::ANALYSIS,
    window::spread::ANALYSIS,
    window::share::ANALYSIS,
];

/// The analysis called `name`.
pub fn find(name: &str) -> Option<&'static Analysis> {
    ENTRIES.iter().find(|analysis| analysis.entry.name == name)
}

/// The published values of the entry `id` of the endpoint mechanisms; an empty table if there is none.
fn published(id: &str) -> toml::Table {
    let document: toml::Table = toml::from_str(PUBLISHED).unwrap_or_default();
    let results = document.get("result").and_then(toml::Value::as_array);
    let entry = results
        .into_iter()
        .flatten()
        .find(|entry| entry.get("id").and_then(toml::Value::as_str) == Some(id));
    entry
        .and_then(|entry| entry.get("published")?.as_table().cloned())
        .unwrap_or_default()
}

/// What was published of endpoint mechanisms.
const PUBLISHED: &str = include_str!("../../../../specs/published-endpoint.toml");

#[cfg(test)]
mod tests {
    use super::ENTRIES;
    use fleetfoot_core::parameter::Values;

    #[test]
    fn every_analysis_says_what_it_gives_and_gives_it() {
        for analysis in ENTRIES {
            let name = analysis.entry.name;
            assert!(
                analysis.entry.document().next().is_some(),
                "{name} has no document"
            );
            assert!(!analysis.metrics.is_empty(), "{name}");
            let options = Values::defaults(analysis.entry.parameters);
            let outcome = analysis.outcome(&options, crate::experiment::library::runs);
            assert_eq!(outcome.values.len(), analysis.metrics.len(), "{name}");
            for value in outcome.values {
                assert!(value.value.is_finite(), "{name}");
                assert!(value.ci95.is_none_or(|[low, high]| low <= high), "{name}");
            }
        }
    }
}
