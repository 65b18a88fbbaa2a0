//! Mechanisms written in Python: classes as congestion controls and queue disciplines of this process.
//!
//! Each connection or link has an object of the class. The interpreter is taken for each call, so a run is as slow as its calls are
//! many; runs without such a mechanism never take it. An exception ends the run of the thread that met it
//! ([`fleetfoot_lab::plugins::fail`]): until the engine notices, the controller keeps its window and the queue drops everything.

mod controller;
mod packet;
mod queue;

pub(crate) use controller::{Ack, Connection, Event, Sent};
pub(crate) use packet::{Context, Limit, Link, Packet};

use crate::error::usage;
use controller::PythonController;
use fleetfoot_core::parameter::{Parameter, ParameterKind, Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit as CoreLimit};
use fleetfoot_core::registry::{Entry, Plugin};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_core::{cc, queue as core_queue};
use fleetfoot_lab::plugins::{self, Mechanism};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use queue::PythonQueue;
use std::sync::Arc;

/// A registered class.
struct Class {
    /// The name in scenarios.
    name: &'static str,
    /// The qualified name of the class.
    label: String,
    object: Py<PyAny>,
    /// Which optional methods it has of its own.
    own: Vec<String>,
    uses_rates: bool,
}

impl Class {
    fn has(&self, method: &str) -> bool {
        self.own.iter().any(|own| own == method)
    }

    /// Reports an exception in `method`: the class, the method and the line of the source.
    fn fail(&self, py: Python<'_>, method: &str, now: Option<Instant>, error: &PyErr) {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            // Python raised it here because this is the main thread: whoever waits for the run is to get it.
            let _ = py
                .import("_thread")
                .and_then(|thread| thread.call_method0("interrupt_main"));
            plugins::fail(String::from("interrupted"));
            return;
        }
        let at = now
            .map(|now| format!(" at {:.6} s", now.as_secs_f64()))
            .unwrap_or_default();
        let place = place(py, error)
            .map(|place| format!(" ({place})"))
            .unwrap_or_default();
        let said = error.value(py).to_string();
        let kind = error
            .get_type(py)
            .name()
            .map_or_else(|_| String::from("exception"), |name| name.to_string());
        let said = if said.is_empty() {
            kind
        } else {
            format!("{kind}: {said}")
        };
        plugins::fail(format!(
            "`{}`: {}.{method} failed{at}: {said}{place}",
            self.name, self.label
        ));
    }
}

/// The innermost line of Python that an exception came through.
fn place(py: Python<'_>, error: &PyErr) -> Option<String> {
    let mut frame = error.traceback(py)?.into_any();
    while let Ok(next) = frame.getattr("tb_next")
        && !next.is_none()
    {
        frame = next;
    }
    let line: u32 = frame.getattr("tb_lineno").ok()?.extract().ok()?;
    let code = frame.getattr("tb_frame").ok()?.getattr("f_code").ok()?;
    let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
    Some(format!("line {line} of {file}"))
}

/// One row of a class's parameters, in plain numbers: spans in seconds, amounts in bytes, rates in bit/s, limits in packets.
#[derive(FromPyObject)]
pub(crate) struct Row {
    name: String,
    kind: String,
    default: Option<f64>,
    low: f64,
    high: f64,
    words: Vec<String>,
    default_word: Option<String>,
    doc: String,
}

impl Row {
    fn parameter(self) -> PyResult<Parameter> {
        let span = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
        let whole = |number: f64| number.clamp(0.0, 9e18) as u64;
        let (low, high) = (self.low, self.high);
        let words: &'static [&'static str] = self
            .words
            .into_iter()
            .map(|word| -> &'static str { word.leak() })
            .collect::<Vec<_>>()
            .leak();
        let number = |value: fn(f64) -> Value| self.default.map_or(Value::Auto, value);
        let (kind, default) = match self.kind.as_str() {
            "duration" => (
                ParameterKind::Duration(span(low), span(high)),
                number(|seconds| Value::Duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))),
            ),
            "bytes" => (
                ParameterKind::Bytes(Bytes(whole(low)), Bytes(whole(high))),
                number(|bytes| Value::Bytes(Bytes(bytes as u64))),
            ),
            "rate" => (
                ParameterKind::Rate(Rate(whole(low)), Rate(whole(high))),
                number(|bps| Value::Rate(Rate(bps as u64))),
            ),
            "number" => (ParameterKind::Number(low, high), number(Value::Number)),
            "integer" => (
                ParameterKind::Integer(whole(low), whole(high)),
                number(|integer| Value::Integer(integer as u64)),
            ),
            "flag" => (ParameterKind::Flag, number(|flag| Value::Flag(flag != 0.0))),
            "limit" => (
                ParameterKind::Limit,
                self.default
                    .map_or(Value::Limit(CoreLimit::Unlimited), |packets| {
                        Value::Limit(CoreLimit::Packets(packets as u32))
                    }),
            ),
            "choice" => {
                let chosen = words
                    .iter()
                    .find(|word| Some(**word) == self.default_word.as_deref());
                (
                    ParameterKind::Choice(words),
                    chosen.map_or(Value::Auto, |word| Value::Choice(word)),
                )
            }
            other => return Err(usage(format!("no kind of parameter is called `{other}`"))),
        };
        Ok(Parameter {
            name: self.name.leak(),
            kind,
            default,
            doc: self.doc.leak(),
        })
    }
}

/// Makes `class` known as `name`, in place of a class with this name. `source`: its document as `//!` lines, and what identifies
/// what it does. The texts stay for the rest of the process.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called by one function of Python only")]
#[pyo3(signature = (kind, name, label, class_, own, uses_rates, source, rows))]
pub(crate) fn register(
    kind: &str,
    name: String,
    label: String,
    class_: Py<PyAny>,
    own: Vec<String>,
    uses_rates: bool,
    source: String,
    rows: Vec<Row>,
) -> PyResult<()> {
    let parameters: Vec<Parameter> = rows.into_iter().map(Row::parameter).collect::<PyResult<_>>()?;
    let name: &'static str = name.leak();
    let class = Arc::new(Class {
        name,
        label,
        object: class_,
        own,
        uses_rates,
    });
    let entry = Entry::new(name, parameters.leak(), source.leak());
    let mechanism = if kind == "queue" {
        let build = move |values: &Values, link: &core_queue::LinkContext| {
            AnyQueue::Custom(Box::new(PythonQueue::new(Arc::clone(&class), values, link)))
        };
        Mechanism::Queue(Plugin {
            entry,
            build: Box::leak(Box::new(build)),
        })
    } else {
        let build = move |values: &Values, config: &cc::Config| {
            cc::AnyController::Custom(Box::new(PythonController::new(
                Arc::clone(&class),
                values,
                config,
            )))
        };
        Mechanism::Controller(Plugin {
            entry,
            build: Box::leak(Box::new(build)),
        })
    };
    plugins::add(mechanism).map_err(usage)
}

/// Messages about unknown names say where names of classes are known.
pub(crate) fn say_where_names_are_known() {
    plugins::set_hint(
        "a mechanism written in Python is known where fleetfoot.register was called, in each process anew",
    );
}

/// Takes the class called `name` away. Whether there was one.
#[pyfunction]
pub(crate) fn unregister(name: &str) -> bool {
    plugins::remove(name)
}

/// Names and documents of the registered classes: kind, name, document.
#[pyfunction]
pub(crate) fn registered() -> Vec<(&'static str, String, String)> {
    let installed = plugins::installed();
    let controllers = installed
        .controllers
        .iter()
        .map(|plugin| ("congestion control", &plugin.entry));
    let queues = installed.queues.iter().map(|plugin| ("queue", &plugin.entry));
    controllers
        .chain(queues)
        .map(|(kind, entry)| {
            let document: Vec<&str> = entry.document().collect();
            (kind, entry.name.to_owned(), document.join("\n"))
        })
        .collect()
}

/// The values of a mechanism's parameters as a dictionary, in plain numbers.
fn dictionary<'py>(py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for parameter in values.table() {
        let name = parameter.name;
        match values.value(name) {
            Value::Auto => dict.set_item(name, py.None())?,
            Value::Limit(limit) => dict.set_item(name, Limit::of(limit))?,
            Value::Duration(span) => dict.set_item(name, span.as_secs_f64())?,
            Value::Bytes(bytes) => dict.set_item(name, bytes.get())?,
            Value::Rate(rate) => dict.set_item(name, rate.bps())?,
            Value::Number(number) => dict.set_item(name, number)?,
            Value::Integer(number) => dict.set_item(name, number)?,
            Value::Flag(flag) => dict.set_item(name, PyBool::new(py, flag))?,
            Value::Choice(word) => dict.set_item(name, word)?,
        }
    }
    Ok(dict)
}
