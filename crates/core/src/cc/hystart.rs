//! The original HyStart: leave slow start when ACKs come in a train as long as half the RTT, or when the RTT rises.
//!
//! **Source.** Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55 (2011), with the constants
//! that CUBIC has in Linux.
//! **Deviations.** Rounds are the connection's (a round ends when data sent after its begin is acknowledged), as in
//! Linux. Linux lengthens the train threshold when it paces; here pacing does not change it.
//! **Parameters.** ACK spacing at most 2 ms, train at least half the smallest RTT, 8 samples, delay threshold an eighth
//! of the smallest RTT held between 4 and 16 ms, from a window of 16 segments on.

use super::Ack;
use crate::pack::Pack;
use crate::time::{Duration, Instant};

/// HyStart's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HyStart {
    /// Smallest RTT since the beginning or the last timeout; `MAX` before the first sample.
    delay_min: Duration,
    /// Smallest RTT of this round's samples.
    round_min: Duration,
    round_start: Instant,
    /// The last ACK of the train.
    last_ack: Instant,
    samples: u8,
    started: bool,
}

impl HyStart {
    pub(super) const fn new() -> HyStart {
        HyStart {
            delay_min: Duration::MAX,
            round_min: Duration::MAX,
            round_start: Instant::ZERO,
            last_ack: Instant::ZERO,
            samples: 0,
            started: false,
        }
    }

    /// Looks at an acknowledgment in slow start at a window of `segments`; true when slow start should end.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack<'_>, segments: u64) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        self.delay_min = self.delay_min.min(rtt);
        if ack.round_start || !self.started {
            self.started = true;
            self.round_start = now;
            self.last_ack = now;
            self.round_min = Duration::MAX;
            self.samples = 0;
        }
        if segments < LOW_WINDOW {
            return false;
        }
        let mut found = false;
        if now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = now;
            found = now.since(self.round_start).as_nanos() > self.delay_min.as_nanos() / 2;
        }
        self.round_min = self.round_min.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let eighth = Duration::from_nanos(self.delay_min.as_nanos() / 8);
            let threshold = eighth.clamp(DELAY_MIN, DELAY_MAX);
            found |= self.round_min.saturating_sub(self.delay_min) > threshold;
        }
        found
    }
}

impl HyStart {
    pub(super) fn pack(&mut self, pack: &mut Pack<'_>) {
        let HyStart {
            delay_min,
            round_min,
            round_start,
            last_ack,
            samples,
            started,
        } = self;
        pack.duration(delay_min);
        pack.duration(round_min);
        pack.instant(round_start);
        pack.instant(last_ack);
        pack.byte(samples);
        pack.flags([started]);
    }
}

const LOW_WINDOW: u64 = 16;
const ACK_DELTA: Duration = Duration::from_millis(2);
const MIN_SAMPLES: u8 = 8;
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);
