//! Keys of networks and links.

use super::Default::{Described, Required, Value};
use super::{Key, Kind, KindKeys, KindTable, TIME, TIMES, key};
use crate::scenario::place::Medium;

const PAIRS: Key = key(
    "pairs",
    Kind::Integer(1, 100_000),
    Value("1"),
    "Hosts on each side: `left-0`.. send by default, `right-0`.. receive.",
);
const ACCESS: Key = key(
    "access",
    Kind::Table(LINK),
    Value("{}"),
    "Each sending host's link to its router, `access-0`..; default 1 Gbit/s, 1 ms, 1000 packets.",
);
const EGRESS: Key = key(
    "egress",
    Kind::Table(LINK),
    Described("the values of `access`"),
    "Each receiving host's link from its router, `egress-0`...",
);
const HOPS_DOC: &str = "Links between routers, `hop-0`..";

/// The link, or each link, that matters.
const fn bottleneck(doc: &'static str) -> Key {
    key("bottleneck", Kind::Table(LINK), Required, doc)
}

/// `[network]`.
pub(crate) static NETWORK: KindTable = KindTable {
    tag: "kind",
    what: "network",
    common: &[],
    kinds: &[
        KindKeys {
            name: "dumbbell",
            doc: "Hosts on both sides of one link, `bottleneck`.",
            keys: &[
                PAIRS,
                ACCESS,
                bottleneck("The link all flows share; `rate` and `delay` have no default."),
                EGRESS,
            ],
        },
        KindKeys {
            name: "chain",
            doc: "Hosts on both sides of several links in a row.",
            keys: &[
                PAIRS,
                key("hops", Kind::Integer(1, 1000), Value("2"), HOPS_DOC),
                ACCESS,
                bottleneck(
                    "Each link between routers; `rate` and `delay` have no default. `link` entries change single ones.",
                ),
                EGRESS,
            ],
        },
        KindKeys {
            name: "parking-lot",
            doc: "A chain with cross traffic: at each hop hosts `enter-<hop>-<n>` join and hosts `leave-<hop>-<n>` leave.",
            keys: &[
                PAIRS,
                key("hops", Kind::Integer(1, 1000), Value("3"), HOPS_DOC),
                key(
                    "cross",
                    Kind::Integer(1, 1000),
                    Value("1"),
                    "Crossing pairs of hosts per hop; select them with `from = \"enter\"` and `to = \"leave\"`, or `enter-0` for those of one hop.",
                ),
                ACCESS,
                bottleneck("Each link between routers; `rate` and `delay` have no default."),
                EGRESS,
            ],
        },
        KindKeys {
            name: "access-tree",
            doc: "Hosts behind DSLAMs, DSLAMs behind edge routers, edge routers at a ring of core routers: `host-<edge>-<dslam>-<n>`, all in the group `hosts`, those of one edge router in `site-<edge>`. Packets take the path with the fewest links.",
            keys: &[
                key(
                    "cores",
                    Kind::Integer(1, 1000),
                    Value("4"),
                    "Routers of the ring, `core-0`..; two of them share one link.",
                ),
                key(
                    "chords",
                    Kind::Integer(0, 500),
                    Value("1"),
                    "Links across the ring: the first from `core-0` to the router opposite, the next from `core-1`. At most half of `cores`, none with fewer than four.",
                ),
                key(
                    "edges",
                    Kind::Integer(1, 1000),
                    Value("2"),
                    "Edge routers at each core router, `edge-0`..",
                ),
                key(
                    "dslams",
                    Kind::Integer(1, 1000),
                    Value("2"),
                    "DSLAMs at each edge router, `dslam-<edge>-0`..",
                ),
                key(
                    "hosts",
                    Kind::Integer(1, 1000),
                    Value("3"),
                    "Hosts at each DSLAM.",
                ),
                bottleneck(
                    "Every link; `rate` and `delay` have no default. The tables below are laid over it.",
                ),
                key(
                    "core",
                    Kind::Table(LINK),
                    Value("{}"),
                    "What differs on links between core routers, `core-<a>-<b>`.",
                ),
                key(
                    "edge",
                    Kind::Table(LINK),
                    Value("{}"),
                    "What differs on links from edge routers to their core routers, `uplink-<edge>`.",
                ),
                key(
                    "dslam",
                    Kind::Table(LINK),
                    Value("{}"),
                    "What differs on links from DSLAMs to their edge routers, `line-<edge>-<dslam>`.",
                ),
                key(
                    "access",
                    Kind::Table(LINK),
                    Value("{}"),
                    "What differs on links from hosts to their DSLAMs, `access-<edge>-<dslam>-<n>`.",
                ),
            ],
        },
        KindKeys {
            name: "graph",
            doc: "Nodes and links as listed; packets take the path with the fewest links, among equals that with the least delay.",
            keys: &[
                key(
                    "hosts",
                    Kind::List(&Kind::Name),
                    Required,
                    "Names of the nodes that send and receive.",
                ),
                key(
                    "routers",
                    Kind::List(&Kind::Name),
                    Value("[]"),
                    "Names of the nodes that forward.",
                ),
                key(
                    "groups",
                    Kind::Map(&Kind::List(&Kind::Line)),
                    Value("{}"),
                    "Named lists of hosts for `from` and `to`.",
                ),
                key(
                    "bottleneck",
                    Kind::Table(LINK),
                    Value("{}"),
                    "Laid over the links that `run.bottleneck` names, or over every link between two routers: so a variant can change the queue there.",
                ),
            ],
        },
    ],
};

const LABEL: Key = key(
    "label",
    Kind::Line,
    Described("none"),
    "What people call it, for answers and notes: \"the cable line\".",
);
const MEDIUM: Key = key(
    "medium",
    Kind::Choice(&Medium::NAMES),
    Described("unknown"),
    "What kind of line it is: which device holds its queue, and so how a queue is turned on there. A run depends on it in one thing: what waits in a \
     host's own interface (`host`, and `access` and `egress` with `ethernet` or nothing) holds its TCP back (`tcp.small_queues`).",
);

const RATE_IS_NET: Key = key(
    "rate_is_net",
    Kind::Flag,
    Value("false"),
    "For `medium = \"adsl\"` and `\"vdsl\"`: `rate` is what of the line's own rate carries packets and `framing`, 48/53 (ADSL: cells of ATM) or 64/65 (VDSL: PTM) of it. \
     No run depends on it; commands for a shaper count from the line's own rate.",
);

pub(crate) static REVERSE: &[Key] = &[
    key(
        "rate",
        Kind::Either(RATE_FORMS),
        Described("the forward value"),
        "Speed of the way back.",
    ),
    key(
        "delay",
        TIME,
        Described("the forward value"),
        "Propagation delay of the way back.",
    ),
    key(
        "queue",
        Kind::Queue,
        Described("the forward value"),
        "Queue of the way back.",
    ),
    key(
        "loss",
        Kind::Either(LOSS_FORMS),
        Described("none"),
        "Loss on the way back.",
    ),
    key("jitter", TIMES, Described("none"), "Extra delay on the way back."),
    key(
        "bit_errors",
        Kind::Number(0.0, 0.1),
        Value("0"),
        "Bit error rate of the way back.",
    ),
    key(
        "arq",
        Kind::Table(ARQ),
        Described("none"),
        "Link-layer retransmission on the way back.",
    ),
    key(
        "fec",
        Kind::Table(FEC),
        Described("none"),
        "A correcting code on the way back.",
    ),
    key(
        "label",
        Kind::Line,
        Described("the forward value"),
        "What people call the way back: \"the uplink\".",
    ),
    key(
        "medium",
        MEDIUM.kind,
        Described("the forward value"),
        "What kind of line the way back is.",
    ),
    key(
        "rate_is_net",
        RATE_IS_NET.kind,
        Described("the forward value"),
        "Whether `rate` of the way back is without what its line takes for itself.",
    ),
];

static RATE_FORMS: &[Kind] = &[Kind::Rate, Kind::Table(TRACE)];
static LOSS_FORMS: &[Kind] = &[Kind::Probability, Kind::Tagged(&LOSS)];

pub(crate) static TRACE: &[Key] = &[key(
    "trace",
    Kind::Text,
    Required,
    "A mahimahi file: one line per delivery opportunity of 1504 bytes, in milliseconds; it repeats.",
)];

/// A link.
pub(crate) static LINK: &[Key] = &[
    key(
        "rate",
        Kind::Either(RATE_FORMS),
        Described("1 Gbit/s where a default is allowed"),
        "Speed: constant, or a trace file.",
    ),
    key(
        "delay",
        TIME,
        Described("1 ms where a default is allowed"),
        "Propagation delay, one way.",
    ),
    key(
        "queue",
        Kind::Queue,
        Value("{ kind = \"drop-tail\", limit = \"1000 packets\" }"),
        "What waits in front of it. Limits count layer-3 bytes or packets waiting, not the one being sent; a limit in time is what full packets of this way send in it.",
    ),
    key(
        "loss",
        Kind::Either(LOSS_FORMS),
        Described("none"),
        "Loss on the wire, forward. A number is the probability of each packet.",
    ),
    key(
        "jitter",
        TIMES,
        Described("none"),
        "Extra delay drawn for each packet, forward; the order is kept.",
    ),
    key(
        "reorder",
        Kind::Table(REORDER),
        Described("none"),
        "Packets that are held back while others overtake, forward.",
    ),
    key(
        "duplicate",
        Kind::Probability,
        Value("0"),
        "Probability that a packet arrives twice, forward.",
    ),
    key(
        "bit_errors",
        Kind::Number(0.0, 0.1),
        Value("0"),
        "Bit error rate, forward: a packet of n bytes is lost with probability 1 - (1 - rate)^(8 n).",
    ),
    key(
        "arq",
        Kind::Table(ARQ),
        Described("none"),
        "Link-layer retransmission of packets that bit errors damaged, forward: stop and wait, in order.",
    ),
    key(
        "fec",
        Kind::Table(FEC),
        Described("none"),
        "A correcting code, forward: it takes a share of the rate and leaves fewer bit errors.",
    ),
    key(
        "mtu",
        Kind::Bytes(68, 1_000_000),
        Value("1500"),
        "Largest packet at layer 3, bytes. Endpoints know the smallest of their path.",
    ),
    key(
        "processing",
        TIME,
        Value("\"0 s\""),
        "Time per packet that the sending end needs before it sends, at both ends of the link: a look-up that the pipeline does not hide. What a `[[node]]` needs for all that leaves it is said there.",
    ),
    key(
        "processing_overlap",
        Kind::Flag,
        Value("false"),
        "A packet is processed while the one before is sent: it occupies the router for the longer of both times, and is on its way after both.",
    ),
    key(
        "framing",
        Kind::Bytes(0, 255),
        Described("`0`; `4 B` in a direction whose rate is a trace"),
        "Bytes per packet beyond layer 3 that take time on the wire. In mahimahi they are those of its TUN device: a packet of 1500 bytes takes a whole opportunity of 1504.",
    ),
    key(
        "reverse",
        Kind::Table(REVERSE),
        Value("{}"),
        "What differs on the way back.",
    ),
    LABEL,
    MEDIUM,
    RATE_IS_NET,
];

/// `[[link]]`.
pub(crate) static LINK_ENTRY: &[Key] = &{
    let mut keys = [const { key("name", Kind::Name, Required, "Its name.") }; LINK.len() + 3];
    let mut at = 0;
    while at < LINK.len() {
        keys[at + 3] = key(LINK[at].name, LINK[at].kind, LINK[at].default, LINK[at].doc);
        at += 1;
    }
    keys[1] = key(
        "from",
        Kind::Text,
        Described("required in a graph, not allowed elsewhere"),
        "Node at its beginning.",
    );
    keys[2] = key(
        "to",
        Kind::Text,
        Described("required in a graph, not allowed elsewhere"),
        "Node at its end.",
    );
    keys
};

/// `[[node]]`.
pub(crate) static NODE: &[Key] = &[
    key(
        "name",
        Kind::Name,
        Required,
        "A host or a router; or a group of hosts, each of which it then is said of, unless an entry of its own says otherwise.",
    ),
    key(
        "processing",
        TIME,
        Described("that of each link"),
        "Time per packet that it needs before it sends, on each of its links: as if each had this `processing` at this end. A link that says so itself keeps its own.",
    ),
    key(
        "processing_overlap",
        Kind::Flag,
        Described("that of each link"),
        "Whether a packet is processed while the one before is sent, on each of its links. A link that says so itself keeps its own.",
    ),
];

pub(crate) const REORDER: &[Key] = &[
    key("probability", Kind::Probability, Required, "Of each packet."),
    key("delay", TIME, Required, "How long it is held back."),
];

pub(crate) static ARQ: &[Key] = &[
    key(
        "retransmissions",
        Kind::Integer(1, 1000),
        Value("7"),
        "Attempts after the first (802.11: 7 for short frames).",
    ),
    key(
        "delay",
        TIME,
        Value("\"100 us\""),
        "From the end of an attempt to the beginning of the next.",
    ),
];

pub(crate) static FEC: &[Key] = &[
    key(
        "overhead",
        Kind::Number(0.0, 100.0),
        Required,
        "Check bits per bit: the rate left is 1 / (1 + overhead).",
    ),
    key(
        "bit_errors",
        Kind::Number(0.0, 0.1),
        Value("0"),
        "Bit error rate that is left.",
    ),
];

const DATA_ONLY: Key = key(
    "data_only",
    Kind::Flag,
    Value("false"),
    "Spare packets without payload.",
);

/// Loss models.
pub(crate) static LOSS: KindTable = KindTable {
    tag: "kind",
    what: "loss model",
    common: &[],
    kinds: &[
        KindKeys {
            name: "random",
            doc: "Each packet independently.",
            keys: &[
                key("probability", Kind::Probability, Required, "Of each packet."),
                DATA_ONLY,
            ],
        },
        KindKeys {
            name: "burst",
            doc: "Gilbert and Elliott: a good and a bad state, one step per packet.",
            keys: &[
                key("enter", Kind::Probability, Required, "From good to bad."),
                key(
                    "leave",
                    Kind::Probability,
                    Required,
                    "From bad to good; its inverse is the mean length of a bad period in packets.",
                ),
                key("good", Kind::Probability, Value("0"), "Loss in the good state."),
                key("bad", Kind::Probability, Value("1"), "Loss in the bad state."),
                DATA_ONLY,
            ],
        },
        KindKeys {
            name: "script",
            doc: "Chosen packets of every flow.",
            keys: &[
                key(
                    "packets",
                    Kind::List(&Kind::Integer(0, u32::MAX as u64)),
                    Required,
                    "Indices, from 0, among the packets of each flow on this link.",
                ),
                DATA_ONLY,
            ],
        },
        KindKeys {
            name: "tail",
            doc: "The end of every transfer.",
            keys: &[key(
                "segments",
                Kind::Integer(1, 100_000),
                Required,
                "The last so many data segments are lost once.",
            )],
        },
    ],
};
