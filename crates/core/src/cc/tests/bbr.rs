//! BBR version 1 beside a naive transcription of draft-cardwell-iccrg-bbr-congestion-control-00: whole histories instead of
//! rings, one function per function of the draft, with its names.
//!
//! Where the code departs (head of `bbr.rs`) the transcription does: the first window is unpaced, a timeout is a recovery, and
//! what 4.2.3.4 sets the window to when a recovery begins is PRR's in the endpoint. With `linux` the transcription has what
//! `tcp_bbr.c` adds, in segments, with all that was ever acknowledged at hand.

use super::super::{Ack, Bbr, Config, CongestionController, CongestionKind, HyStart, RateSample};
use super::{MSS, ack, config, congestion};
use crate::parameter::Values;
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

const HIGH_GAIN: f64 = 2.885;
const GAIN_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

struct Naive {
    state: State,
    cwnd: f64,
    prior_cwnd: f64,
    /// 0: open, 1: recovery, 2: loss; `prev_ca_state`, `icsk_ca_state`.
    prev_ca_state: u8,
    ca_state: u8,
    packet_conservation: bool,
    idle_restart: bool,
    delivered: u64,
    next_round_delivered: u64,
    round_count: u64,
    round_start: bool,
    /// Every sample with its round.
    samples: Vec<(u64, f64)>,
    full_bw: f64,
    full_bw_count: u32,
    filled_pipe: bool,
    rtprop: Option<f64>,
    rtprop_stamp: f64,
    rtprop_expired: bool,
    probe_rtt_done_stamp: Option<f64>,
    probe_rtt_round_done: bool,
    /// C.app_limited, and what it was after each ACK, by what had been delivered.
    limit: u64,
    app_limited: Vec<(u64, u64)>,
    cycle_index: usize,
    cycle_stamp: f64,
    pacing_rate: f64,
    random: Rng,
    linux: bool,
    /// `ack_epoch_mstamp`, `ack_epoch_acked`, and every `extra_acked` with its round.
    epoch: (f64, u64),
    extra_acked: Vec<(u64, f64)>,
}

const INITIAL: f64 = (10 * MSS) as f64;
const SMSS: f64 = MSS as f64;

impl Naive {
    fn new(config: &Config, linux: bool) -> Naive {
        Naive {
            state: State::Startup,
            cwnd: INITIAL,
            prior_cwnd: 0.0,
            prev_ca_state: 0,
            ca_state: 0,
            packet_conservation: false,
            idle_restart: false,
            delivered: 0,
            next_round_delivered: 0,
            round_count: 0,
            round_start: false,
            samples: Vec::new(),
            full_bw: 0.0,
            full_bw_count: 0,
            filled_pipe: false,
            rtprop: None,
            rtprop_stamp: 0.0,
            rtprop_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            limit: 0,
            app_limited: Vec::new(),
            cycle_index: 0,
            cycle_stamp: 0.0,
            pacing_rate: 0.0,
            random: Rng::for_element(config.seed, "bbr", "cycle"),
            linux,
            epoch: (0.0, 0),
            extra_acked: Vec::new(),
        }
    }

    /// The windowed maximum over ten rounds.
    fn btl_bw(&self) -> f64 {
        // In Linux (`minmax_running_max`) time passes with samples.
        let newest = self.samples.last().map_or(0, |sample| sample.0);
        let now = if self.linux { newest } else { self.round_count };
        let recent = self.samples.iter().filter(|(round, _)| round + 10 > now);
        recent.map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    fn inflight(&self, gain: f64) -> f64 {
        self.inflight_and(gain, 0.0)
    }

    /// `bbr_bdp`, `aggregated` segments more, `bbr_quantization_budget`.
    fn inflight_and(&self, gain: f64, aggregated: f64) -> f64 {
        let Some(rtprop) = self.rtprop.filter(|_| self.btl_bw() > 0.0) else {
            return INITIAL;
        };
        let bdp = (gain * self.btl_bw() * rtprop).floor();
        if !self.linux {
            return bdp + 3.0 * SMSS;
        }
        let mut cwnd = (bdp / SMSS).ceil() + aggregated + 3.0 * self.tso_segs_goal();
        cwnd += cwnd % 2.0;
        if self.state == State::ProbeBw && self.cycle_index == 0 {
            cwnd += 2.0;
        }
        cwnd * SMSS
    }

    /// `bbr_tso_segs_goal`: rate >> 10, at least `bbr_min_tso_segs`, at most a GSO packet.
    fn tso_segs_goal(&self) -> f64 {
        let bytes = (self.pacing_rate / 1024.0).floor().min(65536.0 - 1.0 - 320.0);
        let min_tso_segs = if self.pacing_rate < 1_200_000.0 / 8.0 {
            1.0
        } else {
            2.0
        };
        (bytes / SMSS).floor().max(min_tso_segs).min(127.0)
    }

    /// `bbr_update_ack_aggregation`.
    fn update_ack_aggregation(&mut self, now: f64, rate: Option<&RateSample>, acked: u64) {
        if rate.is_none() || acked == 0 {
            return;
        }
        let mut expected = (self.btl_bw() * (now - self.epoch.0) + 1e-6).floor();
        if self.epoch.1 as f64 <= expected {
            self.epoch = (now, 0);
            expected = 0.0;
        }
        self.epoch.1 += acked;
        let extra = (self.epoch.1 as f64 - expected).min(self.cwnd);
        self.extra_acked.push((self.round_count, extra));
    }

    /// `bbr_ack_aggregation_cwnd`, in segments.
    fn ack_aggregation_cwnd(&self) -> f64 {
        if !self.linux || !self.filled_pipe {
            return 0.0;
        }
        let window = self.round_count / 5;
        let recent = self
            .extra_acked
            .iter()
            .filter(|(round, _)| round / 5 + 1 >= window);
        let extra = recent.map(|(_, extra)| *extra).fold(0.0, f64::max);
        (extra.min((self.btl_bw() * 0.1).floor()) / SMSS).floor()
    }

    const fn margin(&self) -> f64 {
        if self.linux { 0.99 } else { 1.0 }
    }

    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (HIGH_GAIN, HIGH_GAIN),
            State::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            State::ProbeBw => (GAIN_CYCLE[self.cycle_index], 2.0),
            State::ProbeRtt => (1.0, 1.0),
        }
    }

    /// BBRUpdateOnACK.
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>) {
        let delivered = ack.delivered_total.0 - self.delivered;
        self.delivered = ack.delivered_total.0;
        self.update_btl_bw(ack.rate);
        self.update_ack_aggregation(now, ack.rate, delivered);
        self.check_full_pipe(ack.rate);
        self.check_drain(now, ack);
        self.check_cycle_phase(now, ack);
        self.update_rtprop(now, ack);
        if self.delivered > self.limit {
            self.limit = 0; // tcp_rate_gen
        }
        self.check_probe_rtt(now, ack);
        self.app_limited.push((self.delivered, self.limit));
        if delivered > 0 {
            self.idle_restart = false;
        }
        self.set_pacing_rate(ack);
        self.set_cwnd(ack, delivered as f64);
    }

    fn update_btl_bw(&mut self, rate: Option<&RateSample>) {
        self.round_start = false;
        let Some(rs) = rate else { return };
        if rs.prior_delivered.0 >= self.next_round_delivered {
            self.next_round_delivered = self.delivered;
            self.round_count += 1;
            self.round_start = true;
            self.packet_conservation = false; // one round of it
        }
        let delivery_rate = rs.delivered.0 as f64 / rs.interval.as_secs_f64();
        let limited = self.was_app_limited(rs);
        if delivery_rate >= self.btl_bw() || !limited {
            self.samples.push((self.round_count, delivery_rate));
        }
    }

    /// C.app_limited as it was when the segment left that a sample is about: what the last ACK before had set.
    fn was_app_limited(&self, rs: &RateSample) -> bool {
        let before = |&&(delivered, _): &&(u64, u64)| delivered <= rs.prior_delivered.0;
        let set = self.app_limited.iter().rev().find(before);
        rs.app_limited || set.is_some_and(|&(_, limit)| limit >= rs.prior_delivered.0.max(1))
    }

    fn check_full_pipe(&mut self, rate: Option<&RateSample>) {
        let app_limited = rate.is_none_or(|rs| self.was_app_limited(rs));
        if self.filled_pipe || !self.round_start || app_limited {
            return;
        }
        if self.btl_bw() >= self.full_bw * 1.25 {
            self.full_bw = self.btl_bw();
            self.full_bw_count = 0;
            return;
        }
        self.full_bw_count += 1;
        if self.full_bw_count >= 3 {
            self.filled_pipe = true;
        }
    }

    fn check_drain(&mut self, now: f64, ack: &Ack<'_>) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
        }
        if self.state == State::Drain && ack.in_flight.0 as f64 <= self.inflight(1.0) {
            self.enter_probe_bw(now);
        }
    }

    fn enter_probe_bw(&mut self, now: f64) {
        self.state = State::ProbeBw;
        self.cycle_index = 8 - 1 - self.random.scaled(7) as usize;
        self.advance_cycle_phase(now);
    }

    fn advance_cycle_phase(&mut self, now: f64) {
        self.cycle_stamp = now;
        self.cycle_index = (self.cycle_index + 1) % 8;
    }

    fn check_cycle_phase(&mut self, now: f64, ack: &Ack<'_>) {
        if self.state != State::ProbeBw {
            return;
        }
        let is_full_length = self
            .rtprop
            .is_some_and(|rtprop| now - self.cycle_stamp > rtprop + 1e-12);
        let gain = GAIN_CYCLE[self.cycle_index];
        let mut prior = ack.prior_in_flight.0 as f64;
        if self.linux && gain > 1.0 {
            prior += self.tso_segs_goal() * SMSS; // bbr_packets_in_net_at_edt
        }
        let next = if gain == 1.0 {
            is_full_length
        } else if gain > 1.0 {
            is_full_length && (ack.lost.0 > 0 || prior >= self.inflight(gain))
        } else {
            is_full_length || prior <= self.inflight(1.0)
        };
        if next {
            self.advance_cycle_phase(now);
        }
    }

    fn update_rtprop(&mut self, now: f64, ack: &Ack<'_>) {
        self.rtprop_expired = self.rtprop.is_some() && now > self.rtprop_stamp + 10.0 + 1e-12;
        if let Some(rtt) = ack.rtt.map(Duration::as_secs_f64)
            && (self
                .rtprop
                .is_none_or(|rtprop| rtt < rtprop || !self.linux && rtt == rtprop)
                || self.rtprop_expired)
        {
            self.rtprop = Some(rtt);
            self.rtprop_stamp = now;
        }
    }

    fn check_probe_rtt(&mut self, now: f64, ack: &Ack<'_>) {
        if self.state != State::ProbeRtt && self.rtprop_expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_stamp = None;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        // "Ignore low rate samples during this mode."
        self.limit = (self.delivered + ack.in_flight.0).max(1);
        match self.probe_rtt_done_stamp {
            None if ack.in_flight.0 as f64 <= 4.0 * SMSS => {
                self.probe_rtt_done_stamp = Some(now + 0.2);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = self.delivered;
            }
            None => {}
            Some(stamp) => {
                if self.round_start {
                    self.probe_rtt_round_done = true;
                }
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(now, stamp);
                }
            }
        }
    }

    fn check_probe_rtt_done(&mut self, now: f64, stamp: f64) {
        if now > stamp {
            self.rtprop_stamp = now;
            self.restore_cwnd();
            if self.filled_pipe {
                self.enter_probe_bw(now);
            } else {
                self.state = State::Startup;
            }
        }
    }

    fn set_pacing_rate(&mut self, ack: &Ack<'_>) {
        let mut rate = self.gains().0 * self.btl_bw();
        if self.pacing_rate == 0.0
            && let Some(srtt) = ack.srtt
        {
            // BBRInitPacingRate, with the first RTT.
            rate = rate.max(HIGH_GAIN * INITIAL / srtt.as_secs_f64());
        }
        rate *= self.margin();
        if self.filled_pipe || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_cwnd(&mut self, ack: &Ack<'_>, delivered: f64) {
        let target = self.inflight_and(self.gains().1, self.ack_aggregation_cwnd());
        if delivered > 0.0 {
            self.recover_or_grow(ack, delivered, target);
        }
        // BBRModulateCwndForProbeRTT.
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(4.0 * SMSS);
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`, and what follows if it does not decide.
    fn recover_or_grow(&mut self, ack: &Ack<'_>, delivered: f64, target: f64) {
        if ack.lost.0 > 0 {
            self.cwnd = (self.cwnd - ack.lost.0 as f64).max(SMSS);
        }
        if self.ca_state == 1 && self.prev_ca_state != 1 {
            self.packet_conservation = true;
            self.next_round_delivered = self.delivered;
            self.cwnd = ack.in_flight.0 as f64 + delivered;
        } else if self.prev_ca_state >= 1 && self.ca_state < 1 {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_ca_state = self.ca_state;
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(ack.in_flight.0 as f64 + delivered);
            return;
        }
        if self.filled_pipe {
            self.cwnd = (self.cwnd + delivered).min(target);
        } else if self.cwnd < target || (self.delivered as f64) < INITIAL {
            self.cwnd += delivered;
        }
        self.cwnd = self.cwnd.max(4.0 * SMSS);
    }

    fn save_cwnd(&mut self) {
        self.prior_cwnd = if self.prev_ca_state < 1 && self.state != State::ProbeRtt {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    fn on_loss(&mut self) {
        self.save_cwnd();
        self.ca_state = 1;
    }

    fn on_timeout(&mut self, in_flight: f64) {
        self.save_cwnd();
        self.ca_state = 2;
        self.prev_ca_state = 2;
        self.full_bw = 0.0; // bbr_set_state
        self.full_bw_count = 0;
        self.cwnd = SMSS + in_flight;
    }

    /// BBRHandleRestartFromIdle.
    fn on_restart(&mut self, now: f64) {
        self.idle_restart = true;
        self.epoch = (now, 0);
        if self.state == State::ProbeBw && self.btl_bw() > 0.0 {
            self.pacing_rate = self.btl_bw() * self.margin();
            self.cycle_stamp = now;
        } else if self.linux
            && self.state == State::ProbeRtt
            && let Some(stamp) = self.probe_rtt_done_stamp
        {
            self.check_probe_rtt_done(now, stamp); // bbr_cwnd_event
        }
    }
}

fn seconds(now: Instant) -> f64 {
    now.as_nanos() as f64 / 1e9
}

/// ACKs of a path that is filled until it is full, with noise; the RTT drifts so that a smallest one expires.
pub(super) struct Path {
    pub(super) rng: Rng,
    pub(super) now: Instant,
    longest_step_ms: u64,
    delivered: u64,
    /// What was delivered after each of the last ACKs.
    before: Vec<u64>,
    rate: f64,
    capacity: f64,
}

impl Path {
    /// Acknowledgments come up to so many milliseconds apart.
    pub(super) fn new(mut rng: Rng, longest_step_ms: u64) -> Path {
        let (rate, capacity) = (1e5 * (1.0 + rng.uniform()), 2e5 * (1.0 + 40.0 * rng.uniform()));
        Path {
            rng,
            now: Instant::from_millis(1),
            longest_step_ms,
            delivered: 0,
            before: Vec::new(),
            rate,
            capacity,
        }
    }

    /// The next acknowledgment, and the sample of the rate that it brings.
    pub(super) fn step(&mut self) -> (Option<RateSample>, Ack<'static>) {
        let rng = &mut self.rng;
        self.now += Duration::from_nanos(1 + rng.below(self.longest_step_ms * 1_000_000));
        self.rate = (self.rate * (1.0 + 0.05 * rng.uniform())).min(self.capacity);
        let new = if rng.below(12) == 0 {
            0
        } else {
            MSS * (1 + rng.below(4))
        };
        self.before.push(self.delivered);
        if self.before.len() > 16 {
            self.before.remove(0);
        }
        self.delivered += new;
        let sent_after = self.before[rng.below(self.before.len() as u64) as usize];
        let sample = RateSample {
            delivered: Bytes((self.rate * 0.05 * (0.6 + 0.4 * rng.uniform())) as u64),
            prior_delivered: Bytes(sent_after),
            in_flight: Bytes(MSS * rng.below(60)),
            interval: Duration::from_micros(50_000 + rng.below(5_000)),
            app_limited: rng.below(8) == 0,
        };
        let rtt = Duration::from_micros(20_000 + rng.below(30_000));
        let most = if rng.below(3) == 0 { 5 } else { 80 };
        let lost = if rng.below(25) == 0 { 1 + rng.below(8) } else { 0 };
        let report = Ack {
            delivered_total: Bytes(self.delivered),
            lost: Bytes(MSS * lost),
            in_flight: Bytes(MSS * rng.below(most)),
            prior_in_flight: Bytes(MSS * rng.below(90)),
            cwnd_limited: rng.below(3) > 0,
            rtt: (rng.below(4) > 0).then_some(rtt),
            srtt: Some(Duration::from_millis(40)),
            ..ack(0)
        };
        ((new > 0 && rng.below(10) > 0).then_some(sample), report)
    }
}

/// Inputs and outputs of a transcription of either version.
pub(super) trait Transcription {
    fn on_loss(&mut self);
    fn on_timeout(&mut self, in_flight: f64);
    fn on_recovery_end(&mut self);
    fn on_restart(&mut self, now: f64);
    fn on_ack(&mut self, now: f64, ack: &Ack<'_>);
    fn window(&self) -> f64;
    fn pacing_rate(&self) -> f64;
    /// Number of its state.
    fn state(&self) -> usize;
}

/// How far a walk leads, and how far apart the two may be.
pub(super) struct Walk {
    /// Acknowledgments.
    pub(super) steps: u32,
    /// A recovery ends at numbers from 2 to this, of sixty.
    pub(super) ends: u64,
    /// Bytes.
    pub(super) tolerance: f64,
}

/// What was met on walks.
pub(super) struct Met<const STATES: usize> {
    pub(super) calls: u32,
    pub(super) recoveries: u32,
    /// Calls in each state.
    pub(super) seen: [u32; STATES],
}

impl<const STATES: usize> Met<STATES> {
    pub(super) const NOTHING: Met<STATES> = Met {
        calls: 0,
        recoveries: 0,
        seen: [0; STATES],
    };

    /// Feeds both with the same input, losses, timeouts and pauses included, and compares window and rate after each acknowledgment.
    pub(super) fn walk<B: CongestionController, N: Transcription>(
        &mut self,
        (bbr, naive): (&mut B, &mut N),
        path: &mut Path,
        walk: &Walk,
        mut look: impl FnMut(&B, &N),
    ) {
        let mut recovering = false;
        for step in 0..walk.steps {
            let (sample, report) = path.step();
            let (now, rng) = (path.now, &mut path.rng);
            let report = Ack {
                rate: sample.as_ref(),
                ..report
            };
            match rng.below(60) {
                0 if !recovering => {
                    bbr.on_congestion(now, &congestion(CongestionKind::Loss, 10));
                    naive.on_loss();
                    recovering = true;
                    self.recoveries += 1;
                }
                1 => {
                    let event = congestion(CongestionKind::Timeout { first: true }, 10);
                    bbr.on_congestion(now, &event);
                    naive.on_timeout(event.in_flight.0 as f64);
                    recovering = true;
                }
                number if recovering && (2..walk.ends).contains(&number) => {
                    bbr.on_congestion(now, &congestion(CongestionKind::RecoveryEnd, 10));
                    naive.on_recovery_end();
                    recovering = false;
                }
                8 => {
                    bbr.on_restart(now, Duration::from_millis(300));
                    naive.on_restart(seconds(now));
                }
                _ => {}
            }
            bbr.on_ack(now, &report);
            naive.on_ack(seconds(now), &report);
            self.calls += 1;
            self.seen[naive.state()] += 1;
            let (window, expected) = (bbr.window().0 as f64, naive.window());
            assert!(
                (window - expected).abs() <= walk.tolerance,
                "step {step}, call {}: window {window}, naive {expected} in state {}",
                self.calls,
                naive.state()
            );
            let (paced, expected) = (
                bbr.pacing_rate().map_or(0.0, |rate| rate.bps() as f64 / 8.0),
                naive.pacing_rate(),
            );
            assert!(
                (paced - expected).abs() <= 1.0 + 1e-9 * paced,
                "step {step}, call {}: rate {paced}, naive {expected} in state {}",
                self.calls,
                naive.state()
            );
            look(bbr, naive);
        }
    }
}

impl Transcription for Naive {
    fn on_loss(&mut self) {
        Naive::on_loss(self);
    }

    fn on_timeout(&mut self, in_flight: f64) {
        Naive::on_timeout(self, in_flight);
    }

    fn on_recovery_end(&mut self) {
        self.ca_state = 0;
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
fn version_1_is_the_naive_transcription_call_by_call() {
    for linux in [false, true] {
        let mut met = Met::<4>::NOTHING;
        let walk = Walk {
            steps: 1500,
            ends: 8,
            tolerance: 1.0,
        };
        for seed in 0..60 {
            let config = Config {
                seed,
                ..config(HyStart::Off)
            };
            let mut values = Values::defaults(Bbr::PARAMETERS);
            values
                .set("linux", crate::parameter::Value::Flag(linux))
                .expect("it is a parameter");
            let mut bbr = Bbr::new(&values, &config);
            let mut naive = Naive::new(&config, linux);
            let mut path = Path::new(Rng::for_element(seed, "bbr", "inputs"), 60);
            met.walk((&mut bbr, &mut naive), &mut path, &walk, |_, _| ());
        }
        assert_eq!(met.calls, 90_000);
        assert!(met.recoveries > 500, "{} recoveries", met.recoveries);
        assert!(
            met.seen.iter().all(|calls| *calls > 50),
            "{:?} calls in each state",
            met.seen
        );
    }
}

/// `bbr_cwnd_event`: a pause that began in ProbeRTT and lasted over its 200 ms has measured the RTT, so data leaves with the window of before.
#[test]
fn a_pause_over_the_end_of_probe_rtt_restores_the_window() {
    for linux in [true, false] {
        let config = config(HyStart::Off);
        let mut values = Values::defaults(Bbr::PARAMETERS);
        values
            .set("linux", crate::parameter::Value::Flag(linux))
            .expect("it is a parameter");
        let mut bbr = Bbr::new(&values, &config);
        let mut naive = Naive::new(&config, linux);
        let mut path = Path::new(Rng::for_element(1, "bbr", "pause"), 60);
        let mut steps = 0;
        while naive.probe_rtt_done_stamp.is_none() || naive.state != State::ProbeRtt {
            let (sample, report) = path.step();
            let report = Ack {
                rate: sample.as_ref(),
                ..report
            };
            bbr.on_ack(path.now, &report);
            naive.on_ack(seconds(path.now), &report);
            steps += 1;
            assert!(steps < 100_000, "the path leads to ProbeRTT");
        }
        let (floor, before) = (Bytes(4 * MSS), Bytes(naive.prior_cwnd as u64));
        assert!(floor < before, "{before} before");
        bbr.on_restart(path.now + Duration::from_millis(199), Duration::from_millis(199));
        assert_eq!(bbr.window(), floor, "linux: {linux}, before the end");
        bbr.on_restart(path.now + Duration::from_millis(201), Duration::from_millis(201));
        let expected = if linux { before } else { floor };
        assert_eq!(bbr.window(), expected, "linux: {linux}");
    }
}
