//! `fleetfoot import`: a capture becomes a scenario.

use crate::failure::Failure;
use crate::output::{Common, print};
use crate::progress::{ByteReporter, ReplayReporter};
use crate::session::{quoted, stop_flag};
use crate::target::Targets;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fleetfoot_core::time::Duration;
use fleetfoot_lab::import::files::{Error, vectors_beside, would_be_overwritten, writes_over};
use fleetfoot_lab::import::replay::{self, Replay, When};
use fleetfoot_lab::import::{Fit, Imported, Options, import};
use fleetfoot_lab::plugins;
use fleetfoot_lab::run::{MAKING, remove_leftovers};
use fleetfoot_lab::workload::vectors::looks_like_vectors;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Flags of `import`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A capture (pcap or pcapng), or a file of connection vectors (tmix); `-` is the standard input.
    file: PathBuf,
    /// The scenario to write; the connection vectors are written beside it, as .cvec (those that the other side opened as -back.cvec). By default the name of the capture
    /// with the ending .toml, in this folder.
    #[arg(long, short, value_name = "FILE.toml")]
    out: Option<PathBuf>,
    /// Overwrite files that exist.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    how: How,
}

/// How a capture is read.
#[derive(Debug, Args)]
pub(crate) struct How {
    /// Name the hosts by their addresses in the summary; else they have numbers only.
    #[arg(long)]
    keep_addresses: bool,
    /// Connections followed at once; beyond it the one that was silent longest is given up.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..))]
    most_open: u32,
    /// Milliseconds of silence of an end that could send before it counts as a pause of its application.
    #[arg(long, value_name = "MS", default_value_t = 10)]
    quiet_ms: u32,
    /// Seconds of silence after which a connection counts as over.
    #[arg(long, value_name = "S", default_value_t = 900, value_parser = clap::value_parser!(u32).range(1..))]
    idle_s: u32,
    /// Replay the scenario and report how well it fits the recording; `auto`: up to two million data segments.
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = when())]
    fit: When,
    /// Congestion control of the senders; else those of Linux (cubic, bbr, reno, bbr3) are tried, and the one that fits best is taken.
    #[arg(long, value_name = "NAME", value_parser = controllers())]
    congestion_control: Option<String>,
}

/// Whether to do something that takes time.
fn when() -> impl TypedValueParser<Value = When> {
    PossibleValuesParser::new(["auto", "always", "never"]).map(|word| match word.as_str() {
        "always" => When::Always,
        "never" => When::Never,
        _ => When::Auto,
    })
}

/// Names of congestion controls.
fn controllers() -> PossibleValuesParser {
    PossibleValuesParser::new(plugins::controllers().into_iter().map(|entry| entry.name))
}

impl Default for How {
    fn default() -> How {
        let options = Options::default();
        How {
            keep_addresses: false,
            most_open: options.most_open as u32,
            quiet_ms: (options.quiet.as_nanos() / 1_000_000) as u32,
            idle_s: (options.idle.as_nanos() / 1_000_000_000) as u32,
            fit: When::Auto,
            congestion_control: None,
        }
    }
}

impl How {
    fn options(&self) -> Options {
        Options {
            keep_addresses: self.keep_addresses,
            most_open: self.most_open as usize,
            idle: Duration::from_secs(u64::from(self.idle_s)),
            quiet: Duration::from_millis(u64::from(self.quiet_ms)),
        }
    }
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let output = match &arguments.out {
        Some(path) => path.clone(),
        None => beside(&arguments.file),
    };
    let beside = vectors_beside(&output);
    let [vectors, ..] = &beside;
    let ending = arguments.out.as_ref().and_then(|out| out.extension());
    if let Some(ending) = ending.and_then(|ending| ending.to_str())
        && OTHER_ENDINGS.contains(&ending)
    {
        return Err(Failure::usage(format!(
            "--out names the scenario to write, not a file of .{ending}: --out {}; the connection vectors are written beside it, as {}",
            output.with_extension("toml").display(),
            vectors.display(),
        )));
    }
    if output == *vectors || writes_over(&arguments.file, &output) || arguments.file.is_dir() {
        return Err(Failure::usage(own_output(&arguments.file)));
    }
    if let Some(folder) = output.parent().filter(|folder| *folder != Path::new(""))
        && !folder.is_dir()
    {
        return Err(Failure::usage(format!("there is no folder {}", folder.display())));
    }
    for path in std::iter::once(&output).chain(&beside) {
        if path.exists() && !arguments.force {
            return Err(Failure::usage(format!(
                "{} exists: give another name with --out FILE.toml, or --force",
                path.display()
            )));
        }
    }
    Targets::reading([arguments.file.as_path()], true).file("--out", &output)?;
    let (imported, fit) = run(&arguments.file, &output, &arguments.how, common)?;
    if common.json {
        print(&json(&imported, fit.as_ref())?)?;
    } else {
        print(&text(&imported, fit.as_ref()))?;
    }
    common.say(&format!(
        "\nWritten: {}\nNext: fleetfoot compare {}",
        written(&imported),
        scenario_word(&imported.scenario)
    ));
    if imported.summary.interrupted {
        return Err(Failure::interrupted());
    }
    Ok(())
}

/// Why `input`, which has the name of what is to be written, is not imported: it is none, or it would be written over.
fn own_output(input: &Path) -> String {
    let said = input.display();
    if input.is_dir() {
        return format!("cannot read {said}: it is a folder");
    }
    if !is_regular(input) || is_capture(input) {
        return would_be_overwritten(input, "--out FILE.toml");
    }
    let lines = head(input).unwrap_or_default();
    match lines.split(|byte| *byte == b'\n').any(is_of_toml) {
        true => format!("{said}: it is no capture; a scenario is taken as it is: fleetfoot compare {said}"),
        false => format!("{said}: it is neither pcap nor pcapng, nor a file of connection vectors"),
    }
}

/// The files that were written, in words.
fn written(imported: &Imported) -> String {
    let vectors = imported.vectors.iter().map(|(_, path)| path);
    let mut names: Vec<String> = std::iter::once(&imported.scenario)
        .chain(vectors)
        .map(|path| path.display().to_string())
        .collect();
    let last = names.pop().unwrap_or_default();
    format!("{} and {last}", names.join(", "))
}

/// Imports, shows how far it is, warns of what was not read, and replays it.
fn run(input: &Path, output: &Path, how: &How, common: &Common) -> Result<(Imported, Option<Fit>), Failure> {
    let size = std::fs::metadata(input).map_or(0, |metadata| metadata.len());
    let reporter = ByteReporter::new(size, common);
    let stop = &*stop_flag();
    let imported = import(input, output, &how.options(), |progress| {
        reporter.at(&progress);
        !stop.load(Ordering::Relaxed)
    });
    reporter.finish();
    let imported = imported.map_err(failure)?;
    if let Some(damage) = &imported.summary.damage {
        common.say(&format!(
            "warning: {} was read up to {damage}. What came before is imported.",
            input.display()
        ));
    }
    if imported.summary.interrupted {
        common.say("Interrupted: what was read so far is imported.");
    }
    let fit = fit(&imported, how, stop, common)?;
    Ok((imported, fit))
}

/// How well what was imported fits, which is written into the scenario as well; `None`: it was not replayed.
fn fit(imported: &Imported, how: &How, stop: &AtomicBool, common: &Common) -> Result<Option<Fit>, Failure> {
    let reporter = ReplayReporter::new(common);
    let replay = Replay {
        when: how.fit,
        congestion_control: how.congestion_control.as_deref(),
        stop,
        progress: &|progress| reporter.done(progress),
    };
    let fit = replay.fit(imported);
    reporter.finish();
    fit.map_err(|error| match error {
        replay::Error::Files(error) => failure(error),
        replay::Error::Run(message) => Failure::other(message),
    })
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Input(message) => Failure::usage(message),
        Error::Output(..) => Failure::other(error.to_string()),
    }
}

/// Summary and fit.
fn text(imported: &Imported, fit: Option<&Fit>) -> String {
    let mut text = imported.summary.to_text();
    if let Some(fit) = fit {
        text.push('\n');
        text.push_str(&fit.to_text());
    }
    text
}

/// What a file is that is no scenario, in words, and what to do with it; `None`: it may be one.
pub(crate) fn something_else(file: &Path) -> Option<String> {
    if !is_regular(file) {
        return None;
    }
    let head = head(file)?;
    let begins = |bytes: &[u8]| head.starts_with(bytes);
    let said = file.display();
    let what = if is_capture(file) {
        return Some(format!(
            "{said}: it is a capture, no scenario: `fleetfoot import {said}` makes one of it, `fleetfoot compare {said}` takes it as it is"
        ));
    } else if let Some((unpack, _)) = PACKED.into_iter().find(|(_, magic)| begins(magic)) {
        return Some(format!(
            "{said}: it is compressed: `{unpack} -dc {said} | fleetfoot import - --out NAME.toml` makes a scenario of a capture in it"
        ));
    } else if head.is_empty() {
        "it is empty"
    } else if is_begun_capture(&head) {
        "it begins like a capture, but is cut off within its header"
    } else if begins(b"snoop\0") || begins(b"GMBU") || begins(b"RTSS") {
        "it is a capture of a kind that is not read (editcap -F pcapng converts it)"
    } else if head.contains(&0) || std::str::from_utf8(&head).is_err_and(|error| error.error_len().is_some())
    {
        "it is no text"
    } else if head.trim_ascii_start().starts_with(b"{") {
        "it looks like JSON"
    } else if head.trim_ascii_start().starts_with(b"<") {
        "it looks like HTML or XML"
    } else if !head.split(|byte| *byte == b'\n').any(is_of_toml) {
        match is_table(&head) {
            true => "it looks like a table (CSV)",
            false => "it is text, but no scenario",
        }
    } else {
        return None;
    };
    Some(format!(
        "{said}: {what}. What is taken: a scenario (TOML with [network] and [[traffic]]; `examples/` has some), a capture (pcap, pcapng), \
         or connection vectors of tmix"
    ))
}

/// Lines with as many commas each.
fn is_table(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut commas = lines.map(|line| line.iter().filter(|byte| **byte == b',').count());
    let first = commas.next().unwrap_or(0);
    first > 0 && commas.next() == Some(first)
}

/// A table or a key with its value.
fn is_of_toml(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    !line.starts_with(b"#") && (line.starts_with(b"[") || line.contains(&b'='))
}

/// The beginning of the magic number of a capture that ends before its header does.
fn is_begun_capture(head: &[u8]) -> bool {
    head.len() < 24
        && MAGIC
            .iter()
            .any(|magic| magic.starts_with(head) || head.starts_with(magic))
}

/// Whether it can be read twice: no pipe, no terminal.
pub(crate) fn is_regular(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file())
}

fn head(file: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = std::fs::File::open(file).ok()?;
    file.take(4096).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Whether a file is a capture, or connection vectors, by its first bytes.
pub(crate) fn is_capture(file: &Path) -> bool {
    let head = Some(file)
        .filter(|file| is_regular(file))
        .and_then(head)
        .unwrap_or_default();
    let magic = MAGIC.iter().any(|magic| head.starts_with(magic));
    magic && !is_begun_capture(&head) || looks_like_vectors(&head)
}

/// Makes a scenario of a capture for a comparison, in a folder of its own: beside `out`, where that is given and in another folder, else in `fleetfoot-out`.
pub(crate) fn imported(capture: &Path, out: Option<&Path>, common: &Common) -> Result<PathBuf, Failure> {
    let stem = capture
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_else(|| String::from("capture"));
    let beside = out
        .and_then(Path::parent)
        .filter(|parent| !parent.as_os_str().is_empty());
    let out = beside.unwrap_or(Path::new("fleetfoot-out"));
    // Of another process that reads the same capture it is another one.
    let made = out.join(format!("{MAKING}{}", std::process::id()));
    let cannot = |error| Failure::usage(format!("cannot write {}: {error}", made.display()));
    let fresh = !out.exists();
    let name = format!("{stem}.toml");
    // What imports that were ended left there is of nobody.
    remove_leftovers(out);
    let _ = std::fs::remove_dir_all(&made);
    std::fs::create_dir_all(&made).map_err(cannot)?;
    let imported = run(capture, &made.join(&name), &How::default(), common);
    let (imported, fit) = imported.inspect_err(|_| {
        // What is left of it is of no use; that it cannot be removed is no second failure.
        let _ = std::fs::remove_dir_all(&made);
        if fresh {
            let _ = std::fs::remove_dir(out);
        }
    })?;
    let output = settle(&made, &out.join(format!("import-{stem}")))
        .map_err(cannot)?
        .join(&name);
    common.say(&text(&imported, fit.as_ref()));
    common.say(&format!(
        "The scenario made of it: {} (change it and compare again)",
        output.display()
    ));
    if imported.summary.interrupted {
        return Err(Failure::interrupted());
    }
    Ok(output)
}

/// Gives a folder its name: what stands under that name already is kept, if it is not the same, and the next free number goes
/// behind it. Somebody may have changed it.
fn settle(made: &Path, wanted: &Path) -> std::io::Result<PathBuf> {
    let numbered = |number: u32| match number {
        1 => wanted.to_owned(),
        _ => PathBuf::from(format!("{}-{number}", wanted.display())),
    };
    for number in 1..u32::MAX {
        let place = numbered(number);
        if !place.exists() {
            std::fs::rename(made, &place)?;
            return Ok(place);
        }
        if same(made, &place) {
            std::fs::remove_dir_all(made)?;
            return Ok(place);
        }
    }
    Ok(made.to_owned())
}

/// Whether a folder has all the files of another.
fn same(one: &Path, other: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(one) else {
        return false;
    };
    entries.flatten().all(|entry| {
        let read = |path: PathBuf| std::fs::read(path).ok();
        read(entry.path()).is_some_and(|text| read(other.join(entry.file_name())) == Some(text))
    })
}

fn json(imported: &Imported, fit: Option<&Fit>) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(&replay::document(imported, fit))
        .map_err(|error| Failure::other(error.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// The capture's name with another ending, in this folder.
fn beside(capture: &Path) -> PathBuf {
    let stem = capture.file_stem().filter(|_| capture != Path::new("-"));
    let stem = stem.map_or_else(|| "capture".into(), |stem| stem.to_string_lossy());
    PathBuf::from(format!("{stem}.toml"))
}

/// How captures begin: pcapng; pcap in either byte order, with micro- or nanoseconds.
const MAGIC: [[u8; 4]; 5] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
];

/// What unpacks a file, and how it begins.
const PACKED: [(&str, &[u8]); 4] = [
    ("gzip", &[0x1f, 0x8b]),
    ("zstd", &[0x28, 0xb5, 0x2f, 0xfd]),
    ("xz", &[0xfd, b'7', b'z', b'X', b'Z']),
    ("bzip2", b"BZh"),
];

/// Endings of what is no scenario.
const OTHER_ENDINGS: [&str; 7] = ["cvec", "pcap", "pcapng", "cap", "json", "html", "csv"];

/// A path as one types it: quoted, and no option.
fn scenario_word(path: &Path) -> String {
    let word = path.display().to_string();
    match word.starts_with('-') {
        true => quoted(&format!("./{word}")),
        false => quoted(&word),
    }
}
