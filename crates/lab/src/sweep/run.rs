//! The sweep on the threads of this machine.

use super::driver::{Driver, ExecuteError, Step, Swept};
use super::work::{Unit, Worker};
use super::{Journal, Sweep};
use crate::run::Engine;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Shared<'a> {
    driver: Driver<&'a Sweep, &'a Journal>,
    error: Option<ExecuteError>,
}

struct Scheduler<'a> {
    shared: Mutex<Shared<'a>>,
    wake: Condvar,
    stop: &'a AtomicBool,
    progress: &'a (dyn Fn(&Step) + Sync),
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
    let worker = Worker::new(sweep);
    let scheduler = Scheduler {
        shared: Mutex::new(Shared {
            driver: Driver::new(sweep, journal),
            error: None,
        }),
        wake: Condvar::new(),
        stop,
        progress,
    };
    pool.broadcast(|_| {
        while let Some(unit) = scheduler.next() {
            let done = worker.run(unit, stop, engine);
            let mut shared = scheduler.shared();
            // Progress is told under the lock: whoever listens hears the counts in order.
            if let Err(error) = shared.driver.enter(done, &mut |step| progress(step)) {
                shared.error.get_or_insert(error);
            }
            scheduler.wake.notify_all();
        }
    });
    let shared = scheduler
        .shared
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match shared.error {
        Some(error) => Err(error),
        None => Ok(shared.driver.finish()),
    }
}

impl<'a> Scheduler<'a> {
    fn shared(&self) -> MutexGuard<'_, Shared<'a>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Unit> {
        let mut shared = self.shared();
        loop {
            if self.stop.load(Ordering::Relaxed) || shared.error.is_some() {
                self.wake.notify_all();
                return None;
            }
            match shared.driver.take(1, &mut |step| (self.progress)(step)) {
                Ok(units) => {
                    if let Some(unit) = units.into_iter().next() {
                        return Some(unit);
                    }
                }
                Err(error) => {
                    shared.error = Some(error.into());
                    continue;
                }
            }
            if shared.driver.is_done() {
                self.wake.notify_all();
                return None;
            }
            shared = self.wake.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
