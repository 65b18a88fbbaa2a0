//! `fleetfoot compare`: every variant with common random numbers, ranked.

use crate::failure::Failure;
use crate::folder::Folder;
use crate::forecast::{Forecast, Part};
use crate::import::{imported, is_capture};
use crate::layout::width;
use crate::output::{Common, print};
use crate::progress::Reporter;
use crate::session::{BatchFlags, about, command, cores, scenario, stop_flag};
use crate::table;
use clap::Args;
use fleetfoot_lab::compare::sensitivity::{NEIGHBOURS, judge};
use fleetfoot_lab::compare::{Choice, Plan, build};
use fleetfoot_lab::result::Comparison;
use fleetfoot_lab::run::course::Course;
use fleetfoot_lab::run::{Options, execute as run_all, observe, simulate};
use fleetfoot_sim::spec::Spec;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flags of `compare`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scenario, or a capture (pcap, pcapng) to make one of; without one the built-in home line.
    file: Option<PathBuf>,
    /// Number of seeds, instead of the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
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
    let runs = (plan.variants.len() * plan.seeds.len()) as u64;
    let part = Part::new(&plan.jobs(), plan.seeds.len());
    let forecast = Forecast::new(vec![part], cores(arguments.batch.jobs));
    common.say(&format!(
        "Comparing {} variants of \"{}\" with seeds {} to {}: {runs} runs on {} cores, about {}.",
        plan.variants.len(),
        plan.scenario.title(),
        plan.seeds.first().copied().unwrap_or(0),
        plan.seeds.last().copied().unwrap_or(0),
        cores(arguments.batch.jobs),
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
    let engine = |spec: &Spec, stop: &AtomicBool| simulate(spec, stop);
    let batch = run_all(&plan.jobs(), &plan.seeds, &options, &stop, &engine, &|progress| {
        reporter.run(0, progress);
    })?;
    reporter.finish();
    if batch.runs.iter().all(Vec::is_empty) {
        common.say("Stopped before any run finished.");
        return Err(Failure::interrupted());
    }
    let mut comparison = build(&plan, &batch, &command());
    if !batch.interrupted {
        add_traces(&plan, &mut comparison, &stop);
        if arguments.sensitivity {
            add_sensitivity(&plan, &options, &stop, common, &mut comparison)?;
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
        "{} runs computed, {} reused, in {:.1} s. Report: {}\nAgain: {}",
        batch.computed,
        batch.reused,
        batch.wall_s,
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
    options: &Options,
    stop: &AtomicBool,
    common: &Common,
    comparison: &mut Comparison,
) -> Result<(), Failure> {
    for neighbour in NEIGHBOURS {
        let jobs = neighbour.jobs(plan, &comparison.bottleneck);
        common.say(&format!("Sensitivity: {}", neighbour.name()));
        let engine = |spec: &Spec, stop: &AtomicBool| simulate(spec, stop);
        let batch = run_all(&jobs, &plan.seeds, options, stop, &engine, &|_| ())?;
        if batch.interrupted {
            return Ok(());
        }
        let point = judge(neighbour, plan, &batch, comparison);
        comparison.sensitivity.push(point);
    }
    Ok(())
}

/// Variants by rank whose flows are traced for the report.
const TRACED: u64 = 4;

/// Flows of each group whose course the report shows.
pub(crate) const FLOWS_TRACED: usize = 2;
