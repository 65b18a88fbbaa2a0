//! Any text as a scenario file: nothing panics; it is read and resolved, or refused with a message.

#![no_main]

use fleetfoot_lab::scenario::{Scenario, Setting};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Scenario::parse("fuzz.toml", text) {
        Ok(scenario) => {
            let _ = scenario.resolve(&Setting::default());
            for variant in scenario.variants() {
                let _ = scenario.resolve(&variant.set);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
