//! Work that takes long: in a thread of its own, with the interpreter released; the thread that called hears of progress and
//! of Ctrl-C.

use crate::error::{RunError, guarded};
use fleetfoot_lab::memory;
use fleetfoot_lab::run::{Batch, Job, Options, Progress, execute, simulate};
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long Ctrl-C waits at most for its turn.
const TURN: Duration = Duration::from_millis(50);

/// What the work says of itself, and whether it shall stop.
pub(crate) struct Talk<'a> {
    /// Set when it shall stop: what is finished is kept.
    pub(crate) stop: &'a AtomicBool,
    sender: Option<Sender<Event>>,
}

/// A run finished, or a part of other work.
struct Event {
    step: String,
    progress: Progress,
}

impl Talk<'_> {
    /// Tells whoever listens.
    pub(crate) fn say(&self, step: &str, progress: &Progress) {
        if let Some(sender) = &self.sender {
            // Nobody listens any more once the work shall stop.
            let _ = sender.send(Event {
                step: step.to_owned(),
                progress: progress.clone(),
            });
        }
    }

    /// Runs jobs with seeds, which is a step of the work called `step`.
    pub(crate) fn run(
        &self,
        step: &str,
        jobs: &[Job],
        seeds: &[u64],
        options: &Options,
    ) -> Result<Batch, fleetfoot_lab::run::Error> {
        execute(jobs, seeds, options, self.stop, &simulate, &|progress| {
            self.say(step, progress);
        })
    }
}

/// Sets the memory that the process may take (bytes): runs that would take more are refused, or end.
#[pyfunction]
pub(crate) fn limit_memory(size: u64) {
    memory::limit_to(size);
}

/// Does `work`, and calls `progress` with (step, variant, seed, done, total, reused, seconds) for every finished run.
///
/// # Errors
/// Those of `work`; what `progress` raises, and `KeyboardInterrupt`, both of which end the work.
pub(crate) fn attended<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Talk<'_>) -> PyResult<T> + Send,
) -> PyResult<T> {
    memory::look_again();
    let stop = AtomicBool::new(false);
    let (sender, receiver) = channel();
    let (ended, receiver) = (sender.clone(), Mutex::new(receiver));
    let sender = progress.map(|_| sender);
    let talk = Talk { stop: &stop, sender };
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let made = guarded(|| work(&talk));
            drop((talk, ended));
            made
        });
        let mut failed = None;
        loop {
            let event = py.detach(|| {
                let receiver = receiver.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                receiver.recv_timeout(TURN)
            });
            let heard = match event {
                Ok(event) => heard(progress.filter(|_| failed.is_none()), &event),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(error) = heard.and_then(|()| py.check_signals()) {
                stop.store(true, Ordering::Relaxed);
                failed.get_or_insert(error);
            }
        }
        let made = py.detach(|| worker.join());
        let made =
            made.unwrap_or_else(|_| Err(RunError::new_err("a thread ended in the middle of its work")));
        failed.map_or(made, Err)
    })
}

fn heard(progress: Option<&Bound<'_, PyAny>>, event: &Event) -> PyResult<()> {
    let Some(progress) = progress else {
        return Ok(());
    };
    let Progress {
        done,
        total,
        reused,
        variant,
        seed,
        wall_s,
        ..
    } = &event.progress;
    let words = (
        event.step.as_str(),
        variant.as_str(),
        seed,
        done,
        total,
        reused,
        wall_s,
    );
    progress.call1(words).map(drop)
}
