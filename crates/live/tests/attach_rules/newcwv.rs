//! New-CWV over CUBIC: exact agreement with `core`'s New-CWV, CUBIC (`cubic_arithmetic = "linux"`) and HyStart.
//!
//! Thresholds of five minutes without validation are 3/4 of a window in bytes in `core` and whole segments in the kernel: here `core` is
//! given them rounded down. After an undo of New-CWV's answer the threshold is the kernel's to set, and is copied.

use crate::cdg::{config, left_by};
use crate::rules::{
    Acked, State, Window, ff_newcwv_acked, ff_newcwv_avoid, ff_newcwv_before_sending, ff_newcwv_first_out,
    ff_newcwv_init, ff_newcwv_nonvalidated, ff_newcwv_recovered, ff_newcwv_size, ff_newcwv_threshold,
    ff_newcwv_timed_out, ff_newcwv_timeout_threshold, ff_newcwv_undone,
};
use fleetfoot_core::cc::{Ack, Config, Congestion, CongestionController, CongestionKind, Cubic};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::tcp::{NewCwv, NewCwvView};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

const MSS: u64 = 1448;
const INITIAL: u32 = 10;

struct Pair {
    state: State,
    window: Window,
    cwv: NewCwv,
    cubic: Cubic,
    now: u64,
    /// Sequence number of byte 0.
    base: u32,
    una: u64,
    nxt: u64,
    round_end: u64,
    srtt_us: u32,
    full: bool,
    /// By an application or a queue.
    paced: bool,
    retransmitted: u32,
    reduction: Option<Reduction>,
    /// In a recovery from a timeout.
    timed_out: bool,
}

/// A recovery: its begin, and window and threshold that an undo restores.
struct Reduction {
    begin: u64,
    prior: (u32, u32),
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let base = 0_u32.wrapping_sub(200_000 * (seed % 7) as u32);
        let paced = seed % 2 == 1;
        let mut state = State::new(ff_newcwv_size());
        ff_newcwv_init(&mut state, base);
        Pair {
            state,
            window: Window::new(INITIAL),
            cwv: NewCwv::new(),
            cubic: Cubic::new(
                &Values::defaults(Cubic::PARAMETERS),
                &Config {
                    paced,
                    ..config(seed)
                },
            ),
            paced,
            now: 5_000_000,
            base,
            una: 0,
            nxt: 0,
            round_end: 0,
            srtt_us: 0,
            full: false,
            retransmitted: 0,
            reduction: None,
            timed_out: false,
        }
    }

    fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn view(&self) -> NewCwvView {
        NewCwvView {
            window: self.cubic.window(),
            ssthresh: self.cubic.ssthresh(),
            full: self.full,
            mss: MSS as u32,
            initial: Bytes(u64::from(INITIAL) * MSS),
            srtt: (self.srtt_us > 0).then(|| Duration::from_micros(u64::from(self.srtt_us))),
        }
    }

    fn event(&mut self, kind: CongestionKind) {
        let at = self.at();
        self.cubic.on_congestion(
            at,
            &Congestion {
                kind,
                flight_size: Bytes(self.nxt - self.una),
                in_flight: left_by(kind, Bytes(self.nxt - self.una)),
            },
        );
    }

    fn flight(&self) -> u32 {
        ((self.nxt - self.una) / MSS) as u32
    }

    fn send(&mut self, segments: u32) {
        self.nxt += u64::from(segments) * MSS;
    }

    fn look(&mut self) {
        if self.reduction.is_some() || self.timed_out {
            return;
        }
        let changed = ff_newcwv_before_sending(
            &mut self.state,
            &mut self.window,
            self.now,
            8 * self.srtt_us,
            i32::from(self.full),
            INITIAL,
        );
        let (at, view) = (self.at(), self.view());
        let whole = |bytes: Bytes| {
            if bytes == Bytes::MAX {
                bytes
            } else {
                Bytes(bytes.get() / MSS * MSS)
            }
        };
        let set = self
            .cwv
            .before_sending(at, &view)
            .map(|(window, ssthresh)| (window, whole(ssthresh)))
            .filter(|&set| set != (view.window, view.ssthresh));
        assert_eq!(set.is_some(), changed != 0);
        if let Some((window, ssthresh)) = set {
            self.cubic.override_window(at, window, ssthresh);
        }
    }

    /// An acknowledgment of `segments`; `ends`: it ends the recovery.
    fn ack(&mut self, segments: u32, rtt_us: u32, max_out: u32, ends: bool) {
        self.una += u64::from(segments) * MSS;
        let seq = |offset: u64| self.base.wrapping_add(offset as u32);
        let ack = Acked {
            now_us: self.now,
            rtt_us: rtt_us as i32,
            acked: segments,
            una: seq(self.una),
            nxt: seq(self.nxt),
            srtt_us8: 8 * self.srtt_us,
            mss: MSS as u32,
            max_out,
            full: u32::from(self.full),
            paced: u32::from(self.paced),
            ..Acked::default()
        };
        let round_start = self.una > self.round_end;
        if round_start {
            self.round_end = self.nxt;
        }
        let (recovering, reducing) = (
            self.reduction.is_some() || self.timed_out,
            self.reduction.is_some() && !ends,
        );
        ff_newcwv_acked(
            &mut self.state,
            &mut self.window,
            &ack,
            i32::from(recovering),
            i32::from(reducing),
        );
        let (at, view) = (self.at(), self.view());
        let acked = Bytes(u64::from(segments) * MSS);
        self.cwv
            .on_ack(at, &view, acked, (self.una, self.nxt), recovering);
        if ends {
            self.end_reduction();
        }
        if !reducing {
            ff_newcwv_avoid(&mut self.state, &mut self.window, &ack, segments);
        }
        let (window, ssthresh) = (self.cubic.window(), self.cubic.ssthresh());
        let used = window < ssthresh && window.get() < 2 * u64::from(max_out) * MSS;
        let limited = self.full || !self.cwv.is_nonvalidated() && used;
        let rtt = (rtt_us > 0).then(|| Duration::from_micros(u64::from(rtt_us)));
        let report = Ack {
            acked,
            delivered: acked,
            sacked: Bytes::ZERO,
            sacked_total: Bytes::ZERO,
            segments,
            delivered_total: Bytes(self.una),
            lost: Bytes::ZERO,
            in_flight: Bytes(self.nxt - self.una),
            prior_in_flight: Bytes(self.nxt - self.una) + acked,
            rtt,
            newest_rtt: rtt,
            one_way_delay: None,
            rate: None,
            round_start,
            app_limited: !self.full,
            cwnd_limited: limited,
            recovering: reducing,
            ce_bytes: Bytes::ZERO,
            srtt: view.srtt,
            min_rtt: rtt,
        };
        self.cubic.on_ack(at, &report);
    }

    fn loss(&mut self) {
        let flight = self.flight();
        let prior = (
            self.window.cwnd,
            self.window
                .ssthresh
                .max((self.window.cwnd >> 1) + (self.window.cwnd >> 2)),
        );
        let threshold = ff_newcwv_threshold(
            &mut self.state,
            &self.window,
            self.now,
            8 * self.srtt_us,
            i32::from(self.full),
            flight,
            self.retransmitted,
        );
        self.window.reduce(threshold, threshold);
        let (at, view) = (self.at(), self.view());
        let flight = Bytes(u64::from(flight) * MSS);
        match self.cwv.on_congestion(at, &view, CongestionKind::Loss, flight) {
            Some(half) => self.cubic.override_window(at, half, half),
            None => self.event(CongestionKind::Loss),
        }
        self.reduction = Some(Reduction {
            begin: self.now,
            prior,
        });
    }

    fn retransmit(&mut self, segments: u32) {
        if let Some(reduction) = &self.reduction {
            self.retransmitted += segments;
            let before = Instant::from_micros(reduction.begin - 1);
            self.cwv
                .on_retransmission(before, Bytes(u64::from(segments) * MSS));
        }
    }

    fn end_reduction(&mut self) {
        self.reduction = None;
        let left = ff_newcwv_recovered(&mut self.state, self.retransmitted);
        if left > 0 {
            self.window.reduce(left, left);
        }
        self.event(CongestionKind::RecoveryEnd);
        let (at, view) = (self.at(), self.view());
        if let Some(window) = self.cwv.on_recovery_end(&view) {
            self.cubic.override_window(at, window, window);
        }
    }

    fn undo(&mut self) {
        let Some(reduction) = self.reduction.take() else {
            return;
        };
        ff_newcwv_undone(&mut self.state);
        let at = self.at();
        self.window.cwnd = self.window.cwnd.max(reduction.prior.0);
        match self.cwv.on_undo() {
            Some((window, ssthresh)) => {
                let window = self.cubic.window().max(window);
                self.cubic.override_window(at, window, ssthresh);
                self.window.count = 0;
                self.window.ssthresh = (ssthresh.get() / MSS).min(u64::from(crate::rules::INFINITE)) as u32;
            }
            None => {
                self.event(CongestionKind::Undo);
                self.window.ssthresh = self.window.ssthresh.max(reduction.prior.1);
            }
        }
    }

    /// The order of the kernel: the threshold is asked for, then it says that this was a timeout.
    fn timeout(&mut self) {
        let flight = self.flight();
        let mut threshold = ff_newcwv_threshold(
            &mut self.state,
            &self.window,
            self.now,
            8 * self.srtt_us,
            i32::from(self.full),
            flight,
            self.retransmitted,
        );
        let standard = ff_newcwv_timeout_threshold(&mut self.state);
        if standard > 0 {
            threshold = standard;
        }
        ff_newcwv_timed_out(&mut self.state);
        self.window.reduce(1, threshold);
        self.event(CongestionKind::Timeout { first: true });
        self.cwv.on_timeout();
        self.reduction = None;
        self.timed_out = true;
    }

    fn pause(&mut self, idle_us: u64) {
        self.una = self.nxt;
        self.now += idle_us;
        ff_newcwv_first_out(&mut self.state, self.now, idle_us);
        let at = self.at();
        self.cubic.on_restart(at, Duration::from_micros(idle_us));
        self.cwv.on_first_out();
        self.look();
    }

    /// Window, threshold, phase: as the program has them, and as `core` does.
    fn both(&self) -> [(u64, Option<u64>, bool); 2] {
        let (cwnd, ssthresh) = self.window.seen();
        let segments = |bytes: Bytes| bytes.get() / MSS;
        let known = (self.cubic.ssthresh() != Bytes::MAX).then(|| segments(self.cubic.ssthresh()));
        [
            (cwnd, ssthresh, ff_newcwv_nonvalidated(&self.state) != 0),
            (segments(self.cubic.window()), known, self.cwv.is_nonvalidated()),
        ]
    }
}

#[test]
fn windows_and_phases_are_those_of_core_at_every_acknowledgment() {
    let (mut acks, mut unvalidated, mut answers, mut losses, mut timeouts, mut undos, mut halvings) =
        (0, 0, 0, 0, 0, 0, 0);
    for seed in 0..300_u64 {
        let mut rng = Rng::from_seed(seed ^ 0x7661);
        let mut pair = Pair::new(seed);
        let base_rtt = 1_000 + rng.below(150_000) as u32;
        for step in 0..1200 {
            pair.now += if rng.below(4) == 0 {
                rng.below(60_000)
            } else {
                rng.below(1_500)
            };
            let window = u64::from(pair.window.cwnd);
            // Busy for a while, then an application that uses a part of the window.
            let greedy = (step / 150) % 2 == 0;
            pair.full = greedy && rng.below(8) > 0 || rng.below(40) == 0;
            let target = if greedy {
                window
            } else {
                1 + rng.below(window.min(12))
            };
            let room = target.saturating_sub(u64::from(pair.flight()));
            pair.look();
            pair.send(room.max(1) as u32);
            let rtt = base_rtt + rng.below(u64::from(base_rtt) / 4) as u32;
            pair.srtt_us = if pair.srtt_us == 0 {
                rtt
            } else {
                (7 * pair.srtt_us + rtt) / 8
            };
            let segments = 1 + rng.below(u64::from(pair.flight()).min(3)) as u32;
            let max_out = rng.below(window + 1) as u32;
            let ends = pair.reduction.is_some() && rng.below(10) == 0;
            pair.ack(segments, if rng.below(10) == 0 { 0 } else { rtt }, max_out, ends);
            acks += 1;
            let [ours, core] = pair.both();
            assert_eq!(ours, core, "seed {seed}, step {step}");
            unvalidated += u32::from(ours.2);
            match rng.below(300) {
                0..4 if pair.reduction.is_none() && !pair.timed_out && pair.flight() > 0 => {
                    pair.loss();
                    losses += 1;
                    answers += u32::from(ours.2);
                    pair.retransmit(1 + rng.below(4) as u32);
                }
                4..6 if pair.reduction.is_some() => {
                    pair.undo();
                    undos += 1;
                }
                6 => {
                    pair.timeout();
                    timeouts += 1;
                }
                7..60 if pair.timed_out => pair.timed_out = false,
                8 if pair.reduction.is_none() && !pair.timed_out => {
                    let before = pair.window.cwnd;
                    let idle = if rng.below(2) == 0 {
                        rng.below(4_000_000)
                    } else {
                        rng.below(900_000_000)
                    };
                    pair.pause(idle);
                    halvings += u32::from(pair.window.cwnd < before);
                }
                _ => {}
            }
            let [ours, core] = pair.both();
            assert_eq!(ours, core, "seed {seed}, after step {step}");
        }
    }
    println!(
        "{acks} acknowledgments, {unvalidated} not validated, {losses} losses ({answers} answered by New-CWV), {undos} undone, {timeouts} timeouts, {halvings} halvings"
    );
    assert!(unvalidated > 10_000 && answers > 100 && undos > 20 && timeouts > 100 && halvings > 50);
}
