//! The same tables as Parquet, compressed with zstd. The only module that needs Arrow; built with the feature `parquet`.
//!
//! The file's metadata say where it is from: `fleetfoot.schema`, `.version`, `.scenario`, `.hash`, `.seeds`, `.command`.

use super::table::{self, Cell, Cells, Kind, Row, Table};
use crate::result::Comparison;
use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Rows that are gathered before they are written.
const BATCH: usize = 8192;

/// A group of rows that takes more is written (bytes): memory does not grow with the table.
const MOST_HELD: usize = 16 << 20;

/// Writes `runs.parquet`, `samples.parquet` and `links.parquet` of `comparison` into the folder `directory`.
///
/// # Errors
/// What the file system says.
pub fn write(directory: &Path, comparison: &Comparison) -> io::Result<()> {
    let about = provenance(comparison);
    write_file(directory, table::runs(comparison), &about)?;
    write_file(directory, table::samples(comparison), &about)?;
    write_file(directory, table::links(comparison), &about)
}

/// Where the tables of `comparison` are from, as key and value.
pub fn provenance(comparison: &Comparison) -> Vec<(String, String)> {
    let document = &comparison.document;
    let seeds = document.seeds.iter().map(u64::to_string).collect::<Vec<_>>();
    [
        ("schema", document.schema.clone()),
        ("version", document.fleetfoot.clone()),
        ("scenario", document.scenario.clone()),
        ("hash", comparison.hash.clone()),
        ("seeds", seeds.join(",")),
        ("command", comparison.command.clone()),
    ]
    .map(|(key, value)| (format!("fleetfoot.{key}"), value))
    .to_vec()
}

fn write_file<R: Row>(
    directory: &Path,
    rows: impl Iterator<Item = R>,
    about: &[(String, String)],
) -> io::Result<()> {
    let file = File::create(directory.join(format!("{}.parquet", R::table().name)))?;
    write_rows(file, rows, about)
}

/// Writes `rows` with `about` as the file's metadata.
///
/// # Errors
/// What `output` says.
pub fn write_rows<R: Row>(
    output: impl Write + Send,
    rows: impl Iterator<Item = R>,
    about: &[(String, String)],
) -> io::Result<()> {
    write_table(output, &R::table(), rows, about)
}

/// Writes `rows` of `table` with `about` as the file's metadata.
///
/// # Errors
/// What `output` says.
pub fn write_table(
    output: impl Write + Send,
    table: &Table,
    rows: impl Iterator<Item = impl Cells>,
    about: &[(String, String)],
) -> io::Result<()> {
    let schema = schema(table);
    let metadata = about
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(metadata))
        .build();
    let mut writer = ArrowWriter::try_new(output, Arc::clone(&schema), Some(properties))?;
    let batches = Batches::new(&schema, table, rows);
    for batch in batches {
        writer.write(&batch?)?;
        if writer.in_progress_size() > MOST_HELD {
            writer.flush()?;
        }
    }
    writer.close()?;
    Ok(())
}

/// The columns of `table` as Arrow has them.
fn schema(table: &Table) -> Arc<Schema> {
    let columns = table.columns.iter();
    let fields = columns.map(|column| {
        Field::new(
            column.name.as_ref(),
            data_type(column.kind),
            column.kind != Kind::Text,
        )
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// `rows` as Arrow has them: the columns, and the rows in batches.
///
/// # Errors
/// None that is known: the columns are those of the rows.
pub fn batches<R: Row>(rows: impl Iterator<Item = R>) -> io::Result<(Arc<Schema>, Vec<RecordBatch>)> {
    let table = R::table();
    let schema = schema(&table);
    let batches = Batches::new(&schema, &table, rows).collect::<io::Result<Vec<_>>>()?;
    Ok((schema, batches))
}

/// Gathers rows into batches.
struct Batches<'a, I> {
    schema: &'a Arc<Schema>,
    builders: Vec<Builder>,
    rows: I,
}

impl<'a, I> Batches<'a, I> {
    fn new(schema: &'a Arc<Schema>, table: &Table, rows: I) -> Batches<'a, I> {
        let columns = table.columns.iter();
        Batches {
            schema,
            builders: columns.map(|column| Builder::new(column.kind)).collect(),
            rows,
        }
    }
}

impl<C: Cells, I: Iterator<Item = C>> Iterator for Batches<'_, I> {
    type Item = io::Result<RecordBatch>;

    fn next(&mut self) -> Option<io::Result<RecordBatch>> {
        let mut gathered = 0;
        for row in self.rows.by_ref().take(BATCH) {
            let mut cells = Vec::with_capacity(self.builders.len());
            row.cells(&mut cells);
            for (builder, cell) in self.builders.iter_mut().zip(cells) {
                builder.push(cell);
            }
            gathered += 1;
        }
        (gathered > 0).then(|| finish(self.schema, &mut self.builders))
    }
}

fn finish(schema: &Arc<Schema>, builders: &mut [Builder]) -> io::Result<RecordBatch> {
    let columns = builders.iter_mut().map(Builder::finish).collect();
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(io::Error::other)
}

const fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Text => DataType::Utf8,
        Kind::Integer => DataType::UInt64,
        Kind::Number => DataType::Float64,
    }
}

/// A column being gathered.
enum Builder {
    Text(StringBuilder),
    Integer(UInt64Builder),
    Number(Float64Builder),
}

impl Builder {
    fn new(kind: Kind) -> Builder {
        match kind {
            Kind::Text => Builder::Text(StringBuilder::new()),
            Kind::Integer => Builder::Integer(UInt64Builder::new()),
            Kind::Number => Builder::Number(Float64Builder::new()),
        }
    }

    /// A cell of another kind than the column's is written as no value; a test checks that there is none.
    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Builder::Text(builder), Cell::Text(value)) => builder.append_value(value),
            (Builder::Text(builder), _) => builder.append_value(""),
            (Builder::Integer(builder), Cell::Integer(value)) => builder.append_value(value),
            (Builder::Integer(builder), _) => builder.append_null(),
            (Builder::Number(builder), Cell::Number(value)) => builder.append_value(value),
            (Builder::Number(builder), _) => builder.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Integer(builder) => Arc::new(builder.finish()),
            Builder::Number(builder) => Arc::new(builder.finish()),
        }
    }
}
