//! The time that a number of packets takes on a line.
//!
//! `packets * packet * 8 / rate`. **Source.** Schinazi 2014, section 4: T_buffer is the time of five packets of 1500 bytes at
//! 1 Gbit/s. **Deviations.** None known.

use super::{Analysis, Measured, Metric, Outcome, Run};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::units::{Bytes, Rate};

pub(super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("packet-time", OPTIONS, include_str!("packet_time.rs")),
    metrics: &[Metric {
        name: "time_s",
        doc: "Time on the line (s).",
    }],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[
    parameter!("packets": Integer(1, 1_000_000) = 5, "How many packets (Schinazi 2014, section 4: 5)"),
    parameter!("packet": Bytes(Bytes(1), Bytes(1_000_000)) = Bytes(1500),
        "Size of each (Schinazi 2014: 1500 B)"),
    parameter!("rate": Rate(Rate::from_bps(1), Rate::from_bps(1_000_000_000_000)) = Rate::from_bps(1_000_000_000),
        "Speed of the line (Schinazi 2014: 1 Gbit/s)"),
];

fn run(options: &Values) -> Outcome {
    let bytes = options.bytes("packet").unwrap_or(Bytes(0)).0 * options.integer("packets").unwrap_or(0);
    let bps = options.rate("rate").map_or(1, Rate::bps);
    Outcome {
        values: vec![Measured::exact((bytes * 8) as f64 / bps as f64)],
        curves: Vec::new(),
    }
}
