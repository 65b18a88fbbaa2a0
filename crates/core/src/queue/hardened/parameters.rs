//! Parameters that SP-H and SP-FQ share.

use super::super::Limit;
use crate::parameter::{Parameter, ParameterKind, Value};
use crate::superpacket::Layout;
use crate::time::Duration;

/// What both have, in the order of the reference.
pub(super) const SHARED: &[Parameter] = &[
    LIMIT,
    MAX_LENGTH,
    Layout::PARAMETER,
    Layout::CODEPOINT,
    RESERVE,
    HEADROOM,
    DENIAL,
    SHARE,
    NEWCOMERS,
    CREDIT,
    PORT_CREDIT,
    PORT_REFILL,
    MIN_EPOCH,
    MAX_EPOCH,
    SOURCES,
];

/// [`SHARED`], then `own`.
pub(super) const fn with<const N: usize>(own: &[Parameter]) -> [Parameter; N] {
    let mut all = [LIMIT; N];
    let mut at = 1;
    while at < N {
        all[at] = if at < SHARED.len() {
            SHARED[at]
        } else {
            own[at - SHARED.len()]
        };
        at += 1;
    }
    all
}

const LIMIT: Parameter = Parameter {
    name: "limit",
    kind: ParameterKind::Limit,
    default: Value::Limit(Limit::Packets(100)),
    doc: "What may wait and what is reserved together, not counting the packet being sent (as the report's router: 100 packets); at least four times `max_length`",
};

const MAX_LENGTH: Parameter = Parameter {
    name: "max_length",
    kind: ParameterKind::Integer(1, 255),
    default: Value::Integer(10),
    doc: "Longest super-packet admitted as one, in packets; longer ones are regular packets (10: the initial window)",
};

const RESERVE: Parameter = Parameter {
    name: "reserve",
    kind: ParameterKind::Integer(1, 8192),
    default: Value::Auto,
    doc: "Most packets reserved at a time; regular packets keep the rest of the limit; by default half of it (ours)",
};

const HEADROOM: Parameter = Parameter {
    name: "headroom",
    kind: ParameterKind::Integer(0, 8192),
    default: Value::Auto,
    doc: "Most places that regular packets other than SYNs leave free, reserved ones included, and a first must find: as many as the longest super-packet of the last one to two seconds had packets; by default `max_length` (the report: `max_length`, always)",
};

const DENIAL: Parameter = Parameter {
    name: "denial",
    kind: ParameterKind::Choice(&["regular", "drop"]),
    default: Value::Choice("regular"),
    doc: "What becomes of a super-packet that finds no room as a whole: its packets are regular ones (ours), or all are dropped (the report)",
};

const SHARE: Parameter = Parameter {
    name: "share",
    kind: ParameterKind::Number(0.125, 64.0),
    default: Value::Number(1.0),
    doc: "What one source may have reserved, as a multiple of what nobody has (theta of Choudhury and Hahne, in eighths): 1 leaves a single source half of the reserve",
};

const NEWCOMERS: Parameter = Parameter {
    name: "newcomers",
    kind: ParameterKind::Integer(0, 8192),
    default: Value::Auto,
    doc: "Most packets reserved at a time for sources without credit; by default a quarter of the reserve, at least `max_length` (ours)",
};

const CREDIT: Parameter = Parameter {
    name: "credit",
    kind: ParameterKind::Integer(1, 8000),
    default: Value::Integer(126),
    doc: "Most credit of a source, in reserved packets: what it may waste at once (ours: two super-packets of 63)",
};

const PORT_CREDIT: Parameter = Parameter {
    name: "port_credit",
    kind: ParameterKind::Integer(1, 100_000_000),
    default: Value::Auto,
    doc: "Most credit of the sources behind one incoming link together; by default four times `credit` (ours)",
};

const PORT_REFILL: Parameter = Parameter {
    name: "port_refill",
    kind: ParameterKind::Duration(Duration::from_millis(1), Duration::from_secs(100_000)),
    default: Value::Duration(Duration::from_secs(10)),
    doc: "Time in which the credit of an incoming link grows from nothing to `port_credit` (ours)",
};

const MIN_EPOCH: Parameter = Parameter {
    name: "min_epoch",
    kind: ParameterKind::Duration(Duration::from_micros(10), Duration::from_secs(8)),
    default: Value::Duration(Duration::from_millis(1)),
    doc: "Shortest epoch; reservations live between one and two of them, and an epoch is four times the longest super-packet of the last one to two seconds (ours)",
};

const MAX_EPOCH: Parameter = Parameter {
    name: "max_epoch",
    kind: ParameterKind::Duration(Duration::from_micros(10), Duration::from_secs(8)),
    default: Value::Duration(Duration::from_millis(200)),
    doc: "Longest epoch, also while no super-packet was seen: twice the largest RTT (the report)",
};

const SOURCES: Parameter = Parameter {
    name: "sources",
    kind: ParameterKind::Integer(4, 65_536),
    default: Value::Integer(4096),
    doc: "Sources whose credit is remembered, 16 bytes each, rounded up to a power of two (ours)",
};

pub(super) const MIN_THRESHOLD: Parameter = Parameter {
    name: "min_threshold",
    kind: ParameterKind::Number(0.0, 1e9),
    default: Value::Auto,
    doc: "RED: average queue in packets below which nothing is dropped; by default as queue `red`",
};

pub(super) const MAX_THRESHOLD: Parameter = Parameter {
    name: "max_threshold",
    kind: ParameterKind::Number(0.0, 1e9),
    default: Value::Auto,
    doc: "RED: average queue in packets at which `max_probability` is reached; by default three times `min_threshold`",
};

pub(super) const MAX_PROBABILITY: Parameter = Parameter {
    name: "max_probability",
    kind: ParameterKind::Number(0.0, 1.0),
    default: Value::Number(0.1),
    doc: "RED: drop probability at `max_threshold` (as queue `red`)",
};
