//! `fleetfoot compare`: every variant with common random numbers, ranked.

use crate::failure::Failure;
use crate::folder::Folder;
use crate::forecast::Forecast;
use crate::import::{imported, is_capture};
use crate::layout::width;
use crate::output::{Common, counted, plain, print};
use crate::progress::Reporter;
use crate::session::{
    BatchFlags, Done, about, command, cores, forecast, measured, on_cores, scenario, seeds_in_words,
    stop_flag,
};
use crate::table;
use crate::target::Targets;
use clap::Args;
use fleetfoot_lab::compare::sensitivity::{NEIGHBOURS, judge};
use fleetfoot_lab::compare::{Choice, Plan, build};
use fleetfoot_lab::result::Comparison;
use fleetfoot_lab::run::course::Course;
use fleetfoot_lab::run::{Options, execute as run_all, observe, simulate_telling};
use fleetfoot_sim::spec::Spec;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flags of `compare`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scenario, or a capture (pcap, pcapng) to make one of; without one the built-in home line.
    file: Option<PathBuf>,
    /// Number of seeds, instead of the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: Option<u32>,
    /// The first seed, instead of the scenario's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Also the sensible pairs of mechanisms.
    #[arg(long)]
    pairs: bool,
    /// Also at half and double bottleneck, RTT and load: does the ranking hold?
    #[arg(long)]
    sensitivity: bool,
    /// Output folder; by default fleetfoot-out/TITLE-HASH.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchFlags,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let choice = Choice {
        pairs: arguments.pairs,
        single: None,
        seed: arguments.seed,
        seeds: arguments.seeds,
    };
    let file = match &arguments.file {
        Some(file) if is_capture(file) => Some(imported(file, common)?),
        file => file.clone(),
    };
    let plan = Plan::compare(scenario(file.as_deref())?, &choice)?;
    if !plan.described.groups.iter().any(|group| group.latency_sensitive) {
        return Err(Failure::usage(format!(
            "\"{}\": nothing here waits, so nothing can be ranked: give the [[traffic]] whose users wait `latency_sensitive = true`; \
             `fleetfoot run` shows what each group gets",
            plan.scenario.title()
        )));
    }
    let runs = (plan.variants.len() * plan.seeds.len()) as u64;
    let mut targets = Targets::of(file.as_deref(), &plan.scenario, arguments.batch.force);
    targets.of_batch(&arguments.batch, arguments.out.as_deref())?;
    let forecast = forecast(&plan, &arguments.batch)?;
    common.say(&format!(
        "Comparing {} of \"{}\" with {}: {} {}, about {}.",
        counted(plan.variants.len() as u64, "variant"),
        plain(plan.scenario.title()),
        seeds_in_words(&plan.seeds),
        counted(runs, "run"),
        on_cores(arguments.batch.jobs, runs),
        about(forecast.left_s()),
    ));
    let folder = Folder::open(
        arguments.out.as_deref(),
        plan.scenario.title(),
        &plan.hash(),
        arguments.batch.force,
    )?;
    let reporter = Reporter::new(forecast, common, arguments.batch.events.as_deref())?;
    let stop = stop_flag();
    let options = Options {
        jobs: arguments.batch.jobs,
        store: Some(folder.store.clone()),
        fresh: arguments.batch.fresh,
    };
    reporter
        .event(&serde_json::json!({ "event": "started", "scenario": plan.scenario.title(), "runs": runs }));
    let engine =
        |spec: &Spec, stop: &AtomicBool| simulate_telling(spec, stop, &|pulse| reporter.pulse(pulse));
    let batch = run_all(&plan.jobs(), &plan.seeds, &options, &stop, &engine, &|progress| {
        reporter.run(0, progress);
    });
    reporter.finish();
    let batch = batch?;
    if batch.runs.iter().all(Vec::is_empty) {
        let stopped = reporter.stopped();
        common.say(&stopped.unwrap_or_else(|| String::from("Stopped before any run finished.")));
        return Err(Failure::interrupted());
    }
    let mut comparison = build(&plan, &batch, &command());
    let mut all = Done::of(&batch);
    if !batch.interrupted {
        add_traces(&plan, &mut comparison, &stop);
        if arguments.sensitivity {
            all.add(&add_sensitivity(
                &plan,
                arguments,
                &options,
                &stop,
                common,
                &mut comparison,
            )?);
        }
    }
    folder.write(&comparison)?;
    for note in &comparison.notes {
        reporter.event(&serde_json::json!({ "event": "warning", "message": note }));
    }
    reporter.event(&serde_json::json!({
        "event": "finished",
        "interrupted": batch.interrupted,
        "computed": batch.computed,
        "reused": batch.reused,
    }));
    if common.json {
        print(&comparison.document.to_json_text())?;
    } else {
        print(&table::comparison(&comparison, common.colored(), width()))?;
    }
    common.say(&format!(
        "{all}. Report: {}\nAgain: {}",
        folder.path().join("report.html").display(),
        comparison.command
    ));
    if batch.interrupted || stop.load(Ordering::Relaxed) {
        common.say("Interrupted: the same command, without --fresh, goes on where this one stopped.");
        return Err(Failure::interrupted());
    }
    Ok(())
}

/// The course of a few flows of the baseline and the best variants, from the first seed.
fn add_traces(plan: &Plan, comparison: &mut Comparison, stop: &AtomicBool) {
    for (index, planned) in plan.variants.iter().enumerate() {
        let rank = comparison.document.variants[index]
            .versus
            .as_ref()
            .map_or(0, |versus| versus.rank);
        if rank > TRACED {
            continue;
        }
        let mut course = Course::new(&planned.resolved, FLOWS_TRACED);
        let spec = planned.resolved.spec(plan.seeds[0]);
        // The same run succeeded a moment ago; if it is stopped now the charts are left out.
        if observe(&spec, stop, &mut course).is_ok_and(|output| !output.interrupted) {
            comparison.variants[index].traces = course.traces;
        }
    }
}

fn add_sensitivity(
    plan: &Plan,
    arguments: &Arguments,
    options: &Options,
    stop: &AtomicBool,
    common: &Common,
    comparison: &mut Comparison,
) -> Result<Done, Failure> {
    let mut all = Done::default();
    let jobs: Vec<_> = NEIGHBOURS
        .iter()
        .map(|neighbour| neighbour.jobs(plan, &comparison.bottleneck))
        .collect();
    let parts = jobs
        .iter()
        .map(|jobs| measured(jobs, &plan.seeds))
        .collect::<Result<Vec<_>, _>>()?;
    let forecast = Forecast::new(parts, cores(arguments.batch.jobs));
    common.say(&format!(
        "Sensitivity: {} {}, about {}.",
        counted(forecast.runs(), "more run"),
        on_cores(arguments.batch.jobs, forecast.runs()),
        about(forecast.left_s())
    ));
    let total = forecast.runs();
    let reporter = Reporter::new(forecast, common, None)?;
    for (part, neighbour) in NEIGHBOURS.into_iter().enumerate() {
        common.say(&format!("Sensitivity: {}", neighbour.name()));
        let engine =
            |spec: &Spec, stop: &AtomicBool| simulate_telling(spec, stop, &|pulse| reporter.pulse(pulse));
        let before = all.runs();
        let batch = run_all(&jobs[part], &plan.seeds, options, stop, &engine, &|progress| {
            reporter.run(part, &progress.after(before, total));
        });
        let batch = batch.inspect_err(|_| reporter.finish())?;
        all.add(&Done::of(&batch));
        if batch.interrupted {
            break;
        }
        let point = judge(neighbour, plan, &batch, comparison);
        comparison.sensitivity.push(point);
    }
    reporter.finish();
    Ok(all)
}

/// Variants by rank whose flows are traced for the report.
const TRACED: u64 = 4;

/// Flows of each group whose course the report shows.
pub(crate) const FLOWS_TRACED: usize = 2;
