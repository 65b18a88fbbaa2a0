//! `[network]` and `[[link]]`: nodes, links, groups of hosts and the paths between them.

use super::document::{Node, Table, Value};
use super::error::{Error, Place, alternatives, nearest};
use super::link::Plan;
use super::place::LinkInfo;
use super::read::{Field, Section, join};
use super::value;
use super::{keys, node};
use fleetfoot_core::time::Duration;
use fleetfoot_sim::routing::{Graph, Paths};
use fleetfoot_sim::spec::{LinkSpec, NodeId, NodeSpec};
use std::collections::BTreeMap;

/// Nodes, links and what traffic may call them.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) kind: &'static str,
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) links: Vec<LinkSpec>,
    /// What people call each of them.
    pub(crate) links_info: Vec<LinkInfo>,
    /// Hosts by the names of groups.
    pub(crate) groups: BTreeMap<String, Vec<NodeId>>,
    by_name: BTreeMap<String, NodeId>,
    /// Names of the duplex links, in order.
    pub(crate) link_names: Vec<String>,
}

impl Network {
    /// Paths between hosts, as the simulator routes.
    pub(crate) fn paths(&self) -> NetworkPaths<'_> {
        let graph = Graph {
            nodes: &self.nodes,
            links: &self.links,
        };
        NetworkPaths {
            graph,
            paths: Paths::new(graph),
        }
    }
}

/// Paths through a network.
pub(crate) struct NetworkPaths<'a> {
    graph: Graph<'a>,
    paths: Paths,
}

impl<'a> NetworkPaths<'a> {
    /// The links from one host to another, in order; `None`: there is no way.
    pub(crate) fn links(
        &mut self,
        from: NodeId,
        to: NodeId,
    ) -> Option<impl Iterator<Item = &'a LinkSpec> + Clone> {
        let start = self.paths.find(self.graph, from, to)?;
        let links = self.graph.links;
        Some(self.paths.links(start).map(move |link| &links[link.0 as usize]))
    }

    /// Propagation and processing on the way there and back; `None`: there is no way.
    pub(crate) fn base_rtt(&mut self, from: NodeId, to: NodeId) -> Option<Duration> {
        let mut one_way = |from, to| {
            let links = self.links(from, to)?;
            Some(links.fold(Duration::ZERO, |sum, link| sum + link.delay + link.processing))
        };
        Some(one_way(from, to)? + one_way(to, from)?)
    }
}

/// Reads the network of a scenario.
pub(crate) fn read(document: &Table, bottleneck: &[Field]) -> Result<Network, Error> {
    let Some(node) = document.get("network") else {
        unreachable!("the file was checked against the list of keys")
    };
    let (kind, section) = Section::open_tagged(node, &keys::NETWORK, "network")?;
    let entries = entries(document, "link")?;
    let mut builder = Builder {
        network: Network {
            kind,
            nodes: Vec::new(),
            links: Vec::new(),
            links_info: Vec::new(),
            groups: BTreeMap::new(),
            by_name: BTreeMap::new(),
            link_names: Vec::new(),
        },
        entries,
        used: Vec::new(),
        own: Vec::new(),
    };
    if kind == "graph" {
        builder.graph(&section, bottleneck)?;
    } else if kind == "access-tree" {
        builder.access_tree(&section)?;
    } else {
        builder.row(kind, &section)?;
    }
    builder.all_entries_used()?;
    let Builder { mut network, own, .. } = builder;
    node::read(document, &mut network, &own)?;
    for field in bottleneck {
        let name = field.text()?;
        if !network.link_names.iter().any(|link| link == name) {
            return Err(unknown(
                field.place(),
                &field.path,
                "link",
                name,
                &network.link_names,
            ));
        }
    }
    Ok(network)
}

/// The tables of `[[link]]` or `[[node]]`, by name.
pub(super) fn entries(document: &Table, which: &str) -> Result<Vec<(String, Node)>, Error> {
    let Some(Node {
        value: Value::List(list),
        ..
    }) = document.get(which)
    else {
        return Ok(Vec::new());
    };
    let mut entries: Vec<(String, Node)> = Vec::new();
    for node in list {
        let name = node
            .as_table()
            .and_then(|table| table.text("name"))
            .unwrap_or("")
            .to_owned();
        if entries.iter().any(|(other, _)| *other == name) {
            return Err(Error::at(
                &node.place,
                &format!("{which}.{name}"),
                format!("two {which}s are called `{name}`"),
            ));
        }
        entries.push((name, node.clone()));
    }
    Ok(entries)
}

/// The values of a link without what people call it: other links that behave alike are other places.
fn unnamed(node: &Node) -> Node {
    let mut node = node.clone();
    if let Value::Table(table) = &mut node.value {
        table.entries.retain(|entry| entry.key != "label");
    }
    node
}

pub(super) struct Builder {
    pub(super) network: Network,
    entries: Vec<(String, Node)>,
    used: Vec<String>,
    /// For each directed link which of its keys it says itself: `processing`, `processing_overlap`.
    own: Vec<[bool; 2]>,
}

impl Builder {
    pub(super) fn node(&mut self, name: String, host: bool) -> NodeId {
        let id = NodeId(self.network.nodes.len() as u32);
        self.network.by_name.insert(name.clone(), id);
        self.network.nodes.push(NodeSpec { name, host });
        id
    }

    /// Dumbbell, chain and parking lot: hosts at a row of routers.
    fn row(&mut self, kind: &'static str, section: &Section) -> Result<(), Error> {
        let pairs = section.need("pairs")?.integer()? as usize;
        let hops = match section.find("hops")? {
            Some(hops) => hops.integer()? as usize,
            None => 1,
        };
        let cross = match section.find("cross")? {
            Some(cross) => cross.integer()? as usize,
            None => 0,
        };
        if pairs + hops * cross > 200_000 {
            return Err(section
                .need("pairs")?
                .fail("more than 200000 pairs of hosts do not fit"));
        }
        let access = section.need("access")?.node;
        let bottleneck = section.need("bottleneck")?.node;
        let egress = section
            .find("egress")?
            .map_or_else(|| unnamed(&access), |egress| egress.node);
        let mut hosts: Vec<(NodeId, usize, bool)> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (group, router, sends) in [("left", 0, true), ("right", hops, false)] {
            for index in 0..pairs {
                let id = self.node(format!("{group}-{index}"), true);
                self.network.groups.entry(group.to_owned()).or_default().push(id);
                hosts.push((id, router, sends));
                names.push(format!("{}-{index}", if sends { "access" } else { "egress" }));
            }
        }
        for hop in 0..hops {
            for (group, router, sends) in [("enter", hop, true), ("leave", hop + 1, false)] {
                for index in 0..cross {
                    let id = self.node(format!("{group}-{hop}-{index}"), true);
                    self.network.groups.entry(group.to_owned()).or_default().push(id);
                    self.network
                        .groups
                        .entry(format!("{group}-{hop}"))
                        .or_default()
                        .push(id);
                    hosts.push((id, router, sends));
                    let link = if sends { "access" } else { "egress" };
                    names.push(format!("{link}-{group}-{hop}-{index}"));
                }
            }
        }
        let routers: Vec<NodeId> = (0..=hops)
            .map(|index| self.node(format!("router-{index}"), false))
            .collect();
        // Links that no entry of their own changes are read once and copied.
        let access_plan = Plan::read(&access, "network.access", true)?;
        let egress_plan = Plan::read(&egress, "network.egress", true)?;
        for ((host, router, sends), name) in hosts.into_iter().zip(names) {
            let (base, plan, path) = if sends {
                (&access, &access_plan, "network.access")
            } else {
                (&egress, &egress_plan, "network.egress")
            };
            let own = self.own(&name, base, path, true)?;
            let plan = own.as_ref().unwrap_or(plan);
            let there = routers[router];
            let (from, to) = if sends { (host, there) } else { (there, host) };
            self.lay(&name, (from, to), plan, true);
        }
        let plan = Plan::read(&bottleneck, "network.bottleneck", false)?;
        for hop in 0..hops {
            let name = if kind == "dumbbell" {
                String::from("bottleneck")
            } else {
                format!("hop-{hop}")
            };
            let own = self.own(&name, &bottleneck, "network.bottleneck", false)?;
            self.link(
                &name,
                routers[hop],
                routers[hop + 1],
                own.as_ref().unwrap_or(&plan),
            );
        }
        Ok(())
    }

    /// What the entry called `name` makes of the link, if there is one.
    pub(super) fn own(
        &mut self,
        name: &str,
        base: &Node,
        _path: &str,
        defaults: bool,
    ) -> Result<Option<Plan>, Error> {
        let Some((_, entry)) = self.entries.iter().find(|(entry, _)| entry == name) else {
            return Ok(None);
        };
        self.used.push(name.to_owned());
        let mut over = entry.as_table().cloned().unwrap_or_default();
        for key in ["from", "to"] {
            if let Some(entry) = over.entry(key) {
                return Err(Error::at(
                    &entry.key_place,
                    &format!("link.{name}.{key}"),
                    format!("the ends of a link are given by the network; `{key}` is for graphs"),
                ));
            }
        }
        over.entries.retain(|entry| entry.key != "name");
        let mut merged = base.clone();
        if let Value::Table(table) = &mut merged.value {
            table.merge(over);
        }
        Plan::read(&merged, &format!("link.{name}"), defaults).map(Some)
    }

    fn graph(&mut self, section: &Section, bottleneck: &[Field]) -> Result<(), Error> {
        for (key, host) in [("hosts", true), ("routers", false)] {
            let list = section.need(key)?;
            let names = list.list()?;
            if host && names.is_empty() {
                return Err(list.fail("a graph needs at least one host"));
            }
            for field in names {
                let name = field.text()?.to_owned();
                if self.network.by_name.contains_key(&name) {
                    return Err(field.fail(format!("two nodes are called `{name}`")));
                }
                self.node(name, host);
            }
        }
        let all: Vec<NodeId> = self.hosts();
        self.network.groups.insert(String::from("hosts"), all);
        let groups = section.need("groups")?;
        for entry in &value::table(&groups.node, &groups.path)?.entries {
            let field = Field {
                node: entry.node.clone(),
                path: join(&groups.path, &entry.key),
                kind: keys::Kind::List(&keys::Kind::Text),
                given: true,
            };
            let mut members = Vec::new();
            for member in field.list()? {
                members.push(self.network.host(member.text()?, member.place(), &member.path)?);
            }
            self.network.groups.insert(entry.key.clone(), members);
        }
        let wanted: Vec<&str> = bottleneck
            .iter()
            .filter_map(|field| field.node.as_text())
            .collect();
        let over = section.need("bottleneck")?.node;
        let mut laid = false;
        if self.entries.is_empty() {
            return Err(Error::at(
                &section.place,
                "link",
                "a graph needs links: there is no [[link]]",
            ));
        }
        for (name, node) in self.entries.clone() {
            let path = format!("link.{name}");
            let own = Section::open(&node, keys::LINK_ENTRY, &path)?;
            let mut ends = [NodeId(0); 2];
            for (end, key) in ends.iter_mut().zip(["from", "to"]) {
                let field = own.need(key)?;
                *end = self.network.node(field.text()?, field.place(), &field.path)?;
            }
            if ends[0] == ends[1] {
                return Err(own.need("to")?.fail("a link cannot lead to where it begins"));
            }
            let mut table = own.table.clone();
            table
                .entries
                .retain(|entry| !matches!(entry.key.as_str(), "name" | "from" | "to"));
            let between_routers = ends.iter().all(|end| !self.network.nodes[end.0 as usize].host);
            let is_bottleneck = if wanted.is_empty() {
                between_routers
            } else {
                wanted.contains(&name.as_str())
            };
            if is_bottleneck && let Value::Table(over) = &over.value {
                table.merge(over.clone());
            }
            let node = Node {
                value: Value::Table(table),
                place: node.place.clone(),
            };
            let plan = Plan::read(&node, &path, true)?;
            self.used.push(name.clone());
            self.link(&name, ends[0], ends[1], &plan);
            laid |= is_bottleneck;
        }
        let nothing = over.as_table().is_none_or(|over| over.entries.is_empty());
        // Names that no link has are refused where they stand.
        if !laid && !nothing && wanted.is_empty() {
            return Err(Error::at(
                &over.place,
                &join(&section.path, "bottleneck"),
                "no link lies between two routers: name one in `run.bottleneck`",
            )
            .help(
                &over.place,
                "for example run.bottleneck = \"tunnel\", a [[link]]; or write these keys into the link",
            ));
        }
        Ok(())
    }

    fn hosts(&self) -> Vec<NodeId> {
        (0..)
            .zip(&self.network.nodes)
            .filter(|(_, node)| node.host)
            .map(|(index, _)| NodeId(index))
            .collect()
    }

    /// Adds both directions.
    pub(super) fn link(&mut self, name: &str, from: NodeId, to: NodeId, plan: &Plan) {
        self.lay(name, (from, to), plan, false);
    }

    /// As [`Builder::link`], of a link that only `attaches` a host.
    fn lay(&mut self, name: &str, (from, to): (NodeId, NodeId), plan: &Plan, attaches: bool) {
        self.network.link_names.push(name.to_owned());
        for (forward, half, from, to) in [(true, &plan.forward, from, to), (false, &plan.back, to, from)] {
            self.network.links.push(LinkSpec {
                name: name.to_owned(),
                forward,
                from,
                to,
                rate: half.rate.clone(),
                delay: half.delay,
                queue: half.queue.0,
                queue_values: half.queue.1.clone(),
                impairments: half.impairments.clone(),
                mtu: plan.mtu,
                framing: half.framing,
                processing: plan.processing.unwrap_or(Duration::ZERO),
                overlap: plan.overlap.unwrap_or(false),
                host: self.network.nodes[from.0 as usize].host && half.info.is_interface(attaches),
            });
            self.network.links_info.push(half.info.clone());
            self.own.push([plan.processing.is_some(), plan.overlap.is_some()]);
        }
    }

    fn all_entries_used(&self) -> Result<(), Error> {
        for (name, node) in &self.entries {
            if !self.used.contains(name) {
                let place = node
                    .as_table()
                    .and_then(|table| table.get("name"))
                    .map_or(&node.place, |name| &name.place);
                return Err(unknown(
                    place,
                    &format!("link.{name}"),
                    "link",
                    name,
                    &self.network.link_names,
                ));
            }
        }
        Ok(())
    }
}

impl Network {
    /// The node called `name`.
    pub(crate) fn node(&self, name: &str, place: &Place, path: &str) -> Result<NodeId, Error> {
        self.by_name
            .get(name)
            .copied()
            .ok_or_else(|| unknown(place, path, "node", name, &self.names(false)))
    }

    /// The router called `name`.
    pub(crate) fn router(&self, name: &str, place: &Place, path: &str) -> Result<NodeId, Error> {
        let routers: Vec<String> = self
            .nodes
            .iter()
            .filter(|node| !node.host)
            .map(|node| node.name.clone())
            .collect();
        if self.host_called(name).is_some() {
            let message = format!("`{name}` is a host, and a relay is a router on the path");
            return Err(
                Error::at(place, path, message).help(place, format!("routers here: {}", few(&routers)))
            );
        }
        self.by_name(name)
            .ok_or_else(|| unknown(place, path, "router", name, &routers))
    }

    /// The host called `name`.
    pub(crate) fn host(&self, name: &str, place: &Place, path: &str) -> Result<NodeId, Error> {
        self.host_called(name)
            .ok_or_else(|| unknown(place, path, "host", name, &self.names(true)))
    }

    /// The host called `name`.
    pub(crate) fn host_called(&self, name: &str) -> Option<NodeId> {
        self.by_name
            .get(name)
            .copied()
            .filter(|id| self.nodes[id.0 as usize].host)
    }

    /// Hosts of a group or the single host called `name`.
    pub(crate) fn select(&self, name: &str, place: &Place, path: &str) -> Result<Vec<NodeId>, Error> {
        if let Some(group) = self.groups.get(name) {
            return Ok(group.clone());
        }
        self.host_called(name).map(|host| vec![host]).ok_or_else(|| {
            let groups: Vec<String> = self.groups.keys().cloned().collect();
            let mut names = self.names(true);
            names.extend(groups.iter().cloned());
            let mut error = Error::at(place, path, format!("there is no host or group called `{name}`"));
            if let Some(near) = nearest(name, names.iter().map(String::as_str)) {
                error = error.help(place, format!("did you mean `{near}`?"));
            }
            error.help(
                place,
                format!(
                    "groups here: {}; hosts: {}",
                    alternatives(&groups),
                    few(&self.names(true))
                ),
            )
        })
    }

    pub(super) fn by_name(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    pub(super) fn names(&self, hosts: bool) -> Vec<String> {
        self.nodes
            .iter()
            .filter(|node| node.host || !hosts)
            .map(|node| node.name.clone())
            .collect()
    }
}

pub(super) fn unknown(place: &Place, path: &str, what: &str, name: &str, names: &[String]) -> Error {
    let mut error = Error::at(place, path, format!("there is no {what} called `{name}`"));
    if let Some(near) = nearest(name, names.iter().map(String::as_str)) {
        error = error.help(place, format!("did you mean `{near}`?"));
    }
    error.help(place, format!("{what}s here: {}", few(names)))
}

/// The names, for messages; those that only count up are drawn together.
pub(super) fn few(names: &[String]) -> String {
    let stem = |name: &str| {
        name.rsplit_once('-')
            .filter(|(_, number)| number.bytes().all(|digit| digit.is_ascii_digit()))
            .map(|(stem, _)| stem.to_owned())
    };
    let mut parts: Vec<String> = Vec::new();
    let mut rest = names;
    while let Some(first) = rest.first() {
        let own = stem(first);
        let run = match own {
            Some(_) => rest.iter().take_while(|name| stem(name) == own).count(),
            None => 1,
        };
        parts.push(match run {
            1 => first.clone(),
            run => format!("{first} to {}", rest[run - 1]),
        });
        rest = &rest[run..];
    }
    let shown = parts.len().min(12);
    let mut text = parts[..shown].join(", ");
    if parts.len() > shown {
        text.push_str(&format!(" and {} more", parts.len() - shown));
    }
    text
}
