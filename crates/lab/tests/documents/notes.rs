//! Numbers with an interval in the `note` of an experiment are those of its record: a run that is recorded anew does not touch the note.
//!
//! A note writes `1.05 [1.02, 1.10]`. What is not of the experiment's own record says so behind the interval: `[0.23, 0.31; own-xlf-assumed]` is of the
//! record of another experiment and is looked up there, and [`UNRECORDED`] are the words for what no record holds.

use super::recorded::UNITS;
use fleetfoot_lab::experiment::library;
use fleetfoot_lab::experiment::record::{Record, Recorded, RecordedCheck};

/// A changed copy of the experiment; more seeds, or another measurement; a quantity of the recorded runs that is no check.
const UNRECORDED: [&str; 3] = ["copy", "other runs", "same runs"];

/// `VALUE [UNIT] [LOW, HIGH; SOURCE]`
struct Interval<'a> {
    text: &'a str,
    shown: [&'a str; 3],
    factor: f64,
    source: Option<&'a str>,
}

#[test]
fn numbers_in_notes_are_those_of_the_record() {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let mut found = 0;
    let mut stale = Vec::new();
    for experiment in library::all().unwrap_or_else(|error| panic!("{error}")) {
        let note = experiment.file.figure.note.as_deref().unwrap_or_default();
        for interval in intervals(note) {
            found += 1;
            let source = interval.source.unwrap_or(&experiment.id);
            let known =
                UNRECORDED.contains(&source) || record.full(source).is_some_and(|of| interval.is_in(of));
            if !known {
                stale.push(format!("{}: {}", experiment.id, interval.text));
            }
        }
    }
    assert!(
        stale.is_empty(),
        "not in the record; what is from elsewhere names its source, as in [1.02, 1.10; copy] (see {}):\n{}",
        file!(),
        stale.join("\n")
    );
    assert!(found > 100, "{found} intervals were found: the search is broken");
}

/// Every interval in square brackets with the number before it.
fn intervals(note: &str) -> impl Iterator<Item = Interval<'_>> {
    note.match_indices('[').filter_map(|(at, _)| {
        let end = at + note[at..].find(']')?;
        let (bounds, source) = match note[at + 1..end].split_once("; ") {
            Some((bounds, source)) => (bounds, Some(source)),
            None => (&note[at + 1..end], None),
        };
        let (low, high) = bounds.split_once(", ")?;
        let (value, factor) = value_before(&note[..at])?;
        let begin = note[..at].rfind(value)?;
        Some(Interval {
            text: &note[begin..=end],
            shown: [value, low, high],
            factor,
            source,
        })
    })
}

/// The number at the end of a text, and what its unit multiplies a recorded value by: 1 if it has none, or one that is counted.
fn value_before(text: &str) -> Option<(&str, f64)> {
    let mut words = text
        .rsplit(' ')
        .filter(|word| !word.is_empty())
        .map(|word| word.trim_start_matches('('));
    let last = words.next()?;
    if last.parse::<f64>().is_ok() {
        return Some((last, 1.0));
    }
    let unit = UNITS.iter().find(|unit| unit.name == last);
    let value = words.next()?;
    value.parse::<f64>().ok()?;
    Some((value, unit.map_or(1.0, |unit| unit.factor)))
}

impl Interval<'_> {
    fn is_in(&self, recorded: &Recorded) -> bool {
        recorded.checks.values().any(|check| self.is(check))
    }

    fn is(&self, check: &RecordedCheck) -> bool {
        let (Some(measured), Some([low, high])) = (check.measured, check.ci95) else {
            return false;
        };
        let recorded = [measured, low, high].map(|value| value * self.factor);
        recorded
            .iter()
            .zip(self.shown)
            .all(|(value, shown)| rounds_to(*value, shown))
    }
}

/// Whether `shown` is `value` at as many digits after the point as it has.
fn rounds_to(value: f64, shown: &str) -> bool {
    let digits = shown.split_once('.').map_or(0, |(_, digits)| digits.len());
    let half = 0.5 * 0.1_f64.powi(i32::try_from(digits).unwrap_or(i32::MAX));
    shown
        .parse::<f64>()
        .is_ok_and(|shown| (value - shown).abs() <= half * (1.0 + 1e-6))
}

#[test]
fn an_interval_is_read_with_its_unit_and_its_source() {
    let read = |note| {
        let interval = intervals(note).next();
        interval.map(|interval| (interval.text, interval.shown, interval.factor, interval.source))
    };
    let expected = (
        "17.6 Mbit/s [17.2, 17.9; copy]",
        ["17.6", "17.2", "17.9"],
        1e-6,
        Some("copy"),
    );
    assert_eq!(
        read("it has (17.6 Mbit/s [17.2, 17.9; copy]) there"),
        Some(expected)
    );
    let expected = ("-5.2 [-10, 0.5]", ["-5.2", "-10", "0.5"], 1.0, None);
    assert_eq!(read("beside it -5.2 [-10, 0.5]."), Some(expected));
    assert_eq!(read("a list [1, 2]"), None);
    assert!(rounds_to(30.5, "31") && rounds_to(-0.0004, "0.00") && !rounds_to(1.042, "1.05"));
}
