//! A congestion control written in Python.

use super::{Class, dictionary};
use fleetfoot_core::cc::{self, Congestion, CongestionController, CongestionKind, Phase, Reaction};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::Arc;

/// What a controller is built from.
#[pyclass(frozen, get_all, module = "fleetfoot._native")]
pub(crate) struct Connection {
    mss: u64,
    initial_window: u64,
    handshake_rtt: Option<f64>,
    reduce_from_window: bool,
    count_segments: bool,
    fractions: bool,
    abc_limit: Option<u32>,
    seed: u64,
}

/// What an acknowledgment reported.
#[pyclass(frozen, get_all, module = "fleetfoot._native")]
pub(crate) struct Ack {
    acked: u64,
    sacked: u64,
    segments: u32,
    delivered_total: u64,
    lost: u64,
    in_flight: u64,
    prior_in_flight: u64,
    ce_bytes: u64,
    rtt: Option<f64>,
    newest_rtt: Option<f64>,
    one_way_delay: Option<f64>,
    srtt: Option<f64>,
    min_rtt: Option<f64>,
    rate: Option<f64>,
    rate_app_limited: bool,
    round_start: bool,
    app_limited: bool,
    cwnd_limited: bool,
    recovering: bool,
}

impl Ack {
    fn of(ack: &cc::Ack<'_>) -> Ack {
        let seconds = |span: Option<Duration>| span.map(Duration::as_secs_f64);
        let rate = ack.rate.filter(|rate| !rate.interval.is_zero());
        Ack {
            acked: ack.acked.get(),
            sacked: ack.sacked.get(),
            segments: ack.segments,
            delivered_total: ack.delivered_total.get(),
            lost: ack.lost.get(),
            in_flight: ack.in_flight.get(),
            prior_in_flight: ack.prior_in_flight.get(),
            ce_bytes: ack.ce_bytes.get(),
            rtt: seconds(ack.rtt),
            newest_rtt: seconds(ack.newest_rtt),
            one_way_delay: seconds(ack.one_way_delay),
            srtt: seconds(ack.srtt),
            min_rtt: seconds(ack.min_rtt),
            rate: rate.map(|rate| rate.delivered.get() as f64 * 8.0 / rate.interval.as_secs_f64()),
            rate_app_limited: rate.is_some_and(|rate| rate.app_limited),
            round_start: ack.round_start,
            app_limited: ack.app_limited,
            cwnd_limited: ack.cwnd_limited,
            recovering: ack.recovering,
        }
    }
}

/// A congestion event.
#[pyclass(frozen, get_all, module = "fleetfoot._native")]
pub(crate) struct Event {
    flight_size: u64,
    in_flight: u64,
    first: bool,
}

/// A transmission.
#[pyclass(frozen, get_all, module = "fleetfoot._native")]
pub(crate) struct Sent {
    bytes: u64,
    in_flight: u64,
    retransmission: bool,
}

/// An object of a class, and what it said last.
pub(super) struct PythonController {
    class: Arc<Class>,
    /// `None` after an exception.
    object: Option<Py<PyAny>>,
    mss: Bytes,
    window: Bytes,
    ssthresh: Bytes,
    pacing_rate: Option<Rate>,
    sends: bool,
    idles: bool,
    restarts: bool,
}

impl PythonController {
    pub(super) fn new(class: Arc<Class>, values: &Values, config: &cc::Config) -> PythonController {
        let mut controller = PythonController {
            object: None,
            mss: config.mss.max(Bytes(1)),
            window: config.initial_window.max(config.mss),
            ssthresh: Bytes::MAX,
            pacing_rate: None,
            sends: class.has("on_sent"),
            idles: class.has("on_idle"),
            restarts: class.has("on_restart"),
            class,
        };
        Python::attach(|py| {
            let built = dictionary(py, values).and_then(|parameters| {
                let connection = Connection {
                    mss: config.mss.get(),
                    initial_window: config.initial_window.get(),
                    handshake_rtt: config.handshake_rtt.map(Duration::as_secs_f64),
                    reduce_from_window: config.reduce_from_window,
                    count_segments: config.count_segments,
                    fractions: config.fractions,
                    abc_limit: config.abc_limit,
                    seed: config.seed,
                };
                controller.class.object.bind(py).call1((parameters, connection))
            });
            match built.and_then(|object| controller.read(&object).map(|()| object)) {
                Ok(object) => controller.object = Some(object.unbind()),
                Err(error) => controller.class.fail(py, "__init__", None, &error),
            }
        });
        controller
    }

    /// Takes over what the object says now.
    fn read(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        self.window = amount(&object.getattr(intern!(py, "window"))?, "window")?.max(self.mss);
        let ssthresh = object.getattr(intern!(py, "ssthresh"))?;
        self.ssthresh = match ssthresh.is_none() {
            true => Bytes::MAX,
            false => amount(&ssthresh, "ssthresh")?,
        };
        let rate = object.getattr(intern!(py, "pacing_rate"))?;
        self.pacing_rate = match rate.is_none() {
            true => None,
            false => Some(Rate(amount(&rate, "pacing_rate")?.get().max(1))),
        };
        Ok(())
    }

    /// Calls a method and takes over what the object says after it.
    fn call<T>(
        &mut self,
        now: Instant,
        method: &str,
        call: impl FnOnce(&Bound<'_, PyAny>, f64) -> PyResult<T>,
    ) -> Option<T> {
        let object = self.object.take()?;
        Python::attach(|py| {
            let bound = object.bind(py);
            let answer = call(bound, now.as_secs_f64()).and_then(|answer| {
                self.read(bound)?;
                Ok(answer)
            });
            match answer {
                Ok(answer) => {
                    self.object = Some(object);
                    Some(answer)
                }
                Err(error) => {
                    self.class.fail(py, method, Some(now), &error);
                    None
                }
            }
        })
    }
}

/// A number of bytes or bits that an attribute holds.
fn amount(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Bytes> {
    let number: f64 = value
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("self.{name} is no number: {value}")))?;
    if number.is_nan() || number < 0.0 {
        return Err(PyValueError::new_err(format!("self.{name} is {number}")));
    }
    Ok(if number >= 9e18 {
        Bytes::MAX
    } else {
        Bytes(number as u64)
    })
}

impl CongestionController for PythonController {
    fn on_sent(&mut self, now: Instant, sent: &cc::Sent) {
        let sent = Sent {
            bytes: sent.bytes.get(),
            in_flight: sent.in_flight.get(),
            retransmission: sent.retransmission,
        };
        self.call(now, "on_sent", |object, at| {
            object
                .call_method1(intern!(object.py(), "on_sent"), (at, sent))
                .map(drop)
        });
    }

    fn uses_sent(&self) -> bool {
        self.sends
    }

    fn on_ack(&mut self, now: Instant, ack: &cc::Ack<'_>) -> Reaction {
        let ack = Ack::of(ack);
        let reduces = self.call(now, "on_ack", |object, at| {
            let answer = object.call_method1(intern!(object.py(), "on_ack"), (at, ack))?;
            if answer.is_none() {
                return Ok(false);
            }
            match answer.extract::<&str>() {
                Ok("reduce") => Ok(true),
                _ => Err(PyValueError::new_err(format!(
                    "on_ack returns None or \"reduce\", not {answer}"
                ))),
            }
        });
        match reduces {
            Some(true) => Reaction::ReduceWindow,
            Some(false) | None => Reaction::None,
        }
    }

    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        let (method, first) = match event.kind {
            CongestionKind::Loss => ("on_loss", true),
            CongestionKind::Ecn => ("on_ecn", true),
            CongestionKind::Timeout { first } => ("on_rto", first),
            CongestionKind::Delay => ("on_delay", true),
            CongestionKind::Undo => ("on_undo", true),
            CongestionKind::RecoveryEnd => ("on_recovery_end", true),
        };
        let event = Event {
            flight_size: event.flight_size.get(),
            in_flight: event.in_flight.get(),
            first,
        };
        self.call(now, method, |object, at| {
            object.call_method1(method, (at, event)).map(drop)
        });
    }

    fn on_idle(&mut self, now: Instant, idle: Duration) {
        if self.idles {
            let idle = idle.as_secs_f64();
            self.call(now, "on_idle", |object, at| {
                object.call_method1("on_idle", (at, idle)).map(drop)
            });
        }
    }

    fn on_restart(&mut self, now: Instant, idle: Duration) {
        if self.restarts {
            let idle = idle.as_secs_f64();
            self.call(now, "on_restart", |object, at| {
                object.call_method1("on_restart", (at, idle)).map(drop)
            });
        }
    }

    fn set_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes) {
        let ssthresh = (ssthresh != Bytes::MAX).then_some(ssthresh.get());
        self.call(now, "set_window", |object, at| {
            object
                .call_method1("set_window", (at, window.get(), ssthresh))
                .map(drop)
        });
    }

    fn window(&self) -> Bytes {
        self.window
    }

    fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn uses_rates(&self) -> bool {
        self.class.uses_rates
    }

    fn phase(&self) -> Phase {
        match self.window < self.ssthresh {
            true => Phase::SlowStart,
            false => Phase::CongestionAvoidance,
        }
    }
}
