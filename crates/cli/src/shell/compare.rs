//! `fleetfoot shell --compare`: the command under each of several queues or settings, run by turns and ranked.

use super::Arguments;
use super::behind::{Described, Setup, Wanted, ended_with_its_link, finish};
use super::observe::Observer;
use super::output::Output;
use super::progress::Progress;
use crate::failure::Failure;
use crate::layout::{align, fit, new_table, width, wrapped};
use crate::output::{Common, counted, plain, print};
use fleetfoot_lab::compare::json;
use fleetfoot_lab::live::study::Made;
use fleetfoot_lab::live::{Metric, Run, Studied};
use fleetfoot_lab::plugins;
use fleetfoot_lab::report::live::{HEADINGS, compared_row, ranked};
use fleetfoot_lab::result::Comparison;
use fleetfoot_lab::run::write_atomically;
use fleetfoot_lab::scenario::Setting;
use fleetfoot_live::SenderSwitches;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// One of the things that are compared.
struct Variant {
    name: String,
    set: Setting,
    switches: SenderSwitches,
    described: Described,
    runs: Vec<Made>,
}

pub(super) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let mut setup = Setup::of(arguments)?;
    if arguments.command.is_empty() {
        return Err(Failure::usage(
            "--compare needs a command that ends by itself: fleetfoot shell --compare drop-tail,fq-codel -- COMMAND",
        ));
    }
    if arguments.pcap.is_some() {
        return Err(Failure::usage(
            "--pcap is of one run, and --compare makes many: leave one of them out",
        ));
    }
    let runs = arguments.runs.unwrap_or(ROUNDS);
    let text = arguments.metric.as_deref().unwrap_or("wall");
    let metric = Metric::parse(text).map_err(|why| Failure::usage(format!("--metric {text:?}: {why}")))?;
    let mut variants = variants(arguments, &setup)?;
    let study = setup.study(
        (metric, text.to_owned()),
        arguments.more_is_better,
        arguments.seed,
    );
    let names: Vec<String> = variants.iter().map(|variant| variant.name.clone()).collect();
    let identity = format!(
        "{}\n{}\n{text}\n{}\n{}",
        setup.identity(arguments),
        names.join("\n"),
        arguments.more_is_better,
        study.kernel,
    );
    let output = match &arguments.out {
        Some(path) => Some(Output::open(path, &identity, arguments.force)?),
        None => None,
    };
    let reused = output
        .as_ref()
        .map_or(0, |output| reuse(output, &mut variants, runs));
    let all = u64::from(runs) * variants.len() as u64;
    let again = match reused {
        0 => String::new(),
        reused => format!(", {reused} of them from {}", setup_folder(arguments)),
    };
    let warm_up = if reused < all {
        ", after one to warm up"
    } else {
        ""
    };
    common.say(&format!(
        "Comparing {}: {} of `{}` in {}{again}{warm_up}.",
        names.join(", "),
        counted(all, "run"),
        study.command,
        counted(u64::from(runs), "round"),
    ));
    setup.say_link(
        &variants[0].described,
        &switches(&arguments.sender, "--sender")?,
        common,
    );
    for variant in variants.iter().filter(|variant| !variant.switches.is_none()) {
        common.say(&format!(
            "{}: {}",
            variant.name,
            variant.switches.commands().join("; ")
        ));
    }
    setup.prepare(arguments, common)?;
    for variant in &variants {
        check_pacing(&variant.switches)?;
    }
    // A signal that comes between two runs waits for the next one.
    let held = fleetfoot_live::hold_signals();
    let mut turn = Turn {
        setup: &setup,
        common,
        metric: &study.metric.0,
        output: output.as_ref(),
        progress: Progress::new(common, all - reused),
        scratch: Scratch::new()?,
    };
    let (mut interrupted, mut failed) = (false, None);
    if reused < all {
        interrupted = turn.run(&variants[0], 0, arguments.seed)?.is_none();
    }
    for number in 1..=u64::from(runs) {
        for step in 0..variants.len() {
            if interrupted || failed.is_some() {
                break;
            }
            // Every variant is the first of its round as often as the others.
            let index = (step + number as usize - 1) % variants.len();
            if variants[index].runs.iter().any(|made| made.run.run == number) {
                continue;
            }
            match turn.run(&variants[index], number, arguments.seed + number - 1) {
                Ok(Some(made)) => variants[index].runs.push(made),
                Ok(None) => interrupted = true,
                Err(failure) => failed = Some(failure),
            }
        }
    }
    turn.progress.finish();
    drop((turn, held));
    let studied: Vec<Studied> = variants.into_iter().map(studied).collect();
    if studied.iter().all(|variant| variant.runs.is_empty()) {
        if let Some(failure) = failed {
            return Err(failure);
        }
        common.say("Stopped before any run finished.");
        return Err(Failure::interrupted());
    }
    let good = |variant: &Studied| variant.runs.iter().any(|made| made.run.is_good());
    let some_counts = studied.iter().any(good);
    let stopped = interrupted || failed.is_some();
    let result = finish(study.result(&studied, stopped), &setup);
    // What was measured is shown also where the folder cannot take it.
    let written = output.as_ref().map_or(Ok(()), |output| output.write(&result));
    if common.json {
        print(&result.document.to_json_text())?;
    } else {
        print(&shown(&result, common.colored()))?;
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    written?;
    if let Some(output) = &output {
        common.say(&format!("Report: {}", output.report().display()));
    }
    if interrupted {
        common.say(match output {
            Some(_) => "Interrupted: the finished runs are kept; the same command goes on where this one stopped.",
            None => "Interrupted: only finished runs count. With --out FOLDER the same command could go on from here.",
        });
        return Err(Failure::interrupted());
    }
    // The answer says that nothing can be ranked.
    if some_counts {
        Ok(())
    } else {
        Err(Failure::reported())
    }
}

fn setup_folder(arguments: &Arguments) -> String {
    let folder = arguments.out.as_deref().unwrap_or_else(|| Path::new(""));
    folder.display().to_string()
}

fn studied(variant: Variant) -> Studied {
    let mut runs = variant.runs;
    runs.sort_by_key(|made| made.run.run);
    Studied {
        links: variant.described.information(),
        rates: variant.described.rates(),
        sender: variant.switches.commands(),
        set: variant
            .set
            .iter()
            .map(|(path, value)| (path.to_owned(), json(value)))
            .collect(),
        name: variant.name,
        runs,
    }
}

/// The table, what must be known beside it, and the answer.
fn shown(result: &Comparison, colored: bool) -> String {
    let document = &result.document;
    let mut table = new_table(colored, &HEADINGS);
    for (variant, live) in ranked(document) {
        table.add_row(compared_row(document, variant, live));
    }
    align(&mut table, 2..7);
    // What is remarked stands in the notes, too.
    fit(&mut table, width(), &[7, 4, 3]);
    let mut text = format!("\n{}\n\n{table}\n", wrapped(&document.question, width(), ""));
    for note in &document.notes {
        text.push_str(&wrapped(note, width(), ""));
        text.push('\n');
    }
    text.push_str(&format!("\n{}\n", wrapped(&document.answer, width(), "")));
    text
}

/// What is compared: each of `--compare`, then each of `--variant`.
fn variants(arguments: &Arguments, setup: &Setup) -> Result<Vec<Variant>, Failure> {
    let mut found: Vec<Variant> = Vec::new();
    let named = arguments.compare.iter().map(|name| (name, "--compare"));
    for (name, flag) in named.chain(arguments.variant.iter().map(|name| (name, "--variant"))) {
        if found.iter().any(|known| known.name == *name) {
            return Err(Failure::usage(format!("{flag}: {name:?} stands there twice")));
        }
        let (set, own) = meaning(name, flag, arguments, setup)?;
        let switches = own.or(&switches(&arguments.sender, "--sender")?);
        found.push(Variant {
            name: name.clone(),
            described: setup.described(&set)?,
            set,
            switches,
            runs: Vec::new(),
        });
    }
    if found.len() < 2 {
        return Err(Failure::usage(
            "--compare: at least two are wanted to compare, such as drop-tail,fq-codel",
        ));
    }
    Ok(found)
}

/// What a name of `--compare` changes: parts joined by `+`, each a queue, a variant of the file, or a switch of senders.
fn meaning(
    name: &str,
    flag: &str,
    arguments: &Arguments,
    setup: &Setup,
) -> Result<(Setting, SenderSwitches), Failure> {
    let mut set = Setting::none();
    let mut switches = SenderSwitches::default();
    // A variant of the file may have a plus in its name.
    let own = |name: &str| {
        let mut variants = setup.scenario.variants().iter();
        variants.find(|variant| variant.name == name)
    };
    if let Some(variant) = own(name) {
        return Ok((variant.set.clone(), switches));
    }
    let mut queue = None;
    for part in name.split('+').map(str::trim) {
        if let Some((key, value)) = part.split_once('=') {
            switch(&mut switches, key, value, flag)?;
        } else if let Some(variant) = own(part) {
            set = set.and(&variant.set);
        } else if flag == "--compare" && plugins::queues().iter().any(|entry| entry.name == part) {
            if let Some(before) = queue.replace(part) {
                return Err(Failure::usage(format!(
                    "{flag} {}: the link has one queue, and {before} and {part} are two",
                    plain(name)
                )));
            }
            // A setting that changes nothing is an error. The way back has either the queue of the way there or one of its own.
            for (back, reverse) in [(false, ""), (true, "reverse.")] {
                if setup.described(&set)?.queue(back) != part {
                    let path = match arguments.link.as_deref() {
                        None => format!("network.bottleneck.{reverse}queue.kind"),
                        Some(link) => format!("link.{link}.{reverse}queue.kind"),
                    };
                    set = set.and(&Setting::from_origin(flag).with(path, part));
                }
            }
        } else {
            return Err(unknown(part, flag, setup));
        }
    }
    Ok((set, switches))
}

pub(super) fn unknown(part: &str, flag: &str, setup: &Setup) -> Failure {
    let of_file: Vec<&str> = setup
        .scenario
        .variants()
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    let part = plain(part);
    let of_file = match (of_file.is_empty(), flag) {
        (true, "--variant") => String::from("the scenario has no [[variant]]"),
        (true, _) => String::new(),
        (false, _) => format!("variants of the file: {}", plain(&of_file.join(", "))),
    };
    if flag == "--variant" {
        return Failure::usage(format!("--variant: no variant is called {part:?}; {of_file}"));
    }
    let queues: Vec<&str> = plugins::queues().iter().map(|entry| entry.name).collect();
    let of_file = match of_file.is_empty() {
        true => of_file,
        false => format!("; {of_file}"),
    };
    Failure::usage(format!(
        "--compare: {part:?} is neither a queue nor a setting; queues: {}; settings of senders: cc=NAME, initcwnd=N, ecn=on|off, pacing=on|off{of_file}",
        queues.join(", ")
    ))
}

/// Whether the kernel can pace, where that is asked for.
pub(super) fn check_pacing(switches: &SenderSwitches) -> Result<(), Failure> {
    if !switches.paces() {
        return Ok(());
    }
    SenderSwitches::try_pacing().map_err(|error| {
        Failure::usage(format!(
            "pacing=on: this kernel does not offer the queue discipline fq: {error}"
        ))
    })
}

/// The switches of senders that are joined by `+` in the value of a flag.
pub(super) fn switches(value: &Option<String>, flag: &str) -> Result<SenderSwitches, Failure> {
    let mut switches = SenderSwitches::default();
    let Some(value) = value else {
        return Ok(switches);
    };
    if value.trim().is_empty() {
        return Err(Failure::usage(format!(
            "{flag}: a setting is wanted: cc=NAME, initcwnd=N, ecn=on|off or pacing=on|off"
        )));
    }
    for part in value.split('+').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        switch(&mut switches, key, value, flag)?;
    }
    Ok(switches)
}

/// A switch of the senders.
fn switch(switches: &mut SenderSwitches, key: &str, value: &str, flag: &str) -> Result<(), Failure> {
    let on = |value: &str| match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Failure::usage(format!(
            "{flag} {key}={}: on or off is wanted",
            plain(value)
        ))),
    };
    let is_set = match key {
        "cc" => switches.congestion_control.is_some(),
        "initcwnd" => switches.initial_window.is_some(),
        "ecn" => switches.ecn.is_some(),
        "pacing" => switches.pacing.is_some(),
        _ => false,
    };
    if is_set {
        return Err(Failure::usage(format!("{flag}: {key} is set twice")));
    }
    match key {
        "cc" => {
            let known = SenderSwitches::congestion_controls();
            if !known.iter().any(|name| name == value) {
                return Err(Failure::usage(format!(
                    "{flag} cc={}: this kernel does not offer it; it has {}",
                    plain(value),
                    known.join(", ")
                )));
            }
            switches.congestion_control = Some(value.to_owned());
        }
        "initcwnd" => {
            let segments = value
                .parse()
                .ok()
                .filter(|segments| (1..=1000).contains(segments));
            switches.initial_window = Some(segments.ok_or_else(|| {
                Failure::usage(format!(
                    "{flag} initcwnd={}: a number of segments from 1 to 1000 is wanted",
                    plain(value)
                ))
            })?);
        }
        "ecn" => switches.ecn = Some(on(value)?),
        "pacing" => switches.pacing = Some(on(value)?),
        _ => {
            return Err(Failure::usage(format!(
                "{flag}: there is no setting {:?} of senders; there are cc, initcwnd, ecn and pacing",
                plain(key)
            )));
        }
    }
    Ok(())
}

/// Runs that an earlier call left in the folder; how many.
fn reuse(output: &Output, variants: &mut [Variant], runs: u32) -> u64 {
    let mut reused = 0;
    for variant in variants {
        for number in 1..=u64::from(runs) {
            let made = std::fs::read(output.runs().join(file_name(&variant.name, number, "json")))
                .ok()
                .and_then(|bytes| serde_json::from_slice::<Made>(&bytes).ok());
            if let Some(made) = made.filter(|made| made.run.run == number) {
                variant.runs.push(made);
                reused += 1;
            }
        }
    }
    reused
}

/// The file of a run; what a name of a file should not have stands there as its bytes, so that two variants never share one.
fn file_name(variant: &str, number: u64, ending: &str) -> String {
    let plain = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() || b"-_.".contains(&b) => char::from(b).to_string(),
        other => format!("%{other:02x}"),
    };
    let name: String = variant.bytes().map(plain).collect();
    format!("{number:04}-{name}.{ending}")
}

/// What every run needs.
struct Turn<'a> {
    setup: &'a Setup,
    common: &'a Common,
    metric: &'a Metric,
    output: Option<&'a Output>,
    progress: Progress,
    scratch: Scratch,
}

impl Turn<'_> {
    /// One run; number 0 is to warm up and is not kept. `None`: it was interrupted.
    fn run(&mut self, variant: &Variant, number: u64, seed: u64) -> Result<Option<Made>, Failure> {
        self.progress.begin(&variant.name, number);
        let printed = match self.output.filter(|_| number > 0) {
            Some(output) => output.runs().join(file_name(&variant.name, number, "txt")),
            None => self.scratch.path.clone(),
        };
        let done = self.setup.run(
            &variant.described,
            Wanted {
                number,
                seed,
                switches: variant.switches.clone(),
                to_stderr: false,
                output: Some(printed.clone()),
                observer: Observer {
                    capture: None,
                    line: false,
                    common: self.common,
                },
            },
        )?;
        if let Some(error) = &done.finished.broken {
            return Err(ended_with_its_link(error));
        }
        if done.finished.interrupted {
            return Ok(None);
        }
        let mut made = done.made;
        judge(&mut made.run, self.metric, &printed);
        if number == 0 {
            if let Some(problem) = &made.run.problem {
                self.progress.say(
                    self.common,
                    &format!("The run to warm up failed: {problem}.{}", last_line(&printed)),
                );
            }
            return Ok(Some(made));
        }
        if let Some(problem) = &made.run.problem {
            let text = format!(
                "Run {number} of {} failed: {problem}.{}",
                variant.name,
                last_line(&printed)
            );
            self.progress.say(self.common, &text);
        }
        if let Some(output) = self.output {
            let path = output.runs().join(file_name(&variant.name, number, "json"));
            let bytes = serde_json::to_vec(&made).map_err(|error| Failure::other(error.to_string()))?;
            write_atomically(&path, &bytes)
                .map_err(|error| Failure::output(format!("cannot write {}: {error}", path.display())))?;
        }
        self.progress.end();
        Ok(Some(made))
    }
}

/// Gives a run its value, or the reason why it has none.
fn judge(run: &mut Run, metric: &Metric, printed: &Path) {
    run.value = None;
    if run.exit_code != 0 {
        run.problem = Some(format!("exit code {}", run.exit_code));
        return;
    }
    if let Metric::Printed(_) = metric {
        match metric.printed(&text_of(printed)) {
            Ok(value) => run.value = value,
            Err(problem) => {
                run.problem = Some(problem);
                return;
            }
        }
    }
    match metric.sample(run) {
        Ok(sample) => run.value = Some(sample.sum() / sample.len().max(1) as f64),
        Err(problem) => run.problem = Some(problem.to_owned()),
    }
}

/// What a command printed, as far as it is looked at.
fn text_of(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        // What cannot be read does not match.
        let _ = file.take(MOST_PRINTED).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last line that a command printed, for a message.
fn last_line(path: &Path) -> String {
    let text = text_of(path);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(String::new, |line| {
        let line: String = plain(line).chars().take(200).collect();
        format!(" It printed last: {line}")
    })
}

/// A file that takes what a command prints where there is no folder for it. It has no name, so nothing is left of it.
struct Scratch {
    path: PathBuf,
    _file: std::fs::File,
}

impl Scratch {
    fn new() -> Result<Scratch, Failure> {
        let folder = std::env::temp_dir();
        for attempt in 0.. {
            let name = format!("fleetfoot-shell-{}-{attempt}.txt", std::process::id());
            let path = folder.join(name);
            let made = std::fs::File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path);
            match made {
                Ok(file) => {
                    let _ = std::fs::remove_file(&path);
                    return Ok(Scratch {
                        path: PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())),
                        _file: file,
                    });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && attempt < MOST_TRIES => {}
                Err(error) => {
                    return Err(Failure::other(format!(
                        "cannot write {}: {error}",
                        path.display()
                    )));
                }
            }
        }
        unreachable!("the loop ends with a file or an error")
    }
}

/// Rounds where `--runs` does not say.
const ROUNDS: u32 = 10;
/// Names that are tried for a file before giving up.
const MOST_TRIES: u32 = 1000;
/// Bytes of what a command prints that are searched for a number.
const MOST_PRINTED: u64 = 64 << 20;
