//! A capture becomes a scenario: what `fleetfoot import` writes, in memory.

use crate::failure::Failure;
use fleetfoot_lab::import::replay::{self, Replay, When};
use fleetfoot_lab::import::{Fit, Imported, Options, files, import_from};
use fleetfoot_lab::input::{self, Folder};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Cursor;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest capture that is read (bytes).
pub const MOST_CAPTURE: usize = 64_000_000;

/// A capture that is to be read. Its bytes are attached to the request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// What the file is called.
    pub name: String,
}

/// `{name, toml, files, summary, fit, damage}`: the scenario, the files that it names, what the program says of the capture and of the fit (`null`:
/// it was not replayed), and up to where a damaged file was read.
pub(crate) fn import(
    wanted: &Wanted,
    capture: &[u8],
    stop: &AtomicBool,
    progress: &(dyn Fn(&Value) + Sync),
) -> Result<Value, Failure> {
    let file = Path::new(&wanted.name);
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.ok_or_else(|| Failure::new("a capture needs a name"))?;
    if capture.len() > MOST_CAPTURE {
        return Err(Failure::new(format!(
            "{name}: a capture of {} bytes is longer than {MOST_CAPTURE}, the most that the explorer reads; `fleetfoot import` reads it",
            capture.len()
        )));
    }
    let folder = Folder::with([]);
    let scenario = Path::new(&name).with_extension("toml");
    let total = capture.len();
    let imported = import_from(
        Cursor::new(capture),
        &name,
        format!("Traffic of {name}"),
        &folder.path().join(&scenario),
        &Options::default(),
        |at| {
            progress(
                &json!({ "step": "reading the capture", "done": at.bytes, "total": total, "unit": "bytes" }),
            );
            !stop.load(Ordering::Relaxed)
        },
    );
    let imported = imported.map_err(|error| failed(&error))?;
    let fit = fit(&imported, stop, progress)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::new("stopped before the capture was read"));
    }
    let beside = imported.vectors.iter().map(|(_, path)| path);
    let beside: Result<Vec<Value>, Failure> = beside.map(|path| read(path)).collect();
    let text = read(&imported.scenario)?;
    Ok(json!({
        "name": scenario.to_string_lossy(),
        "toml": text["text"],
        "files": beside?,
        "summary": imported.summary.to_text(),
        "fit": fit.map(|fit| fit.to_text()),
        "damage": imported.summary.damage,
    }))
}

/// How well it fits, which is written into the scenario too.
fn fit(
    imported: &Imported,
    stop: &AtomicBool,
    progress: &(dyn Fn(&Value) + Sync),
) -> Result<Option<Fit>, Failure> {
    let replay = Replay {
        when: When::Auto,
        congestion_control: None,
        stop,
        progress: &|done| {
            let step = "replaying it with what senders may run";
            progress(
                &json!({ "step": step, "done": done.done, "total": done.total, "variant": done.variant, "unit": "runs" }),
            );
        },
    };
    replay.fit(imported).map_err(|error| match error {
        replay::Error::Files(error) => failed(&error),
        replay::Error::Run(message) => Failure::new(message),
    })
}

fn failed(error: &files::Error) -> Failure {
    Failure::new(error.to_string())
}

/// `{name, text}` of a file in memory.
fn read(path: &Path) -> Result<Value, Failure> {
    let text = input::text_or_reason(path, input::MOST_FLOWS).map_err(Failure::new)?;
    let name = path.file_name().unwrap_or_default();
    Ok(json!({ "name": name.to_string_lossy(), "text": text }))
}
