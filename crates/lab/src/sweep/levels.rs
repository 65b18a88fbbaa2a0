//! Axes as figures have them: levels that stand beside each other, at most a few.

use super::axes::{Points, number_and_unit, shown};
use crate::report::text::short;

/// Levels of an axis that stand beside each other; more are gathered into parts.
const MOST_LEVELS: usize = 10;
/// Parts that many values are gathered into.
const PARTS: usize = 8;

/// Where a value of an axis stands: its level.
pub(super) struct Levels {
    pub(super) words: Vec<String>,
    pub(super) of_point: Vec<usize>,
}

pub(super) fn levels(points: &Points, axis: usize) -> Levels {
    let count = points.len();
    if let Some(listed) = points.listed(axis)
        && (listed.len() <= MOST_LEVELS || points.unit(axis).is_none())
    {
        let of_point = (0..count).map(|point| {
            let value = &points.value(point, axis);
            listed.iter().position(|other| other == value).unwrap_or(0)
        });
        return Levels {
            words: listed
                .iter()
                .map(|value| level_in_words(points, axis, value))
                .collect(),
            of_point: of_point.collect(),
        };
    }
    let numbers: Vec<f64> = (0..count)
        .map(|point| number_and_unit(&points.value(point, axis)).map_or(f64::NAN, |(number, _)| number))
        .collect();
    let mut sorted = numbers.clone();
    sorted.sort_by(f64::total_cmp);
    let parts = PARTS.min(count);
    // The first value of each part but the first.
    let bounds: Vec<f64> = (1..parts).map(|part| sorted[part * count / parts]).collect();
    let of_point: Vec<usize> = numbers
        .iter()
        .map(|number| bounds.partition_point(|bound| bound <= number))
        .collect();
    let words = (0..parts).map(|part| {
        let low = part.checked_sub(1).map_or(sorted[0], |before| bounds[before]);
        let high = bounds.get(part).copied().unwrap_or(sorted[count - 1]);
        format!("{}\u{2013}{}", short(low), short(high))
    });
    Levels {
        words: words.collect(),
        of_point,
    }
}

/// A value without the unit that the axis has.
fn level_in_words(points: &Points, axis: usize, value: &toml::Value) -> String {
    match points.unit(axis).and_then(|_| number_and_unit(value)) {
        Some((number, _)) if number.fract() == 0.0 && number.abs() < 1e6 => number.to_string(),
        Some((number, _)) => short(number),
        None => shown(value),
    }
}

pub(super) fn values_in_words(points: &Points, axis: usize) -> String {
    match points.listed(axis) {
        Some(values) if values.len() <= 12 => {
            let words: Vec<String> = values
                .iter()
                .map(|value| level_in_words(points, axis, value))
                .collect();
            words.join(", ")
        }
        Some(values) => format!(
            "{} values from {} to {}",
            values.len(),
            level_in_words(points, axis, &values[0]),
            level_in_words(points, axis, &values[values.len() - 1])
        ),
        None => {
            let levels = levels(points, axis);
            let ends = [levels.words.first(), levels.words.last()];
            let [low, high] = ends.map(|words| words.map_or("", String::as_str));
            format!(
                "drawn between {} and {}",
                low.split('\u{2013}').next().unwrap_or(low),
                high.rsplit('\u{2013}').next().unwrap_or(high)
            )
        }
    }
}
