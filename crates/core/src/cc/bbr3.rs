//! BBR version 3: version 1 with bounds on what is in flight, learnt from losses, and seldom probes beyond them.
//!
//! Beside rate and smallest RTT the model has a long-term bound on data in flight, lowered where a round that probes loses more than
//! two per cent, and short-term bounds of rate and flight that losses lower between probes. It cruises below the bound, refills for a
//! round, and then probes up.
//!
//! **Source.** draft-ietf-ccwg-bbr-04, names and steps of its sections 5.2 to 5.6.
//! **Deviations.** Losses are looked at once per ACK, with what was in flight when the segment left that it delivered, not for each lost segment
//! (5.5.10.2's `BBRInflightAtLoss`); discontiguous ranges are counted as lost segments. The first window leaves unpaced: the rate is not known
//! before an RTT. `Drain` paces at 0.35 (5.3.2; the table of 5.6.1 has 0.5). ECN is not looked at, as in the draft. Samples during ProbeRTT are left out, where the draft marks the connection application-limited.
//! The filter of the largest rate moves once per cycle (the text of 5.5.6 and Linux), where the pseudocode of 5.3.3.6 moves it in
//! every round until the next refill. Before there is a sample of rate or RTT the product of both is the initial window.
//! **Parameters.** `startup_gain`, `loss_threshold`, `beta`, `headroom`: the draft's values.

use super::path::{AckEpoch, FullPipe, as_rate, of_model, rate_of};
use super::{Ack, Config, Congestion, CongestionController, CongestionKind, Phase, Reaction, Units};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use alloc::boxed::Box;
use serde::{Deserialize, Serialize};

mod cycle;
mod estimate;

/// BBR version 3.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bbr3(Box<Model>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum AckPhase {
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Model {
    units: Units,
    startup_gain: f64,
    loss_threshold: f64,
    beta: f64,
    headroom: f64,
    initial: u64,
    state: State,
    ack_phase: AckPhase,
    window: u64,
    prior_window: u64,
    recovering: bool,
    /// A round trip of this recovery is over.
    recovered_round: bool,
    delivered: u64,
    next_round: u64,
    round: u64,
    rounds_since_probe: u32,
    round_start: bool,
    /// Largest rate of this cycle of probes and of the one before, bytes per second.
    max_rates: [f64; 2],
    cycle: usize,
    /// `BBR.max_bw`: the larger of them when a sample last went in.
    max_rate: f64,
    /// `BBR.bw`: the smaller of that and `rate_short`, at the end of an ACK.
    rate: f64,
    rate_short: f64,
    inflight_short: u64,
    inflight_long: u64,
    rate_latest: f64,
    inflight_latest: u64,
    loss_in_round: bool,
    loss_round_end: u64,
    loss_round_start: bool,
    /// Lost in this round trip.
    lost_in_round: u64,
    /// Losses, and how much had been delivered by then: the last few.
    losses: [(u64, u64); LOSSES],
    /// The last probe may yet be answered.
    probing_samples: bool,
    pipe: FullPipe,
    full_now: bool,
    full: bool,
    min_rtt: Duration,
    min_rtt_at: Instant,
    probe_rtt_min: Duration,
    probe_rtt_min_at: Instant,
    probe_rtt_expired: bool,
    probe_done_at: Option<Instant>,
    probe_round: bool,
    idle_restart: bool,
    cycle_at: Instant,
    wait: Duration,
    up_rounds: u32,
    up_acked: f64,
    /// Bytes delivered for each byte by which the long-term bound grows.
    up_count: f64,
    /// Excess of ACKs over the rate: largest of this and of the last ten rounds.
    extra: [u64; EXTRA_ROUNDS],
    epoch: AckEpoch,
    pacing: f64,
    random: Rng,
}

impl Bbr3 {
    /// Constants of the draft's section 2.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("startup_gain": Number(1.0, 10.0) = 2.77,
            "Pacing gain of start-up, 4 ln 2 (draft-ietf-ccwg-bbr-04 5.3.1.1)"),
        parameter!("loss_threshold": Number(0.0, 1.0) = 0.02,
            "Share of a round trip's data whose loss says that too much was in flight (draft-ietf-ccwg-bbr-04: 2 %)"),
        parameter!("beta": Number(0.1, 1.0) = 0.7,
            "Least share of rate and flight kept in a round trip with losses (draft-ietf-ccwg-bbr-04: 0.7)"),
        parameter!("headroom": Number(0.0, 0.9) = 0.15,
            "Share of the long-term bound left to others while cruising (draft-ietf-ccwg-bbr-04: 0.15)"),
    ];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Bbr3 {
        let initial = config.initial_window.max(config.mss).0;
        let number = |name, default| values.number(name).unwrap_or(default);
        Bbr3(Box::new(Model {
            units: Units::new(config),
            startup_gain: number("startup_gain", 2.77),
            loss_threshold: number("loss_threshold", 0.02),
            beta: number("beta", 0.7),
            headroom: number("headroom", 0.15),
            initial,
            state: State::Startup,
            ack_phase: AckPhase::Stopping,
            window: initial,
            prior_window: 0,
            recovering: false,
            recovered_round: false,
            delivered: 0,
            next_round: 0,
            round: 0,
            rounds_since_probe: 0,
            round_start: false,
            max_rates: [0.0; 2],
            cycle: 0,
            max_rate: 0.0,
            rate: 0.0,
            rate_short: f64::INFINITY,
            inflight_short: u64::MAX,
            inflight_long: u64::MAX,
            rate_latest: 0.0,
            inflight_latest: 0,
            loss_in_round: false,
            loss_round_end: 0,
            loss_round_start: false,
            lost_in_round: 0,
            losses: [(0, 0); LOSSES],
            probing_samples: false,
            pipe: FullPipe::new(),
            full_now: false,
            full: false,
            min_rtt: Duration::MAX,
            min_rtt_at: Instant::ZERO,
            probe_rtt_min: Duration::MAX,
            probe_rtt_min_at: Instant::ZERO,
            probe_rtt_expired: false,
            probe_done_at: None,
            probe_round: false,
            idle_restart: false,
            cycle_at: Instant::ZERO,
            wait: Duration::from_secs(2),
            up_rounds: 0,
            up_acked: 0.0,
            up_count: f64::INFINITY,
            extra: [0; EXTRA_ROUNDS],
            epoch: AckEpoch::new(),
            pacing: 0.0,
            random: Rng::for_element(config.seed, "bbr", "cycle"),
        }))
    }

    /// The long-term bound on data in flight; [`Bytes::MAX`]: none yet.
    pub fn inflight_bound(&self) -> Bytes {
        Bytes(self.0.inflight_long)
    }
}

impl CongestionController for Bbr3 {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        self.0.on_ack(now, ack);
        Reaction::None
    }

    fn on_congestion(&mut self, _now: Instant, event: &Congestion) {
        let model = &mut *self.0;
        match event.kind {
            CongestionKind::Loss => {
                model.save_window();
                (model.recovering, model.recovered_round) = (true, false);
                model.note_loss();
            }
            CongestionKind::Timeout { .. } => {
                model.save_window();
                (model.recovering, model.recovered_round) = (true, false);
                model.note_loss();
                // 5.6.4.4: what allows one segment
                model.window = (model.units.mss() + event.in_flight).0;
            }
            CongestionKind::Undo | CongestionKind::RecoveryEnd => {
                model.recovering = false;
                model.restore_window();
            }
            CongestionKind::Ecn | CongestionKind::Delay => {}
        }
    }

    fn on_restart(&mut self, now: Instant, _idle: Duration) {
        // 5.4.1
        let model = &mut *self.0;
        if model.delivered == 0 {
            return;
        }
        model.idle_restart = true;
        model.epoch.from = now;
        if model.probes_bandwidth() {
            model.set_pacing(1.0);
        } else if model.state == State::ProbeRtt {
            model.check_probe_rtt_done(now);
        }
    }

    of_model!();

    fn phase(&self) -> Phase {
        match self.0.state {
            State::Startup => Phase::SlowStart,
            State::Drain | State::Down | State::Cruise | State::Refill | State::Up | State::ProbeRtt => {
                Phase::CongestionAvoidance
            }
        }
    }
}

impl Model {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) {
        let new = ack.delivered_total.0.saturating_sub(self.delivered);
        self.delivered = ack.delivered_total.0;
        if self.cycle_at == Instant::ZERO {
            self.cycle_at = now;
            self.epoch.begin(now);
        }
        if ack.lost > Bytes::ZERO {
            self.take_loss(ack.lost.0);
        }
        self.round_start = false;
        if let Some(sample) = ack.rate {
            self.take_sample(sample);
            self.update_aggregation(now, new);
            self.check_full_pipe(sample);
            self.check_startup_loss(sample);
        }
        if self.state == State::Startup && self.full {
            self.state = State::Drain;
        }
        if self.state == State::Drain && ack.in_flight.0 <= self.in_flight(1.0) {
            self.start_down(now);
        }
        if self.full
            && let Some(sample) = ack.rate
        {
            self.adapt_long_term(now, sample, ack, new);
            self.step_cycle(now, sample, ack);
        }
        self.update_min_rtt(now, ack);
        self.check_probe_rtt(now, ack, new);
        if self.loss_round_start
            && let Some(sample) = ack.rate
        {
            self.rate_latest = rate_of(sample);
            self.inflight_latest = sample.delivered.0;
        }
        self.rate = self.max_rate.min(self.rate_short);
        // 5.6
        if self.pacing <= 0.0
            && let Some(srtt) = ack.srtt
        {
            self.pacing = self.startup_gain * self.initial as f64 / srtt.as_secs_f64().max(1e-3);
        }
        self.set_pacing(self.gains().0);
        self.set_window(new);
    }

    fn probes_bandwidth(&self) -> bool {
        matches!(
            self.state,
            State::Down | State::Cruise | State::Refill | State::Up
        )
    }

    /// Pacing and window gain (5.6.1).
    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (self.startup_gain, 2.0),
            State::Drain => (0.35, 2.0),
            State::Down => (0.9, 2.0),
            State::Cruise | State::Refill => (1.0, 2.0),
            State::Up => (1.25, 2.25),
            State::ProbeRtt => (1.0, 0.5),
        }
    }

    fn floor(&self) -> u64 {
        4 * self.units.mss().0
    }

    /// 5.6.4.2 without quanta.
    fn product(&self, gain: f64) -> u64 {
        self.product_at(self.rate, gain)
    }

    fn product_at(&self, rate: f64, gain: f64) -> u64 {
        if self.min_rtt == Duration::MAX || rate <= 0.0 {
            return self.initial;
        }
        (gain * rate * self.min_rtt.as_secs_f64()) as u64
    }

    /// 5.6.3: a millisecond of the rate, 64 KiB at most, two segments at least.
    fn send_quantum(&self) -> u64 {
        let mss = self.units.mss().0;
        ((self.pacing * 1e-3) as u64).clamp(2 * mss, (64 << 10).max(2 * mss))
    }

    fn quantized(&self, amount: u64) -> u64 {
        let mss = self.units.mss().0;
        let mut amount = amount.max(3 * self.send_quantum()).max(self.floor());
        if self.state == State::Up {
            amount = amount.saturating_add(2 * mss);
        }
        amount
    }

    fn in_flight(&self, gain: f64) -> u64 {
        self.quantized(self.product(gain))
    }

    /// 5.6.2: one per cent below.
    fn set_pacing(&mut self, gain: f64) {
        let rate = gain * self.rate * 0.99;
        if rate > 0.0 && (self.full || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// 5.6.4.6 and 5.6.4.7.
    fn set_window(&mut self, new: u64) {
        let most = self.quantized(self.product(self.gains().1).saturating_add(self.extra_acked()));
        if self.full {
            self.window = self.window.saturating_add(new).min(most);
        } else if self.window < most || self.delivered < self.initial {
            self.window = self.window.saturating_add(new);
        }
        self.window = self.window.max(self.floor());
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let bound = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_long,
            State::Cruise | State::ProbeRtt => self.with_headroom(),
            State::Startup | State::Drain => u64::MAX,
        };
        self.window = self.window.min(bound.min(self.inflight_short).max(self.floor()));
    }

    fn save_window(&mut self) {
        self.prior_window = if !self.recovering && self.state != State::ProbeRtt {
            self.window
        } else {
            self.prior_window.max(self.window)
        };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }
}

const LOSSES: usize = 16;
const EXTRA_ROUNDS: usize = 10;
