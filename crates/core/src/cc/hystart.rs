//! The original HyStart: leave slow start when ACKs come in a train as long as half the RTT, or when the RTT rises.
//!
//! **Source.** Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55 (2011), with the constants
//! that CUBIC has in Linux, whose other controllers do without (`hystart = "linux"`).
//! **Deviations.** Rounds are the connection's (a round ends when data sent after its begin is acknowledged), as in
//! Linux, and the RTT is that of the segment sent last.
//! **Parameters.** ACK spacing at most 2 ms, train at least half of the smallest RTT and up to 1 ms for offload (as long
//! as four of its largest packets take), and twice that where segments are paced: those of slow start then leave over half a round
//! trip whatever the path is like (`hystart_update` in Linux 5.6 and later: not halved unless `SK_PACING_NONE`); 8 samples, delay threshold an eighth
//! of the smallest RTT held between 4 and 16 ms, from a window of 16 segments on.

use super::{Ack, ReducedSample};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// HyStart's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Slow start was left: not again before a timeout.
    found: bool,
    /// The connection paces: its own spacing makes trains of half an RTT.
    paced: bool,
}

impl HyStart {
    /// For a connection that is `paced` or not.
    pub(super) const fn new(paced: bool) -> HyStart {
        HyStart {
            delay_min: Duration::MAX,
            round_min: Duration::MAX,
            round_start: Instant::ZERO,
            last_ack: Instant::ZERO,
            samples: 0,
            started: false,
            found: false,
            paced,
        }
    }

    /// As new: what was measured is forgotten.
    pub(super) fn forget(&mut self) {
        *self = HyStart::new(self.paced);
    }

    /// The smallest RTT, where it is measured elsewhere as well.
    pub(super) fn set_delay(&mut self, delay_min: Duration) {
        self.delay_min = delay_min;
    }

    /// Looks at an acknowledgment in slow start at `window` with segments of `mss`; true when slow start should end.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack<'_>, window: Bytes, mss: u32) -> bool {
        let Some(rtt) = ack.newest_rtt.or(ack.rtt) else {
            return false;
        };
        let sample = ReducedSample {
            rtt,
            round_start: ack.round_start,
            srtt: ack.srtt,
            window,
            begins: false,
        };
        self.on_sample(now, &sample, mss)
    }

    /// The same of an RTT sample.
    pub(super) fn on_sample(&mut self, now: Instant, sample: &ReducedSample, mss: u32) -> bool {
        let ReducedSample { rtt, window, .. } = *sample;
        self.delay_min = self.delay_min.min(rtt);
        if self.found {
            return false;
        }
        if sample.round_start || !self.started {
            self.started = true;
            self.round_start = now;
            self.last_ack = now;
            self.round_min = Duration::MAX;
            self.samples = 0;
        }
        if window.0 < LOW_WINDOW * u64::from(mss) {
            return false;
        }
        let mut found = false;
        if now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = now;
            let threshold = self
                .delay_min
                .as_nanos()
                .saturating_add(offload(window, sample.srtt).as_nanos());
            let threshold = if self.paced { threshold } else { threshold / 2 };
            found = now.since(self.round_start).as_nanos() > threshold;
        }
        self.round_min = self.round_min.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let eighth = Duration::from_nanos(self.delay_min.as_nanos() / 8);
            let threshold = eighth.clamp(DELAY_MIN, DELAY_MAX);
            found |= self.round_min.saturating_sub(self.delay_min) > threshold;
        }
        self.found = found;
        found
    }
}

/// What offload may add to the RTT: the time of four of its largest packets at the rate of slow start, two windows per
/// round trip; at most a millisecond (`hystart_ack_delay`).
fn offload(window: Bytes, srtt: Option<Duration>) -> Duration {
    let Some(srtt) = srtt else {
        return Duration::ZERO;
    };
    let time = OFFLOAD.saturating_mul(srtt.as_nanos());
    let rate = window.0.saturating_mul(2);
    if time >= rate.saturating_mul(OFFLOAD_MAX.as_nanos()) {
        return OFFLOAD_MAX; // below 2 Gbit/s: no division
    }
    Duration::from_nanos(time / rate.max(1))
}

/// Four packets of 64 KiB.
const OFFLOAD: u64 = 4 << 16;
const OFFLOAD_MAX: Duration = Duration::from_millis(1);

const LOW_WINDOW: u64 = 16;
const ACK_DELTA: Duration = Duration::from_millis(2);
const MIN_SAMPLES: u8 = 8;
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);
