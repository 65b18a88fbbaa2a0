//! What there is to choose between.

use fleetfoot_lab::mechanisms::ENTRIES;
use pyo3::prelude::*;

/// Every mechanism as a JSON text, as `fleetfoot list mechanisms --json` has them, with how hard each is to turn on.
#[pyfunction]
pub(crate) fn mechanisms() -> String {
    let list = ENTRIES.iter().map(|entry| {
        let mut document = entry.to_json();
        document["effort"] = entry.effort.name().into();
        document
    });
    serde_json::Value::from_iter(list).to_string()
}
