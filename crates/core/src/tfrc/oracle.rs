//! TFRC again, as the RFC's text has it: lists instead of windows, every packet looked at, nothing remembered that can be
//! computed. Slow and plain.

use super::{Config, Variant, equation};
use alloc::vec;
use alloc::vec::Vec;

/// Loss events by looking at every packet that arrived, again and again.
pub(super) struct NaiveLosses {
    /// Number and time (ns) of arrivals, in order of arrival; the first is the packet that began.
    arrivals: Vec<(u64, u64)>,
    marks: Vec<u64>,
    /// Decided up to here.
    base: (u64, u64),
    /// Time of the last event as a fraction: numerator, denominator, the gap it is in.
    exact: Option<(u128, u128, u64)>,
    /// First loss (number, time), losses since: of every event.
    pub(super) events: Vec<(u64, u64, u64)>,
    /// Lengths of complete intervals and their discount factors, newest first.
    pub(super) intervals: Vec<(f64, f64)>,
    config: Config,
}

impl NaiveLosses {
    pub(super) fn new(number: u64, at: u64, config: Config) -> NaiveLosses {
        NaiveLosses {
            arrivals: vec![(number, at)],
            marks: Vec::new(),
            base: (number, at),
            exact: None,
            events: Vec::new(),
            intervals: Vec::new(),
            config,
        }
    }

    fn highest(&self) -> u64 {
        self.arrivals
            .iter()
            .map(|arrival| arrival.0)
            .max()
            .expect("one arrived")
    }

    pub(super) fn on_packet(&mut self, number: u64, at: u64, marked: bool, rtt: u64, first: f64) {
        if number <= self.base.0 || self.arrivals.iter().any(|arrival| arrival.0 == number) {
            return;
        }
        self.arrivals.push((number, at));
        if marked {
            self.marks.push(number);
        }
        loop {
            let mut above: Vec<(u64, u64)> = self
                .arrivals
                .iter()
                .copied()
                .filter(|arrival| arrival.0 > self.base.0)
                .collect();
            above.sort_unstable();
            let Some(&next) = above.first() else { return };
            if above.len() < 3 && next.0 != self.base.0 + 1 {
                return;
            }
            let base = self.base;
            for lost in base.0 + 1..next.0 {
                // T_loss = T_before + (T_after - T_before) * (S_loss - S_before) / (S_after - S_before), in exact
                // fractions: times the denominator.
                let gap = u128::from(next.0 - base.0);
                let into = u128::from(next.1.saturating_sub(base.1)) * u128::from(lost - base.0);
                let time = u128::from(base.1) * gap + into;
                self.lose(lost, time, gap, rtt, first);
            }
            if self.marks.contains(&next.0) {
                self.lose(next.0, u128::from(next.1), 1, rtt, first);
            }
            self.base = next;
        }
    }

    /// A loss at `time / unit`.
    fn lose(&mut self, number: u64, time: u128, unit: u128, rtt: u64, first: f64) {
        let same = match (self.events.last(), &self.exact) {
            (None, _) => false,
            (Some(_), _) if rtt == 0 => true,
            // In the gap of the event itself both times are fractions of the same unit.
            (Some(_), Some((start, same_unit, from))) if *same_unit == unit && *from == self.base.0 => {
                time <= start + u128::from(rtt) * unit
            }
            (Some(event), _) => time <= (u128::from(event.1) + u128::from(rtt)) * unit,
        };
        let at = (time / unit) as u64;
        if !same {
            if let Some(&(old, old_at, lost)) = self.events.last() {
                let packets = (number - old) as f64;
                let short =
                    self.config.variant == Variant::SmallPackets && at.saturating_sub(old_at) <= 2 * rtt;
                let length = if short { packets / lost as f64 } else { packets };
                self.close(packets, length);
            } else {
                self.close(first, first);
            }
            self.events.push((number, at, 0));
            self.exact = Some((time, unit, self.base.0));
        }
        self.events.last_mut().expect("an event").2 += 1;
    }
}

impl NaiveLosses {
    /// RFC 5348 5.5, when an interval is complete.
    fn close(&mut self, open: f64, length: f64) {
        let factor = self.factor(open);
        for interval in &mut self.intervals {
            interval.1 *= factor;
        }
        self.intervals.insert(0, (length.max(1.0), 1.0));
        self.intervals.truncate(8);
    }

    fn factor(&self, open: f64) -> f64 {
        let (total, weight) = self.sums(0, 1.0);
        if !self.config.history_discounting || weight == 0.0 || open <= 2.0 * total / weight {
            return 1.0;
        }
        let factor = 2.0 * (total / weight) / open;
        if factor < 0.25 { 0.25 } else { factor }
    }

    /// I_tot and W_tot of the complete intervals, their weights shifted by `shift`.
    fn sums(&self, shift: usize, factor: f64) -> (f64, f64) {
        let weights = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
        let (mut total, mut weight) = (0.0, 0.0);
        for (i, (length, discount)) in self.intervals.iter().enumerate() {
            if i + shift < self.intervals.len() {
                total += length * weights[i + shift] * discount * factor;
                weight += weights[i + shift] * discount * factor;
            }
        }
        (total, weight)
    }

    pub(super) fn rate(&self, now: u64, rtt: u64) -> f64 {
        let Some(&(number, at, _)) = self.events.last() else {
            return 0.0;
        };
        let (total1, weight1) = self.sums(0, 1.0);
        if self.config.variant == Variant::SmallPackets && now - at <= 2 * rtt {
            return weight1 / total1;
        }
        let open = (self.highest() + 1).saturating_sub(number) as f64;
        let (total0, weight0) = self.sums(1, self.factor(open));
        let zero = (weight0 + 1.0) / (total0 + open);
        let one = weight1 / total1;
        if zero < one { zero } else { one }
    }
}

/// The sender of RFC 5348 section 4, in seconds and bytes per second.
pub(super) struct NaiveSender {
    config: Config,
    s: f64,
    pub(super) x: f64,
    x_bps: f64,
    /// X_recv_set: time and rate.
    x_recv_set: Vec<(f64, f64)>,
    pub(super) r: Option<f64>,
    r_sqmean: f64,
    r_sample: f64,
    p: f64,
    tld: f64,
    initial_rate: f64,
    pub(super) expires: Option<f64>,
    /// Sent since the timer was set.
    pub(super) sent: bool,
    /// Instants when data was held back, and arrivals of feedback.
    pub(super) held: Vec<f64>,
    feedbacks: Vec<f64>,
}

impl NaiveSender {
    pub(super) fn new(now: f64, config: Config) -> NaiveSender {
        let s = f64::from(config.packet - 40);
        NaiveSender {
            config,
            s,
            x: s,
            x_bps: f64::INFINITY,
            x_recv_set: vec![(now, f64::INFINITY)],
            r: None,
            r_sqmean: 0.0,
            r_sample: 0.0,
            p: 0.0,
            tld: 0.0,
            initial_rate: 0.0,
            expires: None,
            sent: false,
            held: Vec::new(),
            feedbacks: vec![now, now],
        }
    }

    fn share(&self) -> f64 {
        match self.config.variant {
            Variant::Standard => 1.0,
            Variant::SmallPackets => self.s / (self.s + 40.0),
        }
    }

    fn nominal(&self) -> f64 {
        match self.config.variant {
            Variant::Standard => self.s,
            Variant::SmallPackets => 1460.0,
        }
    }

    pub(super) fn on_feedback(&mut self, now: f64, r_sample: f64, p: f64, mut x_recv: f64) {
        let t_new = self.feedbacks[self.feedbacks.len() - 2];
        let t_next = self.feedbacks[self.feedbacks.len() - 1];
        let data_limited = !self.held.iter().any(|&at| t_new < at && at <= t_next);
        self.feedbacks.push(now);
        let worse = p > self.p;
        self.p = p;
        self.r_sample = r_sample;
        let Some(r) = self.r else {
            self.r = Some(r_sample);
            self.r_sqmean = libm::sqrt(r_sample);
            self.set_timer(now);
            self.tld = now;
            let mss = self.nominal();
            let window = if 4.0 * mss < 2.0 * mss || 4.0 * mss < 4380.0 {
                4.0 * mss
            } else if 2.0 * mss > 4380.0 {
                2.0 * mss
            } else {
                4380.0
            };
            self.initial_rate = window * self.share() / r_sample;
            self.x = self.initial_rate;
            self.x_recv_set = vec![(now, f64::INFINITY)];
            return;
        };
        let r = 0.9 * r + 0.1 * r_sample;
        self.r = Some(r);
        self.r_sqmean = 0.9 * self.r_sqmean + 0.1 * libm::sqrt(r_sample);
        self.set_timer(now);
        let recv_limit;
        if data_limited {
            if worse {
                for member in &mut self.x_recv_set {
                    member.1 /= 2.0;
                }
                x_recv *= 0.85;
                self.maximize(now, x_recv);
                recv_limit = self.largest();
            } else {
                self.maximize(now, x_recv);
                recv_limit = 2.0 * self.largest();
            }
        } else {
            self.x_recv_set.push((now, x_recv));
            self.x_recv_set.retain(|member| now - member.0 <= 2.0 * r + 1e-9);
            recv_limit = 2.0 * self.largest();
        }
        self.step_four(now, recv_limit);
    }

    fn maximize(&mut self, now: f64, x_recv: f64) {
        self.x_recv_set.push((now, x_recv));
        self.x_recv_set.retain(|member| member.1 < f64::INFINITY);
        self.x_recv_set = vec![(now, self.largest())];
    }

    fn largest(&self) -> f64 {
        self.x_recv_set
            .iter()
            .fold(0.0, |most, member| if member.1 > most { member.1 } else { most })
    }

    fn step_four(&mut self, now: f64, recv_limit: f64) {
        let r = self.r.expect("a sample");
        if self.p > 0.0 {
            let t_rto = 4.0 * r;
            self.x_bps = self.share() * equation::throughput(self.nominal(), r, t_rto, self.p);
            self.x = f64::max(f64::min(self.x_bps, recv_limit), self.s / 64.0);
        } else if now - self.tld >= r - 0.5e-9 {
            // to the nanosecond of the sender's clock
            self.x = f64::max(f64::min(2.0 * self.x, recv_limit), self.initial_rate);
            self.x = f64::max(self.x, self.s / 64.0);
            self.tld = now;
        }
    }

    pub(super) fn set_timer(&mut self, now: f64) {
        let two = 2.0 * self.s / self.x;
        self.expires = Some(now + self.r.map_or(two, |r| f64::max(4.0 * r, two)));
        self.sent = false;
    }

    pub(super) fn on_expiry(&mut self, now: f64) {
        let x_recv = self.largest();
        let recover_rate = self.initial_rate;
        if self.r.is_none() {
            if !self.sent {
                self.expires = None;
                return;
            }
            self.x = f64::max(self.x / 2.0, self.s / 64.0);
        } else if ((self.p > 0.0 && x_recv < recover_rate) || (self.p == 0.0 && self.x < 2.0 * recover_rate))
            && !self.sent
        {
            self.expires = None;
            return;
        } else if self.p == 0.0 {
            self.x = f64::max(self.x / 2.0, self.s / 64.0);
        } else if self.x_bps > 2.0 * x_recv {
            self.update_limits(now, x_recv);
        } else {
            self.update_limits(now, self.x_bps / 2.0);
        }
        self.set_timer(now);
    }

    fn update_limits(&mut self, now: f64, timer_limit: f64) {
        let timer_limit = f64::max(timer_limit, self.s / 64.0);
        self.x_recv_set = vec![(now, timer_limit / 2.0)];
        self.step_four(now, timer_limit);
    }

    pub(super) fn t_ipi(&self) -> f64 {
        let mut x_inst = self.x;
        if self.r.is_some() && self.config.oscillation_prevention {
            x_inst = f64::max(self.x * self.r_sqmean / libm::sqrt(self.r_sample), self.s / 64.0);
        }
        let t_ipi = self.s / x_inst;
        if self.config.variant == Variant::SmallPackets {
            t_ipi.max(0.010)
        } else {
            t_ipi
        }
    }
}
