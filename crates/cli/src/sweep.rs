//! `fleetfoot sweep`: one scenario at many points, over all cores, into one data set.

use crate::failure::Failure;
use crate::forecast::{Forecast, Part};
use crate::output::{Common, counted, plain, print};
use crate::progress::Reporter;
use crate::session::{
    BatchFlags, about, command, cores, grouped, on_cores, scenario, seeds_in_words, stop_flag,
};
use crate::target::Targets;
use crate::workers;
use clap::{Args, ValueEnum};
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::run::{Progress, fits, pilot, simulate_with_progress};
use fleetfoot_lab::sweep::{
    Axis, JOURNAL, Journal, Sampling, Shown, State, Step, Sweep, Swept, Until, Wanted, document,
    execute as run_all, written,
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
    #[arg(long, value_name = "[GROUP.]COLUMN=WIDTH", value_parser = Until::of_runs)]
    until: Option<Until>,
    /// Columns of the table of runs that the report draws; by default completion times of the groups that wait.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', value_parser = Shown::column)]
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
    /// Where runs are made: on the threads of this machine, or on a Ray cluster (needs the Python package with its extra `ray`).
    #[arg(
        long,
        value_enum,
        value_name = "ENGINE",
        default_value = "local",
        hide_default_value = true
    )]
    engine: Engine,
    /// The Ray cluster, such as 192.0.2.1:6379 or ray://192.0.2.1:10001; by default the one that runs here, else a new one.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    #[command(flatten)]
    batch: BatchFlags,
}

/// Where runs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// On the threads of this machine.
    Local,
    /// On a Ray cluster.
    Ray,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let sweep = described(arguments)?;
    let shown = Shown::of(&sweep, &arguments.show, &arguments.axes)?;
    let mut targets = Targets::of(arguments.file.as_deref(), &sweep.scenario, arguments.batch.force);
    targets.of_batch(&arguments.batch, arguments.out.as_deref())?;
    let run_s = expected_s(&sweep, cores(arguments.batch.jobs))?;
    let tasks = sweep.points.len() as u64 * sweep.seeds.len() as u64;
    let part = Part::expecting([(run_s, false)], usize::try_from(tasks).unwrap_or(usize::MAX));
    let forecast = Forecast::new(vec![part], cores(arguments.batch.jobs));
    let at_most = if sweep.until.is_some() { "at most " } else { "" };
    let place = match arguments.engine {
        Engine::Local => format!(
            "{}, {at_most}about {}",
            on_cores(arguments.batch.jobs, tasks),
            about(forecast.left_s())
        ),
        Engine::Ray => String::from("on a Ray cluster"),
    };
    let line = format!(
        "{} of \"{}\" with {}{}: {at_most}{} {place}.",
        counted(sweep.points.len() as u64, "point"),
        plain(sweep.scenario.title()),
        seeds_in_words(&sweep.seeds),
        match sweep.variants() {
            1 => String::new(),
            variants => format!(" and {variants} variants"),
        },
        counted(sweep.most_runs(), "run"),
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
    let journal = Journal::open(&folder.join(JOURNAL), arguments.retry, arguments.batch.fresh)
        .map_err(|error| Failure::usage(format!("{}: {error}", folder.join(JOURNAL).display())))?;
    let reporter = Reporter::new(forecast, common, arguments.batch.events.as_deref())?;
    reporter.event(&serde_json::json!({
        "event": "started", "scenario": sweep.scenario.title(), "points": sweep.points.len(), "runs": sweep.most_runs(),
    }));
    let stop = stop_flag();
    let engine =
        |spec: &Spec, stop: &AtomicBool| simulate_with_progress(spec, stop, &|pulse| reporter.pulse(pulse));
    let step = |step: &Step| reporter.run(0, &progress(&sweep, step));
    let kept = |error: &dyn std::error::Error| {
        Failure::other(format!(
            "{error}. Finished runs are kept: the same command goes on behind them"
        ))
    };
    let used = cpu_s();
    let swept = match arguments.engine {
        Engine::Local => run_all(&sweep, &journal, arguments.batch.jobs, &stop, &engine, &step)
            .map_err(|error| kept(&error)),
        Engine::Ray => workers::sweep_over_ray(&sweep, &journal, arguments.address.as_deref(), &stop, &step)
            .map_err(|error| error.unwrap_or_else(|error| kept(&error))),
    };
    if swept.is_err() {
        reporter.finish();
    }
    let mut swept = swept?;
    let used = cpu_s() - used;
    let made = reporter.writing(|writing| {
        writing.now("tables and page");
        written(&folder, &sweep, &mut swept, &journal, &shown, &command())
    });
    reporter.finish();
    let made = made.map_err(|error| {
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
        true => print(&format!("{:#}\n", document(&sweep, &swept, Some(&made.tables))))?,
        false => print(&format!("{}\n", made.lines.join("\n")))?,
    }
    close(&swept, &sweep, (&folder, &made.tables), used, arguments, common)?;
    reporter.told()
}

/// What is swept.
fn described(arguments: &Arguments) -> Result<Sweep, Failure> {
    if arguments.address.is_some() && arguments.engine == Engine::Local {
        return Err(Failure::usage("--address has no effect without --engine ray"));
    }
    if arguments.batch.jobs != 0 && arguments.engine == Engine::Ray {
        return Err(Failure::usage("--jobs has no effect with --engine ray"));
    }
    let lists = arguments.set.iter().map(|text| Axis::list(text));
    let ranges = arguments.range.iter().map(|text| Axis::range(text));
    let scenario = scenario(arguments.file.as_deref())?;
    let wanted = Wanted {
        axes: lists.chain(ranges).collect::<Result<_, _>>()?,
        sample: arguments.sample.unwrap_or_default(),
        only: scenario.rejoined(&arguments.only),
        places: arguments.places.clone(),
        seed: arguments.seed,
        seeds: arguments.seeds,
        until: arguments.until.clone(),
    };
    Ok(wanted.of(scenario)?)
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

/// Processor time of this program so far (s).
#[cfg(unix)]
fn cpu_s() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
    })
}

#[cfg(not(unix))]
fn cpu_s() -> f64 {
    0.0
}

/// How many points did not become as narrow as `--until` wants.
fn too_wide(swept: &Swept, sweep: &Sweep) -> Option<String> {
    let until = sweep.until.as_ref()?;
    let wide = swept
        .points
        .iter()
        .filter(|point| point.state == State::Wide)
        .count();
    (wide > 0).then(|| {
        format!(
            "--until {until} was not met at {wide} of {} with all {}: --seeds gives them more",
            counted(swept.points.len() as u64, "point"),
            counted(sweep.seeds.len() as u64, "seed")
        )
    })
}

/// What was run, where it is, and how the program ends.
fn close(
    swept: &Swept,
    sweep: &Sweep,
    (folder, files): (&Path, &[String]),
    used_s: f64,
    arguments: &Arguments,
    common: &Common,
) -> Result<(), Failure> {
    let threads = cores(arguments.batch.jobs) as f64;
    let variants = sweep.variants() as u64;
    let busy = match (swept.counts.computed, arguments.engine) {
        (0, _) => String::new(),
        (_, Engine::Local) => format!(
            " ({:.0} % of {threads} cores)",
            100.0 * used_s / (swept.wall_s * threads).max(1e-9)
        ),
        (_, Engine::Ray) => format!(" ({} s on the cluster)", grouped(swept.busy_s)),
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
    if let Some(wide) = too_wide(swept, sweep) {
        common.say(&wide);
    }
    let failed = swept.failures();
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
