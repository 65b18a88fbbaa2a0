//! Which run comes next, and what follows from those that are done: written once, for threads, for other processes and for a cluster.
//!
//! A driver hands out units (a point with a seed) and enters what comes back, in any order. It finds in the journal what is there
//! already, without resolving the point. With a rule of stopping a point gets more seeds after each look that finds its interval
//! too wide. What it decides depends on results and not on the order in which they come.

use super::Sweep;
use super::data;
use super::journal::{Head, Journal, Outcome, Place};
use super::stopping::looks;
use super::work::{Done, Unit, What};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Deref;
use std::time::Instant;

/// How many runs there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Computed now.
    pub computed: u64,
    /// Kept from before.
    pub reused: u64,
    /// Of both, those that failed.
    pub failed: u64,
}

/// A unit that is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Index of its point.
    pub point: usize,
    /// Its seed.
    pub seed: u64,
    /// How long it took (s); zero if it was kept from before.
    pub wall_s: f64,
    /// Whether it failed.
    pub failed: bool,
    /// Units of all points, as far as it is known: a rule of stopping leaves some out.
    pub total: u64,
    /// How many are done.
    pub done: u64,
    /// Those of `done` that were kept from before.
    pub reused: u64,
}

/// How far a point is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Not all of its seeds were run: the sweep was stopped.
    Open,
    /// All seeds, or as many as the rule of stopping wants.
    Done,
    /// All seeds were run, and the interval is still wider than the rule of stopping wants.
    Wide,
    /// Its values do not fit together, or a run of it failed.
    Failed(String),
}

/// A point of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// How far it is.
    pub state: State,
    /// Mechanisms that do not apply there, each with its reason.
    pub inapplicable: Box<str>,
    /// Where its outcomes are in the journal, in the order of the seeds.
    pub places: Vec<Place>,
}

/// What a sweep left.
#[derive(Debug)]
pub struct Swept {
    /// The points, in order.
    pub points: Vec<Point>,
    /// Runs of points (all variants of one seed count once).
    pub counts: Counts,
    /// Elapsed time (s).
    pub wall_s: f64,
    /// Time that the computed runs took, added up over workers (s).
    pub busy_s: f64,
    /// Whether it was stopped before all were done.
    pub interrupted: bool,
}

/// Why a sweep ended without its data set.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The threads could not be made.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// A finished run could not be kept.
    #[error("cannot write the journal of the sweep: {0}")]
    Journal(#[from] io::Error),
    /// Memory came near to its ceiling.
    #[error("{0}")]
    Memory(String),
    /// A worker did not do what was asked.
    #[error("{0}")]
    Worker(String),
}

/// A point under way.
struct Open {
    /// Seeds that were given out, and those that are done.
    given: usize,
    done: usize,
    /// Index of the next look.
    look: usize,
    /// Watched values, by column of group and variant, then seed.
    values: Vec<Vec<Option<f64>>>,
}

/// Hands out units and enters what comes back.
pub struct Driver<S, J> {
    sweep: S,
    journal: J,
    looks: Vec<usize>,
    next_point: usize,
    ready: VecDeque<Unit>,
    open: BTreeMap<usize, Open>,
    underway: usize,
    points: Vec<Point>,
    counts: Counts,
    done: u64,
    total: u64,
    busy_s: f64,
    started: Instant,
}

impl<S: Deref<Target = Sweep>, J: Deref<Target = Journal>> Driver<S, J> {
    /// All of this sweep that is not in the journal.
    pub fn new(sweep: S, journal: J) -> Driver<S, J> {
        let seeds = sweep.seeds.len();
        let (points, looks) = match sweep.until {
            Some(_) => (sweep.points.len(), looks(seeds)),
            None => (sweep.points.len(), vec![seeds]),
        };
        let new = Point {
            state: State::Open,
            inapplicable: Box::default(),
            places: Vec::new(),
        };
        Driver {
            sweep,
            journal,
            looks,
            next_point: 0,
            ready: VecDeque::new(),
            open: BTreeMap::new(),
            underway: 0,
            points: vec![new; points],
            counts: Counts::default(),
            done: 0,
            total: (points * seeds) as u64,
            busy_s: 0.0,
            started: Instant::now(),
        }
    }

    /// The next units, at most so many. None: those under way must come back first, or all is done. `tell` hears of what was kept
    /// from before.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn take(&mut self, most: usize, tell: &mut dyn FnMut(&Step)) -> io::Result<Vec<Unit>> {
        let mut taken = Vec::new();
        while taken.len() < most {
            if let Some(unit) = self.ready.pop_front() {
                taken.push(unit);
            } else if self.next_point < self.points.len() {
                let point = self.next_point;
                self.next_point += 1;
                self.open.insert(
                    point,
                    Open {
                        given: 0,
                        done: 0,
                        look: 0,
                        values: Vec::new(),
                    },
                );
                self.give(point, self.looks[0], tell)?;
            } else {
                break;
            }
        }
        self.underway += taken.len();
        Ok(taken)
    }

    /// As [`Driver::take`], as bytes for [`Worker::run_bytes`](super::Worker::run_bytes): as many units as `workers` that work at
    /// the same time should get at once, so that a task takes about half a second.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn take_bytes(
        &mut self,
        workers: usize,
        tell: &mut dyn FnMut(&Step),
    ) -> io::Result<Option<(Vec<Unit>, Vec<u8>)>> {
        let units = self.take(self.block(workers), tell)?;
        if units.is_empty() {
            return Ok(None);
        }
        let bytes = postcard::to_stdvec(&units).map_err(io::Error::other)?;
        Ok(Some((units, bytes)))
    }

    /// How many units make a task for one of so many workers.
    fn block(&self, workers: usize) -> usize {
        let computed = self.counts.computed;
        if computed == 0 {
            return 1;
        }
        let mean_s = (self.busy_s / computed as f64).max(1e-6);
        let left = self.total.saturating_sub(self.done + self.underway as u64) as usize;
        let fair = left.div_ceil(4 * workers.max(1));
        ((TASK_S / mean_s) as usize).clamp(1, MOST_UNITS).min(fair.max(1))
    }

    /// These units are lost: they are handed out again.
    pub fn give_back(&mut self, units: &[Unit]) {
        self.underway -= units.len();
        for unit in units.iter().rev() {
            self.ready.push_front(*unit);
        }
    }

    /// Whether everything was handed out and has come back.
    pub fn is_done(&self) -> bool {
        self.underway == 0 && self.ready.is_empty() && self.next_point == self.points.len()
    }

    /// Units that were handed out and have not come back.
    pub fn underway(&self) -> usize {
        self.underway
    }

    /// Enters what came back of a unit. `tell` hears of it, and of what was kept from before.
    ///
    /// # Errors
    /// The journal cannot be written or read; memory was not enough; the result belongs to something else.
    pub fn enter(&mut self, done: Done, tell: &mut dyn FnMut(&Step)) -> Result<(), ExecuteError> {
        let Done { unit, wall_s, what } = done;
        let Unit { point, index } = unit;
        if point >= self.points.len() || index >= self.sweep.seeds.len() {
            return Err(ExecuteError::Worker(String::from(
                "a worker sent the result of another sweep",
            )));
        }
        self.underway = self.underway.saturating_sub(1);
        let there = |place: &Place| place.is_some();
        if !self.open.contains_key(&point) || self.points[point].places.get(index).is_some_and(there) {
            // It came twice, or its point has failed meanwhile.
            return Ok(());
        }
        match what {
            What::Stopped => self.ready.push_front(unit),
            What::Memory(reason) => return Err(ExecuteError::Memory(reason)),
            What::Misfit(reason) => {
                self.total -= self.sweep.seeds.len() as u64 - self.open[&point].done as u64;
                self.open.remove(&point);
                self.ready.retain(|unit| unit.point != point);
                self.points[point].places = Vec::new();
                self.points[point].state = State::Failed(reason);
            }
            What::Entry(body) => {
                let key = self.sweep.key(point).of_seed(self.sweep.seeds[index]);
                let head = Head::of(&body).filter(|head| head.key == key);
                let head = head.ok_or_else(|| {
                    ExecuteError::Worker(String::from("a worker sent a result of another sweep or version"))
                })?;
                let place = self.journal.append(&body)?;
                self.busy_s += wall_s;
                self.counts.computed += 1;
                if place.remarked() {
                    self.points[point].inapplicable = head.remark.into();
                }
                let outcome = match place.failed() || self.sweep.until.is_some() {
                    true => Some(head.outcome()?),
                    false => None,
                };
                self.entered(unit, place, outcome.as_ref(), wall_s, tell);
                self.looked_at(point, tell)?;
            }
        }
        Ok(())
    }

    /// As [`Driver::enter`], for what a worker elsewhere sent back of these units.
    ///
    /// # Errors
    /// As [`Driver::enter`]; the bytes are no result.
    pub fn enter_bytes(
        &mut self,
        units: &[Unit],
        bytes: &[u8],
        tell: &mut dyn FnMut(&Step),
    ) -> Result<(), ExecuteError> {
        let broken = || ExecuteError::Worker(String::from("a worker sent something that is no result"));
        let done: Vec<Done> = postcard::from_bytes(bytes).map_err(|_| broken())?;
        if !done.iter().map(|done| &done.unit).eq(units) {
            return Err(broken());
        }
        done.into_iter().try_for_each(|done| self.enter(done, tell))
    }

    /// What there is, whether or not all is done.
    pub fn finish(self) -> Swept {
        Swept {
            interrupted: self.points.iter().any(|point| point.state == State::Open),
            points: self.points,
            counts: self.counts,
            wall_s: self.started.elapsed().as_secs_f64(),
            busy_s: self.busy_s,
        }
    }

    /// Gives a point seeds up to this number: those that the journal has are entered, the others made ready.
    fn give(&mut self, point: usize, upto: usize, tell: &mut dyn FnMut(&Step)) -> io::Result<()> {
        let mut upto = upto;
        loop {
            let Some(open) = self.open.get_mut(&point) else {
                return Ok(());
            };
            let from = std::mem::replace(&mut open.given, upto);
            self.points[point].places.resize(upto, Place::NONE);
            let key = self.sweep.key(point);
            let mut missing = Vec::new();
            for index in from..upto {
                let unit = Unit { point, index };
                let Some(place) = self.journal.find(&key.of_seed(self.sweep.seeds[index])) else {
                    missing.push(unit);
                    continue;
                };
                self.counts.reused += 1;
                let outcome = match place.failed() || self.sweep.until.is_some() {
                    true => Some(self.journal.read(place)?),
                    false => None,
                };
                if place.remarked() {
                    self.points[point].inapplicable = self.journal.reading().remark(place)?.into();
                }
                self.entered(unit, place, outcome.as_ref(), 0.0, tell);
            }
            for unit in missing.into_iter().rev() {
                self.ready.push_front(unit);
            }
            match self.after_look(point) {
                Some(more) => upto = more,
                None => return Ok(()),
            }
        }
    }

    /// After a result: the point may be done, or get more seeds.
    fn looked_at(&mut self, point: usize, tell: &mut dyn FnMut(&Step)) -> io::Result<()> {
        match self.after_look(point) {
            Some(more) => self.give(point, more, tell),
            None => Ok(()),
        }
    }

    fn entered(
        &mut self,
        unit: Unit,
        place: Place,
        outcome: Option<&Outcome>,
        wall_s: f64,
        tell: &mut dyn FnMut(&Step),
    ) {
        let Unit { point, index } = unit;
        self.points[point].places[index] = place;
        self.done += 1;
        match outcome {
            Some(Outcome::Failed(reason)) => {
                self.counts.failed += 1;
                // The reason of the first seed, whichever came first.
                let earlier = self.points[point].places[..index].iter();
                if !earlier.copied().any(Place::failed) {
                    self.points[point].state = State::Failed(reason.clone());
                }
            }
            Some(Outcome::Rows { runs, .. }) => {
                if let (Some(until), Some(open)) = (&self.sweep.until, self.open.get_mut(&point)) {
                    for (column, value) in data::watched(until, runs).into_iter().enumerate() {
                        if open.values.len() <= column {
                            open.values.push(Vec::new());
                        }
                        let values = &mut open.values[column];
                        values.resize(values.len().max(index + 1), None);
                        values[index] = value;
                    }
                }
            }
            None => {}
        }
        if let Some(open) = self.open.get_mut(&point) {
            open.done += 1;
        }
        tell(&Step {
            point,
            seed: self.sweep.seeds[index],
            wall_s,
            failed: place.failed(),
            total: self.total,
            done: self.done,
            reused: self.counts.reused,
        });
    }

    /// Closes the point if it has what it needs; how many seeds it gets if it has not, and all that were given are done.
    fn after_look(&mut self, point: usize) -> Option<usize> {
        let open = self.open.get_mut(&point)?;
        if open.done < open.given {
            return None;
        }
        let failed = matches!(self.points[point].state, State::Failed(_));
        let settled = !failed
            && self.sweep.until.as_ref().is_some_and(|until| {
                // A group without the value (no transfers, for example) has none to wait for.
                let watched =
                    |column: &Vec<Option<f64>>| column.iter().copied().flatten().collect::<Vec<f64>>();
                let mut columns = open
                    .values
                    .iter()
                    .map(watched)
                    .filter(|values| !values.is_empty())
                    .peekable();
                columns.peek().is_some() && columns.all(|values| until.settled(&values, self.looks.len()))
            });
        open.look += 1;
        match self.looks.get(open.look) {
            Some(&more) if !settled && !failed => Some(more),
            _ => {
                // What is not needed is not to be done.
                self.total -= (self.sweep.seeds.len() - open.given) as u64;
                self.open.remove(&point);
                let state = &mut self.points[point].state;
                if *state == State::Open {
                    *state = match (&self.sweep.until, settled) {
                        (Some(_), false) => State::Wide,
                        _ => State::Done,
                    };
                }
                None
            }
        }
    }
}

/// How long a task for another process should take (s): long beside what it costs to send it, short beside a sweep.
const TASK_S: f64 = 0.5;
/// Most units of a task.
const MOST_UNITS: usize = 1000;

impl Swept {
    /// Brings the journal of a complete sweep into the order of points and seeds.
    ///
    /// # Errors
    /// What the file system says.
    pub fn put_in_order(&mut self, journal: &Journal) -> io::Result<()> {
        if self.interrupted {
            return Ok(());
        }
        let there = |place: &&mut Place| place.is_some();
        let mut places: Vec<&mut Place> = self
            .points
            .iter_mut()
            .flat_map(|point| &mut point.places)
            .filter(there)
            .collect();
        let mut list: Vec<Place> = places.iter().map(|place| **place).collect();
        journal.bring_into_order(&mut list)?;
        for (place, new) in places.iter_mut().zip(list) {
            **place = new;
        }
        Ok(())
    }
}
