//! The link over time, in bins that get wider when there are too many: memory is bounded however long a command runs.

use serde::{Deserialize, Serialize};

/// Both directions in equal bins of time from the first frame on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// Width of a bin (s).
    pub bin_s: f64,
    /// What the command sent.
    pub sent: Series,
    /// What it received.
    pub received: Series,
    /// The latest delivery of each bin, later than the described link by so much (s).
    pub lateness_s: Vec<f64>,
}

/// One direction, a value for each bin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Layer-3 bits delivered per second.
    pub throughput_bps: Vec<f64>,
    /// Mean time in the queue of what was delivered (s); `null` where nothing was.
    pub queue_delay_s: Vec<Option<f64>>,
    /// The longest of them (s).
    pub queue_delay_max_s: Vec<Option<f64>>,
    /// Packets dropped.
    pub dropped: Vec<u64>,
}

/// A timeline that grows.
#[derive(Clone, Debug)]
pub struct Bins {
    width_ns: u64,
    most: usize,
    start_ns: Option<u64>,
    bins: Vec<Bin>,
}

/// What happened within one width.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    /// Both directions: what was sent, then what was received.
    pub(super) ways: [Way; 2],
    late_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) dropped: u64,
    waited_ns: u64,
    longest_ns: u64,
}

impl Default for Bins {
    fn default() -> Bins {
        Bins::new(50_000_000, 1200)
    }
}

impl Bins {
    /// Bins of this width at first, never more than `most` (at least two).
    pub fn new(width_ns: u64, most: usize) -> Bins {
        Bins {
            width_ns: width_ns.max(1),
            most: most.max(2),
            start_ns: None,
            bins: Vec::new(),
        }
    }

    /// The bin of a moment.
    fn at(&mut self, now_ns: u64) -> &mut Bin {
        let start = *self.start_ns.get_or_insert(now_ns);
        let mut index = (now_ns.saturating_sub(start) / self.width_ns) as usize;
        while index >= self.most {
            self.halve();
            index /= 2;
        }
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Bin::default());
        }
        &mut self.bins[index]
    }

    /// Bins of twice the width.
    fn halve(&mut self) {
        self.width_ns *= 2;
        let halved = self.bins.chunks(2).map(|pair| {
            pair.iter().fold(Bin::default(), |mut sum, bin| {
                for (sum, way) in sum.ways.iter_mut().zip(&bin.ways) {
                    sum.packets += way.packets;
                    sum.bytes += way.bytes;
                    sum.dropped += way.dropped;
                    sum.waited_ns += way.waited_ns;
                    sum.longest_ns = sum.longest_ns.max(way.longest_ns);
                }
                sum.late_ns = sum.late_ns.max(bin.late_ns);
                sum
            })
        });
        self.bins = halved.collect();
    }

    /// A frame was delivered; `way`: 0 if the command sent it.
    pub fn delivered(&mut self, now_ns: u64, way: usize, bytes: u64, waited_ns: u64, late_ns: u64) {
        let bin = self.at(now_ns);
        bin.late_ns = bin.late_ns.max(late_ns);
        let way = &mut bin.ways[way & 1];
        way.packets += 1;
        way.bytes += bytes;
        way.waited_ns = way.waited_ns.saturating_add(waited_ns);
        way.longest_ns = way.longest_ns.max(waited_ns);
    }

    /// A frame was dropped.
    pub fn dropped(&mut self, now_ns: u64, way: usize) {
        self.at(now_ns).ways[way & 1].dropped += 1;
    }

    /// In columns.
    pub fn timeline(&self) -> Timeline {
        let width_s = self.width_ns as f64 / 1e9;
        let series = |way: usize| {
            let ways = || self.bins.iter().map(move |bin| bin.ways[way]);
            let seconds = |ns: f64| Some((ns / 1e3).round() / 1e6);
            Series {
                throughput_bps: ways()
                    .map(|way| (way.bytes as f64 * 8.0 / width_s).round())
                    .collect(),
                queue_delay_s: ways()
                    .map(|way| match way.packets {
                        0 => None,
                        packets => seconds(way.waited_ns as f64 / packets as f64),
                    })
                    .collect(),
                queue_delay_max_s: ways()
                    .map(|way| seconds(way.longest_ns as f64).filter(|_| way.packets > 0))
                    .collect(),
                dropped: ways().map(|way| way.dropped).collect(),
            }
        };
        Timeline {
            bin_s: width_s,
            sent: series(0),
            received: series(1),
            lateness_s: self
                .bins
                .iter()
                .map(|bin| (bin.late_ns as f64 / 1e3).round() / 1e6)
                .collect(),
        }
    }
}

impl Timeline {
    /// The middle of each bin, from the first frame (s).
    pub fn times(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.lateness_s.len()).map(|index| (index as f64 + 0.5) * self.bin_s)
    }
}

#[cfg(test)]
mod tests {
    use super::Bins;

    #[test]
    fn bins_widen_and_lose_nothing() {
        let mut bins = Bins::new(10, 4);
        for step in 0..8 {
            bins.delivered(1000 + 10 * step, 0, 100, 1000 * step, step);
        }
        bins.dropped(1075, 1);
        let timeline = bins.timeline();
        assert_eq!(timeline.bin_s, 20e-9);
        assert_eq!(timeline.sent.throughput_bps, [8e10; 4]);
        assert_eq!(
            timeline.sent.queue_delay_max_s,
            [1e-6, 3e-6, 5e-6, 7e-6].map(Some)
        );
        assert_eq!(timeline.received.dropped, [0, 0, 0, 1]);
        assert_eq!(timeline.received.queue_delay_s, [None; 4]);
        assert_eq!(timeline.times().count(), 4);
    }
}
