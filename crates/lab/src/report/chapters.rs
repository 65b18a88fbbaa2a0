//! `reproduce.html`: a chapter per experiment with its verdict, its checks and its figure drawn again.
//!
//! Figures are plain SVG, so that the page needs no script. A simulated experiment shows completion times in ascending
//! order, as the published figures do, or against the sweep; an analysis shows its curves.

use super::charts;
use super::text::short;
use crate::analysis::Curve;
use crate::compare::groups::completion_times;
use crate::experiment::verdict::Verdict;
use crate::experiment::{CheckResult, Evaluated, Prepared};
use crate::run::Batch;
use crate::scenario::Published;
use minijinja::Environment;
use serde::Serialize;
use serde_json::json;

const TEMPLATE: &str = include_str!("../../assets/chapters.html.j2");
const STYLE: &str = include_str!("../../assets/report.bundle.css");

/// An experiment with its runs.
#[derive(Clone, Copy, Debug)]
pub struct Chapter<'a> {
    /// What was prepared.
    pub prepared: &'a Prepared,
    /// Its verdict.
    pub evaluated: &'a Evaluated,
    /// Its runs.
    pub batch: &'a Batch,
    /// File name of a report with all measurements, if one was written.
    pub detail: Option<&'a str>,
}

/// The page as text.
///
/// # Errors
/// The template does not fit the data; a test renders it.
pub fn render(chapters: &[Chapter<'_>], command: &str) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("chapters.html", TEMPLATE)?;
    let shown: Vec<_> = chapters.iter().map(chapter).collect();
    environment
        .get_template("chapters.html")?
        .render(minijinja::value::Serde(json!({
            "fleetfoot": env!("CARGO_PKG_VERSION"),
            "style": STYLE,
            "summary": summary(chapters),
            "chapters": shown,
            "command": command,
        })))
}

fn summary(chapters: &[Chapter<'_>]) -> String {
    let count = |verdict| {
        chapters
            .iter()
            .filter(|chapter| chapter.evaluated.verdict == verdict)
            .count()
    };
    let parts: Vec<String> = [
        Verdict::Reproduced,
        Verdict::Partly,
        Verdict::NotReproduced,
        Verdict::NotComparable,
    ]
    .into_iter()
    .filter(|verdict| count(*verdict) > 0)
    .map(|verdict| format!("{} {}", count(verdict), verdict.name()))
    .collect();
    format!("{} experiments: {}", chapters.len(), parts.join(", "))
}

fn chapter(chapter: &Chapter<'_>) -> serde_json::Value {
    let Evaluated {
        experiment,
        verdict,
        note,
        checks,
        curves,
        ..
    } = chapter.evaluated;
    let figure = &experiment.file.figure;
    let mut figures = analysis_figures(curves);
    figures.extend(times_figures(chapter));
    figures.extend(sweep_figures(chapter));
    json!({
        "id": experiment.id,
        "claim": figure.claim,
        "verdict": verdict.name(),
        "seed": figure.source.seed,
        "place": figure.source.place,
        "publication": figure.source.publication,
        "note": note,
        "checks": checks.iter().map(row).collect::<Vec<_>>(),
        "figures": figures,
        "detail": chapter.detail,
    })
}

fn row(check: &CheckResult) -> serde_json::Value {
    let published = match &check.published {
        None => String::new(),
        Some(Published::Number(number)) => number.to_string(),
        Some(Published::Text(text)) => text.clone(),
    };
    let ends = check.interval.ends();
    let holds = match (check.holds, &check.expected) {
        (_, None) => "",
        (Some(true), _) => "yes",
        (Some(false), _) => "no",
        (None, _) => "undecided",
    };
    json!({
        "claim": check.claim,
        "published": published,
        "expected": check.expected.as_deref().unwrap_or(""),
        "measured": check.measured.map_or_else(none, short),
        "interval": ends.map_or_else(none, |[low, high]| format!("{} to {}", short(low), short(high))),
        "holds": holds,
        "counts": check.counts,
    })
}

fn none() -> String {
    "\u{2013}".to_owned()
}

/// A drawn figure.
#[derive(Debug, Serialize)]
struct Figure {
    title: String,
    x: String,
    y: String,
    lines: Vec<Line>,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    color: &'static str,
    dash: String,
    points: String,
}

#[derive(Debug, Serialize)]
struct Tick {
    at: f64,
    label: String,
}

/// A line before it is drawn.
struct Data {
    name: String,
    points: Vec<[f64; 2]>,
}

fn analysis_figures(curves: &[Curve]) -> Vec<Figure> {
    let Some(first) = curves.first() else {
        return Vec::new();
    };
    let lines = curves.iter().map(|curve| Data {
        name: curve.name.clone(),
        points: curve.points.clone(),
    });
    vec![draw("The analysis", first.x, first.y, &lines.collect::<Vec<_>>())]
}

/// Completion times in ascending order, mean over the runs by rank, as the published figures show them.
fn times_figures(chapter: &Chapter<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let points = chapter.prepared.points.iter().enumerate().take(MOST_POINTS);
    for (index, (point, plan)) in points {
        let batch = chapter.prepared.batch_of(index, chapter.batch);
        for (group, info) in plan.described.groups.iter().enumerate() {
            if !info.latency_sensitive {
                continue;
            }
            let lines = plan.variants.iter().zip(&batch.runs).map(|(variant, runs)| {
                let sorted = runs.iter().map(|run| {
                    let sample = completion_times(info.kind, &run.output, group);
                    let mut times = sample.completed;
                    times.sort_unstable_by(f64::total_cmp);
                    times
                });
                Data {
                    name: variant.name.clone(),
                    points: by_rank(&sorted.collect::<Vec<_>>()),
                }
            });
            let label = point.label();
            let at = if label.is_empty() {
                label
            } else {
                format!(", {label}")
            };
            figures.push(draw(
                &format!("Completion times of {}{at}", info.name),
                "flows, fastest first",
                "completion time (ms)",
                &lines.collect::<Vec<_>>(),
            ));
        }
    }
    figures
}

/// Mean over the runs of the value at each rank, at most so many ranks.
fn by_rank(runs: &[Vec<f64>]) -> Vec<[f64; 2]> {
    let ranks = runs.iter().map(Vec::len).max().unwrap_or(0);
    let step = ranks.div_ceil(MOST_RANKS).max(1);
    (0..ranks)
        .step_by(step)
        .filter_map(|rank| {
            let there: Vec<f64> = runs.iter().filter_map(|run| run.get(rank).copied()).collect();
            let mean = there.iter().sum::<f64>() / there.len() as f64;
            (!there.is_empty()).then_some([rank as f64 + 1.0, mean * 1e3])
        })
        .collect()
}

/// Each check that is made at every point of a sweep, against the first path of the sweep.
fn sweep_figures(chapter: &Chapter<'_>) -> Vec<Figure> {
    let figure = &chapter.evaluated.experiment.file.figure;
    if figure.points.len() < 3 {
        return Vec::new();
    }
    let Some((path, _)) = figure.points.first().and_then(|point| point.set.iter().next()) else {
        return Vec::new();
    };
    let swept = figure.checks.iter().filter(|check| check.point.is_none());
    swept
        .filter_map(|check| {
            let points: Vec<[f64; 2]> = figure
                .points
                .iter()
                .filter_map(|point| {
                    let name = format!("{} [{}]", check.name, point.label());
                    let found = chapter.evaluated.checks.iter().find(|check| check.name == name)?;
                    Some([point.number()?, found.measured?])
                })
                .collect();
            let data = Data {
                name: check.name.clone(),
                points,
            };
            (data.points.len() > 2).then(|| draw(&check.claim, path, &check.name, &[data]))
        })
        .collect()
}

fn draw(title: &str, x: &str, y: &str, lines: &[Data]) -> Figure {
    let all = || lines.iter().flat_map(|line| &line.points);
    let range = |axis: usize, floor: f64| {
        let (low, high) = all()
            .map(|point| point[axis])
            .filter(|value| value.is_finite())
            .fold((floor, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if high > low {
            (low, high)
        } else {
            (low.min(0.0), low.max(0.0) + 1.0)
        }
    };
    let (x_range, y_range) = (range(0, f64::INFINITY), range(1, 0.0));
    let x_at = |value: f64| round(70.0 + 620.0 * (value - x_range.0) / (x_range.1 - x_range.0));
    let y_at = |value: f64| round(260.0 - 250.0 * (value - y_range.0) / (y_range.1 - y_range.0));
    let drawn = lines.iter().enumerate().map(|(index, line)| Line {
        name: line.name.clone(),
        color: charts::color(index),
        dash: charts::dash(index)
            .iter()
            .map(u8::to_string)
            .collect::<Vec<_>>()
            .join(" "),
        points: line
            .points
            .iter()
            .filter(|point| point[0].is_finite() && point[1].is_finite())
            .map(|point| format!("{},{}", x_at(point[0]), y_at(point[1])))
            .collect::<Vec<_>>()
            .join(" "),
    });
    let tick = |at: &dyn Fn(f64) -> f64, value: f64| Tick {
        at: at(value),
        label: short(value),
    };
    Figure {
        title: title.to_owned(),
        x: x.to_owned(),
        y: y.to_owned(),
        lines: drawn.collect(),
        x_ticks: steps(x_range)
            .into_iter()
            .map(|value| tick(&x_at, value))
            .collect(),
        y_ticks: steps(y_range)
            .into_iter()
            .map(|value| tick(&y_at, value))
            .collect(),
    }
}

/// Round values within the range, about five.
fn steps((low, high): (f64, f64)) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let first = libm::ceil(low / step - 1e-9) as i64;
    let last = libm::floor(high / step + 1e-9) as i64;
    (first..=last).map(|count| count as f64 * step).collect()
}

fn round(value: f64) -> f64 {
    libm::round(value * 10.0) / 10.0
}

/// Points of a sweep of which completion times are drawn.
const MOST_POINTS: usize = 3;

/// Ranks of a line.
const MOST_RANKS: usize = 200;

#[cfg(test)]
mod tests {
    use super::{by_rank, draw, steps};

    #[test]
    fn ticks_are_round_and_within_the_range() {
        assert_eq!(steps((0.0, 10.0)), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(steps((1.0, 50.0)), [10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(steps((0.0, 0.37)), [0.0, 0.1, 0.2, 0.30000000000000004]);
    }

    #[test]
    fn times_are_averaged_rank_by_rank() {
        let points = by_rank(&[vec![0.001, 0.003], vec![0.003, 0.005, 0.007]]);
        assert_eq!(points, [[1.0, 2.0], [2.0, 4.0], [3.0, 7.0]]);
        assert!(by_rank(&[]).is_empty());
    }

    #[test]
    fn a_figure_without_points_or_width_is_still_drawn() {
        for points in [vec![], vec![[1.0, 1.0]], vec![[1.0, f64::NAN], [2.0, 5.0]]] {
            let data = super::Data {
                name: String::from("a"),
                points,
            };
            let figure = draw("t", "x", "y", &[data]);
            assert!(!figure.lines[0].points.contains("NaN"), "{figure:?}");
            assert!(!figure.y_ticks.is_empty());
        }
    }
}
