//! The Pareto picture of a comparison: time saved against harm, each with its 95 % interval, the front joined.
//!
//! Names stand in a column beside the drawing, each joined to its mark by a thin line, so that no two overlap however close
//! the marks are. What lies far from everything that could be chosen is not drawn: it would squeeze the rest together.

use super::axis::{Axis, tick};
use super::canvas::{Anchor, CHARACTER, Canvas, width_of};
use crate::compare::words::{self, Row};
use crate::result::Document;

/// The picture in two widths, and the same as a table.
#[derive(Clone, Debug)]
pub struct Pareto {
    /// How to read it, and what is not drawn.
    pub text: String,
    /// For a screen.
    pub wide: String,
    /// For a phone.
    pub narrow: String,
    /// Header of the table.
    pub header: Vec<String>,
    /// Rows of the table, in the order of the ranking; the first cell names the row.
    pub rows: Vec<Vec<String>>,
}

/// A variant in the picture; shares in per cent.
#[derive(Clone, Debug, PartialEq)]
struct Point {
    name: String,
    saved: f64,
    saved_ends: [f64; 2],
    harm: f64,
    harm_ends: [f64; 2],
    first_tier: bool,
    /// Whether it is of one of the first few tiers.
    chosen: bool,
    front: bool,
    significant: bool,
    recommended: bool,
    /// What the reader sees who points at it.
    label: String,
}

impl Point {
    fn of(row: &Row<'_>, recommended: Option<&str>) -> Option<Point> {
        let versus = row.versus;
        let saved = versus.win?;
        let (harm, harm_ci95) = versus.harm.map_or((0.0, None), |harm| (harm.value, harm.ci95));
        let in_percent =
            |ends: Option<[f64; 2]>, value: f64| ends.unwrap_or([value; 2]).map(|end| 100.0 * end);
        Some(Point {
            name: row.variant.name.clone(),
            saved: 100.0 * saved,
            saved_ends: in_percent(versus.win_ci95, saved),
            harm: 100.0 * harm,
            harm_ends: in_percent(harm_ci95, harm),
            first_tier: versus.tier == Some(1),
            chosen: versus.tier.is_some_and(|tier| tier <= CHOSEN),
            front: versus.pareto,
            significant: versus.significant,
            recommended: recommended == Some(row.variant.name.as_str()),
            label: format!(
                "{}: time saved {}, harm {}",
                row.variant.name,
                words::saved(versus),
                words::harm(versus.harm)
            ),
        })
    }

    fn named(&self) -> bool {
        self.first_tier || self.front
    }
}

/// The picture; `None` where nothing was compared.
pub fn pareto(document: &Document) -> Option<Pareto> {
    let rows = words::rows(document);
    let recommended = document
        .recommended
        .as_ref()
        .map(|recommended| recommended.variant.as_str());
    // Parts of a variant, at one place or on one side only, are drawn where they are on the line: all of them would hide it.
    let rivals = || rows.iter().filter(|row| !row.part || row.versus.pareto);
    let all: Vec<Point> = rivals().filter_map(|row| Point::of(row, recommended)).collect();
    if all.is_empty() {
        return None;
    }
    let (least_saved, most_harm) = bounds(&all);
    let (drawn, left_out): (Vec<Point>, Vec<Point>) = all
        .into_iter()
        .partition(|point| point.saved >= least_saved && point.harm <= most_harm);
    let mut text = String::from(
        "Up is more time saved for those who wait; right is more harm to anybody: the upper left is best. Lines through a mark are its 95 % intervals. \
         On the joined line no other setting saves as much for less harm.",
    );
    if rows.iter().any(|row| row.part) {
        text.push_str(" Settings at one place or on one side only are drawn where they are on it; whether they are significant is not tested.");
    }
    if !left_out.is_empty() {
        text.push_str(&format!(
            " Not drawn, but in the table: {} that save{} less than {} % or harm{} more than {} %.",
            match left_out.len() {
                1 => String::from("1 setting"),
                several => format!("{several} settings"),
            },
            if left_out.len() == 1 { "s" } else { "" },
            tick(least_saved.round()),
            if left_out.len() == 1 { "s" } else { "" },
            tick(most_harm.round()),
        ));
    }
    let picture = |width: f64| draw(&drawn, width).picture(width, "Time saved against harm");
    Some(Pareto {
        text,
        wide: picture(WIDE),
        narrow: picture(NARROW),
        header: ["Variant", "Tier", "Time saved", "Harm", "Pareto front"]
            .map(str::to_owned)
            .to_vec(),
        rows: rivals()
            .map(|row| {
                let cells = words::cells(row.versus);
                vec![
                    row.variant.name.clone(),
                    cells.tier,
                    cells.saved,
                    cells.harm,
                    cells.mark.to_owned(),
                ]
            })
            .collect(),
    })
}

/// The least time saved and the most harm that are drawn (per cent).
fn bounds(points: &[Point]) -> (f64, f64) {
    let most_saved = points.iter().map(|point| point.saved).fold(0.0, f64::max);
    let harms = points
        .iter()
        .filter(|point| point.named())
        .map(|point| point.harm_ends[1].max(point.harm));
    let most_harm = harms.fold(0.0, f64::max);
    let chosen = points.iter().filter(|point| point.chosen).map(|point| point.harm);
    let most_harm = (1.5 * most_harm).max(1.05 * chosen.fold(0.0, f64::max));
    (-(0.15 * most_saved).max(5.0), most_harm.max(5.0))
}

/// What is of these tiers is drawn however much it harms: many may want it still.
const CHOSEN: u64 = 3;

/// The drawing, so wide.
fn draw(points: &[Point], width: f64) -> Canvas {
    let mut canvas = Canvas::default();
    let top = legend(&mut canvas, width) + 14.0;
    let mut named: Vec<&Point> = points
        .iter()
        .filter(|point| point.named())
        .take(MOST_NAMES)
        .collect();
    if named.is_empty() {
        named.extend(points.first());
    }
    let widest = named
        .iter()
        .map(|point| width_of(&point.name))
        .fold(0.0, f64::max);
    let column = (widest + 24.0).clamp(70.0, 0.36 * width);
    let (left, right) = (48.0, width - column);
    let height = (0.42 * width).max(250.0).max(STEP * named.len() as f64 + 10.0);
    let bottom = top + height;

    let ends = |pick: fn(&Point) -> Vec<f64>| points.iter().flat_map(pick).collect::<Vec<_>>();
    let saved = ends(|point| match point.named() {
        true => vec![point.saved, point.saved_ends[0], point.saved_ends[1]],
        false => vec![point.saved],
    });
    let harm = ends(|point| match point.named() {
        true => vec![point.harm, point.harm_ends[1]],
        false => vec![point.harm],
    });
    let most_harm = harm.iter().copied().fold(2.0, f64::max);
    // Room beside zero, where most of the marks are.
    let across = Axis::of([-0.03 * most_harm, 1.03 * most_harm].into_iter(), false);
    let up = Axis::of(saved.into_iter().chain([0.0]), false).padded(0.04);
    let x = |harm: f64| left + (right - left) * across.at(harm);
    let y = |saved: f64| bottom - height * up.at(saved);
    for value in up.ticks(6) {
        let class = if value == 0.0 { "z" } else { "n" };
        canvas.rule((left, y(value)), (right, y(value)), class);
        canvas.text(left - 6.0, y(value) + 4.0, Anchor::End, "q", &tick(value));
    }
    for value in across.ticks(if width < 500.0 { 4 } else { 7 }) {
        if value >= 0.0 {
            canvas.rule(
                (x(value), top),
                (x(value), bottom),
                if value == 0.0 { "z" } else { "n" },
            );
            canvas.text(x(value), bottom + 16.0, Anchor::Middle, "q", &tick(value));
        }
    }
    canvas.text(
        (left + right) / 2.0,
        bottom + 36.0,
        Anchor::Middle,
        "q",
        "harm (%)",
    );
    canvas.upward(14.0, (top + bottom) / 2.0, "time saved (%)");

    let mut front: Vec<&Point> = points.iter().filter(|point| point.front).collect();
    front.sort_by(|a, b| a.harm.total_cmp(&b.harm).then(a.saved.total_cmp(&b.saved)));
    let joined: Vec<(f64, f64)> = front
        .iter()
        .map(|point| (x(point.harm), y(point.saved)))
        .collect();
    if joined.len() > 1 {
        canvas.path(&joined, "fr");
    }
    named.sort_by(|a, b| b.saved.total_cmp(&a.saved).then(b.harm.total_cmp(&a.harm)));
    let wanted: Vec<f64> = named.iter().map(|point| y(point.saved) + 4.0).collect();
    let places = spread(&wanted, top + 8.0, bottom);
    for (point, &place) in named.iter().zip(&places) {
        let to = (right + 8.0, place - 4.0);
        canvas.path(&[(x(point.harm), y(point.saved)), (right, place - 4.0), to], "fq");
    }
    // Marks over lines, the named ones over the others.
    let mut order: Vec<&Point> = points.iter().collect();
    order.sort_by_key(|point| (point.named(), point.significant));
    for point in order {
        let strong = if point.named() { "fw" } else { "fw fv" };
        let at = (x(point.harm), y(point.saved));
        let [low, high] = point.saved_ends;
        canvas.path(&[(at.0, y(low)), (at.0, y(high))], strong);
        let [low, high] = point.harm_ends;
        canvas.path(&[(x(low), at.1), (x(high), at.1)], strong);
        let (radius, class) = mark(point);
        canvas.dot(at, radius, class, &point.label);
    }
    let letters = ((column - 14.0) / CHARACTER) as usize;
    for (point, &place) in named.iter().zip(&places) {
        let class = if point.recommended { "b" } else { "" };
        canvas.text(
            right + 11.0,
            place,
            Anchor::Start,
            class,
            &cut(&point.name, letters),
        );
    }
    canvas.height = bottom + 46.0;
    canvas
}

/// Size and class of a mark.
fn mark(point: &Point) -> (f64, &'static str) {
    match (point.first_tier, point.significant, point.saved > 0.0) {
        (true, _, _) => (5.0, "f1"),
        (false, true, true) => (3.5, "fs"),
        (false, true, false) => (3.5, "fl"),
        (false, false, _) => (3.5, "fu"),
    }
}

/// What the marks mean; returns where it ends.
fn legend(canvas: &mut Canvas, width: f64) -> f64 {
    let (mut x, mut y) = (10.0, 14.0);
    for (radius, class, words) in [
        (5.0, "f1", "first tier"),
        (3.5, "fs", "significant win"),
        (3.5, "fu", "not significant, or not tested"),
        (3.5, "fl", "significant loss"),
        (0.0, "fr", "Pareto front"),
    ] {
        let room = 16.0 + width_of(words) + 18.0;
        if x + room > width {
            (x, y) = (10.0, y + 18.0);
        }
        if radius > 0.0 {
            canvas.dot((x, y - 4.0), radius, class, words);
        } else {
            canvas.path(&[(x - 6.0, y - 4.0), (x + 6.0, y - 4.0)], class);
        }
        canvas.text(x + 11.0, y, Anchor::Start, "q", words);
        x += room;
    }
    y
}

/// Places (ascending, from `top` to `bottom`) near the wanted ones (ascending), at least a line apart.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let mut free = top;
    for place in &mut places {
        *place = place.max(free);
        free = *place + STEP;
    }
    let mut free = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(free);
        free = *place - STEP;
    }
    places
}

/// Most letters of a name.
fn cut(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    let kept: String = name.chars().take(letters.saturating_sub(1)).collect();
    format!("{kept}\u{2026}")
}

/// Widths of the drawings.
const WIDE: f64 = 860.0;
const NARROW: f64 = 380.0;

/// From one name to the next.
const STEP: f64 = 16.0;

/// Names that have room.
const MOST_NAMES: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn point(name: &str, saved: f64, harm: f64, first_tier: bool, front: bool) -> Point {
        Point {
            name: name.to_owned(),
            saved,
            saved_ends: [saved - 3.0, saved + 3.0],
            harm,
            harm_ends: [harm, harm + 1.0],
            first_tier,
            front,
            significant: first_tier,
            recommended: false,
            chosen: first_tier,
            label: name.to_owned(),
        }
    }

    #[test]
    fn names_keep_a_line_apart_within_the_drawing() {
        let places = spread(&[10.0, 10.0, 12.0, 200.0, 201.0], 8.0, 210.0);
        assert!(
            places.windows(2).all(|pair| pair[1] - pair[0] >= STEP - 1e-9),
            "{places:?}"
        );
        assert!(places[0] >= 8.0 && places[4] <= 210.0, "{places:?}");
        assert_eq!(
            spread(&[50.0, 100.0], 8.0, 210.0),
            [50.0, 100.0],
            "who has room stays"
        );
    }

    #[test]
    fn what_ruins_everything_does_not_squeeze_the_rest() {
        let points = [
            point("best", 60.0, 1.0, true, true),
            point("ruin", -400.0, 90.0, false, false),
            point("slow", -6.0, 0.0, false, false),
        ];
        assert_eq!(bounds(&points), (-9.0, 5.0));
        let mut second = point("of the second tier", 70.0, 20.0, false, false);
        second.chosen = true;
        let [best, ruin, slow] = points;
        assert_eq!(bounds(&[best, ruin, slow, second]), (-10.5, 21.0), "it is drawn");
    }

    #[test]
    fn every_name_of_tier_and_front_is_written_once_in_both_widths() {
        let mut points: Vec<Point> = (0..15)
            .map(|i| {
                point(
                    &format!("member-{i}"),
                    58.0 + 0.01 * f64::from(i),
                    0.0,
                    true,
                    i == 14,
                )
            })
            .collect();
        points.push(point("on the front only", 62.0, 4.0, false, true));
        points.push(point("neither", 1.0, 0.0, false, false));
        for width in [WIDE, NARROW] {
            let picture = draw(&points, width).moved(0.0);
            for point in &points {
                let written = picture
                    .matches(&format!(">{}</text>", cut(&point.name, 19)))
                    .count();
                assert_eq!(written, usize::from(point.named()), "{} at {width}", point.name);
            }
            assert!(picture.contains("class=\"fr\" d=\"M"), "the front is joined");
        }
    }
}
