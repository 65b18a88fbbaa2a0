//! The hosts of the described network as addresses of the two kernels, and which pair of them a flow gets.

use super::place::address;
use fleetfoot_core::rng::Rng;
use fleetfoot_sim::spec::{GroupSpec, NodeId, PairPolicy, Spec};
use std::collections::HashMap;
use std::net::IpAddr;

/// The hosts at both sides.
pub(super) struct Hosts {
    counts: [usize; 2],
    /// The pairs of each group as numbers of hosts, those of its list behind its own.
    routes: Vec<Vec<[usize; 2]>>,
    /// The place of a pair among those of a group.
    places: Vec<HashMap<(NodeId, NodeId), u32>>,
    /// The numbers of the senders.
    senders: HashMap<NodeId, usize>,
}

impl Hosts {
    /// The hosts of `spec`. Where one end is a host of our TCP, there is one at each side.
    pub(super) fn of(spec: &Spec) -> Hosts {
        let most = if spec.world.host_side().is_some() { 1 } else { MOST };
        let mut numbers = [HashMap::new(), HashMap::new()];
        let mut hosts = Hosts {
            counts: [1; 2],
            routes: Vec::new(),
            places: Vec::new(),
            senders: HashMap::new(),
        };
        for group in &spec.groups {
            let (mut routes, mut places) = (Vec::new(), HashMap::new());
            let listed = group.traffic.listed().iter();
            let listed = listed.map(|line| (line.source, line.destination));
            for ends in group.pairs.iter().copied().chain(listed) {
                if places.contains_key(&ends) && routes.len() >= group.pairs.len() {
                    continue;
                }
                places.entry(ends).or_insert(routes.len() as u32);
                let mut number = |side: usize, node| {
                    let next = numbers[side].len() % most;
                    let number = *numbers[side].entry(node).or_insert(next);
                    hosts.counts[side] = hosts.counts[side].max(number + 1);
                    number
                };
                routes.push([number(0, ends.0), number(1, ends.1)]);
            }
            hosts.routes.push(routes);
            hosts.places.push(places);
        }
        let [senders, _] = numbers;
        Hosts { senders, ..hosts }
    }

    /// How many there are at each side.
    pub(super) const fn counts(&self) -> [usize; 2] {
        self.counts
    }

    /// The number of a pair's host at a side.
    pub(super) fn number(&self, group: usize, pair: u32, side: usize) -> usize {
        self.routes[group]
            .get(pair as usize)
            .map_or(0, |route| route[side])
    }

    /// The address of a pair's host at a side.
    pub(super) fn address(&self, group: usize, pair: u32, side: usize) -> IpAddr {
        address(side, self.number(group, pair, side))
    }

    /// The address of a host among the senders.
    pub(super) fn address_of_sender(&self, node: NodeId) -> IpAddr {
        address(0, self.senders.get(&node).copied().unwrap_or(0))
    }

    /// Pairs of a group.
    pub(super) fn pairs(&self, group: usize) -> u32 {
        self.routes[group].len() as u32
    }

    /// The place of a pair among those of a group.
    pub(super) fn place_of(&self, group: usize, source: NodeId, destination: NodeId) -> u32 {
        self.places[group]
            .get(&(source, destination))
            .copied()
            .unwrap_or(0)
    }
}

/// Which pair of its group the next flow gets, as in the simulator.
pub(super) struct Pairs {
    policy: PairPolicy,
    count: u32,
    next: u32,
    random: Rng,
}

impl Pairs {
    /// For a group with so many pairs.
    pub(super) fn new(spec: &Spec, group: &GroupSpec, count: u32) -> Pairs {
        Pairs {
            policy: group.spread,
            count: count.max(1),
            next: 0,
            random: Rng::for_element(spec.seed, &group.name, "spread"),
        }
    }

    /// How many there are.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// The pair of the next flow of what stands on pair `own` if every pair has one of its own.
    pub(super) fn pick(&mut self, own: u32) -> u32 {
        match self.policy {
            PairPolicy::Each => own % self.count,
            PairPolicy::RoundRobin => {
                let pair = self.next;
                self.next = (pair + 1) % self.count;
                pair
            }
            PairPolicy::Random => self.random.below(u64::from(self.count)) as u32,
        }
    }
}

/// Addresses of a side at most; more hosts share them.
const MOST: usize = 4096;
