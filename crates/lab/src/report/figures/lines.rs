//! Lines: completion times in ascending order, checks against a path of the sweep, curves of an analysis.

use super::axis::{Axis, tick};
use super::canvas::{Anchor, Canvas, Entry, Figure, WIDTH, legend, width_of, wrapped};
use crate::report::charts;

/// A line and, where there are any, the intervals of its points.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Places and values.
    pub points: Vec<[f64; 2]>,
    /// The ends of the 95 % interval of each point; empty without.
    pub intervals: Vec<[f64; 2]>,
    /// Its points are few and are marked.
    pub marked: bool,
}

/// Lines in one frame.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// Words of the axes.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Name of the horizontal axis.
    pub x: &'a str,
    /// Name of the vertical axis.
    pub y: &'a str,
    /// A value worth a line across.
    pub reference: Option<f64>,
    /// Whether values that differ much are drawn on a logarithmic axis.
    pub wide: bool,
}

/// A figure of these panels.
pub fn figure(name: &str, title: &str, text: &str, panels: &[Panel], axes: Axes<'_>) -> Figure {
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        canvas: draw(panels, axes),
    }
}

/// Panels side by side, two in a row, under one legend.
pub(super) fn draw(panels: &[Panel], axes: Axes<'_>) -> Canvas {
    let mut canvas = Canvas::default();
    let names = names(panels);
    let entries: Vec<Entry<'_>> = names
        .iter()
        .enumerate()
        .map(|(index, name)| Entry {
            name,
            color: color_of(panels, index),
            dash: charts::dash(index),
            mark: panels
                .iter()
                .any(|panel| panel.lines.iter().any(|line| line.marked && line.name == *name))
                .then_some(index),
        })
        .collect();
    let mut top = if names.len() > 1 {
        legend(&mut canvas, 0.0, 62.0, &entries)
    } else {
        0.0
    };
    let across = if panels.len() > 1 { 2 } else { 1 };
    let width = (WIDTH - 12.0) / across as f64;
    let height = if across == 1 { 300.0 } else { 230.0 };
    for row in panels.chunks(across) {
        let titles: Vec<Vec<String>> = row
            .iter()
            .map(|panel| wrapped(&panel.title, (width / 7.4) as usize))
            .collect();
        let title_lines = titles.iter().map(Vec::len).max().unwrap_or(0);
        for (column, (panel, title)) in row.iter().zip(&titles).enumerate() {
            let left = column as f64 * width;
            for (index, line) in title.iter().enumerate() {
                let y = top + 14.0 + 16.0 * index as f64;
                canvas.text(left + 62.0, y, Anchor::Start, "b", line);
            }
            let frame = Frame {
                left: left + 62.0,
                top: top + 10.0 + 16.0 * title_lines as f64,
                width: width - 76.0,
                height: height - 60.0,
            };
            frame.draw(&mut canvas, panel, axes, &names, |index| color_of(panels, index));
        }
        top += height + 16.0 * title_lines as f64;
    }
    canvas.height = top;
    canvas
}

/// Colour of the line at `index`: grey is for the variant that others are compared with, and checks have none.
fn color_of(panels: &[Panel], index: usize) -> &'static str {
    let marked = panels
        .iter()
        .any(|panel| panel.lines.iter().any(|line| line.marked));
    charts::color(index + usize::from(marked))
}

/// Whether positive values differ so much that the small ones would not be seen.
fn wide(values: impl Iterator<Item = f64>) -> bool {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    low > 0.0 && high / low > 100.0
}

/// Names of lines in the order of first use.
fn names(panels: &[Panel]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in panels.iter().flat_map(|panel| &panel.lines) {
        if !names.contains(&line.name) {
            names.push(line.name.clone());
        }
    }
    names
}

/// Where a panel's lines are drawn.
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Frame {
    fn draw(
        &self,
        canvas: &mut Canvas,
        panel: &Panel,
        axes: Axes<'_>,
        names: &[String],
        color: impl Fn(usize) -> &'static str,
    ) {
        let xs = || {
            panel
                .lines
                .iter()
                .flat_map(|line| line.points.iter().map(|point| point[0]))
        };
        let ys = panel.lines.iter().flat_map(|line| {
            let ends = line.intervals.iter().flatten().copied();
            line.points.iter().map(|point| point[1]).chain(ends)
        });
        let (low, high) = xs().fold((f64::INFINITY, 0.0_f64), |(low, high), x| {
            (low.min(x), high.max(x))
        });
        let x = Axis::of(
            xs(),
            low > 0.0 && high / low > 30.0 && panel.lines.iter().all(|line| line.marked),
        );
        let y = if axes.wide && wide(ys.clone()) {
            Axis::of(ys, true).with_room_above()
        } else {
            Axis::of(ys.chain([0.0]).chain(axes.reference), false).with_room_above()
        };
        let place = |point: [f64; 2]| {
            (
                self.left + self.width * x.at(point[0]),
                self.top + self.height * (1.0 - y.at(point[1])),
            )
        };
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        for value in y.ticks(5) {
            let at = self.top + self.height * (1.0 - y.at(value));
            canvas.rule((self.left, at), (right, at), "n");
            canvas.text(self.left - 7.0, at + 4.0, Anchor::End, "q", &tick(value));
        }
        let mut free = f64::NEG_INFINITY;
        for value in x.ticks(if self.width > 400.0 { 8 } else { 5 }) {
            let at = self.left + self.width * x.at(value);
            let word = tick(value);
            canvas.rule((at, self.top), (at, bottom), "n");
            let half = width_of(&word) / 2.0;
            if at - half > free {
                canvas.text(at, bottom + 17.0, Anchor::Middle, "q", &word);
                free = at + half + 4.0;
            }
        }
        if let Some(value) = axes.reference {
            let at = self.top + self.height * (1.0 - y.at(value));
            canvas.rule((self.left, at), (right, at), "z");
        }
        canvas.text(
            self.left + self.width / 2.0,
            bottom + 36.0,
            Anchor::Middle,
            "q",
            axes.x,
        );
        canvas.upward(self.left - 46.0, self.top + self.height / 2.0, axes.y);
        for line in &panel.lines {
            let index = names.iter().position(|name| *name == line.name).unwrap_or(0);
            let color = color(index);
            let finite = line
                .points
                .iter()
                .copied()
                .filter(|point| point.iter().all(|value| value.is_finite()));
            let points: Vec<(f64, f64)> = finite.map(place).collect();
            canvas.curve(&points, color, charts::dash(index));
            for (point, ends) in line.points.iter().zip(&line.intervals) {
                if ends.iter().chain(point).all(|value| value.is_finite()) {
                    canvas.stroke(place([point[0], ends[0]]), place([point[0], ends[1]]), color, 1.5);
                }
            }
            if line.marked {
                for (at, down) in points {
                    canvas.mark(at, down, index, color);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Axes, Line, Panel, draw};

    #[test]
    fn panels_without_points_or_width_are_still_drawn() {
        for points in [vec![], vec![[1.0, 1.0]], vec![[1.0, f64::NAN], [2.0, 5.0]]] {
            let intervals = vec![[f64::NAN, 1.0]; points.len()];
            let line = Line {
                name: String::from("a"),
                points,
                intervals,
                marked: true,
            };
            let panel = Panel {
                title: String::from("t"),
                lines: vec![line],
            };
            let axes = Axes {
                x: "x",
                y: "y",
                reference: Some(1.0),
                wide: true,
            };
            let drawn = draw(&[panel.clone(), panel], axes);
            assert!(!drawn.moved(0.0).contains("NaN"), "{drawn:?}");
            assert!(drawn.height > 200.0);
        }
    }

    #[test]
    fn a_line_has_the_same_colour_in_every_panel() {
        let line = |name: &str| Line {
            name: name.to_owned(),
            points: vec![[0.0, 1.0], [1.0, 2.0]],
            intervals: Vec::new(),
            marked: false,
        };
        let panels = [
            Panel {
                title: String::new(),
                lines: vec![line("a"), line("b")],
            },
            Panel {
                title: String::new(),
                lines: vec![line("b")],
            },
        ];
        let drawn = draw(
            &panels,
            Axes {
                x: "x",
                y: "y",
                reference: None,
                wide: false,
            },
        )
        .moved(0.0);
        let second = crate::report::charts::color(1);
        // In the legend and in both panels.
        assert_eq!(drawn.matches(second).count(), 3, "{drawn}");
    }
}
