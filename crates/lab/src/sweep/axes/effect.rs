//! Axes that would change nothing.

use super::{Axis, Values, refused};
use crate::scenario::Error;

impl Axis {
    /// Refuses what no point of a sweep runs with: words about the scenario, and seeds, which all points have in common.
    ///
    /// # Errors
    /// It is one of them.
    pub(in crate::sweep) fn has_effect(&self) -> Result<(), Error> {
        let why = match self.path.as_str() {
            "run.seed" | "run.seeds" => "all points have the same seeds, which --seed and --seeds give",
            "title" | "description" => "it is a word about the scenario, and nothing of it is run",
            _ => return Ok(()),
        };
        let origin = match self.values {
            Values::List(_) => "--set",
            Values::Range(_) => "--range",
        };
        Err(refused(
            origin,
            format!("{}: as an axis it has no effect here: {why}", self.path),
        ))
    }
}
