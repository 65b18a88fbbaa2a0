//! Keys of traffic: those of every group, and those of the kinds that use TCP.

mod datagrams;
mod quic;
mod tls;

use super::Default::{Described, Required, Value};
use super::{
    ARRIVALS, COUNT, HOSTS, Key, Kind, KindKeys, KindTable, POSITIVE_TIME, SIZES, TCP, TIME, TIMES, key,
};
use crate::workload::APPLICATION_NAMES;
use fleetfoot_sim::spec::TrafficKind;

/// Keys of every traffic group.
pub(crate) static TRAFFIC_COMMON: &[Key] = &[
    key(
        "name",
        Kind::Name,
        Described("its kind"),
        "Its name in results and paths.",
    ),
    key(
        "from",
        HOSTS,
        Described("`left`, or all hosts of `network.groups.from`"),
        "Data senders for `down`: a group (`left`), a host (`left-3`), an index, or a list.",
    ),
    key(
        "to",
        HOSTS,
        Described("`right`"),
        "Data receivers for `down`, likewise. A single host pairs with all, else `pairing` says who pairs with whom.",
    ),
    key(
        "draws",
        Kind::Line,
        Described("its own `name`"),
        "The group whose random numbers it draws: with that group's name, both have the same sizes, times between arrivals and pauses, each in its turn, as two kinds that are to carry the same pages. The numbers of connections and packets stay its own.",
    ),
    key(
        "pairing",
        Kind::Choice(&["in-order", "all"]),
        Value("\"in-order\""),
        "The first of `from` with the first of `to` and so on; or every sender with every receiver but itself, which with `spread = \"random\"` is a random traffic matrix.",
    ),
    key(
        "direction",
        Kind::Choice(&["down", "up", "both"]),
        Described("`down`; `both` for video-call"),
        "Data flows from `from` to `to` (down), the other way (up), or half of the flows each way; a video call goes both ways at once.",
    ),
    key(
        "spread",
        Kind::Choice(&["round-robin", "random", "each"]),
        Value("\"round-robin\""),
        "How flows are dealt to the pairs: in turn from the first pair on, as every group begins there; drawn per flow; or the whole group on every pair. Groups of few members then share the first hosts: `from` and `to` put them elsewhere.",
    ),
    key("start", TIME, Value("\"0 s\""), "When it begins."),
    key(
        "start_spacing",
        TIME,
        Described("`0 s`; `40 us` for incast with several connections on a host"),
        "Time between the starts of its `count` members; of those of a round for incast. A program takes some time for each connection that it opens; what starts in the same nanosecond shows effects that no network has (docs/trust.md, Phase effects). Not where flows come by arrivals, at intervals or as recorded.",
    ),
    key(
        "stop",
        TIME,
        Described("`run.duration`"),
        "When it stops starting anything; bulk connections close then. Without it nothing starts after `run.duration`, and bulk connections send on in the drain.",
    ),
    key(
        "tcp",
        Kind::Table(TCP),
        Value("{}"),
        "Switches of its own, over those of `[tcp]`. A group that does not use TCP has only `host_coalesce`, one of QUIC none.",
    ),
    key(
        "data_unit",
        Kind::Bytes(88, 1_000_000),
        Described("the smallest `mtu` of its path"),
        "Layer-3 size of its full packets, both ways: groups of small and of large packets can share a line. For TCP only.",
    ),
    key(
        "relay",
        Kind::Either(&[Kind::Text, Kind::Table(RELAY)]),
        Described("none"),
        "Split TCP: a router on the path, by name, that ends each connection and carries its bytes on over a second one (RFC 3135); or a table; or `none`. Counters are those of both connections, the smallest RTT is that of the first. Not for datagrams and replay, nor with `super_packets`, `host_coalesce` or `fast_open`.",
    ),
    key(
        "latency_sensitive",
        Kind::Flag,
        Described(
            "true for transfer, incast, closed-loop, request-response, thin, web, video-call, dns, quic, quic-web and replay, else false",
        ),
        "Whether somebody waits for it, so that a shorter time is what counts; else goodput is. What is compared is the completion time (ping: round-trip time, video-call: delay of a frame); of thin streams and of cbr the delay of each write or datagram. For a segment of streaming nobody waits while another one is there to play.",
    ),
];

/// `relay`.
pub(crate) static RELAY: &[Key] = &[
    key("node", Kind::Text, Required, "The router."),
    key(
        "buffer",
        Kind::Bytes(1500, 1 << 40),
        Value("\"1 MB\""),
        "Most that it holds of a connection and direction in its receive buffer, and as much again in its send buffer: when both are full, the window of the sender closes. A group's own buffers count if they are smaller.",
    ),
];

const MEMBERS: Key = key("count", COUNT, Value("1"), "Connections.");

/// Users who load pages.
const USERS: Key = key("count", COUNT, Value("1"), "Users.");

/// The document of a page.
const DOCUMENT: Key = key("document", SIZES, Value("\"20 kB\""), "Bytes of the document.");

/// Objects of a page.
const OBJECT: Key = key(
    "object",
    SIZES,
    Value("{ dist = \"lognormal\", median = \"8 kB\", sigma = 1.51 }"),
    "Bytes of each object.",
);

/// Time between pages.
const THINK: Key = key(
    "think",
    TIMES,
    Required,
    "Time between the end of a page and the start of the next; before the first too.",
);

/// What a server needs for an answer.
const SERVER_TIME: Key = key(
    "server_time",
    TIMES,
    Value("\"0 s\""),
    "Time from a request's arrival to its answer, part of the completion time. The server's host acknowledges the request meanwhile, with its delayed ACK.",
);

const DEMAND: Key = key(
    "demand",
    Kind::Choice(&["free", "as baseline"]),
    Value("\"free\""),
    "How much users ask for. Free: they go on as long as there is time, so who is served sooner asks for more. As baseline: in a variant each user makes at most the requests that the same user made in the file as it stands with the same seed, with the same sizes and think times, so that variants are compared at equal demand.",
);

const DEMAND_OF_ROUNDS: Key = key(
    "demand",
    Kind::Choice(&["free", "as baseline"]),
    Value("\"free\""),
    "How many rounds there are. Free: up to `rounds` as long as there is time, so where rounds are sooner over there are more of them. As baseline: in a variant at most as many as there were in the file as it stands with the same seed, with the same sizes and pauses, so that variants are compared at equal demand.",
);

/// Traffic kinds.
pub(crate) static TRAFFIC: KindTable = KindTable {
    tag: "kind",
    what: "traffic",
    common: TRAFFIC_COMMON,
    kinds: &[
        KindKeys {
            name: TrafficKind::Bulk.name(),
            doc: "Connections that always have data.",
            keys: &[MEMBERS],
        },
        KindKeys {
            name: TrafficKind::Transfer.name(),
            doc: "One connection per transfer, opened by the data sender, who sends at once: nobody asks for the data. Transfers arrive whether or not earlier ones are done. A call that connects and asks, which takes half a round trip more, is `request-response` with `exchanges = 1`.",
            keys: &[
                key("size", SIZES, Required, "Payload bytes of each."),
                key("arrivals", Kind::Tagged(&ARRIVALS), Required, "When they start."),
                key("count", COUNT, Described("no limit"), "Most transfers."),
            ],
        },
        KindKeys {
            name: TrafficKind::Incast.name(),
            doc: "In each round all hosts start at the same moment, each with its transfers 40 us apart, or all transfers `start_spacing` apart; the next round begins when all are done.",
            keys: &[
                key("size", SIZES, Required, "Payload bytes per connection."),
                key(
                    "count",
                    COUNT,
                    Described("the number of pairs"),
                    "Connections per round.",
                ),
                key("rounds", COUNT, Value("1"), "Rounds."),
                key("pause", TIMES, Value("\"0 s\""), "Time between rounds."),
                DEMAND_OF_ROUNDS,
            ],
        },
        KindKeys {
            name: TrafficKind::ClosedLoop.name(),
            doc: "Users who transfer on a new connection, which the data sender opens as for `transfer`, think, and do it again.",
            keys: &[
                key("count", COUNT, Value("1"), "Users."),
                key("size", SIZES, Required, "Payload bytes per transfer."),
                key(
                    "think",
                    TIMES,
                    Required,
                    "Time between the end of one and the start of the next.",
                ),
                DEMAND,
            ],
        },
        KindKeys {
            name: TrafficKind::RequestResponse.name(),
            doc: "Persistent connections that ask, are answered and think.",
            keys: &[
                MEMBERS,
                key(
                    "request",
                    SIZES,
                    Value("\"200 B\""),
                    "Bytes asked with, towards the data sender.",
                ),
                key("response", SIZES, Required, "Bytes of the answer."),
                key(
                    "think",
                    TIMES,
                    Required,
                    "Time between an answer and the next question.",
                ),
                SERVER_TIME,
                key(
                    "exchanges",
                    COUNT,
                    Described("until `stop`"),
                    "Exchanges per connection.",
                ),
                tls::TLS,
                tls::HANDSHAKE,
                tls::CERTIFICATE_CHAIN,
                DEMAND,
            ],
        },
        KindKeys {
            name: TrafficKind::OnOff.name(),
            doc: "Persistent connections that write bursts at intervals.",
            keys: &[
                MEMBERS,
                key("burst", SIZES, Required, "Bytes written at once."),
                key(
                    "interval",
                    TIMES,
                    Required,
                    "Time between the starts of two bursts.",
                ),
            ],
        },
        KindKeys {
            name: TrafficKind::Thin.name(),
            doc: "Persistent connections that write little and often, as interactive applications do. A flow is a connection; what counts is each write's delivery latency and each segment's ACK latency.",
            keys: &[
                MEMBERS,
                key(
                    "model",
                    Kind::Choice(APPLICATION_NAMES),
                    Described("none"),
                    "An application whose sizes and intervals were measured; instead of `payload` and `interval`, or for what of them is not written. Known of them are average, median and extremes. Rare long pauses are much of the average interval (for `ssh` half, one interval in 233), so a short run has more writes: in 20 s `ssh` 62 % more, the others up to 14 %; in five minutes 4 % and 2 %.",
                ),
                key("payload", SIZES, Described("the model's"), "Bytes per write."),
                key(
                    "interval",
                    TIMES,
                    Described("the model's"),
                    "Time between writes.",
                ),
            ],
        },
        KindKeys {
            name: TrafficKind::Web.name(),
            doc: "Users who load pages: a document on one connection, then its objects over several, one at a time on each (HTTP/1.1), or all at once as streams of the first (HTTP/2). A flow is a page, its completion time the page load time.",
            keys: &[
                USERS,
                DOCUMENT,
                key(
                    "objects",
                    Kind::Integer(0, 10_000),
                    Value("40"),
                    "Objects of a page.",
                ),
                OBJECT,
                key(
                    "request",
                    Kind::Bytes(1, 1_000_000),
                    Value("\"300 B\""),
                    "Bytes of each request, towards the data sender.",
                ),
                key(
                    "connections",
                    COUNT,
                    Value("6"),
                    "Connections of a page, at most; with `multiplex` there is one.",
                ),
                key(
                    "multiplex",
                    Kind::Flag,
                    Value("false"),
                    "HTTP/2: all objects are asked for at once over the connection of the document, 100 at a time, and the server sends of them in turns of a frame (16,384 bytes). They arrive in the order of the connection, so a lost packet keeps those behind it waiting. Delivery latency is then that of each object, from its request to its last byte.",
                ),
                tls::TLS,
                tls::HANDSHAKE,
                tls::CERTIFICATE_CHAIN,
                THINK,
                SERVER_TIME,
                DEMAND,
            ],
        },
        KindKeys {
            name: TrafficKind::Streaming.name(),
            doc: "Video players that fetch a stream of one bit rate segment by segment, over a persistent connection, into a buffer: at once until it is full, then whenever it has room. A flow is a segment. Results hold the start-up delay, stalls, the time without anything to fetch, and what a pause leaves of the sender's window. Nobody waits for a segment while the buffer holds another, so unless `latency_sensitive` is written, players count by what they carry: they are harmed if they stall, not if segments take longer.",
            keys: &[
                key("count", COUNT, Value("1"), "Players."),
                key("bitrate", Kind::Rate, Required, "Bit rate of the stream."),
                key(
                    "segment",
                    POSITIVE_TIME,
                    Value("\"4 s\""),
                    "Playing time of a segment.",
                ),
                key(
                    "buffer",
                    POSITIVE_TIME,
                    Value("\"30 s\""),
                    "Playing time that the buffer holds.",
                ),
                key(
                    "buffer_to_start",
                    POSITIVE_TIME,
                    Value("\"4 s\""),
                    "Playing time that must be there before the first picture, and before playing goes on after a stall.",
                ),
                key(
                    "request",
                    Kind::Bytes(1, 1_000_000),
                    Value("\"300 B\""),
                    "Bytes of each request, towards the data sender.",
                ),
            ],
        },
        datagrams::CBR,
        datagrams::TFRC,
        KindKeys {
            name: TrafficKind::Flows.name(),
            doc: "Transfers listed in a file, with who sends to whom: `from`, `to`, `pairing`, `direction` and `spread` are not for it.",
            keys: &[key(
                "file",
                Kind::Text,
                Required,
                "CSV with the header `start,source,destination,bytes` (seconds, host names, bytes), or Parquet with these columns where that is built in.",
            )],
        },
        KindKeys {
            name: TrafficKind::Replay.name(),
            doc: "Connections recorded in a file of connection vectors, which `fleetfoot import` makes of a capture: they start at the recorded times and have the recorded round-trip times, and their ends say as much as they did, and wait as long before it. Each opens from `to` (`right`; with `direction = \"up\"` from `from`), at a host of its own for every host that opened connections, as far as there are pairs. A flow is an exchange, without the recorded waiting; where both ends speak independently, a unit of either. `more.connection_s` is the time of whole connections.",
            keys: &[
                key(
                    "file",
                    Kind::Text,
                    Required,
                    "Connection vectors as tmix writes them (`SEQ`, `CONC`), the original or the alternate format.",
                ),
                key(
                    "time_scale",
                    Kind::Number(1e-6, 1e6),
                    Value("1"),
                    "The recorded start times times this: 0.5 doubles the load. What ends wait stays.",
                ),
                key(
                    "start_jitter",
                    TIME,
                    Value("\"0 s\""),
                    "Each connection starts later by a random time of at most this. Without it a replay may draw nothing: every seed gives the same, and phase effects pass for answers (docs/trust.md).",
                ),
                key(
                    "rtt_scale",
                    Kind::Number(0.0, 1e6),
                    Value("1"),
                    "The recorded round-trip times times this. What they are more than the links of the path is added on the way, half each way; they are never less than that. Where none is recorded it is the median of the others.",
                ),
                key(
                    "count",
                    COUNT,
                    Described("all"),
                    "Most connections, in the order of the file.",
                ),
                key(
                    "windows",
                    Kind::Flag,
                    Value("false"),
                    "Each end offers at most the recorded window (`w`) instead of what its profile gives it, from the start and without growth. Of a capture that is the largest window seen, which mostly was not the limit.",
                ),
                key(
                    "losses",
                    Kind::Flag,
                    Value("false"),
                    "Data segments are lost at random with the recorded rates (`l`), beside what the queue drops. Where the recorded losses were those of the bottleneck, its queue makes them anew: both would count them twice.",
                ),
            ],
        },
        datagrams::PING,
        datagrams::VIDEO,
        datagrams::DNS,
        datagrams::RAW,
        quic::QUIC,
        quic::QUIC_WEB,
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_keys_and_the_documents_name_those_for_which_somebody_waits() {
        for kind in TrafficKind::ALL {
            let keys = TRAFFIC.kinds.iter().filter(|one| one.name == kind.name());
            assert_eq!(keys.count(), 1, "{kind:?}");
        }
        let waits = TrafficKind::ALL
            .iter()
            .filter(|kind| kind.facts().latency_sensitive);
        let mut waits: Vec<&str> = waits.map(|kind| kind.name()).collect();
        let key = TRAFFIC_COMMON.iter().find(|key| key.name == "latency_sensitive");
        let Some(Described(text)) = key.map(|key| key.default) else {
            panic!("the default depends on the kind")
        };
        let list = text
            .trim_start_matches("true for ")
            .trim_end_matches(", else false");
        let mut named: Vec<&str> = list.split(", ").flat_map(|part| part.split(" and ")).collect();
        named.sort_unstable();
        waits.sort_unstable();
        assert_eq!(named, waits);
    }
}
