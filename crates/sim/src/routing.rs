//! Static shortest-path routing: fewest hops, then least delay, then the names of the next node and of the link.
//!
//! Hosts end flows and never forward. A path is a run of link indices in one arena, ended by [`Paths::END`]; a packet
//! carries its place in the arena, so finding the next link costs one load. Trees are made per last router, not per host,
//! so networks with many hosts behind few routers stay cheap.

use crate::spec::{LinkIndex, LinkSpec, NodeId, NodeSpec, Spec};
use fleetfoot_core::time::Duration;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Nodes and the links between them.
#[derive(Clone, Copy, Debug)]
pub struct Graph<'a> {
    /// Hosts and routers; [`NodeId`] is the index.
    pub nodes: &'a [NodeSpec],
    /// Directed links; [`LinkIndex`] is the index.
    pub links: &'a [LinkSpec],
}

impl<'a> From<&'a Spec> for Graph<'a> {
    fn from(spec: &'a Spec) -> Graph<'a> {
        Graph {
            nodes: &spec.nodes,
            links: &spec.links,
        }
    }
}

/// Where a path begins in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStart(pub u32);

/// All paths in use.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Link indices, path after path.
    hops: Vec<u32>,
    known: HashMap<(NodeId, NodeId), Option<PathStart>>,
    /// Links into each node.
    incoming: Vec<Vec<LinkIndex>>,
    /// The only link out of a node, if it has exactly one.
    outgoing: Vec<Vec<LinkIndex>>,
    /// Per target node: the next link of every node that can reach it.
    trees: HashMap<NodeId, Vec<Option<LinkIndex>>>,
}

impl Paths {
    /// After the last link of a path. No index has the highest bit.
    pub const END: u32 = u32::MAX >> 1;

    /// No paths yet.
    pub fn new<'a>(graph: impl Into<Graph<'a>>) -> Paths {
        let Graph { nodes, links } = graph.into();
        let mut incoming = vec![Vec::new(); nodes.len()];
        let mut outgoing = vec![Vec::new(); nodes.len()];
        for (index, link) in links.iter().enumerate() {
            incoming[link.to.0 as usize].push(LinkIndex(index as u32));
            outgoing[link.from.0 as usize].push(LinkIndex(index as u32));
        }
        Paths {
            hops: Vec::new(),
            known: HashMap::new(),
            incoming,
            outgoing,
            trees: HashMap::new(),
        }
    }

    /// The path from one node to another, `None` if there is none or they are the same.
    pub fn find<'a>(&mut self, graph: impl Into<Graph<'a>>, from: NodeId, to: NodeId) -> Option<PathStart> {
        if let Some(&known) = self.known.get(&(from, to)) {
            return known;
        }
        let found = self.search(graph.into(), from, to).map(|links| {
            let start = PathStart(self.hops.len() as u32);
            self.hops.extend(links.iter().map(|link| link.0));
            self.hops.push(Self::END);
            start
        });
        self.known.insert((from, to), found);
        found
    }

    /// The links of all paths found so far, path after path, each ended by [`Paths::END`].
    pub fn hops(&self) -> &[u32] {
        &self.hops
    }

    /// All paths found so far.
    pub(crate) fn starts(&self) -> impl Iterator<Item = PathStart> + '_ {
        let ends = (0..).zip(&self.hops).filter(|&(_, &hop)| hop == Self::END);
        let starts = std::iter::once(0).chain(ends.map(|(end, _)| end + 1));
        let count = self.hops.len() as u32;
        starts.filter(move |&start| start < count).map(PathStart)
    }

    /// The links of a path.
    pub fn links(&self, start: PathStart) -> impl Iterator<Item = LinkIndex> + Clone + '_ {
        self.hops[start.0 as usize..]
            .iter()
            .take_while(|&&hop| hop != Self::END)
            .map(|&hop| LinkIndex(hop))
    }

    /// For each of `count` links those from which packets come to it, without repetition; [`Paths::END`] stands for hosts.
    pub fn feeders(&self, count: usize) -> Vec<Vec<u32>> {
        let mut feeders = vec![Vec::new(); count];
        let mut before = Self::END;
        for &hop in &self.hops {
            if hop != Self::END {
                let known: &mut Vec<u32> = &mut feeders[hop as usize];
                if known.last() != Some(&before) {
                    known.push(before);
                }
            }
            before = hop;
        }
        for known in &mut feeders {
            known.sort_unstable();
            known.dedup();
        }
        feeders
    }

    /// For each of `count` links the only link from which packets come to it; `None` if hosts send over it, or several
    /// links feed it, or nobody uses it.
    pub fn sole_feeders(&self, count: usize) -> Vec<Option<LinkIndex>> {
        let feeders = self.feeders(count).into_iter();
        feeders
            .map(|feeders| match feeders[..] {
                [only] if only != Self::END => Some(LinkIndex(only)),
                _ => None,
            })
            .collect()
    }

    fn search(&mut self, graph: Graph<'_>, from: NodeId, to: NodeId) -> Option<Vec<LinkIndex>> {
        if from == to {
            return None;
        }
        let (mut at, mut links) = (from, Vec::new());
        // A host with one link has no choice: trees are shared by all hosts behind a router.
        if let [only] = self.outgoing[from.0 as usize][..] {
            links.push(only);
            at = graph.links[only.0 as usize].to;
        }
        let mut tail = None;
        let mut target = to;
        if at != to
            && let [only] = self.incoming[to.0 as usize][..]
        {
            tail = Some(only);
            target = graph.links[only.0 as usize].from;
        }
        if (at != from && at != to && graph.nodes[at.0 as usize].host)
            || (target != to && target != from && graph.nodes[target.0 as usize].host)
        {
            return None;
        }
        if at != target {
            let tree = self
                .trees
                .entry(target)
                .or_insert_with(|| tree(graph, &self.incoming, target));
            while at != target {
                let next = tree[at.0 as usize]?;
                links.push(next);
                at = graph.links[next.0 as usize].to;
            }
        }
        links.extend(tail);
        Some(links)
    }
}

/// The next link of every node towards `target`.
fn tree(graph: Graph<'_>, incoming: &[Vec<LinkIndex>], target: NodeId) -> Vec<Option<LinkIndex>> {
    let far = (u32::MAX, Duration::MAX);
    let mut distance = vec![far; graph.nodes.len()];
    let mut next: Vec<Option<LinkIndex>> = vec![None; graph.nodes.len()];
    let mut open = BinaryHeap::new();
    distance[target.0 as usize] = (0, Duration::ZERO);
    open.push(Reverse((0_u32, Duration::ZERO, target)));
    while let Some(Reverse((hops, delay, node))) = open.pop() {
        if (hops, delay) > distance[node.0 as usize] {
            continue;
        }
        for &link in &incoming[node.0 as usize] {
            let via = &graph.links[link.0 as usize];
            let candidate = (hops + 1, delay + via.delay);
            let known = distance[via.from.0 as usize];
            let better = candidate < known
                || candidate == known
                    && next[via.from.0 as usize]
                        .is_some_and(|other| name_of(graph, link) < name_of(graph, other));
            if !better {
                continue;
            }
            next[via.from.0 as usize] = Some(link);
            if candidate < known {
                distance[via.from.0 as usize] = candidate;
                if !graph.nodes[via.from.0 as usize].host {
                    open.push(Reverse((candidate.0, candidate.1, via.from)));
                }
            }
        }
    }
    next
}

/// What breaks a tie between links of equal distance.
fn name_of(graph: Graph<'_>, link: LinkIndex) -> (&str, &str, LinkIndex) {
    let via = &graph.links[link.0 as usize];
    (&graph.nodes[via.to.0 as usize].name, &via.name, link)
}

#[cfg(test)]
mod tests {
    use super::Paths;
    use crate::spec::{Impairments, LinkRate, LinkSpec, NodeId, NodeSpec, Spec, World};
    use fleetfoot_core::parameter::Values;
    use fleetfoot_core::queue::DropTail;
    use fleetfoot_core::time::Duration;
    use fleetfoot_core::units::Rate;

    /// Nodes are letters, capitals are hosts; links are `a-b 3` with a delay in ms, both ways.
    fn network(nodes: &str, links: &[(&str, u64)]) -> Spec {
        let index = |letter: char| NodeId(nodes.find(letter).expect("a listed node") as u32);
        let mut spec = Spec {
            nodes: nodes
                .chars()
                .map(|letter| NodeSpec {
                    name: letter.to_string(),
                    host: letter.is_uppercase(),
                })
                .collect(),
            links: Vec::new(),
            groups: Vec::new(),
            duration: Duration::ZERO,
            warmup: Duration::ZERO,
            drain: Duration::ZERO,
            seed: 0,
            bins: None,
            world: World::Simulator,
            plugins: fleetfoot_core::plugin::Plugins::NONE,
        };
        for &(ends, delay_ms) in links {
            let ends: Vec<char> = ends.chars().collect();
            for (from, to, forward) in [(ends[0], ends[1], true), (ends[1], ends[0], false)] {
                spec.links.push(LinkSpec {
                    name: format!("{}-{}", ends[0], ends[1]),
                    forward,
                    from: index(from),
                    to: index(to),
                    rate: LinkRate::Constant(Rate::from_bps(1_000_000)),
                    delay: Duration::from_millis(delay_ms),
                    queue: "drop-tail",
                    queue_values: Values::defaults(DropTail::PARAMETERS),
                    impairments: Impairments::default(),
                    mtu: 1500,
                    framing: 0,
                    processing: Duration::ZERO,
                    overlap: false,
                    host: false,
                });
            }
        }
        spec
    }

    fn route(spec: &Spec, from: u32, to: u32) -> Option<String> {
        let mut paths = Paths::new(spec);
        let start = paths.find(spec, NodeId(from), NodeId(to))?;
        let mut text = spec.nodes[from as usize].name.clone();
        for link in paths.links(start) {
            text += &spec.nodes[spec.links[link.0 as usize].to.0 as usize].name;
        }
        Some(text)
    }

    #[test]
    fn a_dumbbell_is_crossed_both_ways() {
        let spec = network("ABCDxy", &[("Ax", 1), ("Bx", 1), ("xy", 9), ("yC", 1), ("yD", 1)]);
        assert_eq!(route(&spec, 0, 2).as_deref(), Some("AxyC"));
        assert_eq!(route(&spec, 3, 1).as_deref(), Some("DyxB"));
        assert_eq!(route(&spec, 0, 1).as_deref(), Some("AxB"));
        assert_eq!(route(&spec, 0, 0), None);
    }

    #[test]
    fn fewer_hops_win_then_less_delay_then_the_name() {
        let spec = network("ABpqr", &[("Ap", 1), ("pB", 50), ("Aq", 1), ("qr", 1), ("rB", 1)]);
        assert_eq!(route(&spec, 0, 1).as_deref(), Some("ApB"));
        let spec = network("ABpq", &[("Ap", 3), ("pB", 3), ("Aq", 2), ("qB", 3)]);
        assert_eq!(route(&spec, 0, 1).as_deref(), Some("AqB"));
        let spec = network("ABqp", &[("Aq", 3), ("qB", 3), ("Ap", 3), ("pB", 3)]);
        assert_eq!(route(&spec, 0, 1).as_deref(), Some("ApB"));
    }

    #[test]
    fn hosts_do_not_forward_and_islands_are_unreachable() {
        let spec = network("ABCxy", &[("AB", 1), ("BC", 1), ("Cx", 1)]);
        assert_eq!(route(&spec, 0, 1).as_deref(), Some("AB"));
        assert_eq!(route(&spec, 0, 2), None);
        assert_eq!(route(&spec, 1, 3), None);
        let spec = network("ABxy", &[("Ax", 1), ("By", 1)]);
        assert_eq!(route(&spec, 0, 1), None);
    }

    #[test]
    fn a_router_can_be_an_end() {
        let spec = network("Axy", &[("Ax", 1), ("xy", 1)]);
        assert_eq!(route(&spec, 0, 2).as_deref(), Some("Axy"));
        assert_eq!(route(&spec, 2, 0).as_deref(), Some("yxA"));
    }
}
