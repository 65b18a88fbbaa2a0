//! Files made from a [`Comparison`]: the report, tables as CSV and Parquet, captures, traces.
//!
//! Read in this order: [`table`] (columns and rows), [`csv`] and `parquet` (the same tables as files), [`html`] (the
//! report), `answer` (its texts), [`charts`] (its Vega-Lite charts), [`chapters`] (the report of `reproduce`), [`reproduction`] (its files), [`figures`] (its
//! drawings), [`live`] (real programs), [`notebook`] (a result in short, within another page), [`standalone`] (charts alone), [`flow_trace`] (recorded flows as tables), [`time_series`] (what a single run leaves), [`trace`], [`diagram`] (a flow as arrows), [`pcapng`]. Nothing written here depends on the date, the machine or
//! the number of threads.
//!
//! There are two ways to draw. The charts of a comparison are chosen, pointed at and saved by its reader, which takes a script; figures of
//! experiments and sweeps stand in pages and documents that have none. One for both would lose the one or the other.

use crate::result::Comparison;
use std::io;
use std::path::Path;

mod answer;
pub mod chapters;
pub mod charts;
pub mod csv;
pub mod diagram;
pub mod figures;
pub mod flow_trace;
pub mod html;
pub mod live;
pub mod notebook;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod pcapng;
pub mod reproduction;
pub mod standalone;
pub mod table;
pub(crate) mod text;
pub mod time_series;
pub mod trace;

/// Writes the report of `comparison` as one HTML file that needs no network.
///
/// # Errors
/// What the file system says.
pub fn write_html(path: &Path, comparison: &Comparison) -> io::Result<()> {
    std::fs::write(path, html::render(comparison).map_err(io::Error::other)?)
}

/// Writes `runs.csv`, `samples.csv` and `links.csv` into the folder `directory`.
///
/// # Errors
/// What the file system says.
pub fn write_csv(directory: &Path, comparison: &Comparison) -> io::Result<()> {
    csv::write(directory, comparison)
}

/// Writes the same tables as Parquet.
///
/// # Errors
/// What the file system says.
#[cfg(feature = "parquet")]
pub fn write_parquet(directory: &Path, comparison: &Comparison) -> io::Result<()> {
    parquet::write(directory, comparison)
}
