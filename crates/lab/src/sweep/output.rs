//! The folder of a sweep: tables, report and texts.

use super::data::{columns_of_numbers, write};
use super::driver::{State, Swept};
use super::journal::Journal;
use super::report::{Shown, render};
use super::{Sweep, Until};
use crate::run::write_atomically;
use crate::scenario::{Error, ErrorKind};
use std::io;
use std::path::Path;

/// The file of finished runs in the folder of a sweep.
pub const JOURNAL: &str = "sweep.journal";

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Names of the tables.
    pub tables: Vec<String>,
    /// The best point of each measure, a line each.
    pub lines: Vec<String>,
}

/// Writes everything into `folder`, where the journal already is; `command` repeats the sweep.
///
/// # Errors
/// What the file system says.
pub fn written(
    folder: &Path,
    sweep: &Sweep,
    swept: &mut Swept,
    journal: &Journal,
    shown: &Shown,
    command: &str,
) -> io::Result<Written> {
    swept.put_in_order(journal)?;
    let swept = &*swept;
    let (tables, page) = rayon::join(
        || write(folder, sweep, swept, journal),
        || render(sweep, swept, journal, shown, command),
    );
    let (tables, page) = (tables?, page?);
    let texts = [
        ("report.html", page.html),
        ("scenario.toml", sweep.scenario.to_toml()),
        ("command.txt", format!("{command}\n")),
        ("sweep.json", format!("{:#}\n", document(sweep, swept, None))),
    ];
    for (name, text) in texts {
        write_atomically(&folder.join(name), text.as_bytes())?;
    }
    Ok(Written {
        tables,
        lines: page.lines,
    })
}

/// The sweep as a document; with the names of its tables also what was computed now.
pub fn document(sweep: &Sweep, swept: &Swept, files: Option<&[String]>) -> serde_json::Value {
    let axes: Vec<_> = (0..sweep.points.axes().len())
        .map(|axis| serde_json::json!({
            "path": sweep.points.axes()[axis].path, "column": sweep.points.name(axis), "unit": sweep.points.unit(axis),
        }))
        .collect();
    let count = |wanted: fn(&State) -> bool| swept.points.iter().filter(|point| wanted(&point.state)).count();
    let failures: Vec<_> = swept
        .failures()
        .map(|(number, reason)| {
            serde_json::json!({
                "point": number, "set": sweep.points.label(number), "reason": reason,
            })
        })
        .collect();
    let mut document = serde_json::json!({
        "schema": "sweep 1.0", "fleetfoot": env!("CARGO_PKG_VERSION"), "scenario": sweep.scenario.title(),
        "seeds": sweep.seeds.len(), "first_seed": sweep.seeds.first(), "axes": axes,
        "points": {
            "total": swept.points.len(), "done": count(|state| *state == State::Done), "wide": count(|state| *state == State::Wide),
            "open": count(|state| *state == State::Open), "failed": failures.len(),
        },
        "failures": failures, "interrupted": swept.interrupted,
    });
    if let Some(files) = files {
        let variants = sweep.variants() as u64;
        document["tables"] = serde_json::json!(files);
        document["timing"] = serde_json::json!({
            "computed": swept.counts.computed * variants, "reused": swept.counts.reused * variants, "wall_s": swept.wall_s, "busy_s": swept.busy_s,
        });
    }
    document
}

impl Swept {
    /// The points that failed, by number, each with its reason.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &str)> + Clone {
        let points = self.points.iter().enumerate();
        points.filter_map(|(number, point)| match &point.state {
            State::Failed(reason) => Some((number, reason.as_str())),
            _ => None,
        })
    }
}

impl Until {
    /// Reads `[GROUP.]COLUMN=WIDTH` with the columns of the table of runs.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn of_runs(text: &str) -> Result<Until, String> {
        Until::parse(text, &columns_of_numbers())
    }
}

impl Shown {
    /// What is drawn: columns of the table of runs (none: completion times of the groups that wait), and the paths of two axes, to the
    /// right and down (none: every pair).
    ///
    /// # Errors
    /// There is no such column, or the axes are not two different ones of the sweep.
    pub fn of(sweep: &Sweep, columns: &[String], axes: &[String]) -> Result<Shown, Error> {
        let refused = |message: String| Error::of_file("sweep", message).of_kind(ErrorKind::Invalid);
        for column in columns {
            Shown::column(column).map_err(&refused)?;
        }
        let swept = sweep.points.axes();
        let known = || {
            let paths: Vec<&str> = swept.iter().map(|axis| axis.path.as_str()).collect();
            paths.join(", ")
        };
        let find = |path: &str| {
            let place = swept.iter().position(|axis| axis.path == path.trim());
            place.ok_or_else(|| refused(format!("--axes: \"{path}\" is not swept; there are {}", known())))
        };
        let axes = match axes {
            [] => None,
            [x, y] if x != y => Some((find(x)?, find(y)?)),
            _ => {
                return Err(refused(format!(
                    "--axes: two different axes are wanted, of {}",
                    known()
                )));
            }
        };
        Ok(Shown {
            columns: columns.to_vec(),
            axes,
        })
    }

    /// A column that can be drawn.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn column(text: &str) -> Result<String, String> {
        let columns = columns_of_numbers();
        match columns.contains(&text) {
            true => Ok(text.to_owned()),
            false => Err(format!(
                "the table of runs has no column of numbers of this name; it has {}",
                columns.join(", ")
            )),
        }
    }
}
