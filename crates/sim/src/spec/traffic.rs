//! Traffic kinds: the parameters of each, and its facts.
//!
//! A new kind is an entry of [`TrafficKind`], a variant of [`Traffic`] with its parameters, and an arm in the methods of
//! [`Traffic`] whose answer depends on parameters. Nothing else in the program lists kinds, except where each does what no
//! other does: its application and the reader of its keys.

use super::facts::{Compared, DATAGRAMS, Facts, Losses, Measure, Pace, TCP, Transport};
use super::{Bytes, Distribution, Duration, NodeId, Quic, QuicWeb, Rate, Raw};
use serde::Serialize;
use std::sync::Arc;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $facts:expr;)*) => {
        /// The kinds of traffic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TrafficKind {
            $($(#[$doc])* $kind,)*
        }

        impl TrafficKind {
            /// All kinds.
            pub const ALL: &'static [TrafficKind] = &[$(TrafficKind::$kind),*];

            /// What is known of the kind.
            pub const fn facts(self) -> &'static Facts {
                match self {
                    $(TrafficKind::$kind => const { &$facts },)*
                }
            }
        }

        impl Traffic {
            /// Its kind.
            pub const fn kind(&self) -> TrafficKind {
                match self {
                    $(Traffic::$kind { .. } => TrafficKind::$kind,)*
                }
            }
        }
    };
}

kinds! {
    /// Connections that always have data.
    Bulk = Facts { name: "bulk", greedy: true, long_lived: true, completes: false, ..TCP };
    /// Transfers that arrive whether or not earlier ones are done.
    Transfer = Facts { name: "transfer", latency_sensitive: true, flow_is_connection: true, has_members: false, ..TCP };
    /// Transfers of all senders at the same moment.
    Incast = Facts { name: "incast", latency_sensitive: true, flow_is_connection: true, closed_loop: true, ..TCP };
    /// Users who think between transfers.
    ClosedLoop = Facts {
        name: "closed-loop",
        latency_sensitive: true,
        flow_is_connection: true,
        closed_loop: true,
        reacts: true,
        ..TCP
    };
    /// Persistent connections with requests and responses.
    RequestResponse = Facts {
        name: "request-response",
        latency_sensitive: true,
        closed_loop: true,
        reacts: true,
        ..TCP
    };
    /// Persistent connections that write bursts.
    OnOff = Facts { name: "on-off", ..TCP };
    /// Streams of small writes.
    Thin = Facts {
        name: "thin",
        latency_sensitive: true,
        completes: false,
        compared: Compared::Delivery,
        ..TCP
    };
    /// Users who load pages.
    Web = Facts { name: "web", latency_sensitive: true, notes_acked: false, closed_loop: true, reacts: true, ..TCP };
    /// Video players that fetch segments into a buffer: nobody waits for a segment as long as there is another to play.
    Streaming = Facts {
        name: "streaming",
        reacts: true,
        stood_still: Some("stalled_share"),
        measures: &[
            Measure { name: "startup_delay_s", doc: "From the start of a player within the measured time to its first picture." },
            Measure { name: "stalls", doc: "How often a player ran out of segments; a stall counts that reaches into the measured time." },
            Measure { name: "stalled_share", doc: "Of the measured time since its first picture, the share in which a player stood still; 1 if it showed none before the end." },
            Measure { name: "idle_share", doc: "Of the measured time since its start, the share in which a player had nothing to ask for." },
            Measure { name: "window_after_pause", doc: "The congestion window with which a server answers after a pause, over that when the request came." },
            Measure { name: "without_picture", doc: "1 for a player that showed no picture before the end of the measured time, else 0." },
        ],
        ..TCP
    };
    /// Datagrams at a constant bit rate.
    Cbr = Facts {
        name: "cbr",
        compared: Compared::Delivery,
        losses: Losses::Datagrams,
        ..DATAGRAMS
    };
    /// Transfers listed in a file.
    Flows = Facts { name: "flows", flow_is_connection: true, lists_hosts: true, has_members: false, ..TCP };
    /// Echo requests.
    Ping = Facts {
        name: "ping",
        has_members: false,
        compared: Compared::CompletionOfNext,
        losses: Losses::Flows,
        ..DATAGRAMS
    };
    /// Video calls.
    Video = Facts {
        name: "video-call",
        latency_sensitive: true,
        both_ways: true,
        compared: Compared::CompletionOfNext,
        losses: Losses::Datagrams,
        ..DATAGRAMS
    };
    /// Look-ups of names.
    Dns = Facts {
        name: "dns",
        latency_sensitive: true,
        completes: true,
        reacts: true,
        has_members: false,
        ..DATAGRAMS
    };
    /// Packets made from a template.
    Raw = Facts { name: "raw", has_members: false, ..DATAGRAMS };
    /// TFRC streams.
    Tfrc = Facts { name: "tfrc", transport: Transport::Tfrc, relayable: false, long_lived: true, ..TCP };
    /// Recorded connections.
    Replay = Facts {
        name: "replay",
        latency_sensitive: true,
        notes_acked: false,
        relayable: false,
        reacts: true,
        has_members: false,
        ..TCP
    };
    /// Transfers over QUIC.
    Quic = Facts {
        name: "quic",
        has_members: false,
        transport: Transport::Quic,
        relayable: false,
        latency_sensitive: true,
        flow_is_connection: true,
        reacts: true,
        ..TCP
    };
    /// Users who load pages over QUIC.
    QuicWeb = Facts {
        name: "quic-web",
        transport: Transport::Quic,
        relayable: false,
        latency_sensitive: true,
        notes_acked: false,
        closed_loop: true,
        reacts: true,
        ..TCP
    };
}

impl TrafficKind {
    /// Its name in scenario files and results.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The kind with this name.
    pub fn by_name(name: &str) -> Option<TrafficKind> {
        TrafficKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// What a traffic group does.
#[derive(Clone, Debug, Serialize)]
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
        /// Time the server needs for an answer (s). Part of the identity only where there is any.
        #[serde(skip_serializing_if = "takes_no_time")]
        server_time: Distribution,
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
    /// `count` video players. A flow record is one segment.
    Streaming(Box<Streaming>),
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
    /// One QUIC connection per transfer, opened by an arrival process (open loop).
    Quic(Box<Quic>),
    /// `count` users who load pages over QUIC. A flow record is one page.
    QuicWeb(Box<QuicWeb>),
}

impl Traffic {
    /// What is known of its kind.
    pub const fn facts(&self) -> &'static Facts {
        self.kind().facts()
    }

    /// Whether what happens at one of its ends makes an application act.
    pub fn reacts(&self) -> bool {
        self.facts().reacts || matches!(self, Traffic::Incast { rounds: 2.., .. })
    }

    /// Whether it takes whatever capacity it can get.
    pub fn is_elastic(&self) -> bool {
        match self {
            Traffic::Tfrc(tfrc) => tfrc.size.is_none() && tfrc.rate.is_none(),
            other => other.facts().greedy,
        }
    }

    /// Its users, connections or streams on one pair if it is repeated on `each` pair, else on all pairs together. `None`:
    /// its flows come as they arrive.
    pub fn members(&self, each: bool) -> Option<u32> {
        match self {
            Traffic::Bulk { count }
            | Traffic::ClosedLoop { count, .. }
            | Traffic::RequestResponse { count, .. }
            | Traffic::OnOff { count, .. }
            | Traffic::Thin { count, .. }
            | Traffic::Cbr { count, .. }
            | Traffic::Incast { count, .. } => Some(*count),
            Traffic::Web(web) => Some(web.count),
            Traffic::QuicWeb(web) => Some(web.count),
            Traffic::Streaming(streaming) => Some(streaming.count),
            // A call that goes both ways is two streams, each with a pair of its own.
            Traffic::Video(video) => Some(video.count * if video.both_ways && !each { 2 } else { 1 }),
            Traffic::Tfrc(tfrc) => Some(tfrc.count.unwrap_or(1)),
            Traffic::Transfer { .. }
            | Traffic::Flows { .. }
            | Traffic::Ping { .. }
            | Traffic::Dns(_)
            | Traffic::Raw(_)
            | Traffic::Quic(_)
            | Traffic::Replay(_) => None,
        }
    }

    /// How it goes on by itself.
    pub fn pace(&self) -> Pace<'_> {
        match self {
            Traffic::ClosedLoop { think, .. }
            | Traffic::RequestResponse {
                think,
                exchanges: None,
                ..
            } => Pace::Pause(think),
            Traffic::Web(web) => Pace::Pause(&web.think),
            Traffic::QuicWeb(web) => Pace::Pause(&web.think),
            other if other.is_elastic() => Pace::Ceaseless,
            _ => Pace::Prescribed,
        }
    }

    /// The transfers that it lists, in order of start.
    pub fn listed(&self) -> &[FlowLine] {
        match self {
            Traffic::Flows { list } => list,
            _ => &[],
        }
    }

    /// Makes `factor` times as much of it: what comes after pauses comes sooner, what has a rate has a higher one. An attack is no
    /// load, a call has the rate of its encoder, and what always has data cannot have more.
    pub fn scale_load(&mut self, factor: f64) {
        let sooner = |gap: &mut Distribution| *gap = gap.scaled(1.0 / factor);
        let faster = |rate: &mut Rate| *rate = Rate::from_bps((rate.bps() as f64 * factor) as u64);
        let earlier = |start: Duration| Duration::from_secs_f64(start.as_secs_f64() / factor);
        match self {
            Traffic::Transfer {
                interarrival: pause, ..
            }
            | Traffic::Incast { pause, .. }
            | Traffic::ClosedLoop { think: pause, .. }
            | Traffic::RequestResponse { think: pause, .. }
            | Traffic::OnOff { interval: pause, .. }
            | Traffic::Thin { interval: pause, .. } => sooner(pause),
            Traffic::Tfrc(tfrc) => {
                tfrc.interarrival.as_mut().into_iter().for_each(sooner);
                tfrc.rate.as_mut().into_iter().for_each(faster);
            }
            Traffic::Web(web) => sooner(&mut web.think),
            Traffic::Quic(quic) => sooner(&mut quic.interarrival),
            Traffic::QuicWeb(web) => sooner(&mut web.think),
            Traffic::Cbr { rate, .. } => faster(rate),
            Traffic::Dns(dns) => sooner(&mut dns.interarrival),
            Traffic::Flows { list } => {
                let line = |line: &FlowLine| FlowLine {
                    start: earlier(line.start),
                    ..*line
                };
                *list = list.iter().map(line).collect();
            }
            Traffic::Replay(replay) => {
                replay.change(&format!("load {factor}"), |one| {
                    // As a product, not a quotient.
                    one.start = Duration::from_secs_f64(one.start.as_secs_f64() * (1.0 / factor));
                });
            }
            Traffic::Bulk { .. }
            | Traffic::Ping { .. }
            | Traffic::Raw(_)
            | Traffic::Video(_)
            | Traffic::Streaming(_) => {}
        }
    }
}

impl Replay {
    /// Changes every recorded connection; `how` becomes part of the identity.
    pub fn change(&mut self, how: &str, change: impl Fn(&mut Recorded)) {
        let changed = self.connections.iter().map(|connection| {
            let mut connection = connection.clone();
            change(&mut connection);
            connection
        });
        self.connections = changed.collect();
        self.identity = format!("{} {how}", self.identity).into();
    }
}

/// Video players: each fetches a stream of one bit rate segment by segment, over a persistent connection.
#[derive(Clone, Debug, Serialize)]
pub struct Streaming {
    /// Players.
    pub count: u32,
    /// Bit rate of the stream.
    pub bitrate: Rate,
    /// Playing time of a segment.
    pub segment: Duration,
    /// Playing time that the buffer holds.
    pub buffer: Duration,
    /// Playing time that must be there before the first picture, and before playing goes on after a stall.
    pub start: Duration,
    /// Bytes of each request, towards the data sender.
    pub request: Bytes,
}

/// Video calls: streams of frames.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
pub struct Replay {
    /// In order of start. There may be millions; in the identity of a run `identity` stands for them.
    #[serde(skip)]
    pub connections: Arc<[Recorded]>,
    /// Each starts up to so much later, at random.
    pub start_jitter: Duration,
    /// Identifies the connections: the recording and the settings that they were made from.
    pub identity: Arc<str>,
}

/// A recorded connection. The second end of its pair opens it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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

/// Pages: a document on one connection, then its objects over several, one at a time on each, or all of them as streams of the
/// first.
#[derive(Clone, Debug, Serialize)]
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
    /// Connections of a page, at most; with `multiplex` one.
    pub connections: u32,
    /// Everything goes over one connection, objects all at once (HTTP/2).
    #[serde(skip_serializing_if = "std::ops::Not::not")] // names of stored runs stay
    pub multiplex: bool,
    /// Time between the end of a page and the start of the next (s).
    pub think: Distribution,
    /// Time the server needs for each answer (s). Part of the identity only where there is any.
    #[serde(skip_serializing_if = "takes_no_time")]
    pub server_time: Distribution,
}

/// Whether servers answer at once.
pub(super) fn takes_no_time(server_time: &Distribution) -> bool {
    *server_time == Distribution::Constant(0.0)
}

/// One listed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
