//! Sweeps: what is swept, a sweep under way in its folder, and the worker that runs parts of it in any process.

use crate::convert;
use crate::error::{guarded, of_folder, of_scenario, usage};
use crate::scenario::Scenario;
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::run::simulate;
use fleetfoot_lab::sweep;
use fleetfoot_lab::sweep::{
    Axis, Driver, ExecuteError, JOURNAL, Journal, Sampling, Shown, Step, Swept, Unit, Until, Wanted,
    document, drawings, execute, written,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pyo3::import_exception!(fleetfoot.errors, RunError);

/// How long Ctrl-C and progress wait at most for their turn.
const TURN: Duration = Duration::from_millis(50);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_run(error: &ExecuteError) -> PyErr {
    RunError::new_err(format!(
        "{error}. Finished runs are kept: the same call goes on behind them"
    ))
}

/// What is swept: a scenario, its points, variants and seeds.
#[pyclass(frozen, module = "fleetfoot._native")]
pub(crate) struct Sweep {
    inner: Arc<sweep::Sweep>,
}

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (scenario, lists, ranges, *, sample, only, places, seed, seeds, until))]
    #[expect(clippy::too_many_arguments, reason = "the flags of the program")]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        lists: Vec<(String, Vec<Bound<'_, PyAny>>)>,
        ranges: Vec<String>,
        sample: Option<&str>,
        only: Vec<String>,
        places: Vec<String>,
        seed: Option<u64>,
        seeds: Option<u32>,
        until: Option<&str>,
    ) -> PyResult<Sweep> {
        let mut axes = Vec::new();
        for (path, values) in lists {
            let values = values.iter().map(|value| convert::to_toml(&path, value));
            let values = values.collect::<PyResult<_>>()?;
            axes.push(Axis::listed(path, values).map_err(|mistake| of_scenario(&mistake))?);
        }
        for text in &ranges {
            axes.push(Axis::range(text).map_err(|mistake| of_scenario(&mistake))?);
        }
        let sample = sample.map(Sampling::parse).transpose();
        let until = until.map(Until::of_runs).transpose();
        let wanted = Wanted {
            axes,
            sample: sample
                .map_err(|message| usage(format!("sample: {message}")))?
                .unwrap_or_default(),
            only,
            places,
            seed,
            seeds,
            until: until.map_err(|message| usage(format!("until: {message}")))?,
        };
        let scenario = scenario.inner.clone();
        let inner = py.detach(|| guarded(|| wanted.of(scenario).map_err(|mistake| of_scenario(&mistake))))?;
        Ok(Sweep {
            inner: Arc::new(inner),
        })
    }

    #[getter]
    fn title(&self) -> &str {
        self.inner.scenario.title()
    }

    /// Number of points.
    #[getter]
    fn points(&self) -> usize {
        self.inner.points.len()
    }

    /// Runs, if every point takes all seeds.
    #[getter]
    fn runs(&self) -> u64 {
        self.inner.most_runs()
    }

    /// Variants of each point, the scenario as described among them.
    #[getter]
    fn variants(&self) -> usize {
        self.inner.variants()
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.inner.seeds.clone()
    }

    /// Path, column of the tables and unit of each axis.
    #[getter]
    fn axes(&self) -> Vec<(String, String, Option<String>)> {
        let points = &self.inner.points;
        let axes = points.axes().iter().enumerate();
        axes.map(|(number, axis)| {
            let unit = points.unit(number).map(str::to_owned);
            (axis.path.clone(), points.name(number), unit)
        })
        .collect()
    }

    /// The values of a point, one for each axis.
    fn values(&self, py: Python<'_>, point: usize) -> PyResult<Vec<Py<PyAny>>> {
        if point >= self.inner.points.len() {
            return Err(pyo3::exceptions::PyIndexError::new_err("there is no such point"));
        }
        let values = self.inner.points.values(point);
        values.iter().map(|value| convert::of_toml(py, value)).collect()
    }

    /// Identity: scenario, points, variants, seeds, rule of stopping.
    fn hash(&self) -> PyResult<String> {
        self.inner.hash().map_err(|mistake| of_scenario(&mistake))
    }

    /// The sweep as it travels to workers.
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.inner.to_bytes().map_err(|mistake| of_scenario(&mistake))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// A sweep under way: its folder, and what is finished.
#[pyclass(frozen, module = "fleetfoot._native")]
pub(crate) struct Sweeping {
    sweep: Arc<sweep::Sweep>,
    shown: Shown,
    folder: PathBuf,
    work: Mutex<Work>,
}

#[derive(Default)]
struct Work {
    journal: Option<Arc<Journal>>,
    driver: Option<Driver<Arc<sweep::Sweep>, Arc<Journal>>>,
    underway: BTreeMap<u64, Vec<Unit>>,
    next: u64,
    swept: Option<Swept>,
    progress: Counted,
}

/// Runs of points: of all, done, kept from before, failed.
type Counted = (u64, u64, u64, u64);

fn count(counted: &mut Counted, step: &Step) {
    *counted = (
        step.total,
        step.done,
        step.reused,
        counted.3 + u64::from(step.failed),
    );
}

impl Work {
    fn journal(&self) -> PyResult<Arc<Journal>> {
        let closed = || RunError::new_err("this sweep is finished");
        self.journal.clone().ok_or_else(closed)
    }
}

#[pymethods]
impl Sweeping {
    /// Claims the folder and opens the journal in it.
    #[new]
    #[pyo3(signature = (sweep, *, show, axes, out, force, fresh, retry))]
    #[expect(clippy::too_many_arguments, reason = "the flags of the program")]
    fn new(
        py: Python<'_>,
        sweep: &Sweep,
        show: Vec<String>,
        axes: Vec<String>,
        out: Option<PathBuf>,
        force: bool,
        fresh: bool,
        retry: bool,
    ) -> PyResult<Sweeping> {
        let sweep = Arc::clone(&sweep.inner);
        let shown = Shown::of(&sweep, &show, &axes).map_err(|mistake| of_scenario(&mistake))?;
        py.detach(|| {
            let hash = sweep.hash().map_err(|mistake| of_scenario(&mistake))?;
            let folder =
                Folder::claim(out.as_deref(), sweep.scenario.title(), &hash, force).map_err(of_folder)?;
            let journal = Arc::new(opened(&folder, retry, fresh)?);
            Ok(Sweeping {
                work: Mutex::new(Work {
                    driver: Some(Driver::new(Arc::clone(&sweep), Arc::clone(&journal))),
                    journal: Some(journal),
                    ..Work::default()
                }),
                sweep,
                shown,
                folder,
            })
        })
    }

    #[getter]
    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Runs of points: of all, done, kept from before, failed.
    #[getter]
    fn progress(&self) -> Counted {
        locked(&self.work).progress
    }

    /// Runs everything on threads of this process (0: one per core), and calls `progress` now and then.
    fn run(&self, py: Python<'_>, jobs: usize, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let journal = locked(&self.work).journal()?;
        let stop = AtomicBool::new(false);
        let (ended, wake) = (Mutex::new(false), Condvar::new());
        let made = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let step = |step: &Step| count(&mut locked(&self.work).progress, step);
                let made = guarded(|| {
                    execute(&self.sweep, &journal, jobs, &stop, &simulate, &step)
                        .map_err(|error| of_run(&error))
                });
                *locked(&ended) = true;
                wake.notify_all();
                made
            });
            let mut failed = None;
            let mut told = None;
            loop {
                let over = py.detach(|| {
                    let ended = locked(&ended);
                    if *ended {
                        return true;
                    }
                    let turn = wake.wait_timeout(ended, TURN);
                    *turn.unwrap_or_else(PoisonError::into_inner).0
                });
                let counted = self.progress();
                let heard = match progress.filter(|_| failed.is_none() && told != Some(counted)) {
                    Some(progress) => progress.call0().map(drop),
                    None => Ok(()),
                };
                told = Some(counted);
                if let Err(error) = heard.and_then(|()| py.check_signals()) {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
                if over {
                    break;
                }
            }
            let made = py.detach(|| worker.join());
            let made =
                made.unwrap_or_else(|_| Err(RunError::new_err("a thread ended in the middle of its work")));
            failed.map_or(made, Err)
        })?;
        let mut work = locked(&self.work);
        work.driver = None;
        work.swept = Some(made);
        Ok(())
    }

    /// A task for one of so many workers: its number and its bytes. None: there is none now.
    fn take<'py>(&self, py: Python<'py>, workers: usize) -> PyResult<Option<(u64, Bound<'py, PyBytes>)>> {
        let taken = py.detach(|| {
            let mut work = locked(&self.work);
            let Work {
                driver: Some(driver),
                progress,
                ..
            } = &mut *work
            else {
                return Ok(None);
            };
            let taken = driver.take_bytes(workers, &mut |step| count(progress, step));
            let Some((units, bytes)) = taken.map_err(|error| of_run(&error.into()))? else {
                return Ok::<_, PyErr>(None);
            };
            let number = work.next;
            work.next += 1;
            work.underway.insert(number, units);
            Ok(Some((number, bytes)))
        })?;
        Ok(taken.map(|(number, bytes)| (number, PyBytes::new(py, &bytes))))
    }

    /// Enters what a worker returned for the task of this number.
    fn enter(&self, py: Python<'_>, task: u64, result: &[u8]) -> PyResult<()> {
        py.detach(|| {
            let mut work = locked(&self.work);
            let Work {
                driver: Some(driver),
                underway,
                progress,
                ..
            } = &mut *work
            else {
                return Ok(());
            };
            let units = underway.remove(&task).unwrap_or_default();
            driver
                .enter_bytes(&units, result, &mut |step| count(progress, step))
                .map_err(|error| of_run(&error))
        })
    }

    /// Takes a task back that no worker will finish.
    fn lost(&self, task: u64) {
        let mut work = locked(&self.work);
        let units = work.underway.remove(&task).unwrap_or_default();
        if let Some(driver) = &mut work.driver {
            driver.give_back(&units);
        }
    }

    /// Writes the data set, and closes the folder. Returns names of the tables, the best point of each measure in words, and the document
    /// of the sweep as JSON.
    fn finish(&self, py: Python<'_>, command: &str) -> PyResult<(Vec<String>, Vec<String>, String)> {
        py.detach(|| {
            let mut work = locked(&self.work);
            let journal = work.journal()?;
            let driver = work.driver.take();
            let swept = work.swept.take().or_else(|| driver.map(Driver::finish));
            let mut swept = swept.ok_or_else(|| RunError::new_err("this sweep is finished"))?;
            work.journal = None;
            guarded(|| {
                let made = written(
                    &self.folder,
                    &self.sweep,
                    &mut swept,
                    &journal,
                    &self.shown,
                    command,
                );
                let made = made.map_err(|error| {
                    RunError::new_err(format!(
                        "cannot write the data set in {}: {error}",
                        self.folder.display()
                    ))
                })?;
                let document = document(&self.sweep, &swept, Some(&made.tables)).to_string();
                Ok((made.tables, made.lines, document))
            })
        })
    }

    /// Closes the folder without writing the data set: what is finished is in the journal.
    fn close(&self) {
        *locked(&self.work) = Work::default();
    }
}

fn opened(folder: &Path, retry: bool, fresh: bool) -> PyResult<Journal> {
    let path = folder.join(JOURNAL);
    Journal::open(&path, retry, fresh).map_err(|error| usage(format!("{}: {error}", path.display())))
}

/// The figures of the report of a sweep that is in `folder`: titles and SVG.
#[pyfunction]
pub(crate) fn sweep_figures(
    py: Python<'_>,
    sweep: &Sweep,
    folder: PathBuf,
    show: Vec<String>,
    axes: Vec<String>,
) -> PyResult<Vec<(String, String)>> {
    let sweep = &sweep.inner;
    let shown = Shown::of(sweep, &show, &axes).map_err(|mistake| of_scenario(&mistake))?;
    py.detach(|| {
        guarded(|| {
            let journal = opened(&folder, false, false)?;
            let mut driver = Driver::new(Arc::clone(sweep), &journal);
            let failed = |error: std::io::Error| RunError::new_err(error.to_string());
            // All that is there is entered; what is handed out is not run.
            while !driver.take(usize::MAX, &mut |_| ()).map_err(failed)?.is_empty() {}
            drawings(sweep, &driver.finish(), &journal, &shown).map_err(failed)
        })
    })
}

/// Runs tasks of a sweep that was described elsewhere. May be called from several threads.
#[pyclass(frozen, module = "fleetfoot._native")]
pub(crate) struct SweepWorker {
    worker: sweep::Worker<Box<sweep::Sweep>>,
    stop: AtomicBool,
}

#[pymethods]
impl SweepWorker {
    #[new]
    fn new(py: Python<'_>, description: &[u8]) -> PyResult<SweepWorker> {
        py.detach(|| {
            guarded(|| {
                let sweep = sweep::Sweep::from_bytes(description).map_err(|mistake| of_scenario(&mistake))?;
                Ok(SweepWorker {
                    worker: sweep::Worker::new(Box::new(sweep)),
                    stop: AtomicBool::new(false),
                })
            })
        })
    }

    /// Runs a task; what is stopped in the middle comes back as not run.
    fn run<'py>(&self, py: Python<'py>, task: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let made = py.detach(|| {
            guarded(|| {
                self.worker
                    .run_bytes(task, &self.stop, &simulate)
                    .map_err(RunError::new_err)
            })
        })?;
        py.check_signals()?;
        Ok(PyBytes::new(py, &made))
    }

    /// Stops what runs, for good.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
