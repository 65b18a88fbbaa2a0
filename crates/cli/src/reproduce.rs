//! `fleetfoot reproduce`: published values beside measured ones, one verdict each.

use crate::failure::Failure;
use crate::forecast::{Forecast, Part};
use crate::layout::{width, wrapped};
use crate::output::{Common, counted, print};
use crate::progress::Reporter;
use crate::session::{BatchFlags, about, command, cores, on_cores, stop_flag};
use crate::target::Targets;
use crate::verdicts::table;
use clap::Args;
use fleetfoot_lab::experiment::record::{OfExperiment, Record};
use fleetfoot_lab::experiment::{
    Document, DocumentEntry, Evaluated, Experiment, Level, Prepared, SCHEMA, UnknownName, library,
};
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::report::figures;
use fleetfoot_lab::report::reproduction::{self, Failed, Finding, Work};
use fleetfoot_lab::run::{Options, simulate_with_progress, write_atomically};
use fleetfoot_lab::scenario::{Error, ErrorKind};
use fleetfoot_sim::spec::Spec;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Flags of `reproduce`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Ids, groups, or files and folders; without any, all experiments.
    #[arg(value_name = "ID or GROUP")]
    names: Vec<String>,
    /// List them without running.
    #[arg(long)]
    list: bool,
    /// A few short runs; says no more than the full run.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// As many seeds as the files say; by default at most ten.
    #[arg(long)]
    full: bool,
    /// Output folder; by default fleetfoot-out/reproduce.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchFlags,
    /// Do not run: show what the full runs said that came with the program.
    #[arg(long, conflicts_with_all = ["quick", "full", "out", "record", "list"])]
    recorded: bool,
    /// Also write each figure as an SVG file into this folder, named by its experiment.
    #[arg(long, value_name = "FOLDER", conflicts_with = "list")]
    figures: Option<PathBuf>,
    /// Enter verdicts and numbers in FOLDER/GROUP/verdicts/ID.toml, by default below experiments; needs --full or --quick.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, default_missing_value = "experiments")]
    record: Option<PathBuf>,
}

impl From<UnknownName> for Failure {
    fn from(error: UnknownName) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl Arguments {
    /// For these experiments, without files beside the report; `quick` and `recorded` as the flags.
    pub(crate) fn of(
        names: Vec<String>,
        (quick, recorded): (bool, bool),
        out: Option<PathBuf>,
        batch: BatchFlags,
    ) -> Arguments {
        Arguments {
            names,
            list: false,
            quick,
            full: !quick && !recorded,
            out,
            batch,
            recorded,
            figures: None,
            record: None,
        }
    }
}

/// What is printed of experiments: in colour or not, so wide.
pub(crate) type Table = dyn Fn(&[&Evaluated], bool, usize) -> String;

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    execute_with(arguments, common, &table)
}

/// The same with another table.
pub(crate) fn execute_with(arguments: &Arguments, common: &Common, table: &Table) -> Result<(), Failure> {
    let experiments = library::select(&arguments.names)?;
    if arguments.list {
        return list(&experiments, common);
    }
    if arguments.record.is_some() && !(arguments.quick || arguments.full) {
        return Err(Failure::usage("--record needs --full or --quick"));
    }
    let files = arguments
        .names
        .iter()
        .map(Path::new)
        .filter(|name| name.is_file());
    let mut targets = Targets::reading(files, arguments.batch.force);
    targets.of_batch(&arguments.batch, arguments.out.as_deref())?;
    // What the full runs said: of the files that are being written, so that quick runs after full ones need no new program.
    let record = match &arguments.record {
        Some(folder) => written(folder, &experiments)?,
        None => embedded()?,
    };
    if let Some(folder) = &arguments.figures {
        // Better now than after an hour of runs.
        std::fs::create_dir_all(folder).map_err(|error| cannot_draw(folder, &error))?;
    }
    if arguments.recorded {
        return recorded(&experiments, &record, arguments, common, table);
    }
    let level = match (arguments.quick, arguments.full) {
        (true, _) => Level::Quick,
        (_, true) => Level::Full,
        (false, false) => Level::Usual,
    };
    let prepared = prepared(&experiments, level, common)?;
    let parts = prepared
        .iter()
        .map(|prepared| Part::new(prepared.jobs(), prepared.seeds.len()));
    let forecast = Forecast::new(parts.collect(), cores(arguments.batch.jobs));
    let runs = forecast.runs();
    common.say(&format!(
        "Reproducing {} ({}): {} {}, about {}.",
        counted(prepared.len() as u64, "experiment"),
        level.name(),
        counted(runs, "run"),
        on_cores(arguments.batch.jobs, runs),
        about(forecast.left_s()),
    ));
    let place = arguments
        .out
        .clone()
        .unwrap_or_else(|| Path::new("fleetfoot-out").join("reproduce"));
    let folder = Folder::open(Some(&place), "reproduce", "reproduce", arguments.batch.force)?;
    let reporter = Reporter::new(forecast, common, arguments.batch.events.as_deref())?;
    reporter.event(&serde_json::json!({ "event": "started", "experiments": prepared.len(), "runs": runs }));
    let started = Instant::now();
    let stop = stop_flag();
    let engine =
        |spec: &Spec, stop: &AtomicBool| simulate_with_progress(spec, stop, &|pulse| reporter.pulse(pulse));
    let work = Work {
        options: &Options {
            jobs: arguments.batch.jobs,
            store: Some(folder.store.clone()),
            fresh: arguments.batch.fresh,
        },
        stop: &stop,
        engine: &engine,
        record: &record,
        folder: Some(&folder),
        command: &command(),
        progress: &|part, progress| reporter.run(part, progress),
        told: &|evaluated| {
            let (id, verdict) = (&evaluated.experiment.id, evaluated.verdict.name());
            reporter.event(&serde_json::json!({ "event": "experiment", "id": id, "verdict": verdict }));
        },
    };
    let found = work.run(&prepared).map_err(|failed| match failed {
        Failed::Run(error) => Failure::from(error),
        Failed::Folder(error) => Failure::from(error),
    })?;
    let (computed, reused) = (found.computed, found.reused);
    // Those that are complete, each with what was run.
    let complete = prepared.iter().zip(found.findings);
    let (complete, results): (Vec<&Prepared>, Vec<Finding>) = complete
        .filter_map(|(prepared, finding)| Some((prepared, finding?)))
        .unzip();
    reporter.finish();
    let interrupted = results.len() < prepared.len();
    let evaluated: Vec<&Evaluated> = results.iter().map(|result| &result.evaluated).collect();
    let document = reproduction::document(evaluated.iter().copied());
    reproduction::write(&folder, &results, &command())?;
    if let Some(folder) = &arguments.figures {
        draw(folder, results.iter().flat_map(|result| &result.figures), common)?;
    }
    if let Some(folder) = &arguments.record {
        enter(folder, record, &complete, &evaluated, level)?;
    }
    if common.json {
        print(&document.to_json_text())?;
    } else if !evaluated.is_empty() {
        print(&table(&evaluated, common.colored(), width()))?;
    }
    common.say_of_store(&folder.store);
    common.say(&format!(
        "{} computed, {reused} reused, in {:.1} s. Report: {}\nAgain: {}",
        counted(computed, "run"),
        started.elapsed().as_secs_f64(),
        folder.path().join("reproduce.html").display(),
        command()
    ));
    reporter.event(&serde_json::json!({ "event": "finished", "interrupted": interrupted, "computed": computed, "reused": reused }));
    if interrupted {
        common.say(&format!(
            "Interrupted: {} of {} complete. Finished runs are kept; the same command, without --fresh, goes on from there.",
            results.len(),
            counted(prepared.len() as u64, "experiment")
        ));
        return Err(Failure::interrupted());
    }
    reporter.told()
}

/// The experiments that this program can run; of the others one line says what they need.
///
/// # Errors
/// A mistake in a file, or this program can run none of them.
fn prepared(experiments: &[Experiment], level: Level, common: &Common) -> Result<Vec<Prepared>, Failure> {
    let mut prepared = Vec::new();
    let mut left_out: Vec<(&str, Error)> = Vec::new();
    for experiment in experiments {
        match Prepared::new(experiment, level) {
            Ok(ready) => prepared.push(ready),
            Err(error) if error.kind == ErrorKind::NotBuilt => left_out.push((&experiment.id, error)),
            Err(error) => return Err(error.into()),
        }
    }
    let Some((_, error)) = left_out.first() else {
        return Ok(prepared);
    };
    if prepared.is_empty() {
        return Err(error.clone().into());
    }
    let ids: Vec<&str> = left_out.iter().map(|(id, _)| *id).collect();
    common.say(&format!(
        "Left out, because this program was built without QUIC (`--features quic`): {}.",
        ids.join(", ")
    ));
    Ok(prepared)
}

/// Shows what the full runs said, without running.
fn recorded(
    experiments: &[Experiment],
    record: &Record,
    arguments: &Arguments,
    common: &Common,
    table: &Table,
) -> Result<(), Failure> {
    let mut found = Vec::new();
    let mut without = Vec::new();
    for experiment in experiments {
        match record.full(&experiment.id) {
            Some(recorded) => found.push(Evaluated::recorded(experiment, recorded)),
            None => without.push(experiment.id.as_str()),
        }
    }
    if !without.is_empty() {
        common.say(&format!("No full run is recorded of {}.", without.join(", ")));
    }
    let evaluated: Vec<&Evaluated> = found.iter().collect();
    if let Some(folder) = &arguments.figures {
        draw(
            folder,
            found
                .iter()
                .flat_map(|evaluated| figures::of(evaluated, None))
                .collect::<Vec<_>>()
                .iter(),
            common,
        )?;
    }
    if common.json {
        return print(&reproduction::document(evaluated.iter().copied()).to_json_text());
    }
    print(&table(&evaluated, common.colored(), width()))
}

/// Writes figures into `folder`.
fn draw<'f>(
    folder: &Path,
    figures: impl Iterator<Item = &'f figures::Figure>,
    common: &Common,
) -> Result<(), Failure> {
    let mut count = 0;
    for figure in figures {
        let path = folder.join(format!("{}.svg", figure.name));
        write_atomically(&path, figure.standalone().as_bytes())
            .map_err(|error| cannot_draw(folder, &error))?;
        count += 1;
    }
    common.say(&format!("{} in {}", counted(count, "figure"), folder.display()));
    Ok(())
}

fn cannot_draw(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write figures to {}: {error}", folder.display()))
}

fn embedded() -> Result<Record, Failure> {
    Record::embedded().map_err(|error| Failure::other(format!("recorded verdicts: {error}")))
}

/// Enters what was found in the files of these experiments below `folder`.
fn enter(
    folder: &Path,
    mut record: Record,
    prepared: &[&Prepared],
    evaluated: &[&Evaluated],
    level: Level,
) -> Result<(), Failure> {
    for (evaluated, prepared) in evaluated.iter().zip(prepared) {
        let experiment = &evaluated.experiment;
        let entry = record.0.entry(experiment.id.clone()).or_default();
        entry.enter(evaluated, level, prepared.seeds.len() as u32);
        let path = folder.join(OfExperiment::path(experiment));
        write_atomically(&path, entry.to_text().as_bytes())
            .map_err(|error| Failure::other(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}

/// What is recorded of these experiments below `folder`, where it can be written.
fn written(folder: &Path, experiments: &[Experiment]) -> Result<Record, Failure> {
    if !folder.is_dir() {
        return Err(Failure::usage(format!(
            "there is no folder {}: start in the repository, or name its experiments with --record=FOLDER",
            folder.display()
        )));
    }
    let mut record = Record::default();
    for experiment in experiments {
        let path = folder.join(OfExperiment::path(experiment));
        let refused = |why: &dyn std::fmt::Display| {
            Failure::usage(format!("cannot record in {}: {why}", path.display()))
        };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| refused(&error))?;
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let entry = OfExperiment::parse(&text).map_err(|error| refused(&error))?;
                record.0.insert(experiment.id.clone(), entry);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(refused(&error)),
        }
        Targets::reading([], true).file("--record", &path)?;
    }
    Ok(record)
}

fn list(experiments: &[Experiment], common: &Common) -> Result<(), Failure> {
    if common.json {
        let document = Document {
            schema: SCHEMA,
            experiments: experiments.iter().map(DocumentEntry::listed).collect(),
        };
        return print(&document.to_json_text());
    }
    let width = width();
    let longest = experiments
        .iter()
        .map(|experiment| experiment.id.len())
        .max()
        .unwrap_or(0);
    let indent = " ".repeat(longest + 3);
    let mut text = String::new();
    let mut group = "";
    for experiment in experiments {
        if experiment.group != group {
            group = &experiment.group;
            let _ = writeln!(text, "{group}:");
        }
        let claim = wrapped(&experiment.file.figure.claim, width, &indent);
        let _ = writeln!(text, "  {:longest$} {}", experiment.id, claim.trim_start());
    }
    print(&text)
}
