//! A flow whose window or rate somebody outside decides: a run that stops for each decision.
//!
//! One connection of a scenario, the only one of its group, gets a congestion control that holds what it was given last. The run
//! stops when a round trip is over or with every acknowledgment, says what happened since the last decision, and takes the
//! next. The decision has its effect from the next acknowledgment on: what this one permitted has left under the last. Everything
//! else of TCP stays as the scenario describes it: loss detection, recovery by PRR towards the window that was decided,
//! timeouts.
//!
//! After a retransmission timeout the window is one segment until the next decision, which comes with the timeout itself.

use crate::scenario::Resolved;
use crate::{plugins, run};
use fleetfoot_core::cc::{
    self, Ack, AnyController, Congestion, CongestionController, CongestionKind, Phase, Reaction,
};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::registry::{Entry, Plugin};
use fleetfoot_core::tcp::Config;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{GroupSpec, Spec, Traffic};
use fleetfoot_sim::world::{Advance, Mode, Pause, Steps};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// When a decision is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// When data that was sent after the last decision is acknowledged, and with every timeout.
    RoundTrip,
    /// With every acknowledgment, and with every timeout.
    Ack,
}

/// A decision; what it leaves out stays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    /// The congestion window; at least one segment is taken.
    pub window: Option<Bytes>,
    /// The rate at which packets leave, payload counted.
    pub rate: Option<Rate>,
}

impl Decision {
    /// Nothing changes.
    pub const NONE: Decision = Decision {
        window: None,
        rate: None,
    };
}

/// What happened to the flow since the last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Virtual time of the last thing seen (s).
    pub time_s: f64,
    /// Time since the last decision (s).
    pub elapsed_s: f64,
    /// Acknowledgments.
    pub acks: u64,
    /// Bytes that acknowledgments reported delivered, cumulatively or selectively.
    pub delivered_bytes: u64,
    /// Bytes acknowledged cumulatively.
    pub acked_bytes: u64,
    /// Bytes that loss detection gave up.
    pub lost_bytes: u64,
    /// Recoveries from losses that began.
    pub recoveries: u64,
    /// Reductions asked for by an ECN echo.
    pub marks: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// RTT samples.
    pub rtt_samples: u64,
    /// Sum of the RTT samples (s).
    pub rtt_sum_s: f64,
    /// Smoothed RTT (s); 0 before the first sample.
    pub srtt_s: f64,
    /// Smallest RTT of the connection (s); 0 before the first sample.
    pub min_rtt_s: f64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// FlightSize when the last congestion event of the step was noticed: sent and not acknowledged; 0 without one.
    pub flight_size_bytes: u64,
    /// The window in force.
    pub window_bytes: u64,
    /// The pacing rate in force (bit/s); 0: none.
    pub pacing_rate_bps: u64,
    /// The largest segment (bytes).
    pub mss_bytes: u64,
    /// The last acknowledgment came within a recovery, whose window is not the controller's.
    pub recovering: bool,
    /// The window, not the application, was what limited sending.
    pub window_limited: bool,
}

/// A steered run.
pub struct Steered {
    steps: Option<Steps>,
    helm: Arc<Helm>,
    ended: bool,
}

impl Steered {
    /// The run of `resolved` with this seed in which `group`, one connection of kind `bulk`, is steered. It has not begun. `rates`:
    /// decisions are about the pacing rate.
    ///
    /// # Errors
    /// A sentence: there is no such group, or it is not one bulk connection; or the simulator refuses the run.
    pub fn new(
        resolved: &Resolved,
        group: &str,
        seed: u64,
        each: Each,
        rates: bool,
    ) -> Result<Steered, String> {
        let mut spec = resolved.spec(seed);
        take_group(&mut spec, group)?;
        let pause = Pause::default();
        let helm = Arc::new(Helm {
            each,
            rates,
            pause: pause.clone(),
            window: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            seen: Mutex::new(Seen::default()),
        });
        let steps = Steps::new(spec, Mode::Fast, pause).map_err(|error| error.to_string())?;
        Ok(Steered {
            steps: Some(steps),
            helm,
            ended: false,
        })
    }

    /// Takes a decision ([`Decision::NONE`] at the beginning) and goes on until the next is asked for or the run is over.
    ///
    /// # Errors
    /// The reason of a mechanism from outside that failed.
    pub fn step(&mut self, decision: Decision) -> Result<Seen, String> {
        self.helm.take(decision);
        if let (Some(steps), false) = (&mut self.steps, self.ended) {
            let before = HELM.replace(Some(Arc::clone(&self.helm)));
            let advance = steps.advance();
            HELM.set(before);
            self.ended = advance == Advance::Ended;
            if let Some(reason) = plugins::take_failure() {
                self.ended = true;
                return Err(reason);
            }
            let now = steps.now();
            let mut seen = self.helm.seen();
            let begun = seen.time_s - seen.elapsed_s;
            if self.ended {
                seen.time_s = now.as_secs_f64();
                seen.elapsed_s = seen.time_s - begun;
            }
        }
        Ok(*self.helm.seen())
    }

    /// Whether the run is over.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// What the run measured, once it is over.
    pub fn output(&mut self) -> Option<RunOutput> {
        match self.ended {
            true => self.steps.take().and_then(Steps::finish),
            false => None,
        }
    }
}

/// The run of `resolved` with this seed in which the connections of `group` have the congestion control `name`, or their own: what
/// decisions about one of them are compared with.
///
/// # Errors
/// A sentence: there is no such group or congestion control, or the run fails.
pub fn baseline(
    resolved: &Resolved,
    group: &str,
    name: Option<&str>,
    seed: u64,
) -> Result<RunOutput, String> {
    let mut spec = resolved.spec(seed);
    let config = sender_of(&mut spec, group)?;
    if let Some(name) = name {
        let Some(entry) = plugins::controller(name) else {
            let names: Vec<&str> = plugins::controllers().iter().map(|entry| entry.name).collect();
            return Err(format!(
                "no congestion control is called `{name}`; valid choices: {}",
                names.join(", ")
            ));
        };
        config.congestion_control = entry.name;
        config.congestion_control_values = None;
        config.plugins = plugins::installed();
    }
    run::simulate(&spec, &AtomicBool::new(false))
}

/// Steps many runs on all cores. What has ended, and places without a run, stay as they are.
pub fn step_all(runs: &mut [Option<Steered>], decisions: &[Decision]) -> Vec<Option<Result<Seen, String>>> {
    runs.par_iter_mut()
        .zip(decisions)
        .map(|(run, decision)| run.as_mut().map(|run| run.step(*decision)))
        .collect()
}

/// Gives the only connection of `group` the steered congestion control.
fn take_group(spec: &mut Spec, group: &str) -> Result<(), String> {
    let found = group_of(spec, group)?;
    if !matches!(found.traffic, Traffic::Bulk { count: 1 }) || found.relay.is_some() {
        return Err(format!(
            "traffic `{group}` is not one connection of kind `bulk` without a relay: only such a connection can be steered"
        ));
    }
    if spec.world.is_real() {
        return Err(String::from(
            "a kernel's connections cannot be steered (run.world)",
        ));
    }
    let config = sender_of(spec, group)?;
    config.congestion_control = STEERED[0].entry.name;
    config.congestion_control_values = None;
    config.plugins = Plugins {
        controllers: &STEERED,
        queues: &[],
    };
    Ok(())
}

fn group_of<'a>(spec: &'a mut Spec, group: &str) -> Result<&'a mut GroupSpec, String> {
    let names: Vec<String> = spec.groups.iter().map(|one| format!("`{}`", one.name)).collect();
    let found = spec.groups.iter_mut().find(|one| one.name == group);
    found.ok_or_else(|| {
        format!(
            "no traffic is called `{group}`; the scenario has {}",
            names.join(", ")
        )
    })
}

/// How the senders of `group` behave.
fn sender_of<'a>(spec: &'a mut Spec, group: &str) -> Result<&'a mut Config, String> {
    Ok(Arc::make_mut(&mut group_of(spec, group)?.sender))
}

static STEERED: [Plugin<AnyController, cc::Config>; 1] = [Plugin {
    entry: Entry::new("steered", &[], "//! Holds the window or rate that it was given."),
    build: &|_, config| match HELM.with_borrow(Clone::clone) {
        Some(helm) => AnyController::Custom(Box::new(Steersman::new(helm, config))),
        // Only `Steered::step` makes such a connection.
        None => AnyController::Reno(cc::Reno::new(&Values::defaults(cc::Reno::PARAMETERS), config)),
    },
}];

thread_local! {
    /// Whose run goes on in this thread.
    static HELM: RefCell<Option<Arc<Helm>>> = const { RefCell::new(None) };
}

/// What the run and its caller share.
struct Helm {
    each: Each,
    rates: bool,
    pause: Pause,
    window: AtomicU64,
    /// Bits per second; 0: none.
    rate: AtomicU64,
    seen: Mutex<Seen>,
}

impl Helm {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, decision: Decision) {
        let mut seen = self.seen();
        if let Some(window) = decision.window {
            let least = seen.mss_bytes.max(1);
            self.window.store(window.get().max(least), Ordering::Relaxed);
        }
        if let Some(rate) = decision.rate {
            self.rate.store(rate.bps().max(1), Ordering::Relaxed);
        }
        *seen = Seen {
            time_s: seen.time_s,
            srtt_s: seen.srtt_s,
            min_rtt_s: seen.min_rtt_s,
            in_flight_bytes: seen.in_flight_bytes,
            window_bytes: self.window.load(Ordering::Relaxed),
            pacing_rate_bps: self.rate.load(Ordering::Relaxed),
            mss_bytes: seen.mss_bytes,
            recovering: seen.recovering,
            window_limited: seen.window_limited,
            ..Seen::default()
        };
    }
}

/// The congestion control of the steered connection.
struct Steersman {
    helm: Arc<Helm>,
    mss: u64,
}

impl Steersman {
    fn new(helm: Arc<Helm>, config: &cc::Config) -> Steersman {
        let mss = config.mss.get().max(1);
        let window = config.initial_window.get().max(mss);
        helm.window.store(window, Ordering::Relaxed);
        let mut seen = helm.seen();
        seen.mss_bytes = mss;
        seen.window_bytes = window;
        if let Some(rtt) = config.handshake_rtt {
            (seen.srtt_s, seen.min_rtt_s) = (rtt.as_secs_f64(), rtt.as_secs_f64());
        }
        drop(seen);
        Steersman { helm, mss }
    }

    fn at(seen: &mut Seen, now: Instant) {
        let before = std::mem::replace(&mut seen.time_s, now.as_secs_f64());
        seen.elapsed_s += seen.time_s - before;
    }

    fn put(&self, window: Bytes) {
        let window = window.get().max(self.mss);
        self.helm.window.store(window, Ordering::Relaxed);
        self.helm.seen().window_bytes = window;
    }
}

impl CongestionController for Steersman {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        let mut seen = self.helm.seen();
        Steersman::at(&mut seen, now);
        seen.acks += 1;
        seen.delivered_bytes += ack.acked.get() + ack.sacked.get();
        seen.acked_bytes += ack.acked.get();
        seen.lost_bytes += ack.lost.get();
        if let Some(rtt) = ack.rtt {
            seen.rtt_samples += 1;
            seen.rtt_sum_s += rtt.as_secs_f64();
        }
        let seconds = |span: Option<Duration>, known: f64| span.map_or(known, Duration::as_secs_f64);
        seen.srtt_s = seconds(ack.srtt, seen.srtt_s);
        seen.min_rtt_s = seconds(ack.min_rtt, seen.min_rtt_s);
        seen.in_flight_bytes = ack.in_flight.get();
        seen.recovering = ack.recovering;
        seen.window_limited = ack.cwnd_limited;
        if self.helm.each == Each::Ack || ack.round_start {
            self.helm.pause.request();
        }
        Reaction::None
    }

    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        let mut seen = self.helm.seen();
        Steersman::at(&mut seen, now);
        seen.in_flight_bytes = event.in_flight.get();
        match event.kind {
            CongestionKind::Loss => seen.recoveries += 1,
            CongestionKind::Ecn => seen.marks += 1,
            CongestionKind::Timeout { .. } => {
                seen.timeouts += 1;
                seen.window_bytes = self.mss;
                self.helm.window.store(self.mss, Ordering::Relaxed);
                self.helm.pause.request();
            }
            CongestionKind::Delay | CongestionKind::Undo | CongestionKind::RecoveryEnd => return,
        }
        seen.flight_size_bytes = event.flight_size.get();
    }

    fn set_window(&mut self, _now: Instant, window: Bytes, _ssthresh: Bytes) {
        self.put(window);
    }

    fn window(&self) -> Bytes {
        Bytes(self.helm.window.load(Ordering::Relaxed))
    }

    /// The window: a recovery ends at what was decided.
    fn ssthresh(&self) -> Bytes {
        self.window()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        match self.helm.rate.load(Ordering::Relaxed) {
            0 => None,
            bps => Some(Rate(bps)),
        }
    }

    fn uses_rates(&self) -> bool {
        self.helm.rates
    }

    fn uses_sent(&self) -> bool {
        false
    }

    fn phase(&self) -> Phase {
        Phase::CongestionAvoidance
    }
}

#[cfg(test)]
mod tests;
