//! Dots: a row for each check, with its 95 % interval, what is expected of it, and the numbers.

use super::axis::{Axis, tick};
use super::canvas::{Anchor, Canvas, Entry, WIDTH, legend, width_of, wrapped};
use crate::report::charts;
use crate::report::text::short;
use crate::scenario::Expect;

/// A value with its interval and what is expected of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dot {
    /// Index of its series.
    pub(super) series: usize,
    pub(super) value: f64,
    pub(super) ends: Option<[f64; 2]>,
    pub(super) expect: Option<Expect>,
}

/// A row of dots.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) title: String,
    pub(super) dots: Vec<Dot>,
}

/// Rows one below another; `ratios` are against 1, on a logarithmic axis.
pub(super) fn draw(rows: &[Row], series: &[String], ratios: bool) -> Canvas {
    let mut canvas = Canvas::default();
    let one = series.len() < 2;
    let color = |index: usize| charts::color(index + 1);
    let entries: Vec<Entry<'_>> = series
        .iter()
        .enumerate()
        .map(|(index, name)| Entry {
            name,
            color: color(index),
            dash: &[],
            mark: Some(index),
        })
        .collect();
    let mut top = if one {
        4.0
    } else {
        legend(&mut canvas, 0.0, 16.0, &entries)
    };
    let titles: Vec<Vec<String>> = rows.iter().map(|row| wrapped(&row.title, 40)).collect();
    let ends = |dot: &Dot| dot.ends.filter(|ends| ends.iter().all(|end| end.is_finite()));
    let words = |dot: &Dot| match ends(dot) {
        Some([low, high]) => format!("{} ({} to {})", short(dot.value), short(low), short(high)),
        None => short(dot.value),
    };
    let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0_f64, f64::max);
    let left = 28.0 + widest(&mut titles.iter().flatten().map(|line| width_of(line)));
    let numbers = widest(
        &mut rows
            .iter()
            .flat_map(|row| &row.dots)
            .map(|dot| width_of(&words(dot))),
    );
    let right = WIDTH - 24.0 - numbers;
    let dots = || rows.iter().flat_map(|row| &row.dots);
    let values = dots().flat_map(|dot| [dot.value].into_iter().chain(dot.ends.into_iter().flatten()));
    let bounds = dots()
        .filter_map(|dot| dot.expect)
        .flat_map(|expect| match expect {
            Expect::Value { value, .. } | Expect::Contains { value } => [Some(value), None],
            Expect::Bounds { min, max, .. } => [min, max],
        });
    // On a logarithmic axis 0 is drawn at the lower end.
    let start = if ratios { 1.0 } else { 0.0 };
    let axis = Axis::of(values.chain(bounds.flatten()).chain([start]), ratios).padded(0.04);
    let x = |value: f64| left + (right - left) * axis.at(value);
    let bottom = top
        + rows
            .iter()
            .zip(&titles)
            .map(|(row, title)| height(row, title))
            .sum::<f64>();
    let grid = canvas_of(|canvas| {
        let mut free = f64::NEG_INFINITY;
        for value in axis.ticks(6) {
            canvas.rule((x(value), top), (x(value), bottom), "n");
            let word = tick(value);
            if x(value) - width_of(&word) / 2.0 > free {
                canvas.text(x(value), bottom + 16.0, Anchor::Middle, "q", &word);
                free = x(value) + width_of(&word) / 2.0 + 4.0;
            }
        }
        if ratios {
            canvas.rule((x(1.0), top), (x(1.0), bottom), "z");
        }
    });
    let mut shaded = false;
    let mut marks = Canvas::default();
    for (row, title) in rows.iter().zip(&titles) {
        let height = height(row, title);
        let middle = top + height / 2.0;
        for (index, line) in title.iter().enumerate() {
            let y = middle + 4.0 + 15.0 * (index as f64 - (title.len() as f64 - 1.0) / 2.0);
            marks.text(left - 12.0, y, Anchor::End, "", line);
        }
        for (index, dot) in row.dots.iter().enumerate() {
            let y = middle + 17.0 * (index as f64 - (row.dots.len() as f64 - 1.0) / 2.0);
            if let Some(expect) = dot.expect {
                let (from, to) = match expect {
                    Expect::Value { value, deviation } => (value - deviation, value + deviation),
                    Expect::Contains { value } => (value, value),
                    Expect::Bounds { min, max, .. } => {
                        (min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY))
                    }
                };
                shaded = true;
                let from = if from.is_finite() { x(from) } else { left };
                let to = if to.is_finite() { x(to) } else { right };
                canvas.area(from, y - 8.0, (to - from).max(2.0), 16.0, "s");
            }
            let color = color(dot.series);
            if let Some([low, high]) = ends(dot) {
                marks.stroke((x(low), y), (x(high), y), color, 2.0);
            }
            marks.mark(x(dot.value), y, dot.series, color);
            marks.text(right + 14.0, y + 4.0, Anchor::Start, "q", &words(dot));
        }
        top += height;
    }
    canvas.push(&grid);
    canvas.push(&marks);
    let mut caption = String::from("lines: 95 % intervals");
    if ratios {
        caption.push_str("; 1: no change");
    }
    if shaded {
        caption.push_str("; shaded: what is expected");
    }
    canvas.text((left + right) / 2.0, bottom + 34.0, Anchor::Middle, "q", &caption);
    canvas.height = bottom + 42.0;
    canvas
}

fn canvas_of(draw: impl FnOnce(&mut Canvas)) -> Canvas {
    let mut canvas = Canvas::default();
    draw(&mut canvas);
    canvas
}

fn height(row: &Row, title: &[String]) -> f64 {
    (17.0 * row.dots.len() as f64).max(15.0 * title.len() as f64) + 7.0
}

#[cfg(test)]
mod tests {
    use super::{Dot, Row, draw};
    use crate::scenario::Expect;

    #[test]
    fn a_row_has_its_number_its_interval_and_what_is_expected() {
        let bound = Expect::Bounds {
            min: None,
            above: false,
            max: Some(1.0),
            below: true,
        };
        let rows = [Row {
            title: String::from("mean"),
            dots: vec![
                Dot {
                    series: 0,
                    value: 0.5,
                    ends: Some([0.4, 0.6]),
                    expect: Some(bound),
                },
                Dot {
                    series: 1,
                    value: 200.0,
                    ends: None,
                    expect: None,
                },
            ],
        }];
        let series = [String::from("a"), String::from("b")];
        let drawn = draw(&rows, &series, true).moved(0.0);
        assert!(
            drawn.contains("0.500 (0.400 to 0.600)") && drawn.contains(">200<"),
            "{drawn}"
        );
        assert_eq!(drawn.matches("class=\"s\"").count(), 1);
        assert!(drawn.contains("shaded: what is expected"));
    }

    #[test]
    fn values_that_no_logarithm_takes_are_drawn() {
        let dot = |value| Row {
            title: String::from("x"),
            dots: vec![Dot {
                series: 0,
                value,
                ends: Some([f64::NAN, 1.0]),
                expect: None,
            }],
        };
        for rows in [vec![], vec![dot(0.0)], vec![dot(-1.0), dot(3.0)]] {
            assert!(!draw(&rows, &[], true).moved(0.0).contains("NaN"));
        }
    }
}
