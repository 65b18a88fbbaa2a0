//! Time series of one run: the throughput of each traffic group and the wait in one queue, bin by bin.
//!
//! Results keep no time series: the first seed of each variant is run once more, with an observer that keeps what is drawn.

use super::canvas::Canvas;
use super::lines;
use crate::experiment::Prepared;
use crate::run;
use crate::scenario::{Plot, Resolved};
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::Packet;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::spec::{LinkIndex, LinkRate, Spec};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// A pair of panels for each variant: throughputs above, waits below. `None`: there is no such run, or the link has no constant rate.
pub(super) fn draw(prepared: &Prepared, plot: &Plot, link: usize, variants: &[usize]) -> Option<Canvas> {
    let (_, plan) = prepared.points.first()?;
    let seed = *prepared.seeds.first()?;
    let (mut rates, mut waits) = (Vec::new(), Vec::new());
    for &variant in variants {
        let planned = plan.variants.get(variant)?;
        let series = TimeSeries::of(&planned.resolved, seed, link)?;
        let title = |what: &str| format!("{}: {what}", plot.label(&planned.name));
        rates.push(lines::Panel {
            title: title("throughput"),
            lines: series.throughputs(&planned.resolved),
        });
        waits.push(lines::Panel {
            title: title("wait in the queue"),
            lines: vec![series.waits()],
        });
    }
    let axes = |y| lines::Axes {
        x: "time (s)",
        y,
        reference: None,
        wide: false,
    };
    let mut canvas = lines::draw(&rates, axes("throughput (Mbit/s)"));
    canvas.append(&lines::draw(&waits, axes("mean wait (ms)")));
    Some(canvas)
}

/// What one run did in each bin.
struct TimeSeries {
    bin: Duration,
    link: usize,
    /// What a packet takes over the link when nobody waits there: its bytes at a rate, and a delay.
    rate: Rate,
    delay: Duration,
    /// By data flow: its traffic group.
    group_of: Vec<Option<usize>>,
    /// By group and bin: bytes received in order.
    received: Vec<Vec<u64>>,
    /// By bin: packets that passed the link, and their waits in nanoseconds.
    passed: Vec<(u64, u64)>,
}

impl TimeSeries {
    fn of(resolved: &Resolved, seed: u64, link: usize) -> Option<TimeSeries> {
        let spec = Spec {
            seed,
            ..resolved.spec.clone()
        };
        let LinkRate::Constant(rate) = spec.links.get(link)?.rate else {
            return None;
        };
        let bin = spec.bins.unwrap_or_else(|| spec.duration.mul_div(1, BINS));
        let bins = spec.duration.as_nanos().div_ceil(bin.as_nanos().max(1)) as usize;
        let mut series = TimeSeries {
            bin,
            link,
            rate,
            delay: spec.links[link].delay,
            group_of: Vec::new(),
            received: vec![vec![0; bins]; spec.groups.len()],
            passed: vec![(0, 0); bins],
        };
        run::observe(&spec, &AtomicBool::new(false), &mut series).ok()?;
        Some(series)
    }

    fn bin_of(&self, at: Instant) -> usize {
        (at.as_nanos() / self.bin.as_nanos().max(1)) as usize
    }

    /// The middle of a bin, seconds.
    fn middle(&self, bin: usize) -> f64 {
        (bin as f64 + 0.5) * self.bin.as_secs_f64()
    }

    /// A line for each group, from the first bin in which it received to the last.
    fn throughputs(&self, resolved: &Resolved) -> Vec<lines::Line> {
        let mbps = |bytes: u64| bytes as f64 * 8.0 / self.bin.as_secs_f64() / 1e6;
        let groups = self.received.iter().zip(&resolved.groups);
        groups
            .map(|(bytes, group)| {
                let busy = |bytes: &u64| *bytes > 0;
                let from = bytes.iter().position(busy).unwrap_or(0);
                let to = bytes.iter().rposition(busy).map_or(0, |last| last + 1);
                line(
                    &group.name,
                    (from..to).map(|bin| [self.middle(bin), mbps(bytes[bin])]),
                )
            })
            .collect()
    }

    /// The mean wait of the packets of each bin that has any.
    fn waits(&self) -> lines::Line {
        let bins = self.passed.iter().enumerate().filter(|(_, passed)| passed.0 > 0);
        line(
            WAITS,
            bins.map(|(bin, (packets, waited))| [self.middle(bin), *waited as f64 / *packets as f64 / 1e6]),
        )
    }
}

impl Observer for TimeSeries {
    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        if let AppEvent::Opened { group, data, .. } = *event {
            let index = data.0 as usize;
            if self.group_of.len() <= index {
                self.group_of.resize(index + 1, None);
            }
            self.group_of[index] = Some(group as usize);
        }
    }

    fn on_receive(&mut self, now: Instant, flow: FlowId, in_order: Range<u64>) {
        let group = self.group_of.get(flow.0 as usize).copied().flatten();
        let bin = self.bin_of(now);
        if let Some(bytes) = group.and_then(|group| self.received[group].get_mut(bin)) {
            *bytes += in_order.end - in_order.start;
        }
    }

    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, sojourn: Duration) {
        if at.0 as usize != self.link {
            return;
        }
        let bytes = Bytes(u64::from(packet.segment.len()));
        let alone = self.rate.time_for(bytes) + self.delay;
        let bin = self.bin_of(now);
        if let Some((packets, waited)) = self.passed.get_mut(bin) {
            *packets += 1;
            *waited += sojourn.saturating_sub(alone).as_nanos();
        }
    }
}

fn line(name: &str, points: impl Iterator<Item = [f64; 2]>) -> lines::Line {
    lines::Line {
        name: name.to_owned(),
        points: points.collect(),
        intervals: Vec::new(),
        marked: false,
    }
}

/// The line of the lower panels.
const WAITS: &str = "packets";
/// Bins of a run that sets none.
const BINS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::TimeSeries;
    use crate::experiment::{Level, Prepared, library};

    /// Three flows that come and go on 10 Mbit/s (`cdg-convergence`): who is there has a throughput, all together no more than
    /// the line, and nobody waits longer than the buffer of 58 packets lasts.
    #[test]
    fn a_time_series_is_that_of_the_run() {
        let all = library::all().unwrap_or_else(|error| panic!("{error}"));
        let experiment = all.iter().find(|experiment| experiment.id == "cdg-convergence");
        let experiment = experiment.expect("it is in the library");
        let prepared = Prepared::new(experiment, Level::Quick).unwrap_or_else(|error| panic!("{error}"));
        let resolved = &prepared.points[0].1.variants[0].resolved;
        let mut links = resolved.spec.links.iter();
        let link = links.position(|link| link.name == "bottleneck" && link.forward);
        let series = TimeSeries::of(resolved, 1, link.expect("it has one")).expect("a constant rate");
        let lines = series.throughputs(resolved);
        let spans: Vec<_> = lines
            .iter()
            .map(|line| (line.points[0][0], line.points[line.points.len() - 1][0]))
            .collect();
        assert_eq!(
            lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(),
            ["first", "second", "third"]
        );
        for ((from, to), (start, stop)) in spans.into_iter().zip([(0.0, 60.0), (20.0, 80.0), (40.0, 100.0)]) {
            assert!((start..start + 2.0).contains(&from), "{from} for {start}");
            assert!((stop - 2.0..stop + 2.0).contains(&to), "{to} for {stop}");
        }
        for bin in 0..100 {
            let sum: u64 = series.received.iter().map(|bytes| bytes[bin]).sum();
            assert!(sum as f64 * 8.0 <= 10.05e6, "{sum} bytes in second {bin}");
        }
        let waits = series.waits();
        assert!(waits.points.len() >= 98, "{}", waits.points.len());
        let longest = waits.points.iter().map(|point| point[1]).fold(0.0, f64::max);
        assert!((5.0..58.0 * 1.2).contains(&longest), "{longest} ms");
    }
}
