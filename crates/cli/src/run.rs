//! `fleetfoot run`: a scenario, or one of its variants, alone.

#[cfg(target_os = "linux")]
mod real;
#[cfg(target_os = "linux")]
mod replay;

use crate::failure::Failure;
use crate::layout::width;
use crate::output::{Common, counted, plain, print};
use crate::progress::Reporter;
use crate::session::{
    BatchFlags, Done, about, command, forecast, on_cores, scenario, seeds_in_words, stop_flag, with_settings,
};
use crate::setup::setting_up;
use crate::table;
use crate::target::{Target, Targets};
use clap::Args;
use fleetfoot_lab::compare::{BASELINE, Choice, Plan, build, unknown_variant};
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::memory;
use fleetfoot_lab::report::diagram::Diagram;
use fleetfoot_lab::report::time_series::{
    FLOWS_TRACED, MOST_PACKETS, Tap, TimeSeries, captured, links_called, tapped, trace_rows, traces,
};
use fleetfoot_lab::report::{pcapng, trace};
use fleetfoot_lab::result::Comparison;
use fleetfoot_lab::run::{Options, execute as run_all, observe, simulate_with_progress};
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
    /// Change the scenario: a path and a value, such as network.bottleneck.rate="20 Mbit/s"; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The seed, instead of the scenario's first.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run so many seeds.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: u32,
    /// Write the packets at the bottleneck as pcapng for Wireshark and tcpdump. A packet is there once for each of the six points where it
    /// passed (in, out, drop, each way): in Wireshark filter one, such as frame.interface_name == "bottleneck-forward-in", or give --pcap-at. Where the
    /// kernel plays the run (run.world) these are its frames.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Capture at one end of this link instead, both directions, every packet once: LINK or LINK:near (before its forward queue), or LINK:far.
    #[arg(long, value_name = "LINK", requires = "pcap")]
    pcap_at: Option<String>,
    /// Run nothing: send what arrived at the bottleneck in CAPTURE, which --pcap wrote of this very run in real time (run.world), through the
    /// simulated queue, and compare every packet that was dropped, was marked or left.
    #[arg(long, value_name = "CAPTURE", conflicts_with_all = ["pcap", "trace", "diagram", "out", "seeds"])]
    replay: Option<PathBuf>,
    /// Write the state of every sender at every event as CSV (or Parquet, by the ending, where that is built in). It counts connections
    /// from the start of the run: where there is a warm-up, or a connection carries many pages, samples.csv has other numbers.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Draw one flow as SVG: segments between sender and receiver, losses, probes, bundles, timers.
    #[arg(long, value_name = "FILE")]
    diagram: Option<PathBuf>,
    /// The flow that --diagram draws: GROUP, or GROUP/N for its TCP connection N, from 0; else the first of the first group.
    /// Where a connection carries many pages or exchanges, the rows of the table are those and have other numbers.
    #[arg(long, value_name = "FLOW", requires = "diagram")]
    diagram_flow: Option<String>,
    /// Also write result, samples and report into this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchFlags,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let shown = plain(&arguments.file.display().to_string());
    let scenario = setting_up(common, &shown, || -> Result<_, Failure> {
        with_settings(scenario(Some(&arguments.file))?, &arguments.set)
    })?;
    let choice = Choice {
        single: arguments.variant.clone(),
        seed: arguments.seed,
        seeds: Some(arguments.seeds),
        ..Choice::default()
    };
    let names = scenario.variant_names();
    let Some(plan) = setting_up(common, &shown, || Plan::single(scenario, &choice))? else {
        return Err(Failure::usage(unknown_variant(
            arguments.variant.as_deref().unwrap_or(BASELINE),
            &names,
        )));
    };
    if let Some(path) = &arguments.trace
        && path.extension().is_some_and(|ending| ending == "parquet")
        && cfg!(not(feature = "parquet"))
    {
        return Err(Failure::usage(
            "this program was built without Parquet: give --trace a name that ends in .csv",
        ));
    }
    let is_real = plan.variants[0].resolved.spec.world.is_real();
    if arguments.diagram.is_some() && !is_real {
        drawn(&plan, arguments.diagram_flow.as_deref())?; // reported before anything runs
    }
    let tap = arguments
        .pcap_at
        .as_deref()
        .map(|at| tap(&plan, at))
        .transpose()?;
    if let Some(capture) = &arguments.replay {
        return replayed(capture, &plan, common);
    }
    #[cfg(target_os = "linux")]
    if is_real {
        real::check(arguments, &plan.variants[0].resolved.spec, tap)?;
    }
    let mut targets = Targets::of(Some(&arguments.file), &plan.scenario, arguments.batch.force);
    let outputs = Outputs::of(arguments, &mut targets)?;
    let forecast = setting_up(common, &shown, || forecast(&plan, &arguments.batch))?;
    let runs = forecast.runs();
    common.say(&format!(
        "Running \"{}\" ({}): {} ({}) {}, about {}.",
        plain(plan.scenario.title()),
        plain(&plan.variants[0].name),
        counted(runs, "run"),
        seeds_in_words(&plan.seeds),
        on_cores(arguments.batch.jobs, runs),
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
    #[cfg(target_os = "linux")]
    let capture = match (&outputs.pcap, &arguments.pcap) {
        (Some(target), Some(path)) if is_real => {
            let spec = plan.variants[0].resolved.spec(plan.seeds[0]);
            let (path, about) = (path.display().to_string(), about_run(&plan));
            Some(real::Capture::begin(target, path, tap, &spec, &about)?)
        }
        _ => None,
    };
    let reporter = Reporter::new(forecast, common, arguments.batch.events.as_deref())?;
    let stop = stop_flag();
    let options = Options {
        jobs: arguments.batch.jobs,
        store: folder.as_ref().map(|folder| folder.store.clone()),
        // What is captured is played now.
        fresh: arguments.batch.fresh || is_real && outputs.pcap.is_some(),
    };
    reporter
        .event(&serde_json::json!({ "event": "started", "scenario": plan.scenario.title(), "runs": runs }));
    let engine = |spec: &Spec, stop: &AtomicBool| {
        #[cfg(target_os = "linux")]
        if let Some(capture) = &capture {
            return capture.play(spec, stop, &|pulse| reporter.pulse(pulse));
        }
        simulate_with_progress(spec, stop, &|pulse| reporter.pulse(pulse))
    };
    let batch = run_all(&plan.jobs(), &plan.seeds, &options, &stop, &engine, &|progress| {
        reporter.run(0, progress);
    });
    if batch.is_err() {
        reporter.finish();
    }
    let batch = batch?;
    if batch.runs[0].is_empty() {
        reporter.finish();
        let stopped = reporter.stopped();
        common.say(&stopped.unwrap_or_else(|| String::from("Stopped before a run finished.")));
        return Err(Failure::interrupted());
    }
    let mut comparison = build(&plan, &batch, &command());
    comparison.document.commit = String::from(env!("FLEETFOOT_COMMIT"));
    let mut whole = !batch.interrupted;
    let written = reporter.writing(|writing| {
        if !is_real && !batch.interrupted && (folder.is_some() || outputs.any()) {
            writing.now("time series of single flows");
            whole = watch(arguments, &outputs, tap, &plan, &stop, common, &mut comparison)?;
        }
        writing.now("tables and page");
        folder
            .as_ref()
            .map_or(Ok(()), |folder| folder.write(&comparison))?;
        Ok::<(), Failure>(())
    });
    reporter.finish();
    #[cfg(target_os = "linux")]
    if let Some(capture) = capture
        && !batch.interrupted
    {
        capture.finish(common)?;
    }
    written?;
    if let Some(folder) = &folder {
        common.say_of_store(&folder.store);
    }
    if common.json {
        print(&comparison.document.to_json_text())?;
    } else {
        print(&table::single(&comparison, common.colored(), width()))?;
    }
    common.say(&format!("{}\nAgain: {}", Done::of(&batch), comparison.command));
    if whole {
        reporter.told()
    } else {
        Err(Failure::interrupted())
    }
}

#[cfg(target_os = "linux")]
fn replayed(capture: &Path, plan: &Plan, common: &Common) -> Result<(), Failure> {
    replay::execute(capture, &plan.variants[0].resolved.spec(plan.seeds[0]), common)
}

#[cfg(not(target_os = "linux"))]
fn replayed(_: &Path, _: &Plan, _: &Common) -> Result<(), Failure> {
    Err(Failure::usage("--replay needs Linux, as runs in real time do"))
}

/// The files that are written beside the result.
struct Outputs {
    pcap: Option<Target>,
    trace: Option<Target>,
    diagram: Option<Target>,
}

impl Outputs {
    /// Checks all of them before anything runs.
    fn of(arguments: &Arguments, targets: &mut Targets) -> Result<Outputs, Failure> {
        let mut file = |flag: &str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| targets.file(flag, path)).transpose()
        };
        let outputs = Outputs {
            pcap: file("--pcap", &arguments.pcap)?,
            trace: file("--trace", &arguments.trace)?,
            diagram: file("--diagram", &arguments.diagram)?,
        };
        targets.of_batch(&arguments.batch, arguments.out.as_deref())?;
        Ok(outputs)
    }

    fn any(&self) -> bool {
        self.pcap.is_some() || self.trace.is_some() || self.diagram.is_some()
    }
}

/// Runs the first seed again with observers, and writes capture and trace. Whether it came to its end: where it was stopped nothing of it is written, since
/// a part of a capture looks like a whole one.
fn watch(
    arguments: &Arguments,
    outputs: &Outputs,
    tap: Option<(&str, Tap)>,
    plan: &Plan,
    stop: &AtomicBool,
    common: &Common,
    comparison: &mut Comparison,
) -> Result<bool, Failure> {
    let resolved = &plan.variants[0].resolved;
    if !outputs.any() {
        // What the run before held: this one is made on another thread, which would not use it.
        memory::give_back();
        let traces = traces(resolved, plan.seeds[0], stop).map_err(Failure::other)?;
        let whole = traces.is_some();
        comparison.variants[0].traces = traces.unwrap_or_default();
        return Ok(whole);
    }
    let links = match (&outputs.pcap, tap) {
        (Some(_), Some((name, _))) => links_called(resolved, &[name.to_owned()]),
        (Some(_), None) => links_called(resolved, &comparison.bottleneck),
        (None, _) => Vec::new(),
    };
    let groups = match &outputs.trace {
        Some(_) => 0..resolved.groups.len() as u32,
        None => 0..0,
    };
    let observers = (
        TimeSeries::new(resolved, FLOWS_TRACED),
        (
            Trace::new(groups, u32::MAX),
            Capture::new(links.iter().copied(), MOST_PACKETS),
        ),
    );
    let (group, number) = match &outputs.diagram {
        Some(_) => drawn(plan, arguments.diagram_flow.as_deref())?,
        None => (0, 0),
    };
    let mut observers = (observers, Diagram::new(resolved, group, number));
    let output = observe(&resolved.spec(plan.seeds[0]), stop, &mut observers).map_err(Failure::other)?;
    if output.interrupted {
        common.say("Interrupted while packets were recorded: no capture, trace or diagram is written.");
        return Ok(false);
    }
    let ((series, (trace, capture)), diagram) = observers;
    comparison.variants[0].traces = series.traces;
    let about = about_run(plan);
    if let Some(target) = &outputs.pcap {
        if links.is_empty() {
            common.say("The capture is empty: no link is the bottleneck; name one with run.bottleneck.");
        }
        if capture.packets.len() == MOST_PACKETS {
            common.say(&format!(
                "The capture holds the first {MOST_PACKETS} packets only."
            ));
        }
        let (interfaces, packets) = match tap {
            Some((_, tap)) => tapped(&capture, &links, tap, resolved),
            None => captured(&capture, &links, resolved),
        };
        let protocol = if resolved.needs_ipv6() {
            pcapng::Protocol::V6
        } else {
            pcapng::Protocol::V4
        };
        target.write(|path| pcapng::write(path, packets, &interfaces, &capture.flows, &about, protocol))?;
    }
    if let (Some(target), Some(named)) = (&outputs.trace, &arguments.trace) {
        let as_parquet = named.extension().is_some_and(|ending| ending == "parquet");
        target.write(|path| write_trace(path, as_parquet, trace_rows(&trace, resolved), about.clone()))?;
    }
    if let Some(target) = &outputs.diagram {
        let name = &resolved.groups[group as usize].name;
        if diagram.is_empty() {
            return Err(no_such_connection(name, number, diagram.opened()));
        }
        let svg = diagram.svg(&format!("{about}: {name}, connection {number}"));
        target.write(|path| std::fs::write(path, svg))?;
    }
    Ok(true)
}

/// What a capture or a drawing is of.
fn about_run(plan: &Plan) -> String {
    format!(
        "{}, {}, seed {}",
        plan.scenario.title(),
        plan.variants[0].name,
        plan.seeds[0]
    )
}

/// The link that --pcap-at names, and the end of it.
fn tap<'a>(plan: &Plan, at: &'a str) -> Result<(&'a str, Tap), Failure> {
    let links = &plan.variants[0].resolved.spec.links;
    let known = |name: &str| links.iter().any(|link| link.name == name);
    let (name, tap) = match at.rsplit_once(':') {
        _ if known(at) => (at, Tap::Near),
        Some((name, "near")) => (name, Tap::Near),
        Some((name, "far")) => (name, Tap::Far),
        _ => (at, Tap::Near),
    };
    if known(name) {
        return Ok((name, tap));
    }
    let mut names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let more = match names.len() > MOST_NAMES {
        true => format!(" and {} more", names.len() - MOST_NAMES),
        false => String::new(),
    };
    names.truncate(MOST_NAMES);
    Err(Failure::usage(format!(
        "there is no link called `{name}` to capture at: give one of {}{more}, with :near or :far behind it for one of its ends",
        names.join(", ")
    )))
}

/// Index of the group and number of the connection that `flow` names; without a name the first that has connections.
fn drawn(plan: &Plan, flow: Option<&str>) -> Result<(u32, u32), Failure> {
    let resolved = &plan.variants[0].resolved;
    let groups = &resolved.groups;
    let with_connections = || (0..groups.len()).filter(|&group| resolved.is_tcp(group));
    let known: Vec<&str> = with_connections()
        .map(|group| groups[group].name.as_str())
        .collect();
    let Some(flow) = flow else {
        let first = with_connections().next();
        return first
            .map(|group| (group as u32, 0))
            .ok_or_else(|| Failure::usage("--diagram draws a TCP connection, and no traffic here has one"));
    };
    let find = |name: &str| groups.iter().position(|group| group.name == name);
    let found = match (find(flow), flow.rsplit_once('/')) {
        (Some(group), _) => Some((group, 0)),
        (None, Some((name, number))) => find(name).zip(number.parse().ok()),
        (None, None) => None,
    };
    match found {
        Some((group, _)) if !resolved.is_tcp(group) => Err(Failure::usage(format!(
            "--diagram-flow {flow}: a diagram draws a TCP connection, and `{}` ({}) has none; {} has",
            groups[group].name,
            groups[group].kind.name(),
            if known.is_empty() {
                String::from("nothing here")
            } else {
                known.join(", ")
            }
        ))),
        Some((group, number)) => Ok((group as u32, number)),
        None => Err(Failure::usage(format!(
            "there is no flow called `{flow}`: give a traffic group ({}), or one with the number of a connection, like {}/2",
            known.join(", "),
            known.first().unwrap_or(&"pages")
        ))),
    }
}

/// The connection that is to be drawn was not opened: how many were, and what one may give.
fn no_such_connection(name: &str, number: u32, opened: u64) -> Failure {
    Failure::usage(match opened {
        0 => format!("--diagram-flow {name}/{number}: `{name}` opened no connection in this run"),
        1 => format!("--diagram-flow {name}/{number}: `{name}` opened one connection in this run: {name}/0"),
        _ => format!(
            "--diagram-flow {name}/{number}: `{name}` opened {opened} connections in this run: {name}/0 to {name}/{}",
            opened - 1
        ),
    })
}

#[cfg(feature = "parquet")]
fn write_trace(
    path: &Path,
    as_parquet: bool,
    rows: Vec<trace::TraceRow>,
    about: String,
) -> std::io::Result<()> {
    if as_parquet {
        return trace::write_parquet(path, rows, &[(String::from("run"), about)]);
    }
    trace::write_csv(path, rows)
}

#[cfg(not(feature = "parquet"))]
fn write_trace(
    path: &Path,
    _as_parquet: bool,
    rows: Vec<trace::TraceRow>,
    _about: String,
) -> std::io::Result<()> {
    trace::write_csv(path, rows)
}

/// Links that a message names.
const MOST_NAMES: usize = 12;
