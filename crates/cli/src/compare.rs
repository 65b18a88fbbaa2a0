//! `fleetfoot compare`: every variant with common random numbers, ranked.

use crate::failure::Failure;
use crate::forecast::Forecast;
use crate::import::{imported, is_capture};
use crate::layout::width;
use crate::output::{Common, counted, plain, print};
use crate::progress::Reporter;
use crate::ranked;
use crate::session::{
    BatchFlags, Done, about, command, cores, forecast, on_cores, scenario, seeds_in_words, stop_flag,
    with_settings,
};
use crate::setup::setting_up;
use crate::target::Targets;
use clap::Args;
use fleetfoot_lab::compare::search::expected_runs;
use fleetfoot_lab::compare::space::Wish;
use fleetfoot_lab::compare::study::{Budget, Extent, Runner, Study, StudyError, nothing_waits, study};
use fleetfoot_lab::compare::{Choice, Plan};
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::report::time_series;
use fleetfoot_lab::result::Comparison;
use fleetfoot_lab::run::{Job, Options, execute as run_all, simulate_with_progress};
use fleetfoot_lab::scenario::Scenario;
use fleetfoot_sim::spec::Spec;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Flags of `compare`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scenario, or a capture (pcap, pcapng) to make one of; several are set beside each other; none is the built-in home line.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Number of seeds, instead of the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: Option<u32>,
    /// The first seed, instead of the scenario's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Only these variants or mechanisms, separated by commas; `a + b` is both together.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Apply queue mechanisms here, not where queues stand: LINK or LINK:DIRECTION (forward, reverse, down, up).
    #[arg(long = "where", value_name = "LINK[:DIRECTION]", value_delimiter = ',')]
    places: Vec<String>,
    /// Change the scenario: a path and a value, such as network.bottleneck.rate="20 Mbit/s"; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Also the sensible pairs of mechanisms.
    #[arg(long)]
    pairs: bool,
    /// Does the answer hold at half and double rate, RTT, load and buffer, with jitter, and where most waits alone?
    #[arg(long)]
    sensitivity: bool,
    /// How far to go while the best are undecided: so many more runs for further seeds ("500"), or so long in all ("2 min": the first pass, every variant with
    /// every seed, is made whole; after it no step begins once the time is over, and one that has begun is finished); by default at most as
    /// many runs as the first pass (of few variants up to three times as many, 200 at most).
    #[arg(long, value_name = "RUNS|TIME", value_parser = clap::value_parser!(Budget))]
    budget: Option<Budget>,
    /// Output folder; by default fleetfoot-out/TITLE-HASH.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchFlags,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    match arguments.files.as_slice() {
        [] => one(arguments, None, common).and_then(|one| one.show(common)),
        [file] => one(arguments, Some(file), common).and_then(|one| one.show(common)),
        files => several(arguments, files, common),
    }
}

/// A comparison that was written.
pub(crate) struct Finished {
    study: Study,
    folder: PathBuf,
    interrupted: bool,
    /// That it took longer than it was to.
    over: Option<String>,
    /// Whether the folder keeps all runs that were finished.
    keeps_all: bool,
    /// Whether all events could be written.
    told: bool,
    /// An earlier result there was whole and is left as it was.
    left: bool,
}

impl Finished {
    pub(crate) fn show(&self, common: &Common) -> Result<(), Failure> {
        let comparison = &self.study.comparison;
        if common.json {
            print(&comparison.document.to_json_text())?;
        } else {
            print(&ranked::comparison(comparison, common.colored(), width()))?;
        }
        self.close(common)
    }

    /// What was run and where it is.
    fn close(&self, common: &Common) -> Result<(), Failure> {
        let batch = &self.study.batch;
        common.say(&format!(
            "{}. Report: {}\nAgain: {}",
            Done::of(batch),
            self.folder.join("report.html").display(),
            self.study.comparison.command
        ));
        if let Some(over) = &self.over {
            common.say(over);
        }
        if self.interrupted {
            if self.left {
                common.say("Interrupted: the whole result that is in the folder stays as it was; what is above is of a part of it.");
            }
            common.say(match self.keeps_all {
                true => "Interrupted: the same command, without --fresh, goes on where this one stopped.",
                false => "Interrupted: the same command, without --fresh, goes on with those finished runs that could be kept.",
            });
            return Err(Failure::interrupted());
        }
        match self.told {
            true => Ok(()),
            false => Err(Failure::reported()),
        }
    }
}

/// The scenario of a file or capture, with what `--set` changes.
pub(crate) fn described(
    settings: &[String],
    file: Option<&Path>,
    out: Option<&Path>,
    common: &Common,
) -> Result<Scenario, Failure> {
    let file = match file {
        Some(file) if is_capture(file) => Some(imported(file, out, common)?),
        file => file.map(Path::to_path_buf),
    };
    with_settings(scenario(file.as_deref())?, settings)
}

/// The comparison that is to be made of a file.
fn task<'a>(arguments: &'a Arguments, file: Option<&'a Path>, common: &Common) -> Result<Task<'a>, Failure> {
    let scenario = described(&arguments.set, file, arguments.out.as_deref(), common)?;
    let choice = Choice {
        pairs: arguments.pairs,
        only: scenario.rejoined(&arguments.only),
        places: arguments.places.clone(),
        seed: arguments.seed,
        seeds: arguments.seeds,
        ..Choice::default()
    };
    Ok(Task {
        file,
        built_in: file.is_none(),
        scenario,
        likely: choice.clone(),
        choice,
        batch: &arguments.batch,
        out: arguments.out.as_deref(),
        search: None,
    })
}

fn one(arguments: &Arguments, file: Option<&Path>, common: &Common) -> Result<Finished, Failure> {
    let extent = Extent {
        budget: arguments.budget,
        sensitivity: arguments.sensitivity,
        ..Extent::default()
    };
    let task = task(arguments, file, common)?;
    let started = Instant::now();
    let made = task.carried_out(common, |plan, step| study(plan, extent, &command(), step))?;
    Ok(Finished {
        over: over_budget(extent.budget, started.elapsed()),
        ..made
    })
}

/// That a comparison took longer than its budget of time, and why it may.
fn over_budget(budget: Option<Budget>, took: Duration) -> Option<String> {
    let Some(Budget::Time(time)) = budget else {
        return None;
    };
    (took > time).then(|| {
        format!(
            "--budget: it took {:.1} s instead of {:.1} s. The first pass, every variant with every seed, is made whole, and a step that has begun is finished.",
            took.as_secs_f64(),
            time.as_secs_f64()
        )
    })
}

/// The variants with queue mechanisms at the bottleneck: as many as there will be, for the forecast. Refused where nothing waits.
fn expected(scenario: &Scenario, choice: &Choice, common: &Common) -> Result<Plan, Failure> {
    let shown = format!("\"{}\"", plain(scenario.title()));
    let plan = setting_up(common, &shown, || Plan::compare(scenario.clone(), choice))?;
    match plan.waits() {
        true => Ok(plan),
        false => Err(Failure::usage(nothing_waits(&plain(scenario.title())))),
    }
}

/// A comparison that is to be made, or a search.
pub(crate) struct Task<'a> {
    pub(crate) file: Option<&'a Path>,
    /// That no file was named.
    pub(crate) built_in: bool,
    pub(crate) scenario: Scenario,
    pub(crate) choice: Choice,
    /// What is likely to be run, for the first line and the forecast.
    pub(crate) likely: Choice,
    pub(crate) batch: &'a BatchFlags,
    pub(crate) out: Option<&'a Path>,
    /// What is searched for, if it is a search.
    pub(crate) search: Option<Wish>,
}

impl Task<'_> {
    /// Makes it, step by step as `make` wants, and writes it.
    pub(crate) fn carried_out(
        self,
        common: &Common,
        make: impl FnOnce(Plan, &mut Runner<'_>) -> Result<Study, StudyError>,
    ) -> Result<Finished, Failure> {
        let Task {
            file,
            built_in,
            scenario,
            choice,
            likely,
            batch,
            out,
            search,
        } = self;
        let shown = format!("\"{}\"", plain(scenario.title()));
        let likely = expected(&scenario, &likely, common)?;
        let mut targets = Targets::of(file, &scenario, batch.force);
        targets.of_batch(batch, out)?;
        let likely_runs = (likely.variants.len() * likely.seeds.len()) as u64;
        let forecast = setting_up(common, &shown, || forecast(&likely, batch))?;
        let title = plain(likely.scenario.title());
        let example = match built_in {
            true => " (no FILE was given: this is the built-in example)",
            false => "",
        };
        let (what, runs) = match search {
            None => {
                let variants = counted(likely.variants.len() as u64, "variant");
                let seeds = seeds_in_words(&likely.seeds);
                (
                    format!("Comparing {variants} of \"{title}\"{example} with {seeds}:"),
                    likely_runs,
                )
            }
            Some(wish) => {
                let what = format!("Searching for one setting to try first in \"{title}\"{example}: some");
                (what, expected_runs(&likely, wish))
            }
        };
        common.say(&format!(
            "{what} {} {}, about {}.",
            counted(runs, "run"),
            on_cores(batch.jobs, runs),
            about(forecast.left_s() * runs as f64 / likely_runs.max(1) as f64),
        ));
        drop(likely);
        let plan = setting_up(common, &shown, || Plan::baseline(scenario, &choice))?;
        let folder = Folder::open(out, plan.scenario.title(), &plan.hash(), batch.force)?;
        let reporter = Reporter::new(
            Forecast::new(Vec::new(), cores(batch.jobs)),
            common,
            batch.events.as_deref(),
        )?;
        let stop = stop_flag();
        let options = Options {
            jobs: batch.jobs,
            store: Some(folder.store.clone()),
            fresh: batch.fresh,
        };
        reporter.event(
            &serde_json::json!({ "event": "started", "scenario": plan.scenario.title(), "runs": runs }),
        );
        let engine = |spec: &Spec, stop: &AtomicBool| {
            simulate_with_progress(spec, stop, &|pulse| reporter.pulse(pulse))
        };
        let mut step = |title: &str, jobs: &[Job], seeds: &[u64]| {
            let part = reporter.step(title, jobs, seeds.len());
            run_all(jobs, seeds, &options, &stop, &engine, &|progress| {
                reporter.run(part, progress);
            })
        };
        let made = reporter.watched(|| make(plan, &mut step));
        if made.is_err() {
            reporter.finish();
        }
        let mut study = made.map_err(|error| match error {
            StudyError::Scenario(error) => Failure::from(*error),
            StudyError::Run(error) => Failure::from(error),
        })?;
        study.comparison.document.commit = String::from(env!("FLEETFOOT_COMMIT"));
        if study.batch.runs.iter().all(Vec::is_empty) {
            reporter.finish();
            let stopped = reporter.stopped();
            common.say(&stopped.unwrap_or_else(|| String::from("Stopped before any run finished.")));
            return Err(Failure::interrupted());
        }
        // A part of what is there already is nothing to put in its place.
        let left = study.batch.interrupted && folder.is_complete();
        let written = reporter.writing(|writing| {
            if left {
                return Ok(());
            }
            if !study.batch.interrupted {
                writing.now("time series of single flows");
                time_series::of_the_best(&study.plan, &mut study.comparison, &stop);
            }
            writing.now("tables and page");
            folder.write(&study.comparison)
        });
        reporter.finish();
        written?;
        common.say_of_store(&folder.store);
        for note in &study.comparison.document.notes {
            reporter.event(&serde_json::json!({ "event": "warning", "message": note }));
        }
        reporter.event(&serde_json::json!({
            "event": "finished",
            "interrupted": study.batch.interrupted,
            "computed": study.batch.computed,
            "reused": study.batch.reused,
        }));
        let told = reporter.told();
        if let Err(failure) = &told {
            common.say(failure.text());
        }
        Ok(Finished {
            told: told.is_ok(),
            left,
            keeps_all: folder.store.remark().is_none(),
            interrupted: study.batch.interrupted || stop.load(Ordering::Relaxed),
            folder: folder.path().to_path_buf(),
            over: None,
            study,
        })
    }
}

/// Several networks beside each other.
fn several(arguments: &Arguments, files: &[PathBuf], common: &Common) -> Result<(), Failure> {
    if arguments.out.is_some() {
        return Err(Failure::usage(
            "--out takes the results of one file: leave it out, and each comparison gets a folder of its own",
        ));
    }
    // Every file is read and planned before the first run: a mistake in the last one is reported at once.
    for file in files.iter().filter(|file| !is_capture(file)) {
        let Task { scenario, likely, .. } = task(arguments, Some(file), common)?;
        expected(&scenario, &likely, common)?;
    }
    let (mut finished, mut failed) = (Vec::new(), None);
    for file in files {
        match one(arguments, Some(file), common) {
            Ok(one) => finished.push(one),
            Err(failure) => failed = Some(failure),
        }
        if failed.is_some() || finished.last().is_some_and(|one| one.interrupted) {
            break;
        }
    }
    if finished.is_empty() {
        return failed.map_or(Ok(()), Err);
    }
    let comparisons: Vec<&Comparison> = finished.iter().map(|one| &one.study.comparison).collect();
    if common.json {
        let documents: Vec<_> = comparisons
            .iter()
            .map(|comparison| &comparison.document)
            .collect();
        let mut document = serde_json::json!({ "comparisons": documents });
        if let Some(error) = failed.as_mut().and_then(Failure::take_document) {
            document["error"] = error;
        }
        let text =
            serde_json::to_string_pretty(&document).map_err(|error| Failure::other(error.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        print(&crate::beside::networks(&comparisons, common.colored(), width()))?;
    }
    finished.iter().try_for_each(|one| one.close(common))?;
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::{Budget, over_budget};
    use std::time::Duration;

    #[test]
    fn a_budget_of_time_that_was_exceeded_is_reported() {
        let budget = Some(Budget::Time(Duration::from_secs(10)));
        assert_eq!(over_budget(budget, Duration::from_secs(9)), None);
        let said = over_budget(budget, Duration::from_millis(25_400)).expect("it took longer");
        assert!(
            said.starts_with("--budget: it took 25.4 s instead of 10.0 s."),
            "{said}"
        );
        let runs = Some(Budget::Runs(0));
        assert_eq!(over_budget(runs, Duration::from_secs(900)), None);
        assert_eq!(over_budget(None, Duration::from_secs(900)), None);
    }
}
