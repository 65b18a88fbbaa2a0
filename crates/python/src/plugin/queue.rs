//! A queue discipline written in Python.

use super::packet::{Context, Link, Packet};
use super::{Class, dictionary};
use fleetfoot_core::packet::Packet as CorePacket;
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::{
    Backlog, DropReason, LinkContext, QueueContext, QueueDiscipline, QueueEventKind,
};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_lab::plugins;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::Arc;

/// An object of a class, and what waits in it.
pub(super) struct PythonQueue {
    class: Arc<Class>,
    /// `None` after an exception.
    alive: Option<Alive>,
    backlog: Backlog,
    ready_at: Option<Instant>,
    shapes: bool,
}

struct Alive {
    object: Py<PyAny>,
    context: Py<Context>,
}

impl PythonQueue {
    pub(super) fn new(class: Arc<Class>, values: &Values, link: &LinkContext) -> PythonQueue {
        let mut queue = PythonQueue {
            alive: None,
            backlog: Backlog::default(),
            ready_at: None,
            shapes: class.has("ready_at"),
            class,
        };
        Python::attach(|py| {
            let built = dictionary(py, values).and_then(|parameters| {
                let object = queue.class.object.bind(py).call1((parameters, Link::of(link)))?;
                Ok(Alive {
                    object: object.unbind(),
                    context: Py::new(py, Context::default())?,
                })
            });
            match built {
                Ok(alive) => queue.alive = Some(alive),
                Err(error) => queue.class.fail(py, "__init__", None, &error),
            }
        });
        queue
    }

    /// Calls a method, and passes on what it reported.
    fn call<T>(
        &mut self,
        now: Instant,
        method: &str,
        report: &mut QueueContext<'_>,
        call: impl FnOnce(&Alive, Python<'_>, f64) -> PyResult<T>,
    ) -> Option<T> {
        let alive = self.alive.take()?;
        Python::attach(|py| {
            let answer = call(&alive, py, now.as_secs_f64()).and_then(|answer| {
                self.read(&alive, py, now, report)?;
                Ok(answer)
            });
            match answer {
                Ok(answer) => {
                    self.alive = Some(alive);
                    Some(answer)
                }
                Err(error) => {
                    self.class.fail(py, method, Some(now), &error);
                    self.backlog = Backlog::default();
                    self.ready_at = None;
                    None
                }
            }
        })
    }

    /// The run cannot go on.
    fn give_up(&mut self, reason: String) {
        plugins::fail(reason);
        self.alive = None;
        self.backlog = Backlog::default();
        self.ready_at = None;
    }

    /// Takes over what the object says now.
    fn read(
        &mut self,
        alive: &Alive,
        py: Python<'_>,
        now: Instant,
        report: &mut QueueContext<'_>,
    ) -> PyResult<()> {
        let mut context = alive.context.borrow_mut(py);
        report.drops.append(&mut context.drops);
        for flow in context.marks.drain(..) {
            report.report(QueueEventKind::Marked, flow);
        }
        self.backlog = Backlog {
            packets: context.packets,
            bytes: Bytes(context.bytes),
        };
        drop(context);
        self.ready_at = (self.backlog.packets > 0).then_some(Instant::ZERO);
        if self.shapes && self.backlog.packets > 0 {
            let at = alive
                .object
                .bind(py)
                .call_method1(intern!(py, "ready_at"), (now.as_secs_f64(),))?;
            self.ready_at = match at.is_none() {
                true => None,
                false => Some(instant(&at)?),
            };
        }
        Ok(())
    }
}

/// A time that Python gave in seconds.
fn instant(at: &Bound<'_, PyAny>) -> PyResult<Instant> {
    let seconds: f64 = at
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("ready_at returns seconds or None, not {at}")))?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!("ready_at returned {seconds}")));
    }
    let seconds = seconds.min(1e9);
    let at = Instant::ZERO.saturating_add(Duration::from_secs_f64(seconds));
    // Not earlier than what was said: the next call compares its time with it.
    Ok(match at.as_secs_f64() < seconds {
        true => at.saturating_add(Duration::from_nanos(1)),
        false => at,
    })
}

impl QueueDiscipline for PythonQueue {
    fn enqueue(&mut self, now: Instant, packet: CorePacket, context: &mut QueueContext<'_>) {
        let key = context.flows.key(packet.flow);
        let taken = self.call(now, "enqueue", context, |alive, py, at| {
            let place = Py::new(
                py,
                Packet {
                    packet,
                    key,
                    counted: false,
                    here: true,
                },
            )?;
            let arguments = (at, place.clone_ref(py), alive.context.clone_ref(py));
            alive
                .object
                .bind(py)
                .call_method1(intern!(py, "enqueue"), arguments)?;
            let mut place = place.borrow_mut(py);
            if place.here {
                place.counted = true;
                let mut context = alive.context.borrow_mut(py);
                context.packets += 1;
                context.bytes += u64::from(packet.segment.len());
            }
            Ok(())
        });
        if taken.is_none() {
            context.drops.push((packet, DropReason::Full));
        }
    }

    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<CorePacket> {
        let waited = self.backlog.packets;
        // An idle link asks once more; a class that takes the first of what waits need not know.
        if waited == 0 {
            return None;
        }
        let packet = self.call(now, "dequeue", context, |alive, py, at| {
            let arguments = (at, alive.context.clone_ref(py));
            let answer = alive
                .object
                .bind(py)
                .call_method1(intern!(py, "dequeue"), arguments)?;
            let mut context = alive.context.borrow_mut(py);
            if answer.is_none() {
                return Ok(None);
            }
            let Ok(place) = answer.cast::<Packet>() else {
                return Err(PyTypeError::new_err(format!(
                    "dequeue returns a packet or None, not {answer}"
                )));
            };
            let mut place = place.borrow_mut();
            if !place.here || !place.counted {
                return Err(PyValueError::new_err(
                    "dequeue returned a packet that has left the queue already",
                ));
            }
            place.here = false;
            context.subtract(&place.packet);
            Ok(Some(place.packet))
        })?;
        // The link would ask again and again.
        if packet.is_none() && self.backlog.packets == waited && self.ready_at.is_some_and(|at| at <= now) {
            self.give_up(format!(
                "`{}`: {}.dequeue returned None at {:.6} s while {waited} packets wait; a queue that holds packets back says until when in the method ready_at",
                self.class.name,
                self.class.label,
                now.as_secs_f64()
            ));
        }
        packet
    }

    fn ready_at(&self) -> Option<Instant> {
        self.ready_at
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}
