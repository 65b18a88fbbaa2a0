//! The contract of every congestion control, held call by call.
//!
//! The unit tests of core include this file, which they cannot reach as a crate.

use fleetfoot_core::cc::{
    Ack, AnyController, Config, Congestion, CongestionController, CongestionKind, CubicArithmetic, HyStart,
    Progress, Reaction, Sent,
};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// Segment size of the configuration.
pub const MSS: u64 = 1_460;

/// A configuration with this exit from slow start.
pub fn config(hystart: HyStart) -> Config {
    Config {
        handshake_rtt: None,
        passive: false,
        mss: Bytes(MSS),
        initial_window: Bytes(10 * MSS),
        hystart,
        paced: false,
        abc_limit: None,
        reduce_from_window: false,
        count_segments: false,
        fractions: false,
        cubic_arithmetic: CubicArithmetic::Rfc9438,
        seed: 1,
    }
}

/// An acknowledgment of `segments` that may grow the window.
pub fn ack(segments: u64) -> Ack<'static> {
    Ack {
        acked: Bytes(segments * MSS),
        delivered: Bytes(segments * MSS),
        sacked: Bytes::ZERO,
        sacked_total: Bytes::ZERO,
        segments: segments as u32,
        delivered_total: Bytes::ZERO,
        lost: Bytes::ZERO,
        in_flight: Bytes::ZERO,
        prior_in_flight: Bytes::ZERO,
        rtt: None,
        newest_rtt: None,
        one_way_delay: None,
        rate: None,
        round_start: false,
        app_limited: false,
        cwnd_limited: true,
        recovering: false,
        ce_bytes: Bytes::ZERO,
        srtt: None,
        min_rtt: None,
    }
}

/// An event with so many segments out; after a timeout half of them may still be in flight.
pub fn congestion(kind: CongestionKind, flight_segments: u64) -> Congestion {
    let flight_size = Bytes(flight_segments * MSS);
    let in_flight = match kind {
        CongestionKind::Timeout { .. } => Bytes(flight_segments / 2 * MSS),
        _ => flight_size,
    };
    Congestion {
        kind,
        flight_size,
        in_flight,
    }
}

/// A call of a controller. Amounts are segments and milliseconds where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// `on_ack`.
    Ack {
        /// Microseconds after the call before.
        after_us: u64,
        /// Newly acknowledged.
        bytes: u64,
        /// Sample.
        rtt_ms: Option<u64>,
        /// All of it under an ECN echo.
        marked: bool,
        /// A round began.
        round: bool,
        /// The window was in use.
        limited: bool,
        /// In recovery.
        recovering: bool,
    },
    /// `on_congestion` with so many segments out.
    Congestion(CongestionKind, u64),
    /// `on_idle` and `on_restart` after this time.
    Idle(u64),
    /// `set_window`.
    SetWindow(u64, Option<u64>),
}

/// What a [`Driver`] passed to a controller.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// An acknowledgment, and whether the controller asked for a reduction.
    Ack(&'a Ack<'a>, bool),
    /// An event.
    Congestion(&'a Congestion),
    /// An idle time, and a start after it.
    Idle(Duration),
    /// Both values.
    SetWindow(Bytes, Bytes),
}

/// Drives a controller through operations.
pub struct Driver {
    /// Virtual time.
    pub now: Instant,
    /// Acknowledgments that are nothing but progress are first passed in their short form.
    pub short: bool,
    delivered: Bytes,
}

impl Default for Driver {
    fn default() -> Driver {
        Driver {
            now: Instant::from_millis(1),
            short: false,
            delivered: Bytes::ZERO,
        }
    }
}

impl Driver {
    /// Does `op` and passes the input of the controller to `hear` as well. `whole`: windows are whole segments.
    pub fn apply(
        &mut self,
        op: Op,
        whole: bool,
        cc: &mut AnyController,
        mut hear: impl FnMut(Instant, Input<'_>),
    ) {
        match op {
            Op::Ack {
                after_us,
                bytes,
                rtt_ms,
                marked,
                round,
                limited,
                recovering,
            } => {
                self.now += Duration::from_micros(after_us);
                // The connection counts whole segments where the window does.
                let bytes = Bytes(if whole { bytes.div_ceil(MSS) * MSS } else { bytes });
                self.delivered = self.delivered.saturating_add(bytes);
                let ack = Ack {
                    acked: bytes,
                    delivered_total: self.delivered,
                    rtt: rtt_ms.map(Duration::from_millis),
                    srtt: rtt_ms.map(Duration::from_millis),
                    round_start: round,
                    cwnd_limited: limited,
                    recovering,
                    ce_bytes: if marked { bytes } else { Bytes::ZERO },
                    segments: bytes.0.div_ceil(MSS) as u32,
                    sacked_total: Bytes(if round && marked { MSS } else { 0 }),
                    in_flight: Bytes(if limited { after_us / 1000 * MSS } else { 0 }),
                    ..ack(0)
                };
                let progress = Progress {
                    acked: bytes,
                    rtt: ack.newest_rtt.or(ack.rtt),
                    cwnd_limited: limited,
                };
                let plain = bytes > Bytes::ZERO && !marked && !recovering;
                if self.short && plain && cc.progress(self.now, progress).is_some() {
                    return;
                }
                if self.short && recovering && cc.stand_by(self.now, progress.rtt) {
                    return;
                }
                let reduce = cc.on_ack(self.now, &ack) == Reaction::ReduceWindow;
                hear(self.now, Input::Ack(&ack, reduce));
                if reduce {
                    let event = congestion(CongestionKind::Delay, after_us / 1000);
                    hear(self.now, Input::Congestion(&event));
                    cc.on_congestion(self.now, &event);
                }
            }
            Op::Congestion(kind, flight) => {
                let event = congestion(kind, flight);
                cc.on_congestion(self.now, &event);
                hear(self.now, Input::Congestion(&event));
            }
            Op::Idle(ms) => {
                let idle = Duration::from_millis(ms);
                self.now += idle;
                cc.on_idle(self.now, idle);
                cc.on_window_restart(self.now);
                // A start of its own time after an idle time: the two do not depend on each other.
                cc.on_restart(self.now, idle);
                hear(self.now, Input::Idle(idle));
            }
            Op::SetWindow(window, ssthresh) => {
                let window = Bytes(window * MSS);
                let ssthresh = ssthresh.map_or(Bytes::MAX, |segments| Bytes(segments * MSS));
                cc.set_window(self.now, window, ssthresh);
                hear(self.now, Input::SetWindow(window, ssthresh));
            }
        }
    }
}

/// Holds the controller that `build` makes to the contract over `ops`, and with undone reductions after them: the window is at
/// least one segment, a reduction leaves two (RFC 5681 (4)), nothing grows in recovery or while the window is not in use,
/// windows are whole segments where they are counted so, the same calls give the same, in their short form too, an undo restores what a reduction took.
/// `flight` is what is out, in segments, when a reduction is undone.
pub fn keeps_the_contract(
    name: &str,
    build: impl Fn(&Config) -> AnyController,
    config: &Config,
    ops: &[Op],
    flight: u64,
) {
    let (mut cc, mut again) = (build(config), build(config));
    let mut driver = Driver::default();
    let mut second = Driver {
        short: true,
        ..Driver::default()
    };
    for op in ops {
        let before = cc.window();
        driver.apply(*op, config.count_segments, &mut cc, |_, _| {});
        second.apply(*op, config.count_segments, &mut again, |_, _| {});
        assert!(cc.window() >= Bytes(MSS), "{name}: window {}", cc.window());
        // HyStart++ may end slow start at a window of one segment.
        let reduction = matches!(
            op,
            Op::Congestion(
                CongestionKind::Loss | CongestionKind::Ecn | CongestionKind::Timeout { first: true },
                _
            )
        );
        let floor = if reduction { Bytes(2 * MSS) } else { Bytes(MSS) };
        assert!(cc.ssthresh() >= floor, "{name}: ssthresh {}", cc.ssthresh());
        // A model of the path bounds what is in flight whether the window is in use or not.
        if let Op::Ack {
            limited, recovering, ..
        } = *op
            && (recovering || !limited)
            && !cc.uses_rates()
        {
            assert!(
                cc.window() <= before,
                "{name} grew from {before} to {}",
                cc.window()
            );
        }
        if config.count_segments {
            assert_eq!(cc.window().0 % MSS, 0, "{name}: window {}", cc.window());
        }
        assert_eq!(
            (cc.window(), cc.ssthresh()),
            (again.window(), again.ssthresh()),
            "{name}: twice the same"
        );
    }
    // An undo right after a reduction restores what it took.
    let kept = (cc.window(), cc.ssthresh());
    for kind in [
        CongestionKind::Loss,
        CongestionKind::Ecn,
        CongestionKind::Timeout { first: true },
    ] {
        cc.on_congestion(driver.now, &congestion(kind, flight.min(kept.0.0 / MSS)));
        cc.on_congestion(driver.now, &congestion(CongestionKind::Undo, flight));
        assert!(cc.window() >= kept.0, "{name}: {} for {}", cc.window(), kept.0);
        if kept.0 > Bytes(2 * MSS) && !cc.uses_rates() {
            let mut restored = kept;
            if config.cubic_arithmetic.is_linux() && name == "cubic" {
                // Linux restores a threshold of at least three quarters of the window.
                let segments = kept.0.0 / MSS;
                restored.1 = kept.1.max(Bytes((segments / 2 + segments / 4) * MSS));
            }
            assert_eq!((cc.window(), cc.ssthresh()), restored, "{name}: undo");
        }
    }
}

/// Any numbers: no call panics, and the window is at least one segment after each of `calls` (a time, two amounts, bits that
/// choose the call).
pub fn strange_calls(cc: &mut AnyController, mss: u64, calls: &[(u64, u64, u64, u8)]) {
    for &(a, b, c, bits) in calls {
        let now = Instant::from_nanos(a);
        let bit = |index: u8| bits >> index & 1 == 1;
        let sent = Sent {
            bytes: Bytes(b),
            in_flight: Bytes(c),
            retransmission: bit(0),
        };
        cc.on_sent(now, &sent);
        let rtt = Some(Duration::from_nanos(c));
        let ack = Ack {
            acked: Bytes(b),
            ce_bytes: Bytes(c),
            rtt,
            srtt: rtt,
            round_start: bit(1),
            cwnd_limited: bit(2),
            recovering: bit(3),
            ..ack(0)
        };
        cc.on_ack(now, &ack);
        if bit(4) {
            let kind = match bits >> 5 {
                0 | 1 => CongestionKind::Loss,
                2 => CongestionKind::Ecn,
                3 => CongestionKind::Undo,
                4 => CongestionKind::Delay,
                first => CongestionKind::Timeout { first: first > 5 },
            };
            let event = Congestion {
                kind,
                flight_size: Bytes(b),
                in_flight: Bytes(c),
            };
            cc.on_congestion(now, &event);
            cc.on_idle(now, Duration::from_nanos(b));
            cc.on_window_restart(now);
        }
        if bit(7) {
            cc.set_window(now, Bytes(c), Bytes(b));
        }
        assert!(cc.window() >= Bytes(mss));
    }
}
