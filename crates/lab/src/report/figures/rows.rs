//! Rows of shapes along one axis: a row for each variant, its name beside it, or above it where the drawing is narrow.

use super::axis::{Axis, tick};
use super::canvas::{Anchor, CHARACTER, Canvas, width_of, wrapped};

/// A shape in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    kind: Kind,
    from: f64,
    to: f64,
    color: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Bar,
    Line,
    Tick,
    Point,
    Ring,
}

impl Shape {
    fn of(kind: Kind, from: f64, to: f64, color: &'static str) -> Shape {
        Shape {
            kind,
            from,
            to,
            color,
        }
    }

    pub(super) fn bar(from: f64, to: f64, color: &'static str) -> Shape {
        Shape::of(Kind::Bar, from, to, color)
    }

    pub(super) fn line(from: f64, to: f64, color: &'static str) -> Shape {
        Shape::of(Kind::Line, from, to, color)
    }

    pub(super) fn tick(at: f64, color: &'static str) -> Shape {
        Shape::of(Kind::Tick, at, at, color)
    }

    pub(super) fn point(at: f64, color: &'static str) -> Shape {
        Shape::of(Kind::Point, at, at, color)
    }

    pub(super) fn ring(at: f64, color: &'static str) -> Shape {
        Shape::of(Kind::Ring, at, at, color)
    }
}

/// A row: its name, what the reader sees who points at it, and its shapes from the lowest up.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) shapes: Vec<Shape>,
}

/// Height of a row, of a further line of its name.
const STEP: f64 = 24.0;
const LINE: f64 = 14.0;

/// Below this width names stand above their rows.
const BESIDE: f64 = 450.0;

/// The rows under a legend of names and colours, over the axis, whose quantity is `title`; a line down at `reference`.
pub(super) fn rows(
    rows: &[Row],
    axis: Axis,
    title: &str,
    reference: Option<f64>,
    legend: &[(&str, &str)],
    width: f64,
) -> Canvas {
    let mut canvas = Canvas::default();
    let beside = width >= BESIDE;
    let longest = rows.iter().map(|row| width_of(&row.name)).fold(0.0, f64::max);
    let left = match beside {
        true => longest.min(0.38 * width) + 18.0,
        false => 8.0,
    };
    let right = width - 14.0;
    let letters = match beside {
        true => ((left - 14.0) / CHARACTER) as usize,
        false => (width / CHARACTER) as usize,
    };
    let top = entries(&mut canvas, legend, width);
    let names: Vec<Vec<String>> = rows.iter().map(|row| wrapped(&row.name, letters)).collect();
    let height = |name: &[String]| match beside {
        true => STEP.max(LINE * name.len() as f64 + 8.0),
        false => STEP + LINE * name.len() as f64,
    };
    let bottom = top + names.iter().map(|name| height(name)).sum::<f64>() + 2.0;
    let x = |value: f64| left + (right - left) * axis.at(value);
    let mut free = f64::NEG_INFINITY;
    for value in axis.ticks(if width < BESIDE { 5 } else { 8 }) {
        canvas.rule((x(value), top), (x(value), bottom), "n");
        let word = tick(value);
        let half = width_of(&word) / 2.0;
        if x(value) - half > free && x(value) + half < width {
            canvas.text(x(value), bottom + 16.0, Anchor::Middle, "q", &word);
            free = x(value) + half + 4.0;
        }
    }
    if let Some(value) = reference {
        canvas.rule((x(value), top), (x(value), bottom), "z");
    }
    let mut y = top;
    for (row, name) in rows.iter().zip(&names) {
        let height = height(name);
        let middle = match beside {
            true => y + height / 2.0,
            false => y + height - STEP / 2.0,
        };
        for (index, line) in name.iter().enumerate() {
            let index = index as f64;
            match beside {
                true => {
                    let at = middle + 4.0 + LINE * (index - (name.len() as f64 - 1.0) / 2.0);
                    canvas.text(left - 10.0, at, Anchor::End, "", line);
                }
                false => canvas.text(0.0, y + 13.0 + LINE * index, Anchor::Start, "", line),
            }
        }
        if beside {
            canvas.begin(&row.label);
            // The whole row answers to the pointer, which a phone does not have.
            canvas.area(left, middle - STEP / 2.0, right - left, STEP, "h0");
        }
        let known = |shape: &&Shape| shape.from.is_finite() && shape.to.is_finite();
        for shape in row.shapes.iter().filter(known) {
            draw(&mut canvas, *shape, middle, x);
        }
        if beside {
            canvas.end();
        }
        y += height;
    }
    canvas.text((left + right) / 2.0, bottom + 34.0, Anchor::Middle, "q", title);
    canvas.height = bottom + 42.0;
    canvas
}

fn draw(canvas: &mut Canvas, shape: Shape, y: f64, x: impl Fn(f64) -> f64) {
    let (from, to) = (x(shape.from), x(shape.to));
    match shape.kind {
        Kind::Bar => canvas.cell(from, y - 6.0, (to - from).max(0.5), 12.0, shape.color, 1.0),
        Kind::Line => canvas.stroke((from, y), (to, y), shape.color, 2.0),
        Kind::Tick => canvas.stroke((from, y - 7.0), (from, y + 7.0), shape.color, 2.0),
        Kind::Point => canvas.mark(from, y, 0, shape.color),
        Kind::Ring => canvas.ring(from, y, shape.color),
    }
}

/// What the colours mean; returns where the rows begin.
fn entries(canvas: &mut Canvas, legend: &[(&str, &str)], width: f64) -> f64 {
    let (mut x, mut y) = (8.0, 14.0);
    for (name, color) in legend {
        let room = 18.0 + width_of(name) + 16.0;
        if x + room > width && x > 8.0 {
            (x, y) = (8.0, y + 18.0);
        }
        canvas.cell(x, y - 9.0, 12.0, 10.0, color, 1.0);
        canvas.text(x + 18.0, y, Anchor::Start, "q", name);
        x += room;
    }
    if legend.is_empty() { 4.0 } else { y + 12.0 }
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::{Row, Shape, rows};

    #[test]
    fn every_row_has_its_name_and_label_in_every_width_and_nothing_leaves_the_drawing() {
        let named = |name: &str, value: f64| Row {
            name: name.to_owned(),
            label: format!("label of {name}"),
            shapes: vec![Shape::bar(0.0, value, "#000"), Shape::tick(1e9, "#111")],
        };
        let drawn = [
            named("a <b>", 3.0),
            named("a much longer name that does not fit in one line of it", f64::NAN),
        ];
        for width in [360.0, 500.0, 860.0] {
            let axis = Axis::of([0.0, 5.0].into_iter(), false);
            let canvas = rows(&drawn, axis, "time (ms)", Some(1.0), &[("all", "#000")], width);
            let text = canvas.moved(0.0);
            assert!(text.contains(">a &lt;b&gt;</text>"), "{text}");
            assert_eq!(
                text.contains("<title>label of a &lt;b&gt;</title>"),
                width > 400.0,
                "{text}"
            );
            assert!(text.contains("much longer") && !text.contains("NaN"), "{text}");
            assert!(
                text.contains(&format!("M{} ", width - 14.0)),
                "beyond the axis is drawn at its edge: {text}"
            );
        }
    }
}
