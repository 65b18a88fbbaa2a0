//! The data set of a sweep: the tables `points`, `runs` and `links`, with the point and its place on every axis in front of each row.
//!
//! What is written follows from the sweep alone, not from the order in which runs ended, their threads or how often it was resumed.

use super::Sweep;
use super::axes::{number_and_unit, shown};
use super::driver::{Point, State, Swept};
use super::journal::{Journal, Outcome, Reading, Value};
use super::stopping::Until;
use crate::compare::{Planned, link_info};
#[cfg(not(feature = "parquet"))]
use crate::report::csv;
#[cfg(feature = "parquet")]
use crate::report::parquet;
use crate::report::table::{
    Cell, Cells, Column, Kind, LinkRow, Row, RunRow, Table, groups_of_run, links_of_run,
};
use crate::result::{GroupInfo, LinkInfo, RunData};
use crate::scenario::Resolved;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::OnceLock;

/// What rows of a variant need besides its runs.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    groups: Vec<GroupInfo>,
    links: Vec<LinkInfo>,
    measured_s: f64,
}

impl Scene {
    pub(super) fn of(variant: &Planned, described: &Resolved) -> Scene {
        let groups = described.groups.iter();
        Scene {
            groups: groups.map(GroupInfo::of).collect(),
            links: variant.resolved.spec.links.iter().map(link_info).collect(),
            measured_s: (described.run.duration - described.run.warmup).as_secs_f64(),
        }
    }

    /// Appends the rows of a run.
    pub(super) fn rows(
        &self,
        variant: &str,
        run: &RunData,
        runs: &mut Vec<Vec<Value>>,
        links: &mut Vec<Vec<Value>>,
    ) {
        runs.extend(groups_of_run(variant, run, &self.groups, self.measured_s).map(|row| values(&row)));
        links.extend(links_of_run(variant, run, &self.links, self.measured_s).map(|row| values(&row)));
    }
}

/// A value of a row as the journal has it.
pub(super) fn owned(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Empty => Value::Empty,
        Cell::Text(text) => Value::Text(text.to_owned()),
        Cell::Integer(number) => Value::Integer(number),
        Cell::Number(number) => Value::Number(number),
    }
}

fn values(row: &impl Cells) -> Vec<Value> {
    let mut cells = Vec::new();
    row.cells(&mut cells);
    cells.into_iter().map(owned).collect()
}

/// Names of the columns of `runs` that hold numbers measured in a run.
pub fn columns_of_numbers() -> Vec<&'static str> {
    let columns = run_columns()
        .iter()
        .filter(|column| column.kind != Kind::Text && column.name != "seed");
    columns.map(|column| column.name.as_ref()).collect()
}

fn run_columns() -> &'static [Column] {
    static COLUMNS: OnceLock<Vec<Column>> = OnceLock::new();
    COLUMNS.get_or_init(|| RunRow::table().columns)
}

/// Place of a column in the rows of `runs`.
pub(super) fn column(name: &str) -> Option<usize> {
    run_columns().iter().position(|column| column.name == name)
}

/// The unit of a column of `runs`, empty without one; `None`: there is no such column.
pub(super) fn unit(name: &str) -> Option<&'static str> {
    run_columns()
        .iter()
        .find(|column| column.name == name)
        .map(|column| column.unit)
}

/// The text in a column of a row of `runs`.
pub(super) fn text<'a>(row: &'a [Value], name: &str) -> &'a str {
    match column(name).and_then(|column| row.get(column)) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

/// The number in a column of a row.
pub(super) fn number(row: &[Value], column: usize) -> Option<f64> {
    match row.get(column) {
        Some(Value::Integer(number)) => Some(*number as f64),
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    }
}

/// The values that a rule of stopping looks at in the rows of one seed: one for each variant and group.
pub(super) fn watched(until: &Until, runs: &[Vec<Value>]) -> Vec<Option<f64>> {
    let Some(column) = column(&until.column) else {
        return Vec::new();
    };
    let wanted = |row: &&Vec<Value>| match &until.group {
        Some(group) => text(row, "group") == group,
        None => true,
    };
    runs.iter()
        .filter(wanted)
        .map(|row| number(row, column))
        .collect()
}

impl Cells for Vec<Value> {
    fn cells<'a>(&'a self, cells: &mut Vec<Cell<'a>>) {
        cells.extend(self.iter().map(|value| match value {
            Value::Empty => Cell::Empty,
            Value::Text(text) => Cell::Text(text),
            Value::Integer(number) => Cell::Integer(*number),
            Value::Number(number) => Cell::from(*number),
        }));
    }
}

/// The columns in front of every row.
fn head(sweep: &Sweep) -> Vec<Column> {
    let mut columns = vec![Column {
        name: "point".into(),
        kind: Kind::Integer,
        unit: "",
        definition: "number of the point, from 0".into(),
    }];
    columns.extend((0..sweep.points.axes().len()).map(|axis| Column {
        name: sweep.points.name(axis).into(),
        kind: match sweep.points.unit(axis) {
            Some(_) => Kind::Number,
            None => Kind::Text,
        },
        unit: "",
        definition: "its place on this axis".into(),
    }));
    columns
}

/// The values in front of every row of a point.
fn place(sweep: &Sweep, point: usize) -> Vec<Value> {
    let mut place = vec![Value::Integer(point as u64)];
    place.extend(
        sweep
            .points
            .values(point)
            .iter()
            .enumerate()
            .map(|(axis, value)| {
                let number = sweep.points.unit(axis).and_then(|_| number_and_unit(value));
                number.map_or_else(|| Value::Text(shown(value)), |(number, _)| Value::Number(number))
            }),
    );
    place
}

/// The outcomes of a point that are there, in the order of its seeds.
pub(super) fn outcomes<'a>(
    point: &'a Point,
    reading: &'a mut Reading<'_>,
) -> impl Iterator<Item = io::Result<Outcome>> + 'a {
    let there = point.places.iter().filter(|place| place.is_some());
    there.map(|&place| reading.outcome(place))
}

fn points_table(sweep: &Sweep) -> Table {
    let column = |name: &'static str, kind, definition: &'static str| Column {
        name: name.into(),
        kind,
        unit: "",
        definition: definition.into(),
    };
    let mut columns = head(sweep);
    columns.extend([
        column("seeds", Kind::Integer, "seeds that were run, failures included"),
        column(
            "state",
            Kind::Text,
            "`done`; `wide`: all seeds, and the interval is still wider than `--until` wants; `failed`; `open`: stopped before all seeds were run",
        ),
        column("reason", Kind::Text, "why it failed: the first reason"),
        column("inapplicable", Kind::Text, "mechanisms that do not apply at this point, with their reasons"),
    ]);
    Table {
        name: "points",
        row: "one point of the sweep",
        columns,
    }
}

fn table_of<R: Row>(sweep: &Sweep) -> Table {
    let mut table = R::table();
    table.columns.splice(0..0, head(sweep));
    table
}

/// What the files say of themselves: nothing that differs between two machines that make the same sweep.
fn provenance(sweep: &Sweep, swept: &Swept) -> Vec<(String, String)> {
    let done = swept
        .points
        .iter()
        .all(|point| matches!(point.state, State::Done | State::Wide));
    let mut about = vec![
        ("schema", String::from("sweep 1.0")),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("scenario", sweep.scenario.title().to_owned()),
        ("scenario_toml", sweep.scenario.to_toml()),
        ("hash", sweep.hash().unwrap_or_default()),
        ("points", sweep.points.len().to_string()),
        (
            "first_seed",
            sweep.seeds.first().map(u64::to_string).unwrap_or_default(),
        ),
        ("seeds", sweep.seeds.len().to_string()),
        ("complete", done.to_string()),
    ];
    if let Some(until) = &sweep.until {
        about.push(("until", format!("{until}")));
    }
    let about = about
        .into_iter()
        .map(|(key, value)| (format!("fleetfoot.{key}"), value));
    about.collect()
}

/// Writes the tables into `folder`: Parquet where it is built in, else CSV. Returns the names of the files.
///
/// # Errors
/// What the file system says.
pub fn write(folder: &Path, sweep: &Sweep, swept: &Swept, journal: &Journal) -> io::Result<Vec<String>> {
    let about = provenance(sweep, swept);
    let about = about.as_slice();
    let points = swept.points.iter().enumerate().map(|(number, point)| {
        let (state, reason) = match &point.state {
            State::Open => ("open", ""),
            State::Done => ("done", ""),
            State::Wide => ("wide", ""),
            State::Failed(reason) => ("failed", reason.as_str()),
        };
        let seeds = point.places.iter().filter(|place| place.is_some()).count();
        let mut row = place(sweep, number);
        row.push(Value::Integer(seeds as u64));
        row.extend([state, reason, &*point.inapplicable].map(|text| Value::Text(text.to_owned())));
        Ok(row)
    });
    let of = |take: fn(Outcome) -> Vec<Vec<Value>>| {
        let mut reading = journal.reading();
        swept.points.iter().enumerate().flat_map(move |(number, point)| {
            let head = place(sweep, number);
            let mut rows: Vec<io::Result<Vec<Value>>> = Vec::new();
            for outcome in outcomes(point, &mut reading) {
                match outcome {
                    Ok(outcome) => rows.extend(
                        take(outcome)
                            .into_iter()
                            .map(|row| Ok([head.as_slice(), &row].concat())),
                    ),
                    Err(error) => rows.push(Err(error)),
                }
            }
            rows
        })
    };
    let runs = of(|outcome| match outcome {
        Outcome::Rows { runs, .. } => runs,
        Outcome::Failed(_) => Vec::new(),
    });
    let links = of(|outcome| match outcome {
        Outcome::Rows { links, .. } => links,
        Outcome::Failed(_) => Vec::new(),
    });
    Ok(vec![
        write_one(folder, &points_table(sweep), points, about)?,
        write_one(folder, &table_of::<RunRow<'_>>(sweep), runs, about)?,
        write_one(folder, &table_of::<LinkRow<'_>>(sweep), links, about)?,
    ])
}

fn write_one(
    folder: &Path,
    table: &Table,
    rows: impl Iterator<Item = io::Result<Vec<Value>>>,
    about: &[(String, String)],
) -> io::Result<String> {
    let ending = if cfg!(feature = "parquet") {
        "parquet"
    } else {
        "csv"
    };
    let name = format!("{}.{ending}", table.name);
    // By way of another name: the file is there whole or not at all.
    let part = folder.join(format!(".{name}.part"));
    let file = File::create(&part)?;
    let mut damaged = None;
    let rows = rows.map_while(|row| match row {
        Ok(row) => Some(row),
        Err(error) => {
            damaged = Some(error);
            None
        }
    });
    #[cfg(feature = "parquet")]
    let written = parquet::write_table(BufWriter::new(file), table, rows, about);
    #[cfg(not(feature = "parquet"))]
    let written = {
        let _ = about;
        csv::write_table(BufWriter::new(file), table, rows)
    };
    let written = written.and(damaged.map_or(Ok(()), Err));
    if let Err(error) = written.and_then(|()| std::fs::rename(&part, folder.join(&name))) {
        let _ = std::fs::remove_file(&part);
        return Err(error);
    }
    Ok(name)
}
