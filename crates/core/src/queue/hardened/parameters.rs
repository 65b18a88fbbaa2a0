//! Parameters that SP-H and SP-FQ share.

use super::super::Limit;
use crate::parameter;
use crate::parameter::Parameter;
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

const LIMIT: Parameter = parameter!("limit": Limit = Limit::Packets(100),
    "What may wait and what is reserved together, not counting the packet being sent (as the report's router: 100 packets); at least four times `max_length`");

const MAX_LENGTH: Parameter = parameter!("max_length": Integer(1, 255) = 10,
    "Longest super-packet admitted as one, in packets; longer ones are regular packets (10: the initial window)");

const RESERVE: Parameter = parameter!("reserve": Integer(1, 8192) = auto,
    "Most packets reserved at a time; regular packets keep the rest of the limit; by default half of it (ours)");

const HEADROOM: Parameter = parameter!("headroom": Integer(0, 8192) = auto,
    "Most places that regular packets other than SYNs leave free, reserved ones included, and a first must find: as many as the longest super-packet of the last one to two seconds had packets; by default `max_length` (the report: `max_length`, always)");

const DENIAL: Parameter = parameter!("denial": Choice(&["regular", "drop"]) = "regular",
    "What becomes of a super-packet that finds no room as a whole: its packets are regular ones (ours), or all are dropped (the report)");

const SHARE: Parameter = parameter!("share": Number(0.125, 64.0) = 1.0,
    "What one source may have reserved, as a multiple of what nobody has (theta of Choudhury and Hahne, in eighths): 1 leaves a single source half of the reserve");

const NEWCOMERS: Parameter = parameter!("newcomers": Integer(0, 8192) = auto,
    "Most packets reserved at a time for sources without credit; by default a quarter of the reserve, at least `max_length` (ours)");

const CREDIT: Parameter = parameter!("credit": Integer(1, 8000) = 126,
    "Most credit of a source, in reserved packets: what it may waste at once (ours: two super-packets of 63)");

const PORT_CREDIT: Parameter = parameter!("port_credit": Integer(1, 100_000_000) = auto,
    "Most credit of the sources behind one incoming link together; by default four times `credit` (ours)");

const PORT_REFILL: Parameter = parameter!(
    "port_refill": Duration(Duration::from_millis(1), Duration::from_secs(100_000)) = Duration::from_secs(10),
    "Time in which the credit of an incoming link grows from nothing to `port_credit` (ours)"
);

const MIN_EPOCH: Parameter = parameter!(
    "min_epoch": Duration(Duration::from_micros(10), Duration::from_secs(8)) = Duration::from_millis(1),
    "Shortest epoch; reservations live between one and two of them, and an epoch is four times the longest super-packet of the last one to two seconds (ours)"
);

const MAX_EPOCH: Parameter = parameter!(
    "max_epoch": Duration(Duration::from_micros(10), Duration::from_secs(8)) = Duration::from_millis(200),
    "Longest epoch, also while no super-packet was seen: twice the largest RTT (the report)"
);

const SOURCES: Parameter = parameter!("sources": Integer(4, 65_536) = 4096,
    "Sources whose credit is remembered, 16 bytes each, rounded up to a power of two (ours)");

pub(super) const MIN_THRESHOLD: Parameter = parameter!("min_threshold": Number(0.0, 1e9) = auto,
    "RED: average queue in packets below which nothing is dropped; by default as queue `red`");

pub(super) const MAX_THRESHOLD: Parameter = parameter!("max_threshold": Number(0.0, 1e9) = auto,
    "RED: average queue in packets at which `max_probability` is reached; by default three times `min_threshold`");

pub(super) const MAX_PROBABILITY: Parameter = parameter!("max_probability": Number(0.0, 1.0) = 0.1,
    "RED: drop probability at `max_threshold` (as queue `red`)");
