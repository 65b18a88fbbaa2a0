//! The time series of a run that ends when the flows that are followed are over are those of the whole run.

use fleetfoot_lab::report::time_series::{FLOWS_TRACED, TimeSeries, traces};
use fleetfoot_lab::run::observe;
use fleetfoot_lab::scenario::{Scenario, Setting};
use std::sync::atomic::AtomicBool;

const NETWORK: &str = r#"
[network]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "20 packets" } }

[[traffic]]
name = "pages"
kind = "transfer"
size = "60 kB"
arrivals = { dist = "poisson", rate = "10 per second" }

[run]
duration = "8 s"
warmup = "1 s"
"#;

/// Beside the pages: what never ends, what has too few flows, what has more than enough.
const BESIDE: [&str; 4] = [
    "",
    "[[traffic]]\nname = \"backup\"\nkind = \"bulk\"\n",
    "[[traffic]]\nname = \"one\"\nkind = \"transfer\"\nsize = \"1 MB\"\narrivals = { dist = \"poisson\", rate = \"1 per second\" }\ncount = 1\n",
    "[[traffic]]\nname = \"users\"\nkind = \"closed-loop\"\ncount = 2\nsize = \"20 kB\"\nthink = { dist = \"exponential\", mean = \"100 ms\" }\n",
];

#[test]
fn a_run_that_ends_early_has_the_time_series_of_the_whole_run() {
    let never = AtomicBool::new(false);
    for beside in BESIDE {
        let scenario = Scenario::parse("traces.toml", &format!("{NETWORK}{beside}"));
        let scenario = scenario.unwrap_or_else(|error| panic!("{beside}: {error}"));
        let resolved = scenario.resolve(&Setting::none()).expect("it resolved before");
        let mut whole = TimeSeries::new(&resolved, FLOWS_TRACED);
        observe(&resolved.spec(1), &never, &mut whole).expect("it runs");
        let early = traces(&resolved, 1, &never).expect("it runs");
        let early = early.unwrap_or_else(|| panic!("{beside}: nobody stopped it"));
        assert!(early.len() >= FLOWS_TRACED && early.iter().all(|trace| !trace.sends.is_empty()));
        assert_eq!(format!("{early:?}"), format!("{:?}", whole.traces), "{beside}");
    }
    // Long enough to look whether it shall stop.
    let long = format!("{}{}", NETWORK.replace("\"8 s\"", "\"100 s\""), BESIDE[1]);
    let scenario = Scenario::parse("traces.toml", &long).expect("it is a scenario");
    let resolved = scenario.resolve(&Setting::none()).expect("it resolved before");
    let stopped = AtomicBool::new(true);
    assert_eq!(
        traces(&resolved, 1, &stopped).map(|traces| traces.is_none()),
        Ok(true)
    );
}
