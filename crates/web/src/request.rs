//! What can be asked, and who answers.

use crate::failure::Failure;
use crate::{EXAMPLES, scenario, study, trace};
use fleetfoot_lab::mechanisms::ENTRIES;
use fleetfoot_lab::memory;
use fleetfoot_lab::scenario::Scenario;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Version, examples, mechanisms.
    Hello,
    /// Is the scenario correct, and what can be changed in it?
    Check(scenario::Described),
    /// How many runs a comparison takes, and how long about.
    Estimate(study::Wanted),
    /// Every variant that is wanted, ranked.
    Compare(study::Wanted),
    /// One run over time: the queues, the connections, one of them packet by packet.
    Trace(trace::Wanted),
}

/// Answers `request`, a [`Request`] as JSON: `{"answer": ...}` or `{"error": ...}`, the program's message with its place. `progress`
/// gets JSON objects meanwhile; `stop` ends the work.
pub fn call(request: &str, stop: &AtomicBool, progress: &(dyn Fn(&Value) + Sync)) -> String {
    memory::look_again();
    let answer = serde_json::from_str(request)
        .map_err(|error| Failure::new(format!("the request is not understood: {error}")))
        .and_then(|request| answered(request, stop, progress));
    let answer = match answer {
        Ok(answer) => json!({ "answer": answer }),
        Err(failure) => json!({ "error": failure.to_json() }),
    };
    answer.to_string()
}

fn answered(
    request: Request,
    stop: &AtomicBool,
    progress: &(dyn Fn(&Value) + Sync),
) -> Result<Value, Failure> {
    match request {
        Request::Hello => Ok(hello()),
        Request::Check(described) => scenario::check(&described),
        Request::Estimate(wanted) => study::estimate(&wanted),
        Request::Compare(wanted) => study::compare(&wanted, stop, progress),
        Request::Trace(wanted) => trace::trace(&wanted, stop),
    }
}

fn hello() -> Value {
    let examples: Vec<Value> = EXAMPLES
        .iter()
        // Without its feature the engine has no QUIC: an example of it is not offered.
        .filter(|(name, text)| Scenario::parse(&format!("{name}.toml"), text).is_ok())
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
    })
}
