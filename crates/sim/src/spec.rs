//! What a run is made of: plain data that the laboratory fills from a scenario file and [`crate::world`] runs.
//!
//! Everything here is resolved: names are indices, units are types, defaults are filled in. Data flows from the first
//! host of an endpoint pair to the second; requests of request-response traffic flow the other way first.

pub use fleetfoot_core::link::{Arq, Impairments, LinkRate, Loss};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::superpacket::group::Grouping;
use fleetfoot_core::tcp::Config;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use std::sync::Arc;

/// A complete run.
#[derive(Clone, Debug)]
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
    /// Seed of the run. All random streams derive from it and from names.
    pub seed: u64,
    /// Width of the bins in which a [`crate::watch::Watch`] keeps connections; `None`: nothing is kept.
    pub bins: Option<Duration>,
}

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Index of a directed link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkIndex(pub u32);

/// A host or router.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSpec {
    /// Its name: `left-0`, `router-1`.
    pub name: String,
    /// Hosts end flows; routers forward.
    pub host: bool,
}

/// One direction of a link: a queue, a serialiser, a wire.
#[derive(Clone, Debug)]
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
}

/// One traffic group.
#[derive(Clone, Debug)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub traffic: Traffic,
    /// Pairs of (data sender, data receiver).
    pub pairs: Vec<(NodeId, NodeId)>,
    /// How flows are dealt to `pairs`.
    pub spread: Spread,
    /// When it begins.
    pub start: Duration,
    /// Time between the starts of its `count` members.
    pub start_spacing: Duration,
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
    /// How many requests each of its users makes at most, in the order of the users; `None`: as many as there is time for.
    /// For closed-loop kinds: [`Traffic::is_closed_loop`].
    pub most_requests: Option<Arc<[u32]>>,
}

/// A node on the path of a group that ends its connections and carries their bytes on over second ones: split TCP.
#[derive(Clone, Debug)]
pub struct Relay {
    /// Where.
    pub node: NodeId,
    /// Endpoint configuration of the relay, towards both ends. What it holds for a connection and direction fills its receive
    /// buffer and its send buffer.
    pub config: Arc<Config>,
}

/// What a host's interface does with the packets of a traffic group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interface {
    /// How outgoing packets become super-packets; `None`: they do not.
    pub super_packets: Option<Grouping>,
    /// Interrupt coalescing: arriving packets are handed up together, so long after the first of them. Groups with the
    /// same time share the queue of a host. Zero: each at once.
    pub coalesce: Duration,
}

/// How flows are dealt to endpoint pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// One after the other.
    RoundRobin,
    /// Drawn per flow.
    Random,
    /// The group is repeated on every pair.
    Each,
}

/// What a traffic group does.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// `count` connections that always have data.
    Bulk {
        /// Connections.
        count: u32,
    },
    /// One connection per transfer, opened by an arrival process (open loop).
    Transfer {
        /// Payload bytes per transfer.
        size: Distribution,
        /// Seconds between arrivals.
        interarrival: Distribution,
        /// At most this many transfers.
        count: Option<u64>,
    },
    /// In each round every pair transfers at the same moment; the next round begins when all are done.
    Incast {
        /// Payload bytes per sender.
        size: Distribution,
        /// Connections per round, dealt over the pairs.
        count: u32,
        /// Rounds.
        rounds: u32,
        /// Pause between rounds (s).
        pause: Distribution,
    },
    /// `count` users: think, transfer on a new connection, repeat.
    ClosedLoop {
        /// Users.
        count: u32,
        /// Payload bytes per transfer.
        size: Distribution,
        /// Think time (s).
        think: Distribution,
    },
    /// `count` persistent connections: request, response, think, repeat. A flow record is one exchange.
    RequestResponse {
        /// Connections.
        count: u32,
        /// Bytes of the request, towards the data sender.
        request: Distribution,
        /// Bytes of the response.
        response: Distribution,
        /// Think time (s).
        think: Distribution,
        /// Exchanges per connection; `None`: until `stop`.
        exchanges: Option<u32>,
    },
    /// `count` persistent connections that write bursts. A flow record is one burst.
    OnOff {
        /// Connections.
        count: u32,
        /// Bytes per burst.
        burst: Distribution,
        /// Time between the starts of bursts (s).
        interval: Distribution,
    },
    /// `count` streams of small writes. A flow record is one stream; writes have their delivery latencies, segments
    /// their ACK latencies.
    Thin {
        /// Streams.
        count: u32,
        /// Bytes per write.
        payload: Distribution,
        /// Time between writes (s).
        interval: Distribution,
    },
    /// `count` users who load pages. A flow record is one page.
    Web(Box<Web>),
    /// `count` streams of datagrams without feedback.
    Cbr {
        /// Streams.
        count: u32,
        /// Layer-3 rate of each.
        rate: Rate,
        /// Layer-3 bytes per packet.
        packet: Bytes,
    },
    /// Transfers listed in a file, in order of start.
    Flows {
        /// Start (from the run's start), endpoints, payload bytes.
        list: Arc<[FlowLine]>,
    },
    /// Echo requests; a flow record is one exchange, its FCT the round-trip time.
    Ping {
        /// Seconds between requests.
        interval: Distribution,
        /// Layer-3 bytes per packet.
        packet: Bytes,
    },
    /// `count` video calls. A flow record is one frame.
    Video(Box<Video>),
    /// Look-ups of names by datagrams. A flow record is one look-up.
    Dns(Box<Dns>),
    /// Packets made from a template, whose headers say what they like.
    Raw(Box<Raw>),
    /// Streams whose rate follows the TCP throughput equation (RFC 5348). A flow record is one stream.
    Tfrc(Box<Tfrc>),
    /// Connections that were recorded somewhere: they start at their times, and who speaks when and how long each waits
    /// is prescribed. A flow record is one exchange, its time without the prescribed waiting.
    Replay(Box<Replay>),
}

impl Traffic {
    /// Whether it consists of connections that a relay can end: datagrams and recorded delays go past it.
    pub fn can_be_relayed(&self) -> bool {
        match self {
            Traffic::Bulk { .. }
            | Traffic::Transfer { .. }
            | Traffic::Incast { .. }
            | Traffic::ClosedLoop { .. }
            | Traffic::RequestResponse { .. }
            | Traffic::OnOff { .. }
            | Traffic::Thin { .. }
            | Traffic::Web(_)
            | Traffic::Flows { .. } => true,
            Traffic::Cbr { .. }
            | Traffic::Ping { .. }
            | Traffic::Video(_)
            | Traffic::Dns(_)
            | Traffic::Raw(_)
            | Traffic::Tfrc(_)
            | Traffic::Replay(_) => false,
        }
    }

    /// Whether its users ask again only when they were answered: who is served sooner asks for more.
    pub fn is_closed_loop(&self) -> bool {
        matches!(
            self,
            Traffic::ClosedLoop { .. } | Traffic::RequestResponse { .. } | Traffic::Web(_)
        )
    }
}

/// Video calls: streams of frames.
#[derive(Clone, Debug)]
pub struct Video {
    /// Calls.
    pub count: u32,
    /// Each call has a stream on two pairs, one after the other: the ways there and back.
    pub both_ways: bool,
    /// Frames per second.
    pub frame_rate: f64,
    /// Payload bytes of a frame.
    pub frame: Distribution,
    /// One frame of so many, the first among them, is a key frame; `None`: none is.
    pub key_every: Option<u32>,
    /// Payload bytes of a key frame.
    pub key_frame: Distribution,
    /// Layer-3 bytes of a datagram at most.
    pub packet: Bytes,
}

/// Look-ups of names. The second end of a pair asks, the first answers.
#[derive(Clone, Debug)]
pub struct Dns {
    /// Seconds between look-ups.
    pub interarrival: Distribution,
    /// Payload bytes of a request.
    pub request: Distribution,
    /// Payload bytes of an answer.
    pub response: Distribution,
    /// Payload bytes of either at most.
    pub most: Bytes,
    /// Time the server needs for an answer (s).
    pub server_time: Distribution,
    /// How long the client waits before it asks again.
    pub timeout: Duration,
    /// Requests of a look-up at most.
    pub attempts: u32,
}

/// Recorded connections.
#[derive(Clone)]
pub struct Replay {
    /// In order of start.
    pub connections: Arc<[Recorded]>,
    /// Each starts up to so much later, at random.
    pub start_jitter: Duration,
    /// Stands for all of them where specifications are compared: there may be millions.
    pub identity: Arc<str>,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay")
            .field("connections", &self.connections.len())
            .field("start_jitter", &self.start_jitter)
            .field("identity", &self.identity)
            .finish()
    }
}

/// A recorded connection. The second end of its pair opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// From the start of the group.
    pub start: Duration,
    /// Index of its pair, modulo their number.
    pub pair: u32,
    /// What its packets take beyond the links of their path, each way.
    pub delay: Duration,
    /// Round-trip time with that, of an empty path: when the first unit may be written.
    pub rtt: Duration,
    /// Both ends speak independently of each other; else a unit waits for the one before it.
    pub concurrent: bool,
    /// Window that either end offers at most, bytes; 0: as its group is configured.
    pub windows: [u32; 2],
    /// Data segments of either end that are lost on their way, beside what queues drop, per million.
    pub losses_ppm: [u32; 2],
    /// What is said, in order.
    pub units: Box<[Unit]>,
}

/// What one end of a recorded connection says at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The end that speaks: 0 or 1.
    pub from: u8,
    /// How long after it could: after the arrival of the unit before if that came from the other end, after its last byte
    /// was first sent if it came from the same; the first after the handshake.
    pub wait: Duration,
    /// Payload bytes; 0: this end closes.
    pub bytes: Bytes,
}

/// Streams of TFRC.
#[derive(Clone, Debug)]
pub struct Tfrc {
    /// Streams, or with `interarrival` at most so many; `None`: one, or no limit.
    pub count: Option<u32>,
    /// Payload bytes of each; `None`: they always have data.
    pub size: Option<Distribution>,
    /// Seconds between the starts of streams; `None`: `start_spacing`.
    pub interarrival: Option<Distribution>,
    /// Layer-3 rate at which applications write packets; `None`: all at once. Not with `interarrival`.
    pub rate: Option<Rate>,
    /// The transport.
    pub config: fleetfoot_core::tfrc::Config,
}

/// Pages: a document on one connection, then its objects over several, one at a time on each.
#[derive(Clone, Debug)]
pub struct Web {
    /// Users.
    pub count: u32,
    /// Bytes of the document.
    pub document: Distribution,
    /// Objects of each page.
    pub objects: u32,
    /// Bytes of each object.
    pub object: Distribution,
    /// Bytes of each request, towards the data sender.
    pub request: Bytes,
    /// Connections of a page, at most.
    pub connections: u32,
    /// Time between the end of a page and the start of the next (s).
    pub think: Distribution,
}

/// Trains of packets for attacks on queues: what a host can send that has no TCP.
#[derive(Clone, Debug)]
pub struct Raw {
    /// Seconds between trains.
    pub interarrival: Distribution,
    /// At most this many trains.
    pub count: Option<u64>,
    /// Packets of each train, at least 1.
    pub members: u32,
    /// Time between the packets of a train.
    pub interval: Duration,
    /// Layer-3 bytes per packet.
    pub packet: Bytes,
    /// What the packets claim to be.
    pub mark: RawMark,
    /// Where they say so.
    pub layout: Layout,
    /// Length they declare.
    pub length: u8,
    /// Identifier of every train; `None`: drawn for each.
    pub id: Option<u16>,
    /// The final packet of a train carries `last`.
    pub last: bool,
    /// Who they say sent them.
    pub source: RawSource,
    /// Their ports.
    pub ports: RawPorts,
}

/// What the packets of a train claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawMark {
    /// Ordinary packets.
    Regular,
    /// Each the first of the same super-packet.
    First,
    /// Each a later packet of a super-packet whose first is not among them.
    Follower,
    /// A first packet and its followers.
    SuperPacket,
}

/// Source address of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawSource {
    /// The host's own.
    Own,
    /// Drawn for each train from so many addresses that nobody has.
    Drawn(u32),
    /// That of another host.
    Host(NodeId),
    /// That of a connection of this group that is open, drawn for each train, with its destination address; of any pair
    /// of the group if none is open.
    Victim(u32),
}

/// Ports of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawPorts {
    /// Others for each train.
    New,
    /// The same for all.
    Same,
    /// Drawn for each train.
    Drawn,
    /// Those of the victim's connection.
    Known,
}

/// One listed transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowLine {
    /// Start of the transfer from the start of the run.
    pub start: Duration,
    /// Data sender.
    pub source: NodeId,
    /// Data receiver.
    pub destination: NodeId,
    /// Payload bytes.
    pub bytes: Bytes,
}
