//! Values of Python as values of TOML and JSON, and back.

use crate::error::usage;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString};
use pyo3::{Bound, Py, PyAny};

/// A value of Python as a scenario has it. `what` names it in messages.
///
/// # Errors
/// `UsageError`: TOML has no such value.
pub(crate) fn to_toml(what: &str, value: &Bound<'_, PyAny>) -> PyResult<toml::Value> {
    if value.is_instance_of::<PyBool>() {
        return Ok(toml::Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        let number = value
            .extract()
            .map_err(|_| usage(format!("{what}: the number {value} is too large")))?;
        return Ok(toml::Value::Integer(number));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(toml::Value::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(toml::Value::String(value.extract()?));
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        return table(what, mapping).map(toml::Value::Table);
    }
    // Scalars of NumPy: they know their value of Python.
    if let Ok(item) = value.call_method0("item") {
        return to_toml(what, &item);
    }
    if let Ok(sequence) = value.cast::<PySequence>() {
        let list = sequence
            .try_iter()?
            .enumerate()
            .map(|(index, item)| to_toml(&format!("{what}[{index}]"), &item?));
        return list.collect::<PyResult<_>>().map(toml::Value::Array);
    }
    // What writes itself as text: paths of files.
    if let Ok(path) = value.call_method0("__fspath__") {
        return to_toml(what, &path);
    }
    Err(usage(format!(
        "{what}: a value of type {} cannot stand in a scenario; text, numbers, True or False, lists and dictionaries can",
        value.get_type().name()?
    )))
}

/// A mapping of Python as a table of TOML.
///
/// # Errors
/// `UsageError`: a key is no text, or a value is none of TOML.
pub(crate) fn table(what: &str, mapping: &Bound<'_, PyMapping>) -> PyResult<toml::Table> {
    let mut table = toml::Table::new();
    for item in mapping.items()? {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let key: String = key
            .extract()
            .map_err(|_| usage(format!("{what}: the key {key} is no text")))?;
        let place = match what {
            "" => key.clone(),
            what => format!("{what}.{key}"),
        };
        table.insert(key, to_toml(&place, &value)?);
    }
    Ok(table)
}

/// A value of a scenario as a value of Python.
pub(crate) fn of_toml(py: Python<'_>, value: &toml::Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        toml::Value::String(text) => text.into_pyobject(py)?.into_any().unbind(),
        toml::Value::Integer(number) => number.into_pyobject(py)?.into_any().unbind(),
        toml::Value::Float(number) => number.into_pyobject(py)?.into_any().unbind(),
        toml::Value::Boolean(flag) => PyBool::new(py, *flag).to_owned().into_any().unbind(),
        toml::Value::Datetime(date) => date.to_string().into_pyobject(py)?.into_any().unbind(),
        toml::Value::Array(list) => {
            let list: Vec<Py<PyAny>> = list
                .iter()
                .map(|item| of_toml(py, item))
                .collect::<PyResult<_>>()?;
            PyList::new(py, list)?.into_any().unbind()
        }
        toml::Value::Table(table) => {
            let dict = PyDict::new(py);
            for (key, value) in table {
                dict.set_item(key, of_toml(py, value)?)?;
            }
            dict.into_any().unbind()
        }
    })
}
