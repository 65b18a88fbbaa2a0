//! Bytes in windows of time.

use super::rate::{CLASSES, class};

/// Bytes by twentieths of a second.
#[derive(Debug)]
pub(super) struct WindowedBytes {
    bin: u64,
    /// Bytes by when they came, spread over the time in which they may have, and those of them that waited for the line.
    bytes: [f64; RING],
    waited: [f64; RING],
    /// Nanoseconds in which the line was busy, for packets waited for it.
    busy_ns: [f64; RING],
    /// Bytes by when they had come at the latest, and by how many bins earlier they can have come at the earliest.
    certain: [[u64; LONGEST]; RING],
    /// Half seconds in which the line was never idle, by rate.
    windows: Vec<u32>,
    full: u32,
    /// The highest rate of windows of all lengths, for either slack.
    least_bps: [f64; 2],
    slack_ns: [u64; 2],
    /// The most that came within two bins.
    most: f64,
}

/// Bytes that came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    /// When, and since when; to be certain not before this, if that is known.
    pub(super) now_ns: u64,
    pub(super) from_ns: u64,
    pub(super) since_ns: Option<u64>,
    pub(super) bytes: u64,
    /// Since the packet before them.
    pub(super) gap_ns: u64,
    /// They waited for no shorter than that: in that time the line was busy.
    pub(super) waited: bool,
}

impl Default for WindowedBytes {
    fn default() -> WindowedBytes {
        WindowedBytes {
            bin: 0,
            bytes: [0.0; RING],
            waited: [0.0; RING],
            busy_ns: [0.0; RING],
            certain: [[0; LONGEST]; RING],
            windows: vec![0; CLASSES],
            full: 0,
            least_bps: [0.0; 2],
            slack_ns: [0; 2],
            most: 0.0,
        }
    }
}

impl WindowedBytes {
    /// What came in a window left the line within as much more time: what else packets waited for, in two opinions.
    pub(super) fn allow(&mut self, slack_ns: [u64; 2]) {
        self.slack_ns = slack_ns;
    }

    pub(super) fn add(&mut self, came: &Came) {
        let Came { now_ns, bytes, .. } = *came;
        let bin = now_ns / BIN_NS;
        self.advance(bin);
        if bin + LAG < self.bin {
            return; // captures of several interfaces are not in order
        }
        if let Some(since) = came.since_ns {
            let earlier = bin.saturating_sub(since / BIN_NS) as usize;
            if let Some(certain) = self.certain[slot(bin)].get_mut(earlier) {
                *certain += bytes;
            }
        }
        spread(&mut self.bytes, came.from_ns, now_ns, bytes as f64);
        if came.waited {
            spread(&mut self.waited, came.from_ns, now_ns, bytes as f64);
            spread(
                &mut self.busy_ns,
                now_ns.saturating_sub(came.gap_ns),
                now_ns,
                came.gap_ns as f64,
            );
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
            (self.bytes[next], self.waited[next], self.busy_ns[next]) = (0.0, 0.0, 0.0);
            self.certain[next] = [0; LONGEST];
        }
        if bin > self.bin + RING as u64 + LAG {
            (self.bytes, self.waited) = ([0.0; RING], [0.0; RING]);
            self.busy_ns = [0.0; RING];
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
            let bits = bytes.saturating_sub(PACKET) as f64 * 8e9;
            for (least_bps, slack_ns) in self.least_bps.iter_mut().zip(self.slack_ns) {
                *least_bps = least_bps.max(bits / (length as u64 * BIN_NS + slack_ns) as f64);
            }
        }
        let near = self.bytes[slot(last)] + last.checked_sub(1).map_or(0.0, |bin| self.bytes[slot(bin)]);
        self.most = self.most.max(near);
        let Some(first) = (last + 1).checked_sub(HALF_SECOND) else {
            return;
        };
        let sum = |bins: &[f64; RING]| (first..=last).map(|bin| bins[slot(bin)]).sum::<f64>();
        let busy_ns = sum(&self.busy_ns);
        if busy_ns >= BUSY * (HALF_SECOND * BIN_NS) as f64 {
            self.windows[class(sum(&self.waited) * 8e9 / busy_ns)] += 1;
            self.full += 1;
        }
    }

    /// Whether packets can have waited for so long for a line of this rate: what was before them came first.
    pub(super) fn allows(&self, bps: f64, waited_ns: u64) -> bool {
        bps * waited_ns.min(BIN_NS) as f64 / 8e9 <= self.most + PACKET as f64
    }

    /// The median rate of the windows in which the line was busy, as a class, and whether there were many near it.
    pub(super) fn held(&mut self) -> (Option<usize>, bool) {
        self.advance(self.bin + LAG + 1);
        let wanted = libm::ceil(f64::from(self.full) * 0.5) as u32;
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

    /// The highest rate at which bytes certainly left the line, with this slack.
    pub(super) fn least(&mut self, slack: usize) -> Option<f64> {
        self.advance(self.bin + LAG + 1);
        Some(self.least_bps[slack]).filter(|bps| *bps > 0.0)
    }
}

/// Spreads an amount evenly over bins.
fn spread(bins: &mut [f64; RING], from_ns: u64, to_ns: u64, amount: f64) {
    let from_ns = from_ns.max(to_ns.saturating_sub(BIN_NS * (LAG - 1))).min(to_ns);
    if from_ns == to_ns {
        bins[slot(to_ns / BIN_NS)] += amount;
        return;
    }
    let each = amount / (to_ns - from_ns) as f64;
    for part in from_ns / BIN_NS..=to_ns / BIN_NS {
        let begin = from_ns.max(part * BIN_NS);
        let end = to_ns.min((part + 1) * BIN_NS);
        bins[slot(part)] += each * end.saturating_sub(begin) as f64;
    }
}

fn slot(bin: u64) -> usize {
    (bin % RING as u64) as usize
}

/// A twentieth of a second.
const BIN_NS: u64 = 50_000_000;
const HALF_SECOND: u64 = 10;
/// A line that is busy for as much of the time is full.
const BUSY: f64 = 0.9;
/// Layer-3 bytes of a packet.
const PACKET: u64 = 1500;
/// Windows whose bytes are certain, in bins.
const LENGTHS: [usize; 5] = [1, 2, 4, 10, LONGEST];
const LONGEST: usize = 20;
/// Bins after which a window is looked at: an ACK may report data that came before.
const LAG: u64 = 10;
/// As many bins as are looked at, and the lag.
const RING: usize = 32;
