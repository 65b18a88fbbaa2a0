//! Congestion control: the trait, its inputs, and the registry.
//!
//! A controller owns the congestion window and `ssthresh` and nothing else: loss detection, recovery (PRR) and
//! window validation are the connection's. It never sees a sequence number. What the connection can know once it
//! computes once and passes in [`Ack`].
//!
//! Units: windows in bytes. Where the endpoint counts segments (`tcp::WindowUnit::Packets`: Linux, ns-2) the connection passes whole
//! segments times the MSS, so the algorithms need not care.

use crate::parameter::{Values, choice};
use crate::registry;
use crate::registry::Need;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use alloc::string::String;
use serde::{Deserialize, Serialize};

mod bbr;
mod bbr3;
mod cdg;
mod cdg_freebsd;
mod cubic;
mod cubic_linux;
mod dctcp;
mod delays;
mod hystart;
mod hystart_pp;
mod path;
mod prague;
mod reno;
mod slow_start;
mod vegas;
mod westwood;

/// A congestion control algorithm.
pub trait CongestionController {
    /// A segment with new data or a retransmission was handed to the network. Called if [`uses_sent`](Self::uses_sent).
    fn on_sent(&mut self, _now: Instant, _sent: &Sent) {}
    /// Whether it looks at transmissions. An algorithm that does not saves the look at it for every packet if it says so.
    fn uses_sent(&self) -> bool {
        true
    }
    /// An acknowledgment was processed. Called in every state; growth is the controller's business only when
    /// `!ack.recovering && ack.cwnd_limited`.
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction;
    /// The short form of [`on_ack`](Self::on_ack) for an acknowledgment that was nothing but progress: it does the same,
    /// leaves `ssthresh` alone and returns the window. `None`: it did nothing, and `on_ack` follows. Algorithms from outside
    /// the tree always get `on_ack`.
    fn progress(&mut self, _now: Instant, _progress: Progress) -> Option<Bytes> {
        None
    }
    /// The short form of [`on_ack`](Self::on_ack) for an acknowledgment while `ack.recovering`: whether it did the same, with
    /// nothing but its `newest_rtt`, or else its `rtt`; without either it does nothing. False: it did nothing, and `on_ack` follows, as
    /// it always does with algorithms from outside the tree.
    fn stand_by(&mut self, _now: Instant, _rtt: Option<Duration>) -> bool {
        false
    }
    /// An acknowledgment with an RTT sample while the window is that of a recovery or CWR, before the connection acts upon it, or the one
    /// that ended slow start by a reduction, after it: `on_ack` or `stand_by` follows.
    fn on_reduced_sample(&mut self, _now: Instant, _sample: &ReducedSample) {}
    /// An acknowledgment echoes marks: called before the [`on_congestion`](Self::on_congestion) that may answer them, for algorithms
    /// whose answer depends on the share of marks (RFC 8257 3.3: the average moves before the window). `on_ack` follows.
    fn on_echo(&mut self, _now: Instant, _echo: &Echo) {}
    /// Whether a mark costs less than a loss: then a loss in the round trip after a mark is answered too (RFC 8257 3.5).
    fn is_milder_on_marks(&self) -> bool {
        false
    }
    /// Whether its window is that of a recovery or CWR too, in place of proportional rate reduction (Linux: `cong_control`).
    fn keeps_window(&self) -> bool {
        false
    }
    /// Whether window validation lowers its window after pauses and while little of it is used. Not where the window follows a model of
    /// the path (Linux: `tcp_slow_start_after_idle_check` and `tcp_cwnd_validate` ask for `cong_control`).
    fn restarts_after_pauses(&self) -> bool {
        true
    }
    /// Whether [`CongestionKind::RecoveryEnd`] comes after the repair that follows a timeout, too.
    fn hears_of_repairs(&self) -> bool {
        self.keeps_window()
    }
    /// Something that calls for another window happened.
    fn on_congestion(&mut self, now: Instant, event: &Congestion);
    /// The connection sends again after `idle` without sending.
    fn on_idle(&mut self, _now: Instant, _idle: Duration) {}
    /// The window begins again after such a pause: [`set_window`](Self::set_window) follows with the restart window (RFC 5681 4.1, RFC 2861;
    /// Linux: `CA_EVENT_CWND_RESTART`). Not called where pauses never lower the window.
    fn on_window_restart(&mut self, _now: Instant) {}
    /// Data leaves while nothing is in flight, `idle` after the transmission before it.
    fn on_restart(&mut self, _now: Instant, _idle: Duration) {}
    /// Window validation and restarts set both values; epochs and rounds begin anew.
    fn set_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes);
    /// Window validation decides in the controller's place after congestion or a period without use: as `set_window`, and also for
    /// algorithms that ignore a restart after a pause.
    fn override_window(&mut self, now: Instant, window: Bytes, ssthresh: Bytes) {
        self.set_window(now, window, ssthresh);
    }
    /// Congestion window in bytes; at least one segment.
    fn window(&self) -> Bytes;
    /// Slow-start threshold in bytes; [`Bytes::MAX`] before the first congestion event.
    fn ssthresh(&self) -> Bytes;
    /// Rate at which to pace, if the algorithm wants one.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// What leaves at once where it is paced at a rate of its own, bytes; less than two segments: one by one.
    fn send_quantum(&self) -> Bytes {
        Bytes::ZERO
    }
    /// Whether it needs [`RateSample`]s, and sets a pacing rate.
    fn uses_rates(&self) -> bool {
        false
    }
    /// For traces.
    fn phase(&self) -> Phase;

    /// Whether `values`, each within its own range, make sense together.
    ///
    /// # Errors
    /// A sentence for the author of the scenario file.
    fn check(values: &Values) -> Result<(), String>
    where
        Self: Sized,
    {
        let _ = values;
        Ok(())
    }

    /// The settings it needs besides its name.
    fn needs() -> &'static [Need]
    where
        Self: Sized,
    {
        &[]
    }
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Payload bytes.
    pub bytes: Bytes,
    /// Bytes in flight after it.
    pub in_flight: Bytes,
    /// Whether it was a retransmission.
    pub retransmission: bool,
}

/// What one incoming acknowledgment reported.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// Newly cumulatively acknowledged bytes.
    pub acked: Bytes,
    /// Newly selectively acknowledged bytes (D-SACK excluded).
    pub sacked: Bytes,
    /// Bytes newly delivered: those newly acknowledged or selectively acknowledged, each once.
    pub delivered: Bytes,
    /// Bytes that are selectively acknowledged after it and not cumulatively.
    pub sacked_total: Bytes,
    /// Segments newly acknowledged, either way.
    pub segments: u32,
    /// Bytes delivered since the connection began.
    pub delivered_total: Bytes,
    /// Bytes newly marked lost.
    pub lost: Bytes,
    /// Bytes in flight after this acknowledgment.
    pub in_flight: Bytes,
    /// Bytes in flight before it.
    pub prior_in_flight: Bytes,
    /// RTT sample, if this acknowledgment gave a valid one (Karn).
    pub rtt: Option<Duration>,
    /// RTT of the segment sent last among those it acknowledged, which has no wait of a delayed ACK in it.
    pub newest_rtt: Option<Duration>,
    /// One-way delay of the data path, up to a constant, where timestamps allow it.
    pub one_way_delay: Option<Duration>,
    /// Delivery rate sample.
    pub rate: Option<&'a RateSample>,
    /// Whether a new round trip began with this acknowledgment (data sent after the last round's end was acked).
    pub round_start: bool,
    /// The data acked was sent while the application, not the window, was the limit.
    pub app_limited: bool,
    /// The window was in use when the data acked was sent: growth is allowed (RFC 7661 4.3, RFC 9438 5.8).
    pub cwnd_limited: bool,
    /// In fast recovery or CWR: the window is the recovery's, the controller must not grow it.
    pub recovering: bool,
    /// Bytes newly acknowledged under an ECN echo.
    pub ce_bytes: Bytes,
    /// Smoothed RTT, if known.
    pub srtt: Option<Duration>,
    /// Smallest RTT seen on the connection, if known.
    pub min_rtt: Option<Duration>,
}

/// What an acknowledgment reported that was nothing but progress: nothing lost, marked or SACKed, no recovery.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// As in [`Ack`], more than nothing.
    pub acked: Bytes,
    /// As in [`Ack`], the newest if there are two.
    pub rtt: Option<Duration>,
    /// As in [`Ack`].
    pub cwnd_limited: bool,
}

/// An RTT sample while the window is that of a recovery or CWR.
#[derive(Clone, Copy, Debug)]
pub struct ReducedSample {
    /// As [`Ack::newest_rtt`], or else [`Ack::rtt`].
    pub rtt: Duration,
    /// As in [`Ack`].
    pub round_start: bool,
    /// As in [`Ack`].
    pub srtt: Option<Duration>,
    /// The window in force, which proportional rate reduction has set; for the acknowledgment that ended slow start by a reduction
    /// the window before it.
    pub window: Bytes,
    /// Whether the acknowledgment began the reduction, which has taken place.
    pub begins: bool,
}

/// What an acknowledgment that echoes marks says of them.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// As [`Ack::delivered`].
    pub newly: Bytes,
    /// As in [`Ack`].
    pub delivered_total: Bytes,
    /// As [`Ack::ce_bytes`].
    pub marked: Bytes,
    /// As in [`Ack`].
    pub round_start: bool,
}

impl Echo {
    /// What `ack` says, which need not echo marks.
    fn of(ack: &Ack<'_>) -> Echo {
        Echo {
            newly: ack.delivered,
            delivered_total: ack.delivered_total,
            marked: ack.ce_bytes,
            round_start: ack.round_start,
        }
    }
}

/// A delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over the interval.
    pub delivered: Bytes,
    /// Bytes delivered before the segment left that was acknowledged.
    pub prior_delivered: Bytes,
    /// Bytes in flight when it had left.
    pub in_flight: Bytes,
    /// The longer of the send and the ACK interval.
    pub interval: Duration,
    /// The sample is a lower bound only.
    pub app_limited: bool,
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// What happened.
    pub kind: CongestionKind,
    /// FlightSize in bytes (RFC 5681: sent and not cumulatively acknowledged).
    pub flight_size: Bytes,
    /// Bytes in flight by the pipe estimate; after a timeout those that may still be in flight, above which the window begins: none by
    /// RFC 5681 3.1.
    pub in_flight: Bytes,
}

/// Kinds of congestion event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionKind {
    /// Fast retransmit: recovery begins.
    Loss,
    /// ECN echo: CWR begins, at most once per round trip.
    Ecn,
    /// The retransmission timer expired. `first` unless the same data had timed out already.
    Timeout {
        /// Whether this is the first expiry for this data: only then may `ssthresh` change (RFC 5681 3.1).
        first: bool,
    },
    /// The controller asked for it: a delay-based back-off.
    Delay,
    /// The last reduction was shown to be spurious: restore what was there before it.
    Undo,
    /// Recovery or CWR is over.
    RecoveryEnd,
}

/// What the controller asks for after an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    None,
    /// Reduce the window now: the connection enters CWR and calls `on_congestion` with `Delay`.
    ReduceWindow,
}

/// Phase of the algorithm, for traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Exponential growth.
    SlowStart,
    /// HyStart++'s conservative slow start (RFC 9406).
    ConservativeSlowStart,
    /// Everything after.
    CongestionAvoidance,
}

/// What a controller is built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Sender maximum segment size in bytes.
    pub mss: Bytes,
    /// Window at the start, bytes.
    pub initial_window: Bytes,
    /// Slow-start exit.
    pub hystart: HyStart,
    /// Whether the connection spaces its segments (`pacing`), so that ACKs come in trains without a queue.
    pub paced: bool,
    /// Segments that one acknowledgment may add in slow start (RFC 3465's L); `None`: all that were acknowledged.
    pub abc_limit: Option<u32>,
    /// Take the reduced `ssthresh` from the window, as Linux does, not from FlightSize (RFC 5681, RFC 9438).
    pub reduce_from_window: bool,
    /// Growth is counted in whole segments, as Linux does.
    pub count_segments: bool,
    /// NewReno keeps a fraction of a segment, as ns-2 does.
    pub fractions: bool,
    /// How CUBIC computes.
    pub cubic_arithmetic: CubicArithmetic,
    /// RTT of the handshake, if it was measured.
    pub handshake_rtt: Option<Duration>,
    /// Whether the other end opened the connection.
    pub passive: bool,
    /// Seed of the controller's own random stream.
    pub seed: u64,
}

choice! {
    /// How slow start ends before a loss.
    pub enum HyStart {
        /// Only by loss or mark.
        Off = "off",
        /// The original of CUBIC in Linux: ACK train or delay increase.
        HyStart = "hystart",
        /// RFC 9406.
        HyStartPlusPlus = "hystart++",
        /// The original by CUBIC and nothing by other controllers, as Linux has it.
        Linux = "linux",
    }

    /// How CUBIC computes its window.
    pub enum CubicArithmetic {
        /// RFC 9438 in real numbers.
        Rfc9438 = "rfc9438",
        /// Whole segments, scaled integers and jiffies, as Linux has it.
        Linux = "linux",
        /// The same as before Linux 4.3: a pause is time of the curve.
        LinuxBefore43 = "linux-4.2",
    }
}

impl CubicArithmetic {
    /// Whether it computes as Linux does, of whichever age.
    pub const fn is_linux(self) -> bool {
        match self {
            CubicArithmetic::Rfc9438 => false,
            CubicArithmetic::Linux | CubicArithmetic::LinuxBefore43 => true,
        }
    }
}

impl HyStart {
    /// How CUBIC leaves slow start.
    const fn of_cubic(self) -> HyStart {
        match self {
            HyStart::Linux => HyStart::HyStart,
            HyStart::Off | HyStart::HyStart | HyStart::HyStartPlusPlus => self,
        }
    }

    /// How controllers other than CUBIC leave slow start.
    const fn of_others(self) -> HyStart {
        match self {
            HyStart::Linux => HyStart::Off,
            HyStart::Off | HyStart::HyStart | HyStart::HyStartPlusPlus => self,
        }
    }
}

/// What an algorithm keeps of its [`Config`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Units {
    mss: u32,
    /// Segments, `u32::MAX` without a limit.
    abc_limit: u32,
    reduce_from_window: bool,
    count_segments: bool,
    fractions: bool,
}

impl Units {
    fn new(config: &Config) -> Units {
        Units {
            mss: config.mss.0.min(u64::from(u32::MAX)) as u32,
            abc_limit: config.abc_limit.unwrap_or(u32::MAX),
            reduce_from_window: config.reduce_from_window,
            count_segments: config.count_segments,
            fractions: config.fractions,
        }
    }

    #[inline]
    fn mss(&self) -> Bytes {
        Bytes(u64::from(self.mss))
    }

    /// `bytes` in segments.
    fn segments(&self, bytes: Bytes) -> f64 {
        bytes.0 as f64 / f64::from(self.mss.max(1))
    }

    /// What one acknowledgment may add in slow start.
    #[inline]
    fn limit(&self) -> Bytes {
        if self.abc_limit == u32::MAX {
            return Bytes::MAX;
        }
        Bytes(u64::from(self.mss) * u64::from(self.abc_limit))
    }

    /// `bytes` rounded down to what the window counts: whole segments or bytes.
    #[inline]
    fn whole_units(&self, bytes: Bytes) -> Bytes {
        if self.count_segments {
            let mss = u64::from(self.mss.max(1));
            if bytes.0 == mss {
                return bytes; // mostly: no division
            }
            Bytes(bytes.0 - bytes.0 % mss)
        } else {
            bytes
        }
    }

    /// `factor` of `bytes` to the nearest byte (0.7 has no exact binary form), then rounded down to whole units.
    fn share(&self, bytes: Bytes, factor: f64) -> Bytes {
        self.whole_units(Bytes(libm::round(bytes.0 as f64 * factor) as u64))
    }

    /// What is left of `bytes` when `factor` of them are taken: whole units are taken, as many as there are in that share.
    fn less(&self, bytes: Bytes, factor: f64) -> Bytes {
        if self.count_segments {
            bytes.saturating_sub(self.share(bytes, factor))
        } else {
            self.share(bytes, 1.0 - factor)
        }
    }

    /// What a reduction takes its share of.
    fn reduction_base(&self, window: Bytes, event: &Congestion) -> Bytes {
        if self.reduce_from_window {
            window
        } else {
            event.flight_size
        }
    }

    /// The floor of `ssthresh` (RFC 5681 (4)).
    fn two_segments(&self) -> Bytes {
        self.mss() + self.mss()
    }
}

registry! {
    /// Any registered congestion control.
    #[derive(Serialize, Deserialize)]
    AnyController for CongestionController from Config {
        reno::Reno = "reno" in "reno.rs",
        cubic::Cubic = "cubic" in "cubic.rs",
        dctcp::Dctcp = "dctcp" in "dctcp.rs" boxed,
        prague::Prague = "prague" in "prague.rs" boxed,
        cdg::Cdg = "cdg" in "cdg.rs",
        cdg_freebsd::CdgFreeBsd = "cdg-freebsd" in "cdg_freebsd.rs",
        vegas::Vegas = "vegas" in "vegas.rs" boxed,
        westwood::Westwood = "westwood" in "westwood.rs" boxed,
        bbr::Bbr = "bbr" in "bbr.rs",
        bbr3::Bbr3 = "bbr3" in "bbr3.rs",
        #[serde(skip)] ..
    }
    fast {
        fn progress(&mut self)(now: Instant, progress: Progress) -> Option<Bytes>;
        fn stand_by(&mut self)(now: Instant, rtt: Option<Duration>) -> bool;
    }
    mut {
        fn on_sent(&mut self)(now: Instant, sent: &Sent);
        fn on_ack(&mut self)(now: Instant, ack: &Ack<'_>) -> Reaction;
        fn on_echo(&mut self)(now: Instant, echo: &Echo);
        fn on_congestion(&mut self)(now: Instant, event: &Congestion);
        fn on_idle(&mut self)(now: Instant, idle: Duration);
        fn on_reduced_sample(&mut self)(now: Instant, sample: &ReducedSample);
        fn on_window_restart(&mut self)(now: Instant);
        fn on_restart(&mut self)(now: Instant, idle: Duration);
        fn set_window(&mut self)(now: Instant, window: Bytes, ssthresh: Bytes);
        fn override_window(&mut self)(now: Instant, window: Bytes, ssthresh: Bytes);
    }
    ref {
        fn window(&self)() -> Bytes;
        fn ssthresh(&self)() -> Bytes;
        fn pacing_rate(&self)() -> Option<Rate>;
        fn send_quantum(&self)() -> Bytes;
        fn uses_rates(&self)() -> bool;
        fn uses_sent(&self)() -> bool;
        fn is_milder_on_marks(&self)() -> bool;
        fn keeps_window(&self)() -> bool;
        fn restarts_after_pauses(&self)() -> bool;
        fn hears_of_repairs(&self)() -> bool;
        fn phase(&self)() -> Phase;
    }
}

#[cfg(test)]
mod tests;
