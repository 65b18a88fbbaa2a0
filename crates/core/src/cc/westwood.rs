//! Westwood+: NewReno that continues after a loss from the rate it measured, not from half of the window.
//!
//! Acknowledged bytes are counted over round trips of at least 50 ms and smoothed twice. After a recovery window and threshold are
//! that rate times the smallest RTT: what the path holds without a queue. So losses that are no congestion cost little.
//!
//! **Source.** Mascolo, Casetti, Gerla, Sanadidi and Wang, "TCP Westwood: bandwidth estimation for enhanced transport over
//! wireless links", MobiCom 2001; Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno and Vegas TCP congestion
//! control", CCR 34(2), 2004; `net/ipv4/tcp_westwood.c` of Linux 6.18 (read, not copied), in milliseconds and whole bytes
//! per millisecond.
//! **Deviations.** The first interval begins with the first acknowledgment, in Linux with the connection. Duplicate ACKs count
//! as one segment each and are taken off the jump that follows, also where Linux is on its fast path and would not look.
//! **Parameters.** None, as in Linux.

use super::reno::of_reno;
use super::{Ack, Config, Congestion, CongestionController, CongestionKind, HyStart, Reaction, Reno, Units};
use crate::parameter::{Parameter, Values};
use crate::time::Instant;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Westwood+.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Westwood {
    reno: Reno,
    units: Units,
    /// When the interval began that is being measured.
    interval: Option<Instant>,
    /// Acknowledged within it.
    acked: Bytes,
    /// Counted for duplicate ACKs and not yet acknowledged cumulatively.
    duplicates: Bytes,
    /// Rate, smoothed once and twice, in bytes per millisecond.
    once: Bytes,
    rate: Bytes,
    rtt_ms: u32,
    min_rtt_ms: u32,
    /// The next RTT is the smallest, whatever was before.
    forget_min: bool,
    /// A loss or mark has begun a recovery that no timeout ended.
    reducing: bool,
}

impl Westwood {
    /// None.
    pub const PARAMETERS: &'static [Parameter] = &[];

    /// A controller with `config.initial_window`.
    pub fn new(values: &Values, config: &Config) -> Westwood {
        let plain = Config {
            hystart: HyStart::Off,
            ..*config
        };
        Westwood {
            reno: Reno::new(values, &plain),
            units: Units::new(config),
            interval: None,
            acked: Bytes::ZERO,
            duplicates: Bytes::ZERO,
            once: Bytes::ZERO,
            rate: Bytes::ZERO,
            rtt_ms: UNKNOWN_RTT_MS,
            min_rtt_ms: UNKNOWN_RTT_MS,
            forget_min: true,
            reducing: false,
        }
    }

    /// Ends the interval if a round trip is over.
    fn measure(&mut self, now: Instant) {
        let Some(begin) = self.interval else {
            self.interval = Some(now);
            return;
        };
        let span_ms = (now.as_nanos() / MS).saturating_sub(begin.as_nanos() / MS);
        if self.rtt_ms == 0 || span_ms <= u64::from(self.rtt_ms.max(LEAST_INTERVAL_MS)) {
            return;
        }
        let sample = Bytes(self.acked.0 / span_ms);
        if self.once == Bytes::ZERO && self.rate == Bytes::ZERO {
            (self.once, self.rate) = (sample, sample);
        } else {
            self.once = smooth(self.once, sample);
            self.rate = smooth(self.rate, self.once);
        }
        (self.interval, self.acked) = (Some(now), Bytes::ZERO);
    }

    /// What an acknowledgment adds to the interval: a duplicate one segment, and what follows so much less.
    fn count(&mut self, acked: Bytes) -> Bytes {
        let mss = self.units.mss();
        if acked == Bytes::ZERO {
            self.duplicates = self.duplicates.saturating_add(mss);
            return mss;
        }
        if acked <= mss {
            return acked;
        }
        if self.duplicates >= acked {
            self.duplicates = self.duplicates.saturating_sub(acked);
            return mss;
        }
        acked.saturating_sub(core::mem::take(&mut self.duplicates))
    }

    /// Rate times smallest RTT, in whole segments, two at least.
    fn pipe(&self) -> Bytes {
        let mss = self.units.mss().0.max(1);
        let bytes = self.rate.0.saturating_mul(u64::from(self.min_rtt_ms));
        Bytes((bytes / mss).max(2).saturating_mul(mss))
    }
}

impl CongestionController for Westwood {
    fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Reaction {
        if let Some(rtt) = ack.newest_rtt.or(ack.rtt).filter(|rtt| rtt.as_micros() > 0) {
            self.rtt_ms = u32::try_from(rtt.as_micros().div_ceil(1000)).unwrap_or(u32::MAX);
        }
        let first = self.interval.is_none();
        self.measure(now);
        if !first {
            let counted = self.count(ack.acked);
            self.acked = self.acked.saturating_add(counted);
        }
        self.min_rtt_ms = match core::mem::take(&mut self.forget_min) {
            true => self.rtt_ms,
            false => self.min_rtt_ms.min(self.rtt_ms),
        };
        self.reno.on_ack(now, ack)
    }

    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        self.reno.on_congestion(now, event);
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn | CongestionKind::Delay => self.reducing = true,
            CongestionKind::Timeout { first } => {
                self.reducing = false;
                if first {
                    self.reno.put(self.reno.window(), self.pipe());
                    self.forget_min = true;
                }
            }
            CongestionKind::RecoveryEnd => {
                if core::mem::take(&mut self.reducing) {
                    let pipe = self.pipe();
                    self.reno.put(pipe, pipe);
                }
            }
            CongestionKind::Undo => {}
        }
    }

    of_reno!(set_window window ssthresh uses_sent phase);
}

/// Seven eighths of what was, one eighth of what is new.
fn smooth(old: Bytes, new: Bytes) -> Bytes {
    Bytes((7 * old.0 + new.0) >> 3)
}

const MS: u64 = 1_000_000;
/// Shorter intervals say little (Linux: HZ / 20).
const LEAST_INTERVAL_MS: u32 = 50;
/// What the RTT is before the first sample (Linux: 20 s).
const UNKNOWN_RTT_MS: u32 = 20_000;
