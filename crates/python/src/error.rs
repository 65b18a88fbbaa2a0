//! Exceptions: the program's one message for one mistake, as a class of `fleetfoot.errors`.

use fleetfoot_lab::scenario::Error as Mistake;
use pyo3::PyErr;
use std::panic::{AssertUnwindSafe, catch_unwind};

pyo3::import_exception!(fleetfoot.errors, ScenarioError);
pyo3::import_exception!(fleetfoot.errors, UsageError);
pyo3::import_exception!(fleetfoot.errors, RunError);
pyo3::import_exception!(fleetfoot.errors, InternalError);

/// A mistake in a scenario, with its place.
pub(crate) fn of_scenario(mistake: &Mistake) -> PyErr {
    ScenarioError::new_err((
        mistake.to_string(),
        mistake.file.to_string(),
        (mistake.line > 0).then_some(mistake.line),
        (mistake.column > 0).then_some(mistake.column),
        mistake.key.to_string(),
        mistake.message.to_string(),
        mistake.help.clone(),
    ))
}

/// An argument that cannot be: the message names what is valid.
pub(crate) fn usage(message: impl Into<String>) -> PyErr {
    UsageError::new_err(message.into())
}

/// Calls `work`; a panic in it becomes an exception, since none may cross into the interpreter.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, PyErr>) -> Result<T, PyErr> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_default();
        Err(InternalError::new_err(format!(
            "this is a mistake in fleetfoot, please report it: {said}"
        )))
    })
}
