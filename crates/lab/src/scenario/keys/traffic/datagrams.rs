//! Keys of the traffic kinds that do not use TCP.

use crate::scenario::keys::Default::{Described, Required, Value};
use crate::scenario::keys::{ARRIVALS, COUNT, Kind, KindKeys, POSITIVE_TIME, SIZES, TIME, TIMES, key};
use fleetfoot_core::superpacket::Layout;
use fleetfoot_sim::spec::TrafficKind;

pub(super) const CBR: KindKeys = KindKeys {
    name: TrafficKind::Cbr.name(),
    doc: "Datagrams at a constant rate, without feedback.",
    keys: &[
        key("count", COUNT, Value("1"), "Streams."),
        key("rate", Kind::Rate, Required, "Layer-3 rate of each stream."),
        key(
            "packet",
            Kind::Bytes(29, 65_535),
            Value("\"1500 B\""),
            "Layer-3 bytes per packet.",
        ),
    ],
};

pub(super) const TFRC: KindKeys = KindKeys {
    name: TrafficKind::Tfrc.name(),
    doc: "Streams whose rate follows the TCP throughput equation (TFRC, RFC 5348). Nothing is sent twice: a stream of some size is complete with the last packet that arrives.",
    keys: &[
        key(
            "count",
            COUNT,
            Described("1, with `arrivals` no limit"),
            "Streams; with `arrivals` their greatest number.",
        ),
        key("size", SIZES, Described("no end"), "Payload bytes of each."),
        key(
            "arrivals",
            Kind::Tagged(&ARRIVALS),
            Described("at `start`, then every `start_spacing`"),
            "When they start.",
        ),
        key(
            "rate",
            Kind::Rate,
            Described("no limit"),
            "Layer-3 rate at which the application of a stream has packets to send. Not with `arrivals`.",
        ),
        key(
            "packet",
            Kind::Bytes(41, 65_535),
            Value("\"1500 B\""),
            "Layer-3 bytes of full packets: 40 of headers, the rest is the equation's packet size.",
        ),
        key(
            "variant",
            Kind::Choice(fleetfoot_core::tfrc::Variant::NAMES),
            Value("\"standard\""),
            "`small-packets` (RFC 4828): the rate of a TCP with packets of 1460 bytes, at most 100 packets per second.",
        ),
        key(
            "history_discounting",
            Kind::Flag,
            Value("true"),
            "After a long time without loss, older loss intervals count less (RFC 5348 5.5).",
        ),
        key(
            "oscillation_prevention",
            Kind::Flag,
            Value("true"),
            "The rate follows short-term changes of the round-trip time (RFC 5348 4.5).",
        ),
        key(
            "initial_window",
            Kind::Integer(1, 1000),
            Described("as RFC 5348, 4.2: 4380 bytes, but 2 packets at least and 4 at most; 3 of 1500 bytes"),
            "Packets in the first round-trip time after the first report.",
        ),
        key(
            "granularity",
            TIME,
            Value("\"0 s\""),
            "Packets may leave up to half of this early (t_gran, RFC 5348 4.6).",
        ),
        key(
            "timeout_floor",
            TIME,
            Value("\"0 s\""),
            "Least t_RTO in the equation, which else is four round-trip times (RFC 5348 3.1).",
        ),
        key(
            "ecn",
            Kind::Flag,
            Value("false"),
            "Packets may be marked instead of dropped.",
        ),
    ],
};

pub(super) const PING: KindKeys = KindKeys {
    name: TrafficKind::Ping.name(),
    doc: "Echo requests; the completion time is the round-trip time.",
    keys: &[
        key("interval", TIMES, Value("\"1 s\""), "Time between requests."),
        key(
            "packet",
            Kind::Bytes(28, 65_535),
            Value("\"84 B\""),
            "Layer-3 bytes per packet (84: 56 bytes of payload, as ping sends).",
        ),
    ],
};

pub(super) const VIDEO: KindKeys = KindKeys {
    name: TrafficKind::Video.name(),
    doc: "Calls between two hosts, both ways at once: frames at a constant rate, each cut into UDP datagrams that leave together; nothing is sent again and the encoder does not adapt. A flow is a frame; its completion time is from handing over to the arrival of its last datagram. A frame that lost a datagram has no time: it counts among the late ones (`more.late_or_lost`).",
    keys: &[
        key("count", COUNT, Value("1"), "Calls."),
        key(
            "frame_rate",
            Kind::Frequency,
            Value("\"30 per second\""),
            "Frames of each stream. The first comes at a random moment of a frame's time.",
        ),
        key(
            "frame",
            SIZES,
            Value("{ dist = \"lognormal\", mean = \"10 kB\", sigma = 0.3 }"),
            "Payload bytes of a frame. The default makes 2.4 Mbit/s each way at 30 frames per second.",
        ),
        key(
            "key_frame_every",
            COUNT,
            Described("no key frames"),
            "Frames from one key frame, which is larger, to the next; the first frame is one.",
        ),
        key(
            "key_frame",
            SIZES,
            Value("\"40 kB\""),
            "Payload bytes of a key frame; with `key_frame_every`.",
        ),
        key(
            "packet",
            Kind::Bytes(29, 65_535),
            Value("\"1228 B\""),
            "Layer-3 bytes per datagram, at most (1228: 1200 bytes of payload, as browsers send).",
        ),
        key(
            "deadline",
            POSITIVE_TIME,
            Value("\"150 ms\""),
            "A frame that arrives later is late (ITU-T G.114: up to 150 ms one way a conversation is not disturbed; it speaks of mouth to ear, so a codec and a jitter buffer take a part).",
        ),
    ],
};

pub(super) const DNS: KindKeys = KindKeys {
    name: TrafficKind::Dns.name(),
    doc: "Look-ups of names: a UDP request and its answer, with a resolver's retries. A flow is a look-up; its completion time is from the first request to the first answer. One that is never answered counts with the time until it was given up. `from` answers, `to` asks.",
    keys: &[
        key(
            "arrivals",
            Kind::Tagged(&ARRIVALS),
            Value("{ dist = \"poisson\", rate = \"1 per second\" }"),
            "When look-ups begin.",
        ),
        key("request", SIZES, Value("\"45 B\""), "Payload bytes of a request."),
        key(
            "response",
            SIZES,
            Value("{ dist = \"lognormal\", mean = \"160 B\", sigma = 0.5 }"),
            "Payload bytes of an answer; at most 1232, what resolvers take in one datagram.",
        ),
        key(
            "server_time",
            TIMES,
            Value("\"0 s\""),
            "Time from a request's arrival to its answer.",
        ),
        key(
            "timeout",
            POSITIVE_TIME,
            Value("\"5 s\""),
            "An unanswered request is sent again after so long (resolv.conf: `timeout`).",
        ),
        key(
            "attempts",
            Kind::Integer(1, 100),
            Value("2"),
            "Requests of a look-up in all (resolv.conf: `attempts`).",
        ),
    ],
};

pub(super) const RAW: KindKeys = KindKeys {
    name: TrafficKind::Raw.name(),
    doc: "Trains of packets from a template, whose headers may lie: attacks on queues. Nobody answers them.",
    keys: &[
        key(
            "arrivals",
            Kind::Tagged(&ARRIVALS),
            Required,
            "When trains start.",
        ),
        key("count", COUNT, Described("no limit"), "At most so many trains."),
        key(
            "packet",
            Kind::Bytes(29, 65_535),
            Value("\"40 B\""),
            "Layer-3 bytes per packet.",
        ),
        key(
            "mark",
            Kind::Choice(&["regular", "first", "follower", "super-packet"]),
            Value("\"first\""),
            "What each packet of a train claims to be: ordinary, the first of one super-packet, a later one, or the first with its followers.",
        ),
        key(
            "length",
            Kind::Integer(2, 255),
            Value("10"),
            "Packets that they announce.",
        ),
        key(
            "members",
            COUNT,
            Described("`length` for super-packets, else 1"),
            "Packets that a train really has.",
        ),
        key(
            "interval",
            TIME,
            Value("\"0 s\""),
            "Time between the packets of a train.",
        ),
        key(
            "last",
            Kind::Flag,
            Value("false"),
            "The final packet of a train says that it is the last one.",
        ),
        key(
            "id",
            Kind::Either(&[Kind::Choice(&["random"]), Kind::Integer(0, 65_535)]),
            Value("\"random\""),
            "Identifier of the super-packet: drawn for each train, or always this one.",
        ),
        key(
            "layout",
            Kind::Choice(Layout::NAMES),
            Value("\"B\""),
            "Where marks stand, as in `super_packets`.",
        ),
        key(
            "codepoint",
            Kind::Integer(1, 63),
            Described("3"),
            "Layout B: the codepoint.",
        ),
        key(
            "source",
            Kind::Text,
            Value("\"own\""),
            "Source address: the host's own, `random` (drawn for each train from addresses nobody has), or a host's.",
        ),
        key(
            "addresses",
            Kind::Integer(1, 1 << 22),
            Value("65536"),
            "How many addresses a random source is drawn from.",
        ),
        key(
            "victim",
            Kind::Text,
            Described("none"),
            "A traffic group: each train has the addresses of one of its open connections.",
        ),
        key(
            "ports",
            Kind::Choice(&["new", "same", "random", "known", "colliding"]),
            Described("`known` with a victim, else `new`"),
            "Ports: others for each train in turn, the same for all, drawn, or those of the victim's connection. `colliding`: the attacker knows the hash key of the queue on the way that has a table of super-packets, and draws source ports and identifiers until the train's places are in two certain groups of four.",
        ),
    ],
};
