//! What `reproduce` prints: published values beside measured ones, and the simulator beside a kernel.

use crate::layout::{align, fit, new_table, wrapped};
use crate::output::counted;
use fleetfoot_lab::compare::words::{rate, seconds};
use fleetfoot_lab::experiment::worlds::{self, Agreement, Cell, Estimate, Quantity, Row, Tally, Unit};
use fleetfoot_lab::experiment::{CheckResult, Evaluated, shares};
use fleetfoot_lab::scenario::Published;
use std::fmt::Write as _;

/// One row per check, the verdict beside the first; notes below. Experiments with two worlds have tables of their own.
pub(crate) fn table(evaluated: &[&Evaluated], colored: bool, width: usize) -> String {
    let (mut beside, mut others) = (Vec::new(), Vec::new());
    for &experiment in evaluated {
        match worlds::rows(experiment) {
            Some(rows) => beside.push((experiment, rows)),
            None => others.push(experiment),
        }
    }
    let mut text = beside_kernel(&beside, colored, width);
    if !others.is_empty() {
        text.push_str(&checks(&others, colored, width));
    }
    for experiment in evaluated {
        let shares: Vec<String> = shares::of(experiment).iter().map(shares::Share::words).collect();
        if !shares.is_empty() {
            let words = format!("{}.", shares.join("; "));
            let _ = write!(
                text,
                "\n{}, by points: {}\n",
                experiment.experiment.id,
                wrapped(&words, width, "  ").trim_start()
            );
        }
        if let Some(note) = &experiment.note {
            let _ = write!(
                text,
                "\n{}: {}\n",
                experiment.experiment.id,
                wrapped(note, width, "  ").trim_start()
            );
        }
    }
    let mut verdicts: Vec<(&str, usize)> = Vec::new();
    for experiment in evaluated {
        let name = experiment.verdict.name();
        match verdicts.iter_mut().find(|(other, _)| *other == name) {
            Some((_, count)) => *count += 1,
            None => verdicts.push((name, 1)),
        }
    }
    let verdicts: Vec<String> = verdicts
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    format!(
        "{text}\n{}: {}.\n",
        counted(evaluated.len() as u64, "experiment"),
        verdicts.join(", ")
    )
}

/// A table for each experiment, then how many comparisons agree.
fn beside_kernel(experiments: &[(&Evaluated, Vec<Row>)], colored: bool, width: usize) -> String {
    let mut text = String::new();
    let mut tally = Tally::default();
    for (evaluated, rows) in experiments {
        tally.add(rows);
        let experiment = &evaluated.experiment;
        let title = format!(
            "{}: {} ({})",
            experiment.id,
            experiment.file.figure.claim,
            evaluated.verdict.name()
        );
        let _ = writeln!(text, "\n{}", wrapped(&title, width, ""));
        let mut table = new_table(
            colored,
            &[
                "point",
                "what",
                "Fleetfoot",
                "kernel",
                "ratio",
                "95 % interval",
                "agrees",
            ],
        );
        for row in rows {
            for (index, cell) in row.cells.iter().enumerate() {
                let point = if index == 0 {
                    row.point.clone()
                } else {
                    String::new()
                };
                table.add_row(cells(point, row, cell));
            }
        }
        align(&mut table, 2..5);
        fit(&mut table, width, &[5]);
        let _ = writeln!(text, "{table}");
    }
    if tally.judged + tally.late_points > 0 {
        let explained = format!(
            "{} They agree where the interval of the ratio holds 1, or the ratio differs from 1 by no more than {}. docs/reality.md has the \
             causes of what does not.",
            tally.words(),
            allowed()
        );
        let _ = writeln!(text, "\n{}", wrapped(&explained, width, ""));
    }
    text
}

/// By how much each quantity may differ: 5 % (median, goodput), 10 % (p95, retransmissions).
fn allowed() -> String {
    let mut bounds: Vec<(f64, Vec<&str>)> = Vec::new();
    for (bound, name) in Quantity::ALL
        .iter()
        .filter_map(|quantity| Some((quantity.deviation?, quantity.name)))
    {
        match bounds
            .iter_mut()
            .find(|(other, _)| other.total_cmp(&bound).is_eq())
        {
            Some((_, names)) => names.push(name),
            None => bounds.push((bound, vec![name])),
        }
    }
    let words = bounds
        .iter()
        .map(|(bound, names)| format!("{:.0} % ({})", bound * 100.0, names.join(", ")));
    words.collect::<Vec<_>>().join(", ")
}

fn cells(point: String, row: &Row, cell: &Cell) -> [String; 7] {
    let value = |estimate: Option<Estimate>| match (estimate, cell.quantity.unit) {
        (None, _) => String::from("-"),
        (Some(estimate), Unit::Seconds) => seconds(estimate.value),
        (Some(estimate), Unit::Rate) => rate(estimate.value),
        (Some(estimate), Unit::Count) => format!("{:.1}", estimate.value),
    };
    let ratio = cell.ratio.map(|ratio| format!("{:.3}", ratio.value));
    let interval = cell.ratio.and_then(|ratio| ratio.interval);
    let agrees = match cell.agreement {
        _ if row.is_late() => "too late",
        None => "",
        Some(Agreement::Near) => "yes",
        Some(Agreement::Off) => "no",
        Some(Agreement::SurelyOff) => "surely not",
    };
    let [simulator, kernel] = cell.worlds;
    [
        point,
        cell.quantity.name.to_owned(),
        value(simulator),
        value(kernel),
        ratio.unwrap_or_else(|| String::from("-")),
        interval.map_or_else(
            || String::from("-"),
            |[low, high]| format!("{low:.2} to {high:.2}"),
        ),
        agrees.to_owned(),
    ]
}

/// One row per check.
fn checks(evaluated: &[&Evaluated], colored: bool, width: usize) -> String {
    let mut table = new_table(
        colored,
        &[
            "id",
            "claim",
            "published",
            "expected",
            "measured",
            "95 % interval",
            "holds",
            "verdict",
        ],
    );
    for experiment in evaluated {
        for (index, check) in experiment.checks.iter().enumerate() {
            let first = index == 0;
            table.add_row([
                if first {
                    experiment.experiment.id.clone()
                } else {
                    String::new()
                },
                folded(&check.claim, CLAIM_WIDTH),
                folded(&published(check), PUBLISHED_WIDTH),
                check.expected.clone().unwrap_or_default(),
                check.measured.map_or_else(|| String::from("-"), short),
                interval(check),
                holds(check).to_owned(),
                if first {
                    experiment.verdict.name().to_owned()
                } else {
                    String::new()
                },
            ]);
        }
    }
    fit(&mut table, width, &[3, 6, 2]);
    format!("\n{table}\n")
}

pub(crate) fn published(check: &CheckResult) -> String {
    match &check.published {
        None => String::new(),
        Some(Published::Number(number)) => short(*number),
        Some(Published::Text(text)) => text.clone(),
    }
}

fn interval(check: &CheckResult) -> String {
    match check.interval.ends() {
        Some([low, high]) => format!("{} to {}", short(low), short(high)),
        None => String::from("-"),
    }
}

fn holds(check: &CheckResult) -> &'static str {
    match (check.holds, &check.expected) {
        (_, None) => "",
        (Some(true), _) => "yes",
        (Some(false), _) => "no",
        (None, _) => "undecided",
    }
}

/// Breaks a text into lines of at most `width` characters.
pub(crate) fn folded(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// Four significant digits.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return String::from("0");
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let digits = (3 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

const CLAIM_WIDTH: usize = 36;
const PUBLISHED_WIDTH: usize = 22;

#[cfg(test)]
mod tests {
    use super::{folded, short};

    #[test]
    fn numbers_have_four_digits() {
        let shown: Vec<String> = [0.0, 60e-6, 0.0123456, 2.4494, 6.0, 12_345.6, 1.5e9, -0.5]
            .map(short)
            .into();
        assert_eq!(
            shown,
            [
                "0", "6.000e-5", "0.01235", "2.449", "6", "12346", "1.500e9", "-0.5"
            ]
        );
    }

    #[test]
    fn a_claim_is_folded_between_words() {
        assert_eq!(folded("one two three", 7), "one two\nthree");
        assert_eq!(folded("unbreakable", 4), "unbreakable");
    }
}
