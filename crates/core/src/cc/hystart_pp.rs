//! HyStart++: leave slow start when the round's smallest RTT rises, but carefully.
//!
//! A rise of the smallest RTT between two rounds enters conservative slow start, which grows a quarter as fast. If the
//! RTT falls below the value that began it, slow start resumes; after five rounds congestion avoidance begins. Used
//! in the first slow start only (RFC 9406 4.3).
//!
//! **Source.** RFC 9406 4.2 and 4.3.
//! **Deviations.** The limit L on growth per ACK is `Config::abc_limit`, as everywhere (RFC 9406: 8 segments without
//! pacing, none with it). An ACK without a valid RTT sample counts as no sample.
//! **Parameters.** MIN_RTT_THRESH 4 ms, MAX_RTT_THRESH 16 ms, MIN_RTT_DIVISOR 8, N_RTT_SAMPLE 8,
//! CSS_GROWTH_DIVISOR 4, CSS_ROUNDS 5 (RFC 9406 4.3).

use super::Ack;
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// HyStart++'s state. `Duration::MAX` is the RFC's infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HyStartPlusPlus {
    last_round_min_rtt: Duration,
    current_round_min_rtt: Duration,
    rtt_sample_count: u8,
    /// Infinity outside conservative slow start.
    css_baseline_min_rtt: Duration,
    css_rounds: u8,
}

impl HyStartPlusPlus {
    pub(super) const fn new() -> HyStartPlusPlus {
        HyStartPlusPlus {
            last_round_min_rtt: Duration::MAX,
            current_round_min_rtt: Duration::MAX,
            rtt_sample_count: 0,
            css_baseline_min_rtt: Duration::MAX,
            css_rounds: 0,
        }
    }

    /// Whether growth is divided.
    pub(super) fn conservative(&self) -> bool {
        self.css_baseline_min_rtt != Duration::MAX
    }

    /// What slow start's growth is divided by.
    pub(super) fn growth_divisor(&self) -> u64 {
        if self.conservative() {
            CSS_GROWTH_DIVISOR
        } else {
            1
        }
    }

    /// A round ended: true when conservative slow start is over and congestion avoidance begins.
    pub(super) fn on_round(&mut self) -> bool {
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = Duration::MAX;
        self.rtt_sample_count = 0;
        if self.conservative() {
            // The partial round in which it was entered counts (RFC 9406 4.2).
            self.css_rounds += 1;
            return self.css_rounds >= CSS_ROUNDS;
        }
        false
    }

    /// Looks at the RTT sample, after the window has grown.
    pub(super) fn on_sample(&mut self, ack: &Ack<'_>) {
        let Some(rtt) = ack.rtt else { return };
        self.current_round_min_rtt = self.current_round_min_rtt.min(rtt);
        self.rtt_sample_count = self.rtt_sample_count.saturating_add(1);
        if self.rtt_sample_count < N_RTT_SAMPLE {
            return;
        }
        if self.conservative() {
            if self.current_round_min_rtt < self.css_baseline_min_rtt {
                self.css_baseline_min_rtt = Duration::MAX; // the exit was spurious
                self.css_rounds = 0;
            }
        } else if self.last_round_min_rtt != Duration::MAX {
            let share = Duration::from_nanos(self.last_round_min_rtt.as_nanos() / MIN_RTT_DIVISOR);
            let threshold = share.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if self.current_round_min_rtt.saturating_sub(self.last_round_min_rtt) >= threshold {
                self.css_baseline_min_rtt = self.current_round_min_rtt;
                self.css_rounds = 0;
            }
        }
    }
}

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u8 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u8 = 5;
