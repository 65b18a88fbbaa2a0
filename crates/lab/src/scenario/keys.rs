//! Every key of a scenario file: its type, range, default and meaning.
//!
//! The only list. The reader refuses what is not in it, the JSON schema and the reference page are made from it, and
//! defaults are read from it by the same code that reads files. Keys of queue disciplines and congestion controls come
//! from the parameter tables of their registries.

use fleetfoot_core::time::Duration;

/// One key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Default,
    /// One sentence.
    pub(crate) doc: &'static str,
}

/// What a key is when it is not written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Default {
    /// It must be written.
    Required,
    /// This TOML value.
    Value(&'static str),
    /// Decided elsewhere, in these words.
    Described(&'static str),
}

/// Type and permitted range of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Flag,
    /// A whole number in this range.
    Integer(u64, u64),
    /// A number in this range.
    Number(f64, f64),
    /// A number from 0 to 1, or per cent as text.
    Probability,
    /// A time span in this range.
    Duration(Duration, Duration),
    /// An amount in bytes in this range.
    Bytes(u64, u64),
    /// A speed above zero.
    Rate,
    /// How often per time, above zero.
    Frequency,
    /// Packets, bytes or unlimited.
    Limit,
    Choice(&'static [&'static str]),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table whose keys depend on one of them.
    Tagged(&'static Tagged),
    /// A table of free keys, each with a value of this type.
    Map(&'static Kind),
    /// A list of values of this type.
    List(&'static Kind),
    /// One value of this type, or a list of them.
    OneOrMore(&'static Kind),
    /// One of these forms.
    Either(&'static [Kind]),
    /// A registered queue discipline: `kind` and its parameters.
    Queue,
    /// A registered congestion control: its name, or `kind` and its parameters.
    CongestionControl,
    /// A constant quantity or a distribution of this dimension.
    Distribution(Dimension),
    /// A point of an empirical distribution: value and cumulative probability.
    Point(Dimension),
    /// A value of this dimension.
    Quantity(Dimension),
    /// Paths and values of a variant.
    Setting,
}

/// What a distribution is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    Bytes,
    Time,
}

/// A table whose keys depend on the value of `tag`.
#[derive(Debug)]
pub(crate) struct Tagged {
    pub(crate) tag: &'static str,
    /// What the tag says, for messages and documents.
    pub(crate) what: &'static str,
    /// Keys of every kind.
    pub(crate) common: &'static [Key],
    pub(crate) kinds: &'static [Variety],
}

/// One kind of a tagged table.
#[derive(Debug)]
pub(crate) struct Variety {
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [Key],
    pub(crate) doc: &'static str,
}

const fn key(name: &'static str, kind: Kind, default: Default, doc: &'static str) -> Key {
    Key {
        name,
        kind,
        default,
        doc,
    }
}

use self::Default::{Described, Required, Value};

/// A day: longer spans are a mistake in a scenario.
const DAY: Duration = Duration::from_secs(86_400);
const NANOSECOND: Duration = Duration::from_nanos(1);
const MILLISECOND: Duration = Duration::from_millis(1);
const TIME: Kind = Kind::Duration(Duration::ZERO, DAY);
const POSITIVE_TIME: Kind = Kind::Duration(NANOSECOND, DAY);
const COUNT: Kind = Kind::Integer(1, 1_000_000);
const SIZES: Kind = Kind::Distribution(Dimension::Bytes);
const TIMES: Kind = Kind::Distribution(Dimension::Time);
/// Hosts: a group's or a host's name, or the index of a pair.
pub(crate) const HOSTS: Kind = Kind::OneOrMore(&Kind::Either(&[Kind::Text, Kind::Integer(0, 1_000_000)]));

/// The file.
pub(crate) static FILE: &[Key] = &[
    key(
        "title",
        Kind::Text,
        Described("the file's name"),
        "What the scenario is called in every output.",
    ),
    key(
        "description",
        Kind::Text,
        Described("none"),
        "The question it asks, in a sentence or two.",
    ),
    key(
        "extends",
        Kind::Text,
        Described("none"),
        "Another scenario file, relative to this one, that this one is laid upon: tables merge, named entries merge by name, other lists replace.",
    ),
    key(
        "network",
        Kind::Tagged(&NETWORK),
        Required,
        "Hosts, routers and links.",
    ),
    key(
        "link",
        Kind::List(&Kind::Table(LINK_ENTRY)),
        Value("[]"),
        "Links by name: all of a graph's, or what single links of another network have of their own.",
    ),
    key(
        "tcp",
        Kind::Table(TCP),
        Value("{}"),
        "Switches of every host's TCP; a traffic group may have its own.",
    ),
    key(
        "traffic",
        Kind::List(&Kind::Tagged(&TRAFFIC)),
        Required,
        "Groups of flows.",
    ),
    key(
        "variant",
        Kind::List(&Kind::Table(VARIANT)),
        Value("[]"),
        "What to compare with the file as it stands. Without any, `compare` tries every mechanism that applies.",
    ),
    key("run", Kind::Table(RUN), Value("{}"), "How long and how often."),
];

/// `[run]`.
pub(crate) static RUN: &[Key] = &[
    key(
        "duration",
        Kind::Duration(MILLISECOND, DAY),
        Value("\"60 s\""),
        "Arrivals stop here; links and goodput are measured until here.",
    ),
    key(
        "warmup",
        TIME,
        Value("\"0 s\""),
        "Flows that start earlier are not counted, and links are measured from here on.",
    ),
    key(
        "drain",
        TIME,
        Value("\"60 s\""),
        "How long after `duration` unfinished flows may go on.",
    ),
    key(
        "seeds",
        Kind::Integer(1, 100_000),
        Value("10"),
        "How many runs of each variant, with seeds counting up from `seed`.",
    ),
    key(
        "seed",
        Kind::Integer(0, i64::MAX as u64),
        Value("1"),
        "The first seed.",
    ),
    key(
        "bottleneck",
        Kind::OneOrMore(&Kind::Text),
        Described(
            "`bottleneck` in a dumbbell; else every link above 90 % utilisation in the file as it stands",
        ),
        "Names of the links whose queue and utilisation are reported as the bottleneck's.",
    ),
];

/// `[[variant]]`.
pub(crate) static VARIANT: &[Key] = &[
    key("name", Kind::Text, Required, "Its name in the table."),
    key(
        "set",
        Kind::Setting,
        Required,
        "Paths and their new values: `{ \"network.bottleneck.queue.kind\" = \"codel\" }`.",
    ),
];

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

/// `[network]`.
pub(crate) static NETWORK: Tagged = Tagged {
    tag: "kind",
    what: "network",
    common: &[],
    kinds: &[
        Variety {
            name: "dumbbell",
            doc: "Hosts on both sides of one link, `bottleneck`.",
            keys: &[
                PAIRS,
                ACCESS,
                key(
                    "bottleneck",
                    Kind::Table(LINK),
                    Required,
                    "The link all flows share; `rate` and `delay` have no default.",
                ),
                EGRESS,
            ],
        },
        Variety {
            name: "chain",
            doc: "Hosts on both sides of several links in a row.",
            keys: &[
                PAIRS,
                key("hops", Kind::Integer(1, 1000), Value("2"), HOPS_DOC),
                ACCESS,
                key(
                    "bottleneck",
                    Kind::Table(LINK),
                    Required,
                    "Each link between routers; `rate` and `delay` have no default. `link` entries change single ones.",
                ),
                EGRESS,
            ],
        },
        Variety {
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
                key(
                    "bottleneck",
                    Kind::Table(LINK),
                    Required,
                    "Each link between routers; `rate` and `delay` have no default.",
                ),
                EGRESS,
            ],
        },
        Variety {
            name: "graph",
            doc: "Nodes and links as listed; packets take the path with the fewest links.",
            keys: &[
                key(
                    "hosts",
                    Kind::List(&Kind::Text),
                    Required,
                    "Names of the nodes that send and receive.",
                ),
                key(
                    "routers",
                    Kind::List(&Kind::Text),
                    Value("[]"),
                    "Names of the nodes that forward.",
                ),
                key(
                    "groups",
                    Kind::Map(&Kind::List(&Kind::Text)),
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
        "What waits in front of it. Limits count layer-3 bytes or packets waiting, not the one being sent.",
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
        "mtu",
        Kind::Integer(68, 1_000_000),
        Value("1500"),
        "Largest packet at layer 3, bytes. Endpoints know the smallest of their path.",
    ),
    key(
        "processing",
        TIME,
        Value("\"0 s\""),
        "Time per packet before it is queued.",
    ),
    key(
        "framing",
        Kind::Integer(0, 255),
        Value("0"),
        "Bytes per packet beyond layer 3 that take time on the wire.",
    ),
    key(
        "reverse",
        Kind::Table(REVERSE),
        Value("{}"),
        "What differs on the way back.",
    ),
];

/// `[[link]]`.
pub(crate) static LINK_ENTRY: &[Key] = &{
    let mut keys = [const { key("name", Kind::Text, Required, "Its name.") }; 15];
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

pub(crate) const REORDER: &[Key] = &[
    key("probability", Kind::Probability, Required, "Of each packet."),
    key("delay", TIME, Required, "How long it is held back."),
];

const DATA_ONLY: Key = key(
    "data_only",
    Kind::Flag,
    Value("false"),
    "Spare packets without payload.",
);

/// Loss models.
pub(crate) static LOSS: Tagged = Tagged {
    tag: "kind",
    what: "loss model",
    common: &[],
    kinds: &[
        Variety {
            name: "random",
            doc: "Each packet independently.",
            keys: &[
                key("probability", Kind::Probability, Required, "Of each packet."),
                DATA_ONLY,
            ],
        },
        Variety {
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
        Variety {
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
        Variety {
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

/// Keys of every traffic group.
pub(crate) static TRAFFIC_COMMON: &[Key] = &[
    key(
        "name",
        Kind::Text,
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
        "Data receivers for `down`, likewise. Paired with `from` one to one; a single host pairs with all.",
    ),
    key(
        "direction",
        Kind::Choice(&["down", "up", "both"]),
        Value("\"down\""),
        "Data flows from `from` to `to` (down), the other way (up), or half of the flows each way.",
    ),
    key(
        "spread",
        Kind::Choice(&["round-robin", "random", "each"]),
        Value("\"round-robin\""),
        "How flows are dealt to the pairs: in turn, drawn per flow, or the whole group on every pair.",
    ),
    key("start", TIME, Value("\"0 s\""), "When it begins."),
    key(
        "start_spacing",
        TIME,
        Value("\"0 s\""),
        "Time between the starts of its `count` members.",
    ),
    key(
        "stop",
        TIME,
        Described("`run.duration`"),
        "When it stops starting anything; bulk connections close.",
    ),
    key(
        "tcp",
        Kind::Table(TCP),
        Value("{}"),
        "Switches of its own, over those of `[tcp]`.",
    ),
    key(
        "data_unit",
        Kind::Bytes(1, 1 << 40),
        Described("none"),
        "Size of the units in which its data is counted.",
    ),
    key(
        "latency_sensitive",
        Kind::Flag,
        Described("true for transfer, incast, closed-loop and request-response, else false"),
        "Whether a shorter completion time is what counts; else goodput is.",
    ),
];

const MEMBERS: Key = key("count", COUNT, Value("1"), "Connections.");

/// Traffic kinds.
pub(crate) static TRAFFIC: Tagged = Tagged {
    tag: "kind",
    what: "traffic",
    common: TRAFFIC_COMMON,
    kinds: &[
        Variety {
            name: "bulk",
            doc: "Connections that always have data.",
            keys: &[MEMBERS],
        },
        Variety {
            name: "transfer",
            doc: "One connection per transfer; transfers arrive whether or not earlier ones are done.",
            keys: &[
                key("size", SIZES, Required, "Payload bytes of each."),
                key("arrivals", Kind::Tagged(&ARRIVALS), Required, "When they start."),
                key("count", COUNT, Described("no limit"), "At most so many."),
            ],
        },
        Variety {
            name: "incast",
            doc: "In each round all senders start at the same moment; the next round begins when all are done.",
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
            ],
        },
        Variety {
            name: "closed-loop",
            doc: "Users who transfer on a new connection, think, and do it again.",
            keys: &[
                key("count", COUNT, Value("1"), "Users."),
                key("size", SIZES, Required, "Payload bytes per transfer."),
                key(
                    "think",
                    TIMES,
                    Required,
                    "Time between the end of one and the start of the next.",
                ),
            ],
        },
        Variety {
            name: "request-response",
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
                key(
                    "exchanges",
                    COUNT,
                    Described("until `stop`"),
                    "Exchanges per connection.",
                ),
            ],
        },
        Variety {
            name: "on-off",
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
        Variety {
            name: "cbr",
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
        },
        Variety {
            name: "flows",
            doc: "Transfers listed in a file.",
            keys: &[key(
                "file",
                Kind::Text,
                Required,
                "CSV with the header `start,source,destination,bytes` (seconds, host names, bytes), or Parquet with these columns where that is built in.",
            )],
        },
        Variety {
            name: "ping",
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
        },
    ],
};

/// Arrival processes.
pub(crate) static ARRIVALS: Tagged = Tagged {
    tag: "dist",
    what: "arrival process",
    common: &[],
    kinds: &[
        Variety {
            name: "poisson",
            doc: "Independent arrivals.",
            keys: &[key("rate", Kind::Frequency, Required, "Mean number per time.")],
        },
        Variety {
            name: "constant",
            doc: "Evenly spaced.",
            keys: &[key("rate", Kind::Frequency, Required, "Number per time.")],
        },
        Variety {
            name: "lognormal",
            doc: "Gaps are log-normal: burstier than Poisson for `sigma` above about 0.8.",
            keys: &[
                key("rate", Kind::Frequency, Required, "Mean number per time."),
                key(
                    "sigma",
                    Kind::Number(0.0, 10.0),
                    Required,
                    "Deviation of the logarithm of the gaps.",
                ),
            ],
        },
        Variety {
            name: "weibull",
            doc: "Gaps are Weibull-distributed.",
            keys: &[
                key("rate", Kind::Frequency, Required, "Mean number per time."),
                key("shape", Kind::Number(0.05, 100.0), Required, "Below 1: bursty."),
            ],
        },
        Variety {
            name: "pareto",
            doc: "Gaps are Pareto-distributed.",
            keys: &[
                key("rate", Kind::Frequency, Required, "Mean number per time."),
                key("shape", Kind::Number(1.01, 100.0), Required, "Tail index."),
            ],
        },
        Variety {
            name: "list",
            doc: "Gaps from a list, again from its beginning at its end.",
            keys: &[key(
                "values",
                Kind::List(&Kind::Quantity(Dimension::Time)),
                Required,
                "Gaps, the first before the first arrival.",
            )],
        },
    ],
};

/// Distributions of amounts.
pub(crate) static SIZE_DISTRIBUTION: Tagged = distributions(Dimension::Bytes, SIZE_VARIETIES);
/// Distributions of times.
pub(crate) static TIME_DISTRIBUTION: Tagged = distributions(Dimension::Time, TIME_VARIETIES);

const fn distributions(_dimension: Dimension, kinds: &'static [Variety]) -> Tagged {
    Tagged {
        tag: "dist",
        what: "distribution",
        common: &[],
        kinds,
    }
}

macro_rules! varieties {
    ($name:ident, $dimension:expr, [$($extra:expr),*]) => {
        static $name: &[Variety] = &[
            Variety { name: "constant", doc: "Always the same.", keys: &[
                key("value", Kind::Quantity($dimension), Required, "The value."),
            ] },
            Variety { name: "uniform", doc: "Between two values.", keys: &[
                key("min", Kind::Quantity($dimension), Required, "Smallest."),
                key("max", Kind::Quantity($dimension), Required, "Largest."),
            ] },
            Variety { name: "exponential", doc: "Memoryless.", keys: &[
                key("mean", Kind::Quantity($dimension), Required, "Mean."),
            ] },
            Variety { name: "pareto", doc: "P(X > x) = (scale / x)^shape for x above scale.", keys: &[
                key("scale", Kind::Quantity($dimension), Described("from `mean`"), "Smallest value; give this or `mean`."),
                key("mean", Kind::Quantity($dimension), Described("from `scale`"), "Mean; needs a shape above 1."),
                key("shape", Kind::Number(0.05, 100.0), Required, "Tail index."),
            ] },
            Variety { name: "lomax", doc: "P(X > x) = (1 + x / scale)^-shape: a Pareto that begins at zero.", keys: &[
                key("scale", Kind::Quantity($dimension), Described("from `mean`"), "Scale; give this or `mean`."),
                key("mean", Kind::Quantity($dimension), Described("from `scale`"), "Mean; needs a shape above 1."),
                key("shape", Kind::Number(0.05, 100.0), Required, "Tail index."),
            ] },
            Variety { name: "lognormal", doc: "The logarithm is normal.", keys: &[
                key("mean", Kind::Quantity($dimension), Described("from the others"), "Mean; give this, `median` or `mu`."),
                key("median", Kind::Quantity($dimension), Described("from the others"), "Median."),
                key("mu", Kind::Number(-50.0, 50.0), Described("from the others"), "Mean of the natural logarithm of bytes or seconds."),
                key("sigma", Kind::Number(0.0, 10.0), Required, "Deviation of the logarithm."),
            ] },
            Variety { name: "normal", doc: "Normal; draws below `min` are drawn again.", keys: &[
                key("mean", Kind::Quantity($dimension), Required, "Mean before truncation."),
                key("deviation", Kind::Quantity($dimension), Required, "Deviation before truncation."),
                key("min", Kind::Quantity($dimension), Described("0"), "Smallest value; not above the mean."),
            ] },
            Variety { name: "weibull", doc: "P(X > x) = exp(-(x / scale)^shape).", keys: &[
                key("scale", Kind::Quantity($dimension), Described("from `mean`"), "Scale; give this or `mean`."),
                key("mean", Kind::Quantity($dimension), Described("from `scale`"), "Mean."),
                key("shape", Kind::Number(0.05, 100.0), Required, "Below 1: heavier tail than exponential."),
            ] },
            Variety { name: "empirical", doc: "A table of values and cumulative probabilities, linear between them.", keys: &[
                $($extra,)*
                key("points", Kind::List(&Kind::Point($dimension)), Described("none"), "Pairs `[value, probability]`, ascending, the last probability 1."),
            ] },
            Variety { name: "list", doc: "Values in turn, then again from the beginning.", keys: &[
                key("values", Kind::List(&Kind::Quantity($dimension)), Required, "The values."),
                key("shuffle", Kind::Flag, Value("false"), "Draw at random with replacement instead of in turn."),
            ] },
        ];
    };
}

varieties!(
    SIZE_VARIETIES,
    Dimension::Bytes,
    [key(
        "table",
        Kind::Choice(crate::workload::NAMES),
        Described("none"),
        "A distribution the field uses, by name; give this or `points`."
    )]
);
varieties!(TIME_VARIETIES, Dimension::Time, []);

/// `[tcp]`. Without a default in words: what the profile says.
pub(crate) static TCP: &[Key] = &[
    key(
        "profile",
        Kind::Choice(PROFILES),
        Value("\"linux\""),
        "A complete set of all switches.",
    ),
    switch(
        "congestion_control",
        Kind::CongestionControl,
        "The algorithm, by name or as a table with `kind` and its parameters.",
    ),
    switch(
        "initial_window",
        Kind::Either(&[Kind::Integer(1, 10_000), Kind::Choice(&["rfc3390", "rfc6928"])]),
        "Window at the start: segments, or the rule of an RFC.",
    ),
    switch(
        "max_window",
        Kind::Either(&[Kind::Integer(1, 10_000_000), Kind::Choice(&["unlimited"])]),
        "Largest congestion window, segments (`window_` in ns-2).",
    ),
    switch(
        "abc_limit",
        Kind::Either(&[Kind::Integer(1, 1000), Kind::Choice(&["unlimited"])]),
        "Segments that one ACK may add in slow start (RFC 3465).",
    ),
    switch(
        "window_unit",
        Kind::Choice(&["bytes", "packets"]),
        "What window, pipe and growth count.",
    ),
    switch(
        "hystart",
        Kind::Choice(&["off", "hystart", "hystart++"]),
        "How slow start ends before a loss.",
    ),
    switch(
        "window_validation",
        Kind::Choice(&["none", "rfc5681", "rfc2861"]),
        "What idle and application-limited periods do to the window.",
    ),
    switch(
        "sack",
        Kind::Flag,
        "Selective acknowledgments (RFC 2018, RFC 6675).",
    ),
    switch("dsack", Kind::Flag, "Report duplicates (RFC 2883)."),
    switch("timestamps", Kind::Flag, "Timestamps option (RFC 7323)."),
    switch(
        "window_scale",
        Kind::Either(&[Kind::Integer(0, 14), Kind::Choice(&["off"])]),
        "Shift offered for the receive window (RFC 7323).",
    ),
    switch("ecn", Kind::Flag, "Explicit congestion notification (RFC 3168)."),
    switch(
        "dup_thresh",
        Kind::Integer(1, 255),
        "Duplicate ACKs or SACKed segments that show a loss.",
    ),
    switch(
        "limited_transmit",
        Kind::Flag,
        "New data on the first two duplicate ACKs (RFC 3042).",
    ),
    switch(
        "early_retransmit",
        Kind::Choice(&["off", "rfc5827", "immediate", "delayed"]),
        "A lower threshold when few segments are out.",
    ),
    switch(
        "prr",
        Kind::Choice(&["off", "rfc6937-crb", "rfc6937-ssrb", "rfc9937"]),
        "Window during recovery.",
    ),
    switch("rack", Kind::Flag, "Loss detection by time (RFC 8985)."),
    switch(
        "tail_loss_probe",
        Kind::Choice(&["off", "draft", "rfc8985"]),
        "A probe for a lost tail.",
    ),
    switch(
        "max_ack_delay",
        TIME,
        "Allowance for delayed ACKs in the probe's timer.",
    ),
    switch("frto", Kind::Flag, "Detect spurious timeouts (RFC 5682)."),
    switch(
        "undo",
        Kind::Flag,
        "Undo reductions shown to be spurious (RFC 3522, RFC 4015, RFC 3708).",
    ),
    switch("min_rto", POSITIVE_TIME, "Floor of the retransmission timer."),
    switch(
        "initial_rto",
        POSITIVE_TIME,
        "Retransmission timer before the first sample.",
    ),
    switch("max_rto", POSITIVE_TIME, "Cap of the retransmission timer."),
    switch(
        "rto_floor",
        Kind::Choice(&["rto", "variance"]),
        "Whether the floor holds for the whole timer (RFC 6298) or for its variance term (Linux).",
    ),
    switch(
        "rtt_samples",
        Kind::Choice(&["once-per-rtt", "every-ack"]),
        "Which acknowledgments give samples.",
    ),
    switch(
        "syn_retries",
        Kind::Integer(0, 255),
        "SYN retransmissions before giving up.",
    ),
    switch(
        "retries",
        Kind::Integer(0, 255),
        "Data retransmissions before giving up.",
    ),
    switch(
        "delayed_ack",
        Kind::Either(&[
            Kind::Choice(&["off", "standard", "linux"]),
            Kind::Tagged(&DELAYED_ACK),
        ]),
        "When the receiver acknowledges.",
    ),
    switch(
        "receive_buffer",
        Kind::Bytes(1, u64::MAX),
        "Bounds the window offered.",
    ),
    switch(
        "send_buffer",
        Kind::Bytes(1, u64::MAX),
        "Bounds what an application may write ahead.",
    ),
    switch(
        "nagle",
        Kind::Flag,
        "Hold small segments while data is unacknowledged.",
    ),
];

/// Names of the profiles.
pub(crate) const PROFILES: &[&str] = &[
    "linux",
    "linux-2015",
    "linux-3.2",
    "ns2-sack",
    "ns2-newreno",
    "rfc",
];

const fn switch(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    key(name, kind, Described("as the profile"), doc)
}

const HALF_SECOND: Duration = Duration::from_millis(500);

/// Rules for delayed ACKs.
pub(crate) static DELAYED_ACK: Tagged = Tagged {
    tag: "kind",
    what: "rule for delayed ACKs",
    common: &[],
    kinds: &[
        Variety {
            name: "off",
            doc: "Every segment is acknowledged at once.",
            keys: &[],
        },
        Variety {
            name: "standard",
            doc: "Every second full segment, or after a time.",
            keys: &[key(
                "timeout",
                Kind::Duration(NANOSECOND, HALF_SECOND),
                Value("\"100 ms\""),
                "Longest delay.",
            )],
        },
        Variety {
            name: "linux",
            doc: "Adaptive, after a phase of immediate ACKs.",
            keys: &[
                key(
                    "min",
                    Kind::Duration(NANOSECOND, HALF_SECOND),
                    Value("\"40 ms\""),
                    "Floor of the delay.",
                ),
                key(
                    "max",
                    Kind::Duration(NANOSECOND, HALF_SECOND),
                    Value("\"200 ms\""),
                    "Cap of the delay.",
                ),
                key(
                    "quick_acks",
                    Kind::Integer(0, 255),
                    Value("16"),
                    "Segments acknowledged at once at the start and after idle.",
                ),
            ],
        },
    ],
};
