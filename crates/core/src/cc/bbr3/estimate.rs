//! What BBR version 3 learns from each acknowledgment: rates, losses, the smallest RTT, how far ACKs come in bunches.

use super::super::path::rate_of;
use super::super::{Ack, RateSample};
use super::{EXTRA_ROUNDS, LOSSES, Model, State};
use crate::time::{Duration, Instant};

/// Lost segments of a round trip that end start-up (5.3.1.3).
const STARTUP_LOSSES: u64 = 6;
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const MIN_RTT_FILTER: Duration = Duration::from_secs(10);

impl Model {
    /// Lost since what delivered `prior` left (RS.lost).
    pub(super) fn lost_since(&self, prior: u64) -> u64 {
        let after = self.losses.iter().filter(|loss| loss.1 > 0 && loss.0 > prior);
        after.map(|loss| loss.1).sum()
    }

    pub(super) fn take_loss(&mut self, amount: u64) {
        self.note_loss();
        self.lost_in_round += amount;
        if self.losses[LOSSES - 1].0 == self.delivered {
            self.losses[LOSSES - 1].1 += amount;
            return;
        }
        self.losses.rotate_left(1);
        self.losses[LOSSES - 1] = (self.delivered, amount);
    }

    pub(super) fn note_loss(&mut self) {
        if !self.loss_in_round {
            self.loss_round_end = self.delivered;
        }
        self.loss_in_round = true;
    }

    /// 5.5.1, 5.5.5, 5.5.10.3.
    pub(super) fn take_sample(&mut self, sample: &RateSample) {
        let rate = rate_of(sample);
        self.loss_round_start = false;
        self.rate_latest = self.rate_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered.0);
        if sample.prior_delivered.0 >= self.loss_round_end {
            self.loss_round_end = self.delivered;
            self.loss_round_start = true;
        }
        if sample.prior_delivered.0 >= self.next_round {
            self.next_round = self.delivered;
            self.round += 1;
            self.rounds_since_probe += 1;
            self.round_start = true;
            let slots = EXTRA_ROUNDS as u64;
            self.extra[(self.round % slots) as usize] = 0;
        }
        let low = self.state == State::ProbeRtt || sample.app_limited;
        if rate > 0.0 && (rate >= self.max_rate || !low) {
            let slot = &mut self.max_rates[self.cycle];
            *slot = slot.max(rate);
            self.max_rate = self.max_rates[0].max(self.max_rates[1]);
        }
        if !self.loss_round_start {
            return;
        }
        let accelerating = matches!(self.state, State::Startup | State::Refill | State::Up);
        if self.loss_in_round && !accelerating {
            if self.rate_short.is_infinite() {
                self.rate_short = self.max_rate;
            }
            if self.inflight_short == u64::MAX {
                self.inflight_short = self.window;
            }
            self.rate_short = self.rate_latest.max(self.beta * self.rate_short);
            let kept = (self.beta * self.inflight_short as f64) as u64;
            self.inflight_short = self.inflight_latest.max(kept);
        }
    }

    /// 5.5.9.
    pub(super) fn update_aggregation(&mut self, now: Instant, new: u64) {
        let extra = self.epoch.excess(now, new, self.rate, self.window);
        let slot = (self.round % EXTRA_ROUNDS as u64) as usize;
        let largest = self.extra[slot].max(extra);
        if !self.full {
            self.extra = [0; EXTRA_ROUNDS]; // start-up remembers one round
        }
        self.extra[slot] = largest;
    }

    pub(super) fn extra_acked(&self) -> u64 {
        self.extra.iter().copied().max().unwrap_or(0)
    }

    /// 5.3.1.2.
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        if self.full_now || !self.round_start || sample.app_limited {
            return;
        }
        self.full_now = self.pipe.is_full(rate_of(sample));
        self.full |= self.full_now;
    }

    pub(super) fn reset_full_pipe(&mut self, rate: f64) {
        self.pipe.begin(rate);
        self.full_now = false;
    }

    /// 5.3.1.3, and the end of a round that was looked at for losses.
    pub(super) fn check_startup_loss(&mut self, sample: &RateSample) {
        if !self.loss_round_start {
            return;
        }
        let lost = self.lost_in_round;
        let too_much = lost as f64 > sample.in_flight.0 as f64 * self.loss_threshold;
        let several = lost >= STARTUP_LOSSES * self.units.mss().0;
        if self.state == State::Startup && self.recovering && self.recovered_round && too_much && several {
            self.full = true;
            self.inflight_long = self.product(1.0).max(self.inflight_latest);
        }
        self.recovered_round = self.recovering;
        self.loss_in_round = false;
        self.lost_in_round = 0;
    }

    /// 5.3.4.3.
    pub(super) fn update_min_rtt(&mut self, now: Instant, ack: &Ack<'_>) {
        let known = self.probe_rtt_min != Duration::MAX;
        self.probe_rtt_expired = known && now.since(self.probe_rtt_min_at) > PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.newest_rtt.or(ack.rtt)
            && (rtt < self.probe_rtt_min || self.probe_rtt_expired)
        {
            self.probe_rtt_min = rtt.max(Duration::from_nanos(1));
            self.probe_rtt_min_at = now;
        }
        let expired = now.since(self.min_rtt_at) > MIN_RTT_FILTER;
        if self.probe_rtt_min < self.min_rtt || expired {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_at = self.probe_rtt_min_at;
        }
    }
}
