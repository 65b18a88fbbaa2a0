//! What a file describes, with every name looked up and every default filled in.

use super::document::{Node, Table, Value};
use super::error::{Error, alternatives};
use super::import::{self, ReplayFit};
use super::keys;
use super::network::{self, Network};
use super::place::LinkInfo;
use super::read::{Field, Section};
use super::traffic::{self, Group};
use crate::identity;
use crate::metrics::Scene;
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::collision;
use fleetfoot_sim::spec::{LinkSpec, NodeId, Spec, Traffic, Transport, World};
use std::sync::Arc;

/// A scenario ready to run.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What it is called.
    pub title: String,
    /// `[run]`.
    pub run: RunSettings,
    /// Traffic groups, in the order of [`Spec::groups`].
    pub groups: Vec<Group>,
    /// What the simulator runs, with seed 0.
    pub spec: Spec,
    /// The file it comes from, as changed.
    pub document: toml::Table,
    /// What people call the links and what kind they are, in the order of [`Spec::links`].
    pub links_info: Vec<LinkInfo>,
    /// Kind of the network: `dumbbell`.
    pub network: &'static str,
    /// How well a replay fits the recording, of a scenario that `fleetfoot import` made.
    pub fit: Option<ReplayFit>,
    /// Identity of network, hosts and traffic: what a fit was measured with.
    pub identity: String,
    base_rtts: Vec<BaseRtt>,
}

/// `[run]` with its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSettings {
    /// Arrivals stop here.
    pub duration: Duration,
    /// Flows that start before this are not counted.
    pub warmup: Duration,
    /// How long after `duration` unfinished flows may go on.
    pub drain: Duration,
    /// How many runs.
    pub seeds: u32,
    /// Seed of the first.
    pub seed: u64,
    /// Names of the links that are the bottleneck; empty: those above 90 % utilisation as described.
    pub bottleneck: Vec<String>,
    /// Name of the variant whose completion times are the unit of the normalised ones.
    pub loss_free: Option<String>,
    /// Width of the bins in which connections are kept.
    pub bins: Option<Duration>,
    /// Whose TCP plays it.
    pub world: World,
}

/// Round-trip time of a pair of hosts without queueing and serialisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseRtt {
    /// Name of the data sender.
    pub from: String,
    /// Name of the data receiver.
    pub to: String,
    /// Propagation and processing, both ways.
    pub rtt: Duration,
}

/// Resolves a document that was checked against the list of keys.
pub(super) fn resolve(document: &Table, title: &str) -> Result<Resolved, Error> {
    let empty = Node {
        value: Value::Table(Table::default()),
        place: document.entries[0].key_place.clone(),
    };
    let section = Section::open(document.get("run").unwrap_or(&empty), keys::RUN, "run")?;
    let bottleneck = match section.find("bottleneck")? {
        Some(field) => field.list()?,
        None => Vec::new(),
    };
    let network = network::read(document, &bottleneck)?;
    let mut run = run(&section, &network)?;
    run.loss_free = loss_free(&section, document)?;
    let (groups, mut specs) = traffic::read(document, &network)?;
    let measured = [run.warmup, run.duration].map(|span| Instant::ZERO + span);
    for spec in &mut specs {
        Arc::make_mut(&mut spec.sender).measured = measured;
        spec.receiver = Arc::clone(&spec.sender);
    }
    for (group, node) in specs.iter().zip(group_nodes(document)) {
        if group.start >= run.duration {
            let place = node
                .as_table()
                .and_then(|table| table.get("start"))
                .map_or(&node.place, |start| &start.place);
            return Err(Error::at(
                place,
                &format!("traffic.{}.start", group.name),
                format!(
                    "it would start at {}, when the run of {} is over",
                    group.start, run.duration
                ),
            ));
        }
    }
    let base_rtts = base_rtts(&network, &specs);
    let identity = import::identity(document, &specs);
    let fit = import::read(document, &identity)?;
    let spec = Spec {
        nodes: network.nodes,
        links: network.links,
        groups: specs,
        duration: run.duration,
        warmup: run.warmup,
        drain: run.drain,
        seed: 0,
        bins: run.bins,
        world: run.world,
        plugins: crate::plugins::installed(),
    };
    tables(&spec, group_nodes(document))?;
    if run.world.is_real() {
        crate::run::playable_by_kernel(&spec).map_err(|reason| {
            let place = section.find("world").ok().flatten();
            let place = place.map_or_else(|| section.place.clone(), |field| field.place().clone());
            Error::at(&place, "run.world", reason)
        })?;
    }
    Ok(Resolved {
        title: title.to_owned(),
        groups,
        spec,
        run,
        document: document.to_toml(),
        links_info: network.links_info,
        network: network.kind,
        fit,
        identity,
        base_rtts,
    })
}

/// What collides, collides in a table.
fn tables(spec: &Spec, nodes: &[Node]) -> Result<(), Error> {
    for (group, node) in spec.groups.iter().zip(nodes) {
        if collision::collides(group) && collision::queue_with_table(spec, group).is_none() {
            let ports = node.as_table().and_then(|table| table.get("ports"));
            let place = ports.map_or(&node.place, |ports| &ports.place);
            return Err(Error::at(
                place,
                &format!("traffic.{}.ports", group.name),
                "no queue on the way has a table in which anything could collide: `sp-h` and `sp-fq` have",
            ));
        }
    }
    Ok(())
}

pub(super) fn group_nodes(document: &Table) -> &[Node] {
    match document.get("traffic").map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes,
        _ => &[],
    }
}

fn run(section: &Section, network: &Network) -> Result<RunSettings, Error> {
    let duration = section.need("duration")?;
    let warmup = section.need("warmup")?;
    if warmup.duration()? >= duration.duration()? {
        let culprit = if warmup.given { &warmup } else { &duration };
        return Err(culprit
            .fail(format!(
                "the warm-up ({}) must be shorter than the run ({})",
                warmup.duration()?,
                duration.duration()?
            ))
            .help(
                culprit.place(),
                "flows that start within the warm-up are not counted",
            ));
    }
    let mut bottleneck = Vec::new();
    if let Some(field) = section.find("bottleneck")? {
        for element in field.list()? {
            bottleneck.push(element.text()?.to_owned());
        }
    } else if network.kind == "dumbbell" {
        bottleneck.push(String::from("bottleneck"));
    }
    Ok(RunSettings {
        duration: duration.duration()?,
        warmup: warmup.duration()?,
        drain: section.need("drain")?.duration()?,
        seeds: section.need("seeds")?.integer()? as u32,
        seed: section.need("seed")?.integer()?,
        bottleneck,
        loss_free: None,
        bins: section.find("bins")?.map(|field| field.duration()).transpose()?,
        world: world(&section.need("world")?)?,
    })
}

fn world(field: &Field) -> Result<World, Error> {
    let word = field.choice()?;
    let found = World::ALL.iter().find(|(name, _)| *name == word);
    found
        .map(|&(_, world)| world)
        .ok_or_else(|| field.fail("no such world"))
}

/// The variant that `run.loss_free` names.
fn loss_free(section: &Section, document: &Table) -> Result<Option<String>, Error> {
    let Some(field) = section.find("loss_free")? else {
        return Ok(None);
    };
    let wanted = field.text()?;
    let names: Vec<&str> = match document.get("variant").map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes
            .iter()
            .filter_map(|node| node.as_table()?.text("name"))
            .collect(),
        _ => Vec::new(),
    };
    if names.contains(&wanted) {
        return Ok(Some(wanted.to_owned()));
    }
    let help = match names.as_slice() {
        [] => String::from("give the file a [[variant]] without loss"),
        names => format!("valid choices: {}", alternatives(names)),
    };
    Err(field
        .fail(format!("there is no variant called `{wanted}`"))
        .help(field.place(), help))
}

fn base_rtts(network: &Network, specs: &[fleetfoot_sim::spec::GroupSpec]) -> Vec<BaseRtt> {
    let mut seen: Vec<(NodeId, NodeId)> = specs
        .iter()
        .flat_map(|group| group.pairs.iter().copied())
        .collect();
    seen.sort_unstable();
    seen.dedup();
    let mut paths = network.paths();
    seen.into_iter()
        .filter_map(|(from, to)| {
            Some(BaseRtt {
                from: network.nodes[from.0 as usize].name.clone(),
                to: network.nodes[to.0 as usize].name.clone(),
                rtt: paths.base_rtt(from, to)?,
            })
        })
        .collect()
}

impl Resolved {
    /// The run with this seed.
    pub fn spec(&self, seed: u64) -> Spec {
        Spec {
            seed,
            ..self.spec.clone()
        }
    }

    /// What metrics need of it; `bottleneck` names links.
    pub fn scene<'a>(&'a self, bottleneck: &'a [String]) -> Scene<'a> {
        Scene {
            spec: &self.spec,
            deadlines: self.groups.iter().map(|group| group.deadline).collect(),
            bottleneck,
        }
    }

    /// All round-trip times without queueing change by this factor.
    pub(crate) fn scale_base_rtts(&mut self, factor: f64) {
        for pair in &mut self.base_rtts {
            pair.rtt = Duration::from_secs_f64(pair.rtt.as_secs_f64() * factor);
        }
    }

    /// Round-trip times without queueing of every pair that has traffic, in the order of the hosts.
    pub fn base_rtts(&self) -> &[BaseRtt] {
        &self.base_rtts
    }

    /// Whether any group uses TCP: what changes only endpoints does not apply otherwise.
    pub fn uses_tcp(&self) -> bool {
        (0..self.spec.groups.len()).any(|group| self.is_tcp(group))
    }

    /// Whether the group with this index uses TCP.
    pub fn is_tcp(&self, group: usize) -> bool {
        self.spec.groups[group].traffic.facts().transport == Transport::Tcp
    }

    /// Whether packets carry marks that only IPv6 has room for.
    pub fn needs_ipv6(&self) -> bool {
        self.spec.groups.iter().any(|group| {
            let grouped = group.interface.super_packets;
            let raw = match &group.traffic {
                Traffic::Raw(raw) => Some(raw.layout),
                _ => None,
            };
            grouped.map(|grouping| grouping.layout).or(raw) == Some(Layout::C)
        })
    }

    /// Both directions of the links named as the bottleneck.
    pub fn bottleneck_links(&self) -> impl Iterator<Item = &LinkSpec> {
        self.spec
            .links
            .iter()
            .filter(|link| self.run.bottleneck.contains(&link.name))
    }

    /// Queue disciplines in front of the bottleneck, forward, without repetition.
    pub fn bottleneck_queues(&self) -> Vec<&'static str> {
        let mut kinds: Vec<&'static str> = self
            .bottleneck_links()
            .filter(|link| link.forward)
            .map(|link| link.queue)
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Whether both describe the same runs, however the files are written.
    pub(super) fn describes_the_same(&self, other: &Resolved) -> bool {
        self.run == other.run
            && self.groups == other.groups
            && identity::of(&self.spec) == identity::of(&other.spec)
    }
}
