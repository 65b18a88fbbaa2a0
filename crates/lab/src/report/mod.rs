//! Files made from a [`Comparison`]: the report, tables as CSV and Parquet, captures, traces.
//!
//! Read in this order: [`table`] (columns and rows), [`csv`] and `parquet` (the same tables as files), [`html`] (the
//! report), `answer` (its texts), [`charts`] (what its charts show), [`vega`] (the same for notebooks), [`chapters`] (the report of `reproduce`), [`reproduction`] (its files), [`figures`] (its
//! drawings), [`live`] (real programs), [`notebook`] (a result in short, within another page), [`flow_trace`] (recorded flows as tables), [`time_series`] (what a single run leaves), [`trace`], [`diagram`] (a flow as arrows), [`pcapng`]. Nothing written here depends on the date, the machine or
//! the number of threads.
//!
//! All pictures are drawn by [`figures`], so that a page shows them without a script and on paper. The script of the report
//! chooses among them, saves them, and draws recorded flows, in which a reader zooms.

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
pub mod parts;
pub mod pcapng;
pub mod reproduction;
pub mod table;
pub(crate) mod text;
pub mod time_series;
pub mod trace;
pub mod vega;
pub mod waits;

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
