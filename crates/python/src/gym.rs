//! Steered flows for `fleetfoot.gym`: one at a time, and many at once.

use crate::error::{RunError, guarded, of_scenario, usage};
use crate::scenario::Scenario;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_lab::run;
use fleetfoot_lab::scenario::{Resolved, Setting};
use fleetfoot_lab::steer::{self, Decision, Each, Seen};
use fleetfoot_sim::output::{LinkOutput, RunOutput};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};

/// What is decided.
#[derive(Clone, Copy, PartialEq)]
enum Control {
    /// The window, in segments.
    Packets,
    /// The window, in bytes.
    Bytes,
    /// The pacing rate in bit/s, below a window that stays.
    Rate,
}

/// What a number decides.
fn decision(control: Control, value: f64, mss: f64, most: u64) -> Decision {
    let window = |bytes: f64| Some(Bytes((bytes.round() as u64).min(most)));
    match control {
        Control::Packets => Decision {
            window: window(value * mss),
            rate: None,
        },
        Control::Bytes => Decision {
            window: window(value),
            rate: None,
        },
        Control::Rate => Decision {
            window: Some(Bytes(most)),
            rate: Some(Rate(value.round().max(1.0) as u64)),
        },
    }
}

macro_rules! fields {
    ($($field:ident)+) => {
        /// The names of the numbers that a step returns.
        const FIELDS: &[&str] = &[$(stringify!($field)),+];

        fn numbers(seen: &Seen) -> [f64; FIELDS.len()] {
            [$(number(seen.$field)),+]
        }
    };
}

fields! {
    time_s elapsed_s acks delivered_bytes acked_bytes lost_bytes recoveries marks timeouts rtt_samples rtt_sum_s srtt_s min_rtt_s
    in_flight_bytes flight_size_bytes window_bytes pacing_rate_bps mss_bytes recovering window_limited
}

/// A number of a [`Seen`].
trait Number {
    fn number(self) -> f64;
}

impl Number for f64 {
    fn number(self) -> f64 {
        self
    }
}

impl Number for u64 {
    fn number(self) -> f64 {
        self as f64
    }
}

impl Number for bool {
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

fn number(value: impl Number) -> f64 {
    value.number()
}

/// The names of the numbers that a step returns, in their order.
#[pyfunction]
pub(crate) fn steered_fields() -> Vec<&'static str> {
    FIELDS.to_vec()
}

/// Places for steered runs of scenarios, each with one flow that is decided about.
#[pyclass(module = "fleetfoot._native")]
pub(crate) struct Steered {
    places: Vec<Place>,
    /// Behind a lock that is never waited for: all methods that use it have the only reference.
    runs: Mutex<Vec<Option<steer::Steered>>>,
    last: Vec<Seen>,
    each: Each,
    control: Control,
    most: u64,
}

/// What a place plays.
struct Place {
    resolved: Resolved,
    group: String,
}

impl Place {
    fn new(scenario: &Scenario, group: String) -> PyResult<Place> {
        let resolved = scenario.inner.resolve(&Setting::none());
        Ok(Place {
            resolved: resolved.map_err(|mistake| of_scenario(&mistake))?,
            group,
        })
    }
}

impl Steered {
    fn runs(&mut self) -> &mut Vec<Option<steer::Steered>> {
        self.runs.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Steered {
    /// `count` places for runs of a scenario in which `group` is steered. `each`: "rtt" or "ack"; `control`: "packets", "bytes" or "rate";
    /// `most`: the largest window, bytes.
    #[new]
    fn new(
        py: Python<'_>,
        scenario: PyRef<'_, Scenario>,
        group: String,
        count: usize,
        each: &str,
        control: &str,
        most: u64,
    ) -> PyResult<Steered> {
        let each = match each {
            "rtt" => Each::RoundTrip,
            "ack" => Each::Ack,
            other => return Err(usage(format!("step: `{other}` is neither `rtt` nor `ack`"))),
        };
        let control = match control {
            "packets" => Control::Packets,
            "bytes" => Control::Bytes,
            "rate" => Control::Rate,
            other => {
                return Err(usage(format!(
                    "control: `{other}` is none of `packets`, `bytes` and `rate`"
                )));
            }
        };
        let scenario: &Scenario = &scenario;
        let places = py.detach(|| {
            guarded(|| {
                (0..count)
                    .map(|_| Place::new(scenario, group.clone()))
                    .collect::<PyResult<Vec<_>>>()
            })
        })?;
        Ok(Steered {
            runs: Mutex::new((0..count).map(|_| None).collect()),
            last: vec![Seen::default(); count],
            places,
            each,
            control,
            most,
        })
    }

    /// Begins a run at a place and goes on to the first decision. What was seen until then.
    fn reset(&mut self, py: Python<'_>, place: usize, seed: u64) -> PyResult<Vec<f64>> {
        let Place { resolved, group } = &self.places[place];
        let (each, rates) = (self.each, self.control == Control::Rate);
        let (run, seen) = py.detach(|| {
            guarded(|| {
                let mut run = steer::Steered::new(resolved, group, seed, each, rates).map_err(usage)?;
                let seen = run.step(Decision::NONE).map_err(RunError::new_err)?;
                Ok((run, seen))
            })
        })?;
        self.runs()[place] = Some(run);
        self.last[place] = seen;
        Ok(numbers(&seen).to_vec())
    }

    /// Decides at a place and goes on to the next decision. What was seen, and whether the run is over.
    fn step(&mut self, py: Python<'_>, place: usize, value: f64) -> PyResult<(Vec<f64>, bool)> {
        let runs = self.runs.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(run) = &mut runs[place] else {
            return Err(usage("reset comes before the first step"));
        };
        let mss = self.last[place].mss_bytes as f64;
        let decision = decision(self.control, value, mss, self.most);
        let seen = py.detach(|| guarded(|| run.step(decision).map_err(RunError::new_err)))?;
        self.last[place] = seen;
        Ok((numbers(&seen).to_vec(), run.has_ended()))
    }

    /// Decides at all places at once, on all cores. What was seen as 64-bit floats, a row for each place, and which runs are over.
    fn step_all<'py>(
        &mut self,
        py: Python<'py>,
        values: Vec<f64>,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<bool>)> {
        if values.len() != self.places.len() {
            return Err(usage(format!(
                "{} decisions for {} places",
                values.len(),
                self.places.len()
            )));
        }
        let (control, most) = (self.control, self.most);
        let decisions: Vec<Decision> = values
            .iter()
            .zip(&self.last)
            .map(|(value, last)| decision(control, *value, last.mss_bytes as f64, most))
            .collect();
        let runs = self.runs();
        let all = py.detach(|| guarded(|| Ok(steer::step_all(runs, &decisions))))?;
        let mut bytes = Vec::with_capacity(all.len() * FIELDS.len() * 8);
        for (place, seen) in all.into_iter().enumerate() {
            let seen = seen.transpose().map_err(RunError::new_err)?;
            let Some(seen) = seen else {
                return Err(usage("reset comes before the first step"));
            };
            self.last[place] = seen;
            bytes.extend(numbers(&seen).iter().flat_map(|number| number.to_ne_bytes()));
        }
        let over = self
            .runs()
            .iter()
            .map(|run| run.as_ref().is_some_and(steer::Steered::has_ended));
        Ok((PyBytes::new(py, &bytes), over.collect()))
    }

    /// What the run of a place measures where the flow has the congestion control `name`, or its own, as JSON.
    fn baseline(&self, py: Python<'_>, place: usize, name: Option<&str>, seed: u64) -> PyResult<String> {
        let Place { resolved, group } = &self.places[place];
        let output = py
            .detach(|| guarded(|| steer::baseline(resolved, group, name, seed).map_err(RunError::new_err)))?;
        Ok(document(resolved, &output).to_string())
    }

    /// The rate of the slowest link at a place, bit/s.
    fn slowest(&self, place: usize) -> u64 {
        let links = self.places[place].resolved.spec.links.iter();
        links
            .filter(|link| link.forward)
            .map(|link| link.rate.mean().bps())
            .min()
            .unwrap_or(0)
    }

    /// What the run at a place measured, as JSON, once it is over.
    fn result(&mut self, place: usize) -> Option<String> {
        let output = self.runs()[place].as_mut()?.output()?;
        Some(document(&self.places[place].resolved, &output).to_string())
    }
}

/// Goodput of the groups, waits and drops of the links.
fn document(resolved: &Resolved, output: &RunOutput) -> serde_json::Value {
    let spec = &resolved.spec;
    let measured = spec.duration.saturating_sub(spec.warmup).as_secs_f64();
    let groups = spec.groups.iter().zip(&output.groups).map(|(group, output)| {
        serde_json::json!({
            "name": group.name,
            "goodput_bps": output.goodput_bytes.get() as f64 * 8.0 / measured,
        })
    });
    let links = spec.links.iter().zip(&output.links).map(|(link, output)| {
        serde_json::json!({
            "name": link.name,
            "direction": if link.forward { "forward" } else { "reverse" },
            "queue_delay_s": output.queue_delay.mean().map(|nanos| nanos / 1e9),
            "queue_delay_p95_s": output.queue_delay.quantile(0.95).map(|nanos| nanos as f64 / 1e9),
            "queue_packets": output.queue_packets.mean(),
            "utilisation": output.busy.as_secs_f64() / measured,
            "drops": drops(output),
        })
    });
    serde_json::json!({
        "groups": groups.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "measured_s": measured,
        "digest": run::digest(output),
    })
}

fn drops(link: &LinkOutput) -> u64 {
    link.drops.iter().flatten().sum()
}
