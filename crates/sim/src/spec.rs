//! What a run is made of: plain data that the laboratory fills from a scenario file and [`crate::world`] runs.
//!
//! Everything here is resolved: names are indices, units are types, defaults are filled in. Data flows from the first
//! host of an endpoint pair to the second; requests of request-response traffic flow the other way first.

mod facts;
mod quic;
mod raw;
mod rounds;
mod tls;
mod traffic;

use crate::error::RunError;
pub use facts::{Compared, Facts, Losses, Measure, Pace, Transport};
pub use fleetfoot_core::link::{Arq, Impairments, LinkRate, Loss};
use fleetfoot_core::link::{Link, LinkConfig};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::rng::{Distribution, Rng};
use fleetfoot_core::superpacket::group::Grouping;
use fleetfoot_core::tcp::Config;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
pub use quic::{QUIC_BUILT, Quic, QuicController, QuicTransport, QuicWeb, TlsHandshake};
pub use raw::{Raw, RawMark, RawPorts, RawSource};
pub use rounds::Round;
use serde::Serialize;
use std::sync::Arc;
pub use tls::Tls;
pub use traffic::{Dns, FlowLine, Recorded, Replay, Streaming, Tfrc, Traffic, TrafficKind, Unit, Video, Web};

/// A complete run.
#[derive(Clone, Debug, Serialize)]
pub struct Spec {
    /// Hosts and routers; [`NodeId`] is the index.
    pub nodes: Vec<NodeSpec>,
    /// Directed links; [`LinkIndex`] is the index.
    pub links: Vec<LinkSpec>,
    /// Traffic, in file order.
    pub groups: Vec<GroupSpec>,
    /// Arrivals stop here.
    pub duration: Duration,
    /// Flows that start before this are not counted, and links are measured from here to `duration`.
    pub warmup: Duration,
    /// How long after `duration` unfinished flows may run on.
    pub drain: Duration,
    /// Queue disciplines from outside the tree that links may name.
    pub plugins: Plugins,
    /// Seed of the run. All random streams derive from it and from names.
    pub seed: u64,
    /// Width of the bins in which a [`crate::watch::Watch`] keeps connections; `None`: nothing is kept.
    pub bins: Option<Duration>,
    /// Whose TCP plays it. Part of the identity only where it is not ours.
    #[serde(skip_serializing_if = "World::is_simulated")]
    pub world: World,
}

/// Whose TCP plays a run, in which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum World {
    /// Ours, in virtual time.
    Simulator,
    /// That of this machine's kernel at both ends, in real time.
    Kernel,
    /// Ours at the data senders and the kernel's at the receivers, in real time.
    HostSends,
    /// The kernel's at the data senders and ours at the receivers, in real time.
    HostReceives,
}

impl World {
    /// Each with its word in scenario files.
    pub const ALL: [(&'static str, World); 4] = [
        ("simulator", World::Simulator),
        ("kernel", World::Kernel),
        ("host-sends", World::HostSends),
        ("host-receives", World::HostReceives),
    ];

    /// Whether packets are real, and take real time.
    pub const fn is_real(self) -> bool {
        !matches!(self, World::Simulator)
    }

    /// At which end our TCP is on real packets: 0, the data senders; 1, the receivers.
    pub const fn host_side(self) -> Option<usize> {
        match self {
            World::HostSends => Some(0),
            World::HostReceives => Some(1),
            World::Simulator | World::Kernel => None,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_simulated(&self) -> bool {
        *self == World::Simulator
    }
}

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct NodeId(pub u32);

/// Index of a directed link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct LinkIndex(pub u32);

/// A host or router.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeSpec {
    /// Its name: `left-0`, `router-1`.
    pub name: String,
    /// Hosts end flows; routers forward.
    pub host: bool,
}

/// One direction of a link: a queue, a serialiser, a wire.
#[derive(Clone, Debug, Serialize)]
pub struct LinkSpec {
    /// Name of the duplex link it belongs to.
    pub name: String,
    /// Whether this is the direction named in the scenario (`forward`) or the way back.
    pub forward: bool,
    /// Sending end.
    pub from: NodeId,
    /// Receiving end.
    pub to: NodeId,
    /// Speed.
    pub rate: LinkRate,
    /// Propagation delay.
    pub delay: Duration,
    /// Registered name of the queue discipline.
    pub queue: &'static str,
    /// Its parameters.
    pub queue_values: Values,
    /// What else happens to packets.
    pub impairments: Impairments,
    /// Largest packet at layer 3; larger ones are dropped and counted.
    pub mtu: u32,
    /// Bytes per packet beyond layer 3 that take time on the wire.
    pub framing: u32,
    /// Time per packet that the sending end needs before it serialises.
    pub processing: Duration,
    /// Whether it happens while the packet before is sent.
    pub overlap: bool,
    /// Its queue is in the host that sends, whose TCP knows what of its own waits there (TCP Small Queues).
    #[serde(skip_serializing_if = "is_false")]
    pub host: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl LinkSpec {
    /// The link in this direction, with nothing under way: what a driver of real packets needs.
    ///
    /// # Errors
    /// No queue discipline has the name.
    pub fn link(&self, spec: &Spec) -> Result<Link<AnyQueue>, RunError> {
        let queue = self.discipline(spec)?;
        Ok(Link::new(queue, &self.config(), spec.seed, &self.directed_name()))
    }

    /// Its name and direction, which separate its random streams from those of others.
    pub(crate) fn directed_name(&self) -> String {
        let direction = if self.forward { "forward" } else { "reverse" };
        format!("{}/{direction}", self.name)
    }

    /// All but the queue.
    pub fn config(&self) -> LinkConfig {
        LinkConfig {
            rate: self.rate.clone(),
            delay: self.delay,
            mtu: self.mtu,
            framing: self.framing,
            processing: self.processing,
            overlap: self.overlap,
            impairments: self.impairments.clone(),
        }
    }

    /// The queue.
    pub(crate) fn discipline(&self, spec: &Spec) -> Result<AnyQueue, RunError> {
        let seed = Rng::for_element(spec.seed, &self.directed_name(), "queue").next_u64();
        let context = self.config().link_context(seed);
        AnyQueue::build_among(spec.plugins.queues, self.queue, &self.queue_values, &context)
            .ok_or_else(|| RunError::UnknownQueue(self.queue.to_owned()))
    }
}

/// One traffic group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// The group whose random numbers it draws, so that both have the same sizes and times; `None`: its own. Part of the
    /// identity only where it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<Arc<str>>,
    /// What it does.
    pub traffic: Traffic,
    /// Pairs of (data sender, data receiver).
    pub pairs: Vec<(NodeId, NodeId)>,
    /// How flows are dealt to `pairs`.
    pub spread: PairPolicy,
    /// When it begins.
    pub start: Duration,
    /// Time between the starts of its `count` members; of those of a round for `incast`.
    pub start_spacing: Duration,
    /// In a round of `incast`, `start_spacing` lies between the transfers of one host, the data sender, and hosts begin together; else it lies
    /// between all transfers (with [`PairPolicy::Each`]: of a pair). Part of the identity only where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spaced_by_host: bool,
    /// When it stops starting anything (bulk: when it closes); `None`: at the run's `duration`.
    pub stop: Option<Duration>,
    /// Endpoint configuration of the data sender.
    pub sender: Arc<Config>,
    /// Endpoint configuration of the data receiver.
    pub receiver: Arc<Config>,
    /// What stands between its endpoints and their links.
    pub interface: Interface,
    /// What ends its connections on the way.
    pub relay: Option<Relay>,
    /// TLS on its connections; of web and request-response only.
    #[serde(skip_serializing_if = "Option::is_none")] // names of stored runs stay
    pub tls: Option<Tls>,
    /// How many requests each of its users makes at most, in the order of the users; `None`: as many as there is time for.
    /// For closed-loop kinds: [`Facts::closed_loop`].
    pub most_requests: Option<Arc<[u32]>>,
}

impl GroupSpec {
    /// The name of the random numbers of its applications: sizes, and times between what they do.
    pub fn draws(&self) -> &str {
        self.draws.as_deref().unwrap_or(&self.name)
    }
}

/// A node on the path of a group that ends its connections and carries their bytes on over second ones: split TCP.
#[derive(Clone, Debug, Serialize)]
pub struct Relay {
    /// Where.
    pub node: NodeId,
    /// Endpoint configuration of the relay, towards both ends. What it holds for a connection and direction fills its receive
    /// buffer and its send buffer.
    pub config: Arc<Config>,
}

/// What a host does with the packets of a traffic group around its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Interface {
    /// How outgoing packets become super-packets; `None`: they do not.
    pub super_packets: Option<Grouping>,
    /// Interrupt coalescing: arriving packets are handed up together, so long after the first of them. Groups with the
    /// same time share the queue of a host. Zero: each at once.
    pub coalesce: Duration,
    /// TCP Fast Open: who opens has a cookie of the other host, and puts its first data on the SYN.
    #[serde(skip_serializing_if = "std::ops::Not::not")] // names of stored runs stay
    pub fast_open: bool,
}

/// How flows are dealt to endpoint pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PairPolicy {
    /// One after the other.
    RoundRobin,
    /// Drawn per flow.
    Random,
    /// The group is repeated on every pair.
    Each,
}
