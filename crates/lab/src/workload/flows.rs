//! Files of real flows: start in seconds, source and destination host, bytes.

use crate::input;
use std::path::Path;

/// One line of a file of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Seconds from the start of the run.
    pub start: f64,
    /// Name of the data sender.
    pub source: String,
    /// Name of the data receiver.
    pub destination: String,
    /// Payload bytes.
    pub bytes: u64,
}

/// Columns of such a file.
pub const COLUMNS: [&str; 4] = ["start", "source", "destination", "bytes"];

/// Reads a file of flows: Parquet if its name ends so, else CSV.
///
/// # Errors
/// A sentence that says what is wrong, with the line of the file.
pub fn read(path: &Path) -> Result<Vec<Line>, String> {
    if path.extension().is_some_and(|extension| extension == "parquet") {
        return read_parquet(path);
    }
    let file = input::open(path, input::MOST_FLOWS)
        .map_err(|error| format!("cannot read {}: {}", path.display(), input::reason(&error)))?;
    read_csv(file).map_err(|message| format!("{}: {message}", path.display()))
}

/// Reads the CSV form.
///
/// # Errors
/// As [`read`].
pub fn read_csv(text: impl std::io::Read) -> Result<Vec<Line>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text);
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    if !header.iter().eq(COLUMNS) {
        return Err(format!(
            "the header must be `{}`, found `{}`",
            COLUMNS.join(","),
            header.iter().collect::<Vec<_>>().join(",")
        ));
    }
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let at = record.position().map_or(0, csv::Position::line);
        let field = |index: usize| record.get(index).unwrap_or("");
        let start: f64 = field(0)
            .parse()
            .ok()
            .filter(|start| (0.0..=1e9).contains(start))
            .ok_or_else(|| format!("line {at}: start \"{}\" is not a time in seconds", field(0)))?;
        let bytes: u64 = field(3)
            .parse()
            .ok()
            .filter(|bytes| (1..1 << 50).contains(bytes))
            .ok_or_else(|| {
                format!(
                    "line {at}: bytes \"{}\" is not a whole number above zero",
                    field(3)
                )
            })?;
        lines.push(Line {
            start,
            source: field(1).to_owned(),
            destination: field(2).to_owned(),
            bytes,
        });
    }
    if lines.is_empty() {
        return Err(String::from("the file lists no flow"));
    }
    Ok(lines)
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(path: &Path) -> Result<Vec<Line>, String> {
    Err(format!(
        "{}: this program was built without Parquet; build it with `--features parquet` or use CSV",
        path.display()
    ))
}

#[cfg(feature = "parquet")]
fn read_parquet(path: &Path) -> Result<Vec<Line>, String> {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, Int64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::io::Read as _;

    let say = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    input::open(path, input::MOST_FLOWS)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| say(&input::reason(&error)))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(|error| say(&error))?;
    let mut lines = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| say(&error))?;
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| format!("{}: there is no column `{name}`", path.display()))
        };
        let wrong =
            |name: &str, wanted: &str| format!("{}: column `{name}` must be {wanted}", path.display());
        let start = column("start")?;
        let start = start
            .as_primitive_opt::<Float64Type>()
            .ok_or_else(|| wrong("start", "float64 (seconds)"))?;
        let source = column("source")?
            .as_string_opt::<i32>()
            .ok_or_else(|| wrong("source", "text"))?;
        let destination = column("destination")?
            .as_string_opt::<i32>()
            .ok_or_else(|| wrong("destination", "text"))?;
        let bytes = column("bytes")?
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| wrong("bytes", "int64"))?;
        for (column, name) in batch.columns().iter().zip(batch.schema().fields()) {
            if COLUMNS.contains(&name.name().as_str()) && column.null_count() > 0 {
                return Err(format!(
                    "{}: column `{}` has empty cells",
                    path.display(),
                    name.name()
                ));
            }
        }
        for row in 0..batch.num_rows() {
            let (at, size) = (start.value(row), bytes.value(row));
            if !(0.0..=1e9).contains(&at) || !(1..1 << 50).contains(&size) {
                return Err(format!(
                    "{}: row {row} has an impossible start or size",
                    path.display()
                ));
            }
            lines.push(Line {
                start: at,
                source: source.value(row).to_owned(),
                destination: destination.value(row).to_owned(),
                bytes: size.unsigned_abs(),
            });
        }
    }
    if lines.is_empty() {
        return Err(format!("{}: the file lists no flow", path.display()));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::read_csv;

    #[test]
    fn flows_are_read_and_mistakes_name_their_line() {
        let good = "start,source,destination,bytes\n0.5,left-0,right-0,1000\n1,left-1,right-0,20\n";
        let lines = read_csv(good.as_bytes()).expect("this is a list of flows");
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].start, lines[0].bytes), (0.5, 1000));
        let bad = "start,source,destination,bytes\n0.5,left-0,right-0,0\n";
        assert_eq!(
            read_csv(bad.as_bytes()),
            Err("line 2: bytes \"0\" is not a whole number above zero".into())
        );
        assert!(
            read_csv("start,bytes\n".as_bytes()).is_err_and(|message| message.contains("the header must be"))
        );
        assert!(read_csv("".as_bytes()).is_err());
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn flows_are_read_from_parquet_and_mistakes_name_their_column() {
        use super::{Line, read};
        use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
        use std::sync::Arc;

        let folder = std::env::temp_dir().join(format!("fleetfoot-flows-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let path = folder.join("flows.parquet");
        let write = |columns: Vec<(&str, ArrayRef)>| {
            let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
            let file = std::fs::File::create(&path).expect("a temporary file can be written");
            let mut writer =
                parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).expect("a Parquet file");
            writer.write(&batch).expect("rows");
            writer.close().expect("an end");
        };
        let start = || Arc::new(Float64Array::from(vec![0.5, 1.0])) as ArrayRef;
        let source = || Arc::new(StringArray::from(vec!["left-0", "left-1"])) as ArrayRef;
        let destination = || Arc::new(StringArray::from(vec!["right-0", "right-0"])) as ArrayRef;
        let bytes = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let all = |bytes: ArrayRef| {
            vec![
                ("start", start()),
                ("source", source()),
                ("destination", destination()),
                ("bytes", bytes),
            ]
        };

        write(all(bytes(vec![1000, 20])));
        let csv = "start,source,destination,bytes\n0.5,left-0,right-0,1000\n1,left-1,right-0,20\n";
        assert_eq!(read(&path), read_csv(csv.as_bytes()));
        assert_eq!(read(&path).map(|lines: Vec<Line>| lines.len()), Ok(2));
        // As it travels to a worker, where it is not on disk.
        let content = std::fs::read(&path).expect("it was just written");
        let travelling = crate::input::travelling_name(&path, &content);
        crate::input::provide(&travelling, &content);
        assert_eq!(read(std::path::Path::new(&travelling)), read(&path));

        let refused = |said: &str| {
            let message = read(&path).expect_err("this is not a list of flows");
            assert!(
                message.contains("flows.parquet") && message.contains(said),
                "{message}"
            );
        };
        write(all(bytes(vec![1000, 0])));
        refused("row 1 has an impossible start or size");
        write(all(Arc::new(Int32Array::from(vec![1000, 20]))));
        refused("column `bytes` must be int64");
        write(all(Arc::new(Int64Array::from(vec![Some(1000), None]))));
        refused("column `bytes` has empty cells");
        write(all(bytes(vec![1, 1])).into_iter().take(3).collect());
        refused("there is no column `bytes`");
        std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
    }
}
