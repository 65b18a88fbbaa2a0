//! Keys of a router's file.

use super::Default::{Described, Required, Value};
use super::{Key, Kind, key};

/// The file.
pub(crate) static ROUTER: &[Key] = &[
    key(
        "mode",
        Kind::Choice(&["bridge", "route"]),
        Required,
        "How frames find their way: `bridge` (what enters one of two interfaces leaves by the other as it was) or `route` (IPv4 and IPv6 by the longest prefix).",
    ),
    key(
        "interface",
        Kind::List(&Kind::Table(ROUTER_INTERFACE)),
        Required,
        "The interfaces, each with the queue of what leaves by it: two in a bridge, two or more in a router.",
    ),
    key(
        "route",
        Kind::List(&Kind::Table(ROUTE)),
        Value("[]"),
        "Where packets go, with `mode = \"route\"`.",
    ),
    key(
        "offloads",
        Kind::Choice(&["switch-off", "refuse"]),
        Value("\"switch-off\""),
        "What is done about offloads (gro, gso, tso, sg, tx), with which frames are not those of a wire: they are switched off and stay so, or the router does not start while one is on.",
    ),
    key(
        "metrics",
        Kind::Table(METRICS),
        Described("none"),
        "Counters in Prometheus' text format.",
    ),
    key(
        "log",
        Kind::Table(LOG),
        Value("{}"),
        "What is written to standard error.",
    ),
];

/// `[[interface]]`.
pub(crate) static ROUTER_INTERFACE: &[Key] = &[
    key("name", Kind::Line, Required, "Its name, as `ip link` has it."),
    key(
        "queue",
        Kind::Queue,
        Required,
        "What waits in front of it: a queue discipline with its parameters, as in a scenario file.",
    ),
    key(
        "rate",
        Kind::Rate,
        Described("line rate: a frame waits only while the interface does not take it"),
        "Speed at which frames leave; a little below that of the line, so that the queue is here.",
    ),
    key(
        "framing",
        Kind::Bytes(0, 1000),
        Value("\"0 B\""),
        "Bytes per packet beyond layer 3 that take time at `rate`: 38 B on Ethernet.",
    ),
    key(
        "ring",
        Kind::Choice(&["frames", "blocks", "xdp"]),
        Value("\"frames\""),
        "How frames come in: `frames` (TPACKET_V2: at once) or `blocks` (TPACKET_V3: less work for each, and up to a millisecond later where little comes; up to two ticks of the kernel before Linux 6.18) or `xdp` (AF_XDP, where the program was built with it).",
    ),
    key(
        "device_buffer",
        Kind::Bytes(4096, 1 << 30),
        Value("\"212992 B\""),
        "What may wait in the interface itself, behind the queue, counted with what the kernel needs to keep it: about 2300 B for a frame of 1500.",
    ),
    key(
        "check_source",
        Kind::Flag,
        Value("false"),
        "Discard packets whose source would not be reached by this interface (RFC 3704's strict reverse path), with `mode = \"route\"`.",
    ),
];

/// `[[route]]`.
pub(crate) static ROUTE: &[Key] = &[
    key(
        "to",
        Kind::Line,
        Required,
        "The network: \"10.0.2.0/24\", \"fd00:2::/64\", \"0.0.0.0/0\".",
    ),
    key(
        "interface",
        Kind::Line,
        Required,
        "The interface by which it is reached.",
    ),
    key(
        "via",
        Kind::Line,
        Described("none: the hosts of the network are on the link"),
        "Address of the next router.",
    ),
];

/// `[metrics]`.
pub(crate) static METRICS: &[Key] = &[key(
    "listen",
    Kind::Line,
    Required,
    "A loopback address and a port: \"127.0.0.1:9105\". Metrics are at /metrics.",
)];

/// `[log]`.
pub(crate) static LOG: &[Key] = &[key(
    "format",
    Kind::Choice(&["text", "json"]),
    Value("\"text\""),
    "A line of words and key=value, or a JSON object, for each event.",
)];
