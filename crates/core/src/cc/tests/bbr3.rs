//! BBR version 3 beside a naive transcription of draft-ietf-ccwg-bbr-04: whole histories instead of rings, one function per
//! function of the draft, with its names.
//!
//! Where the code departs (head of `bbr3.rs`) the transcription does: the first window is unpaced, losses are looked at once per ACK with what
//! was in flight when the delivered segment left, samples of ProbeRTT are left out, the filter of the largest rate moves once per
//! cycle, Drain paces at 0.35. What 5.3.1.3 says of start-up and losses in words is applied at the end of the round of losses.

use super::super::{Ack, Bbr3, Config, HyStart, RateSample};
use super::bbr::{Met, Path, Transcription, Walk};
use super::{MSS, config};
use crate::parameter::Values;
use crate::rng::Rng;
use crate::time::Duration;
use crate::units::Bytes;
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum AckPhase {
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
    /// The filter has moved in this cycle.
    Stopped,
}

const SMSS: f64 = MSS as f64;
const INITIAL_CWND: f64 = 10.0 * SMSS;
const MIN_PIPE_CWND: f64 = 4.0 * SMSS;
const STARTUP_PACING_GAIN: f64 = 2.77;
const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const INFINITY: f64 = f64::INFINITY;

struct Naive {
    state: State,
    ack_phase: AckPhase,
    cwnd: f64,
    prior_cwnd: f64,
    in_recovery: bool,
    recovery_rounds: u32,
    delivered: f64,
    next_round_delivered: f64,
    round_count: u64,
    rounds_since_bw_probe: u32,
    round_start: bool,
    /// Every rate that went into the filter, with its cycle.
    bw_samples: Vec<(u64, f64)>,
    cycle_count: u64,
    max_bw: f64,
    bw: f64,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
    bw_latest: f64,
    inflight_latest: f64,
    loss_in_round: bool,
    loss_round_delivered: f64,
    loss_round_start: bool,
    /// Every loss: what had been delivered, how much was lost.
    lost: Vec<(f64, f64)>,
    lost_in_round: f64,
    bw_probe_samples: bool,
    full_bw: f64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    min_rtt: f64,
    min_rtt_stamp: f64,
    probe_rtt_min_delay: f64,
    probe_rtt_min_stamp: f64,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: f64,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    cycle_stamp: f64,
    bw_probe_wait: f64,
    bw_probe_up_rounds: u32,
    bw_probe_up_acks: f64,
    probe_up_cnt: f64,
    /// Every sample of aggregation with its round, and whether start-up was over.
    extra_samples: Vec<(u64, f64)>,
    extra_acked_interval_start: f64,
    extra_acked_delivered: f64,
    pacing_rate: f64,
    random: Rng,
    // Of the ACK at hand.
    now: f64,
    newly_acked: f64,
    inflight: f64,
    is_cwnd_limited: bool,
    rs: Option<RateSample>,
}

fn delivery_rate(rs: &RateSample) -> f64 {
    rs.delivered.0 as f64 / rs.interval.as_secs_f64()
}

impl Naive {
    fn new(config: &Config) -> Naive {
        Naive {
            state: State::Startup,
            ack_phase: AckPhase::Stopped,
            cwnd: INITIAL_CWND,
            prior_cwnd: 0.0,
            in_recovery: false,
            recovery_rounds: 0,
            delivered: 0.0,
            next_round_delivered: 0.0,
            round_count: 0,
            rounds_since_bw_probe: 0,
            round_start: false,
            bw_samples: Vec::new(),
            cycle_count: 0,
            max_bw: 0.0,
            bw: 0.0,
            bw_shortterm: INFINITY,
            inflight_shortterm: INFINITY,
            inflight_longterm: INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_in_round: false,
            loss_round_delivered: 0.0,
            loss_round_start: false,
            lost: Vec::new(),
            lost_in_round: 0.0,
            bw_probe_samples: false,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            min_rtt: INFINITY,
            min_rtt_stamp: 0.0,
            probe_rtt_min_delay: INFINITY,
            probe_rtt_min_stamp: 0.0,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: 0.0,
            probe_rtt_round_done: false,
            idle_restart: false,
            cycle_stamp: 0.0,
            bw_probe_wait: 2.0,
            bw_probe_up_rounds: 0,
            bw_probe_up_acks: 0.0,
            probe_up_cnt: INFINITY,
            extra_samples: Vec::new(),
            extra_acked_interval_start: -1.0,
            extra_acked_delivered: 0.0,
            pacing_rate: 0.0,
            random: Rng::for_element(config.seed, "bbr", "cycle"),
            now: 0.0,
            newly_acked: 0.0,
            inflight: 0.0,
            is_cwnd_limited: false,
            rs: None,
        }
    }

    /// BBRUpdateOnACK.
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>) {
        self.now = now;
        self.newly_acked = ack.delivered_total.0 as f64 - self.delivered;
        self.delivered = ack.delivered_total.0 as f64;
        self.inflight = ack.in_flight.0 as f64;
        self.is_cwnd_limited = ack.cwnd_limited;
        self.rs = ack.rate.copied();
        if self.extra_acked_interval_start < 0.0 {
            self.extra_acked_interval_start = now;
            self.cycle_stamp = now;
        }
        if ack.lost.0 > 0 {
            self.note_loss();
            self.lost.push((self.delivered, ack.lost.0 as f64));
            self.lost_in_round += ack.lost.0 as f64;
        }
        // BBRUpdateModelAndState; an ACK without a sample delivered nothing that was timed.
        self.round_start = false;
        if let Some(rs) = self.rs {
            self.update_latest_delivery_signals(&rs);
            self.update_congestion_signals(&rs);
            self.update_ack_aggregation();
            self.check_full_bw_reached(&rs);
            self.check_startup_high_loss(&rs);
        }
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
        }
        if self.state == State::Drain && self.inflight <= self.bbr_inflight(self.bw, 1.0) {
            self.start_probe_bw_down();
        }
        if let Some(rs) = self.rs {
            self.update_probe_bw_cycle_phase(&rs);
        }
        self.update_min_rtt(ack.rtt.map(Duration::as_secs_f64));
        self.check_probe_rtt();
        if let Some(rs) = self.rs.filter(|_| self.loss_round_start) {
            self.bw_latest = delivery_rate(&rs);
            self.inflight_latest = rs.delivered.0 as f64;
        }
        self.bw = self.max_bw.min(self.bw_shortterm);
        // BBRUpdateControlParameters.
        if self.pacing_rate == 0.0
            && let Some(srtt) = ack.srtt
        {
            self.pacing_rate = STARTUP_PACING_GAIN * INITIAL_CWND / srtt.as_secs_f64();
        }
        self.set_pacing_rate_with_gain(self.pacing_gain());
        self.set_cwnd();
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain => 0.35,
            State::ProbeBwDown => 0.9,
            State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeRtt => 1.0,
            State::ProbeBwUp => 1.25,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeBwUp => 2.25,
            State::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    fn in_a_probe_bw_state(&self) -> bool {
        matches!(
            self.state,
            State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp
        )
    }

    fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    fn note_loss(&mut self) {
        if !self.loss_in_round {
            self.loss_round_delivered = self.delivered;
        }
        self.loss_in_round = true;
    }

    fn update_latest_delivery_signals(&mut self, rs: &RateSample) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(delivery_rate(rs));
        self.inflight_latest = self.inflight_latest.max(rs.delivered.0 as f64);
        if rs.prior_delivered.0 as f64 >= self.loss_round_delivered {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
    }

    fn update_congestion_signals(&mut self, rs: &RateSample) {
        // BBRUpdateMaxBw, BBRUpdateRound.
        if rs.prior_delivered.0 as f64 >= self.next_round_delivered {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_bw_probe += 1;
            self.round_start = true;
        }
        let rate = delivery_rate(rs);
        let limited = rs.app_limited || self.state == State::ProbeRtt;
        if rate > 0.0 && (rate >= self.max_bw || !limited) {
            self.bw_samples.push((self.cycle_count, rate));
            let recent = self
                .bw_samples
                .iter()
                .filter(|(cycle, _)| cycle + 2 > self.cycle_count);
            self.max_bw = recent.map(|sample| sample.1).fold(0.0, f64::max);
        }
        if !self.loss_round_start {
            return;
        }
        // BBRAdaptLowerBoundsFromCongestion.
        let probing = matches!(
            self.state,
            State::Startup | State::ProbeBwRefill | State::ProbeBwUp
        );
        if self.loss_in_round && !probing {
            if self.bw_shortterm == INFINITY {
                self.bw_shortterm = self.max_bw;
            }
            if self.inflight_shortterm == INFINITY {
                self.inflight_shortterm = self.cwnd;
            }
            self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
            self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
        }
        self.loss_in_round = false;
    }

    fn update_ack_aggregation(&mut self) {
        let mut expected = self.bw * (self.now - self.extra_acked_interval_start);
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_interval_start = self.now;
            expected = 0.0;
        }
        self.extra_acked_delivered += self.newly_acked;
        let extra = (self.extra_acked_delivered - expected).min(self.cwnd);
        if !self.full_bw_reached {
            let round = self.round_count;
            self.extra_samples.retain(|sample| sample.0 == round);
        }
        self.extra_samples.push((self.round_count, extra));
    }

    /// The windowed maximum.
    fn extra_acked(&self) -> f64 {
        let recent = self
            .extra_samples
            .iter()
            .filter(|(round, _)| round + 10 > self.round_count);
        recent.map(|sample| sample.1).fold(0.0, f64::max)
    }

    fn check_full_bw_reached(&mut self, rs: &RateSample) {
        if self.full_bw_now || !self.round_start || rs.app_limited {
            return;
        }
        if delivery_rate(rs) >= self.full_bw * 1.25 {
            self.reset_full_bw(delivery_rate(rs));
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= 3;
        if self.full_bw_now {
            self.full_bw_reached = true;
        }
    }

    fn reset_full_bw(&mut self, full_bw: f64) {
        self.full_bw = full_bw;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// 5.3.1.3, in words there.
    fn check_startup_high_loss(&mut self, rs: &RateSample) {
        if !self.loss_round_start {
            return;
        }
        let lost = core::mem::replace(&mut self.lost_in_round, 0.0);
        if self.state == State::Startup
            && self.in_recovery
            && self.recovery_rounds >= 1
            && lost > rs.in_flight.0 as f64 * LOSS_THRESH
            && lost >= 6.0 * SMSS
        {
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp_multiple(self.bw, 1.0).max(self.inflight_latest);
        }
        if self.in_recovery {
            self.recovery_rounds += 1;
        }
    }

    fn is_inflight_too_high(&self, rs: &RateSample) -> bool {
        let since = self
            .lost
            .iter()
            .filter(|(delivered, _)| *delivered > rs.prior_delivered.0 as f64);
        let lost: f64 = since.map(|loss| loss.1).sum();
        lost > rs.in_flight.0 as f64 * LOSS_THRESH
    }

    fn update_probe_bw_cycle_phase(&mut self, rs: &RateSample) {
        if !self.full_bw_reached {
            return;
        }
        self.adapt_long_term_model(rs);
        match self.state {
            State::ProbeBwDown => {
                if self.is_time_to_probe_bw() {
                    return;
                }
                if self.inflight <= self.inflight_with_headroom()
                    && self.inflight <= self.bbr_inflight(self.max_bw, 1.0)
                {
                    self.state = State::ProbeBwCruise;
                }
            }
            State::ProbeBwCruise => {
                self.is_time_to_probe_bw();
            }
            State::ProbeBwRefill => {
                if self.round_start {
                    self.bw_probe_samples = true;
                    // BBRStartProbeBW_UP.
                    self.ack_phase = AckPhase::ProbeStarting;
                    self.start_round();
                    self.reset_full_bw(delivery_rate(rs));
                    self.state = State::ProbeBwUp;
                    self.raise_inflight_longterm_slope();
                }
            }
            State::ProbeBwUp => {
                if self.is_cwnd_limited && self.cwnd >= self.inflight_longterm {
                    self.reset_full_bw(delivery_rate(rs));
                } else if self.full_bw_now {
                    self.start_probe_bw_down();
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    fn adapt_long_term_model(&mut self, rs: &RateSample) {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            if self.in_a_probe_bw_state() && !rs.app_limited {
                self.cycle_count += 1;
            }
            self.ack_phase = AckPhase::Stopped;
        }
        if self.is_inflight_too_high(rs) {
            // BBRHandleLostPacket, BBRHandleInflightTooHigh.
            if self.bw_probe_samples {
                self.bw_probe_samples = false;
                if !rs.app_limited {
                    let least = self.target_inflight() * BETA;
                    self.inflight_longterm = (rs.in_flight.0 as f64).max(least);
                }
                if self.state == State::ProbeBwUp {
                    self.start_probe_bw_down();
                }
            }
            return;
        }
        if self.inflight_longterm == INFINITY {
            return;
        }
        self.inflight_longterm = self.inflight_longterm.max(rs.in_flight.0 as f64);
        if self.state == State::ProbeBwUp {
            self.probe_inflight_longterm_upward();
        }
    }

    fn probe_inflight_longterm_upward(&mut self) {
        if !self.is_cwnd_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acks += self.newly_acked;
        if self.bw_probe_up_acks >= self.probe_up_cnt {
            let delta = (self.bw_probe_up_acks / self.probe_up_cnt).floor();
            self.bw_probe_up_acks -= delta * self.probe_up_cnt;
            self.inflight_longterm += delta;
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = SMSS * f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_cnt = (self.cwnd / growth_this_round).max(1.0);
    }

    fn is_time_to_probe_bw(&mut self) -> bool {
        let elapsed = self.now > self.cycle_stamp + self.bw_probe_wait + 1e-12;
        let reno_rounds = (self.target_inflight() / SMSS).floor().min(63.0);
        if !elapsed && f64::from(self.rounds_since_bw_probe) < reno_rounds {
            return false;
        }
        // BBRStartProbeBW_REFILL.
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acks = 0.0;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBwRefill;
        true
    }

    fn target_inflight(&self) -> f64 {
        self.bdp_multiple(self.bw, 1.0).min(self.cwnd)
    }

    fn start_probe_bw_down(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
        self.probe_up_cnt = INFINITY;
        self.rounds_since_bw_probe = self.random.scaled(2);
        self.bw_probe_wait = 2.0 + f64::from(self.random.scaled(1 << 20)) / f64::from(1 << 20);
        self.cycle_stamp = self.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBwDown;
    }

    fn reset_short_term_model(&mut self) {
        self.bw_shortterm = INFINITY;
        self.inflight_shortterm = INFINITY;
    }

    fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm == INFINITY {
            return INFINITY;
        }
        let headroom = SMSS.max(HEADROOM * self.inflight_longterm);
        MIN_PIPE_CWND.max(self.inflight_longterm - headroom)
    }

    fn update_min_rtt(&mut self, rtt: Option<f64>) {
        self.probe_rtt_expired =
            self.probe_rtt_min_delay < INFINITY && self.now > self.probe_rtt_min_stamp + 5.0 + 1e-12;
        if let Some(rtt) = rtt
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = rtt;
            self.probe_rtt_min_stamp = self.now;
        }
        let min_rtt_expired = self.now > self.min_rtt_stamp + 10.0 + 1e-12;
        if self.probe_rtt_min_delay < self.min_rtt || min_rtt_expired {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    fn check_probe_rtt(&mut self) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done_stamp = 0.0;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            if self.probe_rtt_done_stamp == 0.0 && self.inflight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_stamp = self.now + 0.2;
                self.probe_rtt_round_done = false;
                self.start_round();
            } else if self.probe_rtt_done_stamp != 0.0 {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done();
                }
            }
        }
        if self.newly_acked > 0.0 {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self) {
        if self.probe_rtt_done_stamp == 0.0 || self.now <= self.probe_rtt_done_stamp + 1e-12 {
            return;
        }
        self.probe_rtt_min_stamp = self.now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down();
            self.state = State::ProbeBwCruise;
        } else {
            self.state = State::Startup;
        }
    }

    fn save_cwnd(&mut self) {
        self.prior_cwnd = if !self.in_recovery && self.state != State::ProbeRtt {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt == INFINITY || bw == 0.0 {
            return INITIAL_CWND;
        }
        (gain * bw * self.min_rtt).floor()
    }

    fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let send_quantum = (self.pacing_rate * 1e-3).floor().clamp(2.0 * SMSS, 65_536.0);
        let cap = inflight_cap.max(3.0 * send_quantum).max(MIN_PIPE_CWND);
        if self.state == State::ProbeBwUp {
            cap + 2.0 * SMSS
        } else {
            cap
        }
    }

    fn bbr_inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, 0.5).max(MIN_PIPE_CWND)
    }

    fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bw * 99.0 / 100.0;
        if rate > 0.0 && (self.full_bw_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    fn set_cwnd(&mut self) {
        let cap = self.bdp_multiple(self.bw, self.cwnd_gain()) + self.extra_acked();
        let max_inflight = self.quantization_budget(cap);
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + self.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || self.delivered < INITIAL_CWND {
            self.cwnd += self.newly_acked;
        }
        self.cwnd = self.cwnd.max(MIN_PIPE_CWND);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        // BBRBoundCwndForModel.
        let cap = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => INFINITY,
        };
        let cap = cap.min(self.inflight_shortterm).max(MIN_PIPE_CWND);
        self.cwnd = self.cwnd.min(cap);
    }

    fn enter_recovery(&mut self) {
        self.save_cwnd();
        self.in_recovery = true;
        self.recovery_rounds = 0;
        self.note_loss();
    }

    fn leave_recovery(&mut self) {
        self.in_recovery = false;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// BBRHandleRestartFromIdle.
    fn on_restart(&mut self, now: f64) {
        if self.delivered == 0.0 {
            return;
        }
        self.now = now;
        self.idle_restart = true;
        self.extra_acked_interval_start = now;
        if self.in_a_probe_bw_state() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done();
        }
    }
}

impl Transcription for Naive {
    fn on_loss(&mut self) {
        self.enter_recovery();
    }

    fn on_timeout(&mut self, in_flight: f64) {
        self.enter_recovery();
        self.cwnd = SMSS + in_flight;
    }

    fn on_recovery_end(&mut self) {
        self.leave_recovery();
    }

    fn on_restart(&mut self, now: f64) {
        Naive::on_restart(self, now);
    }

    fn on_ack(&mut self, now: f64, ack: &Ack<'_>) {
        Naive::on_ack(self, now, ack);
    }

    fn window(&self) -> f64 {
        self.cwnd.max(SMSS)
    }

    fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    fn state(&self) -> usize {
        self.state as usize
    }
}

#[test]
fn version_3_is_the_naive_transcription_call_by_call() {
    let mut met = Met::<7>::NOTHING;
    let mut bounded = 0;
    let walk = Walk {
        steps: 2000,
        ends: 6,
        tolerance: 4.0,
    };
    for seed in 0..60 {
        let config = Config {
            seed,
            ..config(HyStart::Off)
        };
        let mut bbr = Bbr3::new(&Values::defaults(Bbr3::PARAMETERS), &config);
        let mut naive = Naive::new(&config);
        let mut path = Path::new(Rng::for_element(seed, "bbr3", "inputs"), 40);
        met.walk((&mut bbr, &mut naive), &mut path, &walk, |bbr, naive| {
            bounded += u32::from(naive.inflight_longterm < INFINITY);
            // Bytes are whole in the code; they must not drift apart.
            assert_eq!(
                bbr.inflight_bound() == Bytes::MAX,
                naive.inflight_longterm == INFINITY,
                "seed {seed}"
            );
        });
    }
    assert_eq!(met.calls, 120_000);
    assert!(
        met.recoveries > 500 && bounded > 10_000,
        "{} recoveries, {bounded} with a bound",
        met.recoveries
    );
    assert!(
        met.seen.iter().all(|calls| *calls > 50),
        "{:?} calls in each state",
        met.seen
    );
}
