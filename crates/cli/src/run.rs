//! `fleetfoot run`: a scenario, or one of its variants, alone.

use crate::compare::FLOWS_TRACED;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::forecast::{Forecast, Part};
use crate::layout::width;
use crate::output::{Common, print};
use crate::progress::Reporter;
use crate::session::{BatchFlags, about, command, cores, scenario, stop_flag};
use crate::table;
use clap::Args;
use fleetfoot_lab::compare::{BASELINE, Choice, Plan, build};
use fleetfoot_lab::report::diagram::Diagram;
use fleetfoot_lab::report::{pcapng, trace};
use fleetfoot_lab::result::Comparison;
use fleetfoot_lab::run::course::{Course, MOST_PACKETS, captured, links_called, trace_rows};
use fleetfoot_lab::run::{Options, execute as run_all, observe, simulate};
use fleetfoot_sim::record::{Capture, Trace};
use fleetfoot_sim::spec::Spec;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Flags of `run`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scenario.
    file: PathBuf,
    /// A variant of the file, or a mechanism by name.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// The seed, instead of the scenario's first.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run so many seeds.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// Write the packets at the bottleneck as pcapng for Wireshark.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write the state of every sender at every event as CSV (or Parquet, by the ending, where that is built in).
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Draw one flow as SVG: segments between sender and receiver, losses, probes, bundles, timers.
    #[arg(long, value_name = "FILE")]
    diagram: Option<PathBuf>,
    /// The flow that --diagram draws: GROUP, or GROUP/N for its connection N, from 0; else the first of the first group.
    #[arg(long, value_name = "FLOW", requires = "diagram")]
    diagram_flow: Option<String>,
    /// Also write result, samples and report into this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchFlags,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let scenario = scenario(Some(&arguments.file))?;
    let choice = Choice {
        pairs: false,
        single: arguments.variant.clone(),
        seed: arguments.seed,
        seeds: Some(arguments.seeds),
    };
    let names: Vec<String> = scenario
        .variants()
        .iter()
        .map(|variant| variant.name.clone())
        .collect();
    let Some(plan) = Plan::single(scenario, &choice)? else {
        return Err(unknown_variant(
            arguments.variant.as_deref().unwrap_or(BASELINE),
            &names,
        ));
    };
    if let Some(path) = &arguments.trace
        && path.extension().is_some_and(|ending| ending == "parquet")
        && cfg!(not(feature = "parquet"))
    {
        return Err(Failure::usage(
            "this program was built without Parquet: give --trace a name that ends in .csv",
        ));
    }
    if let Some(flow) = &arguments.diagram_flow {
        drawn(&plan, Some(flow))?; // told before anything runs
    }
    for path in [&arguments.pcap, &arguments.trace, &arguments.diagram]
        .into_iter()
        .flatten()
    {
        check_writable(path)?;
    }
    let part = Part::new(&plan.jobs(), plan.seeds.len());
    let forecast = Forecast::new(vec![part], cores(arguments.batch.jobs));
    common.say(&format!(
        "Running \"{}\" ({}), runs: {}, first seed: {}, on {} cores, about {}.",
        plan.scenario.title(),
        plan.variants[0].name,
        plan.seeds.len(),
        plan.seeds[0],
        cores(arguments.batch.jobs),
        about(forecast.left_s())
    ));
    let folder = match &arguments.out {
        Some(path) => Some(Folder::open(
            Some(path),
            plan.scenario.title(),
            &plan.hash(),
            arguments.batch.force,
        )?),
        None => None,
    };
    let reporter = Reporter::new(forecast, common, arguments.batch.events.as_deref())?;
    let stop = stop_flag();
    let options = Options {
        jobs: arguments.batch.jobs,
        store: folder.as_ref().map(|folder| folder.store.clone()),
        fresh: arguments.batch.fresh,
    };
    let engine = |spec: &Spec, stop: &AtomicBool| simulate(spec, stop);
    let batch = run_all(&plan.jobs(), &plan.seeds, &options, &stop, &engine, &|progress| {
        reporter.run(0, progress);
    })?;
    reporter.finish();
    if batch.runs[0].is_empty() {
        common.say("Stopped before a run finished.");
        return Err(Failure::interrupted());
    }
    let mut comparison = build(&plan, &batch, &command());
    let watched = [&arguments.trace, &arguments.pcap, &arguments.diagram];
    if !batch.interrupted && (folder.is_some() || watched.into_iter().any(Option::is_some)) {
        watch(arguments, &plan, &stop, common, &mut comparison)?;
    }
    if let Some(folder) = &folder {
        folder.write(&comparison)?;
    }
    if common.json {
        print(&comparison.document.to_json_text())?;
    } else {
        print(&table::single(&comparison, common.colored(), width()))?;
    }
    common.say(&format!("Again: {}", comparison.command));
    if batch.interrupted {
        Err(Failure::interrupted())
    } else {
        Ok(())
    }
}

/// Runs the first seed again with observers, and writes capture and trace.
fn watch(
    arguments: &Arguments,
    plan: &Plan,
    stop: &AtomicBool,
    common: &Common,
    comparison: &mut Comparison,
) -> Result<(), Failure> {
    let resolved = &plan.variants[0].resolved;
    let links = match &arguments.pcap {
        Some(_) => links_called(resolved, &comparison.bottleneck),
        None => Vec::new(),
    };
    let groups = match &arguments.trace {
        Some(_) => 0..resolved.groups.len() as u32,
        None => 0..0,
    };
    let observers = (
        Course::new(resolved, FLOWS_TRACED),
        (
            Trace::new(groups, u32::MAX),
            Capture::new(links.iter().copied(), MOST_PACKETS),
        ),
    );
    let (group, number) = drawn(plan, arguments.diagram_flow.as_deref())?;
    let mut observers = (observers, Diagram::new(resolved, group, number));
    observe(&resolved.spec(plan.seeds[0]), stop, &mut observers).map_err(Failure::other)?;
    let ((course, (trace, capture)), diagram) = observers;
    comparison.variants[0].traces = course.traces;
    let about = format!(
        "{}, {}, seed {}",
        plan.scenario.title(),
        plan.variants[0].name,
        plan.seeds[0]
    );
    let failure = |path: &Path, error: std::io::Error| {
        Failure::other(format!("cannot write {}: {error}", path.display()))
    };
    if let Some(path) = &arguments.pcap {
        if links.is_empty() {
            common.say("The capture is empty: no link is the bottleneck; name one with run.bottleneck.");
        }
        if capture.packets.len() == MOST_PACKETS {
            common.say(&format!(
                "The capture holds the first {MOST_PACKETS} packets only."
            ));
        }
        let (interfaces, packets) = captured(&capture, &links, resolved);
        let protocol = if resolved.needs_ipv6() {
            pcapng::Protocol::V6
        } else {
            pcapng::Protocol::V4
        };
        pcapng::write(path, packets, &interfaces, &capture.flows, &about, protocol)
            .map_err(|error| failure(path, error))?;
    }
    if let Some(path) = &arguments.trace {
        write_trace(path, trace_rows(&trace, resolved), about.clone())
            .map_err(|error| failure(path, error))?;
    }
    if let Some(path) = &arguments.diagram {
        if diagram.is_empty() {
            common.say("The diagram is empty: there was no such connection.");
        }
        let name = &resolved.groups[group as usize].name;
        std::fs::write(path, diagram.svg(&format!("{about}: {name}/{number}")))
            .map_err(|error| failure(path, error))?;
    }
    Ok(())
}

/// Index of the group and number of the connection that `flow` names.
fn drawn(plan: &Plan, flow: Option<&str>) -> Result<(u32, u32), Failure> {
    let Some(flow) = flow else { return Ok((0, 0)) };
    let groups = &plan.variants[0].resolved.groups;
    let find = |name: &str| groups.iter().position(|group| group.name == name);
    let found = match (find(flow), flow.rsplit_once('/')) {
        (Some(group), _) => Some((group, 0)),
        (None, Some((name, number))) => find(name).zip(number.parse().ok()),
        (None, None) => None,
    };
    let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    found.map(|(group, number)| (group as u32, number)).ok_or_else(|| {
        Failure::usage(format!(
            "there is no flow called `{flow}`: give a traffic group ({}), or one with the number of a connection, like {}/2",
            known.join(", "),
            known.first().unwrap_or(&"pages")
        ))
    })
}

#[cfg(feature = "parquet")]
fn write_trace(path: &Path, rows: Vec<trace::TraceRow>, about: String) -> std::io::Result<()> {
    if path.extension().is_some_and(|ending| ending == "parquet") {
        return trace::write_parquet(path, rows, &[(String::from("run"), about)]);
    }
    trace::write_csv(path, rows)
}

#[cfg(not(feature = "parquet"))]
fn write_trace(path: &Path, rows: Vec<trace::TraceRow>, _about: String) -> std::io::Result<()> {
    trace::write_csv(path, rows)
}

/// Refuses a file that cannot be written before anything runs.
fn check_writable(path: &Path) -> Result<(), Failure> {
    std::fs::File::create(path)
        .map(drop)
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

fn unknown_variant(name: &str, names: &[String]) -> Failure {
    let mut message = format!("there is no variant or mechanism called `{name}`");
    if !names.is_empty() {
        message.push_str(&format!("; this file has {}", names.join(", ")));
    }
    message.push_str("; `fleetfoot list mechanisms` shows the mechanisms");
    Failure::usage(message)
}
