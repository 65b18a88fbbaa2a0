//! The table of `docs/reality.md`: the record of the group `reality`.

use fleetfoot_lab::compare::words::{rate, seconds};
use fleetfoot_lab::experiment::record::Record;
use fleetfoot_lab::experiment::worlds::{Agreement, Cell, Quantity, Tally, Unit, rows};
use fleetfoot_lab::experiment::{Evaluated, library};
use std::fmt::Write as _;

const PAGE: &str = "reality.md";

#[test]
fn the_table_of_reality_is_that_of_the_record() {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let table = table(&record);
    super::edit(PAGE, |page| {
        let (begin, end) = ("<!-- recorded -->\n", "<!-- end -->");
        let from = page.find(begin).expect("the place of the table") + begin.len();
        let to = from + page[from..].find(end).expect("its end");
        page.replace_range(from..to, &table);
    });
}

/// The quantities that have a column.
fn columns() -> impl Iterator<Item = Quantity> {
    let all = Quantity::ALL.into_iter();
    all.filter(|quantity| quantity.deviation.is_some())
}

/// Both values, and their ratio with its interval.
fn shown(cell: &Cell) -> String {
    let value = |value: f64| match cell.quantity.unit {
        Unit::Seconds => seconds(value),
        Unit::Rate => rate(value),
        Unit::Count => format!("{value:.1}"),
    };
    let mut text = String::new();
    if let [Some(simulator), Some(kernel)] = cell.worlds {
        let _ = write!(text, "{}, {}", value(simulator.value), value(kernel.value));
    }
    if let Some(ratio) = cell.ratio {
        let between = if text.is_empty() { "" } else { ": " };
        let _ = write!(text, "{between}{:.3}", ratio.value);
        if let Some([low, high]) = ratio.interval {
            let _ = write!(text, " ({low:.2} to {high:.2})");
        }
    }
    text.push_str(match cell.agreement {
        Some(Agreement::Off) => " *off*",
        Some(Agreement::SurelyOff) => " **off**",
        Some(Agreement::Near) | None => "",
    });
    text
}

fn table(record: &Record) -> String {
    let experiments = library::select(&[String::from("reality")]).unwrap_or_else(|error| panic!("{error}"));
    let mut text = String::new();
    let mut tally = Tally::default();
    for experiment in &experiments {
        let Some(recorded) = record.full(&experiment.id) else {
            continue;
        };
        let Some(rows) = rows(&Evaluated::recorded(experiment, recorded)) else {
            continue;
        };
        tally.add(&rows);
        let claim = experiment.file.figure.claim.as_str();
        let _ = writeln!(text, "| **{claim}** | | | | | |");
        for row in &rows {
            let cells: Vec<String> = columns()
                .map(|quantity| {
                    let mut cells = row.cells.iter();
                    let found = cells.find(|cell| cell.quantity == quantity);
                    found.map_or_else(String::new, shown)
                })
                .collect();
            let late = row.late * 100.0;
            let _ = writeln!(text, "| {} | {} | {late:.2} % |", row.point, cells.join(" | "));
        }
    }
    let names: Vec<&str> = columns().map(|quantity| quantity.name).collect();
    format!(
        "{}\n\n| point | {} | late |\n|---|---|---|---|---|---|\n{text}",
        tally.words(),
        names.join(" | ")
    )
}
