//! `fleetfoot sweep`: one scenario at many points, each with many seeds, over all cores, into one data set.
//!
//! Read in this order: `axes` (what is swept, and the points), `description` (a sweep as it travels), `driver` (which run comes next),
//! `work` (a run, and what is kept of it), `run` (on threads), `pipe` (over another process), `journal` (finished runs on disk),
//! `stopping` (how many seeds a point needs), `data` (the tables), `report` (heat maps), `cell` (the mean of points), `output` (the folder).
//!
//! Points have common random numbers: every point is run with the same seeds. What is kept of a run are its rows of the tables, so memory does not
//! grow with the traffic of the points.

mod axes;
mod cell;
mod data;
mod description;
mod driver;
mod journal;
mod levels;
mod output;
mod pipe;
mod report;
mod run;
mod stopping;
#[cfg(test)]
mod tests;
mod work;

pub use axes::{Axis, MOST_POINTS, Points, Sampling};
pub use data::{columns_of_numbers, write};
pub use description::Wanted;
pub use driver::{Counts, Driver, ExecuteError, Point, State, Step, Swept};
pub use journal::{Journal, Outcome, Place, Value};
pub use output::{JOURNAL, Written, document, written};
pub use pipe::{PipeError, execute_over, read_frame, write_frame};
pub use report::{Page, Shown, drawings, render};
pub use run::execute;
pub use stopping::{HalfWidth, Until};
pub use work::{Done, Unit, Worker};

use crate::compare::{Choice, Plan};
use crate::run::Job;
use crate::scenario::{Error, ErrorKind, Scenario, Setting};

/// What is swept.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The scenario.
    pub scenario: Scenario,
    /// The points.
    pub points: Points,
    /// The variants and mechanisms that are run beside the scenario as described, and where.
    pub choice: Choice,
    /// Seeds of every point, as many as it may have.
    pub seeds: Vec<u64>,
    /// When a point has enough seeds; `None`: all of them.
    pub until: Option<Until>,
    /// What the keys of its runs follow from.
    identity: description::Identity,
}

impl Sweep {
    /// A sweep whose values are known to fit: each was tried alone.
    ///
    /// # Errors
    /// A path or value does not fit the scenario, or there is nothing of a name in `choice`.
    pub fn new(
        scenario: Scenario,
        points: Points,
        choice: Choice,
        until: Option<Until>,
    ) -> Result<Sweep, Error> {
        points.axes().iter().try_for_each(Axis::has_effect)?;
        for set in points.tried() {
            // That a path has no effect here is an error too; that it changes nothing is none: a grid may contain the scenario itself.
            match scenario.resolve(&set) {
                Err(error) if error.kind != ErrorKind::NoChange => return Err(error),
                _ => {}
            }
        }
        let sweep = Sweep {
            identity: description::Identity::of(&scenario, &points, &choice),
            seeds: Plan::baseline(scenario.clone(), &choice)?.seeds,
            scenario,
            points,
            choice,
            until,
        };
        let plan = sweep.plan(&Setting::none())?;
        if let Some(Until {
            group: Some(name), ..
        }) = &sweep.until
            && !plan.described.groups.iter().any(|group| group.name == *name)
        {
            let names: Vec<&str> = plan
                .described
                .groups
                .iter()
                .map(|group| group.name.as_str())
                .collect();
            let message = format!(
                "no traffic group is called \"{name}\"; there are {}",
                names.join(", ")
            );
            return Err(Error::of_file("--until", message).of_kind(ErrorKind::Invalid));
        }
        Ok(sweep)
    }

    /// How often the interval of a point may be looked at, for which it is corrected.
    fn looks(&self) -> usize {
        let until = self.until.as_ref();
        until.map_or(1, |_| stopping::looks(self.seeds.len()).len())
    }

    /// What is run at a point that sets this.
    ///
    /// # Errors
    /// The values do not fit together.
    pub fn plan(&self, set: &Setting) -> Result<Plan, Error> {
        let scenario = match set.is_empty() {
            true => self.scenario.clone(),
            false => self.scenario.with(set)?,
        };
        match self.choice.only.is_empty() {
            true => Plan::baseline(scenario, &self.choice),
            // Points are compared with one another, so each has the same variants.
            false => Plan::compare(
                scenario,
                &Choice {
                    no_other_values: true,
                    ..self.choice.clone()
                },
            ),
        }
    }

    /// Runs of all points if each takes all seeds.
    pub fn most_runs(&self) -> u64 {
        (self.points.len() * self.seeds.len()) as u64 * self.variants() as u64
    }

    /// Variants of a point, the scenario as described among them.
    pub fn variants(&self) -> usize {
        1 + self.choice.only.len()
    }

    /// Jobs of a few points from all over the sweep, for a forecast; a point whose values do not fit together has none.
    pub fn pilots(&self) -> Vec<Job> {
        let most = self.points.len();
        let chosen = (0..PILOTS.min(most)).map(|number| number * most / PILOTS.min(most));
        let jobs = chosen.filter_map(|point| self.plan(&self.points.setting(point)).ok());
        jobs.flat_map(|plan| plan.jobs()).collect()
    }

    /// Identity of the sweep (hexadecimal): scenario, points, variants, seeds and rule of stopping.
    pub fn hash(&self) -> Result<String, Error> {
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(text.as_bytes());
            hasher.update(&[0]);
        };
        add(&self.plan(&Setting::none())?.hash());
        for point in 0..self.points.len() {
            add(&self.points.label(point));
        }
        add(&self.until.as_ref().map(Until::to_string).unwrap_or_default());
        Ok(hasher.finalize().to_hex().to_string())
    }
}

/// Points that a forecast looks at.
const PILOTS: usize = 5;
