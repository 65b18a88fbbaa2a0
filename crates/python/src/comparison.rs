//! Results of `run`, `compare` and `recommend`, as few bytes as will do.

use crate::error::{InternalError, RunError, guarded, of_folder, usage};
#[cfg(feature = "parquet")]
use crate::table::Table;
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::report::{notebook, vega};
use fleetfoot_lab::result::{self, Packed};
use fleetfoot_lab::run::Batch;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::Path;

/// A result: document, samples and traces, compressed.
#[pyclass(frozen, module = "fleetfoot._native")]
#[derive(Debug)]
pub(crate) struct Comparison {
    document: Vec<u8>,
    about: Vec<u8>,
    /// Runs and traces; `None` where they were not kept.
    runs: Option<Vec<u8>>,
    computed: u64,
    reused: u64,
    wall_s: f64,
}

/// The parts of a result that is sent elsewhere.
type Parts<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
    (u64, u64, f64),
);

impl Comparison {
    /// Keeps `comparison`, with its runs if `with_runs`.
    pub(crate) fn kept(
        comparison: result::Comparison,
        batch: &Batch,
        with_runs: bool,
    ) -> PyResult<Comparison> {
        let packed = Packed::of(comparison).map_err(InternalError::new_err)?;
        Ok(Comparison {
            document: compressed(packed.document.as_bytes())?,
            about: compressed(&packed.about)?,
            runs: with_runs.then(|| compressed(&packed.runs)).transpose()?,
            computed: batch.computed,
            reused: batch.reused,
            wall_s: batch.wall_s,
        })
    }

    fn text(&self) -> PyResult<String> {
        String::from_utf8(expanded(&self.document)?).map_err(|error| damaged(&error))
    }

    /// The result without its runs.
    fn summary(&self) -> PyResult<result::Comparison> {
        Packed::summary(&self.text()?, &expanded(&self.about)?).map_err(RunError::new_err)
    }

    /// All of it.
    fn whole(&self) -> PyResult<result::Comparison> {
        let Some(runs) = &self.runs else {
            return Err(usage(
                "the runs of this result were not kept: make it with samples=True",
            ));
        };
        let packed = Packed {
            document: self.text()?,
            about: expanded(&self.about)?,
            runs: expanded(runs)?,
        };
        packed.unpack().map_err(RunError::new_err)
    }
}

#[pymethods]
impl Comparison {
    /// What [`Comparison::parts`] gave.
    #[staticmethod]
    fn of_parts(
        document: Vec<u8>,
        about: Vec<u8>,
        runs: Option<Vec<u8>>,
        counts: (u64, u64, f64),
    ) -> Comparison {
        let (computed, reused, wall_s) = counts;
        Comparison {
            document,
            about,
            runs,
            computed,
            reused,
            wall_s,
        }
    }

    /// All that it consists of.
    fn parts<'py>(&self, py: Python<'py>) -> Parts<'py> {
        let bytes = |part: &Vec<u8>| PyBytes::new(py, part);
        (
            bytes(&self.document),
            bytes(&self.about),
            self.runs.as_ref().map(bytes),
            (self.computed, self.reused, self.wall_s),
        )
    }

    /// The same without samples and traces.
    fn without_runs(&self) -> Comparison {
        Comparison {
            document: self.document.clone(),
            about: self.about.clone(),
            runs: None,
            ..*self
        }
    }

    /// Memory that it takes (bytes).
    #[getter]
    fn nbytes(&self) -> usize {
        let runs = self.runs.as_ref().map_or(0, Vec::len);
        size_of::<Comparison>() + self.document.len() + self.about.len() + runs
    }

    /// Runs that were computed for it.
    #[getter]
    fn computed(&self) -> u64 {
        self.computed
    }

    /// Runs that were kept from before, or are those of an earlier variant that is the same.
    #[getter]
    fn reused(&self) -> u64 {
        self.reused
    }

    /// Elapsed time of the runs (s).
    #[getter]
    fn wall_s(&self) -> f64 {
        self.wall_s
    }

    /// The text of `result.json`.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| guarded(|| self.text()))
    }

    /// The scenario that was run, as the text of a file.
    fn scenario_toml(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| guarded(|| Ok(self.summary()?.scenario_toml)))
    }

    /// What repeats it.
    fn command(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| guarded(|| Ok(self.summary()?.command)))
    }

    /// Answer and table as a piece of HTML.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            guarded(|| {
                notebook::render(&self.summary()?).map_err(|error| InternalError::new_err(error.to_string()))
            })
        })
    }

    /// The report's charts as a JSON text: a list of `{id, title, text, spec, header, rows}`.
    fn charts(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            guarded(|| {
                let comparison = match self.runs {
                    Some(_) => self.whole()?,
                    None => self.summary()?,
                };
                let charts = serde_json::to_string(&vega::charts(&comparison));
                charts.map_err(|error| InternalError::new_err(error.to_string()))
            })
        })
    }

    /// The table `runs`, `samples`, `links`, `states` or `segments`.
    #[cfg(feature = "parquet")]
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        py.detach(|| guarded(|| Table::of(&self.whole()?, name)))
    }

    /// Writes the folder that the program writes.
    fn save(&self, py: Python<'_>, folder: &str, force: bool) -> PyResult<()> {
        py.detach(|| {
            guarded(|| {
                let comparison = self.whole()?;
                let title = &comparison.document.scenario;
                Folder::open(Some(Path::new(folder)), title, &comparison.hash, force)
                    .and_then(|folder| folder.write(&comparison))
                    .map_err(of_folder)
            })
        })
    }
}

fn damaged(error: &dyn std::fmt::Display) -> PyErr {
    RunError::new_err(format!("this result is damaged: {error}"))
}

#[cfg(feature = "parquet")]
fn compressed(bytes: &[u8]) -> PyResult<Vec<u8>> {
    zstd::encode_all(bytes, 0).map_err(|error| InternalError::new_err(error.to_string()))
}

#[cfg(feature = "parquet")]
fn expanded(bytes: &[u8]) -> PyResult<Vec<u8>> {
    zstd::decode_all(bytes).map_err(|error| damaged(&error))
}

#[cfg(not(feature = "parquet"))]
fn compressed(bytes: &[u8]) -> PyResult<Vec<u8>> {
    Ok(bytes.to_vec())
}

#[cfg(not(feature = "parquet"))]
fn expanded(bytes: &[u8]) -> PyResult<Vec<u8>> {
    Ok(bytes.to_vec())
}
