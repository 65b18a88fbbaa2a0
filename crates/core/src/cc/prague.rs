//! TCP Prague: DCTCP's answer to marks, made for the Internet: a virtual RTT, growth that goes on, pacing, Reno on loss.
//!
//! The share of bytes that were marked is averaged into alpha; a mark takes alpha / 2 of the window, at most once per round
//! trip. Unmarked bytes add a segment per round trip, or less on short paths: from some rounds on a flow grows as if its RTT were
//! `rtt_virtual`, so that flows of different paths get similar rates. It sends ECT(1), which asks the queue for early marks.
//!
//! **Source.** draft-briscoe-iccrg-prague-congestion-control (-04): 2.3 (moving average), 2.4.1 (answer to loss), 2.4.2 (answer to marks,
//! once per round trip), 2.4.4 (reduced dependence on the RTT: 25 ms, 500 rounds), 2.4 (additive increase, pacing); RFC 9331 4.3. Of -04 only
//! its abstract and what implementations of it cite could be read (Chromium's QUIC and quinn: the numbers of 2.4.2 and 2.4.4, gain, virtual RTT,
//! 500 rounds, alpha of 1 at the first mark), the rest in the authors' earlier texts; constants and what the text leaves open as in Linux's
//! `tcp_prague` (the L4S tree).
//! **Deviations.** With `tcp.ecn = true`, or a peer that does not know Accurate ECN (RFC 9768), feedback is RFC 8257's echo, which counts the bytes
//! of acknowledgments and not of packets. What unmarked bytes earn during the round trip of a
//! reduction is added at its end, since the window belongs to the recovery until then; Linux moves its window a segment per ACK.
//! A loss halves the window as NewReno's (the draft lets it be CUBIC's), also within a virtual round trip after a mark, where implementations
//! of -04 first take that reduction back. The fall-back on a
//! classic ECN queue is left out, as it is off by default in Linux; so are windows below two segments. No HyStart.
//! A round begins when the last one's data is acknowledged; the average waits for the longer of a round and `rtt_virtual` from the
//! start, in Linux only after `transition`. It moves before the marks of the same acknowledgment are
//! answered. A burst is what the endpoint's pacing lets go, not a quarter of a millisecond.
//! Where the window counts segments, what a reduction leaves of one is kept for the growth (Linux: `cwnd_cnt`). Pauses never lower the window,
//! in any profile, since `tcp_prague` has a `cong_control`.
//! **Parameters.** `gain` 1/16, `rtt_virtual` 25 ms, `transition` 500 rounds.

use super::reno::of_reno;
use super::{
    Ack, Config, Congestion, CongestionController, CongestionKind, Echo, HyStart, Reaction, Reno, Units,
};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::registry::Need;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

/// TCP Prague.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prague {
    /// Slow start, losses and timeouts.
    reno: Reno,
    units: Units,
    gain: f64,
    rtt_virtual: Duration,
    transition: u32,
    /// Estimate of the share of bytes marked.
    alpha: f64,
    /// A mark was seen.
    marked_before: bool,
    /// Bytes delivered, and of these marked, since the average was last moved.
    delivered: u64,
    marked: u64,
    /// What this acknowledgment says of marks has been counted.
    counted: bool,
    /// When the average was last moved.
    moved: Instant,
    /// Rounds after slow start, until growth and reductions depend on the virtual RTT.
    rounds: u32,
    /// When a mark last reduced the window.
    reduced: Option<Instant>,
    srtt: Duration,
    /// In the round trip of a reduction by a mark.
    reducing: bool,
    /// Growth that is not in the window yet, in bytes.
    earned: f64,
}

impl Prague {
    /// `gain`, `rtt_virtual`, `transition`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("gain": Number(0.000_976_562_5, 1.0) = 0.0625,
            "Weight of a round's share of marked bytes in its average (the draft's g: 1/16)"),
        parameter!("rtt_virtual": Duration(Duration::ZERO, Duration::from_secs(1)) = Duration::from_millis(25),
            "RTT as which shorter ones count in growth and average (the draft: 25 ms; 0: none)"),
        parameter!("transition": Integer(0, 1_000_000) = 500,
            "Rounds before growth depends on `rtt_virtual` (the draft's D: 500)"),
    ];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Prague {
        let plain = Config {
            hystart: HyStart::Off,
            fractions: false,
            ..*config
        };
        Prague {
            reno: Reno::new(values, &plain),
            units: Units::new(&plain),
            gain: values.number("gain").unwrap_or(0.0625),
            rtt_virtual: values
                .duration("rtt_virtual")
                .unwrap_or(Duration::from_millis(25)),
            transition: values.integer("transition").unwrap_or(500) as u32,
            alpha: 0.0,
            marked_before: false,
            delivered: 0,
            marked: 0,
            counted: false,
            moved: Instant::ZERO,
            rounds: 0,
            reduced: None,
            srtt: config.handshake_rtt.unwrap_or(Duration::ZERO),
            reducing: false,
            earned: 0.0,
        }
    }

    /// The estimate of the share of bytes marked.
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Draft 2.3: the average moves once per round trip, a virtual one if that is longer.
    fn observe(&mut self, now: Instant, echo: &Echo) {
        self.delivered = self.delivered.saturating_add(echo.newly.0);
        self.marked = self.marked.saturating_add(echo.marked.0);
        if !echo.round_start || now.since(self.moved) < self.srtt.max(self.rtt_virtual) {
            return;
        }
        if self.delivered > 0 {
            let share = (self.marked as f64 / self.delivered as f64).min(1.0);
            self.alpha += self.gain * (share - self.alpha);
        }
        (self.delivered, self.marked, self.moved) = (0, 0, now);
    }

    /// Whether the virtual RTT counts by now.
    fn is_independent(&self) -> bool {
        self.rounds >= self.transition
    }

    /// Share of a segment per round trip that the window grows by: (RTT / virtual RTT)^2, so that the growth per second of
    /// rate is that of a flow with the virtual RTT.
    fn pace_of_growth(&self) -> f64 {
        if !self.is_independent() || self.srtt >= self.rtt_virtual || self.srtt.is_zero() {
            return 1.0;
        }
        let ratio = self.srtt.as_secs_f64() / self.rtt_virtual.as_secs_f64();
        ratio * ratio
    }

    /// Puts whole units of what was earned into the window.
    fn grow(&mut self) {
        let whole = self.units.whole_units(Bytes(self.earned as u64));
        if whole > Bytes::ZERO {
            self.earned -= whole.0 as f64;
            self.reno.enlarge(whole);
        }
    }
}

impl CongestionController for Prague {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        if let Some(srtt) = ack.srtt {
            self.srtt = srtt;
        }
        if ack.round_start && self.reno.window() >= self.reno.ssthresh() {
            self.rounds = self.rounds.saturating_add(1);
        }
        if !core::mem::take(&mut self.counted) {
            self.observe(now, &Echo::of(ack));
        }
        if ack.recovering && !self.reducing {
            return Reaction::None;
        }
        if !ack.recovering && self.reno.window() < self.reno.ssthresh() {
            return self.reno.on_ack(now, ack);
        }
        // Draft 2.4: only what was not marked earns, and it does so during a reduction too.
        let unmarked = ack.delivered.saturating_sub(ack.ce_bytes).0;
        if ack.cwnd_limited && unmarked > 0 {
            let window = self.reno.window().0.max(1) as f64;
            self.earned += self.pace_of_growth() * unmarked as f64 * self.units.mss().0 as f64 / window;
        }
        if !ack.recovering {
            self.grow();
        }
        Reaction::None
    }

    fn is_milder_on_marks(&self) -> bool {
        true
    }

    fn restarts_after_pauses(&self) -> bool {
        false // `tcp_prague` has a `cong_control`
    }

    fn on_echo(&mut self, now: Instant, echo: &Echo) {
        self.observe(now, echo);
        self.counted = true;
    }

    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        match event.kind {
            CongestionKind::Ecn => {
                if !core::mem::replace(&mut self.marked_before, true) {
                    self.alpha = 1.0; // the first mark halves, as it ends slow start
                }
                let from_window = Congestion {
                    flight_size: self.reno.window(),
                    ..*event
                };
                // As alpha and growth, reductions go by the virtual round trip.
                let again =
                    self.is_independent() && self.reduced.is_some_and(|at| now.since(at) < self.rtt_virtual);
                let share = if again { 1.0 } else { 1.0 - self.alpha / 2.0 };
                let exact = self.reno.window().0 as f64 * share;
                self.reno.enter_recovery(&from_window, share);
                if self.units.count_segments {
                    // What is left of a segment is not given up (`prague_enter_cwr`, `cwnd_cnt`).
                    self.earned += (exact - self.reno.window().0 as f64).max(0.0);
                }
                self.reducing = true;
                if !again {
                    self.reduced = Some(now);
                }
            }
            CongestionKind::RecoveryEnd => {
                self.reno.on_congestion(now, event);
                self.reducing = false;
                if self.reno.window() >= self.reno.ssthresh() {
                    self.grow();
                }
            }
            CongestionKind::Loss | CongestionKind::Timeout { .. } | CongestionKind::Delay => {
                self.reducing = false;
                self.earned = 0.0;
                self.reno.on_congestion(now, event);
            }
            CongestionKind::Undo => self.reno.on_congestion(now, event),
        }
    }

    fn set_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes) {
        self.earned = 0.0;
        self.reno.set_window(now, window, ssthresh);
    }

    of_reno!(window ssthresh uses_sent phase);

    fn pacing_rate(&self) -> Option<Rate> {
        if self.srtt.is_zero() {
            return None;
        }
        // Draft 2.4: the window over a round trip, twice that below half the threshold, where slow start doubles once more.
        let window = u128::from(self.reno.window().0);
        let half_threshold = self.reno.ssthresh() / 2;
        let factor = if self.reno.window() < half_threshold { 2 } else { 1 };
        let bits = 8 * factor * window * 1_000_000_000;
        let bps = bits / u128::from(self.srtt.as_nanos());
        Some(Rate::from_bps(bps.min(u128::from(u64::MAX)) as u64))
    }

    fn uses_rates(&self) -> bool {
        true
    }

    fn needs() -> &'static [Need] {
        const NEEDS: &[Need] = &[
            Need::new("tcp.ecn", "\"accurate\"", "marks are what it answers; required, and set by itself")
                .or_value("true")
                .by_itself()
                .or_refused(
                    "`prague` answers marks, and without ECN it would see none: it would be Reno",
                ),
            Need::new("tcp.ecn_codepoint", "\"ect1\"", "the queue of L4S; required, and set by itself")
                .by_itself()
                .or_refused(
                    "`prague` needs ECT(1) (RFC 9331 4.1): with ECT(0) it would wait in the classic queue, whose marks ask for more than it gives; `dctcp` takes either",
                ),
            Need::new("tcp.ecn_echo", "\"rfc8257\"", "every mark is reported, with `tcp.ecn` = true or a peer without Accurate ECN; required, and set by itself")
                .by_itself()
                .or_refused(
                    "`prague` answers the share of marks (RFC 9331 4.2), and this echo reports only that there was one",
                ),
            Need::new("network.bottleneck.queue.kind", "\"dualpi2\"", "a queue that marks early"),
        ];
        NEEDS
    }
}

#[cfg(test)]
mod tests;
