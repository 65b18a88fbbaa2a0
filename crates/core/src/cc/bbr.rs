//! BBR version 1: send at the bottleneck's rate, with twice the product of rate and smallest RTT in flight at most.
//!
//! The largest delivery rate of ten round trips and the smallest RTT of ten seconds are the model of the path. Start-up doubles
//! the rate until it no longer grows, a drain empties the queue, then the rate swings by a quarter around the model every eight RTTs. Every ten
//! seconds four segments in flight measure the RTT anew.
//!
//! **Source.** Cardwell et al., ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00.
//! **Deviations.** Without policer detection and ACK aggregation (both came later). The first window leaves unpaced: the rate is not
//! known before an RTT. A timeout restores the window when the data before it is acknowledged, as recovery does. `ssthresh` is the
//! window in recovery, so that PRR keeps to it; the window is not cut to what is in flight when a recovery begins (4.2.3.4), PRR's
//! conservation does that. ProbeRTT ends at the end of its 200 ms, the draft's after it. The endpoint lets segments leave one by one; the draft hands them down in quanta.
//! **Parameters.** `startup_gain`, `window_gain`, `probe_rtt`: the draft's values.

use super::path::{FullPipe, as_rate, of_model, rate_of};
use super::{Ack, Config, Congestion, CongestionController, CongestionKind, Phase, Reaction, Units};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use alloc::boxed::Box;
use serde::{Deserialize, Serialize};

/// BBR version 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bbr(Box<Model>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Model {
    units: Units,
    startup_gain: f64,
    window_gain: f64,
    probe_rtt_every: Duration,
    initial: u64,
    state: State,
    window: u64,
    /// Window before the last recovery or ProbeRTT; 0: there is nothing to restore.
    prior_window: u64,
    recovering: bool,
    /// The first round of a recovery sends what is delivered.
    conserving: bool,
    /// Data left after a pause and was not acknowledged yet.
    after_pause: bool,
    delivered: u64,
    next_round: u64,
    round: u64,
    /// Largest rate of each of the last ten rounds, bytes per second.
    rates: [f64; ROUNDS],
    pipe: FullPipe,
    full: bool,
    min_rtt: Duration,
    min_rtt_at: Instant,
    probe_done_at: Option<Instant>,
    probe_round: bool,
    /// Place in the cycle of gains, and when it began.
    cycle: usize,
    cycle_at: Instant,
    pacing: f64,
    random: Rng,
}

impl Bbr {
    /// Gains, and how often to measure the RTT.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("startup_gain": Number(1.0, 10.0) = 2.885,
            "Pacing and window gain of start-up, 2/ln 2 (draft-cardwell-iccrg-bbr-congestion-control-00 4.3.2.1)"),
        parameter!("window_gain": Number(1.0, 10.0) = 2.0,
            "Window over rate x smallest RTT (draft-cardwell-iccrg-bbr-congestion-control-00 4.2.3.2)"),
        parameter!("probe_rtt": Duration(Duration::from_millis(100), Duration::from_secs(3600)) = Duration::from_secs(10),
            "How long a smallest RTT counts (draft-cardwell-iccrg-bbr-congestion-control-00 4.1.2.3: 10 s)"),
    ];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Bbr {
        let initial = config.initial_window.max(config.mss).0;
        Bbr(Box::new(Model {
            units: Units::new(config),
            startup_gain: values.number("startup_gain").unwrap_or(2.885),
            window_gain: values.number("window_gain").unwrap_or(2.0),
            probe_rtt_every: values.duration("probe_rtt").unwrap_or(Duration::from_secs(10)),
            initial,
            state: State::Startup,
            window: initial,
            prior_window: 0,
            recovering: false,
            conserving: false,
            after_pause: false,
            delivered: 0,
            next_round: 0,
            round: 0,
            rates: [0.0; ROUNDS],
            pipe: FullPipe::new(),
            full: false,
            min_rtt: Duration::MAX,
            min_rtt_at: Instant::ZERO,
            probe_done_at: None,
            probe_round: false,
            cycle: 0,
            cycle_at: Instant::ZERO,
            pacing: 0.0,
            random: Rng::for_element(config.seed, "bbr", "cycle"),
        }))
    }
}

impl CongestionController for Bbr {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        self.0.on_ack(now, ack);
        Reaction::None
    }

    fn on_congestion(&mut self, _now: Instant, event: &Congestion) {
        let model = &mut *self.0;
        match event.kind {
            CongestionKind::Loss => {
                model.save_window();
                (model.recovering, model.conserving) = (true, true);
                model.next_round = model.delivered;
            }
            CongestionKind::Timeout { .. } => {
                model.save_window();
                model.recovering = true;
                model.window = model.units.mss().0;
            }
            CongestionKind::Undo | CongestionKind::RecoveryEnd => model.restore_window(),
            CongestionKind::Ecn | CongestionKind::Delay => {} // version 1 looks at neither
        }
    }

    fn on_restart(&mut self, now: Instant, _idle: Duration) {
        // 4.3.4.3: after a pause at the rate of the path.
        let model = &mut *self.0;
        if model.state == State::ProbeBw && model.rate() > 0.0 {
            model.pacing = model.rate();
            model.cycle_at = now;
        }
        model.after_pause = true; // silence has drained what there was: no need to probe
    }

    of_model!();

    fn phase(&self) -> Phase {
        match self.0.state {
            State::Startup => Phase::SlowStart,
            State::Drain | State::ProbeBw | State::ProbeRtt => Phase::CongestionAvoidance,
        }
    }
}

impl Model {
    fn rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    /// `gain` times rate x smallest RTT, bytes; the initial window while nothing is known.
    fn in_flight(&self, gain: f64) -> u64 {
        if self.min_rtt == Duration::MAX || self.rate() <= 0.0 {
            return self.initial;
        }
        let quanta = 3 * self.units.mss().0;
        ((gain * self.rate() * self.min_rtt.as_secs_f64()) as u64).saturating_add(quanta)
    }

    fn floor(&self) -> u64 {
        4 * self.units.mss().0
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) {
        let new = ack.delivered_total.0.saturating_sub(self.delivered);
        self.delivered = ack.delivered_total.0;
        let mut round_start = false;
        if let Some(sample) = ack.rate {
            if sample.prior_delivered.0 >= self.next_round {
                self.next_round = self.delivered;
                self.round += 1;
                round_start = true;
                self.rates[self.round as usize % ROUNDS] = 0.0;
                self.conserving = false;
            }
            let rate = rate_of(sample);
            if !sample.app_limited || rate >= self.rate() {
                let slot = &mut self.rates[self.round as usize % ROUNDS];
                *slot = slot.max(rate);
            }
            if round_start && !sample.app_limited && !self.full {
                self.full = self.pipe.is_full(self.rate()); // 4.3.2.2
            }
        }
        if self.state == State::Startup && self.full {
            self.state = State::Drain;
        }
        if self.state == State::Drain && ack.in_flight.0 <= self.in_flight(1.0) {
            self.enter_probe_bw(now);
        }
        if self.state == State::ProbeBw {
            self.step_cycle(now, ack);
        }
        let expired = self.min_rtt != Duration::MAX && now.since(self.min_rtt_at) > self.probe_rtt_every;
        if let Some(rtt) = ack.newest_rtt.or(ack.rtt)
            && (rtt <= self.min_rtt || expired)
        {
            self.min_rtt = rtt.max(Duration::from_nanos(1));
            self.min_rtt_at = now;
        }
        self.probe_rtt(now, ack, expired, round_start);
        self.after_pause &= new == 0;
        self.set_pacing(ack);
        self.set_window(ack, new);
    }

    fn enter_probe_bw(&mut self, now: Instant) {
        self.state = State::ProbeBw;
        // Any place but the one that drains what was not filled.
        self.cycle =
            (CYCLE.len() - 1 - self.random.scaled(CYCLE.len() as u32 - 1) as usize + 1) % CYCLE.len();
        self.cycle_at = now;
    }

    /// 4.3.3.2.
    fn step_cycle(&mut self, now: Instant, ack: &Ack<'_>) {
        let elapsed = now.since(self.cycle_at) > self.min_rtt;
        let gain = CYCLE[self.cycle];
        let over = if gain > 1.0 {
            elapsed && (ack.lost > Bytes::ZERO || ack.prior_in_flight.0 >= self.in_flight(gain))
        } else if gain < 1.0 {
            elapsed || ack.prior_in_flight.0 <= self.in_flight(1.0)
        } else {
            elapsed
        };
        if over {
            self.cycle = (self.cycle + 1) % CYCLE.len();
            self.cycle_at = now;
        }
    }

    /// 4.3.5.
    fn probe_rtt(&mut self, now: Instant, ack: &Ack<'_>, expired: bool, round_start: bool) {
        if self.state != State::ProbeRtt && expired && !self.after_pause {
            self.state = State::ProbeRtt;
            self.save_window();
            self.probe_done_at = None;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        match self.probe_done_at {
            None => {
                if ack.in_flight.0 <= self.floor() {
                    self.probe_done_at = Some(now + PROBE_RTT);
                    self.probe_round = false;
                    self.next_round = self.delivered;
                }
            }
            Some(done) => {
                self.probe_round |= round_start;
                if self.probe_round && now >= done {
                    self.min_rtt_at = now;
                    self.restore_window();
                    if self.full {
                        self.enter_probe_bw(now);
                    } else {
                        self.state = State::Startup;
                    }
                }
            }
        }
    }

    fn set_pacing(&mut self, ack: &Ack<'_>) {
        let gain = match self.state {
            State::Startup => self.startup_gain,
            State::Drain => 1.0 / self.startup_gain,
            State::ProbeBw => CYCLE[self.cycle],
            State::ProbeRtt => 1.0,
        };
        let mut rate = gain * self.rate();
        if self.pacing <= 0.0
            && let Some(srtt) = ack.srtt
        {
            rate = rate.max(self.startup_gain * self.initial as f64 / srtt.as_secs_f64().max(1e-3));
        }
        if self.full || rate > self.pacing {
            self.pacing = rate;
        }
    }

    /// 4.2.3.
    fn set_window(&mut self, ack: &Ack<'_>, new: u64) {
        let gain = match self.state {
            State::Startup | State::Drain => self.startup_gain,
            State::ProbeBw => self.window_gain,
            State::ProbeRtt => 1.0,
        };
        let target = self.in_flight(gain);
        if self.recovering {
            self.window = self.window.saturating_sub(ack.lost.0).max(self.units.mss().0);
            if self.conserving {
                self.window = self.window.max(ack.in_flight.0.saturating_add(new));
            }
        }
        if !self.conserving {
            if self.full {
                self.window = self.window.saturating_add(new).min(target);
            } else if self.window < target || self.delivered < self.initial {
                self.window = self.window.saturating_add(new);
            }
            self.window = self.window.max(self.floor());
        }
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.floor());
        }
    }

    fn save_window(&mut self) {
        self.prior_window = if !self.recovering && self.state != State::ProbeRtt {
            self.window
        } else {
            self.prior_window.max(self.window)
        };
    }

    fn restore_window(&mut self) {
        (self.recovering, self.conserving) = (false, false);
        self.window = self.window.max(self.prior_window);
        self.prior_window = 0;
    }
}

const ROUNDS: usize = 10;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const PROBE_RTT: Duration = Duration::from_millis(200);
