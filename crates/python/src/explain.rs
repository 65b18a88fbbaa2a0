//! What something does: a mechanism, a queue, a congestion control, a switch.

use crate::error::usage;
use fleetfoot_lab::explain::{document, names, unknown};
use pyo3::prelude::*;

/// A JSON text about what is called `name`, as `fleetfoot explain NAME --json` prints it.
#[pyfunction]
pub(crate) fn explain(name: &str) -> PyResult<String> {
    document(name)
        .map(|document| document.to_string())
        .ok_or_else(|| usage(unknown(name, names().iter().map(String::as_str))))
}
