//! How long a promise lives that nobody redeems.
//!
//! A first packet that nothing follows arrives at a random moment of an epoch; then a call every two-hundredth of an epoch
//! looks whether its promise is gone. **Source.** Schinazi 2014, section 3.3. **Deviations.** None known.

use super::super::{Analysis, Measured, Metric, Outcome, Run};
use super::{Rig, limit};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Value, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::superpacket::Mark;
use fleetfoot_core::time::{Duration, Instant};

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("promise-age", OPTIONS, include_str!("state_age.rs")),
    metrics: &[
        Metric {
            name: "youngest_epochs",
            doc: "Smallest age at expiry, in epochs.",
        },
        Metric {
            name: "oldest_epochs",
            doc: "Largest age at expiry, in epochs.",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[
    parameter!("promises": Integer(1, 1_000_000) = 2000, "How many are watched"),
    parameter!("epoch": Duration(Duration::from_millis(1), Duration::from_secs(8)) = Duration::from_millis(200),
        "Length of an epoch"),
];

fn run(options: &Values) -> Outcome {
    let epoch = options.duration("epoch").unwrap_or(Duration::from_millis(200));
    let step = epoch.as_nanos() / STEPS;
    // A whole number of steps, so that some of them are the ends of epochs.
    let length = step * STEPS;
    let settings = [
        ("limit", limit(100)),
        ("epoch", Value::Duration(Duration::from_nanos(length))),
    ];
    let mut rig = Rig::new("superpacket", &settings, 1);
    let mut rng = Rng::for_element(1, "promise-age", "arrivals");
    let (mut youngest, mut oldest) = (f64::INFINITY, 0.0_f64);
    let mut epochs = 0;
    for number in 0..options.integer("promises").unwrap_or(0) {
        epochs += 4;
        let made = epochs * length + rng.below(length);
        rig.offer(
            Instant::from_nanos(made),
            0,
            Mark::first(10, (number % 256) as u16),
        );
        rig.take(Instant::from_nanos(made));
        let mut call = made.div_ceil(step) * step;
        while rig.reserved() > 0 && call < made + 4 * length {
            rig.offer(Instant::from_nanos(call), 0, Mark::REGULAR);
            rig.take(Instant::from_nanos(call));
            call += step;
        }
        let age = (call - step - made) as f64 / length as f64;
        youngest = youngest.min(age);
        oldest = oldest.max(age);
    }
    Outcome {
        values: vec![Measured::exact(youngest), Measured::exact(oldest)],
        curves: Vec::new(),
    }
}

/// Looks per epoch.
const STEPS: u64 = 200;

#[cfg(test)]
mod tests {
    use super::{OPTIONS, run};
    use fleetfoot_core::parameter::Values;

    #[test]
    fn ages_spread_over_the_whole_of_what_is_allowed() {
        let outcome = run(&Values::defaults(OPTIONS));
        let [youngest, oldest] = [outcome.values[0].value, outcome.values[1].value];
        assert!(
            (1.0..1.01).contains(&youngest) && (1.99..=2.0).contains(&oldest),
            "{youngest} {oldest}"
        );
    }
}
