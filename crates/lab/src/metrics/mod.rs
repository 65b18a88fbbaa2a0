//! What is measured, in one place: fields of the result document, metrics that checks name, and columns of tables.
//!
//! A row of the tables in `group`, `link` and `variant` has a name, a definition and one formula, from which both the result
//! document and the checks of experiments take their values. Counters of TCP come from the table beside them
//! ([`fleetfoot_core::tcp::Stats::COUNTERS`]); those that it marks as reported are fields, metrics and columns by themselves
//! ([`counters`]).

pub mod counters;
pub mod flows;
mod group;
mod hosts;
mod link;
mod series;
pub mod units;
mod variant;
mod watched;

pub use group::{GroupMetric, GroupRun, unit_bytes};
pub use link::{LinkMetric, LinkRuns, PlainLinkMetric};
pub use series::{Series, Statistic, per_run, series};
pub use variant::{VariantMetric, VariantRuns};

use crate::statistics::{Counted, Resamples, Sample, Summary, summarize, summarize_counted};
use fleetfoot_core::queue::{DropReason, QueueEventKind};
use fleetfoot_core::time::Duration;
use fleetfoot_sim::output::{Histogram, RunOutput};
use fleetfoot_sim::spec::Spec;

/// Whose a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The traffic group with this index.
    Group(usize),
    /// The directed link with this index.
    Link(usize),
    /// The variant as a whole.
    Variant,
}

impl Of {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Of::Group(_) => "group",
            Of::Link(_) => "link",
            Of::Variant => "variant",
        }
    }
}

/// A field of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A measure of a group.
    Group(GroupMetric),
    /// A reported counter of a group's TCP senders, by its place among them.
    Counter(usize),
    /// A measure of a link.
    Link(LinkMetric),
    /// A measure of a variant.
    Variant(VariantMetric),
    /// The value with this index of the experiment's analysis.
    Analysis(usize),
}

/// Makes an enum of metrics from rows of definition, name and formula.
macro_rules! metrics {
    ($(#[$meta:meta])* $name:ident($run:ident: $context:ty) { $($(#[$doc:meta])* $metric:ident = $word:literal => $formula:expr;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $metric,)+ }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$metric,)+];

            /// The name in checks and results; what stands under `more` there begins with it.
            pub const fn name(self) -> &'static str {
                match self { $($name::$metric => $word,)+ }
            }

            /// Its values.
            pub fn of(self, $run: &$context) -> $crate::metrics::RunValues {
                match self { $($name::$metric => $crate::metrics::RunValues::from($formula),)+ }
            }

            pub(in crate::metrics) fn parse(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|metric| metric.name() == word)
            }
        }
    };
}
use metrics;

impl Metric {
    /// The field called `word` of a group, link or variant.
    pub fn parse(word: &str, of: Of) -> Option<Metric> {
        match of {
            Of::Group(_) => GroupMetric::parse(word).map(Metric::Group).or_else(|| {
                let place = counters::reported().position(|counter| counter.name == word);
                place.map(Metric::Counter)
            }),
            Of::Variant => VariantMetric::parse(word).map(Metric::Variant),
            Of::Link(_) => LinkMetric::parse(word).map(Metric::Link),
        }
    }

    /// Names of all fields of a group, link or variant.
    pub fn names(of: Of) -> Vec<String> {
        match of {
            Of::Group(_) => {
                let names = GroupMetric::ALL.iter().map(|metric| metric.name());
                let counters = counters::reported().map(|counter| counter.name);
                names.chain(counters).map(str::to_owned).collect()
            }
            Of::Variant => {
                let names = VariantMetric::ALL.iter().map(|metric| metric.name());
                names.map(str::to_owned).collect()
            }
            Of::Link(_) => {
                let names = PlainLinkMetric::ALL.iter().map(|metric| metric.name().to_owned());
                let events = QueueEventKind::ALL.iter();
                let events = events.map(|kind| format!("counters.{}", kind.name()));
                let reasons = DropReason::ALL.iter();
                let reasons = reasons.map(|reason| format!("counters.drop_{}", reason.name()));
                names.chain(events).chain(reasons).collect()
            }
        }
    }

    /// Whether it is of connections kept in bins.
    pub fn needs_bins(self) -> bool {
        match self {
            Metric::Group(metric) => metric.needs_bins(),
            Metric::Variant(metric) => metric == VariantMetric::SettledFairness,
            Metric::Counter(_) | Metric::Link(_) | Metric::Analysis(_) => false,
        }
    }

    /// What has a metric of this name.
    pub fn home(word: &str) -> Option<&'static str> {
        [Of::Group(0), Of::Link(0)]
            .into_iter()
            .find(|of| Metric::parse(word, *of).is_some())
            .map(Of::name)
    }
}

/// What was run, as far as metrics need it.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// The run.
    pub spec: &'a Spec,
    /// What arrives later than this after it was sent is late, for each group that has such a deadline.
    pub deadlines: Vec<Option<Duration>>,
    /// Names of the links that are the bottleneck.
    pub bottleneck: &'a [String],
}

/// The values of a metric in one run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunValues {
    /// One or more values.
    Sample(Sample),
    /// Counted values, and how many make one of the unit.
    Counted(Counted, f64),
}

impl RunValues {
    /// The only value; not a number if there is none.
    pub fn number(&self) -> f64 {
        match self {
            RunValues::Sample(sample) => sample.completed.first().copied().unwrap_or(f64::NAN),
            RunValues::Counted(..) => f64::NAN,
        }
    }
}

impl From<Sample> for RunValues {
    fn from(sample: Sample) -> RunValues {
        RunValues::Sample(sample)
    }
}

impl From<f64> for RunValues {
    fn from(value: f64) -> RunValues {
        RunValues::Sample(Sample::of(vec![value]))
    }
}

impl From<u64> for RunValues {
    fn from(count: u64) -> RunValues {
        RunValues::from(count as f64)
    }
}

impl From<Option<f64>> for RunValues {
    fn from(value: Option<f64>) -> RunValues {
        RunValues::Sample(Sample::of(value.into_iter().collect()))
    }
}

impl From<(&Histogram, f64)> for RunValues {
    fn from((histogram, unit): (&Histogram, f64)) -> RunValues {
        let counted = Counted {
            counts: histogram.counts(),
            sum: histogram.sum(),
            max: histogram.max(),
        };
        RunValues::Counted(counted, unit)
    }
}

/// Values of a metric, run by run.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// One or more values of each run.
    Samples(Vec<Sample>),
    /// Counted values of each run, and how many make one of the unit.
    Counts(Vec<Counted>, f64),
}

impl Values {
    /// Summary over all runs; `None` without values.
    pub fn summary(&self, resamples: &Resamples) -> Option<Summary> {
        match self {
            Values::Samples(runs) => summarize(runs, resamples),
            Values::Counts(runs, unit) => summarize_counted(runs, *unit, resamples),
        }
    }

    /// The sum of a count over all runs.
    pub fn total(&self) -> u64 {
        match self {
            Values::Samples(runs) => runs.iter().map(Sample::sum).sum::<f64>() as u64,
            Values::Counts(..) => 0,
        }
    }
}

impl FromIterator<RunValues> for Values {
    fn from_iter<I: IntoIterator<Item = RunValues>>(runs: I) -> Values {
        let mut samples = Vec::new();
        let mut counts = (Vec::new(), None);
        for run in runs {
            match run {
                RunValues::Sample(sample) => samples.push(sample),
                RunValues::Counted(counted, unit) => {
                    counts.0.push(counted);
                    counts.1 = Some(unit);
                }
            }
        }
        match counts {
            (counts, Some(unit)) => Values::Counts(counts, unit),
            (_, None) => Values::Samples(samples),
        }
    }
}

/// The values of `metric` in `runs` of `scene`; `twins` are the runs of the same seeds without loss and mechanisms, as far as
/// there are such.
pub fn values(
    metric: Metric,
    of: Of,
    scene: &Scene<'_>,
    runs: &[&RunOutput],
    twins: &[Option<&RunOutput>],
) -> Values {
    match (metric, of) {
        (Metric::Group(metric), Of::Group(index)) => {
            let twins = twins.iter().copied().chain(std::iter::repeat(None));
            let of = |(run, twin): (&&RunOutput, _)| {
                let run = GroupRun::new(scene, index, run, twin);
                run.map_or_else(|| Sample::default().into(), |run| metric.of(&run))
            };
            runs.iter().zip(twins).map(of).collect()
        }
        (Metric::Counter(place), Of::Group(index)) => {
            let total = |run: &&RunOutput| {
                let group = run.groups.get(index)?;
                let counter = counters::reported().nth(place)?;
                Some(
                    group
                        .flows
                        .iter()
                        .map(|flow| (counter.value)(&flow.stats()))
                        .sum::<u64>() as f64,
                )
            };
            runs.iter().map(|run| RunValues::from(total(run))).collect()
        }
        (Metric::Link(metric), Of::Link(index)) => {
            let links = runs.iter().filter_map(|run| run.links.get(index));
            links
                .map(|link| metric.of(&LinkRuns::new(scene, &[link])))
                .collect()
        }
        (Metric::Variant(metric), _) => {
            let one = |run: &&RunOutput| metric.of(&VariantRuns { scene, runs: &[run] });
            runs.iter().map(one).collect()
        }
        (Metric::Group(_) | Metric::Counter(_) | Metric::Link(_) | Metric::Analysis(_), _) => {
            Values::Samples(vec![Sample::default(); runs.len()])
        }
    }
}

/// Time between warm-up and end of arrivals (s).
pub fn measured_s(spec: &Spec) -> f64 {
    (spec.duration - spec.warmup).as_secs_f64()
}
