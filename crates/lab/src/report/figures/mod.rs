//! The figures of an experiment, drawn again as SVG: in the chapters of the report, and as files.
//!
//! What is drawn is what the experiment's `[[plot]]` parts ask for. Without any it is what suits its checks: curves of
//! its analysis, completion times in ascending order, checks against the sweep, ratios with their intervals. Everything
//! but completion times and the time series of a run needs only the checks' values, so it is also drawn from the record of full
//! runs.

mod axis;
mod canvas;
mod dots;
pub mod heat;
pub mod lines;
pub mod page;
mod pareto;
mod rows;
mod time_series;

pub use canvas::Figure;
pub use pareto::{Pareto, pareto};

use crate::experiment::{CheckResult, Evaluated, Prepared};
use crate::metrics::Of;
use crate::metrics::flows::completion_times;
use crate::run::Batch;
use crate::scenario::{self, Check, Plot, PlotKind, Point, Series, Shown};
use canvas::Canvas;

/// The figures of `evaluated`. Completion times are drawn where its runs are given.
pub fn of(evaluated: &Evaluated, runs: Option<(&Prepared, &Batch)>) -> Vec<Figure> {
    let experiment = &evaluated.experiment;
    let figure = &experiment.file.figure;
    let drawing = Drawing {
        figure,
        checks: &evaluated.checks,
        runs,
    };
    let mut figures: Vec<Figure> = Vec::new();
    let mut add = |name: &str, title: &str, text: Option<&str>, canvas: Canvas| {
        figures.push(Figure {
            name: if name.is_empty() {
                experiment.id.clone()
            } else {
                format!("{}-{name}", experiment.id)
            },
            title: title.to_owned(),
            text: text.unwrap_or("").to_owned(),
            canvas,
        });
    };
    if !evaluated.curves.is_empty() {
        add("curves", &figure.claim, None, curves(evaluated));
    }
    let plots = if figure.plots.is_empty() {
        drawing.suitable()
    } else {
        figure.plots.clone()
    };
    for plot in &plots {
        if let Some(canvas) = drawing.draw(plot) {
            add(&plot.name, &plot.title, plot.text.as_deref(), canvas);
        }
    }
    figures
}

/// Values with their intervals, a row for each; `None` without a row.
pub fn values(
    name: &str,
    title: &str,
    text: &str,
    rows: &[(String, f64, Option<[f64; 2]>)],
) -> Option<Figure> {
    let rows: Vec<dots::Row> = rows
        .iter()
        .map(|(title, value, ends)| dots::Row {
            title: title.clone(),
            dots: vec![dots::Dot {
                series: 0,
                value: *value,
                ends: *ends,
                expect: None,
            }],
        })
        .collect();
    (!rows.is_empty()).then(|| Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        canvas: dots::draw(&rows, &[], false),
    })
}

/// The time series that an experiment asks for: the first seed of their variants is run for them.
pub fn time_series(prepared: &Prepared) -> Vec<Figure> {
    let experiment = &prepared.experiment;
    let asked = experiment.file.figure.plots.iter();
    asked
        .filter_map(|plot| {
            let PlotKind::TimeSeries { link, variants } = &plot.kind else {
                return None;
            };
            Some(Figure {
                name: format!("{}-{}", experiment.id, plot.name),
                title: plot.title.clone(),
                text: plot.text.clone().unwrap_or_default(),
                canvas: time_series::draw(prepared, plot, *link, variants)?,
            })
        })
        .collect()
}

/// The curves of an analysis.
fn curves(evaluated: &Evaluated) -> Canvas {
    let lines = evaluated.curves.iter().map(|curve| lines::Line {
        name: curve.name.clone(),
        points: curve.points.clone(),
        intervals: Vec::new(),
        marked: false,
    });
    let axes = evaluated.curves.first().map(|curve| (curve.x, curve.y));
    let (x, y) = axes.unwrap_or_default();
    let panel = lines::Panel {
        title: String::new(),
        lines: lines.collect(),
    };
    lines::draw(
        &[panel],
        lines::Axes {
            x,
            y,
            reference: None,
            wide: false,
        },
    )
}

/// What figures are drawn from.
struct Drawing<'a> {
    figure: &'a scenario::Figure,
    checks: &'a [CheckResult],
    runs: Option<(&'a Prepared, &'a Batch)>,
}

impl Drawing<'_> {
    /// What suits the checks of an experiment that does not say.
    fn suitable(&self) -> Vec<Plot> {
        let plot = |name: String, title: String, kind| Plot {
            name,
            title,
            text: None,
            kind,
            lower_is_better: None,
            labels: std::collections::BTreeMap::new(),
        };
        let mut plots = Vec::new();
        if let Some(plan) = self
            .runs
            .and_then(|(prepared, _)| prepared.points.first())
            .map(|point| &point.1)
        {
            for (index, group) in plan.described.groups.iter().enumerate() {
                if group.latency_sensitive {
                    let variants = (0..plan.variants.len()).collect();
                    let title = format!("Completion times of {}", group.name);
                    let kind = PlotKind::Times {
                        group: index,
                        variants,
                    };
                    plots.push(plot(format!("times-{}", slug(&group.name)), title, kind));
                }
            }
        }
        let shown = |check: usize| Shown {
            check,
            title: self.figure.checks[check].name.clone(),
        };
        let path = self
            .figure
            .points
            .first()
            .and_then(|point| point.set.iter().next());
        if let Some((path, _)) = path.filter(|_| self.figure.points.len() > 2) {
            for (index, check) in self.figure.checks.iter().enumerate() {
                if self.at_points(check).len() > 2 {
                    let kind = PlotKind::Sweep {
                        checks: vec![shown(index)],
                        x: path.to_owned(),
                        logarithmic: false,
                    };
                    plots.push(plot(
                        format!("sweep-{}", slug(&check.name)),
                        check.claim.clone(),
                        kind,
                    ));
                }
            }
        }
        let few = self.figure.points.len() <= MOST_SERIES;
        let ratios: Vec<Shown> = (0..self.figure.checks.len())
            .filter(|&index| {
                let check = &self.figure.checks[index];
                check.relative_to.is_some() && (few || check.point.is_some())
            })
            .map(shown)
            .collect();
        if !ratios.is_empty() {
            let kind = PlotKind::Dots {
                checks: ratios,
                series: Series::Point,
            };
            plots.push(plot(
                String::from("ratios"),
                String::from("What is compared, as ratios"),
                kind,
            ));
        }
        plots
    }

    fn draw(&self, plot: &Plot) -> Option<Canvas> {
        match &plot.kind {
            PlotKind::Dots { checks, series } => self.dots(plot, checks, *series),
            PlotKind::HeatMap {
                checks,
                rows,
                columns,
            } => self.heat(plot, checks, rows, columns),
            PlotKind::Sweep {
                checks,
                x,
                logarithmic,
            } => self.sweep(plot, checks, x, *logarithmic),
            PlotKind::Times { group, variants } => self.times(plot, *group, variants),
            PlotKind::TimeSeries { link, variants } => {
                let (prepared, _) = self.runs?;
                time_series::draw(prepared, plot, *link, variants)
            }
        }
    }

    /// The value of `check` at the point with this index; `None`: the only one it has.
    fn found(&self, check: &Check, point: Option<usize>) -> Option<&CheckResult> {
        let label = point
            .and_then(|point| self.figure.points.get(point))
            .map(Point::label);
        let name = match label.filter(|label| !label.is_empty()) {
            Some(label) => format!("{} [{label}]", check.name),
            None => check.name.clone(),
        };
        self.checks.iter().find(|result| result.name == name)
    }

    /// Points at which `check` has a value, with it; without a sweep the one point has no index.
    fn at_points(&self, check: &Check) -> Vec<(Option<usize>, &CheckResult)> {
        let swept: Vec<_> = (0..self.figure.points.len())
            .filter(|_| check.point.is_none())
            .filter_map(|point| Some((Some(point), self.found(check, Some(point))?)))
            .collect();
        if swept.is_empty() {
            return self
                .found(check, None)
                .map(|found| (None, found))
                .into_iter()
                .collect();
        }
        swept
    }

    fn dots(&self, plot: &Plot, checks: &[Shown], by: Series) -> Option<Canvas> {
        let mut rows: Vec<dots::Row> = Vec::new();
        let mut series: Vec<String> = Vec::new();
        let mut ratios = true;
        for shown in checks {
            let check = &self.figure.checks[shown.check];
            for (point, result) in self.at_points(check) {
                let Some(value) = result.measured else { continue };
                let name = self.series_of(plot, check, point, by);
                let index = series.iter().position(|other| *other == name).unwrap_or_else(|| {
                    series.push(name);
                    series.len() - 1
                });
                ratios &= check.relative_to.is_some() || check.per.is_some();
                let dot = dots::Dot {
                    series: index,
                    value,
                    ends: result.interval.ends(),
                    expect: check.expect,
                };
                match rows.iter_mut().find(|row| row.title == shown.title) {
                    Some(row) => row.dots.push(dot),
                    None => rows.push(dots::Row {
                        title: shown.title.clone(),
                        dots: vec![dot],
                    }),
                }
            }
        }
        (!rows.is_empty()).then(|| dots::draw(&rows, &series, ratios))
    }

    /// What distinguishes a mark from others of its row.
    fn series_of(&self, plot: &Plot, check: &Check, point: Option<usize>, by: Series) -> String {
        let word = match by {
            Series::Point => point
                .and_then(|point| self.figure.points.get(point))
                .map_or_else(String::new, Point::label),
            Series::Variant => self
                .figure
                .variants
                .get(check.variant)
                .cloned()
                .unwrap_or_default(),
            Series::Group => match check.quantity.of {
                Of::Group(group) => self.figure.groups.get(group).cloned().unwrap_or_default(),
                Of::Link(_) => String::from("link"),
                Of::Variant => String::from("all"),
            },
        };
        plot.labels.get(&word).cloned().unwrap_or(word)
    }

    fn heat(&self, plot: &Plot, checks: &[Shown], rows: &[String], columns: &[String]) -> Option<Canvas> {
        let points = &self.figure.points;
        let key = |point: &Point, paths: &[String]| -> Vec<String> {
            paths.iter().map(|path| plot.value_label(point, path)).collect()
        };
        let distinct = |paths: &[String]| {
            let mut keys: Vec<Vec<String>> = Vec::new();
            for point in points {
                let key = key(point, paths);
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
            keys
        };
        let (row_keys, column_keys) = (grouped(distinct(rows)), grouped(distinct(columns)));
        let panels: Vec<heat::Panel> = checks
            .iter()
            .map(|shown| {
                let check = &self.figure.checks[shown.check];
                let cell = |row: &Vec<String>, column: &Vec<String>| {
                    let point = points
                        .iter()
                        .position(|point| key(point, rows) == *row && key(point, columns) == *column)?;
                    let result = self.found(check, Some(point))?;
                    Some(heat::Cell {
                        value: result.measured?,
                        ends: result.interval.ends(),
                    })
                };
                heat::Panel {
                    title: shown.title.clone(),
                    ratio: check.relative_to.is_some(),
                    quotient: check.relative_to.is_none() && check.per.is_some(),
                    cells: row_keys
                        .iter()
                        .map(|row| column_keys.iter().map(|column| cell(row, column)).collect())
                        .collect(),
                }
            })
            .collect();
        let names = |paths: &[String]| {
            paths
                .iter()
                .map(|path| plot.label(path).to_owned())
                .collect::<Vec<_>>()
        };
        let frame = heat::Frame {
            row_name: names(rows).join(", "),
            rows: row_keys.iter().map(|key| key.join(", ")).collect(),
            column_names: names(columns),
            columns: column_keys,
            lower_is_better: plot.lower_is_better,
        };
        panels
            .iter()
            .any(|panel| panel.cells.iter().flatten().any(Option::is_some))
            .then(|| heat::draw(&panels, &frame))
    }

    fn sweep(&self, plot: &Plot, checks: &[Shown], path: &str, logarithmic: bool) -> Option<Canvas> {
        let mut drawn: Vec<lines::Line> = Vec::new();
        let mut ratios = true;
        for shown in checks {
            let check = &self.figure.checks[shown.check];
            for (point, result) in self.at_points(check) {
                let Some(point) = point.and_then(|point| self.figure.points.get(point)) else {
                    continue;
                };
                let (Some(x), Some(y)) = (point.number_of(path), result.measured) else {
                    continue;
                };
                ratios &= check.relative_to.is_some();
                // What else is swept distinguishes lines.
                let others = point.label_without(path);
                let others = plot.labels.get(&others).cloned().unwrap_or(others);
                let name = match (others.is_empty(), checks.len()) {
                    (true, _) => shown.title.clone(),
                    (false, 1) => others,
                    (false, _) => format!("{}, {others}", shown.title),
                };
                let ends = result.interval.ends().unwrap_or([f64::NAN; 2]);
                match drawn.iter_mut().find(|line| line.name == name) {
                    Some(line) => {
                        line.points.push([x, y]);
                        line.intervals.push(ends);
                    }
                    None => drawn.push(lines::Line {
                        name,
                        points: vec![[x, y]],
                        intervals: vec![ends],
                        marked: true,
                    }),
                }
            }
        }
        if drawn.is_empty() {
            return None;
        }
        if logarithmic {
            let points = drawn.iter().flat_map(|line| &line.points);
            let floor = points.fold(0.0_f64, |most, point| most.max(point[1])) * LEAST;
            for line in &mut drawn {
                line.points
                    .iter_mut()
                    .for_each(|point| point[1] = point[1].max(floor));
                // No interval stays none.
                let ends = line.intervals.iter_mut().flatten().filter(|end| !end.is_nan());
                ends.for_each(|end| *end = end.max(floor));
            }
        }
        let y = match (checks, ratios) {
            ([shown], _) => shown.title.clone(),
            (_, true) => String::from("ratio"),
            (_, false) => plot.label("value").to_owned(),
        };
        let panel = lines::Panel {
            title: String::new(),
            lines: drawn,
        };
        let axes = lines::Axes {
            x: plot.label(path),
            y: &y,
            reference: ratios.then_some(1.0),
            wide: logarithmic,
        };
        Some(lines::draw(&[panel], axes))
    }

    /// Completion times in ascending order, as published figures show them, of all runs together.
    fn times(&self, plot: &Plot, group: usize, variants: &[usize]) -> Option<Canvas> {
        let (prepared, batch) = self.runs?;
        let points = prepared.points.iter().enumerate().take(MOST_POINTS);
        let panels: Vec<lines::Panel> = points
            .map(|(index, (point, plan))| {
                let batch = prepared.batch_of(index, batch);
                let kind = plan.described.groups.get(group).map(|info| info.kind);
                let drawn = variants.iter().filter_map(|&variant| {
                    let runs = batch.runs.get(variant)?;
                    let times = runs.iter().map(|run| {
                        let times = || {
                            Some(completion_times(
                                kind?,
                                run.output.groups.get(group)?,
                                &run.output,
                            ))
                        };
                        times().unwrap_or_default().completed
                    });
                    Some(lines::Line {
                        name: plan.variants.get(variant)?.name.clone(),
                        points: by_rank(&times.collect::<Vec<_>>()),
                        intervals: Vec::new(),
                        marked: false,
                    })
                });
                let label = point.label();
                lines::Panel {
                    title: plot.labels.get(&label).cloned().unwrap_or(label),
                    lines: drawn.collect(),
                }
            })
            .collect();
        let axes = lines::Axes {
            x: "flows of a run, fastest first",
            y: "completion time (ms)",
            reference: None,
            wide: true,
        };
        Some(lines::draw(&panels, axes))
    }
}

/// Keys with equal beginnings side by side, in the order of their first use.
fn grouped(keys: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let levels = keys.first().map_or(0, Vec::len);
    let mut order: Vec<Vec<String>> = vec![Vec::new(); levels];
    for key in &keys {
        for (known, word) in order.iter_mut().zip(key) {
            if !known.contains(word) {
                known.push(word.clone());
            }
        }
    }
    let mut sorted = keys;
    sorted.sort_by_key(|key| {
        key.iter()
            .zip(&order)
            .map(|(word, known)| known.iter().position(|other| other == word))
            .collect::<Vec<_>>()
    });
    sorted
}

/// The times of all runs together in ascending order (ms), with their ranks in a run: at most so many points, the
/// first and the last among them.
fn by_rank(runs: &[Vec<f64>]) -> Vec<[f64; 2]> {
    let mut all: Vec<f64> = runs.iter().flatten().copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let step = all.len().div_ceil(MOST_RANKS).max(1);
    let last = all.len().saturating_sub(1);
    all.iter()
        .enumerate()
        .filter(|(index, _)| index % step == 0 || *index == last)
        .map(|(index, time)| [(index + 1) as f64 / runs.len() as f64, time * 1e3])
        .collect()
}

/// A name as part of a file name.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// Points of a sweep of which completion times are drawn.
const MOST_POINTS: usize = 4;

/// The least value on a logarithmic axis, as a share of the largest.
const LEAST: f64 = 1e-4;

/// Points of a sweep that are distinguished in one row.
const MOST_SERIES: usize = 4;

/// Points of a line of completion times.
const MOST_RANKS: usize = 200;

#[cfg(test)]
mod tests;
