//! Harm: what a variant takes from a group that the group could rightly keep.
//!
//! For a group whose throughput counts it is the share lost of the smaller of what the group had in the baseline and its
//! max-min fair share of the network in the variant, given what the others carry there. A group that gives back what it had
//! beyond its fair share is not harmed; nor is one whose neighbours are served sooner and so ask for more, as long as it gets
//! its fair share of the rest. Capacity that a variant leaves idle although somebody wanted it is missing in that group's
//! goodput and is harm. Of a group whose users wait it is the share by which its times grew: 1 - before / after.
//!
//! A group of transfers or bursts that nobody waits for is not harmed either where they surely finish sooner, and neither one in a hundred
//! more of them stays unfinished nor surely more of them do (`ranking`): whatever they carried less within the measured time they had carried before it began. A slow burst
//! reaches from the warm-up into the measured time and a quick one does not, so that the share lost would depend on
//! where the measured time begins, and shrink the longer it lasts.
//!
//! **Source.** Harm as the relative loss of performance against a reference, (alone - with) / alone where more is better and
//! (with - alone) / with where less is: Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019,
//! section 3. Max-min fair shares: Bertsekas and Gallager 1992.
//! **Deviations.** The reference of Ware et al. is the flow alone; here it is the baseline, cut to the fair share, since the
//! question is what a change does to others. Fair shares are of rates averaged over [warmup, duration); open-loop transfers
//! count as as many users as there are transfers, so that their load is met before greedy flows share the rest, as under
//! processor sharing. The acknowledgments of a group are a class of their own on each link, one unit for each of its units, whose demand is what they
//! took in the variant: they are met before greedy flows only up to their own fair share, so that it is harm where the acknowledgments of
//! downloads fill an uplink. Of a greedy group that is active for part of the measured time, the fair share is that part of what it
//! would get all the time beside the others; for the others it is a demand of what it carried. Shares are of payload, with
//! one payload per byte for each link: flows of small packets beside flows of large ones count the same.

use super::fair::{Class, shares};
use crate::result::RunData;
use crate::scenario::Resolved;
use fleetfoot_core::time::Instant;
use fleetfoot_sim::output::{GroupOutput, RunOutput};
use fleetfoot_sim::routing::Paths;
use fleetfoot_sim::spec::{GroupSpec, LinkSpec, PairPolicy, Transport};

/// Fair shares of the groups of a scenario, run by run.
pub(super) struct Fair<'a> {
    described: &'a Resolved,
    /// For each group and pair the directed links from the data sender to the receiver.
    paths: Vec<Vec<Vec<usize>>>,
    /// The links back, on which its acknowledgments go.
    back: Vec<Vec<Vec<usize>>>,
}

impl<'a> Fair<'a> {
    /// Fair shares of the network as described: variants change queues and endpoints, not paths.
    pub(super) fn new(described: &'a Resolved) -> Fair<'a> {
        let spec = &described.spec;
        let mut routes = Paths::new(spec);
        let mut links = |from, to| {
            let start = routes.find(spec, from, to);
            start.map_or_else(Vec::new, |start| {
                routes.links(start).map(|link| link.0 as usize).collect()
            })
        };
        let groups = spec.groups.iter();
        let (paths, back) = groups
            .map(|group| -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
                let pairs = group.pairs.iter();
                pairs
                    .map(|&(from, to)| (links(from, to), links(to, from)))
                    .unzip()
            })
            .unzip();
        Fair {
            described,
            paths,
            back,
        }
    }

    /// For each run the payload bytes that group `index` carried in the variant and those it could rightly keep: the smaller
    /// of the baseline's and of its fair share. Runs are paired.
    pub(super) fn kept(&self, index: usize, baseline: &[&RunData], variant: &[&RunData]) -> Kept {
        let of = |output: &RunOutput| {
            output
                .groups
                .get(index)
                .map_or(0.0, |group| group.goodput_bytes.0 as f64)
        };
        let pairs = baseline.iter().zip(variant);
        let (carried, rightful) = pairs
            .map(|(before, after)| {
                let fair = self.share(index, &before.output, &after.output);
                ((of(&after.output), 1.0), (of(&before.output).min(fair), 1.0))
            })
            .unzip();
        Kept { carried, rightful }
    }

    /// Max-min fair share of group `index` in payload bytes over the measured time.
    fn share(&self, index: usize, before: &RunOutput, after: &RunOutput) -> f64 {
        let spec = &self.described.spec;
        let mut classes = Vec::new();
        let mut own = Vec::new();
        for (number, group) in spec.groups.iter().enumerate() {
            let counts = units(group, after.groups.get(number));
            for (pair, (path, units)) in self.paths[number].iter().zip(counts).enumerate() {
                let of = |output: &RunOutput| carried(output.groups.get(number), pair);
                let greedy = group.traffic.is_elastic() && (number == index || self.active(number) >= WHOLE);
                let demand = match (greedy, number == index) {
                    (true, _) => f64::INFINITY,
                    (false, true) => of(before).max(of(after)) / units,
                    (false, false) => of(after) / units,
                };
                if units > 0.0 && demand > 0.0 {
                    if number == index {
                        own.push(classes.len());
                    }
                    classes.push(Class {
                        units,
                        demand,
                        path: path.clone(),
                    });
                }
            }
        }
        let capacities = self.capacities(before, after);
        classes.extend(self.acknowledgments(after, &capacities));
        let capacities: Vec<f64> = capacities.iter().map(|link| link.payload).collect();
        let share = shares(&classes, &capacities);
        let whole: f64 = own
            .into_iter()
            .map(|class| classes[class].units * share[class])
            .sum();
        match spec.groups[index].traffic.is_elastic() {
            true => whole * self.active(index),
            false => whole,
        }
    }

    /// The share of its time for which a link is busy with what groups need by themselves, which is all but what greedy ones carry.
    pub(super) fn needed(&self, link: usize, runs: &[RunData]) -> f64 {
        let spec = &self.described.spec;
        let measured_s = (spec.duration - spec.warmup).as_secs_f64() * runs.len() as f64;
        let (mut busy_s, mut all, mut greedy) = (0.0, 0.0, 0.0);
        for run in runs {
            let output = &run.output;
            busy_s += output.links.get(link).map_or(0.0, |link| link.busy.as_secs_f64());
            for ((paths, group), carrying) in self.paths.iter().zip(&spec.groups).zip(&output.groups) {
                let crossing = paths.iter().enumerate().filter(|(_, path)| path.contains(&link));
                let bytes: f64 = crossing.map(|(pair, _)| carried(Some(carrying), pair)).sum();
                all += bytes;
                greedy += if group.traffic.is_elastic() { bytes } else { 0.0 };
            }
        }
        if measured_s > 0.0 && all > 0.0 {
            busy_s / measured_s * (1.0 - greedy / all)
        } else {
            0.0
        }
    }

    /// Share of the measured time in which a group is active.
    fn active(&self, index: usize) -> f64 {
        let spec = &self.described.spec;
        let group = &spec.groups[index];
        let begin = group.start.max(spec.warmup);
        let end = group.stop.unwrap_or(spec.duration).min(spec.duration);
        let measured = (spec.duration - spec.warmup).as_secs_f64();
        if measured > 0.0 && end > begin {
            (end - begin).as_secs_f64() / measured
        } else {
            0.0
        }
    }

    /// The acknowledgments of each group and pair on each link of its way back, as users of their own: what a link carried of them in the variant, dealt
    /// by what the groups carried whose acknowledgments it has.
    fn acknowledgments(&self, after: &RunOutput, capacities: &[Capacity]) -> Vec<Class> {
        let spec = &self.described.spec;
        let mut of_link: Vec<Vec<(f64, f64)>> = vec![Vec::new(); spec.links.len()];
        for (number, group) in spec.groups.iter().enumerate() {
            let output = after.groups.get(number);
            // Nothing acknowledges datagrams.
            if group.traffic.facts().transport == Transport::Datagrams {
                continue;
            }
            for (pair, (path, units)) in self.back[number].iter().zip(units(group, output)).enumerate() {
                let bytes = carried(output, pair);
                if units > 0.0 && bytes > 0.0 {
                    path.iter().for_each(|&link| of_link[link].push((units, bytes)));
                }
            }
        }
        let mut classes = Vec::new();
        for (link, (own, capacity)) in of_link.iter().zip(capacities).enumerate() {
            let all: f64 = own.iter().map(|(_, bytes)| bytes).sum();
            if own.is_empty() {
                // Whatever they answer, nobody's data shows whose they are.
                classes.push(Class {
                    units: 1.0,
                    demand: capacity.acknowledged,
                    path: vec![link],
                });
            }
            classes.extend(own.iter().map(|(units, bytes)| Class {
                units: *units,
                demand: capacity.acknowledged * bytes / all / units,
                path: vec![link],
            }));
        }
        classes
    }

    /// What each directed link can carry within the measured time, as payload: bytes of its rate times payload per byte of data packets, the
    /// better of baseline and variant; and what acknowledgments and other packets without data took of that in the variant.
    fn capacities(&self, before: &RunOutput, after: &RunOutput) -> Vec<Capacity> {
        let spec = &self.described.spec;
        let measured = [spec.warmup, spec.duration].map(|at| Instant::ZERO.saturating_add(at));
        let mut payload = vec![[0.0; 2]; spec.links.len()];
        for (side, output) in [before, after].into_iter().enumerate() {
            for (paths, group) in self.paths.iter().zip(&output.groups) {
                for (pair, path) in paths.iter().enumerate() {
                    let bytes = carried(Some(group), pair);
                    path.iter().for_each(|&link| payload[link][side] += bytes);
                }
            }
        }
        spec.links
            .iter()
            .enumerate()
            .map(|(index, link)| {
                let framing = f64::from(link.framing);
                let wire = |output: &RunOutput| -> (f64, f64) {
                    let Some(link) = output.links.get(index) else {
                        return (0.0, 0.0);
                    };
                    let others = link.packets.saturating_sub(link.data_packets) as f64;
                    let all = link.bytes.0 as f64 + framing * link.packets as f64;
                    let others = others * (ACK_BYTES + framing);
                    ((all - others).max(0.0), others)
                };
                let yields = [before, after].map(wire);
                let efficiency = yields
                    .iter()
                    .zip(payload[index])
                    .filter(|((data, _), _)| *data > 0.0)
                    .map(|((data, _), payload)| payload / data)
                    .fold(0.0, f64::max)
                    .clamp(LEAST_EFFICIENCY, 1.0);
                Capacity {
                    payload: bytes_of(link, measured) * efficiency,
                    acknowledged: yields[1].1 * efficiency,
                }
            })
            .collect()
    }
}

/// What a link can carry, and what of it packets without data took.
struct Capacity {
    payload: f64,
    acknowledged: f64,
}

/// What a group carried in the variant, and what it could rightly keep, run by run.
pub(super) struct Kept {
    /// Payload bytes and 1.
    pub(super) carried: Vec<(f64, f64)>,
    /// Payload bytes and 1.
    pub(super) rightful: Vec<(f64, f64)>,
}

/// Bytes that a link can send from the first moment until the second; of a trace those of the opportunities in between.
fn bytes_of(link: &LinkSpec, [from, to]: [Instant; 2]) -> f64 {
    link.rate.bytes_between(from, to) as f64
}

/// Payload bytes of one pair of a group.
fn carried(group: Option<&GroupOutput>, pair: usize) -> f64 {
    let bytes = group.and_then(|group| group.goodput_bytes_per_pair.get(pair));
    bytes.map_or(0.0, |bytes| bytes.0 as f64)
}

/// How many users each pair of the group has: connections, users or streams; of open-loop traffic the transfers.
fn units(group: &GroupSpec, output: Option<&GroupOutput>) -> Vec<f64> {
    let pairs = group.pairs.len();
    let dealt = |count: u64| -> Vec<f64> {
        (0..pairs as u64)
            .map(|pair| match group.spread {
                PairPolicy::Each => count as f64,
                PairPolicy::RoundRobin | PairPolicy::Random => {
                    (count / pairs as u64 + u64::from(pair < count % pairs as u64)) as f64
                }
            })
            .collect()
    };
    match group.traffic.members(group.spread == PairPolicy::Each) {
        Some(count) => dealt(u64::from(count)),
        None => {
            let mut counts = vec![1.0; pairs];
            for flow in output.map_or(&[][..], |group| &group.flows) {
                if let Some(count) = counts.get_mut(flow.pair as usize) {
                    *count += 1.0;
                }
            }
            counts
        }
    }
}

/// Active for as much of the measured time, a greedy group counts as active all of it.
const WHOLE: f64 = 0.95;

/// Layer-3 bytes of a packet without payload: IPv4, TCP and timestamps.
const ACK_BYTES: f64 = 52.0;

/// Payload per byte on the wire below which a link carries hardly any data of the groups.
const LEAST_EFFICIENCY: f64 = 0.5;
