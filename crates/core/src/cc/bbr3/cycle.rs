//! The cycle of BBR version 3: down, cruise, refill, up; the long-term bound; the probe of the RTT.

use super::super::path::rate_of;
use super::super::{Ack, RateSample};
use super::{AckPhase, Model, State};
use crate::time::{Duration, Instant};

const PROBE_RTT: Duration = Duration::from_millis(200);

impl Model {
    /// 5.3.3.6 and 5.5.10.2.
    pub(super) fn adapt_long_term(&mut self, now: Instant, sample: &RateSample, ack: &Ack<'_>, new: u64) {
        if self.ack_phase == AckPhase::Starting && self.round_start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.round_start {
            if self.probes_bandwidth() && !sample.app_limited {
                self.cycle = 1 - self.cycle;
                self.max_rates[self.cycle] = 0.0;
            }
            self.ack_phase = AckPhase::Refilling; // once per cycle
        }
        let lost = self.lost_since(sample.prior_delivered.0);
        if lost as f64 > sample.in_flight.0 as f64 * self.loss_threshold {
            if self.probing_samples {
                self.probing_samples = false;
                if !sample.app_limited {
                    let least = (self.target_in_flight() as f64 * self.beta) as u64;
                    self.inflight_long = sample.in_flight.0.max(least);
                }
                if self.state == State::Up {
                    self.start_down(now);
                }
            }
            return;
        }
        if self.inflight_long == u64::MAX {
            return;
        }
        self.inflight_long = self.inflight_long.max(sample.in_flight.0);
        if self.state == State::Up && ack.cwnd_limited && self.window >= self.inflight_long {
            self.up_acked += new as f64;
            if self.up_acked >= self.up_count {
                let more = libm::floor(self.up_acked / self.up_count);
                self.up_acked -= more * self.up_count;
                self.inflight_long = self.inflight_long.saturating_add(more as u64);
            }
            if self.round_start {
                self.raise_slope();
            }
        }
    }

    fn raise_slope(&mut self) {
        // A byte for each that is delivered is the most.
        let growth = self.units.mss().0 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(30);
        self.up_count = (self.window as f64 / growth as f64).max(1.0);
    }

    pub(super) fn step_cycle(&mut self, now: Instant, sample: &RateSample, ack: &Ack<'_>) {
        match self.state {
            State::Down => {
                if !self.starts_probe(now) && self.may_cruise(ack) {
                    self.state = State::Cruise;
                }
            }
            State::Cruise => {
                self.starts_probe(now);
            }
            State::Refill => {
                if self.round_start {
                    self.probing_samples = true;
                    self.ack_phase = AckPhase::Starting;
                    self.next_round = self.delivered;
                    self.reset_full_pipe(rate_of(sample));
                    self.state = State::Up;
                    self.raise_slope();
                }
            }
            State::Up => {
                if ack.cwnd_limited && self.window >= self.inflight_long {
                    self.reset_full_pipe(rate_of(sample)); // the bound is the limit, not the path
                } else if self.full_now {
                    self.start_down(now);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// 5.3.3.5.3.
    fn starts_probe(&mut self, now: Instant) -> bool {
        let segments = self.target_in_flight() / self.units.mss().0.max(1);
        let as_reno = u64::from(self.rounds_since_probe) >= segments.min(63);
        if now.since(self.cycle_at) <= self.wait && !as_reno {
            return false;
        }
        self.forget_short_term();
        (self.up_rounds, self.up_acked) = (0, 0.0);
        self.ack_phase = AckPhase::Refilling;
        self.next_round = self.delivered;
        self.state = State::Refill;
        true
    }

    fn may_cruise(&self, ack: &Ack<'_>) -> bool {
        let product = self.quantized(self.product_at(self.max_rate, 1.0));
        ack.in_flight.0 <= self.with_headroom() && ack.in_flight.0 <= product
    }

    pub(super) fn start_down(&mut self, now: Instant) {
        self.loss_in_round = false;
        self.rate_latest = 0.0;
        self.inflight_latest = 0;
        self.up_count = f64::INFINITY;
        self.rounds_since_probe = self.random.scaled(2);
        let more = (u64::from(self.random.scaled(1 << 20)) * 1_000_000_000) >> 20;
        self.wait = Duration::from_secs(2) + Duration::from_nanos(more);
        self.cycle_at = now;
        self.ack_phase = AckPhase::Stopping;
        self.next_round = self.delivered;
        self.state = State::Down;
    }

    fn forget_short_term(&mut self) {
        self.rate_short = f64::INFINITY;
        self.inflight_short = u64::MAX;
    }

    pub(super) fn check_probe_rtt(&mut self, now: Instant, ack: &Ack<'_>, new: u64) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_window();
            self.probe_done_at = None;
            self.ack_phase = AckPhase::Stopping;
            self.next_round = self.delivered;
        }
        if self.state == State::ProbeRtt {
            if self.probe_done_at.is_none() {
                if ack.in_flight.0 <= self.probe_rtt_window() {
                    self.probe_done_at = Some(now + PROBE_RTT);
                    self.probe_round = false;
                    self.next_round = self.delivered;
                }
            } else {
                self.probe_round |= self.round_start;
                if self.probe_round {
                    self.check_probe_rtt_done(now);
                }
            }
        }
        if new > 0 {
            self.idle_restart = false;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_done_at.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_at = now;
        self.restore_window();
        self.forget_short_term();
        if self.full {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.product(0.5).max(self.floor())
    }

    fn target_in_flight(&self) -> u64 {
        self.product(1.0).min(self.window)
    }

    pub(super) fn with_headroom(&self) -> u64 {
        if self.inflight_long == u64::MAX {
            return u64::MAX;
        }
        let headroom = ((self.headroom * self.inflight_long as f64) as u64).max(self.units.mss().0);
        self.inflight_long.saturating_sub(headroom).max(self.floor())
    }
}
