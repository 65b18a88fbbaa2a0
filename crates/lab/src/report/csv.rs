//! Tables as CSV: a header of column names, then one line per row; an empty field is no value.

use super::table::{self, Cell, Cells, Row, Table};
use crate::result::Comparison;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes `runs.csv`, `samples.csv` and `links.csv` of `comparison` into the folder `directory`.
///
/// # Errors
/// What the file system says.
pub fn write(directory: &Path, comparison: &Comparison) -> io::Result<()> {
    write_file(directory, table::runs(comparison))?;
    write_file(directory, table::samples(comparison))?;
    write_file(directory, table::links(comparison))
}

fn write_file<R: Row>(directory: &Path, rows: impl Iterator<Item = R>) -> io::Result<()> {
    let file = File::create(directory.join(format!("{}.csv", R::table().name)))?;
    write_rows(BufWriter::new(file), rows)
}

/// Writes `rows` with their header.
///
/// # Errors
/// What `output` says.
pub fn write_rows<R: Row>(output: impl Write, rows: impl Iterator<Item = R>) -> io::Result<()> {
    write_table(output, &R::table(), rows)
}

/// Writes `rows` of `table` with their header.
///
/// # Errors
/// What `output` says.
pub fn write_table(
    output: impl Write,
    table: &Table,
    rows: impl Iterator<Item = impl Cells>,
) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    let columns = &table.columns;
    writer.write_record(columns.iter().map(|column| column.name.as_bytes()))?;
    let mut text = String::new();
    for row in rows {
        let mut cells = Vec::with_capacity(columns.len());
        row.cells(&mut cells);
        for cell in cells {
            text.clear();
            push_text(&mut text, cell);
            writer.write_field(&text)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}

/// Numbers are written with the fewest digits that read back as the same number.
pub(super) fn push_text(text: &mut String, cell: Cell<'_>) {
    match cell {
        Cell::Empty => {}
        Cell::Text(value) => text.push_str(value),
        Cell::Integer(value) => text.push_str(&value.to_string()),
        Cell::Number(value) => text.push_str(&value.to_string()),
    }
}
