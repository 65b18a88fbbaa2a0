//! Bytes in windows of time.

use super::rate::{CLASSES, class};

/// Bytes by twentieths of a second.
#[derive(Debug)]
pub(super) struct Spans {
    bin: u64,
    /// Bytes by when they came, spread over the time in which they may have, and those of them that had waited.
    bytes: [f64; RING],
    waited: [f64; RING],
    /// Bytes by when they had come at the latest, and by how many bins earlier they can have come at the earliest.
    certain: [[u64; LONGEST]; RING],
    /// Half seconds in which all had to wait, by rate.
    windows: Vec<u32>,
    full: u32,
    least_bps: f64,
}

impl Default for Spans {
    fn default() -> Spans {
        Spans {
            bin: 0,
            bytes: [0.0; RING],
            waited: [0.0; RING],
            certain: [[0; LONGEST]; RING],
            windows: vec![0; CLASSES],
            full: 0,
            least_bps: 0.0,
        }
    }
}

impl Spans {
    /// `bytes` came from `from_ns` to `now_ns`, or not before `since_ns` to be certain; whether they had waited.
    pub(super) fn add(&mut self, now_ns: u64, from_ns: u64, since_ns: Option<u64>, bytes: u64, waited: bool) {
        let bin = now_ns / BIN_NS;
        self.advance(bin);
        if bin + LAG < self.bin {
            return; // captures of several interfaces are not in order
        }
        if let Some(since) = since_ns {
            let earlier = bin.saturating_sub(since / BIN_NS) as usize;
            if let Some(certain) = self.certain[slot(bin)].get_mut(earlier) {
                *certain += bytes;
            }
        }
        let from_ns = from_ns.max(now_ns.saturating_sub(BIN_NS * (LAG - 1))).min(now_ns);
        let span = (now_ns - from_ns).max(1) as f64;
        for part in from_ns / BIN_NS..=bin {
            let begin = from_ns.max(part * BIN_NS);
            let end = now_ns.min((part + 1) * BIN_NS);
            let share = match from_ns == now_ns {
                true => 1.0,
                false => end.saturating_sub(begin) as f64 / span,
            };
            self.bytes[slot(part)] += bytes as f64 * share;
            if waited {
                self.waited[slot(part)] += bytes as f64 * share;
            }
        }
    }

    fn advance(&mut self, bin: u64) {
        if bin <= self.bin {
            return;
        }
        for passed in self.bin..bin.min(self.bin + RING as u64 + LAG) {
            if let Some(last) = passed.checked_sub(LAG) {
                self.window(last);
            }
            let next = slot(passed + 1);
            (self.bytes[next], self.waited[next]) = (0.0, 0.0);
            self.certain[next] = [0; LONGEST];
        }
        if bin > self.bin + RING as u64 + LAG {
            (self.bytes, self.waited) = ([0.0; RING], [0.0; RING]);
            self.certain = [[0; LONGEST]; RING];
        }
        self.bin = bin;
    }

    /// Looks at the windows that end with a bin.
    fn window(&mut self, last: u64) {
        for length in LENGTHS {
            let Some(first) = (last + 1).checked_sub(length as u64) else {
                continue;
            };
            let bytes: u64 = (first..=last)
                .map(|bin| {
                    self.certain[slot(bin)][..=(bin - first) as usize]
                        .iter()
                        .sum::<u64>()
                })
                .sum();
            // Of the first packet all but its last bit may have come before.
            let bps = bytes.saturating_sub(PACKET) as f64 * 8e9 / (length as u64 * BIN_NS) as f64;
            self.least_bps = self.least_bps.max(bps);
        }
        let Some(first) = (last + 1).checked_sub(HALF_SECOND) else {
            return;
        };
        let sum = |bins: &[f64; RING]| (first..=last).map(|bin| bins[slot(bin)]).sum::<f64>();
        let bytes = sum(&self.bytes);
        let never_idle = (first..=last).all(|bin| self.waited[slot(bin)] > 0.0);
        if never_idle && sum(&self.waited) >= 0.9 * bytes {
            self.windows[class(bytes * 8e9 / (HALF_SECOND * BIN_NS) as f64)] += 1;
            self.full += 1;
        }
    }

    /// The class of rates that nine tenths of the windows in which all had to wait do not exceed, and whether there were many near it.
    pub(super) fn held(&mut self) -> (Option<usize>, bool) {
        self.advance(self.bin + LAG + 1);
        let wanted = libm::ceil(f64::from(self.full) * 0.9) as u32;
        let mut seen = 0;
        let reached = |count: &u32| {
            seen += count;
            seen >= wanted
        };
        if self.full == 0 {
            return (None, false);
        }
        let held = self.windows.iter().position(reached);
        let near = held.map_or(0, |held| {
            let near = self.windows.iter().skip(held.saturating_sub(5)).take(11);
            near.sum::<u32>()
        });
        (
            held,
            self.full >= 10 && f64::from(near) >= 0.4 * f64::from(self.full),
        )
    }

    /// The highest rate at which bytes certainly came.
    pub(super) fn least(&mut self) -> Option<f64> {
        self.advance(self.bin + LAG + 1);
        Some(self.least_bps).filter(|bps| *bps > 0.0)
    }
}

fn slot(bin: u64) -> usize {
    (bin % RING as u64) as usize
}

/// A twentieth of a second.
const BIN_NS: u64 = 50_000_000;
const HALF_SECOND: u64 = 10;
/// Layer-3 bytes of a packet.
const PACKET: u64 = 1500;
/// Windows whose bytes are certain, in bins.
const LENGTHS: [usize; 5] = [1, 2, 4, 10, LONGEST];
const LONGEST: usize = 20;
/// Windows are looked at so many bins later: an ACK may tell of what came before.
const LAG: u64 = 10;
/// As many bins as are looked at, and the lag.
const RING: usize = 32;
