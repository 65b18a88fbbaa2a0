//! Places: the queues of a network, which of them stand in the baseline, and which of them a variant changes.
//!
//! A queue *stands* where packets wait long enough to matter or are turned away: mean wait of at least a tenth of the
//! base RTT on a link that is busy for at least a fifth of the time (below that it is of bursts, as on a short path, and must be the
//! whole RTT), 99th percentile of at least half of it on a link that is busy for at least a tenth of the time (on an idle one that is
//! the burst of a single transfer, behind itself), or at least one packet in a thousand dropped by the queue. The bounds
//! are ours; a tenth of an RTT is about what a user of a short transfer can gain there at best per round trip. The base
//! RTT is the median over the pairs of hosts with traffic.
//!
//! Links that only count up (`access-0`, `access-1`...) and are alike in rate and queue are one place. Each of them is judged by itself, and a
//! queue stands at the place where it stands at one of them.

use crate::mechanisms::{self, Mechanism};
use crate::result::{RunData, Standing};
use crate::scenario::{Resolved, Setting, Site};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::output::Histogram;
use fleetfoot_sim::spec::{LinkRate, LinkSpec, NodeId};
use std::collections::BTreeMap;

/// Drops that a queue decides on; others are the wire's.
pub(crate) const BY_QUEUE: [DropReason; 4] = [
    DropReason::Full,
    DropReason::Early,
    DropReason::PushedOut,
    DropReason::Orphan,
];

/// Alike queues of a network: one direction of one link, or of several links that only count up.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Indices into the directed links of the specification.
    pub links: Vec<usize>,
    /// Name of the link, or of the first and last of several: `access-0 to access-39`.
    pub link: String,
    /// Whether it is the direction the scenario describes, or the way back.
    pub forward: bool,
    /// What a user calls it: `the uplink`.
    pub name: String,
    /// Its rate, where that is constant.
    pub rate: Option<Rate>,
}

impl Place {
    /// Its name with the rate: `the uplink, 10 Mbit/s`.
    pub fn described(&self) -> String {
        match self.rate {
            Some(rate) => format!("{}, {rate}", self.name),
            None => format!("{}, of varying rate", self.name),
        }
    }

    /// As `--where` takes it: `bottleneck:reverse`.
    pub fn selector(&self) -> String {
        format!("{}:{}", self.stem(), super::direction(self.forward))
    }

    /// The link's name without its number if there are several.
    fn stem(&self) -> &str {
        match self.links.len() {
            1 => &self.link,
            _ => stem(self.link.split(' ').next().unwrap_or(&self.link)),
        }
    }
}

/// The name without the number at its end.
fn stem(name: &str) -> &str {
    name.rsplit_once('-')
        .filter(|(_, number)| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
        .map_or(name, |(stem, _)| stem)
}

/// Every place of a network, in the order of its links; `forward` before `reverse`.
pub fn places(resolved: &Resolved) -> Vec<Place> {
    let links = &resolved.spec.links;
    let mut order: Vec<Vec<usize>> = Vec::new();
    let mut alike: BTreeMap<(String, bool, String), usize> = BTreeMap::new();
    let host = |id: NodeId| {
        let nodes = &resolved.spec.nodes;
        nodes.get(id.0 as usize).is_some_and(|node| node.host)
    };
    for (index, link) in links.iter().enumerate() {
        // Hosts that are alike have lines that are; every link between routers is a place of its own.
        let own = if host(link.from) || host(link.to) {
            stem(&link.name)
        } else {
            link.name.as_str()
        };
        let label = label(resolved, index).unwrap_or_default();
        let key = (
            format!("{own} {label}"),
            link.forward,
            format!(
                "{:?} {} {:?} {}",
                link.rate, link.queue, link.queue_values, link.framing
            ),
        );
        match alike.get(&key) {
            Some(&place) => order[place].push(index),
            None => {
                alike.insert(key, order.len());
                order.push(vec![index]);
            }
        }
    }
    order
        .into_iter()
        .map(|members| {
            let first = &links[members[0]];
            let last = &links[members[members.len() - 1]];
            Place {
                link: if members.len() == 1 {
                    first.name.clone()
                } else {
                    format!("{} to {}", first.name, last.name)
                },
                forward: first.forward,
                name: name(resolved, &members),
                rate: match first.rate {
                    LinkRate::Constant(rate) => Some(rate),
                    LinkRate::Trace { .. } => None,
                },
                links: members,
            }
        })
        .collect()
}

/// What a user calls the place: the scenario's label, or for the one link of a dumbbell what traffic calls its direction.
fn name(resolved: &Resolved, members: &[usize]) -> String {
    let link = &resolved.spec.links[members[0]];
    if let Some(own) = label(resolved, members[0]) {
        let both = (0..resolved.spec.links.len()).any(|other| {
            let there = &resolved.spec.links[other];
            there.name == link.name && there.forward != link.forward && label(resolved, other) == Some(own)
        });
        return match (both, resolved.network) {
            (false, _) => own.to_owned(),
            // Servers stand left and clients right unless traffic says otherwise.
            (true, "dumbbell") => format!("{own}, {}", if link.forward { "down" } else { "up" }),
            (true, _) => format!("{own}, {}", super::direction(link.forward)),
        };
    }
    let nodes = &resolved.spec.nodes;
    if resolved.network == "dumbbell" && link.name == "bottleneck" {
        // Servers stand left and clients right unless traffic says otherwise.
        return String::from(match (two_way(resolved), link.forward) {
            (true, true) => "the downlink",
            (true, false) => "the uplink",
            (false, true) => "the bottleneck",
            (false, false) => "the bottleneck's way back",
        });
    }
    match members.len() {
        1 => format!(
            "link {} from {} to {}",
            link.name, nodes[link.from.0 as usize].name, nodes[link.to.0 as usize].name
        ),
        count => format!(
            "{count} links {} {}",
            stem(&link.name),
            if link.forward { "forward" } else { "back" }
        ),
    }
}

/// What the scenario calls this direction of a link.
fn label(resolved: &Resolved, link: usize) -> Option<&str> {
    resolved.links_info.get(link)?.label.as_deref()
}

/// Whether the two directions of a dumbbell's link differ in rate or both carry data.
fn two_way(resolved: &Resolved) -> bool {
    let bottleneck: Vec<&LinkSpec> = resolved
        .spec
        .links
        .iter()
        .filter(|link| link.name == "bottleneck")
        .collect();
    let [forward, back] = bottleneck.as_slice() else {
        return false;
    };
    let left = |node: NodeId| resolved.spec.nodes[node.0 as usize].name.starts_with("left-");
    forward.rate != back.rate
        || resolved
            .spec
            .groups
            .iter()
            .flat_map(|group| &group.pairs)
            .any(|&(from, _)| !left(from))
}

/// Below this share of time nothing but a transfer's own packets wait on a link.
const BUSY: f64 = 0.1;

/// Below this share of time a mean wait is that of bursts, and no queue stands unless they wait for a whole round trip.
const USED: f64 = 0.2;

/// What waits at each place in the baseline. Of alike links each is judged by itself, and the place is as its fullest link: a full one among
/// idle ones is no less full.
pub fn standing(described: &Resolved, places: &[Place], runs: &[RunData]) -> Vec<Standing> {
    let rtt = base_rtt(described).as_secs_f64();
    let fuller = |one: &Standing, other: &Standing| {
        one.stands
            .cmp(&other.stands)
            .then(one.wait_mean_s.total_cmp(&other.wait_mean_s))
            .then(one.utilisation.total_cmp(&other.utilisation))
            .is_gt()
    };
    places
        .iter()
        .filter_map(|place| {
            let each = place.links.iter();
            each.map(|&link| standing_at(described, place, link, runs, rtt))
                .reduce(|fullest, link| if fuller(&link, &fullest) { link } else { fullest })
        })
        .collect()
}

/// What waits at one link of `place`.
fn standing_at(described: &Resolved, place: &Place, link: usize, runs: &[RunData], rtt: f64) -> Standing {
    let outputs = || runs.iter().filter_map(|run| run.output.links.get(link));
    let mut waits = Histogram::default();
    let (mut left, mut dropped, mut busy_s) = (0, 0, 0.0);
    for output in outputs() {
        waits.merge(&output.queue_delay);
        left += output.packets;
        busy_s += output.busy.as_secs_f64();
        dropped += DropReason::ALL
            .iter()
            .zip(&output.drops)
            .filter(|(reason, _)| BY_QUEUE.contains(reason))
            .flat_map(|(_, by_kind)| by_kind)
            .sum::<u64>();
    }
    let measured_s = (described.run.duration - described.run.warmup).as_secs_f64() * outputs().count() as f64;
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let wait_mean_s = waits.mean().unwrap_or(0.0) / 1e9;
    let wait_p99_s = waits.quantile(0.99).unwrap_or(0) as f64 / 1e9;
    let drop_share = share(dropped as f64, (left + dropped) as f64);
    let utilisation = share(busy_s, measured_s);
    Standing {
        place: place.described(),
        link: place.link.clone(),
        direction: super::direction(place.forward).to_owned(),
        queue: described.spec.links[link].queue.to_owned(),
        utilisation,
        wait_mean_s,
        wait_p99_s,
        drop_share,
        stands: stands(rtt, [wait_mean_s, wait_p99_s], utilisation, drop_share),
    }
}

/// Whether a queue stands where packets wait so long (mean and 99th percentile, s).
fn stands(rtt: f64, [mean, p99]: [f64; 2], utilisation: f64, drop_share: f64) -> bool {
    mean >= rtt / 10.0 && mean > 0.0 && (utilisation >= USED || mean >= rtt)
        || p99 >= rtt / 2.0 && p99 > 0.0 && utilisation >= BUSY
        || drop_share >= 0.001
}

/// Median of the base RTTs of the pairs with traffic.
pub(super) fn base_rtt(described: &Resolved) -> Duration {
    let mut rtts: Vec<Duration> = described.base_rtts().iter().map(|pair| pair.rtt).collect();
    rtts.sort_unstable();
    rtts.get(rtts.len() / 2).copied().unwrap_or(Duration::ZERO)
}

/// Indices of the places whose queue `variant` changes: another discipline, or another value of it.
pub fn changed(described: &Resolved, variant: &Resolved, places: &[Place]) -> Vec<usize> {
    let differs = |&link: &usize| {
        let [before, after] = [described, variant].map(|resolved| &resolved.spec.links[link]);
        before.queue != after.queue || before.queue_values != after.queue_values
    };
    (0..places.len())
        .filter(|&place| places[place].links.iter().any(differs))
        .collect()
}

/// The places that `--where` names: LINK or LINK:DIRECTION, where LINK is a name, a name without its number, or a label,
/// and DIRECTION `forward`, `down`, `reverse`, `up` or `both`.
///
/// # Errors
/// Nothing is called so; the message lists what is.
pub fn selected(places: &[Place], selectors: &[String]) -> Result<Vec<usize>, String> {
    let mut chosen = Vec::new();
    for selector in selectors {
        let (link, direction) = selector.split_once(':').unwrap_or((selector, "both"));
        let forward = match direction {
            "forward" | "down" => Some(true),
            "reverse" | "up" => Some(false),
            "both" => None,
            other => {
                return Err(format!(
                    "`{other}` is no direction of a link; valid: forward (or down), reverse (or up), both"
                ));
            }
        };
        let called = |place: &Place| {
            place.link == link
                || place.stem() == link
                || place.name == link
                || place.name.strip_prefix("the ") == Some(link)
                || place.name.split(", ").next() == Some(link)
                || place.link.split(" to ").any(|end| end == link)
        };
        let before = chosen.len();
        chosen.extend(
            places
                .iter()
                .enumerate()
                .filter(|(_, place)| called(place) && forward.is_none_or(|forward| place.forward == forward))
                .map(|(index, _)| index),
        );
        if chosen.len() == before {
            let mut names: Vec<String> = places
                .iter()
                .map(|place| format!("{} ({})", place.selector(), place.name))
                .collect();
            names.truncate(20);
            return Err(format!(
                "no link is called `{link}`; places here: {}",
                names.join(", ")
            ));
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// The places of the links that the scenario names as its bottleneck, else of the links between routers, else all.
pub(super) fn named(described: &Resolved, places: &[Place]) -> Vec<usize> {
    let links = &described.spec.links;
    let of = |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..places.len())
            .filter(|&place| places[place].links.iter().any(|&link| wanted(link)))
            .collect()
    };
    let router = |node: NodeId| !described.spec.nodes[node.0 as usize].host;
    let named = of(&|link| described.run.bottleneck.contains(&links[link].name));
    let between = || of(&|link| router(links[link].from) && router(links[link].to));
    [named, between()]
        .into_iter()
        .find(|chosen| !chosen.is_empty())
        .unwrap_or_else(|| (0..places.len()).collect())
}

/// The mechanisms whose settings a setting contains, whatever source its queues follow where several differ; one that a larger one contains
/// adds nothing.
pub(super) fn contained(set: &Setting, described: &Resolved) -> Vec<&'static Mechanism> {
    let given: Vec<(&str, &toml::Value)> = set.iter().collect();
    let places = places(described);
    let all: Vec<usize> = named(described, &places)
        .into_iter()
        .flat_map(|place| places[place].links.clone())
        .collect();
    let (forward, back): (Vec<usize>, Vec<usize>) =
        all.iter().partition(|&&link| described.spec.links[link].forward);
    // A variant of a file writes the queue of both directions, or of one of them; what is inherited it does not write out.
    let sites = [all, forward, back].map(|links| Site::new(described, &links));
    let contains = |entry: &Mechanism| {
        sites.iter().any(|site| {
            let wanted = entry.setting(described, site);
            let mut keys = wanted
                .iter()
                .filter(|(path, _)| !path.ends_with(".queue") && !path.ends_with(mechanisms::QUEUE_DETAILS))
                .peekable();
            keys.peek().is_some() && keys.all(|pair| given.contains(&pair))
        })
    };
    let found: Vec<&'static Mechanism> = mechanisms::ENTRIES
        .iter()
        .filter(|entry| contains(entry))
        .collect();
    found
        .iter()
        .filter(|entry| {
            !found.iter().any(|larger| {
                larger.set.len() > entry.set.len() && entry.set.iter().all(|pair| larger.set.contains(pair))
            })
        })
        .copied()
        .collect()
}

#[cfg(test)]
mod tests;
