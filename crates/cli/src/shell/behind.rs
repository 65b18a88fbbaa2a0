//! A command behind the link, once.

use super::observe::{Capture, Observed, Observer, may_show_line};
use super::output::Output;
use super::{Arguments, compare, words};
use crate::failure::Failure;
use crate::masquerade::{is_root, masquerade, needs_root, say_undone};
use crate::output::{Common, plain, print};
use crate::session::{command as again, quoted};
use crate::target::{Target, Targets};
use fleetfoot_core::queue::DropReason;
use fleetfoot_lab::live::record::{self, summary};
use fleetfoot_lab::live::study::Made;
use fleetfoot_lab::live::{Lateness, Metric, Run, Studied, Study};
use fleetfoot_lab::memory;
use fleetfoot_lab::report::live;
use fleetfoot_lab::result::{Comparison, Drops, LinkInfo};
use fleetfoot_lab::scenario::{Scenario, Setting};
use fleetfoot_live::kernel::delays_beside;
use fleetfoot_live::{
    Direction, Finished, Masquerade, Refusal, SenderSwitches, Shell, hold_signals, tap, waited_for_cores,
};
use fleetfoot_sim::output::Histogram;
use fleetfoot_sim::spec::{LinkRate, LinkSpec, Spec};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The command and the scenario whose link it is put behind.
pub(super) struct Setup {
    pub(super) scenario: Scenario,
    pub(super) link: String,
    pub(super) command: Vec<OsString>,
    pub(super) far: Option<String>,
    pub(super) isolated: bool,
    masquerade: Option<Arc<Masquerade>>,
}

/// The link of a variant.
pub(super) struct Described {
    /// What the command sends, and what it receives.
    links: [LinkSpec; 2],
    spec: Spec,
}

/// What is particular to a run.
pub(super) struct Wanted<'a> {
    pub(super) number: u64,
    pub(super) seed: u64,
    pub(super) switches: SenderSwitches,
    /// What the command prints goes to standard error, or into this file.
    pub(super) to_stderr: bool,
    pub(super) output: Option<PathBuf>,
    pub(super) observer: Observer<'a>,
}

/// A run that was made.
pub(super) struct Done {
    pub(super) made: Made,
    pub(super) finished: Finished,
    /// The capture could not be written to its end.
    pub(super) cut: bool,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    if !arguments.compare.is_empty() || arguments.variant.len() > 1 {
        return compare::execute(arguments, common);
    }
    if arguments.metric.is_some() || arguments.more_is_better || arguments.runs.is_some() {
        return Err(Failure::usage(
            "--metric, --more-is-better and --runs are of a comparison: --compare drop-tail,fq-codel",
        ));
    }
    let mut setup = Setup::of(arguments)?;
    let described = setup.described(&single(arguments, &setup)?)?;
    let mut targets = Targets::of(arguments.file.as_deref(), &setup.scenario, arguments.force);
    let pcap = arguments.pcap.as_deref();
    let pcap = pcap.map(|path| targets.file("--pcap", path)).transpose()?;
    let switches = compare::switches(&arguments.sender, "--sender")?;
    let metric = (Metric::Wall, String::from("wall"));
    let study = setup.study(metric, false, arguments.seed);
    let output = match &arguments.out {
        Some(path) => Some(Output::open(path, &setup.identity(arguments), arguments.force)?),
        None => None,
    };
    let capture = pcap
        .as_ref()
        .map(|target| capture(target, arguments, &study))
        .transpose()?;
    setup.say_link(&described, &switches, common);
    let sender = switches.commands();
    let wanted = Wanted {
        number: 1,
        seed: arguments.seed,
        switches,
        to_stderr: common.json,
        output: None,
        observer: Observer {
            capture,
            line: may_show_line(arguments.command.is_empty(), common),
            common,
        },
    };
    let begun = setup.prepare(arguments, common);
    let begun = begun.and_then(|()| compare::check_pacing(&wanted.switches));
    let done = match begun.and_then(|()| setup.run(&described, wanted)) {
        Ok(done) => done,
        Err(failure) => {
            // A capture of nothing would stand in the way of the next start.
            if let Some(target) = pcap {
                target.discard();
            }
            return Err(failure);
        }
    };
    let studied = Studied {
        name: described.links[1].queue.to_owned(),
        set: serde_json::Map::new(),
        links: described.information(),
        rates: described.rates(),
        sender,
        runs: vec![done.made],
    };
    let code = studied.runs[0].run.exit_code;
    if !common.json {
        common.say(&words::summary(&done.finished, &studied.runs[0].run));
    }
    let result = finish(study.result(&[studied], false), &setup);
    let mut told = Ok(());
    if let Some(output) = &output {
        told = output.write(&result);
        if told.is_ok() {
            common.say(&format!("Report: {}", output.report().display()));
        }
    }
    if common.json {
        told = told.and(print(&result.document.to_json_text()));
    }
    match (code, &done.finished.broken) {
        // The status is that of a command that was ended: it says nothing.
        (_, Some(error)) => Err(ended_with_its_link(error)),
        (0, None) if done.cut => Err(Failure::reported()),
        (0, None) => told,
        (code, None) => {
            // The status is the command's, whatever became of the results.
            if let Err(failure) = told {
                failure.report(false);
            }
            drop(setup);
            std::process::exit(code)
        }
    }
}

/// What the variant changes that is asked for alone.
fn single(arguments: &Arguments, setup: &Setup) -> Result<Setting, Failure> {
    let Some(name) = arguments.variant.first() else {
        return Ok(Setting::none());
    };
    let mut variants = setup.scenario.variants().iter();
    match variants.find(|variant| variant.name == *name) {
        Some(variant) => Ok(variant.set.clone()),
        None => Err(compare::unknown(name, "--variant", setup)),
    }
}

fn capture(target: &Target, arguments: &Arguments, study: &Study) -> Result<Capture, Failure> {
    let path = arguments
        .pcap
        .as_deref()
        .unwrap_or_else(|| std::path::Path::new(""));
    let begun = Capture::begin(
        target.open()?,
        path,
        &format!("fleetfoot shell -- {}", study.command),
    );
    begun.map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// What a result has beside the measurements.
pub(super) fn finish(mut result: Comparison, setup: &Setup) -> Comparison {
    result.document.commit = String::from(env!("FLEETFOOT_COMMIT"));
    result.command = again();
    result.scenario_toml = setup.scenario.to_toml();
    result
}

impl Setup {
    pub(super) fn of(arguments: &Arguments) -> Result<Setup, Failure> {
        if arguments.masquerade {
            needs_root(BOTH_INSIDE)?;
        }
        if arguments
            .command
            .first()
            .is_some_and(|command| command.is_empty())
        {
            return Err(Failure::usage(
                "the command behind `--` is empty: fleetfoot shell -- COMMAND",
            ));
        }
        Ok(Setup {
            scenario: arguments.scenario()?,
            link: arguments
                .link
                .clone()
                .unwrap_or_else(|| String::from("bottleneck")),
            command: arguments.command(),
            far: arguments.far.clone(),
            isolated: arguments.far.is_some() || !is_root(),
            masquerade: None,
        })
    }

    /// The command as one would type it.
    pub(super) fn typed(&self) -> String {
        let words = self.command.iter().map(|word| quoted(&word.to_string_lossy()));
        plain(&words.collect::<Vec<_>>().join(" "))
    }

    /// What is asked of the command.
    pub(super) fn study(&self, metric: (Metric, String), more_is_better: bool, seed: u64) -> Study {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Study {
            scenario: self.scenario.title().to_owned(),
            command: self.typed(),
            far: self.far.clone(),
            metric,
            more_is_better,
            kernel: format!(
                "Linux {}, whose senders use {} unless they are told otherwise",
                release.trim(),
                SenderSwitches::usual_congestion_control()
            ),
            seed,
            link: self.link.clone(),
        }
    }

    /// What results in a folder must have in common.
    pub(super) fn identity(&self, arguments: &Arguments) -> String {
        // Files that the scenario names, such as a trace, may change while their names stay.
        let files = self.scenario.files().into_iter();
        let contents: Vec<String> = files
            .map(|path| std::fs::read(&path).unwrap_or_default())
            .map(|bytes| live::identity(&String::from_utf8_lossy(&bytes)))
            .collect();
        format!(
            "{}\n{}\n{}\n{:?}\n{}\n{}\n{:?}\n{}\n{:?}\n{}",
            self.scenario.to_toml(),
            self.link,
            self.typed(),
            self.far,
            arguments.seed,
            self.isolated,
            arguments.sender,
            arguments.masquerade,
            arguments.variant,
            contents.join("\n")
        )
    }

    /// The link with these changes.
    pub(super) fn described(&self, set: &Setting) -> Result<Described, Failure> {
        let resolved = self.scenario.resolve(set)?;
        let spec = resolved.spec;
        let find = |forward: bool| {
            let mut links = spec.links.iter();
            let found = links.position(|link| link.name == self.link && link.forward == forward);
            found.ok_or_else(|| unknown_link(&self.link, &spec))
        };
        let indices = [find(true)?, find(false)?];
        let beside = delays_beside(&spec, indices);
        let link = |direction: usize| {
            let link = &spec.links[indices[direction]];
            LinkSpec {
                delay: link.delay + beside[direction],
                ..link.clone()
            }
        };
        for mtu in indices.map(|index| spec.links[index].mtu) {
            if !MTUS.contains(&mtu) {
                return Err(Failure::usage(format!(
                    "link {} has an MTU of {mtu} bytes (key `mtu`); an interface takes {} to {}",
                    plain(&self.link),
                    MTUS.start(),
                    MTUS.end()
                )));
            }
        }
        Ok(Described {
            links: [link(1), link(0)],
            spec,
        })
    }

    /// Says what the command is put behind, and what sends.
    pub(super) fn say_link(&self, described: &Described, switches: &SenderSwitches, common: &Common) {
        for (name, link) in ["down", "up"].iter().zip(described.links.iter().rev()) {
            common.say(&format!("{name}: {}", words::link(link)));
        }
        common.say(&words::senders(switches));
    }

    /// Makes the far end a network of its own where it is to be one, or what `--masquerade` needs. Processes are made before
    /// threads are.
    pub(super) fn prepare(&mut self, arguments: &Arguments, common: &Common) -> Result<(), Failure> {
        if arguments.masquerade {
            self.masquerade = Some(Arc::new(masquerade(common, BOTH_INSIDE)?));
        } else if is_root() {
            say_undone(&Masquerade::repair(), common);
        }
        if self.isolated {
            Shell::isolate().map_err(|error| Failure::other(error.to_string()))?;
        }
        Ok(())
    }

    /// Runs the command behind the link.
    pub(super) fn run(&self, described: &Described, wanted: Wanted<'_>) -> Result<Done, Failure> {
        let spec = Spec {
            seed: wanted.seed,
            ..described.spec.clone()
        };
        let direction = |link: &LinkSpec| {
            link.link(&spec)
                .map(|made| Direction::new(made).with_room_for(room(link.mtu)))
                .map_err(|error| Failure::usage(error.to_string()))
        };
        let [up, down] = &described.links;
        let mut directions = [direction(up)?, direction(down)?];
        let (taps, reader) = tap(fleetfoot_live::RING);
        for (direction, tap) in directions.iter_mut().zip(taps) {
            direction.observe(tap);
        }
        let shell = Shell {
            masquerade: self.masquerade.clone(),
            command: self.command.clone(),
            far: self.far.clone(),
            mtu: down.mtu.min(up.mtu),
            to_stderr: wanted.to_stderr,
            output: wanted.output,
            switches: wanted.switches,
            isolated: self.isolated,
            ..Shell::default()
        };
        let common = wanted.observer.common;
        let done = AtomicBool::new(false);
        let waited = waited_for_cores();
        // The observer's thread leaves signals to the one that waits for the command.
        let held = hold_signals();
        let (finished, observed) = std::thread::scope(|scope| {
            let observer = wanted.observer.start(scope, reader, &done);
            // The command gets Ctrl-C and other signals; what was measured is printed when it has ended.
            let finished = shell.run(directions);
            done.store(true, Ordering::Release);
            let observed = observer
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (finished, observed)
        });
        drop(held);
        let finished = finished.map_err(|error| Failure::other(error.to_string()))?;
        if let Some(status) = finished.far {
            common.say(&format!(
                "The far command ended before the command, with exit status {}.",
                code_of(status)
            ));
        }
        let cut = observed.cut;
        let mut made = made(&finished, observed, wanted.number, wanted.seed);
        let waited = waited.zip(waited_for_cores());
        // Of a moment it says nothing.
        made.run.waited_for_cores = waited
            .filter(|_| finished.wall >= SHORTEST)
            .map(|(before, after)| {
                let share = after.saturating_sub(before).as_secs_f64() / finished.wall.as_secs_f64();
                share.min(1.0)
            });
        Ok(Done { made, finished, cut })
    }
}

impl Described {
    /// What results show of both directions.
    pub(super) fn information(&self) -> [LinkInfo; 2] {
        let [up, down] = &self.links;
        [up, down].map(fleetfoot_lab::compare::link_info)
    }

    /// Kind of the queue towards the command, or back.
    pub(super) fn queue(&self, back: bool) -> &'static str {
        self.links[usize::from(!back)].queue
    }

    /// Speeds, where they are constant (bit/s).
    pub(super) fn rates(&self) -> [Option<f64>; 2] {
        let [up, down] = &self.links;
        [up, down].map(|link| match &link.rate {
            LinkRate::Constant(rate) => Some(rate.bps() as f64),
            LinkRate::Trace { .. } => None,
        })
    }
}

/// What can be done without root.
const BOTH_INSIDE: &str = "Without root both ends are inside: --far COMMAND";

/// MTUs that an interface can have, in bytes.
const MTUS: std::ops::RangeInclusive<u32> = 68..=65_535;

/// Frames that a direction may keep: both together take three quarters of the memory that the program may take.
fn room(mtu: u32) -> usize {
    let each = u64::from(mtu) + PER_FRAME;
    usize::try_from(memory::ceiling() / 8 * 3 / each).unwrap_or(usize::MAX)
}

/// What a frame takes beside its payload: headers, tag, and what is known of it (bytes).
const PER_FRAME: u64 = 256;

/// A command that ends sooner is not asked how long programs waited for cores.
const SHORTEST: std::time::Duration = std::time::Duration::from_millis(200);

fn unknown_link(name: &str, spec: &Spec) -> Failure {
    let mut names: Vec<&str> = spec.links.iter().map(|link| link.name.as_str()).collect();
    names.dedup();
    Failure::usage(format!(
        "no link is called {name:?}; the file has {}",
        plain(&names.join(", "))
    ))
}

/// The command was ended because its link had ended.
pub(crate) fn ended_with_its_link(error: &fleetfoot_live::Error) -> Failure {
    Failure::other(format!("{error}; the command was ended"))
}

/// The status that a shell would show.
pub(crate) fn code_of(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// The record of a run.
fn made(finished: &Finished, observed: Observed, number: u64, seed: u64) -> Made {
    let exit_code = code_of(finished.status);
    let [sent, received] = &finished.directions;
    let mut lateness = Histogram::new();
    lateness.merge(&sent.measured().lateness);
    lateness.merge(&received.measured().lateness);
    let late = Lateness::of(&lateness, sent.measured().late + received.measured().late);
    let missed = u64::from(finished.missed);
    let [dropped_sent, dropped_received] = observed.watched.dropped;
    let seen = observed.watched.seen;
    let wall_s = finished.wall.as_secs_f64();
    Made {
        queue_delay: [sent, received].map(|direction| direction.measured().queue_delay.clone()),
        run: Run {
            run: number,
            seed,
            exit_code,
            wall_s,
            value: Some(wall_s),
            problem: None,
            kept: record::is_kept(late.share_above_1ms, missed),
            lateness: late,
            waited_for_cores: None,
            missed_packets: missed,
            unobserved: observed.unobserved,
            sent: way(sent, dropped_sent),
            received: way(received, dropped_received),
            flows_seen: seen.total,
            other_frames: seen.other_frames,
            flows: seen.flows,
            timeline: observed.watched.timeline,
        },
    }
}

fn way(direction: &Direction, dropped: Drops) -> record::Direction {
    let measured = direction.measured();
    let span_s = measured
        .span
        .map_or(0.0, |(first, last)| last.since(first).as_secs_f64());
    let (reasons, refusals) = (DropReason::ALL.iter(), Refusal::ALL.iter());
    record::Direction {
        arrived_packets: measured.arrived,
        delivered_packets: measured.delivered,
        delivered_bytes: measured.bytes,
        throughput_bps: match span_s > 0.0 {
            true => measured.bytes as f64 * 8.0 / span_s,
            false => 0.0,
        },
        queue_delay_s: summary(&measured.queue_delay),
        drops: reasons
            .map(|&reason| (reason.name().to_owned(), measured.drops[reason as usize]))
            .collect(),
        dropped,
        marks: direction.marks(),
        refused: refusals
            .map(|&refusal| (refusal.name().to_owned(), measured.refused[refusal as usize]))
            .collect(),
        lateness_s: summary(&measured.lateness),
        late_packets: measured.late,
    }
}
