//! Relentless TCP: NewReno that gives back, after a loss, no more than what was lost.
//!
//! The window grows as NewReno's. In a recovery it shrinks by the bytes of each retransmission instead of to a half, so that
//! random losses cost little. It takes what it can get: share a queue with other algorithms only if flows have queues of
//! their own.
//!
//! **Source.** M. Mathis, "Relentless Congestion Control", PFLDNeT 2009.
//! **Deviations.** A segment that is lost again counts again. Marks and timeouts are answered as NewReno does (RFC 5681). Slow
//! start ends with a loss only.

use fleetfoot_core::cc::{
    Ack, AnyController, Config, Congestion, CongestionController, CongestionKind, Phase, Reaction, Sent,
};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::{Entry, Plugin};
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

/// What the program knows of it.
pub const PLUGIN: Plugin<AnyController, Config> = Plugin {
    entry: Entry::new(
        "relentless",
        Relentless::PARAMETERS,
        include_str!("relentless.rs"),
    ),
    build: &|values, config| AnyController::Custom(Box::new(Relentless::new(values, config))),
};

/// Relentless TCP.
#[derive(Clone, Debug)]
pub struct Relentless {
    mss: u64,
    /// Windows are whole segments.
    count_segments: bool,
    /// What one acknowledgment may add in slow start.
    limit: u64,
    /// Bytes given back for each byte retransmitted.
    weight: f64,
    window: u64,
    ssthresh: u64,
    /// Bytes acknowledged since the window last grew.
    acked: u64,
    /// The threshold with what is less than a unit, in a recovery from losses.
    shrinking: Option<f64>,
    /// Window and threshold before the last reduction.
    before: Option<(u64, u64)>,
}

impl Relentless {
    /// `weight`.
    pub const PARAMETERS: &'static [Parameter] = &[parameter!("weight": Number(0.1, 10.0) = 1.0,
        "Bytes that the window gives back for each byte retransmitted (Mathis 2009: 1)")];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Relentless {
        let mss = config.mss.get().max(1);
        Relentless {
            mss,
            count_segments: config.count_segments,
            limit: config.abc_limit.map_or(u64::MAX, |limit| u64::from(limit) * mss),
            weight: values.number("weight").unwrap_or(1.0),
            window: config.initial_window.get().max(mss),
            ssthresh: u64::MAX,
            acked: 0,
            shrinking: None,
            before: None,
        }
    }

    fn whole_units(&self, bytes: u64) -> u64 {
        if self.count_segments {
            bytes - bytes % self.mss
        } else {
            bytes
        }
    }

    /// Sets the threshold, at least two segments (RFC 5681 (4)).
    fn reduce_to(&mut self, ssthresh: u64) {
        self.before = Some((self.window, self.ssthresh));
        self.ssthresh = self.whole_units(ssthresh).max(2 * self.mss);
        self.acked = 0;
        self.shrinking = None;
    }
}

impl CongestionController for Relentless {
    /// The only input that says how much a recovery repairs: the window gives back as much.
    fn on_sent(&mut self, _now: Instant, sent: &Sent) {
        if let Some(exact) = self.shrinking.filter(|_| sent.retransmission) {
            let left = exact - self.weight * sent.bytes.get() as f64;
            self.shrinking = Some(left);
            self.ssthresh = self.whole_units(left.max(0.0) as u64).max(2 * self.mss);
            self.window = self.ssthresh;
        }
    }

    fn on_ack(&mut self, _now: Instant, ack: &Ack<'_>) -> Reaction {
        if ack.recovering || !ack.cwnd_limited {
            return Reaction::None;
        }
        let mut acked = ack.acked.get();
        if self.window < self.ssthresh {
            let step = acked.min(self.limit).min(self.ssthresh - self.window);
            self.window = self.window.saturating_add(self.whole_units(step));
            acked -= step;
        }
        self.acked = self.acked.saturating_add(acked);
        if self.acked >= self.window {
            let segments = self.acked / self.window; // RFC 3465 2.1
            self.acked -= segments * self.window;
            self.window = self.window.saturating_add(segments.saturating_mul(self.mss));
        }
        Reaction::None
    }

    fn on_congestion(&mut self, _now: Instant, event: &Congestion) {
        match event.kind {
            CongestionKind::Loss => {
                self.reduce_to(self.window);
                self.shrinking = Some(self.ssthresh as f64);
                self.window = self.ssthresh;
            }
            CongestionKind::Ecn | CongestionKind::Delay => {
                self.reduce_to(self.window / 2);
                self.window = self.ssthresh;
            }
            CongestionKind::Timeout { first } => {
                if first {
                    self.reduce_to(event.flight_size.get() / 2);
                }
                self.shrinking = None;
                self.window = self.mss; // RFC 5681 3.1: LW
                self.acked = 0;
            }
            CongestionKind::Undo => {
                self.shrinking = None;
                if let Some((window, ssthresh)) = self.before.take() {
                    self.window = self.window.max(window);
                    self.ssthresh = ssthresh;
                }
            }
            CongestionKind::RecoveryEnd => self.shrinking = None,
        }
    }

    fn set_window(&mut self, _now: Instant, window: Bytes, ssthresh: Bytes) {
        self.window = window.get().max(self.mss);
        self.ssthresh = ssthresh.get();
        self.acked = 0;
        self.shrinking = None;
        self.before = None;
    }

    fn window(&self) -> Bytes {
        Bytes(self.window)
    }

    fn ssthresh(&self) -> Bytes {
        Bytes(self.ssthresh)
    }

    fn phase(&self) -> Phase {
        if self.window < self.ssthresh {
            Phase::SlowStart
        } else {
            Phase::CongestionAvoidance
        }
    }
}
