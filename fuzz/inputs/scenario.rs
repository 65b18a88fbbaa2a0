//! Any text as a scenario file: nothing panics; it is read and resolved, or refused with a message.

use fleetfoot_lab::scenario::{Scenario, Setting};

/// One input of the fuzzer.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = core::str::from_utf8(text) else {
        return;
    };
    match Scenario::parse("fuzz.toml", text) {
        Ok(scenario) => {
            let _ = scenario.resolve(&Setting::default());
            for variant in scenario.variants() {
                let _ = scenario.resolve(&variant.set);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
