//! The charts of a page: each in a width for a screen and one for a phone, for every group that it can show.
//!
//! Names of variants stand beside their row, or above it where the drawing is narrow.

use super::axis::{Axis, tick};
use super::canvas::{Anchor, CHARACTER, Canvas, width_of, wrapped};
use super::rows::{Row, Shape, rows};
use crate::report::charts::{self, Chart, Data, Distribution, LINES_SHOWN, TimeLine, Verdict};
use crate::report::text::{seconds, short};
use serde::Serialize;

/// Widths of the drawings: one that fills the page, one that shares a line with another, one for a phone.
const WIDE: f64 = 860.0;
const HALF: f64 = 500.0;
pub(super) const NARROW: f64 = 360.0;

/// What a chart shows of one group.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// The group; empty where the chart has none.
    pub group: String,
    /// SVG for a screen.
    pub wide: String,
    /// SVG for a phone.
    pub narrow: String,
}

/// The pictures of `chart`, one for each of its groups.
pub fn pictures(chart: &Chart) -> Vec<Picture> {
    let groups = match chart.groups.is_empty() {
        true => vec![String::new()],
        false => chart.groups.clone(),
    };
    groups
        .into_iter()
        .map(|group| {
            let width = match chart.data {
                Data::Waits(_) | Data::Use(_) => HALF,
                _ => WIDE,
            };
            let picture = |width: f64| {
                let title = match group.is_empty() {
                    true => chart.title.clone(),
                    false => format!("{}: {group}", chart.title),
                };
                canvas(chart, &group, width).picture(width, &title)
            };
            Picture {
                wide: picture(width),
                narrow: picture(NARROW),
                group,
            }
        })
        .collect()
}

fn canvas(chart: &Chart, group: &str, width: f64) -> Canvas {
    match &chart.data {
        Data::Change { rows, .. } => change(rows, group, width),
        Data::Sizes { classes, cells } => sizes(chart, classes, cells, group, width),
        Data::Distribution(lines) => distribution(chart, lines, group, width),
        Data::Waits(waits) => delay(waits, group, width),
        Data::Use(uses) => utilisation(uses, group, width),
        Data::Runs {
            quantity,
            runs,
            means,
        } => every_run(quantity, runs, means, width),
        Data::OverTime {
            quantity,
            reference,
            lines,
        } => over_time(quantity, *reference, lines, group, width),
    }
}

fn change(changes: &[charts::Change], group: &str, width: f64) -> Canvas {
    let chosen: Vec<&charts::Change> = changes.iter().filter(|change| change.group == group).collect();
    let ends = |change: &charts::Change| {
        [
            change.low.unwrap_or(change.change),
            change.high.unwrap_or(change.change),
        ]
    };
    let beyond = chosen.iter().any(|change| ends(change)[1] > 100.0);
    let values = chosen.iter().flat_map(|change| ends(change));
    // One variant that ruins everything would hide the differences between the others.
    let values = values.map(|value| if beyond { value.min(100.0) } else { value });
    let axis = Axis::of(values.chain([0.0]), false).padded(0.03);
    let drawn: Vec<Row> = chosen
        .iter()
        .map(|change| {
            let color = change.verdict.color();
            let [low, high] = ends(change);
            Row {
                name: change.variant.clone(),
                label: format!(
                    "{}: {} % ({} to {}), {}",
                    change.variant,
                    short(change.change),
                    short(low),
                    short(high),
                    change.verdict.word()
                ),
                shapes: vec![Shape::line(low, high, color), Shape::point(change.change, color)],
            }
        })
        .collect();
    let legend: Vec<(&str, &str)> = Verdict::ALL
        .iter()
        .map(|verdict| (verdict.word(), verdict.color()))
        .collect();
    rows(&drawn, axis, "change of the mean (%)", Some(0.0), &legend, width)
}

fn delay(waits: &[charts::Wait], group: &str, width: f64) -> Canvas {
    let chosen: Vec<&charts::Wait> = waits.iter().filter(|wait| wait.group == group).collect();
    let limit = charts::longest_wait_shown(waits).unwrap_or(f64::INFINITY);
    let longest = chosen.iter().map(|wait| wait.p99.min(limit));
    let axis = Axis::of(longest.chain([0.0]), false).with_room_above();
    let drawn: Vec<Row> = chosen
        .iter()
        .map(|wait| Row {
            name: wait.variant.clone(),
            label: format!(
                "{}: median {} ms, 95 % {} ms, 99 % {} ms",
                wait.variant,
                short(wait.p50),
                short(wait.p95),
                short(wait.p99)
            ),
            shapes: vec![
                Shape::bar(0.0, wait.p50, "#0072B2"),
                Shape::line(wait.p50, wait.p95, "#56B4E9"),
                Shape::tick(wait.p99, "#D55E00"),
            ],
        })
        .collect();
    let legend = [("median", "#0072B2"), ("to 95 %", "#56B4E9"), ("99 %", "#D55E00")];
    rows(&drawn, axis, "waiting time (ms)", None, &legend, width)
}

fn utilisation(uses: &[charts::Use], group: &str, width: f64) -> Canvas {
    let drawn: Vec<Row> = uses
        .iter()
        .filter(|used| used.group == group)
        .map(|used| Row {
            name: used.variant.clone(),
            label: format!(
                "{}: {} %, {} packets dropped, {} marked",
                used.variant,
                short(used.utilisation),
                used.drops,
                used.marks
            ),
            shapes: vec![Shape::bar(0.0, used.utilisation, "#009E73")],
        })
        .collect();
    let axis = Axis::of([0.0, 100.0].into_iter(), false);
    rows(&drawn, axis, "utilisation (%)", None, &[], width)
}

fn every_run(quantity: &str, runs: &[charts::RunValue], means: &[charts::MeanValue], width: f64) -> Canvas {
    let values = runs.iter().map(|run| run.value);
    let ends = means.iter().flat_map(|mean| mean.ends.unwrap_or([mean.mean; 2]));
    let axis = Axis::of(values.chain(ends).chain([0.0]), false).with_room_above();
    let drawn: Vec<Row> = means
        .iter()
        .map(|mean| {
            let of = |run: &&charts::RunValue| run.variant == mean.variant;
            let mut shapes: Vec<Shape> = runs
                .iter()
                .filter(of)
                .map(|run| Shape::ring(run.value, "#56B4E9"))
                .collect();
            if let Some([low, high]) = mean.ends {
                shapes.push(Shape::line(low, high, "#D55E00"));
            }
            shapes.push(Shape::point(mean.mean, "#D55E00"));
            let count = runs.iter().filter(of).count();
            let last = runs.iter().filter(of).map(|run| run.run).max().unwrap_or(0);
            Row {
                name: mean.variant.clone(),
                label: format!(
                    "{}: mean {} of {count} runs up to run {last}",
                    mean.variant,
                    short(mean.mean)
                ),
                shapes,
            }
        })
        .collect();
    rows(
        &drawn,
        axis,
        quantity,
        None,
        &[("a run", "#56B4E9"), ("mean, 95 % interval", "#D55E00")],
        width,
    )
}

/// Colours of a cell: from blue (half as long) over the middle to orange (half as long again).
fn cell_color(change: f64) -> String {
    let end = if change < 0.0 {
        [0x56, 0xB4, 0xE9]
    } else {
        [0xE6, 0x9F, 0x00]
    };
    let share = (change.abs() / 50.0).min(1.0);
    let mixed = [0xf3_u8, 0xf4, 0xf6].iter().zip(end).map(|(&from, to)| {
        let (from, to) = (f64::from(from), f64::from(to));
        libm::round(from + (to - from) * share) as u8
    });
    mixed.fold(String::from("#"), |color, part| format!("{color}{part:02x}"))
}

fn sizes(chart: &Chart, classes: &[String], cells: &[charts::SizeChange], group: &str, width: f64) -> Canvas {
    let mut canvas = Canvas::default();
    // Sizes that no transfer of the group has are of other groups.
    let has = |class: &&String| {
        cells
            .iter()
            .any(|cell| cell.group == group && cell.size == **class)
    };
    let classes: Vec<&String> = classes.iter().filter(has).collect();
    let narrow = width < HALF;
    let names = chart.variants.iter().map(|name| width_of(name));
    let left = match narrow {
        true => 0.0,
        false => names.fold(0.0, f64::max).min(0.36 * width) + 14.0,
    };
    let cell = ((width - left) / classes.len().max(1) as f64).min(130.0);
    let headers: Vec<Vec<String>> = classes
        .iter()
        .map(|class| wrapped(class, (cell / CHARACTER) as usize))
        .collect();
    let lines = headers.iter().map(Vec::len).max().unwrap_or(0);
    for (column, header) in headers.iter().enumerate() {
        for (line, words) in header.iter().enumerate() {
            let y = 12.0 + 14.0 * (line + lines - header.len()) as f64;
            canvas.text(left + cell * (column as f64 + 0.5), y, Anchor::Middle, "q", words);
        }
    }
    let mut y = 4.0 + 14.0 * lines as f64 + 4.0;
    for variant in &chart.variants {
        let mut of = cells
            .iter()
            .filter(|cell| cell.group == group && cell.variant == *variant)
            .peekable();
        if of.peek().is_none() {
            continue;
        }
        if narrow {
            canvas.text(0.0, y + 13.0, Anchor::Start, "", variant);
            y += 18.0;
        } else {
            canvas.cut(left - 10.0, y + 15.0, Anchor::End, variant, left - 14.0);
        }
        for found in of {
            let column = classes
                .iter()
                .position(|class| **class == found.size)
                .unwrap_or(0);
            let x = left + cell * column as f64;
            let label = match narrow {
                true => String::new(),
                false => format!(
                    "{variant}, {}: {} % ({} instead of {}), {} transfers",
                    found.size, found.text, found.after, found.before, found.n
                ),
            };
            canvas.labelled_cell((x, y, cell - 2.0, 22.0), &cell_color(found.change), &label);
            canvas.text(x + (cell - 2.0) / 2.0, y + 15.0, Anchor::Middle, "k", &found.text);
        }
        y += 24.0;
    }
    canvas.height = y + 4.0;
    canvas
}

/// Where lines are drawn, with grid and the words of its axes.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Axis,
    y: Axis,
}

impl Frame {
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.left + (self.right - self.left) * self.x.at(x),
            self.bottom - (self.bottom - self.top) * self.y.at(y),
        )
    }

    fn grid(
        &self,
        canvas: &mut Canvas,
        words: [&str; 2],
        x_word: fn(f64) -> String,
        y_word: fn(f64) -> String,
    ) {
        for value in self.y.ticks(5) {
            let at = self.place(0.0, value).1;
            canvas.rule((self.left, at), (self.right, at), "n");
            canvas.text(self.left - 7.0, at + 4.0, Anchor::End, "q", &y_word(value));
        }
        let mut free = f64::NEG_INFINITY;
        for value in self.x.ticks(if self.right - self.left > 400.0 { 9 } else { 5 }) {
            let at = self.left + (self.right - self.left) * self.x.at(value);
            canvas.rule((at, self.top), (at, self.bottom), "n");
            let word = x_word(value);
            let half = width_of(&word) / 2.0;
            if at - half > free && at + half < self.right + 16.0 {
                canvas.text(at, self.bottom + 17.0, Anchor::Middle, "q", &word);
                free = at + half + 4.0;
            }
        }
        canvas.text(
            (self.left + self.right) / 2.0,
            self.bottom + 36.0,
            Anchor::Middle,
            "q",
            words[0],
        );
        canvas.upward(11.0, (self.top + self.bottom) / 2.0, words[1]);
        canvas.height = self.bottom + 44.0;
    }
}

fn distribution(chart: &Chart, lines: &[Distribution], group: &str, width: f64) -> Canvas {
    let mut canvas = Canvas::default();
    let chosen: Vec<&Distribution> = lines.iter().filter(|line| line.group == group).collect();
    let frame = Frame {
        left: 52.0,
        right: width - 16.0,
        top: 8.0,
        bottom: if width < HALF { 250.0 } else { 320.0 },
        x: Axis::of(chosen.iter().flat_map(|line| line.fct_s.iter().copied()), true),
        y: Axis::of([0.0, 100.0].into_iter(), false),
    };
    let time = |value: f64| {
        let (value, unit) = match value {
            v if v < 0.000_999 => (v * 1e6, "\u{b5}s"),
            v if v < 0.999 => (v * 1e3, "ms"),
            v => (v, "s"),
        };
        format!("{} {unit}", tick(value))
    };
    frame.grid(&mut canvas, ["completion time", "share complete (%)"], time, tick);
    for line in chosen {
        let points = line.fct_s.iter().zip(&line.share);
        let points: Vec<(f64, f64)> = points
            .map(|(&time, &share)| frame.place(time, 100.0 * share))
            .collect();
        let at = |share: f64| {
            let index = line.share.partition_point(|&reached| reached < share);
            line.fct_s
                .get(index)
                .map_or_else(|| String::from("not reached"), |&time| seconds(time))
        };
        let name = chart.variants.get(line.variant).map_or("", String::as_str);
        let label = match width < HALF {
            true => String::new(),
            false => format!("{name}: median {}, 95 % {}, 99 % {}", at(0.5), at(0.95), at(0.99)),
        };
        canvas.line(
            &points,
            charts::color(line.variant),
            charts::dash(line.variant),
            Some(line.variant),
            &label,
        );
    }
    canvas
}

fn over_time(quantity: &str, reference: Option<f64>, lines: &[TimeLine], group: &str, width: f64) -> Canvas {
    let mut canvas = Canvas::default();
    let chosen: Vec<&TimeLine> = lines.iter().filter(|line| line.group == group).collect();
    let points = || chosen.iter().flat_map(|line| line.points.iter());
    let mut top = 8.0;
    if chosen.len() > 1 {
        let mut x = 52.0;
        for line in &chosen {
            canvas.stroke((x, 10.0), (x + 22.0, 10.0), line.color, 2.0);
            canvas.text(x + 28.0, 14.0, Anchor::Start, "q", &line.name);
            x += 46.0 + width_of(&line.name);
        }
        top = 26.0;
    }
    let frame = Frame {
        left: 52.0,
        right: width - 16.0,
        top,
        bottom: top + if width < HALF { 150.0 } else { 190.0 },
        x: Axis::of(points().map(|point| point.0), false),
        y: Axis::of(
            points().filter_map(|point| point.1).chain([0.0]).chain(reference),
            false,
        )
        .with_room_above(),
    };
    frame.grid(
        &mut canvas,
        ["time from the first packet (s)", quantity],
        tick,
        tick,
    );
    if let Some(value) = reference {
        let at = frame.place(0.0, value).1;
        canvas.rule((frame.left, at), (frame.right, at), "z");
    }
    for line in chosen {
        for piece in line.points.split(|point| point.1.is_none()) {
            let mut steps: Vec<(f64, f64)> = Vec::with_capacity(2 * piece.len());
            for &(time, value) in piece {
                let (x, y) = frame.place(time, value.unwrap_or(0.0));
                if let Some(&(_, before)) = steps.last() {
                    steps.push((x, before));
                }
                steps.push((x, y));
            }
            canvas.line(&steps, line.color, &[], None, &line.name);
        }
    }
    canvas
}

/// What each line of the distribution is: index, name, colour and dashes, and whether it is shown at first.
pub fn key(chart: &Chart) -> Vec<(usize, &str, &'static str, String, bool)> {
    let Data::Distribution(lines) = &chart.data else {
        return Vec::new();
    };
    let drawn = |index: usize| lines.iter().any(|line| line.variant == index);
    let names = chart
        .variants
        .iter()
        .enumerate()
        .filter(|&(index, _)| drawn(index));
    names
        .map(|(index, name)| {
            let dashes: Vec<String> = charts::dash(index).iter().map(u8::to_string).collect();
            (
                index,
                name.as_str(),
                charts::color(index),
                dashes.join(" "),
                index < LINES_SHOWN,
            )
        })
        .collect()
}
