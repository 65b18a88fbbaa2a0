//! Exceptions: the program's one message for one mistake, as a class of `fleetfoot.errors`.

use fleetfoot_lab::compare::study::StudyError;
use fleetfoot_lab::scenario::Error as Mistake;
use fleetfoot_lab::{folder, run};
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

/// A batch of runs that failed.
pub(crate) fn of_run(error: &run::Error) -> PyErr {
    match error {
        run::Error::Engine { .. } => usage(error.to_string()),
        run::Error::Memory { .. } => RunError::new_err(format!(
            "{error}. Finished runs are kept where there is an output folder."
        )),
        run::Error::Threads(_) | run::Error::Store(..) => RunError::new_err(error.to_string()),
    }
}

/// A comparison that could not be made.
pub(crate) fn of_study(error: &StudyError) -> PyErr {
    match error {
        StudyError::Scenario(mistake) => of_scenario(mistake),
        StudyError::Run(error) => of_run(error),
    }
}

/// A folder that was not opened or written.
pub(crate) fn of_folder(error: folder::Error) -> PyErr {
    match error {
        folder::Error::Refused(message) => usage(message),
        folder::Error::Failed(message) => RunError::new_err(message),
    }
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
