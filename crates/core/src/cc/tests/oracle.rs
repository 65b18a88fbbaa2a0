//! Second, naive transcriptions of the published algorithms: floating-point segments, `Option` for infinity, one
//! function per clause, no sharing with the code under test.

use super::super::{Ack, Config, Congestion, CongestionKind, CubicArithmetic, HyStart};

use super::driver::Input;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::vec::Vec;

/// What a naive algorithm is asked after every call.
pub(super) trait Oracle {
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>);
    /// Whether the acknowledgment before asks for a reduction.
    fn wants_reduction(&mut self) -> bool {
        false
    }
    fn on_congestion(&mut self, event: &Congestion);
    fn on_idle(&mut self) {}
    fn on_restart(&mut self, _now: f64, _idle: f64) {}
    fn set_window(&mut self, window: Bytes, ssthresh: Bytes);
    /// The same input as the controller's.
    fn hear(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Ack(ack, reduce) => {
                self.on_ack(seconds(now), ack);
                assert_eq!(self.wants_reduction(), reduce, "a back-off");
            }
            Input::Congestion(event) => self.on_congestion(event),
            Input::Idle(idle) => {
                self.on_idle();
                self.on_restart(seconds(now), idle.as_nanos() as f64 / 1e9);
            }
            Input::SetWindow(window, ssthresh) => self.set_window(window, ssthresh),
        }
    }
    /// Window and threshold in bytes, the threshold infinite before the first event.
    fn state(&mut self) -> (&mut f64, &mut f64);
}

pub(super) fn seconds(now: Instant) -> f64 {
    now.as_nanos() as f64 / 1e9
}

fn floor_to(unit: f64, x: f64) -> f64 {
    (x / unit + 1e-9).floor() * unit
}

/// The window in bytes with what slow start needs.
struct Base {
    cwnd: f64,
    ssthresh: f64,
    mss: f64,
    unit: f64,
    l: f64,
    from_window: bool,
    credit: f64,
    plus: Option<Plus>,
    hystart: Option<Original>,
}

/// RFC 9406 4.2, times in ms.
struct Plus {
    last_round_min_rtt: Option<f64>,
    current_round_min_rtt: Option<f64>,
    rtt_sample_count: u32,
    css_baseline_min_rtt: Option<f64>,
    css_rounds: u32,
}

/// The original HyStart, times in ms.
struct Original {
    delay_min: f64,
    round: Option<(f64, f64)>, // begin of the round and last ACK of the train
    samples: Vec<f64>,
    over: bool,
    paced: bool,
}

impl Base {
    fn new(config: &Config, cubic: bool) -> Base {
        let mss = config.mss.0 as f64;
        Base {
            cwnd: config.initial_window.0 as f64,
            ssthresh: f64::INFINITY,
            mss,
            unit: if config.count_segments { mss } else { 1.0 },
            l: config.abc_limit.map_or(f64::INFINITY, f64::from),
            from_window: config.reduce_from_window,
            credit: 0.0,
            plus: (config.hystart == HyStart::HyStartPlusPlus).then_some(Plus {
                last_round_min_rtt: None,
                current_round_min_rtt: None,
                rtt_sample_count: 0,
                css_baseline_min_rtt: None,
                css_rounds: 0,
            }),
            hystart: (config.hystart == HyStart::HyStart || cubic && config.hystart == HyStart::Linux)
                .then(|| Original::new(config.paced)),
        }
    }

    /// Slow start's part of an ACK; returns the bytes that congestion avoidance gets.
    fn slow_start(&mut self, now: f64, ack: &Ack<'_>) -> f64 {
        let n = ack.acked.0 as f64;
        let may_grow = ack.cwnd_limited && n > 0.0;
        let rtt_ms = ack.rtt.map(|rtt| rtt.as_nanos() as f64 / 1e6);
        // hystart_ack_delay: four packets of 64 KiB at twice the window per RTT, at most 1 ms
        let ack_delay = ack.srtt.map_or(0.0, |srtt| {
            (262_144.0 * srtt.as_secs_f64() / (2.0 * self.cwnd) * 1e3).min(1.0)
        });
        let exit_before = match (&mut self.hystart, &mut self.plus) {
            (Some(detector), _) => rtt_ms.is_some_and(|rtt| {
                detector.found(now * 1e3, rtt, ack.round_start, self.cwnd / self.mss, ack_delay)
            }),
            (_, Some(plus)) if ack.round_start => plus.new_round(),
            _ => false,
        };
        if exit_before {
            self.ssthresh = self.cwnd;
            self.plus = None;
            return if may_grow { n } else { 0.0 };
        }
        let mut left = 0.0;
        if may_grow {
            let divisor = if self
                .plus
                .as_ref()
                .is_some_and(|plus| plus.css_baseline_min_rtt.is_some())
            {
                4.0
            } else {
                1.0
            };
            let earned = self.credit + (n.min(self.l * self.mss) / divisor).floor();
            let grown = floor_to(self.unit, earned);
            self.credit = earned - grown;
            if self.cwnd + grown >= self.ssthresh {
                left = (self.cwnd + grown - self.ssthresh).min(n);
                self.cwnd = self.ssthresh;
                self.credit = 0.0;
            } else {
                self.cwnd += grown;
            }
        }
        if let (Some(plus), Some(rtt)) = (&mut self.plus, rtt_ms) {
            plus.sample(rtt);
        }
        left
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn base(&self, event: &Congestion) -> f64 {
        if self.from_window {
            self.cwnd
        } else {
            event.flight_size.0 as f64
        }
    }

    fn restart(&mut self) {
        self.credit = 0.0;
        if let Some(detector) = &self.hystart {
            self.hystart = Some(Original::new(detector.paced));
        }
    }
}

impl Plus {
    fn new_round(&mut self) -> bool {
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_sample_count = 0;
        if self.css_baseline_min_rtt.is_some() {
            self.css_rounds += 1;
        }
        self.css_rounds == 5
    }

    fn sample(&mut self, rtt: f64) {
        self.current_round_min_rtt = Some(self.current_round_min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.rtt_sample_count += 1;
        let current = self.current_round_min_rtt.expect("just set");
        if self.rtt_sample_count < 8 {
        } else if let Some(baseline) = self.css_baseline_min_rtt {
            if current < baseline {
                self.css_baseline_min_rtt = None;
                self.css_rounds = 0;
            }
        } else if let Some(last) = self.last_round_min_rtt {
            let rtt_thresh = (last / 8.0).clamp(4.0, 16.0);
            if current >= last + rtt_thresh {
                self.css_baseline_min_rtt = Some(current);
            }
        }
    }
}

impl Original {
    fn new(paced: bool) -> Original {
        Original {
            delay_min: f64::INFINITY,
            round: None,
            samples: Vec::new(),
            over: false,
            paced,
        }
    }

    fn found(&mut self, now: f64, rtt: f64, round_start: bool, segments: f64, ack_delay: f64) -> bool {
        self.delay_min = self.delay_min.min(rtt);
        if self.over {
            return false;
        }
        if round_start || self.round.is_none() {
            self.round = Some((now, now));
            self.samples.clear();
        }
        let (begin, last) = self.round.expect("just set");
        if segments < 16.0 {
            return false;
        }
        let mut found = false;
        if now - last <= 2.0 {
            self.round = Some((begin, now));
            let threshold = self.delay_min + ack_delay; // hystart_update: halved if sk_pacing_status is SK_PACING_NONE
            found = now - begin > if self.paced { threshold } else { threshold / 2.0 };
        }
        self.samples.push(rtt);
        if self.samples.len() > 8 {
            let least = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
            found |= least > self.delay_min + (self.delay_min / 8.0).clamp(4.0, 16.0);
        }
        self.over = found;
        found
    }
}

/// RFC 5681 with RFC 3465; with `dctcp`, RFC 8257.
pub(super) struct Reno {
    base: Base,
    bytes_acked: f64,
    undo: Option<(f64, f64)>,
    pub(super) dctcp: Option<Dctcp>,
}

pub(super) struct Dctcp {
    pub(super) alpha: f64,
    bytes_acked: f64,
    bytes_marked: f64,
}

impl Reno {
    pub(super) fn new(config: &Config, dctcp: bool) -> Reno {
        let dctcp = dctcp.then_some(Dctcp {
            alpha: 1.0,
            bytes_acked: 0.0,
            bytes_marked: 0.0,
        });
        Reno {
            base: Base::new(config, false),
            bytes_acked: 0.0,
            undo: None,
            dctcp,
        }
    }

    fn reduce(&mut self, base: f64, factor: f64) {
        self.undo = Some((self.base.cwnd, self.base.ssthresh));
        self.base.ssthresh = floor_to(self.base.unit, (base * factor).round()).max(2.0 * self.base.mss);
        self.bytes_acked = 0.0;
        self.base.plus = None;
        self.base.credit = 0.0;
    }
}

impl Oracle for Reno {
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>) {
        if let Some(dctcp) = &mut self.dctcp {
            dctcp.bytes_acked += (ack.acked.0 + ack.sacked.0) as f64;
            dctcp.bytes_marked += ack.ce_bytes.0 as f64;
            if ack.round_start {
                if dctcp.bytes_acked > 0.0 {
                    let m = (dctcp.bytes_marked / dctcp.bytes_acked).min(1.0);
                    dctcp.alpha = dctcp.alpha * (1.0 - 1.0 / 16.0) + m / 16.0;
                }
                (dctcp.bytes_acked, dctcp.bytes_marked) = (0.0, 0.0);
            }
        }
        if ack.recovering {
            return;
        }
        let mut n = ack.acked.0 as f64;
        if self.base.in_slow_start() {
            n = self.base.slow_start(now, ack);
        }
        // An ACK that slow start used up adds nothing here, also where Westwood left more counted than a window.
        if n == 0.0 || !ack.cwnd_limited {
            return;
        }
        self.bytes_acked += n;
        let cwnd = self.base.cwnd;
        while self.bytes_acked >= cwnd {
            self.bytes_acked -= cwnd;
            self.base.cwnd += self.base.mss;
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        match event.kind {
            CongestionKind::Ecn if self.dctcp.is_some() => {
                let alpha = self.dctcp.as_ref().map_or(1.0, |dctcp| dctcp.alpha);
                // RFC 8257 3.3 (9), always from the window; in segments `dctcp_ssthresh`: cwnd - ((cwnd * alpha) >> 11).
                self.reduce(self.base.cwnd, 1.0 - alpha / 2.0);
                if self.base.unit > 1.0 {
                    let taken = floor_to(self.base.unit, (self.base.cwnd * alpha / 2.0).round());
                    self.base.ssthresh = (self.base.cwnd - taken).max(2.0 * self.base.mss);
                }
                self.base.cwnd = self.base.ssthresh;
            }
            CongestionKind::Loss | CongestionKind::Ecn | CongestionKind::Delay => {
                self.reduce(self.base.base(event), 0.5);
                self.base.cwnd = self.base.ssthresh;
            }
            CongestionKind::Timeout { first } => {
                if first {
                    self.reduce(self.base.base(event), 0.5);
                }
                self.base.cwnd = self.base.mss + event.in_flight.0 as f64;
                self.bytes_acked = 0.0;
                self.base.restart();
            }
            CongestionKind::Undo => {
                if let Some((cwnd, ssthresh)) = self.undo.take() {
                    self.base.cwnd = self.base.cwnd.max(cwnd);
                    self.base.ssthresh = ssthresh;
                }
            }
            CongestionKind::RecoveryEnd => {}
        }
    }

    fn set_window(&mut self, window: Bytes, ssthresh: Bytes) {
        self.base.cwnd = (window.0 as f64).max(self.base.mss);
        self.base.ssthresh = if ssthresh == Bytes::MAX {
            f64::INFINITY
        } else {
            ssthresh.0 as f64
        };
        self.bytes_acked = 0.0;
        self.undo = None;
        self.base.restart();
    }

    fn state(&mut self) -> (&mut f64, &mut f64) {
        (&mut self.base.cwnd, &mut self.base.ssthresh)
    }
}

/// RFC 9438 4, in segments and seconds.
pub(super) struct Cubic {
    base: Base,
    w_max: Option<f64>,
    cwnd_prior: Option<f64>,
    k: f64,
    w_est: f64,
    /// Time in congestion avoidance that counts, and the time up to which it was counted; `None` between stages.
    t: Option<(f64, f64)>,
    /// The time since the last growth does not count.
    app_limited: bool,
    undo: Option<Saved>,
}

/// cwnd, ssthresh, W_max, cwnd_prior, K, W_est, epoch, whether the clock stands, credit.
type Saved = (
    f64,
    f64,
    Option<f64>,
    Option<f64>,
    f64,
    f64,
    Option<(f64, f64)>,
    bool,
    f64,
);

const C: f64 = 0.4;
const BETA: f64 = 0.7;

impl Cubic {
    pub(super) fn new(config: &Config) -> Cubic {
        Cubic {
            base: Base::new(config, true),
            w_max: None,
            cwnd_prior: None,
            k: 0.0,
            w_est: 0.0,
            t: None,
            app_limited: false,
            undo: None,
        }
    }

    fn congestion(&mut self, event: &Congestion, least: f64) {
        let b = &self.base;
        self.undo = Some((
            b.cwnd,
            b.ssthresh,
            self.w_max,
            self.cwnd_prior,
            self.k,
            self.w_est,
            self.t,
            self.app_limited,
            b.credit,
        ));
        let cwnd = self.base.cwnd / self.base.mss;
        self.w_max = Some(match self.w_max {
            Some(w_max) if cwnd < w_max => cwnd * (1.0 + BETA) / 2.0,
            _ => cwnd,
        });
        self.cwnd_prior = Some(cwnd);
        let reduced = floor_to(self.base.unit, (self.base.base(event) * BETA).round());
        self.base.ssthresh = reduced.max(2.0 * self.base.mss);
        self.base.cwnd = reduced.max(least * self.base.mss);
        self.t = None;
        self.base.credit = 0.0;
        self.base.plus = None;
    }
}

impl Oracle for Cubic {
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>) {
        if ack.recovering {
            return;
        }
        let mut n = ack.acked.0 as f64;
        if self.base.in_slow_start() {
            n = self.base.slow_start(now, ack);
        }
        if n == 0.0 {
            return;
        }
        if !ack.cwnd_limited {
            self.app_limited |= self.t.is_some();
            return;
        }
        let mss = self.base.mss;
        let cwnd = self.base.cwnd / mss;
        let (mut t, until) = self.t.unwrap_or_else(|| {
            self.cwnd_prior.get_or_insert(cwnd);
            self.app_limited = false;
            self.base.credit = 0.0;
            self.w_est = cwnd;
            match self.w_max {
                Some(w_max) if w_max > cwnd => self.k = ((w_max - cwnd) / C).cbrt(),
                _ => {
                    self.w_max = Some(cwnd);
                    self.k = 0.0;
                }
            }
            (0.0, now)
        });
        if !self.app_limited {
            t += now - until;
        }
        self.app_limited = false;
        self.t = Some((t, now));
        let w_max = self.w_max.expect("set with the epoch");
        let w_cubic = |t: f64| C * (t - self.k).powi(3) + w_max;
        let alpha = if self.w_est >= self.cwnd_prior.expect("set with the epoch") {
            1.0
        } else {
            3.0 * (1.0 - BETA) / (1.0 + BETA)
        };
        self.w_est += alpha * (n / mss) / cwnd;
        if w_cubic(t) < self.w_est {
            self.base.cwnd = self.base.cwnd.max(floor_to(self.base.unit, self.w_est * mss));
            self.base.credit = 0.0;
        } else {
            let ahead = w_cubic(t + ack.srtt.map_or(0.0, Duration::as_secs_f64));
            let target = if ahead < cwnd {
                cwnd
            } else if ahead > 1.5 * cwnd {
                1.5 * cwnd
            } else {
                ahead
            };
            self.base.credit += (target - cwnd) / cwnd * n;
            let grown = floor_to(self.base.unit, self.base.credit);
            self.base.credit -= grown;
            self.base.cwnd += grown;
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        match event.kind {
            CongestionKind::Loss | CongestionKind::Delay => self.congestion(event, 2.0),
            CongestionKind::Ecn => self.congestion(event, 1.0),
            CongestionKind::Timeout { first } => {
                if first {
                    self.congestion(event, 2.0);
                }
                self.base.cwnd = self.base.mss + event.in_flight.0 as f64;
                self.w_max = None;
                self.t = None;
                self.base.restart();
            }
            CongestionKind::Undo => {
                if let Some((cwnd, ssthresh, w_max, prior, k, w_est, t, limited, credit)) = self.undo.take()
                    && self.base.cwnd < cwnd
                {
                    (self.base.cwnd, self.base.ssthresh, self.base.credit) = (cwnd, ssthresh, credit);
                    (self.w_max, self.cwnd_prior, self.k, self.w_est) = (w_max, prior, k, w_est);
                    (self.t, self.app_limited) = (t, limited);
                }
            }
            CongestionKind::RecoveryEnd => {}
        }
    }

    fn on_idle(&mut self) {
        self.app_limited |= self.t.is_some();
    }

    fn set_window(&mut self, window: Bytes, ssthresh: Bytes) {
        self.base.cwnd = (window.0 as f64).max(self.base.mss);
        self.base.ssthresh = if ssthresh == Bytes::MAX {
            f64::INFINITY
        } else {
            ssthresh.0 as f64
        };
        self.t = None;
        self.undo = None;
        self.base.restart();
    }

    fn state(&mut self) -> (&mut f64, &mut f64) {
        (&mut self.base.cwnd, &mut self.base.ssthresh)
    }
}

/// Linux's `tcp_cubic.c`, clause by clause with the kernel's names. Jiffies from the clock's begin, 250 a second.
pub(super) struct CubicLinux {
    base: Base,
    cnt: i64,
    snd_cwnd_cnt: i64,
    last_max_cwnd: i64,
    last_cwnd: i64,
    last_time: i64,
    bic_origin_point: i64,
    bic_k: i64,
    delay_min: Option<f64>, // us
    epoch_start: Option<i64>,
    ack_cnt: i64,
    tcp_cwnd: i64,
    prior: Option<(f64, f64)>,
    arithmetic: CubicArithmetic,
}

/// The kernel's table `v` for `x` from 8 on, as the steps from one entry to the next; the first is 123.
const STEPS: &[u8; 55] = b"6545445143423332423223212223222222121222122121221122112";

fn table(x: usize) -> i64 {
    let steps = STEPS.iter().take(x - 8).map(|step| i64::from(step - b'0'));
    123 + steps.sum::<i64>()
}

fn fls64(a: u64) -> u32 {
    (0..64)
        .rev()
        .find(|bit| a >> bit & 1 == 1)
        .map_or(0, |bit| bit + 1)
}

fn cubic_root(a: u64) -> i64 {
    let b = ((fls64(a) * 84) >> 8) - 1;
    let x = ((table((a >> (b * 3)) as usize) + 10) << b) >> 6;
    let x = 2 * x + a as i64 / (x * (x - 1));
    (x * 341) >> 10
}

fn jiffies(seconds: f64) -> i64 {
    (seconds * 250.0 + 1e-6).floor() as i64
}

impl CubicLinux {
    pub(super) fn new(config: &Config) -> CubicLinux {
        CubicLinux {
            base: Base::new(config, true),
            cnt: 0,
            snd_cwnd_cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_time: 0,
            bic_origin_point: 0,
            bic_k: 0,
            delay_min: None,
            epoch_start: None,
            ack_cnt: 0,
            tcp_cwnd: 0,
            prior: None,
            arithmetic: config.cubic_arithmetic,
        }
    }

    fn cwnd(&self) -> i64 {
        (self.base.cwnd / self.base.mss + 1e-9).floor() as i64
    }

    fn bictcp_update(&mut self, now: i64, cwnd: i64, acked: i64) {
        self.ack_cnt += acked;
        if self.last_cwnd == cwnd && now - self.last_time <= 7 {
            return;
        }
        if !(self.epoch_start.is_some() && now == self.last_time) {
            self.last_cwnd = cwnd;
            self.last_time = now;
            if self.epoch_start.is_none() {
                self.epoch_start = Some(now);
                self.ack_cnt = acked;
                self.tcp_cwnd = cwnd;
                if self.last_max_cwnd <= cwnd {
                    self.bic_k = 0;
                    self.bic_origin_point = cwnd;
                } else {
                    let cube_factor = (1_u64 << 40) / 410;
                    self.bic_k = cubic_root(cube_factor * (self.last_max_cwnd - cwnd) as u64);
                    self.bic_origin_point = self.last_max_cwnd;
                }
            }
            let delay = self.delay_min.map_or(0, |us| (us / 4000.0 - 1e-6).ceil() as i64);
            let t = ((now - self.epoch_start.expect("just set") + delay) << 10) / 250;
            let offs = i128::from((t - self.bic_k).abs());
            let delta = ((410 * offs * offs * offs) >> 40) as i64;
            let bic_target = if t < self.bic_k {
                self.bic_origin_point - delta
            } else {
                self.bic_origin_point + delta
            };
            self.cnt = if bic_target > cwnd {
                cwnd / (bic_target - cwnd)
            } else {
                100 * cwnd
            };
            if self.last_max_cwnd == 0 && self.cnt > 20 {
                self.cnt = 20;
            }
        }
        let delta = (cwnd * 15) >> 3;
        while self.ack_cnt > delta {
            self.ack_cnt -= delta;
            self.tcp_cwnd += 1;
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
        self.cnt = self.cnt.max(2);
    }

    fn tcp_cong_avoid_ai(&mut self, acked: i64) {
        let w = self.cnt;
        if self.snd_cwnd_cnt >= w {
            self.snd_cwnd_cnt = 0;
            self.base.cwnd += self.base.mss;
        }
        self.snd_cwnd_cnt += acked;
        while self.snd_cwnd_cnt >= w {
            self.snd_cwnd_cnt -= w;
            self.base.cwnd += self.base.mss;
        }
    }

    fn recalc_ssthresh(&mut self) {
        let cwnd = self.cwnd();
        let current = self
            .base
            .ssthresh
            .max(((cwnd >> 1) + (cwnd >> 2)) as f64 * self.base.mss);
        self.prior = Some((self.base.cwnd, current));
        self.epoch_start = None;
        self.snd_cwnd_cnt = 0;
        self.last_max_cwnd = if cwnd < self.last_max_cwnd {
            cwnd * (1024 + 717) / 2048
        } else {
            cwnd
        };
        self.base.ssthresh = (cwnd * 717 / 1024).max(2) as f64 * self.base.mss;
        self.base.credit = 0.0;
        self.base.plus = None;
    }
}

impl Oracle for CubicLinux {
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>) {
        let early = self.epoch_start.is_some_and(|start| jiffies(now) - start < 250);
        let mut report = *ack;
        match ack.rtt {
            Some(rtt) if !early => {
                let us = (rtt.as_nanos() as f64 / 1e3).max(1.0);
                self.delay_min = Some(self.delay_min.map_or(us, |min| min.min(us)));
            }
            _ => report.rtt = None,
        }
        if let (Some(detector), Some(us)) = (&mut self.base.hystart, self.delay_min) {
            detector.delay_min = us / 1e3;
        }
        if ack.recovering {
            return;
        }
        let mut n = if ack.cwnd_limited { ack.acked.0 as f64 } else { 0.0 };
        if self.base.in_slow_start() {
            let before = self.base.ssthresh;
            n = self.base.slow_start(now, &report);
            if self.base.ssthresh != before && ack.app_limited {
                return;
            }
        }
        if n > 0.0 {
            let acked = (n / self.base.mss - 1e-9).ceil() as i64;
            let cwnd = self.cwnd();
            self.bictcp_update(jiffies(now), cwnd, acked);
            self.tcp_cong_avoid_ai(acked);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        match event.kind {
            CongestionKind::Loss | CongestionKind::Delay | CongestionKind::Ecn => {
                self.recalc_ssthresh();
                self.base.cwnd = self.base.ssthresh;
            }
            CongestionKind::Timeout { first } => {
                if first {
                    self.recalc_ssthresh();
                }
                self.base.cwnd = self.base.mss + event.in_flight.0 as f64;
                (self.cnt, self.snd_cwnd_cnt, self.last_max_cwnd, self.last_cwnd) = (0, 0, 0, 0);
                (self.last_time, self.bic_origin_point, self.bic_k) = (0, 0, 0);
                (self.delay_min, self.epoch_start, self.ack_cnt, self.tcp_cwnd) = (None, None, 0, 0);
                self.base.restart();
            }
            CongestionKind::Undo => {
                if let Some((cwnd, ssthresh)) = self.prior.take() {
                    self.base.cwnd = self.base.cwnd.max(cwnd);
                    self.base.ssthresh = self.base.ssthresh.max(ssthresh);
                }
            }
            CongestionKind::RecoveryEnd => {}
        }
    }

    fn on_restart(&mut self, now: f64, idle: f64) {
        // tcp_cubic: better follow cubic curve after idle period (2015), in 4.3
        if self.arithmetic == CubicArithmetic::LinuxBefore43 {
            return;
        }
        if let Some(start) = self.epoch_start {
            let shifted = start + jiffies(now) - jiffies(now - idle);
            self.epoch_start = Some(shifted.min(jiffies(now)));
        }
    }

    fn set_window(&mut self, window: Bytes, ssthresh: Bytes) {
        self.base.cwnd = floor_to(self.base.unit, window.0 as f64).max(self.base.mss);
        self.base.ssthresh = if ssthresh == Bytes::MAX {
            f64::INFINITY
        } else {
            ssthresh.0 as f64
        };
    }

    fn state(&mut self) -> (&mut f64, &mut f64) {
        (&mut self.base.cwnd, &mut self.base.ssthresh)
    }
}
