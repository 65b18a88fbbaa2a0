//! Several batches on the same threads: when no run of one is left to begin, the next one begins.
//!
//! No thread idles until the last run of a batch ends. Batches begin in their order, so no more of them are under way than there are
//! threads, and what a batch returned is handed over by the thread that ended it.
//!
//! Within a batch runs begin seed by seed, those first that are expected to take longest. The last seeds, as many as there are threads,
//! are taken together, so that the last runs to begin are short ones. Runs that others take their demand from begin so many seeds ahead that
//! nobody waits for them. Jobs that are the same run share it.

use super::demand::Shared;
use super::{Batch, Engine, Error, Finished, Job, Options, Progress, Store, expected_s, surroundings};
use crate::clock::Instant;
use crate::memory;
use crate::result::RunData;
use fleetfoot_sim::spec::Spec;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A batch among others: every job with every seed.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// What to run.
    pub jobs: &'a [Job],
    /// Seeds of each.
    pub seeds: &'a [u64],
}

/// Runs all parts. `progress` hears of each run that is done, with the index of its part and the counts of all parts; `finished` takes
/// what a part returned, on the thread that ended it and in the order in which parts end, and may end the work. A part without runs is
/// finished when it would begin. `stop` ends the work: parts that are not complete are handed over as interrupted.
///
/// # Errors
/// Of the first part with an error, the first that a run met in the order of jobs within seeds. Parts that were not under way then
/// are not begun.
pub fn execute_parts(
    parts: &[Part<'_>],
    options: &Options,
    stop: &AtomicBool,
    engine: &Engine<'_>,
    progress: &(dyn Fn(usize, &Progress) + Sync),
    finished: &(dyn Fn(usize, Batch) -> ControlFlow<()> + Sync),
) -> Result<(), Error> {
    let threads = match options.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    let under_way: Vec<UnderWay<'_>> = parts.iter().map(UnderWay::new).collect();
    let order = parts.iter().enumerate();
    let work = Work {
        order: order
            .flat_map(|(index, part)| order_of(part, threads).into_iter().map(move |task| (index, task)))
            .collect(),
        parts: under_way,
        next: AtomicUsize::new(0),
        ended: AtomicBool::new(false),
        failed: Mutex::new(None),
        told: Mutex::new(Told::default()),
        total: parts.iter().map(|part| part.runs() as u64).sum(),
        options,
        stop,
        engine,
        progress,
        finished,
    };
    on_threads(threads, || work.work())?;
    let failed = work.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, error)| Err(error))
}

/// Calls `work` on each of so many threads; in a browser the caller does it alone.
fn on_threads(threads: usize, work: impl Fn() + Sync) -> Result<(), Error> {
    if cfg!(target_family = "wasm") {
        work();
        return Ok(());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::Threads(error.to_string()))?;
    pool.broadcast(|_| work());
    Ok(())
}

/// The runs of a part in the order in which they begin: seed by seed as they are numbered, `None` for a part without runs.
pub(super) fn order_of(part: &Part<'_>, threads: usize) -> Vec<Option<usize>> {
    let (jobs, seeds) = (part.jobs.len(), part.seeds.len());
    if part.runs() == 0 {
        return vec![None];
    }
    let wanted = part.jobs.iter().filter_map(|job| job.demand.as_ref());
    let wanted: BTreeSet<&String> = wanted.map(|demand| &demand.identity).collect();
    let of_jobs: Vec<(f64, bool)> = part
        .jobs
        .iter()
        .map(|job| (expected_s(&job.spec), wanted.contains(&job.identity)))
        .collect();
    let key = |task: usize| {
        let (expected_s, is_wanted) = of_jobs[task % jobs];
        let ahead = if is_wanted { threads } else { 0 };
        let begins = (task / jobs).min(seeds.saturating_sub(threads)) + threads - ahead;
        (begins, expected_s)
    };
    let mut order: Vec<usize> = (0..part.runs()).collect();
    order.sort_by(|&one, &other| {
        let ((begins, expected_s), (begins_too, expected_too_s)) = (key(one), key(other));
        begins
            .cmp(&begins_too)
            .then(expected_too_s.total_cmp(&expected_s))
    });
    order.into_iter().map(Some).collect()
}

impl Part<'_> {
    /// How many runs.
    fn runs(&self) -> usize {
        self.jobs.len() * self.seeds.len()
    }
}

/// What all threads work on.
struct Work<'a> {
    parts: Vec<UnderWay<'a>>,
    /// What begins next, and after it: part and task.
    order: Vec<(usize, Option<usize>)>,
    next: AtomicUsize,
    /// Nothing more is to begin.
    ended: AtomicBool,
    /// The first part that failed, and its error.
    failed: Mutex<Option<(usize, Error)>>,
    told: Mutex<Told>,
    total: u64,
    options: &'a Options,
    stop: &'a AtomicBool,
    engine: &'a Engine<'a>,
    progress: &'a (dyn Fn(usize, &Progress) + Sync),
    finished: &'a (dyn Fn(usize, Batch) -> ControlFlow<()> + Sync),
}

/// Runs that whoever listens has heard of.
#[derive(Default)]
struct Told {
    done: u64,
    reused: u64,
}

/// A run as it ended: none if it was stopped.
type Ended = Result<Option<RunData>, Error>;

/// A part with what is done of it.
struct UnderWay<'a> {
    part: Part<'a>,
    shared: Shared,
    /// Of each job, whether an earlier one is the same run.
    repeats: Vec<bool>,
    begun: OnceLock<Instant>,
    /// Runs by number; empty before the first is done.
    runs: Mutex<Vec<Option<Ended>>>,
    /// Tasks that are not done.
    left: AtomicUsize,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    done: AtomicU64,
    reused: AtomicU64,
    nanos: AtomicU64,
    simulated: AtomicU64,
}

impl<'a> UnderWay<'a> {
    fn new(part: &Part<'a>) -> UnderWay<'a> {
        UnderWay {
            part: *part,
            shared: Shared::of(part.jobs, part.seeds),
            repeats: repeats(part.jobs),
            begun: OnceLock::new(),
            runs: Mutex::default(),
            left: AtomicUsize::new(part.runs().max(1)),
            counters: Counters::default(),
        }
    }

    /// What the part returned.
    fn batch(&self) -> Result<Batch, Error> {
        self.shared.forget();
        let mut runs = vec![Vec::new(); self.part.jobs.len()];
        let mut interrupted = false;
        for (task, run) in std::mem::take(&mut *locked(&self.runs)).into_iter().enumerate() {
            match run.transpose()?.flatten() {
                Some(run) => runs[task % self.part.jobs.len()].push(run),
                None => interrupted = true,
            }
        }
        let counters = &self.counters;
        let reused = counters.reused.load(Ordering::Relaxed);
        Ok(Batch {
            runs,
            computed: counters.done.load(Ordering::Relaxed) - reused,
            reused,
            cpu_s: counters.nanos.load(Ordering::Relaxed) as f64 / 1e9,
            wall_s: self
                .begun
                .get()
                .map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
            simulated_s: counters.simulated.load(Ordering::Relaxed) as f64 / 1e9,
            interrupted,
        })
    }
}

/// Ends the work when a thread panics: what others would still begin is lost in any case.
struct EndsIfPanicking<'a>(&'a AtomicBool);

impl Drop for EndsIfPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Work<'_> {
    /// Takes what is next until nothing is left.
    fn work(&self) {
        let _guard = EndsIfPanicking(&self.ended);
        while !self.ended.load(Ordering::Relaxed)
            && let Some(&(index, task)) = self.order.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            let under_way = &self.parts[index];
            under_way.begun.get_or_init(Instant::now);
            if let Some(task) = task {
                let ended = self.run(index, task);
                let mut runs = locked(&under_way.runs);
                if runs.is_empty() {
                    runs.resize_with(under_way.part.runs(), || None);
                }
                runs[task] = Some(ended);
            }
            if under_way.left.fetch_sub(1, Ordering::AcqRel) > 1 {
                continue;
            }
            match under_way.batch() {
                Ok(batch) => {
                    if (self.finished)(index, batch).is_break() {
                        self.ended.store(true, Ordering::Relaxed);
                    }
                }
                Err(error) => {
                    self.ended.store(true, Ordering::Relaxed);
                    let mut failed = locked(&self.failed);
                    if failed.as_ref().is_none_or(|(earlier, _)| index < *earlier) {
                        *failed = Some((index, error));
                    }
                }
            }
        }
    }

    /// A job with a seed.
    fn run(&self, index: usize, task: usize) -> Ended {
        let UnderWay {
            part,
            shared,
            repeats,
            counters,
            ..
        } = &self.parts[index];
        let number = task % part.jobs.len();
        let (job, seed) = (&part.jobs[number], part.seeds[task / part.jobs.len()]);
        if self.stop.load(Ordering::Relaxed) || memory::was_reached() {
            return Ok(None);
        }
        let begin = Instant::now();
        let finished = |identity: &str, spec: &Spec| {
            shared.get(identity, seed, || self.one(&job.name, seed, identity, spec))
        };
        let spec = match &job.demand {
            None => None,
            Some(demand) => match finished(&demand.identity, &demand.spec)? {
                Some(baseline) => Some(demand.applied_to(&job.spec, &baseline.output)),
                None => return Ok(None),
            },
        };
        let Some(Finished { output, reused }) = finished(&job.identity, spec.as_ref().unwrap_or(&job.spec))?
        else {
            return Ok(None);
        };
        // Whichever of the same jobs came first made it: the first counts it.
        let reused = reused || repeats[number];
        let wall_s = if reused {
            0.0
        } else {
            begin.elapsed().as_secs_f64()
        };
        counters.nanos.fetch_add((wall_s * 1e9) as u64, Ordering::Relaxed);
        counters.done.fetch_add(1, Ordering::Relaxed);
        if reused {
            counters.reused.fetch_add(1, Ordering::Relaxed);
        } else {
            counters
                .simulated
                .fetch_add(output.ended.as_nanos(), Ordering::Relaxed);
        }
        // One at a time: whoever listens hears the counts in order.
        let mut told = locked(&self.told);
        told.done += 1;
        told.reused += u64::from(reused);
        let progress = Progress {
            done: told.done,
            total: self.total,
            reused: told.reused,
            job: number,
            variant: job.name.clone(),
            seed,
            wall_s,
        };
        (self.progress)(index, &progress);
        drop(told);
        Ok(Some(RunData { seed, output }))
    }

    /// The run with this identity and seed: the one that is kept, or a new one.
    fn one(&self, name: &str, seed: u64, identity: &str, spec: &Spec) -> Result<Option<Finished>, Error> {
        let Options { store, fresh, .. } = self.options;
        let key = Store::key(&surroundings::identity_in(spec.world, identity), seed);
        let kept = match store {
            Some(store) if !fresh => store.load(&key),
            _ => None,
        };
        if let Some(output) = kept {
            return Ok(Some(Finished {
                output: Arc::new(output),
                reused: true,
            }));
        }
        let spec = Spec { seed, ..spec.clone() };
        let output = (self.engine)(&spec, self.stop).map_err(|reason| {
            let variant = name.to_owned();
            match memory::was_reached() {
                true => Error::Memory {
                    variant,
                    seed,
                    reason,
                },
                false => Error::Engine {
                    variant,
                    seed,
                    reason,
                },
            }
        })?;
        if output.interrupted {
            return Ok(None);
        }
        if let Some(store) = store {
            store
                .save(&key, &output)
                .map_err(|error| Error::Store(store.place(&key).display().to_string(), error))?;
        }
        Ok(Some(Finished {
            output: Arc::new(output),
            reused: false,
        }))
    }
}

/// Of each job, whether an earlier one is the same run.
fn repeats(jobs: &[Job]) -> Vec<bool> {
    let mut seen = BTreeSet::new();
    jobs.iter().map(|job| !seen.insert(&job.identity)).collect()
}

/// What a thread that panicked held is not half made.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
