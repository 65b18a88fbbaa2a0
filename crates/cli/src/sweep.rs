//! `fleetfoot sweep`: one scenario at many points, over all cores, into one data set.

use crate::failure::Failure;
use crate::forecast::{Forecast, Part};
use crate::output::{Common, counted, plain, print};
use crate::progress::Reporter;
use crate::session::{
    BatchFlags, about, command, cores, grouped, on_cores, scenario, seeds_in_words, stop_flag,
};
use crate::target::Targets;
use clap::Args;
use fleetfoot_lab::compare::Choice;
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::run::{Progress, fits, pilot, simulate_with_progress, write_atomically};
use fleetfoot_lab::sweep::{
    Axis, ExecuteError, Journal, Points, Sampling, Shown, State, Step, Sweep, Swept, Until,
    columns_of_numbers, execute as run_all, render, write,
};
use fleetfoot_sim::spec::Spec;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Flags of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scenario; without one, the built-in home line.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// An axis of listed values: a path and values, such as network.bottleneck.rate="10 Mbit/s,100 Mbit/s"; may be given several times.
    #[arg(long, value_name = "KEY=VALUE,...")]
    set: Vec<String>,
    /// An axis between two ends, such as network.bottleneck.rate="1 Mbit/s:1000 Mbit/s:log:7"; with --sample the number of values is left
    /// out.
    #[arg(long, value_name = "KEY=LOW:HIGH[:log][:N]")]
    range: Vec<String>,
    /// Not every combination: so many points, latin-hypercube=N or random=N.
    #[arg(long, value_name = "KIND=N", value_parser = Sampling::parse)]
    sample: Option<Sampling>,
    /// Beside the scenario as described these variants or mechanisms, separated by commas; `a + b` is both together.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Apply queue mechanisms here, not at the bottleneck: LINK or LINK:DIRECTION (forward, reverse, down, up).
    #[arg(long = "where", value_name = "LINK[:DIRECTION]", value_delimiter = ',')]
    places: Vec<String>,
    /// Seeds of each point, instead of the scenario's; with --until the most of them, by default 100.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: Option<u32>,
    /// The first seed, instead of the scenario's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Seeds until half of the 95 % interval of a mean is no wider than this: a column of the table of runs and a width, such as
    /// fct_mean_s=5% or web.fct_mean_s=0.01. Looked at after 10, 20, 40... seeds, with the correction for looking several times.
    #[arg(long, value_name = "[GROUP.]COLUMN=WIDTH", value_parser = until)]
    until: Option<Until>,
    /// Columns of the table of runs that the report draws; by default completion times of the groups that wait.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', value_parser = column)]
    show: Vec<String>,
    /// The two axes of the report's heat maps, right and down; by default every pair of the first four.
    #[arg(long, value_name = "KEY,KEY", value_delimiter = ',')]
    axes: Vec<String>,
    /// Run what failed once more.
    #[arg(long)]
    retry: bool,
    /// Say what would be run and how long it would take; write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Output folder; by default fleetfoot-out/TITLE-HASH.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchFlags,
}

fn until(text: &str) -> Result<Until, String> {
    Until::parse(text, &columns_of_numbers())
}

fn column(text: &str) -> Result<String, String> {
    let columns = columns_of_numbers();
    match columns.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "the table of runs has no column of numbers of this name; it has {}",
            columns.join(", ")
        )),
    }
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let sweep = described(arguments)?;
    let shown = shown(arguments, &sweep)?;
    let mut targets = Targets::of(arguments.file.as_deref(), &sweep.scenario, arguments.batch.force);
    targets.of_batch(&arguments.batch, arguments.out.as_deref())?;
    let run_s = expected_s(&sweep, cores(arguments.batch.jobs))?;
    let tasks = sweep.points.len() as u64 * sweep.seeds.len() as u64;
    let part = Part::expecting([run_s], usize::try_from(tasks).unwrap_or(usize::MAX));
    let forecast = Forecast::new(vec![part], cores(arguments.batch.jobs));
    let at_most = if sweep.until.is_some() { "at most " } else { "" };
    let line = format!(
        "{} of \"{}\" with {}{}: {at_most}{} {}, {at_most}about {}.",
        counted(sweep.points.len() as u64, "point"),
        plain(sweep.scenario.title()),
        seeds_in_words(&sweep.seeds),
        match sweep.variants() {
            1 => String::new(),
            variants => format!(" and {variants} variants"),
        },
        counted(sweep.most_runs(), "run"),
        on_cores(arguments.batch.jobs, tasks),
        about(forecast.left_s()),
    );
    if arguments.dry_run {
        return dry_run(&sweep, &line, forecast.left_s(), common);
    }
    common.say(&format!("Sweeping {line}"));
    let folder = Folder::claim(
        arguments.out.as_deref(),
        sweep.scenario.title(),
        &sweep.hash()?,
        arguments.batch.force,
    )?;
    let journal = Journal::open(
        &folder.join("sweep.journal"),
        arguments.retry,
        arguments.batch.fresh,
    )
    .map_err(|error| Failure::usage(format!("{}: {error}", folder.join("sweep.journal").display())))?;
    let reporter = Reporter::new(forecast, common, arguments.batch.events.as_deref())?;
    reporter.event(&serde_json::json!({
        "event": "started", "scenario": sweep.scenario.title(), "points": sweep.points.len(), "runs": sweep.most_runs(),
    }));
    let stop = stop_flag();
    let engine =
        |spec: &Spec, stop: &AtomicBool| simulate_with_progress(spec, stop, &|pulse| reporter.pulse(pulse));
    let step = |step: &Step| reporter.run(0, &progress(&sweep, step));
    let swept = run_all(&sweep, &journal, arguments.batch.jobs, &stop, &engine, &step);
    if swept.is_err() {
        reporter.finish();
    }
    let swept = swept.map_err(|error| match error {
        ExecuteError::Threads(_) | ExecuteError::Journal(_) | ExecuteError::Memory(_) => Failure::other(
            format!("{error}. Finished runs are kept: the same command goes on behind them"),
        ),
    })?;
    let made = reporter.writing(|writing| {
        writing.now("tables and page");
        written(&folder, &sweep, &swept, &journal, &shown)
    });
    reporter.finish();
    let (files, lines) = made.map_err(|error| {
        Failure::output(format!(
            "cannot write the data set in {}: {error}",
            folder.display()
        ))
    })?;
    reporter.event(&serde_json::json!({
        "event": "finished", "interrupted": swept.interrupted, "computed": swept.counts.computed, "reused": swept.counts.reused,
        "failed": swept.counts.failed,
    }));
    match common.json {
        true => print(&format!("{:#}\n", document(&sweep, &swept, Some(&files))))?,
        false => print(&format!("{}\n", lines.join("\n")))?,
    }
    close(&swept, &sweep, &folder, &files, arguments, common)
}

/// What is swept.
fn described(arguments: &Arguments) -> Result<Sweep, Failure> {
    let lists = arguments.set.iter().map(|text| Axis::list(text));
    let ranges = arguments.range.iter().map(|text| Axis::range(text));
    let axes = lists.chain(ranges).collect::<Result<Vec<_>, _>>()?;
    let scenario = scenario(arguments.file.as_deref())?;
    let choice = Choice {
        only: arguments.only.clone(),
        places: arguments.places.clone(),
        seed: arguments.seed,
        seeds: arguments.seeds.or(arguments.until.as_ref().map(|_| MOST_SEEDS)),
        ..Choice::default()
    };
    // Points that are drawn follow from the first seed.
    let points = Points::new(
        axes,
        arguments.sample.unwrap_or_default(),
        arguments.seed.unwrap_or(1),
    )?;
    Ok(Sweep::new(scenario, points, choice, arguments.until.clone())?)
}

/// Most seeds of a point with a rule of stopping.
const MOST_SEEDS: u32 = 100;

fn shown(arguments: &Arguments, sweep: &Sweep) -> Result<Shown, Failure> {
    let axes = sweep.points.axes();
    let known = || {
        let paths: Vec<&str> = axes.iter().map(|axis| axis.path.as_str()).collect();
        paths.join(", ")
    };
    let find = |path: &str| {
        axes.iter()
            .position(|axis| axis.path == path.trim())
            .ok_or_else(|| Failure::usage(format!("--axes: \"{path}\" is not swept; there are {}", known())))
    };
    let axes = match arguments.axes.as_slice() {
        [] => None,
        [x, y] if x != y => Some((find(x)?, find(y)?)),
        _ => {
            return Err(Failure::usage(format!(
                "--axes: two different axes are wanted, of {}",
                known()
            )));
        }
    };
    Ok(Shown {
        columns: arguments.show.clone(),
        axes,
    })
}

/// How long one seed of a point takes (s), measured on short pieces of some; refused if one alone does not fit into memory.
fn expected_s(sweep: &Sweep, cores: usize) -> Result<f64, Failure> {
    let pilots = sweep.pilots();
    for job in &pilots {
        fits(std::slice::from_ref(job), cores).map_err(Failure::usage)?;
    }
    let chosen = pilots.iter().step_by(pilots.len().div_ceil(PILOTS).max(1));
    let measured: Vec<f64> = chosen
        .filter_map(|job| {
            let spec = Spec {
                seed: sweep.seeds[0],
                ..job.spec.clone()
            };
            pilot(&spec, PILOT)
        })
        .collect();
    let mean = measured.iter().sum::<f64>() / measured.len().max(1) as f64;
    Ok(mean * sweep.variants() as f64)
}

/// Runs of which a piece is measured, and for how long each: the first line must not wait for them.
const PILOTS: usize = 5;
const PILOT: Duration = Duration::from_millis(15);

fn dry_run(sweep: &Sweep, line: &str, left_s: f64, common: &Common) -> Result<(), Failure> {
    let count = sweep.points.len();
    if common.json {
        let points: Vec<String> = (0..count.min(MOST_LISTED))
            .map(|point| sweep.points.label(point))
            .collect();
        let document = serde_json::json!({
            "points": count, "runs": sweep.most_runs(), "seeds": sweep.seeds.len(), "variants": sweep.variants(),
            "about_s": left_s, "first_points": points,
        });
        return print(&format!("{document:#}\n"));
    }
    let mut text = format!("{line}\n");
    for point in 0..count.min(MOST_LISTED) {
        text.push_str(&format!("  {}\n", sweep.points.label(point)));
    }
    if count > MOST_LISTED {
        let last = sweep.points.label(count - 1);
        text.push_str(&format!(
            "  ... {} more, the last:\n  {last}\n",
            count - MOST_LISTED
        ));
    }
    print(&text)
}

/// Points that a dry run lists.
const MOST_LISTED: usize = 12;

fn progress(sweep: &Sweep, step: &Step) -> Progress {
    let variants = sweep.variants() as u64;
    Progress {
        done: step.done * variants,
        total: step.total * variants,
        reused: step.reused * variants,
        job: 0,
        variant: sweep.points.label(step.point),
        seed: step.seed,
        wall_s: step.wall_s,
    }
}

/// Writes everything; returns the names of the tables, and what is best in lines of text.
fn written(
    folder: &Path,
    sweep: &Sweep,
    swept: &Swept,
    journal: &Journal,
    shown: &Shown,
) -> std::io::Result<(Vec<String>, Vec<String>)> {
    let tables = write(folder, sweep, swept, journal)?;
    let page = render(sweep, swept, journal, shown, &command())?;
    let texts = [
        ("report.html", page.html),
        ("scenario.toml", sweep.scenario.to_toml()),
        ("command.txt", format!("{}\n", command())),
        ("sweep.json", format!("{:#}\n", document(sweep, swept, None))),
    ];
    for (name, text) in texts {
        write_atomically(&folder.join(name), text.as_bytes())?;
    }
    Ok((tables, page.lines))
}

/// The sweep as a document; with the names of its tables also what was computed now.
fn document(sweep: &Sweep, swept: &Swept, files: Option<&[String]>) -> serde_json::Value {
    let axes: Vec<_> = (0..sweep.points.axes().len())
        .map(|axis| serde_json::json!({
            "path": sweep.points.axes()[axis].path, "column": sweep.points.name(axis), "unit": sweep.points.unit(axis),
        }))
        .collect();
    let count = |wanted: fn(&State) -> bool| swept.points.iter().filter(|point| wanted(&point.state)).count();
    let failures: Vec<_> = swept
        .points
        .iter()
        .enumerate()
        .filter_map(|(number, point)| match &point.state {
            State::Failed(reason) => Some(serde_json::json!({
                "point": number, "set": sweep.points.label(number), "reason": reason,
            })),
            _ => None,
        })
        .collect();
    let mut document = serde_json::json!({
        "schema": "sweep 1.0", "fleetfoot": env!("CARGO_PKG_VERSION"), "scenario": sweep.scenario.title(),
        "seeds": sweep.seeds.len(), "first_seed": sweep.seeds.first(), "axes": axes,
        "points": {
            "total": swept.points.len(), "done": count(|state| *state == State::Done), "wide": count(|state| *state == State::Wide),
            "open": count(|state| *state == State::Open), "failed": failures.len(),
        },
        "failures": failures, "interrupted": swept.interrupted,
    });
    if let Some(files) = files {
        let variants = sweep.variants() as u64;
        document["tables"] = serde_json::json!(files);
        document["timing"] = serde_json::json!({
            "computed": swept.counts.computed * variants, "reused": swept.counts.reused * variants, "wall_s": swept.wall_s, "busy_s": swept.busy_s,
        });
    }
    document
}

/// What was run, where it is, and how the program ends.
fn close(
    swept: &Swept,
    sweep: &Sweep,
    folder: &Path,
    files: &[String],
    arguments: &Arguments,
    common: &Common,
) -> Result<(), Failure> {
    let threads = cores(arguments.batch.jobs) as f64;
    let variants = sweep.variants() as u64;
    let busy = match swept.counts.computed {
        0 => String::new(),
        _ => format!(
            " ({:.0} % of {threads} cores)",
            100.0 * swept.busy_s / (swept.wall_s * threads).max(1e-9)
        ),
    };
    common.say(&format!(
        "{} computed, {} reused, in {} s{busy}. Data: {}. Report: {}\nAgain: {}",
        counted(swept.counts.computed * variants, "run"),
        swept.counts.reused * variants,
        grouped(swept.wall_s),
        files
            .iter()
            .map(|file| folder.join(file).display().to_string())
            .collect::<Vec<_>>()
            .join(", "),
        folder.join("report.html").display(),
        command()
    ));
    if swept.interrupted {
        common.say("Interrupted: the same command, without --fresh, goes on where this one stopped.");
        return Err(Failure::interrupted());
    }
    let failed = swept
        .points
        .iter()
        .enumerate()
        .filter_map(|(number, point)| match &point.state {
            State::Failed(reason) => Some((number, reason)),
            _ => None,
        });
    let count = failed.clone().count();
    match failed.clone().next() {
        None => Ok(()),
        Some((number, reason)) => {
            let text = format!(
                "{} failed and the data set lacks them; the first, {}: {reason}. --retry runs failures once more",
                counted(count as u64, "point"),
                sweep.points.label(number)
            );
            match common.json {
                // The document says it already.
                true => {
                    common.say(&text);
                    Err(Failure::reported())
                }
                false => Err(Failure::other(text)),
            }
        }
    }
}
