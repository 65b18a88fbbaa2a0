//! What can be asked, and who answers.

use crate::failure::Failure;
use crate::{EXAMPLES, capture, scenario, shared, study, trace};
use fleetfoot_lab::mechanisms::ENTRIES;
use fleetfoot_lab::memory;
use fleetfoot_lab::scenario::Scenario;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Version, examples, mechanisms.
    Hello,
    /// Is the scenario correct, and what can be changed in it?
    Check(scenario::Described),
    /// The scenario of a capture, which is attached.
    Import(capture::Wanted),
    /// How many runs a comparison takes, and how long about.
    Estimate(study::Wanted),
    /// Every variant that is wanted, ranked.
    Compare(study::Wanted),
    /// The runs that the next step of a comparison wants and that are not kept.
    Missing(study::Wanted),
    /// One run of a comparison, for another engine.
    Make(shared::Task),
    /// A run that another engine made, which is attached.
    Keep(shared::Made),
    /// One run over time: the queues, the connections, one of them packet by packet.
    Trace(trace::Wanted),
}

/// A message in its two parts: a request, which is the first line, and what is attached to it: nothing, or what follows the line.
pub fn parted(message: &[u8]) -> (Cow<'_, str>, &[u8]) {
    let end = message.iter().position(|byte| *byte == b'\n');
    let (line, rest) = message.split_at(end.unwrap_or(message.len()));
    (String::from_utf8_lossy(line), rest.get(1..).unwrap_or_default())
}

/// Answers `request`, a [`Request`] as JSON: `{"answer": ...}` or `{"error": ...}`, the program's message with its place. `attached`
/// are the bytes of a capture or of a run that is handed over, else none. `progress` gets JSON objects meanwhile; `stop` ends the work.
pub fn call(request: &str, attached: &[u8], stop: &AtomicBool, progress: &(dyn Fn(&Value) + Sync)) -> String {
    call_with_record(request, attached, stop, progress).0
}

/// As [`call`]; with the answer comes the record of the run, where one was asked for.
pub fn call_with_record(
    request: &str,
    attached: &[u8],
    stop: &AtomicBool,
    progress: &(dyn Fn(&Value) + Sync),
) -> (String, Vec<u8>) {
    memory::look_again();
    let answer = serde_json::from_str(request)
        .map_err(|error| Failure::new(format!("the request is not understood: {error}")))
        .and_then(|request| answered(request, attached, stop, progress));
    match answer {
        Ok((answer, record)) => (json!({ "answer": answer }).to_string(), record),
        Err(failure) => (json!({ "error": failure.to_json() }).to_string(), Vec::new()),
    }
}

fn answered(
    request: Request,
    attached: &[u8],
    stop: &AtomicBool,
    progress: &(dyn Fn(&Value) + Sync),
) -> Result<(Value, Vec<u8>), Failure> {
    let answer = match request {
        Request::Hello => hello(),
        Request::Check(described) => scenario::check(&described)?,
        Request::Import(wanted) => capture::import(&wanted, attached, stop, progress)?,
        Request::Estimate(wanted) => study::estimate(&wanted)?,
        Request::Compare(wanted) => study::compare(&wanted, stop, progress)?,
        Request::Missing(wanted) => shared::missing(&wanted)?,
        Request::Make(task) => return shared::make(&task, stop, progress),
        Request::Keep(made) => shared::keep(&made, attached)?,
        Request::Trace(wanted) => trace::trace(&wanted, stop)?,
    };
    Ok((answer, Vec::new()))
}

fn hello() -> Value {
    let examples: Vec<Value> = EXAMPLES
        .iter()
        // Without its feature the engine has no QUIC: an example of it is not offered. Reading all of them takes long.
        .filter(|(name, text)| {
            !text.contains("\"quic") || Scenario::parse(&format!("{name}.toml"), text).is_ok()
        })
        .map(|(name, text)| json!({ "name": name, "text": text }))
        .collect();
    let mechanisms: Vec<Value> = ENTRIES
        .iter()
        .map(fleetfoot_lab::mechanisms::Mechanism::to_json)
        .collect();
    json!({
        "fleetfoot": env!("CARGO_PKG_VERSION"),
        "commit": env!("FLEETFOOT_COMMIT"),
        "examples": examples,
        "mechanisms": mechanisms,
        "most_text": scenario::MOST_TEXT,
        "most_capture": capture::MOST_CAPTURE,
    })
}
