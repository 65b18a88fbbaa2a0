//! Heat maps: a panel for each check, a cell for each point of the sweep.

use super::canvas::{Anchor, Canvas, Figure, WIDTH, width_of, wrapped};
use crate::report::text::short;

const GOOD: &str = "#56B4E9";
const BAD: &str = "#E69F00";

/// A cell: what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The value.
    pub value: f64,
    /// The ends of its 95 % interval.
    pub ends: Option<[f64; 2]>,
}

/// The cells of a check, row by row; `None` where the sweep has no point.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// Whether the values are ratios to another variant: 1 is no change.
    pub ratio: bool,
    /// Whether they are quotients of two things of one run: 1 is equal. All panels have one scale then.
    pub quotient: bool,
    /// Row by row.
    pub cells: Vec<Vec<Option<Cell>>>,
}

/// Words of rows and columns; those of columns in levels, the outermost first.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What the rows are.
    pub row_name: String,
    /// The words of each row.
    pub rows: Vec<String>,
    /// What the columns are, the outermost level first.
    pub column_names: Vec<String>,
    /// The words of each column, one for each level.
    pub columns: Vec<Vec<String>>,
    /// Whether a lower value is the better one, where that is known.
    pub lower_is_better: Option<bool>,
}

const ROW: f64 = 26.0;
const HEADER: f64 = 18.0;

/// A figure of these panels.
pub fn figure(name: &str, title: &str, text: &str, panels: &[Panel], frame: &Frame) -> Figure {
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        canvas: draw(panels, frame),
    }
}

/// The panels, as many in a row as find room.
pub(super) fn draw(panels: &[Panel], frame: &Frame) -> Canvas {
    let mut canvas = Canvas::default();
    let columns = frame.columns.len().max(1);
    let levels = frame.column_names.len();
    let label = frame
        .rows
        .iter()
        .chain([&frame.row_name])
        .map(|text| width_of(text))
        .fold(40.0, f64::max)
        + 20.0;
    let inner = frame.columns.iter().filter_map(|column| column.last());
    let cell = inner
        .map(|text| 0.9 * width_of(text) + 6.0)
        .fold(56.0, f64::max)
        .min(84.0);
    let fit = ((WIDTH - label + 6.0) / (cell * columns as f64 + 24.0))
        .floor()
        .max(1.0);
    let across = (fit as usize).min(panels.len().max(1));
    // Wider cells where there is room, but not without measure.
    let cell =
        ((WIDTH - label - 10.0 - 24.0 * (across as f64 - 1.0)) / (across * columns) as f64).clamp(20.0, 96.0);
    let panel_width = cell * columns as f64;
    let mut top = 0.0;
    for line in panels.chunks(across) {
        let titles: Vec<Vec<String>> = line
            .iter()
            .map(|panel| wrapped(&panel.title, (panel_width / 7.2).max(12.0) as usize))
            .collect();
        let title_height = 16.0 * titles.iter().map(Vec::len).max().unwrap_or(0) as f64;
        let header = top + title_height + 8.0;
        let body = header + HEADER * levels as f64 + 4.0;
        for (level, name) in frame.column_names.iter().enumerate() {
            let y = header + HEADER * level as f64 + 12.0;
            canvas.text(label - 10.0, y, Anchor::End, "q", name);
        }
        for (row, words) in frame.rows.iter().enumerate() {
            let y = body + ROW * row as f64 + 17.0;
            canvas.text(label - 10.0, y, Anchor::End, "", words);
        }
        for (number, (panel, title)) in line.iter().zip(&titles).enumerate() {
            let left = label + number as f64 * (panel_width + 24.0);
            for (index, words) in title.iter().enumerate() {
                canvas.text(left, top + 14.0 + 16.0 * index as f64, Anchor::Start, "b", words);
            }
            headers(&mut canvas, frame, left, header, cell);
            fill(&mut canvas, panel, frame, left, body, cell);
        }
        top = body + ROW * frame.rows.len() as f64 + 14.0;
    }
    top = key(&mut canvas, panels, frame, label, top);
    canvas.height = top;
    canvas
}

/// The words above the columns; equal neighbours of an outer level share theirs.
fn headers(canvas: &mut Canvas, frame: &Frame, left: f64, top: f64, cell: f64) {
    for level in 0..frame.column_names.len() {
        let y = top + HEADER * level as f64 + 12.0;
        let mut start = 0;
        while start < frame.columns.len() {
            let same = |index: usize| frame.columns[index][..=level] == frame.columns[start][..=level];
            let end = (start..frame.columns.len())
                .find(|index| !same(*index))
                .unwrap_or(frame.columns.len());
            let middle = left + cell * (start + end) as f64 / 2.0;
            canvas.text(middle, y, Anchor::Middle, "q", &frame.columns[start][level]);
            start = end;
        }
    }
}

/// The cells of a panel.
fn fill(canvas: &mut Canvas, panel: &Panel, frame: &Frame, left: f64, top: f64, width: f64) {
    let all = || panel.cells.iter().flatten().flatten().map(|cell| cell.value);
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    for (row, cells) in panel.cells.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            let (x, y) = (left + width * column as f64, top + ROW * row as f64);
            canvas.area(x + 1.0, y + 1.0, width - 2.0, ROW - 2.0, "e");
            let Some(cell) = cell else { continue };
            let around_one = panel.ratio || panel.quotient;
            let sure = !around_one || cell.ends.is_some_and(|[low, high]| low > 1.0 || high < 1.0);
            let words = if panel.ratio {
                change(cell.value)
            } else {
                short(cell.value)
            };
            let words = if sure { words } else { format!("({words})") };
            let (strength, good) = if around_one {
                let doubled = libm::log2(cell.value.max(1e-9));
                (
                    doubled.abs().min(1.0),
                    (doubled < 0.0) == frame.lower_is_better.unwrap_or(true),
                )
            } else {
                ((cell.value - low) / (high - low).max(f64::MIN_POSITIVE), true)
            };
            // The weakest colour is still one.
            let opacity = if sure { 0.12 + 0.83 * strength } else { 0.0 };
            if opacity > 0.0 {
                let color = if good { GOOD } else { BAD };
                canvas.cell(x + 1.0, y + 1.0, width - 2.0, ROW - 2.0, color, opacity);
            }
            let class = match (sure, opacity > 0.45) {
                (false, _) => "q",
                (true, true) => "k",
                (true, false) => "",
            };
            canvas.text(x + width / 2.0, y + 17.0, Anchor::Middle, class, &words);
        }
    }
}

/// What colours and brackets mean.
fn key(canvas: &mut Canvas, panels: &[Panel], frame: &Frame, left: f64, top: f64) -> f64 {
    let changes = panels.iter().any(|panel| panel.ratio);
    if !changes && !panels.iter().any(|panel| panel.quotient) {
        return top;
    }
    let (least, most, none) = if changes {
        ("half or less", "double or more", "no change")
    } else {
        ("a half or less", "two or more", "1")
    };
    let (below, above) = match frame.lower_is_better {
        Some(false) => (BAD, GOOD),
        _ => (GOOD, BAD),
    };
    let swatches = [(below, 0.5), (below, 0.75), (above, 4.0 / 3.0), (above, 2.0)];
    let y = top + 4.0;
    canvas.text(left, y + 12.0, Anchor::Start, "q", least);
    let start = left + width_of(least) + 4.0;
    for (index, (color, ratio)) in swatches.iter().enumerate() {
        let x = start + 30.0 * index as f64;
        canvas.area(x, y, 28.0, 16.0, "e");
        canvas.cell(x, y, 28.0, 16.0, color, 0.12 + 0.83 * libm::log2(*ratio).abs());
    }
    let end = start + 30.0 * swatches.len() as f64 + 6.0;
    canvas.text(end, y + 12.0, Anchor::Start, "q", most);
    let words = format!("(in brackets): the 95 % interval contains {none}");
    canvas.text(left, y + 32.0, Anchor::Start, "q", &words);
    y + 42.0
}

/// A ratio as a change in per cent; large ones as a factor.
fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { '\u{2212}' } else { '+' };
    match percent.abs() {
        size if ratio >= 3.0 && size.is_finite() => format!("\u{d7}{}", short(ratio)),
        size if size < 0.05 => String::from("0 %"),
        size if size < 9.95 => format!("{sign}{size:.1} %"),
        size => format!("{sign}{size:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Frame, Panel, change, draw};

    #[test]
    fn a_ratio_is_a_change_in_per_cent() {
        assert_eq!(
            [0.604, 0.95, 1.0, 1.0001, 1.92, 3.39].map(change),
            [
                "\u{2212}40 %",
                "\u{2212}5.0 %",
                "0 %",
                "0 %",
                "+92 %",
                "\u{d7}3.39"
            ]
        );
    }

    fn drawn(cell: Option<Cell>) -> String {
        let frame = Frame {
            row_name: String::from("delay"),
            rows: vec![String::from("3 ms")],
            column_names: vec![String::from("load"), String::from("size")],
            columns: vec![
                vec![String::from("60/s"), String::from("small")],
                vec![String::from("60/s"), String::from("large")],
            ],
            lower_is_better: Some(true),
        };
        let panel = Panel {
            title: String::from("FCT"),
            ratio: true,
            quotient: false,
            cells: vec![vec![cell, None]],
        };
        draw(&[panel], &frame).moved(0.0)
    }

    #[test]
    fn what_may_be_no_change_is_in_brackets_and_has_no_colour() {
        let cell = |value, ends| {
            drawn(Some(Cell {
                value,
                ends: Some(ends),
            }))
        };
        let key = drawn(None).matches("fill-opacity").count();
        let sure = cell(0.6, [0.5, 0.7]);
        assert!(sure.contains(">\u{2212}40 %<"));
        assert_eq!(sure.matches("fill-opacity").count(), key + 1);
        let unsure = cell(0.98, [0.9, 1.1]);
        assert!(unsure.contains(">(\u{2212}2.0 %)<"));
        assert_eq!(unsure.matches("fill-opacity").count(), key);
    }

    #[test]
    fn an_outer_heading_stands_once_above_its_columns() {
        let drawn = drawn(None);
        assert_eq!(drawn.matches(">60/s<").count(), 1, "{drawn}");
        assert_eq!(drawn.matches(">small<").count(), 1);
    }

    /// Quotients stay numbers, and the same number has the same colour in every panel.
    #[test]
    fn quotients_have_one_scale_around_one() {
        let frame = Frame {
            row_name: String::from("RTT"),
            rows: vec![String::from("20 ms")],
            column_names: vec![String::from("buffer")],
            columns: vec![vec![String::from("25")], vec![String::from("400")]],
            lower_is_better: None,
        };
        let cell = |value: f64| {
            Some(Cell {
                value,
                ends: Some([value * 0.9, value * 1.1]),
            })
        };
        let panel = |large: f64| Panel {
            title: String::from("share"),
            ratio: false,
            quotient: true,
            cells: vec![vec![cell(0.706), cell(large)]],
        };
        let text = |large: f64| draw(&[panel(large)], &frame).moved(0.0);
        let color = |text: &str| {
            let first = text.find("fill-opacity").expect("coloured");
            text[first..first + 20].to_owned()
        };
        assert!(text(80.0).contains(">0.706<") && text(80.0).contains("two or more"));
        assert_eq!(
            color(&text(80.0)),
            color(&text(0.7)),
            "whatever else is in the panel"
        );
        assert!(text(1.05).contains(">(1.05)<"), "1 is within the interval");
    }
}
