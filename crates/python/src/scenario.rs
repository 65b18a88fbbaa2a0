//! Scenarios: read, changed, written.

use crate::convert;
use crate::error::{guarded, of_scenario};
use fleetfoot_lab::scenario::{self, Setting};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use std::path::{Path, PathBuf};

/// A scenario that was read and checked. It does not change: `changed` returns another.
#[pyclass(frozen, module = "fleetfoot._native")]
#[derive(Clone)]
pub(crate) struct Scenario {
    /// Where it was read from, or what messages call it.
    name: String,
    /// The scenario as the laboratory knows it.
    pub(crate) inner: scenario::Scenario,
}

impl Scenario {
    fn read(
        name: &str,
        read: impl FnOnce() -> Result<scenario::Scenario, scenario::Error>,
    ) -> PyResult<Scenario> {
        let inner = guarded(|| read().map_err(|mistake| of_scenario(&mistake)))?;
        Ok(Scenario {
            name: name.to_owned(),
            inner,
        })
    }
}

#[pymethods]
impl Scenario {
    /// Reads the file at `path` and those it extends.
    #[staticmethod]
    fn load(py: Python<'_>, path: &str) -> PyResult<Scenario> {
        py.detach(|| Scenario::read(path, || scenario::Scenario::load(Path::new(path))))
    }

    /// Reads a text that messages call `name`, in whose folder the files are that it names.
    #[staticmethod]
    fn parse(py: Python<'_>, name: &str, text: &str) -> PyResult<Scenario> {
        py.detach(|| Scenario::read(name, || scenario::Scenario::parse(name, text)))
    }

    /// Reads what [`Scenario::to_toml`] wrote of a scenario that was changed.
    #[staticmethod]
    fn reread(py: Python<'_>, name: &str, text: &str) -> PyResult<Scenario> {
        py.detach(|| Scenario::read(name, || scenario::Scenario::parse_changed(name, text)))
    }

    /// Reads tables of Python; messages show them as the text of a file called `name`.
    #[staticmethod]
    fn from_mapping(py: Python<'_>, name: &str, tables: &Bound<'_, PyMapping>) -> PyResult<Scenario> {
        let text = convert::table("", tables)?.to_string();
        Scenario::parse(py, name, &text)
    }

    /// The built-in home line.
    #[staticmethod]
    fn home_line(py: Python<'_>) -> PyResult<Scenario> {
        py.detach(|| Scenario::read("home-line.toml", scenario::Scenario::home_line))
    }

    /// The scenario with other values at some paths. Messages say that `origin` asks for them.
    fn changed(&self, py: Python<'_>, origin: &str, settings: &Bound<'_, PyMapping>) -> PyResult<Scenario> {
        let mut set = Setting::from_origin(origin);
        for item in settings.items()? {
            let (path, value): (String, Bound<'_, PyAny>) = item.extract()?;
            let value = convert::to_toml(&path, &value)?;
            set = set.with(path, value);
        }
        py.detach(|| Scenario::read(&self.name, || self.inner.with(&set)))
    }

    /// Where it was read from, or what messages call it.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// What every output calls it.
    #[getter]
    fn title(&self) -> &str {
        self.inner.title()
    }

    /// Whether `changed` made it.
    #[getter]
    fn is_changed(&self) -> bool {
        self.inner.is_changed()
    }

    /// Names of its variants and what each changes.
    #[getter]
    fn variants(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyDict>)>> {
        let dict = |set: &Setting| -> PyResult<Py<PyDict>> {
            let dict = PyDict::new(py);
            for (path, value) in set.iter() {
                dict.set_item(path, convert::of_toml(py, value)?)?;
            }
            Ok(dict.unbind())
        };
        self.inner
            .variants()
            .iter()
            .map(|variant| Ok((variant.name.clone(), dict(&variant.set)?)))
            .collect()
    }

    /// The files it was read from and those it names.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        // A text that was never a file is no file.
        let there = |path: &PathBuf| path != Path::new(&self.name) || path.is_file();
        self.inner.files().into_iter().filter(there).collect()
    }

    /// All of it, what it extends included.
    fn to_toml(&self) -> String {
        self.inner.to_toml()
    }

    /// The same as tables of Python.
    fn to_mapping(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let table: toml::Table = toml::from_str(&self.inner.to_toml())
            .map_err(|error| crate::error::InternalError::new_err(error.to_string()))?;
        convert::of_toml(py, &toml::Value::Table(table))
    }
}
