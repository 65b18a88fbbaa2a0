//! An estimate of the rate of the bottleneck, for each direction.
//!
//! Two things are looked at. **What was held**: bytes delivered in windows of half a second; a line that is full for a while shows the
//! same rate again and again. **Spacing**: two full packets one behind the other leave a bottleneck as far apart as the second
//! takes to be sent. Behind the bottleneck both are seen in the data; before it data come as their sender likes, so there it is the
//! ACKs that tell. Which side the capture point is on is judged for each connection by the round-trip times to its ends.
//!
//! **Source.** Packet dispersion: Keshav 1991; Dovrolis, Ramanathan and Moore, INFOCOM 2001 (its modes).
//! **Deviations.** The mode is the densest tenth of the rates. All of it is an estimate.

use serde::Serialize;

/// Delivered bytes of one direction.
#[derive(Debug)]
pub(super) struct Meter {
    bin: u64,
    bins: [u64; BINS],
    /// Windows by rate, in classes of 1 per cent.
    windows: Vec<u32>,
    busy: u32,
    largest_bin: u64,
    /// The last delivery: when, bytes.
    last: Option<(u64, u64)>,
    spacing: Vec<u32>,
    total: u64,
}

/// What is known of the rate of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RateEstimate {
    /// The estimate; `None` if nothing was sent.
    pub bps: Option<f64>,
    /// What it is made from.
    pub basis: Basis,
    /// The rate that nine tenths of the busy half seconds do not exceed.
    pub held_bps: Option<f64>,
    /// The most common rate by the spacing of packets.
    pub spacing_bps: Option<f64>,
    /// Pairs of packets that were looked at.
    pub pairs: u64,
    /// Share of them near the most common rate.
    pub spacing_share: f64,
    /// Layer-3 bytes delivered.
    pub bytes: u64,
}

/// What an estimate is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The line was full, again and again at the same rate.
    Held,
    /// The spacing of packets.
    Spacing,
    /// The busiest twentieth of a second: the line has at least this rate.
    #[default]
    AtLeast,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter {
            bin: 0,
            bins: [0; BINS],
            windows: vec![0; CLASSES],
            busy: 0,
            largest_bin: 0,
            last: None,
            spacing: vec![0; CLASSES],
            total: 0,
        }
    }
}

impl Meter {
    /// `bytes` of layer 3 were delivered; `full`: in packets as large as may be.
    pub(super) fn add(&mut self, now_ns: u64, bytes: u64, full: bool) {
        self.advance(now_ns / BIN_NS);
        self.bins[(self.bin % BINS as u64) as usize] += bytes;
        self.total += bytes;
        if let (true, Some((at, _))) = (full, self.last)
            && now_ns > at
        {
            let bps = bytes as f64 * 8e9 / (now_ns - at) as f64;
            self.spacing[class(bps)] += 1;
        }
        self.last = full.then_some((now_ns, bytes));
    }

    fn advance(&mut self, bin: u64) {
        if bin <= self.bin {
            return; // captures of several interfaces are not in order
        }
        for passed in self.bin..bin.min(self.bin + 2 * BINS as u64) {
            self.largest_bin = self.largest_bin.max(self.bins[(passed % BINS as u64) as usize]);
            let bytes: u64 = self.bins.iter().sum();
            if self.bins.iter().all(|bytes| *bytes > 0) {
                self.windows[class(bytes as f64 * 8e9 / (BIN_NS * BINS as u64) as f64)] += 1;
                self.busy += 1;
            }
            self.bins[((passed + 1) % BINS as u64) as usize] = 0;
        }
        self.bin = bin;
    }

    pub(super) fn estimate(mut self) -> RateEstimate {
        self.advance(self.bin + 1);
        let held = quantile(&self.windows, self.busy, 0.9);
        let near = held.map_or(0, |held| {
            self.windows
                .iter()
                .skip(held.saturating_sub(5))
                .take(11)
                .sum::<u32>()
        });
        let full = self.busy >= 10 && f64::from(near) >= 0.4 * f64::from(self.busy);
        let pairs: u32 = self.spacing.iter().sum();
        let mode = (0..CLASSES.saturating_sub(5)).max_by_key(|&from| {
            // The first of the densest.
            (self.spacing[from..from + 5].iter().sum::<u32>(), CLASSES - from)
        });
        let mode = mode.filter(|_| pairs >= 20);
        let dense = mode.map_or(0, |from| self.spacing[from..from + 5].iter().sum::<u32>());
        let spacing_bps = mode.map(|from| {
            let weighted = (from..from + 5).map(|class| value(class) * f64::from(self.spacing[class]));
            weighted.sum::<f64>() / f64::from(dense.max(1))
        });
        let share = f64::from(dense) / f64::from(pairs.max(1));
        let least = self.largest_bin as f64 * 8e9 / BIN_NS as f64;
        let held_bps = held.map(value);
        let (bps, basis) = judge(held_bps, full, spacing_bps.filter(|_| share >= 0.3), least);
        RateEstimate {
            bps: (self.total > 0).then_some(bps),
            basis,
            held_bps,
            spacing_bps,
            pairs: u64::from(pairs),
            spacing_share: share,
            bytes: self.total,
        }
    }
}

/// The rate that several measures speak for: what was held, whether again and again, the spacing of packets if enough of them agree,
/// and the busiest moment.
fn judge(held: Option<f64>, full: bool, spacing: Option<f64>, least: f64) -> (f64, Basis) {
    match (held.filter(|_| full), spacing) {
        (Some(held), Some(spacing)) if (0.9..1.25).contains(&(spacing / held)) => (spacing, Basis::Spacing),
        (Some(held), _) => (held, Basis::Held),
        // A line cannot hold more than its packets are spaced by; the classes of both are some per cent wide.
        (None, Some(spacing)) if spacing >= 0.95 * held.unwrap_or(0.0) => (spacing, Basis::Spacing),
        (None, _) => (least, Basis::AtLeast),
    }
}

/// Classes of 1 per cent from 1 kbit/s on.
fn class(bps: f64) -> usize {
    let class = libm::log(bps.max(1000.0) / 1000.0) / libm::log(1.01);
    (class as usize).min(CLASSES - 1)
}

/// The middle of a class.
fn value(class: usize) -> f64 {
    1000.0 * libm::pow(1.01, class as f64 + 0.5)
}

fn quantile(classes: &[u32], n: u32, quantile: f64) -> Option<usize> {
    let wanted = libm::ceil(f64::from(n) * quantile) as u32;
    let mut seen = 0;
    let reached = |count: &u32| {
        seen += count;
        seen >= wanted
    };
    (n > 0).then(|| classes.iter().position(reached))?
}

/// A twentieth of a second, ten of which are a window.
const BIN_NS: u64 = 50_000_000;
const BINS: usize = 10;
/// Up to 10 Tbit/s.
const CLASSES: usize = 2320;

#[cfg(test)]
mod tests {
    use super::{Basis, Meter, class, judge, value};

    #[test]
    fn classes_are_within_a_percent() {
        for bps in [1_000.0, 12_345.0, 1e6, 9.87e8, 1e12] {
            assert!((value(class(bps)) / bps - 1.0).abs() < 0.006, "{bps}");
        }
    }

    #[test]
    fn a_full_line_is_known_by_its_spacing() {
        let mut meter = Meter::default();
        // 1500 bytes every 1.2 ms: 10 Mbit/s, for 3 s.
        for packet in 0..2500 {
            meter.add(packet * 1_200_000, 1500, true);
        }
        let estimate = meter.estimate();
        assert_eq!(estimate.basis, Basis::Spacing);
        assert!(
            (estimate.bps.expect("sent") / 1e7 - 1.0).abs() < 0.01,
            "{estimate:?}"
        );
        assert!((estimate.held_bps.expect("held") / 1e7 - 1.0).abs() < 0.02);
    }

    #[test]
    fn measures_that_agree_but_for_their_classes_are_believed() {
        // A line of 8 Mbit/s that was full half of the time: 7 of 10 pairs are spaced by 8.013 Mbit/s, the busy half seconds held 8.023.
        let told = judge(Some(8.023e6), false, Some(8.013e6), 25.4e6);
        assert_eq!(told, (8.013e6, Basis::Spacing));
        // Packets two by two at a fraction of what was held say nothing.
        assert_eq!(judge(Some(8e6), false, Some(4e6), 25e6).1, Basis::AtLeast);
        assert_eq!(judge(Some(8e6), true, Some(4e6), 25e6), (8e6, Basis::Held));
        assert_eq!(judge(None, false, None, 1e6), (1e6, Basis::AtLeast));
    }

    #[test]
    fn a_line_that_was_never_full_has_a_lower_bound() {
        let mut meter = Meter::default();
        // A burst of ten every second.
        for burst in 0..10 {
            for packet in 0..10 {
                meter.add(burst * 1_000_000_000 + packet * 1000 * (1 + burst), 1500, false);
            }
        }
        let estimate = meter.estimate();
        assert_eq!((estimate.basis, estimate.held_bps), (Basis::AtLeast, None));
        assert_eq!(estimate.bps, Some(15_000.0 * 8.0 / 0.05));
        assert_eq!(Meter::default().estimate().bps, None);
    }
}
