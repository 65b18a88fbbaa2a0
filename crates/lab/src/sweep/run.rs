//! Which run comes next, on which thread, and what is kept of it.
//!
//! A task is one point with one seed: all of its variants, one after the other, because users who are held to the requests of the
//! first variant need its run. Threads take tasks point by point; a point is resolved by the thread that begins it and forgotten
//! when its last seed is done, so memory is that of the points under way. With a rule of stopping a point gets more seeds after each
//! look that finds its interval too wide.

use super::Sweep;
use super::data::{self, Scene};
use super::journal::{Journal, Key, Outcome, Value};
use super::stopping::looks;
use crate::memory;
use crate::result::RunData;
use crate::run::{Engine, Job, Store};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// A task that is done.
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
    /// Tasks of all points, as far as it is known: a rule of stopping leaves some out.
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

/// A point that was begun.
#[derive(Clone, Debug)]
pub struct Point {
    /// How far it is.
    pub state: State,
    /// Mechanisms that do not apply there, each with its reason.
    pub inapplicable: String,
    /// Where its outcomes are in the journal, in the order of the seeds.
    pub places: Vec<u64>,
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
    /// Time that the computed runs took, added up over threads (s).
    pub busy_s: f64,
    /// Whether it was stopped before all were done.
    pub interrupted: bool,
}

/// A point that is under way, as a thread needs it.
struct Prepared {
    jobs: Vec<Job>,
    scenes: Vec<Scene>,
    identity: blake3::Hash,
    inapplicable: String,
}

impl Prepared {
    fn of(sweep: &Sweep, point: usize) -> Result<Prepared, String> {
        let plan = sweep
            .plan(&sweep.points.setting(point))
            .map_err(|error| error.message.to_string())?;
        let jobs = plan.jobs();
        let scenes: Vec<Scene> = plan
            .variants
            .iter()
            .map(|variant| Scene::of(variant, &plan.described))
            .collect();
        let mut hasher = blake3::Hasher::new();
        for (job, scene) in jobs.iter().zip(&scenes) {
            for text in [job.name.as_str(), job.identity.as_str()]
                .into_iter()
                .chain(scene.words())
            {
                hasher.update(text.as_bytes());
                hasher.update(&[0]);
            }
            hasher.update(&[1]);
        }
        let missing = plan.inapplicable.iter();
        let missing: Vec<String> = missing
            .map(|one| format!("{}: {}", one.name, one.reason))
            .collect();
        Ok(Prepared {
            jobs,
            scenes,
            identity: hasher.finalize(),
            inapplicable: missing.join("; "),
        })
    }

    fn key(&self, seed: u64) -> Key {
        let text = Store::key(&self.identity.to_hex(), seed);
        let mut key = Key::default();
        let hash = blake3::hash(text.as_bytes());
        key.copy_from_slice(&hash.as_bytes()[..16]);
        key
    }

    /// Runs all variants with this seed; `None` if it was stopped.
    fn run(&self, seed: u64, stop: &AtomicBool, engine: &Engine<'_>) -> Result<Option<Outcome>, Failure> {
        let (mut runs, mut links) = (Vec::new(), Vec::new());
        let mut first: Option<Arc<RunOutput>> = None;
        for (job, scene) in self.jobs.iter().zip(&self.scenes) {
            let simulate = |spec: &Spec| -> Result<Option<Arc<RunOutput>>, Failure> {
                let spec = Spec { seed, ..spec.clone() };
                let output = engine(&spec, stop).map_err(|reason| Failure {
                    reason: format!("variant `{}`, seed {seed}: {reason}", job.name),
                    memory: memory::was_reached(),
                })?;
                Ok((!output.interrupted).then(|| Arc::new(output)))
            };
            let spec = match (&job.demand, &first) {
                (None, _) => None,
                (Some(demand), Some(first)) if demand.identity == self.jobs[0].identity => {
                    Some(demand.applied_to(&job.spec, first))
                }
                (Some(demand), _) => match simulate(&demand.spec)? {
                    Some(baseline) => Some(demand.applied_to(&job.spec, &baseline)),
                    None => return Ok(None),
                },
            };
            let Some(output) = simulate(spec.as_ref().unwrap_or(&job.spec))? else {
                return Ok(None);
            };
            first.get_or_insert_with(|| Arc::clone(&output));
            let run = RunData { seed, output };
            scene.rows(&job.name, &run, &mut runs, &mut links);
        }
        Ok(Some(Outcome::Rows { runs, links }))
    }
}

/// Why a run failed, and whether memory was the cause.
struct Failure {
    reason: String,
    memory: bool,
}

/// What a thread does next.
enum Next {
    /// Resolve this point.
    Begin(usize),
    /// Run this point with the seed of this index.
    Run(usize, usize, Arc<Prepared>),
}

/// A point under way.
struct Open {
    prepared: Arc<Prepared>,
    /// Seeds that were given out.
    given: usize,
    /// Those that are done.
    done: usize,
    /// Index of the next look.
    look: usize,
    /// Watched values, by column of group and variant, then seed.
    values: Vec<Vec<Option<f64>>>,
}

struct Shared {
    next_point: usize,
    ready: VecDeque<(usize, usize)>,
    open: std::collections::BTreeMap<usize, Open>,
    underway: usize,
    points: Vec<Point>,
    counts: Counts,
    done: u64,
    total: u64,
    busy_s: f64,
    error: Option<io::Error>,
    memory: Option<String>,
}

struct Scheduler<'a> {
    sweep: &'a Sweep,
    looks: Vec<usize>,
    shared: Mutex<Shared>,
    wake: Condvar,
}

/// Why a sweep ended without its data set.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The threads could not be made.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// A finished run could not be kept.
    #[error("cannot write the journal of the sweep: {0}")]
    Journal(io::Error),
    /// Memory came near to its ceiling.
    #[error("{0}")]
    Memory(String),
}

/// Runs the sweep on `threads` threads (0: one per core). What is finished is in the journal, whatever ends it.
///
/// # Errors
/// The journal cannot be written, memory is not enough, or threads cannot be started. Runs that fail are none: they are kept with their reason.
pub fn execute(
    sweep: &Sweep,
    journal: &Journal,
    threads: usize,
    stop: &AtomicBool,
    engine: &Engine<'_>,
    progress: &(dyn Fn(&Step) + Sync),
) -> Result<Swept, ExecuteError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| ExecuteError::Threads(error.to_string()))?;
    let started = Instant::now();
    let seeds = sweep.seeds.len();
    let looks = match sweep.until {
        Some(_) => looks(seeds),
        None => vec![seeds],
    };
    let scheduler = Scheduler {
        sweep,
        shared: Mutex::new(Shared {
            next_point: 0,
            ready: VecDeque::new(),
            open: Default::default(),
            underway: 0,
            points: vec![
                Point {
                    state: State::Open,
                    inapplicable: String::new(),
                    places: Vec::new(),
                };
                sweep.points.len()
            ],
            counts: Counts::default(),
            done: 0,
            total: (sweep.points.len() * seeds) as u64,
            busy_s: 0.0,
            error: None,
            memory: None,
        }),
        looks,
        wake: Condvar::new(),
    };
    pool.broadcast(|_| {
        while let Some(next) = scheduler.take(stop) {
            match next {
                Next::Begin(point) => scheduler.begun(point, Prepared::of(sweep, point)),
                Next::Run(point, index, prepared) => {
                    scheduler.run(point, index, &prepared, journal, stop, engine, progress);
                }
            }
        }
    });
    let shared = scheduler
        .shared
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = shared.error {
        return Err(ExecuteError::Journal(error));
    }
    if let Some(reason) = shared.memory {
        return Err(ExecuteError::Memory(reason));
    }
    Ok(Swept {
        interrupted: shared.points.iter().any(|point| point.state == State::Open),
        points: shared.points,
        counts: shared.counts,
        wall_s: started.elapsed().as_secs_f64(),
        busy_s: shared.busy_s,
    })
}

impl Scheduler<'_> {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, stop: &AtomicBool) -> Option<Next> {
        let mut shared = self.shared();
        loop {
            if stop.load(Ordering::Relaxed) || shared.error.is_some() || shared.memory.is_some() {
                self.wake.notify_all();
                return None;
            }
            if let Some((point, index)) = shared.ready.pop_front() {
                shared.underway += 1;
                let prepared = Arc::clone(&shared.open[&point].prepared);
                return Some(Next::Run(point, index, prepared));
            }
            if shared.next_point < self.sweep.points.len() {
                let point = shared.next_point;
                shared.next_point += 1;
                shared.underway += 1;
                return Some(Next::Begin(point));
            }
            if shared.underway == 0 {
                return None;
            }
            shared = self.wake.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn begun(&self, point: usize, prepared: Result<Prepared, String>) {
        let mut shared = self.shared();
        shared.underway -= 1;
        match prepared {
            Err(reason) => {
                shared.total -= self.sweep.seeds.len() as u64;
                shared.points[point].state = State::Failed(reason);
            }
            Ok(prepared) => {
                shared.points[point]
                    .inapplicable
                    .clone_from(&prepared.inapplicable);
                let first = self.looks[0];
                let open = Open {
                    prepared: Arc::new(prepared),
                    given: first,
                    done: 0,
                    look: 0,
                    values: Vec::new(),
                };
                shared.open.insert(point, open);
                shared.points[point].places = vec![u64::MAX; first];
                shared.ready.extend((0..first).map(|index| (point, index)));
            }
        }
        self.wake.notify_all();
    }

    #[expect(clippy::too_many_arguments, reason = "what a thread has in hand")]
    fn run(
        &self,
        point: usize,
        index: usize,
        prepared: &Prepared,
        journal: &Journal,
        stop: &AtomicBool,
        engine: &Engine<'_>,
        progress: &(dyn Fn(&Step) + Sync),
    ) {
        let seed = self.sweep.seeds[index];
        let key = prepared.key(seed);
        let begin = Instant::now();
        let (place, outcome, reused) = match journal.find(&key) {
            Some(place) => (Ok(place), journal.read(place).map(Some), true),
            None => match prepared.run(seed, stop, engine) {
                Ok(None) => (Ok(0), Ok(None), false),
                Err(failure) if failure.memory => {
                    let mut shared = self.shared();
                    shared.underway -= 1;
                    let reason = format!("{}: {}", self.sweep.points.label(point), failure.reason);
                    shared.memory.get_or_insert(reason);
                    self.wake.notify_all();
                    return;
                }
                Err(failure) => {
                    let outcome = Outcome::Failed(failure.reason);
                    (journal.append(&key, &outcome), Ok(Some(outcome)), false)
                }
                Ok(Some(outcome)) => (journal.append(&key, &outcome), Ok(Some(outcome)), false),
            },
        };
        let wall_s = if reused {
            0.0
        } else {
            begin.elapsed().as_secs_f64()
        };
        let mut shared = self.shared();
        shared.underway -= 1;
        let step = match (place, outcome) {
            (Err(error), _) | (_, Err(error)) => {
                shared.error.get_or_insert(error);
                None
            }
            (_, Ok(None)) => None,
            (Ok(place), Ok(Some(outcome))) => {
                shared.busy_s += wall_s;
                Some(self.finished(&mut shared, point, index, place, &outcome, reused, wall_s))
            }
        };
        self.wake.notify_all();
        // Under the lock: whoever listens hears the counts in order.
        if let Some(step) = step {
            progress(&step);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all that is known of a run")]
    fn finished(
        &self,
        shared: &mut Shared,
        point: usize,
        index: usize,
        place: u64,
        outcome: &Outcome,
        reused: bool,
        wall_s: f64,
    ) -> Step {
        let seeds = self.sweep.seeds.len();
        shared.points[point].places[index] = place;
        shared.done += 1;
        shared.counts.reused += u64::from(reused);
        shared.counts.computed += u64::from(!reused);
        let failed = match outcome {
            Outcome::Failed(reason) => {
                shared.counts.failed += 1;
                let state = &mut shared.points[point].state;
                if *state == State::Open {
                    *state = State::Failed(reason.clone());
                }
                true
            }
            Outcome::Rows { runs, .. } => {
                if let (Some(until), Some(open)) = (&self.sweep.until, shared.open.get_mut(&point)) {
                    for (column, value) in data::watched(until, runs).into_iter().enumerate() {
                        if open.values.len() <= column {
                            open.values.push(Vec::new());
                        }
                        let values = &mut open.values[column];
                        values.resize(values.len().max(index + 1), None);
                        values[index] = value;
                    }
                }
                false
            }
        };
        let Some(open) = shared.open.get_mut(&point) else {
            unreachable!("a point is open until its last seed is done")
        };
        open.done += 1;
        if open.done == open.given {
            let failed = matches!(shared.points[point].state, State::Failed(_));
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
                Some(&more) if !settled && !failed => {
                    let from = std::mem::replace(&mut open.given, more);
                    shared.points[point].places.resize(more, u64::MAX);
                    for index in (from..more).rev() {
                        shared.ready.push_front((point, index));
                    }
                }
                _ => {
                    // What is not needed is not to be done.
                    shared.total -= (seeds - open.given) as u64;
                    shared.open.remove(&point);
                    let state = &mut shared.points[point].state;
                    if *state == State::Open {
                        *state = match (&self.sweep.until, settled) {
                            (Some(_), false) => State::Wide,
                            _ => State::Done,
                        };
                    }
                }
            }
        }
        Step {
            point,
            seed: self.sweep.seeds[index],
            wall_s,
            failed,
            total: shared.total,
            done: shared.done,
            reused: shared.counts.reused,
        }
    }
}

/// A value of a row as the journal has it.
pub(super) fn owned(cell: crate::report::table::Cell<'_>) -> Value {
    use crate::report::table::Cell;
    match cell {
        Cell::Empty => Value::Empty,
        Cell::Text(text) => Value::Text(text.to_owned()),
        Cell::Integer(number) => Value::Integer(number),
        Cell::Number(number) => Value::Number(number),
    }
}
