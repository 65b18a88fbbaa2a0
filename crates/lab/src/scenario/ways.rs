//! Paths through a network: which links a packet takes, and whether it passes a router.

use super::network::{Network, Routes};
use fleetfoot_core::time::Duration;
use fleetfoot_sim::spec::{LinkIndex, NodeId};
use std::collections::{BTreeMap, BTreeSet};

impl Network {
    /// The links from one host to another, in order; `None`: there is no way.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<LinkIndex>> {
        match &self.routes {
            Routes::Row { ends, hops } => {
                let (out, _, first) = ends[from.0 as usize]?;
                let (_, into, last) = ends[to.0 as usize]?;
                let mut path = vec![out];
                if first <= last {
                    path.extend(hops[first..last].iter().map(|hop| hop.0));
                } else {
                    path.extend(hops[last..first].iter().rev().map(|hop| hop.1));
                }
                path.push(into);
                Some(path)
            }
            Routes::Graph(leaving) => self.along(&self.tree(leaving, from), from, to),
        }
    }

    /// For many paths: what was found out for one host serves the next path from it.
    pub(crate) fn ways(&self) -> Ways<'_> {
        Ways {
            network: self,
            trees: BTreeMap::new(),
        }
    }

    /// For many paths: which of them pass the router at `place`.
    pub(crate) fn passing(&self, place: NodeId) -> Passing<'_> {
        let rank = match &self.routes {
            Routes::Row { hops, .. } => {
                let first = hops.iter().map(|hop| self.links[hop.0.0 as usize].from);
                let last = hops.last().map(|hop| self.links[hop.0.0 as usize].to);
                first.chain(last).position(|router| router == place)
            }
            Routes::Graph(_) => None,
        };
        Passing {
            network: self,
            place,
            rank,
            of: None,
        }
    }

    /// The last link to every node from `from`: fewest links, then least delay, as the simulator routes. Hosts do not forward.
    fn tree(&self, leaving: &[Vec<LinkIndex>], from: NodeId) -> Vec<Option<LinkIndex>> {
        let mut reached: Vec<Option<LinkIndex>> = vec![None; self.nodes.len()];
        let mut distance = vec![(u32::MAX, Duration::MAX); self.nodes.len()];
        distance[from.0 as usize] = (0, Duration::ZERO);
        let mut open = BTreeSet::from([(0, Duration::ZERO, from)]);
        while let Some((hops, delay, node)) = open.pop_first() {
            if node != from && self.nodes[node.0 as usize].host {
                continue;
            }
            for &index in &leaving[node.0 as usize] {
                let link = &self.links[index.0 as usize];
                let known = &mut distance[link.to.0 as usize];
                let candidate = (hops + 1, delay + link.delay);
                if candidate < *known {
                    open.remove(&(known.0, known.1, link.to));
                    *known = candidate;
                    reached[link.to.0 as usize] = Some(index);
                    open.insert((candidate.0, candidate.1, link.to));
                }
            }
        }
        reached
    }

    fn along(&self, tree: &[Option<LinkIndex>], from: NodeId, to: NodeId) -> Option<Vec<LinkIndex>> {
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let link = tree[at.0 as usize]?;
            path.push(link);
            at = self.links[link.0 as usize].from;
        }
        path.reverse();
        Some(path)
    }
}

/// Paths of a network, with the trees they were read from.
pub(crate) struct Ways<'a> {
    network: &'a Network,
    trees: BTreeMap<NodeId, Vec<Option<LinkIndex>>>,
}

impl Ways<'_> {
    /// The links from one host to another, in order; `None`: there is no way.
    pub(crate) fn path(&mut self, from: NodeId, to: NodeId) -> Option<Vec<LinkIndex>> {
        let network = self.network;
        let Routes::Graph(leaving) = &network.routes else {
            return network.path(from, to);
        };
        let tree = self
            .trees
            .entry(from)
            .or_insert_with(|| network.tree(leaving, from));
        network.along(tree, from, to)
    }
}

/// Which paths pass one router. Paths from one host after those from another take time in proportion to the nodes, all others
/// none that grows with the network.
pub(crate) struct Passing<'a> {
    network: &'a Network,
    place: NodeId,
    /// Which router of a row it is.
    rank: Option<usize>,
    /// The host asked about last, and for every node whether the way there leads through the router.
    of: Option<(NodeId, Vec<bool>)>,
}

impl Passing<'_> {
    /// Whether a packet from one host to another passes.
    pub(crate) fn passes(&mut self, from: NodeId, to: NodeId) -> bool {
        let leaving = match &self.network.routes {
            Routes::Row { ends, .. } => {
                let router = |host: NodeId| ends[host.0 as usize].map(|end| end.2);
                let (Some(rank), Some(first), Some(last)) = (self.rank, router(from), router(to)) else {
                    return false;
                };
                return first.min(last) <= rank && rank <= first.max(last);
            }
            Routes::Graph(leaving) => leaving,
        };
        if self.of.as_ref().is_none_or(|(host, _)| *host != from) {
            let tree = self.network.tree(leaving, from);
            self.of = Some((from, self.behind(&tree)));
        }
        self.of.as_ref().is_some_and(|(_, behind)| behind[to.0 as usize])
    }

    /// For every node whether the way there in this tree leads through the router.
    fn behind(&self, tree: &[Option<LinkIndex>]) -> Vec<bool> {
        let mut known: Vec<Option<bool>> = vec![None; tree.len()];
        known[self.place.0 as usize] = Some(true);
        let mut way = Vec::new();
        for start in 0..tree.len() {
            let mut at = start;
            let answer = loop {
                match (known[at], tree[at]) {
                    (Some(answer), _) => break answer,
                    (None, None) => break false,
                    (None, Some(link)) => {
                        way.push(at);
                        at = self.network.links[link.0 as usize].from.0 as usize;
                    }
                }
            };
            for node in way.drain(..) {
                known[node] = Some(answer);
            }
            known[start] = Some(answer);
        }
        known.into_iter().map(|answer| answer == Some(true)).collect()
    }
}
