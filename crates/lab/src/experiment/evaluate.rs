//! From finished runs to checked values.

use super::record::Recorded;
use super::verdict::{Counted, Interval, Verdict, holds, no_more_than, satisfies, verdict};
use super::{CheckResult, Evaluated, Experiment, Level, Prepared};
use crate::analysis::{Measured, Outcome};
use crate::compare::groups::bottleneck;
use crate::metrics::{Metric, Of, Series, Statistic, Values, per_run, series, unit_bytes, values};
use crate::run::Batch;
use crate::scenario::{Check, Expect, Quantity, Relative, Role};
use crate::statistics::{ENOUGH_SEEDS, RESAMPLES, Resamples, Sample};
use fleetfoot_sim::output::RunOutput;

pub(super) fn evaluate(prepared: &Prepared, batch: &Batch, recorded: Option<&Recorded>) -> Evaluated {
    let figure = &prepared.experiment.file.figure;
    let outcome = match &figure.analysis {
        Some((analysis, options)) => analysis.outcome(options, super::library::runs),
        None => Outcome::default(),
    };
    let timed = figure
        .analysis
        .as_ref()
        .is_some_and(|(analysis, _)| analysis.timed);
    let data = Data::new(prepared, batch, &outcome.values);
    let mut notes: Vec<String> = figure.note.iter().cloned().collect();
    let mut checks = Vec::new();
    let mut counted = Vec::new();
    let mut unmet = None;
    for check in &figure.checks {
        for point in data.points_of(check) {
            let label = figure.points.get(point).filter(|_| check.point.is_none());
            let label = label
                .map(crate::scenario::Point::label)
                .filter(|label| !label.is_empty());
            let label = label.filter(|_| !matches!(check.statistic, Statistic::Slope | Statistic::Trend));
            let with_label = |text: &str| match &label {
                Some(label) => format!("{text} [{label}]"),
                None => text.to_owned(),
            };
            let found = data.measure(check, point);
            let name = with_label(&check.name);
            let mut result = CheckResult {
                claim: with_label(&check.claim),
                published: check.published.clone(),
                expected: check.expect.map(|expect| words(expect, check.unit.as_deref())),
                unit: check.unit.clone(),
                measured: found.map(|found| found.0),
                interval: found.map_or(Interval::Unknown, |found| found.1),
                holds: None,
                counts: check.counts(),
                primary: check.primary,
                name,
            };
            if let (Some(expect), Some((estimate, interval))) = (check.expect, found) {
                match check.role {
                    // A condition asks what the runs were like; its estimate decides.
                    Role::Condition => {
                        let met = satisfies(expect, estimate);
                        result.holds = Some(met);
                        if !met && unmet.is_none() {
                            unmet = Some(format!(
                                "Not comparable: {} is {estimate:.3}, {} is needed.",
                                result.claim,
                                words(expect, check.unit.as_deref())
                            ));
                        }
                    }
                    Role::Check | Role::Report => result.holds = holds(expect, estimate, interval),
                }
            }
            let simulated = matches!(
                check.quantity.metric,
                Metric::Group(_) | Metric::Counter(_) | Metric::Link(_) | Metric::Variant(_)
            );
            if prepared.level != Level::Full && simulated && check.role != Role::Condition {
                let full = recorded
                    .and_then(|recorded| recorded.checks.get(&result.name))
                    .and_then(|check| check.holds);
                result.holds = no_more_than(result.holds, full);
            }
            if check.counts() {
                counted.push(Counted {
                    holds: result.holds,
                    primary: check.primary,
                });
            }
            checks.push(result);
        }
    }
    if !data.points.is_empty() && data.seeds < ENOUGH_SEEDS {
        notes.push(format!(
            "Too few seeds ({}) for the intervals to mean much; --full runs {}.",
            data.seeds, data.full_seeds
        ));
    }
    let verdict = match (&figure.not_comparable, unmet) {
        (Some(reason), _) => {
            notes.insert(0, not_comparable(reason));
            Verdict::NotComparable
        }
        (None, Some(reason)) => {
            notes.insert(0, reason);
            Verdict::NotComparable
        }
        (None, None) => verdict(&counted),
    };
    Evaluated {
        experiment: prepared.experiment.clone(),
        verdict,
        note: (!notes.is_empty()).then(|| notes.join(" ")),
        checks,
        curves: outcome.curves,
        timed,
    }
}

/// Why values cannot be compared, as a note.
fn not_comparable(reason: &str) -> String {
    format!("Not comparable: {reason}")
}

/// The checks of an experiment with the values of its record, which are rounded to six digits. A check that the record
/// does not know has none.
pub(super) fn recorded(experiment: &Experiment, recorded: &Recorded) -> Evaluated {
    let figure = &experiment.file.figure;
    let mut checks = Vec::new();
    for check in &figure.checks {
        let labels: Vec<String> = match check.point {
            None => figure.points.iter().map(crate::scenario::Point::label).collect(),
            Some(_) => Vec::new(),
        };
        let labelled = labels.iter().map(|label| format!(" [{label}]"));
        // Without a point in its name: one point, or a slope over all.
        for label in std::iter::once(String::new()).chain(labelled) {
            let name = format!("{}{label}", check.name);
            let Some(found) = recorded.checks.get(&name) else {
                continue;
            };
            checks.push(CheckResult {
                name,
                claim: format!("{}{label}", check.claim),
                published: check.published.clone(),
                expected: check.expect.map(|expect| words(expect, check.unit.as_deref())),
                unit: check.unit.clone(),
                measured: found.measured,
                interval: match (found.ci95, figure.closed_form) {
                    (Some(ends), _) => Interval::Between(ends),
                    (None, true) => Interval::Exact,
                    (None, false) => Interval::Unknown,
                },
                holds: found.holds,
                counts: check.counts(),
                primary: check.primary,
            });
        }
    }
    let analysis = figure.analysis.as_ref();
    let reason = figure.not_comparable.as_deref().map(not_comparable);
    let notes: Vec<String> = reason.into_iter().chain(figure.note.clone()).collect();
    Evaluated {
        experiment: experiment.clone(),
        verdict: recorded.verdict,
        note: (!notes.is_empty()).then(|| notes.join(" ")),
        checks,
        curves: Vec::new(),
        timed: analysis.is_some_and(|(analysis, _)| analysis.timed),
    }
}

/// Runs by point and variant, with the seeds that all of them have.
struct Data<'a> {
    prepared: &'a Prepared,
    points: Vec<PointData<'a>>,
    analysis: &'a [Measured],
    seeds: usize,
    full_seeds: u32,
    resamples: Resamples,
}

struct PointData<'a> {
    runs: Vec<Vec<&'a RunOutput>>,
    bottleneck: Vec<String>,
}

impl<'a> Data<'a> {
    fn new(prepared: &'a Prepared, batch: &'a Batch, analysis: &'a [Measured]) -> Data<'a> {
        // An interrupted batch: the seeds that every run has.
        let common: Vec<u64> = prepared
            .seeds
            .iter()
            .copied()
            .filter(|seed| {
                batch
                    .runs
                    .iter()
                    .all(|runs| runs.iter().any(|run| run.seed == *seed))
            })
            .collect();
        let points = prepared
            .points
            .iter()
            .enumerate()
            .map(|(index, (_, plan))| {
                let runs: Vec<Vec<&RunOutput>> = prepared.job_of[index]
                    .iter()
                    .map(|&job| {
                        let runs = batch.runs.get(job).map_or(&[][..], Vec::as_slice);
                        runs.iter()
                            .filter(|run| common.contains(&run.seed))
                            .map(|run| run.output.as_ref())
                            .collect()
                    })
                    .collect();
                let first = prepared.job_of[index].first();
                let described = first
                    .and_then(|&job| batch.runs.get(job))
                    .map_or(&[][..], Vec::as_slice);
                PointData {
                    runs,
                    bottleneck: bottleneck(&plan.described, described),
                }
            })
            .collect();
        Data {
            prepared,
            points,
            analysis,
            seeds: common.len(),
            full_seeds: prepared
                .experiment
                .file
                .scenario
                .as_ref()
                .and_then(|scenario| scenario.resolve(&crate::scenario::Setting::none()).ok())
                .map_or(0, |resolved| resolved.run.seeds),
            resamples: Resamples::new(
                prepared.seeds.first().copied().unwrap_or(0),
                common.len(),
                RESAMPLES,
            ),
        }
    }

    /// Points a check is made at.
    fn points_of(&self, check: &Check) -> Vec<usize> {
        match (check.point, check.quantity.metric, check.statistic) {
            (_, Metric::Analysis(_), _) | (_, _, Statistic::Slope | Statistic::Trend) => vec![0],
            (Some(point), ..) => vec![point],
            (None, ..) => (0..self.points.len()).collect(),
        }
    }

    /// Estimate and interval of a check at a point.
    fn measure(&self, check: &Check, point: usize) -> Option<(f64, Interval)> {
        if let Metric::Analysis(index) = check.quantity.metric {
            let found = self.analysis.get(index)?;
            let interval = found.ci95.map_or(Interval::Exact, Interval::Between);
            return Some((found.value, interval));
        }
        if self.seeds == 0 {
            return None;
        }
        let series = self.series(check, point);
        let (estimate, ci95) = series.measured(&self.resamples)?;
        Some((estimate, ci95.map_or(Interval::Unknown, Interval::Between)))
    }

    /// The value of a check.
    fn series(&self, check: &Check, point: usize) -> Series {
        let own = match check.statistic {
            Statistic::Slope => self.slope(check, libm::log),
            Statistic::Trend => self.slope(check, |value| value),
            Statistic::SizeSlope => self.size_slope(check, point),
            _ => self.compared(check, point),
        };
        let checks = &self.prepared.experiment.file.figure.checks;
        let others = check.beyond.iter().filter_map(|&index| checks.get(index));
        others.fold(own, |own, other| {
            own.with(&self.series(other, other.point.unwrap_or(point)), |a, b| a - b)
        })
    }

    /// The value of a check, as a ratio if it is relative.
    fn compared(&self, check: &Check, point: usize) -> Series {
        match check.relative_to {
            None => self.plain(check, check.variant, point),
            Some(Relative::To {
                variant,
                point: other,
            }) => {
                let (variant, other) = (variant.unwrap_or(check.variant), other.unwrap_or(point));
                match check.per_run {
                    // Each run is compared with its own twin.
                    Some(reduce) => {
                        let above = self.reduced(check, reduce, check.variant, point);
                        let below = self.reduced(check, reduce, variant, other);
                        let ratios = above.iter().zip(&below).map(|(a, b)| a / b).collect();
                        self.of_runs(ratios, check.statistic)
                    }
                    None => self
                        .plain(check, check.variant, point)
                        .over(&self.plain(check, variant, other)),
                }
            }
            Some(Relative::Best { largest }) => {
                let better = |a: f64, b: f64| if largest { a.max(b) } else { a.min(b) };
                let best = (0..self.points.len())
                    .map(|point| self.plain(check, check.variant, point))
                    .reduce(|a, b| a.with(&b, better));
                let own = self.plain(check, check.variant, point);
                best.map_or_else(|| own.clone(), |best| own.over(&best))
            }
        }
    }

    /// The value at a variant and a point, divided by what it is per.
    fn plain(&self, check: &Check, variant: usize, point: usize) -> Series {
        if let Some(reduce) = check.per_run {
            return self.of_runs(self.reduced(check, reduce, variant, point), check.statistic);
        }
        let statistic = check.statistic;
        let of = |quantity| series(&self.values(quantity, variant, point), statistic, &self.resamples);
        let own = of(check.quantity);
        if statistic == Statistic::Share {
            let groups = self.prepared.points[point].1.described.groups.len();
            let all = (0..groups)
                .map(|group| {
                    of(Quantity {
                        metric: check.quantity.metric,
                        of: Of::Group(group),
                    })
                })
                .reduce(|a, b| a.with(&b, |a, b| a + b));
            return all.map_or_else(|| own.clone(), |all| own.over(&all));
        }
        let own = own.with(&own, |a, _| a - check.base);
        match check.per {
            Some(per) => own.over(&of(per)),
            None => own,
        }
    }

    /// One number per run, divided by what it is per.
    fn reduced(&self, check: &Check, reduce: Statistic, variant: usize, point: usize) -> Vec<f64> {
        let mut own = per_run(&self.values(check.quantity, variant, point), reduce);
        own.iter_mut().for_each(|value| *value -= check.base);
        match check.per {
            Some(per) => {
                let below = per_run(&self.values(per, variant, point), reduce);
                own.iter().zip(&below).map(|(a, b)| a / b).collect()
            }
            None => own,
        }
    }

    fn of_runs(&self, numbers: Vec<f64>, statistic: Statistic) -> Series {
        let one = |number: f64| {
            if number.is_finite() {
                Sample::of(vec![number])
            } else {
                Sample::default()
            }
        };
        let values = Values::Samples(numbers.into_iter().map(one).collect());
        series(&values, statistic, &self.resamples)
    }

    /// Slope of the value against the sweep's first setting, both on the scale `on`, by least squares.
    fn slope(&self, check: &Check, on: fn(f64) -> f64) -> Series {
        let mean = Check {
            statistic: Statistic::Mean,
            ..check.clone()
        };
        let figure = &self.prepared.experiment.file.figure;
        let points: Vec<(f64, Series)> = figure
            .points
            .iter()
            .enumerate()
            .filter_map(|(index, point)| Some((on(point.number()?), self.compared(&mean, index))))
            .collect();
        slope_of(&points, on)
    }

    /// Slope over the groups of the kind of the check's group, against their data units.
    fn size_slope(&self, check: &Check, point: usize) -> Series {
        let Of::Group(named) = check.quantity.of else {
            return slope_of(&[], libm::log);
        };
        let resolved = &self.prepared.points[point].1.variants[check.variant].resolved;
        let kind = resolved.groups[named].kind;
        let groups = (0..resolved.groups.len()).filter(|&index| resolved.groups[index].kind == kind);
        let points: Vec<(f64, Series)> = groups
            .map(|index| {
                let one = Check {
                    statistic: Statistic::Mean,
                    quantity: Quantity {
                        of: Of::Group(index),
                        ..check.quantity
                    },
                    ..check.clone()
                };
                (
                    libm::log(unit_bytes(&resolved.spec, index)),
                    self.compared(&one, point),
                )
            })
            .collect();
        slope_of(&points, libm::log)
    }

    fn values(&self, quantity: Quantity, variant: usize, point: usize) -> Values {
        let data = &self.points[point];
        let plan = &self.prepared.points[point].1;
        let loss_free = plan.described.run.loss_free.as_deref();
        let loss_free = loss_free.and_then(|name| plan.variants.iter().position(|other| other.name == name));
        let twins = loss_free.map_or(&[][..], |index| &data.runs[index]);
        let twins: Vec<_> = twins.iter().copied().map(Some).collect();
        let scene = plan.variants[variant].resolved.scene(&data.bottleneck);
        values(quantity.metric, quantity.of, &scene, &data.runs[variant], &twins)
    }
}

/// Slope of series on the scale `on` against numbers, by least squares.
fn slope_of(points: &[(f64, Series)], on: fn(f64) -> f64) -> Series {
    let n = points.len() as f64;
    let middle = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let spread: f64 = points.iter().map(|(x, _)| (x - middle) * (x - middle)).sum();
    let start = Series {
        estimate: 0.0,
        resampled: vec![0.0; RESAMPLES],
    };
    points.iter().fold(start, |sum, (x, y)| {
        sum.with(y, |sum, y| sum + (x - middle) * on(y) / spread)
    })
}

/// What is expected, as one would say it.
pub(super) fn words(expect: Expect, unit: Option<&str>) -> String {
    let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
    match expect {
        Expect::Value {
            value,
            deviation: 0.0,
        } => format!("{value}{unit}"),
        Expect::Value { value, deviation } => format!("{value}{unit} ± {deviation:.4}"),
        Expect::Contains { value } => format!("interval with {value}{unit}"),
        Expect::Bounds {
            min: Some(min),
            max: Some(max),
            ..
        } => format!("{min} to {max}{unit}"),
        Expect::Bounds {
            min: Some(min),
            above,
            ..
        } => format!("{} {min}{unit}", if above { ">" } else { ">=" }),
        Expect::Bounds {
            max: Some(max),
            below,
            ..
        } => format!("{} {max}{unit}", if below { "<" } else { "<=" }),
        Expect::Bounds { .. } => String::from("anything"),
    }
}

#[cfg(test)]
mod tests {
    use super::{RESAMPLES, Series, slope_of};

    fn points(of: fn(f64) -> f64) -> Vec<(f64, Series)> {
        let series = |value: f64| Series {
            estimate: value,
            resampled: vec![value; RESAMPLES],
        };
        [10.0, 20.0, 60.0]
            .into_iter()
            .map(|x| (x, series(of(x))))
            .collect()
    }

    #[test]
    fn a_trend_is_in_the_units_of_the_values_and_a_slope_an_exponent() {
        let trend = slope_of(&points(|x| 0.2 * x - 7.0), |value| value);
        assert!((trend.estimate - 0.2).abs() < 1e-12, "{}", trend.estimate);
        let logarithms: Vec<(f64, Series)> = points(|x| 3.0 * x * x)
            .into_iter()
            .map(|(x, y)| (libm::log(x), y))
            .collect();
        let slope = slope_of(&logarithms, libm::log);
        assert!((slope.estimate - 2.0).abs() < 1e-12, "{}", slope.estimate);
    }
}
