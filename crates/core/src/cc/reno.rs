//! NewReno's window: slow start, congestion avoidance, halving on loss.
//!
//! **Source.** RFC 5681 3.1, with RFC 3465's byte counting; the window of RFC 6582 and RFC 6675 is the same.
//! **Deviations.** None known; `reduce_from_window` (Linux) halves the window instead of FlightSize.

use super::{Ack, Config, Congestion, CongestionController, CongestionKind, Phase, Reaction};
use crate::parameter::{Parameter, Values};
use crate::time::Instant;
use crate::units::Bytes;

/// NewReno.
#[derive(Clone, Debug)]
pub struct Reno {
    config: Config,
    window: Bytes,
    ssthresh: Bytes,
    /// Bytes acknowledged in congestion avoidance since the window last grew.
    acked: Bytes,
    /// Window and threshold before the last reduction, for undo.
    prior: Option<(Bytes, Bytes)>,
}

impl Reno {
    /// None: RFC 5681 leaves nothing open that `Config` does not say.
    pub const PARAMETERS: &'static [Parameter] = &[];

    /// A controller with `config.initial_window`.
    pub fn new(_values: &Values, config: &Config) -> Reno {
        Reno {
            config: *config,
            window: config.initial_window,
            ssthresh: Bytes::MAX,
            acked: Bytes::ZERO,
            prior: None,
        }
    }

    fn reduce(&mut self, event: &Congestion) {
        self.prior = Some((self.window, self.ssthresh));
        let base = if self.config.reduce_from_window {
            self.window
        } else {
            event.flight_size
        };
        self.ssthresh = (base / 2).max(self.config.mss * 2); // RFC 5681 (4)
        self.acked = Bytes::ZERO;
    }
}

impl CongestionController for Reno {
    fn on_ack(&mut self, _now: Instant, ack: &Ack<'_>) -> Reaction {
        if ack.recovering || !ack.cwnd_limited || ack.acked == Bytes::ZERO {
            return Reaction::None;
        }
        let mss = self.config.mss;
        if self.window < self.ssthresh {
            let limit = self
                .config
                .abc_limit
                .map_or(Bytes::MAX, |segments| mss * u64::from(segments));
            self.window = self.window.saturating_add(ack.acked.min(limit)); // RFC 5681 (2), RFC 3465 2.2
        } else {
            self.acked += ack.acked;
            if self.acked >= self.window {
                self.acked -= self.window;
                self.window += mss; // RFC 3465 2.1
            }
        }
        Reaction::None
    }

    fn on_congestion(&mut self, _now: Instant, event: &Congestion) {
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn | CongestionKind::Delay => {
                self.reduce(event);
                self.window = self.ssthresh;
            }
            CongestionKind::Timeout { first } => {
                if first {
                    self.reduce(event);
                }
                self.window = self.config.mss; // RFC 5681 3.1: LW
            }
            CongestionKind::Undo => {
                if let Some((window, ssthresh)) = self.prior.take() {
                    self.window = self.window.max(window);
                    self.ssthresh = ssthresh;
                }
            }
            CongestionKind::RecoveryEnd => {}
        }
    }

    fn set_window(&mut self, _now: Instant, window: Bytes, ssthresh: Bytes) {
        self.window = window.max(self.config.mss);
        self.ssthresh = ssthresh;
        self.acked = Bytes::ZERO;
    }

    fn window(&self) -> Bytes {
        self.window
    }

    fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    fn phase(&self) -> Phase {
        if self.window < self.ssthresh {
            Phase::SlowStart
        } else {
            Phase::CongestionAvoidance
        }
    }
}
