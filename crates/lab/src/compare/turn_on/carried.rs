//! The packets that crossed a line in a simulation, by their sizes: what is counted beside a packet weighs more where packets are small, and of
//! cells the last one of each packet is filled up.
//!
//! Of a link the results have packets with payload, those without, and bytes. Streams of datagrams and pings have packets of one size, which are as many
//! as arrived. The others' packets are taken for full ones, and for smaller ones of any size where the mean is below that of full ones; acknowledgments
//! for those without SACK blocks.

use super::super::Plan;
use super::super::place::Place;
use crate::result::{Group, Variant};
use fleetfoot_sim::routing::Paths;
use fleetfoot_sim::spec::{GroupSpec, LinkIndex, NodeId, Spec, Traffic};

/// The packets that crossed a line in a simulation, as a few kinds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Carried {
    /// Those with payload: how many, and of which size at layer 3 (bytes).
    pub(super) data: Vec<(f64, Size)>,
    /// How many had none: acknowledgments and handshakes.
    pub(super) empty: f64,
}

/// Layer-3 size of packets of a kind (bytes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Size {
    /// Of all of them.
    One(f64),
    /// Their mean; no size is more likely than those beside it.
    Mean(f64),
}

impl Size {
    fn mean(self) -> f64 {
        match self {
            Size::One(size) | Size::Mean(size) => size,
        }
    }
}

impl Carried {
    /// What filled the links of `place` in `variant`; `None`: nothing did.
    pub(super) fn at(plan: &Plan, place: &Place, variant: &Variant) -> Option<Carried> {
        let links = place.links.iter().filter_map(|&link| variant.links.get(link));
        let used = links.map(|link| link.utilisation).fold(0.0, f64::max);
        Carried::crossing(plan, place, variant).filter(|_| used >= FULL)
    }

    /// What crossed the links of `place` in `variant`, however little; `None`: nothing did.
    pub(super) fn crossing(plan: &Plan, place: &Place, variant: &Variant) -> Option<Carried> {
        let (mut packets, mut bytes, mut empty) = (0.0, 0.0, 0.0);
        for link in place.links.iter().filter_map(|&link| variant.links.get(link)) {
            packets += link.data_units as f64;
            empty += link.units.saturating_sub(link.data_units) as f64;
            bytes += link.bytes as f64;
        }
        if packets + empty == 0.0 {
            return None;
        }
        bytes = (bytes - empty * f64::from(EMPTY)).max(0.0);
        let spec = &plan.described.spec;
        let measured_s = spec.duration.saturating_sub(spec.warmup).as_secs_f64();
        let mut crossing = Crossing::new(spec, place);
        let mut data = Vec::new();
        for (group, results) in spec.groups.iter().zip(&variant.groups) {
            let Some((number, size)) = of_one_size(group, results, measured_s) else {
                continue;
            };
            // No more than there is room for.
            let number = (number * crossing.share(group)).min(packets).min(bytes / size);
            if number > 0.0 {
                data.push((number, Size::One(size)));
                packets -= number;
                bytes -= number * size;
            }
        }
        let full = place.links.iter().map(|&link| spec.links[link].mtu).min();
        data.extend(split(packets, bytes, f64::from(full.unwrap_or(EMPTY))));
        Some(Carried { data, empty })
    }

    /// Whether more of the bytes were those of packets without payload.
    pub(super) fn is_mostly_empty(&self) -> bool {
        let payload = self.data.iter().map(|(number, size)| number * size.mean());
        self.empty * f64::from(EMPTY) > payload.sum::<f64>()
    }

    /// Bytes of all of them, where a packet of so many bytes at layer 3 takes what `of` says.
    pub(super) fn bytes(&self, of: impl Fn(f64) -> f64) -> f64 {
        let data = self.data.iter().map(|&(number, size)| {
            number
                * match size {
                    Size::One(size) => of(size),
                    // Over the sizes of one cell around the mean.
                    Size::Mean(mean) => {
                        let sizes = (0..CELL)
                            .map(|step| (mean + f64::from(step) - f64::from(CELL - 1) / 2.0).max(1.0));
                        sizes.map(&of).sum::<f64>() / f64::from(CELL)
                    }
                }
        });
        data.sum::<f64>() + self.empty * of(f64::from(EMPTY))
    }

    /// How many there were.
    pub(super) fn packets(&self) -> f64 {
        self.data.iter().map(|(number, _)| number).sum::<f64>() + self.empty
    }
}

/// How many packets of a group whose packets have one size arrived in all runs, and that size at layer 3 (bytes).
fn of_one_size(group: &GroupSpec, results: &Group, measured_s: f64) -> Option<(f64, f64)> {
    match &group.traffic {
        Traffic::Cbr { packet, .. } => {
            let payload = (packet.0 as f64 - UDP_HEADERS).max(1.0);
            let goodput = results.goodput_bps.as_ref()?;
            let bits = goodput.n as f64 * goodput.mean * measured_s;
            Some((bits / 8.0 / payload, packet.0 as f64))
        }
        Traffic::Ping { packet, .. } => Some((results.flows as f64, packet.0 as f64)),
        _ => None,
    }
}

/// So many packets with so many bytes together, none longer than `full`: full ones and smaller ones of any size, whose mean lies in the middle.
fn split(packets: f64, bytes: f64, full: f64) -> Vec<(f64, Size)> {
    if packets < 1.0 {
        return Vec::new();
    }
    let mean = bytes / packets;
    let smaller = (f64::from(EMPTY) + full) / 2.0;
    if mean <= smaller {
        return vec![(packets, Size::Mean(mean))];
    }
    if mean >= full {
        return vec![(packets, Size::One(mean))];
    }
    let whole = packets * (mean - smaller) / (full - smaller);
    vec![(whole, Size::One(full)), (packets - whole, Size::Mean(smaller))]
}

/// Which pairs of hosts have a place on their way.
struct Crossing<'a> {
    spec: &'a Spec,
    place: &'a Place,
    paths: Paths,
}

impl<'a> Crossing<'a> {
    fn new(spec: &'a Spec, place: &'a Place) -> Crossing<'a> {
        Crossing {
            spec,
            place,
            paths: Paths::new(spec),
        }
    }

    /// The share of the group's pairs whose packets of one size cross it: data on their way, pings on the way back, too.
    fn share(&mut self, group: &GroupSpec) -> f64 {
        let answered = matches!(group.traffic, Traffic::Ping { .. });
        let crosses =
            |&(from, to): &(NodeId, NodeId)| self.is_on(from, to) || answered && self.is_on(to, from);
        let crossing = group.pairs.iter().copied().filter(crosses).count();
        crossing as f64 / group.pairs.len().max(1) as f64
    }

    fn is_on(&mut self, from: NodeId, to: NodeId) -> bool {
        let Some(start) = self.paths.find(self.spec, from, to) else {
            return false;
        };
        let on = |LinkIndex(link)| self.place.links.contains(&(link as usize));
        self.paths.links(start).any(on)
    }
}

/// A line that is busy for this share of the time or more is full: what crosses it is what a shaper has to carry. (How much of a line is *needed*,
/// which decides whether its margin is missed, is another measure with a bound of its own: `commanded::MOST_NEEDED`.)
const FULL: f64 = 0.85;

/// Bytes of a packet without payload at layer 3: IPv4, TCP and timestamps.
const EMPTY: u32 = 52;

/// Bytes of a datagram's headers: IPv4 and UDP.
const UDP_HEADERS: f64 = 28.0;

/// Bytes of packets that a cell of ATM carries.
const CELL: u32 = 48;

#[cfg(test)]
mod tests;
