//! The report of a sweep: how a measure depends on the axes, as heat maps (two axes) or lines (one), and the points where it is best.
//!
//! A cell is the mean of its points ([`super::cell`]); variants beside the first are ratios to it, paired by seed. An axis with many values is
//! cut into parts with equally many points.

use super::Sweep;
use super::axes::{Points, number_and_unit};
use super::cell::cell;
use super::data::{self, number, outcomes, text};
use super::driver::{State, Swept};
use super::journal::{Journal, Outcome};
use super::levels::{Levels, levels, values_in_words};
use crate::report::chapters::STYLE;
use crate::report::figures::{Figure, heat, lines};
use crate::report::text::short;
use minijinja::Environment;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

const TEMPLATE: &str = include_str!("../../assets/sweep.html.j2");
/// Panels of a figure.
const MOST_PANELS: usize = 12;
/// Axes whose pairs are all drawn.
const MOST_PAIRED: usize = 4;
/// In place of an interval where there is none.
const NONE: &str = "\u{2013}";
/// Points in a table of the report.
const MOST_ROWS: usize = 10;

/// What the report draws.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Columns of the table `runs`; empty: completion times of the groups that wait, else what they have.
    pub columns: Vec<String>,
    /// Index of the axis that runs to the right and of the one that runs down; `None`: every pair.
    pub axes: Option<(usize, usize)>,
}

/// The report.
#[derive(Clone, Debug)]
pub struct Page {
    /// As one HTML file.
    pub html: String,
    /// The best point of each measure, a line each.
    pub lines: Vec<String>,
}

/// A measure of a variant and group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    column: String,
    group: String,
    /// Place of the variant in its point, and its name.
    variant: (usize, String),
}

/// For each series the values of each point, seed by seed.
type Measured = BTreeMap<Series, Vec<Vec<Option<f64>>>>;

/// The page as text.
///
/// # Errors
/// The journal cannot be read; the template does not fit the data.
pub fn render(
    sweep: &Sweep,
    swept: &Swept,
    journal: &Journal,
    shown: &Shown,
    command: &str,
) -> io::Result<Page> {
    let measured = measured(sweep, swept, journal, shown)?;
    let best = best(sweep, &measured);
    let figures = figures(sweep, &measured, shown);
    let count = |wanted: fn(&State) -> bool| swept.points.iter().filter(|point| wanted(&point.state)).count();
    let failed: Vec<_> = swept
        .points
        .iter()
        .enumerate()
        .filter_map(|(number, point)| match &point.state {
            State::Failed(reason) => Some(json!({ "point": sweep.points.label(number), "reason": reason })),
            _ => None,
        })
        .collect();
    let mut environment = Environment::new();
    environment
        .add_template("sweep.html", TEMPLATE)
        .map_err(io::Error::other)?;
    let page = environment.get_template("sweep.html").map_err(io::Error::other)?;
    let axes: Vec<_> = (0..sweep.points.axes().len())
        .map(
            |axis| json!({ "name": sweep.points.name(axis), "values": values_in_words(&sweep.points, axis) }),
        )
        .collect();
    let failures = failed.len();
    let figures: Vec<_> = figures
        .iter()
        .map(|figure| json!({ "title": figure.title, "text": figure.text, "drawing": figure.inline() }))
        .collect();
    page.render(minijinja::value::Serde(json!({
        "fleetfoot": env!("CARGO_PKG_VERSION"),
        "style": STYLE,
        "title": sweep.scenario.title(),
        "points": sweep.points.len(),
        "seeds": sweep.seeds.len(),
        "looks": sweep.looks(),
        "open": count(|state| *state == State::Open),
        "wide": count(|state| *state == State::Wide),
        "failures": failures,
        "failed": failed.into_iter().take(MOST_ROWS).collect::<Vec<_>>(),
        "axes": axes,
        "figures": figures,
        "best": best,
        "command": command,
    })))
    .map_err(io::Error::other)
    .map(|html| Page {
        html,
        lines: lines_of(&best),
    })
}

/// The figures of the report alone: title, and the drawing as an SVG file.
///
/// # Errors
/// The journal cannot be read.
pub fn drawings(
    sweep: &Sweep,
    swept: &Swept,
    journal: &Journal,
    shown: &Shown,
) -> io::Result<Vec<(String, String)>> {
    let measured = measured(sweep, swept, journal, shown)?;
    let figures = figures(sweep, &measured, shown);
    let drawings = figures
        .iter()
        .map(|figure| (figure.title.clone(), figure.standalone()));
    Ok(drawings.collect())
}

/// The best point of each measure in words.
fn lines_of(best: &[serde_json::Value]) -> Vec<String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    best.iter()
        .filter_map(|table| {
            let row = table["rows"].get(0)?;
            let interval = match row["interval"].as_str() {
                Some(NONE) | None => String::new(),
                Some(interval) => format!(" ({interval})"),
            };
            Some(format!(
                "Best {} of {}: {}{}{interval} at {}, {}",
                text(&table["column"]),
                text(&table["group"]),
                text(&row["value"]),
                unit(&text(&table["column"])),
                text(&row["point"]),
                text(&row["variant"])
            ))
        })
        .collect()
}

/// The unit of a value of this column, as it is written behind the value; empty where the heading of the column has it, or there is none.
fn unit(column: &str) -> String {
    match data::unit(column) {
        None | Some("") => String::new(),
        Some(unit) => format!(" {unit}"),
    }
}

fn measured(sweep: &Sweep, swept: &Swept, journal: &Journal, wanted: &Shown) -> io::Result<Measured> {
    let mut measured = Measured::new();
    let mut reading = journal.reading();
    for (point, state) in swept.points.iter().enumerate() {
        for (seed, outcome) in outcomes(state, &mut reading).enumerate() {
            let Outcome::Rows { runs, .. } = outcome? else {
                continue;
            };
            let mut names: Vec<&str> = Vec::new();
            for row in &runs {
                let name = text(row, "variant");
                if names.last() != Some(&name) {
                    names.push(name);
                }
                for column in columns_of(row, wanted) {
                    let Some(value) = data::column(&column).and_then(|at| number(row, at)) else {
                        continue;
                    };
                    let series = Series {
                        column,
                        group: text(row, "group").to_owned(),
                        variant: (names.len() - 1, name.to_owned()),
                    };
                    let points = measured
                        .entry(series)
                        .or_insert_with(|| vec![Vec::new(); sweep.points.len()]);
                    let seeds = &mut points[point];
                    seeds.resize(seeds.len().max(seed + 1), None);
                    seeds[seed] = Some(value);
                }
            }
        }
    }
    if wanted.columns.is_empty() {
        // A group with times here and none there (nothing completed) is drawn by its times.
        let timed: BTreeSet<String> = measured
            .keys()
            .filter(|series| series.column != GOODPUT)
            .map(|series| series.group.clone())
            .collect();
        measured.retain(|series, _| series.column != GOODPUT || !timed.contains(&series.group));
    }
    Ok(measured)
}

/// What is drawn of a group that does not wait.
const GOODPUT: &str = "goodput_bps";

/// What is drawn of a group.
fn columns_of(row: &[super::Value], wanted: &Shown) -> Vec<String> {
    if !wanted.columns.is_empty() {
        return wanted.columns.clone();
    }
    let has = |name: &&str| data::column(name).is_some_and(|column| number(row, column).is_some());
    let waits = text(row, "latency_sensitive") == "true";
    let times = ["fct_mean_s", "delivery_latency_mean_s"];
    let first = times.iter().copied().filter(|_| waits).find(has);
    vec![first.unwrap_or(GOODPUT).to_owned()]
}

/// A column as it is drawn: its name, and by what its values are multiplied. Times that are all short are in ms or us.
fn drawn(measured: &Measured, column: &str, group: &str) -> (String, f64) {
    if let Some(name) = column.strip_suffix("_bps") {
        return (format!("{name} (Mbit/s)"), 1e-6);
    }
    if data::unit(column) != Some("s") {
        return (column.to_owned(), 1.0);
    }
    let values =
        series_of(measured, column, group).flat_map(|(_, _, points)| points.iter().flatten().flatten());
    let longest = values.copied().fold(0.0, f64::max);
    let name = column.strip_suffix("_s").unwrap_or(column);
    match longest {
        0.0 => (column.to_owned(), 1.0),
        longest if longest < 1e-3 => (format!("{name} (us)"), 1e6),
        longest if longest < 0.1 => (format!("{name} (ms)"), 1e3),
        _ => (column.to_owned(), 1.0),
    }
}

fn lower_is_better(column: &str) -> bool {
    !(column.ends_with("_bps") || ["fairness_jain", "completed"].contains(&column))
}

fn figures(sweep: &Sweep, measured: &Measured, wanted: &Shown) -> Vec<Figure> {
    let (points, looks) = (&sweep.points, sweep.looks());
    let axes = points.axes().len();
    let mut measures: Vec<(&str, &str)> = measured
        .keys()
        .map(|series| (series.column.as_str(), series.group.as_str()))
        .collect();
    measures.dedup();
    measures.sort_unstable();
    measures.dedup();
    let mut figures = Vec::new();
    for (column, group) in measures {
        if axes == 1 {
            figures.push(against(points, measured, looks, column, group));
            continue;
        }
        let pairs: Vec<(usize, usize)> = match wanted.axes {
            Some(pair) => vec![pair],
            None => (0..axes.min(MOST_PAIRED))
                .flat_map(|x| (x + 1..axes.min(MOST_PAIRED)).map(move |y| (x, y)))
                .collect(),
        };
        for (x, y) in pairs {
            figures.push(map(points, measured, looks, (column, group), [x, y]));
        }
    }
    figures
}

/// The series of a measure, the first variant first, with that of the first variant.
fn series_of<'a>(
    measured: &'a Measured,
    column: &'a str,
    group: &'a str,
) -> impl Iterator<Item = (&'a str, usize, &'a Vec<Vec<Option<f64>>>)> {
    let of = move |series: &&Series| series.column == column && series.group == group;
    let mut all: Vec<_> = measured.iter().filter(move |(series, _)| of(series)).collect();
    all.sort_by_key(|(series, _)| series.variant.0);
    all.into_iter()
        .map(|(series, values)| (series.variant.1.as_str(), series.variant.0, values))
}

fn map(
    points: &Points,
    measured: &Measured,
    looks: usize,
    (column, group): (&str, &str),
    [x, y]: [usize; 2],
) -> Figure {
    let (title, factor) = drawn(measured, column, group);
    let (across, down) = (levels(points, x), levels(points, y));
    // A panel for each combination of the other axes, if they are few; else their mean.
    let others: Vec<usize> = (0..points.axes().len())
        .filter(|&axis| axis != x && axis != y)
        .collect();
    let other_levels: Vec<Levels> = others.iter().map(|&axis| levels(points, axis)).collect();
    let combinations: usize = other_levels.iter().map(|levels| levels.words.len()).product();
    let variants = series_of(measured, column, group).count().max(1);
    let apart = combinations > 1 && combinations * variants <= MOST_PANELS;
    let combination_of = |point: usize| {
        let of = |number: usize, levels: &Levels| number * levels.words.len() + levels.of_point[point];
        other_levels.iter().fold(0, of)
    };
    let mut baseline: Option<&Vec<Vec<Option<f64>>>> = None;
    let mut panels = Vec::new();
    for (name, place, values) in series_of(measured, column, group) {
        let ratio = place > 0 && baseline.is_some();
        for combination in 0..if apart { combinations } else { 1 } {
            let mut members = vec![vec![Vec::new(); across.words.len()]; down.words.len()];
            for point in 0..points.len() {
                if !apart || combination_of(point) == combination {
                    members[down.of_point[point]][across.of_point[point]].push(point);
                }
            }
            let cells = members.iter().map(|row| {
                let cells = row.iter().map(|members| {
                    cell(
                        members,
                        values,
                        baseline.filter(|_| ratio).map(Vec::as_slice),
                        factor,
                        looks,
                    )
                });
                cells.collect()
            });
            let mut words = match ratio {
                true => format!("{name}, against {}", crate::scenario::BASELINE),
                false => name.to_owned(),
            };
            if apart {
                let mut rest = combination;
                let mut parts: Vec<String> = others
                    .iter()
                    .zip(&other_levels)
                    .rev()
                    .map(|(&axis, levels)| {
                        let level = rest % levels.words.len();
                        rest /= levels.words.len();
                        format!("{} = {}", last_part(&points.name(axis)), levels.words[level])
                    })
                    .collect();
                parts.reverse();
                words = format!("{words}: {}", parts.join(", "));
            }
            panels.push(heat::Panel {
                title: words,
                ratio,
                quotient: false,
                cells: cells.collect(),
            });
        }
        baseline.get_or_insert(values);
    }
    let frame = heat::Frame {
        row_name: last_part(&points.name(y)).to_owned(),
        rows: down.words,
        column_names: vec![last_part(&points.name(x)).to_owned()],
        columns: across.words.into_iter().map(|words| vec![words]).collect(),
        lower_is_better: Some(lower_is_better(column)),
    };
    let mean_of = match (others.is_empty(), apart) {
        (false, false) => " A cell is the mean over the other axes.",
        _ => "",
    };
    heat::figure(
        &format!("{column}-{group}-{x}-{y}"),
        &format!("{title} of {group}: {} and {}", points.name(x), points.name(y)),
        &format!(
            "To the right {}, down {}.{mean_of}",
            points.name(x),
            points.name(y)
        ),
        &panels,
        &frame,
    )
}

/// The end of a path, which says what it is.
fn last_part(name: &str) -> &str {
    let end = name.find(" (").unwrap_or(name.len());
    match name[..end].rfind('.') {
        Some(dot) => &name[dot + 1..],
        None => name,
    }
}

/// A measure over the only axis.
fn against(points: &Points, measured: &Measured, looks: usize, column: &str, group: &str) -> Figure {
    let (title, factor) = drawn(measured, column, group);
    let y = format!("{title} of {group}");
    let title = format!("{y}: {}", points.name(0));
    if points.unit(0).is_none() {
        let across = levels(points, 0);
        let panels: Vec<heat::Panel> = series_of(measured, column, group)
            .map(|(name, _, values)| heat::Panel {
                title: name.to_owned(),
                ratio: false,
                quotient: false,
                cells: vec![
                    (0..points.len())
                        .map(|point| cell(&[point], values, None, factor, looks))
                        .collect(),
                ],
            })
            .collect();
        let frame = heat::Frame {
            row_name: String::new(),
            rows: vec![drawn(measured, column, group).0],
            column_names: vec![last_part(&points.name(0)).to_owned()],
            columns: across.words.into_iter().map(|words| vec![words]).collect(),
            lower_is_better: Some(lower_is_better(column)),
        };
        return heat::figure(&format!("{column}-{group}"), &title, "", &panels, &frame);
    }
    let lines = series_of(measured, column, group)
        .map(|(name, _, values)| {
            let mut marks: Vec<(f64, heat::Cell)> = (0..points.len())
                .filter_map(|point| {
                    let (x, _) = number_and_unit(&points.value(point, 0))?;
                    Some((x, cell(&[point], values, None, factor, looks)?))
                })
                .collect();
            marks.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            lines::Line {
                name: name.to_owned(),
                points: marks.iter().map(|(x, cell)| [*x, cell.value]).collect(),
                intervals: marks
                    .iter()
                    .map(|(_, cell)| cell.ends.unwrap_or([cell.value; 2]))
                    .collect(),
                marked: points.len() <= 30,
            }
        })
        .collect();
    let x = points.name(0);
    lines::figure(
        &format!("{column}-{group}"),
        &title,
        &match looks {
            1 => String::from("Means over the seeds with their 95 % intervals."),
            _ => format!("Means over the seeds with their 95 % intervals, corrected for {looks} looks."),
        },
        &[lines::Panel {
            title: String::new(),
            lines,
        }],
        lines::Axes {
            x: &x,
            y: &y,
            reference: None,
            wide: true,
        },
    )
}

/// For each measure the points and variants where it is best.
fn best(sweep: &Sweep, measured: &Measured) -> Vec<serde_json::Value> {
    // By column and group: value, variant and point.
    type Rows<'a> = Vec<(heat::Cell, &'a str, usize)>;
    let best_first = |column: &str, rows: &mut Rows<'_>| {
        let sign = if lower_is_better(column) { 1.0 } else { -1.0 };
        rows.sort_by(|(one, ..), (other, ..)| (sign * one.value).total_cmp(&(sign * other.value)));
        rows.truncate(MOST_ROWS);
    };
    let mut tables: BTreeMap<(&str, &str), Rows<'_>> = BTreeMap::new();
    for (series, points) in measured {
        let rows = tables.entry((&series.column, &series.group)).or_default();
        let (_, factor) = drawn(measured, &series.column, &series.group);
        for point in 0..points.len() {
            if let Some(cell) = cell(&[point], points, None, factor, sweep.looks()) {
                rows.push((cell, &series.variant.1, point));
            }
            // Of many points only the best are held.
            if rows.len() >= 100 * MOST_ROWS {
                best_first(&series.column, rows);
            }
        }
    }
    tables
        .into_iter()
        .map(|((column, group), mut rows)| {
            best_first(column, &mut rows);
            let rows: Vec<_> = rows
                .into_iter()
                .map(|(cell, variant, point)| {
                    let ends = cell
                        .ends
                        .map(|[low, high]| format!("{} to {}", short(low), short(high)));
                    json!({
                        "point": sweep.points.label(point),
                        "variant": variant,
                        "value": short(cell.value),
                        "interval": ends.as_deref().unwrap_or(NONE),
                    })
                })
                .collect();
            json!({ "column": drawn(measured, column, group).0, "group": group, "rows": rows })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Measured, Series, cell, drawn};

    fn measured(seconds: f64) -> Measured {
        let series = Series {
            column: String::from("fct_mean_s"),
            group: String::from("shards"),
            variant: (0, String::from("as described")),
        };
        Measured::from([(series, vec![vec![Some(seconds), Some(seconds / 2.0), None]])])
    }

    #[test]
    fn short_times_are_drawn_in_smaller_units() {
        let of = |seconds| drawn(&measured(seconds), "fct_mean_s", "shards");
        assert_eq!(of(0.388), (String::from("fct_mean_s"), 1.0));
        assert_eq!(of(0.0012), (String::from("fct_mean (ms)"), 1e3));
        assert_eq!(of(0.000_064), (String::from("fct_mean (us)"), 1e6));
        assert_eq!(drawn(&measured(1.0), "goodput_bps", "shards").1, 1e-6);
    }

    #[test]
    fn an_interval_of_times_does_not_begin_below_zero() {
        let values = vec![vec![Some(0.001), Some(0.021)]];
        let found = cell(&[0], &values, None, 1.0, 1).expect("there are two");
        assert!((found.value - 0.011).abs() < 1e-12);
        // Half the width is 12.7 times the standard error of 0.01.
        let [low, high] = found.ends.expect("of two seeds");
        assert_eq!(low, 0.0);
        assert!((high - (0.011 + 12.706 * 0.01)).abs() < 1e-4, "{high}");
    }
}
