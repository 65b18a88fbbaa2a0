//! Vegas: hold the window where a few segments wait in the path's queue.
//!
//! Once per round trip the smallest RTT of the round is held against the smallest ever: what the window exceeds the
//! product of rate and smallest RTT by waits in a queue. Below `alpha` segments the window grows by one, above `beta` it shrinks
//! by one; slow start ends above `gamma`.
//!
//! **Source.** Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", JSAC 13(8), 1995; parameters
//! and the order of steps as in Linux (`tcp_vegas`).
//! **Deviations.** Vegas' own retransmission rules are left out, as in Linux: recovery is the endpoint's. It judges while the window is in
//! use and does nothing else otherwise (Linux judges then too), and while segments arrive out of order, too, where Linux is NewReno. While a timeout
//! is repaired it is NewReno, and a send that finds nothing outstanding forgets the smallest RTT, both as in Linux. Without three RTT samples in a round it is NewReno.
//! **Parameters.** `alpha` 2, `beta` 4, `gamma` 1 segments (Linux; the paper has 1 to 3 for the first two).

use super::delays::Round;
use super::reno::of_reno;
use super::{Ack, Config, Congestion, CongestionController, CongestionKind, HyStart, Reaction, Reno, Units};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Vegas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Vegas {
    reno: Reno,
    units: Units,
    alpha: u32,
    beta: u32,
    gamma: u32,
    /// Samples of this round.
    samples: u32,
    base: Duration,
    least: Duration,
    round: Round,
    restart: bool,
    /// A timeout is being repaired: it is NewReno until that is over.
    repairs: bool,
}

impl Vegas {
    /// Linux's module parameters.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("alpha": Integer(1, 1000) = 2,
            "Segments in the queue below which the window grows (Linux tcp_vegas: 2)"),
        parameter!("beta": Integer(1, 1000) = 4,
            "Segments in the queue above which the window shrinks (Linux tcp_vegas: 4)"),
        parameter!("gamma": Integer(0, 1000) = 1,
            "Segments in the queue above which slow start ends (Linux tcp_vegas: 1)"),
    ];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Vegas {
        let number = |name| values.integer(name).unwrap_or(1) as u32;
        Vegas {
            reno: Reno::new(
                values,
                &Config {
                    hystart: HyStart::Off,
                    ..*config
                },
            ),
            units: Units::new(config),
            alpha: number("alpha"),
            beta: number("beta"),
            gamma: number("gamma"),
            samples: 0,
            base: Duration::MAX,
            least: Duration::MAX,
            round: Round::default(),
            restart: false,
            repairs: false,
        }
    }

    /// The path may be another one by now (Linux: `tcp_vegas_init`). Nothing is out, so the next acknowledgment ends a round.
    fn forget(&mut self) {
        self.base = Duration::MAX;
        self.least = Duration::MAX;
        self.samples = 0;
        self.round = Round::default();
        self.restart = false;
    }

    fn begin_round(&mut self, ack: &Ack<'_>) {
        self.round.begin(ack);
        self.samples = 0;
        self.least = Duration::MAX;
    }

    /// A round with enough samples is over.
    fn judge(&mut self, now: Instant, ack: &Ack<'_>) {
        let mss = self.units.mss().0.max(1);
        let window = self.reno.window().0;
        let (base, least) = (self.base.as_micros().max(1), self.least.as_micros().max(1));
        let scaled = |numerator: u64, denominator: u64| {
            (u128::from(window) * u128::from(numerator) / u128::from(denominator)).min(u128::from(u64::MAX))
                as u64
        };
        // What would be out without a queue, and what is out beyond it.
        let target = scaled(base, least);
        let waiting = scaled(least.saturating_sub(base), base) / mss;
        let ssthresh = self.reno.ssthresh();
        let slow_start = self.reno.window() < ssthresh;
        let floor = 2 * mss;
        if slow_start && waiting <= u64::from(self.gamma) {
            self.reno.on_ack(now, ack);
            return;
        }
        let (next, lower) = if slow_start {
            (
                window.min(self.units.whole_units(Bytes(target)).0.saturating_add(mss)),
                true,
            )
        } else if waiting > u64::from(self.beta) {
            (window.saturating_sub(mss), true)
        } else if waiting < u64::from(self.alpha) {
            (window.saturating_add(mss), false)
        } else {
            (window, false)
        };
        let next = next.max(floor.min(window));
        let mut threshold = ssthresh.0;
        if lower {
            threshold = threshold.min(next.saturating_sub(mss)).max(floor);
        }
        // Linux's tcp_current_ssthresh: three quarters of the window at least.
        let three_quarters =
            self.units.whole_units(Bytes(next / 2)).0 + self.units.whole_units(Bytes(next / 4)).0;
        self.reno.put(Bytes(next), Bytes(threshold.max(three_quarters)));
    }
}

impl CongestionController for Vegas {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        if let Some(rtt) = ack.newest_rtt.or(ack.rtt) {
            self.base = self.base.min(rtt);
            self.least = self.least.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if ack.recovering {
            return Reaction::None;
        }
        if self.repairs {
            return self.reno.on_ack(now, ack);
        }
        if core::mem::take(&mut self.restart) {
            self.begin_round(ack);
        }
        if !ack.cwnd_limited || ack.acked == Bytes::ZERO {
            return Reaction::None;
        }
        if self.round.is_over(ack) {
            if self.samples <= FEW {
                self.reno.on_ack(now, ack);
            } else {
                self.judge(now, ack);
            }
            self.begin_round(ack);
        } else if self.reno.window() < self.reno.ssthresh() {
            self.reno.on_ack(now, ack);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        self.reno.on_congestion(now, event);
        // `tcp_vegas_state`
        match event.kind {
            CongestionKind::Timeout { .. } => self.repairs = true,
            CongestionKind::RecoveryEnd => (self.repairs, self.restart) = (false, true),
            CongestionKind::Loss | CongestionKind::Ecn | CongestionKind::Delay | CongestionKind::Undo => {}
        }
    }

    fn hears_of_repairs(&self) -> bool {
        true
    }

    fn on_idle(&mut self, _now: Instant, _idle: Duration) {
        self.forget(); // CA_EVENT_CWND_RESTART
    }

    fn on_restart(&mut self, _now: Instant, _idle: Duration) {
        self.forget(); // CA_EVENT_TX_START
    }

    of_reno!(set_window window ssthresh uses_sent phase);

    fn check(values: &Values) -> Result<(), String> {
        match (values.integer("alpha"), values.integer("beta")) {
            (Some(alpha), Some(beta)) if alpha > beta => {
                Err(alloc::format!("`alpha` ({alpha}) is above `beta` ({beta})"))
            }
            _ => Ok(()),
        }
    }
}

/// Rounds with at most this number of samples grow as NewReno's.
const FEW: u32 = 2;
