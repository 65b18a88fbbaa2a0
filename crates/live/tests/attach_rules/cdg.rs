//! CDG: exact agreement with `core`, draw by draw, since both are given the same random bits.
//!
//! The only difference is exp: a table and shifts in C, libm in `core`. It is at most 5 of 2^32, and a draw falls into that gap once in
//! nine hundred million.

use crate::rules::{
    Acked, State, Window, ff_cdg_avoid, ff_cdg_init, ff_cdg_recovered, ff_cdg_restart, ff_cdg_sample,
    ff_cdg_size, ff_cdg_survival, ff_cdg_threshold, ff_cdg_timed_out,
};
use fleetfoot_core::cc::{
    Ack, Cdg, Config, Congestion, CongestionController, CongestionKind, CubicArithmetic, HyStart, Reaction,
};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// What may be in flight at an event: nothing after a timeout, since without RACK everything counts as lost.
pub(crate) fn left_by(kind: CongestionKind, flight: Bytes) -> Bytes {
    match kind {
        CongestionKind::Timeout { .. } => Bytes::ZERO,
        _ => flight,
    }
}

const MSS: u64 = 1448;
const DREW: i32 = 1;
const BACKED_OFF: i32 = 2;
/// Place of `shadow` in `struct cdg`.
const SHADOW: usize = 80;

pub(crate) fn config(seed: u64) -> Config {
    Config {
        mss: Bytes(MSS),
        initial_window: Bytes(10 * MSS),
        hystart: HyStart::Linux,
        paced: false,
        abc_limit: None,
        reduce_from_window: true,
        count_segments: true,
        fractions: false,
        cubic_arithmetic: CubicArithmetic::Linux,
        handshake_rtt: None,
        passive: false,
        seed,
    }
}

#[test]
fn exp_is_that_of_libm_to_five_parts_of_two_to_the_32() {
    let mut furthest = 0;
    let mut rng = Rng::from_seed(7);
    let gradients = (0..100_000).chain((0..100_000).map(|_| rng.below(2_000_000)));
    for gradient in gradients {
        let core = (Cdg::back_off_probability(gradient as i64, 42) * 4_294_967_296.0) as i64;
        let ours = (1_i64 << 32) - ff_cdg_survival(gradient) as i64;
        furthest = furthest.max((core - ours).abs());
    }
    println!("furthest apart: {furthest} of 2^32");
    assert!(furthest <= 5, "{furthest}");
}

/// Both, and what the kernel keeps for them.
struct Pair {
    state: State,
    window: Window,
    core: Cdg,
    /// What `core` draws from.
    draws: Rng,
    now: u64,
    delivered: u32,
    /// `core` is in CWR for a back-off until more than this was delivered.
    resting: Option<u32>,
    /// In a reduction of the kernel's.
    reducing: bool,
    /// `core` lowers the window itself, as the program does, and no CWR stands in for that.
    at_once: bool,
}

impl Pair {
    fn new(seed: u64, at_once: bool) -> Pair {
        let mut values = Values::defaults(Cdg::PARAMETERS);
        values.set("at_once", Value::Flag(at_once)).expect("a parameter");
        let mut state = State::new(ff_cdg_size());
        ff_cdg_init(&mut state, 10);
        Pair {
            state,
            window: Window::new(10),
            core: Cdg::new(&values, &config(seed)),
            draws: Rng::for_element(seed, "cdg", "back-off"),
            now: 1_000_000,
            delivered: 1,
            resting: None,
            reducing: false,
            at_once,
        }
    }

    fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn event(&mut self, kind: CongestionKind) {
        let at = self.at();
        self.core.on_congestion(
            at,
            &Congestion {
                kind,
                flight_size: self.core.window(),
                in_flight: left_by(kind, self.core.window()),
            },
        );
    }

    /// An acknowledgment; `ends`: it ends the kernel's reduction.
    fn ack(&mut self, ack: &Acked, ends: bool) -> i32 {
        let limited =
            ack.full != 0 || self.window.cwnd < self.window.ssthresh && self.window.cwnd < 2 * ack.max_out;
        ff_cdg_sample(&mut self.state, ack);
        if ends {
            self.reducing = false;
            ff_cdg_recovered(&mut self.state, ack);
            self.event(CongestionKind::RecoveryEnd);
        }
        if self
            .resting
            .is_some_and(|end| (ack.delivered.wrapping_sub(end) as i32) > 0)
        {
            self.resting = None;
            self.event(CongestionKind::RecoveryEnd);
        }
        let mut did = 0;
        if !self.reducing {
            let random = self.draws.clone().next_u32();
            did = ff_cdg_avoid(&mut self.state, &mut self.window, ack, ack.acked, random);
            if did & DREW != 0 {
                self.draws.next_u32();
            }
        }
        let bytes = |segments: u32| Bytes(u64::from(segments) * MSS);
        let rtt = (ack.rtt_us > 0).then(|| Duration::from_micros(ack.rtt_us as u64));
        let report = Ack {
            acked: bytes(ack.acked),
            delivered: bytes(ack.acked),
            sacked: Bytes::ZERO,
            sacked_total: bytes(ack.sacked),
            segments: ack.acked,
            delivered_total: bytes(ack.delivered),
            lost: Bytes::ZERO,
            in_flight: bytes(ack.in_flight),
            prior_in_flight: bytes(ack.in_flight + ack.acked),
            rtt,
            newest_rtt: rtt,
            one_way_delay: None,
            rate: None,
            round_start: false,
            app_limited: ack.full == 0,
            cwnd_limited: limited,
            recovering: self.reducing || self.resting.is_some(),
            ce_bytes: Bytes::ZERO,
            srtt: rtt,
            min_rtt: rtt,
        };
        let reaction = self.core.on_ack(self.at(), &report);
        let asked = reaction == Reaction::ReduceWindow;
        assert_eq!(asked, !self.at_once && did & BACKED_OFF != 0);
        if asked {
            self.event(CongestionKind::Delay);
            self.resting = Some(ack.delivered + ack.in_flight);
        }
        did
    }

    fn loss(&mut self) {
        let threshold = ff_cdg_threshold(&mut self.state, self.window.cwnd);
        self.window.reduce(self.window.cwnd.min(threshold), threshold);
        self.event(CongestionKind::Loss);
        self.reducing = true;
        self.resting = None;
    }

    fn timeout(&mut self) {
        let threshold = ff_cdg_threshold(&mut self.state, self.window.cwnd);
        ff_cdg_timed_out(&mut self.state);
        self.window.reduce(1, threshold);
        self.event(CongestionKind::Timeout { first: true });
        self.reducing = false;
        self.resting = None;
    }

    fn pause(&mut self) {
        ff_cdg_restart(&mut self.state, self.window.cwnd, self.delivered);
        let at = self.at();
        self.core.on_window_restart(at);
    }

    /// Window, threshold, shadow: as the program has them, and as `core` does.
    fn both(&self) -> [(u64, Option<u64>, u64); 2] {
        let (cwnd, ssthresh) = self.window.seen();
        let segments = |bytes: Bytes| bytes.get() / MSS;
        let known = (self.core.ssthresh() != Bytes::MAX).then(|| segments(self.core.ssthresh()));
        [
            (cwnd, ssthresh, u64::from(self.state.word(SHADOW))),
            (segments(self.core.window()), known, segments(self.core.shadow())),
        ]
    }
}

/// A back-off of `core` takes a round trip, which CWR stands in for here, or lowers the window at once.
#[test]
fn windows_are_those_of_core_at_every_acknowledgment() {
    for at_once in [false, true] {
        held_to_core(at_once);
    }
}

fn held_to_core(at_once: bool) {
    let (mut acks, mut back_offs, mut losses, mut timeouts, mut pauses) = (0, 0, 0, 0, 0);
    for seed in 0..300_u64 {
        let mut rng = Rng::from_seed(seed ^ 0xcd6);
        let mut pair = Pair::new(seed, at_once);
        // A counter that wraps must not matter.
        let base_rtt = 2_000 + rng.below(60_000);
        let mut queue_us = 0_u64;
        for step in 0..1500 {
            pair.now += if rng.below(3) == 0 {
                rng.below(8_000)
            } else {
                rng.below(400)
            };
            queue_us = match rng.below(6) {
                0 => queue_us / 2,
                1 | 2 => queue_us + rng.below(600),
                3 => queue_us.saturating_sub(rng.below(500)),
                _ => queue_us,
            };
            if rng.below(70) == 0 {
                queue_us = 0;
            }
            let acked = 1 + rng.below(3) as u32;
            pair.delivered += acked;
            let ack = Acked {
                now_us: pair.now,
                rtt_us: if rng.below(12) == 0 {
                    0
                } else {
                    (base_rtt + queue_us) as i32
                },
                acked,
                sacked: u32::from(rng.below(15) == 0),
                delivered: pair.delivered,
                in_flight: (u64::from(pair.window.cwnd) * (50 + rng.below(51)) / 100) as u32,
                mss: MSS as u32,
                max_out: rng.below(u64::from(pair.window.cwnd) + 1) as u32,
                full: u32::from(rng.below(5) > 0),
                ..Acked::default()
            };
            let ends = pair.reducing && rng.below(8) == 0;
            let did = pair.ack(&ack, ends);
            acks += 1;
            back_offs += u32::from(did & BACKED_OFF != 0);
            let [ours, core] = pair.both();
            assert_eq!(ours, core, "seed {seed}, step {step}: {ack:?}");
            match rng.below(400) {
                0..3 if !pair.reducing => {
                    pair.loss();
                    losses += 1;
                }
                3 => {
                    pair.timeout();
                    timeouts += 1;
                }
                4 if !pair.reducing => {
                    pair.now += 2_000_000;
                    pair.pause();
                    pair.resting = None;
                    pauses += 1;
                }
                _ => {}
            }
            let [ours, core] = pair.both();
            assert_eq!(ours, core, "seed {seed}, after step {step}");
        }
    }
    println!(
        "{acks} acknowledgments, {back_offs} back-offs, {losses} losses, {timeouts} timeouts, {pauses} pauses"
    );
    assert!(back_offs > 500 && losses > 100 && timeouts > 100 && pauses > 100);
}
