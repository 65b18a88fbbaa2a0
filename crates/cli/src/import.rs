//! `fleetfoot import`: a capture becomes a scenario.

use crate::failure::Failure;
use crate::output::{Common, print};
use crate::progress::ByteReporter;
use crate::session::stop_flag;
use clap::Args;
use fleetfoot_core::time::Duration;
use fleetfoot_lab::import::files::Error;
use fleetfoot_lab::import::{Fit, Imported, Options, import};
use fleetfoot_lab::workload::vectors::looks_like_vectors;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Flags of `import`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A capture (pcap or pcapng), or a file of connection vectors (tmix); `-` is the standard input.
    file: PathBuf,
    /// The scenario to write; the connection vectors are written beside it, as .cvec. By default the name of the capture
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
    #[arg(long, value_name = "S", default_value_t = 900)]
    idle_s: u32,
    /// Replay the scenario once and tell how well it fits the recording; `auto`: up to two million data segments.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = When::Auto)]
    fit: When,
}

/// Whether to do something that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
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
    let vectors = output.with_extension("cvec");
    if output == vectors || vectors == arguments.file || output == arguments.file {
        return Err(Failure::usage(format!(
            "{} would be overwritten: give another name with --out FILE.toml",
            arguments.file.display()
        )));
    }
    for path in [&output, &vectors] {
        if path.exists() && !arguments.force {
            return Err(Failure::usage(format!(
                "{} exists: give another name with --out FILE.toml, or --force",
                path.display()
            )));
        }
    }
    let (imported, fit) = run(&arguments.file, &output, &arguments.how, common)?;
    if common.json {
        print(&json(&imported, fit.as_ref())?)?;
    } else {
        print(&text(&imported, fit.as_ref()))?;
    }
    common.say(&format!(
        "\nWritten: {} and {}\nNext: fleetfoot compare {}",
        imported.scenario.display(),
        imported.vectors.display(),
        imported.scenario.display()
    ));
    if imported.summary.interrupted {
        return Err(Failure::interrupted());
    }
    Ok(())
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
    let imported = imported.map_err(|error| match error {
        Error::Input(message) => Failure::usage(message),
        Error::Output(..) => Failure::other(error.to_string()),
    })?;
    if let Some(damage) = &imported.summary.damage {
        common.say(&format!(
            "warning: {} was read up to {damage}. What came before is imported.",
            input.display()
        ));
    }
    if imported.summary.interrupted {
        common.say("Interrupted: what was read so far is imported.");
    }
    let segments: u64 = imported.summary.segments.iter().map(|one| one.segments).sum();
    let wanted = match how.fit {
        When::Auto => segments <= FIT_SEGMENTS,
        When::Always => true,
        When::Never => false,
    };
    let fit = match wanted && !imported.summary.interrupted {
        true => Fit::of(&imported, stop).map_err(Failure::other)?,
        false => None,
    };
    Ok((imported, fit))
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

/// Whether a file is a capture, or connection vectors, by its first bytes.
pub(crate) fn is_capture(file: &Path) -> bool {
    let mut head = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(4096).read_to_end(&mut head));
    let magic = matches!(
        head.get(..4),
        Some(
            [0x0a, 0x0d, 0x0d, 0x0a]
                | [0xa1, 0xb2, 0xc3, 0xd4]
                | [0xd4, 0xc3, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0x3c, 0x4d]
                | [0x4d, 0x3c, 0xb2, 0xa1]
        )
    );
    read.is_ok() && (magic || looks_like_vectors(&head))
}

/// Makes a scenario of a capture for a comparison, in a folder of its own beside the other results.
pub(crate) fn imported(capture: &Path, common: &Common) -> Result<PathBuf, Failure> {
    let stem = capture
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_else(|| String::from("capture"));
    let out = Path::new("fleetfoot-out");
    let made = out.join(format!("import-{stem}.part"));
    let cannot = |error| Failure::other(format!("cannot write {}: {error}", made.display()));
    let name = format!("{stem}.toml");
    std::fs::create_dir_all(&made).map_err(cannot)?;
    let (imported, fit) = run(capture, &made.join(&name), &How::default(), common)?;
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
    let document = serde_json::json!({
        "schema": "1.0",
        "fleetfoot": env!("CARGO_PKG_VERSION"),
        "scenario": imported.scenario.display().to_string(),
        "vectors": imported.vectors.display().to_string(),
        "summary": imported.summary,
        "fit": fit,
    });
    let mut text =
        serde_json::to_string_pretty(&document).map_err(|error| Failure::other(error.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// The capture's name with another ending, in this folder.
fn beside(capture: &Path) -> PathBuf {
    let stem = capture.file_stem().filter(|_| capture != Path::new("-"));
    let stem = stem.map_or_else(|| "capture".into(), |stem| stem.to_string_lossy());
    PathBuf::from(format!("{stem}.toml"))
}

/// Data segments whose replay takes some seconds.
const FIT_SEGMENTS: u64 = 2_000_000;
