//! Slow start as every window-based algorithm here shares it: exponential growth and the detectors that end it.
//!
//! **Source.** RFC 5681 3.1 with RFC 3465's limit per ACK; the detectors are in `hystart.rs` and `hystart_pp.rs`.
//! **Deviations.** Growth stops at `ssthresh` and what the ACK acknowledged beyond it counts in congestion avoidance,
//! as Linux does; RFC 5681 lets the last step of slow start overshoot.

use super::hystart::HyStart;
use super::hystart_pp::HyStartPlusPlus;
use super::{Ack, HyStart as HyStartChoice, ReducedSample, Units};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use serde::{Deserialize, Serialize};

/// Slow start's detector and the fraction of a unit it has yet to grow by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SlowStart {
    detector: Detector,
    /// Growth earned and not yet a whole unit (conservative slow start divides).
    credit: Bytes,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Detector {
    Off,
    HyStart(Box<HyStart>),
    PlusPlus(Box<HyStartPlusPlus>),
}

/// What an acknowledgment did in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The window after it.
    pub(super) window: Bytes,
    /// `ssthresh` after it: the window, if slow start ended here.
    pub(super) ssthresh: Bytes,
    /// Acknowledged bytes that are congestion avoidance's, zero while slow start goes on.
    pub(super) left: Bytes,
}

impl SlowStart {
    /// `choice` is what the controller at hand makes of the configuration's; `paced` as [`Config::paced`](super::Config::paced).
    pub(super) fn new(choice: HyStartChoice, paced: bool) -> SlowStart {
        SlowStart {
            detector: match choice {
                HyStartChoice::Off | HyStartChoice::Linux => Detector::Off,
                HyStartChoice::HyStart => Detector::HyStart(Box::new(HyStart::new(paced))),
                HyStartChoice::HyStartPlusPlus => Detector::PlusPlus(Box::new(HyStartPlusPlus::new())),
            },
            credit: Bytes::ZERO,
        }
    }

    /// The smallest RTT, for a controller that measures it outside slow start too.
    #[inline]
    pub(super) fn set_delay(&mut self, delay_min: Duration) {
        if let Detector::HyStart(detector) = &mut self.detector {
            detector.set_delay(delay_min);
        }
    }

    /// An RTT sample while the window is a recovery's and below `ssthresh`: whether the original HyStart ends slow start.
    pub(super) fn on_reduced_sample(&mut self, now: Instant, sample: &ReducedSample, units: Units) -> bool {
        match &mut self.detector {
            Detector::HyStart(detector) => detector.on_sample(now, sample, units.mss),
            Detector::PlusPlus(_) | Detector::Off => false,
        }
    }

    /// Whether HyStart++ is in its conservative phase.
    pub(super) fn conservative(&self) -> bool {
        matches!(&self.detector, Detector::PlusPlus(detector) if detector.conservative())
    }

    /// An acknowledgment while `window < ssthresh` and not recovering. Samples are looked at even when the window may
    /// not grow.
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        units: Units,
        window: Bytes,
        ssthresh: Bytes,
    ) -> Step {
        let growing = ack.cwnd_limited && ack.acked > Bytes::ZERO;
        let ended = Step {
            window,
            ssthresh: window,
            left: if growing { ack.acked } else { Bytes::ZERO },
        };
        match &mut self.detector {
            Detector::HyStart(detector) => {
                if detector.on_ack(now, ack, window, units.mss) {
                    return ended;
                }
            }
            Detector::PlusPlus(detector) => {
                if ack.round_start && detector.on_round() {
                    self.detector = Detector::Off;
                    return ended;
                }
            }
            Detector::Off => {}
        }
        let step = if growing {
            self.grow(ack, units, window, ssthresh)
        } else {
            Step {
                window,
                ssthresh,
                left: Bytes::ZERO,
            }
        };
        if let Detector::PlusPlus(detector) = &mut self.detector {
            detector.on_sample(ack);
        }
        step
    }

    /// A congestion event ended this slow start. HyStart++ is for the first one only (RFC 9406 4.3).
    pub(super) fn on_congestion(&mut self) {
        self.credit = Bytes::ZERO;
        match &mut self.detector {
            Detector::PlusPlus(_) => self.detector = Detector::Off,
            Detector::HyStart(_) | Detector::Off => {}
        }
    }

    /// A timeout or a restart: the original HyStart forgets what it measured.
    pub(super) fn on_restart(&mut self) {
        self.credit = Bytes::ZERO;
        if let Detector::HyStart(detector) = &mut self.detector {
            detector.forget();
        }
    }

    #[inline]
    fn grow(&mut self, ack: &Ack<'_>, units: Units, window: Bytes, ssthresh: Bytes) -> Step {
        let limit = units.limit();
        let divisor = match &self.detector {
            Detector::PlusPlus(detector) => detector.growth_divisor(),
            Detector::HyStart(_) | Detector::Off => 1,
        };
        // RFC 5681 (2), RFC 3465 2.2, RFC 9406 4.2
        let earned = self
            .credit
            .saturating_add(Bytes(ack.acked.min(limit).0 / divisor));
        let grown = units.whole_units(earned);
        self.credit = earned.saturating_sub(grown);
        let unbounded = window.saturating_add(grown);
        if unbounded < ssthresh {
            return Step {
                window: unbounded,
                ssthresh,
                left: Bytes::ZERO,
            };
        }
        self.credit = Bytes::ZERO;
        Step {
            window: ssthresh,
            ssthresh,
            left: unbounded.saturating_sub(ssthresh).min(ack.acked),
        }
    }
}
