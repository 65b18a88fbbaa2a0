//! Naive transcriptions of Vegas, of Westwood+, and of CDG as Linux and FreeBSD have it: whole histories instead of rings, one function per rule of the
//! papers, no sharing with the code under test but the random stream.

use super::super::{Ack, Config, Congestion, CongestionKind, HyStart};
use super::oracle::{self, Oracle};
use crate::rng::{Probability, Rng};
use crate::units::Bytes;
use alloc::vec::Vec;

/// Linux's `tcp_cdg` with its defaults.
pub(super) struct Cdg {
    reno: oracle::Reno,
    mss: f64,
    whole: bool,
    from_window: bool,
    undo: Option<(f64, f64)>,
    samples: Vec<i64>,
    /// A suspected delayed ACK lowers the minimum and not the maximum.
    low: Option<i64>,
    /// Smallest and largest of the round before.
    before: Option<(i64, i64)>,
    differences: Vec<(i64, i64)>,
    rtt_seq: u64,
    complete: bool,
    delack: u32,
    shadow_wnd: f64,
    backoff_cnt: u32,
    delay_min: Option<i64>,
    train: Option<(f64, f64)>,
    sample_cnt: u32,
    random: Rng,
    reduce: bool,
}

impl Cdg {
    pub(super) fn new(config: &Config) -> Cdg {
        let plain = Config {
            hystart: HyStart::Off,
            ..*config
        };
        Cdg {
            reno: oracle::Reno::new(&plain, false),
            mss: config.mss.0 as f64,
            whole: config.count_segments,
            from_window: config.reduce_from_window,
            undo: None,
            samples: Vec::new(),
            low: None,
            before: None,
            differences: Vec::new(),
            rtt_seq: 0,
            complete: false,
            delack: 0,
            shadow_wnd: config.initial_window.0 as f64,
            backoff_cnt: 0,
            delay_min: None,
            train: None,
            sample_cnt: 0,
            random: Rng::for_element(config.seed, "cdg", "back-off"),
            reduce: false,
        }
    }

    fn down(&self, x: f64) -> f64 {
        if self.whole {
            (x / self.mss + 1e-9).floor() * self.mss
        } else {
            x
        }
    }

    /// Rule 1.
    fn filter(&mut self, ack: &Ack<'_>) {
        let Some(rtt) = ack.rtt.map(|rtt| rtt.as_micros() as i64).filter(|rtt| *rtt > 0) else {
            return;
        };
        if ack.sacked_total.0 == 0 {
            if ack.segments == 1 && self.delack > 0 {
                self.delack -= 1;
                if !self.samples.is_empty() {
                    self.low = Some(self.low.map_or(rtt, |low| low.min(rtt)));
                }
                return;
            }
            if ack.segments > 1 && self.delack < 5 {
                self.delack += 1;
            }
        }
        self.samples.push(rtt);
    }

    fn extremes(&self) -> Option<(i64, i64)> {
        let max = self.samples.iter().max()?;
        Some((self.least()?, *max))
    }

    fn least(&self) -> Option<i64> {
        self.samples.iter().copied().chain(self.low).min()
    }

    fn forget(&mut self) {
        self.samples.clear();
        self.low = None;
    }

    fn hystart(&mut self, now: f64, ack: &Ack<'_>) -> bool {
        let round = self.least();
        self.delay_min = [self.delay_min, round].into_iter().flatten().min();
        let Some(least) = self.delay_min else { return false };
        if self.train.is_none() || !ack.cwnd_limited {
            self.train = Some((now, now));
        } else if let Some((begin, last)) = self.train
            && now - last < 0.003 - 1e-12
        {
            self.train = Some((begin, now));
            if now - begin > (least / 2).max(125) as f64 / 1e6 + 1e-12 {
                return true;
            }
        }
        if self.sample_cnt < 8 {
            self.sample_cnt += 1;
            return false;
        }
        round.is_some_and(|round| round > (least + least / 8).max(125))
    }

    fn cut(&mut self, ssthresh: f64) {
        let (cwnd, old) = {
            let (cwnd, ssthresh) = self.reno.state();
            (*cwnd, *ssthresh)
        };
        self.undo = Some((cwnd, old));
        let ssthresh = self.down(ssthresh).max(2.0 * self.mss);
        self.set(cwnd, ssthresh);
    }

    fn set(&mut self, cwnd: f64, ssthresh: f64) {
        self.reno.set_window(Bytes(0), Bytes(0)); // forgets what was counted
        let (c, s) = self.reno.state();
        (*c, *s) = (cwnd, ssthresh);
    }

    /// Rule 7.
    fn loss(&mut self, event: &Congestion) {
        let cwnd = *self.reno.state().0;
        self.shadow_wnd = self.down((self.shadow_wnd / 2.0).floor()).min(cwnd);
        let base = if self.from_window {
            cwnd
        } else {
            event.flight_size.0 as f64
        };
        let half = self.down((base * 0.5).round());
        let ssthresh = half.max(self.shadow_wnd);
        self.cut(ssthresh);
    }
}

impl Oracle for Cdg {
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>) {
        self.filter(ack);
        if ack.recovering {
            return;
        }
        if core::mem::take(&mut self.complete) {
            self.rtt_seq = ack.delivered_total.0 + ack.in_flight.0;
            self.before = self.extremes();
            self.forget();
        }
        let (cwnd, ssthresh) = self.reno.state();
        let (cwnd, slow_start) = (*cwnd, *cwnd < *ssthresh);
        if slow_start && self.hystart(now, ack) {
            *self.reno.state().1 = cwnd;
        }
        if ack.delivered_total.0 > self.rtt_seq
            && let Some(round) = self.extremes()
        {
            let mut grad = 0;
            if let Some(before) = self.before {
                // Rules 2 and 3: sums of the last eight, fewer extended to eight.
                self.differences.push((round.0 - before.0, round.1 - before.1));
                let last: Vec<_> = self.differences.iter().rev().take(8).collect();
                let sum = |part: fn(&(i64, i64)) -> i64| last.iter().map(|pair| part(pair)).sum::<i64>();
                let (min, max) = (sum(|pair| pair.0), sum(|pair| pair.1));
                grad = if min > 0 { min } else { max } * 8 / last.len() as i64;
                if min <= -32 || max <= -32 {
                    self.backoff_cnt = 0;
                }
            }
            self.rtt_seq = ack.delivered_total.0 + ack.in_flight.0;
            self.before = Some(round);
            self.forget();
            self.train = None;
            self.sample_cnt = 0;
            // Rules 4 and 5.
            if grad > 0 {
                let p = 1.0 - libm::exp(-(grad as f64) * 42.0 / 1e6);
                if self.random.chance(Probability::from_f64(p)) {
                    self.backoff_cnt += 1;
                    if self.backoff_cnt <= 5 {
                        self.shadow_wnd = self.shadow_wnd.max(cwnd);
                        self.reduce = true;
                        return;
                    }
                }
            }
        }
        // Rule 6.
        if !ack.cwnd_limited {
            self.shadow_wnd = self.shadow_wnd.min(cwnd);
            return;
        }
        self.reno.on_ack(now, ack);
        self.shadow_wnd += *self.reno.state().0 - cwnd;
    }

    fn wants_reduction(&mut self) -> bool {
        core::mem::take(&mut self.reduce)
    }

    fn on_congestion(&mut self, event: &Congestion) {
        match event.kind {
            CongestionKind::Delay => {
                let cwnd = *self.reno.state().0;
                self.cut((cwnd * 724.0 / 1024.0).round());
                let ssthresh = *self.reno.state().1;
                let cwnd = self.reno.state().0;
                *cwnd = cwnd.min(ssthresh);
            }
            CongestionKind::Loss | CongestionKind::Ecn => {
                self.loss(event);
                let ssthresh = *self.reno.state().1;
                let cwnd = self.reno.state().0;
                *cwnd = cwnd.min(ssthresh);
            }
            CongestionKind::Timeout { first } => {
                if first {
                    self.loss(event);
                }
                let ssthresh = *self.reno.state().1;
                self.set(self.mss + event.in_flight.0 as f64, ssthresh);
            }
            CongestionKind::Undo => {
                if let Some((cwnd, ssthresh)) = self.undo.take() {
                    let (c, s) = self.reno.state();
                    (*c, *s) = (c.max(cwnd), ssthresh);
                }
            }
            CongestionKind::RecoveryEnd => self.complete = true,
        }
    }

    /// Rule 8.
    fn on_idle(&mut self) {
        self.forget();
        self.before = None;
        self.differences.clear();
        self.rtt_seq = 0;
        self.complete = false;
        (self.delack, self.backoff_cnt, self.sample_cnt) = (0, 0, 0);
        (self.delay_min, self.train) = (None, None);
        self.shadow_wnd = *self.reno.state().0;
    }

    fn set_window(&mut self, window: Bytes, ssthresh: Bytes) {
        self.reno.set_window(window, ssthresh);
        self.undo = None;
    }

    fn state(&mut self) -> (&mut f64, &mut f64) {
        self.reno.state()
    }
}

/// FreeBSD's `cc_cdg` with its defaults.
pub(super) struct CdgFreeBsd {
    cwnd: f64,
    ssthresh: f64,
    mss: f64,
    whole: bool,
    from_window: bool,
    undo: Option<(f64, f64)>,
    round: Vec<i64>,
    /// What lowered the minimum and may not raise the maximum.
    low: Option<i64>,
    before: Option<(i64, i64)>,
    differences: Vec<(i64, i64)>,
    trend: (i64, i64),
    state: &'static str,
    rtt_seq: u64,
    recover: u64,
    delack: u32,
    shadow_w: f64,
    consec_cong_cnt: u32,
    random: Rng,
}

impl CdgFreeBsd {
    pub(super) fn new(config: &Config) -> CdgFreeBsd {
        CdgFreeBsd {
            cwnd: config.initial_window.0 as f64,
            ssthresh: f64::INFINITY,
            mss: config.mss.0 as f64,
            whole: config.count_segments,
            from_window: config.reduce_from_window,
            undo: None,
            round: Vec::new(),
            low: None,
            before: None,
            differences: Vec::new(),
            trend: (0, 0),
            state: "unknown",
            rtt_seq: 0,
            recover: 0,
            delack: 0,
            shadow_w: config.initial_window.0 as f64,
            consec_cong_cnt: 0,
            random: Rng::for_element(config.seed, "cdg", "back-off"),
        }
    }

    fn down(&self, x: f64) -> f64 {
        if self.whole {
            (x / self.mss + 1e-9).floor() * self.mss
        } else {
            x
        }
    }

    fn cut(&mut self, ssthresh: f64) {
        self.undo = Some((self.cwnd, self.ssthresh));
        self.ssthresh = self.down(ssthresh.round()).max(2.0 * self.mss);
    }

    /// 1 - exp(-g/G) in steps of 1/128, certain beyond five.
    fn prob_backoff(&mut self, qtrend: i64) -> bool {
        if qtrend > 5 * 3 * 128 {
            return true;
        }
        let step = (qtrend + 1) / 3;
        let p = if step == 0 {
            10.0 / 32_768.0
        } else {
            1.0 - libm::exp(-(step as f64) / 128.0)
        };
        self.random.chance(Probability::from_f64(p))
    }

    fn end_round(&mut self, slow_start: bool) -> bool {
        let largest = self.round.iter().max().copied().unwrap_or(0);
        let smallest = self.round.iter().copied().chain(self.low).min().unwrap_or(0);
        let mut congestion = false;
        if let Some(before) = self.before {
            let diff = ((smallest - before.0) * 128, (largest - before.1) * 128);
            self.differences.push(diff);
            let old = match self.differences.len().checked_sub(9) {
                Some(index) => self.differences[index],
                None => (0, 0),
            };
            self.trend.0 += (diff.0 - old.0) / 8;
            self.trend.1 += (diff.1 - old.1) / 8;
            let (min, max) = self.trend;
            let looked_at = [
                (slow_start, diff.0),
                (true, min),
                (slow_start, diff.1),
                (true, max),
            ];
            if let Some((_, gradient)) = looked_at.into_iter().find(|(on, gradient)| *on && *gradient > 0) {
                congestion = self.prob_backoff(gradient);
            }
            match (min.signum(), max.signum()) {
                (1, 0 | -1) => self.state = "full",
                (0, -1) => {
                    self.state = "empty";
                    self.shadow_w = 0.0;
                }
                (1, 1) => self.state = "rising",
                (-1, -1) => self.state = "falling",
                _ => {}
            }
            if min < 0 || max < 0 {
                self.consec_cong_cnt = 0;
            }
        }
        self.before = Some((smallest, largest));
        self.round.clear();
        self.low = None;
        congestion
    }
}

impl Oracle for CdgFreeBsd {
    fn on_ack(&mut self, _now: f64, ack: &Ack<'_>) {
        if ack.delivered_total.0 > self.recover {
            self.recover = 0;
        }
        if let Some(rtt) = ack.rtt.map(|rtt| rtt.as_millis() as i64) {
            let alone = ack.sacked_total.0 == 0;
            if alone && ack.segments == 1 && self.delack > 0 {
                self.delack -= 1;
                if !self.round.is_empty() {
                    self.low = Some(self.low.map_or(rtt, |low| low.min(rtt)));
                }
            } else {
                if alone && ack.segments > 1 && self.delack < 5 {
                    self.delack += 1;
                }
                self.round.push(rtt);
            }
        }
        let new_measurement = ack.delivered_total.0 > self.rtt_seq && !self.round.is_empty();
        let mut congestion = false;
        if new_measurement {
            congestion = self.end_round(self.cwnd <= self.ssthresh);
            self.rtt_seq = ack.delivered_total.0 + ack.in_flight.0;
        }
        if congestion {
            self.consec_cong_cnt += 1;
            if ack.recovering {
                return;
            }
            if self.consec_cong_cnt <= 5 {
                self.cut(self.cwnd * 0.7);
                self.cwnd = self.cwnd.min(self.ssthresh);
                self.recover = self.rtt_seq;
            } else if self.consec_cong_cnt >= 10 {
                self.consec_cong_cnt = 0;
            }
            self.before = None;
            self.shadow_w = self.shadow_w.max(self.cwnd);
        } else if !ack.recovering
            && ack.acked.0 > 0
            && ack.cwnd_limited
            && (self.cwnd <= self.ssthresh || new_measurement)
        {
            self.cwnd += self.mss;
            if self.shadow_w > 0.0 {
                self.shadow_w += self.mss;
            }
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        match event.kind {
            CongestionKind::Loss => {
                if self.recover > 0 || !matches!(self.state, "full" | "unknown") {
                    self.cut(self.cwnd);
                } else {
                    self.shadow_w = self.down((self.shadow_w / 2.0).floor());
                    let kept = self.down((self.cwnd * 0.5).round());
                    self.cut(kept.max(self.shadow_w));
                }
                self.cwnd = self.cwnd.min(self.ssthresh);
            }
            CongestionKind::Ecn | CongestionKind::Delay => {
                self.cut(self.cwnd * 0.5);
                self.cwnd = self.cwnd.min(self.ssthresh);
            }
            CongestionKind::Timeout { first } => {
                if first {
                    let base = if self.from_window {
                        self.cwnd
                    } else {
                        event.flight_size.0 as f64
                    };
                    self.cut(base * 0.5);
                }
                self.cwnd = self.mss + event.in_flight.0 as f64;
            }
            CongestionKind::Undo => {
                if let Some((cwnd, ssthresh)) = self.undo.take() {
                    self.cwnd = self.cwnd.max(cwnd);
                    self.ssthresh = ssthresh;
                }
            }
            CongestionKind::RecoveryEnd => {}
        }
    }

    fn set_window(&mut self, window: Bytes, ssthresh: Bytes) {
        self.cwnd = (window.0 as f64).max(self.mss);
        self.ssthresh = if ssthresh == Bytes::MAX {
            f64::INFINITY
        } else {
            ssthresh.0 as f64
        };
        self.undo = None;
    }

    fn state(&mut self) -> (&mut f64, &mut f64) {
        (&mut self.cwnd, &mut self.ssthresh)
    }
}

/// Vegas with Linux's defaults, in segments.
pub(super) struct Vegas {
    reno: oracle::Reno,
    mss: f64,
    whole: bool,
    base_rtt: Option<u64>,
    round: Vec<u64>,
    beg_snd_nxt: u64,
    enable: bool,
    doing_vegas_now: bool,
    /// SND.NXT where nothing is out.
    snd_una: u64,
}

impl Vegas {
    pub(super) fn new(config: &Config) -> Vegas {
        let plain = Config {
            hystart: HyStart::Off,
            ..*config
        };
        Vegas {
            reno: oracle::Reno::new(&plain, false),
            mss: config.mss.0 as f64,
            whole: config.count_segments,
            base_rtt: None,
            round: Vec::new(),
            beg_snd_nxt: 0,
            enable: false,
            doing_vegas_now: true,
            snd_una: 0,
        }
    }

    fn down(&self, x: f64) -> f64 {
        if self.whole {
            (x / self.mss + 1e-9).floor() * self.mss
        } else {
            x.floor()
        }
    }

    fn end_of_round(&mut self, now: f64, ack: &Ack<'_>) {
        let (cwnd, ssthresh) = self.reno.state();
        let (cwnd, ssthresh) = (*cwnd, *ssthresh);
        let (Some(base), Some(rtt)) = (self.base_rtt, self.round.iter().min().copied()) else {
            return;
        };
        let target = (cwnd * base as f64 / rtt as f64).floor();
        let diff = (((cwnd * (rtt - base) as f64 / base as f64).floor()) / self.mss).floor();
        let slow_start = cwnd < ssthresh;
        if slow_start && diff <= 1.0 {
            self.reno.on_ack(now, ack);
            return;
        }
        let mut next = cwnd;
        let mut thresh = ssthresh;
        if slow_start {
            next = cwnd.min(self.down(target) + self.mss);
        } else if diff > 4.0 {
            next = cwnd - self.mss;
        } else if diff < 2.0 {
            next = cwnd + self.mss;
        }
        next = next.max((2.0 * self.mss).min(cwnd));
        if slow_start || diff > 4.0 {
            thresh = thresh.min(next - self.mss).max(2.0 * self.mss);
        }
        thresh = thresh.max(self.down((next / 2.0).floor()) + self.down((next / 4.0).floor()));
        let (c, s) = self.reno.state();
        (*c, *s) = (next, thresh);
    }
}

impl Oracle for Vegas {
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>) {
        self.snd_una = ack.delivered_total.0;
        if let Some(rtt) = ack.rtt.map(|rtt| rtt.as_micros().max(1)) {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.round.push(rtt);
        }
        if ack.recovering {
            return;
        }
        if !self.doing_vegas_now {
            return self.reno.on_ack(now, ack); // "Reno mode"
        }
        let snd_nxt = ack.delivered_total.0 + ack.in_flight.0;
        if core::mem::take(&mut self.enable) {
            self.beg_snd_nxt = snd_nxt;
            self.round.clear();
        }
        if !ack.cwnd_limited || ack.acked.0 == 0 {
            return;
        }
        if ack.delivered_total.0 > self.beg_snd_nxt {
            if self.round.len() <= 2 {
                self.reno.on_ack(now, ack);
            } else {
                self.end_of_round(now, ack);
            }
            self.beg_snd_nxt = snd_nxt;
            self.round.clear();
        } else {
            let (cwnd, ssthresh) = self.reno.state();
            if *cwnd < *ssthresh {
                self.reno.on_ack(now, ack);
            }
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.reno.on_congestion(event);
        match event.kind {
            CongestionKind::Timeout { .. } => self.doing_vegas_now = false, // vegas_disable
            CongestionKind::RecoveryEnd => {
                self.doing_vegas_now = true; // vegas_enable
                self.enable = true;
            }
            CongestionKind::Loss | CongestionKind::Ecn | CongestionKind::Delay | CongestionKind::Undo => {}
        }
    }

    /// `tcp_vegas_init`, for CA_EVENT_CWND_RESTART and, without a pause, CA_EVENT_TX_START: before the segment leaves.
    fn on_restart(&mut self, _now: f64, _idle: f64) {
        self.base_rtt = None;
        self.round.clear();
        self.beg_snd_nxt = self.snd_una;
        self.enable = false;
    }

    fn set_window(&mut self, window: Bytes, ssthresh: Bytes) {
        self.reno.set_window(window, ssthresh);
    }

    fn state(&mut self) -> (&mut f64, &mut f64) {
        self.reno.state()
    }
}

/// Linux's `tcp_westwood` in jiffies of a millisecond.
pub(super) struct Westwood {
    reno: oracle::Reno,
    mss: u64,
    rtt_win_sx: Option<u64>,
    bk: u64,
    accounted: u64,
    bw_ns_est: u64,
    bw_est: u64,
    rtt: u64,
    rtt_min: u64,
    reset_rtt_min: bool,
    complete_cwr: bool,
}

impl Westwood {
    pub(super) fn new(config: &Config) -> Westwood {
        let plain = Config {
            hystart: HyStart::Off,
            ..*config
        };
        Westwood {
            reno: oracle::Reno::new(&plain, false),
            mss: config.mss.0,
            rtt_win_sx: None,
            bk: 0,
            accounted: 0,
            bw_ns_est: 0,
            bw_est: 0,
            rtt: 20_000,
            rtt_min: 20_000,
            reset_rtt_min: true,
            complete_cwr: false,
        }
    }

    fn acked_count(&mut self, mut cumul_ack: u64) -> u64 {
        if cumul_ack == 0 {
            self.accounted += self.mss;
            cumul_ack = self.mss;
        }
        if cumul_ack > self.mss {
            if self.accounted >= cumul_ack {
                self.accounted -= cumul_ack;
                cumul_ack = self.mss;
            } else {
                cumul_ack -= self.accounted;
                self.accounted = 0;
            }
        }
        cumul_ack
    }

    fn bw_rttmin(&self) -> f64 {
        (self.bw_est * self.rtt_min / self.mss).max(2) as f64 * self.mss as f64
    }
}

impl Oracle for Westwood {
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>) {
        let jiffies = (now * 1e9).round() as u64 / 1_000_000;
        if let Some(rtt) = ack.rtt.filter(|rtt| rtt.as_micros() > 0) {
            self.rtt = (rtt.as_micros() as f64 / 1e3).ceil() as u64;
        }
        if let Some(begin) = self.rtt_win_sx {
            let delta = jiffies - begin;
            if delta > self.rtt.max(50) {
                let sample = self.bk / delta;
                if self.bw_ns_est == 0 && self.bw_est == 0 {
                    self.bw_ns_est = sample;
                    self.bw_est = sample;
                } else {
                    self.bw_ns_est = (7 * self.bw_ns_est + sample) / 8;
                    self.bw_est = (7 * self.bw_est + self.bw_ns_est) / 8;
                }
                self.bk = 0;
                self.rtt_win_sx = Some(jiffies);
            }
            self.bk += self.acked_count(ack.acked.0);
        } else {
            self.rtt_win_sx = Some(jiffies);
        }
        if self.reset_rtt_min || self.rtt < self.rtt_min {
            self.rtt_min = self.rtt;
        }
        self.reset_rtt_min = false;
        self.reno.on_ack(now, ack);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.reno.on_congestion(event);
        let limit = self.bw_rttmin();
        let (cwnd, ssthresh) = self.reno.state();
        match event.kind {
            CongestionKind::Timeout { first } => {
                self.complete_cwr = false;
                if first {
                    *ssthresh = limit;
                    self.reset_rtt_min = true;
                }
            }
            CongestionKind::RecoveryEnd if self.complete_cwr => {
                (*cwnd, *ssthresh) = (limit, limit);
                self.complete_cwr = false;
            }
            CongestionKind::Loss | CongestionKind::Ecn | CongestionKind::Delay => self.complete_cwr = true,
            CongestionKind::RecoveryEnd | CongestionKind::Undo => {}
        }
    }

    fn set_window(&mut self, window: Bytes, ssthresh: Bytes) {
        self.reno.set_window(window, ssthresh);
    }

    fn state(&mut self) -> (&mut f64, &mut f64) {
        self.reno.state()
    }
}
