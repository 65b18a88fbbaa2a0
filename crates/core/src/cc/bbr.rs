//! BBR version 1: send at the bottleneck's rate, with twice the product of rate and smallest RTT in flight at most.
//!
//! The largest delivery rate of ten round trips and the smallest RTT of ten seconds are the model of the path. Start-up doubles
//! the rate until it no longer grows, a drain empties the queue, then the rate swings by a quarter around the model every eight RTTs. Every ten
//! seconds four segments in flight measure the RTT anew; rates of what was sent then count as limited by the application.
//!
//! With `linux` it is what Linux 6.18 runs: the window is a whole even number of segments with room for three quanta, two more
//! in the phase that probes and as many as ACKs came too early in five to ten round trips; pacing stays 1 % below the rate; rates are
//! forgotten only for newer ones.
//!
//! **Source.** Cardwell et al., ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00; Linux 6.18 `tcp_bbr.c`
//! (`bbr_quantization_budget`, `bbr_update_ack_aggregation`, `bbr_bw_to_pacing_rate`).
//! **Deviations.** Without the policer detection of Linux (`lt_bw`). What is in flight counts as it is, where Linux asks what will be
//! when the next segment leaves (`bbr_packets_in_net_at_edt`). Delayed ACKs may measure the smallest RTT; every restart from idle time counts, whoever was the limit; the ten round trips are exact, where Linux keeps
//! three samples (`minmax`). The first window leaves unpaced: the rate is not
//! known before an RTT. A timeout restores the window when the data before it is acknowledged, as recovery does. ProbeRTT ends at the end of its 200 ms, the draft's after it.
//! **Parameters.** `startup_gain`, `window_gain`, `probe_rtt`: the draft's values; `linux`: on, since this is what hosts run.

use super::path::{AckEpoch, FullPipe, as_rate, of_model, rate_of};
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

/// What the connection repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Repair {
    None,
    /// Losses that acknowledgments have shown.
    Recovery,
    /// A retransmission timeout.
    Timeout,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Model {
    units: Units,
    startup_gain: f64,
    window_gain: f64,
    probe_rtt_every: Duration,
    linux: bool,
    initial: u64,
    state: State,
    window: u64,
    /// Window before the last recovery or ProbeRTT; 0: there is nothing to restore.
    prior_window: u64,
    /// What the connection repairs, and what it did at the last ACK that delivered (Linux: `prev_ca_state`).
    repair: Repair,
    repaired: Repair,
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
    /// What was delivered when ProbeRTT began last, and what is when all has arrived that was out at its end: a rate of what was sent in
    /// between is low.
    slowed: [u64; 2],
    /// Place in the cycle of gains, and when it began.
    cycle: usize,
    cycle_at: Instant,
    pacing: f64,
    /// Round of the last rate that was taken.
    rate_round: u64,
    /// Most that ACKs delivered too early, bytes: in the current five round trips, and in the five before.
    extra: [u64; 2],
    /// Round trips of the current five that are over.
    extra_rounds: u8,
    /// Since when ACKs have delivered more than the rate explains.
    epoch: AckEpoch,
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
        parameter!("linux": Flag = true,
            "Quanta, room for ACKs in bunches, pacing 1 % below the rate and rates that outlast pauses, as in Linux 6.18; off: the draft"),
    ];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Bbr {
        let initial = config.initial_window.max(config.mss).0;
        Bbr(Box::new(Model {
            units: Units::new(config),
            startup_gain: values.number("startup_gain").unwrap_or(2.885),
            window_gain: values.number("window_gain").unwrap_or(2.0),
            probe_rtt_every: values.duration("probe_rtt").unwrap_or(Duration::from_secs(10)),
            linux: values.flag("linux"),
            initial,
            state: State::Startup,
            window: initial,
            prior_window: 0,
            repair: Repair::None,
            repaired: Repair::None,
            conserving: false,
            after_pause: false,
            delivered: 0,
            next_round: 0,
            round: 0,
            rates: [0.0; ROUNDS],
            pipe: FullPipe::new(),
            full: false,
            min_rtt: config.handshake_rtt.unwrap_or(Duration::MAX),
            min_rtt_at: Instant::FAR_FUTURE,
            probe_done_at: None,
            probe_round: false,
            slowed: [u64::MAX, 0],
            cycle: 0,
            cycle_at: Instant::ZERO,
            pacing: 0.0,
            rate_round: 0,
            extra: [0; 2],
            extra_rounds: 0,
            epoch: AckEpoch::new(),
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
                model.repair = Repair::Recovery;
            }
            CongestionKind::Timeout { .. } => {
                model.save_window();
                (model.repair, model.repaired) = (Repair::Timeout, Repair::Timeout);
                model.pipe.begin(0.0);
                model.window = (model.units.mss() + event.in_flight).0;
            }
            CongestionKind::Undo => {
                model.pipe.begin(0.0); // `bbr_undo_cwnd`
                model.repair = Repair::None;
                model.restore_window();
            }
            CongestionKind::RecoveryEnd => model.repair = Repair::None,
            CongestionKind::Ecn | CongestionKind::Delay => {} // version 1 looks at neither
        }
    }

    fn on_restart(&mut self, now: Instant, _idle: Duration) {
        // 4.3.4.3: after a pause at the rate of the path.
        let model = &mut *self.0;
        model.epoch.begin(now);
        if model.state == State::ProbeBw && model.rate() > 0.0 {
            model.pacing = model.rate() * model.margin();
            model.cycle_at = now;
        } else if model.linux && model.state == State::ProbeRtt {
            model.end_probe_rtt(now); // `bbr_cwnd_event`: nothing was in flight, so a round trip was over, too
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

    /// Share of the rate at which data leaves.
    const fn margin(&self) -> f64 {
        if self.linux { 0.99 } else { 1.0 }
    }

    /// `gain` times rate x smallest RTT, and `extra`, with room for quanta, bytes; the initial window while nothing is known.
    fn in_flight(&self, gain: f64, extra: u64) -> u64 {
        if self.min_rtt == Duration::MAX || self.rate() <= 0.0 {
            return self.initial;
        }
        let mss = self.units.mss().0;
        let product = (gain * self.rate() * self.min_rtt.as_secs_f64()) as u64;
        if !self.linux {
            return product.saturating_add(3 * mss);
        }
        let segments = product
            .div_ceil(mss)
            .saturating_add(extra / mss)
            .saturating_add(3 * self.quantum());
        let probes = self.state == State::ProbeBw && self.cycle == 0;
        (segments.next_multiple_of(2) + if probes { 2 } else { 0 }).saturating_mul(mss)
    }

    /// Segments that leave at once at this rate: those of 1/1024 s (`sk_pacing_shift`), no more than a packet of segmentation offload
    /// holds with its headers (64 KiB less 1 and 320), one at least below 1.2 Mbit/s and else two, 127 at most (`bbr_tso_segs_goal`,
    /// `bbr_min_tso_segs`).
    fn quantum(&self) -> u64 {
        let bytes = ((self.pacing / 1024.0) as u64).min((64 << 10) - 1 - 320);
        let least = if self.pacing < 1_200_000.0 / 8.0 { 1 } else { 2 };
        (bytes / self.units.mss().0).max(least).min(0x7f)
    }

    /// Bytes that leave at once. The draft has a segment below 1.2 Mbit/s, two below 24 Mbit/s, and else a millisecond of the rate, 64 kB
    /// at most (4.2.2).
    fn send_quantum(&self) -> u64 {
        let mss = self.units.mss().0;
        if self.linux {
            self.quantum() * mss
        } else if self.pacing < 1_200_000.0 / 8.0 {
            mss
        } else if self.pacing < 24_000_000.0 / 8.0 {
            2 * mss
        } else {
            ((self.pacing * 1e-3) as u64).min(64_000)
        }
    }

    /// Forgets the rates of ten rounds ago and earlier, as a rate of this round is taken.
    fn forget_rates(&mut self) {
        let passed = self.round - self.rate_round;
        for round in 0..passed.min(ROUNDS as u64) {
            self.rates[(self.round - round) as usize % ROUNDS] = 0.0;
        }
        self.rate_round = self.round;
    }

    /// `bbr_update_ack_aggregation`: two windows of five round trips, the older of which is forgotten.
    fn note_extra(&mut self, now: Instant, new: u64, round_start: bool) {
        if round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= 5 {
                self.extra_rounds = 0;
                self.extra = [0, self.extra[0]];
            }
        }
        if new > 0 {
            let excess = self.epoch.excess(now, new, self.rate(), self.window);
            self.extra[0] = self.extra[0].max(excess);
        }
    }

    /// Room for what ACKs deliver too early, at most what the path carries in 100 ms.
    fn extra_acked(&self) -> u64 {
        if !self.linux || !self.full {
            return 0;
        }
        self.extra[0].max(self.extra[1]).min((self.rate() * 0.1) as u64)
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
                if !self.linux {
                    self.rates[self.round as usize % ROUNDS] = 0.0;
                }
                self.conserving = false;
            }
            let rate = rate_of(sample);
            let [begin, end] = self.slowed;
            let low = sample.app_limited || (begin..=end).contains(&sample.prior_delivered.0);
            if !low || rate >= self.rate() {
                if self.linux {
                    self.forget_rates();
                }
                let slot = &mut self.rates[self.round as usize % ROUNDS];
                *slot = slot.max(rate);
            }
            self.note_extra(now, new, round_start);
            if round_start && !low && !self.full {
                self.full = self.pipe.is_full(self.rate()); // 4.3.2.2
            }
        }
        if self.state == State::Startup && self.full {
            self.state = State::Drain;
        }
        if self.state == State::Drain && ack.in_flight.0 <= self.in_flight(1.0, 0) {
            self.enter_probe_bw(now);
        }
        if self.state == State::ProbeBw {
            self.step_cycle(now, ack);
        }
        self.min_rtt_at = self.min_rtt_at.min(now);
        let expired = self.min_rtt != Duration::MAX && now.since(self.min_rtt_at) > self.probe_rtt_every;
        if let Some(rtt) = ack.newest_rtt.or(ack.rtt)
            && (rtt < self.min_rtt || !self.linux && rtt == self.min_rtt || expired)
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
            let more = if self.linux {
                self.quantum() * self.units.mss().0
            } else {
                0
            };
            elapsed && (ack.lost > Bytes::ZERO || ack.prior_in_flight.0 + more >= self.in_flight(gain, 0))
        } else if gain < 1.0 {
            elapsed || ack.prior_in_flight.0 <= self.in_flight(1.0, 0)
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
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_done_at = None;
            self.slowed[0] = self.delivered;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        // `bbr_update_min_rtt` and the draft's BBRHandleProbeRTT say it by `app_limited`, which marks what is sent.
        self.slowed[1] = self.delivered + ack.in_flight.0;
        match self.probe_done_at {
            None => {
                if ack.in_flight.0 <= self.floor() {
                    self.probe_done_at = Some(now + PROBE_RTT);
                    self.probe_round = false;
                    self.next_round = self.delivered;
                }
            }
            Some(_) => {
                self.probe_round |= round_start;
                if self.probe_round {
                    self.end_probe_rtt(now);
                }
            }
        }
    }

    /// Ends ProbeRTT if its time is over (`bbr_check_probe_rtt_done`).
    fn end_probe_rtt(&mut self, now: Instant) {
        if self.probe_done_at.is_none_or(|done| now < done) {
            return;
        }
        self.min_rtt_at = now;
        self.restore_window();
        if self.full {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
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
        rate *= self.margin();
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
        let target = self.in_flight(gain, self.extra_acked());
        if new > 0 {
            self.window = self.window.saturating_sub(ack.lost.0).max(self.units.mss().0);
            let conserved = ack.in_flight.0.saturating_add(new);
            let before = core::mem::replace(&mut self.repaired, self.repair);
            if self.repair == Repair::Recovery && before != Repair::Recovery {
                self.conserving = true;
                self.next_round = self.delivered;
                self.window = conserved;
            } else if self.repair == Repair::None && before != Repair::None {
                self.conserving = false;
                self.restore_window();
            }
            if self.conserving {
                self.window = self.window.max(conserved);
            } else {
                self.grow(new, target);
            }
        }
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.floor());
        }
    }

    /// `new` bytes more, up to `target`.
    fn grow(&mut self, new: u64, target: u64) {
        if self.full {
            self.window = self.window.saturating_add(new).min(target);
        } else if self.window < target || self.delivered < self.initial {
            self.window = self.window.saturating_add(new);
        }
        self.window = self.window.max(self.floor());
    }

    fn save_window(&mut self) {
        self.prior_window = if self.repaired == Repair::None && self.state != State::ProbeRtt {
            self.window
        } else {
            self.prior_window.max(self.window)
        };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }
}

const ROUNDS: usize = 10;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const PROBE_RTT: Duration = Duration::from_millis(200);
